//! Which client connects to which server, as which account.
//!
//! URL: `mysql://user[:password]@host[:port][/name][?ssl-mode=…&ssl-ca=…&ssl-cert=…&ssl-key=…]`, `mariadb://…`
//! likewise, with the options of the client programs and of drivers of other languages. With `defaults-file=FILE` the
//! client groups of that file are read. If no password is given there, it is taken from `MYSQL_PWD`, or from
//! `~/.my.cnf` as the programs do, and a server from `MYSQL_HOST` and `MYSQL_TCP_PORT`. Without `ssl-mode` only
//! plaintext is used. A database in the URL is not used: Tithe works in a database of its own.

use tithe_machine::fault::Fault;

use super::option_file;
use crate::target::{Authority, Outside, Product, RefusedOption, Tls, UrlParts, refused};

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
        password_variable: PASSWORD_VARIABLE,
        tls_options: TLS_OPTIONS,
        used: &[
            "socket",
            "unix-socket",
            "host",
            "port",
            "user",
            "password",
            "database",
            "defaults-file",
            "defaults-group-suffix",
            "compress",
            "use-compression",
            "init-command",
            "sql-mode",
        ],
        idle: IDLE,
        refused: REFUSED,
        settle,
        tls,
        tls_hints: ["ssl-mode=verify_identity (or verify_ca) and ssl-ca=FILE", "ssl-cert and ssl-key"],
        takes: None,
        asked: &[],
    }
}

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &[
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl",
    "tls",
    "use-ssl",
    "require-ssl",
    "verify-server-certificate",
    "ssl-verify-server-cert",
    "ssl-verify-cert",
    "ssl-verify-identity",
    "ssl-check-hostname",
    "ssl-accept",
    "server-ssl-cert",
    "server_name",
];

/// Options of drivers and pools that change nothing here.
const IDLE: &[&str] = &[
    "charset",
    "collation",
    "connection-collation",
    "character-encoding",
    "use-unicode",
    "encoding",
    "connect-timeout",
    "connection-timeout",
    "login-timeout",
    "socket-timeout",
    "read-timeout",
    "write-timeout",
    "timeout",
    "autocommit",
    "auto-reconnect",
    "reconnect",
    "parse-time",
    "loc",
    "multi-statements",
    "interpolate-params",
    "client-found-rows",
    "columns-with-alias",
    "allow-native-passwords",
    "allow-public-key-retrieval",
    "get-server-public-key",
    "check-conn-liveness",
    "reject-read-only",
    "server-timezone",
    "server-version",
    "timezone",
    "connection-time-zone",
    "zero-date-time-behavior",
    "rewrite-batched-statements",
    "cache-prep-stmts",
    "use-server-prep-stmts",
    "prep-stmt-cache-size",
    "prep-stmt-cache-sql-limit",
    "statement-cache-capacity",
    "use-local-session-state",
    "cache-result-set-metadata",
    "cache-server-configuration",
    "elide-set-auto-commits",
    "maintain-time-stats",
    "allow-multi-queries",
    "create-database-if-not-exist",
    "use-legacy-datetime-code",
    "use-jdbc-compliant-timezone-shift",
    "null-catalog-means-current",
    "use-affected-rows",
    "use-cursor-fetch",
    "default-fetch-size",
    "fail-over-read-only",
    "max-reconnects",
    "use-information-schema",
    "jdbc-compliant-truncation",
    "use-old-alias-metadata-behavior",
    "no-access-to-procedure-bodies",
    "tiny-int1is-bit",
    "max-allowed-packet",
    "local-infile",
    "allow-local-infile",
    "pool",
    "pool-size",
    "pool-timeout",
    "pool-recycle",
    "connection-limit",
    "connection-attributes",
    "connect-attrs",
    "conn-max-age",
    "program-name",
    "protocol",
    "auth-plugin",
    "default-auth",
    "plugin-dir",
    "binary-prefix",
    "sslcert-type",
];

