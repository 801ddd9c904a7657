//! Columns of the user's own tables that hold values encrypted by clients, on MariaDB and MySQL.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    columns::OVERHEAD,
    own_tables::Opened,
    session::{SqlSession, rows},
    setup::OwnColumn,
};

/// Longest column of bytes that is stored in its row and can be part of an index.
const LONGEST: usize = 3072;

/// Bytes of a whole number as text.
const NUMBER_BYTES: usize = 20;

/// Changes `columns` of `table` to hold ciphertext, first as added columns, because an undo log keeps what an update
/// overwrites.
///
/// # Errors
/// [`Fault::Refused`] with the obstacles; the server's error.
pub fn open(session: &mut dyn SqlSession, table: &str, columns: &[&OwnColumn]) -> Result<Opened, Fault> {
    let mut refused = of_table(session, table)?;
    let indexes = indexes(session, &named(table))?;
    let row = indexes.iter().find(|index| index.name == "PRIMARY").map(|index| index.columns.clone());
    if row.is_none() {
        refused.push("it has no primary key by which its rows could be found".to_owned());
    }
    let (mut beside, mut into, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for (number, column) in columns.iter().enumerate() {
        let name = &column.name;
        for index in indexes.iter().filter(|index| index.has(name)) {
            refused.extend(index.obstacle(column).map(|words| format!("{name}: {words}")));
        }
        match of_column(session, table, column)? {
            Err(words) => refused.push(format!("{name}: {words}")),
            Ok(kind) => {
                let new = format!("tithe_{number}");
                beside.push(format!("ADD {new} {}", kind.bytes));
                last.push(format!("DROP {name}, CHANGE {new} {name} {}{} {}", kind.bytes, kind.null, kind.place));
                into.push(new);
            }
        }
    }
    if !refused.is_empty() {
        return Err(Fault::Refused(refused.join("; ")));
    }
    let changes = |index: &&Index| columns.iter().any(|column| index.has(&column.name));
    for index in indexes.iter().filter(changes) {
        let unique = if index.unique { "UNIQUE " } else { "" };
        last.push(format!("DROP INDEX {0}, ADD {unique}INDEX {0} ({1})", index.name, index.columns.join(", ")));
    }
    session.run(&format!("ALTER TABLE {table} {}", beside.join(", ")))?;
    // With other algorithms the rows keep dropped values.
    let change = format!("ALTER TABLE {table} {}, ALGORITHM = COPY", last.join(", "));
    let settle = vec![change, format!("ANALYZE TABLE {table}")];
    Ok(Opened { row: row.unwrap_or_default(), renames_rows: false, into, settle })
}

/// The rows about `table` in tables of `information_schema`.
fn named(table: &str) -> String {
    format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{table}'")
}

/// An index of a table.
struct Index {
    name: String,
    unique: bool,
    columns: Vec<String>,
    /// It orders the values of a column, and holds them completely.
    whole: bool,
}

impl Index {
    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|part| part.eq_ignore_ascii_case(name))
    }

    /// What prevents the encryption of `column`, which it has.
    fn obstacle(&self, column: &OwnColumn) -> Option<String> {
        let Self { name, .. } = self;
        if name == "PRIMARY" {
            return Some("it is part of the primary key by which rows are found".to_owned());
        }
        if !self.whole {
            return Some(format!("index {name} reads parts of it"));
        }
        (self.unique && !column.is_compared).then(|| format!("index {name} compares it: name it by `equal`"))
    }
}

fn indexes(session: &mut dyn SqlSession, named: &str) -> Result<Vec<Index>, Fault> {
    let parts = format!(
        "SELECT INDEX_NAME, NON_UNIQUE, COLUMN_NAME, INDEX_TYPE = 'BTREE' AND SUB_PART IS NULL FROM \
         information_schema.STATISTICS WHERE {named} ORDER BY INDEX_NAME, SEQ_IN_INDEX"
    );
    let mut all: Vec<Index> = Vec::new();
    for [name, shared, column, whole] in rows(session, &parts)? {
        let is_whole = whole == "1";
        match all.last_mut().filter(|last| last.name == name) {
            Some(last) => {
                last.columns.push(column);
                last.whole &= is_whole;
            }
            None => all.push(Index { name, unique: shared == "0", columns: vec![column], whole: is_whole }),
        }
    }
    Ok(all)
}

