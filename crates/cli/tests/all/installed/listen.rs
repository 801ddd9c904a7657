//! Real servers that listen on other addresses than 127.0.0.1: proven like others, and open to clients that know the
//! password.
//!
//! A product that is not installed is skipped with a notice, and so are tests that need namespaces; with `CI` set that
//! fails.

use crate::support;

use std::{net::IpAddr, process::Output};

use support::{
    Bench, err,
    hosts::Hosts,
    out,
    server::{found, start_on_copy},
    small::small_logs,
    status,
};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_machine::{fault::Fault, sandbox::Sandbox, secret::Secret};
use tithe_model::catalogue::NetworkLogin;
use tithe_plugin::{
    product::Product,
    setup::{Authentication, Setup, TlsVersion, Transport},
};

/// An experiment whose servers listen on `address`, with an arm for each of `protections`.
fn experiment(database: &dyn Product, address: IpAddr, protections: &[&str]) -> String {
    let arm = |id: &&str| format!("[[arm]]\nname = \"{id}\"\nprotections = [{{ use = \"{id}\" }}]\n");
    format!(
        "title = \"Listening\"\ndatabase = \"{}\"\n[data]\nrecords = 300\n[load]\nlisten = \"{address}\"\n\
         [measure]\naa_arm = false\n[[workload]]\nycsb = \"a\"\n[[arm]]\nname = \"plain\"\n{}",
        database.id(),
        protections.iter().map(arm).collect::<String>()
    )
}

/// All claims of the experiment hold in `verified`, and `planned` contains `line`.
fn check(verified: &Output, planned: &Output, line: &str) {
    for output in [verified, planned] {
        assert_eq!(status(output), 0, "{}{}", out(output), err(output));
    }
    assert!(out(verified).contains("every claim holds"), "{}", out(verified));
    assert!(out(planned).contains(line), "no {line:?} in {}", out(planned));
}

/// On another loopback address nothing else changes.
fn changes_nothing_else(database: &dyn Product, protections: &[&str], line: &str) {
    if found(database).is_none() {
        return;
    }
    let bench = Bench::new("listen-loopback");
    bench.file("e.toml", &experiment(database, [127, 0, 0, 2].into(), protections));
    check(&bench.tithe(&["verify", "e.toml"]), &bench.tithe(&["plan", "e.toml"]), line);
}

#[test]
fn on_another_loopback_address_of_postgresql_nothing_else_changes() {
    changes_nothing_else(&Postgres, &["tls", "scram", "columns"], "- pg_hba.conf: host all all 127.0.0.1/32 trust");
}

#[test]
fn on_another_loopback_address_of_redis_nothing_else_changes() {
    changes_nothing_else(&Redis, &["tls", "requirepass", "acl"], "+ client: password, requirepass");
}

/// In a network every arm has a password and is proven.
fn asks_for_a_password(database: &dyn Product, protections: &[&str], line: &str) {
    let Some(hosts) = Hosts::new(1) else { return };
    let address = IpAddr::V4(hosts[0].address());
    if found(database).is_none() {
        return;
    }
    let bench = Bench::new("listen-network");
    bench.file("e.toml", &experiment(database, address, protections));
    let here = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&here), 2, "{}{}", out(&here), err(&here));
    let refusal = format!("`listen` must be an IP address of this machine, which {address} is not");
    assert!(err(&here).contains(&refusal) && err(&here).contains("e.toml:6:10"), "{}", err(&here));
    let there = |command: &str| hosts[0].output(&mut bench.command(&[command, "e.toml"]));
    check(&there("verify"), &there("plan"), line);
}

#[test]
fn in_a_network_every_arm_of_postgresql_has_a_password_and_is_proven() {
    asks_for_a_password(&Postgres, &["tls", "columns"], "- pg_hba.conf: host all all 0.0.0.0/0 scram-sha-256");
}

#[test]
fn in_a_network_every_arm_of_redis_has_a_password_and_is_proven() {
    asks_for_a_password(&Redis, &["tls", "columns"], "+ client: TLS 1.3 only");
}

/// Starts a server of `database` in one host, with clients in another one. Clients without a password are refused with
/// these `words`.
fn is_reached_with_the_password_alone(database: &dyn Product, transport: Transport, words: &str) {
    let Some(install) = found(database) else { return };
    let Some(hosts) = Hosts::new(2) else { return };
    let NetworkLogin::Password(mechanism) = database.entry().network_login else { panic!("it is opened to a network") };
    hosts[0].within(|| {
        let folder = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let mut folder = folder.listening_on(hosts[0].address().into());
        let mut setup = Setup::plain(small_logs(database.id()), folder.credentials().expect("credentials"));
        setup.transport = transport;
        setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
        let place = folder.place("open").expect("a place");
        let launch = database.launch(&install, &setup, &place);
        let (server, _running) = start_on_copy(database, &install, (&folder, &place), &launch, &setup);
        hosts[1].within(|| {
            let facts = database.facts(&server, &setup).expect("who knows the password is let in");
            assert!(!facts.version.is_empty());
            let mut guessing = setup.clone();
            guessing.credentials.password = Secret::random_text(32);
            let refused = database.facts(&server, &guessing).expect_err("who does not is not");
            assert!(matches!(refused, Fault::Refused(_) | Fault::Server(_)), "{refused:?}");
            let nobody = Setup { authentication: Authentication::None, ..setup.clone() };
            let refused = database.facts(&server, &nobody).expect_err("who gives none is not, either");
            assert!(refused.to_string().contains(words), "{refused}");
        });
    });
}

const TLS: Transport = Transport::tls(TlsVersion::V1_3, true);

/// Plain and with TLS.
fn is_reached(database: &dyn Product, words: &str) {
    for transport in [Transport::Plain, TLS] {
        is_reached_with_the_password_alone(database, transport, words);
    }
}

/// The answer of both MariaDB and MySQL to clients without a password.
const DENIED: &str = "(using password: NO)";

#[test]
fn postgresql_is_reached_from_another_host() {
    is_reached(&Postgres, "the server asks for a password, and none is given");
}

#[test]
fn redis_is_reached_from_another_host() {
    is_reached(&Redis, "NOAUTH Authentication required.");
}

#[test]
fn mariadb_is_reached_from_another_host() {
    is_reached(&MariaDb, DENIED);
}

/// Without TLS, clients in other hosts prove that they know the password, and never send it.
#[test]
fn mysql_is_reached_from_another_host() {
    is_reached(&MySql, DENIED);
}
