//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use tithe_harness::{
    database::{Install, Place},
    protection::Setup,
};
use tithe_model::experiment;

use super::ALL;
use crate::{
    mysql::{
        install::PLUGINS,
        launch::{launch, memory_needed, stored},
    },
    test_setup::{self, difference, plain},
};

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn install(version: &str) -> Install {
    let facts = BTreeMap::from([(PLUGINS.to_owned(), "/usr/lib/mysql/plugin".to_owned())]);
    Install { programs: "/usr/sbin".into(), version: version.to_owned(), facts }
}

fn shown(setup: &Setup) -> String {
    let place = Place { folder: "/run/02-arm".into(), port: 13306 };
    test_setup::shown(&launch(&install(""), setup, &place), setup)
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
fn encryption() {
    check(&[chosen("encryption", &[])], expect![[""]]);
    check(&[chosen("encryption", &[("redo", "false"), ("undo", "false"), ("binlog", "false")])], expect![[""]]);
}

/// The files of an account are made by statements that are not shown, so they are looked at here.
#[test]
fn accounts() {
    use tithe_harness::database::{Content, Step};
    let statements = |protections: &[experiment::Protection]| {
        let mut setup = plain();
        test_setup::apply(ALL, protections, &mut setup);
        let launch = launch(&install(""), &setup, &Place { folder: "/run/02-arm".into(), port: 13306 });
        let secrets = launch.steps.into_iter().filter_map(|step| match step {
            Step::Write { content: Content::Secret(secret), .. } => Some(secret.expose_text().to_owned()),
            _ => None,
        });
        secrets.collect::<String>()
    };
    expect![[""]].assert_eq(&statements(&[]));
    let all = [chosen("encryption", &[]), chosen("tls", &[("mutual", "true")]), chosen("password", &[])];
    expect![[""]].assert_eq(&statements(&all));
}

#[test]
fn tls() {
    check(&[chosen("tls", &[])], expect![[""]]);
    check(&[chosen("tls", &[("version", "1.2"), ("mutual", "true")])], expect![[""]]);
}

#[test]
fn general_log() {
    check(&[chosen("general-log", &[])], expect![[""]]);
}

#[test]
fn passwords_and_columns_change_nothing_of_the_configuration() {
    check(&[chosen("password", &[])], expect![[""]]);
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn a_proof_that_a_version_lacks_is_told_before_anything_starts() {
    let native = chosen("password", &[("plugin", "mysql_native_password")]);
    let protection = ALL.iter().find(|protection| protection.id() == "password").expect("a protection");
    let needs =
        |version: &str| protection.needs(&install(&format!("mysqld  Ver {version} for Linux on x86_64")), &native);
    assert_eq!(needs("8.0.33"), Ok(()));
    assert_eq!(
        needs("8.4.6").expect_err("off").what,
        "mysql_native_password, which is off in MySQL 8.4 and gone from later ones"
    );
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    setup.settings.insert("log_bin".to_owned(), "off".to_owned());
    setup.settings.insert("innodb_buffer_pool_size".to_owned(), "1G".to_owned());
    setup.settings.insert("sql_mode".to_owned(), "\nssl_ca=/x #".to_owned());
    setup.settings.insert("a = 1\nport".to_owned(), "1".to_owned());
    setup.clients = 500;
    expect![[""]].assert_eq(&difference(&shown(&plain()), &shown(&setup)));
    assert_eq!(memory_needed(&setup.settings), Some(3 << 29));
    assert_eq!(memory_needed(&BTreeMap::new()), Some(3 << 28));
}

/// Keys go with the data that they open, and a server that logs more stores the same.
#[test]
fn what_is_kept_of_a_stopped_server() {
    let mut setup = plain();
    let all = [chosen("encryption", &[]), chosen("general-log", &[])];
    test_setup::apply(ALL, &all, &mut setup);
    expect![[""]].assert_eq(&format!("{:#?}\n", stored(&setup)));
}
