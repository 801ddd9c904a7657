//! A byte stream to a server: TCP or a Unix socket, and TLS on top of it if requested, for the wire clients of all
//! databases.
//!
//! A request is assembled in [`Wire::output`] and sent by one system call; an answer is received by one system call if
//! the kernel has all of it, and is parsed in place. The buffers are reused, so a plain connection allocates nothing
//! per request. TLS is rustls, which allocates one buffer per record.
//!
//! Not included: the meaning of the bytes, and every form of fallback. TLS starts only on request of the caller, and
//! its failure is an error.

mod cursor;
pub mod decimal;
mod der;
#[doc(hidden)]
pub mod foreign;
pub mod kept;
mod opening;
mod tls;

use std::{
    fs,
    io::{ErrorKind, IoSlice, Read, Write},
    net::{IpAddr, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{fs::FileTypeExt as _, net::UnixStream},
    },
    path::Path,
    sync::Arc,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use rustls::{ClientConnection, pki_types::ServerName};
use tithe_machine::fault::Fault;

pub use cursor::{Cursor, Format};
pub use der::element;
use kept::{Kept, too_much};
pub use opening::{Moment, let_in, take as take_opened};
pub use rustls::ClientConfig;
pub use tls::{Identity, Trust, client_config};

use crate::session::{TIMEOUT_S, timeout_s};

/// Time limit for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for sending a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(TIMEOUT_S as u64);
/// Time limit for the first answer on a connection, s.
static FIRST_ANSWER_S: AtomicU16 = AtomicU16::new(TIMEOUT_S);
/// Bytes requested from the kernel at once: a scan of a hundred records of 1 KB takes few calls.
const READ_SIZE: usize = 64 * 1024;
/// The input buffer is enlarged or compacted if less than this is free.
const LEAST_ROOM: usize = 16 * 1024;
/// Most bytes of one message, which waits in memory until all of it has arrived.
pub const LONGEST_MESSAGE: usize = 32 << 20;
/// The same of an answer to a question of Tithe's own: a copy of it is kept as well.
const LONGEST_ANSWER: usize = 8 << 20;

/// Limits the wait for the first answer on a connection to `seconds`, for interactive use: the user may have named a
/// port with another protocol, or a server behind a network that drops all packets.
pub fn hasten(seconds: u16) {
    FIRST_ANSWER_S.store(seconds.clamp(1, TIMEOUT_S), Ordering::Relaxed);
}

/// Time limit for the first answer on a connection.
fn first_answer() -> Duration {
    Duration::from_secs(FIRST_ANSWER_S.load(Ordering::Relaxed).into())
}

/// One connection as a stream of bytes.
pub struct Wire {
    socket: TcpStream,
    blocking: bool,
    /// Time limit for an answer when blocking.
    timeout: Duration,
    /// Time limit for the present answer: it may be shorter until the first one was understood.
    patience: Duration,
    tls: Option<Box<Tls>>,
    input: Vec<u8>,
    read_from: usize,
    read_to: usize,
    output: Vec<u8>,
    sent_of_output: usize,
    traffic: Traffic,
    /// The question that is being answered; `None` on the connection of a session, whose answers are not kept.
    question: Option<Question>,
}

/// A question of Tithe's own: the answer must end in time, and in memory.
struct Question {
    asked: Instant,
    answer: Kept,
}

impl Question {
    fn now() -> Option<Self> {
        Some(Self { asked: Instant::now(), answer: Kept::default() })
    }
}

/// A TLS connection with the buffer that the socket is read into.
struct Tls {
    connection: ClientConnection,
    received: Box<[u8]>,
    /// The server has closed TLS; data it sent before may still be unread.
    closed: bool,
}

/// Bytes on the wire so far: with TLS, the encrypted ones.
#[derive(Debug, Clone, Copy, Default)]
struct Traffic {
    sent: u64,
    received: u64,
}

/// What the two sides agreed on, as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// Protocol version: `TLSv1.3`.
    pub version: String,
    /// Cipher suite, as its standard names it: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// Key exchange group: `X25519`.
    pub key_exchange: String,
    /// Kind of handshake: `Full`, `Resumed`.
    pub handshake: String,
    /// Kind of the server's key: `ecdsa-p256`.
    pub key: String,
    /// Certificates that the server presented.
    pub chain: usize,
}

