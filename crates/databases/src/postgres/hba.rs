//! Whom `pg_hba.conf` lets in: the lines as the server itself shows them (documentation, "pg_hba_file_rules"), and those among
//! them that let somebody in without TLS. Pure.
//!
//! The first line that fits a client decides about it ("The pg_hba.conf File"), so a line behind others that take everybody it
//! is about lets nobody in. The view shows the file, which may be newer than what the server has loaded.

use std::net::IpAddr;

use crate::evidence::whole::Exception;

/// Asks for the rows that [`rules`] takes. Superusers may, and whoever was granted the view and its function. Names have a line
/// each.
pub const RULES: &str = "SELECT line_number, type, array_to_string(database, chr(10)), array_to_string(user_name, chr(10)), \
                         address, netmask, auth_method, error FROM pg_hba_file_rules";

/// Where the rules were seen, in findings.
pub const SOURCE: &str = "pg_hba_file_rules";

/// One line of `pg_hba.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its number.
    pub line: String,
    /// `host`, `hostssl`, `local`, …
    pub kind: String,
    /// Names of databases, and words with a meaning as `all`.
    pub databases: Vec<String>,
    /// Names of accounts, and words with a meaning.
    pub users: Vec<String>,
    /// An address, a name, or a word with a meaning; `None` for sockets.
    pub address: Option<String>,
    /// The mask of an address.
    pub netmask: Option<String>,
    /// How clients say who they are; `reject` where they are not let in.
    pub method: String,
}

/// The rules in the answer to [`RULES`].
///
/// # Errors
/// The line that the server cannot read: it goes on with the rules that it loaded before, and nobody can see these.
pub fn rules(rows: Vec<Vec<Option<String>>>) -> Result<Vec<Rule>, String> {
    rows.into_iter().map(rule).collect()
}

fn rule(row: Vec<Option<String>>) -> Result<Rule, String> {
    let [line, kind, databases, users, address, netmask, method, error] =
        <[_; 8]>::try_from(row).map_err(|_| format!("{SOURCE} has other columns"))?;
    let line = line.unwrap_or_default();
    if let Some(error) = error {
        return Err(format!("pg_hba.conf, line {line}: {error}"));
    }
    let names = |text: Option<String>| text.unwrap_or_default().lines().map(str::to_owned).collect();
    Ok(Rule {
        line,
        kind: kind.unwrap_or_default(),
        databases: names(databases),
        users: names(users),
        address,
        netmask,
        method: method.unwrap_or_default(),
    })
}

/// Kinds of lines about clients that come over the network without encryption.
const PLAINTEXT: [&str; 3] = ["host", "hostnossl", "hostnogssenc"];

/// The lines that let somebody in over the network without TLS.
pub fn in_plaintext(rules: &[Rule]) -> Vec<Exception> {
    let about: Vec<&Rule> = rules.iter().filter(|rule| PLAINTEXT.contains(&rule.kind.as_str())).collect();
    let reached = |(number, rule): &(usize, &&Rule)| !is_taken(rule, &about[..*number]);
    let open = about.iter().enumerate().filter(reached).map(|(_, rule)| *rule);
    open.filter(|rule| rule.method != "reject").map(Rule::exception).collect()
}

/// True when everybody whom `rule` is about is decided about by a line before it.
fn is_taken(rule: &Rule, before: &[&Rule]) -> bool {
    let taken = |database: &String, user: &String, network: &Network| {
        before.iter().any(|earlier| earlier.takes(database, user, *network))
    };
    rule.databases.iter().all(|database| {
        rule.users.iter().all(|user| rule.networks().iter().all(|network| taken(database, user, network)))
    })
}

impl Rule {
    /// True when this line decides about `user` from all of `network` who wants `database`.
    fn takes(&self, database: &str, user: &str, network: Network) -> bool {
        let names = |names: &[String], name: &str| names.iter().any(|one| one == name);
        // `all` is not about replication (documentation).
        let any_database = names(&self.databases, "all") && database != "replication";
        (any_database || names(&self.databases, database))
            && (names(&self.users, "all") || names(&self.users, user))
            && self.known().iter().any(|own| own.holds(network))
    }

    /// Where its clients may come from. What is told by a name may be anywhere.
    fn networks(&self) -> Vec<Network> {
        let known = self.known();
        if known.is_empty() { EVERYWHERE.to_vec() } else { known }
    }

    /// As [`Rule::networks`], and nothing for what is told by a name.
    fn known(&self) -> Vec<Network> {
        let parsed = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        match (self.address.as_deref(), parsed(&self.address), parsed(&self.netmask)) {
            (Some("all"), ..) => EVERYWHERE.to_vec(),
            (_, Some(address), Some(mask)) => vec![Network { address, prefix: bits(mask).leading_ones() }],
            _ => Vec::new(),
        }
    }

