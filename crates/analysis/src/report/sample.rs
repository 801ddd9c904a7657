//! Analyses made by hand, for the tests of every renderer.

mod arms;
mod parts;

use std::collections::BTreeMap;

use tithe_model::{
    ending::CellEnding,
    record::{ArmFacts, Host, Verdict},
};

use self::{
    arms::{audit, columns, gains, luks, noisy, plain, tls},
    parts::{DISK, WIRE, analysis, arm, cell, level, percent, twice},
};
use super::html::{Curve, Moment, PageData};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, LogAt, Outcome, OverRun, Proof, Sweep, SweepArm,
    SweepStep,
};

/// Every sample.
pub(super) fn all() -> Vec<Analysis> {
    vec![full(), controlled(), open_loop(), swept(), failed(), empty()]
}

/// A cell with every kind of arm: proven, unproven, disproven, big, noisy and faster.
pub(crate) fn full() -> Analysis {
    let mut cell = cell("c/in-memory", vec![plain(), tls(), audit(), luks(), columns(), noisy(), gains()]);
    cell.invalid = vec![
        (7, "a server process was moved to another processor".to_owned()),
        (12, "the client was saturated".to_owned()),
        (19, "a server process was moved to another processor".to_owned()),
    ];
    let mut analysis = analysis("What each protection of PostgreSQL costs", vec![cell]);
    analysis.warnings = vec![
        "The kernel serves xts(aes) by xts-aes-vaes-avx512: on a machine without AES instructions encryption at rest \
         costs many times more."
            .to_owned(),
        "Other programs used 91% of the processors: close them for tail latencies that mean something.".to_owned(),
    ];
    analysis
}

/// Two cells with an A/A arm: a cost, one that the A/A arm has as well, and a saving that it does not let pass.
pub(super) fn controlled() -> Analysis {
    let net = |effect: (f64, f64, f64), wider: (f64, f64)| {
        let effect = Interval::of_percent(effect.0, effect.1, effect.2);
        let mut net = Estimate::new("net", "net time per op", effect, (38.42, 38.42 * effect.estimate.exp()), "µs");
        let wide = Interval { low: percent(wider.0), high: percent(wider.1), ..effect };
        let verdict = if wider.0 > 0.0 { Outcome::Costs } else { Outcome::NoneFound };
        let added = |effect: f64| 38.42 * effect.exp_m1();
        let [estimate, low, high] = [wide.estimate, wide.low, wide.high].map(added);
        net.over_run = Some(OverRun { effect: wide, difference: Some(Interval { estimate, low, high }), verdict });
        net.primary(effect)
    };
    let proven = |name: &str, net: Estimate| ArmAnalysis {
        findings: twice(1, name, DISK, Verdict::Holds, ["0 of 20 canaries in 31 files", "20 of 20 canaries"]),
        estimates: vec![net],
        ..arm(name, Proof::Proven)
    };
    let faster = |control: &str| {
        let mut faster = net((-0.9, -1.4, -0.4), (-1.7, -0.1)).flags(&[Flag::WithinControl]);
        faster.verdict = Outcome::TooNoisy;
        faster.text = format!("no more than the plain arm differs from itself: A/A {control}");
        faster.over_run = faster.over_run.map(|it| OverRun { verdict: Outcome::TooNoisy, ..it });
        faster
    };
    let again = ArmAnalysis { aa: true, ..arm("A/A", Proof::Baseline) };
    let of = |id: &str, tls: Estimate, aa: (f64, f64, f64), control: &str| {
        let wider = (aa.1 - 0.2, aa.2 + 0.2);
        let again = ArmAnalysis { estimates: vec![net(aa, wider)], ..again.clone() };
        cell(id, vec![plain(), proven("tls", tls), proven("auth", faster(control)), again])
    };
    let small = net((0.3, 0.1, 0.5), (-0.1, 0.7)).flags(&[Flag::WithinControl]);
    let mut cells = vec![
        of("a", net((12.5, 11.9, 13.1), (11.6, 13.4)), (-0.6, -1.2, 0.1), "−0.60% [−1.2, 0.10]"),
        of("c", small, (0.0, -0.5, 0.6), "0.00% [−0.50, 0.60]"),
    ];
    cells[0].notes[1].1 = "50 %".to_owned();
    cells[0].notes.push(("UPDATE".to_owned(), "50 %".to_owned()));
    for finding in cells[1].arms.iter_mut().flat_map(|arm| &mut arm.findings) {
        finding.cell = 1;
    }
    analysis("What protections cost beside a plain arm again", cells)
}

