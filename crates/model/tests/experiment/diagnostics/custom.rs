//! User-defined protections, and settings of one arm.

use std::io;

use expect_test::expect;
use tithe_model::{
    catalogue::{AskedOfCustom, Catalogue},
    experiment::{Claim, Says},
    parse::{custom_file, parse, protection_files},
};

use super::{check, with_arms};
use crate::{catalogue, read_experiment, render};

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
    let expected =
        Claim::Statement { statement: "SELECT count(*) FROM usertable".to_owned(), says: Says::Equals("0".to_owned()) };
    assert_eq!(custom.claims, [expected]);
    assert!(!experiment.arms[1].is_setting());
}

#[test]
fn what_is_switched_on_a_running_server_can_be_undone_there() {
    let read = |lines: &str| {
        let claim = "\n[[claims]]\nstatement = \"SELECT 1\"\nrows = 0\n";
        let (described, problems) = custom_file("own", format!("description = \"d\"\n{lines}{claim}").as_bytes());
        assert!(problems.is_empty(), "{lines}: {problems:?}");
        described.entry.attachable
    };
    let (made, undone) = ("statements = [\"MAKE\"]\n", "undo = [\"UNMAKE\"]\n");
    for lines in ["", "session = [\"SET x\"]\n", &format!("{made}{undone}")] {
        assert!(read(lines), "{lines}");
    }
    for lines in [made, "settings = { a = \"b\" }\n", "files = { a = \"/b\" }\n"] {
        assert!(!read(lines) && !read(&format!("{lines}session = [\"SET x\"]\n")), "{lines}");
    }
}

