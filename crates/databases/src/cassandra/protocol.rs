//! Version 4 of the protocol of CQL: frames are written, and parsed in place.
//!
//! Source: Apache Cassandra, "CQL BINARY PROTOCOL v4" (`native_protocol_v4.spec`); section numbers below are its own.
//! Left out: compression, events, batches, paging, and the checksummed frames of version 5. Those protect against
//! broken networks, and every server that has them also accepts clients without them.

use std::ops::Range;

use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{Cursor, Format, LONGEST_MESSAGE};

/// Kinds of messages (section 2.4).
pub mod opcode {
    /// The server's error.
    pub const ERROR: u8 = 0x00;
    /// The client's first message.
    pub const STARTUP: u8 = 0x01;
    /// The server needs no password.
    pub const READY: u8 = 0x02;
    /// Requests authentication.
    pub const AUTHENTICATE: u8 = 0x03;
    /// One statement as text.
    pub const QUERY: u8 = 0x07;
    /// An answer.
    pub const RESULT: u8 = 0x08;
    /// Prepare a statement.
    pub const PREPARE: u8 = 0x09;
    /// Execute a prepared statement.
    pub const EXECUTE: u8 = 0x0a;
    /// The client's credentials.
    pub const AUTH_RESPONSE: u8 = 0x0f;
    /// The credentials are right.
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// Version byte of a client's frames.
const REQUEST: u8 = 0x04;
/// Version byte of a server's frames.
const RESPONSE: u8 = 0x84;
/// Length of a frame's header (section 2).
const HEADER: usize = 9;
/// Longest body of a request: the protocol's own limit (section 2.5).
const LONGEST_BODY: usize = 256 << 20;

/// Parts of a frame's body that come before the message (section 2.2).
mod frame_flag {
    pub const COMPRESSED: u8 = 0x01;
    pub const TRACED: u8 = 0x02;
    pub const PAYLOAD: u8 = 0x04;
    pub const WARNINGS: u8 = 0x08;
}

/// Kinds of results (section 4.2.5).
mod result_kind {
    pub const ROWS: u32 = 2;
    pub const PREPARED: u32 = 4;
}

/// What the description of rows contains (section 4.2.5.2).
mod metadata_flag {
    pub const GLOBAL_TABLE: u32 = 0x01;
    pub const MORE_PAGES: u32 = 0x02;
    pub const NO_METADATA: u32 = 0x04;
}

/// Flags of a query's parameters (section 4.1.4): values follow, and rows need no description.
const WITH_VALUES: u8 = 0x01;
const SKIP_METADATA: u8 = 0x02;

/// How many replicas must answer (section 3, `[consistency]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// One.
    One = 1,
    /// Two.
    Two = 2,
    /// Three.
    Three = 3,
    /// More than half.
    Quorum = 4,
    /// All.
    All = 5,
    /// More than half of those in the same data centre.
    LocalQuorum = 6,
    /// One in the same data centre.
    LocalOne = 10,
}

impl Consistency {
    /// All that are supported, with their CQL names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("ONE", Self::One),
        ("TWO", Self::Two),
        ("THREE", Self::Three),
        ("QUORUM", Self::Quorum),
        ("ALL", Self::All),
        ("LOCAL_QUORUM", Self::LocalQuorum),
        ("LOCAL_ONE", Self::LocalOne),
    ];

    /// The level called `name`, in letters of either case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| *level)
    }
}

/// One whole frame in received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The number of the request that it answers.
    pub stream: i16,
    /// Its kind: one of [`opcode`].
    pub opcode: u8,
    /// The position of its message, without the parts that may come before it.
    pub message: Range<usize>,
}

