//! Cells that differ in clients: saturation of each arm, and published figures next to the measured ones.

use tithe_analysis::{ArmAnalysis, Figure, Interval, SweepArm, assess::assess};
use tithe_model::{
    experiment::{Arrivals, Metric, Published, PublishedFigure, PublishedValue, Workload},
    plan::Cell,
    record::{Frame, Slot},
    records::Records,
};

use crate::synthetic::Invented;

/// Cells of workload c with 4, 1 and 2 clients, one at a share of saturation, and one cell of workload a. An operation
/// takes the given time and 10 ns more in each further frame, alike in all slots.
fn swept() -> Records {
    let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
    let (cell, facts) = (records.plan.cells[0].clone(), records.cells[0].clone());
    let other = Workload { name: "a".to_owned(), ..records.plan.experiment.workloads[0].clone() };
    records.plan.experiment.workloads.push(other);
    let (frames, slots) = (std::mem::take(&mut records.frames), std::mem::take(&mut records.slots));
    let (closed, of_saturation) = (Arrivals::Closed, Arrivals::OfSaturation(0.7));
    let cells = [
        ("four", 0, 4, closed, [12_900, 14_000, 29_400]),
        ("one", 0, 1, closed, [20_000, 25_000, 30_000]),
        ("rated", 0, 4, of_saturation, [20_000, 25_000, 30_000]),
        ("two", 0, 2, closed, [13_000, 20_000, 29_500]),
        ("alone", 1, 2, closed, [20_000, 25_000, 30_000]),
    ];
    records.plan.cells.clear();
    records.cells = vec![facts; cells.len()];
    for (number, (id, workload, clients, arrivals, costs_ns)) in (0..).zip(cells) {
        records.plan.cells.push(Cell { id: id.to_owned(), workload, clients, arrivals, ..cell.clone() });
        records.frames.extend(frames.iter().map(|frame| Frame { cell: number, ..frame.clone() }));
        records.slots.extend(slots.iter().map(|slot| {
            let cost_ns = costs_ns[slot.arm as usize] + 10 * u64::from(slot.frame);
            Slot {
                cell: number,
                operations: 1000,
                counted: 950,
                wall_ns: cost_ns * 1000,
                latency_sum_ns: cost_ns * 950,
                client_cpu_ns: cost_ns * 300,
                server_cpu_ns: cost_ns * 500,
                wait_ns: 0,
                stalled_ns: Some(0),
                ..*slot
            }
        }));
    }
    records
}

#[test]
fn cells_that_differ_in_clients_show_where_each_arm_is_saturated_and_what_it_costs_there() {
    let analysis = assess(&swept());
    assert_eq!(analysis.sweeps.len(), 1, "workload a has one number of clients");
    let sweep = &analysis.sweeps[0];
    assert_eq!((sweep.workload.as_str(), sweep.resources.as_str()), ("c", ""));
    let of_arm = |arm: &SweepArm| {
        let cells: Vec<&str> = arm.costs.iter().map(|(cell, _)| cell.as_str()).collect();
        format!("{} {:?}: {}", arm.name, arm.saturated_at, cells.join(" "))
    };
    let told: Vec<String> = sweep.arms.iter().map(of_arm).collect();
    // With twice the clients the plain arm gains 54 % and 0.8 %, the first protected one 25 % and 43 %, the other 2 %.
    assert_eq!(told, ["plain Some(2): ", "protected 1 None: one four rated", "protected 2 Some(1): one rated"]);
    let primary = analysis.cells[1].arms[1].primary().expect("it is compared");
    assert_eq!(sweep.arms[1].costs[0].1, primary.text);
    // Two lanes, each busy with one operation at a time.
    let rate = |cost_ns: f64| 2e9 / cost_ns;
    for (arm, cost_ns) in sweep.arms.iter().zip([13_000.0, 14_000.0, 30_000.0]) {
        assert!(rate(cost_ns + 190.0) < arm.most && arm.most < rate(cost_ns), "{arm:?}");
    }
    let steps: Vec<_> = sweep.arms[1].steps.iter().map(|it| (it.cell.as_str(), it.clients, it.frames)).collect();
    assert_eq!(steps, [("one", 1, 20), ("two", 2, 20), ("four", 4, 20)]);
    // Of twenty values the sixth and the fifteenth enclose the median with 95.9 %: the rates of frames 14 and 5.
    let Interval { low, estimate, high } = sweep.arms[1].steps[0].throughput;
    let is = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
    assert!(is(low, rate(25_140.0)) && is(high, rate(25_050.0)), "{low} {high}");
    assert!(is(estimate, (rate(25_090.0) + rate(25_100.0)) / 2.0), "{estimate}");
}

#[test]
fn a_sweep_without_its_last_step_has_the_throughput_with_most_clients_that_were_measured() {
    let mut records = swept();
    let four = records.plan.cells.iter().position(|cell| cell.id == "four").expect("a cell") as u32;
    records.frames.retain(|frame| frame.cell != four);
    records.slots.retain(|slot| slot.cell != four);
    let arm = assess(&records).sweeps[0].arms[1].clone();
    let cells: Vec<&str> = arm.costs.iter().map(|(cell, _)| cell.as_str()).collect();
    assert_eq!((arm.saturated_at, cells), (None, vec!["one", "two", "rated"]));
    let two = arm.steps.last().expect("two steps");
    assert!(two.clients == 2 && (arm.most / two.throughput.estimate - 1.0).abs() < 0.01, "{arm:?}");
}

#[test]
fn what_others_published_stands_beside_the_arm_and_in_the_cells_that_it_is_about() {
    let mut records = swept();
    let quoted = |source: &str, arm: &str, workload: Option<&str>, resources: Option<&str>| Published {
        source: source.to_owned(),
        arm: arm.to_owned(),
        workload: workload.map(str::to_owned),
        resources: resources.map(str::to_owned),
        figure: PublishedFigure::Throughput,
        value: PublishedValue::Change { from: -0.2, to: -0.5 },
    };
    records.plan.experiment.published = vec![
        quoted("everywhere", "protected 1", None, None),
        quoted("in c", "protected 2", Some("c"), None),
        quoted("in a", "protected 1", Some("a"), None),
        quoted("elsewhere", "protected 1", None, Some("small")),
    ];
    let analysis = assess(&records);
    let sources = |cell: usize| {
        let of_arm =
            |arm: &ArmAnalysis| arm.published.iter().map(|it| it.source.as_str()).collect::<Vec<_>>().join(", ");
        analysis.cells[cell].arms.iter().map(of_arm).collect::<Vec<_>>()
    };
    assert_eq!(sources(0), ["", "everywhere", "in c"]);
    assert_eq!(sources(4), ["", "everywhere, in a", ""]);
    let cost = &analysis.cells[0].arms[1].published[0];
    assert_eq!(cost.estimate, Figure::Metric(Metric::Time));
    assert_eq!(cost.printed, "throughput −20 % to −50 %");
    // Of 0.8 and 0.5 times the operations, each takes 1.25 and 2 times as long.
    assert!((cost.low - 1.25_f64.ln()).abs() < 1e-12 && (cost.high - 2_f64.ln()).abs() < 1e-12, "{cost:?}");
}
