//! Do the nodes use TLS between each other, and refuse plaintext and peers without a certificate?

use std::time::Duration;

use tithe_machine::{fault::Fault, launch::Address, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    wire::Wire,
};

use crate::{
    evidence::{
        Attempt,
        peers::{answers, knock},
    },
    opensearch::{
        launch::{address_between, nodes},
        store::administrator,
    },
};

/// Connects to the port of every node for other nodes. TLS with the run's own certificate must be accepted; TLS
/// without a certificate and plaintext must be refused. All nodes must be in the cluster, so they found each other
/// through these ports. Id `internode-tls`.
pub struct Internode;

/// The shortest message between nodes: a sign of life, which a node that can read it gives back.
const ALIVE: &[u8] = b"ES\xff\xff\xff\xff";

impl Check for Internode {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("internode-tls")
    }

    fn claim(&self) -> String {
        "nodes speak TLS among themselves, and refuse peers without a certificate".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let count = nodes(&context.setup.settings)?;
        let Address::Tcp { port, .. } = context.server.address else {
            return Ok(Observation::Unknown("an attached server's port between nodes is not known here".to_owned()));
        };
        let health = administrator(context.server, context.setup)?.request("GET /_cluster/health")?;
        let joined = health["number_of_nodes"].as_u64().unwrap_or_default();
        let mut words = vec![format!("{joined} of {count} nodes are in the cluster")];
        for host in (1..=count).map(address_between) {
            if plaintext(&host, port)? {
                return Ok(Observation::Exposed(format!("{host}: plaintext: taken")));
            }
            if let Err(fault) = knock(context, &host, port, true) {
                return Ok(Observation::Exposed(format!("{host}: no TLS ({fault})")));
            }
            match Attempt::of(knock(context, &host, port, false))? {
                Attempt::Served => {
                    return Ok(Observation::Exposed(format!("{host}: TLS without a certificate: taken")));
                }
                Attempt::Refused(refusal) => {
                    words.push(format!("{host}: plaintext: refused; TLS without a certificate: refused ({refusal})"));
                }
            }
        }
        let quotation = words.join("; ");
        Ok(if joined == count as u64 { Observation::Protected(quotation) } else { Observation::Unknown(quotation) })
    }
}

/// True if a node takes a message in plaintext: it answers, or keeps the connection.
fn plaintext(host: &str, port: u16) -> Result<bool, Fault> {
    let mut wire = Wire::connect(host, port)?;
    wire.output().extend_from_slice(ALIVE);
    wire.flush()?;
    // One that is busy may be slow to say no.
    match answers(&mut wire, Duration::from_secs(10)) {
        // Anything else is an alert of TLS.
        Ok(true) => Ok(ALIVE.starts_with(wire.unread()) || wire.unread().starts_with(ALIVE)),
        Ok(false) => Ok(true),
        Err(Fault::Connection(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    use super::*;

    /// Is plaintext taken by a node that answers this to a sign of life, and then closes the connection?
    fn is_taken(answer: &'static [u8]) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let node = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a peer");
            let mut sent = [0; ALIVE.len()];
            stream.read_exact(&mut sent).expect("a message");
            stream.write_all(answer).expect("sent");
            sent
        });
        let taken = plaintext("127.0.0.1", port).expect("an answer");
        assert_eq!(node.join().expect("the node ends"), ALIVE);
        taken
    }

    #[test]
    fn a_node_takes_plaintext_if_it_gives_a_sign_of_life_back() {
        assert!(is_taken(ALIVE) && is_taken(b"ES") && is_taken(b"ES\xff\xff\xff\xff and more"));
        // An alert of TLS, words of HTTP, and a closed connection.
        assert!(!is_taken(b"\x15\x03\x03\x00\x02\x02\x50") && !is_taken(b"EX") && !is_taken(b"HTTP/1.1 400"));
        assert!(!is_taken(b""));
    }
}
