//! Assigns the samples of a profiled frame to arms, sides and functions.
//!
//! A sample of a client thread belongs to the slot at its time. A sample of a server that only one arm uses belongs to
//! that arm. Any other sample belongs to the arm whose slot was begun last by the lane of the sample's processor.
//! Samples of other programs are counted and left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use tithe_machine::{
    perf::{
        self, Sample, Sampled, Sampler,
        symbols::{Symbols, is_of_kernel, name_of},
    },
    proc::{ProcessSnapshot, ServerTask, parent_of},
};
use tithe_model::{
    profile::{Function, ProfiledFrame, Side, Stack},
    record::Slot,
};

use super::{context::CellContext, record::LaneRecord};
use crate::load::lane::Span;

/// Programs that encrypt a file system next to the server, and detach themselves from their parent.
const ENCRYPTS: [&str; 2] = ["gocryptfs", "encfs"];

/// Why samples do not show where a cost comes from if connections end within a frame with the processes that served
/// them. The kernel counts the time of these, but nothing shows whose their samples were: it would seem the clients'.
pub const CONNECTIONS_END: &str =
    "clients reconnect, and the process that served a connection has ended when its samples are read";

/// A frame is invalid if more samples were lost than one in this many.
const LOST_ONE_IN: u64 = 100;

/// Samples the processors while slots are measured.
pub(super) struct Profiler {
    /// `None` if time is invented.
    sampler: Option<Sampler>,
    /// Why nothing was sampled.
    refused: Option<String>,
}

impl Profiler {
    /// Begins to sample a frame of `context`.
    pub fn begin(context: &CellContext<'_>) -> Self {
        if context.time_is_virtual() {
            return Self { sampler: None, refused: None };
        }
        match Sampler::begin(context.cell.frame_ns(context.arms.len())) {
            Ok(sampler) => Self { sampler: Some(sampler), refused: None },
            Err(refused) => Self { sampler: None, refused: Some(refused.to_string()) },
        }
    }

    /// Ends it. The `lanes` have ended with their sessions open, so that the tasks that serve them still exist.
    pub fn end(self, context: &CellContext<'_>, number: u32, lanes: &[LaneRecord<'_>]) -> ProfiledFrame {
        let slots: Vec<Slot> = lanes.iter().flat_map(|lane| lane.slots.iter().copied()).collect();
        let served = lanes.iter().flat_map(|lane| &lane.opened.tasks);
        let ended = have_ended(context, served).then(|| CONNECTIONS_END.to_owned());
        let mut frame = ProfiledFrame {
            sampled: true,
            invalid: self.refused.or(ended),
            period_ns: perf::PERIOD_NS,
            ..ProfiledFrame::without_samples((context.cell_index, number), context.arms.len(), &slots)
        };
        match self.sampler {
            Some(sampler) => sort(sampler.end(), &Tasks::of(context, lanes), &mut frame),
            None if context.time_is_virtual() => invent(&mut frame),
            None => {}
        }
        frame
    }
}

/// True if processes that `served` connections have ended within the frame.
fn have_ended<'t>(context: &CellContext<'_>, mut served: impl Iterator<Item = &'t ServerTask>) -> bool {
    context.cell.reconnect_every.is_some() && served.any(|task| matches!(task, ServerTask::Process(_)))
}

/// True if every thread of a server counts as serving: the threads that serve a lane are unknown, or they change. The
/// processor time of the server's slots is then that of the whole server.
fn all_serve<'t>(context: &CellContext<'_>, mut served: impl Iterator<Item = &'t ServerTask>) -> bool {
    let changes = context.cell.reconnect_every.is_some() || context.rotates;
    changes || served.any(|task| matches!(task, ServerTask::Unknown))
}

/// Invents the samples of a frame in invented time.
fn invent(frame: &mut ProfiledFrame) {
    frame.functions = ["client", "server"].map(function).to_vec();
    for (arm, accounted) in (0..).zip(&frame.arms) {
        for (index, side, ns) in
            [(0, Side::Client, accounted.client_cpu_ns), (1, Side::Server, accounted.server_cpu_ns)]
        {
            let (samples, task) = (ns / frame.period_ns, side.words().to_owned());
            frame.stacks.push(Stack { arm, side, task, samples, functions: vec![index] });
        }
    }
}

/// A function of the simulated database.
fn function(name: &str) -> Function {
    Function { object: "simulated".to_owned(), name: Some(name.to_owned()) }
}

/// The tasks of a lane, by which its samples are recognised.
struct LaneTasks<'a> {
    thread: i32,
    processor: u32,
    spans: &'a [Span],
}

impl LaneTasks<'_> {
    /// The last span that began before `time_ns`.
    fn begun(&self, time_ns: u64) -> Option<&Span> {
        let next = self.spans.partition_point(|span| span.from_ns <= time_ns);
        self.spans[..next].last()
    }
}

