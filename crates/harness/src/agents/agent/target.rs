//! Servers that an agent may connect to, as its user allows.

use std::{
    fmt,
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use tithe_machine::launch::Address;
use tithe_model::experiment::Url;
use tithe_plugin::product::Product;

use crate::agents::message::{Expected, Place};

/// A host, and one port of it or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTarget {
    host: String,
    port: Option<u16>,
}

impl AllowedTarget {
    /// The target that `text` allows: `db.example.com`, `10.0.0.5:5432`, `[fd00::5]:5432`.
    ///
    /// # Errors
    /// As text, if it is no host with or without a port.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a target: a host, or host:port; an IPv6 address in brackets");
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
                (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) })
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = port.map(|port| port.parse::<u16>().map_err(|_| wrong())).transpose()?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }

    fn allows(&self, host: &str, port: u16) -> bool {
        self.host == host.to_ascii_lowercase() && self.port.is_none_or(|allowed| allowed == port)
    }
}

impl fmt::Display for AllowedTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.port {
            Some(port) => write!(formatter, "{host}:{port}"),
            None => formatter.write_str(&host),
        }
    }
}

/// The address of a server of `product` at `place`, if it is among `allowed`.
///
/// # Errors
/// As text, if it is not among them, or if `place` holds no address.
pub fn address(product: &dyn Product, place: Place, allowed: &[AllowedTarget]) -> Result<Address, String> {
    let (host, port, address) = match place {
        Place::Nowhere if product.simulated() => return Ok(Address::Nowhere),
        Place::Nowhere => return Err("a frame names no server".to_owned()),
        Place::Tcp { host, port } => (host.clone(), port, Address::Tcp { host, port }),
        Place::Url(url) => {
            let url = Url::new(url);
            let (host, port) = product.endpoint(&url).ok_or("a frame names a URL that leads to no host and port")?;
            if names_files(&url) {
                return Err("a URL names a file, and an agent opens none that a plan names".to_owned());
            }
            (host, port, Address::Attached(url))
        }
    };
    if allowed.iter().any(|target| target.allows(&host, port)) {
        return Ok(address);
    }
    Err(not_allowed(&format!("{host}:{port}"), allowed))
}

fn not_allowed(place: &str, allowed: &[AllowedTarget]) -> String {
    let listed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    format!("it may not connect to {place}; it was started with these targets: {listed} (--target)")
}

/// How long a running server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Checks that clients here may connect to `server`, of `product`: it must be among `allowed`, and must accept
/// connections if it runs.
///
/// # Errors
/// As text: why they cannot.
pub fn reach(product: &dyn Product, server: &Expected, allowed: &[AllowedTarget]) -> Result<(), String> {
    match server {
        _ if product.simulated() => Ok(()),
        Expected::Launched { host } => launched(host, allowed),
        Expected::Running(url) => {
            address(product, Place::Url(url.clone()), allowed)?;
            let place = product.endpoint(&Url::new(url)).ok_or("a server's URL leads to no host and port")?;
            let connected = place.to_socket_addrs().and_then(|mut addresses| {
                let address =
                    addresses.next().ok_or_else(|| std::io::Error::other("its name does not resolve here"))?;
                TcpStream::connect_timeout(&address, CONNECT_WITHIN)
            });
            connected.map(drop).map_err(|error| format!("it cannot connect to {}:{}: {error}", place.0, place.1))
        }
    }
}

/// Checks that clients here may connect to a server that will listen on `host`: at any port, because it is drawn.
fn launched(host: &str, allowed: &[AllowedTarget]) -> Result<(), String> {
    let of_host: Vec<&AllowedTarget> =
        allowed.iter().filter(|target| target.host == host.to_ascii_lowercase()).collect();
    match of_host.first() {
        None => Err(not_allowed(host, allowed)),
        Some(_) if of_host.iter().any(|target| target.port.is_none()) => Ok(()),
        Some(target) => {
            let host = AllowedTarget { port: None, ..(*target).clone() };
            Err(format!(
                "it may connect to {target} alone, and the port of a server that the coordinator starts is drawn: \
                 start it with --target {host}"
            ))
        }
    }
}

/// Endings of the names of options that pass files or commands to clients: `sslrootcert`, `ssl-ca`,
/// `tlsCertificateKeyFile`, `password_command`.
const FILE_OPTIONS: [&str; 7] = ["ca", "cert", "certs", "key", "file", "service", "command"];

