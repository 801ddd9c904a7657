//! Who connects where, and as whom.
//!
//! URL: `mariadb://user[:password]@host[:port][?ssl-mode=…&ssl-ca=…&ssl-cert=…&ssl-key=…]`, or `mysql://…`. Options are
//! called as those of the `mysql` program; of the modes of `ssl-mode`, those that fall back to plaintext, or check a
//! certificate halfway, are refused. A password that is not in the URL is taken from `MYSQL_PWD`. A database in the URL
//! is not used: Tithe works in a database of its own.

use std::path::PathBuf;

use tithe_machine::fault::Fault;

use crate::target::{Product, Tls, UrlParts, refused};

/// Name of the account in servers that Tithe launches.
pub const USER: &str = "tithe";

/// Environment variable with the password, used when the URL holds none.
pub const PASSWORD_VARIABLE: &str = "MYSQL_PWD";

/// The port, names and URL options of a product called `title`.
pub const fn product(title: &'static str) -> Product {
    Product {
        title,
        port: 3306,
        user: USER,
        database: "",
        url_database: Some(""),
        needs_user: true,
        password_variable: PASSWORD_VARIABLE,
        tls,
        tls_hints: ["ssl-mode=verify_identity and ssl-ca=FILE", "ssl-cert and ssl-key"],
    }
}

/// Options of a URL, all of them about TLS.
pub const TLS_OPTIONS: &[&str] = &["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"];

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    parts.only(TLS_OPTIONS)?;
    let mode = parts.option("ssl-mode").unwrap_or("disabled").to_ascii_lowercase();
    let authority = match (mode.as_str(), parts.option("ssl-ca").map(PathBuf::from)) {
        ("disabled", None) => return Ok(None),
        ("disabled", Some(_)) => return Err(refused("ssl-ca without ssl-mode=verify_identity would not be used")),
        ("required", None) => None,
        ("required", Some(_)) => return Err(refused("with ssl-ca, say ssl-mode=verify_identity")),
        ("verify_identity", Some(authority)) => Some(authority),
        ("verify_identity", None) => return Err(refused("ssl-mode=verify_identity needs ssl-ca")),
        ("preferred", _) => {
            return Err(refused(
                "ssl-mode=preferred may fall back to plaintext, so what is measured would be left to chance; say \
                 disabled, required or verify_identity",
            ));
        }
        ("verify_ca", _) => return Err(refused("ssl-mode=verify_ca does not check the name; say verify_identity")),
        _ => return Err(refused("ssl-mode is disabled, required or verify_identity")),
    };
    Ok(Some(Tls::of_url(authority, parts.identity("ssl-cert", "ssl-key")?)))
}
