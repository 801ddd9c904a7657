//! The security matrix of a running Cassandra.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    setup::Setup,
};

use super::{
    connection::CqlConnection,
    evidence::{open, plaintext, plaintext_port},
    store::settings,
    target::of_clients,
};
use crate::inspect::{Judgement, Rules, authentication, client_rows, inspect_feature, not_offered, transport};

/// Settings by name.
type Settings = BTreeMap<String, String>;

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = CqlConnection::open(&target)?;
    let method = connection.method().to_owned();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    // An account without the right to read them leaves the settings unseen.
    let settings = settings(&mut connection);
    // A setting is one for every account.
    let of = |judge: fn(&Settings) -> (State, String)| {
        let judge = |settings: &Settings| {
            let (state, seen) = judge(settings);
            Judgement::whole(state, seen)
        };
        settings.as_ref().map(judge).map_err(Clone::clone)
    };
    let offers =
        settings.as_ref().map_err(Clone::clone).map(|all| value(all, "client_encryption_options", "enabled") == "true");
    let rules = |judge: fn(&Settings) -> Rules| settings.as_ref().map(judge).map_err(Clone::clone);
    let authentication = authentication(&target, &method, open).with_rules(rules(of_authentication), RIGHT);
    let transport = transport(&target, &tls, offers, plaintext).with_rules(rules(of_transport), RIGHT);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(inspect_feature(Feature::Authorisation, || authorisation(&mut connection)));
    seen.push(inspect_feature(Feature::AtRest, || of(at_rest)));
    seen.push(inspect_feature(Feature::Auditing, || of(auditing)));
    seen.push(inspect_feature(Feature::AuthenticationCaching, || {
        let (state, seen) = settings.as_ref().map(|settings| caching(settings, &method)).map_err(Clone::clone)?;
        Ok(Judgement::whole(state, seen))
    }));
    seen.push(inspect_feature(Feature::NodeToNode, || of(node_to_node)));
    seen.push(inspect_feature(Feature::JmxAuthentication, || management(&mut connection)));
    seen.extend(not_offered(&[(Feature::ProxyRoles, "roles are granted to roles, but no account acts for another")]));
    Ok(seen)
}

/// One part of a setting that has several. What stands between the names differs from version to version.
fn value(settings: &Settings, group: &str, part: &str) -> String {
    let find = |between: &str| settings.get(&format!("{group}{between}{part}"));
    find("_").or_else(|| find(".")).cloned().unwrap_or_default()
}

/// What an account needs to read the settings.
const RIGHT: &str = "the account needs GRANT SELECT ON system_views.settings";

/// One authenticator asks everybody.
fn of_authentication(settings: &Settings) -> Rules {
    // From version 5.0 on the setting has parts.
    let name = settings.get("authenticator.class_name").or_else(|| settings.get("authenticator"));
    let open = name.is_some_and(|name| name.contains("AllowAll"));
    Rules {
        read: format!("authenticator = {}", name.map_or("not shown", String::as_str)),
        exceptions: if open { vec!["it asks nobody".to_owned()] } else { Vec::new() },
        remedy: "set PasswordAuthenticator",
        doubts: if name.is_none() { vec!["the server does not show it".to_owned()] } else { Vec::new() },
        ..Rules::default()
    }
}

/// One port asks everybody, unless TLS has a second one for itself.
fn of_transport(settings: &Settings) -> Rules {
    let of = |part: &str| value(settings, "client_encryption_options", part);
    let mut exceptions = Vec::new();
    if of("enabled") == "true" && of("optional") != "false" {
        exceptions.push(format!("client_encryption_options.optional = {}", of("optional")));
    }
    let port = |name: &str| settings.get(name).map(String::as_str);
    let plain = plaintext_port(port("native_transport_port"), port("native_transport_port_ssl"));
    exceptions.extend(plain.map(|port| format!("port {port} speaks plaintext")));
    Rules {
        read: "client_encryption_options".to_owned(),
        exceptions,
        remedy: "set optional: false and no native_transport_port_ssl",
        ..Rules::default()
    }
}

/// The table of accounts is readable by administrators only.
fn authorisation(connection: &mut CqlConnection) -> Result<Judgement, Fault> {
    Ok(match connection.run("SELECT role FROM system_auth.roles LIMIT 1") {
        Err(fault @ Fault::Refused(_)) => Judgement::account(State::Enforced, format!("the table of roles: {fault}")),
        Err(fault) => return Err(fault),
        Ok(_) => match connection.run("LIST ROLES") {
            // Only a server without rights says that there is nothing to say.
            Err(fault) => Judgement::whole(State::Off, format!("the table of roles is served; LIST ROLES: {fault}")),
            Ok(_) => Judgement::unseen("the account may read the table of roles: nothing is refused to it"),
        },
    })
}

fn at_rest(settings: &Settings) -> (State, String) {
    let on = value(settings, "transparent_data_encryption_options", "enabled");
    let seen = format!("transparent_data_encryption_options.enabled = {on}");
    if on == "true" {
        (State::Available, format!("{seen}: commit log and hints; data files (SSTables) are in the clear"))
    } else {
        (State::Off, format!("{seen}; it would cover commit log and hints only, never data files (SSTables)"))
    }
}

