//! Servers that are started anew within an epoch, on real ones: their data are put back, what they are protected by is
//! on again, and one that does not come back is named.
//!
//! A product that is not installed is skipped, loudly; with `CI` set that fails.

use crate::support;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::Value;
use support::{Bench, err, out, status};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_machine::launch::{Install, Search};
use tithe_plugin::{database::Database, product::Product};

/// An arm beside the plain one, and a load that inserts: what was not put back would be inserted twice, and what
/// clients still believed to be there would be missed.
fn experiment(database: &dyn Product, budget: &str, protections: &str) -> String {
    format!(
        "title = \"Starts\"\ndatabase = \"{}\"\n[data]\nrecords = 2_000\n[load]\nclients = 2\n[measure]\n\
         budget = \"{budget}\"\nprecision = \"0.01%\"\nslot = \"50 ms\"\nstarts = 4\nwarmup = \"500 ms\"\n[[workload]]\nycsb = \"d\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"other\"\nprotections = [{protections}]\n",
        database.id()
    )
}

#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn installed(database: &dyn Database) -> Option<Install> {
    match database.find(&Search::default()) {
        Ok(install) => Some(install),
        Err(missing) => {
            assert!(std::env::var_os("CI").is_none(), "{missing:?}");
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

fn lines(path: PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a record");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
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

/// Measures `database` over several starts; its data must be those that were loaded after each, and the `protections`
/// of the other arm proven after the last.
fn check(database: &dyn Product, budget: &str, protections: &str) {
    if installed(database).is_none() {
        return;
    }
    let bench = Bench::new(&format!("starts-{}", database.id()));
    bench.file("e.toml", &experiment(database, budget, protections));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let run = bench.run_folder();
    let frames = lines(run.join("frames.jsonl"));
    let invalid: Vec<&Value> = frames.iter().map(|frame| &frame["invalid"]).filter(|why| !why.is_null()).collect();
    assert!(invalid.is_empty(), "{invalid:?}");
    let starts = operations_by_start(&frames);
    assert!(starts.len() >= 4, "{starts:?}");
    let first_frames: Vec<u64> = starts.values().map(|operations| operations[0]).collect();
    let most = starts.values().flatten().max().expect("frames");
    // Warm-up alone stands before the first frame of a start: nobody remembers what was done before it.
    assert!(first_frames.iter().all(|before| before < most), "{starts:?}");
    let cells = fs::read_to_string(run.join("cells.json")).expect("the cells");
    assert!(cells.contains("put back to what was loaded"), "{cells}");
    let protected = |finding: &&Value| finding["role"] == "claim" && finding["phase"] == "after";
    let findings = lines(run.join("evidence.jsonl"));
    let claims: Vec<&Value> = findings.iter().filter(protected).map(|finding| &finding["verdict"]).collect();
    assert!(!claims.is_empty() && claims.iter().all(|verdict| *verdict == "holds"), "{claims:?}");
}

#[test]
fn postgresql_has_its_extension_and_its_data_again() {
    check(&Postgres, "16 s", "{ use = \"pgaudit\" }");
}

#[test]
fn mariadb_has_its_keys_and_its_data_again() {
    check(&MariaDb, "40 s", "{ use = \"encryption\" }");
}

#[test]
fn mysql_has_its_keys_and_its_data_again() {
    check(&MySql, "40 s", "{ use = \"encryption\" }");
}

#[test]
fn redis_has_its_append_only_file_and_its_data_again() {
    check(&Redis, "16 s", "{ use = \"aof\" }");
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
    check(&Redis, "16 s", "{ use = \"volume-fscrypt\", size_mb = 200 }");
}

#[test]
fn a_server_that_does_not_come_back_is_named() {
    let Some(install) = installed(&Redis) else { return };
    let real = install.programs.join(&install.facts["program"]);
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let program = folder.path().join("redis-server");
    // The first start loads, the second is measured on, and the third is the next one within the epoch.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) exec {0} --version;; esac\necho start >>starts\n\
         if [ \"$(wc -l <starts)\" -gt 2 ]; then echo 'no third time'; exit 1; fi\nexec {0} \"$@\"\n",
        real.display()
    );
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
    let bench = Bench::new("starts-lost");
    bench.file("e.toml", &experiment(&Redis, "16 s", ""));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--pg-bin", &folder.path().display().to_string()]);
    assert_ne!(status(&output), 0, "{}", out(&output));
    let cells = fs::read_to_string(bench.run_folder().join("cells.json")).expect("the cells");
    assert!(cells.contains("arm plain: the server did not come back") && cells.contains("no third time"), "{cells}");
}
