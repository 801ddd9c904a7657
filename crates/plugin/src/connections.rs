//! The clients that a server lists as connected, and how it reports their protection.
//!
//! This is the server's own report. What a client saw of its connection, or what passed on the wire, is separate.

use tithe_machine::fault::Fault;

/// Reads a server's list of clients repeatedly, through one connection.
pub trait ConnectionList {
    /// The clients that are connected now, as far as the account may see them.
    ///
    /// # Errors
    /// The server's error, with the missing privilege if there is one.
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault>;
}

/// A client's connection, as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConnection {
    /// Distinguishes it from all other connections to this server, earlier ones included.
    pub id: String,
    /// Account; empty if the server does not report it.
    pub account: String,
    /// TCP port of the client's side; `None` if it does not use TCP, or the server does not report it.
    pub port: Option<u16>,
    /// Its protection.
    pub spoken: Spoken,
    /// It is the connection that reads the list.
    pub is_own: bool,
}

/// The protection of a connection, as the server reports it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spoken {
    /// TLS: its version, and its cipher if the server reports it.
    Tls(String),
    /// No TLS, and it came over the network.
    Plaintext,
    /// Not over the network, but within the machine.
    Local,
    /// The server does not report it, or not to this account; the reason, and how to change it.
    Untold(String),
}

/// The port at the end of `host:port`; `None` if there is none.
pub fn port_of(place: &str) -> Option<u16> {
    place.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stands_behind_the_last_colon() {
        assert_eq!(port_of("10.0.0.1:4711"), Some(4711));
        assert_eq!(port_of("[::1]:4711"), Some(4711));
        assert_eq!(port_of("localhost"), None);
        assert_eq!(port_of("/run/socket:0x"), None);
    }
}
