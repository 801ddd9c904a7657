//! Lanes with several connections, against a server in the same process that counts the bytes that it receives.

use std::{
    io::{Read, Write as _},
    net::TcpListener,
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tithe_machine::{clock::VirtualTime, fault::Fault, proc::ServerTask};
use tithe_model::{connecting::Connecting, experiment::Design, histogram::Histogram};
use tithe_plugin::{
    session::{Connection, KeyValueSession, Progress, Request, Rows, Session},
    wire::Wire,
    workload::{Client, PartRecorder},
};

use super::*;
use crate::load::{recorder::Recorder, timeout::Timeout};

/// A request is its length in four bytes and that many further bytes; the answer is one byte.
struct Counting {
    wire: Wire,
    size: usize,
}

impl Connection for Counting {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.wire))
    }

    fn wants_write(&self) -> bool {
        self.wire.wants_write()
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }
}

impl KeyValueSession for Counting {
    fn submit(&mut self, _request: &Request<'_>) -> Result<(), Fault> {
        let out = self.wire.output();
        out.extend_from_slice(&(self.size as u32).to_le_bytes());
        out.resize(out.len() + self.size, b'x');
        self.wire.flush()
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        if self.wire.unread().is_empty() && !self.wire.fill()? {
            return Ok(Progress::Pending);
        }
        assert_eq!(self.wire.unread(), b"!", "one answer to one request");
        self.wire.consume(1);
        Ok(Progress::Done(1))
    }
}

/// Sends the same request again and again, after a pause if there is one.
struct Again {
    pause_ns: u64,
}

/// The same, which changes its session from call to call.
struct Changing {
    again: Again,
    calls: u64,
}

impl Client for Changing {
    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn lasting_change(&mut self, _session: &mut Session) -> Result<Option<String>, Fault> {
        self.calls += 1;
        Ok((self.calls > 1).then(|| "changed".to_owned()))
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.again.submit(session)
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        self.again.advance(session, parts)
    }

    fn operation(&self) -> usize {
        0
    }
}

/// The same with requests of many rows; counts the calls of `put_back`.
struct Batches {
    again: Again,
    put_back: Arc<AtomicU64>,
}

impl Client for Batches {
    fn seed(&mut self, _seed: u64) {}

    fn put_back(&mut self, _session: &mut Session) -> Result<(), Fault> {
        self.put_back.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn prepare(&mut self) {}

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.again.submit(session)
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        self.again.advance(session, parts)
    }

    fn operation(&self) -> usize {
        0
    }
}

impl Client for Again {
    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn pauses(&self) -> bool {
        self.pause_ns > 0
    }

    fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        let Session::KeyValue(session) = session else { unreachable!("made so below") };
        session.submit(&Request::Delete { key: b"" })
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let Session::KeyValue(session) = session else { unreachable!("made so below") };
        session.advance(&mut tithe_plugin::session::Discard)
    }

    fn operation(&self) -> usize {
        0
    }
}

/// Answers requests of `connections` connections; a pause before each makes the client's socket full.
fn serve(connections: usize, pause: Duration) -> (u16, Vec<JoinHandle<u64>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let thread = |listener: TcpListener| {
        std::thread::spawn(move || {
            let mut stream = listener.accept().expect("a client").0;
            let mut length = [0; 4];
            let mut answered = 0;
            while stream.read_exact(&mut length).is_ok() {
                std::thread::sleep(pause);
                let length = u64::from(u32::from_le_bytes(length));
                let read = std::io::copy(&mut (&mut stream).take(length), &mut std::io::sink());
                assert_eq!(read.expect("a request"), length);
                stream.write_all(b"!").expect("answered");
                answered += 1;
            }
            answered
        })
    };
    (port, (0..connections).map(|_| thread(listener.try_clone().expect("a descriptor"))).collect())
}

fn lane(port: u16, connections: usize, size: usize, arrivals: Arrivals) -> Lane<'static> {
    pausing_lane(port, connections, size, arrivals, 0)
}

fn pausing_lane(port: u16, connections: usize, size: usize, arrivals: Arrivals, pause_ns: u64) -> Lane<'static> {
    renewing_lane(port, connections, size, arrivals, pause_ns, None)
}

