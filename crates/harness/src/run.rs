//! Carries out a plan: starts the arms of each cell, loads them, gathers evidence, measures frame by frame.
//!
//! Everything seen goes to the run folder at once and to an [`Observer`], which may end a cell. Nothing is
//! estimated here, and nothing printed.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tithe_model::{
    catalogue::{Catalogue, DatabaseEntry, ProtectionEntry, WorkloadEntry},
    experiment::{self, Arm, Arrivals, Design},
    plan::{Cell, Plan},
    record::{ArmFacts, Event, Finding, Frame, Phase, Role, Slot, Verdict},
};

use crate::{
    clock::Clock,
    data,
    database::{Address, Connect, Content, Database, Install, Launch, Missing, Place, Search, Server, Step},
    evidence::{self, Control, Scene, Sight},
    fault::Fault,
    folder::{Contents, RunFolder, file_name},
    load::frame::{ArmRig, Rig},
    protection::{Authentication, Materials, Protection, Setup, TlsVersion, Transport},
    sandbox::{Sandbox, certificates, process::Running},
    saturation::Served,
    sql::Compute,
    watch::process,
    workload::{ArmState, Workload},
};

/// How long a server may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// Sees what happens, and decides when a cell has been measured enough.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// A frame is complete; `true` ends its cell.
    fn frame(&mut self, frame: &Frame, slots: &[Slot]) -> bool;
}

/// Everything that a run needs.
pub struct Run<'a> {
    /// The database.
    pub database: &'a dyn Database,
    /// Its installation.
    pub install: Install,
    /// What is to be done.
    pub plan: &'a Plan,
    /// One workload per workload of the experiment.
    pub workloads: &'a [Box<dyn Workload>],
    /// Set by ctrl-C: the run ends after what it is doing, and keeps what was measured.
    pub cancelled: &'a AtomicBool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every cell was measured.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// Some cell could not be measured to its end; its record says why.
    Failed,
}

