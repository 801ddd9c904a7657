//! HTTP/1.1 as far as OpenSearch needs it: one request at a time on a connection that stays open, over plaintext or
//! TLS. Sources: RFC 9110 and RFC 9112.
//!
//! Left out: pipelines, compression, bodies in chunks, redirects. A server that answers with one of them is reported.

use std::os::fd::{AsFd as _, BorrowedFd};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use tithe_machine::{
    fault::{Fault, said},
    secret::Secret,
};
use tithe_plugin::wire::{LONGEST_MESSAGE, TlsFacts, Wire, kept::Kept};

/// Longest head of an answer that is read.
const LONGEST_HEAD: usize = 64 << 10;
/// Digits of a body's length. The length is written before the body is known, so its field has a fixed width.
const DIGITS: usize = 10;

/// A connection on which requests are made.
pub struct Http {
    wire: Wire,
    /// The header fields of every request.
    fields: Vec<u8>,
    /// Bytes of the last answer, which are still in the wire's buffer.
    used: usize,
    head: Option<Head>,
}

/// The head of an answer that may not be complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its status.
    pub status: u16,
    /// Where its body begins.
    pub body: usize,
    /// The length of its body.
    pub length: usize,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: &'a [u8],
}

impl Http {
    /// Makes requests to `authority` on `wire`.
    pub fn new(wire: Wire, authority: &str) -> Self {
        let fields = format!("Host: {authority}\r\nContent-Type: application/json\r\nContent-Length: ");
        Self { wire, fields: fields.into_bytes(), used: 0, head: None }
    }

    /// Sends `user` and `password` with every further request.
    pub fn log_in(&mut self, user: &str, password: &Secret) {
        let login = STANDARD.encode([user.as_bytes(), b":", password.expose()].concat());
        let rest = std::mem::take(&mut self.fields);
        self.fields = [format!("Authorization: Basic {login}\r\n").into_bytes(), rest].concat();
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.wire.tls_facts()
    }

    /// The socket.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }

    /// The connection as a stream.
    pub fn into_wire(self) -> Wire {
        self.wire
    }

    /// Bytes sent and received.
    pub fn bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    /// True if part of a request waits until the socket is writable.
    pub fn wants_write(&self) -> bool {
        self.wire.wants_write()
    }

    /// As [`Wire::set_blocking`].
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn set_blocking(&mut self, blocking: bool) -> Result<(), Fault> {
        self.wire.set_blocking(blocking)
    }

    /// Sends a request: `line` writes its method and target, `body` its body.
    ///
    /// # Errors
    /// A broken connection.
    pub fn submit(&mut self, line: impl FnOnce(&mut Vec<u8>), body: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
        self.wire.consume(std::mem::take(&mut self.used));
        self.head = None;
        let out = self.wire.output();
        line(out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(&self.fields);
        let length = out.len();
        out.extend_from_slice(&[b' '; DIGITS]);
        out.extend_from_slice(b"\r\n\r\n");
        let begin = out.len();
        body(out);
        let mut rest = out.len() - begin;
        // From the last digit to the first; the blanks before them are part of no value.
        for digit in out[length..length + DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.wire.flush()
    }

    /// The answer, when it is complete. It stays in its buffer until the next request.
    ///
    /// # Errors
    /// A broken connection, or an answer in another protocol.
    pub fn advance(&mut self) -> Result<Option<Answer<'_>>, Fault> {
        loop {
            if self.head.is_none() {
                self.head = head(self.wire.unread())?;
            }
            if let Some(Head { status, body, length }) = self.head
                && self.wire.unread().len() >= body + length
            {
                self.used = body + length;
                return Ok(Some(Answer { status, body: &self.wire.unread()[body..self.used] }));
            }
            if self.wire.wants_write() {
                self.wire.flush()?;
            }
            if !self.wire.fill()? {
                return Ok(None);
            }
        }
    }
}

/// The head at the beginning of `received`; `None` if it is not complete.
///
/// # Errors
/// [`Fault::Protocol`] for anything but the head of an answer that Tithe reads.
pub fn head(received: &[u8]) -> Result<Option<Head>, Fault> {
    const BEGIN: &[u8] = b"HTTP/1.1 ";
    let foreign = |what: &str| Fault::Protocol(format!("{what}: does it speak HTTP at this port?"));
    let known = received.len().min(BEGIN.len());
    if received[..known] != BEGIN[..known] {
        return Err(foreign("the server answered in another protocol"));
    }
    let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return if received.len() > LONGEST_HEAD {
            Err(foreign("the head of an answer does not end"))
        } else {
            Ok(None)
        };
    };
    let text =
        std::str::from_utf8(&received[BEGIN.len()..end]).map_err(|_| foreign("the head of an answer is not text"))?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.get(..3)?.parse().ok()).ok_or_else(|| foreign("no status"))?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut length = None;
    for (name, value) in fields {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
            if length.is_some_and(|length| length > LONGEST_MESSAGE) {
                return Err(foreign(&format!("the server announces an answer of {} bytes", value.trim())));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") || name.eq_ignore_ascii_case("content-encoding") {
            return Err(Fault::Protocol(format!("an answer with {name}: {}, which Tithe does not read", value.trim())));
        }
    }
    let length = length.ok_or_else(|| foreign("an answer without a length"))?;
    Ok(Some(Head { status, body: end + 4, length }))
}