impl TlsFacts {
    /// Version and cipher suite: `TLSv1.3 TLS_AES_256_GCM_SHA384`.
    pub fn suite(&self) -> String {
        format!("{} {}", self.version, self.cipher)
    }

    /// Version, cipher suite, key exchange group and kind of handshake: `TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 Full`.
    pub fn in_words(&self) -> String {
        format!("{} {} {}", self.suite(), self.key_exchange, self.handshake)
    }
}

/// True if `host` is the path of a Unix socket and not a name.
pub fn is_socket(host: &str) -> bool {
    host.starts_with('/')
}

/// True for a `host` that names this machine: a socket, `localhost`, an address of the loopback device.
pub fn is_this_machine(host: &str) -> bool {
    is_socket(host)
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A connection to the Unix socket at `path`. Reading, writing and waiting are the same for all kinds of connected
/// sockets, so it has the type of the most common one.
///
/// # Errors
/// From the machine: nothing listens there, or it is no socket.
pub fn connect_socket(path: &Path) -> std::io::Result<TcpStream> {
    let connected = UnixStream::connect(path).map(|stream| TcpStream::from(OwnedFd::from(stream)));
    // The kernel reports for any file that nothing listens there.
    let is_socket = || fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    connected.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused if !is_socket() => std::io::Error::other("it is not a socket"),
        ErrorKind::ConnectionRefused => std::io::Error::other("no server listens there"),
        _ => error,
    })
}

impl Wire {
    /// Opens a connection to the Unix socket `host`, or by TCP to that host without delay of small packets. It blocks
    /// unless [`Wire::set_blocking`] changes that.
    ///
    /// # Errors
    /// [`Fault::Connection`] if no address of `host` accepts within ten seconds.
    pub fn connect(host: &str, port: u16) -> Result<Self, Fault> {
        let begun = Moment::now();
        let wire = Self::reach(host, port)?;
        opening::accepted(begun);
        Ok(wire)
    }

