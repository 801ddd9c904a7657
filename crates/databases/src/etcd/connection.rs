//! One connection to etcd, from TCP to login, and calls on it that are not measured.
//!
//! There is no fallback. Three kinds of server are refused: one without TLS; one that asks for a password that was not
//! given; and one that does not ask for the password that it should.

use tithe_machine::fault::Fault;
use tithe_plugin::wire::TlsFacts;

use super::{
    http2::{Http2, NO_QUORUM},
    keys::SPACE,
    messages::{AUTHENTICATE, Fields, RANGE, put_bytes, put_number},
};
use crate::target::{SPEAKS_TLS, Target};

/// A connection after the login; it is blocking.
pub struct EtcdConnection {
    http: Http2,
    method: &'static str,
}

/// The server's message to a client with a password if authentication is off.
const ASKS_NOT: &str = "authentication is not enabled";

/// Header field of requests with the token of the login.
const TOKEN: &str = "token";

impl EtcdConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target) -> Result<Self, Fault> {
        target.log_in(Self::start_up)
    }

    fn start_up(target: &Target) -> Result<Self, Fault> {
        let wire = target.dial_encrypted(SPEAKS_TLS)?;
        let authority = format!("{}:{}", target.host, target.port);
        let mut connection = Self { http: Http2::new(wire, &authority)?, method: "none" };
        connection.enter(target).map_err(|fault| match fault {
            // A TLS listener closes plaintext connections, and those of a client without the certificate that it
            // requires.
            Fault::Connection(words) if !words.contains(NO_QUORUM) => {
                let hint = if target.tls.is_none() { ": a listener with TLS speaks nothing else" } else { "" };
                Fault::Refused(format!("at the first call: {words}{hint}"))
            }
            fault => fault,
        })?;
        Ok(connection)
    }

    /// Finds out whether the server asks for a password, and sends it.
    fn enter(&mut self, target: &Target) -> Result<(), Fault> {
        let Some(password) = &target.password else {
            return match self.range(SPACE.as_bytes(), b"", 1) {
                Ok(_) if target.must_ask => Err(Fault::Refused(
                    "the server lets clients in without the password that it should ask for".to_owned(),
                )),
                Ok(_) => Ok(()),
                // A client with a certificate is the account that its common name names.
                Err(fault) => Err(unnamed(fault)),
            };
        };
        let given = self.call(AUTHENTICATE, |out| {
            put_bytes(out, 1, &[target.user.as_bytes()]);
            put_bytes(out, 2, &[password.expose()]);
        });
        match given {
            Ok(answer) => {
                let token = Fields(&answer).texts(2)?.pop().unwrap_or_default();
                self.http.bear(TOKEN, &token);
                self.method = "user and password";
                Ok(())
            }
            Err(Fault::Refused(words)) if words.contains(ASKS_NOT) && !target.must_ask => Ok(()),
            Err(Fault::Refused(words)) if words.contains(ASKS_NOT) => {
                Err(Fault::Refused("the server lets clients in without the password that it should ask for".to_owned()))
            }
            Err(fault) => Err(fault),
        }
    }

    /// True if auth is enabled. A client whose certificate names its account was not asked for a password.
    ///
    /// # Errors
    /// As [`EtcdConnection::call`].
    pub fn asks(&mut self) -> Result<bool, Fault> {
        // For a name that nobody has, so that no account is locked or logged in.
        match self.call(AUTHENTICATE, |out| put_bytes(out, 1, &[b"tithe-is-nobody"])) {
            Err(Fault::Refused(words)) if words.contains(ASKS_NOT) => Ok(false),
            Ok(_) | Err(Fault::Refused(_)) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// How the client authenticated: `none`, `user and password`.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.http.tls_facts()
    }

    /// The connection, for the measured session.
    pub fn into_http(self) -> Http2 {
        self.http
    }

    /// Calls `path` with the message that `put` writes, and waits for the message of the answer.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn call(&mut self, path: &str, put: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, Fault> {
        self.http.submit(path, put)?;
        loop {
            if let Some(answer) = self.http.advance()? {
                return Ok(answer.to_vec());
            }
        }
    }

    /// The answer about at most `limit` keys from `key` up to, but not including, `end`; about `key` alone if `end` is
    /// empty.
    ///
    /// # Errors
    /// As [`EtcdConnection::call`].
    pub fn range(&mut self, key: &[u8], end: &[u8], limit: u64) -> Result<Vec<u8>, Fault> {
        self.call(RANGE, |out| {
            put_bytes(out, 1, &[key]);
            put_bytes(out, 2, &[end]);
            put_number(out, 3, limit);
        })
    }
}

/// The fault of a first call without a password. An alert of TLS is about the client's certificate: nobody has asked
/// for a password yet.
fn unnamed(fault: Fault) -> Fault {
    match fault {
        Fault::Refused(words) if !words.starts_with("TLS: ") => {
            Fault::Refused(format!("the server asks for a user and password: {words}"))
        }
        fault => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_refused_is_no_question_for_a_password() {
        let refused = |words: &str| unnamed(Fault::Refused(words.to_owned())).to_string();
        let asked = "refused: the server asks for a user and password: etcdserver: user name is empty";
        assert_eq!(refused("etcdserver: user name is empty"), asked);
        let alert = "TLS: received fatal alert: BadCertificate";
        assert_eq!(refused(alert), format!("refused: {alert}"));
    }
}
