//! The security matrix of a running server: the rows that are checked in the same way on both products.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, FindingEntry, Scope, State},
    reach::Ways,
    session::{SqlSession as _, Table},
    setup::Setup,
};

use super::{
    Flavour,
    access::{Access, demand},
    accounts::{self, Account, Gate, ReadAccounts},
    proof::CACHING_SHA2,
    recorders::{self, Kept, Recorder, Settings},
    replication::{self, ReadSources, Source, has_option},
    rights::{Rights, has_everywhere},
    schema::{YCSB_DIALECT, hops_of},
    session::WireSession,
    ways::{self, ALL_RIGHTS, EVERYTHING},
};
use crate::{
    evidence::Attempt,
    findings::{
        MY_AUDIT_OFF, MY_AUDIT_PARTIAL, MY_AUTHN_NO_PROOF, MY_AUTHN_NOBODY_ASKED, MY_AUTHN_REPEATS_PASSWORDS,
        MY_AUTHZ_ADMINISTRATORS, MY_AUTHZ_REACHABLE_ADMINISTRATOR, MY_AUTHZ_READS_PASSWORDS,
        MY_AUTHZ_SWITCHES_PROTECTIONS, MY_REST_NOT_ENCRYPTED, MY_REST_REPEATS_VALUES, MY_TLS_OPTIONAL,
    },
    hops::{Hops, let_in_by},
    inspect::{
        Judgement, Open, Rules, authentication, client_rows, counted, doubt_of_old_tls, has_old_tls, inspect_feature,
        named, not_offered, of_administrators, transport,
    },
    target::{Target, is_local},
};

