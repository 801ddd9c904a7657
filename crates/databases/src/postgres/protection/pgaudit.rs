//! The audit log of the extension pgaudit, in session mode.
//!
//! Settings: pgaudit's README. Catalogue queries are left out of the log, as they are in most real set-ups: clients
//! cause them without meaning to.

use std::path::Path;

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry, Switch},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::postgres::{
    evidence::{audit_complete::AuditComplete, logs_free, pgcrypto_trap::PgcryptoTrap},
    install::{LIBRARIES, version_of},
};

/// Session audit logging by pgaudit.
pub struct PgAudit;

impl Protection for PgAudit {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "pgaudit",
            title: "audit log (pgaudit)",
            protects_against: "access to data that cannot be traced afterwards.",
            leaves_open: "the log itself: the server's account can change it, and it repeats values in the clear.",
            options: &[
                OptionEntry {
                    name: "log",
                    kind: OptionKind::Choice(&["read,write", "read", "write"]),
                    default: Some(DefaultValue::Text("read,write")),
                    help: "Classes of statements that are logged (pgaudit.log).",
                },
                OptionEntry {
                    name: "parameter",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(true)),
                    help: "Log the parameters of statements too (pgaudit.log_parameter).",
                },
            ],
            attachable: true,
            switch: Some(Switch {
                on: &[
                    "SET pgaudit.log = '{log}'",
                    "SET pgaudit.log_catalog = off",
                    "SET pgaudit.log_parameter = {parameter}",
                ],
                off: &["RESET pgaudit.log"],
            }),
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        let libraries = install.facts.get(LIBRARIES).map(Path::new);
        let files = ["pgaudit.so", "pgaudit.dylib"].map(|name| libraries.map(|folder| folder.join(name)));
        if files.iter().flatten().any(|file| file.is_file()) {
            return Ok(());
        }
        let major = version_of(&install.version).map_or(0, |(major, _)| major);
        let looked_in = match libraries {
            Some(_) => files.iter().flatten().map(|file| file.display().to_string()).collect(),
            None => vec![format!("no folder of libraries next to {}", install.programs.display())],
        };
        Err(Missing {
            what: format!("the extension pgaudit for PostgreSQL {major}"),
            looked_in,
            how_to_install: vec![
                format!("Debian, Ubuntu: apt-get install postgresql-{major}-pgaudit"),
                format!("Fedora, RHEL (repository of postgresql.org): dnf install 'pgaudit*_{major}'"),
            ],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        // Beside whatever the experiment loads itself.
        let libraries = setup.settings.entry("shared_preload_libraries".to_owned()).or_default();
        if !libraries.is_empty() {
            libraries.push(',');
        }
        libraries.push_str("pgaudit");
        let parameter = if chosen.flag("parameter") { "on" } else { "off" };
        for (name, value) in
            [("pgaudit.log", chosen.text("log")), ("pgaudit.log_catalog", "off"), ("pgaudit.log_parameter", parameter)]
        {
            setup.settings.insert(name.to_owned(), value.to_owned());
        }
        // By default it would go into the schema of the account's name, which is that of the measured tables.
        setup.statements.push("CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public".to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let (read, write) = (chosen.text("log").contains("read"), chosen.text("log").contains("write"));
        vec![
            Box::new(AuditComplete::new(read, write, chosen.flag("parameter"))),
            Box::new(logs_free::disclosure()),
            Box::new(PgcryptoTrap::new(read)),
        ]
    }
}
