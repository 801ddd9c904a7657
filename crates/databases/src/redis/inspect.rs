//! The security matrix of a running Redis or Valkey.

pub mod hops;
mod reach;
mod recorders;
pub mod rules;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    recording::{Recording, Sent},
    setup::Setup,
};

use self::{
    hops::{Ports, ports},
    reach::{EVERYTHING, Ground, detours, hash_of, reach, shared_passwords, shows_names},
    rules::Account,
};
use super::{
    connection::{RedisConnection, Reply},
    store::info,
    target::of_clients,
};
use crate::{
    evidence::Attempt,
    findings,
    inspect::{
        Judgement, Rules, authentication, client_rows, counted, inspect_feature, named, not_offered, of_administrators,
    },
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = RedisConnection::open(&target)?;
    let method = connection.method().to_owned();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| tls.suite());
    let ports = ports(&mut connection, target.port);
    let accounts = accounts(&mut connection);
    let others = hops::other_servers(&mut connection);
    let narrowed = |judged: Judgement| match judged.state {
        State::Unseen => judged,
        _ => judged.doubted_by(&others),
    };
    let came_in = who_comes_in(&target, &method, &accounts, &ports, &mut connection);
    let mut seen = vec![narrowed(came_in).of(Feature::Authentication)];
    let clients = narrowed(hops::clients(&target, &tls, &ports));
    let clients = match hops::old_tls(&mut connection, &ports) {
        Some(doubt) => clients.doubted(&doubt),
        None => clients,
    };
    seen.extend(client_rows(clients));
    let version = info(&mut connection, "server", "redis_version").map(Option::unwrap_or_default);
    let major = |version: &String| version.split('.').next().and_then(|major| major.parse().ok());
    let major = version.as_ref().ok().and_then(major);
    let mut ground = Ground::ask(&mut connection, major.unwrap_or(7));
    if let Err(fault) = version {
        ground.doubts.push(format!("what version 6 leaves open ({fault})"));
    }
    let authorisation = match major {
        Some(..6) => Judgement::whole(State::Off, NO_ACCOUNTS),
        _ => authorisation(&accounts, &ground, &mut connection),
    };
    seen.push(narrowed(authorisation).of(Feature::Authorisation));
    seen.push(inspect_feature(Feature::NodeToNode, || hops::between_servers(&mut connection, &ports)));
    let slow_log = recorders::slow_log(&mut connection);
    let files = recorders::files(&mut connection).unwrap_or_else(|fault| format!("which files values reach: {fault}"));
    let watched = recorders::watched(&mut connection);
    let auditing = recorders::of_commands(&mut connection, &slow_log, watched.as_deref());
    let slow_log = slow_log.unwrap_or_else(|fault| format!("the slow log: {fault}"));
    let watched = watched.map_or(String::new(), |words| format!("; {words}"));
    let at_rest = format!("Redis encrypts no file; a volume below it may; {files}; {slow_log}{watched}");
    seen.extend(not_offered(&[
        (Feature::AtRest, &at_rest),
        (Feature::Auditing, &auditing),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked again"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    Ok(seen)
}

/// Recorders that repeat values in plaintext. Passwords are not judged, because no check of Redis needs it.
///
/// # Errors
/// When the server cannot be reached.
pub fn recording(server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
    match sent {
        Sent::Values => Ok(Some(recorders::of_values(&mut RedisConnection::open(&of_clients(server, setup)?)?))),
        Sent::Passwords => Ok(None),
    }
}

fn open(target: &Target) -> Result<String, Fault> {
    Ok(RedisConnection::open(target)?.method().to_owned())
}

/// As [`open`], [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    open(&target.in_plaintext())
}

/// The right that an account needs to read the list of accounts.
const RIGHT: &str = "the account needs +acl|list";

/// Accounts that are on.
fn accounts(connection: &mut RedisConnection) -> Result<Vec<Account>, Fault> {
    let Reply::Array(lines) = connection.call(&["ACL", "LIST"])? else {
        return Err(Fault::Protocol("ACL LIST gave no list".to_owned()));
    };
    // From Redis 8.6 and Valkey 9 on, a certificate may log its client in as the account that it names.
    let by = connection.setting("tls-auth-clients-user").ok().flatten().unwrap_or_default();
    let by_certificate = !by.is_empty() && !by.eq_ignore_ascii_case("off");
    let accounts = lines.iter().filter_map(Reply::text).filter_map(|line| Account::read(&line));
    Ok(accounts.map(|account| Account { by_certificate, ..account }).collect())
}

/// The words by which a client without its certificate was refused; `None` if it was not, or if that is not known.
fn refusal(outcome: Result<String, Fault>) -> Option<String> {
    match Attempt::of(outcome) {
        Ok(Attempt::Refused(words)) => Some(words),
        // In version 1.2 of TLS the handshake itself fails.
        Err(Fault::Connection(words)) => Some(words),
        _ => None,
    }
}

/// How clients log in, with an attempt without the certificate if this one has any.
fn who_comes_in(
    target: &Target,
    method: &str,
    accounts: &Result<Vec<Account>, Fault>,
    ports: &Result<Ports, Fault>,
    connection: &mut RedisConnection,
) -> Judgement {
    let certificate = hops::without_certificate(target).and_then(refusal);
    of_logins(target, method, certificate.as_deref(), (accounts, ports), connection)
}

/// The judgement of a client that logged in by `method`, and was refused without its `certificate` by these words.
/// Every client must show one if the TLS port requires it and there is no other port.
fn of_logins(
    target: &Target,
    method: &str,
    certificate: Option<&str>,
    (accounts, ports): (&Result<Vec<Account>, Fault>, &Result<Ports, Fault>),
    connection: &mut RedisConnection,
) -> Judgement {
    let only_port = ports.as_ref().is_ok_and(|ports| ports.plain == "0");
    let asks_all = certificate.is_some_and(asks_for_certificate);
    let by_certificate = asks_all && only_port;
    let mut rules = accounts.as_ref().map(|accounts| of_passwords(accounts, by_certificate)).map_err(Clone::clone);
    match (certificate, method) {
        (Some(words), "none") => {
            let seen = format!("by client certificate; without one: refused ({words})");
            if let (Ok(rules), Ok(ports), false) = (&mut rules, ports, only_port || !asks_all) {
                rules.exceptions.push(format!("port {} asks for no certificate", ports.plain));
            }
            let mut setting = |name: &str| connection.setting(name).ok().flatten().unwrap_or_default();
            if let (Ok(rules), true) = (&mut rules, asks_all) {
                beside_certificates(&setting("unixsocket"), &setting("unixsocketperm"), rules);
            }
            Judgement::account(State::Enforced, seen).with_rules(rules, RIGHT)
        }
        _ => {
            let mut seen = authentication(target, method, open);
            if seen.state == State::Off {
                let value = connection.setting("protected-mode").ok().flatten().filter(|value| value == "yes");
                let local =
                    value.map_or("", |_| "; other machines are refused while no password is set (protected-mode)");
                seen.seen.push_str(local);
            }
            seen.with_rules(rules, RIGHT)
        }
    }
}

/// True if a client without a certificate was refused for that, by these words. A client that is asked for a password
/// may log in without a certificate.
fn asks_for_certificate(words: &str) -> bool {
    !words.starts_with("NOAUTH")
}

/// Adds to `rules` that the Unix socket at `path`, if there is one, asks for no certificate. Its `permissions` are in
/// octal digits; 0 leaves them to the server's umask.
fn beside_certificates(path: &str, permissions: &str, rules: &mut Rules) {
    const OTHERS_WRITE: u32 = 0o022;
    if path.is_empty() {
        return;
    }
    let socket = format!("the Unix socket {path}");
    match u32::from_str_radix(permissions, 8) {
        Ok(mode) if mode & OTHERS_WRITE != 0 => {
            rules.exceptions.push(format!("{socket} asks for no certificate (unixsocketperm = {permissions})"));
        }
        Ok(1..) => {}
        _ => rules.doubts.push(format!("who can connect to {socket} without a certificate (unixsocketperm)")),
    }
}

/// The password that attackers try first.
const SAMPLE: &str = "foobared";

fn of_passwords(accounts: &[Account], by_certificate: bool) -> Rules {
    let open: Vec<&Account> = accounts.iter().filter(|account| account.is_open()).collect();
    let (empty, sample) = (hash_of(""), hash_of(SAMPLE));
    let exception = |account: &&Account| {
        let name = &account.name;
        let has = |hash: &String| account.hashes.contains(hash);
        Some(match account {
            account if account.comes_freely && by_certificate => return None,
            account if account.comes_freely => format!("`{name}` logs in without a password (nopass)"),
            _ if has(&empty) => format!("`{name}` has an empty password"),
            _ if has(&sample) => format!("`{name}` has the password of the sample configuration"),
            _ if has(&hash_of(name)) => format!("`{name}` has its name as its password"),
            _ => return None,
        })
    };
    let exceptions: Vec<String> = open.iter().filter_map(exception).collect();
    let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::REDIS_AUTHN_OPEN_ACCOUNT] };
    // This connection is that of an account: such a service checks its clients by something else, as by IAM.
    let doubt = open.is_empty().then(|| "how accounts log in: the list has no password".to_owned());
    Rules {
        read: format!("{} of ACL LIST", counted(open.len(), "account")),
        exceptions,
        doubts: doubt.into_iter().collect(),
        remedy: "ACL SETUSER … resetpass >PASSWORD, or off",
        findings,
    }
}

