//! The matrix of a Cassandra, row by row, from invented answers of its server.

use expect_test::expect;

use super::*;
use crate::{
    cassandra::told::{NULL, tight},
    test_setup::{asked_in_plaintext, changed_rows, plain, states, tried_in_plaintext},
    told::{Error, Rows, Told},
};

fn states_of(told: &Told) -> Vec<String> {
    states(&told.seen(|server| inspect(server, &plain()).expect("it can be reached")))
}

#[test]
fn each_answer_shows_in_its_rows() {
    const ROLES: &str = "FROM system_auth.roles";
    const SETTINGS: &str = "FROM system_views.settings";
    const PEERS: &str = "FROM system.peers_v2";
    const PROPERTIES: &str = "system_views.system_properties";
    const ANONYMOUS: Error = ("2100", "You have to be logged in and not anonymous to perform this request");
    const LATE: Error = ("1200", "Operation timed out");
    let usual = states_of(&tight());
    expect![[r#"
        authentication: enforced, whole server
        tls: off, whole server
        client-to-node: off, whole server
        authorisation: enforced, whole server
        at-rest: available but not enforced, whole server
        audit: enforced, whole server
        authentication-caching: enforced, whole server
        node-to-node: enforced, whole server
        jmx-authentication: off, whole server
        proxy-roles: not offered by this product, whole server
    "#]]
    .assert_eq(&usual.concat());
    let untouched: Rows = &[&["cassandra", "\u{1}", "\u{1}", "\0\0\0\0\0\0\0\0"], &["app", "\u{1}", "\0", "12345678"]];
    let locked: Rows = &[
        &["admin", "\u{1}", "\u{1}", "12345678"],
        &["boss", "\u{1}", "\u{1}", NULL],
        &["app", "\u{1}", "\0", "12345678"],
    ];
    let alters: Rows = &[&["app", "roles", "\0\0\0\u{1}\0\0\0\u{5}ALTER"]];
    let yaml = || {
        let told = tight().with("jmx_server_options.enabled", "true").with("jmx_server_options.jmx_port", "7199");
        told.with("jmx_server_options.authenticate", "true")
    };
    let changes = [
        ("no password", Told { password: false, ..tight() }.with("authenticator", "AllowAllAuthenticator")),
        ("the first password", tight().telling(ROLES, untouched)),
        ("a superuser without a password", tight().telling(ROLES, locked)),
        ("a role of an administrator", tight().telling("FROM system_auth.role_members", &[&["admin", "app"]])),
        ("a right to all roles", tight().telling("FROM system_auth.role_permissions", alters)),
        ("no access control", tight().with("authorizer", "AllowAllAuthorizer")),
        ("a class that is not known", tight().with("authorizer", "com.example.X")),
        ("a setting that is not shown", tight().without("authorizer")),
        ("that one, and accounts are nobody's", tight().without("authorizer").failing("LIST ROLES", ANONYMOUS)),
        ("that one, and the node is late", tight().without("authorizer").failing("LIST ROLES", LATE)),
        ("no right to the roles", tight().refusing(ROLES)),
        ("no right to the settings", tight().refusing(SETTINGS)),
        ("optional TLS", tight().with("client_encryption_options_optional", "true")),
        ("nothing encrypted", tight().with("transparent_data_encryption_options_enabled", "false")),
        ("no audit log", tight().with("audit_logging_options_enabled", "false")),
        ("an audit log that drops", tight().with("audit_logging_options_block", "false")),
        ("no cache", tight().with("credentials_validity", "0ms")),
        ("plaintext between nodes", tight().with("server_encryption_options_internode_encryption", "none")),
        ("another node", tight().telling(PEERS, &[&["b"]])),
        ("no right to the nodes", tight().refusing(PEERS)),
        ("a management port", tight().telling(PROPERTIES, &[&["cassandra.jmx.remote.port", "7199"]])),
        ("a management port of cassandra.yaml", yaml()),
        ("no right to the properties", tight().refusing(PROPERTIES)),
    ];
    let changes = changes.map(|(name, told)| (name, states_of(&told)));
    expect![[r#"
        no password
          authentication: off, whole server
          authentication-caching: off, whole server
        the first password
          authentication: available but not enforced, whole server [CASSANDRA-AUTHN-FIRST-PASSWORD]
        a superuser without a password
        a role of an administrator
          authorisation: off, whole server [CASSANDRA-AUTHZ-REACHABLE-SUPERUSER]
        a right to all roles
          authorisation: off, whole server [CASSANDRA-AUTHZ-REACHABLE-SUPERUSER]
        no access control
          authorisation: off, whole server
        a class that is not known
          authorisation: cannot tell, this account
        a setting that is not shown
          authorisation: cannot tell, this account
        that one, and accounts are nobody's
          authorisation: off, whole server
        that one, and the node is late
          authorisation: cannot tell, this account
        no right to the roles
          authentication: enforced, this account
          authorisation: enforced, this account
        no right to the settings
          authentication: enforced, this account
          tls: available but not enforced, this account
          client-to-node: available but not enforced, this account
          authorisation: cannot tell, this account
          at-rest: cannot tell, this account
          audit: cannot tell, this account
          authentication-caching: cannot tell, this account
          node-to-node: cannot tell, this account
        optional TLS
          tls: available but not enforced, whole server
          client-to-node: available but not enforced, whole server
        nothing encrypted
          at-rest: off, whole server
        no audit log
          audit: off, whole server
        an audit log that drops
          audit: available but not enforced, whole server [CASSANDRA-AUDIT-PARTIAL]
        no cache
          authentication-caching: off, whole server
        plaintext between nodes
          node-to-node: off, whole server
        another node
          authentication: enforced, this account
          tls: off, this account
          client-to-node: off, this account
          authorisation: enforced, this account
          at-rest: available but not enforced, this account
          audit: enforced, this account
          authentication-caching: enforced, this account
          node-to-node: enforced, this account
          jmx-authentication: off, this account
        no right to the nodes
          authentication: enforced, this account
          tls: off, this account
          client-to-node: off, this account
          authorisation: enforced, this account
          at-rest: available but not enforced, this account
          audit: enforced, this account
          authentication-caching: enforced, this account
          node-to-node: enforced, this account
          jmx-authentication: off, this account
        a management port
          audit: cannot tell, this account [CASSANDRA-AUDIT-BY-JMX]
        a management port of cassandra.yaml
          audit: cannot tell, this account [CASSANDRA-AUDIT-BY-JMX]
          jmx-authentication: enforced, whole server
        no right to the properties
          audit: enforced, this account
          jmx-authentication: cannot tell, this account
    "#]]
    .assert_eq(&changed_rows(&usual, &changes));
}

#[test]
fn tls_with_a_node_that_has_none_ends_before_it() {
    let told = |is_ended: bool, rules: Result<Rules, Fault>| {
        let judged = Judgement::account(State::Enforced, "TLSv1.3; plaintext: refused");
        clients(judged, is_ended, rules).map(|row| (row.state, row.scope.words()))
    };
    assert_eq!(told(false, Ok(Rules::default())), [(State::Enforced, "whole server"); 2]);
    assert_eq!(told(false, Err(Fault::Refused("no".to_owned()))), [(State::Enforced, "this account"); 2]);
    let ended = [(State::Enforced, "this account"), (State::Off, "this account")];
    assert_eq!(told(true, Ok(Rules::default())), ended);
}

#[test]
fn the_audit_log_is_a_recorder_and_has_a_check_where_it_is_on() {
    let told = |told: Told| {
        told.seen(|server| {
            assert_eq!(recording(server, &plain(), Sent::Passwords), Ok(None));
            let recorded = recording(server, &plain(), Sent::Values).expect("settings").expect("values");
            let checks = canary_checks(server, &plain(), &Table::of_canaries()).expect("settings");
            (recorded.repeats.len(), checks.audit.len())
        })
    };
    assert_eq!(told(tight()), (1, 1));
    assert_eq!(told(tight().with("audit_logging_options_enabled", "false")), (0, 0));
    tight().refusing("FROM system_views.settings").seen(|server| {
        assert!(recording(server, &plain(), Sent::Values).is_err());
        assert!(canary_checks(server, &plain(), &Table::of_canaries()).is_err());
    });
}

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
fn old_versions_of_tls_are_a_doubt_where_clients_speak_it() {
    let doubts = |enabled: &str, versions: &str| {
        let pairs = [("enabled", enabled), ("accepted_protocols", versions)];
        let part = |(name, set): (&str, &str)| (format!("client_encryption_options_{name}"), set.to_owned());
        of_transport(&pairs.map(part).into()).doubts
    };
    let told = "whether clients speak TLS before version 1.2, which client_encryption_options.accepted_protocols = \
                [TLSv1.1, TLSv1.2] allows";
    assert_eq!(doubts("true", "[TLSv1.1, TLSv1.2]"), [told]);
    for (enabled, versions) in [("false", "[TLSv1.1, TLSv1.2]"), ("true", "[TLSv1.2]"), ("true", "null")] {
        assert!(doubts(enabled, versions).is_empty(), "{enabled} {versions}");
    }
}

#[test]
fn optional_tls_between_nodes_is_not_enforced() {
    let all = ("server_encryption_options_internode_encryption", "all");
    assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "false")])).0, State::Enforced);
    assert_eq!(node_to_node(&settings(&[all, ("server_encryption_options_optional", "true")])).0, State::Available);
    assert_eq!(node_to_node(&settings(&[])).0, State::Unseen, "it is not shown");
}

