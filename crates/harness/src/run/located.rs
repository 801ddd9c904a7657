//! Attached servers on this machine, or on one with an observer: finds their processes, so that their work is counted
//! like that of servers that Tithe starts.
//!
//! All arms or none: an operation that is counted with its server costs more than one that is counted without.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    launch::Server,
    paths::Paths,
    proc::ServerTask,
    remote::{Known, RemoteServer, ServerMachine},
    watch::{peer, process::TaskWatch},
};
use tithe_model::{
    experiment::{Design, Observed},
    fact::Fact,
    quantity,
    record::Machine,
};
use tithe_plugin::{data, database::Connect, session::Session};

use super::{EpochPlan, Run};
use crate::{agents::query::FileFingerprint, load::frame::StartedArm};

/// How long a server is checked while Tithe sends it no requests.
const IDLE_POLL: Duration = Duration::from_millis(300);
/// Share of a processor that it may use then, for a server's own background work.
const IDLE_SHARE: f64 = 0.05;

/// What is known of the processes of attached servers.
#[derive(Debug, Default)]
pub(super) struct Located {
    /// Servers by the arm's number; empty if some server is not seen.
    pub servers: BTreeMap<usize, ServerLocation>,
    /// The text to report about each arm's server.
    pub words: BTreeMap<usize, String>,
    /// Warnings for the reader about how they are counted.
    pub warnings: Vec<String>,
}

/// The server of an arm, if it is seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ServerLocation {
    /// By its main process on this machine.
    Here(i32),
    /// By an observer.
    Remote(RemoteServer),
}

impl ServerLocation {
    /// Stores this location in the set-up of `server`.
    pub fn put_into(self, server: &mut Server) {
        match self {
            Self::Here(process) => server.process = Some(process),
            Self::Remote(remote) => server.remote = Some(remote),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Here(process) => format!("process {process}"),
            Self::Remote(RemoteServer { by, process, .. }) => {
                format!("process {process} on the machine of observer {}", by.name())
            }
        }
    }

    /// Processor time of the server so far, ns; `None` if it is not reported.
    fn cpu_ns(&self) -> Option<u64> {
        match self {
            Self::Here(process) => Some(TaskWatch::whole(*process, 1)?.read().cpu_ns),
            Self::Remote(RemoteServer { by, process, .. }) => {
                by.usage(*process, &Paths::default()).ok().map(|usage| usage.tree.cpu_ns)
            }
        }
    }
}

/// Searches for the servers of `arms`, which are all attached; `shared` means that several arms use one server.
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
        let seen = match seen(run, part, *number, arm)? {
            // Each would be charged with the requests of the other one.
            Ok(_) if shared && part.cell.design == Design::Duet => Err("two arms of a duet use it at once".to_owned()),
            Ok(server) => counted(run, part, arm, server)?,
            Err(why) => Err(why),
        };
        found.insert(*number, seen);
    }
    let name = |number: usize| &run.plan.experiment.arms[number].name;
    let mut located = Located::default();
    let Some(seen) = all_alike(&found) else {
        for (number, seen) in &found {
            let words = match seen {
                Ok((server, _)) => {
                    format!("{}, not counted: that of another arm is not seen, or only otherwise", server.words())
                }
                Err(why) => format!("not seen: {why}"),
            };
            located.words.insert(*number, words);
        }
        return Ok(located);
    };
    for (number, server, counting) in seen {
        located.words.insert(number, format!("{}, {}", server.words(), counting.words()));
        if counting == Counting::Whole && !located.servers.values().any(|known| *known == server) {
            located.warnings.extend(busy(&server).map(|share| used_by_others(name(number), share)));
        }
        located.servers.insert(number, server);
    }
    Ok(located)
}

/// Each arm's server and how it is counted, by the arm's number, if all are seen and counted in the same way.
fn all_alike(
    found: &BTreeMap<usize, Result<(ServerLocation, Counting), String>>,
) -> Option<Vec<(usize, ServerLocation, Counting)>> {
    let seen: Vec<_> = found
        .iter()
        .map(|(number, seen)| seen.as_ref().ok().map(|(server, counting)| (*number, server.clone(), *counting)))
        .collect::<Option<_>>()?;
    let alike = seen.windows(2).all(|pair| pair[0].2 == pair[1].2);
    alike.then_some(seen)
}

/// The server of `arm`, the one with this number, or why it is not seen.
fn seen(
    run: &Run<'_>,
    part: &EpochPlan<'_>,
    number: usize,
    arm: &StartedArm,
) -> Result<Result<ServerLocation, String>, Fault> {
    let mut session = open(run, part, arm, &arm.server)?;
    let connection = session.connection();
    let known = Known { programs: run.product.entry().server_programs, serving: connection.serving_process() };
    let Some(descriptor) = connection.descriptor() else {
        return Ok(Err("its connection is not Tithe's own".to_owned()));
    };
    let Some((observer, observed)) = run.observer_of(number) else {
        return Ok(peer::server_of(descriptor, known).map(ServerLocation::Here));
    };
    let ends = match peer::ends(descriptor) {
        Ok(ends) => ends,
        Err(why) => return Ok(Err(why)),
    };
    let Observed { data, journal, logs, .. } = observed.clone();
    let paths = Paths { data, journal, logs };
    let by: Arc<dyn ServerMachine> = observer.clone();
    let remote = |process| ServerLocation::Remote(RemoteServer { by, process, paths });
    Ok(observer.server_at(ends, known)?.map(remote))
}

