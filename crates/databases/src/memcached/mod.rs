//! memcached 1.6: launched on this machine, or attached to by URL.
//!
//! The client is Tithe's own ([`protocol`], [`session`]) and uses the text protocol. memcached keeps everything in
//! memory, so there are no claims about files. It has no accounts with rights, no audit log and no scans. Its SASL
//! logins need the binary protocol, which is deprecated, and are left out.

mod connection;
mod evidence;
#[doc(hidden)]
pub mod foreign;
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
mod test_server;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server},
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry, NetworkLogin, StatementForm, UrlTls},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    custom::Custom,
    database::{Condition, Connect, Database, Lack, Speaker, Statements},
    matrix::FeatureStatus,
    product::Product,
    protection::Protection,
    recording::{Recording, Sent},
    session::{Session, Table},
    setup::{Reach, Setup},
};

use self::{connection::MemcachedConnection, evidence::CLAIMS, session::MemcachedSession, spoken::Spoken};

/// memcached.
pub struct Memcached;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "memcached",
    title: target::PRODUCT.title,
    schemes: &["memcached", "memcacheds", "memcached+unix"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: Some(("memcacheds", "memcached")) },
    password_variable: target::PRODUCT.password_variable,
    identity_of_process: true,
    reserved_settings: launch::RESERVED,
    statement_form: StatementForm { comment: "#", end: "" },
    server_programs: &["memcached"],
    network_login: NetworkLogin::Password(target::AUTH_FILE),
    scans: false,
    custom: Some(AskedOfCustom {
        setting: "stats settings {setting}",
        between: '-',
        // The connection itself refuses changes: `spoken`.
        careful: &[],
        kept: None,
    }),
    start_s: 0.2,
    own_cache: false,
    bulk: false,
    ..DatabaseEntry::BARE
};

impl Database for Memcached {
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

    fn in_place_of(&self, install: &Install, name: &str) -> Option<Vec<String>> {
        install::in_place_of(install, name)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let mut connection = MemcachedConnection::open(&target::PRODUCT.target(server, setup)?)?;
        for statement in &setup.session_statements {
            connection.line(statement)?;
        }
        Ok(Session::KeyValue(Box::new(MemcachedSession::new(connection, how.blocking, &setup.space, &how.table)?)))
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
        store::nothing_evicted(server, setup)
    }

    fn condition(&self, server: &Server, setup: &Setup) -> Option<Condition> {
        store::condition(server, setup)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        store::facts(server, setup)
    }

    fn inspect(&self, server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        inspect::inspect(server, setup)
    }

    fn recording(&self, server: &Server, setup: &Setup, sent: Sent) -> Result<Option<Recording>, Fault> {
        match sent {
            Sent::Values => inspect::recording(&mut store::open(server, setup)?).map(Some),
            Sent::Passwords => Ok(None),
        }
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
        store::ask(server, setup, question)
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        target::PRODUCT.reach(server, setup)
    }
}

impl Product for Memcached {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn custom(&self) -> &'static dyn Protection {
        static CUSTOM: Custom = Custom(&CLAIMS);
        &CUSTOM
    }
}
