//! What encryption of the commit log does not cover.

use tithe_harness::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{Evidence, Scene},
    sight::Sight,
};
use tithe_model::record::Role;

/// Looks for canaries in the data files (SSTables). No claim: open-source Cassandra does not encrypt them, and whoever
/// is offered "transparent data encryption" should see what that leaves open. Id `data-files-clear`.
pub struct DataFilesClear(DiskCanary);

impl DataFilesClear {
    /// The disclosure.
    pub fn new() -> Self {
        Self(DiskCanary::new(Places::DATA, Targets::Everything))
    }
}

impl Evidence for DataFilesClear {
    fn id(&self) -> &'static str {
        "data-files-clear"
    }

    fn claim(&self) -> String {
        self.0.claim()
    }

    fn role(&self) -> Role {
        Role::Disclosure
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        match self.0.look(scene) {
            Sight::Exposed(found) if scene.guarded => Sight::Exposed(format!(
                "only the commit log is encrypted, the data files (SSTables) are in the clear: {found}"
            )),
            other => other,
        }
    }
}
