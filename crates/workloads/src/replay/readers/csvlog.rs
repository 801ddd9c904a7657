//! PostgreSQL's csvlog (documentation, "Using CSV-Format Log Output").

use std::io::{BufRead, Read};

use csv::{ByteRecord, ReaderBuilder};

use super::{Reading, postgres};
use crate::replay::{
    entry::{LogEnd, Problem, Sink},
    lines::{LONGEST, timestamp, too_long, unreadable},
};

/// Columns of PostgreSQL up to 12, of 13, and from 14 on.
const COLUMNS: [usize; 3] = [23, 24, 26];

const TIME: usize = 0;
const DATABASE: usize = 2;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const STATEMENT: usize = 19;

/// Reads the log.
///
/// # Errors
/// The first invalid record.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let bounded = Bounded { input, left: LONGEST, last: b'\n' };
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bounded);
    let (mut next, mut record) = (ByteRecord::new(), ByteRecord::new());
    let mut columns = None;
    let mut more = read_next(&mut reader, &mut next)?;
    while more {
        std::mem::swap(&mut record, &mut next);
        more = read_next(&mut reader, &mut next)?;
        let line = line_of(&record);
        let is_complete = COLUMNS.contains(&record.len());
        if !more && (!is_complete || reader.get_ref().last != b'\n') && !holds_records(&record) {
            return Ok(LogEnd::Cut(line));
        }
        let expected = *columns.get_or_insert(record.len());
        if !is_complete {
            return Err(damaged(line, record.len()));
        }
        if record.len() != expected {
            return Err(Problem::new(
                line,
                format!("has {} columns, and those before have {expected}: a server of another version", record.len()),
                "give the log of one server",
            ));
        }
        let text = |column: usize| reading.encoding.text(record.get(column).unwrap_or_default(), line);
        let at_us = timestamp(&text(TIME)?).map(|(us, _)| us);
        if at_us.is_none() {
            return Err(damaged(line, record.len()));
        }
        let said = postgres::Said {
            line,
            session: text(SESSION)?,
            database: text(DATABASE)?,
            at_us,
            severity: &text(SEVERITY)?,
            message: text(MESSAGE)?,
            detail: &text(DETAIL)?,
            statement: Some(text(STATEMENT)?).filter(|statement| !statement.is_empty()),
        };
        said.tell(sink)?;
    }
    Ok(LogEnd::Whole)
}

fn line_of(record: &ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn damaged(line: u64, columns: usize) -> Problem {
    let help = match line {
        1 => "the log begins within a record, or is of another form: begin with a record, or leave `form` out",
        _ => "the log is damaged here: take the part before this line, or the part behind the damage",
    };
    let what = format!("is not a record of a csvlog, which has 23, 24 or 26 columns: this one has {columns}");
    Problem::new(line, what, help)
}

/// True for a record that contains others because a quote is missing.
fn holds_records(record: &ByteRecord) -> bool {
    let begins =
        |line: &[u8]| std::str::from_utf8(line.get(..23).unwrap_or_default()).is_ok_and(|it| timestamp(it).is_some());
    record.iter().any(|field| field.split(|&byte| byte == b'\n').skip(1).any(begins))
}

fn read_next(reader: &mut csv::Reader<Bounded<'_>>, record: &mut ByteRecord) -> Result<bool, Problem> {
    reader.get_mut().left = LONGEST;
    let line = reader.position().line();
    let read = reader.read_byte_record(record);
    read.map_err(|error| if reader.get_ref().left == 0 { too_long(line) } else { unreadable(line, &error) })
}

/// A log in which a record's memory is limited.
struct Bounded<'i> {
    input: &'i mut dyn BufRead,
    /// Bytes that the record may still use.
    left: u64,
    /// The last byte that was read.
    last: u8,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other("the record does not end"));
        }
        let read = self.input.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        self.last = buffer[..read].last().copied().unwrap_or(self.last);
        Ok(read)
    }
}
