//! Where a connection goes, as which account, and how it is protected: from an arm's set-up, or from the URL of a
//! running server.
//!
//! URLs follow libpq (PostgreSQL documentation, "Connection Strings"), including `PG…` variables, the service file and
//! the password file. All parameters of libpq are known. Those that would weaken what is measured are refused; those
//! without effect here are named. Without `sslmode` only plaintext is used.

use std::path::Path;

use tithe_machine::{credentials::KeyType, fault::Fault};
use tithe_model::experiment::Url;
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::{
    files,
    parameters::{DESTINATION, IDLE, REFUSED, SERVER_TYPE, SETTINGS, TLS_OPTIONS, USED, VARIABLES},
    session::PostgresSession,
    startup::{BOUND, CHANNEL_BINDING, OPTIONS, REQUIRE_AUTH},
};
use crate::target::{Authority, Outside, Product, SESSION_ATTRIBUTES, Target, Tls, UrlParts, refused};

/// Name of the account in servers that Tithe launches: the one that initdb creates.
pub const USER: &str = "tithe";

/// PostgreSQL's port, names and URL options.
pub const PRODUCT: Product = Product {
    title: "PostgreSQL",
    port: 5432,
    user: USER,
    // The one that initdb creates.
    database: "postgres",
    url_database: None,
    password_variable: "PGPASSWORD",
    tls_options: TLS_OPTIONS,
    used: USED,
    idle: IDLE,
    refused: REFUSED,
    settle,
    tls,
    tls_hints: ["sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)", "sslcert and sslkey"],
    takes: Some(takes),
    asked: &[CHANNEL_BINDING, OPTIONS, REQUIRE_AUTH, SESSION_ATTRIBUTES],
};

/// Moves what parameters, variables and files set to its field.
fn settle(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    let service = parts.option("service").or(outside.variable("PGSERVICE")).map(str::to_owned);
    if let Some(service) = service {
        for (name, value) in files::service(&service, parts.option("servicefile"), outside)? {
            files::put_default(parts, &name, &value);
        }
    }
    for (name, variable) in VARIABLES {
        // Plaintext that the URL asks for does not use the authority of the environment.
        let is_unused = name == "sslrootcert" && parts.option("sslmode") == Some("disable");
        if let Some(value) = outside.variable(variable).filter(|_| !is_unused) {
            files::put_default(parts, name, value);
        }
    }
    // As in libpq, this old variable counts where nothing else says how TLS is used.
    if parts.any(&["sslmode", "ssl", "requiressl"]).is_none() && outside.variable("PGREQUIRESSL") == Some("1") {
        parts.default_option("sslmode", "require");
    }
    put_parameters(parts)?;
    put_settings(parts);
    put_lists(parts, outside)?;
    put_files_at_home(parts, outside)?;
    if parts.user.is_none() {
        parts.user = outside.user().map(str::to_owned);
    }
    if parts.user.is_none() {
        return Err(refused("it names no user"));
    }
    // The password file has names before addresses.
    let is_named = parts.hosts.iter().any(|host| !host.name.is_empty());
    if parts.password.is_none() && is_named {
        files::put_passwords(parts, PRODUCT.port, outside)?;
    }
    // The address to connect to; the certificate is checked against the host name.
    if let Some(address) = parts.option("hostaddr").map(str::to_owned) {
        let names: Vec<String> = parts.hosts.iter().map(|host| host.name.clone()).collect();
        parts.put_place(Some(&address), None)?;
        if let [name] = names.as_slice()
            && !name.is_empty()
            && name.parse::<std::net::IpAddr>().is_err()
            && parts.option("sslmode") == Some("verify-full")
        {
            parts.default_option("server_name", name);
        }
    }
    if parts.password.is_none() && !is_named {
        files::put_passwords(parts, PRODUCT.port, outside)?;
    }
    // A folder means the socket in it with the port's number.
    for host in &mut parts.hosts {
        let port = host.port.unwrap_or(PRODUCT.port);
        let in_folder = |folder: &str| format!("{}/.s.PGSQL.{port}", folder.trim_end_matches('/'));
        if host.name.starts_with('@') {
            return Err(refused("abstract sockets (a host that begins with @) are not spoken to"));
        } else if host.name.starts_with('/') {
            host.name = in_folder(&host.name);
        } else if host.name.is_empty() {
            let found = FOLDERS.iter().map(|folder| in_folder(folder)).find(|socket| Path::new(socket).exists());
            host.name = found.unwrap_or_else(|| in_folder(FOLDERS[0]));
        }
    }
    Ok(())
}

