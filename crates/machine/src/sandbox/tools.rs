//! Finds the system's own tools.

use std::path::PathBuf;

/// Folders of administrators' programs, which are not always in a user's PATH.
pub const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The path of `program`.
pub fn tool(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
