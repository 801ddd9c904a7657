//! Where a connection goes, as which account, and how it is protected: shared by the network clients of all servers.
//!
//! For a launched server everything follows from the set-up. For an attached one it comes from the user's URL. Every
//! product refuses options that might fall back to plaintext. No part of a URL is ever quoted in an error, because it
//! may hold a password. The names of a product's options are in its [`Product`].

mod outside;
pub mod parts;
mod tls;
mod token;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    secret::Secret,
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    setup::{Authentication, Reach, ReachTls, Setup, Transport},
    wire::{Moment, Wire, is_socket, let_in},
};

pub use outside::Outside;
use parts::PASSWORD_COMMAND;
pub use parts::{Host, RefusedOption, UrlParts, refused};
pub use tls::{Authority, Handshakes, Shown, Tls};

/// Whether the server at a target matches its URL. Fails if it lets no client in.
pub type Takes = fn(&Target) -> Result<bool, Fault>;

/// The differences between products.
pub struct Product {
    /// Name in reports and errors.
    pub title: &'static str,
    /// Port if a URL names none.
    pub port: u16,
    /// Account in servers that Tithe launches; empty if the product has a nameless one.
    pub user: &'static str,
    /// Database in servers that Tithe launches.
    pub database: &'static str,
    /// Database if a URL names none; `None`: the one with the user's name.
    pub url_database: Option<&'static str>,
    /// Environment variable with the password, used when the URL holds none.
    pub password_variable: &'static str,
    /// Options of a URL that are about TLS.
    pub tls_options: &'static [&'static str],
    /// Other options of a URL that are used, in addition to those of all products.
    pub used: &'static [&'static str],
    /// Options that drivers know and that have no effect here.
    pub idle: &'static [&'static str],
    /// Options that are refused with most values, wherever they are set.
    pub refused: &'static [RefusedOption],
    /// Moves what options, environment and files of the user set for host and account to its field.
    pub settle: fn(&mut UrlParts, &Outside) -> Result<(), Fault>,
    /// Reads the URL's TLS options; `None` means plaintext only.
    pub tls: fn(&UrlParts) -> Result<Option<Tls>, Fault>,
    /// What a URL needs for TLS, and for a client certificate.
    pub tls_hints: [&'static str; 2],
    /// Whether a server matches the URL, if the product allows several in a URL; the first match is used.
    pub takes: Option<Takes>,
    /// Options of a URL that the product's own login uses.
    pub asked: &'static [&'static str],
}

/// Where a connection goes, as which account, and how it is protected.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    /// Name, address, or path of a Unix socket.
    pub host: String,
    /// TCP port; for a socket the port in its name, if any.
    pub port: u16,
    /// Account.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, used if the server asks for one.
    pub password: Option<Secret>,
    /// Command that prints it, for passwords that expire.
    pub password_command: Option<String>,
    /// True if it is an error when the server does not ask for the password.
    pub must_ask: bool,
    /// TLS; `None` means plaintext only.
    pub tls: Option<Tls>,
    /// How the arm's clients authenticate, by the product's name for it; `None`: not at all, or by the default.
    pub mechanism: Option<String>,
    /// The URL's further options for the session, by the product's own names.
    pub asked: BTreeMap<&'static str, String>,
    /// Port on this machine of a relay to the server, which connections must use.
    pub relay: Option<u16>,
}

impl Target {
    /// Opens a connection, through the relay if there is one.
    ///
    /// # Errors
    /// As [`Wire::connect`].
    pub fn dial(&self) -> Result<Wire, Fault> {
        match self.relay {
            Some(port) => Wire::connect("127.0.0.1", port),
            None => Wire::connect(&self.host, self.port),
        }
    }

