//! Which client connects to which server, as which account.
//!
//! A URL is MongoDB's own (documentation, "Connection Strings"): one host, a replica set, or routers of a sharded
//! cluster; `mongodb+srv://` is refused. TLS needs `tls=true` and either `tlsCAFile=FILE` or
//! `tlsAllowInvalidCertificates=true`, which trusts any certificate. A password that is not in the URL is taken from
//! `MONGODB_PASSWORD`.

use std::collections::BTreeMap;

use mongodb::options::{
    AuthMechanism, ClientOptions, ConnectionString, Credential, HostInfo, ServerAddress, Tls as DriverTls, TlsOptions,
};
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    secret::Secret,
};
use tithe_model::experiment::Url;
use tithe_plugin::setup::{Authentication, Setup, Transport};

use super::link::{fault, scheduler};
use crate::target::{
    Authority, Target, Tls, launched,
    parts::{filled_in, separated},
    refused,
};

/// Account of the measured clients.
pub const USER: &str = "tithe";
/// Account with all rights, in launched servers that ask for a password.
pub const ADMINISTRATOR: &str = "tithe-administrator";
/// The database that everything of Tithe's is in.
pub const DATABASE: &str = "tithe";
/// The client's certificate and key in one file, for a launched server that requires it.
pub const CLIENT_IDENTITY: &str = "client.pem";

const PORT: u16 = 27017;
/// Environment variable with the password, used when the URL holds none.
pub const PASSWORD_VARIABLE: &str = "MONGODB_PASSWORD";
/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] =
    &["tls", "ssl", "tlsCAFile", "tlsCertificateKeyFile", "tlsAllowInvalidCertificates", "tlsInsecure"];
/// Options of a URL that are not possible: each connection of the load has its own driver.
const NOT_IN_URLS: [&str; 2] = ["maxPoolSize", "minPoolSize"];
/// Options of a URL without effect: a failure counts as a failure, and Tithe's clients use its name.
const IDLE: [&str; 5] = ["appName", "retryReads", "retryWrites", OLD[0], OLD[1]];
/// Options of old drivers of JavaScript, which this driver refuses.
const OLD: [&str; 2] = ["useNewUrlParser", "useUnifiedTopology"];
/// The reason against a URL that the driver refuses.
const UNREADABLE: &str = "the driver cannot read it: in a user's name and in a password % : / ? # [ ] @ are written \
                          %25 %3A %2F %3F %23 %5B %5D %40, and options are those of MongoDB's connection strings";

/// The options of the driver of an arm's clients.
///
/// # Errors
/// [`Fault::Refused`] for a URL that cannot be used, or that contradicts the set-up.
pub fn of_clients(server: &Server, setup: &Setup) -> Result<ClientOptions, Fault> {
    of(server, setup, USER)
}

/// The options of an administrator's driver; for an attached server it uses the user's own account.
///
/// # Errors
/// As [`of_clients`].
pub fn of_administrator(server: &Server, setup: &Setup) -> Result<ClientOptions, Fault> {
    of(server, setup, ADMINISTRATOR)
}

fn of(server: &Server, setup: &Setup, user: &str) -> Result<ClientOptions, Fault> {
    match &server.address {
        Address::Tcp { host, port } => Ok(direct(&of_launched(host, *port, server, setup, user), mechanism(setup))),
        Address::Attached(url) => attached(url, setup, std::env::var(PASSWORD_VARIABLE).ok()),
        Address::Relayed { url, port } => {
            let mut options = attached(url, setup, std::env::var(PASSWORD_VARIABLE).ok())?;
            options.hosts = vec![ServerAddress::Tcp { host: LOOPBACK.to_owned(), port: Some(*port) }];
            Ok(options)
        }
        Address::File(_) | Address::Nowhere => Err(Fault::Refused("MongoDB is reached by TCP".to_owned())),
    }
}

/// The one server of `url` if a relay can be put in front of it: the driver is set to search for no other
/// (`directConnection=true`), and does not check the certificate for a name that the relay does not have.
pub fn endpoint(url: &Url) -> Option<(String, u16)> {
    let parsed = parsed(url).ok()?;
    let HostInfo::HostIdentifiers(hosts) = parsed.host_info else { return None };
    let [ServerAddress::Tcp { host, port }] = hosts.as_slice() else { return None };
    let trusts_anyone = match &parsed.tls {
        Some(DriverTls::Enabled(tls)) => tls.allow_invalid_certificates == Some(true),
        _ => true,
    };
    let relayed = parsed.direct_connection == Some(true) && (trusts_anyone || host == LOOPBACK);
    relayed.then(|| (host.clone(), port.unwrap_or(PORT)))
}

/// Where relays are.
const LOOPBACK: &str = "127.0.0.1";