/// The roles of tasks while a frame is measured.
struct Tasks<'a> {
    lanes: Vec<LaneTasks<'a>>,
    /// The lane of each thread that serves its connections.
    serving: HashMap<i32, usize>,
    log_writers: HashSet<i32>,
    /// The arms whose server each process belongs to.
    servers: HashMap<i32, Vec<usize>>,
    /// All threads of servers serve.
    all_serve: bool,
    /// Processes that Tithe has started for other work.
    helpers: HashSet<i32>,
    own: i32,
}

impl<'a> Tasks<'a> {
    fn of(context: &CellContext<'_>, lanes: &'a [LaneRecord<'_>]) -> Self {
        let snapshot = ProcessSnapshot::take();
        let mut servers: HashMap<i32, Vec<usize>> = HashMap::new();
        for (arm, started) in context.arms.iter().enumerate() {
            let tree = started.server.process.map(|process| snapshot.tree(process)).unwrap_or_default();
            tree.into_iter().for_each(|process| servers.entry(process).or_default().push(arm));
        }
        let own = std::process::id() as i32;
        let same_program = |process: &i32| std::fs::read_link(format!("/proc/{process}/exe")).ok();
        let root =
            parent_of(own).filter(|parent| same_program(parent).is_some_and(|it| Some(it) == same_program(&own)));
        let opened = |lane: &'a LaneRecord<'_>| &lane.opened;
        let tasks = || lanes.iter().map(opened).enumerate();
        let threads = |(lane, tasks): (usize, &'a Vec<ServerTask>)| {
            tasks.iter().filter_map(ServerTask::thread).map(move |thread| (thread, lane))
        };
        Self {
            lanes: lanes
                .iter()
                .map(|lane| LaneTasks {
                    thread: lane.thread,
                    processor: context.processor(lane.opened.lane.number) as u32,
                    spans: &lane.opened.lane.spans,
                })
                .collect(),
            serving: tasks().flat_map(|(lane, opened)| threads((lane, &opened.tasks))).collect(),
            log_writers: tasks().flat_map(|(_, opened)| opened.log_writers.iter().copied()).collect(),
            all_serve: all_serve(context, tasks().flat_map(|(_, opened)| &opened.tasks)),
            servers,
            helpers: snapshot.tree(root.unwrap_or(own)).into_iter().collect(),
            own,
        }
    }

    /// The side and the arm of `sample`; `None` if it belongs to no slot that counts, or to another program.
    fn place(&self, sample: &Sample, of_kernel: &mut HashMap<i32, bool>) -> Option<(Side, usize)> {
        if let Some(lane) = self.lanes.iter().find(|lane| lane.thread == sample.thread) {
            let span = lane.begun(sample.time_ns).filter(|span| span.counts && sample.time_ns <= span.to_ns)?;
            return Some((Side::Client, span.arm));
        }
        let of_processor = || self.lanes.iter().find(|lane| lane.processor == sample.processor);
        let lane = match self.serving.get(&sample.thread) {
            Some(lane) => self.lanes.get(*lane),
            None => of_processor().or(self.lanes.first()),
        };
        let span = lane?.begun(sample.time_ns).filter(|span| span.counts)?;
        if let Some(arms) = self.servers.get(&sample.process) {
            let side = match () {
                () if self.log_writers.contains(&sample.thread) => Side::LogWriter,
                () if self.all_serve || self.serving.contains_key(&sample.thread) => Side::Server,
                () => Side::Helper,
            };
            return match arms[..] {
                // Its clients wait for the next slot, so this is work that it does by itself.
                [arm] if arm != span.arm => Some((if side == Side::Server { Side::Helper } else { side }, arm)),
                [arm] => Some((side, arm)),
                _ => Some((side, span.arm)),
            };
        }
        let is_of_kernel = *of_kernel.entry(sample.process).or_insert_with(|| is_of_kernel(sample.process));
        let helps = || {
            (sample.process != self.own && self.helpers.contains(&sample.process))
                || ENCRYPTS.contains(&name_of(sample.process, sample.thread).as_str())
        };
        match () {
            () if is_of_kernel => Some((Side::Kernel, span.arm)),
            () if helps() => Some((Side::Helper, span.arm)),
            () => None,
        }
    }
}

/// Sorts the samples into `frame`.
fn sort(sampled: Sampled, tasks: &Tasks<'_>, frame: &mut ProfiledFrame) {
    frame.lost = sampled.lost;
    if sampled.lost * LOST_ONE_IN > sampled.samples.len() as u64 {
        frame.invalid = Some(format!("{} of {} samples were lost", sampled.lost, sampled.samples.len()));
    }
    let mut of_kernel = HashMap::new();
    let mut placed: Vec<(Side, usize, &Sample)> = Vec::new();
    for sample in &sampled.samples {
        match tasks.place(sample, &mut of_kernel) {
            Some((side, arm)) => placed.push((side, arm, sample)),
            None => frame.elsewhere += 1,
        }
    }
    let mut symbols = Symbols::default();
    symbols.learn(None, placed.iter().flat_map(|(.., sample)| sample.kernel.iter().copied()));
    let processes: HashSet<i32> = placed.iter().map(|(.., sample)| sample.process).collect();
    for process in processes {
        let of_process = placed.iter().filter(|(.., sample)| sample.process == process);
        symbols.learn(Some(process), of_process.flat_map(|(.., sample)| sample.user.iter().copied()));
    }
    let mut functions: HashMap<Function, u32> = HashMap::new();
    // A thread that serves works for itself, too, while its clients wait: its samples are on two sides.
    let mut names: HashMap<(Side, i32, i32), String> = HashMap::new();
    let mut stacks: BTreeMap<(usize, Side, String, Vec<u32>), u64> = BTreeMap::new();
    for (side, arm, sample) in placed {
        let stack = stack(&symbols, sample).into_iter().map(|function| {
            let next = functions.len() as u32;
            *functions.entry(function).or_insert(next)
        });
        let stack: Vec<u32> = stack.collect();
        let name = || match side {
            Side::Client | Side::Server => side.words().to_owned(),
            Side::Kernel => family(&name_of(sample.process, sample.thread)),
            Side::LogWriter | Side::Helper => name_of(sample.process, sample.thread),
        };
        let name = names.entry((side, sample.process, sample.thread)).or_insert_with(name).clone();
        *stacks.entry((arm, side, name, stack)).or_default() += 1;
    }
    let mut numbered: Vec<(Function, u32)> = functions.into_iter().collect();
    numbered.sort_by_key(|(_, number)| *number);
    frame.functions = numbered.into_iter().map(|(function, _)| function).collect();
    let stack = |((arm, side, task, functions), samples): ((usize, Side, String, Vec<u32>), u64)| Stack {
        arm: arm as u32,
        side,
        task,
        samples,
        functions,
    };
    frame.stacks = stacks.into_iter().map(stack).collect();
}

/// The functions of a sample, innermost first; callers in user space only as far as they are code.
fn stack(symbols: &Symbols, sample: &Sample) -> Vec<Function> {
    let kernel = sample.kernel.iter().map(|address| symbols.function(None, *address));
    let user = sample.user.iter().map(|address| symbols.function(Some(sample.process), *address));
    let leaf = user.clone().take(1);
    // Without frame pointers, the supposed caller is any number.
    let callers = user.skip(1).take_while(|function| function.name.is_some());
    let stack: Vec<Function> = kernel.chain(leaf).chain(callers).collect();
    if stack.is_empty() { vec![Function { object: "[unknown]".to_owned(), name: None }] } else { stack }
}

/// The name of a thread of the kernel without its number: `kworker/0:1-events` is `kworker`.
fn family(name: &str) -> String {
    name.split(['/', ':', '-']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::{Arrivals, Design};
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::tests::{Idle, cell, context},
        *,
    };

    const SPANS: [Span; 3] = [
        Span { arm: 1, from_ns: 0, to_ns: 90, counts: false },
        Span { arm: 0, from_ns: 100, to_ns: 190, counts: true },
        Span { arm: 1, from_ns: 200, to_ns: 290, counts: true },
    ];

    /// A lane of thread 7 on processor 0; server 10 of arm 0 with log writer 11, server 20 of arms 0 and 1.
    fn tasks() -> Tasks<'static> {
        Tasks {
            lanes: vec![LaneTasks { thread: 7, processor: 0, spans: &SPANS }],
            serving: [(10, 0), (20, 0)].into(),
            log_writers: [11].into(),
            servers: [(10, vec![0]), (11, vec![0]), (12, vec![0]), (20, vec![0, 1])].into(),
            all_serve: false,
            helpers: [5, 30].into(),
            own: 5,
        }
    }

