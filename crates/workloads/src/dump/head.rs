//! Information in the head of a dump: its form, its product and its version.

use std::{collections::BTreeSet, fmt};

use csv::ReaderBuilder;
use tithe_model::catalogue::BYTE_ORDER_MARK;

/// The form of the user's own data on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Statements, written by `pg_dump`, `mysqldump`, `sqlite3 .dump` or the user.
    Statements,
    /// An archive for `pg_restore`: custom, tar or directory.
    Archive,
    /// A file of SQLite.
    SqliteFile,
    /// A folder with `schema.sql` and a CSV file for each table.
    Csv,
}

/// The product that the data come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
    /// SQLite.
    Sqlite,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Mysql => "MySQL",
            Self::Sqlite => "SQLite",
        })
    }
}

/// The information in a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The form of the data.
    pub form: Form,
    /// Their product; `None` if statements do not name it.
    pub origin: Option<Origin>,
    /// The version of the dumped server: `15.8`; empty if it is not given.
    pub version: String,
    /// The dumped database; empty if it is not given.
    pub database: String,
    /// The first release of PostgreSQL with all settings of the head; 0 for any.
    pub least: u32,
    /// True if the statements make their database themselves, and enter it.
    pub makes_database: bool,
    /// What the program that wrote the dump writes at its end; empty if that is not known.
    pub end: &'static str,
}

impl Head {
    /// Statements of the user's own.
    fn statements() -> Self {
        Self {
            form: Form::Statements,
            origin: None,
            version: String::new(),
            database: String::new(),
            least: 0,
            makes_database: false,
            end: "",
        }
    }
}

/// First bytes of an archive (PostgreSQL's `pg_backup_archiver.c`, `WriteHead`).
const ARCHIVE: &[u8] = b"PGDMP";
/// Where the first file of a tar begins.
const TAR_BLOCK: usize = 512;
/// First bytes of a file of SQLite ("Database File Format").
const SQLITE: &[u8] = b"SQLite format 3\0";
/// First bytes of compressed files, and the program that unpacks them.
pub const PACKED: [(&[u8], &str); 7] = [
    (b"\x1f\x8b", "gunzip"),
    (b"BZh", "bunzip2"),
    (b"\xfd7zXZ", "unxz"),
    (b"\x28\xb5\x2f\xfd", "unzstd"),
    (b"\x04\x22\x4d\x18", "unlz4"),
    (b"7z\xbc\xaf\x27\x1c", "7z x"),
    (b"PK\x03\x04", "unzip"),
];
/// The reason against a text in UTF-16.
const UTF_16: &str =
    "it is UTF-16, as `>` of PowerShell writes it: dump again with pg_dump --file or mysqldump --result-file";
/// The reason against a dump that would replace the server's accounts.
const ALL_DATABASES: &str =
    "it is a dump of all databases and accounts (--all-databases): dump one database by its name";
/// The archive version since which compression is a byte and not a number (`K_VERS_1_15`).
const COMPRESSION_BYTE: (u8, u8) = (1, 15);
/// The reason against a dump that contains messages of the program that wrote it.
const MESSAGES: &str = "it has messages of the program that wrote it: dump again without `2>&1`";
/// The reason against statements that psql runs in another database.
const CONNECTS: &str = "it goes on in another database by \\connect, which is not the one that is measured: take out \\connect and CREATE \
     DATABASE";
/// The reason against commands of the program `sqlite3`, which no session runs.
const OF_SHELL: &str = "it has commands of the program sqlite3, which are no SQL: name the database file, or its .dump";
/// Such commands.
const SHELL: [&str; 9] = [".bail", ".echo", ".headers", ".import", ".mode", ".open", ".read", ".separator", ".timer"];
/// Beginnings of messages of such programs.
const MESSAGE: [&str; 4] = ["mysqldump: ", "mariadb-dump: ", "pg_dump: ", "Enter password:"];
/// Lines to read: a dump identifies itself in the first ones, and enters its database below the licence.
const LINES: usize = 150;

/// Reads the first `bytes` of a file.
///
/// # Errors
/// Why it cannot be restored.
pub fn read(bytes: &[u8]) -> Result<Head, String> {
    // Editors write a byte order mark, and client programs skip it.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some((_, program)) = PACKED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(format!("it is packed: unpack it first ({program})"));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(UTF_16.to_owned());
    }
    if bytes.starts_with(SQLITE) {
        return Ok(Head { form: Form::SqliteFile, origin: Some(Origin::Sqlite), ..Head::statements() });
    }
    if bytes.starts_with(ARCHIVE) {
        return archive(bytes);
    }
    if bytes.starts_with(b"toc.dat\0") {
        return archive(bytes.get(TAR_BLOCK..).unwrap_or_default());
    }
    if bytes.contains(&0) {
        return Err("it is neither text nor a dump that Tithe knows (pg_dump, mysqldump, a file of SQLite)".to_owned());
    }
    statements(&String::from_utf8_lossy(bytes))
}

