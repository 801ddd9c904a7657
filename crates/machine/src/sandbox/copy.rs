//! Copies a stopped server's data: by reference if the file system lets files share their blocks, else byte by byte.
//!
//! Holes in files are filled, and extended attributes are not copied: the copied data folders have neither.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, lchown, symlink},
    path::Path,
};

use rustix::fs::{ioctl_ficlone, syncfs};

/// How files were copied; the more expensive way is the greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyMethod {
    /// Both files share their blocks until one of them is changed (ioctl_ficlone(2)): XFS, Btrfs, bcachefs.
    Reflink,
    /// Every byte was written again: ext4 and all others.
    Bytes,
}

impl CopyMethod {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reflink => "reflink",
            Self::Bytes => "bytes",
        }
    }
}

/// Copies the file, link or folder `from` to `to`, which must not exist, with owners and modes. Sockets and pipes are
/// left out: they belong to a process that has ended. Returns the most expensive way that a file was copied.
///
/// # Errors
/// The first path that cannot be read or written; the copies made so far stay.
pub fn tree(from: &Path, to: &Path) -> io::Result<CopyMethod> {
    let metadata = fs::symlink_metadata(from)?;
    let mut how = CopyMethod::Reflink;
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            how = how.max(tree(&entry.path(), &to.join(entry.file_name()))?);
        }
    } else if metadata.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if metadata.is_file() {
        how = file(from, to)?;
    } else {
        return Ok(how);
    }
    lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    if !metadata.is_symlink() {
        // Last: without this order a read-only folder could not be filled.
        fs::set_permissions(to, metadata.permissions())?;
    }
    Ok(how)
}

fn file(from: &Path, to: &Path) -> io::Result<CopyMethod> {
    let mut source = File::open(from)?;
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    if ioctl_ficlone(&copy, &source).is_ok() {
        return Ok(CopyMethod::Reflink);
    }
    io::copy(&mut source, &mut copy)?;
    Ok(CopyMethod::Bytes)
}

/// Writes all dirty pages on the file system of `path` to disk: otherwise the kernel would write them while arms are
/// measured.
///
/// # Errors
/// When the disk refuses.
pub fn sync(path: &Path) -> io::Result<()> {
    Ok(syncfs(File::open(path)?)?)
}

#[cfg(test)]
mod tests;
