//! Costs over many runs, in the order of their measurement, and their changes.
//!
//! A series is one arm of one cell in all runs that did the same work on the same machine. Runs that differ get a
//! series of their own, which names the difference. The version of the server may differ within a series, because a
//! history is kept to show the effect of new versions. A cost keeps its place but does not count if its protection was
//! not proven, its set-up was not symmetric, it has no interval, or its interval does not hold it.
//!
//! [`change_points`] finds the changes: of all series without a change, at most one in twenty shows one, for any number
//! of series.

use std::collections::BTreeMap;

use tithe_model::quantity::{fixed, moment};
use tithe_statistics::{
    change_points::{ChangePoint, change_points, values_min},
    distribution::normal_upper,
    random_effects::{Errors, Unit, pooled},
};

use crate::{
    Analysis, ArmAnalysis, CONFIDENCE, CellAnalysis, Estimate, Figure, Interval, Proof,
    compare::{as_share, asked_notes, caches, difference, limits},
    figures::metric_title,
};

/// Runs over time.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The series, in the order of their first runs.
    pub series: Vec<Series>,
    /// Notes for the reader, whole sentences.
    pub notes: Vec<String>,
}

/// The deciding cost of one arm of one cell over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The cell's short name.
    pub cell: String,
    /// The arm's name.
    pub arm: String,
    /// The title of the figure: `net time per op`.
    pub title: String,
    /// The difference from the first series of this cell and arm; empty for the first.
    pub apart: String,
    /// The runs, in order.
    pub points: Vec<Point>,
    /// Where the cost changed, in order.
    pub changes: Vec<Change>,
    /// Smallest number of counted runs with which a change could be found.
    pub runs_min: usize,
}

/// The cost in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The name of the run.
    pub run: String,
    /// When its first frame began, `2026-03-03T02:07:09Z`; empty if unknown.
    pub time: String,
    /// The server's version as it reports it.
    pub version: String,
    /// The cost, with its interval.
    pub estimate: Estimate,
    /// Was the protection on?
    pub proof: Proof,
}

impl Point {
    /// True if the cost is known and is the cost of the protection.
    pub fn counts(&self) -> bool {
        self.estimate.counts(&self.proof)
    }
}

/// A change of the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first point of the new level.
    pub point: usize,
    /// p of no change in the part of the series that was split here.
    pub p: f64,
    /// The cost over the runs before it, back to the previous change; natural-log ratio.
    pub before: Interval,
    /// The cost over the runs from it on, up to the next change; natural-log ratio.
    pub after: Interval,
    /// The cost as a share of the plain arm, after less before.
    pub points: Interval,
    /// The version of the server before and after, if it changed at the same place.
    pub versions: Option<(String, String)>,
}

impl Series {
    /// Points that count, by their index.
    fn counted(&self) -> Vec<usize> {
        (0..self.points.len()).filter(|index| self.points[*index].counts()).collect()
    }

    /// True if too few runs count to find a change.
    pub fn too_short(&self) -> bool {
        self.counted().len() < self.runs_min
    }

    /// The level of each part between two changes, with the index of its first point and of the one after its last. Its
    /// ends are infinite if it has one run.
    pub fn levels(&self) -> Vec<(usize, usize, Interval)> {
        let changes = self.changes.iter().map(|change| change.point);
        let ends: Vec<usize> = std::iter::once(0).chain(changes).chain([self.points.len()]).collect();
        let stretches = ends.windows(2).map(|ends| (ends[0], ends[1]));
        stretches.map(|(start, end)| (start, end, level(&self.points[start..end]))).collect()
    }

    /// Searches changes with the error `level`.
    fn find(&mut self, level: f64) {
        self.runs_min = values_min(level);
        let counted = self.counted();
        let units: Vec<Unit> = counted.iter().map(|index| unit(&self.points[*index])).collect();
        let found = change_points(&units, level);
        self.changes = found.iter().map(|change| self.change(change, &counted)).collect();
        let levels: Vec<Interval> = self.levels().into_iter().map(|(_, _, level)| level).collect();
        for (change, levels) in self.changes.iter_mut().zip(levels.windows(2)) {
            (change.before, change.after) = (levels[0], levels[1]);
            change.points = difference(&as_share(&levels[1]), &as_share(&levels[0]), 1);
        }
    }

