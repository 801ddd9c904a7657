//! Where a connection goes, as whom, and how protected: from an arm's set-up, or from the URL of a running server.
//!
//! URL: `postgres://user[:password]@host[:port]/database[?sslmode=…&sslrootcert=…&sslcert=…&sslkey=…]`, percent-encoded, as
//! in the PostgreSQL documentation, section "Connection URIs". Of the modes of `sslmode`, those that fall back
//! to plaintext, or check a certificate halfway, are refused. A password that is not in the URL is taken from `PGPASSWORD`.

use std::path::PathBuf;

use tithe_harness::{
    database::{Address, Server},
    fault::Fault,
    protection::{Authentication, Setup, TlsVersion, Transport},
    secret::Secret,
};
use tithe_model::experiment::Url;

/// Name of the account in servers that Tithe launches: the one that initdb makes.
pub const USER: &str = "tithe";
/// Database in servers that Tithe launches: the one that initdb makes.
const DATABASE: &str = "postgres";
const DEFAULT_PORT: u16 = 5432;

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
}

/// How to speak TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Authority that signed the server's certificate, PEM; `None` accepts anyone's (`sslmode=require`).
    pub authority: Option<PathBuf>,
    /// Versions allowed.
    pub versions: Vec<TlsVersion>,
    /// Certificate and key of the client, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Target {
    /// The target of an arm's clients.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a URL that cannot be used, or that contradicts the set-up.
    pub fn of(server: &Server, setup: &Setup) -> Result<Self, Fault> {
        match &server.address {
            Address::Tcp { host, port } => Ok(launched(host, *port, setup)),
            Address::Attached(url) => attached(url, setup, std::env::var("PGPASSWORD").ok()),
            Address::File(_) | Address::Nowhere => Err(Fault::Refused("PostgreSQL is reached by TCP".to_owned())),
        }
    }
}

fn launched(host: &str, port: u16, setup: &Setup) -> Target {
    let must_ask = matches!(setup.authentication, Authentication::Password { .. });
    let tls = match setup.transport {
        Transport::Plain => None,
        Transport::Tls { version, mutual } => Some(Tls {
            authority: Some(setup.materials.authority.clone()),
            versions: vec![version],
            identity: mutual.then(|| (setup.materials.client_certificate.clone(), setup.materials.client_key.clone())),
        }),
    };
    Target {
        host: host.to_owned(),
        port,
        user: USER.to_owned(),
        database: DATABASE.to_owned(),
        password: must_ask.then(|| setup.materials.password.clone()),
        must_ask,
        tls,
    }
}

/// Looks whether `url` can be used at all.
///
/// # Errors
/// [`Fault::Refused`] with what is wrong; the text never quotes the URL.
pub fn check_url(url: &Url) -> Result<(), Fault> {
    UrlParts::read(url.expose())?.tls().map(drop)
}

fn attached(url: &Url, setup: &Setup, password_outside: Option<String>) -> Result<Target, Fault> {
    let parts = UrlParts::read(url.expose())?;
    let mut tls = parts.tls()?;
    if let Transport::Tls { version, mutual } = setup.transport {
        let Some(tls) = &mut tls else {
            return Err(refused("this arm asks for TLS: its URL needs sslmode=verify-full or sslmode=require"));
        };
        if mutual && tls.identity.is_none() {
            return Err(refused("this arm asks for mutual TLS: its URL needs sslcert and sslkey"));
        }
        tls.versions = vec![version];
    }
    Ok(Target {
        password: parts.password.or(password_outside).map(Secret::new),
        host: parts.host,
        port: parts.port,
        database: parts.database.unwrap_or_else(|| parts.user.clone()),
        user: parts.user,
        must_ask: matches!(setup.authentication, Authentication::Password { .. }),
        tls,
    })
}

/// A refusal. It never quotes the URL, which may hold a password.
fn refused(why: &str) -> Fault {
    Fault::Refused(format!("the server's URL: {why}"))
}

/// A URL taken apart and decoded.
struct UrlParts {
    user: String,
    password: Option<String>,
    host: String,
    port: u16,
    database: Option<String>,
    options: Vec<(String, String)>,
}

