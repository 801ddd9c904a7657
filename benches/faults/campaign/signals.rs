//! Signals, and a processor taken away.

use std::{process::Command, time::Duration};

use rustix::process::Signal;

use super::{
    case::Run,
    draw::Draw,
    fault::{Fault, How, Leaves},
    product::Kind,
};

const BARE: Fault = Fault::BARE;

pub const FAULTS: &[Fault] = &[
    Fault { name: "SIGKILL", how: How::At(|run, _, _| run.signal(Signal::KILL)), statuses: &[-9], ..BARE },
    Fault { name: "SIGTERM", how: How::At(|run, _, _| run.signal(Signal::TERM)), statuses: &[130, -15], ..BARE },
    Fault { name: "SIGINT", how: How::At(|run, _, _| run.signal(Signal::INT)), statuses: &[130, -2], ..BARE },
    Fault {
        name: "SIGINT twice",
        how: How::At(|run, _, draw| {
            let sent = run.signal(Signal::INT);
            std::thread::sleep(Duration::from_millis(draw.below(50)));
            run.signal(Signal::INT);
            sent
        }),
        statuses: &[130, -2],
        ..BARE
    },
    Fault { name: "SIGHUP", how: How::At(|run, _, _| run.signal(Signal::HUP)), statuses: &[130, -1], ..BARE },
    Fault { name: "SIGQUIT", how: How::At(|run, _, _| run.signal(Signal::QUIT)), statuses: &[-3], ..BARE },
    Fault { name: "SIGABRT", how: How::At(|run, _, _| run.signal(Signal::ABORT)), statuses: &[-6], ..BARE },
    Fault {
        name: "stopped and continued",
        how: How::At(|run, _, draw| {
            let stopped = run.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(100 + draw.below(1500)));
            run.signal(Signal::CONT);
            stopped
        }),
        // On real time frames may be spoiled by it.
        statuses: &[4, 7],
        ..BARE
    },
    Fault {
        name: "stopped and killed",
        how: How::At(|run, _, draw| {
            let stopped = run.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(draw.below(300)));
            run.signal(Signal::KILL);
            stopped
        }),
        statuses: &[-9],
        ..BARE
    },
    Fault {
        name: "one processor left",
        how: How::At(|run, _, draw| taskset(run, draw)),
        leaves: Leaves::All,
        statuses: &[4, 7],
        ..BARE
    },
    Fault {
        name: "server SIGKILL",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::KILL)),
        statuses: HARMED,
        words: ENDED,
        spoils: true,
        ..BARE
    },
    Fault {
        name: "server SIGTERM",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::TERM)),
        statuses: HARMED,
        words: ENDED,
        ..BARE
    },
    Fault {
        name: "server SIGQUIT",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::QUIT)),
        statuses: HARMED,
        words: ENDED,
        ..BARE
    },
    Fault {
        name: "server SIGINT",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::INT)),
        statuses: HARMED,
        words: ENDED,
        ..BARE
    },
    Fault {
        name: "server SIGHUP",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::HUP)),
        statuses: HARMED,
        words: ENDED,
        ..BARE
    },
    Fault {
        name: "server stopped and continued",
        on: is_apart,
        how: How::At(|run, _, draw| {
            let below = run.note_processes();
            let Some(process) = draw.pick_of(&below) else { return false };
            let _ = tithe_machine::proc::signal(process, Signal::STOP);
            std::thread::sleep(Duration::from_millis(100 + draw.below(2000)));
            let _ = tithe_machine::proc::signal(process, Signal::CONT);
            true
        }),
        statuses: HARMED,
        ..BARE
    },
    Fault {
        name: "server stopped for ever",
        on: is_apart,
        how: How::At(|run, _, draw| strike_below(run, draw, Signal::STOP)),
        statuses: HARMED,
        patience: Duration::from_secs(240),
        ..BARE
    },
];

/// A cell failed; or its evidence could not be taken; or it was disproven, as where an audit log lost its end.
const HARMED: &[i32] = &[4, 5, 7];

/// What is said of a server, or one of its processes, that has ended.
const ENDED: &[&str] = &[
    "ended",
    "connection",
    "Connection",
    "closed",
    "terminat",
    "shut",
    "server",
    "no operation succeeded",
    "evidence",
];

fn is_apart(kind: Kind) -> bool {
    matches!(kind, Kind::Embedded | Kind::Launched | Kind::OnVolume)
}

/// Sends `signal` to a drawn process below the program; false where there is none.
fn strike_below(run: &mut Run, draw: &mut Draw, signal: Signal) -> bool {
    let below = run.note_processes();
    let struck = draw.pick_of(&below).is_some_and(|process| tithe_machine::proc::signal(process, signal).is_ok());
    run.has_been_struck();
    struck
}

/// Has all threads of the program share one drawn processor.
fn taskset(run: &mut Run, draw: &mut Draw) -> bool {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let processor = draw.below(processors).to_string();
    let mut command = Command::new("taskset");
    command.args(["--all-tasks", "--pid", "--cpu-list", &processor, &run.id().to_string()]);
    command.output().is_ok_and(|output| output.status.success())
}
