//! The messages between coordinator and agents, as JSON.
//!
//! Enlistments and frames carry passwords and keys: no type here has a `Debug` that shows them, and a program that
//! cannot read a message does not quote it.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tithe_machine::fault::Fault;
use tithe_model::record::Machine;

use super::query::observer_clock;
use crate::load::frame::machines::{LaneRange, PartRequest, PartResult, Serving};

/// Version of these messages; the program's own version counts as well.
pub const PROTOCOL: u32 = 5;

/// The subject at which all agents answer.
pub const ROLL_CALL: &str = "tithe.roll-call";

/// The subject at which the coordinator of `run` takes reports.
pub fn coordinator(run: &str) -> String {
    format!("tithe.run.{run}")
}

/// The subject at which it answers clock requests, by which agents see that it is alive.
pub fn coordinator_clock(run: &str) -> String {
    format!("tithe.clock.run.{run}")
}

/// An agent's description of itself, its answer to a roll call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// Random for each process: distinguishes two agents of one name, and an agent that came back from the one before.
    pub id: String,
    /// The name that its user gave it.
    pub name: String,
    /// Version of the program.
    pub tithe: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Lanes that it offers.
    pub lanes: u32,
    /// Its machine; agents that share a boot of the kernel share a machine.
    pub machine: Machine,
    /// The run that it works for; `None` if it is free.
    pub busy_with: Option<String>,
    /// It is an observer, which offers no lanes.
    #[serde(default)]
    pub observes: bool,
}

impl fmt::Display for Hello {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", if self.observes { "observer" } else { "agent" }, self.name)
    }
}

impl Hello {
    /// The subject at which it takes orders.
    pub fn orders(&self) -> String {
        format!("tithe.agent.{}.{}", self.name, self.id)
    }

    /// The subject at which it answers clock requests.
    pub fn clock(&self) -> String {
        if self.observes {
            return observer_clock(&self.name);
        }
        format!("tithe.clock.{}.{}", self.name, self.id)
    }
}

/// An order of a coordinator to one agent; the answer is a [`Reply`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Work for a run from now on.
    Enlist(Box<Enlistment>),
    /// Measure a part of a frame.
    Measure(Box<FrameOrder>),
    /// The first slot of the frame of this ticket begins at this time, on the agent's own clock, ns.
    Go {
        /// Ticket of the frame.
        ticket: u64,
        /// When.
        start_ns: u64,
    },
    /// The frame of this ticket is cancelled.
    Abort {
        /// Ticket of the frame.
        ticket: u64,
    },
    /// The run has ended.
    Release {
        /// Its identity.
        run: String,
    },
}

/// What an agent answers to an order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It does so.
    Accepted,
    /// It does not work for this run.
    NotEnlisted,
    /// It works for another run, or for a frame that has not ended yet.
    Busy(String),
    /// It will never do so, for this reason.
    Refused(String),
}

/// A run that an agent is to work for.
#[derive(Serialize, Deserialize)]
pub struct Enlistment {
    /// Identity of the run, drawn by its coordinator.
    pub run: String,
    /// Version of the coordinator's program.
    pub tithe: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Its plan, as `plan.json` holds it.
    pub plan: String,
    /// The servers of its arms, each once.
    pub servers: Vec<Expected>,
}

/// A server that the clients of a run will connect to, as far as it is known before anything is started.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// One that the coordinator will start.
    Launched {
        /// Address that it will listen on.
        host: String,
    },
    /// One that is running, by its URL.
    Running(String),
}

/// A part of a frame.
#[derive(Serialize, Deserialize)]
pub struct FrameOrder {
    /// Identity of the run.
    pub run: String,
    /// Random, for this frame alone: a report with another ticket is too late.
    pub ticket: u64,
    /// Index of the cell.
    pub cell_index: u32,
    /// The agent's lanes.
    pub lanes: LaneRange,
    /// The part of the order that is the same for all agents.
    pub frame: PartRequest,
    /// The arms, in the experiment's order.
    pub arms: Vec<Target>,
    /// The clients' credentials.
    pub keys: Keys,
    /// The state that the clients of each arm had reached on this agent, as it reported after the frame before; `None`
    /// on fresh data.
    pub states: Option<Vec<Vec<i64>>>,
    /// Number of the part that its inserts use, and the number of parts.
    pub part: (u64, u64),
}

