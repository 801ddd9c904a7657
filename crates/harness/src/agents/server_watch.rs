//! What servers use in each slot, measured on their own machine while the clients are on others.
//!
//! A lane on this machine reads the usage of its server right before and after its slot. For clients on another
//! machine, the start of a slot is known only within the error between two clocks. So the tasks that serve an arm are
//! read where this error does not matter: in the middle of the slots before and after its own, in which the arm is
//! idle. Between two such readings lies one slot of that arm. A reading that came too late is left out.
//!
//! The plan of readings ([`planned`]) and their slots ([`figures`]) are data; one thread carries them out. This module
//! knows nothing of clock offsets: the schedule is on this machine's clock.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tithe_machine::{
    clock::Clock,
    proc::ServerTask,
    watch::process::{self, TaskUsage, TaskWatch},
};
use tithe_model::{experiment::Design, invalid::Invalid};

use super::query::SlotUsage;
use crate::load::{Schedule, Turn, frame::machines::Serving};

/// The tasks that serve one lane in one arm.
#[derive(Debug, Clone)]
pub enum Served {
    /// These processes and threads, which serve nothing else.
    Tasks(Vec<ServerTask>),
    /// The server with this main process, for all lanes of the arm: each is charged an equal part of it.
    Whole(i32),
}

/// Reads the tasks that serve the lanes of one frame, until it is over.
pub struct ServerWatch {
    schedule: Schedule,
    lanes: usize,
    /// There is something to read.
    any_seen: bool,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Readings>,
}

/// What was used in the slots of one frame, by lane, block and arm.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Figures(BTreeMap<(usize, u32, usize), TaskUsage>);

impl Figures {
    /// What the tasks that serve `lane` have used in the slot of `arm` in `block`. `None` if unknown: the tasks are
    /// unknown or serve others as well, were not read in time, or the arm had two slots in a row.
    pub fn slot(&self, lane: usize, block: u32, arm: usize) -> Option<TaskUsage> {
        self.0.get(&(lane, block, arm)).copied()
    }

    /// The message with these figures.
    pub fn told(&self) -> Vec<SlotUsage> {
        let slot = |((lane, block, arm), usage): (&(usize, u32, usize), &TaskUsage)| {
            let (lane, block, arm, TaskUsage { cpu_ns, wait_ns }) = (*lane, *block, *arm, *usage);
            SlotUsage { lane, block, arm, cpu_ns, wait_ns }
        };
        self.0.iter().map(slot).collect()
    }

    /// Adds the figures of servers on another machine.
    pub fn add(&mut self, told: Vec<SlotUsage>) {
        let usage = |slot: SlotUsage| {
            let SlotUsage { lane, block, arm, cpu_ns, wait_ns } = slot;
            ((lane, block, arm), TaskUsage { cpu_ns, wait_ns })
        };
        self.0.extend(told.into_iter().map(usage));
    }
}

/// The tasks that serve each of `lanes` in each arm: the processes that servers have named in `serving`. If a server
/// has named none, the server as a whole, by its main process in `mains`; nothing if it is on another machine.
pub fn served(lanes: usize, mains: &[Option<i32>], serving: &[Serving]) -> Vec<Vec<Served>> {
    let of = |lane: usize, (arm, main): (usize, &Option<i32>)| {
        let named = serving.iter().filter(|serving| (serving.lane, serving.arm) == (lane, arm));
        let tasks: Vec<ServerTask> = named.map(|serving| ServerTask::Process(serving.process)).collect();
        match main {
            // Servers that do not report the task of a connection are read as a whole.
            Some(main) if tasks.is_empty() => Served::Whole(*main),
            _ => Served::Tasks(tasks),
        }
    };
    (0..lanes).map(|lane| mains.iter().enumerate().map(|arm| of(lane, arm)).collect()).collect()
}

impl ServerWatch {
    /// Begins to read `served`, by lane and arm, in the frame of `schedule`, whose start is on this machine's clock.
    /// From now to its start all arms are idle.
    pub fn start(schedule: Schedule, served: &[Vec<Served>]) -> Self {
        let watches = watches(served, schedule.design);
        let any_seen = watches.iter().flatten().any(Option::is_some);
        let lanes = served.len();
        let mut planned: Vec<PlannedReading> =
            (0..lanes).flat_map(|lane| planned(lane, &turns(&schedule, lane))).collect();
        planned.sort_by_key(|reading| reading.at_ns);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = thread::spawn(move || {
            // On a machine that is busy serving, it would otherwise come too late. It works for some microseconds per
            // slot.
            process::come_first();
            let read = |lane: usize, arm: usize| -> Option<TaskUsage> {
                Some(sum(watches.get(lane)?.get(arm)?.as_ref()?.iter().map(TaskWatch::read)))
            };
            carry_out(&planned, |at_ns| sleep_until(at_ns, &is_over), || Clock::Real.now(), read)
        });
        Self { schedule, lanes, any_seen, over, thread }
    }

