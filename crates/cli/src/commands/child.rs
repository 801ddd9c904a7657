//! The commands that Tithe calls itself. One for every start of an embedded database: it measures frames as the run
//! that has started it asks for them over the standard input, and answers over the standard output. One for threads of
//! servers that somebody else has started: it gives them their processors back when the run has ended.

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdin, stdout},
};

use tithe_harness::run::{self, Run};
use tithe_machine::{launch::Command, watch::borrowed_threads};

use crate::{
    MachineArgs,
    exit::{self, Stop},
    interrupt, offer,
};

/// What the command is called.
pub const NAME: &str = "measure-apart";

/// What the keeper of borrowed threads is called.
pub const KEEPER: &str = "give-threads-back";

/// What the child has of this process's environment: where libraries are, and what its last words may be. No variable
/// that may hold a key is among them.
const INHERITED: [&str; 3] = ["HOME", "LD_LIBRARY_PATH", "RUST_BACKTRACE"];

/// Runs the command; returns the exit status.
pub fn child(machine: &MachineArgs) -> Result<i32, Stop> {
    if stdin().is_terminal() {
        return Err(Stop::new(exit::USAGE, run::child_process::uncalled()));
    }
    let cancelled = interrupt::listen();
    let search = offer::search(machine);
    run::child_process::serve(&offer::databases(), &search, &mut stdin().lock(), &mut stdout().lock(), cancelled)?;
    Ok(exit::OK)
}

/// `run`, which starts this very program for both.
pub fn may_start<'a>(run: Run<'a>, machine: &MachineArgs) -> Run<'a> {
    run.child_process(program(machine)).borrowing_threads(keeper())
}

/// How this very program is started to measure, whatever has become of its file.
fn program(machine: &MachineArgs) -> Command {
    let folders = machine.pg_bin.iter().flat_map(|folder| ["--pg-bin".to_owned(), folder.display().to_string()]);
    let inherited = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    Command {
        program: "/proc/self/exe".into(),
        arguments: std::iter::once(NAME.to_owned()).chain(folders).collect(),
        environment: INHERITED.into_iter().filter_map(inherited).collect(),
    }
}

/// Runs the keeper of borrowed threads; returns the exit status.
pub fn keep() -> Result<i32, Stop> {
    borrowed_threads::keep(&mut stdin().lock()).map_err(|error| Stop::new(exit::USAGE, error.to_string()))?;
    Ok(exit::OK)
}

/// How this very program is started to be the keeper.
fn keeper() -> Command {
    Command { program: "/proc/self/exe".into(), arguments: vec![KEEPER.to_owned()], environment: BTreeMap::new() }
}
