//! `tithe compare`: the costs of several runs side by side, and a status for continuous integration.

use std::path::{Path, PathBuf};

use tithe_analysis::{
    Analysis, Proof,
    compare::{self, Comparison},
    matrix::against::{self, Named},
    report,
};
use tithe_model::ending::CellEnding;

use crate::{
    CompareArgs,
    commands::matrix,
    exit::{self, Stop},
    progress, records,
};

/// Runs the command; returns the exit status.
pub fn compare(arguments: &CompareArgs) -> Result<i32, Stop> {
    let threshold = arguments.threshold.as_deref().map(share).transpose()?;
    let named = arguments.runs.iter().map(|run| labelled(run)).collect::<Result<Vec<_>, Stop>>()?;
    let (labels, runs): (Vec<Option<String>>, Vec<PathBuf>) = named.into_iter().unzip();
    if runs.len() < 2 && threshold.is_none() {
        return Err(Stop::new(exit::USAGE, "name at least two runs, or one and a --threshold"));
    }
    for (index, run) in runs.iter().enumerate() {
        let same = |other: &PathBuf| run.canonicalize().is_ok_and(|run| other.canonicalize().is_ok_and(|it| it == run));
        if runs[..index].iter().any(same) {
            let message = format!("{} is named twice: a run does not differ from itself", run.display());
            return Err(Stop::new(exit::USAGE, message));
        }
        if let Some(label) = labels[index].as_ref().filter(|label| labels[..index].contains(&Some((*label).clone()))) {
            return Err(Stop::new(exit::USAGE, format!("two runs have the label {label:?}: give each its own")));
        }
    }
    if runs.iter().any(|run| matrix::document(run).is_some()) {
        return matrices(arguments, &runs, &labels, threshold);
    }
    let mut subjects = Vec::new();
    let (mut damaged, mut seen) = (None, exit::OK);
    for run in &runs {
        let assessed = records::read(run)?;
        damaged = damaged.or(exit::of_damage(run, &assessed.damage));
        if threshold.is_some() {
            seen = exit::worse(seen, of_cells(run, &assessed.analysis));
            seen = exit::worse(seen, of_arms(run, &assessed.analysis));
        }
        subjects.push(assessed.analysis);
    }
    let mut comparison =
        compare::compare(&subjects, &labels).map_err(|reasons| incomparable("runs", &reasons, seen))?;
    keep(&mut comparison, arguments)?;
    let rendered = match arguments.format.as_str() {
        "html" => report::html::comparison(&comparison, &subjects),
        format => in_text(&comparison, format, threshold),
    };
    crate::shown::show!("{rendered}");
    let judged = threshold.map_or(exit::OK, |threshold| judge(&comparison, threshold));
    Ok(damaged.unwrap_or(exit::worse(seen, judged)))
}

/// Why these `what` cannot be compared. The reason may be that something is not measured or not proven, so the status
/// that was `seen` for that takes precedence.
fn incomparable(what: &str, reasons: &[String], seen: i32) -> Stop {
    let status = if seen == exit::OK { exit::USAGE } else { seen };
    Stop::new(status, format!("these {what} cannot be compared:\n  {}", reasons.join("\n  ")))
}

/// Applies the budget of false alarms to `comparison`, if there is one.
fn keep(comparison: &mut Comparison, arguments: &CompareArgs) -> Result<(), Stop> {
    let yearly = (arguments.false_alarms_per_year, arguments.comparisons_per_year);
    let (Some(alarms_per_year), Some(comparisons_per_year)) = yearly else { return Ok(()) };
    comparison.keep(compare::Budget { alarms_per_year, comparisons_per_year }).map_err(|reasons| {
        Stop::new(exit::USAGE, format!("the budget of false alarms cannot be kept:\n  {}", reasons.join("\n  ")))
    })
}

/// A comparison in any format but the page.
fn in_text(comparison: &Comparison, format: &str, threshold: Option<f64>) -> String {
    match format {
        "markdown" => report::comparison::markdown::render(comparison, threshold),
        "json" => report::comparison::json::render(comparison, threshold),
        "junit" => report::comparison::junit::render(comparison, threshold),
        _ => report::comparison::render(comparison, progress::columns().min(120)),
    }
}

/// Compares gathered matrices.
fn matrices(
    arguments: &CompareArgs,
    paths: &[PathBuf],
    labels: &[Option<String>],
    threshold: Option<f64>,
) -> Result<i32, Stop> {
    let name = |path: &Path, label: &Option<String>| label.clone().unwrap_or_else(|| path.display().to_string());
    let named = paths.iter().zip(labels).map(|(path, label)| matrix::named(path, name(path, label)));
    let named = named.collect::<Result<Vec<_>, Stop>>()?;
    let (named, unmeasured): (Vec<Named>, Vec<Vec<String>>) = named.into_iter().unzip();
    let mut seen = exit::OK;
    if threshold.is_some() {
        seen = exit::worse(of_tasks(&named, &unmeasured), named.iter().map(of_hosts).fold(exit::OK, exit::worse));
    }
    let mut comparison = against::compare(&named).map_err(|reasons| incomparable("matrices", &reasons, seen))?;
    keep(&mut comparison, arguments)?;
    let rendered = match arguments.format.as_str() {
        "html" => report::html::compared_matrices(&comparison, &named),
        format => in_text(&comparison, format, threshold),
    };
    crate::shown::show!("{rendered}");
    let judged = threshold.map_or(exit::OK, |threshold| judge(&comparison, threshold));
    Ok(exit::worse(seen, judged))
}

