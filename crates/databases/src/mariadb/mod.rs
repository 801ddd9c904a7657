//! MariaDB 10.6 and newer: launched on this machine, or attached to by URL.
//!
//! The client is Tithe's own and shared with MySQL ([`crate::mysql_family`]). Each protection is one file below
//! [`protection`], each check that only MariaDB has one file below [`evidence`].

mod accounts;
mod evidence;
mod flavour;
mod inspect;
mod install;
mod launch;
mod protection;
mod rotation;

use std::collections::BTreeMap;

use tithe_harness::{
    database::{CacheUse, Connect, Database, SqlDatabase},
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
    observation::Observation,
    product::{FindCanaryChecks, Product},
    protection::Protection,
    rotation::Rotator,
    session::{Session, Table},
    setup::{Reach, Setup, WireProtocol},
};
use tithe_model::{experiment::Url, record::ArmFacts};

use self::flavour::FLAVOUR;
use crate::{
    mysql_family::{self, schema, sql::Tables},
    ycsb_over_sql::YcsbOverSql,
};

/// MariaDB.
pub struct MariaDb;

/// Its SQL tables.
static TABLES: Tables = Tables(&FLAVOUR);

impl Database for MariaDb {
    fn id(&self) -> &'static str {
        "mariadb"
    }

    fn title(&self) -> &'static str {
        "MariaDB"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["mariadb"]
    }

    fn check_url(&self, url: &Url) -> Result<(), Fault> {
        FLAVOUR.product.check_url(url)
    }

    fn restarts(&self) -> bool {
        true
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        launch::memory_needed(settings)
    }

    fn cache_use(&self, server: &Server, setup: &Setup) -> Option<CacheUse> {
        schema::cache_use(&FLAVOUR, server, setup)
    }

    fn reserved_settings(&self) -> &'static [(&'static str, &'static str)] {
        launch::RESERVED
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
        let session = FLAVOUR.measured(server, setup, how, &[])?;
        let records = YcsbOverSql::new(Box::new(session), &how.table, &schema::DIALECT)?;
        Ok(Session::KeyValue(Box::new(records)))
    }

    fn sql(&self) -> Option<&dyn SqlDatabase> {
        Some(&TABLES)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::create(&FLAVOUR, server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::remove(&FLAVOUR, server, setup, table)
    }

    fn settle(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::settle(&FLAVOUR, server, setup, table)
    }

    fn write_out(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        mysql_family::inspect::write_out(&FLAVOUR, server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        schema::facts(&FLAVOUR, server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<Observation>, Fault> {
        mysql_family::inspect::inspect(&FLAVOUR, &inspect::LOOKS, server, setup)
    }

    fn rotator(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Rotator>, Fault> {
        Ok(Box::new(rotation::KeyRotator::new(server, setup)?))
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        Some(WireProtocol::MySql)
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        FLAVOUR.product.reach(server, setup)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        schema::redo_written(&FLAVOUR, server, setup)
    }
}

impl Product for MariaDb {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        Some(inspect::canary_checks)
    }
}
