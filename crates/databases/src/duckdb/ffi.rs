//! The part of DuckDB's C interface that Tithe calls, as declared in `duckdb.h` of 1.5.
//!
//! Nothing here is safe by itself; [`super::engine`] is the only module that calls it.

use std::ffi::{c_char, c_int, c_void};

/// A pointer to one of DuckDB's objects, or null.
pub type Handle = *mut c_void;

/// `DuckDBSuccess`.
pub const OK: c_int = 0;

/// `DUCKDB_RESULT_TYPE_CHANGED_ROWS`.
pub const CHANGED_ROWS: c_int = 1;
/// `DUCKDB_RESULT_TYPE_QUERY_RESULT`.
pub const QUERY_RESULT: c_int = 3;

/// `duckdb_result`: owned by its creator until `destroy_result`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Answer {
    _deprecated: [u64; 3],
    _columns: *mut c_void,
    _error: *mut c_char,
    _internal: *mut c_void,
}

impl Answer {
    /// What DuckDB writes an answer into.
    pub const fn empty() -> Self {
        let none = std::ptr::null_mut();
        Self { _deprecated: [0; 3], _columns: none, _error: std::ptr::null_mut(), _internal: none }
    }
}

/// `duckdb_string_t`: 12 bytes are stored in place, more behind the pointer.
#[repr(C)]
pub struct Text {
    pub length: u32,
    pub inlined: [u8; 4],
    pub pointer: *const u8,
}

/// Most bytes that are stored in place.
pub const INLINED_MAX: u32 = 12;

/// `DUCKDB_TYPE_…` of the values that are read.
pub mod kind {
    use super::c_int;

    pub const BOOLEAN: c_int = 1;
    pub const TINYINT: c_int = 2;
    pub const SMALLINT: c_int = 3;
    pub const INTEGER: c_int = 4;
    pub const BIGINT: c_int = 5;
    pub const UTINYINT: c_int = 6;
    pub const USMALLINT: c_int = 7;
    pub const UINTEGER: c_int = 8;
    pub const UBIGINT: c_int = 9;
    pub const FLOAT: c_int = 10;
    pub const DOUBLE: c_int = 11;
    pub const HUGEINT: c_int = 16;
    pub const VARCHAR: c_int = 17;
    pub const BLOB: c_int = 18;
    pub const UHUGEINT: c_int = 32;
}

/// The functions, by their names without `duckdb_`.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Api {
            /// Looks up every function in `object`.
            ///
            /// # Errors
            /// The first function that is missing.
            ///
            /// # Safety
            /// `object` is DuckDB 1.5, and stays loaded as long as the functions are called.
            pub unsafe fn of(object: &libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        let name = concat!("duckdb_", stringify!($name), "\0");
                        // SAFETY: the types are those of the functions in duckdb.h.
                        let found = unsafe {
                            object.get::<unsafe extern "C" fn($($argument),*) $(-> $answer)?>(name.as_bytes())
                        };
                        *found.map_err(|error| error.to_string())?
                    },)*
                })
            }
        }
    };
}

functions! {
    library_version: fn() -> *const c_char;
    create_config: fn(*mut Handle) -> c_int;
    set_config: fn(Handle, *const c_char, *const c_char) -> c_int;
    destroy_config: fn(*mut Handle);
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> c_int;
    free: fn(*mut c_void);
    close: fn(*mut Handle);
    connect: fn(Handle, *mut Handle) -> c_int;
    disconnect: fn(*mut Handle);
    query: fn(Handle, *const c_char, *mut Answer) -> c_int;
    destroy_result: fn(*mut Answer);
    result_error: fn(*mut Answer) -> *const c_char;
    result_return_type: fn(Answer) -> c_int;
    rows_changed: fn(*mut Answer) -> u64;
    column_count: fn(*mut Answer) -> u64;
    column_name: fn(*mut Answer, u64) -> *const c_char;
    column_type: fn(*mut Answer, u64) -> c_int;
    fetch_chunk: fn(Answer) -> Handle;
    data_chunk_get_size: fn(Handle) -> u64;
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    destroy_data_chunk: fn(*mut Handle);
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    prepare: fn(Handle, *const c_char, *mut Handle) -> c_int;
    prepare_error: fn(Handle) -> *const c_char;
    destroy_prepare: fn(*mut Handle);
    nparams: fn(Handle) -> u64;
    bind_varchar_length: fn(Handle, u64, *const c_char, u64) -> c_int;
    bind_blob: fn(Handle, u64, *const c_void, u64) -> c_int;
    bind_int64: fn(Handle, u64, i64) -> c_int;
    bind_null: fn(Handle, u64) -> c_int;
    execute_prepared: fn(Handle, *mut Answer) -> c_int;
    appender_create_ext: fn(Handle, *const c_char, *const c_char, *const c_char, *mut Handle) -> c_int;
    append_varchar_length: fn(Handle, *const c_char, u64) -> c_int;
    append_blob: fn(Handle, *const c_void, u64) -> c_int;
    append_int64: fn(Handle, i64) -> c_int;
    append_null: fn(Handle) -> c_int;
    appender_end_row: fn(Handle) -> c_int;
    appender_close: fn(Handle) -> c_int;
    appender_error: fn(Handle) -> *const c_char;
    appender_destroy: fn(*mut Handle) -> c_int;
    prepared_statement_column_count: fn(Handle) -> u64;
    prepared_statement_column_name: fn(Handle, u64) -> *const c_char;
}
