//! PostgreSQL's jsonlog (documentation, "Using JSON-Format Log Output"): one object per line.

use std::io::BufRead;

use serde::Deserialize;

use super::{Reading, postgres};
use crate::replay::{
    entry::{LogEnd, Problem, Sink},
    lines::{Lines, timestamp},
};

/// The used fields of a record.
#[derive(Deserialize)]
struct Record {
    timestamp: String,
    #[serde(default)]
    dbname: String,
    session_id: String,
    #[serde(default)]
    error_severity: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
    statement: Option<String>,
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
        let record: Record = match serde_json::from_str(&line.text) {
            Ok(record) => record,
            Err(_) if !line.whole => return Ok(LogEnd::Cut(line.number)),
            Err(error) => {
                let help = "the log is damaged here: take the part before this line, or the part behind the damage";
                return Err(Problem::new(line.number, format!("is not a record of a jsonlog: {error}"), help));
            }
        };
        let said = postgres::Said {
            line: line.number,
            session: record.session_id,
            database: record.dbname,
            at_us: timestamp(&record.timestamp).map(|(us, _)| us),
            severity: &record.error_severity,
            message: record.message,
            detail: &record.detail,
            statement: record.statement,
        };
        said.tell(sink)?;
    }
    Ok(LogEnd::Whole)
}
