//! Which connections are encrypted: the client's own, the one behind a pooler, and those of replication.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    session::SqlSession as _,
};

use super::plaintext;
use crate::{
    findings::{PG_TLS_BEHIND_POOLER, PG_TLS_OPTIONAL, PG_TLS_REPLICATION},
    hops::Hops,
    inspect::{Judgement, Rules, client_rows, doubt_of_old_tls, has_old_tls, named, transport},
    postgres::{hba, session::PostgresSession},
    target::{Authority, Target, Tls},
};

/// The rows about the client's connection and about the one behind a pooler. Both are the same if there is no pooler.
///
/// # Errors
/// The server's error.
pub fn clients(
    session: &mut PostgresSession,
    target: &Target,
    hops: &Hops,
    rules: Result<Rules, Fault>,
) -> Result<[FeatureStatus; 2], Fault> {
    let rules = rules.map(|mut rules| {
        rules.doubts.extend(old_tls(session));
        rules
    });
    let found =
        |judged: Judgement| if judged.state == State::Enforced { judged } else { judged.found(&PG_TLS_OPTIONAL) };
    let of_client = |offers: Result<bool, Fault>| transport(target, &hops.client, offers, plaintext);
    let to_pooler = || of_client(if target.tls.is_some() { Ok(true) } else { has_tls(target) });
    let Some([own, behind]) = hops.split(to_pooler) else {
        let mut judged = of_client(session.value("SHOW ssl").map(|value| value == "on"));
        // If the server has no TLS at all, every rule gives the same result.
        if judged.state != State::Off {
            judged = judged.for_networks(target.is_socket(), &rules).with_rules(rules, hba::RIGHT);
        }
        return Ok(client_rows(found(judged)));
    };
    let behind = match behind.state {
        State::Off if is_by_socket(session) => {
            let between = hops.between.unwrap_or_default();
            let words = format!("{between}; behind it: by a Unix socket, which no network sees");
            Judgement::account(State::Available, words)
        }
        State::Off => behind.found(&PG_TLS_BEHIND_POOLER),
        _ => behind.with_rules(rules, hba::RIGHT),
    };
    Ok([found(own).of(Feature::Transport), behind.of(Feature::ClientToNode)])
}

/// The doubt about old versions of TLS, if the server allows some. Servers before version 12 have no such setting.
fn old_tls(session: &mut PostgresSession) -> Option<String> {
    const SETTING: &str = "ssl_min_protocol_version";
    let least = session.value(&format!("SHOW {SETTING}")).ok()?;
    // Without a value every version is allowed.
    (least.is_empty() || has_old_tls(&least)).then(|| doubt_of_old_tls(SETTING, &least))
}

/// True if the server says that its client, which may be a pooler, came by a Unix socket.
fn is_by_socket(session: &mut PostgresSession) -> bool {
    session.value("SELECT inet_client_addr() IS NULL").is_ok_and(|is_socket| is_socket == "t")
}

/// Whether the answering server or pooler has TLS. No password is sent, because its certificate is not checked here.
fn has_tls(target: &Target) -> Result<bool, Fault> {
    let tls = Some(Tls::of_url(Authority::Anyone, None));
    shows_tls(PostgresSession::open(&Target { tls, password: None, must_ask: false, ..target.clone() }, false))
}

/// Whether a server has TLS, from the outcome of opening a session with TLS.
fn shows_tls<T>(opened: Result<T, Fault>) -> Result<bool, Fault> {
    match opened {
        Ok(_) => Ok(true),
        Err(Fault::Refused(words)) if words.starts_with("TLS was asked for") => Ok(false),
        // It has shaken hands before it refused.
        Err(Fault::Refused(_)) => Ok(true),
        Err(fault) => Err(fault),
    }
}

/// Replication from this server and to it.
///
/// # Errors
/// The server's error.
pub fn replication(session: &mut PostgresSession, rules: Result<Rules, Fault>) -> Result<Judgement, Fault> {
    if session.value("SELECT pg_is_in_recovery()")? == "t" {
        let (source, sent) = (received(session)?, sent(session)?);
        return Ok(match sent {
            Some(sent) => as_bad_as(source, sent),
            None => source,
        });
    }
    let sent = sent(session)?;
    let is_alone = sent.is_none();
    let connected = sent.unwrap_or_else(|| Judgement::unseen("no other server is connected"));
    let connected = connected.with_rules(rules, hba::RIGHT);
    let judged = match subscriptions(session)? {
        None => connected,
        Some(Ok(Subscriptions { lax, secure })) if lax.is_empty() => {
            let noun = if secure == 1 { "subscription receives" } else { "subscriptions receive" };
            let seen = format!("{}; {secure} {noun} by TLS", connected.seen);
            match connected.state {
                State::Unseen if is_alone => Judgement::account(State::Enforced, seen),
                _ => Judgement { seen, ..connected },
            }
        }
        Some(Ok(Subscriptions { lax, .. })) => {
            let seen = format!("{}; subscriptions that may receive in plaintext: {}", connected.seen, named(&lax));
            Judgement { seen, state: State::Available, ..connected }
        }
        Some(Err(fault)) => connected.doubted(&format!("subscriptions (SELECT ON pg_subscription: {fault})")),
    };
    Ok(if judged.state == State::Available { judged.found(&PG_TLS_REPLICATION) } else { judged })
}

/// Both ways of a standby that sends on what it receives: the row is as good as the worse of them.
fn as_bad_as(source: Judgement, sent: Judgement) -> Judgement {
    let worst = [State::Off, State::Available, State::Unseen, State::Enforced];
    let is_one = |state: &State| source.state == *state || sent.state == *state;
    let state = worst.into_iter().find(is_one).unwrap_or(State::Unseen);
    let judged = Judgement { state, seen: format!("{}; {}", source.seen, sent.seen), ..source };
    if sent.state == State::Available { judged.found(&PG_TLS_REPLICATION) } else { judged }
}