/// Checks the first `bytes` of a CSV file.
///
/// # Errors
/// Why its rows cannot be loaded.
pub fn table(bytes: &[u8]) -> Result<(), String> {
    let first = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).split(|byte| *byte == b'\n').next();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") || bytes.contains(&0) {
        Err("it is no text in UTF-8: save it as \"CSV UTF-8\"".to_owned())
    } else if first.is_none_or(|line| line.trim_ascii().is_empty()) {
        Err("its first line has no names of columns".to_owned())
    } else if let Some(line) = first.filter(|_| bytes.contains(&b'\n')) {
        let columns = columns(&String::from_utf8_lossy(line));
        let mut seen = BTreeSet::new();
        match columns.iter().find(|name| name.is_empty() || !seen.insert(name.as_str())) {
            Some(name) if name.is_empty() => {
                let why = "its first line has a column without a name: name it or take it out (pandas: index=False)";
                Err(why.to_owned())
            }
            Some(name) => Err(format!("its first line names the column {name} twice")),
            None => Ok(()),
        }
    } else {
        Ok(())
    }
}

/// The names of columns in the line `header` of a CSV file.
pub fn columns(header: &str) -> Vec<String> {
    // Spreadsheets write a byte order mark.
    let header = header.trim_start_matches('\u{feff}');
    let separator = separator(header) as u8;
    let mut reader = ReaderBuilder::new().has_headers(false).delimiter(separator).from_reader(header.as_bytes());
    let first = reader.records().next().and_then(Result::ok).unwrap_or_default();
    // People write a blank behind the comma.
    first.iter().map(|name| name.trim().to_owned()).collect()
}

/// The character between the fields of a CSV file that begins with the line `header`. Spreadsheets write a semicolon
/// in countries where the comma is in numbers.
pub fn separator(header: &str) -> char {
    let unquoted: String = header.split('"').step_by(2).collect();
    [',', ';', '\t', '|'].into_iter().find(|sign| unquoted.contains(*sign)).unwrap_or(',')
}

/// The head of an archive of `pg_dump -Fc`, `-Ft` and `-Fd`.
///
/// # Errors
/// If it ends within its head.
pub fn archive(bytes: &[u8]) -> Result<Head, String> {
    let cut = || "it ends within its head: the dump is incomplete".to_owned();
    let mut cursor = Cursor(bytes.strip_prefix(ARCHIVE).ok_or_else(cut)?);
    let mut head = || {
        let version = (cursor.byte()?, cursor.byte()?);
        cursor.byte()?;
        let size = usize::from(cursor.byte()?);
        // Sizes of offsets, and the form.
        cursor.take(2)?;
        if version >= COMPRESSION_BYTE { cursor.byte().map(drop) } else { cursor.number(size).map(drop) }?;
        // When it was made: seven numbers.
        (0..7).try_for_each(|_| cursor.number(size).map(drop))?;
        let database = cursor.text(size)?;
        Some((database, cursor.text(size)?))
    };
    let (database, version) = head().ok_or_else(cut)?;
    let version = version.split(' ').next().unwrap_or_default().to_owned();
    Ok(Head { form: Form::Archive, origin: Some(Origin::Postgres), version, database, ..Head::statements() })
}

