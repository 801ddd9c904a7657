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

use self::roles::Roles;
use super::{
    connection::CqlConnection,
    evidence::{open, plaintext, plaintext_port},
    store::settings,
    target::of_clients,
};
use crate::{
    findings,
    inspect::{Judgement, Rules, authentication, client_rows, inspect_feature, not_offered, transport},
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
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    // An account without the right to read them leaves the settings unseen.
    let settings = settings(&mut connection);
    // A setting applies to every account.
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
    let properties = properties(&mut connection);
    let roles = Roles::read(&mut connection);
    let authentication = authentication(&target, &method, open);
    let authentication = authentication
        .with_rules(settings.as_ref().map(|all| of_authentication(all, roles.as_ref())).map_err(Clone::clone), RIGHT);
    let transport = transport(&target, &tls, offers, plaintext).with_rules(rules(of_transport), RIGHT);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(authorisation(&mut connection, settings.as_ref().ok(), &roles).of(Feature::Authorisation));
    let judged = |judge: &dyn Fn(&Settings) -> Judgement| settings.as_ref().map(judge).map_err(Clone::clone);
    seen.push(inspect_feature(Feature::AtRest, || judged(&records::at_rest)));
    seen.push(inspect_feature(Feature::Auditing, || judged(&|all| records::auditing(all, properties.as_ref().ok()))));
    seen.push(inspect_feature(Feature::AuthenticationCaching, || {
        let (state, seen) = settings.as_ref().map(|settings| caching(settings, &method)).map_err(Clone::clone)?;
        Ok(Judgement::whole(state, seen))
    }));
    seen.push(inspect_feature(Feature::NodeToNode, || of(node_to_node)));
    seen.push(inspect_feature(Feature::JmxAuthentication, || properties.clone().map(|all| management(&all))));
    seen.extend(not_offered(&[(Feature::ProxyRoles, "roles are granted to roles, but no account acts for another")]));
    Ok(seen)
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

/// One part of a setting that has several; nothing if it is `null`. The separator between the names differs between
/// versions.
pub(super) fn value(settings: &Settings, group: &str, part: &str) -> String {
    let find = |between: &str| settings.get(&format!("{group}{between}{part}"));
    find("_").or_else(|| find(".")).filter(|value| *value != "null").cloned().unwrap_or_default()
}

/// The right that an account needs to read the settings.
const RIGHT: &str = "the account needs GRANT SELECT ON system_views.settings";

/// Every client must show a certificate if TLS requires one and plaintext is not accepted.
fn asks_certificates(settings: &Settings) -> bool {
    let of = |part: &str| value(settings, "client_encryption_options", part);
    of("enabled") == "true" && of("require_client_auth") == "true" && of_transport(settings).exceptions.is_empty()
}

/// One authenticator applies to all clients.
fn of_authentication(settings: &Settings, roles: Result<&Roles, &Fault>) -> Rules {
    let name = part(settings, "authenticator");
    let open = name.is_some_and(|name| name.contains("AllowAll")) && !asks_certificates(settings);
    let mut exceptions = if open { vec!["it asks for no credentials".to_owned()] } else { Vec::new() };
    let mut doubts = if name.is_none() { vec!["the server does not show it".to_owned()] } else { Vec::new() };
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

/// A setting that has parts from version 5.0 on.
fn part<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    settings.get(&format!("{name}.class_name")).or_else(|| settings.get(name)).map(String::as_str)
}

/// One port applies to all clients, unless TLS has a second port of its own.
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
            // Only a server without access control gives this answer.
            Err(fault) => Judgement::whole(State::Off, format!("the table of roles is served; LIST ROLES: {fault}")),
            Ok(_) => {
                Judgement::unseen("the settings are not shown, and the table of roles is: whether it limits any role")
            }
        },
        Ok(roles) => {
            let by_password = settings
                .and_then(|all| part(all, "authenticator"))
                .is_some_and(|name| name.ends_with("PasswordAuthenticator"));
            roles.judge(by_password)
        }
    }
}

fn caching(settings: &Settings, method: &str) -> (State, String) {
    let of = |name: &str| settings.get(name).map_or("unknown", String::as_str);
    let validity = of("credentials_validity");
    let off = method == "none" || validity.trim_end_matches(char::is_alphabetic) == "0";
    let (permissions, roles) = (of("permissions_validity"), of("roles_validity"));
    let seen = format!(
        "login by {method}, credentials_validity = {validity}; rights that were taken away hold for as long as \
         permissions_validity = {permissions}, roles_validity = {roles}"
    );
    (if off { State::Off } else { State::Enforced }, seen)
}

