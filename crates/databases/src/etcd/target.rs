//! Which client connects to which server, as which account.
//!
//! URL: `etcd://[user:password@]host[:port]`. `etcds://` is TLS with the system's authorities, `?ca=FILE`, or
//! `?insecure=yes` to accept any certificate; `&cert=FILE&key=FILE` is the client's own. `etcdctl`'s names of these
//! options are known. A password that is not in the URL is taken from `ETCDCTL_PASSWORD`. Of several members the first
//! that answers is used.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::setup::Setup;

use super::connection::EtcdConnection;
use crate::target::{Outside, Product, Target, Tls, UrlParts};

/// Account of the measured clients if the server requires one. None of Tithe's certificates has its name, because etcd
/// takes the common name of a client's certificate for an account.
pub const USER: &str = "tithe-clients";
/// Account with all rights, in servers that Tithe launches: etcd requires this name.
pub const ADMINISTRATOR: &str = "root";
/// Mechanism of [`Authentication`](tithe_plugin::setup::Authentication): users with passwords and roles.
pub const PASSWORD: &str = "password";

/// etcd's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "etcd",
    port: 2379,
    user: USER,
    database: "",
    url_database: Some(""),
    password_variable: "ETCDCTL_PASSWORD",
    tls_options: TLS_OPTIONS,
    used: &[],
    idle: &["timeout", "dial-timeout", "command-timeout", "keepalive-time", "keepalive-timeout"],
    refused: &[],
    settle,
    tls,
    tls_hints: ["etcds:// with ca=FILE, or with an authority of the system", "cert=FILE and key=FILE"],
    takes: Some(takes),
    asked: &[],
};

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &["ca", "cacert", "insecure", "cert", "key", "server_name"];

/// Protocol that clients name in the TLS handshake: newer servers refuse clients that do not.
const HTTP2: &str = "h2";

/// The target of the measured clients.
///
/// # Errors
/// As [`Product::target`].
pub fn of_clients(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    let mut target = PRODUCT.target(server, setup)?;
    if let Some(tls) = &mut target.tls {
        tls.protocol = Some(HTTP2);
    }
    Ok(target)
}

/// Moves what options set for host and account to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    parts.settle_without_database(outside, PRODUCT.password_variable, "etcd has no databases")
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    Ok(Tls::of_scheme(parts, "etcds")?.map(|tls| Tls { protocol: Some(HTTP2), ..tls }))
}

/// Whether the member at `target` accepts clients.
fn takes(target: &Target) -> Result<bool, Fault> {
    EtcdConnection::open(target).map(|_| true)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_model::experiment::Url;

    use super::*;
    use crate::test_setup::{plain, targets_of};

    #[test]
    fn urls_are_taken_apart() {
        let text = targets_of(
            &PRODUCT,
            &[
                "etcd://localhost",
                "etcd://ann:p%40ss@store.example:21211",
                "etcds://store?cacert=/ca.pem&cert=/c.pem&key=/k.pem",
                "etcds://store",
                "etcds://store?insecure=yes",
                "etcds://store?insecure=perhaps",
                "etcds://store?ca=/ca.pem&insecure=yes",
                "etcd://store?ca=/ca.pem",
                "etcd://store/3",
            ],
        );
        expect![[r#"
            etcd://localhost: localhost:2379 `` None None
            etcd://ann:p%40ss@store.example:21211: store.example:21211 `ann` Some(***) None
            etcds://store?cacert=/ca.pem&cert=/c.pem&key=/k.pem: store:2379 `` None Some((Of("/ca.pem"), Some(("/c.pem", "/k.pem"))))
            etcds://store: store:2379 `` None Some((System, None))
            etcds://store?insecure=yes: store:2379 `` None Some((Anyone, None))
            etcds://store?insecure=perhaps: refused: the server's URL: insecure is yes or no
            etcds://store?ca=/ca.pem&insecure=yes: refused: the server's URL: give insecure=yes alone, without ca=FILE
            etcd://store?ca=/ca.pem: refused: the server's URL: options for TLS without etcds:// would not be used
            etcd://store/3: refused: the server's URL: etcd has no databases: nothing may follow the port
        "#]].assert_eq(&text);
    }

    #[test]
    fn every_endpoint_of_a_list_is_a_member_to_try() {
        let url = Url::new("etcds://one:1,etcds://two?ca=/ca.pem");
        let targets = PRODUCT.attached(&url, &plain(), &Outside::of(&[])).expect("targets");
        let protocol = |target: &Target| target.tls.as_ref().and_then(|tls| tls.protocol);
        let seen: Vec<_> = targets.iter().map(|it| (it.host.as_str(), it.port, protocol(it))).collect();
        assert_eq!(seen, [("one", 1, Some(HTTP2)), ("two", 2379, Some(HTTP2))]);
    }
}
