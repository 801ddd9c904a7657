//! Which client connects to which server, as which account.
//!
//! URL: `memcached://[user:password@]host[:port]` or `memcached+unix:///path`. `memcacheds://` is TLS with the system's
//! authorities, `?ca=FILE`, or `?insecure=yes` to accept any certificate; `&cert=FILE&key=FILE` is the client's own. A
//! password that is not in the URL is taken from `MEMCACHED_PASSWORD`.

use tithe_machine::fault::Fault;

use crate::target::{Host, Outside, Product, Tls, UrlParts, refused};

/// Account of clients if the server requires one.
pub const USER: &str = "tithe";

/// Mechanism of [`Authentication`](tithe_plugin::setup::Authentication): a file of users with their passwords.
pub const AUTH_FILE: &str = "auth-file";

/// memcached's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "Memcached",
    port: 11211,
    user: USER,
    database: "",
    url_database: Some(""),
    password_variable: "MEMCACHED_PASSWORD",
    tls_options: TLS_OPTIONS,
    used: &[],
    idle: &["timeout", "connect_timeout", "max_pool_size"],
    refused: &[],
    settle,
    tls,
    tls_hints: ["memcacheds:// with ca=FILE, or with an authority of the system", "cert=FILE and key=FILE"],
    takes: None,
    asked: &[],
};

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &["ca", "insecure", "cert", "key", "server_name"];

/// The scheme of a Unix socket, whose path follows.
const SOCKET: &str = "memcached+unix";

/// Moves what options set for host and account to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    parts.settle_password(outside, PRODUCT.password_variable);
    let path = parts.database.take().filter(|path| !path.is_empty());
    if parts.scheme == SOCKET {
        let named = parts.hosts.first().map(|host| host.name.clone()).filter(|name| name.starts_with('/'));
        let path = named.or(path.map(|path| format!("/{}", path.trim_start_matches('/'))));
        let Some(path) = path else { return Err(refused("it names no socket: memcached+unix:///PATH")) };
        parts.hosts = vec![Host { name: path, ..Host::default() }];
    } else if path.is_some() {
        return Err(refused("memcached has no databases: nothing may follow the port"));
    }
    parts.settle_hosts();
    Ok(())
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    Tls::of_scheme(parts, "memcacheds")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::test_setup::targets_of;

    #[test]
    fn urls_are_taken_apart() {
        let text = targets_of(
            &PRODUCT,
            &[
                "memcached://localhost",
                "memcached://ann:p%40ss@cache.example:21211",
                "memcached+unix:///run/memcached.sock",
                "memcacheds://cache?ca=/ca.pem&cert=/c.pem&key=/k.pem",
                "memcacheds://cache",
                "memcacheds://cache?insecure=yes",
                "memcacheds://cache?insecure=perhaps",
                "memcacheds://cache?ca=/ca.pem&insecure=yes",
                "memcached://cache?ca=/ca.pem",
                "memcached://cache/3",
                "memcached+unix://",
                "memcached://one,two",
            ],
        );
        expect![[r#"
            memcached://localhost: localhost:11211 `` None None
            memcached://ann:p%40ss@cache.example:21211: cache.example:21211 `ann` Some(***) None
            memcached+unix:///run/memcached.sock: /run/memcached.sock:11211 `` None None
            memcacheds://cache?ca=/ca.pem&cert=/c.pem&key=/k.pem: cache:11211 `` None Some((Of("/ca.pem"), Some(("/c.pem", "/k.pem"))))
            memcacheds://cache: cache:11211 `` None Some((System, None))
            memcacheds://cache?insecure=yes: cache:11211 `` None Some((Anyone, None))
            memcacheds://cache?insecure=perhaps: refused: the server's URL: insecure is yes or no
            memcacheds://cache?ca=/ca.pem&insecure=yes: refused: the server's URL: give insecure=yes alone, without ca=FILE
            memcached://cache?ca=/ca.pem: refused: the server's URL: options for TLS without memcacheds:// would not be used
            memcached://cache/3: refused: the server's URL: memcached has no databases: nothing may follow the port
            memcached+unix://: refused: the server's URL: it names no socket: memcached+unix:///PATH
            memcached://one,two: refused: the server's URL: it names several hosts, and clients of an arm use one: name that one
        "#]].assert_eq(&text);
    }
}
