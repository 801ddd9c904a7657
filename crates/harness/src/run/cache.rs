//! Empties the page cache, so that what is read next comes from the disk, and draws again where in memory files lie in
//! it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Advice, fadvise};
use tithe_machine::fault::Fault;

/// Empties the cache: of the whole machine where this process may (root), else of the servers' `files`, which are
/// looked for only then. A file that a running server has mapped stays. Returns what was done.
///
/// # Errors
/// When neither can be done.
pub fn empty(files: impl Iterator<Item = PathBuf>) -> Result<&'static str, Fault> {
    // Only clean pages can be let go of.
    rustix::fs::sync();
    // Pages, and the kernel's memory of folders and inodes (Documentation/admin-guide/sysctl/vm.rst).
    if fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok("drop_caches = 3");
    }
    for file in files {
        evict(&file).map_err(|error| Fault::machine(format!("cannot empty the cache of {}", file.display()), error))?;
    }
    Ok("posix_fadvise(DONTNEED) on every file of the servers")
}

/// Has `files`, which nobody has open, lie elsewhere in the page cache: all are let go of and then read again, in this
/// order. Where in memory a page lies says with which others it competes for the processor's caches; that is chance
/// which stays as long as the file is cached, for every process that opens it, and would pass for a cost.
///
/// # Errors
/// When a file cannot be read.
pub fn redraw(files: &[PathBuf]) -> Result<(), Fault> {
    let failed = |file: &Path, error| Fault::machine(format!("cannot read {} again", file.display()), error);
    for file in files {
        // Only clean pages can be let go of.
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
    // Without a length: to its end.
    Ok(fadvise(fs::File::open(path)?, 0, None, Advice::DontNeed)?)
}
