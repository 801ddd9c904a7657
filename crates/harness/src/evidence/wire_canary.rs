//! Is data readable between client and server?

use crate::evidence::{Evidence, Scene, Sight, canary::Targets};

/// Sends canaries through a relay of Tithe's own and looks for them in what passed. Where the arm's transport is TLS,
/// the relay must also have seen a TLS handshake. Id `wire-canary`.
///
/// Needs a server at [`crate::database::Address::Tcp`]; an embedded or attached one is unknown, never protected.
pub struct WireCanary {
    targets: Targets,
}

impl WireCanary {
    /// A check of the wire for `targets`.
    pub fn new(targets: Targets) -> Self {
        Self { targets }
    }
}

impl Evidence for WireCanary {
    fn id(&self) -> &'static str {
        "wire-canary"
    }

    fn claim(&self) -> String {
        format!("{:?}", self.targets)
    }

    fn look(&self, _scene: &mut Scene<'_>) -> Sight {
        Sight::Unknown(String::new())
    }
}
