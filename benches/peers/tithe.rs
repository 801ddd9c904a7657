//! Tithe as a contestant: one frame of one arm, with the code of real measurements.

use std::sync::atomic::AtomicBool;

use tithe_harness::{
    catalogue,
    load::frame::{CellRunner, StartedArm},
};
use tithe_machine::{
    fault::Fault,
    launch::{Install, Place, Server},
};
use tithe_model::{
    parse,
    plan::{self, Plan},
};
use tithe_plugin::{product::Product, setup::Setup, workload::Workload};

use crate::{
    contest::{Contestant, number_after},
    floor::Traffic,
};

/// Records of the table: 1 KB each.
pub const RECORDS: u64 = 100_000;

/// The same of etcd, which brings each one to the disk.
const ETCD_RECORDS: u64 = 10_000;

/// Fields of a record.
pub const FIELDS: usize = 10;

/// Slots of a short and a long run: one slot of 20 ms, and 3 s.
const SLOTS: (u32, u32) = (1, 150);

/// The job: workload and number of clients.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// YCSB's letter, `a` or `c`; pgbench's script, `builtin:select-only`; `bulk:copy`; or `scan:aggregate`.
    pub workload: &'static str,
    /// Connections that are busy at the same time.
    pub clients: u32,
}

impl Job {
    /// The case of this job on `database`.
    pub fn name(self, database: &str) -> String {
        let clients = if self.clients == 1 { "client" } else { "clients" };
        let workload = match self.workload.split_once(':') {
            Some((_, name)) => name.to_owned(),
            None => format!("workload {}", self.workload.to_uppercase()),
        };
        format!("{database}, {workload}, {} {clients}", self.clients)
    }

    /// What an operation exchanges with the server.
    pub fn traffic(self) -> Traffic {
        match self.script() {
            None => Traffic::Record,
            Some("select-only") => Traffic::Statements(1),
            // BEGIN, three statements, COMMIT.
            Some(_) => Traffic::Statements(5),
        }
    }

    /// The name of pgbench's script.
    pub fn script(self) -> Option<&'static str> {
        self.workload.strip_prefix("builtin:")
    }
}

/// A plan of the job, made like that of a user's experiment.
///
/// # Errors
/// Every problem with it, as one text.
pub fn plan(database: &dyn Product, workload: &str, clients: u32) -> Result<Plan, Fault> {
    let kind = match workload.split_once(':') {
        Some(("builtin", _)) => format!("script = '{workload}', protocol = 'prepared'"),
        // Rows like those of pgbench's largest table.
        Some(("bulk", way)) => format!("bulk = '{way}', properties = {{ fields = '1', length = '84' }}"),
        Some((kind, name)) => format!("{kind} = '{name}'"),
        None => format!("ycsb = '{workload}'"),
    };
    let records = if database.id() == "etcd" { ETCD_RECORDS } else { RECORDS };
    let text = format!(
        "title = 'peers'\ndatabase = '{}'\ndata = {{ records = {records} }}\nload = {{ clients = {clients} }}\n\
         measure = {{ slot = '20 ms' }}\nworkload = [{{ {kind} }}]\narm = [{{ name = 'one' }}, {{ name = 'two' }}]\n",
        database.id()
    );
    let catalogue = catalogue::catalogue(tithe_databases::all());
    let told = |diagnostics| Fault::Machine(format!("{diagnostics:?}"));
    let experiment = parse::parse(&text, &catalogue, &|path| Err(std::io::Error::other(path.to_owned())));
    experiment.and_then(|experiment| plan::plan(experiment, &catalogue)).map_err(told)
}

/// The plan's only workload.
///
/// # Errors
/// Those of [`tithe_workloads::make`].
pub fn workload(plan: &Plan) -> Result<Box<dyn Workload>, Fault> {
    tithe_workloads::make(&plan.experiment.workloads[0], &plan.experiment.data, plan.experiment.measure.seed)
        .map_err(Fault::Machine)
}

/// Tithe against `database` at `place`, as contestant `name`.
///
/// # Errors
/// When this program cannot find its own path.
pub fn contestant(name: &str, database: &dyn Product, place: &Place, job: Job) -> Result<Contestant, Fault> {
    let text = |text: &str| text.to_owned();
    Ok(Contestant {
        name: text(name),
        ours: true,
        program: std::env::current_exe().map_err(|error| Fault::machine("this program", error))?,
        arguments: vec![
            text("load"),
            text(database.id()),
            place.port.to_string(),
            text(job.workload),
            job.clients.to_string(),
            place.folder.display().to_string(),
        ],
        short: vec![SLOTS.0.to_string()],
        long: vec![SLOTS.1.to_string()],
        operations: |text| number_after(text, "operations"),
        every: 1,
    })
}

/// The other side of [`contestant`]: offers the load and prints the number of operations.
///
/// # Errors
/// Any problem that would invalidate a frame.
pub fn generate(arguments: &[String]) -> Result<(), Fault> {
    let wrong = || Fault::Machine("usage: load DATABASE PORT WORKLOAD CLIENTS FOLDER SLOTS".to_owned());
    let [database, port, workload, clients, folder, slots] = arguments else { return Err(wrong()) };
    let database = *tithe_databases::all().iter().find(|known| known.id() == database).ok_or_else(wrong)?;
    let place = Place::on_loopback(folder, port.parse().map_err(|_| wrong())?);
    let plan = plan(database, workload, clients.parse().map_err(|_| wrong())?)?;
    let workload = self::workload(&plan)?;
    let mut cell = plan.cells[0].clone();
    cell.blocks = slots.parse().map_err(|_| wrong())?;
    let (on, off) = (Vec::new(), Vec::new());
    let arm =
        StartedArm { server: server(database, &place), data: 0, shares_server: false, setup: Setup::bare(), on, off };
    let mut runner = CellRunner::new(database, workload.as_ref(), &cell, 0, true, vec![arm]);
    let Some((frame, slots)) = runner.frame(0, (0, 0), false, &AtomicBool::new(false))? else { return Ok(()) };
    if let Some(reason) = frame.invalid {
        return Err(Fault::Wrong(reason.to_string()));
    }
    let (operations, cpu_ns) =
        slots.iter().fold((0, 0), |sum, slot| (sum.0 + slot.operations, sum.1 + slot.client_cpu_ns));
    println!("operations {operations}, {} ns of client processor time each by the slots", cpu_ns / operations.max(1));
    Ok(())
}

/// The server of `database` at `place`, as clients know it: for an embedded database its file.
pub fn server(database: &dyn Product, place: &Place) -> Server {
    let address = match database.embedded() {
        true => database.launch(&Install::default(), &Setup::bare(), place).address,
        false => place.address(),
    };
    Server::at(address)
}
