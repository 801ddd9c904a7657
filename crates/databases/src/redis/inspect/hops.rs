//! Which connections to and from a Redis are encrypted: clients, replicas, the bus of a cluster.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    connections::port_of,
    matrix::{Scope, State},
};

use super::{
    super::{
        clients::value,
        connection::RedisConnection,
        store::{info, is_node, is_replica},
    },
    open,
};
use crate::{
    findings,
    inspect::{Judgement, counted, doubt_of_old_tls, has_old_tls, named, transport},
    target::Target,
};

/// The ports of a server. Each of them has TLS or plaintext, never both; `0` is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// The port for plaintext.
    pub plain: String,
    /// The port for TLS, if the server reports it.
    pub tls: Option<String>,
}

/// The ports, from the settings. If the server hides them and was `reached` by TLS at a port, they come from its own
/// report and from this connection.
///
/// # Errors
/// Why they cannot be known.
pub fn ports(connection: &mut RedisConnection, reached: u16) -> Result<Ports, Fault> {
    let by_settings = connection.setting("port").and_then(|plain| Ok((plain, connection.setting("tls-port")?)));
    match by_settings {
        Ok((plain, tls)) => {
            Ok(Ports { plain: plain.unwrap_or_default(), tls: Some(tls.unwrap_or_else(|| "0".into())) })
        }
        Err(fault) if connection.tls_facts().is_some() => {
            let own = own_port(connection).ok().flatten();
            match (info(connection, "server", "tcp_port"), own) {
                (Ok(Some(port)), Some(own)) => by_report(port, &own, reached).ok_or(fault),
                _ => Err(fault),
            }
        }
        Err(fault) => Err(fault),
    }
}

/// The ports of a server that `reports` one port: that for plaintext, or that for TLS if there is no other. `own`
/// is the port of this connection as the server sees it. If it is not the port that the client `reached`, something is
/// in between and may end TLS: then the only port may speak plaintext.
fn by_report(reports: String, own: &str, reached: u16) -> Option<Ports> {
    if reports != own {
        return Some(Ports { plain: reports, tls: None });
    }
    (own == reached.to_string()).then(|| Ports { plain: "0".to_owned(), tls: None })
}

/// The port of the server that this connection reached, as the server sees it.
fn own_port(connection: &mut RedisConnection) -> Result<Option<String>, Fault> {
    let told = connection.call(&["CLIENT", "INFO"])?.text().unwrap_or_default();
    Ok(value(&told, "laddr").and_then(port_of).map(|port| port.to_string()))
}

/// Redis has a separate plaintext port, so trying plaintext at the TLS port shows nothing. Whether there is a plaintext
/// port decides for all clients.
pub fn clients(target: &Target, tls: &str, ports: &Result<Ports, Fault>) -> Judgement {
    if let (true, Ok(Ports { plain, tls: Some(of_tls) })) = (target.is_socket(), ports)
        && plain == "0"
        && of_tls != "0"
    {
        let seen = format!("by a Unix socket, which no network sees; the only port, {of_tls}, has TLS: port = 0");
        return Judgement::whole(State::Enforced, seen);
    }
    if target.tls.is_none() {
        let offers = ports.as_ref().map(|ports| ports.tls.as_ref().is_some_and(|port| port != "0"));
        let judged = transport(target, tls, offers.map_err(Clone::clone), super::plaintext);
        return if ports.is_ok() { Judgement { scope: Scope::Server, ..judged } } else { judged };
    }
    match ports {
        Ok(Ports { plain, tls: Some(of_tls) }) if of_tls == "0" => Judgement::whole(
            State::Available,
            format!(
                "{tls} to what answers at {}:{}, and from there on plaintext: the server has no TLS (tls-port = 0) and \
                 listens at port {plain}: set tls-port, and port 0",
                target.host, target.port,
            ),
        ),
        Ok(Ports { plain, .. }) if plain != "0" => {
            Judgement::whole(State::Available, format!("{tls}; plaintext: port {plain}: set port 0"))
                .found(&findings::REDIS_TLS_OPTIONAL)
        }
        Ok(Ports { tls: of_tls, .. }) => {
            let seen = transport(target, tls, Ok(true), super::plaintext);
            let told = if of_tls.is_some() { "port = 0" } else { "it reports no other port (INFO)" };
            let scope = if of_tls.is_some() { Scope::Server } else { Scope::Account };
            Judgement { scope, seen: format!("{}; {told}", seen.seen), ..seen }
        }
        Err(fault) => Judgement::unseen(format!("{tls}; whether there is also a plaintext port: {fault}")),
    }
}

