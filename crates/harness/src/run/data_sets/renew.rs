//! Makes a folder equal to a kept one again, at the cost of the changes alone.
//!
//! A file that was not written since it was copied stays: its length and modification time are those of the kept file,
//! and every write changes that time. A file that was written is written again under the same inode, to new places on
//! the disk. It would be simpler to remove all files and create them again, but much more expensive: for about a minute
//! ext4 does not reuse the inode of a removed file, and it searches all such inodes for each new file. With the 4,000
//! files of four PostgreSQL servers that took 20 s of a start.

use std::{
    fs::{self, File, FileTimes, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
};

use tithe_machine::sandbox::copy::{self, CopyMethod};

/// Makes the file, link or folder `to` equal to `from`, with owners, modes and the modification times of files. Returns
/// the most expensive copy method that was used.
///
/// # Errors
/// The first thing that cannot be read or written; changes until then stay.
pub(super) fn renew(from: &Path, to: &Path) -> io::Result<CopyMethod> {
    let kept = fs::symlink_metadata(from)?;
    let there = match fs::symlink_metadata(to) {
        Ok(there) if there.file_type() == kept.file_type() => there,
        _ => return fresh(from, to, &kept),
    };
    if kept.is_dir() {
        return folder(from, to, &kept);
    }
    if kept.is_symlink() {
        return if fs::read_link(from)? == fs::read_link(to)? {
            Ok(CopyMethod::Reflink)
        } else {
            fresh(from, to, &kept)
        };
    }
    if !kept.is_file() || is_unchanged(&kept, &there) { Ok(CopyMethod::Reflink) } else { overwrite(from, to, &kept) }
}

/// Removes what is at `path`, if anything is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn fresh(from: &Path, to: &Path, kept: &Metadata) -> io::Result<CopyMethod> {
    remove(to)?;
    if kept.is_dir() {
        fs::create_dir(to)?;
        return folder(from, to, kept);
    }
    let how = copy::tree(from, to)?;
    if kept.is_file() {
        File::open(to)?.set_times(times(kept)?)?;
    }
    Ok(how)
}

fn folder(from: &Path, to: &Path, kept: &Metadata) -> io::Result<CopyMethod> {
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if fs::symlink_metadata(from.join(entry.file_name())).is_err() {
            remove(&entry.path())?;
        }
    }
    let mut how = CopyMethod::Reflink;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        how = how.max(renew(&entry.path(), &to.join(entry.file_name()))?);
    }
    own(to, kept)?;
    Ok(how)
}

fn overwrite(from: &Path, to: &Path, kept: &Metadata) -> io::Result<CopyMethod> {
    // Emptied first, so that it gets new blocks.
    let mut copy = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.set_times(times(kept)?)?;
    own(to, kept)?;
    Ok(CopyMethod::Bytes)
}

fn is_unchanged(kept: &Metadata, there: &Metadata) -> bool {
    let known = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec(), of.mode(), of.uid(), of.gid());
    known(kept) == known(there)
}

fn times(kept: &Metadata) -> io::Result<FileTimes> {
    Ok(FileTimes::new().set_modified(kept.modified()?))
}

fn own(to: &Path, kept: &Metadata) -> io::Result<()> {
    lchown(to, Some(kept.uid()), Some(kept.gid()))?;
    fs::set_permissions(to, kept.permissions())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Everything below `path`: names, contents, targets, modes.
    fn listed(path: &Path) -> Vec<String> {
        let metadata = fs::symlink_metadata(path).expect("what is there");
        let line = |what: String| format!("{:o} {what}", metadata.mode());
        if metadata.is_symlink() {
            return vec![line(fs::read_link(path).expect("a link").display().to_string())];
        }
        if metadata.is_file() {
            return vec![line(fs::read_to_string(path).expect("a file"))];
        }
        let mut entries: Vec<_> = fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let below = entries.iter().flat_map(|entry| {
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            listed(entry).into_iter().map(move |line| format!("{name}/{line}"))
        });
        std::iter::once(line(String::new())).chain(below).collect()
    }

    #[test]
    fn a_folder_is_again_what_is_kept_and_what_was_not_written_is_the_same_file() {
        let folder = tempfile_folder("renewed");
        let (kept, there) = (folder.join("kept"), folder.join("there"));
        fs::create_dir_all(kept.join("base/empty")).expect("folders");
        for (name, text) in [("base/rows", "1 2 3"), ("base/more", "4"), ("control", "5"), ("kind", "6")] {
            fs::write(kept.join(name), text).expect("a file");
        }
        symlink("control", kept.join("link")).expect("a link");
        fs::set_permissions(kept.join("control"), fs::Permissions::from_mode(0o400)).expect("a mode");
        renew(&kept, &there).expect("a copy");
        assert_eq!(listed(&there), listed(&kept));
        let inode = |name: &str| fs::metadata(there.join(name)).expect("a file").ino();
        let unwritten = inode("base/more");

        // Of the same length; shorter; another mode; another kind; gone; more; another target.
        fs::write(there.join("base/rows"), "3 2 1").expect("written");
        fs::set_permissions(there.join("control"), fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::write(there.join("control"), "").expect("written");
        fs::remove_file(there.join("kind")).expect("removed");
        fs::create_dir(there.join("kind")).expect("a folder");
        fs::remove_dir(there.join("base/empty")).expect("removed");
        fs::create_dir(there.join("base/new")).expect("a folder");
        fs::write(there.join("base/new/file"), "7").expect("written");
        fs::remove_file(there.join("link")).expect("removed");
        symlink("kind", there.join("link")).expect("a link");
        renew(&kept, &there).expect("renewed");
        assert_eq!(listed(&there), listed(&kept));
        assert_eq!(inode("base/more"), unwritten);
        fs::remove_dir_all(&folder).expect("clean up");
    }

    fn tempfile_folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("tithe-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }
}