impl Run<'_> {
    /// Measures every cell that `before` does not hold already.
    ///
    /// # Errors
    /// When the run folder cannot be written. What goes wrong within a cell is recorded, and the next cell is measured.
    pub fn carry_out(
        &self,
        folder: &mut RunFolder,
        before: Option<&Contents>,
        observer: &mut dyn Observer,
    ) -> Result<Ending, Fault> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        tell(folder, observer, Event::RunStarted { tithe: version, resumed: before.is_some() })?;
        let mut served = Served::default();
        served.add(before.iter().flat_map(|contents| &contents.slots));
        let mut ending = Ending::Complete;
        for number in 0..self.plan.cells.len() {
            if before.is_some_and(|contents| !contents.cells[number].ending.is_empty()) {
                continue;
            }
            tell(folder, observer, Event::CellStarted { cell: number as u32 })?;
            let reason = match self.cell(number, &mut served, folder, before, observer) {
                Ok(reason) => reason,
                Err(fault) => {
                    ending = Ending::Failed;
                    tell(
                        folder,
                        observer,
                        Event::Warning { message: format!("cell {}: {fault}", self.plan.cells[number].id) },
                    )?;
                    format!("failed: {fault}")
                }
            };
            let interrupted = self.cancelled.load(Ordering::SeqCst);
            if !interrupted {
                folder.cell(number, |facts| facts.ending = reason.clone())?;
            }
            tell(folder, observer, Event::CellDone { cell: number as u32, reason })?;
            if interrupted {
                tell(folder, observer, Event::RunDone { interrupted })?;
                return Ok(Ending::Interrupted);
            }
        }
        tell(folder, observer, Event::RunDone { interrupted: false })?;
        Ok(ending)
    }

    /// Measures one cell over its epochs; returns why it ended.
    fn cell(
        &self,
        number: usize,
        served: &mut Served,
        folder: &mut RunFolder,
        before: Option<&Contents>,
        observer: &mut dyn Observer,
    ) -> Result<String, Fault> {
        let cell = self.with_rate(number, served)?;
        let done = before
            .map_or(&[][..], |contents| &contents.frames[..])
            .iter()
            .filter(|frame| frame.cell as usize == number);
        let (frames_done, epochs_done) =
            done.fold((0, 0), |(frames, epochs), frame| (frames.max(frame.frame + 1), epochs.max(frame.epoch + 1)));
        let mut frame = frames_done;
        let mut epoch = epochs_done;
        let epochs = cell.epochs.max(epochs_done + 1);
        loop {
            let left = cell.frames_max.saturating_sub(frame);
            let share = left.div_ceil((epochs - epoch).max(1));
            let part = Part { number, cell: &cell, epoch, first: frame, frames: share };
            let (measured, enough) = self.epoch(&part, served, folder, observer)?;
            frame += measured;
            epoch += 1;
            if self.cancelled.load(Ordering::SeqCst) {
                return Ok("interrupted".to_owned());
            }
            if enough {
                let decided = self.plan.experiment.measure.until_decided;
                return Ok(if decided { "decided" } else { "precision" }.to_owned());
            }
            if frame >= cell.frames_max || epoch >= epochs {
                return Ok("budget".to_owned());
            }
        }
    }

    /// One fresh start of every arm. Returns how many frames were measured, and whether the observer had enough.
    fn epoch(
        &self,
        part: &Part<'_>,
        served: &mut Served,
        folder: &mut RunFolder,
        observer: &mut dyn Observer,
    ) -> Result<(u32, bool), Fault> {
        let Part { number, cell, epoch, first, frames } = *part;
        let workload = self.workloads[cell.workload].as_ref();
        let slot_fixed = self.plan.experiment.measure.slot_ms.is_some();
        let mut stage = Stage::new(folder)?;
        let result = (|| {
            stage.set(self, number, cell, epoch, folder, observer)?;
            let rigs = std::mem::take(&mut stage.rigs);
            let mut rig = Rig::new(self.database, workload, cell, number as u32, slot_fixed, rigs);
            if self.cancelled.load(Ordering::SeqCst) {
                return Ok((0, false));
            }
            self.settle(rig.arms(), workload)?;
            self.check_data(number, epoch, Phase::Before, rig.arms(), workload, folder, observer)?;
            self.evidence(number, epoch, Phase::Before, rig.arms(), workload, folder, observer)?;
            // Checks write, and most of all on the plain arm, the control of all others: without this its data would be
            // the least tidy, and every protection would look cheaper than it is.
            self.settle(rig.arms(), workload)?;
            let mut measured = 0;
            let mut enough = false;
            let mut free = 0;
            let last_epoch = epoch + 1 >= cell.epochs;
            let free_frames = if last_epoch { cell.free_frames } else { 0 };
            while !self.cancelled.load(Ordering::SeqCst) {
                let is_free = measured >= frames || enough;
                if is_free && free >= free_frames {
                    break;
                }
                if cell.restarts && measured + free > 0 {
                    stage.restart(self, rig.arms_mut())?;
                }
                let Some((frame, slots)) = rig.frame(first + measured + free, epoch, is_free, self.cancelled)? else {
                    break;
                };
                folder.frame(self.plan, &frame, &slots)?;
                let spoiled = frame.spoiled.clone();
                tell(folder, observer, Event::FrameDone { cell: number as u32, frame: frame.frame, spoiled })?;
                if is_free {
                    free += 1;
                } else {
                    // Every planned epoch is run, whatever the precision: they carry what differs between starts.
                    enough = observer.frame(&frame, &slots) && last_epoch;
                    served.add(&slots);
                    measured += 1;
                }
                if let Some(words) = stage.ended() {
                    return Err(Fault::Connection(words));
                }
            }
            self.check_data(number, epoch, Phase::After, rig.arms(), workload, folder, observer)?;
            self.evidence(number, epoch, Phase::After, rig.arms(), workload, folder, observer)?;
            Ok((measured, enough))
        })();
        let removed =
            stage.attached.iter().try_for_each(|(server, setup)| data::remove(self.database, server, setup, workload));
        if let Err(fault) = removed {
            let message = format!("cell {}: the data on an attached server was not removed: {fault}", cell.id);
            tell(folder, observer, Event::Warning { message })?;
        }
        stage.keep_logs(folder, &format!("{}--epoch{epoch}", file_name(&cell.id)));
        // A server that has died explains a broken connection better than the connection does.
        result.map_err(|fault| stage.ended().map_or(fault, Fault::Connection))
    }

    /// Cell `number`, at a rate of its own where the plan names a share of what was served before.
    fn with_rate(&self, number: usize, served: &Served) -> Result<Cell, Fault> {
        let mut cell = self.plan.cells[number].clone();
        if let Arrivals::OfSaturation(share) = cell.arrivals {
            let most = served.of_slowest(self.plan, number).ok_or_else(|| {
                Fault::Machine(
                    "no cell before this one was measured, so there is no saturation to take a share of".to_owned(),
                )
            })?;
            cell.arrivals = Arrivals::Poisson((share * most).max(1.0));
        }
        Ok(cell)
    }

    fn settle(&self, arms: &[ArmRig], workload: &dyn Workload) -> Result<(), Fault> {
        arms.iter().try_for_each(|arm| data::settle(self.database, &arm.server, &arm.setup, workload))
    }

    /// Looks whether the data of every arm are as the workload's rules say. Data that are not make all figures of the
    /// cell worthless, so that is an error and not a finding.
    #[expect(clippy::too_many_arguments, reason = "where, when and for whom, each by name")]
    fn check_data(
        &self,
        number: usize,
        epoch: u32,
        phase: Phase,
        arms: &[ArmRig],
        workload: &dyn Workload,
        folder: &mut RunFolder,
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        for (arm, (rig, described)) in arms.iter().zip(&self.plan.experiment.arms).enumerate() {
            let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: workload.table() };
            let mut session = data::connect(self.database, &rig.server, &rig.setup, &how, workload)?;
            let name = |fault| match fault {
                Fault::Wrong(broken) => Fault::Wrong(format!("arm {}: {broken}", described.name)),
                other => other,
            };
            let Some(holds) = workload.check(&mut session, phase == Phase::Before).map_err(name)? else { continue };
            let finding = Finding {
                cell: number as u32,
                epoch,
                arm: arm as u32,
                phase,
                protection: self.plan.experiment.workloads[self.plan.cells[number].workload].kind.clone(),
                check: "consistency".to_owned(),
                claim: "the data are as the workload's rules say".to_owned(),
                role: Role::Disclosure,
                verdict: Verdict::Holds,
                guarded: holds,
                control: "none: what is broken ends the cell".to_owned(),
            };
            folder.finding(&finding)?;
            tell(folder, observer, Event::Evidence(finding))?;
        }
        Ok(())
    }

    /// Looks at every claim of every guarded arm, and at the plain arm for its control.
    #[expect(clippy::too_many_arguments, reason = "where, when and for whom, each by name")]
    fn evidence(
        &self,
        number: usize,
        epoch: u32,
        phase: Phase,
        arms: &[ArmRig],
        workload: &dyn Workload,
        folder: &mut RunFolder,
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        let table = workload.table();
        // A check's sessions are switched as the measured ones are.
        let setups: Vec<Setup> = arms
            .iter()
            .map(|arm| {
                let mut setup = arm.setup.clone();
                setup.session_statements.extend(arm.on.iter().cloned());
                setup
            })
            .collect();
        let mut nonce =
            tithe_model::schedule::stream_seed(self.plan.cells[number].seed, u64::from(epoch), phase as u64, u64::MAX);
        let mut scene = |arm: usize| {
            nonce = nonce.wrapping_add(1);
            Scene {
                database: self.database,
                server: &arms[arm].server,
                setup: &setups[arm],
                table: &table,
                guarded: arm > 0,
                nonce,
            }
        };
        for (arm, described) in self.plan.experiment.arms.iter().enumerate().skip(1) {
            for chosen in &described.protections {
                let protection = protection(self.database, &chosen.id)?;
                for check in protection.evidence_on(chosen, workload.tables()) {
                    if self.cancelled.load(Ordering::SeqCst) && phase == Phase::Before {
                        return Ok(());
                    }
                    let guarded = check.look(&mut scene(arm));
                    let plain = (check.control() == Control::PlainArm).then(|| check.look(&mut scene(0)));
                    let finding = Finding {
                        cell: number as u32,
                        epoch,
                        arm: arm as u32,
                        phase,
                        protection: chosen.id.clone(),
                        check: check.id().to_owned(),
                        claim: check.claim(),
                        role: check.role(),
                        verdict: evidence::judge(check.control(), &guarded, plain.as_ref()),
                        guarded: guarded.quotation().to_owned(),
                        control: plain.as_ref().map_or("planted by the check itself", Sight::quotation).to_owned(),
                    };
                    folder.finding(&finding)?;
                    tell(folder, observer, Event::Evidence(finding))?;
                }
            }
        }
        Ok(())
    }
}

