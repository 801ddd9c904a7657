//! One connection to Redis as a [`KeyValueSession`].
//!
//! Records are stored as in YCSB's own binding (`site.ycsb.db.RedisClient`): one hash per record, and one sorted set
//! with all keys, which scans use. Three things differ. All names begin with `tithe:`, so that no other keys are
//! affected. The sorted set is ordered by the keys themselves (all scores are 0), not by their hash codes, so that a
//! scan is a real range. Commands that do not need each other's answers are sent together: the hash and the set of an
//! insert, the records of a scan.
//!
//! Redis has no update: a missing hash is created. The reply shows it, and it counts as no row changed.

use std::os::fd::{AsFd as _, BorrowedFd};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{Connection, Fields, KeyValueSession, Progress, Request, Rows, Table, Update, wait_ready},
    wire::Wire,
};

use super::{
    connection::RedisConnection,
    protocol::{Head, Reader, complete, error, put_command, put_part, unexpected},
    store::{index_of, prefix_of},
};

/// One connection.
pub struct RedisSession {
    wire: Wire,
    names: Names,
    asked: InFlight,
    /// Replies of the request that have not arrived.
    missing: usize,
    /// Rows delivered or changed so far.
    rows: u64,
    /// First error among the replies.
    error: Option<Fault>,
    /// Keys found by a scan, one after the other, and where each ends. The buffer is reused by the next scan.
    keys: Vec<u8>,
    ends: Vec<usize>,
}

/// How the table's things are called.
struct Names {
    /// Before the key of each record.
    prefix: Vec<u8>,
    /// The sorted set.
    index: Vec<u8>,
    /// Before the number of each field.
    field_prefix: Vec<u8>,
    /// Each field as part of a command.
    fields: Vec<Vec<u8>>,
}

/// Which request the next replies answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    /// A record, or some of its fields.
    Record(Fields),
    /// How many fields an update has created.
    Updated,
    /// The same of several.
    UpdatedTogether,
    /// How many fields and how many keys an insert has created.
    Inserted,
    /// How many records and how many keys were removed.
    Deleted,
    /// The keys of a scan.
    Keys(Fields),
    /// The records of a scan.
    Scanned(Fields),
    /// A command outside the load.
    Command,
}