/// Why an old version limits nobody.
const NO_ACCOUNTS: &str = "before version 6 there are no accounts: every client that is let in may do everything";

/// A key that belongs to nobody.
const NOBODYS: &str = "someone:else";

/// What all accounts may do; if their list is refused to this one, whether it may read a key that is not its own.
fn authorisation(
    accounts: &Result<Vec<Account>, Fault>,
    ground: &Ground,
    connection: &mut RedisConnection,
) -> Judgement {
    match accounts {
        Ok(accounts) => limits(accounts, ground),
        Err(fault @ Fault::Refused(_)) => of_this_account(connection.call(&["GET", NOBODYS]).map(drop), fault),
        Err(fault) => Judgement::unseen(fault.to_string()),
    }
}

/// The judgement of an account to which the list of `accounts` is refused, from its read of a key of somebody else.
fn of_this_account(read: Result<(), Fault>, accounts: &Fault) -> Judgement {
    // Rights are checked before the place of the key and its kind.
    let passes = |words: &str| ["MOVED ", "WRONGTYPE "].iter().any(|code| words.starts_with(code));
    let others = format!("the list of accounts: {accounts}; {RIGHT} to judge others");
    match read {
        Err(Fault::Refused(words)) => {
            Judgement::account(State::Enforced, format!("keys of others: refused ({words}); {others}"))
        }
        Err(fault) if !matches!(&fault, Fault::Server(words) if passes(words)) => {
            Judgement::unseen(format!("keys of others: {fault}; {others}"))
        }
        _ => Judgement::account(State::Available, format!("this account reads keys of others; {others}")),
    }
}

