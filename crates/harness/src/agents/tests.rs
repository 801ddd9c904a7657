//! Coordinator and agents in one process, on the simulated database, over a link in memory.

pub(in crate::agents) mod local;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use expect_test::expect;
use tithe_machine::{credentials::Credentials, fault::Fault, secret::Secret};
use tithe_model::{
    experiment::Design,
    plan::Cell,
    record::{ClientTimes, Frame, Machine, Slot},
};
use tithe_plugin::{simulated::Simulated, workload::Workload};

use self::local::{Hub, LocalLink};
use super::{
    agent::{self, AgentConfig, AgentEvent},
    coordinator::{self, Team, roll_call},
    link::{Answer, Link},
    message::{
        Enlistment, FrameOrder, Hello, Keys, Order, PROTOCOL, Place, Reply, Report, Said, Target, coordinator,
        coordinator_clock, read, write,
    },
    observer::{self, ObserverConfig},
};
use crate::{
    arms,
    catalogue::tests::planned,
    load::frame::{
        CellRunner, StartedArm,
        machines::{LaneRange, LoadMachines, PartRequest},
    },
};

/// The description of an agent of this `name`.
pub(in crate::agents) fn hello(name: &str) -> Hello {
    Hello {
        id: format!("id-of-{name}"),
        name: name.to_owned(),
        tithe: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        lanes: 2,
        machine: Machine::default(),
        busy_with: None,
        observes: false,
    }
}

pub(in crate::agents) fn config(name: &str, lanes: u32) -> AgentConfig {
    AgentConfig {
        name: name.to_owned(),
        lanes,
        targets: Vec::new(),
        products: vec![&Simulated],
        machine: Machine::default(),
    }
}

const EXPERIMENT: &str = "title = \"Agents\"\ndatabase = \"simulated\"\n[settings]\nservice_us = 100\n[data]\nrecords = 1000\n[load]\nclients = 3\n\
    [measure]\nbudget = \"30 s\"\nslot = \"20 ms\"\nprecision = \"0.01%\"\naa_arm = false\n[[workload]]\nycsb = \"WORKLOAD\"\n\
    [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

pub(in crate::agents) fn plan(workload: &str) -> tithe_model::plan::Plan {
    planned(&EXPERIMENT.replace("WORKLOAD", workload))
}

#[test]
fn what_agents_cannot_offer_is_refused() {
    let refused = |change: &dyn Fn(&mut tithe_model::plan::Plan)| {
        let mut plan = plan("c");
        change(&mut plan);
        coordinator::refused(&Simulated, &plan.experiment, &plan).unwrap_or_default()
    };
    assert_eq!(refused(&|_| ()), "");
    expect!["agents offer interleaved slots only: leave `design` out"]
        .assert_eq(&refused(&|plan| plan.experiment.measure.design = Design::Duet));
    expect!["agents offer interleaved slots only, and a server that is switched is at one side at a time"]
        .assert_eq(&refused(&|plan| plan.cells[0].design = Design::Switched { frames_a_side: 5 }));
}

/// Ends agents when a test ends, even if it panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `coordinator` on a hub with an agent for each of `agents`, by their lanes.
pub(in crate::agents) fn with_agents<T>(agents: &[u32], coordinator: impl FnOnce(&Hub, &AtomicBool) -> T) -> T {
    let (hub, cancelled) = (Hub::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for (number, lanes) in agents.iter().enumerate() {
            let (link, cancelled) = (hub.link(number as i64 * 1_000_000_000_000), &cancelled);
            let config = config(&format!("a{number}"), *lanes);
            scope.spawn(move || agent::serve(&link, &config, cancelled, &mut |_| {}).expect("served"));
        }
        let _ends = Ends(&cancelled);
        coordinator(&hub, &AtomicBool::new(false))
    })
}

/// Runs `coordinator` on a hub with these `observers`.
pub(in crate::agents) fn with_observers<T>(observers: &[ObserverConfig], coordinator: impl FnOnce(&Hub) -> T) -> T {
    let (hub, cancelled) = (Hub::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = Ends(&cancelled);
        for config in observers {
            let (link, cancelled) = (hub.link(0), &cancelled);
            scope.spawn(move || observer::serve(&link, config, cancelled, &mut |_| {}).expect("served"));
        }
        coordinator(&hub)
    })
}

