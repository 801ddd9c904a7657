//! The heads of dumps, and which servers take them.

use std::{fs, os::fd::BorrowedFd};

use expect_test::expect;
use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_model::catalogue::{DatabaseEntry, WireProtocol};
use tithe_plugin::{
    restore::Restore,
    session::{Connection, Parameter, Progress, Rows, SqlSession, Statement},
};

use super::{Dump, head, restore};

/// The head of a dump in the form "custom", written by `pg_dump` 15: the database `shop`, PostgreSQL 15.18.
fn archive() -> Vec<u8> {
    let mut bytes = b"PGDMP\x01\x0e\x00\x04\x08\x01".to_vec();
    let number = |value: u32| [&[0], &value.to_le_bytes()[..]].concat();
    // Compression, and time of the dump.
    for value in [1, 8, 36, 5, 28, 10, 126, 0] {
        bytes.extend(number(value));
    }
    for text in ["shop", "15.18 (Debian 15.18-0+deb12u1)", "15.18 (Debian 15.18-0+deb12u1)"] {
        bytes.extend(number(text.len() as u32));
        bytes.extend(text.as_bytes());
    }
    bytes
}

const POSTGRES: &str = "--\n-- PostgreSQL database dump\n--\n\n\\restrict 6JHC\n\n-- Dumped from database version 15.18 \
                        (Debian 15.18-0+deb12u1)\n-- Dumped by pg_dump version 16.2\n\nSET statement_timeout = 0;\n";
const MARIADB: &str = "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for \
                       debian-linux-gnu (x86_64)\n--\n-- Host: localhost    Database: shop\n-- -----\n-- Server \
                       version\t10.11.19-MariaDB-0+deb12u1\n";
const OLD_MARIADB: &str = "-- MySQL dump 10.19  Distrib 10.6.12-MariaDB, for debian-linux-gnu (x86_64)\n--\n-- Host: db    \
                           Database: shop\n-- -----\n-- Server version\t10.6.12-MariaDB\n";
const MYSQL: &str = "-- MySQL dump 10.13  Distrib 8.4.3, for Linux (x86_64)\n--\n-- Host: localhost    Database: shop\n\
                     -- -----\n-- Server version\t8.4.3\n";

/// The last lines of a dump of PostgreSQL, MariaDB or MySQL.
const END: &str = "-- PostgreSQL database dump complete\n-- Dump completed on 2026-11-28  5:39:11\n";

fn told(bytes: &[u8]) -> String {
    match head::read(bytes) {
        Ok(head) => format!("{:?} {:?} {:?} {:?}", head.form, head.origin, head.version, head.database),
        Err(why) => why,
    }
}