/// The server of one arm, as its clients reach it.
#[derive(Serialize, Deserialize)]
pub struct Target {
    /// Where it is.
    pub at: Place,
    /// Schema, database or key prefix that holds everything of Tithe's there.
    pub space: String,
    /// The arm whose data it works on.
    pub data: usize,
    /// The key of its encrypted columns, in hexadecimal.
    pub column_key: Option<String>,
}

/// Where a server is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A server that the coordinator has started.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// One that was running before, by its URL.
    Url(String),
    /// The simulated database, which runs wherever its clients are.
    Nowhere,
}

/// The clients' credentials; secrets in hexadecimal, certificates and their keys in PEM.
#[derive(Default, Serialize, Deserialize)]
pub struct Keys {
    /// Password of the clients' account.
    pub password: String,
    /// The data key.
    pub key: String,
    /// The second data key.
    pub second_key: String,
    /// Certificate of the run's authority; empty if there is none.
    pub authority: String,
    /// Certificate of the client.
    pub client_certificate: String,
    /// Its key.
    pub client_key: String,
}

/// What an agent reports to the coordinator of its run.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// Its [`Hello::id`].
    pub agent: String,
    /// Ticket of the frame.
    pub ticket: u64,
    /// Its content.
    pub said: Said,
}

/// A report about a frame.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// All lanes are connected and warm, and served by these.
    Ready(Vec<Serving>),
    /// The frame has ended.
    Measured(Box<PartResult>),
    /// It could not be measured.
    Failed(String),
}

/// A message as it is sent.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn write(message: &impl Serialize) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(message).map_err(|error| Fault::machine("a message cannot be written", error))
}

/// The message in `bytes`; `None` if it cannot be read. There is no reason, because a reason would quote the message.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    // As text, like records: reading from bytes would compile a second reader for every type.
    serde_json::from_str(str::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::agents::{
        query::observer,
        tests::{frame_order, hello, plan},
    };

    #[test]
    fn every_subject_is_that_of_one_thing() {
        let mut subjects = vec![ROLL_CALL.to_owned()];
        for run in ["r", "s"] {
            subjects.extend([coordinator(run), coordinator_clock(run)]);
        }
        for (name, id) in [("a", "1"), ("a", "2"), ("b", "1")] {
            let agent = Hello { id: id.to_owned(), ..hello(name) };
            subjects.extend([agent.orders(), agent.clock()]);
        }
        for name in ["a", "b"] {
            subjects.extend([observer(name), observer_clock(name)]);
            assert_eq!(Hello { observes: true, ..hello(name) }.clock(), observer_clock(name));
        }
        let different: BTreeSet<&String> = subjects.iter().collect();
        assert_eq!(different.len(), subjects.len(), "{subjects:?}");
        assert!(subjects.iter().all(|subject| subject.starts_with("tithe.")), "{subjects:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_are_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let read = (read::<Order>(&bytes).is_some(), read::<Report>(&bytes).is_some(), read::<Hello>(&bytes).is_some());
            prop_assert_eq!(read, (false, false, false));
        }
    }

    #[test]
    fn orders_survive_their_way() {
        let order = Order::Go { ticket: 7, start_ns: u64::MAX };
        let written = write(&order).expect("JSON");
        assert_eq!(String::from_utf8_lossy(&written), r#"{"go":{"ticket":7,"start_ns":18446744073709551615}}"#);
        assert!(matches!(read(&written), Some(Order::Go { ticket: 7, start_ns: u64::MAX })));
    }

    #[test]
    fn an_order_is_read_as_a_whole_or_not_at_all() {
        let order = FrameOrder { states: Some(vec![vec![-1, i64::MAX]]), ..frame_order(&plan("c"), u64::MAX) };
        let written = write(&Order::Measure(Box::new(order))).expect("JSON");
        let again = read::<Order>(&written).and_then(|order| write(&order).ok());
        assert_eq!(again.as_ref(), Some(&written));
        for length in 0..written.len() {
            assert!(read::<Order>(&written[..length]).is_none(), "the first {length} bytes");
        }
        assert!(read::<Order>(&[written.as_slice(), b"}"].concat()).is_none(), "a byte more");
    }
}