/// The order of run `r` to measure the first frame of `plan` on one lane.
pub(in crate::agents) fn frame_order(plan: &tithe_model::plan::Plan, ticket: u64) -> FrameOrder {
    let target = |data| Target { at: Place::Nowhere, space: String::new(), data, column_key: None };
    let frame = PartRequest {
        cell: plan.cells[0].clone(),
        number: 0,
        free: false,
        warmup_ns: 0,
        lag: Vec::new(),
        fresh: true,
        cold: false,
    };
    let word = || "00".to_owned();
    FrameOrder {
        run: "r".to_owned(),
        ticket,
        cell_index: 0,
        lanes: LaneRange { first: 0, count: 1, of: 1 },
        frame,
        arms: vec![target(0), target(1)],
        keys: Keys { password: word(), key: word(), second_key: word(), ..Keys::default() },
        states: None,
        part: (0, 1),
    }
}

/// Measures `frames` frames of the plan's first cell, by `team` or here.
pub(in crate::agents) fn frames(
    plan: &tithe_model::plan::Plan,
    team: Option<&Team<'_>>,
    frames: u32,
) -> Vec<(Frame, Vec<Slot>)> {
    let cell: Cell = plan.cells[0].clone();
    let described = &plan.experiment.workloads[cell.workload];
    let workload: Box<dyn Workload> =
        tithe_workloads::make(described, &plan.experiment.data, plan.experiment.measure.seed).expect("a workload");
    let credentials = Credentials::without_files(Secret::random(8), Secret::random(32));
    let resolved = arms::resolve(&Simulated, &plan.experiment).expect("arms");
    let folder = tempfile::tempdir().expect("a folder");
    let arm = |(number, resolved): (usize, &arms::Resolved<'_>)| {
        let setup = resolved.setup(plan, &cell, &credentials).expect("a set-up");
        let place = folder.path().join(number.to_string());
        let server = agent::replica::server(&Simulated, (&setup, workload.as_ref()), &place, true).expect("a server");
        StartedArm { server, data: number, shares_server: false, setup, on: Vec::new(), off: Vec::new() }
    };
    let arms = resolved.iter().enumerate().map(arm).collect();
    let runner = CellRunner::new(&Simulated, workload.as_ref(), &cell, 0, true, arms);
    let mut runner = runner.loaded_by(team.map(|team| team as &dyn LoadMachines));
    let cancelled = AtomicBool::new(false);
    (0..frames).filter_map(|number| runner.frame(number, (0, 0), false, &cancelled).expect("a frame")).collect()
}

/// Longer than anything here takes on a busy machine.
pub(in crate::agents) const WAIT: Duration = Duration::from_secs(120);

/// The first success of `attempt`, which has little time on a machine that may be busy.
pub(in crate::agents) fn at_last<T>(attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    std::iter::repeat_with(attempt)
        .take_while(|_| begun.elapsed() < WAIT)
        .flatten()
        .next()
        .expect("it succeeds at last")
}

/// Operations by lane, block and arm.
fn counted(frames: &[(Frame, Vec<Slot>)]) -> Vec<(u32, u32, u32, u32, u64)> {
    let of = |slot: &Slot| (slot.frame, slot.lane, slot.block, slot.arm, slot.operations);
    frames.iter().flat_map(|(_, slots)| slots.iter().map(of)).collect()
}

