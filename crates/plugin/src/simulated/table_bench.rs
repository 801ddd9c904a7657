//! Tables of the user's own in memory, for tests of code that encrypts their columns: with NULL, pipelines and both
//! ways to write parameters and bytes. The server notes every request.

use std::{
    collections::BTreeMap,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Install, Launch, Missing, Place, Search, Server},
    proc::ServerTask,
    secret::hex,
};
use tithe_model::{
    catalogue::{DatabaseEntry, WireProtocol},
    record::ArmFacts,
};

use super::Simulated;
use crate::{
    checks::canary::Collected,
    database::{Connect, Database, SqlDatabase},
    own_tables::Opened,
    session::{Connection, Offers, Parameter, PreparedText, Progress, Rows, Session, SqlSession, Statement, Table},
    setup::{OwnColumn, Reach, Setup},
    sql::{self, Column, ColumnType, Dialect, Grammar, Sensitivity, SqlTable},
};

/// A value; `None` is NULL.
pub type Value = Option<Vec<u8>>;

/// The columns of every table. The first two identify a row, the others hold bytes.
pub const COLUMNS: [&str; 4] = ["part", "id", "iban", "note"];

/// Writes parameters and bytes as PostgreSQL does.
pub static NUMBERED: Dialect =
    Dialect { grammar: Grammar::Postgres, placeholder: |number| format!("${number}"), ..sql::STANDARD };

/// The server, and how its product works.
#[derive(Clone)]
pub struct TableBench {
    /// How it writes SQL.
    pub dialect: &'static Dialect,
    /// It has pipelines and statements for many rows.
    pub pipelines: bool,
    /// An update changes the identifier of its row: `7` becomes `7'`.
    pub renames_rows: bool,
    /// Why it does not open columns.
    pub refuses: Option<Fault>,
    /// The update that fails, from 1 on.
    pub fails_at: Option<usize>,
    held: Arc<Mutex<Held>>,
}

/// The content of a server, and the requests to it.
#[derive(Default)]
struct Held {
    tables: BTreeMap<String, Vec<Vec<Value>>>,
    updates: usize,
    queries: usize,
    notes: Vec<String>,
}

impl TableBench {
    /// One that takes a statement at a time and never fails.
    pub fn new(dialect: &'static Dialect) -> Self {
        let held = Arc::default();
        Self { dialect, pipelines: false, renames_rows: false, refuses: None, fails_at: None, held }
    }

    /// Adds `rows` to `table`.
    pub fn fill(&self, table: &str, rows: impl IntoIterator<Item = Vec<Value>>) {
        self.held().tables.entry(table.to_owned()).or_default().extend(rows);
    }

    /// The rows of `table` as they are stored.
    pub fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        self.held().tables.get(table).cloned().unwrap_or_default()
    }

    /// Updates so far, with one that failed.
    pub fn updates(&self) -> usize {
        self.held().updates
    }

    /// Executions of queries so far.
    pub fn queries(&self) -> usize {
        self.held().queries
    }

    /// The requests so far, in order: prepared and other statements by their texts, updates by their number in one
    /// request.
    pub fn notes(&self) -> Vec<String> {
        self.held().notes.clone()
    }

    /// A session of a client.
    pub fn session(&self) -> Box<dyn SqlSession> {
        let (prepared, answer) = (Vec::new(), Vec::new());
        let server = self.clone();
        Box::new(TableSession { server, prepared, answer, count: 0, is_answered: false, pipeline: None, begun: false })
    }

    /// `sql`, in which every parameter is `?`, as it is written in its dialect.
    pub fn written(&self, sql: &str) -> String {
        numbered(sql, self.dialect.placeholder)
    }

    fn note(&self, what: String) {
        self.held().notes.push(what);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Database for TableBench {
    fn entry(&self) -> &'static DatabaseEntry {
        static ENTRY: DatabaseEntry = DatabaseEntry {
            id: "table-in-memory",
            title: "table in memory",
            wire_protocol: Some(WireProtocol::Postgres),
            ..DatabaseEntry::BARE
        };
        &ENTRY
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        Simulated.find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        Simulated.launch(install, setup, place)
    }

    /// Records by key are those of the simulated database.
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        Simulated.connect(server, setup, how)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.remove(server, setup, table)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.quiesce(server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        Simulated.facts(server, setup)
    }

    fn sql(&self) -> Option<&dyn SqlDatabase> {
        Some(self)
    }

    fn reach(&self, server: &Server, _setup: &Setup) -> Result<Reach, Fault> {
        let port = if let Address::Tcp { port, .. } = &server.address { *port } else { 7 };
        let (host, user, database) = ("127.0.0.1".to_owned(), "tithe".to_owned(), String::new());
        Ok(Reach { host, port, user, database, password: None, tls: None })
    }
}

