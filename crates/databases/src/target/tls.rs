//! How TLS is used with a server, and the state that all connections of this program to it share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    setup::{Suite, TlsVersion},
    wire::{ClientConfig, Identity, Trust, Wire, client_config},
};

use super::parts::{UrlParts, refused};

/// How TLS is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tls {
    /// Which certificates are accepted.
    pub authority: Authority,
    /// Name that the certificate must have; `None`: the host's.
    pub server_name: Option<String>,
    /// Versions allowed.
    pub versions: Vec<TlsVersion>,
    /// Certificate and key of the client, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Sessions of earlier connections are resumed, if the server allows it.
    pub resumption: bool,
    /// The only cipher that is offered; `None`: all supported ones.
    pub suite: Option<Suite>,
    /// The protocol that the client names in the TLS handshake (ALPN).
    pub protocol: Option<&'static str>,
}

/// Which certificates a client accepts; files are PEM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// Those that this authority signed for the server's name.
    Of(PathBuf),
    /// Those that this authority signed, for whatever name, and this very certificate.
    AnyNameOf(PathBuf),
    /// Those that one of the system's authorities signed for the server's name.
    System,
    /// Any certificate.
    Anyone,
}

impl Authority {
    /// The authority in `file`, or the system's if it is `system`, as in libpq.
    pub fn named(file: &str) -> Self {
        if file == "system" { Self::System } else { Self::Of(file.into()) }
    }

    /// The same as far as `authority` is another one.
    #[must_use]
    pub fn replaced(&self, authority: &Path) -> Self {
        match self {
            Self::AnyNameOf(_) => Self::AnyNameOf(authority.to_owned()),
            _ => Self::Of(authority.to_owned()),
        }
    }

    fn trust(&self) -> Trust<'_> {
        match self {
            Self::Of(file) => Trust::Authority(file),
            Self::AnyNameOf(file) => Trust::AnyName(file),
            Self::System => Trust::System,
            Self::Anyone => Trust::Anyone,
        }
    }
}

/// The state that connections of this program to one server share, as in any client program: certificates, which are
/// read once, and the server's tickets for resuming sessions.
struct Shared {
    config: Arc<ClientConfig>,
    full: AtomicU64,
    resumed: AtomicU64,
    shown: Mutex<BTreeSet<Shown>>,
}

/// The result of a full handshake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// The cipher suite, as its standard names it.
    pub suite: String,
    /// Kind of the server's key.
    pub key: String,
    /// Certificates that the server has shown.
    pub chain: usize,
}

impl std::fmt::Display for Shown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { suite, key, chain } = self;
        write!(formatter, "{suite}, a key {key}, {chain} {}", if *chain == 1 { "certificate" } else { "certificates" })
    }
}

/// By host, port and TLS settings: a ticket is only valid for the server that issued it, whatever its name.
static SHARED: Mutex<BTreeMap<(String, u16, Tls), Arc<Shared>>> = Mutex::new(BTreeMap::new());

/// Handshakes of this program with one server so far, as the client saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshakes {
    /// With certificates.
    pub full: u64,
    /// With the secret of an earlier connection in their place.
    pub resumed: u64,
}

impl Tls {
    /// TLS of any version, with what a URL sets.
    pub fn of_url(authority: Authority, identity: Option<(PathBuf, PathBuf)>) -> Self {
        let versions = vec![TlsVersion::V1_3, TlsVersion::V1_2];
        Self { authority, server_name: None, versions, identity, resumption: false, suite: None, protocol: None }
    }

    /// TLS by the scheme of a URL, such as `etcds` for `scheme`: with the system's authorities, an authority's file, or
    /// `insecure=yes`; `None` for another scheme. The options: `ca`, `cacert`, `insecure`, `cert` and `key`.
    ///
    /// # Errors
    /// [`Fault::Refused`] for options that contradict each other or would not be used.
    pub fn of_scheme(parts: &UrlParts, scheme: &str) -> Result<Option<Self>, Fault> {
        let identity = parts.identity(&["cert"], &["key"])?;
        let file = parts.any(&["ca", "cacert"]);
        let insecure = match parts.option("insecure") {
            None | Some("no") => false,
            Some("yes") => true,
            Some(_) => return Err(refused("insecure is yes or no")),
        };
        let authority = match (parts.scheme == scheme, file, insecure) {
            (true, Some(file), false) => Authority::named(file),
            (true, None, true) => Authority::Anyone,
            (true, None, false) => Authority::System,
            (true, Some(_), true) => return Err(refused("give insecure=yes alone, without ca=FILE")),
            (false, None, false) if identity.is_none() => return Ok(None),
            (false, ..) => return Err(refused(&format!("options for TLS without {scheme}:// would not be used"))),
        };
        Ok(Some(Self::of_url(authority, identity)))
    }

