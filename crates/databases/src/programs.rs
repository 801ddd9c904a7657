//! Finds the server program of a product on this machine: in the user's folders, in `PATH`, in the folders of packages,
//! and among downloads. The first that is new enough wins.

use std::{collections::BTreeSet, path::Path, path::PathBuf};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::tools::folders_of_path,
};

/// The program to find, and where packages install it.
pub struct Programs {
    /// Names of the program.
    pub names: &'static [&'static str],
    /// Folders that are searched in addition to those of `PATH`.
    pub folders: &'static [&'static str],
    /// What is missing if none is found, as a noun.
    pub what: &'static str,
    /// How to install it, one line per system.
    pub how_to_install: &'static [&'static str],
    /// The installation in a folder that has the program, or the version there that is too old. `None` if it is another
    /// program.
    pub probe: fn(folder: &Path, name: &'static str) -> Option<Result<Install, String>>,
}

impl Programs {
    /// Searches the folders of `search` first and those of the `downloaded` last.
    ///
    /// # Errors
    /// Every place that was checked, when none has a server.
    pub fn find(&self, search: &Search, downloaded: Vec<PathBuf>) -> Result<Install, Missing> {
        let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin")]);
        let folders = named.chain(folders_of_path()).chain(self.folders.iter().map(PathBuf::from));
        let mut looked_in = Vec::new();
        for folder in folders.chain(downloaded) {
            for name in self.names.iter().copied().filter(|name| folder.join(name).is_file()) {
                match (self.probe)(&folder, name) {
                    Some(Ok(install)) => return Ok(install),
                    Some(Err(old)) => looked_in.push(format!("{} has {old}, which is too old", folder.display())),
                    None => {}
                }
            }
            looked_in.push(folder.display().to_string());
        }
        let mut seen = BTreeSet::new();
        looked_in.retain(|place| seen.insert(place.clone()));
        let how_to_install = self.how_to_install.iter().map(|line| (*line).to_owned()).collect();
        Err(Missing { what: self.what.to_owned(), looked_in, how_to_install })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_that_is_new_enough_wins_and_others_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = |name: &str| folder.path().join(name);
        for name in ["old", "new", "other"] {
            std::fs::create_dir(below(name)).expect("a folder");
            std::fs::write(below(name).join("served"), name).expect("a file");
        }
        let programs = Programs {
            names: &["served"],
            folders: &[],
            what: "served 2 or newer",
            how_to_install: &["make install"],
            probe: |folder, name| match std::fs::read_to_string(folder.join(name)).ok()?.as_str() {
                "new" => Some(Ok(Install { programs: folder.to_owned(), ..Install::default() })),
                "old" => Some(Err("served 1".to_owned())),
                _ => None,
            },
        };
        let search = |names: &[&str]| Search { folders: names.iter().map(|name| below(name)).collect() };
        let found = programs.find(&search(&["other", "old", "new"]), Vec::new()).expect("the new one");
        assert_eq!(found.programs, below("new"));
        let missing = programs.find(&search(&["other"]), vec![below("old"), below("old")]).expect_err("none");
        let old = format!("{} has served 1, which is too old", below("old").display());
        assert_eq!(missing.looked_in.iter().filter(|place| **place == old).count(), 1, "{missing:?}");
        assert_eq!(
            (missing.what.as_str(), missing.how_to_install),
            ("served 2 or newer", vec!["make install".to_owned()])
        );
    }
}
