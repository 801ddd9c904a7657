//! A workload that is described and offers no load, for tests of code that only asks about it.

use crate::{
    session::Table,
    sql::SqlTable,
    workload::{FileStatement, Load, Workload},
};

/// It works on records by key, unless it has one of these.
#[derive(Default)]
pub struct Described {
    /// It has SQL sessions also without tables of its own.
    pub speaks_sql: bool,
    /// Its SQL tables.
    pub tables: &'static [SqlTable],
    /// Its statements.
    pub statements: Vec<FileStatement>,
}

impl Workload for Described {
    fn offered_by(&self) -> Load<'_> {
        panic!("it offers no load")
    }

    fn operations(&self) -> Vec<&str> {
        Vec::new()
    }

    fn speaks_sql(&self) -> bool {
        self.speaks_sql || !self.tables.is_empty()
    }

    fn writes(&self) -> bool {
        true
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn tables(&self) -> &'static [SqlTable] {
        self.tables
    }

    fn describe(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn statements(&self) -> Vec<FileStatement> {
        self.statements.clone()
    }
}
