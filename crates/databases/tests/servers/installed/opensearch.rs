//! OpenSearch. A virtual machine takes long to start, so one test starts a plain server and two nodes with every
//! protection, and everything is checked on them.

use tithe_databases::opensearch::OpenSearch;
use tithe_machine::{fault::Fault, proc::ServerTask, secret::Secret};
use tithe_model::experiment::Protection as Chosen;
use tithe_plugin::{
    database::Database as _,
    matrix::{Feature, State},
    session::{Discard, Fields, KeyValueSession, Request, Update},
    setup::{Authentication, Setup, TlsVersion, Transport},
};

use super::{
    deceptions::{
        self,
        opensearch::{ADMINISTRATOR, say, url},
    },
    how, key_value, rows,
    sandbox::Sandbox,
    table, verdicts,
};
use crate::{
    loading::Arm,
    tested::{Again, Tested, chosen},
};

static OPENSEARCH: Tested =
    Tested { database: &OpenSearch, start: |protections| Sandbox::start(&OpenSearch, protections), again: Again::Left };

/// Every kind of request, with its result. A search sees writes after a refresh.
fn exercise(session: &mut dyn KeyValueSession) {
    fn call(session: &mut dyn KeyValueSession, request: Request<'_>) -> u64 {
        session.call(&request, &mut Discard).expect("an answer")
    }
    let binary: &[u8] = &[0, 255, b'\'', b'\\', b'"', b'\r', b'\n', 10];
    let long = vec![b'x'; 300_000];
    for key in [b"user/2", b"user 1", b"user\"3"] {
        assert_eq!(
            call(session, Request::Insert { key, values: &[(0, "ä\u{1}".as_bytes()), (1, binary), (2, b"")] }),
            1
        );
    }
    let read = Request::Read { key: b"user 1", fields: Fields::All };
    assert_eq!(rows(session, &read), "1\n-: 0=\\xc3\\xa4\\x01 1=\\x00\\xff\\'\\\\\\\"\\r\\n\\n 2=");
    // Writing the same value changes nothing, and the record exists all the same.
    for _ in 0..2 {
        assert_eq!(call(session, Request::Update { key: b"user 1", values: &[(2, &long)] }), 1);
    }
    let one = Request::Read { key: b"user 1", fields: Fields::One(2) };
    assert_eq!(rows(session, &one), format!("1\n-: 2={}", "x".repeat(300_000)));
    session.run_statement("POST /tithe-usertable/_refresh").expect("refreshed");
    for (start, count, seen) in [
        ("user\"3", 5, "2\nuser\"3: 0=\\xc3\\xa4\\x01\nuser/2: 0=\\xc3\\xa4\\x01"),
        ("", 1, "1\nuser 1: 0=\\xc3\\xa4\\x01"),
        ("v", 2, "0"),
    ] {
        let scan = Request::Scan { start: start.as_bytes(), count, fields: Fields::One(0) };
        assert_eq!(rows(session, &scan), seen);
    }
    let all = Request::Scan { start: b"user 1", count: 1, fields: Fields::All };
    assert!(rows(session, &all).starts_with("1\nuser 1: 0=\\xc3\\xa4\\x01 1=\\x00\\xff"));
    // Nothing is written twice, and nothing is made by an update.
    assert_eq!(call(session, Request::Insert { key: b"user 1", values: &[(0, b"a"), (1, b""), (2, b"")] }), 0);
    assert_eq!(call(session, Request::Update { key: b"nobody", values: &[(0, b"a")] }), 0);
    let together: [Update<'_>; 3] = [(b"user 1", &[(2, b"b")]), (b"nobody", &[(2, b"b")]), (b"user/2", &[(2, b"c")])];
    assert_eq!(session.submit_updates(&together), Ok(true));
    assert_eq!(finish(session), 2);
    assert_eq!(rows(session, &one), "1\n-: 2=b");
    let fault = session.run_statement("GET /tithe-usertable/_nothing").expect_err("no such endpoint");
    assert!(matches!(fault, Fault::Server(_)), "{fault}");
    for (key, removed) in [(&b"user 1"[..], 1), (b"user/2", 1), (b"user\"3", 1), (b"nobody", 0)] {
        assert_eq!(call(session, Request::Delete { key }), removed);
    }
    assert_eq!(rows(session, &read), "0");
}

/// Waits for the answer to what was submitted.
fn finish(session: &mut dyn KeyValueSession) -> u64 {
    use tithe_plugin::session::{Progress, wait_ready};
    loop {
        match session.advance(&mut Discard).expect("an answer") {
            Progress::Done(count) => return count,
            Progress::Pending => wait_ready(session).expect("ready"),
        }
    }
}

fn serve(sandbox: &Sandbox) {
    OpenSearch.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let mut session = OPENSEARCH.connect(sandbox, blocking);
        exercise(&mut *session);
        assert!(matches!(session.server_task(), ServerTask::Unknown));
        let (sent, received) = session.wire_bytes();
        assert!(sent > 300_000 && received > 300_000);
    }
    // Groups are sent in several requests.
    let mut session = OPENSEARCH.connect(sandbox, true);
    session.begin_bulk().expect("a group");
    for number in 0..1500 {
        let key = format!("many{number:04}");
        let values: [(usize, &[u8]); 3] = [(0, b"a"), (1, b"b"), (2, &[number as u8, 255])];
        assert_eq!(session.call(&Request::Insert { key: key.as_bytes(), values: &values }, &mut Discard), Ok(1));
    }
    session.end_bulk().expect("it is written");
    OpenSearch.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    let scan = Request::Scan { start: b"many0007", count: 1000, fields: Fields::One(0) };
    assert!(rows(&mut *session, &scan).starts_with("1000\nmany0007: 0=a\nmany0008: 0=a"));
}