/// The server of the measured clients, for checks that connect to one server; of several, the first.
///
/// # Errors
/// As [`of_clients`].
pub fn door(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    if let Address::Tcp { host, port } = &server.address {
        return Ok(of_launched(host, *port, server, setup, USER));
    }
    let options = of_clients(server, setup)?;
    let Some(ServerAddress::Tcp { host, port }) = options.hosts.first() else {
        return Err(refused("it names no host"));
    };
    let credential = options.credential.as_ref();
    Ok(Target {
        host: host.clone(),
        port: port.unwrap_or(PORT),
        user: credential.and_then(|credential| credential.username.clone()).unwrap_or_default(),
        database: credential.and_then(|credential| credential.source.clone()).unwrap_or_else(|| "admin".to_owned()),
        password: credential.and_then(|credential| credential.password.clone()).map(Secret::new),
        password_command: None,
        must_ask: matches!(setup.authentication, Authentication::Password { .. }),
        tls: tls_of(&options),
        mechanism: None,
        asked: BTreeMap::new(),
        relay: None,
    })
}

fn of_launched(host: &str, port: u16, server: &Server, setup: &Setup, user: &str) -> Target {
    let mut target = launched(host, port, user, "admin", setup);
    let combined = server.folder.join(CLIENT_IDENTITY);
    for tls in target.tls.iter_mut().filter(|tls| tls.identity.is_some()) {
        tls.identity = Some((combined.clone(), combined.clone()));
    }
    target
}

/// The options of a driver that uses one server and searches for no other.
pub fn direct(target: &Target, mechanism: Option<AuthMechanism>) -> ClientOptions {
    let address = ServerAddress::Tcp { host: target.host.clone(), port: Some(target.port) };
    let mut options = ClientOptions::builder().hosts(vec![address]).direct_connection(true).build();
    options.tls = Some(target.tls.as_ref().map_or(DriverTls::Disabled, |tls| DriverTls::Enabled(driver_tls(tls))));
    options.credential = match (mechanism, &target.password) {
        // The certificate identifies the client.
        (Some(AuthMechanism::MongoDbX509), _) => {
            let mut credential = Credential::default();
            credential.mechanism = Some(AuthMechanism::MongoDbX509);
            Some(credential)
        }
        (_, None) => None,
        (mechanism, Some(password)) => {
            let mut credential = Credential::default();
            credential.username = Some(target.user.clone());
            credential.password = Some(password.expose_text().to_owned());
            credential.source = Some(target.database.clone());
            credential.mechanism = mechanism;
            Some(credential)
        }
    };
    options
}

fn driver_tls(tls: &Tls) -> TlsOptions {
    let mut options = TlsOptions::default();
    if let Authority::Of(file) = &tls.authority {
        options.ca_file_path = Some(file.clone());
    }
    options.allow_invalid_certificates = tls.trusts_anyone().then_some(true);
    options.cert_key_file_path = tls.identity.as_ref().map(|(combined, _)| combined.clone());
    options
}

/// TLS as `options` have it; `None` without.
fn tls_of(options: &ClientOptions) -> Option<Tls> {
    let Some(DriverTls::Enabled(tls)) = &options.tls else { return None };
    let identity = tls.cert_key_file_path.as_ref().map(|combined| (combined.clone(), combined.clone()));
    let authority = tls.ca_file_path.clone().map_or(Authority::Anyone, Authority::Of);
    Some(Tls::of_url(authority, identity))
}

/// How an arm's clients prove that they know the password; `None` leaves it to the driver.
pub fn mechanism(setup: &Setup) -> Option<AuthMechanism> {
    match &setup.authentication {
        Authentication::Password { mechanism } if mechanism == "SCRAM-SHA-1" => Some(AuthMechanism::ScramSha1),
        Authentication::Password { .. } => Some(AuthMechanism::ScramSha256),
        Authentication::None => None,
    }
}

/// The name of a mechanism for users.
pub fn mechanism_name(mechanism: &AuthMechanism) -> &'static str {
    match mechanism {
        AuthMechanism::ScramSha1 => "SCRAM-SHA-1",
        AuthMechanism::ScramSha256 => "SCRAM-SHA-256",
        AuthMechanism::MongoDbX509 => "MONGODB-X509",
        _ => "another mechanism",
    }
}

/// Checks whether `url` can be used by clients with this set-up.
///
/// # Errors
/// [`Fault::Refused`]; the text never quotes the URL.
pub fn check_url(url: &Url, setup: &Setup) -> Result<(), Fault> {
    if url.scheme() == "mongodb+srv" {
        return Err(refused(
            "mongodb+srv has hosts and options looked up by DNS, so that the same URL may lead elsewhere tomorrow: write \
             mongodb:// with the hosts that `nslookup -type=SRV _mongodb._tcp.HOST` names and tls=true",
        ));
    }
    filled_in(url)?;
    separated(url)?;
    if let Some(name) = named(url, &NOT_IN_URLS).first() {
        return Err(refused(&format!("option {name} is Tithe's: each connection of the load has its own driver")));
    }
    let parsed = parsed(url)?;
    if let Some(DriverTls::Enabled(tls)) = &parsed.tls {
        verified(tls)?;
    }
    as_asked(parsed.tls.as_ref(), setup.transport)
}

