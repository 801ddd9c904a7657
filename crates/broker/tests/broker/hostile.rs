//! Malicious brokers: each call ends in time, with an error or without a result, and no secret is sent to them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use expect_test::expect;
use tithe_broker::{AccessFiles, Broker};
use tithe_harness::agents::link::{Answer, Link};
use tithe_machine::{fault::Fault, sandbox::certificates};

use crate::{LONG, at_last, connected, connected_within, eventually, private, refused, without_port};

const INFO: &str =
    "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"max_payload\":1048576,\"headers\":true,\"nonce\":\"abc\"}\r\n";

/// Timeout for calls that never end by themselves.
const SHORT: Duration = Duration::from_secs(2);

/// Everything that was received on all connections.
type Said = Arc<Mutex<Vec<u8>>>;

/// Serves each connection by `serve` in a thread of its own, as long as the test runs. Returns the port.
fn listening(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    listening_at(0, serve)
}

fn listening_at(port: u16, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Sends `greeting`, then records everything received until the other side ends, and answers each time with `answer`.
fn recording(greeting: String, answer: &'static [u8]) -> (u16, Said) {
    recording_at(0, greeting, answer)
}

fn recording_at(port: u16, greeting: String, answer: &'static [u8]) -> (u16, Said) {
    let said = Said::default();
    let keep = Arc::clone(&said);
    let port = listening_at(port, move |mut stream| {
        let _ = stream.write_all(greeting.as_bytes());
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            keep.lock().expect("a list").extend_from_slice(&buffer[..length]);
            let _ = stream.write_all(answer);
        }
    });
    (port, said)
}

/// Files with a password that trust the test's own authority.
fn files(folder: &tempfile::TempDir) -> AccessFiles {
    let credentials = certificates::prepare(&folder.path().join("certificates"), std::net::Ipv4Addr::LOCALHOST.into())
        .expect("certificates");
    AccessFiles {
        password: Some(private(folder.path(), "password", "agent\nhunter2\n")),
        authority: Some(credentials.authority),
        ..AccessFiles::default()
    }
}

/// No secret was sent, and nothing in clear text that belongs after TLS.
fn assert_nothing_said(said: &Said) {
    let said = String::from_utf8_lossy(&said.lock().expect("a list")).into_owned();
    assert!(!said.contains("hunter2") && !said.contains("CONNECT") && !said.contains("agent"), "{said}");
}

