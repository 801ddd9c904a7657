//! Finds `mongod` on this machine. The only command run here is `--version`.

use std::{collections::BTreeMap, path::Path};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

use crate::programs::Programs;

/// Oldest version that the driver supports.
pub const OLDEST: (u32, u32) = (4, 2);
/// Name under which [`Install::facts`] records whether the server has an audit log and an encrypted storage engine:
/// `yes` or `no`. MongoDB Enterprise and Percona Server have both, MongoDB Community neither.
pub const ENTERPRISE: &str = "enterprise";

const PROGRAMS: Programs = Programs {
    names: &["mongod"],
    folders: &["/usr/bin", "/usr/local/bin", "/opt/mongodb/bin", "/opt/homebrew/bin"],
    what: "MongoDB 4.2 or newer, or Percona Server for MongoDB (the program mongod)",
    how_to_install: &[
        "MongoDB: packages of repo.mongodb.org (mongodb-org-server) or repo.mongodb.com (mongodb-enterprise-server)",
        "Percona Server for MongoDB: packages of repo.percona.com (percona-server-mongodb-server)",
        "a server that runs elsewhere is attached to by its URL (mongodb://)",
    ],
    probe,
};

/// Looks for it.
///
/// # Errors
/// As [`Programs::find`].
pub fn find(search: &Search) -> Result<Install, Missing> {
    PROGRAMS.find(search, Vec::new())
}

/// The installation in `folder`, or the version there that is too old.
fn probe(folder: &Path, name: &str) -> Option<Result<Install, String>> {
    let file = folder.join(name);
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
