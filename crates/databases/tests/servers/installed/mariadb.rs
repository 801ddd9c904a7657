//! MariaDB: what it alone has.

use expect_test::expect;
use tithe_databases::mariadb::MariaDb;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
    proc::ServerTask,
};
use tithe_model::experiment::Url;
use tithe_plugin::{database::Database, setup::Setup};

use super::{
    observe,
    sandbox::{Sandbox, protection},
    table,
};
use crate::tested::{Again, Tested, chosen};

pub static MARIADB: Tested = Tested {
    database: &MariaDb,
    start: |protections| Sandbox::start(&MariaDb, protections),
    again: Again::Refused("1062"),
};

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (MARIADB.start)(&[]) else { return };
    MARIADB.serve(&sandbox, "SET SESSION sort_buffer_size = 1000000", "SET nothing = 1", serves_by_a_thread);
    let before = MariaDb.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    MARIADB.exercise(&mut *MARIADB.connect(&sandbox, true));
    MariaDb.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    assert!(MariaDb.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    let facts = MariaDb.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("MariaDB 1"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["authentication"].as_str()), ("off", "none"));
    MARIADB.remove(&sandbox);
    assert!(!sandbox.log().contains("Aborted connection"), "{}", sandbox.log());
}

pub fn serves_by_a_thread(task: ServerTask) {
    let ServerTask::Thread { process, thread } = task else { panic!("a thread") };
    assert!(std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists());
}

/// The server itself would wait for a day.
#[test]
fn somebody_elses_lock_is_waited_for_but_not_for_long() {
    let Some(sandbox) = (MARIADB.start)(&[]) else { return };
    MariaDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut holder = MARIADB.connect(&sandbox, true);
    holder.run_statement("LOCK TABLES tithe.usertable WRITE").expect("locked");
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let url = Url::new(format!("mariadb://tithe@127.0.0.1:{port}/"));
    let attached = Server { address: Address::Attached(url), process: None, ..sandbox.server.clone() };
    let create = || MariaDb.create(&attached, &Setup::bare(), &table());
    let fault = create().expect_err("a lock");
    assert!(matches!(&fault, Fault::Refused(words) if words.contains("waited 10 s for a lock")), "{fault}");
    holder.run_statement("UNLOCK TABLES").expect("unlocked");
    create().expect("a table");
}

#[test]
fn a_key_that_cannot_be_changed_is_found_out() {
    let rotating = chosen!(MARIADB, "encryption" { rotate = true });
    let Some(one_key) = (MARIADB.start)(&[chosen!(MARIADB, "encryption" {})]) else { return };
    MariaDb.create(&one_key.server, &one_key.setup, &table()).expect("a table");
    let checks = protection(&MariaDb, "encryption").evidence(&rotating);
    let check = checks.iter().find(|check| check.id() == "key-rotated").expect("the check");
    let observation = observe(&one_key, true, check.as_ref());
    expect!["the server does not change the key: 1478 (HY000): Table storage engine 'InnoDB' does not support the create option 'ENCRYPTION_KEY_ID'"]
        .assert_eq(observation.quotation());
    assert!(matches!(observation, Observation::Exposed(_)));
    let mut rotator = MariaDb.rotator(&one_key.server, &one_key.setup).expect("a rotator");
    assert!(matches!(rotator.rotate(), Err(Fault::Server(_))));
    let Some(plain) = (MARIADB.start)(&[]) else { return };
    assert!(matches!(MariaDb.rotator(&plain.server, &plain.setup), Err(Fault::Refused(_))));
    MariaDb.create(&plain.server, &plain.setup, &table()).expect("a table");
    let mut rotator = MariaDb.rotator(&plain.server, &plain.setup).expect("a rotator");
    assert!(matches!(rotator.rotate(), Err(Fault::Wrong(_))));
}
