//! The base of all ways of offering load: the arms, the processors and the clocks of a cell.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use tithe_machine::{
    clock::{Clock, VirtualTime},
    fault::Fault,
    proc,
    remote::{RemoteServer, RemoteUsage},
    sandbox::sidecar::Sidecar,
    watch::{borrowed_threads::BorrowedThreads, process},
};
use tithe_model::{experiment::Design, invalid::Invalid, plan::Cell};
use tithe_plugin::{
    database::{Condition, Database},
    workload::Workload,
};

use super::{
    machines::LaneRange,
    process_tree::{self, ProcessTree},
    started_arm::StartedArm,
};
use crate::load::{
    pause_gate::{PauseGate, Workers},
    reading::{Reading, sizes},
    timeout::Timeout,
};

/// A cell on this machine.
pub(super) struct CellContext<'a> {
    pub database: &'a dyn Database,
    /// The database works within Tithe's own threads: nothing else is paused or waits, and there is no network
    /// connection.
    pub embedded: bool,
    pub workload: &'a dyn Workload,
    pub cell: Cell,
    pub cell_index: u32,
    pub processors: Vec<usize>,
    /// Which of all lanes are in this process.
    pub lanes_here: LaneRange,
    /// One for each lane in this process; at least one.
    pub clocks: Vec<Clock>,
    /// The servers are on another machine: neither pinned nor read from here.
    pub servers_remote: bool,
    pub arms: Vec<StartedArm>,
    /// Caches stay as empty as they are after a fresh start.
    pub cold: bool,
    /// No frame has been measured since the database was opened in this process.
    pub fresh: bool,
    /// The folder of the servers' sandbox, if they are paused while another arm is measured.
    pub pauses_in: Option<PathBuf>,
    /// How long each arm's server has been paused, ns.
    pub paused_ns: Vec<Arc<AtomicU64>>,
    /// The sidecar that runs programs for each arm's server; `None` if none is needed.
    pub sidecars: Vec<Option<Sidecar>>,
    /// The only arm whose server can be reached now; `None` if all can.
    pub reached: Option<usize>,
    /// Pins the threads of servers that Tithe did not start, and restores them; `None` if they could not be restored.
    pub borrowed_threads: Option<&'a BorrowedThreads>,
    /// What each of [`CONDITIONS`](Self::CONDITIONS) was for each arm's server before its first frame; `None` if it
    /// has none, or was not reached yet.
    conditions: Vec<[Option<Condition>; 3]>,
    /// Keys are rotated: a server's background work during its slots is its own.
    pub rotates: bool,
}

impl<'a> CellContext<'a> {
    /// `cell` on the processors that this process may use, one lane per processor.
    pub fn new(
        database: &'a dyn Database,
        workload: &'a dyn Workload,
        cell: &Cell,
        cell_index: u32,
        arms: Vec<StartedArm>,
    ) -> Self {
        let processors = process::processors();
        let lanes = processors.len().min(cell.clients as usize).max(1);
        Self {
            database,
            embedded: database.embedded(),
            workload,
            cell: cell.clone(),
            cell_index,
            processors,
            lanes_here: LaneRange { first: 0, count: lanes, of: lanes },
            clocks: clocks(database, lanes),
            servers_remote: false,
            cold: false,
            fresh: false,
            pauses_in: None,
            borrowed_threads: None,
            reached: None,
            paused_ns: arms.iter().map(|_| Arc::default()).collect(),
            conditions: arms.iter().map(|_| Default::default()).collect(),
            sidecars: arms.iter().map(|arm| arm.setup.rotates_volume().then(Sidecar::default)).collect(),
            rotates: arms.iter().any(|arm| arm.setup.changes_keys()),
            arms,
        }
    }

    /// The same, of which only the lanes `here` are in this process.
    pub fn divide(&mut self, here: LaneRange) {
        self.lanes_here = here;
        self.clocks = clocks(self.database, here.count);
    }

    /// Threads that offer load, on all machines together.
    pub fn lanes(&self) -> usize {
        self.lanes_here.of
    }

