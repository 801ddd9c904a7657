//! The broker's address. It holds no secret: addresses appear in arguments, messages and records.

use std::{
    fmt,
    net::{Ipv6Addr, SocketAddr},
    str::FromStr,
};

use tithe_machine::fault::Fault;

/// The default port.
const PORT: u16 = 4222;

/// `tls://host:4222`, or `nats://host:4222` for a broker on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    has_tls: bool,
    host: String,
    port: u16,
}

impl BrokerUrl {
    /// Name or address of the machine, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// True if all traffic to it is encrypted.
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Refuses an unencrypted broker whose name resolves to `addresses` outside this machine: others could listen.
    ///
    /// # Errors
    /// [`Fault::Refused`], if it is unencrypted and one of the addresses is not a loopback address.
    pub fn heard_by_nobody(&self, addresses: &[SocketAddr]) -> Result<(), Fault> {
        let outside = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
        match outside {
            Some(outside) if !self.has_tls => Err(Fault::Refused(format!(
                "{self} leads to {}, off this machine, and everybody between could read it: give the broker a \
                 certificate and call it tls://{}:{}",
                outside.ip(),
                bracketed(&self.host),
                self.port
            ))),
            _ => Ok(()),
        }
    }

    /// What to connect to: the name if a certificate is checked against it. If unencrypted, the `addresses` themselves,
    /// so that exactly the checked addresses are used.
    pub(crate) fn servers(&self, addresses: &[SocketAddr]) -> Vec<String> {
        if self.has_tls {
            return vec![self.to_string()];
        }
        addresses.iter().map(|address| format!("nats://{address}")).collect()
    }
}

impl FromStr for BrokerUrl {
    type Err = String;

    /// # Errors
    /// Returns what is wrong and what to write. Text before an `@` is not repeated: it may be a secret.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err(
                "credentials do not belong into a broker's address, where others can read them: name a file that \
                        holds them"
                    .to_owned(),
            );
        }
        let wrong =
            || format!("`{text}` is not an address of a broker: write tls://host:{PORT}, or nats://localhost:{PORT}");
        let (scheme, place) = text.split_once("://").ok_or_else(wrong)?;
        let has_tls = match scheme {
            "tls" => true,
            "nats" => false,
            _ => return Err(wrong()),
        };
        let (host, port) = place_of(place.strip_suffix('/').unwrap_or(place)).ok_or_else(wrong)?;
        Ok(Self { has_tls, host, port })
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "tls" } else { "nats" };
        write!(formatter, "{scheme}://{}:{}", bracketed(&self.host), self.port)
    }
}

/// Host and port of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`.
fn place_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port)
        }
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let is_name = |delivery: char| delivery.is_ascii_alphanumeric() || matches!(delivery, '.' | '-' | '_');
            (!host.is_empty() && host.chars().all(is_name)).then_some((host, port))?
        }
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None if port.is_empty() => PORT,
        None => return None,
    };
    Some((host.to_owned(), port))
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> BrokerUrl {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_are_read_and_written() {
        let read = |text: &str| text.parse::<BrokerUrl>().map_or_else(|wrong| wrong, |read| read.to_string());
        let told = [
            "tls://broker.example.com:4333",
            "tls://broker",
            "nats://127.0.0.1:4222/",
            "tls://[2001:db8::1]",
            "tls://[::1]:5",
            "broker:4222",
            "http://broker",
            "tls://",
            "tls://broker:0",
            "tls://broker:99999",
            "tls://broker:4222/path",
            "tls://[broker]",
            "tls://::1",
            "tls://someone:secret@broker",
        ];
        expect![[r#"
            tls://broker.example.com:4333
            tls://broker:4222
            nats://127.0.0.1:4222
            tls://[2001:db8::1]:4222
            tls://[::1]:5
            `broker:4222` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `http://broker` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://broker:0` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://broker:99999` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://broker:4222/path` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://[broker]` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            `tls://::1` is not an address of a broker: write tls://host:4222, or nats://localhost:4222
            credentials do not belong into a broker's address, where others can read them: name a file that holds them"#]]
        .assert_eq(&told.map(read).join("\n"));
    }

    #[test]
    fn plain_is_for_this_machine_alone() {
        let refused = |url: &str, addresses: &[&str]| {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
            read(url).heard_by_nobody(&addresses).err().map(|fault| fault.to_string())
        };
        let (v4, v6, mapped) = ("127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1");
        assert_eq!(refused("nats://localhost", &[v4, v6, mapped]), None);
        assert_eq!(refused("tls://broker", &["192.0.2.7:1"]), None);
        expect![
            "refused: nats://broker:4222 leads to 192.0.2.7, off this machine, and everybody between could read it: give \
             the broker a certificate and call it tls://broker:4222"
        ]
        .assert_eq(&refused("nats://broker", &[v4, "192.0.2.7:1"]).unwrap());
        assert!(refused("nats://broker", &["[::ffff:192.0.2.7]:1"]).is_some());
        assert!(refused("nats://broker", &["0.0.0.0:1"]).is_some());
    }

    #[test]
    fn what_was_looked_at_is_what_is_called() {
        let addresses = ["127.0.0.1:4222", "[::1]:4222"].map(|text| text.parse().expect("an address"));
        assert_eq!(read("nats://localhost").servers(&addresses), ["nats://127.0.0.1:4222", "nats://[::1]:4222"]);
        assert_eq!(read("tls://broker").servers(&addresses), ["tls://broker:4222"]);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_so_that_it_is_read_again(text in "(tls|nats)://\\PC{0,30}|\\PC{0,30}") {
            if let Ok(read) = text.parse::<BrokerUrl>() {
                prop_assert_eq!(read.to_string().parse::<BrokerUrl>(), Ok(read));
            }
        }
    }
}
