//! Analyses made by hand, for the tests of every renderer.

use std::collections::BTreeMap;

use tithe_model::{
    ending::CellEnding,
    record::{ArmFacts, Finding, Host, Machine, Phase, Role, Verdict},
};

use super::{
    html::{Curve, Moment, PageData},
    number,
};
use crate::{
    AgentAnalysis, Analysis, ArmAnalysis, CellAnalysis, ConnectPartUse, ConnectUse, Estimate, Flag, IdleUse, Interval,
    Level, LogAt, Outcome, OverRun, Proof, PublishedCost, StartCourse, Sweep, SweepArm, SweepStep,
};

/// Every sample.
pub(super) fn all() -> Vec<Analysis> {
    vec![full(), controlled(), on_one_start(), open_loop(), swept(), versions(), failed(), empty()]
}

/// Cost in percent of the plain level as a natural-log ratio.
fn percent(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

/// The interval of a cost and its ends in percent of the plain level.
fn of_percent(estimate: f64, low: f64, high: f64) -> Interval {
    Interval { estimate: percent(estimate), low: percent(low), high: percent(high) }
}

impl Estimate {
    /// An estimate with the verdict for a margin of 3 %.
    fn new(name: &str, title: &str, effect: Interval, levels: (f64, f64), unit: &'static str) -> Self {
        let (low, high) = (number::digits(number::percent(effect.low)), number::digits(number::percent(effect.high)));
        let size = number::digits(number::percent(effect.estimate));
        let (verdict, text) = if !(effect.low.is_finite() && effect.high.is_finite()) {
            (Outcome::TooNoisy, "too noisy to tell (not enough frames)".to_owned())
        } else if effect.low > 0.0 {
            (Outcome::Costs, format!("costs {size} % [{low}, {high}]"))
        } else if effect.high < 0.0 {
            (Outcome::Gains, format!("saves {size} % [{low}, {high}]"))
        } else if effect.high <= percent(3.0) {
            (Outcome::NoneFound, format!("no cost found, at most {high} %"))
        } else {
            (Outcome::TooNoisy, format!("too noisy to tell: between {low} % and {high} %"))
        };
        let of_plain = |ln_ratio: f64| levels.0 * ln_ratio.exp_m1();
        let difference =
            Interval { estimate: of_plain(effect.estimate), low: of_plain(effect.low), high: of_plain(effect.high) };
        Self {
            name: name.parse().expect("a figure"),
            title: title.to_owned(),
            primary: false,
            effect,
            total: None,
            difference: Some(difference).filter(|it| unit != "bytes" && it.half_width().is_finite()),
            total_difference: None,
            starts: 1,
            spread: None,
            widened: false,
            known_degrees: None,
            count: 30,
            batch: 1,
            levels: Some(levels),
            unit: unit.into(),
            verdict,
            text,
            flags: Vec::new(),
            p: None,
            more_s: None,
            over_run: None,
        }
    }

    fn primary(mut self, total: Interval) -> Self {
        (self.primary, self.total) = (true, Some(total));
        self
    }

    fn flags(mut self, flags: &[Flag]) -> Self {
        self.flags = flags.to_vec();
        self
    }

    fn counted(mut self, count: usize, batch: usize) -> Self {
        (self.count, self.batch) = (count, batch);
        self
    }
}

fn level(name: &str, unit: &'static str, value: f64, relative: f64, count: u64) -> Level {
    let (low, high) = (value * (1.0 - relative), value * (1.0 + relative));
    Level { name: name.parse().expect("a figure"), unit: unit.into(), value, low, high, count }
}

fn finding(
    arm: u32,
    phase: Phase,
    protection: &str,
    check: (&str, &str),
    verdict: Verdict,
    seen: [&str; 2],
) -> Finding {
    Finding {
        cell: 0,
        epoch: 0,
        arm,
        phase,
        protection: protection.to_owned(),
        check: check.0.to_owned(),
        claim: check.1.to_owned(),
        role: Role::Claim,
        verdict,
        protected: seen[0].to_owned(),
        control: seen[1].to_owned(),
    }
}

/// The same finding before and after.
fn twice(arm: u32, protection: &str, check: (&str, &str), verdict: Verdict, seen: [&str; 2]) -> Vec<Finding> {
    [Phase::Before, Phase::After].map(|phase| finding(arm, phase, protection, check, verdict, seen)).to_vec()
}

const WIRE: (&str, &str) = ("wire-canary", "no field value in the clear between client and server");
const DISK: (&str, &str) = ("disk-canary", "no field value in the clear below the data folder");
const AUDIT: (&str, &str) = ("audit-complete", "every statement is in the audit log");
const REPEATS: (&str, &str) = ("repeats", "equal values have different ciphertexts");

fn arm(name: &str, proof: Proof) -> ArmAnalysis {
    ArmAnalysis {
        name: name.to_owned(),
        aa: false,
        protections: if proof == Proof::Baseline { Vec::new() } else { vec![name.to_owned()] },
        facts: ArmFacts { version: "PostgreSQL 15.14".to_owned(), ..ArmFacts::default() },
        difference: Vec::new(),
        proof,
        findings: Vec::new(),
        levels: Vec::new(),
        estimates: Vec::new(),
        published: Vec::new(),
        course: Vec::new(),
        idle: None,
        connecting: None,
    }
}

/// The cost of 30 frames over `starts` starts, around `middle` percent, and `moved` percent higher at the end than at
/// the beginning.
fn course(starts: u32, middle: f64, moved: f64) -> Vec<StartCourse> {
    let each = 30 / starts;
    let noise = [0.4, -0.9, 1.1, 0.1, -0.7, 0.6, -0.2, 0.8, -1.2];
    let at = |frame: u32| {
        let effect = percent(middle + moved * (f64::from(frame) / 29.0 - 0.5) + noise[frame as usize % noise.len()]);
        (effect * 1e6).round() / 1e6
    };
    let start = |start: u32| StartCourse { start, effects: (start * each..(start + 1) * each).map(at).collect() };
    (0..starts).map(start).collect()
}

/// An idle server that uses `cpu_us` of processor time per minute, `more_us` more than the baseline's.
fn idle(cpu_us: f64, more_us: Option<f64>) -> IdleUse {
    let within = |estimate: f64| Interval { estimate, low: 0.95 * estimate, high: 1.05 * estimate };
    IdleUse {
        windows: 12,
        seconds: 60.0,
        cpu_us: within(cpu_us),
        more_cpu_us: more_us.map(within),
        written_bytes: Some(within(8192.0)),
        more_written_bytes: more_us.map(|_| Interval { estimate: 0.0, low: -512.0, high: 512.0 }),
        memory_bytes: Some(48 << 20),
        more_us_per_op: more_us.map(|more| more / 60.0 / 2000.0),
    }
}

/// Connections that take 60 µs for TCP, 200 µs for the login, and `tls_us` for the handshake.
fn connecting(tls_us: Option<f64>) -> ConnectUse {
    let within = |estimate: f64| Interval { estimate, low: 0.95 * estimate, high: 1.05 * estimate };
    let part = |part: &str, us: f64, more_us: f64| ConnectPartUse {
        part: part.to_owned(),
        us: within(us),
        more_us: tls_us.map(|_| Interval { estimate: more_us, low: more_us - 5.0, high: more_us + 5.0 }),
        client_us: within(us / 4.0),
    };
    let tls = tls_us.map(|us| part("TLS", us, us));
    let parts = [Some(part("TCP", 60.0, 1.0)), tls, Some(part("login", 200.0, 20.0))];
    ConnectUse { connections: 1200, parts: parts.into_iter().flatten().collect() }
}

/// A published figure; the cost in percent.
fn published(estimate: &str, printed: &str, cost: (f64, f64)) -> PublishedCost {
    let source = "an invented report, 2020".to_owned();
    let estimate = estimate.parse().expect("a figure");
    PublishedCost { source, estimate, printed: printed.to_owned(), low: percent(cost.0), high: percent(cost.1) }
}

fn plain() -> ArmAnalysis {
    ArmAnalysis {
        levels: vec![
            level("throughput", "op/s", 48_310.0, 0.021, 30),
            level("net", "µs", 38.42, 0.011, 30),
            level("cpu_per_op", "µs", 34.1, 0.008, 30),
            level("latency_p50_READ", "µs", 36.9, 0.01, 30),
            level("latency_p99_READ", "µs", 212.0, 0.09, 30),
        ],
        ..arm("plain", Proof::Baseline)
    }
}

fn levels(factor: f64) -> Vec<Level> {
    vec![level("throughput", "op/s", 48_310.0 / factor, 0.021, 30), level("cpu_per_op", "µs", 34.1 * factor, 0.008, 30)]
}

fn tls() -> ArmAnalysis {
    let mut findings = twice(
        1,
        "tls",
        WIRE,
        Verdict::Holds,
        ["0 of 20 canaries in 412 kB; the first record is a TLS 1.3 ClientHello", "20 of 20 canaries in 398 kB"],
    );
    findings.extend(twice(
        1,
        "tls",
        ("plaintext-refused", "a client without TLS is refused"),
        Verdict::Holds,
        [
            "FATAL: no pg_hba.conf entry for host \"127.0.0.1\", user \"tithe\", database \"tithe\", no encryption",
            "served",
        ],
    ));
    let facts =
        [("cipher", "TLS_AES_256_GCM_SHA384"), ("TLS library", "OpenSSL 3.0.17 of the server, rustls of the client")];
    ArmAnalysis {
        published: vec![
            published("time", "time 40.1 → 57.2 µs", (42.6, 42.6)),
            published("time", "throughput −20 % to −30 %", (25.0, 42.857)),
        ],
        facts: ArmFacts {
            version: "PostgreSQL 15.14".to_owned(),
            facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            configuration: vec!["ssl = on".to_owned()],
        },
        difference: ["+ ssl = on", "+ ssl_min_protocol_version = TLSv1.3", "- ssl = off"].map(str::to_owned).to_vec(),
        findings,
        course: course(5, 40.5, 0.0),
        levels: levels(1.45),
        estimates: vec![
            Estimate::new("net", "net time per op", of_percent(40.5, 38.7, 42.3), (38.42, 53.98), "µs")
                .primary(of_percent(44.1, 39.0, 49.4)),
            Estimate::new("time", "time per op", of_percent(45.4, 43.4, 47.4), (41.2, 59.9), "µs")
                .flags(&[Flag::NeighboursInTail]),
            Estimate::new("cpu", "CPU per op", of_percent(46.3, 45.0, 47.6), (34.1, 49.9), "µs"),
            Estimate {
                difference: None,
                text: "31 % fewer operations [30, 32]".to_owned(),
                ..Estimate::new("throughput", "throughput", of_percent(45.4, 43.4, 47.4), (48_310.0, 33_230.0), "op/s")
            },
            Estimate::new("latency_p50_READ", "READ p50", of_percent(38.4, 37.9, 38.9), (36.9, 51.1), "µs"),
            Estimate::new("latency_p99_READ", "READ p99", of_percent(9.8, 2.0, 18.2), (212.0, 232.8), "µs")
                .counted(12, 1)
                .flags(&[Flag::NeighboursInTail]),
            Estimate::new(
                "latency_p99.9_READ",
                "READ p99.9",
                Interval { estimate: 0.02, low: f64::NEG_INFINITY, high: f64::INFINITY },
                (7512.0, 7663.0),
                "µs",
            )
            .counted(4, 1)
            .flags(&[Flag::NeighboursInTail, Flag::NotEnoughData]),
            Estimate::new("sent_bytes", "bytes sent", of_percent(35.5, 35.4, 35.6), (62.0, 84.0), "bytes/op"),
        ],
        ..arm("tls", Proof::Proven)
    }
}

/// Unproven: the audit log was complete before and unreadable after.
fn audit() -> ArmAnalysis {
    let seen = ["200 of 200 marked statements", "0 of 200 marked statements"];
    let mut findings = vec![finding(2, Phase::Before, "audit", AUDIT, Verdict::Holds, seen)];
    let lost = ["could not read the log: No such file or directory (os error 2)", ""];
    findings.push(finding(2, Phase::After, "audit", AUDIT, Verdict::CannotTell, lost));
    ArmAnalysis {
        findings,
        course: course(1, 12.9, 14.0),
        levels: levels(1.129),
        difference: vec!["+ shared_preload_libraries = pgaudit".to_owned(), "+ pgaudit.log = read, write".to_owned()],
        estimates: vec![
            Estimate::new("net", "net time per op", of_percent(12.9, 8.4, 17.6), (38.42, 43.4), "µs")
                .primary(of_percent(13.3, 3.9, 23.5))
                .counted(30, 2)
                .flags(&[Flag::Drift]),
            Estimate::new("cpu", "CPU per op", of_percent(12.4, 11.9, 12.9), (34.1, 38.3), "µs"),
            Estimate::new("latency_p50_READ", "READ p50", of_percent(11.1, 10.6, 11.6), (36.9, 41.0), "µs"),
            Estimate::new("log_bytes", "log bytes", of_percent(5100.0, 5050.0, 5150.0), (3.0, 156.0), "bytes/op"),
        ],
        ..arm(
            "audit",
            Proof::Unproven(vec!["every statement is in the audit log: cannot tell after measuring".to_owned()]),
        )
    }
}

/// Disproven: the volume keeps plaintext.
fn luks() -> ArmAnalysis {
    let seen =
        ["canary \"T1the-7f3a\u{1b}[31m\" at 0x4f2200 of\nbase/16384/16401", "canary at 0x4f2200 of base/16384/16401"];
    ArmAnalysis {
        findings: twice(3, "luks", DISK, Verdict::Fails, seen),
        levels: levels(1.004),
        estimates: vec![
            Estimate::new("net", "net time per op", of_percent(0.4, -0.2, 0.8), (38.42, 38.57), "µs")
                .primary(of_percent(0.5, -1.9, 2.8)),
            Estimate::new("cpu", "CPU per op", of_percent(0.2, 0.1, 0.3), (34.1, 34.2), "µs"),
        ],
        ..arm("luks", Proof::Disproven(vec!["no field value in the clear below the data folder: fails".to_owned()]))
    }
}

/// A large cost, and a disclosure for the reader.
fn columns() -> ArmAnalysis {
    let mut findings =
        twice(4, "column-encryption", DISK, Verdict::Holds, ["0 of 20 canaries in 31 files", "20 of 20 canaries"]);
    let repeats = ["the same 16 bytes occur 4,096 times in base/16384/16401", "does not apply"];
    for mut disclosure in twice(4, "column-encryption", REPEATS, Verdict::Fails, repeats) {
        disclosure.role = Role::Disclosure;
        findings.push(disclosure);
    }
    ArmAnalysis {
        protections: vec!["column-encryption".to_owned()],
        findings,
        levels: levels(6.4),
        estimates: vec![
            Estimate::new("net", "net time per op", of_percent(540.0, 520.0, 560.0), (38.42, 245.9), "µs")
                .primary(of_percent(910.0, 840.0, 990.0))
                .flags(&[Flag::TailDriven]),
            Estimate::new("cpu", "CPU per op", of_percent(610.0, 602.0, 619.0), (34.1, 242.0), "µs"),
            Estimate::new("latency_p50_READ", "READ p50", of_percent(505.0, 500.0, 511.0), (36.9, 223.0), "µs"),
            Estimate::new("latency_p99_READ", "READ p99", of_percent(1240.0, 980.0, 1560.0), (212.0, 2841.0), "µs")
                .counted(12, 1),
            Estimate::new(
                "disk_bytes",
                "size on disk",
                of_percent(63.0, 63.0, 63.0),
                (27_260_000.0, 44_430_000.0),
                "bytes",
            ),
        ],
        ..arm("columns", Proof::Proven)
    }
}

/// Proven, but the machine was too noisy.
fn noisy() -> ArmAnalysis {
    let mut net = Estimate::new("net", "net time per op", of_percent(1.0, -3.0, 5.1), (38.42, 38.8), "µs");
    net.more_s = Some(370.0);
    ArmAnalysis {
        findings: twice(5, "fscrypt", DISK, Verdict::Holds, ["0 of 20 canaries in 31 files", "20 of 20 canaries"]),
        levels: levels(1.01),
        estimates: vec![
            net.primary(of_percent(2.0, -6.0, 10.7)),
            Estimate::new("cpu", "CPU per op", of_percent(0.6, -0.1, 1.3), (34.1, 34.3), "µs"),
        ],
        ..arm("fscrypt", Proof::Proven)
    }
}

/// Proven, and faster than without the protection.
fn gains() -> ArmAnalysis {
    ArmAnalysis {
        findings: twice(
            6,
            "auth",
            ("wrong-password", "a wrong password is refused"),
            Verdict::Holds,
            ["refused", "served"],
        ),
        levels: levels(0.95),
        estimates: vec![
            Estimate::new("net", "net time per op", of_percent(-4.9, -6.8, -3.0), (38.42, 36.5), "µs")
                .primary(of_percent(-4.0, -7.7, -0.2)),
            Estimate::new("cpu", "CPU per op", of_percent(-0.42, -0.61, -0.23), (34.1, 34.0), "µs"),
        ],
        ..arm("auth", Proof::Proven)
    }
}

fn cell(id: &str, arms: Vec<ArmAnalysis>) -> CellAnalysis {
    CellAnalysis {
        profile: None,
        id: id.to_owned(),
        workload: "c".to_owned(),
        resources: "in-memory".to_owned(),
        version: String::new(),
        clients: 2,
        arrivals: "closed loop".to_owned(),
        notes: [("requestdistribution", "zipfian"), ("READ", "100 %"), ("values", "ycsb")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        mode: "twin".to_owned(),
        slot_ms: 20.0,
        frames: 30,
        invalid: Vec::new(),
        starts: 1,
        pairs: 0,
        epochs: 1,
        ending: Some(CellEnding::Precision),
        host: Host {
            load: 11.3,
            cpu_pressure: Some(0.917),
            io_pressure: Some(0.021),
            steal: Some(0.004),
            throttled: None,
        },
        wait_share: 0.284,
        warm_up: String::new(),
        log_over_start: Vec::new(),
        statements: Vec::new(),
        agents: Vec::new(),
        arms,
    }
}

fn machine() -> Machine {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Machine {
        processor: "Intel(R) Xeon(R) Platinum 8481C".to_owned(),
        processors: 2,
        memory_bytes: 24_640_000_000,
        kernel: "6.1.0-37-amd64".to_owned(),
        system: "Debian GNU/Linux 12".to_owned(),
        crypto_flags: words(&["aes", "vaes", "sha_ni", "avx2"]),
        kernel_crypto: words(&["xts(aes): xts-aes-vaes-avx512", "gcm(aes): generic-gcm-vaes-avx512"]),
        clock: "tsc".to_owned(),
        file_system: "ext4".to_owned(),
        storage: String::new(),
        swap: "/dev/dm-1 (encrypted by dm-crypt)".to_owned(),
        virtualised: true,
        boot: String::new(),
    }
}

fn analysis(title: &str, cells: Vec<CellAnalysis>) -> Analysis {
    Analysis {
        run: "2026-11-21-0812".to_owned(),
        title: title.to_owned(),
        database: "postgresql".to_owned(),
        tithe: "0.1.0".to_owned(),
        seed: 42,
        records: 1000,
        began_unix_s: None,
        confidence: 0.95,
        margin: percent(3.0),
        precision: None,
        machine: machine(),
        cells,
        sweeps: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A cell with every kind of arm: proven, unproven, disproven, expensive, noisy and faster.
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
        "Other programs used 91 % of the processors: close them for tail latencies that mean something.".to_owned(),
    ];
    analysis
}

/// Two cells with an A/A arm: a cost, a cost that the A/A arm has as well, and a saving that the A/A arm refutes.
pub(crate) fn controlled() -> Analysis {
    let net = |effect: (f64, f64, f64), wider: (f64, f64)| {
        let effect = of_percent(effect.0, effect.1, effect.2);
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
        of("a", net((12.5, 11.9, 13.1), (11.6, 13.4)), (-0.6, -1.2, 0.1), "−0.60 % [−1.2, 0.10]"),
        of("c", small, (0.0, -0.5, 0.6), "0.00 % [−0.50, 0.60]"),
    ];
    cells[0].notes[1].1 = "50 %".to_owned();
    cells[0].notes.push(("UPDATE".to_owned(), "50 %".to_owned()));
    for finding in cells[1].arms.iter_mut().flat_map(|arm| &mut arm.findings) {
        finding.cell = 1;
    }
    analysis("What protections cost next to the plain arm again", cells)
}

/// A cost, a saving, none found and a noisy one, on servers that were started once; the saving on three starts.
pub(super) fn on_one_start() -> Analysis {
    let mut analysis = full();
    let arms = &mut analysis.cells[0].arms;
    arms.retain(|arm| !["audit", "columns"].contains(&arm.name.as_str()));
    for arm in arms {
        if arm.name == "luks" {
            arm.proof = Proof::Proven;
        }
        let starts = if arm.name == "auth" { 3 } else { 1 };
        for estimate in &mut arm.estimates {
            (estimate.starts, estimate.widened) = (starts, true);
            estimate.text += &estimate.on_starts();
        }
    }
    analysis
}

/// `cells` equal cells.
pub(super) fn many(cells: usize) -> Analysis {
    let of = |number: usize| cell(&format!("c.clients-{number}"), vec![plain(), tls()]);
    analysis("What TLS costs in many settings", (0..cells).map(of).collect())
}

/// Three numbers of clients; the plain arm is saturated at the second.
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
        costs: vec![("c.clients-1".to_owned(), "costs 40.5 % [38.7, 42.3]".to_owned())],
    };
    let mut analysis = analysis("What TLS costs with more clients", [1, 2, 4].map(of).to_vec());
    let arms =
        vec![arm("plain", Some(2), [26_100.0, 48_310.0, 48_900.0]), arm("tls", None, [18_000.0, 33_400.0, 36_800.0])];
    analysis.sweeps = vec![Sweep { workload: "c".to_owned(), resources: String::new(), arms }];
    analysis
}

