//! MongoDB's protocol, against a server that uses it and is not MongoDB: mongo-java-server, which is downloaded from
//! Maven Central once. It has no accounts, no audit log and none of MongoDB's storage engines; protections that need
//! those are only covered by golden configurations.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use expect_test::expect;
use rustix::process::Signal;
use tithe_databases::mongodb::MongoDb;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Command as Program, Launch, Place, Server, Step},
    paths::Paths,
    proc::ServerTask,
};
use tithe_model::{
    experiment::{Protection as Chosen, Url},
    fact::Fact,
};
use tithe_plugin::{
    database::Database,
    matrix::{Feature, State},
    session::{Discard, Request},
    setup::{Authentication, Setup, TlsVersion, Transport},
};

use super::{how, key_value, sandbox::Sandbox, table};
use crate::{
    java_program,
    shared::with_plain,
    tested::{Again, Tested, chosen},
};

const VERSION: &str = "1.46.0";

/// The compiled stand-in, as a class path; without it the tests report that and pass, unless `CI` is set.
fn class_path() -> Option<&'static str> {
    static PREPARED: OnceLock<Option<String>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| match prepare() {
        Ok(class_path) => Some(class_path),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "the stand-in for MongoDB is not there: {why}");
            eprintln!("SKIPPED: the stand-in for MongoDB is not there: {why}");
            None
        }
    });
    prepared.as_deref()
}

fn prepare() -> Result<String, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mongodb");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mongo-java-server-{VERSION}"));
    java_program::compiled(&source, "StandIn.java", &folder, &format!("mongo-java-server-h2-backend-{VERSION}.jar"))
}

/// The program in `PATH`.
fn java() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("java")).find(|file| file.is_file());
    found.expect("javac was there, so java is")
}

fn launch(setup: &Setup, place: &Place, class_path: &str, optional: bool) -> Launch {
    let data = place.folder.join("data");
    let mut arguments: Vec<String> = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
        .iter()
        .map(|text| (*text).to_owned())
        .collect();
    arguments.push(format!("-Dstandin.version={VERSION}"));
    arguments.push("StandIn".to_owned());
    arguments.push(data.join("store.h2").display().to_string());
    arguments.push(place.port.to_string());
    if setup.transport != Transport::Plain {
        arguments.push(setup.credentials.server_certificate.display().to_string());
        arguments.push(setup.credentials.server_key.display().to_string());
        arguments.extend(optional.then(|| "optional".to_owned()));
    }
    Launch {
        steps: vec![Step::Folder(data.clone())],
        server: Some(Program { program: java(), arguments, environment: BTreeMap::new() }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: place.port },
        paths: Paths { data: vec![data], journal: Vec::new(), logs: vec![place.folder.join("server.log")] },
    }
}

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    started(protections, false)
}

/// The stand-in, which also serves plaintext at a TLS port if that is `optional`.
pub fn started(protections: &[Chosen], optional: bool) -> Option<Sandbox> {
    let class_path = class_path()?;
    Some(Sandbox::stand_in(&MongoDb, protections, |setup, place| launch(setup, place, class_path, optional)))
}

pub static MONGODB: Tested = Tested { database: &MongoDb, start, again: Again::Refused("11000") };

#[test]
fn a_stand_in_serves_every_request_and_is_called_what_it_is() {
    with_plain(&MONGODB, is_called_what_it_is);
}

