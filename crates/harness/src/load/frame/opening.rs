//! Opens the connections of one lane to every arm, and decides how its clients, servers and other programs are watched.

use std::fs::File;

use tithe_machine::{
    clock::Clock,
    fault::Fault,
    proc::ServerTask,
    watch::{
        process::{self, TaskWatch},
        stalls::{ProcessorUse, StallWatch},
    },
};
use tithe_model::{
    connecting::Connecting,
    experiment::{Arrivals, Design},
    plan::Starts,
    record::Stalls,
    schedule::block_order,
};
use tithe_plugin::{
    data,
    database::{Connect, LogWriting},
    session::Session,
    wire,
};

use super::{
    context::CellContext,
    lanes::{Lanes, MANY_THREADS, NOBODY_ALONE, NOT_BOUND},
    machines::Serving,
    started_arm::StartedArm,
};
use crate::load::{
    lane::{Arm, ClientConnection, Lane, LogWriter, Reconnect},
    recorder::Recorder,
    timeout::Timeout,
};

/// A lane with its connections, and the cost of opening them.
pub(super) struct Opened<'a> {
    pub lane: Lane<'a>,
    /// How long one connection to each arm took to open, ns.
    pub connect_ns: Vec<u64>,
    /// How the lane sees the time that other programs take of its slots.
    pub stalls: Stalls,
    /// The tasks that serve its connections, as the servers number them, if they are on another machine.
    pub serving: Vec<Serving>,
    /// The tasks that serve its connections on this machine.
    pub tasks: Vec<ServerTask>,
    /// The processes that write the logs of its servers for all lanes.
    pub log_writers: Vec<i32>,
}

/// At most this many lanes may have one that shares its processor with a log writer. With more lanes, that lane is
/// among those that the mean over lanes leaves out (`midmean`).
const LOGGED_LANES_MAX: usize = 2;

/// Why an attached server is not used any more.
const LOST_RECORDS: &str = "the server lost the records that Tithe wrote: it restarted without its data, or was \
                            emptied. Nothing more is written to it. Measure a server that keeps its data";

/// The tasks that work for a lane's clients.
#[derive(Default)]
struct ServedBy {
    tasks: Vec<ServerTask>,
    log_writers: Vec<i32>,
    /// Why the writer of a server's log makes net time unknown.
    log_hides: Option<&'static str>,
}

/// One lane while its connections are opened. The caller is the lane's own thread.
struct Opening<'a> {
    context: &'a CellContext<'a>,
    lanes: &'a Lanes<'a>,
    how: Connect,
    pinned: bool,
    /// The writer of a server's log is pinned to this lane's processor.
    has_log_writers: bool,
    /// Numbers of its clients over all lanes.
    clients: Vec<u64>,
}

impl Lanes<'_> {
    /// Opens the connections of lane `number` to every arm.
    ///
    /// The order of the arms is drawn again in each frame: the order in which they get memory must not be a property of
    /// an arm.
    ///
    /// # Errors
    /// When a connection cannot be opened or prepared.
    pub fn open<'s>(
        &'s self,
        context: &'s CellContext<'s>,
        number: usize,
        frame: u32,
        pinned: bool,
    ) -> Result<Opened<'s>, Fault> {
        let of_lane = |client: &u64| *client as usize % context.lanes() == number;
        let clients: Vec<u64> = (0..u64::from(context.cell.clients)).filter(of_lane).collect();
        let clock = context.clock(number).clone();
        let how = Connect { blocking: clients.len() == 1, lane: number, clock, table: context.workload.table() };
        let has_log_writers = context.lane_of_servers(frame) == number;
        let opening = Opening { context, lanes: self, how, pinned, has_log_writers, clients };
        let mut served_by = ServedBy::default();
        let mut opened = Vec::with_capacity(context.arms.len());
        let mut serving = Vec::new();
        for index in block_order(context.cell.seed, frame.into(), u64::MAX, context.arms.len()) {
            let (mut arm, connect_ns) =
                if context.is_reached(index) { opening.arm(index, &mut served_by)? } else { (opening.away()?, 0) };
            if context.servers_remote {
                let processes = arm.connections.iter_mut().filter_map(ClientConnection::serving_process);
                serving.extend(processes.map(|process| Serving { lane: number, arm: index, process }));
            }
            opened.push((index, arm, connect_ns));
        }
        opened.sort_by_key(|(index, ..)| *index);
        let (arms, connect_ns) = opened.into_iter().map(|(_, arm, connect_ns)| (arm, connect_ns)).unzip();
        let (watch, stalls) = opening.stall_watch(&served_by);
        let Connect { clock, .. } = opening.how;
        let lane = Lane::new(number, context.lanes(), clock, context.cell.arrivals, arms, context.cell_index)
            .of_requests(context.workload.operations_per_request())
            .stalled_as(watch);
        let ServedBy { tasks, log_writers, .. } = served_by;
        Ok(Opened { lane, connect_ns, stalls, serving, tasks, log_writers })
    }
}

