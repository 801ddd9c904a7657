//! The data of a workload in one arm: records by key or SQL tables, with the same functions to create, connect to,
//! settle and remove them.

pub mod conversion;

use tithe_machine::{fault::Fault, launch::Server};

use crate::{
    columns,
    database::{Connect, Database, sql_of},
    session::Session,
    setup::Setup,
    sql,
    workload::Workload,
};

/// Opens a session as the measured clients of `workload` do.
///
/// # Errors
/// As [`Database::connect`]; if the columns to encrypt are not those of the workload.
pub fn connect(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    how: &Connect,
    workload: &dyn Workload,
) -> Result<Session, Fault> {
    if workload.speaks_sql() {
        let mut session = columns::connect_sql(database, server, setup, how, workload.tables())?;
        let own = workload.restore().zip(database.entry().wire_protocol);
        if let Some(enter) = own.and_then(|(own, protocol)| own.enter(protocol)) {
            session.run_statement(&enter)?;
        }
        Ok(Session::Sql(session))
    } else {
        columns::connect(database, server, setup, how)
    }
}

/// Makes the tables of `workload`.
///
/// # Errors
/// As [`Database::create`].
pub fn create(database: &dyn Database, server: &Server, setup: &Setup, workload: &dyn Workload) -> Result<(), Fault> {
    if !setup.tables.makes_tables() {
        return Ok(());
    }
    let tables = workload.tables();
    let chosen = columns::Chosen::new(setup, tables)?;
    database.create(server, setup, &workload.table())?;
    for table in tables {
        let sql = sql_of(database)?;
        let definition = sql::definition(table, sql.dialect(), &|column| chosen.stored_bytes(column));
        let (end, more) = workload.completes(table, sql.dialect().grammar);
        let statements = [sql::indexes(table), more].concat();
        sql.create(server, setup, table.name, &(definition + &end), &statements)?;
    }
    copy(database, server, setup)
}

/// Copies the user's own tables that need a copy.
fn copy(database: &dyn Database, server: &Server, setup: &Setup) -> Result<(), Fault> {
    let copies = setup.tables.copies();
    if copies.is_empty() {
        return Ok(());
    }
    let Some(own) = sql_of(database)?.own_tables() else { return Err(no_own_tables(database)) };
    copies.iter().try_for_each(|name| own.copy(server, setup, name))
}

/// The refusal of a database that runs no statements on the user's own tables.
pub fn no_own_tables(database: &dyn Database) -> Fault {
    Fault::Refused(format!(
        "no statements of your own run on a server of {} that Tithe did not start",
        database.title()
    ))
}

/// Removes the tables of `workload`.
///
/// # Errors
/// As [`Database::remove`].
pub fn remove(database: &dyn Database, server: &Server, setup: &Setup, workload: &dyn Workload) -> Result<(), Fault> {
    if !setup.tables.makes_tables() {
        return Ok(());
    }
    let names = names(workload, setup);
    if !names.is_empty() {
        sql_of(database)?.remove(server, setup, &names)?;
    }
    database.remove(server, setup, &workload.table())
}

/// Moves everything written so far to its final place.
///
/// # Errors
/// As [`Database::quiesce`].
pub fn quiesce(database: &dyn Database, server: &Server, setup: &Setup, workload: &dyn Workload) -> Result<(), Fault> {
    if !setup.tables.makes_tables() {
        return Ok(());
    }
    let names = names(workload, setup);
    if !names.is_empty() {
        sql_of(database)?.quiesce(server, setup, &names)?;
    }
    database.quiesce(server, setup, &workload.table())
}

/// Does at once the work that the first writes after a start do page by page.
///
/// # Errors
/// As [`Database::precondition`].
pub fn precondition(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    workload: &dyn Workload,
) -> Result<(), Fault> {
    if !setup.tables.makes_tables() {
        return Ok(());
    }
    let names = names(workload, setup);
    if !names.is_empty() {
        sql_of(database)?.precondition(server, setup, &names)?;
    }
    database.precondition(server, setup, &workload.table())
}

/// The names of all Tithe's tables except the one that evidence writes to.
fn names<'a>(workload: &dyn Workload, setup: &'a Setup) -> Vec<&'a str> {
    let own = workload.tables().iter().map(|table| table.name);
    own.chain(setup.tables.copies().iter().map(String::as_str)).collect()
}
