//! Where a connection goes, as whom, and how protected: from an arm's set-up, or from the URL of a running server.
//!
//! URL: `postgres://user[:password]@host[:port]/database[?sslmode=…&sslrootcert=…&sslcert=…&sslkey=…]`,
//! percent-encoded, as in the PostgreSQL documentation, section "Connection URIs". Of the modes of `sslmode`, those
//! that fall back to plaintext, or check a certificate halfway, are refused. A password that is not in the URL is taken
//! from `PGPASSWORD`.

use std::path::PathBuf;

use tithe_machine::fault::Fault;

use crate::target::{Product, Tls, UrlParts, refused};

/// Name of the account in servers that Tithe launches: the one that initdb makes.
pub const USER: &str = "tithe";

/// PostgreSQL's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "PostgreSQL",
    port: 5432,
    user: USER,
    // The one that initdb makes.
    database: "postgres",
    url_database: None,
    needs_user: true,
    password_variable: "PGPASSWORD",
    tls,
    tls_hints: ["sslmode=verify-full and sslrootcert=FILE", "sslcert and sslkey"],
};

/// Options of a URL, all of them about TLS.
pub const TLS_OPTIONS: &[&str] = &["sslmode", "sslrootcert", "sslcert", "sslkey"];

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    parts.only(TLS_OPTIONS)?;
    let authority = parts.option("sslrootcert").map(PathBuf::from);
    let authority = match (parts.option("sslmode").unwrap_or("disable"), authority) {
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
    Ok(Some(Tls::of_url(authority, parts.identity("sslcert", "sslkey")?)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_machine::secret::Secret;
    use tithe_model::experiment::Url;
    use tithe_plugin::setup::{Setup, TlsVersion, Transport};

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
    fn urls_are_taken_apart_and_decoded() {
        check(
            "postgres://ann:p%40ss%25@db.example:5433/shop%20b",
            &plain(),
            expect![[
                r#"Target { host: "db.example", port: 5433, user: "ann", database: "shop b", password: Some(***), must_ask: false, tls: None, relay: None }"#
            ]],
        );
        check(
            "postgresql://ann@[::1]?sslmode=require",
            &plain(),
            expect![[
                r#"Target { host: "::1", port: 5432, user: "ann", database: "ann", password: None, must_ask: false, tls: Some(Tls { authority: None, versions: [V1_3, V1_2], identity: None, resumption: false }), relay: None }"#
            ]],
        );
        check(
            "postgres://ann@db/x?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem",
            &plain(),
            expect![[
                r#"Target { host: "db", port: 5432, user: "ann", database: "x", password: None, must_ask: false, tls: Some(Tls { authority: Some("/ca.pem"), versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")), resumption: false }), relay: None }"#
            ]],
        );
        let target = PRODUCT.attached(&Url::new("postgres://ann:p%40s@s@db"), &plain(), Some("outside".to_owned()));
        assert_eq!(target.expect("a target").password, Some(Secret::new("p@s@s")));
        let target = PRODUCT.attached(&Url::new("postgres://ann@db"), &plain(), Some("outside".to_owned()));
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
        setup.transport = Transport::Tls { version: TlsVersion::V1_3, mutual: false, resumption: false };
        check(
            "postgres://ann@db/x",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS: its URL needs sslmode=verify-full and sslrootcert=FILE"
            ],
        );
        check(
            "postgres://ann@db/x?sslmode=require",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS, and its URL takes any certificate, so that whoever stands between could pose as the server: it needs sslmode=verify-full and sslrootcert=FILE"
            ],
        );
        check(
            "postgres://ann@db/x?sslmode=verify-full&sslrootcert=/ca.pem",
            &setup,
            expect![[
                r#"Target { host: "db", port: 5432, user: "ann", database: "x", password: None, must_ask: false, tls: Some(Tls { authority: Some("/ca.pem"), versions: [V1_3], identity: None, resumption: false }), relay: None }"#
            ]],
        );
    }
}
