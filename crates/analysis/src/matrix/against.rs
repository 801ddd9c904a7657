//! Matrices against each other: what a protection costs over the hosts of one and of another, in the form in which runs
//! are compared.
//!
//! A figure that is not pooled, because its matrix has two hosts or none that counts, is refused with that reason.

use tithe_model::experiment::Metric;

use super::{Answer, Basis, MatrixFigure};
use crate::{
    Estimate, Figure, Interval, Proof,
    assess::estimate::stated,
    compare::{Comparison, Match, Side},
    statistics::verdict,
};

/// One matrix and what it is called.
pub struct Named {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub figures: Vec<MatrixFigure>,
}

/// Compares `matrices`, of which the first is the one to compare with.
///
/// # Errors
/// Why nothing can be compared: every reason, whole sentences.
pub fn compare(matrices: &[Named]) -> Result<Comparison, Vec<String>> {
    let runs: Vec<String> = matrices.iter().map(|matrix| matrix.name.clone()).collect();
    let Some((first, others)) = matrices.split_first() else { return Err(vec!["There is no matrix.".to_owned()]) };
    let (mut matches, mut refused) = (Vec::new(), Vec::new());
    for figure in &first.figures {
        match matched(matrices, figure) {
            Ok(matched) => matches.push(matched),
            Err(reason) => refused.push(reason),
        }
    }
    for other in others {
        let lone = other.figures.iter().filter(|figure| found(first, figure).is_none());
        refused.extend(lone.map(|figure| format!("{} of {} is not in {}.", place(figure), other.name, first.name)));
    }
    if matches.is_empty() {
        refused.push("Nothing is left to compare.".to_owned());
        return Err(refused);
    }
    let notes = matrices.iter().flat_map(notes).collect();
    let margin = first.figures.first().map_or(0.0, |figure| figure.margin);
    Ok(Comparison { runs, matches, refused, notes, margin })
}

/// The same figure in all matrices.
fn matched(matrices: &[Named], figure: &MatrixFigure) -> Result<Match, String> {
    let mut sides = Vec::new();
    for (run, matrix) in matrices.iter().enumerate() {
        let same = found(matrix, figure).ok_or_else(|| format!("{} is not in {}.", place(figure), matrix.name))?;
        if same.figure != figure.figure {
            let name = &matrix.name;
            return Err(format!("{} is {} and in {name} {}.", place(figure), figure.figure, same.figure));
        }
        let effect = same
            .together()
            .ok_or_else(|| format!("{} has no interval over hosts in {}.", place(figure), matrix.name))?;
        sides.push(Side { run, estimate: estimate(same, effect), proof: Proof::Proven });
    }
    let cell = format!("{} · {}", figure.experiment, figure.cell);
    Ok(Match { cell, arm: figure.arm.clone(), title: figure.figure.clone(), sides, error: None })
}

/// The figure of `matrix` that is of the same experiment, cell and arm as `figure`, and of the same kind of machine
/// where it has several.
fn found<'a>(matrix: &'a Named, figure: &MatrixFigure) -> Option<&'a MatrixFigure> {
    let kinds = matrix.figures.iter().any(|other| other.machine != matrix.figures[0].machine);
    matrix.figures.iter().find(|other| {
        let same = (&other.experiment, &other.cell, &other.arm) == (&figure.experiment, &figure.cell, &figure.arm);
        same && (!kinds || other.machine == figure.machine)
    })
}

fn place(figure: &MatrixFigure) -> String {
    format!("{} · {} · {}", figure.experiment, figure.cell, figure.arm)
}

/// A figure over hosts as comparisons take it.
fn estimate(figure: &MatrixFigure, effect: Interval) -> Estimate {
    let (verdict, text) = verdict::verdict(effect, figure.margin, "cost");
    let count = figure.counting().count();
    let name = Figure::Metric(Metric::Net);
    Estimate { primary: true, ..stated(name, &figure.figure, effect, verdict, text, count) }
}

/// On how much the figures of `matrix` rest.
fn notes(matrix: &Named) -> Vec<String> {
    let alone = matrix.figures.iter().filter(|figure| match figure.answer {
        Answer::One(_) | Answer::Over(Basis::Repeats(_), _) => true,
        Answer::Nothing | Answer::Two(_) | Answer::Over(Basis::Hosts(_), _) => false,
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
    use super::*;
    use crate::{matrix::figures, report::matrix::sample};

    fn named(name: &str, count: usize) -> Named {
        Named { name: name.to_owned(), figures: figures(&sample::first(count)) }
    }

    #[test]
    fn what_is_pooled_in_both_is_compared_and_the_rest_refused() {
        let mut dearer = named("after", 6);
        for figure in &mut dearer.figures {
            if let Answer::Over(_, together) = &mut figure.answer {
                let Interval { estimate, low, high } = together.effect;
                together.effect = Interval { estimate: estimate + 0.3, low: low + 0.3, high: high + 0.3 };
            }
        }
        let compared = compare(&[named("before", 14), dearer]).expect("TLS is in both");
        assert_eq!(compared.matches.len(), 2);
        let change = compared.matches[0].changes()[0];
        assert!((change.ratio.estimate - 0.3).abs() < 1e-12 && change.beyond(0.05), "{change:?}");
        assert!(
            compared.refused.iter().any(|it| it == "pages.toml · c · aegis is not in after."),
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
}
