//! Columns of the user's own tables that clients encrypt: the same answers, and ciphertext in the server.

use std::{collections::BTreeMap, path::Path};

use tithe_databases::sqlite::Sqlite;
use tithe_machine::{
    credentials::Credentials,
    launch::{Install, Place, Server},
    observation::Observation,
    secret::Secret,
};
use tithe_model::{
    experiment::{self, Data, OptionValue, Values},
    record::Role,
};
use tithe_plugin::{
    columns::own,
    data::{self, conversion},
    database::{Connect, Database as _, sql_of},
    evidence::{Check, CheckContext, judge, seen_by},
    product::Product,
    session::{Rows, Session},
    setup::Setup,
    sql::Grammar,
    workload::Workload,
};

use crate::sandbox::{self, chosen, protection};

/// Every form of a statement that encrypted columns allow, except those that not all products have.
const SCRIPT: &str = "\\set id random(1, 40)
SELECT iban AS i, name AS n FROM accounts WHERE id = :id \\gset
SELECT id, name FROM accounts WHERE iban = :i;
SELECT count(*), count(name) FROM accounts WHERE iban IN (:i, :n) OR name IS NULL;
INSERT INTO accounts (id, iban, name, pin) VALUES (1000 + :id, :fresh, :n, :id);
UPDATE accounts SET name = :i, pin = :id WHERE iban = :fresh;
SELECT a.id, a.name, b.pin FROM accounts a JOIN accounts b ON a.iban = b.iban WHERE a.id > 30;
SELECT iban, count(*) FROM accounts GROUP BY iban;
DELETE FROM accounts WHERE iban = :i;
";

fn workload(script: &str) -> Box<dyn Workload> {
    let properties =
        [("script", script), ("file", "app.sql"), ("protocol", "prepared"), ("define", "fresh=FR76-0000-new")];
    let properties: BTreeMap<String, String> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let described = experiment::Workload { name: "s".to_owned(), kind: "script".to_owned(), properties, prepare: None };
    tithe_workloads::make(&described, &Data { records: 1, values: Values::Ycsb }, 7).expect("a workload")
}

fn how(workload: &dyn Workload) -> Connect {
    Connect::blocking(workload.table())
}

/// The answer to each statement: its number, a digest of its rows in any order, and whether it failed.
fn answers(database: &dyn Product, server: &Server, setup: &Setup, workload: &dyn Workload) -> Vec<(usize, u64, bool)> {
    let clients = workload.offered_by().clients().expect("clients of Tithe's");
    let mut session = data::connect(database, server, setup, &how(workload), workload).expect("a session");
    let all = clients.answers(&mut session, 5432).expect("answers").expect("they are compared");
    all.into_iter().flatten().map(|answer| (answer.operation, answer.digest, answer.failed)).collect()
}

/// A server and how it is set up.
type At<'a> = (&'a Server, &'a Setup);

/// Creates tables at `at`; `binary` is a collation by bytes, if that is not the default.
fn fill(database: &dyn Product, (server, setup): At<'_>, workload: &dyn Workload, binary: &str) {
    data::create(database, server, setup, workload).expect("a place for data");
    let Ok(Session::Sql(mut session)) = data::connect(database, server, setup, &how(workload), workload) else {
        panic!("no session")
    };
    for statement in [
        format!(
            "CREATE TABLE accounts (id int NOT NULL, iban varchar(34){binary} NOT NULL UNIQUE, name varchar(80), pin int, \
             PRIMARY KEY (id))"
        ),
        "CREATE TABLE plain (id int NOT NULL PRIMARY KEY, code int DEFAULT 7, iban varchar(9) UNIQUE)".to_owned(),
    ] {
        session.run(&statement).expect("a table");
    }
    for id in 1..=40 {
        let name = if id % 7 == 0 { "NULL".to_owned() } else { format!("'Žofie of row {id}'") };
        let row = format!("INSERT INTO accounts VALUES ({id}, 'DE00 5001 0517 0000 {id:04}', {name}, {id})");
        session.run(&row).expect("a row");
    }
}