/// How one product checks its own rows.
pub struct InspectionQueries {
    /// Opens and closes a connection.
    pub open: Open,
    /// As [`Access::plaintext`].
    pub plaintext: Open,
    /// True for a grant, as `SHOW GRANTS` writes it, that lets an account read the table of accounts.
    pub is_of_administrator: fn(&str) -> bool,
    /// All accounts and roles.
    pub accounts: ReadAccounts,
    /// What decides how far their privileges reach, and who is a member of which role.
    pub roles: fn(&mut WireSession, &mut Rights) -> Result<(), Fault>,
    /// Encryption at rest.
    pub at_rest: fn(&mut WireSession, &Settings) -> Result<Judgement, Fault>,
    /// Auditing.
    pub auditing: fn(&mut WireSession, &Settings) -> Result<Judgement, Fault>,
    /// Has the server abort slow statements, so that only the one row degrades.
    pub hurry: &'static str,
    /// The servers from which this one replicates.
    pub sources: ReadSources,
}

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(flavour: &Flavour, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let queries = flavour.queries;
    let target = flavour.access.product.target(server, setup)?;
    let mut session = flavour.access.open(&target)?;
    let method = flavour.access.method(&mut session, &target);
    let hops = hops_of(&mut session)?;
    // A server without such a limit is not limited.
    let _ = session.run(queries.hurry);
    let accounts = (queries.accounts)(&mut session);
    let gate = Gate::read(&mut session)?;
    let of_all =
        |judge: &dyn Fn(&[Account]) -> Rules| accounts.as_ref().map(|accounts| judge(accounts)).map_err(Clone::clone);
    let without_rights = is_without_rights(&mut session);
    let settings = Settings::read(&mut session);
    let authentication = if without_rights {
        without_rights_at_all()
    } else {
        by_certificate(&mut session, &target, queries.open)
            .unwrap_or_else(|| authentication(&target, &method, queries.open))
            .with_rules(of_all(&|accounts| accounts::of_authentication(accounts, gate)), accounts::RIGHT)
    };
    let authentication = match hops.between {
        Some(between) => let_in_by(between, authentication),
        None => authentication,
    };
    let rules = of_all(&|accounts| accounts::of_transport(accounts, gate)).map(|mut rules| {
        rules.doubts.extend(settings.as_ref().ok().and_then(old_tls));
        rules
    });
    let clients = of_clients(&target, &hops, session.offers_tls(), queries.plaintext, rules);
    let authentication = match &settings {
        Ok(settings) => with_settings(authentication, settings),
        Err(_) => authentication,
    };
    let mut rights = accounts.and_then(|holders| Rights::read(&mut session, holders, queries.roles));
    let sources = (queries.sources)(&mut session);
    if let Ok(rights) = &mut rights {
        rights.powers.is_replica = sources.as_ref().is_ok_and(|sources| !sources.is_empty());
    }
    let mut reach = rights.as_ref().map(Rights::reach).map_err(Clone::clone);
    let (switching_off, reading) = match (&rights, &mut reach) {
        (Ok(rights), Ok(reach)) => (rights.switching_off(reach), rights.reading_hashes(reach)),
        _ => (Vec::new(), Vec::new()),
    };
    // The account that asks may have the right to read the table of accounts for that alone.
    let asker = session.account();
    let (own, reading): (Vec<String>, Vec<String>) =
        reading.into_iter().partition(|way| asker.as_ref().is_ok_and(|name| way.starts_with(name.as_str())));
    let ways = reach.as_mut().map(|reach| reach.ways([EVERYTHING])).map_err(|fault| fault.clone());
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(clients);
    seen.push(inspect_feature(Feature::Authorisation, || match (&rights, &ways) {
        _ if without_rights => Ok(without_rights_at_all()),
        (Ok(rights), Ok(ways)) => {
            let mut judged = of_rights(rights, ways, &switching_off, &reading);
            if !own.is_empty() {
                judged.seen.push_str("; this account reads the hashes of all passwords");
            }
            Ok(judged)
        }
        _ => authorisation(&mut session, queries.is_of_administrator),
    }));
    let mut of_settings = |feature, judge: &dyn Fn(&mut WireSession, &Settings) -> Result<Judgement, Fault>| {
        seen.push(inspect_feature(feature, || judge(&mut session, settings.as_ref().map_err(Clone::clone)?)));
    };
    of_settings(Feature::AtRest, &queries.at_rest);
    of_settings(Feature::Auditing, &|session, settings| (queries.auditing)(session, settings).map(of_audit));
    of_settings(Feature::NodeToNode, &|session, settings| replication::judge(session, settings, &sources));
    seen.push(inspect_feature(Feature::ProxyRoles, || {
        let (rights, ways) = (rights.as_ref().map_err(Clone::clone)?, ways.as_ref().map_err(Clone::clone)?);
        Ok(of_proxies(rights, ways))
    }));
    let caching = if method == CACHING_SHA2 { State::Enforced } else { State::NotOffered };
    let words = if method == CACHING_SHA2 { format!("by {method}") } else { format!("not by {method}") };
    seen.push(Judgement::account(caching, words).of(Feature::AuthenticationCaching));
    seen.extend(not_offered(&[(Feature::JmxAuthentication, "no Java virtual machine")]));
    Ok(seen)
}

/// The rows about the client's connection and about the one behind what ends TLS. Both are the same if nothing does;
/// then `rules` apply to all clients.
fn of_clients(
    target: &Target,
    hops: &Hops,
    offers_tls: bool,
    plaintext: Open,
    rules: Result<Rules, Fault>,
) -> [FeatureStatus; 2] {
    let own = transport(target, &hops.client, Ok(offers_tls), plaintext);
    let Some([own, behind]) = hops.split(|| own.clone()) else {
        // If the server has no TLS at all, every account gives the same result.
        return client_rows(match own.state {
            State::Off => own,
            _ => own.for_networks(target.is_socket(), &rules).with_rules(rules, accounts::RIGHT),
        });
    };
    let found = |judged: Judgement| {
        let is_open = [State::Off, State::Available].contains(&judged.state);
        if is_open { judged.found(&MY_TLS_OPTIONAL) } else { judged }
    };
    [found(own).of(Feature::Transport), found(behind).of(Feature::ClientToNode)]
}

/// The doubt about old versions of TLS, if the server's settings allow some.
fn old_tls(settings: &Settings) -> Option<String> {
    let versions = settings.value("tls_version");
    has_old_tls(versions).then(|| doubt_of_old_tls("tls_version", versions))
}

