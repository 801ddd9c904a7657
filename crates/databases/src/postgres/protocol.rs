//! PostgreSQL's messages, version 3.0 of the protocol: writing requests, reading answers.
//!
//! Source: PostgreSQL documentation, part VII, chapter "Frontend/Backend Protocol", sections "Message Flow", "Message
//! Formats" and "Error and Notice Message Fields". Nothing here uses a socket. Data from a server is untrusted input:
//! every length is checked, and no memory is allocated only because a length demands it. Left out: COPY, function
//! calls, replication.

use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{Cursor, Format, LONGEST_MESSAGE};

/// Protocol version 3.0 in the start-up message.
const PROTOCOL_VERSION: i32 = 196_608;
/// The number that cancels a request, in place of a protocol version.
const CANCEL_REQUEST: i32 = 80_877_102;
/// The number that requests TLS in place of a protocol version.
const TLS_REQUEST: i32 = 80_877_103;

/// A message of the server: its type and the position of its body in the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Type byte.
    pub kind: u8,
    /// The body, without type and length.
    pub body: std::ops::Range<usize>,
}

/// The first message in `bytes`; `None` if it has not arrived completely.
///
/// # Errors
/// [`Fault::Protocol`] when its length is impossible.
#[inline]
pub fn next_frame(bytes: &[u8]) -> Result<Option<Message>, Fault> {
    let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
    let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if !(4..=LONGEST_MESSAGE).contains(&length) {
        return Err(Fault::Protocol(format!("a message of type 0x{kind:02x} claims {length} bytes")));
    }
    if rest.len() < length {
        return Ok(None);
    }
    Ok(Some(Message { kind, body: 5..1 + length }))
}

/// Reads the parts of a message's body, in order.
pub type Body<'a> = Cursor<'a, Messages>;

/// PostgreSQL's messages as a format.
#[derive(Debug, Clone, Copy)]
pub struct Messages;

impl Format for Messages {
    const CUT_SHORT: &'static str = "a message is shorter than its parts";
}

/// Takes the next value of `body`: its length and its bytes; `None` is SQL's NULL.
///
/// # Errors
/// As [`Cursor::bytes`], and for a negative length other than −1.
#[inline]
pub fn take_value<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>, Fault> {
    match body.be_i32()? {
        -1 => Ok(None),
        length => body.bytes(usize::try_from(length).map_err(|_| Body::cut_short())?).map(Some),
    }
}

