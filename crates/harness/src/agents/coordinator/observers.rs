//! The observers of a run, and the questions that it asks them.

use std::{
    collections::BTreeSet,
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    paths::Paths,
    remote::{Ends, Known, RemoteMatches, RemoteUsage, ServerMachine},
    secret::hex,
};
use tithe_model::{experiment::Arm, invalid::Invalid, plan::Plan, record::Machine};

use super::membership::{self, patiently};
use crate::agents::{
    link::{Answer, Link},
    message::{Hello, read, write},
    query::{FileFingerprint, Query, QueryReply, SlotUsage, Watched, observer},
};

/// How long an answer may take that needs only the kernel.
const WITHIN: Duration = Duration::from_secs(5);

/// How long a search through all files of a server may take.
const SEARCH_WITHIN: Duration = Duration::from_secs(900);

/// An observer on the machine of an attached server.
pub struct ServerObserver {
    link: Arc<dyn Link>,
    hello: Hello,
}

impl fmt::Debug for ServerObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerObserver").field("name", &self.hello.name).finish_non_exhaustive()
    }
}

/// The observers that `plan` names, once all are there, waiting for at most `wait`.
///
/// # Errors
/// Which are missing; when two have one name, or one runs another version.
pub fn gather(
    link: &Arc<dyn Link>,
    plan: &Plan,
    wait: Duration,
    cancelled: &AtomicBool,
) -> Result<Vec<Arc<ServerObserver>>, Fault> {
    let of_arm = |arm: &Arm| Some(arm.observer.as_ref()?.name.clone());
    let names: BTreeSet<String> = plan.experiment.arms.iter().filter_map(of_arm).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let deadline = Instant::now() + wait;
    loop {
        let there = patiently((deadline, cancelled), || membership::observers(&**link))?;
        let missing = names.iter().find(|name| there.iter().all(|hello| hello.name != **name));
        match missing {
            Some(name) if Instant::now() > deadline || cancelled.load(Ordering::SeqCst) => {
                let there: Vec<&str> = there.iter().map(|hello| hello.name.as_str()).collect();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                return Err(Fault::Refused(format!(
                    "observer {name} is not there: start `tithe observe --name {name}` on the machine of the server; \
                     there are: {there}"
                )));
            }
            Some(_) => {}
            None => {
                membership::alike(&there).map_err(Fault::Refused)?;
                let named = there.into_iter().filter(|hello| names.contains(&hello.name));
                return Ok(named.map(|hello| Arc::new(ServerObserver { link: link.clone(), hello })).collect());
            }
        }
    }
}

impl ServerObserver {
    /// Its description of itself.
    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The machine that it is on.
    pub fn machine(&self) -> &Machine {
        &self.hello.machine
    }

    fn lost(&self) -> Fault {
        Fault::Connection(format!("observer {} was lost", self.hello.name))
    }

    fn ask(&self, query: &Query, within: Duration) -> Result<QueryReply, Fault> {
        match self.link.request(&observer(&self.hello.name), &write(query)?, within)? {
            Answer::Reply(reply) => read(&reply).ok_or_else(|| self.odd()),
            Answer::NoResponders | Answer::TimedOut => Err(self.lost()),
        }
    }

    /// The error if it answers something else.
    fn odd(&self) -> Fault {
        Fault::Connection(format!("observer {} answered another question than it was asked", self.hello.name))
    }

    /// The error if `reply` is not what was asked for.
    fn instead(&self, reply: QueryReply) -> Fault {
        match reply {
            QueryReply::Refused(why) => Fault::Refused(format!("observer {}: {why}", self.hello.name)),
            _ => self.odd(),
        }
    }

    /// Starts its reading of what servers use in the slots of a frame.
    pub(super) fn watch(&self, watched: Watched) -> Result<(), Fault> {
        match self.ask(&Query::Watch(Box::new(watched)), WITHIN)? {
            QueryReply::Watching => Ok(()),
            other => Err(self.instead(other)),
        }
    }

    /// What it has read of the frame of `ticket`.
    pub(super) fn used(&self, ticket: u64, invalid: bool) -> Result<Vec<SlotUsage>, Invalid> {
        let in_words = |fault: Fault| Invalid::Other(fault.to_string());
        match self.ask(&Query::Used { ticket, invalid }, WITHIN).map_err(in_words)? {
            QueryReply::Slots(slots) => Ok(slots),
            // The text comes from an observer, not from a server.
            QueryReply::Refused(why) => {
                Err(Invalid::OfObserver(self.hello.name.clone(), Box::new(Invalid::read(&why))))
            }
            other => Err(in_words(self.instead(other))),
        }
    }

    /// The fingerprint of each of `files`; the reason if it cannot be read.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn fingerprints(&self, files: &[PathBuf]) -> Result<Vec<Result<FileFingerprint, String>>, Fault> {
        match self.ask(&Query::Fingerprints(files.to_vec()), WITHIN)? {
            QueryReply::Fingerprints(told) if told.len() == files.len() => Ok(told),
            other => Err(self.instead(other)),
        }
    }
}

impl ServerMachine for ServerObserver {
    fn name(&self) -> &str {
        &self.hello.name
    }

    fn server_at(&self, ends: Ends, known: Known<'_>) -> Result<Result<i32, String>, Fault> {
        let Ends { client, server } = ends;
        let programs = known.programs.iter().map(|program| (*program).to_owned()).collect();
        match self.ask(&Query::Server { client, server, programs, serving: known.serving }, WITHIN)? {
            QueryReply::Server(process) => Ok(Ok(process)),
            QueryReply::Refused(why) => Ok(Err(format!("observer {}: {why}", self.hello.name))),
            other => Err(self.instead(other)),
        }
    }

    fn usage(&self, process: i32, paths: &Paths) -> Result<RemoteUsage, Fault> {
        match self.ask(&Query::Usage { process, paths: paths.clone() }, WITHIN)? {
            QueryReply::Usage(usage) => Ok(usage),
            other => Err(self.instead(other)),
        }
    }

    fn search(&self, needles: &[(&'static str, &[u8])], paths: &Paths) -> Result<RemoteMatches, Fault> {
        let needles = needles.iter().map(|(_, needle)| hex(needle)).collect();
        match self.ask(&Query::Search { needles, paths: paths.clone() }, SEARCH_WITHIN)? {
            QueryReply::Found(found) => Ok(found),
            other => Err(self.instead(other)),
        }
    }
}