#[test]
fn where_tls_was_asked_for_nothing_is_said_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(&folder);
    let info = |more: &str| INFO.replace("\"nonce\"", &format!("{more},\"nonce\""));
    let greetings = [
        // Offers no TLS and accepts every password.
        (info("\"tls_required\":false"), &b"+OK\r\nPONG\r\n"[..]),
        // Announces TLS, and answers in clear text.
        (info("\"tls_required\":true"), b"+OK\r\nPONG\r\n"),
        // Refuses TLS.
        (INFO.to_owned(), b"-ERR 'Unknown Protocol Operation'\r\n"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(), b""),
        ("\u{1b}[2J\0\u{ff}\u{fe}\r\n".to_owned(), b""),
        ("INFO {\"max_payload\":-1}\r\n".to_owned(), b""),
        ("INFO nonsense\r\n".to_owned(), b""),
        (format!("INFO {{\"server_id\":\"{}\"}}\r\n", "x".repeat(3 << 20)), b"PONG\r\n"),
        ("MSG tithe.go 1 5\r\nhello\r\n".to_owned(), b""),
        ("-ERR 'hunter'\r\n".to_owned(), b""),
        (String::new(), b""),
    ];
    let mut told = Vec::new();
    for (greeting, answer) in greetings {
        let is_silent = greeting.is_empty();
        let (port, said) = recording(greeting, answer);
        let url = format!("tls://localhost:{port}");
        let timeout = if is_silent { SHORT } else { LONG };
        let fault = connected_within(&url, "rack7", &files, timeout).err().expect("it is refused");
        assert_nothing_said(&said);
        told.push(without_port(&fault.to_string(), &url));
    }
    expect![[r#"
        refused: broker tls://localhost:PORT: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)
        refused: broker tls://localhost:PORT: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)
        refused: broker tls://localhost:PORT: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)
        connection: broker tls://localhost:PORT: is this a NATS server? invalid server operation: 'HTTP/1.1 400 Bad Request\r\n'
        connection: broker tls://localhost:PORT: is this a NATS server? invalid server operation: '\u{1b}[2J\0ÿþ\r\n'
        connection: broker tls://localhost:PORT: is this a NATS server? invalid value: integer `-1`, expected usize at line 1 column 18
        connection: broker tls://localhost:PORT: is this a NATS server? expected ident at line 1 column 3
        refused: broker tls://localhost:PORT: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)
        connection: broker tls://localhost:PORT: is this a NATS server? expected INFO, got Message { sid: 1, subject: Subject { bytes: b"tithe.go" }, reply: None, payload: b"hello", headers: None, status: None, description: None, le…
        connection: broker tls://localhost:PORT: is this a NATS server? expected INFO, got Error(Other("hunter"))
        connection: broker tls://localhost:PORT: it does not answer in time: is this a NATS server, and does a firewall block it?"#]].assert_eq(&told.join("\n"));
}

/// A program takes the place of the previous broker, and offers no TLS.
pub fn takes_the_place_of_a_broker(port: u16, is_over: impl FnOnce()) {
    let (_, said) = recording_at(port, INFO.to_owned(), b"+OK\r\nPONG\r\n");
    eventually("that it is called", || !said.lock().expect("a list").is_empty());
    is_over();
    assert_nothing_said(&said);
}

#[test]
fn off_this_machine_nothing_is_called_without_tls() {
    expect!["refused: nats://192.0.2.1:PORT leads to 192.0.2.1, off this machine, and everybody between could read it: give the broker a certificate and call it tls://192.0.2.1:PORT"].assert_eq(&refused("nats://192.0.2.1:4222", &AccessFiles::default()));
}

/// async-nats 0.51 panics on both, in the thread of the link.
#[test]
fn what_the_library_does_not_survive_is_an_error_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(&folder);
    for deadly in ["MSG tithe.go 1 18446744073709551615\r\n", "-ERR\r\n"] {
        let (port, said) = recording(deadly.to_owned(), b"");
        let url = format!("tls://localhost:{port}");
        let fault = connected_within(&url, "rack7", &files, LONG).err().expect("it is refused");
        let words = "protocol: broker tls://localhost:PORT: its answer is not that of a NATS server";
        assert_eq!(without_port(&fault.to_string(), &url), words);
        assert_nothing_said(&said);
        let link = linked(Harm::Deadly(deadly), LONG).expect("connected");
        let told = link.publish("tithe.go", b"hello");
        assert!(matches!(told, Err(Fault::Connection(_))), "{deadly:?}: {told:?}");
    }
}

#[test]
fn a_greeting_without_end_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = listening(|mut stream| {
        let _ = stream.write_all(b"INFO {\"server_id\":\"");
        while stream.write_all(&[b'x'; 1 << 10]).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let url = format!("tls://localhost:{port}");
    let fault = connected_within(&url, "rack7", &files(&folder), SHORT).err().expect("it is late");
    expect!["connection: broker tls://localhost:PORT: it does not answer in time: is this a NATS server, and does a firewall block it?"]
        .assert_eq(&without_port(&fault.to_string(), &url));
}

#[test]
fn brokers_that_are_recommended_are_not_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let (elsewhere, said) = recording(INFO.to_owned(), b"PONG\r\n");
    let recommending = INFO.replace("\"nonce\"", &format!("\"connect_urls\":[\"127.0.0.1:{elsewhere}\"],\"nonce\""));
    // The first connection is ended below, and no other is accepted.
    let (called, first) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
    let (count, keep) = (Arc::clone(&called), Arc::clone(&first));
    let port = listening(move |stream| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            *keep.lock().expect("a place") = Some(stream.try_clone().expect("a socket"));
            Fake { stream, greeting: recommending.clone(), harm: Harm::None }.serve();
        }
    });
    let _link = connected(&format!("nats://127.0.0.1:{port}"), "rack7", &files(&folder)).expect("connected");
    first.lock().expect("a place").take().expect("a connection").shutdown(Shutdown::Both).expect("it ends");
    eventually("that it is called again and again", || called.load(Ordering::SeqCst) > 4);
    assert!(said.lock().expect("a list").is_empty());
}

