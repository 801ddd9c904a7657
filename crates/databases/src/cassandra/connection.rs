//! One connection to Cassandra, from TCP to login, and statements on it that are not measured.
//!
//! There is no fallback. Three kinds of server are refused: one that closes the connection at the first message (it
//! only has TLS); one that asks for a password that was not given; and one that does not ask for the password that it
//! should.

use tithe_machine::{fault::Fault, secret::Secret};
use tithe_plugin::wire::{TlsFacts, Wire, kept::Kept};

use super::protocol::{
    Body, Consistency, Message, next_frame, opcode, put_frame, put_query, put_string, put_value, rows, server_error,
    take_string, take_value, unexpected,
};
use crate::target::Target;

/// The name of the client in the server's list of clients.
pub const DRIVER: &str = "Tithe";

/// A connection after the login; it is blocking.
pub struct CqlConnection {
    wire: Wire,
    method: String,
}

/// Rows of an answer, copied. Values that are not text keep the server's encoding.
pub type Table = Vec<Vec<Option<Vec<u8>>>>;

/// A server with TLS only closes other connections, or answers in TLS. One that rejects the client's certificate closes
/// the connection, and its message may be lost. A server that answered and then closed has refused.
fn turned_away(when: &str, fault: Fault) -> Fault {
    match fault {
        Fault::Connection(words) | Fault::Protocol(words) => Fault::Refused(format!("{when}: {words}")),
        fault => fault,
    }
}

/// `fault` with the statement that gives an account the right that it lacks, if the server names it.
pub fn named(fault: Fault) -> Fault {
    match fault {
        Fault::Refused(words) => {
            let grant = grant(&words).map_or(String::new(), |grant| format!("; a superuser runs `{grant}`"));
            Fault::Refused(words + &grant)
        }
        fault => fault,
    }
}

/// The statement that grants the right that the server's `words` name: `User ann has no CREATE permission on <all
/// keyspaces> or any of its parents`.
pub fn grant(words: &str) -> Option<String> {
    let (account, rest) = words.split_once("User ")?.1.split_once(" has no ")?;
    let (right, rest) = rest.split_once(" permission on <")?;
    let resource = rest.split_once('>')?.0;
    let on = match resource.split_once(' ')? {
        (kind @ ("keyspace" | "table" | "role"), name) => format!("{} {name}", kind.to_ascii_uppercase()),
        _ => resource.to_ascii_uppercase(),
    };
    Some(format!("GRANT {right} ON {on} TO {account}"))
}

