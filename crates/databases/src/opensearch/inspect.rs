//! The security matrix of a running OpenSearch, from the security plugin's own configuration and from connection
//! attempts.

mod accounts;
mod domains;
mod records;

use serde_json::Value;
use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    evidence::Check,
    matrix::{Feature, FeatureStatus, State},
    product::CanaryChecks,
    recording::{Recording, Sent},
    session::Table,
    setup::Setup,
};

use super::{
    connection::OpenSearchConnection,
    evidence::{PLAINTEXT, audit::AuditComplete, opened, other_nodes, plaintext, tls_of},
    target::of_clients,
};
use crate::{
    findings,
    inspect::{
        Judgement, Rules, authentication, client_rows, counted, ended_rows, inspect_feature, not_offered, transport,
    },
    target::Target,
};

/// Which account may read the plugin's configuration.
const RIGHT: &str = "use an account whose role is in plugins.security.restapi.roles_enabled";

/// The plugin's configuration.
const API: &str = "/_plugins/_security/api";

/// Judges every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = OpenSearchConnection::open(&target)?;
    let method = connection.method();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| tls.suite());
    let has_plugin = connection.has_accounts()?;
    let mut seen = Vec::new();
    if has_plugin {
        let domains = get(&mut connection, "securityconfig");
        let accounts = accounts::Accounts::read(&mut connection);
        let logins = accounts.as_ref().map(|accounts| first_passwords(&target, &accounts.names()));
        let rules = domains.as_ref().map(|all| domains::logins(all, logins)).map_err(Clone::clone);
        let judged = authentication(&target, method, opened).with_rules(rules, RIGHT);
        let told = connection.request("GET /_opendistro/_security/sslinfo?show_dn=true");
        let is_demo = told.is_ok_and(|told| has_demo_certificate(&told));
        let judged = if is_demo { with_known_keys(judged) } else { judged };
        seen.push(judged.of(Feature::Authentication));
        seen.push(inspect_feature(Feature::Authorisation, || {
            let elsewhere = domains.as_ref().map_or(true, domains::ask_elsewhere);
            Ok(accounts::judge(&accounts, elsewhere, &mut connection))
        }));
        let audit = get(&mut connection, "audit");
        seen.push(inspect_feature(Feature::Auditing, || audit.as_ref().map(records::judge).map_err(Clone::clone)));
        seen.push(inspect_feature(Feature::ProxyRoles, || {
            domains.as_ref().map(domains::proxies).map_err(Clone::clone)
        }));
        let caching = "a password is remembered for 60 minutes, unless plugins.security.cache.ttl_minutes, which is not \
                       shown, says otherwise";
        seen.push(Judgement::account(State::Enforced, caching).of(Feature::AuthenticationCaching));
    } else {
        let open = "the server has no accounts: its security plugin is missing, switched off, or there for TLS alone";
        for feature in [Feature::Authorisation, Feature::Auditing, Feature::ProxyRoles, Feature::AuthenticationCaching]
        {
            seen.push(Judgement::whole(State::Off, open).of(feature));
        }
        // A certificate may be demanded all the same.
        let judged = authentication(&target, method, opened);
        let judged = match judged.state {
            State::Off => Judgement::whole(State::Off, open).found(&findings::OPENSEARCH_AUTHN_NOBODY_ASKED),
            _ => judged,
        };
        seen.push(judged.of(Feature::Authentication));
    }
    let listeners = other_nodes(&mut connection).map(|doubts| Rules {
        read: "a node has one listener for HTTP".to_owned(),
        doubts,
        ..Rules::default()
    });
    let clients = transport(&target, &tls, Ok(false), plaintext);
    let told = tls_of(&mut connection).ok().filter(|told| target.tls.is_some() && told.starts_with(PLAINTEXT));
    seen.extend(match told {
        Some(told) => ended_rows(&clients, &format!("/_opendistro/_security/sslinfo reports {told}")),
        None => client_rows(clients.with_rules(listeners, "")),
    });
    seen.push(inspect_feature(Feature::NodeToNode, || between(&mut connection, has_plugin)));
    seen.push(inspect_feature(Feature::JmxAuthentication, || {
        connection.request("GET /_nodes/jvm").map(|nodes| management(&nodes))
    }));
    seen.extend(not_offered(&[(
        Feature::AtRest,
        "OpenSearch encrypts no file: documents are in the clear in its data folder; volumes below it can be encrypted",
    )]));
    Ok(seen)
}

