//! etcd: what only etcd has.

use std::net::Ipv4Addr;

use rustix::process::{Pid, Signal, kill_process};
use tithe_databases::etcd::Etcd;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
    proc::{ProcessSnapshot, ServerTask},
    sandbox::ports::Port,
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    database::Database as _,
    matrix::{Feature, State},
    session::{Discard, Fields, Request},
    setup::Setup,
};

use super::{key_value, table};
use crate::{
    how, observe,
    put_back::put_back_with,
    rows,
    sandbox::{Sandbox, protection},
    tested::{self, Again, Refusals, Tested, chosen, proven},
};

pub static ETCD: Tested =
    Tested { database: &Etcd, start: |protections| Sandbox::start(&Etcd, protections), again: Again::Left };

const TLS: [&str; 2] = ["tls-negotiated Claim Holds", "wire-canary Claim Holds"];

const COLUMNS: [&str; 5] = [
    "ciphertext-seen Claim Holds",
    "wrong-column-key Claim Holds",
    "disk-canary Strengthens Holds",
    "wire-canary Strengthens Holds",
    "recorders Disclosure Holds",
];

proven! { ETCD;
    tls: "tls" {} => TLS, not "tls" { mutual = true }, "password" {}, "tls" { key = "rsa-2048" };
    tls_with_client_certificates: "tls" { mutual = true, key = "rsa-2048", chain = "2", suite = "aes-128-gcm" }
        => TLS;
    users_passwords_and_roles: "password" {} => ["password-asked Claim Holds", "rights-enforced Claim Holds"];
    tls_at_the_port_for_members: "peer-tls" {} => ["peer-tls Claim Holds"], not "tls" {};
    encrypted_columns: "columns" {} => COLUMNS;
    encrypted_columns_by_secretbox: "columns" { cipher = "xsalsa20-poly1305" } => COLUMNS;
}

#[test]
fn nothing_falls_back() {
    let refusals = Refusals {
        tls: "",
        plaintext: "at the first call…",
        password: ("password", "the server lets clients in without the password that it should ask for"),
        wrong: "etcdserver: authentication failed, invalid user ID or password",
        none: "the server asks for a user and password: etcdserver: user name is empty",
    };
    tested::nothing_falls_back(&ETCD, chosen!(ETCD, "password" {}), &refusals);
}

#[test]
fn data_are_put_back() {
    put_back_with(&ETCD, None);
}

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (ETCD.start)(&[]) else { return };
    ETCD.serve(&sandbox, "Maintenance/Status", "Maintenance/Nothing", |task| {
        assert!(matches!(task, ServerTask::Unknown));
    });
    let facts = Etcd.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("etcd 3."), "{facts:?}");
    assert_eq!(facts.facts["authentication"], "none");
    let seen = Etcd.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    let state = |feature| seen.iter().find(|cell| cell.feature == feature).map(|cell| cell.state);
    for (feature, expected) in [
        (Feature::Transport, State::Off),
        (Feature::Authentication, State::Off),
        (Feature::Authorisation, State::Off),
        (Feature::AtRest, State::NotOffered),
    ] {
        assert_eq!(state(feature), Some(expected), "{feature:?}");
    }

    // Groups are sent in several transactions, and records are not confused if one name is a prefix of another.
    let mut session = ETCD.connect(&sandbox, true);
    session.begin_bulk().expect("a group");
    let value = vec![b'x'; 1000];
    for number in 0..200 {
        let key = format!("many{number}");
        let values: Vec<(usize, &[u8])> = (0..table().fields).map(|field| (field, &value[..])).collect();
        assert_eq!(session.call(&Request::Insert { key: key.as_bytes(), values: &values }, &mut Discard), Ok(1));
    }
    session.end_bulk().expect("it is written");
    let mut read = |key: &[u8]| rows(&mut *session, &Request::Read { key, fields: Fields::One(0) });
    assert_eq!(read(b"many1"), format!("1\n-: 0={}", "x".repeat(1000)));
    assert_eq!(read(b"many"), "0");
    Etcd.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("compacted");
    Etcd.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("once more");
    ETCD.remove(&sandbox);
}

#[test]
fn three_members_speak_tls_among_themselves() {
    let members = [("members", "3")];
    let peer_tls = [chosen!(ETCD, "peer-tls" {}), chosen!(ETCD, "password" {})];
    for (protections, verdict) in [(&peer_tls[..], "holds"), (&peer_tls[1..], "does not hold")] {
        let Some(sandbox) = Sandbox::start_as(&Etcd, protections, &members, &[]) else { return };
        let facts = Etcd.facts(&sandbox.server, &sandbox.setup).expect("facts").facts;
        assert_eq!(facts["leader"], "the member with the clients");
        assert!(facts["members"].starts_with("3 ("), "{facts:?}");
        Etcd.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
        ETCD.exercise(&mut *ETCD.connect(&sandbox, true));
        Etcd.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("compacted");
        let seen = between_members(&sandbox);
        match seen {
            Observation::Protected(words) => {
                assert_eq!(verdict, "holds", "{words}");
                assert_eq!(words.matches("with a certificate: served").count(), 3, "{words}");
                assert_eq!(words.matches(": refused (").count(), 6, "{words}");
            }
            Observation::Exposed(words) => assert_eq!(verdict, "does not hold", "{words}"),
            other => panic!("{other:?}"),
        }
        ETCD.remove(&sandbox);
        loses_its_majority(sandbox);
    }
}

