//! HTTP/2 as needed for gRPC's calls with one message each: one call at a time on one connection, over plaintext or
//! TLS. Sources: RFC 9113; "gRPC over HTTP2" (grpc/grpc, `doc/PROTOCOL-HTTP2.md`).
//!
//! Left out: concurrent calls, streams of messages, compression, the client's own padding and priorities, and the
//! dynamic table of header fields. So each request writes its fields out, about 100 bytes more than clients with such a
//! table send.

use std::os::fd::{AsFd, BorrowedFd};

use percent_encoding::percent_decode;
use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{LONGEST_MESSAGE, TlsFacts, Wire};

use super::hpack;

/// The first bytes from a client (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD: usize = 9;
/// Longest payload of a frame that either side sends: the default, which neither side changes here.
const LONGEST_FRAME: usize = 16 * 1024;
/// Largest window of any stream and connection (section 6.9.1).
const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// Window that each begins with.
const FIRST_WINDOW: i64 = 65_535;
/// Received bytes after which the window of the connection is opened again.
const WINDOW_USED: u32 = 1 << 30;
/// Most bytes of frames that are not part of an answer, until it ends: they are answered, and make no call end.
const MOST_BESIDE: usize = 1 << 20;

// Kinds of frames (section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

// Flags.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

// Settings (section 6.5.2).
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;

// Fields of the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const METHOD_POST: usize = 3;
const PATH: usize = 4;
const SCHEME_HTTP: usize = 6;
const SCHEME_HTTPS: usize = 7;
const CONTENT_TYPE: usize = 31;

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const MESSAGE_HEAD: usize = 5;

/// A connection on which calls are made.
pub struct Http2 {
    wire: Wire,
    /// Header fields of every request, before its path and after it, the token included.
    fields: (Vec<u8>, Vec<u8>),
    /// The buffer in which a request is assembled.
    block: Vec<u8>,
    /// The stream of the call, odd numbers one after the other.
    stream: u32,
    /// The part of the request that exceeds the server's window, from `sent` on.
    request: Vec<u8>,
    sent: usize,
    /// Bytes that may be sent: on the connection, on this stream, and on a new stream.
    window: i64,
    stream_window: i64,
    first_window: i64,
    received: u32,
    beside: usize,
    /// The answer so far, with its head.
    answer: Vec<u8>,
    /// Header fields that are not complete yet.
    unfinished: Vec<u8>,
    ends: bool,
    outcome: Option<Result<(), Fault>>,
}

impl Http2 {
    /// Starts HTTP/2 on `wire` with the server `authority`.
    ///
    /// # Errors
    /// A broken connection.
    pub fn new(mut wire: Wire, authority: &str) -> Result<Self, Fault> {
        let scheme = if wire.tls_facts().is_some() { SCHEME_HTTPS } else { SCHEME_HTTP };
        let out = wire.output();
        out.extend_from_slice(PREFACE);
        let settings = [(HEADER_TABLE_SIZE, 0), (ENABLE_PUSH, 0), (INITIAL_WINDOW_SIZE, LARGEST_WINDOW)];
        put_head(out, SETTINGS, 0, 0, settings.len() * 6);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        put_window(out, LARGEST_WINDOW - FIRST_WINDOW as u32);
        wire.flush()?;
        let mut fields = (Vec::new(), Vec::new());
        hpack::put_indexed(&mut fields.0, METHOD_POST);
        hpack::put_indexed(&mut fields.0, scheme);
        hpack::put_field(&mut fields.0, AUTHORITY, "", authority.as_bytes());
        hpack::put_field(&mut fields.1, CONTENT_TYPE, "", b"application/grpc");
        hpack::put_field(&mut fields.1, 0, "te", b"trailers");
        Ok(Self {
            wire,
            fields,
            block: Vec::new(),
            stream: 0,
            request: Vec::new(),
            sent: 0,
            window: FIRST_WINDOW,
            stream_window: FIRST_WINDOW,
            first_window: FIRST_WINDOW,
            received: 0,
            beside: 0,
            answer: Vec::new(),
            unfinished: Vec::new(),
            ends: false,
            outcome: None,
        })
    }

    /// Adds the field `name` with `value` to every further request.
    pub fn bear(&mut self, name: &str, value: &str) {
        hpack::put_field(&mut self.fields.1, 0, name, value.as_bytes());
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.wire.tls_facts()
    }

    /// The socket.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
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

