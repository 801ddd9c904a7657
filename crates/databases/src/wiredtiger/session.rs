//! Records in MongoDB's layout: a table of documents by record id, and an `_id` index from key to record id.
//!
//! Every request is one transaction on a snapshot. A read delivers its fields from the engine's own memory. A write
//! that conflicts with another transaction is repeated until it succeeds, as in MongoDB; nothing else is repeated.

use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{self, Fields, KeyValueSession, Progress, Request, Rows, Table};

use super::{
    cursor::{CursorId, Key, OperationError, Session},
    document, index,
};

/// The table of documents of `table`.
pub fn records_uri(table: &Table) -> String {
    format!("table:collection-{}", table.name)
}

/// The file of the documents of `table` in the data folder.
pub fn records_file(table: &Table) -> String {
    format!("collection-{}.wt", table.name)
}

/// The `_id` index of `table`.
pub fn index_uri(table: &Table) -> String {
    format!("table:index-{}", table.name)
}

/// The free record ids: one counter per table, shared by all its sessions.
pub type RecordIds = Arc<AtomicI64>;

/// The first free record id of `table`, by its last record.
///
/// # Errors
/// The engine's error.
pub fn first_free_record_id(session: &mut Session, table: &Table) -> Result<i64, Fault> {
    let records = session.cursor(&records_uri(table), "")?;
    // MongoDB's record ids begin at 1.
    Ok(if session.previous(records)? { session.key_number(records)? + 1 } else { 1 })
}

/// A session on one table.
pub struct TableSession {
    session: Session,
    records: CursorId,
    index: CursorId,
    names: Vec<String>,
    free: RecordIds,
    answer: Answer,
    index_key: Vec<u8>,
    scan_key: Vec<u8>,
    document: Vec<u8>,
}

/// What a submitted request must still deliver.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// Nothing was submitted.
    None,
    /// Only the number of written records, or that there was none to read.
    Done(u64),
    /// The document at the records cursor, within a transaction.
    Document(Fields),
    /// Documents from the index cursor on, within a transaction.
    Scan { count: u32, fields: Fields },
}

impl TableSession {
    /// A session on `table`, whose free record ids are `free`.
    ///
    /// # Errors
    /// The engine's error: no such table.
    pub fn new(mut session: Session, table: &Table, free: RecordIds) -> Result<Self, Fault> {
        let records = session.cursor(&records_uri(table), "")?;
        let index = session.cursor(&index_uri(table), "overwrite=false")?;
        Ok(Self {
            session,
            records,
            index,
            names: (0..table.fields).map(|number| table.field(number)).collect(),
            free,
            answer: Answer::None,
            index_key: Vec::new(),
            scan_key: Vec::new(),
            document: Vec::new(),
        })
    }

    fn read(&mut self, key: &[u8], fields: Fields) -> Result<Answer, Fault> {
        self.session.begin()?;
        let found = self.locate(key).and_then(|record| match record {
            Some(record) => Ok(self.session.search(self.records, Key::Number(record))?.then_some(())),
            None => Ok(None),
        });
        match found {
            Ok(Some(())) => Ok(Answer::Document(fields)),
            Ok(None) => self.session.roll_back().map(|()| Answer::Done(0)),
            Err(error) => self.abandon(error.into()),
        }
    }

    fn scan(&mut self, start: &[u8], count: u32, fields: Fields) -> Result<Answer, Fault> {
        index::write_key(&mut self.index_key, start);
        self.session.begin()?;
        let placed = self.session.search_near(self.index, Key::Bytes(&self.index_key)).and_then(|side| match side {
            Some(std::cmp::Ordering::Less) => self.session.next(self.index),
            side => Ok(side.is_some()),
        });
        match placed {
            Ok(true) if count > 0 => Ok(Answer::Scan { count, fields }),
            Ok(_) => self.session.roll_back().map(|()| Answer::Done(0)),
            Err(error) => self.abandon(error.into()),
        }
    }

    /// Runs `work` in a transaction, and again if it conflicts with another one. Its changes are kept if it returns
    /// true, and rolled back if it returns false.
    fn write(&mut self, mut work: impl FnMut(&mut Self) -> Result<bool, OperationError>) -> Result<Answer, Fault> {
        loop {
            self.session.begin()?;
            match work(self) {
                Ok(true) => match self.session.commit() {
                    Ok(()) => return Ok(Answer::Done(1)),
                    Err(OperationError::Conflict) => {}
                    Err(OperationError::Fault(fault)) => return Err(fault),
                },
                Ok(false) => return self.session.roll_back().map(|()| Answer::Done(0)),
                Err(OperationError::Conflict) => self.session.roll_back()?,
                Err(OperationError::Fault(fault)) => return self.abandon(fault),
            }
        }
    }

