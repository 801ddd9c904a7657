//! The measured table, and everything else that an administrator's session does around it.
//!
//! Tithe works in the schema `tithe`, or in a similar one for each arm if several arms share a server. It marks the
//! schema and every table in it with a comment. A schema of this name without the mark, or with an unmarked object in
//! it, belongs to someone else: it is refused, and never dropped.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::record::ArmFacts;
use tithe_plugin::{
    database::CacheUse,
    session::{SqlSession as _, Table},
    setup::Setup,
};

use super::{
    peer,
    session::PostgresSession,
    startup::NO_PASSWORD,
    target::{PRODUCT, USER},
};
use crate::{
    hops::Hops,
    target::{SOCKET_PEER, is_local},
    ycsb_over_sql::{KEY_COLUMN, YcsbDialect},
};

/// PostgreSQL's syntax where the SQL standard leaves it open.
pub const YCSB_DIALECT: YcsbDialect = YcsbDialect {
    schemas: true,
    quote: '"',
    begin_bulk: "BEGIN",
    end_bulk: "COMMIT",
    // A sequential scan of a large table bypasses the shared buffers; an index scan that fetches rows does not.
    warm: &[
        "SET enable_seqscan = off",
        "SET enable_bitmapscan = off",
        "SELECT count(xmin) FROM {table} WHERE {key} >= ''",
        "RESET enable_seqscan",
        "RESET enable_bitmapscan",
    ],
};

/// The comment on everything that Tithe creates.
pub const MARK: &str = "made by tithe";

/// How long Tithe waits for a lock on its own tables, s.
const LOCK_TIMEOUT_S: u16 = 10;

/// The server's error when that was too short (documentation, "PostgreSQL Error Codes": `lock_not_available`).
const NOT_AVAILABLE: &str = "55P03";

/// The note about page checksums that are off on a server whose default is on.
const NOT_BY_DEFAULT: &str = ", by Tithe: initdb switches them on from PostgreSQL 18 on";

/// Settings whose values go into the report, if the server has them.
const REPORTED: [&str; 12] = [
    "autovacuum",
    "checkpoint_timeout",
    "data_checksums",
    "fsync",
    "full_page_writes",
    "log_statement",
    "max_wal_size",
    "password_encryption",
    "shared_buffers",
    "ssl_library",
    "synchronous_commit",
    "wal_compression",
];

/// A session that is not measured. It runs none of the statements of the clients' sessions.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<PostgresSession, Fault> {
    PostgresSession::open(&PRODUCT.target(server, setup)?, is_local(server))
}

/// An administrator's session. On a server with other users it waits [`LOCK_TIMEOUT_S`] for their locks.
///
/// # Errors
/// As [`administrator`].
fn hurried(server: &Server, setup: &Setup) -> Result<PostgresSession, Fault> {
    let mut session = administrator(server, setup)?;
    if !is_local(server) {
        session.run(&format!("SET lock_timeout = '{LOCK_TIMEOUT_S}s'"))?;
    }
    Ok(session)
}

/// Runs `statement` about a table in `space`.
///
/// # Errors
/// [`Fault::Refused`] with the names of the clients that hold the lock; the server's error.
pub fn run_unlocked(session: &mut PostgresSession, space: &str, statement: &str) -> Result<(), Fault> {
    match session.run(statement) {
        Err(Fault::Server(words)) if words.starts_with(NOT_AVAILABLE) => {
            let holders = format!(
                "SELECT string_agg(DISTINCT format('process %s of %s %s', pid, usename, application_name), ', ') FROM \
                 pg_locks JOIN pg_stat_activity USING (pid) JOIN pg_class ON pg_class.oid = relation WHERE granted AND \
                 relnamespace = '{space}'::regnamespace AND pid <> pg_backend_pid()"
            );
            let holders = session.value(&holders).unwrap_or_else(|_| "a session that has ended since".to_owned());
            Err(Fault::Refused(format!(
                "`{statement}` waited {LOCK_TIMEOUT_S} s for a lock on what is Tithe's own, held by {}: let that session \
                 end",
                holders.trim_end()
            )))
        }
        outcome => outcome.map(drop),
    }
}

