//! TPC-C with encrypted columns as a user runs it, on the built-in SQLite: every arm, and refusals before anything
//! starts.

use crate::support::{Bench, err, out, status};

/// The smallest data set with `arms` after the plain one.
fn experiment(compute: &str, arms: &str) -> String {
    format!(
        r#"title = "Columns"
database = "sqlite"
[data]
records = 10_000
[measure]
budget = "1 h"
[[workload]]
name = "TPC-C"
tpcc = "{compute}"
properties = {{ warehouses = "1", customers = "30", items = "40" }}
[[arm]]
name = "plain"
{arms}"#
    )
}

/// An arm with `protection`, which is also its name.
fn arm(protection: &str) -> String {
    format!("[[arm]]\nname = \"{protection}\"\nprotections = [{{ {protection} }}]\n")
}

#[test]
fn every_arm_is_proven_and_every_condition_holds() {
    let bench = Bench::new("tpcc");
    let mut arms = arm("use = 'ordinary-statements'") + &arm("use = 'columns', share = 0.0");
    for cipher in ["aes-256-gcm", "sm4-128-gcm"] {
        for share in ["0.2", "0.5", "1.0"] {
            arms += &arm(&format!("use = 'columns', share = {share}, cipher = '{cipher}'"));
        }
    }
    // On a busy machine an arm may not run at all within 20 ms.
    bench.file("e.toml", &experiment("client-side", &arms).replace("[measure]", "[measure]\nslot = \"200 ms\""));
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 0, "{told}");
    // Each arm's claim is checked twice, before and after the operations.
    for (claim, arms) in [
        ("the clients of this arm have the server compute, those of the plain arm do not", 1),
        ("the sessions are wrapped and nothing is encrypted", 1),
        ("the server holds ciphertext in encrypted columns", 6),
        ("the arm's key opens encrypted columns, another key does not", 6),
        ("no value of an encrypted column is readable in the data files", 6),
    ] {
        let held = told.lines().filter(|line| line.trim_start().starts_with('✓') && line.contains(claim));
        // Two equal findings are one line.
        let looks: usize = held.map(|line| if line.ends_with("(before and after)") { 2 } else { 1 }).sum();
        assert_eq!(looks, 2 * arms, "{claim} in {told}");
    }
    // The plain arm and its second instance, the two that encrypt nothing and the six that do: fresh, then used.
    assert_eq!(told.matches("consistency conditions 1 to 12 hold").count(), 10, "{told}");
    assert_eq!(told.matches("consistency conditions 1 to 10 and 12 hold").count(), 10, "{told}");
}

#[test]
fn what_cannot_be_encrypted_is_told_before_anything_starts() {
    for (compute, protection, expected) in [
        ("client-side", "use = 'columns', share = 0.3", "share = 0.3 is not a set of columns"),
        ("client-side", "use = 'columns', share = 1.5", "write for example `share = 1`"),
        ("client-side", "use = 'columns', names = 'c_lasst'", "no column is called `c_lasst`"),
        ("client-side", "use = 'columns', names = 'i_id'", "must be encrypted together: add ol_i_id, s_i_id"),
        ("ordinary", "use = 'columns'", "give the workload `compute = \"client\"`"),
    ] {
        let bench = Bench::new("tpcc-refused");
        bench.file("e.toml", &experiment(compute, &arm(protection)));
        let output = bench.tithe(&["run", "e.toml"]);
        let told = err(&output);
        assert!(told.contains(expected) && told.contains("nothing was started"), "{protection}: {told}");
        assert_eq!(status(&output), 2, "{told}");
        assert!(!bench.path("tithe-runs").exists());
    }
}

/// Arms that store the same share the data that one has loaded; an encrypted one loads its own.
#[test]
fn a_hundred_terminals_run_on_data_that_were_loaded_once() {
    let bench = Bench::new("tpcc-terminals");
    let arms = arm("use = 'ordinary-statements'") + &arm("use = 'columns'");
    let text = experiment("client-side", &arms).replace("[measure]", "[load]\nclients = 100\n[measure]");
    let short = "budget = \"6 s\"\nprecision = \"90%\"\ndesign = \"slices\"\nslot = \"100 ms\"";
    bench.file("e.toml", &text.replace("budget = \"1 h\"", short));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--json"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report: serde_json::Value = serde_json::from_str(&out(&output)).expect("the report is JSON");
    let cell = &report["tithe_report"]["cells"][0];
    assert_eq!(cell["clients"], 100);
    let cell = bench.kept_json("cells/0.json");
    let by = |arm: usize| cell["arms"][arm]["facts"]["data set"].as_str().expect("an origin").to_owned();
    for (number, loader) in ["plain", "plain", "use = 'columns'"].iter().enumerate() {
        assert!(by(number).starts_with(&format!("loaded by {loader}, copied (")), "{}", by(number));
    }
}

#[test]
fn the_size_of_an_experiment_is_changed_on_the_command_line_or_refused() {
    let bench = Bench::new("tpcc-scale");
    bench.file("e.toml", &experiment("client-side", &arm("use = 'columns'")));
    let plan = |arguments: &[&str]| bench.tithe(&[&["plan", "e.toml"], arguments].concat());
    let output = plan(&["--warehouses", "3", "--clients", "8,2", "--budget", "2 h"]);
    let told = out(&output);
    assert_eq!(status(&output), 0, "{told}{}", err(&output));
    // 40 items, and for each warehouse itself, 40 stocks and ten districts of 400 rows.
    for line in ["12,163 records", "tpc-c.clients-2 ", "tpc-c.clients-8 ", "tpc-c.70-of-saturation"] {
        assert!(told.contains(line), "{line} in {told}");
    }
    for (arguments, expected) in [
        (
            ["--budget", "soon"],
            "--budget must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `soon`",
        ),
        (["--clients", "1025"], "1025 is not in 1..=1024"),
        (["--warehouses", "0"], "0 is not in 1..=100000"),
        (["--scale", "0.1"], "--scale: the size of TPC-C is its --warehouses"),
    ] {
        let output = plan(&arguments);
        assert!(err(&output).contains(expected), "{}", err(&output));
        assert_eq!(status(&output), 2);
    }
    let others = "[[workload]]\nname = \"C\"\nycsb = \"c\"\n\n[[arm]]";
    bench.file("mixed.toml", &experiment("client-side", &arm("use = 'columns'")).replacen("[[arm]]", others, 1));
    let output = bench.tithe(&["plan", "mixed.toml", "--warehouses", "3"]);
    assert!(err(&output).contains("not every workload of this experiment is TPC-C"), "{}", err(&output));
    bench.file(
        "e.toml",
        &experiment("x", &arm("use = 'columns'"))
            .replace("name = \"TPC-C\"\ntpcc = \"x\"", "ycsb = \"c\"")
            .replace("properties", "# "),
    );
    let output = plan(&["--warehouses", "3"]);
    assert!(err(&output).contains("--warehouses: no workload of this experiment is TPC-C"), "{}", err(&output));
    let output = plan(&["--scale", "0.25"]);
    assert!(out(&output).contains("2,500 records"), "{}{}", out(&output), err(&output));
    for factor in ["0.00001", "NaN", "-1"] {
        let argument = format!("--scale={factor}");
        let output = plan(&[&argument]);
        assert!(err(&output).contains("times 10000 records is not a data set"), "{}", err(&output));
        assert_eq!(status(&output), 2);
    }
}
