//! The load loop on real servers: several connections per lane, closed and open, requests larger than a socket buffer,
//! and connections that are reopened during the measurement.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64},
};

use tithe_databases::{mariadb::MariaDb, postgres::Postgres, redis::Redis};
use tithe_harness::load::{
    CONNECT,
    frame::{CellRunner, StartedArm},
};
use tithe_machine::cgroup;
use tithe_model::{
    connecting::Connecting,
    experiment::{self, Arrivals, OptionValue, Values},
    histogram::Histogram,
    invalid::Invalid,
    plan::{Cell, Starts, WarmUp},
    record::{ArmFrame, Frame, Slot},
};
use tithe_plugin::{data, product::Product, session::Session, setup::Transport, workload::Workload};
use tithe_workloads::replay::gather::DIGEST;

use super::{
    how_for,
    sandbox::{Sandbox, chosen},
};

pub fn ycsb(records: u64, properties: &[(&str, &str)]) -> Box<dyn Workload> {
    let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let described =
        experiment::Workload { name: "mixed".to_owned(), kind: "ycsb".to_owned(), properties, prepare: None };
    tithe_workloads::make(&described, &experiment::Data { records, values: Values::Ycsb }, 1).expect("a workload")
}

pub fn load(sandbox: &Sandbox, workload: &dyn Workload) {
    sandbox.database.create(&sandbox.server, &sandbox.setup, &workload.table()).expect("a table");
    let how = how_for(workload.table(), true);
    let mut session: Session = sandbox.database.connect(&sandbox.server, &sandbox.setup, &how).expect("a session");
    let clients = workload.offered_by().clients().expect("YCSB has clients");
    clients.load(&mut session, 0, 1, &AtomicU64::new(0)).expect("loaded");
}

/// One frame of four slots of 50 ms. Nothing may invalidate it, and slots, counters and histograms must agree on the
/// number of operations.
pub fn frame(sandbox: &Sandbox, workload: &dyn Workload, clients: u32, arrivals: Arrivals) -> ArmFrame {
    frame_of(sandbox, workload, clients, arrivals, None).0
}

/// One arm, `sandbox`, in frames of four slots of 50 ms.
pub fn runner<'a>(
    sandbox: &'a Sandbox,
    workload: &'a dyn Workload,
    clients: u32,
    arrivals: Arrivals,
    reconnect_every: Option<u32>,
) -> CellRunner<'a> {
    let cell = Cell {
        id: "mixed".to_owned(),
        workload: 0,
        resources: 0,
        clients,
        arrivals,
        seed: 1,
        slot_ns: 50_000_000,
        settling_ns: 0,
        warmup_ns: 10_000_000,
        blocks: 4,
        frames_max: 1,
        epochs: 1,
        design: tithe_model::experiment::Design::Interleaved,
        starts: Starts::Once,
        after_start: WarmUp::None,
        pinned: true,
        free_frames: 0,
        reconnect_every,
        program: false,
        gaps: false,
    };
    let arm = StartedArm {
        server: sandbox.server.clone(),
        data: 0,
        shares_server: false,
        setup: sandbox.setup.clone(),
        on: Vec::new(),
        off: Vec::new(),
    };
    CellRunner::new(sandbox.database, workload, &cell, 0, true, vec![arm])
}

