//! YCSB's records by key over any [`SqlSession`]: one table, a key column, one column per field.
//!
//! Databases differ in how a table name is qualified and quoted and in how a transaction begins and ends; that is the
//! [`YcsbDialect`]. The database itself creates the table, because column types differ.

use std::os::fd::BorrowedFd;

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{
    Connection, Fields, KeyValueSession, Parameter, Progress, Request, Rows, SqlSession, Statement, Table,
};

/// Name of the key column, as in YCSB's own JDBC binding.
pub const KEY_COLUMN: &str = "ycsb_key";

/// A database's syntax where the SQL standard leaves it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YcsbDialect {
    /// True if a table is in a schema.
    pub schemas: bool,
    /// Sign around a name: `"` in the standard.
    pub quote: char,
    /// Statement that begins a group of writes.
    pub begin_bulk: &'static str,
    /// Statement that ends it and makes it durable.
    pub end_bulk: &'static str,
    /// Statements that read every page of `{table}` and of the index on `{key}` once, through the ordinary cache.
    pub warm: &'static [&'static str],
}

impl YcsbDialect {
    /// `name` in quotes. Names are letters, digits and underscores, so nothing in them needs escaping.
    pub fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        format!("{quote}{name}{quote}")
    }

    /// The table's quoted name, with the schema `space` if tables are in one.
    pub fn qualified(&self, space: &str, table: &Table) -> String {
        match self.schemas {
            true => format!("{}.{}", self.quoted(space), self.quoted(&table.name)),
            false => self.quoted(&table.name),
        }
    }

    /// The quoted name of field number `field`.
    pub fn field(&self, table: &Table, field: usize) -> String {
        self.quoted(&table.field(field))
    }
}

/// A [`KeyValueSession`] over SQL. Keys are passed as text, values as bytes.
///
/// A statement is prepared when it is first used, as in YCSB's JDBC binding, so that opening a connection costs nothing
/// that the measured operations do not need.
pub struct YcsbOverSql {
    sql: Box<dyn SqlSession>,
    texts: Texts,
    /// By kind and fields, see [`YcsbOverSql::slot`].
    statements: Vec<Option<Statement>>,
    /// Memory for parameters, empty between requests.
    parameters: Vec<Parameter<'static>>,
    /// How the columns of the pending answer map to fields.
    columns: Columns,
}

impl YcsbOverSql {
    /// Speaks to `table` in the schema `space` through `sql`.
    ///
    /// # Errors
    /// When the table, its key or one of its fields is not there.
    pub fn new(sql: Box<dyn SqlSession>, space: &str, table: &Table, dialect: &YcsbDialect) -> Result<Self, Fault> {
        let name = dialect.qualified(space, table);
        let texts = Texts { name, table: table.clone(), dialect: *dialect };
        let statements = vec![None; KINDS * (table.fields + 1)];
        let mut session = Self { sql, texts, statements, parameters: Vec::new(), columns: Columns::Fields };
        session.statement(StatementKind::Read, Fields::All)?;
        Ok(session)
    }

    /// The statement for `kind` on `fields`, prepared now if it was never used.
    fn statement(&mut self, kind: StatementKind, fields: Fields) -> Result<Statement, Fault> {
        let slot = kind as usize * (self.texts.table.fields + 1)
            + match fields {
                Fields::All => 0,
                Fields::One(field) => 1 + field,
            };
        if let Some(statement) = self.statements[slot] {
            return Ok(statement);
        }
        let statement = self.sql.prepare(&self.texts.text(kind, fields))?;
        self.statements[slot] = Some(statement);
        Ok(statement)
    }

    /// Executes `kind` on `fields` with parameters in the order of the statement's text.
    fn execute<'a>(
        &mut self,
        kind: StatementKind,
        fields: Fields,
        parameters: impl Iterator<Item = Parameter<'a>>,
    ) -> Result<(), Fault> {
        let statement = self.statement(kind, fields)?;
        let mut list: Vec<Parameter<'a>> = std::mem::take(&mut self.parameters);
        list.extend(parameters);
        let outcome = self.sql.submit(statement, &list);
        // An empty list holds no borrowed bytes, so the next request, which borrows others, can use its memory.
        // Collecting a mapped vector of the same element size reuses the allocation.
        list.clear();
        self.parameters = list.into_iter().map(|_| Parameter::Null).collect();
        outcome
    }
}

