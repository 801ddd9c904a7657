//! What encryption of the commit log does not cover.

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{CheckEntry, Evidence, Scene},
};

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
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("data-files-clear")
    }

    fn claim(&self) -> String {
        self.0.claim()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        Ok(match self.0.look(scene)? {
            Sight::Exposed(found) if scene.guarded => Sight::Exposed(format!(
                "only the commit log is encrypted, the data files (SSTables) are in the clear: {found}"
            )),
            other => other,
        })
    }
}
