//! The time to open a connection, as a text.

use super::number;
use crate::{ArmAnalysis, CellAnalysis, ConnectPartUse, ConnectUse, Interval, Outcome};

/// A line for each arm of `cell` with measured connections; empty if there are none.
pub(super) fn lines(cell: &CellAnalysis) -> Vec<String> {
    let line = |arm: &ArmAnalysis| Some(format!("{}: {}", arm.name, parts(arm.connecting.as_ref()?)));
    cell.arms.iter().filter_map(line).collect()
}

/// The heading, which names the program that connects.
pub(super) fn heading(cell: &CellAnalysis) -> Option<String> {
    cell.arms.iter().find_map(|arm| arm.connecting.as_ref())?;
    Some("a connection of Tithe's own client by part; the client of an application takes another time".to_owned())
}

/// `TCP 42 µs [40, 44], its client 9 µs; login 210 µs [200, 220] (+180 µs [170, 190]), its client 12 µs`
fn parts(connecting: &ConnectUse) -> String {
    let level = |of: &Interval| number::level(of.estimate, of.low, of.high, "µs").to_string();
    let part = |it: &ConnectPartUse| {
        let more = it.more_us.map_or(String::new(), |more| {
            let outcome = if more.holds(0.0) { Outcome::TooNoisy } else { Outcome::Costs };
            format!(" ({})", number::difference(&more, "µs", outcome))
        });
        format!("{} {}{more}, its client {}", it.part, level(&it.us), number::amount(it.client_us.estimate, "µs"))
    };
    connecting.parts.iter().map(part).collect::<Vec<_>>().join("; ")
}
