//! A client that writes batches of records by key, each in one pipeline.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::fault::Fault;
use tithe_model::schedule::SplitMix64;
use tithe_plugin::{
    session::{Discard, KeyValueSession, Progress, Request, Session, Update},
    workload::{Client, PartRecorder},
};

use super::{Shared, key};
use crate::ycsb::key_value;

/// Adds the records `numbers`, which pipelines write again.
pub(super) fn fill(
    shared: &Shared,
    session: &mut dyn KeyValueSession,
    numbers: Range<u64>,
    done: &AtomicU64,
) -> Result<(), Fault> {
    let mut name = Vec::new();
    for number in numbers {
        key(&mut name, number);
        let values: Vec<(usize, &[u8])> =
            (0..shared.config.fields).map(|field| (field, shared.text(number, field))).collect();
        session.call(&Request::Insert { key: &name, values: &values }, &mut Discard)?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// One client.
pub(super) struct Pipeliner {
    shared: Arc<Shared>,
    random: SplitMix64,
    /// Keys of the batch.
    keys: Vec<Vec<u8>>,
    /// The numbers from which its values follow.
    marks: Vec<u64>,
}

impl Pipeliner {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, random: SplitMix64::new(0), keys: Vec::new(), marks: Vec::new() }
    }
}

impl Client for Pipeliner {
    fn seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }

    fn prepare(&mut self) {
        let config = &self.shared.config;
        self.keys.resize_with(config.batch as usize, Vec::new);
        self.marks.clear();
        let first = self.random.below(config.keep);
        for (number, name) in (first..).zip(&mut self.keys) {
            key(name, number % config.keep);
            self.marks.push(self.random.next_u64());
        }
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        let Self { shared, keys, marks, .. } = self;
        let fields = shared.config.fields;
        let mut values: Vec<(usize, &[u8])> = Vec::with_capacity(keys.len() * fields);
        for mark in marks.iter() {
            values.extend((0..fields).map(|field| (field, shared.text(*mark, field))));
        }
        let updates: Vec<Update<'_>> =
            keys.iter().zip(values.chunks(fields)).map(|(key, values)| (key.as_slice(), values)).collect();
        match key_value(session)?.submit_updates(&updates)? {
            true => Ok(()),
            false => Err(Fault::Refused(
                "sessions of this arm take one record at a time, as where clients encrypt fields: leave `pipeline` out"
                    .to_owned(),
            )),
        }
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        match key_value(session)?.advance(&mut Discard)? {
            Progress::Done(rows) if rows != self.shared.config.batch => Err(Fault::Wrong(format!(
                "of a pipeline of {} records the server had {rows}",
                self.shared.config.batch
            ))),
            progress => Ok(progress),
        }
    }

    fn operation(&self) -> usize {
        0
    }
}
