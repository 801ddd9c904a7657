//! Servers of every product that were set up outside Tithe, with accounts of minimal privileges. The protections in
//! `experiments/attached` are proven, misconfigured variants are detected, and missing privileges are named.

use super::switched::the_audit_log_of_a_cassandra_is_switched_by_nodetool_and_proven;
use crate::support;

use std::{fs, path::Path};

use support::{
    Bench, err, out,
    server::{OtherServer, Server, free_port},
    status, wait_until,
};

/// The password of every account that has one.
pub const PASSWORD: &str = "an-account-of-the-tests";

/// Verifies the experiment in `text`; the exit status and all output.
pub fn verified(text: &str) -> (i32, String) {
    let bench = Bench::new("attached-products");
    bench.file("e.toml", text);
    if text.contains(OTHER_AUTHORITY) {
        bench.certificate(OTHER_AUTHORITY);
    }
    let mut command = bench.command(&["verify", "e.toml"]);
    let passwords = ["PGPASSWORD", "REDISCLI_AUTH", "CASSANDRA_PASSWORD"].map(|variable| (variable, PASSWORD));
    let output = command.envs(passwords).output().expect("tithe starts");
    let told = out(&output) + &err(&output);
    (status(&output), told)
}

/// The file of an authority that signed no server's certificate, next to the experiment.
const OTHER_AUTHORITY: &str = "other.pem";

/// An arm with TLS at `tls`, compared with one at `plain`, is not measured; the message contains these `words`.
fn tls_refused(database: &str, plain: &str, tls: &str, words: &str) {
    let (status, told) = verified(&experiment(database, &[("plain", plain, ""), ("tls", tls, "tls")]));
    assert_eq!(status, 4, "{database}: {told}");
    assert!(told.contains("arm tls: ") && told.contains(words), "{database}: {told}");
}

/// The message about a server whose certificate [`OTHER_AUTHORITY`] did not sign: that authority has the same name as
/// the right one.
const OF_ANOTHER: &str = "TLS: the server's certificate has the name of an authority that is trusted here, and not its \
                          signature: name the file with the authority that signed it";

/// The message about a server without TLS that reports this before TLS begins.
const NO_TLS: &str = "TLS was asked for, and the server offers none";

/// The arm with `protection`, a password, is proven at `closed`, where one is required, compared with a plain one at
/// `open`, where none is. If the arm itself uses `open`, the result is `expected`.
fn password_proven(database: &str, protection: &str, open: &str, closed: &str, expected: (i32, &str)) {
    let check = |url: &str| verified(&experiment(database, &[("plain", open, ""), ("password", url, protection)]));
    let (status, told) = check(closed);
    assert_eq!(status, 0, "{database}: {told}");
    assert!(told.contains("without a password: refused ("), "{database}: {told}");
    let (status, told) = check(open);
    assert_eq!(status, expected.0, "{database}: {told}");
    assert!(told.contains(expected.1), "{database}: {told}");
}

/// The message if a password should be required, but is not.
const NOT_ASKED: (i32, &str) = (4, "the server lets clients in without the password that it should ask for");

/// The file of `experiments/attached` about `database`, with its places replaced by these.
pub fn brought_along(database: &str, places: &[(&str, &str)], authority: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/attached");
    let text = std::fs::read_to_string(folder.join(format!("{database}.toml"))).expect("the experiment");
    let text = text.replace("/etc/ssl/db-authority.pem", authority);
    let text = places.iter().fold(text, |text, (from, to)| text.replace(from, to));
    assert!(!text.contains("db.example:"), "{text}");
    text
}

/// An experiment about `database` with these arms: name, URL and protection.
fn experiment(database: &str, arms: &[(&str, &str, &str)]) -> String {
    let arm = |(name, url, protection): &(&str, &str, &str)| {
        let protections =
            if protection.is_empty() { String::new() } else { format!("protections = [{{ use = \"{protection}\" }}]") };
        format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\n{protections}\n")
    };
    format!(
        "title = \"Short\"\ndatabase = \"{database}\"\n[data]\nrecords = 200\n[measure]\nbudget = \"3 min\"\n\
         [[workload]]\nycsb = \"a\"\n{}",
        arms.iter().map(arm).collect::<String>()
    )
}

