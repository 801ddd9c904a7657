//! Every kind of complaint, with its place.

use expect_test::{Expect, expect};
use tithe_model::experiment::parse_bytes;

use crate::{FULL, SHORT, catalogue, read_experiment, render};

fn check(text: &str, expected: Expect) {
    match read_experiment(text) {
        Ok(experiment) => panic!("no complaint about {experiment:?}"),
        Err(complaints) => expected.assert_eq(&render(text, &complaints)),
    }
}

/// The short experiment with other arms.
fn with_arms(database: &str, arms: &str) -> String {
    let head = SHORT.split("[[arm]]").next().unwrap_or_default();
    format!("{}{arms}", head.replace("postgres", database))
}

#[test]
fn five_mistakes_five_complaints() {
    check(
        r#"title = "Five"
database = "postgre"

[load]
client = 2

[data]
records = "many"

[[workload]]
ycsb = "g"

[[arm]]
name = "plain"

[[arm]]
name = "plain"
"#,
        expect![[]],
    );
}

#[test]
fn nothing_at_all() {
    check("", expect![[]]);
}

#[test]
fn syntax() {
    check(&FULL.replace("clients = 2", "clients = = 2"), expect![[]]);
    check(&FULL.replace("\"postgres\"", "postgres"), expect![[]]);
    check(&FULL.replace("values = \"incompressible\"", "records = 5"), expect![[]]);
    check(&FULL.replace("[load]", "[load"), expect![[]]);
    check(&FULL.replace("budget = \"15 min\"", "budget = \"15 min\nseeds = 1"), expect![[]]);
}

#[test]
fn syntax_error_does_not_hide_other_mistakes() {
    check(&FULL.replace("clients = 2", "clients = = 2").replace("epochs = 3", "epochs = 30"), expect![[]]);
}

#[test]
fn not_utf8() {
    let complaints = parse_bytes(b"title = \"\xff\"", &catalogue::catalogue(), &catalogue::read).unwrap_err();
    expect![[]].assert_debug_eq(&complaints);
}

#[test]
fn unknown_keys() {
    check(
        &SHORT
            .replace("[data]", "clients = 3\n[data]\nrecord = 1\nbudget = \"5 min\"")
            .replace("name = \"tls\"", "name = \"tls\"\nprotection = []\nnonsense = 1"),
        expect![[]],
    );
}

#[test]
fn wrong_types() {
    check(
        r#"
title = 5
database = ["postgres"]
settings = "fast"
load = [1]
[data]
records = 1e5
values = 2
[measure]
precision = 0.01
budget = 300
seed = "1"
primary = true
[[workload]]
ycsb = "c"
properties = { readproportion = [1], threads = 2026-11-21 }
[[arm]]
name = "plain"
protections = "none"
[[arm]]
name = 2
protections = ["tls", { use = 5 }, { name = "tls" }, { use = "columns", share = "half" }]
on = "SET x"
"#,
        expect![[]],
    );
}

#[test]
fn values_out_of_range() {
    check(
        r#"
title = " "
database = "postgres"
[data]
records = 0
values = "ycbs"
[load]
clients = 5000
rate = -1
arrivals = "poison"
[measure]
precision = "1"
budget = "5 m"
seed = -1
margin = "101%"
primary = "latency"
epochs = 21
slot = "1 ms"
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "two\nlines"
"#,
        expect![[]],
    );
}

#[test]
fn arrivals_without_rate() {
    check(&SHORT.replace("[data]", "[load]\narrivals = \"even\"\n[data]"), expect![[]]);
}

#[test]
fn databases() {
    check(&SHORT.replace("postgres", "postgresql"), expect![[]]);
    check(&SHORT.replace("postgres", "oracle"), expect![[]]);
}

#[test]
fn protections() {
    check(&SHORT.replace("postgres", "sqlite"), expect![[]]);
    check(&SHORT.replace("use = \"tls\"", "use = \"pgaudti\""), expect![[]]);
    check(&SHORT.replace("{ use = \"tls\" }", "{ use = \"tls\" }, { use = \"tls\" }"), expect![[]]);
}

