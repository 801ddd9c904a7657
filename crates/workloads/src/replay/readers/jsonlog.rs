//! PostgreSQL's jsonlog (documentation, "Using JSON-Format Log Output"): one object per line; and the log of
//! CloudNativePG (documentation, "Logging"), in which each object contains a record under the names of csvlog.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;

use super::{Reading, postgres};
use crate::replay::{
    entry::{LogEnd, Problem, Sink},
    lines::{Lines, timestamp},
};

/// The used fields of a record.
#[derive(Deserialize)]
struct Record {
    #[serde(alias = "log_time")]
    timestamp: String,
    #[serde(default, alias = "database_name")]
    dbname: String,
    session_id: String,
    #[serde(default)]
    error_severity: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
    #[serde(alias = "query")]
    statement: Option<String>,
    audit: Option<Audit>,
}

/// A record of pgaudit, which CloudNativePG takes out of the message.
#[derive(Deserialize)]
struct Audit {
    #[serde(default)]
    statement_id: String,
    substatement_id: String,
    #[serde(default)]
    statement: String,
    #[serde(default)]
    parameter: String,
}

impl Audit {
    /// The message from which it was taken, as far as it is read.
    fn message(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let (statement, parameter) = (quoted(&self.statement), quoted(&self.parameter));
        format!("AUDIT: SESSION,{},{},,,,,{statement},{parameter}", self.statement_id, self.substatement_id)
    }
}

/// A line of CloudNativePG.
#[derive(Deserialize)]
struct Line {
    /// [`RECORD`], or the message of another program.
    msg: String,
    record: Option<Value>,
}

/// The message of a line with a record of the server.
const RECORD: &str = "record";

/// The record in the line `text`; `None` if it is about another program of CloudNativePG.
fn record(text: &str) -> serde_json::Result<Option<Record>> {
    let plain = match serde_json::from_str(text) {
        Ok(record) => return Ok(Some(record)),
        Err(error) => error,
    };
    match serde_json::from_str(text) {
        Ok(Line { msg, record: Some(record) }) if msg == RECORD => serde_json::from_value(record).map(Some),
        Ok(_) => Ok(None),
        Err(_) => Err(plain),
    }
}

/// Reads the log.
///
/// # Errors
/// The first line that is no record.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let mut lines = Lines::new(input, reading.encoding);
    while let Some(line) = lines.next()? {
        if line.whole && line.text.is_empty() {
            continue;
        }
        let record = match record(&line.text) {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(_) if !line.whole => return Ok(LogEnd::Cut(line.number)),
            Err(error) => {
                let help = match error.is_data() {
                    true => "PostgreSQL's jsonlog and the log of CloudNativePG are read, and no other JSON",
                    false => "the log is damaged here: take the part before this line, or the part behind the damage",
                };
                return Err(Problem::new(line.number, format!("is not a record of a jsonlog: {error}"), help));
            }
        };
        let said = postgres::Said {
            line: line.number,
            session: record.session_id,
            database: record.dbname,
            at_us: timestamp(&record.timestamp).map(|(us, _)| us),
            severity: &record.error_severity,
            message: record.audit.map_or(record.message, |audit| audit.message()),
            detail: &record.detail,
            statement: record.statement.filter(|statement| !statement.is_empty()),
        };
        said.tell(sink)?;
    }
    Ok(LogEnd::Whole)
}
