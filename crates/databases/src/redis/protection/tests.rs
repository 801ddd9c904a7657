//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    redis::{install::TLS, launch::launch},
    test_setup::{self, difference, every_way, plain},
};

fn install() -> Install {
    Install { programs: "/redis/bin".into(), version: "Redis server v=7.0.15".to_owned(), facts: BTreeMap::new() }
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    test_setup::shown(&launch(&install(), setup, &Place::on_loopback("/run/arm", 16379)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        Folder("/run/arm/data")
        write /run/arm/redis.conf 600
        appendonly no
        auto-aof-rewrite-percentage 0
        bind 127.0.0.1
        daemonize no
        dir /run/arm/data
        logfile ""
        port 16379
        save ""
        serve LC_ALL=C /redis/bin/redis-server /run/arm/redis.conf
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 16379 }
        paths Paths { data: ["/run/arm/data"], journal: ["/run/arm/data/appendonlydir", "/run/arm/data/appendonly.aof"], logs: ["/run/arm/server.log"] }
    "#]].assert_eq(&shown(&plain()));
}

#[test]
fn tls() {
    check(
        &[chosen("tls", &[])],
        expect![[r#"
        - port 16379
        + port 0
        + tls-auth-clients no
        + tls-cert-file /m/server.pem
        + tls-key-file /m/server.key
        + tls-port 16379
        + tls-protocols TLSv1.3
    "#]],
    );
    check(
        &[chosen("tls", &[("version", "1.2"), ("mutual", "true")])],
        expect![[r#"
        - port 16379
        + port 0
        + tls-auth-clients yes
        + tls-ca-cert-file /m/ca.pem
        + tls-cert-file /m/server.pem
        + tls-key-file /m/server.key
        + tls-port 16379
        + tls-protocols TLSv1.2
    "#]],
    );
}

#[test]
fn a_password() {
    check(
        &[chosen("requirepass", &[])],
        expect![[r#"
        + write /run/arm/password.conf 600 Secret(***)
        + include /run/arm/password.conf
    "#]],
    );
}

#[test]
fn accounts() {
    check(
        &[chosen("acl", &[])],
        expect![[r#"
        + write /run/arm/users.acl 600 Secret(***)
        + aclfile /run/arm/users.acl
    "#]],
    );
}

#[test]
fn the_append_only_file() {
    check(
        &[chosen("aof", &[])],
        expect![[r#"
        - appendonly no
        + appendfsync everysec
        + appendonly yes
    "#]],
    );
    check(
        &[chosen("aof", &[("fsync", "always")])],
        expect![[r#"
        - appendonly no
        + appendfsync always
        + appendonly yes
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
        &[chosen("tls", &[]), chosen("acl", &[]), chosen("aof", &[])],
        expect![[r#"
        - appendonly no
        - port 16379
        + write /run/arm/users.acl 600 Secret(***)
        + aclfile /run/arm/users.acl
        + appendfsync everysec
        + appendonly yes
        + port 0
        + tls-auth-clients no
        + tls-cert-file /m/server.pem
        + tls-key-file /m/server.key
        + tls-port 16379
        + tls-protocols TLSv1.3
    "#]],
    );
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    setup.settings.insert("hz".to_owned(), "2\nrequirepass x".to_owned());
    setup.settings.insert("hz 5\nport".to_owned(), "1".to_owned());
    setup.settings.insert("Save".to_owned(), "3600 1".to_owned());
    expect![[r#"
        - save ""
        + hz 2 requirepass x
        + hz-5-port 1
        + save 3600 1
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn a_server_without_tls_is_named() {
    let tls = ALL.iter().find(|protection| protection.entry().id == "tls").expect("a protection");
    let mut install = install();
    install.facts.insert(TLS.to_owned(), "no".to_owned());
    let missing = tls.needs(&install, &chosen("tls", &[])).expect_err("not built with it");
    expect!["a Redis or Valkey server that was built with TLS (BUILD_TLS=yes)"].assert_eq(&missing.what);
    install.facts.insert(TLS.to_owned(), "yes".to_owned());
    assert_eq!(tls.needs(&install, &chosen("tls", &[])), Ok(()));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
