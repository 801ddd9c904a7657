//! The security matrix of a running Redis or Valkey.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, Scope, State},
    setup::Setup,
};

use super::{
    connection::{RedisConnection, Reply},
    store::info,
    target::of_clients,
};
use crate::{
    inspect::{Judgement, Rules, authentication, client_rows, inspect_feature, limited, not_offered, transport},
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
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    let offers = connection.setting("tls-port").map(|port| port.is_some_and(|port| port != "0"));
    let accounts = accounts(&mut connection);
    let of_all = |judge: fn(&[Account]) -> Rules| accounts.as_ref().map(|all| judge(all)).map_err(Clone::clone);
    let authentication = authentication(&target, &method, open).with_rules(of_all(of_authentication), RIGHT);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(client_transport(&target, &tls, offers, &mut connection)));
    seen.push(authorisation(&accounts).of(Feature::Authorisation));
    seen.push(inspect_feature(Feature::NodeToNode, || replication(&mut connection)));
    seen.extend(not_offered(&[
        (Feature::AtRest, "Redis encrypts no file; a volume below it may"),
        (Feature::Auditing, "ACL LOG keeps refusals only"),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked anew"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    Ok(seen)
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

/// Redis speaks plaintext on a port of its own, so plaintext on the port of TLS says nothing: the setting does, for
/// everybody.
fn client_transport(
    target: &Target,
    tls: &str,
    offers: Result<bool, Fault>,
    connection: &mut RedisConnection,
) -> Judgement {
    let seen = transport(target, tls, offers, plaintext);
    if target.tls.is_none() {
        return Judgement { scope: Scope::Server, ..seen };
    }
    match connection.setting("port") {
        Ok(Some(port)) if port == "0" => Judgement { scope: Scope::Server, ..seen },
        Ok(port) => {
            let port = port.unwrap_or_default();
            Judgement::whole(State::Available, format!("{tls}; plaintext: port {port}: set port 0"))
        }
        Err(fault) => Judgement::unseen(format!("{tls}; whether there is a plaintext port beside it: {fault}")),
    }
}

/// What an account needs to read the list of accounts.
const RIGHT: &str = "the account needs +acl|list";

/// An account that may log in.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    name: String,
    proves: bool,
    unlimited: bool,
}

/// Accounts that may log in.
fn accounts(connection: &mut RedisConnection) -> Result<Vec<Account>, Fault> {
    match connection.call(&["ACL", "LIST"])? {
        Reply::Array(lines) => Ok(lines.iter().filter_map(Reply::text).filter_map(|line| account(&line)).collect()),
        _ => Err(Fault::Protocol("ACL LIST gave no list".to_owned())),
    }
}

/// The account in a line of `ACL LIST`: `user NAME on|off`, then `nopass` or hashes of passwords, then rights; from
/// version 7 on further rights in parentheses (documentation, "ACL"). None where it is off.
fn account(line: &str) -> Option<Account> {
    let (own, others) = line.split_once('(').unwrap_or((line, ""));
    let words: Vec<&str> = own.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let name = words.get(1).filter(|_| has("on"))?;
    let unlimited = [own].into_iter().chain(others.split('(')).any(may_do_everything);
    Some(Account { name: format!("`{name}`"), proves: !has("nopass"), unlimited })
}

/// All keys and all commands; one that is taken away again limits little.
fn may_do_everything(rights: &str) -> bool {
    let has = |wanted: &str| rights.split([' ', ')']).any(|word| word == wanted);
    has("~*") && has("+@all") && !has("-@admin") && !has("-@dangerous")
}

fn of_authentication(accounts: &[Account]) -> Rules {
    let open = accounts.iter().filter(|account| !account.proves);
    Rules {
        read: format!("{} accounts of ACL LIST", accounts.len()),
        exceptions: open.map(|account| format!("{} comes without a password (nopass)", account.name)).collect(),
        remedy: "ACL SETUSER … resetpass >PASSWORD, or off",
        ..Rules::default()
    }
}

fn authorisation(accounts: &Result<Vec<Account>, Fault>) -> Judgement {
    match accounts {
        Ok(accounts) => {
            let unlimited = accounts.iter().filter(|account| account.unlimited);
            limited(&unlimited.map(|account| account.name.clone()).collect::<Vec<_>>(), accounts.len(), "ACL LIST")
        }
        Err(fault @ Fault::Refused(_)) => {
            Judgement::account(State::Enforced, format!("the list of accounts: {fault}; {RIGHT} to judge others"))
        }
        Err(fault) => Judgement::unseen(fault.to_string()),
    }
}

fn replication(connection: &mut RedisConnection) -> Result<Judgement, Fault> {
    let replicas = info(connection, "replication", "connected_slaves")?.unwrap_or_default();
    let role = info(connection, "replication", "role")?.unwrap_or_default();
    if role == "master" && replicas == "0" {
        return Ok(Judgement::unseen("no other server is connected"));
    }
    let tls = connection.setting("tls-replication")?.unwrap_or_default();
    let state = if tls == "yes" { State::Enforced } else { State::Off };
    Ok(Judgement::whole(state, format!("tls-replication = {tls}, {replicas} replicas")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::test_setup::{asked_in_plaintext, tried_in_plaintext};

    fn read(line: &str) -> Option<(bool, bool)> {
        account(line).map(|account| (account.proves, account.unlimited))
    }

    #[test]
    fn lines_of_accounts_are_understood() {
        let hash = "#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(read("user default on nopass ~* &* +@all"), Some((false, true)));
        assert_eq!(read("user default off nopass sanitize-payload ~* &* +@all"), None);
        let line = |rights: &str| format!("user app on sanitize-payload {hash} {rights}");
        assert_eq!(read(&line("resetchannels ~tithe:* -@all +@read +@write")), Some((true, false)));
        assert_eq!(read(&line("~* &* +@all")), Some((true, true)));
        assert_eq!(read(&line("~* resetchannels +@all -@dangerous")), Some((true, false)));
        assert_eq!(read(&line("~a -@all +get (~* resetchannels +@all)")), Some((true, true)));
        assert_eq!(account(&line("~* +@all")).map(|account| account.name), Some("`app`".to_owned()));
    }

    #[test]
    fn a_password_asked_for_in_plaintext_is_not_sent() {
        let asks = b"-NOAUTH Authentication required.\r\n+OK\r\n";
        expect!["available but not enforced: TLSv1.3; plaintext: served too"]
            .assert_eq(&asked_in_plaintext(asks, plaintext));
        expect!["enforced: TLSv1.3; plaintext: refused (at the first command: the server closed the connection: a port for TLS (`tls-port`) speaks nothing else; plaintext has a port of its own (`port`), to be named by a URL of its own (on a command line, `--plain URL`))"].assert_eq(&tried_in_plaintext(b"", plaintext).0);
    }
}
