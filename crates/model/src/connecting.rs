//! The time to open connections, by part: TCP, TLS and login. Sums over a frame, without a distribution.

use serde::{Deserialize, Serialize};

/// One part of opening connections: sums over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConnectPart {
    /// How long it took, ns.
    pub time_ns: u64,
    /// Processor time of the client in it, ns; the rest is the server, the kernel and the network.
    pub client_ns: u64,
}

/// The time one arm's connections took to open in a frame, including those opened while measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Connecting {
    /// How many were opened.
    pub connections: u64,
    /// From resolving the host to the accepted connection.
    pub tcp: ConnectPart,
    /// The handshake of TLS.
    pub tls: ConnectPart,
    /// The rest of the login: the server's greeting and authentication.
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

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.connections == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_add_up_part_by_part() {
        let part = |time_ns, client_ns| ConnectPart { time_ns, client_ns };
        let mut sum = Connecting { connections: 2, tcp: part(10, 1), tls: part(20, 2), login: part(30, 3) };
        assert!(!sum.is_empty() && Connecting::default().is_empty());
        sum.add(&Connecting { connections: 3, tcp: part(500, 5), tls: part(600, 6), login: part(700, 7) });
        let expected = Connecting { connections: 5, tcp: part(510, 6), tls: part(620, 8), login: part(730, 10) };
        assert_eq!(sum, expected);
        sum.add(&Connecting::default());
        assert_eq!(sum, expected);
    }
}
