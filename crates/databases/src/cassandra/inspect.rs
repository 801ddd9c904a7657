//! The security matrix of a running Cassandra.

use std::collections::BTreeMap;

use tithe_harness::{
    database::Server,
    fault::Fault,
    inspect::{Feature, Observation, State},
    protection::Setup,
};

use super::{connection::CqlConnection, evidence::open, store::settings, target::of_clients};
use crate::inspect::{authentication, not_offered, observe, transport};

/// Settings by name.
type Settings = BTreeMap<String, String>;

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<Observation>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = CqlConnection::open(&target)?;
    let method = connection.method().to_owned();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    // An account without the right to read them leaves the settings unseen.
    let settings = settings(&mut connection);
    let of = |look: fn(&Settings) -> (State, String)| settings.as_ref().map(look).map_err(Clone::clone);
    let offers =
        settings.as_ref().map_err(Clone::clone).map(|all| value(all, "client_encryption_options", "enabled") == "true");
    let mut seen = vec![authentication(&target, &method, open)];
    seen.extend(transport(&target, &tls, offers, open));
    seen.push(observe(Feature::Authorisation, || authorisation(&mut connection)));
    seen.push(observe(Feature::AtRest, || of(at_rest)));
    seen.push(observe(Feature::Auditing, || of(auditing)));
    seen.push(observe(Feature::AuthenticationCaching, || {
        settings.as_ref().map(|settings| caching(settings, &method)).map_err(Clone::clone)
    }));
    seen.push(observe(Feature::NodeToNode, || of(node_to_node)));
    seen.push(observe(Feature::JmxAuthentication, || management(&mut connection)));
    seen.extend(not_offered(&[(Feature::ProxyRoles, "roles are granted to roles, but no account acts for another")]));
    Ok(seen)
}

/// One part of a setting that has several. What stands between the names differs from version to version.
fn value(settings: &Settings, group: &str, part: &str) -> String {
    let find = |between: &str| settings.get(&format!("{group}{between}{part}"));
    find("_").or_else(|| find(".")).cloned().unwrap_or_default()
}

/// The table of accounts is readable by administrators only.
fn authorisation(connection: &mut CqlConnection) -> Result<(State, String), Fault> {
    Ok(match connection.run("SELECT role FROM system_auth.roles LIMIT 1") {
        Err(fault @ Fault::Refused(_)) => (State::Enforced, format!("the table of roles: {fault}")),
        Err(fault) => return Err(fault),
        Ok(_) => match connection.run("LIST ROLES") {
            // Only a server without rights says that there is nothing to say.
            Err(fault) => (State::Off, format!("the table of roles is served; LIST ROLES: {fault}")),
            Ok(_) => (State::Unseen, "the account may read the table of roles: nothing is refused to it".to_owned()),
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

fn node_to_node(settings: &Settings) -> (State, String) {
    let of = |part: &str| value(settings, "server_encryption_options", part);
    let (which, optional) = (of("internode_encryption"), of("optional"));
    let seen = format!("internode_encryption = {which}, optional = {optional}");
    match (which.as_str(), optional.as_str()) {
        ("all", "false") => (State::Enforced, seen),
        ("none" | "", _) => (State::Off, seen),
        _ => (State::Available, seen),
    }
}

/// Properties of the virtual machine that open a management port or guard it.
fn management(connection: &mut CqlConnection) -> Result<(State, String), Fault> {
    const GUARD: &str = "com.sun.management.jmxremote.authenticate";
    const PORTS: [&str; 3] =
        ["cassandra.jmx.local.port", "cassandra.jmx.remote.port", "com.sun.management.jmxremote.port"];
    let names = PORTS.iter().chain([&GUARD]).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let statement = format!("SELECT name, value FROM system_views.system_properties WHERE name IN ({names})");
    let rows = connection.texts(&statement)?.into_iter();
    let set: Settings = rows.filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)).collect();
    let port =
        PORTS.iter().find_map(|name| Some(format!("{name} = {}", set.get(*name).filter(|value| !value.is_empty())?)));
    let Some(port) = port else { return Ok((State::Off, "no management port is open".to_owned())) };
    let guard = set.get(GUARD).filter(|value| !value.is_empty()).map_or("unset", String::as_str);
    let state = if guard == "true" { State::Enforced } else { State::Off };
    Ok((state, format!("{port}, {GUARD} = {guard}, as the virtual machine was started")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn optional_tls_between_nodes_is_not_enforced() {
        let all = ("server_encryption_options_internode_encryption", "all");
        assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "false")])).0, State::Enforced);
        assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "true")])).0, State::Available);
        assert_eq!(node_to_node(&settings(&[])).0, State::Off);
    }
}
