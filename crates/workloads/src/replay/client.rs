//! A client of the replay: runs the transactions of one session, one statement after the other.

use std::{collections::HashMap, sync::Arc};

use tithe_machine::fault::Fault;
use tithe_model::schedule::SplitMix64;
use tithe_plugin::{
    session::{Discard, Progress, Session, SqlSession, Statement},
    workload::{Client, PartRecorder},
};

use super::{
    config::{Finish, Replayed},
    entry::Sent,
    recording::Transaction,
};

/// Most statements that are prepared before anything is measured: servers keep them for each session.
const PREPARED: usize = 500;

/// One client.
pub struct Player {
    replayed: Arc<Replayed>,
    random: SplitMix64,
    /// Its seat, if transactions run at the pace of the log.
    seat: usize,
    /// The next transaction.
    next: usize,
    /// True once it has a place in the log at whose pace it runs; a client of the next frame gets another one.
    is_placed: bool,
    /// True for the first one after that place.
    is_first: bool,
    /// The current transaction.
    current: usize,
    pause_ns: u64,
    /// The log time at which this client starts, µs.
    from_us: i64,
    /// The next statement.
    step: Next,
    /// The server's error of the failed statement, during rollback.
    failed: Option<Fault>,
    rows: u64,
    prepared: HashMap<usize, Statement>,
    statements: u64,
}

/// The next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// `BEGIN`, which the log does not contain.
    Begin,
    /// A statement of the transaction, by number.
    Step(usize),
    /// `ROLLBACK`, which the log does not contain.
    Undo,
    /// Nothing: the transaction is over.
    Nothing,
}

impl Player {
    /// A client that replays `replayed`.
    pub fn new(replayed: Arc<Replayed>) -> Self {
        Self {
            replayed,
            random: SplitMix64::new(0),
            seat: 0,
            next: 0,
            is_placed: false,
            is_first: true,
            current: 0,
            pause_ns: 0,
            from_us: 0,
            step: Next::Nothing,
            failed: None,
            rows: 0,
            prepared: HashMap::new(),
            statements: 0,
        }
    }

    /// The current transaction.
    pub(super) fn transaction(&self) -> &Transaction {
        &self.replayed.recording.transactions[self.current]
    }

    /// The request after `sent` in the current transaction.
    fn after(&self, sent: Next) -> Next {
        let steps = self.replayed.recording.steps(self.transaction());
        let undoes = self.replayed.finish == Finish::Rollback;
        let following = match sent {
            Next::Begin => 0,
            Next::Step(step) => step + 1,
            Next::Undo | Next::Nothing => return Next::Nothing,
        };
        match steps.get(following) {
            Some(step) if step.ends && undoes => Next::Undo,
            Some(_) => Next::Step(following),
            // A single statement was put into a transaction.
            None if undoes && !steps.last().is_some_and(|last| last.ends) => Next::Undo,
            None => Next::Nothing,
        }
    }

    /// The first request of the current transaction.
    fn first(&self) -> Next {
        let transaction = self.transaction();
        let steps = self.replayed.recording.steps(transaction);
        let is_single = !steps.last().is_some_and(|last| last.ends);
        let begins = transaction.begins || is_single && self.replayed.finish == Finish::Rollback;
        if begins { Next::Begin } else { Next::Step(0) }
    }

    /// Sends the next request.
    fn send(&mut self, session: &mut dyn SqlSession) -> Result<(), Fault> {
        self.statements += 1;
        let replayed = Arc::clone(&self.replayed);
        let recording = &replayed.recording;
        match self.step {
            Next::Begin => session.submit_text("BEGIN"),
            Next::Undo | Next::Nothing => session.submit_text("ROLLBACK"),
            Next::Step(number) => {
                let step = &recording.steps(&recording.transactions[self.current])[number];
                let text = &recording.texts[step.text];
                let parameters = || recording.parameters(step).collect::<Vec<_>>();
                match (step.sent, self.prepared.get(&step.text)) {
                    (Sent::Prepared, Some(statement)) => session.submit(*statement, &parameters()),
                    (Sent::Text, _) => session.submit_text(text),
                    (Sent::Once | Sent::Prepared, _) => session.submit_once(text, &parameters()),
                }
            }
        }
    }

