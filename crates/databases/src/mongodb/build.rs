//! The identity of a server: product, version, and the facts that figures depend on.
//!
//! Other servers use the protocol of MongoDB too: stand-ins for tests, products of other makers. Such a server is never
//! called MongoDB. MongoDB's own builds, and Percona's, report the commit they were built from; one that does not is a
//! stand-in. A server that reports its product is called by that name.

use std::collections::BTreeMap;

use mongodb::bson::{Bson, Document, doc};
use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::{fact::Fact, record::ArmFacts};
use tithe_plugin::setup::Setup;

use super::{
    link::Link,
    store::administrator,
    target::{mechanism_name, of_clients},
};
use crate::target::is_local;

/// Product and version, from the server's answer to `buildInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// As in `MongoDB 7.0.5 Enterprise`.
    pub title: String,
    /// True if it only implements the protocol of MongoDB.
    pub stand_in: bool,
    /// True for a product of another maker: options and roles of MongoDB say nothing of how it stores data, records
    /// requests and limits accounts.
    pub is_foreign: bool,
    /// True for the edition of MongoDB that has neither an audit log nor encryption at rest.
    pub is_community: bool,
}

impl Build {
    /// Asks `link`.
    ///
    /// # Errors
    /// The server's error; [`Fault::Wrong`] when it does not say its version.
    pub fn ask(link: &Link) -> Result<Self, Fault> {
        Self::read(&link.admin(doc! { "buildInfo": 1 })?)
    }

    fn read(info: &Document) -> Result<Self, Fault> {
        let text = |name: &str| info.get_str(name).ok().filter(|text| !text.is_empty());
        let version =
            text("version").ok_or_else(|| Fault::Wrong("the server does not report its version".to_owned()))?;
        let stand_in = |title: String| {
            let title = format!("{title} (stand-in, not MongoDB)");
            Self { title, stand_in: true, is_foreign: true, is_community: false }
        };
        // The stand-in of the tests simulates MongoDB.
        if let Some(name) = text("standIn") {
            return Ok(Self { is_foreign: false, ..stand_in(name.to_owned()) });
        }
        if let Ok(ferret) = info.get_document("ferretdb") {
            return Ok(stand_in(format!("FerretDB {}", ferret.get_str("version").unwrap_or("of unknown version"))));
        }
        // FerretDB 1, which says the version of MongoDB that it imitates, and a build number.
        if let Some(version) = text("ferretdbVersion") {
            return Ok(stand_in(format!("FerretDB 1, {version}")));
        }
        if text("gitVersion").is_none() {
            return Ok(stand_in(format!("a server without a build number that reports version {version}")));
        }
        let modules = info.get_array("modules").map(Vec::as_slice).unwrap_or_default();
        let is_enterprise = modules.iter().any(|module| module.as_str() == Some("enterprise"));
        let (title, is_community) = match text("psmdbVersion") {
            Some(percona) => (format!("Percona Server for MongoDB {percona}"), false),
            None if is_enterprise => (format!("MongoDB {version} Enterprise"), false),
            None => (format!("MongoDB {version}"), true),
        };
        Ok(Self { title, stand_in: false, is_foreign: false, is_community })
    }
}

/// The facts that a figure depends on, as the server and the driver report them.
///
/// # Errors
/// The server's error; [`Fault::Wrong`] when it does not say its version.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let link = administrator(server, setup)?;
    let build = Build::ask(&link)?;
    let mut facts = BTreeMap::new();
    if build.stand_in {
        facts.insert(Fact::StandIn.name().to_owned(), format!("{}, in place of MongoDB", build.title));
    }
    let told = [
        ("storage engine", &["storageEngine", "name"][..]),
        ("encryption at rest", &["encryptionAtRest", "encryptionCipherMode"][..]),
        ("openssl", &["openssl", "running"][..]),
    ];
    // An attached server may hide its state: then it is not reported.
    let status = match link.admin(doc! { "serverStatus": 1 }) {
        Ok(status) => status,
        Err(Fault::Refused(_) | Fault::Server(_)) if !is_local(server) => Document::new(),
        Err(fault) => return Err(fault),
    };
    facts.extend(told.iter().filter_map(|(name, path)| Some(((*name).to_owned(), at(&status, path)?))));
    facts.insert("topology".to_owned(), topology(&link)?);
    facts.insert("driver".to_owned(), "mongodb, the official Rust driver, 3.8".to_owned());
    let clients = of_clients(server, setup)?;
    let mechanism = clients
        .credential
        .map(|credential| credential.mechanism.as_ref().map_or("the driver's choice", mechanism_name));
    facts.insert("authentication".to_owned(), mechanism.unwrap_or("none").to_owned());
    Ok(ArmFacts { version: build.title, facts, configuration: Vec::new() })
}