impl<'a> Opening<'a> {
    /// All connections to the arm of number `index`, and how long one took to open, ns; adds the tasks that serve them
    /// to `served_by`.
    fn arm(&self, index: usize, served_by: &mut ServedBy) -> Result<(Arm<'a>, u64), Fault> {
        let (context, started) = (self.context, &self.context.arms[index]);
        let mut connections = Vec::with_capacity(self.clients.len());
        let begun_ns = self.how.clock.now();
        let mut task = ServerTask::Unknown;
        for client in &self.clients {
            let (conn, serves) = self.conn(index, *client)?;
            served_by.tasks.push(serves.clone());
            task = serves;
            connections.push(conn);
        }
        let connect_ns = (self.how.clock.now() - begun_ns) / self.clients.len().max(1) as u64;
        // After the connections: if the server restarts later, they break.
        if started.server.address.is_attached() {
            let (server, setup, table) = (&started.server, &started.setup, &self.how.table);
            if !context.timeout(started).bound(|| context.database.keeps_records(server, setup, table))? {
                return Err(Fault::Refused(LOST_RECORDS.to_owned()));
            }
        }
        self.fill_caches(&mut connections)?;
        let reconnects = context.cell.reconnect_every.is_some();
        let switches = (started.on.clone(), started.off.clone());
        let mut arm = Arm::new(connections, self.recorder(), switches, context.timeout(started))?;
        let lanes = context.lanes_beside(self.how.lane);
        // If a server is watched as a whole, that already includes its log writer.
        if !reconnects && !context.rotates {
            arm = arm.logged_by(self.log_writer(started, &task, lanes, served_by));
        }
        match (started.server.process, task) {
            _ if context.servers_remote => arm.watch_whole(None),
            (Some(process), task) if reconnects => arm.watch_whole(TaskWatch::of_changing(process, &task, lanes)),
            (Some(process), _) if context.rotates => arm.watch_whole(TaskWatch::whole(process, lanes)),
            (Some(process), ServerTask::Unknown) => arm.watch_whole(TaskWatch::whole(process, lanes)),
            _ => {}
        }
        Ok((arm, connect_ns))
    }

    /// The log writer of `started`, whose `task` serves a client. It is pinned to the processor of one lane, where it
    /// is added to `served_by`. Each of `parts` lanes is charged a part of it.
    fn log_writer(
        &self,
        started: &StartedArm,
        task: &ServerTask,
        parts: usize,
        served_by: &mut ServedBy,
    ) -> Option<LogWriter> {
        let context = self.context;
        let process = match context.database.log_writing(&started.server, &started.setup, task) {
            LogWriting::Each => return None,
            LogWriting::By(process) => Some(process),
            LogWriting::Unseen => None,
        };
        let watched = process.and_then(|process| Some((process, TaskWatch::server(&ServerTask::Process(process))?)));
        let Some((process, watch)) = watched else {
            served_by.log_hides = Some("the process that writes the server's log cannot be seen");
            return None;
        };
        served_by.log_writers.push(process);
        let hidden = hidden_by_log(context.cell.design, context.lanes());
        served_by.log_hides = hidden.or(served_by.log_hides);
        let is_here = self.has_log_writers && context.cell.design != Design::Duet;
        if is_here {
            let processor = self.pinned.then(|| context.processor(self.how.lane));
            context.place_lasting(process, started.server.address.is_attached(), processor);
            served_by.tasks.push(ServerTask::Process(process));
        }
        Some(LogWriter { watch, parts: parts as u64, is_here: is_here && self.pinned })
    }

