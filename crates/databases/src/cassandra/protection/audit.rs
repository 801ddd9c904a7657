//! The audit log, as lines of text or as a binary queue.
//!
//! Settings: Apache Cassandra documentation, "Audit Logging". The system's own keyspaces are not audited, which is the
//! product's default.

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::cassandra::{
    evidence::{audit_complete::AuditComplete, logs_free},
    launch::AUDIT,
};

/// An audit log of one of the product's two kinds.
pub struct Audit {
    entry: &'static ProtectionEntry,
    class: &'static str,
    /// What else, besides the class, decides the cost of a record.
    further: &'static str,
}

/// Lines of text, written before the client is answered.
pub const FILE: Audit =
    Audit { entry: &entry("audit-file", "audit log as text (FileAuditLogger)"), class: "FileAuditLogger", further: "" };

/// A binary queue in mapped files, filled by its own thread; requests wait rather than lose a record.
pub const BINARY: Audit = Audit {
    entry: &entry("audit-bin", "audit log as a binary queue (BinAuditLogger)"),
    class: "BinAuditLogger",
    further: ", block: true, roll_cycle: HOURLY",
};

/// Stands for no filter.
const ALL: &str = "all";

const fn entry(id: &'static str, title: &'static str) -> ProtectionEntry {
    ProtectionEntry {
        id,
        title,
        protects_against: "access to data that cannot be traced afterwards.",
        leaves_open: "the log itself: the server's account can change it, and it is in the clear; prepared statements \
                      are kept without their values, so it does not show which record was touched.",
        options: &[OptionEntry {
            name: "categories",
            kind: OptionKind::Choice(&[ALL, "QUERY,DML", "QUERY", "DML"]),
            default: Some(DefaultValue::Text(ALL)),
            help: "Kinds of requests that are logged (included_categories): reads are QUERY, all writes are DML.",
        }],
        attachable: true,
        ..ProtectionEntry::BARE
    }
}

impl Protection for Audit {
    fn entry(&self) -> &'static ProtectionEntry {
        self.entry
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let included = match chosen.text("categories") {
            ALL => String::new(),
            categories => format!(", included_categories: '{categories}'"),
        };
        let options = format!("{{enabled: true, logger: [{{class_name: {}}}]{included}{}}}", self.class, self.further);
        setup.settings.insert(AUDIT.to_owned(), options);
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let categories = match chosen.text("categories") {
            ALL => "QUERY,DML",
            categories => categories,
        };
        vec![Box::new(AuditComplete::new(categories)), Box::new(logs_free::disclosure())]
    }
}
