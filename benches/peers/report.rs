//! The result as CSV. Lines that begin with `#` are remarks.

use std::fmt::Write as _;

use tithe_model::{quantity, record::Machine};

use crate::contest::{Outcome, Spread};

/// Machine and versions as remarks, then the rows of all cases.
pub fn csv(machine: &Machine, versions: &[String], outcomes: &[Outcome]) -> String {
    let memory = quantity::memory(machine.memory_bytes);
    let virtualised = if machine.virtualised { ", virtual" } else { "" };
    let mut text = format!(
        "# Machine: {}, {} logical processors{virtualised}, {memory}, Linux {}, {}, clock {}.\n# Versions: {}.\n\
         case,client,rounds,us,us_low,us_high,user_us,ratio,ratio_low,ratio_high\n",
        machine.processor,
        machine.processors,
        machine.kernel,
        machine.system,
        machine.clock,
        versions.join("; ")
    );
    text.extend(outcomes.iter().map(rows));
    text
}

/// A row per client of one case: processor time per operation, the part outside the kernel, and the ratio of Tithe's to
/// it; medians, those of whole and ratio with their quartiles.
pub fn rows(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (row, (name, ours, _)) in outcome.rows.iter().enumerate() {
        let ratio = match (row, ours) {
            (0, true) => ",,".to_owned(),
            _ => quartiles(outcome.ratio(row), 1.0),
        };
        let cost = outcome.cost_ns(row);
        let user = outcome.user_ns(row).median / 1e3;
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "\"{}\",{name},{},{},{user:.2},{ratio}", outcome.case, cost.count, quartiles(cost, 1e-3));
    }
    text
}

fn quartiles(spread: Spread, factor: f64) -> String {
    let Spread { median, quartiles: (low, high), .. } = spread;
    format!("{:.2},{:.2},{:.2}", median * factor, low * factor, high * factor)
}