impl SqlDatabase for TableBench {
    fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    fn connect(&self, _server: &Server, _setup: &Setup, _how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        self.note("connect".to_owned());
        Ok(self.session())
    }

    fn create(&self, _: &Server, _: &Setup, _: &str, _: &str, _: &[String]) -> Result<(), Fault> {
        Ok(())
    }

    fn remove(&self, _server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        Ok(())
    }

    fn quiesce(&self, _server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        Ok(())
    }

    fn open_columns(
        &self,
        _session: &mut dyn SqlSession,
        table: &str,
        columns: &[&OwnColumn],
    ) -> Result<Opened, Fault> {
        let into: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        self.note(format!("open {table}: {}", into.join(", ")));
        match &self.refuses {
            Some(fault) => Err(fault.clone()),
            None => Ok(Opened {
                row: COLUMNS[..2].iter().map(|name| (*name).to_owned()).collect(),
                renames_rows: self.renames_rows,
                into,
                settle: vec![format!("settle {table}")],
            }),
        }
    }
}

/// A column, whether its value must be greater than the parameter and not equal to it, and the parameter's number.
type Condition = (usize, bool, usize);

/// A statement that the server understands.
enum Parsed {
    /// Sets columns to parameters in the rows that meet all conditions.
    Update { table: String, set: Vec<Condition>, by: Vec<Condition> },
    /// Reads the columns `wanted` of the rows that meet all conditions of some list, if there are lists.
    Select { table: String, wanted: Vec<usize>, any: Vec<Vec<Condition>>, order: Vec<usize>, limit: usize },
}

impl Parsed {
    fn of(sql: &str) -> Self {
        let sql = numbered(sql, |number| format!("${number}"));
        let understood = "the server understands two kinds of statements";
        let all = |text: &str, between: &str| text.split(between).map(condition).collect::<Vec<Condition>>();
        if let Some(rest) = sql.strip_prefix("UPDATE ") {
            let (table, rest) = rest.split_once(" SET ").expect(understood);
            let (set, by) = rest.split_once(" WHERE ").expect(understood);
            return Self::Update { table: table.to_owned(), set: all(set, ", "), by: all(by, " AND ") };
        }
        let (wanted, rest) = sql.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM ")).expect(understood);
        let (rest, limit) = rest.split_once(" LIMIT ").unwrap_or((rest, "1000000"));
        let (rest, order) = rest.split_once(" ORDER BY ").unwrap_or((rest, ""));
        let (table, any) = rest.split_once(" WHERE ").unwrap_or((rest, ""));
        let columns = |list: &str| list.split(", ").filter(|name| !name.is_empty()).map(column).collect::<Vec<usize>>();
        let lists = any.split(" OR ").filter(|list| !list.is_empty());
        Self::Select {
            table: table.to_owned(),
            wanted: columns(wanted),
            any: lists.map(|list| all(list.trim_matches(['(', ')']), " AND ")).collect(),
            order: columns(order),
            limit: limit.parse().expect("a number"),
        }
    }
}

/// `sql` with `placeholder` in place of each `?`.
fn numbered(sql: &str, placeholder: fn(usize) -> String) -> String {
    let mut parts = sql.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.enumerate().fold(first, |text, (number, part)| format!("{text}{}{part}", placeholder(number + 1)))
}

fn column(name: &str) -> usize {
    COLUMNS.iter().position(|known| *known == name).unwrap_or_else(|| panic!("there is no column `{name}`"))
}

/// Reads `part > $1` or `part = $1`.
fn condition(text: &str) -> Condition {
    let words: Vec<&str> = text.split(' ').collect();
    let [name, sign, parameter] = words[..] else { panic!("`{text}` is not understood") };
    let number: usize = parameter.trim_start_matches('$').parse().expect("the number of a parameter");
    (column(name), sign == ">", number - 1)
}

/// True if `row` meets all conditions. NULL meets none.
fn meets(row: &[Value], all: &[Condition], parameters: &[Value]) -> bool {
    all.iter().all(|(column, is_greater, number)| match (&row[*column], &parameters[*number]) {
        (Some(value), Some(bound)) if *is_greater => value > bound,
        (Some(value), Some(bound)) => value == bound,
        _ => false,
    })
}

/// A session of it.
struct TableSession {
    server: TableBench,
    prepared: Vec<Parsed>,
    /// The rows of the answer that comes next.
    answer: Vec<Vec<Value>>,
    /// How many rows it is about.
    count: u64,
    /// It can be read.
    is_answered: bool,
    /// The updates of the open pipeline.
    pipeline: Option<usize>,
    /// A transaction is open.
    begun: bool,
}

