//! Simulated matrices of hosts with a known true spread: how often the intervals over hosts are wrong.
//!
//! docs/method/hosts.md shows this table; `UPDATE_EXPECT=1` rewrites it.

use std::fmt::Write;

use expect_test::expect_file;
use tithe_analysis::{
    Proof,
    assess::assess,
    matrix::{ArmOutcome, Outcome},
};
use tithe_model::experiment::Metric;
use tithe_statistics::{
    hosts::{NEXT_FROM, UnitEffect, combined, together},
    mean, variance,
};

use crate::synthetic::{Invented, Noise};

const MATRICES: usize = 1000;

/// Standard deviation of the hosts' true effects, if they differ.
const SPREAD: f64 = 0.02;

/// Degrees of freedom of a host's own error: eight starts of the servers.
const DEGREES: u32 = 7;

/// Parameters of random hosts.
#[derive(Clone, Copy)]
struct Hosts {
    name: &'static str,
    /// Standard deviation of the true effects.
    spread: f64,
    /// True effects from Student's t with three degrees of freedom, with the same standard deviation.
    heavy: bool,
    /// Standard errors in units of [`SPREAD`]: of the most and of the least precise host.
    errors: (f64, f64),
    /// How often each host is measured.
    repeats: usize,
}

const KINDS: [Hosts; 7] = [
    Hosts { name: "precise", spread: SPREAD, heavy: false, errors: (0.1, 0.1), repeats: 1 },
    Hosts { name: "as noisy as different", spread: SPREAD, heavy: false, errors: (1.0, 1.0), repeats: 1 },
    Hosts { name: "unequally precise, 1 : 3", spread: SPREAD, heavy: false, errors: (0.3, 0.9), repeats: 1 },
    Hosts { name: "unequally precise, 1 : 30", spread: SPREAD, heavy: false, errors: (0.1, 3.0), repeats: 1 },
    Hosts { name: "heavy tails, 1 : 10", spread: SPREAD, heavy: true, errors: (0.1, 1.0), repeats: 1 },
    Hosts { name: "alike, 1 : 10", spread: 0.0, heavy: false, errors: (0.1, 1.0), repeats: 1 },
    Hosts { name: "measured three times each", spread: SPREAD, heavy: false, errors: (0.3, 0.3), repeats: 3 },
];

const COUNTS: [usize; 5] = [3, 5, 10, 20, 50];

fn squares(noise: &mut Noise, degrees: u32) -> f64 {
    (0..degrees).map(|_| noise.normal().powi(2)).sum()
}

impl Hosts {
    /// A true effect; the mean is 0.
    fn truth(&self, noise: &mut Noise) -> f64 {
        let normal = noise.normal();
        let scale = if self.heavy { (squares(noise, 3) / 3.0).sqrt() * 3f64.sqrt() } else { 1.0 };
        self.spread * normal / scale
    }

    /// The result of host `number` of `count`, with its own estimate of the error.
    fn shown(&self, noise: &mut Noise, number: usize, count: usize) -> UnitEffect {
        let (low, high) = self.errors;
        let error = SPREAD * low * (high / low).powf(number as f64 / (count as f64 - 1.0));
        let truth = self.truth(noise);
        let repeat = |noise: &mut Noise| UnitEffect {
            effect: truth + error * noise.normal(),
            variance: error * error * squares(noise, DEGREES) / f64::from(DEGREES),
            degrees: f64::from(DEGREES),
        };
        let repeats: Vec<UnitEffect> = (0..self.repeats).map(|_| repeat(noise)).collect();
        combined(&repeats).expect("every host is measured")
    }
}

