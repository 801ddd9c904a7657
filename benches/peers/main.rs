//! The client's cost of Tithe's load loop, compared with other load generators: processor time per operation, as
//! ratios.
//!
//! `cargo bench --bench peers` starts its own server, loads it, and runs Tithe and its peers in turn on the same rows.
//! Client and server share one processor, so waking another processor costs nothing. In each round every contestant
//! runs once, with a rotating order. Tithe runs twice, which shows which differences are noise. A round gives one ratio
//! per peer; the result is the median over the rounds. Processor time alone is not a useful result: on a shared machine
//! it changes by half and more within minutes.
//!
//! The processor time of a contestant is what the kernel charges its process, user and system, for a long run less a
//! short one, divided by the operations of the long run less those of the short one. So starting and connecting do not
//! count, nor does most of the work of Java's compiler.
//!
//! Tithe runs as in a measurement: with frames, slots and fresh connections, YCSB's keys and values, every field
//! verified, latencies recorded, server processes observed. The peers do less: see
//! `benches/RESULTS.md`.
//!
//! Needed: PostgreSQL, MariaDB, Redis, sysbench, and for YCSB Java and Maven; missing ones are left out with a message.
//! Options: `--rounds N`, `--only TEXT` (cases and peers by a part of their names, also several times), `--write`
//! (keeps the result as `benches/results/peers.csv`).

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a bench tells its progress and prints its result")]

mod contest;
mod floor;
mod mariadb;
mod peer;
mod postgres;
mod redis;
mod report;
mod server;
mod tithe;

use std::{path::Path, process::ExitCode};

use tithe_machine::{fault::Fault, watch::process};

/// Default number of rounds: with it, A/A is within some 5 %.
const ROUNDS: usize = 9;

/// Command-line options.
struct Options {
    rounds: usize,
    only: Vec<String>,
    write: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("load") => tithe::generate(&arguments[1..]),
        Some("floor") => floor::generate(&arguments[1..]),
        _ => options(&arguments).and_then(|options| session(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("peers: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the command line; `cargo bench` itself adds `--bench`.
fn options(arguments: &[String]) -> Result<Options, Fault> {
    let mut options = Options { rounds: ROUNDS, only: Vec::new(), write: false };
    let mut arguments = arguments.iter().filter(|argument| *argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => options.write = true,
            "--only" => options.only.extend(arguments.next().cloned()),
            "--rounds" => {
                let rounds = arguments.next().and_then(|text| text.parse().ok()).filter(|rounds| *rounds > 0);
                options.rounds = rounds.ok_or_else(|| Fault::Machine("--rounds needs a number".to_owned()))?;
            }
            other => return Err(Fault::Machine(format!("no such option: {other}"))),
        }
    }
    Ok(options)
}

/// One session: all cases, one after the other.
fn session(options: &Options) -> Result<(), Fault> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = tithe_machine::watch::host::machine(&root);
    // Every process started from here on inherits it.
    let processor = process::processors().pop().unwrap_or(0);
    process::pin(0, processor);
    let echo = floor::serve()?;
    let mut versions = Vec::new();
    let mut cases = Vec::new();
    let postgres = present("PostgreSQL", postgres::start());
    if let Some(server) = &postgres {
        versions.extend(postgres::versions(server));
        cases.extend(postgres::cases(server, echo)?);
    }
    let mariadb = present("MariaDB", mariadb::start());
    if let Some(server) = &mariadb {
        versions.push(server.version.clone());
        cases.extend(mariadb::cases(server, echo)?);
    }
    let redis = present("Redis", redis::start());
    if let Some(server) = &redis {
        versions.push(server.version.clone());
        cases.extend(redis::cases(server, echo)?);
    }
    versions.extend(["sysbench", "java"].iter().filter_map(|program| peer::version(Path::new(program))));
    versions.push("YCSB 0.17.0 with the JDBC drivers PostgreSQL 42.7.4 and MariaDB 3.4.1".to_owned());
    let only = &options.only;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    for case in &mut cases {
        if !wanted(&case.name) {
            case.contestants.retain(|contestant| contestant.ours || wanted(&contestant.name));
        }
    }
    cases.retain(|case| case.contestants.iter().any(|contestant| !contestant.ours));
    let mut results = Vec::new();
    for case in &cases {
        results.push(case.run(options.rounds)?);
        eprint!("{}", report::rows(&results[results.len() - 1]));
    }
    let text = report::csv(&machine, &versions, &results);
    print!("{text}");
    if options.write {
        let path = root.join("benches/results/peers.csv");
        std::fs::write(&path, text).map_err(|error| Fault::machine(path.display(), error))?;
    }
    Ok(())
}

/// A server that was started; a missing one is left out with a message.
fn present(name: &str, started: Result<server::Loaded, Fault>) -> Option<server::Loaded> {
    started.map_err(|fault| eprintln!("LEFT OUT: {name}: {fault}")).ok()
}
