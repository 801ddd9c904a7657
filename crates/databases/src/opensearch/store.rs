//! The indices in which Tithe keeps its records, and requests outside the load.
//!
//! Each table is an index, whose name begins with Tithe's space (`tithe-`, or one per arm if several arms share a
//! server) and whose mapping is marked. If such an index has no mark, it belongs to someone else: it is refused, and
//! never removed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tithe_machine::{fault::Fault, launch::Server, secret::Secret};
use tithe_model::record::ArmFacts;
use tithe_plugin::{
    database::{Condition, Lack, Remedy, Without},
    session::Table,
    setup::Setup,
};

use super::{
    ENTRY,
    connection::OpenSearchConnection,
    documents::KEY,
    launch::{self, FIRST, OF_INDEX, Plugin},
    target::{ADMINISTRATOR, USER, of_clients},
};
use crate::{
    attached::unseen_process,
    target::{Target, is_local},
};

/// What marks an index, in the part of its mapping that is for applications.
const MARK: (&str, &str) = ("made_by", "tithe");

/// Settings of an index that decide about writes, and are reported.
const REPORTED: [&str; 4] =
    ["index.number_of_replicas", "index.number_of_shards", "index.refresh_interval", "index.translog.durability"];

/// The name of the index of `table`.
pub fn index_of(space: &str, table: &Table) -> String {
    format!("{space}-{}", table.name).to_ascii_lowercase()
}

/// A connection as the measured clients have it.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn client(server: &Server, setup: &Setup) -> Result<OpenSearchConnection, Fault> {
    OpenSearchConnection::open(&of_clients(server, setup)?)
}

/// A connection that is not measured. In a launched server with accounts the first one makes them.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<OpenSearchConnection, Fault> {
    let Some(target) = account_of_administrator(server, setup)? else {
        return OpenSearchConnection::open(&of_clients(server, setup)?);
    };
    match OpenSearchConnection::open_unasked(&target) {
        Err(Fault::Refused(_)) => {
            make_accounts(&target)?;
            OpenSearchConnection::open_unasked(&target)
        }
        other => other,
    }
}

/// The administrator of a launched server with accounts, `None` of any other.
fn account_of_administrator(server: &Server, setup: &Setup) -> Result<Option<Target>, Fault> {
    if !is_local(server) || !matches!(Plugin::of(setup), Plugin::Whole { .. }) {
        return Ok(None);
    }
    let password = Some(setup.credentials.password.clone());
    Ok(Some(Target { user: ADMINISTRATOR.to_owned(), password, ..of_clients(server, setup)? }))
}

/// Logs in to every further node of `nodes`: until a node has read the accounts, it refuses what others ask of it.
fn log_in_everywhere(server: &Server, setup: &Setup, nodes: usize) -> Result<(), Fault> {
    let Some(target) = account_of_administrator(server, setup)? else { return Ok(()) };
    let mut hosts = (2..=nodes).map(launch::address_of);
    hosts.try_for_each(|host| OpenSearchConnection::open_unasked(&Target { host, ..target.clone() }).map(drop))
}

/// Makes the administrator and the clients' account, then removes the one that a new server has.
fn make_accounts(administrator: &Target) -> Result<(), Fault> {
    let (first, password) = FIRST;
    let account = |name: &str| format!("/_plugins/_security/api/internalusers/{name}");
    let known = Target { user: first.to_owned(), password: Some(Secret::new(password)), ..administrator.clone() };
    let mut connection = OpenSearchConnection::open_unasked(&known)?;
    let password = administrator.password.as_ref().map(|password| password.expose_text()).unwrap_or_default();
    let body = json!({ "password": password });
    for name in [USER, ADMINISTRATOR] {
        connection.request(&format!("PUT {} {body}", account(name)))?;
    }
    OpenSearchConnection::open_unasked(administrator)?.request(&format!("DELETE {}", account(first))).map(drop)
}

/// Makes an index for `table`. One that a killed run left is replaced.
///
/// # Errors
/// [`Fault::Refused`] if an index exists that Tithe did not make; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, index) = (administrator(server, setup)?, index_of(&setup.space, table));
    if is_local(server) {
        setup.statements.iter().try_for_each(|statement| connection.request(statement).map(drop))?;
    }
    if is_ours(&mut connection, &index)? {
        connection.request(&format!("DELETE /{index}"))?;
    }
    let made = connection.request(&format!("PUT /{index} {}", definition(setup)))?;
    is_served(&made, &index)
}

