//! The arms of one epoch: started, loaded, started anew, and stopped.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tithe_machine::{
    cgroup::{self, GroupLimits},
    clock::Clock,
    fault::Fault,
    launch::{Address, Launch, Server},
    sandbox::{Sandbox, process::Running},
    watch::process,
};
use tithe_model::{
    experiment::{Arm, Arrivals, Design},
    fact::Fact,
    plan::Cell,
    record::{ArmFacts, Event},
};
use tithe_plugin::{
    checks::scan::{Places, files_of},
    configuration::configuration,
    data,
    database::{Connect, Database},
    program::Program,
    setup::Setup,
    workload::{Clients, Load, Workload},
    workspace::Workspace,
};

use super::{
    EpochPlan, EventLog, Observer, Run, cache,
    data_sets::{DataSets, Fingerprint},
};
use crate::{
    arms::Resolved,
    folder::{RunFolder, file_name},
    limits,
    load::frame::StartedArm,
    serve,
    volumes::{
        self, Mounted,
        own_swap::{self, OwnSwap},
    },
};

/// The servers of one epoch; they stop when it is dropped.
pub(super) struct EpochSetup<'a> {
    database: &'a dyn Database,
    started_arms: Vec<StartedArm>,
    /// Where another program works, by arm; empty where Tithe's own clients do.
    workspaces: Vec<Workspace>,
    servers: Vec<Started>,
    /// Servers that Tithe does not stop, once they hold its data.
    attached: Vec<(Server, Setup)>,
    /// What each launched server says, by the arm's name in file names.
    logs: Vec<(String, PathBuf)>,
    // After the servers that stand on them.
    volumes: Vec<Mounted>,
    // After the servers that may have been swapped out.
    _swap: Option<OwnSwap>,
    // Last: the servers end before their folder goes.
    sandbox: Sandbox,
}

/// An arm that was started, and what is to be told of it.
struct Begun {
    server: Server,
    configuration: Vec<String>,
    /// Facts that the server itself does not know.
    notes: Vec<(Fact, String)>,
    /// Where its data came from; `None` where they have yet to be loaded.
    origin: Option<String>,
}

/// What an arm stands on.
struct Started {
    server: Server,
    /// None for an embedded or attached database.
    process: Option<(Running, Launch)>,
}

impl Started {
    /// Stops the server so that its files are whole; what starts it again, `None` for an embedded database.
    fn stop(&mut self) -> Result<Option<Launch>, Fault> {
        let Some((running, launch)) = self.process.take() else { return Ok(None) };
        running.stop_cleanly()?;
        Ok(Some(launch))
    }
}

impl Drop for EpochSetup<'_> {
    fn drop(&mut self) {
        self.servers.iter().for_each(|started| self.database.close(&started.server));
    }
}

impl<'a> EpochSetup<'a> {
    /// With `swap_bytes` of encrypted swap, where some are asked for.
    pub(super) fn new(database: &'a dyn Database, folder: &RunFolder, swap_bytes: Option<u64>) -> Result<Self, Fault> {
        let sandbox = Sandbox::new(folder.path())?;
        let swap = swap_bytes.map(|bytes| own_swap::set_up(bytes, &sandbox)).transpose()?;
        Ok(Self {
            database,
            started_arms: Vec::new(),
            workspaces: Vec::new(),
            servers: Vec::new(),
            attached: Vec::new(),
            logs: Vec::new(),
            volumes: Vec::new(),
            _swap: swap,
            sandbox,
        })
    }