#[test]
fn certificates_have_another_setting_in_version_4_0() {
    let part = |group: &str, part: &str, set: &str| (format!("{group}_encryption_options_{part}"), set.to_owned());
    let between = |name: &str, asks: &str| {
        let pairs = [("internode_encryption", "all"), ("optional", "false"), (name, asks)];
        node_to_node(&pairs.map(|(name, set)| part("server", name, set)).into()).1
    };
    for name in ["client_auth", "require_client_auth"] {
        assert!(between(name, "true").ends_with("optional = false"), "{name}");
        assert!(between(name, "false").ends_with("nodes are not asked for a certificate (require_client_auth)"));
        let clients = [("enabled", "true"), ("optional", "false"), (name, "true")];
        assert!(asks_certificates(&clients.map(|(name, set)| part("client", name, set)).into()), "{name}");
    }
    assert!(between("endpoint_verification", "false").ends_with("(require_client_auth) is not shown"));
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
        ("all", "null", "true"),
        ("dc", "false", "true"),
        ("rack", "false", "true"),
        ("none", "false", "false"),
        ("null", "false", "false"),
    ] {
        tell("nodes", between(which, optional, asks));
    }
    let cached = |method: &str, validity: &str| caching(&settings(&[("credentials_validity", validity)]), method);
    for (method, validity) in [("PLAIN", "2000ms"), ("PLAIN", "0ms"), ("PLAIN", "0"), ("PLAIN", "20s"), ("none", "2s")]
    {
        tell("cache", cached(method, validity));
    }
    tell("cache", caching(&settings(&[]), "PLAIN"));
    let of_4_0 = [("credentials_validity_in_ms", "0"), ("permissions_validity_in_ms", "2000")];
    tell("cache", caching(&settings(&of_4_0), "PLAIN"));
    let (local, remote) = ((PORTS[2], "7199"), (PORTS[1], "7199"));
    let (asks, tls) = ((PASSWORD_SWITCH, "true"), (TLS_SWITCH, "true"));
    for pairs in [&[][..], &[local], &[local, asks], &[remote], &[remote, asks], &[remote, asks, tls], &[remote, tls]] {
        let judged = management(&settings(pairs));
        tell("management", (judged.state, judged.seen));
    }
    expect![[r#"
        nodes: enforced: internode_encryption = all, optional = false
        nodes: enforced: internode_encryption = all, optional = false; nodes are not asked for a certificate (require_client_auth)
        nodes: available but not enforced: internode_encryption = all, optional = true
        nodes: enforced: internode_encryption = all, optional = false
        nodes: available but not enforced: internode_encryption = dc, optional = false; nodes of one data centre speak plaintext
        nodes: available but not enforced: internode_encryption = rack, optional = false; nodes of one rack speak plaintext
        nodes: off: internode_encryption = none, optional = false
        nodes: off: internode_encryption = , optional = false
        cache: enforced: login by PLAIN, credentials_validity = 2000ms; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: off: login by PLAIN, credentials_validity = 0ms; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: off: login by PLAIN, credentials_validity = 0; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: enforced: login by PLAIN, credentials_validity = 20s; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: off: login by none, credentials_validity = 2s; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: cannot tell: login by PLAIN, credentials_validity = unknown; rights that were taken away hold for as long as permissions_validity = unknown, roles_validity = unknown
        cache: off: login by PLAIN, credentials_validity = 0; rights that were taken away hold for as long as permissions_validity = 2000, roles_validity = unknown
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
    assert_eq!(judged(&[("authenticator", "null")]), (0, 2));
    assert_eq!(judged(&certificates), (0, 1));
    for without in 1..certificates.len() {
        let others: Vec<_> = (0..certificates.len()).filter(|it| *it != without).map(|it| certificates[it]).collect();
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
    assert_eq!(of(&[(on, "true"), (optional, "null")]), [""; 0], "it is optional by itself where it is off alone");
    assert_eq!(of(&[(on, "false"), (optional, "true")]), [""; 0]);
}

#[test]
fn a_node_may_speak_tls_that_is_only_optional() {
    let of = |pairs: &[(&str, &str)]| (offers_tls(&settings(pairs)), speaks_no_tls(&settings(pairs)));
    let (on, optional) = ("client_encryption_options_enabled", "client_encryption_options_optional");
    assert_eq!(of(&[(on, "true"), (optional, "false")]), (true, false));
    assert_eq!(of(&[(on, "false"), (optional, "true")]), (true, false));
    assert_eq!(of(&[(on, "false"), (optional, "false")]), (false, true));
    assert_eq!(of(&[]), (false, false), "the settings do not say it");
}

#[test]
fn the_management_port_that_counts_is_judged_by_its_own_defaults() {
    let judged = |pairs: &[(&str, &str)]| {
        let Judgement { state, seen, .. } = management(&settings(pairs));
        (state, seen.contains("from this machine alone"), seen.contains("in the clear"))
    };
    let [java, remote, local] = PORTS.map(|name| (name, "7199"));
    let (asks, asks_not) = ((PASSWORD_SWITCH, "true"), (PASSWORD_SWITCH, "false"));
    let (on, off) = (State::Enforced, State::Off);
    assert_eq!(judged(&[local, asks]), (on, true, false));
    assert_eq!(judged(&[local, remote, asks]), (on, false, true));
    assert_eq!(judged(&[local, java, asks_not]), (off, false, false));
    assert_eq!(judged(&[local, java]), (on, false, false));
    assert!(management(&settings(&[java])).seen.contains("authenticate = unset (true by itself)"));
    assert_eq!(judged(&[java, remote, (TLS_SWITCH, "false")]), (on, false, true));
    assert_eq!(judged(&[local, (PASSWORD_SWITCH, "TRUE")]), (on, true, false));
    assert_eq!(judged(&[remote, (PASSWORD_SWITCH, "yes")]), (off, false, false));
}

#[test]
fn a_management_port_may_be_in_cassandra_yaml() {
    let yaml = |pairs: &[(&str, &str)]| with_yaml(Settings::new(), &settings(pairs));
    let (on, port) = (("jmx_server_options.enabled", "true"), ("jmx_server_options.jmx_port", "7199"));
    let (remote, asks) = (("jmx_server_options.remote", "true"), ("jmx_server_options.authenticate", "true"));
    let tls = ("jmx_server_options.jmx_encryption_options.enabled", "true");
    assert_eq!(yaml(&[port]), Settings::new());
    let state = |pairs: &[(&str, &str)]| {
        let Judgement { state, seen, .. } = management(&yaml(pairs));
        (state, seen.contains("from this machine alone"), seen.contains("in the clear"))
    };
    assert_eq!(state(&[on, port]), (State::Off, true, false));
    assert_eq!(state(&[on, port, asks]), (State::Enforced, true, false));
    assert_eq!(state(&[on, port, remote]), (State::Off, false, false));
    assert_eq!(state(&[on, port, remote, asks]), (State::Enforced, false, true));
    assert_eq!(state(&[on, port, remote, asks, tls]), (State::Enforced, false, false));
    let audited = |properties: &Settings| {
        let on = [("audit_logging_options_enabled", "true"), ("audit_logging_options_logger", "BinAuditLogger")];
        records::auditing(&settings(&on), Some(properties)).state
    };
    assert_eq!([yaml(&[port]), yaml(&[on, port])].map(|all| audited(&all)), [State::Enforced, State::Unseen]);
    // What the virtual machine was started with stays.
    let started = settings(&[(PASSWORD_SWITCH, "false")]);
    assert_eq!(with_yaml(started, &settings(&[on, port, asks]))[PASSWORD_SWITCH], "false");
}

#[test]
fn a_class_that_is_not_cassandras_own_is_a_doubt() {
    let doubts = |setting: &str, class: &str| {
        let name = setting.trim_end_matches(".class_name");
        unknown_classes(&settings(&[(setting, class)]), &[name]).len()
    };
    for (setting, class) in [
        ("authorizer", "CassandraAuthorizer"),
        ("authorizer.class_name", "org.apache.cassandra.auth.CassandraAuthorizer"),
        ("role_manager", "CassandraRoleManager"),
        ("role_manager", "null"),
        ("authenticator", "PasswordAuthenticator"),
        ("authenticator.class_name", "AllowAllAuthenticator"),
        ("authenticator", ""),
    ] {
        assert_eq!(doubts(setting, class), 0, "{setting} = {class}");
    }
    for (setting, class) in [
        ("authorizer", "com.example.TransitionalAuthorizer"),
        ("role_manager.class_name", "com.example.LDAPCassandraRoleManager"),
        ("authenticator", "com.example.LDAPPasswordAuthenticator"),
    ] {
        assert_eq!(doubts(setting, class), 1, "{setting} = {class}");
    }
    let unknown = settings(&[("authenticator", "com.example.X"), ("role_manager", "Y"), ("authorizer", "Z")]);
    let doubts = of_authentication(&unknown, Ok(&Roles::default())).doubts;
    let expected = ["role_manager = Y", "authenticator = com.example.X"];
    assert_eq!(doubts, expected.map(|one| format!("{one}, whose rules are not known")));
}

#[test]
fn roles_are_judged_by_the_rules_of_cassandras_own_classes() {
    let judged = |roles: &[(&str, &str)], more: &[(&str, &str)]| {
        let own = [("authorizer", "CassandraAuthorizer"), ("authenticator", "PasswordAuthenticator")];
        let settings = settings(&[&own[..], more].concat());
        let Judgement { state, scope, seen, .. } = of_roles(&settings, &Roles::of(roles));
        format!("{}, {}: {seen}\n", state.words(), scope.words())
    };
    // `boss` has no password in the tables.
    let roles = [("admin", "slp"), ("boss", "sl"), ("app", "lp")];
    let ldap = ("authenticator", "com.example.LDAPPasswordAuthenticator");
    let (authorizer, manager) = (("authorizer", "com.example.Open"), ("role_manager", "com.example.OfLDAP"));
    let text = [
        judged(&roles, &[]),
        judged(&roles, &[ldap]),
        judged(&roles, &[authorizer]),
        judged(&roles, &[authorizer, manager]),
        judged(&roles, &[ldap, manager]),
    ];
    expect![[r#"
        enforced, whole server: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
        available but not enforced, whole server: 2 of 3 accounts may do everything (system_auth.roles): admin (superuser); boss (superuser): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
        cannot tell, this account: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser); not judged: authorizer = com.example.Open, whose rules are not known
        cannot tell, this account: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser); not judged: authorizer = com.example.Open, whose rules are not known; not judged: role_manager = com.example.OfLDAP, whose rules are not known
        available but not enforced, this account: 2 of 3 accounts may do everything (system_auth.roles): admin (superuser); boss (superuser): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false; not judged: role_manager = com.example.OfLDAP, whose rules are not known
    "#]].assert_eq(&text.concat());
}

#[test]
fn functions_are_free_where_three_settings_leave_them_so() {
    let all = [
        ("user_defined_functions_enabled", "true"),
        ("user_defined_functions_threads_enabled", "false"),
        ("allow_extra_insecure_udfs", "true"),
    ];
    let of_old_name = [("enable_user_defined_functions", "true"), all[1], all[2]];
    assert!([all, of_old_name].iter().all(|set| has_free_functions(&settings(set))));
    for (name, value) in all {
        let other = if value == "true" { "false" } else { "true" };
        let changed = settings(&[&all[..], &[(name, other)]].concat());
        assert!(!has_free_functions(&changed), "{name} = {other}");
    }
    assert!(!has_free_functions(&settings(&[])));
}

#[test]
fn a_password_asked_for_in_plaintext_is_not_sent() {
    let asks = b"\x84\0\0\0\x03\0\0\0\x17\0\x15PasswordAuthenticator\x84\0\0\0\x10\0\0\0\x04\xff\xff\xff\xff";
    expect!["available but not enforced: TLSv1.3; plaintext: served too"]
        .assert_eq(&asked_in_plaintext(asks, plaintext));
    expect!["enforced: TLSv1.3; plaintext: refused (at the first message: the server closed the connection)"]
        .assert_eq(&tried_in_plaintext(b"", plaintext).0);
}
