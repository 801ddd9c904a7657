//! MariaDB and MySQL for workloads on SQL tables.
//!
//! A REPEATABLE READ transaction of InnoDB may read older data without a lock than with one, and gets no warning. A
//! workload must lock the rows that it will change.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Connect, SqlDatabase},
    own_tables::{Opened, OwnTables},
    session::SqlSession,
    setup::{OwnColumn, Setup, TablePlace},
    sql::Dialect,
};

use super::{Family, dialect::DIALECT, own_columns, own_tables, schema};
use crate::target::is_local;

/// Text is compared by its bytes, as a client that computes compares it.
impl SqlDatabase for Family {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        let access = self.0.access;
        let before = match &setup.tables {
            TablePlace::Tithe | TablePlace::Copied { .. } => vec![format!("USE {}", setup.space)],
            TablePlace::InPlace { writes, .. } => {
                let mode = if *writes { "WRITE" } else { "ONLY" };
                vec![own_tables::enter(access, server, setup)?, format!("SET SESSION TRANSACTION READ {mode}")]
            }
        };
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        Ok(Box::new(access.measured(server, setup, how, &before)?))
    }

    fn own_tables(&self) -> Option<&dyn OwnTables> {
        Some(self)
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
        let mut session = schema::own_database(self.0.access, server, setup)?;
        session.run(&format!("DROP TABLE IF EXISTS {name}"))?;
        let mark = schema::MARK;
        session
            .run(&format!("{definition} ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT '{mark}'"))?;
        indexes.iter().try_for_each(|index| session.run(index).map(drop))
    }

    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut session = schema::own_database(self.0.access, server, setup)?;
        names.iter().try_for_each(|name| session.run(&format!("DROP TABLE IF EXISTS {name}")).map(drop))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut session = schema::own_database(self.0.access, server, setup)?;
        names.iter().try_for_each(|name| session.run(&format!("ANALYZE TABLE {name}")).map(drop))?;
        if is_local(server) {
            names.iter().try_for_each(|name| (self.0.write_table)(&mut session, name))?;
        }
        Ok(())
    }
}