    /// Starts every arm on loaded data.
    pub(super) fn set(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        data_sets: &mut DataSets,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let EpochPlan { number, cell, .. } = *part;
        let experiment = &run.plan.experiment;
        let workload = run.workloads[cell.workload].as_ref();
        let shared = shares_server(&experiment.arms);
        event_log.folder.cell(number, |facts| {
            facts.mode = mode(cell, shared, self.launches(&experiment.arms));
            facts.notes = workload.describe();
            if run.plan.cells[number].arrivals != cell.arrivals
                && let Arrivals::Poisson(rate) = cell.arrivals
            {
                facts.notes.push(("rate".to_owned(), format!("{rate:.0}/s")));
            }
            if run.rotates {
                let turns = "each runs in its arm's slots only, because keys are rotated".to_owned();
                facts.notes.push(("servers".to_owned(), turns));
            }
            let swap = experiment.encrypted_swap_bytes.map(own_swap::layers);
            facts.notes.extend(swap.map(|layers| ("encrypted swap".to_owned(), layers)));
            if let Some(every) = cell.reconnect_every {
                facts.notes.push(("connections".to_owned(), format!("opened anew after every {every} operations")));
            }
            facts.arms = vec![ArmFacts::default(); experiment.arms.len()];
        })?;
        let mut credentials = self.sandbox.credentials()?;
        data_sets.share_secrets(&mut credentials);
        let setup_of = |arm: &Resolved<'_>| arm.setup(run.plan, cell, &credentials);
        let setups: Vec<Setup> = run.arms.iter().map(setup_of).collect::<Result<_, _>>()?;
        let fingerprint = match workload.offered_by() {
            // What another program loads is loaded anew: its data are not known to be the same in every start.
            Load::Program(_) => vec![None; setups.len()],
            Load::Clients(_) => data_sets.plan(run, part, &setups),
        };
        self.add_all(run, part, (&setups, &fingerprint, shared), data_sets, event_log)
    }

    /// Starts every arm with its set-up on loaded data: on what it holds, where that is kept. `shared`: all on one
    /// server.
    fn add_all(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        (setups, fingerprint, shared): (&[Setup], &[Option<Fingerprint>], bool),
        data_sets: &mut DataSets,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        // Twins swap their roles from one epoch to the next: who starts and loads first, and so whose pages and ports
        // come first, must not be a property of an arm.
        let mut order: Vec<usize> = (0..setups.len()).collect();
        let turned = part.epoch % 2 == 1 && !shared;
        if turned {
            order.reverse();
        }
        for arm in order {
            if run.cancelled() {
                break;
            }
            let loaded = shared && arm > 0;
            self.add(run, part, arm, (&setups[arm], fingerprint[arm].as_ref(), loaded), data_sets, event_log)?;
        }
        if turned {
            self.started_arms.reverse();
            self.workspaces.reverse();
            self.servers.reverse();
        }
        Ok(())
    }

    /// Starts arm `number` on loaded data: those that it `fingerprint`, a copy of kept ones where there are some;
    /// `loaded`: on those of the first arm, whose server it shares.
    fn add(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        number: usize,
        (setup, fingerprint, loaded): (&Setup, Option<&Fingerprint>, bool),
        data_sets: &mut DataSets,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let (cell, experiment) = (part.cell, &run.plan.experiment);
        let workload = run.workloads[cell.workload].as_ref();
        let arm = &experiment.arms[number];
        let mut limits = limits::of_cell(experiment, cell.workload, cell.resources);
        // A process that served a connection and has ended is counted by its group alone.
        limits.account = cell.reconnect_every.is_some() && cgroup::counts();
        let data_set = fingerprint.map(|fingerprint| (fingerprint, &*data_sets));
        let Begun { mut server, configuration, notes, origin } = self.start(run, arm, setup, limits, data_set)?;
        let loads = !loaded && origin.is_none();
        if loads {
            data::create(run.product, &server, &without_statements(setup, fingerprint), workload)?;
            if matches!(server.address, Address::Attached(_)) {
                self.attached.push((server.clone(), setup.clone()));
            }
        }
        let mut facts = run.product.facts(&server, setup)?;
        facts.configuration.splice(0..0, configuration);
        let origin = origin.map(|origin| (Fact::DataSet, origin));
        notes.into_iter().chain(origin).for_each(|(fact, text)| facts.tell(fact, text));
        if let Some(bytes) = limits.memory_bytes {
            let times = limits::data_bytes(experiment, cell.workload) as f64 / bytes as f64;
            facts.tell(Fact::DataPerMemory, format!("{times:.2} times the limit of memory"));
        }
        let version = facts.version.clone();
        let started = Event::ArmStarted { cell: part.number as u32, epoch: part.epoch, arm: number as u32, version };
        event_log.add(started)?;
        event_log.folder.cell(part.number, |known| known.arms[number] = facts)?;
        self.load(run, part, number, (&server, setup, loads), event_log.observer)?;
        if let Some(fingerprint) = fingerprint {
            if loads {
                let origin = self.keep(run, workload, &arm.name, (setup, fingerprint), data_sets)?;
                event_log.folder.cell(part.number, |known| {
                    known.arms[number].tell(Fact::DataSet, origin);
                })?;
                server = self.servers[self.servers.len() - 1].server.clone();
            }
            make_ready(run.product, &server, setup, workload)?;
        }
        self.started_arms.push(StartedArm { server, setup: setup.clone(), on: arm.on.clone(), off: arm.off.clone() });
        Ok(())
    }

