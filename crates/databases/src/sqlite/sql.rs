//! SQLite for workloads on SQL tables: one writer at a time, and every transaction acquires the write lock at its
//! start.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Connect, SqlDatabase},
    own_tables::Opened,
    session::SqlSession,
    setup::{OwnColumn, Setup},
    sql::Dialect,
};

use super::{Sqlite, checkpoint, dialect::DIALECT, open, own_columns, path, session::SqliteSession};

impl SqlDatabase for Sqlite {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn connect(&self, server: &Server, setup: &Setup, _how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        let mut connection = open(path(server)?, setup)?;
        for statement in &setup.session_statements {
            connection.run(statement)?;
        }
        Ok(Box::new(SqliteSession::new(connection)))
    }

    fn open_columns(&self, session: &mut dyn SqlSession, table: &str, columns: &[&OwnColumn]) -> Result<Opened, Fault> {
        own_columns::open(session, table, columns)
    }

    fn create(
        &self,
        server: &Server,
        setup: &Setup,
        name: &str,
        definition: &str,
        indexes: &[String],
    ) -> Result<(), Fault> {
        let mut connection = open(path(server)?, setup)?;
        connection.run(&format!("DROP TABLE IF EXISTS {name}"))?;
        connection.run(definition)?;
        indexes.iter().try_for_each(|index| connection.run(index).map(drop))?;
        checkpoint(&mut connection)
    }

    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut connection = open(path(server)?, setup)?;
        names.iter().try_for_each(|name| connection.run(&format!("DROP TABLE IF EXISTS {name}")).map(drop))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        let mut connection = open(path(server)?, setup)?;
        connection.run("ANALYZE")?;
        checkpoint(&mut connection)
    }
}
