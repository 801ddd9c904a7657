//! Apache Cassandra. A virtual machine takes time to start, so these tests start few servers and check much on each.

use std::sync::atomic::AtomicBool;

use expect_test::{Expect, expect};
use tithe_databases::cassandra::Cassandra;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Search, Server},
    proc::ServerTask,
    secret::Secret,
};
use tithe_model::{
    experiment::{Arrivals, OptionValue, Protection as Chosen, Url},
    record::Steadied,
    steady::Steadiness,
};
use tithe_plugin::{
    database::Database,
    matrix::Feature,
    session::{Discard, Fields, KeyValueSession, Request, Table},
    setup::{Authentication, Setup, Transport},
};

use super::{
    assert_exposed, how, how_for, key_value,
    load::{load, runner, ycsb},
    rows,
    sandbox::{self, Sandbox},
    table, verdicts,
};

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    sandbox::chosen(&Cassandra, id, options)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

/// Every kind of request, with its result.
fn exercise(session: &mut dyn KeyValueSession) {
    fn call(session: &mut dyn KeyValueSession, request: Request<'_>) -> u64 {
        session.call(&request, &mut Discard).expect("an answer")
    }
    let odd = "\r\n'\"\u{0}ä€".as_bytes();
    let long = vec![b'x'; 300_000];
    for key in [b"user2", b"user1", b"user3"] {
        assert_eq!(call(session, Request::Insert { key, values: &[(0, b"a"), (1, odd), (2, b"")] }), 1);
    }
    let read = Request::Read { key: b"user1", fields: Fields::All };
    assert_eq!(rows(session, &read), format!("1\n-: 0=a 1={} 2=", odd.escape_ascii()));
    assert_eq!(call(session, Request::Update { key: b"user1", values: &[(2, &long)] }), 1);
    let one = Request::Read { key: b"user1", fields: Fields::One(2) };
    assert_eq!(rows(session, &one), format!("1\n-: 2={}", "x".repeat(300_000)));
    assert_eq!(call(session, Request::Update { key: b"user1", values: &[(0, b"b"), (1, b"c"), (2, b"d")] }), 1);
    assert_eq!(rows(session, &read), "1\n-: 0=b 1=c 2=d");
    // Rows are ordered by the hash of their keys: a scan begins with the requested key, and continues with others.
    let mut met = std::collections::BTreeSet::new();
    for key in ["user1", "user2", "user3"] {
        let scan = Request::Scan { start: key.as_bytes(), count: 5, fields: Fields::One(0) };
        let seen = rows(session, &scan);
        assert_eq!(seen.lines().nth(1).map(|line| line.split(':').next()), Some(Some(key)), "{seen}");
        assert!(met.insert(seen.lines().count()), "{seen}");
        let scan = Request::Scan { start: key.as_bytes(), count: 1, fields: Fields::All };
        assert_eq!(call(session, scan), 1);
    }
    for key in [&b"user1"[..], b"user2", b"user3", b"nobody"] {
        assert_eq!(call(session, Request::Delete { key }), 1);
    }
    assert_eq!(rows(session, &read), "0");
}

/// Looks at every check of `chosen` on both servers. Compares the verdicts.
fn prove(plain: &Sandbox, protected: &Sandbox, chosen: &Chosen, expect: Expect) {
    expect.assert_eq(&verdicts(plain, protected, chosen));
}

fn serve(sandbox: &Sandbox) {
    Cassandra.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = Cassandra.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        assert!(!session.scans_in_key_order());
        assert!(matches!(session.server_task(), ServerTask::Unknown));
        let fault = session.run_statement("NOTHING").expect_err("no such statement");
        assert!(matches!(fault, Fault::Server(_)), "{fault}");
        // An error of the server leaves the session usable.
        exercise(&mut *session);
    }
}

