//! From the run folder's contents to what the analysis takes.

use std::path::Path;

use tithe_analysis::Records;
use tithe_harness::folder::Contents;
use tithe_model::record::Event;

/// The records of the run folder at `path`.
pub fn of(path: &Path, contents: Contents) -> Records {
    let run = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let run = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut warnings = Vec::new();
    let mut tithe = String::new();
    for event in &contents.events {
        match event {
            Event::Warning { message } => warnings.push(message.clone()),
            Event::RunStarted { tithe: version, .. } => tithe.clone_from(version),
            _ => {}
        }
    }
    let Contents { plan, machine, cells, frames, mut slots, findings, .. } = contents;
    slots.sort_by_key(|slot| slot.cell);
    Records {
        run,
        plan,
        machine,
        frames,
        slots,
        findings,
        warnings,
        tithe,
        facts: cells.iter().map(|cell| cell.arms.clone()).collect(),
        modes: cells.iter().map(|cell| cell.mode.clone()).collect(),
        endings: cells.iter().map(|cell| cell.ending.clone()).collect(),
        workload_notes: cells.into_iter().map(|cell| cell.notes).collect(),
    }
}

/// The experiment file as the run folder at `path` keeps it; empty where it cannot be read.
pub fn experiment(path: &Path) -> String {
    std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default()
}
