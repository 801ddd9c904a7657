//! Who is let in, and how: `pg_hba.conf` as the server's view `pg_hba_file_rules` shows it, judged without a server.
//!
//! The first rule that matches a connection decides (documentation, "The pg_hba.conf File"). So a rule counts only
//! where some connection gets past all rules before it: a `reject` above it, or a stricter rule, may leave it nothing.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::Value;
use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::FindingEntry, session::SqlSession as _};

use super::session::PostgresSession;
use crate::{
    evidence::whole::{Exception, Whole},
    findings::{
        PG_AUTHN_NO_PASSWORD, PG_AUTHN_SHADOWED_RULE, PG_AUTHN_WEAK_METHOD, PG_TLS_OPTIONAL, PG_TLS_REPLICATION,
    },
    inspect::Rules,
};

/// Where the rules are seen, in findings.
const SOURCE: &str = "pg_hba_file_rules";

/// What an account needs to read the rules.
pub const RIGHT: &str = "the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), \
                         pg_stat_file(text), and the role pg_read_all_settings";

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// From version 16 on, the rules of several files have one order.
    order: i64,
    line: i64,
    /// `host`, `hostssl`, `hostnossl`, `hostgssenc`, `hostnogssenc`, `local`.
    kind: String,
    databases: Vec<String>,
    users: Vec<String>,
    /// As in the file, with the mask as a length.
    address: String,
    ranges: Vec<Range>,
    method: String,
    options: Vec<String>,
    /// Why the server cannot use it.
    error: Option<String>,
}

/// How a connection comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Socket,
    Plaintext,
    Tls,
    /// TCP that Kerberos encrypts.
    Gss,
}

/// From where it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Range {
    /// By a local socket.
    Here,
    /// The first so many bits of an address.
    Net(IpAddr, u8),
    /// A name that only the server resolves: of a host, or `samehost`, `samenet`.
    Named(String),
}

/// All addresses of version 4 and 6.
const EVERYWHERE: [Range; 2] = [
    Range::Net(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0),
    Range::Net(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), 0),
];

/// The rules of a server that were read.
pub struct Hba {
    rules: Vec<Rule>,
    /// Those for which the server loads nothing of the file, and goes by the rules that it had, which nobody can see.
    broken: Vec<Rule>,
    /// For each rule the ways by which some connection gets past the rules before it.
    left: Vec<Vec<Way>>,
    /// Why the file may not be the one that is loaded.
    age: Option<String>,
}

/// What is wrong with a rule: in words, and by its stable name.
type Weakness = (&'static str, &'static FindingEntry);

/// Reads the rules.
///
/// # Errors
/// The server's error: superusers may read them, and others only where they were granted it.
pub fn read(session: &mut PostgresSession) -> Result<Hba, Fault> {
    let rows = session.run("SELECT to_jsonb(r) FROM pg_hba_file_rules r")?;
    let lines = rows.iter().flatten().flatten().map(String::as_str);
    let mut hba = Hba::of(lines, session.value("SHOW ssl")? == "on")?;
    hba.age = doubt_of_age(session);
    Ok(hba)
}

/// The view shows the file, not what the server has loaded of it.
fn doubt_of_age(session: &mut PostgresSession) -> Option<String> {
    let changed = "SELECT coalesce(bool_or((pg_stat_file(coalesce(to_jsonb(r)->>'file_name', current_setting('hba_file')))) \
                   .modification > pg_conf_load_time()), false) FROM pg_hba_file_rules r";
    match session.value(changed) {
        Ok(changed) if changed == "f" => None,
        Ok(_) => Some("pg_hba.conf was changed after it was loaded (SELECT pg_reload_conf())".to_owned()),
        Err(fault) => Some(format!("whether pg_hba.conf is the one that is loaded (pg_stat_file: {fault})")),
    }
}

