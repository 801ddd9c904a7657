//! From a TCP connection to a logged-in session: TLS if requested, authentication, the server's greeting.
//!
//! Source: PostgreSQL documentation, chapter "Frontend/Backend Protocol", sections "Start-up" and "SSL Session
//! Encryption". There is no fallback. Three kinds of server are refused: one without TLS if TLS was requested; one that
//! requests a weaker proof than SCRAM-SHA-256 on a connection that others could read; and one that requests no proof
//! although a password was given.

use md5::{Digest, Md5};
use tithe_machine::{
    fault::Fault,
    secret::{Secret, hex},
};
use tithe_plugin::wire::Wire;

use super::{
    binding,
    protocol::{AuthRequest, Body, Message, Writer, authentication, next_frame, server_error},
    scram,
};
use crate::target::{Target, Tls};

/// What the server sent during the login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Number of the server process of this connection, on the server's machine.
    pub process: Option<i32>,
    /// The key for [`cancel`], which begins with that number.
    pub key: Option<Vec<u8>>,
    /// How the client authenticated: `scram-sha-256`, `scram-sha-256-plus`, `md5`, `password`, or [`NO_PASSWORD`].
    pub method: String,
    /// Rounds of key stretching in SCRAM, which are those of the verifier that the server stores.
    pub rounds: Option<u32>,
}

/// Parameter with statements of the command line for the session.
pub const OPTIONS: &str = "options";
/// Parameter that ties the login to the TLS connection.
pub const CHANNEL_BINDING: &str = "channel_binding";
/// Parameter with the ways of logging in that are allowed.
pub const REQUIRE_AUTH: &str = "require_auth";

/// The [`Greeting::method`] of clients that log in without a password.
pub const NO_PASSWORD: &str = "none";

/// The [`Greeting::method`] of clients whose login is bound to their TLS connection.
pub const BOUND: &str = "scram-sha-256-plus";

/// Opens a connection and runs the start-up. The connection is still blocking.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target) -> Result<(Wire, Greeting), Fault> {
    target.log_in(start_up)
}

/// Cancels the request of the connection with this `key` (documentation, "Canceling Requests in Progress").
///
/// # Errors
/// A broken connection.
pub fn cancel(target: &Target, key: &[u8]) -> Result<(), Fault> {
    let mut wire = dial(target)?;
    write(&mut wire).cancel(key);
    wire.flush()
}

/// Opens a connection, with TLS if it is requested.
fn dial(target: &Target) -> Result<Wire, Fault> {
    let mut wire = target.dial()?;
    if let Some(tls) = &target.tls {
        start_tls(&mut wire, target, tls)?;
    }
    Ok(wire)
}

fn start_up(target: &Target) -> Result<(Wire, Greeting), Fault> {
    let mut wire = dial(target)?;
    let mut parameters = vec![
        ("user", target.user.as_str()),
        ("database", &target.database),
        ("client_encoding", "UTF8"),
        ("application_name", "tithe"),
    ];
    parameters.extend(target.asked.get(OPTIONS).map(|options| ("options", options.as_str())));
    write(&mut wire).startup(&parameters);
    wire.flush()?;
    let (method, rounds) = authenticate(&mut wire, target)?;
    let key = await_ready(&mut wire)?;
    let process = key.as_ref().map(|key| Body::new(key).be_i32()).transpose()?;
    Ok((wire, Greeting { process, key, method: method.to_owned(), rounds }))
}

fn write(wire: &mut Wire) -> Writer<'_> {
    Writer { out: wire.output() }
}

/// The next message; waits for it. The start-up runs on a connection that blocks.
fn receive(wire: &mut Wire) -> Result<Message, Fault> {
    loop {
        if let Some(frame) = next_frame(wire.unread())? {
            return Ok(frame);
        }
        wire.fill()?;
    }
}

fn start_tls(wire: &mut Wire, target: &Target, tls: &Tls) -> Result<(), Fault> {
    write(wire).tls_request();
    wire.flush()?;
    wire.fill()?;
    let answer = wire.unread().first().copied();
    match answer {
        Some(b'S') => {
            wire.consume(1);
            tls.start(wire, &target.host, target.port)
        }
        Some(b'N') => Err(Fault::Refused("TLS was asked for, and the server offers none".to_owned())),
        // An old server, or one that is out of memory, answers with an error; its text is not trusted.
        _ => Err(Fault::Protocol("the server does not answer the request for TLS".to_owned())),
    }
}

