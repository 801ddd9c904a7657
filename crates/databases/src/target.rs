//! Where a connection goes, as whom, and how protected: what the wire clients of all servers share.
//!
//! For a launched server everything follows from the set-up. For an attached one the user's URL says it; options that
//! might fall back to plaintext are refused by every product, and nothing of a URL is ever quoted in an error, because
//! it may hold a password. What a product calls its options is in its [`Product`].

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    secret::Secret,
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    setup::{Authentication, Reach, ReachTls, Setup, TlsVersion, Transport},
    wire::{ClientConfig, Identity, Trust, Wire, client_config},
};

/// What differs from product to product.
pub struct Product {
    /// Name in reports and errors.
    pub title: &'static str,
    /// Port where a URL names none.
    pub port: u16,
    /// Account in servers that Tithe launches; empty where the product has a nameless one.
    pub user: &'static str,
    /// Database in servers that Tithe launches.
    pub database: &'static str,
    /// Database where a URL names none; `None`: the one that is called like the user.
    pub url_database: Option<&'static str>,
    /// True when a URL must name a user.
    pub needs_user: bool,
    /// Environment variable with the password, used when the URL holds none.
    pub password_variable: &'static str,
    /// Reads what the URL says about TLS; `None` means that nothing but plaintext is spoken.
    pub tls: fn(&UrlParts) -> Result<Option<Tls>, Fault>,
    /// What a URL needs for TLS, and for a client certificate.
    pub tls_hints: [&'static str; 2],
}

/// Where a connection goes, as whom, and how protected.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, used when the server asks for one.
    pub password: Option<Secret>,
    /// True when a server that does not ask for the password is an error.
    pub must_ask: bool,
    /// TLS; `None` means that nothing but plaintext is spoken.
    pub tls: Option<Tls>,
    /// Port on this machine of a relay to the server, through which a connection is to go.
    pub relay: Option<u16>,
}

/// How to speak TLS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tls {
    /// Authority that signed the server's certificate, PEM; `None` accepts anyone's.
    pub authority: Option<PathBuf>,
    /// Versions allowed.
    pub versions: Vec<TlsVersion>,
    /// Certificate and key of the client, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Sessions of earlier connections are resumed, as far as the server lets the client.
    pub resumption: bool,
}

/// What the connections of this program to one server share, as those of any client program do: certificates, which are
/// read once, and what the server gave out for resuming sessions.
struct Shared {
    config: Arc<ClientConfig>,
    full: AtomicU64,
    resumed: AtomicU64,
}

/// By host, port and how TLS is spoken: a ticket is good for the server alone that gave it out, whatever its name.
static SHARED: Mutex<BTreeMap<(String, u16, Tls), Arc<Shared>>> = Mutex::new(BTreeMap::new());

/// Handshakes of this program with one server so far, as the client saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshakes {
    /// With certificates.
    pub full: u64,
    /// With the secret of an earlier connection in their place.
    pub resumed: u64,
}

impl Target {
    /// Opens a connection, through the relay where there is one.
    ///
    /// # Errors
    /// As [`Wire::connect`].
    pub fn dial(&self) -> Result<Wire, Fault> {
        match self.relay {
            Some(port) => Wire::connect("127.0.0.1", port),
            None => Wire::connect(&self.host, self.port),
        }
    }

    /// The same without TLS, and without the password: whoever asks for TLS wants it sent in no other way, and a server
    /// that asks for it has shown already that it serves plaintext.
    #[must_use]
    pub fn in_plaintext(&self) -> Self {
        Self { tls: None, password: None, must_ask: false, ..self.clone() }
    }

    /// Handshakes with this server, as this target has them done.
    pub fn handshakes(&self) -> Handshakes {
        let Some(tls) = &self.tls else { return Handshakes::default() };
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get(&(self.host.clone(), self.port, tls.clone()));
        let read = |count: fn(&Shared) -> &AtomicU64| shared.map_or(0, |shared| count(shared).load(Ordering::Relaxed));
        Handshakes { full: read(|shared| &shared.full), resumed: read(|shared| &shared.resumed) }
    }
}

