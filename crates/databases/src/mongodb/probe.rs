//! One greeting to a server, by Tithe's own client: which version of TLS it accepts, and from which clients.
//!
//! The driver offers every version of TLS that it knows and does not report which was chosen. Checks need to offer one.

use mongodb::bson::{RawDocument, doc};
use tithe_machine::fault::Fault;
use tithe_plugin::wire::TlsFacts;

use crate::target::Target;

/// What a greeting showed.
pub struct HelloReply {
    /// The TLS parameters that were negotiated, as the client sees them; `None` without TLS.
    pub tls: Option<TlsFacts>,
}

/// Header of every message: length, number, number of the answered message, kind; 4 bytes each, little-endian (MongoDB
/// documentation, "Wire Protocol").
const HEADER: usize = 16;
/// `OP_MSG`.
const MESSAGE: i32 = 2013;
/// Flags of a message, and the kind of its only section, which is a document.
const BEFORE_DOCUMENT: usize = 4 + 1;
/// Longest answer to a greeting that is read.
const LONGEST: usize = 1 << 20;

/// Connects to `target`, greets, and closes the connection.
///
/// # Errors
/// [`Fault::Refused`] if the server closes the connection at the greeting: it only has TLS, or rejects the client's
/// certificate. Otherwise a broken connection.
pub fn probe(target: &Target) -> Result<HelloReply, Fault> {
    let mut wire = target.dial()?;
    if let Some(tls) = &target.tls {
        tls.start(&mut wire, &target.host, target.port)?;
    }
    let greeting = doc! { "isMaster": 1, "$db": "admin" };
    let greeting = greeting.to_vec().map_err(|error| Fault::Protocol(error.to_string()))?;
    put_message(wire.output(), &greeting);
    wire.flush()?;
    let hung_up = |fault| match fault {
        Fault::Connection(words) => Fault::Refused(format!("at the first command: {words}")),
        fault => fault,
    };
    while !is_answered(wire.unread())? {
        wire.fill().map_err(hung_up)?;
    }
    Ok(HelloReply { tls: wire.tls_facts() })
}

fn put_message(out: &mut Vec<u8>, document: &[u8]) {
    let length = HEADER + BEFORE_DOCUMENT + document.len();
    for word in [length as i32, 1, 0, MESSAGE, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.push(0);
    out.extend_from_slice(document);
}

/// True if `received` is a complete answer with `ok`; false while it is incomplete.
///
/// # Errors
/// [`Fault::Protocol`] for bytes that are not such an answer.
pub fn is_answered(received: &[u8]) -> Result<bool, Fault> {
    let protocol = |what: &str| Fault::Protocol(format!("the answer to the greeting {what}"));
    let Some((length, _)) = received.split_first_chunk::<4>() else { return Ok(false) };
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| protocol("has a negative length"))?;
    if !(HEADER + BEFORE_DOCUMENT..=LONGEST).contains(&length) {
        return Err(protocol("has an impossible length"));
    }
    let Some(message) = received.get(..length) else { return Ok(false) };
    if message[HEADER - 4..HEADER] != MESSAGE.to_le_bytes() {
        return Err(protocol("is not a message"));
    }
    let document = RawDocument::from_bytes(&message[HEADER + BEFORE_DOCUMENT..]);
    let document = document.map_err(|_| protocol("is not a document"))?;
    let ok = document.get("ok").ok().flatten();
    match ok.and_then(|ok| ok.as_f64().or_else(|| ok.as_i32().map(f64::from))) {
        Some(1.0) => Ok(true),
        _ => Err(Fault::Refused("the server does not greet back".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(document: mongodb::bson::Document) -> Vec<u8> {
        let mut message = Vec::new();
        put_message(&mut message, &document.to_vec().expect("a document"));
        message
    }

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let whole = answer(doc! { "ok": 1.0 });
        for length in 0..whole.len() {
            assert_eq!(is_answered(&whole[..length]), Ok(false));
        }
        assert_eq!(is_answered(&whole), Ok(true));
        assert!(matches!(is_answered(&answer(doc! { "ok": 0.0 })), Err(Fault::Refused(_))));
        assert!(matches!(is_answered(b"HTTP/1.1 400 Bad Request\r\n"), Err(Fault::Protocol(_))));
    }

    proptest! {
        #[test]
        fn no_answer_breaks_the_probe(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..60, to: u8) {
            let _ = is_answered(&bytes);
            let mut bent = answer(doc! { "ok": 1.0, "text": "some words of the server" });
            let place = at % bent.len();
            bent[place] = to;
            let _ = is_answered(&bent);
        }
    }
}
