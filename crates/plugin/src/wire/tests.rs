use std::{net::TcpListener, path::PathBuf, thread::JoinHandle};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};
use tithe_machine::sandbox::certificates::pem_of;

use super::*;
use crate::{session::answered_within, setup::TlsVersion};

/// Echoes until the client leaves.
fn echo(mut stream: impl Read + Write) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

fn serve(handle: impl FnOnce(TcpStream) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (port, std::thread::spawn(move || handle(listener.accept().expect("a client").0)))
}

fn receive_exactly(wire: &mut Wire, length: usize) -> Vec<u8> {
    while wire.unread().len() < length {
        wire.fill().expect("an answer");
    }
    let bytes = wire.unread()[..length].to_vec();
    wire.consume(length);
    bytes
}

#[test]
fn a_plain_connection_echoes_and_counts() {
    let (port, server) = serve(echo);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    for size in [1, 10, 200_000] {
        let message: Vec<u8> = (0..size).map(|index| index as u8).collect();
        // More bytes than the sockets buffer would block both sides: send in parts.
        for part in message.chunks(10_000) {
            wire.output().extend_from_slice(part);
            wire.flush().expect("sent");
            assert_eq!(receive_exactly(&mut wire, part.len()), part);
        }
    }
    assert_eq!(wire.bytes(), (200_011, 200_011));
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn unread_bytes_survive_growth_of_the_buffer() {
    let (port, server) = serve(|mut stream| {
        let message: Vec<u8> = (0..1_000_000u32).map(|index| (index % 251) as u8).collect();
        stream.write_all(&message).expect("sent");
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let mut seen = 0;
    while seen < 1_000_000 {
        if seen + wire.unread().len() < 1_000_000 {
            wire.fill().expect("bytes");
        }
        // A third of the bytes stays unread, so that the buffer is moved and grown at odd places.
        let taken = wire.unread().len().div_ceil(3) * 2;
        let taken = taken.min(wire.unread().len());
        for (offset, byte) in wire.unread()[..taken].iter().enumerate() {
            assert_eq!(usize::from(*byte), (seen + offset) % 251);
        }
        wire.consume(taken);
        seen += taken;
    }
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn a_connection_for_epoll_says_when_it_must_wait() {
    let (go, held) = std::sync::mpsc::channel();
    let (port, server) = serve(move |mut stream| {
        held.recv().expect("told to go on");
        let mut total = 0;
        let mut buffer = [0; 65536];
        while total < 20_000_000 {
            total += stream.read(&mut buffer).expect("bytes");
        }
        stream.write_all(b"all").expect("sent");
        echo(stream);
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    wire.set_blocking(false).expect("set");
    assert!(!wire.fill().expect("nothing yet"));
    wire.output().resize(20_000_000, 7);
    wire.flush().expect("part of it");
    assert!(wire.wants_write());
    go.send(()).expect("the server waits");
    while wire.wants_write() {
        std::thread::yield_now();
        wire.flush().expect("the rest");
    }
    assert_eq!(receive_exactly(&mut wire, 3), b"all");
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn every_answer_is_waited_for_as_long_as_where_the_connection_was_opened() {
    let (port, server) = serve(|mut stream| {
        // It answers the first message, and nothing else until the client leaves.
        let mut first = [0; 4];
        stream.read_exact(&mut first).and_then(|()| stream.write_all(&first)).expect("an answer");
        while stream.read(&mut first).is_ok_and(|length| length > 0) {}
    });
    let mut wire = answered_within(5, || Wire::connect("127.0.0.1", port).expect("connected"));
    assert_eq!(answered_within(3, || answered_within(7, timeout_s)), 3);
    assert_eq!(timeout_s(), TIMEOUT_S);
    wire.output().extend_from_slice(b"ping");
    wire.flush().expect("sent");
    assert_eq!(receive_exactly(&mut wire, 4), b"ping");
    wire.output().push(b'?');
    wire.flush().expect("sent");
    let fault = wire.fill().expect_err("nobody says anything");
    assert_eq!(fault.to_string(), "connection: the server did not answer for 5 s");
    drop(wire);
    server.join().expect("no panic");
}

#[test]
fn a_closed_connection_is_a_fault() {
    let (port, server) = serve(drop);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    server.join().expect("the server ends");
    assert_eq!(wire.fill(), Err(Fault::Connection("the server closed the connection".to_owned())));
}

/// A folder with an authority, another one, and a server's certificate of the first.
struct Certificates {
    folder: PathBuf,
    server: Arc<ServerConfig>,
}

impl Certificates {
    fn make(name: &str) -> Self {
        Self::signed(name, CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters"))
    }

    /// The same, with a server's certificate made by `params`.
    fn signed(name: &str, params: CertificateParams) -> Self {
        let folder = std::env::temp_dir().join(format!("tithe-wire-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).expect("parameters");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
        };
        let (ours, untrusted) = (authority(), authority());
        std::fs::write(folder.join("ours.pem"), pem_of(ours.as_ref())).expect("written");
        std::fs::write(folder.join("untrusted.pem"), pem_of(untrusted.as_ref())).expect("written");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &ours).expect("signed");
        Self { folder, server: Self::server(&certificate, &key) }
    }

    /// A server with a self-signed certificate by `params`, which is `ours.pem`.
    fn self_signed(test: &str, mut params: CertificateParams) -> Self {
        let mut made = Self::make(test);
        let key = KeyPair::generate().expect("a key");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        std::fs::write(made.folder.join("ours.pem"), pem_of(&certificate)).expect("written");
        made.server = Self::server(&certificate, &key);
        made
    }

    fn server(certificate: &Certificate, key: &KeyPair) -> Arc<ServerConfig> {
        let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .expect("a certificate with its key");
        Arc::new(server)
    }

    fn serve(&self) -> (u16, JoinHandle<()>) {
        let config = Arc::clone(&self.server);
        serve(move |stream| echo(StreamOwned::new(ServerConnection::new(config).expect("a connection"), stream)))
    }

    fn open(&self, trust: Trust<'_>, version: TlsVersion) -> (Result<Wire, Fault>, JoinHandle<()>) {
        let (port, server) = self.serve();
        let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
        let config = client_config(trust, None, &[version], false, None).expect("a set-up");
        (wire.start_tls(config, "127.0.0.1").map(|()| wire), server)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn tls_speaks_the_version_asked_for() {
    let certificates = Certificates::make("versions");
    let authority = certificates.folder.join("ours.pem");
    for (version, name) in [(TlsVersion::V1_2, "TLSv1.2"), (TlsVersion::V1_3, "TLSv1.3")] {
        for trust in [Trust::Authority(&authority), Trust::Anyone] {
            let (wire, server) = certificates.open(trust, version);
            let mut wire = wire.expect("TLS");
            assert_eq!(wire.tls_facts().expect("TLS").version, name);
            for size in [1, 100, 40_000] {
                let message: Vec<u8> = (0..size).map(|index| index as u8).collect();
                for part in message.chunks(10_000) {
                    wire.output().extend_from_slice(part);
                    wire.flush().expect("sent");
                    assert_eq!(receive_exactly(&mut wire, part.len()), part);
                }
            }
            assert!(wire.bytes().0 > 40_101, "records and handshake are counted");
            drop(wire);
            server.join().expect("the server ends");
        }
    }
}

#[test]
fn last_words_are_heard_though_the_good_bye_comes_with_them() {
    // Bytes after the close message are ignored; if they exceed one receive, they end the connection, too.
    for (test, after) in [("last-words", 0), ("last-noise", 100_000)] {
        good_bye(test, after);
    }
}

/// A server that sends its last data with its close message, and this many bytes after it.
fn good_bye(test: &str, after: usize) {
    let certificates = Certificates::make(test);
    let config = Arc::clone(&certificates.server);
    let (port, server) = serve(move |mut stream| {
        let mut connection = ServerConnection::new(config).expect("a connection");
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).expect("a handshake");
        }
        connection.writer().write_all(b"no").expect("written");
        connection.send_close_notify();
        let mut together = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut together).expect("written");
        }
        together.resize(together.len() + after, 0);
        stream.write_all(&together).expect("sent");
        // The connection stays open until the client leaves: the close message alone must end it.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let authority = certificates.folder.join("ours.pem");
    let config = client_config(Trust::Authority(&authority), None, &[TlsVersion::V1_3], false, None).expect("a set-up");
    wire.start_tls(config, "127.0.0.1").expect("TLS");
    assert_eq!(receive_exactly(&mut wire, 2), b"no");
    assert_eq!(wire.fill(), Err(closed()));
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn a_strange_authority_is_refused() {
    let certificates = Certificates::make("wrong-key");
    let untrusted = certificates.folder.join("untrusted.pem");
    let (wire, server) = certificates.open(Trust::Authority(&untrusted), TlsVersion::V1_3);
    assert!(matches!(wire.err(), Some(Fault::Refused(text)) if text.contains("authority that is trusted here")));
    server.join().expect("the server ends");
}

/// The error of a client that trusts the server's authority, for a certificate made by `params`.
fn told_of(test: &str, params: CertificateParams) -> String {
    let certificates = Certificates::signed(test, params);
    let (wire, server) = certificates.open(Trust::Authority(&certificates.folder.join("ours.pem")), TlsVersion::V1_3);
    // The server ends with the connection.
    let told = wire.map(drop).map_or_else(|fault| fault.to_string(), |()| "accepted".to_owned());
    server.join().expect("the server ends");
    told
}

/// A certificate for this name.
fn named(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("parameters")
}

/// A certificate that is valid in January of this year.
fn valid_in(year: i32) -> CertificateParams {
    let mut params = named("127.0.0.1");
    (params.not_before, params.not_after) = (date_time_ymd(year, 1, 1), date_time_ymd(year, 2, 1));
    params
}

#[test]
fn what_is_wrong_with_a_certificate_is_told_in_words() {
    assert_eq!(told_of("words-good", named("127.0.0.1")), "accepted");
    let told = told_of("words-expired", valid_in(2001));
    assert!(
        told.starts_with("refused: TLS: the server's certificate expired ") && told.contains(" days ago"),
        "{told}"
    );
    let told = told_of("words-early", valid_in(2900));
    assert!(told.contains("begins to be valid in ") && told.contains("compare the clocks"), "{told}");
    for (test, name) in [("words-name", "db.example"), ("words-address", "10.0.0.7")] {
        let told = told_of(test, named(name));
        let expected = format!("is not for `127.0.0.1`, the name used here, but for `{name}`");
        assert!(told.contains(&expected), "{told}");
    }
    let mut purpose = named("127.0.0.1");
    purpose.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let told = told_of("words-purpose", purpose);
    assert!(told.contains("is not one for servers"), "{told}");
}

#[test]
fn a_server_that_signed_its_own_certificate_is_known_by_it() {
    let opened = |test: &str, name: &str, trusted: &str| {
        let certificates = Certificates::self_signed(test, named(name));
        let (wire, server) = certificates.open(Trust::Authority(&certificates.folder.join(trusted)), TlsVersion::V1_3);
        let outcome = wire.map(drop);
        server.join().expect("the server ends");
        outcome
    };
    assert_eq!(opened("own", "127.0.0.1", "ours.pem"), Ok(()));
    for (test, name, trusted) in [("own-name", "127.0.0.2", "ours.pem"), ("own-strange", "127.0.0.1", "untrusted.pem")]
    {
        let refused = opened(test, name, trusted);
        assert!(matches!(&refused, Err(Fault::Refused(_))), "{test}: {refused:?}");
    }
}

#[test]
fn a_certificate_that_is_trusted_itself_expires_all_the_same() {
    let certificates = Certificates::self_signed("own-expired", valid_in(2001));
    let (wire, server) = certificates.open(Trust::Authority(&certificates.folder.join("ours.pem")), TlsVersion::V1_3);
    let told = wire.map(drop).expect_err("it has expired").to_string();
    server.join().expect("the server ends");
    assert!(told.starts_with("refused: TLS: the server's certificate expired "), "{told}");
}

/// A machine may trust no authority at all; then the error says so.
#[test]
fn the_authorities_of_the_system_are_those_that_it_has() {
    let made = client_config(Trust::System, None, &[TlsVersion::V1_3], false, None).map(drop);
    let none = |fault: &Fault| fault.to_string().contains("this system trusts no authority");
    assert!(made.as_ref().err().is_none_or(none), "{made:?}");
}

#[test]
fn bytes_before_the_handshake_are_refused() {
    let certificates = Certificates::make("early");
    let (port, server) = serve(|mut stream| stream.write_all(b"S and more").expect("sent"));
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    receive_exactly(&mut wire, 1);
    let authority = certificates.folder.join("ours.pem");
    let config = client_config(Trust::Authority(&authority), None, &[TlsVersion::V1_3], false, None).expect("a set-up");
    assert!(matches!(wire.start_tls(config, "127.0.0.1"), Err(Fault::Protocol(_))));
    server.join().expect("the server ends");
}

#[test]
fn sessions_are_resumed_only_where_asked_for() {
    let certificates = Certificates::make("resumption");
    let authority = certificates.folder.join("ours.pem");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        for (resumption, expected) in [(false, ["Full", "Full", "Full"]), (true, ["Full", "Resumed", "Resumed"])] {
            let config =
                client_config(Trust::Authority(&authority), None, &[version], resumption, None).expect("a set-up");
            let seen = expected.map(|_| {
                let (port, server) = certificates.serve();
                let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
                wire.start_tls(Arc::clone(&config), "127.0.0.1").expect("TLS");
                wire.output().extend_from_slice(b"x");
                wire.flush().expect("sent");
                // With TLS 1.3 the server's tickets come with its first answer.
                receive_exactly(&mut wire, 1);
                let facts = wire.tls_facts().expect("TLS");
                drop(wire);
                server.join().expect("the server ends");
                facts.handshake
            });
            assert_eq!(seen, expected, "{version:?}");
        }
    }
}

/// Reads all that `handle` sends; returns the number of bytes, and how it ended.
fn read_all(handle: fn(TcpStream), is_session: bool) -> (usize, String) {
    let (port, server) = serve(handle);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    if is_session {
        wire.set_blocking(true).expect("set");
    }
    let mut total = 0;
    let end = loop {
        match wire.fill() {
            Ok(_) => {
                total += wire.unread().len();
                wire.consume(wire.unread().len());
            }
            Err(fault) => break fault.to_string(),
        }
    };
    drop(wire);
    server.join().expect("the server ends");
    (total, end)
}

#[test]
fn a_session_reads_any_amount_and_a_question_a_little() {
    const SENT: usize = 100 << 20;
    let flood = |mut stream: TcpStream| {
        let _ = (0..SENT >> 20).try_for_each(|_| stream.write_all(&[7; 1 << 20]));
    };
    assert_eq!(read_all(flood, true), (SENT, "connection: the server closed the connection".to_owned()));
    let (total, end) = read_all(flood, false);
    assert!(total < SENT / 2, "{total}");
    assert_eq!(end, "protocol: the server sends an answer that takes more than 24 MiB of memory");
}

/// As if `wire` had asked its question so long ago.
fn asked(wire: &mut Wire, seconds: u64) {
    let question = wire.question.as_mut().expect("it is no session");
    question.asked = Instant::now().checked_sub(Duration::from_secs(seconds)).expect("a moment");
}

/// Asks a question of one byte.
fn ask(wire: &mut Wire) {
    wire.output().push(b'?');
    wire.flush().expect("sent");
}

#[test]
fn a_server_that_never_falls_silent_must_end_its_answer() {
    // A byte that comes more than a minute after the question is one too many.
    let seen = |prepare: fn(&mut Wire)| {
        let (port, server) = serve(|mut stream| {
            stream.write_all(&[7]).expect("sent");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
        wire.patience = Duration::from_secs(60);
        prepare(&mut wire);
        let seen = (wire.fill(), wire.question.is_some());
        drop(wire);
        server.join().expect("the server ends");
        seen
    };
    let too_long = Err(Fault::Connection("the server's answer did not end for 60 s".to_owned()));
    assert_eq!(seen(|wire| asked(wire, 0)), (Ok(true), true));
    assert_eq!(seen(|wire| asked(wire, 61)), (too_long.clone(), true));
    let nothing_sent: fn(&mut Wire) = |wire| {
        asked(wire, 61);
        wire.flush().expect("nothing");
    };
    assert_eq!(seen(nothing_sent), (too_long, true));
    let asked_again: fn(&mut Wire) = |wire| {
        asked(wire, 61);
        ask(wire);
    };
    assert_eq!(seen(asked_again), (Ok(true), true), "each question has its own time");
    let session: fn(&mut Wire) = |wire| {
        asked(wire, 61);
        wire.set_blocking(true).expect("set");
        ask(wire);
    };
    assert_eq!(seen(session), (Ok(true), false), "the load has none");
}

/// Users may have named a port with another protocol.
#[test]
fn a_server_whose_first_answer_was_understood_has_more_time() {
    let (port, server) = serve(echo);
    let [short, long] = [30, u64::from(TIMEOUT_S)].map(Duration::from_secs);
    hasten(30);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    hasten(TIMEOUT_S);
    let limits = |wire: &Wire| [Some(wire.patience), wire.socket.read_timeout().expect("a limit")];
    assert_eq!(limits(&wire), [Some(short); 2]);
    ask(&mut wire);
    assert_eq!(limits(&wire), [Some(short); 2], "nothing was received");
    receive_exactly(&mut wire, 1);
    assert_eq!(limits(&wire), [Some(short); 2], "it may not have been understood");
    ask(&mut wire);
    assert_eq!(limits(&wire), [Some(long); 2]);
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn a_call_that_a_signal_interrupts_is_repeated() {
    let ended = |kinds: &[ErrorKind]| {
        let mut results = kinds.iter().map(|kind| Err((*kind).into())).chain([Ok(7)]);
        uninterrupted(|| results.next().expect("it has ended")).map_err(|error| error.kind())
    };
    assert_eq!(ended(&[]), Ok(7));
    assert_eq!(ended(&[ErrorKind::Interrupted; 2]), Ok(7));
    assert_eq!(ended(&[ErrorKind::Interrupted, ErrorKind::WouldBlock]), Err(ErrorKind::WouldBlock));
}

#[test]
fn room_is_made_by_moving_and_then_by_doubling_up_to_the_longest_message() {
    let (port, server) = serve(drop);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    // The buffer, and what of it is unread, after so much room was made.
    let mut after = |(length, from, to): (usize, usize, usize), room: usize| {
        wire.input = vec![0; length];
        (wire.read_from, wire.read_to) = (from, to);
        let made = wire.make_room(room);
        made.map(|()| (wire.input.len(), wire.read_from, wire.read_to))
    };
    assert_eq!(after((100, 0, 10), 90), Ok((100, 0, 10)));
    assert_eq!(after((100, 5, 10), 91), Ok((100, 0, 5)));
    assert_eq!(after((100, 5, 10), 95), Ok((100, 0, 5)));
    assert_eq!(after((100, 5, 10), 96), Ok((200, 0, 5)));
    assert_eq!(after((100, 0, 90), 500), Ok((590, 0, 90)));
    // A message of the longest length, and of one byte more.
    const LONGEST: usize = LONGEST_ANSWER;
    assert_eq!(after((LONGEST + 7, 7, LONGEST + 7), LEAST_ROOM), Ok((LONGEST + READ_SIZE, 0, LONGEST)));
    assert_eq!(after((LONGEST + 8, 7, LONGEST + 8), LEAST_ROOM), Err(too_much("a message", LONGEST)));
    wire.set_blocking(true).expect("set");
    (wire.input, wire.read_from, wire.read_to) = (vec![0; LONGEST_MESSAGE], 0, LONGEST_MESSAGE);
    assert_eq!(wire.make_room(1), Ok(()), "a session has longer ones");
    wire.read_to += 1;
    assert_eq!(wire.make_room(READ_SIZE), Err(too_much("a message", LONGEST_MESSAGE)));
    (wire.read_from, wire.read_to) = (0, 0);
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn a_record_of_tls_without_data_is_no_answer() {
    let certificates = Certificates::make("no-data");
    let config = Arc::clone(&certificates.server);
    let ((go, held), (told, heard)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let (port, server) = serve(move |mut stream| {
        let mut connection = ServerConnection::new(config).expect("a connection");
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).expect("a handshake");
        }
        let mut send = |connection: &mut ServerConnection| {
            while connection.wants_write() {
                connection.write_tls(&mut stream).expect("sent");
            }
        };
        connection.writer().write_all(b"ab").expect("written");
        send(&mut connection);
        held.recv().expect("told to go on");
        connection.refresh_traffic_keys().expect("another key");
        send(&mut connection);
        told.send(()).expect("the client waits");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let config = client_config(Trust::Anyone, None, &[TlsVersion::V1_3], false, None).expect("a set-up");
    wire.start_tls(config, "127.0.0.1").expect("TLS");
    assert_eq!(receive_exactly(&mut wire, 1), b"a");
    go.send(()).expect("the server waits");
    heard.recv().expect("the server has sent it");
    wire.set_blocking(false).expect("set");
    assert_eq!((wire.fill(), wire.unread()), (Ok(false), &b"b"[..]));
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn what_is_not_sent_yet_waits_to_be_over_tls_too() {
    let certificates = Certificates::make("waits");
    let (wire, server) = certificates.open(Trust::Anyone, TlsVersion::V1_3);
    let mut wire = wire.expect("TLS");
    assert!(!wire.wants_write());
    wire.output().push(b'?');
    assert!(wire.wants_write());
    wire.flush().expect("sent");
    assert!(!wire.wants_write());
    drop(wire);
    server.join().expect("the server ends");
}

/// To a server the end of the bytes without a good-bye is an error.
#[test]
fn a_client_that_leaves_says_good_bye_over_tls() {
    let certificates = Certificates::make("leaves");
    let config = Arc::clone(&certificates.server);
    let (told, heard) = std::sync::mpsc::channel();
    let (port, server) = serve(move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(config).expect("a connection"), stream);
        told.send(stream.read_to_end(&mut Vec::new()).is_ok()).expect("somebody asks");
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let config = client_config(Trust::Anyone, None, &[TlsVersion::V1_2], false, None).expect("a set-up");
    wire.start_tls(config, "127.0.0.1").expect("TLS");
    drop(wire);
    server.join().expect("the server ends");
    assert_eq!(heard.recv(), Ok(true));
}

#[test]
fn what_is_written_is_counted_whichever_way_it_is_written() {
    let (port, server) = serve(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("bytes");
        assert_eq!(all, b"one, two and three");
    });
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let mut sent = 5;
    let mut counted = Counted { socket: &socket, sent: &mut sent };
    assert_eq!(counted.write(b"one, ").expect("sent"), 5);
    let parts = [b"two ".as_slice(), b"and three"].map(IoSlice::new);
    assert_eq!(counted.write_vectored(&parts).expect("sent"), 13);
    assert_eq!(sent, 23);
    drop(socket);
    server.join().expect("all of it arrived");
}

#[test]
fn this_machine_is_a_socket_its_name_or_its_loopback() {
    for host in ["/tmp/s", "localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1"] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["", "localhost.example", "db", "10.0.0.1", "::2", "tmp/s"] {
        assert!(!is_this_machine(host), "{host}");
    }
}

#[test]
fn a_file_is_told_from_a_socket_without_a_server() {
    let folder = std::env::temp_dir().join(format!("tithe-wire-sockets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("file"), "").expect("written");
    // It never listens: a listener that was closed would still answer, as long as a child that another test has just
    // forked holds a copy of it.
    let left = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&left, &SocketAddrUnix::new(folder.join("left")).expect("an address")).expect("bound");
    let told = |name: &str| {
        let host = folder.join(name).display().to_string();
        let refused = Wire::connect(&host, 0).err().expect("nobody listens").to_string();
        refused.replace(&host, "PATH")
    };
    assert_eq!(told("file"), "connection: socket PATH: it is not a socket");
    assert_eq!(told("left"), "connection: socket PATH: no server listens there");
    assert!(told("none").starts_with("connection: socket PATH: No such file"), "{}", told("none"));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_server_that_speaks_unasked_is_heard() {
    let (port, server) = serve(|mut stream| stream.write_all(b"hello").expect("sent"));
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    assert_eq!(wire.hears_nothing(), Ok(()));
    while wire.unread().len() < 5 {
        wire.fill().expect("bytes");
    }
    let fault = Fault::Protocol("the server sent data that was not requested".to_owned());
    assert_eq!(wire.hears_nothing(), Err(fault));
    wire.consume(5);
    assert_eq!(wire.hears_nothing(), Ok(()));
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn one_message_of_an_answer_has_a_limit_of_its_own() {
    let (port, server) = serve(|mut stream| {
        let _ = (0..12).try_for_each(|_| stream.write_all(&[7; 1 << 20]));
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let fault = std::iter::repeat_with(|| wire.fill()).find_map(Result::err).expect("an end");
    let words = "protocol: the server sends a message that takes more than 8 MiB of memory";
    assert_eq!(fault.to_string(), words);
    let unread = wire.unread().len();
    assert!((LONGEST_ANSWER..=LONGEST_ANSWER + READ_SIZE).contains(&unread), "{unread}");
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn an_answer_of_which_nothing_is_kept_has_any_length() {
    const SENT: usize = 40 << 20;
    let (port, server) = serve(|mut stream| {
        let _ = (0..SENT >> 20).try_for_each(|_| stream.write_all(&[7; 1 << 20]));
    });
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let mut total = 0;
    let end = loop {
        match wire.fill() {
            Ok(_) => {
                total += wire.unread().len();
                wire.consume(wire.unread().len());
                wire.keeps_nothing();
            }
            Err(fault) => break fault,
        }
    };
    assert_eq!((total, end), (SENT, closed()));
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn what_tls_agreed_on_is_told_and_nothing_without_it() {
    let (port, server) = serve(echo);
    let wire = Wire::connect("127.0.0.1", port).expect("connected");
    assert_eq!((wire.tls_facts(), wire.server_certificate()), (None, None));
    drop(wire);
    server.join().expect("the server ends");
    let certificates = Certificates::make("facts");
    let (wire, server) = certificates.open(Trust::Anyone, TlsVersion::V1_3);
    let wire = wire.expect("TLS");
    let TlsFacts { version, cipher, key_exchange, handshake, key, chain } = wire.tls_facts().expect("TLS");
    let told = (version.as_str(), handshake.as_str(), key.as_str(), chain);
    assert_eq!(told, ("TLSv1.3", "Full", "ecdsa-p256", 1));
    assert!(cipher.starts_with("TLS_") && !key_exchange.is_empty(), "{cipher} {key_exchange}");
    let shown = wire.server_certificate().expect("a certificate");
    assert_eq!(element(shown).map(|(_, rest)| rest.len()), Some(0), "it is one element of DER");
    drop(wire);
    server.join().expect("the server ends");
}

#[test]
fn a_cipher_that_is_asked_for_is_the_one_that_is_spoken() {
    let certificates = Certificates::make("suites");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        for suite in crate::setup::Suite::ALL {
            let (port, server) = certificates.serve();
            let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
            let config = client_config(Trust::Anyone, None, &[version], false, Some(suite)).expect("a set-up");
            wire.start_tls(config, "127.0.0.1").expect("TLS");
            let cipher = wire.tls_facts().expect("TLS").cipher;
            assert!(suite.is_in(&cipher), "{suite:?} {cipher}");
            drop(wire);
            server.join().expect("the server ends");
        }
    }
}

#[test]
fn any_name_is_any_name_of_the_authority() {
    let elsewhere = || CertificateParams::new(vec!["db.example".to_owned()]).expect("parameters");
    for (test, trusted, is_accepted) in [("any", "ours.pem", true), ("any-strange", "untrusted.pem", false)] {
        let certificates = Certificates::signed(test, elsewhere());
        let authority = certificates.folder.join(trusted);
        let (wire, server) = certificates.open(Trust::AnyName(&authority), TlsVersion::V1_3);
        let outcome = wire.map(drop);
        assert_eq!(outcome.is_ok(), is_accepted, "{outcome:?}");
        server.join().expect("the server ends");
    }
    let (port, server) = serve(echo);
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    let config = client_config(Trust::Anyone, None, &[TlsVersion::V1_3], false, None).expect("a set-up");
    let fault = Fault::Refused("`no name` is not a name for a certificate".to_owned());
    assert_eq!(wire.start_tls(config, "no name"), Err(fault));
    drop(wire);
    server.join().expect("the server ends");
}

/// A refusal is final, a broken connection may be tried again.
#[test]
fn a_refusal_over_tls_is_told_from_a_broken_connection() {
    use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};
    let versions = "refused: TLS: the server speaks none of the versions that are allowed here";
    assert_eq!(tls_fault(Error::AlertReceived(AlertDescription::ProtocolVersion)).to_string(), versions);
    let other = "connection: TLS: the server does not answer with TLS";
    assert_eq!(tls_fault(Error::InvalidMessage(InvalidMessage::InvalidContentType)).to_string(), other);
    for refused in [
        Error::AlertReceived(AlertDescription::UnknownCA),
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
        Error::InvalidCertificate(CertificateError::Revoked),
    ] {
        let fault = tls_fault(refused);
        assert!(matches!(&fault, Fault::Refused(words) if words.starts_with("TLS: ")), "{fault:?}");
    }
    let broken = tls_fault(Error::General("gone".to_owned()));
    assert!(matches!(&broken, Fault::Connection(words) if words.starts_with("TLS: ")), "{broken:?}");
}