    /// Ends with the frame, or at once if the frame is `invalid`; returns what was used in its slots.
    ///
    /// # Errors
    /// If there was something to read, but nothing was read in time: this must not look like a server that used no
    /// time.
    pub fn finish(self, invalid: bool) -> Result<Figures, Invalid> {
        self.over.store(invalid, Ordering::Relaxed);
        self.thread.thread().unpark();
        // A thread that panicked has no readings.
        let readings = self.thread.join().unwrap_or_default();
        let lanes = (0..self.lanes).map(|lane| (lane, turns(&self.schedule, lane)));
        let figures = Figures(lanes.flat_map(|(lane, turns)| figures(lane, &turns, &readings)).collect());
        match self.any_seen && !invalid && figures == Figures::default() {
            true => Err(Invalid::NotRead("any slot".to_owned())),
            false => Ok(figures),
        }
    }
}

fn turns(schedule: &Schedule, lane: usize) -> Vec<Turn> {
    schedule.turns(lane).collect()
}

/// Sleeps until `at_ns`; `false` if the frame ends before.
fn sleep_until(at_ns: u64, over: &AtomicBool) -> bool {
    while !over.load(Ordering::Relaxed) {
        let left_ns = at_ns.saturating_sub(Clock::Real.now());
        if left_ns == 0 {
            return true;
        }
        thread::park_timeout(Duration::from_nanos(left_ns));
    }
    false
}

/// One arm that is to be read for one lane while the arm is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlannedReading {
    lane: usize,
    arm: usize,
    /// Which of the lane's gaps: 0 is before the first turn, n is turn n − 1, and the last is after the last turn.
    gap: usize,
    /// From this time on the arm is certainly idle, ns.
    from_ns: u64,
    /// When it is to be read, ns.
    at_ns: u64,
    /// Until this time it is certainly idle, ns.
    to_ns: u64,
}

/// What was read, by lane, gap and arm.
type Readings = BTreeMap<(usize, usize, usize), TaskUsage>;

/// When to read the tasks that serve `lane`, which has these `turns`: around each turn, in the middle of the one before
/// and of the one after. If an arm has two turns in a row, neither middle is idle. A quarter of a turn on either side
/// is a margin for inexact clocks and for operations that outlast their slot.
fn planned(lane: usize, turns: &[Turn]) -> Vec<PlannedReading> {
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return Vec::new() };
    let before = (first.start_ns.saturating_sub(first.end_ns - first.start_ns), first.start_ns, None);
    let after = (last.end_ns, last.end_ns + (last.end_ns - last.start_ns), None);
    let within = turns.iter().map(|turn| (turn.start_ns, turn.end_ns, Some(turn.arm)));
    let gaps = std::iter::once(before).chain(within).chain([after]);
    let mut planned = Vec::with_capacity(2 * turns.len() + 2);
    for (gap, (start_ns, end_ns, busy)) in gaps.enumerate() {
        let margin_ns = (end_ns - start_ns) / 4;
        let ended = gap.checked_sub(2).and_then(|turn| turns.get(turn));
        let mut arms: Vec<usize> = ended.into_iter().chain(turns.get(gap)).map(|turn| turn.arm).collect();
        arms.dedup();
        planned.extend(arms.into_iter().filter(|arm| Some(*arm) != busy).map(|arm| PlannedReading {
            lane,
            arm,
            gap,
            // Before the first turn no server has had a request yet.
            from_ns: if gap == 0 { 0 } else { start_ns + margin_ns },
            at_ns: start_ns + (end_ns - start_ns) / 2,
            to_ns: end_ns - margin_ns,
        }));
    }
    planned
}

/// Carries out `planned`, sorted by time, until `wait_until` returns that all is over. A reading is left out if its arm
/// may not be idle any more.
fn carry_out(
    planned: &[PlannedReading],
    mut wait_until: impl FnMut(u64) -> bool,
    mut now: impl FnMut() -> u64,
    mut read: impl FnMut(usize, usize) -> Option<TaskUsage>,
) -> Readings {
    let mut readings = Readings::new();
    for reading in planned {
        if !wait_until(reading.at_ns) {
            break;
        }
        let begun_ns = now();
        let usage = read(reading.lane, reading.arm);
        let is_idle = reading.from_ns <= begun_ns && now() <= reading.to_ns;
        if let (true, Some(usage)) = (is_idle, usage) {
            readings.insert((reading.lane, reading.gap, reading.arm), usage);
        }
    }
    readings
}