/// Checks by the answer to its definition that a node serves `index`.
fn is_served(made: &Value, index: &str) -> Result<(), Fault> {
    if made["shards_acknowledged"] != false {
        return Ok(());
    }
    Err(Fault::Server(format!("no node took the new index `{index}` within 30 s: {EXPLAINED}")))
}

/// Where a cluster says why nobody serves a part of an index.
const EXPLAINED: &str = "`GET /_cluster/allocation/explain` says why, a full disk for example";

/// Why a launched cluster of so many `nodes` is not whole, by its `health`.
fn unwell(health: &Value, nodes: usize) -> Option<String> {
    let number = |name: &str| health[name].as_u64().unwrap_or_default();
    let there = number("number_of_nodes");
    if there < nodes as u64 {
        return Some(format!(
            "{there} of {nodes} nodes are in the cluster: the log of the one that left is in its folder, nodeN/server.log"
        ));
    }
    if health["status"] == "red" {
        let lost = number("unassigned_shards");
        return Some(format!("the cluster is red: no node serves some of its records ({lost} shards): {EXPLAINED}"));
    }
    (health["timed_out"] == true).then(|| "the cluster still moves or opens its shards".to_owned())
}

/// How many nodes the cluster has, and whether its index is served: one that lost a node does other work.
pub fn condition(server: &Server, setup: &Setup) -> Option<Condition> {
    let mut connection = administrator(server, setup).ok()?;
    condition_of(&connection.health(&format!("/{}-*?level=cluster", setup.space)).ok()?)
}

fn condition_of(health: &Value) -> Option<Condition> {
    let red = if health["status"] == "red" { ", and records that no node serves" } else { "" };
    Some(Condition { what: "nodes of the cluster", now: format!("{}{red}", health["number_of_nodes"].as_u64()?) })
}

/// The definition of an index: a copy on every node, unless the experiment sets it otherwise; the fields of records
/// are mapped by the server itself, as in YCSB's own binding.
fn definition(setup: &Setup) -> Value {
    let mut settings = json!({
        "index.number_of_shards": "1",
        "index.number_of_replicas": (launch::nodes(&setup.settings).unwrap_or(1) - 1).to_string(),
    });
    for (name, value) in setup.settings.iter().filter(|(name, _)| name.starts_with(OF_INDEX)) {
        settings[name] = json!(value);
    }
    let (name, value) = MARK;
    json!({
        "settings": settings,
        "mappings": { "_meta": { name: value }, "properties": { KEY: { "type": "keyword" } } },
    })
}

/// Removes the index of `table`.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut connection, index) = (administrator(server, setup)?, index_of(&setup.space, table));
    if is_ours(&mut connection, &index)? {
        connection.request(&format!("DELETE /{index}"))?;
    }
    Ok(())
}

/// True if an attached server still has the index of `table`.
///
/// # Errors
/// As [`create`].
pub fn keeps_records(server: &Server, setup: &Setup, table: &Table) -> Result<bool, Fault> {
    is_ours(&mut administrator(server, setup)?, &index_of(&setup.space, table))
}

/// True if `index` is Tithe's, false if there is none.
fn is_ours(connection: &mut OpenSearchConnection, index: &str) -> Result<bool, Fault> {
    let Some(mapping) = connection.find(&format!("GET /{index}/_mapping"))? else { return Ok(false) };
    let (name, value) = MARK;
    // By the name of the index, which is another one behind an alias.
    if mapping.get(index).is_some_and(|it| it["mappings"]["_meta"][name] == value) {
        return Ok(true);
    }
    Err(Fault::Refused(format!("an index `{index}` is on this server, and Tithe did not make it")))
}

/// Writes everything to the index's files, and lets searches see it. In a launched server the files are merged into
/// one, without documents that were replaced or removed.
///
/// # Errors
/// The server's error.
pub fn quiesce(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut connection = administrator(server, setup)?;
    let index = index_of(&setup.space, table);
    if is_local(server) {
        for end in ["_forcemerge?max_num_segments=1", "_flush?force=true&wait_if_ongoing=true"] {
            connection.request(&format!("POST /{index}/{end}"))?;
        }
    }
    connection.request(&format!("POST /{index}/_refresh")).map(drop)
}

