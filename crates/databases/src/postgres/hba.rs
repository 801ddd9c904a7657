//! Which clients may log in, and how: `pg_hba.conf` as the server's view `pg_hba_file_rules` shows it, judged without a
//! server.
//!
//! The first rule that matches a connection decides (documentation, "The pg_hba.conf File"). So a rule counts only if
//! some connection passes all rules before it: a `reject` or a stricter rule above it may leave it no connection.

mod before;
pub mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::FindingEntry, session::SqlSession as _};

use self::{
    before::Before,
    rule::{Hop, Range, Rule, Way},
};
use super::session::PostgresSession;
use crate::{
    evidence::whole::Whole,
    findings::{
        PG_AUTHN_NO_PASSWORD, PG_AUTHN_SHADOWED_RULE, PG_AUTHN_WEAK_METHOD, PG_TLS_OPTIONAL, PG_TLS_REPLICATION,
    },
    inspect::{Rules, counted, named},
};

/// Where the rules are seen, in findings.
const SOURCE: &str = "pg_hba_file_rules";

/// The privilege that an account needs to read the rules.
pub const RIGHT: &str = "the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), \
                         pg_stat_file(text), and the role pg_read_all_settings";

/// The rules of a server that were read.
pub struct Hba {
    rules: Vec<Rule>,
    /// Whether the server has TLS.
    tls: bool,
    /// Rules with errors that stop the server from loading the file. It keeps the rules that it had, which cannot be
    /// read.
    broken: Vec<Rule>,
    /// For each rule that some connections reach: which hops, and in which ways.
    left: Vec<Vec<(Hop, Way)>>,
    /// Why the file may not be the one that is loaded.
    age: Option<String>,
    /// Why words that look like keywords may be names.
    quoted: Option<String>,
    /// The view does not show that a rule asks its directory by `ldaps`.
    hides_ldaps: bool,
    /// Only rules for the Unix socket are among `rules`, because the server listens on no address.
    is_local: bool,
}

/// What is wrong with a rule: in words, and the finding's stable name.
type Weakness = (&'static str, &'static FindingEntry);

/// Reads the rules.
///
/// # Errors
/// The server's error: only superusers may read the rules, and accounts to which it was granted.
pub fn read(session: &mut PostgresSession) -> Result<Hba, Fault> {
    let rows = session.run("SELECT to_jsonb(r) FROM pg_hba_file_rules r")?;
    let lines = rows.iter().flatten().flatten().map(String::as_str);
    let mut hba = Hba::of(lines, session.value("SHOW ssl")? == "on")?;
    if session.value("SHOW listen_addresses").is_ok_and(|addresses| addresses.trim().is_empty()) {
        hba = hba.without_network();
    }
    hba.age = doubt_of_age(session);
    hba.quoted = hba.doubt_of_quotes(session.value(QUOTED));
    let version = session.value("SHOW server_version_num").ok().and_then(|version| version.parse().ok());
    hba.hides_ldaps = hides_ldaps(version.unwrap_or(0));
    Ok(hba)
}

/// True of releases whose view leaves the option `ldapscheme` out (PostgreSQL's bug 18769).
fn hides_ldaps(version: u32) -> bool {
    const SHOWN_FROM: [u32; 5] = [130_019, 140_016, 150_011, 160_007, 170_003];
    let of_major = SHOWN_FROM.into_iter().find(|first| first / 10_000 == version / 10_000);
    of_major.map_or(version < 130_000, |first| version < first)
}

/// The files with quoted keywords. In quotes a keyword is a name, and the view shows it without them
/// (`token_is_keyword` and `fill_hba_line` in PostgreSQL's hba.c).
const QUOTED: &str = r#"SELECT coalesce(string_agg(f.name, ', '), '') FROM (SELECT DISTINCT coalesce(to_jsonb(r)->>'file_name',
    current_setting('hba_file')) AS name FROM pg_hba_file_rules r) f
    WHERE pg_read_file(f.name) ~ '(^|\n)[^#\n]*"((all|replication|sameuser|samerole|samegroup)"|[+])'"#;

