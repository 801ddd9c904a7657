//! The audit log of the extension pgaudit, by session or by object.
//!
//! Settings: pgaudit's README. Catalogue queries are not logged, as in most real set-ups: clients cause them without
//! intent.

use std::path::Path;

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry, Switch},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::postgres::{
    evidence::{
        audit_complete::{AuditComplete, Sink, definitions_logged},
        logs_free,
        pgcrypto_trap::PgcryptoTrap,
    },
    install::{LIBRARIES, version_of},
    launch::COLLECTOR,
    parameters::DESTINATION,
};

/// Audit logging by pgaudit.
pub struct PgAudit;

/// The role whose privileges on a table decide which statements on it are logged.
const AUDITOR: &str = "tithe_auditor";

/// Classes of statements that define tables and roles.
const DEFINITIONS: &str = "ddl,role";

fn by_object(chosen: &experiment::Protection) -> bool {
    chosen.text("by") == "object"
}

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
                    kind: OptionKind::Choice(&["read,write", "read", "write", DEFINITIONS]),
                    default: Some(DefaultValue::Text("read,write")),
                    help: "Classes of statements that are logged (pgaudit.log). `ddl,role` logs no reads and writes.",
                },
                OptionEntry {
                    name: "parameter",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(true)),
                    help: "Log the parameters of statements too (pgaudit.log_parameter).",
                },
                OptionEntry {
                    name: "by",
                    kind: OptionKind::Choice(&["session", "object"]),
                    default: Some(DefaultValue::Text("session")),
                    help: "All statements of these classes, or those on tables granted to pgaudit.role.",
                },
                OptionEntry {
                    name: "sink",
                    kind: OptionKind::Choice(&["any", "stderr", "collector", "csvlog", "syslog"]),
                    default: Some(DefaultValue::Text("any")),
                    help: "Where the log goes. `any`: as the server is set up.",
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
        let mut set = |name: &str, value: &str| drop(setup.settings.insert(name.to_owned(), value.to_owned()));
        set("pgaudit.log", if by_object(chosen) { "none" } else { chosen.text("log") });
        set("pgaudit.log_catalog", "off");
        set("pgaudit.log_parameter", parameter);
        if by_object(chosen) {
            set("pgaudit.role", AUDITOR);
        }
        if let Some(sink) = Sink::named(chosen.text("sink")) {
            set(COLLECTOR, sink.collector());
            set(DESTINATION, sink.destination());
        }
        if by_object(chosen) {
            let rights = if chosen.text("log") == "read" { "SELECT" } else { "INSERT, UPDATE, DELETE" };
            let reads = if chosen.text("log") == "read,write" { "SELECT, " } else { "" };
            setup.statements.push(format!(
                "DO $$ BEGIN IF to_regrole('{AUDITOR}') IS NULL THEN CREATE ROLE {AUDITOR} NOLOGIN; END IF; END $$"
            ));
            // On a server that Tithe did not start, the role and its privileges belong to the owner.
            setup.table_statements.push(format!(
                "DO $$ BEGIN IF to_regrole('{AUDITOR}') IS NOT NULL THEN GRANT {reads}{rights} ON {{table}} TO {AUDITOR}; END \
                 IF; END $$"
            ));
        }
        // By default it would go into the schema with the account's name, which is that of the measured tables.
        setup.statements.push("CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public".to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        if chosen.text("log") == DEFINITIONS {
            return vec![Box::new(definitions_logged()), Box::new(logs_free::disclosure())];
        }
        let (read, write) = (chosen.text("log").contains("read"), chosen.text("log").contains("write"));
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(AuditComplete {
                read,
                write,
                parameter: chosen.flag("parameter"),
                by_object: by_object(chosen),
                sink: Sink::named(chosen.text("sink")),
            }),
            Box::new(logs_free::disclosure()),
        ];
        // What it calls is not in any table.
        if !by_object(chosen) {
            checks.push(Box::new(PgcryptoTrap::new(read)));
        }
        checks
    }
}