fn connect(port: u16, size: usize) -> Session {
    let mut wire = Wire::connect("127.0.0.1", port).expect("connected");
    wire.set_blocking(false).expect("set");
    Session::KeyValue(Box::new(Counting { wire, size }))
}

fn renewing_lane(
    port: u16,
    connections: usize,
    size: usize,
    arrivals: Arrivals,
    pause_ns: u64,
    every: Option<u32>,
) -> Lane<'static> {
    let conn = |number| {
        let reconnect = every
            .map(|every| Reconnect { every, open: Box::new(move || Ok((connect(port, size), Connecting::default()))) });
        ClientConnection::new(connect(port, size), Box::new(Again { pause_ns }), number).reconnecting(reconnect)
    };
    let connections = (0..connections as u64).map(conn).collect();
    let recorder = Recorder::new(1, every.is_some(), arrivals != Arrivals::Closed);
    let arm = Arm::new(connections, recorder, (Vec::new(), Vec::new()), Timeout::LONGEST).expect("an arm");
    Lane::new(0, 1, Clock::Real, arrivals, vec![arm], 0)
}

/// The results of a lane.
struct Ran {
    /// Operations that the slots count.
    counted: u64,
    /// Slots of 50 ms.
    slots: u64,
    lane: Lane<'static>,
}

/// Frame `frame` of `blocks` slots of 50 ms that begins now.
fn schedule(lane: &Lane<'_>, frame: u32, blocks: u32) -> Schedule {
    Schedule {
        seed: 1,
        frame,
        blocks,
        arms: 1,
        design: Design::Interleaved,
        frames: 1,
        slot_ns: 50_000_000,
        settling_ns: 0,
        start_ns: lane.clock.now(),
    }
}

/// Runs `blocks` slots of 50 ms, again and again until they count `enough` operations: on a busy machine a thread may
/// sleep through slots.
fn run(mut lane: Lane<'static>, blocks: u32, enough: u64) -> Ran {
    let (mut counted, mut slots) = (0, 0);
    for frame in 0..1000 {
        let seen = lane.run(&schedule(&lane, frame, blocks), &PauseGate::open_to(1), &|| false);
        assert_eq!(lane.arms[0].recorder.invalid, None);
        counted += seen.iter().map(|slot| slot.operations).sum::<u64>();
        slots += u64::from(blocks);
        if counted >= enough {
            break;
        }
    }
    assert!(counted >= enough, "{counted} operations in {slots} slots");
    Ran { counted, slots, lane }
}

fn recorded(histograms: &std::collections::BTreeMap<String, Histogram>) -> u64 {
    histograms.get("ALL").map_or(0, Histogram::total)
}

/// Every operation is counted, recorded and answered exactly once.
fn check(connections: usize, size: usize, pause_ms: u64, arrivals: Arrivals) {
    let (port, servers) = serve(connections, Duration::from_millis(pause_ms));
    let Ran { counted, slots, lane } = run(lane(port, connections, size, arrivals), 4, 1);
    let recorder = &lane.arms[0].recorder;
    assert_eq!(recorder.operations, counted);
    assert_eq!(recorded(&recorder.latencies(&["ALL"])), counted);
    let from_intended = recorded(&recorder.intended(&["ALL"]));
    match arrivals {
        Arrivals::Closed => assert_eq!((from_intended, recorder.unfinished), (0, 0)),
        // Slots of 50 ms, of which four fifths are offered.
        Arrivals::Even(rate) => {
            assert_eq!(from_intended, counted);
            assert_eq!(counted + recorder.unfinished, slots * (rate * 0.05 * 0.8).ceil() as u64);
        }
        Arrivals::Poisson(_) | Arrivals::OfSaturation(_) => assert_eq!(from_intended, counted),
    }
    drop(lane);
    let answered: Vec<u64> = servers.into_iter().map(|server| server.join().expect("the server ends")).collect();
    assert_eq!(answered.iter().sum::<u64>(), counted);
    if arrivals == Arrivals::Closed {
        assert!(answered.iter().all(|answered| *answered > 0), "every connection is used: {answered:?}");
    }
}