/// The frames of a cell between two starts of its servers.
struct Part<'a> {
    number: usize,
    cell: &'a Cell,
    epoch: u32,
    /// Number of the first frame.
    first: u32,
    /// How many there may be.
    frames: u32,
}

/// The servers of one epoch; they stop when it is dropped.
struct Stage {
    rigs: Vec<ArmRig>,
    servers: Vec<Started>,
    logs: Vec<(String, PathBuf)>,
    /// Servers that Tithe does not stop, once they hold its data.
    attached: Vec<(Server, Setup)>,
    sandbox: Sandbox,
}

/// File in the server's folder that its output goes to.
const SERVER_LOG: &str = "server.log";

/// What Tithe started for an arm: nothing for an embedded or attached database.
#[derive(Default)]
struct Started {
    running: Option<Running>,
    launch: Option<Launch>,
}

impl Stage {
    fn new(folder: &RunFolder) -> Result<Self, Fault> {
        let sandbox = Sandbox::new(folder.path())?;
        Ok(Self { rigs: Vec::new(), servers: Vec::new(), logs: Vec::new(), attached: Vec::new(), sandbox })
    }

    /// Starts and loads every arm.
    fn set(
        &mut self,
        run: &Run<'_>,
        number: usize,
        cell: &Cell,
        epoch: u32,
        folder: &mut RunFolder,
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        let experiment = &run.plan.experiment;
        let workload = run.workloads[cell.workload].as_ref();
        let shared = shares_server(&experiment.arms);
        folder.cell(number, |facts| {
            facts.mode = mode(cell, shared);
            facts.notes = workload.describe();
            if run.plan.cells[number].arrivals != cell.arrivals
                && let Arrivals::Poisson(rate) = cell.arrivals
            {
                facts.notes.push(("rate".to_owned(), format!("{rate:.0}/s")));
            }
            facts.arms = vec![ArmFacts::default(); experiment.arms.len()];
        })?;
        let materials = materials(&self.sandbox)?;
        // Twins swap their roles from one epoch to the next: who starts and loads first, and so whose pages and ports come
        // first, must not be a property of an arm.
        let mut order: Vec<usize> = (0..experiment.arms.len()).collect();
        let turned = epoch % 2 == 1 && !shared;
        if turned {
            order.reverse();
        }
        for number_of_arm in order {
            let arm = &experiment.arms[number_of_arm];
            if run.cancelled.load(Ordering::SeqCst) {
                break;
            }
            let setup = setup(run.database, run.plan, cell, arm, &materials)?;
            let loaded = shared && number_of_arm > 0;
            let (server, configuration) = self.start(run, arm, &setup)?;
            if !loaded {
                data::create(run.database, &server, &setup, workload)?;
                if matches!(server.address, Address::Attached(_)) {
                    self.attached.push((server.clone(), setup.clone()));
                }
            }
            let mut facts = run.database.facts(&server, &setup)?;
            facts.configuration.splice(0..0, configuration);
            tell(
                folder,
                observer,
                Event::ArmStarted {
                    cell: number as u32,
                    epoch,
                    arm: number_of_arm as u32,
                    version: facts.version.clone(),
                },
            )?;
            folder.cell(number, |known| known.arms[number_of_arm] = facts)?;
            let state = if loaded { self.rigs[0].state.clone() } else { workload.arm_state() };
            if !loaded {
                load(run, number, number_of_arm, &server, &setup, observer)?;
            }
            self.rigs.push(ArmRig { server, setup, state, on: arm.on.clone(), off: arm.off.clone() });
        }
        if turned {
            self.rigs.reverse();
            self.servers.reverse();
        }
        Ok(())
    }

