//! Where the records are, and everything else that an administrator's connection does with them.
//!
//! Tithe works in its own keyspace, `tithe`, which holds a marker table. On an attached cluster the user may name
//! another keyspace, in which Tithe only uses its own table. If several arms share a cluster, their keyspaces have the
//! same name with a number at the end. A table is Tithe's if its comment marks it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    launch::Server,
    secret::{Secret, hex},
};
use tithe_model::record::ArmFacts;
use tithe_plugin::{
    checks::{canary::KEY_PREFIX, needles::Needles},
    session::Table,
    setup::{Authentication, SPACE, Setup},
};

use super::{
    cluster::Cluster,
    connection::{CqlConnection, DRIVER},
    target::{ADMINISTRATOR, KEYSPACE, USER, of_administrator, of_clients},
};
use crate::target::{Target, is_local};

/// Name of the key's column, as in YCSB's own schema.
pub const KEY: &str = "y_id";
/// Comment of every table that Tithe creates.
const MARK: &str = "made by tithe";
/// The table that marks a keyspace as Tithe's.
const MARKER: &str = "tithe_made_this";
/// How long a server may take to write its tables to their files, or to create its first account.
const TIMEOUT: Duration = Duration::from_secs(180);
/// How long to wait until all nodes know of a change to the tables: as long as Cassandra's own drivers wait.
const AGREEMENT: Duration = Duration::from_secs(10);

/// Settings whose values go into the report, if the server has them. None of them is a secret. Where two names are
/// given, newer versions use the second.
const REPORTED: [&str; 26] = [
    "audit_logging_options_enabled",
    "authenticator",
    "authenticator.class_name",
    "authorizer",
    "authorizer.class_name",
    "client_encryption_options.accepted_protocols",
    "client_encryption_options.enabled",
    "client_encryption_options.optional",
    "commitlog_segment_size",
    "commitlog_sync",
    "commitlog_sync_period",
    "concurrent_compactors",
    "concurrent_reads",
    "concurrent_writes",
    "credentials_validity",
    "disk_access_mode",
    "endpoint_snitch",
    "key_cache_size",
    "memtable_allocation_type",
    "memtable_heap_space",
    "memtable_offheap_space",
    "native_transport_max_threads",
    "num_tokens",
    "permissions_validity",
    "roles_validity",
    "server_encryption_options_internode_encryption",
];

/// `table` with its keyspace, for a statement.
pub fn qualified(keyspace: &str, table: &Table) -> String {
    format!("{}.{}", quoted(keyspace), quoted(&table.name))
}

/// The column of a field, for a statement.
pub fn field_of(table: &Table, field: usize) -> String {
    quoted(&table.field(field))
}

/// A name quoted for CQL, whatever it contains.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text quoted for CQL.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A connection that is not measured. On a launched server that asks for passwords, the first one creates the accounts.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<CqlConnection, Fault> {
    let target = of_administrator(server, setup)?;
    match CqlConnection::open(&target) {
        Err(Fault::Refused(_)) if is_local(server) && has_accounts(setup) => {
            make_accounts(&target)?;
            CqlConnection::open(&target)
        }
        other => other,
    }
}

fn has_accounts(setup: &Setup) -> bool {
    matches!(setup.authentication, Authentication::Password { .. })
}

/// The default account of every new cluster, with its default password (documentation, "Security").
pub fn well_known(target: &Target) -> Target {
    Target { user: "cassandra".to_owned(), password: Some(Secret::new("cassandra")), ..target.clone() }
}

/// Creates the administrator's account and the clients', then closes the default account.
fn make_accounts(administrator: &Target) -> Result<(), Fault> {
    let password = administrator.password.as_ref().map(|password| text(password.expose_text())).unwrap_or_default();
    let mut connection = CqlConnection::open(&well_known(administrator))?;
    for (name, superuser) in [(USER, false), (ADMINISTRATOR, true)] {
        connection.run(&format!(
            "CREATE ROLE IF NOT EXISTS {name} WITH PASSWORD = {password} AND LOGIN = true AND SUPERUSER = {superuser}"
        ))?;
    }
    // A role may not close itself: the new administrator does.
    let unknown = Secret::random_text(32);
    CqlConnection::open(administrator)?.run(&format!(
        "ALTER ROLE cassandra WITH PASSWORD = {} AND SUPERUSER = false AND LOGIN = false",
        text(unknown.expose_text())
    ))?;
    Ok(())
}

