//! Apache Cassandra 4.1 and newer: launched on this machine as one to four nodes, or attached to by URL.
//!
//! The client is Tithe's own ([`protocol`], [`session`]). Cassandra only encrypts its commit log. Data files stay in
//! plaintext, and the protection that encrypts the log states and shows that. Each protection is one file below
//! [`protection`]; each check that only Cassandra has is one file below [`evidence`].

mod attached;
mod clients;
mod cluster;
mod connection;
mod evidence;
#[doc(hidden)]
pub mod foreign;
mod get;
mod inspect;
mod install;
mod launch;
mod protection;
mod protocol;
mod session;
mod spoken;
mod store;
mod target;
#[cfg(test)]
mod told;

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry, NetworkLogin, UrlTls, WireProtocol},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    connections::ConnectionList,
    custom::Custom,
    database::{Connect, Database, Download, Lack, Speaker, Statements},
    matrix::FeatureStatus,
    product::{FindCanaryChecks, Product},
    protection::Protection,
    recording::{Recording, Sent},
    session::{Session, Table},
    setup::{Reach, Setup},
};

use self::{
    clients::Clients,
    cluster::Cluster,
    connection::{CqlConnection, named},
    evidence::CLAIMS,
    session::CassandraSession,
    spoken::Spoken,
};
use crate::java;

/// Apache Cassandra.
pub struct Cassandra;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "cassandra",
    title: target::PRODUCT.title,
    schemes: &["cassandra"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: None },
    password_variable: target::PRODUCT.password_variable,
    keeps_data: true,
    reserved_settings: launch::RESERVED,
    known_settings: launch::KNOWN,
    compiles: true,
    wire_protocol: Some(WireProtocol::Cql),
    network_login: NetworkLogin::Refused(
        "its nodes have loopback addresses of their own, and everybody knows the password of a new cluster's first account",
    ),
    custom: Some(AskedOfCustom {
        setting: "SELECT value FROM system_views.settings WHERE name = '{setting}'",
        between: '_',
        // The connection itself refuses changes: `spoken`.
        careful: &[],
        kept: None,
    }),
    start_s: 25.0,
    server_programs: &["java"],
    bulk: false,
    ..DatabaseEntry::BARE
};

impl Database for Cassandra {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        target::PRODUCT.check_url(url, setup)
    }

    fn check_setup(&self, setup: &Setup) -> Result<(), Fault> {
        crate::tls::without_ed25519(setup, "Cassandra", "it reads RSA, DSA and EC keys from PEM files alone")
    }

    fn remarks(&self, url: &Url, setup: &Setup) -> Vec<String> {
        target::PRODUCT.remarks(url, setup)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        target::PRODUCT.endpoint(url)
    }

    fn lacks(&self, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
        attached::lacks(server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        store::identity(server, setup)
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn check_settings(&self, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        Cluster::of_settings(settings)?;
        java::heap_bytes(settings).map(drop)
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        java::memory_needed(settings, Cluster::of_settings(settings).ok()?.nodes)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn download(&self) -> Option<Download> {
        Some(get::LIBRARIES)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        launch::stored(setup)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let target = target::of_clients(server, setup)?;
        let level = Cluster::of(setup)?.level;
        let mut connection = CqlConnection::open(&target)?;
        for statement in &setup.session_statements {
            connection.run(statement)?;
        }
        let session = CassandraSession::new(connection, &target.database, &how.table, level, how.blocking)?;
        Ok(Session::KeyValue(Box::new(session)))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::create(server, setup, table).map_err(named)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::remove(server, setup, table).map_err(named)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::quiesce(server, setup, table)
    }

    fn connection_list(&self, server: &Server, setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Ok(Box::new(Clients::open(server, setup)?))
    }

    fn statements(
        &self,
        server: &Server,
        setup: &Setup,
        _how: &Connect,
        speaker: Speaker,
    ) -> Result<Box<dyn Statements>, Fault> {
        Ok(Box::new(Spoken::open(server, setup, speaker)?))
    }

    fn answers(&self) -> bool {
        true
    }

    fn ask(&self, server: &Server, setup: &Setup, question: &str) -> Result<Option<String>, Fault> {
        let mut rows = CqlConnection::open(&target::of_clients(server, setup)?)?.texts(question)?;
        Ok(if rows.is_empty() { None } else { rows.swap_remove(0).pop() })
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        target::PRODUCT.reach(server, setup)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        store::facts(server, setup).map_err(named)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        inspect::recording(server, setup, sent)
    }
}

impl Product for Cassandra {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn custom(&self) -> &'static dyn Protection {
        static CUSTOM: Custom = Custom(&CLAIMS);
        &CUSTOM
    }

    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        Some(inspect::canary_checks)
    }
}
