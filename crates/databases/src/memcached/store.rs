//! Where the records are, and all other requests to a server about them.
//!
//! Every item of Tithe is called `tithe` or begins with `tithe:` (or a similar name for each arm if several arms share
//! a server). The value [`MARK`] of the item `tithe` marks these names as Tithe's. If such items exist without the
//! mark, they belong to someone else: they are refused, and never removed.

use std::os::fd::AsFd as _;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::{quantity::size, record::ArmFacts};
use tithe_plugin::{
    database::{Condition, IDLE_AT_LEAST_S, Lack, Remedy, Without},
    session::Table,
    setup::Setup,
};

use super::{
    ENTRY,
    connection::{MOST_KEYS, MemcachedConnection},
    launch::name_of,
    target::PRODUCT,
};
use crate::{attached::unseen_process, target::is_local};

/// The value of the item with the space's name.
const MARK: &[u8] = b"made by tithe";

/// Memory that a byte of data may take, including keys and unused parts of slab chunks.
const MEMORY_FACTOR: u64 = 4;

/// Settings whose values go into the report (`stats settings`). None of them is a secret.
const REPORTED: [&str; 12] = [
    "cas_enabled",
    "item_size_max",
    "lru_segmented",
    "maxbytes",
    "maxconns",
    "num_threads",
    "slab_automove",
    "ssl_enabled",
    "ssl_kernel_tls",
    "ssl_min_version",
    "ssl_verify_mode",
    "ssl_wbuf_size",
];

/// Before the key of each record of `table`.
pub fn prefix_of(space: &str, table: &Table) -> String {
    format!("{space}:{}:", table.name)
}

/// A connection that is not measured.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(server: &Server, setup: &Setup) -> Result<MemcachedConnection, Fault> {
    MemcachedConnection::open(&PRODUCT.target(server, setup)?)
}

/// Marks the names of `table` as Tithe's own. On a server that Tithe launched, runs the arm's own commands first.
///
/// # Errors
/// [`Fault::Refused`] if items exist that Tithe did not create, or if the data have no room; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut connection = open(server, setup)?;
    let space = &setup.space;
    let is_ours = is_ours(&mut connection, space)?;
    if is_local(server) {
        setup.statements.iter().try_for_each(|statement| connection.line(statement).map(drop))?;
    } else {
        let stats = connection.stats("")?;
        let told = |name: &str| stats.get(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        room(told("bytes"), told("limit_maxbytes"), setup.data_bytes)?;
    }
    if is_ours {
        // Left over from a run that was killed.
        clear(&mut connection, &prefix_of(space, table))?;
    }
    connection.store(space, MARK)
}

/// Checks whether so many bytes of data fit below `most_bytes` of memory, of which `used_bytes` are used: beyond it the
/// server removes items of any client.
fn room(used_bytes: u64, most_bytes: u64, data_bytes: u64) -> Result<(), Fault> {
    let needed_bytes = data_bytes.saturating_mul(MEMORY_FACTOR);
    if used_bytes.saturating_add(needed_bytes) <= most_bytes {
        return Ok(());
    }
    let [used, most, needed] = [used_bytes, most_bytes, needed_bytes].map(size);
    Err(Fault::Refused(format!(
        "its memory has no room for the data: {used} of {most} (memory-limit) are used, the data may take {needed}, and \
         what goes beyond removes items of others: load fewer records, or measure a server with more memory"
    )))
}

/// True if an attached server still has the mark.
///
/// # Errors
/// As [`create`].
pub fn keeps_records(server: &Server, setup: &Setup) -> Result<bool, Fault> {
    is_ours(&mut open(server, setup)?, &setup.space)
}

/// Removes the records of `table`, and the mark if nothing else of Tithe is left.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, space) = (open(server, setup)?, &setup.space);
    if !is_ours(&mut connection, space)? {
        return Ok(());
    }
    clear(&mut connection, &prefix_of(space, table))?;
    if connection.keys(&format!("{space}:"))?.is_empty() {
        connection.delete(std::slice::from_ref(space))?;
    }
    Ok(())
}

/// True if the mark shows that items that begin with `space` are Tithe's, false if there are none.
fn is_ours(connection: &mut MemcachedConnection, space: &str) -> Result<bool, Fault> {
    let foreign = |key: &str| Fault::Refused(format!("an item `{key}` is on this server, and Tithe did not make it"));
    match connection.item(space)? {
        Some(mark) if mark == MARK => Ok(true),
        Some(_) => Err(foreign(space)),
        None => match connection.keys(&format!("{space}:"))?.first() {
            Some(key) => Err(foreign(key)),
            None => Ok(false),
        },
    }
}

