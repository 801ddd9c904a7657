//! The security matrix of a running Cassandra.

mod records;
mod roles;

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    product::CanaryChecks,
    recording::{Recording, Sent},
    session::Table,
    setup::Setup,
};

use self::roles::{Node, Roles};
use super::{
    connection::CqlConnection,
    evidence::{open, other_nodes, plaintext, plaintext_port},
    store::settings,
    target::of_clients,
};
use crate::{
    findings,
    inspect::{
        Judgement, Rules, authentication, client_rows, doubt_of_old_tls, ended_rows, has_old_tls, inspect_feature,
        not_offered, transport,
    },
};

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
    let tls = connection.tls_facts().map_or_else(String::new, |tls| tls.suite());
    // An account without the right to read them leaves the settings unseen.
    let settings = settings(&mut connection);
    // A setting applies to every account, and to the node that was asked.
    let others = other_nodes(&mut connection, server);
    let narrowed = |judged: Judgement| judged.doubted_by(&others);
    let judged = |judge: &dyn Fn(&Settings) -> Judgement| {
        settings.as_ref().map(|all| narrowed(judge(all))).map_err(Clone::clone)
    };
    let offers = settings.as_ref().map_err(Clone::clone).map(offers_tls);
    let rules = |judge: &dyn Fn(&Settings) -> Rules| {
        let judge = |all: &Settings| {
            let rules = judge(all);
            Rules { doubts: [&rules.doubts[..], &others[..]].concat(), ..rules }
        };
        settings.as_ref().map(judge).map_err(Clone::clone)
    };
    let properties = properties(&mut connection).map(|found| match &settings {
        Ok(settings) => with_yaml(found, settings),
        Err(_) => found,
    });
    let roles = Roles::read(&mut connection);
    let authentication = authentication(&target, &method, open);
    let authentication = authentication.with_rules(rules(&|all| of_authentication(all, roles.as_ref())), RIGHT);
    let is_ended = target.tls.is_some() && settings.as_ref().is_ok_and(speaks_no_tls);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(clients(transport(&target, &tls, offers, plaintext), is_ended, rules(&of_transport)));
    let authorisation = authorisation(&mut connection, settings.as_ref().ok(), &roles);
    seen.push(narrowed(authorisation).of(Feature::Authorisation));
    seen.push(inspect_feature(Feature::AtRest, || judged(&records::at_rest)));
    seen.push(inspect_feature(Feature::Auditing, || judged(&|all| records::auditing(all, properties.as_ref().ok()))));
    seen.push(inspect_feature(Feature::AuthenticationCaching, || judged(&|all| whole(caching(all, &method)))));
    seen.push(inspect_feature(Feature::NodeToNode, || judged(&|all| whole(node_to_node(all)))));
    let management = properties.map(|all| narrowed(management(&all)));
    seen.push(inspect_feature(Feature::JmxAuthentication, || management));
    seen.extend(not_offered(&[(Feature::ProxyRoles, "roles are granted to roles, but no account acts for another")]));
    Ok(seen)
}

/// Both rows about clients, from the transport of this one, as it was `judged`, and the rules for all. `is_ended`: it
/// speaks TLS, and no client does with the node.
fn clients(judged: Judgement, is_ended: bool, rules: Result<Rules, Fault>) -> [FeatureStatus; 2] {
    if is_ended {
        return ended_rows(&judged, "client_encryption_options.enabled = false");
    }
    client_rows(judged.with_rules(rules, RIGHT))
}

fn whole((state, seen): (State, String)) -> Judgement {
    Judgement::by_state(state, seen)
}

/// What canaries can show: the audit log as it is now, however the node was started. Its files are not checked.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, _table: &Table) -> Result<CanaryChecks, Fault> {
    let settings = settings(&mut CqlConnection::open(&of_clients(server, setup)?)?)?;
    Ok(CanaryChecks { paths: Paths::default(), audit: records::canary(&settings).into_iter().collect() })
}

/// Recorders that repeat values in plaintext, from the settings. Passwords are not judged, because no check needs it.
///
/// # Errors
/// When the server cannot be reached, or does not show its settings.
pub fn recording(server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
    if sent == Sent::Passwords {
        return Ok(None);
    }
    let settings = settings(&mut CqlConnection::open(&of_clients(server, setup)?)?)?;
    Ok(Some(records::of_values(&settings)))
}

/// One part of a setting that has several, if the server shows it: another product that speaks the protocol may not
/// have it. The separator between the names differs between versions.
fn shown<'a>(settings: &'a Settings, group: &str, part: &str) -> Option<&'a String> {
    ["_", "."].iter().find_map(|between| settings.get(&format!("{group}{between}{part}")))
}

/// The same; nothing if it is `null` or not shown.
fn value(settings: &Settings, group: &str, part: &str) -> String {
    shown(settings, group, part).filter(|value| *value != "null").cloned().unwrap_or_default()
}

