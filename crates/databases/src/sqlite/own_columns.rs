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
    let definition = sql.to_uppercase();
    // Which column these use is not checked: any of them may read it.
    for (word, why) in [
        ("CHECK", "a CHECK may read it"),
        ("COLLATE NOCASE", "its collation treats different texts as equal"),
        ("COLLATE RTRIM", "its collation treats different texts as equal"),
        ("GENERATED", "a generated column may read it"),
        (" AS (", "a generated column may read it"),
        ("REFERENCES", "a foreign key may compare it"),
        (") STRICT", "STRICT columns hold no bytes"),
        ("WITHOUT ROWID", "its rows have no rowid"),
    ] {
        if definition.contains(word) {
            refused.push(why.to_owned());
        }
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