impl Connection for YcsbOverSql {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sql.descriptor()
    }

    fn wants_write(&self) -> bool {
        self.sql.wants_write()
    }

    fn blocks(&self) -> bool {
        self.sql.blocks()
    }

    fn server_task(&self) -> ServerTask {
        self.sql.server_task()
    }

    fn serving_process(&self) -> Option<i32> {
        self.sql.serving_process()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.sql.wire_bytes()
    }

    fn warm(&mut self) -> Result<(), Fault> {
        for statement in self.texts.dialect.warm {
            let statement =
                statement.replace("{table}", &self.texts.name).replace("{key}", &self.texts.dialect.quoted(KEY_COLUMN));
            self.sql.run_statement(&statement)?;
        }
        Ok(())
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.sql.run_statement(statement)
    }
}

impl KeyValueSession for YcsbOverSql {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.columns = Columns::of(request);
        let bytes = |&(_, value): &(usize, _)| Parameter::Bytes(value);
        match *request {
            Request::Read { key, fields } => {
                self.execute(StatementKind::Read, fields, [Parameter::Text(key)].into_iter())
            }
            Request::Update { key, values } => {
                let fields = match values {
                    [(field, _)] => Fields::One(*field),
                    _ => Fields::All,
                };
                self.execute(StatementKind::Update, fields, values.iter().map(bytes).chain([Parameter::Text(key)]))
            }
            Request::Insert { key, values } => {
                let parameters = [Parameter::Text(key)].into_iter().chain(values.iter().map(bytes));
                self.execute(StatementKind::Insert, Fields::All, parameters)
            }
            Request::Scan { start, count, fields } => {
                let parameters = [Parameter::Text(start), Parameter::Integer(i64::from(count))];
                self.execute(StatementKind::Scan, fields, parameters.into_iter())
            }
            Request::Delete { key } => {
                self.execute(StatementKind::Delete, Fields::All, [Parameter::Text(key)].into_iter())
            }
        }
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        match self.columns {
            Columns::Fields => self.sql.advance(rows),
            Columns::One(field) => self.sql.advance(&mut OneField { rows, field }),
            Columns::KeyAnd(first) => self.sql.advance(&mut KeyFirst { rows, first }),
        }
    }

    fn begin_bulk(&mut self) -> Result<(), Fault> {
        self.sql.run(self.texts.dialect.begin_bulk).map(drop)
    }

    fn end_bulk(&mut self) -> Result<(), Fault> {
        self.sql.run(self.texts.dialect.end_bulk).map(drop)
    }
}

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    Read,
    Update,
    Insert,
    Scan,
    Delete,
}

/// Number of [`StatementKind`]s.
const KINDS: usize = 5;

/// Writes the statements.
struct Texts {
    /// The table's name in statements.
    name: String,
    table: Table,
    dialect: YcsbDialect,
}

impl Texts {
    fn text(&self, kind: StatementKind, fields: Fields) -> String {
        let table = &self.name;
        let key = self.dialect.quoted(KEY_COLUMN);
        match kind {
            StatementKind::Read => format!("SELECT {} FROM {table} WHERE {key} = ?", self.list(fields, "")),
            StatementKind::Update => format!("UPDATE {table} SET {} WHERE {key} = ?", self.list(fields, " = ?")),
            StatementKind::Insert => {
                let signs = ", ?".repeat(self.table.fields);
                format!("INSERT INTO {table} ({key}, {}) VALUES (?{signs})", self.list(fields, ""))
            }
            StatementKind::Scan => {
                let fields = self.list(fields, "");
                format!("SELECT {key}, {fields} FROM {table} WHERE {key} >= ? ORDER BY {key} LIMIT ?")
            }
            StatementKind::Delete => format!("DELETE FROM {table} WHERE {key} = ?"),
        }
    }

    /// The names of `fields`, each followed by `after`.
    fn list(&self, fields: Fields, after: &str) -> String {
        let range = match fields {
            Fields::All => 0..self.table.fields,
            Fields::One(field) => field..field + 1,
        };
        let names: Vec<_> = range.map(|field| self.dialect.field(&self.table, field) + after).collect();
        names.join(", ")
    }
}

/// How the columns of an answer map to fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// Column and field have the same number, or there are no columns.
    Fields,
    /// The only column is this field.
    One(usize),
    /// The first column is the key, the second this field, and so on.
    KeyAnd(usize),
}

