//! The general log: the audit log of servers without plugins.

use tithe_model::{
    catalogue::{ProtectionEntry, Switch},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::{
    evidence::marked::Log,
    mysql_family::evidence::{general_log::GeneralLogComplete, logs_free},
};

/// `general_log = ON`, and how the log of one product is reached.
pub struct GeneralLog(pub &'static Log);

impl Protection for GeneralLog {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "general-log",
            title: "general log",
            protects_against: "access to data that cannot be traced afterwards.",
            leaves_open: "the log itself: the server's account can change it, it is in the clear, it repeats values, \
                          and an account with SUPER (of MySQL with SESSION_VARIABLES_ADMIN, too) can switch it off \
                          for its own session.",
            attachable: true,
            // For a server with `sql_log_off = ON`, which by itself leaves sessions out of its log.
            switch: Some(Switch {
                on: &["SET SESSION sql_log_off = OFF"],
                off: &["SET SESSION sql_log_off = ON"],
                other: None,
            }),
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert("general_log".to_owned(), "ON".to_owned());
        setup.settings.insert("log_output".to_owned(), "FILE".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(GeneralLogComplete(self.0)), Box::new(logs_free::disclosure(self.0))]
    }
}
