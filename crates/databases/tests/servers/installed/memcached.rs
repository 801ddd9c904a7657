//! memcached: what only memcached has.

use tithe_databases::memcached::Memcached;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    database::Database as _,
    matrix::{Feature, State},
    session::{Discard, Request},
    setup::Setup,
};

use super::{key_value, sandbox::Sandbox, table};
use crate::{
    how,
    tested::{self, Again, Refusals, Tested, chosen, proven},
};

pub static MEMCACHED: Tested =
    Tested { database: &Memcached, start: |protections| Sandbox::start(&Memcached, protections), again: Again::Left };

const TLS: [&str; 2] = ["tls-negotiated Claim Holds", "wire-canary Claim Holds"];

proven! { MEMCACHED;
    tls: "tls" {} => TLS, not "tls" { mutual = true }, "auth-file" {}, "tls" { key = "rsa-2048" };
    tls_with_client_certificates: "tls" { mutual = true, key = "rsa-2048", chain = "2", suite = "aes-128-gcm" }
        => TLS;
    tls_that_is_resumed: "tls" { resumption = true } => [TLS[0], TLS[1], "tls-resumed Disclosure Holds"];
    users_and_passwords: "auth-file" {} => ["password-asked Claim Holds"];
    encrypted_columns: "columns" {} => [
        "ciphertext-seen Claim Holds",
        "wrong-column-key Claim Holds",
        "wire-canary Strengthens Holds",
        "recorders Disclosure Holds",
    ];
}

#[test]
fn nothing_falls_back() {
    let refusals = Refusals {
        tls: "",
        plaintext: "at the first command…",
        password: ("auth-file", "the server lets clients in without the password that it should ask for"),
        wrong: "CLIENT_ERROR authentication failure",
        none: "the server asks for a user and password: CLIENT_ERROR unauthenticated",
    };
    tested::nothing_falls_back(&MEMCACHED, chosen!(MEMCACHED, "auth-file" {}), &refusals);
}

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (MEMCACHED.start)(&[]) else { return };
    MEMCACHED.serve(&sandbox, "verbosity 0", "NOTHING", |task| assert!(matches!(task, ServerTask::Unknown)));
    Memcached.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("nothing evicted");
    let facts = Memcached.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("memcached 1."), "{facts:?}");
    assert_eq!((facts.facts["authentication"].as_str(), facts.facts["ssl_enabled"].as_str()), ("none", "no"));
    let seen = Memcached.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    let state = |feature| seen.iter().find(|cell| cell.feature == feature).map(|cell| cell.state);
    assert_eq!(state(Feature::Transport), Some(State::Off));
    assert_eq!(state(Feature::Authentication), Some(State::Off));

    // More data than it has memory for: it removes the oldest.
    let condition = || Memcached.condition(&sandbox.server, &sandbox.setup).expect("a number");
    let before = condition();
    assert_eq!((before.now.as_str(), condition().changed(&before)), ("0", None));
    let mut session = MEMCACHED.connect(&sandbox, true);
    let value = vec![b'x'; 1 << 19];
    for number in 0..200 {
        let key = format!("much{number}");
        let request = Request::Insert { key: key.as_bytes(), values: &[(0, &value)] };
        assert_eq!(session.call(&request, &mut Discard), Ok(1));
    }
    let fault = Memcached.quiesce(&sandbox.server, &sandbox.setup, &table()).expect_err("evicted");
    assert!(fault.to_string().contains("memory-limit"), "{fault}");
    let words = condition().changed(&before).expect("it has changed");
    assert!(words.starts_with("items removed to make room for others (memory-limit): "), "{words}");
    assert!(words.ends_with(", and 0 before the first frame"), "{words}");
    MEMCACHED.remove(&sandbox);
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let protections = [chosen!(MEMCACHED, "tls" {}), chosen!(MEMCACHED, "auth-file" {})];
    let Some(sandbox) = (MEMCACHED.start)(&protections) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let credentials = &sandbox.setup.credentials;
    let (password, authority) = (credentials.password.expose_text(), credentials.authority.display());
    let url = format!("memcacheds://tithe:{password}@127.0.0.1:{port}?ca={authority}");
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(std::collections::BTreeMap::new(), credentials.clone());
    assert_eq!(Memcached.lacks(&server, &setup).expect("an answer").len(), 0);
    let identity = || Memcached.identity(&server, &setup).expect("an answer").expect("an identity");
    assert_eq!(identity(), identity());
    let seen = Memcached.inspect(&server, &setup).expect("a matrix");
    for feature in [Feature::Transport, Feature::Authentication] {
        let cell = seen.iter().find(|cell| cell.feature == feature).expect("a row");
        assert_eq!(cell.state, State::Enforced, "{}", cell.seen);
    }
    // A run that was killed leaves its records; the next one creates the table again.
    for _ in 0..2 {
        Memcached.create(&server, &setup, &table()).expect("a table");
        let mut session = key_value(Memcached.connect(&server, &setup, &how(true)).expect("a session"));
        MEMCACHED.exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
    }
    Memcached.remove(&server, &setup, &table()).expect("removed");

    // Items of our name, and no mark that they are ours.
    let mut session = key_value(Memcached.connect(&server, &setup, &how(true)).expect("a session"));
    assert_eq!(session.call(&Request::Insert { key: b"left", values: &[(0, b"a")] }, &mut Discard), Ok(1));
    for outcome in [Memcached.create(&server, &setup, &table()), Memcached.remove(&server, &setup, &table())] {
        assert!(matches!(&outcome, Err(Fault::Refused(words)) if words.contains("did not make it")), "{outcome:?}");
    }
}