impl CqlConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target) -> Result<Self, Fault> {
        target.log_in(Self::start_up)
    }

    fn start_up(target: &Target) -> Result<Self, Fault> {
        let mut wire = target.dial()?;
        if let Some(tls) = &target.tls {
            tls.start(&mut wire, &target.host, target.port).map_err(|fault| turned_away("in the handshake", fault))?;
        }
        let mut connection = Self { wire, method: "none".to_owned() };
        connection.enter(target)?;
        Ok(connection)
    }

    /// Finds out whether the server asks for a password, and sends it.
    fn enter(&mut self, target: &Target) -> Result<(), Fault> {
        let options =
            [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", DRIVER), ("DRIVER_VERSION", env!("CARGO_PKG_VERSION"))];
        let sent = self.send(opcode::STARTUP, |out| {
            out.extend_from_slice(&(options.len() as u16).to_be_bytes());
            options.iter().flat_map(|(name, value)| [name, value]).for_each(|text| put_string(out, text.as_bytes()));
        });
        let answer = sent.and_then(|()| self.receive());
        let answer = answer.map_err(|fault| turned_away("at the first message", fault))?;
        let asks = match answer.opcode {
            opcode::READY => None,
            opcode::AUTHENTICATE => Some(self.text_of(&answer)?),
            other => return Err(unexpected(other)),
        };
        self.wire.consume(answer.message.end);
        match (asks, &target.password) {
            (None, _) if target.must_ask => {
                let why = "the server lets clients in without the password that it should ask for";
                Err(Fault::Refused(why.to_owned()))
            }
            (None, _) => Ok(()),
            (Some(class), None) => Err(Fault::Refused(format!("the server asks for a password ({class})"))),
            (Some(class), Some(password)) => {
                self.authenticate(&target.user, password)?;
                self.method = class;
                Ok(())
            }
        }
    }

    /// SASL PLAIN (RFC 4616), which all of Cassandra's password authenticators use.
    fn authenticate(&mut self, user: &str, password: &Secret) -> Result<(), Fault> {
        let token = Secret::new([b"\0", user.as_bytes(), b"\0", password.expose()].concat());
        self.send(opcode::AUTH_RESPONSE, |out| put_value(out, token.expose()))?;
        let answer = self.receive()?;
        self.wire.consume(answer.message.end);
        if answer.opcode == opcode::AUTH_SUCCESS { Ok(()) } else { Err(unexpected(answer.opcode)) }
    }

    fn text_of(&self, frame: &Message) -> Result<String, Fault> {
        let class = take_string(&mut Body::new(&self.wire.unread()[frame.message.clone()]))?;
        let class = String::from_utf8_lossy(class).into_owned();
        Ok(class.rsplit_once('.').map_or(class.clone(), |(_, name)| name.to_owned()))
    }

    /// How the client authenticated: `none`, or the name of the server's authenticator.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.wire.tls_facts()
    }

    /// The connection as a stream, for the measured session.
    pub fn into_wire(self) -> Wire {
        self.wire
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn run(&mut self, statement: &str) -> Result<Table, Fault> {
        self.send(opcode::QUERY, |out| put_query(out, statement, Consistency::One))?;
        let answer = self.receive()?;
        if answer.opcode != opcode::RESULT {
            return Err(unexpected(answer.opcode));
        }
        let (mut table, mut kept) = (Table::new(), Kept::default());
        if let Some(mut found) = rows(&self.wire.unread()[answer.message.clone()])? {
            for _ in 0..found.count {
                kept.add(1 + found.columns, 0)?;
                let row = (0..found.columns).map(|_| Ok(take_value(&mut found.values)?.map(<[u8]>::to_vec)));
                table.push(row.collect::<Result<_, Fault>>()?);
            }
        }
        self.wire.consume(answer.message.end);
        Ok(table)
    }

    /// As [`CqlConnection::run`], of columns of text; NULL is an empty text.
    ///
    /// # Errors
    /// As [`CqlConnection::run`].
    pub fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>, Fault> {
        let text =
            |value: Option<Vec<u8>>| value.map_or_else(String::new, |value| String::from_utf8_lossy(&value).into());
        Ok(self.run(statement)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    fn send(&mut self, opcode: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
        put_frame(self.wire.output(), 0, opcode, fill)?;
        self.wire.flush()
    }

    /// Waits for the next frame, which stays unread; an error of the server is consumed and returned as a fault.
    fn receive(&mut self) -> Result<Message, Fault> {
        loop {
            if let Some(frame) = next_frame(self.wire.unread())? {
                if frame.opcode == opcode::ERROR {
                    let fault = server_error(&self.wire.unread()[frame.message.clone()]);
                    self.wire.consume(frame.message.end);
                    return Err(fault);
                }
                return Ok(frame);
            }
            self.wire.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::grant;

    #[test]
    fn rights_that_are_missing_are_named_as_a_statement() {
        let check = |resource: &str| {
            let words = format!("0x2100: User ann has no CREATE permission on <{resource}> or any of its parents");
            grant(&words).unwrap_or_default()
        };
        assert_eq!(check("all keyspaces"), "GRANT CREATE ON ALL KEYSPACES TO ann");
        assert_eq!(check("keyspace tithe"), "GRANT CREATE ON KEYSPACE tithe TO ann");
        assert_eq!(check("table system_views.clients"), "GRANT CREATE ON TABLE system_views.clients TO ann");
        assert_eq!(grant("0x0100: Provided username ann and/or password are incorrect"), None);
    }
}
