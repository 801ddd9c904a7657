//! A relay between client and server that captures the traffic. For evidence only: never in a measured path.
//!
//! It listens on a free port of 127.0.0.1 and speaks no protocol, so it works for every product. Two threads per
//! connection copy bytes; all of them end when the relay does.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};

use crate::{
    database::Database,
    wire::{connect_socket, is_socket},
};

/// Most bytes captured of one direction of one connection; later bytes pass but are not captured.
pub const CAPTURE_BYTES: usize = 1 << 20;

/// The result of a wire check if there is no wire.
const EMBEDDED: &str = "there is no wire: the database is embedded";

/// Time limit for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before a step is repeated: accepting a client without a free descriptor, or waiting for threads to end.
const AGAIN: Duration = Duration::from_millis(1);

/// The traffic of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Client to server.
    pub sent: Vec<u8>,
    /// Server to client.
    pub received: Vec<u8>,
    /// True when a direction passed more than [`CAPTURE_BYTES`].
    pub truncated: bool,
}

impl Conversation {
    /// Where the client's first TLS handshake begins in the bytes it sent: 0, or after a plaintext opening, for
    /// products that switch to TLS within their own protocol. `None`: no handshake near the start.
    pub fn tls_handshake(&self) -> Option<usize> {
        self.sent.windows(11).take(OPENING).position(is_client_hello)
    }

    /// Bytes of both directions before the handshake, if all captured bytes after it were TLS records; `None` if some
    /// were not, or there was no handshake.
    pub fn outside_tls(&self) -> Option<usize> {
        let sent = before_records(&self.sent, self.tls_handshake()?)?;
        let hello = self.received.windows(7).take(OPENING).position(is_server_hello)?;
        Some(sent + before_records(&self.received, hello)?)
    }
}

/// Longest plaintext opening: MySQL's client has 36 bytes and its server some 100, PostgreSQL's 8; SMTP-like greetings
/// are longer.
const OPENING: usize = 256;

/// `begin`, if all of `bytes` from there on are TLS records, the last of which may be cut short; else `None`.
fn before_records(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut rest = &bytes[begin..];
    while let [kind, version, minor, high, low, behind @ ..] = rest {
        // Types from ChangeCipherSpec to Heartbeat; at most 2^14 bytes and the cipher's overhead (RFC 5246, 6.2.3).
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if !(20..=24).contains(kind) || *version != 3 || *minor > 4 || length > (1 << 14) + 2048 {
            return None;
        }
        rest = behind.get(length..).unwrap_or_default();
    }
    Some(begin)
}

/// A TLS record of type handshake whose first message is a ServerHello; the rest does not matter.
fn is_server_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, 0x01..=0x03, _, _, 0x02, 0x00, ..])
}

/// A TLS record of type handshake whose first message is a ClientHello (RFC 8446, sections 4 and 5.1).
fn is_client_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, 0x01..=0x03, _, _, 0x01, 0x00, _, _, 0x03, 0x03])
}

/// A running relay; dropping it ends it with all its connections.
pub struct Relay {
    port: u16,
    listener: Arc<TcpListener>,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    links: Mutex<Vec<Link>>,
}

struct Link {
    /// Client and server. The threads that copy have them, so that a connection that has ended holds no descriptor:
    /// some programs open thousands, one after the other.
    sockets: Weak<(TcpStream, TcpStream)>,
    /// The port from which it is connected to the server.
    port: Option<u16>,
    conversation: Arc<Mutex<Conversation>>,
}

