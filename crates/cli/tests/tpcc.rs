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
    for check in ["statements-ordinary", "wrapper-idle", "ciphertext-seen", "wrong-column-key", "disk-canary"] {
        assert!(told.contains(check), "{check} in {told}");
    }
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
