//! TLS between the nodes of a cluster.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::{
    opensearch::{evidence::internode::Internode, install::needs_plugin, launch::BETWEEN_NODES},
    tls::BETWEEN_NODES_ENTRY,
};

/// The plugin's TLS between nodes, which show certificates to each other. Accounts and the audit log always have it.
pub struct InternodeTls;

impl Protection for InternodeTls {
    fn entry(&self) -> &'static ProtectionEntry {
        &BETWEEN_NODES_ENTRY
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install)
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(BETWEEN_NODES.to_owned(), "true".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(Internode)]
    }
}