/// Which account becomes which: a single account with all rights is normal.
fn limits(accounts: &[Account], ground: &Ground) -> Judgement {
    let mut reach = reach(accounts, ground);
    let ways = reach.ways([EVERYTHING]);
    let open: Vec<&Account> = accounts.iter().filter(|account| account.is_open()).collect();
    let unlimited: Vec<String> = open.iter().filter_map(|account| Some(ways.of(&account.name)?.to_string())).collect();
    let limited = open.iter().filter(|account| ways.of(&account.name).is_none());
    let around: Vec<String> = limited.clone().flat_map(|account| detours(account, ground)).collect();
    let names: Vec<String> = limited.clone().filter_map(|account| shows_names(account, ground)).collect();
    let replicas: Vec<&str> = limited
        .clone()
        .filter(|account| account.is_for_replicas() && !account.leading.is_empty())
        .map(|account| account.name.as_str())
        .collect();
    let mut seen = format!("{} of {} may do everything (ACL LIST)", unlimited.len(), counted(open.len(), "account"));
    let state = match of_administrators(unlimited.len(), open.len()) {
        State::Enforced if !around.is_empty() => State::Available,
        state => state,
    };
    let mut add = |words: String| seen.push_str(&words);
    if !unlimited.is_empty() {
        add(format!(": {}", named(&unlimited)));
    }
    if !around.is_empty() {
        add(format!("; beyond its rights: {}", named(&around)));
    }
    if [State::Off, State::Available].contains(&state) {
        add(": ACL SETUSER … -@admin -@dangerous, with back what it needs".to_owned());
    }
    if !replicas.is_empty() {
        add(format!("; for replicas, which read all data: {}", replicas.join(", ")));
    }
    if !names.is_empty() {
        add(format!("; the names of all keys are shown to {}", named(&names)));
    }
    let shared = shared_passwords(accounts);
    if !shared.is_empty() {
        add(format!("; with the same password: {}", named(&shared)));
    }
    // Redis never has it.
    let missing: Vec<&str> = ground.missing.iter().copied().filter(|command| *command != "commandlog|get").collect();
    if !missing.is_empty() {
        add(format!("; commands that this server does not have: {}", missing.join(", ")));
    }
    if !ground.renamed.is_empty() {
        add(format!("; open to clients that know its other name (rename-command): {}", ground.renamed.join(", ")));
    }
    ground.doubts.iter().for_each(|doubt| add(format!("; not judged: {doubt}")));
    let hidden = ground.hidden(limited.copied());
    hidden.iter().for_each(|doubt| add(format!("; not judged: {doubt}")));
    let certain = ground.doubts.is_empty() && hidden.is_empty();
    let mut judged = if certain { Judgement::by_state(state, seen) } else { Judgement::account(state, seen) };
    if open.iter().any(|account| !account.has_everything() && ways.of(&account.name).is_some()) {
        judged = judged.found(&findings::REDIS_AUTHZ_REACHABLE_EVERYTHING);
    }
    if around.is_empty() { judged } else { judged.found(&findings::REDIS_AUTHZ_BEYOND_KEYS) }
}

#[cfg(test)]
mod tests;
