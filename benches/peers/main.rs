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
//! Words: the contests to run (`postgres`, `copy`, `mariadb`, `redis`, `memcached`, `etcd`, `duckdb`); all without any.
//! Options: `--rounds N`, `--only TEXT` (cases and peers by a part of their names, also several times), `--write`
//! (puts the result into `benches/results/peers.csv` and the table of `benches/RESULTS.md`; what was not measured stays
//! there).

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

use self::{
    contest::{Case, Contest},
    report::Measured,
};

/// Starts a server with all its cases; knows the port of the echo server.
type Start = fn(u16) -> Result<Contest, Fault>;

/// What is compared: its word on the command line, its name, with which the names of its cases begin, and what starts
/// its server.
const CONTESTS: [(&str, &str, Start); 7] = [
    ("postgres", "PostgreSQL", postgres::contest),
    ("copy", "PostgreSQL, copy", copy::contest),
    ("mariadb", "MariaDB", mariadb::contest),
    ("redis", "Redis", redis::contest),
    ("memcached", "Memcached", memcached::contest),
    ("etcd", "etcd", etcd::contest),
    ("duckdb", "DuckDB", duckdb::contest),
];

/// Default number of rounds: with it, A/A is within some 5 %.
const ROUNDS: usize = 9;

/// Command-line options.
struct Options {
    rounds: usize,
    /// Contests by their words; all if there are none.
    contests: Vec<String>,
    only: Vec<String>,
    write: bool,
}

impl Options {
    /// True unless other contests than this one are named, or `--only` names cases of others alone.
    fn starts(&self, word: &str, contest: &str) -> bool {
        if !self.contests.is_empty() && !self.contests.iter().any(|named| named == word) {
            return false;
        }
        let names_a_case = |only: &String| CONTESTS.iter().any(|(_, name, _)| only.starts_with(name));
        !self.only.iter().all(names_a_case)
            || self.only.is_empty()
            || self.only.iter().any(|only| only.starts_with(contest) || contest.starts_with(only.as_str()))
    }

    /// Leaves only the cases and peers that `--only` names.
    fn choose(&self, cases: &mut Vec<Case>) {
        let wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()));
        for case in cases.iter_mut().filter(|case| !wanted(&case.name)) {
            case.contestants.retain(|contestant| contestant.ours || wanted(&contestant.name));
        }
        cases.retain(|case| case.contestants.iter().any(|contestant| !contestant.ours));
    }

    /// True if everything is measured.
    fn is_whole(&self) -> bool {
        self.contests.is_empty() && self.only.is_empty()
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
    let mut options = Options { rounds: ROUNDS, contests: Vec::new(), only: Vec::new(), write: false };
    let mut arguments = arguments.iter().filter(|argument| *argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => options.write = true,
            "--only" => options.only.extend(arguments.next().cloned()),
            "--rounds" => {
                let rounds = arguments.next().and_then(|text| text.parse().ok()).filter(|rounds| *rounds > 0);
                options.rounds = rounds.ok_or_else(|| Fault::Machine("--rounds needs a number".to_owned()))?;
            }
            word if CONTESTS.iter().any(|(known, ..)| *known == word) => options.contests.push(word.to_owned()),
            other => {
                let words = CONTESTS.map(|(word, ..)| word).join(", ");
                return Err(Fault::Machine(format!("no such option or contest: {other}; the contests are {words}")));
            }
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
    // Servers run until the end.
    let (mut servers, mut contests) = (Vec::new(), Vec::new());
    for (word, contest, start) in CONTESTS {
        if !options.starts(word, contest) {
            continue;
        }
        match start(echo) {
            Ok(Contest { mut cases, versions, server }) => {
                options.choose(&mut cases);
                let versions = [vec![server.version.clone()], versions, of_peers(&cases)].concat();
                contests.push((Measured { contest, versions }, cases));
                servers.push(server);
            }
            Err(fault) => eprintln!("LEFT OUT: {contest}: {fault}"),
        }
    }
    let (mut measured, mut results, mut failed) = (Vec::new(), Vec::new(), Ok(()));
    for (contest, cases) in contests {
        let before = results.len();
        for case in &cases {
            match case.run(options.rounds) {
                Ok(result) => {
                    eprint!("{}", report::rows(&result));
                    results.push(result);
                }
                Err(fault) => {
                    eprintln!("LEFT OUT: {}: {fault}", case.name);
                    failed = Err(fault);
                }
            }
        }
        if results.len() > before {
            measured.push(contest);
        }
    }
    drop(servers);
    let is_whole = options.is_whole() && measured.len() == CONTESTS.len();
    let kept = root.join("benches/results/peers.csv");
    let page = root.join("benches/RESULTS.md");
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| Fault::machine(path.display(), error));
    let text = report::csv(&read(&kept)?, &machine, &measured, &results, is_whole);
    print!("{text}");
    if options.write {
        let written =
            |path: &Path, text: &str| std::fs::write(path, text).map_err(|error| Fault::machine(path.display(), error));
        written(&kept, &text)?;
        let page_text = report::with_table(&read(&page)?, &text)
            .ok_or_else(|| Fault::Machine(format!("{}: its marks of the table are missing", page.display())))?;
        written(&page, &page_text)?;
    }
    failed
}

/// The versions of load generators of more than one contest that take part in `cases`.
fn of_peers(cases: &[Case]) -> Vec<String> {
    let takes_part = |name: &str| cases.iter().flat_map(|case| &case.contestants).any(|peer| peer.name == name);
    let mut versions = Vec::new();
    if takes_part("sysbench") {
        versions.extend(peer::version(Path::new("sysbench")));
    }
    if takes_part("YCSB over JDBC") {
        versions.extend(peer::version(Path::new("java")));
        versions.push("YCSB 0.17.0 with the JDBC drivers PostgreSQL 42.7.4 and MariaDB 3.4.1".to_owned());
    }
    versions
}
