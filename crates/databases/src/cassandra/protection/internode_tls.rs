//! TLS between the nodes of a cluster.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::{
    cassandra::{evidence::internode::Internode, launch::BETWEEN_NODES},
    tls::BETWEEN_NODES_ENTRY,
};

/// `server_encryption_options` with `internode_encryption: all`: TLS 1.3, and all nodes show certificates to each
/// other.
pub struct InternodeTls;

impl Protection for InternodeTls {
    fn entry(&self) -> &'static ProtectionEntry {
        &BETWEEN_NODES_ENTRY
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(BETWEEN_NODES.to_owned(), "all".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(Internode)]
    }
}