/// Whether a certificate is asked for in a `group`. Version 4.0 has another name for it (`addEncryptionOptions` in
/// `SettingsTable`).
fn client_auth(settings: &Settings, group: &str) -> String {
    let set = value(settings, group, "require_client_auth");
    if set.is_empty() { value(settings, group, "client_auth") } else { set }
}

/// Whether TLS is optional in a `group` that has it on. Unset, it is where TLS is off alone (`applyConfig` in
/// `EncryptionOptions`).
fn optional(settings: &Settings, group: &str) -> String {
    let is_unset = shown(settings, group, "optional").is_some_and(|value| value == "null");
    if is_unset { "false".to_owned() } else { value(settings, group, "optional") }
}

/// True if clients may speak TLS: `optional` alone is enough (`tlsEncryptionPolicy` in `EncryptionOptions`).
fn offers_tls(settings: &Settings) -> bool {
    ["enabled", "optional"].iter().any(|part| value(settings, "client_encryption_options", part) == "true")
}

/// True if the settings say that no client speaks TLS with the node.
pub(super) fn speaks_no_tls(settings: &Settings) -> bool {
    value(settings, "client_encryption_options", "enabled") == "false" && !offers_tls(settings)
}

/// The right that an account needs to read the settings.
const RIGHT: &str = "the account needs GRANT SELECT ON system_views.settings";

/// Every client must show a certificate if TLS requires one and plaintext is not accepted.
fn asks_certificates(settings: &Settings) -> bool {
    let of = |part: &str| value(settings, "client_encryption_options", part);
    let asks = client_auth(settings, "client_encryption_options") == "true";
    asks && of("enabled") == "true" && of_transport(settings).exceptions.is_empty()
}

/// One authenticator applies to all clients.
fn of_authentication(settings: &Settings, roles: Result<&Roles, &Fault>) -> Rules {
    let name = part(settings, "authenticator");
    let open = name.is_some_and(|name| name.contains("AllowAll")) && !asks_certificates(settings);
    let mut exceptions = if open { vec!["it asks for no credentials".to_owned()] } else { Vec::new() };
    let mut doubts = if name.is_none() { vec!["the server does not show it".to_owned()] } else { Vec::new() };
    doubts.extend(unknown_classes(settings, &["authenticator", "role_manager"]));
    let mut found = Vec::new();
    match roles {
        Ok(roles) => {
            let untouched = roles.untouched().filter(|_| name.is_some_and(|name| name.contains("Password")));
            found.extend(untouched.map(|_| &findings::CASSANDRA_AUTHN_FIRST_PASSWORD));
            exceptions.extend(untouched.map(|name| format!("`{name}` has the password that every installation has")));
        }
        Err(fault) if !open => doubts.push(format!("accounts ({fault}): {}", roles::RIGHT)),
        Err(_) => {}
    }
    Rules {
        read: format!("authenticator = {}", name.unwrap_or("not shown")),
        exceptions,
        findings: found,
        remedy: if open { "set PasswordAuthenticator" } else { "ALTER ROLE cassandra WITH PASSWORD = …" },
        doubts,
    }
}

/// A setting that has parts from version 5.0 on; `None` if it is unset.
fn part<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    let set = settings.get(&format!("{name}.class_name")).or_else(|| settings.get(name)).map(String::as_str);
    set.filter(|class| !matches!(*class, "" | "null"))
}

/// Asks every client for a password.
const BY_PASSWORD: &str = "PasswordAuthenticator";
/// Two authenticators begin so.
const BY_CERTIFICATE: &str = "MutualTls";
/// Cassandra's own authenticators.
const AUTHENTICATORS: [&str; 4] =
    ["AllowAllAuthenticator", BY_PASSWORD, "MutualTlsAuthenticator", "MutualTlsWithPasswordFallbackAuthenticator"];
/// Settings that name a class, and the classes whose rules are known.
const CLASSES: [(&str, &[&str]); 3] = [
    ("authorizer", &["CassandraAuthorizer"]),
    ("role_manager", &["CassandraRoleManager"]),
    ("authenticator", &AUTHENTICATORS),
];

/// A class without its package.
fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or_default()
}

/// Those of the settings `names` that leave it to a class that is not Cassandra's own, in words.
fn unknown_classes(settings: &Settings, names: &[&str]) -> Vec<String> {
    let asked = CLASSES.iter().filter(|(name, _)| names.contains(name));
    let unknown = asked.filter_map(|(name, known)| {
        let class = part(settings, name)?;
        let doubt = || format!("{name} = {class}, whose rules are not known");
        (!known.contains(&short(class))).then(doubt)
    });
    unknown.collect()
}

