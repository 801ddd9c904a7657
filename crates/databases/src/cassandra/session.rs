//! One connection to Cassandra as a [`KeyValueSession`].
//!
//! Records are stored as in YCSB's own binding (`site.ycsb.db.CassandraCQLClient`): one row per record, with the
//! record's key as partition key and its fields as text columns. All statements are prepared together when the session
//! opens.
//!
//! A scan is that of the same binding: `WHERE token(y_id) >= token(?) LIMIT ?`. Rows are in the order of their keys'
//! hashes, so a scan begins with the requested key and continues with others in no particular order. Scans would meet
//! canaries of the evidence by chance, so these are left out of its rows.
//!
//! Cassandra does not say whether a write met a row: each that it acknowledges counts as one.

use std::os::fd::{AsFd, BorrowedFd};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    checks::canary::KEY_PREFIX,
    session::{Connection, Fields, KeyValueSession, Progress, Request, Rows, Table, wait_ready},
    wire::Wire,
};

use super::{
    connection::CqlConnection,
    protocol::{
        Consistency, next_frame, opcode, prepared, put_execution, put_frame, put_query, put_value, rows, server_error,
        take_value, unexpected,
    },
    store::{KEY, field_of, qualified},
};

/// One connection.
pub struct CassandraSession {
    wire: Wire,
    consistency: Consistency,
    statements: Statements,
    asked: InFlight,
}

/// The server's ids of the prepared statements.
#[derive(Default)]
struct Statements {
    insert: Vec<u8>,
    delete: Vec<u8>,
    read: PerField,
    scan: PerField,
    update: PerField,
}

/// A statement about all fields, and one for each of them.
#[derive(Default)]
struct PerField {
    all: Vec<u8>,
    one: Vec<Vec<u8>>,
}

impl PerField {
    fn of(&self, fields: Fields) -> &[u8] {
        match fields {
            Fields::All => &self.all,
            Fields::One(field) => &self.one[field],
        }
    }
}

/// Which request the next answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    Nothing,
    Read(Fields),
    Scan(Fields),
    /// A write, or a statement outside the load.
    Write,
}

impl CassandraSession {
    /// Speaks to `table` of `keyspace` through `connection`, at this level of consistency.
    ///
    /// # Errors
    /// The server's error about a statement; a broken connection.
    pub fn new(
        connection: CqlConnection,
        keyspace: &str,
        table: &Table,
        consistency: Consistency,
        blocking: bool,
    ) -> Result<Self, Fault> {
        let mut wire = connection.into_wire();
        let statements = Statements::prepare(&mut wire, keyspace, table)?;
        wire.set_blocking(blocking)?;
        Ok(Self { wire, consistency, statements, asked: InFlight::Nothing })
    }

    /// Takes one whole message.
    #[inline]
    fn take(&mut self, opcode: u8, message: std::ops::Range<usize>, to: &mut dyn Rows) -> Result<u64, Fault> {
        let message = &self.wire.unread()[message];
        match (opcode, self.asked) {
            (opcode::ERROR, _) => Err(server_error(message)),
            (opcode::RESULT, InFlight::Write) => Ok(1),
            (opcode::RESULT, InFlight::Read(fields)) => deliver(message, fields, false, to),
            (opcode::RESULT, InFlight::Scan(fields)) => deliver(message, fields, true, to),
            (other, _) => Err(unexpected(other)),
        }
    }
}

/// Passes on rows; those of a scan begin with their key.
#[inline]
fn deliver(message: &[u8], fields: Fields, scan: bool, to: &mut dyn Rows) -> Result<u64, Fault> {
    let Some(mut found) = rows(message)? else {
        return Err(Fault::Protocol("a result without rows".to_owned()));
    };
    let mut delivered = 0;
    let columns = found.columns.saturating_sub(usize::from(scan));
    for _ in 0..found.count {
        let key = if scan { take_value(&mut found.values)? } else { None };
        if key.is_some_and(|key| key.starts_with(KEY_PREFIX.as_bytes())) {
            (0..columns).try_for_each(|_| take_value(&mut found.values).map(drop))?;
            continue;
        }
        to.row(key);
        for column in 0..columns {
            let field = match fields {
                Fields::All => column,
                Fields::One(field) => field,
            };
            to.field(field, take_value(&mut found.values)?);
        }
        delivered += 1;
    }
    Ok(delivered)
}