#[test]
fn postgres_proves_all_that_its_file_asks_for() {
    let Some(server) = Server::start() else { return };
    server.psql(
        "CREATE ROLE careful LOGIN; GRANT CREATE ON DATABASE postgres TO careful; \
         GRANT SET ON PARAMETER pgaudit.log, pgaudit.log_parameter, pgaudit.log_catalog, log_statement TO careful; \
         GRANT EXECUTE ON FUNCTION pg_current_logfile(text), pg_stat_file(text), \
         pg_read_binary_file(text, bigint, bigint) TO careful",
    );
    let tls = server.url_of("careful", true);
    let place = tls.split(['@', '/']).nth(3).expect("a place");
    let authority = tls.rsplit('=').next().expect("a file");
    let (status, told) = verified(&brought_along("postgres", &[("db.example:5432", place)], authority));
    assert_eq!(status, 0, "{told}");
    // One more account, which needs a password.
    server
        .psql(&format!("CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'; GRANT CREATE ON DATABASE postgres TO locked"));
    let rules = server.folder().join("data/pg_hba.conf");
    let others = fs::read_to_string(&rules).expect("the rules");
    fs::write(&rules, format!("host all locked 127.0.0.1/32 scram-sha-256\n{others}")).expect("written");
    reload(&server);
    let (open, closed) = (server.url_of("careful", false), server.url_of("locked", false));
    password_proven("postgres", "scram", &open, &closed, NOT_ASKED);
    let until = |time: &str, words: [&str; 2]| {
        server.psql(&format!("DO $$ BEGIN EXECUTE format('ALTER ROLE locked VALID UNTIL %L', {time}); END $$"));
        let (status, told) = verified(&experiment("postgres", &[("plain", &open, ""), ("scram", &closed, "scram")]));
        assert_eq!(status, 4, "{told}");
        assert!(words.iter().all(|words| told.contains(words)), "{words:?}: {told}");
    };
    let remedy = "run `ALTER ROLE locked VALID UNTIL 'infinity'`";
    until("now() + interval '1 hour'", ["arm scram: the password of locked expires at 2", remedy]);
    until("now() - interval '1 hour'", ["28P01: password authentication failed", "it has expired (`rolvaliduntil`"]);
    server.psql("ALTER SYSTEM SET ssl = 'off'");
    reload(&server);
    tls_refused("postgres", &open, &tls, NO_TLS);
}

/// Makes `server` reload its configuration, and waits until it has.
fn reload(server: &Server) {
    let loaded = || server.psql("SELECT pg_conf_load_time()");
    let before = loaded();
    server.psql("SELECT pg_reload_conf()");
    wait_until(|| loaded() != before);
}

/// A MariaDB that audits one of two accounts.
const AUDITS: &str = "plugin_load_add = server_audit\nserver_audit_logging = ON\nserver_audit_incl_users = audited\n\
                      server_audit_events = CONNECT,QUERY\nserver_audit_file_path = FOLDER/audit.log\n";

const ACCOUNTS: &str = "CREATE USER plain@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO plain@'127.0.0.1';\n\
                        CREATE USER audited@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO audited@'127.0.0.1';\n";

/// One account with [`PASSWORD`], and one without a password.
const LOCKED: &str = "CREATE USER locked@'127.0.0.1' IDENTIFIED BY 'an-account-of-the-tests';\n\
                      GRANT ALL ON `tithe%`.* TO locked@'127.0.0.1';\n\
                      CREATE USER open@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO open@'127.0.0.1';\n";

