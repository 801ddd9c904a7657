//! Every kind of diagnostic, with its place.

use expect_test::{Expect, expect};
use tithe_model::parse::parse_bytes;

use crate::{FULL, SHORT, catalogue, read_experiment, render};

fn check(text: &str, expected: Expect) {
    match read_experiment(text) {
        Ok(experiment) => panic!("no diagnostic about {experiment:?}"),
        Err(diagnostics) => expected.assert_eq(&render(text, &diagnostics)),
    }
}

/// The short experiment with other arms.
fn with_arms(database: &str, arms: &str) -> String {
    let head = SHORT.split("[[arm]]").next().unwrap_or_default();
    format!("{}{arms}", head.replace("postgres", database))
}

#[test]
fn five_mistakes_five_diagnostics() {
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
        expect![[r#"
            2:12 there is no database `postgre` (did you mean `postgres`? this build of Tithe has: `sqlite`, `postgres`, `redis`)
            5:1 `[load]` has no key `client` (did you mean `clients`? its keys are: `clients`, `rate`, `arrivals`, `reconnect_every`)
            5:1 `[load]` has no key `client` (did you mean `clients`? its keys are: `clients`, `rate`, `arrivals`, `reconnect_every`)
            8:11 `records` must be a whole number, this is a text (write for example `records = 100_000`)
            11:8 `ycsb` has no ready workload `g` (for a property file write `ycsb_file = …`; the ready ones are: `a`, `c`)
            17:8 there are two arms called `plain` (give each its own name: reports tell them apart by it)
        "#]],
    );
}

#[test]
fn nothing_at_all() {
    check(
        "",
        expect![[r#"
            1:1 the experiment has no `title` (add for example `title = "What TLS costs"`)
            1:1 the experiment has no `database` (add for example `database = "postgres"`)
            1:1 the experiment has no arms (add two `[[arm]]` at least: first the plain one, then one with `protections`)
            1:1 the experiment has no `[data]` (add `[data]` and below it for example `records = 100_000`)
            1:1 the experiment has no `[[workload]]` (add `[[workload]]` and below it `ycsb = "a"`)
        "#]],
    );
}

#[test]
fn syntax() {
    check(
        &FULL.replace("clients = 2", "clients = = 2"),
        expect![[r#"
            16:11 not TOML: extra `=`, expected nothing (a line is `key = value`, `[table]` or `[[table]]`; text stands in quotes; the rules are at https://toml.io)
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
        15:6 not TOML: unclosed table, expected `]` (a line is `key = value`, `[table]` or `[[table]]`; text stands in quotes; the rules are at https://toml.io)
    "#]],
    );
    check(
        &FULL.replace("budget = \"15 min\"", "budget = \"15 min\nseeds = 1"),
        expect![[r#"
            22:17 not TOML: invalid basic string, expected `"` (a line is `key = value`, `[table]` or `[[table]]`; text stands in quotes; the rules are at https://toml.io)
            23:1 `[measure]` has no key `seeds` (did you mean `seed`? its keys are: `precision`, `budget`, `seed`, `margin`, `primary`, `epochs`, `slot`, `warmup`, `design`, `pin`, `aa_arm`, `until_decided`)
        "#]],
    );
}

#[test]
fn syntax_error_does_not_hide_other_mistakes() {
    check(
        &FULL.replace("clients = 2", "clients = = 2").replace("epochs = 3", "epochs = 30"),
        expect![[r#"
            16:11 not TOML: extra `=`, expected nothing (a line is `key = value`, `[table]` or `[[table]]`; text stands in quotes; the rules are at https://toml.io)
            26:10 `epochs` must be from 1 to 20, this is `30` (write for example `epochs = 3`)
        "#]],
    );
}

#[test]
fn syntax_error_in_the_baseline_does_not_make_another_arm_the_baseline() {
    check(
        &SHORT.replacen("[[arm]]", "[[arm]", 1),
        expect![[r#"
        8:7 not TOML: unclosed array table, expected `]` (a line is `key = value`, `[table]` or `[[table]]`; text stands in quotes; the rules are at https://toml.io)
    "#]],
    );
}

#[test]
fn empty_lists() {
    let text = "title = \"x\"\ndatabase = \"sqlite\"\ndata.records = 1\nworkload = []\narm = []\n";
    check(
        text,
        expect![[r#"
        6:1 the experiment has no arms (add two `[[arm]]` at least: first the plain one, then one with `protections`)
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
            15:1 `[[arm]]` has no key `protection` (did you mean `protections`? its keys are: `name`, `protections`, `url`, `on`, `off`)
            16:1 `[[arm]]` has no key `nonsense` (its keys are: `name`, `protections`, `url`, `on`, `off`)
        "#]],
    );
}

#[test]
fn renamed_keys() {
    let published = "\n[[published]]\nsource = \"a report\"\narm = \"tls\"\nfigure = \"time\"\nplain = 32.4\nprotected = 40.9\nguarded = 40.9\n";
    check(
        &format!("{}{published}", SHORT.replace("[data]", "[measure]\nguard_arm = true\n[data]")),
        expect![[r#"
            5:1 `[measure]` has no key `guard_arm` (it is called `aa_arm` now)
            22:1 `[[published]]` has no key `guarded` (it is called `protected` now)
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
            23:1 `on` stands without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
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
            12:13 `precision` must be a percentage from 0.01% to 100%, this is `1` (write for example `precision = "1%"`)
            13:10 `budget` must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `5 m` (write for example `budget = "5 min"`)
            14:8 `seed` must be at least 0, this is `-1` (write for example `seed = 1`)
            15:10 `margin` must be a percentage from 0% to 100%, this is `101%` (write for example `margin = "3%"`)
            16:11 `primary` cannot be `latency` (it is one of: `net`, `time`, `cpu`)
            17:10 `epochs` must be from 1 to 20, this is `21` (write for example `epochs = 3`)
            18:8 `slot` must be a time from 5 ms to 10 s with its unit (ms, s, min, h), this is `1 ms` (write for example `slot = "20 ms"`)
            24:8 `name` must be one line without control characters (write for example `name = "tls"`)
        "#]],
    );
}

#[test]
fn arrivals_without_rate() {
    check(
        &SHORT.replace("[data]", "[load]\narrivals = \"even\"\n[data]"),
        expect![[r#"
        5:12 `arrivals` needs a rate to keep to: without `rate` every client waits for its last operation (write for example `arrivals = "poisson"`)
    "#]],
    );
}

#[test]
fn databases() {
    check(
        &SHORT.replace("postgres", "postgresql"),
        expect![[r#"
        3:12 there is no database `postgresql` (did you mean `postgres`? this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("postgres", "oracle"),
        expect![[r#"
        3:12 there is no database `oracle` (this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
}

#[test]
fn protections() {
    check(
        &SHORT.replace("postgres", "sqlite"),
        expect![[r#"
        12:24 sqlite has no `tls`: its protections are `columns` (databases that have it: `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("use = \"tls\"", "use = \"pgaudti\""),
        expect![[r#"
        12:24 there is no protection `pgaudti` (did you mean `pgaudit`? protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
    "#]],
    );
    check(
        &SHORT.replace("{ use = \"tls\" }", "{ use = \"tls\" }, { use = \"tls\" }"),
        expect![[r#"
        12:41 the arm has `tls` twice (remove one of the two)
    "#]],
    );
}

#[test]
fn options() {
    let with = |options: &str| SHORT.replace("{ use = \"tls\" }", options);
    check(
        &with("{ use = \"columns\", share = 1.5, shares = 1 }"),
        expect![[r#"
        12:43 `share` must be from 0 to 1, this is 1.5 (write for example `share = 1`)
        12:48 `columns` has no option `shares` (did you mean `share`? its options are: `share`)
    "#]],
    );
    check(
        &with("{ use = \"volume\" }"),
        expect![[r#"
        12:16 `volume` needs the option `kind`: What encrypts the volume. (add `kind = "luks"`)
    "#]],
    );
    check(
        &with("{ use = \"volume\", kind = \"lukz\" }"),
        expect![[r#"
        12:41 `kind` cannot be `lukz` (did you mean `luks`? it is one of: `luks`, `gocryptfs`)
    "#]],
    );
    check(
        &with("{ use = \"pgaudit\", log = true, catalogue = \"no\" }"),
        expect![[r#"
        12:41 `log` must be a text in quotes, this is true or false (write for example `log = "all"`)
        12:59 `catalogue` must be true or false, this is a text (write for example `catalogue = false`)
    "#]],
    );
}

#[test]
fn arms() {
    check(
        &with_arms("postgres", "[[arm]]\nname = \"only\""),
        expect![[r#"
        8:1 the experiment has one arm, and nothing to compare it with (add two `[[arm]]` at least: first the plain one, then one with `protections`)
    "#]],
    );
    check(
        &with_arms("postgres", ""),
        expect![[r#"
        8:1 the experiment has no arms (add two `[[arm]]` at least: first the plain one, then one with `protections`)
    "#]],
    );
    check(
        &with_arms("postgres", "[[arm]]\nname = \"a\"\nprotections = [{ use = \"tls\" }]\n[[arm]]\nname = \"b\""),
        expect![[r#"
            10:1 the first arm is the baseline and must have no protections (put a plain arm first: `[[arm]]` and below it `name = "plain"`)
        "#]],
    );
}

#[test]
fn workloads() {
    let with = |workload: &str| SHORT.replace("ycsb = \"c\"", workload);
    check(
        &with("name = \"x\""),
        expect![[r#"
            6:1 `[[workload]]` does not say what the clients do (add `ycsb = "a"`)
        "#]],
    );
    check(
        &with("ycsb = \"g\""),
        expect![[r#"
            7:8 `ycsb` has no ready workload `g` (for a property file write `ycsb_file = …`; the ready ones are: `a`, `c`)
        "#]],
    );
    check(
        &with("ycsb = \"c\"\nycsb_file = \"workloads/mine.properties\""),
        expect![[r#"
        8:1 a workload has one source, and `ycsb_file` is a second one (remove it, or give it a `[[workload]]` of its own)
    "#]],
    );
    check(
        &with("ycsb_file = \"nowhere.properties\""),
        expect![[r#"
        7:13 the property file `nowhere.properties` cannot be read: entity not found (the path is taken from the folder of the experiment file)
    "#]],
    );
    check(
        &with("ycsb_file = \"workloads/broken.properties\""),
        expect![[r#"
        7:13 line 2 of `workloads/broken.properties`: no `=` (write `key=value`)
    "#]],
    );
    check(
        &with("ycsb = \"c\"\nproperties = { scanproportion = \"few\" }"),
        expect![[r#"
        8:33 `scanproportion`: is not a number (write for example 0.5)
    "#]],
    );
    check(
        &with("ycsb = \"c\"\n[[workload]]\nycsb = \"c\""),
        expect![[r#"
        9:8 there are two workloads called `c` (give each its own name: reports tell them apart by it)
    "#]],
    );
}

#[test]
fn settings_of_a_protection() {
    let audited = SHORT.replace("use = \"tls\"", "use = \"pgaudit\"");
    assert_ne!(audited, SHORT);
    let given = "[settings]\n\"pgaudit.log\" = \"none\"\n\"pgaudit.role\" = \"x\"\n\
                 [[resources]]\nsettings.\"pgaudit.log\" = 1\n[data]";
    check(
        &audited.replace("[data]", given),
        expect![[r#"
        5:1 `pgaudit.log` cannot be set: the protection `pgaudit` of arm `tls` sets it (remove it from the settings, or the protection from the arm)
        8:10 `pgaudit.log` cannot be set: the protection `pgaudit` of arm `tls` sets it (remove it from the settings, or the protection from the arm)
    "#]],
    );
    // Where no arm has the protection, nothing of the setting is lost.
    read_experiment(&SHORT.replace("[data]", given)).expect("an experiment");
}

#[test]
fn settings() {
    check(
        &SHORT.replace("[data]", "[settings]\nPort = 5432\nx = \"a\\nport = 1\"\n[data]"),
        expect![[r#"
            5:1 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
            6:5 `x` must be one line without control characters (a setting or property is one line of its file)
        "#]],
    );
    check(
        &SHORT.replace("[data]", "[[resources]]\nsettings = { port = 1 }\n[[resources]]\nname = \"x\"\n[data]"),
        expect![[r#"
            4:1 `[[resources]]` has no `name` (add for example `name = "in memory"`)
            5:14 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
        "#]],
    );
    check(
        &SHORT.replace("[data]", "[settings]\nlist = [1]\n[data]"),
        expect![[r#"
        5:8 `list` must be a text, a number, or true or false; this is a list (write the value in quotes, as the database's own files have it)
    "#]],
    );
}

#[test]
fn encrypted_swap() {
    let with = |value: &str| format!("encrypted_swap = {value}{SHORT}");
    check(
        &with("\"4 kB\""),
        expect![[r#"
        1:18 `encrypted_swap` must be a size from 1 MiB on with its unit (kB, MB, GB, KiB, MiB, GiB) (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
    check(
        &with("512"),
        expect![[r#"
        1:18 `encrypted_swap` must be a text in quotes, this is a whole number (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
    check(
        &with("\"1 GB\"").replace("name = \"tls\"", "name = \"tls\"\nurl = \"postgres://db.example.org\""),
        expect![[r#"
            1:18 `encrypted_swap` needs servers that Tithe starts: leave out every `url` (write for example `encrypted_swap = "512 MiB"`)
            12:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
        "#]],
    );
}

#[test]
fn encrypted_swap_that_nobody_uses() {
    let limited = "\n[[resources]]\nname = \"a\"\nmemory = \"64 MiB\"\n[[resources]]\nname = \"b\"\n";
    let with = |resources: &str| {
        format!("encrypted_swap = \"1 GB\"{}", SHORT.replace("\n[data]", &format!("{resources}[data]")))
    };
    assert!(read_experiment(&with(limited)).is_ok());
    check(
        &with(&format!("{limited}data_per_memory = 2\n")),
        expect![[r#"
        1:18 `encrypted_swap` would be used by no server: with a limit of memory, as all have, a server does not swap (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
}

#[test]
fn limits() {
    let with = |lines: &str| SHORT.replace("[data]", &format!("[[resources]]\n{lines}\n[data]"));
    check(
        &with("cpus = 0\nmemory = \"lots\"\ndata_per_memory = 4\ncache = \"lukewarm\""),
        expect![[r#"
        5:8 `cpus` must be from 0.1 to 1024, this is 0 (write for example `cpus = 2`)
        6:10 `memory` must be a size from 1 MiB on with its unit (kB, MB, GB, KiB, MiB, GiB) (write for example `memory = "512 MiB"`)
        7:19 `data_per_memory` cannot be given beside `memory`: it says how much memory there is (write for example `data_per_memory = 4`)
        8:9 `cache` cannot be `lukewarm` (it is one of: `warm`, `cold`)
    "#]],
    );
    let embedded = with("memory = \"64 MiB\"").replace("\"postgres\"", "\"sqlite\"");
    check(
        &embedded,
        expect![[r#"
        5:10 `memory` needs a server, and sqlite runs inside Tithe's own process (write for example `memory = "512 MiB"`)
        14:24 sqlite has no `tls`: its protections are `columns` (databases that have it: `postgres`, `redis`)
    "#]],
    );
}

#[test]
fn urls() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    check(
        &two("url = \"redis://:hunter2@h\"", "url = \"mysql://u:hunter2@h\""),
        expect![[r#"
            10:7 the scheme `redis` is that of redis, and the experiment is about postgres (write for example `postgres://user@host/name`)
            13:7 the scheme `mysql` is that of no database that this build of Tithe knows, and the experiment is about postgres (write for example `postgres://user@host/name`)
        "#]],
    );
    check(
        &two("url = \"u:hunter2@h\"", "url = 5"),
        expect![[r#"
        10:7 `url` is no address: it has no `://` (write for example `postgres://user@host/name`)
        13:7 `url` must be a text in quotes, this is a whole number (write for example `url = "postgres://user@host:5432/db"`)
    "#]],
    );
    check(
        &two("", "url = \"postgres://u@h\""),
        expect![[r#"
        13:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
    "#]],
    );
    check(
        &two("url = \"postgres://u@h\"", ""),
        expect![[r#"
        11:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
    "#]],
    );
    check(
        &two(
            "url = \"postgres://u@h\"",
            "url = \"postgres://u@h\"\nprotections = [{ use = \"volume\", kind = \"luks\" }]",
        ),
        expect![[r#"
            14:24 `volume` cannot be measured on a server that Tithe does not start (leave out every `url` to let Tithe start the servers; attached servers can be measured with: `tls`, `pgaudit`, `columns`)
        "#]],
    );
    check(
        &two(
            "url = \"postgres://u@h\"",
            "url = \"postgres://u@h\"\n[[arm]]\nname = \"c\"\nurl = \"postgres://u@other\"",
        ),
        expect![[r#"
            10:7 some arms share a server and some do not: the shared one stays warmer, which is no protection's doing (give every arm a server of its own, or all arms the same `url`)
        "#]],
    );
    check(
        &with_arms("sqlite", "[[arm]]\nname = \"a\"\nurl = \"file://x\"\n[[arm]]\nname = \"b\"\nurl = \"file://y\""),
        expect![[r#"
        10:7 sqlite cannot be attached to: it has no address (leave out `url`, and Tithe creates the database itself)
        13:7 sqlite cannot be attached to: it has no address (leave out `url`, and Tithe creates the database itself)
    "#]],
    );
    check(
        &two("url = \"postgres://u@h\"", "url = \"postgres://u@h\"").replace("[data]", "[settings]\na = 1\n[data]"),
        expect![[r#"
            4:2 settings cannot be given to a server that Tithe does not start (change them on the server itself and remove them here, or leave out every `url`)
        "#]],
    );
}

#[test]
fn switches() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    let url = "url = \"postgres://u@h\"";
    check(
        &two(url, &format!("{url}\non = [\"SET x\"]")),
        expect![[r#"
        14:1 `on` stands without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
    "#]],
    );
    check(
        &two(url, &format!("{url}\noff = [\"SET x\"]")),
        expect![[r#"
        14:1 `off` stands without `on` (add `on = ["…"]`: the next slot belongs to another arm of the same server)
    "#]],
    );
    check(
        &two("", "on = [\"SET x\"]\noff = [\"RESET x\"]"),
        expect![[r#"
        13:1 `on` and `off` switch a protection on one server, and these arms do not share one (give all arms the same `url`, or use `protections`)
    "#]],
    );
    check(
        &two(&format!("{url}\non = [\"x\"]\noff = [\"y\"]"), url),
        expect![[r#"
        11:1 the first arm is the baseline: it has nothing to switch with `on` (move the statements to the arm whose protection they switch)
    "#]],
    );
}

#[test]
fn budget_and_slot() {
    check(
        &SHORT.replace("[data]", "[measure]\nbudget = \"10 s\"\n[data]"),
        expect![[r#"
            5:10 a budget of 10 s buys 10 frames of cell `c`, and an interval needs 15 (write at least `budget = "15 s"` in `[measure]`, or measure fewer arms, workloads or resources)
        "#]],
    );
    check(
        &FULL.replace("\"15 min\"", "\"2 min\""),
        expect![[r#"
            22:10 a budget of 2 min shared by 4 cells buys 9 frames of cell `mine.on-disk`, and an interval needs 15 (write at least `budget = "3 min"` in `[measure]`, or measure fewer arms, workloads or resources)
        "#]],
    );
    check(
        &FULL.replace("\"250 ms\"", "\"20 ms\""),
        expect![[r#"
        27:8 a slot of 20 ms is too short for this rate (leave `slot` out or write at least `slot = "250 ms"`: an open loop drains after each slot, and a slot needs 40 operations for each client thread)
    "#]],
    );
    check(
        &SHORT.replace("[data]", "[load]\nrate = 0.1\n[data]"),
        expect![[r#"
            15:1 a budget of 5 min buys 0 frames of cell `c`, and an interval needs 15 (write at least `budget = "1600 min"` in `[measure]`, or measure fewer arms, workloads or resources)
        "#]],
    );
}

#[test]
fn passwords_are_not_quoted() {
    check(
        &SHORT.replace("\"postgres\"", "\"postgres://u:hunter2@h/db\""),
        expect![[r#"
        3:12 there is no database `postgres://**************` (this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("[data]", "[load]\narrivals = \"postgres://u:hunter2@h/db\"\nrate = 1\n[data]"),
        expect![[r#"
        5:12 `arrivals` cannot be `postgres://**************` (it is one of: `even`, `poisson`)
    "#]],
    );
}

#[test]
fn published_figures_are_about_the_experiment() {
    let published = r#"
[[published]]
source = "a report"
arm = "tsl"
figure = "latency"
plain = 32.4

[[published]]
source = "a report"
arm = "tls"
workload = "d"
figure = "throughput"
change = ["-20%", "much"]
"#;
    check(
        &format!("{SHORT}{published}"),
        expect![[r#"
        14:1 a published figure has either both levels or the change between them (write `plain = 32.4` and `protected = 40.9`, or `change = "+26%"`)
        16:7 `arm` cannot be `tsl` (did you mean `tls`? the experiment has: `tls`)
        17:10 `figure` cannot be `latency` (it is one of: `time`, `throughput`, `cpu`, `client_cpu`, `server_cpu`)
        23:12 `workload` cannot be `d` (the experiment has: `c`)
        25:19 `change` must be a percentage from -99% to +9900%, this is `much` (write for example `change = "+26%"`)
    "#]],
    );
}

#[test]
fn connections_that_end() {
    check(
        &SHORT.replace("[data]", "[load]\nreconnect_every = 0\n\n[[resources]]\nreconnect_every = \"often\"\n\n[data]"),
        expect![[r#"
            5:19 `reconnect_every` must be from 1 to 1000000000, this is `0` (write for example `reconnect_every = 10`)
            8:19 `reconnect_every` must be a whole number, this is a text (write for example `reconnect_every = 10`)
        "#]],
    );
    let switched = "[load]\nreconnect_every = 10\n\n[[arm]]\nname = \"plain\"\nurl = \"postgres://u@h/db\"\n\n\
                    [[arm]]\nname = \"on\"\nurl = \"postgres://u@h/db\"\non = [\"SET a = 1\"]\n";
    check(
        &with_arms("postgres", switched),
        expect![[r#"
        9:19 `reconnect_every` cannot be given beside `on`: what is switched on in a connection ends with it (write for example `reconnect_every = 10`)
        18:1 `on` stands without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
    "#]],
    );
}
