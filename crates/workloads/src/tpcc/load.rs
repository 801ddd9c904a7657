//! Loads the initial population: by the product's own bulk method if it has one, else many rows in one `INSERT`; each
//! job in one transaction. While the server adds rows, the next ones are made and, if the session accepts them, sent.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Discard, SqlSession, Statement},
    sql::{Isolation, describe, insert},
};

use super::{
    config::Config,
    population::{Sink, jobs, make},
    tables::TABLES,
    values::Parameters,
};

/// Most parameters in one `INSERT`: SQLite takes 32,766 (documentation, "Limits"), MariaDB and MySQL 65,535; a few
/// large requests save processor time of the client.
const WIDEST: usize = 8000;
/// Values of a table that wait until they are sent.
const WAITING: usize = 10_000;
/// Requests that may be sent ahead of the server's current one: it finds its next rows, even if the client is late.
const AHEAD: usize = 2;

/// Loads the jobs whose number leaves `partition` when divided by `of`; adds each row to `done`.
///
/// # Errors
/// The first fault.
pub fn load(
    config: &Config,
    seed: u64,
    session: &mut dyn SqlSession,
    (partition, of): (u64, u64),
    done: &AtomicU64,
) -> Result<(), Fault> {
    let begin = (session.dialect().begin)(Isolation::RepeatableRead);
    let tables = TABLES.iter().map(|_| Batch::default()).collect();
    let ahead = if session.pipelines() { AHEAD } else { 0 };
    let mut loader = Loader { session, done, tables, under_way: VecDeque::new(), ahead };
    for (number, job) in (0..).zip(jobs(config)).filter(|(number, _)| number % of == partition) {
        begin.iter().try_for_each(|statement| loader.session.run(statement).map(drop))?;
        make(config, seed, number, job, &mut loader)?;
        (0..TABLES.len()).try_for_each(|table| loader.flush(table))?;
        loader.wait_for(0)?;
        loader.session.run("COMMIT")?;
    }
    Ok(())
}

/// Rows of one table that wait to be sent.
#[derive(Default)]
struct Batch {
    rows: usize,
    parameters: Parameters,
    /// The statements that were used, by their number of rows.
    statements: BTreeMap<usize, Statement>,
}

struct Loader<'a> {
    session: &'a mut dyn SqlSession,
    done: &'a AtomicU64,
    tables: Vec<Batch>,
    /// Sent rows without an answer yet, oldest first.
    under_way: VecDeque<usize>,
    /// Answers that may be open when the next request is sent.
    ahead: usize,
}

impl Loader<'_> {
    fn statement(&mut self, table: usize, rows: usize) -> Result<Statement, Fault> {
        if let Some(statement) = self.tables[table].statements.get(&rows) {
            return Ok(*statement);
        }
        self.wait_for(0)?;
        let described = describe(&insert(&TABLES[table], rows), &TABLES, self.session.dialect());
        let statement = self.session.prepare_described(&described)?;
        self.tables[table].statements.insert(rows, statement);
        Ok(statement)
    }

    /// Reads answers until `open` are left.
    fn wait_for(&mut self, open: usize) -> Result<(), Fault> {
        while self.under_way.len() > open {
            self.session.finish(&mut Discard)?;
            self.done.fetch_add(self.under_way.pop_front().unwrap_or_default() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sends the waiting rows.
    fn flush(&mut self, table: usize) -> Result<(), Fault> {
        self.wait_for(self.ahead)?;
        let Self { session, tables, .. } = self;
        let rows = tables[table].rows;
        if rows == 0 {
            return Ok(());
        }
        if tables[table].parameters.with(|values| session.submit_copy(&TABLES[table], values))? {
            self.under_way.push_back(rows);
        } else {
            self.insert(table, rows)?;
        }
        let batch = &mut self.tables[table];
        batch.rows = 0;
        batch.parameters.clear();
        Ok(())
    }

    /// As many rows at once as the widest statement takes, the rest in powers of two: few statements are enough for
    /// every number.
    fn insert(&mut self, table: usize, rows: usize) -> Result<(), Fault> {
        let columns = TABLES[table].columns.len();
        let mut sent = 0;
        while sent < rows {
            self.wait_for(self.ahead)?;
            let left = rows - sent;
            let widest = WIDEST / columns;
            let at_once = if left >= widest { widest } else { 1 << left.ilog2() };
            let statement = self.statement(table, at_once)?;
            let Self { session, tables, .. } = self;
            tables[table]
                .parameters
                .with(|values| session.submit(statement, &values[sent * columns..(sent + at_once) * columns]))?;
            self.under_way.push_back(at_once);
            sent += at_once;
        }
        Ok(())
    }
}

impl Sink for Loader<'_> {
    fn row(&mut self, table: usize, fill: &mut dyn FnMut(&mut Parameters)) -> Result<(), Fault> {
        let batch = &mut self.tables[table];
        fill(&mut batch.parameters);
        batch.rows += 1;
        let full = WAITING / TABLES[table].columns.len();
        if batch.rows == full { self.flush(table) } else { Ok(()) }
    }
}
