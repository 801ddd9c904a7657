//! An arm of a SQL database in memory, for tests of checks: it understands the few statements that checks send, writes
//! a file when told to settle, and optionally has a wire.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::BorrowedFd,
    sync::{Arc, Mutex, MutexGuard},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Install, Launch, Missing, Place, Search, Server},
    observation::Observation,
    proc::ServerTask,
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry},
    experiment::Url,
    record::ArmFacts,
};

use super::{Simulated, test_bench::Bench};
use crate::{
    database::{self, Connect, Database, Lack, SqlDatabase},
    evidence::{Check, seen_by},
    session::{Connection, Parameter, PreparedText, Progress, Rows, Session, SqlSession, Statement, Table},
    setup::{Columns, Setup},
    sql::{self, Dialect},
};

/// An arm of it.
pub struct SqlBench {
    /// Its folder, set-up and address.
    pub bench: Bench,
    /// The server.
    pub database: SqlInMemory,
}

impl SqlBench {
    /// Without protection.
    pub fn plain() -> Self {
        Self { bench: Bench::plain(), database: SqlInMemory::default() }
    }

    /// With clients that encrypt the columns of `share`.
    pub fn encrypted(share: f64) -> Self {
        let mut arm = Self::plain();
        arm.bench.setup.columns = Some(Columns::of_share(share, arm.bench.setup.credentials.key.clone()));
        arm
    }

    /// The same, reached over a wire.
    pub fn wired(mut self) -> Self {
        self.bench.server.address = Address::Tcp { host: "127.0.0.1".to_owned(), port: echo_server() };
        self
    }

    /// The same, at a server that Tithe did not start.
    pub fn attached(mut self) -> Self {
        self.bench.server.address = Address::Attached(Url::new(format!("sql://tithe@127.0.0.1:{}", echo_server())));
        self
    }

    /// The observation of `check` on it as the protected arm or as the plain one, and the words that limit its claim.
    pub fn look(&self, check: &dyn Check, protected: bool) -> (Observation, Option<&'static str>) {
        let mut context = self.bench.context();
        (context.database, context.protected) = (&self.database, protected);
        let seen = seen_by(check, &mut context);
        (seen, context.narrowed)
    }

    /// Rows that the server stores.
    pub fn rows(&self) -> usize {
        self.database.held().values().map(Vec::len).sum()
    }
}

type Row = Vec<(String, Cell)>;

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Number(i64),
    Bytes(Vec<u8>),
}

