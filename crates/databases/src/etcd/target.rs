//! Which client connects to which server, as which account.
//!
//! URL: `etcd://[user:password@]host[:port]`. `etcds://` is TLS with the system's authorities, `?ca=FILE`, or
//! `?insecure=yes` to accept any certificate; `&cert=FILE&key=FILE` is the client's own. `etcdctl`'s names of these
//! options are known. A password that is not in the URL is taken from `ETCDCTL_PASSWORD`, members from
//! `ETCDCTL_ENDPOINTS`, and files for TLS from `ETCDCTL_CACERT`, `ETCDCTL_CERT` and `ETCDCTL_KEY`. Of several members
//! the first that answers is used.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::experiment::Url;
use tithe_plugin::setup::Setup;

use super::connection::EtcdConnection;
use crate::target::{Host, Outside, Product, Target, Tls, UrlParts, refused};

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

/// The scheme of TLS.
const SCHEME_OF_TLS: &str = "etcds";

/// Moves what options and the variables of `etcdctl` set to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    let names_none = parts.hosts.iter().all(|host| host.name.is_empty() && host.port.is_none());
    if names_none && let Some(list) = outside.variable("ETCDCTL_ENDPOINTS") {
        parts.hosts = members(list, &parts.scheme)?;
    }
    if parts.scheme == SCHEME_OF_TLS {
        let needs_authority = parts.any(&["ca", "cacert", "insecure"]).is_none();
        let needs_identity = parts.any(&["cert", "key"]).is_none();
        for (is_needed, option, variable) in [
            (needs_authority, "cacert", "ETCDCTL_CACERT"),
            (needs_identity, "cert", "ETCDCTL_CERT"),
            (needs_identity, "key", "ETCDCTL_KEY"),
        ] {
            if let Some(file) = outside.variable(variable).filter(|_| is_needed) {
                parts.default_option(option, file);
            }
        }
    }
    // A password is one account's.
    let account = outside.variable("ETCDCTL_USER").and_then(|account| account.split_once(':'));
    if let Some((user, password)) = account
        && parts.password.is_none()
        && parts.user.as_deref() == Some(user)
    {
        parts.password = Some(password.to_owned());
    }
    parts.settle_without_database(outside, PRODUCT.password_variable, "etcd has no databases")
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    Ok(Tls::of_scheme(parts, SCHEME_OF_TLS)?.map(|tls| Tls { protocol: Some(HTTP2), ..tls }))
}

/// The members in a `list` such as `https://a:2379,https://b:2379`, for a URL with this `scheme`.
///
/// # Errors
/// A list that asks for TLS and a URL that does not, and the other way round.
fn members(list: &str, scheme: &str) -> Result<Vec<Host>, Fault> {
    let (own, other) = if scheme == SCHEME_OF_TLS { ("https://", "http://") } else { ("http://", "https://") };
    if list.contains(other) {
        return Err(refused(&format!("ETCDCTL_ENDPOINTS has {other}, which contradicts {scheme}://")));
    }
    let places = list.split(',').map(|member| member.trim().trim_start_matches(own).trim_end_matches('/'));
    let url = format!("{scheme}://{}", places.collect::<Vec<_>>().join(","));
    Ok(UrlParts::read(&Url::new(url))?.hosts)
}

/// Whether the member at `target` accepts clients.
fn takes(target: &Target) -> Result<bool, Fault> {
    EtcdConnection::open(target).map(|_| true)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_machine::secret::Secret;

    use super::*;
    use crate::{
        target::Authority,
        test_setup::{plain, targets_of},
    };

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
    fn variables_of_etcdctl_have_what_a_url_leaves_out() {
        let outside = Outside::of(&[
            ("ETCDCTL_ENDPOINTS", "https://one:1, https://two:2/"),
            ("ETCDCTL_CACERT", "/ca.pem"),
            ("ETCDCTL_USER", "ann:correct horse"),
        ]);
        let told = |url: &str| {
            let targets = PRODUCT.attached(&Url::new(url), &plain(), &outside).map_err(|fault| fault.to_string())?;
            let authority = targets[0].tls.clone().map(|tls| tls.authority);
            let places: Vec<String> = targets.iter().map(|it| format!("{}:{}", it.host, it.port)).collect();
            Ok::<_, String>((places.join(" "), authority, targets[0].password.clone()))
        };
        let password = Some(Secret::new("correct horse"));
        assert_eq!(
            told("etcds://ann@"),
            Ok(("one:1 two:2".to_owned(), Some(Authority::Of("/ca.pem".into())), password))
        );
        assert_eq!(
            told("etcds://three?ca=/own.pem"),
            Ok(("three:2379".to_owned(), Some(Authority::Of("/own.pem".into())), None))
        );
        assert_eq!(told("etcd://three"), Ok(("three:2379".to_owned(), None, None)));
        let why = told("etcd://").expect_err("one asks for TLS, and one does not");
        assert!(why.contains("ETCDCTL_ENDPOINTS has https://, which contradicts etcd://"), "{why}");
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