/// So many cells alike.
pub(super) fn many(cells: usize) -> Analysis {
    let of = |number: usize| cell(&format!("c.clients-{number}"), vec![plain(), tls()]);
    analysis("What TLS costs in many settings", (0..cells).map(of).collect())
}

/// Three numbers of clients, of which the plain arm is saturated at the second.
pub(super) fn swept() -> Analysis {
    let of = |clients: u32| CellAnalysis {
        clients,
        resources: format!("clients {clients}"),
        ..cell(&format!("c.clients-{clients}"), vec![plain(), tls()])
    };
    let arm = |name: &str, saturated_at, rates: [f64; 3]| SweepArm {
        name: name.to_owned(),
        saturated_at,
        most: rates[1],
        steps: [1, 2, 4]
            .into_iter()
            .zip(rates)
            .map(|(clients, rate)| SweepStep {
                cell: format!("c.clients-{clients}"),
                clients,
                throughput: Interval { estimate: rate, low: 0.97 * rate, high: 1.02 * rate },
                frames: 30,
            })
            .collect(),
        costs: vec![("c.clients-1".to_owned(), "costs 40.5% [38.7, 42.3]".to_owned())],
    };
    let mut analysis = analysis("What TLS costs with more clients", [1, 2, 4].map(of).to_vec());
    let arms =
        vec![arm("plain", Some(2), [26_100.0, 48_310.0, 48_900.0]), arm("tls", None, [18_000.0, 33_400.0, 36_800.0])];
    analysis.sweeps = vec![Sweep { workload: "c".to_owned(), arms }];
    analysis
}

/// An open loop with two operations, latencies from both starts, an arm that did not keep up, and several epochs.
pub(super) fn open_loop() -> Analysis {
    let latency = |name: &str, effect: (f64, f64, f64), levels: (f64, f64)| {
        let title = name.replace("latency_", "").replace('_', " ");
        Estimate::new(name, &title, Interval::of_percent(effect.0, effect.1, effect.2), levels, "µs").counted(9, 1)
    };
    let mut findings = Vec::new();
    for epoch in 0..3 {
        for mut found in twice(1, "tls", WIRE, Verdict::Holds, ["0 of 20 canaries", "20 of 20 canaries"]) {
            found.epoch = epoch;
            findings.push(found);
        }
    }
    let protected = ArmAnalysis {
        findings,
        levels: vec![level("throughput", "op/s", 1_981.0, 0.004, 60)],
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(21.0, 19.4, 22.7), (812.0, 982.0), "µs")
                .primary(Interval::of_percent(22.0, 18.0, 26.2))
                .counted(60, 1)
                .flags(&[Flag::NotAtRate, Flag::ServerUnseen]),
            latency("latency_p50_READ", (20.1, 19.8, 20.4), (398.0, 478.0)),
            latency("latency_p99_READ", (45.0, 31.0, 60.5), (2210.0, 3204.0)),
            latency("intended_p50_READ", (22.0, 21.0, 23.0), (412.0, 503.0)),
            latency("intended_p99_READ", (76.0, 41.0, 119.7), (34_100.0, 60_016.0)),
            latency("intended_p50_UPDATE", (18.0, 17.0, 19.0), (1_412.0, 1_666.0)),
            latency("intended_p99_UPDATE", (70.0, 39.0, 107.9), (39_100.0, 66_470.0)),
        ],
        ..arm("tls", Proof::Proven)
    };
    let baseline = ArmAnalysis {
        levels: vec![
            level("throughput", "op/s", 1_999.6, 0.0004, 60),
            level("intended_p50_READ", "µs", 412.0, 0.02, 60),
            level("intended_p99_READ", "µs", 34_100.0, 0.2, 60),
        ],
        ..arm("plain", Proof::Baseline)
    };
    let open = CellAnalysis {
        workload: "a".to_owned(),
        resources: String::new(),
        clients: 1,
        arrivals: "2,000/s, Poisson arrivals".to_owned(),
        slot_ms: 250.0,
        frames: 60,
        starts: 3,
        epochs: 3,
        ending: Some(CellEnding::Budget),
        host: Host { load: 0.4, cpu_pressure: None, io_pressure: None, steal: None, throttled: None },
        wait_share: 0.002,
        warm_up: "steady after 4.2 s (median of 8 starts; 2.8 to 6.1 s)".to_owned(),
        log_over_start: [("first frame", 2040.0), ("last frame", 412.0)]
            .map(|(place, bytes)| LogAt { place: place.to_owned(), arms: vec![Some(bytes), None] })
            .to_vec(),
        ..cell("a", vec![baseline, protected])
    };
    analysis("TLS under an open loop", vec![open])
}

