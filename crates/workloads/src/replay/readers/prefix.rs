//! PostgreSQL's `log_line_prefix`: reads the fields of a line's prefix.

use crate::replay::lines::{is_clock, timestamp};

/// Prefixes that are tried if none is given: the default, Debian's, those of pgBadger's manual and of cloud providers,
/// and other common ones.
pub const KNOWN: [&str; 16] = [
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%t [%p]: [%l-1] ",
    "%t:%r:%u@%d:[%p]:",
    "%t-%c-",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%m [%p] %q[user=%u,db=%d,app=%a] ",
    "pid=%p,user=%u,db=%d,app=%a,client=%h ",
    "%t [%p-%l] %q%u@%d ",
    "%t [%p]: [%l-1] %q%u@%d ",
    "%h %m [%p] %q%u@%d ",
    "%t [%p]: ",
    "%t [%p] ",
];

/// A prefix, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A `%` with this letter.
    Escape(char),
    /// `%q`: processes without a session end here.
    SessionsOnly,
}

/// The fields of a line's prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found<'l> {
    /// Its session, or its process.
    pub session: &'l str,
    /// Its database.
    pub database: &'l str,
    /// Its time, µs.
    pub at_us: Option<i64>,
    /// `LOG`, `ERROR`, `DETAIL`, ….
    pub severity: &'l str,
    /// The rest.
    pub message: &'l str,
}

/// The words between a prefix and a message.
const SEVERITIES: [&str; 18] = [
    "LOG",
    "ERROR",
    "FATAL",
    "PANIC",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG",
    "DEBUG1",
    "DEBUG2",
    "DEBUG3",
    "DEBUG4",
    "DEBUG5",
    "DETAIL",
    "HINT",
    "STATEMENT",
    "CONTEXT",
    "LOCATION",
];

impl Prefix {
    /// Reads a prefix.
    ///
    /// # Errors
    /// One that does not distinguish sessions.
    pub fn parse(written: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut characters = written.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' {
                put_text(&mut parts, character);
                continue;
            }
            // A width may be in between: `%-10u`.
            while characters.next_if(|it| it.is_ascii_digit() || *it == '-').is_some() {}
            match characters.next() {
                Some('%') => put_text(&mut parts, '%'),
                Some('q') => parts.push(Part::SessionsOnly),
                Some(letter) => parts.push(Part::Escape(letter)),
                None => return Err("ends with a % that stands for nothing".to_owned()),
            }
        }
        let has = |letter| parts.contains(&Part::Escape(letter));
        if !has('p') && !has('c') {
            return Err("has neither %p nor %c, so it does not say which session a line is of".to_owned());
        }
        Ok(Self { parts })
    }

    /// The fields of `line`, if it begins with this prefix and a severity.
    pub fn find<'l>(&self, line: &'l str) -> Option<Found<'l>> {
        matched(&self.parts, line, Found::default())
    }
}

fn put_text(parts: &mut Vec<Part>, character: char) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(character),
        _ => parts.push(Part::Text(character.to_string())),
    }
}

