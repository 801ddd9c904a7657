//! TLS between the nodes of a cluster.

use tithe_harness::{evidence::Evidence, protection::Protection, setup::Setup};
use tithe_model::experiment;

use crate::cassandra::{evidence::internode::Internode, launch::BETWEEN_NODES};

/// `server_encryption_options` with `internode_encryption: all`: TLS 1.3, and every node shows a certificate to every
/// other.
pub struct InternodeTls;

impl Protection for InternodeTls {
    fn id(&self) -> &'static str {
        "internode-tls"
    }

    fn title(&self) -> &'static str {
        "TLS between nodes"
    }

    fn guards_against(&self) -> &'static str {
        "whoever reads or changes what travels between the nodes of a cluster, or poses as one of them."
    }

    fn leaves_open(&self) -> &'static str {
        "what travels between clients and nodes; data in the servers' memory, files and logs. With one node nothing \
         travels, and the price is of nothing."
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(BETWEEN_NODES.to_owned(), "all".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(Internode)]
    }
}
