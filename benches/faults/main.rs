//! Is anything lost, leaked or harmed when something goes wrong? Runs the program as a user does, has a fault strike it
//! at a drawn moment, and judges what is left.
//!
//! `cargo bench --bench faults -- N SEED [--servers] [--only WORD] [--jobs N]`
//!
//! N faults on the simulated database; with `--servers` on SQLite, PostgreSQL and Redis instead, which are started by
//! Tithe or attached to. `--only` takes faults and products with this word in their name. Case i of N is that of seed
//! SEED + i, so `-- 1 SEED` with the same options repeats one. The table counts cases by fault, product and outcome; an
//! invariant that does not hold is printed with its seed, and makes the exit status 1.
//!
//! It strikes the program that cargo has built, or the one that the variable TITHE_PROGRAM names.
//!
//! `campaign/judge.rs` has the invariants, `campaign/signals.rs` and its neighbours a line for each fault.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a bench tells its progress and prints its result")]

mod campaign;

use std::process::ExitCode;

use campaign::{Asked, Outcome};

fn main() -> ExitCode {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let asked = match asked(&arguments) {
        Ok(asked) => asked,
        Err(words) => {
            eprintln!("faults: {words}");
            return ExitCode::FAILURE;
        }
    };
    let outcomes = campaign::carry_out(&asked, &|outcome| {
        for broken in &outcome.broken {
            eprintln!("{} on {}, seed {}: {broken}", outcome.fault, outcome.product, outcome.seed);
        }
    });
    show(&asked, &outcomes);
    if outcomes.iter().all(|outcome| outcome.broken.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn asked(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { count: 50, seed: 1, servers: false, only: None, jobs: 2 };
    let mut numbers = 0;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--servers" => asked.servers = true,
            "--only" => asked.only = Some(value()?.clone()),
            "--jobs" => asked.jobs = value()?.parse().map_err(|_| "--jobs: not a number".to_owned())?,
            number => {
                let number: u64 = number.parse().map_err(|_| format!("`{number}` is not a whole number"))?;
                match numbers {
                    0 => asked.count = number,
                    _ => asked.seed = number,
                }
                numbers += 1;
            }
        }
    }
    Ok(asked)
}

/// The table fault × product × outcome, and what to repeat.
fn show(asked: &Asked, outcomes: &[Outcome]) {
    let mut rows: std::collections::BTreeMap<(&str, &str, &str), (u64, u64, u64)> = Default::default();
    for outcome in outcomes {
        let row = rows.entry((outcome.fault, outcome.product, &outcome.ended)).or_insert((0, 0, outcome.seed));
        row.0 += 1;
        row.1 += u64::from(!outcome.broken.is_empty());
    }
    println!("\n| fault | product | outcome | cases | not held | first seed |\n|---|---|---|--:|--:|--:|");
    for ((fault, product, ended), (count, broken, seed)) in rows {
        println!("| {fault} | {product} | {ended} | {count} | {broken} | {seed} |");
    }
    let struck = outcomes.iter().filter(|outcome| outcome.struck).count();
    let broken: Vec<String> =
        outcomes.iter().filter(|it| !it.broken.is_empty()).map(|outcome| outcome.seed.to_string()).collect();
    println!("\n{} cases, {struck} struck by their fault; invariants not held in {}", outcomes.len(), broken.len());
    if !broken.is_empty() {
        let servers = if asked.servers { " --servers" } else { "" };
        println!("repeat one: cargo bench --bench faults -- 1 SEED{servers}, of seeds {}", broken.join(", "));
    }
}
