//! `tithe matrix run`: one task by its number, or all tasks on this host.
//!
//! The folder of a task gets its name when it is complete, so starting a task again is always harmless: a complete task
//! is left alone, and an interrupted one is thrown away and measured again.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tithe_analysis::matrix::{Outcome, State};
use tithe_harness::{
    folder::RunFolder,
    run::{Ending, Run},
};
use tithe_machine::{
    sandbox::held::{hold_file, remove_abandoned},
    watch::host,
};
use tithe_model::matrix::Task;

use super::{
    RunArgs,
    folder::{Folder, OUTCOME},
    plan::Planned,
};
use crate::{
    commands::{child, run},
    exit::{self, Stop},
    interrupt, offer,
    prepare::{self, Prepared},
    progress::Progress,
    records,
};

/// How often a wait checks for ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Ending of the lock file of a place on a local disk.
const LOCK: &str = "lock";

/// Runs the command; returns the exit status.
pub fn run(arguments: &RunArgs) -> Result<i32, Stop> {
    let planned = Planned::read(&arguments.of.matrix.file)?;
    planned.check(arguments.of.allow_commands)?;
    let Some(index) = arguments.task else { return all(&planned, arguments) };
    let task = planned.matrix.task(index).ok_or_else(|| {
        let told = format!("there is no task {index}: the matrix has tasks 0 to {}", planned.matrix.len() - 1);
        Stop::new(exit::USAGE, format!("{told}; nothing was started"))
    })?;
    one(&planned, task, arguments)
}

/// All tasks for machines of one kind, replicate by replicate, so that what changes from hour to hour differs between
/// replicates. A task that fails does not prevent the others.
fn all(planned: &Planned, arguments: &RunArgs) -> Result<i32, Stop> {
    let matrix = &planned.matrix;
    let machine = kind(planned, arguments.machine.as_deref())?;
    let folder = Folder::new(&arguments.into, &planned.identity);
    let cancelled = interrupt::listen();
    let mut status = exit::OK;
    // When the last replicate began, possibly in an earlier call.
    let mut before: Option<u64> = None;
    for replicate in 0..matrix.replicates {
        let tasks = matrix.tasks().filter(|task| task.machine == machine && task.replicate == replicate);
        let tasks: Vec<Task> = tasks.collect();
        let begun = || tasks.iter().filter_map(|task| started(&folder, *task)).min();
        if begun().is_none() {
            let due_unix_s = before.map_or(0.0, |before| before as f64 + matrix.every_s);
            wait(due_unix_s, cancelled);
        }
        let now = now_unix_s() as u64;
        for task in tasks.iter().copied().filter(|task| started(&folder, *task).is_none()) {
            if cancelled.load(Ordering::SeqCst) {
                return Ok(exit::INTERRUPTED);
            }
            status = match one(planned, task, arguments) {
                Ok(ended) => exit::worse(status, ended),
                Err(stop) if stop.status == exit::INTERRUPTED => return Err(stop),
                Err(stop) => {
                    crate::shown::tell!("{}", stop.message);
                    exit::FAILED
                }
            };
        }
        // The time from its tasks, which begin slightly later than now; if all of them failed, there is none.
        before = Some(begun().unwrap_or(now));
    }
    Ok(status)
}

/// When `task` was begun, s since 1970; `None` if it is not done.
fn started(folder: &Folder, task: Task) -> Option<u64> {
    match folder.state(task.index) {
        State::Whole(outcome) => Some(outcome.started_unix_s),
        _ => None,
    }
}

/// The kind of machine that this host is.
fn kind(planned: &Planned, named: Option<&str>) -> Result<usize, Stop> {
    let names: Vec<&str> = planned.matrix.machines.iter().map(|machine| machine.name.as_str()).collect();
    match named {
        None if names.len() == 1 => Ok(0),
        None => Err(Stop::new(
            exit::USAGE,
            format!("which kind of machine is this host? add --machine NAME, one of: {}", names.join(", ")),
        )),
        Some(name) => names.iter().position(|known| *known == name).ok_or_else(|| {
            Stop::new(exit::USAGE, format!("the matrix has no machine {name:?}; it has: {}", names.join(", ")))
        }),
    }
}

/// Sleeps until the time of day is `due_unix_s`, or until ctrl-C.
fn wait(due_unix_s: f64, cancelled: &AtomicBool) {
    while !cancelled.load(Ordering::SeqCst) {
        let left_s = due_unix_s - now_unix_s();
        if left_s <= 0.0 {
            break;
        }
        std::thread::sleep(POLL_INTERVAL.min(Duration::from_secs_f64(left_s)));
    }
}

/// The time of day, s since 1970.
fn now_unix_s() -> f64 {
    time::OffsetDateTime::now_utc().unix_timestamp_nanos() as f64 / 1e9
}