/// Creates the schema and `table`. On a server that Tithe launched, runs the arm's own statements first.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if is_local(server) {
        let mut session = administrator(server, setup)?;
        for statement in &setup.statements {
            session.run(statement)?;
        }
    }
    let mut session = own_schema(server, setup)?;
    let name = YCSB_DIALECT.qualified(&setup.space, table);
    // Left over from a run that was killed: `observe` has checked that everything here is Tithe's.
    run_unlocked(&mut session, &setup.space, &removal(&name))?;
    session.run(&marked(&table_text(&setup.space, table), &name))?;
    say_of_table(&mut session, server, setup, &name)
}

/// Runs the arm's own statements about the table `name`, each as one.
///
/// # Errors
/// The server's error.
pub fn say_of_table(session: &mut PostgresSession, server: &Server, setup: &Setup, name: &str) -> Result<(), Fault> {
    let launched = is_local(server).to_string();
    let of_table = |statement: &String| {
        let statement = statement.replace(MEMBERS, &members_of(name)).replace("{table}", name);
        session.run(&statement.replace("{space}", &setup.space).replace(LAUNCHED, &launched)).map(drop)
    };
    setup.table_statements.iter().try_for_each(of_table)
}

/// OID of the account that `initdb` creates (documentation, "Predefined Roles").
const FIRST_ACCOUNT: u8 = 10;

/// True for the account that created the cluster and has the name that Tithe gives it, else null; in SQL.
pub fn is_first_account() -> String {
    format!("(SELECT oid = {FIRST_ACCOUNT} FROM pg_roles WHERE rolname = session_user AND rolname = '{USER}')")
}

/// Placeholder in statements about a table: `true` on a server that Tithe launched, else `false`.
pub const LAUNCHED: &str = "{launched}";

/// The role whose privileges on a table decide which statements on it are logged, unless the server names another.
pub const AUDITOR: &str = "tithe_auditor";

/// The name of that role, in SQL.
pub fn auditor() -> String {
    format!("coalesce(nullif(current_setting('pgaudit.role', true), ''), '{AUDITOR}')")
}

/// True if privileges of that role decide which statements on the tables of an arm with this `setup` are logged.
pub fn audits_by_object(setup: &Setup) -> bool {
    setup.table_statements.iter().any(|statement| statement.contains(AUDITOR))
}

/// The server's error when something still refers to a role (`dependent_objects_still_exist`).
const STILL_USED: &str = "2BP01";

