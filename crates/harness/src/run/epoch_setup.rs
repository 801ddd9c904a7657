//! The arms of one epoch: started, loaded, restarted, and stopped.
//!
//! Servers are started from the thread that runs the epoch, because they die with the thread that starts them. Work
//! that can be done at the same time (copying, waiting, filling caches) has threads of its own.

pub(super) mod again;
mod fill;
mod own_data;
mod undo;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use tithe_machine::{
    cgroup,
    fault::Fault,
    launch::{Address, Launch, Place, Server, Step},
    sandbox::Sandbox,
};
use tithe_model::{
    experiment::{Arm, Arrivals, Design, Experiment},
    fact::{Fact, Note},
    plan::Cell,
    record::{ArmFacts, Event},
    records::CellFacts,
};
use tithe_plugin::{
    checks::scan::{Places, files_of},
    configuration::configuration,
    data,
    database::Database,
    program::Program,
    setup::{Authentication, FILES, Setup},
    workload::{Load, Workload},
    workspace::Workspace,
};

use self::{
    fill::{fill_caches, load, run_after_loading, run_statements, try_switches, without_statements},
    undo::Administered,
};
use super::{
    EpochPlan, EventListener, EventLog, Run, RunState,
    arm_server::ArmServer,
    cache,
    data_sets::{self, DataSets, Fingerprint},
    draw::{Draw, in_order},
    located,
    sharing::Sharing,
    switched_server::SwitchedServer,
    together::together,
};
use crate::{
    arms::Resolved,
    folder::RunFolder,
    limits,
    load::frame::StartedArm,
    serve,
    volumes::{
        self, Mounted,
        own_swap::{self, OwnSwap},
    },
};

/// How long a server may take to end after its connections have broken.
const ENDING_TIMEOUT: Duration = Duration::from_secs(2);

/// The servers of one epoch; they stop when it is dropped.
pub(super) struct EpochSetup<'a> {
    database: &'a dyn Database,
    /// By the arm's number, like all that follow.
    started_arms: BTreeMap<usize, StartedArm>,
    /// The places where another program works; empty if Tithe's own clients offer the load.
    workspaces: BTreeMap<usize, Workspace>,
    servers: BTreeMap<usize, ArmServer>,
    /// The data set of each arm that is put back with every start, if all arms have one.
    put_back: BTreeMap<usize, Fingerprint>,
    /// All servers run on copies, and nothing was written since they were started.
    quiet: bool,
    /// All arms are on one server at the same time.
    shares_server: bool,
    /// Servers that Tithe does not stop, once they hold its data.
    attached: Vec<(Server, Setup)>,
    /// The log of each launched server, by the arm's name in file names.
    logs: Vec<(String, PathBuf)>,
    // Dropped after the servers that use them.
    volumes: Vec<Mounted>,
    // Dropped after the servers that may have been swapped out.
    _swap: Option<OwnSwap>,
    // Last: the servers end before their folder is removed.
    sandbox: Sandbox,
}

/// An arm that is being started: its place, its set-up, and facts to report about it.
struct StartingArm<'s> {
    number: usize,
    setup: Cow<'s, Setup>,
    /// The data set that its data are to be a copy of.
    fingerprint: Option<&'s Fingerprint>,
    place: Place,
    /// `None` for an attached server.
    launch: Option<Launch>,
    /// The bytes to add to the environment of its server.
    padding: usize,
    /// Everything except its data already exists here.
    prepared: bool,
    configuration: Vec<String>,
    /// Facts that the server itself does not know.
    notes: Vec<(Fact, String)>,
}

impl Drop for EpochSetup<'_> {
    fn drop(&mut self) {
        // Their data are removed with the sandbox, so they need not be written: all end at once.
        self.servers.values_mut().for_each(|standing| standing.ask_to_stop(true));
        self.servers.values().for_each(|standing| self.database.close(&standing.server));
    }
}

impl<'a> EpochSetup<'a> {
    /// For servers that listen where `experiment` says, with encrypted swap if it asks for some.
    pub(super) fn new(database: &'a dyn Database, folder: &RunFolder, experiment: &Experiment) -> Result<Self, Fault> {
        let sandbox = Sandbox::new(folder.path())?.listening_on(experiment.load.address());
        let swap = experiment.encrypted_swap_bytes.map(|bytes| own_swap::set_up(bytes, &sandbox)).transpose()?;
        Ok(Self {
            database,
            started_arms: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            servers: BTreeMap::new(),
            put_back: BTreeMap::new(),
            quiet: false,
            shares_server: false,
            attached: Vec::new(),
            logs: Vec::new(),
            volumes: Vec::new(),
            _swap: swap,
            sandbox,
        })
    }