/// The driver's result for `url`.
///
/// # Errors
/// [`Fault::Refused`] if it cannot read it; the driver's own message may quote the URL.
fn parsed(url: &Url) -> Result<ConnectionString, Fault> {
    // The driver panics if the hex digits are letters outside ASCII (mongodb 3.8.2, `validate_and_parse_userinfo`).
    let is_encoded = |part: &str| part.as_bytes().get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if !url.expose().split('%').skip(1).all(is_encoded) {
        return Err(refused("a percent sign in a value is written %25"));
    }
    ConnectionString::parse(for_driver(url)).map_err(|_| refused(UNREADABLE))
}

/// `url` without the options that its driver does not know.
fn for_driver(url: &Url) -> String {
    let Some((place, given)) = url.expose().split_once('?') else { return url.expose().to_owned() };
    let is_old = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        OLD.iter().any(|old| name.eq_ignore_ascii_case(old))
    };
    let kept: Vec<&str> = given.split('&').filter(|pair| !is_old(pair)).collect();
    if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
}

/// The parts of `url` that have no effect.
pub fn remarks(url: &Url) -> Vec<String> {
    let idle = named(url, &IDLE);
    if idle.is_empty() { Vec::new() } else { vec![format!("no effect here: {}", idle.join(", "))] }
}