/// Removes the role [`AUDITOR`] if Tithe created it. The first run that removes its tables here removes what a killed
/// one has left.
fn remove_auditor(session: &mut PostgresSession) -> Result<(), Fault> {
    let mark = format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{AUDITOR}'");
    let mark = session.run(&mark)?.into_iter().flatten().flatten().next();
    if mark.as_deref() != Some(MARK) {
        return Ok(());
    }
    match session.run(&format!("DROP ROLE IF EXISTS {AUDITOR}")) {
        // Another arm's or another database's tables have privileges of it: their removal removes it.
        Err(Fault::Server(words)) if words.starts_with(STILL_USED) => Ok(()),
        // Another account created it and removes it.
        Err(Fault::Refused(_)) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Placeholder in statements about a table, for its table of members, which records the tenant of each client.
pub const MEMBERS: &str = "{members}";

/// The end of the name of such a table.
pub const MEMBERS_SUFFIX: &str = "_members";

fn members_of(name: &str) -> String {
    match name.strip_suffix('"') {
        Some(open) => format!("{open}{MEMBERS_SUFFIX}\""),
        None => format!("{name}{MEMBERS_SUFFIX}"),
    }
}

/// The statement that removes the table `name` and its dependent objects.
pub fn removal(name: &str) -> String {
    format!("DROP TABLE IF EXISTS {name}, {}", members_of(name))
}

/// An administrator's session in the schema of this arm, which is created if missing.
///
/// # Errors
/// As [`create`].
pub fn own_schema(server: &Server, setup: &Setup) -> Result<PostgresSession, Fault> {
    let mut session = hurried(server, setup)?;
    let space = &setup.space;
    if existing(&mut session, space)? == Existing::Nothing {
        make_schema(&mut session, space)?;
    }
    session.run(&format!("SET search_path = {space}"))?;
    Ok(session)
}

/// Creates the schema `space` with Tithe's mark; without the mark, Tithe would not recognise it later. Statements that
/// are sent as one are done completely or not at all (documentation, "Multiple Statements In A Simple Query").
fn make_schema(session: &mut PostgresSession, space: &str) -> Result<(), Fault> {
    match session.run(&format!("CREATE SCHEMA {space}; COMMENT ON SCHEMA {space} IS '{MARK}'")) {
        Err(Fault::Refused(words)) => {
            let right = session
                .value("SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user)")?;
            Err(Fault::Refused(format!("Tithe works in a schema of its own, `{space}`: {words}; run `{right}`")))
        }
        outcome => outcome.map(drop),
    }
}

/// The statements that create the table `name` by `definition` and mark it as made by Tithe, to be sent as one.
pub fn marked(definition: &str, name: &str) -> String {
    format!("{definition}; COMMENT ON TABLE {name} IS '{MARK}'")
}

/// The statement that creates `table`. Values are bytes, so that transferring ciphertext costs no more than text. Keys
/// are ordered by their bytes in every locale, as YCSB's scans expect.
fn table_text(space: &str, table: &Table) -> String {
    let key = YCSB_DIALECT.quoted(KEY_COLUMN);
    let fields: String =
        (0..table.fields).map(|field| format!(", {} bytea", YCSB_DIALECT.field(table, field))).collect();
    format!("CREATE TABLE {} ({key} text COLLATE \"C\" PRIMARY KEY{fields})", YCSB_DIALECT.qualified(space, table))
}

/// Removes `table`, and the schema with it if nothing else is left in it.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut session, space) = (hurried(server, setup)?, &setup.space);
    if existing(&mut session, space)? == Existing::Nothing {
        return Ok(());
    }
    let name = YCSB_DIALECT.qualified(space, table);
    run_unlocked(&mut session, space, &removal(&name))?;
    let left = session.value(&format!("SELECT count(*) FROM pg_class WHERE relnamespace = '{space}'::regnamespace"))?;
    if left == "0" {
        // Without CASCADE the server itself refuses when something appeared in the meantime.
        session.run(&format!("DROP SCHEMA {space}"))?;
        if !is_local(server) {
            remove_auditor(&mut session)?;
        }
    }
    Ok(())
}

/// What exists in the place where Tithe works.
#[derive(Debug, PartialEq, Eq)]
enum Existing {
    Nothing,
    Ours,
}

/// Checks whether the schema `space` exists, and refuses it unless everything in it is Tithe's.
fn existing(session: &mut PostgresSession, space: &str) -> Result<Existing, Fault> {
    let schema = format!(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = '{space}'"
    );
    match session.run(&schema)?.into_iter().flatten().flatten().next() {
        None => return Ok(Existing::Nothing),
        Some(mark) if mark == MARK => {}
        Some(_) => {
            return Err(Fault::Refused(format!(
                "the schema `{space}` is there, and Tithe did not make it: use another database"
            )));
        }
    }
    // Indexes, TOAST tables and row types belong to their table; everything else must have the mark.
    let foreign = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = '{space}'::regnamespace AND relkind NOT IN ('i', 't') \
         AND obj_description(oid, 'pg_class') IS DISTINCT FROM '{MARK}' \
         UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = '{space}'::regnamespace \
         AND obj_description(oid, 'pg_proc') IS DISTINCT FROM '{MARK}' \
         UNION ALL SELECT typname FROM pg_type WHERE typnamespace = '{space}'::regnamespace \
         AND typrelid = 0 AND typelem = 0"
    );
    match session.run(&foreign)?.into_iter().flatten().flatten().next() {
        None => Ok(Existing::Ours),
        Some(name) => Err(Fault::Refused(format!(
            "the schema `{space}` holds `{name}`, which Tithe did not make: use another database"
        ))),
    }
}

