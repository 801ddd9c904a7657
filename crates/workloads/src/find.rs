//! Finds programs of others on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::{launch::Missing, sandbox::tools::folders_of_path};

/// The program `name` in the first of `folders`, and of those in `PATH`, that contains it.
///
/// # Errors
/// Where it was searched for, and by which `package` it is installed.
pub fn find_in(folders: Vec<PathBuf>, name: &str, package: &str) -> Result<PathBuf, Missing> {
    let mut places: Vec<PathBuf> = folders.into_iter().chain(folders_of_path()).collect();
    places.iter_mut().for_each(|folder| folder.push(name));
    if let Some(found) = places.iter().find(|place| is_program(place)) {
        return Ok(found.clone());
    }
    Err(Missing {
        what: format!("the program {name}"),
        looked_in: places.iter().map(|place| place.display().to_string()).collect(),
        how_to_install: vec![package.to_owned()],
    })
}

/// The newest program of PostgreSQL called `name`. Debian's own in `PATH` is a script that searches for the newest one,
/// and its time would count as the client's.
///
/// # Errors
/// As [`find_in`].
pub fn newest_postgres(name: &str) -> Result<PathBuf, Missing> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let folders = versions.into_iter().map(|(_, folder)| folder).collect();
    find_in(folders, name, "Debian, Ubuntu: apt-get install postgresql")
}

/// True for a file that can be executed.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