fn auditing(settings: &Settings) -> (State, String) {
    let of = |part: &str| value(settings, "audit_logging_options", part);
    let filters =
        ["included_categories", "excluded_categories", "included_keyspaces", "included_users", "excluded_users"];
    let told: Vec<String> = filters
        .iter()
        .map(|name| (*name, of(name)))
        .filter(|(_, value)| !matches!(value.as_str(), "" | "null"))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let filters = if told.is_empty() { "no filter".to_owned() } else { told.join(", ") };
    let seen = format!("audit_logging_options.enabled = {}, {filters}", of("enabled"));
    match (of("enabled").as_str(), told.is_empty()) {
        ("true", true) => (State::Enforced, format!("{seen}: reads and writes, as the settings say")),
        ("true", false) => (State::Available, format!("{seen}: not all reads and writes")),
        _ => (State::Off, seen),
    }
}

fn caching(settings: &Settings, method: &str) -> (State, String) {
    let validity = settings.get("credentials_validity").map_or("unknown", String::as_str);
    let off = method == "none" || validity.trim_end_matches(char::is_alphabetic) == "0";
    (if off { State::Off } else { State::Enforced }, format!("login by {method}, credentials_validity = {validity}"))
}

/// How nodes speak among themselves, and the settings that say so.
pub fn node_to_node(settings: &Settings) -> (State, String) {
    let of = |part: &str| value(settings, "server_encryption_options", part);
    let (which, optional) = (of("internode_encryption"), of("optional"));
    let seen = format!("internode_encryption = {which}, optional = {optional}");
    match (which.as_str(), optional.as_str()) {
        ("all", "false") => (State::Enforced, seen),
        ("none" | "", _) => (State::Off, seen),
        _ => (State::Available, seen),
    }
}

/// Properties of the virtual machine that open a management port or protect it.
fn management(connection: &mut CqlConnection) -> Result<Judgement, Fault> {
    const PASSWORD_SWITCH: &str = "com.sun.management.jmxremote.authenticate";
    const PORTS: [&str; 3] =
        ["cassandra.jmx.local.port", "cassandra.jmx.remote.port", "com.sun.management.jmxremote.port"];
    let names = PORTS.iter().chain([&PASSWORD_SWITCH]).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let statement = format!("SELECT name, value FROM system_views.system_properties WHERE name IN ({names})");
    let rows = connection.texts(&statement)?.into_iter();
    let set: Settings = rows.filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)).collect();
    let port =
        PORTS.iter().find_map(|name| Some(format!("{name} = {}", set.get(*name).filter(|value| !value.is_empty())?)));
    let Some(port) = port else { return Ok(Judgement::whole(State::Off, "no management port is open")) };
    let switch = set.get(PASSWORD_SWITCH).filter(|value| !value.is_empty()).map_or("unset", String::as_str);
    let state = if switch == "true" { State::Enforced } else { State::Off };
    Ok(Judgement::whole(state, format!("{port}, {PASSWORD_SWITCH} = {switch}, as the virtual machine was started")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::test_setup::{asked_in_plaintext, tried_in_plaintext};

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn encryption_of_the_log_is_not_encryption_at_rest() {
        let on = settings(&[("transparent_data_encryption_options_enabled", "true")]);
        assert_eq!(at_rest(&on).0, State::Available);
        assert_eq!(at_rest(&settings(&[])).0, State::Off);
    }

    #[test]
    fn a_filtered_audit_log_is_not_complete() {
        let on = ("audit_logging_options_enabled", "true");
        assert_eq!(auditing(&settings(&[on])).0, State::Enforced);
        assert_eq!(
            auditing(&settings(&[on, ("audit_logging_options_included_categories", "DML")])).0,
            State::Available
        );
        assert_eq!(auditing(&settings(&[])).0, State::Off);
    }

    #[test]
    fn a_port_beside_the_one_for_tls_speaks_plaintext() {
        let of = |pairs: &[(&str, &str)]| of_transport(&settings(pairs)).exceptions;
        let (plain, tls) = (("native_transport_port", "9042"), "native_transport_port_ssl");
        assert_eq!(of(&[plain, (tls, "9142")]), ["port 9042 speaks plaintext"]);
        assert_eq!(of(&[(tls, "9142")]), ["port ? speaks plaintext"]);
        for one in [&[plain, (tls, "9042")][..], &[plain, (tls, "null")], &[plain, (tls, "")], &[plain]] {
            assert!(of(one).is_empty(), "{one:?}");
        }
    }

    #[test]
    fn optional_tls_between_nodes_is_not_enforced() {
        let all = ("server_encryption_options_internode_encryption", "all");
        assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "false")])).0, State::Enforced);
        assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "true")])).0, State::Available);
        assert_eq!(node_to_node(&settings(&[])).0, State::Off);
    }

    #[test]
    fn a_password_asked_for_in_plaintext_is_not_sent() {
        let asks = b"\x84\0\0\0\x03\0\0\0\x17\0\x15PasswordAuthenticator\x84\0\0\0\x10\0\0\0\x04\xff\xff\xff\xff";
        expect!["available but not enforced: TLSv1.3; plaintext: served too"]
            .assert_eq(&asked_in_plaintext(asks, plaintext));
        expect!["enforced: TLSv1.3; plaintext: refused (at the first message: the server closed the connection)"]
            .assert_eq(&tried_in_plaintext(b"", plaintext).0);
    }
}