/// What the server requests before it lets a client in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthRequest<'a> {
    /// Nothing more: the client is in.
    Nothing,
    /// The password itself.
    Clear,
    /// A hash of password and user, mixed with this salt.
    Md5(&'a [u8]),
    /// One of these SASL mechanisms.
    Sasl(Vec<&'a [u8]>),
    /// The server's part of a SASL exchange.
    SaslContinue(&'a [u8]),
    /// The server's last part of a SASL exchange.
    SaslFinal(&'a [u8]),
    /// A method that this client does not support, by name.
    Other(&'static str),
}

/// Reads an authentication message (type `R`).
///
/// # Errors
/// [`Fault::Protocol`] when it is malformed.
pub fn authentication(body: &[u8]) -> Result<AuthRequest<'_>, Fault> {
    let mut body = Body::new(body);
    Ok(match body.be_i32()? {
        0 => AuthRequest::Nothing,
        2 => AuthRequest::Other("Kerberos V5"),
        3 => AuthRequest::Clear,
        5 => AuthRequest::Md5(body.rest()),
        7 | 8 => AuthRequest::Other("GSSAPI"),
        9 => AuthRequest::Other("SSPI"),
        10 => {
            let mut mechanisms = Vec::new();
            loop {
                match body.zero_ended()? {
                    b"" => break AuthRequest::Sasl(mechanisms),
                    name => mechanisms.push(name),
                }
            }
        }
        11 => AuthRequest::SaslContinue(body.rest()),
        12 => AuthRequest::SaslFinal(body.rest()),
        _ => AuthRequest::Other("an unknown method"),
    })
}

/// A server error: severity, code and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// True when the server closes the connection after it.
    pub fatal: bool,
    /// Five characters, see "PostgreSQL Error Codes" in the documentation.
    pub sqlstate: String,
    /// The message, without detail and hint: these may repeat values.
    pub message: String,
}

/// Reads an error (type `E`). Missing parts stay empty.
///
/// # Errors
/// [`Fault::Protocol`] when it is malformed.
pub fn server_error(body: &[u8]) -> Result<ServerError, Fault> {
    let mut body = Body::new(body);
    let mut error = ServerError { fatal: false, sqlstate: String::new(), message: String::new() };
    loop {
        let field = body.byte()?;
        if field == 0 {
            return Ok(error);
        }
        let text = body.zero_ended()?;
        match field {
            // `V` is the severity that is never translated.
            b'V' => error.fatal = matches!(text, b"FATAL" | b"PANIC"),
            b'C' => error.sqlstate = said(text),
            b'M' => error.message = said(text),
            _ => {}
        }
    }
}

impl ServerError {
    /// The [`Fault`] for this error. Class 28 is authorisation (also "no entry in pg_hba.conf"), 42501 insufficient
    /// privilege.
    pub fn fault(self) -> Fault {
        let text = format!("{}: {}", self.sqlstate, self.message);
        if self.sqlstate.starts_with("28") || self.sqlstate == "42501" {
            Fault::Refused(text)
        } else if self.fatal {
            Fault::Connection(text)
        } else {
            Fault::Server(text)
        }
    }
}

/// Number of rows in the tag of a completed command: `INSERT 0 1`, `SELECT 10`, `CREATE TABLE`.
///
/// # Errors
/// [`Fault::Protocol`] when it is malformed.
#[inline]
pub fn rows_of_tag(body: &[u8]) -> Result<u64, Fault> {
    let tag = Body::new(body).zero_ended()?;
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    // The number is small in every correct answer; a malformed one may be anything.
    Ok(tag[tag.len() - digits..]
        .iter()
        .fold(0u64, |sum, byte| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'))))
}

/// Type numbers of the parameters of a prepared statement (message `t`).
///
/// # Errors
/// [`Fault::Protocol`] when it is malformed.
pub fn parameter_types(body: &[u8]) -> Result<Vec<i32>, Fault> {
    let mut body = Body::new(body);
    let count = body.be_i16()?;
    (0..count).map(|_| body.be_i32()).collect()
}

/// Passes on the columns of a result (message `T`): name and type of each, in order.
///
/// # Errors
/// [`Fault::Protocol`] when it is malformed.
pub fn each_column(body: &[u8], mut each: impl FnMut(&[u8], i32)) -> Result<(), Fault> {
    let mut body = Body::new(body);
    for _ in 0..body.be_i16()? {
        let name = body.zero_ended()?;
        // Number of the table and of the column in it.
        body.bytes(6)?;
        each(name, body.be_i32()?);
        // Size, modifier and format of the type.
        body.bytes(8)?;
    }
    Ok(())
}

/// Writes messages of the client one after the other into `out`.
pub struct Writer<'a> {
    /// The buffer for them.
    pub out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// A message without a type byte, the form used before the protocol version is known.
    fn untyped(&mut self, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        body(self.out);
        let length = u32::try_from(self.out.len() - start).unwrap_or(u32::MAX);
        self.out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// A message of type `kind` with the body that `body` writes.
    #[inline]
    pub fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(kind);
        self.untyped(body);
    }

    /// Asks for TLS; the server answers with one byte.
    pub fn tls_request(&mut self) {
        self.untyped(|out| out.extend_from_slice(&TLS_REQUEST.to_be_bytes()));
    }

    /// Cancels the request of the connection with this `key`.
    pub fn cancel(&mut self, key: &[u8]) {
        self.untyped(|out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(key);
        });
    }

    /// Sends the account and the database, with further settings of the session.
    pub fn startup(&mut self, parameters: &[(&str, &str)]) {
        self.untyped(|out| {
            out.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
            for (name, value) in parameters {
                put_text(out, name);
                put_text(out, value);
            }
            out.push(0);
        });
    }

    /// A password, or a hash of it.
    pub fn password(&mut self, password: &[u8]) {
        self.message(b'p', |out| {
            out.extend_from_slice(password);
            out.push(0);
        });
    }

    /// Begins a SASL exchange.
    pub fn sasl_initial(&mut self, mechanism: &str, first: &[u8]) {
        self.message(b'p', |out| {
            put_text(out, mechanism);
            put_value(out, first);
        });
    }

    /// Goes on with a SASL exchange.
    pub fn sasl_response(&mut self, response: &[u8]) {
        self.message(b'p', |out| out.extend_from_slice(response));
    }

    /// Runs `sql` unchanged, with its result as text.
    pub fn query(&mut self, sql: &str) {
        self.message(b'Q', |out| put_text(out, sql));
    }

    /// Prepares `sql` as `name`; the server finds out the types of its parameters.
    pub fn parse(&mut self, name: &str, sql: &str) {
        self.message(b'P', |out| {
            put_text(out, name);
            put_text(out, sql);
            out.extend_from_slice(&0i16.to_be_bytes());
        });
    }

    /// Prepares `sql` as `name`, and requests the types of its parameters and columns.
    pub fn prepare(&mut self, name: &str, sql: &str) {
        self.parse(name, sql);
        self.message(b'D', |out| {
            out.push(b'S');
            put_text(out, name);
        });
        self.sync();
    }

    /// Ends a request: the server answers `ReadyForQuery`.
    pub fn sync(&mut self) {
        self.message(b'S', |_| {});
    }

    /// Says good-bye.
    pub fn terminate(&mut self) {
        self.message(b'X', |_| {});
    }
}

/// Appends `text` and a zero byte. A zero byte within the text ends it here.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

/// Appends a value: length and bytes.
#[inline]
pub fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Rewrites `?` to `$1`, `$2`, …, except in quotes, quoted names and comments. PostgreSQL's operators that are written
/// with a question mark cannot be used in such a statement.
pub fn number_parameters(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let mut count = 0;
    // The text that ends the current quotation or comment.
    let mut until: Option<&str> = None;
    let mut rest = sql;
    while let Some(sign) = rest.chars().next() {
        let mut length = sign.len_utf8();
        match until {
            Some(end) => {
                if rest.starts_with(end) {
                    length = end.len();
                    until = None;
                }
            }
            None if sign == '?' => {
                count += 1;
                out.push_str(&format!("${count}"));
                rest = &rest[1..];
                continue;
            }
            None => {
                let begins = [("'", "'"), ("\"", "\""), ("--", "\n"), ("/*", "*/")];
                if let Some((begin, end)) = begins.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
                    length = begin.len();
                    until = Some(end);
                }
            }
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_quotes_only() {
        let check = |sql: &str, expect: Expect| expect.assert_eq(&number_parameters(sql));
        check("SELECT a FROM t WHERE k = ?", expect!["SELECT a FROM t WHERE k = $1"]);
        check(
            "INSERT INTO t VALUES (?, ?, '?', \"?\", 'it''s ?', ?)",
            expect![[r#"INSERT INTO t VALUES ($1, $2, '?', "?", 'it''s ?', $3)"#]],
        );
        check(
            "SELECT ? -- why?\n, ? /* ? */, 'ü', ?",
            expect![[r"
            SELECT $1 -- why?
            , $2 /* ? */, 'ü', $3"]],
        );
    }

    fn written(write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Writer { out: &mut out });
        out.escape_ascii().to_string()
    }

    #[test]
    fn messages_are_written_as_documented() {
        expect![[r"\x00\x00\x00\x08\x04\xd2\x16/"]].assert_eq(&written(|writer| writer.tls_request()));
        expect![[r#"\x00\x00\x00\x18\x00\x03\x00\x00user\x00tithe\x00a\x00b\x00\x00"#]]
            .assert_eq(&written(|writer| writer.startup(&[("user", "tithe"), ("a", "b")])));
        expect![[r"Q\x00\x00\x00\rselect 1\x00"]].assert_eq(&written(|writer| writer.query("select 1")));
        expect![[r"P\x00\x00\x00\x0bs0\x00q\x00\x00\x00D\x00\x00\x00\x08Ss0\x00S\x00\x00\x00\x04"]]
            .assert_eq(&written(|writer| writer.prepare("s0", "q")));
        expect![[r"p\x00\x00\x00\x0bM\x00\x00\x00\x00\x01x"]]
            .assert_eq(&written(|writer| writer.sasl_initial("M", b"x")));
        expect![[r"X\x00\x00\x00\x04"]].assert_eq(&written(|writer| writer.terminate()));
    }

    #[test]
    fn errors_become_faults_by_their_code() {
        let fault = |body: &[u8]| server_error(body).map(ServerError::fault);
        expect![[r#"Ok(Refused("28P01: password authentication failed"))"#]].assert_eq(&format!(
            "{:?}",
            fault(b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0Dsecret\0\0")
        ));
        expect![[r#"Ok(Server("42P01: relation  is not there"))"#]]
            .assert_eq(&format!("{:?}", fault(b"VERROR\0C42P01\0Mrelation\x1b is not there\0\0")));
        expect![[r#"Ok(Connection("57P01: terminating"))"#]]
            .assert_eq(&format!("{:?}", fault(b"VFATAL\0C57P01\0Mterminating\0\0")));
        expect![[r#"Err(Protocol("a message is shorter than its parts"))"#]]
            .assert_eq(&format!("{:?}", fault(b"VFATAL\0C57P01")));
    }

    #[test]
    fn rows_are_counted_by_the_end_of_the_tag() {
        for (tag, rows) in [("INSERT 0 1", 1), ("SELECT 250", 250), ("BEGIN", 0), ("", 0)] {
            assert_eq!(rows_of_tag(format!("{tag}\0").as_bytes()), Ok(rows), "{tag}");
        }
        assert_eq!(rows_of_tag(b"SELECT 99999999999999999999999\0"), Ok(u64::MAX));
        assert!(rows_of_tag(b"SELECT 1").is_err());
    }

    #[test]
    fn impossible_lengths_are_refused() {
        assert_eq!(next_frame(b"Z\0\0\0"), Ok(None));
        assert_eq!(next_frame(b"Z\0\0\0\x05"), Ok(None));
        assert_eq!(next_frame(b"Z\0\0\0\x05Irest"), Ok(Some(Message { kind: b'Z', body: 5..6 })));
        assert!(next_frame(b"Z\0\0\0\x03").is_err());
        assert!(next_frame(b"HTTP/1.1").is_err(), "another protocol is not waited for");
    }

    /// A plausible answer: every message that the client knows.
    const ANSWER: &[u8] = b"R\0\0\0\x08\0\0\0\0R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0\
        K\0\0\0\x0c\0\0\0\x01\0\0\0\x02T\0\0\0\x1b\0\x01key\0\0\0\0\x01\0\x01\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
        t\0\0\0\x0a\0\x01\0\0\0\x19D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x0dSELECT 1\0\
        E\0\0\0\x12VERROR\0C00000\0\0Z\0\0\0\x05I";

    /// Reads every message in every way that the client has.
    fn read_all(mut bytes: &[u8]) {
        while let Ok(Some(frame)) = next_frame(bytes) {
            let body = &bytes[frame.body.clone()];
            let _ = authentication(body);
            let _ = server_error(body).map(ServerError::fault);
            let _ = (rows_of_tag(body), parameter_types(body), each_column(body, |_, _| {}));
            let mut values = Body::new(body);
            if let Ok(count) = values.be_i16() {
                for _ in 0..count {
                    if take_value(&mut values).is_err() {
                        break;
                    }
                }
            }
            bytes = &bytes[frame.body.end..];
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read_all(&bytes);
        }

        #[test]
        fn mutated_answers_never_panic(
            changes in proptest::collection::vec((0..ANSWER.len(), any::<u8>()), 1..6),
            end in 0..=ANSWER.len(),
        ) {
            let mut bytes = ANSWER.to_vec();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            read_all(&bytes[..end]);
        }

        #[test]
        fn a_message_is_the_same_however_it_arrives(split in 0..ANSWER.len()) {
            // A part of the stream never yields a message that the whole does not yield.
            let part = next_frame(&ANSWER[..split]).expect("well-formed");
            prop_assert!(part.is_none() || part == next_frame(ANSWER).expect("well-formed"));
        }
    }
}
