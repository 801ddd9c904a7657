//! Can the measured account do what it needs, and nothing else, and is the account that everybody knows closed?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::{
    cassandra::{
        connection::CqlConnection,
        evidence::open,
        store::{qualified, well_known},
        target::of_clients,
    },
    evidence::Attempt,
    target::is_local,
};

/// Comes as `cassandra` with the password `cassandra`, which every new cluster has; then, as the measured account,
/// reads the table of passwords and makes a role, all of which must be refused; then reads Tithe's own table, which
/// must be served. Id `rights-enforced`.
pub struct Accounts;

/// What the measured account must be refused, each with its name.
const FORBIDDEN: [(&str, &str); 2] = [
    ("the table of passwords", "SELECT role, salted_hash FROM system_auth.roles"),
    ("a new role", "CREATE ROLE tithe_intruder"),
];

impl Check for Accounts {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused passwords and roles, and nobody comes in by the well-known password".to_owned()
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
        for (name, statement) in FORBIDDEN {
            match connection.run(statement) {
                // A server without rights takes the statement, and has no table of roles to put it into.
                Err(Fault::Server(_)) => tell(name, Attempt::Served),
                outcome => tell(name, Attempt::of(outcome)?),
            }
        }
        tell("the account `cassandra` with its well-known password", Attempt::of(open(&well_known(&target)))?);
        connection.run(&format!("SELECT * FROM {} LIMIT 1", qualified(&target.database, context.table)))?;
        if served && is_local(context.server) {
            // What a server without rights let through is taken away again.
            let _ = connection.run("DROP ROLE IF EXISTS tithe_intruder");
        }
        let quotation = format!("{}; Tithe's own table: served", words.join("; "));
        Ok(if served { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }
}