    /// Lanes that are on the same arm as lane `number` in each of its slots, including itself: all, except in a duet.
    pub fn lanes_beside(&self, number: usize) -> usize {
        let arms = self.arms.len().max(1);
        match self.cell.design {
            Design::Duet => (0..self.lanes()).filter(|lane| lane % arms == number % arms).count(),
            _ => self.lanes(),
        }
    }

    /// The clock of lane `number`, which is in this process.
    pub fn clock(&self, number: usize) -> &Clock {
        &self.clocks[number - self.lanes_here.first]
    }

    /// True if time is invented, and nothing of the machine is checked.
    pub fn time_is_virtual(&self) -> bool {
        self.clocks[0].is_virtual()
    }

    /// The processor of lane `number`, which is in this process.
    pub fn processor(&self, number: usize) -> usize {
        self.processors[(number - self.lanes_here.first) % self.processors.len()]
    }

    /// The lane whose processor, in `frame`, runs the threads that work for the clients of all lanes.
    pub fn lane_of_servers(&self, frame: u32) -> usize {
        let LaneRange { first, count, .. } = self.lanes_here;
        first + frame as usize % count.max(1)
    }

    /// Some servers of ours serve all clients by one thread. Pins it to the processor of a lane: the same for all arms,
    /// and another one in the next frame. If nothing is pinned, it may run on any.
    pub fn bind_servers(&self, frame: u32, pinned: bool) {
        if !self.database.entry().one_thread || self.servers_remote || self.cell.design != Design::Interleaved {
            return;
        }
        let of_lane = [self.processor(self.lane_of_servers(frame))];
        let processors = if pinned { &of_lane[..] } else { &self.processors };
        let ours = self.arms.iter().filter(|arm| !arm.server.address.is_attached());
        for process in ours.filter_map(|arm| arm.server.process) {
            process::bind(process, processors);
        }
    }

    /// True if clients and servers talk over a network connection: not if the database is embedded or simulated.
    pub fn is_wired(&self) -> bool {
        !self.embedded && !self.time_is_virtual()
    }

    /// Reads the conditions of servers that are reached for the first time.
    pub fn note_conditions(&mut self) {
        for number in 0..self.arms.len() {
            for (kind, read) in Self::CONDITIONS.iter().enumerate() {
                if self.conditions[number][kind].is_none() {
                    self.conditions[number][kind] = self.condition(number, *read);
                }
            }
        }
    }

    /// The first server that is not as it was before its first frame, and what has changed.
    pub fn changed(&self) -> Option<Invalid> {
        self.conditions.iter().enumerate().find_map(|(number, before)| {
            let words = Self::CONDITIONS
                .iter()
                .zip(before)
                .find_map(|(read, before)| self.condition(number, *read)?.changed(before.as_ref()?))?;
            Some(Invalid::OfArm(number, Box::new(Invalid::Other(words))))
        })
    }

    /// What must stay as it is on a server and below it.
    const CONDITIONS: [fn(&Self, &StartedArm) -> Option<Condition>; 3] = [
        |_, arm| {
            let ours = !arm.server.address.is_attached() && arm.server.remote.is_none();
            arm.server.process.filter(|_| ours).map(life)
        },
        |context, arm| context.timeout(arm).bound(|| context.database.condition(&arm.server, &arm.setup)),
        |_, arm| arm.setup.volume.is_some().then(|| volume(&arm.server.folder)),
    ];

    fn condition(&self, number: usize, read: fn(&Self, &StartedArm) -> Option<Condition>) -> Option<Condition> {
        let asks = self.is_reached(number) && !self.time_is_virtual();
        asks.then(|| read(self, &self.arms[number]))?
    }

    /// The servers that are paused while another arm is measured: none, if the arms take turns every few milliseconds.
    ///
    /// # Errors
    /// As [`PauseGate::new`].
    pub fn pause_gate(&self) -> Result<PauseGate, Fault> {
        match &self.pauses_in {
            Some(folder) => {
                // Tithe must not pause a server that it did not start.
                let of = |(arm, sidecar): (&StartedArm, &Option<Sidecar>)| Workers {
                    server: arm.server.process.filter(|_| !arm.server.address.is_attached()),
                    sidecar: sidecar.clone(),
                };
                PauseGate::new(folder, self.arms.iter().zip(&self.sidecars).map(of).collect(), self.paused_ns.clone())
            }
            None => Ok(PauseGate::open_to(self.arms.len())),
        }
    }

