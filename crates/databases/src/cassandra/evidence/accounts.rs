//! Can the measured account do what it needs, and nothing else, and is the default account closed?

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::{
    cassandra::{
        connection::CqlConnection,
        evidence::open,
        store::{qualified, well_known},
        target::of_clients,
    },
    evidence::Attempt,
};

/// Logs in as `cassandra` with the password `cassandra`, which every new cluster has. Then, as the measured account,
/// reads the table of passwords and removes a role. All of this must be refused. Then reads Tithe's own table, which
/// must be served. It changes nothing, even if something is not refused. Id `rights-enforced`.
pub struct Accounts;

/// True for the server's error to an account with the right: there is no such role (Native Protocol v5, 9, Invalid).
/// All other errors are about something else.
fn lets_through(error: &str) -> bool {
    error.starts_with("0x2200:")
}

/// Statements that the measured account must be refused, each with its name. The role does not exist: the server checks
/// rights first, and then reports to an account that has them that there is no such role.
fn forbidden() -> [(&'static str, String); 2] {
    let nobody = Secret::random_text(16);
    [
        ("the table of passwords", "SELECT role, salted_hash FROM system_auth.roles".to_owned()),
        ("removing a role", format!("DROP ROLE tithe_{}", nobody.expose_text())),
    ]
}

/// The outcome of a statement that must be refused.
///
/// # Errors
/// As [`Attempt::of`].
fn attempted<T>(outcome: Result<T, Fault>) -> Result<Attempt, Fault> {
    match outcome {
        Err(Fault::Server(words)) if lets_through(&words) => Ok(Attempt::Served),
        outcome => Attempt::of(outcome),
    }
}

impl Check for Accounts {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused passwords and roles, and the well-known password is refused".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let target = of_clients(context.server, context.setup)?;
        let mut connection = CqlConnection::open(&target)?;
        let mut words = Vec::new();
        let mut served = false;
        let mut tell = |name: &str, attempt| match attempt {
            Attempt::Refused(refusal) => words.push(format!("{name}: refused ({refusal})")),
            Attempt::Served => {
                served = true;
                words.push(format!("{name}: served"));
            }
        };
        for (name, statement) in forbidden() {
            tell(name, attempted(connection.run(&statement))?);
        }
        tell("the account `cassandra` with its well-known password", Attempt::of(open(&well_known(&target)))?);
        connection.run(&format!("SELECT * FROM {} LIMIT 1", qualified(&target.database, context.table)))?;
        let quotation = format!("{}; Tithe's own table: served", words.join("; "));
        Ok(if served { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_cannot_answer_lets_nothing_through() {
        let of_error = |words: &str| attempted(Err::<(), _>(Fault::Server(words.to_owned())));
        assert!(matches!(attempted(Ok(())), Ok(Attempt::Served)));
        assert!(matches!(of_error("0x2200: tithe_x doesn't exist"), Ok(Attempt::Served)));
        for words in ["0x1000: Cannot achieve consistency level", "0x1200: timed out"] {
            assert!(matches!(of_error(words), Err(Fault::Server(_))), "{words}");
        }
        let denied = attempted(Err::<(), _>(Fault::Refused("0x2100: no permission".to_owned())));
        assert!(matches!(denied, Ok(Attempt::Refused(words)) if words == "0x2100: no permission"));
    }

    #[test]
    fn what_is_let_through_changes_nothing() {
        for ((name, statement), (_, again)) in forbidden().into_iter().zip(forbidden()) {
            let nobody = statement.strip_prefix("DROP ROLE tithe_").is_some_and(|role| role.len() == 16);
            assert!(statement.starts_with("SELECT ") || nobody && statement != again, "{name}: {statement}");
        }
    }
}