/// Carries `task` out, unless it is done. The status is for the engine: 0 if everything was measured, whatever its
/// evidence is, because the report covers that.
fn one(planned: &Planned, task: Task, arguments: &RunArgs) -> Result<i32, Stop> {
    let index = task.index;
    let folder = Folder::new(&arguments.into, &planned.identity);
    let _taken = folder.take(index)?;
    match folder.state(index) {
        State::Whole(outcome) => {
            folder.tidy(index);
            crate::shown::showln!("task {index} was done before: {}", folder.whole(index).display());
            return Ok(status(&outcome));
        }
        State::Torn(reason) if folder.whole(index).exists() => {
            let path = folder.whole(index);
            let advice = "move it away, or take another folder; nothing was started";
            return Err(Stop::new(exit::USAGE, format!("{}: {reason}; {advice}", path.display())));
        }
        _ => {}
    }
    folder.begin(index);
    match measured(planned, task, arguments, &folder) {
        Ok(outcome) => {
            folder.tidy(index);
            crate::shown::showln!("task {index} is done: {}", folder.whole(index).display());
            Ok(status(&outcome))
        }
        Err(stop) => {
            let plain = anstream::adapter::strip_str(&stop.message).to_string();
            folder.fail(index, &format!("exit status {}: {}", stop.status, plain.trim_start_matches("tithe: ")));
            Err(stop)
        }
    }
}

/// The status of a complete task.
fn status(outcome: &Outcome) -> i32 {
    if outcome.cells.iter().any(|cell| cell.failed.is_some()) { exit::FAILED } else { exit::OK }
}

/// Measures `task` and moves its folder to its place.
fn measured(planned: &Planned, task: Task, arguments: &RunArgs, folder: &Folder<'_>) -> Result<Outcome, Stop> {
    let experiment = &planned.experiments[task.experiment];
    let prepared =
        prepare::checked(&experiment.source, experiment.experiment.clone(), &offer::catalogue(), &arguments.host)?;
    let part = folder.part(task.index);
    let on_disk = format!("tithe-{}-{}", planned.identity, Folder::name(task.index));
    let at = arguments.local.as_ref().map_or(part.clone(), |local| local.join(on_disk));
    let held = if at == part { None } else { Some(hold(&at)?) };
    clear(&part)?;
    clear(&at)?;
    // While it is measured elsewhere, this folder shows that it was begun.
    if at != part {
        fs::create_dir_all(&part).map_err(|error| refused(&part, &error))?;
    }
    run::enough_disk(&prepared.plan, at.parent().unwrap_or(&at))?;
    let started_unix_s = now_unix_s() as u64;
    carry_out(prepared, &at, arguments)?;
    let mut assessed = records::assess(&at)?;
    assessed.analysis.run = Folder::name(task.index);
    run::write_reports(&at, &assessed.analysis, &assessed.page_data)?;
    let outcome = Outcome::of(&assessed.analysis, &planned.identity, task.index, started_unix_s);
    write(&at.join(OUTCOME), &outcome)?;
    if at != part {
        copy(&at, &part).map_err(|error| refused(&part, &error))?;
        clear(&at)?;
        let _ = fs::remove_file(at.with_extension(LOCK));
        drop(held);
    }
    let whole = folder.whole(task.index);
    fs::rename(&part, &whole).map_err(|error| refused(&whole, &error))?;
    Ok(outcome)
}

/// Runs what is `prepared`, with its run folder at `path`.
fn carry_out(prepared: Prepared, path: &Path, arguments: &RunArgs) -> Result<(), Stop> {
    let Prepared { text, plan, database, installs, workloads } = prepared;
    let machine = host::machine(path.parent().unwrap_or(path));
    let mut folder = RunFolder::create(path, &text, &plan, &machine)?;
    let cancelled = interrupt::listen();
    let mut progress = Progress::new(&plan, arguments.quiet, None);
    let run = Run::new(database, installs, &plan, &workloads, cancelled)?;
    let run = child::may_start(run, &arguments.host);
    match run.carry_out(&mut folder, None, &mut progress)? {
        Ending::Interrupted => Err(Stop::new(exit::INTERRUPTED, "stopped; the task will be measured again")),
        Ending::Complete | Ending::Failed => Ok(()),
    }
}

/// Locks the place `at` on a local disk for this process, until the returned file is dropped: the same plan has the
/// same places on every disk, whatever folder its tasks go into.
fn hold(at: &Path) -> Result<File, Stop> {
    let path = at.with_extension(LOCK);
    let held = at.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| hold_file(&path));
    held.map_err(|error| refused(&path, &error))?.ok_or_else(|| {
        let words = format!("another tithe measures this task at {}: give `--local` a folder of its own", at.display());
        Stop::new(exit::MACHINE, words)
    })
}

/// Removes the files at `path` of an interrupted task, and everything that its servers left behind.
fn clear(path: &Path) -> Result<(), Stop> {
    if !path.exists() {
        return Ok(());
    }
    remove_abandoned(path);
    fs::remove_dir_all(path).map_err(|error| refused(path, &error))
}

fn write(path: &Path, outcome: &Outcome) -> Result<(), Stop> {
    let text = serde_json::to_string(outcome).map_err(|error| refused(path, &io::Error::other(error)))?;
    fs::write(path, format!("{text}\n")).map_err(|error| refused(path, &error))
}

/// Copies the files and folders below `from`.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn refused(path: &Path, error: &io::Error) -> Stop {
    Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display()))
}