impl Hba {
    /// The rules in rows of the view, each as JSON.
    fn of<'a>(rows: impl Iterator<Item = &'a str>, tls: bool) -> Result<Self, Fault> {
        let all = rows.map(Rule::of).collect::<Result<Vec<_>, _>>()?;
        let (broken, mut rules): (Vec<_>, Vec<_>) = all.into_iter().partition(|rule| rule.error.is_some());
        rules.sort_by_key(|rule| rule.order);
        let left = |(number, rule): (usize, &Rule)| -> Vec<Way> {
            rule.ways(tls).filter(|way| rules[..number].leave(rule, *way)).collect()
        };
        let left = rules.iter().enumerate().map(left).collect();
        Ok(Self { rules, broken, left, age: None })
    }

    /// What of the rules could not be judged.
    fn doubts(&self) -> Vec<String> {
        let broken =
            self.broken.iter().map(|rule| format!("line {} ({}): the file was not loaded", rule.line, rule.why()));
        broken.chain(self.age.clone()).collect()
    }

    /// Rules that let clients in without their having to prove who they are.
    pub fn of_authentication(&self) -> Rules {
        let has = |rule: &Rule, option: &str| rule.options.iter().any(|own| own == option);
        let weak = |rule: &Rule, ways: &[Way]| -> Option<Weakness> {
            match rule.method.as_str() {
                "trust" if has(rule, "clientcert=verify-full") => None,
                "trust" if has(rule, "clientcert=verify-ca") => {
                    Some(("lets everyone with some certificate be anyone", &PG_AUTHN_NO_PASSWORD))
                }
                "trust" => Some(("lets everyone in", &PG_AUTHN_NO_PASSWORD)),
                "ident" if rule.kind != "local" => Some(("believes the client's machine", &PG_AUTHN_NO_PASSWORD)),
                "password" | "ldap" | "pam" | "bsd" | "radius"
                    if ways.contains(&Way::Plaintext) && !rule.ranges.iter().all(Range::is_loopback) =>
                {
                    Some(("has passwords sent in the clear", &PG_AUTHN_WEAK_METHOD))
                }
                _ => None,
            }
        };
        let mut rules = self.judge(weak, "write scram-sha-256 for them and reload");
        if rules.findings.contains(&&PG_AUTHN_NO_PASSWORD) {
            let shadowed = self.rules.iter().zip(&self.left).filter(|(rule, left)| left.is_empty() && rule.is_strict());
            let words: Vec<_> = shadowed
                .map(|(rule, _)| {
                    format!("line {} ({}) is never reached, lines above it take all", rule.line, rule.text())
                })
                .collect();
            if !words.is_empty() {
                rules.findings.push(&PG_AUTHN_SHADOWED_RULE);
            }
            rules.exceptions.extend(words);
        }
        rules
    }

    /// True where some connection comes to a rule with the method `md5`, which takes SCRAM as well as an MD5 hash.
    pub fn takes_md5(&self) -> bool {
        self.rules.iter().zip(&self.left).any(|(rule, left)| rule.method == "md5" && !left.is_empty())
    }

    /// The maps of `pg_ident.conf` that rules name.
    pub fn maps(&self) -> Vec<String> {
        let reached = self.rules.iter().zip(&self.left).filter(|(_, left)| !left.is_empty());
        let names = reached.flat_map(|(rule, _)| rule.options.iter().filter_map(|option| option.strip_prefix("map=")));
        names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Rules that let clients in whose bytes are not encrypted.
    pub fn of_transport(&self) -> Rules {
        self.judge(serves_plaintext, "write hostssl for host and reload")
    }

    /// The same rules for the claim that nobody is served in plaintext.
    ///
    /// # Errors
    /// The rule for which the server has not loaded the file.
    pub fn in_plaintext(&self) -> Result<Whole, Fault> {
        if let Some(rule) = self.broken.first() {
            return Err(Fault::Wrong(format!("pg_hba.conf, line {}: {}", rule.line, rule.why())));
        }
        let exceptions = self.found(serves_plaintext).map(|(rule, _)| rule.exception()).collect();
        Ok(Whole { source: SOURCE, exceptions, doubts: self.age.iter().cloned().collect() })
    }

    /// The same of rules for replicas.
    pub fn of_replication(&self) -> Rules {
        let plain = |rule: &Rule, ways: &[Way]| -> Option<Weakness> {
            let replicas = rule.databases.iter().any(|database| database == "replication");
            (replicas && ways.contains(&Way::Plaintext)).then_some(("serves replicas plaintext", &PG_TLS_REPLICATION))
        };
        self.judge(plain, "write hostssl for host and reload")
    }

    fn judge(&self, fault: impl Fn(&Rule, &[Way]) -> Option<Weakness>, remedy: &'static str) -> Rules {
        let mut rules = Rules {
            read: format!("{} rules of pg_hba.conf", self.rules.len()),
            remedy,
            doubts: self.doubts(),
            ..Rules::default()
        };
        for (rule, (words, finding)) in self.found(fault) {
            rules.exceptions.push(format!("line {} ({}) {words}", rule.line, rule.text()));
            rules.findings.push(finding);
        }
        rules
    }

    /// The rules for which `fault` finds something in what gets past the rules before them.
    fn found(&self, fault: impl Fn(&Rule, &[Way]) -> Option<Weakness>) -> impl Iterator<Item = (&Rule, Weakness)> {
        let reached = self.rules.iter().zip(&self.left).filter(|(_, left)| !left.is_empty());
        let letting_in = reached.filter(|(rule, _)| rule.method != "reject");
        letting_in.filter_map(move |(rule, left)| Some((rule, fault(rule, left)?)))
    }
}

