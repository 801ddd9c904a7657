//! A client that loads batches of rows into a SQL table.

use std::{
    io::Write as _,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Discard, Progress, Session, SqlSession, Statement, wait_ready},
    sql::{Isolation, describe, insert},
    workload::{Client, PartRecorder},
};

use super::{
    Loaded, Shared,
    config::Way,
    tables::{self, LOADED},
};
use crate::tpcc::values::Parameters;

/// One client.
pub(super) struct Loader {
    shared: Arc<Shared>,
    loaded: Arc<Loaded>,
    /// The batch as lines.
    lines: Vec<u8>,
    /// The batch as values: those of each statement, one after the other.
    values: Vec<Parameters>,
    prepared: Option<Prepared>,
    /// Steps of the batch that were sent, and those that were answered.
    sent: usize,
    answered: usize,
    rows: u64,
    /// The first error of the batch.
    failed: Option<Fault>,
    statements: u64,
}

/// The statements of the client's session.
struct Prepared {
    before: Vec<Statement>,
    insert: Statement,
    after: Vec<Statement>,
    /// Statements that may be sent before any is answered.
    ahead: usize,
}

impl Loader {
    pub(super) fn new(shared: Arc<Shared>, loaded: Arc<Loaded>) -> Self {
        Self {
            shared,
            loaded,
            lines: Vec::new(),
            values: Vec::new(),
            prepared: None,
            sent: 0,
            answered: 0,
            rows: 0,
            failed: None,
            statements: 0,
        }
    }

    /// Requests that carry values: one, or one for each row.
    fn carriers(&self) -> usize {
        if self.shared.config.way == Way::Single { self.shared.config.batch as usize } else { 1 }
    }

    /// The number of requests for a batch.
    fn steps(&self) -> usize {
        self.carriers() + self.prepared.as_ref().map_or(0, |prepared| prepared.before.len() + prepared.after.len())
    }

    /// True for a step that carries values; other steps count as changing nothing, whatever the product reports.
    fn carries(&self, step: usize) -> bool {
        let before = self.prepared.as_ref().map_or(0, |prepared| prepared.before.len());
        (before..before + self.carriers()).contains(&step)
    }

    /// Sends everything that may be sent now.
    fn go_on(&mut self, session: &mut dyn SqlSession) -> Result<(), Fault> {
        let (steps, carriers) = (self.steps(), self.carriers());
        if self.shared.config.way == Way::Append && self.sent == 0 {
            (self.sent, self.statements) = (1, self.statements + 1);
            return match self.values[0].with(|values| session.submit_copy(&self.shared.tables[0], values))? {
                true => Ok(()),
                false => Err(Fault::Refused("sessions of this arm have no appender".to_owned())),
            };
        }
        let Some(prepared) = &self.prepared else {
            if self.sent > 0 {
                return Ok(());
            }
            let columns = self.shared.tables[0].columns;
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            self.sent = 1;
            self.statements += 1;
            return match session.submit_lines(LOADED, &names, &self.lines)? {
                true => Ok(()),
                false => Err(Fault::Refused(
                    "sessions of this arm take no COPY (row-level security): load by `multi` or `single`".to_owned(),
                )),
            };
        };
        while self.sent < steps && self.sent < self.answered + prepared.ahead {
            let carrier = self.sent.checked_sub(prepared.before.len());
            match carrier.filter(|number| *number < carriers) {
                Some(number) => self.values[number].with(|values| session.submit(prepared.insert, values))?,
                None => {
                    let after = carrier.map(|number| prepared.after[number - carriers]);
                    session.submit(after.unwrap_or_else(|| prepared.before[self.sent]), &[])?;
                }
            }
            self.sent += 1;
            self.statements += 1;
        }
        Ok(())
    }

    /// Loads the prepared batch, and waits for it.
    pub(super) fn whole(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.submit(session)?;
        while self.take(session)? == Progress::Pending {
            wait_ready(session.connection())?;
        }
        Ok(())
    }

