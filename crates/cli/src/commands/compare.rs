//! `tithe compare`: the costs of several runs side by side, and a status for continuous integration.

use std::path::{Path, PathBuf};

use tithe_analysis::{
    Analysis, Interval, Outcome,
    compare::{self, Comparison},
    report::{self, number},
};
use tithe_model::ending::CellEnding;

use crate::{
    CompareArgs,
    exit::{self, Stop},
    progress, records,
};

/// Runs the command; returns the exit status.
pub fn compare(arguments: &CompareArgs) -> Result<i32, Stop> {
    let threshold = arguments.threshold.as_deref().map(percentage).transpose()?;
    if arguments.runs.len() < 2 && threshold.is_none() {
        return Err(Stop::new(exit::USAGE, "name at least two runs, or one and a --threshold"));
    }
    for (index, run) in arguments.runs.iter().enumerate() {
        let same = |other: &PathBuf| run.canonicalize().is_ok_and(|run| other.canonicalize().is_ok_and(|it| it == run));
        if arguments.runs[..index].iter().any(same) {
            let message = format!("{} is named twice: a run does not differ from itself", run.display());
            return Err(Stop::new(exit::USAGE, message));
        }
    }
    let mut subjects = Vec::new();
    let (mut damaged, mut unmeasured) = (None, exit::OK);
    for run in &arguments.runs {
        let assessed = records::read(run)?;
        damaged = damaged.or(exit::of_damage(run, &assessed.damage));
        if threshold.is_some() {
            unmeasured = exit::worse(unmeasured, of_cells(run, &assessed.analysis));
        }
        subjects.push(assessed.analysis);
    }
    let comparison = compare::compare(&subjects).map_err(|reasons| {
        let status = if unmeasured == exit::OK { exit::USAGE } else { unmeasured };
        Stop::new(status, format!("these runs cannot be compared:\n  {}", reasons.join("\n  ")))
    })?;
    let rendered = match arguments.format.as_str() {
        "html" => report::html::comparison(&comparison, &subjects),
        _ => report::comparison::render(&comparison, progress::columns().min(120)),
    };
    anstream::print!("{rendered}");
    let judged = threshold.map_or(exit::OK, |threshold| judge(&comparison, threshold));
    Ok(damaged.unwrap_or(exit::worse(unmeasured, judged)))
}

/// Says on standard error which cells of a run were not measured, or not to their end, and returns the status: a
/// threshold that nothing was held against was not kept.
fn of_cells(run: &Path, analysis: &Analysis) -> i32 {
    let mut status = exit::OK;
    for cell in &analysis.cells {
        let words = match &cell.ending {
            _ if cell.frames == 0 => "was not measured",
            Some(CellEnding::Failed(_)) => "was not measured to its end",
            _ => continue,
        };
        anstream::eprintln!("tithe: {}: {} {words}", run.display(), cell.id);
        status = exit::FAILED;
    }
    status
}

/// Says on standard error what is not proven and what lies beyond the threshold, and returns the status.
fn judge(comparison: &Comparison, threshold: f64) -> i32 {
    let mut status = exit::OK;
    for matched in &comparison.matches {
        let of_sides = exit::of_proofs(matched.sides.iter().map(|side| &side.proof));
        let words = match of_sides {
            exit::OK => continue,
            exit::DISPROVEN => "disproven: some claim of its protection does not hold",
            _ => "not proven to be on",
        };
        anstream::eprintln!("tithe: {} · {}: {words}", matched.cell, matched.arm);
        status = exit::worse(status, of_sides);
    }
    for (matched, run, by) in comparison
        .matches
        .iter()
        .flat_map(|matched| matched.grown(threshold).into_iter().map(move |(run, by)| (matched, run, by)))
    {
        let verb = if comparison.runs.len() > 1 { "grew by" } else { "is" };
        let by: Interval = by;
        anstream::eprintln!(
            "tithe: {} · {}: the cost in {} {verb} {}, beyond {}%",
            matched.cell,
            matched.arm,
            comparison.runs[run],
            number::cost(&by, Outcome::Costs),
            number::digits(number::percent(threshold))
        );
        status = exit::worse(status, exit::BEYOND);
    }
    status
}

/// `5%` as a natural-log ratio.
fn percentage(text: &str) -> Result<f64, Stop> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    match number.filter(|number| number.is_finite() && *number >= 0.0) {
        Some(number) => Ok((number / 100.0).ln_1p()),
        None => Err(Stop::new(exit::USAGE, format!("--threshold {text:?} is no percentage; write one as 5%"))),
    }
}