    /// Begins a call of `path` with the message that `put` writes.
    ///
    /// # Errors
    /// A broken connection.
    pub fn submit(&mut self, path: &str, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        if self.stream > LARGEST_WINDOW {
            return Err(Fault::Connection("this connection has no numbers left for calls".to_owned()));
        }
        self.block.clear();
        self.block.extend_from_slice(&self.fields.0);
        hpack::put_field(&mut self.block, PATH, "", path.as_bytes());
        self.block.extend_from_slice(&self.fields.1);
        let out = self.wire.output();
        put_head(out, HEADERS, END_HEADERS, self.stream, self.block.len());
        out.extend_from_slice(&self.block);
        self.request.clear();
        self.request.resize(MESSAGE_HEAD, 0);
        put(&mut self.request);
        let length = (self.request.len() - MESSAGE_HEAD) as u32;
        self.request[1..MESSAGE_HEAD].copy_from_slice(&length.to_be_bytes());
        self.sent = 0;
        self.stream_window = self.first_window;
        self.answer.clear();
        self.beside = 0;
        self.ends = false;
        self.outcome = None;
        self.push();
        self.wire.flush()
    }

    /// Writes as much of the request as the server has windows for.
    fn push(&mut self) {
        while self.sent < self.request.len() {
            let room = self.window.min(self.stream_window).clamp(0, LONGEST_FRAME as i64) as usize;
            let end = self.request.len().min(self.sent + room);
            if end == self.sent {
                return;
            }
            let flags = if end == self.request.len() { END_STREAM } else { 0 };
            let out = self.wire.output();
            put_head(out, DATA, flags, self.stream, end - self.sent);
            out.extend_from_slice(&self.request[self.sent..end]);
            let sent = (end - self.sent) as i64;
            (self.window, self.stream_window, self.sent) = (self.window - sent, self.stream_window - sent, end);
        }
    }