    /// Loads the data of arm `number`: those of Tithe's own clients where it `loads` them, those of another program in
    /// any case.
    fn load(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        number: usize,
        (server, setup, loads): (&Server, &Setup, bool),
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        let workload = run.workloads[part.cell.workload].as_ref();
        let of = workload.rows(run.plan.experiment.data.records);
        let mut tell = |done| {
            observer.event(&Event::Loading { cell: part.number as u32, arm: number as u32, done, of });
        };
        match workload.offered_by() {
            Load::Program(program) => {
                tell(0);
                self.prepare_program(run, program, workload, &run.plan.experiment.arms[number], server, setup)?;
                tell(of);
                Ok(())
            }
            Load::Clients(clients) if loads => load(run, (workload, clients), server, setup, &mut tell),
            Load::Clients(_) => Ok(()),
        }
    }

    /// Stops the server that was started last, whose data have just been loaded, keeps them, and starts it again on a
    /// copy; returns where that came from.
    fn keep(
        &mut self,
        run: &Run<'_>,
        workload: &dyn Workload,
        arm: &str,
        (setup, fingerprint): (&Setup, &Fingerprint),
        data_sets: &mut DataSets,
    ) -> Result<String, Fault> {
        let number = self.servers.len() - 1;
        let server = self.servers[number].server.clone();
        data::quiesce(run.product, &server, setup, workload)?;
        let launch = self.servers[number].stop()?;
        run.product.close(&server);
        data_sets.keep(fingerprint, arm, &server.folder)?;
        let origin = data_sets.restore(fingerprint, &server.folder)?.unwrap_or_default();
        if let Some(launch) = launch {
            self.go_on(number, launch)?;
            self.await_start(number, setup)?;
        }
        Ok(origin)
    }

    /// Starts server `number` again on its data, without waiting for it.
    fn go_on(&mut self, number: usize, launch: Launch) -> Result<(), Fault> {
        let started = &mut self.servers[number];
        let running = self.sandbox.start(&launch, &started.server.folder.join(serve::LOG))?;
        started.server.process = running.as_ref().map(Running::process);
        started.process = running.map(|running| (running, launch));
        Ok(())
    }

    fn await_start(&mut self, number: usize, setup: &Setup) -> Result<(), Fault> {
        let started = &mut self.servers[number];
        match &mut started.process {
            Some((running, _)) => serve::wait_until_ready(self.database, &started.server, setup, running),
            None => Ok(()),
        }
    }

    /// The arms, ready to be measured.
    pub(super) fn take_arms(&mut self) -> Vec<StartedArm> {
        std::mem::take(&mut self.started_arms)
    }

    /// Where servers are paused while another arm is measured: in slices and where keys are rotated (`rotates`), and
    /// only those that Tithe started.
    pub(super) fn pauses_in(&self, cell: &Cell, rotates: bool) -> Option<PathBuf> {
        (cell.design == Design::Slices || rotates).then(|| self.sandbox.folder().to_owned())
    }

