//! Where the records are, and everything else that an administrator's connection does with them.
//!
//! Every key of Tithe is called `tithe` or begins with `tithe:` (or a similar name for each arm if several arms share a
//! server, of which `tithe` is the first). The value [`MARK`] of the key `tithe` marks these names as Tithe's. If such
//! names exist without the mark, they belong to someone else: they are refused, and never removed.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::{quantity::size, record::ArmFacts};
use tithe_plugin::{database::Condition, session::Table, setup::Setup};

use super::{
    connection::{RedisConnection, Reply},
    target::{of_administrator, of_clients},
};
use crate::target::is_local;

/// The value of the key with the space's name.
const MARK: &str = "made by tithe";
/// Records removed at a time.
const REMOVED_AT_ONCE: &str = "999";

/// How long a server may take to rewrite its append-only file.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Settings whose values go into the report, if the server has them. None of them is a secret.
const REPORTED: [&str; 16] = [
    "aof-use-rdb-preamble",
    "appendfsync",
    "appendonly",
    "auto-aof-rewrite-percentage",
    "hash-max-listpack-value",
    "hz",
    "io-threads",
    "maxmemory",
    "maxmemory-policy",
    "no-appendfsync-on-rewrite",
    "port",
    "save",
    "tls-auth-clients",
    "tls-ciphersuites",
    "tls-port",
    "tls-protocols",
];

/// Before the key of each record of `table`.
pub fn prefix_of(space: &str, table: &Table) -> String {
    format!("{space}:{}:", table.name)
}

/// The sorted set with the keys of all records of `table`.
pub fn index_of(space: &str, table: &Table) -> String {
    format!("{space}:{}", table.name)
}

/// A connection that is not measured. It runs none of the statements of the clients' sessions.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<RedisConnection, Fault> {
    RedisConnection::open(&of_administrator(server, setup)?)
}

/// Marks the names of `table` as Tithe's own. On a server that Tithe launched, runs the arm's own commands first.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut connection = administrator(server, setup)?;
    if is_local(server) {
        for statement in &setup.statements {
            connection.run(statement)?;
        }
    }
    let space = &setup.space;
    let existing = existing(&mut connection, space)?;
    if existing == Existing::Ours {
        // Left over from a run that was killed.
        clear(&mut connection, space, table)?;
    }
    if !is_local(server) {
        await_room(&mut connection, setup.data_bytes)?;
    }
    if existing == Existing::Nothing {
        connection.call(&["SET", space, MARK])?;
    }
    Ok(())
}

/// True if an attached server still has the mark.
///
/// # Errors
/// As [`create`].
pub fn keeps_records(server: &Server, setup: &Setup) -> Result<bool, Fault> {
    Ok(existing(&mut administrator(server, setup)?, &setup.space)? == Existing::Ours)
}

