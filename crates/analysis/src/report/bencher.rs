//! The costs in Bencher's Metric Format: a benchmark for each arm of each cell, with a measure for each figure.
//!
//! A measure is a cost in percent, with the known ends of its interval; for throughput it is the share of missing
//! operations, so that more is always worse. The format has no place for a proof, so arms that are not proven are left
//! out, and so are figures that were not measured, have an asymmetric set-up, or are not held by their interval.

use serde_json::{Map, Value, json};

use super::number;
use crate::{Analysis, Estimate, Figure};

/// The costs as one JSON object; it ends with a line break.
pub fn render(analysis: &Analysis) -> String {
    let mut benchmarks = Map::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.proof.stands()) {
            let told = arm.estimates.iter().filter(|estimate| is_told(estimate));
            let measures: Map<String, Value> = told.map(|estimate| (measure(estimate), metric(estimate))).collect();
            if !measures.is_empty() {
                benchmarks.insert(format!("{} · {}", cell.id, arm.name), Value::Object(measures));
            }
        }
    }
    format!("{:#}\n", Value::Object(benchmarks))
}

/// True for figures that were measured in a symmetric set-up and are held by their interval.
fn is_told(estimate: &Estimate) -> bool {
    estimate.effect.estimate.is_finite() && estimate.is_symmetric() && estimate.not_held().is_none()
}

/// The slug of a figure, of lower-case letters, digits and hyphens: `latency-p99-9-read-cost-percent`.
fn measure(estimate: &Estimate) -> String {
    let slug = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    format!("{}-cost-percent", estimate.name.to_string().chars().map(slug).collect::<String>())
}

fn metric(estimate: &Estimate) -> Value {
    let cost = |effect: f64| match estimate.name {
        Figure::Throughput => -number::percent(-effect),
        _ => number::percent(effect),
    };
    let mut metric = json!({ "value": cost(estimate.effect.estimate) });
    for (key, end) in [("lower_value", estimate.effect.low), ("upper_value", estimate.effect.high)] {
        if end.is_finite() {
            metric[key] = json!(cost(end));
        }
    }
    metric
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::{Flag, Proof, report::sample};

    #[test]
    fn a_benchmark_for_each_proven_arm() {
        let text = render(&sample::full());
        expect_file!["golden/full.bencher.json"].assert_eq(&text);
        let benchmarks: Value = serde_json::from_str(&text).expect("JSON");
        let names: Vec<&String> = benchmarks.as_object().expect("an object").keys().collect();
        let proven = |cell: &crate::CellAnalysis| {
            cell.arms.iter().filter(|arm| !arm.estimates.is_empty() && arm.proof == Proof::Proven).count()
        };
        assert_eq!(names.len(), sample::full().cells.iter().map(proven).sum::<usize>(), "{names:?}");
        assert_eq!(render(&sample::empty()), "{}\n");
    }

    #[test]
    fn a_cost_that_does_not_count_is_left_out() {
        for flag in [Flag::Asymmetric, Flag::NotSteady, Flag::WaitingAlone, Flag::Moved] {
            let mut analysis = sample::full();
            analysis.cells[0].arms[1].estimates[0].flags.push(flag);
            let benchmarks: Value = serde_json::from_str(&render(&analysis)).expect("JSON");
            let tls = &benchmarks["c/in-memory · tls"];
            assert!(tls.get("net-cost-percent").is_none() && tls.get("cpu-cost-percent").is_some(), "{flag:?}: {tls}");
        }
    }
}