#[test]
fn a_request_that_the_socket_does_not_take_at_once_is_sent_all_the_same() {
    for arrivals in [Arrivals::Closed, Arrivals::Even(50.0), Arrivals::Poisson(50.0)] {
        check(2, 20_000_000, 1, arrivals);
    }
}

#[test]
fn every_operation_of_many_connections_is_counted_once() {
    for connections in [2, 8, 64] {
        for arrivals in [Arrivals::Closed, Arrivals::Even(2000.0), Arrivals::Poisson(2000.0)] {
            check(connections, 10, 0, arrivals);
        }
    }
}

#[test]
fn a_turn_that_is_over_when_a_lane_comes_to_it_is_left_out() {
    for connections in [1, 3] {
        let (port, servers) = serve(connections, Duration::ZERO);
        let mut lane = lane(port, connections, 10, Arrivals::Closed);
        let schedule = Schedule {
            seed: 1,
            frame: 0,
            blocks: 4,
            arms: 1,
            design: Design::Interleaved,
            frames: 1,
            slot_ns: 1_000_000,
            settling_ns: 0,
            // All turns are long over.
            start_ns: lane.clock.now() - 1_000_000_000,
        };
        let slots = lane.run(&schedule, &PauseGate::open_to(1), &|| false);
        assert_eq!(slots.iter().map(|slot| slot.operations).collect::<Vec<_>>(), [0; 4]);
        drop(lane);
        let answered: Vec<u64> = servers.into_iter().map(|server| server.join().expect("the server ends")).collect();
        assert_eq!(answered, vec![0; connections]);
    }
}

#[test]
fn an_open_loop_leaves_out_what_its_connections_cannot_start_in_time() {
    let (port, servers) = serve(2, Duration::from_millis(20));
    let Ran { counted, slots, lane } = run(lane(port, 2, 10, Arrivals::Even(1000.0)), 1, 2);
    // 40 are intended within 40 ms of each slot, and two connections answer one each per 20 ms.
    assert!(lane.arms[0].recorder.unfinished > 0);
    assert_eq!(counted + lane.arms[0].recorder.unfinished, slots * 40);
    drop(lane);
    for server in servers {
        server.join().expect("the server ends");
    }
}

#[test]
fn a_pause_goes_on_in_the_arms_next_slot() {
    for connections in [1, 5] {
        let (port, servers) = serve(connections, Duration::ZERO);
        // Longer than a slot of 50 ms, and over in the third.
        let pause_ns = 120_000_000;
        // The second operation of a connection comes after the first of every other.
        let enough = 2 * connections as u64;
        let Ran { counted, slots, lane } =
            run(pausing_lane(port, connections, 10, Arrivals::Closed, pause_ns), 8, enough);
        assert_eq!(lane.arms[0].recorder.operations, counted);
        drop(lane);
        let answered: Vec<u64> = servers.into_iter().map(|server| server.join().expect("the server ends")).collect();
        assert_eq!(answered.iter().sum::<u64>(), counted);
        // Slots of 50 ms allow one pause in 120 ms.
        let room = slots * 50 / 120;
        assert!(answered.iter().all(|answered| (1..=room).contains(answered)), "{answered:?} in {slots} slots");
    }
}

/// An embedded database in invented time, whose answers take 10 ms.
struct Slow {
    time: Arc<VirtualTime>,
}

impl Connection for Slow {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl KeyValueSession for Slow {
    fn submit(&mut self, _request: &Request<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        self.time.now.fetch_add(10_000_000, Ordering::Relaxed);
        Ok(Progress::Done(1))
    }
}

/// A lane with one connection to it, which is opened again after `every` operations and takes 3 ms to open.
fn slow_lane(arrivals: Arrivals, every: Option<u32>) -> Lane<'static> {
    let time = Arc::new(VirtualTime::default());
    let connect = |time: &Arc<VirtualTime>| Session::KeyValue(Box::new(Slow { time: Arc::clone(time) }));
    let opened = Arc::clone(&time);
    let open = move || {
        opened.now.fetch_add(3_000_000, Ordering::Relaxed);
        Ok((connect(&opened), Connecting::default()))
    };
    let reconnect = every.map(|every| Reconnect { every, open: Box::new(open) });
    let conn = ClientConnection::new(connect(&time), Box::new(Again { pause_ns: 0 }), 0).reconnecting(reconnect);
    let recorder = Recorder::new(1, every.is_some(), arrivals != Arrivals::Closed);
    let arm = Arm::new(vec![conn], recorder, (Vec::new(), Vec::new()), Timeout::LONGEST).expect("an arm");
    Lane::new(0, 1, Clock::Virtual(time), arrivals, vec![arm], 0)
}

