//! The tables of a bulk load, according to its properties.

use std::iter;

use tithe_plugin::sql::{Column, ColumnType, Grammar, Sensitivity, SqlTable};

use super::config::{Config, Kind};

/// Rows of the table that a foreign key refers to.
pub const PARENTS: u64 = 1000;
/// Partitions of a partitioned table.
const PARTITIONS: u64 = 4;

/// The table that is loaded.
pub const LOADED: &str = "bulk";
/// The table that its foreign key refers to.
const PARENT: &str = "bulk_parent";
/// The table that its trigger writes to.
const LOG: &str = "bulk_log";

const PARENT_TABLE: SqlTable = SqlTable {
    name: PARENT,
    columns: &[Column::new("p_id", ColumnType::Integer, Sensitivity::Identifier).compared("parent")],
    key: &["p_id"],
    indexes: &[],
};
const LOG_TABLE: SqlTable = SqlTable {
    name: LOG,
    columns: &[Column::new("l_id", ColumnType::Long, Sensitivity::Identifier).compared("row")],
    key: &[],
    indexes: &[],
};

/// The tables of `config`, the loaded one first. They have the program's lifetime, as all descriptions of tables.
pub fn tables(config: &Config) -> &'static [SqlTable] {
    let head = [
        Column::new("b_id", ColumnType::Long, Sensitivity::Identifier).compared("row"),
        Column::new("b_parent", ColumnType::Integer, Sensitivity::Identifier).compared("parent"),
        Column::new("b_number", ColumnType::Long, Sensitivity::Figure),
    ];
    let text = |number| {
        let name: &'static str = format!("b_text{number}").leak();
        Column::new(name, ColumnType::Text(config.length), Sensitivity::Remark)
    };
    let columns: Vec<Column> = head.into_iter().chain((0..config.fields).map(text)).collect();
    let key: &[&str] = if config.table == Kind::Keyed { &["b_id"] } else { &[] };
    let loaded = SqlTable { name: LOADED, columns: columns.leak(), key, indexes: &[] };
    let beside = match config.table {
        Kind::Foreign => Some(PARENT_TABLE),
        Kind::Trigger => Some(LOG_TABLE),
        Kind::Plain | Kind::Keyed | Kind::Partitioned => None,
    };
    iter::once(loaded).chain(beside).collect::<Vec<_>>().leak()
}

/// Completes `table` for a load of `kind`: text after its definition, and further statements.
pub fn completes(kind: Kind, table: &str, grammar: Grammar) -> (String, Vec<String>) {
    let statements = |statements: &[&str]| statements.iter().map(|statement| (*statement).to_owned()).collect();
    match (kind, table, grammar) {
        (Kind::Foreign, PARENT, _) => {
            let foreign = "ALTER TABLE bulk ADD FOREIGN KEY (b_parent) REFERENCES bulk_parent (p_id)";
            (String::new(), statements(&[foreign]))
        }
        (Kind::Trigger, LOG, Grammar::Postgres) => {
            let function = "CREATE OR REPLACE FUNCTION bulk_logged() RETURNS trigger LANGUAGE plpgsql AS \
                            'BEGIN INSERT INTO bulk_log (l_id) VALUES (NEW.b_id); RETURN NULL; END'";
            let mark = "COMMENT ON FUNCTION bulk_logged() IS '{mark}'";
            let trigger = "CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW EXECUTE FUNCTION bulk_logged()";
            (String::new(), statements(&[function, mark, trigger]))
        }
        (Kind::Trigger, LOG, Grammar::MySql) => {
            let body = "INSERT INTO bulk_log (l_id) VALUES (NEW.b_id)";
            (String::new(), vec![format!("CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW {body}")])
        }
        (Kind::Trigger, LOG, Grammar::Sqlite) => {
            let body = "BEGIN INSERT INTO bulk_log (l_id) VALUES (NEW.b_id); END";
            (String::new(), vec![format!("CREATE TRIGGER bulk_logs AFTER INSERT ON bulk FOR EACH ROW {body}")])
        }
        (Kind::Partitioned, LOADED, Grammar::Postgres) => {
            let partition = |number: u64| {
                let name = format!("bulk_part{number}");
                [
                    format!(
                        "CREATE TABLE {name} PARTITION OF bulk FOR VALUES WITH (MODULUS {PARTITIONS}, \
                         REMAINDER {number})"
                    ),
                    format!("COMMENT ON TABLE {name} IS '{{mark}}'"),
                ]
            };
            (" PARTITION BY HASH (b_id)".to_owned(), (0..PARTITIONS).flat_map(partition).collect())
        }
        (Kind::Partitioned, LOADED, Grammar::MySql) => {
            (String::new(), vec![format!("ALTER TABLE bulk PARTITION BY HASH (b_id) PARTITIONS {PARTITIONS}")])
        }
        _ => (String::new(), Vec::new()),
    }
}

/// The statements that empty the tables filled by a load of `kind`: one where the product can, so that load machines
/// that load meanwhile keep their rows in both tables or in none.
pub fn emptying(kind: Kind, grammar: Grammar) -> Vec<String> {
    let log = (kind == Kind::Trigger).then_some(LOG);
    let tables: Vec<&str> = iter::once(LOADED).chain(log).collect();
    match grammar {
        Grammar::Postgres => vec![format!("TRUNCATE TABLE {}", tables.join(", "))],
        Grammar::MySql | Grammar::DuckDb => tables.iter().map(|table| format!("TRUNCATE TABLE {table}")).collect(),
        Grammar::Sqlite => tables.iter().map(|table| format!("DELETE FROM {table}")).collect(),
    }
}

/// A condition that every row of `config` meets, in SQL for every product.
pub fn condition(config: &Config) -> String {
    let texts = (0..config.fields).map(|number| format!(" AND length(b_text{number}) = {}", config.length));
    format!("b_number = (b_id * {FACTOR}) % {MODULUS} AND b_parent = b_id % {PARENTS}{}", texts.collect::<String>())
}

const FACTOR: u64 = 48_271;
const MODULUS: u64 = 65_521;

/// The number in row `id`, for row numbers far below 2⁴⁷.
pub fn number_of(id: u64) -> u64 {
    id.wrapping_mul(FACTOR) % MODULUS
}
