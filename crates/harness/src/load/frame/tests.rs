//! Frames of the simulated database, on invented time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tithe_model::{
    experiment::{Arrivals, Design},
    plan::{Starts, WarmUp},
    record::{Host, Stalls},
};
use tithe_plugin::{
    session::{Progress, Session, Table},
    simulated::{Simulated, test_bench::Bench},
    workload::{ArmState, Client, Clients, PartRecorder},
};

use super::*;

/// A cell of two clients whose slots are 20 ms.
pub(crate) fn cell(design: Design, arrivals: Arrivals) -> Cell {
    Cell {
        id: "c".to_owned(),
        workload: 0,
        resources: 0,
        clients: 2,
        arrivals,
        reconnect_every: None,
        seed: 1,
        slot_ns: 20_000_000,
        settling_ns: 1_000_000,
        warmup_ns: 0,
        blocks: 20,
        frames_max: 100,
        epochs: 1,
        design,
        starts: Starts::Once,
        after_start: WarmUp::None,
        pinned: true,
        free_frames: 0,
        program: false,
        gaps: false,
    }
}

/// A workload that offers nothing.
pub(crate) struct Idle {
    pub writes: bool,
}

impl Workload for Idle {
    fn offered_by(&self) -> Load<'_> {
        panic!("nothing is offered")
    }

    fn operations(&self) -> Vec<&str> {
        vec!["NOTHING"]
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn describe(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// An arm on the server of `bench`.
fn arm(bench: &Bench) -> StartedArm {
    StartedArm {
        server: bench.server.clone(),
        data: 0,
        shares_server: false,
        setup: bench.setup.clone(),
        on: Vec::new(),
        off: Vec::new(),
    }
}

/// `cell` with two arms of `bench`, as of a database that is not embedded.
pub(super) fn context<'a>(workload: &'a dyn Workload, cell: &Cell, bench: &Bench) -> CellContext<'a> {
    let mut context = CellContext::new(&Simulated, workload, cell, 0, vec![arm(bench), arm(bench)]);
    context.embedded = false;
    context
}

/// When a client panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// While connections are opened, and the other lanes wait or will.
    Opening,
    /// In its first slot, when all have met.
    Measured,
}

/// A workload of which one client panics.
pub(super) struct Panicking {
    table: Table,
    when: When,
    panicked: Arc<AtomicBool>,
}

impl Workload for Panicking {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        vec!["NOTHING"]
    }

    fn writes(&self) -> bool {
        false
    }

    fn table(&self) -> Table {
        self.table.clone()
    }

    fn describe(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// The workload whose first client panics when it is opened.
pub(super) fn panicking(bench: &Bench) -> Panicking {
    Panicking { table: bench.table.clone(), when: When::Opening, panicked: Arc::default() }
}

struct Nothing;

impl ArmState for Nothing {
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync) {
        self
    }
}

impl Clients for Panicking {
    fn load(&self, _session: &mut Session, _partition: u64, _of: u64, _done: &AtomicU64) -> Result<(), Fault> {
        Ok(())
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(Nothing)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(OneOfThem { when: self.when, panicked: Arc::clone(&self.panicked) })
    }
}

struct OneOfThem {
    when: When,
    panicked: Arc<AtomicBool>,
}

impl OneOfThem {
    /// Panics in the first client that comes here.
    fn panic_at(&self, when: When) {
        assert!(self.when != when || self.panicked.swap(true, Ordering::SeqCst), "as this test wants, {when:?}");
    }
}

impl Client for OneOfThem {
    fn open(&mut self, _session: &mut Session) -> Result<(), Fault> {
        self.panic_at(When::Opening);
        Ok(())
    }

    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn submit(&mut self, _session: &mut Session) -> Result<(), Fault> {
        self.panic_at(When::Measured);
        Err(Fault::Connection("there is nothing to do".to_owned()))
    }

    fn advance(&mut self, _session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        Ok(Progress::Done(0))
    }

