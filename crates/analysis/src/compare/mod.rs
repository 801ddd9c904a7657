//! Several runs side by side: other databases, other machines, an earlier and a later version.
//!
//! Only costs are compared, which are ratios against each run's own plain arm. Absolute levels of different runs
//! belong to different hours and are left out. What cannot be compared is refused with its reason
//! ([`Comparison::refused`]); an arm that was not proven is shown and not ranked.

mod alike;

use crate::{Analysis, Estimate, Interval, Proof, statistics::distribution::normal_upper};

/// What can be said of several runs together.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What each run is called: as much of database, machine and folder as tells them apart.
    pub runs: Vec<String>,
    /// The costs that can be compared, in the order of the first run.
    pub matches: Vec<Match>,
    /// What cannot be compared, and why: whole sentences.
    pub refused: Vec<String>,
    /// What the reader should know, whole sentences.
    pub notes: Vec<String>,
    /// The largest difference that counts as none, natural-log ratio: the first run's margin.
    pub margin: f64,
}

/// One arm of one cell in several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The cell's short name.
    pub cell: String,
    /// The arm's name; with several names where each run has one protected arm of its own.
    pub arm: String,
    /// What is compared: `net time per op`.
    pub title: String,
    /// The cost in each run that has it.
    pub sides: Vec<Side>,
}

/// The cost in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Index of the run.
    pub run: usize,
    /// The cost.
    pub estimate: Estimate,
    /// Was the protection on?
    pub proof: Proof,
}

impl Side {
    /// True where the cost is known and is that of the protection.
    pub fn counts(&self) -> bool {
        let Interval { low, high, .. } = self.estimate.effect;
        matches!(self.proof, Proof::Proven | Proof::Baseline) && low.is_finite() && high.is_finite()
    }

    /// The cost by its own interval.
    fn alone(&self) -> Interval {
        self.estimate.effect
    }

    /// The cost as the answer and the status judge it, over all cells of its run.
    fn over_run(&self) -> Interval {
        self.estimate.headline().effect
    }
}

/// How two costs differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference<'a> {
    /// The side with the smaller cost.
    pub less: &'a Side,
    /// The other.
    pub more: &'a Side,
    /// How much larger the factor of `more` is, natural-log ratio; at least zero.
    pub by: Interval,
}

impl Difference<'_> {
    /// True where the interval leaves no doubt which cost is smaller.
    pub fn reported(&self) -> bool {
        self.by.low > 0.0
    }
}