fn serves_plaintext(_: &Rule, ways: &[Way]) -> Option<Weakness> {
    ways.contains(&Way::Plaintext).then_some(("serves plaintext", &PG_TLS_OPTIONAL))
}

/// Rules before another.
trait Before {
    /// True when some connection that `rule` matches and that comes by `way` matches none of these.
    fn leave(&self, rule: &Rule, way: Way) -> bool;
    /// True when all connections by `way` to `database` as `user` from `range` match one of these.
    fn take(&self, way: Way, database: &str, user: &str, range: &Range) -> bool;
}

impl Before for [Rule] {
    fn leave(&self, rule: &Rule, way: Way) -> bool {
        rule.databases.iter().any(|database| {
            let left = |user: &String, range| !self.take(way, database, user, range);
            rule.users.iter().any(|user| rule.ranges.iter().any(|range| left(user, range)))
        })
    }

    fn take(&self, way: Way, database: &str, user: &str, range: &Range) -> bool {
        let one = self.iter().any(|rule| rule.takes(way, database, user, range));
        // A name stands for addresses that are not known here.
        one || matches!(range, Range::Named(_))
            && EVERYWHERE.iter().all(|range| self.iter().any(|rule| rule.takes(way, database, user, range)))
    }
}

impl Rule {
    fn of(row: &str) -> Result<Self, Fault> {
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

    /// Ways by which its connections come to a server that speaks `tls` or not: `hostssl` lets nobody in then.
    fn ways(&self, tls: bool) -> impl Iterator<Item = Way> {
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

    /// True where it asks for a proof, or lets nobody in.
    fn is_strict(&self) -> bool {
        !matches!(self.method.as_str(), "trust" | "ident")
    }

    fn takes(&self, way: Way, database: &str, user: &str, range: &Range) -> bool {
        let holds = |list: &[String], name: &str| list.iter().any(|found| found == name);
        let databases =
            holds(&self.databases, database) || (database != "replication" && holds(&self.databases, "all"));
        let users = holds(&self.users, user) || holds(&self.users, "all");
        self.ways(true).any(|own| own == way) && databases && users && self.ranges.iter().any(|own| own.covers(range))
    }

    fn exception(&self) -> Exception {
        Exception {
            text: format!("line {}: {}", self.line, self.text()),
            loopback: self.ranges.iter().all(Range::is_loopback),
        }
    }

    fn why(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    fn text(&self) -> String {
        let parts = [&self.kind, &self.databases.join(","), &self.users.join(","), &self.address, &self.method];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        parts.join(" ")
    }
}

impl Range {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Net(own, length), Self::Net(other, longer)) => {
                length <= longer && own.is_ipv4() == other.is_ipv4() && first(*own, *length) == first(*other, *length)
            }
            (own, other) => own == other,
        }
    }

    /// True when nobody else's machine is in it.
    fn is_loopback(&self) -> bool {
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
            let length = ones(mask);
            (format!("{net}/{length}"), vec![Range::Net(net, length)])
        }
        _ if address.is_empty() => (String::new(), vec![Range::Here]),
        _ if address == "all" => (address.to_owned(), EVERYWHERE.to_vec()),
        _ => (address.to_owned(), vec![Range::Named(address.to_owned())]),
    }
}

