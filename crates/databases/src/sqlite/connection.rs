//! One SQLite connection with its prepared statements, behind a safe interface.
//!
//! Statements belong to their connection and are named by number, so that neither can outlive the other and both
//! move between threads as one. Which statements are run, and when, is not decided here.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr::{self, NonNull},
    slice,
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Parameter, Rows, Statement},
    setup::AtRest,
};

use super::ffi;

/// The prefix of a key that is used directly, without key derivation.
pub const RAW_KEY: &[u8] = b"raw:";

/// The one cipher without raw keys: it would read the hexadecimal digits as a passphrase, and use only half of them.
pub const NO_RAW_KEY: &str = "aes256cbc";

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is written, not even a checkpoint on closing.
    ReadOnly,
    /// The file must be there.
    Existing,
    /// The file is created if there is none.
    Create,
}

/// Why a file cannot be created, as far as SQLite tells.
const UNCREATED: &str =
    "a file could not be created: no folder, no permission, a full disk, an I/O error or too many open files";

/// An open database file.
pub struct Connection {
    raw: NonNull<ffi::Sqlite3>,
    statements: Vec<Prepared>,
    /// It may create files: that one is missing is then no reason.
    creates: bool,
}

// SAFETY: the library is compiled with SQLITE_THREADSAFE=2: a connection and its statements may be used from any
// thread, but from one at a time. `Connection` owns both and is not `Sync`.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens the file at `path`. Nothing is read yet, so a file that is not a database is not noticed here.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path, mode: Mode) -> Result<Self, Fault> {
        let connection = Self::open_once(path, mode)?;
        // Where the file cannot be opened for writing, SQLite opens it for reading without a word. If that was for a
        // moment, as for lack of descriptors, it is opened again.
        let writes = || std::fs::OpenOptions::new().write(true).open(path).is_ok();
        if !matches!(mode, Mode::ReadOnly) && connection.is_read_only() && writes() {
            return Self::open_once(path, mode);
        }
        Ok(connection)
    }

    fn is_read_only(&self) -> bool {
        // SAFETY: the connection is open, and the name ends with a zero byte.
        unsafe { ffi::sqlite3_db_readonly(self.raw.as_ptr(), c"main".as_ptr()) == 1 }
    }

    fn open_once(path: &Path, mode: Mode) -> Result<Self, Fault> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Fault::Connection("a file name cannot hold a zero byte".to_owned()))?;
        let flags = match mode {
            Mode::ReadOnly => ffi::OPEN_READONLY,
            Mode::Existing => ffi::OPEN_READWRITE,
            Mode::Create => ffi::OPEN_READWRITE | ffi::OPEN_CREATE,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: `name` ends with a zero byte and lives through the call; `raw` is written before it returns.
        let status = unsafe {
            let flags = flags | ffi::OPEN_NOMUTEX | ffi::OPEN_EXRESCODE;
            ffi::sqlite3_open_v2(name.as_ptr(), &raw mut raw, flags, ptr::null())
        };
        // Even a failed open usually leaves a connection, which knows the reason and must be closed.
        let Some(raw) = NonNull::new(raw) else {
            return Err(Fault::Machine("no memory for a SQLite connection".to_owned()));
        };
        let mut connection = Self { raw, statements: Vec::new(), creates: matches!(mode, Mode::Create) };
        if status == ffi::OK {
            connection.creates = !matches!(mode, Mode::ReadOnly);
            return Ok(connection);
        }
        match connection.fault() {
            Fault::Connection(text) => Err(Fault::Connection(format!("{}: {text}", path.display()))),
            other => Err(other),
        }
    }

    /// Chooses the cipher and sets the key, before anything is read. A wrong key is noticed on the first read.
    ///
    /// The key goes through the library's own interface, never through a statement, whose text can end up in an error
    /// or a log. A key without the prefix `raw:` goes through the cipher's key derivation, as the passphrase of an
    /// application does.
    ///
    /// # Errors
    /// If this build does not have the cipher, or the cipher does not accept the key.
    pub fn unlock(&mut self, at_rest: &AtRest) -> Result<(), Fault> {
        let cipher = &at_rest.cipher;
        let key = at_rest.key.expose();
        if cipher == NO_RAW_KEY && key.starts_with(RAW_KEY) {
            return Err(Fault::Refused(format!("{cipher} takes no raw key")));
        }
        let unknown = || Fault::Refused(format!("this build of SQLite has no cipher `{cipher}`"));
        let name = CString::new(cipher.as_str()).map_err(|_| unknown())?;
        let length = c_int::try_from(key.len()).map_err(|_| Fault::Refused("the key is too long".to_owned()))?;
        // SAFETY: names end with a zero byte, `key` holds `length` bytes, and all live through the calls; the library
        // copies what it keeps.
        let status = unsafe {
            let index = ffi::sqlite3mc_cipher_index(name.as_ptr());
            if index <= 0 || ffi::sqlite3mc_config(self.raw.as_ptr(), c"default:cipher".as_ptr(), index) != index {
                return Err(unknown());
            }
            ffi::sqlite3_key_v2(self.raw.as_ptr(), c"main".as_ptr(), key.as_ptr().cast(), length)
        };
        self.check(status)
    }

    /// Prepares `sql` for many executions.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let prepared = self.prepared(sql, ffi::PREPARE_PERSISTENT)?;
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() - 1))
    }

    /// Binds `parameters` to `statement`, which is reset afterwards. SQLite copies the bytes.
    ///
    /// # Errors
    /// When there are too many or too few, or one is too large.
    pub fn bind(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let prepared = &self.statements[statement.0];
        prepared.reset();
        if parameters.len() != prepared.parameters {
            return Err(miscounted(parameters.len(), prepared.parameters));
        }
        for (index, parameter) in (1..).zip(parameters) {
            self.check(prepared.bind(index, *parameter))?;
        }
        Ok(())
    }

    /// Goes to the next row of `statement`; false at the end, where it is reset and no longer holds a lock.
    ///
    /// # Errors
    /// SQLite's error; the statement is reset.
    #[inline]
    pub fn step(&mut self, statement: Statement) -> Result<bool, Fault> {
        self.advance(&self.statements[statement.0])
    }

    /// Number of columns of `statement`; 0 for one that returns no rows.
    #[inline]
    pub fn columns(&self, statement: Statement) -> usize {
        self.statements[statement.0].columns
    }

    /// The bytes in `column` of the current row of `statement`; `None` is SQL's NULL. Numbers are returned as text.
    #[inline]
    pub fn value(&self, statement: Statement, column: usize) -> Option<&[u8]> {
        self.statements[statement.0].value(column)
    }

    /// Number of rows that the last statement inserted, changed or deleted.
    #[inline]
    pub fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        let changes = unsafe { ffi::sqlite3_changes64(self.raw.as_ptr()) };
        changes.try_into().unwrap_or(0)
    }

    /// Runs one statement and collects its rows as text; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let prepared = self.prepared(sql, 0)?;
        let text = |column| prepared.value(column).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let mut rows = Vec::new();
        while self.advance(&prepared)? {
            rows.push((0..prepared.columns).map(text).collect());
        }
        Ok(rows)
    }

    /// Runs all statements of `text`, and discards their rows.
    ///
    /// # Errors
    /// SQLite's error about the first statement that fails.
    pub fn run_all(&mut self, text: &str) -> Result<(), Fault> {
        let text = CString::new(text).map_err(|_| Fault::Server("the statements hold a byte 0".to_owned()))?;
        let mut left = text.as_ptr();
        loop {
            let mut raw = ptr::null_mut();
            // SAFETY: the connection is open; `left` points into `text` or to its end, a byte 0, and so does the tail.
            // Without a length, SQLite does not copy all of the remaining text for each statement.
            let status = unsafe {
                let begin = left;
                ffi::sqlite3_prepare_v3(self.raw.as_ptr(), begin, -1, 0, &raw mut raw, &raw mut left)
            };
            self.check(status)?;
            match NonNull::new(raw) {
                Some(raw) => {
                    let prepared = Prepared::new(raw);
                    while self.advance(&prepared)? {}
                }
                // SAFETY: see above.
                None if unsafe { *left } == 0 => return Ok(()),
                // An empty statement, or a comment.
                None => {}
            }
        }
    }

    /// The first value that `sql` returns, as text; empty if there is none.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn scalar(&mut self, sql: &str) -> Result<String, Fault> {
        let rows = self.run(sql)?;
        Ok(rows.into_iter().flatten().next().flatten().unwrap_or_default())
    }

    /// Runs each statement of `sql`, of which the first takes `parameters`, and passes on its columns and rows. Returns
    /// the rows of the last one, delivered or changed.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn run_each(&mut self, sql: &str, parameters: &[Parameter<'_>], rows: &mut dyn Rows) -> Result<u64, Fault> {
        let (mut rest, mut count) = (sql, 0);
        while let (Some(prepared), length) = self.first_of(rest, 0)? {
            rest = &rest[length..];
            if prepared.parameters > parameters.len() {
                // SQLite takes NULL for those that are not given.
                return Err(miscounted(parameters.len(), prepared.parameters));
            }
            if prepared.parameters > 0 {
                for (index, parameter) in (1..).zip(parameters) {
                    self.check(prepared.bind(index, *parameter))?;
                }
            }
            for column in 0..prepared.columns {
                rows.column(column, prepared.column_name(column));
            }
            count = 0;
            while self.advance(&prepared)? {
                count += 1;
                rows.row(None);
                for column in 0..prepared.columns {
                    rows.field(column, prepared.value(column));
                }
                if let Some(words) = rows.enough() {
                    return Err(Fault::Connection(words));
                }
            }
            if prepared.columns == 0 {
                count = self.changes();
            }
        }
        Ok(count)
    }

    /// Names of the columns of `statement`.
    pub fn column_names(&self, statement: Statement) -> Vec<String> {
        let prepared = &self.statements[statement.0];
        let name = |column| String::from_utf8_lossy(prepared.column_name(column)).into_owned();
        (0..prepared.columns).map(name).collect()
    }

    /// True inside a transaction.
    pub fn in_transaction(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.raw.as_ptr()) == 0 }
    }

    fn prepared(&self, sql: &str, flags: c_uint) -> Result<Prepared, Fault> {
        self.first_of(sql, flags)?.0.ok_or_else(|| Fault::Server("the statement is empty".to_owned()))
    }

    /// The first statement of `sql`, `None` if there is none, and its length in bytes.
    fn first_of(&self, sql: &str, flags: c_uint) -> Result<(Option<Prepared>, usize), Fault> {
        let length = c_int::try_from(sql.len()).map_err(|_| Fault::Server("the statement is too long".to_owned()))?;
        let mut raw = ptr::null_mut();
        let text = sql.as_ptr().cast::<c_char>();
        let mut tail = text;
        // SAFETY: the connection is open; `sql` holds `length` bytes and lives through the call, and the tail points
        // into it, or to its end.
        let status =
            unsafe { ffi::sqlite3_prepare_v3(self.raw.as_ptr(), text, length, flags, &raw mut raw, &raw mut tail) };
        self.check(status)?;
        Ok((NonNull::new(raw).map(Prepared::new), tail.addr().saturating_sub(text.addr()).min(sql.len())))
    }

    #[inline]
    fn advance(&self, prepared: &Prepared) -> Result<bool, Fault> {
        // SAFETY: `prepared` is a statement of this connection; both are open.
        match unsafe { ffi::sqlite3_step(prepared.raw.as_ptr()) } {
            ffi::ROW => Ok(true),
            ffi::DONE => {
                prepared.reset();
                Ok(false)
            }
            _ => {
                let fault = self.fault();
                prepared.reset();
                Err(fault)
            }
        }
    }

    #[inline]
    fn check(&self, status: c_int) -> Result<(), Fault> {
        if status == ffi::OK { Ok(()) } else { Err(self.fault()) }
    }

    /// The last error. Its text quotes at most the statement, which holds no value and no key.
    #[cold]
    fn fault(&self) -> Fault {
        // SAFETY: the connection is open; the message ends with a zero byte and is copied before the next call.
        let (code, system, message) = unsafe {
            let raw = self.raw.as_ptr();
            let message = CStr::from_ptr(ffi::sqlite3_errmsg(raw)).to_string_lossy().into_owned();
            (ffi::sqlite3_extended_errcode(raw), ffi::sqlite3_system_errno(raw), message)
        };
        let text = format!("{message} (SQLite error {code})");
        // The low byte is the primary code: <https://sqlite.org/rescode.html>, section 2.
        match code & 0xff {
            ffi::NOTADB => Fault::Refused(text),
            // SQLite keeps the machine's error number of these two alone.
            // No system call failed in a short read or without memory: the number is an older one.
            ffi::CANTOPEN | ffi::IOERR if system != 0 && ![ffi::SHORT_READ, ffi::NO_MEMORY].contains(&code) => {
                let reason = io::Error::from_raw_os_error(system);
                // If a file cannot be created, SQLite tries to read it, and reports that it is missing.
                let missing = reason.kind() == io::ErrorKind::NotFound && self.creates;
                let instead = if missing { UNCREATED.to_owned() } else { reason.to_string() };
                Fault::Connection(format!("{text}: {instead}"))
            }
            ffi::CANTOPEN | ffi::IOERR => Fault::Connection(text),
            _ => Fault::Server(text),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.statements.clear();
        // SAFETY: the connection is open and not used again; it no longer has statements.
        unsafe { ffi::sqlite3_close_v2(self.raw.as_ptr()) };
    }
}

