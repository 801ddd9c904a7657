//! DuckDB behind a safe interface: the library, an instance of the engine, its connections and their statements.
//!
//! Only this module calls the C interface. Which files are attached, and which statements are run, is not decided here.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    io::Write as _,
    path::{Path, PathBuf},
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

use tithe_machine::fault::Fault;
use tithe_plugin::session::{Parameter, Rows, Statement};

use super::ffi::{self, Answer, Api, Handle, kind};

/// A loaded DuckDB. It stays loaded until Tithe ends.
pub struct Library {
    /// Its version: `v1.5.5`.
    pub version: String,
    /// The shared object.
    pub path: PathBuf,
    api: Api,
    _object: libloading::Library,
}

impl Library {
    /// Loads the shared object at `path`.
    ///
    /// # Errors
    /// The loader's words, or the first function that it lacks.
    pub fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: a library of this name is DuckDB; loading it runs the constructors of its own constants alone.
        let object = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
        // SAFETY: the functions of DuckDB's stable interface have had these types since 1.2; they are stored with the
        // object, which is never unloaded.
        let api = unsafe { Api::of(&object) }?;
        // SAFETY: it returns constant text.
        let version = unsafe { CStr::from_ptr((api.library_version)()) }.to_string_lossy().into_owned();
        Ok(Self { version, path: path.to_owned(), api, _object: object })
    }
}

/// An engine without any file: files are attached by statements.
pub struct Instance {
    library: &'static Library,
    raw: NonNull<std::ffi::c_void>,
}

// SAFETY: an instance may be used from any thread and from several at a time ("Concurrency" in DuckDB's documentation).
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// Starts an engine with `options`.
    ///
    /// # Errors
    /// [`Fault::Refused`] with DuckDB's words about an option.
    pub fn start(library: &'static Library, options: &[(&str, String)]) -> Result<Arc<Self>, Fault> {
        let api = &library.api;
        let mut config = ptr::null_mut();
        // SAFETY: it is written before it returns, and destroyed below.
        unsafe { (api.create_config)(&raw mut config) };
        let opened = options.iter().try_for_each(|(name, value)| {
            let (option, text) = (terminated(name)?, terminated(value)?);
            // SAFETY: the configuration is alive, and the texts end with a zero byte and live through the call.
            let status = unsafe { (api.set_config)(config, option.as_ptr(), text.as_ptr()) };
            let refused = || Fault::Refused(format!("DuckDB takes no option {name} = {value}"));
            if status == ffi::OK { Ok(()) } else { Err(refused()) }
        });
        let opened = opened.and_then(|()| {
            let (mut raw, mut words) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: no path is an instance in memory; both pointers are written before it returns, and the words,
            // which are DuckDB's, are freed by its own function.
            unsafe {
                (api.open_ext)(ptr::null(), &raw mut raw, config, &raw mut words);
                let said = text_of(words);
                (api.free)(words.cast());
                NonNull::new(raw).ok_or_else(|| Fault::Refused(first_paragraph(&said)))
            }
        });
        // SAFETY: it is alive, and not used again.
        unsafe { (api.destroy_config)(&raw mut config) };
        opened.map(|raw| Arc::new(Self { library, raw }))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When there is no memory for one.
    pub fn connect(self: &Arc<Self>) -> Result<Connection, Fault> {
        let mut raw = ptr::null_mut();
        // SAFETY: the instance is open; the connection is written before it returns.
        unsafe { (self.library.api.connect)(self.raw.as_ptr(), &raw mut raw) };
        let raw = NonNull::new(raw).ok_or_else(|| Fault::Machine("DuckDB gives no connection".to_owned()))?;
        Ok(Connection { instance: self.clone(), raw, statements: Vec::new(), text: Vec::new() })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: it is open and not used again; connections hold the instance, so there are none.
        unsafe { (self.library.api.close)(&raw mut raw) };
    }
}

/// A connection with its prepared statements, which are named by number and cannot outlive it.
pub struct Connection {
    instance: Arc<Instance>,
    raw: NonNull<std::ffi::c_void>,
    statements: Vec<Prepared>,
    /// A number as text.
    text: Vec<u8>,
}

// SAFETY: a connection and its statements may be used from any thread, but from one at a time; `Connection` owns both
// and is not `Sync`.
unsafe impl Send for Connection {}

/// A prepared statement; private, so that it never leaves its connection.
struct Prepared {
    raw: Handle,
    parameters: u64,
}

