//! The formats of logs, one file each.

mod csvlog;
mod general_log;
mod jsonlog;
mod mysql;
pub mod others;
mod pgaudit;
mod postgres;
pub(crate) mod prefix;
mod server_audit;
mod slow_log;
mod stderr;

use std::io::BufRead;

use super::{
    entry::{LogEnd, Problem, Sink},
    lines::{Encoding, timestamp},
    sql::Flavour,
};

/// A format of logs.
#[derive(Debug)]
pub struct Form {
    /// Its name, as in the property `form`.
    pub name: &'static str,
    /// The product family of the log.
    pub flavour: Flavour,
    /// True for the first line of such a log.
    recognises: fn(&str) -> bool,
    /// Reads it.
    pub read: fn(&mut dyn BufRead, &Reading, Sink<'_>) -> Result<LogEnd, Problem>,
}

/// Every format, one line each. The first that recognises a log reads it.
pub const FORMS: &[Form] = &[
    Form { name: "jsonlog", flavour: Flavour::Postgres, recognises: |line| line.starts_with('{'), read: jsonlog::read },
    Form { name: "csvlog", flavour: Flavour::Postgres, recognises: is_csvlog, read: csvlog::read },
    Form { name: "server-audit", flavour: Flavour::MySql, recognises: is_server_audit, read: server_audit::read },
    Form { name: "slow-log", flavour: Flavour::MySql, recognises: |line| line.starts_with("# "), read: slow_log::read },
    Form { name: "general-log", flavour: Flavour::MySql, recognises: is_general_log, read: general_log::read },
    Form { name: "stderr", flavour: Flavour::Postgres, recognises: |_| true, read: stderr::read },
];

/// How a log is read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The encoding of its text.
    pub encoding: Encoding,
    /// `log_line_prefix` of a log on standard error; `None` tries the known ones.
    pub prefix: Option<String>,
}

/// The format of a log that begins with `lines`.
pub fn recognise(lines: &str) -> Option<&'static Form> {
    let first = lines.lines().find(|line| !line.is_empty() && !mysql::is_banner(line))?;
    FORMS.iter().find(|form| (form.recognises)(first))
}

fn is_csvlog(line: &str) -> bool {
    let zone = timestamp(line).and_then(|(_, rest)| Some(rest.split_once(',')?.0.trim_start()));
    zone.is_some_and(|zone| zone.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b':')))
}

fn is_server_audit(line: &str) -> bool {
    line.get(..8).is_some_and(|date| date.bytes().all(|it| it.is_ascii_digit())) && line.split(',').count() >= 9
}

fn is_general_log(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(time, _)| time.is_empty() || mysql::time(time).is_some())
}