    /// Reads what has arrived; returns the message of the answer when it is complete.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn advance(&mut self) -> Result<Option<&[u8]>, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            while self.outcome.is_none() && self.frame()? {}
            if !self.wire.output().is_empty() {
                self.wire.flush()?;
            }
            match self.outcome.take() {
                Some(Ok(())) => return message(&self.answer).map(Some),
                Some(Err(fault)) => return Err(fault),
                None if self.wire.fill()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Handles the first frame that has arrived; false if there is none.
    fn frame(&mut self) -> Result<bool, Fault> {
        let unread = self.wire.unread();
        let Some(head) = unread.first_chunk::<HEAD>() else { return Ok(false) };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if length > LONGEST_FRAME {
            return Err(malformed("a frame longer than it may be"));
        }
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & LARGEST_WINDOW;
        let Some(payload) = unread.get(HEAD..HEAD + length) else { return Ok(false) };
        let is_ours = stream == self.stream;
        if kind != DATA || !is_ours {
            self.beside += HEAD + length;
        }
        if self.beside > MOST_BESIDE {
            return Err(malformed("frames of other kinds without an answer"));
        }
        // The reply to the server; the payload is in the same buffers.
        let mut reply = Vec::new();
        match kind {
            DATA => {
                self.received += length as u32;
                if is_ours {
                    let payload = unpadded(payload, flags)?;
                    if self.answer.len() + payload.len() > LONGEST_MESSAGE {
                        return Err(malformed(&format!("an answer of more than {} MiB", LONGEST_MESSAGE >> 20)));
                    }
                    self.answer.extend_from_slice(payload);
                }
            }
            HEADERS => {
                let payload = unpadded(payload, flags)?;
                let priority = if flags & PRIORITY == 0 { 0 } else { 5 };
                let block = payload.get(priority..).ok_or_else(|| malformed("a short block of header fields"))?;
                self.unfinished.clear();
                self.unfinished.extend_from_slice(block);
                self.ends = flags & END_STREAM != 0;
            }
            CONTINUATION => {
                if self.unfinished.len() > LONGEST_FRAME * 4 {
                    return Err(malformed("header fields without end"));
                }
                self.unfinished.extend_from_slice(payload);
            }
            RST_STREAM if is_ours => {
                self.outcome = Some(Err(Fault::Server(format!("it broke the call off (error {})", number(payload)))));
            }
            GOAWAY => {
                let words = said(payload.get(8..).unwrap_or_default());
                return Err(Fault::Connection(format!("the server ends the connection: {words}")));
            }
            SETTINGS if flags & ACK == 0 => {
                for pair in payload.chunks_exact(6) {
                    if u16::from_be_bytes([pair[0], pair[1]]) == INITIAL_WINDOW_SIZE {
                        let first = i64::from(number(&pair[2..]));
                        self.stream_window += first - self.first_window;
                        self.first_window = first;
                    }
                }
                put_head(&mut reply, SETTINGS, ACK, 0, 0);
            }
            PING if flags & ACK == 0 => {
                put_head(&mut reply, PING, ACK, 0, payload.len());
                reply.extend_from_slice(payload);
            }
            WINDOW_UPDATE if stream == 0 => self.window += i64::from(number(payload)),
            WINDOW_UPDATE if is_ours => self.stream_window += i64::from(number(payload)),
            _ => {}
        }
        let ends = (kind == DATA && flags & END_STREAM != 0) && is_ours;
        let told = matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 && self.ends && is_ours;
        self.wire.consume(HEAD + length);
        self.wire.output().extend_from_slice(&reply);
        if told {
            self.outcome = Some(status(&self.unfinished));
        } else if ends {
            self.outcome = Some(Err(malformed("an answer without the outcome of its call")));
        }
        if kind == WINDOW_UPDATE || kind == SETTINGS {
            self.push();
        }
        if self.received > WINDOW_USED {
            put_window(self.wire.output(), self.received);
            self.received = 0;
        }
        Ok(true)
    }
}

/// Those of gRPC's codes that are refusals: PERMISSION_DENIED and UNAUTHENTICATED.
const REFUSALS: [&[u8]; 2] = [b"7", b"16"];
/// etcd's messages about logins that have other codes.
const OF_LOGINS: [&str; 3] = ["authentication failed", "user name is empty", "authentication is not enabled"];

/// etcd's messages when most members of a cluster do not answer the one that was called.
const WITHOUT_LEADER: [&str; 2] = ["request timed out", "no leader"];
/// What they mean.
pub const NO_QUORUM: &str = "the cluster decides nothing: too few of its members answer, or their disks are slow";

/// The result of a call, from the fields at its end.
fn status(block: &[u8]) -> Result<(), Fault> {
    let fields = hpack::fields(block)?;
    let of = |name: &str| fields.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice());
    let Some(code) = of("grpc-status") else { return Err(malformed("no gRPC: the outcome of the call is missing")) };
    if code == b"0" {
        return Ok(());
    }
    let words = of("grpc-message").map(|words| percent_decode(words).collect::<Vec<u8>>()).unwrap_or_default();
    let words = said(&words);
    // A member waits for 7 s until it says so, in which no operation ends: the frame does.
    if WITHOUT_LEADER.iter().any(|told| words.contains(told)) {
        return Err(Fault::Connection(format!("{words}: {NO_QUORUM}")));
    }
    let refused = REFUSALS.contains(&code) || OF_LOGINS.iter().any(|refusal| words.contains(refusal));
    Err(if refused { Fault::Refused(words) } else { Fault::Server(format!("{words} (status {})", said(code))) })
}

/// The message in `answer`.
fn message(answer: &[u8]) -> Result<&[u8], Fault> {
    let (head, message) = answer.split_first_chunk::<MESSAGE_HEAD>().ok_or_else(|| malformed("an empty answer"))?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if head[0] != 0 || message.len() != length {
        return Err(malformed("an answer that is not one message, uncompressed"));
    }
    Ok(message)
}

fn put_head(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, length: usize) {
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Lets the server send so many bytes more on the connection.
fn put_window(out: &mut Vec<u8>, more: u32) {
    put_head(out, WINDOW_UPDATE, 0, 0, 4);
    out.extend_from_slice(&more.to_be_bytes());
}

fn unpadded(payload: &[u8], flags: u8) -> Result<&[u8], Fault> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let inner =
        payload.split_first().and_then(|(padding, rest)| rest.get(..rest.len().checked_sub(usize::from(*padding))?));
    inner.ok_or_else(|| malformed("a frame of padding"))
}

/// The number at the beginning of `payload`; 0 if it is too short.
fn number(payload: &[u8]) -> u32 {
    payload.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) & LARGEST_WINDOW)
}