    fn operation(&self) -> usize {
        0
    }
}

/// How a frame ends if one of its clients panics.
fn ended(when: When) -> Option<Fault> {
    let bench = Bench::plain();
    let workload = Panicking { table: bench.table.clone(), when, panicked: Arc::default() };
    let cell = cell(Design::Interleaved, Arrivals::Closed);
    let mut started = CellRunner::new(&Simulated, &workload, &cell, 0, false, vec![arm(&bench), arm(&bench)]);
    started.frame(0, (0, 0), false, &AtomicBool::new(false)).err()
}

#[test]
fn a_frame_whose_client_panics_ends_with_its_words() {
    for when in [When::Opening, When::Measured] {
        let (end, ending) = mpsc::channel();
        // Not joined: a frame that hangs must fail the test and not block it.
        std::thread::spawn(move || end.send(ended(when)));
        let fault = ending.recv_timeout(Duration::from_secs(60)).expect("the frame ends");
        assert_eq!(fault, Some(Fault::Machine(format!("a client thread panicked: as this test wants, {when:?}"))));
    }
}

#[test]
fn arms_share_the_state_of_their_clients_where_they_share_a_server() {
    let bench = Bench::plain();
    let workload = panicking(&bench);
    let shared = |data: [usize; 3]| {
        let arm = |data| StartedArm {
            server: bench.server.clone(),
            data,
            shares_server: false,
            setup: bench.setup.clone(),
            on: Vec::new(),
            off: Vec::new(),
        };
        let states = lanes::states(&workload, &data.map(arm));
        [(0, 1), (0, 2), (1, 2)].map(|(one, other)| Arc::ptr_eq(&states[one], &states[other]))
    };
    assert_eq!(shared([0, 0, 0]), [true, true, true]);
    assert_eq!(shared([0, 1, 0]), [false, true, false], "the second has data of its own");
    assert_eq!(shared([0, 1, 2]), [false, false, false]);
}

#[test]
fn the_first_reason_is_told_why_a_frame_must_not_be_used() {
    let arm = |invalid: Option<&str>| ArmMeasured {
        record: ArmFrame::default(),
        warmed_up: 0,
        profiles: Vec::new(),
        first_failure: None,
        invalid: invalid.map(|words| Invalid::Other(words.to_owned())),
    };
    let told = |not_paused: Option<&str>, arms: [Option<&str>; 2], clock_fault: Option<&str>| {
        let (not_paused, clock_fault) = (not_paused.map(str::to_owned), clock_fault.map(str::to_owned));
        let grown =
            FrameConditions { host: Host::default(), duration_ns: 1, not_paused, observer_lost: None, clock_fault };
        why_invalid(&grown, &arms.map(arm)).map_or(String::new(), |why| why.to_string())
    };
    assert_eq!(told(Some("it ran"), [Some("wrong"), None], Some("slept")), "it ran");
    assert_eq!(told(None, [None, Some("wrong")], Some("slept")), "arm 1: wrong");
    assert_eq!(told(None, [Some("late"), Some("wrong")], None), "arm 0: late");
    assert_eq!(told(None, [None, None], Some("slept")), "slept");
    assert_eq!(told(None, [None, None], None), "");
}

/// A frame of two lanes in which the arms did these `operations`.
fn measured(operations: [u64; 2], invented_ns: Option<(u64, u64)>) -> Measured {
    let slot = |(block, lane, arm)| Slot { block, lane, arm, ..Slot::default() };
    let arm = |operations| {
        let record = ArmFrame { operations, operations_lead_in: 2, ..ArmFrame::default() };
        ArmMeasured { record, warmed_up: 5, ..ArmMeasured::default() }
    };
    Measured {
        slots: [(1, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0)].map(slot).into(),
        arms: operations.map(arm).into(),
        stalls: Stalls::Waits,
        agents: Vec::new(),
        invalid: None,
        invented_ns,
        profile: None,
        grown: FrameConditions {
            host: Host::default(),
            duration_ns: 9,
            not_paused: None,
            observer_lost: None,
            clock_fault: None,
        },
    }
}