    /// A change at a place among the points that count, without its levels.
    fn change(&self, found: &ChangePoint, counted: &[usize]) -> Change {
        let (last, point) = (counted[found.place - 1], counted[found.place]);
        let [before, after] = [last, point].map(|index| self.points[index].version.clone());
        let unknown = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let versions = (before != after).then_some((before, after));
        Change { point, p: found.p, before: unknown, after: unknown, points: unknown, versions }
    }
}

/// The cost over `points` that count, as a random effect of the runs.
fn level(points: &[Point]) -> Interval {
    let units: Vec<Unit> = points.iter().filter(|point| point.counts()).map(unit).collect();
    pooled(&units, Errors::Own, 1.0 - CONFIDENCE).effect
}

/// A run as one value; its standard error comes from the half-width of its interval.
fn unit(point: &Point) -> Unit {
    let error = point.estimate.effect.half_width() / normal_upper((1.0 - CONFIDENCE) / 2.0);
    Unit { effect: point.estimate.effect.estimate, variance: error * error }
}

/// Conditions that must be equal for costs in one series: name and value.
type Conditions = Vec<(String, String)>;

/// The history of `runs`, each with its name. They are sorted by the time of their first frames; if that is unknown for
/// one of them, they keep the given order.
pub fn history(runs: &[(String, Analysis)]) -> History {
    let mut order: Vec<&(String, Analysis)> = runs.iter().collect();
    let mut notes = Vec::new();
    match runs.iter().all(|(_, analysis)| analysis.began_unix_s.is_some()) {
        true => order.sort_by_key(|(_, analysis)| analysis.began_unix_s),
        false => notes.push(
            "Some runs do not say when they were measured: all are shown in the order in which they were named."
                .to_owned(),
        ),
    }
    notes.extend(controls(&order));
    notes.extend(not_symmetric(&order));
    notes.extend(not_held(&order));
    let mut series: Vec<(Conditions, Series)> = Vec::new();
    for (run, analysis) in order {
        for (cell, arm, estimate) in deciding(analysis) {
            let conditions = conditions(analysis, cell, arm, estimate);
            let point = point(run, analysis, (cell, arm, estimate));
            let is_it = |(known, it): &&mut (Conditions, Series)| {
                *known == conditions && (it.cell.as_str(), it.arm.as_str()) == (cell.id.as_str(), arm.name.as_str())
            };
            match series.iter_mut().find(is_it) {
                Some((_, known)) => known.points.push(point),
                None => {
                    let begun = begun(&series, &conditions, cell, arm, point);
                    series.push((conditions, begun));
                }
            }
        }
    }
    let mut series: Vec<Series> = series.into_iter().map(|(_, series)| series).collect();
    let level = (1.0 - CONFIDENCE) / series.len().max(1) as f64;
    series.iter_mut().for_each(|series| series.find(level));
    History { series, notes }
}

/// The costs of the A/A arms of `runs`, cell by cell: how large costs are without a reason.
fn controls(runs: &[&(String, Analysis)]) -> Vec<String> {
    let mut read: BTreeMap<&str, Vec<Interval>> = BTreeMap::new();
    for cell in runs.iter().flat_map(|(_, analysis)| &analysis.cells) {
        let controls = cell.arms.iter().filter(|arm| arm.aa).filter_map(|arm| Some(arm.primary()?.effect));
        read.entry(&cell.id).or_default().extend(controls.filter(|effect| effect.half_width().is_finite()));
    }
    let told = read.into_iter().filter(|(_, effects)| !effects.is_empty()).map(|(cell, effects)| {
        let estimates = || effects.iter().map(|effect| 100.0 * effect.estimate.exp_m1());
        let (low, high) = (estimates().fold(f64::MAX, f64::min), estimates().fold(f64::MIN, f64::max));
        let missed = effects.iter().filter(|effect| !effect.holds(0.0)).count();
        format!(
            "Cell {cell}: the plain arm again (A/A), whose true cost is zero, gave {} to {} % in {} of the runs; its \
             interval excluded zero in {missed} of them.",
            fixed(low, 2),
            fixed(high, 2),
            effects.len()
        )
    });
    told.collect()
}

