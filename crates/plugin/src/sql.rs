//! SQL workloads: tables, statements and dialects, described so that one text works for every product.
//!
//! A statement is written once with named parameters (`WHERE c_id = ?c_id`). The name gives the column of a parameter,
//! and the list after `SELECT` gives the returned columns. So a session that encrypts columns knows what it sends, and
//! a workload need not know about encryption. Not covered: quoting (names are plain), and any SQL beyond that of the
//! workloads.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    Long,
    /// Text of at most this many bytes.
    Text(usize),
}

/// What a value reveals; sets of columns to protect are made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sensitivity {
    /// An identity: an identifier, an order number.
    Identifier,
    /// A price, a balance, a date, a quantity.
    Figure,
    /// Anything else: names, addresses, remarks.
    Remark,
}

/// A column. Its name is unique among the tables of its workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// What its values reveal.
    pub holds: Sensitivity,
    /// Set if statements compare the column for equality: columns of one domain may be compared with each other.
    pub domain: Option<&'static str>,
    /// True when it may be NULL.
    pub nullable: bool,
}

impl Column {
    /// A column that is never NULL and never compared.
    pub const fn new(name: &'static str, kind: ColumnType, holds: Sensitivity) -> Self {
        Self { name, kind, holds, domain: None, nullable: false }
    }

    /// The same column, compared for equality within `domain`.
    pub const fn compared(self, domain: &'static str) -> Self {
        Self { domain: Some(domain), ..self }
    }

    /// The same column, which may be NULL.
    pub const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }
}

/// A table.
#[derive(Debug)]
pub struct SqlTable {
    /// Its name, as statements write it.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
    /// The primary key; empty if there is none.
    pub key: &'static [&'static str],
    /// Columns of each further index.
    pub indexes: &'static [&'static [&'static str]],
}

/// The isolation level of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// What the product calls REPEATABLE READ.
    RepeatableRead,
    /// What the product calls SERIALIZABLE.
    Serializable,
}

/// Where a transaction computes with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// In the server: `SET w_ytd = w_ytd + ?`, `ORDER BY`, `sum`. The ordinary statements.
    Server,
    /// In the client: fetch, compute, write back. The server orders and sums nothing and compares only for equality, so
    /// every column may be encrypted.
    Client,
}

/// The SQL of the user's own statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// PostgreSQL's.
    Postgres,
    /// MariaDB's and MySQL's.
    MySql,
    /// SQLite's.
    Sqlite,
    /// DuckDB's.
    DuckDb,
}

/// The differences of SQL between products.
#[derive(Debug)]
pub struct Dialect {
    /// The grammar of its statements.
    pub grammar: Grammar,
    /// Type of a 32-bit number.
    pub integer: &'static str,
    /// Type of a 64-bit number.
    pub long: &'static str,
    /// Type of text of at most this many bytes.
    pub text: fn(usize) -> String,
    /// Type of at most this many bytes; must be allowed in a key.
    pub bytes: fn(usize) -> String,
    /// The end of a `SELECT` that locks its rows until the transaction ends; empty if a transaction locks everything.
    pub row_lock: &'static str,
    /// Statements that a session runs once to set this isolation level; empty if each transaction sets it.
    pub isolate: fn(Isolation) -> &'static [&'static str],
    /// The statements that begin a transaction.
    pub begin: fn(Isolation) -> &'static [&'static str],
    /// The product's syntax for parameter `number`, from 1 on.
    pub placeholder: fn(usize) -> String,
    /// The query for name and value of each setting of a session, and the names of those that change by themselves; an
    /// empty query if statements change no setting unseen.
    pub settings: (&'static str, &'static [&'static str]),
    /// True for the text of a server error that reports a conflict with another transaction, after which a retry is
    /// right.
    pub is_conflict: fn(&str) -> bool,
}

/// The default dialect of a session: no product's, for tests.
pub static STANDARD: Dialect = Dialect {
    grammar: Grammar::Sqlite,
    integer: "integer",
    long: "bigint",
    text: |length| format!("varchar({length})"),
    bytes: |length| format!("varbinary({length})"),
    row_lock: " FOR UPDATE",
    isolate: |_| &[],
    begin: |_| &["BEGIN"],
    placeholder: |_| "?".to_owned(),
    settings: ("", &[]),
    is_conflict: |_| false,
};

/// The statement that makes `table`. `stored` gives the length in bytes of the stored values of a column that are not
/// stored unchanged (encrypted ones), `None` for the others.
pub fn definition(table: &SqlTable, dialect: &Dialect, stored: &dyn Fn(&Column) -> Option<usize>) -> String {
    let column = |column: &Column| {
        let kind = match (stored(column), column.kind) {
            (Some(length), _) => (dialect.bytes)(length),
            (None, ColumnType::Integer) => dialect.integer.to_owned(),
            (None, ColumnType::Long) => dialect.long.to_owned(),
            (None, ColumnType::Text(length)) => (dialect.text)(length),
        };
        let null = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {kind}{null}", column.name)
    };
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if !table.key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", table.key.join(", ")));
    }
    format!("CREATE TABLE {} ({})", table.name, parts.join(", "))
}

