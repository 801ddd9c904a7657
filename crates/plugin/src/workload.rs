//! What the load is, and who offers it. A workload knows no protection.

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

/// What the load is, for any program that offers it. One file below `workloads/`, one line in its list.
pub trait Workload: Send + Sync {
    /// Who offers the load.
    fn offered_by(&self) -> Load<'_>;

    /// The operations that it records, in the order of the report: `READ`, `UPDATE`, ….
    fn operations(&self) -> Vec<&str>;

    /// Where operations are statements, or transactions of them: the text of each, in the order of
    /// [`Workload::operations`].
    fn texts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// True when its sessions are [`Session::Sql`].
    fn speaks_sql(&self) -> bool {
        !self.tables().is_empty()
    }

    /// Why it cannot run on servers of `database`; `running` ones are those that Tithe did not start.
    fn refuses(&self, _database: &DatabaseEntry, _running: bool) -> Option<String> {
        None
    }

    /// True when it changes data.
    fn writes(&self) -> bool;

    /// True when it asks for records in the order of their keys.
    fn scans(&self) -> bool {
        false
    }

    /// The table that it works on; for a workload on SQL tables, a table beside them where evidence writes its
    /// canaries.
    fn table(&self) -> Table;

    /// The SQL tables that it works on; none for a workload on records by key.
    fn tables(&self) -> &'static [SqlTable] {
        &[]
    }

    /// What brings data of the user's own into launched servers before clients load anything; `None` where clients load
    /// all there is.
    fn restore(&self) -> Option<&dyn Restore> {
        None
    }

    /// What it asks of tables that neither Tithe nor [`Workload::restore`] brings, where `placeholder` writes
    /// parameters; `None` where it asks nothing of such.
    fn own_tables(&self, _placeholder: fn(usize) -> String) -> Option<Asked> {
        None
    }

    /// What it is learned by from a running server; `None` where it says by itself what the load is.
    fn learns(&self) -> Option<&dyn Learns> {
        None
    }

    /// Its statements, where they are the user's own.
    fn statements(&self) -> Vec<FileStatement> {
        Vec::new()
    }

    /// Where its clients compute with values, unless an arm says otherwise.
    fn compute(&self) -> Compute {
        Compute::Server
    }

    /// What completes `table` on products that write as `grammar`: what follows its definition, and statements once it
    /// is there, where `{mark}` is what tells Tithe's own.
    fn completes(&self, _table: &SqlTable, _grammar: Grammar) -> (String, Vec<String>) {
        (String::new(), Vec::new())
    }

    /// Operations that one request of its clients stands for: the rows of a batch, where an operation is a row.
    fn operations_per_request(&self) -> u64 {
        1
    }

    /// Rows that loading writes, where the experiment asks for `records`.
    fn rows(&self, records: u64) -> u64 {
        records
    }

    /// Properties worth a line in the report (`requestdistribution = zipfian`, `values = incompressible`).
    fn describe(&self) -> Vec<(String, String)>;

    /// Properties that have no effect here, each with the reason; [`Workload::describe`] says them too.
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
    /// The values of variables travel within its text.
    pub as_text: bool,
    /// It is part of a pipeline, which has one answer.
    pub in_pipeline: bool,
}

/// Who offers the load of a workload.
#[derive(Clone, Copy)]
pub enum Load<'a> {
    /// Tithe's own clients.
    Clients(&'a dyn Clients),
    /// Another program, in whole slices.
    Program(&'a dyn Program),
}

impl<'a> Load<'a> {
    /// Tithe's own clients, where they offer it.
    pub fn clients(self) -> Option<&'a dyn Clients> {
        match self {
            Self::Clients(clients) => Some(clients),
            Self::Program(_) => None,
        }
    }

    /// The other program, where one offers it.
    pub fn program(self) -> Option<&'a dyn Program> {
        match self {
            Self::Clients(_) => None,
            Self::Program(program) => Some(program),
        }
    }
}

/// Clients of Tithe's own: what they load, how they work on it, and what must hold of it.
pub trait Clients: Send + Sync {
    /// Loads part `partition` of `of` through `session`; adds each record to `done`.
    ///
    /// # Errors
    /// The first fault.
    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault>;

    /// Looks whether all data are as the workload's rules say, through a client's session; `fresh` says that nothing
    /// was done since loading. Returns what holds, in one sentence; `None` where there are no such rules.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with every rule that is broken; the session's fault.
    fn check(&self, _session: &mut Session, _fresh: bool) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    /// What the first transactions that `seed` draws answer through `session`, statement by statement; each is rolled
    /// back. `None` where answers are checked otherwise, or cannot be compared.
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

/// What a statement answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The statement, by its number in [`Workload::operations`].
    pub operation: usize,
    /// A number that equal rows share, in whatever order they come.
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

    /// What it has come to while no client is at work, in numbers of the workload's own; none where there is nothing to
    /// know.
    fn reached(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Goes on where another of the same workload, in another process and on the same data, has
    /// [`reached`](ArmState::reached) to.
    fn go_on(&self, _reached: &[i64]) {}

    /// Says that further states work on the same data at the same time, of which each has a `part` of its own out of
    /// `of`: what this one adds to the data is then never what another one adds. Before anything is added.
    fn divide(&self, _part: u64, _of: u64) {}
}

/// That of clients that share nothing but the arm's data.
pub struct NoState;

impl ArmState for NoState {
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync) {
        self
    }
}

/// One client: makes operations and carries them through a session.
///
/// The load loop calls `seed` at the start of a slot, then for each operation `prepare` (before the clock),
/// `submit` (after it) and `advance` until the operation is done.
pub trait Client: Send {
    /// Says which of all clients this is, from 0 on, before the first `seed`.
    fn set_number(&mut self, _number: u64) {}

    /// Says where to compute with values, in place of what the workload says, before the first `submit`.
    fn compute_in(&mut self, _compute: Compute) {}

    /// Prepares `session` for all operations, before anything is measured.
    ///
    /// # Errors
    /// The server's error.
    fn open(&mut self, _session: &mut Session) -> Result<(), Fault> {
        Ok(())
    }

    /// Starts the stream of operations again: every arm of a block gets the same seed, and so the same operations.
    fn seed(&mut self, seed: u64);

    /// Called before each slot, before anything of it is measured: puts back what earlier slots have added.
    ///
    /// # Errors
    /// The session's fault.
    fn put_back(&mut self, _session: &mut Session) -> Result<(), Fault> {
        Ok(())
    }

    /// True when it pauses between operations of a closed loop.
    fn pauses(&self) -> bool {
        false
    }

    /// How long it pauses before the operation that [`Client::prepare`] has made, ns.
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

    /// Takes what has arrived, checks it, sends a further request where the operation has one.
    ///
    /// # Errors
    /// [`Fault::Server`] counts as a failed operation, [`Fault::Wrong`] invalidates the frame, anything else ends it.
    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault>;

    /// Statements sent so far; 0 of a client on records by key.
    fn statements(&self) -> u64 {
        0
    }

    /// The number of the operation in [`Workload::operations`] under which the whole is recorded.
    fn operation(&self) -> usize;
}

/// Records parts of a compound operation (the read and the update of a read-modify-write).
pub trait PartRecorder {
    /// Part `operation` has just ended; it began when the one before it ended, or when the whole was submitted.
    fn part(&mut self, operation: usize);
}
