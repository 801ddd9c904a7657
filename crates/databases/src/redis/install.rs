//! Finds the server program of Redis or Valkey on this machine: in the user's folders, in `PATH`, and where packages
//! put it. The only command run here is `--version`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

/// Oldest major version that is launched: the first with TLS and accounts.
pub const OLDEST: u32 = 6;

/// Name under which [`Install::facts`] holds the name of the server program.
pub const PROGRAM: &str = "program";

/// Name under which [`Install::facts`] says whether the program was built with TLS: `yes` or `no`.
pub const TLS: &str = "tls";

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];
const FOLDERS: [&str; 5] = ["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin", "/snap/bin"];

/// A setting that only a program with TLS knows; it stands in the program as text.
const TLS_SETTING: &[u8] = b"tls-auth-clients";

/// Looks in the folders of `search`, then in `PATH` and where packages install to; the first that is new enough wins.
///
/// # Errors
/// Every place that was looked at, when none has a server.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin")]);
    let folders: Vec<PathBuf> = named.chain(std::env::split_paths(&path)).chain(FOLDERS.map(PathBuf::from)).collect();
    let mut looked_in = Vec::new();
    for folder in &folders {
        for program in PROGRAMS {
            if let Some(install) = probe(folder, program, &mut looked_in) {
                return Ok(install);
            }
        }
        looked_in.push(folder.display().to_string());
    }
    let mut seen = std::collections::BTreeSet::new();
    looked_in.retain(|place| seen.insert(place.clone()));
    Err(Missing {
        what: format!("Redis {OLDEST} or newer, or Valkey (the program redis-server or valkey-server)"),
        looked_in,
        how_to_install: vec![
            "Debian, Ubuntu: apt-get install redis-server".to_owned(),
            "Fedora, RHEL: dnf install valkey".to_owned(),
            "macOS: brew install redis".to_owned(),
        ],
    })
}

fn probe(folder: &Path, program: &str, looked_in: &mut Vec<String>) -> Option<Install> {
    let file = folder.join(program);
    if !file.is_file() {
        return None;
    }
    let output = process::version(&file, "--version").ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (name, version) = version_of(&said)?;
    if version.0 < OLDEST {
        looked_in.push(format!("{} has {name} {}.{}, which is too old", folder.display(), version.0, version.1));
        return None;
    }
    let tls =
        std::fs::read(&file).is_ok_and(|bytes| bytes.windows(TLS_SETTING.len()).any(|window| window == TLS_SETTING));
    let facts = [(PROGRAM, program), (TLS, if tls { "yes" } else { "no" })];
    Some(Install {
        // Not the real path behind links: one program of several names looks at its own name to know what it is.
        programs: folder.to_owned(),
        version: said,
        facts: BTreeMap::from(facts.map(|(name, value)| (name.to_owned(), value.to_owned()))),
    })
}

/// Product and version in `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…`.
fn version_of(said: &str) -> Option<(&str, (u32, u32))> {
    let (name, rest) = said.split_once(" server v=")?;
    let mut numbers = rest.split([' ', '.']).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    Some((name, (major, minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        for (said, version) in [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=a", Some(("Redis", (7, 0)))),
            ("Valkey server v=8.1.3 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=b", Some(("Valkey", (8, 1)))),
            ("Redis server version 2.0", None),
            ("", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }
}
