//! PostgreSQL 13 and newer: launched on this machine, or attached to by URL.
//!
//! The client is Tithe's own ([`protocol`], [`session`]). A driver's cost is part of every figure, and this client
//! costs two system calls and no allocation per operation. Each protection is one file below [`protection`]; each check
//! that only PostgreSQL has is one file below [`evidence`].

mod attached;
mod binding;
mod clients;
mod dialect;
mod evidence;
mod files;
#[doc(hidden)]
pub mod foreign;
mod get;
mod hba;
mod inspect;
mod install;
mod launch;
mod log_writer;
mod own_columns;
mod own_tables;
mod parameters;
mod peer;
mod protection;
mod protocol;
mod schema;
mod scram;
mod session;
mod sql;
mod startup;
mod target;
#[cfg(test)]
mod told;

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
    proc::ServerTask,
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry, KeptUndo, NetworkLogin, UrlTls, WireProtocol},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    connections::ConnectionList,
    custom::Custom,
    database::{CacheUse, Connect, Database, Download, Lack, LogWriting, SqlDatabase},
    matrix::FeatureStatus,
    product::{FindCanaryChecks, Product},
    protection::Protection,
    recording::{Recording, Sent},
    session::{Connection as _, Session, Table},
    setup::{Reach, Setup},
};

use self::{clients::Clients, evidence::CLAIMS, session::PostgresSession, target::PRODUCT};
use crate::ycsb_over_sql::YcsbOverSql;

/// PostgreSQL.
pub struct Postgres;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "postgres",
    title: PRODUCT.title,
    schemes: &["postgres", "postgresql"],
    scheme_aliases: &["postgis", "pgsql", "psql", "timescale", "pdo-pgsql"],
    url_tls: UrlTls { options: parameters::TLS_OPTIONS, schemes: None },
    address_option: Some("hostaddr"),
    password_variable: PRODUCT.password_variable,
    restarts: true,
    keeps_data: true,
    reserved_settings: launch::RESERVED,
    server_programs: &["postgres"],
    wire_protocol: Some(WireProtocol::Postgres),
    network_login: NetworkLogin::Password("scram-sha-256"),
    custom: Some(AskedOfCustom {
        setting: "SELECT current_setting('{setting}')",
        between: '_',
        careful: &[
            "SELECT set_config('statement_timeout', '10s', false) FROM pg_settings \
             WHERE name = 'statement_timeout' AND setting::int NOT BETWEEN 1 AND 10000",
            "SET default_transaction_read_only = on",
            "BEGIN READ ONLY",
        ],
        kept: Some(KeptUndo::in_sql(&[
            "CREATE TABLE {space}.tithe_undo (number int, statement text); COMMENT ON TABLE {space}.tithe_undo IS 'made \
             by tithe'",
        ])),
    }),
    start_s: 0.2,
    ..DatabaseEntry::BARE
};

impl Database for Postgres {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        target::check_url(url, setup)
    }

    fn check_setup(&self, setup: &Setup) -> Result<(), Fault> {
        target::check_setup(setup)
    }

    fn remarks(&self, url: &Url, setup: &Setup) -> Vec<String> {
        PRODUCT.remarks(url, setup)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        PRODUCT.endpoint(url)
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        launch::memory_needed(settings)
    }

    fn cache_use(&self, server: &Server, setup: &Setup) -> Option<CacheUse> {
        schema::cache_use(server, setup)
    }

    fn in_place_of(&self, install: &Install, name: &str) -> Option<Vec<String>> {
        install::in_place_of(install, name)
    }

    fn lacks(&self, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
        attached::lacks(server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        schema::identity(server, setup).map(Some)
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn download(&self) -> Option<Download> {
        Some(get::SERVER)
    }

    fn find_all(&self, search: &Search) -> Vec<Install> {
        install::find_all(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        Some(launch::stored(setup))
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let target = PRODUCT.target(server, setup)?;
        let mut session = PostgresSession::open_measured(&target, how.blocking, server.process.is_some())?;
        for statement in &setup.session_statements {
            session.run_statement(statement)?;
        }
        let records = YcsbOverSql::new(Box::new(session), &setup.space, &how.table, &schema::YCSB_DIALECT)?;
        Ok(Session::KeyValue(Box::new(records)))
    }

    fn log_writing(&self, server: &Server, setup: &Setup, task: &ServerTask) -> LogWriting {
        let ServerTask::Process(backend) = task else { return LogWriting::Each };
        // A server that Tithe started has a collector only if it was configured; without one, no frame searches for it.
        match (server.address.is_attached(), launch::collects_log(setup)) {
            (true, _) => log_writer::log_writing(*backend),
            (false, true) => match log_writer::log_writing(*backend) {
                LogWriting::Each => LogWriting::Unseen,
                seen => seen,
            },
            (false, false) => LogWriting::Each,
        }
    }

    fn sql(&self) -> Option<&dyn SqlDatabase> {
        Some(self)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::remove(server, setup, table)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::quiesce(server, setup, table)
    }

    fn precondition(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::precondition(server, setup, &schema::YCSB_DIALECT.qualified(&setup.space, table))
    }

    fn write_out(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        schema::write_out(server, setup)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        schema::facts(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        inspect::recording(server, setup, sent).map(Some)
    }

    fn connection_list(&self, server: &Server, setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Ok(Box::new(Clients::open(server, setup)?))
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        PRODUCT.reach(server, setup)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        schema::wal_position(server, setup)
    }
}

impl Product for Postgres {
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
