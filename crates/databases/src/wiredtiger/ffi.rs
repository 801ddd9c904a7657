//! The structures and functions of WiredTiger 3.2 that Tithe uses, as declared in `wiredtiger.h` and
//! `wiredtiger_ext.h`.
//!
//! WiredTiger's interface is structures of function pointers, whose order changes between releases: these are right for
//! 3.2 alone, and [`super::library`] loads no other release. A method that is not called is an [`Unused`] pointer;
//! methods after the last one that is called are left out. Nothing here is safe by itself.

use std::ffi::{c_char, c_int, c_void};

/// A function pointer that Tithe does not call.
pub type Unused = *const c_void;

/// Success.
pub const OK: c_int = 0;
/// A conflict with another transaction: roll back and try again.
pub const ROLLBACK: c_int = -31800;
/// The key exists already.
pub const DUPLICATE_KEY: c_int = -31801;
/// An error that has no number of its own.
pub const ERROR: c_int = -31802;
/// No such record, or the end.
pub const NOTFOUND: c_int = -31803;
/// The engine has stopped.
pub const PANIC: c_int = -31804;

/// `WT_CONNECTION`: an open database.
#[repr(C)]
pub struct Connection {
    _async: [Unused; 2],
    pub close: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    _debug_info: Unused,
    _reconfigure: Unused,
    _get_home: Unused,
    _configure_method: Unused,
    _is_new: Unused,
    pub open_session:
        unsafe extern "C" fn(*mut Connection, *mut EventHandler, *const c_char, *mut *mut Session) -> c_int,
    _timestamps: [Unused; 3],
    _load_extension: Unused,
    _add_data_source: Unused,
    _add_collator: Unused,
    _add_compressor: Unused,
    pub add_encryptor: unsafe extern "C" fn(*mut Connection, *const c_char, *mut Encryptor, *const c_char) -> c_int,
}

/// `WT_SESSION`: used by one thread at a time.
#[repr(C)]
pub struct Session {
    _connection: *mut Connection,
    _app_private: *mut c_void,
    pub close: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    _reconfigure: Unused,
    _strerror: Unused,
    pub open_cursor:
        unsafe extern "C" fn(*mut Session, *const c_char, *mut Cursor, *const c_char, *mut *mut Cursor) -> c_int,
    _alter: Unused,
    pub create: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    _import: Unused,
    _compact: Unused,
    pub drop: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    _join: Unused,
    pub log_flush: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    _log_printf: Unused,
    _rebalance: Unused,
    _rename: Unused,
    _reset: Unused,
    _salvage: Unused,
    _truncate: Unused,
    _upgrade: Unused,
    _verify: Unused,
    pub begin_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub commit_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    _prepare_transaction: Unused,
    pub rollback_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    _timestamp_transaction: Unused,
    _query_timestamp: Unused,
    pub checkpoint: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
}

/// `WT_CURSOR`: a position in a table. The arguments of the variadic functions depend on the table's formats.
#[repr(C)]
pub struct Cursor {
    _session: *mut Session,
    _uri: *const c_char,
    _key_format: *const c_char,
    _value_format: *const c_char,
    pub get_key: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub get_value: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub set_key: unsafe extern "C" fn(*mut Cursor, ...),
    pub set_value: unsafe extern "C" fn(*mut Cursor, ...),
    _compare: Unused,
    _equals: Unused,
    pub next: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub prev: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub reset: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub search: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub search_near: unsafe extern "C" fn(*mut Cursor, *mut c_int) -> c_int,
    pub insert: unsafe extern "C" fn(*mut Cursor) -> c_int,
    _modify: Unused,
    pub update: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub remove: unsafe extern "C" fn(*mut Cursor) -> c_int,
    _reserve: Unused,
    pub close: unsafe extern "C" fn(*mut Cursor) -> c_int,
}

/// `WT_ITEM`: borrowed bytes.
#[repr(C)]
pub struct Item {
    pub data: *const c_void,
    pub size: usize,
    _mem: *mut c_void,
    _memsize: usize,
    _flags: u32,
}

impl Item {
    /// The bytes of `slice`, for as long as it lives.
    pub fn of(slice: &[u8]) -> Self {
        Self { data: slice.as_ptr().cast(), size: slice.len(), ..Self::empty() }
    }

    /// No bytes.
    pub fn empty() -> Self {
        Self { data: std::ptr::null(), size: 0, _mem: std::ptr::null_mut(), _memsize: 0, _flags: 0 }
    }
}

/// `WT_EVENT_HANDLER`: receives the engine's messages. A null function leaves the engine's own.
#[repr(C)]
pub struct EventHandler {
    pub error: unsafe extern "C" fn(*mut EventHandler, *mut Session, c_int, *const c_char) -> c_int,
    pub message: unsafe extern "C" fn(*mut EventHandler, *mut Session, *const c_char) -> c_int,
    pub progress: Unused,
    pub close: Unused,
}

/// Encrypts or decrypts: encryptor, session, source and its length, destination and its length, length of the result.
pub type Transform =
    unsafe extern "C" fn(*mut Encryptor, *mut Session, *mut u8, usize, *mut u8, usize, *mut usize) -> c_int;

/// `WT_ENCRYPTOR`: encrypts pages and journal records.
#[repr(C)]
pub struct Encryptor {
    pub encrypt: Transform,
    pub decrypt: Transform,
    pub sizing: unsafe extern "C" fn(*mut Encryptor, *mut Session, *mut usize) -> c_int,
    /// For keys by key identifier; none is used.
    pub customize: Unused,
    pub terminate: unsafe extern "C" fn(*mut Encryptor, *mut Session) -> c_int,
}

/// `wiredtiger_open`.
pub type Open = unsafe extern "C" fn(*const c_char, *mut EventHandler, *const c_char, *mut *mut Connection) -> c_int;
/// `wiredtiger_strerror`.
pub type StrError = unsafe extern "C" fn(c_int) -> *const c_char;
/// `wiredtiger_version`.
pub type Version = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
/// The entry point of an extension; the second argument is its configuration.
pub type ExtensionInit = unsafe extern "C" fn(*mut Connection, *mut c_void) -> c_int;
