//! Compares matrices: the costs of a protection over the hosts of each, in the same form as a comparison of runs.
//!
//! A figure that is not pooled, because its matrix has two hosts or none that counts, is refused with that reason. A
//! figure from a single run has the errors of any run, including differences between runs that its interval does not
//! contain.

use std::collections::BTreeSet;

use tithe_model::{experiment::Metric, plan::STARTS_MIN};
use tithe_statistics::{starts::KnownSpread, verdict};

use super::{Answer, Basis, CellOutcome, Gathered, MatrixFigure, Repeat, figures, figures::over_all};
use crate::{
    Estimate, Figure, Interval, OverRun,
    assess::estimate::stated,
    compare::{
        Comparison, Counted, Match, Refusal, Side, between_runs, judged_over_all, judged_over_runs, nothing_left,
    },
    figures::metric_title,
};

/// One matrix and its name.
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its origin: title, plan and version.
    pub source: String,
    /// Its kinds of machine.
    pub machines: BTreeSet<String>,
    /// Its figures.
    pub figures: Vec<MatrixFigure>,
    /// The cost of each of its figures as judged over all cells.
    over_all: Vec<Option<Interval>>,
    /// Places that some of its tasks should have measured but did not, or not completely.
    unmeasured: BTreeSet<Place>,
}

/// Kind of machine, experiment, and the cell unless it is all of them.
type Place = (String, String, Option<String>);

impl Named {
    /// For `gathered`, which is called `name`.
    pub fn of(name: String, gathered: &Gathered) -> Self {
        let source = format!("{}, plan {}, gathered by tithe {}", gathered.title, gathered.plan, gathered.tithe);
        let machines = gathered.tasks.iter().map(|task| task.machine.clone()).collect();
        let over_all = over_all(gathered).iter().map(MatrixFigure::together).collect();
        Self { name, source, machines, figures: figures(gathered), over_all, unmeasured: unmeasured(gathered) }
    }

    /// The name of the cell of `figure`, with its kind of machine if there are several.
    fn cell(&self, figure: &MatrixFigure) -> String {
        let cell = format!("{} · {}", figure.experiment, figure.cell);
        if self.machines.len() > 1 { format!("{} · {cell}", figure.machine) } else { cell }
    }

    /// The name of `figure`.
    pub fn place(&self, figure: &MatrixFigure) -> String {
        format!("{} · {}", self.cell(figure), figure.arm)
    }

    /// True if some task should have measured `figure` of `other` and could not.
    fn was_to_tell(&self, other: &Self, figure: &MatrixFigure) -> bool {
        let one_kind = one_kind(self, other);
        self.unmeasured.iter().any(|(machine, experiment, cell)| {
            let same = *experiment == figure.experiment && cell.as_ref().is_none_or(|cell| *cell == figure.cell);
            same && (one_kind || *machine == figure.machine)
        })
    }
}

/// Places that some task of `gathered` should have measured but did not, or not completely.
fn unmeasured(gathered: &Gathered) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for row in &gathered.tasks {
        let place = |cell: Option<&CellOutcome>| {
            (row.machine.clone(), row.experiment.clone(), cell.map(|outcome| outcome.cell.clone()))
        };
        match row.outcome() {
            Some(outcome) => {
                let failed = outcome.cells.iter().filter(|cell| cell.failed.is_some());
                places.extend(failed.map(|cell| place(Some(cell))));
            }
            None => places.extend([place(None)]),
        }
    }
    places
}