    /// Starts every arm on loaded data; `switched` switches the server to each arm, if one server is all of them in
    /// turn.
    pub(super) fn set(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        switched: Option<&mut SwitchedServer<'_>>,
        run_state: &mut RunState,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let EpochPlan { number, cell, .. } = *part;
        let RunState { data_sets, held_servers, .. } = run_state;
        let workload = run.workloads[cell.workload].as_ref();
        let mut credentials = self.sandbox.credentials()?;
        data_sets.share_secrets(&mut credentials);
        let setup_of = |arm: &Resolved<'_>| arm.setup(run.plan, cell, &credentials);
        let mut setups: Vec<Setup> = run.arms.iter().map(setup_of).collect::<Result<_, _>>()?;
        own_data::find_tables(run, workload, &mut setups)?;
        let changes = workload.writes() && setups.iter().all(|setup| !setup.tables.is_in_place());
        let sharing = match switched {
            Some(_) => Sharing::in_turn(setups.len()),
            None => Sharing::find(run, &mut setups, changes, held_servers)?,
        };
        self.shares_server = switched.is_none() && sharing.is_one_server();
        // If data change, the effect of a start on them may differ between arms.
        let shares_starts = sharing.is_one_server() && !workload.writes();
        event_log.folder.cell(number, |facts| {
            facts.shares_starts = shares_starts;
            self.describe(run, part, (&setups, &sharing), facts);
        })?;
        if shares_starts {
            event_log.add(Event::StartsShared { cell: number as u32 })?;
        }
        let again = workload.writes() && cell.starts_per_epoch() > 1;
        let fingerprints = match workload.offered_by() {
            // Data of another program are loaded again: they may differ from start to start.
            Load::Program(_) if workload.restore().is_none() => vec![None; setups.len()],
            _ => data_sets.plan(run, part, &setups, again),
        };
        let mut starting = self.places(run, part, (&setups, &fingerprints, &sharing))?;
        self.start_all(run, part, (&mut starting, &sharing), (switched, data_sets), event_log)?;
        self.see_attached(run, part, &sharing, event_log)?;
        let is_kept = |fingerprint: &Fingerprint| data_sets.has(fingerprint);
        let numbered = fingerprints.into_iter().enumerate();
        let kept: BTreeMap<usize, Fingerprint> =
            numbered.filter_map(|(number, fingerprint)| Some((number, fingerprint.filter(is_kept)?))).collect();
        // All arms or none, so that the comparison is fair.
        if again && kept.len() == setups.len() {
            self.put_back = kept;
        }
        if cell.starts_per_epoch() > 1 {
            let words = self.between_starts(workload.writes());
            event_log.folder.cell(number, |facts| facts.note(Note::DataBetweenStarts, words))?;
        }
        Ok(())
    }

    /// Writes into `facts` what is known about the cell of `part` before any server is started.
    fn describe(
        &self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        (setups, sharing): (&[Setup], &Sharing),
        facts: &mut CellFacts,
    ) {
        let EpochPlan { number, cell, .. } = *part;
        let experiment = &run.plan.experiment;
        let workload = run.workloads[cell.workload].as_ref();
        facts.mode = mode(cell, sharing.is_one_server(), self.launches(&experiment.arms));
        facts.notes = workload.describe();
        facts.statements = own_data::statements(workload);
        if run.plan.cells[number].arrivals != cell.arrivals
            && let Arrivals::Poisson(rate) = cell.arrivals
        {
            facts.note(Note::Rate, format!("{rate:.0}/s"));
        }
        if run.rotates {
            let turns = "each runs in its arm's slots only, because keys are rotated".to_owned();
            facts.note(Note::Servers, turns);
        }
        let words = experiment.load.listen.map(|address| listening(address, setups));
        words.into_iter().for_each(|words| facts.note(Note::Listen, words));
        if run.uses_child_processes() {
            facts.note(Note::Process, "one of its own for every start, for all arms".to_owned());
        }
        let own = setups.iter().find_map(|setup| setup.tables.in_words());
        own.or_else(|| sharing.in_words()).into_iter().for_each(|words| facts.note(Note::Data, words));
        let swap = experiment.encrypted_swap_bytes.map(own_swap::layers);
        swap.into_iter().for_each(|layers| facts.note(Note::EncryptedSwap, layers));
        if let Some(every) = cell.reconnect_every {
            facts.note(Note::Connections, format!("opened again after every {every} operations"));
        }
        facts.arms = vec![ArmFacts::default(); experiment.arms.len()];
    }

