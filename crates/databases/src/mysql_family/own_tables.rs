//! Tables of the user's own on a running MariaDB or MySQL.
//!
//! They run in place only if statements only read. The server does not show an account with minimal privileges by which
//! cascades and triggers a change of one table changes others.

mod production;

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    own_tables::{OwnStatement, OwnTable, OwnTables, Refusal, Survey},
    production::Production,
    session::{SqlSession as _, rows},
    setup::{Room, Setup},
};

use super::{
    Family,
    access::Access,
    schema::{self, MARK},
    session::WireSession,
};

/// How long the check of a statement waits for a lock, s.
const LOCK_TIMEOUT_S: u16 = 2;

/// Errors for names that the server does not know: database, column, table, function (`ER_BAD_DB_ERROR` and others).
const UNKNOWN: [&str; 4] = ["1049 ", "1054 ", "1146 ", "1305 "];

/// For a missing privilege on a database, a table or a column.
const DENIED: [&str; 3] = ["1044 ", "1142 ", "1143 "];

/// Privileges with which no table can be changed.
const READS: [&str; 8] = [
    "USAGE",
    "SELECT",
    "SHOW VIEW",
    "SHOW DATABASES",
    "PROCESS",
    "REPLICATION CLIENT",
    "BINLOG MONITOR",
    "SLAVE MONITOR",
];

struct Asking {
    session: WireSession,
    account: String,
    /// The database that the URL names, as statements write it.
    database: String,
}

/// The statement that puts a session into the database that the URL names.
///
/// # Errors
/// [`Fault::Refused`] if it names none.
pub fn enter(access: &Access, server: &Server, setup: &Setup) -> Result<String, Fault> {
    let database = access.product.target(server, setup)?.database;
    if database.is_empty() {
        let words = "the URL names no database, where statements of your own find their tables: write …/DATABASE";
        return Err(Fault::Refused(words.to_owned()));
    }
    Ok(format!("USE {}", quoted(&database)))
}

/// Opens a session that changes nothing.
fn asking(access: &Access, server: &Server, setup: &Setup) -> Result<Asking, Fault> {
    let mut session = access.administrator(server, setup)?;
    session.run(&enter(access, server, setup)?)?;
    session.run("SET SESSION TRANSACTION READ ONLY")?;
    session.run(&format!("SET SESSION lock_wait_timeout = {LOCK_TIMEOUT_S}"))?;
    let account = session.account()?;
    let database = quoted(&access.product.target(server, setup)?.database);
    Ok(Asking { session, account, database })
}

