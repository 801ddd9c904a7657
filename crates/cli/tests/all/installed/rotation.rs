//! Keys that are changed while MariaDB is measured, and where that is refused.
//!
//! Without MariaDB the run is skipped, loudly; with `CI` set that fails.

use crate::support;

use std::fs;

use expect_test::{Expect, expect};
use serde_json::Value;
use support::{Bench, err, out, status};
use tithe_databases::mariadb::MariaDb;
use tithe_machine::launch::Search;
use tithe_plugin::database::Database;

const EXPERIMENT: &str = r#"title = "Rotation"
database = "mariadb"
[settings]
innodb_flush_log_at_trx_commit = "2"
[data]
records = 1_000
[load]
clients = 2
[measure]
budget = "24 s"
precision = "50%"
slot = "100 ms"
epochs = 1
[[workload]]
ycsb = "b"
[[arm]]
name = "plain"
[[arm]]
name = "encryption"
protections = [{ use = "encryption" }]
[[arm]]
name = "rotating"
protections = [{ use = "encryption", rotate = true }]
"#;

/// Runs `experiment` to its end.
fn measured(experiment: &str) -> Bench {
    let bench = Bench::new("rotation");
    bench.file("e.toml", experiment);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    bench
}

/// The record `name` of the only run.
fn read(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.run_folder().join(name)).expect("a record")
}

#[test]
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn keys_are_changed_while_measuring_and_it_is_proven() {
    if let Err(missing) = MariaDb.find(&Search::default()) {
        assert!(std::env::var_os("CI").is_none(), "{missing:?}");
        return eprintln!("SKIPPED: {missing:?}");
    }
    let mut bench = measured(EXPERIMENT);
    // On a busy machine no change of the key may come to its end within the least that can be measured.
    if read(&bench, "cells.json").contains("none came to its end while measuring") {
        assert!(EXPERIMENT.contains("24 s") && EXPERIMENT.contains("50%"));
        bench = measured(&EXPERIMENT.replace("24 s", "5 min").replace("50%", "0.01%"));
    }
    let record = |name: &str| read(&bench, name);
    let cells: Value = serde_json::from_str(&record("cells.json")).expect("JSON");
    let rotations = |arm: usize| cells[0]["arms"][arm]["facts"]["key rotations"].as_str();
    assert_eq!((rotations(0), rotations(1)), (None, None));
    let count = rotations(2).and_then(|told| told.split_once(" while measuring; ")?.0.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count > 0), "{:?}", rotations(2));
    let notes = cells[0]["notes"].to_string();
    assert!(notes.contains("each runs in its arm's slots only"), "{notes}");
    let lines = record("evidence.jsonl");
    let findings = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_keys = findings.filter(|finding| finding["check"] == "key-rotated");
    let seen: String = of_keys.map(|finding| format!("{} {}\n", finding["phase"], finding["verdict"])).collect();
    expect![[r#"
        "before" "holds"
        "after" "holds"
    "#]]
    .assert_eq(&seen);
    // Nothing of a server that is let run in turns may invalidate a frame; a busy machine may let all slots of an arm
    // pass.
    let frames = record("frames.jsonl");
    let invalid = |frame: &&str| frame.contains("invalid\":\"") && !frame.contains("no operation succeeded");
    assert_eq!(frames.lines().filter(invalid).collect::<Vec<_>>(), Vec::<&str>::new());
    let whole = frames.lines().filter(|frame| !frame.contains("invalid\":\"")).count();
    assert!(2 * whole >= frames.lines().count(), "{whole} frames were not invalid");
}

fn refuse(from: &str, to: &str, expect: Expect) {
    assert!(EXPERIMENT.contains(from));
    refuse_text(&EXPERIMENT.replace(from, to), expect);
}

fn refuse_text(experiment: &str, expect: Expect) {
    let bench = Bench::new("rotation-refused");
    bench.file("e.toml", experiment);
    let output = bench.tithe(&["plan", "e.toml"]);
    expect.assert_eq(&format!("{}\n{}", status(&output), err(&output)));
}

/// Needs nothing that is installed: the test is in `refused`.
pub fn what_cannot_be_measured_is_refused_before_anything_starts() {
    refuse(
        "epochs = 1",
        "epochs = 1\ndesign = \"duet\"",
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, for which each arm needs slots of its own: say `design = "interleaved"`; nothing was started
    "#]],
    );
    let own = "budget = \"24 s\"\nprecision = \"50%\"\nslot = \"100 ms\"\nepochs = 1\n[[workload]]\nycsb = \"b\"";
    let program = "budget = \"1 h\"\n[[workload]]\nsysbench = \"oltp_read_only\"";
    refuse(
        own,
        program,
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, which is done under the load of Tithe's own clients, and not of workload oltp_read_only; nothing was started
    "#]],
    );
    let volume = "rotate = true }, { use = \"volume-luks2\", rotate = true }";
    refuse(
        "rotate = true }",
        volume,
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, and so is that of its volume: what each costs is seen in arms of their own; nothing was started
    "#]],
    );
    let below = EXPERIMENT.replace("{ use = \"encryption\", rotate", "{ use = \"volume-luks2\", rotate");
    refuse_text(
        &below.replace("epochs = 1", "design = \"slices\""),
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, for which each arm needs slots of its own: say `design = "interleaved"`; nothing was started
    "#]],
    );
    refuse(
        "rotate = true",
        "rotate = 3",
        expect![[r#"
        2
        error: `rotate` must be true or false, this is a whole number
          --> e.toml:23:47
           |
        23 | protections = [{ use = "encryption", rotate = 3 }]
           |                                               ^
           |
           = help: write for example `rotate = false`

        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    refuse(
        "{ use = \"encryption\", rotate",
        "{ use = \"tls\", rotate",
        expect![[r#"
        2
        error: `tls` has no option `rotate`
          --> e.toml:23:31
           |
        23 | protections = [{ use = "tls", rotate = true }]
           |                               ^^^^^^
           |
           = help: its options are: `mutual`, `resumption`, `version`

        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
}