    /// Starts the server of one arm, or finds the running one; returns it with its configuration as text.
    fn start(&mut self, run: &Run<'_>, arm: &Arm, setup: &Setup) -> Result<(Server, Vec<String>), Fault> {
        let place = self.sandbox.place(&file_name(&arm.name))?;
        if let Some(url) = &arm.url {
            let server = Server {
                address: Address::Attached(url.clone()),
                process: None,
                paths: Default::default(),
                folder: place.folder,
            };
            let mut configuration = vec![format!("url = {}", url.redacted())];
            configuration.extend(arm.on.iter().map(|statement| format!("on = {statement}")));
            self.servers.push(Started::default());
            return Ok((server, configuration));
        }
        let launch = run.database.launch(&run.install, setup, &place);
        self.sandbox.prepare(&launch)?;
        let log = place.folder.join(SERVER_LOG);
        let mut running = self.sandbox.start(&launch, &log)?;
        if running.is_some() {
            self.logs.push((file_name(&arm.name), log));
        }
        let server = Server {
            address: launch.address.clone(),
            process: running.as_ref().map(Running::process),
            paths: launch.paths.clone(),
            folder: place.folder.clone(),
        };
        if let Some(running) = &mut running {
            wait_until_ready(run.database, &server, setup, running)?;
        }
        let configuration = configuration(&launch, setup, &place);
        self.servers.push(Started { running, launch: launch.server.is_some().then_some(launch) });
        Ok((server, configuration))
    }