/// Adds to `judged`, the row of authentication, who may claim any source address, and what repeats the passwords that
/// statements set.
fn with_settings(mut judged: Judgement, settings: &Settings) -> Judgement {
    let proxies = settings.value("proxy_protocol_networks");
    if proxies.split(',').any(|network| ["*", "0.0.0.0/0", "::/0"].contains(&network.trim())) {
        judged.seen += &format!(
            "; proxy_protocol_networks = {proxies}: every client may claim any address, so that the hosts of \
             accounts restrict no client"
        );
        judged.state = if judged.state == State::Enforced { State::Available } else { judged.state };
        judged = judged.found(&MY_AUTHN_NO_PROOF);
    }
    let names = recorders::of_passwords(settings);
    if names.is_empty() {
        return judged;
    }
    let seen = format!("{}; passwords that statements set are kept in the clear, by {}", judged.seen, names.join(", "));
    Judgement { seen, ..judged }.found(&MY_AUTHN_REPEATS_PASSWORDS)
}

/// Connects without its certificate, if the account needs one in the place of a password.
fn by_certificate(session: &mut WireSession, target: &Target, open: Open) -> Option<Judgement> {
    target.tls.as_ref().filter(|tls| tls.identity.is_some() && target.password.is_none())?;
    let made = session.value("SHOW CREATE USER CURRENT_USER()").ok()?;
    let demand = demand(&made).filter(|demand| ["X509", "ISSUER", "SUBJECT"].contains(demand))?;
    let words = format!("by the client's certificate (REQUIRE {demand})");
    Some(match Attempt::of(open(&target.without_certificate())) {
        Ok(Attempt::Refused(refusal)) => {
            Judgement::account(State::Enforced, format!("{words}; without it: refused ({refusal})"))
        }
        Ok(Attempt::Served) => Judgement::account(State::Available, format!("{words}; without it: served too")),
        Err(fault) => Judgement::unseen(format!("{words}; without it: {fault}")),
    })
}

/// The judgement of a server that was started without access control.
fn without_rights_at_all() -> Judgement {
    let seen = "the server runs with skip_grant_tables: everybody comes in and may do everything";
    Judgement::whole(State::Off, seen).found(&MY_AUTHN_NOBODY_ASKED)
}

/// True if the server has no access control: it then refuses to report privileges.
fn is_without_rights(session: &mut WireSession) -> bool {
    matches!(session.run("SHOW GRANTS"), Err(fault) if fault.to_string().contains("skip-grant-tables"))
}

/// How many ways are shown.
const SHOWN: usize = 5;

/// Accounts that have all privileges, or can get them, and those that may switch protections off, or are `reading`
/// hashes of passwords, without that. A single administrator is normal; one of a name counts once, whatever its hosts.
fn of_rights(rights: &Rights, ways: &Ways<'_>, switching_off: &[String], reading: &[String]) -> Judgement {
    let holders = || rights.holders.iter().filter(|holder| holder.opens());
    let all: BTreeSet<&str> = holders().map(|holder| holder.user.as_str()).collect();
    let mut unlimited: BTreeMap<&str, String> = BTreeMap::new();
    let mut is_reached = false;
    for holder in holders() {
        let text = holder.text();
        if !ways.has(&text) {
            continue;
        }
        // Ways are long, and few are shown.
        let shown = unlimited.len() <= SHOWN;
        if let Some(way) = Some(()).filter(|()| shown || !is_reached).and_then(|()| ways.of(&text)) {
            is_reached |= way.steps != [(EVERYTHING, ALL_RIGHTS)];
            unlimited.entry(&holder.user).or_insert_with(|| ways::words(&way));
        } else {
            unlimited.entry(&holder.user).or_default();
        }
    }
    let limits = of_administrators(unlimited.len(), all.len());
    let state = match limits {
        State::Enforced if !switching_off.is_empty() || !reading.is_empty() => State::Available,
        state => state,
    };
    let names: Vec<String> = unlimited.into_values().collect();
    let mut seen = format!("{} of {} may do everything", names.len(), counted(all.len(), "account"));
    if !names.is_empty() {
        seen.push_str(&format!(": {}", named(&names)));
    }
    if names.len() > 1 {
        seen.push_str(": REVOKE what leads there");
    }
    if !switching_off.is_empty() {
        seen.push_str(&format!("; {}", named(switching_off)));
    }
    if !reading.is_empty() {
        seen.push_str(&format!("; {}", named(reading)));
    }
    let doubts = [rights.unread.clone(), rights.unjudged_routines(ways), rights.unjudged_views(ways)].concat();
    let mut judgement = Judgement::by_state(state, seen);
    if !doubts.is_empty() {
        judgement.scope = Scope::Account;
        judgement.seen.push_str(&format!("; not judged: {}", named(&doubts)));
    }
    if is_reached {
        judgement = judgement.found(&MY_AUTHZ_REACHABLE_ADMINISTRATOR);
    }
    if limits != State::Enforced {
        judgement = judgement.found(&MY_AUTHZ_ADMINISTRATORS);
    }
    if !switching_off.is_empty() {
        judgement = judgement.found(&MY_AUTHZ_SWITCHES_PROTECTIONS);
    }
    if reading.is_empty() { judgement } else { judgement.found(&MY_AUTHZ_READS_PASSWORDS) }
}

