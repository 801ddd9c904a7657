//! Which client connects to which server, as which account.
//!
//! URL: `cassandra://[user[:password]@]host[:port][/keyspace]`. TLS is requested by `?ca=FILE`, or `?insecure=yes` to
//! accept any certificate; `&cert=FILE&key=FILE` is the client's own. A password that is not in the URL is taken from
//! `CASSANDRA_PASSWORD`, a server from `CQLSH_HOST` and `CQLSH_PORT`. Of several hosts the first that answers is used:
//! other nodes of its cluster are reached through it. An existing keyspace keeps its replication; one that Tithe
//! creates has one copy of each record.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::setup::{SPACE, Setup};

use super::connection::CqlConnection;
use crate::target::{Authority, Outside, Product, Target, Tls, UrlParts, is_local, refused};

/// Account of the measured clients in launched servers with accounts.
pub const USER: &str = "tithe";
/// Account that may do everything, on the same servers.
pub const ADMINISTRATOR: &str = "tithe_administrator";
/// Keyspace in which Tithe works if a URL names none.
pub const KEYSPACE: &str = "tithe";

/// Cassandra's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "Apache Cassandra",
    port: 9042,
    user: USER,
    database: KEYSPACE,
    url_database: Some(KEYSPACE),
    password_variable: "CASSANDRA_PASSWORD",
    tls_options: TLS_OPTIONS,
    used: &["username", "user", "password"],
    idle: &[
        "local_dc",
        "local_datacenter",
        "localdatacenter",
        "datacenter",
        "dc",
        "consistency",
        "consistency_level",
        "protocol_version",
        "compression",
        "connect_timeout",
        "request_timeout",
        "timeout",
        "load_balancing_policy",
        "num_conns",
        "keyspace",
    ],
    refused: &[],
    settle,
    tls,
    tls_hints: ["ca=FILE", "cert=FILE and key=FILE"],
    takes: Some(takes),
    asked: &[],
};

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &["ca", "insecure", "cert", "key", "server_name"];

/// Moves what options set for the account to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    if let Some(user) = parts.any(&["username", "user"]).map(str::to_owned) {
        parts.user = Some(user);
    }
    parts.password = parts.option("password").map(str::to_owned).or(parts.password.take());
    parts.settle_password(outside, PRODUCT.password_variable);
    if parts.hosts.iter().all(|host| host.name.is_empty() && host.port.is_none()) {
        parts.put_place(outside.variable("CQLSH_HOST"), outside.variable("CQLSH_PORT"))?;
    }
    // A port after the last of several hosts applies to all, as drivers read them.
    let port = parts.hosts.last().and_then(|host| host.port);
    for host in &mut parts.hosts {
        host.port = host.port.or(port);
    }
    parts.settle_hosts();
    Ok(())
}

/// Whether the node at `target` accepts clients.
fn takes(target: &Target) -> Result<bool, Fault> {
    CqlConnection::open(target).map(|_| true)
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    let identity = parts.identity(&["cert"], &["key"])?;
    let insecure = match parts.option("insecure") {
        None | Some("no") => false,
        Some("yes") => true,
        Some(_) => return Err(refused("insecure is yes or no")),
    };
    let authority = match (parts.option("ca"), insecure) {
        (Some(file), false) => Authority::named(file),
        (None, true) => Authority::Anyone,
        (None, false) if identity.is_none() => return Ok(None),
        (None, false) => return Err(refused("cert and key without ca=FILE or insecure=yes would not be used")),
        (Some(_), true) => return Err(refused("give insecure=yes alone, without ca=FILE")),
    };
    Ok(Some(Tls::of_url(authority, identity)))
}

/// The target of an arm's clients.
///
/// # Errors
/// As [`Product::target`].
pub fn of_clients(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    let mut target = PRODUCT.target(server, setup)?;
    // Where arms on one server have a space each, a keyspace for each.
    target.database += setup.space.strip_prefix(SPACE).unwrap_or_default();
    Ok(target)
}

/// The target of an administrator; of an attached server the user's own account.
///
/// # Errors
/// As [`Product::target`].
pub fn of_administrator(server: &Server, setup: &Setup) -> Result<Target, Fault> {
    let mut target = of_clients(server, setup)?;
    if is_local(server) {
        ADMINISTRATOR.clone_into(&mut target.user);
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_model::experiment::Url;

    use super::*;
    use crate::test_setup::plain;

    fn check(url: &str, expect: Expect) {
        let text = match PRODUCT.attached(&Url::new(url), &plain(), &Outside::of(&[])) {
            Ok(target) => format!("{target:?}"),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn urls_are_taken_apart() {
        check(
            "cassandra://localhost",
            expect![[
                r#"[Target { host: "localhost", port: 9042, user: "", database: "tithe", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "cassandra://ann:p%40ss@db.example:9142/shop",
            expect![[
                r#"[Target { host: "db.example", port: 9142, user: "ann", database: "shop", password: Some(***), password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "cassandra://ann:secret@db?ca=/ca.pem&cert=/c.pem&key=/k.pem",
            expect![[
                r#"[Target { host: "db", port: 9042, user: "ann", database: "tithe", password: Some(***), password_command: None, must_ask: false, tls: Some(Tls { authority: Of("/ca.pem"), server_name: None, versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")), resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "cassandra://ann@db?insecure=yes",
            expect![[
                r#"[Target { host: "db", port: 9042, user: "ann", database: "tithe", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: Anyone, server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
    }

    #[test]
    fn a_server_that_a_url_does_not_name_is_that_of_cqlsh() {
        let outside = Outside::of(&[("CQLSH_HOST", "db"), ("CQLSH_PORT", "9142")]);
        let place = |url: &str| {
            let targets = PRODUCT.attached(&Url::new(url), &plain(), &outside).expect("a target");
            format!("{}:{}", targets[0].host, targets[0].port)
        };
        assert_eq!(place("cassandra://ann@/shop"), "db:9142");
        assert_eq!(place("cassandra://other"), "other:9042");
    }

    #[test]
    fn what_could_be_less_than_it_seems_is_refused() {
        check(
            "cassandra://db?ca=/ca.pem&insecure=yes",
            expect!["refused: the server's URL: give insecure=yes alone, without ca=FILE"],
        );
        check(
            "cassandra://db?cert=/c.pem&key=/k.pem",
            expect!["refused: the server's URL: cert and key without ca=FILE or insecure=yes would not be used"],
        );
        check("cassandra://db?insecure=true", expect!["refused: the server's URL: insecure is yes or no"]);
        check(
            "cassandra://db?ssl=true",
            expect![
                "refused: the server's URL: option ssl is not known; those that are used are ca, insecure, cert, key, username, user, password"
            ],
        );
        check(
            "cassandra://one,two",
            expect![[
                r#"[Target { host: "one", port: 9042, user: "", database: "tithe", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }, Target { host: "two", port: 9042, user: "", database: "tithe", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
    }
}