/// What was used in those of the lane's `turns` that count: the difference between the readings before and after each.
fn figures(lane: usize, turns: &[Turn], readings: &Readings) -> Vec<((usize, u32, usize), TaskUsage)> {
    let of_turn = |(number, turn): (usize, &Turn)| {
        let block = turn.block?;
        let before = readings.get(&(lane, number, turn.arm))?;
        let after = readings.get(&(lane, number + 2, turn.arm))?;
        // Tasks that are gone read as 0, so their usage is unknown.
        let cpu_ns = after.cpu_ns.checked_sub(before.cpu_ns)?;
        let wait_ns = after.wait_ns.checked_sub(before.wait_ns)?;
        Some(((lane, block, turn.arm), TaskUsage { cpu_ns, wait_ns }))
    };
    turns.iter().enumerate().filter_map(of_turn).collect()
}

/// The readers of each of `served`; `None` if they would include other work, or cannot be read.
fn watches(served: &[Vec<Served>], design: Design) -> Vec<Vec<Option<Vec<TaskWatch>>>> {
    let owners = owners(served);
    let is_own = |who: &Who, lane: usize, arm: usize| {
        owners.get(who).is_some_and(|all| match who {
            Who::Task(_) => all.as_slice() == [(lane, arm)],
            // In a duet the other lanes work on other arms.
            Who::Server(_) => design != Design::Duet && all.iter().all(|(_, other)| *other == arm),
        })
    };
    let watch = |who: Who| match who {
        Who::Task(task) => task.watch(),
        Who::Server(process) => TaskWatch::whole(process, owners.get(&who).map_or(1, Vec::len)),
    };
    let of = |lane: usize, arm: usize, one: &Served| -> Option<Vec<TaskWatch>> {
        let all = who(one)?;
        all.into_iter().map(|who| if is_own(&who, lane, arm) { watch(who) } else { None }).collect()
    };
    let of_lane = |(lane, arms): (usize, &Vec<Served>)| {
        arms.iter().enumerate().map(|(arm, one)| of(lane, arm, one)).collect::<Vec<_>>()
    };
    served.iter().enumerate().map(of_lane).collect()
}

/// A process or thread that works: comparable, to find two that are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Task(Task),
    Server(i32),
}

/// A process with one thread at work, or a thread of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Task {
    process: i32,
    thread: Option<i32>,
}

impl Task {
    fn watch(self) -> Option<TaskWatch> {
        let Self { process, thread } = self;
        TaskWatch::server(&thread.map_or(ServerTask::Process(process), |thread| ServerTask::Thread { process, thread }))
    }
}

/// All tasks in `served`; `None` if there are none, or one is not a process or thread of this machine.
fn who(served: &Served) -> Option<Vec<Who>> {
    let task = |task: &ServerTask| match *task {
        ServerTask::Process(process) => Some(Who::Task(Task { process, thread: None })),
        ServerTask::Thread { process, thread } => Some(Who::Task(Task { process, thread: Some(thread) })),
        ServerTask::Caller | ServerTask::Virtual(_) | ServerTask::Unknown => None,
    };
    match served {
        Served::Tasks(tasks) if tasks.is_empty() => None,
        Served::Tasks(tasks) => tasks.iter().map(task).collect(),
        Served::Whole(process) => Some(vec![Who::Server(*process)]),
    }
}

/// The lanes and arms that each serves.
fn owners(served: &[Vec<Served>]) -> BTreeMap<Who, Vec<(usize, usize)>> {
    let mut owners: BTreeMap<Who, Vec<(usize, usize)>> = BTreeMap::new();
    for (lane, arms) in served.iter().enumerate() {
        for (arm, one) in arms.iter().enumerate() {
            who(one).into_iter().flatten().for_each(|who| owners.entry(who).or_default().push((lane, arm)));
        }
    }
    owners
}