/// The cluster's random id.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    let about = client(server, setup)?.request("GET /")?;
    Ok(about["cluster_uuid"].as_str().filter(|id| *id != "_na_").map(str::to_owned))
}

/// Everything that `server` lacks for being measured, and for proof.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = OpenSearchConnection::open(&target)?;
    let mut all = Vec::new();
    // Rights are checked before the definition, which no server accepts.
    let tried = format!("PUT /{}-tries {}", setup.space, json!({ "settings": { "index.of_nothing": "1" } }));
    match connection.request(&tried) {
        Ok(_) | Err(Fault::Server(_)) => {}
        Err(Fault::Refused(words)) => {
            let role = json!({
                "cluster_permissions": ["cluster_composite_ops", "cluster:monitor/main"],
                "index_permissions": [{
                    "index_patterns": [format!("{}*", setup.space)],
                    "allowed_actions": ["crud", "create_index", "manage"],
                }],
            });
            all.push(Lack {
                why: format!("Tithe makes indices whose names begin with {} ({words})", setup.space),
                remedy: Remedy::Words(format!(
                    "PUT /_plugins/_security/api/roles/tithe {role} and PUT /_plugins/_security/api/rolesmapping/tithe {}",
                    json!({ "users": [target.user] })
                )),
                without: Without::Measurement,
            });
        }
        Err(fault) => return Err(fault),
    }
    if connection.tls_facts().is_none() {
        all.push(Lack {
            why: "the server speaks no TLS at this port".to_owned(),
            remedy: Remedy::Words("set plugins.security.ssl.http.enabled with a certificate and a key".to_owned()),
            without: Without::Proof(&["tls"]),
        });
    }
    all.extend(unseen_process(connection.into_http().descriptor(), ENTRY.server_programs, None));
    Ok(all)
}