impl Connection {
    fn api(&self) -> &'static Api {
        &self.instance.library.api
    }

    /// Prepares `sql` for many executions.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let prepared = self.prepared(sql)?;
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() - 1))
    }

    fn prepared(&self, sql: &str) -> Result<Prepared, Fault> {
        let (api, text) = (self.api(), terminated(sql)?);
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open, and the text ends with a zero byte and lives through the call; a statement is
        // written even if it fails, and holds the error until it is destroyed.
        unsafe {
            if (api.prepare)(self.raw.as_ptr(), text.as_ptr(), &raw mut raw) == ffi::OK {
                return Ok(Prepared { raw, parameters: (api.nparams)(raw) });
            }
            let words = text_of((api.prepare_error)(raw));
            (api.destroy_prepare)(&raw mut raw);
            Err(fault(&words))
        }
    }

    /// Binds `parameters` to `statement`. DuckDB copies the bytes.
    ///
    /// # Errors
    /// When there are too many or too few, or a text is not UTF-8.
    pub fn bind(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let (api, Prepared { raw, parameters: wanted }) = (self.api(), &self.statements[statement.0]);
        if parameters.len() as u64 != *wanted {
            let given = parameters.len();
            return Err(Fault::Server(format!("{given} parameters for a statement that takes {wanted}")));
        }
        for (index, parameter) in (1..).zip(parameters) {
            // SAFETY: the statement is alive, and has a parameter of this number; pointer and length are those of a
            // slice that lives through the call.
            let status = unsafe {
                match parameter {
                    Parameter::Text(text) => {
                        (api.bind_varchar_length)(*raw, index, text.as_ptr().cast(), text.len() as u64)
                    }
                    Parameter::Bytes(bytes) => (api.bind_blob)(*raw, index, bytes.as_ptr().cast(), bytes.len() as u64),
                    Parameter::Integer(number) => (api.bind_int64)(*raw, index, *number),
                    Parameter::Null => (api.bind_null)(*raw, index),
                }
            };
            if status != ffi::OK {
                return Err(Fault::Server(format!("DuckDB takes no such parameter {index}")));
            }
        }
        Ok(())
    }

    /// Executes `statement` and passes on its rows; how many were delivered or changed.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn execute(&mut self, statement: Statement, rows: &mut dyn Rows) -> Result<u64, Fault> {
        let (api, raw) = (self.api(), self.statements[statement.0].raw);
        let mut owned = Owned { api, answer: Answer::empty() };
        // SAFETY: the statement is alive, and the answer is written before it returns, also when it fails.
        let status = unsafe { (api.execute_prepared)(raw, &raw mut owned.answer) };
        owned.check(status)?;
        self.deliver(&mut owned, rows)
    }

    /// Names of the columns of `statement`; none if it returns no rows but how many it changed.
    pub fn column_names(&self, statement: Statement) -> Vec<String> {
        let (api, raw) = (self.api(), self.statements[statement.0].raw);
        // SAFETY: the statement is alive; a name is DuckDB's own memory, and freed by its function once it is copied.
        let names: Vec<String> = unsafe {
            let name = |column| {
                let name = (api.prepared_statement_column_name)(raw, column);
                let text = text_of(name);
                (api.free)(name.cast_mut().cast());
                text
            };
            (0..(api.prepared_statement_column_count)(raw)).map(name).collect()
        };
        if names == ["Count"] { Vec::new() } else { names }
    }

    /// Appends rows of so many `columns` to `table` of the attached `catalog`, all or none; how many.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn append(
        &mut self,
        catalog: &str,
        table: &str,
        columns: usize,
        values: &[Parameter<'_>],
    ) -> Result<u64, Fault> {
        let (api, catalog, table) = (self.api(), terminated(catalog)?, terminated(table)?);
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open, and the texts end with a zero byte and live through the call; the appender is
        // written before it returns, and holds the error if there is one.
        let status = unsafe {
            (api.appender_create_ext)(self.raw.as_ptr(), catalog.as_ptr(), ptr::null(), table.as_ptr(), &raw mut raw)
        };
        let append = |parameter: &Parameter<'_>| {
            // SAFETY: the appender is alive; pointer and length are those of a slice that lives through the call.
            unsafe {
                match parameter {
                    Parameter::Text(text) => (api.append_varchar_length)(raw, text.as_ptr().cast(), text.len() as u64),
                    Parameter::Bytes(bytes) => (api.append_blob)(raw, bytes.as_ptr().cast(), bytes.len() as u64),
                    Parameter::Integer(number) => (api.append_int64)(raw, *number),
                    Parameter::Null => (api.append_null)(raw),
                }
            }
        };
        let all_appended = status == ffi::OK
            && values.chunks(columns.max(1)).all(|row| {
                // SAFETY: the appender is alive.
                row.iter().all(|value| append(value) == ffi::OK) && unsafe { (api.appender_end_row)(raw) } == ffi::OK
            });
        // SAFETY: the appender is alive, or null, which these functions accept; it is not used again. Its error's text
        // is copied. Half a row is dropped with it.
        unsafe {
            let whole = all_appended && (api.appender_close)(raw) == ffi::OK;
            let words = if whole { String::new() } else { text_of((api.appender_error)(raw)) };
            (api.appender_destroy)(&raw mut raw);
            if whole { Ok((values.len() / columns.max(1)) as u64) } else { Err(fault(&words)) }
        }
    }

    /// Runs `sql`, one statement or several, and passes on the rows of the last one; how many were delivered or
    /// changed.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn query(&mut self, sql: &str, rows: &mut dyn Rows) -> Result<u64, Fault> {
        let (api, text) = (self.api(), terminated(sql)?);
        let mut owned = Owned { api, answer: Answer::empty() };
        // SAFETY: the connection is open, the text ends with a zero byte, and the answer is written before it returns.
        let status = unsafe { (api.query)(self.raw.as_ptr(), text.as_ptr(), &raw mut owned.answer) };
        owned.check(status)?;
        for column in 0..owned.columns() {
            // SAFETY: the answer is alive and has this column; its name is copied by the receiver.
            let name = unsafe { CStr::from_ptr((api.column_name)(&raw mut owned.answer, column as u64)) };
            rows.column(column, name.to_bytes());
        }
        self.deliver(&mut owned, rows)
    }

    /// Runs `sql` and collects its rows as text; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let mut texts = Texts(Vec::new());
        self.query(sql, &mut texts)?;
        Ok(texts.0)
    }

    /// The first value that `sql` returns, as text; empty if there is none.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn scalar(&mut self, sql: &str) -> Result<String, Fault> {
        Ok(self.run(sql)?.into_iter().flatten().next().flatten().unwrap_or_default())
    }

    fn deliver(&mut self, owned: &mut Owned, rows: &mut dyn Rows) -> Result<u64, Fault> {
        let api = owned.api;
        // SAFETY: the answer is alive; the function reads it.
        let returns = unsafe { (api.result_return_type)(owned.answer) };
        if returns != ffi::QUERY_RESULT {
            // SAFETY: as above.
            let changed = unsafe { (api.rows_changed)(&raw mut owned.answer) };
            return Ok(if returns == ffi::CHANGED_ROWS { changed } else { 0 });
        }
        // SAFETY: as above; the answer has these columns.
        let kinds: Vec<c_int> = (0..owned.columns())
            .map(|column| unsafe { (api.column_type)(&raw mut owned.answer, column as u64) })
            .collect();
        let mut count = 0;
        while let Some(chunk) = owned.chunk() {
            let vectors: Vec<Vector> =
                kinds.iter().zip(0..).map(|(kind, column)| chunk.vector(column, *kind)).collect();
            for row in 0..chunk.rows() {
                count += 1;
                rows.row(None);
                for (column, vector) in vectors.iter().enumerate() {
                    rows.field(column, vector.value(row, &mut self.text)?);
                }
                if let Some(words) = rows.enough() {
                    return Err(Fault::Connection(words));
                }
            }
        }
        Ok(count)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (api, mut raw) = (self.api(), self.raw.as_ptr());
        // SAFETY: statements and connection are alive and not used again; the statements go first.
        unsafe {
            for mut statement in self.statements.drain(..) {
                (api.destroy_prepare)(&raw mut statement.raw);
            }
            (api.disconnect)(&raw mut raw);
        }
    }
}