impl RedisSession {
    /// Speaks to `table` of `space` through `connection`.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn new(connection: RedisConnection, blocking: bool, space: &str, table: &Table) -> Result<Self, Fault> {
        let mut wire = connection.into_wire();
        wire.set_blocking(blocking)?;
        let field = |number: usize| {
            let mut part = Vec::new();
            put_part(&mut part, table.field_prefix.as_bytes(), number.to_string().as_bytes());
            part
        };
        let names = Names {
            prefix: prefix_of(space, table).into_bytes(),
            index: index_of(space, table).into_bytes(),
            field_prefix: table.field_prefix.clone().into_bytes(),
            fields: (0..table.fields).map(field).collect(),
        };
        Ok(Self {
            wire,
            names,
            asked: InFlight::Command,
            missing: 0,
            rows: 0,
            error: None,
            keys: Vec::new(),
            ends: Vec::new(),
        })
    }

    fn begin(&mut self, asked: InFlight, replies: usize) {
        self.asked = asked;
        self.missing = replies;
        self.rows = 0;
        self.error = None;
    }

    fn put_write(&mut self, key: &[u8], values: &[(usize, &[u8])]) {
        let out = self.wire.output();
        put_command(out, 2 + 2 * values.len());
        put_part(out, b"HSET", b"");
        put_part(out, &self.names.prefix, key);
        for (field, value) in values {
            out.extend_from_slice(&self.names.fields[*field]);
            put_part(out, b"", value);
        }
    }

    /// Takes one whole reply.
    #[inline]
    fn take(&mut self, length: usize, rows: &mut dyn Rows) -> Result<(), Fault> {
        let mut reader = Reader(&self.wire.unread()[..length]);
        match (reader.next()?, self.asked) {
            (Head::Error(text), _) => {
                let fault = error(text);
                self.error.get_or_insert(fault);
            }
            (_, InFlight::Command) => {}
            (Head::Array(count), InFlight::Record(fields)) => {
                self.rows += u64::from(self.names.deliver(&mut reader, count, fields, None, rows)?);
            }
            (Head::Array(count), InFlight::Scanned(fields)) => {
                let number = self.ends.len() - self.missing;
                let start = if number == 0 { 0 } else { self.ends[number - 1] };
                let key = &self.keys[start..self.ends[number]];
                self.rows += u64::from(self.names.deliver(&mut reader, count, fields, Some(key), rows)?);
            }
            (Head::Array(count), InFlight::Keys(_)) => {
                self.keys.clear();
                self.ends.clear();
                for _ in 0..count {
                    self.keys.extend_from_slice(reader.bulk()?.unwrap_or_default());
                    self.ends.push(self.keys.len());
                }
            }
            // The fields are new, so the record did not exist before the update.
            (Head::Integer(made), InFlight::Updated) => self.rows = u64::from(made == 0),
            (Head::Integer(made), InFlight::UpdatedTogether) => self.rows += u64::from(made == 0),
            (Head::Integer(count), InFlight::Inserted | InFlight::Deleted) => {
                self.rows = self.rows.max(u64::from(count > 0))
            }
            (head, _) => return Err(unexpected(head)),
        }
        Ok(())
    }

    /// All replies have arrived: completes the request, or starts the second half of a scan.
    #[inline]
    fn end(&mut self) -> Result<Option<u64>, Fault> {
        if let Some(fault) = self.error.take() {
            return Err(fault);
        }
        let InFlight::Keys(fields) = self.asked else { return Ok(Some(self.rows)) };
        if self.ends.is_empty() {
            return Ok(Some(0));
        }
        self.begin(InFlight::Scanned(fields), self.ends.len());
        let mut start = 0;
        for end in &self.ends {
            self.names.put_read(self.wire.output(), &self.keys[start..*end], fields);
            start = *end;
        }
        self.wire.flush()?;
        Ok(None)
    }
}

impl Names {
    #[inline]
    fn put_read(&self, out: &mut Vec<u8>, key: &[u8], fields: Fields) {
        match fields {
            Fields::All => {
                put_command(out, 2);
                put_part(out, b"HGETALL", b"");
                put_part(out, &self.prefix, key);
            }
            Fields::One(field) => {
                put_command(out, 3);
                put_part(out, b"HMGET", b"");
                put_part(out, &self.prefix, key);
                out.extend_from_slice(&self.fields[field]);
            }
        }
    }

    /// Passes on the fields of one record; false if there is no such record.
    #[inline]
    fn deliver(
        &self,
        reader: &mut Reader<'_>,
        count: usize,
        fields: Fields,
        key: Option<&[u8]>,
        rows: &mut dyn Rows,
    ) -> Result<bool, Fault> {
        match fields {
            Fields::All if count == 0 => return Ok(false),
            Fields::All => {
                rows.row(key);
                for _ in 0..count / 2 {
                    let name = reader.bulk()?.unwrap_or_default();
                    let field = self.number_of(name)?;
                    rows.field(field, reader.bulk()?);
                }
            }
            Fields::One(field) => {
                let Some(value) = reader.bulk()? else { return Ok(false) };
                rows.row(key);
                rows.field(field, Some(value));
            }
        }
        Ok(true)
    }

    /// The number of the field called `name`.
    #[inline]
    fn number_of(&self, name: &[u8]) -> Result<usize, Fault> {
        let digits = name.strip_prefix(&self.field_prefix[..]).filter(|digits| (1..=6).contains(&digits.len()));
        let number = digits.and_then(|digits| {
            digits
                .iter()
                .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + usize::from(digit - b'0')))
        });
        number.filter(|number| *number < self.fields.len()).ok_or_else(|| {
            Fault::Wrong(format!("a record has a field `{}`, which the table does not", name.escape_ascii()))
        })
    }
}

