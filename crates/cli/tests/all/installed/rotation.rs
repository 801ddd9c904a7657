//! Keys that are rotated while MariaDB is measured, and experiments for which that is refused.
//!
//! Without MariaDB the run is skipped with a notice; with `CI` set that fails.

use crate::support;

use expect_test::{Expect, expect};
use support::{Bench, assert_valid, err, out, server::found, status};
use tithe_databases::mariadb::MariaDb;

const EXPERIMENT: &str = r#"title = "Rotation"
database = "mariadb"
[settings]
innodb_flush_log_at_trx_commit = "2"
innodb_log_file_size = "32M"
[data]
records = 1_000
[load]
clients = 2
[measure]
budget = "24 s"
precision = "50%"
slot = "100 ms"
warmup = "0 s"
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

#[test]
fn keys_are_changed_while_measuring_and_it_is_proven() {
    if found(&MariaDb).is_none() {
        return;
    }
    // A rate leaves processor time for the rotation.
    let experiment = EXPERIMENT.replace("clients = 2", "clients = 2\nrate = 400").replace("100 ms", "250 ms");
    let experiment = experiment.replace("24 s", "45 s");
    let mut bench = measured(&experiment);
    // On a busy machine the shortest measurement may end before any rotation does.
    if bench.kept("cells/0.json").contains("none finished while measuring") {
        bench = measured(&experiment.replace("45 s", "90 s").replace("50%", "0.01%"));
    }
    let cell = bench.kept_json("cells/0.json");
    let rotations = |arm: usize| cell["arms"][arm]["facts"]["key rotations"].as_str();
    assert_eq!((rotations(0), rotations(1)), (None, None));
    let count = rotations(2).and_then(|told| told.split_once(" while measuring; ")?.0.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count > 0), "{:?}", rotations(2));
    let notes = cell["notes"].to_string();
    assert!(notes.contains("each runs in its arm's slots only"), "{notes}");
    let findings = bench.kept_lines("evidence.jsonl");
    let of_keys = findings.iter().filter(|finding| finding["check"] == "key-rotated");
    let seen: String = of_keys.map(|finding| format!("{} {}\n", finding["phase"], finding["verdict"])).collect();
    expect![[r#"
        "before" "holds"
        "after" "holds"
    "#]]
    .assert_eq(&seen);
    // Pausing and resuming a server must not invalidate a frame.
    assert_valid(&bench.kept_lines("frames.jsonl"));
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

/// Needs no installed server: the test is in `refused`.
pub fn what_cannot_be_measured_is_refused_before_anything_starts() {
    refuse(
        "epochs = 1",
        "epochs = 1\ndesign = \"duet\"",
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, which needs interleaved slots: write `design = "interleaved"`; nothing was started
    "#]],
    );
    refuse(
        "epochs = 1",
        "starts = 8",
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, which needs many frames of one start: leave `starts` out; `epochs` sets servers up again; nothing was started
    "#]],
    );
    let own = "budget = \"24 s\"\nprecision = \"50%\"\nslot = \"100 ms\"\nwarmup = \"0 s\"\nepochs = 1\n[[workload]]\nycsb = \"b\"";
    let program = "budget = \"1 h\"\n[[workload]]\nsysbench = \"oltp_read_only\"";
    refuse(
        own,
        program,
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, which needs the load of Tithe's own clients, and workload oltp_read_only has a program's; nothing was started
    "#]],
    );
    let volume = "rotate = true }, { use = \"volume-luks2\", rotate = true }";
    refuse(
        "rotate = true }",
        volume,
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, and so is the key of its volume: give each rotation an arm of its own; nothing was started
    "#]],
    );
    let below = EXPERIMENT.replace("{ use = \"encryption\", rotate", "{ use = \"volume-luks2\", rotate");
    refuse_text(
        &below.replace("epochs = 1", "design = \"slices\""),
        expect![[r#"
        2
        tithe: arm rotating: its key is rotated while it is measured, which needs interleaved slots: write `design = "interleaved"`; nothing was started
    "#]],
    );
    refuse(
        "rotate = true",
        "rotate = 3",
        expect![[r#"
        2
        error: `rotate` must be true or false, this is a whole number
          --> e.toml:25:47
           |
        25 | protections = [{ use = "encryption", rotate = 3 }]
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
          --> e.toml:25:31
           |
        25 | protections = [{ use = "tls", rotate = true }]
           |                               ^^^^^^
           |
           = help: its options are: `chain`, `key`, `mutual`, `resumption`, `suite`, `version`

        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
}