    /// How long to wait for an answer of `started` while frames are measured.
    pub fn timeout(&self, started: &StartedArm) -> Timeout {
        Timeout::of(self.cell.frame_ns(self.arms.len()), started.server.address.is_attached())
    }

    /// True if the server of arm `number` can be reached now.
    pub fn is_reached(&self, number: usize) -> bool {
        self.reached.is_none_or(|reached| reached == number)
    }

    /// True if the server of arm `number` can be reached now and serves no other arm: then its counters are that arm's.
    fn counts(&self, number: usize) -> bool {
        let arm = &self.arms[number];
        let (process, remote) = (arm.server.process, arm.server.remote.as_ref());
        let is_same = |other: &&StartedArm| {
            (process.is_some() && other.server.process == process)
                || (remote.is_some() && other.server.remote.as_ref() == remote)
        };
        self.is_reached(number) && !arm.shares_server && self.arms.iter().filter(is_same).count() <= 1
    }

    /// The counters of an arm on the machine of its server, `remote`.
    fn read_remote(remote: &RemoteServer) -> Reading {
        match remote.by.usage(remote.process, &remote.paths) {
            Ok(RemoteUsage { tree, log_bytes, disk_bytes }) => {
                Reading { tree: Some(tree), log_bytes, disk_bytes, ..Reading::default() }
            }
            Err(_) => Reading { lost: true, ..Reading::default() },
        }
    }

    /// Reads every arm's counters when the slots begin. Counters that need a session of Tithe's own come first, so that
    /// the session is not part of the growth.
    pub fn counters_at_start(&self) -> Vec<Reading> {
        if self.time_is_virtual() {
            return vec![Reading::default(); self.arms.len()];
        }
        let before = self.trees();
        let asked = self.asked();
        with_wal(self.seen(process_tree::settled(&before)), asked)
    }

    /// Reads every arm's counters when the slots have ended. Counters that need a session come last.
    pub fn counters_at_end(&self) -> Vec<Reading> {
        if self.time_is_virtual() {
            return vec![Reading::default(); self.arms.len()];
        }
        let seen = self.seen(self.trees());
        with_wal(seen, self.asked())
    }

    /// Reads those of every arm's counters that need no request to its server.
    pub fn seen_from_outside(&self) -> Vec<Reading> {
        self.seen(self.trees())
    }

    /// The processes of each arm's server, if they count.
    fn trees(&self) -> Vec<Option<ProcessTree>> {
        let arms = self.arms.iter().enumerate();
        process_tree::trees(arms.map(|(number, arm)| arm.server.process.filter(|_| self.counts(number))))
    }

    /// The end of each arm's server log, if it counts.
    fn asked(&self) -> Vec<Option<u64>> {
        let position = |arm: &StartedArm| self.database.wal_position(&arm.server, &arm.setup);
        let arms = self.arms.iter().enumerate();
        arms.map(|(number, arm)| self.counts(number).then(|| self.timeout(arm).bound(|| position(arm)))?).collect()
    }

    /// The counters of each arm's server that are seen from outside; its processes have used `trees`.
    fn seen(&self, trees: Vec<Option<ProcessTree>>) -> Vec<Reading> {
        let here = |arm: &StartedArm, tree: Option<ProcessTree>| Reading {
            tree: tree.map(|tree| tree.usage).or_else(|| self.database.usage(&arm.server, &arm.setup)),
            log_bytes: (!arm.server.paths.logs.is_empty()).then(|| sizes(&arm.server.paths.logs).0),
            disk_bytes: (!arm.server.paths.data.is_empty()).then(|| sizes(&arm.server.paths.data).1),
            ..Reading::default()
        };
        let reading = |arm: &StartedArm, tree: Option<ProcessTree>| match &arm.server.remote {
            Some(remote) => Self::read_remote(remote),
            None => here(arm, tree),
        };
        let read = |(number, (arm, tree)): (usize, (&StartedArm, Option<ProcessTree>))| match self.counts(number) {
            true => self.timeout(arm).bound(|| reading(arm, tree)),
            false => Reading::default(),
        };
        self.arms.iter().zip(trees).enumerate().map(read).collect()
    }
}