/// The first frame in `bytes`; `None` if it has not arrived completely.
///
/// # Errors
/// [`Fault::Protocol`] for bytes that are not an answer of version 4.
#[inline]
pub fn next_frame(bytes: &[u8]) -> Result<Option<Message>, Fault> {
    if bytes.first().is_some_and(|version| *version != RESPONSE) {
        return Err(Fault::Protocol("the server does not speak version 4 of the protocol of CQL".to_owned()));
    }
    let Some(&[_, flags, high, low, opcode, a, b, c, d]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > LONGEST_MESSAGE {
        return Err(Fault::Protocol(format!("the server sends a frame of {length} bytes")));
    }
    let end = HEADER + length;
    let Some(body) = bytes.get(HEADER..end) else { return Ok(None) };
    let message = end - after_flags(body, flags)?.len();
    Ok(Some(Message { stream: i16::from_be_bytes([high, low]), opcode, message: message..end }))
}

/// `body` without the parts that `flags` announce before the message.
fn after_flags(body: &[u8], flags: u8) -> Result<&[u8], Fault> {
    let mut body = Body::new(body);
    if flags & frame_flag::COMPRESSED != 0 {
        return Err(Fault::Protocol("a compressed frame, though no compression was agreed on".to_owned()));
    }
    if flags & frame_flag::TRACED != 0 {
        body.bytes(16)?;
    }
    if flags & frame_flag::WARNINGS != 0 {
        for _ in 0..body.be_u16()? {
            take_string(&mut body)?;
        }
    }
    if flags & frame_flag::PAYLOAD != 0 {
        for _ in 0..body.be_u16()? {
            take_string(&mut body)?;
            take_value(&mut body)?;
        }
    }
    Ok(body.rest())
}

/// Reads a message from its start (section 3).
pub type Body<'a> = Cursor<'a, Frames>;

/// The frames of CQL as a format.
#[derive(Debug, Clone, Copy)]
pub struct Frames;

impl Format for Frames {
    const CUT_SHORT: &'static str = "a frame ends before its content";
}

/// Takes text with its length before it, in two bytes.
///
/// # Errors
/// As [`Cursor::bytes`].
pub fn take_string<'a>(body: &mut Body<'a>) -> Result<&'a [u8], Fault> {
    let length = body.be_u16()?;
    body.bytes(usize::from(length))
}

/// Takes a value with its length before it, in four bytes; a negative length is NULL.
///
/// # Errors
/// As [`Cursor::bytes`].
#[inline]
pub fn take_value<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>, Fault> {
    match body.be_i32()? {
        negative if negative < 0 => Ok(None),
        length => body.bytes(length as usize).map(Some),
    }
}

/// The rows of a result, unparsed.
#[derive(Debug, Clone, Copy)]
pub struct RowsOf<'a> {
    /// Values in a row.
    pub columns: usize,
    /// Number of rows.
    pub count: usize,
    /// The values of all rows, one after the other, each read by [`take_value`].
    pub values: Body<'a>,
}

/// The rows of a result; `None` for a result without rows.
///
/// # Errors
/// [`Fault::Protocol`] for an answer that is cut short, announces more than it can hold, or continues in further pages.
#[inline]
pub fn rows(message: &[u8]) -> Result<Option<RowsOf<'_>>, Fault> {
    let mut body = Body::new(message);
    if body.be_u32()? != result_kind::ROWS {
        return Ok(None);
    }
    let flags = body.be_u32()?;
    let columns = body.be_u32()? as usize;
    if flags & metadata_flag::MORE_PAGES != 0 {
        return Err(Fault::Protocol("rows in pages, which were not asked for".to_owned()));
    }
    if flags & metadata_flag::NO_METADATA == 0 {
        skip_columns(&mut body, flags, columns)?;
    }
    let count = body.be_u32()? as usize;
    // Every value takes at least four bytes. A row without values would take none.
    if columns == 0 || count.saturating_mul(columns) > body.rest().len() / 4 {
        return Err(Body::cut_short());
    }
    Ok(Some(RowsOf { columns, count, values: body }))
}

fn skip_columns(body: &mut Body<'_>, flags: u32, columns: usize) -> Result<(), Fault> {
    let global = flags & metadata_flag::GLOBAL_TABLE != 0;
    if global {
        take_string(body)?;
        take_string(body)?;
    }
    for _ in 0..columns {
        if !global {
            take_string(body)?;
            take_string(body)?;
        }
        take_string(body)?;
        skip_type(body)?;
    }
    Ok(())
}

/// Skips the type of a column (section 4.2.5.2, `[option]`).
fn skip_type(body: &mut Body<'_>) -> Result<(), Fault> {
    const CUSTOM: u16 = 0x00;
    const LIST: u16 = 0x20;
    const MAP: u16 = 0x21;
    const SET: u16 = 0x22;
    // Nested types are read in a loop: untrusted input must not choose the depth of a recursion.
    let mut missing = 1usize;
    while missing > 0 {
        missing -= 1;
        match body.be_u16()? {
            CUSTOM => drop(take_string(body)?),
            LIST | SET => missing += 1,
            MAP => missing += 2,
            0x01..LIST => {}
            other => return Err(Fault::Protocol(format!("a column of type 0x{other:02x} is not read"))),
        }
    }
    Ok(())
}

