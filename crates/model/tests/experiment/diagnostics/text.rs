//! Diagnostics of the text itself: syntax, keys, types, values.

use super::*;

#[test]
fn nothing_at_all() {
    check(
        "",
        expect![[r#"
            1:1 the experiment has no `title` (add for example `title = "What TLS costs"`)
            1:1 the experiment has no `database` (add for example `database = "postgres"`)
            1:1 the experiment has no arms (add at least two `[[arm]]`: first the plain one, then one with `protections`)
            1:1 the experiment has no `[[workload]]` (add `[[workload]]` and below it `ycsb = "a"`)
            1:1 the experiment has no `[data]` (add `[data]` and below it for example `records = 100_000`)
        "#]],
    );
}

#[test]
fn syntax() {
    check(
        &FULL.replace("clients = 2", "clients = = 2"),
        expect![[r#"
            16:11 not TOML: extra `=`, expected nothing (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
        "#]],
    );
    check(
        &FULL.replace("\"postgres\"", "postgres"),
        expect![[r#"
        3:12 not TOML: string values must be quoted, expected literal string (put text in quotes, for example `database = "postgres"`)
    "#]],
    );
    check(
        &FULL.replace("values = \"incompressible\"", "records = 5"),
        expect![[r#"
        13:1 not TOML: duplicate key (keep one of the two; a second arm or workload begins with its own `[[arm]]` or `[[workload]]` line)
    "#]],
    );
    check(
        &FULL.replace("[load]", "[load"),
        expect![[r#"
        15:6 not TOML: unclosed table, expected `]` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
    "#]],
    );
    check(
        &FULL.replace("budget = \"15 min\"", "budget = \"15 min\nseeds = 1"),
        expect![[r#"
            22:17 not TOML: invalid basic string, expected `"` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            23:1 `[measure]` has no key `seeds` (did you mean `seed`? its keys are: `precision`, `budget`, `seed`, `margin`, `primary`, `epochs`, `starts`, `slot`, `warmup`, `idle`, `design`, `pin`, `aa_arm`, `until_decided`, `profile`)
        "#]],
    );
}

#[test]
fn a_file_of_something_else_gives_few_errors() {
    let text: String = (1..=30).map(|number| format!("user{number}:x:{number}\n")).collect();
    check(
        &text,
        expect![[r#"
            1:10 not TOML: key with no value, expected `=` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            2:10 not TOML: key with no value, expected `=` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            3:10 not TOML: key with no value, expected `=` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            4:10 not TOML: key with no value, expected `=` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            5:10 not TOML: key with no value, expected `=` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            6:10 not TOML: 25 more lines with errors (check that this is an experiment file)
        "#]],
    );
}

#[test]
fn syntax_error_does_not_hide_other_mistakes() {
    check(
        &FULL.replace("clients = 2", "clients = = 2").replace("epochs = 3", "epochs = 30"),
        expect![[r#"
            16:11 not TOML: extra `=`, expected nothing (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
            26:10 `epochs` must be from 1 to 20, this is `30` (write for example `epochs = 3`)
        "#]],
    );
}

#[test]
fn syntax_error_in_the_baseline_does_not_make_another_arm_the_baseline() {
    check(
        &SHORT.replacen("[[arm]]", "[[arm]", 1),
        expect![[r#"
        8:7 not TOML: unclosed array table, expected `]` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
    "#]],
    );
}

#[test]
fn empty_lists() {
    let text = "title = \"x\"\ndatabase = \"sqlite\"\ndata.records = 1\nworkload = []\narm = []\n";
    check(
        text,
        expect![[r#"
        6:1 the experiment has no arms (add at least two `[[arm]]`: first the plain one, then one with `protections`)
        6:1 the experiment has no `[[workload]]` (add `[[workload]]` and below it `ycsb = "a"`)
    "#]],
    );
}

#[test]
fn not_utf8() {
    let diagnostics = parse_bytes(b"title = \"\xff\"", &catalogue::catalogue(), &catalogue::read).unwrap_err();
    expect![[r#"
        [
            Diagnostic {
                range: Some(
                    9..10,
                ),
                problem: "not a text in UTF-8",
                help: "save the file as UTF-8",
            },
        ]
    "#]]
    .assert_debug_eq(&diagnostics);
}

#[test]
fn unknown_keys() {
    check(
        &SHORT
            .replace("[data]", "clients = 3\n[data]\nrecord = 1\nbudget = \"5 min\"")
            .replace("name = \"tls\"", "name = \"tls\"\nprotection = []\nnonsense = 1"),
        expect![[r#"
            4:1 the experiment has no key `clients` (`clients` belongs in `[load]`)
            6:1 `[data]` has no key `record` (did you mean `records`? its keys are: `records`, `values`)
            7:1 `[data]` has no key `budget` (`budget` belongs in `[measure]`)
            15:1 `[[arm]]` has no key `protection` (did you mean `protections`? its keys are: `name`, `protections`, `settings`, `claims`, `url`, `on`, `off`, `switch`, `observer`)
            16:1 `[[arm]]` has no key `nonsense` (its keys are: `name`, `protections`, `settings`, `claims`, `url`, `on`, `off`, `switch`, `observer`)
        "#]],
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
        expect![[r#"
            2:9 `title` must be a text in quotes, this is a whole number (write for example `title = "What TLS costs"`)
            3:12 `database` must be a text in quotes, this is a list (write for example `database = "postgres"`)
            4:12 `settings` must be a table, this is a text (write for example `settings = { shared_buffers = "256MB" }`)
            5:8 `load` must be a table, this is a list (write for example `load = { clients = 2 }`)
            7:11 `records` must be a whole number, this is a decimal number (write for example `records = 100_000`)
            8:10 `values` must be a text in quotes, this is a whole number (write for example `values = "ycsb"`)
            10:13 `precision` must be a text in quotes, this is a decimal number (write for example `precision = "1%"`)
            11:10 `budget` must be a text in quotes, this is a whole number (write for example `budget = "5 min"`)
            12:8 `seed` must be a whole number, this is a text (write for example `seed = 1`)
            13:11 `primary` must be a text in quotes, this is true or false (write for example `primary = "net"`)
            16:33 `readproportion` must be a text, a number, or true or false; this is a list (write the value in quotes, as the database's own files have it)
            16:48 `threads` must be a text, a number, or true or false; this is a date (write the value in quotes, as the database's own files have it)
            19:15 `protections` must be a list, this is a text (write for example `protections = [{ use = "tls" }]`)
            21:8 `name` must be a text in quotes, this is a whole number (write for example `name = "tls"`)
            22:16 a protection is a table with `use`, this is a text (write for example `{ use = "tls" }`)
            22:31 `use` must be a text in quotes, this is a whole number (write for example `use = "tls"`)
            22:36 a protection has no `use` (write for example `{ use = "tls" }`)
            23:1 `on` is given without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
            23:6 `on` must be a list, this is a text (write for example `on = ["SET pgaudit.log = 'read'"]`)
        "#]],
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
        expect![[r#"
            2:9 `title` is empty (write for example `title = "What TLS costs"`)
            5:11 `records` must be at least 1, this is `0` (write for example `records = 100_000`)
            6:10 `values` cannot be `ycbs` (did you mean `ycsb`? it is one of: `ycsb`, `incompressible`)
            8:11 `clients` must be from 1 to 1024, this is `5000` (write for example `clients = 2`)
            9:8 `rate` must be from 0.001 to 1000000000, this is -1 (write for example `rate = 2000`)
            10:12 `arrivals` cannot be `poison` (did you mean `poisson`? it is one of: `even`, `poisson`)
            12:13 `precision` must be a percentage from 0.01 % to 100 %, this is `1` (write for example `precision = "1%"`)
            13:10 `budget` must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `5 m` (write for example `budget = "5 min"`)
            14:8 `seed` must be at least 0, this is `-1` (write for example `seed = 1`)
            15:10 `margin` must be a percentage from 0 % to 100 %, this is `101%` (write for example `margin = "3%"`)
            16:11 `primary` cannot be `latency` (it is one of: `net`, `time`, `cpu`)
            17:10 `epochs` must be from 1 to 20, this is `21` (write for example `epochs = 3`)
            18:8 `slot` must be a time from 5 ms to 10 s with its unit (ms, s, min, h), this is `1 ms` (write for example `slot = "20 ms"`)
            24:8 `name` must be one line without control characters (write for example `name = "tls"`)
        "#]],
    );
}

#[test]
fn a_number_that_no_computer_word_holds() {
    check(
        &SHORT.replace("1000", "99999999999999999999"),
        expect![[r#"
            5:11 `records` must be from 1 to 18446744073709551615, this is `99999999999999999999` (write for example `records = 100_000`)
        "#]],
    );
}
