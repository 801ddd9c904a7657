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
        expect![[r#"
            13:26 `name` is taken: choose a name that no protection of tithe has (write for example `name = "row-level-security"`)
            13:46 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
            14:1 this protection changes nothing (add `settings`, `statements` or `session`: what its arm has and the plain one has not)
            15:1 `protections` has no `name` (add for example `name = "row-level-security"`)
            16:31 `protections` has no key `sesion` (did you mean `session`? its keys are: `use`, `name`, `description`, `settings`, `statements`, `session`, `claims`)
            17:44 the arm sets `Jit` twice (remove one of the two)
            17:68 a claim does not say what its statement says (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
            18:42 `session` must be a text in quotes, this is a whole number (write for example `session = ["SET ROLE tenant"]`)
            18:70 `statement` asks nothing (write for example `statement = "SELECT count(*) FROM usertable"`)
            18:87 a claim has two expectations (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
            19:9 the arm has `c` twice (remove one of the two)
            19:97 `fails_with` names no words, and every error has those (write for example `fails_with = "permission denied"`)
            20:9 the arm has `tls` twice (remove one of the two)
        "#]],
    );
}

#[test]
fn files_of_protections_are_named_with_line_and_column() {
    check(
        &with("protections = [{ use = \"rls\" }, { use = \"wrong\" }, { use = \"missing\" }]"),
        expect![[r#"
        12:24 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
        12:41 protections/wrong.toml:1:1: `protections` has no `description` (add for example `description = "each tenant sees its rows"`)
        12:41 protections/wrong.toml:1:1: this protection changes nothing (add `settings`, `statements` or `session`: what its arm has and the plain one has not)
        12:41 protections/wrong.toml:1:7: `use` has no place in the file of a protection, which is named by its file (write for example `use = "tls"`)
        12:41 protections/wrong.toml:2:1: `protections` has no key `settigs` (did you mean `settings`? its keys are: `use`, `name`, `description`, `settings`, `statements`, `session`, `claims`)
        12:41 protections/wrong.toml:3:1: a claim does not say what its statement says (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
        12:60 there is no protection `missing` (protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
    "#]],
    );
}

#[test]
fn what_another_protection_sets_an_own_one_does_not() {
    check(
        &with("settings = { \"pgaudit.log\" = \"all\" }\nprotections = [{ use = \"pgaudit\" }]"),
        expect![[r#"
        12:14 `pgaudit.log` cannot be set: the protection `pgaudit` of arm `own` sets it (remove it from the settings, or the protection from the arm)
    "#]],
    );
}

#[test]
fn a_server_that_tithe_does_not_start_keeps_its_settings() {
    let arms = "[[arm]]\nname = \"plain\"\nurl = \"postgres://u@h/d\"\n[[arm]]\nname = \"own\"\nurl = \"postgres://u@h/d\"\n\
                settings = { jit = \"off\" }\n";
    check(
        &with_arms("postgres", arms),
        expect![[r#"
        14:14 settings and statements cannot be given to a server that Tithe does not start (make the change on the server itself and leave it out here, or leave out every `url`; `session` and `claims` can stay)
    "#]],
    );
}

#[test]
fn only_servers_with_sql_have_them() {
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\nsettings = { jit = \"off\" }\n";
    check(
        &with_arms("redis", arms),
        expect![[r#"
        12:1 arms of redis have no protections or settings of their own (use one of its protections, or `[settings]` for all arms: PostgreSQL, MariaDB and MySQL can have them)
    "#]],
    );
}