/// The server's id of a prepared statement.
///
/// # Errors
/// [`Fault::Protocol`] for another result.
pub fn prepared(message: &[u8]) -> Result<&[u8], Fault> {
    let mut body = Body::new(message);
    if body.be_u32()? != result_kind::PREPARED {
        return Err(Fault::Protocol("an answer that prepares nothing".to_owned()));
    }
    take_string(&mut body)
}

/// The server's error as a fault: a denied login or request is [`Fault::Refused`] (section 9).
pub fn server_error(message: &[u8]) -> Fault {
    const BAD_CREDENTIALS: u32 = 0x0100;
    const UNAUTHORIZED: u32 = 0x2100;
    let mut body = Body::new(message);
    let (Ok(code), Ok(words)) = (body.be_u32(), take_string(&mut body)) else { return Body::cut_short() };
    let text = format!("0x{code:04x}: {}", said(words));
    if matches!(code, BAD_CREDENTIALS | UNAUTHORIZED) { Fault::Refused(text) } else { Fault::Server(text) }
}

/// An error for an answer that is not allowed at this point.
pub fn unexpected(opcode: u8) -> Fault {
    Fault::Protocol(format!("a message of kind 0x{opcode:02x} has no place here"))
}

/// Appends one frame; `fill` writes its message.
///
/// # Errors
/// [`Fault::Refused`] for a message of more than 256 MB.
#[inline]
pub fn put_frame(out: &mut Vec<u8>, stream: i16, opcode: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
    let start = out.len();
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[REQUEST, 0, high, low, opcode, 0, 0, 0, 0]);
    fill(out);
    let length = out.len() - start - HEADER;
    if length > LONGEST_BODY {
        out.truncate(start);
        return Err(Fault::Refused("a request of more than 256 MB".to_owned()));
    }
    out[start + HEADER - 4..start + HEADER].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(())
}

/// Appends a text with its length in two bytes: names and the like, which are short.
#[inline]
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text);
}

/// Appends a value, or a statement, with its length in four bytes.
#[inline]
pub fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Appends the message of [`opcode::QUERY`].
pub fn put_query(out: &mut Vec<u8>, statement: &str, consistency: Consistency) {
    put_value(out, statement.as_bytes());
    out.extend_from_slice(&(consistency as u16).to_be_bytes());
    out.push(0);
}

