//! The cost of Tithe's own instruments per operation, ns of one thread: `cargo bench --bench load_loop`.
//!
//! Everything that a client does besides talking to the kernel: choosing a record and writing its key, choosing and
//! lending values, checking the answer, two clock readings, recording a latency. The database is a table in memory; the
//! cost of looking up and handing over its rows is measured separately and subtracted. Each figure is the median of
//! [`REPEATS`] passes, with the minimum and the maximum. Caches are warm, unlike with a real server: these are lower
//! bounds.

#![allow(clippy::print_stdout, reason = "a bench prints its result")]

use std::{
    collections::HashMap,
    hint::black_box,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use tithe_machine::{clock::Clock, fault::Fault, proc::ServerTask};
use tithe_model::{
    experiment::{self, Values},
    histogram::Histogram,
    schedule::SplitMix64,
};
use tithe_plugin::{
    session::{Connection, Discard, KeyValueSession, Progress, Request, Rows, Session},
    workload::{Client, Clients, PartRecorder, Workload},
};

/// Passes over each instrument.
const REPEATS: usize = 9;
/// Operations in a pass.
const OPERATIONS: usize = 50_000;
/// Records of the table, 1 KB each.
const RECORDS: u64 = 100_000;

fn main() -> Result<(), Fault> {
    let reads = ycsb(&[("readproportion", "1"), ("updateproportion", "0")])?;
    let writes = ycsb(&[("readproportion", "0"), ("updateproportion", "1")])?;
    let all = ycsb(&[("readproportion", "0"), ("updateproportion", "1"), ("writeallfields", "true")])?;
    let table = Table::default();
    clients(reads.as_ref()).load(&mut table.session(), 0, 1, &AtomicU64::new(0))?;

    let clock = Clock::Real;
    let now = measure(|| _ = black_box(clock.now()));
    let mut random = SplitMix64::new(1);
    let latencies: Vec<u64> = (0..OPERATIONS).map(|_| 20_000 + random.below(100_000)).collect();
    let mut histogram = Histogram::with_capacity();
    let mut latency = latencies.iter().cycle();
    let record = measure(|| histogram.record(black_box(*latency.next().unwrap_or(&0))));
    let key = prepare(reads.as_ref());
    let value = prepare(writes.as_ref());
    let lend = whole(writes.as_ref(), &mut Session::KeyValue(Box::new(Deaf)))?;
    let lend_all = whole(all.as_ref(), &mut Session::KeyValue(Box::new(Deaf)))?;
    let read = whole(reads.as_ref(), &mut table.session())?;
    let unchecked = unchecked(reads.as_ref(), &table)?;
    let verify = Figure::less(&read, &unchecked);

    println!("| instrument | ns/operation, median (least–greatest) |\n|---|---|");
    for (name, figure) in [
        ("one look at the clock", &now),
        ("recording one latency", &record),
        ("choosing a record, zipfian, and writing its key", &key),
        ("the same for an update, with the choice of field and version", &value),
        ("an update of one field of 100 bytes, up to the database's door", &lend),
        ("an update of ten fields of 100 bytes, up to the database's door", &lend_all),
        ("checking a record of ten fields of 100 bytes", &verify),
    ] {
        println!("| {name} | {} |", figure.text());
    }
    let sum = 2.0 * now.median + record.median + key.median + verify.median;
    println!("| all instruments of a read: key, two looks at the clock, check, recording | {sum:.0} |");
    Ok(())
}

/// Nanoseconds per operation.
struct Figure {
    median: f64,
    least: f64,
    greatest: f64,
}

impl Figure {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { median: values[values.len() / 2], least: values[0], greatest: values[values.len() - 1] }
    }

    /// The additional cost of `whole` over `part`; the ends are the furthest that are compatible with both.
    fn less(whole: &Self, part: &Self) -> Self {
        Self {
            median: whole.median - part.median,
            least: whole.least - part.greatest,
            greatest: whole.greatest - part.least,
        }
    }

    fn text(&self) -> String {
        format!("{:.1} ({:.1}–{:.1})", self.median, self.least, self.greatest)
    }
}