/// The transport between nodes, and the settings for it.
pub fn node_to_node(settings: &Settings) -> (State, String) {
    let of = |part: &str| value(settings, "server_encryption_options", part);
    let (which, optional) = (of("internode_encryption"), of("optional"));
    let asks = match of("require_client_auth").as_str() {
        "true" => "",
        _ if which == "none" || which.is_empty() => "",
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

/// Properties that open a management port, the one for this machine alone first.
const PORTS: [&str; 3] = ["cassandra.jmx.local.port", "cassandra.jmx.remote.port", "com.sun.management.jmxremote.port"];
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

/// The management port that is open, with its property.
fn management_port(properties: &Settings) -> Option<String> {
    PORTS.iter().find_map(|name| Some(format!("{name} = {}", properties.get(*name)?)))
}

fn management(properties: &Settings) -> Judgement {
    let Some(port) = management_port(properties) else {
        return Judgement::whole(State::Off, "no management port is open");
    };
    let of = |name: &str| properties.get(name).map_or("unset", String::as_str);
    let near = if properties.contains_key(PORTS[0]) { ", from this machine alone" } else { "" };
    let asks = of(PASSWORD_SWITCH) == "true";
    // From elsewhere, a password without TLS is read on its way.
    let clear =
        if asks && near.is_empty() && of(TLS_SWITCH) != "true" { ", and passwords travel in the clear" } else { "" };
    let state = if asks { State::Enforced } else { State::Off };
    let switches = format!("{PASSWORD_SWITCH} = {}, {TLS_SWITCH} = {}", of(PASSWORD_SWITCH), of(TLS_SWITCH));
    Judgement::whole(state, format!("{port}{near}, {switches}{clear}, as the virtual machine was started"))
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

    /// A table of set-ups: the difference from the previous one, and the judgement.
    #[test]
    fn every_answer_has_a_set_up_that_gives_it() {
        let mut text = String::new();
        let mut tell = |name: &str, (state, seen): (State, String)| {
            text += &format!("{name}: {}: {seen}\n", state.words());
        };
        let between = |which: &str, optional: &str, asks: &str| {
            let part = |part: &str| format!("server_encryption_options_{part}");
            let pairs = [("internode_encryption", which), ("optional", optional), ("require_client_auth", asks)];
            node_to_node(&pairs.map(|(name, value)| (part(name), value.to_owned())).into())
        };
        for (which, optional, asks) in [
            ("all", "false", "true"),
            ("all", "false", "false"),
            ("all", "true", "true"),
            ("dc", "false", "true"),
            ("rack", "false", "true"),
            ("none", "false", "false"),
            ("null", "false", "false"),
        ] {
            tell("nodes", between(which, optional, asks));
        }
        let cached = |method: &str, validity: &str| caching(&settings(&[("credentials_validity", validity)]), method);
        for (method, validity) in
            [("PLAIN", "2000ms"), ("PLAIN", "0ms"), ("PLAIN", "0"), ("PLAIN", "20s"), ("none", "2s")]
        {
            tell("cache", cached(method, validity));
        }
        tell("cache", caching(&settings(&[]), "PLAIN"));
        let (local, remote) = ((PORTS[0], "7199"), (PORTS[1], "7199"));
        let (asks, tls) = ((PASSWORD_SWITCH, "true"), (TLS_SWITCH, "true"));
        for pairs in
            [&[][..], &[local], &[local, asks], &[remote], &[remote, asks], &[remote, asks, tls], &[remote, tls]]
        {
            let judged = management(&settings(pairs));
            tell("management", (judged.state, judged.seen));
        }
        expect![[r#"
            nodes: enforced: internode_encryption = all, optional = false
            nodes: enforced: internode_encryption = all, optional = false; nodes are not asked for a certificate (require_client_auth)
            nodes: available but not enforced: internode_encryption = all, optional = true
            nodes: available but not enforced: internode_encryption = dc, optional = false; nodes of one data centre speak plaintext
            nodes: available but not enforced: internode_encryption = rack, optional = false; nodes of one rack speak plaintext
            nodes: off: internode_encryption = none, optional = false
            nodes: off: internode_encryption = , optional = false
            cache: enforced: login by PLAIN, credentials_validity = 2000ms; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            cache: off: login by PLAIN, credentials_validity = 0ms; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            cache: off: login by PLAIN, credentials_validity = 0; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            cache: enforced: login by PLAIN, credentials_validity = 20s; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            cache: off: login by none, credentials_validity = 2s; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            cache: enforced: login by PLAIN, credentials_validity = unknown; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
            management: off: no management port is open
            management: off: cassandra.jmx.local.port = 7199, from this machine alone, com.sun.management.jmxremote.authenticate = unset, com.sun.management.jmxremote.ssl = unset, as the virtual machine was started
            management: enforced: cassandra.jmx.local.port = 7199, from this machine alone, com.sun.management.jmxremote.authenticate = true, com.sun.management.jmxremote.ssl = unset, as the virtual machine was started
            management: off: cassandra.jmx.remote.port = 7199, com.sun.management.jmxremote.authenticate = unset, com.sun.management.jmxremote.ssl = unset, as the virtual machine was started
            management: enforced: cassandra.jmx.remote.port = 7199, com.sun.management.jmxremote.authenticate = true, com.sun.management.jmxremote.ssl = unset, and passwords travel in the clear, as the virtual machine was started
            management: enforced: cassandra.jmx.remote.port = 7199, com.sun.management.jmxremote.authenticate = true, com.sun.management.jmxremote.ssl = true, as the virtual machine was started
            management: off: cassandra.jmx.remote.port = 7199, com.sun.management.jmxremote.authenticate = unset, com.sun.management.jmxremote.ssl = true, as the virtual machine was started
        "#]].assert_eq(&text);
    }

    #[test]
    fn who_comes_in_without_credentials_is_an_exception() {
        let password = ("authenticator.class_name", "PasswordAuthenticator");
        let open = ("authenticator", "AllowAllAuthenticator");
        let part = |name: &'static str, value: &'static str| (name, value);
        let certificates = [
            open,
            part("client_encryption_options.enabled", "true"),
            part("client_encryption_options.require_client_auth", "true"),
            part("client_encryption_options.optional", "false"),
        ];
        let fault = Fault::Refused("no".to_owned());
        let judged = |pairs: &[(&str, &str)]| {
            let Rules { exceptions, doubts, .. } = of_authentication(&settings(pairs), Err(&fault));
            (exceptions.len(), doubts.len())
        };
        // Exceptions, and doubts: about accounts that are not shown, and about the authenticator.
        assert_eq!(judged(&[password]), (0, 1));
        assert_eq!(judged(&[open]), (1, 0));
        assert_eq!(judged(&[]), (0, 2));
        assert_eq!(judged(&certificates), (0, 1));
        for without in 1..certificates.len() {
            let others: Vec<_> =
                (0..certificates.len()).filter(|it| *it != without).map(|it| certificates[it]).collect();
            assert_eq!(judged(&others), (1, 0), "without {:?}", certificates[without]);
        }
        assert_eq!(of_authentication(&settings(&[open]), Err(&fault)).remedy, "set PasswordAuthenticator");
        assert!(of_authentication(&settings(&[password]), Err(&fault)).remedy.starts_with("ALTER ROLE"));
    }

    #[test]
    fn the_first_password_is_an_exception_where_passwords_are_asked_for() {
        let judged = |authenticator: &str, is_untouched: bool| {
            let roles = Roles::of_first(is_untouched);
            let rules = of_authentication(&settings(&[("authenticator", authenticator)]), Ok(&roles));
            (rules.exceptions.join("; "), rules.findings, rules.doubts.len())
        };
        let first = "`cassandra` has the password that every installation has".to_owned();
        let found = vec![&findings::CASSANDRA_AUTHN_FIRST_PASSWORD];
        assert_eq!(judged("PasswordAuthenticator", true), (first, found, 0));
        assert_eq!(judged("PasswordAuthenticator", false), (String::new(), vec![], 0));
        assert_eq!(judged("AllowAllAuthenticator", true), ("it asks for no credentials".to_owned(), vec![], 0));
    }

    #[test]
    fn optional_tls_for_clients_is_an_exception() {
        let of = |pairs: &[(&str, &str)]| of_transport(&settings(pairs)).exceptions;
        let (on, optional) = ("client_encryption_options_enabled", "client_encryption_options_optional");
        assert_eq!(of(&[(on, "true"), (optional, "false")]), [""; 0]);
        assert_eq!(of(&[(on, "true"), (optional, "true")]), ["client_encryption_options.optional = true"]);
        assert_eq!(of(&[(on, "true")]), ["client_encryption_options.optional = "]);
        assert_eq!(of(&[(on, "false"), (optional, "true")]), [""; 0]);
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
