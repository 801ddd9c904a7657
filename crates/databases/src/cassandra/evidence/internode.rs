//! Do the nodes use TLS between each other, and refuse peers without a certificate?

use std::fs;

use tithe_machine::{fault::Fault, launch::Address, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    matrix::State,
};

use crate::{
    cassandra::{
        cluster::Cluster,
        inspect::node_to_node,
        store::{administrator, settings},
    },
    evidence::{Attempt, peers::knock},
};

/// Connects to the internode port of every node. TLS with the run's own certificate must be accepted; without a
/// certificate it must be refused, which only shows in a read after the handshake. If there are several nodes, the
/// server's log must report connections between them, all encrypted. For the claim that no node is accepted without
/// TLS, the server's setting is used: `optional` must be off. Id `internode-tls`.
pub struct Internode;

/// The log's text about a connection between nodes.
const ESTABLISHED: &str = "messaging connection established";
/// And if it is TLS.
const ENCRYPTED: &str = "encryption = encrypted";

impl Check for Internode {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("internode-tls")
    }

    fn claim(&self) -> String {
        "nodes speak TLS among themselves, and refuse peers without a certificate".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Address::Tcp { port, .. } = context.server.address else {
            return Ok(Observation::Unknown("an attached server's port between nodes is not known here".to_owned()));
        };
        let cluster = Cluster::of(context.setup)?;
        let (state, said) = node_to_node(&settings(&mut administrator(context.server, context.setup)?)?);
        let mut words = vec![said];
        for node in 1..=cluster.nodes {
            let host = format!("127.0.0.1{node}");
            if let Err(fault) = knock(context, &host, port, true) {
                return Ok(Observation::Exposed(format!("{}; {host}: no TLS ({fault})", words.join("; "))));
            }
            match Attempt::of(knock(context, &host, port, false))? {
                Attempt::Served => {
                    return Ok(Observation::Exposed(format!("{host}: TLS without a certificate: taken")));
                }
                Attempt::Refused(refusal) => {
                    words.push(format!("{host}: TLS without a certificate: refused ({refusal})"))
                }
            }
        }
        let (encrypted, all) = connections(context)?;
        words.push(format!("{encrypted} of {all} connections in the log are encrypted"));
        let quotation = words.join("; ");
        Ok(if is_complete((encrypted, all), cluster.nodes, state) {
            Observation::Protected(quotation)
        } else {
            Observation::Exposed(quotation)
        })
    }
}

/// True if all connections that the log reports are encrypted, as the setting says; a single node has none.
fn is_complete((encrypted, all): (usize, usize), nodes: usize, state: State) -> bool {
    encrypted == all && (all > 0 || nodes == 1) && state == State::Enforced
}

/// How many connections between nodes the logs report: encrypted ones, and all.
fn connections(context: &CheckContext<'_>) -> Result<(usize, usize), Fault> {
    let mut counts = (0, 0);
    for log in context.server.paths.logs.iter().filter(|log| log.is_file()) {
        let text = fs::read(log).map_err(|error| Fault::machine(log.display(), error))?;
        let (encrypted, all) = counted(&String::from_utf8_lossy(&text));
        counts = (counts.0 + encrypted, counts.1 + all);
    }
    Ok(counts)
}

/// The same of one log.
fn counted(log: &str) -> (usize, usize) {
    let lines = || log.lines().filter(|line| line.contains(ESTABLISHED));
    (lines().filter(|line| line.contains(ENCRYPTED)).count(), lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_between_nodes_counts() {
        let log = "a messaging connection established, encryption = encrypted(TLS)\n\
                   b messaging connection established, encryption = unencrypted\n\
                   c something else, encryption = encrypted\n";
        assert_eq!((counted(log), counted("")), ((1, 2), (0, 0)));
        let complete = |connections, nodes| is_complete(connections, nodes, State::Enforced);
        assert!(complete((3, 3), 2) && complete((0, 0), 1) && complete((1, 1), 1));
        assert!(!complete((2, 3), 2) && !complete((0, 0), 2) && !complete((0, 1), 1));
        assert!(![State::Available, State::Off, State::Unseen].iter().any(|state| is_complete((3, 3), 2, *state)));
    }
}
