//! Every kind of diagnostic, with its place.

mod arms;
mod custom;
mod text;

use expect_test::{Expect, expect};
use tithe_model::{
    catalogue::{Catalogue, WorkloadEntry, WorkloadShape},
    parse::{budget_s, parse, parse_bytes, parse_unmeasured},
};

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
fn clients_of_a_sweep_and_of_resources() {
    let both = "[load]\nclients = \"sweep\"\n[[resources]]\nclients = 4\n[[workload]]";
    check(
        &SHORT.replacen("[[workload]]", both, 1),
        expect![[r#"
        7:11 `clients` lists several numbers of clients, and `[[resources]]` have numbers of their own (write for example `clients = 2`)
    "#]],
    );
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
            5:1 `[load]` has no key `client` (did you mean `clients`? its keys are: `clients`, `rate`, `arrivals`, `reconnect_every`, `agents`, `listen`)
            8:11 `records` must be a whole number, this is a text (write for example `records = 100_000`)
            11:8 `ycsb` has no preset `g` (for a file of your own write `ycsb_file = …`; the presets are: `a`, `c`)
            17:8 there are two arms called `plain` (give each its own name: reports tell them apart by it)
        "#]],
    );
}

#[test]
fn a_matrix_in_place_of_an_experiment() {
    check(
        "title = \"Hosts\"\nexperiments = [\"postgres.toml\"]\nreplicates = 3\n",
        expect![[r#"
            2:1 this is a matrix, not an experiment (`tithe matrix plan` shows its tasks, `tithe matrix run` measures them; or name an experiment of it)
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
fn names_that_a_spreadsheet_takes_for_formulas() {
    check(
        &SHORT.replace("name = \"tls\"", "name = \"=1+1\""),
        expect![[r#"
        11:8 `name` begins like a formula, and a spreadsheet that opens report.csv would run it (write for example `name = "tls"`)
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
            7:8 `ycsb` has no preset `g` (for a file of your own write `ycsb_file = …`; the presets are: `a`, `c`)
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
        7:13 the file `nowhere.properties` cannot be read: entity not found (the path is relative to the folder of the experiment file)
    "#]],
    );
    check(
        &with("ycsb_file = \"workloads/broken.properties\""),
        expect![[r#"
        7:13 line 2 of `workloads/broken.properties`: no `=` (write `key=value`)
    "#]],
    );
    check(
        &with("ycsb_file = \"workloads/wrong.properties\""),
        expect![[r#"
        7:13 line 2 of `workloads/wrong.properties`: `scanproportion`: is not a number (write for example 0.5)
    "#]],
    );
    check(
        &with("ycsb_file = \"workloads/wrong.properties\"\nproperties = { scanproportion = \"many\" }"),
        expect![[r#"
        8:33 `scanproportion`: is not a number (write for example 0.5)
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
fn limits() {
    let with = |lines: &str| SHORT.replace("[data]", &format!("[[resources]]\n{lines}\n[data]"));
    check(
        &with("cpus = 0\nmemory = \"lots\"\ndata_per_memory = 4\ncache = \"lukewarm\""),
        expect![[r#"
        5:8 `cpus` must be from 0.1 to 1024, this is 0 (write for example `cpus = 2`)
        6:10 `memory` must be a size from 1 MiB on with its unit (kB, MB, GB, KiB, MiB, GiB) (write for example `memory = "512 MiB"`)
        7:19 `data_per_memory` cannot be given with `memory`, which already sets the memory (write for example `data_per_memory = 4`)
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
            9:19 `reconnect_every` cannot be given with `on`: what is switched on in a connection ends with it (write for example `reconnect_every = 10`)
            18:1 `on` is given without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
        "#]],
    );
}

#[test]
fn an_address_to_listen_on() {
    let with = |listen: &str| SHORT.replace("[data]", &format!("[load]\nlisten = {listen}\n[data]"));
    let said = ["5", "\"db.example\"", "\"10.0.0.5:5432\"", "\"0.0.0.0\"", "\"::\"", "\"224.0.0.1\""].map(|listen| {
        let text = with(listen);
        render(&text, &read_experiment(&text).expect_err(listen))
    });
    expect![[r#"
        5:10 `listen` must be a text in quotes, this is a whole number (write for example `listen = "10.0.0.5"`)
        5:10 `listen` must be an IP address of this machine, this is `db.example` (write for example `listen = "10.0.0.5"`)
        5:10 `listen` must be an IP address of this machine, this is `10.0.0.5:5432` (write for example `listen = "10.0.0.5"`)
        5:10 `listen` must be one address of this machine, which 0.0.0.0 is not (write for example `listen = "10.0.0.5"`)
        5:10 `listen` must be one address of this machine, which :: is not (write for example `listen = "10.0.0.5"`)
        5:10 `listen` must be one address of this machine, which 224.0.0.1 is not (write for example `listen = "10.0.0.5"`)
    "#]].assert_eq(&said.concat());
    check(
        &with("\"127.0.0.2\"").replace("\"postgres\"", "\"redis\""),
        expect![[r#"
        5:10 `listen` cannot be given for redis: its servers are for clients on this machine (write for example `listen = "10.0.0.5"`)
    "#]],
    );
    check(
        &with("\"127.0.0.2\"").replace("\"postgres\"", "\"sqlite\""),
        expect![[r#"
        5:10 `listen` needs a server, and sqlite has none (write for example `listen = "10.0.0.5"`)
        14:24 sqlite has no `tls`: its protections are `columns` (databases that have it: `postgres`, `redis`)
    "#]],
    );
    let attached = "[load]\nlisten = \"10.0.0.5\"\n\n[[arm]]\nname = \"plain\"\nurl = \"postgres://u@h/db\"\n\n\
                    [[arm]]\nname = \"tls\"\nurl = \"postgres://u@h/db\"\nprotections = [{ use = \"tls\" }]\n";
    check(
        &with_arms("postgres", attached),
        expect![[r#"
        9:10 `listen` needs servers that Tithe starts: leave out every `url` (write for example `listen = "10.0.0.5"`)
    "#]],
    );
}

/// What is wrong with `text` in the build of `catalogue`; empty if nothing is.
fn problems(text: &str, catalogue: &Catalogue) -> Vec<String> {
    let found = parse(text, catalogue, &catalogue::read).err().unwrap_or_default();
    found.into_iter().map(|diagnostic| diagnostic.problem).collect()
}

#[test]
fn nothing_is_given_twice_in_two_spellings() {
    let keyed = "ycsb = \"c\"\nprotocol = \"simple\"\nproperties = { protocol = \"prepared\" }";
    for (old, new, expected) in [
        ("[data]", "[settings]\n\"a.b\" = 1\na.b = 2\n[data]", "`a.b` is given twice, with quotes and without"),
        ("[data]", "[settings]\nWork_Mem = 1\nwork-mem = 2\n[data]", "`Work_Mem` and `work-mem` are one setting"),
        ("ycsb = \"c\"", keyed, "`protocol` is given twice, here and in `properties`"),
    ] {
        let said = problems(&SHORT.replace(old, new), &catalogue::catalogue());
        assert!(said.iter().any(|problem| problem == expected), "{said:?}");
    }
}

#[test]
fn records_are_needed_unless_no_workload_uses_them() {
    let mut catalogue = catalogue::catalogue();
    let own = WorkloadEntry {
        id: "own",
        shape: |_| WorkloadShape {
            writes: false,
            record_bytes: 0,
            program: false,
            gaps: false,
            batch: Some(1),
            slot_ns: None,
        },
        ..catalogue.workloads[0].clone()
    };
    catalogue.workloads.push(own);
    let problems = |kinds: &[&str], data: &str, resources: &str| {
        let workload = |(number, kind): (usize, &&str)| format!("[[workload]]\nname = \"{number}\"\n{kind} = \"c\"\n");
        let workloads: String = kinds.iter().enumerate().map(workload).collect();
        let (head, _) = SHORT.split_once("[data]").expect("data");
        let (_, arms) = SHORT.split_once("[[arm]]").expect("arms");
        problems(&format!("{head}{data}{workloads}{resources}[[arm]]{arms}"), &catalogue)
    };
    for (kinds, uses_records, has_own) in [
        (&["ycsb"][..], true, false),
        (&["own"][..], false, true),
        (&["own", "own"][..], false, true),
        (&["own", "ycsb"][..], true, true),
    ] {
        assert_eq!(problems(kinds, "[data]\nrecords = 1000\n", ""), [""; 0], "{kinds:?}");
        let said = [problems(kinds, "", ""), problems(kinds, "[data]\nvalues = \"ycsb\"\n", "")].concat();
        match uses_records {
            true => assert_eq!(said, ["the experiment has no `[data]`", "`[data]` has no `records`"], "{kinds:?}"),
            false => assert_eq!(said, [""; 0], "{kinds:?}"),
        }
        let said = problems(kinds, "[data]\nrecords = 1000\n", "[[resources]]\ndata_per_memory = 2\n").concat();
        assert_eq!(said.contains("needs `records`, and these workloads have data of their own"), has_own, "{kinds:?}");
        assert_eq!(said.is_empty(), !has_own, "{said}");
    }
}

#[test]
fn a_table_of_data_that_is_none_is_the_only_problem() {
    let text = SHORT.replace("[data]\nrecords = 1000", "data = 5");
    check(
        &text,
        expect![[r#"
        4:8 `data` must be a table, this is a whole number (write for example `data = { records = 100_000 }`)
    "#]],
    );
}

#[test]
fn a_sweep_has_two_numbers_of_clients_or_more() {
    let text = |clients: &str| SHORT.replace("[data]", &format!("[load]\nclients = {clients}\n[data]"));
    for (clients, cells) in [("3", 1), ("[1, 2]", 3), ("[4, 2, 1]", 4), ("[2, 1, 2]", 3), ("\"sweep\"", 8)] {
        let resources = read_experiment(&text(clients)).expect("an experiment").resources;
        assert_eq!(resources.len(), cells, "{clients}");
    }
    for clients in ["[]", "[3]", "[3, 3]"] {
        let said = problems(&text(clients), &catalogue::catalogue());
        assert_eq!(said, ["`clients` names fewer than two numbers of clients"], "{clients}");
    }
}

#[test]
fn of_all_limits_only_a_cache_needs_data_that_outlast_their_server() {
    let mut catalogue = catalogue::catalogue();
    for keeps_data in [true, false] {
        catalogue.databases[1].entry.keeps_data = keeps_data;
        for limit in ["cpus = 1", "memory = \"1 GiB\"", "data_per_memory = 2", "cache = \"cold\"", "cache = \"warm\""] {
            let text = SHORT.replace("[data]", &format!("[[resources]]\n{limit}\n[data]"));
            let said = problems(&text, &catalogue).concat();
            let is_refused = !keeps_data && limit.starts_with("cache");
            assert_eq!(said.contains("needs a server that keeps its data over a restart"), is_refused, "{limit}");
            assert_eq!(said.is_empty(), !is_refused, "{limit}: {said}");
        }
    }
}

#[test]
fn a_name_has_120_characters_at_most() {
    for (length, is_long) in [(1, false), (120, false), (121, true)] {
        let text = SHORT.replace("name = \"tls\"", &format!("name = \"{}\"", "ä".repeat(length)));
        let said = problems(&text, &catalogue::catalogue());
        let expected = if is_long { vec!["`name` is longer than 120 characters"] } else { vec![] };
        assert_eq!(said, expected, "{length}");
    }
}

#[test]
fn a_key_of_the_top_below_a_table() {
    check(
        &SHORT.replace("[data]", "[data]\ntitle = \"x\""),
        expect![[r#"
        5:1 `[data]` has no key `title` (`title` belongs at the top of the file, before any table)
    "#]],
    );
}

#[test]
fn a_budget_on_a_command_line_is_that_of_a_file() {
    for text in ["1 s", "0.9 s", "90 s", "5 min", "720 h", "721 h", "1 ms", "5 m", "5", "", "-5 s", "5 min "] {
        let file = SHORT.replace("[data]", &format!("[measure]\nbudget = \"{text}\"\n[data]"));
        match (budget_s(text), parse_unmeasured(&file, &catalogue::catalogue(), &catalogue::read)) {
            // A budget that is too small for a measurement is raised.
            (Ok(seconds), Ok(experiment)) => {
                assert_eq!(seconds.max(15.0), experiment.measure.budget_s.floor(), "{text}");
            }
            (Err(problem), Err(found)) => assert_eq!(found[0].problem, format!("`budget` {problem}")),
            (budget, _) => panic!("{text}: {budget:?}"),
        }
    }
    assert_eq!(["1 s", "2 min", "720 h"].map(budget_s), [Ok(1.0), Ok(120.0), Ok(2_592_000.0)]);
}
