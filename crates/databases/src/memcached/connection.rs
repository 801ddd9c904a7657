//! One connection to memcached, from TCP to login, and commands on it that are not measured.
//!
//! There is no fallback. Three kinds of server are refused: one that closes the connection at the first command (it
//! only has TLS); one that asks for a password that was not given; and one that does not ask for the password that it
//! should.

use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, Instant},
};

use percent_encoding::percent_decode_str;
use tithe_machine::fault::Fault;
use tithe_plugin::{
    database::Row,
    wire::{TlsFacts, Wire, kept::Kept},
};

use super::protocol::{Part, error, part, put_store, unexpected};
use crate::target::{SPEAKS_TLS, Target};

/// A connection after the login; it is blocking.
pub struct MemcachedConnection {
    wire: Wire,
    method: &'static str,
}

/// What to check if a server closes a plaintext connection.
const TLS_ALONE: &str = ": a listener with TLS speaks nothing else";

/// The server's message to a client that has not logged in.
const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated";

/// Most keys that are listed at a time: they take 60 MB at most.
pub const MOST_KEYS: usize = 200_000;

/// How long a server's crawler may be busy: it also goes through the items by itself, to find expired ones, and serves
/// one request at a time (`doc/protocol.txt`, "LRU_Crawler").
const CRAWLER_PATIENCE: Duration = Duration::from_secs(30);

