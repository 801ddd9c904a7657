//! The audit log of every request.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::opensearch::{
    evidence::audit::{AuditComplete, disclosure},
    install::needs_plugin,
    launch::{ALL_LAYERS, AUDIT},
};

/// The audit log of the security plugin, as a file, with the categories that its default leaves out: without
/// `AUTHENTICATED` and `GRANTED_PRIVILEGES` it has no record of an ordinary read or write.
pub struct Audit;

impl Protection for Audit {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "audit",
            title: "audit log of every request",
            protects_against: "access to data that cannot be traced afterwards.",
            leaves_open: "the log itself: the server's account can change it, and it is in the clear with the values of \
                          requests; records that wait in memory are lost with the server.",
            options: &[OptionEntry {
                name: "layers",
                kind: OptionKind::Choice(&[ALL_LAYERS, "rest"]),
                default: Some(DefaultValue::Text(ALL_LAYERS)),
                help: "`rest`: a record of every HTTP request. `both`: also of each action in the server, one or two a \
                       request.",
            }],
            attachable: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install)
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(AUDIT.to_owned(), chosen.text("layers").to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let actions = chosen.text("layers") == ALL_LAYERS;
        vec![Box::new(AuditComplete { actions }), Box::new(disclosure())]
    }
}