    /// True when Tithe starts the server of some arm.
    fn launches(&self, arms: &[Arm]) -> bool {
        !self.database.embedded() && !self.database.simulated() && arms.iter().any(|arm| arm.url.is_none())
    }

    /// Has `program` load its data into the server of one arm.
    fn prepare_program(
        &mut self,
        run: &Run<'_>,
        program: &dyn Program,
        workload: &dyn Workload,
        arm: &Arm,
        server: &Server,
        setup: &Setup,
    ) -> Result<(), Fault> {
        let workspace = Workspace::new(program, run.product, server, setup, "program")?;
        self.logs.push((format!("{}--program", file_name(&arm.name)), workspace.log()));
        workspace.prepare(program, run.product, server, setup, workload, run.cancelled)?;
        self.workspaces.push(workspace);
        Ok(())
    }

    /// Where another program works, by arm; empty where Tithe's own clients do.
    pub(super) fn take_workspaces(&mut self) -> Vec<Workspace> {
        std::mem::take(&mut self.workspaces)
    }

    /// Starts the server of one arm on its volume, within its limits and on a copy of a kept data set where there is
    /// one; or finds the running one.
    fn start(
        &mut self,
        run: &Run<'_>,
        arm: &Arm,
        setup: &Setup,
        limits: GroupLimits,
        data_set: Option<(&Fingerprint, &DataSets)>,
    ) -> Result<Begun, Fault> {
        let name = file_name(&arm.name);
        let place = self.sandbox.place(&name)?;
        let mut notes = Vec::new();
        let mut origin = None;
        let (server, process, configuration) = if let Some(url) = &arm.url {
            let address = Address::Attached(url.clone());
            let server = Server { address, process: None, paths: Default::default(), folder: place.folder };
            let mut configuration = vec![format!("url = {}", url.redacted())];
            configuration.extend(arm.on.iter().map(|statement| format!("on = {statement}")));
            (server, None, configuration)
        } else {
            let mounted = setup.volume.as_ref().map(|asked| volumes::set_up(asked, &place.folder, &self.sandbox));
            let mounted = mounted.transpose()?;
            if limits != GroupLimits::default() {
                let helper = mounted.as_ref().and_then(Mounted::process);
                let words = self.sandbox.confine(&place.folder, limits, helper)?;
                notes.push((if limits.confine() { Fact::Limits } else { Fact::ControlGroup }, words));
            }
            notes.extend(setup.volume.iter().flat_map(|asked| volumes::facts(asked, &place.folder)));
            self.volumes.extend(mounted);
            let launch = run.product.launch(&run.install, setup, &place);
            self.logs.push((name, place.folder.join(serve::LOG)));
            origin = data_set
                .map(|(fingerprint, data_sets)| data_sets.restore(fingerprint, &place.folder))
                .transpose()?
                .flatten();
            match origin {
                Some(_) => self.sandbox.prepare_on_copy(&launch)?,
                None => self.sandbox.prepare(&launch)?,
            }
            let (server, running) = serve::serve(run.product, &self.sandbox, &place, &launch, setup)?;
            let configuration = configuration(&launch, setup, &place);
            (server, running.map(|running| (running, launch)), configuration)
        };
        self.servers.push(Started { server: server.clone(), process });
        Ok(Begun { server, configuration, notes, origin })
    }

