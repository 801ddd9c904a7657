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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use tithe_machine::launch::{Install, Launch, Missing, Place, Search};
    use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};

    use super::*;
    use crate::{
        database::SqlDatabase,
        session::{SqlSession, Table},
        setup::{Room, TablePlace},
        simulated::{Simulated, test_bench::Bench},
        sql::{Column, ColumnType, Dialect, STANDARD, Sensitivity, SqlTable},
        test_workload::Described,
    };

    /// A database that notes what is done to it.
    #[derive(Default)]
    struct Noting(Mutex<Vec<String>>);

    impl Noting {
        fn note(&self, what: String) -> Result<(), Fault> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
            Ok(())
        }
    }

    impl Database for Noting {
        fn entry(&self) -> &'static DatabaseEntry {
            Simulated.entry()
        }

        fn find(&self, search: &Search) -> Result<Install, Missing> {
            Simulated.find(search)
        }

        fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
            Simulated.launch(install, setup, place)
        }

        fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
            Database::connect(&Simulated, server, setup, how)
        }

        fn create(&self, _server: &Server, _setup: &Setup, table: &Table) -> Result<(), Fault> {
            self.note(format!("create {}", table.name))
        }

        fn remove(&self, _server: &Server, _setup: &Setup, table: &Table) -> Result<(), Fault> {
            self.note(format!("remove {}", table.name))
        }

        fn quiesce(&self, _server: &Server, _setup: &Setup, table: &Table) -> Result<(), Fault> {
            self.note(format!("quiesce {}", table.name))
        }

        fn precondition(&self, _server: &Server, _setup: &Setup, table: &Table) -> Result<(), Fault> {
            self.note(format!("precondition {}", table.name))
        }

        fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
            Simulated.facts(server, setup)
        }

        fn sql(&self) -> Option<&dyn SqlDatabase> {
            Some(self)
        }
    }

    impl SqlDatabase for Noting {
        fn dialect(&self) -> &'static Dialect {
            &STANDARD
        }

        fn connect(&self, _: &Server, _: &Setup, _: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
            panic!("nothing is sent")
        }

        fn create(&self, _: &Server, _: &Setup, name: &str, _: &str, _: &[String]) -> Result<(), Fault> {
            self.note(format!("create SQL {name}"))
        }

        fn remove(&self, _server: &Server, _setup: &Setup, names: &[&str]) -> Result<(), Fault> {
            self.note(format!("remove SQL {}", names.join(" ")))
        }

        fn quiesce(&self, _server: &Server, _setup: &Setup, names: &[&str]) -> Result<(), Fault> {
            self.note(format!("quiesce SQL {}", names.join(" ")))
        }

        fn precondition(&self, _server: &Server, _setup: &Setup, names: &[&str]) -> Result<(), Fault> {
            self.note(format!("precondition SQL {}", names.join(" ")))
        }
    }

    static TABLES: [SqlTable; 1] = [SqlTable {
        name: "thing",
        columns: &[Column::new("t_name", ColumnType::Text(24), Sensitivity::Remark)],
        key: &[],
        indexes: &[],
    }];

    /// What one of the functions of this file does with a set-up.
    type Work = fn(&dyn Database, &Server, &Setup, &dyn Workload) -> Result<(), Fault>;

    /// What `work` does for a workload on `tables` whose statements find theirs in `place`, in its order.
    fn done(work: Work, tables: &'static [SqlTable], place: &TablePlace) -> (Result<(), Fault>, String) {
        let (bench, database) = (Bench::plain(), Noting::default());
        let setup = Setup { tables: place.clone(), ..bench.setup.clone() };
        let workload = Described { tables, ..Described::default() };
        let outcome = work(&database, &bench.server, &setup, &workload);
        let notes = database.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        (outcome, notes.join(", "))
    }

    const ALL: [(Work, &str); 3] = [(remove, "remove"), (quiesce, "quiesce"), (precondition, "precondition")];

    #[test]
    fn tables_of_a_workload_are_made_before_they_are_filled_and_removed_with_the_copies() {
        let tithe = TablePlace::Tithe;
        let made = "create tithe_canary, create SQL thing".to_owned();
        assert_eq!(done(create, &TABLES, &tithe), (Ok(()), made.clone()));
        assert_eq!(done(create, &[], &tithe), (Ok(()), "create tithe_canary".to_owned()));
        let copied = TablePlace::Copied { names: vec!["orders".to_owned()], room: Room::default() };
        let (outcome, notes) = done(create, &TABLES, &copied);
        assert!(matches!(outcome, Err(Fault::Refused(_))), "this database copies no tables: {outcome:?}");
        assert_eq!(notes, made);
        for (work, verb) in ALL {
            let of_tables = |names: &str| (Ok(()), format!("{verb} SQL {names}, {verb} tithe_canary"));
            assert_eq!(done(work, &TABLES, &tithe), of_tables("thing"));
            assert_eq!(done(work, &TABLES, &copied), of_tables("thing orders"));
            assert_eq!(done(work, &[], &tithe), (Ok(()), format!("{verb} tithe_canary")));
        }
    }

    #[test]
    fn nothing_is_made_or_removed_where_an_account_may_make_no_tables() {
        for (makes, writes) in [(false, false), (false, true), (true, false)] {
            let place = TablePlace::InPlace { writes, makes };
            for (work, verb) in ALL.into_iter().chain([(create as Work, "create")]) {
                let (outcome, notes) = done(work, &[], &place);
                let expected = if makes { format!("{verb} tithe_canary") } else { String::new() };
                assert_eq!((outcome, notes), (Ok(()), expected), "{place:?}");
            }
        }
    }
}
