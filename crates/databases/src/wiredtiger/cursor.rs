//! A session of the engine with its cursors, behind a safe interface.
//!
//! Cursors belong to their session and are named by number, so that neither can outlive the other and both move between
//! threads as one. How they are used is decided elsewhere.

use std::{
    cmp::Ordering,
    ffi::{CStr, CString, c_char, c_int},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use tithe_machine::fault::Fault;

use super::{engine::Engine, ffi};

/// A cursor of one session.
#[derive(Debug, Clone, Copy)]
pub struct CursorId(usize);

/// A key in the form of its table.
#[derive(Debug, Clone, Copy)]
pub enum Key<'a> {
    /// A record number: format `q`.
    Number(i64),
    /// Bytes: format `u`.
    Bytes(&'a [u8]),
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum OperationError {
    /// Another transaction was faster: roll back and try again.
    Conflict,
    /// Something else.
    Fault(Fault),
}

impl From<Fault> for OperationError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<OperationError> for Fault {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Conflict => Self::Server("a conflict with another transaction".to_owned()),
            OperationError::Fault(fault) => fault,
        }
    }
}

/// A session; closed with its cursors when dropped.
pub struct Session {
    raw: NonNull<ffi::Session>,
    cursors: Vec<NonNull<ffi::Cursor>>,
    engine: Arc<Engine>,
}

// SAFETY: a session and its cursors may be used from any thread, but from one at a time. `Session` owns them and is not
// `Sync`.
unsafe impl Send for Session {}

impl Engine {
    /// A new session.
    ///
    /// # Errors
    /// When the engine has no more.
    pub fn session(self: &Arc<Self>) -> Result<Session, Fault> {
        Ok(Session { raw: self.raw_session()?, cursors: Vec::new(), engine: self.clone() })
    }
}

impl Session {
    /// Opens a cursor.
    ///
    /// # Errors
    /// The engine's error: no such table.
    pub fn cursor(&mut self, uri: &str, configuration: &str) -> Result<CursorId, Fault> {
        let (uri, configuration) = (text(uri)?, text(configuration)?);
        let mut cursor = ptr::null_mut();
        let raw = self.raw.as_ptr();
        // SAFETY: the session is open; texts end with a zero byte; the cursor is written before it returns.
        let status = unsafe {
            ((*raw).open_cursor)(raw, uri.as_ptr(), ptr::null_mut(), configuration.as_ptr(), &raw mut cursor)
        };
        self.check(status)?;
        let cursor = NonNull::new(cursor).ok_or_else(|| Fault::Machine("the engine gives no cursor".to_owned()))?;
        self.cursors.push(cursor);
        Ok(CursorId(self.cursors.len() - 1))
    }

    /// Creates the table `uri`.
    ///
    /// # Errors
    /// The engine's error.
    pub fn create(&mut self, uri: &str, configuration: &str) -> Result<(), Fault> {
        let (uri, configuration) = (text(uri)?, text(configuration)?);
        // SAFETY: the session is open; texts end with a zero byte.
        let status = unsafe {
            let create = (*self.raw.as_ptr()).create;
            create(self.raw.as_ptr(), uri.as_ptr(), configuration.as_ptr())
        };
        self.check(status)
    }

    /// Drops the table `uri`, which no cursor may be open on.
    ///
    /// # Errors
    /// The engine's error.
    pub fn drop_table(&mut self, uri: &str) -> Result<(), Fault> {
        let uri = text(uri)?;
        // SAFETY: the session is open; the text ends with a zero byte.
        let status = unsafe { ((*self.raw.as_ptr()).drop)(self.raw.as_ptr(), uri.as_ptr(), ptr::null()) };
        self.check(status)
    }