    /// An arm whose server is now another arm's: it has no connections, and no turns.
    fn away(&self) -> Result<Arm<'a>, Fault> {
        Arm::new(Vec::new(), self.recorder(), (Vec::new(), Vec::new()), Timeout::LONGEST)
    }

    fn recorder(&self) -> Recorder {
        let cell = &self.context.cell;
        let operations = self.context.workload.operations().len();
        Recorder::new(operations, cell.reconnect_every.is_some(), cell.arrivals != Arrivals::Closed)
    }

    /// One connection to the arm of number `index`, with client `number`, and the task that serves it.
    fn conn(&self, index: usize, number: u64) -> Result<(ClientConnection<'a>, ServerTask), Fault> {
        let (context, started, pinned) = (self.context, &self.context.arms[index], self.pinned);
        let (mut session, connecting) = context.connect(started, &self.how, pinned)?;
        let task = context.task(&mut session);
        let mut client = self.lanes.clients.client(&self.lanes.states[index]);
        if let Some(compute) = started.setup.compute {
            client.compute_in(compute);
        }
        context.timeout(started).bound(|| client.open(&mut session))?;
        let reconnect = context.cell.reconnect_every.map(|every| {
            let how = self.how.clone();
            Reconnect { every, open: Box::new(move || context.connect(started, &how, pinned)) }
        });
        let mut conn = ClientConnection::new(session, client, number).reconnecting(reconnect);
        conn.connecting = connecting;
        Ok((conn, task))
    }

    /// Fills the caches that `connections` read through, if they are empty and need not stay empty.
    fn fill_caches(&self, connections: &mut [ClientConnection<'_>]) -> Result<(), Fault> {
        let filling = self.filling(connections.len());
        connections[..filling].iter_mut().try_for_each(ClientConnection::warm)
    }

    /// How many of this number of `connections` fill the caches that they read through.
    fn filling(&self, connections: usize) -> usize {
        let context = self.context;
        let cache_each = context.embedded && !context.database.entry().restarts;
        let started = context.fresh || context.cell.starts == Starts::EveryFrame;
        if context.cold {
            0
        } else if cache_each {
            connections
        } else {
            // One connection warms a shared cache.
            usize::from(started && self.how.lane == 0)
        }
    }

    /// How the lane, whose connections are served as in `served_by`, sees the time that other programs take of its
    /// slots.
    fn stall_watch(&self, served_by: &ServedBy) -> (StallWatch, Stalls) {
        let tasks = &served_by.tasks;
        let unseen = |reason: &str| (StallWatch::Unseen, Stalls::Unseen(reason.to_owned()));
        let hidden = self.lanes.stalls_hidden;
        if let Clock::Virtual(time) = &self.how.clock {
            let stalls = hidden.map_or(Stalls::Waits, |reason| Stalls::Unseen(reason.to_owned()));
            return (StallWatch::Virtual(time.clone()), stalls);
        }
        if let Some(reason) = hidden.or((!self.pinned).then_some(NOT_BOUND)).or(served_by.log_hides) {
            return unseen(reason);
        }
        if tasks.iter().any(|task| matches!(task, ServerTask::Unknown)) {
            let counted = self.context.arms.iter().all(|arm| arm.server.process.is_some());
            return unseen(if counted { MANY_THREADS } else { NOBODY_ALONE });
        }
        let attached = self.context.arms.iter().any(|arm| arm.server.address.is_attached());
        if attached && !self.are_bound(tasks) {
            return unseen("Tithe did not start the server, and its tasks are not bound to the clients' processors");
        }
        // Control groups of a server that Tithe did not start belong to its owner.
        match (!attached).then(|| self.pressure(tasks)).flatten() {
            Some(pressure) => (StallWatch::Pressure(pressure, self.processor_use()), Stalls::Pressure),
            None if self.clients.len() == 1 || self.context.embedded => {
                (StallWatch::Waits(self.processor_use()), Stalls::Waits)
            }
            None => unseen("a lane drives several connections, and the kernel keeps no pressure of a group for them"),
        }
    }

    /// True when each of `tasks` that works at the same time as the client is pinned to the lane's processor.
    fn are_bound(&self, tasks: &[ServerTask]) -> bool {
        let processor = self.context.processor(self.how.lane);
        tasks.iter().filter_map(ServerTask::thread).all(|thread| process::is_bound(thread, processor))
    }

    /// Puts the calling thread and `tasks` into the lane's group; its pressure, `None` if that is impossible.
    fn pressure(&self, tasks: &[ServerTask]) -> Option<File> {
        let groups = self.lanes.groups.as_ref()?;
        let join = |thread| groups.join(self.how.lane, thread);
        // The client last: if a server cannot be in the group, the client's wake-ups would cost more for nothing.
        tasks.iter().filter_map(ServerTask::thread).try_for_each(join).ok()?;
        join(0).ok()?;
        groups.pressure(self.how.lane).ok()
    }

    fn processor_use(&self) -> Option<ProcessorUse> {
        self.lanes.accounts.as_ref()?.of(self.context.processor(self.how.lane))
    }
}

