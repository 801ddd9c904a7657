//! A simulated server: each of its doors is opened and broken in turn. Every check must report this for the doors that
//! concern it, and for no other.

use std::cell::RefCell;

use expect_test::expect;
use tithe_machine::{launch::Address, observation::Observation};
use tithe_plugin::{
    evidence::{Check, claimed},
    setup::{Authentication, Setup, TlsVersion, Transport},
    simulated::test_bench::Bench,
};

use super::{
    password_asked::PasswordAsked,
    tls_negotiated::{TlsEnforced, TlsNegotiated, TlsSpoken},
    tls_resumed::TlsResumed,
    whole::{Exception, THIS_ACCOUNT},
    *,
};
use crate::{
    target::{Authority, launched},
    test_setup::plain,
};

const RIGHT: &str = "right";
/// What the server must refuse, and what the client must refuse.
const NO_PASSWORD: &str = "no password";
const WRONG_PASSWORD: &str = "wrong password";
const PLAINTEXT: &str = "plaintext";
const OTHER_VERSION: &str = "other version";
const UNKNOWN_SERVER: &str = "unknown server";
const NO_CERTIFICATE: &str = "no certificate";
const UNKNOWN_CLIENT: &str = "unknown client";
const DOORS: [&str; 8] =
    [RIGHT, NO_PASSWORD, WRONG_PASSWORD, PLAINTEXT, OTHER_VERSION, UNKNOWN_SERVER, NO_CERTIFICATE, UNKNOWN_CLIENT];

#[derive(Clone)]
struct Doors {
    open: Vec<&'static str>,
    broken: Option<&'static str>,
    method: &'static str,
    spoken: &'static str,
    trusts_anyone: bool,
    others: Result<Whole, Fault>,
}

/// As it should be.
fn shut() -> Doors {
    let others = Ok(Whole::of("its list", Vec::new()));
    Doors { open: vec![RIGHT], broken: None, method: "scram", spoken: "TLSv1.3 X", trusts_anyone: false, others }
}

thread_local! {
    static SERVER: RefCell<Doors> = RefCell::new(shut());
    static KNOCKED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn knock(door: &'static str) -> Result<String, Fault> {
    KNOCKED.with_borrow_mut(|knocked| knocked.push(door));
    SERVER.with_borrow(|doors| match doors.open.contains(&door) {
        _ if doors.broken == Some(door) => Err(Fault::Connection("broken".to_owned())),
        true => Ok(doors.method.to_owned()),
        false => Err(Fault::Refused(door.to_owned())),
    })
}

/// The door that a client as `target` knocks at.
fn door(setup: &Setup, target: &Target) -> &'static str {
    let authority = |path: &std::path::PathBuf| Authority::Of(path.clone());
    let credentials = &setup.credentials;
    let Some(tls) = &target.tls else {
        return match &target.password {
            None => NO_PASSWORD,
            Some(password) if *password == credentials.password => RIGHT,
            Some(_) => WRONG_PASSWORD,
        };
    };
    let Transport::Tls { version, mutual, .. } = setup.transport else { panic!("TLS was asked for") };
    match &tls.identity {
        _ if tls.authority == authority(&credentials.untrusted_authority) => UNKNOWN_SERVER,
        _ if tls.versions != [version] => OTHER_VERSION,
        None if mutual => NO_CERTIFICATE,
        Some((shown, _)) if *shown != credentials.client_certificate => UNKNOWN_CLIENT,
        _ => RIGHT,
    }
}

const fn probes(names_mechanism: bool) -> ConnectionProbes {
    ConnectionProbes {
        target: |context| {
            let mut target = launched("db.example", 7, "ann", "a", context.setup);
            if SERVER.with_borrow(|doors| doors.trusts_anyone) {
                target.tls.iter_mut().for_each(|tls| tls.authority = Authority::Anyone);
            }
            Ok(target)
        },
        open: |context, target| knock(door(context.setup, target)),
        names_mechanism,
        plaintext: |_| knock(PLAINTEXT),
        tls_of_server: |_, _| Ok(SERVER.with_borrow(|doors| doors.spoken.to_owned())),
        tls_source: "its view",
        others: |_| SERVER.with_borrow(|doors| doors.others.clone()),
    }
}

static NAMES: ConnectionProbes = probes(true);
static NAMELESS: ConnectionProbes = probes(false);

/// The observation of `check` for a server with `doors` on an arm with `setup`, whether its claim is narrowed, and the
/// doors that it tried.
fn look(check: &dyn Check, setup: &Setup, doors: Doors) -> (Result<Observation, Fault>, bool, Vec<&'static str>) {
    SERVER.set(doors);
    KNOCKED.take();
    let bench = Bench::plain();
    let mut context = bench.context();
    context.setup = setup;
    let seen = check.observe(&mut context);
    (seen, context.narrowed.is_some(), KNOCKED.take())
}

