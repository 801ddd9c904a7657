//! Figures of a report, found by name, and their formats.

use std::path::Path;

use serde_json::Value;
use tithe_harness::folder;
use tithe_model::records::Records;

/// The metrics of slots that the parts print, with their titles and the level that each compares.
pub const METRICS: [(&str, &str, &str); 3] =
    [("cpu", "CPU", "cpu_per_op"), ("net", "net", "net_per_op"), ("time", "time", "latency_mean")];

/// Two ends; unknown ones are infinite.
pub type Ends = (f64, f64);

/// The records of the run folder at `path`.
pub fn read(path: &Path) -> Records {
    folder::read(path).expect("a run folder")
}

/// The estimate `name` of one arm.
pub fn find<'a>(report: &'a Value, cell: usize, arm: usize, name: &str) -> Option<&'a Value> {
    named(&report["cells"][cell]["arms"][arm]["estimates"], name)
}

/// The absolute figure `name` of one arm.
pub fn level<'a>(report: &'a Value, cell: usize, arm: usize, name: &str) -> Option<&'a Value> {
    named(&report["cells"][cell]["arms"][arm]["levels"], name)
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry["name"] == name)
}

/// The ends of an interval.
pub fn ends(interval: &Value) -> Ends {
    let end = |name: &str, otherwise: f64| interval[name].as_f64().unwrap_or(otherwise);
    (end("low", f64::NEG_INFINITY), end("high", f64::INFINITY))
}

/// The ends of an interval; `None` if there is none, or there are too few frames.
pub fn interval_of(interval: &Value) -> Option<Ends> {
    let (low, high) = ends(interval);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The interval of an effect, natural-log ratios; `None` as [`interval_of`].
pub fn interval(report: &Value, cell: usize, arm: usize, name: &str) -> Option<Ends> {
    interval_of(&find(report, cell, arm, name)?["effect"])
}

/// Does the interval contain `truth`?
pub fn holds((low, high): Ends, truth: f64) -> bool {
    (low..=high).contains(&truth)
}

/// `[+4.10, +5.20] %` for ends that are natural-log ratios.
pub fn percent((low, high): Ends) -> String {
    format!("[{:+.2}, {:+.2}] %", 100.0 * low.exp_m1(), 100.0 * high.exp_m1())
}

/// The same for an optional interval: a dash if there is none.
pub fn percent_or_dash(interval: Option<Ends>) -> String {
    interval.map_or("—".to_owned(), percent)
}

/// `40.1 [39.5, 41.0]` for a level; a dash if there is none.
pub fn amount(level: Option<&Value>) -> String {
    let told = |level: &Value| {
        let (low, high) = ends(level);
        Some(format!("{:.2} [{low:.2}, {high:.2}]", level["value"].as_f64()?))
    };
    level.and_then(told).unwrap_or_else(|| "—".to_owned())
}

/// `load 2.1, waited 3 %`: the machine during the measurement of a cell.
pub fn host(cell: &Value) -> String {
    format!("load {:.1}, waited {:.0} %", load(cell), 100.0 * wait_share(cell))
}

/// Mean load average during the measurement of a cell.
pub fn load(cell: &Value) -> f64 {
    cell["host"]["load"].as_f64().unwrap_or(f64::NAN)
}

/// Share of the clients' wall time spent waiting for a processor.
pub fn wait_share(cell: &Value) -> f64 {
    cell["wait_share"].as_f64().unwrap_or(f64::NAN)
}