/// Accounts that may act as another, or as a role.
fn of_proxies(rights: &Rights, ways: &Ways<'_>) -> Judgement {
    let (found, unread) = (rights.proxies(ways), rights.unread_of_proxies());
    let judged = match found.len() {
        0 if unread.is_empty() => Judgement::whole(State::Off, "no account may act as another or as a role"),
        0 => Judgement::unseen("no way is shown by which an account may act as another or as a role"),
        count => Judgement::whole(
            State::Available,
            format!("{} by which an account may act as another or as a role: {}", counted(count, "way"), named(&found)),
        ),
    };
    if unread.is_empty() { judged } else { judged.doubted(&named(&unread)) }
}

/// Only administrators can read the table of accounts, and accounts to which it was granted.
fn authorisation(session: &mut WireSession, is_of_administrator: fn(&str) -> bool) -> Result<Judgement, Fault> {
    let grants = session.run("SHOW GRANTS")?;
    if grants.iter().flatten().flatten().any(|grant| is_of_administrator(grant)) {
        return Ok(Judgement::unseen("the account has all privileges: nothing is refused to it"));
    }
    let leading = leading(grants.iter().flatten().flatten());
    Ok(match session.run("SELECT COUNT(*) FROM mysql.user") {
        Err(fault @ Fault::Refused(_)) if !leading.is_empty() => {
            let leading = named(&leading);
            Judgement::unseen(format!("where its {leading} may lead is not judged; the table of accounts: {fault}"))
        }
        Err(fault @ Fault::Refused(_)) => {
            Judgement::account(State::Enforced, format!("the table of accounts: {fault}"))
        }
        Err(fault) => Judgement::unseen(fault.to_string()),
        Ok(_) => Judgement::account(State::Available, "an account without all privileges reads the table of accounts"),
    })
}

/// Privileges on all databases that give an account nothing of others.
const LEADING_NOWHERE: [&str; 8] = [
    "BINLOG MONITOR",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "PROCESS",
    "REPLICATION CLIENT",
    "SHOW DATABASES",
    "SLAVE MONITOR",
    "USAGE",
];

/// What of `grants`, as `SHOW GRANTS` writes them, may lead to all privileges: roles, and privileges on all databases
/// or on the server's own.
fn leading<'a>(grants: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut leading = Vec::new();
    let given = grants.filter_map(|grant| Some(grant.strip_prefix("GRANT ")?.split_once(" TO ")?.0));
    for given in given {
        match given.split_once(" ON ") {
            None => leading.push(given.to_owned()),
            Some((rights, object)) if ["*.*", "`%`.*", "`mysql`.*"].contains(&object) => {
                let rights = rights.split(',').map(str::trim);
                leading.extend(rights.filter(|right| !LEADING_NOWHERE.contains(right)).map(str::to_owned));
            }
            Some(_) => {}
        }
    }
    leading
}

