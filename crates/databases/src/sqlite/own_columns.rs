//! Columns of the user's own tables that hold values encrypted by clients. Any column can hold bytes, whatever its
//! type.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    own_tables::Opened,
    session::{SqlSession, rows},
    setup::OwnColumn,
};

/// Checks whether `columns` of `table` can hold bytes that only clients read.
///
/// # Errors
/// [`Fault::Refused`] with the obstacles; the database's error.
pub fn open(session: &mut dyn SqlSession, table: &str, columns: &[&OwnColumn]) -> Result<Opened, Fault> {
    let mut refused = Vec::new();
    let made = rows(session, &format!("SELECT type, sql FROM sqlite_schema WHERE name = '{table}' COLLATE NOCASE"))?;
    let Some([kind, sql]) = made.first() else {
        return Err(Fault::Refused("there is no such table".to_owned()));
    };
    if kind != "table" {
        refused.push("it is not a table".to_owned());
    }
    // However names are quoted and words are spaced.
    let definition = sql.to_uppercase().replace(['"', '\'', '`', '[', ']'], " ");
    let definition = definition.split_whitespace().collect::<Vec<_>>().join(" ");
    // Which column these use is not checked: any of them may read it.
    for (word, why) in [
        ("CHECK", "a CHECK may read it"),
        ("COLLATE NOCASE", "its collation treats different texts as equal"),
        ("COLLATE RTRIM", "its collation treats different texts as equal"),
        ("REFERENCES", "a foreign key may compare it"),
    ] {
        if definition.contains(word) {
            refused.push(why.to_owned());
        }
    }
    let properties = format!(
        "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo('{table}') WHERE hidden > 1), strict, wr FROM \
         pragma_table_list('{table}')"
    );
    for has in rows::<3>(session, &properties)? {
        let why = ["a generated column may read it", "STRICT columns hold no bytes", "its rows have no rowid"];
        refused.extend(has.iter().zip(why).filter(|(has, _)| *has == "1").map(|(_, why)| why.to_owned()));
    }
    let names = format!("instr(lower(sql), lower('{table}')) > 0");
    let about = format!(
        "SELECT type, name FROM sqlite_schema WHERE {names} AND (type IN ('trigger', 'view') OR (type = 'table' AND name <> \
         '{table}' COLLATE NOCASE AND instr(lower(sql), 'references') > 0))"
    );
    refused.extend(rows(session, &about)?.into_iter().map(|[kind, name]| format!("{kind} {name} may read it")));
    for column in columns {
        refused.extend(obstacles(session, table, column)?.map(|words| format!("{}: {words}", column.name)));
    }
    if !refused.is_empty() {
        return Err(Fault::Refused(refused.join("; ")));
    }
    let into = columns.iter().map(|column| column.name.clone()).collect();
    Ok(Opened {
        row: vec!["rowid".to_owned()],
        renames_rows: false,
        into,
        settle: vec!["VACUUM".to_owned(), "ANALYZE".to_owned()],
    })
}

