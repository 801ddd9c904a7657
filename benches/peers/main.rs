//! What the load loop costs its client, beside other load generators: processor time per operation, as ratios.
//!
//! `cargo bench --bench peers` starts a server of its own, loads it, and runs Tithe and its peers in turn on the same
//! rows. Client and server share one processor, so that nobody pays for waking another one. In each round every
//! contestant runs once, in an order that turns round by round; Tithe runs twice, which shows what the machine can
//! tell apart. A round gives one ratio per peer, and the median over the rounds is the result: processor time
//! alone changes by half and more within minutes on a shared machine, and says little.
//!
//! The processor time of a contestant is what the kernel charges its process, user and system, for a long run less a
//! short one, divided by the operations of the long run less those of the short one. So starting and connecting are
//! out, and so is most of what Java's compiler does.
//!
//! Tithe runs as in a measurement: its frames, slots and fresh connections, YCSB's keys and values, every
//! field verified, latencies recorded, server processes watched. The peers do less: see the table's notes.
//!
//! Needed: PostgreSQL, MariaDB, Redis, sysbench, and for YCSB Java and Maven; what is missing is left out, and said so.
//! Options: `--rounds N`, `--only TEXT` (cases and peers by a part of their names), `--write` (keeps the
//! result as `benches/RESULTS.md`).

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

/// Rounds when none are asked for: A/A lies within some 5 % then.
const ROUNDS: usize = 9;

/// What the command line asks for.
struct Options {
    rounds: usize,
    only: Option<String>,
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
    let mut options = Options { rounds: ROUNDS, only: None, write: false };
    let mut arguments = arguments.iter().filter(|argument| *argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => options.write = true,
            "--only" => options.only = arguments.next().cloned(),
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
    // Every process that is started from here on inherits it.
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
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for case in &mut cases {
        if !wanted(&case.name) {
            case.contestants.retain(|contestant| contestant.ours || wanted(&contestant.name));
        }
    }
    cases.retain(|case| case.contestants.iter().any(|contestant| !contestant.ours));
    let mut results = Vec::new();
    for case in &cases {
        results.push(case.run(options.rounds)?);
        eprintln!("{}", report::table(&results[results.len() - 1]));
    }
    let text = report::report(&machine, &versions, &results);
    println!("{text}");
    if options.write {
        let path = root.join("benches/RESULTS.md");
        std::fs::write(&path, text).map_err(|error| Fault::machine(path.display(), error))?;
    }
    Ok(())
}

/// A server that could be started; a missing one is told and left out.
fn present(name: &str, started: Result<server::Loaded, Fault>) -> Option<server::Loaded> {
    started.map_err(|fault| eprintln!("LEFT OUT: {name}: {fault}")).ok()
}
