//! Downloads DuckDB: the library inside its JDBC driver, whose C interface is complete, and its extension httpfs, by
//! which it encrypts with OpenSSL.

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// Name of the shared object.
pub const NAME: &str = "libduckdb.so";

/// Name of the extension that brings OpenSSL.
pub const HTTPFS: &str = "httpfs.duckdb_extension";

/// What `tithe get` downloads.
pub const LIBRARY: database::Download = database::Download {
    words: "DuckDB's library (MIT), from Maven Central, 85 MB, and its extension httpfs (MIT), from PyPI, 9 MB",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// DuckDB's library and the extension.
pub static DOWNLOAD: Download = Download { name: "duckdb", known: &[VERSION], mark: NAME, fetch };

const VERSION: &str = "1.5.5";

/// The library, as the driver names it.
const MEMBER: &str = "libduckdb_java.so_linux_amd64";

/// SHA-256 of the library.
const LIBRARY_HASH: &str = "37bc05562608155d9b96905e645ed807d9a9e3413572670becf43cc8c8b29e00";
/// SHA-256 of the package of the extension.
const HTTPFS_HASH: &str = "84913dbe172ccb54368de2c4a020c38ca8b0e76f99df548f7fac37934cc7826f";

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(Fault::Refused("DuckDB is downloaded for Linux on x86-64 only".to_owned()));
    }
    if version != VERSION {
        return Err(Fault::Refused(format!("the release that Tithe was tested with is DuckDB {VERSION}")));
    }
    let package = folder.join("package");
    let failed = |error| Fault::machine(package.display(), error);
    fs::create_dir(&package).map_err(failed)?;
    downloads::maven(&package, &arguments(&package))?;
    let library = package.join(MEMBER);
    downloads::check(&library, LIBRARY_HASH)?;
    downloads::pip(&package, &format!("duckdb-extension-httpfs=={VERSION}"), HTTPFS_HASH)?;
    let extension = package.join(format!("duckdb_extension_httpfs/extensions/v{VERSION}/{HTTPFS}"));
    fs::rename(extension, folder.join(HTTPFS)).map_err(failed)?;
    // The mark of a complete download comes last.
    fs::rename(library, folder.join(NAME)).map_err(failed)?;
    fs::remove_dir_all(&package).map_err(failed)
}

fn arguments(package: &Path) -> Vec<String> {
    let artifact = format!("org.duckdb:duckdb_jdbc:{VERSION}.0");
    downloads::unpacking(&artifact, Some(MEMBER), package, &package.join("repository"))
}
