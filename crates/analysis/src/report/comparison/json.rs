//! A comparison of runs as a document for programs: every figure unrounded, costs and points in percent.

use serde_json::{Value, json};

use super::{answer, not_judged};
use crate::{
    Interval,
    compare::{Change, Comparison, Counted, Match, Side},
    report::words,
};

/// Version of the document's form; increased for every change that old readers do not understand.
pub const VERSION: u32 = 1;

/// The comparison and its result for a `threshold`, a share; ends with a line break.
pub fn render(comparison: &Comparison, threshold: Option<f64>) -> String {
    let beyond = |change: &Change| threshold.map(|threshold| change.beyond(threshold));
    let all = comparison.matches.iter().flat_map(Match::changes);
    let document = json!({ "tithe_comparison": {
        "format": VERSION,
        "runs": comparison.runs,
        "answer": answer(comparison),
        "threshold_points": threshold.map(|share| 100.0 * share),
        "beyond": threshold.map(|threshold| all.filter(|change| change.beyond(threshold)).count()),
        "not_judged": threshold.map(|_| not_judged(comparison)),
        "matches": comparison.matches.iter().map(|it| matched(comparison, it, &beyond)).collect::<Vec<_>>(),
        "refused": comparison.reasons(),
        "notes": comparison.notes,
    }});
    format!("{document:#}\n")
}

fn matched(comparison: &Comparison, matched: &Match, beyond: &dyn Fn(&Change) -> Option<bool>) -> Value {
    let change = |change: &Change| {
        json!({
            "run": comparison.runs[change.run],
            "points": interval(&change.points, |share| 100.0 * share),
            "ratio": interval(&change.ratio, f64::exp),
            "beyond": beyond(change),
        })
    };
    json!({
        "cell": matched.cell,
        "arm": matched.arm,
        "figure": matched.title,
        "runs": matched.sides.iter().map(|it| side(comparison, it)).collect::<Vec<_>>(),
        "changes": matched.changes().iter().map(change).collect::<Vec<_>>(),
        "least": matched.least().map(|run| &comparison.runs[run]),
    })
}

fn side(comparison: &Comparison, side: &Side) -> Value {
    let estimate = &side.estimate;
    let counted = match side.counted {
        Counted::Frames => "frames",
        Counted::Hosts => "hosts",
        Counted::Repeats => "repeats",
    };
    json!({
        "run": comparison.runs[side.run],
        "proof": words::proof(&side.proof).0.to_lowercase(),
        "cost_percent": interval(&estimate.effect, |effect| 100.0 * effect.exp_m1()),
        "plain": estimate.levels.map(|levels| levels.0),
        "protected": estimate.levels.map(|levels| levels.1),
        "unit": estimate.unit,
        "starts": estimate.starts,
        "counted": counted,
        "counts": side.counts(),
        "count": estimate.count,
        "widened": estimate.widened,
    })
}

/// Values that are not finite are null.
fn interval(of: &Interval, read: fn(f64) -> f64) -> Value {
    json!({ "estimate": read(of.estimate), "low": read(of.low), "high": read(of.high) })
}
