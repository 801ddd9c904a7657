//! MongoDB 4.2 and newer, and Percona Server for MongoDB: launched on this machine, or attached to by URL.
//!
//! The client is the official Rust driver, whose processor time is part of the client's figure: applications pay it
//! too. Each connection of the load has its own driver with a pool of one, which runs in the lane's thread ([`link`]).
//! So a lane serves one operation at a time; several connections of one lane take turns.
//!
//! A server that uses the protocol and is not MongoDB is called by its own name: see [`build`].

mod attached;
mod build;
mod evidence;
#[doc(hidden)]
pub mod foreign;
mod inspect;
mod install;
mod launch;
mod link;
mod probe;
mod protection;
mod session;
mod store;
mod target;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server},
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

use self::session::MongoSession;

/// MongoDB and Percona Server for MongoDB.
pub struct MongoDb;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "mongodb",
    title: "MongoDB",
    schemes: &["mongodb"],
    // It is refused with the reason.
    scheme_aliases: &["mongodb+srv"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: None },
    password_variable: target::PASSWORD_VARIABLE,
    identity_of_process: true,
    reserved_settings: launch::RESERVED,
    statement_form: StatementForm { comment: "//", end: ";" },
    start_s: 2.0,
    server_programs: &["mongod"],
    network_login: NetworkLogin::Refused("it lets its first account be made from 127.0.0.1 alone"),
    bulk: false,
    ..DatabaseEntry::BARE
};

impl Database for MongoDb {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        target::check_url(url, setup)
    }

    fn remarks(&self, url: &Url, _setup: &Setup) -> Vec<String> {
        target::remarks(url)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        target::endpoint(url)
    }

    fn lacks(&self, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
        attached::lacks(server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        store::identity(server, setup)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let link = store::client(server, setup)?;
        let mut session = MongoSession::new(link, &how.table);
        for statement in &setup.session_statements {
            tithe_plugin::session::Connection::run_statement(&mut session, statement)?;
        }
        Ok(Session::KeyValue(Box::new(session)))
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
        build::facts(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        inspect::recording(server, setup, sent)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        store::journal_position(server, setup)
    }
}

impl Product for MongoDb {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }
}