/// What canaries can show: an audit log that records requests.
///
/// # Errors
/// When the server cannot be reached.
pub fn canary_checks(server: &Server, setup: &Setup, _table: &Table) -> Result<CanaryChecks, Fault> {
    let mut connection = OpenSearchConnection::open(&of_clients(server, setup)?)?;
    let records = get(&mut connection, "audit").is_ok_and(|audit| records::of_requests(&audit));
    let audit = records.then(|| Box::new(AuditComplete { actions: false }) as Box<dyn Check>);
    Ok(CanaryChecks { paths: Paths::default(), audit: audit.into_iter().collect() })
}

/// Recorders that repeat values in plaintext: the audit log, and logs of slow requests of Tithe's indices.
///
/// # Errors
/// When the server cannot be reached.
pub fn recording(server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
    if sent == Sent::Passwords {
        return Ok(None);
    }
    let mut connection = super::store::administrator(server, setup)?;
    let mut recording = Recording::default();
    let asked = format!("GET /{}-*/_settings/index.*.slowlog.*?flat_settings=true", setup.space);
    recording.repeats.extend(connection.find(&asked)?.as_ref().map(records::slow).unwrap_or_default());
    if connection.has_accounts()? {
        match get(&mut connection, "audit") {
            Ok(audit) => recording.repeats.extend(records::of_values(&audit)),
            Err(fault) => recording.doubts.push(format!("the audit log ({fault})")),
        }
    }
    Ok(Some(recording))
}

/// The `part` of the plugin's configuration.
fn get(connection: &mut OpenSearchConnection, part: &str) -> Result<Value, Fault> {
    connection.request(&format!("GET {API}/{part}"))
}

/// Those of `names` that log in by a password that everybody knows: the demo accounts have their names as passwords.
fn first_passwords(target: &Target, names: &[String]) -> Vec<String> {
    const DEMO: [&str; 6] = ["admin", "kibanaserver", "kibanaro", "logstash", "readall", "snapshotrestore"];
    let is_open = |name: &&String| {
        let known = Target {
            user: (*name).clone(),
            password: Some(tithe_machine::secret::Secret::new(name.as_str())),
            password_command: None,
            ..target.clone()
        };
        let asked = |mut connection: OpenSearchConnection| connection.request("GET /_plugins/_security/authinfo");
        DEMO.contains(&name.as_str())
            && OpenSearchConnection::open_unasked(&known).and_then(asked).is_ok_and(|told| is_known_as(&told, name))
    };
    names.iter().filter(is_open).cloned().collect()
}

/// True if the server knows the client as `name`: a client certificate may have let in somebody else.
fn is_known_as(told: &Value, name: &str) -> bool {
    told["user_name"] == name
}

