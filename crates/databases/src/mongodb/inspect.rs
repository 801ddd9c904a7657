//! The security matrix of a running MongoDB.

use mongodb::bson::{Document, doc};
use tithe_harness::{
    database::Server,
    fault::Fault,
    inspect::{Feature, Observation, State},
    protection::Setup,
};

use super::{
    build::{Build, at, topology},
    evidence::knock,
    link::Link,
    probe::probe,
    store::client,
    target::door,
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
    let target = door(server, setup)?;
    let link = client(server, setup)?;
    let build = Build::ask(&link)?;
    let method = knock(&target, None)?;
    let options = link.admin(doc! { "getCmdLineOpts": 1 });
    let option = |path: &[&str]| match &options {
        Ok(options) => Ok(at(options, &[&["parsed"], path].concat())),
        Err(fault) => Err(fault.clone()),
    };
    let tls = probe(&target)?.tls.map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    let mode = option(&["net", "tls", "mode"]).map(|mode| mode.is_some_and(|mode| mode != "disabled"));
    let mut seen = vec![authentication(&target, &method, open)];
    seen.extend(transport(&target, &tls, mode, open));
    seen.push(observe(Feature::Authorisation, || authorisation(&link)));
    seen.push(observe(Feature::AtRest, || {
        Ok(at_rest(option(&["security", "enableEncryption"])?, &option(&["security", "encryptionCipherMode"])?))
    }));
    seen.push(observe(Feature::Auditing, || {
        Ok(auditing(option(&["auditLog", "destination"])?, option(&["auditLog", "filter"])?))
    }));
    seen.push(observe(Feature::NodeToNode, || between_nodes(&link, option(&["net", "tls", "mode"])?)));
    seen.push(Observation::new(
        Feature::AuthenticationCaching,
        State::Unseen,
        "accounts are kept in memory (the user cache); no command shows what it holds",
    ));
    seen.extend(not_offered(&[
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    if build.stand_in {
        seen.iter_mut().for_each(|cell| cell.seen = format!("{}: {}", build.title, cell.seen));
    }
    Ok(seen)
}

fn open(target: &Target) -> Result<String, Fault> {
    knock(target, None)
}

/// What the connected account may do, as the server says it.
fn authorisation(link: &Link) -> Result<(State, String), Fault> {
    let status = link.admin(doc! { "connectionStatus": 1, "showPrivileges": false })?;
    let roles = roles(&status);
    let open = match link.run("someone_else", doc! { "find": "someone_else", "limit": 1 }) {
        Ok(_) => true,
        Err(Fault::Refused(_)) => false,
        Err(fault) => return Err(fault),
    };
    Ok(match (roles.as_slice(), open) {
        ([], true) => (State::Off, "a client without any role reads a database of someone else".to_owned()),
        (roles, true) => (State::Available, format!("this account ({}) reads every database", roles.join(", "))),
        (roles, false) => {
            (State::Enforced, format!("this account ({}) is refused a database of someone else", roles.join(", ")))
        }
    })
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

fn at_rest(on: Option<String>, cipher: &Option<String>) -> (State, String) {
    match on.as_deref() {
        Some("true") => {
            let cipher = cipher.as_deref().unwrap_or("AES256-CBC, the default");
            (State::Enforced, format!("getCmdLineOpts: enableEncryption true, {cipher}; files were not looked at"))
        }
        _ => (State::Off, "getCmdLineOpts: enableEncryption is not set".to_owned()),
    }
}

fn auditing(destination: Option<String>, filter: Option<String>) -> (State, String) {
    match (destination, filter) {
        (None, _) => (State::Off, "getCmdLineOpts: no auditLog.destination".to_owned()),
        (Some(destination), None) => (State::Enforced, format!("getCmdLineOpts: auditLog to {destination}, no filter")),
        (Some(destination), Some(filter)) => (
            State::Available,
            format!("getCmdLineOpts: auditLog to {destination}, only what passes the filter {filter}"),
        ),
    }
}

fn between_nodes(link: &Link, mode: Option<String>) -> Result<(State, String), Fault> {
    let topology = topology(link)?;
    if topology == "standalone" {
        return Ok((State::Unseen, "no other server is connected".to_owned()));
    }
    // With preferTLS members speak TLS to each other; with allowTLS they do not.
    Ok(match mode.as_deref() {
        Some("requireTLS") => (State::Enforced, format!("{topology}, net.tls.mode requireTLS")),
        Some(mode @ "preferTLS") => (State::Available, format!("{topology}, net.tls.mode {mode}")),
        mode => (State::Off, format!("{topology}, net.tls.mode {}", mode.unwrap_or("is not set"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_server_are_read() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(at_rest(None, &None).0, State::Off);
        assert_eq!(at_rest(some("false"), &None).0, State::Off);
        assert_eq!(
            at_rest(some("true"), &some("AES256-GCM")),
            (State::Enforced, "getCmdLineOpts: enableEncryption true, AES256-GCM; files were not looked at".to_owned())
        );
        assert_eq!(auditing(None, None).0, State::Off);
        assert_eq!(auditing(some("file"), None).0, State::Enforced);
        assert_eq!(auditing(some("file"), some("{}")).0, State::Available);
    }

    #[test]
    fn roles_are_named_with_their_database() {
        let status = doc! { "authInfo": { "authenticatedUserRoles": [{ "role": "readWrite", "db": "tithe" }] } };
        assert_eq!(roles(&status), ["readWrite of tithe"]);
        assert_eq!(roles(&doc! {}), [""; 0]);
    }
}
