//! One connection to OpenSearch, from TCP to login, and requests on it that are not measured.
//!
//! There is no fallback. Three kinds of server are refused: one without TLS; one that asks for a password that was not
//! given; and one that does not ask for the password that it should. A login is not a state of the connection: each
//! request carries user and password.

use serde_json::Value;
use tithe_machine::fault::Fault;
use tithe_plugin::wire::TlsFacts;

use super::http::{Answer, Http, UNSERVED, error, json};
use crate::target::{SPEAKS_TLS, Target};

/// A connection after the login; it is blocking.
pub struct OpenSearchConnection {
    http: Http,
    method: &'static str,
}

/// The message of a server without an endpoint: only one without the plugin lacks those of the plugin.
pub const NO_HANDLER: &str = "no handler found";

/// How clients with a password authenticated.
const BASIC: &str = "user and password";

impl OpenSearchConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target) -> Result<Self, Fault> {
        target.log_in(|target| Self::start_up(target, false))
    }

    /// The same, and sends the password without waiting to be asked: a server with anonymous clients never asks.
    ///
    /// # Errors
    /// As [`OpenSearchConnection::open`].
    pub fn open_unasked(target: &Target) -> Result<Self, Fault> {
        target.log_in(|target| Self::start_up(target, true))
    }

    fn start_up(target: &Target, unasked: bool) -> Result<Self, Fault> {
        let wire = target.dial_encrypted(SPEAKS_TLS)?;
        let authority = format!("{}:{}", target.host, target.port);
        let mut connection = Self { http: Http::new(wire, &authority), method: "none" };
        connection.enter(target, unasked).map_err(|fault| match fault {
            // A TLS listener closes plaintext connections or answers with an alert, and closes those of a client
            // without the certificate that it requires.
            Fault::Connection(words) | Fault::Protocol(words) if !words.contains(UNSERVED) => {
                let hint = if target.tls.is_none() { ": a listener with TLS speaks nothing else" } else { "" };
                Fault::Refused(format!("at the first request: {words}{hint}"))
            }
            fault => fault,
        })?;
        Ok(connection)
    }

    /// Finds out whether the server asks for a password, and sends it.
    fn enter(&mut self, target: &Target, unasked: bool) -> Result<(), Fault> {
        if !unasked {
            let asks = !self.ask("GET /", knows_client)?;
            if asks && target.password.is_none() {
                return Err(Fault::Refused("the server asks for a user and password: 401: Unauthorized".to_owned()));
            }
            if !asks && target.must_ask {
                let words = "the server lets clients in without the password that it should ask for";
                return Err(Fault::Refused(words.to_owned()));
            }
            // One that lets anonymous clients in may have accounts as well.
            if !asks && (target.password.is_none() || !self.has_accounts()?) {
                return Ok(());
            }
        }
        let Some(password) = &target.password else { return Ok(()) };
        self.http.log_in(&target.user, password);
        self.method = BASIC;
        if self.ask("GET /", knows_client)? {
            return Ok(());
        }
        Err(Fault::Refused("user and password are refused: 401: Unauthorized".to_owned()))
    }

    /// True if the server has accounts: it runs the whole security plugin.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn has_accounts(&mut self) -> Result<bool, Fault> {
        match self.request("GET /_plugins/_security/authinfo") {
            Ok(_) | Err(Fault::Refused(_)) => Ok(true),
            Err(Fault::Server(words)) if words.contains(NO_HANDLER) => Ok(false),
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
    pub fn into_http(self) -> Http {
        self.http
    }

    /// The answer to a request: method, target and, after a blank, its body.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn request(&mut self, request: &str) -> Result<Value, Fault> {
        self.ask(request, value)
    }

    /// The health of the cluster, whether it is what `asked` waits for or not.
    ///
    /// # Errors
    /// As [`OpenSearchConnection::request`].
    pub fn health(&mut self, asked: &str) -> Result<Value, Fault> {
        // A wait that ends without success is answered with status 408.
        let read = |answer: Answer<'_>| {
            value(Answer { status: if answer.status == 408 { 200 } else { answer.status }, ..answer })
        };
        self.ask(&format!("GET /_cluster/health{asked}"), read)
    }

    /// The same; `None` if what it is about is missing.
    ///
    /// # Errors
    /// As [`OpenSearchConnection::request`].
    pub fn find(&mut self, request: &str) -> Result<Option<Value>, Fault> {
        match self.request(request) {
            Err(Fault::Server(words)) if words.starts_with("404") => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// What `read` makes of the answer to `request`.
    fn ask<T>(&mut self, request: &str, read: fn(Answer<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        put_request(&mut self.http, request)?;
        loop {
            if let Some(answer) = self.http.advance()? {
                return read(answer);
            }
        }
    }
}

/// True if the server knows the client, which may not be allowed anything; false if it asks for another login.
fn knows_client(answer: Answer<'_>) -> Result<bool, Fault> {
    match answer.status {
        200..=299 | 403 => Ok(true),
        401 => Ok(false),
        _ => Err(error(answer)),
    }
}

/// The JSON of a good answer.
fn value(answer: Answer<'_>) -> Result<Value, Fault> {
    if !(200..300).contains(&answer.status) {
        return Err(error(answer));
    }
    json(answer.body)
}

/// Sends `request`: method, target and, after a blank, its body.
///
/// # Errors
/// A broken connection.
pub fn put_request(http: &mut Http, request: &str) -> Result<(), Fault> {
    let mut parts = request.splitn(3, ' ');
    let (method, target, body) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
    let line = [method.unwrap_or("GET"), " ", target.unwrap_or("/")].concat();
    // One line, whatever a statement of an experiment holds.
    let line = line.replace(|letter: char| letter.is_control() || !letter.is_ascii(), "");
    http.submit(|out| out.extend_from_slice(line.as_bytes()), |out| out.extend_from_slice(body.as_bytes()))
}