/// Compares `matrices` with the first of them.
///
/// # Errors
/// Why nothing can be compared: every reason, whole sentences.
pub fn compare(matrices: &[Named]) -> Result<Comparison, Vec<String>> {
    let runs: Vec<String> = matrices.iter().map(|matrix| matrix.name.clone()).collect();
    let Some((first, others)) = matrices.split_first() else { return Err(vec!["There is no matrix.".to_owned()]) };
    let (mut matches, mut refused) = (Vec::new(), Vec::new());
    for figure in &first.figures {
        if let Some(other) = others.iter().find(|other| position(other, first, figure).is_none()) {
            let reason = format!("{} is not in {}.", first.place(figure), other.name);
            refused.push(lacking(other, (first, figure), reason));
            continue;
        }
        match matched(matrices, first, figure) {
            Ok(matched) => matches.push(matched),
            Err(reason) => refused.push(Refusal::unjudged(reason)),
        }
    }
    for other in others {
        let lone = other.figures.iter().filter(|figure| position(first, other, figure).is_none());
        refused.extend(lone.map(|figure| {
            let reason = format!("{} of {} is not in {}.", other.place(figure), other.name, first.name);
            lacking(first, (other, figure), reason)
        }));
    }
    if matches.is_empty() {
        return Err(nothing_left(&refused));
    }
    let mut notes: Vec<String> = matrices.iter().flat_map(notes).collect();
    let has_cells = |matrix: &Named| {
        let cells = matrix.figures.iter().map(|it| (&it.machine, &it.experiment, &it.cell));
        cells.collect::<BTreeSet<_>>().len() > 1
    };
    notes.extend(matrices.iter().any(has_cells).then(|| judged_over_all("matrix")));
    let all = matrices.iter().flat_map(|matrix| &matrix.figures);
    notes.extend(judged_over_runs(all.filter_map(|it| Some((it.database.as_str(), known_between_runs(it)?)))));
    let margin = first.figures.first().map_or(0.0, |figure| figure.margin);
    Ok(Comparison { runs, matches, refused, notes, margin })
}

/// The refusal of a `figure` of `other` that `matrix` does not have, for that `reason`. If tasks of `matrix` should
/// have measured it, no threshold was applied to it.
fn lacking(matrix: &Named, (other, figure): (&Named, &MatrixFigure), reason: String) -> Refusal {
    if matrix.was_to_tell(other, figure) { Refusal::unjudged(reason) } else { Refusal::absent(reason) }
}

/// `figure` of the `first` matrix in all matrices that have it.
fn matched(matrices: &[Named], first: &Named, figure: &MatrixFigure) -> Result<Match, String> {
    let mut sides = Vec::new();
    let all = matrices.iter().enumerate().filter_map(|(run, it)| Some((run, it, position(it, first, figure)?)));
    for (run, matrix, number) in all {
        let same = &matrix.figures[number];
        if same.figure != figure.figure {
            let name = &matrix.name;
            return Err(format!("{} is {} and in {name} {}.", first.place(figure), figure.title(), same.title()));
        }
        let ((effect, metric), proof) = same
            .together()
            .zip(same.figure)
            .zip(same.proof())
            .ok_or_else(|| format!("{} has no interval over hosts in {}.", first.place(figure), matrix.name))?;
        let (count, counted) = counted(same);
        sides.push(Side {
            run,
            estimate: estimate((same, metric), (effect, matrix.over_all[number]), count),
            proof,
            counted,
            between_runs: known_between_runs(same),
        });
    }
    Ok(Match {
        cell: first.cell(figure),
        arm: figure.arm.clone(),
        title: figure.title().to_owned(),
        sides,
        error: None,
    })
}

/// The figure of `matrix` for the same experiment, cell and arm as `figure` of `other`, and the same kind of machine.
/// The kind's name does not matter if each matrix has one kind.
fn position(matrix: &Named, other: &Named, figure: &MatrixFigure) -> Option<usize> {
    let one_kind = one_kind(matrix, other);
    matrix.figures.iter().position(|it| {
        let same = (&it.experiment, &it.cell, &it.arm) == (&figure.experiment, &figure.cell, &figure.arm);
        same && (one_kind || it.machine == figure.machine)
    })
}

/// True if each of two matrices has one kind of machine, so that the names need not be equal.
fn one_kind(one: &Named, other: &Named) -> bool {
    one.machines.len() == 1 && other.machines.len() == 1
}

/// Number of hosts, or of repeats on one, behind a figure.
fn counted(figure: &MatrixFigure) -> (usize, Counted) {
    match figure.answer {
        Answer::Over(Basis::Repeats(repeats), _) => (repeats, Counted::Repeats),
        Answer::Over(Basis::Hosts(hosts), _) => (hosts, Counted::Hosts),
        Answer::Nothing | Answer::One(_) | Answer::Two(..) => (figure.counting().count(), Counted::Hosts),
    }
}

/// The only run behind `figure`; `None` if hosts or repeats show the differences between runs.
fn only_run(figure: &MatrixFigure) -> Option<&Repeat> {
    let host = figure.counting().next()?;
    host.repeats.first().filter(|_| matches!(figure.answer, Answer::One(_)))
}

/// The known differences between runs like the one behind `figure`, beyond their intervals.
fn known_between_runs(figure: &MatrixFigure) -> Option<KnownSpread> {
    only_run(figure)?;
    between_runs(&figure.database, &Figure::Metric(figure.figure?))
}

