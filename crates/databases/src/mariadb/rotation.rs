//! Changes the key of the measured tables.
//!
//! `ALTER TABLE … ENCRYPTION_KEY_ID` rebuilds a table in a new file, whose pages are all encrypted with the other key,
//! while clients continue to read and write (documentation, "InnoDB Online DDL Operations with the INPLACE Alter
//! Algorithm"). With `LOCK = NONE` the server refuses rather than lock clients out. The background threads of InnoDB
//! (`innodb_encryption_threads`, `innodb_encryption_rotate_key_age`) would encrypt pages in place, but only for a new
//! *version* of a key. A key of `file_key_management` always has version 1, so on a 10.11 server they do nothing.
//!
//! The key is not changed for files without a table of Tithe's: the redo log, the binary log, temporary files, the
//! server's own tables.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{rotation::Rotator, session::SqlSession as _, setup::Setup};

use super::access::ACCESS;
use crate::mysql_family::{schema::measured_tables, session::WireSession};

/// The numbers of the two keys in the key file: the first and the second key of the credentials.
pub const KEYS: [u32; 2] = [1, 2];

/// How long one table may take, s: the server sends nothing during that time.
const TIMEOUT_S: u16 = 3600;

/// The measured tables of one server, and an administrator's session there.
pub struct KeyRotator {
    session: WireSession,
    tables: Vec<String>,
}

impl KeyRotator {
    /// A rotator of all measured tables that are there.
    ///
    /// # Errors
    /// The server's error; [`Fault::Refused`] when there is no table.
    pub fn new(server: &Server, setup: &Setup) -> Result<Self, Fault> {
        let mut session = ACCESS.administrator(server, setup)?;
        let tables = measured_tables(&mut session)?;
        if tables.is_empty() {
            return Err(Fault::Refused("there is no table whose key could be changed".to_owned()));
        }
        // The client itself limits how long it waits for a slow answer, not the socket.
        session.set_blocking(false)?;
        Ok(Self { session, tables })
    }

    /// The measured tables, each with the number of its encryption key, as reported by the server.
    ///
    /// # Errors
    /// The server's error; [`Fault::Wrong`] if some table is not encrypted, or not yet with one key alone.
    pub fn keys(&mut self) -> Result<Vec<(String, u32)>, Fault> {
        let sql = "SELECT NAME, CURRENT_KEY_ID FROM information_schema.INNODB_TABLESPACES_ENCRYPTION \
                   WHERE ENCRYPTION_SCHEME = 1 AND MIN_KEY_VERSION > 0 AND ROTATING_OR_FLUSHING = 0";
        let rows = self.session.run(sql)?;
        let of = |table: &String| {
            let space = format!("tithe/{table}");
            let row = rows.iter().find(|row| matches!(row.as_slice(), [Some(name), _] if *name == space));
            let key = row.and_then(|row| row[1].as_deref()?.parse().ok());
            let wrong = || Fault::Wrong(format!("table {table} is not wholly encrypted with one key"));
            Ok((table.clone(), key.ok_or_else(wrong)?))
        };
        self.tables.iter().map(of).collect()
    }
}

impl Rotator for KeyRotator {
    /// Gives all tables the key that the first one does not have, and checks with the server that they have it.
    fn rotate(&mut self) -> Result<(), Fault> {
        let before = self.keys()?;
        let next = if before[0].1 == KEYS[0] { KEYS[1] } else { KEYS[0] };
        for table in &self.tables {
            self.session.run_for(&statement(table, next), TIMEOUT_S)?;
        }
        match self.keys()?.into_iter().find(|(_, key)| *key != next) {
            Some((table, key)) => Err(Fault::Wrong(format!("table {table} still has key {key} and not key {next}"))),
            None => Ok(()),
        }
    }
}

fn statement(table: &str, key: u32) -> String {
    format!("ALTER TABLE `tithe`.`{table}` ENCRYPTION_KEY_ID = {key}, ALGORITHM = INPLACE, LOCK = NONE")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        mariadb::MariaDb,
        mysql_family::{schema::MARK, told::server},
        test_setup::plain,
        told::{Answer, Rows},
    };

    /// What `look` finds at a server with these measured `tables` and with these `keys` of its tablespaces, which stay
    /// as they are.
    fn with_keys<T>(
        tables: Rows,
        keys: Rows,
        look: impl FnOnce(&mut KeyRotator) -> Result<T, Fault>,
    ) -> Result<T, String> {
        let answers: Vec<Answer> = vec![
            ("information_schema.TABLES WHERE", Ok(tables)),
            ("INNODB_TABLESPACES_ENCRYPTION", Ok(keys)),
            ("ALTER TABLE", Ok(&[])),
        ];
        server((&MariaDb, "10.11.6-MariaDB"), Vec::new(), answers).seen(|server| {
            let looked = KeyRotator::new(server, &plain()).and_then(|mut rotator| look(&mut rotator));
            looked.map_err(|fault| fault.to_string())
        })
    }

    const TABLES: Rows = &[&["a", MARK], &["b", MARK], &["of_others", ""]];

    #[test]
    fn every_measured_table_has_one_key_alone() {
        let keys = |keys: Rows| with_keys(TABLES, keys, KeyRotator::keys);
        let both: Rows = &[&["tithe/b", "2"], &["tithe/of_others", "3"], &["tithe/a", "1"]];
        assert_eq!(keys(both), Ok(vec![("a".to_owned(), 1), ("b".to_owned(), 2)]));
        let open = |table: &str| Err(format!("wrong answer: table {table} is not wholly encrypted with one key"));
        assert_eq!(keys(&[&["tithe/a", "1"]]), open("b"));
        assert_eq!(keys(&[&["other/a", "1"], &["tithe/b", "1"]]), open("a"));
        let none = with_keys(&[&["of_others", ""]], both, KeyRotator::keys);
        assert_eq!(none, Err("refused: there is no table whose key could be changed".to_owned()));
    }

    #[test]
    fn all_tables_get_the_key_that_the_first_one_does_not_have() {
        let rotated = |keys: Rows| with_keys(TABLES, keys, KeyRotator::rotate);
        // This server changes no key, so each error names the one that was asked for.
        let still = |table: &str, key: u32, next: u32| {
            Err(format!("wrong answer: table {table} still has key {key} and not key {next}"))
        };
        assert_eq!(rotated(&[&["tithe/a", "1"], &["tithe/b", "1"]]), still("a", 1, 2));
        assert_eq!(rotated(&[&["tithe/a", "2"], &["tithe/b", "1"]]), still("a", 2, 1));
    }

    #[test]
    fn a_key_is_changed_by_one_statement_a_table() {
        expect!["ALTER TABLE `tithe`.`usertable` ENCRYPTION_KEY_ID = 2, ALGORITHM = INPLACE, LOCK = NONE"]
            .assert_eq(&statement("usertable", 2));
    }
}
