//! Exit statuses: the cause of a failure, and what a script may conclude.

use std::path::Path;

use tithe_analysis::Proof;

/// Everything was measured and every arm is proven.
pub const OK: i32 = 0;
/// A failure of this machine: a file, a process. Also: records are damaged, and the report leaves out frames for that.
pub const MACHINE: i32 = 1;
/// The command line or the experiment is wrong (also clap's own status).
pub const USAGE: i32 = 2;
/// Something that the experiment needs is not installed here.
pub const MISSING: i32 = 3;
/// Some cell could not be measured; of `witness`, the command failed, or a server could not be seen.
pub const FAILED: i32 = 4;
/// Everything was measured, and the evidence showed that some protection does not do what it claims; of `inspect`, a
/// required feature is not enforced; of `calibrate`, the instrument was not shown to be in order. Takes precedence over
/// [`CANNOT_TELL`].
pub const DISPROVEN: i32 = 5;
/// A cost exceeds the threshold of `compare`, and everything that was compared is proven.
pub const BEYOND: i32 = 6;
/// Everything was measured, but for some protection it is unknown whether it was on: it is unproven. Of `inspect`: for
/// a required feature it could not be decided whether it is enforced, or only for one account.
pub const CANNOT_TELL: i32 = 7;
/// Stopped by ctrl-C; the measurements until then are kept.
pub const INTERRUPTED: i32 = 130;

/// The status for measured arms with these `proofs`.
pub fn of_proofs<'a>(proofs: impl Iterator<Item = &'a Proof>) -> i32 {
    let status = |proof: &Proof| match proof {
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => OK,
        Proof::Unproven(_) | Proof::ToldByProvider(_) => CANNOT_TELL,
        Proof::Disproven(_) => DISPROVEN,
    };
    proofs.map(status).fold(OK, worse)
}

/// The more important one of `one` and `other`. Not measured takes precedence over disproven, and disproven over
/// unknown. A cost above the threshold comes last, because it means something only if all else is in order.
pub fn worse(one: i32, other: i32) -> i32 {
    let ranks = [FAILED, DISPROVEN, CANNOT_TELL, BEYOND];
    ranks.into_iter().find(|status| [one, other].contains(status)).unwrap_or(OK)
}

/// Most damaged frames that are named one by one on standard error; the report names them all.
const DAMAGE_SHOWN: usize = 10;

/// Reports on standard error which records in the run folder at `path` are damaged; the exit status for that, `None` if
/// none are.
pub fn of_damage(path: &Path, damage: &[String]) -> Option<i32> {
    let count = damage.len();
    for line in damage.iter().take(DAMAGE_SHOWN) {
        crate::shown::telln!("tithe: {}: {line}", path.display());
    }
    (count > 0).then(|| {
        let frames = if count == 1 { "frame is" } else { "frames are" };
        crate::shown::telln!("tithe: {count} {frames} left out of the figures, because their records were damaged");
        MACHINE
    })
}

/// The text for `--help`.
pub const HELP: &str = "\
Exit status:
    0  everything was measured and proven
    1  a file or process on this machine failed, or records are damaged
    2  the command line or the experiment is wrong
    3  something that is needed is not installed
    4  a cell could not be measured (witness: the command failed, or a server could not be reached)
    5  a protection is disproven: a claim does not hold (inspect: a required feature is not enforced)
    6  a cost is beyond the threshold of compare, and none of 1, 4, 5 and 7 applies
    7  a protection is unproven: a claim could not be checked (inspect: unknown, or for this account only)
  130  interrupted";

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

    /// The message in one line, without the program's name.
    pub fn reason(&self) -> &str {
        self.message.trim_end().trim_start_matches("tithe: ")
    }
}

impl From<tithe_machine::fault::Fault> for Stop {
    fn from(fault: tithe_machine::fault::Fault) -> Self {
        Self::new(MACHINE, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_says_nothing_where_something_is_not_proven_or_not_measured() {
        let rising = [OK, BEYOND, CANNOT_TELL, DISPROVEN, FAILED];
        for (rank, one) in rising.into_iter().enumerate() {
            for (other_rank, other) in rising.into_iter().enumerate() {
                assert_eq!(worse(one, other), rising[rank.max(other_rank)], "{one} and {other}");
            }
        }
    }
}