    /// The kind of the sent statement, among all kinds of operations.
    fn sent_kind(&self) -> usize {
        let recording = &self.replayed.recording;
        let text = match self.step {
            Next::Step(number) => Some(recording.steps(self.transaction())[number].text),
            Next::Begin | Next::Undo | Next::Nothing => None,
        };
        recording.statement_kind(text)
    }

    /// The log's position at `from_us` in this client's seat: the first transaction that begins then or later.
    fn at_time(&self, from_us: i64) -> usize {
        let replayed = &self.replayed;
        let order = &replayed.order[self.seat];
        let transactions = &replayed.recording.transactions;
        order.partition_point(|&number| transactions[number].start_us < from_us) % order.len()
    }
}

impl Client for Player {
    fn set_number(&mut self, number: u64) {
        self.seat = (number % self.replayed.order.len() as u64) as usize;
    }

    fn open(&mut self, session: &mut Session) -> Result<(), Fault> {
        let session = session.sql()?;
        self.prepared.clear();
        for &text in self.replayed.prepared.iter().take(PREPARED) {
            let prepared = session.prepare_text(&self.replayed.recording.texts[text])?;
            self.prepared.insert(text, prepared.statement);
        }
        Ok(())
    }

    fn seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        let replayed = &self.replayed;
        if replayed.pace.is_none() {
            self.next = self.random.below(replayed.recording.transactions.len() as u64) as usize;
            return;
        }
        // At the log's pace a client goes on from slot to slot, as its pauses do. A new place in each slot would follow
        // a transaction by one from elsewhere in the log: of a burst only the first would run.
        if !self.is_placed {
            let span = replayed.end_us.abs_diff(replayed.start_us).max(1);
            self.from_us = replayed.start_us + self.random.below(span) as i64;
            self.next = self.at_time(self.from_us);
            self.is_placed = true;
        }
    }

    fn pauses(&self) -> bool {
        self.replayed.pace.is_some()
    }

    fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    fn prepare(&mut self) {
        let replayed = &self.replayed;
        let Some(pace) = replayed.pace else {
            self.current = self.next;
            self.next = (self.next + 1) % replayed.recording.transactions.len();
            return;
        };
        let order = &replayed.order[self.seat];
        let before = self.current;
        self.current = order[self.next];
        self.next = (self.next + 1) % order.len();
        let transactions = &replayed.recording.transactions;
        let since_us = if self.is_first { self.from_us } else { transactions[before].end_us };
        // After the last transaction the log starts over.
        let mut gap_us = transactions[self.current].start_us - since_us;
        if gap_us < 0 && (self.is_first || self.next == 1 % order.len()) {
            gap_us += replayed.end_us - replayed.start_us;
        }
        self.pause_ns = (gap_us.max(0) as f64 * 1000.0 / pace) as u64;
        self.is_first = false;
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        (self.failed, self.rows, self.step) = (None, 0, self.first());
        self.send(session.sql()?)
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let session = session.sql()?;
        // An embedded database answers at once, so its transactions complete in one call.
        let at_once = session.descriptor().is_none();
        loop {
            match session.advance(&mut Discard) {
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Done(rows)) => {
                    self.rows += rows;
                    if self.failed.is_none() {
                        parts.part(self.sent_kind());
                    }
                    self.step = self.after(self.step);
                }
                Err(Fault::Server(text)) if self.failed.is_none() => {
                    self.failed = Some(Fault::Server(text));
                    self.step = if session.in_transaction() { Next::Undo } else { Next::Nothing };
                }
                Err(fault) => return Err(fault),
            }
            if self.step == Next::Nothing {
                return self.failed.take().map_or(Ok(Progress::Done(self.rows)), Err);
            }
            self.send(session)?;
            if !at_once {
                return Ok(Progress::Pending);
            }
        }
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        self.transaction().class
    }
}
