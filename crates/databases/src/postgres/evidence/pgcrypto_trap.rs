//! Encryption in the server while it logs statements: does the log hold the plaintext and the key?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::SqlSession as _,
};

use super::logs_free::LOG;
use crate::{
    evidence::marked::{LogGrowth, NO_END, marker},
    postgres::schema::{YCSB_DIALECT, administrator},
    target::is_local,
    ycsb_over_sql::KEY_COLUMN,
};

/// Has the extension pgcrypto encrypt a value, then looks for the value and the key in the log. A disclosure: users who
/// think of combining both should know. Its control is a mark in the same statement, which the log must hold.
pub struct PgcryptoTrap {
    reads_are_logged: bool,
}

impl PgcryptoTrap {
    /// A check on a server that logs reads, or writes only.
    pub fn new(reads_are_logged: bool) -> Self {
        Self { reads_are_logged }
    }
}

impl Check for PgcryptoTrap {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("pgcrypto-trap").own_control()
    }

    fn claim(&self) -> String {
        "the value and the key that a client gives to pgcrypto stay out of the log".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if !is_local(context.server) {
            return Ok(Observation::Unknown("not checked: Tithe did not start this server".to_owned()));
        }
        let growth = match LogGrowth::begin(context, &LOG) {
            Ok(growth) => growth,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let fresh = marker(context);
        let (mark, value, key) = (format!("mark-{fresh}"), format!("value-{fresh}"), format!("key-{fresh}"));
        let mut session = administrator(context.server, context.setup)?;
        // In Tithe's own schema: nothing else can use it by accident, and it is dropped below.
        if let Err(fault) = session.run("CREATE EXTENSION pgcrypto SCHEMA tithe") {
            return Ok(Observation::Unknown(format!("the extension pgcrypto cannot be used: {fault}")));
        }
        let table = YCSB_DIALECT.qualified(&context.setup.space, context.table);
        let encrypt = if self.reads_are_logged {
            format!("SELECT '{mark}', tithe.pgp_sym_encrypt('{value}', '{key}')")
        } else {
            // An update of no row: it is logged as any other.
            format!(
                "UPDATE {table} SET {} = tithe.pgp_sym_encrypt('{value}', '{key}') WHERE {} = '{mark}'",
                YCSB_DIALECT.field(context.table, 0),
                YCSB_DIALECT.quoted(KEY_COLUMN),
            )
        };
        let outcome = session.run(&encrypt);
        session.run("DROP EXTENSION pgcrypto")?;
        outcome?;
        let Some(gained) = growth.text(context, &LOG)? else { return Ok(Observation::Unknown(NO_END.to_owned())) };
        Ok(judged(&gained.text, [&mark, &value, &key]))
    }
}

/// What a `log` shows of a statement with these texts: its mark, the value and the key.
fn judged(log: &str, [mark, value, key]: [&str; 3]) -> Observation {
    if !log.contains(mark) {
        return Observation::Unknown("the statement itself is not in the log".to_owned());
    }
    match (log.contains(value), log.contains(key)) {
        (false, false) => Observation::Protected("the log holds the statement, but neither value nor key".to_owned()),
        (true, true) => Observation::Exposed("the log holds the value and its key in the clear".to_owned()),
        (true, false) => Observation::Exposed("the log holds the value in the clear".to_owned()),
        (false, true) => Observation::Exposed("the log holds the key in the clear".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_the_statement_says_nothing_and_one_with_it_all() {
        let seen = |log: &str| judged(log, ["mark", "value", "key"]);
        let exposed = |words: &str| Observation::Exposed(format!("the log holds {words} in the clear"));
        assert!(matches!(seen("value key"), Observation::Unknown(_)));
        assert!(matches!(seen("SELECT 'mark', $1"), Observation::Protected(_)));
        assert_eq!(seen("mark value key"), exposed("the value and its key"));
        assert_eq!(seen("mark value"), exposed("the value"));
        assert_eq!(seen("mark key"), exposed("the key"));
    }
}