#[test]
fn mariadb_proves_all_that_its_file_asks_for() {
    let Some(server) = OtherServer::mariadb_with(false, AUDITS, &[ACCOUNTS, LOCKED].concat()) else { return };
    let places = [("db.example:3306", server.place("127.0.0.1"))];
    let places = places.each_ref().map(|(from, to)| (*from, to.as_str()));
    let (status, told) = verified(&brought_along("mariadb", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("in the log: CONNECT 4, DELETE 100, INSERT 100, SELECT 100, UPDATE 100"), "{told}");
    assert!(told.contains("TLS is on, not enforced by this server"), "{told}");
    passwords_and_tls_of(&server, "mariadb");
}

/// Further checks of a MariaDB or a MySQL that has [`LOCKED`] as well as `careful` or `plain`: a password, an expired
/// one, TLS with another authority, and TLS with a server that has none.
fn passwords_and_tls_of(server: &OtherServer, database: &str) {
    let url = |account: &str| format!("{database}://{account}@{}", server.place("127.0.0.1"));
    // An account without a password refuses clients that give one.
    let (open, closed) = (url("open"), url(&format!("locked:{PASSWORD}")));
    password_proven(database, "password", &open, &closed, (5, "without a password: served"));
    // An account uses its own plugin, whatever the arm asks for.
    let (other, words) = match database {
        "mysql" => ("mysql_native_password", "known by caching_sha2_password, the arm asks for mysql_native_password"),
        _ => ("ed25519", "known by mysql_native_password, the arm asks for client_ed25519"),
    };
    let protection = format!("password\", plugin = \"{other}");
    let arms = [("plain", open.as_str(), ""), ("password", closed.as_str(), protection.as_str())];
    let (status, told) = verified(&experiment(database, &arms));
    assert_eq!(status, 5, "{database}: {told}");
    assert!(told.contains(words), "{database}: {told}");
    server.tell_mariadb("ALTER USER locked@'127.0.0.1' PASSWORD EXPIRE");
    let expired = |code: &str| {
        let (status, told) =
            verified(&experiment(database, &[("plain", &open, ""), ("password", &closed, "password")]));
        let words = "the password of the account has expired: an administrator runs `ALTER USER … IDENTIFIED BY '…'`";
        assert_eq!(status, 4, "{database}: {told}");
        assert!(told.contains(code) && told.contains(words), "{database}: {told}");
    };
    if database == "mariadb" {
        // By default it lets them in, but accepts only a new password.
        expired("1820 (");
        server.tell_mariadb("SET GLOBAL disconnect_on_expired_password = ON");
    }
    expired("1862 (");
    let authority = |file: &str| format!("{open}/?ssl-mode=verify_identity&ssl-ca={file}");
    tls_refused(database, &open, &authority(OTHER_AUTHORITY), OF_ANOTHER);
    let Some(plain) = OtherServer::without_tls(database == "mysql") else { return };
    let open = format!("{database}://tithe@{}", plain.place("127.0.0.1"));
    let tls = format!("{open}/?ssl-mode=verify_identity&ssl-ca={}", server.authority());
    tls_refused(database, &open, &tls, NO_TLS);
}

#[test]
fn a_mariadb_that_does_not_do_what_the_arm_says_is_caught() {
    // The account that must be audited is excluded, except for its logins, which are always logged. The log goes to a
    // place where its records cannot be distinguished from others.
    let excluded = AUDITS.replace("incl_users", "excl_users");
    let syslog = AUDITS.replace("server_audit_file_path = FOLDER/audit.log\n", "server_audit_output_type = syslog\n");
    for (settings, expected, words) in
        [(&excluded, 5, "UPDATE 100; in the log: CONNECT 4\n"), (&syslog, 7, "goes to syslog")]
    {
        let Some(server) = OtherServer::mariadb_with(false, settings, ACCOUNTS) else { return };
        let url = |account: &str| format!("mariadb://{account}@{}", server.place("127.0.0.1"));
        let arms = [("plain", url("plain"), ""), ("audit", url("audited"), "server-audit")];
        let arms = arms.each_ref().map(|(name, url, protection)| (*name, url.as_str(), *protection));
        let (status, told) = verified(&experiment("mariadb", &arms));
        assert_eq!(status, expected, "{told}");
        assert!(told.contains(words), "{told}");
    }
}

/// Two accounts. One of them may read the table of the general log, and decide which of its statements are logged
/// there.
const READERS: &str = "CREATE USER careful@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO careful@'127.0.0.1';\n\
                       CREATE USER reader@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO reader@'127.0.0.1';\n\
                       GRANT SELECT ON mysql.general_log TO reader@'127.0.0.1';\n";

const COUNTED: &str = "in the log: DELETE 100, INSERT 100, SELECT 100, UPDATE 100";

#[test]
fn mysql_proves_all_that_its_file_asks_for() {
    let right =
        "GRANT SESSION_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO reader@'127.0.0.1';\nSET GLOBAL sql_log_off = ON;\n";
    let right = format!("{READERS}{right}{LOCKED}");
    let settings = "general_log = ON\nlog_output = TABLE\n";
    let Some(server) = OtherServer::mariadb_with(true, settings, &right) else { return };
    let place = server.place("127.0.0.1");
    let places = [("careful@", "reader@"), ("db.example:3306", place.as_str())];
    let (status, told) = verified(&brought_along("mysql", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains(COUNTED), "{told}");
    passwords_and_tls_of(&server, "mysql");
}

/// The general log of a MariaDB or a MySQL is read as a table or as a file, on a server of its own, by an account that
/// may read it and by one that may not.
fn the_general_log_is_read(database: &str) {
    let mysql = database == "mysql";
    let Some(quiet) = OtherServer::mariadb_with(mysql, "", READERS) else { return };
    let plain = format!("{database}://careful@{}", quiet.place("127.0.0.1"));
    let check = |url: String| verified(&experiment(database, &[("plain", &plain, ""), ("log", &url, "general-log")]));
    let Some(server) = OtherServer::mariadb_with(mysql, "general_log = ON\n", READERS) else { return };
    let url = |account: &str| format!("{database}://{account}@{}", server.place("127.0.0.1"));
    for output in ["TABLE", "FILE"] {
        server.tell_mariadb(&format!("SET GLOBAL log_output = '{output}'"));
        let (status, told) = check(url("reader"));
        assert_eq!(status, 0, "{database}, {output}: {told}");
        assert!(told.contains(COUNTED), "{database}, {output}: {told}");
        if output == "TABLE" {
            let (status, told) = check(url("careful"));
            assert_eq!(status, 7, "{database}: {told}");
            assert!(told.contains("GRANT SELECT ON mysql.general_log TO 'careful'@'127.0.0.1'"), "{told}");
        }
    }
    // The server does not log any more.
    server.tell_mariadb("SET GLOBAL general_log = OFF");
    let (status, told) = check(url("reader"));
    assert_eq!(status, 5, "{database}: {told}");
}

#[test]
fn the_general_log_of_a_mariadb_is_read_as_a_table_or_as_a_file() {
    the_general_log_is_read("mariadb");
}

#[test]
fn the_general_log_of_a_mysql_is_read_as_a_table_or_as_a_file() {
    the_general_log_is_read("mysql");
}

/// The privileges of an account: Tithe's keys, and the commands that identify the server.
pub const CAREFUL: &str = "user careful on >an-account-of-the-tests ~tithe* resetchannels -@all +@read +@write +@connection \
                       -@dangerous +info\n";

#[test]
fn redis_proves_all_that_its_file_asks_for_and_accounts_on_a_twin() {
    let taken = free_port();
    let port = taken.number();
    let settings = format!("tls-port {port}\nCERTIFICATES\ntls-auth-clients no\ntls-protocols TLSv1.3\n{CAREFUL}");
    let Some(server) = OtherServer::redis_with(&settings) else { return };
    let (place, tls) = (server.place("127.0.0.1"), format!("127.0.0.1:{port}"));
    let places = [("db.example:6379", place.as_str()), ("db.example:6380", tls.as_str())];
    let (status, told) = verified(&brought_along("redis", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("`ACL SETUSER NAME +config|get`"), "who else is let in takes a right: {told}");
    // Either all clients need accounts or none: the other variant is a server that refuses clients without one.
    let Some(closed) = OtherServer::redis_of(CAREFUL) else { return };
    let open = format!("redis://{place}");
    let check = |place: &str| {
        let url = format!("redis://careful@{place}");
        verified(&experiment("redis", &[("plain", &open, ""), ("acl", &url, "acl")]))
    };
    let (status, told) = check(&closed.place("127.0.0.1"));
    assert_eq!(status, 0, "{told}");
    // The open server accepts clients without a password.
    let (status, told) = check(&place);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("the server lets clients in without the password"), "{told}");
    // One password for all clients, and no TLS.
    let Some(locked) = OtherServer::redis() else { return };
    let plain = locked.place("127.0.0.1");
    tls_refused("redis", &open, &format!("rediss://{tls}?ca={OTHER_AUTHORITY}"), OF_ANOTHER);
    tls_refused(
        "redis",
        &open,
        &format!("rediss://{plain}?ca={}", server.authority()),
        "does it speak TLS at this port (`tls-port`)?",
    );
    locked.tell_redis(&format!("CONFIG SET requirepass {PASSWORD}"));
    password_proven("redis", "requirepass", &open, &format!("redis://{plain}"), NOT_ASKED);
}

#[test]
fn rules_that_an_account_of_redis_lacks_are_named() {
    let Some(server) = OtherServer::redis_with(&CAREFUL.replace(" +info", "")) else { return };
    let plain = format!("redis://careful@{}", server.place("127.0.0.1"));
    let (status, told) = verified(&experiment("redis", &[("plain", &plain, ""), ("columns", &plain, "columns")]));
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("`ACL SETUSER careful +info`"), "{told}");
}

#[test]
fn cassandra_proves_all_that_its_file_asks_for_and_names_rights() {
    let role = |name: &str| format!("CREATE ROLE {name} WITH PASSWORD = '{PASSWORD}' AND LOGIN = true");
    let may_create = "GRANT CREATE ON ALL KEYSPACES TO";
    let statements = [
        role("nobody"),
        role("careful"),
        format!("{may_create} careful"),
        "GRANT SELECT ON TABLE system_views.clients TO careful".to_owned(),
        "GRANT SELECT ON TABLE system_views.settings TO careful".to_owned(),
        role("blind"),
        format!("{may_create} blind"),
        role("switching"),
        format!("{may_create} switching"),
    ];
    let Some(server) = OtherServer::cassandra_with(&statements) else { return };
    let place = server.place("127.0.0.1");
    let check = |account: &str| {
        let account = format!("{account}@");
        let places = [("db.example:9042", place.as_str()), ("careful@", &account)];
        verified(&brought_along("cassandra", &places, &server.authority()))
    };
    let (status, told) = check("careful");
    assert_eq!(status, 0, "{told}");
    let (status, told) = check("nobody");
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("GRANT CREATE ON ALL KEYSPACES TO nobody"), "{told}");
    let (status, told) = check("blind");
    assert_eq!(status, 7, "{told}");
    assert!(told.contains("GRANT SELECT ON TABLE system_views.clients TO blind"), "{told}");
    let careful = format!("cassandra://careful@{place}");
    tls_refused("cassandra", &careful, &format!("{careful}?ca={OTHER_AUTHORITY}"), OF_ANOTHER);
    // A node takes longer to start than all checks of it.
    the_audit_log_of_a_cassandra_is_switched_by_nodetool_and_proven(&server);
    // A node that requires no password and has no TLS.
    let Some(open) = OtherServer::cassandra() else { return };
    let plain = format!("cassandra://{}", open.place("127.0.0.1"));
    tls_refused(
        "cassandra",
        &plain,
        &format!("{plain}?ca={}", server.authority()),
        "the server does not answer with TLS",
    );
    password_proven("cassandra", "password", &plain, &careful, NOT_ASKED);
}
