//! One connection to etcd as a [`KeyValueSession`].
//!
//! Each field of a record has its own key. A read requests the range of one record, a scan that of several. Writes are
//! transactions like those of Kubernetes: an update runs if its first key exists, an insert if it does not.

use std::os::fd::BorrowedFd;

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::session::{
    Connection, Discard, Fields as Asked, KeyValueSession, Progress, Request, Rows, Table, wait_ready,
};

use super::{
    connection::EtcdConnection,
    http2::Http2,
    keys::{FIELD, after, of_field, prefix_of},
    messages::{DELETE_RANGE, Fields, RANGE, TXN, Value, path_of, put_bytes, put_message, put_number},
};

/// Operations of one transaction (`max-txn-ops`), and bytes of them that one window of HTTP/2 holds.
const MOST_OPERATIONS: usize = 128;
const MOST_BYTES: usize = 48 << 10;

/// One connection.
pub struct EtcdSession {
    http: Http2,
    /// Before the key of each record.
    prefix: Vec<u8>,
    fields: usize,
    asked: InFlight,
    /// Inserts that wait for the end of their group, as operations of one transaction.
    group: Option<Group>,
    /// The key of the record that was read last.
    key: Vec<u8>,
}

#[derive(Default)]
struct Group {
    operations: Vec<u8>,
    count: usize,
}

/// Which request the next message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    /// A record, or those of a scan, of which this field is requested; `None` means all fields.
    Records { scan: bool, field: Option<usize> },
    /// A transaction.
    Written,
    /// Keys that were to be removed.
    Deleted,
    /// A call of the user's own.
    Called,
    /// Nothing was sent.
    Grouped,
}

/// Writes one operation of a transaction, which is done if its condition holds: `value` under the key that comes in
/// pieces.
fn put_operation(out: &mut Vec<u8>, key: &[&[u8]], value: &[u8]) {
    put_message(out, 2, |out| {
        put_message(out, 2, |out| {
            put_bytes(out, 1, key);
            put_bytes(out, 2, &[value]);
        });
    });
}

impl EtcdSession {
    /// Speaks to `table` of `space` through `connection`.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn new(connection: EtcdConnection, blocking: bool, space: &str, table: &Table) -> Result<Self, Fault> {
        let mut http = connection.into_http();
        http.set_blocking(blocking)?;
        let prefix = prefix_of(space, table).into_bytes();
        Ok(Self { http, prefix, fields: table.fields, asked: InFlight::Grouped, group: None, key: Vec::new() })
    }

    /// Writes `values` of the record `key`, on the condition that its first key exists, or does not.
    fn write(&mut self, key: &[u8], values: &[(usize, &[u8])], is_there: bool) -> Result<(), Fault> {
        self.asked = InFlight::Written;
        let (http, prefix) = (&mut self.http, &self.prefix[..]);
        http.submit(TXN, |out| {
            put_message(out, 1, |out| {
                // The condition: its creation revision is greater than 0, or is 0 for a missing key.
                put_number(out, 1, u64::from(is_there));
                put_number(out, 2, 1);
                let first = values.first().map_or(0, |(field, _)| *field);
                put_bytes(out, 3, &[prefix, key, &of_field(first)]);
                put_number(out, 5, 0);
            });
            for (field, value) in values {
                put_operation(out, &[prefix, key, &of_field(*field)], value);
            }
        })
    }

    /// Adds an insert to its group, which is sent when another one might not fit.
    fn add(&mut self, key: &[u8], values: &[(usize, &[u8])]) -> Result<(), Fault> {
        let Some(group) = &mut self.group else { return self.write(key, values, false) };
        let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
        if group.count + values.len() > MOST_OPERATIONS || group.operations.len() + bytes > MOST_BYTES {
            self.send_group()?;
        }
        let Some(group) = &mut self.group else { return Ok(()) };
        for (field, value) in values {
            put_operation(&mut group.operations, &[&self.prefix, key, &of_field(*field)], value);
        }
        group.count += values.len();
        self.asked = InFlight::Grouped;
        Ok(())
    }

    /// Sends the group and waits for the answer.
    fn send_group(&mut self) -> Result<(), Fault> {
        let Some(group) = self.group.as_mut().filter(|group| group.count > 0) else { return Ok(()) };
        let operations = std::mem::take(group).operations;
        self.asked = InFlight::Written;
        self.http.submit(TXN, |out| out.extend_from_slice(&operations))?;
        self.finish()
    }

    /// Waits for the answer to the sent request.
    fn finish(&mut self) -> Result<(), Fault> {
        while self.advance(&mut Discard)? == Progress::Pending {
            wait_ready(self)?;
        }
        Ok(())
    }
}