/// Checks whether an attached server has room for so many bytes of data, after it has freed removed keys.
///
/// # Errors
/// [`Fault::Refused`] if it does not; the server's error.
fn await_room(connection: &mut RedisConnection, data_bytes: u64) -> Result<(), Fault> {
    let begun = Instant::now();
    loop {
        let mut told = |name: &str| info(connection, "memory", name).map(Option::unwrap_or_default);
        // Read first, so that the used memory is from a time when nothing was left to free.
        let frees = told("lazyfree_pending_objects")?.parse().is_ok_and(|objects: u64| objects > 0);
        let (used, most, policy) = (told("used_memory")?, told("maxmemory")?, told("maxmemory_policy")?);
        let looked = room(used.parse().unwrap_or(0), most.parse().unwrap_or(0), &policy, data_bytes);
        if looked.is_ok() || !frees || begun.elapsed() > TIMEOUT {
            return looked;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Checks whether so many bytes of data fit below `most_bytes` of memory, of which `used_bytes` are used; zero is no
/// limit. Beyond the limit the server follows its `policy`: it removes keys of any client, or accepts no more writes.
fn room(used_bytes: u64, most_bytes: u64, policy: &str, data_bytes: u64) -> Result<(), Fault> {
    // Names, the sorted set of the keys and the allocator add to what clients send.
    let needed_bytes = data_bytes.saturating_mul(2);
    if most_bytes == 0 || used_bytes.saturating_add(needed_bytes) <= most_bytes {
        return Ok(());
    }
    let [used, most, needed] = [used_bytes, most_bytes, needed_bytes].map(size);
    let comes = match policy {
        "noeviction" => "what goes beyond is refused to every client".to_owned(),
        policy => format!("what goes beyond removes keys of others ({policy})"),
    };
    Err(Fault::Refused(format!(
        "its memory has no room for the data: {used} of {most} (maxmemory) are used, the data may take {needed}, and \
         {comes}: load fewer records, or measure a server with more memory"
    )))
}

/// Removes the records of `table`, and the mark if nothing else of Tithe is left.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, space) = (administrator(server, setup)?, &setup.space);
    if existing(&mut connection, space)? == Existing::Nothing {
        return Ok(());
    }
    clear(&mut connection, space, table)?;
    if find_other(&mut connection, space)?.is_none() {
        connection.call(&["DEL", space])?;
    }
    Ok(())
}

/// What exists in the place where Tithe works.
#[derive(Debug, PartialEq, Eq)]
enum Existing {
    Nothing,
    Ours,
}

fn existing(connection: &mut RedisConnection, space: &str) -> Result<Existing, Fault> {
    let foreign = |what: &str| Fault::Refused(format!("{what} is on this server, and Tithe did not make it"));
    match connection.call(&["GET", space]) {
        Ok(Reply::Value(mark)) if mark == MARK.as_bytes() => Ok(Existing::Ours),
        Ok(Reply::Nothing) => match find_other(connection, space)? {
            Some(name) => Err(foreign(&format!("a key `{name}`"))),
            None => Ok(Existing::Nothing),
        },
        Ok(_) => Err(foreign(&format!("a key `{space}`"))),
        Err(Fault::Server(words)) if words.starts_with("WRONGTYPE") => Err(foreign(&format!("a key `{space}`"))),
        Err(fault) => Err(fault),
    }
}

/// Some key that begins with `space` and a colon; searches all keys of the database.
fn find_other(connection: &mut RedisConnection, space: &str) -> Result<Option<String>, Fault> {
    let (mut cursor, pattern) = ("0".to_owned(), format!("{space}:*"));
    loop {
        let Reply::Array(answer) = connection.call(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"])? else {
            return Err(Fault::Protocol("SCAN gave no array".to_owned()));
        };
        if let Some(Reply::Array(keys)) = answer.get(1)
            && let Some(key) = keys.first().and_then(Reply::text)
        {
            return Ok(Some(key));
        }
        cursor = answer.first().and_then(Reply::text).unwrap_or_default();
        if cursor == "0" {
            return Ok(None);
        }
    }
}

/// Removes every record that the index names, and the index.
fn clear(connection: &mut RedisConnection, space: &str, table: &Table) -> Result<(), Fault> {
    let (prefix, index) = (prefix_of(space, table).into_bytes(), index_of(space, table));
    while let Reply::Array(keys) = connection.call(&["ZRANGE", &index, "0", REMOVED_AT_ONCE])? {
        if keys.is_empty() {
            break;
        }
        let keys: Vec<&[u8]> =
            keys.iter().filter_map(|key| if let Reply::Value(key) = key { Some(&key[..]) } else { None }).collect();
        let records: Vec<Vec<u8>> = keys.iter().map(|key| [&prefix[..], key].concat()).collect();
        let unlink: Vec<&[u8]> = [&b"UNLINK"[..]].into_iter().chain(records.iter().map(Vec::as_slice)).collect();
        connection.call_bytes(&unlink)?;
        let forget: Vec<&[u8]> = [&b"ZREM"[..], index.as_bytes()].into_iter().chain(keys).collect();
        connection.call_bytes(&forget)?;
    }
    Ok(())
}

/// The run of the server, and the database in it.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    let database = of_administrator(server, setup)?.database;
    let run = info(&mut administrator(server, setup)?, "server", "run_id")?;
    Ok(run.map(|run| format!("{run} {database}")))
}

/// Writes everything in memory to the data file of a launched server. On an attached one its owner decides that.
///
/// # Errors
/// The server's error.
pub fn quiesce(server: &Server, setup: &Setup) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    administrator(server, setup)?.call(&["SAVE"]).map(drop)
}

