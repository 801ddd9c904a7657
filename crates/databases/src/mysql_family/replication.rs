//! Replication between servers: from the server's source, to its replicas, and in a cluster.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    matrix::State,
    session::{SqlSession as _, rows},
};

use super::{recorders::Settings, rights::has_everywhere, session::WireSession};
use crate::{
    findings::MY_TLS_REPLICATION,
    inspect::{Judgement, named},
};

/// A server that this one replicates from.
pub struct Source {
    /// Its host.
    pub host: String,
    /// True if TLS is requested.
    pub tls: bool,
    /// True if its certificate is checked.
    pub verified: bool,
}

/// How one product lists its sources.
pub type ReadSources = fn(&mut WireSession) -> Result<Vec<Source>, Fault>;

/// The host of a channel of group replication, which has no connection of its own (MySQL's source,
/// `initialize_channel` in `plugin/group_replication`). The group's settings decide how its members speak.
const OF_GROUP: &str = "<NULL>";

/// One connection to another server, with its state.
struct Hop {
    state: State,
    words: String,
}

/// Judges all hops, those from the `sources` that were read too: the row is as good as the worst of them.
///
/// # Errors
/// The server's error.
pub fn judge(
    session: &mut WireSession,
    settings: &Settings,
    sources: &Result<Vec<Source>, Fault>,
) -> Result<Judgement, Fault> {
    let mut hops = Vec::new();
    let mut doubts = Vec::new();
    match sources {
        Ok(sources) => hops.extend(sources.iter().filter(|source| source.host != OF_GROUP).map(of_source)),
        Err(fault) => doubts
            .push(format!("whether this is a replica (GRANT REPLICATION CLIENT or SLAVE MONITOR ON *.*: {fault})")),
    }
    match replicas(session, settings.is_on("require_secure_transport")) {
        Ok(replicas) if replicas.is_empty() && !is_shown_others(session) => {
            doubts.push("replicas (GRANT PROCESS ON *.*)".to_owned());
        }
        Ok(replicas) => hops.extend(replicas),
        Err(fault) => doubts.push(format!("replicas ({fault})")),
    }
    hops.extend(of_cluster(settings));
    let words: Vec<String> = hops.iter().map(|hop| hop.words.clone()).collect();
    let mut seen = if words.is_empty() { "no other server is connected".to_owned() } else { named(&words) };
    doubts.iter().for_each(|doubt| seen.push_str(&format!("; not judged: {doubt}")));
    let worst = [State::Off, State::Available, State::Unseen, State::Enforced];
    let state = worst.into_iter().find(|state| hops.iter().any(|hop| hop.state == *state));
    // The current connections do not show who may connect.
    let judgement = Judgement::account(state.unwrap_or(State::Unseen), seen);
    let is_open = [State::Off, State::Available].contains(&judgement.state);
    Ok(if is_open { judgement.found(&MY_TLS_REPLICATION) } else { judgement })
}

fn of_source(Source { host, tls, verified }: &Source) -> Hop {
    let (state, words) = match (tls, verified) {
        (true, true) => (State::Enforced, "by TLS, its certificate checked"),
        (true, false) => (State::Available, "by TLS, its certificate not checked"),
        (false, _) => (State::Off, "in plaintext"),
    };
    Hop { state, words: format!("changes come from {host} {words}") }
}

/// True if the account is shown the sessions of others, as far as its grants show. Without the privilege it is shown
/// its own, and no error.
fn is_shown_others(session: &mut WireSession) -> bool {
    // An error means that the server has no access control.
    has_everywhere(session, &["PROCESS"]).unwrap_or(true)
}

/// True if `require_secure_transport` is as the server was started: SET may have come after a client that is connected.
pub fn is_since_start(session: &mut WireSession) -> bool {
    let sql = "SELECT GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES \
               WHERE VARIABLE_NAME = 'REQUIRE_SECURE_TRANSPORT'";
    // MySQL does not have the table: it is started with performance_schema, which shows each connection.
    session.value(sql).is_ok_and(|origin| ["CONFIG", "COMMAND-LINE"].contains(&origin.as_str()))
}

