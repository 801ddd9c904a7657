//! Memcached with values of the same size for all, and memcaslap of libmemcached compared with Tithe.
//!
//! memcaslap reads its own keys of 16 bytes with values of 1,024 bytes, which each of its connections writes first. It
//! draws keys uniformly and verifies nothing.

use std::path::PathBuf;

use tithe_databases::memcached::Memcached;
use tithe_machine::{fault::Fault, launch::Place};

use crate::{
    contest::{Case, Contest, Contestant, number_after},
    floor,
    peer::{self, words},
    server::Loaded,
    tithe::{self, Job},
};

const JOBS: [Job; 2] = [Job { workload: "c", clients: 1 }, Job { workload: "c", clients: 8 }];

/// Requests of a short and a long run of memcaslap; the first ones are writes.
const REQUESTS: (u32, u32) = (20_000, 200_000);

/// Memory for the records of both.
const SETTINGS: [(&str, &str); 1] = [("memory-limit", "512")];

/// Keys, values, and reads alone.
const LOAD: &str = "key\n16 16 1\nvalue\n1024 1024 1\ncmd\n0 0\n1 1\n";

/// Starts and loads it; all jobs, with the floor against the echo server on port `echo`.
///
/// # Errors
/// No Memcached, or any error of it.
pub fn contest(echo: u16) -> Result<Contest, Fault> {
    let server = Loaded::start(&Memcached, &SETTINGS, "c", |_, place| {
        let file = load(place);
        std::fs::write(&file, LOAD).map_err(|error| Fault::machine(file.display(), error))
    })?;
    let place = &server.place;
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &Memcached, place, job)?];
        contestants.extend(peer::installed("memcaslap").then(|| memcaslap(place, job)));
        contestants.push(floor::contestant(echo, job.clients, job.traffic())?);
        contestants.push(tithe::contestant("Tithe again", &Memcached, place, job)?);
        Ok(Case { name: job.name("Memcached"), contestants })
    };
    let cases = JOBS.into_iter().map(case).collect::<Result<_, Fault>>()?;
    let versions = peer::version(&PathBuf::from("memcaslap")).into_iter().collect();
    Ok(Contest { cases, versions, server })
}

/// The file of memcaslap's load.
fn load(place: &Place) -> PathBuf {
    place.folder.join("memcaslap")
}

fn memcaslap(place: &Place, job: Job) -> Contestant {
    let whole = |requests: u32| words(&format!("-x {requests}")).collect();
    Contestant {
        name: "memcaslap".to_owned(),
        ours: false,
        program: "memcaslap".into(),
        arguments: words(&format!("-s 127.0.0.1:{} -T 1 -c {} -w 1k -F", place.port, job.clients))
            .chain([load(place).display().to_string()])
            .collect(),
        short: whole(REQUESTS.0),
        long: whole(REQUESTS.1),
        operations: |text| number_after(text, "Ops: "),
        every: 1,
    }
}
