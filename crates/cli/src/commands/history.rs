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
    for (label, path) in named {
        let assessed = records::read(&path)?;
        damaged = damaged.or(exit::of_damage(&path, &assessed.damage));
        runs.push((label.unwrap_or_else(|| assessed.analysis.run.clone()), assessed.analysis));
    }
    let history = history::history(&runs);
    let rendered = match arguments.format.as_str() {
        "html" => report::html::history(&history),
        "json" => report::history::json(&history),
        _ => report::history::render(&history, progress::columns().min(120)),
    };
    anstream::print!("{rendered}");
    Ok(damaged.unwrap_or(exit::OK))
}

/// The runs that `text` names, each with its label: one, or all that are in a folder, where documents are called by
/// their files' names.
fn runs_of(text: &str) -> Result<Vec<(Option<String>, PathBuf)>, Stop> {
    let (label, path) = labelled(text)?;
    if label.is_some() || !path.is_dir() || is_run(&path) {
        return Ok(vec![(label, path)]);
    }
    let cannot = |error| Stop::new(exit::MACHINE, format!("cannot read {}: {error}", path.display()));
    let entries = std::fs::read_dir(&path).map_err(cannot)?.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let is_document = |path: &Path| path.is_file() && path.extension().is_some_and(|it| it == "json");
    let mut found: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    found.retain(|path| is_run(path) || is_document(path));
    found.sort();
    if found.is_empty() {
        let message = format!("{} is no run, and has neither run folders nor documents (*.json) in it", path.display());
        return Err(Stop::new(exit::USAGE, message));
    }
    let label = |path: &Path| {
        let stem = path.file_stem().filter(|_| is_document(path));
        stem.map(|stem| stem.to_string_lossy().into_owned())
    };
    Ok(found.into_iter().map(|path| (label(&path), path)).collect())
}

fn is_run(path: &Path) -> bool {
    path.join("plan.json").is_file()
}

/// A run that is named twice would weigh twice.
fn refuse_twice(named: &[(Option<String>, PathBuf)]) -> Result<(), Stop> {
    let mut known = std::collections::BTreeSet::new();
    for (_, path) in named {
        // What is not there is told where it is read.
        if path.canonicalize().is_ok_and(|path| !known.insert(path)) {
            let message = format!("{} is named twice: a run counts once", path.display());
            return Err(Stop::new(exit::USAGE, message));
        }
    }
    Ok(())
}
