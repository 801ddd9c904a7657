//! etcd with a record of the same size for all, and etcd's own `benchmark` compared with Tithe.
//!
//! Tithe's records have a key for each field. `benchmark range` reads a range of as many keys, always the same one, by
//! gRPC and linearizable as Tithe, over one connection. It is built once from the Go module proxy, in a minute or more.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tithe_databases::etcd::Etcd;
use tithe_machine::{fault::Fault, launch::Place};

use crate::{
    contest::{Case, Contest, Contestant, number_before},
    floor,
    peer::{self, words},
    server::Loaded,
    tithe::{self, FIELDS, Job},
};

const JOBS: [Job; 2] = [Job { workload: "c", clients: 1 }, Job { workload: "c", clients: 8 }];

/// Requests of a short and a long run of `benchmark`.
const REQUESTS: (u32, u32) = (500, 10_000);

/// The release of `benchmark`.
const VERSION: &str = "v3.6.8";

/// The range that it reads: the keys with a prefix.
const RANGE: [&str; 2] = ["peers/", "peers0"];

/// Starts and loads it; all jobs, with the floor against the echo server on port `echo`.
///
/// # Errors
/// No etcd, or any error of it.
pub fn contest(echo: u16) -> Result<Contest, Fault> {
    let server = Loaded::start(&Etcd, &[], "c", |_, place| put(place))?;
    let (benchmark, place) = (benchmark()?, &server.place);
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &Etcd, place, job)?];
        contestants.extend(benchmark.iter().map(|program| range(program, place, job)));
        contestants.push(floor::contestant(echo, job.clients, job.traffic())?);
        contestants.push(tithe::contestant("Tithe again", &Etcd, place, job)?);
        Ok(Case { name: job.name("etcd"), contestants })
    };
    let cases = JOBS.into_iter().map(case).collect::<Result<_, Fault>>()?;
    let versions = benchmark.iter().map(|_| format!("etcd's benchmark {VERSION}")).collect();
    Ok(Contest { cases, versions, server })
}

/// Writes the keys that the peer reads.
fn put(place: &Place) -> Result<(), Fault> {
    for field in 0..FIELDS {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(endpoint(place));
        command.args(["put", &format!("{}{field}", RANGE[0]), &"x".repeat(100)]);
        let output = command.output().map_err(|error| Fault::machine("etcdctl", error))?;
        if !output.status.success() {
            return Err(Fault::Machine(format!("etcdctl: {}", String::from_utf8_lossy(&output.stderr))));
        }
    }
    Ok(())
}

fn endpoint(place: &Place) -> String {
    format!("--endpoints=127.0.0.1:{}", place.port)
}

/// Builds `benchmark`, if it is not there; `None` without Go.
fn benchmark() -> Result<Option<PathBuf>, Fault> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-etcd").join(VERSION).join("benchmark");
    if program.exists() {
        return Ok(Some(program));
    }
    let mut build = Command::new(peer::scripts().join("etcd-benchmark"));
    let output = build.arg(VERSION).arg(&program).output().map_err(|error| Fault::machine("etcd-benchmark", error))?;
    if !output.status.success() {
        eprintln!("LEFT OUT: etcd's benchmark: {}", String::from_utf8_lossy(&output.stderr));
        return Ok(None);
    }
    Ok(Some(program))
}

fn range(program: &Path, place: &Place, job: Job) -> Contestant {
    let whole = |requests: u32| words(&format!("--total={requests}")).collect();
    Contestant {
        name: "benchmark range".to_owned(),
        ours: false,
        program: program.to_owned(),
        arguments: words(&format!("{} --conns=1 --clients={} range", endpoint(place), job.clients))
            .chain(RANGE.map(str::to_owned))
            .collect(),
        short: whole(REQUESTS.0),
        long: whole(REQUESTS.1),
        // Its progress ends with `10000 / 10000`; errors are listed.
        operations: |text| {
            let done = &text[..text.find("Summary:")?];
            let done =
                &done[done.rfind(" / ").map_or(0, |at| done[..at].rfind([' ', '\r', '\n']).map_or(0, |it| it + 1))..];
            number_before(done, " / ").filter(|_| !text.contains("Error distribution"))
        },
        every: 1,
    }
}
