//! OpenSearch 2: launched on this machine, or attached to by URL.
//!
//! The client is Tithe's own ([`http`], [`documents`]): one request at a time over HTTP/1.1 on a connection that stays
//! open. All protections of the server are those of its security plugin, which encrypts no file.

mod connection;
mod documents;
mod evidence;
pub mod foreign;
mod get;
mod http;
mod inspect;
mod install;
mod launch;
mod protection;
mod session;
mod store;
mod target;
#[cfg(test)]
mod test_server;

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
};
use tithe_model::{
    catalogue::{DatabaseEntry, NetworkLogin, StatementForm, UrlTls, WireProtocol},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    database::{Condition, Connect, Database, Download, Lack},
    matrix::FeatureStatus,
    product::{FindCanaryChecks, Product},
    protection::Protection,
    recording::{Recording, Sent},
    session::{Session, Table},
    setup::{Reach, Setup},
};

use self::{connection::OpenSearchConnection, session::OpenSearchSession};
use crate::java;

/// OpenSearch.
pub struct OpenSearch;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "opensearch",
    title: target::PRODUCT.title,
    schemes: &["opensearch", "opensearchs"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: Some(("opensearchs", "opensearch")) },
    over_http: true,
    password_variable: target::PRODUCT.password_variable,
    keeps_data: true,
    reserved_settings: launch::RESERVED,
    compiles: true,
    wire_protocol: Some(WireProtocol::OpenSearch),
    statement_form: StatementForm { comment: "#", end: "" },
    network_login: NetworkLogin::Refused("everybody knows the password of a new server's first account"),
    server_programs: &["java"],
    start_s: 20.0,
    ..DatabaseEntry::BARE
};

impl Database for OpenSearch {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        target::PRODUCT.check_url(url, setup)
    }

    fn check_setup(&self, setup: &Setup) -> Result<(), Fault> {
        crate::tls::without_ed25519(setup, "OpenSearch", "it reads RSA, DSA and EC keys from PEM files alone")
    }

    fn remarks(&self, url: &Url, setup: &Setup) -> Vec<String> {
        target::PRODUCT.remarks(url, setup)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        target::PRODUCT.endpoint(url)
    }

    fn lacks(&self, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
        store::lacks(server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        store::identity(server, setup)
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn check_settings(&self, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        launch::check(settings)
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        java::memory_needed(settings, launch::nodes(settings).ok()?)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn download(&self) -> Option<Download> {
        Some(get::SERVER)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        launch::stored(setup)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let mut connection = OpenSearchConnection::open(&target::of_clients(server, setup)?)?;
        for statement in &setup.session_statements {
            connection.request(statement)?;
        }
        Ok(Session::KeyValue(Box::new(OpenSearchSession::new(connection, how.blocking, &setup.space, &how.table)?)))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::remove(server, setup, table)
    }

    fn keeps_records(&self, server: &Server, setup: &Setup, table: &Table) -> Result<bool, Fault> {
        store::keeps_records(server, setup, table)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::quiesce(server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        store::facts(server, setup)
    }

    fn condition(&self, server: &Server, setup: &Setup) -> Option<Condition> {
        store::condition(server, setup)
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        target::PRODUCT.reach(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        inspect::recording(server, setup, sent)
    }
}

impl Product for OpenSearch {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        Some(inspect::canary_checks)
    }
}