    /// Starts every server of `arms` anew on the data that it has. Where the memory of a server lies and how its code
    /// meets the caches is luck that stays as long as the server does, and would pass for a cost.
    fn restart(&mut self, run: &Run<'_>, arms: &mut [ArmRig]) -> Result<(), Fault> {
        for started in &mut self.servers {
            // All are asked to stop before the first is waited for.
            started.running.iter_mut().for_each(Running::ask_to_stop);
        }
        for (started, arm) in self.servers.iter_mut().zip(arms.iter_mut()) {
            let Some(launch) = &started.launch else { continue };
            drop(started.running.take());
            started.running = self.sandbox.start(launch, &arm.server.folder.join(SERVER_LOG))?;
            arm.server.process = started.running.as_ref().map(Running::process);
        }
        for (started, arm) in self.servers.iter_mut().zip(arms) {
            if let Some(running) = &mut started.running {
                wait_until_ready(run.database, &arm.server, &arm.setup, running)?;
            }
        }
        Ok(())
    }

    /// How the first server that ended by itself did so.
    fn ended(&mut self) -> Option<String> {
        self.servers.iter_mut().filter_map(|started| started.running.as_mut()).find_map(Running::ended)
    }

    fn keep_logs(&self, folder: &RunFolder, prefix: &str) {
        for (arm, log) in &self.logs {
            folder.keep_log(&format!("{prefix}--{arm}.log"), log);
        }
    }
}

