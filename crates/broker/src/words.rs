//! Messages for users about a broker. Text from a broker is shortened, and line breaks and terminal escape sequences
//! are removed.

use std::{error::Error, io};

use async_nats::{ConnectError, ConnectErrorKind};
use rustls::AlertDescription;
use tithe_machine::fault::Fault;
use tithe_plugin::wire::tls_fault;

use crate::address::BrokerUrl;

/// Maximum number of characters that are quoted from a broker.
const QUOTE_LENGTH: usize = 160;

/// Why `at` could not be connected to.
pub(crate) fn not_connected(at: &BrokerUrl, error: &ConnectError) -> Fault {
    not_connected_by(error.kind(), error).of(broker(at))
}

fn not_connected_by(kind: ConnectErrorKind, error: &(dyn Error + 'static)) -> Fault {
    match kind {
        ConnectErrorKind::AuthorizationViolation => Fault::Refused(
            "the server refuses these credentials (Authorization Violation): compare them with the accounts in its \
             configuration"
                .to_owned(),
        ),
        ConnectErrorKind::Authentication => Fault::Machine(
            "the seed among the credentials cannot sign: it is damaged: make or copy it again".to_owned(),
        ),
        ConnectErrorKind::TimedOut => Fault::Connection(SILENT.to_owned()),
        ConnectErrorKind::Dns => Fault::Connection(format!("its name does not resolve here: {}", cause(error))),
        _ => by_cause(error),
    }
}

/// Text for a broker that took too long.
const SILENT: &str = "it does not answer in time: is this a NATS server, and does a firewall block it?";

/// A broker that took too long.
pub(crate) fn silent(at: &BrokerUrl) -> Fault {
    Fault::Connection(SILENT.to_owned()).of(broker(at))
}

/// A broker that sends what the library cannot process.
pub(crate) fn broken(at: &BrokerUrl) -> Fault {
    Fault::Protocol("its answer is not that of a NATS server".to_owned()).of(broker(at))
}

/// A broker whose connection was lost; `trouble` is the error of the last attempt to reconnect.
pub(crate) fn lost(at: &BrokerUrl, trouble: Option<&str>) -> Fault {
    let trouble = trouble.map(|trouble| format!("; last try: {}", quoted(trouble))).unwrap_or_default();
    Fault::Connection(format!("the connection was lost and is being opened again{trouble}")).of(broker(at))
}

/// A link that has ended for good.
pub(crate) fn closed(at: &BrokerUrl) -> Fault {
    Fault::Connection("the link to it has ended".to_owned()).of(broker(at))
}

/// A right that an account lacks: `right` is `publish` or `subscribe`.
pub(crate) fn no_right(at: &BrokerUrl, right: &str, subject: &str) -> Fault {
    let words =
        format!("this account has no right to {right} {subject}: its permissions are in the broker's configuration");
    Fault::Refused(words).of(broker(at))
}

/// The name of a broker in errors.
pub(crate) fn broker(at: &BrokerUrl) -> String {
    format!("broker {at}")
}

/// `text` made safe for display.
pub(crate) fn quoted(text: &str) -> String {
    let escaped =
        |delivery: char| if delivery.is_control() { delivery.escape_debug().to_string() } else { delivery.into() };
    let shown: String = text.chars().take(QUOTE_LENGTH).map(escaped).collect();
    if text.chars().nth(QUOTE_LENGTH).is_some() { format!("{shown}…") } else { shown }
}

fn by_cause(error: &(dyn Error + 'static)) -> Fault {
    if let Some(error) = find::<rustls::Error>(error) {
        return of_tls(error);
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            Fault::Connection("nothing listens there: is nats-server running, and is this its port?".to_owned())
        }
        _ => Fault::Connection(format!("is this a NATS server? {}", cause(error))),
    }
}

fn of_tls(error: &rustls::Error) -> Fault {
    match error {
        rustls::Error::InvalidMessage(_) | rustls::Error::InappropriateMessage { .. } => Fault::Refused(
            "it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)"
                .to_owned(),
        ),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::BadCertificate) => {
            Fault::Refused("it asks for a client's certificate that its own authority has signed".to_owned())
        }
        error => tls_fault(error.clone()),
    }
}

/// The innermost error's text.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(inner) = inner(innermost) {
        innermost = inner;
    }
    quoted(&innermost.to_string())
}

/// The first error of this kind in or below `error`.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = inner(error);
    }
    None
}

/// The cause of `error`. An I/O error holds its cause itself, but its `source` is the cause of that cause.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(held) => Some(held),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, InvalidMessage};

    use expect_test::expect;

    use super::*;

    fn at() -> BrokerUrl {
        "tls://broker".parse().expect("an address")
    }

    /// As the library wraps an error of TLS.
    fn tls(error: rustls::Error) -> (ConnectErrorKind, io::Error) {
        (ConnectErrorKind::Io, io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    #[test]
    fn each_way_of_not_being_connected_has_its_words() {
        let errors = [
            (ConnectErrorKind::AuthorizationViolation, io::Error::other("")),
            (ConnectErrorKind::Authentication, io::Error::other("")),
            (ConnectErrorKind::TimedOut, io::Error::other("")),
            (ConnectErrorKind::Dns, io::Error::other("Name or service not known")),
            (ConnectErrorKind::Io, io::ErrorKind::ConnectionRefused.into()),
            (ConnectErrorKind::Io, io::Error::other(format!("expected INFO, got \u{1b}[31m{}", "x".repeat(500)))),
            tls(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)),
            tls(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)),
            tls(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        ];
        let say = |(kind, error): &(ConnectErrorKind, io::Error)| not_connected_by(*kind, error).to_string();
        expect![[r#"
            refused: the server refuses these credentials (Authorization Violation): compare them with the accounts in its configuration
            the seed among the credentials cannot sign: it is damaged: make or copy it again
            connection: it does not answer in time: is this a NATS server, and does a firewall block it?
            connection: its name does not resolve here: Name or service not known
            connection: nothing listens there: is nats-server running, and is this its port?
            connection: is this a NATS server? expected INFO, got \u{1b}[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
            refused: it answers without TLS, so nothing is sent to it: give it a certificate (`tls` in its configuration)
            refused: it asks for a client's certificate that its own authority has signed
            refused: TLS: the server's certificate was signed by no authority that is trusted here: name the file of its authority, or of the certificate itself if it is self-signed"#]].assert_eq(&errors.each_ref().map(say).join("\n"));
    }

    #[test]
    fn what_is_lost_or_not_allowed_is_named() {
        let said = [
            lost(&at(), None),
            lost(&at(), Some("TLS\nerror")),
            silent(&at()),
            closed(&at()),
            broken(&at()),
            no_right(&at(), "publish", "tithe.go"),
        ]
        .map(|fault| fault.to_string());
        expect![[r#"
            connection: broker tls://broker:4222: the connection was lost and is being opened again
            connection: broker tls://broker:4222: the connection was lost and is being opened again; last try: TLS\nerror
            connection: broker tls://broker:4222: it does not answer in time: is this a NATS server, and does a firewall block it?
            connection: broker tls://broker:4222: the link to it has ended
            protocol: broker tls://broker:4222: its answer is not that of a NATS server
            refused: broker tls://broker:4222: this account has no right to publish tithe.go: its permissions are in the broker's configuration"#]].assert_eq(&said.join("\n"));
    }
}
