//! Empties the page cache, so that the next reads come from the disk, and draws again where in memory files lie in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Advice, fadvise};
use tithe_machine::fault::Fault;

/// Empties the cache: of the whole machine if this process may (root), otherwise of the servers' `files`, which are
/// searched for only then. A file that a running server has mapped stays cached. Returns what was done.
///
/// # Errors
/// When neither is possible.
pub fn empty(files: impl Iterator<Item = PathBuf>) -> Result<&'static str, Fault> {
    // Only clean pages can be dropped.
    rustix::fs::sync();
    // Pages, and the kernel's caches of folders and inodes (Documentation/admin-guide/sysctl/vm.rst).
    if fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok("drop_caches = 3");
    }
    for file in files {
        evict(&file).map_err(|error| Fault::machine(format!("cannot empty the cache of {}", file.display()), error))?;
    }
    Ok("posix_fadvise(DONTNEED) on every file of the servers")
}

/// Moves `files`, which no process has open, to other places in the page cache: all are dropped and then read again, in
/// this order. The place of a page in memory decides with which other pages it competes for the processor's caches.
/// This random effect stays as long as the file is cached, for every process that opens it, and would look like a cost.
///
/// # Errors
/// When a file cannot be read.
pub fn redraw(files: &[PathBuf]) -> Result<(), Fault> {
    let failed = |file: &Path, error| Fault::machine(format!("cannot read {} again", file.display()), error);
    for file in files {
        // Only clean pages can be dropped.
        fs::File::open(file).and_then(|open| open.sync_data()).map_err(|error| failed(file, error))?;
        evict(file).map_err(|error| failed(file, error))?;
    }
    for file in files {
        fs::File::open(file)
            .and_then(|mut open| io::copy(&mut open, &mut io::sink()))
            .map_err(|error| failed(file, error))?;
    }
    Ok(())
}

fn evict(path: &Path) -> io::Result<()> {
    // A length of zero means: to the end of the file.
    Ok(fadvise(fs::File::open(path)?, 0, None, Advice::DontNeed)?)
}
