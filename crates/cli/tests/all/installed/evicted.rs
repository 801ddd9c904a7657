//! A server that removes records to make room for others does other work than was planned.
//!
//! A product that is not installed is skipped with a notice; with `CI` set that fails.

use tithe_databases::memcached::Memcached;

use crate::support::{Bench, err, out, server::found, status};

/// Two like servers with 8 MB, which inserts of 1 kB fill in the first frames.
const INSERTS: &str = r#"
title = "Evicted"
database = "memcached"
[settings]
memory-limit = "8"
[data]
records = 500
[load]
clients = 1
[measure]
budget = "20 s"
design = "slices"
slot = "200 ms"
warmup = "0 s"
starts = 1
[[workload]]
ycsb = "a"
properties = { insertproportion = "1", readproportion = "0", updateproportion = "0" }
[[arm]]
name = "plain"
[[arm]]
name = "other"
protections = []
"#;

#[test]
fn frames_at_whose_end_records_were_removed_are_invalid() {
    if found(&Memcached).is_none() {
        return;
    }
    let bench = Bench::new("evicted");
    bench.file("e.toml", INSERTS);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    let cells = bench.kept("cells/0.json");
    assert_eq!(status(&output), 4, "{cells}{}{}", out(&output), err(&output));
    let why = "failed: 3 frames in a row were invalid for the same reason: arm 0: items removed to make room for others \
               (memory-limit): ";
    assert!(cells.contains(why) && cells.contains(", and 0 before the first frame"), "{cells}");
}