/// Percent of the matrices whose interval misses: of the mean, of the spread, of the next host.
fn misses(noise: &mut Noise, hosts: Hosts, count: usize) -> [f64; 3] {
    let mut missed = [0usize; 3];
    for _ in 0..MATRICES {
        let units: Vec<UnitEffect> = (0..count).map(|number| hosts.shown(noise, number, count)).collect();
        let found = together(&units, 0.05).expect("three hosts or more");
        missed[0] += usize::from(!found.effect.holds(0.0));
        missed[1] += usize::from(!found.spread.holds(hosts.spread));
        let another = hosts.truth(noise);
        missed[2] += usize::from(found.next.is_some_and(|next| !next.holds(another)));
    }
    missed.map(|missed| 100.0 * missed as f64 / MATRICES as f64)
}

#[test]
fn intervals_over_hosts_err_as_often_as_they_may() {
    let mut noise = Noise::new(24);
    let mut broken = Vec::new();
    let mut table = String::from("percent of 1,000 matrices whose 95 % interval misses: mean, spread, next host\n\n");
    writeln!(table, "{:27}{}", "hosts", COUNTS.map(|count| format!("{count:>20}")).concat()).expect("text");
    for hosts in KINDS {
        write!(table, "{:27}", hosts.name).expect("text");
        for count in COUNTS {
            let [mean, spread, next] = misses(&mut noise, hosts, count);
            let told = if count < NEXT_FROM { "–".to_owned() } else { format!("{next:.1}") };
            write!(table, "{:>20}", format!("{mean:.1} {spread:.1} {told}")).expect("text");
            // Three standard errors above five percent. The next host's interval has a higher limit: if the hosts'
            // errors are as large as their differences, the differences are poorly known. There is no limit for the
            // spread if true effects are not normal.
            if mean > 7.0 || next > 10.0 || (spread > 7.0 && !hosts.heavy) {
                broken.push(format!("{} {count}", hosts.name));
            }
        }
        table.push('\n');
    }
    expect_file!["../../../../docs/method/hosts-coverage.txt"].assert_eq(&table);
    assert!(broken.is_empty(), "{broken:?}\n{table}");
}

/// The data that a task records of its run: the A/A arm is left out, and the error of an interval is the actual scatter
/// of runs.
#[test]
fn a_task_keeps_the_deciding_estimate_with_its_error() {
    let outcomes: Vec<Outcome> = (1..=40).map(outcome).collect();
    let arms: Vec<&ArmOutcome> = outcomes.iter().map(|outcome| &outcome.cells[0].arms[0]).collect();
    assert!(outcomes.iter().all(|outcome| outcome.cells[0].arms.len() == 1), "the A/A arm is none");
    assert!(arms.iter().all(|arm| arm.proof == Proof::Proven));
    // In one of a hundred runs the A/A arm by chance waits differently in all starts, and then processor time decides.
    let arms: Vec<&ArmOutcome> = arms.into_iter().filter(|arm| arm.figure == Metric::Net).collect();
    assert!(arms.len() >= 37, "{}", arms.len());
    let effects: Vec<f64> = arms.iter().map(|arm| arm.effect.estimate).collect();
    let stated = mean(&arms.iter().map(|arm| arm.error).collect::<Vec<f64>>());
    let ratio = stated / variance(&effects).sqrt();
    // Forty runs determine the scatter to within a quarter.
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
}

/// A run of 20 frames in which one arm costs 5 %, and the A/A arm nothing.
fn outcome(seed: u64) -> Outcome {
    let mut records = Invented { seed, frames: 20, ..Invented::default() }.records();
    let last = records.plan.experiment.arms.last_mut().expect("arms");
    (last.aa, last.name) = (true, "A/A".to_owned());
    last.protections.clear();
    let outcome = Outcome::of(&assess(&records), "plan", 3, 1_795_000_000);
    assert_eq!((outcome.task, outcome.cells[0].failed.as_deref(), outcome.cells[0].frames), (3, None, 20));
    let text = serde_json::to_string(&outcome).expect("JSON");
    assert_eq!(serde_json::from_str::<Outcome>(&text).expect("it is read again"), outcome);
    outcome
}