#[test]
fn heads_say_form_product_version_and_database() {
    let seen: Vec<String> = [
        POSTGRES.as_bytes(),
        &archive(),
        &[&b"toc.dat"[..], &[0; 505], &archive()].concat(),
        MARIADB.as_bytes(),
        OLD_MARIADB.as_bytes(),
        MYSQL.as_bytes(),
        b"SQLite format 3\0\x10\0",
        b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n",
        b"CREATE TABLE mine (id int);\n",
    ]
    .map(told)
    .into();
    expect![[r#"
        Statements Some(Postgres) "15.18" ""
        Archive Some(Postgres) "15.18" "shop"
        Archive Some(Postgres) "15.18" "shop"
        Statements Some(Mariadb) "10.11.19" "shop"
        Statements Some(Mariadb) "10.6.12" "shop"
        Statements Some(Mysql) "8.4.3" "shop"
        SqliteFile Some(Sqlite) "" ""
        Statements Some(Sqlite) "" ""
        Statements None "" """#]]
    .assert_eq(&seen.join("\n"));
}

#[test]
fn the_mark_of_an_editor_hides_no_product() {
    let saved = format!("\u{feff}{MYSQL}").replace('\n', "\r\n");
    assert_eq!(told(saved.as_bytes()), told(MYSQL.as_bytes()));
}

#[test]
fn what_cannot_be_restored_says_why() {
    let cluster = b"--\n-- PostgreSQL database cluster dump\n--\n";
    let all = MYSQL.replace("Database: shop", "Database: ");
    let packed = [&b"\x1f\x8b\x08\0"[..], b"\x04\x22\x4d\x18\0"];
    let whole = archive();
    let own = format!("{POSTGRES}\nCREATE DATABASE shop WITH TEMPLATE = template0;\n");
    let others = [&whole[..40], cluster, own.as_bytes(), all.as_bytes(), b"\xff\xfe-\0", b"\x7fELF\0\0"];
    let seen: Vec<String> = [&b""[..]].into_iter().chain(packed).chain(others).map(told).collect();
    expect![[r#"
        it is empty
        it is packed: unpack it first (gunzip)
        it is packed: unpack it first (unlz4)
        it ends within its head: the dump is incomplete
        it is a dump of all databases and accounts (pg_dumpall): dump one database by pg_dump
        it makes a database of its own (pg_dump --create): dump again without --create, which is -C
        it is a dump of all databases and accounts (--all-databases): dump one database by its name
        it is UTF-16, as `>` of PowerShell writes it: dump again with pg_dump --file or mysqldump --result-file
        it is neither text nor a dump that Tithe knows (pg_dump, mysqldump, a file of SQLite)"#]]
    .assert_eq(&seen.join("\n"));
}

#[test]
fn heads_of_other_programs_say_product_and_database() {
    let php = "-- phpMyAdmin SQL Dump\n-- version 5.2.1\n--\n-- Host: localhost\n-- Server version: 10.4.32-MariaDB\n\n\
               -- Database: `shop`\n--\n";
    let heidi = "-- Host:             127.0.0.1\n-- Server version:   8.0.35 - MySQL Community Server\n\
                 -- HeidiSQL Version: 12.6.0.6765\nCREATE DATABASE IF NOT EXISTS `shop`;\nUSE `shop`;\n";
    let adminer = "-- Adminer 4.8.1 PostgreSQL 16.1 dump\n\nDROP TABLE IF EXISTS \"t\";\n";
    expect![[r#"
        Statements Some(Mariadb) "10.4.32" "shop"
        Statements Some(Mysql) "8.0.35" "shop"
        Statements Some(Postgres) "" """#]]
    .assert_eq(&[php, heidi, adminer].map(|text| told(text.as_bytes())).join("\n"));
}

#[test]
fn what_no_client_could_restore_is_refused_by_its_cause() {
    let warned = format!("mysqldump: [Warning] Using a password on the command line can be insecure.\n{MYSQL}");
    let connects = "DROP DATABASE IF EXISTS chinook;\nCREATE DATABASE chinook;\n\\c chinook;\n";
    let reads = "USE employees;\nsource load_departments.dump ;\n";
    let page = "<?xml version=\"1.0\"?>\n";
    for (text, expected) in [
        (warned.as_str(), "without `2>&1`"),
        (connects, "by \\connect"),
        (reads, "join them into one"),
        (page, "without --xml"),
        ("CREATE TABLE a (id int);\n.mode csv\n.import a.csv a\n", "commands of the program sqlite3"),
    ] {
        assert!(told(text.as_bytes()).contains(expected), "{}", told(text.as_bytes()));
    }
}

#[test]
fn statements_that_make_their_database_are_not_run_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sakila.sql");
    let entering = |text: &str| {
        fs::write(&path, text).expect("written");
        let dump = Dump::find(&path).expect("statements");
        (dump.entering(0), dump.entering(1))
    };
    let enter = |name: &str| format!("CREATE DATABASE IF NOT EXISTS `{name}`;\nUSE `{name}`;\n");
    let licence = "-- Redistribution is permitted.\n".repeat(60);
    let own = entering(&format!("{licence}CREATE SCHEMA sakila;\nUSE sakila;\nCREATE TABLE a (b int);\n"));
    assert_eq!(own, (String::new(), enter("sakila")));
    assert_eq!(entering("use `shop`;\nCREATE TABLE a (b int);\n"), (enter("shop"), enter("shop")));
    assert_eq!(entering("CREATE TABLE a (b int);\n").0, enter("data"));
    assert_eq!(entering("USE `my``odd; shop`; -- ours\n").0, enter("my``odd; shop"));
    assert_eq!(entering("use shop; -- ours\n").0, enter("shop"));
    assert_eq!(entering("CREATE VIEW v AS SELECT b FROM a\nUSE INDEX (i);\n").0, enter("data"));
}

#[test]
fn a_dump_without_its_end_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.sql");
    let found = |text: &str| {
        fs::write(&path, text).expect("written");
        Dump::find(&path).map(drop)
    };
    let lite = "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t (a);\n";
    for text in [POSTGRES, MARIADB, MYSQL, lite] {
        assert!(found(text).is_err_and(|why| why.contains("the dump was cut")), "{text}");
        let whole = format!("{text}COMMIT;\n{END}\\unrestrict 6JHC\nCREATE INDEX i ON t (a);\n");
        assert_eq!(found(&whole), Ok(()), "{text}");
        let rows = "INSERT INTO t VALUES (1);\n".repeat(4000);
        assert_eq!(found(&(whole + &rows)), Ok(()), "{text}");
    }
    let table = folder.path().join("t.csv");
    fs::write(&table, "id,name\n").expect("written");
    assert_eq!(Dump::find(&table).map(drop), Err("name its folder, with `schema.sql` for the table".to_owned()));
}