    fn reach(host: &str, port: u16) -> Result<Self, Fault> {
        if is_socket(host) {
            let socket = connect_socket(Path::new(host));
            return Self::over(socket.map_err(|error| Fault::Connection(format!("socket {host}: {error}")))?);
        }
        let refused = |error: std::io::Error| Fault::Connection(format!("{host}:{port}: {error}"));
        let timeout = CONNECT_TIMEOUT.min(first_answer()).min(Duration::from_secs(timeout_s().into()));
        let mut last = None;
        for address in (host, port).to_socket_addrs().map_err(refused)? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Self::over(socket);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| Fault::Connection(format!("{host}:{port}: no such host")), refused))
    }

    fn over(socket: TcpStream) -> Result<Self, Fault> {
        let timeout = Duration::from_secs(timeout_s().into());
        let patience = first_answer().min(timeout);
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self {
            socket,
            blocking: true,
            timeout,
            patience,
            tls: None,
            input: vec![0; READ_SIZE],
            read_from: 0,
            read_to: 0,
            output: Vec::with_capacity(4096),
            sent_of_output: 0,
            traffic: Traffic::default(),
            question: Question::now(),
        })
    }

    /// Makes this the connection of a session, whose reads and writes wait in the kernel, or not, and whose answers
    /// have any length. A connection is opened blocking, so that the handshakes need no event loop, and for questions.
    ///
    /// # Errors
    /// If the machine refuses.
    pub fn set_blocking(&mut self, blocking: bool) -> Result<(), Fault> {
        self.socket.set_nonblocking(!blocking)?;
        self.blocking = blocking;
        self.question = None;
        Ok(())
    }

    /// Nothing is kept of the answer so far, which may be long.
    pub fn keeps_nothing(&mut self) {
        if let Some(question) = &mut self.question {
            question.answer = Kept::default();
        }
    }

    /// True if reads and writes wait in the kernel.
    pub fn blocks(&self) -> bool {
        self.blocking
    }

    /// Speaks TLS from here on. Call it on a blocking connection, with nothing unread and nothing unsent.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if the server has already sent bytes before the handshake: an attacker in the middle could
    /// have inserted them (CVE-2021-23222). [`Fault::Refused`] if either side rejects the other's certificate or
    /// version.
    pub fn start_tls(&mut self, config: Arc<ClientConfig>, host: &str) -> Result<(), Fault> {
        if !self.unread().is_empty() {
            return Err(Fault::Protocol("the server sent bytes in the clear after agreeing to TLS".to_owned()));
        }
        let begun = Moment::now();
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Fault::Refused(format!("`{host}` is not a name for a certificate")))?;
        let mut connection = ClientConnection::new(config, name).map_err(tls_fault)?;
        // The caller's message is already bounded; a limit here would truncate it.
        connection.set_buffer_limit(None);
        self.tls = Some(Box::new(Tls { connection, received: vec![0; READ_SIZE].into_boxed_slice(), closed: false }));
        self.flush()?;
        while self.tls.as_ref().is_some_and(|tls| tls.connection.is_handshaking()) {
            self.receive()?;
            self.flush()?;
        }
        opening::encrypted(begun);
        Ok(())
    }

    /// The certificate that the server presented, DER; `None` without TLS.
    pub fn server_certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.connection.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// What TLS agreed on; `None` without TLS.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        let connection = &self.tls.as_ref()?.connection;
        let group = connection.negotiated_key_exchange_group();
        let shown = connection.peer_certificates().unwrap_or_default();
        Some(TlsFacts {
            // The library writes `TLSv1_3` and `TLS13_AES_256_GCM_SHA384`.
            version: format!("{:?}", connection.protocol_version()?).replace('_', "."),
            cipher: format!("{:?}", connection.negotiated_cipher_suite()?.suite()).replacen("TLS13_", "TLS_", 1),
            key_exchange: group.map_or_else(String::new, |group| format!("{:?}", group.name())),
            handshake: connection.handshake_kind().map_or_else(String::new, |kind| format!("{kind:?}")),
            key: shown.first().map_or_else(String::new, tls::key_of),
            chain: shown.len(),
        })
    }

    /// The buffer for the next request; [`Wire::flush`] sends it.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Holds what was received of the answer to its limits. A server that sends a byte now and then is never silent.
    fn count_answer(&mut self, count: usize) -> Result<(), Fault> {
        let Some(question) = &mut self.question else { return Ok(()) };
        if question.asked.elapsed() > self.patience {
            let limit_s = self.patience.as_secs();
            return Err(Fault::Connection(format!("the server's answer did not end for {limit_s} s")));
        }
        question.answer.add(0, count)
    }

    /// Sends the content of [`Wire::output`]: all of it when blocking, else as much as the kernel accepts now.
    ///
    /// # Errors
    /// A broken connection.
    pub fn flush(&mut self) -> Result<(), Fault> {
        let asks = self.question.is_some() && !self.output.is_empty();
        // A server that continues to send has understood the message.
        if self.patience != self.timeout && self.traffic.received > 0 {
            self.patience = self.timeout;
            self.socket.set_read_timeout(Some(self.timeout))?;
        }
        match &mut self.tls {
            None => {
                while self.sent_of_output < self.output.len() {
                    let rest = &self.output[self.sent_of_output..];
                    match uninterrupted(|| self.socket.write(rest)) {
                        Ok(count) => {
                            self.sent_of_output += count;
                            self.traffic.sent += count as u64;
                        }
                        Err(error) => return self.unless_would_block(error),
                    }
                }
                self.output.clear();
                self.sent_of_output = 0;
            }
            Some(tls) => {
                if !self.output.is_empty() {
                    tls.connection.writer().write_all(&self.output)?;
                    self.output.clear();
                }
                let mut counted = Counted { socket: &self.socket, sent: &mut self.traffic.sent };
                while tls.connection.wants_write() {
                    if let Err(error) = uninterrupted(|| tls.connection.write_tls(&mut counted)) {
                        return self.unless_would_block(error);
                    }
                }
            }
        }
        // A large request may take the server long to receive.
        if asks {
            self.question = Question::now();
        }
        Ok(())
    }

    /// True if part of a request waits for the socket to accept more: call [`Wire::flush`] again then.
    pub fn wants_write(&self) -> bool {
        match &self.tls {
            None => !self.output.is_empty(),
            Some(tls) => !self.output.is_empty() || tls.connection.wants_write(),
        }
    }

    /// Received bytes that are not consumed yet.
    pub fn unread(&self) -> &[u8] {
        &self.input[self.read_from..self.read_to]
    }

    /// Makes sure of it before a question, of a server that speaks only when it is asked.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if it has sent more than the answer to the question before.
    pub fn hears_nothing(&self) -> Result<(), Fault> {
        match self.unread() {
            [] => Ok(()),
            _ => Err(Fault::Protocol("the server sent data that was not requested".to_owned())),
        }
    }

    /// Marks the first `count` of [`Wire::unread`] as read.
    pub fn consume(&mut self, count: usize) {
        self.read_from = (self.read_from + count).min(self.read_to);
        if self.read_from == self.read_to {
            self.read_from = 0;
            self.read_to = 0;
        }
    }

    /// Receives more. False if nothing has arrived yet, which a blocking connection never returns.
    ///
    /// # Errors
    /// A broken or closed connection; a blocking connection that received nothing for 60 seconds.
    pub fn fill(&mut self) -> Result<bool, Fault> {
        let before = self.read_to - self.read_from;
        loop {
            if !self.receive()? {
                return Ok(false);
            }
            // A TLS record may come in parts, or contain no data for us: only plain bytes count.
            if self.read_to - self.read_from > before {
                return Ok(true);
            }
            if self.tls.as_ref().is_some_and(|tls| tls.connection.wants_write()) {
                self.flush()?;
            }
        }
    }

    /// One read of the socket. False if nothing has arrived yet.
    fn receive(&mut self) -> Result<bool, Fault> {
        self.make_room(LEAST_ROOM)?;
        let target = match &mut self.tls {
            None => &mut self.input[self.read_to..],
            Some(tls) if tls.closed => return Err(closed()),
            Some(tls) => &mut tls.received[..],
        };
        let count = match uninterrupted(|| self.socket.read(target)) {
            Ok(0) => return Err(closed()),
            Ok(count) => count,
            Err(error) => return self.unless_would_block(error).map(|()| false),
        };
        self.traffic.received += count as u64;
        if self.tls.is_none() {
            self.read_to += count;
        } else {
            self.decrypt(count)?;
        }
        self.count_answer(count)?;
        Ok(true)
    }

    /// Decrypts the first `count` received bytes into the input: all of them, so that no plain byte stays in rustls
    /// while `epoll` waits for a socket that receives nothing more.
    fn decrypt(&mut self, count: usize) -> Result<(), Fault> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let result = self.decrypt_with(&mut tls, count);
        self.tls = Some(tls);
        result
    }

    fn decrypt_with(&mut self, tls: &mut Tls, count: usize) -> Result<(), Fault> {
        let mut rest = &tls.received[..count];
        while !rest.is_empty() {
            // Bytes after the other side's close are not read.
            if tls.connection.read_tls(&mut rest)? == 0 {
                break;
            }
            let state = match tls.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // Send the reason to the server, if the socket accepts it: the connection is lost either way.
                    let mut counted = Counted { socket: &self.socket, sent: &mut self.traffic.sent };
                    let _ = tls.connection.write_tls(&mut counted);
                    return Err(tls_fault(error));
                }
            };
            let mut plain = state.plaintext_bytes_to_read();
            self.make_room(plain)?;
            while plain > 0 {
                let taken = tls.connection.reader().read(&mut self.input[self.read_to..self.read_to + plain])?;
                self.read_to += taken;
                plain -= taken;
            }
            tls.closed |= state.peer_has_closed();
        }
        Ok(())
    }

    /// Makes at least `room` bytes free after the unread ones.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if more is unread than one message of an answer may have.
    fn make_room(&mut self, room: usize) -> Result<(), Fault> {
        if self.input.len() - self.read_to >= room {
            return Ok(());
        }
        let longest = if self.question.is_some() { LONGEST_ANSWER } else { LONGEST_MESSAGE };
        if self.read_to - self.read_from > longest {
            return Err(too_much("a message", longest));
        }
        self.input.copy_within(self.read_from..self.read_to, 0);
        self.read_to -= self.read_from;
        self.read_from = 0;
        if self.input.len() - self.read_to < room {
            let doubled = (self.input.len() * 2).min(longest + READ_SIZE);
            self.input.resize(doubled.max(self.read_to + room), 0);
        }
        Ok(())
    }

    /// `Ok` if a non-blocking connection has to wait; else the fault for `error`.
    fn unless_would_block(&self, error: std::io::Error) -> Result<(), Fault> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut if self.blocking => {
                let waited = self.socket.read_timeout().ok().flatten().unwrap_or(self.timeout);
                Err(Fault::Connection(format!("the server did not answer for {} s", waited.as_secs())))
            }
            ErrorKind::WouldBlock => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// Bytes sent and received so far; with TLS, handshake and record headers included.
    pub fn bytes(&self) -> (u64, u64) {
        (self.traffic.sent, self.traffic.received)
    }
}

