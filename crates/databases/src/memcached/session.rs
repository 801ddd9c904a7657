//! One connection to memcached as a [`KeyValueSession`].
//!
//! Each field of a record is an item of its own, `SPACE:TABLE:KEY:NUMBER`. A read requests all of them with one `get`,
//! an update replaces the items of its fields, an insert adds all of its items together and does not overwrite an
//! existing record. YCSB's own binding keeps a record as one item, and its update discards the other fields.
//!
//! A scan is refused: memcached has no order of keys.

use std::os::fd::{AsFd as _, BorrowedFd};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{Connection, Fields, KeyValueSession, Progress, Request, Rows, Table, wait_ready},
    wire::Wire,
};

use super::{
    connection::MemcachedConnection,
    protocol::{Part, error, number, part, put_store, unexpected},
    store::prefix_of,
};

/// One connection.
pub struct MemcachedSession {
    wire: Wire,
    /// Before the key of each record.
    prefix: Vec<u8>,
    /// The suffixes of a record's key in the names of its items.
    fields: Vec<Vec<u8>>,
    asked: InFlight,
    /// Lines of the answer that have not arrived.
    missing: usize,
    /// Items that were there, stored or removed so far.
    items: usize,
    /// First error among the answers.
    error: Option<Fault>,
    /// The key of the record that is being read.
    key: Vec<u8>,
}

/// Which request the next lines answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    /// Items of a record.
    Record,
    /// The results for so many items that were to be stored.
    Stored(usize),
    /// The results for items that were to be removed.
    Deleted,
    /// A command outside the load.
    Command,
}

impl MemcachedSession {
    /// Speaks to `table` of `space` through `connection`.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn new(connection: MemcachedConnection, blocking: bool, space: &str, table: &Table) -> Result<Self, Fault> {
        let mut wire = connection.into_wire();
        wire.set_blocking(blocking)?;
        Ok(Self {
            wire,
            prefix: prefix_of(space, table).into_bytes(),
            fields: (0..table.fields).map(|number| format!(":{number}").into_bytes()).collect(),
            asked: InFlight::Command,
            missing: 0,
            items: 0,
            error: None,
            key: Vec::new(),
        })
    }

    fn begin(&mut self, asked: InFlight, lines: usize) {
        self.asked = asked;
        self.missing = lines;
        self.items = 0;
        self.error = None;
    }

    fn put_items(&mut self, verb: &[u8], key: &[u8], values: &[(usize, &[u8])]) {
        self.begin(InFlight::Stored(values.len()), values.len());
        for (field, value) in values {
            put_store(self.wire.output(), verb, [&self.prefix, key, &self.fields[*field]], value);
        }
    }

    /// Takes one complete part of an answer; true if it is a line that was missing.
    #[inline]
    fn take(&mut self, rows: &mut dyn Rows) -> Result<Option<bool>, Fault> {
        let Some((part, length)) = part(self.wire.unread())? else { return Ok(None) };
        let ends = match (part, self.asked) {
            (Part::Value { key, value }, InFlight::Record) => {
                let field = key.strip_prefix(&self.key[..]).and_then(|rest| rest.strip_prefix(b":")).and_then(number);
                let field = field.filter(|field| *field < self.fields.len()).ok_or_else(|| {
                    Fault::Wrong(format!("an item `{}`, which was not asked for", key.escape_ascii()))
                })?;
                if self.items == 0 {
                    rows.row(None);
                }
                rows.field(field, Some(value));
                self.items += 1;
                false
            }
            (Part::Line(b"END"), InFlight::Record) => true,
            (Part::Line(b"STORED"), InFlight::Stored(_)) | (Part::Line(b"DELETED"), InFlight::Deleted) => {
                self.items += 1;
                true
            }
            (Part::Line(b"NOT_STORED"), InFlight::Stored(_)) | (Part::Line(b"NOT_FOUND"), InFlight::Deleted) => true,
            (Part::Line(line), asked) => {
                match error(line) {
                    Some(fault) => drop(self.error.get_or_insert(fault)),
                    None if asked == InFlight::Command => {}
                    None => return Err(unexpected(line)),
                }
                true
            }
            (Part::Value { .. }, _) => return Err(Fault::Protocol("an item that nothing was asked for".to_owned())),
        };
        self.wire.consume(length);
        Ok(Some(ends))
    }

    /// All lines are there: how many rows were delivered or changed.
    fn end(&mut self) -> Result<u64, Fault> {
        if let Some(fault) = self.error.take() {
            return Err(fault);
        }
        Ok(u64::from(match self.asked {
            InFlight::Stored(asked) => self.items == asked,
            _ => self.items > 0,
        }))
    }
}