impl Cell {
    /// In the form that most products store and send.
    fn stored(&self) -> Vec<u8> {
        match self {
            Self::Number(number) => {
                i32::try_from(*number).map_or(number.to_be_bytes().to_vec(), |short| short.to_be_bytes().to_vec())
            }
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// The answer to a text, from an account that ran the careful statement before or did not.
pub type Answers = fn(Option<&str>, bool, &str) -> Result<Vec<database::Row>, Fault>;

/// The server.
#[derive(Clone)]
pub struct SqlInMemory {
    tables: Arc<Mutex<BTreeMap<String, Vec<Row>>>>,
    /// The stored form of received bytes.
    pub keeps: fn(&[u8]) -> Vec<u8>,
    /// The first bytes that its clients send.
    pub opening: &'static [u8],
    /// Its answers to texts of an account that ran the careful statement or did not; without it, the text that they
    /// select.
    pub answers: Option<Answers>,
    /// Its answer when its tables are to be written out.
    pub written_out: Result<(), Fault>,
    /// What it and its accounts lack.
    pub lacks: Vec<Lack>,
}

impl Default for SqlInMemory {
    fn default() -> Self {
        Self {
            tables: Arc::default(),
            keeps: <[u8]>::to_vec,
            opening: b"hello",
            answers: None,
            written_out: Ok(()),
            lacks: Vec::new(),
        }
    }
}

impl SqlInMemory {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Row>>> {
        self.tables.lock().expect("no test panics while it holds this")
    }
}

/// The first statement of a session that changes nothing.
pub const CAREFUL: &str = "BE CAREFUL";
const ASKED: AskedOfCustom = AskedOfCustom { setting: "SHOW {setting}", between: '-', careful: &[CAREFUL], kept: None };

impl Database for SqlInMemory {
    fn entry(&self) -> &'static DatabaseEntry {
        static ENTRY: DatabaseEntry =
            DatabaseEntry { id: "sql-in-memory", title: "SQL in memory", custom: Some(ASKED), ..DatabaseEntry::BARE };
        &ENTRY
    }

    fn lacks(&self, _server: &Server, _setup: &Setup) -> Result<Vec<Lack>, Fault> {
        Ok(self.lacks.clone())
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        Simulated.find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        Simulated.launch(install, setup, place)
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        let port = url.expose().rsplit_once(':')?.1;
        Some(("127.0.0.1".to_owned(), port.parse().ok()?))
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

    fn write_out(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        self.written_out.clone()
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        Simulated.facts(server, setup)
    }

    fn sql(&self) -> Option<&dyn SqlDatabase> {
        Some(self)
    }
}

impl SqlDatabase for SqlInMemory {
    fn dialect(&self) -> &'static Dialect {
        &sql::STANDARD
    }

    fn connect(&self, server: &Server, setup: &Setup, _how: &Connect) -> Result<Box<dyn SqlSession>, Fault> {
        let mut wire = match &server.address {
            Address::Tcp { host, port } => Some(TcpStream::connect((host.as_str(), *port))?),
            Address::Relayed { port, .. } => Some(TcpStream::connect(("127.0.0.1", *port))?),
            _ => None,
        };
        say(&mut wire, self.opening)?;
        let (server, account) = (self.clone(), setup.account.clone());
        let (prepared, answer) = (Vec::new(), Vec::new());
        Ok(Box::new(InMemory { server, account, is_careful: false, wire, prepared, answer, rows: 0 }))
    }

    fn create(&self, _: &Server, _: &Setup, _: &str, _: &str, _: &[String]) -> Result<(), Fault> {
        Ok(())
    }

    fn remove(&self, _server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        Ok(())
    }

    /// Writes all tables to its file.
    fn quiesce(&self, server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        let cells = self.held().values().flatten().flatten().flat_map(|(_, cell)| cell.stored()).collect::<Vec<u8>>();
        Ok(fs::write(server.paths.data[0].join("tables"), cells)?)
    }
}

/// A session of it.
struct InMemory {
    server: SqlInMemory,
    account: Option<String>,
    is_careful: bool,
    wire: Option<TcpStream>,
    prepared: Vec<String>,
    answer: Vec<Vec<Cell>>,
    rows: u64,
}

/// Sends `bytes` and waits until they have come back.
fn say(wire: &mut Option<TcpStream>, bytes: &[u8]) -> Result<(), Fault> {
    if let Some(wire) = wire {
        wire.write_all(bytes)?;
        wire.read_exact(&mut bytes.to_vec())?;
    }
    Ok(())
}

/// The part of `sql` between `begin` and `end`.
fn part<'a>(sql: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = sql.split_once(begin).map_or("", |(_, rest)| rest);
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

impl SqlSession for InMemory {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.prepared.push(sql.to_owned());
        Ok(Statement(self.prepared.len() - 1))
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        Ok(PreparedText { statement: self.prepare(sql)?, columns: Vec::new() })
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let sql = self.prepared[statement.0].clone();
        let cells: Vec<Cell> = parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Integer(number) => Cell::Number(*number),
                Parameter::Text(bytes) | Parameter::Bytes(bytes) => Cell::Bytes((self.server.keeps)(bytes)),
                Parameter::Null => panic!("no check sends NULL"),
            })
            .collect();
        say(&mut self.wire, &cells.iter().flat_map(Cell::stored).collect::<Vec<u8>>())?;
        let names = |list: &str| list.split(", ").map(str::to_owned).collect::<Vec<String>>();
        let mut tables = self.server.held();
        if sql.starts_with("INSERT") {
            let row = names(part(&sql, " (", ")")).into_iter().zip(cells).collect();
            tables.entry(part(&sql, "INTO ", " ").to_owned()).or_default().push(row);
            self.rows = 1;
            return Ok(());
        }
        let rows = tables.entry(part(&sql, "FROM ", " ").to_owned()).or_default();
        let by: Vec<&str> = part(&sql, " WHERE ", " LIMIT ").split(" AND ").collect();
        let by: Vec<&str> = by.into_iter().filter_map(|condition| condition.strip_suffix(" = ?")).collect();
        let meant =
            |row: &Row| by.iter().zip(&cells).all(|(name, cell)| row.iter().any(|(n, c)| n == name && c == cell));
        if sql.starts_with("DELETE") {
            let before = rows.len();
            rows.retain(|row| !meant(row));
            self.rows = (before - rows.len()) as u64;
        } else {
            let limit = part(&sql, " LIMIT ", " ").parse().unwrap_or(usize::MAX);
            let wanted = names(part(&sql, "SELECT ", " FROM "));
            let cell = |row: &Row, name: &String| row.iter().find(|(n, _)| n == name).expect("a column").1.clone();
            let chosen = rows.iter().filter(|row| meant(row)).take(limit);
            self.answer = chosen.map(|row| wanted.iter().map(|name| cell(row, name)).collect()).collect();
            self.rows = self.answer.len() as u64;
        }
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        for row in self.answer.drain(..) {
            rows.row(None);
            for (place, cell) in row.into_iter().enumerate() {
                match cell {
                    Cell::Number(number) => rows.field(place, Some(number.to_string().as_bytes())),
                    Cell::Bytes(bytes) => rows.field(place, Some(&bytes)),
                }
            }
        }
        Ok(Progress::Done(self.rows))
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        if sql == CAREFUL {
            self.is_careful = true;
            return Ok(Vec::new());
        }
        if let Some(answers) = self.server.answers {
            return answers(self.account.as_deref(), self.is_careful, sql);
        }
        say(&mut self.wire, sql.as_bytes())?;
        let text = (self.server.keeps)(part(sql, "SELECT '", "'").as_bytes());
        Ok(vec![vec![Some(String::from_utf8_lossy(&text).into_owned())]])
    }
}

impl Connection for InMemory {
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

/// The port of a server that sends everything back, to any number of clients in turn.
fn echo_server() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("a bound socket").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || std::io::copy(&mut stream.try_clone()?, &mut stream));
        }
    });
    port
}