#[test]
fn in_an_open_loop_the_time_of_operations_counts_from_when_they_were_due() {
    // The sum of the latencies in a slot of 50 ms, ms.
    let sum_ms = |arrivals: Arrivals, every: Option<u32>| {
        let mut lane = slow_lane(arrivals, every);
        let slots = lane.run(&schedule(&lane, 0, 1), &PauseGate::open_to(1), &|| false);
        assert_eq!(slots.iter().map(|slot| slot.counted).collect::<Vec<_>>(), [5]);
        slots[0].latency_sum_ns as f64 / 1e6
    };
    // Due every 5 ms, and done after 10, 20, 30, 40 and 50 ms.
    assert_eq!(sum_ms(Arrivals::Even(200.0), None), 10.0 + 15.0 + 20.0 + 25.0 + 30.0);
    assert_eq!(sum_ms(Arrivals::Closed, None), 50.0);
    // With new connections after 20 and 43 ms, done after 10, 20, 33, 43 and 56 ms.
    assert_eq!(sum_ms(Arrivals::Even(200.0), Some(2)), 10.0 + 15.0 + 23.0 + 28.0 + 36.0);
    assert_eq!(sum_ms(Arrivals::Closed, Some(2)), 56.0);
}

/// An answer to a request, by its number, from 0.
type Answer = fn(usize) -> Result<Progress, Fault>;

const DONE: Answer = |_| Ok(Progress::Done(1));

/// The same database, which answers as `answer` says, and notes statements.
struct Scripted {
    slow: Slow,
    answered: usize,
    answer: Answer,
    statements: Arc<Mutex<Vec<String>>>,
}

impl Connection for Scripted {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn blocks(&self) -> bool {
        true
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).push(statement.to_owned());
        if statement == "BREAK" { Err(Fault::Server("no".to_owned())) } else { Ok(()) }
    }
}

impl KeyValueSession for Scripted {
    fn submit(&mut self, _request: &Request<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        self.slow.advance(rows)?;
        self.answered += 1;
        (self.answer)(self.answered - 1)
    }
}

/// A closed loop of one client at it, which pauses before its operations.
struct ScriptedLane {
    lane: Lane<'static>,
    statements: Arc<Mutex<Vec<String>>>,
}

impl ScriptedLane {
    fn new(answer: Answer, pause_ms: u64, on: &[&str], off: &[&str]) -> Self {
        let (time, statements) = (Arc::new(VirtualTime::default()), Arc::default());
        let slow = Slow { time: Arc::clone(&time) };
        let session = Scripted { slow, answered: 0, answer, statements: Arc::clone(&statements) };
        let client = Again { pause_ns: pause_ms * 1_000_000 };
        let conn = ClientConnection::new(Session::KeyValue(Box::new(session)), Box::new(client), 0);
        let [on, off] = [on, off].map(|all| all.iter().map(|one| (*one).to_owned()).collect());
        let arm = Arm::new(vec![conn], Recorder::new(1, false, false), (on, off), Timeout::LONGEST).expect("an arm");
        Self { lane: Lane::new(0, 1, Clock::Virtual(time), Arrivals::Closed, vec![arm], 0), statements }
    }

    /// Operations and length, ms, of each of this number of slots of 50 ms.
    fn run(&mut self, blocks: u32) -> Vec<(u64, u64)> {
        let schedule = schedule(&self.lane, 0, blocks);
        let slots = self.lane.run(&schedule, &PauseGate::open_to(1), &|| false);
        slots.iter().map(|slot| (slot.operations, slot.wall_ns / 1_000_000)).collect()
    }
}