#[test]
fn a_file_says_what_it_protects_against_or_its_claims_do() {
    let own = "protects_against = \"eyes.\"\nleaves_open = \"ears.\"\n";
    for (lines, against, open) in
        [("", "what its claims say", "everything that its claims do not check"), (own, "eyes.", "ears.")]
    {
        let (described, _) = custom_file("own", format!("description = \"d\"\n{lines}").as_bytes());
        let entry = described.entry;
        assert_eq!((entry.id, entry.title, entry.protects_against, entry.leaves_open), ("own", "d", against, open));
    }
    let (described, problems) = custom_file("own", b"\xff");
    assert_eq!((described.entry.id, problems.len(), problems[0].0.as_str()), ("own", 1, "1:1"));
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
            16:31 `protections` has no key `sesion` (did you mean `session`? its keys are: `use`, `name`, `description`, `protects_against`, `leaves_open`, `options`, `settings`, `files`, `statements`, `undo`, `session`, `claims`)
            17:44 the arm sets `Jit` twice (remove one of the two)
            17:68 a claim does not say what its statement must answer (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
            18:42 `session` must be a text in quotes, this is a whole number (write for example `session = ["SET ROLE tenant"]`)
            18:70 `statement` asks nothing (write for example `statement = "SELECT count(*) FROM usertable"`)
            18:87 a claim has two expectations (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
            19:9 the arm has `c` twice (remove one of the two)
            19:97 `fails_with` is empty, and every error contains that (write for example `fails_with = "permission denied"`)
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
            12:41 protections/wrong.toml:2:1: `protections` has no key `settigs` (did you mean `settings`? its keys are: `use`, `name`, `description`, `protects_against`, `leaves_open`, `options`, `settings`, `files`, `statements`, `undo`, `session`, `claims`)
            12:41 protections/wrong.toml:3:1: a claim does not say what its statement must answer (give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim)
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
            14:14 settings cannot be given to a server that Tithe does not start (change what needs no restart by `statements` with `undo`, and the rest on the server itself; or leave out every `url`)
        "#]],
    );
}

#[test]
fn only_servers_with_sql_have_them() {
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\nsettings = { jit = \"off\" }\n";
    check(
        &with_arms("redis", arms),
        expect![[r#"
            12:1 arms of redis have no protections or settings of their own (use one of its protections, or `[settings]` for all arms)
        "#]],
    );
}

#[test]
fn a_running_server_gets_statements_that_are_undone_and_nothing_else() {
    let own = "protections = [{ use = \"custom\", name = \"a\", statements = [\"CREATE ROLE a\"], settings = { jit = \"off\" }, \
               files = { a = \"b\" } }]";
    let url = "url = \"postgres://u@h/d\"\n";
    let arms = format!("[[arm]]\nname = \"plain\"\n{url}[[arm]]\nname = \"own\"\n{url}{own}\n");
    check(
        &with_arms("postgres", &arms),
        expect![[r#"
        14:46 statements on a server that Tithe does not start have no `undo` (add the statements that undo them: they run at the end, and after a run that was killed)
        14:91 settings cannot be given to a server that Tithe does not start (change what needs no restart by `statements` with `undo`, and the rest on the server itself; or leave out every `url`)
        14:106 files cannot be put on a server that Tithe does not start (put them there yourself, or leave out every `url`)
    "#]],
    );
}

#[test]
fn an_empty_statement_undoes_nothing() {
    let own = "protections = [{ use = \"custom\", name = \"a\", statements = [\"CREATE ROLE a\"], undo = [\" \"] }]";
    let url = "url = \"postgres://u@h/d\"\n";
    check(
        &with_arms("postgres", &format!("[[arm]]\nname = \"plain\"\n{url}[[arm]]\nname = \"own\"\n{url}{own}\n")),
        expect![[r#"
        14:86 `undo` has an empty statement (write for example `undo = ["ALTER TABLE usertable DISABLE ROW LEVEL SECURITY"]`)
    "#]],
    );
}

#[test]
fn files_stay_in_their_folder_and_claims_name_checks() {
    check(
        &with(
            "protections = [{ use = \"custom\", name = \"a\", options = { a = 1 }, files = { \"../x\" = \"x\", \"/etc/x\" = \"x\", \
             \"y/z\" = \"x\" }, claims = [\n{ check = \"not-on-the-wires\" },\n{ check = \"counted-in-log\", matches = \"*\" },\n\
             { check = \"not-on-the-wire\", statement = \"SELECT 1\" },\n{ check = \"canary-not-in-files\", files = [\"dat\"] },\n\
             { statement = \"SELECT 1\", rows = 1, account = \"a\" } ] }]\nclaims = [{ statement = \"SELECT 1\", rows = 1 }]",
        ),
        expect![[r#"
            12:46 a protection in an experiment has no `options` (write its value where it belongs)
            12:77 `../x` is outside of the folder of the arm's files (give the name that the file gets there: settings and statements use it as `{files}/NAME`)
            12:91 `/etc/x` is outside of the folder of the arm's files (give the name that the file gets there: settings and statements use it as `{files}/NAME`)
            13:11 there is no check `not-on-the-wires` (did you mean `not-on-the-wire`? a claim can name: `canary-not-in-files`, `values-not-in-files`, `removed-not-in-files`, `removed-found`, `not-on-the-wire`, `refused-without-password`, `counted-in-log`, `refused-as`)
            14:1 `claims` has no `rows` (add for example `rows = 0`)
            15:30 the check `not-on-the-wire` has no `statement` (remove it: the check needs nothing)
            16:43 `files` cannot be `dat` (did you mean `data`? it is one of: `data`, `journal`, `logs`)
            17:37 `account` belongs to a check of Tithe's (name one by `check`, or remove it)
        "#]],
    );
}

#[test]
fn claims_alone_need_something_that_differs() {
    check(
        &with("claims = [{ statement = \"SELECT 1\", rows = 1 }]"),
        expect![[r#"
        12:1 this protection changes nothing (add `settings`, `statements` or `session`: what its arm has and the plain one has not)
    "#]],
    );
}

#[test]
fn a_claim_changes_no_settings() {
    let claim = |statement: &str| {
        let claims = format!("claims = [{{ statement = \"{statement}\", fails_with = \"denied\" }}]");
        with(&format!("{claims}\nsettings = {{ jit = \"off\" }}"))
    };
    check(
        &claim("SET GLOBAL a = 1"),
        expect![[r#"
            12:25 this changes settings of the server, and a claim changes nothing (read the setting, and claim its value)
        "#]],
    );
    assert!(read_experiment(&claim("CONFIG SET a 1")).is_ok(), "Redis discards it");
}

#[test]
fn options_of_a_file_stand_beside_its_use() {
    let experiment = read_experiment(&with("protections = [{ use = \"tenants\", tenant = \"two\" }]")).expect("right");
    let protection = &experiment.arms[1].protections[0];
    let custom = protection.custom.as_ref().expect("described in a file");
    assert_eq!(custom.session, ["SET app.tenant = 'two'"]);
    assert_eq!((protection.text("tenant"), protection.number("policies")), ("two", 1.0));
    check(
        &with("protections = [\n{ use = \"tenants\", tenant = 3, policies = 51, rows = 1 },\n{ use = \"options\" }]"),
        expect![[r#"
            13:29 `tenant` must be a text in quotes, this is a whole number (write for example `tenant = "one"`)
            13:43 `policies` must be from 1 to 50, this is 51 (write for example `policies = 1`)
            13:47 `tenants` has no option `rows` (its options are: `policies`, `tenant`)
            14:9 protections/options.toml:4:1: `session` is not a name of an option (give the option another name)
            14:9 protections/options.toml:5:5: `options` has no `default` (add for example `default = "one"`)
            14:9 protections/options.toml:6:5: `b` must be a text, a number, or true or false, this is a list (write for example `b = "one"`)
            14:9 protections/options.toml:7:17: `default` is none of `one_of` (write for example `default = "one"`)
        "#]],
    );
}

#[test]
fn what_an_own_protection_may_have_depends_on_its_server() {
    let url = "url = \"postgres://u@h/d\"\n";
    let switch = "switch = { on = [\"a\"], off = [\"b\"], ready = \"SELECT true\" }\n";
    let keeps_no_undo = |catalogue: &mut Catalogue| {
        let asked = &mut catalogue.databases[1].entry.custom;
        *asked = asked.map(|asked| AskedOfCustom { kept: None, ..asked });
    };
    let embedded_with_own =
        |catalogue: &mut Catalogue| catalogue.databases[0].entry.custom = catalogue.databases[1].entry.custom;
    for (part, may_have) in [
        ("settings = { jit = \"off\" }", [true, true, false, false, false]),
        ("files = { a = \"b\" }", [true, false, false, false, false]),
        ("statements = [\"MAKE\"]", [true, true, false, false, false]),
        ("statements = [\"MAKE\"], undo = [\"UNMAKE\"]", [true, true, true, false, false]),
        ("session = [\"SET a = 1\"]", [true; 5]),
        // It stays on a running server, for all clients.
        ("session = [\"SET GLOBAL a = 1\"]", [true, true, false, false, false]),
    ] {
        let own = format!("protections = [{{ use = \"custom\", name = \"a\", {part} }}]\n");
        let is_read = |database: &str, of_all: &str, of_own: &str, change: &dyn Fn(&mut Catalogue)| {
            let arms = format!("[[arm]]\nname = \"plain\"\n{of_all}[[arm]]\nname = \"own\"\n{of_all}{of_own}{own}");
            let text = with_arms(database, &arms).replace("[data]", "[measure]\nbudget = \"20 min\"\n[data]");
            let mut catalogue = catalogue::catalogue();
            change(&mut catalogue);
            parse(&text, &catalogue, &catalogue::read).is_ok()
        };
        let read = [
            is_read("postgres", "", "", &|_| {}),
            is_read("sqlite", "", "", &embedded_with_own),
            is_read("postgres", url, "", &|_| {}),
            is_read("postgres", url, "", &keeps_no_undo),
            is_read("postgres", url, switch, &|_| {}),
        ];
        assert_eq!(read, may_have, "{part}: launched, embedded, running, without undo, switched by its provider");
    }
}

#[test]
fn options_of_a_file_take_what_their_kind_takes() {
    let file = "description = \"d\"\nsession = [\"{text} {word} {flag} {number}\"]\n[options]\ntext = \"a\"\n\
                word = { default = \"b\", one_of = [\"b\", \"c\"] }\nflag = false\n\
                number = { default = 2, low = 1, high = 5 }\n";
    let read = |path: &str| match path {
        "protections/kinds.toml" => Ok(file.as_bytes().to_vec()),
        other => catalogue::read(other),
    };
    let said = |options: &str| {
        let text = with(&format!("protections = [{{ use = \"kinds\"{options} }}]"));
        let experiment = parse(&text, &catalogue::catalogue(), &read).ok()?;
        experiment.arms[1].protections[0].custom.as_ref().map(|custom| custom.session.concat())
    };
    assert_eq!(said("").as_deref(), Some("a b false 2"));
    assert_eq!(said(", text = \"z\", word = \"c\", flag = true, number = 5").as_deref(), Some("z c true 5"));
    for wrong in ["text = 1", "word = \"d\"", "word = 1", "flag = 1", "number = 0.9", "number = 5.1", "number = true"] {
        assert_eq!(said(&format!(", {wrong}")), None, "{wrong}");
    }
}

#[test]
fn only_a_plain_name_is_that_of_a_file() {
    for name in ["", ".", "..", "../x", "a/b", "/etc/x", "~", "a.b", "a b", "ä"] {
        assert_eq!(protection_files(name), [""; 0], "{name}");
    }
    let files = ["protections/row-level_2.toml", "~/.config/tithe/protections/row-level_2.toml"];
    assert_eq!(protection_files("row-level_2"), files);
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_one_that_is_not_there() {
    let text = with("protections = [{ use = \"rls\" }]");
    let said = |kind: io::ErrorKind| {
        let read = |_: &str| -> io::Result<Vec<u8>> { Err(kind.into()) };
        render(&text, &parse(&text, &catalogue::catalogue(), &read).expect_err("nothing can be read"))
    };
    let missing = said(io::ErrorKind::NotFound);
    assert!(missing.contains("there is no protection `rls`") && missing.lines().count() == 1, "{missing}");
    let refused = said(io::ErrorKind::PermissionDenied);
    assert!(refused.contains("the file protections/rls.toml cannot be read"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "the file is meant, and no other is looked for: {refused}");
}
