//! How a transaction, written as straight code, is driven one statement at a time.
//!
//! A transaction is an `async` function, used as what the compiler makes of it: a state machine that stops at each
//! statement. There is no runtime and no waker: the terminal takes the statement from the mailbox, carries it through
//! the session as the load loop allows, puts the answer into the mailbox and goes on.

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

/// What a transaction and its terminal hand each other.
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
    /// Transactions that were begun again because another one was in the way, since the terminal last looked.
    pub retries: u64,
}

impl Mailbox {
    /// Forgets what an abandoned transaction left.
    pub fn reset(&mut self) {
        (self.query, self.outcome, self.retries) = (None, None, 0);
    }
}

/// A mailbox that two hands hold; only one of them moves at any time, so its lock is never waited for.
pub type Shared = Arc<Mutex<Mailbox>>;

/// The mailbox behind its lock.
pub fn open(mailbox: &Shared) -> MutexGuard<'_, Mailbox> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transaction's hand.
pub struct StatementChannel {
    mailbox: Shared,
    /// Rows of the last statement.
    pub answer: Answer,
}

impl StatementChannel {
    /// Talks through `mailbox`.
    pub fn new(mailbox: Shared) -> Self {
        Self { mailbox, answer: Answer::default() }
    }

    /// Runs `query` and returns the number of rows that it delivered or changed.
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

    /// Runs a query that must deliver one row.
    ///
    /// # Errors
    /// [`Fault::Wrong`] when it delivers none or several.
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
    /// [`Fault::Wrong`] when it changes none or several.
    pub async fn change(&mut self, named: Named, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        match self.run(Query::Named(named), parameters).await? {
            1 => Ok(()),
            rows => Err(Fault::Wrong(format!("{named:?}: {rows} rows changed, and there is one"))),
        }
    }

    /// Counts a transaction that must be begun again.
    pub fn retry(&self) {
        open(&self.mailbox).retries += 1;
    }
}
