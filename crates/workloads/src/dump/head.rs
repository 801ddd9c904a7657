//! Information in the head of a dump: its form, its product and its version.

use std::fmt;

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
}

impl Head {
    /// Statements of the user's own.
    fn statements() -> Self {
        Self { form: Form::Statements, origin: None, version: String::new(), database: String::new(), least: 0 }
    }
}

/// First bytes of an archive (PostgreSQL's `pg_backup_archiver.c`, `WriteHead`).
const ARCHIVE: &[u8] = b"PGDMP";
/// Where the first file of a tar begins.
const TAR_BLOCK: usize = 512;
/// First bytes of a file of SQLite ("Database File Format").
const SQLITE: &[u8] = b"SQLite format 3\0";
/// First bytes of compressed files, and the program that unpacks them.
const PACKED: [(&[u8], &str); 7] = [
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
/// Lines to read: a dump identifies itself in the first ones.
const LINES: usize = 40;

/// Reads the first `bytes` of a file.
///
/// # Errors
/// Why it cannot be restored.
pub fn read(bytes: &[u8]) -> Result<Head, String> {
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
    Ok(Head { form: Form::Archive, origin: Some(Origin::Postgres), version, database, least: 0 })
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
    let mut head = Head::statements();
    for line in text.lines().take(LINES) {
        if line.starts_with("-- PostgreSQL database cluster dump") {
            return Err(
                "it is a dump of all databases and accounts (pg_dumpall): dump one database by pg_dump".to_owned()
            );
        } else if line.starts_with("-- PostgreSQL database dump") {
            head.origin = Some(Origin::Postgres);
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
        } else if let Some((_, name)) = line.split_once("Database: ").filter(|_| line.starts_with("-- Host: ")) {
            if name.trim().is_empty() {
                return Err(ALL_DATABASES.to_owned());
            }
            name.trim().clone_into(&mut head.database);
        } else if let Some(rest) = line.strip_prefix("-- Server version") {
            // The server decides, not the program that wrote the dump.
            head.origin = head.origin.map(|_| if rest.contains("MariaDB") { Origin::Mariadb } else { Origin::Mysql });
            let digits = rest.trim().split(|sign: char| !sign.is_ascii_digit() && sign != '.').next();
            digits.unwrap_or_default().clone_into(&mut head.version);
        } else if line == "PRAGMA foreign_keys=OFF;" {
            head.origin = Some(Origin::Sqlite);
        }
    }
    Ok(head)
}