    fn insert(&mut self, key: &[u8], values: &[(usize, &[u8])]) -> Result<bool, OperationError> {
        let values = values.iter().map(|(_, value)| *value);
        document::write(&mut self.document, key, &self.names, values)?;
        index::write_key(&mut self.index_key, key);
        let record = self.free.fetch_add(1, Relaxed);
        let (bytes, length) = index::encode_record_id(record);
        self.session.insert(self.records, Key::Number(record), &self.document)?;
        if self.session.insert(self.index, Key::Bytes(&self.index_key), &bytes[..length])? {
            return Ok(true);
        }
        Err(Fault::Server("there is a document with this _id already".to_owned()).into())
    }

    fn update(&mut self, key: &[u8], values: &[(usize, &[u8])]) -> Result<bool, OperationError> {
        let Some(record) = self.locate(key)? else { return Ok(false) };
        if !self.session.search(self.records, Key::Number(record))? {
            return Ok(false);
        }
        let old = self.session.value(self.records)?;
        let mut merged = Vec::with_capacity(self.names.len());
        let mut fields = document::values(old).ok_or_else(broken)?;
        while let Some(value) = fields.next_value().ok_or_else(broken)? {
            let new = values.iter().find(|(field, _)| *field == merged.len());
            merged.push(new.map_or(value, |(_, new)| *new));
        }
        document::write(&mut self.document, key, &self.names, merged)?;
        self.session.update(self.records, Key::Number(record), &self.document)?;
        Ok(true)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, OperationError> {
        let Some(record) = self.locate(key)? else { return Ok(false) };
        self.session.remove(self.index, Key::Bytes(&self.index_key))?;
        self.session.remove(self.records, Key::Number(record))?;
        Ok(true)
    }

    /// The record id of `key`, whose index key stays in the buffer.
    fn locate(&mut self, key: &[u8]) -> Result<Option<i64>, OperationError> {
        index::write_key(&mut self.index_key, key);
        if !self.session.search(self.index, Key::Bytes(&self.index_key))? {
            return Ok(None);
        }
        let record = index::decode_record_id(self.session.value(self.index)?).ok_or_else(broken)?;
        Ok(Some(record))
    }

    fn deliver_scan(&mut self, count: u32, fields: Fields, rows: &mut dyn Rows) -> Result<u64, Fault> {
        let mut delivered = 0;
        loop {
            index::read_key(&mut self.scan_key, self.session.key(self.index)?).ok_or_else(broken)?;
            let record = index::decode_record_id(self.session.value(self.index)?).ok_or_else(broken)?;
            if !self.session.search(self.records, Key::Number(record))? {
                return Err(broken());
            }
            rows.row(Some(&self.scan_key));
            deliver(self.session.value(self.records)?, fields, rows)?;
            delivered += 1;
            if delivered == u64::from(count) || !self.session.next(self.index)? {
                return Ok(delivered);
            }
        }
    }

    /// Rolls back and returns `fault`, which is reported in place of any error of the rollback.
    fn abandon<T>(&mut self, fault: Fault) -> Result<T, Fault> {
        let _ = self.session.roll_back();
        Err(fault)
    }
}

/// Hands over the fields of `document`.
fn deliver(document: &[u8], wanted: Fields, rows: &mut dyn Rows) -> Result<(), Fault> {
    let mut fields = document::values(document).ok_or_else(broken)?;
    for field in 0.. {
        let Some(value) = fields.next_value().ok_or_else(broken)? else { return Ok(()) };
        match wanted {
            Fields::One(one) if one != field => {}
            Fields::One(_) => {
                rows.field(field, Some(value));
                return Ok(());
            }
            Fields::All => rows.field(field, Some(value)),
        }
    }
    Ok(())
}

/// Index and documents do not match, or are invalid: a possible result of a changed page.
#[cold]
fn broken() -> Fault {
    Fault::Wrong("a document or an index entry is broken".to_owned())
}

impl session::Connection for TableSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Scans both files, so that their content is in the engine's cache, which all sessions share.
    fn warm(&mut self) -> Result<(), Fault> {
        for cursor in [self.index, self.records] {
            self.session.begin()?;
            loop {
                match self.session.next(cursor) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return self.abandon(error.into()),
                }
            }
            self.session.roll_back()?;
        }
        Ok(())
    }
}

impl KeyValueSession for TableSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.answer = match *request {
            Request::Read { key, fields } => self.read(key, fields),
            Request::Scan { start, count, fields } => self.scan(start, count, fields),
            Request::Insert { key, values } => self.write(|session| session.insert(key, values)),
            Request::Update { key, values } => self.write(|session| session.update(key, values)),
            Request::Delete { key } => self.write(|session| session.delete(key)),
        }?;
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let delivered = match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::None => return Err(Fault::Protocol("nothing was submitted".to_owned())),
            Answer::Done(count) => return Ok(Progress::Done(count)),
            Answer::Document(fields) => {
                rows.row(None);
                self.session.value(self.records).and_then(|document| deliver(document, fields, rows)).map(|()| 1)
            }
            Answer::Scan { count, fields } => self.deliver_scan(count, fields, rows),
        };
        match delivered {
            Ok(count) => self.session.roll_back().map(|()| Progress::Done(count)),
            Err(fault) => self.abandon(fault),
        }
    }
}