impl TableSession {
    /// Carries out `parsed` with `parameters`; returns whether it was an update.
    fn execute(&mut self, parsed: &Parsed, parameters: &[Value]) -> Result<bool, Fault> {
        let mut held = self.server.held();
        match parsed {
            Parsed::Update { table, set, by } => {
                held.updates += 1;
                if self.server.fails_at == Some(held.updates) {
                    return Err(Fault::Server("the disk is full".to_owned()));
                }
                let rows = held.tables.entry(table.clone()).or_default().iter_mut();
                for row in rows.filter(|row| meets(row, by, parameters)) {
                    set.iter().for_each(|(column, _, number)| row[*column].clone_from(&parameters[*number]));
                    if let (true, Some(id)) = (self.server.renames_rows, &mut row[1]) {
                        id.push(b'\'');
                    }
                    self.count += 1;
                }
                Ok(true)
            }
            Parsed::Select { table, wanted, any, order, limit } => {
                held.queries += 1;
                let rows = held.tables.entry(table.clone()).or_default().iter();
                let is_met = |row: &&Vec<Value>| any.is_empty() || any.iter().any(|all| meets(row, all, parameters));
                let mut found: Vec<&Vec<Value>> = rows.filter(is_met).collect();
                found.sort_by_key(|row| order.iter().map(|column| row[*column].clone()).collect::<Vec<Value>>());
                let as_hex = self.server.dialect.grammar == Grammar::Postgres;
                let sent = |row: &[Value], column: usize| match &row[column] {
                    Some(bytes) if as_hex && column >= 2 => Some(format!("\\x{}", hex(bytes)).into_bytes()),
                    value => value.clone(),
                };
                let chosen = found.into_iter().take(*limit);
                let chosen = chosen.map(|row| wanted.iter().map(|column| sent(row, *column)).collect::<Vec<Value>>());
                self.answer.extend(chosen);
                self.count += self.answer.len() as u64;
                Ok(false)
            }
        }
    }

    /// Carries out a statement that was sent, and answers unless a pipeline holds the answer.
    fn take(&mut self, parsed: &Parsed, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        assert!(!self.is_answered, "an answer was not read before the next request");
        let value = |parameter: &Parameter<'_>| match parameter {
            Parameter::Text(bytes) | Parameter::Bytes(bytes) => Some(bytes.to_vec()),
            Parameter::Integer(number) => Some(number.to_string().into_bytes()),
            Parameter::Null => None,
        };
        let parameters: Vec<Value> = parameters.iter().map(value).collect();
        let is_update = self.execute(parsed, &parameters)?;
        match &mut self.pipeline {
            Some(updates) => *updates += usize::from(is_update),
            None => {
                if is_update {
                    self.server.note("UPDATE 1".to_owned());
                }
                self.is_answered = true;
            }
        }
        Ok(())
    }
}

impl SqlSession for TableSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.prepared.push(Parsed::of(sql));
        Ok(Statement(self.prepared.len() - 1))
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        self.server.note(sql.to_owned());
        Ok(PreparedText { statement: self.prepare(sql)?, columns: vec!["first".to_owned()] })
    }

    fn dialect(&self) -> &'static Dialect {
        self.server.dialect
    }

    fn pipelines(&self) -> bool {
        self.server.pipelines
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let prepared = std::mem::take(&mut self.prepared);
        let taken = self.take(&prepared[statement.0], parameters);
        self.prepared = prepared;
        taken
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.submit_once(sql, &[])
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.server.note(format!("at once: {sql}"));
        self.take(&Parsed::of(sql), parameters)
    }

    fn offers(&self) -> Offers {
        Offers { extended: true, combined: true, pipelines: self.server.pipelines }
    }

    fn begin_pipeline(&mut self) {
        assert!(self.server.pipelines, "it has no pipelines");
        self.pipeline = Some(0);
    }

    fn end_pipeline(&mut self) -> Result<(), Fault> {
        let updates = self.pipeline.take().ok_or_else(|| Fault::Protocol("no pipeline was begun".to_owned()))?;
        self.server.note(format!("UPDATE {updates}"));
        self.is_answered = true;
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        self.begun
    }

    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        let length = |value: &Parameter<'_>| match value {
            Parameter::Text(bytes) | Parameter::Bytes(bytes) => bytes.len().to_string(),
            Parameter::Integer(_) | Parameter::Null => "no".to_owned(),
        };
        let lengths: Vec<String> = values.iter().map(length).collect();
        self.server.note(format!("copy {} bytes to {}", lengths.join(" "), table.name));
        Ok(self.server.pipelines)
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        let lines = String::from_utf8_lossy(lines);
        self.server.note(format!("lines to {table} ({}): {lines}", columns.join(", ")));
        Ok(self.server.pipelines)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if !std::mem::take(&mut self.is_answered) {
            return Err(Fault::Protocol("there is no answer".to_owned()));
        }
        for row in std::mem::take(&mut self.answer) {
            rows.row(None);
            row.iter().enumerate().for_each(|(field, value)| rows.field(field, value.as_deref()));
        }
        Ok(Progress::Done(std::mem::take(&mut self.count)))
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.server.note(sql.to_owned());
        self.begun = sql == "BEGIN" || self.begun && sql != "COMMIT";
        Ok(vec![vec![Some(sql.to_lowercase()), None]])
    }

    fn run_all(&mut self, text: &str) -> Result<(), Fault> {
        self.server.note(format!("all: {text}"));
        Ok(())
    }
}

