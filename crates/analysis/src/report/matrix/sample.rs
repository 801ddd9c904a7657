//! A gathered matrix made by hand, for the tests of every renderer.

use tithe_model::{
    experiment::Metric,
    matrix::FORMAT,
    record::{Host, Machine},
};

use crate::{
    Interval, Proof,
    matrix::{ArmOutcome, CellOutcome, Gathered, Outcome, Row, State, Stray},
};

/// Two experiments with seven replicates each. TLS on five hosts, one of them measured twice, with a torn task; pages
/// on one host, repeatedly, with one failed cell and one task that was not started.
pub(crate) fn full() -> Gathered {
    let hosts = ["aa11", "bb22", "cc33", "dd44", "ee55", "aa11"];
    let costs = [0.12, 0.15, 0.11, 0.13, 0.24, 0.125];
    let mut tasks: Vec<Row> =
        (0..6).map(|task| row(task, "tls.toml", State::Whole(Box::new(tls(task, hosts[task], costs[task]))))).collect();
    tasks.push(row(6, "tls.toml", State::Torn("it ended early, or is still running".to_owned())));
    let mut pages: Vec<Outcome> = (7..12).map(|task| self::pages(task, 0.09 + 0.002 * task as f64)).collect();
    pages[4].cells[1].failed = Some("the server ended: \u{1b}[31msignal 9".to_owned());
    pages[4].cells[1].arms.clear();
    tasks.extend(pages.into_iter().map(|outcome| row(outcome.task, "pages.toml", State::Whole(Box::new(outcome)))));
    tasks.push(row(12, "pages.toml", State::Failed("status 3: PostgreSQL was not found <here>".to_owned())));
    tasks.push(row(13, "pages.toml", State::Missing));
    Gathered {
        title: "What TLS and pages cost <on our hosts>".to_owned(),
        plan: "0123456789abcdef".to_owned(),
        tithe: "0.1.0".to_owned(),
        tasks,
        strays: vec![Stray { name: "task-00099".to_owned(), reason: "the plan has no task 99".to_owned() }],
    }
}

/// Like [`full`] with only the first `count` of its tasks; the others were not started.
pub(crate) fn first(count: usize) -> Gathered {
    let mut gathered = full();
    gathered.tasks.iter_mut().skip(count).for_each(|row| row.state = State::Missing);
    gathered
}

fn row(task: usize, experiment: &str, state: State) -> Row {
    Row { task, experiment: experiment.to_owned(), machine: "small".to_owned(), replicate: task as u32 % 7, state }
}

fn outcome(task: usize, database: &str, machine: Machine, cells: Vec<CellOutcome>) -> Outcome {
    Outcome {
        format: FORMAT,
        plan: "0123456789abcdef".to_owned(),
        task,
        tithe: "0.1.0".to_owned(),
        started_unix_s: 1_795_000_000 + 3600 * task as u64,
        database: database.to_owned(),
        margin: 0.03f64.ln_1p(),
        machine,
        cells,
    }
}

/// One cell with TLS and an audit log; the most expensive host has no proof.
fn tls(task: usize, boot: &str, effect: f64) -> Outcome {
    let dear = effect > 0.2;
    let machine = Machine {
        processor: if dear { "Model B" } else { "Model A" }.to_owned(),
        processors: 2,
        memory_bytes: 8 << 30,
        kernel: "6.1.0".to_owned(),
        crypto_flags: vec!["aes".to_owned(), "pclmulqdq".to_owned()],
        file_system: "ext4".to_owned(),
        boot: format!("{boot}0000"),
        ..Machine::default()
    };
    let unproven = Proof::Unproven(vec!["no log was found".to_owned()]);
    let arms = vec![
        arm("tls", effect, 0.004, Proof::Proven),
        arm("audit", 0.4 * effect, 0.004, if dear { unproven } else { Proof::Proven }),
    ];
    let host = Host { load: 0.5, steal: Some(if dear { 0.031 } else { 0.0004 }), ..Host::default() };
    let cell = CellOutcome { cell: "c".to_owned(), frames: 30, failed: None, host, arms };
    outcome(task, "postgresql", machine, vec![cell])
}

/// Two cells of one host.
fn pages(task: usize, effect: f64) -> Outcome {
    let machine = Machine { processor: "Model A".to_owned(), boot: "aa110000".to_owned(), ..Machine::default() };
    let cell = |name: &str, effect: f64| CellOutcome {
        cell: name.to_owned(),
        frames: 30,
        failed: None,
        host: Host { load: 0.5, ..Host::default() },
        arms: vec![arm("aegis", effect, 0.002, Proof::Proven)],
    };
    outcome(task, "embedded", machine, vec![cell("c", effect), cell("a", 2.0 * effect)])
}

fn arm(name: &str, effect: f64, error: f64, proof: Proof) -> ArmOutcome {
    ArmOutcome {
        arm: name.to_owned(),
        protections: vec![name.to_owned()],
        proof,
        figure: Metric::Net,
        effect: Interval { estimate: effect, low: effect - 2.0 * error, high: effect + 2.0 * error },
        error,
        count: 30,
        starts: 8,
        levels: Some((12.0, 12.0 * effect.exp())),
        unit: "µs".to_owned(),
        flags: Vec::new(),
    }
}