/// Moves what options, variables and files set to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    let suffix = parts.option("defaults-group-suffix").unwrap_or_default().to_owned();
    if let Some(file) = parts.option("defaults-file").map(str::to_owned) {
        // The last of several counts.
        for (name, value) in option_file::of_clients(file.as_ref(), &suffix)?.into_iter().rev() {
            put_default(parts, &name, &value);
        }
    }
    let (host, port) = (parts.option("host").map(str::to_owned), parts.option("port").map(str::to_owned));
    parts.put_place(host.as_deref(), port.as_deref())?;
    let names_none = parts.hosts.iter().all(|host| host.name.is_empty() && host.port.is_none());
    if names_none && parts.any(&["unix-socket", "socket"]).is_none() {
        parts.put_place(outside.variable("MYSQL_HOST"), outside.variable("MYSQL_TCP_PORT"))?;
    }
    for name in ["user", "password", "database"] {
        let Some(value) = parts.option(name).map(str::to_owned) else { continue };
        match name {
            "user" => parts.user = Some(value),
            "password" => parts.password = Some(value),
            _ => parts.database = Some(value),
        }
    }
    if parts.password.is_none() {
        parts.password = outside.variable(PASSWORD_VARIABLE).map(str::to_owned);
    }
    if parts.password.is_none()
        && let Some(file) = outside.at_home(".my.cnf").filter(|file| file.exists())
    {
        let found = option_file::of_clients(&file, &suffix)?;
        let last = |wanted: &str| found.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        // A password is one account's.
        if parts.user.is_none() || last("user") == parts.user || last("user").is_none() {
            parts.user = parts.user.take().or(last("user"));
            parts.password = last("password");
        }
    }
    if parts.user.is_none() {
        return Err(refused("it names no user"));
    }
    let socket = parts.any(&["unix-socket", "socket"]).filter(|path| !path.is_empty()).map(str::to_owned);
    for host in &mut parts.hosts {
        if let Some(socket) = &socket {
            if !socket.starts_with('/') {
                return Err(refused("a socket is named by its whole path"));
            }
            if !["", "localhost"].contains(&host.name.as_str()) {
                return Err(refused("it names a host and a socket: name one of them"));
            }
            host.name.clone_from(socket);
        } else if host.name.is_empty() {
            "localhost".clone_into(&mut host.name);
        }
    }
    Ok(())
}

/// Sets the option `name` if the URL does not set it.
fn put_default(parts: &mut UrlParts, name: &str, value: &str) {
    let host = parts.hosts.first().cloned().unwrap_or_default();
    match name {
        "user" if parts.user.is_some() => {}
        "password" if parts.password.is_some() => {}
        "host" | "socket" if !host.name.is_empty() => {}
        "port" if host.port.is_some() => {}
        _ => parts.default_option(name, value),
    }
}

/// The reason against compression.
const COMPRESSION: &str = "compression changes what an operation costs, and is not spoken";

/// Options that are refused.
const REFUSED: &[RefusedOption] = &[
    ("compress", &["false", "0", "off"], COMPRESSION),
    ("use-compression", &["false", "0", "off"], COMPRESSION),
    ("init-command", &[""], "give it as `on` of every arm, so that the report shows it"),
    ("sql-mode", &[""], "give it as `on = [\"SET sql_mode = …\"]` of every arm, so that the report shows it"),
];

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    let file = parts.any(&["ssl-ca", "server-ssl-cert"]);
    let by_others = by_other_names(parts)?;
    let named = parts.option("ssl-mode").map(|mode| mode.to_ascii_lowercase().replace('-', "_"));
    let mode = match named.as_deref() {
        Some("verify_full") => "verify_identity",
        Some("disable" | "none" | "false") => "disabled",
        Some("require" | "trust") => "required",
        Some("prefer") => "preferred",
        Some(mode) => mode,
        None => by_others,
    };
    if mode == "disabled" && by_others != mode || mode == "required" && by_others.starts_with("verify") {
        return Err(refused(&format!("ssl-mode={mode} and another of its options contradict each other")));
    }
    let says_nothing = named.is_none() && parts.any(&["ssl", "tls", "use-ssl"]).is_none();
    let names_certificate = parts.any(&["ssl-cert", "ssl-key"]).is_some_and(|file| !file.is_empty());
    let authority = match (mode, file) {
        ("disabled", None) if says_nothing && names_certificate => {
            return Err(refused("ssl-cert and ssl-key without ssl-mode=verify_identity would not be used"));
        }
        ("disabled", None) => return Ok(None),
        ("disabled", Some(_)) => return Err(refused("ssl-ca without ssl-mode=verify_identity would not be used")),
        ("required", None) => Authority::Anyone,
        ("required", Some(_)) => return Err(refused("with ssl-ca, write ssl-mode=verify_ca or verify_identity")),
        ("verify_identity", Some(file)) => Authority::named(file),
        ("verify_identity", None) => Authority::System,
        ("verify_ca", Some(file)) => Authority::AnyNameOf(file.into()),
        ("verify_ca", None) => return Err(refused("ssl-mode=verify_ca needs ssl-ca")),
        ("preferred", _) => {
            return Err(refused(
                "ssl-mode=preferred may fall back to plaintext, so what is measured would be left to chance; write \
                 disabled, required, verify_ca or verify_identity",
            ));
        }
        _ => return Err(refused("ssl-mode is disabled, required, verify_ca or verify_identity")),
    };
    Ok(Some(Tls::of_url(authority, parts.identity(&["ssl-cert"], &["ssl-key"])?)))
}

