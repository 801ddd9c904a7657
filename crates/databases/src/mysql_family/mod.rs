//! MariaDB and MySQL as one database: protocol, session, tables, and the checks that mean the same on both.
//!
//! [`Family`] is the plug-in of either. Each product has a folder of its own for its launch, its protections and what
//! it says about itself; all in which the two differ is in its [`Flavour`].

pub mod accounts;
mod attached;
mod clients;
mod database;
mod dialect;
pub mod evidence;
pub mod inspect;
pub mod launch;
pub mod proof;
pub mod protection;
mod protocol;
mod rsa;
pub mod schema;
pub mod session;
pub mod sql;
mod startup;
pub mod target;

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
};
use tithe_model::catalogue::{DatabaseEntry, UrlTls, WireProtocol};
use tithe_plugin::{
    database::{Connect, Download},
    product::FindCanaryChecks,
    protection::Protection,
    rotation::Rotator,
    session::SqlSession as _,
    setup::Setup,
};

use self::{inspect::InspectionQueries, session::WireSession};
use crate::target::{Product, Target, is_local};

/// A product of the family: the plug-in. Its implementation is in `database.rs`, that for SQL tables in `sql.rs`.
pub struct Family(pub &'static Flavour);

/// What both products say of themselves.
pub const ENTRY: DatabaseEntry = DatabaseEntry {
    restarts: true,
    keeps_data: true,
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: None },
    password_variable: target::PASSWORD_VARIABLE,
    wire_protocol: Some(WireProtocol::MySql),
    server_programs: &["mariadbd", "mysqld"],
    ..DatabaseEntry::BARE
};

/// What differs between the products of the family.
pub struct Flavour {
    /// What the product says of itself.
    pub entry: DatabaseEntry,
    /// Looks for an installation on this machine.
    pub find: fn(&Search) -> Result<Install, Missing>,
    /// The server's program.
    pub program: &'static str,
    /// How its programs are downloaded, if no package brings them.
    pub download: Option<Download>,
    /// Everything that starts one server of an arm.
    pub launch: fn(&Install, &Setup, &Place) -> Launch,
    /// What a server of an arm leaves when it is stopped.
    pub stored: fn(&Setup) -> Stored,
    /// The least memory that a server with these settings lives in, bytes; `None` where that is not known.
    pub memory_needed: fn(&BTreeMap<String, String>) -> Option<u64>,
    /// Its protections, in the order of `tithe ls`.
    pub protections: &'static [&'static dyn Protection],
    /// How its own rows of the security matrix are looked at.
    pub queries: &'static InspectionQueries,
    /// Finds out what canaries can show on a running server.
    pub canary_checks: FindCanaryChecks,
    /// What changes the keys of a running server, if anything does.
    pub rotator: Option<OpenRotator>,
    /// Port, names and URL options.
    pub product: Product,
    /// True for a version of this product, as servers say it first.
    pub is_own: fn(&str) -> bool,
    /// What to write instead where a server is of the other product.
    pub otherwise: &'static str,
    /// Statement that tells the number which the kernel has given to the session's thread in the server.
    pub thread: &'static str,
    /// Variables whose values go into the report, where the server has them. None of them is a secret.
    pub reported: &'static [&'static str],
    /// True when the server encrypts nothing in the background any more.
    pub is_encrypted: fn(&mut WireSession) -> Result<bool, Fault>,
    /// Has the server write all of a table to its file, and end what it still has to remove from it.
    pub write_table: fn(&mut WireSession, &str) -> Result<(), Fault>,
}

/// Opens what changes the keys of a server with this set-up. Fails with the server's error.
pub type OpenRotator = fn(&Server, &Setup) -> Result<Box<dyn Rotator>, Fault>;

impl Flavour {
    /// Opens a connection to `target`, a server of this product.
    ///
    /// # Errors
    /// A refusal of either side, a broken connection, or a server of the other product.
    pub fn open(&'static self, target: &Target) -> Result<WireSession, Fault> {
        WireSession::open(self, target)
    }

    /// A session that is not measured. It runs none of the statements of the clients' sessions.
    ///
    /// # Errors
    /// As [`Flavour::open`].
    pub fn administrator(&'static self, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
        self.open(&self.product.target(server, setup)?)
    }

    /// A session as measured clients have it, which first runs `before` and then the arm's own statements.
    ///
    /// # Errors
    /// As [`Flavour::open`]; the server's error.
    pub fn measured(
        &'static self,
        server: &Server,
        setup: &Setup,
        how: &Connect,
        before: &[&str],
    ) -> Result<WireSession, Fault> {
        let mut session = self.administrator(server, setup)?;
        if let Some(process) = server.process
            && (is_local(server) || session.has_thread())
        {
            session.find_thread(process);
        }
        for statement in before.iter().copied().chain(setup.session_statements.iter().map(String::as_str)) {
            session.run(statement)?;
        }
        session.set_blocking(how.blocking)?;
        Ok(session)
    }
}