/// The rest of an archive's head.
struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, left) = self.0.split_at_checked(length)?;
        self.0 = left;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    /// A number: its sign, then its bytes, the least significant one first.
    fn number(&mut self, size: usize) -> Option<i64> {
        let negative = self.byte()? != 0;
        let bytes = self.take(size)?;
        let value = bytes.iter().rev().try_fold(0_i64, |sum, byte| sum.checked_mul(256)?.checked_add(i64::from(*byte)));
        value.map(|value| if negative { -value } else { value })
    }

    fn text(&mut self, size: usize) -> Option<String> {
        let length = self.number(size)?;
        let bytes = self.take(usize::try_from(length).unwrap_or(0))?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn statements(text: &str) -> Result<Head, String> {
    if text.trim_start().starts_with("<?xml") {
        return Err("it is XML: dump again without --xml".to_owned());
    }
    let (mut head, mut creates, mut enters) = (Head::statements(), false, false);
    for line in text.lines().take(LINES) {
        let may_be_mysql = !matches!(head.origin, Some(Origin::Postgres | Origin::Sqlite));
        if MESSAGE.iter().any(|begin| line.starts_with(begin)) {
            return Err(MESSAGES.to_owned());
        } else if line.starts_with("\\connect ") || line.starts_with("\\c ") {
            return Err(CONNECTS.to_owned());
        } else if SHELL.iter().any(|command| line.split(char::is_whitespace).next() == Some(*command)) {
            return Err(OF_SHELL.to_owned());
        } else if reads_file(line) {
            return Err("it reads further files (source, \\i), which are not restored: join them into one".to_owned());
        } else if line.starts_with("-- PostgreSQL database cluster dump") {
            return Err(
                "it is a dump of all databases and accounts (pg_dumpall): dump one database by pg_dump".to_owned()
            );
        } else if line.trim_end() == "-- PostgreSQL database dump" {
            head.origin = Some(Origin::Postgres);
            head.end = "-- PostgreSQL database dump complete";
        } else if head.origin == Some(Origin::Postgres) && line.starts_with("CREATE DATABASE ") {
            return Err("it makes a database of its own (pg_dump --create): dump again without --create, which is -C"
                .to_owned());
        } else if head.origin == Some(Origin::Postgres) && line.starts_with("SET transaction_timeout ") {
            head.least = 17;
        } else if let Some(rest) = line.strip_prefix("-- Dumped from database version ") {
            head.version = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if line.starts_with("-- MySQL dump ") || line.starts_with("-- MariaDB dump ") {
            // Older versions of MariaDB write MySQL, and name themselves in the version.
            let mariadb = line.contains("MariaDB");
            head.origin = Some(if mariadb { Origin::Mariadb } else { Origin::Mysql });
            head.end = "-- Dump completed";
        } else if line.starts_with("-- phpMyAdmin SQL Dump") {
            head.origin = Some(Origin::Mysql);
        } else if let Some(product) = line.strip_prefix("-- Adminer ") {
            head.origin = product_in(product);
        } else if let Some(name) = line.strip_prefix("-- Database: `").filter(|_| may_be_mysql) {
            name.trim_end().trim_end_matches('`').clone_into(&mut head.database);
        } else if may_be_mysql && (begins(line, "CREATE DATABASE ") || begins(line, "CREATE SCHEMA ")) {
            creates = true;
        } else if let Some(name) = entered(line).filter(|_| may_be_mysql && !enters) {
            (enters, head.makes_database, head.database) = (true, creates, name);
        } else if let Some((_, name)) = line.split_once("Database: ").filter(|_| line.starts_with("-- Host: ")) {
            if name.trim().is_empty() {
                return Err(ALL_DATABASES.to_owned());
            }
            name.trim().clone_into(&mut head.database);
        } else if let Some(rest) = line.strip_prefix("-- Server version") {
            // The server decides, not the program that wrote the dump.
            head.origin = product_in(rest).or(head.origin.map(|_| Origin::Mysql));
            let version = rest.trim_start_matches([':', ' ', '\t']);
            let digits = version.split(|sign: char| !sign.is_ascii_digit() && sign != '.').next();
            digits.unwrap_or_default().clone_into(&mut head.version);
        } else if line == "PRAGMA foreign_keys=OFF;" {
            head.origin = Some(Origin::Sqlite);
        } else if line == "BEGIN TRANSACTION;" && head.origin == Some(Origin::Sqlite) {
            head.end = "COMMIT;";
        }
    }
    Ok(head)
}

/// True for a command of `mysql` or `psql` that reads another file.
fn reads_file(line: &str) -> bool {
    let command = ["source ", "\\. ", "\\i ", "\\ir "].into_iter().find(|command| begins(line, command));
    let name = command.map_or("", |command| line[command.len()..].trim_matches(['\'', '"', ';', ' ']));
    !name.contains(' ') && [".sql", ".dump"].iter().any(|ending| name.ends_with(ending))
}

/// The database that the line `USE name;` of MariaDB or MySQL enters; none for `USE INDEX (a)` within a statement.
fn entered(line: &str) -> Option<String> {
    let name = line.get("USE ".len()..).filter(|_| begins(line, "USE "))?.trim_start();
    if let Some(quoted) = name.strip_prefix('`') {
        // A doubled quote is one of the name.
        let end = quoted.replace("``", "  ").find('`')?;
        return Some(quoted[..end].replace("``", "`"));
    }
    let name = name.split(';').next().unwrap_or_default().trim_end();
    (!name.is_empty() && !name.contains([' ', '\t', '('])).then(|| name.to_owned())
}

/// The product that `words` of a dump's comment name.
fn product_in(words: &str) -> Option<Origin> {
    [Origin::Mariadb, Origin::Mysql, Origin::Postgres].into_iter().find(|origin| words.contains(&origin.to_string()))
}

/// True for a line that begins with `words`, in any case.
fn begins(line: &str, words: &str) -> bool {
    line.get(..words.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(words))
}