/// Vacuums `table`, then writes all changed pages to their files.
///
/// # Errors
/// The server's error. On an attached server, an account that may not run a checkpoint is not an error: there the
/// server's owner decides when pages are written.
pub fn quiesce(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut session = hurried(server, setup)?;
    let name = YCSB_DIALECT.qualified(&setup.space, table);
    run_unlocked(&mut session, &setup.space, &format!("VACUUM (ANALYZE) {name}"))?;
    match session.run("CHECKPOINT") {
        Err(Fault::Refused(_)) if !is_local(server) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Writes one row of each page of the table `name` again and vacuums it, on a launched server directly after a
/// checkpoint.
///
/// The first change of a page after a checkpoint logs the whole page ("full_page_writes"). An update that finds no room
/// in its page goes to another page and to the index as well. Until every page has had both, the log per operation
/// falls: on 50,000 records from 5,567 bytes to 1,754 after 11,600 updates, and further. Afterwards each page of the
/// table and its index has been logged and has room for a row, as in a table that is constantly written and vacuumed.
///
/// # Errors
/// The server's error.
pub fn precondition(server: &Server, setup: &Setup, name: &str) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    let mut session = administrator(server, setup)?;
    let column = session.value(&format!(
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{name}'::regclass AND attnum = 1"
    ))?;
    session.run(&format!(
        "UPDATE {name} SET {column} = {column} WHERE ctid = ANY(ARRAY(SELECT format('(%s,1)', page)::tid FROM \
         generate_series(0, pg_relation_size('{name}') / current_setting('block_size')::bigint - 1) AS page))"
    ))?;
    session.run(&format!("VACUUM {name}")).map(drop)
}

/// Has an attached server write all changed pages to their files.
///
/// # Errors
/// The server's error, with the rights that are missing.
pub fn write_out(server: &Server, setup: &Setup) -> Result<(), Fault> {
    if is_local(server) {
        return Ok(());
    }
    administrator(server, setup)?.run("CHECKPOINT").map(drop).map_err(|fault| match fault {
        Fault::Refused(words) => {
            Fault::Refused(format!("CHECKPOINT needs a superuser or the role pg_checkpoint: {words}"))
        }
        fault => fault,
    })
}

/// The cluster, as `initdb` numbered it, and the database in it.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<String, Fault> {
    administrator(server, setup)?
        .value("SELECT system_identifier || ' ' || current_database() FROM pg_control_system()")
}

/// The data folder of the server, if it is on this machine, is readable, and does not belong to another server: a
/// forwarded port may lead to a machine whose folder has the same name.
pub fn folder_here(session: &mut PostgresSession) -> Option<PathBuf> {
    let folder = PathBuf::from(session.value("SHOW data_directory").ok()?);
    let identifier: u64 = session.value("SELECT system_identifier FROM pg_control_system()").ok()?.parse().ok()?;
    let begun = session.value("SELECT extract(epoch FROM pg_postmaster_start_time())::bigint").ok()?.parse().ok()?;
    is_of_server(&folder, identifier, begun).then_some(folder)
}

/// How much later than in `postmaster.pid` a server says that it was started, at most, s.
const START_S: u64 = 120;

/// True if `folder` belongs to the server with this `identifier` that was started at `begun`, s since 1970. A standby
/// has its primary's identifier.
fn is_of_server(folder: &Path, identifier: u64, begun: u64) -> bool {
    // The first member of `ControlFileData` (PostgreSQL's pg_control.h) identifies the server.
    let mut begins = [0; 8];
    let read = File::open(folder.join("global/pg_control")).and_then(|mut file| file.read_exact(&mut begins));
    // The third line of the file is the start.
    let lines = fs::read_to_string(folder.join("postmaster.pid")).unwrap_or_default();
    let started = lines.lines().nth(2).and_then(|line| line.trim().parse::<u64>().ok());
    read.is_ok()
        && u64::from_ne_bytes(begins) == identifier
        && started.is_some_and(|started| started.abs_diff(begun) <= START_S)
}

