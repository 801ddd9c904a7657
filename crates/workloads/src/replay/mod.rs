//! The log of a server as the load: the logged transactions, by session, one after the other or at the pace of the log.
//!
//! A log is read once, line by line, by one of the [`readers`]. [`gather`] makes transactions from their entries and
//! omits those that cannot be replayed, by reason ([`account`]). The result is in memory ([`recording`]), up to the
//! limit `memory`. A client begins each slot (each frame at the log's pace) at a transaction drawn from a seed, and
//! continues in the order of the session, so every arm replays the same.
//!
//! Differences from the log: waits between the statements of a transaction are left out. A session of the replay runs
//! transactions of several sessions of the log. An omitted transaction is missing for those after it.

pub mod account;
mod check;
mod client;
pub(crate) mod config;
pub mod entry;
pub mod gather;
mod lines;
pub mod names;
pub(crate) mod own_tables;
pub mod readers;
pub mod recording;
pub mod sql;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use tithe_machine::fault::Fault;
use tithe_model::{
    catalogue::{DatabaseEntry, LineProblem, Properties, PropertyFile, PropertyProblem, WorkloadEntry, WorkloadShape},
    experiment, quantity,
};
use tithe_plugin::{
    own_tables::Asked,
    restore::Restore,
    session::{Session, Table},
    workload::{ArmState, Client, Clients, Load, NoState, Workload},
};

use crate::dump::Dump;

use self::{
    client::Player,
    config::{Config, Finish, Replayed},
};

/// The property that names the log.
const LOG: &str = "log";

/// The replay of one log.
pub struct Replay {
    replayed: Arc<Replayed>,
    /// The data that the log's statements use.
    data: Option<Dump>,
}

/// The replay of a log, for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "replay",
        title: "a server's log, replayed; properties: pace (closed: one transaction after the other; a number: so many times as \
                fast as logged), finish (as-logged, or rollback: each transaction is undone), database (one of several), form, \
                prefix (log_line_prefix), encoding (utf8, latin1), memory (MB of transactions)",
        presets: &[],
        file: "the log of a server: PostgreSQL's csvlog, jsonlog or text, MariaDB's and MySQL's general or slow log, server_audit's",
        weighted: false,
        scripts: "",
        by_path: LOG,
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Config::resolve(properties).1,
        shape: |properties| WorkloadShape {
            writes: true,
            record_bytes: 0,
            program: false,
            gaps: Config::resolve(properties).0.pauses(),
            batch: Some(1),
            slot_ns: None,
        },
    }
}

/// A log is named, not read: it may be larger than memory.
fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    if file.number > 1 {
        let help = "a workload replays one: join the files of one server by `cat`, in order of time";
        return Err(vec![(1, "is a second log".to_owned(), help.to_owned())]);
    }
    Ok(BTreeMap::from([(LOG.to_owned(), file.name.to_owned())]))
}

/// Makes the workload that an experiment describes. The log is read here.
///
/// # Errors
/// Every problem with the properties, or the first with the log, with file and line.
pub fn make(
    described: &experiment::Workload,
    _data: &experiment::Data,
    _seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let (config, mut problems) = Config::resolve(&described.properties);
    let data = Dump::of(described, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let replayed = config.read().map_err(|problem| vec![problem])?;
    Ok(Box::new(Replay { replayed: Arc::new(replayed), data }))
}

impl Workload for Replay {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.replayed.recording.kinds().map(|class| class.name.as_str()).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.replayed.recording.kinds().map(|class| class.text.as_str()).collect()
    }

    fn speaks_sql(&self) -> bool {
        true
    }

    fn refuses(&self, database: &DatabaseEntry, _running: bool) -> Option<String> {
        let protocol = self.replayed.flavour.wire_protocol();
        let is_other = database.wire_protocol != Some(protocol);
        is_other.then(|| {
            let (log, title) = (protocol.name(), database.title);
            format!("the log has {log}'s statements, and {title} has an SQL of its own")
        })
    }

    fn writes(&self) -> bool {
        self.replayed.writes
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn restore(&self) -> Option<&dyn Restore> {
        self.data.as_ref().map(|data| data as &dyn Restore)
    }

    fn own_tables(&self, _placeholder: fn(usize) -> String) -> Option<Asked> {
        self.data.is_none().then(|| own_tables::asked(&self.replayed))
    }

    fn rows(&self, _records: u64) -> u64 {
        0
    }

    fn describe(&self) -> Vec<(String, String)> {
        let Replayed { file, form, recording, account, pace, finish, order, start_us, end_us, .. } = &*self.replayed;
        let span = quantity::precise_duration(end_us.abs_diff(*start_us) as f64 / 1e6);
        let sessions = recording.sessions.len();
        let sessions = match recording.has_times {
            true => format!("{sessions} sessions, {} at a time, over {span}", order.len()),
            false => format!("{sessions} sessions; how many at a time is unknown, as the log has no times"),
        };
        let pace = match pace {
            None => "closed loop: one transaction after the other in each client".to_owned(),
            Some(factor) => format!("{factor} times that of the log with {} clients", order.len()),
        };
        let finish = match finish {
            Finish::AsLogged => "as logged",
            Finish::Rollback => "by ROLLBACK, each",
        };
        let mut lines = vec![
            ("log".to_owned(), format!("{file}, {form}")),
            ("sessions".to_owned(), sessions),
            ("pace".to_owned(), pace),
            ("transactions end".to_owned(), finish.to_owned()),
            ("waits within transactions".to_owned(), "left out".to_owned()),
        ];
        lines.extend(self.data.as_ref().map(|data| ("prepared by".to_owned(), data.in_words())));
        lines.extend(account.lines());
        lines
    }
}

impl Clients for Replay {
    fn load(&self, _session: &mut Session, _partition: u64, _of: u64, _done: &AtomicU64) -> Result<(), Fault> {
        Ok(())
    }

    fn check(&self, session: &mut Session, fresh: bool) -> Result<Option<String>, Fault> {
        fresh.then(|| check::check(session.sql()?, &self.replayed)).transpose()
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(Player::new(Arc::clone(&self.replayed)))
    }
}

#[cfg(test)]
mod tests;
