//! For how long servers are watched without clients.

use super::{Cell, Plan};

/// Longest idle stretch that is watched by default, s.
const USUAL_S: f64 = 60.0;

/// Share of the budget that it may take.
const SHARE: f64 = 0.05;

/// A shorter one gives too little information for its time, s.
const LEAST_S: f64 = 10.0;

/// How long the servers of `cell` are watched while they are idle, s; 0 if they are not. Cells with the same resources
/// have the same servers, so only the first of them is watched, and all such stretches share one length.
pub fn idle_s(plan: &Plan, cell: &Cell) -> f64 {
    let first = plan.cells.iter().find(|other| other.resources == cell.resources);
    let is_first = first.is_some_and(|first| first.id == cell.id);
    if !is_first || cell.design.is_switched() {
        return 0.0;
    }
    let measure = &plan.experiment.measure;
    let usual_s = || usual_s(measure.budget_s, measure.until_decided);
    measure.idle_s.unwrap_or_else(usual_s) / plan.experiment.resources.len().max(1) as f64
}

/// The default length, s: 0 if a run is to be short.
fn usual_s(budget_s: f64, until_decided: bool) -> f64 {
    let length_s = USUAL_S.min(SHARE * budget_s);
    if length_s < LEAST_S || until_decided { 0.0 } else { length_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_but_a_twentieth_of_the_budget_at_most_and_none_where_a_run_is_short() {
        assert_eq!(usual_s(3600.0, false), 60.0);
        assert_eq!(usual_s(240.0, false), 12.0);
        assert_eq!([usual_s(199.0, false), usual_s(3600.0, true)], [0.0; 2]);
    }
}