/// The servers that receive from this one now; `None` if there are none.
///
/// # Errors
/// The server's error.
fn sent(session: &mut PostgresSession) -> Result<Option<Judgement>, Fault> {
    // An account that may not see other sessions is not shown their TLS state. A receiver without an address is on this
    // machine, at a Unix socket.
    let sql = "SELECT count(*), count(*) FILTER (WHERE NOT s.ssl), count(*) FILTER (WHERE s.ssl IS NULL) \
               FROM pg_stat_replication JOIN pg_stat_ssl s USING (pid) WHERE s.ssl IS NULL OR client_addr IS NOT NULL";
    let row = session.run(sql)?.into_iter().next().unwrap_or_default();
    let count = |number: usize| row.get(number).cloned().flatten().unwrap_or_default();
    Ok(match (count(0).as_str(), count(1).as_str(), count(2).as_str()) {
        ("0" | "", ..) => None,
        (all, "0", "0") => Some(Judgement::account(State::Enforced, format!("all {all} connected servers speak TLS"))),
        (all, "0", unseen) => Some(Judgement::unseen(format!(
            "of {unseen} of {all} connected servers this account is not shown what they speak: it needs pg_monitor"
        ))),
        (all, plain, _) => {
            Some(Judgement::account(State::Available, format!("{plain} of {all} connected servers speak plaintext")))
        }
    })
}

/// By which connections this server fetches the changes of others.
struct Subscriptions {
    /// Those that may be in plaintext, each with its mode.
    lax: Vec<String>,
    /// How many cannot.
    secure: usize,
}

/// The mode in a connection string, as libpq reads it: spaces and quotes may surround it.
const MODE: &str = "'sslmode *= *''?([a-z-]+)'";

/// Subscriptions, if there are any.
fn subscriptions(session: &mut PostgresSession) -> Result<Option<Result<Subscriptions, Fault>>, Fault> {
    if session.value("SELECT count(subname) FROM pg_subscription")? == "0" {
        return Ok(None);
    }
    let sql = format!(
        "SELECT mode IN ('disable', 'allow', 'prefer'), subname || ' (sslmode=' || mode || ')' FROM (SELECT subname, \
         coalesce(substring(subconninfo from {MODE}), 'prefer') AS mode FROM pg_subscription) s"
    );
    Ok(Some(session.run(&sql).map(|rows| {
        let (lax, secure): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.first().is_some_and(|lax| lax.as_deref() == Some("t")));
        let names = lax.into_iter().filter_map(|row| row.into_iter().nth(1).flatten());
        Subscriptions { lax: names.collect(), secure: secure.len() }
    })))
}

/// For a standby that is receiving: the mode that its connection requested.
fn received(session: &mut PostgresSession) -> Result<Judgement, Fault> {
    let sql = format!(
        "SELECT coalesce(substring(conninfo from {MODE}), CASE WHEN conninfo IS NULL THEN '' ELSE 'prefer' END) FROM \
         pg_stat_wal_receiver"
    );
    let mode = session.run(&sql)?.into_iter().flatten().flatten().next();
    Ok(match mode.as_deref() {
        None => return asked_for(session),
        Some("") => Judgement::unseen("a standby; its primary is shown only with pg_monitor"),
        Some("verify-full" | "verify-ca") => {
            Judgement::account(State::Enforced, "a standby that receives by TLS and checks its primary's certificate")
        }
        Some("require") => Judgement::account(
            State::Enforced,
            "a standby that receives by TLS and does not check its primary's certificate (sslmode=require)",
        ),
        Some("disable") => Judgement::account(
            State::Off,
            "a standby that receives in plaintext: set sslmode=verify-full in primary_conninfo",
        )
        .found(&PG_TLS_REPLICATION),
        Some(mode) => Judgement::account(
            State::Available,
            format!(
                "a standby that may receive in plaintext (sslmode={mode}): set sslmode=verify-full in primary_conninfo"
            ),
        )
        .found(&PG_TLS_REPLICATION),
    })
}

/// For a standby that is not receiving now: the mode that it will request.
fn asked_for(session: &mut PostgresSession) -> Result<Judgement, Fault> {
    let sql = format!(
        "SELECT coalesce(substring(setting from {MODE}), 'prefer') FROM pg_settings WHERE name = 'primary_conninfo' AND \
         setting <> ''"
    );
    let mode = session.run(&sql)?.into_iter().flatten().flatten().next();
    let now = "a standby that receives from no server now";
    Ok(match mode.as_deref() {
        // It is not set, or not shown.
        None => Judgement::unseen(now),
        Some(mode @ ("disable" | "allow" | "prefer")) => {
            let state = if mode == "disable" { State::Off } else { State::Available };
            let seen = format!("{now}, and may in plaintext (primary_conninfo has sslmode={mode}): set verify-full");
            Judgement::account(state, seen).found(&PG_TLS_REPLICATION)
        }
        Some(mode) => Judgement::unseen(format!("{now}; primary_conninfo has sslmode={mode}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_refuses_after_the_handshake_has_tls() {
        let refused = |words: &str| shows_tls(Err::<(), _>(Fault::Refused(words.to_owned())));
        assert_eq!(shows_tls(Ok(())), Ok(true));
        assert_eq!(refused("28P01: password authentication failed"), Ok(true));
        assert_eq!(refused("TLS was asked for, and the server offers none"), Ok(false));
        let gone = || Fault::Connection("gone".to_owned());
        assert_eq!(shows_tls(Err::<(), _>(gone())), Err(gone()));
    }
}