/// The same with connections of `reconnect_every` operations, and its slots.
fn frame_of(
    sandbox: &Sandbox,
    workload: &dyn Workload,
    clients: u32,
    arrivals: Arrivals,
    reconnect_every: Option<u32>,
) -> (ArmFrame, Vec<Slot>) {
    let mut runner = runner(sandbox, workload, clients, arrivals, reconnect_every);
    // On a busy machine a thread may sleep through all slots of a frame.
    let slept = |frame: &Frame| frame.invalid.as_ref().is_some_and(Invalid::is_of_a_busy_machine);
    let (mut frame, slots) = (0..100)
        .map(|number| {
            runner.frame(number, (0, 0), false, &AtomicBool::new(false)).expect("connected").expect("not cancelled")
        })
        .find(|(frame, _)| !slept(frame))
        .expect("a frame with operations");
    assert_eq!(frame.invalid, None, "{clients} clients, {arrivals:?}");
    let arm = frame.arms.remove(0);
    let count = |field: fn(&Slot) -> u64| slots.iter().map(field).sum::<u64>();
    assert_eq!((arm.operations, arm.failed), (count(|slot| slot.operations), 0));
    // Neither a connection nor a statement of a log's transaction is an operation.
    let latencies = arm.latency.iter().filter(|(name, _)| *name != CONNECT && !name.starts_with(DIGEST));
    assert_eq!(latencies.map(|(_, histogram)| histogram.total()).sum::<u64>(), count(|slot| slot.counted));
    (arm, slots)
}

/// Connections end after `every` operations, and none of these is lost; the server's processor time is measured,
/// wherever it is spent.
fn reconnects(sandbox: &Sandbox) {
    let workload = ycsb(100, &[("readproportion", "0.5"), ("updateproportion", "0.5")]);
    load(sandbox, workload.as_ref());
    for (clients, every, arrivals) in
        [(1, 1, Arrivals::Closed), (2, 10, Arrivals::Closed), (8, 3, Arrivals::Closed), (2, 2, Arrivals::Even(200.0))]
    {
        let (arm, slots) = frame_of(sandbox, workload.as_ref(), clients, arrivals, Some(every));
        // In a frame of a busy machine there may be none.
        let connects_in = |set: &BTreeMap<String, Histogram>| set.get(CONNECT).map_or(0, Histogram::total);
        let connects = connects_in(&arm.latency);
        let server_cpu_ns: u64 = slots.iter().map(|slot| slot.server_cpu_ns).sum();
        eprintln!(
            "{}, {clients} clients, every {every}: {} operations, {connects} connections, server {} µs/op, whole tree {:?} ns",
            sandbox.database.id(),
            arm.operations,
            server_cpu_ns / 1000 / arm.operations,
            arm.counters.server_cpu_ns.map(|all| all / arm.operations),
        );
        // Work that started in the warm-up continues; each client may be within its operations at both ends.
        let expected = arm.operations as f64 / f64::from(every);
        assert!(
            (connects as f64 - expected).abs() <= f64::from(clients),
            "{connects} connections, {expected} expected"
        );
        let Connecting { connections, tcp, tls, login } = arm.connecting;
        assert!(connections >= connects && tcp.time_ns > 0 && login.time_ns > login.client_ns, "{:?}", arm.connecting);
        assert_eq!(tls.time_ns > 0 && tls.client_ns > 0, matches!(sandbox.setup.transport, Transport::Tls { .. }));
        if arrivals != Arrivals::Closed {
            assert_eq!(connects_in(&arm.intended), connects);
        }
        let process_each = sandbox.database.id() == "postgres";
        assert!(server_cpu_ns > 0 || (process_each && !cgroup::counts()), "no processor time of the server was seen");
    }
}

/// Connections are reopened during the measurement of a plain server of `database`, and of one with TLS and a
/// `password`.
fn opened_anew(database: &'static dyn Product, password: &str) {
    let resumed = chosen(database, "tls", &[("resumption", OptionValue::Flag(true))]);
    for protections in [vec![], vec![resumed, chosen(database, password, &[])]] {
        let Some(sandbox) = Sandbox::start(database, &protections) else { return };
        reconnects(&sandbox);
    }
}

#[test]
fn connections_to_postgresql_are_opened_anew_while_measuring() {
    opened_anew(&Postgres, "scram");
}

#[test]
fn connections_to_mariadb_are_opened_anew_while_measuring() {
    opened_anew(&MariaDb, "password");
}

#[test]
fn connections_to_redis_are_opened_anew_while_measuring() {
    opened_anew(&Redis, "requirepass");
}