/// What recorders other than a product's own audit log keep, as the row of auditing. The general log and the slow query
/// log have filters that every session can change, so they are never judged as enforced.
pub fn recorded(settings: &Settings) -> (State, String) {
    let recorders = [recorders::general(settings), recorders::slow(settings)];
    let every = recorders.iter().any(|recorder| recorder.kept == Kept::Every);
    let words: Vec<String> = recorders.iter().map(Recorder::seen).collect();
    (if every { State::Available } else { State::Off }, words.join(", "))
}

/// Log tables that hold plaintext records, including those from before the log was switched off.
pub fn log_tables(session: &mut WireSession, exceptions: &mut Vec<String>, doubts: &mut Vec<String>) {
    for table in ["general_log", "slow_log"] {
        match session.run(&format!("SELECT 1 FROM mysql.{table} LIMIT 1")) {
            Ok(rows) if rows.is_empty() => {}
            Ok(_) => exceptions.push(format!("mysql.{table} holds statements in the clear: TRUNCATE it")),
            Err(fault) => doubts.push(format!("mysql.{table} (GRANT SELECT ON mysql.{table}: {fault})")),
        }
    }
}

/// What is in plaintext on a server that `takes` changes from others and whose logs of changes are `encrypted`,
/// including in a cluster; and what a crash writes.
pub fn other_files(
    takes: Result<Vec<Source>, Fault>,
    (name, encrypted): (&str, bool),
    settings: &Settings,
    exceptions: &mut Vec<String>,
    doubts: &mut Vec<String>,
) {
    match takes {
        Ok(sources) if !sources.is_empty() && !encrypted => {
            exceptions.push(format!("relay logs, which hold the changes of others, are not encrypted ({name})"));
        }
        Ok(_) => {}
        Err(fault) => doubts.push(format!("whether there are relay logs ({fault})")),
    }
    if settings.is_in_cluster() && !has_option(settings.value("wsrep_provider_options"), "gcache.encryption") {
        exceptions.push("the cluster's cache of changes (galera.cache) is in the clear".to_owned());
    }
    if settings.is_on("core_file") {
        exceptions.push("core_file = ON: a crash writes memory into a file in the clear".to_owned());
    }
}

/// The exceptions of encryption at rest, by their stable names: files in plaintext, and `leaks`, logs that repeat
/// encrypted values.
pub fn of_files(exceptions: &[String], leaks: &[String]) -> Vec<&'static FindingEntry> {
    let mut findings: Vec<&FindingEntry> = Vec::new();
    if !exceptions.is_empty() {
        findings.push(&MY_REST_NOT_ENCRYPTED);
    }
    if !leaks.is_empty() {
        findings.push(&MY_REST_REPEATS_VALUES);
    }
    findings
}

/// Adds the finding for this state to a row of auditing.
fn of_audit(judgement: Judgement) -> Judgement {
    match judgement.state {
        State::Off => judgement.found(&MY_AUDIT_OFF),
        State::Available => judgement.found(&MY_AUDIT_PARTIAL),
        _ => judgement,
    }
}

/// True if `file`, of a server whose data folder is `folder`, is in that folder.
pub fn lies_in(file: &str, folder: &str) -> bool {
    let file = Path::new(file);
    file.is_relative() || file.starts_with(folder)
}

/// A table of another engine than InnoDB, and its entries in the list of tables.
pub struct OtherTable {
    /// `database.table`.
    pub name: String,
    /// Storage engine.
    pub engine: String,
    /// `ROW_FORMAT`.
    pub row_format: String,
}