    /// True if any certificate is accepted.
    pub fn trusts_anyone(&self) -> bool {
        self.authority == Authority::Anyone
    }

    /// The files of the authority and of the client's certificate.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let authority = match &self.authority {
            Authority::Of(file) | Authority::AnyNameOf(file) => Some(file),
            Authority::System | Authority::Anyone => None,
        };
        authority.into_iter().chain(self.identity.as_ref().map(|(certificate, _)| certificate)).map(PathBuf::as_path)
    }

    /// A remark about the server's identity, if it is not verified by its host name.
    pub fn disclosure(&self) -> Option<String> {
        match (&self.authority, &self.server_name) {
            (Authority::Anyone, _) => None,
            (Authority::AnyNameOf(_), _) => {
                Some("encrypted and authenticated by authority, host name not checked".to_owned())
            }
            (_, Some(name)) => Some(format!("the certificate is held to the name {name} and not to the host's")),
            (_, None) => None,
        }
    }

    /// Speaks TLS on `wire`, which leads to `host` and `port`, from here on.
    ///
    /// # Errors
    /// As [`client_config`] and [`Wire::start_tls`].
    pub fn start(&self, wire: &mut Wire, host: &str, port: u16) -> Result<(), Fault> {
        let shared = self.shared(host, port)?;
        wire.start_tls(Arc::clone(&shared.config), self.name_at(host)).map_err(|fault| match fault {
            Fault::Refused(words) if words.contains(OTHER_NAME) => Fault::Refused(format!(
                "{words}; for a certificate without a usable name, name the one that it has (`server_name=NAME` in the \
                 URL) or have its authority alone checked (`verify-ca`)"
            )),
            fault => fault,
        })?;
        let Some(facts) = wire.tls_facts() else { return Ok(()) };
        if facts.handshake == "Resumed" {
            shared.resumed.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        shared.full.fetch_add(1, Ordering::Relaxed);
        let shown = Shown { suite: facts.cipher, key: facts.key, chain: facts.chain };
        shared.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(shown);
        Ok(())
    }

    /// The name that the certificate of a server at `host` must have.
    fn name_at<'a>(&'a self, host: &'a str) -> &'a str {
        match &self.server_name {
            Some(name) => name,
            // A server at a socket has no name: no other server can be there.
            None if tithe_plugin::wire::is_socket(host) => "localhost",
            // The zone of an address is this machine's own.
            None => host.split('%').next().unwrap_or_default(),
        }
    }

    /// Handshakes so far with the server at `host` and `port`.
    pub fn handshakes(&self, host: &str, port: u16) -> Handshakes {
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get(&(host.to_owned(), port, self.clone()));
        let read = |count: fn(&Shared) -> &AtomicU64| shared.map_or(0, |shared| count(shared).load(Ordering::Relaxed));
        Handshakes { full: read(|shared| &shared.full), resumed: read(|shared| &shared.resumed) }
    }

    /// What the server at `host` and `port` has shown in full handshakes so far.
    pub fn shown(&self, host: &str, port: u16) -> BTreeSet<Shown> {
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get(&(host.to_owned(), port, self.clone()));
        let read = |shared: &Arc<Shared>| shared.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shared.map_or_else(BTreeSet::new, read)
    }

    fn shared(&self, host: &str, port: u16) -> Result<Arc<Shared>, Fault> {
        let key = (host.to_owned(), port, self.clone());
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&key) {
            return Ok(Arc::clone(known));
        }
        let [full, resumed] = [0; 2].map(AtomicU64::new);
        let made = Arc::new(Shared { config: self.config()?, full, resumed, shown: Mutex::default() });
        all.insert(key, Arc::clone(&made));
        Ok(made)
    }

    /// The client's configuration, with the certificates read from their files.
    ///
    /// # Errors
    /// As [`client_config`].
    pub fn config(&self) -> Result<Arc<ClientConfig>, Fault> {
        let identity = self.identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        let mut config = client_config(self.authority.trust(), identity, &self.versions, self.resumption, self.suite)?;
        if let Some(protocol) = self.protocol {
            Arc::make_mut(&mut config).alpn_protocols = vec![protocol.as_bytes().to_vec()];
        }
        Ok(config)
    }
}

/// The text of a refusal for a certificate with another name.
const OTHER_NAME: &str = "the name used here";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_held_to_an_address_without_its_zone() {
        let tls = Tls::of_url(Authority::System, None);
        let names = ["db.example", "fe80::7%lo", "/run/db.sock"].map(|host| tls.name_at(host).to_owned());
        assert_eq!(names, ["db.example", "fe80::7", "localhost"]);
        let named = Tls { server_name: Some("db".to_owned()), ..tls };
        assert_eq!(named.name_at("fe80::7%lo"), "db");
    }
}