/// Sets what libpq would do to a connection with TLS by the environment and the user's files, and is refused here: a
/// list of revoked certificates, another way to begin TLS.
fn put_lists(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    let by_socket = parts.hosts.iter().all(|host| host.name.is_empty() || host.name.starts_with('/'));
    let mode = mode(parts)?;
    if mode == "disable" || by_socket && parts.option("hostaddr").is_none() {
        return Ok(());
    }
    let verifies = mode.starts_with("verify-");
    let at_home = outside.at_home(".postgresql/root.crl").filter(|file| verifies && file.exists());
    let at_home = at_home.map(|file| file.display().to_string());
    let given = |variable: &str| outside.variable(variable).map(str::to_owned);
    for (name, value) in [
        ("sslcrl", given("PGSSLCRL").or(at_home)),
        ("sslcrldir", given("PGSSLCRLDIR")),
        ("sslnegotiation", given("PGSSLNEGOTIATION")),
    ] {
        if let Some(value) = value {
            parts.default_option(name, &value);
        }
    }
    Ok(())
}

/// Sets the files that libpq uses if they are there: the authority, without which `require` checks nothing, and the
/// client's certificate.
fn put_files_at_home(parts: &mut UrlParts, outside: &Outside) -> Result<(), Fault> {
    let at_home = |name: &str| {
        let file = outside.at_home(&format!(".postgresql/{name}")).filter(|file| file.exists());
        file.map(|file| file.display().to_string())
    };
    let (encrypts, verifies) = match mode(parts)? {
        "require" | "verify-ca" | "verify-full" => (true, true),
        "no-verify" => (true, false),
        _ => (false, false),
    };
    if verifies && let Some(file) = at_home("root.crt") {
        parts.default_option("sslrootcert", &file);
    }
    if !encrypts || parts.option("sslcertmode") == Some("disable") {
        return Ok(());
    }
    let is_named = parts.any(&["sslcert", "sslkey"]).is_some();
    let (certificate, key) = (at_home("postgresql.crt"), at_home("postgresql.key"));
    if let Some(file) = certificate {
        if !is_named && key.is_none() {
            return Err(refused(&format!("the key of {file} is not there: sslcertmode=disable leaves both out")));
        }
        parts.default_option("sslcert", &file);
    }
    if let Some(file) = key.filter(|_| parts.option("sslcert").is_some()) {
        parts.default_option("sslkey", &file);
    }
    Ok(())
}

/// Moves parameters about host and account to the authority, whose values they replace.
fn put_parameters(parts: &mut UrlParts) -> Result<(), Fault> {
    let own = |name: &str| parts.option(name).map(str::to_owned);
    let hosts = parts.joined("host");
    let [ports, user, password, database] = ["port", "user", "password", "dbname"].map(own);
    parts.put_place(hosts.as_deref(), ports.as_deref())?;
    parts.user = user.or(parts.user.take());
    parts.password = password.or(parts.password.take());
    parts.database = database.or(parts.database.take());
    let attributes = match parts.option(SERVER_TYPE) {
        None => return Ok(()),
        Some("any") => "any",
        Some("primary" | "master") => "read-write",
        Some("secondary" | "slave") => "read-only",
        Some(_) => return Err(refused("targetServerType is any, primary or secondary")),
    };
    parts.default_option(SESSION_ATTRIBUTES, attributes);
    Ok(())
}

/// Sets what drivers set when a session begins: settings, and the search path of Java's `currentSchema`, of Rails'
/// `schema_search_path` and of Prisma's `schema`, in which `public` is the server's default.
fn put_settings(parts: &mut UrlParts) {
    let given = |name: &'static str| Some((name, parts.option(name)?.to_owned()));
    let mut settings: Vec<(&str, String)> = SETTINGS.into_iter().filter_map(given).collect();
    match (parts.any(&["currentSchema", "schema_search_path"]), parts.option("schema")) {
        (Some(path), _) => settings.push(("search_path", path.to_owned())),
        (None, Some(name)) if name != "public" => {
            settings.push(("search_path", format!("\"{}\"", name.replace('"', "\"\""))));
        }
        _ => {}
    }
    // Spaces and backslashes separate and escape there.
    let escaped = |value: &str| value.replace('\\', "\\\\").replace(' ', "\\ ");
    let settings = settings.iter().map(|(name, value)| format!("-c {name}={}", escaped(value)));
    let all: Vec<String> = parts.option(OPTIONS).map(str::to_owned).into_iter().chain(settings).collect();
    if !all.is_empty() {
        parts.put_option(OPTIONS, all.join(" "));
    }
}

