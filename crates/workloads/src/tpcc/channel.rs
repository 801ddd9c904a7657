//! How a transaction, written as straight code, is driven one statement at a time.
//!
//! A transaction is an `async` function, used as what the compiler makes of it: a state machine that stops at each
//! statement. There is no runtime and no waker. The terminal takes the statement from the mailbox, runs it through the
//! session as the load loop allows, puts the answer into the mailbox and continues.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use tithe_machine::fault::Fault;
use tithe_plugin::session::Parameter;

use super::{
    statements::{Named, Query},
    values::{Answer, Parameters},
};

/// The exchange between a transaction and its terminal.
#[derive(Default)]
pub struct Mailbox {
    /// The statement that the transaction waits for.
    pub query: Option<Query>,
    /// Its parameters.
    pub parameters: Parameters,
    /// Its rows.
    pub answer: Answer,
    /// How it ended: rows, or the fault.
    pub outcome: Option<Result<u64, Fault>>,
    /// Transactions that were retried after a conflict, since the terminal last checked.
    pub retries: u64,
}

impl Mailbox {
    /// Clears the remains of an abandoned transaction.
    pub fn reset(&mut self) {
        (self.query, self.outcome, self.retries) = (None, None, 0);
    }
}

/// A mailbox with two owners; only one of them runs at any time, so its lock never blocks.
pub type Shared = Arc<Mutex<Mailbox>>;

/// The unlocked mailbox.
pub fn open(mailbox: &Shared) -> MutexGuard<'_, Mailbox> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transaction's side.
pub struct StatementChannel {
    mailbox: Shared,
    /// Rows of the last statement.
    pub answer: Answer,
}

impl StatementChannel {
    /// Communicates through `mailbox`.
    pub fn new(mailbox: Shared) -> Self {
        Self { mailbox, answer: Answer::default() }
    }

    /// Runs `query` and returns the number of rows that it returned or changed.
    ///
    /// # Errors
    /// The session's fault.
    pub async fn run(&mut self, query: Query, parameters: &[Parameter<'_>]) -> Result<u64, Fault> {
        {
            let mut mailbox = open(&self.mailbox);
            mailbox.parameters.clear();
            parameters.iter().for_each(|parameter| mailbox.parameters.push(*parameter));
            mailbox.answer.clear();
            mailbox.query = Some(query);
        }
        poll_fn(|_| match open(&self.mailbox).outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        })
        .await
        .inspect(|_| std::mem::swap(&mut self.answer, &mut open(&self.mailbox).answer))
    }

    /// Runs a query that must return one row.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if it returns none or several.
    pub async fn one(&mut self, query: Query, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.run(query, parameters).await?;
        match self.answer.rows() {
            1 => Ok(()),
            rows => Err(Fault::Wrong(format!("{query:?}: {rows} rows, and there is one"))),
        }
    }

    /// Runs a statement that must change one row.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if it changes none or several.
    pub async fn change(&mut self, named: Named, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        match self.run(Query::Named(named), parameters).await? {
            1 => Ok(()),
            rows => Err(Fault::Wrong(format!("{named:?}: {rows} rows changed, and there is one"))),
        }
    }

    /// Counts a transaction that must be retried.
    pub fn retry(&self) {
        open(&self.mailbox).retries += 1;
    }
}
