//! Client-side encryption of values, for every database.
//!
//! A session is wrapped, so that values are encrypted before the driver sees them and decrypted when they come back:
//! AES-256-GCM, SM4-128-GCM or NaCl's secretbox, with a nonce that never repeats, so equal values look different. The
//! database stores `nonce (12) ‖ ciphertext ‖ tag (16)`, with secretbox `nonce (24) ‖ tag (16) ‖ ciphertext`. For
//! records by key, which this file wraps, the additional data of each value are its field number and its record's key:
//! a value that was moved to another record or field does not decrypt. Secretbox has no additional data. SQL sessions
//! are wrapped in [`sql`], where some columns must be encrypted deterministically.
//!
//! If equal values must look equal, fields are encrypted in SIV mode: the database stores `synthetic vector (16) ‖
//! ciphertext`, bound to the field and not to the record.
//!
//! Not covered: keys of records are not encrypted (the server must find them), and lengths are not hidden. A value
//! replaced by an older one of the same record and field still decrypts.

mod cipher;
pub mod own;
mod own_session;
mod rewriting;
mod secretbox;
pub mod sql;

pub use self::cipher::{DETERMINISTIC_OVERHEAD, OVERHEAD};
use tithe_machine::{fault::Fault, launch::Server};

pub use self::sql::Chosen;
use self::{
    cipher::{FieldAad, FieldCipher},
    own_session::OwnEncrypted,
};
use crate::{
    database::{Connect, Database, sql_of},
    session::{Connection, KeyValueSession, Progress, Request, Rows, Session, SessionWrapper, SqlSession, Table},
    setup::{Columns, Setup},
    sql::SqlTable,
};

/// Opens a session as the measured clients do: the database's own, wrapped if `setup.columns` is set.
///
/// # Errors
/// As [`Database::connect`]; refuses a SQL session, for which there is [`connect_sql`].
pub fn connect(database: &dyn Database, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
    let session = database.connect(server, setup, how)?;
    match (session, &setup.columns) {
        (session, None) => Ok(session),
        (Session::KeyValue(session), Some(columns)) => Ok(Session::KeyValue(wrap(session, columns, &how.table)?)),
        (Session::Sql(_), Some(_)) => Err(Fault::Refused("this workload's values are records by key".to_owned())),
    }
}

/// Opens a session on `tables` as the measured clients do: the database's own, wrapped if `setup.columns` is set.
///
/// # Errors
/// As [`Database::connect`] and [`Chosen::new`].
pub fn connect_sql(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    how: &Connect,
    tables: &'static [SqlTable],
) -> Result<Box<dyn SqlSession>, Fault> {
    let session = sql_of(database)?.connect(server, setup, how)?;
    match &setup.columns {
        None => Ok(session),
        Some(columns) if !columns.own.is_empty() => Ok(Box::new(OwnEncrypted::new(session, columns)?)),
        Some(columns) => Ok(Box::new(sql::Encrypted::new(session, columns, Chosen::new(setup, tables)?)?)),
    }
}

/// Wraps `session` so that the values of the selected fields are encrypted before they reach it, and decrypted when
/// they come back. A stored value is at most [`OVERHEAD`] bytes longer than its plaintext (deterministic:
/// [`DETERMINISTIC_OVERHEAD`]), and binary.
/// A value that does not decrypt makes the answer [`Fault::Wrong`].
///
/// # Errors
/// [`Fault::Refused`] if the key does not have 32 bytes.
pub fn wrap(
    session: Box<dyn KeyValueSession>,
    columns: &Columns,
    table: &Table,
) -> Result<Box<dyn KeyValueSession>, Fault> {
    let mut encrypted = vec![false; table.fields];
    columns.selection().of(table).into_iter().for_each(|field| encrypted[field] = true);
    Ok(Box::new(Encrypted {
        inner: session,
        cipher: FieldCipher::new(columns)?,
        encrypted,
        aad: FieldAad::default(),
        sealed: Vec::new(),
        values: Vec::new(),
        opened: Vec::new(),
        wrong: None,
    }))
}

/// Makes an update or an insert of a key and its values.
type Write = for<'a> fn(&'a [u8], &'a [(usize, &'a [u8])]) -> Request<'a>;