/// What the observer of arm `number` reports about its machine and about its settings files; nothing if there is no
/// observer.
///
/// # Errors
/// When it does not answer.
pub(super) fn machine(run: &Run<'_>, number: usize) -> Result<Vec<(Fact, String)>, Fault> {
    let Some((observer, observed)) = run.observer_of(number) else { return Ok(Vec::new()) };
    let Machine { processor, processors, memory_bytes, kernel, system, .. } = observer.machine();
    let machine = format!(
        "{}: {system}, kernel {kernel}, {processors} processors ({processor}), {}",
        observer.name(),
        quantity::size(*memory_bytes)
    );
    let mut facts = vec![(Fact::ServerMachine, machine)];
    if !observed.settings.is_empty() {
        let marks = observer.fingerprints(&observed.settings)?;
        let file = |(path, mark): (&PathBuf, Result<FileFingerprint, String>)| match mark {
            Ok(FileFingerprint { bytes, sha256 }) => format!("{}: {bytes} bytes, SHA-256 {sha256}", path.display()),
            Err(why) => format!("not seen: {why}"),
        };
        let files: Vec<String> = observed.settings.iter().zip(marks).map(file).collect();
        facts.push((Fact::SettingsFiles, files.join("; ")));
    }
    Ok(facts)
}

/// A session to `server`, that of `arm`, as its clients open it.
fn open(run: &Run<'_>, part: &EpochPlan<'_>, arm: &StartedArm, server: &Server) -> Result<Session, Fault> {
    let workload = run.workloads[part.cell.workload].as_ref();
    let how = Connect::blocking(workload.table());
    data::connect(run.product, server, &arm.setup, &how, workload)
}

/// The part of a server that is charged to an operation.
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
            Self::Whole => "counted as a whole, with the requests of other clients",
        }
    }
}

/// The server of `arm`, which is `seen`, and how its work is counted; or why that is impossible.
fn counted(
    run: &Run<'_>,
    part: &EpochPlan<'_>,
    arm: &StartedArm,
    seen: ServerLocation,
) -> Result<Result<(ServerLocation, Counting), String>, Fault> {
    let mut server = arm.server.clone();
    seen.clone().put_into(&mut server);
    let mut session = open(run, part, arm, &server)?;
    let task = match &seen {
        ServerLocation::Here(_) => session.connection().server_task(),
        // Only the server's own report is known about it.
        ServerLocation::Remote(_) => {
            session.connection().serving_process().map_or(ServerTask::Unknown, ServerTask::Process)
        }
    };
    Ok(match task {
        ServerTask::Process(_) if part.cell.reconnect_every.is_some() => {
            Err("clients reconnect while measuring, and the process of a connection ends with it".to_owned())
        }
        ServerTask::Process(_) => Ok((seen, Counting::Process)),
        ServerTask::Thread { .. } => Ok((seen, Counting::Thread)),
        ServerTask::Caller | ServerTask::Virtual(_) | ServerTask::Unknown => Ok((seen, Counting::Whole)),
    })
}

/// The share of a processor that `server` uses while Tithe sends it no requests, if that is high.
fn busy(server: &ServerLocation) -> Option<f64> {
    let (before, begun) = (server.cpu_ns()?, Instant::now());
    std::thread::sleep(IDLE_POLL);
    let used_ns = server.cpu_ns()?.saturating_sub(before);
    Some(used_ns as f64 / begun.elapsed().as_nanos() as f64).filter(|share| *share > IDLE_SHARE)
}

fn used_by_others(arm: &str, share: f64) -> String {
    format!(
        "the server of arm {arm} used {} of a processor while Tithe sent it nothing: others use it, or it still works \
         on what was loaded; its processor time per operation contains that too",
        format_args!("{:.0} %", 100.0 * share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_use_is_named_with_their_share() {
        let words = "the server of arm tls used 25 % of a processor while Tithe sent it nothing: ";
        assert!(used_by_others("tls", 0.25).starts_with(words), "{}", used_by_others("tls", 0.25));
        assert_eq!(ServerLocation::Here(7).words(), "process 7");
    }

    #[test]
    fn arms_are_counted_in_the_same_way_or_not_at_all() {
        let seen = |arms: &[Result<(i32, Counting), &str>]| {
            let server = |seen: Result<(i32, Counting), &str>| {
                seen.map(|(process, counting)| (ServerLocation::Here(process), counting)).map_err(str::to_owned)
            };
            let numbered = arms.iter().enumerate().map(|(number, seen)| (number, server(*seen)));
            all_alike(&numbered.collect()).map(|seen| {
                let process =
                    |server: ServerLocation| if let ServerLocation::Here(process) = server { process } else { 0 };
                seen.into_iter().map(|(_, server, _)| process(server)).collect::<Vec<_>>()
            })
        };
        let (thread, whole) = (|process| Ok((process, Counting::Thread)), |process| Ok((process, Counting::Whole)));
        assert_eq!(seen(&[thread(7), thread(8)]), Some(vec![7, 8]));
        assert_eq!(seen(&[whole(7), whole(7)]), Some(vec![7, 7]));
        assert_eq!(seen(&[thread(7), Err("elsewhere")]), None);
        assert_eq!(seen(&[thread(7), whole(7)]), None);
    }
}