#[test]
fn operations_that_begin_while_a_slot_settles_are_done_and_not_timed() {
    let slot = |settling_ms: u64| {
        let mut lane = slow_lane(Arrivals::Closed, None);
        let schedule = Schedule { settling_ns: settling_ms * 1_000_000, ..schedule(&lane, 0, 1) };
        let slot = lane.run(&schedule, &PauseGate::open_to(1), &|| false)[0];
        let recorder = &lane.arms[0].recorder;
        let seen = (recorder.operations, recorder.lead_in, recorded(&recorder.latencies(&["ALL"])));
        assert_eq!(seen, (slot.operations, 0, slot.counted), "{settling_ms} ms");
        (slot.operations, slot.counted, slot.latency_sum_ns / 1_000_000)
    };
    // Five operations of 10 ms, of which those count that begin after the settling time.
    assert_eq!([0, 1, 10, 11, 50].map(slot), [(5, 5, 50), (5, 4, 40), (5, 4, 40), (5, 3, 30), (5, 0, 0)]);
}

#[test]
fn operations_that_fail_are_no_successes_and_a_broken_connection_ends_its_arm() {
    let ran = |answer: Answer| {
        let mut scripted = ScriptedLane::new(answer, 0, &[], &[]);
        let slots = scripted.run(2);
        let recorder = &scripted.lane.arms[0].recorder;
        assert_eq!(recorder.operations, slots.iter().map(|(operations, _)| *operations).sum::<u64>());
        let (failure, invalid) = (recorder.first_failure.as_deref(), recorder.invalid.as_deref());
        (slots, recorder.failed, failure.unwrap_or_default().to_owned(), invalid.unwrap_or_default().to_owned())
    };
    let none = String::new;
    assert_eq!(ran(DONE), (vec![(5, 50); 2], 0, none(), none()));
    let failing = ran(|number| match number.is_multiple_of(2) {
        true => Err(Fault::Server(format!("no {number}"))),
        false => DONE(number),
    });
    assert_eq!(failing, (vec![(2, 50), (3, 50)], 5, "no 0".to_owned(), none()));
    let wrong = ran(|number| if number == 1 { Err(Fault::Wrong("x".to_owned())) } else { DONE(number) });
    assert_eq!(wrong, (vec![(4, 50), (5, 50)], 0, none(), "wrong answer: x".to_owned()));
    let broken = ran(|number| if number == 1 { Err(Fault::Connection("x".to_owned())) } else { DONE(number) });
    assert_eq!(broken, (vec![(1, 10), (0, 0)], 0, none(), "connection: x".to_owned()));
    // Operations of 20 ms: the third one of the first slot ends in the time of the second, which is shorter then.
    let slower = ran(|number| Ok(if number.is_multiple_of(2) { Progress::Pending } else { Progress::Done(1) }));
    assert_eq!(slower, (vec![(3, 60), (2, 40)], 0, none(), none()));
}

#[test]
fn pauses_are_part_of_slots_and_the_rest_of_one_is_waited_for_in_the_next_slot() {
    // Operations from 20 to 30 ms, 50 to 60, 80 to 90, 110 to 120 and 140 to 150.
    assert_eq!(ScriptedLane::new(DONE, 20, &[], &[]).run(3), [(1, 50), (2, 50), (2, 50)]);
    // From 60 to 70 ms and 130 to 140.
    assert_eq!(ScriptedLane::new(DONE, 60, &[], &[]).run(3), [(0, 50), (1, 50), (1, 50)]);
}

#[test]
fn statements_switch_a_protection_on_before_each_slot_and_off_after_it() {
    let said = |on: &[&str], off: &[&str]| {
        let mut scripted = ScriptedLane::new(DONE, 0, on, off);
        let operations = scripted.run(2).iter().map(|(operations, _)| *operations).collect::<Vec<_>>();
        let said = scripted.statements.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
        (said, operations, scripted.lane.arms[0].recorder.invalid.clone())
    };
    assert_eq!(said(&["ON", "NOW"], &["OFF"]), ("ON, NOW, OFF, ON, NOW, OFF".to_owned(), vec![5, 5], None));
    let why = Some("`BREAK`: server: no".to_owned());
    assert_eq!(said(&["ON"], &["BREAK"]), ("ON, BREAK".to_owned(), vec![5, 0], why.clone()));
    assert_eq!(said(&["BREAK"], &["OFF"]).2, why);
}