impl Tls {
    /// TLS of any version, as far as a URL says it.
    pub fn of_url(authority: Option<PathBuf>, identity: Option<(PathBuf, PathBuf)>) -> Self {
        Self { authority, versions: vec![TlsVersion::V1_3, TlsVersion::V1_2], identity, resumption: false }
    }

    /// Speaks TLS on `wire`, which leads to `host` and `port`, from here on.
    ///
    /// # Errors
    /// As [`client_config`] and [`Wire::start_tls`].
    pub fn start(&self, wire: &mut Wire, host: &str, port: u16) -> Result<(), Fault> {
        let shared = self.shared(host, port)?;
        wire.start_tls(Arc::clone(&shared.config), host)?;
        let resumed = wire.tls_facts().is_some_and(|facts| facts.handshake == "Resumed");
        let count = if resumed { &shared.resumed } else { &shared.full };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn shared(&self, host: &str, port: u16) -> Result<Arc<Shared>, Fault> {
        let key = (host.to_owned(), port, self.clone());
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(Shared { config: self.config()?, full: AtomicU64::new(0), resumed: AtomicU64::new(0) });
        all.insert(key, Arc::clone(&made));
        Ok(made)
    }

    /// What the client is told, with the certificates that are read from their files.
    fn config(&self) -> Result<Arc<ClientConfig>, Fault> {
        let trust = self.authority.as_deref().map_or(Trust::Anyone, Trust::Authority);
        let identity = self.identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        client_config(trust, identity, &self.versions, self.resumption)
    }
}

impl Product {
    /// How another program reaches a server that Tithe launched.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a server that Tithe did not launch: it is not another program's to use.
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
        match &server.address {
            Address::Tcp { host, port } => Ok(launched(host, *port, self.user, self.database, setup)),
            Address::Attached(url) => self.attached(url, setup, std::env::var(self.password_variable).ok()),
            Address::Relayed { url, port } => {
                let target = self.attached(url, setup, std::env::var(self.password_variable).ok())?;
                Ok(Target { relay: Some(*port), ..target })
            }
            Address::File(_) | Address::Nowhere => Err(Fault::Refused(format!("{} is reached by TCP", self.title))),
        }
    }

    /// Looks whether `url` can be used by clients with this set-up, and whether the certificates that it names are
    /// there.
    ///
    /// # Errors
    /// [`Fault::Refused`] with what is wrong; the text never quotes the URL.
    pub fn check_url(&self, url: &Url, setup: &Setup) -> Result<(), Fault> {
        match self.attached(url, setup, None)?.tls {
            Some(tls) => tls.config().map(drop).map_err(|fault| refused(&fault.to_string())),
            None => Ok(()),
        }
    }

    /// Host and port of a server at `url`; `None` for a URL that cannot be used.
    pub fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        UrlParts::read(url.expose(), self).ok().map(|parts| (parts.host, parts.port))
    }

    /// The target that `url` names, with a password from outside where it holds none.
    ///
    /// # Errors
    /// As [`Product::target`].
    pub fn attached(&self, url: &Url, setup: &Setup, password_outside: Option<String>) -> Result<Target, Fault> {
        let parts = UrlParts::read(url.expose(), self)?;
        let mut tls = (self.tls)(&parts)?;
        if let Transport::Tls { version, mutual, resumption } = setup.transport {
            let Some(tls) = &mut tls else {
                return Err(refused(&format!("this arm asks for TLS: its URL needs {}", self.tls_hints[0])));
            };
            if tls.authority.is_none() {
                let why = "this arm asks for TLS, and its URL takes any certificate, so that whoever stands between could \
                           pose as the server: it needs";
                return Err(refused(&format!("{why} {}", self.tls_hints[0])));
            }
            if mutual && tls.identity.is_none() {
                return Err(refused(&format!("this arm asks for mutual TLS: its URL needs {}", self.tls_hints[1])));
            }
            tls.versions = vec![version];
            tls.resumption = resumption;
        }
        Ok(Target {
            password: parts.password.or(password_outside).map(Secret::new),
            host: parts.host,
            port: parts.port,
            database: parts
                .database
                .unwrap_or_else(|| self.url_database.map_or_else(|| parts.user.clone(), str::to_owned)),
            user: parts.user,
            must_ask: matches!(setup.authentication, Authentication::Password { .. }),
            tls,
            relay: None,
        })
    }
}