/// The address as a number whose first bits are those of the address.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn first(address: IpAddr, length: u8) -> u128 {
    bits(address).checked_shr(128 - u32::from(length)).unwrap_or(0)
}

fn ones(mask: IpAddr) -> u8 {
    bits(mask).leading_ones() as u8
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// A row as PostgreSQL 15 gives it.
    fn row(line: i64, text: &str) -> String {
        let words: Vec<&str> = text.split(' ').collect();
        let (place, rest) = if words[0] == "local" { ("", &words[3..]) } else { (words[3], &words[4..]) };
        let (address, netmask) = match place.split_once('/') {
            Some((address, "32")) => (address, "255.255.255.255"),
            Some((address, "8")) => (address, "255.0.0.0"),
            Some((address, "9")) => (address, "255.128.0.0"),
            Some((address, "10")) => (address, "255.192.0.0"),
            Some((address, "16")) => (address, "255.255.0.0"),
            Some(("::", "0")) => ("::", "::"),
            Some((address, "0")) => (address, "0.0.0.0"),
            _ => (place, ""),
        };
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        serde_json::json!({
            "line_number": line, "type": words[0], "database": list(words[1]), "user_name": list(words[2]),
            "address": or_null(address), "netmask": or_null(netmask), "auth_method": rest[0],
            "options": rest[1..].to_vec(), "error": or_null(""),
        })
        .to_string()
    }

    fn parsed(lines: &[&str], tls: bool) -> Hba {
        let rows: Vec<String> = (1..).zip(lines).map(|(line, text)| row(line, text)).collect();
        Hba::of(rows.iter().map(String::as_str), tls).expect("rules")
    }

    fn check(lines: &[&str], tls: bool) -> String {
        let hba = parsed(lines, tls);
        let of =
            |rules: Rules| if rules.exceptions.is_empty() { "none".to_owned() } else { rules.exceptions.join("; ") };
        format!("authentication: {}\ntransport: {}\n", of(hba.of_authentication()), of(hba.of_transport()))
    }

    #[test]
    fn a_row_of_the_server_is_understood() {
        let row = r#"{"type": "host", "error": null, "address": "127.0.0.1", "netmask": "255.255.255.255", "options": null,
            "database": ["all"], "user_name": ["all"], "auth_method": "trust", "line_number": 97}"#;
        let hba = Hba::of([row].into_iter(), true).expect("rules");
        expect!["1 rules of pg_hba.conf: 1 exception: line 97 (host all all 127.0.0.1/32 trust) serves plaintext: write hostssl for host and reload"]
            .assert_eq(&hba.of_transport().words());
    }

    #[test]
    fn weak_rules_are_named_whomever_they_are_for() {
        expect![[r#"
            authentication: line 2 (host app app 10.0.0.0/8 trust) lets everyone in; line 4 (local all all trust) lets everyone in
            transport: line 2 (host app app 10.0.0.0/8 trust) serves plaintext
        "#]]
        .assert_eq(&check(
            &[
                "hostssl all all all scram-sha-256",
                "host app app 10.0.0.0/8 trust",
                "local all postgres peer",
                "local all all trust",
            ],
            true,
        ));
    }

    #[test]
    fn rules_that_no_connection_reaches_do_not_count() {
        // Plaintext is rejected above; the stricter rule above takes all that the weaker one is for.
        for lines in [
            &["hostnossl all,replication all all reject", "host all,replication all all scram-sha-256"][..],
            &["hostnossl all all 0.0.0.0/0 reject", "hostnossl all all ::/0 reject", "host all all all scram-sha-256"],
            &["hostnossl all all 0.0.0.0/0 reject", "hostnossl all all ::/0 reject", "host all all samenet md5"],
            &["hostssl all all all scram-sha-256", "hostssl all app 10.0.0.0/8 trust", "host all all all reject"],
            &["hostssl all all all trust clientcert=verify-full"],
        ] {
            assert_eq!(check(lines, true), "authentication: none\ntransport: none\n", "{lines:?}");
        }
        // `all` databases are not those of replicas, and 0.0.0.0/0 is not ::/0.
        expect![[r#"
            authentication: line 2 (host replication all 127.0.0.1/32 trust) lets everyone in
            transport: line 2 (host replication all 127.0.0.1/32 trust) serves plaintext; line 4 (host all all all scram-sha-256) serves plaintext
        "#]]
        .assert_eq(&check(
            &[
                "hostnossl all all 127.0.0.1/32 reject",
                "host replication all 127.0.0.1/32 trust",
                "hostnossl all all 0.0.0.0/0 reject",
                "host all all all scram-sha-256",
            ],
            true,
        ));
    }

    #[test]
    fn without_tls_its_rules_let_nobody_in() {
        assert_eq!(check(&["hostssl all all all trust"], false), "authentication: none\ntransport: none\n");
    }

    #[test]
    fn a_file_that_could_not_be_loaded_is_a_doubt() {
        let row = r#"{"line_number": 3, "type": null, "error": "end-of-line before authentication method"}"#;
        let hba = Hba::of([row].into_iter(), true).expect("rules");
        expect!["0 rules of pg_hba.conf: no exception; not judged: line 3 (end-of-line before authentication method): the file was not loaded"]
            .assert_eq(&hba.of_transport().words());
    }

    fn check_whole(lines: &[&str], expect: Expect) {
        let whole = parsed(lines, true).in_plaintext().expect("a file that is loaded");
        let line = |one: &Exception| format!("{}{}\n", one.text, if one.loopback { " (loopback)" } else { "" });
        expect.assert_eq(&whole.exceptions.iter().map(line).collect::<String>());
    }

    #[test]
    fn every_line_that_takes_plaintext_is_one() {
        check_whole(
            &[
                "local all all trust",
                "hostssl all all all scram-sha-256",
                "host all all 127.0.0.1/32 md5",
                "hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256",
                "host all other samenet trust",
                "hostgssenc all all all gss",
            ],
            expect![[r#"
                line 3: host all all 127.0.0.1/32 md5 (loopback)
                line 4: hostnossl otherdb ann,bob 10.0.0.0/8 scram-sha-256
                line 5: host all other samenet trust
            "#]],
        );
    }

    #[test]
    fn what_is_refused_before_is_none() {
        check_whole(
            &[
                "hostnossl all all 0.0.0.0/0 reject",
                "hostnossl all all ::/0 reject",
                "host all all all md5",
                "host all other 10.1.0.0/16 trust",
                "host replication all all md5",
                "host all all db.example md5",
            ],
            expect![[r#"
                line 5: host replication all all md5
            "#]],
        );
        // The other way round nobody is refused, and half of the addresses are not all.
        check_whole(
            &["host all all all md5", "hostnossl all all all reject"],
            expect![[r#"
                line 1: host all all all md5
            "#]],
        );
        check_whole(
            &[
                "hostnossl all all 10.0.0.0/9 reject",
                "host all all 10.64.0.0/10 md5",
                "host all all 10.128.0.0/9 md5",
                "host shop all 10.0.0.0/8 md5",
            ],
            expect![[r#"
                line 3: host all all 10.128.0.0/9 md5
                line 4: host shop all 10.0.0.0/8 md5
            "#]],
        );
    }

    #[test]
    fn a_file_with_an_error_is_not_what_the_server_goes_by() {
        let good = row(1, "host all all all md5");
        let broken = r#"{"line_number": 7, "type": null, "error": "invalid connection type \"hots\""}"#;
        let hba = Hba::of([good.as_str(), broken].into_iter(), true).expect("rules");
        expect!["wrong answer: pg_hba.conf, line 7: invalid connection type \"hots\""]
            .assert_eq(&hba.in_plaintext().expect_err("an error").to_string());
    }

    #[test]
    fn a_file_that_may_not_be_loaded_is_a_doubt_beside_what_it_says() {
        let hba = Hba { age: Some("changed".to_owned()), ..parsed(&["host all all all md5"], true) };
        let whole = hba.in_plaintext().expect("rules");
        assert_eq!((whole.exceptions.len(), whole.doubts), (1, vec!["changed".to_owned()]));
    }
}
