//! DuckDB for workloads on SQL tables, for which it is made: loads and scans.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Connect, SqlDatabase},
    session::SqlSession,
    setup::Setup,
    sql::Dialect,
};

use super::{DuckDb, MustExist, dialect::DIALECT, opened, session};

impl SqlDatabase for DuckDb {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn connect(&self, server: &Server, setup: &Setup, _how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        Ok(Box::new(session(server, setup)?))
    }

    fn create(
        &self,
        server: &Server,
        setup: &Setup,
        name: &str,
        definition: &str,
        indexes: &[String],
    ) -> Result<(), Fault> {
        let opened = opened(server, setup, MustExist::No)?;
        let mut connection = opened.connection()?;
        connection.run(&format!("DROP TABLE IF EXISTS {name}"))?;
        connection.run(definition)?;
        indexes.iter().try_for_each(|index| connection.run(index).map(drop))?;
        opened.checkpoint()
    }

    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut connection = opened(server, setup, MustExist::Yes)?.connection()?;
        names.iter().try_for_each(|name| connection.run(&format!("DROP TABLE IF EXISTS {name}")).map(drop))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        opened(server, setup, MustExist::Yes)?.checkpoint()
    }
}
