//! Lines and texts of a log, read one at a time: a log may be larger than memory, and its end may be missing.

use std::io::{BufRead, Read};

use time::{Date, Month, OffsetDateTime};

use super::entry::Problem;

/// The longest line, bytes: longer than the longest statement that PostgreSQL and MariaDB take by default.
pub const LONGEST: u64 = 64 << 20;

/// The encoding of a log's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// ISO 8859-1, each byte a character.
    Latin1,
}

impl Encoding {
    /// The text of `bytes`, which are at `line`.
    ///
    /// # Errors
    /// A byte that is not UTF-8.
    pub fn text(self, bytes: &[u8], line: u64) -> Result<String, Problem> {
        match self {
            Self::Latin1 => Ok(bytes.iter().copied().map(char::from).collect()),
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(error) => {
                    let before = &bytes[..error.valid_up_to()];
                    let line = line + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
                    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
                    Err(Problem::new(
                        line,
                        format!("the byte 0x{byte:02x} is not UTF-8"),
                        "write `encoding = \"latin1\"` if the server's database is in LATIN1",
                    ))
                }
            },
        }
    }
}

/// The lines of a log.
pub struct Lines<R> {
    input: R,
    encoding: Encoding,
    number: u64,
    buffer: Vec<u8>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its text without the end of the line.
    pub text: String,
    /// False for the last line of a log if its end is missing.
    pub whole: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R, encoding: Encoding) -> Self {
        Self { input, encoding, number: 0, buffer: Vec::new() }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// A line that is too long or not text, a file that cannot be read.
    pub fn next(&mut self) -> Result<Option<Line>, Problem> {
        self.buffer.clear();
        self.number += 1;
        let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|error| unreadable(self.number, &error))?;
        if read == 0 {
            return Ok(None);
        }
        let whole = self.buffer.last() == Some(&b'\n');
        if !whole && read as u64 == LONGEST {
            return Err(too_long(self.number));
        }
        let mut bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if self.number == 1 {
            bytes = bytes.strip_prefix(tithe_model::catalogue::BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        match self.encoding.text(bytes, self.number) {
            Ok(text) => Ok(Some(Line { number: self.number, text, whole })),
            // The log may have been cut within a character.
            Err(_) if !whole => Ok(Some(Line { number: self.number, text: String::new(), whole })),
            Err(problem) => Err(problem),
        }
    }
}

/// A file that cannot be read further.
pub fn unreadable(line: u64, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(line, format!("cannot be read: {error}"), "copy the log to a local disk and try again")
}

/// A record that does not end.
pub fn too_long(line: u64) -> Problem {
    Problem::new(
        line,
        format!("the record is longer than {} MB: its end is missing", LONGEST >> 20),
        "the log is damaged here: take the part before this line, or the part behind the damage",
    )
}

/// µs of `2026-11-28 05:36:06.764`, also with `T` in between and more or fewer digits after the point, and the rest of
/// the text. The zone is not part of it.
pub fn timestamp(text: &str) -> Option<(i64, &str)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to).filter(|digits| digits.bytes().all(|it| it.is_ascii_digit()))?;
        digits.parse().ok()
    };
    let is = |at: usize, expected: &[u8]| bytes.get(at).is_some_and(|byte| expected.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b" T") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let seconds = seconds(number(11, 13)?, number(14, 16)?, number(17, 19)?)?;
    let mut rest = text.get(19..)?;
    let mut us = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        for digit in fraction.bytes().take(digits.min(6)).chain(std::iter::repeat_n(b'0', 6 - digits.min(6))) {
            us = us * 10 + i64::from(digit - b'0');
        }
        rest = &fraction[digits..];
    }
    Some(((days * 86_400 + seconds) * 1_000_000 + us, rest))
}

/// Days since 1970 of a date.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(year.try_into().ok()?, month, day.try_into().ok()?).ok()?;
    Some((date - OffsetDateTime::UNIX_EPOCH.date()).whole_days())
}

/// Seconds of a day.
pub fn seconds(hour: i64, minute: i64, second: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// The longest time of a statement, ns: eleven days. A damaged log may have any number, and sums must not overflow.
const LONGEST_NS: f64 = 1e15;

/// ns of `0.079`, in units of `unit_ns` ns.
pub fn duration_ns(text: &str, unit_ns: f64) -> Option<u64> {
    let value: f64 = text.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((value * unit_ns).min(LONGEST_NS).round() as u64)
}

/// True for seconds since 1970 that a clock shows: up to the year 5138.
pub fn is_clock(seconds: f64) -> bool {
    (0.0..=1e11).contains(&seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_microseconds_since_1970() {
        assert_eq!(timestamp("1970-01-01 00:00:00 UTC"), Some((0, " UTC")));
        assert_eq!(timestamp("2026-11-28 05:36:06.764 UTC"), Some((1_795_844_166_764_000, " UTC")));
        assert_eq!(timestamp("2024-02-29T12:00:00.1234567Z"), Some((1_709_208_000_123_456, "Z")));
        for text in ["", "2026-13-01 00:00:00", "2026-01-01 25:00:00", "2026-01-01", "é026-01-01 00:00:00"] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_says_whether_its_end_is_there() {
        let mut lines = Lines::new(&b"\xef\xbb\xbfone\r\ntwo"[..], Encoding::Utf8);
        assert_eq!(lines.next().unwrap(), Some(Line { number: 1, text: "one".to_owned(), whole: true }));
        assert_eq!(lines.next().unwrap(), Some(Line { number: 2, text: "two".to_owned(), whole: false }));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused_by_line_or_read_as_latin1() {
        let log = b"one\ncaf\xe9\n";
        let mut lines = Lines::new(&log[..], Encoding::Utf8);
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap_err().to_string(), "line 2: the byte 0xe9 is not UTF-8");
        let mut lines = Lines::new(&log[..], Encoding::Latin1);
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap().unwrap().text, "café");
    }
}
