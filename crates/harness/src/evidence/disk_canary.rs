//! Is written data readable in the server's files?

use crate::evidence::{Evidence, Scene, Sight, canary::Targets, scan::Places};

/// Writes canaries through the measured path, settles, and looks for them in the files of `places`.
///
/// Its id is `disk-canary`, or `journal-canary` where the journal is the only place: one arm can have both.
/// On the plain arm the canaries must be seen in the data files (where these are among the places), else the
/// finding is "cannot tell". A journal that is emptied by settling belongs into the same check as the data.
pub struct DiskCanary {
    places: Places,
    targets: Targets,
}

impl DiskCanary {
    /// A check of `places` for `targets`.
    pub fn new(places: Places, targets: Targets) -> Self {
        Self { places, targets }
    }
}

impl Evidence for DiskCanary {
    fn id(&self) -> &'static str {
        "disk-canary"
    }

    fn claim(&self) -> String {
        format!("{:?} {:?}", self.places, self.targets)
    }

    fn look(&self, _scene: &mut Scene<'_>) -> Sight {
        Sight::Unknown(String::new())
    }
}