fn is_called_what_it_is(sandbox: &Sandbox) {
    MongoDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut session = MONGODB.connect(sandbox, true);
    MONGODB.exercise(&mut *session);
    assert!(matches!(session.server_task(), ServerTask::Unknown));
    session.run_statement(r#"{"ping": 1}"#).expect("a command");
    let fault = session.run_statement(r#"{"nothing": 1}"#).expect_err("no such command");
    assert!(matches!(fault, Fault::Server(_)), "{fault}");
    let fault = session.run_statement("nothing").expect_err("no command at all");
    assert!(matches!(fault, Fault::Protocol(_)), "{fault}");
    MONGODB.exercise(&mut *session);

    MongoDb.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    assert_eq!(MongoDb.wal_position(&sandbox.server, &sandbox.setup), None);
    let facts = MongoDb.facts(&sandbox.server, &sandbox.setup).expect("facts");
    expect!["mongo-java-server 1.46.0 (stand-in, not MongoDB)"].assert_eq(&facts.version);
    assert!(facts.reported(Fact::StandIn).is_some_and(|it| it.contains("in place of MongoDB")), "{facts:?}");
    assert_eq!((facts.facts["authentication"].as_str(), facts.facts["topology"].as_str()), ("none", "standalone"));
    MONGODB.remove(sandbox);
}

#[test]
fn nothing_falls_back() {
    let Some(tls) = start(&[chosen!(MONGODB, "tls" {})]) else { return };
    with_plain(&MONGODB, |plain| refused_beside(plain, &tls));
}

/// What is requested of each of the two servers and not provided.
fn refused_beside(plain: &Sandbox, tls: &Sandbox) {
    let mut asks_plain = tls.setup.clone();
    asks_plain.transport = Transport::Plain;
    let mut asks_tls = plain.setup.clone();
    asks_tls.transport = Transport::tls(TlsVersion::V1_3, false);
    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "SCRAM-SHA-256".to_owned() };
    let mut mistrusts = tls.setup.clone();
    mistrusts.credentials.authority.clone_from(&tls.setup.credentials.untrusted_authority);
    // For a server with another protocol the driver only reports this, after seconds.
    let no_server = "Server selection timeout: No available servers";
    for (server, setup, words) in [
        (tls, &asks_plain, no_server),
        (plain, &asks_tls, no_server),
        (plain, &asks_password, "SCRAM failure"),
        (tls, &mistrusts, "invalid peer certificate"),
    ] {
        let connect = |setup: &Setup| MongoDb.connect(&server.server, setup, &how(true)).map(drop);
        connect(&server.setup).expect("it serves who asks for what it has");
        let fault = connect(setup).expect_err("served, though it must not be");
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

/// The stand-in has neither accounts nor an audit log: an arm that needs them is unproven.
#[test]
fn a_server_that_asks_nobody_is_caught() {
    with_plain(&MONGODB, asks_nobody);
}

fn asks_nobody(sandbox: &Sandbox) {
    MongoDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let words = super::misconfigured::caught(sandbox, &chosen!(MONGODB, "scram" {}));
    expect!["without a password: served"].assert_eq(&words);
    expect![[r#"
        authentication: off
        tls: off
        at-rest: off
        audit: off
    "#]]
    .assert_eq(&super::misconfigured::shown(
        sandbox,
        &[Feature::Authentication, Feature::Transport, Feature::AtRest, Feature::Auditing],
    ));
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let Some(sandbox) = start(&[chosen!(MONGODB, "tls" {})]) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let credentials = &sandbox.setup.credentials;
    let url = format!("mongodb://127.0.0.1:{port}/?tls=true&tlsCAFile={}", credentials.authority.display());
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(BTreeMap::new(), credentials.clone());
    MongoDb.create(&server, &setup, &table()).expect("a table");
    // A run that was killed leaves its records; the next one creates the table again.
    for _ in 0..2 {
        let mut session = key_value(MongoDb.connect(&server, &setup, &how(true)).expect("a session"));
        MONGODB.exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
        MongoDb.create(&server, &setup, &table()).expect("a table again");
    }
    MongoDb.quiesce(&server, &setup, &table()).expect("quiesced");
    let seen = MongoDb.inspect(&server, &setup).expect("a matrix");
    let state = |feature| seen.iter().find(|cell| cell.feature == feature).map(|cell| cell.state);
    assert_eq!(seen.len(), Feature::ALL.len());
    assert!(seen.iter().all(|cell| cell.seen.contains("stand-in, not MongoDB")), "{seen:?}");
    assert_eq!(state(Feature::Transport), Some(State::Enforced));
    assert_eq!(state(Feature::Authentication), Some(State::Off));
    MongoDb.remove(&server, &setup, &table()).expect("removed");

    // A foreign collection in a database with Tithe's name.
    let mut session = key_value(MongoDb.connect(&server, &setup, &how(true)).expect("a session"));
    session.run_statement(r#"{"insert": "precious", "documents": [{"_id": 1}]}"#).expect("a collection");
    for outcome in [MongoDb.create(&server, &setup, &table()), MongoDb.remove(&server, &setup, &table())] {
        match outcome {
            Err(Fault::Refused(words)) => assert!(words.contains("Tithe did not make it"), "{words}"),
            other => panic!("a refusal was expected, not {other:?}"),
        }
    }
}