/// A figure in `metric` over `count` hosts or repeats in the form for comparisons, with its cost and the cost judged
/// over all cells.
fn estimate(
    (figure, metric): (&MatrixFigure, Metric),
    (effect, judged): (Interval, Option<Interval>),
    count: usize,
) -> Estimate {
    let (verdict, text) = verdict::verdict(effect, figure.margin, "cost");
    let name = Figure::Metric(metric);
    let over_run = judged.map(|effect| {
        let (verdict, _) = verdict::verdict(effect, figure.margin, "cost");
        OverRun { effect, difference: None, verdict }
    });
    let mut estimate =
        Estimate { primary: true, over_run, ..stated(name, metric_title(metric), effect, verdict, text, count) };
    if let Some(run) = only_run(figure) {
        estimate.starts = run.starts;
        // A task does not record whether few starts widened its interval. They do, except if starts or runs do not
        // differ.
        let few = (1..STARTS_MIN as usize).contains(&run.starts);
        estimate.widened = few && known_between_runs(figure).is_some();
        estimate.text += &estimate.on_starts();
    }
    estimate
}

/// Notes on the number of hosts behind the figures of `matrix`.
fn notes(matrix: &Named) -> Vec<String> {
    let alone = matrix.figures.iter().filter(|figure| match figure.answer {
        Answer::One(_) | Answer::Two(Basis::Repeats(_), _) | Answer::Over(Basis::Repeats(_), _) => true,
        Answer::Nothing | Answer::Two(Basis::Hosts(_), _) | Answer::Over(Basis::Hosts(_), _) => false,
    });
    match alone.count() {
        0 => Vec::new(),
        count => vec![format!(
            "{} measured {count} of its {} figures on one host: a difference may be that host's.",
            matrix.name,
            matrix.figures.len()
        )],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;
    use crate::{
        compare::Budget,
        matrix::State,
        report::{comparison, html, matrix::sample, sample::without_style},
    };

    fn named(name: &str, count: usize) -> Named {
        Named::of(name.to_owned(), &sample::first(count))
    }

    #[test]
    fn what_is_pooled_in_both_is_compared_and_the_rest_refused() {
        let mut after = named("after", 6);
        let shift = |effect: &mut Interval| {
            let Interval { estimate, low, high } = *effect;
            *effect = Interval { estimate: estimate + 0.3, low: low + 0.3, high: high + 0.3 };
        };
        for figure in &mut after.figures {
            if let Answer::Over(_, together) = &mut figure.answer {
                shift(&mut together.effect);
            }
        }
        after.over_all.iter_mut().flatten().for_each(shift);
        let compared = compare(&[named("before", 14), after]).expect("TLS is in both");
        assert_eq!(compared.matches.len(), 2);
        let change = compared.matches[0].changes()[0];
        assert!((change.ratio.estimate - 0.3).abs() < 1e-12 && change.beyond(0.05), "{change:?}");
        assert!(
            compared.refused.iter().any(|it| it.reason == "pages.toml · c · aegis is not in after."),
            "{:?}",
            compared.refused
        );
        assert!(
            compared.notes[0].starts_with("before measured 2 of its 4 figures on one host"),
            "{:?}",
            compared.notes
        );
        let refused = compare(&[named("before", 6), named("two", 2)]).expect_err("two hosts are not pooled");
        assert_eq!(refused[0], "tls.toml · c · tls has no interval over hosts in two.");
    }

    #[test]
    fn what_a_matrix_was_to_tell_and_could_not_was_held_against_no_threshold() {
        let unjudged = |matrices: &[Named]| {
            let refused = compare(matrices).expect("TLS is in both").refused;
            refused.into_iter().filter(|it| it.unjudged).map(|it| it.reason).collect::<Vec<_>>()
        };
        // No task of the second experiment was started: in the later matrix, then in the first one.
        let matrices = [named("before", 14), named("after", 6)];
        assert_eq!(
            unjudged(&matrices),
            ["pages.toml · c · aegis is not in after.", "pages.toml · a · aegis is not in after."]
        );
        let compared = compare(&matrices).expect("TLS is in both");
        let outcome = |threshold| {
            let tests = comparison::junit::render(&compared, threshold);
            let reason = "message=\"pages.toml · c · aegis is not in after.\"";
            ["error", "skipped"].map(|outcome| tests.contains(&format!("<{outcome} {reason}>")))
        };
        assert_eq!([outcome(Some(0.05)), outcome(None)], [[true, false], [false, true]]);
        assert_eq!(unjudged(&[named("before", 6), named("after", 14)]).len(), 2);
        // A cell that failed in every measurement.
        let mut failed = sample::full();
        failed.tasks.truncate(12);
        for row in &mut failed.tasks {
            let State::Whole(outcome) = &mut row.state else { continue };
            for cell in outcome.cells.iter_mut().filter(|cell| cell.cell == "a") {
                cell.failed = Some("the disk is full".to_owned());
                cell.arms.clear();
            }
        }
        let failed = Named::of("after".to_owned(), &failed);
        assert_eq!(unjudged(&[named("before", 14), failed]), ["pages.toml · a · aegis is not in after."]);
        // An experiment that is missing in the later matrix.
        let mut smaller = sample::full();
        smaller.tasks.truncate(6);
        let smaller = Named::of("after".to_owned(), &smaller);
        assert_eq!(unjudged(&[named("before", 14), smaller]), [] as [&str; 0]);
    }

    #[test]
    fn a_single_run_is_judged_over_all_cells_of_its_matrix() {
        // One run of each experiment: three cells.
        let mut gathered = sample::full();
        let others = gathered.tasks.iter_mut().filter(|row| ![0, 7].contains(&row.task));
        others.for_each(|row| row.state = State::Missing);
        let compared = compare(&[Named::of("alone".to_owned(), &gathered)]).expect("two runs");
        assert_eq!(compared.matches.len(), 4);
        for estimate in compared.matches.iter().map(|matched| &matched.sides[0].estimate) {
            let (own, judged) = (estimate.effect, estimate.headline().effect);
            assert!(judged.half_width() > 1.2 * own.half_width(), "{own:?} {judged:?}");
            assert!((judged.estimate - own.estimate).abs() < 1e-12, "{own:?} {judged:?}");
        }
    }

    #[test]
    fn the_answer_is_judged_over_all_cells_of_a_matrix() {
        let half_widths = |count: usize| {
            let compared = compare(&[named("before", count), named("after", count)]).expect("the same");
            let estimate = compared.matches[0].sides[0].estimate.clone();
            (estimate.effect.half_width(), estimate.headline().effect.half_width())
        };
        let (of_figure, of_answer) = half_widths(6);
        assert_eq!(of_figure, of_answer, "one cell is all cells");
        let (of_figure, of_answer) = half_widths(14);
        assert!(of_answer > 1.2 * of_figure, "{of_answer} {of_figure}");
    }

    /// The result of one run on `starts` starts of its servers.
    fn one_run(name: &str, starts: usize) -> Named {
        let mut gathered = sample::first(1);
        let State::Whole(outcome) = &mut gathered.tasks[0].state else { panic!("the first task is whole") };
        outcome.cells[0].arms.iter_mut().for_each(|arm| arm.starts = starts);
        Named::of(name.to_owned(), &gathered)
    }

    #[test]
    fn a_single_run_errs_by_what_identical_runs_differ_by() {
        let compared = compare(&[one_run("before", 8), one_run("after", 2)]).expect("one run each");
        let [before, after] = compared.matches[0].sides.as_slice() else { panic!("{:?}", compared.matches[0]) };
        let known = between_runs("postgresql", &Figure::Metric(Metric::Net));
        assert!(known.is_some() && before.between_runs == known && after.between_runs == known);
        let stands_on = |side: &Side| (side.estimate.starts, side.estimate.widened);
        assert_eq!([before, after].map(stands_on), [(8, false), (2, true)]);
        assert!(after.estimate.text.ends_with(" on these 2 starts"), "{}", after.estimate.text);
        assert!(compared.notes.iter().any(|note| note.starts_with("Identical runs on postgresql differ by more")));
        // Hosts themselves show how much runs differ.
        let pooled = compare(&[named("before", 6), named("after", 6)]).expect("the same");
        assert!(pooled.matches.iter().flat_map(|it| &it.sides).all(|side| side.between_runs.is_none()));
        assert!(pooled.notes.iter().all(|note| !note.starts_with("Identical runs")), "{:?}", pooled.notes);
    }

    #[test]
    fn machines_of_another_kind_are_not_compared() {
        // One of two kinds of machine has no results in the later matrix.
        let kinds = |name: &str, measured: &str| {
            let mut matrix = named(name, 14);
            matrix.machines.insert("large".to_owned());
            matrix.figures.iter_mut().for_each(|figure| measured.clone_into(&mut figure.machine));
            matrix
        };
        let refused = compare(&[kinds("before", "small"), kinds("after", "large")]).expect_err("no kind is in both");
        assert_eq!(refused[0], "small · tls.toml · c · tls is not in after.");
        let same = compare(&[kinds("before", "large"), kinds("after", "large")]).expect("the same");
        assert_eq!(same.matches[0].cell, "large · tls.toml · c");
        // If each has one kind, its name may differ.
        let mut renamed = named("after", 14);
        renamed.machines = BTreeSet::from(["big".to_owned()]);
        renamed.figures.iter_mut().for_each(|figure| "big".clone_into(&mut figure.machine));
        assert!(compare(&[named("before", 14), renamed]).is_ok());
    }

    /// Where a matrix has several kinds, a name is a kind; where each has one, they are the same, whatever they are
    /// called.
    #[test]
    fn what_was_not_measured_on_one_kind_of_machine_says_nothing_of_another() {
        let set = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<BTreeSet<String>>();
        let lacks = |own: &[&str], others: &[&str], unmeasured: &str| {
            let (mut matrix, mut other) = (named("after", 6), named("before", 14));
            (matrix.machines, other.machines) = (set(own), set(others));
            matrix.unmeasured = BTreeSet::from([(unmeasured.to_owned(), "pages.toml".to_owned(), None)]);
            let [tls, pages] = ["tls.toml", "pages.toml"].map(|experiment| {
                let figure = other.figures.iter().find(|figure| figure.experiment == experiment).expect("measured");
                matrix.was_to_tell(&other, figure)
            });
            assert!(!tls, "another experiment");
            pages
        };
        let both = ["small", "large"];
        // The figures of the other matrix are of the kind `small`.
        assert_eq!(["small", "large"].map(|kind| lacks(&both, &both, kind)), [true, false]);
        assert_eq!(["small", "large"].map(|kind| lacks(&["large"], &["small"], kind)), [true, true]);
        assert_eq!(["small", "large"].map(|kind| lacks(&["large"], &both, kind)), [true, false]);
        assert_eq!(["small", "large"].map(|kind| lacks(&both, &["small"], kind)), [true, false]);
    }

    #[test]
    fn answers_over_several_cells_of_a_matrix_are_said_to_be_so() {
        let told = |count: usize| {
            let compared = compare(&[named("before", count), named("after", count)]).expect("the same");
            compared.notes.contains(&judged_over_all("matrix"))
        };
        assert_eq!([told(6), told(14)], [false, true]);
    }

    #[test]
    fn a_page_and_text_say_on_how_many_hosts_a_cost_rests() {
        let matrices = [named("before", 14), named("<after>", 6)];
        let compared = compare(&matrices).expect("TLS is in both");
        let page = html::compared_matrices(&compared, &matrices);
        expect_file!["../report/golden/compared_matrices.html"].assert_eq(&without_style(&page));
        expect_file!["../report/golden/compared_matrices.txt"].assert_eq(&comparison::render(&compared, 80));
    }

    #[test]
    fn a_budget_of_false_alarms_counts_hosts_and_repeats() {
        let refused = |count: usize| {
            let mut compared = compare(&[named("before", count), named("after", count)]).expect("the same");
            let budget = Budget { alarms_per_year: 1.0, comparisons_per_year: 365.0 };
            compared.keep(budget).expect_err("a few hosts").join("\n")
        };
        expect![[r#"
            tls.toml · c · tls in before rests on 5 hosts, and an error of 1.4e-3 needs 10: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · tls in after rests on 5 hosts, and an error of 1.4e-3 needs 10: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · audit in before rests on 4 hosts, and an error of 1.4e-3 needs 10: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · audit in after rests on 4 hosts, and an error of 1.4e-3 needs 10: measure on more hosts, compare fewer costs, or allow more false alarms."#]].assert_eq(&refused(6));
        expect![[r#"
            tls.toml · c · tls in before rests on 5 hosts, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · tls in after rests on 5 hosts, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · audit in before rests on 4 hosts, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            tls.toml · c · audit in after rests on 4 hosts, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            pages.toml · c · aegis in before rests on 5 repeats, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            pages.toml · c · aegis in after rests on 5 repeats, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            pages.toml · a · aegis in before rests on 4 repeats, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms.
            pages.toml · a · aegis in after rests on 4 repeats, and an error of 6.8e-4 needs 11: measure on more hosts, compare fewer costs, or allow more false alarms."#]].assert_eq(&refused(12));
    }
}
