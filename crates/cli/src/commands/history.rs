//! `tithe history`: the costs of many runs in the order in which they were measured, and where they changed.

use std::path::{Path, PathBuf};

use tithe_analysis::{Analysis, history, report};

use super::compare::labelled;
use crate::{
    HistoryArgs,
    exit::{self, Stop},
    progress, records,
};

/// Runs the command; returns the exit status.
pub fn history(arguments: &HistoryArgs) -> Result<i32, Stop> {
    let mut named = Vec::new();
    for run in &arguments.runs {
        named.extend(runs_of(run)?);
    }
    refuse_twice(&named)?;
    let (mut runs, mut damaged) = (Vec::<(String, Analysis)>::new(), None);
    let mut left_out = Vec::<(PathBuf, Stop)>::new();
    for Named { label, path, listed } in named {
        let assessed = match records::read(&path) {
            Ok(assessed) => assessed,
            // Users who name a folder of many runs do not require each of them to be readable.
            Err(stop) if listed => {
                left_out.push((path, stop));
                continue;
            }
            Err(stop) => return Err(stop),
        };
        damaged = damaged.or(exit::of_damage(&path, &assessed.damage));
        runs.push((label.unwrap_or_else(|| assessed.analysis.run.clone()), assessed.analysis));
    }
    let mut history = history::history(&runs);
    history.notes.extend(left_out.iter().map(|(path, stop)| why_left_out(path, stop.reason())));
    if let (true, Some((_, stop))) = (runs.is_empty(), left_out.into_iter().next()) {
        return Err(stop);
    }
    let rendered = match arguments.format.as_str() {
        "html" => report::html::history(&history),
        "json" => report::history::json(&history),
        _ => report::history::render(&history, progress::columns().min(120)),
    };
    crate::shown::show!("{rendered}");
    Ok(damaged.unwrap_or(exit::OK))
}

/// A run that is to be read.
struct Named {
    label: Option<String>,
    path: PathBuf,
    /// It was found in a folder that the user named.
    listed: bool,
}

/// The runs that `text` names: one, or all in a folder. Documents in a folder are called by their file names.
fn runs_of(text: &str) -> Result<Vec<Named>, Stop> {
    let (label, path) = labelled(text)?;
    if label.is_some() || !path.is_dir() || is_run(&path) {
        return Ok(vec![Named { label, path, listed: false }]);
    }
    let cannot = |error| Stop::new(exit::MACHINE, format!("cannot read {}: {error}", path.display()));
    let entries = std::fs::read_dir(&path).map_err(cannot)?.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let is_document = |path: &Path| path.is_file() && path.extension().is_some_and(|it| it == "json");
    let mut found: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    found.retain(|path| is_run(path) || is_document(path));
    found.sort();
    if found.is_empty() {
        let message =
            format!("{} is not a run, and has neither run folders nor documents (*.json) in it", path.display());
        return Err(Stop::new(exit::USAGE, message));
    }
    let label = |path: &Path| {
        let stem = path.file_stem().filter(|_| is_document(path));
        stem.map(|stem| stem.to_string_lossy().into_owned())
    };
    Ok(found.into_iter().map(|path| Named { label: label(&path), path, listed: true }).collect())
}

/// The message about the run at `path`, which could not be read for a `reason` that may name it already.
fn why_left_out(path: &Path, reason: &str) -> String {
    let place = path.display().to_string();
    let place = if reason.contains(&place) { String::new() } else { place + ": " };
    format!("Left out: {place}{reason}")
}

fn is_run(path: &Path) -> bool {
    path.join("plan.json").is_file()
}

/// A run that is named twice would count twice.
fn refuse_twice(named: &[Named]) -> Result<(), Stop> {
    let mut known = std::collections::BTreeSet::new();
    for Named { path, .. } in named {
        // A missing run is reported when it is read.
        if path.canonicalize().is_ok_and(|path| !known.insert(path)) {
            let message = format!("{} is named twice: a run counts once", path.display());
            return Err(Stop::new(exit::USAGE, message));
        }
    }
    Ok(())
}