    /// Starts every server of `arms` anew on the data that it has. Where the memory of a server lies and how its code
    /// meets the caches is luck that stays as long as the server does, and would pass for a cost. `cold`: the page
    /// cache is emptied while no server runs; returns how.
    pub(super) fn restart(&mut self, arms: &mut [StartedArm], cold: bool) -> Result<Option<&'static str>, Fault> {
        for started in &mut self.servers {
            // All are asked to stop before the first is waited for.
            started.process.iter_mut().for_each(|(running, _)| running.ask_to_stop());
        }
        let stopped: Vec<Option<Launch>> =
            self.servers.iter_mut().map(|started| started.process.take().map(|(_, launch)| launch)).collect();
        let emptied = cold.then(|| self.empty_cache()).transpose()?;
        for (number, launch) in stopped.into_iter().enumerate() {
            match launch {
                Some(launch) => {
                    self.go_on(number, launch)?;
                    arms[number].server.process = self.servers[number].server.process;
                }
                None if self.database.embedded() => self.database.close(&self.servers[number].server),
                None => {}
            }
        }
        for (number, arm) in arms.iter().enumerate() {
            self.await_start(number, &arm.setup)?;
        }
        Ok(emptied)
    }

    /// Empties the page cache; returns how.
    pub(super) fn empty_cache(&self) -> Result<&'static str, Fault> {
        let files = self.servers.iter().flat_map(|started| files_of(&started.server, Places::ALL));
        cache::empty(files.map(|file| file.path))
    }

    /// Removes the data of `workload` from servers that Tithe does not stop.
    pub(super) fn clear(&self, workload: &dyn Workload) -> Result<(), Fault> {
        self.attached.iter().try_for_each(|(server, setup)| data::remove(self.database, server, setup, workload))
    }

    /// How the first server that ended by itself did so; that its memory was too little explains more than how it
    /// ended.
    pub(super) fn ended(&mut self) -> Option<String> {
        let mut running = self.servers.iter_mut().filter_map(|started| started.process.as_mut());
        let ended = running.find_map(|(running, _)| running.ended());
        self.sandbox.short_of_memory().or(ended)
    }

    /// Keeps what the servers said, as files that begin with `prefix`.
    pub(super) fn keep_logs(&self, folder: &RunFolder, prefix: &str) {
        for (arm, log) in &self.logs {
            folder.keep_log(&format!("{prefix}--{arm}.log"), log);
        }
    }
}

/// The set-up that tables are made with: one that is kept bears no trace of the statements of the arm that loaded it.
fn without_statements(setup: &Setup, fingerprint: Option<&Fingerprint>) -> Setup {
    let mut setup = setup.clone();
    if fingerprint.is_some() {
        setup.statements.clear();
    }
    setup
}

/// Brings a server on a copy to where one that has loaded its data would be: the arm's own statements are run, and its
/// caches are filled.
fn make_ready(database: &dyn Database, server: &Server, setup: &Setup, workload: &dyn Workload) -> Result<(), Fault> {
    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: workload.table() };
    // Not as the workload connects: what the arm itself needs does not belong among the workload's tables.
    let mut session = database.connect(server, setup, &how)?;
    for statement in &setup.statements {
        session.connection().run_statement(statement)?;
    }
    session.connection().warm()
}

/// How the arms of `cell` are kept side by side, in the words of the report.
fn mode(cell: &Cell, shared: bool, launched: bool) -> String {
    let servers = if shared { "session" } else { "twin" };
    let mode = match cell.design {
        Design::Interleaved => servers.to_owned(),
        Design::Duet => format!("{servers}, duet"),
        Design::Slices if launched => format!("{servers}, slices, the other servers stopped"),
        Design::Slices => format!("{servers}, slices"),
        Design::Sequential => format!("{servers}, sequential"),
    };
    if cell.pinned { mode } else { format!("{mode}, not bound to processors") }
}

/// True when the arms share one attached server and differ by statements only.
fn shares_server(arms: &[Arm]) -> bool {
    arms.first().is_some_and(|first| first.url.is_some() && arms.iter().all(|arm| arm.url == first.url))
}

/// Has `clients` load the data of one arm through its own protections, in parallel; tells the rows that are done.
fn load(
    run: &Run<'_>,
    (workload, clients): (&dyn Workload, &dyn Clients),
    server: &Server,
    setup: &Setup,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Fault> {
    let parts = if run.product.embedded() || run.product.simulated() { 1 } else { process::processors().len() as u64 };
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| {
                let done = &done;
                scope.spawn(move || {
                    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: workload.table() };
                    let mut session = data::connect(run.product, server, setup, &how, workload)?;
                    clients.load(&mut session, part, parts, done)
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            tell(done.load(Ordering::Relaxed));
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_millis(200) && threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Fault::Machine("loading panicked".to_owned()))))
    })
}
