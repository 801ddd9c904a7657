//! Which client connects to which server, as which account.
//!
//! URL: `redis://[[user]:password@]host[:port][/number]` or `redis+unix://[[user]:password@]/path[?db=number]`.
//! `rediss://` is TLS with the system's authorities, `?ca=FILE`, or `?insecure=yes` to accept any certificate;
//! `&cert=FILE&key=FILE` is the client's own. Drivers' names of these options are known. A password that is not in the
//! URL is taken from `REDISCLI_AUTH`, as `redis-cli` does, or from `VALKEYCLI_AUTH`, as `valkey-cli` does.

use tithe_machine::{fault::Fault, launch::Server, secret::Secret};
use tithe_plugin::setup::{Authentication, Setup};

use crate::target::{Authority, Host, Outside, Product, Target, Tls, UrlParts, is_local, refused};

/// Account of the measured clients if the server has accounts (protection `acl`).
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
    password_variable: "REDISCLI_AUTH",
    tls_options: TLS_OPTIONS,
    used: &["db", "database", "dbindex", "virtual_host", "username", "user", "password"],
    idle: IDLE,
    refused: &[],
    settle,
    tls,
    tls_hints: ["rediss:// with ca=FILE, or with an authority of the system", "cert=FILE and key=FILE"],
    takes: None,
    asked: &[],
};

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &[
    "ca",
    "insecure",
    "cert",
    "key",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "skip_verify",
    "server_name",
    "ssl",
    "tls",
];

/// Options of drivers and pools that change nothing here.
const IDLE: &[&str] = &[
    "client_name",
    "client_cache",
    "socket_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "timeout",
    "connect_timeout",
    "command_timeout",
    "dial_timeout",
    "read_timeout",
    "write_timeout",
    "pool_timeout",
    "pool_size",
    "pool_fifo",
    "min_idle_conns",
    "max_idle_conns",
    "conn_max_idle_time",
    "conn_max_lifetime",
    "max_connections",
    "max_retries",
    "min_retry_backoff",
    "max_retry_backoff",
    "retry_on_timeout",
    "retry_on_error",
    "health_check_interval",
    "decode_responses",
    "encoding",
    "protocol",
    "reconnect_attempts",
    "allow_username_in_uri",
    "family",
    "visibility_timeout",
    "lib_name",
    "lib_version",
    "read_write_timeout",
    "persistent",
    "lazy",
    "retry_interval",
    "max_active_conns",
    "socket_read_size",
];

/// Moves what options set for host and account to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    if let Some(user) = parts.any(&["username", "user"]).map(str::to_owned) {
        parts.user = Some(user);
    }
    parts.password = parts.option("password").map(str::to_owned).or(parts.password.take());
    parts.settle_password(outside, PRODUCT.password_variable);
    parts.settle_password(outside, "VALKEYCLI_AUTH");
    let number = parts.any(&["db", "database", "dbindex", "virtual_host"]).map(str::to_owned);
    if ["redis+unix", "redis+socket", "unix"].contains(&parts.scheme.as_str()) {
        // The path is the socket's, the number has an option.
        let named = parts.hosts.first().map(|host| host.name.clone()).filter(|name| name.starts_with('/'));
        let path = parts.database.take().map(|path| format!("/{}", path.trim_start_matches('/')));
        let Some(path) = named.or(path) else { return Err(refused("it names no socket: redis+unix:///PATH")) };
        parts.hosts = vec![Host { name: path, ..Host::default() }];
    }
    if let Some(number) = number {
        parts.database = Some(number);
    }
    if parts.database.as_ref().is_some_and(|number| number.ends_with("#insecure")) {
        return Err(refused("#insecure is written insecure=yes, behind a ?"));
    }
    if parts.database.as_ref().is_some_and(|number| number.parse::<u32>().is_err()) {
        return Err(refused("databases of Redis have numbers: redis://host/3"));
    }
    parts.settle_hosts();
    Ok(())
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    let identity = parts.identity(&["cert", "ssl_certfile"], &["key", "ssl_keyfile"])?;
    let file = parts.any(&["ca", "ssl_ca_certs"]);
    let says = |name: &str, words: &[&str]| {
        parts.option(name).is_some_and(|value| words.contains(&value.to_ascii_lowercase().as_str()))
    };
    let insecure = says("insecure", &["yes", "true", "1"])
        || says("skip_verify", &["yes", "true", "1"])
        || says("ssl_cert_reqs", &["none", "cert_none", "optional", "cert_optional", "0", "1"]);
    let any_name = says("ssl_check_hostname", &["false", "no", "0"]);
    // In drivers of other languages these ask for what the scheme asks for here.
    for name in ["ssl", "tls"].into_iter().filter(|name| parts.option(name).is_some()) {
        let (on, off) = (says(name, &["true", "yes", "1"]), says(name, &["false", "no", "0"]));
        match parts.scheme == "rediss" {
            true if !on => return Err(refused(&format!("{name} contradicts rediss://, which is TLS"))),
            false if !off => return Err(refused(&format!("{name} is not used: TLS is written rediss://"))),
            _ => {}
        }
    }
    let authority = match (parts.scheme.as_str(), file, insecure) {
        ("rediss", Some(file), false) if any_name => Authority::AnyNameOf(file.into()),
        ("rediss", Some(file), false) => Authority::named(file),
        ("rediss", None, true) => Authority::Anyone,
        ("rediss", None, false) if any_name => {
            return Err(refused(
                "ssl_check_hostname=false needs ca=FILE: everyone can get a certificate of a public authority",
            ));
        }
        ("rediss", None, false) => Authority::System,
        ("rediss", Some(_), true) => return Err(refused("give insecure=yes alone, without ca=FILE")),
        _ if file.is_none() && identity.is_none() && parts.option("ssl_cert_reqs").is_none() && !insecure => {
            return Ok(None);
        }
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
    let mut target = with_password(PRODUCT.target(server, setup)?)?;
    let accounts = matches!(&setup.authentication, Authentication::Password { mechanism } if mechanism == ACL);
    if is_local(server) && accounts {
        user.clone_into(&mut target.user);
        if user == ADMINISTRATOR {
            target.password = target.password.as_ref().map(password_of_administrator);
        }
    }
    Ok(target)
}

