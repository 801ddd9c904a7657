//! Redis with records of the same size for all, and redis-benchmark compared with Tithe.
//!
//! redis-benchmark draws keys of twelve digits, so it reads its own hashes: ten fields of 100 bytes, like Tithe's.

use std::process::Command;

use tithe_databases::redis::Redis;
use tithe_machine::{fault::Fault, launch::Place};

use crate::{
    contest::{Case, Contest, Contestant, number_before},
    floor, peer,
    server::Loaded,
    tithe::{self, FIELDS, Job, RECORDS},
};

const JOBS: [Job; 1] = [Job { workload: "c", clients: 8 }];

/// Requests of a short and a long run of redis-benchmark.
const REQUESTS: (u32, u32) = (5_000, 150_000);

/// Starts and loads it; all jobs with all installed peers, and with the floor against the echo server on port `echo`.
///
/// # Errors
/// No Redis, or any error of it.
pub fn contest(echo: u16) -> Result<Contest, Fault> {
    let server = start()?;
    Ok(Contest { cases: cases(&server, echo)?, versions: Vec::new(), server })
}

fn start() -> Result<Loaded, Fault> {
    Loaded::start(&Redis, &[], "c", |_, place| fill(place))
}

/// Creates the peers' records inside the server.
fn fill(place: &Place) -> Result<(), Fault> {
    let script = format!(
        "for record = 0, {} do local values = {{}} for field = 0, {} do values[#values + 1] = 'field' .. field \
         values[#values + 1] = string.rep('x', 100) end \
         redis.call('HSET', string.format('records:%012d', record), unpack(values)) end return 'OK'",
        RECORDS - 1,
        FIELDS - 1
    );
    let output = Command::new("redis-cli")
        .args(["-h", "127.0.0.1", "-p", &place.port.to_string(), "EVAL", &script, "0"])
        .output()
        .map_err(|error| Fault::machine("redis-cli", error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.trim() == "OK" { Ok(()) } else { Err(Fault::Machine(format!("redis-cli: {said}"))) }
}

fn cases(server: &Loaded, echo: u16) -> Result<Vec<Case>, Fault> {
    let port = server.place.port;
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &Redis, &server.place, job)?];
        if peer::installed("redis-benchmark") {
            contestants.push(redis_benchmark(port, job));
        }
        contestants.push(floor::contestant(echo, job.clients, job.traffic())?);
        contestants.push(tithe::contestant("Tithe again", &Redis, &server.place, job)?);
        Ok(Case { name: job.name("Redis"), contestants })
    };
    JOBS.into_iter().map(case).collect()
}

fn redis_benchmark(port: u16, job: Job) -> Contestant {
    let fields = (0..FIELDS).map(|number| format!("field{number}"));
    let read = ["HMGET".to_owned(), "records:__rand_int__".to_owned()].into_iter().chain(fields);
    let whole = |requests: u32| {
        // Options must come before the command.
        let options = format!("-h 127.0.0.1 -p {port} -c {} -r {RECORDS} -n {requests}", job.clients);
        peer::words(&options).chain(read.clone()).collect()
    };
    Contestant {
        name: "redis-benchmark".to_owned(),
        ours: false,
        program: "redis-benchmark".into(),
        arguments: Vec::new(),
        short: whole(REQUESTS.0),
        long: whole(REQUESTS.1),
        operations: |text| number_before(text, " requests completed"),
        every: 1,
    }
}