impl OwnTables for Family {
    fn survey(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Survey>, Fault> {
        Ok(Box::new(asking(self.0.access, server, setup)?))
    }

    fn production(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Production>, Fault> {
        Ok(Box::new(asking(self.0.access, server, setup)?))
    }

    fn copy(&self, server: &Server, setup: &Setup, name: &str) -> Result<(), Fault> {
        let database = self.0.access.product.target(server, setup)?.database;
        let (from, to) = (format!("{}.{name}", quoted(&database)), format!("{}.{name}", setup.space));
        let mut session = schema::own_database(self.0.access, server, setup)?;
        session.run(&format!("DROP TABLE IF EXISTS {to}"))?;
        session.run(&format!("CREATE TABLE {to} LIKE {from}"))?;
        session.run(&format!("ALTER TABLE {to} COMMENT '{MARK}'"))?;
        // Generated columns cannot be given values.
        let columns = format!("SHOW COLUMNS FROM {from}");
        let names: Vec<String> = session.run(&columns)?.into_iter().filter_map(column).collect();
        let names = names.join(", ");
        session.run(&format!("INSERT INTO {to} ({names}) SELECT {names} FROM {from}")).map(drop)
    }
}

/// The name of the column that a row of `SHOW COLUMNS` is about, unless it is generated.
fn column(row: Vec<Option<String>>) -> Option<String> {
    let is_generated = row.last()?.as_deref().is_some_and(|extra| {
        let extra = extra.to_ascii_uppercase();
        extra.contains("GENERATED") && !extra.contains("DEFAULT_GENERATED")
    });
    let name = row.into_iter().next().flatten()?;
    (!is_generated).then(|| quoted(&name))
}

impl Survey for Asking {
    fn refusal(&mut self, statement: &OwnStatement) -> Result<Option<Refusal>, Fault> {
        let words = match self.session.prepare_text(&statement.text) {
            Ok(_) => return Ok(None),
            Err(Fault::Server(words) | Fault::Refused(words)) => words,
            Err(fault) => return Err(fault),
        };
        let is = |code: &&str| words.starts_with(*code);
        Ok(if UNKNOWN.iter().any(is) {
            Some(Refusal::Unknown(words))
        } else if DENIED.iter().any(is) {
            let grant = words.split_once(" for table ").map(|(_, table)| {
                let table = table.trim().trim_matches('\'');
                // MySQL leaves the database out.
                let whole = if table.contains('`') { table.to_owned() } else { format!("{}.`{table}`", self.database) };
                format!("GRANT SELECT ON {whole} TO {}", self.account)
            });
            Some(Refusal::Denied { words, grant })
        } else {
            None
        })
    }

    fn named(&mut self, names: &BTreeSet<String>) -> Result<Vec<OwnTable>, Fault> {
        let all = names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE = 'BASE TABLE', TABLE_SCHEMA = DATABASE() FROM \
             information_schema.TABLES WHERE TABLE_NAME IN ({all}) AND (TABLE_SCHEMA = DATABASE() OR TABLE_SCHEMA IN \
             ({all})) AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND TABLE_SCHEMA \
             NOT LIKE 'tithe%' ORDER BY 1, 2"
        );
        let table = |[schema, name, is_table, is_visible]: [String; 4]| OwnTable {
            name: format!("{}.{}", quoted(&schema), quoted(&name)),
            short: quoted(&name),
            is_table: is_table == "1",
            is_visible: is_visible == "1",
            // The server does not show columns that the account may not read.
            grants: Vec::new(),
        };
        Ok(rows(&mut self.session, &sql)?.into_iter().map(table).collect())
    }

    fn changeable(&mut self, _allowed: &[&OwnTable]) -> Result<Vec<String>, Fault> {
        let grants = rows(&mut self.session, "SHOW GRANTS")?;
        Ok(grants.into_iter().filter_map(|[grant]: [String; 1]| more_than_reading(&grant)).collect())
    }

    fn side_effects(&mut self, tables: &[&OwnTable], _names: &BTreeSet<String>) -> Result<Vec<String>, Fault> {
        // Nothing that cannot be seen is called harmless.
        Ok(tables
            .iter()
            .map(|table| format!("cascades and triggers of {} are not seen by this account", table.name))
            .collect())
    }

    fn room(&mut self, tables: &[&OwnTable]) -> Result<Room, Fault> {
        let names = tables.iter().map(|table| literal(&table.name)).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT CAST(COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) AS UNSIGNED), @@datadir FROM information_schema.TABLES \
             WHERE CONCAT('`', TABLE_SCHEMA, '`.`', TABLE_NAME, '`') IN ({names})"
        );
        let known = rows(&mut self.session, &sql)?.into_iter().next();
        Ok(known.map_or(Room::default(), |[bytes, folder]: [String; 2]| Room {
            bytes: bytes.parse().unwrap_or_default(),
            folder: Some(folder.into()),
        }))
    }

    fn makes_tables(&mut self) -> Result<bool, Fault> {
        // In a read-only session the statement is refused before privileges are checked. This database does not exist.
        self.session.run("SET SESSION TRANSACTION READ WRITE")?;
        let made = self.session.run("CREATE TABLE tithe_is_not_here_and_tries_its_rights.t (a int)");
        Ok(!matches!(made, Err(Fault::Refused(_))))
    }

    fn account(&mut self, tables: &[&OwnTable], _changed: &[&OwnTable]) -> String {
        let mut text = "CREATE USER careful IDENTIFIED BY '…'; GRANT ALL ON `tithe%`.* TO careful".to_owned();
        tables.iter().for_each(|table| text += &format!("; GRANT SELECT ON {} TO careful", table.name));
        text
    }
}

/// A grant from `SHOW GRANTS`, without its grantee, unless it does not allow changes outside of Tithe's tables.
fn more_than_reading(grant: &str) -> Option<String> {
    // Behind it there may be the hash of a password.
    let (given, _) = grant.split_once(" TO ")?;
    let Some((rights, on)) = given.strip_prefix("GRANT ").unwrap_or(given).split_once(" ON ") else {
        return Some(given.to_owned());
    };
    let is_reading = |right: &str| READS.contains(&right.trim().split(" (").next().unwrap_or_default());
    let is_ours = on.starts_with("`tithe") && on.ends_with(".*");
    let reads = without_columns(rights).split(',').all(is_reading);
    (!is_ours && !reads).then(|| given.to_owned())
}

