//! The plug-in of both products: answers to the harness, from its [`Flavour`](super::Flavour).

use std::collections::BTreeMap;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
    sandbox::process,
};
use tithe_model::{catalogue::DatabaseEntry, experiment::Url, record::ArmFacts};
use tithe_plugin::{
    connections::ConnectionList,
    database::{CacheUse, Connect, Database, Download, Lack, SqlDatabase, keeps_its_keys},
    matrix::FeatureStatus,
    product::{FindCanaryChecks, Product},
    protection::Protection,
    recording::{Recording, Sent},
    rotation::Rotator,
    session::{Session, SqlSession as _, Table, answered_within},
    setup::{Reach, Setup},
};

use super::{Family, PLUGINS, attached, clients::Clients, inspect, launch, recorders, schema, startup};
use crate::ycsb_over_sql::YcsbOverSql;

/// How long a server may take to greet when its product is not known, s: then the URL decides.
const PATIENCE_S: u16 = 2;

impl Database for Family {
    fn entry(&self) -> &'static DatabaseEntry {
        &self.0.entry
    }

    fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        self.0.access.product.check_url(url, setup)
    }

    fn is_product_at(&self, url: &Url) -> Option<bool> {
        let (host, port) = self.endpoint(url)?;
        answered_within(PATIENCE_S, || startup::version(&host, port))
            .ok()
            .map(|version| (self.0.access.is_own)(&version))
    }

    fn remarks(&self, url: &Url, setup: &Setup) -> Vec<String> {
        self.0.access.product.remarks(url, setup)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        self.0.access.product.endpoint(url)
    }

    fn lacks(&self, server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
        attached::lacks(self.0, server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        schema::identity(self.0.access, server, setup).map(Some)
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn ask(&self, server: &Server, setup: &Setup, question: &str) -> Result<Option<String>, Fault> {
        // Not as clients connect: they use a database that may not exist yet.
        let mut rows = self.0.access.administrator(server, setup)?.run(question)?;
        Ok(if rows.is_empty() { None } else { rows.swap_remove(0).pop().flatten() })
    }

    fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
        (self.0.memory_needed)(settings)
    }

    fn cache_use(&self, server: &Server, setup: &Setup) -> Option<CacheUse> {
        schema::cache_use(self.0.access, server, setup)
    }

    fn in_place_of(&self, install: &Install, name: &str) -> Option<Vec<String>> {
        let said =
            process::ask(&install.programs.join(self.0.program), &["--no-defaults", "--verbose", "--help"]).ok()?;
        let folder = install.facts.get(PLUGINS).map(std::fs::read_dir);
        let files = folder.into_iter().flatten().flatten().flatten();
        let libraries: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
        launch::in_place_of(&String::from_utf8_lossy(&said.stdout), &libraries, name)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        (self.0.find)(search)
    }

    fn download(&self) -> Option<Download> {
        self.0.download
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        (self.0.launch)(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        Some((self.0.stored)(setup))
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let session = self.0.access.measured(server, setup, how, &[])?;
        let records = YcsbOverSql::new(Box::new(session), &setup.space, &how.table, &schema::YCSB_DIALECT)?;
        Ok(Session::KeyValue(Box::new(records)))
    }

    fn sql(&self) -> Option<&dyn SqlDatabase> {
        Some(self)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::create(self.0.access, server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::remove(self.0.access, server, setup, table)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        schema::quiesce(self.0, server, setup, table)
    }

    fn write_out(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        inspect::write_out(self.0.access, server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        schema::facts(self.0, server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(self.0, server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        recorders::recording(self.0.access, server, setup, sent).map(Some)
    }

    fn connection_list(&self, server: &Server, setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Ok(Box::new(Clients::open(self.0.access, server, setup)?))
    }

    fn rotator(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Rotator>, Fault> {
        let open = self.0.rotator.ok_or_else(|| keeps_its_keys(self.title()))?;
        open(server, setup)
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        self.0.access.product.reach(server, setup)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        schema::redo_position(self.0.access, server, setup)
    }
}

impl Product for Family {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        self.0.protections
    }

    fn custom(&self) -> &'static dyn Protection {
        self.0.custom
    }

    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        Some(self.0.canary_checks)
    }
}