impl Drop for Wire {
    /// Closes TLS as the protocol requires (RFC 8446, section 6.1), if the socket accepts it: without the close message
    /// a server may treat the connection as cut off, and forbid resuming its session.
    fn drop(&mut self) {
        if let Some(tls) = self.tls.as_mut().filter(|tls| !tls.connection.is_handshaking()) {
            tls.connection.send_close_notify();
            if self.set_blocking(false).is_ok() {
                let _ = self.flush();
            }
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that counts what is written to it.
struct Counted<'a> {
    socket: &'a TcpStream,
    sent: &'a mut u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.socket.write(bytes)?;
        *self.sent += count as u64;
        Ok(count)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> std::io::Result<usize> {
        let count = self.socket.write_vectored(parts)?;
        *self.sent += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The result of `call`, which is repeated while a signal interrupts it.
fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn closed() -> Fault {
    Fault::Connection("the server closed the connection".to_owned())
}

/// A TLS failure as a fault, with a remedy for a certificate: a rejected certificate or an alert of the server is a
/// refusal. With TLS 1.3 a server rejects a client certificate only after the client's handshake is over, so alerts
/// count at any time.
pub fn tls_fault(error: rustls::Error) -> Fault {
    match error {
        rustls::Error::AlertReceived(rustls::AlertDescription::ProtocolVersion) => {
            Fault::Refused("TLS: the server speaks none of the versions that are allowed here".to_owned())
        }
        rustls::Error::InvalidMessage(_) => Fault::Connection("TLS: the server does not answer with TLS".to_owned()),
        rustls::Error::InvalidCertificate(why) => Fault::Refused(format!("TLS: {}", tls::certificate_refused(&why))),
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => Fault::Refused(format!("TLS: {error}")),
        _ => Fault::Connection(format!("TLS: {error}")),
    }
}

#[cfg(test)]
mod tests;