/// Most lists of keys to remove: 100 million keys.
const MOST_LISTS: usize = 500;

/// Removes every item that begins with `prefix`.
fn clear(connection: &mut MemcachedConnection, prefix: &str) -> Result<(), Fault> {
    // A server that lists what it does not remove would be asked for ever.
    for _ in 0..MOST_LISTS {
        let keys = connection.keys(prefix)?;
        connection.delete(&keys)?;
        if keys.len() < MOST_KEYS {
            return Ok(());
        }
    }
    Err(Fault::Server(format!("it still lists items that begin with `{prefix}` after {MOST_LISTS} removals")))
}

/// Checks that a launched server still has all stored items.
///
/// # Errors
/// [`Fault::Server`] if it has removed items to make room.
pub fn nothing_evicted(server: &Server, setup: &Setup) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    match open(server, setup)?.stats("")?.get("evictions").map(String::as_str) {
        None | Some("0") => Ok(()),
        Some(evictions) => Err(Fault::Server(format!(
            "it has removed {evictions} items to make room for others: give it more memory (`memory-limit` of the \
             settings, in MB), or load fewer records"
        ))),
    }
}

/// How many items it has removed to make room for others: reads of them find nothing.
pub fn condition(server: &Server, setup: &Setup) -> Option<Condition> {
    let evicted = open(server, setup).ok()?.stats("").ok()?.remove("evictions")?;
    Some(Condition { what: "items removed to make room for others (memory-limit)", now: evicted })
}

/// The process of the server.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    let stats = open(server, setup)?.stats("")?;
    let number = |name: &str| stats.get(name).and_then(|value| value.parse::<i64>().ok());
    let started = number("time").zip(number("uptime")).map(|(time, uptime)| time - uptime);
    Ok(number("pid").zip(started).map(|(pid, started)| format!("{pid} {started}")))
}

/// Everything that `server` lacks for being measured, and for proof.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut connection = open(server, setup)?;
    let settings = connection.stats("settings")?;
    let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
    let mut all = Vec::new();
    if is("dump_enabled", "no") || is("lru_crawler", "no") {
        all.push(Lack {
            why: "Tithe removes its items by a list of them, and the server lists no keys".to_owned(),
            remedy: Remedy::Words("start it without disable-dumping and no_lru_crawler".to_owned()),
            without: Without::Measurement,
        });
    }
    let idle_s = settings.get("idle_timeout").and_then(|value| value.parse::<u64>().ok());
    if let Some(idle_s) = idle_s.filter(|idle_s| (1..IDLE_AT_LEAST_S).contains(idle_s)) {
        all.push(Lack {
            why: format!(
                "it closes connections that are idle for {idle_s} s, and an arm's connections are idle while others are \
                 measured"
            ),
            remedy: Remedy::Words("start it without idle_timeout".to_owned()),
            without: Without::Measurement,
        });
    }
    if connection.tls_facts().is_none() && is("ssl_enabled", "no") {
        all.push(Lack {
            why: "the server speaks no TLS".to_owned(),
            remedy: Remedy::Words("start it with enable-ssl, ssl_chain_cert and ssl_key".to_owned()),
            without: Without::Proof(&["tls"]),
        });
    }
    all.extend(unseen_process(connection.into_wire().as_fd(), ENTRY.server_programs, None));
    Ok(all)
}

/// The server's answer to `question`; for a setting its value, by the server's name for it.
///
/// # Errors
/// The server's error.
pub fn ask(server: &Server, setup: &Setup, question: &str) -> Result<Option<String>, Fault> {
    let mut connection = open(server, setup)?;
    let Some(option) = question.strip_prefix("stats settings ") else {
        return Ok(connection.rows(question)?.into_iter().next().and_then(|mut row| row.pop().flatten()));
    };
    let option = name_of(option);
    let named = SHOWN.iter().find(|(name, _)| *name == option);
    Ok(connection.stats("settings")?.remove(named.map_or(option.as_str(), |(_, shown)| shown)))
}

/// Options whose settings are shown under another name.
const SHOWN: [(&str, &str); 13] = [
    ("conn-limit", "maxconns"),
    ("disable-cas", "cas_enabled"),
    ("disable-dumping", "dump_enabled"),
    ("disable-evictions", "evictions"),
    ("disable-flush-all", "flush_enabled"),
    ("listen-backlog", "tcp_backlog"),
    ("max-item-size", "item_size_max"),
    ("max-reqs-per-event", "reqs_per_event"),
    ("memory-limit", "maxbytes"),
    ("slab-growth-factor", "growth_factor"),
    ("slab-min-size", "chunk_size"),
    ("threads", "num_threads"),
    ("verbose", "verbosity"),
];

