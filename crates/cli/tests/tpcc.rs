//! TPC-C with encrypted columns as a user runs it, on the built-in SQLite: every arm, and what is refused before it starts.

mod support;

use support::{Bench, err, out, status};

/// The smallest data set with the arms `arms` behind the plain one.
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

/// An arm with `protection`, and with that as its name.
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
    bench.file("e.toml", &experiment("client-side", &arms));
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 0, "{told}");
    // Each arm's claim is looked at twice, before and after the operations.
    for (claim, arms) in [
        ("the clients of this arm have the server compute, those of the plain arm do not", 1),
        ("the sessions are wrapped and nothing is encrypted", 1),
        ("the server holds ciphertext in encrypted columns", 6),
        ("the arm's key opens encrypted columns, another key does not", 6),
        ("no value of an encrypted column is readable in the data files", 6),
    ] {
        let held = told.lines().filter(|line| line.trim_start().starts_with('✓') && line.contains(claim)).count();
        assert_eq!(held, 2 * arms, "{claim} in {told}");
    }
    // The plain arm, the two that encrypt nothing and the six that do: fresh, then used.
    assert_eq!(told.matches("consistency conditions 1 to 12 hold").count(), 9, "{told}");
    assert_eq!(told.matches("consistency conditions 1 to 10 and 12 hold").count(), 9, "{told}");
}

#[test]
fn what_cannot_be_encrypted_is_told_before_anything_starts() {
    for (compute, protection, expected) in [
        ("client-side", "use = 'columns', share = 0.3", "share = 0.3 stands for no set of columns"),
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
