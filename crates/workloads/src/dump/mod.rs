//! Data of the user's own, restored into launched servers: identifies them, and decides whether a server can take them.
//!
//! [`head`] reads the head of a dump, before anything is started. [`restore`] restores it with a program of the
//! product. Not supported: servers that Tithe did not start, to which Tithe adds only its own objects.

pub(crate) mod head;
pub(crate) mod restore;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _},
    path::{Path, PathBuf},
};

use tithe_model::{
    catalogue::{DatabaseEntry, PropertyProblem},
    experiment,
};

use self::head::{Form, Head, Origin};

/// Bytes of a file that are read to identify it.
const HEAD_BYTES: u64 = 16 << 10;

/// Bytes at the end of a file in which the end of a dump is searched for first.
const END_BYTES: u64 = 64 << 10;

/// The statements that create the tables of a CSV folder.
const SCHEMA: &str = "schema.sql";

/// The table of contents of a dump that is a folder.
const CONTENTS: &str = "toc.dat";

/// Data of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    path: PathBuf,
    head: Head,
    /// CSV files, by the name of their table.
    tables: Vec<(String, PathBuf)>,
}

impl Dump {
    /// The data that prepare the workload `described`, if it names any; adds its problems to `problems`.
    pub fn of(described: &experiment::Workload, problems: &mut Vec<PropertyProblem>) -> Option<Self> {
        let path = described.prepare.as_deref()?;
        let found = Self::find(path);
        found
            .map_err(|why| {
                let help = "name a file of statements, a dump or a folder of CSV".to_owned();
                problems.push(("prepare".to_owned(), format!("{}: {why}", path.display()), help));
            })
            .ok()
    }

    /// Identifies the data at `path`.
    ///
    /// # Errors
    /// Why it cannot be restored; the words follow its path.
    pub fn find(path: &Path) -> Result<Self, String> {
        let unread = |error: io::Error| format!("it cannot be read: {error}");
        // Absolute: the program that restores it works in another folder.
        let path = fs::canonicalize(path).map_err(unread)?;
        let mut tables = Vec::new();
        let head = if path.is_dir() {
            let contents = path.join(CONTENTS);
            if contents.exists() {
                head::archive(&first_bytes(&contents).map_err(unread)?)?
            } else {
                tables = files_of_tables(&path).map_err(unread)?;
                if let Some(pair) = tables.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    return Err(format!("it has two files for the table {}", pair[0].0));
                }
                if tables.is_empty() || !path.join(SCHEMA).is_file() {
                    return Err(format!(
                        "a folder holds `{CONTENTS}` (pg_dump -Fd), or `{SCHEMA}` and a file TABLE.csv for each table"
                    ));
                }
                for (_, file) in &tables {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    let named = |why: String| format!("{name}: {why}");
                    head::table(&first_bytes(file).map_err(unread)?).map_err(named)?;
                }
                let schema = head::read(&first_bytes(&path.join(SCHEMA)).map_err(unread)?)?;
                Head { form: Form::Csv, ..schema }
            }
        } else {
            if is_table(&path) {
                return Err(format!("name its folder, with `{SCHEMA}` for the table"));
            }
            head::read(&first_bytes(&path).map_err(unread)?)?
        };
        let statements = if path.is_dir() { path.join(SCHEMA) } else { path.clone() };
        if !head.end.is_empty() && !has_end(&statements, head.end).map_err(unread)? {
            return Err(format!("its end is missing, with the line `{}`: the dump was cut", head.end));
        }
        Ok(Self { path, head, tables })
    }

    /// Its description in the report.
    pub fn in_words(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let form = match self.head.form {
            Form::Statements => "statements",
            Form::Archive => "archive",
            Form::SqliteFile => "file of SQLite",
            Form::Csv => "folder of CSV",
        };
        let origin = self.head.origin.map(|origin| format!(" from {origin} {}", self.head.version));
        format!("{name}, {form}{}", origin.as_deref().unwrap_or("").trim_end())
    }

    /// Why a server of `database` in this `version` cannot take it; the words follow its path.
    fn refused_by(&self, database: &DatabaseEntry, version: &str) -> Option<String> {
        let Head { origin, version: dumped, least, .. } = &self.head;
        let (origin, title) = ((*origin)?, database.title);
        if origin.to_string() != title {
            return Some(format!("it is a dump of {origin}, and the server is {title}"));
        }
        let ours = release(origin, version)?;
        if release(origin, dumped).is_some_and(|theirs| theirs > ours) {
            let server = format!("{title} {version}");
            return Some(format!("it was dumped from {origin} {dumped}, which is newer than the server ({server})"));
        }
        ours.first().is_some_and(|ours| ours < least).then(|| {
            format!(
                "it sets transaction_timeout, which servers before {origin} {least} refuse: take this line out, or \
                 dump it with the pg_dump of the server's release"
            )
        })
    }
}

/// The part of a version that decides what a server can read: the first number of PostgreSQL, the first two of others.
fn release(of: Origin, version: &str) -> Option<Vec<u32>> {
    let start = version.find(|sign: char| sign.is_ascii_digit())?;
    let count = if of == Origin::Postgres { 1 } else { 2 };
    let numbers = version[start..].split(|sign: char| !sign.is_ascii_digit());
    numbers.take(count).map(|number| number.parse().ok()).collect()
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if a line of the file at `path` begins with `end`. It is searched for in the last bytes first; users may have
/// added any number of statements behind it.
fn has_end(path: &Path, end: &str) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let last = file.metadata()?.len().saturating_sub(END_BYTES);
    for from in [last, 0] {
        file.seek(io::SeekFrom::Start(from))?;
        let (mut lines, mut line) = (BufReader::new(&file), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            if line.starts_with(end.as_bytes()) {
                return Ok(true);
            }
            line.clear();
        }
    }
    Ok(false)
}

/// True for the name of a CSV file.
fn is_table(path: &Path) -> bool {
    let is = |ending: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending));
    is("csv") || is("tsv")
}

/// The CSV files in `folder`, by the name of their table.
fn files_of_tables(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut tables = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // `t.csv.gz`: its rows would be left out.
        if !is_table(&path) && path.file_stem().is_some_and(|stem| is_table(Path::new(stem))) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return Err(io::Error::other(format!("{name} is packed, or a copy: unpack it, or take it away")));
        }
        if is_table(&path) {
            tables.extend(path.file_stem().and_then(|stem| stem.to_str()).map(|stem| (stem.to_owned(), path.clone())));
        }
    }
    tables.sort();
    Ok(tables)
}