    /// Counts the work of attached servers if they are seen on this machine, and reports how or why not.
    fn see_attached(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        sharing: &Sharing,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        if run.cancelled() || !self.started_arms.values().all(|arm| arm.server.address.is_attached()) {
            return Ok(());
        }
        if part.cell.design.is_switched() {
            let words = "not searched: the provider's switch may start another server in its place";
            return event_log.folder.cell(part.number, |known| {
                known.arms.iter_mut().for_each(|arm| arm.set(Fact::ServerProcesses, words.to_owned()));
            });
        }
        let located = located::locate(run, part, &self.started_arms, sharing.is_one_server())?;
        for (number, seen) in located.servers {
            let started = self.started_arms.get_mut(&number).map(|arm| &mut arm.server);
            let standing = self.servers.get_mut(&number).map(|standing| &mut standing.server);
            started.into_iter().chain(standing).for_each(|server| seen.clone().put_into(server));
        }
        let mut facts = Vec::new();
        for (number, words) in located.words {
            facts.push((number, (Fact::ServerProcesses, words)));
            facts.extend(located::machine(run, number)?.into_iter().map(|fact| (number, fact)));
        }
        event_log.folder.cell(part.number, |known| {
            facts.into_iter().for_each(|(number, (fact, words))| known.arms[number].set(fact, words));
        })?;
        located.warnings.into_iter().try_for_each(|words| event_log.warn(words))
    }

    /// What servers find when they are restarted within the epoch.
    fn between_starts(&self, writes: bool) -> String {
        match (writes, self.put_back.is_empty()) {
            (false, _) => "as they were: nothing changes them",
            (true, false) => "put back to what was loaded",
            (true, true) => "as the start before left them, because some arm has no kept data set",
        }
        .to_owned()
    }