/// The fields of `rest` according to `parts`. If a value may end at several places, the first one that lets the rest
/// match.
fn matched<'l>(parts: &[Part], rest: &'l str, mut found: Found<'l>) -> Option<Found<'l>> {
    let Some((part, others)) = parts.split_first() else { return severity(rest, found) };
    match part {
        Part::Text(text) => matched(others, rest.strip_prefix(text.as_str())?, found),
        Part::SessionsOnly => severity(rest, found.clone()).or_else(|| matched(others, rest, found)),
        Part::Escape(letter @ ('t' | 'm' | 's')) => {
            let (us, behind) = timestamp(rest)?;
            // The zone: a name, or hours from UTC.
            let zone = behind.strip_prefix(' ').unwrap_or(behind);
            let length = zone.bytes().take_while(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-')).count();
            if *letter != 's' {
                found.at_us = Some(us);
            }
            // In `%t-%c-` the dash behind the zone is the prefix's, in the zone `-03` its own.
            (0..=length).rev().find_map(|end| matched(others, &zone[end..], found.clone()))
        }
        Part::Escape(letter) => {
            let is_number = matches!(letter, 'p' | 'l' | 'x' | 'P' | 'Q');
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.find_map(|end| {
                let value = &rest[..end];
                if is_number && !value.trim().bytes().all(|it| it.is_ascii_digit() || it == b'-') {
                    return None;
                }
                if *letter == 'c' && !value.bytes().all(|it| it.is_ascii_hexdigit() || it == b'.') {
                    return None;
                }
                // A name, an address, `[local]`, or `10.0.0.7(5432)`.
                let is_of_host = |it: char| it.is_alphanumeric() || "[]._:-%()".contains(it);
                if matches!(letter, 'h' | 'r') && !value.chars().all(is_of_host) {
                    return None;
                }
                // A value ends before the next text of the prefix.
                if let Some(Part::Text(text)) = others.first() {
                    rest[end..].strip_prefix(text.as_str())?;
                }
                let mut found = found.clone();
                match letter {
                    'p' if found.session.is_empty() => found.session = value.trim(),
                    'c' => found.session = value,
                    'd' => found.database = value.trim(),
                    'n' => {
                        let seconds = value.parse().ok().filter(|seconds: &f64| is_clock(*seconds));
                        found.at_us = seconds.map(|seconds| (seconds * 1e6).round() as i64);
                    }
                    _ => {}
                }
                matched(others, &rest[end..], found)
            })
        }
    }
}

/// The severity with which `rest` begins, and the message after it.
fn severity<'l>(rest: &'l str, found: Found<'l>) -> Option<Found<'l>> {
    let (severity, message) = rest.split_once(':')?;
    let message = message.strip_prefix("  ")?;
    SEVERITIES.contains(&severity).then_some(Found { severity, message, ..found })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(prefix: &str, line: &str) -> String {
        match Prefix::parse(prefix).unwrap().find(line) {
            Some(found) => format!("{}|{}|{}|{}", found.session, found.database, found.severity, found.message),
            None => "-".to_owned(),
        }
    }

    #[test]
    fn a_line_is_read_by_its_prefix() {
        for (prefix, line, expected) in [
            ("%m [%p] %q%u@%d ", "2026-11-28 05:36:07.075 UTC [27632] postgres@app LOG:  a: b", "27632|app|LOG|a: b"),
            ("%m [%p] %q%u@%d ", "2026-11-28 05:36:07.075 UTC [27632] LOG:  up", "27632||LOG|up"),
            ("%m [%p] ", "2026-11-28 05:36:07.075 CET [1] ERROR:  x", "1||ERROR|x"),
            (
                "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
                "2026-11-28 05:36:07 UTC [7]: user=u,db=d,app=a, b,client=[local] LOG:  x",
                "7|d|LOG|x",
            ),
            ("%t-%c-", "2026-11-28 05:36:07 UTC-6b0a6bf0.6bf0-LOG:  x", "6b0a6bf0.6bf0||LOG|x"),
            ("%t-%p-", "2026-11-28 05:36:07 -03-7-LOG:  x", "7||LOG|x"),
            ("%c %-8u%%", "6b0a.6bf0 me      %LOG:  x", "6b0a.6bf0||LOG|x"),
            ("%m [%p] ", "no prefix LOG:  x", "-"),
            ("%m [%p] ", "2026-11-28 05:36:07.075 UTC [x] LOG:  x", "-"),
        ] {
            assert_eq!(told(prefix, line), expected, "{line}");
        }
        assert!(Prefix::parse("%m ").is_err());
        assert!(Prefix::parse("%p %").is_err());
    }

    proptest! {
        #[test]
        fn any_line_is_read_by_any_prefix(prefix in "[%a-z0-9 é-]{0,12}", line in "[ -~é]{0,60}") {
            if let Ok(prefix) = Prefix::parse(&prefix) {
                let _ = prefix.find(&line);
            }
        }
    }
}
