//! What encryption of the commit log does not cover.

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{Check, CheckContext, CheckEntry},
};

/// Searches for canaries in the data files (SSTables). No claim: open-source Cassandra does not encrypt them, and users
/// who are offered "transparent data encryption" should see what it leaves open. Id `data-files-clear`.
pub struct DataFilesClear(DiskCanary);

impl DataFilesClear {
    /// The disclosure.
    pub fn new() -> Self {
        Self(DiskCanary::new(Places::DATA, Targets::Everything))
    }
}

impl Check for DataFilesClear {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("data-files-clear")
    }

    fn claim(&self) -> String {
        "the data files (SSTables) are encrypted, too".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(match self.0.observe(context)? {
            Observation::Exposed(found) if context.protected => Observation::Exposed(format!(
                "only the commit log is encrypted, the data files (SSTables) are in the clear: {found}"
            )),
            other => other,
        })
    }
}