/// The value at `path` of nested documents, as text.
pub fn at(document: &Document, path: &[&str]) -> Option<String> {
    let (last, folders) = path.split_last()?;
    let folder = folders.iter().try_fold(document, |folder, name| folder.get_document(name).ok())?;
    Some(match folder.get(last)? {
        Bson::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// The topology of a server by itself.
pub const STANDALONE: &str = "standalone";

/// That of a router (mongos), behind which are shards.
pub const ROUTER: &str = "sharded cluster";

/// Standalone, member of a replica set, or router of a sharded cluster: from the answer to `isMaster`, which every
/// version supports.
pub fn topology(link: &Link) -> Result<String, Fault> {
    let hello = link.admin(doc! { "isMaster": 1 })?;
    let hosts = |name: &str| hello.get_array(name).map_or(0, Vec::len);
    Ok(match (hello.get_str("setName"), hello.get_str("msg")) {
        (Ok(_), _) => format!("replica set of {}", hosts("hosts") + hosts("passives") + hosts("arbiters")),
        (_, Ok("isdbgrid")) => ROUTER.to_owned(),
        _ => STANDALONE.to_owned(),
    })
}

/// The servers of a `topology` whose options the asked one does not show.
pub fn unread(topology: &str) -> Option<&'static str> {
    match topology {
        STANDALONE | "replica set of 1" => None,
        ROUTER => Some("the shards and other routers (each has options of its own)"),
        _ => Some("the other members (each has options of its own)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_one_server() {
        let others = ["standalone", "replica set of 1", "replica set of 3", "sharded cluster"].map(unread);
        assert_eq!(others.map(|others| others.is_some()), [false, false, true, true]);
        assert!(others[3].is_some_and(|others| others.contains("shards")));
    }

    fn title(info: Document) -> String {
        Build::read(&info).map_or_else(|fault| fault.to_string(), |build| format!("{} {}", build.title, build.stand_in))
    }

    #[test]
    fn products_of_other_makers_are_not_judged_by_options_of_mongodb() {
        let is_foreign = |info: Document| Build::read(&info).expect("a version").is_foreign;
        assert!(!is_foreign(doc! { "version": "7.0.5", "gitVersion": "7809d71", "modules": ["enterprise"] }));
        assert!(!is_foreign(doc! { "version": "4.2.0", "standIn": "mongo-java-server 1.46.0" }));
        assert!(is_foreign(doc! { "version": "7.0.42", "gitVersion": "unknown", "ferretdbVersion": "v1.24.0" }));
        assert!(is_foreign(doc! { "version": "7.0.77", "gitVersion": "a", "ferretdb": { "version": "2.1.0" } }));
        assert!(is_foreign(doc! { "version": "5.0.0", "maxBsonObjectSize": 16777216 }));
    }

    #[test]
    fn servers_are_called_what_they_are() {
        for (info, expected) in [
            (doc! { "version": "7.0.5", "gitVersion": "7809d71", "modules": [] }, "MongoDB 7.0.5 false"),
            (
                doc! { "version": "7.0.5", "gitVersion": "7809d71", "modules": ["enterprise"] },
                "MongoDB 7.0.5 Enterprise false",
            ),
            (
                doc! { "version": "6.0.4-3", "psmdbVersion": "6.0.4-3", "gitVersion": "b1" },
                "Percona Server for MongoDB 6.0.4-3 false",
            ),
            (
                doc! { "version": "4.2.0", "standIn": "mongo-java-server 1.46.0" },
                "mongo-java-server 1.46.0 (stand-in, not MongoDB) true",
            ),
            (
                doc! { "version": "4.0.0", "maxBsonObjectSize": 1 },
                "a server without a build number that reports version 4.0.0 (stand-in, not MongoDB) true",
            ),
            (
                doc! { "version": "7.0.77", "gitVersion": "a", "ferretdb": { "version": "2.1.0" } },
                "FerretDB 2.1.0 (stand-in, not MongoDB) true",
            ),
            (
                doc! { "version": "7.0.42", "gitVersion": "unknown", "ferretdbVersion": "v1.24.0" },
                "FerretDB 1, v1.24.0 (stand-in, not MongoDB) true",
            ),
            (doc! {}, "wrong answer: the server does not report its version"),
        ] {
            assert_eq!(title(info), expected);
        }
    }
}