    /// The same, with TLS if it asks for it. A plaintext server takes the start of TLS for a request of its own;
    /// `hint` says what to check then.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn dial_encrypted(&self, hint: &str) -> Result<Wire, Fault> {
        let mut wire = self.dial()?;
        if let Some(tls) = &self.tls {
            tls.start(&mut wire, &self.host, self.port).map_err(|fault| match fault {
                Fault::Connection(words) => Fault::Connection(format!("in the handshake of TLS: {words}: {hint}")),
                fault => fault,
            })?;
        }
        Ok(wire)
    }

    /// Gets the password from its command, if it has one.
    fn take_token(&mut self) -> Result<(), Fault> {
        if let Some(command) = &self.password_command {
            self.password = Some(token::of(command)?);
        }
        Ok(())
    }

    /// Connects with `open`. If that is refused, tries again if the password's command now prints another one.
    ///
    /// # Errors
    /// As `open` and the command.
    pub fn log_in<T>(&self, open: impl Fn(&Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let open = |target: &Self| {
            let begun = Moment::now();
            let opened = open(target)?;
            let_in(begun);
            Ok(opened)
        };
        match (open(self), &self.password_command, &self.password) {
            (Err(Fault::Refused(words)), Some(command), Some(password)) => {
                match token::after_refusal(command, password)? {
                    Some(password) => open(&Self { password: Some(password), ..self.clone() }),
                    None => Err(Fault::Refused(words)),
                }
            }
            (outcome, ..) => outcome,
        }
    }

    /// The same without TLS, and without the password. A URL with TLS does not allow sending it in plaintext, and a
    /// server that asks for it has already shown that it serves plaintext.
    #[must_use]
    pub fn in_plaintext(&self) -> Self {
        Self { tls: None, password: None, must_ask: false, ..self.clone() }
    }

    /// The same without its certificate.
    #[must_use]
    pub fn without_certificate(&self) -> Self {
        let tls = self.tls.as_ref().map(|tls| Tls { identity: None, ..tls.clone() });
        Self { tls, ..self.clone() }
    }

    /// Handshakes with this server, as this target has them done.
    pub fn handshakes(&self) -> Handshakes {
        self.tls.as_ref().map_or_else(Handshakes::default, |tls| tls.handshakes(&self.host, self.port))
    }

    /// What the server has shown in the full handshakes with this target's settings so far.
    pub fn shown(&self) -> BTreeSet<Shown> {
        self.tls.as_ref().map_or_else(BTreeSet::new, |tls| tls.shown(&self.host, self.port))
    }

    /// True for a server at a Unix socket.
    pub fn is_socket(&self) -> bool {
        is_socket(&self.host)
    }

    /// True if only the server can read what is sent: over TLS with a verified certificate, or a Unix socket. A relay
    /// belongs to this process, on this machine.
    pub fn keeps_secrets(&self) -> bool {
        self.is_socket() || self.tls.as_ref().is_some_and(|tls| !tls.trusts_anyone())
    }
}

impl Product {
    /// How another program reaches a server that Tithe launched.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a server that Tithe did not launch: another program may not use it.
    pub fn reach(&self, server: &Server, setup: &Setup) -> Result<Reach, Fault> {
        let Address::Tcp { host, port } = &server.address else {
            return Err(Fault::Refused("other programs are given servers that Tithe has launched".to_owned()));
        };
        let Target { host, port, user, database, password, tls, .. } =
            launched(host, *port, self.user, self.database, setup);
        let credentials = &setup.credentials;
        let tls = tls.map(|tls| ReachTls {
            authority: credentials.authority.clone(),
            versions: tls.versions,
            identity: (credentials.client_certificate.clone(), credentials.client_key.clone()),
            mutual: tls.identity.is_some(),
        });
        Ok(Reach { host, port, user, database, password, tls })
    }

    /// The target of an arm's clients.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a URL that cannot be used, or that contradicts the set-up.
    pub fn target(&self, server: &Server, setup: &Setup) -> Result<Target, Fault> {
        let target = match &server.address {
            Address::Tcp { host, port } => launched(host, *port, self.user, self.database, setup),
            Address::Attached(url) => self.chosen(url, setup)?,
            Address::Relayed { url, port } => Target { relay: Some(*port), ..self.chosen(url, setup)? },
            Address::File(_) | Address::Nowhere => {
                return Err(Fault::Refused(format!("{} is reached by TCP", self.title)));
            }
        };
        let Some(account) = &setup.account else { return Ok(target) };
        let password = Some(Secret::new([]));
        Ok(Target {
            user: account.clone(),
            password,
            password_command: None,
            must_ask: false,
            mechanism: None,
            ..target
        })
    }

