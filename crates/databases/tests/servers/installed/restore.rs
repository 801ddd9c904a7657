//! The user's own data in launched servers: dumps by the product's own programs are restored, with TLS too, and the
//! data are complete.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
};

use tithe_databases::{mariadb::MariaDb, postgres::Postgres};
use tithe_model::experiment::Protection as Chosen;
use tithe_plugin::{product::Product, restore::Restore, setup::Reach, workspace::Workspace};
use tithe_workloads::dump::Dump;

use super::{
    how_for,
    sandbox::{Sandbox, chosen},
    table,
};

/// A schema with what a copy of rows alone would lose: a foreign key, a view, text with quotes and special characters,
/// NULL.
const SCHEMA: [&str; 5] = [
    "CREATE TABLE shop_customer (id int PRIMARY KEY, name varchar(80))",
    "CREATE TABLE shop_orders (id int PRIMARY KEY, customer int, total decimal(10,2), FOREIGN KEY (customer) REFERENCES \
     shop_customer (id))",
    "CREATE VIEW shop_totals AS SELECT customer, sum(total) AS total FROM shop_orders GROUP BY customer",
    "INSERT INTO shop_customer VALUES (1, 'O''Brien, \"Äpfel\"'), (2, NULL), (3, 'plain')",
    "INSERT INTO shop_orders VALUES (1, 1, 10.50), (2, 1, 1.25), (3, 3, 7)",
];

/// What `reads` sees of all of it.
const SEEN: &str = "SELECT concat((SELECT count(*) FROM shop_customer WHERE name IS NULL), ' ', (SELECT max(name) FROM \
                    shop_customer WHERE id = 1), ' ', (SELECT sum(total) FROM shop_totals WHERE customer = 1))";

fn ask(sandbox: &Sandbox, question: &str) -> String {
    let answer = sandbox.database.ask(&sandbox.server, &sandbox.setup, question);
    answer.expect("an answer").unwrap_or_default()
}

/// Runs `statements` in the database that the product's own programs use.
fn run(sandbox: &Sandbox, statements: &[&str]) {
    let sql = sandbox.database.sql().expect("SQL");
    let mut session = sql.connect(&sandbox.server, &sandbox.setup, &how_for(table(), true)).expect("a session");
    statements.iter().for_each(|statement| drop(session.run(statement).expect(statement)));
}

fn restore(sandbox: &Sandbox, path: &Path) -> String {
    let dump = Dump::find(path).expect("a dump");
    assert_eq!(dump.refuses(sandbox.database.entry(), sandbox.version()), None, "{}", path.display());
    let workspace =
        Workspace::for_restore(&dump, sandbox.database, &sandbox.server, &sandbox.setup).expect("a workspace");
    workspace.restore(&dump, &AtomicBool::new(false)).expect("restored");
    workspace.clear();
    dump.in_words()
}

