//! RESP, the protocol of Redis, version 2: requests are written, replies are parsed in place.
//!
//! Source: Redis documentation, "Redis serialization protocol specification". Left out: version 3 with its pushed
//! messages, and inline commands.

use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{LONGEST_MESSAGE, decimal};

/// Longest simple line that is believed: errors quote commands, which are short here.
const LONGEST_LINE: usize = 64 * 1024;
/// Longest value that is believed; the server's own limit is its setting `proto-max-bulk-len`.
const LONGEST_VALUE: i64 = LONGEST_MESSAGE as i64;
/// Most elements of an array: no request of Tithe returns more than a few thousand.
const LONGEST_ARRAY: i64 = 1 << 20;
/// Most arrays in a reply: the list of commands has a few thousand.
const MOST_ARRAYS: usize = 1 << 16;

/// The beginning of a reply, or all of a reply that is not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head<'a> {
    /// A short text.
    Simple(&'a [u8]),
    /// The server's error.
    Error(&'a [u8]),
    /// A whole number.
    Integer(i64),
    /// A value; `None` is "no such value".
    Bulk(Option<&'a [u8]>),
    /// So many replies follow.
    Array(usize),
}

/// Reads replies one head after the other.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next head; `None` if it has not arrived completely.
    ///
    /// # Errors
    /// [`Fault::Protocol`] for bytes that are not RESP.
    #[inline]
    pub fn head(&mut self) -> Result<Option<Head<'a>>, Fault> {
        let Some((line, rest)) = split_line(self.0)? else { return Ok(None) };
        let Some((&kind, line)) = line.split_first() else { return Err(malformed("an empty line")) };
        let (head, rest) = match kind {
            b'+' => (Head::Simple(line), rest),
            b'-' => (Head::Error(line), rest),
            b':' => (Head::Integer(number(line)?), rest),
            b'$' => match number(line)? {
                -1 => (Head::Bulk(None), rest),
                length @ 0..=LONGEST_VALUE => {
                    let length = length as usize;
                    if rest.len() < length + 2 {
                        return Ok(None);
                    }
                    let (value, rest) = rest.split_at(length);
                    let rest = rest.strip_prefix(b"\r\n").ok_or_else(|| malformed("a value without its end"))?;
                    (Head::Bulk(Some(value)), rest)
                }
                length => return Err(malformed(&format!("a value of {length} bytes"))),
            },
            b'*' => match number(line)? {
                -1 => (Head::Bulk(None), rest),
                count @ 0..=LONGEST_ARRAY => (Head::Array(count as usize), rest),
                count => return Err(malformed(&format!("an array of {count}"))),
            },
            kind => return Err(malformed(&format!("a reply of type 0x{kind:02x}"))),
        };
        self.0 = rest;
        Ok(Some(head))
    }

    /// As [`Reader::head`], of a reply that [`complete`] has seen whole.
    ///
    /// # Errors
    /// As [`Reader::head`].
    #[inline]
    pub fn next(&mut self) -> Result<Head<'a>, Fault> {
        self.head()?.ok_or_else(|| malformed("a reply that ends early"))
    }

    /// A value; "no such value" is `None`.
    ///
    /// # Errors
    /// [`Fault::Protocol`] for anything else.
    #[inline]
    pub fn bulk(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        match self.next()? {
            Head::Bulk(value) => Ok(value),
            other => Err(unexpected(other)),
        }
    }
}

/// Length of the first complete reply in `bytes`, including nested arrays; `None` if it has not arrived.
///
/// # Errors
/// [`Fault::Protocol`] for bytes that are not RESP.
#[inline]
pub fn complete(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let mut reader = Reader(bytes);
    let (mut missing, mut arrays) = (1usize, 0);
    while missing > 0 {
        let Some(head) = reader.head()? else { return Ok(None) };
        missing -= 1;
        if let Head::Array(count) = head {
            missing = missing.saturating_add(count);
            arrays += 1;
            if arrays > MOST_ARRAYS {
                return Err(malformed("arrays in arrays without end"));
            }
        }
    }
    Ok(Some(bytes.len() - reader.0.len()))
}

/// A line without its end, and what follows it.
type Line<'a> = (&'a [u8], &'a [u8]);

/// The line at the start of `bytes`; `None` when its end has not arrived.
#[inline]
fn split_line(bytes: &[u8]) -> Result<Option<Line<'_>>, Fault> {
    let Some(end) = bytes.iter().take(LONGEST_LINE).position(|&byte| byte == b'\r') else {
        return if bytes.len() < LONGEST_LINE { Ok(None) } else { Err(malformed("a line without end")) };
    };
    match bytes.get(end + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((&bytes[..end], &bytes[end + 2..]))),
        Some(_) => Err(malformed("a line feed that is missing")),
    }
}