    /// Checks whether clients with this set-up can use `url`, and whether its certificate files exist.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the error; the text never quotes the URL.
    pub fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        for target in self.attached(url, setup, &Outside::of_process())? {
            if let Some(tls) = target.tls {
                tls.config().map_err(|fault| refused(&fault.to_string()))?;
            }
        }
        Ok(())
    }

    /// Host and port of a server at `url`; `None` for a URL that cannot be used.
    pub fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        let targets = self.attached(url, &Setup::bare(), &Outside::of_process()).ok()?;
        targets.into_iter().nth(known_number(url).unwrap_or_default()).map(|target| (target.host, target.port))
    }

    /// Remarks on how `url` is used: options without effect, files that it does not name, and what is not checked.
    pub fn remarks(&self, url: &Url, setup: &Setup) -> Vec<String> {
        self.remarks_with(url, setup, &Outside::of_process())
    }

    /// The same with values from `outside`.
    pub fn remarks_with(&self, url: &Url, setup: &Setup, outside: &Outside) -> Vec<String> {
        let Ok(parts) = UrlParts::read(url) else { return Vec::new() };
        let targets = self.attached(url, setup, outside).unwrap_or_default();
        let mut remarks = Vec::new();
        let idle = parts.idle(self.idle);
        if !idle.is_empty() {
            remarks.push(format!("no effect here: {}", idle.join(", ")));
        }
        if let Some(target) = targets.first() {
            if target.is_socket() {
                remarks.push(format!("by the Unix socket {}", target.host));
            }
            let files = target.tls.iter().flat_map(Tls::files).filter(|file| !parts.names_file(file));
            let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
            if !files.is_empty() {
                remarks.push(format!("used without being in the URL: {}", files.join(", ")));
            }
            remarks.extend(target.tls.as_ref().and_then(Tls::disclosure));
        }
        remarks
    }

    /// The target of `url` that matches it. It is determined once: measured clients connect without reading files and
    /// trying servers again.
    fn chosen(&self, url: &Url, setup: &Setup) -> Result<Target, Fault> {
        let mechanism = mechanism(setup);
        let known = |it: &&Found| it.url == *url && it.transport == setup.transport && it.target.mechanism == mechanism;
        let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner).iter().find(known).map(|it| it.target.clone());
        if let Some(mut target) = found {
            target.take_token()?;
            return Ok(target);
        }
        let mut targets = self.attached(url, setup, &Outside::of_process())?;
        targets.iter_mut().try_for_each(Target::take_token)?;
        let number = self.number_of(url, &targets)?;
        let target = targets.swap_remove(number);
        let found = Found { url: url.clone(), transport: setup.transport, number, target: target.clone() };
        FOUND.lock().unwrap_or_else(PoisonError::into_inner).push(found);
        Ok(target)
    }

    /// Which of the `targets` of `url` matches it.
    fn number_of(&self, url: &Url, targets: &[Target]) -> Result<usize, Fault> {
        let chooses = targets.len() > 1 || targets[0].asked.contains_key(SESSION_ATTRIBUTES);
        let Some(takes) = self.takes.filter(|_| chooses) else { return Ok(0) };
        if let Some(number) = known_number(url) {
            return Ok(number);
        }
        let mut refusals = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            match takes(target) {
                Ok(true) => return Ok(number),
                Ok(false) => refusals.push(format!("{}:{} is not what it asks for", target.host, target.port)),
                Err(fault) if targets.len() == 1 => return Err(fault),
                Err(fault) => refusals.push(fault.to_string()),
            }
        }
        Err(Fault::Connection(format!("no server that the URL names can be taken: {}", refusals.join("; "))))
    }

    /// The targets that `url` names, at least one; missing parts come from `outside`.
    ///
    /// # Errors
    /// As [`Product::target`].
    pub fn attached(&self, url: &Url, setup: &Setup, outside: &Outside) -> Result<Vec<Target>, Fault> {
        let mut parts = UrlParts::read(url)?;
        parts.only(&[self.tls_options, self.used], self.idle)?;
        (self.settle)(&mut parts, outside)?;
        parts.without(self.refused)?;
        if parts.hosts.len() > 1 && self.takes.is_none() {
            return Err(refused("it names several hosts, and clients of an arm use one: name that one"));
        }
        let mut tls = (self.tls)(&parts)?;
        if let Some(name) = parts.option("server_name") {
            let Some(tls) = &mut tls else { return Err(refused("server_name without TLS would not be used")) };
            tls.server_name = Some(name.to_owned());
        }
        if let Transport::Tls { version, mutual, resumption, suite, .. } = setup.transport {
            if tls.is_none() && parts.hosts.iter().any(|host| is_socket(&host.name)) {
                let why = "this arm asks for TLS, which is for connections by TCP: its URL needs a host in place of the socket";
                return Err(refused(why));
            }
            let Some(tls) = &mut tls else {
                return Err(refused(&format!("this arm asks for TLS: its URL needs {}", self.tls_hints[0])));
            };
            if tls.trusts_anyone() {
                let why = "this arm asks for TLS, and its URL takes any certificate, so that a machine in between could pose \
                           as the server: it needs";
                return Err(refused(&format!("{why} {}", self.tls_hints[0])));
            }
            if mutual && tls.identity.is_none() {
                return Err(refused(&format!("this arm asks for mutual TLS: its URL needs {}", self.tls_hints[1])));
            }
            tls.versions = vec![version];
            tls.resumption = resumption;
            tls.suite = suite;
        }
        let user = parts.user.clone().unwrap_or_default();
        let target = Target {
            host: String::new(),
            port: self.port,
            database: parts
                .database
                .clone()
                .unwrap_or_else(|| self.url_database.map_or_else(|| user.clone(), str::to_owned)),
            user,
            password: parts.password.clone().map(Secret::new),
            password_command: parts.option(PASSWORD_COMMAND).map(str::to_owned),
            must_ask: mechanism(setup).is_some(),
            tls,
            mechanism: mechanism(setup),
            asked: self.asked.iter().filter_map(|name| Some((*name, parts.option(name)?.to_owned()))).collect(),
            relay: None,
        };
        let place = |host: &Host| Target {
            host: host.name.clone(),
            port: host.port.unwrap_or(self.port),
            password: host.password.clone().map(Secret::new).or(target.password.clone()),
            ..target.clone()
        };
        Ok(parts.hosts.iter().map(place).collect())
    }
}

