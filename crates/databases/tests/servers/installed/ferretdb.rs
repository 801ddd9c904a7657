//! MongoDB's protocol, against a second server that is independent of the first stand-in: FerretDB 1.24 over SQLite.
//! `tools/ferretdb` builds it with a Go compiler, which takes minutes; without it these tests are skipped, also in CI.
//! It has accounts without roles, so rights are not tested on it, and no command `fsync`.

use std::{collections::BTreeMap, path::Path};

use rustix::process::Signal;
use tithe_databases::mongodb::MongoDb;
use tithe_machine::{
    launch::{Address, Command as Program, Launch, Place, Step},
    paths::Paths,
};
use tithe_model::{experiment::Protection as Chosen, fact::Fact};
use tithe_plugin::{
    database::Database as _,
    matrix::{Feature, State},
    setup::{Authentication, Setup, Transport},
};

use super::{sandbox::Sandbox, table};
use crate::{
    shared::with_plain,
    tested::{Again, Tested, chosen, proven},
};

static FERRETDB: Tested = Tested { database: &MongoDb, start, again: Again::Refused("11000") };

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ferretdb-1.24.0/ferretdb");
    if !program.is_file() {
        eprintln!("SKIPPED: no FerretDB: tools/ferretdb");
        return None;
    }
    let sandbox = Sandbox::stand_in(&MongoDb, protections, |setup, place| launch(setup, place, &program));
    make_clients_account(&sandbox);
    Some(sandbox)
}

/// Makes the clients' account, as the administrator that the server has from its start.
fn make_clients_account(sandbox: &Sandbox) {
    let mut setup = sandbox.setup.clone();
    if setup.authentication == Authentication::None {
        return;
    }
    let password = setup.credentials.password.expose_text();
    setup.statements = vec![format!(r#"{{"createUser": "tithe", "pwd": "{password}", "roles": []}}"#)];
    MongoDb.create(&sandbox.server, &setup, &table()).expect("an account");
    MongoDb.remove(&sandbox.server, &setup, &table()).expect("removed");
}

fn launch(setup: &Setup, place: &Place, program: &Path) -> Launch {
    let data = place.folder.join("data");
    let listen = format!("127.0.0.1:{}", place.port);
    let mut arguments = vec![
        "--handler=sqlite".to_owned(),
        format!("--sqlite-url=file:{}/", data.display()),
        format!("--state-dir={}", data.display()),
        "--debug-addr=-".to_owned(),
        "--telemetry=disable".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    match setup.transport {
        Transport::Plain => arguments.push(format!("--listen-addr={listen}")),
        Transport::Tls { .. } => arguments.extend([
            "--listen-addr=".to_owned(),
            format!("--listen-tls={listen}"),
            format!("--listen-tls-cert-file={}", setup.credentials.server_certificate.display()),
            format!("--listen-tls-key-file={}", setup.credentials.server_key.display()),
        ]),
    }
    if setup.authentication != Authentication::None {
        arguments.extend(["--test-enable-new-auth", "--setup-database=admin"].map(str::to_owned));
        arguments.push("--setup-username=tithe-administrator".to_owned());
        arguments.push(format!("--setup-password={}", setup.credentials.password.expose_text()));
    }
    Launch {
        steps: vec![Step::Folder(data.clone())],
        server: Some(Program { program: program.to_owned(), arguments, environment: BTreeMap::new() }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: place.port },
        paths: Paths { data: vec![data], journal: Vec::new(), logs: vec![place.folder.join("server.log")] },
    }
}

proven! { FERRETDB;
    tls_that_is_spoken_and_not_told: "tls" {} => ["tls-negotiated Claim CannotTell", "wire-canary Claim Holds"];
    passwords_by_scram_sha_256: "scram" {} => ["password-asked Claim Holds"];
    passwords_by_scram_sha_1: "scram" { mechanism = "SCRAM-SHA-1" } => ["password-asked Claim Holds"];
    encrypted_columns: "columns" {} => [
        "ciphertext-seen Claim Holds",
        "wrong-column-key Claim Holds",
        "disk-canary Strengthens Holds",
        "wire-canary Strengthens Holds",
        // Its logs are not those of a `mongod`.
        "recorders Disclosure CannotTell",
    ];
}

#[test]
fn it_serves_every_request_and_is_not_called_mongodb() {
    with_plain(&FERRETDB, |sandbox| {
        MongoDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
        FERRETDB.exercise(&mut *FERRETDB.connect(sandbox, true));
        let facts = MongoDb.facts(&sandbox.server, &sandbox.setup).expect("facts");
        assert!(facts.version.starts_with("FerretDB 1"), "{facts:?}");
        assert!(facts.reported(Fact::StandIn).is_some(), "{facts:?}");
        let seen = MongoDb.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
        let state = |feature| seen.iter().find(|cell| cell.feature == feature).map(|cell| cell.state);
        assert_eq!(state(Feature::Authentication), Some(State::Off));
        assert!(seen.iter().all(|cell| cell.seen.contains("not MongoDB")), "{seen:?}");
        FERRETDB.remove(sandbox);
    });
}
