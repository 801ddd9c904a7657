//! How a server was started, and what has changed since.

use mongodb::bson::{Bson, Document, doc};
use tithe_machine::fault::Fault;

use super::super::{build::at, link::Link};

/// The role that an account needs to read both.
pub const RIGHT: &str = "the account needs the role clusterMonitor";

/// What a server reports about itself, or why it does not.
pub struct Options {
    /// `getCmdLineOpts`: options of the command line and of the configuration file.
    pub started: Result<Document, Fault>,
    /// `getParameter`: those of [`PARAMETERS`] that this server has.
    pub running: Result<Document, Fault>,
}

/// Requested parameters. A server leaves out those that it does not have.
const PARAMETERS: [&str; 5] = [
    "tlsMode",
    "authenticationMechanisms",
    "auditAuthorizationSuccess",
    "logComponentVerbosity",
    "redactClientLogData",
];

impl Options {
    /// Asks `link`.
    pub fn ask(link: &Link) -> Self {
        let started = link.admin(doc! { "getCmdLineOpts": 1 });
        let mut question = doc! { "getParameter": 1 };
        question.extend(PARAMETERS.map(|name| (name.to_owned(), Bson::Int32(1))));
        Self { started, running: link.admin(question) }
    }

    /// The option at `path`.
    ///
    /// # Errors
    /// Why the server does not say how it was started.
    pub fn option(&self, path: &[&str]) -> Result<Option<String>, Fault> {
        let started = self.started.as_ref().map_err(Clone::clone)?;
        Ok(at(started, &[&["parsed"], path].concat()))
    }

    /// True if the option at `path` is switched on.
    ///
    /// # Errors
    /// As [`Options::option`].
    pub fn is_on(&self, path: &[&str]) -> Result<bool, Fault> {
        Ok(self.option(path)?.as_deref() == Some("true"))
    }

    /// The parameter `name` as it is now, or as the server was started with it.
    ///
    /// # Errors
    /// As [`Options::option`], if neither can be read.
    pub fn parameter(&self, name: &str) -> Result<Option<String>, Fault> {
        match self.running.as_ref().ok().and_then(|running| at(running, &[name])) {
            Some(value) => Ok(Some(value)),
            None => self.option(&["setParameter", name]),
        }
    }

    /// The current TLS mode (`net.tls.mode`). While a server runs, `tlsMode` can make it stricter; the options do not
    /// show that.
    ///
    /// # Errors
    /// As [`Options::option`].
    pub fn tls_mode(&self) -> Result<TlsMode, Fault> {
        let started = self.tls_option(&["mode"]);
        match self.running.as_ref().ok().and_then(|running| at(running, &["tlsMode"])) {
            Some(now) => {
                let before = started.ok().flatten().filter(|before| *before != now);
                let before = before.map_or_else(String::new, |before| format!(" (started with {before})"));
                Ok(TlsMode { read: format!("getParameter: tlsMode = {now}{before}"), mode: Some(now) })
            }
            None => {
                let mode = started?;
                let read = format!("getCmdLineOpts: net.tls.mode = {}", mode.as_deref().unwrap_or("not set"));
                Ok(TlsMode { read, mode })
            }
        }
    }

    /// The TLS option at `path`, by the new name or, before 4.2, by the old one.
    ///
    /// # Errors
    /// As [`Options::option`].
    pub fn tls_option(&self, path: &[&str]) -> Result<Option<String>, Fault> {
        let new = self.option(&[&["net", "tls"], path].concat())?;
        let old = || self.option(&[&["net", "ssl"], path].concat());
        Ok(new.or(old()?).map(|value| value.replace("SSL", "TLS")))
    }
}

/// The TLS mode.
pub struct TlsMode {
    /// `disabled`, `allowTLS`, `preferTLS`, `requireTLS`; `None` if nothing is set.
    pub mode: Option<String>,
    /// The text that was read.
    pub read: String,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A server that was started with `parsed` and has the parameters `running` now.
    pub fn options(parsed: Document, running: Document) -> Options {
        Options { started: Ok(doc! { "parsed": parsed }), running: Ok(running) }
    }

    #[test]
    fn what_a_server_does_now_counts_and_old_names_are_read() {
        let mode = |options: Options| options.tls_mode().map(|mode| (mode.mode.unwrap_or_default(), mode.read));
        let of = |mode: &str, read: &str| Ok((mode.to_owned(), read.to_owned()));
        assert_eq!(
            mode(options(doc! { "net": { "tls": { "mode": "preferTLS" } } }, doc! { "tlsMode": "requireTLS" })),
            of("requireTLS", "getParameter: tlsMode = requireTLS (started with preferTLS)")
        );
        assert_eq!(
            mode(options(doc! { "net": { "ssl": { "mode": "requireSSL" } } }, doc! {})),
            of("requireTLS", "getCmdLineOpts: net.tls.mode = requireTLS")
        );
        assert_eq!(mode(options(doc! {}, doc! {})), of("", "getCmdLineOpts: net.tls.mode = not set"));
        let refused = || Fault::Refused("no".to_owned());
        assert_eq!(mode(Options { started: Err(refused()), running: Err(refused()) }), Err(refused()));
    }

    #[test]
    fn parameters_are_read_as_they_are_now() {
        let parameter = |parsed: Document, running: Document| options(parsed, running).parameter("p");
        let started = || doc! { "setParameter": { "p": "true" } };
        assert_eq!(parameter(started(), doc! { "p": false }), Ok(Some("false".to_owned())));
        assert_eq!(parameter(started(), doc! {}), Ok(Some("true".to_owned())));
        assert_eq!(parameter(doc! {}, doc! {}), Ok(None));
    }
}