/// The doubt about old versions of TLS, if the settings of a server with a port for TLS name some. Without a value,
/// Redis has version 1.2 and later alone (`redis.conf`).
pub fn old_tls(connection: &mut RedisConnection, ports: &Result<Ports, Fault>) -> Option<String> {
    const SETTING: &str = "tls-protocols";
    ports.as_ref().ok()?.tls.as_ref().filter(|port| *port != "0")?;
    let versions = connection.setting(SETTING).ok().flatten()?;
    has_old_tls(&versions).then(|| doubt_of_old_tls(SETTING, &versions))
}

/// Logins at a server that asks for no password: a client with a certificate, if none is accepted without.
pub fn without_certificate(target: &Target) -> Option<Result<String, Fault>> {
    target.tls.as_ref().filter(|tls| tls.identity.is_some())?;
    Some(open(&target.without_certificate()))
}

/// A connection to another server, and whether it is encrypted.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    to: String,
    encrypted: Option<bool>,
}

/// Why other servers are judged apart: Redis copies keys from one server to another, but none of these.
const OF_EACH: &str = "(each has accounts, ports and settings of its own)";

/// The servers with the same data, in words. Clients reach the data by them too, and this server does not show how.
pub fn other_servers(connection: &mut RedisConnection) -> Vec<String> {
    servers_beside(connection).unwrap_or_else(|fault| vec![format!("whether there are other servers ({fault})")])
}

fn servers_beside(connection: &mut RedisConnection) -> Result<Vec<String>, Fault> {
    if is_node(connection)? {
        let others = known_nodes(connection)?.parse::<usize>().map_or(1, |known| known.saturating_sub(1));
        return Ok((others > 0).then(|| format!("{} {OF_EACH}", counted(others, "other node"))).into_iter().collect());
    }
    let is_replica = is_replica(connection)?;
    let master = is_replica.then(|| format!("its master {OF_EACH}"));
    let count = info(connection, "replication", "connected_slaves")?;
    let count = count.and_then(|count| count.parse::<usize>().ok()).filter(|count| *count > 0);
    Ok(master.into_iter().chain(count.map(|count| format!("{} {OF_EACH}", counted(count, "replica")))).collect())
}

/// How many nodes its cluster has, as it reports it.
fn known_nodes(connection: &mut RedisConnection) -> Result<String, Fault> {
    let told = connection.call(&["CLUSTER", "INFO"])?.text().unwrap_or_default();
    Ok(told.lines().find_map(|line| line.strip_prefix("cluster_known_nodes:")).unwrap_or("?").to_owned())
}

/// The transport between servers, as far as this server shows it.
///
/// # Errors
/// The server's error.
pub fn between_servers(connection: &mut RedisConnection, ports: &Result<Ports, Fault>) -> Result<Judgement, Fault> {
    let setting = |connection: &mut RedisConnection, name: &str| {
        connection.setting(name).map(Option::unwrap_or_default).map_err(|fault| format!("{name}: {fault}"))
    };
    let mut links = replicas(connection, ports)?;
    // A server connects to its own master as its setting says; the transport of its replicas follows from their port.
    let is_replica = is_replica(connection)?;
    let mut told = Vec::new();
    let yes = |value: &Result<String, String>| value.as_ref().ok().map(|value| value == "yes");
    if is_replica {
        let asks = setting(connection, "tls-replication");
        let master = info(connection, "replication", "master_host")?.unwrap_or_default();
        links.push(Link { to: format!("its master {master}"), encrypted: yes(&asks) });
        told.push(asks.map_or_else(|fault| fault, |value| format!("tls-replication = {value}, as it is set now")));
    }
    if is_node(connection)? {
        let bus = setting(connection, "tls-cluster");
        let known = known_nodes(connection)?;
        let others = known.parse().unwrap_or(2) - 1;
        told.push(format!("{known} nodes"));
        told.push(bus.as_ref().map_or_else(Clone::clone, |value| format!("tls-cluster = {value}")));
        if others > 0 {
            links.push(Link { to: format!("the bus of {others} other nodes"), encrypted: yes(&bus) });
        }
    }
    Ok(judged(&links, told, is_replica, ports))
}