/// The names of modes in drivers other than MySQL's own.
fn by_other_names(parts: &UrlParts) -> Result<&'static str, Fault> {
    let is = |name: &str, words: &[&str]| {
        parts.option(name).is_some_and(|value| words.contains(&value.replace(' ', "").to_ascii_lowercase().as_str()))
    };
    // In an option file a name alone switches on.
    const YES: &[&str] = &["", "true", "1", "yes", "on"];
    const NO: &[&str] = &["false", "0", "no", "off"];
    if is("tls", &["preferred"]) {
        return Ok("preferred");
    }
    let no = |name| is(name, NO) || parts.option(name).is_none();
    if VERIFYING.into_iter().chain(ASKING).any(|name| !is(name, YES) && !no(name)) {
        return Err(refused(NOT_UNDERSTOOD));
    }
    let verifies = is("tls", YES)
        || is("ssl", &["{\"rejectunauthorized\":true}"])
        || is("ssl-accept", &["strict"])
        || VERIFYING.into_iter().any(|name| is(name, YES));
    let asks = is("ssl", YES)
        || is("ssl", &["{\"rejectunauthorized\":false}"])
        || is("tls", &["skip-verify"])
        || is("ssl-accept", &["accept_invalid_certs"])
        || ASKING.into_iter().any(|name| is(name, YES));
    match (verifies, asks) {
        (true, _) => Ok("verify_identity"),
        (false, _) if parts.option("ssl-ca").is_some() && is("ssl-check-hostname", NO) => Ok("verify_ca"),
        // A URL that names an authority requests its check.
        (false, true) if parts.option("ssl-ca").is_some() || is("ssl-verify-cert", YES) => Ok("verify_ca"),
        (false, true) => Ok("required"),
        (false, false) if ["ssl", "tls", "ssl-accept"].into_iter().all(no) => Ok("disabled"),
        (false, false) => Err(refused(NOT_UNDERSTOOD)),
    }
}

/// Options of drivers that have the server's name checked if they are on.
const VERIFYING: [&str; 4] =
    ["verify-server-certificate", "ssl-verify-server-cert", "ssl-verify-identity", "ssl-check-hostname"];

/// Others that ask for TLS.
const ASKING: [&str; 3] = ["use-ssl", "require-ssl", "ssl-verify-cert"];

