//! Statements of the user's own, as protections that data describe have them.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Row, Speaker, Statements},
    setup::Setup,
};

use super::{connection::CqlConnection, store::administrator, target::of_clients};

/// How statements begin that change nothing.
const ASKING: [&str; 2] = ["SELECT", "LIST"];

/// A connection for them. If it is careful, it sends nothing that may change something.
pub struct Spoken {
    connection: CqlConnection,
    careful: bool,
}

impl Spoken {
    /// Connects as `speaker`.
    ///
    /// # Errors
    /// As [`CqlConnection::open`]; the server's error about the first statements of sessions.
    pub fn open(server: &Server, setup: &Setup, speaker: Speaker) -> Result<Self, Fault> {
        if speaker == Speaker::Administrator {
            return Ok(Self { connection: administrator(server, setup)?, careful: false });
        }
        let mut connection = CqlConnection::open(&of_clients(server, setup)?)?;
        setup.session_statements.iter().try_for_each(|statement| connection.run(statement).map(drop))?;
        Ok(Self { connection, careful: true })
    }
}

impl Statements for Spoken {
    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Fault> {
        if self.careful {
            only_asks(statement)?;
        }
        let text = |value: Option<Vec<u8>>| value.map(|value| String::from_utf8_lossy(&value).into_owned());
        Ok(self.connection.run(statement)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }
}

/// Checks that `statement` changes nothing.
///
/// # Errors
/// [`Fault::Protocol`] with its first word, if that may begin a change.
fn only_asks(statement: &str) -> Result<(), Fault> {
    let first = statement.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    if ASKING.contains(&first.as_str()) {
        return Ok(());
    }
    Err(Fault::Protocol(format!("a claim begins with {}, and not with {first}", ASKING.join(" or "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_begins_with_a_word_that_asks() {
        for statement in ["SELECT key FROM system.local", "  list ROLES", "Select\nnow() FROM system.local"] {
            assert_eq!(only_asks(statement), Ok(()), "{statement}");
        }
        let others = [("DROP a", "DROP"), ("update a", "UPDATE"), ("LISTS", "LISTS"), ("a LIST", "A"), ("", "")];
        for (statement, first) in others {
            let words = format!("a claim begins with SELECT or LIST, and not with {first}");
            assert_eq!(only_asks(statement), Err(Fault::Protocol(words)), "{statement}");
        }
    }
}