/// Obstacles that concern a whole table.
fn of_table(session: &mut dyn SqlSession, table: &str) -> Result<Vec<String>, Fault> {
    let made = session.run(&format!("SHOW CREATE TABLE {table}"))?;
    let definition = made.into_iter().flatten().flatten().nth(1).unwrap_or_default().to_uppercase();
    let mut refused = Vec::new();
    for (word, why) in [
        ("CHECK (", "a CHECK may read it"),
        ("GENERATED ALWAYS", "a generated column may read it"),
        ("PARTITION BY", "its partitions may be by it"),
    ] {
        if definition.contains(word) {
            refused.push(why.to_owned());
        }
    }
    let names = |text: &str| format!("LOCATE(LOWER('{table}'), LOWER({text})) > 0");
    let (in_trigger, in_view, in_routine) =
        (names("ACTION_STATEMENT"), names("VIEW_DEFINITION"), names("ROUTINE_DEFINITION"));
    let about = format!(
        "SELECT 'trigger', TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND \
         (EVENT_OBJECT_TABLE = '{table}' OR {in_trigger}) UNION ALL SELECT 'view', TABLE_NAME FROM \
         information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND {in_view} UNION ALL SELECT 'routine', \
         ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND {in_routine}"
    );
    refused.extend(rows(session, &about)?.into_iter().map(|[kind, name]| format!("{kind} {name} may read it")));
    Ok(refused)
}

/// The new type of a column.
struct Kind {
    bytes: String,
    null: &'static str,
    /// Its position among the other columns.
    place: String,
}

/// The new type of `column` of `table`, or the obstacle.
fn of_column(session: &mut dyn SqlSession, table: &str, column: &OwnColumn) -> Result<Result<Kind, String>, Fault> {
    let (name, named) = (&column.name, named(table));
    let about = format!(
        "SELECT DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLLATION_NAME, ORDINAL_POSITION FROM \
         information_schema.COLUMNS WHERE {named} AND COLUMN_NAME = '{name}'"
    );
    let about = rows(session, &about)?;
    let Some([kind, whole, length, nullable, default, extra, collation, position]) = about.first() else {
        return Ok(Err("there is no such column".to_owned()));
    };
    let is_text = ["varchar", "tinytext", "text", "mediumtext", "longtext"].contains(&kind.as_str());
    if !is_text && !["tinyint", "smallint", "mediumint", "int", "bigint"].contains(&kind.as_str()) {
        return Ok(Err(format!("its type is {whole}, and only texts and whole numbers are encrypted")));
    }
    if !["", "NULL"].contains(&default.as_str()) || !extra.is_empty() {
        return Ok(Err("it has a default, which the server would store as it is".to_owned()));
    }
    if is_text && column.is_compared && !collation.ends_with("_bin") {
        return Ok(Err(format!("its collation {collation} treats different texts as equal: give it one of `_bin`")));
    }
    let foreign = format!(
        "SELECT CONSTRAINT_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL AND ({named} \
         AND COLUMN_NAME = '{name}' OR REFERENCED_TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = '{table}' AND \
         REFERENCED_COLUMN_NAME = '{name}')"
    );
    if let Some([constraint]) = rows(session, &foreign)?.first() {
        return Ok(Err(format!("constraint {constraint} compares it with another table")));
    }
    let before = format!(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {named} AND ORDINAL_POSITION < {position} ORDER BY \
         ORDINAL_POSITION DESC LIMIT 1"
    );
    let place = match rows(session, &before)?.first() {
        Some([before]) => format!("AFTER {before}"),
        None => "FIRST".to_owned(),
    };
    let plain = match (is_text, length.parse::<usize>()) {
        (true, Ok(length)) if kind == "varchar" => length * 4,
        (true, _) => LONGEST,
        (false, _) => NUMBER_BYTES,
    };
    let most = OVERHEAD + plain;
    let bytes = if most > LONGEST { "longblob".to_owned() } else { format!("varbinary({most})") };
    Ok(Ok(Kind { bytes, null: if nullable == "NO" { " NOT NULL" } else { "" }, place }))
}

