//! Is the instrument right? Measures known quantities, with the program as a user runs it.
//!
//! `cargo bench --bench truth -- PART [arguments, in this order]`
//!
//! For each part: its arguments, the truth, and what it prints.
//!
//! * `coverage`: arms of the simulated database that cost +1, +2, +5, +10 %. How many of 100 intervals contain the
//!   cost.
//! * `spin` (seconds): the same arms as loops on this machine's processors, in real time. Every interval, and whether
//!   it contains the truth.
//! * `hogs` (seconds): PostgreSQL against itself, while processor hogs run. False alarms over disjoint segments of ten
//!   frames.
//! * `adversary` (seconds): PostgreSQL against itself, with hogs in the first half only. Error and interval of the
//!   sequential design, and ours.
//! * `designs` (seconds): PostgreSQL against itself. Half-width of each design for a minute of two arms.
//! * `writes` (seconds): PostgreSQL against itself, durable updates. The same by slot and number of clients.
//! * `known-cost` (seconds, hogs): arms of PostgreSQL that burn counted processor time in every statement. Every
//!   interval, and whether it contains the truth.
//! * `known-claim` (seconds): the same arms, each with a setting and a claim of its own. The same, and whether each is
//!   proven.
//! * `identical` (product, cells, seconds per cell, hogs, workload, file, starts per cell): four identical arms. How
//!   many intervals exclude zero, the mean effect by arm, wall time by load, and whether differences persist over
//!   starts. Rows are appended to the file.
//! * `persistence` (files of rows): the same arms. Whether differences persist over starts.
//! * `profile-known` (runs, seconds per run): the arms of `known-cost`. The time that a profile attributes to the
//!   counted loop, and whether its interval contains it.
//! * `profile-identical` (product, runs, seconds per run, hogs): two identical arms. How often a part is reported as
//!   different.
//! * `pairs` (product, runs, seconds per run, hogs, workload): the same experiment repeatedly. How many pairs `compare`
//!   reports as different, and how much they differ.
//! * `pairs-again` (folders of runs): the same, for existing runs.
//! * `neighbours` (seconds, clients, workload, product): an unknown cost, equal under background load or not. The cost
//!   of a protection while hogs and walkers run.
//!
//! Nothing is asserted: the figures are for readers. docs/evaluation.md and docs/method/writes.md show some.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a bench tells its progress and prints its result")]

mod analysis;
mod beside;
mod experiment;
mod identical;
mod known;
mod known_cost;
mod neighbours;
mod pairs;
mod persistence;
mod profiled;
mod run;
mod share;
mod twice;

use std::{process::ExitCode, str::FromStr};

fn main() -> ExitCode {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let part = arguments.first().map_or("coverage", String::as_str);
    match carry_out(part, &Arguments(arguments.get(1..).unwrap_or_default())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("truth: {words}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(part: &str, asked: &Arguments<'_>) -> Result<(), String> {
    match part {
        beside::HOG => beside::hog(),
        beside::WALKER => beside::walk(),
        "coverage" => known::coverage(),
        "spin" => known::spin(asked.number(0, "seconds", 60)?),
        "hogs" => twice::hogs(asked.number(0, "seconds", 300)?),
        "adversary" => twice::adversary(asked.number(0, "seconds", 60)?),
        "designs" => twice::designs(asked.number(0, "seconds", 60)?),
        "writes" => twice::writes(asked.number(0, "seconds", 60)?),
        "known-cost" => known_cost::measure(asked.number(0, "seconds", 300)?, asked.number(1, "hogs", 4)?),
        "known-claim" => known_cost::claim(asked.number(0, "seconds", 300)?),
        "identical" => identical::measure(&identical::Options::read(asked)?),
        "persistence" => persistence::again(asked.0),
        "profile-known" => profiled::known(asked),
        "profile-identical" => profiled::identical(asked),
        "pairs" => pairs::measure(&pairs::Options::read(asked)?),
        "pairs-again" => {
            pairs::again(asked.0);
            Ok(())
        }
        "neighbours" => neighbours::measure(&neighbours::Options::read(asked)?),
        other => Err(format!("there is no part `{other}`; see the top of benches/truth/main.rs")),
    }
}

/// The arguments after the part on the command line.
struct Arguments<'a>(&'a [String]);

impl Arguments<'_> {
    /// The word at `place`.
    fn word(&self, place: usize) -> Option<&str> {
        self.0.get(place).map(String::as_str)
    }

    /// The number at `place`, which is called `what`; `otherwise` if there is none.
    fn number<T: FromStr>(&self, place: usize, what: &str, otherwise: T) -> Result<T, String> {
        match self.word(place) {
            None => Ok(otherwise),
            Some(word) => word.parse().map_err(|_| format!("{what}: `{word}` is not a whole number")),
        }
    }
}
