//! The load, and what offers it. A workload knows no protection.

use std::sync::{Arc, atomic::AtomicU64};

use tithe_machine::fault::Fault;
use tithe_model::catalogue::DatabaseEntry;

use crate::{
    own_tables::Asked,
    production::Learns,
    program::Program,
    restore::Restore,
    session::{Progress, Session, Table},
    sql::{Compute, Grammar, SqlTable},
};

/// A load, for any program that offers it. One file below `workloads/`, one line in its list.
pub trait Workload: Send + Sync {
    /// What offers the load.
    fn offered_by(&self) -> Load<'_>;

    /// The operations that it records, in the order of the report: `READ`, `UPDATE`, ….
    fn operations(&self) -> Vec<&str>;

    /// If operations are statements, or transactions of them: the text of each, in the order of
    /// [`Workload::operations`].
    fn texts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// True when its sessions are [`Session::Sql`].
    fn speaks_sql(&self) -> bool {
        !self.tables().is_empty()
    }

    /// Why it cannot run on servers of `database`; `running` means that Tithe did not start them.
    fn refuses(&self, _database: &DatabaseEntry, _running: bool) -> Option<String> {
        None
    }

    /// True when it changes data.
    fn writes(&self) -> bool;

    /// True when it asks for records in the order of their keys.
    fn scans(&self) -> bool {
        false
    }

    /// The table that it works on; for a workload on SQL tables, a separate table to which evidence writes its
    /// canaries.
    fn table(&self) -> Table;

    /// The SQL tables that it works on; none for a workload on records by key.
    fn tables(&self) -> &'static [SqlTable] {
        &[]
    }

    /// Restores the user's own data into launched servers before clients load anything; `None` if clients load all
    /// data.
    fn restore(&self) -> Option<&dyn Restore> {
        None
    }

    /// Its requests for tables that neither Tithe nor [`Workload::restore`] creates, with parameters written by
    /// `placeholder`; `None` if it uses no such tables.
    fn own_tables(&self, _placeholder: fn(usize) -> String) -> Option<Asked> {
        None
    }

    /// How it learns its load from a running server; `None` if its load is fixed.
    fn learns(&self) -> Option<&dyn Learns> {
        None
    }

    /// Its statements, if they are the user's own.
    fn statements(&self) -> Vec<FileStatement> {
        Vec::new()
    }

    /// Where its clients compute with values, unless an arm says otherwise.
    fn compute(&self) -> Compute {
        Compute::Server
    }

    /// Completes `table` on products with this `grammar`: text after its definition, and statements after its creation,
    /// in which `{mark}` marks Tithe's own objects.
    fn completes(&self, _table: &SqlTable, _grammar: Grammar) -> (String, Vec<String>) {
        (String::new(), Vec::new())
    }

    /// Operations in one request of its clients: the rows of a batch, if an operation is a row.
    fn operations_per_request(&self) -> u64 {
        1
    }

    /// Rows that loading writes if the experiment sets `records`.
    fn rows(&self, records: u64) -> u64 {
        records
    }

    /// Properties to show in the report (`requestdistribution = zipfian`, `values = incompressible`).
    fn describe(&self) -> Vec<(String, String)>;

    /// Properties that have no effect here, each with the reason; [`Workload::describe`] includes them too.
    fn ignored(&self) -> Vec<(String, &'static str)> {
        Vec::new()
    }
}

/// A statement of the user's own in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatement {
    /// The name of the file.
    pub file: String,
    /// The line it begins in, from 1 on.
    pub line: usize,
    /// The column it begins in, from 1 on.
    pub column: usize,
    /// Its text, with `:name` for each variable.
    pub text: String,
    /// The values of variables are sent within its text.
    pub as_text: bool,
    /// It is part of a pipeline, which has one answer.
    pub in_pipeline: bool,
}

/// What offers the load of a workload.
#[derive(Clone, Copy)]
pub enum Load<'a> {
    /// Tithe's own clients.
    Clients(&'a dyn Clients),
    /// Another program, in whole slices.
    Program(&'a dyn Program),
}

impl<'a> Load<'a> {
    /// Tithe's own clients, if they offer it.
    pub fn clients(self) -> Option<&'a dyn Clients> {
        match self {
            Self::Clients(clients) => Some(clients),
            Self::Program(_) => None,
        }
    }

    /// The other program, if one offers it.
    pub fn program(self) -> Option<&'a dyn Program> {
        match self {
            Self::Clients(_) => None,
            Self::Program(program) => Some(program),
        }
    }
}

/// Tithe's own clients: the data they load, their operations, and the rules for their data.
pub trait Clients: Send + Sync {
    /// Loads part `partition` of `of` through `session`; adds each record to `done`.
    ///
    /// # Errors
    /// The first fault.
    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault>;