#[cfg(test)]
#[cfg(feature = "mysql")]
mod tests {
    use super::*;
    use crate::{
        mysql::MySql,
        mysql_family::told::server,
        test_setup::plain,
        told::{Answer, Rows, Told},
    };

    const TABLE: &str = "SHOW CREATE TABLE";
    const READERS: &str = "information_schema.TRIGGERS";
    const INDEXES: &str = "information_schema.STATISTICS";
    const COLUMN: &str = "SELECT DATA_TYPE";
    /// Those of the column itself: columns of other tables have the same name.
    const CONSTRAINTS: &str = "REFERENCED_TABLE_NAME = 'people' AND REFERENCED_COLUMN_NAME = 'name'";
    const BEFORE: &str = "ORDINAL_POSITION <";
    const KEY: &[&str] = &["PRIMARY", "0", "id", "1"];

    /// A table `people` of `id`, which is its key, and `name`, which nothing reads.
    fn people() -> Told {
        let answers: Vec<Answer> = vec![
            (TABLE, Ok(&[&["people", "CREATE TABLE `people` (`id` int, `name` varchar(20), PRIMARY KEY (`id`))"]])),
            (READERS, Ok(&[])),
            (INDEXES, Ok(&[KEY])),
            (COLUMN, Ok(&[&["varchar", "varchar(20)", "20", "YES", "NULL", "", "utf8mb4_bin", "2"]])),
            (CONSTRAINTS, Ok(&[])),
            (BEFORE, Ok(&[&["id"]])),
            ("ALTER TABLE", Ok(&[])),
        ];
        server((&MySql, "8.0.39"), Vec::new(), answers)
    }

    fn opened(told: &Told, is_compared: bool) -> Result<Opened, Fault> {
        let column = OwnColumn::new("people.name", is_compared).expect("it names a table");
        told.seen(|server| {
            let mut session = MySql.0.access.administrator(server, &plain())?;
            open(&mut session, "people", &[&column])
        })
    }

    #[test]
    fn what_would_read_a_column_is_an_obstacle() {
        let tables: [(Rows, &str); 3] = [
            (&[&["people", "CREATE TABLE `people` (`id` int, CHECK (`id` > 0))"]], "a CHECK may read it"),
            (&[&["people", "… `up` text GENERATED ALWAYS AS (upper(`name`))"]], "a generated column may read it"),
            (&[&["people", "… /*!50100 PARTITION BY HASH (`id`) */"]], "its partitions may be by it"),
        ];
        let indexes: [(Rows, &str); 4] = [
            (&[], "it has no primary key by which its rows could be found"),
            (&[&["PRIMARY", "0", "NAME", "1"]], "name: it is part of the primary key by which rows are found"),
            (&[KEY, &["part", "1", "name", "0"]], "name: index part reads parts of it"),
            (&[KEY, &["both", "1", "name", "1"], &["both", "1", "age", "0"]], "name: index both reads parts of it"),
        ];
        let columns: [(Rows, &str); 5] = [
            (&[], "name: there is no such column"),
            (
                &[&["date", "date", "", "YES", "", "", "", "2"]],
                "name: its type is date, and only texts and whole numbers are encrypted",
            ),
            (
                &[&["int", "int", "", "YES", "7", "", "", "2"]],
                "name: it has a default, which the server would store as it is",
            ),
            (
                &[&["int", "int", "", "NO", "", "auto_increment", "", "2"]],
                "name: it has a default, which the server would store as it is",
            ),
            (
                &[&["text", "text", "65535", "YES", "", "", "utf8mb4_general_ci", "2"]],
                "name: its collation utf8mb4_general_ci treats different texts as equal: give it one of `_bin`",
            ),
        ];
        let readers: [(Rows, &str); 2] = [
            (&[&["view", "adults"]], "view adults may read it"),
            (&[&["trigger", "t"], &["routine", "r"]], "trigger t may read it; routine r may read it"),
        ];
        let constraints: [(Rows, &str); 1] = [(&[&["fk"]], "name: constraint fk compares it with another table")];
        let all = tables.map(|(rows, why)| (TABLE, rows, why)).into_iter();
        let all = all.chain(indexes.map(|(rows, why)| (INDEXES, rows, why)));
        let all = all.chain(columns.map(|(rows, why)| (COLUMN, rows, why)));
        let all = all.chain(readers.map(|(rows, why)| (READERS, rows, why)));
        for (words, rows, why) in all.chain(constraints.map(|(rows, why)| (CONSTRAINTS, rows, why))) {
            // Nothing is changed before all is known.
            let told = people().telling(words, rows).failing("ALTER TABLE", ("1050", "it is changed"));
            assert_eq!(opened(&told, true), Err(Fault::Refused(why.to_owned())), "{rows:?}");
        }
        let two = people().telling(READERS, &[&["view", "adults"]]).telling(COLUMN, &[]);
        let why = "view adults may read it; name: there is no such column".to_owned();
        assert_eq!(opened(&two, false), Err(Fault::Refused(why)));
    }