/// A target that was found, and for which URL.
struct Found {
    url: Url,
    transport: Transport,
    /// Which of the servers of the URL it is.
    number: usize,
    target: Target,
}

static FOUND: Mutex<Vec<Found>> = Mutex::new(Vec::new());

/// Which of the servers of `url` was chosen before, for clients of any set-up.
fn known_number(url: &Url) -> Option<usize> {
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.iter().find(|it| it.url == *url).map(|it| it.number)
}

/// How clients of this set-up authenticate.
fn mechanism(setup: &Setup) -> Option<String> {
    match &setup.authentication {
        Authentication::Password { mechanism } => Some(mechanism.clone()),
        Authentication::None => None,
    }
}

/// The method by which a server identifies a client of a Unix socket from the kernel's data about its process:
/// PostgreSQL's `peer`, MariaDB's `unix_socket`, MySQL's `auth_socket`.
pub const SOCKET_PEER: &str = "socket peer";

/// Option that selects one of several servers.
pub const SESSION_ATTRIBUTES: &str = "target_session_attrs";

/// The target of clients of a server that Tithe launched: everything follows from the set-up.
pub fn launched(host: &str, port: u16, user: &str, database: &str, setup: &Setup) -> Target {
    let must_ask = mechanism(setup).is_some();
    let credentials = &setup.credentials;
    let tls = match setup.transport {
        Transport::Plain => None,
        Transport::Tls { version, mutual, resumption, suite, .. } => Some(Tls {
            authority: Authority::Of(credentials.authority.clone()),
            server_name: None,
            versions: vec![version],
            identity: mutual.then(|| (credentials.client_certificate.clone(), credentials.client_key.clone())),
            resumption,
            suite,
            protocol: None,
        }),
    };
    Target {
        host: host.to_owned(),
        port,
        user: user.to_owned(),
        database: database.to_owned(),
        password: must_ask.then(|| credentials.password.clone()),
        password_command: None,
        must_ask,
        tls,
        mechanism: mechanism(setup),
        asked: BTreeMap::new(),
        relay: None,
    }
}

/// What to check if TLS does not start.
pub const SPEAKS_TLS: &str = "does it speak TLS at this port?";