#[test]
fn one_agent_and_three_count_the_same_operations_whatever_their_clocks_say() {
    for workload in ["c", "d"] {
        let plan = plan(workload);
        let by = |agents: &[u32]| {
            with_agents(agents, |hub, cancelled| {
                let link = hub.link(-86_400_000_000_000);
                let team = Team::gather(&link, &plan, (agents.len(), WAIT), cancelled).expect("a team");
                frames(&plan, Some(&team), 3)
            })
        };
        let (one, three) = (by(&[3]), by(&[1, 1, 1]));
        for (frame, _) in one.iter().chain(&three) {
            assert_eq!(frame.invalid, None);
        }
        assert_eq!(one.len(), 3);
        assert!(counted(&one).iter().all(|(.., operations)| *operations > 0));
        assert_eq!(counted(&one), counted(&three));
        let latency = |frames: &[(Frame, Vec<Slot>)]| frames[2].0.arms[1].latency.clone();
        assert_eq!(latency(&one), latency(&three), "histograms are added");
        let offsets: Vec<i64> = three[0].0.agents.iter().map(|agent| agent.clock_offset_ns).collect();
        for (number, (offset, agent)) in offsets.iter().zip(&three[0].0.agents).enumerate() {
            let truth = 86_400_000_000_000 + number as i64 * 1_000_000_000_000;
            assert!(offset.abs_diff(truth) <= agent.clock_bound_ns, "{offset} for {truth}");
            // Nobody watches these servers, so the slots have what clients waited and nothing else.
            let of_lane = || three[0].1.iter().filter(|slot| slot.lane as usize == number);
            let wait_ns = of_lane().map(|slot| slot.wait_ns).sum();
            let wall_ns = of_lane().map(|slot| slot.wall_ns).sum();
            assert_eq!(agent.clients, Some(ClientTimes { wait_ns, wall_ns }));
        }
    }
}

#[test]
fn agents_count_what_one_process_counts() {
    let plan = plan("c");
    // One frame: invented time continues within one process, and begins again on an agent with each frame.
    let here = frames(&plan, None, 1);
    let lanes = counted(&here).iter().map(|(_, lane, ..)| lane + 1).max().expect("slots");
    let there = with_agents(&vec![1; lanes as usize], |hub, cancelled| {
        let link = hub.link(0);
        let team = Team::gather(&link, &plan, (lanes as usize, WAIT), cancelled).expect("a team");
        frames(&plan, Some(&team), 1)
    });
    assert_eq!(counted(&here), counted(&there));
}

#[test]
fn a_lost_agent_spoils_the_frame_by_its_name_and_one_that_is_back_goes_on() {
    let plan = plan("d");
    with_agents(&[1, 1], |hub, cancelled| {
        let link = hub.link(0);
        let gone = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ends = Ends(&gone);
            let third = |name: &'static str| {
                let (link, gone) = (hub.link(5), &gone);
                scope.spawn(move || agent::serve(&link, &config(name, 1), gone, &mut |_| {}).expect("served"))
            };
            let first = third("z");
            let team = Team::gather(&link, &plan, (3, WAIT), cancelled).expect("a team");
            assert!(frames(&plan, Some(&team), 2).iter().all(|(frame, _)| frame.invalid.is_none()));
            hub.deafen_reports_of("z", true);
            let invalid = frames(&plan, Some(&team), 1);
            let why = invalid[0].0.invalid.as_ref().expect("invalid").to_string();
            assert!(why.contains("agent z"), "{why}");
            assert!(invalid[0].1.is_empty(), "nothing of an invalid frame counts");
            gone.store(true, Ordering::SeqCst);
            first.join().expect("ended");
            hub.deafen_reports_of("z", false);
            gone.store(false, Ordering::SeqCst);
            let _second = third("z");
            let again = frames(&plan, Some(&team), 2);
            assert!(again.iter().all(|(frame, _)| frame.invalid.is_none()), "{:?}", again[0].0.invalid);
            drop(team);
            gone.store(true, Ordering::SeqCst);
        });
    });
}

#[test]
fn an_agent_that_stays_away_ends_the_cell_with_its_name() {
    let plan = plan("c");
    with_agents(&[1], |hub, cancelled| {
        let (link, gone) = (hub.link(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _ends = Ends(&gone);
            let (other, gone) = (hub.link(5), &gone);
            let second = scope.spawn(move || agent::serve(&other, &config("z", 1), gone, &mut |_| {}).expect("served"));
            let team = at_last(|| Team::gather(&link, &plan, (2, Duration::from_secs(3)), cancelled).ok());
            gone.store(true, Ordering::SeqCst);
            second.join().expect("ended");
            let measured = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| frames(&plan, Some(&team), 1)));
            let why = *measured.expect_err("nothing is measured").downcast::<String>().expect("words");
            assert!(why.contains("agent z was lost and did not come back within 3 s: it does not answer"), "{why}");
        });
    });
}