/// Gives `rows` the records in an answer to a range of keys with this `prefix`; how many there are.
fn deliver(
    answer: &[u8],
    prefix: &[u8],
    (scan, asked): (bool, Option<usize>),
    last: &mut Vec<u8>,
    rows: &mut dyn Rows,
) -> Result<u64, Fault> {
    let mut records = 0;
    for one in Fields(answer) {
        let (2, Value::Bytes(pair)) = one? else { continue };
        let (mut key, mut value) = (&b""[..], &b""[..]);
        for field in Fields(pair) {
            match field? {
                (1, Value::Bytes(bytes)) => key = bytes,
                (5, Value::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        let named = key.strip_prefix(prefix).and_then(|rest| rest.split_last_chunk::<FIELD>());
        let Some((record, [0, high, low])) = named else {
            return Err(Fault::Wrong(format!("a key `{}`, which was not asked for", key.escape_ascii())));
        };
        if records == 0 || record != &last[..] {
            if records > 0 && !scan {
                return Err(Fault::Wrong(format!("a record `{}`, which was not asked for", record.escape_ascii())));
            }
            records += 1;
            last.clear();
            last.extend_from_slice(record);
            rows.row(scan.then_some(record));
        }
        let number = usize::from(u16::from_be_bytes([*high, *low]));
        if asked.is_none_or(|asked| asked == number) {
            rows.field(number, Some(value));
        }
    }
    Ok(records)
}

impl Connection for EtcdSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.http.descriptor())
    }

    fn wants_write(&self) -> bool {
        self.http.wants_write()
    }

    fn server_task(&self) -> ServerTask {
        // Goroutines are not tied to one thread: any thread may serve any connection.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.http.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.asked = InFlight::Called;
        self.http.submit(&path_of(statement), |_| {})?;
        self.finish()
    }
}

impl KeyValueSession for EtcdSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        match *request {
            Request::Read { key, fields } => {
                let field = if let Asked::One(field) = fields { Some(field) } else { None };
                self.asked = InFlight::Records { scan: false, field };
                let (http, prefix) = (&mut self.http, &self.prefix[..]);
                http.submit(RANGE, |out| match field {
                    Some(field) => put_bytes(out, 1, &[prefix, key, &of_field(field)]),
                    None => {
                        put_bytes(out, 1, &[prefix, key, b"\0"]);
                        put_bytes(out, 2, &[prefix, key, b"\x01"]);
                    }
                })
            }
            Request::Scan { start, count, fields } => {
                let field = if let Asked::One(field) = fields { Some(field) } else { None };
                self.asked = InFlight::Records { scan: true, field };
                let (http, prefix) = (&mut self.http, &self.prefix[..]);
                let (limit, end) = (u64::from(count) * self.fields as u64, after(prefix));
                http.submit(RANGE, |out| {
                    put_bytes(out, 1, &[prefix, start, b"\0"]);
                    put_bytes(out, 2, &[&end]);
                    put_number(out, 3, limit);
                })
            }
            Request::Update { key, values } => self.write(key, values, true),
            Request::Insert { key, values } => self.add(key, values),
            Request::Delete { key } => {
                self.asked = InFlight::Deleted;
                let (http, prefix) = (&mut self.http, &self.prefix[..]);
                http.submit(DELETE_RANGE, |out| {
                    put_bytes(out, 1, &[prefix, key, b"\0"]);
                    put_bytes(out, 2, &[prefix, key, b"\x01"]);
                })
            }
        }
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let asked = self.asked;
        if asked == InFlight::Grouped {
            return Ok(Progress::Done(1));
        }
        let Some(answer) = self.http.advance()? else { return Ok(Progress::Pending) };
        Ok(Progress::Done(match asked {
            InFlight::Records { scan, field } => deliver(answer, &self.prefix, (scan, field), &mut self.key, rows)?,
            // A transaction without a condition counts as one whose condition is true.
            InFlight::Written => Fields(answer).number(2)?,
            InFlight::Deleted => u64::from(Fields(answer).number(2)? > 0),
            InFlight::Called | InFlight::Grouped => 1,
        }))
    }

    fn begin_bulk(&mut self) -> Result<(), Fault> {
        self.group = Some(Group::default());
        Ok(())
    }

    fn end_bulk(&mut self) -> Result<(), Fault> {
        let sent = self.send_group();
        self.group = None;
        sent
    }
}
