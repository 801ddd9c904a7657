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
            let anonymous = domains.as_ref().map_or(true, domains::let_in_anonymous);
            Ok(accounts::judge(&accounts, (elsewhere, anonymous), &mut connection))
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
        for feature in [Feature::Authorisation, Feature::Auditing, Feature::ProxyRoles, Feature::AuthenticationCaching]
        {
            seen.push(without_plugin(method).of(feature));
        }
        // A certificate may be demanded all the same.
        let judged = authentication(&target, method, opened);
        let judged = match judged.state {
            State::Off => Judgement::whole(State::Off, NO_ACCOUNTS).found(&findings::OPENSEARCH_AUTHN_NOBODY_ASKED),
            _ => judged,
        };
        seen.push(judged.of(Feature::Authentication));
    }
    let listeners = other_nodes(&mut connection).map(|doubts| Rules {
        read: "a node has one listener for HTTP".to_owned(),
        doubts,
        ..Rules::default()
    });
    let reported = tls_of(&mut connection).ok();
    let judged = transport(&target, &tls, Ok(reported.as_deref().is_some_and(is_tls)), plaintext);
    let is_foreign = !has_plugin && asks_without_plugin(method);
    let reported = reported.filter(|_| target.tls.is_some() && !is_foreign);
    seen.extend(clients(judged, reported.as_deref(), listeners));
    seen.push(inspect_feature(Feature::NodeToNode, || match is_foreign {
        true => Ok(without_plugin(method)),
        false => between(&mut connection, has_plugin),
    }));
    seen.push(inspect_feature(Feature::JmxAuthentication, || {
        connection.request("GET /_nodes/jvm").map(|nodes| management(&nodes))
    }));
    seen.extend(not_offered(&[(
        Feature::AtRest,
        "OpenSearch encrypts no file: documents are in the clear in its data folder; volumes below it can be encrypted",
    )]));
    Ok(seen)
}

/// True if the node reports TLS of a connection: of a client in plaintext, too, if something in between begins it.
fn is_tls(reported: &str) -> bool {
    !reported.starts_with(PLAINTEXT)
}

/// Why a server limits and records nobody.
const NO_ACCOUNTS: &str =
    "the server has no accounts: its security plugin is missing, switched off, or there for TLS alone";

/// True if a server without the plugin asked its client for a password, which then logged in by `method`: the server is
/// another product, Elasticsearch for example, or behind a proxy.
fn asks_without_plugin(method: &str) -> bool {
    method != "none"
}

/// The judgement of a server without the plugin to which the client logged in by `method`.
fn without_plugin(method: &str) -> Judgement {
    if asks_without_plugin(method) {
        return Judgement::unseen(
            "it asks for a password, but not by OpenSearch's security plugin: another product or a proxy, whose rules \
             are not shown",
        );
    }
    Judgement::whole(State::Off, NO_ACCOUNTS)
}

/// Both rows about clients, from the transport of this one, as it was `judged`, and, if it speaks TLS, from what the
/// server reports of that.
fn clients(judged: Judgement, reported: Option<&str>, listeners: Result<Rules, Fault>) -> [FeatureStatus; 2] {
    match reported {
        Some(tls) if !is_tls(tls) => ended_rows(&judged, &format!("/_opendistro/_security/sslinfo reports {tls}")),
        _ => client_rows(judged.with_rules(listeners, "")),
    }
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

/// Recorders that repeat values in plaintext: the audit log, and logs of slow requests of Tithe's indices and of slow
/// searches of all.
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
    match connection.request("GET /_cluster/settings?flat_settings=true") {
        Ok(settings) => recording.repeats.extend(records::slow_searches(&settings)),
        Err(fault) => recording.doubts.push(format!("logs of slow searches ({fault})")),
    }
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
    // A transient setting counts before a persistent one.
    let set = ["transient", "persistent"].iter().find_map(|kind| settings[kind][DUAL].as_str());
    if set == Some("true") {
        let seen = format!("{DUAL}: nodes accept plaintext from each other");
        return Judgement::whole(State::Available, seen).found(&findings::OPENSEARCH_NODES_PLAINTEXT);
    }
    let seen = "the whole plugin starts with TLS between nodes alone";
    Judgement::account(State::Enforced, seen).doubted("plugins.security_config.ssl_dual_mode_enabled in opensearch.yml")
}