impl UrlParts {
    fn read(url: &str) -> Result<Self, Fault> {
        let (_, rest) = url.split_once("://").ok_or_else(|| refused("it has no ://"))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may hold an `@` that was not encoded; a host cannot.
        let (user, place) = authority.rsplit_once('@').ok_or_else(|| refused("it names no user"))?;
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
            user: decode(user)?,
            password,
            host: decode(host)?,
            port,
            database: if database.is_empty() { None } else { Some(decode(database)?) },
            options: options.collect::<Result<_, Fault>>()?,
        })
    }

    fn option(&self, wanted: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    fn tls(&self) -> Result<Option<Tls>, Fault> {
        const KNOWN: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];
        if let Some((name, _)) = self.options.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            return Err(refused(&format!("option {name} is not known; known are {}", KNOWN.join(", "))));
        }
        let authority = self.option("sslrootcert").map(PathBuf::from);
        let authority = match (self.option("sslmode").unwrap_or("disable"), authority) {
            ("disable", None) => return Ok(None),
            ("disable", Some(_)) => return Err(refused("sslrootcert without sslmode=verify-full would not be used")),
            ("require", None) => None,
            ("require", Some(_)) => return Err(refused("with sslrootcert, say sslmode=verify-full")),
            ("verify-full", Some(authority)) => Some(authority),
            ("verify-full", None) => return Err(refused("sslmode=verify-full needs sslrootcert")),
            ("prefer" | "allow", _) => {
                return Err(refused(
                    "sslmode=prefer and allow may fall back to plaintext, so what is measured would be left to chance; \
                     say disable, require or verify-full",
                ));
            }
            ("verify-ca", _) => return Err(refused("sslmode=verify-ca does not check the name; say verify-full")),
            _ => return Err(refused("sslmode is disable, require or verify-full")),
        };
        let identity = match (self.option("sslcert"), self.option("sslkey")) {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            _ => return Err(refused("sslcert and sslkey belong together")),
        };
        Ok(Some(Tls { authority, versions: vec![TlsVersion::V1_3, TlsVersion::V1_2], identity }))
    }
}

/// Splits `host:port`, `[v6]:port` or `host`.
fn host_and_port(place: &str) -> Result<(&str, u16), Fault> {
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
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| refused("its port is not a number up to 65535"))?,
    };
    Ok((host, port))
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::postgres::test_setup::plain;

    fn check(url: &str, setup: &Setup, expect: Expect) {
        let text = match attached(&Url::new(url), setup, None) {
            Ok(target) => format!("{target:?}"),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn urls_are_taken_apart_and_decoded() {
        check(
            "postgres://ann:p%40ss%25@db.example:5433/shop%20b",
            &plain(),
            expect![[
                r#"Target { host: "db.example", port: 5433, user: "ann", database: "shop b", password: Some(***), must_ask: false, tls: None }"#
            ]],
        );
        check(
            "postgresql://ann@[::1]?sslmode=require",
            &plain(),
            expect![[
                r#"Target { host: "::1", port: 5432, user: "ann", database: "ann", password: None, must_ask: false, tls: Some(Tls { authority: None, versions: [V1_3, V1_2], identity: None }) }"#
            ]],
        );
        check(
            "postgres://ann@db/x?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem",
            &plain(),
            expect![[
                r#"Target { host: "db", port: 5432, user: "ann", database: "x", password: None, must_ask: false, tls: Some(Tls { authority: Some("/ca.pem"), versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")) }) }"#
            ]],
        );
        let target = attached(&Url::new("postgres://ann:p%40s@s@db"), &plain(), Some("outside".to_owned()));
        assert_eq!(target.expect("a target").password, Some(Secret::new("p@s@s")));
        let target = attached(&Url::new("postgres://ann@db"), &plain(), Some("outside".to_owned()));
        assert_eq!(target.expect("a target").password, Some(Secret::new("outside")));
    }

    #[test]
    fn what_could_fall_back_is_refused_with_the_reason() {
        for (url, expect) in [
            (
                "postgres://ann:secret@db/x?sslmode=prefer",
                expect![[
                    "refused: the server's URL: sslmode=prefer and allow may fall back to plaintext, so what is measured would be left to chance; say disable, require or verify-full"
                ]],
            ),
            (
                "postgres://ann:secret@db/x?sslmode=verify-full",
                expect!["refused: the server's URL: sslmode=verify-full needs sslrootcert"],
            ),
            (
                "postgres://ann:secret@db/x?sslmode=verify-ca&sslrootcert=/ca.pem",
                expect!["refused: the server's URL: sslmode=verify-ca does not check the name; say verify-full"],
            ),
            (
                "postgres://ann:secret@db/x?options=-csearch_path",
                expect![
                    "refused: the server's URL: option options is not known; known are sslmode, sslrootcert, sslcert, sslkey"
                ],
            ),
            ("postgres://db/x", expect!["refused: the server's URL: it names no user"]),
            ("postgres://ann@a,b/x", expect!["refused: the server's URL: it must name one host"]),
            (
                "postgres://ann:%zz@db",
                expect!["refused: the server's URL: a % is not followed by two hexadecimal digits of UTF-8 text"],
            ),
        ] {
            check(url, &plain(), expect);
        }
    }

    #[test]
    fn an_arm_with_tls_needs_a_url_with_tls() {
        let mut setup = plain();
        setup.transport = Transport::Tls { version: TlsVersion::V1_3, mutual: false };
        check(
            "postgres://ann@db/x",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS: its URL needs sslmode=verify-full or sslmode=require"
            ],
        );
        check(
            "postgres://ann@db/x?sslmode=require",
            &setup,
            expect![[
                r#"Target { host: "db", port: 5432, user: "ann", database: "x", password: None, must_ask: false, tls: Some(Tls { authority: None, versions: [V1_3], identity: None }) }"#
            ]],
        );
    }

    proptest! {
        #[test]
        fn foreign_urls_never_panic(rest in "[a-z:@/?=&%\\[\\]é0-9,]{0,40}") {
            let _ = attached(&Url::new(format!("postgres://{rest}")), &plain(), None);
        }
    }
}