fn sum(all: impl Iterator<Item = TaskUsage>) -> TaskUsage {
    all.fold(TaskUsage::default(), |sum, one| TaskUsage {
        cpu_ns: sum.cpu_ns + one.cpu_ns,
        wait_ns: sum.wait_ns + one.wait_ns,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use expect_test::expect;

    use super::*;

    const SLOT_NS: u64 = 1_000;

    fn schedule(design: Design, arms: usize) -> Schedule {
        Schedule {
            seed: 7,
            frame: 3,
            blocks: 4,
            arms,
            design,
            frames: 8,
            slot_ns: SLOT_NS,
            settling_ns: 1,
            start_ns: 10_000,
        }
    }

    /// What an arm has used until `now_ns` where it uses 1 in each ns of its turns, and waits 2 ns in each turn.
    fn used(turns: &[Turn], arm: usize, now_ns: u64) -> TaskUsage {
        let own = turns.iter().filter(|turn| turn.arm == arm);
        sum(own.map(|turn| TaskUsage {
            cpu_ns: now_ns.clamp(turn.start_ns, turn.end_ns) - turn.start_ns,
            wait_ns: if now_ns >= turn.end_ns { 2 } else { 0 },
        }))
    }

    /// The figures of a frame whose readings are all `late_ns` late, and whose clients' clocks are `behind_ns` behind.
    fn figures_of(schedule: &Schedule, lane: usize, late_ns: u64, behind_ns: u64) -> Figures {
        let here = turns(schedule, lane);
        let there: Vec<Turn> = here
            .iter()
            .map(|turn| Turn { start_ns: turn.start_ns + behind_ns, end_ns: turn.end_ns + behind_ns, ..*turn })
            .collect();
        let now = Cell::new(0);
        let readings = carry_out(
            &planned(lane, &here),
            |at_ns| {
                now.set(at_ns + late_ns);
                true
            },
            || now.get(),
            |_, arm| Some(used(&there, arm, now.get())),
        );
        Figures(figures(lane, &here, &readings).into_iter().collect())
    }

    #[test]
    fn every_slot_has_what_its_arm_used_in_it_whatever_the_clocks_are_off() {
        for (design, arms) in
            [(Design::Interleaved, 2), (Design::Interleaved, 5), (Design::Duet, 3), (Design::Slices, 2)]
        {
            let schedule = schedule(design, arms);
            for (lane, late_ns, behind_ns) in [(0, 0, 0), (1, 100, 0), (2, 200, 200), (1, 250, 0), (0, 0, 250)] {
                let figures = figures_of(&schedule, lane, late_ns, behind_ns);
                let turns = turns(&schedule, lane);
                for (number, turn) in turns.iter().enumerate() {
                    let Some(block) = turn.block else { continue };
                    // The lanes of a duet go from one block to the next with the same arm now and then.
                    let stays = |other: usize| turns.get(other).is_some_and(|other| other.arm == turn.arm);
                    let is_alone = !stays(number + 1) && !number.checked_sub(1).is_some_and(stays);
                    assert!(is_alone || design == Design::Duet, "{turns:?}");
                    let expected = is_alone.then_some(TaskUsage { cpu_ns: SLOT_NS, wait_ns: 2 });
                    assert_eq!(figures.slot(lane, block, turn.arm), expected, "{design:?} {block} {}", turn.arm);
                }
                assert!(figures.0.len() > schedule.blocks as usize, "{design:?}: {figures:?}");
                let counted = turns.iter().filter(|turn| turn.block.is_some()).count();
                assert!(figures.0.len() <= counted, "lead-in slots are none");
            }
        }
    }

    #[test]
    fn a_reading_that_came_too_late_tells_nothing() {
        assert_eq!(figures_of(&schedule(Design::Interleaved, 2), 0, 251, 0), Figures::default());
    }

    #[test]
    fn an_arm_that_is_never_idle_has_no_figures() {
        let schedule = schedule(Design::Sequential, 2);
        let planned = planned(0, &turns(&schedule, 0));
        let gaps: Vec<usize> = planned.iter().map(|reading| reading.gap).collect();
        assert_eq!(gaps, [0, turns(&schedule, 0).len() + 1], "before and after the frame alone");
        assert_eq!(figures_of(&schedule, 0, 0, 0), Figures::default());
    }

    #[test]
    fn looks_are_in_the_middle_of_the_slots_around() {
        let turn = |block, arm, start_ns| Turn { block, arm, start_ns, end_ns: start_ns + 100 };
        let turns = [turn(None, 1, 1_000), turn(Some(0), 0, 1_100), turn(Some(0), 1, 1_200), turn(Some(1), 0, 1_300)];
        let told: String = planned(4, &turns)
            .iter()
            .map(|reading| {
                format!(
                    "{}: arm {} at {} ({}-{})\n",
                    reading.gap, reading.arm, reading.at_ns, reading.from_ns, reading.to_ns
                )
            })
            .collect();
        expect![[r#"
            0: arm 1 at 950 (0-975)
            1: arm 0 at 1050 (1025-1075)
            2: arm 1 at 1150 (1125-1175)
            3: arm 0 at 1250 (1225-1275)
            4: arm 1 at 1350 (1325-1375)
            5: arm 0 at 1450 (1425-1475)
        "#]]
        .assert_eq(&told);
        assert_eq!(planned(4, &[]), []);
    }

    #[test]
    fn tasks_that_are_gone_or_are_not_seen_tell_nothing() {
        let schedule = schedule(Design::Interleaved, 2);
        let turns = turns(&schedule, 0);
        let counted = turns.iter().position(|turn| turn.block.is_some()).expect("a slot that counts");
        let (arm, lane) = (turns[counted].arm, 0);
        let usage = |cpu_ns| TaskUsage { cpu_ns, wait_ns: 0 };
        let gone = Readings::from([((lane, counted, arm), usage(5)), ((lane, counted + 2, arm), usage(0))]);
        assert_eq!(figures(lane, &turns, &gone), []);
        let half = Readings::from([((lane, counted, arm), usage(5))]);
        assert_eq!(figures(lane, &turns, &half), []);
    }

    #[test]
    fn a_server_that_names_no_task_of_a_lane_is_read_as_a_whole() {
        let serving = [(0, 0, 7), (0, 0, 8), (1, 1, 9)].map(|(lane, arm, process)| Serving { lane, arm, process });
        let told = |mains: &[Option<i32>]| {
            let word = |served: &Served| match served {
                Served::Tasks(tasks) => format!("{tasks:?}"),
                Served::Whole(process) => format!("all of {process}"),
            };
            let lanes = served(2, mains, &serving);
            lanes.iter().map(|arms| arms.iter().map(word).collect::<Vec<_>>().join(", ")).collect::<Vec<_>>()
        };
        assert_eq!(told(&[Some(1), Some(2)]), ["[Process(7), Process(8)], all of 2", "all of 1, [Process(9)]"]);
        assert_eq!(told(&[None, None]), ["[Process(7), Process(8)], []", "[], [Process(9)]"]);
    }

    #[test]
    fn who_serves_several_is_nobodys() {
        let own = |process| Served::Tasks(vec![ServerTask::Process(process)]);
        let thread = |thread| Served::Tasks(vec![ServerTask::Thread { process: 9, thread }]);
        let me = std::process::id() as i32;
        let seen = |served: &[Vec<Served>], design| {
            let told = |one: &Option<Vec<TaskWatch>>| if one.is_some() { 'x' } else { '-' };
            let lanes = watches(served, design);
            lanes.iter().map(|arms| arms.iter().map(told).collect::<String>()).collect::<Vec<_>>().join(" ")
        };
        let interleaved = |served: &[Vec<Served>]| seen(served, Design::Interleaved);
        assert_eq!(interleaved(&[vec![own(me), own(1)], vec![own(2), own(2)]]), "xx --");
        assert_eq!(interleaved(&[vec![own(me)], vec![own(me)]]), "- -", "two lanes with one process");
        assert_eq!(interleaved(&[vec![thread(7), Served::Tasks(Vec::new())]]), "--", "no such thread, and nobody");
        assert_eq!(interleaved(&[vec![Served::Tasks(vec![ServerTask::Process(me), ServerTask::Unknown])]]), "-");
        let whole = [vec![Served::Whole(me), Served::Whole(1)], vec![Served::Whole(me), Served::Whole(1)]];
        assert_eq!((interleaved(&whole), seen(&whole, Design::Duet)), ("xx xx".to_owned(), "-- --".to_owned()));
        assert_eq!(interleaved(&[vec![Served::Whole(me), Served::Whole(me)]]), "--", "two arms on one server");
    }

    /// The thread reads the processor time of this process, which works in the slots of one arm alone.
    #[test]
    fn a_frame_is_read_while_it_goes_on() {
        let start_ns = Clock::Real.now() + 20_000_000;
        let schedule = Schedule { slot_ns: 20_000_000, blocks: 2, start_ns, ..schedule(Design::Interleaved, 2) };
        let me = std::process::id() as i32;
        let watch = ServerWatch::start(schedule.clone(), &[vec![Served::Whole(me), Served::Tasks(Vec::new())]]);
        let figures = watch.finish(false).expect("somebody was read");
        assert!(Clock::Real.now() > start_ns, "the frame was waited for");
        assert!(figures.0.keys().all(|(lane, block, arm)| (*lane, *arm) == (0, 0) && *block < 2), "{figures:?}");
        let invalid = Schedule { start_ns: u64::MAX / 2, ..schedule };
        let watch = ServerWatch::start(invalid, &[vec![Served::Whole(me), Served::Tasks(Vec::new())]]);
        assert_eq!(watch.finish(true), Ok(Figures::default()));
    }
}
