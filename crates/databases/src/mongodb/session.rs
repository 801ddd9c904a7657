//! One connection to MongoDB as a [`KeyValueSession`].
//!
//! Records are stored as in YCSB's own binding (`site.ycsb.db.MongoDbClient`): one document per record, its key in
//! `_id`, its fields as binary values of subtype 0, which encrypted values are too. An update sets the fields that it
//! changes; a scan is an ordered range of `_id`. The driver returns complete documents, so all work is done in
//! `submit`.

use std::os::fd::BorrowedFd;

use mongodb::{
    Collection,
    bson::{Binary, Bson, Document, RawBsonRef, RawDocumentBuf, doc, spec::BinarySubtype},
};
use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{Connection, Fields, KeyValueSession, Progress, Request, Rows, Table};

use super::{link::Link, target::DATABASE};

/// One connection.
pub struct MongoSession {
    records: Collection<RawDocumentBuf>,
    link: Link,
    field_prefix: String,
    fields: Vec<String>,
    answer: Answer,
}

/// An answer that was received and not yet taken.
enum Answer {
    Nothing,
    Changed(u64),
    /// Documents; with their keys if a scan requested them.
    Records(Vec<RawDocumentBuf>, Fields, bool),
}

impl MongoSession {
    /// Speaks to `table` through `link`.
    pub fn new(link: Link, table: &Table) -> Self {
        Self {
            records: link.collection(DATABASE, &table.name),
            link,
            fields: (0..table.fields).map(|field| table.field(field)).collect(),
            field_prefix: table.field_prefix.clone(),
            answer: Answer::Nothing,
        }
    }

    fn read(&self, key: &[u8], fields: Fields) -> Result<Answer, Fault> {
        let mut find = self.records.find_one(doc! { "_id": text(key)? });
        if let Some(projection) = self.projection(fields) {
            find = find.projection(projection);
        }
        let found = self.link.wait(async { find.await })?;
        Ok(Answer::Records(found.into_iter().collect(), fields, false))
    }

    fn scan(&self, start: &[u8], count: u32, fields: Fields) -> Result<Answer, Fault> {
        let range = doc! { "_id": { "$gte": text(start)? } };
        let mut find = self.records.find(range).sort(doc! { "_id": 1 }).limit(i64::from(count));
        if let Some(projection) = self.projection(fields) {
            find = find.projection(projection);
        }
        let found = self.link.wait(async {
            let mut cursor = find.await?;
            let mut found = Vec::new();
            while cursor.advance().await? {
                found.push(cursor.current().to_owned());
            }
            Ok(found)
        })?;
        Ok(Answer::Records(found, fields, true))
    }

    fn update(&self, key: &[u8], values: &[(usize, &[u8])]) -> Result<Answer, Fault> {
        let mut changed = Document::new();
        for (field, value) in values {
            changed.insert(self.fields[*field].clone(), binary(value));
        }
        let update = self.records.update_one(doc! { "_id": text(key)? }, doc! { "$set": changed });
        // Setting a value that is already there is a match without a modification; the record exists in both cases.
        Ok(Answer::Changed(self.link.wait(async { update.await })?.matched_count))
    }

    fn insert(&self, key: &[u8], values: &[(usize, &[u8])]) -> Result<Answer, Fault> {
        let mut record = doc! { "_id": text(key)? };
        for (field, value) in values {
            record.insert(self.fields[*field].clone(), binary(value));
        }
        let insert = self.records.clone_with_type::<Document>();
        self.link.wait(async { insert.insert_one(record).await })?;
        Ok(Answer::Changed(1))
    }

    fn delete(&self, key: &[u8]) -> Result<Answer, Fault> {
        let delete = self.records.delete_one(doc! { "_id": text(key)? });
        Ok(Answer::Changed(self.link.wait(async { delete.await })?.deleted_count))
    }

    fn projection(&self, fields: Fields) -> Option<Document> {
        match fields {
            Fields::All => None,
            Fields::One(field) => Some(doc! { self.fields[field].as_str(): 1 }),
        }
    }

    /// Hands one document over.
    fn deliver(&self, record: &RawDocumentBuf, fields: Fields, keyed: bool, rows: &mut dyn Rows) -> Result<(), Fault> {
        let key = record.get_str("_id").map_err(|error| Fault::Wrong(format!("a record's key: {error}")))?;
        rows.row(keyed.then_some(key.as_bytes()));
        for element in record {
            let (name, value) = element.map_err(|error| Fault::Protocol(error.to_string()))?;
            let name = name.as_str();
            if name == "_id" {
                continue;
            }
            let number = self.number_of(name)?;
            let RawBsonRef::Binary(value) = value else {
                return Err(Fault::Wrong(format!("field `{name}` of a record is not binary")));
            };
            if fields == Fields::All || fields == Fields::One(number) {
                rows.field(number, Some(value.bytes));
            }
        }
        Ok(())
    }

    /// The number of the field called `name`.
    fn number_of(&self, name: &str) -> Result<usize, Fault> {
        let number = name.strip_prefix(&self.field_prefix).and_then(|digits| digits.parse::<usize>().ok());
        // Through the list of names, so that `field01` is not read as `field1`.
        number.filter(|number| self.fields.get(*number).is_some_and(|known| known == name)).ok_or_else(|| {
            Fault::Wrong(format!("a record has a field `{}`, which the table does not", name.escape_debug()))
        })
    }
}

/// A key as MongoDB stores it.
fn text(key: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(key).map_err(|_| Fault::Protocol("a record's key is text in MongoDB".to_owned()))
}

fn binary(value: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: value.to_vec() })
}

impl Connection for MongoSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        // The server has a thread for each connection and does not say which.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        // The driver does not report it.
        (0, 0)
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        let command: Document = serde_json::from_str(statement)
            .map_err(|error| Fault::Protocol(format!("a statement of MongoDB is a command in JSON: {error}")))?;
        self.link.run(DATABASE, command).map(drop)
    }
}

impl KeyValueSession for MongoSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.answer = match *request {
            Request::Read { key, fields } => self.read(key, fields),
            Request::Scan { start, count, fields } => self.scan(start, count, fields),
            Request::Update { key, values } => self.update(key, values),
            Request::Insert { key, values } => self.insert(key, values),
            Request::Delete { key } => self.delete(key),
        }?;
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        match std::mem::replace(&mut self.answer, Answer::Nothing) {
            Answer::Nothing => Err(Fault::Protocol("nothing was submitted".to_owned())),
            Answer::Changed(count) => Ok(Progress::Done(count)),
            Answer::Records(records, fields, keyed) => {
                for record in &records {
                    self.deliver(record, fields, keyed, rows)?;
                }
                Ok(Progress::Done(records.len() as u64))
            }
        }
    }
}