#[test]
fn an_arm_that_is_behind_is_warmed_up_until_it_has_caught_up_or_its_time_is_over() {
    // A warm-up of 50 ms holds five operations.
    let done = |lag: &[u64], timeout_ms: u64| {
        let mut lane = slow_lane(Arrivals::Closed, None);
        let schedule = schedule(&lane, 0, 1);
        let done = lane.warm_up(&schedule, 50_000_000, lag, timeout_ms * 1_000_000);
        let recorder = &lane.arms[0].recorder;
        assert_eq!((recorder.lead_in, recorder.operations, recorder.failed), (0, 0, 0), "none of it is recorded");
        done
    };
    assert_eq!([done(&[], 1000), done(&[5], 1000)], [[5], [5]]);
    assert_eq!([done(&[6], 1000), done(&[10], 1000), done(&[11], 1000)], [[10], [10], [15]]);
    assert_eq!([done(&[1000], 100), done(&[1000], 101)], [[10], [15]], "no longer than its time");
}

#[test]
fn requests_of_several_operations_come_at_a_part_of_their_rate() {
    let of = |arrivals| Lane::new(0, 1, Clock::Real, arrivals, Vec::new(), 0).of_requests(100).arrivals;
    assert_eq!([of(Arrivals::Even(50.0)), of(Arrivals::Poisson(50.0))], [Arrivals::Even(0.5), Arrivals::Poisson(0.5)]);
    for other in [Arrivals::Closed, Arrivals::OfSaturation(0.7)] {
        assert_eq!(of(other), other);
    }
}

#[test]
fn a_slot_is_charged_what_client_and_server_have_used_since_it_began() {
    let usage = |client: (u64, u64), server: (u64, u64)| {
        let task = |(cpu_ns, wait_ns): (u64, u64)| TaskUsage { cpu_ns, wait_ns };
        Usage { client: task(client), server: task(server), cpu_times: None }
    };
    let charged = |after: Usage| {
        let mut slot = Slot::default();
        after.charge(&usage((10, 3), (100, 50)), &mut slot);
        (slot.client_cpu_ns, slot.server_cpu_ns, slot.wait_ns)
    };
    assert_eq!(charged(usage((25, 7), (160, 58))), (15, 60, 12));
    assert_eq!(charged(usage((25, 7), (90, 40))), (15, 0, 4), "tasks that are gone read less");
}

/// Answers every client until an empty connection ends the listener; returns the requests of each connection.
fn serve_all() -> (u16, JoinHandle<Vec<u64>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let answer = |mut stream: std::net::TcpStream| {
        std::thread::spawn(move || {
            let mut request = [0; 14];
            let mut answered = 0;
            while stream.read_exact(&mut request).is_ok() {
                stream.write_all(b"!").expect("answered");
                answered += 1;
            }
            answered
        })
    };
    let server = std::thread::spawn(move || {
        let mut connections = Vec::new();
        loop {
            let stream = listener.accept().expect("a client").0;
            let mut first = [0; 1];
            if stream.peek(&mut first).expect("read") == 0 {
                return connections.into_iter().map(|served: JoinHandle<u64>| served.join().expect("served")).collect();
            }
            connections.push(answer(stream));
        }
    });
    (port, server)
}

