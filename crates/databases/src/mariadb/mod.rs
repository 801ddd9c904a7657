//! MariaDB 10.6 and newer: launched on this machine, or attached to by URL.
//!
//! Most of it is shared with MySQL ([`crate::mysql_family`]); the differences are in [`flavour`]. Each protection is
//! one file below [`protection`]; each check that only MariaDB has is one file below [`evidence`].

mod access;
mod accounts;
mod at_rest;
mod attached;
mod evidence;
mod flavour;
#[doc(hidden)]
pub mod foreign;
mod get;
mod inspect;
mod install;
mod launch;
mod protection;
mod rotation;

use self::flavour::FLAVOUR;
use crate::mysql_family::Family;

/// MariaDB.
#[expect(non_upper_case_globals, reason = "the other products are types without fields: all are named alike")]
pub const MariaDb: Family = Family(&FLAVOUR);

#[cfg(test)]
mod tests {
    use tithe_plugin::database::Database as _;

    use super::*;
    use crate::{
        mysql_family::told::server,
        test_setup::plain,
        told::{Answer, Rows},
    };

    #[test]
    fn tables_of_killed_runs_are_swept_and_those_of_others_stay() {
        const MADE: &str = "made by tithe";
        let swept = |tables: Rows| {
            let answers: Vec<Answer> = vec![
                ("SELECT SCHEMA_NAME", Ok(&[&["tithe_2"]])),
                ("SELECT COUNT(*) FROM information_schema.SCHEMATA", Ok(&[&["1"]])),
                ("SELECT TABLE_NAME, TABLE_COMMENT", Ok(tables)),
                ("DROP TABLE IF EXISTS `tithe_2`.`orders`", Ok(&[])),
                ("SELECT (SELECT COUNT(*)", Ok(&[&["0"]])),
                ("DROP DATABASE tithe_2", Ok(&[])),
            ];
            let told = server((&MariaDb, "10.11.6-MariaDB"), Vec::new(), answers);
            told.seen(|server| MariaDb.sweep(server, &plain())).expect("it answers")
        };
        let orders = ["`tithe_2`.`orders`"];
        assert_eq!(swept(&[&["made_by_tithe", MADE], &["orders", MADE]]), orders);
        assert_eq!(swept(&[&["made_by_tithe", MADE], &["tithe_inspect_1", MADE], &["orders", MADE]]), orders);
        assert_eq!(swept(&[&["made_by_tithe", MADE], &["tithe_undo", MADE], &["orders", MADE]]), [""; 0]);
        assert_eq!(swept(&[&["made_by_tithe", MADE], &["orders", "mine"]]), [""; 0]);
    }
}