/// `check` must hold for a closed server, and fail for one that opens one of `doors`, whatever else is open. It must
/// have no result if one of them does not answer, or the right one if it is `tried`.
fn held_to(check: &dyn Check, setup: &Setup, doors: &[&'static str], tried: bool) {
    let protects = |seen: &Result<Observation, Fault>| matches!(seen, Ok(Observation::Protected(_)));
    let (seen, ..) = look(check, setup, shut());
    assert!(protects(&seen), "{}: {seen:?}", check.id());
    for door in DOORS {
        let concerns = doors.contains(&door);
        let open = Doors { open: vec![RIGHT, door], ..shut() };
        let (seen, ..) = look(check, setup, open);
        assert_eq!(protects(&seen), !concerns, "{} with {door} open: {seen:?}", check.id());
        assert_eq!(matches!(seen, Ok(Observation::Exposed(_))), concerns, "{} with {door} open", check.id());
        let (seen, ..) = look(check, setup, Doors { broken: Some(door), ..shut() });
        let fails = concerns || tried && door == RIGHT;
        assert_eq!(seen.is_err(), fails, "{} with {door} broken: {seen:?}", check.id());
        assert!(fails || protects(&seen), "{} with {door} broken: {seen:?}", check.id());
    }
}

fn by_password() -> Setup {
    let mut setup = plain();
    setup.authentication = Authentication::Password { mechanism: "scram".to_owned() };
    setup
}

fn by_tls(mutual: bool) -> Setup {
    let mut setup = plain();
    setup.transport = Transport::tls(TlsVersion::V1_3, mutual);
    setup
}

#[test]
fn every_door_that_concerns_passwords_counts() {
    for probes in [&NAMES, &NAMELESS] {
        held_to(&PasswordAsked(probes), &by_password(), &[NO_PASSWORD, WRONG_PASSWORD], true);
    }
    // The right password in between: an account may be locked after two failures in a row.
    let (seen, _, knocked) = look(&PasswordAsked(&NAMES), &by_password(), shut());
    assert_eq!(knocked, [NO_PASSWORD, RIGHT, WRONG_PASSWORD, RIGHT]);
    expect![[r#"Ok(Protected("without a password: refused (no password); with a wrong one: refused (wrong password); with the right one: served by scram"))"#]].assert_eq(&format!("{seen:?}"));
    // Another mechanism than the arm's: from a product that names it, and from one whose accounts decide it.
    let other = || Doors { method: "md5", ..shut() };
    let [named, nameless] = [&NAMES, &NAMELESS].map(|probes| look(&PasswordAsked(probes), &by_password(), other()).0);
    assert!(matches!(named, Ok(Observation::Exposed(_))), "{named:?}");
    assert!(matches!(nameless, Ok(Observation::Protected(_))), "{nameless:?}");
}

#[test]
fn of_the_passwords_of_other_accounts_nothing_is_claimed_on_a_running_server() {
    let attached = Address::Attached(tithe_model::experiment::Url::new("postgres://tithe@db.example"));
    for address in [Address::Nowhere, attached] {
        SERVER.set(shut());
        let (mut bench, setup, check) = (Bench::plain(), by_password(), PasswordAsked(&NAMES));
        bench.server.address = address;
        let mut context = bench.context();
        context.setup = &setup;
        assert!(matches!(check.observe(&mut context), Ok(Observation::Protected(_))));
        let claim = claimed(&check, context.narrowed);
        assert_eq!(claim.ends_with(&format!("({THIS_ACCOUNT})")), bench.server.address.is_attached(), "{claim}");
    }
}

#[test]
fn every_door_that_concerns_tls_counts() {
    for mutual in [false, true] {
        let setup = by_tls(mutual);
        let check = TlsNegotiated::new(&NAMES, setup.transport);
        let strangers: &[&str] =
            if mutual { &[UNKNOWN_SERVER, NO_CERTIFICATE, UNKNOWN_CLIENT] } else { &[UNKNOWN_SERVER] };
        let ways = [PLAINTEXT, OTHER_VERSION];
        held_to(&check, &setup, &[strangers, &ways].concat(), false);
        held_to(&TlsSpoken(check), &setup, strangers, false);
        held_to(&TlsEnforced(check), &setup, &ways, false);
    }
}

#[test]
fn what_is_spoken_and_who_else_is_let_in_counts() {
    let setup = by_tls(false);
    let check = TlsNegotiated::new(&NAMES, setup.transport);
    let exception = Exception { text: "line 5".to_owned(), loopback: false };
    let let_in = Ok(Whole::of("its list", vec![exception]));
    let servers = [
        ("shut", shut()),
        ("older version", Doors { spoken: "TLSv1.2 X", ..shut() }),
        ("anybody's certificate", Doors { trusts_anyone: true, ..shut() }),
        ("others let in", Doors { others: let_in, ..shut() }),
        ("others unseen", Doors { others: Err(Fault::Refused("no right".to_owned())), ..shut() }),
        ("another version", Doors { open: vec![RIGHT, OTHER_VERSION], ..shut() }),
    ];
    let checks: [&dyn Check; 3] = [&check, &TlsSpoken(check), &TlsEnforced(check)];
    let mut text = String::new();
    for check in checks {
        text += &format!("{:?} {}\n", check.entry(), check.claim());
        for (name, doors) in &servers {
            let (seen, narrowed, _) = look(check, &setup, doors.clone());
            text += &format!("{name}: {}{seen:?}\n", if narrowed { "for this account: " } else { "" });
        }
    }
    expect![[r#"
        CheckEntry { id: "tls-negotiated", role: Claim, control: PlainArm } the server reports that clients speak TLSv1.3; plaintext, other versions and unknown authorities are refused
        shut: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; plaintext: refused (plaintext); the other TLS version: refused (other version); a server of an unknown authority: refused (unknown server); everybody else: no client is served in plaintext (its list)"))
        older version: Ok(Exposed("its view: TLSv1.2 X"))
        anybody's certificate: Ok(Exposed("its view: TLSv1.3 X; handshakes of the clients: ; the client does not verify the server's certificate"))
        others let in: Ok(Exposed("its view: TLSv1.3 X; handshakes of the clients: ; plaintext: refused (plaintext); the other TLS version: refused (other version); a server of an unknown authority: refused (unknown server); everybody else: served in plaintext: line 5 (its list)"))
        others unseen: for this account: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; plaintext: refused (plaintext); the other TLS version: refused (other version); a server of an unknown authority: refused (unknown server); everybody else: not seen (refused: no right)"))
        another version: Ok(Exposed("its view: TLSv1.3 X; handshakes of the clients: ; plaintext: refused (plaintext); the other TLS version: served; a server of an unknown authority: refused (unknown server); everybody else: no client is served in plaintext (its list)"))
        CheckEntry { id: "tls-spoken", role: Claim, control: PlainArm } the server reports that clients speak TLSv1.3; servers of unknown authorities are refused
        shut: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; a server of an unknown authority: refused (unknown server)"))
        older version: Ok(Exposed("its view: TLSv1.2 X"))
        anybody's certificate: Ok(Exposed("its view: TLSv1.3 X; handshakes of the clients: ; the client does not verify the server's certificate"))
        others let in: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; a server of an unknown authority: refused (unknown server)"))
        others unseen: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; a server of an unknown authority: refused (unknown server)"))
        another version: Ok(Protected("its view: TLSv1.3 X; handshakes of the clients: ; a server of an unknown authority: refused (unknown server)"))
        CheckEntry { id: "tls-enforced", role: Disclosure, control: Own } the server enforces TLS: plaintext and other versions are refused
        shut: Ok(Protected("plaintext: refused (plaintext); the other TLS version: refused (other version); everybody else: no client is served in plaintext (its list)"))
        older version: Ok(Protected("plaintext: refused (plaintext); the other TLS version: refused (other version); everybody else: no client is served in plaintext (its list)"))
        anybody's certificate: Ok(Protected("plaintext: refused (plaintext); the other TLS version: refused (other version); everybody else: no client is served in plaintext (its list)"))
        others let in: Ok(Exposed("TLS is on, not enforced by this server: clients that do not ask for it are served in plaintext; plaintext: refused (plaintext); the other TLS version: refused (other version); everybody else: served in plaintext: line 5 (its list)"))
        others unseen: for this account: Ok(Protected("plaintext: refused (plaintext); the other TLS version: refused (other version); everybody else: not seen (refused: no right)"))
        another version: Ok(Exposed("plaintext is refused, and either version of TLS is served; plaintext: refused (plaintext); the other TLS version: served; everybody else: no client is served in plaintext (its list)"))
    "#]].assert_eq(&text);
}

#[test]
fn resumption_is_asked_three_times() {
    let setup = by_tls(false);
    let (seen, _, knocked) = look(&TlsResumed::new(&NAMES), &setup, shut());
    assert_eq!(knocked, [RIGHT; 3]);
    assert!(matches!(seen, Ok(Observation::Exposed(_))), "no handshake was seen: {seen:?}");
    assert!(look(&TlsResumed::new(&NAMES), &setup, Doors { broken: Some(RIGHT), ..shut() }).0.is_err());
}

#[test]
fn rights_are_enforced_when_everything_else_is_refused_and_the_own_is_served() {
    let refused = || Err(Fault::Refused("no".to_owned()));
    let broken = || Err(Fault::Connection("gone".to_owned()));
    let seen = |first: Result<(), Fault>, second: Result<(), Fault>, own: Result<(), Fault>| {
        rights([("a", first), ("b", second)], || own).map_or_else(|fault| fault.to_string(), |seen| format!("{seen:?}"))
    };
    let told = [
        seen(refused(), refused(), Ok(())),
        seen(refused(), Ok(()), Ok(())),
        seen(Ok(()), refused(), Ok(())),
        seen(refused(), refused(), refused()),
        seen(refused(), broken(), Ok(())),
    ];
    expect![[r#"
        Protected("a: refused (no); b: refused (no); a key of Tithe's: served")
        Exposed("a: refused (no); b: served; a key of Tithe's: served")
        Exposed("a: served; b: refused (no); a key of Tithe's: served")
        refused: no
        connection: gone"#]]
    .assert_eq(&told.join("\n"));
}
