//! Which client connects to which server, as which account.
//!
//! URL: `opensearch://[user:password@]host[:port]`. `opensearchs://` is TLS with the system's authorities, `?ca=FILE`,
//! or `?insecure=yes` to accept any certificate; `&cert=FILE&key=FILE` is the client's own. A password that is not in
//! the URL is taken from `OPENSEARCH_PASSWORD`. Of several nodes the first that answers is used.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::setup::Setup;

use super::connection::OpenSearchConnection;
use crate::target::{Outside, Product, Target, Tls, UrlParts};

/// Account of the measured clients if the server asks for one.
pub const USER: &str = "tithe-clients";
/// Account with all rights, in servers that Tithe launches.
pub const ADMINISTRATOR: &str = "tithe-administrator";
/// Mechanism of [`Authentication`](tithe_plugin::setup::Authentication): users of the server's own database.
pub const PASSWORD: &str = "internal-users";

/// OpenSearch's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "OpenSearch",
    port: 9200,
    user: USER,
    database: "",
    url_database: Some(""),
    password_variable: "OPENSEARCH_PASSWORD",
    tls_options: TLS_OPTIONS,
    used: &[],
    idle: &["timeout", "pool_maxsize", "http_compress", "max_retries"],
    refused: &[],
    settle,
    tls: |parts| Tls::of_scheme(parts, "opensearchs"),
    tls_hints: ["opensearchs:// with ca=FILE, or with an authority of the system", "cert=FILE and key=FILE"],
    takes: Some(takes),
    asked: &[],
};

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &["ca", "cacert", "insecure", "cert", "key", "server_name"];

/// The target of the measured clients.
///
/// # Errors
/// As [`Product::target`].
pub fn of_clients(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    PRODUCT.target(server, setup)
}

/// Whether the node at `target` accepts clients.
fn takes(target: &Target) -> Result<bool, Fault> {
    OpenSearchConnection::open(target).map(|_| true)
}

/// Moves what options set for host and account to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    parts.settle_without_database(outside, PRODUCT.password_variable, "Tithe makes an index of its own")
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
                "opensearch://localhost",
                "opensearch://ann:p%40ss@search.example:21211",
                "opensearchs://search?cacert=/ca.pem&cert=/c.pem&key=/k.pem",
                "opensearchs://search",
                "opensearch://search?ca=/ca.pem",
                "opensearch://search/logs",
            ],
        );
        expect![[r#"
            opensearch://localhost: localhost:9200 `` None None
            opensearch://ann:p%40ss@search.example:21211: search.example:21211 `ann` Some(***) None
            opensearchs://search?cacert=/ca.pem&cert=/c.pem&key=/k.pem: search:9200 `` None Some((Of("/ca.pem"), Some(("/c.pem", "/k.pem"))))
            opensearchs://search: search:9200 `` None Some((System, None))
            opensearch://search?ca=/ca.pem: refused: the server's URL: options for TLS without opensearchs:// would not be used
            opensearch://search/logs: refused: the server's URL: Tithe makes an index of its own: nothing may follow the port
        "#]].assert_eq(&text);
    }
}
