use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::BorrowedFd,
};

use expect_test::{Expect, expect};
use tithe_machine::{
    launch::{Address, Install, Launch, Missing, Place, Search, Server},
    proc::ServerTask,
};
use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};

use super::*;
use crate::{
    database::{Connect, Database},
    evidence::seen_by,
    product::Product,
    protection::Protection,
    session::{Connection, KeyValueSession, Progress, Request, Rows, Session, Table},
    setup::{Setup, TablePlace, TlsVersion},
    simulated::{Simulated, sql_bench::SqlBench, test_bench::Bench},
};

const TOKEN: &[u8] = b"Q3uZbmVw0-canary-token-1";
const HELLO: &[u8] = &[0x16, 3, 1, 0, 0xf5, 1, 0, 0, 0xf1, 3, 3, 0x42];

fn check(sent: &[u8], received: &[u8], tls: bool, expected: Expect) {
    let conversation = Conversation { sent: sent.to_vec(), received: received.to_vec(), truncated: false };
    expected.assert_eq(&format!("{:?}", conclude(&[conversation], &[TOKEN], tls)));
}

#[test]
fn canaries_in_either_direction_are_told() {
    check(
        &[b"PUT ", TOKEN].concat(),
        b"OK",
        false,
        expect![[r#"Exposed("sent: 1 canary found once; received: nothing; no TLS record")"#]],
    );
    check(b"GET", TOKEN, false, expect![[r#"Exposed("sent: nothing; received: 1 canary found once; no TLS record")"#]]);
    check(
        HELLO,
        TOKEN,
        true,
        expect![[r#"Exposed("sent: nothing; received: 1 canary found once; TLS handshake on 1 of 1 connections")"#]],
    );
}

#[test]
fn tls_needs_a_handshake() {
    check(
        HELLO,
        b"hello",
        true,
        expect![[r#"Protected("none of 1 canaries in 12 B sent, 5 B received; TLS handshake on 1 of 1 connections")"#]],
    );
    check(
        b"PUT zlib",
        b"OK",
        true,
        expect![[
            r#"Exposed("no canary, but not every connection speaks TLS: 8 B sent, 2 B received; no TLS record")"#
        ]],
    );
    check(
        b"PUT sealed",
        b"OK",
        false,
        expect![[r#"Protected("none of 1 canaries in 10 B sent, 2 B received; no TLS record")"#]],
    );
}

#[test]
fn what_is_below_tls_is_out_of_reach_where_the_url_alone_asks_for_it() {
    let talk = |sent: &[u8]| Conversation { sent: sent.to_vec(), ..Conversation::default() };
    let url = || tithe_model::experiment::Url::new("postgres://tithe@db.example");
    let launched = Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
    let attached = [Address::Attached(url()), Address::Relayed { url: url(), port: 1 }];
    let tls = Transport::tls(TlsVersion::V1_3, false);
    let (hidden, shown) = ([talk(HELLO), talk(HELLO)], [talk(HELLO), talk(b"SELECT 1")]);
    for address in &attached {
        let seen = below_tls(Transport::Plain, address, &hidden);
        assert!(matches!(&seen, Some(Observation::OutOfReach(_))), "{address:?}: {seen:?}");
        assert_eq!([&shown[..], &[]].map(|talks| below_tls(Transport::Plain, address, talks)), [None, None]);
        assert_eq!(below_tls(tls, address, &hidden), None, "the arm asks for it");
    }
    assert_eq!(below_tls(Transport::Plain, &launched, &hidden), None);
}

#[test]
fn a_silent_relay_proves_nothing() {
    expect![[r#"Unknown("nothing passed the relay")"#]].assert_eq(&format!("{:?}", conclude(&[], &[TOKEN], true)));
}

#[test]
fn what_was_cut_or_had_no_canary_proves_nothing_and_each_connection_counts() {
    let talk = |sent: &[u8], truncated| Conversation { sent: sent.to_vec(), received: Vec::new(), truncated };
    let (whole, cut) = ([talk(HELLO, false), talk(b"SELECT 1", false)], [talk(HELLO, false), talk(HELLO, true)]);
    let token: &[&[u8]] = &[TOKEN];
    let seen = [
        conclude(&cut, token, true),
        conclude(&[talk(TOKEN, true)], token, false),
        conclude(&whole, &[], true),
        conclude(&whole, token, true),
        conclude(&whole, token, false),
    ];
    expect![[r#"
        Unknown("more passed than the relay keeps; 24 B sent, 0 B received; TLS handshake on 2 of 2 connections")
        Exposed("sent: 1 canary found once; received: nothing; no TLS record")
        Unknown("the share of fields rounds to none")
        Exposed("no canary, but not every connection speaks TLS: 20 B sent, 0 B received; TLS handshake on 1 of 2 connections")
        Protected("none of 1 canaries in 20 B sent, 0 B received; TLS handshake on 1 of 2 connections")
    "#]]
    .assert_eq(&seen.map(|seen| format!("{seen:?}\n")).concat());
}

#[test]
fn a_server_where_no_table_is_made_answers_with_the_canaries() {
    let mut arm = SqlBench::plain().wired();
    arm.bench.setup.tables = TablePlace::InPlace { writes: false, makes: false };
    let look = |arm: &SqlBench| format!("{:?}", arm.look(&WireCanary::new(Targets::Everything), false).0);
    expect![[r#"Exposed("sent: 33 canaries found 33 times; received: 33 canaries found 33 times; no TLS record")"#]]
        .assert_eq(&look(&arm));
    arm.database.keeps = |_| Vec::new();
    expect![[r#"Unknown("wrong answer: a canary did not come back as it was sent")"#]].assert_eq(&look(&arm));
}

/// The simulated database with a wire: each request is also sent to a server that sends it back, in the clear or
/// scrambled.
struct Wired {
    scramble: u8,
}

struct WiredSession {
    inner: Box<dyn KeyValueSession>,
    wire: TcpStream,
    scramble: u8,
}

impl KeyValueSession for WiredSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let mut message = format!("{request:?}").into_bytes();
        if let Request::Insert { key, values } | Request::Update { key, values } = *request {
            message = values.iter().fold(key.to_vec(), |message, (_, value)| [&message, *value].concat());
        }
        message.iter_mut().for_each(|byte| *byte ^= self.scramble);
        self.wire.write_all(&message)?;
        self.wire.read_exact(&mut message)?;
        self.inner.submit(request)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        self.inner.advance(rows)
    }
}

impl Connection for WiredSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl Database for Wired {
    fn entry(&self) -> &'static DatabaseEntry {
        static ENTRY: DatabaseEntry =
            DatabaseEntry { id: "wired", title: "simulated database with a wire", ..DatabaseEntry::BARE };
        &ENTRY
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        Simulated.find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        Simulated.launch(install, setup, place)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let Address::Tcp { host, port } = &server.address else { panic!("the test gives it an address") };
        let wire = TcpStream::connect((host.as_str(), *port))?;
        let inner = key_value(Simulated.connect(server, setup, how)?)?;
        Ok(Session::KeyValue(Box::new(WiredSession { inner, wire, scramble: self.scramble })))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.remove(server, setup, table)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.quiesce(server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        Simulated.facts(server, setup)
    }
}

impl Product for Wired {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        &[]
    }
}

/// A server that sends everything back, until its one client leaves.
fn echo_server() -> Address {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut sink = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut sink);
    });
    Address::Tcp { host: "127.0.0.1".to_owned(), port }
}

/// The observation of the check for a wire that scrambles, on an arm with this transport.
fn observe(scramble: u8, transport: Transport, expected: Expect) {
    let mut bench = Bench::plain();
    bench.server.address = echo_server();
    bench.setup.transport = transport;
    let mut context = bench.context();
    let database = Wired { scramble };
    context.database = &database;
    expected.assert_eq(&format!("{:?}", seen_by(&WireCanary::new(Targets::Everything), &mut context)));
}

#[test]
fn the_relay_stands_between_client_and_server() {
    let tls = Transport::tls(TlsVersion::V1_3, false);
    observe(
        0,
        Transport::Plain,
        expect![[
            r#"Exposed("sent: 33 canaries found 35 times; received: 33 canaries found 35 times; no TLS record")"#
        ]],
    );
    observe(
        0x5a,
        Transport::Plain,
        expect![[r#"Protected("none of 33 canaries in 3.5 kB sent, 3.5 kB received; no TLS record")"#]],
    );
    observe(
        0x5a,
        tls,
        expect![[
            r#"Exposed("no canary, but not every connection speaks TLS: 3.5 kB sent, 3.5 kB received; no TLS record")"#
        ]],
    );
}
