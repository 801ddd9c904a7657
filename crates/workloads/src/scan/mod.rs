//! Scans: aggregates, groups and a sort of a whole table, and ranges of keys.
//!
//! An operation is a row that a scan reads, so that costs of scans of all sizes are comparable. The timed request is a
//! whole scan, whose latency is recorded as a whole. A workload has one kind of scan, because the time per row differs
//! between them. Every answer is compared with the expected one, which follows from the rows, and these from the seed.

mod answer;
mod client;
pub mod config;
mod rows;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tithe_machine::fault::Fault;
use tithe_model::{catalogue::PropertyProblem, experiment, quantity};
use tithe_plugin::{
    session::{Discard, Session, Statement, Table},
    sql::{SqlTable, describe, insert},
    workload::{ArmState, Client, Clients, Load, NoState, Workload},
};

pub use self::config::entry;

use self::{
    client::Scanner,
    config::{Config, Query},
    rows::AllRows,
};
use crate::tpcc::values::Parameters;

/// Rows of one request while loading.
const AT_ONCE: u64 = 1000;

/// Scans.
pub struct Scans {
    shared: Arc<Shared>,
    tables: &'static [SqlTable],
    operations: [&'static str; 1],
}

/// Shared by all clients, and never changed.
struct Shared {
    config: Config,
    rows: AllRows,
    groups: Vec<(u64, u64)>,
}

impl Shared {
    /// Rows that a scan reads.
    fn looked_at(&self) -> u64 {
        let all = self.rows.count();
        if self.config.query == Query::Range { self.config.range.min(all) } else { all }
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties.
pub fn make(
    described: &experiment::Workload,
    data: &experiment::Data,
    seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let config = Config::resolve(&described.properties)?;
    if data.records == 0 {
        let problem = "there is nothing to scan".to_owned();
        return Err(vec![("records".to_owned(), problem, "write at least one".to_owned())]);
    }
    let rows = AllRows::new(&config, data.records, seed);
    let (tables, operations, groups) = (rows::tables(&config), [config.query.operation()], rows.by_group());
    Ok(Box::new(Scans { shared: Arc::new(Shared { config, rows, groups }), tables, operations }))
}

impl Workload for Scans {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.operations.to_vec()
    }

    fn writes(&self) -> bool {
        false
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn tables(&self) -> &'static [SqlTable] {
        self.tables
    }

    fn operations_per_request(&self) -> u64 {
        self.shared.looked_at()
    }

    fn describe(&self) -> Vec<(String, String)> {
        let Shared { config, rows, .. } = &*self.shared;
        let bytes = rows.count() * config.row_bytes();
        let size = format!("{} of {} bytes, {}", rows.count(), config.row_bytes(), quantity::size(bytes));
        [
            ("an operation".to_owned(), format!("a row; latencies are of scans of {} rows", self.shared.looked_at())),
            ("scan".to_owned(), config.query.name().to_owned()),
            ("rows".to_owned(), size),
        ]
        .into()
    }
}

impl Clients for Scans {
    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault> {
        let session = session.sql()?;
        let (rows, table) = (&self.shared.rows, &self.tables[0]);
        let (mut values, mut text) = (Parameters::default(), Vec::new());
        let mut prepared: Option<(u64, Statement)> = None;
        for batch in (0..rows.count().div_ceil(AT_ONCE)).filter(|batch| batch % of == partition) {
            let ids = batch * AT_ONCE..((batch + 1) * AT_ONCE).min(rows.count());
            let count = ids.end - ids.start;
            values.clear();
            for id in ids {
                text.clear();
                rows.text(id, &mut text);
                values.integer(id).integer(rows.group(id)).integer(rows.number(id)).text(&text);
            }
            if values.with(|values| session.submit_copy(table, values))? {
                session.finish(&mut Discard)?;
            } else {
                let statement = match prepared.filter(|(rows, _)| *rows == count) {
                    Some((_, statement)) => statement,
                    None => session.prepare_described(&describe(
                        &insert(table, count as usize),
                        self.tables,
                        session.dialect(),
                    ))?,
                };
                prepared = Some((count, statement));
                values.with(|values| session.call(statement, values, &mut Discard))?;
            }
            done.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// One scan of each kind, whose answer must be correct.
    fn check(&self, session: &mut Session, _fresh: bool) -> Result<Option<String>, Fault> {
        for query in config::QUERIES {
            let mut scanner = Scanner::of(query, Arc::clone(&self.shared));
            scanner.open(session)?;
            scanner.seed(0);
            scanner.prepare();
            scanner.scan(session)?;
        }
        Ok(Some("scans of each kind answer what the rows make".to_owned()))
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(Scanner::of(self.shared.config.query, Arc::clone(&self.shared)))
    }
}

#[cfg(test)]
mod tests;
