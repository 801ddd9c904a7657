//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::{ALL, ENTERPRISE};
use crate::{
    mongodb::launch::launch,
    test_setup::{self, difference, every_way, plain},
};

fn install() -> Install {
    Install { programs: "/mongo/bin".into(), version: "db version v7.0.5".to_owned(), facts: BTreeMap::new() }
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    test_setup::shown(&launch(&install(), setup, &Place::on_loopback("/run/arm", 27018)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        Folder("/run/arm/data")
        write /run/arm/mongod.conf 600
        net:
          bindIp: 127.0.0.1
          port: 27018
          unixDomainSocket:
            enabled: false
        setParameter:
          diagnosticDataCollectionEnabled: false
        storage:
          dbPath: "/run/arm/data"
        serve LC_ALL=C /mongo/bin/mongod --config /run/arm/mongod.conf
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 27018 }
        paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
    "#]]
    .assert_eq(&shown(&plain()));
}

#[test]
fn tls() {
    check(
        &[chosen("tls", &[])],
        expect![[r#"
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" sh /m/server.pem /m/server.key /run/arm/server.pem
        +   tls:
        +     CAFile: "/m/ca.pem"
        +     allowConnectionsWithoutCertificates: true
        +     certificateKeyFile: "/run/arm/server.pem"
        +     disabledProtocols: TLS1_0,TLS1_1,TLS1_2
        +     mode: requireTLS
    "#]],
    );
    check(
        &[chosen("tls", &[("version", "1.2"), ("mutual", "true")])],
        expect![[r#"
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" sh /m/server.pem /m/server.key /run/arm/server.pem
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" sh /m/client.pem /m/client.key /run/arm/client.pem
        +   tls:
        +     CAFile: "/m/ca.pem"
        +     allowConnectionsWithoutCertificates: false
        +     certificateKeyFile: "/run/arm/server.pem"
        +     disabledProtocols: TLS1_0,TLS1_1,TLS1_3
        +     mode: requireTLS
    "#]],
    );
}

#[test]
fn passwords() {
    check(
        &[chosen("scram", &[])],
        expect![[r#"
        + security:
        +   authorization: enabled
        +   authenticationMechanisms: SCRAM-SHA-256
    "#]],
    );
    check(
        &[chosen("scram", &[("mechanism", "SCRAM-SHA-1")])],
        expect![[r#"
        + security:
        +   authorization: enabled
        +   authenticationMechanisms: SCRAM-SHA-1
    "#]],
    );
}

#[test]
fn the_audit_log_has_the_filters_of_the_published_report() {
    for (operations, expect) in [
        (
            "insert",
            expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"insert\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   auditAuthorizationSuccess: true
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
        ),
        (
            "update",
            expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"update\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   auditAuthorizationSuccess: true
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
        ),
        (
            "insert+query",
            expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"insert\",\"find\",\"getMore\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   auditAuthorizationSuccess: true
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
        ),
        (
            "update+query",
            expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"update\",\"find\",\"getMore\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   auditAuthorizationSuccess: true
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
        ),
        (
            "all",
            expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"insert\",\"update\",\"delete\",\"find\",\"getMore\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   auditAuthorizationSuccess: true
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
        ),
    ] {
        check(&[chosen("audit", &[("operations", operations)])], expect);
    }
}

#[test]
fn encryption() {
    check(
        &[chosen("encryption", &[])],
        expect![[r#"
        + write /run/arm/encryption.key 600 Secret(***)
        + security:
        +   enableEncryption: true
        +   encryptionCipherMode: AES256-CBC
        +   encryptionKeyFile: "/run/arm/encryption.key"
    "#]],
    );
    check(
        &[chosen("encryption", &[("cipher", "AES256-GCM")])],
        expect![[r#"
        + write /run/arm/encryption.key 600 Secret(***)
        + security:
        +   enableEncryption: true
        +   encryptionCipherMode: AES256-GCM
        +   encryptionKeyFile: "/run/arm/encryption.key"
    "#]],
    );
}

#[test]
fn columns_change_nothing_of_the_server() {
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn several_protections_stand_in_one_arm() {
    check(
        &[chosen("tls", &[]), chosen("scram", &[]), chosen("audit", &[]), chosen("encryption", &[])],
        expect![[r#"
            - paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log"] }
            + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" sh /m/server.pem /m/server.key /run/arm/server.pem
            + write /run/arm/encryption.key 600 Secret(***)
            + auditLog:
            +   destination: file
            +   filter: "{\"atype\":\"authCheck\",\"param.command\":{\"$in\":[\"insert\",\"update\",\"delete\",\"find\",\"getMore\"]}}"
            +   format: JSON
            +   path: "/run/arm/audit.json"
            +   tls:
            +     CAFile: "/m/ca.pem"
            +     allowConnectionsWithoutCertificates: true
            +     certificateKeyFile: "/run/arm/server.pem"
            +     disabledProtocols: TLS1_0,TLS1_1,TLS1_2
            +     mode: requireTLS
            + security:
            +   authorization: enabled
            +   enableEncryption: true
            +   encryptionCipherMode: AES256-CBC
            +   encryptionKeyFile: "/run/arm/encryption.key"
            +   auditAuthorizationSuccess: true
            +   authenticationMechanisms: SCRAM-SHA-256
            + paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/journal"], logs: ["/run/arm/server.log", "/run/arm/audit.json"] }
        "#]],
    );
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    for (name, value) in [
        ("storage.wiredTiger.engineConfig.cacheSizeGB", "0.5"),
        ("setParameter.diagnosticDataCollectionEnabled", "true"),
        ("systemLog.component.query.verbosity", "1\nsecurity: off"),
        ("operationProfiling:\n mode", "all"),
    ] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        -   diagnosticDataCollectionEnabled: false
        + operationProfiling___mode: all
        +   diagnosticDataCollectionEnabled: true
        +   wiredTiger:
        +     engineConfig:
        +       cacheSizeGB: 0.5
        + systemLog:
        +   component:
        +     query:
        +       verbosity: "1\nsecurity: off"
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn what_the_community_edition_lacks_is_named() {
    let audit = ALL.iter().find(|protection| protection.entry().id == "audit").expect("a protection");
    let mut install = install();
    let missing = audit.needs(&install, &chosen("audit", &[])).expect_err("a community edition");
    expect!["an audit log, which MongoDB Community does not have"].assert_eq(&missing.what);
    install.facts.insert(ENTERPRISE.to_owned(), "yes".to_owned());
    assert_eq!(audit.needs(&install, &chosen("audit", &[])), Ok(()));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