/// Appends the beginning of the message of [`opcode::EXECUTE`]; so many values follow, each by [`put_value`].
#[inline]
pub fn put_execution(out: &mut Vec<u8>, name: &[u8], consistency: Consistency, values: usize) {
    put_string(out, name);
    out.extend_from_slice(&(consistency as u16).to_be_bytes());
    out.push(WITH_VALUES | SKIP_METADATA);
    out.extend_from_slice(&(values as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of the server.
    fn frame(flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![RESPONSE, flags, 0, 7, opcode];
        frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frame.extend_from_slice(body);
        frame
    }

    fn message(bytes: &[u8]) -> &[u8] {
        let frame = next_frame(bytes).expect("a frame").expect("a whole one");
        assert_eq!(frame.stream, 7);
        &bytes[frame.message]
    }

    #[test]
    fn what_stands_before_a_message_is_skipped() {
        let warning = b"\0\x01\0\x05beware";
        let bytes = frame(frame_flag::WARNINGS, opcode::READY, &[&warning[..2], b"\0\x06beware", b"rest"].concat());
        assert_eq!(message(&bytes), b"rest");
        let traced = frame(
            frame_flag::TRACED | frame_flag::PAYLOAD,
            opcode::READY,
            &[&[9; 16][..], b"\0\x01\0\x01k\xff\xff\xff\xffrest"].concat(),
        );
        assert_eq!(message(&traced), b"rest");
        assert!(next_frame(&frame(frame_flag::COMPRESSED, opcode::READY, b"")).is_err());
    }

    #[test]
    fn another_protocol_is_told_from_its_first_byte() {
        for bytes in [&b"\x15\x03\x03\0\x02"[..], b"HTTP/1.1 400", b"\x83\0\0\0\0\0\0\0\0"] {
            assert!(matches!(next_frame(bytes), Err(Fault::Protocol(_))));
        }
        assert_eq!(next_frame(b""), Ok(None));
        assert!(next_frame(&[RESPONSE, 0, 0, 0, 8, 255, 0, 0, 0]).is_err());
    }

    #[test]
    fn errors_are_told_with_their_codes() {
        assert_eq!(server_error(b"\0\0\x21\0\0\x02no"), Fault::Refused("0x2100: no".to_owned()));
        assert_eq!(server_error(b"\0\0\x01\0\0\x02no"), Fault::Refused("0x0100: no".to_owned()));
        assert_eq!(server_error(b"\0\0\x10\0\0\x02no and more"), Fault::Server("0x1000: no".to_owned()));
        assert_eq!(server_error(b"\0\0\x10"), Body::cut_short());
    }

    #[test]
    fn rows_are_read_with_and_without_their_description() {
        let values = b"\0\0\0\x01\0\0\0\x01a\xff\xff\xff\xff";
        let described =
            [&b"\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\x01k\0\x01t\0\x01x\0\x0d\0\x01y\0\x21\0\x0d\0\x20\0\x03"[..], values];
        let bare = [&b"\0\0\0\x02\0\0\0\x04\0\0\0\x02"[..], values];
        for message in [described.concat(), bare.concat()] {
            let mut rows = rows(&message).expect("a result").expect("with rows");
            assert_eq!((rows.columns, rows.count), (2, 1));
            assert_eq!(take_value(&mut rows.values), Ok(Some(&b"a"[..])));
            assert_eq!(take_value(&mut rows.values), Ok(None));
        }
        assert!(matches!(rows(b"\0\0\0\x01"), Ok(None)));
        // A page that is not the last one: rows would be missing without notice.
        assert!(rows(b"\0\0\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn requests_are_frames() {
        let mut out = Vec::new();
        put_frame(&mut out, 3, opcode::QUERY, |out| put_query(out, "x", Consistency::Quorum)).expect("short");
        assert_eq!(out, b"\x04\0\0\x03\x07\0\0\0\x08\0\0\0\x01x\0\x04\0");
        out.clear();
        put_frame(&mut out, 0, opcode::EXECUTE, |out| {
            put_execution(out, b"id", Consistency::One, 1);
            put_value(out, b"v");
        })
        .expect("short");
        assert_eq!(out, b"\x04\0\0\0\x0a\0\0\0\x0e\0\x02id\0\x01\x03\0\x01\0\0\0\x01v");
    }

    proptest! {
        #[test]
        fn a_frame_is_there_when_its_last_byte_is(body in proptest::collection::vec(any::<u8>(), 0..200), more in proptest::collection::vec(any::<u8>(), 0..9)) {
            let whole = frame(0, opcode::RESULT, &body);
            for cut in 0..whole.len() {
                prop_assert_eq!(next_frame(&whole[..cut]), Ok(None));
            }
            let frame = next_frame(&[whole.clone(), more].concat()).expect("a frame").expect("a whole one");
            prop_assert_eq!(frame.message, HEADER..whole.len());
        }

        #[test]
        fn foreign_bytes_are_an_error_or_a_frame_within_them(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(first) = bytes.first_mut() {
                *first = RESPONSE;
            }
            if let Ok(Some(frame)) = next_frame(&bytes) {
                prop_assert!(frame.message.end <= bytes.len() && frame.message.start <= frame.message.end);
            }
        }

        #[test]
        fn foreign_messages_never_give_more_than_they_hold(kind in 0u32..6, flags in 0u32..8, columns in 0u32..5, rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            let message = [&kind.to_be_bytes()[..], &flags.to_be_bytes(), &columns.to_be_bytes(), &rest].concat();
            let _ = server_error(&message);
            let _ = prepared(&message);
            if let Ok(Some(mut rows)) = rows(&message) {
                let mut read = 0;
                for _ in 0..rows.columns * rows.count {
                    match take_value(&mut rows.values) {
                        Ok(value) => read += 4 + value.map_or(0, <[u8]>::len),
                        Err(_) => break,
                    }
                }
                prop_assert!(read <= rest.len());
            }
        }

        #[test]
        fn values_are_read_back(values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..10)) {
            let mut out = Vec::new();
            values.iter().for_each(|value| put_value(&mut out, value));
            let mut body = Body::new(&out);
            for value in &values {
                prop_assert_eq!(take_value(&mut body), Ok(Some(&value[..])));
            }
            prop_assert!(body.rest().is_empty());
        }
    }
}