/// True for a server that Tithe launched: the process ids that it reports are of this machine.
pub fn is_local(server: &Server) -> bool {
    matches!(server.address, Address::Tcp { .. })
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, path::PathBuf};

    use tithe_plugin::setup::TlsVersion;

    use super::*;
    use crate::test_setup::plain;

    #[test]
    fn secrets_are_kept_by_a_socket_and_by_tls_that_verifies_the_server() {
        let keeps = |host: &str, authority: Option<Authority>| {
            let tls = authority.map(|authority| Tls::of_url(authority, None));
            Target { host: host.to_owned(), tls, ..Target::default() }.keeps_secrets()
        };
        for authority in [Authority::System, Authority::Of("/ca".into()), Authority::AnyNameOf("/ca".into())] {
            assert!(keeps("db", Some(authority.clone())), "{authority:?}");
        }
        assert!(keeps("/run/db.sock", None) && keeps("/run/db.sock", Some(Authority::Anyone)));
        assert!(!keeps("db", None) && !keeps("db", Some(Authority::Anyone)), "a machine in between could read them");
    }

    #[test]
    fn a_target_in_plaintext_or_without_certificate_is_the_same_otherwise() {
        let target = Target {
            host: "db".to_owned(),
            port: 7,
            user: "ann".to_owned(),
            database: "shop".to_owned(),
            password: Some(Secret::new("correct horse")),
            must_ask: true,
            tls: Some(Tls::of_url(Authority::System, Some(("/c".into(), "/k".into())))),
            relay: Some(8),
            ..Target::default()
        };
        let (tls, password) = (target.tls.clone(), target.password.clone());
        let in_plaintext = target.in_plaintext();
        let seen = (&in_plaintext.tls, &in_plaintext.password, in_plaintext.must_ask);
        assert_eq!(seen, (&None, &None, false));
        assert_eq!(Target { tls: tls.clone(), password, must_ask: true, ..in_plaintext }, target);
        let without = target.without_certificate();
        assert_eq!(without.tls, Some(Tls::of_url(Authority::System, None)));
        assert_eq!(Target { tls, ..without }, target);
    }

    /// The outcome for a server that accepts the passwords that `accepts` does, and the passwords that it was sent.
    fn logged_in(target: &Target, accepts: impl Fn(&str) -> Result<(), Fault>) -> (Result<(), Fault>, Vec<String>) {
        let sent = RefCell::new(Vec::new());
        let outcome = target.log_in(|target| {
            let password = target.password.as_ref().map_or("", Secret::expose_text);
            sent.borrow_mut().push(password.to_owned());
            accepts(password)
        });
        (outcome, sent.into_inner())
    }

    fn refused_password() -> Fault {
        Fault::Refused("another password".to_owned())
    }

    /// Accepts this password alone.
    fn only(wanted: &'static str) -> impl Fn(&str) -> Result<(), Fault> {
        move |password| if password == wanted { Ok(()) } else { Err(refused_password()) }
    }

    #[test]
    fn a_refused_password_is_asked_for_again_if_its_command_prints_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let counting = |name: &str| format!("echo x >> {0}/{name}; wc -l < {0}/{name}", folder.path().display());
        let of = |command: String| {
            let password = token::of(&command).expect("a line");
            Target { password: Some(password), password_command: Some(command), ..Target::default() }
        };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        assert_eq!(logged_in(&of(counting("once")), only("1")), (Ok(()), owned(&["1"])));
        assert_eq!(logged_in(&of(counting("twice")), only("2")), (Ok(()), owned(&["1", "2"])));
        assert_eq!(logged_in(&of(counting("never")), only("9")), (Err(refused_password()), owned(&["1", "2"])));
        let same = of("echo always the same".to_owned());
        assert_eq!(logged_in(&same, only("9")), (Err(refused_password()), owned(&["always the same"])));
        // A broken connection says nothing about the password.
        let broken = || Fault::Connection("gone".to_owned());
        assert_eq!(logged_in(&of(counting("broken")), |_| Err(broken())), (Err(broken()), owned(&["1"])));
        let fixed = Target { password: Some(Secret::new("fixed")), ..Target::default() };
        assert_eq!(logged_in(&fixed, only("9")), (Err(refused_password()), owned(&["fixed"])));
    }

    /// A product whose URLs name several servers, of which `takes` takes some.
    fn product(takes: Option<Takes>) -> Product {
        Product {
            title: "Test",
            port: 7,
            user: "tithe",
            database: "shop",
            url_database: Some(""),
            password_variable: "TITHE_TEST_NO_SUCH_VARIABLE",
            tls_options: &[],
            used: &[],
            idle: &[],
            refused: &[],
            settle: |_, _| Ok(()),
            tls: |_| Ok(None),
            tls_hints: ["", ""],
            takes,
            asked: &[SESSION_ATTRIBUTES],
        }
    }

    #[test]
    fn of_several_servers_the_first_that_is_what_a_url_asks_for_is_taken() {
        let number = |hosts: &[&str], asks: bool, takes: Option<Takes>| {
            let asked: BTreeMap<&'static str, String> =
                if asks { [(SESSION_ATTRIBUTES, "primary".to_owned())].into() } else { BTreeMap::new() };
            let target = Target { port: 7, asked, ..Target::default() };
            let targets = hosts.iter().map(|host| Target { host: (*host).to_owned(), ..target.clone() });
            product(takes).number_of(&Url::new("test://several"), &targets.collect::<Vec<_>>())
        };
        let takes: Takes = |target| match target.host.as_str() {
            "right" => Ok(true),
            "other" => Ok(false),
            _ => Err(Fault::Connection("gone".to_owned())),
        };
        assert_eq!(number(&["other", "broken", "right", "right"], false, Some(takes)), Ok(2));
        assert_eq!(number(&["right", "other"], true, Some(takes)), Ok(0));
        let none = "no server that the URL names can be taken: other:7 is not what it asks for";
        let none = |rest: &str| Err(Fault::Connection(format!("{none}{rest}")));
        assert_eq!(number(&["other", "broken"], false, Some(takes)), none("; connection: gone"));
        // A single server is tried only if the URL asks for something. If it fails, the error is that of the server.
        assert_eq!(number(&["other"], false, Some(takes)), Ok(0));
        assert_eq!(number(&["other"], true, Some(takes)), none(""));
        assert_eq!(number(&["broken"], true, Some(takes)), Err(Fault::Connection("gone".to_owned())));
        assert_eq!(number(&["other", "right"], true, None), Ok(0), "the product does not choose");
    }

    #[test]
    fn other_programs_reach_servers_that_tithe_launched_as_its_own_clients_do() {
        let launched = Server::at(Address::Tcp { host: "127.0.0.2".to_owned(), port: 5499 });
        let reach = |setup: &Setup| product(None).reach(&launched, setup).expect("it was launched");
        let Reach { host, port, user, database, password, tls } = reach(&plain());
        assert_eq!((host.as_str(), port, user.as_str(), database.as_str()), ("127.0.0.2", 5499, "tithe", "shop"));
        assert_eq!((password, tls), (None, None));
        let asked = Authentication::Password { mechanism: "scram".to_owned() };
        let setup = Setup { authentication: asked, ..plain() };
        assert_eq!(reach(&setup).password, Some(plain().credentials.password));
        for mutual in [false, true] {
            let setup = Setup { transport: Transport::tls(TlsVersion::V1_2, mutual), ..plain() };
            let tls = reach(&setup).tls.expect("TLS");
            assert_eq!((tls.versions, tls.mutual), (vec![TlsVersion::V1_2], mutual));
            assert_eq!(tls.authority, PathBuf::from("/m/ca.pem"));
            assert_eq!(tls.identity.0, PathBuf::from("/m/client.pem"));
        }
        let attached = Server::at(Address::Attached(Url::new("test://db")));
        assert!(matches!(product(None).reach(&attached, &plain()), Err(Fault::Refused(_))));
        assert!(is_local(&launched) && !is_local(&attached) && !is_local(&Server::at(Address::Nowhere)));
    }

    #[test]
    fn another_account_of_the_evidence_has_no_password_of_the_arms() {
        let asked = Authentication::Password { mechanism: "scram".to_owned() };
        let setup = Setup { authentication: asked, account: Some("guest".to_owned()), ..plain() };
        let launched = Server::at(Address::Tcp { host: "127.0.0.1".to_owned(), port: 5499 });
        let target = product(None).target(&launched, &setup).expect("a target");
        assert_eq!((target.user.as_str(), target.password, target.mechanism), ("guest", Some(Secret::new([])), None));
        assert!(!target.must_ask && target.password_command.is_none());
        let own = product(None).target(&launched, &Setup { account: None, ..setup }).expect("a target");
        assert_eq!((own.user.as_str(), own.mechanism.as_deref(), own.must_ask), ("tithe", Some("scram"), true));
        let nowhere = product(None).target(&Server::at(Address::Nowhere), &plain());
        assert_eq!(nowhere, Err(Fault::Refused("Test is reached by TCP".to_owned())));
    }
}
