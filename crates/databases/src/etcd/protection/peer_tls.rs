//! TLS between the members of a cluster.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::etcd::{launch::BETWEEN_MEMBERS, peers::PeerTls as PeersSpeakTls};

/// `peer-cert-file`, `peer-key-file` and `peer-client-cert-auth`: TLS 1.3, and all members show certificates to each
/// other.
pub struct PeerTls;

impl Protection for PeerTls {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "peer-tls",
            title: "TLS between members",
            protects_against: "attackers who read or change traffic between the members of a cluster, or pose as a \
                             member.",
            leaves_open: "traffic between clients and members; data in the servers' memory and files. With one member, \
                          the default, nothing travels and nothing is measured: set `members = \"3\"` in `[settings]`.",
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(BETWEEN_MEMBERS.to_owned(), "true".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PeersSpeakTls)]
    }
}
