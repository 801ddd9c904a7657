//! The audit log, with a filter by kind of operation.
//!
//! Settings: MongoDB documentation, "Auditing" and "Configure Audit Filters". An operation is recorded by the check of
//! its rights (`authCheck`), which must be configured to record successes too. The kinds are those of a published
//! report on a managed MongoDB: inserts, updates and queries.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use super::needs_enterprise;
use crate::mongodb::{evidence::audit_complete::AuditComplete, launch::AUDIT_FILTER};

/// `auditLog`.
pub struct Audit;

impl Protection for Audit {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "audit",
            title: "audit log",
            protects_against: "operations that cannot be traced to an account afterwards.",
            leaves_open: "the log itself, which holds keys and written values in the clear, and grows with each \
                          operation; operations of other kinds.",
            options: &[OptionEntry {
                name: "operations",
                kind: OptionKind::Choice(&["insert", "update", "insert+query", "update+query", "all"]),
                default: Some(DefaultValue::Text("all")),
                help: "Kinds of operations that are recorded (auditLog.filter); all adds deletes.",
            }],
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_enterprise(install, "an audit log")
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let commands = commands(chosen.text("operations"));
        let filter = serde_json::json!({ "atype": "authCheck", "param.command": { "$in": commands } });
        setup.settings.insert(AUDIT_FILTER.to_owned(), filter.to_string());
        setup.settings.insert("setParameter.auditAuthorizationSuccess".to_owned(), "true".to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(AuditComplete::new(commands(chosen.text("operations"))))]
    }
}

/// The commands for the kinds of `operations`.
fn commands(operations: &str) -> &'static [&'static str] {
    match operations {
        "insert" => &["insert"],
        "update" => &["update"],
        "insert+query" => &["insert", "find", "getMore"],
        "update+query" => &["update", "find", "getMore"],
        _ => &["insert", "update", "delete", "find", "getMore"],
    }
}