/// Replicas that are connected now.
fn replicas(session: &mut WireSession, requires_tls: bool) -> Result<Vec<Hop>, Fault> {
    let sql = "SELECT ID, USER, HOST FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    let mut hops = Vec::new();
    for [id, user, host] in rows::<3>(session, sql)? {
        let sql = format!("SELECT CONNECTION_TYPE FROM performance_schema.threads WHERE PROCESSLIST_ID = {id}");
        let kind = session.run(&sql).ok().and_then(|rows| rows.into_iter().flatten().flatten().next());
        let (state, words) = match kind.as_deref() {
            Some("SSL/TLS") => (State::Enforced, "by TLS"),
            // The setting is read when a client connects: one that was there before it stays as it is.
            Some("TCP/IP") if requires_tls => {
                (State::Off, "in plaintext, since before require_secure_transport was ON")
            }
            Some("TCP/IP") => (State::Off, "in plaintext"),
            Some(_) => (State::Enforced, "on this machine"),
            None if requires_tls && is_since_start(session) => {
                (State::Enforced, "by TLS, as require_secure_transport = ON asks of all")
            }
            None => (State::Unseen, "in an unknown way: start the server with performance_schema = ON"),
        };
        hops.push(Hop { state, words: format!("changes go to {user} at {host} {words}") });
    }
    Ok(hops)
}

/// True if the switch `wanted` is on in the `options` of Galera's provider.
pub fn has_option(options: &str, wanted: &str) -> bool {
    options.split(';').any(|option| {
        option.split_once('=').is_some_and(|(name, value)| {
            name.trim() == wanted && ["yes", "true", "1", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
        })
    })
}

/// The connections among the members of a Galera cluster, by the provider's `options`.
fn of_bus(options: &str) -> Hop {
    let is_on = |wanted: &str| has_option(options, wanted);
    let (state, words) = match (is_on("socket.ssl"), is_on("socket.dynamic")) {
        (false, _) => (State::Off, "no"),
        (true, true) => (State::Available, "yes, and by socket.dynamic = yes it takes plaintext as well"),
        (true, false) => (State::Enforced, "yes"),
    };
    Hop { state, words: format!("the cluster's bus has socket.ssl = {words}") }
}

/// How a member that joins gets all data. The script's own settings are in a file.
fn of_copies(method: &str) -> Option<Hop> {
    let words = format!(
        "a member that joins gets all data by {method}, in plaintext or not (wsrep_sst_method; [sst] of the option \
         file is not shown)"
    );
    (!["", "skip"].contains(&method)).then_some(Hop { state: State::Unseen, words })
}

/// Galera, and MySQL's group replication.
fn of_cluster(settings: &Settings) -> Vec<Hop> {
    let mut hops = Vec::new();
    let hop = |tls: bool, verified: bool, words: String| {
        let state = match (tls, verified) {
            (false, _) => State::Off,
            (true, false) => State::Available,
            (true, true) => State::Enforced,
        };
        Hop { state, words }
    };
    if settings.is_in_cluster() {
        hops.push(of_bus(settings.value("wsrep_provider_options")));
        hops.extend(of_copies(settings.value("wsrep_sst_method")));
    }
    if let Some(mode) = settings
        .get("group_replication_ssl_mode")
        .filter(|_| !settings.value("group_replication_group_name").is_empty())
    {
        // REQUIRED takes every certificate.
        let verified = mode.starts_with("VERIFY_");
        hops.push(hop(mode != "DISABLED", verified, format!("group_replication_ssl_mode = {mode}")));
        let recovery = settings.value("group_replication_recovery_use_ssl");
        let check = "group_replication_recovery_ssl_verify_server_cert";
        let words = format!("group_replication_recovery_use_ssl = {recovery}, {check} = {}", settings.value(check));
        hops.push(hop(recovery == "ON", settings.is_on(check), words));
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_takes_plaintext_as_well_enforces_nothing() {
        let state = |options: &str| of_bus(options).state;
        assert_eq!(state("base_port = 4567; socket.ssl = YES; socket.dynamic = false"), State::Enforced);
        assert_eq!(state("socket.ssl=yes;socket.dynamic=true"), State::Available);
        assert_eq!(["socket.dynamic = yes", "socket.ssl = no", "socket.ssl_ca = yes", ""].map(state), [State::Off; 4]);
    }

    #[test]
    fn a_cluster_is_as_good_as_its_copies_are_known() {
        let judged = |pairs: &[(&str, &str)]| {
            let by_tls = ("wsrep_provider_options", "socket.ssl=yes");
            let cluster = [("wsrep_on", "ON"), ("wsrep_provider", "/galera.so"), by_tls];
            let hops = of_cluster(&Settings::of(&[&cluster[..], pairs].concat()));
            hops.iter().map(|hop| hop.state).collect::<Vec<_>>()
        };
        assert_eq!(judged(&[]), [State::Enforced]);
        assert_eq!(judged(&[("wsrep_sst_method", "skip")]), [State::Enforced]);
        assert_eq!(judged(&[("wsrep_sst_method", "rsync")]), [State::Enforced, State::Unseen]);
    }
}
