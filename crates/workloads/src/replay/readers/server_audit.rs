//! The log of MariaDB's server_audit plug-in: `time,host,user,client,connection,query,QUERY,database,'text',code`. It
//! has no durations.

use std::io::BufRead;

use super::{Reading, mysql};
use crate::replay::{
    entry::{Entry, Event, LogEnd, Problem, Sink, Values},
    lines::{Lines, days, seconds},
};

/// Lengths of texts that `server_audit_query_log_limit` cuts by default, bytes: 1024, less if an escaped character
/// would not fit.
const CUT: std::ops::RangeInclusive<usize> = 1020..=1024;

/// Reads the log.
///
/// # Errors
/// The first line that is no record.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let mut lines = Lines::new(input, reading.encoding);
    while let Some(line) = lines.next()? {
        if !line.whole {
            return Ok(LogEnd::Cut(line.number));
        }
        if line.text.is_empty() {
            continue;
        }
        let record = record(&line.text).ok_or_else(|| {
            let help = "the log is damaged here, or of another kind: a line is \
                        time,host,user,client,connection,query,operation,database,object,code";
            Problem::new(line.number, "is not a record of server_audit", help)
        })?;
        let event = match record.operation {
            "CONNECT" => Event::Begins,
            "DISCONNECT" => Event::Ends,
            name if name == "QUERY" || name.starts_with("QUERY_") => {
                let (text, whole) = unquoted(record.object);
                let mut event = mysql::statement(text, None);
                if let (Event::Statement(logged), false) = (&mut event, whole) {
                    logged.values = Values::Cut;
                }
                event
            }
            _ => continue,
        };
        let failed = matches!(event, Event::Statement(_)) && record.code != "0";
        let entry = Entry {
            line: line.number,
            session: record.connection.to_owned(),
            database: record.database.to_owned(),
            at_us: record.at_us,
            event,
        };
        sink(entry.clone())?;
        if failed {
            sink(Entry { event: Event::Failed(None), ..entry })?;
        }
    }
    Ok(LogEnd::Whole)
}

struct Record<'l> {
    at_us: Option<i64>,
    connection: &'l str,
    operation: &'l str,
    database: &'l str,
    object: &'l str,
    code: &'l str,
}

/// The fields of a line. Only the object may contain commas; it is then in quotes.
fn record(line: &str) -> Option<Record<'_>> {
    let mut fields = line.splitn(9, ',');
    let time = time(fields.next()?)?;
    let (_host, _user, _client) = (fields.next()?, fields.next()?, fields.next()?);
    let (connection, _query, operation, database) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let (object, code) = fields.next()?.rsplit_once(',')?;
    connection.bytes().all(|it| it.is_ascii_digit()).then_some(())?;
    Some(Record { at_us: Some(time), connection, operation, database, object, code })
}

/// µs of `20261128 05:39:11`; Amazon Aurora writes them as a number.
fn time(text: &str) -> Option<i64> {
    if text.len() == 16 && text.bytes().all(|it| it.is_ascii_digit()) {
        return text.parse().ok();
    }
    let number = |from: usize, to: usize| {
        text.get(from..to).filter(|digits| digits.bytes().all(|it| it.is_ascii_digit()))?.parse::<i64>().ok()
    };
    (text.len() == 17).then_some(())?;
    let day = days(number(0, 4)?, number(4, 6)?, number(6, 8)?)?;
    Some((day * 86_400 + seconds(number(9, 11)?, number(12, 14)?, number(15, 17)?)?) * 1_000_000)
}

/// The text in quotes, and whether it is complete.
fn unquoted(object: &str) -> (String, bool) {
    let inner = object.strip_prefix('\'').unwrap_or(object);
    let inner = inner.strip_suffix('\'').unwrap_or(inner);
    let whole = object.len() == inner.len() + 2 && !CUT.contains(&inner.len());
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        let plain = match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        text.push(plain);
    }
    (text, whole)
}