#[test]
fn options() {
    let with = |options: &str| SHORT.replace("{ use = \"tls\" }", options);
    check(&with("{ use = \"columns\", share = 1.5, shares = 1 }"), expect![[]]);
    check(&with("{ use = \"volume\" }"), expect![[]]);
    check(&with("{ use = \"volume\", kind = \"lukz\" }"), expect![[]]);
    check(&with("{ use = \"pgaudit\", log = true, catalogue = \"no\" }"), expect![[]]);
}

#[test]
fn arms() {
    check(&with_arms("postgres", "[[arm]]\nname = \"only\""), expect![[]]);
    check(&with_arms("postgres", ""), expect![[]]);
    check(
        &with_arms("postgres", "[[arm]]\nname = \"a\"\nprotections = [{ use = \"tls\" }]\n[[arm]]\nname = \"b\""),
        expect![[]],
    );
}

#[test]
fn workloads() {
    let with = |workload: &str| SHORT.replace("ycsb = \"c\"", workload);
    check(&with("name = \"x\""), expect![[]]);
    check(&with("ycsb = \"g\""), expect![[]]);
    check(&with("ycsb = \"c\"\nycsb_file = \"workloads/mine.properties\""), expect![[]]);
    check(&with("ycsb_file = \"nowhere.properties\""), expect![[]]);
    check(&with("ycsb_file = \"workloads/broken.properties\""), expect![[]]);
    check(&with("ycsb = \"c\"\nproperties = { scanproportion = \"few\" }"), expect![[]]);
    check(&with("ycsb = \"c\"\n[[workload]]\nycsb = \"c\""), expect![[]]);
}

#[test]
fn settings() {
    check(&SHORT.replace("[data]", "[settings]\nport = 5432\n[data]"), expect![[]]);
    check(&SHORT.replace("[data]", "[[resources]]\nsettings = { port = 1 }\n[data]"), expect![[]]);
    check(&SHORT.replace("[data]", "[settings]\nlist = [1]\n[data]"), expect![[]]);
}

#[test]
fn urls() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    check(&two("url = \"redis://:hunter2@h\"", "url = \"mysql://u:hunter2@h\""), expect![[]]);
    check(&two("url = \"u:hunter2@h\"", "url = 5"), expect![[]]);
    check(&two("", "url = \"postgres://u@h\""), expect![[]]);
    check(&two("url = \"postgres://u@h\"", ""), expect![[]]);
    check(
        &two("url = \"postgres://u@h\"", "url = \"postgres://u@h\"\nprotections = [{ use = \"volume\", kind = \"luks\" }]"),
        expect![[]],
    );
    check(
        &two("url = \"postgres://u@h\"", "url = \"postgres://u@h\"\n[[arm]]\nname = \"c\"\nurl = \"postgres://u@other\""),
        expect![[]],
    );
    check(&with_arms("sqlite", "[[arm]]\nname = \"a\"\nurl = \"file://x\"\n[[arm]]\nname = \"b\"\nurl = \"file://y\""), expect![[]]);
    check(
        &two("url = \"postgres://u@h\"", "url = \"postgres://u@h\"").replace("[data]", "[settings]\na = 1\n[data]"),
        expect![[]],
    );
}

#[test]
fn switches() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    let url = "url = \"postgres://u@h\"";
    check(&two(url, &format!("{url}\non = [\"SET x\"]")), expect![[]]);
    check(&two(url, &format!("{url}\noff = [\"SET x\"]")), expect![[]]);
    check(&two("", "on = [\"SET x\"]\noff = [\"RESET x\"]"), expect![[]]);
    check(&two(&format!("{url}\non = [\"x\"]\noff = [\"y\"]"), url), expect![[]]);
}

#[test]
fn budget_and_slot() {
    check(&SHORT.replace("[data]", "[measure]\nbudget = \"10 s\"\n[data]"), expect![[]]);
    check(&FULL.replace("\"15 min\"", "\"2 min\""), expect![[]]);
    check(&FULL.replace("\"250 ms\"", "\"20 ms\""), expect![[]]);
    check(&SHORT.replace("[data]", "[load]\nrate = 0.1\n[data]"), expect![[]]);
}

#[test]
fn passwords_are_not_quoted() {
    check(&SHORT.replace("\"postgres\"", "\"postgres://u:hunter2@h/db\""), expect![[]]);
    check(&SHORT.replace("[data]", "[load]\narrivals = \"postgres://u:hunter2@h/db\"\nrate = 1\n[data]"), expect![[]]);
}