/// The `readings`, each with the end of its server's log.
fn with_wal(readings: Vec<Reading>, wal_bytes: Vec<Option<u64>>) -> Vec<Reading> {
    let joined = readings.into_iter().zip(wal_bytes);
    joined.map(|(reading, wal_bytes)| Reading { wal_bytes, ..reading }).collect()
}

/// A clock for each of `lanes`, and one if there is no lane. Only this place asks the database: from here on the clocks
/// know whether time is invented.
fn clocks(database: &dyn Database, lanes: usize) -> Vec<Clock> {
    let simulated = database.simulated();
    let clock = || if simulated { Clock::Virtual(Arc::new(VirtualTime::default())) } else { Clock::Real };
    (0..lanes.max(1)).map(|_| clock()).collect()
}

/// Whether the server's `process` lives: one that ends after its last slot has spoiled no figure, but its frame.
fn life(process: i32) -> Condition {
    let is_gone = ["gone", "Z", "X"].contains(&proc::state(process).as_str());
    Condition { what: "the server's process", now: if is_gone { "gone" } else { "running" }.to_owned() }
}

/// Which file system is mounted at `folder`: without its volume a server would continue, and write elsewhere.
fn volume(folder: &Path) -> Condition {
    let now = match rustix::fs::stat(folder) {
        Ok(status) => format!("device {}", status.st_dev),
        Err(error) => error.to_string(),
    };
    Condition { what: "the volume below the server", now }
}

