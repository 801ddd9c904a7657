//! Is written data readable in the server's files?

use tithe_machine::{fault::Fault, observation::Observation};

use crate::{
    checks::{
        canary::{Canaries, Targets, key_value},
        scan::{FileKind, Places, Report, search, shows, unseen},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// Writes canaries through the measured path, settles, and searches for them in the files of `places`.
///
/// Its id is `disk-canary`, or `journal-canary` if the journal is the only place: one arm can have both. With
/// [`DiskCanary::removed`] it is `removed-canary`. On the plain arm the canaries must be found in the data files (if
/// these are among the places), else the finding is "cannot tell". If settling empties a journal, check it together
/// with the data.
pub struct DiskCanary {
    places: Places,
    targets: Targets,
    /// The canaries are removed before they are searched for.
    removed: bool,
}

impl DiskCanary {
    /// A check of `places` for `targets`.
    pub fn new(places: Places, targets: Targets) -> Self {
        Self { places, targets, removed: false }
    }

    /// A check of `places` for any data of rows that were changed and removed.
    pub fn removed(places: Places) -> Self {
        Self { places, targets: Targets::Everything, removed: true }
    }

    fn conclude(&self, report: &Report, canaries: usize, protected: bool) -> Observation {
        if report.total().hits() > 0 {
            let found = report.describe_found();
            if !protected && self.places.data && !report.found_in(FileKind::Data) {
                return Observation::Unknown(format!("not in the data files; {found}"));
            }
            return Observation::Exposed(found);
        }
        match report.unreadable.first() {
            Some(file) => Observation::Unknown(format!("cannot read {file}")),
            None if report.bytes == 0 => Observation::Unknown("nothing is in these files yet".to_owned()),
            None if canaries == 0 => Observation::Unknown("the share of fields rounds to none".to_owned()),
            None => Observation::Protected(format!("none of {canaries} canaries in {}", report.extent())),
        }
    }
}

impl Check for DiskCanary {
    fn entry(&self) -> CheckEntry {
        if self.removed {
            return CheckEntry::claim("removed-canary");
        }
        CheckEntry::claim(if self.places == Places::JOURNAL { "journal-canary" } else { "disk-canary" })
    }

    fn claim(&self) -> String {
        let of = if self.removed { " of removed rows" } else { "" };
        format!("no {}{of} is readable in the {}", self.targets.noun(), self.places.noun())
    }

    fn looks_into_files(&self) -> bool {
        true
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if !shows(context.server, self.places) {
            return Ok(unseen(context.server));
        }
        let canaries = Canaries::new(context, self.id());
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        if self.removed {
            canaries.remove(session.as_mut())?;
        }
        drop(session);
        // Settling may rewrite a table, which on any arm deletes the remains of removed rows.
        if !self.removed {
            context.database.quiesce(context.server, context.setup, context.table)?;
        }
        let written = context.database.write_out(context.server, context.setup, context.table);
        let tokens = canaries.tokens(&self.targets);
        let needles: Vec<_> = tokens.iter().map(|token| ("canary", *token)).collect();
        let report = search(context.server, self.places, &needles)?;
        Ok(match (self.conclude(&report, tokens.len(), context.protected), written) {
            // Found data were written. Data that were not found may not have been written.
            (exposed @ Observation::Exposed(_), _) => exposed,
            (_, Err(fault)) => {
                Observation::Unknown(format!("the server could not be made to write the table: {fault}"))
            }
            (observation, Ok(())) => observation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{needles::Needles, scan::File};

    #[test]
    fn files_that_hold_nothing_yet_show_nothing() {
        let check = DiskCanary::new(Places::DATA, Targets::Everything);
        let observation = |bytes| check.conclude(&Report { files: 1, bytes, ..Report::default() }, 9, true);
        assert_eq!(observation(0), Observation::Unknown("nothing is in these files yet".to_owned()));
        assert_eq!(observation(4096), Observation::Protected("none of 9 canaries in 1 file, 4.1 kB".to_owned()));
        let without_canaries = check.conclude(&Report { files: 1, bytes: 4096, ..Report::default() }, 0, true);
        assert_eq!(without_canaries, Observation::Unknown("the share of fields rounds to none".to_owned()));
        for bytes in [0, 4096] {
            let closed = Report { bytes, unreadable: vec!["base/1: no".to_owned()], ..Report::default() };
            let unknown = Observation::Unknown("cannot read base/1: no".to_owned());
            assert_eq!(check.conclude(&closed, 9, true), unknown, "{bytes}");
        }
    }

    #[test]
    fn what_is_found_is_exposed_unless_a_control_lacks_it_in_the_data_files() {
        let canary = b"what a canary is";
        let found = "1 canary found once, in base/1 (1)";
        for kind in [FileKind::Data, FileKind::Journal, FileKind::Log] {
            let file = File { path: "base/1".into(), name: "base/1".to_owned(), kind };
            let tally = Needles::new([("canary", &canary[..])]).count(canary);
            let report = Report { files: 1, bytes: 4096, found: vec![(file, tally)], ..Report::default() };
            for places in [Places::DATA, Places::JOURNAL, Places::LOGS, Places::FILES, Places::ALL] {
                for protected in [false, true] {
                    let expected = if !protected && places.data && kind != FileKind::Data {
                        Observation::Unknown(format!("not in the data files; {found}"))
                    } else {
                        Observation::Exposed(found.to_owned())
                    };
                    let seen = DiskCanary::new(places, Targets::Everything).conclude(&report, 9, protected);
                    assert_eq!(seen, expected, "{places:?} {kind:?} {protected}");
                }
            }
        }
    }

    #[test]
    fn checks_of_different_places_have_names_of_their_own() {
        let told = |check: DiskCanary| format!("{}: {}", check.id(), check.claim());
        let of = |places: Places| told(DiskCanary::new(places, Targets::Everything));
        assert_eq!(of(Places::DATA), "disk-canary: no key or field value is readable in the data files");
        assert_eq!(of(Places::JOURNAL), "journal-canary: no key or field value is readable in the journal");
        assert_eq!(of(Places::FILES), "disk-canary: no key or field value is readable in the data files and journal");
        let removed = "removed-canary: no key or field value of removed rows is readable in the journal";
        assert_eq!(told(DiskCanary::removed(Places::JOURNAL)), removed);
    }
}