/// Creates `table`, and its keyspace if needed. Leftovers of a killed run are replaced.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let keyspace = of_administrator(server, setup)?.database;
    let mut connection = administrator(server, setup)?;
    let cluster = Cluster::of(setup)?;
    if existing(&mut connection, &keyspace, setup, table)? == Existing::NoKeyspace {
        make_keyspace(&mut connection, &keyspace, cluster.replication)?;
    }
    define(&mut connection, &format!("DROP TABLE IF EXISTS {}", qualified(&keyspace, table)))?;
    define(&mut connection, &table_text(&keyspace, table, setup))?;
    if is_local(server) && has_accounts(setup) {
        connection.run(&format!("GRANT SELECT ON KEYSPACE {} TO {USER}", quoted(&keyspace)))?;
        connection.run(&format!("GRANT MODIFY ON KEYSPACE {} TO {USER}", quoted(&keyspace)))?;
        // The server may cache earlier answers for as long as it caches permissions.
        std::thread::sleep(Duration::from_millis(2100));
    }
    if is_local(server) {
        setup.statements.iter().try_for_each(|statement| connection.run(statement).map(drop))?;
    }
    Ok(())
}

/// Creates `keyspace` with its marker table. If that fails, the keyspace is removed again: without the table, Tithe
/// would not recognise it later.
fn make_keyspace(connection: &mut CqlConnection, keyspace: &str, replication: usize) -> Result<(), Fault> {
    let name = quoted(keyspace);
    let strategy = format!("{{'class': 'SimpleStrategy', 'replication_factor': {replication}}}");
    define(connection, &format!("CREATE KEYSPACE {name} WITH replication = {strategy}"))?;
    let marker = format!("CREATE TABLE {name}.{MARKER} ({KEY} text PRIMARY KEY) WITH comment = {}", text(MARK));
    let marked = define(connection, &marker);
    let is_marker = |(name, _): &(String, String)| name == MARKER;
    if marked.is_err() && tables(connection, keyspace).is_ok_and(|tables| tables.iter().all(is_marker)) {
        // The error of marking is more useful than that of removing.
        let _ = define(connection, &format!("DROP KEYSPACE {name}"));
    }
    marked
}