impl Statements {
    /// Prepares every statement: all are sent, then all answers are awaited, in any order.
    fn prepare(wire: &mut Wire, keyspace: &str, table: &Table) -> Result<Self, Fault> {
        let name = qualified(keyspace, table);
        let fields: Vec<String> = (0..table.fields).map(|field| field_of(table, field)).collect();
        let all = fields.join(", ");
        let marks = ", ?".repeat(fields.len());
        let set: Vec<String> = fields.iter().map(|field| format!("{field} = ?")).collect();
        let read = |what: &str| format!("SELECT {what} FROM {name} WHERE {KEY} = ?");
        let scan = |what: &str| format!("SELECT {KEY}, {what} FROM {name} WHERE token({KEY}) >= token(?) LIMIT ?");
        let update = |what: &str| format!("UPDATE {name} SET {what} WHERE {KEY} = ?");
        let mut texts = vec![
            format!("INSERT INTO {name} ({KEY}, {all}) VALUES (?{marks})"),
            format!("DELETE FROM {name} WHERE {KEY} = ?"),
            read(&all),
            scan(&all),
            update(&set.join(", ")),
        ];
        texts.extend(fields.iter().map(|field| read(field)));
        texts.extend(fields.iter().map(|field| scan(field)));
        texts.extend(set.iter().map(|set| update(set)));
        let mut names = prepare_all(wire, &texts)?.into_iter();
        let mut next = || names.next().unwrap_or_default();
        let mut statements = Self { insert: next(), delete: next(), ..Self::default() };
        let Self { read, scan, update, .. } = &mut statements;
        for kind in [&mut *read, &mut *scan, &mut *update] {
            kind.all = next();
        }
        for kind in [read, scan, update] {
            kind.one = (0..fields.len()).map(|_| next()).collect();
        }
        Ok(statements)
    }
}

/// The server's names of `statements`, in their order.
fn prepare_all(wire: &mut Wire, statements: &[String]) -> Result<Vec<Vec<u8>>, Fault> {
    for (number, statement) in statements.iter().enumerate() {
        put_frame(wire.output(), number as i16, opcode::PREPARE, |out| put_value(out, statement.as_bytes()))?;
    }
    wire.flush()?;
    let mut names = vec![Vec::new(); statements.len()];
    let mut missing = statements.len();
    while missing > 0 {
        let Some(frame) = next_frame(wire.unread())? else {
            wire.fill()?;
            continue;
        };
        let message = &wire.unread()[frame.message.clone()];
        match (frame.opcode, names.get_mut(frame.stream as usize)) {
            (opcode::RESULT, Some(name)) => *name = prepared(message)?.to_vec(),
            (opcode::ERROR, _) => return Err(server_error(message)),
            (other, _) => return Err(unexpected(other)),
        }
        wire.consume(frame.message.end);
        missing -= 1;
    }
    Ok(names)
}

impl Connection for CassandraSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wire.as_fd())
    }

    fn wants_write(&self) -> bool {
        self.wire.wants_write()
    }

    fn blocks(&self) -> bool {
        self.wire.blocks()
    }

    fn server_task(&self) -> ServerTask {
        // Pools of threads serve all connections.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.asked = InFlight::Write;
        put_frame(self.wire.output(), 0, opcode::QUERY, |out| put_query(out, statement, self.consistency))?;
        self.wire.flush()?;
        while self.advance(&mut tithe_plugin::session::Discard)? == Progress::Pending {
            wait_ready(self)?;
        }
        Ok(())
    }
}

