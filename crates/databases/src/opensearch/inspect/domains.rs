//! How clients log in: the domains of the plugin's configuration (`config.dynamic`).

use serde_json::Value;
use tithe_machine::fault::Fault;
use tithe_plugin::matrix::State;

use crate::{
    findings,
    inspect::{Judgement, Rules, counted},
};

/// Kinds of domains that take a user from a header that a proxy has set.
const OF_PROXIES: [&str; 2] = ["proxy", "extended-proxy"];

/// A domain that clients over HTTP may use.
struct Domain<'a> {
    name: &'a str,
    kind: &'a str,
    backend: &'a str,
}

/// The configuration itself: the answer wraps it.
fn dynamic(answer: &Value) -> &Value {
    &answer["config"]["dynamic"]
}

/// True if the answer has the part with the domains: an empty one shows nothing.
fn has_domains(answer: &Value) -> bool {
    dynamic(answer).is_object()
}

fn domains(answer: &Value) -> Vec<Domain<'_>> {
    let all = dynamic(answer)["authc"].as_object().into_iter().flatten();
    let used = all.filter(|(_, domain)| domain["http_enabled"] == true);
    used.map(|(name, domain)| Domain {
        name,
        kind: domain["http_authenticator"]["type"].as_str().unwrap_or("none"),
        backend: domain["authentication_backend"]["type"].as_str().unwrap_or("none"),
    })
    .collect()
}

/// Proxies from which headers are believed, as a pattern; `None` if none is.
fn believed(answer: &Value) -> Option<&str> {
    let forwarded = &dynamic(answer)["http"]["xff"];
    (forwarded["enabled"] == true).then(|| forwarded["internalProxies"].as_str().unwrap_or(".*"))
}

/// True if a pattern is for every address.
fn is_for_everybody(pattern: &str) -> bool {
    pattern.split('|').any(|part| matches!(part.trim_matches(['^', '$', '(', ')']), ".*" | ".+"))
}

/// True if a domain takes accounts or their roles from a list that is not the plugin's own.
pub fn ask_elsewhere(answer: &Value) -> bool {
    let own = |domain: &Domain<'_>| domain.kind == "basic" && ["intern", "internal"].contains(&domain.backend);
    let mut roles = dynamic(answer)["authz"].as_object().into_iter().flatten();
    !has_domains(answer)
        || !domains(answer).iter().all(own)
        || roles.any(|(_, source)| source["http_enabled"] == true && source["authorization_backend"]["type"] != "noop")
}

/// True if clients without an account are let in.
pub fn let_in_anonymous(answer: &Value) -> bool {
    dynamic(answer)["http"]["anonymous_auth_enabled"] == true
}

/// Who is let in without a password of the plugin's own accounts. `known`: accounts with a well-known password.
pub fn logins(answer: &Value, known: Result<Vec<String>, &Fault>) -> Rules {
    let (mut exceptions, mut doubts, mut found) = (Vec::new(), Vec::new(), Vec::new());
    if !has_domains(answer) {
        doubts.push("the domains, which the answer does not have".to_owned());
    }
    if let_in_anonymous(answer) {
        exceptions.push("anonymous_auth_enabled lets clients in without a password".to_owned());
        found.push(&findings::OPENSEARCH_AUTHN_ANONYMOUS);
    }
    let domains = domains(answer);
    for Domain { name, kind, backend } in &domains {
        match (*kind, *backend, believed(answer)) {
            ("basic", "noop", _) => {
                exceptions.push(format!("domain {name} takes every password (authentication_backend noop)"));
                found.push(&findings::OPENSEARCH_AUTHN_UNCHECKED);
            }
            (kind, _, Some(pattern)) if OF_PROXIES.contains(&kind) && is_for_everybody(pattern) => {
                exceptions.push(format!("domain {name} believes the user in a header, from any address ({pattern})"));
                found.push(&findings::OPENSEARCH_AUTHN_UNCHECKED);
            }
            // Without a proxy that is believed, the domain lets nobody in.
            (kind, _, None) if OF_PROXIES.contains(&kind) => {}
            ("basic", "intern" | "internal", _) | ("clientcert", ..) => {}
            (kind, backend, _) => doubts.push(format!("domain {name} ({kind}, {backend}), which asks elsewhere")),
        }
    }
    match known {
        Ok(known) if known.is_empty() => {}
        Ok(known) => {
            exceptions.push(format!("{} by the password that every demo configuration has", known.join(" and ")));
            found.push(&findings::OPENSEARCH_AUTHN_FIRST_PASSWORD);
        }
        Err(fault) => doubts.push(format!("well-known passwords of accounts ({fault})")),
    }
    Rules {
        read: counted(domains.len(), "domain"),
        exceptions,
        remedy: "change config.yml of the plugin, and have securityadmin upload it",
        doubts,
        findings: found,
    }
}

