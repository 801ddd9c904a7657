//! The transactions of TPC-C, specification 5.11, on any SQL session.
//!
//! TPC-C is a trademark of the Transaction Processing Performance Council. This workload is derived from its
//! specification and does not comply with all of it, so no figure can be compared with a published TPC-C result, and
//! none is called tpmC: New-Orders per minute are *NOPM*.
//!
//! Differences from the specification, and why: money, rates and dates are whole numbers (see [`tables`]). Delivery is
//! done at once, not from a queue. Terminals type and think only on request ([`pauses`]), because a few of them send
//! little in the fractions of a second between which arms alternate. A terminal keeps its warehouse, but there may be
//! any number of terminals.

mod channel;
mod client;
mod conditions;
pub mod config;
pub mod input;
mod load;
mod pauses;
pub mod population;
pub mod random;
pub mod statements;
pub mod tables;
mod transactions;
pub mod values;

use std::sync::{Arc, atomic::AtomicU64};

use tithe_machine::fault::Fault;
use tithe_model::{catalogue::PropertyProblem, experiment, operation::TPCC_TRANSACTIONS};
use tithe_plugin::{
    session::{Session, Table},
    sql::{Compute, Isolation, SqlTable},
    workload::{ArmState, Client, Clients, Load, NoState, Workload},
};

pub use config::entry;

use self::{
    client::{RETRY, ROLLBACK, Terminal},
    config::Config,
    tables::TABLES,
};

/// Names of the operations, in the order of [`input::TransactionKind::ALL`], then those recorded as parts of them.
const OPERATIONS: [&str; 7] = {
    let [new_order, payment, order_status, delivery, stock_level] = TPCC_TRANSACTIONS;
    [new_order, payment, order_status, delivery, stock_level, "RETRY", "ROLLED-BACK"]
};
const _: () = assert!(RETRY == 5 && ROLLBACK == 6);

/// TPC-C's transactions with the properties of one experiment.
pub struct Tpcc {
    config: Arc<Config>,
    seed: u64,
}

impl Tpcc {
    /// The workload of `config`, on data determined by `seed`.
    pub fn new(config: Config, seed: u64) -> Self {
        Self { config: Arc::new(config), seed }
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
    Ok(Box::new(Tpcc::new(Config::resolve(&described.properties)?, seed)))
}

impl Workload for Tpcc {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        OPERATIONS.to_vec()
    }

    fn writes(&self) -> bool {
        config::writes(&self.config)
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn tables(&self) -> &'static [SqlTable] {
        &TABLES
    }

    fn compute(&self) -> Compute {
        self.config.compute
    }

    fn rows(&self, _records: u64) -> u64 {
        self.config.rows()
    }

    fn describe(&self) -> Vec<(String, String)> {
        let config = &self.config;
        let size = if config.is_full_size() { "" } else { ", fewer than the specification asks for" };
        let isolation = match config.isolation {
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        let compute = match config.compute {
            Compute::Server => "in the server: the ordinary statements",
            Compute::Client => "in the client, in every arm that does not say otherwise",
        };
        let pauses = if config.pauses {
            "on (clauses 5.2.5.4 and 5.2.5.7): the load is fixed, and does not show what the server could do"
        } else {
            "off: New-Orders per minute (NOPM) are what the server could do"
        };
        [
            ("warehouses", config.warehouses.to_string()),
            ("customers and items", format!("{} per district, {}{size}", config.customers, config.items)),
            ("mix", config.mix.map(|weight| weight.to_string()).join("/")),
            ("isolation", isolation.to_owned()),
            ("computing", compute.to_owned()),
            ("delivery", "inline".to_owned()),
            ("keying and think times", pauses.to_owned()),
            (
                "trademark",
                "derived from TPC-C, a trademark of the TPC; not comparable with published TPC-C results".to_owned(),
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

impl Clients for Tpcc {
    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault> {
        load::load(&self.config, self.seed, session.sql()?, (partition, of), done)
    }

    fn check(&self, session: &mut Session, fresh: bool) -> Result<Option<String>, Fault> {
        conditions::check(session.sql()?, &self.config, fresh).map(Some)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(Terminal::new(Arc::clone(&self.config)))
    }
}

#[cfg(test)]
mod tests;