impl KeyValueSession for CassandraSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        let (statements, consistency) = (&self.statements, self.consistency);
        let out = self.wire.output();
        let mut execute = |statement: &[u8], values: usize, put: &dyn Fn(&mut Vec<u8>)| {
            put_frame(out, 0, opcode::EXECUTE, |out| {
                put_execution(out, statement, consistency, values);
                put(out);
            })
        };
        self.asked = match *request {
            Request::Read { key, fields } => {
                execute(statements.read.of(fields), 1, &|out| put_value(out, key))?;
                InFlight::Read(fields)
            }
            Request::Scan { start, count, fields } => {
                execute(statements.scan.of(fields), 2, &|out| {
                    put_value(out, start);
                    put_value(out, &count.to_be_bytes());
                })?;
                InFlight::Scan(fields)
            }
            Request::Insert { key, values } => {
                execute(&statements.insert, 1 + values.len(), &|out| {
                    put_value(out, key);
                    values.iter().for_each(|(_, value)| put_value(out, value));
                })?;
                InFlight::Write
            }
            Request::Update { key, values } => {
                let fields = if let [(field, _)] = *values { Fields::One(field) } else { Fields::All };
                execute(statements.update.of(fields), 1 + values.len(), &|out| {
                    values.iter().for_each(|(_, value)| put_value(out, value));
                    put_value(out, key);
                })?;
                InFlight::Write
            }
            Request::Delete { key } => {
                execute(&statements.delete, 1, &|out| put_value(out, key))?;
                InFlight::Write
            }
        };
        self.wire.flush()
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            if let Some(frame) = next_frame(self.wire.unread())? {
                let taken = self.take(frame.opcode, frame.message.clone(), rows);
                self.asked = InFlight::Nothing;
                self.wire.consume(frame.message.end);
                return taken.map(Progress::Done);
            }
            if !self.wire.fill()? {
                return Ok(Progress::Pending);
            }
        }
    }

    fn scans_in_key_order(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tithe_plugin::checks::canary::Collected;

    use super::*;

    /// The message of rows whose values are text.
    fn message(columns: u32, rows: &[&[&[u8]]]) -> Vec<u8> {
        let mut message = [2u32, 4, columns, rows.len() as u32].map(u32::to_be_bytes).concat();
        rows.iter().flat_map(|row| *row).for_each(|value| put_value(&mut message, value));
        message
    }

    #[test]
    fn rows_are_numbered_by_field() {
        let mut seen = Collected::default();
        assert_eq!(deliver(&message(2, &[&[b"a", b"b"]]), Fields::All, false, &mut seen), Ok(1));
        assert_eq!(deliver(&message(1, &[&[b"c"]]), Fields::One(1), false, &mut seen), Ok(1));
        assert_eq!(deliver(&message(2, &[]), Fields::All, false, &mut seen), Ok(0));
        let some = |value: &[u8]| Some(value.to_vec());
        assert_eq!(seen.rows, [vec![some(b"a"), some(b"b")], vec![None, some(b"c")]]);
    }

    #[test]
    fn a_scan_passes_over_canaries() {
        let mut seen = Collected::default();
        let found = message(2, &[&[b"user1", b"a"], &[b"!canaryX", b"b"], &[b"user2", b"c"]]);
        assert_eq!(deliver(&found, Fields::One(0), true, &mut seen), Ok(2));
        assert_eq!(seen.rows, [vec![Some(b"a".to_vec())], vec![Some(b"c".to_vec())]]);
    }

    #[test]
    fn a_write_is_no_answer_to_a_read() {
        assert!(deliver(&1u32.to_be_bytes(), Fields::All, false, &mut Collected::default()).is_err());
    }

    proptest! {
        #[test]
        fn foreign_rows_are_an_error_or_rows(columns in 0u32..4, count in 0u32..20, rest in proptest::collection::vec(0u8..6, 0..200), scan in any::<bool>()) {
            let message = [&[2u32, 4, columns, count].map(u32::to_be_bytes).concat()[..], &rest].concat();
            if let Ok(delivered) = deliver(&message, Fields::All, scan, &mut Collected::default()) {
                prop_assert!(delivered <= u64::from(count));
            }
        }
    }
}
