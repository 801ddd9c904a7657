//! The clients that a server lists as connected, with what it says of how they are protected.
//!
//! What is here is the server's word. What a client saw of its own connection, or what passed on the wire, is not.

use tithe_machine::fault::Fault;

/// Looks at a server's list of clients, again and again, by one connection of its own.
pub trait ConnectionList {
    /// The clients that are connected now, as far as the account is shown them.
    ///
    /// # Errors
    /// The server's error, with the right that is missing where it is one.
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault>;
}

/// A client's connection, as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConnection {
    /// Tells it from all other connections to this server, also from those before it.
    pub id: String,
    /// Account; empty where the server does not say.
    pub account: String,
    /// TCP port of the client's side; `None` where it comes another way, or the server does not say.
    pub port: Option<u16>,
    /// What it speaks.
    pub spoken: Spoken,
    /// It is the one by which the list is asked for.
    pub is_own: bool,
}

/// What a connection speaks, as the server says it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spoken {
    /// TLS: its version, and its cipher where the server says it.
    Tls(String),
    /// Not TLS, and it came by the network.
    Plaintext,
    /// Not by the network, but within the machine.
    Local,
    /// The server does not say, or not to this account; why, with what would change it.
    Untold(String),
}

/// The port at the end of `host:port`; `None` where there is none.
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
