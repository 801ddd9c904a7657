//! Finds the program of memcached on this machine: in the user's folders, in `PATH`, and where packages put it. The
//! only commands run here are `-V` and `-h`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

/// Oldest version that is launched: the first series with TLS and logins in the text protocol that are not
/// experimental builds.
const OLDEST: (u32, u32) = (1, 6);

/// Name under which [`Install::facts`] says whether the program was built with TLS: `yes` or `no`.
pub const TLS: &str = "tls";

const PROGRAM: &str = "memcached";
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin"];

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
        if let Some(install) = probe(folder, &mut looked_in) {
            return Ok(install);
        }
        let place = folder.display().to_string();
        if !looked_in.contains(&place) {
            looked_in.push(place);
        }
    }
    Err(Missing {
        what: format!("memcached {}.{} or newer (the program {PROGRAM})", OLDEST.0, OLDEST.1),
        looked_in,
        how_to_install: vec![
            "Debian, Ubuntu: apt-get install memcached".to_owned(),
            "Fedora, RHEL: dnf install memcached".to_owned(),
            "macOS: brew install memcached".to_owned(),
        ],
    })
}

fn probe(folder: &Path, looked_in: &mut Vec<String>) -> Option<Install> {
    let file = folder.join(PROGRAM);
    if !file.is_file() {
        return None;
    }
    let said = process::version(&file, "-V").ok()?;
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    let version = version_of(&said)?;
    if version < OLDEST {
        looked_in.push(format!("{} has {said}, which is too old", folder.display()));
        return None;
    }
    let help = process::ask(&file, &["-h"]).ok()?;
    let tls = if String::from_utf8_lossy(&help.stdout).contains("--enable-ssl") { "yes" } else { "no" };
    Some(Install {
        programs: folder.to_owned(),
        version: said,
        facts: BTreeMap::from([(TLS.to_owned(), tls.to_owned())]),
    })
}

/// Major and minor number in `memcached 1.6.18`.
fn version_of(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("memcached ")?.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        assert_eq!(version_of("memcached 1.6.18"), Some((1, 6)));
        assert_eq!(version_of("memcached 1.10.0-rc1"), Some((1, 10)));
        assert_eq!(version_of("memcached"), None);
        assert_eq!(version_of("memcached x.1"), None);
    }
}