impl Columns {
    fn of(request: &Request<'_>) -> Self {
        match *request {
            Request::Read { fields: Fields::One(field), .. } => Self::One(field),
            Request::Scan { fields: Fields::One(field), .. } => Self::KeyAnd(field),
            Request::Scan { fields: Fields::All, .. } => Self::KeyAnd(0),
            _ => Self::Fields,
        }
    }
}

/// Passes the only column on under its field's number.
struct OneField<'a> {
    rows: &'a mut dyn Rows,
    field: usize,
}

impl Rows for OneField<'_> {
    fn row(&mut self, key: Option<&[u8]>) {
        self.rows.row(key);
    }

    fn field(&mut self, _column: usize, value: Option<&[u8]>) {
        self.rows.field(self.field, value);
    }
}

/// Makes the first column the key of the row.
struct KeyFirst<'a> {
    rows: &'a mut dyn Rows,
    first: usize,
}

impl Rows for KeyFirst<'_> {
    /// A row starts with its first column, which holds the key.
    fn row(&mut self, _key: Option<&[u8]>) {}

    fn field(&mut self, column: usize, value: Option<&[u8]>) {
        match column {
            0 => self.rows.row(value),
            _ => self.rows.field(self.first + column - 1, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use expect_test::{Expect, expect};
    use tithe_plugin::session::Discard;

    use super::*;

    const STANDARD: YcsbDialect =
        YcsbDialect { schemas: false, quote: '"', begin_bulk: "BEGIN", end_bulk: "COMMIT", warm: &[] };

    fn table() -> Table {
        Table { name: "usertable".to_owned(), fields: 3, field_prefix: "field".to_owned() }
    }

    /// Records its requests, and answers every execution with one row of the values `c0`, `c1`, ….
    struct Transcript {
        lines: Arc<Mutex<Vec<String>>>,
        prepared: usize,
        columns: usize,
    }

    impl Transcript {
        fn line(&self, line: String) {
            self.lines.lock().unwrap().push(line);
        }
    }

    impl Connection for Transcript {
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn server_task(&self) -> ServerTask {
            ServerTask::Caller
        }

        fn wire_bytes(&self) -> (u64, u64) {
            (0, 0)
        }
    }

    impl SqlSession for Transcript {
        fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
            self.line(format!("prepare {}: {sql}", self.prepared));
            self.prepared += 1;
            Ok(Statement(self.prepared - 1))
        }

        fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
            let list: Vec<_> = parameters
                .iter()
                .map(|parameter| match parameter {
                    Parameter::Text(text) => format!("text {}", String::from_utf8_lossy(text)),
                    Parameter::Bytes(bytes) => format!("bytes {}", String::from_utf8_lossy(bytes)),
                    Parameter::Integer(number) => number.to_string(),
                    Parameter::Null => "null".to_owned(),
                })
                .collect();
            self.line(format!("submit {}: {}", statement.0, list.join(", ")));
            Ok(())
        }

        fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
            rows.row(None);
            for column in 0..self.columns {
                rows.field(column, Some(format!("c{column}").as_bytes()));
            }
            Ok(Progress::Done(1))
        }

        fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
            self.line(format!("run: {sql}"));
            Ok(Vec::new())
        }
    }

    /// Writes rows down as `key: field=value`.
    #[derive(Default)]
    struct Seen(String);

    impl Rows for Seen {
        fn row(&mut self, key: Option<&[u8]>) {
            self.0 += &format!("{}:", key.map_or("-".into(), String::from_utf8_lossy));
        }

        fn field(&mut self, field: usize, value: Option<&[u8]>) {
            self.0 += &format!(" {field}={}", value.map_or("null".into(), String::from_utf8_lossy));
        }
    }

    fn session(columns: usize, dialect: &YcsbDialect) -> (YcsbOverSql, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::default();
        let sql = Transcript { lines: Arc::clone(&lines), prepared: 0, columns };
        (YcsbOverSql::new(Box::new(sql), "tithe", &table(), dialect).unwrap(), lines)
    }

    /// Everything that reaches the database for `requests`, in order.
    fn check(requests: &[Request<'_>], expect: Expect) {
        let (mut session, lines) = session(0, &STANDARD);
        for request in requests {
            session.call(request, &mut Discard).unwrap();
        }
        expect.assert_eq(&lines.lock().unwrap().join("\n"));
    }

    #[test]
    fn a_read_is_prepared_on_connecting_and_once() {
        let read = Request::Read { key: b"user1", fields: Fields::All };
        check(
            &[read, read],
            expect![[r#"
                prepare 0: SELECT "field0", "field1", "field2" FROM "usertable" WHERE "ycsb_key" = ?
                submit 0: text user1
                submit 0: text user1"#]],
        );
    }

    #[test]
    fn every_kind_of_request_has_its_text() {
        let all: &[(usize, &[u8])] = &[(0, b"a"), (1, b"b"), (2, b"c")];
        check(
            &[
                Request::Read { key: b"k", fields: Fields::One(2) },
                Request::Update { key: b"k", values: &[(1, b"v")] },
                Request::Update { key: b"k", values: all },
                Request::Insert { key: b"k", values: all },
                Request::Scan { start: b"k", count: 7, fields: Fields::All },
                Request::Scan { start: b"k", count: 7, fields: Fields::One(1) },
                Request::Delete { key: b"k" },
            ],
            expect![[r#"
                prepare 0: SELECT "field0", "field1", "field2" FROM "usertable" WHERE "ycsb_key" = ?
                prepare 1: SELECT "field2" FROM "usertable" WHERE "ycsb_key" = ?
                submit 1: text k
                prepare 2: UPDATE "usertable" SET "field1" = ? WHERE "ycsb_key" = ?
                submit 2: bytes v, text k
                prepare 3: UPDATE "usertable" SET "field0" = ?, "field1" = ?, "field2" = ? WHERE "ycsb_key" = ?
                submit 3: bytes a, bytes b, bytes c, text k
                prepare 4: INSERT INTO "usertable" ("ycsb_key", "field0", "field1", "field2") VALUES (?, ?, ?, ?)
                submit 4: text k, bytes a, bytes b, bytes c
                prepare 5: SELECT "ycsb_key", "field0", "field1", "field2" FROM "usertable" WHERE "ycsb_key" >= ? ORDER BY "ycsb_key" LIMIT ?
                submit 5: text k, 7
                prepare 6: SELECT "ycsb_key", "field1" FROM "usertable" WHERE "ycsb_key" >= ? ORDER BY "ycsb_key" LIMIT ?
                submit 6: text k, 7
                prepare 7: DELETE FROM "usertable" WHERE "ycsb_key" = ?
                submit 7: text k"#]],
        );
    }

    #[test]
    fn a_dialect_qualifies_quotes_and_groups() {
        let dialect = YcsbDialect { schemas: true, quote: '`', begin_bulk: "START", end_bulk: "END", warm: &[] };
        let (mut session, lines) = session(0, &dialect);
        session.begin_bulk().unwrap();
        session.end_bulk().unwrap();
        expect![[r#"
            prepare 0: SELECT `field0`, `field1`, `field2` FROM `tithe`.`usertable` WHERE `ycsb_key` = ?
            run: START
            run: END"#]]
        .assert_eq(&lines.lock().unwrap().join("\n"));
    }

    #[test]
    fn columns_become_keys_and_numbered_fields() {
        let mut seen = Seen::default();
        for (columns, request) in [
            (3, Request::Read { key: b"k", fields: Fields::All }),
            (1, Request::Read { key: b"k", fields: Fields::One(2) }),
            (4, Request::Scan { start: b"k", count: 1, fields: Fields::All }),
            (2, Request::Scan { start: b"k", count: 1, fields: Fields::One(2) }),
        ] {
            session(columns, &STANDARD).0.call(&request, &mut seen).unwrap();
            seen.0.push('\n');
        }
        expect![[r#"
            -: 0=c0 1=c1 2=c2
            -: 2=c0
            c0: 0=c1 1=c2 2=c3
            c0: 2=c1
        "#]]
        .assert_eq(&seen.0);
    }

    #[test]
    fn the_memory_of_parameters_is_kept() {
        let (mut session, _) = session(0, &STANDARD);
        let request = Request::Update { key: b"k", values: &[(1, b"v")] };
        session.call(&request, &mut Discard).unwrap();
        let (memory, capacity) = (session.parameters.as_ptr(), session.parameters.capacity());
        session.call(&request, &mut Discard).unwrap();
        assert_eq!((memory, capacity), (session.parameters.as_ptr(), session.parameters.capacity()));
        assert!(capacity > 0 && session.parameters.is_empty());
    }
}
