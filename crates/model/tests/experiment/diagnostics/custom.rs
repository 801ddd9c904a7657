//! Protections of the reader's own, and settings of one arm.

use expect_test::expect;
use tithe_model::experiment::{Claim, Says};

use super::{check, with_arms};
use crate::read_experiment;

/// An experiment whose second arm has `lines`.
fn with(lines: &str) -> String {
    with_arms("postgres", &format!("[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\n{lines}\n"))
}

#[test]
fn a_protection_of_the_readers_own() {
    let claim = "{ statement = \"SELECT count(*) FROM usertable\", equals = \"0\" }";
    let text = with(&format!(
        "protections = [{{ use = \"custom\", name = \"rls\", session = [\"SET ROLE tenant\"], claims = [{claim}] }}]"
    ));
    let experiment = read_experiment(&text).expect("an experiment");
    let protection = &experiment.arms[1].protections[0];
    let custom = protection.custom.as_ref().expect("described in the experiment");
    assert_eq!((protection.id.as_str(), custom.session.as_slice()), ("rls", &["SET ROLE tenant".to_owned()][..]));
    let expected = Claim { statement: "SELECT count(*) FROM usertable".to_owned(), says: Says::Equals("0".to_owned()) };
    assert_eq!(custom.claims, [expected]);
    assert!(!experiment.arms[1].is_setting());
}

#[test]
fn settings_of_an_arm_are_a_setting() {
    let experiment = read_experiment(&with("settings = { wal_compression = \"on\" }")).expect("an experiment");
    let arm = &experiment.arms[1];
    assert!(arm.is_setting() && !experiment.arms[0].is_setting(), "{arm:?}");
    assert_eq!(arm.protections[0].custom.as_ref().map(|it| it.settings["wal_compression"].as_str()), Some("on"));
}

#[test]
fn what_is_wrong_with_one_has_its_place() {
    check(
        &with(
            "protections = [\n\
             { use = \"custom\", name = \"tls\", settings = { port = 1 } },\n\
             { use = \"custom\", name = \"nothing\" },\n\
             { use = \"custom\", session = [\"SELECT 1\"] },\n\
             { use = \"custom\", name = \"a\", sesion = [], settings = { jit = \"off\" } },\n\
             { use = \"custom\", name = \"b\", settings = { Jit = \"on\" }, claims = [{ statement = \"SELECT 1\" }] },\n\
             { use = \"custom\", name = \"c\", session = [3], claims = [{ statement = \"\", equals = \"\", rows = 1 }] },\n\
             { use = \"custom\", name = \"c\", session = [\"SELECT 1\"], claims = [{ statement = \"x\", fails_with = \" \" }] },\n\
             { use = \"tls\", settings = {} },\n]",
        ),
        expect![[""]],
    );
}

#[test]
fn files_of_protections_are_named_with_line_and_column() {
    check(&with("protections = [{ use = \"rls\" }, { use = \"wrong\" }, { use = \"missing\" }]"), expect![[""]]);
}

#[test]
fn what_another_protection_sets_an_own_one_does_not() {
    check(&with("settings = { \"pgaudit.log\" = \"all\" }\nprotections = [{ use = \"pgaudit\" }]"), expect![[""]]);
}

#[test]
fn a_server_that_tithe_does_not_start_keeps_its_settings() {
    let arms = "[[arm]]\nname = \"plain\"\nurl = \"postgres://u@h/d\"\n[[arm]]\nname = \"own\"\nurl = \"postgres://u@h/d\"\n\
                settings = { jit = \"off\" }\n";
    check(&with_arms("postgres", arms), expect![[""]]);
}

#[test]
fn only_servers_with_sql_have_them() {
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\nsettings = { jit = \"off\" }\n";
    check(&with_arms("redis", arms), expect![[""]]);
}