/// The administrator's password where the clients have this one: with the same, clients could log in as it.
pub fn password_of_administrator(password: &Secret) -> Secret {
    Secret::new(format!("{}-{ADMINISTRATOR}", password.expose_text()))
}

/// Refuses an account without a password: without one a client would be logged in as the server's default account.
fn with_password(target: Target) -> Result<Target, Fault> {
    if target.user.is_empty() || target.password.is_some() {
        return Ok(target);
    }
    Err(refused(
        "it names an account and no password: give it by REDISCLI_AUTH; a password alone is written \
         redis://:PASSWORD@host, also where redis-cli and drivers of Java take it without the colon",
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_model::experiment::Url;
    use tithe_plugin::setup::{TlsVersion, Transport};

    use super::*;
    use crate::test_setup::plain;

    fn check(url: &str, setup: &Setup, expect: Expect) {
        let text = match PRODUCT.attached(&Url::new(url), setup, &Outside::of(&[])) {
            Ok(target) => format!("{target:?}"),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn what_is_about_certificates_is_not_left_out_of_plaintext() {
        let url = Url::new("redis://db?ssl_cert_reqs=required");
        let fault = PRODUCT.attached(&url, &plain(), &Outside::of(&[])).expect_err("plaintext").to_string();
        assert!(fault.contains("options for TLS without rediss:// would not be used"), "{fault}");
    }

    #[test]
    fn urls_are_taken_apart() {
        check(
            "redis://localhost",
            &plain(),
            expect![[
                r#"[Target { host: "localhost", port: 6379, user: "", database: "0", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "redis://:p%40ss@db.example:6380/3",
            &plain(),
            expect![[
                r#"[Target { host: "db.example", port: 6380, user: "", database: "3", password: Some(***), password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "rediss://ann:secret@db?ca=/ca.pem&cert=/c.pem&key=/k.pem",
            &plain(),
            expect![[
                r#"[Target { host: "db", port: 6379, user: "ann", database: "0", password: Some(***), password_command: None, must_ask: false, tls: Some(Tls { authority: Of("/ca.pem"), server_name: None, versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")), resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "rediss://db?insecure=yes",
            &plain(),
            expect![[
                r#"[Target { host: "db", port: 6379, user: "", database: "0", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: Anyone, server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
    }

    #[test]
    fn an_account_is_not_left_out_because_its_password_is_unknown() {
        let password = Some(Secret::new("correct horse"));
        let told = |user: &str, password: &Option<_>| {
            let target = Target { user: user.to_owned(), password: password.clone(), ..Target::default() };
            with_password(target).map(|target| target.user).map_err(|fault| fault.to_string())
        };
        assert_eq!(told("", &None), Ok(String::new()));
        assert_eq!(told("", &password), Ok(String::new()));
        assert_eq!(told("ann", &password), Ok("ann".to_owned()));
        let why = told("hunter2", &None).expect_err("it may be a password");
        assert!(why.contains("written redis://:PASSWORD@host") && !why.contains("hunter2"), "{why}");
    }

    #[test]
    fn a_password_that_a_url_leaves_out_is_that_of_the_programs() {
        let password = |variables: &[(&str, &str)]| {
            let targets = PRODUCT.attached(&Url::new("redis://db"), &plain(), &Outside::of(variables));
            targets.expect("a target")[0].password.as_ref().map(|word| word.expose_text().to_owned())
        };
        let (redis, valkey) = (("REDISCLI_AUTH", "one"), ("VALKEYCLI_AUTH", "two"));
        assert_eq!(password(&[redis, valkey]).as_deref(), Some("one"));
        assert_eq!(password(&[valkey]).as_deref(), Some("two"));
        assert_eq!(password(&[]), None);
    }

    #[test]
    fn what_could_be_less_than_it_seems_is_refused() {
        check(
            "rediss://db",
            &plain(),
            expect![[
                r#"[Target { host: "db", port: 6379, user: "", database: "0", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: System, server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "rediss://db/#insecure",
            &plain(),
            expect!["refused: the server's URL: #insecure is written insecure=yes, behind a ?"],
        );
        check(
            "rediss://db?ca=/ca.pem&insecure=yes",
            &plain(),
            expect!["refused: the server's URL: give insecure=yes alone, without ca=FILE"],
        );
        check(
            "redis://db?ca=/ca.pem",
            &plain(),
            expect!["refused: the server's URL: options for TLS without rediss:// would not be used"],
        );
        check(
            "redis://db?ssl=True",
            &plain(),
            expect!["refused: the server's URL: ssl is not used: TLS is written rediss://"],
        );
        check(
            "rediss://db?tls=false",
            &plain(),
            expect!["refused: the server's URL: tls contradicts rediss://, which is TLS"],
        );
        check(
            "redis://db?db=3",
            &plain(),
            expect![[
                r#"[Target { host: "db", port: 6379, user: "", database: "3", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        let mut setup = plain();
        setup.transport = Transport::tls(TlsVersion::V1_3, false);
        check(
            "redis://db",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS: its URL needs rediss:// with ca=FILE, or with an authority of the system"
            ],
        );
    }
}
