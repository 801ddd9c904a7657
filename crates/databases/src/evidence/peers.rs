//! How a node of a launched cluster treats another one.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_plugin::{
    evidence::CheckContext,
    setup::{Setup, TlsVersion},
    wire::Wire,
};

use crate::target::{Authority, Tls};

/// Between two looks at a connection.
const PAUSE: Duration = Duration::from_millis(10);

/// How a node connects to another one, with its certificate or without.
pub fn tls(setup: &Setup, with_certificate: bool) -> Tls {
    let credentials = &setup.credentials;
    Tls {
        authority: Authority::Of(credentials.authority.clone()),
        server_name: None,
        versions: vec![TlsVersion::V1_3],
        // A node uses its server certificate as client, too.
        identity: with_certificate.then(|| (credentials.server_certificate.clone(), credentials.server_key.clone())),
        resumption: false,
        suite: None,
        protocol: None,
    }
}

/// True if a node answers within this time; false if it keeps the connection without a word.
///
/// # Errors
/// A broken connection.
pub fn answers(wire: &mut Wire, within: Duration) -> Result<bool, Fault> {
    speaks(wire, looks(within), || std::thread::sleep(PAUSE))
}

/// How many looks at a connection this time allows.
fn looks(within: Duration) -> u128 {
    within.as_millis() / PAUSE.as_millis()
}

/// True as soon as one of so many looks finds an answer, with a pause after each other one.
fn speaks(wire: &mut Wire, looks: u128, mut pause: impl FnMut()) -> Result<bool, Fault> {
    wire.set_blocking(false)?;
    for _ in 0..looks {
        if wire.fill()? {
            return Ok(true);
        }
        pause();
    }
    Ok(false)
}

/// Connects to a node's port with TLS and waits for its answer. A node that accepts the certificate waits for a message
/// without a limit; one that does not accept it answers at once.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn knock(context: &CheckContext<'_>, host: &str, port: u16, with_certificate: bool) -> Result<(), Fault> {
    let mut wire = Wire::connect(host, port)?;
    tls(context.setup, with_certificate).start(&mut wire, host, port)?;
    // One that is busy may be slow to say no.
    let patience = Duration::from_secs(if with_certificate { 1 } else { 10 });
    answers(&mut wire, patience).map(drop)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        net::{TcpListener, TcpStream},
    };

    use tithe_plugin::simulated::test_bench::Bench;

    use super::*;
    use crate::test_setup::plain;

    #[test]
    fn a_node_shows_the_certificate_of_its_server_or_none() {
        let setup = plain();
        let shown = tls(&setup, true);
        assert_eq!(shown.identity, Some(("/m/server.pem".into(), "/m/server.key".into())));
        assert_eq!(shown.authority, Authority::Of("/m/ca.pem".into()), "the run's own");
        assert_eq!(shown.versions, [TlsVersion::V1_3]);
        assert_eq!(tls(&setup, false), Tls { identity: None, ..shown });
    }

    /// Both ends of a connection to a node.
    fn connected() -> (Wire, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let wire = Wire::connect("127.0.0.1", port).expect("a connection");
        (wire, listener.accept().expect("the same connection").0)
    }

    #[test]
    fn a_node_answers_late_or_keeps_silent_or_closes_the_connection() {
        let (mut wire, mut node) = connected();
        let mut pauses = 0;
        assert_eq!(speaks(&mut wire, 5, || pauses += 1), Ok(false));
        assert_eq!(pauses, 5);
        // It answers during the eighth pause. The kernel delivers that at once, or as soon as it has a processor.
        let late = || {
            pauses += 1;
            if pauses == 8 {
                node.write_all(b"no").expect("sent");
            } else {
                std::thread::yield_now();
            }
        };
        assert_eq!(speaks(&mut wire, 1_000_000, late), Ok(true));
        assert!(pauses >= 8, "{pauses}");
        let (mut closed, node) = connected();
        drop(node);
        assert!(matches!(answers(&mut closed, Duration::from_secs(60)), Err(Fault::Connection(_))));
    }

    #[test]
    fn a_second_has_a_hundred_looks_and_no_time_has_none() {
        assert_eq!([0, 9, 10, 1000, 10_000].map(|ms| looks(Duration::from_millis(ms))), [0, 0, 1, 100, 1000]);
    }

    #[test]
    fn a_node_is_not_knocked_at_without_the_certificates_of_a_run() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let bench = Bench::plain();
        for with_certificate in [false, true] {
            assert!(knock(&bench.context(), "127.0.0.1", port, with_certificate).is_err());
        }
    }
}