    /// Checks all data against the workload's rules, through a client's session; `fresh` means that nothing was done
    /// since loading. Returns what holds, in one sentence; `None` if there are no such rules.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with every rule that is broken; the session's fault.
    fn check(&self, _session: &mut Session, _fresh: bool) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    /// The answers to the first transactions drawn from `seed`, through `session`, statement by statement; each is
    /// rolled back. `None` if answers are checked differently, or cannot be compared.
    ///
    /// # Errors
    /// A broken connection.
    fn answers(&self, _session: &mut Session, _seed: u64) -> Result<Option<Vec<Vec<Answered>>>, Fault> {
        Ok(None)
    }

    /// State that the clients of one arm share (the last inserted key). Fresh data needs a fresh state.
    fn arm_state(&self) -> Arc<dyn ArmState>;

    /// One client on the data of one arm.
    fn client(&self, state: &Arc<dyn ArmState>) -> Box<dyn Client>;
}

/// The answer of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The statement, by its number in [`Workload::operations`].
    pub operation: usize,
    /// A number that is equal for equal rows in any order.
    pub digest: u64,
    /// The beginning of the answer.
    pub words: String,
    /// The server or the script refused it, and the transaction with it.
    pub failed: bool,
}

/// State shared by the clients of one arm; each workload has its own type behind it.
pub trait ArmState: Send + Sync + std::any::Any {
    /// For the workload to get its own type back.
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync);

    /// Its present values while no client is at work, as numbers of the workload's own; none if there are none.
    fn reached(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Continues from the values that another state of the same workload, in another process and on the same data, has
    /// [`reached`](ArmState::reached).
    fn go_on(&self, _reached: &[i64]) {}

    /// Divides the data among several states that work at the same time: this one is `part` out of `of`, so that no two
    /// add the same data. Called before anything is added.
    fn divide(&self, _part: u64, _of: u64) {}
}

/// The state of clients that share nothing but the arm's data.
pub struct NoState;

impl ArmState for NoState {
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync) {
        self
    }
}

/// One client: makes operations and runs them through a session.
///
/// The load loop calls `seed` at the start of a slot, then for each operation `prepare` (before the clock),
/// `submit` (after it) and `advance` until the operation is done.
pub trait Client: Send {
    /// Sets the client's number among all clients, from 0 on, before the first `seed`.
    fn set_number(&mut self, _number: u64) {}

    /// Sets where to compute with values, overriding the workload, before the first `submit`.
    fn compute_in(&mut self, _compute: Compute) {}

    /// Prepares `session` for all operations, before anything is measured.
    ///
    /// # Errors
    /// The server's error.
    fn open(&mut self, _session: &mut Session) -> Result<(), Fault> {
        Ok(())
    }

    /// The change that operations have made to `session` since the last call, if later ones find it; nothing at the
    /// first call. Called outside the measured time.
    ///
    /// # Errors
    /// The server's error.
    fn lasting_change(&mut self, _session: &mut Session) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    /// Restarts the stream of operations: every arm of a block gets the same seed, and so the same operations.
    fn seed(&mut self, seed: u64);

    /// Called before each slot, outside the measured time: undoes additions of earlier slots.
    ///
    /// # Errors
    /// The session's fault.
    fn put_back(&mut self, _session: &mut Session) -> Result<(), Fault> {
        Ok(())
    }

    /// True if it pauses between operations of a closed loop.
    fn pauses(&self) -> bool {
        false
    }

    /// How long it pauses before the operation that [`Client::prepare`] made, ns.
    fn pause_ns(&self) -> u64 {
        0
    }

    /// Makes the next operation, keys and values included.
    fn prepare(&mut self);

    /// Sends the operation's first request.
    ///
    /// # Errors
    /// A broken connection.
    fn submit(&mut self, session: &mut Session) -> Result<(), Fault>;

    /// Reads the available part of the answer, checks it, and sends the operation's next request, if any.
    ///
    /// # Errors
    /// [`Fault::Server`] counts as a failed operation, [`Fault::Wrong`] invalidates the frame, anything else ends it.
    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault>;

    /// Statements sent so far; 0 for a client on records by key.
    fn statements(&self) -> u64 {
        0
    }

    /// The number in [`Workload::operations`] under which the whole operation is recorded.
    fn operation(&self) -> usize;
}

/// Records parts of a compound operation (the read and the update of a read-modify-write).
pub trait PartRecorder {
    /// Part `operation` has just ended; it began when the one before it ended, or when the whole was submitted.
    fn part(&mut self, operation: usize);
}