    /// Writes everything that was committed to the tables.
    ///
    /// # Errors
    /// The engine's error.
    pub fn checkpoint(&mut self) -> Result<(), Fault> {
        // SAFETY: the session is open; no configuration is the usual checkpoint.
        let status = unsafe { ((*self.raw.as_ptr()).checkpoint)(self.raw.as_ptr(), c"force".as_ptr()) };
        self.check(status)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// The engine's error.
    #[inline]
    pub fn begin(&mut self) -> Result<(), Fault> {
        // SAFETY: the session is open.
        let status = unsafe { ((*self.raw.as_ptr()).begin_transaction)(self.raw.as_ptr(), ptr::null()) };
        self.check(status)
    }

    /// Commits it. The cursors are reset.
    ///
    /// # Errors
    /// A conflict or the engine's error; the transaction is then rolled back.
    #[inline]
    pub fn commit(&mut self) -> Result<(), OperationError> {
        // SAFETY: the session is open.
        let status = unsafe { ((*self.raw.as_ptr()).commit_transaction)(self.raw.as_ptr(), ptr::null()) };
        self.attempt(status)
    }

    /// Rolls it back. The cursors are reset.
    ///
    /// # Errors
    /// The engine's error.
    #[inline]
    pub fn roll_back(&mut self) -> Result<(), Fault> {
        // SAFETY: the session is open.
        let status = unsafe { ((*self.raw.as_ptr()).rollback_transaction)(self.raw.as_ptr(), ptr::null()) };
        self.check(status)
    }

    /// Goes to the record `key`; false when there is none.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    #[inline]
    pub fn search(&mut self, cursor: CursorId, key: Key<'_>) -> Result<bool, OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: the cursor is open; the key lives until the search is done.
        let status = with_key(raw, key, || unsafe { ((*raw).search)(raw) });
        self.found(status)
    }

    /// Goes to the record `key`, or to the record before or after its position, and returns on which side of `key` that
    /// is; `None` if the table is empty.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    #[inline]
    pub fn search_near(&mut self, cursor: CursorId, key: Key<'_>) -> Result<Option<Ordering>, OperationError> {
        let raw = self.raw_cursor(cursor);
        let mut side = 0;
        // SAFETY: as `search`; the side is written before it returns.
        let status = with_key(raw, key, || unsafe { ((*raw).search_near)(raw, &raw mut side) });
        Ok(self.found(status)?.then_some(side.cmp(&0)))
    }

    /// Goes to the next record, or to the first; false at the end.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    #[inline]
    pub fn next(&mut self, cursor: CursorId) -> Result<bool, OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: the cursor is open.
        let status = unsafe { ((*raw).next)(raw) };
        self.found(status)
    }