/// The connected replicas, by the port that each uses.
fn replicas(connection: &mut RedisConnection, ports: &Result<Ports, Fault>) -> Result<Vec<Link>, Fault> {
    let count = info(connection, "replication", "connected_slaves")?.unwrap_or_default();
    if count == "0" {
        return Ok(Vec::new());
    }
    let listed = connection.call(&["CLIENT", "LIST", "TYPE", "replica"]);
    let Some(list) = listed.ok().and_then(|reply| reply.text()) else {
        return Ok(vec![Link { to: format!("{count} replicas (the account needs +client|list)"), encrypted: None }]);
    };
    let link = |line: &str| {
        let came_to = value(line, "laddr").and_then(port_of).map(|port| port.to_string());
        let encrypted = came_to.zip(ports.as_ref().ok()).map(|(port, ports)| port != ports.plain);
        Link { to: format!("replica {}", value(line, "addr").unwrap_or("?")), encrypted }
    };
    let links: Vec<Link> = list.lines().filter(|line| !line.is_empty()).map(link).collect();
    if links.is_empty() && !count.is_empty() {
        return Ok(vec![Link { to: format!("{count} replicas (CLIENT LIST does not have them)"), encrypted: None }]);
    }
    Ok(links)
}

fn judged(links: &[Link], told: Vec<String>, is_replica: bool, ports: &Result<Ports, Fault>) -> Judgement {
    let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
    if links.is_empty() {
        return Judgement::unseen(format!("no other server is connected{told}"));
    }
    let of = |wanted: Option<bool>| -> Vec<String> {
        links.iter().filter(|link| link.encrypted == wanted).map(|link| link.to.clone()).collect()
    };
    let (tls, plain, unknown) = (of(Some(true)), of(Some(false)), of(None));
    let mut words = Vec::new();
    for (what, which) in [("TLS", &tls), ("plaintext", &plain), ("unknown", &unknown)] {
        if !which.is_empty() {
            words.push(format!("{what}: {}", named(which)));
        }
    }
    let mut seen = words.join("; ") + &told;
    let (state, remedy) = match (tls.len(), plain.len(), unknown.len()) {
        (_, 0, 1..) => (State::Unseen, ""),
        (0, _, _) => (State::Off, ": set tls-replication yes on replicas and tls-cluster yes on nodes"),
        (_, 1.., _) => (State::Available, ": set tls-replication yes on replicas and tls-cluster yes on nodes"),
        // The next client may use the other port.
        _ if ports.as_ref().is_ok_and(|ports| ports.plain != "0") && !is_replica => {
            (State::Available, "; the next may come by the port for plaintext: set port 0")
        }
        _ => (State::Enforced, ""),
    };
    seen.push_str(remedy);
    let certain = ports.is_ok() && !is_replica && unknown.is_empty();
    let judged = if certain { Judgement::whole(state, seen) } else { Judgement::account(state, seen) };
    if plain.is_empty() { judged } else { judged.found(&findings::REDIS_TLS_REPLICATION) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Authority, Tls};

    #[test]
    fn a_link_by_tls_does_not_make_up_for_one_in_plaintext() {
        let seen = |encrypted: &[Option<bool>], plain: &str, is_replica: bool| {
            let ports = Ok(Ports { plain: plain.to_owned(), tls: Some("6380".to_owned()) });
            let link = |encrypted: &Option<bool>| Link { to: "it".to_owned(), encrypted: *encrypted };
            let links: Vec<Link> = encrypted.iter().map(link).collect();
            let found = judged(&links, Vec::new(), is_replica, &ports);
            (found.state, found.scope, found.findings.len())
        };
        let (tls, plain) = (Some(true), Some(false));
        assert_eq!(seen(&[tls], "0", false), (State::Enforced, Scope::Server, 0));
        assert_eq!(seen(&[tls], "6379", false), (State::Available, Scope::Server, 0));
        assert_eq!(seen(&[tls], "6379", true), (State::Enforced, Scope::Account, 0));
        assert_eq!(seen(&[tls, plain], "0", false), (State::Available, Scope::Server, 1));
        assert_eq!(seen(&[plain], "0", false), (State::Off, Scope::Server, 1));
        assert_eq!(seen(&[tls, None], "0", false), (State::Unseen, Scope::Account, 0));
        assert_eq!(seen(&[plain, None], "0", false), (State::Off, Scope::Account, 1));
        assert_eq!(seen(&[tls, plain, None], "0", false), (State::Available, Scope::Account, 1));
        assert_eq!(seen(&[], "0", false), (State::Unseen, Scope::Account, 0));
    }

    #[test]
    fn tls_of_a_client_is_judged_by_the_ports_of_the_server() {
        let tls = Some(Tls::of_url(Authority::System, None));
        // Nothing listens there, so an attempt in plaintext shows nothing.
        let target = Target { host: "127.0.0.1".to_owned(), tls, ..Target::default() };
        let judged = |ports: Result<(&str, Option<&str>), Fault>| {
            let ports = ports.map(|(plain, tls)| Ports { plain: plain.to_owned(), tls: tls.map(str::to_owned) });
            let Judgement { state, scope, seen, findings } = clients(&target, "TLSv1.3", &ports);
            (state, scope, findings.len(), seen.contains("from there on plaintext"))
        };
        assert_eq!(judged(Ok(("6379", Some("0")))), (State::Available, Scope::Server, 0, true));
        for tls in [Some("6380"), None] {
            assert_eq!(judged(Ok(("6379", tls))), (State::Available, Scope::Server, 1, false), "{tls:?}");
        }
        assert_eq!(judged(Ok(("0", Some("6380")))), (State::Unseen, Scope::Server, 0, false));
        assert_eq!(judged(Ok(("0", None))), (State::Unseen, Scope::Account, 0, false));
        assert_eq!(judged(Err(Fault::Refused("no".to_owned()))), (State::Unseen, Scope::Account, 0, false));
    }

    #[test]
    fn a_client_by_a_socket_does_not_lower_what_the_only_port_requires() {
        let state = |host: &str, plain: &str, tls: &str| {
            let target = Target { host: host.to_owned(), ..Target::default() };
            clients(&target, "", &Ok(Ports { plain: plain.to_owned(), tls: Some(tls.to_owned()) })).state
        };
        assert_eq!(state("/run/redis.sock", "0", "6380"), State::Enforced);
        assert_eq!(state("/run/redis.sock", "6379", "6380"), State::Available);
        assert_eq!(state("/run/redis.sock", "0", "0"), State::Off);
        assert_eq!(state("192.0.2.1", "0", "6380"), State::Available, "something before it speaks TLS with it");
    }

    #[test]
    fn a_port_that_is_reached_by_another_number_may_be_behind_what_ends_tls() {
        let plain = |reports: &str, own: &str| by_report(reports.to_owned(), own, 6380).map(|ports| ports.plain);
        assert_eq!(plain("6380", "6380").as_deref(), Some("0"), "the server has this port alone");
        assert_eq!(plain("6379", "6380").as_deref(), Some("6379"), "it has one for plaintext, too");
        assert_eq!(plain("6379", "6379"), None, "the client reached 6380, and the server sees 6379");
    }
}
