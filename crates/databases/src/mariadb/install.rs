//! Finds MariaDB's server programs on this machine: in the user's folders, in `PATH`, and where packages and `tithe get
//! mariadb` put them. The only command run here is `mariadbd --version`.

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

/// Oldest version that Tithe starts: the oldest long-term release that was maintained when this was written.
const OLDEST: (u32, u32) = (10, 6);

/// Name under which [`Install::facts`] holds the program that creates a data folder.
pub const INSTALLER: &str = "installer";

const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Searches the folders of `search`, then `PATH`, and the folders of packages and downloads; the first that is new
/// enough wins.
///
/// # Errors
/// Every place that was checked, when none has a server with its installer.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let named = search.folders.iter().flat_map(|folder| [folder.clone(), folder.join("bin"), folder.join("sbin")]);
    let downloaded = DOWNLOAD.downloaded().into_iter().map(|folder| folder.join("bin"));
    let packaged = folders_of_path().into_iter().chain(FOLDERS.map(PathBuf::from));
    let folders: Vec<PathBuf> = named.chain(packaged).chain(downloaded).collect();
    let mut looked_in = Vec::new();
    for folder in &folders {
        if let Some(install) = probe(folder, &mut looked_in) {
            return Ok(install);
        }
        looked_in.push(folder.display().to_string());
    }
    let mut seen = std::collections::BTreeSet::new();
    looked_in.retain(|place| seen.insert(place.clone()));
    Err(Missing {
        what: format!("MariaDB {}.{} or newer (the programs mariadbd and mariadb-install-db)", OLDEST.0, OLDEST.1),
        looked_in,
        how_to_install: vec![
            "Debian, Ubuntu: apt-get install mariadb-server".to_owned(),
            "Fedora, RHEL: dnf install mariadb-server".to_owned(),
            "macOS: brew install mariadb".to_owned(),
            "Linux on x86-64, without plugins: tithe get mariadb (downloads 149 MB from Maven Central; needs mvn and java)"
                .to_owned(),
        ],
    })
}

fn probe(folder: &Path, looked_in: &mut Vec<String>) -> Option<Install> {
    let server = folder.join("mariadbd");
    if !server.is_file() {
        return None;
    }
    let output = process::version(&server, "--version").ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version_of(&said)?;
    if version < OLDEST {
        looked_in.push(format!("{} has {said}, which is too old", folder.display()));
        return None;
    }
    let base = folder.parent()?;
    let Some(installer) = first(base, &["bin", "scripts", "sbin"], |folder| folder.join("mariadb-install-db")) else {
        looked_in.push(format!(
            "{} has mariadbd, but no mariadb-install-db is below {}",
            folder.display(),
            base.display()
        ));
        return None;
    };
    let mut facts = BTreeMap::from([(INSTALLER.to_owned(), installer.display().to_string())]);
    let libraries =
        ["lib/mysql/plugin", "lib64/mariadb/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin", "lib/plugin"];
    if let Some(plugins) = first(base, &libraries, Path::to_owned) {
        facts.insert(PLUGINS.to_owned(), plugins.display().to_string());
    }
    Some(Install { programs: folder.to_owned(), version: said, facts })
}

/// The first of the folders `below` that contains `file`.
fn first(base: &Path, below: &[&str], file: impl Fn(&Path) -> PathBuf) -> Option<PathBuf> {
    below.iter().map(|name| file(&base.join(name))).find(|path| path.exists())
}

/// The version in `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`.
fn version_of(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once(" Ver ")?;
    let number = rest.split_once("-MariaDB")?.0;
    let mut numbers = number.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

/// Reports the plugin `plugin` if the installation lacks it; its Debian package is `package`.
///
/// # Errors
/// The searched places, and how to install it.
pub fn needs_plugin(install: &Install, plugin: &str, package: &str) -> Result<(), Missing> {
    let folder = install.facts.get(PLUGINS).map(Path::new);
    let file = folder.map(|folder| folder.join(format!("{plugin}.so")));
    if file.as_ref().is_some_and(|file| file.is_file()) {
        return Ok(());
    }
    let place = file.map_or_else(
        || format!("no folder of plugins next to {}", install.programs.display()),
        |file| file.display().to_string(),
    );
    Err(Missing {
        what: format!("the plugin {plugin} of MariaDB"),
        looked_in: vec![place],
        how_to_install: vec![format!("Debian, Ubuntu: apt-get install {package}")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_program_says_them() {
        for (said, version) in [
            ("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", Some((10, 11))),
            ("mariadbd from 11.8.3-MariaDB, client 15.2 for Linux", None),
            ("mysqld  Ver 8.0.43 for Linux on x86_64 (MySQL Community Server - GPL)", None),
            ("", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }

    #[test]
    fn a_missing_plugin_is_named_with_its_package() {
        let install = Install { programs: "/usr/sbin".into(), ..Install::default() };
        let missing = needs_plugin(&install, "server_audit", "mariadb-server").expect_err("nothing there");
        assert_eq!(missing.what, "the plugin server_audit of MariaDB");
        assert_eq!(missing.how_to_install, ["Debian, Ubuntu: apt-get install mariadb-server"]);
    }
}