/// An answer, destroyed when dropped.
struct Owned {
    api: &'static Api,
    answer: Answer,
}

impl Owned {
    fn check(&mut self, status: c_int) -> Result<(), Fault> {
        if status == ffi::OK {
            return Ok(());
        }
        // SAFETY: the answer is alive and holds the error's text, which is copied.
        Err(fault(&unsafe { text_of((self.api.result_error)(&raw mut self.answer)) }))
    }

    fn columns(&mut self) -> usize {
        // SAFETY: the answer is alive.
        unsafe { (self.api.column_count)(&raw mut self.answer) as usize }
    }

    /// The next rows; `None` at the end.
    fn chunk(&mut self) -> Option<Chunk> {
        // SAFETY: the answer is alive. It is passed by value, and stays this structure's own.
        let raw = unsafe { (self.api.fetch_chunk)(self.answer) };
        (!raw.is_null()).then_some(Chunk { api: self.api, raw })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the answer is alive, or empty, which the function accepts; it is not used again.
        unsafe { (self.api.destroy_result)(&raw mut self.answer) };
    }
}

/// Some rows of an answer, destroyed when dropped.
struct Chunk {
    api: &'static Api,
    raw: Handle,
}

impl Chunk {
    fn rows(&self) -> usize {
        // SAFETY: the chunk is alive.
        unsafe { (self.api.data_chunk_get_size)(self.raw) as usize }
    }

