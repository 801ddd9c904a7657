//! Finds DuckDB's shared object and its extension httpfs on this machine, and loads the object.
//!
//! It is loaded at run time, so that Tithe builds and runs without it. Only releases whose file format and settings are
//! known here are taken.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tithe_machine::launch::{Missing, Search};

use super::{
    engine::Library,
    get::{DOWNLOAD, HTTPFS, NAME},
};

/// The release whose interface, settings and file header are known here.
const RELEASE: &str = "v1.5.";

/// DuckDB, loaded on the first call; the folders of `search` come first, and downloads before those of the system.
///
/// # Errors
/// Every searched place, with its problem, and how to install it.
pub fn library(search: &Search) -> Result<&'static Library, Missing> {
    static LOADED: Mutex<Option<&'static Library>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = *loaded {
        return Ok(library);
    }
    let system = ["/usr/local/lib", "/usr/lib"].map(PathBuf::from);
    let folders = search.folders.iter().cloned().chain(DOWNLOAD.downloaded()).chain(system);
    let library = Box::leak(Box::new(find(folders)?));
    *loaded = Some(library);
    Ok(library)
}

fn find(folders: impl Iterator<Item = PathBuf>) -> Result<Library, Missing> {
    let mut looked_in = Vec::new();
    for folder in folders {
        let path = folder.join(NAME);
        match path.exists().then(|| Library::load(&path)) {
            None => looked_in.push(path.display().to_string()),
            Some(Ok(library)) if library.version.starts_with(RELEASE) => return Ok(library),
            Some(Ok(other)) => {
                looked_in.push(format!("{}: it is {}, and {RELEASE}x is needed", path.display(), other.version));
            }
            Some(Err(reason)) => looked_in.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(Missing {
        what: "the library of DuckDB 1.5".to_owned(),
        looked_in,
        how_to_install: vec!["Linux on x86-64: tithe get duckdb (Maven and pip, 94 MB)".to_owned()],
    })
}

/// The extension httpfs for `library`: beside it, or where DuckDB's own `INSTALL httpfs` puts it.
pub fn httpfs(library: &Library) -> Option<PathBuf> {
    let platform = match std::env::consts::ARCH {
        "aarch64" => "linux_arm64",
        _ => "linux_amd64",
    };
    let own = std::env::var_os("HOME")
        .map(|home| Path::new(&home).join(".duckdb/extensions").join(&library.version).join(platform).join(HTTPFS));
    [Some(library.path.with_file_name(HTTPFS)), own].into_iter().flatten().find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (empty, broken) = (folder.path().join("empty"), folder.path().join("broken"));
        fs::create_dir(&broken).expect("a folder");
        fs::write(broken.join(NAME), b"not a library").expect("a file");
        let missing = find([empty, broken].into_iter()).err().expect("none");
        let text = format!("{missing:#?}").replace(&folder.path().display().to_string(), "FOLDER");
        expect![[r#"
            Missing {
                what: "the library of DuckDB 1.5",
                looked_in: [
                    "FOLDER/empty/libduckdb.so",
                    "FOLDER/broken/libduckdb.so: dlopen failed",
                ],
                how_to_install: [
                    "Linux on x86-64: tithe get duckdb (Maven and pip, 94 MB)",
                ],
            }"#]]
        .assert_eq(&text);
    }
}