/// Reports on standard error what was `unmeasured` of the later matrices, or of a single one, and returns the status.
///
/// Gaps of the first matrix matter only if a later one has a figure there: the figure was compared with nothing, and
/// [`judge`] reports that.
fn of_tasks(matrices: &[Named], unmeasured: &[Vec<String>]) -> i32 {
    let later = matrices.iter().zip(unmeasured).skip(usize::from(matrices.len() > 1));
    let mut status = exit::OK;
    for (matrix, line) in later.flat_map(|(matrix, lines)| lines.iter().map(move |line| (matrix, line))) {
        crate::shown::telln!("tithe: {}: {line}", matrix.name);
        status = exit::FAILED;
    }
    status
}

/// Reports on standard error which cells of a run were not measured, or not to their end, and returns the status: a
/// threshold that was not checked counts as failed.
fn of_cells(run: &Path, analysis: &Analysis) -> i32 {
    let mut status = exit::OK;
    for cell in &analysis.cells {
        let words = match &cell.ending {
            _ if cell.frames == 0 => "was not measured",
            Some(CellEnding::Failed(_)) => "was not measured to its end",
            _ => continue,
        };
        crate::shown::telln!("tithe: {}: {} {words}", run.display(), cell.id);
        status = exit::FAILED;
    }
    status
}

/// Reports on standard error which arms of a run are not proven, and returns the status: for all measured arms,
/// compared or not.
fn of_arms(run: &Path, analysis: &Analysis) -> i32 {
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let told = arms.map(|(cell, arm)| {
        of_proofs(&format!("{}: {} · {}", run.display(), cell.id, arm.name), [&arm.proof].into_iter())
    });
    told.fold(exit::OK, exit::worse)
}

/// Reports on standard error which figures of a gathered matrix come from hosts on which a protection is not proven,
/// and returns the status.
fn of_hosts(matrix: &Named) -> i32 {
    let told = matrix.figures.iter().map(|figure| {
        let place = format!("{}: {}", matrix.name, matrix.place(figure));
        of_proofs(&place, figure.hosts.iter().map(|host| &host.proof))
    });
    told.fold(exit::OK, exit::worse)
}

/// Reports on standard error what the worst of these `proofs` means at `place`, and returns the status.
fn of_proofs<'a>(place: &str, proofs: impl Iterator<Item = &'a Proof>) -> i32 {
    let status = exit::of_proofs(proofs);
    match status {
        exit::OK => (),
        exit::DISPROVEN => {
            crate::shown::telln!("tithe: {place}: disproven: some claim of its protection does not hold")
        }
        _ => crate::shown::telln!("tithe: {place}: not proven to be on"),
    }
    status
}

/// Reports on standard error which costs the threshold cannot be applied to and which exceed it, and returns the
/// status.
fn judge(comparison: &Comparison, threshold: f64) -> i32 {
    let mut status = exit::OK;
    for line in report::comparison::not_judged(comparison) {
        crate::shown::telln!("tithe: {line}");
        status = exit::FAILED;
    }
    for line in report::comparison::against_threshold(comparison, threshold) {
        crate::shown::telln!("tithe: {line}");
    }
    let changes = comparison.matches.iter().flat_map(compare::Match::changes);
    let beyond = changes.filter(|change| change.beyond(threshold)).count() > 0;
    exit::worse(status, if beyond { exit::BEYOND } else { exit::OK })
}

/// `before=RUN` as a label and a path; a text that exists as a path has no label.
pub(super) fn labelled(text: &str) -> Result<(Option<String>, PathBuf), Stop> {
    match text.split_once('=').filter(|(label, _)| !label.contains('/') && !Path::new(text).exists()) {
        None => Ok((None, PathBuf::from(text))),
        Some((label, run)) if !label.trim().is_empty() && !run.is_empty() && !label.contains(char::is_control) => {
            Ok((Some(label.trim().to_owned()), PathBuf::from(run)))
        }
        Some(_) => {
            Err(Stop::new(exit::USAGE, format!("{text:?} is neither a run nor LABEL=RUN, as before=tithe-runs/1")))
        }
    }
}

/// `5%` as a share: points are of the plain arm.
fn share(text: &str) -> Result<f64, Stop> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    match number.filter(|number| number.is_finite() && *number >= 0.0) {
        Some(number) => Ok(number / 100.0),
        None => Err(Stop::new(exit::USAGE, format!("--threshold {text:?} is not a percentage; write one as 5%"))),
    }
}
