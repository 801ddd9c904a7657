//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    java,
    opensearch::{
        install::PLUGIN_VERSION,
        launch::{BETWEEN_NODES, check as check_settings, launch, stored},
    },
    test_setup::{self, difference, every_way, plain},
};

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    shown_with(&[(java::PROGRAM, "/java/bin/java"), (PLUGIN_VERSION, "2.19.1.0")], setup)
}

fn shown_with(facts: &[(&str, &str)], setup: &Setup) -> String {
    let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let install = Install { programs: "/o".into(), version: "OpenSearch 2.19.1".to_owned(), facts };
    test_setup::shown(&launch(&install, setup, &Place::on_loopback("/run/arm", 21211)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        Folder("/run/arm/config")
        Folder("/run/arm/logs")
        Folder("/run/arm/tmp")
        write /run/arm/java.options 600
        -Xms512M
        -Xmx512M
        -Xss1m
        -XX:+UseG1GC
        -XX:MaxDirectMemorySize=256M
        -XX:+ExitOnOutOfMemoryError
        -XX:-UsePerfData
        "-Djava.io.tmpdir=/run/arm/tmp"
        -Djava.security.manager=allow
        -Djava.awt.headless=true
        -Dfile.encoding=UTF-8
        -Djna.nosys=true
        -Dio.netty.noUnsafe=true
        -Dio.netty.noKeySetOptimization=true
        -Dio.netty.recycler.maxCapacityPerThread=0
        -Dio.netty.allocator.numDirectArenas=0
        -Dlog4j.shutdownHookEnabled=false
        -Dlog4j2.disable.jmx=true
        -Dlog4j2.formatMsgNoLookups=true
        --add-opens=java.base/java.io=ALL-UNNAMED
        --add-opens=java.base/java.nio=ALL-UNNAMED
        "-Dopensearch.path.home=/o"
        "-Dopensearch.path.conf=/run/arm/config"
        -Dopensearch.distribution.type=tar
        -Dopensearch.bundled_jdk=false
        -cp "/o/lib/*"
        write /run/arm/config/opensearch.yml 600
        cluster.name: tithe
        cluster.routing.allocation.disk.threshold_enabled: false
        discovery.type: single-node
        http.host: 127.0.0.1
        http.port: 21211
        node.name: node1
        path.data: '/run/arm/data'
        path.logs: '/run/arm/logs'
        plugins.security.disabled: true
        transport.host: 127.0.0.11
        transport.port: 21211
        write /run/arm/config/log4j2.properties 600
        status = error
        appender.console.type = Console
        appender.console.name = console
        appender.console.layout.type = PatternLayout
        appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
        rootLogger.level = info
        rootLogger.appenderRef.console.ref = console
        serve LC_ALL=C /java/bin/java @/run/arm/java.options org.opensearch.bootstrap.OpenSearch
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 21211 }
        paths Paths { data: ["/run/arm/data"], journal: [], logs: ["/run/arm/server.log", "/run/arm/logs"] }
    "#]]
    .assert_eq(&shown(&plain()));
}

#[test]
fn protections_that_are_combined_share_the_plugin() {
    check(
        &[chosen("tls", &[("mutual", "true"), ("key", "rsa-2048")])],
        expect![[r#"
        - plugins.security.disabled: true
        + Identity { identity: ServerIdentity { key: Rsa2048, chain: 1 }, certificate: "/m/server-rsa-2048-1.pem", key: "/m/server-rsa-2048-1.key" }
        + plugins.security.ssl.http.clientauth_mode: REQUIRE
        + plugins.security.ssl.http.enabled: true
        + plugins.security.ssl.http.enabled_protocols: [TLSv1.3]
        + plugins.security.ssl.http.pemcert_filepath: certificate.pem
        + plugins.security.ssl.http.pemkey_filepath: key.pem
        + plugins.security.ssl.http.pemtrustedcas_filepath: authority.pem
        + plugins.security.ssl.transport.enabled: false
        + plugins.security.ssl_only: true
        + Link { path: "/run/arm/config/authority.pem", to: "/m/ca.pem" }
        + Link { path: "/run/arm/config/certificate.pem", to: "/m/server-rsa-2048-1.pem" }
        + Link { path: "/run/arm/config/key.pem", to: "/m/server-rsa-2048-1.key" }
    "#]],
    );
    check(
        &[chosen("tls", &[]), chosen("password", &[]), chosen("audit", &[("layers", "rest")])],
        expect![[r#"
        - plugins.security.disabled: true
        + plugins.security.allow_default_init_securityindex: true
        + plugins.security.audit.config.log4j.level: INFO
        + plugins.security.audit.config.log4j.logger_name: audit
        + plugins.security.audit.type: log4j
        + plugins.security.nodes_dn: ['CN=localhost']
        + plugins.security.restapi.roles_enabled: [all_access]
        + plugins.security.ssl.http.clientauth_mode: NONE
        + plugins.security.ssl.http.enabled: true
        + plugins.security.ssl.http.enabled_protocols: [TLSv1.3]
        + plugins.security.ssl.http.pemcert_filepath: certificate.pem
        + plugins.security.ssl.http.pemkey_filepath: key.pem
        + plugins.security.ssl.http.pemtrustedcas_filepath: authority.pem
        + plugins.security.ssl.transport.pemcert_filepath: certificate.pem
        + plugins.security.ssl.transport.pemkey_filepath: key.pem
        + plugins.security.ssl.transport.pemtrustedcas_filepath: authority.pem
        + appender.audit.type = File
        + appender.audit.name = audit
        + appender.audit.fileName = /run/arm/logs/audit.log
        + appender.audit.layout.type = PatternLayout
        + appender.audit.layout.pattern = %m%n
        + logger.audit.name = audit
        + logger.audit.level = info
        + logger.audit.additivity = false
        + logger.audit.appenderRef.audit.ref = audit
        + Link { path: "/run/arm/config/authority.pem", to: "/m/ca.pem" }
        + Link { path: "/run/arm/config/certificate.pem", to: "/m/server.pem" }
        + Link { path: "/run/arm/config/key.pem", to: "/m/server.key" }
        + Folder("/run/arm/config/opensearch-security")
        + write /run/arm/config/opensearch-security/config.yml 600
        + _meta:
        +   type: config
        +   config_version: 2
        + config:
        +   dynamic:
        +     http:
        +       anonymous_auth_enabled: false
        +     authc:
        +       internal:
        +         http_enabled: true
        +         order: 0
        +         http_authenticator:
        +           type: basic
        +           challenge: true
        +         authentication_backend:
        +           type: intern
        + write /run/arm/config/opensearch-security/internal_users.yml 600
        + _meta:
        +   type: internalusers
        +   config_version: 2
        + tithe-first:
        +   hash: $2y$12$titheopensearchfirst..joE/iZRjafnBDgsfF6TWAYpOoNGIx.G
        + write /run/arm/config/opensearch-security/roles.yml 600
        + _meta:
        +   type: roles
        +   config_version: 2
        + tithe-clients:
        +   cluster_permissions: [cluster_composite_ops, 'cluster:monitor/main']
        +   index_permissions:
        +   - index_patterns: ['tithe*']
        +     allowed_actions: [crud, 'indices:admin/refresh*']
        + write /run/arm/config/opensearch-security/roles_mapping.yml 600
        + _meta:
        +   type: rolesmapping
        +   config_version: 2
        + all_access:
        +   users: [tithe-first, tithe-administrator]
        + tithe-clients:
        +   users: [tithe-clients]
        + write /run/arm/config/opensearch-security/action_groups.yml 600
        + _meta:
        +   type: actiongroups
        +   config_version: 2
        + write /run/arm/config/opensearch-security/tenants.yml 600
        + _meta:
        +   type: tenants
        +   config_version: 2
        + write /run/arm/config/opensearch-security/audit.yml 600
        + _meta:
        +   type: audit
        +   config_version: 2
        + config:
        +   enabled: true
        +   audit:
        +     enable_rest: true
        +     disabled_rest_categories: []
        +     enable_transport: false
        +     disabled_transport_categories: []
        +     ignore_users: []
        +     ignore_requests: []
        +     log_request_body: true
        +     resolve_indices: true
        +     resolve_bulk_requests: false
        +     exclude_sensitive_headers: true
        +   compliance:
        +     enabled: false
    "#]],
    );
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn two_nodes_find_each_other_and_keep_no_data() {
    let mut setup = plain();
    setup.settings.insert("nodes".to_owned(), "2".to_owned());
    test_setup::apply(ALL, &[chosen("internode-tls", &[])], &mut setup);
    expect![[r#"
        - Folder("/run/arm/config")
        - Folder("/run/arm/logs")
        - Folder("/run/arm/tmp")
        - write /run/arm/java.options 600
        - "-Djava.io.tmpdir=/run/arm/tmp"
        - "-Dopensearch.path.conf=/run/arm/config"
        - write /run/arm/config/opensearch.yml 600
        - cluster.name: tithe
        - discovery.type: single-node
        - path.data: '/run/arm/data'
        - path.logs: '/run/arm/logs'
        - plugins.security.disabled: true
        - write /run/arm/config/log4j2.properties 600
        - serve LC_ALL=C /java/bin/java @/run/arm/java.options org.opensearch.bootstrap.OpenSearch
        - paths Paths { data: ["/run/arm/data"], journal: [], logs: ["/run/arm/server.log", "/run/arm/logs"] }
        + Folder("/run/arm/node1")
        + Folder("/run/arm/node1/config")
        + Folder("/run/arm/node1/logs")
        + Folder("/run/arm/node1/tmp")
        + write /run/arm/node1/java.options 600
        + "-Djava.io.tmpdir=/run/arm/node1/tmp"
        + "-Dopensearch.path.conf=/run/arm/node1/config"
        + write /run/arm/node1/config/opensearch.yml 600
        + cluster.initial_cluster_manager_nodes: [node1]
        + cluster.name: tithe-21211
        + discovery.seed_hosts: ['127.0.0.11:21211']
        + path.data: '/run/arm/node1/data'
        + path.logs: '/run/arm/node1/logs'
        + plugins.security.ssl.transport.enabled: true
        + plugins.security.ssl.transport.pemcert_filepath: certificate.pem
        + plugins.security.ssl.transport.pemkey_filepath: key.pem
        + plugins.security.ssl.transport.pemtrustedcas_filepath: authority.pem
        + plugins.security.ssl_only: true
        + write /run/arm/node1/config/log4j2.properties 600
        + Link { path: "/run/arm/node1/config/authority.pem", to: "/m/ca.pem" }
        + Link { path: "/run/arm/node1/config/certificate.pem", to: "/m/server.pem" }
        + Link { path: "/run/arm/node1/config/key.pem", to: "/m/server.key" }
        + Folder("/run/arm/node2")
        + Folder("/run/arm/node2/config")
        + Folder("/run/arm/node2/logs")
        + Folder("/run/arm/node2/tmp")
        + write /run/arm/node2/java.options 600
        + "-Djava.io.tmpdir=/run/arm/node2/tmp"
        + "-Dopensearch.path.conf=/run/arm/node2/config"
        + write /run/arm/node2/config/opensearch.yml 600
        + cluster.initial_cluster_manager_nodes: [node1]
        + cluster.name: tithe-21211
        + discovery.seed_hosts: ['127.0.0.11:21211']
        + http.host: 127.0.0.2
        + node.name: node2
        + path.data: '/run/arm/node2/data'
        + path.logs: '/run/arm/node2/logs'
        + plugins.security.ssl.transport.enabled: true
        + plugins.security.ssl.transport.pemcert_filepath: certificate.pem
        + plugins.security.ssl.transport.pemkey_filepath: key.pem
        + plugins.security.ssl.transport.pemtrustedcas_filepath: authority.pem
        + plugins.security.ssl_only: true
        + transport.host: 127.0.0.12
        + write /run/arm/node2/config/log4j2.properties 600
        + Link { path: "/run/arm/node2/config/authority.pem", to: "/m/ca.pem" }
        + Link { path: "/run/arm/node2/config/certificate.pem", to: "/m/server.pem" }
        + Link { path: "/run/arm/node2/config/key.pem", to: "/m/server.key" }
        + serve LC_ALL=C /bin/sh -c program=$1; main=$2; folder=$3; ready=$4; failed=$5; shift 5
        + trap 'trap "" TERM
        +   tail -qn 5 "$folder"/node*/server.log
        +   grep -hm 1 "$failed" "$folder"/node*/server.log
        +   cat "$folder/ended" 2>/dev/null
        +   kill 0; wait; exit 0' TERM
        + for node in "$@"; do
        +   setpriv --pdeathsig KILL sh -c 'asked=; trap asked=1 TERM; ended=$1; shift; setpriv --pdeathsig KILL "$@"; status=$?
        +     [ "$asked" ] || echo "$0 ended (status $status), so all nodes were stopped" >> "$ended"
        +     kill "$PPID"' "$node" "$folder/ended" \
        +     "$program" "@$folder/$node/java.options" "$main" > "$folder/$node/server.log" 2>&1 &
        +   until grep -q "$ready" "$folder/$node/server.log" 2>/dev/null; do sleep 0.2; done
        + done
        + wait nodes /java/bin/java org.opensearch.bootstrap.OpenSearch /run/arm o.o.n.Node.*started$ fatal exception node1 node2
        + paths Paths { data: ["/run/arm/node1/data", "/run/arm/node2/data"], journal: [], logs: ["/run/arm/server.log", "/run/arm/node1/server.log", "/run/arm/node2/server.log", "/run/arm/node1/logs", "/run/arm/node2/logs"] }
    "#]].assert_eq(&difference(&shown(&plain()), &shown(&setup)));
    assert_eq!(stored(&setup), None);
}

#[test]
fn without_the_plugin_none_of_its_settings_is_written() {
    let without = shown_with(&[(java::PROGRAM, "/java/bin/java")], &plain());
    expect![[r#"
        - plugins.security.disabled: true
    "#]]
    .assert_eq(&difference(&shown(&plain()), &without));
}

#[test]
fn settings_of_the_plugin_and_impossible_numbers_of_nodes_are_refused() {
    let checked = |name: &str, value: &str| check_settings(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
    for (name, value) in [
        ("nodes", "0"),
        ("nodes", "4"),
        ("nodes", "two"),
        ("heap", "1G -X"),
        ("heap", "16M"),
        ("plugins.security.audit.config.disabled_rest_categories", "AUTHENTICATED"),
        ("plugins.security_config.ssl_dual_mode_enabled", "true"),
        ("opendistro_security.ssl.http.clientauth_mode", "NONE"),
    ] {
        assert!(checked(name, value).is_err(), "{name}");
    }
    for (name, value) in
        [("nodes", "3"), ("heap", "2g"), (BETWEEN_NODES, "true"), ("indices.memory.index_buffer_size", "20%")]
    {
        assert_eq!(checked(name, value), Ok(()), "{name}");
    }
}

#[test]
fn settings_of_the_index_are_not_of_the_node_and_none_adds_another() {
    let mut setup = plain();
    for (name, value) in [
        ("index.refresh_interval", "5s"),
        ("indices.memory.index_buffer_size", "20%"),
        ("heap", "1G -X"),
        ("x: 1\ny", "1\n'2"),
    ] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        - -Xms512M
        - -Xmx512M
        + -Xms1GX
        + -Xmx1GX
        + indices.memory.index_buffer_size: 20%
        + x__1_y: '1 ''2'
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn only_servers_with_the_same_accounts_share_data() {
    let settings = |protections: &[experiment::Protection]| {
        let mut setup = plain();
        test_setup::apply(ALL, protections, &mut setup);
        stored(&setup).expect("one node").storage_settings
    };
    let (password, audit) = (|| chosen("password", &[]), || chosen("audit", &[]));
    assert_eq!(settings(&[]), settings(&[chosen("tls", &[]), chosen("columns", &[])]));
    let all = [settings(&[]), settings(&[password()]), settings(&[audit()]), settings(&[password(), audit()])];
    for (number, one) in all.iter().enumerate() {
        assert!(all[..number].iter().all(|other| other != one), "{one:?}");
    }
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
