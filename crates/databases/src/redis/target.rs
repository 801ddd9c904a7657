//! Who connects where, and as whom.
//!
//! URL: `redis://[[user]:password@]host[:port][/number]`, and `rediss://` for TLS with `?ca=FILE`, or `?insecure=yes`
//! to accept anyone's certificate, and `&cert=FILE&key=FILE` for a client's own. A password that is not in the URL is
//! taken from `REDISCLI_AUTH`, as `redis-cli` does.

use std::path::PathBuf;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::setup::{Authentication, Setup};

use crate::target::{Product, Target, Tls, UrlParts, is_local, refused};

/// Account of the measured clients where the server has accounts (protection `acl`).
pub const USER: &str = "tithe";
/// Account that may do everything, in servers of Tithe's own with accounts.
pub const ADMINISTRATOR: &str = "tithe-administrator";
/// Mechanism of [`Authentication`]: one password for everyone, the account that has no name.
pub const REQUIREPASS: &str = "requirepass";
/// Mechanism of [`Authentication`]: accounts with rights.
pub const ACL: &str = "acl";

/// Redis's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "Redis",
    port: 6379,
    user: "",
    database: "0",
    url_database: Some("0"),
    needs_user: false,
    password_variable: "REDISCLI_AUTH",
    tls,
    tls_hints: ["rediss:// with ca=FILE", "cert=FILE and key=FILE"],
};

/// Options of a URL, all of them about TLS.
pub const TLS_OPTIONS: &[&str] = &["ca", "insecure", "cert", "key"];

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    parts.only(TLS_OPTIONS)?;
    let identity = parts.identity("cert", "key")?;
    let authority = match (parts.scheme.as_str(), parts.option("ca"), parts.option("insecure")) {
        ("rediss", Some(file), None) => Some(PathBuf::from(file)),
        ("rediss", None, Some("yes")) => None,
        ("rediss", None, None) => return Err(refused("rediss:// needs ca=FILE, or insecure=yes to trust anyone")),
        ("rediss", ..) => return Err(refused("insecure=yes stands alone, without ca=FILE")),
        (_, None, None) if identity.is_none() => return Ok(None),
        _ => return Err(refused("options for TLS without rediss:// would not be used")),
    };
    Ok(Some(Tls::of_url(authority, identity)))
}

/// The target of an arm's clients.
///
/// # Errors
/// As [`Product::target`].
pub fn of_clients(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    of(server, setup, USER)
}

/// The target of an administrator; of an attached server the user's own account.
///
/// # Errors
/// As [`Product::target`].
pub fn of_administrator(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    of(server, setup, ADMINISTRATOR)
}

fn of(server: &Server, setup: &Setup, user: &str) -> Result<Target, Fault> {
    let mut target = PRODUCT.target(server, setup)?;
    let accounts = matches!(&setup.authentication, Authentication::Password { mechanism } if mechanism == ACL);
    if is_local(server) && accounts {
        user.clone_into(&mut target.user);
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_model::experiment::Url;
    use tithe_plugin::setup::{TlsVersion, Transport};

    use super::*;
    use crate::test_setup::plain;

    fn check(url: &str, setup: &Setup, expect: Expect) {
        let text = match PRODUCT.attached(&Url::new(url), setup, None) {
            Ok(target) => format!("{target:?}"),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn urls_are_taken_apart() {
        check(
            "redis://localhost",
            &plain(),
            expect![[
                r#"Target { host: "localhost", port: 6379, user: "", database: "0", password: None, must_ask: false, tls: None, relay: None }"#
            ]],
        );
        check(
            "redis://:p%40ss@db.example:6380/3",
            &plain(),
            expect![[
                r#"Target { host: "db.example", port: 6380, user: "", database: "3", password: Some(***), must_ask: false, tls: None, relay: None }"#
            ]],
        );
        check(
            "rediss://ann:secret@db?ca=/ca.pem&cert=/c.pem&key=/k.pem",
            &plain(),
            expect![[
                r#"Target { host: "db", port: 6379, user: "ann", database: "0", password: Some(***), must_ask: false, tls: Some(Tls { authority: Some("/ca.pem"), versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")), resumption: false }), relay: None }"#
            ]],
        );
        check(
            "rediss://db?insecure=yes",
            &plain(),
            expect![[
                r#"Target { host: "db", port: 6379, user: "", database: "0", password: None, must_ask: false, tls: Some(Tls { authority: None, versions: [V1_3, V1_2], identity: None, resumption: false }), relay: None }"#
            ]],
        );
    }

    #[test]
    fn what_could_be_less_than_it_seems_is_refused() {
        check(
            "rediss://db",
            &plain(),
            expect!["refused: the server's URL: rediss:// needs ca=FILE, or insecure=yes to trust anyone"],
        );
        check(
            "rediss://db?ca=/ca.pem&insecure=yes",
            &plain(),
            expect!["refused: the server's URL: insecure=yes stands alone, without ca=FILE"],
        );
        check(
            "redis://db?ca=/ca.pem",
            &plain(),
            expect!["refused: the server's URL: options for TLS without rediss:// would not be used"],
        );
        check(
            "redis://db?db=3",
            &plain(),
            expect!["refused: the server's URL: option db is not known; known are ca, insecure, cert, key"],
        );
        let mut setup = plain();
        setup.transport = Transport::Tls { version: TlsVersion::V1_3, mutual: false, resumption: false };
        check(
            "redis://db",
            &setup,
            expect!["refused: the server's URL: this arm asks for TLS: its URL needs rediss:// with ca=FILE"],
        );
    }
}
