//! What is tested for every product alike, and the differences between products.

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
    proc::ServerTask,
    secret::Secret,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};
use tithe_plugin::{
    product::Product,
    session::{Discard, Fields, KeyValueSession, Request},
    setup::{Authentication, Setup, TlsVersion, Transport},
};

use crate::{
    Looks, assert_exposed, how, key_value, observe, rows,
    sandbox::{self, Sandbox, protection},
    shared::with_plain,
    table,
};

/// A product as tests know it.
pub struct Tested {
    pub database: &'static dyn Product,
    /// Starts a server with some protections; `None`, with a message, if something is not installed.
    pub start: fn(&[Chosen]) -> Option<Sandbox>,
    pub again: Again,
}

/// The result of inserting an existing record.
pub enum Again {
    /// The server refuses it with a message that contains this.
    Refused(&'static str),
    /// The record is written, and does not count as new; an update of a missing record is written too.
    Written,
    /// Nothing is written; nor is an update of a missing record.
    Left,
}

/// Products whose servers make what a write names: a table that was lost comes back without Tithe's mark.
const MAKES_ON_WRITE: [&str; 5] = ["etcd", "memcached", "mongodb", "opensearch", "redis"];

/// The value of an option in a table of tests.
pub trait Given {
    fn given(self) -> OptionValue;
}

impl Given for &str {
    fn given(self) -> OptionValue {
        OptionValue::Text(self.to_owned())
    }
}

impl Given for bool {
    fn given(self) -> OptionValue {
        OptionValue::Flag(self)
    }
}

impl Given for f64 {
    fn given(self) -> OptionValue {
        OptionValue::Number(self)
    }
}

/// A protection of a product as an experiment names it, with the options that differ from their defaults.
macro_rules! chosen {
    ($tested:expr, $id:tt { $($option:ident = $value:expr),* }) => {
        $crate::sandbox::chosen($tested.database, $id, &[
            $((stringify!($option), $crate::tested::Given::given($value))),*
        ])
    };
}

/// One test per line: a server with a protection is proven to have it, next to a plain one, with these verdicts. It is
/// no proof of what follows `not`.
macro_rules! proven {
    ($tested:expr; $($name:ident: $id:tt $options:tt => $verdicts:expr
        $(, not $($asked:tt $asked_options:tt),+)?;)*) => {
        $(
            #[test]
            fn $name() {
                let asked: &[::tithe_model::experiment::Protection] =
                    &[$($(chosen!($tested, $asked $asked_options)),+)?];
                $crate::tested::prove(&$tested, &chosen!($tested, $id $options), &$verdicts, asked);
            }
        )*
    };
}

/// One test per line: a server with a protection is no proof of other requested options.
macro_rules! no_proof {
    ($tested:expr; $($name:ident: $given:tt $less:tt => $($asked:tt $options:tt),+;)*) => {
        $(
            #[test]
            fn $name() {
                let asked = [$(chosen!($tested, $asked $options)),+];
                $crate::tested::disprove(&$tested, &chosen!($tested, $given $less), &asked);
            }
        )*
    };
}

pub(crate) use {chosen, no_proof, proven};

impl Tested {
    /// Every kind of request, with its result.
    pub fn exercise(&self, session: &mut dyn KeyValueSession) {
        fn call(session: &mut dyn KeyValueSession, request: Request<'_>) -> u64 {
            session.call(&request, &mut Discard).expect("an answer")
        }
        let binary: &[u8] = &[0, 255, b'\'', b'\\', b'\r', b'\n', 10];
        let long = vec![b'x'; 300_000];
        for key in [b"user2", b"user1", b"user3"] {
            assert_eq!(call(session, Request::Insert { key, values: &[(0, b"a"), (1, binary), (2, b"")] }), 1);
        }
        let read = Request::Read { key: b"user1", fields: Fields::All };
        assert_eq!(rows(session, &read), "1\n-: 0=a 1=\\x00\\xff\\'\\\\\\r\\n\\n 2=");
        // Writing the same value changes nothing, and the record exists all the same.
        for _ in 0..2 {
            assert_eq!(call(session, Request::Update { key: b"user1", values: &[(2, &long)] }), 1);
        }
        let one = Request::Read { key: b"user1", fields: Fields::One(2) };
        assert_eq!(rows(session, &one), format!("1\n-: 2={}", "x".repeat(300_000)));
        let scanned = [("user2", 5, "2\nuser2: 0=a\nuser3: 0=a"), ("", 2, "2\nuser1: 0=a\nuser2: 0=a"), ("v", 2, "0")];
        for (start, count, seen) in scanned.into_iter().filter(|_| self.database.entry().scans) {
            let scan = Request::Scan { start: start.as_bytes(), count, fields: Fields::One(0) };
            assert_eq!(rows(session, &scan), seen);
        }
        // An error leaves the session usable.
        let again = Request::Insert { key: b"user1", values: &[(0, b""), (1, b""), (2, b"")] };
        match (&self.again, session.call(&again, &mut Discard)) {
            (Again::Refused(words), Err(fault @ Fault::Server(_))) => {
                assert!(fault.to_string().contains(words), "{fault}");
            }
            (Again::Written | Again::Left, Ok(0)) => {}
            (_, other) => panic!("a duplicate: {other:?}"),
        }
        assert_eq!(call(session, Request::Update { key: b"nobody", values: &[(2, b"z")] }), 0);
        for key in [b"user1", b"user2", b"user3"] {
            assert_eq!(call(session, Request::Delete { key }), 1);
        }
        let made = u64::from(matches!(self.again, Again::Written));
        assert_eq!(call(session, Request::Delete { key: b"nobody" }), made);
        assert_eq!(call(session, Request::Delete { key: b"user1" }), 0);
        assert_eq!(rows(session, &read), "0");
        session.begin_bulk().expect("begun");
        session.end_bulk().expect("ended");
    }

