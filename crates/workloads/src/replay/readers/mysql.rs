//! Common parts of the logs of MariaDB and MySQL: the lines that a server writes when it starts, times, statements.

use crate::replay::{
    entry::{Event, Logged, Sent, Values},
    lines::{days, seconds, timestamp},
    sql::has_placeholder,
};

/// True for the lines that a server writes into a log when it opens it.
pub fn is_banner(line: &str) -> bool {
    line.contains(", Version: ") && line.ends_with("started with:")
        || line.starts_with("Tcp port: ")
        || line.starts_with("TCP Port: ")
        || line.starts_with("Time") && line.contains("Id Command") && line.ends_with("Argument")
}

/// µs of `261128  5:39:11`, or of `2026-11-28T05:39:11.123456Z`.
pub fn time(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some((us, _)) = timestamp(text) {
        return Some(us);
    }
    let (date, clock) = text.split_once(' ')?;
    let two = |from: usize| date.get(from..from + 2)?.parse::<i64>().ok();
    if date.len() != 6 {
        return None;
    }
    let mut parts = clock.trim_start().splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let day = days(2000 + two(0)?, two(2)?, two(4)?)?;
    (hour >= 0 && minute >= 0 && second >= 0).then_some(())?;
    Some((day * 86_400 + seconds(hour, minute, second)?) * 1_000_000)
}

/// A statement: its values are in its text, or missing from the log if it is a prepared one.
pub fn statement(sql: String, duration_ns: Option<u64>) -> Event {
    let values = if has_placeholder(&sql) { Values::Absent } else { Values::InText };
    Event::Statement(Logged { sql, values, duration_ns, sent: Sent::Text, audited: false, number: None })
}
