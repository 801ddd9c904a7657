//! PostgreSQL's own statement log: the audit log of servers without extensions.

use tithe_model::{
    catalogue::{ProtectionEntry, Switch},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::postgres::evidence::{logs_free, pgcrypto_trap::PgcryptoTrap, statement_log::StatementLog};

/// `log_statement = all`.
pub struct LogStatement;

impl Protection for LogStatement {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "log-statement",
            title: "statement log",
            protects_against: "access to data that cannot be traced afterwards.",
            leaves_open: "the log itself: the server's account can change it, and it repeats values in the clear; a \
                          statement that reads through a view or a function names neither table.",
            attachable: true,
            switch: Some(Switch { on: &["SET log_statement = 'all'"], off: &["RESET log_statement"], other: None }),
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert("log_statement".to_owned(), "all".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(StatementLog), Box::new(logs_free::disclosure()), Box::new(PgcryptoTrap::new(true))]
    }
}