/// Those of `options` that `url` names.
fn named(url: &Url, options: &[&'static str]) -> Vec<&'static str> {
    let given = url.expose().split_once('?').map_or("", |(_, given)| given);
    let is_given = |option: &&str| {
        given.split('&').any(|pair| pair.split('=').next().is_some_and(|name| name.eq_ignore_ascii_case(option)))
    };
    options.iter().copied().filter(|option| is_given(option)).collect()
}

/// Refuses a connection if TLS was requested and not obtained.
fn as_asked(tls: Option<&DriverTls>, transport: Transport) -> Result<(), Fault> {
    match (tls, transport) {
        (_, Transport::Plain) => Ok(()),
        (Some(DriverTls::Enabled(tls)), Transport::Tls { .. }) if tls.ca_file_path.is_none() => Err(refused(
            "this arm asks for TLS, and its URL takes any certificate, so that a machine in between could pose as the \
             server: it needs tlsCAFile=FILE",
        )),
        (Some(DriverTls::Enabled(_)), Transport::Tls { mutual: false, .. }) => Ok(()),
        (Some(DriverTls::Enabled(tls)), Transport::Tls { .. }) if tls.cert_key_file_path.is_some() => Ok(()),
        (Some(DriverTls::Enabled(_)), Transport::Tls { .. }) => {
            Err(refused("this arm asks for mutual TLS: its URL needs tlsCertificateKeyFile=FILE"))
        }
        (_, Transport::Tls { .. }) => Err(refused("this arm asks for TLS: its URL needs tls=true with tlsCAFile=FILE")),
    }
}

/// Refuses a URL that does not state which certificates to trust.
fn verified(tls: &TlsOptions) -> Result<(), Fault> {
    match (&tls.ca_file_path, tls.allow_invalid_certificates) {
        (None, Some(true)) | (Some(_), None | Some(false)) => Ok(()),
        (Some(_), Some(true)) => Err(refused("give tlsAllowInvalidCertificates=true alone, without tlsCAFile")),
        (None, _) => Err(refused(
            "tls=true needs tlsCAFile=FILE (for a public authority the system's list, \
             /etc/ssl/certs/ca-certificates.crt on Debian and Ubuntu), or tlsAllowInvalidCertificates=true to trust \
             anyone",
        )),
    }
}

/// The options of the driver for an attached server.
fn attached(url: &Url, setup: &Setup, password_outside: Option<String>) -> Result<ClientOptions, Fault> {
    check_url(url, setup)?;
    let text = for_driver(url);
    let parse = async { ClientOptions::parse(text.as_str()).await };
    let mut options = scheduler()?.block_on(parse).map_err(|error| match fault(&error) {
        // Host names that cannot be resolved are not secret; anything else may quote the URL.
        Fault::Connection(words) => Fault::Connection(words),
        _ => refused(UNREADABLE),
    })?;
    if options.tls.is_none() {
        options.tls = Some(DriverTls::Disabled);
    }
    match (&mut options.credential, &setup.authentication) {
        (Some(credential), _) => {
            let is_by_password = credential.mechanism != Some(AuthMechanism::MongoDbX509);
            let password_outside = password_outside.filter(|_| is_by_password);
            credential.password = credential.password.take().or(password_outside);
            match (&credential.mechanism, mechanism(setup)) {
                // Clients authenticate with the mechanism that is proven, not with the driver's choice.
                (None, asked) => credential.mechanism = asked,
                (Some(named), Some(asked)) if *named != asked => {
                    let (named, asked) = (mechanism_name(named), mechanism_name(&asked));
                    return Err(refused(&format!("it asks for {named}, and this arm for {asked}")));
                }
                (Some(_), _) => {}
            }
        }
        (None, Authentication::None) => {}
        (None, Authentication::Password { .. }) => {
            return Err(refused("this arm asks for a password: it names no user"));
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use tithe_machine::credentials::Credentials;

    use super::*;

    #[test]
    fn clients_say_who_they_are_in_the_way_that_the_arm_asks_for() {
        let mechanism = |url: &str, authentication: Authentication| {
            let mut setup =
                Setup::plain(Default::default(), Credentials::without_files(Secret::new("a"), Secret::new("b")));
            setup.authentication = authentication;
            attached(&Url::new(url), &setup, None).map(|options| options.credential.and_then(|it| it.mechanism))
        };
        let scram = |name: &str| Authentication::Password { mechanism: name.to_owned() };
        let plain = "mongodb://ann:secret@127.0.0.1/";
        let named = "mongodb://ann:secret@127.0.0.1/?authMechanism=SCRAM-SHA-256";
        assert_eq!(mechanism(plain, scram("SCRAM-SHA-1")), Ok(Some(AuthMechanism::ScramSha1)));
        assert_eq!(mechanism(plain, scram("SCRAM-SHA-256")), Ok(Some(AuthMechanism::ScramSha256)));
        assert_eq!(mechanism(plain, Authentication::None), Ok(None));
        assert_eq!(mechanism(named, scram("SCRAM-SHA-256")), Ok(Some(AuthMechanism::ScramSha256)));
        let refused = mechanism(named, scram("SCRAM-SHA-1")).expect_err("they differ").to_string();
        assert!(refused.contains("it asks for SCRAM-SHA-256, and this arm for SCRAM-SHA-1"), "{refused}");
    }

    #[test]
    fn an_address_as_a_cloud_prints_it_is_taken_and_what_has_no_effect_named() {
        let of = |options: &str| {
            let url = Url::new(format!("mongodb://ann@one:1,two:2/shop?{options}"));
            (check_url(&url, &Setup::bare()).map_err(|fault| fault.to_string()), remarks(&url))
        };
        let printed = of("replicaSet=a&authSource=admin&retryWrites=true&w=majority&appName=Cluster0");
        assert_eq!(printed, (Ok(()), vec!["no effect here: appName, retryWrites".to_owned()]));
        let old = of("useNewUrlParser=true&w=majority&useUnifiedTopology=true");
        assert_eq!(old, (Ok(()), vec!["no effect here: useNewUrlParser, useUnifiedTopology".to_owned()]));
        assert_eq!(of("useNewUrlParser=true").0, Ok(()));
        assert!(of("nosuchoption=1").0.is_err_and(|words| words.contains("%25 %3A %2F")));
        assert_eq!(of("w=majority"), (Ok(()), Vec::new()));
        let (refused, _) = of("tls=true");
        assert!(refused.is_err_and(|words| words.contains("for a public authority the system's list, /etc/ssl/certs")));
        let (refused, _) = of("maxpoolsize=5");
        assert!(refused.is_err_and(|words| words.contains("option maxPoolSize is Tithe's")));
    }

    #[test]
    fn a_relay_stands_before_one_server_whose_certificate_it_does_not_hide() {
        let endpoint = |url: &str| endpoint(&Url::new(url)).map(|(host, port)| format!("{host}:{port}"));
        assert_eq!(endpoint("mongodb://db/?directConnection=true").as_deref(), Some("db:27017"));
        let near = "mongodb://ann@127.0.0.1:7/?directConnection=true&tls=true&tlsCAFile=/ca.pem";
        assert_eq!(endpoint(near).as_deref(), Some("127.0.0.1:7"));
        assert_eq!(endpoint(&near.replace("127.0.0.1", "db")), None);
        let anyone = "mongodb://db:7/?directConnection=true&tls=true&tlsAllowInvalidCertificates=true";
        assert_eq!(endpoint(anyone).as_deref(), Some("db:7"));
        // The driver of these is led elsewhere.
        for url in ["mongodb://db", "mongodb://one,two/?replicaSet=a", "mongodb+srv://db.example"] {
            assert_eq!(endpoint(url), None, "{url}");
        }
    }
}