/// Writes `text` as a part of a request's target.
pub fn put_part(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The JSON of `body`.
///
/// # Errors
/// [`Fault::Protocol`] for anything else, and for more than an answer to a question of Tithe's has.
pub fn json(body: &[u8]) -> Result<Value, Fault> {
    // An object takes many times the memory of its two bytes.
    let of = |marks: &[u8]| body.iter().filter(|byte| marks.contains(byte)).count();
    Kept::default().add(of(b",[") + 10 * of(b"{"), body.len())?;
    serde_json::from_slice(body).map_err(|error| Fault::Protocol(format!("an answer that is not JSON: {error}")))
}

/// What is said of a cluster that answers 503.
pub const UNSERVED: &str = "no node serves these records (a red index), none leads the cluster, or one still starts";
/// The error of a node whose heap is full, and what to do.
const HEAP_FULL: (&str, &str) = ("circuit_breaking_exception", "give its nodes more memory (`heap` of the settings)");

/// The fault for an answer that reports an error: its type and reason if its body has them, or its message, as the
/// security plugin's own answers have.
pub fn error(answer: Answer<'_>) -> Fault {
    let words = json(answer.body).ok().and_then(|body| {
        let error = &body["error"];
        match (error["type"].as_str(), error["reason"].as_str()) {
            (Some(kind), Some(reason)) => Some(format!("{kind}: {reason}")),
            _ => error.as_str().or_else(|| body["message"].as_str()).map(str::to_owned),
        }
    });
    let words = words.unwrap_or_else(|| said(answer.body).trim().to_owned());
    let mut words = said(words.as_bytes());
    let (full, advice) = HEAP_FULL;
    if words.contains(full) {
        words = format!("{words}: {advice}");
    }
    match answer.status {
        // Requests wait a minute for such records: the frame ends with the first one.
        503 => Fault::Connection(format!("503: {words}: {UNSERVED}")),
        401 => Fault::Refused(format!("401: {words}")),
        403 => Fault::Refused(words),
        status => Fault::Server(format!("{status}: {words}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_are_read_as_servers_write_them() {
        let of = |text: &str| head(text.as_bytes()).map_err(|fault| fault.to_string());
        let ok = |status, body, length| Ok(Some(Head { status, body, length }));
        assert_eq!(of("HTTP/1.1 200 OK\r\ncontent-type: x\r\ncontent-length: 12\r\n\r\n"), ok(200, 56, 12));
        assert_eq!(of("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n{"), ok(404, 45, 0));
        for unfinished in ["", "HTT", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r"] {
            assert_eq!(of(unfinished), Ok(None));
        }
        for foreign in [
            "\x15\x03\x03\0\x02\x02\x50",
            "-ERR unknown",
            "HTTP/1.1 2 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ] {
            assert!(of(foreign).is_err_and(|fault| fault.starts_with("protocol: ")), "{foreign:?}");
        }
    }

    #[test]
    fn parts_of_a_target_hold_no_separator() {
        let mut out = Vec::new();
        put_part(&mut out, "!a/b?c d%ä-._~".as_bytes());
        assert_eq!(out, b"%21a%2Fb%3Fc%20d%25%C3%A4-._~");
    }

    #[test]
    fn errors_are_told_apart() {
        let of = |status, body: &str| error(Answer { status, body: body.as_bytes() });
        let body =
            r#"{"error":{"root_cause":[],"type":"security_exception","reason":"no permissions for [x]"},"status":403}"#;
        assert_eq!(of(403, body), Fault::Refused("security_exception: no permissions for [x]".to_owned()));
        assert_eq!(of(401, "Unauthorized"), Fault::Refused("401: Unauthorized".to_owned()));
        assert_eq!(
            of(400, r#"{"error":"no handler found","status":400}"#),
            Fault::Server("400: no handler found".to_owned())
        );
        let full = r#"{"error":{"type":"circuit_breaking_exception","reason":"[parent] Data too large"},"status":429}"#;
        let told = of(429, full).to_string();
        assert_eq!(
            told,
            "server: 429: circuit_breaking_exception: [parent] Data too large: give its nodes more memory (`heap` of the \
             settings)"
        );
        let red = r#"{"error":{"type":"unavailable_shards_exception","reason":"[a][0] primary shard is not active"}}"#;
        let told = of(503, red).to_string();
        assert!(told.starts_with("connection: 503: unavailable_shards_exception: [a][0] primary"), "{told}");
        assert!(told.contains("red index"), "{told}");
    }

    proptest! {
        #[test]
        fn foreign_heads_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "HTTP/1.1 [0-9]{0,4}[ -z\r\n]{0,60}") {
            let _ = head(&bytes);
            let _ = head(text.as_bytes());
        }
    }
}