#[cfg(test)]
mod tests {
    use tithe_machine::{
        paths::Paths,
        proc::TreeUsage,
        remote::{Ends, Known, RemoteMatches, ServerMachine},
    };
    use tithe_model::experiment::Arrivals;
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::tests::{Idle, cell, context},
        *,
    };

    /// An observer that answers with this length of logs, or not at all.
    #[derive(Debug)]
    struct There(Option<u64>);

    impl ServerMachine for There {
        fn name(&self) -> &str {
            "there"
        }

        fn server_at(&self, _ends: Ends, _known: Known<'_>) -> Result<Result<i32, String>, Fault> {
            Err(Fault::Connection("not asked".to_owned()))
        }

        fn usage(&self, process: i32, _paths: &Paths) -> Result<RemoteUsage, Fault> {
            let log_bytes = self.0.ok_or_else(|| Fault::Connection("it is gone".to_owned()))?;
            let tree = TreeUsage { cpu_ns: process as u64, ..TreeUsage::default() };
            Ok(RemoteUsage { tree, log_bytes: Some(log_bytes), disk_bytes: None })
        }

        fn search(&self, _needles: &[(&'static str, &[u8])], _paths: &Paths) -> Result<RemoteMatches, Fault> {
            Err(Fault::Connection("not asked".to_owned()))
        }
    }

    fn remote(process: i32, log_bytes: Option<u64>) -> RemoteServer {
        RemoteServer { by: Arc::new(There(log_bytes)), process, paths: Paths::default() }
    }

    #[test]
    fn lanes_are_numbered_among_all_and_are_on_the_processors_from_here() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
        at.processors = vec![7, 9];
        at.divide(LaneRange { first: 4, count: 3, of: 9 });
        assert_eq!((at.lanes(), at.clocks.len()), (9, 3));
        assert_eq!([4, 5, 6].map(|number| at.processor(number)), [7, 9, 7]);
        let is_clock = |number: usize| std::ptr::eq(at.clock(number), &at.clocks[number - 4]);
        assert_eq!([4, 5, 6].map(is_clock), [true; 3]);
        assert_eq!([0, 1, 2, 3].map(|frame| at.lane_of_servers(frame)), [4, 5, 6, 4], "in turn");
        assert_eq!(at.lanes_beside(1), 9);
        at.cell.design = Design::Duet;
        assert_eq!([0, 1, 8].map(|number| at.lanes_beside(number)), [5, 4, 5], "each arm has every other lane");
        at.divide(LaneRange { first: 2, count: 0, of: 2 });
        assert_eq!((at.clocks.len(), at.lane_of_servers(3)), (1, 2), "all lanes are on other machines");
    }

    #[test]
    fn clients_talk_over_a_network_unless_the_database_is_embedded_or_simulated() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let is_wired = |clock: Option<Clock>, embedded: bool| {
            let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
            clock.into_iter().for_each(|clock| at.clocks = vec![clock]);
            at.embedded = embedded;
            at.is_wired()
        };
        assert_eq!([is_wired(Some(Clock::Real), false), is_wired(Some(Clock::Real), true)], [true, false]);
        assert_eq!([is_wired(None, false), is_wired(None, true)], [false, false]);
    }

    #[test]
    fn counters_of_a_server_are_those_of_its_only_arm() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let counts = |processes: [Option<i32>; 2], remotes: [Option<i32>; 2], shares: bool, reached: Option<usize>| {
            let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
            for ((arm, process), there) in at.arms.iter_mut().zip(processes).zip(remotes) {
                arm.server.process = process;
                arm.server.remote = there.map(|process| remote(process, None));
                arm.shares_server = shares;
            }
            at.reached = reached;
            [at.counts(0), at.counts(1)]
        };
        let (none, apart, together) = ([None; 2], [Some(1), Some(2)], [Some(1); 2]);
        assert_eq!([none, apart, together].map(|of| counts(of, none, false, None)), [[true; 2], [true; 2], [false; 2]]);
        assert_eq!([apart, together].map(|of| counts(none, of, false, None)), [[true; 2], [false; 2]]);
        assert_eq!(counts(apart, none, true, None), [false; 2], "other arms use it, too");
        assert_eq!([0, 1].map(|arm| counts(apart, none, false, Some(arm))), [[true, false], [false, true]]);
    }

    #[test]
    fn an_observer_that_does_not_answer_is_lost_and_says_nothing_of_others() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
        (at.arms[0].server.remote, at.arms[1].server.remote) = (Some(remote(3, Some(50))), Some(remote(4, None)));
        let seen = |at: &CellContext<'_>| {
            let readings = at.seen_from_outside();
            readings.iter().map(|it| (it.tree.map(|tree| tree.cpu_ns), it.log_bytes, it.lost)).collect::<Vec<_>>()
        };
        assert_eq!(seen(&at), [(Some(3), Some(50), false), (None, None, true)]);
        at.reached = Some(0);
        assert_eq!(seen(&at)[1], (None, None, false), "it is not asked");
    }

    #[test]
    fn each_reading_has_the_log_of_its_own_server() {
        let readings = [1, 2].map(|log_bytes| Reading { log_bytes: Some(log_bytes), ..Reading::default() });
        let joined = with_wal(readings.into(), vec![Some(8), None]);
        let seen = joined.iter().map(|reading| (reading.log_bytes, reading.wal_bytes));
        assert_eq!(seen.collect::<Vec<_>>(), [(Some(1), Some(8)), (Some(2), None)]);
    }

    #[test]
    fn another_file_system_or_none_is_another_condition() {
        let before = volume(Path::new("/proc"));
        assert_eq!(volume(Path::new("/proc")).changed(&before), None);
        let told = |folder: &str| volume(Path::new(folder)).changed(&before).expect("a reason");
        assert!(told("/").starts_with("the volume below the server: device "));
        assert!(told("/proc/nothing").starts_with("the volume below the server: No such file"));
    }

    #[test]
    fn a_process_that_has_ended_is_another_condition() {
        let before = life(std::process::id() as i32);
        assert_eq!(before.now, "running");
        let gone = "the server's process: gone, and running before the first frame";
        assert_eq!(life(i32::MAX).changed(&before).as_deref(), Some(gone));
    }
}
