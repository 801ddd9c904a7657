//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    etcd::{install::LOWEST_TLS, launch::launch},
    test_setup::{self, difference, every_way, plain},
};

fn install(lowest_tls: &str) -> Install {
    let facts = BTreeMap::from([(LOWEST_TLS.to_owned(), lowest_tls.to_owned())]);
    Install { programs: "/usr/bin".into(), version: "etcd Version: 3.4.23".to_owned(), facts }
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown_by(lowest_tls: &str, setup: &Setup) -> String {
    let place = Place::on_loopback("/run/arm", 21211);
    // A line for each argument.
    test_setup::shown(&launch(&install(lowest_tls), setup, &place), setup).replace(" --", "\n  --")
}

fn shown(setup: &Setup) -> String {
    shown_by("no", setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        serve LC_ALL=C /usr/bin/etcd
          --advertise-client-urls=http://127.0.0.1:21211
          --auth-token-ttl=86400
          --data-dir=/run/arm/data
          --initial-advertise-peer-urls=http://127.0.0.1:2380
          --initial-cluster=default=http://127.0.0.1:2380
          --listen-client-urls=http://127.0.0.1:21211
          --listen-peer-urls=http://127.0.0.1:0
          --log-level=warn
          --logger=zap
          --quota-backend-bytes=8589934592
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 21211 }
        paths Paths { data: ["/run/arm/data/member/snap"], journal: ["/run/arm/data/member/wal"], logs: ["/run/arm/server.log"] }
    "#]].assert_eq(&shown(&plain()));
}

#[test]
fn protections_are_arguments() {
    check(
        &[chosen("tls", &[("mutual", "true")])],
        expect![[r#"
        -   --advertise-client-urls=http://127.0.0.1:21211
        -   --listen-client-urls=http://127.0.0.1:21211
        +   --advertise-client-urls=https://127.0.0.1:21211
        +   --cert-file=/m/server.pem
        +   --cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        +   --client-cert-auth=true
        +   --key-file=/m/server.key
        +   --listen-client-urls=https://127.0.0.1:21211
        +   --trusted-ca-file=/m/ca.pem
    "#]],
    );
    check(
        &[chosen("tls", &[("key", "rsa-2048")])],
        expect![[r#"
        -   --advertise-client-urls=http://127.0.0.1:21211
        -   --listen-client-urls=http://127.0.0.1:21211
        + Identity { identity: ServerIdentity { key: Rsa2048, chain: 1 }, certificate: "/m/server-rsa-2048-1.pem", key: "/m/server-rsa-2048-1.key" }
        +   --advertise-client-urls=https://127.0.0.1:21211
        +   --cert-file=/m/server-rsa-2048-1.pem
        +   --cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        +   --key-file=/m/server-rsa-2048-1.key
        +   --listen-client-urls=https://127.0.0.1:21211
    "#]],
    );
    check(
        &[chosen("peer-tls", &[])],
        expect![[r#"
        -   --initial-advertise-peer-urls=http://127.0.0.1:2380
        -   --initial-cluster=default=http://127.0.0.1:2380
        -   --listen-peer-urls=http://127.0.0.1:0
        +   --cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        +   --initial-advertise-peer-urls=https://127.0.0.11:21211
        +   --initial-cluster=default=https://127.0.0.11:21211
        +   --listen-peer-urls=https://127.0.0.11:21211
        +   --peer-cert-file=/m/server.pem
        +   --peer-client-cert-auth=true
        +   --peer-key-file=/m/server.key
        +   --peer-trusted-ca-file=/m/ca.pem
    "#]],
    );
    check(&[chosen("password", &[])], expect![[""]]);
    check(&[chosen("columns", &[])], expect![[""]]);
    let mut setup = plain();
    test_setup::apply(ALL, &[chosen("tls", &[])], &mut setup);
    let newer = shown_by("yes", &setup);
    assert!(newer.contains("--tls-min-version=TLS1.3") && !newer.contains("--cipher-suites"), "{newer}");
}

#[test]
fn three_members_are_started_together() {
    let mut setup = plain();
    test_setup::apply(ALL, &[chosen("tls", &[]), chosen("peer-tls", &[])], &mut setup);
    setup.settings.insert("members".to_owned(), "3".to_owned());
    expect![[r#"
        serve LC_ALL=C /bin/sh -c program=$1; ended=$2; first=$3; second=$4; third=$5; shift 5; number=0
        trap 'trap "" TERM; kill 0; wait; cat "$ended" 2>/dev/null; exit 0' TERM
        IFS='
        '
        set -f
        for own in "$first" "$second" "$third"; do
          number=$((number + 1))
          setpriv
          --pdeathsig KILL sh -c 'asked=; trap asked=1 TERM; ended=$1; shift; setpriv
          --pdeathsig KILL "$@"; status=$?
            [ "$asked" ] || echo "$0 ended (status $status), so all members were stopped" >> "$ended"
            kill "$PPID"' "member$number" "$ended" "$program" $own "$@" &
        done
        wait members /usr/bin/etcd /run/arm/ended
          --advertise-client-urls=https://127.0.0.1:21211
        --data-dir=/run/arm/member1
        --election-timeout=1000
        --initial-advertise-peer-urls=https://127.0.0.11:21211
        --initial-election-tick-advance=true
        --listen-client-urls=https://127.0.0.1:21211
        --listen-peer-urls=https://127.0.0.11:21211
        --name=member1
          --advertise-client-urls=https://127.0.0.2:21211
        --data-dir=/run/arm/member2
        --election-timeout=5000
        --initial-advertise-peer-urls=https://127.0.0.12:21211
        --initial-election-tick-advance=false
        --listen-client-urls=https://127.0.0.2:21211
        --listen-peer-urls=https://127.0.0.12:21211
        --name=member2
          --advertise-client-urls=https://127.0.0.3:21211
        --data-dir=/run/arm/member3
        --election-timeout=5000
        --initial-advertise-peer-urls=https://127.0.0.13:21211
        --initial-election-tick-advance=false
        --listen-client-urls=https://127.0.0.3:21211
        --listen-peer-urls=https://127.0.0.13:21211
        --name=member3
          --auth-token-ttl=86400
          --cert-file=/m/server.pem
          --cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
          --initial-cluster=member1=https://127.0.0.11:21211,member2=https://127.0.0.12:21211,member3=https://127.0.0.13:21211
          --key-file=/m/server.key
          --log-level=warn
          --logger=zap
          --peer-cert-file=/m/server.pem
          --peer-client-cert-auth=true
          --peer-key-file=/m/server.key
          --peer-trusted-ca-file=/m/ca.pem
          --quota-backend-bytes=8589934592
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 21211 }
        paths Paths { data: ["/run/arm/member1/member/snap", "/run/arm/member2/member/snap", "/run/arm/member3/member/snap"], journal: ["/run/arm/member1/member/wal", "/run/arm/member2/member/wal", "/run/arm/member3/member/wal"], logs: ["/run/arm/server.log"] }
    "#]].assert_eq(&shown(&setup));
}

#[test]
fn settings_are_options_and_cannot_add_others() {
    let mut setup = plain();
    for (name, value) in [("snapshot_count", "5000"), ("log-level", "info"), ("x --name", "1\n2")] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        -   --log-level=warn
        +   --log-level=info
        +   --snapshot-count=5000
        +   --x---name=1 2
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