    /// A session on `sandbox`.
    pub fn connect(&self, sandbox: &Sandbox, blocking: bool) -> Box<dyn KeyValueSession> {
        let session = self.database.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        key_value(session)
    }

    /// Creates a table on `sandbox` and serves every request, blocking and not. `right` is a statement that the
    /// administrator may run, `wrong` one that the server refuses, and `task` checks the server task of the session.
    pub fn serve(&self, sandbox: &Sandbox, right: &str, wrong: &str, task: fn(ServerTask)) {
        self.database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
        assert_eq!(self.database.keeps_records(&sandbox.server, &sandbox.setup, &table()), Ok(true));
        for blocking in [true, false] {
            let mut session = self.connect(sandbox, blocking);
            self.exercise(&mut *session);
            task(session.server_task());
            session.run_statement(right).expect("a statement");
            let fault = session.run_statement(wrong).expect_err("no such thing");
            assert!(matches!(fault, Fault::Server(_)), "{fault}");
            // An error of the server leaves the session usable.
            self.exercise(&mut *session);
            let (sent, received) = session.wire_bytes();
            assert!(sent > 300_000 && received > 300_000);
        }
    }

    /// Removes the table of `sandbox`, and then again when it no longer exists.
    pub fn remove(&self, sandbox: &Sandbox) {
        self.database.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
        let kept = self.database.keeps_records(&sandbox.server, &sandbox.setup, &table());
        assert_eq!(kept, Ok(!MAKES_ON_WRITE.contains(&self.database.id())));
        self.database.remove(&sandbox.server, &sandbox.setup, &table()).expect("nothing left to remove");
    }

    /// The refusal of a client that connects with `setup`; panics if it is not refused.
    pub fn refusal(&self, server: &Server, setup: &Setup) -> String {
        match self.database.connect(server, setup, &how(true)).map(drop) {
            Err(Fault::Refused(words)) => words,
            other => panic!("a refusal was expected, not {other:?}"),
        }
    }
}

/// Starts a server with `chosen`, serves every request on it, and runs every check on it and on the plain one. Compares
/// the verdicts; checks for each of `not` must fail on it.
pub fn prove(tested: &'static Tested, chosen: &Chosen, verdicts: &[&str], not: &[Chosen]) {
    let Some(protected) = (tested.start)(std::slice::from_ref(chosen)) else { return };
    let looks = at_protected(tested, &protected, chosen);
    not.iter().for_each(|asked| assert_exposed(&protected, asked));
    let seen =
        with_plain(tested, |plain| beside(&looks, plain)).expect("a plain server where there is a protected one");
    assert_eq!(seen.lines().collect::<Vec<_>>(), verdicts);
}

/// As [`prove`], between two servers that run.
pub fn prove_between(
    tested: &'static Tested,
    plain: &Sandbox,
    protected: &Sandbox,
    chosen: &Chosen,
    verdicts: &[&str],
) {
    let seen = beside(&at_protected(tested, protected, chosen), plain);
    assert_eq!(seen.lines().collect::<Vec<_>>(), verdicts);
}

fn at_protected<'a>(tested: &Tested, protected: &Sandbox, chosen: &'a Chosen) -> Looks<'a> {
    protected.database.create(&protected.server, &protected.setup, &table()).expect("a table");
    for blocking in [true, false] {
        tested.exercise(&mut *tested.connect(protected, blocking));
    }
    Looks::at_protected(protected, chosen)
}

fn beside(looks: &Looks<'_>, plain: &Sandbox) -> String {
    plain.database.create(&plain.server, &plain.setup, &table()).expect("a table");
    looks.beside(plain)
}

/// Checks for each of `asked` must fail on a server that was set up with `given`.
pub fn disprove(tested: &Tested, given: &Chosen, asked: &[Chosen]) {
    let Some(sandbox) = (tested.start)(std::slice::from_ref(given)) else { return };
    sandbox.database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    asked.iter().for_each(|asked| assert_exposed(&sandbox, asked));
}

