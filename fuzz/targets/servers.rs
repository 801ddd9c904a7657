//! Servers of others, one target for each product: everything that Tithe asks a server is answered by the bytes. The
//! first byte chooses what Tithe does; the rest is what the server says on one connection after the other, between marks.

use std::{
    collections::VecDeque,
    io::Write as _,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{LazyLock, Mutex, PoisonError},
    thread,
};

use tithe_machine::launch::{Address, Server};
use tithe_model::experiment::Url;
use tithe_plugin::{
    database::{Connect, Database, Speaker},
    recording::Sent,
    session::{Discard, Fields, Parameter, Request, Session, Table, answered_within},
    setup::Setup,
    wire::foreign::Parser,
};

pub const TARGETS: &[Parser] = &[
    ("server-postgres", |bytes| meet("postgres", "postgres://tithe@{}/tithe?sslmode=disable", bytes)),
    ("server-mariadb", |bytes| meet("mariadb", "mariadb://tithe@{}/tithe", bytes)),
    ("server-mysql", |bytes| meet("mysql", "mysql://tithe@{}/tithe", bytes)),
    ("server-redis", |bytes| meet("redis", "redis://{}", bytes)),
    ("server-memcached", |bytes| meet("memcached", "memcached://{}", bytes)),
    ("server-etcd", |bytes| meet("etcd", "etcd://{}", bytes)),
    ("server-cassandra", |bytes| meet("cassandra", "cassandra://{}", bytes)),
    ("server-opensearch", |bytes| meet("opensearch", "opensearch://{}", bytes)),
];

/// Between what is said on two connections.
const MARK: &[u8] = b"\n~~\n";

/// A listener, and what is said on its next connections.
struct Liar {
    port: u16,
    says: Mutex<Says>,
}

#[derive(Default)]
struct Says {
    pieces: VecDeque<Vec<u8>>,
    open: Vec<TcpStream>,
}

static LIAR: LazyLock<Liar> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // With a reset at its end a connection leaves no port in use.
            let _ = rustix::net::sockopt::set_socket_linger(&client, Some(std::time::Duration::ZERO));
            let mut says = LIAR.says.lock().unwrap_or_else(PoisonError::into_inner);
            // A further connection hears what the last one heard.
            let piece = if says.pieces.len() > 1 { says.pieces.pop_front() } else { says.pieces.front().cloned() };
            let _ = (&client).write_all(&piece.unwrap_or_default());
            let _ = client.shutdown(Shutdown::Write);
            says.open.push(client);
        }
    });
    Liar { port, says: Mutex::default() }
});

/// Has Tithe meet a server of the product `id` at `url` that says `bytes`.
fn meet(id: &str, url: &str, bytes: &[u8]) {
    let Some(database) = tithe_databases::all().iter().find(|database| database.id() == id) else { return };
    let Some((&way, said)) = bytes.split_first() else { return };
    let mut pieces = VecDeque::new();
    let mut rest = said;
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        pieces.push_back(rest[..at].to_vec());
        rest = &rest[at + MARK.len()..];
    }
    pieces.push_back(rest.to_vec());
    let url = Url::new(url.replace("{}", &format!("127.0.0.1:{}", LIAR.port)));
    *LIAR.says.lock().unwrap_or_else(PoisonError::into_inner) = Says { pieces, open: Vec::new() };
    answered_within(1, || ask(*database, &url, way));
}

fn ask(database: &dyn Database, url: &Url, way: u8) {
    let setup = Setup::bare();
    let table = Table { name: "t".to_owned(), fields: 2, field_prefix: "field".to_owned() };
    let server = &Server { folder: std::env::temp_dir(), ..Server::at(Address::Attached(url.clone())) };
    match way % 10 {
        0 => drop(database.inspect(server, &setup)),
        1 => load(database, server, &setup, &table),
        2 => statements(database, server, &setup, &table),
        3 => drop(database.facts(server, &setup)),
        4 => drop(database.lacks(server, &setup)),
        5 => drop((database.identity(server, &setup), database.is_product_at(url))),
        6 => {
            let _ = database.recording(server, &setup, Sent::Values);
            let _ = database.recording(server, &setup, Sent::Passwords);
        }
        7 => {
            if let Ok(mut list) = database.connection_list(server, &setup) {
                let _ = (list.now(), list.now());
            }
        }
        8 => {
            let how = connect(&table);
            if let Ok(mut open) = database.statements(server, &setup, &how, Speaker::CarefulClient) {
                let _ = (open.rows("a b"), open.rows("c"));
            }
            let _ = database.ask(server, &setup, "a");
        }
        _ => {
            let _ = (database.create(server, &setup, &table), database.remove(server, &setup, &table));
            let _ = (database.cache_use(server, &setup), database.wal_position(server, &setup));
        }
    }
}

fn connect(table: &Table) -> Connect {
    Connect::blocking(table.clone())
}

/// Every request of workloads on records.
fn load(database: &dyn Database, server: &Server, setup: &Setup, table: &Table) {
    let Ok(Session::KeyValue(mut session)) = database.connect(server, setup, &connect(table)) else { return };
    let values: [(usize, &[u8]); 2] = [(0, b"x"), (1, b"y")];
    let requests = [
        Request::Read { key: b"k", fields: Fields::All },
        Request::Scan { start: b"k", count: 3, fields: Fields::One(1) },
        Request::Update { key: b"k", values: &values[..1] },
        Request::Insert { key: b"k", values: &values },
        Request::Delete { key: b"k" },
    ];
    for request in &requests {
        if session.call(request, &mut Discard).is_err() {
            return;
        }
    }
}

/// Every way of running statements.
fn statements(database: &dyn Database, server: &Server, setup: &Setup, table: &Table) {
    let Some(Ok(mut session)) = database.sql().map(|sql| sql.connect(server, setup, &connect(table))) else { return };
    let prepared = session.prepare("SELECT a FROM t WHERE k = ?");
    if let Ok(statement) = prepared {
        let _ = session.call(statement, &[Parameter::Text(b"k")], &mut Discard);
    }
    if session.submit_text("SELECT 1; SELECT 2").is_ok() {
        let _ = session.finish(&mut Discard);
    }
    if let Ok(text) = session.prepare_text("SELECT 1") {
        let _ = session.call(text.statement, &[], &mut Discard);
    }
    if session.submit_lines("t", &["a"], b"1\n").is_ok_and(|sent| sent) {
        let _ = session.finish(&mut Discard);
    }
    let _ = session.run("SELECT 1");
}
