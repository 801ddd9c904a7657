//! The database in which Tithe keeps its records, and requests to a server outside the load.
//!
//! Everything is in one database, `tithe`, which must be Tithe's own: it has a mark. Collections of a sharded cluster
//! are not sharded: the one of a run is created again.

use mongodb::bson::{Bson, Document, doc};
use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{session::Table, setup::Setup};

use super::{
    link::Link,
    target::{ADMINISTRATOR, DATABASE, USER, of_administrator, of_clients},
};
use crate::target::is_local;

/// The collection that is the mark.
const MARKED: &str = "made_by_tithe";

/// A connection as the measured clients have it.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn client(server: &Server, setup: &Setup) -> Result<Link, Fault> {
    opened(Link::new(of_clients(server, setup)?)?)
}

/// A connection that is not measured. In a launched server that asks for passwords it first creates the accounts.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<Link, Fault> {
    let options = of_administrator(server, setup)?;
    let asks = options.credential.is_some();
    match opened(Link::new(options.clone())?) {
        Err(Fault::Refused(_)) if asks && is_local(server) => {
            let mut without = options.clone();
            without.credential = None;
            make_accounts(&Link::new(without)?, &options, setup)?;
            opened(Link::new(options)?)
        }
        outcome => outcome,
    }
}

/// Creates the administrator through the localhost exception, and then the clients' account as the administrator.
fn make_accounts(open: &Link, administrator: &mongodb::options::ClientOptions, setup: &Setup) -> Result<(), Fault> {
    let password = setup.credentials.password.expose_text();
    let create = |name: &str, roles: Vec<Document>| doc! { "createUser": name, "pwd": password, "roles": roles };
    open.admin(create(ADMINISTRATOR, vec![doc! { "role": "root", "db": "admin" }]))?;
    let link = Link::new(administrator.clone())?;
    link.admin(create(USER, vec![doc! { "role": "readWrite", "db": DATABASE }])).map(drop)
}

/// The driver connects at its first request; this sends one, so that an error shows at once.
fn opened(link: Link) -> Result<Link, Fault> {
    link.admin(doc! { "ping": 1 })?;
    Ok(link)
}

/// Makes the collection of `table` Tithe's own, and empty. On a server that Tithe launched, runs the arm's own commands
/// first.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let link = administrator(server, setup)?;
    if is_local(server) {
        for statement in &setup.statements {
            let command: Document = serde_json::from_str(statement)
                .map_err(|error| Fault::Protocol(format!("a statement of MongoDB is a command in JSON: {error}")))?;
            link.admin(command)?;
        }
    }
    let there = link.collections(DATABASE)?;
    match (there.iter().any(|name| name == MARKED), there.first()) {
        // Left over from a run that was killed.
        (true, _) => drop_collection(&link, &there, table),
        (false, Some(name)) => Err(foreign(name)),
        (false, None) => {
            let mark = doc! { "insert": MARKED, "documents": [{ "_id": "made by tithe" }] };
            link.run(DATABASE, mark).map(drop)
        }
    }
}

/// True if an attached server still has the mark.
///
/// # Errors
/// The server's error.
pub fn keeps_records(server: &Server, setup: &Setup) -> Result<bool, Fault> {
    let there = administrator(server, setup)?.collections(DATABASE)?;
    Ok(there.iter().any(|name| name == MARKED))
}

/// Removes the collection of `table`, and the mark if nothing else of Tithe is left.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let link = administrator(server, setup)?;
    let there = link.collections(DATABASE)?;
    match (there.iter().any(|name| name == MARKED), there.first()) {
        (true, _) => drop_collection(&link, &there, table)?,
        (false, Some(name)) => return Err(foreign(name)),
        (false, None) => return Ok(()),
    }
    if link.collections(DATABASE)?.iter().all(|name| name == MARKED) {
        link.run(DATABASE, doc! { "dropDatabase": 1 })?;
    }
    Ok(())
}

fn foreign(name: &str) -> Fault {
    Fault::Refused(format!("a collection `{DATABASE}.{name}` is on this server, and Tithe did not make it"))
}

/// Drops the collection of `table` if it is among those `there`.
fn drop_collection(link: &Link, there: &[String], table: &Table) -> Result<(), Fault> {
    if !there.contains(&table.name) {
        return Ok(());
    }
    link.run(DATABASE, doc! { "drop": &table.name }).map(drop)
}

/// Identifies the server that accepts the writes, whichever URL leads to it, through its replica set or not; `None` if
/// it reports nothing that identifies it.
///
/// # Errors
/// The server's error.
pub fn identity(server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
    Ok(identity_in(&administrator(server, setup)?.admin(doc! { "isMaster": 1 })?))
}

/// The same, from the answer to `isMaster`: the process id, which servers report from 4.4 on, or otherwise the address
/// of the primary and the name of its set. In a sharded cluster one of several routers to the same data answers.
fn identity_in(hello: &Document) -> Option<String> {
    let text = |name: &str| hello.get_str(name).ok();
    if text("msg") == Some("isdbgrid") {
        return None;
    }
    let version = hello.get_document("topologyVersion").ok();
    match version.and_then(|version| version.get_object_id("processId").ok()) {
        Some(process) => Some(process.to_hex()),
        None => Some(format!("{} {}", text("setName")?, text("primary")?)),
    }
}

/// Writes everything in memory to the data files of a launched server. On an attached one its owner decides that.
///
/// # Errors
/// The server's error.
pub fn quiesce(server: &Server, setup: &Setup) -> Result<(), Fault> {
    if !is_local(server) {
        return Ok(());
    }
    match administrator(server, setup)?.admin(doc! { "fsync": 1 }) {
        // FerretDB has written everything when it answers.
        Err(Fault::Server(words)) if words.contains("no such command") => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Bytes written to the journal since the server started; `None` if it cannot be seen.
pub fn journal_position(server: &Server, setup: &Setup) -> Option<u64> {
    let status = administrator(server, setup).ok()?.admin(doc! { "serverStatus": 1 }).ok()?;
    let log = status.get_document("wiredTiger").ok()?.get_document("log").ok()?;
    match log.get("log bytes written")? {
        Bson::Int32(bytes) => u64::try_from(*bytes).ok(),
        Bson::Int64(bytes) => u64::try_from(*bytes).ok(),
        Bson::Double(bytes) => Some(*bytes as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::oid::ObjectId;

    use super::*;

    #[test]
    fn two_urls_of_one_server_tell_the_same_server() {
        let process = |number: u8| doc! { "processId": ObjectId::from_bytes([number; 12]), "counter": 6_i64 };
        let alone = identity_in(&doc! { "ismaster": true, "topologyVersion": process(1) });
        assert_eq!(alone.as_deref(), Some("010101010101010101010101"));
        let in_set = doc! { "setName": "rs0", "primary": "db:27017", "topologyVersion": process(1) };
        assert_eq!(identity_in(&in_set), alone);
        // Sets with the same name, whose members have the same names.
        assert_ne!(identity_in(&doc! { "setName": "rs0", "topologyVersion": process(2) }), alone);
        let older = doc! { "setName": "rs0", "primary": "db:27017", "me": "db:27017" };
        assert_eq!(identity_in(&older).as_deref(), Some("rs0 db:27017"));
        assert_eq!(identity_in(&doc! { "ismaster": true }), None);
        // Which router answers is chance.
        assert_eq!(identity_in(&doc! { "msg": "isdbgrid", "topologyVersion": process(3) }), None);
    }
}