/// The facts that a figure depends on, as the server and the client's TLS report them.
///
/// # Errors
/// The server's error.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let method = client(server, setup).map(|connection| connection.method());
    let mut connection = administrator(server, setup)?;
    if is_local(server) {
        // After a start it answers before it has opened its indices.
        let nodes = launch::nodes(&setup.settings)?;
        let ready =
            format!("?wait_for_nodes={nodes}&wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=5s");
        if let Some(words) = unwell(&connection.health(&ready)?, nodes) {
            return Err(Fault::Server(words));
        }
        log_in_everywhere(server, setup, nodes)?;
    }
    let about = connection.request("GET /")?;
    let number = about["version"]["number"].as_str().unwrap_or_default();
    let product = about["version"]["distribution"].as_str().unwrap_or("elasticsearch");
    let name = if product == "opensearch" { "OpenSearch" } else { product };
    let tls = connection.tls_facts().map(|tls| tls.in_words());
    let mut facts = BTreeMap::from([
        ("authentication".to_owned(), method?.to_owned()),
        ("tls as the client sees it".to_owned(), tls.unwrap_or_else(|| "off".to_owned())),
    ]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let add = |facts: &mut BTreeMap<String, String>, name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    // An account on an attached server may not see nodes.
    if let Ok(nodes) = connection.request("GET /_nodes/_local/jvm,plugins") {
        let node = nodes["nodes"].as_object().and_then(|nodes| nodes.values().next()).unwrap_or(&Value::Null);
        add(&mut facts, "java", text(&node["jvm"]["vm_version"]));
        add(&mut facts, "heap", node["jvm"]["mem"]["heap_max_in_bytes"].as_u64().map(|bytes| bytes.to_string()));
        let plugins = node["plugins"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|plugin| Some(format!("{} {}", plugin["name"].as_str()?, plugin["version"].as_str()?)));
        add(&mut facts, "plugins", Some(plugins.collect::<Vec<_>>().join(", ")));
    }
    let asked =
        format!("GET /{}-*/_settings/{}?include_defaults=true&flat_settings=true", setup.space, REPORTED.join(","));
    if let Ok(indices) = connection.request(&asked) {
        let index = indices.as_object().and_then(|indices| indices.values().next()).unwrap_or(&Value::Null);
        for name in REPORTED {
            add(&mut facts, name, text(&index["settings"][name]).or_else(|| text(&index["defaults"][name])));
        }
    }
    Ok(ArmFacts { version: format!("{name} {number}"), facts, configuration: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        opensearch::test_server::{Told, tight},
        test_setup::{impossible, plain},
    };

    #[test]
    fn an_index_of_others_is_refused_and_never_removed() {
        const MAPPING: &str = "GET /tithe-tithe_canary/_mapping";
        const REMOVAL: &str = "DELETE /tithe-tithe_canary";
        let table = Table::of_canaries();
        let told = |told: Told| {
            told.seen(|server| {
                let text = |fault: Fault| fault.to_string();
                let keeps = keeps_records(server, &plain(), &table).map_err(text);
                (keeps, remove(server, &plain(), &table).map_err(text))
            })
        };
        let mapping = |index: &str, meta: Value| json!({ index: { "mappings": { "_meta": meta } } });
        let own = || tight().telling(MAPPING, mapping("tithe-tithe_canary", json!({ "made_by": "tithe" })));
        // The node of the test has no answer to a removal unless a test gives it one.
        let removal = "server: 400: no handler found for uri".to_owned();
        assert_eq!(told(own()), (Ok(true), Err(removal)));
        assert_eq!(told(own().telling(REMOVAL, json!({}))), (Ok(true), Ok(())));
        assert_eq!(told(tight().missing(MAPPING)), (Ok(false), Ok(())));
        let words = "refused: an index `tithe-tithe_canary` is on this server, and Tithe did not make it".to_owned();
        let foreign = (Err(words.clone()), Err(words));
        let others = mapping("tithe-tithe_canary", json!({ "made_by": "somebody" }));
        assert_eq!(told(tight().telling(MAPPING, others)), foreign);
        assert_eq!(told(tight().telling(MAPPING, mapping("tithe-tithe_canary", json!(null)))), foreign);
        let behind_an_alias = mapping("tithe-another", json!({ "made_by": "tithe" }));
        assert_eq!(told(tight().telling(MAPPING, behind_an_alias)), foreign);
    }

    #[test]
    fn what_a_node_lacks_is_named_with_what_is_impossible_without_it() {
        let lacking = |told: Told| told.seen(|server| impossible(&lacks(server, &plain()).expect("an answer")));
        let tls = Without::Proof(&["tls"]);
        assert_eq!(lacking(tight()), [tls], "that the definition is refused is no matter of rights");
        assert_eq!(lacking(tight().refusing("PUT /tithe-tries")), [Without::Measurement, tls]);
    }

    #[test]
    fn a_cluster_that_is_not_whole_says_what_it_lacks() {
        let of = |status: &str, nodes: u64, timed_out: bool| {
            let health =
                json!({"status": status, "number_of_nodes": nodes, "timed_out": timed_out, "unassigned_shards": 3});
            unwell(&health, 2).unwrap_or_default()
        };
        assert_eq!([of("green", 2, false), of("yellow", 2, false)], ["", ""]);
        assert!(of("yellow", 1, true).starts_with("1 of 2 nodes are in the cluster: "));
        let red = of("red", 2, true);
        assert!(red.contains("(3 shards)") && red.contains("_cluster/allocation/explain"), "{red}");
        assert_eq!(of("yellow", 2, true), "the cluster still moves or opens its shards");
    }

    #[test]
    fn a_node_that_leaves_and_an_index_that_turns_red_change_the_condition() {
        let of = |status: &str, nodes: u64| condition_of(&json!({"status": status, "number_of_nodes": nodes}));
        let before = of("green", 3).expect("a cluster");
        let changed = |status: &str, nodes: u64| of(status, nodes).and_then(|now| now.changed(&before));
        assert_eq!(changed("yellow", 3), None, "a copy that moves");
        assert_eq!(changed("yellow", 2).as_deref(), Some("nodes of the cluster: 2, and 3 before the first frame"));
        let red = "nodes of the cluster: 3, and records that no node serves, and 3 before the first frame";
        assert_eq!(changed("red", 3).as_deref(), Some(red));
        assert_eq!(condition_of(&json!({"error": "denied"})), None);
    }

    #[test]
    fn an_index_that_no_node_took_is_told() {
        assert_eq!(is_served(&json!({"acknowledged": true, "shards_acknowledged": true}), "a"), Ok(()));
        let made = json!({"acknowledged": true, "shards_acknowledged": false});
        let fault = is_served(&made, "tithe-usertable").expect_err("no shard").to_string();
        assert!(fault.contains("`tithe-usertable` within 30 s") && fault.contains("full disk"), "{fault}");
    }
}
