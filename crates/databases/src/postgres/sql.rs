//! PostgreSQL for workloads on SQL tables.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Connect, SqlDatabase},
    own_tables::{Opened, OwnTables},
    session::{Connection as _, SqlSession},
    setup::{OwnColumn, Setup, TablePlace},
    sql::Dialect,
};

use super::{
    Postgres,
    dialect::DIALECT,
    own_columns,
    schema::{self, run_unlocked},
    session::PostgresSession,
    target::PRODUCT,
};

impl SqlDatabase for Postgres {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        let target = PRODUCT.target(server, setup)?;
        let mut session = PostgresSession::open_measured(&target, how.blocking, server.process.is_some())?;
        if setup.table_statements.iter().any(|statement| statement.contains("ROW LEVEL SECURITY")) {
            session.copies_nothing();
        }
        session.run(&place(setup))?;
        for statement in &setup.session_statements {
            session.run_statement(statement)?;
        }
        Ok(Box::new(session))
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
        let mut session = schema::own_schema(server, setup)?;
        run_unlocked(&mut session, &setup.space, &schema::removal(name))?;
        session.run(&schema::marked(definition, name))?;
        schema::say_of_table(&mut session, server, setup, name)?;
        let marked = |statement: &String| statement.replace("{mark}", schema::MARK);
        indexes.iter().try_for_each(|statement| session.run(&marked(statement)).map(drop))
    }

    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut session = schema::own_schema(server, setup)?;
        names.iter().try_for_each(|name| run_unlocked(&mut session, &setup.space, &schema::removal(name)))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        let mut session = schema::own_schema(server, setup)?;
        let vacuum = |name: &str| format!("VACUUM (ANALYZE) {name}");
        names.iter().try_for_each(|name| run_unlocked(&mut session, &setup.space, &vacuum(name)))
    }

    fn precondition(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault> {
        names.iter().try_for_each(|name| schema::precondition(server, setup, &format!("{}.{name}", setup.space)))
    }
}

/// The statement that sets where a session finds its tables.
fn place(setup: &Setup) -> String {
    let space = &setup.space;
    match &setup.tables {
        TablePlace::Tithe => format!("SET search_path = {space}"),
        TablePlace::InPlace { writes: false, .. } => "SET default_transaction_read_only = on".to_owned(),
        TablePlace::InPlace { writes: true, .. } => "SET default_transaction_read_only = off".to_owned(),
        // Types and functions stay in their original schemas.
        TablePlace::Copied { .. } => {
            format!("SELECT set_config('search_path', '{space}, ' || current_setting('search_path'), false)")
        }
    }
}
