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
pub(super) struct Idle {
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
struct Panicking {
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
    let workload = Panicking { table: bench.table.clone(), when: When::Opening, panicked: Arc::default() };
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
        let grown = FrameConditions {
            host: tithe_model::record::Host::default(),
            duration_ns: 1,
            not_paused,
            observer_lost: None,
            clock_fault,
        };
        why_invalid(&grown, &arms.map(arm)).map_or(String::new(), |why| why.to_string())
    };
    assert_eq!(told(Some("it ran"), [Some("wrong"), None], Some("slept")), "it ran");
    assert_eq!(told(None, [None, Some("wrong")], Some("slept")), "arm 1: wrong");
    assert_eq!(told(None, [Some("late"), Some("wrong")], None), "arm 0: late");
    assert_eq!(told(None, [None, None], Some("slept")), "slept");
    assert_eq!(told(None, [None, None], None), "");
}