impl Match {
    /// The least cost against each other one, by rising cost; empty where fewer than two costs count.
    pub fn differences(&self) -> Vec<Difference<'_>> {
        self.differences_by(Side::alone)
    }

    fn differences_by(&self, effect: fn(&Side) -> Interval) -> Vec<Difference<'_>> {
        let mut counted: Vec<&Side> = self.sides.iter().filter(|side| side.counts()).collect();
        counted.sort_by(|a, b| a.estimate.effect.estimate.total_cmp(&b.estimate.effect.estimate));
        let Some((less, others)) = counted.split_first() else { return Vec::new() };
        let by = |more: &&Side| difference(&effect(more), &effect(less), others.len());
        others.iter().map(|more| Difference { less, more, by: by(more) }).collect()
    }

    /// The run that loses least beyond doubt, judged over all cells of each run.
    pub fn least(&self) -> Option<usize> {
        let differences = self.differences_by(Side::over_run);
        let reported = !differences.is_empty() && differences.iter().all(Difference::reported);
        reported.then(|| differences[0].less.run)
    }

    /// Runs whose cost grew against the first run's by more than `threshold` (natural-log ratio): by the estimate,
    /// and without doubt that it grew at all, judged over all cells of each run. Of a single run: its cost itself.
    pub fn grown(&self, threshold: f64) -> Vec<(usize, Interval)> {
        let beyond = |by: &Interval| by.low > 0.0 && by.estimate > threshold;
        let counted: Vec<&Side> = self.sides.iter().filter(|side| side.counts()).collect();
        match counted.as_slice() {
            [only] if self.sides.len() == 1 => {
                Some((only.run, only.over_run())).filter(|(_, by)| beyond(by)).into_iter().collect()
            }
            [first, others @ ..] if first.run == 0 => others
                .iter()
                .map(|side| (side.run, difference(&side.over_run(), &first.over_run(), others.len())))
                .filter(|(_, by)| beyond(by))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// The interval of `one` − `other`, which come from runs of their own.
///
/// The squares of the distances to the ends are added (MOVER: Zou and Donner, *Construction of confidence limits
/// about effect measures*, Statistics in Medicine 27, 2008), which keeps uneven intervals uneven. With several
/// `comparisons` the distances are widened by the ratio of the normal quantiles (Bonferroni), so that all hold
/// together.
pub fn difference(one: &Interval, other: &Interval, comparisons: usize) -> Interval {
    let tail = (1.0 - crate::CONFIDENCE) / 2.0;
    let widen = normal_upper(tail / comparisons.max(1) as f64) / normal_upper(tail);
    let distance = |a: f64, b: f64| widen * a.hypot(b);
    let estimate = one.estimate - other.estimate;
    Interval {
        estimate,
        low: estimate - distance(one.estimate - one.low, other.high - other.estimate),
        high: estimate + distance(one.high - one.estimate, other.estimate - other.low),
    }
}

/// Compares runs by what their records say.
///
/// # Errors
/// Why nothing can be compared: every reason, whole sentences.
pub fn compare(subjects: &[Analysis]) -> Result<Comparison, Vec<String>> {
    let runs = alike::names(subjects);
    let (mut matches, mut refused) = (Vec::new(), Vec::new());
    let Some(first) = subjects.first() else { return Err(vec!["There is no run to compare.".to_owned()]) };
    for cell in &first.cells {
        match alike::cells(subjects, &runs, cell) {
            Ok(cells) => alike::arms(&runs, &cells, &mut matches, &mut refused),
            Err(reason) => refused.push(reason),
        }
    }
    refused.extend(alike::not_in_first(subjects, &runs));
    if matches.is_empty() {
        refused.push("Nothing is left to compare.".to_owned());
        return Err(refused);
    }
    let notes = alike::notes(subjects, &runs);
    Ok(Comparison { runs, matches, refused, notes, margin: first.margin })
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};
    use proptest::prelude::*;

    use super::*;
    use crate::report::{comparison, html, sample};

    fn subject(run: &str, change: impl Fn(&mut Analysis)) -> Analysis {
        let mut analysis = sample::full();
        analysis.run = run.to_owned();
        change(&mut analysis);
        analysis
    }

    /// The same arms on another database, where TLS costs half.
    fn other(analysis: &mut Analysis) {
        for arm in &mut analysis.cells[0].arms {
            arm.facts.version = "MariaDB 11.8.3, OpenSSL 3.0".to_owned();
        }
        let effect = &mut analysis.cells[0].arms[1].estimates[0].effect;
        *effect = Interval { estimate: effect.estimate / 2.0, low: effect.low / 2.0, high: effect.high / 2.0 };
    }

    #[test]
    fn two_databases() {
        let subjects = [subject("one", |_| ()), subject("two", other)];
        let compared = compare(&subjects).unwrap();
        expect_file!["../report/golden/compared.txt"].assert_eq(&comparison::render(&compared, 80));
        expect_file!["../report/golden/compared.html"]
            .assert_eq(&sample::without_style(&html::comparison(&compared, &subjects)));
        assert_eq!(compared.matches[0].least(), Some(1));
        // An unproven arm is shown and not ranked.
        assert!(compared.matches[1].differences().is_empty());
    }

    #[test]
    fn what_is_not_alike_is_refused() {
        let reasons = |change: &dyn Fn(&mut Analysis)| match compare(&[subject("one", |_| ()), subject("two", change)])
        {
            Ok(compared) => compared.refused.join(" "),
            Err(reasons) => reasons.join(" "),
        };
        expect!["Cell c/in-memory is not the same in one and two: clients 2 and 4; values ycsb and incompressible. Nothing is left to compare."]
            .assert_eq(&reasons(&|analysis| {
                analysis.cells[0].clients = 4;
                analysis.cells[0].notes[1].1 = "incompressible".to_owned();
            }));
        expect!["Arm auth of cell c/in-memory is not in two."]
            .assert_eq(&reasons(&|analysis| drop(analysis.cells[0].arms.pop())));
        let records = compare(&[subject("one", |_| ()), Analysis { records: 5, ..subject("two", |_| ()) }]);
        assert!(records.unwrap_err()[0].contains("records 1000 and 5"));
    }

    #[test]
    fn arms_of_other_names_match_where_each_run_has_one() {
        let only = |name: &'static str| {
            move |analysis: &mut Analysis| {
                analysis.cells[0].arms.truncate(2);
                analysis.cells[0].arms[1].name = name.to_owned();
            }
        };
        let compared = compare(&[subject("one", only("pages")), subject("two", only("volume"))]).unwrap();
        assert_eq!(compared.matches[0].arm, "pages / volume");
        assert!(compared.refused.is_empty(), "{:?}", compared.refused);
    }

    #[test]
    fn a_threshold_is_passed_only_beyond_doubt() {
        let compared = compare(&[subject("one", other), subject("two", |_| ())]).unwrap();
        let grown = |threshold: f64| compared.matches[0].grown(f64::ln_1p(threshold)).len();
        assert_eq!([0.05, 0.15, 0.25].map(grown), [1, 1, 0]);
        let alone = compare(&[subject("one", |_| ())]).unwrap();
        let beyond: Vec<&str> =
            alone.matches.iter().filter(|it| !it.grown(0.1).is_empty()).map(|it| it.arm.as_str()).collect();
        // Not `audit`, which costs 13 % and is not proven.
        assert_eq!(beyond, ["tls", "columns"]);
    }

    proptest! {
        #[test]
        fn a_difference_holds_what_both_leave_possible(
            (a, b) in (-1.0..1.0f64, -1.0..1.0f64),
            widths in [0.0..0.5f64, 0.0..0.5, 0.0..0.5, 0.0..0.5],
            comparisons in 1_usize..6,
        ) {
            let one = Interval { estimate: a, low: a - widths[0], high: a + widths[1] };
            let other = Interval { estimate: b, low: b - widths[2], high: b + widths[3] };
            let by = difference(&one, &other, comparisons);
            prop_assert!(by.low <= by.estimate && by.estimate <= by.high);
            let back = difference(&other, &one, comparisons);
            prop_assert!((by.low + back.high).abs() < 1e-12 && (by.high + back.low).abs() < 1e-12);
            // Narrower than the sum of the ends, wider than either interval alone.
            let wide = by.high - by.low;
            prop_assert!(wide + 1e-12 >= (one.high - one.low).max(other.high - other.low) / 2f64.sqrt());
            prop_assert!(comparisons > 1 || wide <= one.high - one.low + other.high - other.low + 1e-12);
        }
    }
}