/// Authenticates the client, and checks that the server knows the password. Returns the method, and the rounds of
/// SCRAM.
fn authenticate(wire: &mut Wire, target: &Target) -> Result<(&'static str, Option<u32>), Fault> {
    let mut exchange = None;
    let mut expected: Option<scram::Expected> = None;
    let mut mechanism = scram::MECHANISM;
    let (mut proven, mut rounds) = (None, None);
    loop {
        let frame = receive(wire)?;
        let body = &wire.unread()[frame.body.clone()];
        let mut reply = None;
        match frame.kind {
            b'R' => match authentication(body)? {
                AuthRequest::Nothing => {
                    wire.consume(frame.body.end);
                    let method = method(proven, expected.is_some(), target)?;
                    return Ok((allowed(method, target)?, rounds));
                }
                AuthRequest::Sasl(mechanisms) => {
                    let offered = |name: &str| mechanisms.contains(&name.as_bytes());
                    let binds = target.mechanism.as_deref() == Some(BOUND)
                        || target.asked.get(CHANNEL_BINDING).is_some_and(|asked| asked == "require");
                    let name = if binds { scram::WITH_BINDING } else { scram::MECHANISM };
                    if !offered(name) {
                        return Err(Fault::Refused(format!("the server asks for a proof, and offers no {name}")));
                    }
                    given(target)?;
                    let begun = scram::Exchange::begin(if binds { Some(binding(wire)?) } else { None });
                    reply = Some(Reply::First(begun.mechanism(), begun.first()));
                    exchange = Some(begun);
                }
                AuthRequest::Clear => {
                    let password = given_in_secret(target, "the password itself")?.expose().to_vec();
                    reply = Some(Reply::Password(password));
                    proven = Some("password");
                }
                AuthRequest::Md5(salt) => {
                    let password = given_in_secret(target, "an MD5 hash of the password")?;
                    let stored = md5(&[password.expose(), target.user.as_bytes()]);
                    reply = Some(Reply::Password(format!("md5{}", md5(&[stored.as_bytes(), salt])).into_bytes()));
                    proven = Some("md5");
                }
                AuthRequest::SaslContinue(challenge) => {
                    let (Some(begun), Some(password)) = (exchange.take(), &target.password) else {
                        return Err(out_of_order());
                    };
                    mechanism = begun.mechanism();
                    let (last, checks) = begun.prove(challenge, password)?;
                    reply = Some(Reply::Last(last));
                    expected = Some(checks);
                }
                AuthRequest::SaslFinal(signature) => {
                    let checks = expected.take().ok_or_else(out_of_order)?;
                    checks.check(signature)?;
                    rounds = Some(checks.rounds);
                    proven = Some(if mechanism == scram::MECHANISM { "scram-sha-256" } else { BOUND });
                }
                AuthRequest::Other(name) => {
                    return Err(Fault::Refused(format!(
                        "the server asks for {name}; passwords are spoken (SCRAM-SHA-256, MD5, in the clear), and \
                         client certificates"
                    )));
                }
            },
            b'E' => return Err(server_error(body)?.fault()),
            b'N' => {}
            kind => return Err(unexpected(kind)),
        }
        wire.consume(frame.body.end);
        if let Some(reply) = reply {
            reply.send(wire)?;
        }
    }
}

/// The configured password.
fn given(target: &Target) -> Result<&Secret, Fault> {
    let missing = || Fault::Refused("the server asks for a password, and none is given".to_owned());
    target.password.as_ref().ok_or_else(missing)
}

/// The password, if what is sent of it (`what`) cannot be read by others.
fn given_in_secret<'a>(target: &'a Target, what: &str) -> Result<&'a Secret, Fault> {
    if target.keeps_secrets() {
        return given(target);
    }
    Err(Fault::Refused(format!(
        "the server asks for {what}, which is sent over TLS with a verified certificate or over a Unix socket only: name \
         one of them in the URL, or have the server ask for scram-sha-256"
    )))
}