/// What `launch` and `setup` do, one line each, secrets replaced, folder and port as placeholders so that two arms can
/// be compared.
pub fn configuration(launch: &Launch, setup: &Setup, place: &Place) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &launch.steps {
        match step {
            Step::Folder(path) => lines.push(format!("folder {}", path.display())),
            Step::Write { path, content: Content::Secret(_), mode } => {
                lines.push(format!("file {} (mode {mode:o}): ***", path.display()))
            }
            Step::Write { path, content: Content::Text(text), .. } | Step::Append { path, content: text } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let told = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
                lines.extend(told.map(|line| format!("{name}: {line}")));
            }
            Step::Run(command) => {
                lines.push(format!("run {} {}", command.program.display(), command.arguments.join(" ")))
            }
        }
    }
    if let Some(command) = &launch.server {
        lines.push(format!("server {} {}", command.program.display(), command.arguments.join(" ")));
    }
    lines.extend(client(setup));
    let folder = place.folder.display().to_string();
    let port = place.port.to_string();
    lines.iter().map(|line| line.replace(&folder, "{place}").replace(&port, "{port}")).collect()
}

/// What the clients of an arm do beside plain talk.
fn client(setup: &Setup) -> Vec<String> {
    let mut lines = Vec::new();
    if let Transport::Tls { version, mutual } = setup.transport {
        let version = match version {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        };
        let own = if mutual { ", shows a certificate of its own" } else { "" };
        lines.push(format!("client: TLS {version} only, certificate verified{own}"));
    }
    if let Authentication::Password { mechanism } = &setup.authentication {
        lines.push(format!("client: password, {mechanism}"));
    }
    if let Some(at_rest) = &setup.at_rest {
        lines.push(format!("files: cipher {}, key ***", at_rest.cipher));
    }
    if let Some(columns) = &setup.columns {
        let what = match columns.names.as_slice() {
            [] => format!("{:.0} % of the fields", columns.share * 100.0),
            names => names.join(", "),
        };
        lines.push(format!("client: encrypts {what}, {}, key ***", columns.cipher.name()));
    }
    if setup.compute == Some(Compute::Server) {
        lines.push("client: runs the ordinary statements".to_owned());
    }
    lines.extend(setup.session_statements.iter().map(|statement| format!("client: {statement}")));
    lines
}

/// Certificates, password and key of one epoch, given to the servers' account.
fn materials(sandbox: &Sandbox) -> Result<Materials, Fault> {
    let folder = sandbox.folder().join("materials");
    std::fs::create_dir(&folder).map_err(|error| Fault::machine(folder.display(), error))?;
    let materials = certificates::prepare(&folder)?;
    sandbox.give(&folder)?;
    for file in std::fs::read_dir(&folder).map_err(|error| Fault::machine(folder.display(), error))?.flatten() {
        sandbox.give(&file.path())?;
    }
    Ok(materials)
}

/// The set-up of one arm: plain, then each protection applied.
///
/// # Errors
/// When the plan names a protection that the database does not have.
pub fn setup(
    database: &dyn Database,
    plan: &Plan,
    cell: &Cell,
    arm: &Arm,
    materials: &Materials,
) -> Result<Setup, Fault> {
    let mut settings = plan.experiment.settings.clone();
    settings.extend(plan.experiment.resources[cell.resources].settings.clone());
    let mut setup = Setup::plain(settings, materials.clone());
    for chosen in &arm.protections {
        protection(database, &chosen.id)?.apply(chosen, &mut setup);
    }
    Ok(setup)
}

fn protection<'a>(database: &'a dyn Database, id: &str) -> Result<&'a dyn Protection, Fault> {
    let found = database.protections().iter().find(|protection| protection.id() == id);
    found
        .copied()
        .ok_or_else(|| Fault::Machine(format!("this build of tithe has no protection {id} for {}", database.id())))
}

/// How the arms of `cell` are kept side by side, in the words of the report.
fn mode(cell: &Cell, shared: bool) -> String {
    let servers = if shared { "session" } else { "twin" };
    let mode = match cell.design {
        Design::Interleaved => servers.to_owned(),
        Design::Duet => format!("{servers}, duet"),
        Design::Slices => format!("{servers}, slices"),
        Design::Sequential => format!("{servers}, sequential"),
    };
    if cell.pinned { mode } else { format!("{mode}, not bound to processors") }
}