    fn sample(thread: i32, time_ns: u64) -> Sample {
        Sample { time_ns, process: thread, thread, processor: 0, kernel: vec![], user: vec![] }
    }

    fn place(thread: i32, time_ns: u64) -> Option<(Side, usize)> {
        tasks().place(&sample(thread, time_ns), &mut [(2, true), (5, false), (30, false), (99, false)].into())
    }

    #[test]
    fn samples_of_clients_belong_to_their_slot() {
        assert_eq!(
            [50, 150, 195, 250].map(|time| place(7, time)),
            [None, Some((Side::Client, 0)), None, Some((Side::Client, 1))]
        );
    }

    #[test]
    fn samples_of_servers_belong_to_their_arm_and_of_shared_ones_to_the_slot() {
        assert_eq!(place(10, 150), Some((Side::Server, 0)));
        assert_eq!(place(10, 250), Some((Side::Helper, 0)), "it works although its clients do not ask");
        assert_eq!(place(11, 250), Some((Side::LogWriter, 0)));
        assert_eq!(place(12, 150), Some((Side::Helper, 0)));
        assert_eq!((place(20, 195), place(20, 250)), (Some((Side::Server, 0)), Some((Side::Server, 1))));
        assert_eq!(place(20, 50), None, "a lead-in slot");
    }

