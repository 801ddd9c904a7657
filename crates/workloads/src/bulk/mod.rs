//! Bulk loads: batches of rows by `COPY`, by `LOAD DATA`, by `INSERT`s of many rows or of one, by DuckDB's appender,
//! and by pipelines of records by key.
//!
//! An operation is a row: costs, throughput and bytes of log are per row. The timed request is a batch of rows, whose
//! latency is recorded as a whole. A table would grow without bound, so once `keep` rows were loaded, a client empties
//! it before a slot, outside the measured time. Row numbers continue, so that no key occurs twice. A pipeline writes
//! the same `keep` records again and again. If the answer to a batch is not the number of its rows, the frame is
//! invalid. A check compares the rows in the table with the generated ones, in whole batches.

mod client;
pub mod config;
mod pipeline;
mod tables;

use std::{
    any::Any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::fault::Fault;
use tithe_model::{
    catalogue::{DatabaseEntry, PropertyProblem, WireProtocol},
    experiment,
};
use tithe_plugin::{
    session::{Discard, Parameter, Session, SqlSession, Table, rows},
    sql::{Compute, Grammar, SqlTable, describe, insert},
    workload::{ArmState, Client, Clients, Load, Workload},
};

pub use self::config::entry;

use self::{
    client::Loader,
    config::{Config, Kind, Way},
    pipeline::Pipeliner,
};
use crate::random_text::RandomText;

/// A bulk load.
pub struct Bulk {
    shared: Arc<Shared>,
    operations: [&'static str; 1],
}

/// Shared by all clients, and never changed.
struct Shared {
    config: Config,
    tables: &'static [SqlTable],
    text: RandomText,
}

impl Shared {
    /// Text `field` of row `id`.
    fn text(&self, id: u64, field: usize) -> &[u8] {
        self.text.of(id.wrapping_mul(self.config.fields as u64).wrapping_add(field as u64))
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties.
pub fn make(
    described: &experiment::Workload,
    _data: &experiment::Data,
    seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let config = Config::resolve(&described.properties)?;
    let tables = if config.way == Way::Pipeline { &[] } else { tables::tables(&config) };
    let (text, operations) = (RandomText::new(seed, config.length), [config.way.operation()]);
    Ok(Box::new(Bulk { shared: Arc::new(Shared { config, tables, text }), operations }))
}

/// What the clients of one arm have loaded.
struct Loaded {
    /// The number of the next row.
    next: AtomicU64,
    /// Rows since the table was emptied.
    since: AtomicU64,
    /// Held by the client that empties it: others load only afterwards.
    emptying: Mutex<()>,
}

impl Loaded {
    /// With this many rows loaded, the first ones.
    fn with(rows: u64) -> Self {
        Self { next: AtomicU64::new(rows), since: AtomicU64::new(rows), emptying: Mutex::new(()) }
    }
}

/// Range of row numbers for each of several states.
const PART: u64 = 1 << 36;

impl ArmState for Loaded {
    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }

    fn reached(&self) -> Vec<i64> {
        [&self.next, &self.since].map(|number| number.load(Ordering::Relaxed) as i64).into()
    }

    fn go_on(&self, reached: &[i64]) {
        for (number, reached) in [&self.next, &self.since].into_iter().zip(reached) {
            number.store(reached.unsigned_abs(), Ordering::Relaxed);
        }
    }

    fn divide(&self, part: u64, _of: u64) {
        self.next.fetch_add(part * PART, Ordering::Relaxed);
    }
}

impl Workload for Bulk {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.operations.to_vec()
    }

    fn refuses(&self, database: &DatabaseEntry, running: bool) -> Option<String> {
        let Config { way, table, .. } = self.shared.config;
        let (title, protocol) = (database.title, database.wire_protocol);
        let serves = match way {
            Way::Copy => protocol == Some(WireProtocol::Postgres),
            Way::Load => protocol == Some(WireProtocol::MySql),
            Way::Pipeline => matches!(protocol, Some(WireProtocol::Redis | WireProtocol::OpenSearch)),
            Way::Append => database.appends,
            Way::Multi | Way::Single => {
                database.embedded || matches!(protocol, Some(WireProtocol::Postgres | WireProtocol::MySql))
            }
        };
        if !serves {
            let has = match protocol {
                Some(WireProtocol::Postgres) => "copy, multi and single",
                Some(WireProtocol::MySql) => "load, multi and single",
                Some(WireProtocol::Redis | WireProtocol::OpenSearch) => "pipeline",
                _ if database.appends => "append, multi and single",
                _ if database.embedded => "multi and single, where it speaks SQL",
                _ => "none",
            };
            return Some(format!("{title} has no bulk load `{}`; what it has: {has}", way.name()));
        }
        let has_no_trigger = table == Kind::Trigger && !database.triggers;
        match (table, protocol) {
            (Kind::Foreign | Kind::Partitioned, None) => {
                let has = if database.triggers { "plain, keyed and trigger" } else { "plain and keyed" };
                Some(format!("{title} has no table `{}`; it has {has}", table.name()))
            }
            _ if has_no_trigger => Some(format!("{title} has no table `trigger`; it has plain and keyed")),
            (Kind::Trigger, Some(WireProtocol::Postgres)) if running => Some(
                "a trigger needs a function, and Tithe leaves none on a server that it did not start: choose another \
                 `table`"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn writes(&self) -> bool {
        true
    }

    fn table(&self) -> Table {
        match self.shared.config.way {
            Way::Pipeline => Table {
                name: tables::LOADED.to_owned(),
                fields: self.shared.config.fields,
                field_prefix: "field".to_owned(),
            },
            _ => Table::of_canaries(),
        }
    }

    fn tables(&self) -> &'static [SqlTable] {
        self.shared.tables
    }

    /// A client that writes rows as values computes nothing; lines cannot contain encrypted values.
    fn compute(&self) -> Compute {
        if self.shared.config.way.has_lines() { Compute::Server } else { Compute::Client }
    }

    fn completes(&self, table: &SqlTable, grammar: Grammar) -> (String, Vec<String>) {
        tables::completes(self.shared.config.table, table.name, grammar)
    }

    fn operations_per_request(&self) -> u64 {
        self.shared.config.batch
    }

    fn rows(&self, _records: u64) -> u64 {
        match (self.shared.config.way, self.shared.config.table) {
            (Way::Pipeline, _) => self.shared.config.keep,
            (_, Kind::Foreign) => tables::PARENTS + self.shared.config.batch,
            _ => self.shared.config.batch,
        }
    }

    fn describe(&self) -> Vec<(String, String)> {
        let Config { way, batch, fields, length, keep, table } = self.shared.config;
        let kept = match way {
            Way::Pipeline => format!("the same {keep} are written again and again"),
            _ => format!("the table is emptied before a slot once {keep} were loaded"),
        };
        let mut lines = vec![
            ("an operation".to_owned(), format!("a row; latencies are of requests of {batch} rows")),
            ("way".to_owned(), way.name().to_owned()),
            ("a row".to_owned(), format!("three numbers and {fields} texts of {length} bytes")),
            ("rows".to_owned(), kept),
        ];
        if way == Way::Pipeline {
            lines[2].1 = format!("a key and {fields} fields of {length} bytes");
        } else {
            lines.push(("table".to_owned(), table.name().to_owned()));
        }
        lines
    }
}

impl Clients for Bulk {
    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault> {
        let Config { way, table, keep, .. } = self.shared.config;
        match session {
            Session::KeyValue(session) if way == Way::Pipeline => {
                let part = |part: u64| keep * part / of;
                pipeline::fill(&self.shared, session.as_mut(), part(partition)..part(partition + 1), done)
            }
            Session::Sql(sql) if partition == 0 => {
                if table == Kind::Foreign {
                    parents(self.shared.tables, sql.as_mut(), done)?;
                }
                self.first(session, done)
            }
            _ => Ok(()),
        }
    }

    fn check(&self, session: &mut Session, _fresh: bool) -> Result<Option<String>, Fault> {
        match session {
            Session::Sql(session) => check(&self.shared.config, session.as_mut()).map(Some),
            Session::KeyValue(_) => Ok(None),
        }
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(Loaded::with(self.shared.config.batch))
    }

    /// # Panics
    /// If `state` is another workload's.
    fn client(&self, state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        let state: Arc<dyn Any + Send + Sync> = Arc::<dyn ArmState>::clone(state);
        let loaded = state.downcast().expect("the state of an arm comes from its own workload");
        match self.shared.config.way {
            Way::Pipeline => Box::new(Pipeliner::new(Arc::clone(&self.shared))),
            _ => Box::new(Loader::new(Arc::clone(&self.shared), loaded)),
        }
    }
}

impl Bulk {
    /// Loads a first batch like all others: it shows any refusal of the server, and evidence finds rows.
    fn first(&self, session: &mut Session, done: &AtomicU64) -> Result<(), Fault> {
        let none = Arc::new(Loaded::with(0));
        let mut loader = Loader::new(Arc::clone(&self.shared), none);
        loader.prepare();
        loader.whole(session).map_err(|fault| match fault {
            // ER_CLIENT_LOCAL_FILES_DISABLED, and MariaDB's equivalent.
            Fault::Server(words) if words.starts_with("3948 ") || words.starts_with("4166 ") => {
                Fault::Refused(format!("{words}; write `settings = {{ local_infile = \"ON\" }}`"))
            }
            fault => fault,
        })?;
        done.fetch_add(self.shared.config.batch, Ordering::Relaxed);
        Ok(())
    }
}

/// Loads the rows that foreign keys refer to.
fn parents(tables: &'static [SqlTable], session: &mut dyn SqlSession, done: &AtomicU64) -> Result<(), Fault> {
    let Some(parent) = tables.last() else { return Ok(()) };
    let described = describe(&insert(parent, tables::PARENTS as usize), tables, session.dialect());
    let statement = session.prepare_described(&described)?;
    let ids: Vec<Parameter<'_>> = (0..tables::PARENTS).map(|id| Parameter::Integer(id as i64)).collect();
    session.call(statement, &ids, &mut Discard)?;
    done.fetch_add(tables::PARENTS, Ordering::Relaxed);
    Ok(())
}

/// Checks whether all rows are as they were made, and batches complete.
fn check(config: &Config, session: &mut dyn SqlSession) -> Result<String, Fault> {
    // The server cannot compare encrypted values.
    let hidden = session.hides_values();
    let condition = if hidden { "1 = 1".to_owned() } else { tables::condition(config) };
    let wrong = format!("coalesce(sum(CASE WHEN {condition} THEN 0 ELSE 1 END), 0)");
    let [rows, wrong] = numbers(session, &format!("SELECT count(*), {wrong} FROM {}", tables::LOADED))?;
    // Of inserts in one transaction, those that did not fail stay.
    let whole = rows % config.batch == 0 || config.way == Way::Single;
    if wrong > 0 || !whole {
        return Err(Fault::Wrong(format!(
            "of {rows} rows in batches of {} {wrong} are not as they were made",
            config.batch
        )));
    }
    let mut holds = "batches are whole".to_owned();
    holds += if hidden { "" } else { ", and each row is as it was made" };
    if config.table == Kind::Trigger {
        let [logged] = numbers(session, "SELECT count(*) FROM bulk_log")?;
        if logged != rows {
            return Err(Fault::Wrong(format!("the trigger has written {logged} rows for {rows}")));
        }
        holds += "; the trigger has written a row for each";
    }
    Ok(holds)
}

/// The numbers in the only row of `sql`.
fn numbers<const N: usize>(session: &mut dyn SqlSession, sql: &str) -> Result<[u64; N], Fault> {
    let row = rows::<N>(session, sql)?.into_iter().next();
    let numbers = row.map(|row| row.map(|value| value.parse().unwrap_or(u64::MAX)));
    numbers.ok_or_else(|| Fault::Wrong(format!("no row for `{sql}`")))
}

/// A record of a pipeline.
fn key(out: &mut Vec<u8>, number: u64) {
    out.clear();
    out.extend_from_slice(format!("row{number:012}").as_bytes());
}

#[cfg(test)]
mod tests;
