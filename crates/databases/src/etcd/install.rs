//! Finds the program of etcd on this machine. The only commands run here are `--version` and `--help`.

use std::{collections::BTreeMap, path::Path};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

use crate::programs::Programs;

/// Oldest version that Tithe starts: the oldest that was tested.
const OLDEST: (u32, u32) = (3, 4);

/// Name under which [`Install::facts`] records whether the server has an option for its lowest version of TLS: `yes` or
/// `no`.
pub const LOWEST_TLS: &str = "tls-min-version";

const PROGRAMS: Programs = Programs {
    names: &["etcd"],
    folders: &["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/etcd", "/opt/homebrew/bin"],
    what: "etcd 3.4 or newer (the program etcd)",
    how_to_install: &[
        "Debian, Ubuntu: apt-get install etcd-server",
        "Fedora, RHEL: dnf install etcd",
        "macOS: brew install etcd",
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

fn probe(folder: &Path, name: &str) -> Option<Result<Install, String>> {
    let file = folder.join(name);
    let said = process::version(&file, "--version").ok()?;
    let said = String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().trim().to_owned();
    if version_of(&said)? < OLDEST {
        return Some(Err(said));
    }
    let help = process::ask(&file, &["--help"]).ok()?;
    let help = [help.stdout, help.stderr].concat();
    let lowest = if String::from_utf8_lossy(&help).contains("--tls-min-version") { "yes" } else { "no" };
    Some(Ok(Install {
        programs: folder.to_owned(),
        version: said,
        facts: BTreeMap::from([(LOWEST_TLS.to_owned(), lowest.to_owned())]),
    }))
}

/// Major and minor number in `etcd Version: 3.4.23`.
fn version_of(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("etcd Version: ")?.split('.').map(str::parse);
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
        assert_eq!(version_of("etcd Version: 3.4.23"), Some((3, 4)));
        assert_eq!(version_of("etcd Version: 3.6.0-rc.1"), Some((3, 6)));
        assert_eq!(version_of("etcdctl version: 3.4.23"), None);
        assert_eq!(version_of("etcd Version: x.1"), None);
    }
}
