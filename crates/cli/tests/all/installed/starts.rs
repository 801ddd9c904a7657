//! Restarts within an epoch, on real servers: their data are put back, their protections are on again, and a server
//! that does not come back is named.
//!
//! A product that is not installed is skipped with a notice; with `CI` set that fails.

use crate::support;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use serde_json::Value;
use support::{
    Bench, assert_valid, err, out,
    server::{found, small_logs_text},
    status, write_program,
};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_plugin::product::Product;

/// The smallest load with an interval, in frames of one slice of each arm, at a rate that leaves processor time to
/// other tests. A slice is longer than the wait of a commit for a disk that other tests keep busy.
const IN_SLICES: &str =
    "rate = 400\n[measure]\nbudget = \"24 s\"\nslot = \"800 ms\"\ndesign = \"slices\"\nwarmup = \"0 s\"";

/// The same with arms that alternate many times in a frame. This does not depend on the product, so one that starts
/// fast is enough.
const IN_TURN: &str = "[measure]\nbudget = \"15 s\"\nslot = \"50 ms\"\nwarmup = \"100 ms\"";

/// An arm compared with the plain one, and a load that inserts. If data were not put back, they would be inserted
/// twice; if clients did not forget their inserts, records would be missing.
fn experiment(database: &dyn Product, measure: &str, protections: &str) -> String {
    format!(
        "title = \"Starts\"\ndatabase = \"{}\"\n{}[data]\nrecords = 2_000\n[load]\nclients = 1\n\
         {measure}\nprecision = \"0.01%\"\nstarts = 4\n[[workload]]\nycsb = \"d\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"other\"\nprotections = [{protections}]\n",
        database.id(),
        small_logs_text(database.id())
    )
}

/// Operations of the plain arm before each frame, and at its end, by the frame's start.
fn operations_by_start(frames: &[Value]) -> BTreeMap<u64, Vec<u64>> {
    let mut starts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for frame in frames {
        let before = frame["arms"][0]["operations_before"].as_u64().expect("a number");
        starts.entry(frame["start"].as_u64().expect("a start")).or_default().push(before);
    }
    starts
}

/// Measures `database` over several starts. After each start its data must be those that were loaded, and after the
/// last the `protections` of the other arm must be proven.
fn check(database: &dyn Product, measure: &str, protections: &str) {
    if found(database).is_none() {
        return;
    }
    let bench = Bench::new(&format!("starts-{}", database.id()));
    bench.file("e.toml", &experiment(database, measure, protections));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = bench.kept_lines("frames.jsonl");
    assert_valid(&frames);
    let starts = operations_by_start(&frames);
    assert!(starts.len() >= 4, "{starts:?}");
    let first_frames: Vec<u64> = starts.values().map(|operations| operations[0]).collect();
    let most = starts.values().flatten().max().expect("frames");
    // Only warm-up comes before the first frame of a start: earlier operations are forgotten.
    assert!(first_frames.iter().all(|before| before < most), "{starts:?}");
    let cells = bench.kept("cells/0.json");
    assert!(cells.contains("put back to what was loaded"), "{cells}");
    let protected = |finding: &&Value| finding["role"] == "claim" && finding["phase"] == "after";
    let findings = bench.kept_lines("evidence.jsonl");
    let claims: Vec<&Value> = findings.iter().filter(protected).map(|finding| &finding["verdict"]).collect();
    assert!(!claims.is_empty() && claims.iter().all(|verdict| *verdict == "holds"), "{claims:?}");
}

#[test]
fn postgresql_has_its_extension_and_its_data_again() {
    check(&Postgres, IN_SLICES, "{ use = \"pgaudit\" }");
}

#[test]
fn mariadb_has_its_keys_and_its_data_again() {
    check(&MariaDb, IN_SLICES, "{ use = \"encryption\" }");
}

#[test]
fn mysql_has_its_keys_and_its_data_again() {
    check(&MySql, IN_SLICES, "{ use = \"encryption\" }");
}

#[test]
fn redis_has_its_append_only_file_and_its_data_again() {
    check(&Redis, IN_TURN, "{ use = \"aof\" }");
}

#[test]
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn on_a_volume_data_are_put_back_within_it() {
    let said = out(&Bench::new("starts-doctor").tithe(&["doctor"]));
    let volumes = said.lines().find(|line| line.starts_with("volume-fscrypt")).expect("a line on volumes");
    if volumes.contains("not possible") {
        assert!(std::env::var_os("CI").is_none(), "{volumes}");
        return eprintln!("SKIPPED: {volumes}");
    }
    check(&Redis, IN_SLICES, "{ use = \"volume-fscrypt\", size_mb = 200 }");
}

#[test]
fn a_server_that_does_not_come_back_is_named() {
    let Some(install) = found(&Redis) else { return };
    let real = install.programs.join(&install.facts["program"]);
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let program = folder.path().join("redis-server");
    // The first start loads, the second is measured, and the third is the next one within the epoch.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) exec {0} --version;; esac\necho start >>starts\n\
         if [ \"$(wc -l <starts)\" -gt 2 ]; then echo 'no third time'; exit 1; fi\nexec {0} \"$@\"\n",
        real.display()
    );
    write_program(&program, &script);
    let bench = Bench::new("starts-lost");
    bench.file("e.toml", &experiment(&Redis, IN_SLICES, ""));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--pg-bin", &folder.path().display().to_string()]);
    assert_ne!(status(&output), 0, "{}", out(&output));
    let cells = bench.kept("cells/0.json");
    assert!(cells.contains("arm plain: the server did not come back") && cells.contains("no third time"), "{cells}");
}
