//! The commands with which Tithe starts itself. One runs for every start of an embedded database: it measures frames
//! for the run that has started it, with requests on standard input and answers on standard output. The other is for
//! threads of attached servers: it restores their processor affinity when the run has ended.

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

/// Name of the command.
pub const NAME: &str = "measure-apart";

/// Name of the command that keeps borrowed threads.
pub const KEEPER: &str = "give-threads-back";

/// Environment variables that the child inherits: for the places of libraries, and for its backtrace. None of them may
/// contain a key.
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

/// `run`, which starts this program again for both commands.
pub fn may_start<'a>(run: Run<'a>, machine: &MachineArgs) -> Run<'a> {
    run.child_process(program(machine)).borrowing_threads(keeper())
}

/// The command that starts this program again to measure, even if its file was replaced meanwhile.
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

/// The command that starts this program again as the keeper.
fn keeper() -> Command {
    Command { program: "/proc/self/exe".into(), arguments: vec![KEEPER.to_owned()], environment: BTreeMap::new() }
}
