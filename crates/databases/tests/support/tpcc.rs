//! TPC-C on any database: created, loaded, run and checked, in one arm.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use tithe_machine::{fault::Fault, launch::Server, observation::Observation};
use tithe_model::{experiment::Protection as Chosen, record::Verdict};
use tithe_plugin::{
    data,
    database::Connect,
    evidence::{CheckContext, Control, judge, seen_by},
    product::Product,
    protection::Protection,
    session::{Progress, Session, wait_ready},
    setup::Setup,
    workload::{Client, Clients, PartRecorder, Workload},
};
use tithe_workloads::tpcc::{Tpcc, config::Config};

/// The workload of `properties` on the smallest data set.
pub fn workload(properties: &[(&str, &str)]) -> Tpcc {
    let small = [("customers", "30"), ("items", "40"), ("warehouses", "2")];
    let all: BTreeMap<String, String> =
        small.iter().chain(properties).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Tpcc::new(Config::resolve(&all).expect("possible properties"), 7)
}

/// One database with one set-up.
#[derive(Clone, Copy)]
pub struct Arm<'a> {
    pub database: &'a dyn Product,
    pub server: &'a Server,
    pub setup: &'a Setup,
    pub workload: &'a Tpcc,
}

/// Counts parts of operations by number.
#[derive(Default)]
struct Counted(BTreeMap<usize, u64>);

impl PartRecorder for Counted {
    fn part(&mut self, operation: usize) {
        *self.0.entry(operation).or_default() += 1;
    }
}

impl Arm<'_> {
    pub fn connect(&self) -> Session {
        let how = Connect::blocking(self.workload.table());
        data::connect(self.database, self.server, self.setup, &how, self.workload).expect("a session")
    }

    /// Loads the data, in two parts; returns the reported number of rows.
    pub fn load(&self) -> u64 {
        data::create(self.database, self.server, self.setup, self.workload).expect("tables");
        let done = AtomicU64::new(0);
        for part in 0..2 {
            self.workload.load(&mut self.connect(), part, 2, &done).expect("rows");
        }
        data::quiesce(self.database, self.server, self.setup, self.workload).expect("quiesced");
        done.load(Ordering::SeqCst)
    }

    pub fn check(&self, fresh: bool) -> Result<String, Fault> {
        self.workload.check(&mut self.connect(), fresh).map(|holds| holds.expect("TPC-C has rules"))
    }

    /// Runs `count` transactions of terminal `number`; returns how often each operation and part occurred.
    pub fn run(&self, number: u64, count: u64) -> BTreeMap<usize, u64> {
        self.run_counting(number, count).0
    }

    /// As [`Arm::run`], with the number of statements that were sent.
    pub fn run_counting(&self, number: u64, count: u64) -> (BTreeMap<usize, u64>, u64) {
        let mut session = self.connect();
        let mut client: Box<dyn Client> = self.workload.client(&self.workload.arm_state());
        client.set_number(number);
        if let Some(compute) = self.setup.compute {
            client.compute_in(compute);
        }
        client.seed(number);
        let mut counted = Counted::default();
        for _ in 0..count {
            client.prepare();
            client.submit(&mut session).expect("a transaction begins");
            while client.advance(&mut session, &mut counted).expect("a transaction goes on") == Progress::Pending {
                wait_ready(session.connection()).expect("an answer");
            }
            counted.part(client.operation());
        }
        (counted.0, client.statements())
    }

    /// Runs `terminals` at once.
    pub fn run_together(&self, terminals: u64, count: u64) -> BTreeMap<usize, u64> {
        let mut sum = BTreeMap::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..terminals).map(|number| scope.spawn(move || self.run(number, count))).collect();
            for thread in threads {
                for (operation, times) in thread.join().expect("a terminal") {
                    *sum.entry(operation).or_default() += times;
                }
            }
        });
        sum
    }
}

/// The result of every check of `protection` for `protected` with `plain` as control, one per line.
pub fn evidence(protection: &dyn Protection, chosen: &Chosen, protected: Arm<'_>, plain: Arm<'_>) -> Vec<String> {
    let table = protected.workload.table();
    let context = |arm: Arm<'_>,
                   is_protected: bool,
                   nonce: u64,
                   observe: &mut dyn FnMut(&mut CheckContext<'_>) -> Observation| {
        observe(&mut CheckContext {
            database: arm.database,
            server: arm.server,
            setup: arm.setup,
            table: &table,
            protected: is_protected,
            nonce,
            narrowed: None,
        })
    };
    let checks = protection.evidence_in(chosen, protected.workload);
    // Canaries of one check must differ from those of an earlier one: leftovers in the journal would be found again.
    static NONCES: AtomicU64 = AtomicU64::new(0);
    let lines = checks.into_iter().map(|check| {
        let nonce = NONCES.fetch_add(1, Ordering::SeqCst);
        let mut observe = |context: &mut CheckContext<'_>| seen_by(&*check, context);
        let seen = context(protected, true, nonce, &mut observe);
        let control = (check.entry().control == Control::PlainArm).then(|| context(plain, false, nonce, &mut observe));
        match judge(check.entry().control, &seen, control.as_ref()) {
            Verdict::Holds => format!("{}: holds", check.id()),
            other => format!("{}: {other:?}: {seen:?}; control {control:?}", check.id()),
        }
    });
    lines.collect()
}
