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
//! Needed: PostgreSQL, MariaDB, Redis, Memcached, etcd with etcdctl, DuckDB (`tithe get duckdb`), sysbench, memcaslap
//! (libmemcached-tools); Java and Maven for YCSB, Go for etcd's `benchmark`, pip for DuckDB's command line. What is
//! missing is left out with a message.
//! Options: `--rounds N`, `--only TEXT` (cases and peers by a part of their names, also several times), `--write`
//! (keeps the result as `benches/results/peers.csv`).

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a bench tells its progress and prints its result")]

mod contest;
mod copy;
mod duckdb;
mod etcd;
mod floor;
mod mariadb;
mod memcached;
mod peer;
mod postgres;
mod redis;
mod report;
mod server;
mod tithe;

use std::{path::Path, process::ExitCode};

use tithe_machine::{fault::Fault, watch::process};

/// Starts a server with all its cases; knows the port of the echo server.
type Start = fn(u16) -> Result<contest::Contest, Fault>;

/// What is compared: its name, with which the names of its cases begin, and what starts its server.
const CONTESTS: [(&str, Start); 7] = [
    ("PostgreSQL", postgres::contest),
    ("PostgreSQL, copy", copy::contest),
    ("MariaDB", mariadb::contest),
    ("Redis", redis::contest),
    ("Memcached", memcached::contest),
    ("etcd", etcd::contest),
    ("DuckDB", duckdb::contest),
];

/// Default number of rounds: with it, A/A is within some 5 %.
const ROUNDS: usize = 9;

/// Command-line options.
struct Options {
    rounds: usize,
    only: Vec<String>,
    write: bool,
}

impl Options {
    /// True unless `--only` names cases of other contests than `contest` alone.
    fn starts(&self, contest: &str) -> bool {
        let names_a_case = |only: &String| CONTESTS.iter().any(|(name, _)| only.starts_with(name));
        !self.only.iter().all(names_a_case)
            || self.only.is_empty()
            || self.only.iter().any(|only| only.starts_with(contest) || contest.starts_with(only.as_str()))
    }
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
    let (mut contests, mut versions, mut cases) = (Vec::new(), Vec::new(), Vec::new());
    for (name, start) in CONTESTS {
        if options.starts(name) {
            // A missing one is left out with a message.
            contests.extend(start(echo).map_err(|fault| eprintln!("LEFT OUT: {name}: {fault}")));
        }
    }
    for contest in &mut contests {
        let new = [contest.server.version.clone()].into_iter().chain(contest.versions.drain(..));
        new.for_each(|version| {
            if !versions.contains(&version) {
                versions.push(version)
            }
        });
        cases.append(&mut contest.cases);
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