/// True if `url` has an option that names a file, or an option whose value contains a path.
pub fn names_files(url: &Url) -> bool {
    let options = url.expose().split_once('?').map_or("", |(_, options)| options);
    options.split('&').any(|option| {
        let option = option.to_ascii_lowercase();
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        // Clients ignore these characters in names.
        let name = name.replace(['_', '-'], "");
        let names_file = FILE_OPTIONS.iter().any(|ending| name.ends_with(ending)) && !name.contains("verify");
        // An option name in percent-encoding is an attempt to hide it.
        names_file || name.contains('%') || value.contains('/') || value.contains("%2f")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tithe_plugin::simulated::Simulated;

    use super::*;

    #[test]
    fn targets_are_hosts_with_one_port_or_all() {
        let shown = |text: &str| AllowedTarget::parse(text).map(|target| target.to_string());
        assert_eq!(shown("DB.example.com"), Ok("db.example.com".to_owned()));
        assert_eq!(shown("10.0.0.5:5432"), Ok("10.0.0.5:5432".to_owned()));
        assert_eq!(shown("[fd00::5]:5432"), Ok("[fd00::5]:5432".to_owned()));
        assert_eq!(shown("[fd00::5]"), Ok("[fd00::5]".to_owned()));
        for wrong in ["", ":1", "a:", "a:70000", "a b", "[fd00::5", "[fd00::5]5432", "tls://a", "a:1:2", "a/b"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_reached_that_was_not_allowed() {
        let allowed: Vec<_> =
            ["db:5432", "cache"].iter().map(|text| AllowedTarget::parse(text).expect("a target")).collect();
        let tcp = |host: &str, port| address(&Simulated, Place::Tcp { host: host.to_owned(), port }, &allowed);
        assert!(tcp("DB", 5432).is_ok() && tcp("cache", 1).is_ok());
        expect_test::expect![
            "it may not connect to db:5433; it was started with these targets: db:5432, cache (--target)"
        ]
        .assert_eq(&tcp("db", 5433).expect_err("refused"));
        assert!(tcp("db.evil", 5432).is_err() && tcp("127.0.0.1", 5432).is_err());
        assert!(address(&Simulated, Place::Nowhere, &[]).is_ok());
        assert!(address(&Simulated, Place::Url("postgres://db/x".to_owned()), &allowed).is_err());
    }

    #[test]
    fn a_server_that_is_still_to_be_started_needs_a_host_with_all_its_ports() {
        let told = |targets: &[&str], host: &str| {
            let allowed: Vec<_> = targets.iter().map(|text| AllowedTarget::parse(text).expect("a target")).collect();
            launched(host, &allowed)
        };
        assert_eq!(told(&["db:5432", "10.0.0.5:1", "10.0.0.5"], "10.0.0.5"), Ok(()));
        assert_eq!(told(&["DB"], "db"), Ok(()));
        expect_test::expect![
            "it may connect to [fd00::5]:5432 alone, and the port of a server that the coordinator starts is drawn: start it with --target [fd00::5]"
        ]
        .assert_eq(&told(&["db", "[fd00::5]:5432"], "fd00::5").expect_err("another port"));
        expect_test::expect!["it may not connect to 10.0.0.6; it was started with these targets: db (--target)"]
            .assert_eq(&told(&["db"], "10.0.0.6").expect_err("another host"));
    }

    #[test]
    fn urls_that_name_files_are_told_from_those_that_do_not() {
        let names = |url: &str| names_files(&Url::new(url));
        assert!(names("postgres://db/x?sslmode=verify-full&sslrootcert=/etc/shadow"));
        assert!(names("postgres://db/x?sslrootcert=%2Fetc%2fshadow"));
        for relative in [
            "sslrootcert=ca.pem",
            "sslmode=verify-full&sslkey=k",
            "ssl-ca=ca.pem",
            "ca=c",
            "tlsCAFile=c",
            "SSLCert=c",
            "service=a",
            "passfile=a",
            "defaults-file=a",
        ] {
            assert!(names(&format!("postgres://db/x?{relative}")), "{relative}");
        }
        assert!(names("postgres://db/x?sslrootcert=system") && names("postgres://db/x?sslrootc%65rt=ca.pem"));
        assert!(names("postgres://db/x?sslrootcert"), "without a value");
        assert!(names("redis://db?password_command=id") && names("redis://db?Password-comm_and=id"));
        assert!(
            !names("postgres://db/x?sslmode=require") && !names("redis://db/0") && !names("mongodb://db/?tls=true")
        );
    }

    proptest! {
        #[test]
        fn what_is_allowed_is_shown_as_it_is_read(text in "[a-z0-9.:\\[\\]]{0,20}") {
            if let Ok(target) = AllowedTarget::parse(&text) {
                prop_assert_eq!(AllowedTarget::parse(&target.to_string()), Ok(target));
            }
        }
    }
}