/// Whether a client may act for another one.
pub fn proxies(answer: &Value) -> Judgement {
    if !has_domains(answer) {
        return Judgement::unseen("the answer has no domains");
    }
    let hidden = "impersonation by plugins.security.authcz.rest_impersonation_user, which is not shown";
    let Some(domain) = domains(answer).into_iter().find(|domain| OF_PROXIES.contains(&domain.kind)) else {
        return Judgement::account(State::Off, "no domain believes a proxy").doubted(hidden);
    };
    match believed(answer) {
        None => Judgement::account(State::Off, format!("domain {} believes no proxy", domain.name)).doubted(hidden),
        Some(pattern) if is_for_everybody(pattern) => {
            let seen = format!("domain {} believes the user and roles in a header, from any address", domain.name);
            Judgement::whole(State::Available, seen).found(&findings::OPENSEARCH_AUTHN_UNCHECKED)
        }
        Some(pattern) => {
            let seen = format!("domain {} believes the user and roles in a header, from {pattern}", domain.name);
            Judgement::account(State::Enforced, seen).doubted(hidden)
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn answer(http: Value, domains: &[(&str, &str, &str, bool)]) -> Value {
        let domains = domains.iter().map(|(name, kind, backend, is_on)| {
            let domain = json!({
                "http_enabled": is_on,
                "http_authenticator": { "type": kind },
                "authentication_backend": { "type": backend },
            });
            ((*name).to_owned(), domain)
        });
        json!({ "config": { "dynamic": { "http": http, "authc": serde_json::Map::from_iter(domains) } } })
    }

    #[test]
    fn every_way_in_is_judged() {
        let internal = ("internal", "basic", "intern", true);
        let any = json!({ "xff": { "enabled": true, "internalProxies": ".*" } });
        let one = json!({ "xff": { "enabled": true, "internalProxies": "192\\.168\\.0\\.10" } });
        let none = json!({ "xff": { "enabled": false, "internalProxies": ".*" } });
        let proxy = ("gateway", "proxy", "noop", true);
        let all = [
            ("passwords", answer(json!({}), &[internal]), Ok(vec![])),
            ("anonymous clients", answer(json!({ "anonymous_auth_enabled": true }), &[internal]), Ok(vec![])),
            ("any password", answer(json!({}), &[("open", "basic", "noop", true)]), Ok(vec![])),
            (
                "any password, switched off",
                answer(json!({}), &[internal, ("open", "basic", "noop", false)]),
                Ok(vec![]),
            ),
            ("any proxy", answer(any, &[internal, proxy]), Ok(vec![])),
            ("one proxy", answer(one, &[internal, proxy]), Ok(vec![])),
            ("no proxy", answer(none, &[internal, proxy]), Ok(vec![])),
            ("a directory", answer(json!({}), &[("ldap", "basic", "ldap", true)]), Ok(vec![])),
            ("a demo", answer(json!({}), &[internal]), Ok(vec!["admin".to_owned()])),
            ("no right", answer(json!({}), &[internal]), Err(Fault::Refused("no".to_owned()))),
        ];
        let mut text = String::new();
        for (name, answer, known) in all {
            let Rules { exceptions, doubts, findings, .. } = logins(&answer, known.as_ref().cloned());
            let (proxies, elsewhere) = (proxies(&answer), ask_elsewhere(&answer));
            let proxies = proxies.state.words();
            text +=
                &format!("{name}: {exceptions:?} {doubts:?} {}; {proxies}; elsewhere: {elsewhere}\n", findings.len());
        }
        let mut roles = answer(json!({}), &[internal]);
        for (is_on, kind, elsewhere) in [(true, "ldap", true), (false, "ldap", false), (true, "noop", false)] {
            roles["config"]["dynamic"]["authz"] =
                json!({ "roles": { "http_enabled": is_on, "authorization_backend": { "type": kind } } });
            assert_eq!(ask_elsewhere(&roles), elsewhere, "{is_on} {kind}");
        }
        expect![[r#"
            passwords: [] [] 0; off; elsewhere: false
            anonymous clients: ["anonymous_auth_enabled lets clients in without a password"] [] 1; off; elsewhere: false
            any password: ["domain open takes every password (authentication_backend noop)"] [] 1; off; elsewhere: true
            any password, switched off: [] [] 0; off; elsewhere: false
            any proxy: ["domain gateway believes the user in a header, from any address (.*)"] [] 1; available but not enforced; elsewhere: true
            one proxy: [] ["domain gateway (proxy, noop), which asks elsewhere"] 0; enforced; elsewhere: true
            no proxy: [] [] 0; off; elsewhere: true
            a directory: [] ["domain ldap (basic, ldap), which asks elsewhere"] 0; off; elsewhere: true
            a demo: ["admin by the password that every demo configuration has"] [] 1; off; elsewhere: false
            no right: [] ["well-known passwords of accounts (refused: no)"] 0; off; elsewhere: false
        "#]].assert_eq(&text);
    }

    #[test]
    fn an_answer_without_domains_shows_nothing() {
        for answer in [json!({}), json!({ "config": {} }), json!([])] {
            let Rules { exceptions, doubts, .. } = logins(&answer, Ok(Vec::new()));
            assert_eq!((exceptions.len(), doubts.len(), ask_elsewhere(&answer)), (0, 1, true), "{answer}");
            assert_eq!(proxies(&answer).state, State::Unseen, "{answer}");
        }
    }
}