#[test]
fn a_connection_is_opened_anew_after_its_operations() {
    for (connections, pause_ns) in [(1, 0), (3, 0), (2, 1_000_000)] {
        for arrivals in [Arrivals::Closed, Arrivals::Even(500.0)] {
            let (port, server) = serve_all();
            // With this number, at least one connection has done four, and the last of them needs a new connection.
            let enough = 3 * connections as u64 + 1;
            let Ran { counted, mut lane, .. } =
                run(renewing_lane(port, connections, 10, arrivals, pause_ns, Some(3)), 4, enough);
            let recorder = &lane.arms[0].recorder;
            assert_eq!(recorder.operations, counted);
            let latencies = recorder.latencies(&["ALL", "CONNECT"]);
            let connects = latencies.get("CONNECT").map_or(0, Histogram::total);
            assert_eq!(recorded(&latencies), counted);
            if arrivals != Arrivals::Closed {
                assert_eq!(recorder.intended(&["ALL", "CONNECT"]).get("CONNECT").map_or(0, Histogram::total), connects);
            }
            // A request has 14 bytes and an answer one, over all connections.
            assert_eq!(lane.arms[0].wire_bytes(), (14 * counted, counted));
            drop(lane);
            drop(std::net::TcpStream::connect(("127.0.0.1", port)).expect("told to end"));
            let served = server.join().expect("the server ends");
            assert_eq!(served.iter().sum::<u64>(), counted);
            assert_eq!(served.len() as u64, connections as u64 + connects);
            assert!(served.iter().all(|served| *served <= 3), "{served:?}");
            // All but the last connection of each client have done all of their operations.
            assert!(served.iter().filter(|served| **served < 3).count() <= connections, "{served:?}");
            assert!(connects > 0, "{counted} operations");
        }
    }
}

#[test]
fn operations_of_a_request_are_counted_and_the_request_is_timed() {
    for arrivals in [Arrivals::Closed, Arrivals::Even(5000.0)] {
        let (port, servers) = serve(1, Duration::ZERO);
        let put_back = Arc::new(AtomicU64::new(0));
        let client = Batches { again: Again { pause_ns: 0 }, put_back: Arc::clone(&put_back) };
        let conn = ClientConnection::new(connect(port, 10), Box::new(client), 0);
        let recorder = Recorder::new(1, false, arrivals != Arrivals::Closed);
        let arm = Arm::new(vec![conn], recorder, (Vec::new(), Vec::new()), Timeout::LONGEST).expect("an arm");
        let lane = Lane::new(0, 1, Clock::Real, arrivals, vec![arm], 0).of_requests(100);
        let Ran { counted, slots, lane } = run(lane, 4, 1);
        let recorder = &lane.arms[0].recorder;
        assert_eq!((recorder.operations, counted % 100), (counted, 0));
        assert_eq!(recorded(&recorder.latencies(&["ALL"])) * 100, counted);
        if arrivals != Arrivals::Closed {
            // Of 50 requests a second, four fifths of a slot of 50 ms hold two.
            assert_eq!(counted + recorder.unfinished, slots * 200);
        }
        assert!(put_back.load(Ordering::Relaxed) >= slots);
        drop(lane);
        let answered: u64 = servers.into_iter().map(|server| server.join().expect("the server ends")).sum();
        assert_eq!(answered * 100, counted);
    }
}

#[test]
fn a_session_that_operations_changed_is_told_unless_statements_switch_it() {
    let (port, _servers) = serve(2, Duration::ZERO);
    let arm = |on: &[&str]| {
        let client = Changing { again: Again { pause_ns: 0 }, calls: 0 };
        let conn = ClientConnection::new(connect(port, 10), Box::new(client), 0);
        let on = on.iter().map(|on| (*on).to_owned()).collect();
        Arm::new(vec![conn], Recorder::new(1, false, false), (on, Vec::new()), Timeout::LONGEST).expect("an arm")
    };
    let mut lane = Lane::new(0, 1, Clock::Real, Arrivals::Closed, vec![arm(&["SET a"]), arm(&[])], 0);
    assert_eq!(lane.lasting_change(), None);
    let of_arm = Invalid::OfArm(1, Box::new(Invalid::Other("changed".to_owned())));
    assert_eq!(lane.lasting_change(), Some(of_arm));
}

/// A connection that waits in the kernel, and counts how often its descriptor is asked for.
struct Blocking {
    counting: Counting,
    asked: Arc<AtomicU64>,
}

impl Connection for Blocking {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.counting.descriptor()
    }

    fn blocks(&self) -> bool {
        self.counting.wire.blocks()
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.counting.wire_bytes()
    }
}

impl KeyValueSession for Blocking {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.counting.submit(request)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        self.counting.advance(rows)
    }
}

/// An operation of three requests.
struct Thrice {
    again: Again,
    answers: usize,
}

impl Client for Thrice {
    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.answers = 0;
        self.again.submit(session)
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let progress = self.again.advance(session, parts)?;
        self.answers += 1;
        if self.answers == 3 {
            return Ok(progress);
        }
        self.again.submit(session)?;
        Ok(Progress::Pending)
    }

    fn operation(&self) -> usize {
        0
    }
}

