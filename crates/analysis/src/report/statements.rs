//! The costs of protections for each of the user's statements: the rows of every report, the most expensive first.

use std::cmp::Reverse;

use crate::{ArmAnalysis, CellAnalysis, Estimate, StatementUse, figures::Rank};

/// The text above the rows.
pub const LEAD: &str = "Median time of a call, compared with the plain arm. The statement that costs most over all \
                        its calls is first. Share: of the plain arm's time in statements. Calls: over all arms.";

/// One statement of a cell.
pub struct Row<'a> {
    /// The statement, and its number of calls.
    pub statement: &'a StatementUse,
    /// The cost of each protected arm for it; `None` if unknown.
    pub costs: Vec<(&'a ArmAnalysis, Option<&'a Estimate>)>,
}

/// The statements of `cell`; none if the workload has none.
pub fn rows(cell: &CellAnalysis) -> Vec<Row<'_>> {
    let arms = || cell.arms.iter().skip(1);
    let row = |statement| Row { statement, costs: arms().map(|arm| (arm, median(arm, statement))).collect() };
    let mut rows: Vec<Row<'_>> = cell.statements.iter().map(row).collect();
    // A stable sort: statements without a cost stay in the order of their share.
    rows.sort_by_key(|row| Reverse(row.added()));
    rows
}

/// The cost of the median call.
fn median<'a>(arm: &'a ArmAnalysis, statement: &StatementUse) -> Option<&'a Estimate> {
    arm.estimates.iter().find(|estimate| {
        estimate.name.percentile().is_some_and(|it| it.rank == Rank::P50 && it.operation == statement.operation)
    })
}

impl Row<'_> {
    /// Place and text of the statement.
    pub fn words(&self) -> String {
        format!("{} {}", self.statement.operation, self.statement.text)
    }

    /// The largest time that an arm with a protection adds over all calls, µs. An A/A arm differs by chance.
    fn added(&self) -> u64 {
        let of_call = |estimate: &Estimate| estimate.difference.as_ref().map_or(0.0, |it| it.estimate.max(0.0));
        let protected = self.costs.iter().filter(|(arm, _)| !arm.aa);
        let most = protected.filter_map(|(_, cost)| cost.map(of_call)).fold(0.0, f64::max);
        (most * self.statement.calls as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn no_statement_is_expensive_because_the_plain_arm_differs_from_itself() {
        let cell = sample::full().cells.remove(0);
        let tls = &cell.arms[1];
        let again = ArmAnalysis { aa: true, ..tls.clone() };
        let statement =
            StatementUse { operation: "app.sql:1".to_owned(), text: String::new(), calls: 1000, time_share: 0.5 };
        let added = |arm: &ArmAnalysis| Row { statement: &statement, costs: vec![(arm, tls.primary())] }.added();
        assert!(added(tls) > 0);
        assert_eq!(added(&again), 0);
    }
}