    /// The values of `column`, which are of this kind.
    fn vector(&self, column: u64, kind: c_int) -> Vector<'_> {
        // SAFETY: the chunk is alive and has this column; the memory stays until it is destroyed.
        unsafe {
            let vector = (self.api.data_chunk_get_vector)(self.raw, column);
            let (data, valid) = ((self.api.vector_get_data)(vector), (self.api.vector_get_validity)(vector));
            Vector { kind, data: data.cast_const().cast(), valid, _chunk: self }
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the chunk is alive and not used again.
        unsafe { (self.api.destroy_data_chunk)(&raw mut self.raw) };
    }
}

/// One column of a chunk.
struct Vector<'a> {
    kind: c_int,
    data: *const u8,
    /// A bit for each row; null if no value is NULL.
    valid: *const u64,
    _chunk: &'a Chunk,
}

impl Vector<'_> {
    /// The bytes of the value in `row`, numbers as `text`; `None` is SQL's NULL.
    #[inline]
    fn value<'a>(&'a self, row: usize, text: &'a mut Vec<u8>) -> Result<Option<&'a [u8]>, Fault> {
        // SAFETY: the mask has a bit for each row of the chunk.
        if !self.valid.is_null() && unsafe { *self.valid.add(row / 64) } & (1 << (row % 64)) == 0 {
            return Ok(None);
        }
        macro_rules! number {
            ($type:ty) => {{
                text.clear();
                // SAFETY: the vector holds a value of this type for each row of the chunk. Writing to memory cannot
                // fail.
                let _ = write!(text, "{}", unsafe { self.data.cast::<$type>().add(row).read_unaligned() });
                &text[..]
            }};
        }
        Ok(Some(match self.kind {
            kind::VARCHAR | kind::BLOB => {
                // SAFETY: as above; the bytes are in the value itself if they are few, else behind its pointer, and
                // stay until the chunk is destroyed.
                unsafe {
                    let value = self.data.cast::<ffi::Text>().add(row);
                    let length = (*value).length;
                    let bytes = if length <= ffi::INLINED_MAX {
                        (&raw const (*value).inlined).cast::<u8>()
                    } else {
                        (*value).pointer
                    };
                    slice::from_raw_parts(bytes, length as usize)
                }
            }
            kind::BOOLEAN => number!(bool),
            kind::TINYINT => number!(i8),
            kind::SMALLINT => number!(i16),
            kind::INTEGER => number!(i32),
            kind::BIGINT => number!(i64),
            kind::UTINYINT => number!(u8),
            kind::USMALLINT => number!(u16),
            kind::UINTEGER => number!(u32),
            kind::UBIGINT => number!(u64),
            kind::FLOAT => number!(f32),
            kind::DOUBLE => number!(f64),
            // Low half first, as the processors that DuckDB is built for store numbers of 128 bits.
            kind::HUGEINT => number!(i128),
            kind::UHUGEINT => number!(u128),
            other => {
                return Err(Fault::Server(format!(
                    "values of DuckDB's type {other} are not read: cast them to VARCHAR"
                )));
            }
        }))
    }
}

/// Rows as text.
struct Texts(Vec<Vec<Option<String>>>);

impl Rows for Texts {
    fn row(&mut self, _key: Option<&[u8]>) {
        self.0.push(Vec::new());
    }

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        if let Some(row) = self.0.last_mut() {
            row.push(value.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
        }
    }
}

fn terminated(text: &str) -> Result<CString, Fault> {
    CString::new(text).map_err(|_| Fault::Server("a text for DuckDB holds a byte 0".to_owned()))
}

/// A copy of `text`, empty if it is null.
///
/// # Safety
/// It is null, or ends with a zero byte.
unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// DuckDB's error. What follows its first paragraph quotes the statement, which may hold an encryption key; an error
/// about a key that exists quotes it, and it is a value.
#[cold]
fn fault(words: &str) -> Fault {
    let words = first_paragraph(words);
    match (words.to_lowercase().contains("duplicate key"), words.find('"'), words.rfind('"')) {
        (true, Some(first), Some(last)) => Fault::Server(format!("{}…{}", &words[..first], &words[last + 1..])),
        _ => Fault::Server(words),
    }
}

fn first_paragraph(words: &str) -> String {
    words.split("\n\n").next().unwrap_or_default().trim().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_neither_statement_nor_value() {
        let text = |words: &str| fault(words).to_string();
        assert_eq!(
            text("Parser Error: syntax error\n\nLINE 1: ATTACH … KEY 'abc'"),
            "server: Parser Error: syntax error"
        );
        let taken = "Constraint Error: Duplicate key \"k: user1\" violates primary key constraint.";
        assert_eq!(text(taken), "server: Constraint Error: Duplicate key … violates primary key constraint.");
    }
}
