//! What samples are made of: estimates, findings, arms and cells as they usually are.

use tithe_model::{
    ending::CellEnding,
    record::{ArmFacts, Finding, Host, Machine, Phase, Role, Verdict},
};

use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Level, Outcome, Proof, PublishedCost, StartCourse,
    report::number,
};

/// Cost in percent of the plain level as a natural-log ratio.
pub(super) fn percent(percent: f64) -> f64 {
    (percent / 100.0).ln_1p()
}

impl Interval {
    pub(super) fn of_percent(estimate: f64, low: f64, high: f64) -> Self {
        Self { estimate: percent(estimate), low: percent(low), high: percent(high) }
    }
}

impl Estimate {
    /// An estimate with the verdict that a margin of 3 % gives it.
    pub(super) fn new(name: &str, title: &str, effect: Interval, levels: (f64, f64), unit: &'static str) -> Self {
        let (low, high) = (number::digits(number::percent(effect.low)), number::digits(number::percent(effect.high)));
        let size = number::digits(number::percent(effect.estimate));
        let (verdict, text) = if !(effect.low.is_finite() && effect.high.is_finite()) {
            (Outcome::TooNoisy, "too noisy to tell (not enough frames)".to_owned())
        } else if effect.low > 0.0 {
            (Outcome::Costs, format!("costs {size}% [{low}, {high}]"))
        } else if effect.high < 0.0 {
            (Outcome::Gains, format!("runs faster: {size}% [{low}, {high}]"))
        } else if effect.high <= percent(3.0) {
            (Outcome::NoneFound, format!("no cost found, at most {high}%"))
        } else {
            (Outcome::TooNoisy, format!("too noisy to tell: between {low}% and {high}%"))
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

    pub(super) fn primary(mut self, total: Interval) -> Self {
        (self.primary, self.total) = (true, Some(total));
        self
    }

    pub(super) fn flags(mut self, flags: &[Flag]) -> Self {
        self.flags = flags.to_vec();
        self
    }

    pub(super) fn counted(mut self, count: usize, batch: usize) -> Self {
        (self.count, self.batch) = (count, batch);
        self
    }
}

pub(super) fn level(name: &str, unit: &'static str, value: f64, relative: f64, count: u64) -> Level {
    let (low, high) = (value * (1.0 - relative), value * (1.0 + relative));
    Level { name: name.parse().expect("a figure"), unit: unit.into(), value, low, high, count }
}

pub(super) fn finding(
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
pub(super) fn twice(
    arm: u32,
    protection: &str,
    check: (&str, &str),
    verdict: Verdict,
    seen: [&str; 2],
) -> Vec<Finding> {
    [Phase::Before, Phase::After].map(|phase| finding(arm, phase, protection, check, verdict, seen)).to_vec()
}

pub(super) const WIRE: (&str, &str) = ("wire-canary", "no field value in the clear between client and server");
pub(super) const DISK: (&str, &str) = ("disk-canary", "no field value in the clear below the data folder");
pub(super) const AUDIT: (&str, &str) = ("audit-complete", "every statement stands in the audit log");
pub(super) const REPEATS: (&str, &str) = ("repeats", "equal values have different ciphertexts");

pub(super) fn arm(name: &str, proof: Proof) -> ArmAnalysis {
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
    }
}

/// The cost of 30 frames of so many starts, about `middle` percent and `moved` percent higher at the end than at the
/// beginning.
pub(super) fn course(starts: u32, middle: f64, moved: f64) -> Vec<StartCourse> {
    let each = 30 / starts;
    let noise = [0.4, -0.9, 1.1, 0.1, -0.7, 0.6, -0.2, 0.8, -1.2];
    let at = |frame: u32| {
        let effect = percent(middle + moved * (f64::from(frame) / 29.0 - 0.5) + noise[frame as usize % noise.len()]);
        (effect * 1e6).round() / 1e6
    };
    let start = |start: u32| StartCourse { start, effects: (start * each..(start + 1) * each).map(at).collect() };
    (0..starts).map(start).collect()
}

/// A figure of others; the cost in percent.
pub(super) fn published(estimate: &str, printed: &str, cost: (f64, f64)) -> PublishedCost {
    let source = "an invented report, 2020".to_owned();
    let estimate = estimate.parse().expect("a figure");
    PublishedCost { source, estimate, printed: printed.to_owned(), low: percent(cost.0), high: percent(cost.1) }
}

pub(super) fn cell(id: &str, arms: Vec<ArmAnalysis>) -> CellAnalysis {
    CellAnalysis {
        id: id.to_owned(),
        workload: "c".to_owned(),
        resources: "in-memory".to_owned(),
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
        swap: "/dev/dm-1 (encrypted by dm-crypt)".to_owned(),
        virtualised: true,
        boot: String::new(),
    }
}

pub(super) fn analysis(title: &str, cells: Vec<CellAnalysis>) -> Analysis {
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
        machine: machine(),
        cells,
        sweeps: Vec::new(),
        warnings: Vec::new(),
    }
}