const NOT_UNDERSTOOD: &str =
    "its TLS options are not understood: write ssl-mode=disabled, required, verify_ca or verify_identity";

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Url;

    use super::*;
    use crate::test_setup::plain;

    #[test]
    fn a_name_alone_asks_for_tls_as_in_option_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my.cnf");
        let authority = |lines: &str| {
            std::fs::write(&file, format!("[client]\n{lines}\n")).expect("written");
            let url = Url::new(format!("mysql://app@db/?defaults-file={}", file.display()));
            let targets = product("MySQL").attached(&url, &plain(), &Outside::of(&[])).expect("a target");
            targets[0].tls.clone().map(|tls| tls.authority)
        };
        assert_eq!(authority("ssl-verify-server-cert"), Some(Authority::System));
        assert_eq!(authority("ssl-ca=/ca.pem\nssl-verify-server-cert"), Some(Authority::Of("/ca.pem".into())));
        assert_eq!(authority("ssl"), Some(Authority::Anyone));
        assert_eq!(authority("ssl=0"), None);
        assert_eq!(authority("no-auto-rehash"), None);
        assert_eq!(authority("ssl # everywhere"), Some(Authority::Anyone));
        assert_eq!(authority("loose-ssl-mode=VERIFY_IDENTITY"), Some(Authority::System));
        assert_eq!(authority("ssl\nskip-ssl"), None);
        assert_eq!(authority("skip_ssl\n[client-mariadb]\nssl"), Some(Authority::Anyone));
    }

    #[test]
    fn the_last_of_several_options_of_a_file_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my.cnf");
        let text = "[client]\nuser=app\nhost=one\nport=1\n[client_dev]\nhost=dev\nport=2\n";
        std::fs::write(&file, text).expect("written");
        let place = |options: &str| {
            let url = Url::new(format!("mysql:///?defaults-file={}{options}", file.display()));
            let targets = product("MySQL").attached(&url, &plain(), &Outside::of(&[])).expect("a target");
            format!("{}:{}", targets[0].host, targets[0].port)
        };
        assert_eq!(place(""), "one:1");
        assert_eq!(place("&defaults-group-suffix=_dev"), "dev:2");
    }

    #[test]
    fn a_server_that_a_url_does_not_name_is_that_of_the_programs_variables() {
        let outside = Outside::of(&[("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3307")]);
        let place = |url: &str| {
            let targets = product("MySQL").attached(&Url::new(url), &plain(), &outside).expect("a target");
            format!("{}:{}", targets[0].host, targets[0].port)
        };
        assert_eq!(place("mysql://app@/shop"), "db:3307");
        assert_eq!(place("mysql://app@other/shop"), "other:3306");
        assert_eq!(place("mysql://app@/shop?socket=/run/my.sock"), "/run/my.sock:3306");
    }

    #[test]
    fn names_of_python_are_understood() {
        let authority = |options: &str| {
            let url = Url::new(format!("mysql://app@db/?{options}"));
            let targets = product("MySQL").attached(&url, &plain(), &Outside::of(&[])).expect("a target");
            targets[0].tls.clone().map(|tls| tls.authority)
        };
        assert_eq!(authority("ssl_ca=/ca&ssl_check_hostname=false"), Some(Authority::AnyNameOf("/ca".into())));
        assert_eq!(authority("ssl_ca=/ca&ssl_check_hostname=true"), Some(Authority::Of("/ca".into())));
        assert_eq!(authority("ssl_check_hostname=false"), None);
    }

    #[test]
    fn what_asks_for_tls_is_neither_plaintext_nor_unverified_without_a_word() {
        for options in [
            "requireSSL=maybe",
            "ssl=true&ssl_verify_identity=maybe",
            "ssl_verify_cert=true",
            "sslMode=REQUIRED&verifyServerCertificate=true",
            "sslMode=DISABLED&useSSL=true",
            "sslCert=/c.pem&sslKey=/k.pem",
        ] {
            let url = Url::new(format!("mysql://app@db/shop?{options}"));
            let outcome = product("MySQL").attached(&url, &plain(), &Outside::of(&[]));
            assert!(matches!(outcome, Err(Fault::Refused(_))), "{options}: {outcome:?}");
        }
    }

    #[test]
    fn a_certificate_is_left_out_where_plaintext_is_asked_for() {
        for options in ["sslMode=DISABLED&sslCert=/c.pem&sslKey=/k.pem", "ssl=false&sslCert=/c.pem&sslKey=/k.pem"] {
            let url = Url::new(format!("mysql://app@db/shop?{options}"));
            let targets = product("MySQL").attached(&url, &plain(), &Outside::of(&[])).expect("a target");
            assert_eq!(targets[0].tls, None, "{options}");
        }
    }

    #[test]
    fn hosts_in_the_form_of_java_are_refused_by_name() {
        for url in ["jdbc:mysql://(host=db,port=3306)/shop?user=app", "mysql://app@address=(host=db)(port=3306)/shop"] {
            let fault = product("MySQL").check_url(&Url::new(url), &plain()).expect_err(url).to_string();
            assert!(fault.contains("a host is written host:port"), "{fault}");
        }
    }

    #[test]
    fn urls_of_frameworks_are_taken() {
        for options in [
            "serverVersion=8.0.32&charset=utf8mb4",
            "prepStmtCacheSqlLimit=2048&useLocalSessionState=true&maintainTimeStats=false",
            "allowMultiQueries=true&createDatabaseIfNotExist=true",
            "useJDBCCompliantTimezoneShift=true&useLegacyDatetimeCode=false&serverTimezone=UTC",
            "nullCatalogMeansCurrent=true&useAffectedRows=true&useCompression=false",
        ] {
            let url = Url::new(format!("mysql://app@db/shop?{options}"));
            assert_eq!(product("MySQL").check_url(&url, &plain()), Ok(()), "{options}");
        }
        let compressed = Url::new("mysql://app@db/shop?useCompression=true");
        let fault = product("MySQL").check_url(&compressed, &plain()).expect_err("another cost").to_string();
        assert!(fault.contains("compression changes what an operation costs"), "{fault}");
    }
}
