//! A terminal: draws inputs, and drives one transaction at a time through its session.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{SystemTime, UNIX_EPOCH},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    columns::sql::unreadable,
    session::{Progress, Session, SqlSession, Statement},
    sql::Compute,
    workload::{Client, PartRecorder},
};

use super::{
    channel::{Shared, StatementChannel, open},
    config::Config,
    input::{Input, Place, TransactionKind},
    pauses::Pauses,
    random::Random,
    statements::Statements,
    transactions::{Outcome, Rules, carry_out},
};

/// The operation under which a retry is recorded: from the begin of the attempt to the next.
pub const RETRY: usize = 5;
/// The operation under which New-Orders that must be rolled back are recorded, in addition to New-Order.
pub const ROLLBACK: usize = 6;

type Transaction = Pin<Box<dyn Future<Output = Result<Outcome, Fault>> + Send>>;

/// One terminal.
pub struct Terminal {
    config: Arc<Config>,
    compute: Compute,
    place: Place,
    random: Random,
    mailbox: Shared,
    kind: TransactionKind,
    input: Option<Input>,
    transaction: Option<Transaction>,
    prepared: Option<Prepared>,
    statements: u64,
    pauses: Pauses,
}

/// The statements of the terminal's session.
struct Prepared {
    statements: Statements,
    handles: Vec<Statement>,
    rules: Rules,
}

impl Prepared {
    fn new(session: &mut dyn SqlSession, config: &Config, compute: Compute) -> Result<Self, Fault> {
        if compute == Compute::Server && session.hides_values() {
            return Err(unreadable());
        }
        let dialect = session.dialect();
        (dialect.isolate)(config.isolation).iter().try_for_each(|statement| session.run(statement).map(drop))?;
        let statements = Statements::new(compute, config.isolation, dialect);
        let handles = statements.prepare(session)?;
        let rules = Rules { compute, begins: statements.begins(), dialect };
        Ok(Self { statements, handles, rules })
    }
}

impl Terminal {
    /// Terminal 0, until it gets another number.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            compute: config.compute,
            place: Place::of(0, &config),
            config,
            random: Random::new(0),
            mailbox: Shared::default(),
            kind: TransactionKind::NewOrder,
            input: None,
            transaction: None,
            prepared: None,
            statements: 0,
            pauses: Pauses::default(),
        }
    }

    /// Advances the transaction to its next statement, which is sent; returns `None` if there is one.
    fn go_on(&mut self, session: &mut dyn SqlSession) -> Result<Option<Outcome>, Fault> {
        let (Some(transaction), Some(prepared)) = (&mut self.transaction, &self.prepared) else {
            return Err(Fault::Machine("no transaction was submitted".to_owned()));
        };
        if let Poll::Ready(outcome) = transaction.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            self.transaction = None;
            return outcome.map(Some);
        }
        let mailbox = &mut *open(&self.mailbox);
        let query = mailbox.query.take();
        let query = query.ok_or_else(|| Fault::Machine("a transaction waits for nothing".to_owned()))?;
        let statement = prepared.statements.pick(&prepared.handles, query);
        mailbox.parameters.with(|parameters| session.submit(statement, parameters))?;
        self.statements += 1;
        Ok(None)
    }

    /// Reads the available part of a statement's answer; true if it is complete.
    fn take(&mut self, session: &mut dyn SqlSession) -> Result<bool, Fault> {
        let mailbox = &mut *open(&self.mailbox);
        mailbox.outcome = Some(match session.advance(&mut mailbox.answer) {
            Ok(Progress::Pending) => return Ok(false),
            Ok(Progress::Done(rows)) => Ok(rows),
            // The transaction decides: it may be retried.
            Err(Fault::Server(text)) => Err(Fault::Server(text)),
            Err(fault) => return Err(fault),
        });
        Ok(true)
    }
}

impl Client for Terminal {
    fn set_number(&mut self, number: u64) {
        self.place = Place::of(number, &self.config);
    }

    fn compute_in(&mut self, compute: Compute) {
        self.compute = compute;
    }

    fn open(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.prepared = Some(Prepared::new(session.sql()?, &self.config, self.compute)?);
        Ok(())
    }

    fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    fn prepare(&mut self) {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let draw = |random: &mut Random| Input::draw(&self.config, self.place, random, now_us);
        let mut input = draw(&mut self.random);
        if self.config.pauses {
            while !self.pauses.before(input.kind, &mut self.random) {
                input = draw(&mut self.random);
            }
        }
        self.kind = input.kind;
        self.input = Some(input);
    }

    fn pauses(&self) -> bool {
        self.config.pauses
    }

    fn pause_ns(&self) -> u64 {
        self.pauses.next_ns()
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        if self.prepared.is_none() {
            self.open(session)?;
        }
        let session = session.sql()?;
        let rules = self.prepared.as_ref().ok_or_else(|| Fault::Machine("no statement is prepared".to_owned()))?.rules;
        let input = self.input.take().ok_or_else(|| Fault::Machine("no transaction was prepared".to_owned()))?;
        self.transaction = None;
        open(&self.mailbox).reset();
        self.transaction = Some(Box::pin(carry_out(StatementChannel::new(Arc::clone(&self.mailbox)), input, rules)));
        self.go_on(session).map(drop)
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let session = session.sql()?;
        // An embedded database answers at once, so its transactions complete in one call.
        let at_once = session.descriptor().is_none();
        loop {
            if !self.take(session)? {
                return Ok(Progress::Pending);
            }
            let outcome = self.go_on(session)?;
            for _ in 0..std::mem::take(&mut open(&self.mailbox).retries) {
                parts.part(RETRY);
            }
            match outcome {
                Some(outcome) => {
                    if outcome.rolled_back {
                        parts.part(ROLLBACK);
                    }
                    return Ok(Progress::Done(outcome.shown.unsigned_abs()));
                }
                None if at_once => {}
                None => return Ok(Progress::Pending),
            }
        }
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        self.kind as usize
    }
}