/// Tables outside the server's own databases that other engines keep in files. The second part is `Err` if this account
/// cannot see the tables of all databases.
///
/// # Errors
/// The server's error.
pub fn other_tables(session: &mut WireSession) -> Result<(Vec<OtherTable>, Vec<String>), Fault> {
    // MariaDB has a type of its own for tables that keep their old rows.
    let sql = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME), ENGINE, IFNULL(ROW_FORMAT, '') FROM information_schema.TABLES \
               WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN \
               ('mysql', 'information_schema', 'performance_schema', 'sys') AND ENGINE NOT IN \
               ('InnoDB', 'MEMORY', 'BLACKHOLE', 'MRG_MyISAM', 'SEQUENCE', 'PERFORMANCE_SCHEMA', 'FEDERATED', 'SPIDER') \
               ORDER BY 1";
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    let tables = rows.map(|row| {
        let [name, engine, row_format] = row.map(Option::unwrap_or_default);
        OtherTable { name, engine, row_format }
    });
    let tables = tables.collect();
    // Other accounts are shown the tables that they have a right to.
    let doubts = if has_everywhere(session, &["SELECT"])? {
        Vec::new()
    } else {
        vec!["tables that this account is not shown (it needs GRANT SELECT ON *.*)".to_owned()]
    };
    Ok((tables, doubts))
}

/// Has an attached server write all of Tithe's own `table` to its file.
///
/// # Errors
/// The server's error, with the rights that are missing.
pub fn write_out(access: &Access, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if is_local(server) {
        return Ok(());
    }
    let mut session = access.administrator(server, setup)?;
    let export = format!("FLUSH TABLES {} FOR EXPORT", YCSB_DIALECT.qualified(&setup.space, table));
    session.run(&export).map_err(|fault| match fault {
        Fault::Refused(words) => Fault::Refused(format!(
            "FLUSH TABLES … FOR EXPORT needs GRANT RELOAD ON *.* and GRANT SELECT, LOCK TABLES ON `tithe`.*: {words}"
        )),
        fault => fault,
    })?;
    session.run("UNLOCK TABLES").map(drop)
}

/// The numbered files of a redo log in `folder`. Later versions of MySQL have a folder in their place.
pub fn redo_files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ib_logfile"));
    let mut files: Vec<PathBuf> = paths.filter(is_part).collect();
    files.sort();
    files
}