/// The runs whose costs of a cell do not count because their set-up was not symmetric.
fn not_symmetric(runs: &[&(String, Analysis)]) -> Vec<String> {
    let mut cells: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (run, analysis) in runs {
        for (cell, _, _) in deciding(analysis).filter(|(_, _, estimate)| !estimate.is_symmetric()) {
            let named = cells.entry(&cell.id).or_default();
            if !named.contains(&run.as_str()) {
                named.push(run);
            }
        }
    }
    let told = cells.into_iter().map(|(cell, runs)| {
        format!(
            "Cell {cell} of {}: its plain arm differs from itself (A/A), so its set-up is not symmetric and its costs are not \
             counted.",
            runs.join(", ")
        )
    });
    told.collect()
}

/// The runs whose cost of an arm does not count because its interval does not hold it.
fn not_held(runs: &[&(String, Analysis)]) -> Vec<String> {
    let mut arms: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for (run, analysis) in runs {
        for (cell, arm, estimate) in deciding(analysis) {
            if let Some(why) = estimate.not_held() {
                arms.entry((cell.id.as_str(), arm.name.as_str(), why)).or_default().push(run.as_str());
            }
        }
    }
    let told = arms.into_iter().map(|((cell, arm, why), runs)| {
        format!("Arm {arm} of cell {cell} of {}: {why}, so its cost is not counted.", runs.join(", "))
    });
    told.collect()
}

/// The protected arms of a run with their deciding cost.
fn deciding(analysis: &Analysis) -> impl Iterator<Item = (&CellAnalysis, &ArmAnalysis, &Estimate)> {
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    arms.filter(|(_, arm)| !arm.aa).filter_map(|(cell, arm)| arm.primary().map(|estimate| (cell, arm, estimate)))
}

fn conditions(analysis: &Analysis, cell: &CellAnalysis, arm: &ArmAnalysis, estimate: &Estimate) -> Conditions {
    let machine = &analysis.machine;
    let same = [
        ("database", analysis.database.clone()),
        ("workload", cell.workload.to_lowercase()),
        ("clients", cell.clients.to_string()),
        ("load", cell.arrivals.clone()),
        ("records", analysis.records.to_string()),
        ("limits", limits(cell)),
        ("caches", caches(cell).to_owned()),
        ("protections", arm.protections.join("+")),
        ("figure", decided(&estimate.name)),
        ("machine", format!("{}, {} processors", machine.processor, machine.processors)),
    ];
    same.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(asked_notes(cell).cloned()).collect()
}

/// The name of a deciding figure. It distinguishes series, whatever title a document has for the figure.
fn decided(figure: &Figure) -> String {
    match figure {
        Figure::Metric(metric) => metric_title(*metric).to_owned(),
        other => other.to_string(),
    }
}

fn point(run: &str, analysis: &Analysis, (cell, arm, estimate): (&CellAnalysis, &ArmAnalysis, &Estimate)) -> Point {
    Point {
        run: run.to_owned(),
        time: analysis.began_unix_s.map_or(String::new(), moment),
        version: cell.arms.first().map_or(String::new(), |plain| plain.facts.version.clone()),
        estimate: estimate.clone(),
        proof: arm.proof.clone(),
    }
}

/// A series that begins with `first`, given the `known` ones.
fn begun(
    known: &[(Conditions, Series)],
    conditions: &Conditions,
    cell: &CellAnalysis,
    arm: &ArmAnalysis,
    first: Point,
) -> Series {
    let like = known.iter().find(|(_, it)| it.cell == cell.id && it.arm == arm.name);
    Series {
        cell: cell.id.clone(),
        arm: arm.name.clone(),
        title: first.estimate.title.clone(),
        apart: like.map_or(String::new(), |(other, _)| unlike(other, conditions)),
        points: vec![first],
        changes: Vec::new(),
        runs_min: 0,
    }
}

