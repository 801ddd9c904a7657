//! What the server records: the audit log's configuration, and logs of slow requests.

use std::collections::BTreeMap;

use serde_json::Value;
use tithe_plugin::matrix::State;

use crate::{
    findings,
    inspect::{Judgement, Rules},
};

/// The user whose requests the product's default leaves out: that of its dashboards.
const DASHBOARDS: &str = "kibanaserver";

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The configuration itself: the answer wraps it.
fn of(answer: &Value) -> &Value {
    &answer["config"]
}

/// Which layers record ordinary reads and writes: that of HTTP requests, that of actions in the server.
fn layers(answer: &Value) -> [bool; 2] {
    [records(answer, "rest", "AUTHENTICATED"), records(answer, "transport", "GRANTED_PRIVILEGES")]
}

/// True if a `layer` records what has this `category`.
fn records(answer: &Value, layer: &str, category: &str) -> bool {
    let audit = &of(answer)["audit"];
    let disabled = texts(&audit[format!("disabled_{layer}_categories")]);
    of(answer)["enabled"] == true
        && audit[format!("enable_{layer}")] == true
        && !disabled.iter().any(|name| name.eq_ignore_ascii_case(category))
}

/// True if every HTTP request is recorded.
pub fn of_requests(answer: &Value) -> bool {
    layers(answer)[0]
}

/// Documents whose reads and writes are recorded whatever the layers leave out, in words; `None` if there are none.
fn watched(answer: &Value) -> Option<String> {
    let compliance = &of(answer)["compliance"];
    if of(answer)["enabled"] != true || compliance["enabled"] != true {
        return None;
    }
    let fields = compliance["read_watched_fields"].as_object().into_iter().flatten();
    let read: Vec<&str> = fields.map(|(index, _)| index.as_str()).collect();
    let kinds = [("reads of fields of", read), ("writes of", texts(&compliance["write_watched_indices"]))];
    let kinds = kinds.into_iter().filter(|(_, indices)| !indices.is_empty());
    let told: Vec<String> = kinds.map(|(what, indices)| format!("{what} {}", indices.join(", "))).collect();
    (!told.is_empty()).then(|| format!("{} are recorded (compliance)", told.join(" and ")))
}

/// The judgement of the audit log.
pub fn judge(answer: &Value) -> Judgement {
    let audit = &of(answer)["audit"];
    let is_on = |name: &str| audit[name] == true;
    if !of(answer)["enabled"].is_boolean() {
        return Judgement::unseen("the answer does not say whether the audit log is on");
    }
    let watched = watched(answer);
    let has_layer = is_on("enable_rest") || is_on("enable_transport");
    if of(answer)["enabled"] != true || !has_layer && watched.is_none() {
        return Judgement::whole(State::Off, "the audit log is switched off").found(&findings::OPENSEARCH_AUDIT_OFF);
    }
    let seen = match layers(answer) {
        [true, true] => "every request, and every action in the server",
        [true, false] => "every request (AUTHENTICATED in the layer of HTTP)",
        [false, true] => "every action in the server (GRANTED_PRIVILEGES)",
        [false, false] => {
            let seen = "ordinary reads and writes leave no record: AUTHENTICATED and GRANTED_PRIVILEGES are disabled, as in the \
                        product's default";
            let of_others = "no other reads and writes are: the categories or layers that have them are off";
            let seen = watched.map_or_else(|| seen.to_owned(), |watched| format!("{watched}; {of_others}"));
            return Judgement::whole(State::Available, seen).found(&findings::OPENSEARCH_AUDIT_PARTIAL);
        }
    };
    let users = texts(&audit["ignore_users"]).into_iter().filter(|user| *user != DASHBOARDS);
    let mut exceptions: Vec<String> = users.map(|user| format!("requests of {user} (ignore_users)")).collect();
    exceptions
        .extend(texts(&audit["ignore_requests"]).iter().map(|it| format!("requests like {it} (ignore_requests)")));
    let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::OPENSEARCH_AUDIT_PARTIAL] };
    let body = if is_on("log_request_body") { ", with the values that are sent" } else { "" };
    let refused_logins = (!records(answer, "rest", "FAILED_LOGIN")).then_some("refused logins (FAILED_LOGIN)");
    // A request that is recorded by its layer is so before its rights are judged.
    let refusals = !layers(answer)[0] && !records(answer, "transport", "MISSING_PRIVILEGES");
    let refusals = refusals.then_some("refused actions (MISSING_PRIVILEGES)");
    let left_out: Vec<&str> = refused_logins.into_iter().chain(refusals).collect();
    let left_out = if left_out.is_empty() { String::new() } else { format!(", without {}", left_out.join(" and ")) };
    let rules = Rules {
        read: "the audit log's configuration".to_owned(),
        exceptions,
        remedy: "PATCH /_plugins/_security/api/audit",
        // This setting is in a file of each node, and not shown.
        doubts: vec!["whether a node writes it, and where (plugins.security.audit.type)".to_owned()],
        findings,
    };
    Judgement::account(State::Enforced, format!("{seen}{body}{left_out}")).with_rules(Ok(rules), "")
}

