//! The questions of a coordinator to an observer on the machine of an attached server, and the answers, as JSON.
//!
//! Every question is complete in itself, so that an observer that was restarted answers like the one before. A search
//! may carry keys and passwords that the run made: no type here has a `Debug` that shows them.

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use tithe_machine::{
    paths::Paths,
    remote::{RemoteMatches, RemoteUsage},
};

use crate::load::{Schedule, frame::machines::Serving};

/// The subject of questions to the observer called `name`.
pub fn observer(name: &str) -> String {
    format!("tithe.observer.{name}")
}

/// The subject at which it answers clock requests.
pub fn observer_clock(name: &str) -> String {
    format!("tithe.clock.observer.{name}")
}

/// A question.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Which process has the server's end of this connection?
    Server {
        /// The client's end.
        client: SocketAddr,
        /// The server's end.
        server: SocketAddr,
        /// Names of the server's program.
        programs: Vec<String>,
        /// The process that serves the connection, if the server reports it.
        serving: Option<i32>,
    },
    /// What has the server with this main process used, and how much space do its files take?
    Usage {
        /// Main process.
        process: i32,
        /// The files that it writes.
        paths: Paths,
    },
    /// Read what servers use in the slots of a frame.
    Watch(Box<Watched>),
    /// What have they used in the frame of this ticket? This ends the reading.
    Used {
        /// Ticket of the frame.
        ticket: u64,
        /// The frame was given up: do not wait for anything.
        invalid: bool,
    },
    /// Do files hold any of these?
    Search {
        /// The needles, in hexadecimal.
        needles: Vec<String>,
        /// Where to search.
        paths: Paths,
    },
    /// The fingerprints of files.
    Fingerprints(Vec<PathBuf>),
}

/// The servers of a frame on one machine.
#[derive(Serialize, Deserialize)]
pub struct Watched {
    /// Ticket of the frame.
    pub ticket: u64,
    /// When each arm's slots are, on the observer's clock.
    pub schedule: Schedule,
    /// Lanes of all load machines together.
    pub lanes: usize,
    /// Main process of each arm's server; `None` if it is on another machine.
    pub mains: Vec<Option<i32>>,
    /// The tasks that serve the connections of the lanes, if servers report them.
    pub serving: Vec<Serving>,
}

/// An answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryReply {
    /// The main process of that server.
    Server(i32),
    /// What a server has used so far.
    Usage(RemoteUsage),
    /// The frame is being read.
    Watching,
    /// What was used in each slot for which that is known.
    Slots(Vec<SlotUsage>),
    /// What a search has found.
    Found(RemoteMatches),
    /// Of each file; the reason if it cannot be read.
    Fingerprints(Vec<Result<FileFingerprint, String>>),
    /// It cannot be seen, or must not be, for this reason.
    Refused(String),
}

/// The fingerprint of a settings file, which reveals nothing of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFingerprint {
    /// Length, bytes.
    pub bytes: u64,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

/// What was used in one slot.
#[derive(Serialize, Deserialize)]
pub struct SlotUsage {
    /// Lane.
    pub lane: usize,
    /// Block.
    pub block: u32,
    /// Index of the arm.
    pub arm: usize,
    /// Processor time, ns.
    pub cpu_ns: u64,
    /// Wait for a processor, ns.
    pub wait_ns: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tithe_machine::proc::TreeUsage;

    use super::*;
    use crate::agents::message::{read, write};

    proptest! {
        #[test]
        fn any_bytes_are_no_question_and_no_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!((read::<Query>(&bytes).is_some(), read::<QueryReply>(&bytes).is_some()), (false, false));
        }

        #[test]
        fn what_was_seen_survives_its_way(cpu_ns in any::<u64>(), memory_bytes in any::<u64>(), log in any::<Option<u64>>()) {
            let tree = TreeUsage { cpu_ns, memory_bytes, ..TreeUsage::default() };
            let usage = RemoteUsage { tree, log_bytes: log, disk_bytes: None };
            let heard = read::<QueryReply>(&write(&QueryReply::Usage(usage)).expect("JSON"));
            prop_assert!(matches!(heard, Some(QueryReply::Usage(told)) if told == usage));
        }
    }

    #[test]
    fn a_question_names_all_that_it_is_about() {
        let query = Query::Usage { process: 7, paths: Paths { data: vec!["/d".into()], ..Paths::default() } };
        let written = String::from_utf8(write(&query).expect("JSON")).expect("UTF-8");
        assert_eq!(written, r#"{"usage":{"process":7,"paths":{"data":["/d"],"journal":[],"logs":[]}}}"#);
    }
}