/// Folders where servers have their sockets by default.
const FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The requirement of a login that is bound to its connection.
const NEEDS_TLS: &str = "channel_binding=require needs TLS";

/// Checks whether clients with this set-up can use `url`.
///
/// # Errors
/// As [`Product::check_url`], and for channel binding on a connection without TLS.
pub fn check_url(url: &Url, setup: &Setup) -> Result<(), Fault> {
    PRODUCT.check_url(url, setup)?;
    let is_loose = |target: &Target| target.tls.is_none() && target.mechanism.as_deref() == Some(BOUND);
    match PRODUCT.attached(url, setup, &Outside::of_process())?.iter().any(is_loose) {
        true => Err(refused(&format!("{NEEDS_TLS}: it needs {}", PRODUCT.tls_hints[0]))),
        false => Ok(()),
    }
}

/// Checks whether servers with this set-up accept their clients.
///
/// # Errors
/// For channel binding on a connection without TLS, or with a certificate that has no hash; for a log that cannot be
/// read.
pub fn check_setup(setup: &Setup) -> Result<(), Fault> {
    if setup.settings.get(DESTINATION).is_some_and(|destination| destination == "syslog") {
        return Err(Fault::Refused(
            "what syslog keeps is the machine's and cannot be counted from here, so nothing would be proven: ask for another \
             `sink`"
                .to_owned(),
        ));
    }
    match (&setup.authentication, setup.transport) {
        (Authentication::Password { mechanism }, Transport::Plain) if mechanism == BOUND => {
            Err(Fault::Refused(format!("{NEEDS_TLS}: add `{{ use = \"tls\" }}` to this arm's protections")))
        }
        (Authentication::Password { mechanism }, Transport::Tls { key: Some(KeyType::Ed25519), chain: Some(2..), .. })
            if mechanism == BOUND =>
        {
            Err(Fault::Refused(
                "channel binding is not defined for certificates that an Ed25519 key has signed: ask for `chain = \"1\"`, which \
                 the run's authority signs, or for another `key`"
                    .to_owned(),
            ))
        }
        _ => Ok(()),
    }
}

fn tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    let tls = asked_tls(parts)?;
    if tls.is_none() && parts.option(CHANNEL_BINDING) == Some("require") {
        return Err(refused(&format!("{NEEDS_TLS}: write sslmode=verify-full, verify-ca or require")));
    }
    Ok(tls)
}

/// How TLS is used, as a value of `sslmode`.
fn mode(parts: &UrlParts) -> Result<&str, Fault> {
    const OFF: [&str; 5] = ["false", "0", "no", "off", "disable"];
    Ok(match (parts.option("sslmode"), parts.any(&["ssl", "requiressl"])) {
        (Some(mode), Some(other))
            if mode == "disable" && !OFF.contains(&other) || other.starts_with("verify-") && other != mode =>
        {
            return Err(refused("sslmode and ssl contradict each other"));
        }
        (Some(mode), _) => mode,
        // With this parameter the Java driver verifies everything; others only encrypt.
        (None, Some("true" | "")) if parts.is_java => "verify-full",
        (None, Some("true" | "1" | "require" | "on")) => "require",
        (None, Some(mode @ ("verify-full" | "verify-ca" | "no-verify"))) => mode,
        // Trusting the system's certificates is useless without a check of names (libpq 16).
        (None, None) if parts.option("sslrootcert") == Some("system") => "verify-full",
        (None, Some(other)) if !OFF.contains(&other) => {
            return Err(refused("its ssl is not understood: write sslmode=disable, require, verify-ca or verify-full"));
        }
        (None, _) => "disable",
    })
}

