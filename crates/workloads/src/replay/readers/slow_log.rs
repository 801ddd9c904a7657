//! The slow log of MariaDB and MySQL: a head of lines with `#`, then the statement. With `long_query_time = 0` it has
//! every statement with its duration.

use std::io::BufRead;

use super::{Reading, mysql};
use crate::replay::{
    entry::{Entry, Event, LogEnd, Problem, Sink},
    lines::{LONGEST, Lines, duration_ns, is_clock, too_long},
};

#[derive(Default)]
struct Open {
    line: u64,
    session: String,
    database: String,
    duration_ns: Option<u64>,
    failed: bool,
    text: String,
    /// True after the head.
    in_text: bool,
}

/// Reads the log.
///
/// # Errors
/// A statement without a head, a record without a connection.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let mut lines = Lines::new(input, reading.encoding);
    let mut open: Option<Open> = None;
    let mut at_us = None;
    while let Some(line) = lines.next()? {
        let first = open.as_ref().map_or(line.number, |open| open.line);
        if !line.whole && !line.text.ends_with(';') {
            return Ok(LogEnd::Cut(first));
        }
        if mysql::is_banner(&line.text) {
            continue;
        }
        let in_head = open.as_ref().is_some_and(|open| !open.in_text);
        if let Some(head) = head(&line.text, in_head) {
            if open.as_ref().is_some_and(|open| open.in_text) {
                close(open.take(), at_us, sink)?;
            }
            if let Some(time) = head.strip_prefix("Time: ") {
                at_us = mysql::time(time).or(at_us);
                continue;
            }
            let open = open.get_or_insert_with(|| Open { line: line.number, ..Open::default() });
            tell_head(open, head);
            continue;
        }
        let Some(open) = &mut open else {
            let help = "the log begins in the middle of a record, or is of another kind: begin with `# User@Host:`";
            return Err(Problem::new(line.number, "is not a line of a slow log", help));
        };
        if !open.in_text && line.text.starts_with("use ") {
            open.database = line.text[4..].trim_matches(['`', ';', ' ']).to_owned();
            continue;
        }
        if !open.in_text
            && let Some(seconds) = seconds_of(&line.text)
        {
            at_us = at_us.or(is_clock(seconds).then_some((seconds * 1e6) as i64));
            open.in_text = true;
            continue;
        }
        open.in_text = true;
        if !open.text.is_empty() {
            open.text.push('\n');
        }
        open.text.push_str(&line.text);
        if open.text.len() as u64 > LONGEST {
            return Err(too_long(open.line));
        }
    }
    close(open, at_us, sink)?;
    Ok(LogEnd::Whole)
}

/// The seconds since 1970 of the line that the server writes between a head and its statement: `SET timestamp=1;`, with
/// the values of the session that the statement used: `SET last_insert_id=5,insert_id=7,timestamp=1;`.
fn seconds_of(line: &str) -> Option<f64> {
    let (before, seconds) = line.strip_prefix("SET ")?.strip_suffix(';')?.split_once("timestamp=")?;
    let is_written =
        |part: &str| part.is_empty() || part.starts_with("last_insert_id=") || part.starts_with("insert_id=");
    if !before.split(',').all(is_written) {
        return None;
    }
    seconds.parse().ok()
}

/// The text after `# ` in a line of a head; `None` for a line of a statement, in which `#` begins a comment. A line
/// `in_head` is between the first line of a head and its statement.
fn head(line: &str, in_head: bool) -> Option<&str> {
    const HEADS: [&str; 24] = [
        "Time: ",
        "User@Host: ",
        "Thread_id: ",
        "Query_time: ",
        "Rows_affected: ",
        "Rows_sent: ",
        "Bytes_sent: ",
        "Full_scan: ",
        "Filesort: ",
        "Filesort_passes: ",
        "QC_Hit: ",
        "Tmp_tables: ",
        "Tmp_table_sizes: ",
        "InnoDB_",
        "Schema: ",
        "Stored_routine: ",
        "Stored routine: ",
        "explain: ",
        "Priority_queue: ",
        "Pages_accessed: ",
        "Pages_read_time: ",
        "Engine_time: ",
        "Log_slow_rate",
        "administrator command: ",
    ];
    if in_head {
        // Products have lines of their own: `# No InnoDB statistics available for this query`, `#` around a plan.
        return line.strip_prefix('#').map(str::trim_start);
    }
    let rest = line.strip_prefix("# ")?;
    HEADS.iter().any(|head| rest.starts_with(head)).then_some(rest)
}

fn tell_head(open: &mut Open, head: &str) {
    if head.starts_with("administrator command: ") {
        open.in_text = true;
        return;
    }
    if head.starts_with("User@Host: ") {
        if let Some((_, id)) = head.rsplit_once(" Id:") {
            open.session = id.trim().to_owned();
        }
        return;
    }
    let mut words = head.split_ascii_whitespace().peekable();
    while let Some(name) = words.next() {
        // An empty value is followed by the next name: `Schema:   QC_hit: No`.
        let Some(value) = words.next_if(|word| !word.ends_with(':')) else { continue };
        match name {
            "Thread_id:" => open.session = value.to_owned(),
            "Schema:" => open.database = value.to_owned(),
            "Query_time:" => open.duration_ns = duration_ns(value, 1e9),
            // MySQL's `log_slow_extra`.
            "Errno:" => open.failed = value != "0",
            _ => {}
        }
    }
}

fn close(open: Option<Open>, at_us: Option<i64>, sink: Sink<'_>) -> Result<(), Problem> {
    let Some(Open { line, session, database, duration_ns, failed, text, .. }) = open else { return Ok(()) };
    if text.is_empty() {
        return Ok(());
    }
    if session.is_empty() {
        let help = "a log without connections cannot be replayed by session: take one that has `Thread_id` or `Id`";
        return Err(Problem::new(line, "does not say which connection sent the statement", help));
    }
    let sql = text.strip_suffix(';').unwrap_or(&text).to_owned();
    // The record is written when the statement ends.
    let at_us = at_us.map(|us| us.saturating_sub_unsigned(duration_ns.unwrap_or(0) / 1000));
    // A statement without a duration waits for the next entry, which says that it failed.
    let event = mysql::statement(sql, duration_ns.filter(|_| !failed));
    let entry = Entry { line, session, database, at_us, event };
    if failed {
        sink(entry.clone())?;
        return sink(Entry { event: Event::Failed(None), ..entry });
    }
    sink(entry)
}