/// The obstacles of one column.
fn obstacles(session: &mut dyn SqlSession, table: &str, column: &OwnColumn) -> Result<Option<String>, Fault> {
    let name = &column.name;
    let about = format!(
        "SELECT upper(type), coalesce(dflt_value, ''), pk FROM pragma_table_info('{table}') WHERE name = '{name}' COLLATE \
         NOCASE"
    );
    let about = rows(session, &about)?;
    let Some([kind, default, key]) = about.first() else { return Ok(Some("there is no such column".to_owned())) };
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if !is(&["INT", "CHAR", "CLOB", "TEXT"]) {
        return Ok(Some(format!("its type is {kind}, and only texts and whole numbers are encrypted")));
    }
    if key != "0" && is(&["INT"]) {
        return Ok(Some("a key of whole numbers holds no bytes".to_owned()));
    }
    if !default.is_empty() {
        return Ok(Some("it has a default, which would be stored as it is".to_owned()));
    }
    let others = format!("SELECT 1 FROM {table} WHERE typeof({name}) NOT IN ('text', 'integer', 'null') LIMIT 1");
    if !session.run(&others)?.is_empty() {
        return Ok(Some("it holds values that are neither texts nor whole numbers".to_owned()));
    }
    let indexes = format!(
        "SELECT l.name, l.\"unique\", l.partial, coalesce(s.sql, '') FROM pragma_index_list('{table}') l LEFT JOIN sqlite_schema s ON s.name = \
         l.name"
    );
    for [index, unique, partial, sql] in rows(session, &indexes)? {
        let keys = rows(session, &format!("SELECT coalesce(name, '') FROM pragma_index_info('{index}')"))?;
        let computes = partial == "1" || keys.iter().any(|[key]| key.is_empty());
        if computes && sql.to_lowercase().contains(&name.to_lowercase()) {
            return Ok(Some(format!("index {index} computes with it")));
        }
        let has = keys.iter().any(|[key]| key.eq_ignore_ascii_case(name));
        if has && unique == "1" && !column.is_compared {
            return Ok(Some(format!("index {index} compares it: name it by `equal`")));
        }
        if has && sql.to_uppercase().contains("COLLATE") {
            return Ok(Some(format!("index {index} has a collation")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        connection::{Connection, Mode},
        session::SqliteSession,
    };

    const PEOPLE: &str = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);";

    /// The obstacles to encrypting `people.name` after these statements.
    fn opened(statements: &str, is_compared: bool) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = Connection::open(&folder.path().join("file"), Mode::Create).expect("a file");
        let mut session = SqliteSession::new(connection);
        session.run_all(statements).expect("SQLite accepts them");
        let column = OwnColumn::new("people.name", is_compared).expect("it names a table");
        open(&mut session, "people", &[&column]).map_or_else(|fault| fault.to_string(), |_| "none".to_owned())
    }

    #[test]
    fn an_ordinary_column_is_encrypted() {
        for more in [
            "INSERT INTO people VALUES (1, 'a'), (2, NULL)",
            "CREATE INDEX i ON people (name)",
            "CREATE INDEX i ON people (id) WHERE id > 3",
            "CREATE VIEW others AS SELECT 1",
            "ALTER TABLE people ADD generated_at TEXT",
            "DROP TABLE people; CREATE TABLE People (Name INT)",
        ] {
            for is_compared in [true, false] {
                assert_eq!(opened(&format!("{PEOPLE}{more}"), is_compared), "none", "{more}");
            }
        }
        let unique = format!("{PEOPLE}CREATE UNIQUE INDEX i ON people (name)");
        assert_eq!(opened(&unique, true), "none");
        assert_eq!(opened(&unique, false), "refused: name: index i compares it: name it by `equal`");
    }

    #[test]
    fn what_would_read_or_keep_a_column_is_an_obstacle() {
        let collation = "its collation treats different texts as equal";
        for (definition, why) in [
            ("name TEXT, CHECK (name > 'a')", "a CHECK may read it"),
            ("name TEXT COLLATE NOCASE", collation),
            ("name TEXT COLLATE\n\"rtrim\"", collation),
            ("name TEXT REFERENCES others (a)", "a foreign key may compare it"),
            ("name TEXT, up TEXT AS(upper(name))", "a generated column may read it"),
            ("name TEXT, up TEXT GENERATED ALWAYS AS (upper(name)) STORED", "a generated column may read it"),
            ("id INT", "name: there is no such column"),
            ("name REAL", "name: its type is REAL, and only texts and whole numbers are encrypted"),
            ("name INTEGER PRIMARY KEY", "name: a key of whole numbers holds no bytes"),
            ("name TEXT DEFAULT 'x'", "name: it has a default, which would be stored as it is"),
        ] {
            let table = format!("CREATE TABLE people ({definition})");
            assert_eq!(opened(&table, true), format!("refused: {why}"), "{definition}");
        }
        for (more, why) in [
            ("CREATE TRIGGER t AFTER INSERT ON people BEGIN SELECT 1; END", "trigger t may read it"),
            ("CREATE VIEW adults AS SELECT name FROM people", "view adults may read it"),
            ("CREATE TABLE others (a TEXT REFERENCES people (name))", "table others may read it"),
            ("INSERT INTO people VALUES (1, x'00')", "name: it holds values that are neither texts nor whole numbers"),
            ("CREATE INDEX i ON people (upper(name))", "name: index i computes with it"),
            ("CREATE INDEX i ON people (id) WHERE name > 'a'", "name: index i computes with it"),
            ("CREATE INDEX i ON people (name COLLATE NOCASE)", "name: index i has a collation"),
        ] {
            assert_eq!(opened(&format!("{PEOPLE}{more}"), true), format!("refused: {why}"), "{more}");
        }
        let [strict, keyed] = ["(name TEXT)STRICT", "(id INTEGER PRIMARY KEY, name TEXT) WITHOUT\nROWID"];
        assert_eq!(opened(&format!("CREATE TABLE people {strict}"), true), "refused: STRICT columns hold no bytes");
        assert_eq!(opened(&format!("CREATE TABLE people {keyed}"), true), "refused: its rows have no rowid");
        assert_eq!(opened("CREATE TABLE others (name TEXT)", true), "refused: there is no such table");
        assert!(opened("CREATE VIEW people AS SELECT 'a' AS name", true).contains("it is not a table"));
    }
}