/// The facts that a figure depends on, as the server and the client's TLS report them.
///
/// # Errors
/// The server's error.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut connection = open(server, setup)?;
    let version = connection.line("version")?;
    let version = format!("memcached {}", version.strip_prefix("VERSION ").unwrap_or(&version));
    let settings = connection.stats("settings")?;
    let told = |name: &&str| Some(((*name).to_owned(), settings.get(*name)?.clone()));
    let mut facts: std::collections::BTreeMap<String, String> = REPORTED.iter().filter_map(told).collect();
    if let Some(libevent) = connection.stats("")?.get("libevent") {
        facts.insert("libevent".to_owned(), libevent.clone());
    }
    facts.insert("authentication".to_owned(), connection.method().to_owned());
    let tls = connection.tls_facts().map(|tls| tls.in_words());
    facts.insert("tls as the client sees it".to_owned(), tls.unwrap_or_else(|| "off".to_owned()));
    Ok(ArmFacts { version, facts, configuration: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memcached::test_server::{Told, tight},
        test_setup::{impossible, plain},
    };

    #[test]
    fn items_of_others_are_refused_and_never_removed() {
        let table = Table::of_canaries();
        let told = |items, removes| {
            let told = Told { items, removes, ..tight() };
            told.seen(|server| {
                let text = |fault: Fault| fault.to_string();
                (keeps_records(server, &plain()).map_err(text), remove(server, &plain(), &table).map_err(text))
            })
        };
        let nothing = (Ok(false), Ok(()));
        assert_eq!(told(&[], false), nothing);
        assert_eq!(told(&[("tith", "a"), ("tithes:t", "b")], false), nothing);
        let foreign = |key: &str| {
            let words = format!("refused: an item `{key}` is on this server, and Tithe did not make it");
            (Err(words.clone()), Err(words))
        };
        assert_eq!(told(&[("tithe", "mine")], false), foreign("tithe"));
        assert_eq!(told(&[("tithe:t:1", "made by tithe")], false), foreign("tithe:t:1"));
        assert_eq!(told(&[("tithe", "made by tithe")], false), (Ok(true), Err("server: ERROR".to_owned())));
        assert_eq!(told(&[("tithe", "made by tithe")], true), (Ok(true), Ok(())));
        let items = told(&[("tithe", "made by tithe"), ("tithe:tithe_canary:1", "a")], true);
        assert_eq!(items, (Ok(true), Ok(())));
    }

    #[test]
    fn what_a_server_lacks_is_named_with_what_is_impossible_without_it() {
        let lacking = |told: Told| told.seen(|server| impossible(&lacks(server, &plain()).expect("an answer")));
        let tls = Without::Proof(&["tls"]);
        assert_eq!(lacking(tight()), [tls]);
        assert!(lacking(tight().with("ssl_enabled", "yes")).is_empty());
        for (name, value) in
            [("dump_enabled", "no"), ("lru_crawler", "no"), ("idle_timeout", "1"), ("idle_timeout", "59")]
        {
            assert_eq!(lacking(tight().with(name, value)), [Without::Measurement, tls], "{name} {value}");
        }
        for (name, value) in
            [("dump_enabled", "yes"), ("lru_crawler", "yes"), ("idle_timeout", "0"), ("idle_timeout", "60")]
        {
            assert_eq!(lacking(tight().with(name, value)), [tls], "{name} {value}");
        }
    }

    #[test]
    fn a_server_is_known_by_its_process_and_its_condition_by_what_it_removed() {
        let told = |stats: &[(&'static str, &'static str)]| {
            Told { stats: stats.to_vec(), ..tight() }.seen(|server| {
                let removed = condition(server, &plain()).map(|condition| condition.now);
                (identity(server, &plain()).expect("an answer"), removed)
            })
        };
        let [pid, time, uptime] = [("pid", "7"), ("time", "100"), ("uptime", "40")];
        assert_eq!(told(&[pid, time, uptime, ("evictions", "3")]), (Some("7 60".to_owned()), Some("3".to_owned())));
        for some in [&[pid, time][..], &[pid, uptime], &[time, uptime], &[]] {
            assert_eq!(told(some), (None, None), "{some:?}");
        }
    }

    #[test]
    fn data_that_would_evict_items_of_others_are_refused() {
        assert!(room(0, 64 << 20, 16 << 20).is_ok());
        let refusal = room(1, 64 << 20, 16 << 20).expect_err("no room").to_string();
        assert!(refusal.contains("removes items of others"), "{refusal}");
    }
}