    /// A place for each arm, in the order in which they are to be started. The order is drawn, so that the position in
    /// it is no property of an arm. An arm that works on another one's data comes after it.
    fn places<'s>(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        (setups, fingerprints, sharing): (&'s [Setup], &'s [Option<Fingerprint>], &Sharing),
    ) -> Result<Vec<StartingArm<'s>>, Fault> {
        let draw = Draw::of(part.cell.seed, part.first_start, setups.len());
        let order = if sharing.shares_data() { (0..setups.len()).collect() } else { draw.order };
        let mut starting = Vec::with_capacity(order.len());
        for number in order {
            let fingerprint = fingerprints[number].as_ref();
            starting.push(self.place(run, part, number, (&setups[number], fingerprint), draw.paddings[number])?);
        }
        Ok(starting)
    }

    /// The place of one arm, with its volume and within its limits, and the launch there.
    fn place<'s>(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        number: usize,
        (setup, fingerprint): (&'s Setup, Option<&'s Fingerprint>),
        padding: usize,
    ) -> Result<StartingArm<'s>, Fault> {
        let (cell, experiment) = (part.cell, &run.plan.experiment);
        let arm = &experiment.arms[number];
        let place = self.sandbox.place(&run.names.arms[number])?;
        let setup = setup.placed(&place.folder);
        let mut limits = limits::of_cell(experiment, cell.workload, cell.resources);
        // A process that served a connection and has ended is counted by its group alone.
        limits.account = cell.reconnect_every.is_some() && cgroup::counts();
        let mut notes = Vec::new();
        if let Some(bytes) = limits.memory_bytes {
            let times = limits::data_bytes(experiment, cell.workload) as f64 / bytes as f64;
            notes.push((Fact::DataPerMemory, format!("{times:.2} times the limit of memory")));
        }
        let (launch, configuration) = if let Some(url) = &arm.url {
            let session = setup.after_loading.session.iter().map(|statement| format!("client: {statement}"));
            let on = arm.on.iter().map(|statement| format!("on = {statement}")).chain(session);
            let switch = arm.switch.iter().flat_map(|switch| {
                [("on", switch.on.join(" ")), ("off", switch.off.join(" ")), ("ready", switch.question())]
            });
            let switch = switch.map(|(name, words)| format!("switch.{name} = {words}"));
            (None, std::iter::once(format!("url = {}", url.redacted())).chain(on).chain(switch).collect())
        } else {
            let mounted = setup.volume.as_ref().map(|asked| volumes::set_up(asked, &place.folder, &self.sandbox));
            let mounted = mounted.transpose()?;
            if limits != cgroup::GroupLimits::default() {
                let helper = mounted.as_ref().and_then(Mounted::process);
                let words = self.sandbox.confine(&place.folder, limits, helper)?;
                notes.push((if limits.confine() { Fact::Limits } else { Fact::ControlGroup }, words));
            }
            notes.extend(setup.volume.iter().flat_map(|asked| volumes::facts(asked, &place.folder)));
            self.volumes.extend(mounted);
            self.logs.push((run.names.arms[number].clone(), place.folder.join(serve::LOG)));
            let mut launch = run.product.launch(run.install(cell, number), &setup, &place);
            launch.steps.extend(put_files(&setup, &place));
            let configuration = configuration(&launch, &setup, &place);
            (Some(launch), configuration)
        };
        Ok(StartingArm { number, setup, fingerprint, place, launch, padding, prepared: false, configuration, notes })
    }

    /// Starts the arms that are `starting`. First each data set that is not kept yet is loaded; then arms with kept
    /// sets start all at once, then the others. Loading needs all processors, so one arm loads after the other.
    fn start_all(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        (starting, sharing): (&mut [StartingArm<'_>], &Sharing),
        (mut switched, data_sets): (Option<&mut SwitchedServer<'_>>, &mut DataSets),
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        // In the experiment's order: the arm that loads a set must not depend on chance.
        let mut to_load: Vec<&mut StartingArm<'_>> =
            starting.iter_mut().filter(|arm| arm.fingerprint.is_some()).collect();
        to_load.sort_by_key(|arm| arm.number);
        for arm in to_load {
            if run.cancelled() {
                return Ok(());
            }
            self.load_set(run, part, arm, data_sets, event_log.listener)?;
        }
        let kept: Vec<&StartingArm<'_>> = starting.iter().filter(|arm| arm.fingerprint.is_some()).collect();
        self.start_on_copies(run, part, &kept, data_sets, event_log)?;
        let statements =
            kept.iter().any(|arm| !arm.setup.statements.is_empty() || !arm.setup.after_loading.statements.is_empty());
        self.quiet = kept.len() == starting.len() && !statements;
        for arm in starting.iter().filter(|arm| arm.fingerprint.is_none()) {
            if let Some(switched) = switched.as_deref_mut().filter(|_| !run.cancelled()) {
                switched.reach(arm.number, &arm.setup, event_log)?;
            }
            if run.cancelled() {
                return Ok(());
            }
            self.start_and_load(run, part, arm, sharing.data_of(arm.number), event_log)?;
        }
        Ok(())
    }

    /// Lets one arm load its data set and keeps it, unless it is kept already.
    fn load_set(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        starting: &mut StartingArm<'_>,
        data_sets: &mut DataSets,
        listener: &mut dyn EventListener,
    ) -> Result<(), Fault> {
        let (Some(fingerprint), Some(launch)) = (starting.fingerprint, &starting.launch) else { return Ok(()) };
        if data_sets.has(fingerprint) {
            return Ok(());
        }
        let workload = run.workloads[part.cell.workload].as_ref();
        self.sandbox.prepare(launch)?;
        starting.prepared = true;
        self.begin(starting)?;
        let server = self.await_start(starting)?;
        data::create(run.product, &server, &without_statements(&starting.setup), workload)?;
        self.load(run, part, starting.number, (&server, &starting.setup, true), listener)?;
        data::quiesce(run.product, &server, &starting.setup, workload)?;
        run.product.condense(&server, &starting.setup)?;
        self.servers.get_mut(&starting.number).map_or(Ok(()), ArmServer::stop_cleanly)?;
        run.product.close(&server);
        data_sets.keep(fingerprint, &run.plan.experiment.arms[starting.number].name, &server.folder)
    }

    /// Starts the arms `starting` on copies of their kept sets, all at once.
    fn start_on_copies(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        starting: &[&StartingArm<'_>],
        data_sets: &DataSets,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let sandbox = &self.sandbox;
        let origins = together(starting, |arm| {
            let (Some(fingerprint), Some(launch)) = (arm.fingerprint, &arm.launch) else { return Ok(None) };
            let origin = data_sets.restore(fingerprint, &arm.place.folder, &launch.paths)?;
            match arm.prepared {
                true => sandbox.prepare_again(launch)?,
                false => sandbox.prepare_on_copy(launch)?,
            }
            Ok(origin)
        })?;
        data_sets::sync(starting.iter().map(|arm| arm.place.folder.as_path()))?;
        starting.iter().try_for_each(|arm| self.begin(arm))?;
        let order: Vec<usize> = starting.iter().map(|arm| arm.number).collect();
        let of_number = |number: usize| starting.iter().find(|arm| arm.number == number);
        let begun = in_order(&order, &mut self.servers).into_iter();
        let begun = begun.filter_map(|(number, standing)| Some((standing, of_number(number)?)));
        let (product, workload) = (run.product, run.workloads[part.cell.workload].as_ref());
        let facts = together(begun, |(standing, arm)| {
            standing.await_ready(product, &arm.setup)?;
            let facts = product.facts(&standing.server, &arm.setup)?;
            run_statements(product, &standing.server, &arm.setup, workload)?;
            fill_caches(product, &standing.server, &arm.setup, workload)?;
            Ok((arm.number, facts))
        })?;
        let mut facts: BTreeMap<usize, ArmFacts> = facts.into_iter().collect();
        let mut in_order: Vec<_> = starting.iter().zip(origins).collect();
        in_order.sort_by_key(|(arm, _)| arm.number);
        for (arm, origin) in in_order {
            let facts = facts.remove(&arm.number).unwrap_or_default();
            keep(part, arm, (facts, origin), event_log)?;
            self.place_program(run, part, arm)?;
            self.has_started(run, arm, arm.number);
        }
        Ok(())
    }

    /// Starts the arm that is `starting`, or finds the running server. Loads its data, unless they are those of the arm
    /// `owner`, which has loaded them.
    fn start_and_load(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        starting: &StartingArm<'_>,
        owner: usize,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let (setup, workload) = (&*starting.setup, run.workloads[part.cell.workload].as_ref());
        let server = if let Some(launch) = &starting.launch {
            self.sandbox.prepare(launch)?;
            self.begin(starting)?;
            self.await_start(starting)?
        } else {
            let url = run.plan.experiment.arms[starting.number].url.clone();
            let address = url.map_or_else(Address::default, Address::Attached);
            let folder = starting.place.folder.clone();
            let server = Server { folder, ..Server::at(address) };
            self.servers.insert(starting.number, ArmServer::attached(server.clone()));
            server
        };
        let loads = owner == starting.number;
        if starting.launch.is_none() {
            // Before the tables are made again: what a killed run has left may refer to them.
            Administered { database: run.product, server: &server, setup, workload }.undo()?;
        }
        if loads {
            let created = data::create(run.product, &server, setup, workload);
            let remove = || data::remove(run.product, &server, setup, workload);
            if starting.launch.is_none() && leaves_data(&created, remove) {
                self.attached.push((server.clone(), setup.clone()));
            }
            created?;
        }
        let mut facts = run.product.facts(&server, setup)?;
        if let Address::Attached(url) = &server.address {
            let remarks = run.product.remarks(url, setup);
            if !remarks.is_empty() {
                facts.set(Fact::Connection, remarks.join("; "));
            }
        }
        keep(part, starting, (facts, None), event_log)?;
        try_switches(run.product, &run.plan.experiment.arms[starting.number], (&server, setup), workload)?;
        self.load(run, part, starting.number, (&server, setup, loads), event_log.listener)?;
        run_after_loading(run.product, &server, setup, workload)?;
        self.place_program(run, part, starting)?;
        self.has_started(run, starting, owner);
        Ok(())
    }

    /// Starts the server of the arm that is `starting`, without waiting for it.
    fn begin(&mut self, starting: &StartingArm<'_>) -> Result<(), Fault> {
        let Some(launch) = starting.launch.clone() else { return Ok(()) };
        let standing = ArmServer::begin(launch, &starting.place.folder, starting.padding, &self.sandbox)?;
        self.servers.insert(starting.number, standing);
        Ok(())
    }

    /// Waits until the server of the arm that is `starting` answers.
    fn await_start(&mut self, starting: &StartingArm<'_>) -> Result<Server, Fault> {
        let standing = self.servers.get_mut(&starting.number);
        let standing = standing.ok_or_else(|| Fault::Machine("a server was not started".to_owned()))?;
        standing.await_ready(self.database, &starting.setup)?;
        Ok(standing.server.clone())
    }

    /// Adds the arm that was `starting`, ready to be measured, on the data of the arm `data`.
    fn has_started(&mut self, run: &Run<'_>, starting: &StartingArm<'_>, data: usize) {
        let Some(standing) = self.servers.get(&starting.number) else { return };
        let (server, arm) = (standing.server.clone(), &run.plan.experiment.arms[starting.number]);
        let (setup, on, off) = (starting.setup.clone().into_owned(), arm.on.clone(), arm.off.clone());
        let started = StartedArm { server, data, shares_server: self.shares_server, setup, on, off };
        self.started_arms.insert(starting.number, started);
    }

    /// True when no work has to be settled: all servers run on copies of data that were settled.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Loads the data of arm `number`: those of Tithe's own clients if it `loads` them, those of another program in any
    /// case.
    fn load(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        number: usize,
        (server, setup, loads): (&Server, &Setup, bool),
        listener: &mut dyn EventListener,
    ) -> Result<(), Fault> {
        let workload = run.workloads[part.cell.workload].as_ref();
        let of = workload.rows(run.plan.experiment.data.records);
        let mut report = |done| {
            listener.event(&Event::Loading { cell: part.number as u32, arm: number as u32, done, of });
        };
        match workload.offered_by() {
            Load::Program(program) => {
                report(0);
                match workload.restore() {
                    Some(data) => self.restore(run, data, workload, number, (server, setup))?,
                    None => self.prepare_program(run, program, workload, number, server, setup)?,
                }
                report(of);
                Ok(())
            }
            Load::Clients(clients) if loads => {
                if let Some(data) = workload.restore() {
                    report(0);
                    self.restore(run, data, workload, number, (server, setup))?;
                }
                load(run, (workload, clients), server, setup, &mut report)
            }
            Load::Clients(_) => Ok(()),
        }
    }

    /// The arms, ready to be measured.
    pub(super) fn take_arms(&mut self) -> Vec<StartedArm> {
        std::mem::take(&mut self.started_arms).into_values().collect()
    }

    /// The folder in which servers are paused while another arm is measured: in slices, and if keys are rotated
    /// (`rotates`). Only servers that Tithe started are paused.
    pub(super) fn pauses_in(&self, cell: &Cell, rotates: bool) -> Option<PathBuf> {
        (cell.design == Design::Slices || rotates).then(|| self.sandbox.folder().to_owned())
    }

    /// True when Tithe starts the server of some arm.
    fn launches(&self, arms: &[Arm]) -> bool {
        !self.database.embedded() && !self.database.simulated() && arms.iter().any(|arm| arm.url.is_none())
    }

    /// Makes the place where `program` works on the server of one arm. The program loads its data there, unless they
    /// are the user's own.
    fn prepare_program(
        &mut self,
        run: &Run<'_>,
        program: &dyn Program,
        workload: &dyn Workload,
        number: usize,
        server: &Server,
        setup: &Setup,
    ) -> Result<(), Fault> {
        let arm = &run.names.arms[number];
        let workspace = Workspace::new(program, run.product, server, setup, "program")?;
        self.logs.push((format!("{arm}--program"), workspace.log()));
        if workload.restore().is_none() {
            workspace.prepare(program, run.product, server, setup, workload, run.cancelled)?;
        }
        self.workspaces.insert(number, workspace);
        Ok(())
    }

    /// The places where another program works, by arm; empty if Tithe's own clients offer the load.
    pub(super) fn take_workspaces(&mut self) -> Vec<Workspace> {
        std::mem::take(&mut self.workspaces).into_values().collect()
    }

    /// Empties the page cache; returns how.
    pub(super) fn empty_cache(&self) -> Result<&'static str, Fault> {
        let files = self.servers.values().flat_map(|standing| files_of(&standing.server, Places::ALL));
        cache::empty(files.map(|file| file.path))
    }

    /// True if a server that Tithe does not stop holds data of Tithe's.
    pub(super) fn has_remote_data(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Removes the data of `workload` from servers that Tithe does not stop, from each even if another one cannot be
    /// reached.
    ///
    /// # Errors
    /// The first error, once all were tried.
    pub(super) fn clear(&self, workload: &dyn Workload) -> Result<(), Fault> {
        let remove = |(server, setup): &(Server, Setup)| {
            let undone = Administered { database: self.database, server, setup, workload }.undo();
            let removed = undone.and(data::remove(self.database, server, setup, workload));
            removed.map_err(|fault| match &server.address {
                Address::Attached(url) => fault.of(url.redacted()),
                _ => fault,
            })
        };
        self.attached.iter().map(remove).fold(Ok(()), Result::and)
    }

    /// How the first server that ended by itself did so. Too little memory is a better explanation than its exit
    /// status.
    pub(super) fn ended(&mut self) -> Option<String> {
        let ended = self.servers.values_mut().find_map(ArmServer::ended);
        self.sandbox.short_of_memory().or(ended)
    }

    /// The same, once its connections have broken: a process closes them before the kernel reports its end.
    pub(super) fn ended_soon(&mut self) -> Option<String> {
        let deadline = Instant::now() + ENDING_TIMEOUT;
        loop {
            let ended = self.ended();
            if ended.is_some() || self.servers.is_empty() || Instant::now() > deadline {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Keeps the servers' logs, as files that begin with `prefix`.
    pub(super) fn keep_logs(&self, folder: &RunFolder, prefix: &str) {
        for (arm, log) in &self.logs {
            folder.keep_log(&format!("{prefix}--{arm}.log"), log);
        }
    }
}

/// The steps that put the user's own files into their folder in `place`.
fn put_files(setup: &Setup, place: &Place) -> Vec<Step> {
    let folder = place.folder.join(FILES);
    let mut steps: Vec<Step> = Vec::new();
    for (name, from) in &setup.files {
        let path = folder.join(name);
        // Parent folders first, each once.
        let mut above: Vec<PathBuf> = path.ancestors().skip(1).map(PathBuf::from).collect();
        above.retain(|parent| parent.starts_with(&folder) && !steps.contains(&Step::Folder(parent.clone())));
        steps.extend(above.into_iter().rev().map(Step::Folder));
        steps.push(Step::Copy { path, from: from.clone() });
    }
    steps
}

/// True if the end of the epoch must remove data of Tithe's from an attached server, on which they were `created` or
/// creation failed. Parts that were made before a refusal are removed now by `remove`. If that is refused with the same
/// text, there is something else in that place, and nothing was made.
fn leaves_data(created: &Result<(), Fault>, remove: impl FnOnce() -> Result<(), Fault>) -> bool {
    let Err(Fault::Refused(_)) = created else { return true };
    let removed = remove();
    removed.is_err() && removed != *created
}

/// Records and reports the facts about an arm that was `starting` and is ready.
fn keep(
    part: &EpochPlan<'_>,
    starting: &StartingArm<'_>,
    (mut facts, origin): (ArmFacts, Option<String>),
    event_log: &mut EventLog<'_>,
) -> Result<(), Fault> {
    facts.configuration.splice(0..0, starting.configuration.iter().cloned());
    let origin = origin.map(|origin| (Fact::DataSet, origin));
    starting.notes.iter().cloned().chain(origin).for_each(|(fact, text)| facts.set(fact, text));
    let (cell, arm, version) = (part.number as u32, starting.number as u32, facts.version.clone());
    event_log.add(Event::ArmStarted { cell, epoch: part.epoch, arm, version })?;
    event_log.folder.cell(part.number, |known| known.arms[starting.number] = facts)
}

/// The report's text about who reaches the servers at `address`, and how all their clients log in.
fn listening(address: IpAddr, setups: &[Setup]) -> String {
    match setups.first().map(|setup| &setup.authentication) {
        Some(Authentication::Password { mechanism }) => {
            format!("{address}, where other machines reach the servers; so every arm asks for a password ({mechanism})")
        }
        _ => format!("{address}, which only this machine reaches"),
    }
}

/// The report's text about how the arms of `cell` share the machine.
fn mode(cell: &Cell, shared: bool, launched: bool) -> String {
    let servers = if shared { "session" } else { "twin" };
    let mode = match cell.design {
        Design::Interleaved => servers.to_owned(),
        Design::Duet => format!("{servers}, duet"),
        Design::Slices if launched => format!("{servers}, slices, the other servers stopped"),
        Design::Slices => format!("{servers}, slices"),
        Design::Sequential => format!("{servers}, sequential"),
        Design::Switched { .. } => format!("{servers}, switched by the server's provider"),
    };
    if cell.pinned { mode } else { format!("{mode}, not bound to processors") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::frame::tests::cell;

    #[test]
    fn how_arms_share_the_machine_is_told_of_every_design() {
        let told = |design: Design, shared: bool, launched: bool, pinned: bool| {
            mode(&Cell { pinned, ..cell(design, Arrivals::Closed) }, shared, launched)
        };
        let switched = Design::Switched { frames_a_side: 3 };
        for (design, shared, words) in [
            (Design::Interleaved, false, "twin"),
            (Design::Interleaved, true, "session"),
            (Design::Duet, false, "twin, duet"),
            (Design::Sequential, true, "session, sequential"),
            (switched, true, "session, switched by the server's provider"),
        ] {
            assert_eq!([true, false].map(|launched| told(design, shared, launched, true)), [words; 2]);
            assert_eq!(told(design, shared, true, false), format!("{words}, not bound to processors"));
        }
        assert_eq!(told(Design::Slices, false, true, true), "twin, slices, the other servers stopped");
        assert_eq!(told(Design::Slices, false, false, true), "twin, slices");
    }

    #[test]
    fn who_reaches_a_server_is_told_by_how_its_clients_log_in() {
        let address = IpAddr::from([10, 0, 0, 5]);
        let authentication = Authentication::Password { mechanism: "scram".to_owned() };
        let password = Setup { authentication, ..Setup::bare() };
        let words = "10.0.0.5, where other machines reach the servers; so every arm asks for a password (scram)";
        assert_eq!(listening(address, &[password]), words);
        assert_eq!(listening(address, &[Setup::bare()]), "10.0.0.5, which only this machine reaches");
    }

    #[test]
    fn folders_of_files_are_made_once_and_before_them() {
        let files = ["a/b/one", "a/two", "three"].map(|name| (name.to_owned(), PathBuf::from("/own").join(name)));
        let place = Place::on_loopback("/server", 0);
        let told: Vec<String> = put_files(&Setup { files: files.into(), ..Setup::bare() }, &place)
            .iter()
            .map(|step| match step {
                Step::Folder(path) => format!("folder {}", path.display()),
                Step::Copy { path, from } => format!("{} to {}", from.display(), path.display()),
                other => format!("{other:?}"),
            })
            .collect();
        let folders = ["folder /server/files", "folder /server/files/a", "folder /server/files/a/b"];
        let copies = [
            "/own/a/b/one to /server/files/a/b/one",
            "/own/a/two to /server/files/a/two",
            "/own/three to /server/files/three",
        ];
        assert_eq!(told, [folders, copies].concat());
    }

    #[test]
    fn what_was_made_before_a_refusal_is_removed_and_nothing_else_is_touched() {
        let refused = |words: &str| Err(Fault::Refused(words.to_owned()));
        let broken = || Err(Fault::Connection("it broke".to_owned()));
        // Whether it is removed at once, and whether something may be left.
        let seen = |created: Result<(), Fault>, removed: Result<(), Fault>| {
            let mut asked = false;
            let left = leaves_data(&created, || {
                asked = true;
                removed
            });
            (asked, left)
        };
        assert_eq!(seen(Ok(()), Ok(())), (false, true));
        assert_eq!(seen(broken(), Ok(())), (false, true));
        assert_eq!(seen(refused("no right to a table"), Ok(())), (true, false));
        assert_eq!(seen(refused("no right to a table"), broken()), (true, true));
        assert_eq!(seen(refused("no right to a table"), refused("no right to remove")), (true, true));
        assert_eq!(seen(refused("somebody else's"), refused("somebody else's")), (true, false));
    }
}
