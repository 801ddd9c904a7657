//! MariaDB 10.6 and newer: launched on this machine, or attached to by URL. MySQL 8 is attached to only: its encryption at
//! rest and its audit log are other components with other settings, and no build of it was at hand to prove them with.
//!
//! The client is Tithe's own ([`protocol`], [`session`]). Each protection is one file below [`protection`], each check that
//! only MariaDB has one file below [`evidence`].

mod evidence;
mod inspect;
mod install;
mod launch;
mod proof;
mod protection;
mod protocol;
mod rotation;
mod schema;
mod session;
mod sql;
mod startup;
mod target;

use std::collections::BTreeMap;

use tithe_harness::{
    database::{CacheUse, Connect, Database, Install, Launch, Missing, Place, Reach, Search, Server, Stored},
    fault::Fault,
    inspect::{FindCanaryChecks, Observation},
    protection::{Protection, Setup},
    rotation::Rotator,
    session::{Session, SqlSession as _},
    sql::SqlDatabase,
    workload::Table,
};
use tithe_model::{experiment::Url, record::ArmFacts};

use self::{session::MariaDbSession, target::PRODUCT};
use crate::ycsb_over_sql::YcsbOverSql;

/// MariaDB.
pub struct MariaDb;

impl Database for MariaDb {
    fn id(&self) -> &'static str {
        "mariadb"
    }

    fn title(&self) -> &'static str {
        "MariaDB"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["mariadb", "mysql"]
    }

    fn check_url(&self, url: &Url) -> Result<(), Fault> {
        PRODUCT.check_url(url)
    }

    fn restarts(&self) -> bool {
        true
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        launch::memory_needed(settings)
    }

    fn cache_use(&self, server: &Server, setup: &Setup) -> Option<CacheUse> {
        schema::cache_use(server, setup)
    }

    fn reserved_settings(&self) -> &'static [(&'static str, &'static str)] {
        launch::RESERVED
    }

    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        Some(launch::stored(setup))
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let session = measured(server, setup, how, &[])?;
        let records = YcsbOverSql::new(Box::new(session), &how.table, &schema::DIALECT)?;
        Ok(Session::KeyValue(Box::new(records)))
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

    fn settle(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::settle(server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        schema::facts(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<Observation>, Fault> {
        inspect::inspect(server, setup)
    }

    fn rotator(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Rotator>, Fault> {
        Ok(Box::new(rotation::KeyRotator::new(server, setup)?))
    }

    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        Some(inspect::canary_checks)
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        PRODUCT.reach(server, setup)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        schema::redo_written(server, setup)
    }
}

/// A session as measured clients have it, which first runs `before` and then the arm's own statements.
fn measured(server: &Server, setup: &Setup, how: &Connect, before: &[&str]) -> Result<MariaDbSession, Fault> {
    let mut session = MariaDbSession::open(&PRODUCT.target(server, setup)?)?;
    if let Some(process) = server.process {
        session.find_thread(process);
    }
    for statement in before.iter().copied().chain(setup.session_statements.iter().map(String::as_str)) {
        session.run(statement)?;
    }
    session.set_blocking(how.blocking)?;
    Ok(session)
}