/// A prepared statement; private, so that it never leaves its connection.
struct Prepared {
    raw: NonNull<ffi::Sqlite3Stmt>,
    columns: usize,
    parameters: usize,
}

impl Prepared {
    fn new(raw: NonNull<ffi::Sqlite3Stmt>) -> Self {
        // SAFETY: `raw` is an open statement.
        let (columns, parameters) =
            unsafe { (ffi::sqlite3_column_count(raw.as_ptr()), ffi::sqlite3_bind_parameter_count(raw.as_ptr())) };
        Self { raw, columns: columns.try_into().unwrap_or(0), parameters: parameters.try_into().unwrap_or(0) }
    }

    #[inline]
    fn bind(&self, index: c_int, parameter: Parameter<'_>) -> c_int {
        let (raw, copy) = (self.raw.as_ptr(), ffi::TRANSIENT);
        // SAFETY: the statement is open; pointer and length are those of a slice that lives through the call, and
        // SQLite copies it. An index that the statement does not have is an error and not undefined behaviour.
        unsafe {
            match parameter {
                Parameter::Text(text) => {
                    let length = text.len() as u64;
                    ffi::sqlite3_bind_text64(raw, index, text.as_ptr().cast(), length, copy, ffi::UTF8)
                }
                Parameter::Bytes(bytes) => {
                    ffi::sqlite3_bind_blob64(raw, index, bytes.as_ptr().cast(), bytes.len() as u64, copy)
                }
                Parameter::Integer(number) => ffi::sqlite3_bind_int64(raw, index, number),
                Parameter::Null => ffi::sqlite3_bind_null(raw, index),
            }
        }
    }