impl Connection for MemcachedSession {
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
        // It does not report which of its threads serves a connection.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.begin(InFlight::Command, 1);
        let out = self.wire.output();
        out.extend(statement.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        out.extend_from_slice(b"\r\n");
        self.wire.flush()?;
        while self.advance(&mut tithe_plugin::session::Discard)? == Progress::Pending {
            wait_ready(self)?;
        }
        Ok(())
    }
}

impl KeyValueSession for MemcachedSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        match *request {
            Request::Read { key, fields } => {
                self.begin(InFlight::Record, 1);
                self.key.clear();
                self.key.extend_from_slice(&self.prefix);
                self.key.extend_from_slice(key);
                let asked = match fields {
                    Fields::All => &self.fields[..],
                    Fields::One(field) => &self.fields[field..=field],
                };
                let out = self.wire.output();
                out.extend_from_slice(b"get");
                for field in asked {
                    out.push(b' ');
                    out.extend_from_slice(&self.key);
                    out.extend_from_slice(field);
                }
                out.extend_from_slice(b"\r\n");
            }
            Request::Update { key, values } => self.put_items(b"replace", key, values),
            Request::Insert { key, values } => self.put_items(b"add", key, values),
            Request::Delete { key } => {
                self.begin(InFlight::Deleted, self.fields.len());
                for field in &self.fields {
                    let out = self.wire.output();
                    out.extend_from_slice(b"delete ");
                    [&self.prefix[..], key, field].iter().for_each(|piece| out.extend_from_slice(piece));
                    out.extend_from_slice(b"\r\n");
                }
            }
            Request::Scan { .. } => return Err(Fault::Refused("Memcached has no scans".to_owned())),
        }
        self.wire.flush()
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            while let Some(ends) = self.take(rows)? {
                self.missing = match (ends, self.missing.checked_sub(1)) {
                    (false, _) => self.missing,
                    (true, Some(missing)) => missing,
                    (true, None) => return Err(Fault::Protocol("an answer that nothing was asked for".to_owned())),
                };
                if ends && self.missing == 0 {
                    return self.end().map(Progress::Done);
                }
            }
            if !self.wire.fill()? {
                return Ok(Progress::Pending);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Shutdown, TcpListener},
    };

    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use tithe_plugin::session::Discard;

    use super::*;
    use crate::target::Target;

    /// The session's result with a server that sends `said` after the login, and what the session sent.
    fn meet(said: &[u8], request: &Request<'_>) -> (Result<u64, Fault>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let target = Target { host: "127.0.0.1".to_owned(), port, ..Target::default() };
        let table = Table { name: "t".to_owned(), fields: 2, field_prefix: "f".to_owned() };
        std::thread::scope(|scope| {
            let server = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.write_all(b"VERSION 1.6.18\r\n").expect("sent");
                stream.write_all(said).expect("sent");
                stream.shutdown(Shutdown::Write).expect("shut");
                let mut sent = Vec::new();
                let _ = stream.read_to_end(&mut sent);
                sent
            });
            let outcome = MemcachedConnection::open(&target)
                .and_then(|connection| MemcachedSession::new(connection, true, "tithe", &table))
                .and_then(|mut session| session.call(request, &mut Discard));
            (outcome, server.join().expect("the server ends"))
        })
    }

    fn check(said: &[u8], request: &Request<'_>, expect: Expect) {
        let (outcome, sent) = meet(said, request);
        let outcome = outcome.map_or_else(|fault| fault.to_string(), |rows| format!("{rows} rows"));
        let sent = sent.strip_prefix(b"version\r\n").expect("a greeting");
        expect.assert_eq(&format!("{outcome}: {}", String::from_utf8_lossy(sent).replace("\r\n", "; ")));
    }

    const READ: Request<'static> = Request::Read { key: b"k", fields: Fields::All };

    #[test]
    fn requests_are_commands() {
        check(b"VALUE tithe:t:k:1 0 1\r\nx\r\nEND\r\n", &READ, expect!["1 rows: get tithe:t:k:0 tithe:t:k:1; "]);
        check(b"END\r\n", &READ, expect!["0 rows: get tithe:t:k:0 tithe:t:k:1; "]);
        check(
            b"STORED\r\nSTORED\r\n",
            &Request::Insert { key: b"k", values: &[(0, b"a"), (1, b"")] },
            expect!["1 rows: add tithe:t:k:0 0 0 1; a; add tithe:t:k:1 0 0 0; ; "],
        );
        check(
            b"NOT_STORED\r\n",
            &Request::Update { key: b"k", values: &[(1, b"b")] },
            expect!["0 rows: replace tithe:t:k:1 0 0 1; b; "],
        );
        check(
            b"NOT_FOUND\r\nDELETED\r\n",
            &Request::Delete { key: b"k" },
            expect!["1 rows: delete tithe:t:k:0; delete tithe:t:k:1; "],
        );
        check(
            b"",
            &Request::Scan { start: b"k", count: 1, fields: Fields::All },
            expect!["refused: Memcached has no scans: "],
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        check(
            b"VALUE tithe:t:l:1 0 1\r\nx\r\nEND\r\n",
            &READ,
            expect!["wrong answer: an item `tithe:t:l:1`, which was not asked for: get tithe:t:k:0 tithe:t:k:1; "],
        );
        check(
            b"VALUE tithe:t:k:2 0 1\r\nx\r\nEND\r\n",
            &READ,
            expect!["wrong answer: an item `tithe:t:k:2`, which was not asked for: get tithe:t:k:0 tithe:t:k:1; "],
        );
        check(
            b"SERVER_ERROR out of memory\r\n",
            &READ,
            expect!["server: SERVER_ERROR out of memory: get tithe:t:k:0 tithe:t:k:1; "],
        );
        check(
            b"STORED\r\n",
            &READ,
            expect!["protocol: the answer `STORED` has no place here: get tithe:t:k:0 tithe:t:k:1; "],
        );
        let two = Request::Insert { key: b"k", values: &[(0, b"a"), (1, b"")] };
        check(
            b"SERVER_ERROR object too large for cache\r\nSTORED\r\n",
            &two,
            expect![
                "server: SERVER_ERROR object too large for cache: add tithe:t:k:0 0 0 1; a; add tithe:t:k:1 0 0 0; ; "
            ],
        );
        check(
            b"STORED\r\n",
            &two,
            expect![
                "connection: the server closed the connection: add tithe:t:k:0 0 0 1; a; add tithe:t:k:1 0 0 0; ; "
            ],
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn foreign_servers_never_panic(
            mut said in Just(b"VALUE tithe:t:k:0 0 2\r\nab\r\nVALUE tithe:t:k:1 0 1\r\nx\r\nEND\r\n".to_vec()),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            for (at, byte) in changes {
                let at = at.index(said.len());
                said[at] = byte;
            }
            let _ = meet(&said, &READ);
        }
    }
}