fn asked_tls(parts: &UrlParts) -> Result<Option<Tls>, Fault> {
    // As in libpq, TLS parameters do not apply to a socket, where servers do not use TLS.
    if parts.hosts.iter().all(|host| host.name.starts_with('/')) {
        return Ok(None);
    }
    let root = parts.option("sslrootcert").filter(|file| !file.is_empty());
    let says_nothing = parts.any(&["sslmode", "ssl", "requiressl"]).is_none();
    let names_certificate = parts.any(&["sslcert", "sslkey"]).is_some_and(|file| !file.is_empty());
    let authority = match (mode(parts)?, root) {
        ("disable", None) if says_nothing && names_certificate && parts.option("sslcertmode") != Some("disable") => {
            return Err(refused("sslcert and sslkey without sslmode=verify-full would not be used"));
        }
        ("disable", None) => return Ok(None),
        ("disable", Some(_)) => return Err(refused("sslrootcert without sslmode=verify-full would not be used")),
        // libpq does not check the name, but checks the authority if one is named.
        ("require" | "no-verify", None) => Authority::Anyone,
        ("no-verify", Some(_)) => return Err(refused("no-verify and sslrootcert contradict each other")),
        ("require" | "verify-ca", Some("system")) => {
            return Err(refused(
                "with sslrootcert=system, write sslmode=verify-full: everyone can get a certificate of these",
            ));
        }
        ("require" | "verify-ca", Some(file)) => Authority::AnyNameOf(file.into()),
        ("verify-full", Some(file)) => Authority::named(file),
        ("verify-full", None) => Authority::System,
        ("verify-ca", None) => return Err(refused("sslmode=verify-ca needs sslrootcert=FILE")),
        ("prefer" | "allow", _) => {
            return Err(refused(
                "sslmode=prefer and allow may fall back to plaintext, so what is measured would be left to chance; \
                 write disable, require, verify-ca or verify-full",
            ));
        }
        _ => return Err(refused("sslmode is disable, require, verify-ca or verify-full")),
    };
    let identity = match parts.option("sslcertmode") {
        Some("disable") => None,
        _ => parts.identity(&["sslcert"], &["sslkey"])?,
    };
    let mut tls = Tls::of_url(authority, identity);
    let bound = |name: &str, unset: f32| match parts.option(name) {
        None | Some("") => Ok(unset),
        Some(text) => {
            let number = text
                .strip_prefix("TLSv1")
                .map(|minor| if minor.is_empty() { Ok(1.0) } else { format!("1{minor}").parse() });
            number.and_then(Result::ok).ok_or_else(|| refused(&format!("{name} is TLSv1.2 or TLSv1.3")))
        }
    };
    let (least, most) = (bound("ssl_min_protocol_version", 1.2)?, bound("ssl_max_protocol_version", 1.3)?);
    tls.versions.retain(|version| {
        let number = if *version == TlsVersion::V1_2 { 1.2 } else { 1.3 };
        (least..=most).contains(&number)
    });
    if tls.versions.is_empty() {
        return Err(refused("its bounds leave no version of TLS: 1.2 and 1.3 are spoken"));
    }
    Ok(Some(tls))
}