/// Two servers of `database`, of which one encrypts columns.
fn columns_are_encrypted(database: &'static dyn Product, plain: At<'_>, (server, setup): At<'_>, binary: &str) {
    let any = workload(SCRIPT);
    [plain, (server, setup)].into_iter().for_each(|at| fill(database, at, any.as_ref(), binary));
    let options = [("names", "accounts.name,accounts.pin"), ("equal", "accounts.iban")];
    let options = options.map(|(name, value)| (name, OptionValue::Text(value.to_owned())));
    let chosen = chosen(database, "columns", &options);
    let columns = protection(database, "columns");
    let mut protected = setup.clone();
    columns.apply(&chosen, &mut protected);
    let grammar = sql_of(database).expect("SQL").dialect().grammar;
    own::check(protected.columns.as_ref().expect("columns"), any.as_ref(), grammar).expect("a script that can be run");

    let in_the_clear = answers(database, plain.0, plain.1, any.as_ref());
    assert!(in_the_clear.iter().all(|(.., failed)| !failed), "{}", database.title());
    let table = any.table();
    let mut checks = columns.evidence_in(&chosen, any.as_ref());
    // What this server records was never claimed.
    checks.retain(|check| check.entry().role != Role::Disclosure);
    let see = |(server, setup): At<'_>, protected: bool| -> Vec<Observation> {
        let see = |check: &dyn Check| {
            let mut context =
                CheckContext { database, server, setup, table: &table, protected, nonce: 1, narrowed: None };
            seen_by(check, &mut context)
        };
        checks.iter().map(|check| see(check.as_ref())).collect()
    };
    let exposed = see(plain, false);
    conversion::convert(database, server, &protected, &how(any.as_ref()), any.as_ref()).expect("encrypted");
    let encrypted = answers(database, server, &protected, any.as_ref());
    let different = encrypted.iter().zip(&in_the_clear).find(|(one, other)| one != other);
    assert_eq!((different, encrypted.len()), (None, in_the_clear.len()), "{}", database.title());
    for ((check, seen), exposed) in checks.iter().zip(see((server, &protected), true)).zip(&exposed) {
        let verdict = judge(check.entry().control, &seen, Some(exposed));
        assert_eq!(format!("{verdict:?}"), "Holds", "{}: {seen:?}; {exposed:?}", check.id());
    }
    let blind = answers(database, server, setup, any.as_ref());
    assert!(blind != in_the_clear, "{}: nothing was encrypted", database.title());

    let engines: &[&str] = match database.id() {
        "mariadb" => &["", " ENGINE = MyISAM", " ENGINE = Aria"],
        "mysql" => &["", " ENGINE = MyISAM"],
        _ => &[""],
    };
    engines.iter().for_each(|engine| more_rows_than_are_read_at_once_are_encrypted(database, (server, setup), engine));

    for (names, equal, expected) in [
        ("plain.code", "", "columns of plain cannot be encrypted: code: it has a default"),
        ("plain.iban", "", " compares it: name it by `equal`"),
        ("plain.nothing", "", "nothing: there is no such column"),
    ] {
        let options =
            [("names", names), ("equal", equal)].map(|(name, value)| (name, OptionValue::Text(value.to_owned())));
        let mut setup = setup.clone();
        columns.apply(&sandbox::chosen(database, "columns", &options), &mut setup);
        let refused = conversion::convert(database, server, &setup, &how(any.as_ref()), any.as_ref());
        let refused = refused.expect_err("refused").to_string();
        assert!(refused.contains(expected), "{}: {refused}", database.title());
    }
}

/// Rows of one column.
#[derive(Default)]
struct Texts(Vec<String>);

impl Rows for Texts {
    fn row(&mut self, _key: Option<&[u8]>) {}

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        self.0.push(value.map_or(String::new(), |value| String::from_utf8_lossy(value).into_owned()));
    }
}

/// A table of an `engine` with a key of two columns, each of its rows found once.
fn more_rows_than_are_read_at_once_are_encrypted(database: &dyn Product, (server, setup): At<'_>, engine: &str) {
    const ROWS: usize = 2345;
    let any = workload(SCRIPT);
    let texts = |setup: &Setup, text: &str| {
        let Ok(Session::Sql(mut session)) = data::connect(database, server, setup, &how(any.as_ref()), any.as_ref())
        else {
            panic!("no session")
        };
        let asked = session.prepare_text(text).expect(text).statement;
        let mut texts = Texts::default();
        session.call(asked, &[], &mut texts).expect(text);
        texts.0
    };
    let row = |row: usize| format!("({}, 'part {}', 'secret {row}')", row / 100, row % 100);
    for statement in [
        "DROP TABLE IF EXISTS large".to_owned(),
        format!(
            "CREATE TABLE large (a int NOT NULL, b varchar(20) NOT NULL, c varchar(40), PRIMARY KEY (a, b)){engine}"
        ),
        format!("INSERT INTO large VALUES {}", (0..ROWS).map(row).collect::<Vec<_>>().join(", ")),
    ] {
        texts(setup, &statement);
    }
    let mut protected = setup.clone();
    let names = [("names", OptionValue::Text("large.c".to_owned()))];
    protection(database, "columns").apply(&chosen(database, "columns", &names), &mut protected);
    conversion::convert(database, server, &protected, &how(any.as_ref()), any.as_ref()).expect("encrypted");
    let mut read = texts(&protected, "SELECT c FROM large");
    read.sort_unstable();
    let mut expected: Vec<String> = (0..ROWS).map(|row| format!("secret {row}")).collect();
    expected.sort_unstable();
    assert!(read == expected, "{}{engine}: {} rows: {:?}", database.title(), read.len(), &read[..3]);
    let stored = texts(setup, "SELECT c FROM large");
    assert!(stored.iter().all(|stored| !stored.contains("secret")), "{}{engine}: in the clear", database.title());
}