fn refusal(server: &Server, setup: &Setup) -> String {
    match Cassandra.connect(server, setup, &how(true)).map(drop) {
        Err(Fault::Refused(words)) => words,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

fn inspected(server: &Server, setup: &Setup) -> String {
    let mut seen = Cassandra.inspect(server, setup).expect("a matrix");
    seen.sort_by_key(|cell| cell.feature);
    assert_eq!(seen.iter().map(|cell| cell.feature).collect::<Vec<_>>(), Feature::ALL);
    seen.iter().for_each(|cell| eprintln!("{:?}", cell));
    seen.iter().map(|cell| format!("{}: {}\n", cell.feature.id(), cell.state.words())).collect()
}

/// The server of `sandbox` as an attached one, with its keyspace `keyspace`.
fn attached(sandbox: &Sandbox, user: &str, rest: &str) -> Server {
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let url = Url::new(format!("cassandra://{user}127.0.0.1:{port}{rest}"));
    Server {
        address: Address::Attached(url),
        process: None,
        remote: None,
        paths: Default::default(),
        ..sandbox.server.clone()
    }
}

/// A plain server, and two with all protections that can be combined.
#[test]
fn a_plain_server_and_every_protection() {
    let Some(plain) = Sandbox::start(&Cassandra, &[]) else { return };
    serve(&plain);
    assert_eq!(super::inside::outside(&plain), Default::default());
    Cassandra.quiesce(&plain.server, &plain.setup, &table()).expect("quiesced");
    let facts = Cassandra.facts(&plain.server, &plain.setup).expect("facts");
    eprintln!("{facts:?}");
    assert!(facts.version.starts_with("Apache Cassandra "), "{}", facts.version);
    assert_eq!((facts.facts["nodes"].as_str(), facts.facts["authentication"].as_str()), ("1", "none"));
    expect![[r#"
        authentication: off
        authorisation: off
        tls: off
        at-rest: off
        audit: off
        jmx-authentication: off
        authentication-caching: off
        proxy-roles: not offered by this product
        node-to-node: off
        client-to-node: off
    "#]]
    .assert_eq(&inspected(&plain.server, &plain.setup));
    keeps_what_is_not_ours(&plain);

    let strict = [
        chosen(
            "tls",
            &[
                ("mutual", OptionValue::Flag(true)),
                ("resumption", OptionValue::Flag(true)),
                ("key", text("rsa-2048")),
                ("chain", text("2")),
                ("suite", text("aes-128-gcm")),
            ],
        ),
        chosen("internode-tls", &[]),
        chosen("password", &[("caching", OptionValue::Flag(false))]),
        chosen("audit-file", &[]),
        chosen("commitlog-encryption", &[]),
    ];
    let Some(protected) = Sandbox::start(&Cassandra, &strict) else { return };
    serve(&protected);
    let expected = [
        expect![[r#"
            tls-negotiated Claim Holds
            wire-canary Claim Holds
            tls-resumed Disclosure Holds
        "#]],
        expect![[r#"
        internode-tls Claim Holds
    "#]],
        expect![[r#"
        password-asked Claim Holds
        rights-enforced Claim Holds
        auth-caching Claim Holds
    "#]],
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Holds
    "#]],
        expect![[r#"
        commitlog-encrypted Claim Holds
        data-files-clear Disclosure Fails
    "#]],
    ];
    for (chosen, expect) in strict.iter().zip(expected) {
        prove(&plain, &protected, chosen, expect);
    }
    expect![[r#"
        authentication: enforced
        authorisation: enforced
        tls: enforced
        at-rest: cannot tell
        audit: cannot tell
        jmx-authentication: cannot tell
        authentication-caching: cannot tell
        proxy-roles: not offered by this product
        node-to-node: cannot tell
        client-to-node: enforced
    "#]]
    .assert_eq(&inspected(&protected.server, &protected.setup));
    // An administrator may read what the measured account may not.
    let credentials = &protected.setup.credentials;
    let user = format!("tithe_administrator:{}@", credentials.password.expose_text());
    let file = |path: &std::path::Path| path.display().to_string();
    let (certificate, key) = (file(&credentials.client_certificate), file(&credentials.client_key));
    let options = format!("?ca={}&cert={certificate}&key={key}", file(&credentials.authority));
    expect![[r#"
        authentication: enforced
        authorisation: enforced
        tls: enforced
        at-rest: available but not enforced
        audit: cannot tell
        jmx-authentication: off
        authentication-caching: off
        proxy-roles: not offered by this product
        node-to-node: enforced
        client-to-node: enforced
    "#]]
    .assert_eq(&inspected(&attached(&protected, &user, &options), &Setup::bare()));
    nothing_falls_back(&plain, &protected);
    // The commit log holds nothing that a stopped node has not written to its files, whichever key encrypts it.
    crate::put_back::data_are_put_back(protected);

    let lax = [
        chosen("tls", &[("version", text("1.2")), ("resumption", OptionValue::Flag(true))]),
        chosen("password", &[]),
        chosen("audit-bin", &[("categories", text("DML"))]),
        chosen("columns", &[]),
    ];
    let Some(protected) = Sandbox::start(&Cassandra, &lax) else { return };
    Cassandra.create(&protected.server, &protected.setup, &table()).expect("a table");
    let expected = [
        expect![[r#"
            tls-negotiated Claim Holds
            wire-canary Claim Holds
            tls-resumed Disclosure Holds
        "#]],
        expect![[r#"
        password-asked Claim Holds
        rights-enforced Claim Holds
        auth-caching Claim Holds
    "#]],
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Holds
    "#]],
        expect![[r#"
            ciphertext-seen Claim Holds
            wrong-column-key Claim Holds
            disk-canary Strengthens Holds
            wire-canary Strengthens Holds
            recorders Disclosure CannotTell
        "#]],
    ];
    for (chosen, expect) in lax.iter().zip(expected) {
        prove(&plain, &protected, chosen, expect);
    }
    // Less than was requested is no proof.
    assert_exposed(&protected, &chosen("audit-bin", &[]));
    assert_exposed(&protected, &chosen("tls", &[]));
    assert_exposed(&protected, &chosen("tls", &[("version", text("1.2")), ("mutual", OptionValue::Flag(true))]));
    assert_exposed(&protected, &chosen("internode-tls", &[]));
    assert_exposed(&protected, &chosen("commitlog-encryption", &[]));
    assert_exposed(&plain, &chosen("password", &[]));
    assert_exposed(&plain, &chosen("audit-file", &[]));
    // An audit log of some categories is reported as such.
    let password = protected.setup.credentials.password.expose_text();
    let (user, options) = (
        format!("tithe_administrator:{password}@"),
        format!("?ca={}", protected.setup.credentials.authority.display()),
    );
    let seen = inspected(&attached(&protected, &user, &options), &Setup::bare());
    expect!["audit: available but not enforced"]
        .assert_eq(seen.lines().find(|line| line.starts_with("audit: ")).expect("a line"));
}

/// TLS is on and plaintext is also served; the same node is warmed up.
#[test]
fn a_node_with_optional_tls_is_caught_and_its_warm_up_ends_by_itself() {
    let asked = chosen("tls", &[]);
    let mistakes = [("optional: false, require_client_auth: false", "optional: true, require_client_auth: false")];
    let Some(sandbox) = Sandbox::start_wrong(&Cassandra, std::slice::from_ref(&asked), &mistakes) else { return };
    Cassandra.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let words = super::misconfigured::caught(&sandbox, &asked);
    assert!(words.contains("plaintext: served"), "{words}");
    expect![[r#"
        tls: available but not enforced
    "#]]
    .assert_eq(&super::misconfigured::shown(&sandbox, &[Feature::Transport]));
    warm_up_ends_by_itself_and_is_told(&sandbox);
}

fn nothing_falls_back(plain: &Sandbox, protected: &Sandbox) {
    let mut asks_plain = protected.setup.clone();
    asks_plain.transport = Transport::Plain;
    let words = refusal(&protected.server, &asks_plain);
    assert!(words.starts_with("at the first message"), "{words}");
    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "PasswordAuthenticator".to_owned() };
    expect!["the server lets clients in without the password that it should ask for"]
        .assert_eq(&refusal(&plain.server, &asks_password));
    let mut wrong = protected.setup.clone();
    wrong.credentials.password = Secret::new("wrong");
    expect!["0x0100: Provided username tithe and/or password are incorrect"]
        .assert_eq(&refusal(&protected.server, &wrong));
    let mut without = protected.setup.clone();
    without.authentication = Authentication::None;
    expect!["the server asks for a password (PasswordAuthenticator)"].assert_eq(&refusal(&protected.server, &without));
}

fn keeps_what_is_not_ours(plain: &Sandbox) {
    let setup = Setup::bare();
    let refused = |outcome: Result<(), Fault>| match outcome {
        Err(Fault::Refused(words)) => assert!(words.contains("Tithe did not make it"), "{words}"),
        other => panic!("a refusal was expected, not {other:?}"),
    };
    let session = Cassandra.connect(&plain.server, &plain.setup, &how(true)).expect("a session");
    let mut session = key_value(session);
    let mut run = |statement: &str| session.run_statement(statement).expect("a statement");
    run("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run("CREATE TABLE shop.precious (y_id text PRIMARY KEY)");
    let server = attached(plain, "", "/shop");
    let other = Table { name: "precious".to_owned(), ..table() };
    refused(Cassandra.create(&server, &setup, &other));
    refused(Cassandra.remove(&server, &setup, &other));
    // In a keyspace of the user a table of Tithe's own is created, and created again after a run that was killed.
    for _ in 0..2 {
        Cassandra.create(&server, &setup, &table()).expect("a table");
        let mut session = key_value(Cassandra.connect(&server, &setup, &how_for(table(), true)).expect("a session"));
        exercise(&mut *session);
        Cassandra.quiesce(&server, &setup, &table()).expect("left to its owner");
    }
    Cassandra.remove(&server, &setup, &table()).expect("removed");
    run("SELECT y_id FROM shop.precious");
    // A keyspace of Tithe's own is removed with its last table, but only if it has Tithe's mark.
    let server = attached(plain, "", "");
    Cassandra.remove(&server, &setup, &table()).expect("removed");
    run("CREATE KEYSPACE tithe WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    refused(Cassandra.create(&server, &setup, &table()));
    run("DROP KEYSPACE tithe");
    Cassandra.create(&plain.server, &plain.setup, &table()).expect("a table");
}

/// The older version, if it was downloaded in addition to the newer one.
#[test]
fn the_older_version_is_served_too() {
    let Some(newer) = sandbox::present(Cassandra.find(&Search::default())) else { return };
    let older = newer.programs.with_file_name("4.1.8");
    let search = Search { folders: vec![older] };
    let tls = chosen("tls", &[]);
    let audit = chosen("audit-file", &[("categories", text("QUERY,DML"))]);
    let all = [tls.clone(), audit.clone(), chosen("password", &[]), chosen("commitlog-encryption", &[])];
    let Some(plain) = Sandbox::start_of(&Cassandra, &search, &[], &[], &[]) else { return };
    let version = Cassandra.facts(&plain.server, &plain.setup).expect("facts").version;
    if !version.starts_with("Apache Cassandra 4.1") {
        eprintln!("SKIPPED: no Cassandra 4.1 beside {version}: tithe get cassandra --version 4.1.8");
        assert!(std::env::var_os("CI").is_none(), "Cassandra 4.1 is missing");
        return;
    }
    let Some(protected) = Sandbox::start_of(&Cassandra, &search, &all, &[], &[]) else { return };
    serve(&plain);
    serve(&protected);
    let expected = [
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Holds
    "#]],
        expect![[r#"
        password-asked Claim Holds
        rights-enforced Claim Holds
        auth-caching Claim Holds
    "#]],
        expect![[r#"
        commitlog-encrypted Claim Holds
        data-files-clear Disclosure Fails
    "#]],
    ];
    for (chosen, expect) in all.iter().zip(expected) {
        prove(&plain, &protected, chosen, expect);
    }
    expect![[r#"
        authentication: enforced
        authorisation: enforced
        tls: enforced
        at-rest: cannot tell
        audit: cannot tell
        jmx-authentication: cannot tell
        authentication-caching: cannot tell
        proxy-roles: not offered by this product
        node-to-node: cannot tell
        client-to-node: enforced
    "#]]
    .assert_eq(&inspected(&protected.server, &protected.setup));
}

#[test]
fn several_nodes_speak_tls_among_themselves() {
    let nodes = [("nodes", "2"), ("replication_factor", "2"), ("consistency", "ALL"), ("heap", "384M")];
    let tls = chosen("internode-tls", &[]);
    let Some(plain) = Sandbox::start_of(&Cassandra, &Search::default(), &[], &[], &nodes) else { return };
    let Some(protected) = Sandbox::start_of(&Cassandra, &Search::default(), std::slice::from_ref(&tls), &[], &nodes)
    else {
        return;
    };
    for sandbox in [&plain, &protected] {
        serve(sandbox);
        let facts = Cassandra.facts(&sandbox.server, &sandbox.setup).expect("facts");
        assert_eq!((facts.facts["nodes"].as_str(), facts.facts["consistency"].as_str()), ("2", "ALL"));
    }
    prove(
        &plain,
        &protected,
        &tls,
        expect![[r#"
        internode-tls Claim Holds
    "#]],
    );
    Cassandra.quiesce(&protected.server, &protected.setup, &table()).expect("both nodes write their files");
}

/// A warm-up ends by itself when the node is steady, or at its limit, and reports which.
fn warm_up_ends_by_itself_and_is_told(sandbox: &Sandbox) {
    let workload = ycsb(1000, &[("readproportion", "0.5"), ("updateproportion", "0.5")]);
    load(sandbox, workload.as_ref());
    let mut runner = runner(sandbox, workload.as_ref(), 2, Arrivals::Closed, None);
    let (window_ns, at_most_ns) = (100_000_000, 5_000_000_000);
    let mut told = Vec::new();
    let mut tell = |done_ns| told.push(done_ns);
    let warmed_up = runner.warm_up(0, (window_ns, at_most_ns), &AtomicBool::new(false), &mut tell);
    let warmed_up = warmed_up.expect("connected").expect("not cancelled");
    eprintln!("{warmed_up:?}");
    assert_eq!((told.len(), told.last()), (warmed_up.windows as usize, Some(&warmed_up.duration_ns)));
    assert_eq!(warmed_up.quantity, Steadied::Operations, "Cassandra does not tell the length of its log");
    if warmed_up.ended == Steadiness::Steady {
        assert!(warmed_up.windows >= 12, "{warmed_up:?}");
    } else {
        assert!(warmed_up.duration_ns >= at_most_ns, "{warmed_up:?}");
    }
}
