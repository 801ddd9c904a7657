//! Loaded data sets that are kept and copied, on real servers: every arm is proven on data that another one has loaded.
//!
//! A product that is not installed is skipped with a notice; with `CI` set that fails.

use crate::support;

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use support::{
    Bench, err, out,
    server::{found, small_logs_text},
    status,
};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_plugin::product::Product;

/// Runs the smallest TPC-C over two epochs with an arm for each of `arms`, which has all protections that it names, and
/// compares the origins of each arm's data in the second epoch. All must be proven in both.
fn check(database: &dyn Product, arms: &[&str], expect: Expect) {
    if found(database).is_none() {
        return;
    }
    let described: String = arms.iter().map(|protections| arm(protections)).collect();
    let bench = Bench::new(&format!("kept-{}", database.id()));
    // The smallest load with an interval over two epochs: eight frames each, of one slice of each arm.
    let budget = format!("{} s", (2 * 8 * SLICE_MS * (arms.len() + 1)).div_ceil(1000));
    let text = EXPERIMENT.replace("DATABASE", database.id()).replace("SETTINGS", &small_logs_text(database.id()));
    let text = text.replace("BUDGET", &budget).replace("SLICE", &SLICE_MS.to_string()) + &described;
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let cell = bench.kept_json("cells/0.json");
    let recorded = cell["arms"].as_array().expect("arms").iter().zip([""].iter().chain(arms));
    let lines = recorded.map(|(arm, name)| {
        let origin = arm["facts"]["data set"].as_str().expect("an origin");
        // Which of the two this file system uses is not part of the test.
        format!("{name}: {}\n", origin.replace("reflink", "bytes"))
    });
    expect.assert_eq(&lines.collect::<String>());
    let mut verdicts: BTreeMap<(u64, String), u32> = BTreeMap::new();
    for finding in bench.kept_lines("evidence.jsonl") {
        let verdict = finding["verdict"].as_str().expect("a verdict");
        if finding["check"] == "consistency" {
            *verdicts.entry((finding["epoch"].as_u64().expect("an epoch"), verdict.to_owned())).or_default() += 1;
        }
    }
    // Each arm is checked before and after measuring.
    let looks = 2 * (arms.len() as u32 + 1);
    let all_hold = BTreeMap::from([((0, "holds".to_owned()), looks), ((1, "holds".to_owned()), looks)]);
    assert_eq!(verdicts, all_hold);
    let left = std::fs::read_dir(bench.run_folder()).expect("the run folder").flatten();
    let sandboxes = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("tithe-sandbox"));
    assert_eq!(sandboxes.count(), 0, "nothing is left of servers and kept data sets");
}

/// Length of a slice, ms.
const SLICE_MS: usize = 300;

const EXPERIMENT: &str = r#"title = "Kept"
database = "DATABASE"
SETTINGS[data]
records = 1_000
[load]
clients = 1
[measure]
budget = "BUDGET"
precision = "50%"
design = "slices"
slot = "SLICE ms"
warmup = "0 s"
epochs = 2
aa_arm = false
[[workload]]
name = "TPC-C"
tpcc = "client-side"
properties = { warehouses = "2", customers = "30", items = "40" }
[[arm]]
name = "plain"
"#;

/// An arm that is named after its protections: `tls`, or `pgaudit by object`.
fn arm(protections: &str) -> String {
    let used = protections.split(" and ").map(|words| match words.split_once(" by ") {
        Some((id, by)) => format!("{{ use = \"{id}\", by = \"{by}\" }}"),
        None => format!("{{ use = \"{words}\" }}"),
    });
    let used: Vec<String> = used.collect();
    format!("[[arm]]\nname = \"{protections}\"\nprotections = [{}]\n", used.join(", "))
}

#[test]
fn of_postgresql() {
    check(
        &Postgres,
        &["tls and pgaudit", "scram and pgaudit by object", "columns"],
        expect![[r#"
            : loaded by plain, copied (bytes)
            tls and pgaudit: loaded by plain, copied (bytes)
            scram and pgaudit by object: loaded by scram and pgaudit by object, copied (bytes)
            columns: loaded by columns, copied (bytes)
        "#]],
    );
}

#[test]
fn of_mariadb() {
    check(
        &MariaDb,
        &["tls and server-audit and password", "encryption"],
        expect![[r#"
            : loaded by plain, copied (bytes)
            tls and server-audit and password: loaded by plain, copied (bytes)
            encryption: loaded by encryption, copied (bytes)
        "#]],
    );
}

/// The keys that MySQL has made are copied with the data that they decrypt.
#[test]
fn of_mysql() {
    check(
        &MySql,
        &["tls and general-log and password", "encryption"],
        expect![[r#"
            : loaded by plain, copied (bytes)
            tls and general-log and password: loaded by plain, copied (bytes)
            encryption: loaded by encryption, copied (bytes)
        "#]],
    );
}