#[inline]
fn number(digits: &[u8]) -> Result<i64, Fault> {
    let (negative, digits) = match digits.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return Err(malformed("a number"));
    }
    let mut number = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(malformed("a number"));
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Ok(if negative { -number } else { number })
}

fn malformed(what: &str) -> Fault {
    Fault::Protocol(format!("the server does not speak RESP: {what}"))
}

/// An error for a reply that is not allowed at this point.
pub fn unexpected(head: Head<'_>) -> Fault {
    let what = match head {
        Head::Simple(text) => format!("`{}`", text.escape_ascii()),
        Head::Error(text) => return error(text),
        Head::Integer(number) => number.to_string(),
        Head::Bulk(None) => "nothing".to_owned(),
        Head::Bulk(Some(value)) => format!("a value of {} bytes", value.len()),
        Head::Array(count) => format!("an array of {count}"),
    };
    Fault::Protocol(format!("the reply {what} has no place here"))
}

/// An error of the server as a fault: a denied login or command is [`Fault::Refused`].
pub fn error(text: &[u8]) -> Fault {
    const REFUSALS: [&[u8]; 5] = [b"NOAUTH", b"WRONGPASS", b"NOPERM", b"DENIED", b"ERR AUTH"];
    let words = said(text);
    if REFUSALS.iter().any(|refusal| text.starts_with(refusal)) { Fault::Refused(words) } else { Fault::Server(words) }
}

/// Begins a command of `parts` parts.
#[inline]
pub fn put_command(out: &mut Vec<u8>, parts: usize) {
    out.push(b'*');
    decimal::put(out, parts);
    out.extend_from_slice(b"\r\n");
}

/// Adds a part that consists of two pieces: a prefix and what follows it.
#[inline]
pub fn put_part(out: &mut Vec<u8>, prefix: &[u8], rest: &[u8]) {
    out.push(b'$');
    decimal::put(out, prefix.len() + rest.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(prefix);
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reply as the server would write it.
    fn reply() -> impl Strategy<Value = Vec<u8>> {
        let leaf = prop_oneof![
            "[ -~]{0,20}".prop_map(|text| format!("+{text}\r\n").into_bytes()),
            "[ -~]{0,20}".prop_map(|text| format!("-{text}\r\n").into_bytes()),
            (-1_000_000i64..1_000_000).prop_map(|number| format!(":{number}\r\n").into_bytes()),
            Just(b"$-1\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(|value| {
                let mut out = Vec::new();
                put_part(&mut out, b"", &value);
                out
            }),
        ];
        leaf.prop_recursive(3, 30, 5, |inner| {
            proptest::collection::vec(inner, 0..5)
                .prop_map(|parts| [format!("*{}\r\n", parts.len()).into_bytes(), parts.concat()].concat())
        })
    }

    proptest! {
        #[test]
        fn a_reply_is_whole_exactly_at_its_end(reply in reply(), more in proptest::collection::vec(any::<u8>(), 0..9)) {
            for cut in 0..reply.len() {
                prop_assert_eq!(complete(&reply[..cut]).expect("the start of a reply"), None);
            }
            let followed = [&reply[..], &more[..]].concat();
            prop_assert_eq!(complete(&followed).expect("a reply"), Some(reply.len()));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = complete(&bytes);
        }

        #[test]
        fn almost_replies_never_panic(mut reply in reply(), at in any::<prop::sample::Index>(), byte: u8) {
            let at = at.index(reply.len());
            reply[at] = byte;
            let _ = complete(&reply);
        }

        #[test]
        fn a_written_part_is_read_back(prefix in ".{0,9}", rest in proptest::collection::vec(any::<u8>(), 0..1200)) {
            let mut out = Vec::new();
            put_command(&mut out, 1);
            put_part(&mut out, prefix.as_bytes(), &rest);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.next().expect("a command"), Head::Array(1));
            let value = [prefix.as_bytes(), &rest].concat();
            prop_assert_eq!(reader.bulk().expect("a part"), Some(&value[..]));
            prop_assert!(reader.0.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_a_reply_is_refused_at_once() {
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"$9999999999\r\n", b"*99999999\r\n", b":1x\r\n", b"+a\rb"]
        {
            assert!(matches!(complete(bytes), Err(Fault::Protocol(_))), "{}", bytes.escape_ascii());
        }
        assert!(matches!(complete(&[b'+'; LONGEST_LINE + 1]), Err(Fault::Protocol(_))));
    }
}