#[test]
fn too_few_agents_are_told_by_name_before_anything_starts() {
    let plan = plan("c");
    with_agents(&[1, 1], |hub, cancelled| {
        let link = hub.link(0);
        // A roll call misses an agent that is not there yet or answers late.
        let told = at_last(|| {
            let fault = Team::gather(&link, &plan, (3, Duration::ZERO), cancelled).err().expect("nobody is gathered");
            Some(fault.to_string()).filter(|told| told.contains("a0, a1"))
        });
        assert_eq!(told, "refused: 3 agents are expected, and 2 are there and free: a0, a1; busy: none");
    });
}

#[test]
fn an_agent_does_nothing_for_a_coordinator_that_asks_for_what_it_may_not() {
    let plan = plan("c");
    with_agents(&[1], |hub, _| {
        let link = hub.link(0);
        let seen = loop {
            let seen = roll_call(&link).expect("answers");
            if let [one] = &seen[..] {
                break one.hello.clone();
            }
        };
        let ask = |order: &Order| match link.request(&seen.orders(), &write(order).expect("JSON"), WAIT).expect("asked")
        {
            Answer::Reply(reply) => read::<Reply>(&reply).expect("a reply"),
            other => panic!("{other:?}"),
        };
        let Answer::Reply(reply) = link.request(&seen.orders(), b"{\"run\":\"sh\"}", WAIT).expect("asked") else {
            panic!("no answer")
        };
        assert!(matches!(read(&reply), Some(Reply::Refused(_))));
        assert_eq!(ask(&Order::Go { ticket: 1, start_ns: 1 }), Reply::NotEnlisted);
        assert_eq!(ask(&Order::Release { run: "r".to_owned() }), Reply::NotEnlisted);
        let enlistment = |tithe: &str, run: &str| {
            let plan = serde_json::to_string(&plan).expect("JSON");
            Order::Enlist(Box::new(Enlistment {
                run: run.to_owned(),
                tithe: tithe.to_owned(),
                protocol: PROTOCOL,
                plan,
                servers: Vec::new(),
            }))
        };
        assert!(matches!(ask(&enlistment("0.0.1", "r")), Reply::Refused(why) if why.contains("run one version")));
        // There is no clock for this run, so the agent leaves it after a while.
        assert_eq!(ask(&enlistment(env!("CARGO_PKG_VERSION"), "r")), Reply::Accepted);
        assert_eq!(ask(&enlistment(env!("CARGO_PKG_VERSION"), "s")), Reply::Busy("r".to_owned()));
        while roll_call(&link).expect("answers").iter().any(|seen| seen.hello.busy_with.is_some()) {}
    });
}

