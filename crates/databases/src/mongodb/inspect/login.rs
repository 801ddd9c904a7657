//! How clients log in to a MongoDB.

use mongodb::{
    bson::doc,
    options::{AuthMechanism, ClientOptions},
};
use tithe_machine::fault::Fault;
use tithe_plugin::matrix::State;

use super::{
    super::{
        evidence::knock,
        link::Link,
        target::{direct, mechanism_name},
    },
    accounts::Accounts,
    options::{self, Options},
};
use crate::{
    evidence::Attempt,
    findings::{
        MONGODB_AUTHN_LOCALHOST_EXCEPTION, MONGODB_AUTHN_NOT_ASKED, MONGODB_AUTHN_OLD_HASH, MONGODB_AUTHN_WEAK_METHOD,
    },
    inspect::{Judgement, Rules, authentication, named},
    target::Target,
};

/// How the inspecting connection logged in.
pub struct Entrance {
    target: Target,
    mechanism: Option<AuthMechanism>,
    /// `none` if no login was required, [`NOT_IN`] if only the localhost exception serves the connection.
    method: String,
}

/// The method of a connection without an account to a server that requires one.
const NOT_IN: &str = "no account";

impl Entrance {
    /// Logs in as the user's URL says. Without an account, it finds out whether only the localhost exception serves it.
    ///
    /// # Errors
    /// As [`knock`].
    pub fn open(target: &Target, options: &ClientOptions) -> Result<Self, Fault> {
        let mechanism = options.credential.as_ref().and_then(|credential| credential.mechanism.clone());
        let came =
            |method: &str| Self { target: target.clone(), mechanism: mechanism.clone(), method: method.to_owned() };
        match knock(target, mechanism.clone()) {
            Ok(method) => Ok(came(&method)),
            Err(refusal @ Fault::Refused(_)) if options.credential.is_some() => {
                // An account may log in and still have no right to read anything.
                let link = Link::new(direct(target, mechanism.clone()))?;
                link.admin(doc! { "ping": 1 }).map_err(|_| refusal)?;
                Ok(came(mechanism.as_ref().map_or("SCRAM", mechanism_name)))
            }
            Err(refusal @ Fault::Refused(_)) => {
                let entrance = came(NOT_IN);
                let is_open = entrance.localhost_exception().is_some_and(|open| open == Ok(true));
                if is_open { Ok(entrance) } else { Err(refusal) }
            }
            Err(fault) => Err(fault),
        }
    }

    /// What happens to a client without the credentials of this connection.
    pub fn judge(&self) -> Judgement {
        if self.method == NOT_IN {
            return Judgement::account(State::Enforced, "without an account: refused");
        }
        if self.mechanism != Some(AuthMechanism::MongoDbX509) {
            return authentication(&self.target, &self.method, |target| knock(target, None));
        }
        let name = mechanism_name(&AuthMechanism::MongoDbX509);
        match Attempt::of(knock(&self.target.without_certificate(), None)) {
            Ok(Attempt::Refused(words)) => {
                let seen = format!("by {name} (client certificate); without one: refused ({words})");
                Judgement::account(State::Enforced, seen)
            }
            Ok(Attempt::Served) => {
                Judgement::account(State::Available, format!("by {name}; without a certificate: served too"))
            }
            Err(fault) => Judgement::unseen(format!("by {name}; without a certificate: {fault}")),
        }
    }

    /// Whether any user on the server's own machine may create the first account. `None` if it was not tried: the
    /// server requires no login, or is on another machine.
    pub fn localhost_exception(&self) -> Option<Result<bool, Fault>> {
        let near = ["127.0.0.1", "::1", "localhost"].contains(&self.target.host.as_str());
        (near && self.method != "none").then(|| localhost_exception(&self.target))
    }
}

