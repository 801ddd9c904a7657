//! An experiment from a few words: its text, and mistakes marked in the words.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tithe_model::{
    compose::{Words, compose, left_out, line},
    diagnostic::Diagnostic,
    parse::place,
};

use crate::{catalogue::catalogue, read_experiment};

const NOTHING: Words<'static> = Words::new("run", "postgres");

/// The experiment's text, or the line with the problems below the wrong words.
fn composed(words: &Words<'_>, database: &str) -> String {
    let catalogue = catalogue();
    let offered = catalogue.database(database).expect("a database");
    let composed = match compose(words, offered, &catalogue) {
        Ok(composed) => composed,
        Err(diagnostics) => return underlined(&line(words), &diagnostics),
    };
    assert_eq!(composed.line, line(words));
    match read_experiment(&composed.text) {
        Ok(_) => composed.text,
        Err(diagnostics) => underlined(&composed.line, &composed.point(diagnostics)),
    }
}

fn underlined(line: &str, diagnostics: &[Diagnostic]) -> String {
    let mut text = format!("{line}\n");
    for Diagnostic { range, problem, help } in diagnostics {
        let range = range.clone().unwrap_or(0..0);
        let marks = "^".repeat(line[range.clone()].chars().count());
        text.push_str(&format!("{}{marks} {problem} ({help})\n", " ".repeat(line[..range.start].chars().count())));
    }
    text
}

fn check(protections: &[&str], words: Words<'_>, expected: Expect) {
    let protections: Vec<String> = protections.iter().map(|&word| word.to_owned()).collect();
    expected.assert_eq(&composed(&Words { protections: &protections, ..words }, "postgres"));
}