impl Relay {
    /// Starts a relay to `host:port`, or to the Unix socket `host`.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(host: &str, port: u16) -> Result<Self, Fault> {
        let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0))?);
        let own = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let (worker, accepting, target) = (Arc::clone(&shared), Arc::clone(&listener), (host.to_owned(), port));
        let acceptor = thread::spawn(move || worker.accept(&accepting, &target));
        Ok(Self { port: own, listener, shared, acceptor: Some(acceptor) })
    }

    /// Starts a relay to `server`, and gives the server as reached through it; or the reason why the wire cannot be
    /// checked.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn before(database: &dyn Database, server: &Server) -> Result<Result<(Self, Server), Observation>, Fault> {
        let (relay, address) = match &server.address {
            Address::Tcp { host, port } => {
                let relay = Self::start(host, *port)?;
                let address = relay.address();
                (relay, address)
            }
            Address::Attached(url) | Address::Relayed { url, .. } => {
                let Some((host, port)) = database.endpoint(url) else {
                    let words = "the driver leads clients of this server elsewhere: a relay is not possible";
                    return Ok(Err(Observation::OutOfReach(words.to_owned())));
                };
                let relay = Self::start(&host, port)?;
                let address = Address::Relayed { url: url.clone(), port: relay.port };
                (relay, address)
            }
            Address::File(_) | Address::Nowhere => return Ok(Err(Observation::Unknown(EMBEDDED.to_owned()))),
        };
        Ok(Ok((relay, Server { address, ..server.clone() })))
    }

    /// Where clients reach a server that Tithe launched. The host is the loopback address, for which certificates made
    /// by Tithe are valid.
    pub fn address(&self) -> Address {
        Address::Tcp { host: "127.0.0.1".to_owned(), port: self.port }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The ports from which it has connected to the server so far; the server identifies its clients by them.
    pub fn ports(&self) -> Vec<u16> {
        lock(&self.shared.links).iter().filter_map(|link| link.port).collect()
    }

    /// Ends it, and gives the traffic, in the order of the connections.
    pub fn finish(mut self) -> Vec<Conversation> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Conversation> {
        let Some(acceptor) = self.acceptor.take() else {
            return Vec::new();
        };
        self.shared.stopping.store(true, Ordering::SeqCst);
        // On Linux this ends a waiting accept(2) with an error. Unlike a connection, it needs no free descriptor.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        let _ = acceptor.join();
        let links = std::mem::take(&mut *lock(&self.shared.links));
        links.into_iter().map(Link::end).collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn accept(&self, listener: &TcpListener, target: &(String, u16)) {
        loop {
            let accepted = listener.accept();
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            // One client that cannot be served does not end the relay for those that follow.
            let Ok((client, _)) = accepted else {
                thread::sleep(AGAIN);
                continue;
            };
            // A client that has an answer must find its connection in the list.
            let mut links = lock(&self.links);
            // A server that cannot be reached appears as a closed connection, as it would without the relay.
            links.extend(Link::open(client, target));
        }
    }
}

impl Link {
    fn open(client: TcpStream, target: &(String, u16)) -> std::io::Result<Self> {
        let server = connect(target)?;
        client.set_nodelay(true)?;
        let port = server.local_addr().ok().map(|address| address.port());
        let (sockets, conversation) = (Arc::new((client, server)), Arc::new(Mutex::new(Conversation::default())));
        for back in [false, true] {
            let pump = Pump { sockets: Arc::clone(&sockets), back, conversation: Arc::clone(&conversation) };
            if let Err(error) = thread::Builder::new().spawn(move || pump.run()) {
                shut(&sockets);
                return Err(error);
            }
        }
        Ok(Self { sockets: Arc::downgrade(&sockets), port, conversation })
    }

    fn end(self) -> Conversation {
        self.sockets.upgrade().iter().for_each(|sockets| shut(sockets));
        // The threads end with their sockets, and have captured everything by then.
        while self.sockets.strong_count() > 0 {
            thread::sleep(AGAIN);
        }
        std::mem::take(&mut *lock(&self.conversation))
    }
}

/// Ends a connection on both sides, one of which may be closed already.
fn shut((client, server): &(TcpStream, TcpStream)) {
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

/// A connection to the first address of `target` that accepts one in time.
fn connect(target: &(String, u16)) -> std::io::Result<TcpStream> {
    if is_socket(&target.0) {
        return connect_socket(Path::new(&target.0));
    }
    let mut last = std::io::Error::other("no such host");
    for address in (target.0.as_str(), target.1).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Copies one direction of one connection.
struct Pump {
    sockets: Arc<(TcpStream, TcpStream)>,
    /// From the server to the client.
    back: bool,
    conversation: Arc<Mutex<Conversation>>,
}

impl Pump {
    /// Runs until either side closes. Bytes are captured before they are passed on, so that a client with an answer
    /// knows that it is in the capture.
    fn run(self) {
        let (client, server) = &*self.sockets;
        let (mut from, mut to) = if self.back { (server, client) } else { (client, server) };
        let mut buffer = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let mut conversation = lock(&self.conversation);
            let kept = if self.back { &mut conversation.received } else { &mut conversation.sent };
            let room = CAPTURE_BYTES - kept.len();
            kept.extend_from_slice(&buffer[..read.min(room)]);
            conversation.truncated |= read > room;
            drop(conversation);
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // The other direction may still be in use: only this one is closed.
        let _ = to.shutdown(Shutdown::Write);
    }
}

/// A poisoned lock is used as it is: a capture has no state that a panic could leave half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tithe_machine::{sandbox::ports::Port, soon::soon};

    use super::*;

    /// A server that answers every byte with its successor, for one connection, whose port it gives in the end.
    fn successor_server() -> (u16, JoinHandle<u16>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, client) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                buffer[..read].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                stream.write_all(&buffer[..read]).unwrap();
            }
            client.port()
        });
        (port, server)
    }

    fn connect(relay: &Relay) -> TcpStream {
        let Address::Tcp { host, port } = relay.address() else { panic!("a relay has a TCP address") };
        TcpStream::connect((host.as_str(), port)).unwrap()
    }

    #[test]
    fn passes_bytes_both_ways_and_keeps_them() {
        let (port, server) = successor_server();
        let relay = Relay::start("127.0.0.1", port).unwrap();
        let mut client = connect(&relay);
        client.write_all(b"HAL").unwrap();
        let mut answer = [0; 3];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"IBM");
        assert_eq!(relay.address(), Address::Tcp { host: "127.0.0.1".to_owned(), port: relay.port() });
        let ports = relay.ports();
        let conversations = relay.finish();
        assert_eq!(
            conversations,
            [Conversation { sent: b"HAL".to_vec(), received: b"IBM".to_vec(), truncated: false }]
        );
        assert_eq!(client.read(&mut answer).unwrap_or(0), 0, "an ended relay closes its connections");
        assert_eq!(ports, [server.join().unwrap()], "the server knows its client by it");
    }

    #[test]
    fn a_relay_that_is_dropped_closes_its_connections() {
        let (port, server) = successor_server();
        let relay = Relay::start("127.0.0.1", port).unwrap();
        let mut client = connect(&relay);
        client.write_all(b"HAL").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        drop(relay);
        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
        server.join().unwrap();
    }

    #[test]
    fn a_connection_that_has_ended_holds_no_descriptor_and_its_traffic_is_kept() {
        let (port, server) = successor_server();
        let relay = Relay::start("127.0.0.1", port).unwrap();
        let mut client = connect(&relay);
        client.write_all(b"HAL").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        let held = || lock(&relay.shared.links).iter().map(|link| link.sockets.strong_count()).sum::<usize>();
        assert_eq!(held(), 2, "one for each direction");
        drop(client);
        let port = server.join().unwrap();
        soon("the end of both threads", || match held() {
            0 => Ok(()),
            held => Err(held),
        });
        assert_eq!((held(), relay.ports()), (0, vec![port]));
        let conversations = relay.finish();
        assert_eq!((conversations.len(), conversations[0].sent.as_slice()), (1, &b"HAL"[..]));
    }

    #[test]
    fn passes_more_than_it_keeps() {
        const PIECE: usize = 4096;
        const ALL: usize = CAPTURE_BYTES / PIECE;
        for (pieces, expected) in [(ALL, (CAPTURE_BYTES, false)), (ALL + 2, (CAPTURE_BYTES, true))] {
            let (port, server) = successor_server();
            let relay = Relay::start("127.0.0.1", port).unwrap();
            let mut client = connect(&relay);
            let mut piece = [7; PIECE];
            for _ in 0..pieces {
                piece.fill(7);
                client.write_all(&piece).unwrap();
                client.read_exact(&mut piece).unwrap();
                assert_eq!(piece, [8; PIECE]);
            }
            let conversation = relay.finish().remove(0);
            assert_eq!((conversation.sent.len(), conversation.truncated), expected);
            server.join().unwrap();
        }
    }

    #[test]
    fn a_server_that_is_not_there_closes_the_connection() {
        let port = Port::draw(Ipv4Addr::LOCALHOST.into()).unwrap();
        let relay = Relay::start("127.0.0.1", port.number()).unwrap();
        let mut client = connect(&relay);
        assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
        assert!(relay.finish().is_empty());
    }

    #[test]
    fn a_handshake_is_seen_after_an_opening_in_the_clear() {
        let hello = [0x16, 3, 1, 0, 0xf5, 1, 0, 0, 0xf1, 3, 3, 0x42];
        let conversation = |sent: Vec<u8>| Conversation { sent, ..Conversation::default() };
        assert_eq!(conversation(hello.to_vec()).tls_handshake(), Some(0));
        assert_eq!(conversation([&[0, 0, 0, 8, 4, 210, 22, 47][..], &hello].concat()).tls_handshake(), Some(8));
        assert_eq!(conversation(b"SELECT 1".repeat(100)).tls_handshake(), None);
        assert_eq!(conversation(hello[..8].to_vec()).tls_handshake(), None);
    }

    #[test]
    fn a_record_of_tls_has_a_type_a_version_and_a_length() {
        let is_record = |head: [u8; 5]| before_records(&[&head[..], &[0; 4]].concat(), 0).is_some();
        for (head, expected) in [
            ([20, 3, 0, 0, 4], true),
            ([24, 3, 4, 0, 4], true),
            // 2^14 + 2048 bytes, of which the capture holds a few.
            ([23, 3, 3, 0x48, 0], true),
            ([19, 3, 3, 0, 4], false),
            ([25, 3, 3, 0, 4], false),
            ([23, 2, 3, 0, 4], false),
            ([23, 3, 5, 0, 4], false),
            ([23, 3, 3, 0x48, 1], false),
        ] {
            assert_eq!(is_record(head), expected, "{head:?}");
        }
    }

    #[test]
    fn what_passes_beside_the_records_of_tls_is_found() {
        let hello = [&[0x16, 3, 1, 0, 7, 1, 0, 0, 3, 3, 3, 0x42][..], &[0x17, 3, 3, 0, 2, 9, 9]].concat();
        let answer = [0x16, 3, 3, 0, 4, 2, 0, 0, 0, 0x17, 3, 3, 0, 1, 9];
        let outside = |sent: &[&[u8]], received: &[&[u8]]| {
            Conversation { sent: sent.concat(), received: received.concat(), truncated: false }.outside_tls()
        };
        assert_eq!(outside(&[&hello], &[&answer]), Some(0));
        assert_eq!(outside(&[&[0; 8], &hello], &[b"S", &answer]), Some(9));
        // Cut short, as at the end of the capture.
        assert_eq!(outside(&[&hello[..17]], &[&answer[..14]]), Some(0));
        assert_eq!(outside(&[&hello, b"SELECT 1"], &[&answer]), None);
        assert_eq!(outside(&[&hello], &[&answer, b"secret"]), None);
        assert_eq!(outside(&[&hello], &[b"N"]), None);
        assert_eq!(outside(&[b"SELECT 1"], &[b"1"]), None);
    }
}