/// Two versions of the server, of which TLS costs the later one less.
pub(crate) fn versions() -> Analysis {
    let of = |version: &str, arms: Vec<ArmAnalysis>| CellAnalysis {
        resources: format!("in-memory, version {version}"),
        version: format!("version {version}"),
        ..cell(&format!("c.in-memory-version-{version}"), arms)
    };
    let mut later = tls();
    for estimate in &mut later.estimates {
        let Interval { estimate: middle, low, high } = estimate.effect;
        estimate.effect = Interval { estimate: middle / 2.0, low: low / 2.0, high: high / 2.0 };
    }
    let cells = vec![of("15", vec![plain(), tls(), gains()]), of("18", vec![plain(), later, gains()])];
    analysis("What TLS costs on two versions", cells)
}

/// An open loop with two operations, latencies from both kinds of start, an arm that did not keep up, and several
/// epochs.
pub(crate) fn open_loop() -> Analysis {
    let latency = |name: &str, effect: (f64, f64, f64), levels: (f64, f64)| {
        let title = name.replace("latency_", "").replace('_', " ");
        Estimate::new(name, &title, of_percent(effect.0, effect.1, effect.2), levels, "µs").counted(9, 1)
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
            Estimate::new("net", "net time per op", of_percent(21.0, 19.4, 22.7), (812.0, 982.0), "µs")
                .primary(of_percent(22.0, 18.0, 26.2))
                .counted(60, 1)
                .flags(&[Flag::NotAtRate, Flag::ServerUnseen]),
            latency("latency_p50_READ", (20.1, 19.8, 20.4), (398.0, 478.0)),
            latency("latency_p99_READ", (45.0, 31.0, 60.5), (2210.0, 3204.0)),
            latency("intended_p50_READ", (22.0, 21.0, 23.0), (412.0, 503.0)),
            latency("intended_p99_READ", (76.0, 41.0, 119.7), (34_100.0, 60_016.0)),
            latency("intended_p50_UPDATE", (18.0, 17.0, 19.0), (1_412.0, 1_666.0)),
            latency("intended_p99_UPDATE", (70.0, 39.0, 107.9), (39_100.0, 66_470.0)),
        ],
        idle: Some(idle(19_800_000.0, Some(19_650_000.0))),
        connecting: Some(connecting(Some(900.0))),
        ..arm("tls", Proof::Proven)
    };
    let baseline = ArmAnalysis {
        idle: Some(idle(150_000.0, None)),
        connecting: Some(connecting(None)),
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
        statements: Vec::new(),
        agents: [("rack1", 86_400_000_000_000, 84_200), ("rack2", -1_250_000, 112_700)]
            .map(|(name, clock_offset_ns, clock_bound_ns)| AgentAnalysis {
                name: name.to_owned(),
                lanes: 2,
                operations: 118_000,
                wait_share: 0.013,
                clock_offset_ns,
                clock_bound_ns,
            })
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

/// No cells.
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

/// A page with the name of its style sheet in place of its content, which is the same on every page.
pub(crate) fn without_style(page: &str) -> String {
    let style = include_str!("html/style.css");
    assert_eq!(page.matches(style).count(), 1, "the page holds its style sheet once");
    let parts =
        ["head", "body", "main", "section", "h3", "p", "li", "dt", "details", "table", "tbody", "tr", "figure", "svg"];
    let broken = |page: String, part: &str| {
        page.replace(&format!("<{part}>"), &format!("\n<{part}>")).replace(&format!("<{part} "), &format!("\n<{part} "))
    };
    parts.into_iter().fold(page.replace(style, "\nstyle.css\n"), broken)
}
