//! The audit log of the extension pgaudit, by session or by object.
//!
//! Settings: pgaudit's README. Catalogue queries are not logged, as in most real set-ups: clients cause them without
//! intent.

use std::path::Path;

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, OtherSwitch, ProtectionEntry, Switch},
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
    schema::{AUDITOR, LAUNCHED, MARK, auditor},
};

/// Audit logging by pgaudit.
pub struct PgAudit;

/// Classes of statements that define tables and roles.
const DEFINITIONS: &str = "ddl,role";

fn by_object(chosen: &experiment::Protection) -> bool {
    chosen.text("by") == "object"
}

/// Grants the auditor what makes pgaudit log statements of class `log` on a table.
///
/// The role is made with the first table, so that it is part of the loaded data and of their copies. If the server
/// names another role, or an administrator has created this one, that role is used and never removed. Default
/// privileges grant tables that are made later, by a dump or another program: every table on a server that Tithe
/// launched, elsewhere those in Tithe's schema.
fn grants(log: &str) -> String {
    let rights = match log {
        "read" => "SELECT",
        "write" => "INSERT, UPDATE, DELETE",
        _ => "SELECT, INSERT, UPDATE, DELETE",
    };
    format!(
        "DO $$ DECLARE auditor text := {}; place text := 'IN SCHEMA {{space}}'; BEGIN IF {LAUNCHED} THEN place := \
         ''; END IF; IF auditor = '{AUDITOR}' AND to_regrole('{AUDITOR}') IS NULL THEN CREATE ROLE {AUDITOR} NOLOGIN; \
         COMMENT ON ROLE {AUDITOR} IS '{MARK}'; END IF; IF EXISTS (SELECT FROM pg_roles WHERE rolname = auditor) THEN \
         EXECUTE format('ALTER DEFAULT PRIVILEGES %s GRANT {rights} ON TABLES TO %I; GRANT {rights} ON {{table}} TO \
         %I', place, auditor, auditor); END IF; END $$",
        auditor()
    )
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
                other: Some(OtherSwitch {
                    option: "by",
                    value: "object",
                    on: &[
                        "SET pgaudit.log = 'none'",
                        "SET pgaudit.log_catalog = off",
                        "SET pgaudit.log_parameter = {parameter}",
                        // The server's own role, if it names one.
                        "SELECT set_config('pgaudit.role', coalesce(nullif(current_setting('pgaudit.role', true), ''), \
                         'tithe_auditor'), false)",
                    ],
                    off: &["RESET pgaudit.role", "RESET pgaudit.log"],
                }),
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
            setup.table_statements.push(grants(chosen.text("log")));
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
