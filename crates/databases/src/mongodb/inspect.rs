//! The security matrix of a running MongoDB.

mod accounts;
mod login;
mod options;
mod profilers;
mod records;

use mongodb::bson::{Document, doc};
use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    recording::{Recording, Sent},
    setup::Setup,
};

use self::{accounts::Accounts, login::Entrance, options::Options, profilers::Profilers};
use super::{
    build::{Build, ROUTER, STANDALONE, topology, unread},
    evidence::plaintext,
    link::Link,
    probe::probe,
    store::client,
    target::{door, of_clients},
};
use crate::{
    findings::{MONGODB_TLS_MEMBERS, MONGODB_TLS_OPTIONAL},
    inspect::{Judgement, Rules, client_rows, inspect_feature, not_offered, transport},
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = door(server, setup)?;
    let link = client(server, setup)?;
    let build = Build::ask(&link)?;
    let entrance = Entrance::open(&target, &of_clients(server, setup)?)?;
    let options = Options::ask(&link);
    let accounts = Accounts::read(&link);
    let topology = topology(&link)?;
    let tls = probe(&target)?.tls.map_or_else(String::new, |tls| tls.suite());
    let others = unread(&topology);
    // Accounts are those of all members, and options those of the server that was asked.
    let doubtful = |rules: Rules| {
        let doubts = rules.doubts.iter().cloned().chain(others.map(str::to_owned)).collect();
        Rules { doubts, ..rules }
    };
    let narrowed = |judged: Judgement| match (judged.state, others) {
        (State::Unseen | State::NotOffered, _) | (_, None) => judged,
        (_, Some(others)) => judged.doubted(others),
    };
    let offers = options.tls_mode().and_then(|now| offers_tls(now.mode.as_deref(), &build));
    let asks = login::rules(&options, &accounts, entrance.localhost_exception()).map(doubtful);
    let came_in = entrance.judge();
    let everybody = matches!(came_in.state, State::Off | State::Available);
    let authentication = came_in.with_rules(asks, options::RIGHT);
    let rules = of_transport(&options).map(doubtful);
    let transport = of_all_clients(transport(&target, &tls, offers, plaintext), target.is_socket(), rules);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(inspect_feature(Feature::Authorisation, || match everybody {
        true => nobody_is_limited(&link),
        false => authorisation(&link, &options, &accounts, (topology.as_str(), &build)),
    }));
    let profilers = Profilers::ask(&link);
    seen.push(inspect_feature(Feature::AtRest, || {
        let judged = records::at_rest(&options, &build, topology == ROUTER).map(narrowed)?;
        Ok(if build.is_foreign { judged } else { records::beside_files(judged, &options, &profilers) })
    }));
    seen.push(inspect_feature(Feature::Auditing, || {
        let judged = records::auditing(&options, &build, || records::runtime(&link)).map(narrowed)?;
        Ok(if build.is_foreign { judged } else { records::repeated(judged, &options, &profilers) })
    }));
    seen.push(inspect_feature(Feature::NodeToNode, || between_nodes(&topology, &options, &build).map(narrowed)));
    let cache = Judgement::unseen("accounts are kept in memory (the user cache); no command shows what it holds");
    seen.push(cache.of(Feature::AuthenticationCaching));
    seen.extend(not_offered(&[
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    if build.stand_in {
        seen.iter_mut().for_each(|cell| cell.seen = format!("{}: {}", build.title, cell.seen));
    }
    Ok(seen)
}

/// Recorders that repeat values in plaintext. Passwords are not judged, because no check needs it.
///
/// # Errors
/// When the server cannot be reached.
pub fn recording(server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
    if sent == Sent::Passwords {
        return Ok(None);
    }
    let link = client(server, setup)?;
    Ok(Some(records::of_values(&Options::ask(&link), &Profilers::ask(&link), &Build::ask(&link)?)))
}

/// Whether the server has TLS, from its `mode`. Without any, a MongoDB has none; another product does not report it.
fn offers_tls(mode: Option<&str>, build: &Build) -> Result<bool, Fault> {
    match mode {
        None if build.is_foreign => Err(Fault::Server("no option shows it".to_owned())),
        mode => Ok(mode.is_some_and(|mode| mode != "disabled")),
    }
}

/// The transport of all clients, from that of this one, as it was `judged`, and the rules.
fn of_all_clients(judged: Judgement, by_socket: bool, rules: Result<Rules, Fault>) -> Judgement {
    let judged = judged.for_networks(by_socket, &rules).with_rules(rules, options::RIGHT);
    match judged.state {
        State::Available | State::Off => judged.found(&MONGODB_TLS_OPTIONAL),
        _ => judged,
    }
}

/// One port applies to all clients.
fn of_transport(options: &Options) -> Result<Rules, Fault> {
    let now = options.tls_mode()?;
    let mut rules = Rules { read: now.read, remedy: "set requireTLS", ..Rules::default() };
    match now.mode.as_deref() {
        Some("requireTLS") => {}
        Some(mode) => rules.exceptions.push(format!("{mode} is not requireTLS")),
        None => rules.doubts.push("its replacement".to_owned()),
    }
    Ok(rules)
}

/// A client without an account has all rights, whatever roles accounts have.
fn nobody_is_limited(link: &Link) -> Result<Judgement, Fault> {
    Ok(match reads_others(link)? {
        true => Judgement::whole(
            State::Off,
            "clients without an account are served, and limited by no role: set security.authorization to enabled",
        ),
        false => Judgement::unseen("clients without an account are served; a database of someone else is refused"),
    })
}

/// True if the connected account reads a database of someone else.
fn reads_others(link: &Link) -> Result<bool, Fault> {
    match link.run("someone_else", doc! { "find": "someone_else", "limit": 1 }) {
        Ok(_) => Ok(true),
        Err(Fault::Refused(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// What all accounts may do, if the connected one may read them; otherwise what it may do itself. Accounts of another
/// product may do more than roles of MongoDB allow: those of FerretDB 1 have none, and may do everything.
fn authorisation(
    link: &Link,
    options: &Options,
    accounts: &Result<Accounts, Fault>,
    (topology, build): (&str, &Build),
) -> Result<Judgement, Fault> {
    let status = link.admin(doc! { "connectionStatus": 1, "showPrivileges": false })?;
    let judged = match accounts {
        Ok(accounts) if !accounts.is_empty() && !build.is_foreign => {
            accounts.judge(![STANDALONE, ROUTER].contains(&topology))
        }
        accounts => {
            let roles = roles(&status).join(", ");
            let judged = match reads_others(link)? {
                true => Judgement::account(State::Available, format!("this account ({roles}) reads every database")),
                false => {
                    let seen = format!("this account ({roles}) is refused a database of someone else");
                    Judgement::account(State::Enforced, seen)
                }
            };
            match accounts {
                Ok(_) if build.is_foreign => judged.doubted("others: whether this product limits them by their roles"),
                Ok(_) => judged.doubted("no account is in the server's own list"),
                Err(fault) => judged.doubted(&format!("others ({fault}): {}", accounts::RIGHT)),
            }
        }
    };
    Ok(unlisted(options, topology).into_iter().fold(judged, |judged, doubt| judged.doubted(doubt)))
}

/// The accounts that the list of a server with these `options` does not have.
fn unlisted(options: &Options, topology: &str) -> Vec<&'static str> {
    let by_groups = options.option(&["security", "ldap", "authz", "queryTemplate"]).is_ok_and(|it| it.is_some());
    let methods = options.parameter("authenticationMechanisms").ok().flatten();
    let by_tokens = methods.is_some_and(|methods| methods.contains("MONGODB-OIDC"));
    let all = [
        (by_groups, "accounts of LDAP, whose roles are those of their groups (security.ldap.authz)"),
        (by_tokens, "accounts of an identity provider, whose roles are in their tokens (MONGODB-OIDC)"),
        (topology == ROUTER, "accounts that single shards have for themselves: ask each shard"),
    ];
    all.into_iter().filter_map(|(is_so, doubt)| is_so.then_some(doubt)).collect()
}

/// The roles in an answer to `connectionStatus`.
fn roles(status: &Document) -> Vec<String> {
    let roles = status.get_document("authInfo").and_then(|info| info.get_array("authenticatedUserRoles"));
    let names = roles.map(Vec::as_slice).unwrap_or_default().iter().filter_map(|role| {
        let role = role.as_document()?;
        Some(format!("{} of {}", role.get_str("role").ok()?, role.get_str("db").ok()?))
    });
    names.collect()
}

/// The transport between members.
fn between_nodes(topology: &str, options: &Options, build: &Build) -> Result<Judgement, Fault> {
    if topology == STANDALONE {
        return Ok(Judgement::unseen("no other server is connected"));
    }
    let now = options.tls_mode()?;
    if build.is_foreign && now.mode.is_none() {
        return Ok(Judgement::unseen(format!("{topology}; no option of this product shows what is spoken")));
    }
    let takes_any = options.tls_option(&["allowInvalidCertificates"])?.as_deref() == Some("true");
    // With preferTLS members use TLS between each other and also accept plaintext; with allowTLS they do not use TLS
    // between each other.
    let state = match now.mode.as_deref() {
        Some("requireTLS") if !takes_any => State::Enforced,
        Some("requireTLS" | "preferTLS") => State::Available,
        _ => State::Off,
    };
    let any = if takes_any { ", members take any certificate (allowInvalidCertificates)" } else { "" };
    let judged = Judgement::whole(state, format!("{topology}, {}{any}", now.read));
    Ok(if state == State::Enforced { judged } else { judged.found(&MONGODB_TLS_MEMBERS) })
}

#[cfg(test)]
mod tests {
    use super::{options::tests::options, *};

    fn build(is_foreign: bool) -> Build {
        Build { title: "7.0".to_owned(), stand_in: is_foreign, is_foreign, is_community: false }
    }

    #[test]
    fn tls_that_another_product_does_not_report_may_be_there() {
        let (own, foreign) = (build(false), build(true));
        let offered = [Some("requireTLS"), Some("disabled"), None].map(|mode| offers_tls(mode, &own));
        assert_eq!(offered, [Ok(true), Ok(false), Ok(false)]);
        assert_eq!(offers_tls(Some("disabled"), &foreign), Ok(false));
        assert!(offers_tls(None, &foreign).is_err());
        let options = options(doc! {}, doc! {});
        let state = |build: &Build| between_nodes("replica set of 3", &options, build).expect("options").state;
        assert_eq!([state(&own), state(&foreign)], [State::Off, State::Unseen]);
    }

    #[test]
    fn members_are_judged_by_what_they_ask_for_now() {
        let state = |tls: Document, running: Document, topology: &str| {
            let options = options(doc! { "net": { "tls": tls } }, running);
            between_nodes(topology, &options, &build(false)).expect("options").state
        };
        let set = "replica set of 3";
        assert_eq!(state(doc! { "mode": "allowTLS" }, doc! {}, set), State::Off);
        assert_eq!(state(doc! { "mode": "allowTLS" }, doc! { "tlsMode": "requireTLS" }, set), State::Enforced);
        assert_eq!(state(doc! { "mode": "preferTLS" }, doc! {}, set), State::Available);
        let any = doc! { "mode": "requireTLS", "allowInvalidCertificates": true };
        assert_eq!(state(any, doc! {}, set), State::Available);
        assert_eq!(state(doc! {}, doc! {}, "standalone"), State::Unseen);
    }

    #[test]
    fn only_required_tls_is_required_of_clients() {
        let judged = |mode: &str| {
            let rules = of_transport(&options(doc! {}, doc! { "tlsMode": mode })).expect("options");
            (rules.exceptions.len(), rules.doubts.len())
        };
        assert_eq!(judged("requireTLS"), (0, 0));
        for mode in ["preferTLS", "allowTLS", "disabled"] {
            assert_eq!(judged(mode), (1, 0), "{mode}");
        }
        let unset = of_transport(&options(doc! {}, doc! {})).expect("options");
        assert_eq!((unset.exceptions.len(), unset.doubts.len()), (0, 1));
        let refused = || Err(Fault::Refused("no".to_owned()));
        assert!(of_transport(&Options { started: refused(), running: refused() }).is_err());
    }

    #[test]
    fn a_client_by_a_socket_does_not_lower_what_the_port_requires() {
        let judged = |by_socket: bool, mode: &str| {
            let own = Judgement::account(State::Available, "by a Unix socket, which no network sees");
            let rules = of_transport(&options(doc! {}, doc! { "tlsMode": mode }));
            let Judgement { state, findings, .. } = of_all_clients(own, by_socket, rules);
            (state, findings.len())
        };
        assert_eq!(judged(true, "requireTLS"), (State::Enforced, 0));
        assert_eq!(judged(true, "preferTLS"), (State::Available, 1));
        assert_eq!(judged(false, "requireTLS"), (State::Available, 1));
    }

    #[test]
    fn accounts_that_the_servers_list_does_not_have_are_doubts() {
        let doubts = |parsed: Document, methods: &[&str], topology: &str| {
            unlisted(&options(parsed, doc! { "authenticationMechanisms": methods }), topology).len()
        };
        let ldap = doc! { "security": { "ldap": { "authz": { "queryTemplate": "{USER}?memberOf?base" } } } };
        assert_eq!(doubts(doc! {}, &["SCRAM-SHA-256"], STANDALONE), 0);
        assert_eq!(doubts(ldap, &["PLAIN"], STANDALONE), 1);
        assert_eq!(doubts(doc! {}, &["SCRAM-SHA-256", "MONGODB-OIDC"], STANDALONE), 1);
        assert_eq!(doubts(doc! {}, &["MONGODB-OIDC"], ROUTER), 2);
    }

    #[test]
    fn roles_are_named_with_their_database() {
        let status = doc! { "authInfo": { "authenticatedUserRoles": [{ "role": "readWrite", "db": "tithe" }] } };
        assert_eq!(roles(&status), ["readWrite of tithe"]);
        assert_eq!(roles(&doc! {}), [""; 0]);
    }
}