/// The fault of a broker that works otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Harm {
    None,
    /// Delivers each message twice.
    Twice,
    /// Cuts the last byte off.
    Cut,
    /// Changes a byte.
    Change,
    /// Withholds the second part of every message.
    Half,
    /// Sends nonsense in place of a message.
    Nonsense,
    /// Announces a message of 100 GB.
    Huge,
    /// Sends this in place of a message.
    Deadly(&'static str),
    /// Reports refusals that belong to no call, with invalid text.
    Complaints,
    /// Asks for the answer at another subject.
    Elsewhere,
}

/// One connection to the test's own broker, which implements as much of the protocol as a link needs.
struct Fake {
    stream: TcpStream,
    greeting: String,
    harm: Harm,
}

impl Fake {
    fn serve(mut self) {
        let _ = self.stream.write_all(self.greeting.clone().as_bytes());
        let mut reader = BufReader::new(self.stream.try_clone().expect("a socket"));
        let (mut listening, mut parts) = (Vec::<(String, String)>::new(), 0);
        while let Some(line) = next_line(&mut reader) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["PING"] => self.say(b"PONG\r\n"),
                ["SUB", subject, sid] => listening.push((subject.to_owned(), sid.to_owned())),
                ["UNSUB", sid, ..] => listening.retain(|(_, own)| own != sid),
                ["PUB", subject, ref reply @ .., length] => {
                    let mut payload = vec![0; length.parse::<usize>().expect("a length") + 2];
                    reader.read_exact(&mut payload).expect("a message");
                    payload.truncate(payload.len() - 2);
                    parts += usize::from(!subject.starts_with("tithe.inbox."));
                    self.hand_out(&listening, subject, reply.first().copied(), payload, parts);
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn hand_out(
        &mut self,
        listening: &[(String, String)],
        subject: &str,
        reply: Option<&str>,
        mut payload: Vec<u8>,
        parts: usize,
    ) {
        let to: Vec<&str> =
            listening.iter().filter(|(own, _)| matches(own, subject)).map(|(_, sid)| sid.as_str()).collect();
        let home = listening.first().map_or("", |(_, sid)| sid.as_str());
        if let (true, Some(reply)) = (to.is_empty(), reply) {
            self.say(format!("HMSG {reply} {home} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n").as_bytes());
        }
        let (harm, is_inbox) =
            (if payload.len() < 70 { Harm::None } else { self.harm }, subject.starts_with("tithe.inbox."));
        let mut reply = reply.map(|reply| format!("{reply} ")).unwrap_or_default();
        match harm {
            Harm::Cut => payload.truncate(payload.len() - 1),
            Harm::Change => *payload.last_mut().expect("a byte") ^= 1,
            Harm::Half if parts == 2 && !is_inbox => return,
            Harm::Nonsense => return self.say(&[0xff; 3000].iter().chain(b"\r\n").copied().collect::<Vec<u8>>()),
            Harm::Deadly(words) => return self.say(words.as_bytes()),
            Harm::Huge => return self.say(format!("MSG {subject} {home} 100000000000\r\nx").as_bytes()),
            Harm::Complaints => self.say(b"-ERR 'Permissions Violation for Publish to \"'\r\n-ERR ''\r\n-ERR\t\r\n"),
            Harm::Elsewhere => reply = "tithe.go ".to_owned(),
            _ => {}
        }
        for sid in to {
            for _ in 0..if harm == Harm::Twice { 2 } else { 1 } {
                self.say(format!("MSG {subject} {sid} {reply}{}\r\n", payload.len()).as_bytes());
                self.say(&payload);
                self.say(b"\r\n");
            }
        }
    }
}

fn next_line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0).map(|_| line)
}

/// True if `subject` matches `own`, a subject with wildcards.
fn matches(own: &str, subject: &str) -> bool {
    let (own, subject): (Vec<&str>, Vec<&str>) = (own.split('.').collect(), subject.split('.').collect());
    let is_same = |(own, part): (&&str, &&str)| *own == "*" || own == part;
    own.len() == subject.len() && own.iter().zip(&subject).all(is_same)
}