/// The file of `table` in `folder`, the parts of the `journal` and the `log`; `None` if the file cannot be read from
/// here. Its name is unique among servers but for replicas, so it is the one of this server or of its replica.
pub fn files(folder: &Path, journal: Vec<PathBuf>, log: Option<&str>, table: &Table) -> Option<Paths> {
    let file = folder.join("tithe").join(format!("{}.ibd", table.name));
    file.metadata().ok()?;
    Some(Paths { data: vec![file], journal, logs: log.map(|log| folder.join(log)).into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mysql_family::{
            accounts::{Right, Way},
            schema::SESSION_STATUS,
        },
        target::{Authority, Tls},
    };

    fn files_of(sources: usize, encrypted: bool, settings: &[(&str, &str)]) -> String {
        let source = || Source { host: "other".to_owned(), tls: true, verified: true };
        let takes = Ok((0..sources).map(|_| source()).collect());
        let (mut exceptions, mut doubts) = (Vec::new(), Vec::new());
        other_files(takes, ("encrypt_binlog", encrypted), &Settings::of(settings), &mut exceptions, &mut doubts);
        assert!(doubts.is_empty());
        exceptions.join("; ")
    }

    #[test]
    fn files_beside_tables_and_logs_of_its_own() {
        let galera = [("wsrep_on", "ON"), ("wsrep_provider", "/usr/lib/galera/libgalera_smm.so")];
        assert_eq!(files_of(0, false, &[]), "");
        assert_eq!(files_of(1, true, &[("wsrep_on", "OFF"), galera[1]]), "");
        assert_eq!(
            files_of(1, false, &galera),
            "relay logs, which hold the changes of others, are not encrypted (encrypt_binlog); the cluster's cache of \
             changes (galera.cache) is in the clear"
        );
        assert_eq!(files_of(0, true, &[("wsrep_on", "ON"), ("wsrep_provider", "none")]), "");
        // Of Percona XtraDB Cluster.
        let encrypted = ("wsrep_provider_options", "gcache.dir = /d; gcache.encryption = ON");
        assert_eq!(files_of(0, true, &[galera[0], galera[1], encrypted]), "");
        assert_eq!(
            files_of(0, true, &[("core_file", "ON")]),
            "core_file = ON: a crash writes memory into a file in the clear"
        );
    }

    #[test]
    fn the_way_behind_what_ends_tls_is_judged_by_itself() {
        let judged = |server: &str| {
            let target = Target { tls: Some(Tls::of_url(Authority::System, None)), ..Target::default() };
            let hops = Hops::of(Some("TLSv1.3 a".to_owned()), server.to_owned(), None, SESSION_STATUS);
            let refuses: Open = |_| Err(Fault::Refused("no TLS".to_owned()));
            of_clients(&target, &hops, true, refuses, Ok(Rules::default())).map(|row| row.state)
        };
        assert_eq!(judged("off"), [State::Enforced, State::Off]);
        assert_eq!(judged("TLSv1.2 b"), [State::Enforced; 2]);
    }

    #[test]
    fn an_account_that_reads_the_hashes_of_passwords_is_an_exception() {
        let judged = |reading: &[&str]| {
            let reading: Vec<String> = reading.iter().map(|way| (*way).to_owned()).collect();
            let account = |user: &str| Account { user: user.to_owned(), logs_in: true, ..Account::default() };
            let rights = Rights { holders: vec![account("app"), account("copies")], ..Rights::default() };
            let mut reach = rights.reach();
            let judgement = of_rights(&rights, &reach.ways([EVERYTHING]), &[], &reading);
            (judgement.state, judgement.seen, judgement.findings)
        };
        let none = "0 of 2 accounts may do everything".to_owned();
        let found = (State::Available, format!("{none}; copies → x"), vec![&MY_AUTHZ_READS_PASSWORDS]);
        assert_eq!(judged(&["copies → x"]), found);
        assert_eq!(judged(&[]), (State::Enforced, none, Vec::new()));
    }

    #[test]
    fn an_account_that_nobody_can_log_in_to_is_no_administrator() {
        let judged = |plugin: &str| {
            let account = |user: &str, rights: &[Right]| Account {
                user: user.to_owned(),
                host: "localhost".to_owned(),
                logs_in: true,
                ways: vec![Way::of(if user == "definer" { plugin } else { "unix_socket" }, "")],
                rights: rights.iter().copied().collect(),
                ..Account::default()
            };
            let all = [Right::Select, Right::Insert, Right::Update, Right::Delete, Right::CreateUser];
            let holders = vec![account("root", &all), account("definer", &all), account("app", &[])];
            let rights = Rights { holders, ..Rights::default() };
            let mut reach = rights.reach();
            let ways = reach.ways([EVERYTHING]);
            let seen = of_rights(&rights, &ways, &[], &[]).seen;
            seen.split(':').next().map(str::to_owned)
        };
        assert_eq!(judged("unix_socket").as_deref(), Some("2 of 3 accounts may do everything"));
        assert_eq!(judged("mysql_no_login").as_deref(), Some("1 of 2 accounts may do everything"));
    }

    #[test]
    fn privileges_of_the_account_may_lead_further() {
        let told = |grants: &[&str]| {
            let grants: Vec<String> = grants.iter().map(|given| format!("GRANT {given} TO `ann`@`%`")).collect();
            leading(grants.iter()).join("; ")
        };
        assert_eq!(told(&["USAGE ON *.*", "ALL PRIVILEGES ON `shop`.*", "PROCESS, SHOW DATABASES ON *.*"]), "");
        assert_eq!(told(&["PROCESS, SUPER, FILE ON *.*"]), "SUPER; FILE");
        assert_eq!(told(&["USAGE ON *.*", "INSERT ON `mysql`.*", "`dba`@`%`"]), "INSERT; `dba`@`%`");
    }

    #[test]
    fn hosts_that_clients_name_themselves_prove_nothing() {
        let judged = |networks: &str| {
            let settings = Settings::of(&[("proxy_protocol_networks", networks), ("log_raw", "OFF")]);
            with_settings(Judgement::whole(State::Enforced, "by a password"), &settings).state
        };
        assert_eq!(["", "10.0.0.1", "10.0.0.0/8,::1"].map(judged), [State::Enforced; 3]);
        assert_eq!(["*", "10.0.0.1, ::/0"].map(judged), [State::Available; 2]);
    }
}