/// One system call sends a request of a single client, and one receives its answer.
#[test]
fn nobody_waits_for_a_connection_before_reading_if_reading_waits() {
    let (port, servers) = serve(1, Duration::ZERO);
    let asked = Arc::new(AtomicU64::new(0));
    let wire = Wire::connect("127.0.0.1", port).expect("connected");
    let session = Blocking { counting: Counting { wire, size: 10 }, asked: Arc::clone(&asked) };
    let client = Thrice { again: Again { pause_ns: 0 }, answers: 0 };
    let conn = ClientConnection::new(Session::KeyValue(Box::new(session)), Box::new(client), 0);
    let arm = Arm::new(vec![conn], Recorder::new(1, false, false), (Vec::new(), Vec::new()), Timeout::LONGEST);
    let lane = Lane::new(0, 1, Clock::Real, Arrivals::Closed, vec![arm.expect("an arm")], 0);
    let Ran { counted, lane, .. } = run(lane, 4, 1);
    // When the arm was made.
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    drop(lane);
    let answered: u64 = servers.into_iter().map(|server| server.join().expect("the server ends")).sum();
    assert_eq!(answered, 3 * counted);
}

#[test]
fn an_arm_whose_connection_cannot_be_opened_anew_is_invalid() {
    let (port, server) = serve_all();
    let refuse = || Err(Fault::Refused("too many".to_owned()));
    let reconnect = Reconnect { every: 2, open: Box::new(refuse) };
    let conn =
        ClientConnection::new(connect(port, 10), Box::new(Again { pause_ns: 0 }), 0).reconnecting(Some(reconnect));
    let arm = Arm::new(vec![conn], Recorder::new(1, true, false), (Vec::new(), Vec::new()), Timeout::LONGEST)
        .expect("an arm");
    let mut lane = Lane::new(0, 1, Clock::Real, Arrivals::Closed, vec![arm], 0);
    let schedule = Schedule {
        seed: 1,
        frame: 0,
        blocks: 1,
        arms: 1,
        design: Design::Interleaved,
        frames: 1,
        // Far longer than two operations take: the slot ends with its arm.
        slot_ns: 60_000_000_000,
        settling_ns: 0,
        start_ns: lane.clock.now(),
    };
    let operations = |lane: &mut Lane<'_>| {
        lane.run(&schedule, &PauseGate::open_to(1), &|| false).iter().map(|slot| slot.operations).sum::<u64>()
    };
    assert_eq!(operations(&mut lane), 2);
    assert_eq!(operations(&mut lane), 0, "the arm is broken");
    assert_eq!(lane.arms[0].recorder.invalid.as_deref(), Some("refused: too many"));
    drop(lane);
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).expect("told to end"));
    assert_eq!(server.join().expect("the server ends"), [2]);
}

#[test]
fn a_part_of_who_writes_the_log_is_charged_to_the_server() {
    let (port, servers) = serve(1, Duration::ZERO);
    let mut lane = lane(port, 1, 10, Arrivals::Closed);
    // The lane's own thread plays the log writer: its usage is known.
    let writer = LogWriter { watch: TaskWatch::this_thread(), parts: 2, is_here: false };
    let arm = lane.arms.remove(0).logged_by(Some(writer));
    lane.arms.push(arm);
    // Again and again, as in `run`.
    let mut frames = (0..1000).map(|frame| lane.run(&schedule(&lane, frame, 4), &PauseGate::open_to(1), &|| false));
    let is_counted = |slot: &Slot| slot.operations > 0 && slot.client_cpu_ns > 0;
    let slots = frames.find(|slots| slots.iter().any(is_counted)).expect("a slot with an operation");
    drop(lane);
    let answered: u64 = servers.into_iter().map(|server| server.join().expect("the server ends")).sum();
    assert!(answered > 0);
    // Its readings enclose those of the client, which leave out the time that it waited for its turn.
    assert!(slots.iter().all(|slot| 2 * slot.server_cpu_ns + 1 >= slot.client_cpu_ns), "{slots:?}");
}
