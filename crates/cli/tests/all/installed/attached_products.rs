//! Servers that somebody else has set up, of every product, by accounts with no more rights than they need: what
//! `experiments/attached` asks of them is proven, their misconfigured twins are caught, and rights that are missing are
//! named.

use crate::support;

use std::path::Path;

use support::{
    Bench, err, out,
    server::{OtherServer, Server},
    status,
};

/// Asked for by Redis and Cassandra.
const PASSWORD: &str = "an-account-of-the-tests";

/// Verifies the experiment in `text`; the exit status and all that was said. A frame in which a busy machine had no
/// time for an operation says nothing of the claims: then the status is the one that they deserve.
fn verified(text: &str) -> (i32, String) {
    let bench = Bench::new("attached-products");
    bench.file("e.toml", text);
    let mut command = bench.command(&["verify", "e.toml"]);
    let passwords = ["REDISCLI_AUTH", "CASSANDRA_PASSWORD"].map(|variable| (variable, PASSWORD));
    let output = command.envs(passwords).output().expect("tithe starts");
    let told = out(&output) + &err(&output);
    let is_frame = told.contains("invalid frame") && !told.contains("warning: ");
    match status(&output) {
        4 if is_frame => (if told.contains("cannot be told") { 7 } else { 0 }, told),
        status => (status, told),
    }
}

/// The file of `experiments/attached` about `database`, with these places in place of its own.
fn brought_along(database: &str, places: &[(&str, &str)], authority: &str) -> String {
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
}

/// A MariaDB that audits one account and not the other.
const AUDITS: &str = "plugin_load_add = server_audit\nserver_audit_logging = ON\nserver_audit_incl_users = audited\n\
                      server_audit_events = CONNECT,QUERY\nserver_audit_file_path = FOLDER/audit.log\n";

const ACCOUNTS: &str = "CREATE USER plain@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO plain@'127.0.0.1';\n\
                        CREATE USER audited@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO audited@'127.0.0.1';\n";

#[test]
fn mariadb_proves_all_that_its_file_asks_for() {
    let Some(server) = OtherServer::mariadb_with(false, AUDITS, ACCOUNTS) else { return };
    let places = [("db.example:3306", server.place("127.0.0.1"))];
    let places = places.each_ref().map(|(from, to)| (*from, to.as_str()));
    let (status, told) = verified(&brought_along("mariadb", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("in the log: CONNECT 4, DELETE 100, INSERT 100, SELECT 100, UPDATE 100"), "{told}");
    assert!(told.contains("TLS is on, not enforced by this server"), "{told}");
}

#[test]
fn a_mariadb_that_does_not_do_what_the_arm_says_is_caught() {
    // The account that is to be audited is left out, but for its logins, which are always logged; the log goes where
    // nobody can tell its records from others'.
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

/// Two accounts, one of which may read the table of the general log and decide what of its own goes there.
const READERS: &str = "CREATE USER careful@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO careful@'127.0.0.1';\n\
                       CREATE USER reader@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO reader@'127.0.0.1';\n\
                       GRANT SELECT ON mysql.general_log TO reader@'127.0.0.1';\n";

const COUNTED: &str = "in the log: DELETE 100, INSERT 100, SELECT 100, UPDATE 100";

#[test]
fn mysql_proves_all_that_its_file_asks_for() {
    let right =
        "GRANT SESSION_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO reader@'127.0.0.1';\nSET GLOBAL sql_log_off = ON;\n";
    let right = format!("{READERS}{right}");
    let settings = "general_log = ON\nlog_output = TABLE\n";
    let Some(server) = OtherServer::mariadb_with(true, settings, &right) else { return };
    let place = server.place("127.0.0.1");
    let places = [("careful@", "reader@"), ("db.example:3306", place.as_str())];
    let (status, told) = verified(&brought_along("mysql", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains(COUNTED), "{told}");
}

/// On a server of its own, by an account that may and one that may not read it.
#[test]
fn the_general_log_is_read_as_a_table_or_as_a_file() {
    for (database, mysql) in [("mariadb", false), ("mysql", true)] {
        let Some(quiet) = OtherServer::mariadb_with(mysql, "", READERS) else { continue };
        let plain = format!("{database}://careful@{}", quiet.place("127.0.0.1"));
        let check =
            |url: String| verified(&experiment(database, &[("plain", &plain, ""), ("log", &url, "general-log")]));
        let Some(server) = OtherServer::mariadb_with(mysql, "general_log = ON\n", READERS) else { continue };
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
        // The server that does not log any more.
        server.tell_mariadb("SET GLOBAL general_log = OFF");
        let (status, told) = check(url("reader"));
        assert_eq!(status, 5, "{database}: {told}");
    }
}

/// A free port of this machine.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port()
}

/// What an account needs: Tithe's keys, and to ask the server what it is.
const CAREFUL: &str = "user careful on >an-account-of-the-tests ~tithe* resetchannels -@all +@read +@write +@connection \
                       -@dangerous +info\n";

#[test]
fn redis_proves_all_that_its_file_asks_for_and_accounts_on_a_twin() {
    let port = free_port();
    let settings = format!("tls-port {port}\nCERTIFICATES\ntls-auth-clients no\ntls-protocols TLSv1.3\n{CAREFUL}");
    let Some(server) = OtherServer::redis_with(&settings) else { return };
    let (place, tls) = (server.place("127.0.0.1"), format!("127.0.0.1:{port}"));
    let places = [("db.example:6379", place.as_str()), ("db.example:6380", tls.as_str())];
    let (status, told) = verified(&brought_along("redis", &places, &server.authority()));
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("`ACL SETUSER NAME +config|get`"), "who else is let in takes a right: {told}");
    // Accounts are for everybody or for nobody: their twin is a server that lets nobody in without.
    let Some(closed) = OtherServer::redis_of(CAREFUL) else { return };
    let open = format!("redis://{place}");
    let check = |place: &str| {
        let url = format!("redis://careful@{place}");
        verified(&experiment("redis", &[("plain", &open, ""), ("acl", &url, "acl")]))
    };
    let (status, told) = check(&closed.place("127.0.0.1"));
    assert_eq!(status, 0, "{told}");
    // The open server lets in who gives no password.
    let (status, told) = check(&place);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("the server lets clients in without the password"), "{told}");
}

#[test]
fn rules_that_an_account_of_redis_lacks_are_named() {
    let Some(server) = OtherServer::redis_with(&CAREFUL.replace(" +info", "")) else { return };
    let plain = format!("redis://careful@{}", server.place("127.0.0.1"));
    let (status, told) = verified(&experiment("redis", &[("plain", &plain, ""), ("columns", &plain, "columns")]));
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("`ACL SETUSER NAME +info`"), "{told}");
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
        role("blind"),
        format!("{may_create} blind"),
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
}