/// A single cell that failed before its first frame.
pub(super) fn failed() -> Analysis {
    let unproven = Proof::Unproven(vec!["the cell did not begin".to_owned()]);
    let failed = CellAnalysis {
        frames: 0,
        starts: 0,
        epochs: 0,
        mode: String::new(),
        ending: Some(CellEnding::Failed(
            "arm tls did not start: could not load server certificate file: permission denied".to_owned(),
        )),
        ..cell(
            "c/in-memory",
            vec![
                arm("plain", Proof::Baseline),
                ArmAnalysis {
                    facts: ArmFacts { facts: BTreeMap::new(), ..ArmFacts::default() },
                    ..arm("tls", unproven)
                },
            ],
        )
    };
    analysis("A server that does not start", vec![failed])
}

/// No cell at all.
pub(super) fn empty() -> Analysis {
    analysis("Nothing yet", Vec::new())
}

/// The page data of a run of a minute.
pub(super) fn page_data(analysis: &Analysis) -> PageData {
    let curve = |cell: usize, operation: &str, arm: usize, factor: f64| Curve {
        cell,
        operation: operation.to_owned(),
        arm,
        points: [(0.301, 36.9), (1.0, 52.0), (2.0, 212.0), (3.0, 7512.0)]
            .map(|(place, latency)| (place, factor * latency))
            .to_vec(),
    };
    let moment = |number: u32| Moment {
        cell: 0,
        start_s: 2.5 * f64::from(number),
        duration_s: 2.1,
        cpu_pressure: Some(0.2 + 0.03 * f64::from(number)),
        io_pressure: None,
        steal: Some(0.004),
        load: 1.5,
        invalid: u32::from(number == 7),
    };
    let Some(first) = analysis.cells.first().filter(|cell| cell.frames > 0) else { return PageData::default() };
    PageData {
        experiment: "title = \"A <b>bold</b> experiment\"\n[data]\nrecords = 1000\n".to_owned(),
        curves: (0..first.arms.len()).map(|arm| curve(0, "READ", arm, 1.0 + 0.2 * arm as f64)).collect(),
        moments: (0..24).map(moment).collect(),
    }
}

/// A page with the name of its style sheet in place of the sheet, which is the same on every page.
pub(crate) fn without_style(page: &str) -> String {
    let style = include_str!("html/style.css");
    assert_eq!(page.matches(style).count(), 1, "the page holds its style sheet once");
    page.replace(style, "style.css\n")
}
