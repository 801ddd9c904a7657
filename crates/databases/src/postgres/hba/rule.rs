//! One line of `pg_hba.conf`: for which clients, from which addresses, over which transport, and with which
//! authentication method.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;
use tithe_machine::fault::Fault;

use crate::evidence::whole::Exception;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// From version 16 on, the rules of several files have one order.
    pub order: i64,
    /// Its number in its file.
    pub line: i64,
    /// `host`, `hostssl`, `hostnossl`, `hostgssenc`, `hostnogssenc`, `local`.
    pub kind: String,
    pub databases: Vec<String>,
    pub users: Vec<String>,
    /// As in the file, with the mask as a length.
    address: String,
    pub ranges: Vec<Range>,
    pub method: String,
    pub options: Vec<String>,
    /// Why the server cannot use it.
    pub error: Option<String>,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    Socket,
    Plaintext,
    Tls,
    /// TCP that Kerberos encrypts.
    Gss,
}

/// Whether it is a client's connection or a replica's that copies all files: `all` databases match clients only, and
/// logical replicas, which come as clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    Clients,
    Replicas,
}

/// The addresses it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Range {
    /// By a local socket.
    Here,
    /// The first so many bits of an address; the others are 0.
    Net(IpAddr, u8),
    /// A name that only the server resolves: of a host, or `samehost`, `samenet`.
    Named(String),
}

/// All addresses of version 4 and 6.
pub const EVERYWHERE: [Range; 2] =
    [Range::Net(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), Range::Net(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)];

impl Rule {
    /// A row of the view, as JSON.
    ///
    /// # Errors
    /// A row that is no JSON.
    pub fn of(row: &str) -> Result<Self, Fault> {
        let row: Value = serde_json::from_str(row)
            .map_err(|error| Fault::Protocol(format!("a row of pg_hba_file_rules: {error}")))?;
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let list = |name: &str| -> Vec<String> {
            let values = row[name].as_array().into_iter().flatten();
            values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let (address, ranges) = place(&text("address"), &text("netmask"));
        Ok(Self {
            order: row["rule_number"].as_i64().or(row["line_number"].as_i64()).unwrap_or_default(),
            line: row["line_number"].as_i64().unwrap_or_default(),
            kind: text("type"),
            databases: list("database"),
            users: list("user_name"),
            address,
            ranges,
            method: text("auth_method"),
            options: list("options"),
            error: row["error"].as_str().map(str::to_owned),
        })
    }

    /// Ways by which its connections reach a server that has `tls` or not: without TLS, `hostssl` matches no
    /// connection.
    pub fn ways(&self, tls: bool) -> impl Iterator<Item = Way> + use<> {
        let ways: &[Way] = match self.kind.as_str() {
            "local" => &[Way::Socket],
            "hostssl" => &[Way::Tls],
            "hostnossl" => &[Way::Plaintext, Way::Gss],
            "hostgssenc" => &[Way::Gss],
            "hostnogssenc" => &[Way::Plaintext, Way::Tls],
            _ => &[Way::Plaintext, Way::Tls, Way::Gss],
        };
        ways.iter().copied().filter(move |way| tls || *way != Way::Tls)
    }

    /// The connections that it may match on a server that has `tls` or not, and in which ways.
    pub fn reach(&self, tls: bool) -> impl Iterator<Item = (Hop, Way)> {
        let ways = move |hop| self.ways(tls).map(move |way| (hop, way));
        [Hop::Clients, Hop::Replicas].into_iter().flat_map(ways)
    }

    /// The databases that it names for connections of `hop`.
    pub fn databases_of(&self, hop: Hop) -> impl Iterator<Item = &String> {
        self.databases.iter().filter(move |name| (*name == "replication") == (hop == Hop::Replicas))
    }

    /// True if a word for its databases or users is a keyword, unless the file has it in quotes.
    pub fn has_keywords(&self) -> bool {
        let is_keyword = |word: &String| {
            ["all", "replication", "sameuser", "samerole", "samegroup"].contains(&word.as_str())
                || word.starts_with('+')
        };
        self.databases.iter().chain(&self.users).any(is_keyword)
    }

    /// True if this rule stops the server from loading the file. A rule that only has no effect, such as `hostssl` on a
    /// server without TLS, also has an error, but the file is loaded.
    pub fn is_broken(&self) -> bool {
        self.error.is_some() && self.kind.is_empty()
    }

    /// True if it requires a proof, or rejects every connection.
    pub fn is_strict(&self) -> bool {
        !matches!(self.method.as_str(), "trust" | "ident")
    }

    /// The rule as an exception from what all other rules require.
    pub fn exception(&self) -> Exception {
        Exception {
            text: format!("line {}: {}", self.line, self.text()),
            loopback: self.ranges.iter().all(Range::is_loopback),
        }
    }

    /// Why the server cannot use it.
    pub fn why(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// The line, without its options.
    pub fn text(&self) -> String {
        let parts = [&self.kind, &self.databases.join(","), &self.users.join(","), &self.address, &self.method];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        parts.join(" ")
    }
}

impl Range {
    /// This range and every range that contains it. A host name only matches the same name.
    pub fn covering(&self) -> impl Iterator<Item = Self> + '_ {
        let longest = if let Self::Net(_, length) = self { *length } else { 0 };
        (0..=longest).map(move |length| match self {
            Self::Net(address, _) => Self::net(*address, length),
            other => other.clone(),
        })
    }

    /// The first `length` bits of `address`.
    fn net(address: IpAddr, length: u8) -> Self {
        let (bits, length) = (bits(address), length.min(128));
        let kept = bits.checked_shr(128 - u32::from(length)).unwrap_or(0);
        let first = kept.checked_shl(128 - u32::from(length)).unwrap_or(0);
        let address = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits((first >> 96) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(first)),
        };
        Self::Net(address, length)
    }

    /// True if it contains only this machine.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Net(address, length) => address.is_loopback() && *length >= if address.is_ipv4() { 8 } else { 128 },
            Self::Here | Self::Named(_) => false,
        }
    }
}

/// An address in words and as ranges.
fn place(address: &str, netmask: &str) -> (String, Vec<Range>) {
    match (address.parse::<IpAddr>(), netmask.parse::<IpAddr>()) {
        (Ok(net), Ok(mask)) => {
            let length = bits(mask).leading_ones();
            // A mask with gaps matches single addresses here and there: it contains no other range.
            if bits(mask).count_ones() != length {
                let text = format!("{net} {mask}");
                return (text.clone(), vec![Range::Named(text)]);
            }
            (format!("{net}/{length}"), vec![Range::net(net, length as u8)])
        }
        _ if address.is_empty() => (String::new(), vec![Range::Here]),
        _ if address == "all" => (address.to_owned(), EVERYWHERE.to_vec()),
        _ => (address.to_owned(), vec![Range::Named(address.to_owned())]),
    }
}

/// The address as a number, with the address in its first bits.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}