/// Why net time is unknown if one process writes the log of a server for this number of `lanes`; `None` if it is known.
fn hidden_by_log(design: Design, lanes: usize) -> Option<&'static str> {
    match design {
        Design::Duet => Some("in a duet, the log of one arm is written while the other arm runs"),
        _ => (lanes > LOGGED_LANES_MAX).then_some("one process writes the server's log for more than two lanes"),
    }
}

impl CellContext<'_> {
    /// The task that serves `session`, as far as it can be seen from here.
    fn task(&self, session: &mut Session) -> ServerTask {
        match session.connection().server_task() {
            ServerTask::Process(_) | ServerTask::Thread { .. } if self.servers_remote => ServerTask::Unknown,
            task => task,
        }
    }

    /// Opens one connection to an arm, returns it with its cost, and pins the task that serves it to the lane's
    /// processor, or unpins it. On a server that Tithe did not start, a process ends with the connection. A thread may
    /// serve another client afterwards, so it is borrowed and given back.
    fn connect(&self, started: &StartedArm, how: &Connect, pinned: bool) -> Result<(Session, Connecting), Fault> {
        let setup = started.setup.loaded();
        wire::take_opened();
        let open = || data::connect(self.database, &started.server, &setup, how, self.workload);
        let mut session = self.timeout(started).bound(open)?;
        let connecting = wire::take_opened();
        let task = self.task(&mut session);
        self.place(&task, started.server.address.is_attached(), pinned.then(|| self.processor(how.lane)));
        Ok((session, connecting))
    }

    /// Pins the task of a connection to `processor`, or unpins it. [`Opening::stall_watch`] finds tasks that the kernel
    /// does not let us pin.
    fn place(&self, task: &ServerTask, attached: bool, processor: Option<usize>) {
        match (task, processor) {
            (ServerTask::Process(process), Some(processor)) => drop(process::pin(*process, processor)),
            (ServerTask::Process(process), None) if !attached => drop(process::bind(*process, &self.processors)),
            (ServerTask::Thread { thread, .. }, _) => self.place_lasting(*thread, attached, processor),
            _ => {}
        }
    }

    /// The same for a `thread` that outlives its client.
    fn place_lasting(&self, thread: i32, attached: bool, processor: Option<usize>) {
        match (self.borrowed_threads.filter(|_| attached), processor) {
            (Some(borrowed), Some(processor)) => drop(borrowed.bind(thread, processor)),
            (Some(borrowed), None) => borrowed.give_back(thread),
            (None, Some(processor)) if !attached => drop(process::pin(thread, processor)),
            // A thread of a server of ours may still be pinned from an earlier frame.
            (None, None) if !attached => drop(process::bind(thread, &self.processors)),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tithe_machine::launch::Address;
    use tithe_model::experiment::Url;
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::tests::{cell, context, panicking},
        *,
    };

    type Change = fn(&mut CellContext<'_>);
    type Then = fn(&mut Opening<'_>, &mut ServedBy);

    /// What `work` makes of lane 0 with one client, after this `change`.
    fn with<T>(change: Change, work: impl FnOnce(Opening<'_>) -> T) -> T {
        let bench = Bench::plain();
        let workload = panicking(&bench);
        let mut at = context(&workload, &cell(Design::Interleaved, Arrivals::Closed), &bench);
        change(&mut at);
        let lanes = Lanes::new(&workload, &at, false);
        let how = Connect::blocking(bench.table.clone());
        work(Opening { context: &at, lanes: &lanes, how, pinned: true, has_log_writers: false, clients: vec![0] })
    }

    fn attached(at: &mut CellContext<'_>) {
        at.arms[1].server.address = Address::Attached(Url::new("x://db"));
    }

    #[test]
    fn net_time_is_known_of_tasks_that_serve_one_client_on_its_own_processor() {
        let told = |change: Change, then: Then| {
            with(change, |mut opening| {
                let tasks = vec![ServerTask::Process(std::process::id() as i32)];
                let mut served_by = ServedBy { tasks, ..ServedBy::default() };
                then(&mut opening, &mut served_by);
                let (watch, stalls) = opening.stall_watch(&served_by);
                match (watch, stalls) {
                    (StallWatch::Waits(_), Stalls::Waits) => "waits".to_owned(),
                    (StallWatch::Virtual(_), Stalls::Waits) => "invented waits".to_owned(),
                    (StallWatch::Virtual(_) | StallWatch::Unseen, Stalls::Unseen(why)) => why,
                    (_, stalls) => panic!("{stalls:?}"),
                }
            })
        };
        let rotates: Change = |at| at.rotates = true;
        let rotation = "clients may wait for the rotation of a key";
        assert_eq!(told(|_| (), |_, _| ()), "waits");
        // Of several reasons the first is reported.
        assert_eq!(told(rotates, |opening, _| opening.pinned = false), rotation);
        assert_eq!(told(|_| (), |opening, by| (opening.pinned, by.log_hides) = (false, Some("a log"))), NOT_BOUND);
        assert_eq!(told(|_| (), |_, by| by.log_hides = Some("a log")), "a log");
        let invent: Then = |opening, _| opening.how.clock = Clock::Virtual(Arc::default());
        assert_eq!([told(|_| (), invent), told(rotates, invent)], ["invented waits", rotation]);
        // A task that is not seen, of a server that is or is not.
        let unknown: Then = |_, by| by.tasks.push(ServerTask::Unknown);
        let process: Change = |at| at.arms.iter_mut().for_each(|arm| arm.server.process = Some(1));
        let one_process: Change = |at| (at.arms[0].server.process, at.arms[1].server.process) = (Some(1), None);
        assert_eq!([told(process, unknown), told(one_process, unknown)], [MANY_THREADS, NOBODY_ALONE]);
        // Only the waits of a single client are those of its lane.
        let two: Then = |opening, _| opening.clients = vec![0, 1];
        let several = "a lane drives several connections, and the kernel keeps no pressure of a group for them";
        assert_eq!([told(|_| (), two), told(|at| at.embedded = true, two)], [several, "waits"]);
        let elsewhere = "Tithe did not start the server, and its tasks are not bound to the clients' processors";
        assert_eq!(told(attached, |_, by| by.tasks = vec![ServerTask::Process(i32::MAX)]), elsewhere);
        assert_eq!(told(attached, |_, by| by.tasks = vec![ServerTask::Caller]), "waits");
    }

    #[test]
    fn caches_are_filled_once_by_all_who_have_one_and_never_if_they_have_to_be_cold() {
        let filling = |change: Change| {
            with(change, |mut opening| {
                [0, 1].map(|lane| {
                    opening.how.lane = lane;
                    opening.filling(5)
                })
            })
        };
        assert_eq!(filling(|_| ()), [0, 0], "they were filled before");
        assert_eq!(filling(|at| at.fresh = true), [1, 0]);
        assert_eq!(filling(|at| at.cell.starts = Starts::EveryFrame), [1, 0]);
        assert_eq!(filling(|at| at.embedded = true), [5, 5], "each connection has a cache of its own");
        assert_eq!(filling(|at| (at.embedded, at.fresh, at.cold) = (true, true, true)), [0, 0]);
        assert_eq!(filling(|at| (at.fresh, at.cold) = (true, true)), [0, 0]);
    }

    #[test]
    fn a_log_of_one_process_hides_net_time_in_a_duet_and_of_more_than_two_lanes() {
        let is_hidden = |design: Design| [1, 2, 3].map(|lanes| hidden_by_log(design, lanes).is_some());
        assert_eq!(is_hidden(Design::Interleaved), [false, false, true]);
        assert_eq!(is_hidden(Design::Duet), [true; 3]);
    }
}