impl Connection for RedisSession {
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
        // One process serves all connections.
        ServerTask::Unknown
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        let parts: Vec<_> = statement.split_ascii_whitespace().collect();
        self.begin(InFlight::Command, 1);
        let out = self.wire.output();
        put_command(out, parts.len());
        parts.iter().for_each(|part| put_part(out, part.as_bytes(), b""));
        self.wire.flush()?;
        while self.advance(&mut tithe_plugin::session::Discard)? == Progress::Pending {
            wait_ready(self)?;
        }
        Ok(())
    }
}

impl KeyValueSession for RedisSession {
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        match *request {
            Request::Read { key, fields } => {
                self.begin(InFlight::Record(fields), 1);
                self.names.put_read(self.wire.output(), key, fields);
            }
            Request::Update { key, values } => {
                self.begin(InFlight::Updated, 1);
                self.put_write(key, values);
            }
            Request::Insert { key, values } => {
                self.begin(InFlight::Inserted, 2);
                self.put_write(key, values);
                let out = self.wire.output();
                put_command(out, 4);
                put_part(out, b"ZADD", b"");
                put_part(out, &self.names.index, b"");
                put_part(out, b"0", b"");
                put_part(out, key, b"");
            }
            Request::Scan { start, count, fields } => {
                self.begin(InFlight::Keys(fields), 1);
                let out = self.wire.output();
                put_command(out, 7);
                put_part(out, b"ZRANGEBYLEX", b"");
                put_part(out, &self.names.index, b"");
                put_part(out, b"[", start);
                for part in [&b"+"[..], b"LIMIT", b"0"] {
                    put_part(out, part, b"");
                }
                put_part(out, count.to_string().as_bytes(), b"");
            }
            Request::Delete { key } => {
                self.begin(InFlight::Deleted, 2);
                let out = self.wire.output();
                put_command(out, 2);
                put_part(out, b"DEL", b"");
                put_part(out, &self.names.prefix, key);
                put_command(out, 3);
                put_part(out, b"ZREM", b"");
                put_part(out, &self.names.index, b"");
                put_part(out, key, b"");
            }
        }
        self.wire.flush()
    }

    fn submit_updates(&mut self, updates: &[Update<'_>]) -> Result<bool, Fault> {
        self.begin(InFlight::UpdatedTogether, updates.len());
        updates.iter().for_each(|(key, values)| self.put_write(key, values));
        self.wire.flush()?;
        Ok(true)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            while let Some(length) = complete(self.wire.unread())? {
                if self.missing == 0 {
                    return Err(Fault::Protocol("a reply that nothing was asked for".to_owned()));
                }
                self.take(length, rows)?;
                self.wire.consume(length);
                self.missing -= 1;
                if self.missing == 0
                    && let Some(rows) = self.end()?
                {
                    return Ok(Progress::Done(rows));
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
        let target = Target {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().expect("bound").port(),
            user: String::new(),
            database: "0".to_owned(),
            ..Target::default()
        };
        let table = Table { name: "t".to_owned(), fields: 2, field_prefix: "f".to_owned() };
        std::thread::scope(|scope| {
            let server = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.write_all(b"+PONG\r\n").expect("sent");
                stream.write_all(said).expect("sent");
                stream.shutdown(Shutdown::Write).expect("shut");
                let mut sent = Vec::new();
                let _ = stream.read_to_end(&mut sent);
                sent
            });
            let outcome = RedisConnection::open(&target)
                .and_then(|connection| RedisSession::new(connection, true, "tithe", &table))
                .and_then(|mut session| session.call(request, &mut Discard));
            (outcome, server.join().expect("the server ends"))
        })
    }

    fn check(said: &[u8], request: &Request<'_>, expect: Expect) {
        let (outcome, sent) = meet(said, request);
        let outcome = outcome.map_or_else(|fault| fault.to_string(), |rows| format!("{rows} rows"));
        let sent = sent.strip_prefix(b"*1\r\n$4\r\nPING\r\n").expect("a greeting");
        expect.assert_eq(&format!("{outcome}: {}", String::from_utf8_lossy(sent).replace("\r\n", " ")));
    }

    const READ: Request<'static> = Request::Read { key: b"k", fields: Fields::All };
    const SCAN: Request<'static> = Request::Scan { start: b"k", count: 3, fields: Fields::One(1) };

    #[test]
    fn requests_are_commands() {
        check(b"*2\r\n$2\r\nf1\r\n$1\r\nx\r\n", &READ, expect!["1 rows: *2 $7 HGETALL $9 tithe:t:k "]);
        check(b"*0\r\n", &READ, expect!["0 rows: *2 $7 HGETALL $9 tithe:t:k "]);
        check(
            b":1\r\n:1\r\n",
            &Request::Insert { key: b"k", values: &[(0, b"a"), (1, b"")] },
            expect!["1 rows: *6 $4 HSET $9 tithe:t:k $2 f0 $1 a $2 f1 $0  *4 $4 ZADD $7 tithe:t $1 0 $1 k "],
        );
        check(
            b":0\r\n",
            &Request::Update { key: b"k", values: &[(1, b"b")] },
            expect!["1 rows: *4 $4 HSET $9 tithe:t:k $2 f1 $1 b "],
        );
        check(
            b":1\r\n:1\r\n",
            &Request::Delete { key: b"k" },
            expect!["1 rows: *2 $3 DEL $9 tithe:t:k *3 $4 ZREM $7 tithe:t $1 k "],
        );
        check(
            b"*1\r\n$1\r\nl\r\n*1\r\n$1\r\ny\r\n",
            &SCAN,
            expect![
                "1 rows: *7 $11 ZRANGEBYLEX $7 tithe:t $2 [k $1 + $5 LIMIT $1 0 $1 3 *3 $5 HMGET $9 tithe:t:l $2 f1 "
            ],
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        check(
            b"*2\r\n$2\r\nf2\r\n$1\r\nx\r\n",
            &READ,
            expect!["wrong answer: a record has a field `f2`, which the table does not: *2 $7 HGETALL $9 tithe:t:k "],
        );
        check(b"-NOPERM no\r\n", &READ, expect!["refused: NOPERM no: *2 $7 HGETALL $9 tithe:t:k "]);
        check(b":7\r\n", &READ, expect!["protocol: the reply 7 has no place here: *2 $7 HGETALL $9 tithe:t:k "]);
        check(
            b"-OOM\r\n:1\r\n",
            &Request::Insert { key: b"k", values: &[(0, b"a")] },
            expect!["server: OOM: *4 $4 HSET $9 tithe:t:k $2 f0 $1 a *4 $4 ZADD $7 tithe:t $1 0 $1 k "],
        );
        check(
            b"*1\r\n$1\r\nl\r\n",
            &SCAN,
            expect![
                "connection: the server closed the connection: *7 $11 ZRANGEBYLEX $7 tithe:t $2 [k $1 + $5 LIMIT $1 0 $1 3 *3 $5 HMGET $9 tithe:t:l $2 f1 "
            ],
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn foreign_servers_never_panic(
            mut said in Just(b"*2\r\n$2\r\nf0\r\n$2\r\nf1\r\n*1\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n".to_vec()),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            scans: bool,
        ) {
            for (at, byte) in changes {
                let at = at.index(said.len());
                said[at] = byte;
            }
            let _ = meet(&said, if scans { &SCAN } else { &READ });
        }
    }
}