#[test]
fn launched_servers() {
    check(
        &["tls", "tls+pgaudit:log=read,write,catalogue=true"],
        NOTHING,
        expect![[r##"
            # tithe run postgres --protect tls --protect tls+pgaudit:log=read,write,catalogue=true
            title = "What tls and tls+pgaudit:log=read,write,catalogue=true cost PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000

            [load]
            clients = 1

            [measure]
            budget = "2 min"

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"

            [[arm]]
            name = "tls"
            protections = [{ use = "tls" }]

            [[arm]]
            name = "tls+pgaudit:log=read,write,catalogue=true"
            protections = [{ use = "tls" }, { use = "pgaudit", log = "read,write", catalogue = true }]
        "##]],
    );
    let workloads = ["a".to_owned(), "c".to_owned()];
    let words =
        Words { workloads: &workloads, clients: &[1, 8], records: Some(500), budget: Some("90 min"), ..NOTHING };
    check(
        &["pgaudit:catalogue", "columns:share=.50"],
        words,
        expect![[r##"
            # tithe run postgres --protect pgaudit:catalogue --protect columns:share=.50 --workload a --workload c --clients 1,8 --records 500 --budget '90 min'
            title = "What pgaudit:catalogue and columns:share=.50 cost PostgreSQL"
            database = "postgres"

            [data]
            records = 500

            [load]
            clients = [1, 8]

            [measure]
            budget = "90 min"

            [[workload]]
            ycsb = "a"

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"

            [[arm]]
            name = "pgaudit:catalogue"
            protections = [{ use = "pgaudit", catalogue = true }]

            [[arm]]
            name = "columns:share=.50"
            protections = [{ use = "columns", share = 0.5 }]
        "##]],
    );
    check(
        &["tls", "columns", "pgaudit"],
        Words { quick: true, ..NOTHING },
        expect![[r##"
            # tithe run postgres --protect tls --protect columns --protect pgaudit --quick
            title = "What tls, columns and pgaudit cost PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000

            [load]
            clients = 1

            [measure]
            budget = "1 min"
            until_decided = true

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"

            [[arm]]
            name = "tls"
            protections = [{ use = "tls" }]

            [[arm]]
            name = "columns"
            protections = [{ use = "columns" }]

            [[arm]]
            name = "pgaudit"
            protections = [{ use = "pgaudit" }]
        "##]],
    );
}

#[test]
fn a_word_that_one_option_takes_is_its_protection() {
    check(
        &["luks+tls"],
        Words { records: Some(1_234_567), ..NOTHING },
        expect![[r##"
        # tithe run postgres --protect luks+tls --records 1234567
        title = "What luks+tls costs PostgreSQL"
        database = "postgres"

        [data]
        records = 1_234_567

        [load]
        clients = 1

        [measure]
        budget = "2 min"

        [[workload]]
        ycsb = "c"

        [[arm]]
        name = "plain"

        [[arm]]
        name = "luks+tls"
        protections = [{ use = "volume", kind = "luks" }, { use = "tls" }]
    "##]],
    );
    check(
        &["luks:kind=gocryptfs"],
        NOTHING,
        expect![[r#"
        tithe run postgres --protect luks:kind=gocryptfs
                                          ^^^^^^^^^^^^^^ `kind` is given twice (write `NAME:option=value,option=value`, each option once)
    "#]],
    );
}

#[test]
fn who_goes_on_writing_finds_comments() {
    check(
        &["pgaudit", "volume:kind=luks"],
        Words { explained: true, ..NOTHING },
        expect![[r##"
            # tithe run postgres --protect pgaudit --protect volume:kind=luks
            #
            # tithe plan FILE    what it does, how long it takes, what each arm changes; starts nothing
            # tithe verify FILE  every arm once with its evidence; times nothing
            # tithe run FILE     measures, and reports the costs with their proof

            title = "What pgaudit and volume:kind=luks cost PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000    # of 1 KB; where they do not fit in the server's memory, reads come from the disk

            [load]
            clients = 1    # busy at the same time; `[1, 4, 16]` measures several numbers, "sweep" 1 to 64

            [measure]
            budget = "2 min"    # of measured load for all cells; starting and loading servers comes on top

            [[workload]]
            ycsb = "c"    # reads only

            [[arm]]
            name = "plain"    # the baseline: every other arm is compared with it

            # pgaudit; protects against:
            # log = "…": Classes of statements.
            # catalogue = true | false: Log queries of the system tables.
            [[arm]]
            name = "pgaudit"
            protections = [{ use = "pgaudit" }]

            # volume; protects against:
            # kind = "luks" | "gocryptfs": What encrypts the volume.
            [[arm]]
            name = "volume:kind=luks"
            protections = [{ use = "volume", kind = "luks" }]
        "##]],
    );
    let catalogue = catalogue();
    let entry = catalogue.database("postgres").and_then(|database| database.protection("volume"));
    expect![[r#"

        # volume is not available: it takes root, and this is somebody else. it takes root, and this is somebody else.
        #   it takes root, and this is somebody else. it takes root, and this is somebody else.
        # [[arm]]
        # name = "volume"
        # protections = [{ use = "volume" }]
    "#]]
    .assert_eq(&left_out(entry.expect("a protection"), &"it takes root, and this is somebody else. ".repeat(4)));
}

/// The arms' names and URLs in the experiment for `protections`, with a baseline elsewhere.
fn check_places(protections: &[&str], expected: Expect) {
    let protections: Vec<String> = protections.iter().map(|word| (*word).to_owned()).collect();
    let words = Words {
        target: "postgres://audited@db:5433/shop?sslmode=require",
        plain: Some("postgres://plain@db/shop"),
        protections: &protections,
        ..NOTHING
    };
    let text = composed(&words, "postgres");
    let is_place = |line: &&str| ["#", "name", "url"].iter().any(|start| line.starts_with(start));
    expected.assert_eq(&text.lines().filter(is_place).map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn a_baseline_with_an_url_of_its_own_is_there_and_so_is_what_clients_and_sessions_bring() {
    check_places(
        &["tls", "pgaudit:log=read", "columns"],
        expect![[r##"
            # tithe run 'postgres://audited@db:5433/shop?sslmode=require' --plain postgres://plain@db/shop --protect tls --protect pgaudit:log=read --protect columns
            name = "plain"
            url = "postgres://plain@db/shop"
            name = "tls"
            url = "postgres://audited@db:5433/shop?sslmode=require"
            name = "pgaudit:log=read"
            url = "postgres://plain@db/shop"
            name = "columns"
            url = "postgres://plain@db/shop"
        "##]],
    );
}

#[test]
fn a_running_server_is_asked_for_tls_by_its_url_and_switched_by_statements() {
    let words = Words { target: "postgres://ann@db:5433/shop?sslmode=require", ..NOTHING };
    check(
        &["tls"],
        words,
        expect![[r##"
            # tithe run 'postgres://ann@db:5433/shop?sslmode=require' --protect tls
            title = "What tls costs PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000

            [load]
            clients = 1

            [measure]
            budget = "2 min"

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"
            url = "postgres://ann@db:5433/shop"

            [[arm]]
            name = "tls"
            protections = [{ use = "tls" }]
            url = "postgres://ann@db:5433/shop?sslmode=require"
        "##]],
    );
    let words = Words { target: "postgres://ann@db/shop?sslmode=require", ..NOTHING };
    check(
        &["pgaudit:log=read", "columns"],
        words,
        expect![[r##"
            # tithe run 'postgres://ann@db/shop?sslmode=require' --protect pgaudit:log=read --protect columns
            title = "What pgaudit:log=read and columns cost PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000

            [load]
            clients = 1

            [measure]
            budget = "2 min"

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"
            url = "postgres://ann@db/shop?sslmode=require"

            [[arm]]
            name = "pgaudit:log=read"
            protections = [{ use = "pgaudit", log = "read" }]
            url = "postgres://ann@db/shop?sslmode=require"
            on = ["SET log = 'read'", "SET catalogue = false"]
            off = ["RESET log"]

            [[arm]]
            name = "columns"
            protections = [{ use = "columns" }]
            url = "postgres://ann@db/shop?sslmode=require"
        "##]],
    );
}

#[test]
fn one_value_of_an_option_has_its_own_statements() {
    let protections = ["pgaudit:log=read,catalogue=true".to_owned()];
    let words = Words { target: "postgres://ann@db/shop", protections: &protections, ..NOTHING };
    let text = composed(&words, "postgres");
    let is_switch = |line: &&str| line.starts_with("on = ") || line.starts_with("off = ");
    let switches: Vec<&str> = text.lines().filter(is_switch).collect();
    assert_eq!(switches, [r#"on = ["SET whole = 'read'"]"#, r#"off = ["RESET whole"]"#], "{text}");
}

#[test]
fn places_are_found_by_keys_and_numbers() {
    let text = "a = 1\n[[arm]]\nname = \"x\"\n[[arm]]\nname = \"y\"\nurl = \"z\"\n[settings]\npgaudit.log = 1\n";
    let found = |path: &[&str]| place(text, path).map(|range| &text[range]);
    assert_eq!(found(&["arm", "1", "url"]), Some("\"z\""));
    assert_eq!(found(&["settings", "pgaudit", "log"]), Some("1"));
    // The place of a missing value is that of its container.
    assert_eq!(found(&["arm", "0", "url"]), Some("[[arm]]"));
    assert_eq!([found(&["b"]), place("a = ", &["a"]).map(|_| "")], [None, None]);
}

#[test]
fn tls_is_taken_out_of_urls() {
    let catalogue = catalogue();
    let plain = |id: &str, url: &str| catalogue.database(id).expect("a database").entry.url_tls.plain(url);
    assert_eq!(plain("postgres", "postgres://a@b/c?sslmode=require&x=y"), "postgres://a@b/c?x=y");
    assert_eq!(plain("redis", "rediss://b:1/0?ca=/ca.pem"), "redis://b:1/0");
    assert_eq!(plain("redis", "redisses://b"), "redisses://b");
}

#[test]
fn mistakes_are_told_of_the_words() {
    check(
        &["tsl", "tls+pgaudit:lgo=read"],
        NOTHING,
        expect![[r#"
        tithe run postgres --protect tsl --protect tls+pgaudit:lgo=read
                                     ^^^ there is no protection `tsl` (did you mean `tls`? protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
                                                               ^^^^^^^^ `pgaudit` has no option `lgo` (did you mean `log`? its options are: `catalogue`, `log`)
    "#]],
    );
    check(
        &["columns:share=2", "columns:share=much", "pgaudit:log=a,log=b", "tls:use=x"],
        NOTHING,
        expect![[r#"
            tithe run postgres --protect columns:share=2 --protect columns:share=much --protect pgaudit:log=a,log=b --protect tls:use=x
                                                                                                              ^^^^^ `log` is given twice (write `NAME:option=value,option=value`, each option once)
                                                                                                                                  ^^^^^ `use` is not an option (write `NAME:option=value,option=value`, each option once)
        "#]],
    );
    check(
        &["columns:share=2", "volume", "tls+tls", ""],
        NOTHING,
        expect![[r#"
        tithe run postgres --protect columns:share=2 --protect volume --protect tls+tls --protect ''
                                             ^^^^^^^ `share` must be from 0 to 1, this is 2 (write for example `share = 1`)
                                                               ^^^^^^ `volume` needs the option `kind`: What encrypts the volume. (add `kind = "luks"`)
                                                                                    ^^^ the arm has `tls` twice (remove one of the two)
                                                                                                    `name` is empty (write for example `name = "tls"`)
                                                                                                    there is no protection `` (protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
    "#]],
    );
    check(
        &["tls", "tls", "it's"],
        NOTHING,
        expect![[r#"
            tithe run postgres --protect tls --protect tls --protect 'it'\''s'
                                                       ^^^ there are two arms called `tls` (remove one of the two)
                                                                     ^^^^^^^^^ there is no protection `it\'s` (protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
        "#]],
    );
    let workloads = ["z".to_owned()];
    let words = Words { workloads: &workloads, budget: Some("2 m"), records: Some(0), ..NOTHING };
    check(
        &["tls"],
        words,
        expect![[r#"
            tithe run postgres --protect tls --workload z --records 0 --budget '2 m'
                                                        ^ `ycsb` has no preset `z` (for a file of your own write `ycsb_file = …`; the presets are: `a`, `c`)
                                                                    ^ `records` must be at least 1, this is `0` (write for example `records = 100_000`)
                                                                                ^^^ `budget` must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `2 m` (write for example `--budget "5 min"`)
        "#]],
    );
    check(
        &["tls", "pgaudit"],
        Words { budget: Some("20 s"), ..NOTHING },
        expect![[r#"
        tithe run postgres --protect tls --protect pgaudit --budget '20 s'
                                                                     ^^^^ a budget of 20 s buys 13 frames of cell `c`, and an interval needs 15 (write at least `--budget "23 s"`, or measure fewer arms, workloads or resources)
    "#]],
    );
    let words = Words { target: "postgres://ann@db/shop", ..NOTHING };
    check(
        &["volume:kind=luks"],
        words,
        expect![[r#"
            tithe run postgres://ann@db/shop --protect volume:kind=luks
                                                       ^^^^^^ `volume` cannot be measured on a server that Tithe does not start (name the database in place of its URL to let Tithe start the servers; attached servers can be measured with: `tls`, `pgaudit`, `columns`)
        "#]],
    );
}

proptest! {
    #[test]
    fn any_words_become_toml_or_are_pointed_at(
        target in "postgres|postgres://[a-z@?=&'\"é\n]{0,12}",
        protections in prop::collection::vec("(tls|pgaudit|columns|[a-z'\"\\\\é\n ]{0,4})([:,=+][a-z0-9.'\"é\n]{0,5}){0,4}", 0..4),
        budget in prop::option::of("[0-9a-z \"'\n]{0,6}"),
        quick in any::<bool>(),
    ) {
        let words = Words { target: &target, protections: &protections, budget: budget.as_deref(), quick, ..NOTHING };
        let catalogue = catalogue();
        let offered = catalogue.database("postgres").expect("a database");
        let pointed = match compose(&words, offered, &catalogue) {
            Ok(composed) => {
                let problems = read_experiment(&composed.text).err().unwrap_or_default();
                let is_toml = !problems.iter().any(|diagnostic| diagnostic.problem.starts_with("not TOML"));
                prop_assert!(is_toml, "{}\n{problems:?}", composed.text);
                composed.point(problems)
            }
            Err(diagnostics) => diagnostics,
        };
        let line = line(&words);
        for range in pointed.iter().filter_map(|diagnostic| diagnostic.range.clone()) {
            prop_assert!(line.get(range.clone()).is_some(), "{range:?} of {line:?}");
        }
    }
}
