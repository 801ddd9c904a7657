//! The whole program on the simulated database, whose costs are known: plan, run, records, report.

mod costs;
mod failures;
mod profile;
mod records;
mod shown;
mod starts;

use crate::support;

use std::{process::Stdio, time::Duration};

use serde_json::Value;
use support::{
    Bench, FEW_OPERATIONS, arm, err, interrupted_after, known_costs, measured, out, process::Process, sealed, status,
    words,
};

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

/// Why each frame of the only run folder is invalid.
fn invalid(bench: &Bench) -> Vec<Option<String>> {
    bench.kept_lines("frames.jsonl").iter().map(|frame| frame["invalid"].as_str().map(str::to_owned)).collect()
}