/// Position in the write-ahead log, bytes.
pub fn wal_position(server: &Server, setup: &Setup) -> Option<u64> {
    let mut session = administrator(server, setup).ok()?;
    session.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").ok()?.parse().ok()
}

/// The facts that a figure depends on, as the server and the client's TLS report them. The configuration is left empty:
/// it is in the launch.
///
/// # Errors
/// The server's error.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut session = administrator(server, setup)?;
    let method = peer::method(&mut session, &PRODUCT.target(server, setup)?);
    let version = format!("PostgreSQL {}", session.value("SHOW server_version")?);
    let mut facts = BTreeMap::from([
        ("build".to_owned(), session.value("SELECT version()")?),
        ("authentication".to_owned(), method.unwrap_or_else(|_| format!("{NO_PASSWORD}, or {SOCKET_PEER}"))),
    ]);
    let names = REPORTED.map(|name| format!("'{name}'")).join(", ");
    let told = format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})");
    for row in session.run(&told)? {
        if let [Some(name), Some(value)] = row.as_slice() {
            facts.insert(name.clone(), value.clone());
        }
    }
    if let Some(checksums) = facts.get_mut("data_checksums").filter(|value| is_local(server) && *value == "off") {
        let is_default = session.value("SELECT current_setting('server_version_num')::int >= 180000")? == "t";
        checksums.push_str(if is_default { NOT_BY_DEFAULT } else { "" });
    }
    facts.insert("tls".to_owned(), tls_of(&mut session)?);
    if let Some(tls) = session.tls_facts() {
        facts.insert("tls as the client sees it".to_owned(), tls.in_words());
    }
    Ok(ArmFacts { version, facts, configuration: Vec::new() })
}

/// Pages requested from the server's buffers, over all databases (documentation, "pg_stat_database").
pub fn cache_use(server: &Server, setup: &Setup) -> Option<CacheUse> {
    let mut session = administrator(server, setup).ok()?;
    let mut number =
        |sum: &str| session.value(&format!("SELECT sum({sum})::bigint FROM pg_stat_database")).ok()?.parse().ok();
    Some(CacheUse { asked: number("blks_hit + blks_read")?, missed: number("blks_read")? })
}

