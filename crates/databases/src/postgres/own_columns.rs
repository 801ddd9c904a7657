//! Columns of the user's own tables that hold values encrypted by clients.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    own_tables::Opened,
    session::{SqlSession, rows},
    setup::OwnColumn,
};

use super::own_tables::literal;

/// Which properties of the table `{table}` rule out its column `{column}`, whose values are compared or not
/// (`{compared}`): each in words. Names are folded as the server folds them.
const OBSTACLES: &str = "\
WITH it AS (SELECT c.oid AS rel, c.relkind, a.* FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = lower({column}) \
AND a.attnum > 0 AND NOT a.attisdropped WHERE c.oid = {table}::regclass) \
SELECT 'it is not an ordinary table' FROM it WHERE relkind <> 'r' \
UNION ALL SELECT 'there is no such column' FROM it WHERE attnum IS NULL \
UNION ALL SELECT 'its type is ' || format_type(atttypid, atttypmod) || ', and only texts and whole numbers are encrypted' \
FROM it WHERE atttypid NOT IN ('text'::regtype, 'varchar'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype) \
UNION ALL SELECT 'it has a default or is generated, which the server would store as it is' FROM it WHERE atthasdef OR \
attidentity <> '' OR attgenerated <> '' \
UNION ALL SELECT 'its collation treats different texts as equal' FROM it JOIN pg_collation n ON n.oid = attcollation WHERE \
{compared} AND NOT collisdeterministic \
UNION ALL SELECT 'trigger ' || tgname || ' may read it' FROM it JOIN pg_trigger ON tgrelid = rel WHERE NOT tgisinternal \
UNION ALL SELECT 'constraint ' || conname || CASE contype WHEN 'f' THEN ' compares it with another table' WHEN 'u' THEN \
' compares it: name it by `equal`' WHEN 'p' THEN ' compares it: name it by `equal`' ELSE ' reads it' END FROM it JOIN \
pg_constraint ON (conrelid = rel AND attnum = ANY (conkey)) OR (confrelid = rel AND attnum = ANY (confkey)) WHERE contype \
NOT IN ('u', 'p', 'n') OR NOT {compared} \
UNION ALL SELECT 'index ' || i.indexrelid::regclass || CASE WHEN i.indisunique THEN ' compares it: name it by `equal`' ELSE \
' computes with it' END FROM it JOIN pg_index i ON i.indrelid = rel WHERE (i.indisunique AND NOT i.indisprimary AND NOT \
{compared} AND attnum = ANY (i.indkey) AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)) OR \
((i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = i.indexrelid AND \
d.refobjid = rel AND d.refobjsubid = attnum)) \
UNION ALL SELECT 'function ' || proname || ' names its table' FROM it JOIN pg_proc ON prosrc ILIKE '%' || {table} || '%' JOIN \
pg_namespace s ON s.oid = pronamespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'";

/// Has `columns` of `table` hold bytes.
///
/// # Errors
/// [`Fault::Refused`] with the obstacles; the server's error.
pub fn open(session: &mut dyn SqlSession, table: &str, columns: &[&OwnColumn]) -> Result<Opened, Fault> {
    let mut refused = Vec::new();
    for column in columns {
        let asked = OBSTACLES
            .replace("{table}", &literal(&table.to_lowercase()))
            .replace("{column}", &literal(&column.name))
            .replace("{compared}", if column.is_compared { "true" } else { "false" });
        let found = rows(session, &asked)?;
        refused.extend(found.into_iter().map(|[words]| format!("{}: {words}", column.name)));
    }
    if !refused.is_empty() {
        return Err(Fault::Refused(refused.join("; ")));
    }
    let change = |column: &&OwnColumn| {
        let name = &column.name;
        format!("ALTER {name} TYPE bytea USING convert_to({name}::text, 'UTF8')")
    };
    let changes: Vec<String> = columns.iter().map(change).collect();
    session.run(&format!("ALTER TABLE {table} {}", changes.join(", ")))?;
    let into = columns.iter().map(|column| column.name.clone()).collect();
    Ok(Opened {
        row: vec!["ctid".to_owned()],
        renames_rows: true,
        into,
        settle: vec![format!("VACUUM (FULL, ANALYZE) {table}")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        postgres::{schema::administrator, told::server},
        test_setup::plain,
        told::Told,
    };

    fn opened(told: &Told, columns: &[&OwnColumn]) -> Result<Opened, Fault> {
        told.seen(|server| {
            let mut session = administrator(server, &plain())?;
            open(&mut session, "People", columns)
        })
    }

    #[test]
    fn a_table_is_changed_only_if_no_column_has_an_obstacle() {
        let [name, iban] = ["People.Name", "People.iban"]
            .map(|name| OwnColumn::new(name, name.ends_with("iban")).expect("it names a table"));
        let free = server(Vec::new(), vec![("'people'::regclass", Ok(&[])), ("ALTER TABLE People", Ok(&[]))]);
        let change = "ALTER Name TYPE bytea USING convert_to(Name::text, 'UTF8'), ALTER iban TYPE bytea USING \
                      convert_to(iban::text, 'UTF8')";
        let told = server(Vec::new(), vec![("'people'::regclass", Ok(&[])), (change, Ok(&[]))]);
        let as_they_are = Opened {
            row: vec!["ctid".to_owned()],
            renames_rows: true,
            into: vec!["Name".to_owned(), "iban".to_owned()],
            settle: vec!["VACUUM (FULL, ANALYZE) People".to_owned()],
        };
        assert_eq!(opened(&told, &[&name, &iban]), Ok(as_they_are));
        // What is asked of a column depends on whether it is compared.
        let found = |words: &'static str| {
            let told = free.clone().telling(words, &[&["index i reads it"], &["view v"]]);
            let told = told.failing("ALTER TABLE", ("XX000", "it is changed"));
            opened(&told, &[&name, &iban]).map_err(|fault| fault.to_string())
        };
        let obstacles = |column: &str| Err(format!("refused: {column}: index i reads it; {column}: view v"));
        let [of_name, of_iban]: [Result<Opened, String>; 2] = ["Name", "iban"].map(obstacles);
        assert_eq!(found("WHERE false AND NOT collisdeterministic"), of_name);
        assert_eq!(found("WHERE true AND NOT collisdeterministic"), of_iban);
        assert_eq!(found("a.attname = lower('Name')"), of_name);
    }
}