/// The statements that make the further indexes of `table`.
pub fn indexes(table: &SqlTable) -> Vec<String> {
    let index = |(number, columns): (usize, &&[&str])| {
        format!("CREATE INDEX {0}_{number} ON {0} ({1})", table.name, columns.join(", "))
    };
    table.indexes.iter().enumerate().map(index).collect()
}

/// The statement that adds `rows` rows to `table`, its parameters row by row in the order of the columns.
pub fn insert(table: &SqlTable, rows: usize) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let row = format!("(?{})", names.join(", ?"));
    format!("INSERT INTO {} ({}) VALUES {}", table.name, names.join(", "), vec![row; rows].join(", "))
}

/// A statement for a session to prepare, and the columns that its parameters and results belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The text, with `?` for each parameter.
    pub sql: String,
    /// The column of each parameter.
    pub parameters: Vec<&'static Column>,
    /// The column of each result; `None` for one that the server computes.
    pub results: Vec<Option<&'static Column>>,
}

/// Reads a `template` over `tables`: `?name` is a parameter of the column `name`, `{lock}` the dialect's row lock.
///
/// # Panics
/// If a parameter names no column: templates are constants of the program.
pub fn describe(template: &str, tables: &'static [SqlTable], dialect: &Dialect) -> Described {
    let find = |name: &str| tables.iter().flat_map(|table| table.columns).find(|column| column.name == name);
    let template = template.replace("{lock}", dialect.row_lock);
    let mut parts = template.split('?');
    let mut sql = parts.next().unwrap_or_default().to_owned();
    let mut parameters = Vec::new();
    for part in parts {
        let end = part.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').unwrap_or(part.len());
        let name = &part[..end];
        parameters.push(find(name).unwrap_or_else(|| panic!("`{name}` in `{template}` is not a column")));
        sql.push('?');
        sql.push_str(&part[end..]);
    }
    let list = sql.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM ")).map(|(list, _)| list);
    let results = list.map(|list| list.split(", ").map(find).collect()).unwrap_or_default();
    Described { sql, parameters, results }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    static TABLES: [SqlTable; 1] = [SqlTable {
        name: "thing",
        columns: &[
            Column::new("t_id", ColumnType::Integer, Sensitivity::Identifier).compared("thing"),
            Column::new("t_price", ColumnType::Long, Sensitivity::Figure).nullable(),
            Column::new("t_name", ColumnType::Text(24), Sensitivity::Remark),
        ],
        key: &["t_id"],
        indexes: &[&["t_name", "t_id"]],
    }];

    #[test]
    fn tables_are_written_in_the_dialect_with_room_for_ciphertext() {
        let plain = definition(&TABLES[0], &STANDARD, &|_| None);
        expect!["CREATE TABLE thing (t_id integer NOT NULL, t_price bigint, t_name varchar(24) NOT NULL, PRIMARY KEY (t_id))"]
            .assert_eq(&plain);
        let all = definition(&TABLES[0], &STANDARD, &|_| Some(36));
        expect!["CREATE TABLE thing (t_id varbinary(36) NOT NULL, t_price varbinary(36), t_name varbinary(36) NOT NULL, PRIMARY KEY (t_id))"]
            .assert_eq(&all);
        expect!["CREATE INDEX thing_0 ON thing (t_name, t_id)"].assert_eq(&indexes(&TABLES[0]).join("\n"));
    }

    #[test]
    fn statements_know_the_columns_of_parameters_and_results() {
        let told = |template: &str| {
            let Described { sql, parameters, results } = describe(template, &TABLES, &STANDARD);
            let names = parameters.iter().map(|column| column.name).collect::<Vec<_>>().join(" ");
            let results = results.iter().map(|column| column.map_or("-", |column| column.name)).collect::<Vec<_>>();
            format!("{sql} | {names} | {}", results.join(" "))
        };
        expect![
            "SELECT t_price, count(*) FROM thing WHERE t_id = ? AND t_name = ? FOR UPDATE | t_id t_name | t_price -"
        ]
        .assert_eq(&told("SELECT t_price, count(*) FROM thing WHERE t_id = ?t_id AND t_name = ?t_name{lock}"));
        expect!["INSERT INTO thing (t_id, t_price, t_name) VALUES (?, ?, ?), (?, ?, ?) | t_id t_price t_name t_id t_price t_name | "]
            .assert_eq(&told(&insert(&TABLES[0], 2)));
    }
}