/// True if the node's own certificate, by the names in its answer, is that of the product's demo configuration.
fn has_demo_certificate(told: &Value) -> bool {
    let mut names = told["local_certificates_list"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.any(|name| name.contains("CN=node-0.example.com"))
}

/// The judgement of logins at a node with a key that everybody can download: it lets in as a node, and the key beside
/// it as the administrator.
fn with_known_keys(judged: Judgement) -> Judgement {
    let state = if judged.state == State::Enforced { State::Available } else { judged.state };
    let seen = format!(
        "{}; the node has the certificate of the demo configuration: everybody has its key, and that of the \
         administrator's certificate",
        judged.seen
    );
    Judgement { state, seen, ..judged }.found(&findings::OPENSEARCH_AUTHN_FIRST_PASSWORD)
}

/// The transport between nodes. The plugin has no switch for it, except one for clusters that are being converted.
fn between(connection: &mut OpenSearchConnection, has_plugin: bool) -> Result<Judgement, Fault> {
    if has_plugin {
        let settings = connection.request("GET /_cluster/settings?flat_settings=true")?;
        return Ok(dual_mode(&settings));
    }
    let nodes = connection.request("GET /_cluster/health")?["number_of_nodes"].as_u64().unwrap_or_default();
    Ok(match nodes {
        1 => Judgement::whole(State::Off, "a single node; without accounts it would speak plaintext to other nodes"),
        nodes => {
            let nodes = counted(nodes as usize, "node");
            Judgement::unseen(format!("{nodes}; whether the plugin encrypts between them is not shown"))
        }
    })
}

/// The judgement of a cluster with the whole plugin, from its own settings.
fn dual_mode(settings: &Value) -> Judgement {
    const DUAL: &str = "plugins.security_config.ssl_dual_mode_enabled";
    let is_on = ["transient", "persistent"].iter().any(|kind| settings[kind][DUAL] == "true");
    if is_on {
        let seen = format!("{DUAL}: nodes accept plaintext from each other");
        return Judgement::whole(State::Available, seen).found(&findings::OPENSEARCH_NODES_PLAINTEXT);
    }
    let seen = "the whole plugin starts with TLS between nodes alone";
    Judgement::account(State::Enforced, seen).doubted("plugins.security_config.ssl_dual_mode_enabled in opensearch.yml")
}

/// The management port of the virtual machines, from their arguments.
fn management(nodes: &Value) -> Judgement {
    let (mut open, mut asking, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    for (_, node) in nodes["nodes"].as_object().into_iter().flatten() {
        let arguments = || node["jvm"]["input_arguments"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // The last value of a property counts.
        let last = |name: &str| {
            arguments()
                .filter_map(|argument| argument.strip_prefix("-Dcom.sun.management.")?.strip_prefix(name))
                .next_back()
        };
        let name = node["name"].as_str().unwrap_or("a node");
        elsewhere.extend(last("config.file=").map(|file| format!("{name}: {file}")));
        let Some(port) = last("jmxremote.port=") else { continue };
        // Only `true` is on (`Boolean.valueOf` in the JDK's `ConnectorBootstrap`); without a value it is on.
        let asks = last("jmxremote.authenticate=").is_none_or(|value| value.eq_ignore_ascii_case("true"));
        if asks { &mut asking } else { &mut open }.push(format!("{name}: port {port}"));
    }
    match (open.as_slice(), elsewhere.as_slice(), asking.as_slice()) {
        ([_, ..], ..) => Judgement::whole(State::Off, format!("{}, for everybody", open.join(", "))),
        ([], [_, ..], _) => {
            Judgement::unseen(format!("a file has the management port's settings: {}", elsewhere.join(", ")))
        }
        ([], [], []) => Judgement::whole(State::Off, "no management port is open"),
        ([], [], _) => Judgement::whole(State::Enforced, format!("{}, with passwords", asking.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_that_accept_plaintext_are_named() {
        let judged = |settings: Value| {
            let Judgement { state, findings, .. } = dual_mode(&settings);
            (state, findings.len())
        };
        assert_eq!(judged(json!({ "persistent": {}, "transient": {} })), (State::Enforced, 0));
        let dual = json!({ "persistent": { "plugins.security_config.ssl_dual_mode_enabled": "true" } });
        assert_eq!(judged(dual), (State::Available, 1));
        let off = json!({ "transient": { "plugins.security_config.ssl_dual_mode_enabled": "false" } });
        assert_eq!(judged(off), (State::Enforced, 0));
    }

    #[test]
    fn a_management_port_is_seen_in_the_arguments() {
        let judged = |arguments: &[&str]| {
            management(&json!({ "nodes": { "x": { "name": "a", "jvm": { "input_arguments": arguments } } } }))
        };
        assert_eq!(judged(&["-Xmx1g"]).seen, "no management port is open");
        let with = |more: &[&str]| {
            let more = more.iter().map(|value| format!("-Dcom.sun.management.{value}"));
            let all: Vec<String> = more.chain(["-Dcom.sun.management.jmxremote.port=7199".to_owned()]).collect();
            let judged = judged(&all.iter().map(String::as_str).collect::<Vec<_>>());
            format!("{}: {}", judged.state.words(), judged.seen)
        };
        for asking in [
            &[][..],
            &["jmxremote.authenticate=TRUE"],
            &["jmxremote.authenticate=false", "jmxremote.authenticate=true"],
        ] {
            assert_eq!(with(asking), "enforced: a: port 7199, with passwords", "{asking:?}");
        }
        for value in ["false", "False", "no", "", "0"] {
            let off = format!("jmxremote.authenticate={value}");
            assert_eq!(with(&["jmxremote.authenticate=true", &off]), "off: a: port 7199, for everybody", "{value}");
            assert_eq!(with(&["config.file=/m", &off]), "off: a: port 7199, for everybody");
        }
        assert_eq!(with(&["config.file=/m"]), "cannot tell: a file has the management port's settings: a: /m");
    }

    #[test]
    fn a_key_that_everybody_has_asks_nobody() {
        let names = |name: &str| json!({ "local_certificates_list": [name, "CN=Example Com Inc. Root CA"] });
        assert!(has_demo_certificate(&names("CN=node-0.example.com,OU=node,O=node,L=test,DC=de")));
        assert!(!has_demo_certificate(&names("CN=node-0.shop.example")));
        assert!(!has_demo_certificate(&json!({ "local_certificates_list": null })));
        let judged = |state| {
            let Judgement { state, scope, findings, .. } = with_known_keys(Judgement::whole(state, "by password"));
            (state, scope.words(), findings.len())
        };
        assert_eq!(judged(State::Enforced), (State::Available, "whole server", 1));
        assert_eq!(judged(State::Off), (State::Off, "whole server", 1));
    }

    #[test]
    fn a_certificate_may_let_in_somebody_else() {
        assert!(is_known_as(&json!({ "user_name": "admin" }), "admin"));
        assert!(!is_known_as(&json!({ "user_name": "CN=me" }), "admin"));
        assert!(!is_known_as(&json!({}), "admin"));
    }
}