/// The hash of the server's certificate.
fn binding(wire: &Wire) -> Result<Vec<u8>, Fault> {
    let no_tls = || {
        Fault::Refused("channel_binding=require needs TLS: the protection `tls`, or a URL that asks for it".to_owned())
    };
    let no_hash = || Fault::Refused("channel binding is not defined for the server's kind of certificate".to_owned());
    binding::of_certificate(wire.server_certificate().ok_or_else(no_tls)?).ok_or_else(no_hash)
}

/// The MD5 hash of `parts`, in hexadecimal, as PostgreSQL uses it.
fn md5(parts: &[&[u8]]) -> String {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hex(&hash.finalize())
}

/// The method with which the server accepted this login.
fn method(proven: Option<&'static str>, unchecked: bool, target: &Target) -> Result<&'static str, Fault> {
    match (proven, unchecked, target.must_ask) {
        (Some(method), ..) => Ok(method),
        (None, true, _) => Err(Fault::Refused("the server did not prove that it knows the password".to_owned())),
        (None, false, true) => {
            Err(Fault::Refused("the server lets clients in without the password that it should ask for".to_owned()))
        }
        (None, false, false) => Ok(NO_PASSWORD),
    }
}

/// `method`, if the URL's `require_auth` allows it; a `!` before its names allows all others.
fn allowed(method: &'static str, target: &Target) -> Result<&'static str, Fault> {
    let Some(list) = target.asked.get(REQUIRE_AUTH).filter(|list| !list.is_empty()) else { return Ok(method) };
    let plain = method.trim_end_matches("-plus");
    let names: Vec<&str> = list.split(',').map(str::trim).collect();
    let forbids = names.iter().all(|name| name.starts_with('!'));
    let listed = names.iter().any(|name| name.trim_start_matches('!') == plain);
    if listed != forbids {
        return Ok(method);
    }
    Err(Fault::Refused(format!("the server lets clients in by {method}, which require_auth does not allow")))
}

enum Reply {
    Password(Vec<u8>),
    First(&'static str, String),
    Last(String),
}

impl Reply {
    fn send(self, wire: &mut Wire) -> Result<(), Fault> {
        match self {
            Self::Password(password) => write(wire).password(&password),
            Self::First(mechanism, message) => write(wire).sasl_initial(mechanism, message.as_bytes()),
            Self::Last(message) => write(wire).sasl_response(message.as_bytes()),
        }
        wire.flush()
    }
}

/// Reads the server's greeting up to its first `ReadyForQuery`. Returns its process number, followed by the secret.
fn await_ready(wire: &mut Wire) -> Result<Option<Vec<u8>>, Fault> {
    let mut key = None;
    loop {
        let frame = receive(wire)?;
        let body = &wire.unread()[frame.body.clone()];
        match frame.kind {
            b'K' => key = Some(body.to_vec()),
            b'E' => return Err(server_error(body)?.fault()),
            b'S' | b'N' | b'Z' => {}
            kind => return Err(unexpected(kind)),
        }
        wire.consume(frame.body.end);
        if frame.kind == b'Z' {
            return Ok(key);
        }
    }
}

/// An error for a message that is not allowed at this point.
pub fn unexpected(kind: u8) -> Fault {
    Fault::Protocol(format!("a message of type 0x{kind:02x} has no place here"))
}

fn out_of_order() -> Fault {
    Fault::Protocol("SCRAM: a message out of order".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        io::{Read as _, Write as _},
        net::{Shutdown, TcpListener},
    };

    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use tithe_plugin::{
        session::{Discard, SqlSession as _},
        setup::TlsVersion,
    };

    use super::*;
    use crate::{postgres::session::PostgresSession, target::Authority};

    /// The client's result with a server that answers `said` to every request.
    fn meet(said: &[u8], change: impl FnOnce(&mut Target)) -> Result<(), Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut target = Target {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().expect("bound").port(),
            user: "tithe".to_owned(),
            database: "postgres".to_owned(),
            ..Target::default()
        };
        change(&mut target);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.write_all(said).expect("sent");
                stream.shutdown(Shutdown::Write).expect("shut");
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let mut session = PostgresSession::open(&target, false)?;
            let statement = session.prepare("SELECT ?")?;
            session.submit(statement, &[])?;
            session.advance(&mut Discard).map(drop)
        })
    }

    fn check(said: &[u8], change: impl FnOnce(&mut Target), expect: Expect) {
        expect.assert_eq(&meet(said, change).expect_err("a fault").to_string());
    }

    fn with_password(target: &mut Target) {
        target.password = Some(Secret::new("correct horse"));
        target.must_ask = true;
    }

    fn with_tls(target: &mut Target) {
        target.tls = Some(Tls { versions: vec![TlsVersion::V1_3], ..Tls::of_url(Authority::Anyone, None) });
    }

    const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0";
    const ASK_SCRAM: &[u8] = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";

    #[test]
    fn weaker_proofs_are_refused() {
        check(
            b"R\0\0\0\x0c\0\0\0\x05salt",
            with_password,
            expect![
                "refused: the server asks for an MD5 hash of the password, which is sent over TLS with a verified certificate or over a Unix socket only: name one of them in the URL, or have the server ask for scram-sha-256"
            ],
        );
        check(
            b"R\0\0\0\x08\0\0\0\x03",
            with_password,
            expect![
                "refused: the server asks for the password itself, which is sent over TLS with a verified certificate or over a Unix socket only: name one of them in the URL, or have the server ask for scram-sha-256"
            ],
        );
        check(ASK_SCRAM, |_| {}, expect!["refused: the server asks for a password, and none is given"]);
        check(
            LET_IN,
            with_password,
            expect!["refused: the server lets clients in without the password that it should ask for"],
        );
    }

    #[test]
    fn a_server_cannot_skip_its_own_proof() {
        let skips = [ASK_SCRAM, LET_IN].concat();
        check(
            &skips,
            with_password,
            expect!["refused: the server lets clients in without the password that it should ask for"],
        );
        let out_of_order = b"R\0\0\0\x0a\0\0\0\x0cv=";
        check(out_of_order, with_password, expect!["protocol: SCRAM: a message out of order"]);
    }

    #[test]
    fn a_login_counts_as_what_was_proven() {
        let way = |proven, unchecked, must_ask| method(proven, unchecked, &Target { must_ask, ..Target::default() });
        for must_ask in [false, true] {
            assert_eq!([false, true].map(|unchecked| way(Some("md5"), unchecked, must_ask)), [Ok("md5"), Ok("md5")]);
            assert!(matches!(way(None, true, must_ask), Err(Fault::Refused(_))), "the server has proven nothing");
        }
        assert_eq!(way(None, false, false), Ok(NO_PASSWORD));
        assert!(matches!(way(None, false, true), Err(Fault::Refused(_))));
    }

    #[test]
    fn require_auth_allows_what_it_lists_or_all_that_it_does_not_forbid() {
        for (list, expected) in [
            ("", [true, true, true, true]),
            ("scram-sha-256", [true, true, false, false]),
            ("md5, none", [false, false, true, true]),
            ("!none", [true, true, true, false]),
            ("!md5,!none", [true, true, false, false]),
        ] {
            let asked = BTreeMap::from([(REQUIRE_AUTH, list.to_owned())]);
            let target = Target { asked, ..Target::default() };
            let seen = ["scram-sha-256", BOUND, "md5", NO_PASSWORD].map(|method| allowed(method, &target).is_ok());
            assert_eq!(seen, expected, "{list}");
        }
    }

    #[test]
    fn tls_is_not_given_up() {
        check(b"N", with_tls, expect!["refused: TLS was asked for, and the server offers none"]);
        check(
            b"SR\0\0\0\x08\0\0\0\0",
            with_tls,
            expect!["protocol: the server sent bytes in the clear after agreeing to TLS"],
        );
        check(b"E\0\0\0\x05\0", with_tls, expect!["protocol: the server does not answer the request for TLS"]);
    }

    #[test]
    fn another_protocol_is_a_fault() {
        check(
            b"HTTP/1.1 400 Bad Request\r\n",
            |_| {},
            expect!["protocol: a message of type 0x48 claims 1414811695 bytes"],
        );
        check(b"", |_| {}, expect!["connection: the server closed the connection"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn foreign_servers_never_panic(
            mut said in Just([LET_IN, b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x19",
                b"T\0\0\0\x06\0\0Z\0\0\0\x05I2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"].concat()),
            changes in proptest::collection::vec((0..80usize, any::<u8>()), 0..5),
        ) {
            for (at, byte) in changes {
                said[at] = byte;
            }
            let _ = meet(&said, |_| {});
        }
    }
}
