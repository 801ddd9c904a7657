//! The text protocol of memcached: requests are written, answers are parsed in place.
//!
//! Source: memcached, `doc/protocol.txt` (1.6). Left out: the binary protocol, meta commands, and UDP.

use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{LONGEST_MESSAGE, decimal};

/// Longest line that is accepted: keys have at most 250 bytes, errors and list entries not many more.
const LONGEST_LINE: usize = 8 * 1024;
/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// An item.
    Value {
        /// Its key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Any other line, without its end.
    Line(&'a [u8]),
}

/// The first complete part of `bytes` and its length; `None` if it has not arrived.
///
/// # Errors
/// [`Fault::Protocol`] for bytes that memcached never sends.
#[inline]
pub fn part(bytes: &[u8]) -> Result<Option<(Part<'_>, usize)>, Fault> {
    let Some(end) = bytes.iter().take(LONGEST_LINE).position(|&byte| byte == b'\n') else {
        return if bytes.len() < LONGEST_LINE { Ok(None) } else { Err(malformed("a line without end")) };
    };
    // Lines of a dump of keys end without a carriage return.
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let rest = &bytes[end + 1..];
    let Some(value) = line.strip_prefix(b"VALUE ") else { return Ok(Some((Part::Line(line), end + 1))) };
    let mut words = value.split(|&byte| byte == b' ');
    let (key, _flags, length) = (words.next().unwrap_or_default(), words.next(), words.next().and_then(number));
    let length = length.ok_or_else(|| malformed("the length of a value"))?;
    if length > LONGEST_MESSAGE {
        return Err(malformed(&format!("a value of {length} bytes")));
    }
    if rest.len() < length + 2 {
        return Ok(None);
    }
    if &rest[length..length + 2] != b"\r\n" {
        return Err(malformed("a value without its end"));
    }
    Ok(Some((Part::Value { key, value: &rest[..length] }, end + 1 + length + 2)))
}

/// A whole number.
#[inline]
pub fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + usize::from(digit - b'0')))
}

fn malformed(what: &str) -> Fault {
    Fault::Protocol(format!("the server does not speak memcached's text protocol: {what}"))
}

/// An error for a line that is not allowed at this point.
pub fn unexpected(line: &[u8]) -> Fault {
    error(line).unwrap_or_else(|| Fault::Protocol(format!("the answer `{}` has no place here", line.escape_ascii())))
}

/// The fault of an error line, `None` for any other line. A refused login is [`Fault::Refused`].
pub fn error(line: &[u8]) -> Option<Fault> {
    const REFUSALS: [&[u8]; 2] = [b"CLIENT_ERROR unauthenticated", b"CLIENT_ERROR authentication failure"];
    let is_error = line == b"ERROR" || line.starts_with(b"CLIENT_ERROR") || line.starts_with(b"SERVER_ERROR");
    is_error.then(|| {
        let words = said(line);
        if REFUSALS.contains(&line) { Fault::Refused(words) } else { Fault::Server(words) }
    })
}

/// Writes a request that stores `value`: `verb` is `set`, `add` or `replace`, and `key` is given in pieces.
#[inline]
pub fn put_store(out: &mut Vec<u8>, verb: &[u8], key: [&[u8]; 3], value: &[u8]) {
    out.extend_from_slice(verb);
    out.push(b' ');
    key.iter().for_each(|piece| out.extend_from_slice(piece));
    // Neither flags nor a time at which it ends.
    out.extend_from_slice(b" 0 0 ");
    decimal::put(out, value.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer as the server would write it.
    fn answer() -> impl Strategy<Value = Vec<u8>> {
        let line = "[A-Z_a-z0-9 ]{0,20}".prop_map(|text| format!("x{text}\r\n").into_bytes());
        let value = ("[a-z:0-9]{1,20}", proptest::collection::vec(any::<u8>(), 0..300)).prop_map(|(key, value)| {
            let head = format!("VALUE {key} 0 {}\r\n", value.len());
            [head.as_bytes(), &value, b"\r\n"].concat()
        });
        prop_oneof![line, value]
    }

    proptest! {
        #[test]
        fn a_part_is_whole_exactly_at_its_end(answer in answer(), more in proptest::collection::vec(any::<u8>(), 0..9)) {
            for cut in 0..answer.len() {
                prop_assert_eq!(part(&answer[..cut]).expect("the start of an answer"), None);
            }
            let followed = [&answer[..], &more[..]].concat();
            prop_assert_eq!(part(&followed).expect("an answer").map(|(_, length)| length), Some(answer.len()));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = part(&bytes);
        }

        #[test]
        fn almost_answers_never_panic(mut answer in answer(), at in any::<prop::sample::Index>(), byte: u8) {
            let at = at.index(answer.len());
            answer[at] = byte;
            let _ = part(&answer);
        }

        #[test]
        fn what_is_stored_has_its_length(value in proptest::collection::vec(any::<u8>(), 0..1200)) {
            let mut out = Vec::new();
            put_store(&mut out, b"set", [b"a", b":", b"b"], &value);
            let head = format!("set a:b 0 0 {}\r\n", value.len());
            prop_assert_eq!(out, [head.as_bytes(), &value, b"\r\n"].concat());
        }
    }

    #[test]
    fn what_cannot_be_an_answer_is_refused_at_once() {
        for bytes in [&b"VALUE a 0 x\r\n"[..], b"VALUE a 0\r\n", b"VALUE a 0 99999999999\r\n", b"VALUE a 0 1\r\nxyz"] {
            assert!(matches!(part(bytes), Err(Fault::Protocol(_))), "{}", bytes.escape_ascii());
        }
        assert!(matches!(part(&[b'x'; LONGEST_LINE + 1]), Err(Fault::Protocol(_))));
    }
}