/// A malicious coordinator that was let in: orders beyond its own plan are refused with the reason, and the agent
/// continues to serve.
#[test]
fn an_agent_measures_nothing_but_the_plan_that_it_was_given() {
    let plan = plan("c");
    with_agents(&[2], |hub, _| {
        let link = hub.link(0);
        let seen = loop {
            if let [one] = &roll_call(&link).expect("answers")[..] {
                break one.hello.clone();
            }
        };
        let _clock = link.tell_time(&coordinator_clock("r")).expect("a clock");
        let mut reports = link.subscribe(&coordinator("r")).expect("an inbox");
        let ask = |order: Order| {
            let order = write(&order).expect("JSON");
            loop {
                match link.request(&seen.orders(), &order, WAIT).expect("asked") {
                    Answer::Reply(reply) => match read::<Reply>(&reply).expect("a reply") {
                        // It still works on the frame before.
                        Reply::Busy(_) => {}
                        reply => break reply,
                    },
                    other => panic!("{other:?}"),
                }
            }
        };
        let enlist = |plan: &tithe_model::plan::Plan, servers| {
            let plan = serde_json::to_string(plan).expect("JSON");
            let (run, tithe) = ("r".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
            ask(Order::Enlist(Box::new(Enlistment { run, tithe, protocol: PROTOCOL, plan, servers })))
        };
        let refused = |change: &dyn Fn(&mut tithe_model::plan::Plan)| {
            let mut changed = plan.clone();
            change(&mut changed);
            match enlist(&changed, Vec::new()) {
                Reply::Refused(why) => why,
                other => panic!("{other:?}"),
            }
        };
        expect!["this build of tithe has no database /bin/sh"]
            .assert_eq(&refused(&|plan| plan.experiment.database = "/bin/sh".to_owned()));
        expect!["its plan makes no sense: cells[0].workload: there is no such workload"]
            .assert_eq(&refused(&|plan| plan.cells[0].workload = 7));
        assert_eq!(enlist(&plan, Vec::new()), Reply::Accepted);
        let mut tickets = 0..;
        let mut failed = |change: &dyn Fn(&mut FrameOrder)| {
            let ticket = tickets.next().expect("a number");
            let mut order = frame_order(&plan, ticket);
            change(&mut order);
            assert_eq!(ask(Order::Measure(Box::new(order))), Reply::Accepted);
            loop {
                let delivery = reports.next(WAIT).expect("heard").expect("a report");
                link.publish(&delivery.reply_to.expect("an inbox"), b"{}").expect("told");
                match read::<Report>(&delivery.body).expect("a report") {
                    Report { said: Said::Failed(why), ticket: of, .. } if of == ticket => break why,
                    Report { said: Said::Ready(_), .. } => panic!("it would have measured"),
                    _ => {}
                }
            }
        };
        let foreign = "refused: a frame is not one of the plan that this agent was given";
        assert_eq!(failed(&|order| order.cell_index = 9), foreign);
        assert_eq!(failed(&|order| order.frame.cell.clients = 100_000), foreign);
        assert_eq!(failed(&|order| order.frame.cell.blocks = u32::MAX), foreign);
        assert_eq!(failed(&|order| order.arms.truncate(1)), foreign);
        assert_eq!(failed(&|order| order.keys.key = "no key".to_owned()), foreign);
        expect!["refused: 100000 lanes are not available"]
            .assert_eq(&failed(&|order| order.lanes = LaneRange { first: 0, count: 100_000, of: 100_000 }));
        expect!["refused: a frame names a URL that leads to no host and port"]
            .assert_eq(&failed(&|order| order.arms[1].at = Place::Url("file:///etc/shadow".to_owned())));
        expect!["refused: it may not connect to 10.0.0.1:22; it was started with these targets: none (--target)"]
            .assert_eq(&failed(&|order| order.arms[1].at = Place::Tcp { host: "10.0.0.1".to_owned(), port: 22 }));
        assert_eq!(ask(Order::Release { run: "r".to_owned() }), Reply::Accepted);
        while roll_call(&link).expect("answers").iter().any(|seen| seen.hello.busy_with.is_some()) {}
    });
}

#[test]
fn what_an_agent_is_told_is_told_to_who_watches_it() {
    let plan = plan("c");
    let (hub, cancelled, going) = (Hub::default(), AtomicBool::new(false), AtomicBool::new(false));
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        let (link, coordinator, cancelled) = (hub.link(0), hub.link(0), &cancelled);
        let (told, _ends) = (&mut told, Ends(cancelled));
        let agent = scope.spawn(move || {
            agent::serve(&link, &config("a", 2), cancelled, &mut |what| {
                told.push(match what {
                    AgentEvent::Enlisted(_) => "enlisted".to_owned(),
                    AgentEvent::Measured(frames) => format!("{frames} measured"),
                    AgentEvent::Free(why) | AgentEvent::Warning(why) => why,
                });
            })
        });
        let team = Team::gather(&coordinator, &plan, (1, WAIT), &going).expect("a team");
        assert_eq!(frames(&plan, Some(&team), 2).len(), 2);
        drop(team);
        while roll_call(&coordinator).expect("answers").iter().any(|seen| seen.hello.busy_with.is_some()) {}
        cancelled.store(true, Ordering::SeqCst);
        agent.join().expect("ended").expect("served");
    });
    assert_eq!(told, ["enlisted", "1 measured", "2 measured", "the run has ended"]);
}

#[test]
fn a_link_that_is_lost_is_a_fault_of_the_connection() {
    let link: LocalLink = Hub::default().link(0);
    link.lose(true);
    assert!(matches!(link.publish("x", b"y"), Err(Fault::Connection(_))));
    assert!(matches!(roll_call(&link), Err(Fault::Connection(_))));
}
