//! Commands of the user's own, as protections that data describe have them.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Row, Speaker, Statements},
    setup::Setup,
};

use super::{
    connection::{RedisConnection, Reply},
    store::administrator,
    target::of_clients,
};

/// Commands that change nothing although the server does not mark them so.
const ASKING: [&str; 8] = ["COMMAND", "DBSIZE", "ECHO", "GET", "INFO", "PING", "ROLE", "TIME"];

/// Commands of which the second word says what they do. Of others it may be a key, which may have any name.
const WITH_PARTS: [&str; 13] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB",
    "SCRIPT", "SLOWLOG",
];

/// Those of their second words that change nothing.
const ASKING_PARTS: [&str; 6] = ["DRYRUN", "GET", "GETUSER", "INFO", "LIST", "WHOAMI"];

/// A connection for them. If it is careful, a command that may change something is refused, or queued in a transaction
/// that is discarded.
pub struct Spoken {
    connection: RedisConnection,
    careful: bool,
}

impl Spoken {
    /// Connects as `speaker`.
    ///
    /// # Errors
    /// As [`RedisConnection::open`]; the server's error about the first commands of sessions.
    pub fn open(server: &Server, setup: &Setup, speaker: Speaker) -> Result<Self, Fault> {
        if speaker == Speaker::Administrator {
            return Ok(Self { connection: administrator(server, setup)?, careful: false });
        }
        let mut connection = RedisConnection::open(&of_clients(server, setup)?)?;
        setup.session_statements.iter().try_for_each(|statement| connection.run(statement).map(drop))?;
        Ok(Self { connection, careful: true })
    }

    /// True if `command` is known to the server, and may change something.
    fn may_change(&mut self, command: &str) -> bool {
        let words: Vec<String> = command.split_ascii_whitespace().map(str::to_ascii_uppercase).collect();
        let Some(first) = words.first().map(String::as_str) else { return false };
        let part = words.get(1).filter(|_| WITH_PARTS.contains(&first));
        if ASKING.contains(&first) || part.is_some_and(|part| ASKING_PARTS.contains(&part.as_str())) {
            return false;
        }
        let Ok(Reply::Array(known)) = self.connection.call(&["COMMAND", "INFO", first]) else { return true };
        match known.first() {
            Some(Reply::Array(parts)) => !matches!(parts.get(2), Some(Reply::Array(flags))
                if flags.iter().any(|flag| flag.text().as_deref() == Some("readonly"))),
            _ => false,
        }
    }
}

impl Statements for Spoken {
    fn rows(&mut self, command: &str) -> Result<Vec<Row>, Fault> {
        let queued = self.careful && self.may_change(command);
        if queued {
            self.connection.call(&["MULTI"])?;
        }
        let reply = self.connection.run(command);
        if queued {
            self.connection.call(&["DISCARD"])?;
        }
        Ok(match reply? {
            Reply::Array(replies) => replies.into_iter().map(row).collect(),
            Reply::Nothing => Vec::new(),
            reply => vec![row(reply)],
        })
    }
}

/// A reply within an array is a row, and an array in that a row of several values.
fn row(reply: Reply) -> Row {
    match reply {
        Reply::Array(values) => values.iter().map(Reply::text).collect(),
        value => vec![value.text()],
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use tithe_machine::launch::Address;
    use tithe_model::experiment::Url;

    use super::*;
    use crate::{redis::test_server::serve, test_setup::plain};

    /// Every command that one client sends, to a server that knows one that reads and one that writes.
    fn heard(stream: &TcpStream) -> std::io::Result<Vec<String>> {
        let mut heard = Vec::new();
        serve(stream, |words| {
            heard.push(words.join(" "));
            let reply = match heard.last().map_or("", String::as_str) {
                "COMMAND INFO STRLEN" => "*1\r\n*3\r\n$6\r\nstrlen\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n",
                "COMMAND INFO SET" => "*1\r\n*3\r\n$3\r\nset\r\n:-3\r\n*2\r\n+write\r\n+denyoom\r\n",
                "COMMAND INFO ACL" => "*1\r\n*3\r\n$3\r\nacl\r\n:-2\r\n*0\r\n",
                "COMMAND INFO SEET" => "*1\r\n*-1\r\n",
                _ => "+OK\r\n",
            };
            reply.to_owned()
        })?;
        Ok(heard)
    }

    /// What the server receives for `command` from this speaker.
    fn sent(command: &str, speaker: Speaker) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let serving = std::thread::spawn(move || heard(&listener.accept().expect("a client").0).expect("commands"));
        let server = Server::at(Address::Attached(Url::new(format!("redis://127.0.0.1:{port}"))));
        let mut spoken = Spoken::open(&server, &plain(), speaker).expect("it asks for no password");
        spoken.rows(command).expect("an answer");
        drop(spoken);
        let mut heard = serving.join().expect("the server ends");
        assert_eq!(heard.remove(0), "PING", "how a connection begins");
        heard
    }

    #[test]
    fn a_claim_that_may_change_something_is_queued_and_discarded() {
        // A command counts as one that changes something unless its entry or the server says otherwise.
        // A key may have the name of a command.
        for command in ["SET a 1", "SET info 1", "acl setuser b", "acl setuser info", "LATENCY RESET"] {
            let asked = format!("COMMAND INFO {}", command.split(' ').next().expect("a word").to_uppercase());
            let expected = [asked.as_str(), "MULTI", command, "DISCARD"];
            assert_eq!(sent(command, Speaker::CarefulClient), expected);
            assert_eq!(sent(command, Speaker::Administrator), [command], "an administrator may change things");
        }
    }

    #[test]
    fn a_claim_that_only_asks_is_sent_as_it_is() {
        for command in ["GET a", "info server", "ACL WHOAMI", "CONFIG GET port"] {
            assert_eq!(sent(command, Speaker::CarefulClient), [command]);
        }
        let read = sent("STRLEN a", Speaker::CarefulClient);
        assert_eq!(read, ["COMMAND INFO STRLEN", "STRLEN a"], "the server marks what reads");
        let unknown = sent("SEET a", Speaker::CarefulClient);
        assert_eq!(unknown, ["COMMAND INFO SEET", "SEET a"], "nothing happens anyway");
    }
}