fn malformed(what: &str) -> Fault {
    Fault::Protocol(format!("the server does not speak gRPC over HTTP/2: {what}"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Shutdown, TcpListener},
    };

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        put_head(&mut frame, kind, flags, stream, payload.len());
        frame.extend_from_slice(payload);
        frame
    }

    /// The end of a call with this status.
    fn end(status: &str, words: &str) -> Vec<u8> {
        let mut block = vec![0x88];
        hpack::put_field(&mut block, 0, "grpc-status", status.as_bytes());
        hpack::put_field(&mut block, 0, "grpc-message", words.as_bytes());
        frame(HEADERS, END_STREAM | END_HEADERS, 1, &block)
    }

    /// The result of a call with a request of so many bytes at a server that sends `said`, and how many bytes it got.
    fn meet(said: &[u8], request: usize) -> (Result<Vec<u8>, Fault>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::scope(|scope| {
            let server = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.write_all(said).expect("sent");
                stream.shutdown(Shutdown::Write).expect("shut");
                let mut sent = Vec::new();
                let _ = stream.read_to_end(&mut sent);
                sent.len()
            });
            let call = || {
                let mut http = Http2::new(Wire::connect("127.0.0.1", port)?, "store")?;
                http.submit("/etcdserverpb.KV/Range", |out| out.resize(MESSAGE_HEAD + request, 0))?;
                loop {
                    if let Some(answer) = http.advance()? {
                        return Ok(answer.to_vec());
                    }
                }
            };
            let outcome = call();
            (outcome, server.join().expect("the server ends"))
        })
    }

    fn check(said: &[&[u8]], expect: Expect) {
        let outcome = meet(&said.concat(), 3).0;
        expect.assert_eq(&outcome.map_or_else(|fault| fault.to_string(), |answer| format!("{answer:?}")));
    }

    const ANSWER: [u8; 7] = [0, 0, 0, 0, 2, 8, 9];

    #[test]
    fn a_call_ends_with_its_message_or_with_what_the_server_says() {
        let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]);
        let ping = frame(PING, 0, 0, &[7; 8]);
        let begins = frame(HEADERS, END_HEADERS, 1, &[0x88]);
        let data = [frame(DATA, 0, 1, &ANSWER[..3]), frame(DATA, PADDED, 1, &[&[2], &ANSWER[3..], &[0, 0]].concat())];
        check(&[&settings, &ping, &begins, &data[0], &data[1], &end("0", "")], expect!["[8, 9]"]);
        check(&[&end("7", "permission%20denied")], expect!["refused: permission denied"]);
        check(&[&end("3", "authentication failed")], expect!["refused: authentication failed"]);
        check(
            &[&end("14", "etcdserver: request timed out, possibly due to connection lost")],
            expect![
                "connection: etcdserver: request timed out, possibly due to connection lost: the cluster decides nothing: too few of its members answer, or their disks are slow"
            ],
        );
        check(&[&end("12", "unknown method")], expect!["server: unknown method (status 12)"]);
        check(&[&end("0", "")], expect!["protocol: the server does not speak gRPC over HTTP/2: an empty answer"]);
        check(&[&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])], expect!["server: it broke the call off (error 8)"]);
        check(
            &[&frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0too many pings")],
            expect!["connection: the server ends the connection: too many pings"],
        );
        check(
            &[b"HTTP/1.1 400 Bad Request\r\n\r\n"],
            expect!["protocol: the server does not speak gRPC over HTTP/2: a frame longer than it may be"],
        );
        check(&[], expect!["connection: the server closed the connection"]);
    }

    #[test]
    fn no_more_is_sent_than_the_server_has_a_window_for() {
        let large = 200_000;
        let (_, sent) = meet(&[], large);
        assert!((65_535..66_500).contains(&sent), "{sent}");
        let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 16, 0, 0]);
        let window = frame(WINDOW_UPDATE, 0, 0, &[0, 16, 0, 0]);
        let (outcome, sent) = meet(&[settings, window, frame(DATA, 0, 1, &ANSWER), end("0", "")].concat(), large);
        assert_eq!(outcome, Ok(vec![8, 9]));
        assert!(sent > large, "{sent}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn foreign_servers_never_panic(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]);
            let mut said = [settings, frame(HEADERS, END_HEADERS, 1, &[0x88]), frame(DATA, 0, 1, &ANSWER), end("0", "a")].concat();
            for (at, byte) in changes {
                let at = at.index(said.len());
                said[at] = byte;
            }
            let _ = meet(&said, 3);
        }
    }
}