/// Whether the server at `target` accepts clients and matches `target_session_attrs`.
fn takes(target: &Target) -> Result<bool, Fault> {
    let wanted = target.asked.get(SESSION_ATTRIBUTES).map_or("any", String::as_str);
    if !["any", "read-write", "read-only", "primary", "standby", "prefer-standby"].contains(&wanted) {
        return Err(refused("target_session_attrs is any, read-write, read-only, primary, standby or prefer-standby"));
    }
    let mut session = PostgresSession::open(target, false)?;
    let replica = session.value("SELECT pg_is_in_recovery()")? == "t";
    let read_only = replica || session.value("SHOW default_transaction_read_only")? == "on";
    Ok(match wanted {
        "read-write" => !read_only,
        "read-only" => read_only,
        "primary" => !replica,
        "standby" => replica,
        // Measuring needs a server that accepts writes, so a preference has no effect.
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::{Expect, expect};
    use tithe_machine::secret::Secret;

    use super::*;
    use crate::test_setup::plain;

    /// Whether addresses are read as the system's libpq reads them: `libpq.tsv` holds its results.
    #[test]
    fn addresses_are_read_as_libpq_does() {
        for line in include_str!("libpq.tsv").lines().filter(|line| !line.starts_with('#')) {
            let (address, expected) = line.split_once('\t').expect("an address and what it is");
            assert_eq!(as_libpq(address).unwrap_or_else(|_| "refused".to_owned()), expected, "{address}");
        }
    }

    /// The result for `address`, in the form of `libpq.tsv`.
    fn as_libpq(address: &str) -> Result<String, Fault> {
        let url = Url::new(address);
        if !["postgres", "postgresql"].contains(&url.scheme()) {
            return Err(refused("not PostgreSQL's"));
        }
        let mut parts = UrlParts::read(&url)?;
        parts.only(&[PRODUCT.tls_options, PRODUCT.used], PRODUCT.idle)?;
        put_parameters(&mut parts)?;
        let listed = |text: &dyn Fn(&crate::target::Host) -> String| {
            let all: Vec<String> = parts.hosts.iter().map(text).collect();
            Some(all.join(",")).filter(|list| !list.trim_matches(',').is_empty())
        };
        let own = |name: &str| parts.option(name).map(str::to_owned);
        let values = [
            ("user", parts.user.clone()),
            ("password", parts.password.clone()),
            ("dbname", parts.database.clone()),
            ("host", listed(&|host| host.name.clone())),
            ("hostaddr", own("hostaddr")),
            ("port", listed(&|host| host.port.map_or_else(String::new, |port| port.to_string()))),
            ("sslmode", own("sslmode").or(own("ssl").map(|_| "require".to_owned()))),
            (SESSION_ATTRIBUTES, own(SESSION_ATTRIBUTES)),
            (OPTIONS, own(OPTIONS)),
        ];
        let shown = values.iter().filter_map(|(name, value)| Some(format!("{name}=[{}]", value.as_ref()?)));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    fn check(url: &str, setup: &Setup, expect: Expect) {
        let text = match PRODUCT.attached(&Url::new(url), setup, &Outside::of(&[])) {
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
                r#"[Target { host: "db.example", port: 5433, user: "ann", database: "shop b", password: Some(***), password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "postgresql://ann@[::1]?sslmode=require",
            &plain(),
            expect![[
                r#"[Target { host: "::1", port: 5432, user: "ann", database: "ann", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: Anyone, server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        check(
            "postgres://ann@db/x?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem",
            &plain(),
            expect![[
                r#"[Target { host: "db", port: 5432, user: "ann", database: "x", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: Of("/ca.pem"), server_name: None, versions: [V1_3, V1_2], identity: Some(("/c.pem", "/k.pem")), resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
        let outside = Outside::of(&[("PGPASSWORD", "outside")]);
        let target =
            PRODUCT.attached(&Url::new("postgres://ann:p%40s@s@db"), &plain(), &outside).map(|mut all| all.remove(0));
        assert_eq!(target.expect("a target").password, Some(Secret::new("p@s@s")));
        let target = PRODUCT.attached(&Url::new("postgres://ann@db"), &plain(), &outside).map(|mut all| all.remove(0));
        assert_eq!(target.expect("a target").password, Some(Secret::new("outside")));
    }

    #[test]
    fn what_could_fall_back_is_refused_with_the_reason() {
        for (url, expect) in [
            (
                "postgres://ann:secret@db/x?sslmode=prefer",
                expect![
                    "refused: the server's URL: sslmode=prefer and allow may fall back to plaintext, so what is \
                     measured would be left to chance; write disable, require, verify-ca or verify-full"
                ],
            ),
            (
                "postgres://ann:secret@db/x?sslmode=verify-full",
                expect![[
                    r#"[Target { host: "db", port: 5432, user: "ann", database: "x", password: Some(***), password_command: None, must_ask: false, tls: Some(Tls { authority: System, server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
                ]],
            ),
            (
                "postgres://ann:secret@db/x?sslmode=verify-ca&sslrootcert=/ca.pem",
                expect![[
                    r#"[Target { host: "db", port: 5432, user: "ann", database: "x", password: Some(***), password_command: None, must_ask: false, tls: Some(Tls { authority: AnyNameOf("/ca.pem"), server_name: None, versions: [V1_3, V1_2], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
                ]],
            ),
            (
                "postgres://ann:secret@db/x?options=-csearch_path",
                expect![[
                    r#"[Target { host: "db", port: 5432, user: "ann", database: "x", password: Some(***), password_command: None, must_ask: false, tls: None, mechanism: None, asked: {"options": "-csearch_path"}, relay: None }]"#
                ]],
            ),
            ("postgres://db/x", expect!["refused: the server's URL: it names no user"]),
            (
                "postgres://ann@a,b/x",
                expect![[
                    r#"[Target { host: "a", port: 5432, user: "ann", database: "x", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }, Target { host: "b", port: 5432, user: "ann", database: "x", password: None, password_command: None, must_ask: false, tls: None, mechanism: None, asked: {}, relay: None }]"#
                ]],
            ),
            (
                "postgres://ann:%zz@db",
                expect![
                    "refused: the server's URL: a % is not followed by two hexadecimal digits; the sign itself is written %25"
                ],
            ),
        ] {
            check(url, &plain(), expect);
        }
    }

    #[test]
    fn urls_of_frameworks_are_taken_with_their_schema() {
        let options = |url: &str| {
            let targets = PRODUCT.attached(&Url::new(url), &plain(), &Outside::of(&[])).expect("a target");
            targets[0].asked.get(OPTIONS).cloned().unwrap_or_default()
        };
        assert_eq!(options("postgresql://ann@db/x?serverVersion=16&charset=utf8"), "");
        assert_eq!(options("jdbc:postgresql://db/x?user=ann&loadBalanceHosts=false"), "");
        assert_eq!(options("postgresql://ann@db/x?schema=public"), "");
        assert_eq!(options("postgresql://ann@db/x?schema=My%20Shop"), "-c search_path=\"My\\ Shop\"");
        let java = "jdbc:postgresql://db/x?user=ann&currentSchema=a,b&options=-c%20work_mem%3D5MB";
        assert_eq!(options(java), "-c work_mem=5MB -c search_path=a,b");
        assert_eq!(options("postgres://ann@db/x?pool=5&schema_search_path=a,b"), "-c search_path=a,b");
        // Go's.
        let go = "host=db user=ann dbname=x sslmode=disable TimeZone=Asia/Shanghai statement_timeout=5000";
        assert_eq!(options(go), "-c TimeZone=Asia/Shanghai -c statement_timeout=5000");
        let attributes = |kind: &str| {
            let url = Url::new(format!("jdbc:postgresql://a,b/x?user=ann&targetServerType={kind}"));
            let targets = PRODUCT.attached(&url, &plain(), &Outside::of(&[])).map_err(|fault| fault.to_string())?;
            targets[0].asked.get(SESSION_ATTRIBUTES).cloned().ok_or_else(String::new)
        };
        assert_eq!(attributes("primary").as_deref(), Ok("read-write"));
        assert_eq!(attributes("secondary").as_deref(), Ok("read-only"));
        assert!(attributes("preferSecondary").is_err_and(|why| why.contains("any, primary or secondary")));
    }

    #[test]
    fn the_authority_of_the_environment_is_for_connections_with_tls() {
        let outside = Outside::of(&[("PGSSLROOTCERT", "/ca.pem")]);
        let tls = |options: &str| {
            let url = Url::new(format!("postgres://ann@db/x{options}"));
            let targets = PRODUCT.attached(&url, &plain(), &outside).map_err(|fault| fault.to_string());
            targets.map(|targets| targets[0].tls.clone().map(|tls| tls.authority))
        };
        assert_eq!(tls("?sslmode=disable"), Ok(None));
        assert_eq!(tls("?sslmode=verify-full"), Ok(Some(Authority::Of("/ca.pem".into()))));
        assert!(tls("").is_err(), "it may be meant to be used");
    }

    #[test]
    fn variables_that_ask_for_more_than_is_done_are_not_left_out() {
        let told = |variables: &[(&str, &str)], options: &str| {
            let url = Url::new(format!("postgres://ann@db/x?{options}"));
            let targets =
                PRODUCT.attached(&url, &plain(), &Outside::of(variables)).map_err(|fault| fault.to_string())?;
            Ok::<_, String>(targets[0].tls.clone().map(|tls| tls.authority))
        };
        let old = [("PGREQUIRESSL", "1")];
        assert_eq!(told(&old, ""), Ok(Some(Authority::Anyone)));
        assert_eq!(told(&old, "sslmode=disable"), Ok(None));
        let list = [("PGSSLCRL", "/list.pem")];
        let why = told(&list, "sslmode=verify-full").expect_err("it would not be read");
        assert!(why.contains("sslcrl: lists of revoked certificates are not read"), "{why}");
        assert_eq!(told(&list, "sslmode=verify-full&sslcrl="), Ok(Some(Authority::System)));
        assert_eq!(told(&list, ""), Ok(None));
        let certificate = [("PGSSLCERT", "/c.pem"), ("PGSSLKEY", "/k.pem")];
        for (variables, options) in [(&certificate[..], ""), (&certificate[..0], "sslcert=/c.pem&sslkey=/k.pem")] {
            let why = told(variables, options).expect_err("it would not be used");
            assert!(why.contains("sslcert and sslkey without sslmode=verify-full"), "{why}");
        }
        for options in ["sslmode=disable", "sslcertmode=disable"] {
            assert_eq!(told(&certificate, options), Ok(None), "{options}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(".postgresql")).expect("made");
        std::fs::write(folder.path().join(".postgresql/root.crl"), "").expect("written");
        let home = folder.path().display().to_string();
        assert!(told(&[("HOME", home.as_str())], "sslmode=verify-full").is_err());
        assert_eq!(told(&[("HOME", home.as_str())], "sslmode=require"), Ok(Some(Authority::Anyone)));
    }

    #[test]
    fn the_authority_at_home_is_used_by_modes_that_verify_and_name_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().display().to_string();
        let authority = |options: &str| {
            let url = Url::new(format!("postgres://ann@db/x?{options}"));
            let targets = PRODUCT.attached(&url, &plain(), &Outside::of(&[("HOME", home.as_str())]));
            targets.expect("a target")[0].tls.clone().map(|tls| tls.authority)
        };
        assert_eq!(authority("sslmode=verify-full"), Some(Authority::System));
        let file = folder.path().join(".postgresql/root.crt");
        std::fs::create_dir(folder.path().join(".postgresql")).expect("made");
        std::fs::write(&file, "").expect("written");
        assert_eq!(authority("sslmode=verify-full"), Some(Authority::Of(file.clone())));
        assert_eq!(authority("sslmode=verify-ca"), Some(Authority::AnyNameOf(file.clone())));
        assert_eq!(authority("sslmode=verify-full&sslrootcert=system"), Some(Authority::System));
        // As in libpq, `require` checks what it has an authority for.
        assert_eq!(authority("sslmode=require"), Some(Authority::AnyNameOf(file)));
        assert_eq!(authority("sslmode=no-verify"), Some(Authority::Anyone));
        assert_eq!(authority(""), None);
    }

    #[test]
    fn the_certificate_at_home_is_used_with_tls_and_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().display().to_string();
        let outside = Outside::of(&[("HOME", home.as_str())]);
        let url = |options: &str| Url::new(format!("postgres://ann@db/x?sslmode={options}"));
        let identity = |options: &str| -> Result<Option<(PathBuf, PathBuf)>, String> {
            let targets = PRODUCT.attached(&url(options), &plain(), &outside).map_err(|fault| fault.to_string())?;
            Ok(targets[0].tls.clone().and_then(|tls| tls.identity))
        };
        let none: Result<_, String> = Ok(None);
        assert_eq!(identity("require"), none);
        std::fs::create_dir(folder.path().join(".postgresql")).expect("made");
        let [certificate, key] = ["crt", "key"].map(|end| folder.path().join(format!(".postgresql/postgresql.{end}")));
        std::fs::write(&certificate, "").expect("written");
        let why = identity("require").expect_err("no key");
        assert!(why.ends_with("postgresql.crt is not there: sslcertmode=disable leaves both out"), "{why}");
        std::fs::write(&key, "").expect("written");
        let at_home: Result<_, String> = Ok(Some((certificate.clone(), key.clone())));
        assert_eq!(identity("require"), at_home);
        assert_eq!(identity("verify-full&sslcertmode=allow"), at_home);
        assert_eq!(identity("require&sslcert=/c.pem"), Ok(Some((PathBuf::from("/c.pem"), key))));
        for without in ["disable", "require&sslcertmode=disable"] {
            assert_eq!(identity(without), none, "{without}");
        }
        let switched_off = Outside::of(&[("HOME", home.as_str()), ("PGSSLCERTMODE", "disable")]);
        let targets = PRODUCT.attached(&url("require"), &plain(), &switched_off).expect("a target");
        assert!(targets[0].tls.as_ref().is_some_and(|tls| tls.identity.is_none()), "{targets:?}");
        let why = identity("require&sslcertmode=require").expect_err("it is not checked");
        assert!(why.contains("sslcertmode: whether the server asks"), "{why}");
        let remarks = PRODUCT.remarks_with(&url("require"), &plain(), &outside);
        assert_eq!(remarks, [format!("used without being in the URL: {}", certificate.display())]);
        let named = url("require&sslcert=/c.pem&sslkey=/k.pem");
        assert!(PRODUCT.remarks_with(&named, &plain(), &outside).is_empty());
    }

    #[test]
    fn several_hosts_may_be_options_with_ports_of_their_own() {
        let places = |url: &str| {
            let targets = PRODUCT.attached(&Url::new(url), &plain(), &Outside::of(&[])).expect("targets");
            targets.iter().map(|target| format!("{}:{}", target.host, target.port)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(places("postgresql+psycopg://ann@/x?host=a:1&host=b&host=c:3"), "a:1 b:5432 c:3");
        assert_eq!(places("postgresql://ann@/x?host=a,b&port=1,2"), "a:1 b:2");
        assert_eq!(places("postgresql://ann@/x?host=fe80::7&port=1"), "fe80::7:1");
        assert_eq!(places("postgresql://ann@/x?host=/run/a:b"), "/run/a:b/.s.PGSQL.5432:5432");
        assert_eq!(places("jdbc:postgresql:x?user=ann"), "localhost:5432");
    }

    #[test]
    fn what_asks_for_tls_in_other_words_is_never_plaintext() {
        for options in ["ssl=True", "ssl=yes", "ssl=prefer", "ssl=", "sslmode=require&ssl=verify-full"] {
            let url = Url::new(format!("postgres://ann@db/x?{options}"));
            let outcome = PRODUCT.attached(&url, &plain(), &Outside::of(&[]));
            assert!(matches!(outcome, Err(Fault::Refused(_))), "{options}: {outcome:?}");
        }
    }

    #[test]
    fn the_password_file_is_searched_for_the_name_of_a_host_with_an_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pass");
        std::fs::write(&file, "10.0.0.7:*:*:ann:of the address\ndb:*:*:ann:of the name\n").expect("written");
        let closed = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        std::fs::set_permissions(&file, closed).expect("closed");
        let found = |host: &str| {
            let url = Url::new(format!("postgres://ann@{host}/x?hostaddr=10.0.0.7&passfile={}", file.display()));
            let targets = PRODUCT.attached(&url, &plain(), &Outside::of(&[])).expect("a target");
            (targets[0].host.clone(), targets[0].password.clone())
        };
        let at_address = |password: &str| ("10.0.0.7".to_owned(), Some(Secret::new(password)));
        assert_eq!(found("db"), at_address("of the name"));
        assert_eq!(found(""), at_address("of the address"));
    }

    #[test]
    fn an_arm_with_tls_needs_a_url_with_tls() {
        let mut setup = plain();
        setup.transport = Transport::tls(TlsVersion::V1_3, false);
        check(
            "postgres://ann@db/x",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS: its URL needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)"
            ],
        );
        check(
            "postgres://ann@db/x?sslmode=require",
            &setup,
            expect![
                "refused: the server's URL: this arm asks for TLS, and its URL takes any certificate, so that a machine in between could pose as the server: it needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)"
            ],
        );
        check(
            "postgres://ann@db/x?sslmode=verify-full&sslrootcert=/ca.pem",
            &setup,
            expect![[
                r#"[Target { host: "db", port: 5432, user: "ann", database: "x", password: None, password_command: None, must_ask: false, tls: Some(Tls { authority: Of("/ca.pem"), server_name: None, versions: [V1_3], identity: None, resumption: false, suite: None, protocol: None }), mechanism: None, asked: {}, relay: None }]"#
            ]],
        );
    }

    #[test]
    fn a_login_is_tied_to_a_connection_with_tls_alone() {
        let mut setup = plain();
        setup.authentication = Authentication::Password { mechanism: BOUND.to_owned() };
        let told = |outcome: Result<(), Fault>| outcome.map_or_else(|fault| fault.to_string(), |()| "taken".to_owned());
        let url = |options: &str| Url::new(format!("postgres://ann@db/x?{options}"));
        expect![[r#"
            refused: channel_binding=require needs TLS: add `{ use = "tls" }` to this arm's protections
            refused: the server's URL: channel_binding=require needs TLS: it needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)
            refused: the server's URL: channel_binding=require needs TLS: write sslmode=verify-full, verify-ca or require
            taken"#]]
        .assert_eq(&[
            told(check_setup(&setup)),
            told(check_url(&url(""), &setup)),
            told(check_url(&url("channel_binding=require"), &plain())),
            told(check_url(&url("sslmode=require&channel_binding=require"), &setup)),
        ].join("\n"));
    }
    #[test]
    fn a_login_is_not_tied_to_a_certificate_that_has_no_hash() {
        let mut setup = plain();
        setup.authentication = Authentication::Password { mechanism: BOUND.to_owned() };
        let told = [None, Some(1), Some(2)].map(|chain| {
            setup.transport = Transport::Tls {
                version: TlsVersion::V1_3,
                mutual: false,
                resumption: false,
                suite: None,
                key: Some(KeyType::Ed25519),
                chain,
            };
            check_setup(&setup).is_ok()
        });
        assert_eq!(told, [true, true, false]);
    }
}
