//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    memcached::{install::TLS, launch::launch},
    test_setup::{self, difference, every_way, plain},
};

fn install() -> Install {
    Install { programs: "/usr/bin".into(), version: "memcached 1.6.18".to_owned(), facts: BTreeMap::new() }
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    test_setup::shown(&launch(&install(), setup, &Place::on_loopback("/run/arm", 21211)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 21211 }
        paths Paths { data: [], journal: [], logs: ["/run/arm/server.log"] }
    "#]]
    .assert_eq(&shown(&plain()));
}

#[test]
fn protections_are_arguments_and_files() {
    check(
        &[chosen("tls", &[("mutual", "true")])],
        expect![[r#"
            - serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64
            + serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64 --enable-ssl --extended=ssl_chain_cert=/m/server.pem,ssl_key=/m/server.key,ssl_min_version=3,ssl_verify_mode=2,ssl_ca_cert=/m/ca.pem
        "#]],
    );
    check(
        &[chosen("tls", &[]), chosen("auth-file", &[])],
        expect![[r#"
        - serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64
        + write /run/arm/users 600 Secret(***)
        + serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64 --enable-ssl --auth-file=/run/arm/users --extended=ssl_chain_cert=/m/server.pem,ssl_key=/m/server.key,ssl_min_version=3
    "#]],
    );
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn settings_are_options_and_cannot_add_others() {
    let mut setup = plain();
    setup.data_bytes = 100 << 20;
    for (name, value) in [
        ("threads", "2"),
        ("memory_limit", "128"),
        ("lru_crawler_sleep", "200,ssl_min_version=0"),
        ("no_hashexpand", ""),
        ("disable-flush-all", ""),
        ("x --port", "1\n2"),
    ] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        - serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64
        + serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --disable-flush-all --memory-limit=128 --threads=2 --extended=lru_crawler_sleep=200_ssl_min_version=0,no_hashexpand,x___port=1_2
    "#]].assert_eq(&difference(&shown(&plain()), &shown(&setup)));
    setup.settings.clear();
    expect![[r#"
        - serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=64
        + serve LC_ALL=C /usr/bin/memcached --listen=127.0.0.1 --port=21211 --udp-port=0 --memory-limit=400
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn a_server_without_tls_is_named() {
    let tls = ALL.iter().find(|protection| protection.entry().id == "tls").expect("a protection");
    let mut install = install();
    install.facts.insert(TLS.to_owned(), "no".to_owned());
    let missing = tls.needs(&install, &chosen("tls", &[])).expect_err("not built with it");
    assert_eq!(missing.what, "a memcached that was built with TLS (--enable-tls)");
    install.facts.insert(TLS.to_owned(), "yes".to_owned());
    assert_eq!(tls.needs(&install, &chosen("tls", &[])), Ok(()));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
