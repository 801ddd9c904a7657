//! Folders, outputs and programs that change under a run; two programs at once.

use std::{
    fs::{self, File, OpenOptions},
    process::Stdio,
};

use super::{
    case::Case,
    fault::{Fault, How, Leaves},
};

const BARE: Fault = Fault::BARE;

/// The program's own: what it would write next is not there.
const GONE: Fault = Fault {
    statuses: &[1, 4],
    words: &[
        "No such file",
        "Not a directory",
        "cannot write",
        "cannot read",
        "is this a run folder",
        "removed or changed",
        "is missing",
    ],
    leaves: Leaves::Damaged,
    ..BARE
};

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "run folder deleted",
        how: How::At(|_, case, _| with_run(case, |run| fs::remove_dir_all(run))),
        ..GONE
    },
    Fault {
        name: "run folder moved",
        how: How::At(|_, case, _| with_run(case, |run| fs::rename(run, case.folder.join("moved-away")))),
        ..GONE
    },
    Fault {
        name: "run folder is a file",
        how: How::At(|_, case, _| {
            with_run(case, |run| fs::rename(run, case.folder.join("moved-away")).and_then(|()| fs::write(run, "")))
        }),
        ..GONE
    },
    Fault {
        name: "a file of it deleted",
        how: How::At(|_, case, draw| {
            let name = *draw.pick(FILES);
            with_run(case, |run| fs::remove_file(run.join(name)))
        }),
        ..GONE
    },
    Fault {
        name: "a file of it emptied",
        how: How::At(|_, case, draw| {
            let name = *draw.pick(FILES);
            with_run(case, |run| File::create(run.join(name)).map(drop))
        }),
        statuses: &[1, 2, 4],
        words: &[],
        ..GONE
    },
    Fault {
        name: "a file of it is a folder",
        how: How::At(|_, case, draw| {
            let name = *draw.pick(FILES);
            with_run(case, |run| fs::remove_file(run.join(name)).and_then(|()| fs::create_dir(run.join(name))))
        }),
        words: &["Is a directory", "cannot write", "cannot read", "has removed or changed"],
        ..GONE
    },
    Fault {
        name: "a second resumes it",
        how: How::At(|_, case, _| second(case, &["run", "--resume"], &[1], "another tithe is writing")),
        leaves: Leaves::Unharmed,
        ..BARE
    },
    Fault {
        name: "a second reports it",
        how: How::At(|_, case, _| second(case, &["report"], &[0, 1, 2, 4, 5, 7], "")),
        leaves: Leaves::Unharmed,
        ..BARE
    },
    Fault {
        name: "a second runs beside it",
        how: How::At(|_, case, _| beside(case)),
        // On real time each may spoil frames of the other.
        statuses: &[4, 7],
        ..BARE
    },
    Fault {
        name: "binary replaced",
        how: How::From(|begin| {
            let own = begin.case.folder.join("tithe");
            fs::copy(begin.command.get_program(), &own).expect("a copy of the program");
            let mut command = std::process::Command::new(&own);
            command.args(begin.command.get_args()).current_dir(&begin.case.folder);
            for (name, value) in begin.command.get_envs() {
                value.map(|value| command.env(name, value));
            }
            *begin.command = command;
            let ms = begin.draw.below(begin.reference.length.as_millis() as u64);
            let replacer = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20 + ms));
                let _ = fs::remove_file(&own);
                let _ = fs::write(&own, "#!/bin/sh\nexit 0\n");
            });
            begin.case.when_over(move || drop(replacer.join()));
        }),
        statuses: &[1, 4, 5, 7],
        words: &["program", "tithe", "No such file"],
        ..BARE
    },
    Fault {
        name: "output is a closed pipe",
        how: How::From(|begin| {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            begin.outputs.out = Some(Stdio::from(writer));
        }),
        statuses: &[1, -13],
        words: &[],
        ..BARE
    },
    Fault {
        name: "errors go to a closed pipe",
        how: How::From(|begin| {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            begin.outputs.err = Some(Stdio::from(writer));
        }),
        statuses: &[1, -13],
        words: &[],
        ..BARE
    },
    Fault {
        name: "output is a full disk",
        how: How::From(|begin| begin.outputs.out = full()),
        statuses: &[1],
        words: &["No space left"],
        ..BARE
    },
    Fault {
        name: "errors go to a full disk",
        how: How::From(|begin| begin.outputs.err = full()),
        statuses: &[1],
        ..BARE
    },
];

/// Files of a run folder that are there from the beginning, or from the first cell on.
const FILES: &[&str] = &[
    "plan.json",
    "machine.json",
    "cells/0.json",
    "experiment.toml",
    "slots.csv",
    "frames.jsonl",
    "evidence.jsonl",
    "events.jsonl",
    "lock",
];

fn full() -> Option<Stdio> {
    Some(Stdio::from(OpenOptions::new().write(true).open("/dev/full").expect("a disk that is full")))
}

/// Does `work` with the run folder; false where there is none yet, or it is not whole.
fn with_run(case: &Case, work: impl FnOnce(&std::path::Path) -> std::io::Result<()>) -> bool {
    let runs = case.runs();
    let whole = runs.first().filter(|run| run.join("events.jsonl").exists());
    // A folder in which the run makes files meanwhile is removed in part.
    whole.map(|run| drop(work(run))).is_some()
}

/// Runs the program a second time on the run folder, which is to end with one of `statuses`, or to say `words`.
fn second(case: &Case, words: &[&str], statuses: &[i32], said: &str) -> bool {
    let runs = case.runs();
    let Some(run) = runs.first().filter(|run| run.join("events.jsonl").exists()) else { return false };
    let run = run.display().to_string();
    let output = case.command(&[words, &[run.as_str()]].concat()).output().expect("tithe starts");
    let told = String::from_utf8_lossy(&output.stderr);
    let status = output.status.code().unwrap_or(-1);
    // The first may have ended meanwhile; then there is nothing to keep the second away.
    let is_right = (statuses.contains(&status) && told.contains(said)) || status == 0;
    if !is_right || told.contains("panicked") {
        case.complain(format!("a second {words:?} ended with {status}: {told}"));
    }
    true
}

/// Starts another run in the same folder of runs, and waits for its end.
fn beside(case: &Case) -> bool {
    let output = case.command(&["verify", "e.toml"]).output().expect("tithe starts");
    let told = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0 | 4 | 7)) || told.contains("panicked") {
        case.complain(format!("a second `verify` ended with {:?}: {told}", output.status));
    }
    true
}
