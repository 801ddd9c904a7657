//! Exit statuses: whose fault it is, and what a script may conclude.

/// Everything was measured and every arm is proven.
pub const OK: i32 = 0;
/// This machine did not do it: a file, a process.
pub const MACHINE: i32 = 1;
/// The command line or the experiment is wrong (also clap's own status).
pub const USAGE: i32 = 2;
/// Something that the experiment needs is not installed here.
pub const MISSING: i32 = 3;
/// Some cell could not be measured.
pub const FAILED: i32 = 4;
/// Everything was measured, but some protection was not proven to be on.
pub const UNPROVEN: i32 = 5;
/// A cost lies beyond the threshold that `compare` was given.
pub const BEYOND: i32 = 6;
/// Whether something that was required is on could not be told, or for one account only.
pub const CANNOT_TELL: i32 = 7;
/// Stopped by ctrl-C; what was measured is kept.
pub const INTERRUPTED: i32 = 130;

/// For `--help`.
pub const HELP: &str = "\
Exit status: 0 measured and proven; 1 this machine failed (file, process); 2 wrong command line or experiment;
3 something needed is not installed; 4 a cell could not be measured; 5 a protection was not proven;
6 a cost lies beyond the threshold of compare; 7 inspect cannot tell of the whole server what was required;
130 interrupted.";

/// Why a command ends early: what to print, and its status.
#[derive(Debug)]
pub struct Stop {
    /// Rendered text, with its last line break.
    pub message: String,
    /// Exit status.
    pub status: i32,
}

impl Stop {
    /// A stop with a one-line message.
    pub fn new(status: i32, message: impl std::fmt::Display) -> Self {
        Self { message: format!("tithe: {message}\n"), status }
    }
}

impl From<tithe_harness::fault::Fault> for Stop {
    fn from(fault: tithe_harness::fault::Fault) -> Self {
        Self::new(MACHINE, fault)
    }
}
