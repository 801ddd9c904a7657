//! MySQL: what only MySQL has.

use tithe_databases::mysql::MySql;
use tithe_machine::launch::{Address, Search, Server};
use tithe_model::experiment::{Protection as Chosen, Url};
use tithe_plugin::{database::Database, setup::Setup};

use super::{
    conformance::mysql::ENCRYPTED,
    mariadb::{MARIADB, marks_its_database, serves_by_a_thread},
    sandbox::Sandbox,
    table,
};
use crate::{
    shared::with_plain,
    tested::{Again, Tested, chosen, prove_between},
};

pub static MYSQL: Tested = Tested {
    database: &MySql,
    start: |protections| Sandbox::start(&MySql, protections),
    again: Again::Refused("1062"),
};

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (MYSQL.start)(&[]) else { return };
    MYSQL.serve(&sandbox, "SET SESSION sort_buffer_size = 1000000", "SET nothing = 1", serves_by_a_thread);
    let before = MySql.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    MYSQL.exercise(&mut *MYSQL.connect(&sandbox, true));
    MySql.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    assert!(MySql.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    assert!(MySql.cache_use(&sandbox.server, &sandbox.setup).expect("a use").asked > 0);
    let facts = MySql.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("MySQL 8"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["authentication"].as_str()), ("off", "none"));
    assert_eq!((facts.facts["log_bin"].as_str(), facts.facts["sync_binlog"].as_str()), ("ON", "0"));
    MYSQL.remove(&sandbox);
    assert!(!sandbox.log().contains("Aborted connection"), "{}", sandbox.log());
}

#[test]
fn a_database_of_tithes_is_marked_or_not_left() {
    marks_its_database("SET GLOBAL sql_require_primary_key = ON", &MYSQL);
}

#[test]
fn encryption_is_proven_without_a_binary_log() {
    prove_with(("log_bin", "OFF"));
}

/// Such a server reports neither whether its keyring is active nor where it keeps its keys.
#[test]
fn encryption_is_proven_without_the_performance_schema() {
    prove_with(("performance_schema", "OFF"));
}

/// Encryption on a server with an unusual setting, which the plain server has too.
fn prove_with(setting: (&str, &str)) {
    let asked = [chosen!(MYSQL, "encryption" {})];
    let search = Search::default();
    let start = |asked: &[Chosen]| Sandbox::start_of(&MySql, &search, asked, &[], &[setting]);
    let (Some(plain), Some(protected)) = (start(&[]), start(&asked)) else { return };
    prove_between(&MYSQL, &plain, &protected, &asked[0], &ENCRYPTED);
}

/// The server caches a proof after it has received the password, over TLS or encrypted with its own key.
#[test]
fn passwords_are_sent_under_the_servers_key_once_and_then_proven() {
    let Some(sandbox) = (MYSQL.start)(&[chosen!(MYSQL, "password" {})]) else { return };
    let facts = MySql.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "caching_sha2_password");
    MySql.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    MYSQL.connect(&sandbox, true).run_statement("FLUSH PRIVILEGES").expect("it forgets who has proven himself");
    let received = || MYSQL.connect(&sandbox, true).wire_bytes().1;
    let (first, second) = (received(), received());
    // The key as text is 451 bytes long.
    assert!(first > second + 400, "{first} bytes received, then {second}");
}

fn attached(scheme: &str, sandbox: &Sandbox) -> Server {
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let password = sandbox.setup.credentials.password.expose_text();
    let url = format!("{scheme}://tithe:{password}@127.0.0.1:{port}/");
    Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() }
}

#[test]
fn a_server_of_the_other_product_is_told_from_ours() {
    let setup = Setup::bare();
    with_plain(&MYSQL, |mysql| {
        let words = MARIADB.refusal(&attached("mariadb", mysql), &setup);
        assert!(words.starts_with("the server reports that it is 8."), "{words}");
        let told = "which is not MariaDB: for MySQL write `database = \"mysql\"` and mysql://";
        assert!(words.ends_with(told), "{words}");
    });
    with_plain(&MARIADB, |mariadb| {
        let words = MYSQL.refusal(&attached("mysql", mariadb), &setup);
        assert!(
            words.contains("MariaDB, which is not MySQL") || words.contains("which is not MySQL: for MariaDB"),
            "{words}"
        );
    });
}
