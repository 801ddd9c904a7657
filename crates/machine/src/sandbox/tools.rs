//! Finds the system's own tools.

use std::path::PathBuf;

/// Folders of administrators' programs, which are not always in a user's PATH.
pub const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The folders of `PATH`.
pub fn folders_of_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// The path of `program`.
pub fn tool(program: &str) -> Option<PathBuf> {
    let folders = folders_of_path().into_iter().chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
