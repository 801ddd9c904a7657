//! One run at a time on a server that Tithe did not start: a second one would take the data of the first for leftovers.
//!
//! Each server is held by an abstract socket of its name, which the kernel gives to one process of this machine and
//! takes back when that ends. Runs on other machines and in other network namespaces are not seen.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
};

use tithe_machine::{fault::Fault, fingerprint::sha256};

/// The servers that this run holds until it ends.
#[derive(Default)]
pub(super) struct HeldServers(BTreeMap<String, UnixListener>);

impl HeldServers {
    /// Holds the server of the product `product` at this `port` that reports `identity`. A copy of a server's data
    /// reports the same identity, so its port counts, too.
    ///
    /// # Errors
    /// [`Fault::Refused`] while another run holds it.
    pub fn hold(&mut self, product: &str, identity: &str, port: &str) -> Result<(), Fault> {
        // The name of a socket has at most 107 bytes.
        let name = format!("tithe-server-{}", sha256(format!("{product} {port} {identity}").as_bytes()));
        if self.0.contains_key(&name) {
            return Ok(());
        }
        match SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address)) {
            Ok(held) => {
                self.0.insert(name, held);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => Err(Fault::Refused(
                "another run of Tithe uses this server and would lose its data: wait until that run ends".to_owned(),
            )),
            Err(error) => Err(Fault::machine("cannot hold the server against other runs", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tithe_machine::soon::soon;

    use super::*;

    #[test]
    fn a_server_has_one_run_at_a_time() {
        let here = format!("server of {}", std::process::id());
        let (mut first, mut second) = (HeldServers::default(), HeldServers::default());
        first.hold("redis", &here, "1").expect("nobody has it");
        first.hold("redis", &here, "1").expect("it has it already");
        let refused = second.hold("redis", &here, "1").expect_err("the first has it").to_string();
        assert!(refused.contains("another run of Tithe uses this server"), "{refused}");
        second.hold("postgres", &here, "1").expect("another product");
        second.hold("redis", &format!("{here}, another"), "1").expect("another server");
        second.hold("redis", &here, "2").expect("a server on a copy of its data");
        drop(first);
        // A child that another test has just forked holds a copy of the socket until it executes its program.
        soon("the server, now that the first has ended", || second.hold("redis", &here, "1"));
    }
}
