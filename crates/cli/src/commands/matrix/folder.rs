//! The folder that all tasks write into, and the state of the tasks according to it.
//!
//! A complete task has a folder `task-00012`, a run folder with a `task.json`. The folder appears at once under that
//! name: until then it is called `task-00012.part`. A failed attempt leaves its reason in `task-00012.failed`. While a
//! task is carried out, its `task-00012.lock` is locked, so that two processes on one file system cannot carry out the
//! same task.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use tithe_analysis::matrix::{Outcome, State, Stray};
use tithe_machine::sandbox::held::hold_file;
use tithe_model::matrix::FORMAT;

use crate::exit::{self, Stop};

/// The result of a task, in its folder.
pub const OUTCOME: &str = "task.json";

/// Largest result file that is read, bytes: about a thousand times the usual size.
const OUTCOME_MAX: u64 = 32 << 20;

/// Longest reason that is kept, characters.
const REASON_MAX: usize = 2000;

/// The folder of one plan's tasks.
pub struct Folder<'a> {
    path: &'a Path,
    plan: &'a str,
}

impl<'a> Folder<'a> {
    /// The folder at `path` for tasks of `plan`.
    pub fn new(path: &'a Path, plan: &'a str) -> Self {
        Self { path, plan }
    }

    /// The name of the folder of task `index`.
    pub fn name(index: usize) -> String {
        format!("task-{index:05}")
    }

    /// The folder of task `index` once it is complete.
    pub fn whole(&self, index: usize) -> PathBuf {
        self.path.join(Self::name(index))
    }

    /// The folder of task `index` until it is complete.
    pub fn part(&self, index: usize) -> PathBuf {
        self.beside(index, "part")
    }

    fn beside(&self, index: usize, ending: &str) -> PathBuf {
        self.path.join(format!("{}.{ending}", Self::name(index)))
    }

    /// Makes the folder and locks task `index` in it, until the file is closed.
    pub fn take(&self, index: usize) -> Result<File, Stop> {
        let failed = |error| Stop::new(exit::MACHINE, format!("cannot write into {}: {error}", self.path.display()));
        fs::create_dir_all(self.path).map_err(failed)?;
        hold_file(&self.beside(index, "lock")).map_err(failed)?.ok_or_else(|| {
            Stop::new(exit::MACHINE, format!("another tithe is measuring task {index} in {}", self.path.display()))
        })
    }

    /// Removes the reason why task `index` failed before: it begins again.
    pub fn begin(&self, index: usize) {
        let _ = fs::remove_file(self.beside(index, "failed"));
    }

    /// Removes the other files of task `index` once it is complete.
    pub fn tidy(&self, index: usize) {
        for ending in ["failed", "lock"] {
            // If a file stays there, it is ignored: the folder takes precedence.
            let _ = fs::remove_file(self.beside(index, ending));
        }
    }

    /// Keeps `reason` why task `index` could not be carried out.
    pub fn fail(&self, index: usize, reason: &str) {
        let reason: String = reason.trim().chars().take(REASON_MAX).collect();
        // A full disk may be the reason itself; the exit status reports the failure, too.
        let _ = fs::write(self.beside(index, "failed"), format!("{reason}\n"));
    }

    /// The state of task `index`.
    pub fn state(&self, index: usize) -> State {
        if self.whole(index).exists() {
            return match self.outcome(index) {
                Ok(outcome) => State::Whole(Box::new(outcome)),
                Err(reason) => State::Torn(reason),
            };
        }
        match fs::read_to_string(self.beside(index, "failed")) {
            Ok(reason) => State::Failed(reason.trim().to_owned()),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                State::Failed(format!("the reason cannot be read: {error}"))
            }
            Err(_) if self.part(index).exists() => State::Torn("it ended early, or is still running".to_owned()),
            Err(_) => State::Missing,
        }
    }

    /// The result in the folder of task `index`, or why it cannot be used.
    fn outcome(&self, index: usize) -> Result<Outcome, String> {
        let mut text = String::new();
        let read = File::open(self.whole(index).join(OUTCOME))
            .and_then(|file| file.take(OUTCOME_MAX).read_to_string(&mut text));
        read.map_err(|error| format!("its {OUTCOME} cannot be read, so it is damaged or no task: {error}"))?;
        let outcome: Outcome =
            serde_json::from_str(&text).map_err(|error| format!("its {OUTCOME} is damaged: {error}"))?;
        if outcome.format != FORMAT {
            return Err(format!("it is of format {}, this tithe reads format {FORMAT}", outcome.format));
        }
        if outcome.plan != self.plan {
            return Err(format!(
                "it belongs to another plan ({}, by tithe {}): the matrix, an experiment or tithe has changed since",
                outcome.plan, outcome.tithe
            ));
        }
        if outcome.task != index {
            return Err(format!("it is a copy of task {}", outcome.task));
        }
        Ok(outcome)
    }

    /// Folders that belong to no task of a plan with this number of tasks.
    pub fn strays(&self, tasks: usize) -> Result<Vec<Stray>, Stop> {
        let failed = |error| Stop::new(exit::MACHINE, format!("cannot read {}: {error}", self.path.display()));
        let entries = fs::read_dir(self.path).map_err(failed)?.flatten().filter(|entry| entry.path().is_dir());
        let mut strays: Vec<Stray> =
            entries.filter_map(|entry| stray(&entry.file_name().to_string_lossy(), tasks)).collect();
        strays.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(strays)
    }
}

/// Why a folder called `name` belongs to no task; `None` if it does.
fn stray(name: &str, tasks: usize) -> Option<Stray> {
    let bare = name.strip_suffix(".part").unwrap_or(name);
    let index = bare.strip_prefix("task-").and_then(|digits| digits.parse::<usize>().ok());
    let reason = match index.filter(|index| Folder::name(*index) == bare) {
        Some(index) if index < tasks => return None,
        Some(index) => format!("the plan has no task {index}: its last one is {}", tasks - 1),
        None => "no task has a folder of this name".to_owned(),
    };
    Some(Stray { name: name.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_begun_again_has_not_failed() {
        let path = std::env::temp_dir().join(format!("tithe-test-again-{}", std::process::id()));
        let folder = Folder::new(&path, "plan");
        let _taken = folder.take(0).expect("nobody else has it");
        folder.fail(0, "the node went away");
        assert!(matches!(folder.state(0), State::Failed(reason) if reason == "the node went away"));
        folder.begin(0);
        fs::create_dir(folder.part(0)).expect("a folder");
        assert!(matches!(folder.state(0), State::Torn(reason) if reason.ends_with("still running")));
        fs::remove_dir_all(&path).expect("the folder goes");
    }

    #[test]
    fn folders_that_are_no_tasks_are_told_from_those_that_are() {
        for name in ["task-00000", "task-00011", "task-00003.part"] {
            assert_eq!(stray(name, 12), None, "{name}");
        }
        for name in ["task-12", "task-00012", "task-00012.part", "task-+0001", "2026-11-23T02-09-46-sqlite", "task-"] {
            assert!(stray(name, 12).is_some(), "{name}");
        }
    }
}
