//! The security matrix of a running Redis or Valkey.

use tithe_harness::{
    database::Server,
    fault::Fault,
    inspect::{Feature, Observation, State},
    protection::Setup,
};

use super::{
    connection::{RedisConnection, Reply},
    store::info,
    target::of_clients,
};
use crate::{
    inspect::{authentication, not_offered, observe, transport},
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<Observation>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = RedisConnection::open(&target)?;
    let method = connection.method().to_owned();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    let offers = connection.setting("tls-port").map(|port| port.is_some_and(|port| port != "0"));
    let mut seen = vec![authentication(&target, &method, open)];
    seen.extend(client_transport(&target, &tls, offers, &mut connection));
    seen.push(observe(Feature::Authorisation, || authorisation(&mut connection)));
    seen.push(observe(Feature::NodeToNode, || replication(&mut connection)));
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

/// Redis speaks plaintext on a port of its own, so plaintext on the port of TLS says nothing: the setting does.
fn client_transport(
    target: &Target,
    tls: &str,
    offers: Result<bool, Fault>,
    connection: &mut RedisConnection,
) -> [Observation; 2] {
    let seen = transport(target, tls, offers, open);
    if target.tls.is_none() {
        return seen;
    }
    let (state, port) = match connection.setting("port") {
        Ok(Some(port)) if port == "0" => return seen,
        Ok(port) => (State::Available, format!("{tls}; plaintext: port {}", port.unwrap_or_default())),
        Err(fault) => (State::Unseen, format!("{tls}; whether there is a plaintext port beside it: {fault}")),
    };
    seen.map(|cell| Observation::new(cell.feature, state, port.clone()))
}

fn authorisation(connection: &mut RedisConnection) -> Result<(State, String), Fault> {
    match connection.call(&["ACL", "LIST"]) {
        Err(fault @ Fault::Refused(_)) => Ok((State::Enforced, format!("the list of accounts: {fault}"))),
        Err(fault) => Err(fault),
        Ok(Reply::Array(accounts)) => {
            let unlimited = |account: &&Reply| {
                account
                    .text()
                    .is_some_and(|text| text.contains(" on ") && text.contains("~*") && text.contains("+@all"))
            };
            let count = accounts.iter().filter(unlimited).count();
            let state = if count == accounts.len() { State::Off } else { State::Available };
            Ok((state, format!("{count} of {} accounts may do everything", accounts.len())))
        }
        Ok(_) => Err(Fault::Protocol("ACL LIST gave no list".to_owned())),
    }
}

fn replication(connection: &mut RedisConnection) -> Result<(State, String), Fault> {
    let replicas = info(connection, "replication", "connected_slaves")?.unwrap_or_default();
    let role = info(connection, "replication", "role")?.unwrap_or_default();
    if role == "master" && replicas == "0" {
        return Ok((State::Unseen, "no other server is connected".to_owned()));
    }
    let tls = connection.setting("tls-replication")?.unwrap_or_default();
    let state = if tls == "yes" { State::Enforced } else { State::Off };
    Ok((state, format!("tls-replication = {tls}, {replicas} replicas")))
}
