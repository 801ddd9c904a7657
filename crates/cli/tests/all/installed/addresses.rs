//! Addresses of running servers as written by providers, frameworks and drivers, each against a real server.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use crate::support::{
    Bench, err, out,
    server::{OtherServer, Server, free_port},
    status,
};

/// The addresses, and the expected result of each.
const ADDRESSES: &str = include_str!("addresses.tsv");

/// Values for the placeholders of an address, known once a server runs.
struct Known {
    port: String,
    tls: String,
    socket: String,
    folder: String,
    authority: String,
}

/// All addresses of servers called `server` give the result in the table; `known` has the values of one server.
fn meet(server: &str, known: &Known) {
    let bench = Bench::new("addresses");
    bench.file(
        ".pg_service.conf",
        &format!(
            "# services\n[other]\nport=1\n\n[shop]\nhost=localhost\nport={}\nuser=tithe\ndbname=postgres\n",
            known.port
        ),
    );
    bench.file("client.cnf", &format!("[client]\nuser = app\nsocket = \"{}\"\n", known.socket));
    if !known.folder.is_empty() {
        symlink(&known.folder, bench.path("my sockets")).expect("a link");
    }
    let files = bench.path("");
    let files = files.display().to_string();
    let files = files.trim_end_matches('/');
    let values = [
        ("port", &known.port),
        ("tls", &known.tls),
        ("socket", &known.socket),
        ("folder", &known.folder),
        ("authority", &known.authority),
        ("files", &files.to_owned()),
    ];
    let rows = ADDRESSES.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for row in rows.filter(|row| row[0] == server) {
        let address = values.iter().fold(row[2].to_owned(), |address, (name, value)| {
            let encoded = value.replace('/', "%2F");
            address.replace(&format!("{{{name}}}"), value).replace(&format!("{{{name}%}}"), &encoded)
        });
        let mut command = bench.command(&["inspect", &address]);
        let output = command.env("HOME", files).env("SSL_CERT_FILE", &known.authority).output().expect("tithe starts");
        let told = out(&output) + &err(&output);
        let met = match row[1] {
            "seen" => status(&output) == 0,
            words => status(&output) != 0 && told.contains(words),
        };
        if !met {
            wrong.push(format!("{address}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn postgres_is_reached_as_people_write_it() {
    let Some(server) = Server::start() else { return };
    let folder = server.folder().display().to_string();
    let known = Known {
        port: server.port().to_string(),
        tls: String::new(),
        socket: String::new(),
        folder,
        authority: server.authority(),
    };
    meet("postgres", &known);
}

#[test]
fn mariadb_is_reached_as_people_write_it() {
    let accounts = "CREATE USER app@'%';\nCREATE USER app@localhost;\n";
    let Some(server) = OtherServer::mariadb_with(false, "", accounts) else { return };
    let known = Known {
        port: server.place("").trim_start_matches(':').to_owned(),
        tls: String::new(),
        socket: server.folder().join("data/server.sock").display().to_string(),
        folder: String::new(),
        authority: server.authority(),
    };
    meet("mariadb", &known);
}

#[test]
fn redis_is_reached_as_people_write_it() {
    let (folder, tls) = (tempfile::tempdir().expect("a folder"), free_port());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("open to the server");
    let socket = folder.path().join("redis.sock");
    let settings = format!(
        "unixsocket {}\nunixsocketperm 777\ntls-port {}\ntls-auth-clients no\nCERTIFICATES\n",
        socket.display(),
        tls.number()
    );
    let Some(server) = OtherServer::redis_with(&settings) else { return };
    let known = Known {
        port: server.place("").trim_start_matches(':').to_owned(),
        tls: tls.number().to_string(),
        socket: socket.display().to_string(),
        folder: String::new(),
        authority: server.authority(),
    };
    meet("redis", &known);
}

#[test]
fn cassandra_is_reached_as_people_write_it() {
    let Some(server) = OtherServer::cassandra() else { return };
    let known = Known {
        port: server.place("").trim_start_matches(':').to_owned(),
        tls: String::new(),
        socket: String::new(),
        folder: String::new(),
        authority: server.authority(),
    };
    meet("cassandra", &known);
}

#[test]
fn most_of_the_addresses_are_taken() {
    let rows: Vec<&str> = ADDRESSES.lines().filter(|line| !line.starts_with('#')).collect();
    let taken = rows.iter().filter(|row| row.split('\t').nth(1) == Some("seen")).count();
    assert!(rows.len() >= 60 && taken * 10 >= rows.len() * 9, "{taken} of {}", rows.len());
}
