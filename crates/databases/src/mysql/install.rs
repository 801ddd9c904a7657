//! Finds MySQL's server on this machine: in the user's folders, in `PATH`, and where packages and `tithe get mysql` put
//! it. The only command run here is `mysqld --version`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::{process, tools::folders_of_path},
};

use super::get::DOWNLOAD;
use crate::mysql_family::PLUGINS;

/// Oldest version that Tithe starts: the first with a redo log of one size (`innodb_redo_log_capacity`).
const OLDEST: Version = (8, 0, 30);

/// Major, minor, patch.
type Version = (u32, u32, u32);

/// The component that keeps keys in a file, in the folder of plugins.
pub const KEYRING: &str = "component_keyring_file";

const FOLDERS: [&str; 7] = [
    "/usr/sbin",
    "/usr/bin",
    "/usr/libexec",
    "/usr/local/mysql/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/homebrew/opt/mysql/bin",
];

/// Searches the folders of `search`, `PATH`, and the folders of packages and downloads; the first that is new enough
/// wins.
///
/// # Errors
/// Every place that was checked, when none has a server.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin"), folder.join("sbin")]);
    let downloaded = DOWNLOAD.downloaded().into_iter().map(|folder| folder.join("bin"));
    let folders = named.chain(folders_of_path()).chain(FOLDERS.map(PathBuf::from)).chain(downloaded);
    let mut looked_in = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for folder in folders.filter(|folder| seen.insert(folder.clone())) {
        match probe(&folder) {
            Ok(install) => return Ok(install),
            Err(why) => looked_in.push(format!("{}{why}", folder.display())),
        }
    }
    let (major, minor, patch) = OLDEST;
    Err(Missing {
        what: format!("MySQL {major}.{minor}.{patch} or newer (the program mysqld)"),
        looked_in,
        how_to_install: vec![
            "Linux on x86-64: tithe get mysql (downloads 553 MB from Maven Central; needs mvn and java, libaio1 and libnuma1)"
                .to_owned(),
            "Ubuntu: apt-get install mysql-server".to_owned(),
            "Debian, Fedora, RHEL: the packages of https://dev.mysql.com/downloads/repo/".to_owned(),
            "macOS: brew install mysql".to_owned(),
        ],
    })
}

/// The installation with the programs in `folder`, or the text to show behind the folder's name.
fn probe(folder: &Path) -> Result<Install, String> {
    let server = folder.join("mysqld");
    if !server.is_file() {
        return Err(String::new());
    }
    let output = process::version(&server, "--version");
    let output = output.map_err(|fault| format!(" has a mysqld that does not start: {fault}"))?;
    let first = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().trim().to_owned();
    let said = first(&output.stdout);
    if said.contains("MariaDB") {
        return Err(format!(" has MariaDB under this name: {said}"));
    }
    // A missing library is reported on standard error.
    let Some(numbers) = version_of(&said) else {
        return Err(format!(" has a mysqld that does not report its version: {said}{}", first(&output.stderr)));
    };
    if numbers < OLDEST {
        return Err(format!(" has {said}, which is too old"));
    }
    // The output begins with the path of the program.
    let version = said.split_once("Ver ").map_or(said.clone(), |(_, rest)| format!("mysqld  Ver {rest}"));
    let base = folder.parent().unwrap_or(folder);
    let libraries = ["lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib/x86_64-linux-gnu/mysql/plugin"];
    let plugins = libraries.iter().map(|name| base.join(name)).find(|folder| folder.is_dir());
    let facts = plugins.map(|folder| (PLUGINS.to_owned(), folder.display().to_string()));
    Ok(Install { programs: folder.to_owned(), version, facts: facts.into_iter().collect::<BTreeMap<_, _>>() })
}

/// The version in `/usr/sbin/mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)`.
pub fn version_of(said: &str) -> Option<Version> {
    let (_, rest) = said.split_once(" Ver ")?;
    let mut numbers = rest.split(|letter: char| !letter.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// Reports what an installation lacks for keys in a file.
///
/// # Errors
/// The searched places of the component, and the packages that have it.
pub fn needs_keyring(install: &Install) -> Result<(), Missing> {
    let file = install.facts.get(PLUGINS).map(|folder| Path::new(folder).join(format!("{KEYRING}.so")));
    if file.as_ref().is_some_and(|file| file.is_file()) {
        return Ok(());
    }
    let place = file.map_or_else(
        || format!("no folder of plugins next to {}", install.programs.display()),
        |file| file.display().to_string(),
    );
    Err(Missing {
        what: format!("the keyring component {KEYRING} of MySQL, which this build lacks"),
        looked_in: vec![place],
        how_to_install: vec![
            "MySQL Community Server of Oracle's packages has it, and so has what tithe get mysql downloads".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        for (said, version) in [
            ("/opt/bin/mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)", Some((8, 0, 33))),
            ("mysqld  Ver 8.0.43-0ubuntu0.24.04.1 for Linux on x86_64 ((Ubuntu))", Some((8, 0, 43))),
            ("mysqld  Ver 8.4.6-6 for Linux on x86_64 (Percona Server (GPL), Release 6)", Some((8, 4, 6))),
            ("mysqld  Ver 8", None),
            ("", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_words_about_a_version_make_it_panic(said in ".{0,60}") {
            let _ = version_of(&said);
            let _ = version_of(&format!(" Ver {said}"));
        }
    }

    /// A folder with a mysqld that prints `said`. A shell writes it: a child that another test forks meanwhile would
    /// hold a copy of the descriptor, and the kernel executes no file that is open for writing (ETXTBSY).
    fn saying(said: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("mysqld").display().to_string();
        let text = format!("#!/bin/sh\necho '{said}'\n");
        let script = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let written = process::ask(Path::new("/bin/sh"), &["-c", script, "sh", &text, &program]);
        assert!(written.is_ok_and(|output| output.status.success()), "{program}");
        folder
    }

    #[test]
    fn what_is_no_mysql_of_this_age_is_told() {
        let why = |said| probe(saying(said).path()).expect_err("no MySQL");
        let mariadb = "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)";
        assert_eq!(why(mariadb), format!(" has MariaDB under this name: {mariadb}"));
        let old = "mysqld  Ver 8.0.29 for Linux on x86_64 (MySQL Community Server - GPL)";
        assert_eq!(why(old), format!(" has {old}, which is too old"));
        assert_eq!(why("nothing"), " has a mysqld that does not report its version: nothing");
    }

    #[test]
    fn a_build_without_the_keyring_component_is_told_what_has_it() {
        let install = Install { programs: "/usr/sbin".into(), ..Install::default() };
        let missing = needs_keyring(&install).expect_err("nothing there");
        assert_eq!(missing.what, "the keyring component component_keyring_file of MySQL, which this build lacks");
        assert_eq!(missing.looked_in, ["no folder of plugins next to /usr/sbin"]);
    }
}
