//! Is written data readable in the server's files?

use tithe_machine::{fault::Fault, sight::Sight};

use crate::{
    checks::{
        canary::{Canaries, Targets, key_value},
        needles::Needles,
        scan::{Kind, Places, Report, files_of, scan},
    },
    evidence::{CheckEntry, Evidence, Scene},
};

/// Writes canaries through the measured path, settles, and looks for them in the files of `places`.
///
/// Its id is `disk-canary`, or `journal-canary` where the journal is the only place: one arm can have both. On the
/// plain arm the canaries must be seen in the data files (where these are among the places), else the finding is
/// "cannot tell". A journal that settling empties belongs into the same check as the data.
pub struct DiskCanary {
    places: Places,
    targets: Targets,
}

impl DiskCanary {
    /// A check of `places` for `targets`.
    pub fn new(places: Places, targets: Targets) -> Self {
        Self { places, targets }
    }

    fn conclude(&self, report: &Report, canaries: usize, guarded: bool) -> Sight {
        if report.total().hits() > 0 {
            let found = report.describe_found();
            if !guarded && self.places.data && !report.found_in(Kind::Data) {
                return Sight::Unknown(format!("not in the data files; {found}"));
            }
            return Sight::Exposed(found);
        }
        match report.unreadable.first() {
            Some(file) => Sight::Unknown(format!("cannot read {file}")),
            None if report.bytes == 0 => Sight::Unknown("nothing stands in these files yet".to_owned()),
            None if canaries == 0 => Sight::Unknown("the share of fields rounds to none".to_owned()),
            None => Sight::Protected(format!("none of {canaries} canaries in {}", report.extent())),
        }
    }
}

impl Evidence for DiskCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim(if self.places == Places::JOURNAL { "journal-canary" } else { "disk-canary" })
    }

    fn claim(&self) -> String {
        format!("no {} is readable in the {}", self.targets.noun(), self.places.noun())
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        if files_of(scene.server, self.places).is_empty() {
            return Ok(Sight::Unknown("no such file of the server can be seen from here".to_owned()));
        }
        let canaries = Canaries::new(scene, self.id());
        let mut session = key_value(scene.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        drop(session);
        scene.database.settle(scene.server, scene.setup, scene.table)?;
        let written = scene.database.write_out(scene.server, scene.setup, scene.table);
        let tokens = canaries.tokens(&self.targets);
        let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)));
        let report = scan(&needles, files_of(scene.server, self.places));
        Ok(match (self.conclude(&report, tokens.len(), scene.guarded), written) {
            // What was found was written. What was not found may not have been.
            (exposed @ Sight::Exposed(_), _) => exposed,
            (_, Err(fault)) => Sight::Unknown(format!("the server was not made to write the table: {fault}")),
            (sight, Ok(())) => sight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_nothing_yet_show_nothing() {
        let check = DiskCanary::new(Places::DATA, Targets::Everything);
        let sight = |bytes| check.conclude(&Report { files: 1, bytes, ..Report::default() }, 9, true);
        assert_eq!(sight(0), Sight::Unknown("nothing stands in these files yet".to_owned()));
        assert_eq!(sight(4096), Sight::Protected("none of 9 canaries in 1 file, 4.1 kB".to_owned()));
    }
}