/// True if functions of clients may do what the server's process may: `allow_extra_insecure_udfs` says so of functions
/// that have no threads of their own (Cassandra's `Config`).
fn has_free_functions(settings: &Settings) -> bool {
    let is = |names: &[&str], wanted: &str| names.iter().any(|it| settings.get(*it).is_some_and(|set| set == wanted));
    is(&["user_defined_functions_enabled", "enable_user_defined_functions"], "true")
        && is(&["user_defined_functions_threads_enabled", "enable_user_defined_functions_threads"], "false")
        && is(&["allow_extra_insecure_udfs"], "true")
}

/// One port applies to all clients, unless TLS has a second port of its own.
fn of_transport(settings: &Settings) -> Rules {
    let of = |part: &str| value(settings, "client_encryption_options", part);
    let mut exceptions = Vec::new();
    let optional = optional(settings, "client_encryption_options");
    if of("enabled") == "true" && optional != "false" {
        exceptions.push(format!("client_encryption_options.optional = {optional}"));
    }
    let port = |name: &str| settings.get(name).map(String::as_str);
    let plain = plaintext_port(port("native_transport_port"), port("native_transport_port_ssl"));
    exceptions.extend(plain.map(|port| format!("port {port} speaks plaintext")));
    let versions = of("accepted_protocols");
    let is_old = offers_tls(settings) && has_old_tls(&versions);
    let old = is_old.then(|| doubt_of_old_tls("client_encryption_options.accepted_protocols", &versions));
    Rules {
        read: "client_encryption_options".to_owned(),
        exceptions,
        remedy: "set optional: false and no native_transport_port_ssl",
        doubts: old.into_iter().collect(),
        ..Rules::default()
    }
}

/// What roles can become, if the account may read them.
fn authorisation(
    connection: &mut CqlConnection,
    settings: Option<&Settings>,
    roles: &Result<Roles, Fault>,
) -> Judgement {
    let authorizer = settings.and_then(|settings| part(settings, "authorizer"));
    if let Some(name) = authorizer.filter(|name| name.contains("AllowAll")) {
        return Judgement::whole(State::Off, format!("authorizer = {name}: set CassandraAuthorizer"));
    }
    match roles {
        Err(fault @ Fault::Refused(_)) => Judgement::account(
            State::Enforced,
            format!("the table of roles: {fault}: {} to judge others", roles::RIGHT),
        ),
        Err(fault) => Judgement::unseen(fault.to_string()),
        Ok(_) if authorizer.is_none() => match connection.run("LIST ROLES") {
            // Only a server without access control refuses this.
            Err(fault @ Fault::Refused(_)) => {
                Judgement::whole(State::Off, format!("the table of roles is served; LIST ROLES: {fault}"))
            }
            Err(fault) => Judgement::unseen(format!("the table of roles is served; LIST ROLES: {fault}")),
            Ok(_) => {
                Judgement::unseen("the settings are not shown, and the table of roles is: whether it limits any role")
            }
        },
        Ok(roles) => settings.map_or_else(|| roles.judge(Node::default()), |settings| of_roles(settings, roles)),
    }
}

/// What `roles` can become by the rules of Cassandra's own classes.
fn of_roles(settings: &Settings, roles: &Roles) -> Judgement {
    let judged = roles.judge(Node {
        by_password: part(settings, "authenticator").is_some_and(|name| short(name) == BY_PASSWORD),
        free_functions: has_free_functions(settings),
        by_certificate: part(settings, "authenticator").is_some_and(|name| short(name).starts_with(BY_CERTIFICATE)),
    });
    let unknown = unknown_classes(settings, &["authorizer", "role_manager"]);
    // Another class may let everybody do everything, whatever the tables say.
    let state = if unknown.is_empty() || judged.state != State::Enforced { judged.state } else { State::Unseen };
    Judgement { state, ..judged }.doubted_by(&unknown)
}

fn caching(settings: &Settings, method: &str) -> (State, String) {
    // Before version 4.1 the unit was in the name.
    let find = |name: &str| settings.get(name).or_else(|| settings.get(&format!("{name}_in_ms")));
    let of = |name: &str| find(name).map_or("unknown", String::as_str);
    let validity = of("credentials_validity");
    let state = match (method, validity.trim_end_matches(char::is_alphabetic)) {
        ("none", _) | (_, "0") => State::Off,
        (_, "") => State::Unseen,
        _ => State::Enforced,
    };
    let (permissions, roles) = (of("permissions_validity"), of("roles_validity"));
    let seen = format!(
        "login by {method}, credentials_validity = {validity}; rights that were taken away hold for as long as \
         permissions_validity = {permissions}, roles_validity = {roles}"
    );
    (state, seen)
}

