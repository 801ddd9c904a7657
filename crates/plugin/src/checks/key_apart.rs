//! Is the data key kept out of the server's folder?

use std::fs;

use tithe_machine::{fault::Fault, observation::Observation};

use crate::{
    checks::{
        canary::{Source, TOKEN_BYTES},
        needles::Needles,
        scan::{Places, Report, files_below, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// Searches for the arm's data keys (of encryption at rest, of columns) in every file of the server and of its folder,
/// raw, in hexadecimal and in base64. Its control is a marker file in that folder, which it must find. Id `key-apart`.
///
/// It does not search memory, swap or core files.
pub struct KeyApart;

impl Check for KeyApart {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("key-apart").own_control()
    }

    fn claim(&self) -> String {
        "no file of the server or of its folder holds the data key".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let setup = context.setup;
        let at_rest = setup.at_rest.as_ref().map(|at_rest| &at_rest.key);
        let columns = setup.columns.as_ref().map(|columns| &columns.key);
        let keys = [at_rest, columns, Some(&setup.credentials.key), Some(&setup.credentials.second_key)];
        let keys = keys.into_iter().flatten().map(|key| ("data key", key.expose()));
        let token = Source::new(context, self.id()).text(TOKEN_BYTES);
        let needles = Needles::new(keys.chain([("marker", token.as_slice())]));

        let marker = context.server.folder.join(format!("tithe-marker-{:016x}", context.nonce));
        fs::write(&marker, &token).map_err(|error| Fault::machine("cannot write the marker file", error))?;
        let mut files = files_below(&context.server.folder);
        let elsewhere = files_of(context.server, Places::ALL);
        files.extend(elsewhere.into_iter().filter(|file| !file.path.starts_with(&context.server.folder)));
        let mut report = scan(&needles, files);
        fs::remove_file(&marker).map_err(|error| Fault::machine("cannot remove the marker file", error))?;

        let control = report.total().distinct("marker") == 1;
        report.found.retain(|(file, _)| file.path != marker);
        Ok(judged(&report, control))
    }
}

/// What a search for keys shows whose `control` was found or not.
fn judged(report: &Report, control: bool) -> Observation {
    if report.total().distinct("data key") > 0 {
        Observation::Exposed(report.describe_found())
    } else if let Some(file) = report.unreadable.first() {
        Observation::Unknown(format!("cannot read {file}"))
    } else if control {
        Observation::Protected(format!("no data key in {}; the marker was found", report.extent()))
    } else {
        Observation::Unknown("the marker file was not found".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tithe_machine::secret::Secret;

    use super::*;
    use crate::{
        checks::scan::{File, FileKind},
        setup::{AtRest, Columns, Setup},
        simulated::test_bench::{Bench, test_folder},
    };

    #[test]
    fn each_key_of_an_arm_is_found_in_each_file_of_its_server() {
        let mut bench = Bench::plain();
        bench.setup.at_rest = Some(AtRest { cipher: String::new(), key: Secret::random(32) });
        bench.setup.columns = Some(Columns::of_share(1.0, Secret::random(32)));
        let elsewhere = test_folder();
        let [data, journal, log] = ["data", "journal", "log"].map(|name| elsewhere.join(name));
        bench.server.paths.data.push(data.clone());
        bench.server.paths.journal.push(journal.clone());
        bench.server.paths.logs.push(log.clone());
        let own = ["beside", "data/below"].map(|name| bench.server.folder.join(name));
        let keys: [fn(&Setup) -> &Secret; 4] = [
            |setup| &setup.at_rest.as_ref().expect("it is set").key,
            |setup| &setup.columns.as_ref().expect("they are set").key,
            |setup| &setup.credentials.key,
            |setup| &setup.credentials.second_key,
        ];
        for place in own.iter().chain([&data, &journal, &log]) {
            for key in keys {
                fs::write(place, key(&bench.setup).expose_hex()).expect("written");
                let seen = bench.observe(&KeyApart);
                assert!(matches!(seen, Observation::Exposed(_)), "{}: {seen:?}", place.display());
            }
            fs::write(place, Secret::random(32).expose_hex()).expect("written");
            let seen = bench.observe(&KeyApart);
            assert!(matches!(seen, Observation::Protected(_)), "a stranger's key in {}: {seen:?}", place.display());
        }
        fs::remove_dir_all(elsewhere).expect("removed");
    }

    #[test]
    fn a_search_without_its_control_or_without_a_file_finds_no_key_and_proves_nothing() {
        let key = b"a key that is found";
        let tally = Needles::new([("data key", &key[..])]).count(key);
        let file = File { path: "a".into(), name: "a".to_owned(), kind: FileKind::Data };
        for control in [false, true] {
            for unreadable in [Vec::new(), vec!["b: no".to_owned()]] {
                let is_whole = unreadable.is_empty();
                let none = Report { files: 2, bytes: 24, unreadable, ..Report::default() };
                let expected = match (is_whole, control) {
                    (false, _) => Observation::Unknown("cannot read b: no".to_owned()),
                    (true, false) => Observation::Unknown("the marker file was not found".to_owned()),
                    (true, true) => {
                        Observation::Protected("no data key in 2 files, 24 B; the marker was found".to_owned())
                    }
                };
                assert_eq!(judged(&none, control), expected);
                let found = Report { found: vec![(file.clone(), tally.clone())], ..none };
                let words = "1 data key found once, in a (1)".to_owned();
                assert_eq!(judged(&found, control), Observation::Exposed(words));
            }
        }
    }
}
