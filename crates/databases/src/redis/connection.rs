//! One connection to Redis, from TCP to login, and commands on it that are not measured.
//!
//! There is no fallback. Three kinds of server are refused: one that closes the connection at the first command (it
//! only has TLS); one that asks for a password that was not given; and one that does not ask for the password that it
//! should.

use tithe_machine::fault::Fault;
use tithe_plugin::wire::{TlsFacts, Wire, kept::Kept};

use super::protocol::{Head, Reader, complete, error, put_command, put_part, unexpected};
use crate::target::Target;

/// A connection after the login; it is blocking.
pub struct RedisConnection {
    wire: Wire,
    method: &'static str,
}

/// A whole reply, copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Text or bytes.
    Value(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// No such value.
    Nothing,
    /// Several replies.
    Array(Vec<Reply>),
}

/// What to check if TLS does not start.
const PLAINTEXT: &str = "does it speak TLS at this port (`tls-port`)?";

/// What to check if a server closes a plaintext connection.
const TLS_ALONE: &str = ": a port for TLS (`tls-port`) speaks nothing else; plaintext has its own port (`port`): give it by \
                         its own URL (on a command line, `--plain URL`)";

impl RedisConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target) -> Result<Self, Fault> {
        target.log_in(Self::start_up)
    }

    fn start_up(target: &Target) -> Result<Self, Fault> {
        let wire = target.dial_encrypted(PLAINTEXT)?;
        let mut connection = Self { wire, method: "none" };
        connection.enter(target)?;
        if target.database != "0" {
            connection.call(&["SELECT", &target.database])?;
        }
        Ok(connection)
    }

    /// Finds out whether the server asks for a password, and sends it.
    fn enter(&mut self, target: &Target) -> Result<(), Fault> {
        let asks = match self.call(&["PING"]) {
            Ok(_) => false,
            Err(Fault::Refused(words)) if words.starts_with("NOAUTH") => match target.password {
                Some(_) => true,
                None => return Err(Fault::Refused(words)),
            },
            // A server with TLS only closes the connection, and so does one that rejects the client's certificate.
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
        let Some(password) = target.password.as_ref().filter(|_| asks || !target.user.is_empty()) else {
            return Ok(());
        };
        if target.user.is_empty() {
            self.send(&[b"AUTH", password.expose()])?;
        } else {
            self.send(&[b"AUTH", target.user.as_bytes(), password.expose()])?;
        }
        self.receive().map_err(|fault| match fault {
            // Redis 6 answers a plain error for a password that no account has.
            Fault::Server(words) => Fault::Refused(words),
            fault => fault,
        })?;
        self.method = if target.user.is_empty() { "password" } else { "user and password" };
        Ok(())
    }

    /// How the client authenticated: `none`, `password`, `user and password`.
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

    /// Sends one command and waits for its reply.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn call(&mut self, parts: &[&str]) -> Result<Reply, Fault> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.call_bytes(&parts)
    }

    /// As [`RedisConnection::call`], with parts that are not text.
    ///
    /// # Errors
    /// As [`RedisConnection::call`].
    pub fn call_bytes(&mut self, parts: &[&[u8]]) -> Result<Reply, Fault> {
        self.send(parts)?;
        self.receive()
    }

    /// Runs a command written with spaces between its parts.
    ///
    /// # Errors
    /// As [`RedisConnection::call`].
    pub fn run(&mut self, command: &str) -> Result<Reply, Fault> {
        self.call(&command.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// The value of one server setting; `None` when the server has no such setting.
    ///
    /// # Errors
    /// As [`RedisConnection::call`].
    pub fn setting(&mut self, name: &str) -> Result<Option<String>, Fault> {
        let Reply::Array(pair) = self.call(&["CONFIG", "GET", name])? else { return Ok(None) };
        Ok(pair.get(1).and_then(Reply::text))
    }

    fn send(&mut self, parts: &[&[u8]]) -> Result<(), Fault> {
        self.wire.hears_nothing()?;
        let out = self.wire.output();
        put_command(out, parts.len());
        parts.iter().for_each(|part| put_part(out, b"", part));
        self.wire.flush()
    }

    fn receive(&mut self) -> Result<Reply, Fault> {
        loop {
            if let Some(length) = complete(self.wire.unread())? {
                let reply = copied(&mut Reader(&self.wire.unread()[..length]), DEEPEST, &mut Kept::default());
                self.wire.consume(length);
                return reply;
            }
            self.wire.fill()?;
        }
    }
}

/// `fault` with the rule that an account lacks, if the server refuses a command or a key (documentation, "ACL").
pub fn named(fault: Fault) -> Fault {
    let Fault::Refused(words) = &fault else { return fault };
    if !words.starts_with("NOPERM") {
        return fault;
    }
    let quoted = words.split('\'').nth(1).map(|command| format!("+{}", command.to_ascii_lowercase()));
    let rule = if words.contains("command") { quoted } else { Some("~tithe*".to_owned()) };
    let Some(rule) = rule else { return fault };
    Fault::Refused(format!("{words}; an administrator runs `ACL SETUSER NAME {rule}`"))
}

/// Nested arrays: the list of commands is the deepest, because of what it holds about each command's keys.
const DEEPEST: usize = 12;

/// The next reply, copied, with at most so many levels of arrays. It must have arrived completely.
fn copied(reader: &mut Reader<'_>, levels: usize, kept: &mut Kept) -> Result<Reply, Fault> {
    kept.add(1, 0)?;
    Ok(match reader.next()? {
        Head::Error(text) => return Err(error(text)),
        Head::Array(_) if levels == 0 => return Err(Fault::Protocol("a reply has too many levels".to_owned())),
        Head::Array(count) => {
            Reply::Array((0..count).map(|_| copied(reader, levels - 1, kept)).collect::<Result<_, _>>()?)
        }
        head => value(head)?,
    })
}

fn value(head: Head<'_>) -> Result<Reply, Fault> {
    Ok(match head {
        Head::Simple(text) | Head::Bulk(Some(text)) => Reply::Value(text.to_vec()),
        Head::Integer(number) => Reply::Integer(number),
        Head::Bulk(None) => Reply::Nothing,
        head => return Err(unexpected(head)),
    })
}

impl Reply {
    /// A value as text.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Value(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Nothing | Self::Array(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_rule_that_is_missing_is_named() {
        let named = |words: &str| named(Fault::Refused(words.to_owned())).to_string();
        let text = [
            named("NOPERM User careful has no permissions to run the 'config|get' command"),
            named("NOPERM this user has no permissions to run the 'INFO' command or its subcommand"),
            named("NOPERM No permissions to access a key"),
            named("WRONGPASS invalid username-password pair or user is disabled."),
        ];
        expect![[r#"
            refused: NOPERM User careful has no permissions to run the 'config|get' command; an administrator runs `ACL SETUSER NAME +config|get`
            refused: NOPERM this user has no permissions to run the 'INFO' command or its subcommand; an administrator runs `ACL SETUSER NAME +info`
            refused: NOPERM No permissions to access a key; an administrator runs `ACL SETUSER NAME ~tithe*`
            refused: WRONGPASS invalid username-password pair or user is disabled."#]]
        .assert_eq(&text.join("\n"));
    }
}