/// The transport between nodes, and the settings for it.
pub fn node_to_node(settings: &Settings) -> (State, String) {
    let of = |part: &str| value(settings, "server_encryption_options", part);
    let which = of("internode_encryption");
    if shown(settings, "server_encryption_options", "internode_encryption").is_none() {
        return (State::Unseen, "internode_encryption is not shown".to_owned());
    }
    let optional = match which.as_str() {
        "none" | "" => of("optional"),
        _ => optional(settings, "server_encryption_options"),
    };
    let asks = match client_auth(settings, "server_encryption_options").as_str() {
        "true" => "",
        _ if which == "none" || which.is_empty() => "",
        "" => "; whether nodes are asked for a certificate (require_client_auth) is not shown",
        _ => "; nodes are not asked for a certificate (require_client_auth)",
    };
    let within = match which.as_str() {
        "dc" => "; nodes of one data centre speak plaintext",
        "rack" => "; nodes of one rack speak plaintext",
        _ => "",
    };
    let seen = format!("internode_encryption = {which}, optional = {optional}{within}{asks}");
    match (which.as_str(), optional.as_str()) {
        ("all", "false") => (State::Enforced, seen),
        ("none" | "", _) => (State::Off, seen),
        _ => (State::Available, seen),
    }
}

/// Properties that open a management port: that of the virtual machine itself, Cassandra's own, and Cassandra's own for
/// this machine alone. The first that is set counts, and the others are ignored (`CassandraDaemon`).
const PORTS: [&str; 3] = ["com.sun.management.jmxremote.port", "cassandra.jmx.remote.port", "cassandra.jmx.local.port"];
const PASSWORD_SWITCH: &str = "com.sun.management.jmxremote.authenticate";
const TLS_SWITCH: &str = "com.sun.management.jmxremote.ssl";

/// Properties of the virtual machine that open a management port or protect it.
fn properties(connection: &mut CqlConnection) -> Result<Settings, Fault> {
    let names = PORTS.iter().chain([&PASSWORD_SWITCH, &TLS_SWITCH]).map(|name| format!("'{name}'"));
    let names = names.collect::<Vec<_>>().join(", ");
    let statement = format!("SELECT name, value FROM system_views.system_properties WHERE name IN ({names})");
    let rows = connection.texts(&statement)?.into_iter();
    let set = rows.filter_map(|row| <[String; 2]>::try_from(row).ok().map(<(String, String)>::from));
    Ok(set.filter(|(_, value)| !value.is_empty()).collect())
}

/// `properties`, with what cassandra.yaml of version 6.0 and newer has in their place. A node with both does not start.
fn with_yaml(mut properties: Settings, settings: &Settings) -> Settings {
    let of = |part: &str| value(settings, "jmx_server_options", part);
    if of("enabled") != "true" {
        return properties;
    }
    let [_, remote, local] = PORTS;
    let port = if of("remote") == "true" { remote } else { local };
    let tls = value(settings, "jmx_server_options.jmx_encryption_options", "enabled");
    let set = [(port, of("jmx_port")), (PASSWORD_SWITCH, of("authenticate")), (TLS_SWITCH, tls)];
    for (name, value) in set.into_iter().filter(|(_, value)| !value.is_empty()) {
        properties.entry(name.to_owned()).or_insert(value);
    }
    properties
}

/// The property of the management port that is open.
fn port_property(properties: &Settings) -> Option<&'static str> {
    PORTS.into_iter().find(|name| properties.contains_key(*name))
}

/// The management port that is open, with its property.
fn management_port(properties: &Settings) -> Option<String> {
    port_property(properties).map(|name| format!("{name} = {}", properties[name]))
}

fn management(properties: &Settings) -> Judgement {
    let Some(port) = management_port(properties) else {
        return Judgement::whole(State::Off, "no management port is open");
    };
    let [java, _, local] = PORTS;
    let open = port_property(properties);
    // The virtual machine's own port asks and encrypts by itself, Cassandra's only if told so. Both ignore case.
    let by_itself = open == Some(java);
    let is_on = |switch: &str| properties.get(switch).map_or(by_itself, |value| value.eq_ignore_ascii_case("true"));
    let unset = if by_itself { "unset (true by itself)" } else { "unset" };
    let of = |name: &str| properties.get(name).map_or(unset, String::as_str);
    let near = if open == Some(local) { ", from this machine alone" } else { "" };
    let asks = is_on(PASSWORD_SWITCH);
    // From elsewhere, a password without TLS is read on its way.
    let clear = if asks && near.is_empty() && !is_on(TLS_SWITCH) { ", and passwords travel in the clear" } else { "" };
    let state = if asks { State::Enforced } else { State::Off };
    let switches = format!("{PASSWORD_SWITCH} = {}, {TLS_SWITCH} = {}", of(PASSWORD_SWITCH), of(TLS_SWITCH));
    Judgement::whole(state, format!("{port}{near}, {switches}{clear}, as the virtual machine was started"))
}

#[cfg(test)]
mod tests;