#[test]
fn many_connections_a_lane_lose_and_invent_no_operation() {
    let Some(sandbox) = Sandbox::start(&Postgres, &[]) else { return };
    let workload = ycsb(1000, &[("readproportion", "0.5"), ("updateproportion", "0.5")]);
    load(&sandbox, workload.as_ref());
    for clients in [1, 8, 64] {
        let closed = frame(&sandbox, workload.as_ref(), clients, Arrivals::Closed);
        assert!(closed.intended.is_empty() && closed.unfinished == 0);
        for arrivals in [Arrivals::Even(1000.0), Arrivals::Poisson(1000.0)] {
            let open = frame(&sandbox, workload.as_ref(), clients, arrivals);
            let from_intended: u64 = open.intended.values().map(|histogram| histogram.total()).sum();
            assert_eq!(from_intended, open.latency.values().map(|histogram| histogram.total()).sum::<u64>());
            if arrivals == Arrivals::Even(1000.0) {
                // Four slots of 50 ms, of which four fifths are offered.
                assert_eq!(open.operations + open.unfinished, 160);
            }
        }
    }
}

#[test]
fn updates_larger_than_a_socket_takes_at_once_are_sent_whole() {
    let Some(sandbox) = Sandbox::start(&Postgres, &[]) else { return };
    let properties = [
        ("readproportion", "0"),
        ("updateproportion", "1"),
        ("fieldcount", "2"),
        ("fieldlength", "6000000"),
        ("writeallfields", "true"),
    ];
    let workload = ycsb(8, &properties);
    load(&sandbox, workload.as_ref());
    for clients in [1, 8] {
        let seen = frame(&sandbox, workload.as_ref(), clients, Arrivals::Closed);
        assert!(seen.counters.sent_bytes.expect("counted") > 12_000_000 * seen.operations);
    }
}

/// Bytes of log by which the first updates directly after a checkpoint exceed the same number of later ones, and bytes
/// per later update. The sum is compared, not the value per update: how many updates a frame has depends on the
/// machine.
fn log_at_first(precondition: bool) -> Option<(f64, f64)> {
    let sandbox = Sandbox::start(&Postgres, &[])?;
    let workload = ycsb(5000, &[("readproportion", "0"), ("updateproportion", "1")]);
    load(&sandbox, workload.as_ref());
    let (server, setup) = (&sandbox.server, &sandbox.setup);
    data::quiesce(sandbox.database, server, setup, workload.as_ref()).expect("quiesced");
    if precondition {
        data::precondition(sandbox.database, server, setup, workload.as_ref()).expect("preconditioned");
    }
    let mut runner = runner(&sandbox, workload.as_ref(), 1, Arrivals::Closed, None);
    let mut numbers = 0..10_000;
    let mut logged = |least_updates: u64| {
        let (mut bytes, mut updates) = (0, 0);
        while updates < least_updates {
            let number = numbers.next().expect("updates within ten thousand frames");
            let frame = runner.frame(number, (0, 0), false, &AtomicBool::new(false)).expect("connected");
            let seen = frame.expect("not cancelled").0.arms.remove(0);
            bytes += seen.counters.wal_bytes.expect("PostgreSQL tells it");
            updates += seen.all_operations();
        }
        (bytes as f64, updates as f64)
    };
    let ((first, updates), _, (last, of)) = (logged(1500), logged(3000), logged(500));
    let later = last / of;
    eprintln!(
        "preconditioned: {precondition}, {updates} updates at first: {first} bytes of log, {later:.0} each later"
    );
    Some((first - updates * later, later))
}

#[test]
fn a_server_that_is_run_in_logs_as_much_at_first_as_later() {
    let Some((preconditioned, _)) = log_at_first(true) else { return };
    // The control: directly after a checkpoint, the first update of each of about 700 pages logs the whole page.
    let (after_checkpoint, update) = log_at_first(false).expect("installed");
    assert!(after_checkpoint > 2000.0 * update, "{after_checkpoint} bytes more, of {update} an update");
    assert!(
        preconditioned < after_checkpoint / 4.0,
        "{preconditioned} bytes more, {after_checkpoint} after a checkpoint"
    );
}
