//! The cost of reading a record through YCSB's adapter and Tithe's session, compared with a bare loop around
//! `sqlite3_step`.
//!
//! `cargo run --release -p tithe-databases --example sqlite_overhead`: the two read the same file in turn. Prints the
//! processor time per read of each, and the median ratio over the rounds, without a judgement.

#![allow(clippy::print_stdout, reason = "a program to be looked at")]

use std::{
    collections::BTreeMap,
    ffi::{CString, c_char, c_int, c_void},
    hint::black_box,
    ops::Range,
    path::Path,
    ptr,
};

use tithe_databases::sqlite::Sqlite;
use tithe_machine::{
    clock::Clock,
    launch::{Address, Install, Place, Server},
};
use tithe_plugin::{
    database::{Connect, Database},
    session::{Discard, Fields, KeyValueSession, Request, Rows, Session, Table},
    setup::Setup,
};

const RECORDS: u64 = 10_000;
const READS: u64 = 50_000;
const ROUNDS: usize = 11;
const FIELDS: usize = 10;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = Table { name: "usertable".to_owned(), fields: FIELDS, field_prefix: "field".to_owned() };
    // A page cache that holds everything, so that the loops differ in the code above SQLite and not in the disk.
    let settings = BTreeMap::from([("cache_size".to_owned(), "-65536".to_owned())]);
    let setup = Setup { settings, ..Setup::bare() };
    let place = Place::on_loopback(folder.path().to_owned(), 0);
    let launch = Sqlite.launch(&Install::default(), &setup, &place);
    let server = Server::embedded(&launch, &place.folder);
    Sqlite.create(&server, &setup, &table).expect("creating the table");
    let how = Connect::blocking(table.clone());
    let Ok(Session::KeyValue(mut session)) = Sqlite.connect(&server, &setup, &how) else { panic!("cannot connect") };
    load(session.as_mut());
    let Address::File(file) = &server.address else { panic!("SQLite is a file") };
    let mut bare = Bare::open(file);

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(nanoseconds_per_read(|key| bare.read(key)));
        ours.push(nanoseconds_per_read(|key| {
            let request = Request::Read { key, fields: Fields::All };
            let mut sum = Sum(0);
            session.call(&request, &mut sum).expect("reading");
            sum.0
        }));
    }
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    println!("bare loop      {:7.0} ns/read", median(theirs));
    println!("YCSB over SQL  {:7.0} ns/read", median(ours));
    println!("ratio          {:7.3}", median(ratios));
}

fn load(session: &mut dyn KeyValueSession) {
    session.begin_bulk().expect("beginning");
    for number in 0..RECORDS {
        let value = format!("{number:0100}");
        let values: Vec<_> = (0..FIELDS).map(|field| (field, value.as_bytes())).collect();
        session.call(&Request::Insert { key: &key(number), values: &values }, &mut Discard).expect("inserting");
    }
    session.end_bulk().expect("ending");
}

fn key(number: u64) -> Vec<u8> {
    format!("user{number:019}").into_bytes()
}

/// Reads keys in an order unrelated to their own; `read` returns the number of bytes it read.
fn nanoseconds_per_read(mut read: impl FnMut(&[u8]) -> usize) -> f64 {
    let mut key = key(0);
    let digits: Range<usize> = key.len() - 4..key.len();
    let before = Clock::Real.thread_cpu();
    for step in 0..READS {
        let mut number = step * 7919 % RECORDS;
        for digit in digits.clone().rev() {
            key[digit] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        assert_eq!(black_box(read(&key)), FIELDS * 100);
    }
    (Clock::Real.thread_cpu() - before) as f64 / READS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Adds up the lengths of the values.
struct Sum(usize);

impl Rows for Sum {
    fn row(&mut self, _key: Option<&[u8]>) {}

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        self.0 += value.map_or(0, <[u8]>::len);
    }
}

/// The minimum: no checks, no copies, one statement. Never closed.
struct Bare {
    statement: *mut c_void,
}

unsafe extern "C" {
    fn sqlite3_open(filename: *const c_char, connection: *mut *mut c_void) -> c_int;
    fn sqlite3_exec(connection: *mut c_void, sql: *const c_char, a: usize, b: usize, c: usize) -> c_int;
    fn sqlite3_prepare_v2(
        connection: *mut c_void,
        sql: *const c_char,
        length: c_int,
        statement: *mut *mut c_void,
        tail: *mut *const c_char,
    ) -> c_int;
    fn sqlite3_bind_text(statement: *mut c_void, index: c_int, text: *const u8, length: c_int, free: usize) -> c_int;
    fn sqlite3_step(statement: *mut c_void) -> c_int;
    fn sqlite3_reset(statement: *mut c_void) -> c_int;
    fn sqlite3_column_blob(statement: *mut c_void, column: c_int) -> *const c_void;
    fn sqlite3_column_bytes(statement: *mut c_void, column: c_int) -> c_int;
}

impl Bare {
    fn open(file: &Path) -> Self {
        let name = CString::new(file.display().to_string()).expect("no zero byte");
        let fields: Vec<_> = (0..FIELDS).map(|field| format!("field{field}")).collect();
        let sql = format!("SELECT {} FROM usertable WHERE ycsb_key = ?", fields.join(", "));
        let sql = CString::new(sql).expect("no zero byte");
        let (mut connection, mut statement) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all texts end with a zero byte and live through the calls; both handles are written before they are
        // used.
        unsafe {
            assert_eq!(sqlite3_open(name.as_ptr(), &raw mut connection), 0);
            assert_eq!(sqlite3_exec(connection, c"PRAGMA cache_size = -65536".as_ptr(), 0, 0, 0), 0);
            assert_eq!(sqlite3_prepare_v2(connection, sql.as_ptr(), -1, &raw mut statement, ptr::null_mut()), 0);
        }
        Self { statement }
    }

    fn read(&mut self, key: &[u8]) -> usize {
        let mut bytes = 0;
        // SAFETY: the statement is open; `key` outlives its use, because the statement is reset before it returns.
        unsafe {
            sqlite3_bind_text(self.statement, 1, key.as_ptr(), key.len() as c_int, 0);
            while sqlite3_step(self.statement) == 100 {
                for column in 0..FIELDS as c_int {
                    black_box(sqlite3_column_blob(self.statement, column));
                    bytes += sqlite3_column_bytes(self.statement, column) as usize;
                }
            }
            sqlite3_reset(self.statement);
        }
        bytes
    }
}