/// Changes the schema, and waits until every node knows: until then a node refuses related requests of the others. A
/// node that is down never answers; the statements that follow report the consequences.
fn define(connection: &mut CqlConnection, statement: &str) -> Result<(), Fault> {
    connection.run(statement)?;
    let begun = Instant::now();
    while begun.elapsed() < AGREEMENT {
        let own = connection.run("SELECT schema_version FROM system.local")?;
        let others = connection.run("SELECT schema_version FROM system.peers_v2")?;
        if others.iter().all(|other| Some(other) == own.first()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Fields are text, as in YCSB's schema, except those that clients encrypt: ciphertext is bytes.
fn table_text(keyspace: &str, table: &Table, setup: &Setup) -> String {
    let encrypted = encrypted(setup, table);
    let kind = |field| if encrypted.contains(&field) { "blob" } else { "text" };
    let fields: String =
        (0..table.fields).map(|field| format!(", {} {}", field_of(table, field), kind(field))).collect();
    let name = qualified(keyspace, table);
    format!("CREATE TABLE {name} ({KEY} text PRIMARY KEY{fields}) WITH comment = {}", text(MARK))
}

/// The fields that clients encrypt.
fn encrypted(setup: &Setup, table: &Table) -> Vec<usize> {
    setup.columns.as_ref().map_or_else(Vec::new, |columns| columns.selection().of(table))
}

/// Removes `table`, and the keyspace if Tithe created it and nothing else is left in it.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let keyspace = of_administrator(server, setup)?.database;
    let mut connection = administrator(server, setup)?;
    if existing(&mut connection, &keyspace, setup, table)? == Existing::NoKeyspace {
        return Ok(());
    }
    define(&mut connection, &format!("DROP TABLE IF EXISTS {}", qualified(&keyspace, table)))?;
    if let [(name, comment)] = tables(&mut connection, &keyspace)?.as_slice()
        && name == MARKER
        && comment == MARK
        && !has_definitions(&mut connection, &keyspace)?
    {
        define(&mut connection, &format!("DROP KEYSPACE {}", quoted(&keyspace)))?;
    }
    Ok(())
}

/// True if `keyspace` has types, functions or aggregates: Tithe creates none.
fn has_definitions(connection: &mut CqlConnection, keyspace: &str) -> Result<bool, Fault> {
    for kind in ["types", "functions", "aggregates"] {
        let asked = format!("SELECT keyspace_name FROM system_schema.{kind} WHERE keyspace_name = {}", text(keyspace));
        if !connection.texts(&asked)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What exists in the place where Tithe works.
#[derive(Debug, PartialEq, Eq)]
enum Existing {
    NoKeyspace,
    Usable,
}

fn existing(connection: &mut CqlConnection, keyspace: &str, setup: &Setup, table: &Table) -> Result<Existing, Fault> {
    let there = format!("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = {}", text(keyspace));
    if connection.texts(&there)?.is_empty() {
        return Ok(Existing::NoKeyspace);
    }
    let tables = tables(connection, keyspace)?;
    let foreign = |what: &str| Err(Fault::Refused(format!("{what} is on this server, and Tithe did not make it")));
    if tables.iter().any(|(name, comment)| *name == table.name && comment != MARK) {
        return foreign(&format!("a table `{keyspace}.{}`", table.name));
    }
    // A keyspace that the user named may be anyone's; a numbered one must be Tithe's.
    if (keyspace == KEYSPACE || setup.space != SPACE) && tables.iter().all(|(name, _)| name != MARKER) {
        return foreign(&format!("a keyspace `{keyspace}`"));
    }
    Ok(Existing::Usable)
}

/// Names and comments of all tables in `keyspace`.
fn tables(connection: &mut CqlConnection, keyspace: &str) -> Result<Vec<(String, String)>, Fault> {
    let statement =
        format!("SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = {}", text(keyspace));
    let pair = |row: Vec<String>| <[String; 2]>::try_from(row).unwrap_or_default().into();
    Ok(connection.texts(&statement)?.into_iter().map(pair).collect())
}

/// Has every node of a launched cluster write `table` to its files. On an attached cluster its owner decides when that
/// is done.
///
/// There is no statement for it, and the command for it needs a management port, which Tithe's servers do not open. But
/// a table can be flushed periodically: a period of a millisecond is set, and removed once the files hold the latest
/// writes.
///
/// # Errors
/// The server's error; [`Fault::Server`] if it does not become idle in time.
pub fn quiesce(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    let mut connection = administrator(server, setup)?;
    let keyspace = of_administrator(server, setup)?.database;
    let name = qualified(&keyspace, table);
    let folders: Vec<PathBuf> = server.paths.data.iter().map(|data| data.join(&keyspace)).collect();
    let before = folders.iter().map(|folder| written(folder, table)).collect::<Vec<_>>();
    let tokens: Vec<Secret> = (0..Cluster::of(setup)?.marks()).map(|_| Secret::random_text(32)).collect();
    let column = field_of(table, 0);
    for (number, token) in tokens.iter().enumerate() {
        let key = text(&format!("{KEY_PREFIX}-settled-{number}"));
        let bytes = encrypted(setup, table).contains(&0);
        let value = if bytes { format!("0x{}", token.expose_hex()) } else { text(token.expose_text()) };
        connection.run(&format!("INSERT INTO {name} ({KEY}, {column}) VALUES ({key}, {value})"))?;
    }
    define(&mut connection, &format!("ALTER TABLE {name} WITH memtable_flush_period_in_ms = 1"))?;
    let outcome = folders.iter().zip(&before).try_for_each(|(folder, before)| {
        let begun = Instant::now();
        while !holds(folder, table, before, &tokens) {
            if begun.elapsed() > TIMEOUT {
                let what = folder.display();
                return Err(Fault::Server(format!("{what} is not written after {} s", TIMEOUT.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    });
    define(&mut connection, &format!("ALTER TABLE {name} WITH memtable_flush_period_in_ms = 0"))?;
    outcome
}

/// The data files of `table` below `folder` that are complete: their table of contents is written last.
fn written(folder: &Path, table: &Table) -> Vec<PathBuf> {
    let prefix = format!("{}-", table.name);
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_of_table = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    let files = entries(folder).filter(is_of_table).flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let data = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix("-TOC.txt")?.to_owned();
        Some(path.with_file_name(format!("{name}-Data.db")))
    });
    data.collect()
}

/// True if a complete file of `table` that was not there `before` holds one of `tokens`. One of them may be cut in two
/// by the end of a block, or because the file's compression found four of its bytes earlier in the block.
fn holds(folder: &Path, table: &Table, before: &[PathBuf], tokens: &[Secret]) -> bool {
    let needles = Needles::new(tokens.iter().map(|token| ("token", token.expose())));
    written(folder, table).into_iter().filter(|path| !before.contains(path)).any(|path| {
        // A file that was merged into another one in the meantime is gone.
        let found = fs::File::open(&path).and_then(|mut file| needles.count_in(&mut file));
        found.is_ok_and(|(tally, _)| tally.hits() > 0)
    })
}

/// The cluster, whichever of its nodes answers: they all serve the same tables. Its name does not identify it, because
/// most clusters keep the default name.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    let mut connection = administrator(server, setup)?;
    let local = connection.run("SELECT host_id FROM system.local")?;
    let others = connection.run("SELECT host_id FROM system.peers_v2")?;
    Ok(cluster_of(local.into_iter().chain(others)))
}

/// The smallest of the host ids of a cluster's nodes.
fn cluster_of(nodes: impl Iterator<Item = Vec<Option<Vec<u8>>>>) -> Option<String> {
    nodes.flatten().flatten().min().map(|least| hex(&least))
}

/// The facts that a figure depends on, as the server and the client's TLS report them.
///
/// # Errors
/// The server's error; [`Fault::Wrong`] when it does not say its version.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut connection = administrator(server, setup)?;
    let cluster = Cluster::of(setup)?;
    let local = "SELECT release_version, cql_version, partitioner FROM system.local";
    let told = connection.texts(local)?.into_iter().next().and_then(|row| <[String; 3]>::try_from(row).ok());
    let Some([version, cql, partitioner]) = told.filter(|told| !told[0].is_empty()) else {
        return Err(Fault::Wrong("the server does not report its version".to_owned()));
    };
    let others = connection.run("SELECT peer FROM system.peers_v2")?.len();
    if is_local(server) && others + 1 < cluster.nodes {
        return Err(Fault::Connection(format!("{} of {} nodes are there", others + 1, cluster.nodes)));
    }
    let mut facts = BTreeMap::from([
        ("consistency".to_owned(), cluster.level_name.clone()),
        ("cql".to_owned(), cql),
        ("nodes".to_owned(), (others + 1).to_string()),
        ("partitioner".to_owned(), partitioner.rsplit('.').next().unwrap_or_default().to_owned()),
    ]);
    match settings(&mut connection) {
        Ok(settings) => {
            if let Some(words) = snapshots(&settings).filter(|_| !is_local(server)) {
                facts.insert("tables that Tithe drops".to_owned(), words.to_owned());
            }
            facts.extend(settings.into_iter().filter(|(name, _)| REPORTED.contains(&name.as_str())));
        }
        Err(Fault::Refused(_) | Fault::Server(_)) if !is_local(server) => {}
        Err(fault) => return Err(fault),
    }
    let java = "SELECT name, value FROM system_views.system_properties WHERE name IN ('java.version', 'java.vm.name')";
    if let Ok(properties) = connection.texts(java) {
        facts.extend(properties.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)));
    }
    facts.insert("authentication".to_owned(), connection.method().to_owned());
    let tls = connection.tls_facts().map(|tls| tls.in_words());
    facts.insert("tls as the client sees it".to_owned(), tls.unwrap_or_else(|| "off".to_owned()));
    Ok(ArmFacts { version: format!("Apache Cassandra {version}"), facts, configuration: Vec::new() })
}

/// What stays on the disks of an attached cluster with these settings when a table is dropped, and how to remove it.
fn snapshots(settings: &BTreeMap<String, String>) -> Option<&'static str> {
    let kept = settings.get("auto_snapshot").is_some_and(|value| value == "true");
    kept.then_some("each leaves a snapshot on every node (auto_snapshot = true): `nodetool clearsnapshot` removes them")
}

/// The server's settings, as it reports them.
///
/// # Errors
/// The server's error.
pub fn settings(connection: &mut CqlConnection) -> Result<BTreeMap<String, String>, Fault> {
    let rows = connection.texts("SELECT name, value FROM system_views.settings")?;
    Ok(rows.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)).collect())
}