    /// Goes to the record before, or to the last; false at the beginning.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    pub fn previous(&mut self, cursor: CursorId) -> Result<bool, OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: the cursor is open.
        let status = unsafe { ((*raw).prev)(raw) };
        self.found(status)
    }

    /// Adds a record; false if the cursor does not overwrite and the key exists.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    #[inline]
    pub fn insert(&mut self, cursor: CursorId, key: Key<'_>, value: &[u8]) -> Result<bool, OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: the cursor is open; key and value live until the insertion is done, which copies them.
        let status = with_key(raw, key, || with_value(raw, value, || unsafe { ((*raw).insert)(raw) }));
        if status == ffi::DUPLICATE_KEY {
            return Ok(false);
        }
        self.attempt(status).map(|()| true)
    }

    /// Replaces the value of the record `key`.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    #[inline]
    pub fn update(&mut self, cursor: CursorId, key: Key<'_>, value: &[u8]) -> Result<(), OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: as `insert`.
        let status = with_key(raw, key, || with_value(raw, value, || unsafe { ((*raw).update)(raw) }));
        self.attempt(status)
    }

    /// Removes the record `key`.
    ///
    /// # Errors
    /// A conflict or the engine's error.
    pub fn remove(&mut self, cursor: CursorId, key: Key<'_>) -> Result<(), OperationError> {
        let raw = self.raw_cursor(cursor);
        // SAFETY: as `search`.
        let status = with_key(raw, key, || unsafe { ((*raw).remove)(raw) });
        self.attempt(status)
    }

    /// The value at the cursor, in the engine's own memory: it stays until the cursor moves.
    ///
    /// # Errors
    /// The engine's error if the cursor has no position.
    #[inline]
    pub fn value(&self, cursor: CursorId) -> Result<&[u8], Fault> {
        let raw = self.raw_cursor(cursor);
        let mut item = ffi::Item::empty();
        // SAFETY: the cursor is open on a table whose values have format `u`; the item is written before it returns.
        // Moving the cursor needs the session exclusively while the slice borrows it.
        unsafe {
            self.check(((*raw).get_value)(raw, &raw mut item))?;
            Ok(bytes_of(&item))
        }
    }

    /// The key at the cursor, as [`Session::value`], for a table whose keys are bytes.
    ///
    /// # Errors
    /// As [`Session::value`].
    #[inline]
    pub fn key(&self, cursor: CursorId) -> Result<&[u8], Fault> {
        let raw = self.raw_cursor(cursor);
        let mut item = ffi::Item::empty();
        // SAFETY: as `value`, for keys of format `u`.
        unsafe {
            self.check(((*raw).get_key)(raw, &raw mut item))?;
            Ok(bytes_of(&item))
        }
    }

    /// The key at the cursor, for a table whose keys are numbers.
    ///
    /// # Errors
    /// As [`Session::value`].
    pub fn key_number(&self, cursor: CursorId) -> Result<i64, Fault> {
        let raw = self.raw_cursor(cursor);
        let mut number = 0i64;
        // SAFETY: as `value`, for keys of format `q`.
        self.check(unsafe { ((*raw).get_key)(raw, &raw mut number) })?;
        Ok(number)
    }

    /// The key at a cursor whose keys are text (format `S`), such as a backup cursor.
    ///
    /// # Errors
    /// As [`Session::value`].
    pub fn key_text(&self, cursor: CursorId) -> Result<String, Fault> {
        let raw = self.raw_cursor(cursor);
        let mut key: *const c_char = ptr::null();
        // SAFETY: as `value`, for keys of format `S`: text that ends with a zero byte, copied before the cursor moves.
        unsafe {
            self.check(((*raw).get_key)(raw, &raw mut key))?;
            Ok(CStr::from_ptr(key).to_string_lossy().into_owned())
        }
    }

    /// Name and value at a cursor of statistics (format `SSq`).
    ///
    /// # Errors
    /// As [`Session::value`].
    pub fn statistic(&self, cursor: CursorId) -> Result<(String, u64), Fault> {
        let raw = self.raw_cursor(cursor);
        let (mut name, mut printed): (*const c_char, *const c_char) = (ptr::null(), ptr::null());
        let mut value = 0i64;
        // SAFETY: as `key_text`, for values of format `SSq`.
        unsafe {
            self.check(((*raw).get_value)(raw, &raw mut name, &raw mut printed, &raw mut value))?;
            Ok((CStr::from_ptr(name).to_string_lossy().into_owned(), value.try_into().unwrap_or(0)))
        }
    }

    fn raw_cursor(&self, cursor: CursorId) -> *mut ffi::Cursor {
        self.cursors[cursor.0].as_ptr()
    }

    #[inline]
    fn found(&self, status: c_int) -> Result<bool, OperationError> {
        if status == ffi::NOTFOUND { Ok(false) } else { self.attempt(status).map(|()| true) }
    }

    #[inline]
    fn attempt(&self, status: c_int) -> Result<(), OperationError> {
        match status {
            ffi::OK => Ok(()),
            ffi::ROLLBACK => Err(OperationError::Conflict),
            other => Err(OperationError::Fault(self.engine.fault(other))),
        }
    }

    #[inline]
    fn check(&self, status: c_int) -> Result<(), Fault> {
        if status == ffi::OK { Ok(()) } else { Err(self.engine.fault(status)) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the session is open and not used again; it closes its cursors and rolls back uncommitted work.
        unsafe { ((*self.raw.as_ptr()).close)(self.raw.as_ptr(), ptr::null()) };
    }
}

/// Sets the key of `cursor` and calls `work`, which uses it: the engine only keeps its address.
fn with_key<T>(cursor: *mut ffi::Cursor, key: Key<'_>, work: impl FnOnce() -> T) -> T {
    // SAFETY: the cursor is open on a table with keys of this kind; the item lives until `work` is done.
    unsafe {
        match key {
            Key::Number(number) => {
                ((*cursor).set_key)(cursor, number);
                work()
            }
            Key::Bytes(bytes) => {
                let item = ffi::Item::of(bytes);
                ((*cursor).set_key)(cursor, &raw const item);
                work()
            }
        }
    }
}

/// Sets the value of `cursor` and calls `work`, as [`with_key`].
fn with_value<T>(cursor: *mut ffi::Cursor, value: &[u8], work: impl FnOnce() -> T) -> T {
    let item = ffi::Item::of(value);
    // SAFETY: as `with_key`.
    unsafe { ((*cursor).set_value)(cursor, &raw const item) };
    work()
}

/// The bytes of `item`.
///
/// # Safety
/// They are there for as long as the result is used.
unsafe fn bytes_of<'a>(item: &ffi::Item) -> &'a [u8] {
    if item.size == 0 {
        return &[];
    }
    // SAFETY: by the condition of this function.
    unsafe { slice::from_raw_parts(item.data.cast(), item.size) }
}

fn text(text: &str) -> Result<CString, Fault> {
    CString::new(text).map_err(|_| Fault::Refused("a name cannot hold a zero byte".to_owned()))
}
