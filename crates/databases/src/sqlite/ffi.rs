//! The functions of SQLite and SQLite3 Multiple Ciphers that Tithe calls, as their headers declare them.
//!
//! Nothing here is safe by itself; [`super::connection`] is the only caller.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A connection.
#[repr(C)]
pub struct Sqlite3 {
    _private: [u8; 0],
}

/// A prepared statement.
#[repr(C)]
pub struct Sqlite3Stmt {
    _private: [u8; 0],
}

/// Success.
pub const OK: c_int = 0;
/// The machine failed to read or write.
pub const IOERR: c_int = 10;
/// The file cannot be opened.
pub const CANTOPEN: c_int = 14;
/// Fewer bytes were in the file than asked for.
pub const SHORT_READ: c_int = IOERR | (2 << 8);
/// Memory ran out within input or output.
pub const NO_MEMORY: c_int = IOERR | (12 << 8);
/// The first page is not that of a database, or the key does not decrypt it.
pub const NOTADB: c_int = 26;
/// `sqlite3_step` has a row.
pub const ROW: c_int = 100;
/// `sqlite3_step` has reached the end.
pub const DONE: c_int = 101;

/// Open for reading only.
pub const OPEN_READONLY: c_int = 0x1;
/// Open for reading and writing.
pub const OPEN_READWRITE: c_int = 0x2;
/// Create the file if there is none.
pub const OPEN_CREATE: c_int = 0x4;
/// The connection is used by one thread at a time.
pub const OPEN_NOMUTEX: c_int = 0x8000;
/// Errors are reported in their extended form.
pub const OPEN_EXRESCODE: c_int = 0x0200_0000;

/// The statement is kept and used many times.
pub const PREPARE_PERSISTENT: c_uint = 0x1;
/// Storage class of NULL.
pub const NULL: c_int = 5;
/// Text encoding.
pub const UTF8: u8 = 1;
/// Used in place of a destructor: SQLite makes its own copy. Declared as a number of a pointer's size, because −1 is
/// not a function.
pub const TRANSIENT: isize = -1;

unsafe extern "C" {
    pub fn sqlite3_open_v2(
        filename: *const c_char,
        connection: *mut *mut Sqlite3,
        flags: c_int,
        vfs: *const c_char,
    ) -> c_int;
    pub fn sqlite3_db_readonly(connection: *mut Sqlite3, schema: *const c_char) -> c_int;
    pub fn sqlite3_close_v2(connection: *mut Sqlite3) -> c_int;
    pub fn sqlite3_extended_errcode(connection: *mut Sqlite3) -> c_int;
    pub fn sqlite3_system_errno(connection: *mut Sqlite3) -> c_int;
    pub fn sqlite3_errmsg(connection: *mut Sqlite3) -> *const c_char;
    pub fn sqlite3_changes64(connection: *mut Sqlite3) -> i64;
    pub fn sqlite3_libversion() -> *const c_char;

    pub fn sqlite3_prepare_v3(
        connection: *mut Sqlite3,
        sql: *const c_char,
        length: c_int,
        flags: c_uint,
        statement: *mut *mut Sqlite3Stmt,
        tail: *mut *const c_char,
    ) -> c_int;
    pub fn sqlite3_get_autocommit(connection: *mut Sqlite3) -> c_int;
    pub fn sqlite3_finalize(statement: *mut Sqlite3Stmt) -> c_int;
    pub fn sqlite3_reset(statement: *mut Sqlite3Stmt) -> c_int;
    pub fn sqlite3_step(statement: *mut Sqlite3Stmt) -> c_int;
    pub fn sqlite3_bind_parameter_count(statement: *mut Sqlite3Stmt) -> c_int;
    pub fn sqlite3_bind_text64(
        statement: *mut Sqlite3Stmt,
        index: c_int,
        text: *const c_char,
        length: u64,
        destructor: isize,
        encoding: u8,
    ) -> c_int;
    pub fn sqlite3_bind_blob64(
        statement: *mut Sqlite3Stmt,
        index: c_int,
        bytes: *const c_void,
        length: u64,
        destructor: isize,
    ) -> c_int;
    pub fn sqlite3_bind_int64(statement: *mut Sqlite3Stmt, index: c_int, value: i64) -> c_int;
    pub fn sqlite3_bind_null(statement: *mut Sqlite3Stmt, index: c_int) -> c_int;
    pub fn sqlite3_column_count(statement: *mut Sqlite3Stmt) -> c_int;
    pub fn sqlite3_column_name(statement: *mut Sqlite3Stmt, column: c_int) -> *const c_char;
    pub fn sqlite3_column_type(statement: *mut Sqlite3Stmt, column: c_int) -> c_int;
    pub fn sqlite3_column_blob(statement: *mut Sqlite3Stmt, column: c_int) -> *const c_void;
    pub fn sqlite3_column_bytes(statement: *mut Sqlite3Stmt, column: c_int) -> c_int;

    pub fn sqlite3mc_version() -> *const c_char;
    pub fn sqlite3mc_cipher_index(name: *const c_char) -> c_int;
    pub fn sqlite3mc_config(connection: *mut Sqlite3, parameter: *const c_char, value: c_int) -> c_int;
    pub fn sqlite3_key_v2(
        connection: *mut Sqlite3,
        database: *const c_char,
        key: *const c_void,
        length: c_int,
    ) -> c_int;
}