    /// The batch is answered.
    fn end(&mut self) -> Result<Progress, Fault> {
        if let Some(fault) = self.failed.take() {
            return Err(fault);
        }
        let batch = self.shared.config.batch;
        self.loaded.since.fetch_add(batch, Ordering::Relaxed);
        if self.rows == batch {
            Ok(Progress::Done(batch))
        } else {
            Err(Fault::Wrong(format!("of a batch of {batch} rows the server has taken {}", self.rows)))
        }
    }
}

impl Client for Loader {
    fn open(&mut self, session: &mut Session) -> Result<(), Fault> {
        let way = self.shared.config.way;
        if way.has_lines() || way == Way::Append {
            return Ok(());
        }
        let (tables, session) = (self.shared.tables, session.sql()?);
        let rows = if way == Way::Single { 1 } else { self.shared.config.batch };
        let described = describe(&insert(&tables[0], rows as usize), tables, session.dialect());
        let insert = session.prepare_described(&described)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if way == Way::Single {
            for statement in (session.dialect().begin)(Isolation::RepeatableRead) {
                before.push(session.prepare(statement)?);
            }
            after.push(session.prepare("COMMIT")?);
        }
        let ahead = if session.pipelines() { usize::MAX / 2 } else { 1 };
        self.prepared = Some(Prepared { before, insert, after, ahead });
        Ok(())
    }

    /// Rows differ by their numbers, which continue.
    fn seed(&mut self, _seed: u64) {}

    fn put_back(&mut self, session: &mut Session) -> Result<(), Fault> {
        let config = &self.shared.config;
        // Other clients wait here, not for the server in their slots. Rows that they load between two of the statements
        // would stay in one table only.
        let _emptying = self.loaded.emptying.lock().unwrap_or_else(PoisonError::into_inner);
        if self.loaded.since.load(Ordering::Relaxed) < config.keep {
            return Ok(());
        }
        let session = session.sql()?;
        let statements = tables::emptying(config.table, session.dialect().grammar);
        statements.iter().try_for_each(|statement| session.run(statement).map(drop))?;
        self.loaded.since.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn prepare(&mut self) {
        let Self { shared, loaded, lines, values, .. } = self;
        let config = &shared.config;
        let first = loaded.next.fetch_add(config.batch, Ordering::Relaxed);
        let ids = first..first + config.batch;
        if config.way.has_lines() {
            lines.clear();
            for id in ids {
                // Writing to memory cannot fail.
                let _ = write!(lines, "{id}\t{}\t{}", id % tables::PARENTS, tables::number_of(id));
                for field in 0..config.fields {
                    lines.push(b'\t');
                    lines.extend_from_slice(shared.text(id, field));
                }
                lines.push(b'\n');
            }
            return;
        }
        let each = if config.way == Way::Single { config.batch as usize } else { 1 };
        values.resize_with(each, Parameters::default);
        values.iter_mut().for_each(Parameters::clear);
        for (number, id) in ids.enumerate() {
            let values = &mut values[number % each];
            values.integer(id).integer(id % tables::PARENTS).integer(tables::number_of(id));
            for field in 0..config.fields {
                values.text(shared.text(id, field));
            }
        }
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        if self.prepared.is_none() {
            self.open(session)?;
        }
        (self.sent, self.answered, self.rows, self.failed) = (0, 0, 0, None);
        self.go_on(session.sql()?)
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        self.take(session)
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        0
    }
}

impl Loader {
    /// Reads the available part of the answer, and sends what follows.
    fn take(&mut self, session: &mut Session) -> Result<Progress, Fault> {
        let (session, steps) = (session.sql()?, self.steps());
        while self.answered < steps {
            match session.advance(&mut Discard) {
                Ok(Progress::Pending) => return Ok(Progress::Pending),
                Ok(Progress::Done(rows)) => self.rows += if self.carries(self.answered) { rows } else { 0 },
                // The answers to later requests are still to come.
                Err(Fault::Server(words)) => {
                    self.failed.get_or_insert(Fault::Server(words));
                }
                Err(fault) => return Err(fault),
            }
            self.answered += 1;
            self.go_on(session)?;
        }
        self.end()
    }
}
