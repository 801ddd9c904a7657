//! Ports for servers that are about to be started.
//!
//! A server binds its port a second or more after the port was chosen. In the meantime the kernel gives ports of its
//! ephemeral range (RFC 6056, section 2.1) to every client that opens a connection. So ports are drawn below that
//! range, and each is marked as taken, so that another process of Tithe draws another one.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{self, IpAddr, Ipv4Addr},
    ops::Range,
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt::set_socket_reuseaddr};

use crate::{fault::Fault, secret::Secret};

/// The lowest port that is drawn: most well-known ports (IANA) are lower.
const LOWEST: u16 = 10_000;

/// If fewer ports than this lie below the ephemeral range, all ports from [`LOWEST`] on are used.
const FEWEST: u16 = 1_000;

/// Number of draws before the search for a free port fails.
const TRIES: u32 = 1_000;

/// The kernel's range of ports for outgoing connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// A free port. Until this is dropped, no other process of Tithe in this network namespace gets it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// An abstract socket in the same namespace as ports; the kernel removes it when its process ends.
    _mark: UnixListener,
}

impl Port {
    /// Draws a free port of `address`.
    ///
    /// # Errors
    /// When none is free.
    pub fn draw(address: IpAddr) -> Result<Self, Fault> {
        let range = fs::read_to_string(EPHEMERAL).unwrap_or_default();
        Self::draw_of(address, beside(&range))
    }

    fn draw_of(address: IpAddr, ports: Range<u16>) -> Result<Self, Fault> {
        for _ in 0..TRIES {
            let random = Secret::random(2);
            let random = u16::from_le_bytes([random.expose()[0], random.expose()[1]]);
            let number = ports.start + random % (ports.end - ports.start);
            match mark(number).and_then(|mark| is_free(address, number).map(|()| mark)) {
                Ok(mark) => return Ok(Self { number, _mark: mark }),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => return Err(Fault::machine(format!("port {number} on {address}"), error)),
            }
        }
        Err(Fault::Machine(format!("no port from {} to {} is free on {address}", ports.start, ports.end - 1)))
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Binds a port of `address` for a moment, then of all addresses: each node of a cluster has an address of its own.
fn is_free(address: IpAddr, port: u16) -> io::Result<()> {
    bound(address, port)?;
    bound(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port).map(drop)
}

/// A socket that is bound to a port at which nobody listens. A child that another thread has just forked may hold a
/// copy of it until it executes its program. So it does not listen, and servers can bind the port beside it: they set
/// SO_REUSEADDR, too.
fn bound(address: IpAddr, port: u16) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &net::SocketAddr::new(address, port))?;
    Ok(socket)
}

/// Takes the mark of `port`; fails if another process has it.
fn mark(port: u16) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("tithe-port-{port}"))?)
}

/// The ports below the `ephemeral` ones, or all above [`LOWEST`] if those are too few.
fn beside(ephemeral: &str) -> Range<u16> {
    let first = ephemeral.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let end = if first >= LOWEST + FEWEST { first } else { u16::MAX };
    LOWEST..end
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::soon::soon;

    #[test]
    fn ports_are_drawn_beside_those_that_the_kernel_gives() {
        assert_eq!(beside("32768\t60999\n"), 10_000..32_768);
        assert_eq!(beside("11000 65535"), 10_000..11_000);
        assert_eq!(beside("1024 65535"), 10_000..65_535, "all are the kernel's");
        assert_eq!(beside(""), 10_000..65_535, "it says nothing");
    }

    #[test]
    fn no_port_is_given_twice_or_while_somebody_listens() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        // Three ports in a row, one of which is free.
        let (ports, first) = loop {
            let ports = Port::draw(address).expect("a port").number;
            let ports = ports..ports.saturating_add(3);
            if let Ok(first) = Port::draw_of(address, ports.clone()) {
                break (ports, first);
            }
        };
        let mut given = vec![first];
        while let Ok(port) = Port::draw_of(address, ports.clone()) {
            given.push(port);
        }
        let mut numbers: Vec<u16> = given.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), given.len(), "each once");
        let told = Port::draw_of(address, ports).expect_err("all are taken").to_string();
        assert!(told.contains("is free on 127.0.0.1"), "{told}");
        let number = given.pop().expect("one").number;
        let again = || Port::draw_of(address, number..number + 1);
        // A child that another test has just forked holds copies of the sockets of this process until it executes its
        // program, so what was closed may be in use a moment longer.
        assert_eq!(soon("a port that was given up", again).number(), number);
        let listens = soon("an address that was given up", || TcpListener::bind((address, number)));
        again().expect_err("somebody listens");
        drop(listens);
        let _listens =
            soon("an address of a node of a cluster", || TcpListener::bind((Ipv4Addr::new(127, 0, 0, 11), number)));
        again().expect_err("somebody listens where a node of a cluster would");
    }

    #[test]
    fn a_server_gets_its_port_also_while_a_forked_child_has_the_sockets_of_the_draw() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let port = Port::draw(address).expect("a port");
        let of_child = [address, Ipv4Addr::UNSPECIFIED.into()].map(|it| bound(it, port.number()).expect("it is free"));
        let refused = TcpStream::connect((address, port.number())).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let server = TcpListener::bind((address, port.number()));
        assert!(server.is_ok(), "{server:?} beside {of_child:?}");
    }
}