/// A link to a fake broker with the fault `harm`.
fn linked(harm: Harm, timeout: Duration) -> Result<Broker, Fault> {
    let folder = tempfile::tempdir().expect("a folder");
    let port = listening(move |stream| Fake { stream, greeting: INFO.to_owned(), harm }.serve());
    connected_within(&format!("nats://127.0.0.1:{port}"), "rack7", &files(&folder), timeout)
}

/// What a listener receives of two messages, the second in several parts: `expected` messages or faults, and anything
/// else that arrives soon; then the result of a question.
fn heard((harm, expected): (Harm, usize)) -> String {
    let link = linked(harm, LONG).expect("connected");
    let mut subscription = link.subscribe("tithe.go").expect("it listens");
    let told = [&b"short"[..], &[1; 3_000_000]].map(|message| match link.publish("tithe.go", message) {
        Ok(()) => "told",
        Err(_) => "failed",
    });
    let mut said = vec![format!("{harm:?}: {}, {}", told[0], told[1])];
    let mut next = |number| subscription.next(if number < expected { LONG } else { Duration::from_millis(500) });
    for heard in (0..12).map_while(|number| next(number).transpose()) {
        match heard {
            Ok(delivery) => said.push(format!("  {} bytes", delivery.body.len())),
            Err(Fault::Connection(_)) => said.push("  lost".to_owned()),
            Err(fault) => said.push(format!("  {fault}")),
        }
    }
    said.push(match link.request("tithe.nobody", b"?", LONG) {
        Ok(Answer::Reply(_)) => "  an answer of nobody".to_owned(),
        Ok(answer) => format!("  {answer:?}"),
        Err(_) => "  no link".to_owned(),
    });
    said.join("\n")
}

#[test]
fn what_was_torn_doubled_or_changed_is_told_and_not_handed_over() {
    let harms = [
        (Harm::None, 2),
        (Harm::Twice, 6),
        (Harm::Cut, 4),
        (Harm::Change, 2),
        (Harm::Half, 1),
        (Harm::Complaints, 2),
        (Harm::Elsewhere, 4),
    ];
    let said = thread::scope(|scope| {
        let each = harms.map(|harm| scope.spawn(move || heard(harm)));
        each.map(|heard| heard.join().expect("it ends"))
    });
    expect![[r#"
        None: told, told
          5 bytes
          3000000 bytes
          NoResponders
        Twice: told, told
          5 bytes
          protocol: a message came a second time
          protocol: a part of a message came a second time
          protocol: a part of a message came a second time
          3000000 bytes
          protocol: a message came a second time
          NoResponders
        Cut: told, told
          protocol: what came is not part of a message of Tithe's
          protocol: what came is not part of a message of Tithe's
          protocol: what came is not part of a message of Tithe's
          protocol: what came is not part of a message of Tithe's
          NoResponders
        Change: told, told
          protocol: a message is not what its sender sent: its SHA-256 differs
          protocol: a message is not what its sender sent: its SHA-256 differs
          NoResponders
        Half: told, told
          5 bytes
          NoResponders
        Complaints: told, told
          5 bytes
          3000000 bytes
          NoResponders
        Elsewhere: told, told
          protocol: a message wants its answer at tithe.go, which is not an inbox
          protocol: a message wants its answer at tithe.go, which is not an inbox
          protocol: a message wants its answer at tithe.go, which is not an inbox
          protocol: a message wants its answer at tithe.go, which is not an inbox
          NoResponders"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn nonsense_in_place_of_messages_fails_calls_and_nothing_else() {
    for harm in [Harm::Nonsense, Harm::Huge] {
        let (link, mut subscription) = at_last(|| {
            let link = linked(harm, SHORT).ok()?;
            let subscription = link.subscribe("tithe.go").ok()?;
            Some((link, subscription))
        });
        assert!(link.publish("tithe.go", b"hello").is_err(), "{harm:?}");
        let delivery = subscription.next(Duration::from_millis(200));
        assert!(!matches!(delivery, Ok(Some(_))), "{harm:?}");
        assert!(!matches!(link.request("tithe.go", b"hello", SHORT), Ok(Answer::Reply(_))), "{harm:?}");
    }
}
