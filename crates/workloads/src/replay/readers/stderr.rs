//! PostgreSQL's log as text, on standard error or in a file: lines with a prefix, and continuation lines that begin
//! with a tab.

use std::io::BufRead;

use super::{
    Reading, postgres,
    prefix::{KNOWN, Prefix},
};
use crate::replay::{
    entry::{LogEnd, Problem, Sink},
    lines::{LONGEST, Line, Lines, too_long},
};

/// A record whose further lines may follow: its message, its details, its statement.
struct Open {
    line: u64,
    session: String,
    database: String,
    at_us: Option<i64>,
    severity: String,
    message: String,
    detail: String,
    statement: Option<String>,
    /// The part that the line before belongs to.
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    Other,
}

/// Reads the log.
///
/// # Errors
/// The first line that does not have the prefix.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let mut lines = Lines::new(input, reading.encoding);
    let (mut prefix, mut first) = (None, String::new());
    let mut open: Option<Open> = None;
    let mut is_made = true;
    while let Some(line) = lines.next()? {
        // The container image makes a cluster with a server of its own before the first start.
        is_made &= !line.text.starts_with(MAKING_BEGINS);
        if !is_made {
            is_made = line.text.starts_with(MAKING_ENDS);
            continue;
        }
        if let (Some(open), true) = (&mut open, line.text.starts_with('\t')) {
            go_on(open, &line)?;
            if !line.whole {
                return Ok(LogEnd::Cut(open.line));
            }
            continue;
        }
        if line.whole && is_of_image(&line.text) {
            continue;
        }
        if prefix.is_none() {
            prefix = Some(prefix_of(&line.text, line.number, reading)?);
            first.clone_from(&line.text);
        }
        let mut found = prefix.as_ref().and_then(|prefix: &Prefix| prefix.find(&line.text));
        if found.is_none()
            && let Some(other) = other_prefix(&first, &line.text, reading)
        {
            found = other.find(&line.text);
            prefix = Some(other);
        }
        let Some(found) = found else {
            if !line.whole {
                if let Some(open) = open.take() {
                    close(open, sink)?;
                }
                return Ok(LogEnd::Cut(line.number));
            }
            return Err(foreign(line.number, reading));
        };
        let goes_on = open.as_mut().filter(|open| open.session == found.session);
        let part = match (found.severity, goes_on) {
            ("DETAIL" | "HINT" | "STATEMENT" | "CONTEXT" | "LOCATION", Some(open)) => {
                open.part = match found.severity {
                    "DETAIL" => Part::Detail,
                    "STATEMENT" => Part::Statement,
                    _ => Part::Other,
                };
                match open.part {
                    Part::Detail => open.detail = found.message.to_owned(),
                    Part::Statement => open.statement = Some(found.message.to_owned()),
                    Part::Message | Part::Other => {}
                }
                true
            }
            _ => false,
        };
        if !line.whole {
            let first = if part { open.map_or(line.number, |open| open.line) } else { line.number };
            return Ok(LogEnd::Cut(first));
        }
        if part {
            continue;
        }
        let begun = Open {
            line: line.number,
            session: found.session.to_owned(),
            database: found.database.to_owned(),
            at_us: found.at_us,
            severity: found.severity.to_owned(),
            message: without_state(found.message).to_owned(),
            detail: String::new(),
            statement: None,
            part: Part::Message,
        };
        if let Some(before) = open.replace(begun) {
            close(before, sink)?;
        }
    }
    open.map_or(Ok(()), |open| close(open, sink))?;
    Ok(LogEnd::Whole)
}

/// Adds a continuation line to its part.
fn go_on(open: &mut Open, line: &Line) -> Result<(), Problem> {
    let text = match open.part {
        Part::Message => &mut open.message,
        Part::Detail => &mut open.detail,
        Part::Statement => open.statement.get_or_insert_default(),
        Part::Other => return Ok(()),
    };
    text.push('\n');
    text.push_str(&line.text[1..]);
    if text.len() as u64 > LONGEST { Err(too_long(open.line)) } else { Ok(()) }
}

fn close(open: Open, sink: Sink<'_>) -> Result<(), Problem> {
    let Open { line, session, database, at_us, severity, message, detail, statement, part: _ } = open;
    let said =
        postgres::Said { line, session, database, at_us, severity: &severity, message, detail: &detail, statement };
    said.tell(sink)
}

/// The first and the last line that PostgreSQL's container image prints when it makes a cluster.
const MAKING_BEGINS: &str = "The files belonging to this database system will be owned by user";
const MAKING_ENDS: &str = "PostgreSQL init process complete; ready for start up.";

/// True for the lines that container images print at each start; those of Bitnami's have colours. A blank line of a
/// statement begins with a tab.
fn is_of_image(line: &str) -> bool {
    let begins = ["PostgreSQL Database directory appears to contain a database", "\u{1b}["];
    line.is_empty() || begins.iter().any(|begin| line.starts_with(begin))
}

/// The given prefix, or the known one that matches the first line.
fn prefix_of(first: &str, line: u64, reading: &Reading) -> Result<Prefix, Problem> {
    let fits = |prefix: &Prefix| prefix.find(first).is_some();
    match &reading.prefix {
        Some(written) => {
            let prefix = Prefix::parse(written).map_err(|why| {
                Problem::new(line, format!("the prefix {written:?} {why}"), "write the server's own log_line_prefix")
            })?;
            if fits(&prefix) { Ok(prefix) } else { Err(foreign(line, reading)) }
        }
        None => {
            let mut known = KNOWN.iter().filter_map(|known| Prefix::parse(known).ok());
            known.find(fits).ok_or_else(|| foreign(line, reading))
        }
    }
}

/// Another known prefix, which `line` and the `first` line have: several match a first line that is of no session.
fn other_prefix(first: &str, line: &str, reading: &Reading) -> Option<Prefix> {
    let known = KNOWN.iter().filter(|_| reading.prefix.is_none());
    let mut known = known.filter_map(|known| Prefix::parse(known).ok());
    known.find(|prefix| prefix.find(first).is_some() && prefix.find(line).is_some())
}

/// `message` without the SQLSTATE that `log_error_verbosity = verbose` puts before it: `00000: duration: …`.
fn without_state(message: &str) -> &str {
    let is_state = |word: &str| {
        // `AUDIT` is none.
        let is_part = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        word.len() == 5 && word.bytes().all(is_part) && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    match message.split_once(": ") {
        Some((word, rest)) if is_state(word) => rest,
        _ => message,
    }
}

/// A line with another prefix than the log should have.
fn foreign(line: u64, reading: &Reading) -> Problem {
    let what = match &reading.prefix {
        Some(prefix) => format!("does not begin with the prefix {prefix:?}"),
        None => "does not begin with the prefix of the lines before, or with one that is known".to_owned(),
    };
    let help = "write `prefix = \"…\"` as `SHOW log_line_prefix` prints it; the log must be of one server, with \
                lc_messages in English";
    Problem::new(line, what, help)
}
