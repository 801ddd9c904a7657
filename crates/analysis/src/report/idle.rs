//! Usage of servers without clients, as a text.

use super::number;
use crate::{ArmAnalysis, CellAnalysis, IdleUse, Interval, Outcome};

/// A line for each arm of `cell` whose server was observed; empty if there are none.
pub(super) fn lines(cell: &CellAnalysis) -> Vec<String> {
    let line = |arm: &ArmAnalysis| Some(format!("{}: {}", arm.name, used(arm.idle.as_ref()?)));
    cell.arms.iter().filter_map(line).collect()
}

/// How long the servers of `cell` were observed, and how to read the lines.
pub(super) fn heading(cell: &CellAnalysis) -> Option<String> {
    let idle = cell.arms.iter().find_map(|arm| arm.idle.as_ref())?;
    let (length, windows) = (number::duration(idle.seconds), idle.windows);
    Some(format!(
        "a minute without clients, measured over {length} in {windows} windows, and in parentheses what is added to the \
         plain arm"
    ))
}

/// `1.2 ms [1.0, 1.4] of processor time (+0.2 ms [0.1, 0.3]); 0 bytes written; 53 MB of memory`
fn used(idle: &IdleUse) -> String {
    let level = |of: &Interval, unit| number::level(of.estimate, of.low, of.high, unit).to_string();
    let more = |of: &Option<Interval>, unit| {
        let told = of.filter(|of| of.high > of.low || of.estimate != 0.0);
        told.map_or(String::new(), |of| format!(" ({})", number::difference(&of, unit, outcome(&of))))
    };
    let mut parts = vec![format!("{} of processor time{}", level(&idle.cpu_us, "µs"), more(&idle.more_cpu_us, "µs"))];
    if let Some(written) = &idle.written_bytes {
        parts.push(format!("{} written{}", level(written, "bytes"), more(&idle.more_written_bytes, "bytes")));
    }
    parts.extend(idle.memory_bytes.map(|bytes| format!("{} of memory", number::memory(bytes))));
    parts.join("; ")
}

fn outcome(of: &Interval) -> Outcome {
    if of.holds(0.0) { Outcome::TooNoisy } else { Outcome::Costs }
}

/// The sentence to add to the deciding figure of `arm`; `None` if its idle cost is relatively small.
pub(super) fn beside_cost(arm: &ArmAnalysis, name: &str) -> Option<String> {
    let idle = arm.idle.as_ref()?;
    let (per_op, more) = (idle.more_us_per_op?, idle.more_cpu_us?);
    Some(format!(
        "The server of {name} uses {} of processor time a minute more than the plain one while it is idle: at the \
         rate of this run that is {} an operation, which the figure does not contain.",
        number::difference(&more, "µs", Outcome::Costs).to_string().trim_start_matches('+'),
        number::amount(per_op, "µs")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_window_adds_is_shown_also_if_it_is_always_the_same() {
        let exact = |us: f64| Interval { estimate: us, low: us, high: us };
        let told = |more_us: f64| {
            used(&IdleUse {
                windows: 12,
                seconds: 60.0,
                cpu_us: exact(1000.0),
                more_cpu_us: Some(exact(more_us)),
                written_bytes: None,
                more_written_bytes: None,
                memory_bytes: None,
                more_us_per_op: None,
            })
        };
        assert_eq!(told(200.0), "1.00 ms [1.00, 1.00] of processor time (+200 µs [200, 200])");
        assert_eq!(told(0.0), "1.00 ms [1.00, 1.00] of processor time");
    }
}