#[test]
fn every_cut_of_an_archive_is_refused_and_no_number_is_trusted() {
    let whole = archive();
    // The version of pg_dump, at the end, is not needed.
    for length in 0..whole.len() - 36 {
        assert!(head::archive(&whole[..length]).is_err(), "cut at {length}");
    }
    let mut huge = whole.clone();
    huge[52..56].fill(0xff);
    assert!(head::archive(&huge).is_err());
}

#[test]
fn a_dump_of_another_product_or_of_a_newer_version_is_refused() {
    const POSTGRES_15: DatabaseEntry = entry("postgres", "PostgreSQL", WireProtocol::Postgres);
    const MARIADB_10: DatabaseEntry = entry("mariadb", "MariaDB", WireProtocol::MySql);
    const SERVERS: [(&DatabaseEntry, &str); 2] =
        [(&POSTGRES_15, "PostgreSQL 15.2"), (&MARIADB_10, "10.11.6-MariaDB-0+deb12u1")];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.sql");
    let mut seen = String::new();
    let newer = POSTGRES.replace("15.18 ", "16.1 ");
    let later = format!("{POSTGRES}SET transaction_timeout = 0;\n");
    let other = MARIADB.replace("10.11.19", "11.4.2");
    for text in [POSTGRES, &newer, &later, MARIADB, &other, OLD_MARIADB, MYSQL, "SELECT 1;"] {
        fs::write(&path, format!("{text}{END}")).expect("a dump");
        let dump = Dump::find(&path).expect("a dump");
        let told = SERVERS.map(|(server, version)| dump.refuses(server, version).unwrap_or_else(|| "taken".to_owned()));
        seen += &format!("{}\n  {}\n", dump.in_words(), told.join("\n  "));
    }
    expect![[r#"
        dump.sql, statements from PostgreSQL 15.18
          taken
          it is a dump of PostgreSQL, and the server is MariaDB
        dump.sql, statements from PostgreSQL 16.1
          it was dumped from PostgreSQL 16.1, which is newer than the server (PostgreSQL PostgreSQL 15.2)
          it is a dump of PostgreSQL, and the server is MariaDB
        dump.sql, statements from PostgreSQL 15.18
          it sets transaction_timeout, which servers before PostgreSQL 17 refuse: take this line out, or dump it with the pg_dump of the server's release
          it is a dump of PostgreSQL, and the server is MariaDB
        dump.sql, statements from MariaDB 10.11.19
          it is a dump of MariaDB, and the server is PostgreSQL
          taken
        dump.sql, statements from MariaDB 11.4.2
          it is a dump of MariaDB, and the server is PostgreSQL
          it was dumped from MariaDB 11.4.2, which is newer than the server (MariaDB 10.11.6-MariaDB-0+deb12u1)
        dump.sql, statements from MariaDB 10.6.12
          it is a dump of MariaDB, and the server is PostgreSQL
          taken
        dump.sql, statements from MySQL 8.4.3
          it is a dump of MySQL, and the server is PostgreSQL
          it is a dump of MySQL, and the server is MariaDB
        dump.sql, statements
          taken
          taken
    "#]]
    .assert_eq(&seen);
}

const fn entry(id: &'static str, title: &'static str, protocol: WireProtocol) -> DatabaseEntry {
    DatabaseEntry { id, title, wire_protocol: Some(protocol), ..DatabaseEntry::BARE }
}

#[test]
fn accounts_that_a_dump_names_are_made() {
    let dump = "ALTER TABLE public.orders OWNER TO app;\nALTER SCHEMA x OWNER TO \"Big Co\";\nGRANT SELECT ON TABLE a TO \
                reader WITH GRANT OPTION;\nREVOKE ALL ON SCHEMA public FROM PUBLIC;\nCOPY t FROM stdin;\nGRANT me TO \
                you\n\\.\nALTER TABLE a ADD CONSTRAINT b UNIQUE (c);\n";
    expect![[r#"
        SELECT count(*) AS there FROM pg_roles WHERE rolname = 'Big Co' \gset
        \if :there
        \else
        CREATE ROLE "Big Co";
        \endif
        SELECT count(*) AS there FROM pg_roles WHERE rolname = 'app' \gset
        \if :there
        \else
        CREATE ROLE app;
        \endif
        SELECT count(*) AS there FROM pg_roles WHERE rolname = 'reader' \gset
        \if :there
        \else
        CREATE ROLE reader;
        \endif
    "#]]
    .assert_eq(&restore::roles(dump.as_bytes()).expect("text"));
}

#[test]
fn accounts_are_found_in_all_statements_that_name_some_and_in_no_other() {
    let dump = "ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA public GRANT SELECT ON TABLES TO viewer;\n\
                CREATE POLICY p ON public.t FOR SELECT TO tenant, \"Big Co\" USING ((a = ( SELECT 1\n\
                SET SESSION AUTHORIZATION 'grantor';\n\
                SET SESSION AUTHORIZATION DEFAULT;\n\
                ALTER TABLE ONLY m ATTACH PARTITION m1 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');\n\
                ALTER TABLE ONLY public.m ATTACH PARTITION public.m2 FOR VALUES FROM (MINVALUE) TO (7);\n\
                CREATE POLICY q ON public.t USING (true);\n";
    let made = restore::roles(dump.as_bytes()).expect("text");
    let made: Vec<&str> = made.lines().filter(|line| line.starts_with("CREATE ")).collect();
    expect![[r#"
        CREATE ROLE "Big Co";
        CREATE ROLE "grantor";
        CREATE ROLE owner;
        CREATE ROLE tenant;
        CREATE ROLE viewer;"#]]
    .assert_eq(&made.join("\n"));
}

#[test]
fn a_folder_has_one_file_of_fields_for_each_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str| {
        let text = if name.ends_with("sql") { "CREATE TABLE a (id int);\n" } else { "id\n" };
        fs::write(folder.path().join(name), text).expect("written");
    };
    ["schema.sql", "b.csv", "a.tsv", "notes.txt"].into_iter().for_each(write);
    let names = |dump: Dump| dump.tables.into_iter().map(|(name, _)| name).collect::<Vec<String>>();
    let tables = || Dump::find(folder.path()).map(names);
    assert_eq!(tables(), Ok(vec!["a".to_owned(), "b".to_owned()]));
    write("a.csv");
    assert_eq!(tables(), Err("it has two files for the table a".to_owned()));
}

#[test]
fn files_whose_rows_would_not_be_loaded_are_refused_by_name() {
    let refused = |name: &str, bytes: &[u8]| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("schema.sql"), "CREATE TABLE a (id int);\n").expect("written");
        fs::write(folder.path().join("b.CSV"), "id\n1\n").expect("written");
        fs::write(folder.path().join(name), bytes).expect("written");
        Dump::find(folder.path()).map(|dump| dump.tables.len())
    };
    assert_eq!(refused("notes.txt", b""), Ok(1));
    for (name, bytes, why) in [
        ("a.csv", &b""[..], "a.csv: its first line has no names of columns"),
        ("a.csv", &b"\xef\xbb\xbf\r\n1\r\n"[..], "a.csv: its first line has no names of columns"),
        ("a.tsv", &b"\xff\xfei\0d\0\n\0"[..], "a.tsv: it is no text in UTF-8: save it as \"CSV UTF-8\""),
        (
            "a.csv",
            &b",id,name\r\n0,1,x\r\n"[..],
            "a.csv: its first line has a column without a name: name it or take it out (pandas: index=False)",
        ),
        ("a.csv", &b"id;Id;id\n"[..], "a.csv: its first line names the column id twice"),
        ("a.csv.gz", &b"\x1f\x8b"[..], "it cannot be read: a.csv.gz is packed, or a copy: unpack it, or take it away"),
    ] {
        assert_eq!(refused(name, bytes), Err(why.to_owned()), "{name}");
    }
}

/// A session that records its statements. The attached file has a generated column and a virtual table with its own
/// tables.
#[derive(Default)]
struct Noting(Vec<String>);

impl Connection for Noting {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.run(statement).map(drop)
    }
}

impl SqlSession for Noting {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        panic!("`{sql}` is run once")
    }

    fn submit(&mut self, _statement: Statement, _parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        panic!("nothing is prepared")
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        panic!("nothing is prepared")
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let row = |values: &[&str]| values.iter().map(|value| Some((*value).to_owned())).collect::<Vec<_>>();
        if sql.contains("FROM dump.sqlite_schema") {
            return Ok(vec![
                row(&["table", "f", "CREATE VIRTUAL TABLE f USING fts5(x)"]),
                row(&["table", "t", "CREATE TABLE t (a, \"b c\", d AS (a))"]),
                row(&["table", "f_data", "CREATE TABLE 'f_data'(id, block)"]),
                row(&["index", "i", "CREATE INDEX i ON t (a)"]),
            ]);
        }
        match sql {
            "SELECT name FROM pragma_table_info('t', 'dump')" => return Ok(vec![row(&["a"]), row(&["b c"])]),
            "SELECT name FROM pragma_table_info('f_data', 'dump')" => return Ok(vec![row(&["id"]), row(&["block"])]),
            "SELECT 1 FROM main.sqlite_schema WHERE name = 'f_data'" => return Ok(vec![row(&["1"])]),
            _ if sql.starts_with("SELECT 1 ") || sql.starts_with("ATTACH ") => {}
            _ => self.0.push(sql.to_owned()),
        }
        Ok(Vec::new())
    }
}

#[test]
fn a_file_of_sqlite_is_copied_with_generated_columns_and_virtual_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    fs::write(&path, b"SQLite format 3\0\x10\0").expect("written");
    let mut session = Noting::default();
    Dump::find(&path).expect("a file of SQLite").through(&mut session).expect("copied");
    expect![[r#"
        BEGIN
        CREATE VIRTUAL TABLE f USING fts5(x)
        CREATE TABLE t (a, "b c", d AS (a))
        INSERT INTO main."t" ("a", "b c") SELECT "a", "b c" FROM dump."t"
        DELETE FROM main."f_data"
        INSERT INTO main."f_data" ("id", "block") SELECT "id", "block" FROM dump."f_data"
        CREATE INDEX i ON t (a)
        COMMIT
        DETACH DATABASE dump"#]]
    .assert_eq(&session.0.join("\n"));
}