/// True when the arms share one attached server and differ by statements only.
fn shares_server(arms: &[Arm]) -> bool {
    arms.first().is_some_and(|first| first.url.is_some() && arms.iter().all(|arm| arm.url == first.url))
}

/// Waits until the server answers an administrator.
fn wait_until_ready(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    running: &mut Running,
) -> Result<(), Fault> {
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let fault = match database.facts(server, setup) {
            Ok(_) => return Ok(()),
            Err(fault) => fault,
        };
        if let Some(words) = running.ended() {
            return Err(Fault::Machine(words));
        }
        if Instant::now() > deadline {
            return Err(fault);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Loads the data of one arm through its own protections, in parallel.
fn load(
    run: &Run<'_>,
    cell: usize,
    arm: usize,
    server: &Server,
    setup: &Setup,
    observer: &mut dyn Observer,
) -> Result<(), Fault> {
    let workload = run.workloads[run.plan.cells[cell].workload].as_ref();
    let records = workload.rows(run.plan.experiment.data.records);
    let parts =
        if run.database.embedded() || run.database.simulated() { 1 } else { process::processors().len() as u64 };
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| {
                let done = &done;
                scope.spawn(move || {
                    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: workload.table() };
                    let mut session = data::connect(run.database, server, setup, &how, workload)?;
                    workload.load(&mut session, part, parts, done)
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            observer.event(&Event::Loading {
                cell: cell as u32,
                arm: arm as u32,
                done: done.load(Ordering::Relaxed),
                of: records,
            });
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

fn tell(folder: &mut RunFolder, observer: &mut dyn Observer, event: Event) -> Result<(), Fault> {
    folder.event(&event)?;
    observer.event(&event);
    Ok(())
}

/// Everything that this machine lacks for an experiment.
pub fn missing(
    database: &dyn Database,
    experiment: &experiment::Experiment,
    search: &Search,
) -> Result<Install, Vec<Missing>> {
    if experiment.arms.iter().all(|arm| arm.url.is_some()) {
        return Ok(Install::default());
    }
    let install = database.find(search).map_err(|missing| vec![missing])?;
    let mut all = Vec::new();
    for chosen in experiment.arms.iter().flat_map(|arm| &arm.protections) {
        if let Ok(protection) = protection(database, &chosen.id)
            && let Err(missing) = protection.needs(&install, chosen)
            && !all.contains(&missing)
        {
            all.push(missing);
        }
    }
    if all.is_empty() { Ok(install) } else { Err(all) }
}

/// What `databases` and `workloads` offer, as data.
pub fn catalogue(databases: &[&'static dyn Database], workloads: Vec<WorkloadEntry>) -> Catalogue {
    let protections = |database: &'static dyn Database| {
        let entry = |protection: &&'static dyn Protection| ProtectionEntry {
            id: protection.id(),
            title: protection.title(),
            guards_against: protection.guards_against(),
            leaves_open: protection.leaves_open(),
            options: protection.options(),
            attachable: protection.attachable(),
        };
        database.protections().iter().map(entry).collect()
    };
    let entry = |database: &&'static dyn Database| DatabaseEntry {
        id: database.id(),
        title: database.title(),
        embedded: database.embedded(),
        restarts: database.restarts(),
        schemes: database.schemes(),
        protections: protections(*database),
        reserved_settings: database.reserved_settings(),
        known_settings: database.known_settings(),
    };
    Catalogue { databases: databases.iter().map(entry).collect(), workloads }
}

/// Shares an arm's state between its clients.
pub type SharedState = Arc<dyn ArmState>;

/// True when every claim of `findings` holds.
pub fn proven(findings: &[Finding]) -> bool {
    findings.iter().filter(|finding| finding.role == Role::Claim).all(|finding| finding.verdict == Verdict::Holds)
}
