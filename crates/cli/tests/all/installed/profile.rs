//! Profiles of real databases, if the kernel allows sampling of processors; otherwise the tests print a notice.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use crate::support;

use serde_json::Value;
use support::{Bench, err, out, status};
use tithe_machine::perf;

/// True if processors can be sampled; prints a notice if not.
fn is_possible() -> bool {
    let refused = perf::refused();
    if let Some(why) = &refused {
        eprintln!("SKIPPED: no profile: {why}");
    }
    refused.is_none()
}

/// The profile of `protection` on `database`, with the output of the run.
fn profile(database: &str, protection: &str) -> (Value, String) {
    let bench = Bench::new("profile");
    let text = format!(
        r#"title = "Profile"
database = "{database}"
[data]
records = 2000
[load]
clients = 1
[measure]
budget = "15 s"
precision = "90%"
epochs = 1
starts = 1
warmup = "0 s"
slot = "20 ms"
profile = true
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "protected"
protections = [{{ use = "{protection}" }}]
"#
    );
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    (bench.report()["cells"][0]["profile"].take(), bench.whole_report())
}

/// The largest component of the protected arm whose name contains `words`: side, name and µs per operation.
fn component(profile: &Value, words: &str) -> (String, f64) {
    let components = profile["arms"][0]["components"].as_array().expect("components");
    let of = |part: &&Value| part["component"].as_str().is_some_and(|component| component.contains(words));
    let part = components.iter().find(of).unwrap_or_else(|| panic!("no {words}: {components:?}"));
    let side = part["side"].as_str().expect("a side").to_owned();
    (side, part["difference"]["estimate"].as_f64().expect("a difference"))
}

#[test]
fn the_cipher_of_sqlite_is_on_the_clients_side() {
    if !is_possible() {
        return;
    }
    let (profile, told) = profile("sqlite", "page-encryption");
    let (side, us) = component(&profile, "SQLite's cipher");
    assert!(side == "client" && us > 0.0, "{profile}");
    assert!(told.contains("where the processor time comes from"), "{told}");
    // Its functions account for most of its cost.
    let sum = profile["arms"][0]["sum"]["estimate"].as_f64().expect("a sum");
    assert!(us > sum / 2.0, "{us} of {sum} µs");
}