impl MemcachedConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target) -> Result<Self, Fault> {
        target.log_in(Self::start_up)
    }

    fn start_up(target: &Target) -> Result<Self, Fault> {
        let wire = target.dial_encrypted(SPEAKS_TLS)?;
        let mut connection = Self { wire, method: "none" };
        connection.enter(target)?;
        Ok(connection)
    }

    /// Finds out whether the server asks for a password, and sends it.
    fn enter(&mut self, target: &Target) -> Result<(), Fault> {
        let asks = match self.line("version") {
            Ok(_) => false,
            Err(Fault::Refused(words)) if words == UNAUTHENTICATED => match target.password {
                Some(_) => true,
                None => return Err(Fault::Refused(format!("the server asks for a user and password: {words}"))),
            },
            // A TLS listener closes plaintext connections, and those of a client without the certificate that it
            // requires.
            Err(Fault::Connection(words)) => {
                let hint = if target.tls.is_none() { TLS_ALONE } else { "" };
                return Err(Fault::Refused(format!("at the first command: {words}{hint}")));
            }
            Err(fault) => return Err(fault),
        };
        if !asks && target.must_ask {
            let why = "the server lets clients in without the password that it should ask for";
            return Err(Fault::Refused(why.to_owned()));
        }
        let Some(password) = target.password.as_ref().filter(|_| asks) else { return Ok(()) };
        let login = [target.user.as_bytes(), b" ", password.expose()].concat();
        put_store(self.wire.output(), b"set", [b"auth", b"", b""], &login);
        self.wire.flush()?;
        match self.answer()?.as_str() {
            "STORED" => self.method = "user and password",
            other => return Err(unexpected(other.as_bytes())),
        }
        Ok(())
    }

    /// How the client authenticated: `none`, `user and password`.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.wire.tls_facts()
    }

    /// The connection as a stream, for the measured session.
    pub fn into_wire(self) -> Wire {
        self.wire
    }

    /// Sends one line and waits for the first line of its answer.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn line(&mut self, command: &str) -> Result<String, Fault> {
        self.send(command)?;
        self.answer()
    }

    /// The statistics `what` of `stats`: those of the whole server if it is empty.
    ///
    /// # Errors
    /// As [`MemcachedConnection::line`].
    pub fn stats(&mut self, what: &str) -> Result<BTreeMap<String, String>, Fault> {
        self.send(format!("stats {what}").trim_end())?;
        let (mut stats, mut kept) = (BTreeMap::new(), Kept::default());
        loop {
            let line = self.answer()?;
            kept.add(4, line.len())?;
            let Some(pair) = line.strip_prefix("STAT ") else {
                return if line == "END" { Ok(stats) } else { Err(unexpected(line.as_bytes())) };
            };
            let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
            stats.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Its answer to `command`, one row per line: name and value of a statistic, the value of an item, or the whole
    /// line.
    ///
    /// # Errors
    /// As [`MemcachedConnection::line`].
    pub fn rows(&mut self, command: &str) -> Result<Vec<Row>, Fault> {
        self.send(command)?;
        let (mut rows, mut kept) = (Vec::new(), Kept::default());
        loop {
            let (value, line) = self.next()?;
            kept.add(3, line.len() + value.as_ref().map_or(0, Vec::len))?;
            let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
            match (value, line) {
                (Some(value), _) => rows.push(vec![text(&value)]),
                (None, line) if line == b"END" => return Ok(rows),
                (None, line) => {
                    if let Some(fault) = error(&line) {
                        return Err(fault);
                    }
                    let line = String::from_utf8_lossy(&line).into_owned();
                    if let Some((name, value)) = line.strip_prefix("STAT ").and_then(|pair| pair.split_once(' ')) {
                        rows.push(vec![Some(name.to_owned()), Some(value.to_owned())]);
                        continue;
                    }
                    let goes_on = line.starts_with("key=");
                    rows.push(vec![Some(line)]);
                    if !goes_on {
                        return Ok(rows);
                    }
                }
            }
        }
    }

    /// The value of the item `key`; `None` if there is none.
    ///
    /// # Errors
    /// As [`MemcachedConnection::line`].
    pub fn item(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.send(&format!("get {key}"))?;
        let mut item = None;
        loop {
            match self.next()? {
                (Some(value), _) => item = Some(value),
                (None, line) if line == b"END" => return Ok(item),
                (None, line) => return Err(unexpected(&line)),
            }
        }
    }

    /// Stores `value` as the item `key`.
    ///
    /// # Errors
    /// As [`MemcachedConnection::line`].
    pub fn store(&mut self, key: &str, value: &[u8]) -> Result<(), Fault> {
        put_store(self.wire.output(), b"set", [key.as_bytes(), b"", b""], value);
        self.wire.flush()?;
        match self.answer()?.as_str() {
            "STORED" => Ok(()),
            other => Err(unexpected(other.as_bytes())),
        }
    }

    /// Removes the items `keys`; missing ones are ignored.
    ///
    /// # Errors
    /// As [`MemcachedConnection::line`].
    pub fn delete(&mut self, keys: &[String]) -> Result<(), Fault> {
        for some in keys.chunks(100) {
            some.iter().for_each(|key| self.wire.output().extend_from_slice(format!("delete {key}\r\n").as_bytes()));
            self.wire.flush()?;
            some.iter().try_for_each(|_| self.answer().map(drop))?;
        }
        Ok(())
    }

    /// The keys of items that begin with `prefix`, at most [`MOST_KEYS`]. The server goes through all its items.
    ///
    /// # Errors
    /// [`Fault::Server`] if it does not list its keys (`disable-dumping`, `no_lru_crawler`), or if its crawler is busy
    /// for 30 s.
    pub fn keys(&mut self, prefix: &str) -> Result<Vec<String>, Fault> {
        let begun = Instant::now();
        self.send("lru_crawler metadump all")?;
        let mut keys = Vec::new();
        loop {
            let line = self.answer()?;
            self.wire.keeps_nothing();
            if line == "END" {
                return Ok(keys);
            }
            if line.starts_with("BUSY ") && begun.elapsed() < CRAWLER_PATIENCE {
                sleep(Duration::from_millis(20));
                self.send("lru_crawler metadump all")?;
                continue;
            }
            let Some(key) = line.strip_prefix("key=").and_then(|rest| rest.split(' ').next()) else {
                return Err(Fault::Server(format!("the server does not list its keys: {line}")));
            };
            if let Ok(key) = percent_decode_str(key).decode_utf8()
                && key.starts_with(prefix)
                && keys.len() < MOST_KEYS
            {
                keys.push(key.into_owned());
            }
        }
    }

    fn send(&mut self, command: &str) -> Result<(), Fault> {
        self.wire.hears_nothing()?;
        let out = self.wire.output();
        // One line, whatever a statement of an experiment holds.
        out.extend(command.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        out.extend_from_slice(b"\r\n");
        self.wire.flush()
    }

    /// The next line of an answer, which holds no item.
    fn answer(&mut self) -> Result<String, Fault> {
        let (value, line) = self.next()?;
        if value.is_some() {
            return Err(Fault::Protocol("an item that nothing was asked for".to_owned()));
        }
        match error(&line) {
            Some(fault) => Err(fault),
            None => Ok(String::from_utf8_lossy(&line).into_owned()),
        }
    }

    /// The next part of an answer, copied: an item, or a line.
    fn next(&mut self) -> Result<(Option<Vec<u8>>, Vec<u8>), Fault> {
        loop {
            if let Some((part, length)) = part(self.wire.unread())? {
                let copied = match part {
                    Part::Value { value, .. } => (Some(value.to_vec()), Vec::new()),
                    Part::Line(line) => (None, line.to_vec()),
                };
                self.wire.consume(length);
                return Ok(copied);
            }
            self.wire.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        net::TcpListener,
    };

    use expect_test::expect;

    use super::*;

    /// The keys of a server that answers the login and each request for its keys with one of `said`, in order.
    fn keys_of(said: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let target = Target { host: "127.0.0.1".to_owned(), port, ..Target::default() };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (stream, _) = listener.accept().expect("a client");
                let mut requests = BufReader::new(&stream).lines();
                for answer in said {
                    if requests.next().is_none() {
                        return;
                    }
                    (&stream).write_all(answer.as_bytes()).expect("sent");
                }
            });
            let keys = MemcachedConnection::open(&target).and_then(|mut connection| connection.keys("tithe:"));
            keys.map_or_else(|fault| fault.to_string(), |keys| keys.join(" "))
        })
    }

    #[test]
    fn keys_are_listed_as_soon_as_the_crawler_is_free() {
        let listed = keys_of(&[
            "VERSION 1.6.18\r\n",
            "BUSY currently processing crawler request\r\n",
            "key=tithe:a exp=-1\r\nkey=other exp=-1\r\nkey=tithe:%62 exp=-1\r\nEND\r\n",
        ]);
        expect!["tithe:a tithe:b"].assert_eq(&listed);
    }

    #[test]
    fn a_server_that_lists_no_keys_is_refused() {
        let refused = keys_of(&["VERSION 1.6.18\r\n", "ERROR lru crawler disabled\r\n"]);
        expect!["server: the server does not list its keys: ERROR lru crawler disabled"].assert_eq(&refused);
    }
}