#[test]
fn operations_are_numbered_from_when_the_data_was_loaded_and_a_frame_tells_the_slots_that_it_had() {
    let bench = Bench::plain();
    let workload = panicking(&bench);
    let cell = cell(Design::Interleaved, Arrivals::Closed);
    let mut runner = CellRunner::new(&Simulated, &workload, &cell, 3, false, vec![arm(&bench), arm(&bench)]);
    let before = |frame: &Frame| frame.arms.iter().map(|arm| arm.operations_before).collect::<Vec<_>>();

    let (first, slots) = runner.recorded((4, 1, 2, false), 100, measured([10, 20], None));
    assert_eq!((first.cell, first.frame, first.epoch, first.start, first.free), (3, 4, 1, 2, false));
    assert_eq!((first.start_unix_ns, first.duration_ns, first.slot_ns), (100, 9, 20_000_000));
    assert_eq!((before(&first), first.stalls), (vec![5, 5], Stalls::Waits));
    let places = slots.iter().map(|slot| (slot.block, slot.lane, slot.arm)).collect::<Vec<_>>();
    assert_eq!(places, [(0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0)]);

    // Each arm had two slots, and so few operations that the next frame has longer ones.
    let (second, _) = runner.recorded((5, 1, 2, true), 100, measured([1, 1], Some((7, 18))));
    assert_eq!((before(&second), second.slot_ns, second.free), (vec![22, 32], 40_000_000, true));
    assert_eq!((second.start_unix_ns, second.duration_ns), (7, 11), "in the time that agents invent");

    let slot_ns = runner.context.cell.slot_ns;
    let why = || Some(Invalid::Other("an agent was lost".to_owned()));
    let lost = Measured { invalid: why(), ..measured([0, 0], None) };
    assert_eq!(runner.recorded((6, 1, 2, false), 100, lost).0.invalid, why());
    assert_eq!((slot_ns, runner.context.cell.slot_ns), (80_000_000, 80_000_000), "nothing follows from such a frame");

    runner.data_put_back();
    assert_eq!(before(&runner.recorded((7, 2, 3, false), 100, measured([1, 1], None)).0), [5, 5]);
}

#[test]
fn a_runner_goes_on_where_another_one_has_ended() {
    let bench = Bench::plain();
    let workload = panicking(&bench);
    let cell = cell(Design::Interleaved, Arrivals::Closed);
    let new = || CellRunner::new(&Simulated, &workload, &cell, 0, false, vec![arm(&bench), arm(&bench)]);
    let (mut one, mut other) = (new(), new());
    one.recorded((0, 0, 0, false), 0, measured([10, 20], None));
    one.warm_up_next(77);
    one.context.cell.settling_ns += 1;
    let left = one.runner_state();
    let untouched = other.runner_state();
    assert!(left.done != untouched.done && left.extra_warmup_ns != untouched.extra_warmup_ns);
    let slots = |state: &RunnerState| [state.slot_ns, state.settling_ns, state.blocks.into()];
    assert!(slots(&left).iter().zip(slots(&untouched)).all(|(one, other)| *one != other));
    other.go_on(left.clone());
    assert_eq!(other.runner_state(), left);
    assert_eq!(other.frame_ns(), one.frame_ns());
}

#[test]
fn lanes_of_servers_on_another_machine_see_nothing_that_delays_those() {
    let bench = Bench::plain();
    let workload = panicking(&bench);
    let at = context(&workload, &cell(Design::Interleaved, Arrivals::Closed), &bench);
    let mut lanes = Lanes::new(&workload, &at, false);
    assert_eq!(lanes.stalls_hidden, None);
    lanes.servers_are_remote();
    assert_eq!(lanes.stalls_hidden, Some("the tasks that serve clients are on another machine"));
}
