//! Raises this process's limit of open files for the connections of a plan: the limit is 1,024 on many systems.
//!
//! Servers inherit the raised limit. If they need more, they raise it themselves.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fault::Fault;

/// Files that one connection may hold open: a socket, or an embedded database's file, its journal and the journal's
/// index.
const PER_CONNECTION: u64 = 3;

/// Other open files: records, logs, files of checks and administrators.
const BESIDE: u64 = 512;

/// Allows this process `connections` at a time.
///
/// # Errors
/// When the hard limit, which only root can raise, is too low.
pub fn allow(connections: u64) -> Result<(), Fault> {
    let limit = getrlimit(Resource::Nofile);
    // An absent limit is infinite.
    let or_endless = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let Some(raised) = raised(or_endless(limit.current), or_endless(limit.maximum), connections)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit })
        .map_err(|error| Fault::machine("cannot raise the limit of open files", io::Error::from(error)))
}

/// The new limit, if `soft` and `hard` are the present ones; `None` if it is high enough.
fn raised(soft: u64, hard: u64, connections: u64) -> Result<Option<u64>, Fault> {
    let needed = connections * PER_CONNECTION + BESIDE;
    if needed > hard {
        return Err(Fault::Machine(format!(
            "{connections} connections, those of all arms, need {needed} open files, and this process may have {hard}: \
             raise the hard limit (`ulimit -Hn {needed}`, or LimitNOFILE of its service), or measure with fewer clients \
             or arms; nothing was started"
        )));
    }
    Ok((needed > soft).then_some(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_where_it_must_and_can_be() {
        assert_eq!(raised(1024, 524_288, 64), Ok(None));
        assert_eq!(raised(1024, 524_288, 7168), Ok(Some(22_016)));
        let Err(Fault::Machine(told)) = raised(1024, 4096, 7168) else { panic!("it cannot be raised") };
        assert!(told.contains("7168 connections") && told.contains("22016") && told.contains("4096"), "{told}");
    }

    #[test]
    fn this_process_gets_what_it_asks_for() {
        allow(700).expect("2,612 files are few");
        let files: Vec<_> = (0..1500).map(|_| std::fs::File::open("/dev/null").expect("one more file")).collect();
        assert_eq!(files.len(), 1500);
    }
}