fn reach(sandbox: &Sandbox) -> Reach {
    sandbox.database.reach(&sandbox.server, &sandbox.setup).expect("a way")
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("a program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_form_of_pg_dump_is_restored() {
    let Some(sandbox) = Sandbox::start(&Postgres, &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    run(&sandbox, &["CREATE ROLE \"Shop Owner\""]);
    let mut all = vec!["SET search_path = public"];
    all.extend(SCHEMA);
    all.push("ALTER TABLE shop_customer OWNER TO \"Shop Owner\"");
    run(&sandbox, &all);
    let Reach { host, port, user, database, .. } = reach(&sandbox);
    let mut dumps = Vec::new();
    for (form, name) in [("p", "plain.sql"), ("c", "custom.dump"), ("d", "folder"), ("t", "shop.tar")] {
        let path = folder.path().join(name);
        let address = ["-h", &host, "-p", &port.to_string(), "-U", &user, "-d", &database].map(str::to_owned);
        succeeds(Command::new("pg_dump").args(address).args(["-F", form, "-f"]).arg(&path));
        dumps.push(path);
    }
    dumps.push(csv(folder.path()));
    let question = SEEN.replace("shop_", "public.shop_");
    let before = ask(&sandbox, &question);
    assert_eq!(before, "1 O'Brien, \"Äpfel\" 11.75");
    for path in dumps {
        run(&sandbox, &["DROP SCHEMA public CASCADE", "DROP ROLE IF EXISTS \"Shop Owner\"", "CREATE SCHEMA public"]);
        let words = restore(&sandbox, &path);
        assert_eq!(ask(&sandbox, &question), before, "{words}");
    }
}

/// A folder of CSV with the same rows.
fn csv(folder: &Path) -> PathBuf {
    let path = folder.join("csv");
    fs::create_dir(&path).expect("a folder");
    let schema: String = SCHEMA[..3].iter().map(|text| format!("{text};\n")).collect();
    fs::write(path.join("schema.sql"), schema).expect("a schema");
    let customers = "id,name\n1,\"O'Brien, \"\"Äpfel\"\"\"\n2,\n3,plain\n";
    fs::write(path.join("shop_customer.csv"), customers).expect("rows");
    fs::write(path.join("shop_orders.csv"), "total,id,customer\n10.50,1,1\n1.25,2,1\n7,3,3\n").expect("rows");
    path
}

#[test]
fn what_mysqldump_writes_is_restored() {
    let Some(sandbox) = Sandbox::start(&MariaDb, &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // The dump sets where the tables are.
    sandbox.database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut all = vec!["CREATE DATABASE shop", "USE shop"];
    all.extend(SCHEMA);
    run(&sandbox, &all);
    let Reach { host, port, user, .. } = reach(&sandbox);
    let port = port.to_string();
    let address = ["--no-defaults", "--protocol=tcp", "-h", &host, "-P", &port, "-u", &user];
    let mut dumps = Vec::new();
    for (name, words) in [("one.sql", &["shop"][..]), ("named.sql", &["--databases", "shop"])] {
        let text = succeeds(Command::new("mysqldump").args(address).args(words));
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a dump");
        dumps.push((path, "shop."));
    }
    dumps.push((csv(folder.path()), "data."));
    let before = ask(&sandbox, &SEEN.replace("shop_", "shop.shop_"));
    for (path, place) in dumps {
        run(&sandbox, &["DROP DATABASE shop"]);
        let words = restore(&sandbox, &path);
        assert_eq!(ask(&sandbox, &SEEN.replace("shop_", &format!("{place}shop_"))), before, "{words}");
        run(&sandbox, &["CREATE DATABASE IF NOT EXISTS shop"]);
    }
}

#[test]
fn a_dump_is_restored_through_tls_with_a_password() {
    let protections = |database: &'static dyn Product, others: &[&str]| -> Vec<Chosen> {
        ["tls"].iter().chain(others).map(|id| chosen(database, id, &[])).collect()
    };
    let databases: [(&'static dyn Product, &[&str], &str); 2] =
        [(&Postgres, &["scram"], "public.mine"), (&MariaDb, &[], "data.mine")];
    for (database, others, place) in databases {
        let Some(sandbox) = Sandbox::start(database, &protections(database, others)) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.sql");
        fs::write(&path, "CREATE TABLE mine (id int PRIMARY KEY);\nINSERT INTO mine VALUES (1), (2);\n")
            .expect("a file");
        restore(&sandbox, &path);
        assert_eq!(ask(&sandbox, &format!("SELECT count(*) FROM {place}")), "2", "{}", database.title());
    }
}

#[test]
fn a_statement_that_fails_ends_restoring_with_the_servers_words() {
    for database in [&Postgres as &'static dyn Product, &MariaDb] {
        let Some(sandbox) = Sandbox::start(database, &[]) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.sql");
        fs::write(&path, "CREATE TABLE mine (id int);\nINSERT INTO yours VALUES (1);\n").expect("a file");
        let dump = Dump::find(&path).expect("a dump");
        let workspace = Workspace::for_restore(&dump, database, &sandbox.server, &sandbox.setup).expect("a workspace");
        let failed = workspace.restore(&dump, &AtomicBool::new(false)).expect_err(database.title()).to_string();
        assert!(failed.contains("yours"), "{failed}");
    }
}
