//! The initial rows of every table, specification 5.11, clause 4.3.3.1.
//!
//! Rows are made in *jobs* that depend only on the seed, so that any number of loaders make the same data set and every
//! arm has the same one.

use tithe_machine::fault::Fault;
use tithe_model::schedule::stream_seed;

use super::{
    config::{Config, DISTRICTS},
    random::{C_LAST_LOAD, Random, last_name},
    tables::{CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, WAREHOUSE},
    values::Parameters,
};

/// Microseconds since 1970 of the load: a fixed day, so that the same seed gives the same rows.
const LOAD_TIME_US: i64 = 1_700_000_000_000_000;

/// Items per job.
const ITEMS_A_JOB: u64 = 10_000;

/// Receives rows: the place of their table in `TABLES`, and one value per column.
pub trait Sink {
    /// A row, written into the empty list by `fill`.
    ///
    /// # Errors
    /// The sink's own.
    fn row(&mut self, table: usize, fill: &mut dyn FnMut(&mut Parameters)) -> Result<(), Fault>;
}

/// One part of the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Items `from..=to`.
    Items(u64, u64),
    /// A warehouse itself, and its districts.
    Warehouse(u64),
    /// Stock of a warehouse, items `from..=to`.
    Stock(u64, u64, u64),
    /// Customers with their history, and orders, of a district.
    District(u64, u64),
}

/// All jobs of `config`.
pub fn jobs(config: &Config) -> Vec<Job> {
    let ranges = || {
        (1..=config.items).step_by(ITEMS_A_JOB as usize).map(|from| (from, (from + ITEMS_A_JOB - 1).min(config.items)))
    };
    let mut jobs: Vec<Job> = ranges().map(|(from, to)| Job::Items(from, to)).collect();
    for warehouse in 1..=config.warehouses {
        jobs.push(Job::Warehouse(warehouse));
        jobs.extend(ranges().map(|(from, to)| Job::Stock(warehouse, from, to)));
        jobs.extend((1..=DISTRICTS).map(|district| Job::District(warehouse, district)));
    }
    jobs
}

/// Makes the rows of `job`, which is number `number` of [`jobs`].
///
/// # Errors
/// The sink's.
pub fn make(config: &Config, seed: u64, number: u64, job: Job, sink: &mut dyn Sink) -> Result<(), Fault> {
    let random = &mut Random::new(stream_seed(seed, 0, number, 0));
    match job {
        Job::Items(from, to) => (from..=to).try_for_each(|item| {
            sink.row(ITEM, &mut |row| {
                row.integer(item).integer(random.uniform(1, 10_000));
                row.text_by(|out| random.text(14, 24, out)).integer(random.uniform(100, 10_000));
                row.text_by(|out| data(random, out));
            })
        }),
        Job::Warehouse(warehouse) => self::warehouse(config, warehouse, random, sink),
        Job::Stock(warehouse, from, to) => (from..=to).try_for_each(|item| {
            sink.row(STOCK, &mut |row| {
                row.integer(item).integer(warehouse).integer(random.uniform(10, 100));
                for _ in 0..10 {
                    row.text_by(|out| random.text(24, 24, out));
                }
                row.integer(0).integer(0).integer(0).text_by(|out| data(random, out));
            })
        }),
        Job::District(warehouse, district) => {
            customers(config, warehouse, district, random, sink)?;
            orders(config, warehouse, district, random, sink)
        }
    }
}

/// A remark of 26 to 50 characters; one in ten contains the word ORIGINAL somewhere.
fn data(random: &mut Random, out: &mut Vec<u8>) {
    const WORD: &[u8] = b"ORIGINAL";
    let start = out.len();
    random.text(26, 50, out);
    if random.chance(10) {
        let at = start + random.uniform(0, (out.len() - start - WORD.len()) as u64) as usize;
        out[at..at + WORD.len()].copy_from_slice(WORD);
    }
}

fn address(random: &mut Random, row: &mut Parameters) {
    for _ in 0..3 {
        row.text_by(|out| random.text(10, 20, out));
    }
    row.text_by(|out| random.text(2, 2, out));
    row.text_by(|out| {
        random.digits(4, out);
        out.extend_from_slice(b"11111");
    });
}

/// Year-to-date payments of a district, cents: each of its customers has paid 10.00.
fn district_ytd(config: &Config) -> u64 {
    config.customers * 1000
}

fn warehouse(config: &Config, warehouse: u64, random: &mut Random, sink: &mut dyn Sink) -> Result<(), Fault> {
    sink.row(WAREHOUSE, &mut |row| {
        row.integer(warehouse).text_by(|out| random.text(6, 10, out));
        address(random, row);
        row.integer(random.uniform(0, 2000)).integer(district_ytd(config) * DISTRICTS);
    })?;
    (1..=DISTRICTS).try_for_each(|district| {
        sink.row(DISTRICT, &mut |row| {
            row.integer(district).integer(warehouse).text_by(|out| random.text(6, 10, out));
            address(random, row);
            row.integer(random.uniform(0, 2000)).integer(district_ytd(config)).integer(config.customers + 1);
        })
    })
}

fn customers(
    config: &Config,
    warehouse: u64,
    district: u64,
    random: &mut Random,
    sink: &mut dyn Sink,
) -> Result<(), Fault> {
    for customer in 1..=config.customers {
        sink.row(CUSTOMER, &mut |row| {
            row.integer(customer).integer(district).integer(warehouse);
            row.text_by(|out| random.text(8, 16, out)).text(b"OE");
            let name = if customer <= 1000 { customer - 1 } else { random.last_name(C_LAST_LOAD, config.customers) };
            row.text_by(|out| last_name(name, out));
            address(random, row);
            row.text_by(|out| random.digits(16, out)).integer(LOAD_TIME_US);
            row.text(if random.chance(10) { b"BC" } else { b"GC" }).integer(5_000_000);
            row.integer(random.uniform(0, 5000)).integer(-1000).integer(1000).integer(1).integer(0);
            row.text_by(|out| random.text(300, 500, out));
        })?;
        sink.row(HISTORY, &mut |row| {
            row.integer(customer).integer(district).integer(warehouse).integer(district).integer(warehouse);
            row.integer(LOAD_TIME_US).integer(1000).text_by(|out| random.text(12, 24, out));
        })?;
    }
    Ok(())
}

fn orders(
    config: &Config,
    warehouse: u64,
    district: u64,
    random: &mut Random,
    sink: &mut dyn Sink,
) -> Result<(), Fault> {
    let customers = random.permutation(config.customers);
    for (order, customer) in (1..).zip(customers) {
        let is_new = order > config.customers - config.new_orders();
        let lines = random.uniform(5, 15);
        sink.row(ORDERS, &mut |row| {
            row.integer(order).integer(district).integer(warehouse).integer(customer).integer(LOAD_TIME_US);
            if is_new {
                row.null()
            } else {
                row.integer(random.uniform(1, 10))
            };
            row.integer(lines).integer(1);
        })?;
        for line in 1..=lines {
            sink.row(ORDER_LINE, &mut |row| {
                row.integer(order).integer(district).integer(warehouse).integer(line);
                row.integer(random.uniform(1, config.items)).integer(warehouse);
                if is_new {
                    row.null()
                } else {
                    row.integer(LOAD_TIME_US)
                };
                row.integer(5).integer(if is_new { random.uniform(1, 999_999) } else { 0 });
                row.text_by(|out| random.text(24, 24, out));
            })?;
        }
        if is_new {
            sink.row(NEW_ORDER, &mut |row| {
                row.integer(order).integer(district).integer(warehouse);
            })?;
        }
    }
    Ok(())
}
