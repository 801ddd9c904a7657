//! The agents that a command line asks for. A build without the feature `agents` has `no_team.rs` in place of this
//! file.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use clap::Args;
use tithe_broker::{Access, AccessFiles, Broker, BrokerUrl};
use tithe_harness::agents::{
    coordinator::{self, Peer, Team, gather_observers, roll_call},
    link::Link,
};
use tithe_machine::fault::Fault;
use tithe_model::plan::Plan;
use tithe_plugin::product::Product;

use crate::exit::{self, Stop};

/// Which agents.
#[derive(Args)]
pub struct TeamArgs {
    /// Let the agents at this broker offer the load: tls://HOST:4222, or nats://127.0.0.1:4222 on this machine
    #[arg(long, value_name = "URL")]
    agents: Option<String>,
    /// Number of agents [default: `agents` of the experiment]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u32).range(1..=1024))]
    expect: Option<u32>,
    /// Seconds to wait for agents, at the beginning and when one is lost
    #[arg(long, value_name = "SECONDS", requires = "agents", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    wait: u32,
    #[command(flatten)]
    access: AccessArgs,
}

/// How to log in at the broker. Files that others than their owner may read are refused.
#[derive(Args)]
pub struct AccessArgs {
    /// Credentials for the broker, as `nsc generate creds` writes them
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// Seed of an NKey for the broker
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    pub nkey: Option<PathBuf>,
    /// User and password for the broker, a line each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["creds", "nkey"])]
    pub password_file: Option<PathBuf>,
    /// Authority that has signed the broker's certificate, PEM; without one those of the system
    #[arg(long, value_name = "FILE")]
    pub broker_ca: Option<PathBuf>,
    /// Certificate for a broker that asks for one, PEM
    #[arg(long, value_name = "FILE", requires = "broker_key")]
    pub broker_cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "broker_cert")]
    pub broker_key: Option<PathBuf>,
}

/// The name of the coordinator at the broker.
pub const COORDINATOR: &str = "coordinator";

/// How long the broker may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The agents of a run as the command line asks for them.
pub struct AgentRequest {
    broker: Arc<dyn Link>,
    expected: usize,
    wait: Duration,
}

impl AgentRequest {
    /// The agents that `arguments` ask for to measure `plan` on `database`; `None` if Tithe's own process offers the
    /// load.
    ///
    /// # Errors
    /// If they do not fit the plan, or the broker cannot be reached.
    pub fn of(arguments: &TeamArgs, plan: &Plan, database: &dyn Product) -> Result<Option<Self>, Stop> {
        let wrong = |words: &str| Err(Stop::new(exit::USAGE, format!("{words}; nothing was started")));
        let in_file = plan.experiment.load.agents;
        let observed = plan.experiment.arms.iter().find_map(|arm| arm.observer.as_ref());
        let Some(url) = &arguments.agents else {
            return match in_file {
                Some(agents) => wrong(&format!(
                    "the experiment needs {agents} agents (`agents` in [load]): give the address of their broker, \
                     `--agents tls://broker:4222`"
                )),
                None => match observed {
                    Some(observed) => wrong(&format!(
                        "an arm has the observer {}: give the address of the broker, `--agents tls://broker:4222`",
                        observed.name
                    )),
                    None => Ok(None),
                },
            };
        };
        let Some(expected) = arguments.expect.or(in_file) else {
            return wrong("--agents needs a number of them: `--expect 3`, or `agents = 3` in [load]");
        };
        if let Some(why) = coordinator::refused(database, &plan.experiment, plan) {
            return wrong(&why);
        }
        let broker = Arc::new(connect(url, COORDINATOR, &arguments.access)?);
        let wait = Duration::from_secs(arguments.wait.into());
        Ok(Some(Self { broker, expected: expected as usize, wait }))
    }

    /// Waits for them.
    ///
    /// # Errors
    /// The members that are there, if not all come.
    pub fn gather<'a>(&'a self, plan: &Plan, cancelled: &'a AtomicBool) -> Result<Team<'a>, Stop> {
        let observers = gather_observers(&self.broker, plan, self.wait, cancelled);
        let gathered = observers.and_then(|observers| {
            let team = Team::gather(&*self.broker, plan, (self.expected, self.wait), cancelled)?;
            Ok(team.seen_by(observers))
        });
        gathered.map_err(|fault| Stop::new(exit::MACHINE, format!("{fault}; nothing was started")))
    }
}

/// Connects to the broker at `url` as `name`.
///
/// # Errors
/// As text, before anything is sent, if the address or a file is wrong; the broker's own reason.
pub fn connect(url: &str, name: &str, access: &AccessArgs) -> Result<Broker, Stop> {
    let AccessArgs { creds, nkey, password_file, broker_ca, broker_cert, broker_key } = access;
    let files = AccessFiles {
        credentials: creds.clone(),
        nkey: nkey.clone(),
        password: password_file.clone(),
        authority: broker_ca.clone(),
        identity: broker_cert.clone().zip(broker_key.clone()),
    };
    let wrong = |fault: Fault| Stop::new(exit::USAGE, format!("{fault}; nothing was started"));
    let at: BrokerUrl =
        url.parse().map_err(|why: String| Stop::new(exit::USAGE, format!("{why}; nothing was started")))?;
    let access = Access::read(name, &files).map_err(wrong)?;
    let cannot = |fault: Fault| Stop::new(exit::MACHINE, format!("{fault}; nothing was started"));
    Broker::connect(&at, &access, CONNECT_WITHIN).map_err(cannot)
}

/// The members at the broker that `arguments` name, as a table; `None` if they name none.
///
/// # Errors
/// When the broker cannot be reached.
pub fn doctor(arguments: &TeamArgs) -> Result<Option<String>, Stop> {
    let Some(url) = &arguments.agents else { return Ok(None) };
    let broker = connect(url, COORDINATOR, &arguments.access)?;
    let seen = roll_call(&broker)?;
    Ok(Some(table(url, &seen)))
}

fn table(url: &str, seen: &[Peer]) -> String {
    if seen.is_empty() {
        return format!("agents and observers at {url}: none\n");
    }
    let mut text = format!("agents and observers at {url}\n");
    for Peer { hello, offset } in seen {
        let clock = match offset {
            Some(offset) => format!(
                "clock {:+.6} s, known within {:.0} µs",
                offset.offset_ns as f64 / 1e9,
                offset.bound_ns as f64 / 1e3
            ),
            None => "does not report the time".to_owned(),
        };
        let state = hello.busy_with.as_ref().map_or("free".to_owned(), |run| format!("works for run {run}"));
        let lanes = match hello.lanes {
            _ if hello.observes => "observes".to_owned(),
            1 => "1 lane".to_owned(),
            lanes => format!("{lanes} lanes"),
        };
        text += &format!(
            "  {}: tithe {}, {lanes} on {} processors ({}), kernel {}; {clock}; {state}\n",
            hello.name, hello.tithe, hello.machine.processors, hello.machine.processor, hello.machine.kernel
        );
    }
    text
}
