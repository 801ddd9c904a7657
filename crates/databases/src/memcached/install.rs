//! Finds the program of memcached on this machine. The only commands run here are `-V` and `-h`.

use std::{collections::BTreeMap, path::Path};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

use super::launch::{LONG, name_of};
use crate::programs::Programs;

/// Oldest version that is launched: the first series with TLS and logins in the text protocol that are not
/// experimental builds.
const OLDEST: (u32, u32) = (1, 6);

/// Name under which [`Install::facts`] says whether the program was built with TLS: `yes` or `no`.
pub const TLS: &str = "tls";

const PROGRAM: &str = "memcached";

const PROGRAMS: Programs = Programs {
    names: &[PROGRAM],
    folders: &["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin"],
    what: "memcached 1.6 or newer (the program memcached)",
    how_to_install: &[
        "Debian, Ubuntu: apt-get install memcached",
        "Fedora, RHEL: dnf install memcached",
        "macOS: brew install memcached",
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

/// The options that have names of their own, if the installed server knows none called `name`: it reads options before
/// it prints its version.
pub fn in_place_of(install: &Install, name: &str) -> Option<Vec<String>> {
    let name = name_of(name);
    if LONG.contains(&name.as_str()) {
        return None;
    }
    let said = process::ask(&install.programs.join(PROGRAM), &[&format!("--extended={name}=1"), "-V"]).ok()?;
    let refuses = |said: &[u8]| String::from_utf8_lossy(said).contains("Illegal suboption");
    (refuses(&said.stderr) || refuses(&said.stdout)).then(|| LONG.map(str::to_owned).to_vec())
}

fn probe(folder: &Path, name: &str) -> Option<Result<Install, String>> {
    let file = folder.join(name);
    let said = process::version(&file, "-V").ok()?;
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if version_of(&said)? < OLDEST {
        return Some(Err(said));
    }
    let help = process::ask(&file, &["-h"]).ok()?;
    let tls = if String::from_utf8_lossy(&help.stdout).contains("--enable-ssl") { "yes" } else { "no" };
    Some(Ok(Install {
        programs: folder.to_owned(),
        version: said,
        facts: BTreeMap::from([(TLS.to_owned(), tls.to_owned())]),
    }))
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