/// The target of clients of a server that Tithe launched: everything follows from the set-up.
pub fn launched(host: &str, port: u16, user: &str, database: &str, setup: &Setup) -> Target {
    let must_ask = matches!(setup.authentication, Authentication::Password { .. });
    let credentials = &setup.credentials;
    let tls = match setup.transport {
        Transport::Plain => None,
        Transport::Tls { version, mutual, resumption } => Some(Tls {
            authority: Some(credentials.authority.clone()),
            versions: vec![version],
            identity: mutual.then(|| (credentials.client_certificate.clone(), credentials.client_key.clone())),
            resumption,
        }),
    };
    Target {
        host: host.to_owned(),
        port,
        user: user.to_owned(),
        database: database.to_owned(),
        password: must_ask.then(|| credentials.password.clone()),
        must_ask,
        tls,
        relay: None,
    }
}

/// True for a server that Tithe launched: the processes that it names are on this machine.
pub fn is_local(server: &Server) -> bool {
    matches!(server.address, Address::Tcp { .. })
}

/// A refusal. It never quotes the URL, which may hold a password.
pub fn refused(why: &str) -> Fault {
    Fault::Refused(format!("the server's URL: {why}"))
}

/// A URL taken apart and decoded.
pub struct UrlParts {
    /// What stands before `://`.
    pub scheme: String,
    user: String,
    password: Option<String>,
    host: String,
    port: u16,
    database: Option<String>,
    options: Vec<(String, String)>,
}

impl UrlParts {
    fn read(url: &str, product: &Product) -> Result<Self, Fault> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("it has no ://"))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may hold an `@` that was not encoded; a host cannot.
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (user, place),
            None if product.needs_user => return Err(refused("it names no user")),
            None => ("", authority),
        };
        let (user, password) = match user.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (user, None),
        };
        let (host, port) = host_and_port(place)?;
        let options = options.split('&').filter(|option| !option.is_empty()).map(|option| {
            let (name, value) = option.split_once('=').ok_or_else(|| refused("an option has no ="))?;
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Self {
            scheme: scheme.to_owned(),
            user: decode(user)?,
            password,
            host: decode(host)?,
            port: port.unwrap_or(product.port),
            database: if database.is_empty() { None } else { Some(decode(database)?) },
            options: options.collect::<Result<_, Fault>>()?,
        })
    }

    /// The value of the option `wanted`; the last one counts.
    pub fn option(&self, wanted: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// Refuses options other than `known`.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the first unknown name.
    pub fn only(&self, known: &[&str]) -> Result<(), Fault> {
        match self.options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(refused(&format!("option {name} is not known; known are {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// The client's certificate and key, in options of these names: both or none.
    ///
    /// # Errors
    /// [`Fault::Refused`] for one without the other.
    pub fn identity(&self, certificate: &str, key: &str) -> Result<Option<(PathBuf, PathBuf)>, Fault> {
        match (self.option(certificate), self.option(key)) {
            (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
            (None, None) => Ok(None),
            _ => Err(refused(&format!("{certificate} and {key} belong together"))),
        }
    }
}

/// Splits `host:port`, `[v6]:port` or `host`.
fn host_and_port(place: &str) -> Result<(&str, Option<u16>), Fault> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| refused("an IPv6 address is not closed"))?;
            (host, port.strip_prefix(':'))
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(',') {
        return Err(refused("it must name one host"));
    }
    let port = port.filter(|port| !port.is_empty()).map(str::parse).transpose();
    Ok((host, port.map_err(|_| refused("its port is not a number up to 65535"))?))
}

/// Decodes `%41` (RFC 3986, section 2.1).
fn decode(text: &str) -> Result<String, Fault> {
    let malformed = || refused("a % is not followed by two hexadecimal digits of UTF-8 text");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let (digits, after) = after.split_first_chunk::<2>().ok_or_else(malformed)?;
            let digit = |digit: u8| (digit as char).to_digit(16).ok_or_else(malformed);
            bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
            rest = after;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}