    #[test]
    fn a_column_that_is_not_compared_may_have_any_collation_and_no_unique_index() {
        let unique = people().telling(INDEXES, &[KEY, &["only", "0", "name", "1"]]);
        let why = "name: index only compares it: name it by `equal`".to_owned();
        assert_eq!(opened(&unique, false), Err(Fault::Refused(why)));
        let change = "ALTER TABLE people DROP name, CHANGE tithe_0 name varbinary(120) AFTER id, DROP INDEX only, ADD \
                      UNIQUE INDEX only (name), ALGORITHM = COPY";
        assert_eq!(opened(&unique, true).map(|opened| opened.settle[0].clone()), Ok(change.to_owned()));
        let folded: Rows = &[&["varchar", "varchar(20)", "20", "YES", "", "", "utf8mb4_general_ci", "2"]];
        assert!(opened(&people().telling(COLUMN, folded), false).is_ok());
        assert!(opened(&people().telling(INDEXES, &[KEY, &["many", "1", "name", "1"]]), false).is_ok());
    }

    #[test]
    fn a_column_has_room_for_the_longest_ciphertext_and_keeps_its_place() {
        assert_eq!(OVERHEAD, 40);
        let columns: [(Rows, &str); 6] = [
            (&[&["varchar", "varchar(20)", "20", "YES", "", "", "", "2"]], "varbinary(120) AFTER id"),
            (&[&["varchar", "varchar(20)", "20", "NO", "", "", "", "2"]], "varbinary(120) NOT NULL AFTER id"),
            (&[&["varchar", "varchar(758)", "758", "YES", "", "", "", "2"]], "varbinary(3072) AFTER id"),
            (&[&["varchar", "varchar(759)", "759", "YES", "", "", "", "2"]], "longblob AFTER id"),
            (&[&["tinytext", "tinytext", "255", "YES", "", "", "", "2"]], "longblob AFTER id"),
            (&[&["bigint", "bigint", "", "YES", "", "", "", "2"]], "varbinary(60) AFTER id"),
        ];
        let settled = |bytes: &str| {
            let change = format!("ALTER TABLE people DROP name, CHANGE tithe_0 name {bytes}, ALGORITHM = COPY");
            vec![change, "ANALYZE TABLE people".to_owned()]
        };
        for (column, bytes) in columns {
            let seen = opened(&people().telling(COLUMN, column), false);
            let (row, into) = (vec!["id".to_owned()], vec!["tithe_0".to_owned()]);
            assert_eq!(seen, Ok(Opened { row, renames_rows: false, into, settle: settled(bytes) }));
        }
        let first = opened(&people().telling(BEFORE, &[]), false).map(|opened| opened.settle);
        assert_eq!(first, Ok(settled("varbinary(120) FIRST")));
    }
}