#[test]
fn sqlite_answers_alike_with_encrypted_columns() {
    let credentials = Credentials::without_files(Secret::random(16), Secret::random(32));
    let setup = Setup::plain(BTreeMap::from([("synchronous".to_owned(), "OFF".to_owned())]), credentials);
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [plain, protected] = folders.each_ref().map(|folder| of_sqlite(&setup, folder.path()));
    columns_are_encrypted(&Sqlite, (&plain, &setup), (&protected, &setup), "");
}

fn of_sqlite(setup: &Setup, folder: &Path) -> Server {
    let launch = Sqlite.launch(&Install::default(), setup, &Place::on_loopback(folder.to_owned(), 0));
    Server::embedded(&launch, folder)
}

/// Obstacles are reported by file, line and column, before anything is started.
#[test]
fn statements_that_cannot_be_run_are_refused_by_their_place() {
    let credentials = Credentials::without_files(Secret::random(16), Secret::random(32));
    let refused = |script: &str, names: &str| {
        let mut setup = Setup::plain(BTreeMap::new(), credentials.clone());
        let options = [("names", OptionValue::Text(names.to_owned()))];
        protection(&Sqlite, "columns").apply(&chosen(&Sqlite, "columns", &options), &mut setup);
        let columns = setup.columns.expect("columns");
        own::check(&columns, workload(script).as_ref(), Grammar::Sqlite)
            .map_or_else(|fault| fault.to_string(), |()| "taken".to_owned())
    };
    let script = "\\set id 1\nBEGIN;\n  SELECT name,\n    upper(name) FROM accounts\n  WHERE id = :id;\nCOMMIT;\n";
    let all = [
        refused(script, "accounts.name"),
        refused("SELECT a.id \\; SELECT name FROM accounts ORDER BY name;", "accounts.name"),
        refused("SELECT 1;", "accounts.name"),
        refused("SELECT id FROM accounts;", "accounts.name,iban"),
        refused("SELECT id FROM accounts;", "shop.accounts.name"),
        refused("SELECT name FROM accounts;", "accounts.name"),
    ];
    expect_test::expect![[r#"
        refused: app.sql, line 4, column 11: accounts.name is encrypted, and the server would have to read it in upper(): only clients read it: select it as it is, and compute from it elsewhere
        refused: app.sql, line 1, column 51: accounts.name is encrypted, and the server would have to read it in ORDER BY: only clients read it: select it as it is, and compute from it elsewhere
        refused: no statement names the table of accounts.name
        refused: `iban` names no table: write each as TABLE.COLUMN
        refused: `shop.accounts.name`: write TABLE.COLUMN, without schema or quotes
        taken"#]].assert_eq(&all.join("\n"));
}

mod installed {
    use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};

    use super::*;
    use crate::sandbox::Sandbox;

    fn on(database: &'static dyn Product, binary: &str) {
        let Some(plain) = Sandbox::start(database, &[]) else { return };
        let Some(protected) = Sandbox::start(database, &[]) else { return };
        let [plain_at, protected_at] = [&plain, &protected].map(|sandbox| (&sandbox.server, &sandbox.setup));
        columns_are_encrypted(database, plain_at, protected_at, binary);
    }

    #[test]
    fn postgres_answers_alike_with_encrypted_columns() {
        on(&Postgres, "");
    }

    #[test]
    fn mariadb_answers_alike_with_encrypted_columns() {
        on(&MariaDb, " COLLATE utf8mb4_bin");
    }

    #[test]
    fn mysql_answers_alike_with_encrypted_columns() {
        on(&MySql, " COLLATE utf8mb4_bin");
    }
}