/// The view shows the file, which can differ from the rules that the server has loaded.
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
        let (broken, mut rules): (Vec<_>, Vec<_>) = all.into_iter().partition(Rule::is_broken);
        rules.sort_by_key(|rule| rule.order);
        let left = left(&rules, tls, |_| true);
        Ok(Self { rules, tls, broken, left, age: None, quoted: None, hides_ldaps: false, is_local: false })
    }

    /// The same of a server that listens on no address (`listen_addresses`): no connection matches the other rules.
    fn without_network(mut self) -> Self {
        self.rules.retain(|rule| rule.kind == "local");
        Self { left: left(&self.rules, self.tls, |_| true), is_local: true, ..self }
    }

    /// From the answer to [`QUOTED`]. An account that may not read the files only has a doubt if quotes would let
    /// connections reach a further rule.
    fn doubt_of_quotes(&self, files: Result<String, Fault>) -> Option<String> {
        match files {
            Ok(files) if files.is_empty() => None,
            Ok(files) => Some(format!("quoted words of {files}, which are names and look like keywords")),
            Err(fault) => {
                let if_quoted = left(&self.rules, self.tls, |rule| !rule.has_keywords());
                let mut rules = self.rules.iter().zip(self.left.iter().zip(&if_quoted));
                let reaches_more = rules.any(|(rule, (left, if_quoted))| rule.method != "reject" && left != if_quoted);
                reaches_more.then(|| format!("whether words of pg_hba.conf are quoted (pg_read_file: {fault})"))
            }
        }
    }

    /// Which rules could not be judged.
    fn doubts(&self) -> Vec<String> {
        let broken: Vec<_> = self.broken.iter().map(|rule| format!("line {} ({})", rule.line, rule.why())).collect();
        let broken = (!broken.is_empty()).then(|| format!("{}: the file was not loaded", named(&broken)));
        broken.into_iter().chain(self.age.clone()).chain(self.quoted.clone()).collect()
    }

    /// Rules that let clients in without authentication.
    pub fn of_authentication(&self) -> Rules {
        let has = |rule: &Rule, option: &str| rule.options.iter().any(|own| own == option);
        let asks_in_the_clear =
            |rule: &Rule| rule.method == "ldap" && !has(rule, "ldaptls=true") && !has(rule, "ldapscheme=ldaps");
        let exposes = |rule: &Rule, left: &[(Hop, Way)]| {
            left.iter().any(|(_, way)| *way == Way::Plaintext) && !rule.ranges.iter().all(Range::is_loopback)
        };
        let weak = |rule: &Rule, left: &[(Hop, Way)]| -> Option<Weakness> {
            match rule.method.as_str() {
                "trust" if has(rule, "clientcert=verify-full") => None,
                "trust" if has(rule, "clientcert=verify-ca") => {
                    Some(("lets anyone with a certificate log in as any account", &PG_AUTHN_NO_PASSWORD))
                }
                "trust" => Some(("lets everyone in", &PG_AUTHN_NO_PASSWORD)),
                "ident" if rule.kind != "local" => Some(("trusts the client's machine", &PG_AUTHN_NO_PASSWORD)),
                "ldap" if asks_in_the_clear(rule) && !self.hides_ldaps => {
                    Some(("has passwords sent to the directory in the clear", &PG_AUTHN_WEAK_METHOD))
                }
                "password" | "ldap" | "pam" | "bsd" | "radius" if exposes(rule, left) => {
                    Some(("has passwords sent in the clear", &PG_AUTHN_WEAK_METHOD))
                }
                // A bearer token lets in everyone who reads it (RFC 6750, section 5).
                "oauth" if exposes(rule, left) => Some(("has tokens sent in the clear", &PG_AUTHN_WEAK_METHOD)),
                _ => None,
            }
        };
        let mut rules = self.judge(weak, "write scram-sha-256 for them and reload");
        if self.hides_ldaps {
            let untold = |rule: &Rule, _: &[(Hop, Way)]| asks_in_the_clear(rule).then_some(("", &PG_AUTHN_WEAK_METHOD));
            let doubt = |rule: &Rule| format!("whether line {} asks by ldaps, which this release hides", rule.line);
            rules.doubts.extend(self.found(untold).map(|(rule, _)| doubt(rule)));
        }
        // The server reports `include_realm` if it is on, as it is by default. Without it the name alone decides,
        // whichever realm it is of (documentation, "GSSAPI Authentication").
        let drops_realm = |rule: &Rule, _: &[(Hop, Way)]| {
            let keeps = |option: &String| option == "include_realm=true" || option.starts_with("krb_realm=");
            let drops = ["gss", "sspi"].contains(&rule.method.as_str()) && !rule.options.iter().any(keeps);
            drops.then_some(("", &PG_AUTHN_WEAK_METHOD))
        };
        let doubt = |rule: &Rule| {
            format!("whether line {} lets in users of other realms (include_realm=0 without krb_realm)", rule.line)
        };
        rules.doubts.extend(self.found(drops_realm).map(|(rule, _)| doubt(rule)));
        let shadowed = self.shadowed();
        if !shadowed.is_empty() {
            rules.findings.push(&PG_AUTHN_SHADOWED_RULE);
        }
        rules.exceptions.extend(shadowed.iter().map(|rule| {
            format!("line {} ({}) is never reached, because lines above it match first", rule.line, rule.text())
        }));
        rules
    }

    /// Strict rules that no connection reaches because of rules above them that are not strict.
    fn shadowed(&self) -> Vec<&Rule> {
        let mut strict = Before::default();
        let shadowed = self.rules.iter().zip(&self.left).filter(|(rule, left)| {
            let shadowed = left.is_empty() && rule.is_strict();
            let shadowed = shadowed && rule.reach(self.tls).any(|(hop, way)| strict.leave(rule, hop, way));
            if rule.is_strict() {
                strict.add(rule);
            }
            shadowed
        });
        shadowed.map(|(rule, _)| rule).collect()
    }

    /// True if some connection reaches a rule that accepts an MD5 hash: one with the method `md5`, or with `password`,
    /// which compares the password itself with a hash of either kind (`plain_crypt_verify` in PostgreSQL's crypt.c).
    pub fn takes_md5(&self) -> bool {
        let takes = |rule: &Rule| ["md5", "password"].contains(&rule.method.as_str());
        self.rules.iter().zip(&self.left).any(|(rule, left)| takes(rule) && !left.is_empty())
    }

    /// The maps of `pg_ident.conf` that rules name.
    pub fn maps(&self) -> Vec<String> {
        let reached = self.rules.iter().zip(&self.left).filter(|(_, left)| !left.is_empty());
        let names = reached.flat_map(|(rule, _)| rule.options.iter().filter_map(|option| option.strip_prefix("map=")));
        names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Rules that accept unencrypted client connections; replicas are not clients.
    pub fn of_transport(&self) -> Rules {
        self.judge(serves_plaintext, "change host to hostssl and reload")
    }

    /// The same rules, for the claim that no client is served in plaintext.
    ///
    /// # Errors
    /// The rule that stopped the server from loading the file.
    pub fn in_plaintext(&self) -> Result<Whole, Fault> {
        if let Some(rule) = self.broken.first() {
            return Err(Fault::Wrong(format!("pg_hba.conf, line {}: {}", rule.line, rule.why())));
        }
        let exceptions = self.found(serves_plaintext).map(|(rule, _)| rule.exception()).collect();
        Ok(Whole { source: SOURCE, exceptions, doubts: self.age.iter().chain(&self.quoted).cloned().collect() })
    }

    /// The same of rules for replicas.
    pub fn of_replication(&self) -> Rules {
        self.of_replicas(&[Hop::Replicas])
    }

    /// The same for a server with `wal_level = logical`: a replica that receives single changes comes to a database, by
    /// the rules for clients (`check_db` in PostgreSQL's hba.c).
    pub fn of_logical_replication(&self) -> Rules {
        self.of_replicas(&[Hop::Replicas, Hop::Clients])
    }

    /// Rules that accept unencrypted connections of replicas, which come by `hops`.
    fn of_replicas(&self, hops: &[Hop]) -> Rules {
        let plain = |_: &Rule, left: &[(Hop, Way)]| -> Option<Weakness> {
            hops.iter()
                .any(|hop| left.contains(&(*hop, Way::Plaintext)))
                .then_some(("serves replicas plaintext", &PG_TLS_REPLICATION))
        };
        self.judge(plain, "change host to hostssl and reload")
    }

    fn judge(&self, fault: impl Fn(&Rule, &[(Hop, Way)]) -> Option<Weakness>, remedy: &'static str) -> Rules {
        let local = if self.is_local { " for the Unix socket (listen_addresses is empty)" } else { "" };
        let mut rules = Rules {
            read: format!("{} of pg_hba.conf{local}", counted(self.rules.len(), "rule")),
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

    /// The rules for which `fault` finds something in the connections that pass the rules before them.
    fn found(
        &self,
        fault: impl Fn(&Rule, &[(Hop, Way)]) -> Option<Weakness>,
    ) -> impl Iterator<Item = (&Rule, Weakness)> {
        let reached = self.rules.iter().zip(&self.left).filter(|(_, left)| !left.is_empty());
        let letting_in = reached.filter(|(rule, _)| rule.method != "reject");
        letting_in.filter_map(move |(rule, left)| Some((rule, fault(rule, left)?)))
    }
}

/// For each of `rules`, which connections pass those before it for which `takes` holds.
fn left(rules: &[Rule], tls: bool, takes: impl Fn(&Rule) -> bool) -> Vec<Vec<(Hop, Way)>> {
    let mut before = Before::default();
    let left = rules.iter().map(|rule| {
        let left = rule.reach(tls).filter(|(hop, way)| before.leave(rule, *hop, *way)).collect();
        if takes(rule) {
            before.add(rule);
        }
        left
    });
    left.collect()
}

fn serves_plaintext(_: &Rule, left: &[(Hop, Way)]) -> Option<Weakness> {
    left.contains(&(Hop::Clients, Way::Plaintext)).then_some(("serves plaintext", &PG_TLS_OPTIONAL))
}
