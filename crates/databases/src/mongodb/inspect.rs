//! The security matrix of a running MongoDB.

use mongodb::bson::{Document, doc};
use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    setup::Setup,
};

use super::{
    build::{Build, at, topology},
    evidence::{knock, plaintext},
    link::Link,
    probe::probe,
    store::client,
    target::door,
};
use crate::{
    inspect::{Judgement, Rules, authentication, client_rows, inspect_feature, not_offered, transport},
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
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
    let asks = rules(option(&["security", "authorization"]), "security.authorization", "enabled");
    let authentication = authentication(&target, &method, open).with_rules(asks, RIGHT);
    let requires = rules(option(&["net", "tls", "mode"]), "net.tls.mode", "requireTLS");
    let transport = transport(&target, &tls, mode, plaintext).with_rules(requires, RIGHT);
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(inspect_feature(Feature::Authorisation, || authorisation(&link)));
    seen.push(inspect_feature(Feature::AtRest, || {
        let (on, cipher) = (option(&["security", "enableEncryption"])?, option(&["security", "encryptionCipherMode"])?);
        let (state, seen) = at_rest(on, &cipher);
        Ok(Judgement::whole(state, seen))
    }));
    seen.push(inspect_feature(Feature::Auditing, || {
        let (state, seen) = auditing(option(&["auditLog", "destination"])?, option(&["auditLog", "filter"])?);
        Ok(Judgement::whole(state, seen))
    }));
    seen.push(inspect_feature(Feature::NodeToNode, || between_nodes(&link, option(&["net", "tls", "mode"])?)));
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

/// What an account needs to read the options that the server was started with.
const RIGHT: &str = "the account needs the role clusterMonitor";

/// The option `name`, which must be `wanted`: none of them can be loosened while the server runs.
fn rules(option: Result<Option<String>, Fault>, name: &str, wanted: &str) -> Result<Rules, Fault> {
    let value = option?;
    let words = value.as_deref().unwrap_or("not set");
    let (mut exceptions, mut doubts) = (Vec::new(), Vec::new());
    match value.as_deref() {
        Some(value) if value == wanted => {}
        Some(_) => exceptions.push(format!("it is not {wanted}")),
        None => doubts.push("what stands in its place".to_owned()),
    }
    Ok(Rules {
        read: format!("getCmdLineOpts: {name} = {words}"),
        exceptions,
        remedy: "set it",
        doubts,
        ..Rules::default()
    })
}

fn open(target: &Target) -> Result<String, Fault> {
    knock(target, None)
}

/// What the connected account may do, as the server says it.
fn authorisation(link: &Link) -> Result<Judgement, Fault> {
    let status = link.admin(doc! { "connectionStatus": 1, "showPrivileges": false })?;
    let roles = roles(&status);
    let open = match link.run("someone_else", doc! { "find": "someone_else", "limit": 1 }) {
        Ok(_) => true,
        Err(Fault::Refused(_)) => false,
        Err(fault) => return Err(fault),
    };
    Ok(match (roles.as_slice(), open) {
        ([], true) => Judgement::whole(State::Off, "a client without any role reads a database of someone else"),
        (roles, true) => {
            Judgement::account(State::Available, format!("this account ({}) reads every database", roles.join(", ")))
        }
        (roles, false) => {
            let seen = format!("this account ({}) is refused a database of someone else", roles.join(", "));
            Judgement::account(State::Enforced, seen)
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

fn between_nodes(link: &Link, mode: Option<String>) -> Result<Judgement, Fault> {
    let topology = topology(link)?;
    if topology == "standalone" {
        return Ok(Judgement::unseen("no other server is connected"));
    }
    // With preferTLS members speak TLS to each other; with allowTLS they do not.
    let (state, seen) = match mode.as_deref() {
        Some("requireTLS") => (State::Enforced, format!("{topology}, net.tls.mode requireTLS")),
        Some(mode @ "preferTLS") => (State::Available, format!("{topology}, net.tls.mode {mode}")),
        mode => (State::Off, format!("{topology}, net.tls.mode {}", mode.unwrap_or("is not set"))),
    };
    Ok(Judgement::whole(state, seen))
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
