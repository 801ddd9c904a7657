//! The general log of MariaDB and MySQL: a time, a connection, a command and its argument, which may have several
//! lines. It has no durations.

use std::io::BufRead;

use super::{Reading, mysql};
use crate::replay::{
    entry::{Entry, Event, LogEnd, Problem, Sink},
    lines::{LONGEST, Lines, too_long},
};

/// Commands that the server writes (`sql_parse.cc`, names of commands).
const COMMANDS: [&str; 34] = [
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed insert",
    "Change user",
    "Binlog Dump",
    "Binlog Dump GTID",
    "Table Dump",
    "Connect Out",
    "Register Slave",
    "Register Replica",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Bulk_execute",
    "Reset Connection",
];

/// The beginning of a line.
struct Head<'l> {
    at_us: Option<i64>,
    connection: &'l str,
    command: &'l str,
    argument: &'l str,
}

struct Open {
    line: u64,
    at_us: Option<i64>,
    connection: String,
    command: String,
    argument: String,
}

/// Reads the log.
///
/// # Errors
/// A line before the first command that is no head of a log.
pub fn read(input: &mut dyn BufRead, reading: &Reading, sink: Sink<'_>) -> Result<LogEnd, Problem> {
    let mut lines = Lines::new(input, reading.encoding);
    let mut open: Option<Open> = None;
    let mut at_us = None;
    while let Some(line) = lines.next()? {
        if mysql::is_banner(&line.text) {
            if let Some(open) = open.take() {
                close(open, sink)?;
            }
            continue;
        }
        match (head(&line.text), &mut open) {
            (Some(head), _) => {
                at_us = head.at_us.or(at_us);
                let begun = Open {
                    line: line.number,
                    at_us,
                    connection: head.connection.to_owned(),
                    command: head.command.to_owned(),
                    argument: head.argument.to_owned(),
                };
                if let Some(before) = open.replace(begun) {
                    close(before, sink)?;
                }
            }
            (None, Some(open)) => {
                open.argument.push('\n');
                open.argument.push_str(&line.text);
                if open.argument.len() as u64 > LONGEST {
                    return Err(too_long(open.line));
                }
            }
            (None, None) if !line.whole => return Ok(LogEnd::Cut(line.number)),
            (None, None) => {
                let help = "the log begins in the middle of a statement, or is of another kind: begin with a command";
                return Err(Problem::new(line.number, "is not a line of a general log", help));
            }
        }
        if !line.whole {
            return Ok(LogEnd::Cut(open.map_or(line.number, |open| open.line)));
        }
    }
    open.map_or(Ok(()), |open| close(open, sink))?;
    Ok(LogEnd::Whole)
}

fn close(open: Open, sink: Sink<'_>) -> Result<(), Problem> {
    let mut database = String::new();
    let event = match open.command.as_str() {
        "Connect" | "Change user" => {
            database = connected_to(&open.argument).to_owned();
            Event::Begins
        }
        "Init DB" => {
            database = open.argument.clone();
            Event::Begins
        }
        "Quit" => Event::Ends,
        // An Execute has its values in its text; a Prepare without execution has no effect.
        "Query" | "Execute" => {
            database = used_by(&open.argument).to_owned();
            mysql::statement(open.argument, None)
        }
        _ => return Ok(()),
    };
    sink(Entry { line: open.line, session: open.connection, database, at_us: open.at_us, event })
}

/// The database of `root@localhost on app using Socket`.
fn connected_to(argument: &str) -> &str {
    let behind = argument.split_once(" on ").map_or("", |(_, rest)| rest);
    behind.split(" using ").next().unwrap_or_default().trim()
}

/// The database that a statement `USE name` enters; empty for every other statement.
fn used_by(statement: &str) -> &str {
    let name = statement.split_at_checked(4).filter(|(word, _)| word.eq_ignore_ascii_case("use "));
    let name = name.map_or("", |(_, name)| name.trim_matches(['`', ';', ' ']));
    if name.contains(char::is_whitespace) { "" } else { name }
}

/// The head of a line: `261128  5:39:11\t     3 Connect\targument`, `2026-11-28T05:39:11.123456Z\t    3 Query\t…`, or
/// `\t\t     3 Query\t…`, which has the time of the line before.
fn head(line: &str) -> Option<Head<'_>> {
    let (before, rest) = line.split_once('\t')?;
    let at_us = if before.is_empty() { None } else { Some(mysql::time(before)?) };
    let rest = rest.strip_prefix('\t').unwrap_or(rest).trim_start_matches(' ');
    let (connection, rest) = rest.split_once(' ')?;
    if connection.is_empty() || !connection.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
    COMMANDS.contains(&command.trim()).then_some(Head { at_us, connection, command: command.trim(), argument })
}