/// Kills two of three members: the arm ends, and its last words name one.
fn loses_its_majority(mut sandbox: Sandbox) {
    let shell = sandbox.server.process.expect("a process");
    let is_member =
        |process: &i32| std::fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|it| it == "etcd\n");
    let members: Vec<i32> = ProcessSnapshot::take().tree(shell).into_iter().filter(is_member).collect();
    assert_eq!(members.len(), 3);
    for member in &members[1..] {
        let member = Pid::from_raw(*member).expect("a process");
        kill_process(member, Signal::KILL).expect("killed");
    }
    let words = sandbox.last_words();
    assert!(
        words.contains("| member") && words.ends_with("ended (status 137), so all members were stopped"),
        "{words}"
    );
}

#[test]
fn members_that_ask_for_no_certificate_or_listen_elsewhere_are_no_proof() {
    let port = Port::draw(Ipv4Addr::LOCALHOST.into()).expect("a port");
    let second = format!("127.0.0.1:{}", port.number());
    let urls = format!("--listen-peer-urls=http://{second},https");
    let beside = format!("a member listens at {second} as well");
    let mistakes: [(&[(&str, &str)], &str); 2] = [
        (
            &[("--peer-client-cert-auth=true", "--peer-client-cert-auth=false"), ("--peer-trusted-ca", "--trusted-ca")],
            "without: served",
        ),
        (&[("--listen-peer-urls=https", urls.as_str())], beside.as_str()),
    ];
    for (mistakes, words) in mistakes {
        let Some(sandbox) = Sandbox::start_wrong(&Etcd, &[chosen!(ETCD, "peer-tls" {})], mistakes) else { return };
        let seen = between_members(&sandbox);
        assert!(matches!(&seen, Observation::Exposed(told) if told.contains(words)), "{seen:?}");
    }
}

/// What the check of `peer-tls` sees.
fn between_members(sandbox: &Sandbox) -> Observation {
    let asked = chosen!(ETCD, "peer-tls" {});
    let checks = protection(&Etcd, "peer-tls").evidence(&asked);
    let [check] = &checks[..] else { panic!("one check") };
    observe(sandbox, true, &**check)
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let protections = [chosen!(ETCD, "tls" {}), chosen!(ETCD, "password" {})];
    let Some(sandbox) = (ETCD.start)(&protections) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let credentials = &sandbox.setup.credentials;
    let (password, authority) = (credentials.password.expose_text(), credentials.authority.display());
    let at = |user: &str| {
        let url = format!("etcds://{user}:{password}@127.0.0.1:{port}?ca={authority}");
        Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() }
    };
    let server = at("tithe-clients");
    let setup = Setup::plain(std::collections::BTreeMap::new(), credentials.clone());
    assert_eq!(Etcd.lacks(&server, &setup).expect("an answer"), []);
    let identity = || Etcd.identity(&server, &setup).expect("an answer").expect("an identity");
    assert_eq!(identity(), identity());
    for (server, scope) in [(&server, "this account"), (&at("root"), "whole server")] {
        let seen = Etcd.inspect(server, &setup).expect("a matrix");
        for feature in [Feature::Transport, Feature::Authentication, Feature::Authorisation] {
            let cell = seen.iter().find(|cell| cell.feature == feature).expect("a row");
            assert_eq!(cell.state, State::Enforced, "{}", cell.seen);
            if feature == Feature::Authorisation {
                // Older versions leave a doubt.
                let scope = if cell.seen.contains("not judged") { "this account" } else { scope };
                assert_eq!(cell.scope.words(), scope, "{}", cell.seen);
            }
        }
    }
    // A run that was killed leaves its records; the next one creates the table again.
    for _ in 0..2 {
        Etcd.create(&server, &setup, &table()).expect("a table");
        let mut session = key_value(Etcd.connect(&server, &setup, &how(true)).expect("a session"));
        ETCD.exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
    }
    Etcd.remove(&server, &setup, &table()).expect("removed");

    // Keys of our name, and no mark that they are ours.
    let mut session = key_value(Etcd.connect(&server, &setup, &how(true)).expect("a session"));
    assert_eq!(session.call(&Request::Insert { key: b"left", values: &[(0, b"a")] }, &mut Discard), Ok(1));
    for outcome in [Etcd.create(&server, &setup, &table()), Etcd.remove(&server, &setup, &table())] {
        assert!(matches!(&outcome, Err(Fault::Refused(words)) if words.contains("did not make it")), "{outcome:?}");
    }

    // An account without rights gets a list of what it lacks.
    let mut elsewhere = setup.clone();
    elsewhere.space = "others".to_owned();
    let lacks = Etcd.lacks(&server, &elsewhere).expect("an answer");
    assert!(lacks[0].to_string().contains("etcdctl role grant-permission"), "{lacks:?}");
}