/// TLS of `session` as the server sees it: `off`, or version and cipher.
///
/// # Errors
/// The server's error.
pub fn tls_of(session: &mut PostgresSession) -> Result<String, Fault> {
    session.value(
        "SELECT CASE WHEN ssl THEN concat_ws(' ', version, cipher, bits || ' bit') ELSE 'off' END \
         FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    )
}

/// What is in between if the process that answers is not the one that greeted.
pub const POOLED: &str = "a pooler answers";

/// Which hops there are. A pooler greets with its own process number, and may lend the connection to others.
///
/// # Errors
/// The server's error.
pub fn hops_of(session: &mut PostgresSession) -> Result<Hops, Fault> {
    let server = tls_of(session)?;
    let own = session.tls_facts().map(|tls| tls.suite());
    let process = session.value("SELECT pg_backend_pid()")?;
    let is_pooled = session.greeting().process.is_none_or(|own| own.to_string() != process);
    Ok(Hops::of(own, server, is_pooled.then_some(POOLED), "pg_stat_ssl"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        postgres::told::server,
        test_setup::plain,
        told::{Answer, Rows, Told},
    };

    /// A server whose schema has this mark, these objects without one, and so many that are left.
    fn with_schema(mark: Rows, foreign: Rows, left: Rows) -> Told {
        let answers: Vec<Answer> = vec![
            ("obj_description(oid, 'pg_namespace')", Ok(mark)),
            ("SELECT relname FROM pg_class", Ok(foreign)),
            ("DROP TABLE", Ok(&[])),
            ("SELECT count(*) FROM pg_class", Ok(left)),
            ("DROP SCHEMA", Ok(&[])),
        ];
        server(Vec::new(), answers)
    }

    fn removed_from(told: Told) -> Result<(), Fault> {
        let table = Table { name: "usertable".to_owned(), fields: 1, field_prefix: "field".to_owned() };
        told.seen(|server| remove(server, &plain(), &table))
    }

    #[test]
    fn a_schema_is_removed_if_tithe_made_it_and_nothing_else_is_left_in_it() {
        const GOES: (&str, &str) = ("XX000", "it goes");
        let (ours, none, one): (Rows, Rows, Rows) = (&[&[MARK]], &[], &[&["1"]]);
        let zero: Rows = &[&["0"]];
        assert_eq!(removed_from(with_schema(none, none, zero).failing("DROP", GOES)), Ok(()));
        let foreign: [(Rows, Rows); 3] = [(&[&["mine"]], none), (&[&[""]], none), (ours, &[&["orders"]])];
        for (mark, objects) in foreign {
            let asked = removed_from(with_schema(mark, objects, zero).failing("DROP", GOES));
            assert!(matches!(asked, Err(Fault::Refused(_))), "{mark:?} {objects:?}: {asked:?}");
        }
        for words in ["DROP TABLE", "DROP SCHEMA"] {
            let asked = removed_from(with_schema(ours, none, zero).failing(words, GOES));
            assert!(matches!(asked, Err(Fault::Server(_))), "{words}: {asked:?}");
        }
        assert_eq!(removed_from(with_schema(ours, none, one).failing("DROP SCHEMA", GOES)), Ok(()));
        let told = with_schema(ours, none, zero).failing("DROP TABLE", ("55P03", "canceling statement"));
        let asked = removed_from(told.telling("string_agg", &[&["process 7 of ann psql"]]));
        let held = |words: &str| words.contains("held by process 7 of ann psql: ");
        assert!(matches!(&asked, Err(Fault::Refused(words)) if held(words)), "{asked:?}");
    }

    #[test]
    fn a_role_that_tithe_created_is_removed_unless_it_is_still_used() {
        let removed = |mark: Rows, code: &'static str| {
            let told = with_schema(&[&[MARK]], &[], &[&["0"]]).telling("shobj_description(oid, 'pg_authid')", mark);
            removed_from(told.failing("DROP ROLE", (code, "it cannot be dropped")))
        };
        let asked = removed(&[&[MARK]], "XX000");
        assert!(matches!(asked, Err(Fault::Server(_))), "{asked:?}");
        let left: [(Rows, &str); 4] =
            [(&[&[MARK]], "2BP01"), (&[&[MARK]], "42501"), (&[&["mine"]], "XX000"), (&[], "XX000")];
        for (mark, code) in left {
            assert_eq!(removed(mark, code), Ok(()), "{mark:?} {code}");
        }
    }

    #[test]
    fn a_folder_of_a_standby_is_not_that_of_its_primary() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
        fs::create_dir(folder.path().join("global")).expect("made");
        write("global/pg_control", &[&7u64.to_ne_bytes()[..], b"more"].concat());
        assert!(!is_of_server(folder.path(), 7, 1000), "no server runs on it");
        write("postmaster.pid", b"4711\n/data\n1000\n5432\n");
        assert!(is_of_server(folder.path(), 7, 1002));
        assert!(!is_of_server(folder.path(), 8, 1000) && !is_of_server(folder.path(), 7, 9000));
    }

    #[test]
    fn a_table_has_a_text_key_and_byte_fields() {
        let table = Table { name: "usertable".to_owned(), fields: 2, field_prefix: "field".to_owned() };
        expect![[
            r#"CREATE TABLE "tithe"."usertable" ("ycsb_key" text COLLATE "C" PRIMARY KEY, "field0" bytea, "field1" bytea)"#
        ]]
        .assert_eq(&table_text("tithe", &table));
    }
}