/// A session whose field values are encrypted. All buffers are reused for the next operation.
struct Encrypted {
    inner: Box<dyn KeyValueSession>,
    cipher: FieldCipher,
    /// By field: is it encrypted?
    encrypted: Vec<bool>,
    aad: FieldAad,
    /// The stored values of the current request, one after the other.
    sealed: Vec<u8>,
    /// Empty between requests; keeps its capacity.
    values: Vec<(usize, &'static [u8])>,
    /// The value that is being decrypted.
    opened: Vec<u8>,
    /// The first value of the current answer that did not decrypt.
    wrong: Option<String>,
}

impl Encrypted {
    /// Encrypts the selected fields of `values`, and passes the stored form to the inner session.
    fn write(&mut self, key: &[u8], values: &[(usize, &[u8])], request: Write) -> Result<(), Fault> {
        self.sealed.clear();
        self.aad.set_key(key);
        for &(field, value) in values.iter().filter(|(field, _)| self.encrypted[*field]) {
            self.cipher.seal(&mut self.aad, field, value, &mut self.sealed);
        }
        let mut stored: Vec<(usize, &[u8])> = std::mem::take(&mut self.values);
        let mut rest = self.sealed.as_slice();
        for &(field, value) in values {
            if self.encrypted[field] {
                let (mine, others) = rest.split_at(value.len() + self.cipher.overhead());
                stored.push((field, mine));
                rest = others;
            } else {
                stored.push((field, value));
            }
        }
        let outcome = self.inner.submit(&request(key, &stored));
        self.values = recycle(stored);
        outcome
    }
}

impl KeyValueSession for Encrypted {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.wrong = None;
        match *request {
            Request::Update { key, values } => self.write(key, values, |key, values| Request::Update { key, values }),
            Request::Insert { key, values } => self.write(key, values, |key, values| Request::Insert { key, values }),
            Request::Read { key, .. } => {
                self.aad.set_key(key);
                self.inner.submit(request)
            }
            // The key of each row comes with the row.
            Request::Scan { .. } | Request::Delete { .. } => self.inner.submit(request),
        }
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let mut decrypt = Decrypt {
            rows,
            cipher: &mut self.cipher,
            encrypted: &self.encrypted,
            aad: &mut self.aad,
            opened: &mut self.opened,
            wrong: &mut self.wrong,
        };
        let progress = self.inner.advance(&mut decrypt)?;
        // The rest of the answer must be read before the session can continue, so the diagnostic waits for its end.
        match (progress, self.wrong.take()) {
            (Progress::Done(_), Some(wrong)) => Err(Fault::Wrong(wrong)),
            (progress, wrong) => {
                self.wrong = wrong;
                Ok(progress)
            }
        }
    }

    fn begin_bulk(&mut self) -> Result<(), Fault> {
        self.inner.begin_bulk()
    }

    fn end_bulk(&mut self) -> Result<(), Fault> {
        self.inner.end_bulk()
    }

    fn scans_in_key_order(&self) -> bool {
        self.inner.scans_in_key_order()
    }
}

impl SessionWrapper for Encrypted {
    fn inner(&self) -> &dyn Connection {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn Connection {
        self.inner.as_mut()
    }
}

/// Decrypts rows on their way to the client.
struct Decrypt<'a> {
    rows: &'a mut dyn Rows,
    cipher: &'a mut FieldCipher,
    encrypted: &'a [bool],
    aad: &'a mut FieldAad,
    opened: &'a mut Vec<u8>,
    wrong: &'a mut Option<String>,
}

impl Rows for Decrypt<'_> {
    fn row(&mut self, key: Option<&[u8]>) {
        if let Some(key) = key {
            self.aad.set_key(key);
        }
        self.rows.row(key);
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        let (Some(stored), true) = (value, self.encrypted.get(field) == Some(&true)) else {
            return self.rows.field(field, value);
        };
        match self.cipher.open(self.aad, field, stored, self.opened) {
            Some(plaintext) => self.rows.field(field, Some(plaintext)),
            None if self.wrong.is_none() => {
                let key = String::from_utf8_lossy(self.aad.key());
                *self.wrong = Some(format!("field {field} of key {key} does not decrypt"));
            }
            None => {}
        }
    }
}

/// Empties `values` and changes its lifetime, so that the next request reuses its memory: the standard library collects
/// a mapped vector in place.
fn recycle(mut values: Vec<(usize, &[u8])>) -> Vec<(usize, &'static [u8])> {
    values.clear();
    values.into_iter().map(|(field, _)| (field, &[][..])).collect()
}

#[cfg(test)]
mod tests;
