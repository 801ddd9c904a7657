//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use tithe_harness::{
    database::{Install, Place},
    protection::Setup,
};
use tithe_model::experiment;

use super::{ALL, ENTERPRISE};
use crate::{
    mongodb::launch::launch,
    test_setup::{self, difference, plain},
};

fn install() -> Install {
    Install { programs: "/mongo/bin".into(), version: "db version v7.0.5".to_owned(), facts: BTreeMap::new() }
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    test_setup::shown(&launch(&install(), setup, &Place { folder: "/run/arm".into(), port: 27018 }), setup)
}

/// The lines that `protections` take away from a plain server and add to it.
fn check(protections: &[experiment::Protection], expect: Expect) {
    let mut setup = plain();
    test_setup::apply(ALL, protections, &mut setup);
    expect.assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn a_plain_server() {
    expect![[""]].assert_eq(&shown(&plain()));
}

#[test]
fn tls() {
    check(&[chosen("tls", &[])], expect![[""]]);
    check(&[chosen("tls", &[("version", "1.2"), ("mutual", "true")])], expect![[""]]);
}

#[test]
fn passwords() {
    check(&[chosen("scram", &[])], expect![[""]]);
    check(&[chosen("scram", &[("mechanism", "SCRAM-SHA-1")])], expect![[""]]);
}

#[test]
fn the_audit_log_has_the_filters_of_the_published_report() {
    for (operations, expect) in [
        ("insert", expect![[""]]),
        ("update", expect![[""]]),
        ("insert+query", expect![[""]]),
        ("update+query", expect![[""]]),
        ("all", expect![[""]]),
    ] {
        check(&[chosen("audit", &[("operations", operations)])], expect);
    }
}

#[test]
fn encryption() {
    check(&[chosen("encryption", &[])], expect![[""]]);
    check(&[chosen("encryption", &[("cipher", "AES256-GCM")])], expect![[""]]);
}

#[test]
fn columns_change_nothing_of_the_server() {
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn several_protections_stand_in_one_arm() {
    check(
        &[chosen("tls", &[]), chosen("scram", &[]), chosen("audit", &[]), chosen("encryption", &[])],
        expect![[""]],
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
    expect![[""]].assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn what_the_community_edition_lacks_is_named() {
    let audit = ALL.iter().find(|protection| protection.id() == "audit").expect("a protection");
    let mut install = install();
    let missing = audit.needs(&install, &chosen("audit", &[])).expect_err("a community edition");
    expect!["an audit log, which MongoDB Community does not have"].assert_eq(&missing.what);
    install.facts.insert(ENTERPRISE.to_owned(), "yes".to_owned());
    assert_eq!(audit.needs(&install, &chosen("audit", &[])), Ok(()));
}
