//! A client's view of a table: a request is carried out when it is submitted, and its answer is returned afterwards.

use std::{
    os::fd::BorrowedFd,
    sync::{Arc, Mutex},
};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{Connection, Fields, KeyValueSession, Progress, Request, Rows};

use super::{
    lock,
    store::{Log, Values},
};

/// A session on one table, which it shares with all others.
pub struct LogSession {
    log: Arc<Mutex<Log>>,
    answer: Option<Result<Answer, Fault>>,
}

enum Answer {
    /// What was found, with keys where several records could match, and which fields of it were asked for.
    Found(Vec<(Option<Vec<u8>>, Values)>, Fields),
    /// Number of records that were changed.
    Changed(u64),
}

impl LogSession {
    /// A session on `log`.
    pub fn new(log: Arc<Mutex<Log>>) -> Self {
        Self { log, answer: None }
    }
}

impl Connection for LogSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl KeyValueSession for LogSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.answer = Some(carry_out(&mut lock(&self.log), request));
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let answer = self.answer.take().ok_or_else(|| Fault::Protocol("nothing was submitted".to_owned()))??;
        let (found, fields) = match answer {
            Answer::Changed(count) => return Ok(Progress::Done(count)),
            Answer::Found(found, fields) => (found, fields),
        };
        for (key, values) in &found {
            rows.row(key.as_deref());
            for (field, value) in values.iter().enumerate() {
                if fields == Fields::All || fields == Fields::One(field) {
                    rows.field(field, Some(value));
                }
            }
        }
        Ok(Progress::Done(found.len() as u64))
    }
}

fn carry_out(log: &mut Log, request: &Request<'_>) -> Result<Answer, Fault> {
    match *request {
        Request::Read { key, fields } => {
            let found = log.get(key)?;
            Ok(Answer::Found(found.into_iter().map(|values| (None, values)).collect(), fields))
        }
        Request::Scan { start, count, fields } => {
            let found = log.scan(start, count as usize)?;
            Ok(Answer::Found(found.into_iter().map(|(key, values)| (Some(key), values)).collect(), fields))
        }
        Request::Insert { key, .. } if log.contains(key) => {
            Err(Fault::Server("a record with this key is there already".to_owned()))
        }
        Request::Insert { key, values } => {
            let record: Values = values.iter().map(|(_, value)| value.to_vec()).collect();
            log.write(key, &record).map(|()| Answer::Changed(1))
        }
        Request::Update { key, values } => {
            let Some(mut record) = log.get(key)? else { return Ok(Answer::Changed(0)) };
            for &(field, value) in values {
                let place = record.get_mut(field);
                *place.ok_or_else(|| Fault::Server(format!("there is no field {field}")))? = value.to_vec();
            }
            log.write(key, &record).map(|()| Answer::Changed(1))
        }
        Request::Delete { key } if log.contains(key) => log.write(key, &[]).map(|()| Answer::Changed(1)),
        Request::Delete { .. } => Ok(Answer::Changed(0)),
    }
}
