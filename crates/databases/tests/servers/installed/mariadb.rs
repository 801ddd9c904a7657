//! MariaDB: what only MariaDB has.

use expect_test::expect;
use tithe_databases::mariadb::MariaDb;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Search, Server},
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

/// If the client could not compute the proof, the refusal would be its own and not the server's.
#[test]
fn a_wrong_password_is_refused_by_the_server_whatever_proves_it() {
    let ed25519 = chosen!(MARIADB, "password" { plugin = "ed25519" });
    let Some(sandbox) = (MARIADB.start)(std::slice::from_ref(&ed25519)) else { return };
    let checks = protection(&MariaDb, "password").evidence(&ed25519);
    let check = checks.iter().find(|check| check.id() == "password-asked").expect("the check");
    let observation = observe(&sandbox, true, check.as_ref());
    assert_eq!(observation.quotation().matches("1045 (28000)").count(), 2, "{observation:?}");
    assert!(matches!(observation, Observation::Protected(_)), "{observation:?}");
}

/// In a thread pool every statement may be served by another thread.
#[test]
fn in_a_pool_no_thread_serves_one_client() {
    let pool = [("thread_handling", "pool-of-threads")];
    let Some(sandbox) = Sandbox::start_of(&MariaDb, &Search::default(), &[], &[], &pool) else { return };
    MariaDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let task = MARIADB.connect(&sandbox, true).server_task();
    assert!(matches!(task, ServerTask::Unknown), "{task:?}");
}

#[test]
fn a_database_of_tithes_is_marked_or_not_left() {
    marks_its_database("SET GLOBAL innodb_force_primary_key = ON", &MARIADB);
}

/// If the mark cannot be created, no database is left that Tithe would not recognise as its own. If `wanted` requires a
/// primary key in every table, the mark is still created.
pub fn marks_its_database(wanted: &str, tested: &'static Tested) {
    let Some(sandbox) = (tested.start)(&[]) else { return };
    let create = |statement: &str| {
        let mut setup = sandbox.setup.clone();
        setup.statements = vec![statement.to_owned()];
        tested.database.create(&sandbox.server, &setup, &table())
    };
    // Tables of this engine have no keys, so that the one that is the mark is refused.
    create("SET GLOBAL default_storage_engine = 'CSV'").expect_err("no mark");
    create("SET GLOBAL default_storage_engine = 'InnoDB'").expect("nothing unknown is left");
    tested.remove(&sandbox);
    create(wanted).expect("a table");
    tested.remove(&sandbox);
}

#[test]
fn a_database_in_which_somebody_keeps_an_event_stays() {
    let Some(sandbox) = (MARIADB.start)(&[]) else { return };
    MariaDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut somebody = MARIADB.connect(&sandbox, true);
    somebody.run_statement("CREATE EVENT tithe.nightly ON SCHEDULE EVERY 1 DAY DO SELECT 1").expect("an event");
    let remove = || MariaDb.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
    remove();
    somebody.run_statement("SELECT 1 FROM tithe.usertable").expect_err("the table is gone");
    somebody.run_statement("DROP EVENT tithe.nightly").expect("it was left alone");
    remove();
    somebody.run_statement("CREATE EVENT tithe.nightly ON SCHEDULE EVERY 1 DAY DO SELECT 1").expect_err("all is gone");
}
