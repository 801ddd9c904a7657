//! Files with the known spread between starts, read for `--start-spread` and written by `calibrate --starts --to`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tithe_model::start_spread::{self, StartSpread};

use crate::exit::{self, Stop};

/// The spreads of `database` in the file at `path`. A file without any is refused before anything is started.
pub fn read(path: &Path, database: &str) -> Result<Vec<StartSpread>, Stop> {
    let said = |flaw: String| {
        refused(format!("{flaw}; `tithe calibrate {database} --starts` writes such lines, and FORMAT.md explains them"))
    };
    let text = fs::read_to_string(path)
        .map_err(|error| said(format!("cannot read the start-to-start variation in {}: {error}", path.display())))?;
    start_spread::read(&text, database).map_err(|flaw| said(format!("{}: {flaw}", path.display())))
}

/// Checks before a measurement whether its lines can be written to `path`.
pub fn check(path: &Path) -> Result<(), Stop> {
    let nothing = |flaw: String| refused(format!("{flaw}; name another file"));
    let (path, text) = found(path).map_err(nothing)?;
    start_spread::replaced(&text, "", &[]).map_err(|flaw| {
        nothing(format!(
            "{}: {flaw}; it is not a file of start-to-start variation, and nothing is written over it",
            path.display()
        ))
    })?;
    let beside = beside(&path);
    fs::write(&beside, "").and_then(|()| fs::remove_file(&beside)).map_err(|error| nothing(unwritable(&path, &error)))
}

/// Replaces the lines of `database` in the file at `path` by `spreads`; a reader sees the old file or the new one.
pub fn put(path: &Path, database: &str, spreads: &[StartSpread]) -> Result<(), Stop> {
    let failed = |flaw: String| Stop::new(exit::MACHINE, format!("{flaw}; the lines are above"));
    // Read again: another program may have written to it meanwhile.
    let (path, text) = found(path).map_err(failed)?;
    let text = start_spread::replaced(&text, database, spreads)
        .map_err(|flaw| failed(format!("{}: {flaw}; it was changed meanwhile", path.display())))?;
    let beside = beside(&path);
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, &path)).map_err(|error| {
        // An incomplete file is useless.
        let _ = fs::remove_file(&beside);
        failed(unwritable(&path, &error))
    })
}

/// The real path of the file at `path`, and its content; empty if there is none.
fn found(path: &Path) -> Result<(PathBuf, String), String> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((path, String::new())),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// The temporary path of the new file before it replaces the old one.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

fn refused(flaw: String) -> Stop {
    Stop::new(exit::USAGE, format!("{flaw}; nothing was started"))
}
