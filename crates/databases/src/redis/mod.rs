//! Redis 6 and newer, and Valkey: launched on this machine, or attached to by URL.
//!
//! The client is Tithe's own ([`protocol`], [`session`]). Redis does not encrypt files: data at rest is protected by an
//! encrypted volume or by encrypted columns, and neither is claimed here. It has no audit log either.

mod attached;
mod clients;
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
mod test_server;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry, KeptUndo, NetworkLogin, StatementForm, UrlTls, WireProtocol},
    experiment::Url,
    record::ArmFacts,
};
use tithe_plugin::{
    connections::ConnectionList,
    custom::Custom,
    database::{Condition, Connect, Database, Download, Lack, Speaker, Statements},
    matrix::FeatureStatus,
    product::Product,
    protection::Protection,
    recording::{Recording, Sent},
    session::{Session, Table},
    setup::{Reach, Setup},
};

use self::{
    clients::Clients,
    connection::{RedisConnection, Reply, named},
    evidence::CLAIMS,
    session::RedisSession,
    spoken::Spoken,
};

/// Redis and Valkey.
pub struct Redis;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "redis",
    title: target::PRODUCT.title,
    schemes: &["redis", "rediss", "redis+unix"],
    scheme_aliases: &["unix", "redis+socket"],
    url_tls: UrlTls { options: target::TLS_OPTIONS, schemes: Some(("rediss", "redis")) },
    password_variable: target::PRODUCT.password_variable,
    keeps_data: true,
    one_thread: true,
    identity_of_process: true,
    reserved_settings: launch::RESERVED,
    statement_form: StatementForm { comment: "#", end: "" },
    server_programs: &["redis-server", "valkey-server"],
    wire_protocol: Some(WireProtocol::Redis),
    network_login: NetworkLogin::Password(target::REQUIREPASS),
    custom: Some(AskedOfCustom {
        setting: "CONFIG GET {setting}",
        between: '-',
        // The connection itself refuses changes: `spoken`.
        careful: &[],
        kept: Some(KeptUndo {
            is_there: "LRANGE {space}:undo 0 0",
            make: &[],
            add: "RPUSH {space}:undo {statement}",
            read: "LRANGE {space}:undo 0 -1",
            remove: "DEL {space}:undo",
        }),
    }),
    start_s: 0.3,
    own_cache: false,
    ..DatabaseEntry::BARE
};

impl Database for Redis {
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
        attached::lacks(server, setup)
    }

    fn identity(&self, server: &Server, setup: &Setup) -> Result<Option<String>, Fault> {
        store::identity(server, setup).map_err(named)
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn in_place_of(&self, install: &Install, name: &str) -> Option<Vec<String>> {
        install::is_unknown(install, &launch::name_of(name)).then(launch::some_settings)
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        install::find(search)
    }

    fn download(&self) -> Option<Download> {
        Some(get::VALKEY)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        launch::launch(install, setup, place)
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        Some(launch::stored(setup))
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let mut connection = RedisConnection::open(&target::of_clients(server, setup)?)?;
        for statement in &setup.session_statements {
            connection.run(statement)?;
        }
        let session = RedisSession::new(connection, how.blocking, &setup.space, &how.table)?;
        Ok(Session::KeyValue(Box::new(session)))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::create(server, setup, table).map_err(named)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        store::remove(server, setup, table).map_err(named)
    }

    fn keeps_records(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<bool, Fault> {
        store::keeps_records(server, setup)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        store::quiesce(server, setup)
    }

    fn condense(&self, server: &Server, setup: &Setup) -> Result<(), Fault> {
        store::condense(server, setup)
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

    fn connection_list(&self, server: &Server, setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Ok(Box::new(Clients::open(server, setup)?))
    }

    fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        target::PRODUCT.reach(server, setup)
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
        let mut connection = RedisConnection::open(&target::of_clients(server, setup)?)?;
        Ok(match connection.run(question).map_err(named)? {
            Reply::Array(values) => values.last().and_then(Reply::text),
            value => value.text(),
        })
    }

    fn condition(&self, server: &Server, setup: &Setup) -> Option<Condition> {
        store::condition(server, setup)
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        store::log_length(server, setup)
    }
}

impl Product for Redis {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        protection::ALL
    }

    fn custom(&self) -> &'static dyn Protection {
        static CUSTOM: Custom = Custom(&CLAIMS);
        &CUSTOM
    }
}
