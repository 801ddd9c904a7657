//! Bulk loads and scans on any database: loaded, run and checked, in one arm.

use std::{collections::BTreeMap, sync::atomic::AtomicU64};

use tithe_machine::{clock::Clock, fault::Fault, launch::Server};
use tithe_model::experiment::{self, Data, Values};
use tithe_plugin::{
    data,
    database::Connect,
    product::Product,
    session::{Progress, Session, wait_ready},
    setup::Setup,
    workload::{PartRecorder, Workload},
};

/// One database with one set-up.
#[derive(Clone, Copy)]
pub struct Arm<'a> {
    pub database: &'a dyn Product,
    pub server: &'a Server,
    pub setup: &'a Setup,
}

struct NoParts;

impl PartRecorder for NoParts {
    fn part(&mut self, _operation: usize) {}
}

/// The workload of this `kind` with these properties, on so many records.
pub fn workload(kind: &str, records: u64, properties: &[(&str, &str)]) -> Box<dyn Workload> {
    let properties: BTreeMap<String, String> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let described = experiment::Workload { name: "w".to_owned(), kind: kind.to_owned(), properties, prepare: None };
    tithe_workloads::make(&described, &Data { records, values: Values::Ycsb }, 7).expect("a workload")
}

impl Arm<'_> {
    /// A session of `workload`.
    pub fn session(&self, workload: &dyn Workload, blocking: bool) -> Session {
        let how = Connect { blocking, lane: 0, clock: Clock::Real, table: workload.table() };
        data::connect(self.database, self.server, self.setup, &how, workload).expect("a session")
    }

    /// Creates the data of `workload` and has two clients offer `requests` each in turn, each request in its own slot;
    /// returns the check of the data.
    pub fn run(&self, workload: &dyn Workload, requests: u64) -> Result<String, Fault> {
        if let Some(why) = workload.refuses(self.database.entry(), false) {
            return Err(Fault::Refused(why));
        }
        data::create(self.database, self.server, self.setup, workload).expect("tables");
        let clients = workload.offered_by().clients().expect("clients of Tithe's");
        for part in 0..2 {
            clients.load(&mut self.session(workload, true), part, 2, &AtomicU64::new(0))?;
        }
        data::quiesce(self.database, self.server, self.setup, workload).expect("quiesced");
        data::precondition(self.database, self.server, self.setup, workload).expect("preconditioned");
        let state = clients.arm_state();
        for blocking in [true, false] {
            let mut session = self.session(workload, blocking);
            let mut client = clients.client(&state);
            client.open(&mut session)?;
            for slot in 0..requests {
                client.seed(slot);
                client.put_back(&mut session)?;
                client.prepare();
                client.submit(&mut session)?;
                while client.advance(&mut session, &mut NoParts)? == Progress::Pending {
                    wait_ready(session.connection())?;
                }
            }
        }
        let holds = clients.check(&mut self.session(workload, true), false)?;
        Ok(holds.unwrap_or_default())
    }

    /// As [`Arm::run`], with one line for each of `kinds` of table: what holds, or what is refused.
    pub fn loads(&self, way: &str, kinds: &[&str]) -> String {
        let line = |kind: &&str| {
            // 12 batches of 50 rows; those before the table was last emptied are gone.
            let workload = workload("bulk", 1, &[("way", way), ("table", kind), ("batch", "50"), ("keep", "250")]);
            let said = self.run(workload.as_ref(), 6).map(|said| said + &self.kept(workload.as_ref()));
            self.make_room(workload.as_ref());
            format!("{way} {kind}: {}\n", said.unwrap_or_else(|fault| fault.to_string()))
        };
        kinds.iter().map(line).collect()
    }

    /// Which rows exist, if they are in a table.
    fn kept(&self, workload: &dyn Workload) -> String {
        let Session::Sql(mut session) = self.session(workload, true) else { return String::new() };
        let rows = session.run("SELECT count(*), min(b_id), max(b_id) FROM bulk").expect("a row");
        let values: Vec<String> = rows.into_iter().flatten().flatten().collect();
        format!(" [{}]", values.join(" "))
    }

    /// Removes the tables if creating them again does not.
    fn make_room(&self, workload: &dyn Workload) {
        if self.database.entry().embedded {
            let _ = data::remove(self.database, self.server, self.setup, workload);
        }
    }

    /// Every kind of scan, twice by each of two clients, one per line.
    pub fn scans(&self) -> String {
        let line = |query| {
            let scan = workload("scan", 5000, &[("query", query), ("range", "700")]);
            let said = self.run(scan.as_ref(), 2).unwrap_or_else(|fault| fault.to_string());
            self.make_room(scan.as_ref());
            format!("{query}: {said}\n")
        };
        ["aggregate", "group", "range", "sort"].into_iter().map(line).collect()
    }
}