    fn column_name(&self, column: usize) -> &[u8] {
        // SAFETY: the statement is open; a name ends with a zero byte and stays until the statement is finalised or
        // prepared again, which does not happen while it is borrowed. The name is null if there is no memory.
        unsafe {
            let name = ffi::sqlite3_column_name(self.raw.as_ptr(), column as c_int);
            if name.is_null() { &[] } else { CStr::from_ptr(name).to_bytes() }
        }
    }

    #[inline]
    fn value(&self, column: usize) -> Option<&[u8]> {
        let (raw, column) = (self.raw.as_ptr(), column as c_int);
        // SAFETY: the statement is open; a column that it does not have is NULL. The bytes stay until the next step or
        // reset, both of which need the connection exclusively while the slice borrows it. The length is requested
        // after the bytes, as SQLite demands.
        unsafe {
            let bytes = ffi::sqlite3_column_blob(raw, column);
            if !bytes.is_null() {
                let length = ffi::sqlite3_column_bytes(raw, column);
                return Some(slice::from_raw_parts(bytes.cast(), length.try_into().unwrap_or(0)));
            }
            // An empty value has no address either.
            (ffi::sqlite3_column_type(raw, column) != ffi::NULL).then_some(&[])
        }
    }

    #[inline]
    fn reset(&self) {
        // SAFETY: the statement is open. The status repeats an error that `step` has already returned.
        unsafe { ffi::sqlite3_reset(self.raw.as_ptr()) };
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement is open and not used again.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}

fn miscounted(given: usize, wanted: usize) -> Fault {
    Fault::Server(format!("{given} parameters for a statement that takes {wanted}"))
}

/// Version of SQLite and of SQLite3 Multiple Ciphers, as the library reports them.
pub fn version() -> String {
    // SAFETY: both return constant texts that end with a zero byte.
    let (sqlite, ciphers) =
        unsafe { (CStr::from_ptr(ffi::sqlite3_libversion()), CStr::from_ptr(ffi::sqlite3mc_version())) };
    format!("SQLite {}, {}", sqlite.to_string_lossy(), ciphers.to_string_lossy())
}
