//! Finds `mongod` on this machine: in the user's folders, in `PATH`, and where packages put it. The only command run
//! here is `--version`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

/// Oldest version that the driver speaks to.
pub const OLDEST: (u32, u32) = (4, 2);
/// Name under which [`Install::facts`] says whether the server has an audit log and an encrypted storage engine: `yes`
/// or `no`. MongoDB Enterprise and Percona Server have both, MongoDB Community neither.
pub const ENTERPRISE: &str = "enterprise";

const PROGRAM: &str = "mongod";
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/opt/mongodb/bin", "/opt/homebrew/bin"];

/// Looks in the folders of `search`, then in `PATH` and where packages install to; the first that is new enough wins.
///
/// # Errors
/// Every place that was checked, when none has a server.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin")]);
    let folders: Vec<PathBuf> = named.chain(std::env::split_paths(&path)).chain(FOLDERS.map(PathBuf::from)).collect();
    let mut looked_in: Vec<String> = Vec::new();
    for folder in &folders {
        match probe(folder) {
            Some(Ok(install)) => return Ok(install),
            Some(Err(too_old)) => looked_in.push(format!("{} has {too_old}, which is too old", folder.display())),
            None => looked_in.push(folder.display().to_string()),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    looked_in.retain(|place| seen.insert(place.clone()));
    Err(Missing {
        what: format!("MongoDB {}.{} or newer, or Percona Server for MongoDB (the program mongod)", OLDEST.0, OLDEST.1),
        looked_in,
        how_to_install: vec![
            "MongoDB: packages of repo.mongodb.org (mongodb-org-server) or repo.mongodb.com (mongodb-enterprise-server)"
                .to_owned(),
            "Percona Server for MongoDB: packages of repo.percona.com (percona-server-mongodb-server)".to_owned(),
            "a server that runs elsewhere is attached to by its URL (mongodb://)".to_owned(),
        ],
    })
}

/// The installation in `folder`, or what is too old there.
fn probe(folder: &Path) -> Option<Result<Install, String>> {
    let file = folder.join(PROGRAM);
    if !file.is_file() {
        return None;
    }
    let output = process::version(&file, "--version").ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = said.lines().next().unwrap_or_default().to_owned();
    if version_of(&first)? < OLDEST {
        return Some(Err(first));
    }
    let enterprise = if is_enterprise(&said) { "yes" } else { "no" };
    Some(Ok(Install {
        programs: folder.to_owned(),
        version: first,
        facts: BTreeMap::from([(ENTERPRISE.to_owned(), enterprise.to_owned())]),
    }))
}

/// The version in `db version v7.0.5` or `db version v6.0.4-3`.
fn version_of(first_line: &str) -> Option<(u32, u32)> {
    let mut numbers = first_line.strip_prefix("db version v")?.split(['.', '-']).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    Some((major, minor))
}

/// MongoDB Enterprise names its module, as `modules: enterprise` or in JSON; Percona's server names itself.
fn is_enterprise(said: &str) -> bool {
    said.lines().any(|line| line.contains("enterprise") || line.contains("psmdb") || line.contains("Percona"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        for (said, version) in [
            ("db version v7.0.5", Some((7, 0))),
            ("db version v4.2.25", Some((4, 2))),
            ("db version v6.0.4-3", Some((6, 0))),
            ("MongoDB shell version v4.4", None),
            ("", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }

    #[test]
    fn the_edition_is_read_from_the_modules() {
        assert!(is_enterprise("db version v4.2.25\nmodules: enterprise \n"));
        assert!(is_enterprise("db version v7.0.5\n    \"modules\": [\n        \"enterprise\"\n    ],"));
        assert!(is_enterprise("db version v6.0.4-3\n    \"psmdbVersion\": \"6.0.4-3\","));
        assert!(!is_enterprise("db version v7.0.5\n    \"modules\": [],"));
    }
}
