//! Prepares a server that has started: loads its data, runs the arm's own statements, fills its caches.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use tithe_machine::{fault::Fault, launch::Server, threads, watch::process};
use tithe_model::experiment::Arm;
use tithe_plugin::{
    data::{self, conversion},
    database::{Connect, Database},
    session::Session,
    setup::Setup,
    workload::{Clients, Workload},
};

use super::undo::Administered;
use crate::run::Run;

/// The set-up for creating tables that are kept: they have no trace of the statements of the arm that loads them.
pub(super) fn without_statements(setup: &Setup) -> Setup {
    let mut setup = setup.clone();
    setup.statements.clear();
    setup
}

/// Runs the arm's own statements on a server that runs on a copy.
pub(super) fn run_statements(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    workload: &dyn Workload,
) -> Result<(), Fault> {
    if !setup.statements.is_empty() {
        let mut session = own_session(database, server, setup, workload)?;
        setup.statements.iter().try_for_each(|statement| session.connection().run_statement(statement))?;
    }
    run_after_loading(database, server, setup, workload)
}

/// Runs the statements of `setup` for the time after loading, as an administrator, in sessions that name tables as the
/// workload does.
pub(super) fn run_after_loading(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    workload: &dyn Workload,
) -> Result<(), Fault> {
    if setup.after_loading.statements.is_empty() {
        return Ok(());
    }
    let administered = Administered { database, server, setup, workload };
    if server.address.is_attached() { administered.say_and_keep() } else { administered.say() }
}

/// Runs the statements that switch the sessions of `arm` once, before anything is loaded. So statements that its
/// account may not run, or that the server does not understand, fail early.
pub(super) fn try_switches(
    database: &dyn Database,
    arm: &Arm,
    (server, setup): (&Server, &Setup),
    workload: &dyn Workload,
) -> Result<(), Fault> {
    if arm.on.is_empty() && arm.off.is_empty() {
        return Ok(());
    }
    let how = Connect::blocking(workload.table());
    let mut session = data::connect(database, server, setup, &how, workload)?;
    let connection = session.connection();
    arm.on.iter().chain(&arm.off).try_for_each(|statement| {
        let outcome = connection.run_statement(statement);
        outcome.map_err(|fault| fault.of(format_args!("arm {}: `{statement}`", arm.name)))
    })
}

/// Makes a server on a copy read its records, as a server that has loaded them has.
pub(super) fn fill_caches(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    workload: &dyn Workload,
) -> Result<(), Fault> {
    own_session(database, server, setup, workload)?.connection().warm()
}

/// Not in the workload's way: the arm's own objects do not belong among the workload's tables.
fn own_session(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    workload: &dyn Workload,
) -> Result<Session, Fault> {
    let how = Connect::blocking(workload.table());
    database.connect(server, setup, &how)
}

/// Lets `clients` load the data of one arm through its own protections, in parallel; reports the rows that are done.
/// Columns of the user's own tables that the arm encrypts are encrypted then.
pub(super) fn load(
    run: &Run<'_>,
    (workload, clients): (&dyn Workload, &dyn Clients),
    server: &Server,
    setup: &Setup,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Fault> {
    let parts = if run.product.embedded() || run.product.simulated() { 1 } else { process::processors().len() as u64 };
    let done = AtomicU64::new(0);
    let how = Connect::blocking(workload.table());
    std::thread::scope(|scope| {
        let (alive, all_ended) = mpsc::channel::<()>();
        let threads: Vec<_> = (0..parts)
            .map(|part| {
                let (done, how, alive) = (&done, &how, alive.clone());
                threads::within(scope, move || {
                    let _alive = alive;
                    let mut session = data::connect(run.product, server, setup, how, workload)?;
                    clients.load(&mut session, part, parts, done)
                })
            })
            .collect::<Result<_, _>>()?;
        drop(alive);
        tell(done.load(Ordering::Relaxed));
        while all_ended.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
            tell(done.load(Ordering::Relaxed));
        }
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Fault::Machine("loading panicked".to_owned()))))
    })?;
    conversion::convert(run.product, server, setup, &how, workload)
}