/// Times `operation`; the first pass warms caches up and does not count.
fn measure(mut operation: impl FnMut()) -> Figure {
    let pass = |_| {
        let before = Clock::Real.thread_cpu();
        (0..OPERATIONS).for_each(|_| operation());
        (Clock::Real.thread_cpu() - before) as f64 / OPERATIONS as f64
    };
    Figure::of((0..=REPEATS).map(pass).skip(1).collect())
}

fn ycsb(properties: &[(&str, &str)]) -> Result<Box<dyn Workload>, Fault> {
    let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let described =
        experiment::Workload { name: "bench".to_owned(), kind: "ycsb".to_owned(), properties, prepare: None };
    let data = experiment::Data { records: RECORDS, values: Values::Ycsb };
    tithe_workloads::make(&described, &data, 1).map_err(Fault::Machine)
}

fn clients(workload: &dyn Workload) -> &dyn Clients {
    workload.offered_by().clients().expect("YCSB has clients")
}

fn client(workload: &dyn Workload) -> Box<dyn Client> {
    let clients = clients(workload);
    let mut client = clients.client(&clients.arm_state());
    client.seed(1);
    client
}

fn prepare(workload: &dyn Workload) -> Figure {
    let mut client = client(workload);
    measure(|| client.prepare())
}

/// Whole operations: prepared, sent, answered, checked.
fn whole(workload: &dyn Workload, session: &mut Session) -> Result<Figure, Fault> {
    let mut client = client(workload);
    let mut outcome = Ok(());
    let figure = measure(|| {
        client.prepare();
        let done = client.submit(session).and_then(|()| client.advance(session, &mut NoParts).map(drop));
        if outcome.is_ok() {
            outcome = done;
        }
    });
    outcome.map(|()| figure)
}

/// The operations of [`whole`] with rows that are not checked.
fn unchecked(workload: &dyn Workload, table: &Table) -> Result<Figure, Fault> {
    let mut client = client(workload);
    let mut session = table.session();
    let mut outcome = Ok(());
    let figure = measure(|| {
        client.prepare();
        let done = client.submit(&mut session).and_then(|()| match &mut session {
            Session::KeyValue(session) => session.advance(&mut Discard).map(drop),
            Session::Sql(_) => Ok(()),
        });
        if outcome.is_ok() {
            outcome = done;
        }
    });
    outcome.map(|()| figure)
}

struct NoParts;

impl PartRecorder for NoParts {
    fn part(&mut self, _operation: usize) {}
}

/// Rows by key, with consecutive fields.
#[derive(Default, Clone)]
struct Table(Arc<Mutex<HashMap<Vec<u8>, Row>>>);

type Row = Vec<Vec<u8>>;

impl Table {
    fn session(&self) -> Session {
        Session::KeyValue(Box::new(Memory { table: self.clone(), received: Vec::new(), lengths: Vec::new() }))
    }
}

/// A session over a [`Table`] that inserts and reads whole records. A row is copied before it is handed over, so that
/// it is in the processor's cache, like one that the kernel has just delivered.
struct Memory {
    table: Table,
    received: Vec<u8>,
    lengths: Vec<usize>,
}

impl Connection for Memory {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl KeyValueSession for Memory {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.received.clear();
        self.lengths.clear();
        let mut rows = self.table.0.lock().map_err(|error| Fault::Machine(error.to_string()))?;
        match request {
            Request::Insert { key, values } => {
                rows.insert(key.to_vec(), values.iter().map(|(_, value)| value.to_vec()).collect());
            }
            Request::Read { key, .. } => {
                for value in rows.get(*key).into_iter().flatten() {
                    self.received.extend_from_slice(value);
                    self.lengths.push(value.len());
                }
            }
            _ => return Err(Fault::Protocol("this table is loaded and read only".to_owned())),
        }
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if !self.lengths.is_empty() {
            rows.row(None);
            let mut rest = self.received.as_slice();
            for (field, length) in self.lengths.iter().enumerate() {
                let (value, others) = rest.split_at(*length);
                rest = others;
                rows.field(field, Some(value));
            }
        }
        Ok(Progress::Done(1))
    }
}

/// Accepts every request.
struct Deaf;

impl Connection for Deaf {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl KeyValueSession for Deaf {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        black_box(request);
        Ok(())
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        Ok(Progress::Done(1))
    }
}