fn refused(sandbox: &Sandbox, says: &str, change: impl Fn(&mut Setup)) {
    let mut setup = sandbox.setup.clone();
    change(&mut setup);
    let refusal = OPENSEARCH.refusal(&sandbox.server, &setup);
    assert!(refusal.contains(says), "{refusal}");
}

#[test]
fn a_plain_server_every_protection_and_deceptions() {
    let Some(plain) = (OPENSEARCH.start)(&[]) else { return };
    serve(&plain);
    let facts = OpenSearch.facts(&plain.server, &plain.setup).expect("facts");
    eprintln!("{facts:?}");
    assert!(facts.version.starts_with("OpenSearch 2."), "{}", facts.version);
    for (name, value) in
        [("authentication", "none"), ("index.refresh_interval", "1s"), ("index.translog.durability", "REQUEST")]
    {
        assert!(facts.facts[name].eq_ignore_ascii_case(value), "{name}");
    }
    let seen = OpenSearch.inspect(&plain.server, &plain.setup).expect("a matrix");
    assert_eq!(seen.len(), Feature::ALL.len());
    for cell in &seen {
        let expected = if cell.feature == Feature::AtRest { State::NotOffered } else { State::Off };
        assert_eq!(cell.state, expected, "{:?}: {}", cell.feature, cell.seen);
    }
    refused(&plain, "the server lets clients in without the password", |setup| {
        setup.authentication = Authentication::Password { mechanism: "internal-users".to_owned() };
    });

    let arm = Arm { database: plain.database, server: &plain.server, setup: &plain.setup };
    assert_eq!(arm.loads("pipeline", &["plain"]), "pipeline plain: \n");

    let all: [Chosen; 5] = [
        chosen!(OPENSEARCH, "tls" { mutual = true, key = "rsa-2048", chain = "2", suite = "aes-128-gcm" }),
        chosen!(OPENSEARCH, "password" {}),
        chosen!(OPENSEARCH, "audit" {}),
        chosen!(OPENSEARCH, "internode-tls" {}),
        chosen!(OPENSEARCH, "documents" {}),
    ];
    let nodes = [("nodes", "2"), ("heap", "384M")];
    // Deceptions change how clients log in. Hashing a password takes a third of a second otherwise.
    let rights = "plugins.security.restapi.roles_enabled: [all_access]";
    let more = [
        rights,
        "plugins.security.unsupported.restapi.allow_securityconfig_modification: true",
        "plugins.security.password.hashing.bcrypt.rounds: 4",
    ];
    let more = more.join("\n");
    let Some(protected) = Sandbox::start_as(&OpenSearch, &all, &nodes, &[(rights, &more)]) else { return };
    OpenSearch.create(&protected.server, &protected.setup, &table()).expect("a table");
    let proven = |chosen: &Chosen| verdicts(&plain, &protected, chosen);
    assert_eq!(proven(&all[4]), "rows-apart Claim Holds\n");
    // An account that does not see all documents may not update any.
    let [dls, fls] = ["dls", "fls"].map(|name| format!(r#"{{"op":"remove","path":"/index_permissions/0/{name}"}}"#));
    let sees_all = format!("PATCH /_plugins/_security/api/roles/tithe-clients [{dls},{fls}]");
    say(&protected, &[sees_all]).expect("a role that shows all documents");
    serve(&protected);
    assert_eq!(proven(&all[0]), "tls-negotiated Claim Holds\nwire-canary Claim Holds\n");
    assert_eq!(proven(&all[1]), "password-asked Claim Holds\nrights-enforced Claim Holds\n");
    assert_eq!(proven(&all[2]), "audit-complete Claim Holds\nlogs-free Disclosure Fails\n");
    assert_eq!(proven(&all[3]), "internode-tls Claim Holds\n");
    refused(&protected, "at the first request", |setup| setup.transport = Transport::Plain);
    // By TLS: it comes to no login.
    refused(&protected, "alert", |setup| setup.transport = Transport::tls(TlsVersion::V1_3, false));
    refused(&protected, "user and password are refused: 401", |setup| {
        setup.credentials.password = Secret::new("wrong")
    });
    refused(&protected, "the server asks for a user and password: 401", |setup| {
        setup.authentication = Authentication::None;
    });
    let values = tithe_plugin::recording::Sent::Values;
    let recording = OpenSearch.recording(&protected.server, &protected.setup, values).expect("an answer");
    assert!(recording.is_some_and(|it| it.repeats.concat().contains("log_request_body")));
    let condition = OpenSearch.condition(&protected.server, &protected.setup).expect("its health");
    assert_eq!((condition.what, condition.now.as_str()), ("nodes of the cluster", "2"));
    keeps_what_is_not_ours(&protected);
    deceptions::opensearch::all_hold_on(protected);
    plain.stop();
}

/// An attached server keeps what is not Tithe's, and an account without rights gets a list of what it lacks.
fn keeps_what_is_not_ours(sandbox: &Sandbox) {
    let at = |user: &str| deceptions::attached(sandbox, &url(sandbox, user));
    let credentials = sandbox.setup.credentials.clone();
    let (server, setup) = (at(ADMINISTRATOR), Setup::plain(Default::default(), credentials));
    assert_eq!(OpenSearch.lacks(&server, &setup).expect("an answer"), []);
    let lacks = OpenSearch.lacks(&at("tithe-clients"), &setup).expect("an answer");
    assert!(lacks[0].to_string().contains("PUT /_plugins/_security/api/roles/tithe"), "{lacks:?}");
    let identity = || OpenSearch.identity(&server, &setup).expect("an answer").expect("an identity");
    assert_eq!(identity(), identity());
    // A run that was killed leaves its records; the next one makes the index again.
    for _ in 0..2 {
        OpenSearch.create(&server, &setup, &table()).expect("a table");
        let mut session = key_value(OpenSearch.connect(&server, &setup, &how(true)).expect("a session"));
        assert_eq!(session.call(&Request::Insert { key: b"left", values: &[(0, b"a")] }, &mut Discard), Ok(1));
    }
    OpenSearch.quiesce(&server, &setup, &table()).expect("quiesced");
    OpenSearch.remove(&server, &setup, &table()).expect("removed");
    OpenSearch.remove(&server, &setup, &table()).expect("nothing left to remove");
    let mut session = key_value(OpenSearch.connect(&server, &setup, &how(true)).expect("a session"));
    session.run_statement("PUT /tithe-usertable").expect("an index of our name");
    for outcome in [OpenSearch.create(&server, &setup, &table()), OpenSearch.remove(&server, &setup, &table())] {
        assert!(matches!(&outcome, Err(Fault::Refused(words)) if words.contains("did not make it")), "{outcome:?}");
    }
    session.run_statement("DELETE /tithe-usertable").expect("removed");
}