/// `rights` without the lists of columns that some are for.
fn without_columns(rights: &str) -> String {
    let mut depth = 0;
    let outside = |sign: &char| {
        depth += i32::from(*sign == '(');
        let outside = depth == 0;
        depth -= i32::from(*sign == ')');
        outside
    };
    rights.chars().filter(outside).collect()
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// `text` as a literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
#[cfg(feature = "mysql")]
mod tests {
    use tithe_plugin::production::{ColumnValues, Counted};

    use super::*;
    use crate::{mysql::MySql, mysql_family::told::server, test_setup::plain, told::Told};

    const STATEMENT: &str = "SELECT a FROM stock";

    fn shop() -> Told {
        server((&MySql, "8.0.39"), Vec::new(), Vec::new())
    }

    /// What an account with the database `shop` learns from a server.
    fn asked<T>(told: &Told, look: impl FnOnce(&mut Asking) -> T) -> T {
        told.seen(|server| {
            let session = MySql.0.access.administrator(server, &plain()).expect("a session");
            look(&mut Asking { session, account: "'ann'@'%'".to_owned(), database: "`shop`".to_owned() })
        })
    }

    fn refusal(told: &Told) -> Option<Refusal> {
        let statement = OwnStatement { place: String::new(), text: STATEMENT.to_owned(), parameters: 0 };
        asked(told, |asking| asking.refusal(&statement)).expect("a connection")
    }

    #[test]
    fn a_statement_is_refused_for_names_and_privileges_alone() {
        assert_eq!(refusal(&shop()), None);
        assert_eq!(refusal(&shop().failing(STATEMENT, ("1210", "Incorrect arguments"))), None);
        for code in ["1049", "1054", "1146", "1305"] {
            let seen = refusal(&shop().failing(STATEMENT, (code, "unknown")));
            assert!(matches!(seen, Some(Refusal::Unknown(_))), "{code}: {seen:?}");
        }
        let grant = |code, words| match refusal(&shop().failing(STATEMENT, (code, words))) {
            Some(Refusal::Denied { grant, .. }) => grant.unwrap_or_default(),
            seen => format!("{seen:?}"),
        };
        let here = grant("1142", "SELECT command denied to user 'ann'@'%' for table 'stock'");
        assert_eq!(here, "GRANT SELECT ON `shop`.`stock` TO 'ann'@'%'");
        let there = grant("1142", "SELECT command denied to user 'ann'@'%' for table `other`.`stock`");
        assert_eq!(there, "GRANT SELECT ON `other`.`stock` TO 'ann'@'%'");
        assert_eq!(grant("1044", "Access denied for user 'ann'@'%' to database 'other'"), "");
        assert_eq!(grant("1143", "SELECT command denied to user 'ann'@'%' for column 'a' in table 'stock'"), "");
    }

    #[test]
    fn only_a_refusal_keeps_an_account_from_tables_of_its_own() {
        let makes = |code| {
            let told = shop().failing("CREATE TABLE tithe_is_not_here", (code, "no"));
            asked(&told, |asking| asking.makes_tables())
        };
        assert_eq!(makes("1142"), Ok(false));
        assert_eq!(makes("1049"), Ok(true), "there is no such database, and the account may make one");
    }

    #[test]
    fn a_counted_statement_is_left_out_only_if_copies_would_refuse_it_too() {
        let refuses = |told: Told| asked(&told, |asking| asking.refuses(STATEMENT)).expect("a connection");
        assert_eq!(refuses(shop()), None);
        for code in ["1044", "1142", "1143", "1792"] {
            assert_eq!(refuses(shop().failing(STATEMENT, (code, "not this account"))), None, "{code}");
        }
        let unknown = refuses(shop().failing(STATEMENT, ("1146", "Table 'shop.stock' doesn't exist")));
        assert_eq!(unknown.as_deref(), Some("1146 (42000): Table 'shop.stock' doesn't exist"));
        // A copy is read, whatever is done with it.
        let told = shop().failing("stock", ("1142", "denied to user 'ann'@'%' for table 'stock'"));
        let grants = |text: &str| {
            let counted = Counted { text: text.to_owned(), calls: 1, ns: 1, rows: 1 };
            asked(&told, |asking| asking.grants(&[&counted], &BTreeSet::new())).expect("a connection")
        };
        assert_eq!(grants(STATEMENT), BTreeSet::from(["GRANT SELECT ON `shop`.`stock` TO 'ann'@'%'".to_owned()]));
        assert_eq!(grants("UPDATE stock SET a = 1"), BTreeSet::new());
    }

    #[test]
    fn a_server_that_counts_nothing_or_shows_nothing_is_refused() {
        const DIGESTS: &str = "events_statements_summary_by_digest";
        let told = shop().telling("@@performance_schema", &[&["1"]]);
        let told = told.telling(DIGESTS, &[&["SELECT COUNT ( * ) FROM `stock` ", "5", "7000", "12"]]);
        let counted = |told: &Told| asked(told, |asking| asking.counted()).map_err(|fault| fault.to_string());
        let stock = Counted { text: "SELECT COUNT( * ) FROM `stock`".to_owned(), calls: 5, ns: 7000, rows: 12 };
        assert_eq!(counted(&told), Ok(vec![stock]));
        let off = counted(&told.clone().telling("@@performance_schema", &[&["0"]]));
        assert!(off.is_err_and(|words| words.starts_with("refused: performance_schema is off")));
        let hidden = counted(&told.refusing(DIGESTS));
        assert!(hidden.is_err_and(|words| words.contains("GRANT SELECT ON `shop`.* TO 'ann'@'%'")));
    }

    #[test]
    fn whole_numbers_with_an_index_have_bounds_and_all_else_is_sampled() {
        let told = shop()
            .telling("information_schema.STATISTICS", &[&["stock", "id", "1", "1"], &["stock", "place", "0", "0"]])
            .telling(
                "information_schema.COLUMNS",
                &[&["stock", "id", "int"], &["stock", "name", "varchar"], &["stock", "place", "BIGINT"]],
            )
            .telling("SELECT MIN(`id`), MAX(`id`) FROM `stock`", &[&["1", "90"]])
            .telling("SELECT `name`, `place` FROM `stock`", &[&["oak", "3"], &["elm", "4"]]);
        let column = |column: &str, is_whole, is_key| {
            let (table, column) = ("stock".to_owned(), column.to_owned());
            ColumnValues { table, column, is_whole, is_key, ..ColumnValues::default() }
        };
        let half = |values: [&str; 2]| values.map(|value| (value.to_owned(), 0.5)).to_vec();
        let expected = vec![
            ColumnValues { bounds: vec!["1".to_owned(), "90".to_owned()], ..column("id", true, true) },
            ColumnValues { common: half(["oak", "elm"]), ..column("name", false, false) },
            ColumnValues { common: half(["3", "4"]), ..column("place", true, false) },
        ];
        assert_eq!(asked(&told, |asking| asking.columns(&BTreeSet::from(["stock".to_owned()]))), Ok(expected));
    }

    #[test]
    fn grants_that_let_rows_be_changed_are_known() {
        for reads in [
            "GRANT USAGE ON *.* TO `ann`@`%` IDENTIFIED BY PASSWORD '*94BD'",
            "GRANT SELECT, SHOW VIEW ON `shop`.* TO `ann`@`%`",
            "GRANT SELECT (`a`, `b`) ON `shop`.`t` TO `ann`@`%`",
            "GRANT ALL PRIVILEGES ON `tithe%`.* TO `ann`@`%`",
        ] {
            assert_eq!(more_than_reading(reads), None, "{reads}");
        }
        for (writes, told) in [
            ("GRANT ALL PRIVILEGES ON *.* TO `root`@`%` IDENTIFIED VIA x USING '*94BD'", "GRANT ALL PRIVILEGES ON *.*"),
            ("GRANT SELECT, EXECUTE ON `shop`.* TO `ann`@`%`", "GRANT SELECT, EXECUTE ON `shop`.*"),
            (
                "GRANT SELECT (`a`), UPDATE (`b`) ON `shop`.`t` TO `a`@`%`",
                "GRANT SELECT (`a`), UPDATE (`b`) ON `shop`.`t`",
            ),
            ("GRANT `role`@`%` TO `ann`@`%`", "GRANT `role`@`%`"),
            ("GRANT INSERT ON `tithe_mine`.`t` TO `ann`@`%`", "GRANT INSERT ON `tithe_mine`.`t`"),
        ] {
            assert_eq!(more_than_reading(writes).as_deref(), Some(told));
        }
    }
}
