//! MariaDB and MySQL as one database: protocol, session, tables, and the checks that mean the same on both.
//!
//! [`Family`] is the plug-in of either. Each product has a folder of its own for its launch, its protections and its
//! entry. All differences between the two are in its [`Flavour`], of which sessions and checks only know the
//! [`Access`].

pub mod access;
pub mod accounts;
pub mod attached;
mod clients;
mod database;
mod dialect;
pub mod evidence;
pub mod foreign;
pub mod inspect;
pub mod launch;
mod option_file;
mod own_columns;
mod own_tables;
pub mod proof;
pub mod protection;
mod protocol;
pub mod recorders;
pub mod replication;
pub mod rights;
mod rsa;
pub mod schema;
pub mod session;
pub mod sql;
mod startup;
pub mod target;
#[cfg(test)]
pub mod told;
mod ways;

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
};
use tithe_model::catalogue::{DatabaseEntry, KeptUndo, UrlTls, WireProtocol};
use tithe_plugin::{
    custom::Custom,
    database::{Download, Lack},
    product::FindCanaryChecks,
    protection::Protection,
    rotation::Rotator,
    setup::Setup,
};

use self::{access::Access, inspect::InspectionQueries, session::WireSession};

/// A product of the family: the plug-in. Its implementation is in `database.rs`; the one for SQL tables is in `sql.rs`.
pub struct Family(pub &'static Flavour);

/// Name under which `Install::facts` holds the folder of plugins.
pub const PLUGINS: &str = "plugins";

/// The part of the entry that both products share.
pub const ENTRY: DatabaseEntry = DatabaseEntry {
    restarts: true,
    keeps_data: true,
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: None },
    password_variable: target::PASSWORD_VARIABLE,
    wire_protocol: Some(WireProtocol::MySql),
    server_programs: &["mariadbd", "mysqld"],
    setting_modifiers: &launch::MODIFIERS,
    ..DatabaseEntry::BARE
};

/// How their servers keep the statements that undo changes.
pub const KEPT: KeptUndo = KeptUndo::in_sql(&[
    "CREATE TABLE {space}.tithe_undo (number int PRIMARY KEY, statement text) COMMENT 'made by tithe'",
]);

/// The differences between the products of the family.
pub struct Flavour {
    /// The product's entry in the list of databases.
    pub entry: DatabaseEntry,
    /// Looks for an installation on this machine.
    pub find: fn(&Search) -> Result<Install, Missing>,
    /// The server's program.
    pub program: &'static str,
    /// How its programs are downloaded, if no package brings them.
    pub download: Option<Download>,
    /// Everything that starts one server of an arm.
    pub launch: fn(&Install, &Setup, &Place) -> Launch,
    /// What a stopped server of an arm leaves.
    pub stored: fn(&Setup) -> Stored,
    /// The least memory that a server with these settings needs, bytes; `None` if that is not known.
    pub memory_needed: fn(&BTreeMap<String, String>) -> Option<u64>,
    /// Its protections, in the order of `tithe ls`.
    pub protections: &'static [&'static dyn Protection],
    /// Protections of the reader's own.
    pub custom: &'static Custom,
    /// How its own rows of the security matrix are checked.
    pub queries: &'static InspectionQueries,
    /// Finds out what canaries can show on a running server.
    pub canary_checks: FindCanaryChecks,
    /// Changes the keys of a running server, if the product can.
    pub rotator: Option<OpenRotator>,
    /// How sessions connect to its servers.
    pub access: &'static Access,
    /// What a server that Tithe did not start lacks for features that only this product has.
    pub own_lacks: FindLacks,
    /// Variables whose values go into the report, if the server has them. None of them is a secret.
    pub reported: &'static [&'static str],
    /// True when the server encrypts nothing in the background any more.
    pub is_encrypted: fn(&mut WireSession) -> Result<bool, Fault>,
    /// Has the server write all of a table to its file, and finish removing old rows from it.
    pub write_table: fn(&mut WireSession, &str) -> Result<(), Fault>,
}

/// Opens the key rotator of a server with this set-up. Fails with the server's error.
pub type OpenRotator = fn(&Server, &Setup) -> Result<Box<dyn Rotator>, Fault>;

/// Finds what the account of a session, given by name, lacks. Fails with the server's error.
pub type FindLacks = fn(&mut WireSession, &str) -> Result<Vec<Lack>, Fault>;