    #[test]
    fn helpers_and_the_kernel_belong_to_the_slot_and_others_to_nothing() {
        assert_eq!(place(2, 250), Some((Side::Kernel, 1)));
        assert_eq!(place(30, 150), Some((Side::Helper, 0)));
        assert_eq!((place(5, 150), place(99, 150)), (None, None));
    }

    #[test]
    fn where_connections_end_all_of_a_server_serves_and_ended_processes_show_nothing() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let told = |reconnect_every: Option<u32>, rotates: bool, task: ServerTask| {
            let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
            (at.cell.reconnect_every, at.rotates) = (reconnect_every, rotates);
            (all_serve(&at, [&task].into_iter()), have_ended(&at, [&task].into_iter()))
        };
        let thread = || ServerTask::Thread { process: 1, thread: 2 };
        assert_eq!([told(None, false, thread()), told(None, false, ServerTask::Process(1))], [(false, false); 2]);
        assert_eq!([told(None, false, ServerTask::Unknown), told(None, true, thread())], [(true, false); 2]);
        assert_eq!(told(Some(9), false, thread()), (true, false));
        assert_eq!(told(Some(9), false, ServerTask::Process(1)), (true, true));
    }

    #[test]
    fn threads_of_the_kernel_go_by_their_family() {
        assert_eq!(["kworker/0:1-events", "ksoftirqd/0", "jbd2/vda1-8"].map(family), ["kworker", "ksoftirqd", "jbd2"]);
    }

    fn sorted(samples: Vec<Sample>, lost: u64) -> ProfiledFrame {
        let mut frame = ProfiledFrame::without_samples((0, 0), 2, &[]);
        sort(Sampled { samples, lost }, &tasks(), &mut frame);
        frame
    }

    #[test]
    fn samples_are_counted_by_arm_and_side_and_those_of_no_slot_elsewhere() {
        let samples = [(7, 150), (10, 150), (7, 250), (7, 195), (7, 160), (7, 50)];
        let frame = sorted(samples.map(|(thread, time_ns)| sample(thread, time_ns)).to_vec(), 0);
        let told: Vec<_> = frame.stacks.iter().map(|it| (it.arm, it.side, it.task.as_str(), it.samples)).collect();
        let (client, server) = (Side::Client, Side::Server);
        assert_eq!(told, [(0, client, "client", 2), (0, server, "server", 1), (1, client, "client", 1)]);
        // The end of a slot, and a lead-in slot.
        assert_eq!((frame.elsewhere, frame.lost, frame.invalid, frame.functions.len()), (2, 0, None, 1));
    }

    #[test]
    fn a_thread_on_two_sides_has_the_name_of_each_whichever_comes_first() {
        for samples in [[(10, 150), (10, 250)], [(10, 250), (10, 150)]] {
            let frame = sorted(samples.map(|(thread, time_ns)| sample(thread, time_ns)).to_vec(), 0);
            let told = frame.stacks.iter().map(|it| (it.side, it.task == "server")).collect::<Vec<_>>();
            assert_eq!(told, [(Side::Server, true), (Side::Helper, false)]);
        }
    }

    #[test]
    fn a_frame_that_lost_more_than_a_hundredth_of_its_samples_is_not_used() {
        let invalid = |count: usize, lost: u64| sorted(vec![sample(7, 150); count], lost).invalid;
        assert_eq!([invalid(0, 0), invalid(100, 0), invalid(100, 1), invalid(250, 2)], [None, None, None, None]);
        assert_eq!(invalid(99, 1).as_deref(), Some("1 of 99 samples were lost"));
        assert_eq!(invalid(250, 3).as_deref(), Some("3 of 250 samples were lost"));
    }

    #[test]
    fn every_thread_serves_where_none_serves_one_client_alone() {
        let tasks = Tasks { all_serve: true, ..tasks() };
        let place = |thread| tasks.place(&sample(thread, 150), &mut HashMap::new());
        assert_eq!([12, 11].map(place), [Some((Side::Server, 0)), Some((Side::LogWriter, 0))]);
    }
}
