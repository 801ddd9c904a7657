//! Loads the initial population: many rows in one `INSERT`, each job in one transaction.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    config::Config,
    population::{Sink, jobs, make},
    tables::TABLES,
    values::Parameters,
};
use crate::{
    fault::Fault,
    session::{Discard, SqlSession, Statement},
    sql::{Isolation, describe, insert},
};

/// Parameters in one `INSERT`, at most; beyond some hundred a larger number saves nothing more.
const WIDEST: usize = 1000;

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
    let mut loader = Loader { session, done, tables: TABLES.iter().map(|_| Batch::default()).collect() };
    for (number, job) in (0..).zip(jobs(config)).filter(|(number, _)| number % of == partition) {
        begin.iter().try_for_each(|statement| loader.session.run(statement).map(drop))?;
        make(config, seed, number, job, &mut loader)?;
        (0..TABLES.len()).try_for_each(|table| loader.flush(table))?;
        loader.session.run("COMMIT")?;
    }
    Ok(())
}

/// Rows of one table that wait to be sent.
#[derive(Default)]
struct Batch {
    rows: usize,
    parameters: Parameters,
    /// The statements for a full batch and for one row.
    full: Option<Statement>,
    single: Option<Statement>,
}

struct Loader<'a> {
    session: &'a mut dyn SqlSession,
    done: &'a AtomicU64,
    tables: Vec<Batch>,
}

impl Loader<'_> {
    fn statement(&mut self, table: usize, rows: usize) -> Result<Statement, Fault> {
        let batch = &mut self.tables[table];
        let known = if rows == 1 { &mut batch.single } else { &mut batch.full };
        if let Some(statement) = known {
            return Ok(*statement);
        }
        let described = describe(&insert(&TABLES[table], rows), &TABLES, self.session.dialect());
        Ok(*known.insert(self.session.prepare_described(&described)?))
    }

    /// Sends what waits: a full batch at once, fewer rows one by one.
    fn flush(&mut self, table: usize) -> Result<(), Fault> {
        let rows = self.tables[table].rows;
        if rows == 0 {
            return Ok(());
        }
        let at_once = if rows == capacity(table) { rows } else { 1 };
        let statement = self.statement(table, at_once)?;
        let Self { session, tables, .. } = self;
        let batch = &mut tables[table];
        let width = batch.parameters.len() / rows * at_once;
        batch.parameters.with(|parameters| {
            parameters.chunks(width).try_for_each(|row| session.call(statement, row, &mut Discard).map(drop))
        })?;
        self.done.fetch_add(rows as u64, Ordering::Relaxed);
        batch.rows = 0;
        batch.parameters.clear();
        Ok(())
    }
}

/// Rows of a full batch.
fn capacity(table: usize) -> usize {
    WIDEST / TABLES[table].columns.len()
}

impl Sink for Loader<'_> {
    fn row(&mut self, table: usize, fill: &mut dyn FnMut(&mut Parameters)) -> Result<(), Fault> {
        let batch = &mut self.tables[table];
        fill(&mut batch.parameters);
        batch.rows += 1;
        if batch.rows == capacity(table) { self.flush(table) } else { Ok(()) }
    }
}
