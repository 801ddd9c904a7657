//! etcd 3.4 and newer: launched on this machine as one member or three, or attached to by URL.
//!
//! The client is Tithe's own and uses gRPC ([`http2`], [`hpack`], [`messages`]), as Kubernetes does. The JSON gateway
//! would be less code, but it is itself a client inside the server and uses TLS again. A read through it took 340 µs of
//! the server's processor time in place of 170 (3.4.23, without TLS).

mod connection;
mod evidence;
#[doc(hidden)]
pub mod foreign;
mod hpack;
mod http2;
mod inspect;
mod install;
mod keys;
mod launch;
mod messages;
mod peers;
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
    catalogue::{DatabaseEntry, NetworkLogin, StatementForm, UrlTls},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    database::{Connect, Database, Lack},
    matrix::FeatureStatus,
    product::Product,
    protection::Protection,
    recording::{Recording, Sent},
    session::{Session, Table},
    setup::Setup,
};

use self::{connection::EtcdConnection, session::EtcdSession};

/// etcd.
pub struct Etcd;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "etcd",
    title: target::PRODUCT.title,
    schemes: &["etcd", "etcds"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: Some(("etcds", "etcd")) },
    over_http: true,
    password_variable: target::PRODUCT.password_variable,
    keeps_data: true,
    reserved_settings: launch::RESERVED,
    statement_form: StatementForm { comment: "#", end: "" },
    server_programs: &["etcd"],
    network_login: NetworkLogin::Password(target::PASSWORD),
    start_s: 1.0,
    own_cache: false,
    bulk: false,
    ..DatabaseEntry::BARE
};

impl Database for Etcd {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        target::PRODUCT.check_url(url, setup)
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
        launch::members_of(settings).map(drop)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        launch::stored(setup)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let mut connection = EtcdConnection::open(&target::of_clients(server, setup)?)?;
        for statement in &setup.session_statements {
            connection.call(&messages::path_of(statement), |_| {})?;
        }
        Ok(Session::KeyValue(Box::new(EtcdSession::new(connection, how.blocking, &setup.space, &how.table)?)))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::remove(server, setup, table)
    }

    fn keeps_records(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<bool, Fault> {
        store::keeps_records(server, setup)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        store::quiesce(server, setup)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        store::facts(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, _server: &Server, _setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        // Its log records the sizes of values, but no values.
        Ok(matches!(sent, Sent::Values).then(Recording::default))
    }
}

impl Product for Etcd {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }
}