/// Sends, without an account, a request that is only served by this exception: whether there is a replica set. It
/// changes nothing.
fn localhost_exception(target: &Target) -> Result<bool, Fault> {
    let anonymous = Target { password: None, must_ask: false, ..target.without_certificate() };
    match Link::new(direct(&anonymous, None))?.admin(doc! { "replSetGetStatus": 1 }) {
        Ok(_) => Ok(true),
        // `NoReplicationEnabled` and `NotYetInitialized`: rights are checked before.
        Err(Fault::Server(words)) if ["(code 76)", "(code 94)"].iter().any(|code| words.ends_with(code)) => Ok(true),
        Err(Fault::Refused(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// The remedy for most of the bypasses.
const REMEDY: &str = "correct the option, and restart the server";

/// What options and accounts show about all clients.
///
/// # Errors
/// Why the server does not say how it was started.
pub fn rules(
    options: &Options,
    accounts: &Result<Accounts, Fault>,
    exception: Option<Result<bool, Fault>>,
) -> Result<Rules, Fault> {
    let authorization = match options.option(&["security", "authorization"]) {
        Ok(authorization) => authorization,
        Err(fault) if exception == Some(Ok(true)) => {
            let mut rules = Rules { read: "replSetGetStatus without an account".to_owned(), ..Rules::default() };
            of_exception(accounts, exception, &mut rules);
            rules.doubts.push(format!("options ({fault}): {}", options::RIGHT));
            return Ok(rules);
        }
        Err(fault) => return Err(fault),
    };
    let members = [&["security", "keyFile"][..], &["security", "clusterAuthMode"]];
    let by_members = members.map(|path| options.option(path)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let by_members = by_members.iter().any(Option::is_some);
    let words = authorization.as_deref().unwrap_or("not set");
    let mut rules =
        Rules { read: format!("getCmdLineOpts: security.authorization = {words}"), remedy: REMEDY, ..Rules::default() };
    match (authorization.as_deref(), by_members) {
        (Some("enabled"), _) => {}
        // If members authenticate to each other, clients must authenticate too.
        (None, true) => rules.read.push_str(", and members authenticate each other, which asks clients as well"),
        (Some(value), false) => {
            rules.exceptions.push(format!("security.authorization is {value}"));
            rules.findings.push(&MONGODB_AUTHN_NOT_ASKED);
        }
        (Some(value), true) => rules.doubts.push(format!("what {value} means together with a key of members")),
        (None, false) => rules.doubts.push("its replacement".to_owned()),
    }
    if options.is_on(&["security", "transitionToAuth"])? {
        rules.exceptions.push("security.transitionToAuth gives clients without a login all rights".to_owned());
        rules.findings.push(&MONGODB_AUTHN_NOT_ASKED);
    }
    of_methods(options, &mut rules)?;
    of_exception(accounts, exception, &mut rules);
    if let Ok(accounts) = accounts {
        let old = accounts.by_sha1_alone();
        if !old.is_empty() {
            rules.read.push_str(&format!("; by SCRAM-SHA-1 alone, whose hash is made of MD5: {}", named(&old)));
            rules.findings.push(&MONGODB_AUTHN_OLD_HASH);
        }
    }
    Ok(rules)
}

/// Methods that the server accepts; some send a password or a token itself.
fn of_methods(options: &Options, rules: &mut Rules) -> Result<(), Fault> {
    let Some(methods) = options.parameter("authenticationMechanisms")? else { return Ok(()) };
    rules.read.push_str(&format!("; methods: {methods}"));
    let is_required = options.tls_mode()?.mode.as_deref() == Some("requireTLS");
    for (method, what) in [("PLAIN", "the password itself"), ("MONGODB-OIDC", "the token itself")] {
        if methods.contains(method) && !is_required {
            rules.exceptions.push(format!("{method} sends {what}, and TLS is not required"));
            rules.findings.push(&MONGODB_AUTHN_WEAK_METHOD);
        }
    }
    if methods.contains("SCRAM-SHA-1") && !methods.contains("SCRAM-SHA-256") && !methods.contains("X509") {
        rules.findings.push(&MONGODB_AUTHN_OLD_HASH);
    }
    Ok(())
}

/// A server without accounts lets any user of its machine create the first one.
fn of_exception(accounts: &Result<Accounts, Fault>, exception: Option<Result<bool, Fault>>, rules: &mut Rules) {
    let none = accounts.as_ref().is_ok_and(Accounts::is_empty);
    match exception {
        Some(Ok(true)) => {
            rules.exceptions.push(
                "the localhost exception is open: any user of this machine can make the first account".to_owned(),
            );
            rules.remedy = "make an administrator's account";
            rules.findings.push(&MONGODB_AUTHN_LOCALHOST_EXCEPTION);
        }
        Some(Err(fault)) => rules.doubts.push(format!("the localhost exception ({fault})")),
        None if none => rules.doubts.push("the localhost exception, from another machine".to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use mongodb::bson::Document;

    use super::{super::options::tests::options, *};

    #[test]
    fn methods_that_send_secrets_are_exceptions_unless_tls_is_required() {
        let judged = |methods: &[&str], mode: &str| {
            let options = options(doc! {}, doc! { "authenticationMechanisms": methods, "tlsMode": mode });
            let mut rules = Rules::default();
            of_methods(&options, &mut rules).expect("options");
            (rules.exceptions.len(), rules.findings)
        };
        for mode in ["disabled", "allowTLS", "preferTLS"] {
            assert_eq!(judged(&["PLAIN"], mode), (1, vec![&MONGODB_AUTHN_WEAK_METHOD]), "{mode}");
            assert_eq!(judged(&["MONGODB-OIDC"], mode), (1, vec![&MONGODB_AUTHN_WEAK_METHOD]), "{mode}");
            assert_eq!(judged(&["PLAIN", "MONGODB-OIDC"], mode).0, 2, "{mode}");
            assert_eq!(judged(&["SCRAM-SHA-256"], mode), (0, vec![]), "{mode}");
        }
        assert_eq!(judged(&["PLAIN", "MONGODB-OIDC"], "requireTLS"), (0, vec![]));
        // The older hash is a finding where there is no other way.
        assert_eq!(judged(&["SCRAM-SHA-1"], "requireTLS"), (0, vec![&MONGODB_AUTHN_OLD_HASH]));
        for other in ["SCRAM-SHA-256", "MONGODB-X509"] {
            assert_eq!(judged(&["SCRAM-SHA-1", other], "requireTLS"), (0, vec![]), "{other}");
        }
        assert_eq!(judged(&["MONGODB-X509"], "requireTLS"), (0, vec![]));
    }

    #[test]
    fn what_is_not_known_of_logins_is_a_doubt() {
        let refused = || Fault::Refused("no".to_owned());
        let judged = |security: Document,
                      accounts: &Result<Accounts, Fault>,
                      exception: Option<Result<bool, Fault>>| {
            let rules = rules(&options(doc! { "security": security }, doc! {}), accounts, exception).expect("options");
            (rules.exceptions.len(), rules.doubts.len(), rules.findings)
        };
        let on = || doc! { "authorization": "enabled" };
        let (unseen, none) = (Err(refused()), Ok(Accounts::default()));
        assert_eq!(judged(on(), &unseen, None), (0, 0, vec![]));
        assert_eq!(judged(on(), &none, None), (0, 1, vec![]), "the first account may be anybody's");
        assert_eq!(judged(on(), &none, Some(Ok(false))), (0, 0, vec![]));
        assert_eq!(judged(on(), &unseen, Some(Err(refused()))), (0, 1, vec![]));
        let open = vec![&MONGODB_AUTHN_LOCALHOST_EXCEPTION];
        assert_eq!(judged(on(), &none, Some(Ok(true))), (1, 0, open.clone()));
        let asks_nobody = vec![&MONGODB_AUTHN_NOT_ASKED];
        assert_eq!(judged(doc! { "authorization": "disabled" }, &unseen, None), (1, 0, asks_nobody.clone()));
        let with_key = || doc! { "authorization": "disabled", "keyFile": "/key" };
        assert_eq!(judged(with_key(), &unseen, None), (0, 1, vec![]));
        assert_eq!(judged(doc! { "clusterAuthMode": "x509" }, &unseen, None), (0, 0, vec![]));
        let converting = doc! { "authorization": "enabled", "transitionToAuth": true };
        assert_eq!(judged(converting, &unseen, None), (1, 0, asks_nobody));
        // An account that may not read the options still sees an open exception.
        let hidden = || Options { started: Err(refused()), running: Err(refused()) };
        let seen = rules(&hidden(), &unseen, Some(Ok(true))).expect("an exception");
        assert_eq!((seen.exceptions.len(), seen.doubts.len(), seen.findings), (1, 1, open));
        assert!(rules(&hidden(), &unseen, Some(Ok(false))).is_err() && rules(&hidden(), &unseen, None).is_err());
    }

    #[test]
    fn who_is_asked_follows_from_more_than_one_option() {
        let judged = |security: Document, methods: &[&str], exception: Option<bool>| {
            let running = doc! { "authenticationMechanisms": methods };
            let options = options(doc! { "security": security }, running);
            let accounts = Err(Fault::Refused("no".to_owned()));
            rules(&options, &accounts, exception.map(Ok)).expect("rules").words() + "\n"
        };
        let on = || doc! { "authorization": "enabled" };
        let text = [
            judged(on(), &["SCRAM-SHA-256"], Some(false)),
            judged(doc! { "keyFile": "/key" }, &["SCRAM-SHA-256"], None),
            judged(doc! { "authorization": "disabled" }, &["SCRAM-SHA-256"], None),
            judged(doc! {}, &["SCRAM-SHA-256"], None),
            judged(doc! { "keyFile": "/key", "transitionToAuth": true }, &["SCRAM-SHA-256"], None),
            judged(on(), &["SCRAM-SHA-256", "PLAIN"], Some(true)),
            judged(on(), &["MONGODB-OIDC"], None),
        ];
        expect![[r#"
            getCmdLineOpts: security.authorization = enabled; methods: ["SCRAM-SHA-256"]: no exception
            getCmdLineOpts: security.authorization = not set, and members authenticate each other, which asks clients as well; methods: ["SCRAM-SHA-256"]: no exception
            getCmdLineOpts: security.authorization = disabled; methods: ["SCRAM-SHA-256"]: 1 exception: security.authorization is disabled: correct the option, and restart the server
            getCmdLineOpts: security.authorization = not set; methods: ["SCRAM-SHA-256"]: no exception; not judged: its replacement
            getCmdLineOpts: security.authorization = not set, and members authenticate each other, which asks clients as well; methods: ["SCRAM-SHA-256"]: 1 exception: security.transitionToAuth gives clients without a login all rights: correct the option, and restart the server
            getCmdLineOpts: security.authorization = enabled; methods: ["SCRAM-SHA-256", "PLAIN"]: 2 exceptions: PLAIN sends the password itself, and TLS is not required; the localhost exception is open: any user of this machine can make the first account: make an administrator's account
            getCmdLineOpts: security.authorization = enabled; methods: ["MONGODB-OIDC"]: 1 exception: MONGODB-OIDC sends the token itself, and TLS is not required: correct the option, and restart the server
        "#]].assert_eq(&text.concat());
    }
}