/// The differences between `one` and `other`: `clients 2 and 4; records 1000 and 5`.
fn unlike(one: &Conditions, other: &Conditions) -> String {
    let value = |of: &Conditions, name: &str| {
        let found = of.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        found.unwrap_or_else(|| "unknown".to_owned())
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in one.iter().chain(other) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let told = names.into_iter().map(|name| (name, value(one, name), value(other, name)));
    let told =
        told.filter(|(_, one, other)| one != other).map(|(name, one, other)| format!("{name} {one} and {other}"));
    told.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{Flag, report::sample as analyses};

    /// A run of the first cell and its first two arms, on day `day`, with a cost of `cost` percent.
    fn run(day: u64, cost: f64, change: impl Fn(&mut Analysis)) -> (String, Analysis) {
        let mut analysis = analyses::full();
        analysis.began_unix_s = Some(1_772_503_629 + 86_400 * day);
        analysis.cells[0].arms.truncate(2);
        let effect = (cost / 100.0).ln_1p();
        let estimate = &mut analysis.cells[0].arms[1].estimates[0];
        estimate.effect = Interval { estimate: effect, low: effect - 0.004, high: effect + 0.004 };
        change(&mut analysis);
        (format!("commit-{day}"), analysis)
    }

    /// Twelve days. On the seventh, TLS became more expensive by five points with a new version of the server. The
    /// fourth is not proven, and the last ran with more clients.
    pub(crate) fn sample() -> History {
        let wobble = |day: u64| [0.1, -0.2, 0.0, 0.2, -0.1][day as usize % 5];
        let mut runs: Vec<(String, Analysis)> = (0..12)
            .map(|day| {
                let cost = if day < 6 { 10.0 } else { 15.0 } + wobble(day);
                run(day, cost, |analysis| {
                    let cell = &mut analysis.cells[0];
                    if day == 3 {
                        cell.arms[1].proof = Proof::Unproven(vec!["nobody looked".to_owned()]);
                    }
                    if day >= 6 {
                        cell.arms[0].facts.version = "PostgreSQL 15.15 <next>".to_owned();
                    }
                })
            })
            .collect();
        runs.push(run(12, 10.0, |analysis| analysis.cells[0].clients = 64));
        runs.reverse();
        history(&runs)
    }

    #[test]
    fn a_change_is_found_between_the_runs_where_it_was() {
        let history = sample();
        let [series, apart] = history.series.as_slice() else { panic!("{} series", history.series.len()) };
        assert!(series.points.is_sorted_by_key(|point| point.time.clone()));
        let [change] = series.changes.as_slice() else { panic!("{:?}", series.changes) };
        assert_eq!((change.point, series.points[change.point].run.as_str()), (6, "commit-6"));
        assert!(change.points.low > 0.04 && change.points.high < 0.06, "{:?}", change.points);
        assert_eq!(change.versions.as_ref().expect("versions").1, "PostgreSQL 15.15 <next>");
        assert!(change.p <= 0.025 && !series.too_short());
        assert_eq!((apart.points.len(), apart.too_short()), (1, true));
        assert!(apart.apart.starts_with("clients ") && apart.apart.ends_with(" and 64"), "{}", apart.apart);
    }

    #[test]
    fn what_nothing_costs_is_told_over_all_runs() {
        let with_control = |day: u64, read: f64| {
            run(day, 10.0, |analysis| {
                let mut control = analysis.cells[0].arms[1].clone();
                (control.name, control.aa, control.proof) = ("A/A".to_owned(), true, Proof::Baseline);
                control.estimates[0].effect = Interval { estimate: read, low: read - 0.002, high: read + 0.002 };
                analysis.cells[0].arms.push(control);
            })
        };
        let history = history(&[with_control(0, -0.001), with_control(1, 0.003), run(2, 10.0, |_| ())]);
        expect!["Cell c/in-memory: the plain arm again (A/A), whose true cost is zero, gave −0.10 to 0.30 % in 2 of the runs; its interval excluded zero in 1 of them."].assert_eq(&history.notes.join("\n"));
        assert_eq!(history.series.len(), 1);
    }

    #[test]
    fn what_is_not_proven_is_shown_and_not_counted() {
        let series = &sample().series[0];
        assert_eq!((series.points.len(), series.counted().len()), (12, 11));
        assert!(!series.points[3].counts());
        let (start, end, level) = series.levels()[0];
        assert_eq!((start, end), (0, 6));
        assert!(level.low < 0.1f64.ln_1p() && 0.1f64.ln_1p() < level.high, "{level:?}");
    }

    #[test]
    fn a_set_up_that_is_not_symmetric_is_shown_and_not_counted() {
        let asymmetric = |analysis: &mut Analysis| {
            analysis.cells[0].arms[1].estimates[0].flags.push(Flag::Asymmetric);
        };
        let history = history(&[run(0, 10.0, |_| ()), run(1, 10.0, asymmetric), run(2, 10.0, asymmetric)]);
        let series = &history.series[0];
        assert_eq!((series.points.len(), series.counted().len()), (3, 1));
        expect!["Cell c/in-memory of commit-1, commit-2: its plain arm differs from itself (A/A), so its set-up is not symmetric and its costs are not counted."].assert_eq(&history.notes.join("\n"));
    }

    #[test]
    fn a_cost_whose_interval_does_not_hold_it_is_shown_and_not_counted() {
        let unsteady = |analysis: &mut Analysis| {
            analysis.cells[0].arms[1].estimates[0].flags.push(Flag::NotSteady);
        };
        let history = history(&[run(0, 10.0, |_| ()), run(1, 10.0, unsteady)]);
        let series = &history.series[0];
        assert_eq!((series.points.len(), series.counted().len()), (2, 1));
        expect!["Arm tls of cell c/in-memory of commit-1: its servers still changed when measuring began, so its cost is not counted."].assert_eq(&history.notes.join("\n"));
    }

    #[test]
    fn the_rate_at_a_share_of_saturation_splits_no_series() {
        let series = |arrivals: &str| {
            let at = |day: u64| {
                run(day, 10.0, |analysis| {
                    arrivals.clone_into(&mut analysis.cells[0].arrivals);
                    analysis.cells[0].notes.push(("rate".to_owned(), format!("{}/s", 900 + day)));
                })
            };
            history(&[at(0), at(1), at(2)]).series.len()
        };
        assert_eq!(series("70 % of saturation, Poisson arrivals"), 1);
        assert_eq!(series("2,000/s, Poisson arrivals"), 3);
    }

    #[test]
    fn other_limits_and_other_caches_begin_another_series() {
        let apart = |fact: &str, texts: [&str; 2]| {
            let at = |day: usize| {
                run(day as u64, 10.0, |analysis| {
                    let facts = &mut analysis.cells[0].arms[0].facts.facts;
                    facts.insert(fact.to_owned(), texts[day].to_owned());
                })
            };
            let history = history(&[at(0), at(1)]);
            history.series.into_iter().skip(1).map(|series| series.apart).collect::<Vec<_>>()
        };
        let (small, large) = ("memory 256 MiB, by control groups", "memory 512 MiB, by control groups");
        assert_eq!(apart("limits", [small, large]), ["limits memory 256 MiB and memory 512 MiB"]);
        assert_eq!(apart("limits", [small, "memory 256 MiB, by control groups of version 1"]), [""; 0]);
        let (warm, cold) = ("emptied before each epoch", "emptied before each epoch: servers stopped, then dropped");
        assert_eq!(apart("cache", [warm, cold]), ["caches warm and cold"]);
        assert_eq!(apart("cache", [cold, cold]), [""; 0]);
    }

    #[test]
    fn runs_that_do_not_say_when_keep_their_order() {
        let mut runs: Vec<(String, Analysis)> = (0..3).map(|day| run(day, 10.0, |_| ())).collect();
        runs.reverse();
        let names = |runs: &[(String, Analysis)]| {
            let history = history(runs);
            let names: Vec<String> = history.series[0].points.iter().map(|point| point.run.clone()).collect();
            (names.join(" "), history.notes.len())
        };
        assert_eq!(names(&runs), ("commit-0 commit-1 commit-2".to_owned(), 0));
        runs[1].1.began_unix_s = None;
        assert_eq!(names(&runs), ("commit-2 commit-1 commit-0".to_owned(), 1));
        assert!(history(&[]).series.is_empty());
    }
}