/// What the server reports about TLS on Tithe's open connections: `off`, or version and cipher of each kind.
///
/// # Errors
/// The server's error.
pub fn tls_of(connection: &mut CqlConnection) -> Result<String, Fault> {
    let clients = "SELECT driver_name, ssl_protocol, ssl_cipher_suite FROM system_views.clients";
    let rows = connection.texts(clients)?.into_iter().filter_map(|row| <[String; 3]>::try_from(row).ok());
    let ours = rows.filter(|[driver, ..]| driver == DRIVER);
    let said = |[_, version, cipher]: [String; 3]| {
        if version.is_empty() { "off".to_owned() } else { format!("{version} {cipher}") }
    };
    let kinds: std::collections::BTreeSet<String> = ours.map(said).collect();
    Ok(match kinds.len() {
        0 => "no connection of Tithe's".to_owned(),
        // `off` would sort after a version, and must not.
        _ if kinds.contains("off") => "off".to_owned(),
        _ => kinds.into_iter().collect::<Vec<_>>().join(", "),
    })
}

/// As [`tls_of`], seen through a connection to `server` as the clients open it.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn tls_of_clients(server: &Server, setup: &Setup) -> Result<String, Fault> {
    let _client = CqlConnection::open(&of_clients(server, setup)?)?;
    tls_of(&mut administrator(server, setup)?)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        cassandra::told::tight,
        test_setup::plain,
        told::{Rows, Told},
    };

    fn table() -> Table {
        Table { name: "usertable".to_owned(), fields: 2, field_prefix: "field".to_owned() }
    }

    /// A node with a keyspace that has these tables, each with its comment.
    fn with_tables(tables: Rows) -> Told {
        tight().telling("FROM system_schema.keyspaces", &[&["it"]]).telling("FROM system_schema.tables", tables)
    }

    #[test]
    fn objects_of_others_are_refused() {
        let seen = |told: Told, keyspace: &str, space: &str| {
            let setup = Setup { space: space.to_owned(), ..plain() };
            told.seen(|server| {
                let mut connection = administrator(server, &setup).expect("a connection");
                existing(&mut connection, keyspace, &setup, &table()).map_err(|fault| fault.to_string())
            })
        };
        let foreign = |what: &str| Err(format!("refused: {what} is on this server, and Tithe did not make it"));
        let nothing = tight().telling("FROM system_schema.keyspaces", &[]);
        assert_eq!(seen(nothing, "tithe", SPACE), Ok(Existing::NoKeyspace));
        let (marked, bare): (Rows, Rows) = (&[&[MARKER, MARK], &["usertable", MARK]], &[&["usertable", MARK]]);
        assert_eq!(seen(with_tables(marked), "tithe", SPACE), Ok(Existing::Usable));
        assert_eq!(seen(with_tables(bare), "tithe", SPACE), foreign("a keyspace `tithe`"));
        // A keyspace that the user named is used beside what is in it, a numbered one is Tithe's.
        assert_eq!(seen(with_tables(&[&["orders", "mine"]]), "shop", SPACE), Ok(Existing::Usable));
        assert_eq!(seen(with_tables(bare), "shop", SPACE), Ok(Existing::Usable));
        assert_eq!(seen(with_tables(bare), "shop_2", "tithe_2"), foreign("a keyspace `shop_2`"));
        assert_eq!(seen(with_tables(marked), "shop_2", "tithe_2"), Ok(Existing::Usable));
        let theirs = with_tables(&[&["usertable", "mine"], &[MARKER, MARK]]);
        assert_eq!(seen(theirs.clone(), "shop", SPACE), foreign("a table `shop.usertable`"));
        assert_eq!(seen(theirs, "tithe", SPACE), foreign("a table `tithe.usertable`"));
    }

    #[test]
    fn a_keyspace_is_removed_if_tithe_made_it_and_nothing_else_is_left_in_it() {
        let definitions = ["FROM system_schema.types", "FROM system_schema.functions", "FROM system_schema.aggregates"];
        let with = |tables: Rows| {
            let told = with_tables(tables).telling("DROP TABLE", &[]).telling("SELECT schema_version", &[]);
            let told = definitions.iter().fold(told, |told, words| told.telling(words, &[]));
            told.failing("DROP KEYSPACE", ("2200", "it is to be removed"))
        };
        let removed = |told: Told| {
            let outcome = told.seen(|server| remove(server, &plain(), &table()));
            outcome.map_err(|fault| fault.to_string())
        };
        let dropped = Err("server: 0x2200: it is to be removed".to_owned());
        assert_eq!(removed(with(&[&[MARKER, MARK]])), dropped);
        assert_eq!(removed(with(&[&[MARKER, MARK], &["other", MARK]])), Ok(()));
        assert_eq!(removed(with(&[&[MARKER, "mine"]])), Ok(()));
        for words in definitions {
            assert_eq!(removed(with(&[&[MARKER, MARK]]).telling(words, &[&["it"]])), Ok(()), "{words}");
        }
        let foreign = with(&[&["usertable", "mine"], &[MARKER, MARK]]).failing("DROP TABLE", ("2200", "theirs"));
        assert!(removed(foreign).is_err_and(|words| words.starts_with("refused: a table")));
        let nothing = tight().telling("FROM system_schema.keyspaces", &[]);
        assert_eq!(removed(nothing.failing("DROP", ("2200", "there is nothing"))), Ok(()));
    }

    #[test]
    fn a_table_has_fields_of_text_and_ciphertext_of_bytes() {
        expect![[r#"CREATE TABLE "tithe"."usertable" (y_id text PRIMARY KEY, "field0" text, "field1" text) WITH comment = 'made by tithe'"#]].assert_eq(&table_text("tithe", &table(), &plain()));
        let mut setup = plain();
        setup.columns = Some(tithe_plugin::setup::Columns::of_share(0.5, setup.credentials.key.clone()));
        expect![[r#"CREATE TABLE "sh""op"."usertable" (y_id text PRIMARY KEY, "field0" blob, "field1" text) WITH comment = 'made by tithe'"#]].assert_eq(&table_text("sh\"op", &table(), &setup));
    }

    #[test]
    fn every_node_of_a_cluster_tells_the_same_cluster() {
        let seen_from = |nodes: &[u8]| cluster_of(nodes.iter().map(|node| vec![Some(vec![*node; 2])]));
        assert_eq!(seen_from(&[2, 1, 3]), Some("0101".to_owned()));
        assert_eq!(seen_from(&[3, 2, 1]), seen_from(&[2, 1, 3]));
        assert_ne!(seen_from(&[4]), seen_from(&[1]));
        assert_eq!(seen_from(&[]), None);
    }

    #[test]
    fn what_stays_of_dropped_tables_is_told() {
        let told = |value: &str| snapshots(&BTreeMap::from([("auto_snapshot".to_owned(), value.to_owned())]));
        expect![[r#"Some("each leaves a snapshot on every node (auto_snapshot = true): `nodetool clearsnapshot` removes them")"#]]
            .assert_eq(&format!("{:?}", told("true")));
        assert_eq!(told("false"), None);
        assert_eq!(snapshots(&BTreeMap::new()), None);
    }

    #[test]
    fn only_complete_files_count_as_written() {
        let tokens = [Secret::random_text(32), Secret::random_text(32)];
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("usertable-0123");
        fs::create_dir(&below).expect("a folder");
        fs::create_dir(folder.path().join("other-0123")).expect("a folder");
        let data = below.join("nb-2-big-Data.db");
        fs::write(&data, [b"..", tokens[1].expose(), b".."].concat()).expect("written");
        assert!(!holds(folder.path(), &table(), &[], &tokens));
        fs::write(below.join("nb-2-big-TOC.txt"), b"").expect("written");
        assert!(holds(folder.path(), &table(), &[], &tokens));
        assert!(!holds(folder.path(), &table(), &[], &tokens[..1]));
        assert!(!holds(folder.path(), &table(), &[data], &tokens));
    }
}
