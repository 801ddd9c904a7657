//! What opening connections takes, by part.

use serde::{Deserialize, Serialize};

/// One part of opening connections: sums over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConnectPart {
    /// How long it took, ns.
    pub time_ns: u64,
    /// Processor time of the client in it, ns: the rest is the server, the kernel between and the way.
    pub client_ns: u64,
}

/// What the connections of one arm took to open in a frame, with those that were opened while measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Connecting {
    /// How many were opened.
    pub connections: u64,
    /// From looking up the host to the accepted connection.
    pub tcp: ConnectPart,
    /// The handshake of TLS.
    pub tls: ConnectPart,
    /// What is left of the login: the server's greeting and the proof of who comes.
    pub login: ConnectPart,
}

impl ConnectPart {
    fn add(&mut self, other: Self) {
        self.time_ns += other.time_ns;
        self.client_ns += other.client_ns;
    }
}

impl Connecting {
    /// Adds further connections.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.tcp.add(other.tcp);
        self.tls.add(other.tls);
        self.login.add(other.login);
    }

    /// True where nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.connections == 0
    }
}