    fn exception(&self) -> Exception {
        let Self { line, kind, method, .. } = self;
        let (databases, users) = (self.databases.join(","), self.users.join(","));
        let own = self.known();
        Exception {
            text: format!("line {line}: {kind} {databases} {users} {} {method}", self.from()),
            loopback: !own.is_empty() && own.iter().all(|network| network.is_loopback()),
        }
    }

    /// Where its clients come from, as the file has it.
    fn from(&self) -> String {
        let address = self.address.as_deref().unwrap_or_default();
        match self.known().as_slice() {
            [network] => format!("{address}/{}", network.prefix),
            _ => address.to_owned(),
        }
    }
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// Number of bits that are alike.
    prefix: u32,
}

/// Every address of either kind.
const EVERYWHERE: [Network; 2] = [
    Network { address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), prefix: 0 },
    Network { address: IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), prefix: 0 },
];

impl Network {
    fn holds(self, other: Self) -> bool {
        let begin = |address: IpAddr| bits(address).checked_shr(128 - self.prefix).unwrap_or(0);
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.prefix <= other.prefix
            && begin(self.address) == begin(other.address)
    }

    fn is_loopback(self) -> bool {
        self.address.is_loopback() && self.prefix >= if self.address.is_ipv4() { 8 } else { 128 }
    }
}

/// The bits of `address`, the first in the highest place.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// The rules of `text` as the server shows those of a file: addresses with their masks apart.
    fn parsed(text: &str) -> Vec<Rule> {
        let row = |(number, line): (usize, &str)| {
            let mut words = line.split_whitespace();
            let mut next = || words.next().map(str::to_owned);
            let (kind, databases, users) = (next(), next().map(lines), next().map(lines));
            let (address, mask) = match next() {
                Some(cidr) if cidr.contains('/') => {
                    let (address, prefix) = cidr.split_once('/').expect("a slash");
                    (Some(address.to_owned()), Some(mask(address, prefix.parse().expect("a number"))))
                }
                address => (address, None),
            };
            rule(vec![Some((number + 1).to_string()), kind, databases, users, address, mask, next(), None])
        };
        text.lines().enumerate().map(row).collect::<Result<_, _>>().expect("rules")
    }

    fn lines(names: String) -> String {
        names.replace(',', "\n")
    }

    fn mask(address: &str, prefix: u32) -> String {
        let ones = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        if address.contains(':') {
            std::net::Ipv6Addr::from_bits(ones).to_string()
        } else {
            std::net::Ipv4Addr::from_bits((ones >> 96) as u32).to_string()
        }
    }

    fn check(text: &str, expect: Expect) {
        let all = in_plaintext(&parsed(text));
        let line = |one: &Exception| format!("{}{}\n", one.text, if one.loopback { " (loopback)" } else { "" });
        expect.assert_eq(&all.iter().map(line).collect::<String>());
    }

    #[test]
    fn every_line_that_takes_plaintext_is_one() {
        check(
            "local all all trust\nhostssl all all all scram-sha-256\nhost all all 127.0.0.1/32 md5\n\
             hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256\nhost all other samenet trust\nhostgssenc all all all gss",
            expect![[r#"
                line 3: host all all 127.0.0.1/32 md5 (loopback)
                line 4: hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256
                line 5: host all other samenet trust
            "#]],
        );
    }

    #[test]
    fn what_is_refused_before_is_none() {
        check(
            "hostnossl all all 0.0.0.0/0 reject\nhostnossl all all ::/0 reject\nhost all all all md5\n\
             host all other 10.1.0.0/16 trust\nhost replication all all md5\nhost all all db.example md5",
            expect![[r#"
                line 5: host replication all all md5
            "#]],
        );
        // The other way round nobody is refused, and half of the addresses are not all.
        check(
            "host all all all md5\nhostnossl all all all reject",
            expect![[r#"
                line 1: host all all all md5
            "#]],
        );
        check(
            "hostnossl all all 10.0.0.0/9 reject\nhost all all 10.64.0.0/10 md5\nhost all all 10.128.0.0/9 md5\n\
             host shop all 10.0.0.0/8 md5",
            expect![[r#"
                line 3: host all all 10.128.0.0/9 md5
                line 4: host shop all 10.0.0.0/8 md5
            "#]],
        );
    }

    #[test]
    fn a_file_with_an_error_is_not_what_the_server_goes_by() {
        let mut row = vec![None; 8];
        (row[0], row[7]) = (Some("7".to_owned()), Some("invalid connection type \"hots\"".to_owned()));
        expect!["pg_hba.conf, line 7: invalid connection type \"hots\""]
            .assert_eq(&rules(vec![row]).expect_err("an error"));
    }
}