/// Has the server rewrite its append-only file, if it has one. A file that begins with a snapshot is read like a
/// snapshot, faster than one command per record, and the records are then laid out in memory as on a server without the
/// file.
///
/// # Errors
/// The server's error; [`Fault::Server`] when the file is not written in time.
pub fn condense(server: &Server, setup: &Setup) -> Result<(), Fault> {
    let mut connection = administrator(server, setup)?;
    let mut told = |name: &str| info(&mut connection, "persistence", name).map(Option::unwrap_or_default);
    if told("aof_enabled")? != "1" {
        return Ok(());
    }
    administrator(server, setup)?.call(&["BGREWRITEAOF"])?;
    let begun = Instant::now();
    while told("aof_rewrite_in_progress")? != "0" || told("aof_rewrite_scheduled")? != "0" {
        if begun.elapsed() > TIMEOUT {
            let waited = TIMEOUT.as_secs();
            return Err(Fault::Server(format!("the append-only file is not rewritten after {waited} s")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    match told("aof_last_bgrewrite_status")?.as_str() {
        "ok" => Ok(()),
        status => Err(Fault::Server(format!("the append-only file was not rewritten: {status}"))),
    }
}

/// How many keys it has removed to make room for others: reads of them find nothing.
pub fn condition(server: &Server, setup: &Setup) -> Option<Condition> {
    let evicted = info(&mut administrator(server, setup).ok()?, "stats", "evicted_keys").ok()??;
    Some(Condition { what: "keys removed to make room for others (maxmemory)", now: evicted })
}

/// One value of `INFO`.
///
/// # Errors
/// The server's error.
pub fn info(connection: &mut RedisConnection, section: &str, name: &str) -> Result<Option<String>, Fault> {
    let text = connection.call(&["INFO", section])?.text().unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned()))
}

/// True if the server follows another one.
///
/// # Errors
/// The server's error.
pub fn is_replica(connection: &mut RedisConnection) -> Result<bool, Fault> {
    Ok(info(connection, "replication", "role")?.is_some_and(|role| role == "slave"))
}

/// True if the server is a node of a cluster.
///
/// # Errors
/// The server's error.
pub fn is_node(connection: &mut RedisConnection) -> Result<bool, Fault> {
    Ok(info(connection, "cluster", "cluster_enabled")?.is_some_and(|enabled| enabled == "1"))
}

/// Length of the append-only file, bytes; `None` if there is none.
pub fn log_length(server: &Server, setup: &Setup) -> Option<u64> {
    info(&mut administrator(server, setup).ok()?, "persistence", "aof_current_size").ok()??.parse().ok()
}

/// The facts that a figure depends on, as the server and the client's TLS report them.
///
/// # Errors
/// The server's error; [`Fault::Wrong`] when it does not say its version.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut connection = administrator(server, setup)?;
    let version = version(&mut connection)?;
    let mut facts = BTreeMap::new();
    for name in ["redis_mode", "os", "multiplexing_api", "mem_allocator", "gcc_version"] {
        let section = if name == "mem_allocator" { "memory" } else { "server" };
        if let Some(value) = info(&mut connection, section, name)? {
            facts.insert(name.to_owned(), value);
        }
    }
    for name in REPORTED {
        // An attached server may hide its settings: then they are not reported.
        match connection.setting(name) {
            Ok(Some(value)) => drop(facts.insert(name.to_owned(), value)),
            Ok(None) => {}
            Err(Fault::Refused(_) | Fault::Server(_)) if !is_local(server) => break,
            // An administrator has removed the command (`rename-command CONFIG ""`).
            Err(Fault::Server(words)) if words.starts_with("ERR unknown command") => break,
            Err(fault) => return Err(fault),
        }
    }
    // The measured clients may have another account than the administrator.
    let client = RedisConnection::open(&of_clients(server, setup)?)?;
    facts.insert("authentication".to_owned(), client.method().to_owned());
    let tls = client.tls_facts().map(|tls| tls.in_words());
    facts.insert("tls as the client sees it".to_owned(), tls.unwrap_or_else(|| "off".to_owned()));
    Ok(ArmFacts { version, facts, configuration: Vec::new() })
}

fn version(connection: &mut RedisConnection) -> Result<String, Fault> {
    let redis = info(connection, "server", "redis_version")?;
    let valkey = info(connection, "server", "valkey_version")?;
    match (redis, valkey) {
        (_, Some(valkey)) => Ok(format!("Valkey {valkey}")),
        (Some(redis), None) => Ok(format!("Redis {redis}")),
        (None, None) => Err(Fault::Wrong("the server does not report its version".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use expect_test::expect;
    use tithe_machine::launch::Address;
    use tithe_model::experiment::Url;

    use super::*;
    use crate::{redis::test_server::serve, test_setup::plain};

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn array(texts: &[&str]) -> String {
        let parts: String = texts.iter().map(|text| bulk(text)).collect();
        format!("*{}\r\n{parts}", texts.len())
    }

    /// How removing a table ends on a server with this reply to `GET tithe`, these other keys of that space and these
    /// records of the table, and the commands that change something.
    fn removed(mark: &str, others: &[&str], records: &[&str]) -> (String, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (mark, others, mut records) = (mark.to_owned(), array(others), array(records));
        let serving = std::thread::spawn(move || {
            let stream = listener.accept().expect("a client").0;
            let mut changes = Vec::new();
            let served = serve(&stream, |words| match words {
                ["PING"] => "+PONG\r\n".to_owned(),
                ["GET", "tithe"] => mark.clone(),
                // The first page of the keys is empty.
                ["SCAN", "0", "MATCH", "tithe:*", ..] => "*2\r\n$1\r\n7\r\n*0\r\n".to_owned(),
                ["SCAN", "7", "MATCH", "tithe:*", ..] => format!("*2\r\n$1\r\n0\r\n{others}"),
                ["ZRANGE", "tithe:usertable", "0", _] => std::mem::replace(&mut records, array(&[])),
                _ => {
                    changes.push(words.join(" "));
                    ":1\r\n".to_owned()
                }
            });
            served.expect("commands");
            changes
        });
        let server = Server::at(Address::Attached(Url::new(format!("redis://127.0.0.1:{port}"))));
        let table = Table { name: "usertable".to_owned(), fields: 1, field_prefix: "field".to_owned() };
        let outcome = remove(&server, &plain(), &table);
        let ended = outcome.map_or_else(|fault| fault.to_string(), |()| "done".to_owned());
        (ended, serving.join().expect("the server ends"))
    }

    #[test]
    fn keys_of_others_are_refused_and_never_removed() {
        const NO_MARK: &str = "$-1\r\n";
        let changed = |ended: &str, changes: &[&str]| {
            (ended.to_owned(), changes.iter().map(|change| (*change).to_owned()).collect::<Vec<String>>())
        };
        let [unlink, forget] = ["UNLINK tithe:usertable:a tithe:usertable:b", "ZREM tithe:usertable a b"];
        let ours = bulk(MARK);
        assert_eq!(removed(&ours, &[], &["a", "b"]), changed("done", &[unlink, forget, "DEL tithe"]));
        assert_eq!(removed(&ours, &["tithe:other"], &["a", "b"]), changed("done", &[unlink, forget]));
        assert_eq!(removed(&ours, &[], &[]), changed("done", &["DEL tithe"]));
        assert_eq!(removed(NO_MARK, &[], &["a"]), changed("done", &[]));
        let foreign =
            |name: &str| changed(&format!("refused: a key `{name}` is on this server, and Tithe did not make it"), &[]);
        assert_eq!(removed(NO_MARK, &["tithe:other"], &["a"]), foreign("tithe:other"));
        assert_eq!(removed(&bulk("mine"), &[], &["a"]), foreign("tithe"));
        assert_eq!(removed("-WRONGTYPE it is no text\r\n", &[], &["a"]), foreign("tithe"));
        let loads = removed("-LOADING it reads its file\r\n", &[], &["a"]);
        assert_eq!(loads, changed("server: LOADING it reads its file", &[]));
    }

    #[test]
    fn data_that_would_evict_keys_of_others_are_refused() {
        let looked = |used_mb: u64, most_mb: u64, policy: &str| {
            let words = room(used_mb << 20, most_mb << 20, policy, 100 << 20)
                .map_or_else(|fault| fault.to_string(), |()| "room".to_owned());
            format!("{words}\n")
        };
        let text = [
            looked(900, 0, "noeviction"),
            looked(800, 1000, "allkeys-lru"),
            looked(801, 1000, "allkeys-lru"),
            looked(950, 1000, "noeviction"),
        ];
        expect![[r#"
            room
            room
            refused: its memory has no room for the data: 839.9 MB of 1.0 GB (maxmemory) are used, the data may take 209.7 MB, and what goes beyond removes keys of others (allkeys-lru): load fewer records, or measure a server with more memory
            refused: its memory has no room for the data: 996.1 MB of 1.0 GB (maxmemory) are used, the data may take 209.7 MB, and what goes beyond is refused to every client: load fewer records, or measure a server with more memory
        "#]].assert_eq(&text.concat());
    }
}