impl Connection for TableSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (30, 400)
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.server.note(format!("statement: {statement}"));
        Ok(())
    }
}

/// A table of Tithe's own.
pub static TABLES: [SqlTable; 1] = [SqlTable {
    name: "thing",
    columns: &[
        Column::new("part", ColumnType::Text(9), Sensitivity::Identifier),
        Column::new("id", ColumnType::Text(9), Sensitivity::Identifier),
    ],
    key: &[],
    indexes: &[],
}];

/// Checks whether a session that `wrap` puts around one of a server passes on everything that is about none of its
/// columns, and the answers unchanged.
pub fn check_passes_on(wrap: impl Fn(Box<dyn SqlSession>) -> Box<dyn SqlSession>) {
    for pipelines in [false, true] {
        let used = |wrap: &dyn Fn(Box<dyn SqlSession>) -> Box<dyn SqlSession>| {
            let mut server = TableBench::new(&NUMBERED);
            server.pipelines = pipelines;
            server.fill("thing", [b"a", b"b"].map(|id| vec![Some(b"0".to_vec()), Some(id.to_vec()), None, None]));
            let said = answers(wrap(server.session()).as_mut());
            (said, server.notes(), server.rows("thing"))
        };
        assert_eq!(used(&wrap), used(&|session: Box<dyn SqlSession>| session), "pipelines: {pipelines}");
    }
}

/// The answers of `session` to one request of each kind.
fn answers(session: &mut dyn SqlSession) -> Vec<String> {
    const READ: &str = "SELECT part, id FROM thing";
    let mut said = vec![format!("{:?} {:?}", session.offers(), session.dialect().grammar)];
    said.push(format!("{} {:?}", session.pipelines(), session.wire_bytes()));
    said.push(format!("{} {:?}", session.in_transaction(), session.run("BEGIN")));
    said.push(format!("{} {:?}", session.in_transaction(), session.run_statement("SET a")));
    for way in 0..5 {
        let mut collected = Collected::default();
        let sent = match way {
            0 => session.prepare(READ).and_then(|read| session.submit(read, &[])),
            1 => {
                let read = sql::Described { sql: READ.to_owned(), parameters: Vec::new(), results: Vec::new() };
                session.prepare_described(&read).and_then(|read| session.submit(read, &[]))
            }
            2 => session.prepare_text(READ).and_then(|read| {
                said.push(format!("{:?}", read.columns));
                session.submit(read.statement, &[])
            }),
            3 => session.submit_text(READ),
            _ => session.submit_once(READ, &[]),
        };
        let finished = sent.and_then(|()| session.finish(&mut collected));
        said.push(format!("{finished:?} {:?}", collected.rows));
    }
    let lines = session.submit_lines("thing", &["part", "id"], b"1\tc\n");
    said.push(format!("{lines:?} {:?}", session.submit_text("SELECT id FROM thing LIMIT 1")));
    said.push(format!("{:?}", session.finish(&mut Collected::default())));
    if session.pipelines() {
        let rename = session.prepare("UPDATE thing SET part = $1 WHERE id = $2");
        session.begin_pipeline();
        let parameters = [Parameter::Text(b"1"), Parameter::Text(b"a")];
        let sent = rename.and_then(|rename| session.submit(rename, &parameters));
        let ended = sent.and_then(|()| session.end_pipeline());
        said.push(format!("{ended:?} {:?}", session.finish(&mut Collected::default())));
    }
    said
}

/// Sends two rows of [`TABLES`] by the product's own method; false if it has none.
pub fn copied(session: &mut dyn SqlSession) -> Result<bool, Fault> {
    session.submit_copy(&TABLES[0], &[b"1", b"c", b"2", b"d"].map(|value| Parameter::Text(value)))
}
