//! The whole program on the simulated database, whose costs are known: plan, run, records, report.

mod costs;
mod failures;
mod records;
mod shown;
mod starts;

use crate::support;

use std::{process::Stdio, time::Duration};

use serde_json::Value;
use support::{Bench, err, out, status};

/// An experiment on the simulated database; `more` goes into `[settings]`.
fn experiment(more: &str, arms: &str, budget: &str) -> String {
    format!(
        r#"title = "Known costs"
database = "simulated"
[settings]
{more}
[data]
records = 500
[measure]
budget = "{budget}"
precision = "0.2%"
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
{arms}"#
    )
}

/// A setting for runs of which a test wants anything but many operations: a fifth of them, which on invented time are
/// what a run costs.
const FEW_OPERATIONS: &str = "service_us = 100";

const ARMS: &str = r#"
[[arm]]
name = "sealed"
protections = [{ use = "seal", cost = 0.05 }]
[[arm]]
name = "audited"
protections = [{ use = "audit", cost = 0.2 }]
[[arm]]
name = "placebo"
protections = [{ use = "placebo" }]
"#;

/// The estimate `name` of arm `arm` in the first cell.
fn estimate<'a>(report: &'a Value, arm: usize, name: &str) -> &'a Value {
    let estimates = report["cells"][0]["arms"][arm]["estimates"].as_array().expect("estimates");
    estimates.iter().find(|estimate| estimate["name"] == name).unwrap_or_else(|| panic!("no estimate {name}"))
}

fn report_of(bench: &Bench) -> Value {
    let text = std::fs::read_to_string(bench.run_folder().join("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    report["tithe_report"].clone()
}

/// `text` with single blanks, so that what stands in tables can be looked for.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why each frame of the only run folder is invalid.
fn invalid(bench: &Bench) -> Vec<Option<String>> {
    let frames = std::fs::read_to_string(bench.run_folder().join("frames.jsonl")).expect("frames");
    let reason = |line| serde_json::from_str::<Value>(line).expect("a frame")["invalid"].as_str().map(str::to_owned);
    frames.lines().map(reason).collect()
}
