//! The audit log of MariaDB's own plugin, `server_audit`.
//!
//! Settings: MariaDB documentation, "MariaDB Audit Plugin". By default the plugin keeps ten files of 1 MB and discards
//! older records: under load they last for seconds. Here one file grows without bound, in every arm alike.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::{
    mariadb::{
        evidence::audit_complete::{AUDIT_LOG, AuditComplete},
        install::needs_plugin,
        launch::load_plugin,
    },
    mysql_family::evidence::logs_free,
};

/// `server_audit`.
pub struct ServerAudit;

impl Protection for ServerAudit {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "server-audit",
            title: "audit log (server_audit)",
            protects_against: "access to data that cannot be traced afterwards.",
            leaves_open: "the log itself: the server's account can change it, it is in the clear, and it repeats \
                          values; those of prepared statements only while a binary log is on, and without them it does \
                          not show which record was touched.",
            options: &[OptionEntry {
                name: "events",
                kind: OptionKind::Choice(&["CONNECT,QUERY", "QUERY", "QUERY_DML", "QUERY_DML_NO_SELECT", "CONNECT"]),
                default: Some(DefaultValue::Text("CONNECT,QUERY")),
                help: "Kinds of events that are logged (server_audit_events).",
            }],
            attachable: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install, "server_audit", "mariadb-server")
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        load_plugin(setup, "server_audit");
        for (name, value) in [
            ("server_audit", "FORCE_PLUS_PERMANENT"),
            ("server_audit_events", chosen.text("events")),
            ("server_audit_file_rotate_size", "9223372036854775807"),
            ("server_audit_logging", "ON"),
            ("server_audit_output_type", "file"),
        ] {
            setup.settings.insert(name.to_owned(), value.to_owned());
        }
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(AuditComplete::new(chosen.text("events"))), Box::new(logs_free::disclosure(&AUDIT_LOG))]
    }
}