/// The audit log as a recorder of values.
pub fn of_values(answer: &Value) -> Option<String> {
    let repeats = layers(answer).contains(&true) && of(answer)["audit"]["log_request_body"] == true;
    repeats.then(|| "the audit log writes the bodies of requests (log_request_body)".to_owned())
}

/// Logs of slow requests in an answer about the settings of indices, each with its setting.
pub fn slow(answer: &Value) -> Vec<String> {
    let indices = answer.as_object().into_iter().flatten();
    let mut all: Vec<String> = indices
        .flat_map(|(_, index)| index["settings"].as_object().into_iter().flatten())
        .filter(|(name, value)| name.contains(".threshold.") && value.as_str().is_some_and(|value| value != "-1"))
        .map(|(name, value)| format!("the log of slow requests ({name} = {})", value.as_str().unwrap_or_default()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Logs of slow searches of all indices (2.12 and newer) in the cluster's settings, each with its setting. A transient
/// one counts before a persistent one.
pub fn slow_searches(settings: &Value) -> Vec<String> {
    const LIMITS: &str = "cluster.search.request.slowlog.threshold.";
    let mut limits: BTreeMap<&str, &str> = BTreeMap::new();
    for kind in ["persistent", "transient"] {
        let all = settings[kind].as_object().into_iter().flatten().filter(|(name, _)| name.starts_with(LIMITS));
        limits.extend(all.filter_map(|(name, limit)| Some((name.as_str(), limit.as_str()?))));
    }
    let on = limits.into_iter().filter(|(_, limit)| *limit != "-1");
    on.map(|(name, limit)| format!("the log of slow searches ({name} = {limit})")).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    /// The answer of a server that records everything, changed.
    fn answer(enabled: bool, changes: &[(&str, Value)]) -> Value {
        let mut audit = json!({
            "enable_rest": true, "disabled_rest_categories": [],
            "enable_transport": true, "disabled_transport_categories": [],
            "ignore_users": ["kibanaserver"], "ignore_requests": [], "log_request_body": true,
        });
        changes.iter().for_each(|(name, value)| audit[*name] = value.clone());
        json!({ "_readonly": [], "config": { "enabled": enabled, "audit": audit } })
    }

    #[test]
    fn every_configuration_is_judged() {
        let both = json!(["AUTHENTICATED", "GRANTED_PRIVILEGES"]);
        let (rest, transport) = (("disabled_rest_categories", both.clone()), ("disabled_transport_categories", both));
        let all = [
            ("everything", answer(true, &[])),
            ("the default", answer(true, &[rest.clone(), transport.clone()])),
            ("requests", answer(true, std::slice::from_ref(&transport))),
            ("actions", answer(true, std::slice::from_ref(&rest))),
            ("actions, without bodies", answer(true, &[rest.clone(), ("log_request_body", json!(false))])),
            ("requests, but the layer is off", answer(true, &[transport, ("enable_rest", json!(false))])),
            ("switched off", answer(false, &[])),
            ("both layers are off", answer(true, &[("enable_rest", json!(false)), ("enable_transport", json!(false))])),
            ("without a user", answer(true, &[("ignore_users", json!(["app"]))])),
            ("without a request", answer(true, &[("ignore_requests", json!(["indices:data/read/*"]))])),
            ("nothing known", json!({})),
        ];
        let mut text = String::new();
        for (name, answer) in all {
            let Judgement { state, scope, seen, findings } = judge(&answer);
            let found: Vec<&str> = findings.iter().map(|finding| finding.id).collect();
            text +=
                &format!("{name}: {}, {}: {seen} {found:?} {:?}\n", state.words(), scope.words(), of_values(&answer));
        }
        expect![[r#"
            everything: enforced, this account: every request, and every action in the server, with the values that are sent; the audit log's configuration: no exception; not judged: whether a node writes it, and where (plugins.security.audit.type) [] Some("the audit log writes the bodies of requests (log_request_body)")
            the default: available but not enforced, whole server: ordinary reads and writes leave no record: AUTHENTICATED and GRANTED_PRIVILEGES are disabled, as in the product's default ["OPENSEARCH-AUDIT-PARTIAL"] None
            requests: enforced, this account: every request (AUTHENTICATED in the layer of HTTP), with the values that are sent; the audit log's configuration: no exception; not judged: whether a node writes it, and where (plugins.security.audit.type) [] Some("the audit log writes the bodies of requests (log_request_body)")
            actions: enforced, this account: every action in the server (GRANTED_PRIVILEGES), with the values that are sent; the audit log's configuration: no exception; not judged: whether a node writes it, and where (plugins.security.audit.type) [] Some("the audit log writes the bodies of requests (log_request_body)")
            actions, without bodies: enforced, this account: every action in the server (GRANTED_PRIVILEGES); the audit log's configuration: no exception; not judged: whether a node writes it, and where (plugins.security.audit.type) [] None
            requests, but the layer is off: available but not enforced, whole server: ordinary reads and writes leave no record: AUTHENTICATED and GRANTED_PRIVILEGES are disabled, as in the product's default ["OPENSEARCH-AUDIT-PARTIAL"] None
            switched off: off, whole server: the audit log is switched off ["OPENSEARCH-AUDIT-OFF"] None
            both layers are off: off, whole server: the audit log is switched off ["OPENSEARCH-AUDIT-OFF"] None
            without a user: available but not enforced, this account: every request, and every action in the server, with the values that are sent; the audit log's configuration: 1 exception: requests of app (ignore_users): PATCH /_plugins/_security/api/audit; not judged: whether a node writes it, and where (plugins.security.audit.type) ["OPENSEARCH-AUDIT-PARTIAL"] Some("the audit log writes the bodies of requests (log_request_body)")
            without a request: available but not enforced, this account: every request, and every action in the server, with the values that are sent; the audit log's configuration: 1 exception: requests like indices:data/read/* (ignore_requests): PATCH /_plugins/_security/api/audit; not judged: whether a node writes it, and where (plugins.security.audit.type) ["OPENSEARCH-AUDIT-PARTIAL"] Some("the audit log writes the bodies of requests (log_request_body)")
            nothing known: cannot tell, this account: the answer does not say whether the audit log is on [] None
        "#]].assert_eq(&text);
    }

    #[test]
    fn documents_that_are_watched_are_recorded_whatever_the_layers_leave_out() {
        let judged = |compliance: Value, has_layers: bool| {
            let both = json!(["AUTHENTICATED", "GRANTED_PRIVILEGES"]);
            let changes = [
                ("disabled_rest_categories", both.clone()),
                ("disabled_transport_categories", both),
                ("enable_rest", json!(has_layers)),
                ("enable_transport", json!(has_layers)),
            ];
            let mut told = answer(true, &changes);
            told["config"]["compliance"] = compliance;
            let Judgement { state, seen, .. } = judge(&told);
            (state, seen.contains("reads of fields of hr and writes of orders, pay are recorded (compliance)"))
        };
        let watched = |enabled: bool| {
            let written = ["orders", "pay"];
            json!({ "enabled": enabled, "read_watched_fields": { "hr": ["salary"] }, "write_watched_indices": written })
        };
        assert_eq!([true, false].map(|has| judged(watched(true), has)), [(State::Available, true); 2]);
        let off = [true, false].map(|has| judged(watched(false), has));
        assert_eq!(off, [(State::Available, false), (State::Off, false)]);
    }

    #[test]
    fn refusals_that_leave_no_record_are_named() {
        let seen = |rest: &[&str], transport: &[&str], enable_rest: bool| {
            let changes = [
                ("disabled_rest_categories", json!(rest)),
                ("disabled_transport_categories", json!(transport)),
                ("enable_rest", json!(enable_rest)),
                ("log_request_body", json!(false)),
            ];
            let seen = judge(&answer(true, &changes)).seen;
            seen.split_once("; ").map(|(seen, _)| seen.to_owned()).unwrap_or_default()
        };
        let (all, actions) = ("every request, and every action in the server", "every action in the server");
        assert_eq!(seen(&[], &[], true), all);
        assert_eq!(seen(&["FAILED_LOGIN"], &[], true), format!("{all}, without refused logins (FAILED_LOGIN)"));
        assert_eq!(seen(&[], &["missing_privileges"], true), all, "requests are recorded before");
        let granted = format!("{actions} (GRANTED_PRIVILEGES), without refused");
        let refused = "actions (MISSING_PRIVILEGES)";
        assert_eq!(seen(&["AUTHENTICATED"], &["MISSING_PRIVILEGES"], true), format!("{granted} {refused}"));
        let both = format!("{granted} logins (FAILED_LOGIN) and refused {refused}");
        assert_eq!(seen(&[], &["MISSING_PRIVILEGES"], false), both);
    }

    #[test]
    fn logs_of_slow_requests_are_named_once() {
        let settings = json!({ "settings": {
            "index.search.slowlog.threshold.query.warn": "0ms",
            "index.indexing.slowlog.threshold.index.info": "-1",
            "index.indexing.slowlog.source": "1000",
        } });
        let named = slow(&json!({ "a": settings, "b": settings }));
        assert_eq!(named, ["the log of slow requests (index.search.slowlog.threshold.query.warn = 0ms)"]);
        assert_eq!(slow(&json!({})), Vec::<String>::new());
    }

    #[test]
    fn logs_of_slow_searches_are_settings_of_the_cluster() {
        let (warn, info) =
            ("cluster.search.request.slowlog.threshold.warn", "cluster.search.request.slowlog.threshold.info");
        let settings = json!({
            "persistent": { warn: "10s", info: "0ms", "cluster.search.request.slowlog.level": "TRACE" },
            "transient": { warn: "-1" },
        });
        assert_eq!(slow_searches(&settings), [format!("the log of slow searches ({info} = 0ms)")]);
        assert_eq!(slow_searches(&json!({})), Vec::<String>::new());
    }

    #[test]
    fn requests_are_recorded_where_their_layer_is_on_and_their_category_is_not_left_out() {
        let off = |name: &str| answer(true, &[(name, json!(false))]);
        let left_out = answer(true, &[("disabled_rest_categories", json!(["authenticated"]))]);
        let all =
            [answer(true, &[]), off("enable_transport"), off("enable_rest"), left_out, answer(false, &[]), json!({})];
        assert_eq!(all.map(|answer| of_requests(&answer)), [true, true, false, false, false, false]);
    }
}
