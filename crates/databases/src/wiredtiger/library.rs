//! Finds WiredTiger on this machine, loads it, and refuses every version except the one whose interface [`super::ffi`]
//! describes.
//!
//! It is loaded at run time, so that Tithe builds and runs without it.

use std::{
    ffi::{CStr, c_int},
    path::{Path, PathBuf},
    sync::Mutex,
};

use tithe_machine::launch::{Missing, Search};

use super::ffi;

/// Names of the shared object: Debian's, the releases' own.
const NAMES: [&str; 3] = ["libwiredtiger.so.0", "libwiredtiger-3.2.1.so", "libwiredtiger.so"];

/// The release whose interface is known here: that of MongoDB 4.2.
const RELEASE: (c_int, c_int) = (3, 2);

/// A loaded WiredTiger. It stays loaded until Tithe ends: its threads could still be running in it.
#[derive(Debug)]
pub struct Library {
    /// `wiredtiger_open`.
    pub open: ffi::Open,
    /// Its version text: `WiredTiger 3.2.1: (August 27, 2019)`.
    pub version: String,
    /// The shared object.
    pub path: PathBuf,
    strerror: ffi::StrError,
    _object: libloading::Library,
}

impl Library {
    /// The extension that compresses with snappy, which is installed with the library; `None` if it is not.
    pub fn snappy(&self) -> Option<PathBuf> {
        let path = self.path.with_file_name("libwiredtiger_snappy.so");
        path.exists().then_some(path)
    }

    /// WiredTiger's text for `error`.
    pub fn words(&self, error: c_int) -> String {
        // SAFETY: the library is loaded; it returns constant text, or text of the calling thread, which is copied.
        unsafe { CStr::from_ptr((self.strerror)(error)) }.to_string_lossy().into_owned()
    }

    fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: a library of this name in these folders is WiredTiger; loading it runs no code of its own.
        let object = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
        // SAFETY: the types are those of the functions in wiredtiger.h, which no release has changed. The functions are
        // copied out and live as long as the library, which is stored with them and never unloaded.
        let (open, version, strerror) = unsafe {
            let symbol = |error: libloading::Error| error.to_string();
            (
                *object.get::<ffi::Open>(c"wiredtiger_open").map_err(symbol)?,
                *object.get::<ffi::Version>(c"wiredtiger_version").map_err(symbol)?,
                *object.get::<ffi::StrError>(c"wiredtiger_strerror").map_err(symbol)?,
            )
        };
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the numbers are written before it returns; the text is constant.
        let text = unsafe { CStr::from_ptr(version(&raw mut major, &raw mut minor, &raw mut patch)) };
        let version = text.to_string_lossy().into_owned();
        if (major, minor) != RELEASE {
            return Err(format!("this is version {major}.{minor}.{patch}, whose interface is another"));
        }
        Ok(Self { open, version, path: path.to_owned(), strerror, _object: object })
    }
}

/// WiredTiger, loaded on the first call; the folders of `search` come before those of the system.
///
/// # Errors
/// Every searched place, with its problem, and how to install it.
pub fn library(search: &Search) -> Result<&'static Library, Missing> {
    static LOADED: Mutex<Option<&'static Library>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(library) = *loaded {
        return Ok(library);
    }
    let library = Box::leak(Box::new(find(&search.folders, &system_folders())?));
    *loaded = Some(library);
    Ok(library)
}

fn system_folders() -> Vec<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib"].map(PathBuf::from).to_vec()
}

fn find(first: &[PathBuf], then: &[PathBuf]) -> Result<Library, Missing> {
    let mut looked_in = Vec::new();
    for folder in first.iter().chain(then) {
        let found: Vec<_> = NAMES.iter().map(|name| folder.join(name)).filter(|path| path.exists()).collect();
        if found.is_empty() {
            looked_in.push(format!("{} ({})", folder.display(), NAMES.join(", ")));
        }
        for path in found {
            match Library::load(&path) {
                Ok(library) => return Ok(library),
                Err(reason) => looked_in.push(format!("{}: {reason}", path.display())),
            }
        }
    }
    Err(Missing {
        what: format!("the library of WiredTiger {}.{}", RELEASE.0, RELEASE.1),
        looked_in,
        how_to_install: vec!["Debian, Ubuntu: apt install libwiredtiger0".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, broken) = (folder.path().join("empty"), folder.path().join("broken"));
        fs::create_dir(&broken).unwrap();
        fs::write(broken.join("libwiredtiger.so"), b"not a library").unwrap();
        let missing = find(&[empty], &[broken]).unwrap_err();
        let text = format!("{missing:#?}").replace(&folder.path().display().to_string(), "FOLDER");
        expect![[r#"
            Missing {
                what: "the library of WiredTiger 3.2",
                looked_in: [
                    "FOLDER/empty (libwiredtiger.so.0, libwiredtiger-3.2.1.so, libwiredtiger.so)",
                    "FOLDER/broken/libwiredtiger.so: dlopen failed",
                ],
                how_to_install: [
                    "Debian, Ubuntu: apt install libwiredtiger0",
                ],
            }"#]]
        .assert_eq(&text);
    }
}
