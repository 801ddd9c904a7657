//! A session of the simulated database: correct answers, simulated times, and faults on request.

use std::{
    fs,
    io::Write,
    os::fd::BorrowedFd,
    sync::{Arc, atomic::Ordering},
};

use tithe_machine::{clock::Clock, fault::Fault, launch::Server, proc::ServerTask};

use super::{
    Model,
    store::Store,
    timing::{fraction, mix},
};
use crate::{
    database::Connect,
    session::{Connection, Fields, KeyValueSession, Progress, Request, Rows},
};

/// A connection to one store.
pub(super) struct SimulatedSession {
    store: Arc<Store>,
    model: Model,
    clock: Clock,
    lane: u64,
    /// Open if operations are logged.
    audit: Option<fs::File>,
    /// Iterations of a loop in each operation on the real clock.
    turns: u64,
    operations: u64,
    answers: u64,
    /// The answer that `advance` will give.
    answer: Option<Result<Answer, Fault>>,
}

/// Rows with their keys, and the result in `Done`.
#[derive(Default)]
struct Answer {
    rows: Vec<Row>,
    count: u64,
}

struct Row {
    key: Option<Vec<u8>>,
    fields: Vec<(usize, Vec<u8>)>,
}

impl SimulatedSession {
    pub(super) fn new(store: Arc<Store>, model: Model, server: &Server, how: &Connect) -> Result<Self, Fault> {
        // On simulated time the log is never read, and writing it would only slow down the tests.
        let audit = match (&how.clock, model.audit_lose, server.paths.logs.first()) {
            (Clock::Real, Some(_), Some(path)) => {
                let log = fs::OpenOptions::new().create(true).append(true).open(path);
                Some(log.map_err(|error| Fault::machine(path.display(), error))?)
            }
            _ => None,
        };
        let lane = how.lane as u64;
        let clock = how.clock.clone();
        Ok(Self { store, model, clock, lane, audit, turns: 0, operations: 0, answers: 0, answer: None })
    }

    /// The session with this many loop iterations in every operation.
    pub(super) fn spinning(self, turns: u64) -> Self {
        Self { turns, ..self }
    }

    fn log(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let (Some(log), Some(lose)) = (&mut self.audit, self.model.audit_lose) else {
            return Ok(());
        };
        if fraction(mix(self.operations)) < lose {
            return Ok(());
        }
        let (kind, key) = match *request {
            Request::Read { key, .. } => ("READ", key),
            Request::Update { key, .. } => ("UPDATE", key),
            Request::Insert { key, .. } => ("INSERT", key),
            Request::Scan { start, .. } => ("SCAN", start),
            Request::Delete { key } => ("DELETE", key),
        };
        let line = [kind.as_bytes(), b" ", key, b"\n"].concat();
        log.write_all(&line).map_err(|error| Fault::machine("audit log", error))
    }

    /// The store's answer.
    fn execute(&self, request: &Request<'_>) -> Result<Answer, Fault> {
        let mut records = self.store.records();
        let count = match *request {
            Request::Read { key, fields } => {
                return Ok(Answer::of(records.get(key).map(|record| Row::new(None, record, fields))));
            }
            Request::Scan { start, count, fields } => {
                let found = records.range(start.to_vec()..).take(count as usize);
                return Ok(Answer::of(found.map(|(key, record)| Row::new(Some(key.clone()), record, fields))));
            }
            Request::Insert { key, .. } if records.contains_key(key) => {
                return Err(Fault::Server("a record with this key is there already".to_owned()));
            }
            Request::Insert { key, values } => {
                records.insert(key.to_vec(), values.iter().map(|(_, value)| value.to_vec()).collect());
                1
            }
            Request::Update { key, values } => match records.get_mut(key) {
                None => 0,
                Some(record) => {
                    for &(field, value) in values {
                        let place = record.get_mut(field);
                        *place.ok_or_else(|| Fault::Server(format!("there is no field {field}")))? = value.to_vec();
                    }
                    1
                }
            },
            Request::Delete { key } => u64::from(records.remove(key).is_some()),
        };
        Ok(Answer { rows: Vec::new(), count })
    }

    /// Applies the faults in the settings to a measured operation.
    fn strike(&mut self, answer: Result<Answer, Fault>) -> Result<Answer, Fault> {
        let nth = |every: u64, count: u64| every > 0 && count.is_multiple_of(every);
        if nth(self.model.fail_every, self.operations) {
            return Err(Fault::Server("the simulated server was told to fail".to_owned()));
        }
        let mut answer = answer?;
        if let Some((_, value)) = answer.rows.first_mut().and_then(|row| row.fields.first_mut()) {
            self.answers += 1;
            if nth(self.model.wrong_answer_every, self.answers) {
                value.push(b'!');
            }
        }
        Ok(answer)
    }
}

impl KeyValueSession for SimulatedSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.operations += 1;
        self.log(request)?;
        let mut answer = self.execute(request);
        super::spinning::spin(self.turns);
        if let Clock::Virtual(time) = &self.clock {
            let done = self.store.operations.fetch_add(1, Ordering::Relaxed);
            if self.model.dies_after_operations > 0 && done >= self.model.dies_after_operations {
                return Err(Fault::Connection("the simulated server has died".to_owned()));
            }
            self.model.pass(time, self.lane, done);
            answer = self.strike(answer);
        }
        self.answer = Some(answer);
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let answer = self.answer.take().ok_or_else(|| Fault::Protocol("nothing was submitted".to_owned()))??;
        for row in &answer.rows {
            rows.row(row.key.as_deref());
            row.fields.iter().for_each(|(field, value)| rows.field(*field, Some(value)));
        }
        Ok(Progress::Done(answer.count))
    }
}

impl Connection for SimulatedSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        match &self.clock {
            Clock::Real => ServerTask::Caller,
            Clock::Virtual(time) => ServerTask::Virtual(Arc::clone(time)),
        }
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl Answer {
    fn of(rows: impl IntoIterator<Item = Row>) -> Self {
        let rows: Vec<_> = rows.into_iter().collect();
        Self { count: rows.len() as u64, rows }
    }
}

impl Row {
    fn new(key: Option<Vec<u8>>, record: &[Vec<u8>], fields: Fields) -> Self {
        let fields = match fields {
            Fields::All => record.iter().cloned().enumerate().collect(),
            Fields::One(field) => record.get(field).map(|value| (field, value.clone())).into_iter().collect(),
        };
        Self { key, fields }
    }
}
