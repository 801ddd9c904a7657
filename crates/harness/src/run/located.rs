//! Attached servers on this machine: which processes they are, so that their work is counted like that of servers that
//! Tithe starts.
//!
//! All arms or none: an operation that is counted with its server costs more than one that is counted without.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tithe_machine::{
    clock::Clock,
    fault::Fault,
    launch::Server,
    proc::ServerTask,
    watch::{
        peer::{self, Known},
        process::TaskWatch,
    },
};
use tithe_model::experiment::Design;
use tithe_plugin::{data, database::Connect, session::Session};

use super::{EpochPlan, Run};
use crate::load::frame::StartedArm;

/// How long a server is looked at while nobody of Tithe's asks anything of it.
const IDLE_LOOK: Duration = Duration::from_millis(300);
/// Part of a processor that it may use then, for what servers do by themselves.
const IDLE_SHARE: f64 = 0.05;

/// What is known of the processes of attached servers.
#[derive(Debug, Default)]
pub(super) struct Located {
    /// Main processes by the arm's number; empty where some server is not seen.
    pub processes: BTreeMap<usize, i32>,
    /// What is to be told of each arm's server.
    pub words: BTreeMap<usize, String>,
    /// What the reader should know of their counting.
    pub warnings: Vec<String>,
}

/// Looks for the servers of `arms`, which are all attached, on this machine; `shared` says that several arms stand on
/// one.
///
/// # Errors
/// When a connection cannot be opened.
pub(super) fn locate(
    run: &Run<'_>,
    part: &EpochPlan<'_>,
    arms: &BTreeMap<usize, StartedArm>,
    shared: bool,
) -> Result<Located, Fault> {
    let mut found = BTreeMap::new();
    for (number, arm) in arms {
        let seen = match process_of(run, part, arm)? {
            // Each would be charged with what the other one asks for.
            Ok(_) if shared && part.cell.design == Design::Duet => {
                Err("two arms of a duet stand on it at once".to_owned())
            }
            Ok(process) => counted(run, part, arm, process)?,
            Err(why) => Err(why),
        };
        found.insert(*number, seen);
    }
    let name = |number: usize| &run.plan.experiment.arms[number].name;
    let mut located = Located::default();
    let Some(seen) = all_alike(&found) else {
        for (number, seen) in &found {
            let words = match seen {
                Ok((process, _)) => {
                    format!("process {process}, not counted: that of another arm is not seen, or only otherwise")
                }
                Err(why) => format!("not seen: {why}"),
            };
            located.words.insert(*number, words);
        }
        return Ok(located);
    };
    for (number, process, counting) in seen {
        located.words.insert(number, format!("process {process}, {}", counting.words()));
        if counting == Counting::Whole && !located.processes.values().any(|known| *known == process) {
            located.warnings.extend(busy(process).map(|share| used_by_others(name(number), share)));
        }
        located.processes.insert(number, process);
    }
    Ok(located)
}

/// Main process and counting of each arm's server by the arm's number, where all are seen and counted in the same way.
fn all_alike(found: &BTreeMap<usize, Result<(i32, Counting), String>>) -> Option<Vec<(usize, i32, Counting)>> {
    let seen: Vec<_> = found
        .iter()
        .map(|(number, seen)| seen.as_ref().ok().map(|(process, counting)| (*number, *process, *counting)))
        .collect::<Option<_>>()?;
    let alike = seen.windows(2).all(|pair| pair[0].2 == pair[1].2);
    alike.then_some(seen)
}

/// The main process of the server of `arm`, or why it is not seen.
fn process_of(run: &Run<'_>, part: &EpochPlan<'_>, arm: &StartedArm) -> Result<Result<i32, String>, Fault> {
    let mut session = open(run, part, arm, &arm.server)?;
    let connection = session.connection();
    let known = Known { programs: run.product.entry().server_programs, serving: connection.serving_process() };
    Ok(match connection.descriptor() {
        Some(descriptor) => peer::server_of(descriptor, known),
        None => Err("its connection is not Tithe's own".to_owned()),
    })
}

/// A session to `server`, that of `arm`, as its clients have it.
fn open(run: &Run<'_>, part: &EpochPlan<'_>, arm: &StartedArm, server: &Server) -> Result<Session, Fault> {
    let workload = run.workloads[part.cell.workload].as_ref();
    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: workload.table() };
    data::connect(run.product, server, &arm.setup, &how, workload)
}

/// What of a server is charged to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// The process of its connection.
    Process,
    /// The thread of its connection.
    Thread,
    /// Everything.
    Whole,
}

impl Counting {
    fn words(self) -> &'static str {
        match self {
            Self::Process => "counted by the process of each connection",
            Self::Thread => "counted by the thread of each connection",
            Self::Whole => "counted as a whole: what others ask of it meanwhile is counted, too",
        }
    }
}

/// The main process of the server of `arm`, which is `process`, and how its work is counted; or why it cannot be.
fn counted(
    run: &Run<'_>,
    part: &EpochPlan<'_>,
    arm: &StartedArm,
    process: i32,
) -> Result<Result<(i32, Counting), String>, Fault> {
    let server = Server { process: Some(process), ..arm.server.clone() };
    let mut session = open(run, part, arm, &server)?;
    Ok(match session.connection().server_task() {
        ServerTask::Process(_) if part.cell.reconnect_every.is_some() => {
            Err("its connections are opened anew while measuring, and the process of each ends with it".to_owned())
        }
        ServerTask::Process(_) => Ok((process, Counting::Process)),
        ServerTask::Thread { .. } => Ok((process, Counting::Thread)),
        ServerTask::Caller | ServerTask::Virtual(_) | ServerTask::Unknown => Ok((process, Counting::Whole)),
    })
}

/// The part of a processor that the server `process` uses while Tithe asks nothing of it, where that is much.
fn busy(process: i32) -> Option<f64> {
    let watch = TaskWatch::whole(process, 1)?;
    let (before, begun) = (watch.read().cpu_ns, Instant::now());
    std::thread::sleep(IDLE_LOOK);
    let used_ns = watch.read().cpu_ns.saturating_sub(before);
    Some(used_ns as f64 / begun.elapsed().as_nanos() as f64).filter(|share| *share > IDLE_SHARE)
}

fn used_by_others(arm: &str, share: f64) -> String {
    format!(
        "the server of arm {arm} used {} of a processor while nothing was asked of it by Tithe: others use it, or it \
         still does what loading left to it; that is in its processor time per operation as well",
        format_args!("{:.0}%", 100.0 * share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_counted_in_the_same_way_or_not_at_all() {
        let seen = |arms: &[Result<(i32, Counting), &str>]| {
            let numbered = arms.iter().enumerate().map(|(number, seen)| (number, seen.map_err(str::to_owned)));
            all_alike(&numbered.collect())
                .map(|seen| seen.into_iter().map(|(_, process, _)| process).collect::<Vec<_>>())
        };
        let (thread, whole) = (|process| Ok((process, Counting::Thread)), |process| Ok((process, Counting::Whole)));
        assert_eq!(seen(&[thread(7), thread(8)]), Some(vec![7, 8]));
        assert_eq!(seen(&[whole(7), whole(7)]), Some(vec![7, 7]));
        assert_eq!(seen(&[thread(7), Err("elsewhere")]), None);
        assert_eq!(seen(&[thread(7), whole(7)]), None);
    }
}