/// On a server with `recorder` the checks of each protection of `protected` report it with these words.
pub fn names_recorders(tested: &Tested, recorder: &Chosen, protected: &[(Chosen, &str)]) {
    let Some(sandbox) = (tested.start)(std::slice::from_ref(recorder)) else { return };
    for (chosen, words) in protected {
        let checks = protection(tested.database, &chosen.id).evidence(chosen);
        let check = checks.iter().find(|check| check.id() == "recorders").expect("the check");
        let observation = observe(&sandbox, true, &**check);
        assert!(matches!(&observation, Observation::Exposed(seen) if seen.contains(words)), "{observation:?}");
    }
}

/// The refusals of clients that ask for more or less than the server has: the text, or its beginning with `…` at the
/// end.
pub struct Refusals {
    /// TLS, by a plain server; empty if its text is not known.
    pub tls: &'static str,
    /// Plaintext, of a server with TLS.
    pub plaintext: &'static str,
    /// A password, of a plain server, with its mechanism.
    pub password: (&'static str, &'static str),
    /// A wrong password, of a server with the protection `password`.
    pub wrong: &'static str,
    /// None, of the same.
    pub none: &'static str,
}

/// No client is served with less than it requests, nor with less than the server requires; `password` is the protection
/// with a password.
pub fn nothing_falls_back(tested: &'static Tested, password: Chosen, refusals: &Refusals) {
    let tls = sandbox::chosen(tested.database, "tls", &[]);
    let (Some(tls), Some(password)) = ((tested.start)(&[tls]), (tested.start)(&[password])) else { return };
    let refused = |sandbox: &Sandbox, words: &str, change: &dyn Fn(&mut Setup)| {
        let mut setup = sandbox.setup.clone();
        change(&mut setup);
        let refusal = tested.refusal(&sandbox.server, &setup);
        match words.strip_suffix('…') {
            Some(begin) => assert!(refusal.starts_with(begin), "{refusal}"),
            None => assert_eq!(refusal, words),
        }
    };
    with_plain(tested, |plain| {
        if !refusals.tls.is_empty() {
            refused(plain, refusals.tls, &|setup| {
                setup.transport = Transport::tls(TlsVersion::V1_3, false);
            });
        }
        let (mechanism, words) = refusals.password;
        refused(plain, words, &|setup| {
            setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
        });
    });
    refused(&tls, refusals.plaintext, &|setup| setup.transport = Transport::Plain);
    refused(&password, refusals.wrong, &|setup| setup.credentials.password = Secret::new("wrong"));
    refused(&password, refusals.none, &|setup| setup.authentication = Authentication::None);
}

/// A server of SQL that others use, too.
pub struct Attached {
    pub password: Chosen,
    /// The URL around the password, the port and the file of the authority.
    pub url: [&'static str; 3],
    /// The authentication that the server was found to require.
    pub authentication: &'static str,
    /// Makes a schema of our name.
    pub schema: &'static str,
}

/// Tithe's table is created on an attached server, created again, and removed. Objects that others created under its
/// name are refused and left.
pub fn an_attached_server_keeps_what_is_not_ours(tested: &Tested, attached: &Attached) {
    let tls = sandbox::chosen(tested.database, "tls", &[]);
    let Some(sandbox) = (tested.start)(&[tls, attached.password.clone()]) else { return };
    let credentials = &sandbox.setup.credentials;
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let ([before, between, after], authority) = (attached.url, credentials.authority.display());
    let url = format!("{before}{}{between}{port}{after}{authority}", credentials.password.expose_text());
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(Default::default(), credentials.clone());
    let (create, remove) =
        (|| tested.database.create(&server, &setup, &table()), || tested.database.remove(&server, &setup, &table()));
    let refused = || {
        for outcome in [create(), remove()] {
            assert!(matches!(outcome, Err(Fault::Refused(_))), "{outcome:?}");
        }
    };
    let facts = tested.database.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], attached.authentication);
    // A run that was killed leaves its table and records; the next one creates them again.
    for _ in 0..2 {
        create().expect("a table");
        let session = tested.database.connect(&server, &setup, &how(true)).expect("a session");
        let mut session = key_value(session);
        assert!(matches!(session.server_task(), ServerTask::Unknown));
        tested.exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a"), (1, b""), (2, b"")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
    }
    tested.database.quiesce(&server, &setup, &table()).expect("quiesced");

    // A foreign table in Tithe's schema, then a foreign schema with Tithe's name.
    run(tested, &sandbox, &["CREATE TABLE tithe.precious (a int)"]);
    refused();
    run(tested, &sandbox, &["DROP TABLE tithe.precious"]);
    remove().expect("removed");
    run(tested, &sandbox, &[attached.schema, "CREATE TABLE tithe.usertable (a int)"]);
    refused();
    run(tested, &sandbox, &["SELECT a FROM tithe.usertable"]);
}

/// Runs statements as the administrator of a launched server, before a table is created there, which may be refused.
pub fn run(tested: &Tested, sandbox: &Sandbox, statements: &[&str]) {
    let mut setup = sandbox.setup.clone();
    setup.statements = statements.iter().map(|statement| (*statement).to_owned()).collect();
    match tested.database.create(&sandbox.server, &setup, &table()) {
        Ok(()) | Err(Fault::Refused(_)) => {}
        Err(fault) => panic!("{fault}"),
    }
}
