//! Loads the initial population: the product's own way of adding many rows where it has one, else many in one `INSERT`;
//! each job in one transaction. The next rows are made while the server adds those before.

use std::{
    collections::BTreeMap,
    mem::take,
    sync::atomic::{AtomicU64, Ordering},
};

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
/// Values of a table that wait until they are sent.
const WAITING: usize = 10_000;

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
    let mut loader = Loader { session, done, tables, under_way: 0 };
    for (number, job) in (0..).zip(jobs(config)).filter(|(number, _)| number % of == partition) {
        begin.iter().try_for_each(|statement| loader.session.run(statement).map(drop))?;
        make(config, seed, number, job, &mut loader)?;
        (0..TABLES.len()).try_for_each(|table| loader.flush(table))?;
        loader.finish()?;
        loader.session.run("COMMIT")?;
    }
    Ok(())
}

/// Rows of one table that wait to be sent.
#[derive(Default)]
struct Batch {
    rows: usize,
    parameters: Parameters,
    /// The statements that were used, by how many rows they add.
    statements: BTreeMap<usize, Statement>,
}

struct Loader<'a> {
    session: &'a mut dyn SqlSession,
    done: &'a AtomicU64,
    tables: Vec<Batch>,
    /// Rows that were sent and whose answer was not taken.
    under_way: usize,
}

impl Loader<'_> {
    fn statement(&mut self, table: usize, rows: usize) -> Result<Statement, Fault> {
        if let Some(statement) = self.tables[table].statements.get(&rows) {
            return Ok(*statement);
        }
        let described = describe(&insert(&TABLES[table], rows), &TABLES, self.session.dialect());
        let statement = self.session.prepare_described(&described)?;
        self.tables[table].statements.insert(rows, statement);
        Ok(statement)
    }

    /// Takes the answer to what was sent.
    fn finish(&mut self) -> Result<(), Fault> {
        if self.under_way > 0 {
            self.session.finish(&mut Discard)?;
            self.done.fetch_add(take(&mut self.under_way) as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sends what waits.
    fn flush(&mut self, table: usize) -> Result<(), Fault> {
        self.finish()?;
        let Self { session, tables, .. } = self;
        let rows = tables[table].rows;
        if rows == 0 {
            return Ok(());
        }
        if tables[table].parameters.with(|values| session.submit_copy(&TABLES[table], values))? {
            self.under_way = rows;
        } else {
            self.insert(table, rows)?;
        }
        let batch = &mut self.tables[table];
        batch.rows = 0;
        batch.parameters.clear();
        Ok(())
    }

    /// As many rows at once as the widest statement takes, fewer by powers of two: few statements serve every number.
    fn insert(&mut self, table: usize, rows: usize) -> Result<(), Fault> {
        let columns = TABLES[table].columns.len();
        let mut sent = 0;
        while sent < rows {
            self.finish()?;
            let left = rows - sent;
            let widest = WIDEST / columns;
            let at_once = if left >= widest { widest } else { 1 << left.ilog2() };
            let statement = self.statement(table, at_once)?;
            let Self { session, tables, .. } = self;
            tables[table]
                .parameters
                .with(|values| session.submit(statement, &values[sent * columns..(sent + at_once) * columns]))?;
            self.under_way = at_once;
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
