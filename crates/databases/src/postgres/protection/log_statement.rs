//! PostgreSQL's own statement log, the audit log of those who install nothing.

use tithe_harness::{evidence::Evidence, protection::Protection, setup::Setup};
use tithe_model::experiment;

use crate::postgres::evidence::{logs_free, pgcrypto_trap::PgcryptoTrap, statement_log::StatementLog};

/// `log_statement = all`.
pub struct LogStatement;

impl Protection for LogStatement {
    fn id(&self) -> &'static str {
        "log-statement"
    }

    fn title(&self) -> &'static str {
        "statement log"
    }

    fn guards_against(&self) -> &'static str {
        "access to data that nobody can trace afterwards."
    }

    fn leaves_open(&self) -> &'static str {
        "the log itself: the server's account can change it, and it repeats values in the clear; a statement that \
         reads through a view or a function names neither table."
    }

    fn attachable(&self) -> bool {
        // Sessions can switch it on: `on` and `off` of the arm.
        true
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert("log_statement".to_owned(), "all".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(StatementLog), Box::new(logs_free::disclosure()), Box::new(PgcryptoTrap::new(true))]
    }
}