/// The management port of the virtual machines, from their arguments.
fn management(nodes: &Value) -> Judgement {
    let (mut open, mut asking, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    let all = nodes["nodes"].as_object();
    let shows = |node: &Value| node["jvm"]["input_arguments"].is_array();
    let are_shown = all.is_some_and(|all| !all.is_empty() && all.values().all(shows));
    let are_all = nodes["_nodes"]["failed"].as_u64().unwrap_or_default() == 0;
    for (_, node) in all.into_iter().flatten() {
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
        ([], [], _) if !are_shown || !are_all => {
            Judgement::unseen("not every node shows the arguments of its virtual machine")
        }
        ([], [], []) => Judgement::whole(State::Off, "no management port is open"),
        ([], [], _) => Judgement::whole(State::Enforced, format!("{}, with passwords", asking.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::{
        opensearch::test_server::{Told, domains as domains_of, tight},
        test_setup::{changed_rows, plain, states},
    };

    fn states_of(told: &Told) -> Vec<String> {
        states(&told.seen(|server| inspect(server, &plain()).expect("it can be reached")))
    }

    #[test]
    fn each_answer_shows_in_its_rows() {
        const DOMAINS: &str = "GET /_plugins/_security/api/securityconfig";
        const USERS: &str = "GET /_plugins/_security/api/internalusers";
        const AUDIT: &str = "GET /_plugins/_security/api/audit";
        const HEALTH: &str = "GET /_cluster/health";
        let usual = states_of(&tight());
        expect![[r#"
            authentication: enforced, whole server
            authorisation: enforced, this account
            audit: enforced, this account
            proxy-roles: off, this account
            authentication-caching: enforced, this account
            tls: off, whole server
            client-to-node: off, whole server
            node-to-node: enforced, this account
            jmx-authentication: off, whole server
            at-rest: not offered by this product, whole server
        "#]]
        .assert_eq(&usual.concat());
        let three = json!({ "number_of_nodes": 3 });
        let own = ("internal", "basic", "intern");
        let anonymous = domains_of(json!({ "anonymous_auth_enabled": true }), &[own]);
        let any = json!({ "xff": { "enabled": true, "internalProxies": ".*" } });
        let proxy = domains_of(any, &[own, ("gateway", "proxy", "noop")]);
        let directory = domains_of(json!({}), &[("ldap", "basic", "ldap")]);
        let demo = json!({ "local_certificates_list": ["CN=node-0.example.com,OU=node,O=node,L=test,DC=de"] });
        let dual = json!({ "transient": { "plugins.security_config.ssl_dual_mode_enabled": "true" } });
        let port = json!(["-Dcom.sun.management.jmxremote.port=7199"]);
        let jvm = json!({ "nodes": { "x": { "name": "a", "jvm": { "input_arguments": port } } } });
        let both = json!({ "all_access": { "users": ["root", "app"] } });
        let limited = || tight().refusing(USERS).refusing("GET /tithe-belongs-to-nobody/_doc/1");
        let changes = [
            ("no plugin", tight().bare()),
            ("no plugin, three nodes", tight().bare().telling(HEALTH, three.clone())),
            ("anonymous clients", Told { asks: false, ..tight().telling(DOMAINS, anonymous) }),
            ("the first password", Told { logins: vec!["ann:correct horse", "admin:admin"], ..tight() }),
            ("a key that everybody has", tight().telling("GET /_opendistro/_security/sslinfo", demo)),
            ("any proxy", tight().telling(DOMAINS, proxy)),
            ("a directory", tight().telling(DOMAINS, directory)),
            ("no right to the domains", tight().refusing(DOMAINS)),
            ("no right to the accounts", limited().refusing("GET /_all/_search")),
            ("no right to the accounts, and all indices", {
                let told = limited().telling("GET /_all/_search", json!({}));
                told.missing("GET /tithe-belongs-to-nobody/_doc/1")
            }),
            ("an administrator more", tight().telling("GET /_plugins/_security/api/rolesmapping", both)),
            ("no audit log", tight().telling(AUDIT, json!({ "config": { "enabled": false } }))),
            ("no right to the audit log", tight().refusing(AUDIT)),
            ("three nodes", tight().telling(HEALTH, three)),
            ("no right to the nodes", tight().refusing(HEALTH).refusing("GET /_nodes/jvm")),
            ("plaintext between nodes", tight().telling("GET /_cluster/settings", dual)),
            ("a management port", tight().telling("GET /_nodes/jvm", jvm)),
        ];
        let changes = changes.map(|(name, told)| (name, states_of(&told)));
        expect![[r#"
            no plugin
              authorisation: off, whole server
              audit: off, whole server
              proxy-roles: off, whole server
              authentication-caching: off, whole server
              authentication: off, whole server [OPENSEARCH-AUTHN-NOBODY-ASKED]
              node-to-node: off, whole server
            no plugin, three nodes
              authorisation: off, whole server
              audit: off, whole server
              proxy-roles: off, whole server
              authentication-caching: off, whole server
              authentication: off, whole server [OPENSEARCH-AUTHN-NOBODY-ASKED]
              tls: off, this account
              client-to-node: off, this account
              node-to-node: cannot tell, this account
            anonymous clients
              authentication: available but not enforced, whole server [OPENSEARCH-AUTHN-ANONYMOUS]
            the first password
              authentication: available but not enforced, whole server [OPENSEARCH-AUTHN-FIRST-PASSWORD]
            a key that everybody has
              authentication: available but not enforced, whole server [OPENSEARCH-AUTHN-FIRST-PASSWORD]
            any proxy
              authentication: available but not enforced, whole server [OPENSEARCH-AUTHN-UNCHECKED]
              proxy-roles: available but not enforced, whole server [OPENSEARCH-AUTHN-UNCHECKED]
            a directory
              authentication: enforced, this account
            no right to the domains
              authentication: enforced, this account
              proxy-roles: cannot tell, this account
            no right to the accounts
              authentication: enforced, this account
            no right to the accounts, and all indices
              authentication: enforced, this account
              authorisation: available but not enforced, this account [OPENSEARCH-AUTHZ-EVERYTHING]
            an administrator more
              authorisation: available but not enforced, this account [OPENSEARCH-AUTHZ-EVERYTHING]
            no audit log
              audit: off, whole server [OPENSEARCH-AUDIT-OFF]
            no right to the audit log
              audit: cannot tell, this account
            three nodes
              tls: off, this account
              client-to-node: off, this account
            no right to the nodes
              tls: off, this account
              client-to-node: off, this account
              jmx-authentication: cannot tell, this account
            plaintext between nodes
              node-to-node: available but not enforced, whole server [OPENSEARCH-NODES-PLAINTEXT]
            a management port
              jmx-authentication: enforced, whole server
        "#]]
        .assert_eq(&changed_rows(&usual, &changes));
    }

    #[test]
    fn tls_of_which_the_server_knows_nothing_ends_before_it() {
        let told = |told: Option<&str>, listeners: Result<Rules, Fault>| {
            let judged = Judgement::account(State::Enforced, "TLSv1.3; plaintext: refused");
            clients(judged, told, listeners).map(|row| (row.state, row.scope.words()))
        };
        let all = || Ok(Rules::default());
        let doubt = || Ok(Rules { doubts: vec!["listeners of other nodes".to_owned()], ..Rules::default() });
        for told_tls in [Some("TLSv1.3 TLS_AES_256_GCM_SHA384"), None] {
            assert_eq!(told(told_tls, all()), [(State::Enforced, "whole server"); 2]);
            assert_eq!(told(told_tls, doubt()), [(State::Enforced, "this account"); 2]);
        }
        let ended = [(State::Enforced, "this account"), (State::Off, "this account")];
        assert_eq!(told(Some("plaintext: no security plugin"), all()), ended);
    }

    #[test]
    fn recorders_are_those_that_hold_values_and_checks_are_those_of_logs_that_are_on() {
        const SLOW: &str = "GET /tithe-*/_settings/index.*.slowlog.*";
        const AUDIT: &str = "GET /_plugins/_security/api/audit";
        let recorded = |told: Told| {
            told.seen(|server| {
                assert_eq!(recording(server, &plain(), Sent::Passwords), Ok(None));
                let told = recording(server, &plain(), Sent::Values).expect("an answer").expect("values");
                let checks = canary_checks(server, &plain(), &Table::of_canaries()).expect("an answer");
                (told.repeats.len(), told.doubts.len(), checks.audit.len())
            })
        };
        let quiet = || tight().telling(SLOW, json!({}));
        let slow = json!({ "a": { "settings": { "index.search.slowlog.threshold.query.warn": "0ms" } } });
        let bodies = json!({ "enabled": true, "audit": { "enable_rest": true, "log_request_body": true } });
        let bodies = json!({ "config": bodies });
        assert_eq!(recorded(quiet()), (0, 0, 1));
        assert_eq!(recorded(tight().telling(SLOW, slow.clone())), (1, 0, 1));
        assert_eq!(recorded(quiet().telling(AUDIT, bodies.clone())), (1, 0, 1));
        assert_eq!(recorded(tight().telling(SLOW, slow).telling(AUDIT, bodies)), (2, 0, 1));
        assert_eq!(recorded(tight().missing(SLOW)), (0, 0, 1), "an index that is not there has no log");
        assert_eq!(recorded(quiet().telling(AUDIT, json!({ "config": { "enabled": false } }))), (0, 0, 0));
        assert_eq!(recorded(quiet().refusing(AUDIT)), (0, 1, 0));
        assert_eq!(recorded(quiet().bare()), (0, 0, 0), "without the plugin there is no audit log to doubt");
    }

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
        let both = |transient: &str, persistent: &str| {
            let set = |value: &str| json!({ "plugins.security_config.ssl_dual_mode_enabled": value });
            judged(json!({ "transient": set(transient), "persistent": set(persistent) })).0
        };
        assert_eq!([both("false", "true"), both("true", "false")], [State::Enforced, State::Available]);
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
    fn a_node_that_reports_tls_has_it_however_the_client_speaks() {
        let judged = |told: &str| transport(&Target::default(), "", Ok(is_tls(told)), plaintext);
        assert_eq!(judged("TLSv1.3 TLS_AES_256_GCM_SHA384").state, State::Available);
        assert_eq!(judged(PLAINTEXT).state, State::Off);
        assert_eq!(judged("plaintext: no security plugin").state, State::Off);
    }

    #[test]
    fn a_password_that_is_not_the_plugins_leaves_open_what_is_limited() {
        let states = ["none", "user and password"].map(|method| without_plugin(method).state);
        assert_eq!(states, [State::Off, State::Unseen]);
    }

    #[test]
    fn a_node_that_does_not_show_its_arguments_may_have_a_management_port() {
        let state = |more: Value, failed: u64| {
            let whole = json!({ "name": "a", "jvm": { "input_arguments": ["-Xmx1g"] } });
            management(&json!({ "_nodes": { "failed": failed }, "nodes": { "x": whole, "y": more } })).state
        };
        let shown = || json!({ "name": "b", "jvm": { "input_arguments": [] } });
        assert_eq!(state(shown(), 0), State::Off);
        assert_eq!(state(shown(), 1), State::Unseen, "a node did not answer");
        for hidden in [json!({ "name": "b" }), json!({ "jvm": { "version": "21" } })] {
            assert_eq!(state(hidden, 0), State::Unseen);
        }
        for none in [json!({}), json!({ "nodes": {} })] {
            assert_eq!(management(&none).state, State::Unseen);
        }
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
