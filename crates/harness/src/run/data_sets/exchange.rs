//! Draws again which place on the disk the data of each arm have.
//!
//! A file system puts the files of a folder near that folder, and a file that is emptied and written again near its old
//! place. So each arm's data would stay in one region of the disk for all starts of a cell. The waiting time of writes
//! differs between regions: on ext4 over a virtual disk, identical arms of SQLite differed by 1 to 3 % of the time per
//! operation, always in the same direction within a cell (docs/method/writes.md). If an arm gets another arm's folder
//! for each start, it has no region of its own, and the differences between regions become part of the start-to-start
//! variation.
//!
//! The folder itself is exchanged with the files that hold data, so that new files (logs, journals) are created in the
//! other place, too. Keys, certificates and server logs stay with their arm. Folders on volumes are not exchanged: a
//! volume is part of its arm.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The folder of a stopped server, and the first components, below it, of the paths at which it has data.
pub(super) struct DataFolder<'f> {
    pub folder: &'f Path,
    pub data: BTreeSet<OsString>,
}

/// Gives each of `folders` the place of the one that `places` names for it: a permutation. Files that are not data
/// stay. Does nothing if the folders differ in owner, mode or file system.
///
/// # Errors
/// When a file cannot be moved. The folders must not be used then.
pub(super) fn exchange(folders: &[DataFolder<'_>], places: &[usize]) -> io::Result<()> {
    let kinds = folders.iter().map(|of| fs::metadata(of.folder).map(|known| kind(&known)));
    let kinds: BTreeSet<_> = kinds.collect::<io::Result<_>>()?;
    if kinds.len() > 1 {
        return Ok(());
    }
    folders.iter().try_for_each(set_aside)?;
    for DataFolder { folder, .. } in folders {
        fs::rename(folder, moved(folder))?;
    }
    for (of, place) in folders.iter().zip(places) {
        fs::rename(moved(folders[*place].folder), of.folder)?;
    }
    folders.iter().try_for_each(take_back)
}

fn kind(known: &fs::Metadata) -> (u64, u32, u32, u32) {
    (known.dev(), known.mode(), known.uid(), known.gid())
}

/// The temporary name of a folder while another one takes its name.
fn moved(folder: &Path) -> PathBuf {
    with_suffix(folder, "moved")
}

/// The temporary place of files that are not data.
fn aside(folder: &Path) -> PathBuf {
    with_suffix(folder, "aside")
}

fn with_suffix(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn set_aside(of: &DataFolder<'_>) -> io::Result<()> {
    let aside = aside(of.folder);
    fs::create_dir(&aside)?;
    for entry in fs::read_dir(of.folder)? {
        let name = entry?.file_name();
        if !of.data.contains(&name) {
            fs::rename(of.folder.join(&name), aside.join(&name))?;
        }
    }
    Ok(())
}

fn take_back(of: &DataFolder<'_>) -> io::Result<()> {
    let aside = aside(of.folder);
    for entry in fs::read_dir(&aside)? {
        let name = entry?.file_name();
        fs::rename(aside.join(&name), of.folder.join(&name))?;
    }
    fs::remove_dir(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'f>(folder: &'f Path, data: &[&str]) -> DataFolder<'f> {
        DataFolder { folder, data: data.iter().map(OsString::from).collect() }
    }

    #[test]
    fn data_take_the_place_that_is_named_and_the_rest_stays() {
        let folder = std::env::temp_dir().join(format!("tithe-test-exchange-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let folders = ["one", "two", "three"].map(|name| folder.join(name));
        for folder in &folders {
            fs::create_dir_all(folder.join("data")).expect("a folder");
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            fs::write(folder.join("data/rows"), &name).expect("rows");
            fs::write(folder.join("key"), &name).expect("a key");
        }
        // Only one has it.
        fs::write(folders[2].join("server.log"), "three").expect("a log");
        let inode = |path: &Path| fs::metadata(path).expect("it is there").ino();
        let before = folders.each_ref().map(|folder| inode(folder));

        exchange(&folders.each_ref().map(|folder| of(folder, &["data", "journal"])), &[1, 2, 0]).expect("exchanged");
        let read = |name: &str| folders.each_ref().map(|folder| fs::read_to_string(folder.join(name)).ok());
        let told = |of: [&str; 3]| of.map(|name| Some(name.to_owned()));
        assert_eq!(read("data/rows"), told(["two", "three", "one"]));
        assert_eq!(read("key"), told(["one", "two", "three"]));
        assert_eq!(read("server.log"), [None, None, Some("three".to_owned())]);
        assert_eq!(folders.each_ref().map(|folder| inode(folder)), [before[1], before[2], before[0]]);
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 3, "nothing is left beside them");

        // Another mode: the reader of the data may have no access.
        fs::set_permissions(&folders[0], std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("a mode");
        exchange(&folders.each_ref().map(|folder| of(folder, &["data"])), &[1, 2, 0]).expect("left alone");
        assert_eq!(read("data/rows"), told(["two", "three", "one"]));
        fs::remove_dir_all(&folder).expect("clean up");
    }
}
