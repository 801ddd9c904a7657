//! Several protections of one running server, with minimal privileges: all proven, and mistakes detected.

use crate::support;

use support::{
    Bench, err, out,
    server::{OtherServer, Server, free_port},
    status,
};

/// A short experiment about `database` with these arms.
pub fn experiment(database: &str, arms: &str) -> String {
    format!(
        r#"title = "Short"
database = "{database}"
[data]
records = 300
[load]
clients = 2
[measure]
budget = "24 s"
slot = "50 ms"
warmup = "0 s"
precision = "50%"
[[workload]]
ycsb = "a"
{arms}"#
    )
}

/// [`experiment`] in the shortest possible frames: one slot of each arm.
pub fn in_slices(database: &str, arms: &str) -> String {
    experiment(database, arms).replace("slot = \"50 ms\"", "design = \"slices\"\nslot = \"100 ms\"")
}

/// [`in_slices`] at a rate that leaves processor time to other tests.
pub fn at_a_rate(database: &str, arms: &str) -> String {
    in_slices(database, arms).replace("100 ms", "250 ms").replace("clients = 2", "clients = 2\nrate = 400")
}

pub fn arm(name: &str, url: &str, rest: &str) -> String {
    format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\n{rest}\n")
}

const TLS: &str = r#"protections = [{ use = "tls" }]"#;
const COLUMNS: &str = r#"protections = [{ use = "columns" }]"#;

/// Session auditing of reads and writes, with the parameters of statements.
const AUDIT: &str = r#"protections = [{ use = "pgaudit" }]
on = ["SET pgaudit.log = 'read, write'", "SET pgaudit.log_parameter = on", "SET pgaudit.log_catalog = off"]
off = ["RESET pgaudit.log", "RESET pgaudit.log_parameter", "RESET pgaudit.log_catalog"]"#;

const STATEMENT_LOG: &str = r#"protections = [{ use = "log-statement" }]
on = ["SET log_statement = 'all'"]
off = ["RESET log_statement"]"#;

/// Everything that an account needs for all of it, except logging in.
pub const CAREFUL: &str = "CREATE ROLE careful LOGIN; GRANT CREATE ON DATABASE postgres TO careful; \
                       GRANT EXECUTE ON FUNCTION pg_current_logfile(text), pg_stat_file(text), \
                       pg_read_binary_file(text, bigint, bigint) TO careful";
const MAY_AUDIT: &str = "GRANT SET ON PARAMETER pgaudit.log, pgaudit.log_parameter, pgaudit.log_catalog TO careful";

pub fn verified(bench: &Bench, database: &str, arms: &str) -> (i32, String) {
    bench.file("e.toml", &experiment(database, arms));
    let output = bench.tithe(&["verify", "e.toml"]);
    (status(&output), out(&output) + &err(&output))
}

pub fn schemas(server: &Server) -> String {
    server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tithe%'")
}

/// Proof of each arm, from the only report.
fn proofs(bench: &Bench) -> Vec<String> {
    let report = bench.report();
    let arms = report["cells"][0]["arms"].as_array().expect("arms").iter();
    arms.map(|arm| arm["proof"]["proof"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The report on the processes of each arm's server.
fn server_processes(bench: &Bench) -> Vec<String> {
    let cell = bench.kept_json("cells/0.json");
    let arms = cell["arms"].as_array().expect("arms").iter();
    arms.map(|arm| arm["facts"]["server processes"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn tls_and_audit_on_one_postgres_by_an_account_with_few_rights() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    server.psql(MAY_AUDIT);
    let bench = Bench::new("attached-tls-audit");
    let (plain, tls) = (server.url_of("careful", false), server.url_of("careful", true));
    let arms = [arm("plain", &plain, ""), arm("tls", &tls, TLS), arm("audit", &plain, AUDIT)].concat();
    bench.file("e.toml", &at_a_rate("postgres", &arms));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert_eq!(proofs(&bench), ["baseline", "proven", "proven"]);
    let told = bench.whole_report();
    // It is on this machine, and this user may read it.
    assert!(!told.contains("SERVER_UNSEEN"), "{told}");
    let processes = server_processes(&bench);
    assert!(
        processes.iter().all(|words| words.ends_with("counted by the process of each connection")),
        "{processes:?}"
    );
    assert!(told.contains("TLS is on, not enforced by this server"), "{told}");
    assert!(told.contains("one for each arm, on one server"), "{told}");
    assert_eq!(schemas(&server), "0");
}

#[test]
fn rights_that_are_missing_are_named_as_statements() {
    let Some(server) = Server::start() else { return };
    server.psql("CREATE ROLE careful LOGIN");
    let bench = Bench::new("attached-rights");
    let plain = server.url_of("careful", false);
    let arms = [arm("plain", &plain, ""), arm("audit", &plain, AUDIT)].concat();
    let (status, told) = verified(&bench, "postgres", &arms);
    assert_eq!(status, 4, "{told}");
    // All of them together, before the first frame.
    let read = "GRANT EXECUTE ON FUNCTION pg_current_logfile(text), pg_stat_file(text), \
                pg_read_binary_file(text,bigint,bigint) TO careful";
    for statement in ["GRANT CREATE ON DATABASE postgres TO careful", "GRANT SET ON PARAMETER pgaudit.log", read] {
        assert!(told.contains(statement), "no {statement} in {told}");
    }
    assert!(!told.contains("invalid"), "{told}");
    server.psql("GRANT CREATE ON DATABASE postgres TO careful");
    server.psql(MAY_AUDIT);
    let (_, told) = verified(&bench, "postgres", &arms);
    assert!(told.contains(read) && !told.contains("GRANT SET"), "{told}");
    // The file is on this machine, and the account may ask for its path.
    server.psql("GRANT EXECUTE ON FUNCTION pg_current_logfile(text) TO careful; GRANT pg_monitor TO careful");
    let (status, told) = verified(&bench, "postgres", &arms);
    assert_eq!(status, 0, "{told}");
    assert_eq!(schemas(&server), "0");
}

/// Variants of the server above, each with one mistake, which the evidence must detect.
#[test]
fn a_server_that_does_not_do_what_the_arm_says_is_caught() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    server.psql(MAY_AUDIT);
    let (plain, tls) = (server.url_of("careful", false), server.url_of("careful", true));
    let bench = Bench::new("attached-caught");
    // The audit log is not switched on.
    let off = AUDIT.replace("'read, write'", "'none'");
    let (status, told) = verified(&bench, "postgres", &[arm("plain", &plain, ""), arm("audit", &plain, &off)].concat());
    assert_eq!(status, 5, "{told}");
    assert!(told.contains("in the log: none"), "{told}");
    // The log has the statements, but not their parameters.
    let bare = AUDIT.replace("log_parameter = on", "log_parameter = off");
    let (_, told) = verified(&bench, "postgres", &[arm("plain", &plain, ""), arm("audit", &plain, &bare)].concat());
    assert!(told.contains("with <not logged> in their place: DELETE 100, INSERT 100"), "{told}");
    // The server logs a part by itself, so that the arm would measure only the rest.
    server.psql("GRANT SET ON PARAMETER log_statement TO careful");
    server.psql("ALTER ROLE careful SET log_statement = 'mod'");
    let log = arm("log", &plain, STATEMENT_LOG);
    let (status, told) = verified(&bench, "postgres", &[arm("plain", &plain, ""), log].concat());
    assert_eq!(status, 7, "{told}");
    assert!(told.contains("the server logs without the protection, too: sent: "), "{told}");
    server.psql("ALTER ROLE careful RESET log_statement");
    // The server uses another version than the arm asks for.
    let old = TLS.replace("\"tls\"", "\"tls\", version = \"1.2\"");
    server.psql("ALTER SYSTEM SET ssl_min_protocol_version = 'TLSv1.3'");
    server.psql("SELECT pg_reload_conf()");
    let (status, told) = verified(&bench, "postgres", &[arm("plain", &plain, ""), arm("tls", &tls, &old)].concat());
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("arm tls: TLS: the server speaks none of the versions that are allowed here"), "{told}");
}

/// Object auditing: Tithe creates the role that it needs and removes it; one of an administrator's stays.
#[test]
fn tables_are_audited_by_a_role_that_tithe_creates_and_removes() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    server.psql(MAY_AUDIT);
    let bench = Bench::new("attached-objects");
    let url = server.url_of("careful", false);
    let verified = || {
        let output = bench.tithe(&["verify", &url, "--protect", "pgaudit:by=object", "--records", "300"]);
        (status(&output), out(&output) + &err(&output))
    };
    let roles = || server.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'tithe_auditor'");
    let (refused, told) = verified();
    assert_eq!(refused, 4, "{told}");
    for statement in ["CREATE ROLE tithe_auditor NOLOGIN", "GRANT SET ON PARAMETER pgaudit.role TO careful"] {
        assert!(told.contains(statement), "no {statement} in {told}");
    }
    server.psql("GRANT SET ON PARAMETER pgaudit.role TO careful");
    server.psql("ALTER ROLE careful CREATEROLE");
    let (proven, told) = verified();
    assert_eq!(proven, 0, "{told}");
    assert_eq!([schemas(&server), roles()], ["0", "0"]);
    // A killed run leaves its role, and the next one removes it.
    let left = "CREATE ROLE tithe_auditor NOLOGIN; COMMENT ON ROLE tithe_auditor IS 'made by tithe'";
    server.psql(&format!("SET ROLE careful; {left}"));
    let (proven, told) = verified();
    assert_eq!(proven, 0, "{told}");
    assert_eq!(roles(), "0");
    server.psql("CREATE ROLE tithe_auditor NOLOGIN");
    server.psql("ALTER ROLE careful NOCREATEROLE");
    let (proven, told) = verified();
    assert_eq!(proven, 0, "{told}");
    assert_eq!([schemas(&server), roles()], ["0", "1"]);
}

/// Encrypted columns and plain records use the same server of `database` at `url`; its processor time is `counted` in
/// this way.
fn columns_and_plain_records_stand_on_one(database: &str, url: &str, counted: &str) {
    let bench = Bench::new("attached-columns");
    // The same server by another spelling.
    let again = url.replace("127.0.0.1", "localhost");
    let arms = [arm("plain", url, ""), arm("columns", url, COLUMNS), arm("again", &again, COLUMNS)].concat();
    bench.file("e.toml", &at_a_rate(database, &arms));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{database}: {}{}", out(&output), err(&output));
    assert_eq!(proofs(&bench), ["baseline", "proven", "proven"], "{database}");
    let told = bench.whole_report();
    assert!(!told.contains("SERVER_UNSEEN"), "{database}: {told}");
    let processes = server_processes(&bench);
    assert!(processes.iter().all(|words| words.ends_with(counted)), "{database}: {processes:?}");
    assert!(told.contains("out of reach, not needed"), "{database}: {told}");
    assert!(told.contains("one for each arm, on one server"), "{database}: {told}");
}

#[test]
fn columns_and_plain_records_stand_on_one_postgres() {
    let Some(server) = Server::start() else { return };
    let counted = "counted by the process of each connection";
    columns_and_plain_records_stand_on_one("postgres", &server.url_of("tithe", false), counted);
}

#[test]
fn columns_and_plain_records_stand_on_one_redis() {
    let Some(server) = OtherServer::redis() else { return };
    let counted = "counted as a whole, with the requests of other clients";
    columns_and_plain_records_stand_on_one("redis", &format!("redis://{}", server.place("127.0.0.1")), counted);
}

#[test]
fn columns_and_plain_records_stand_on_one_mariadb() {
    let Some(server) = OtherServer::mariadb() else { return };
    let url = format!("mariadb://tithe@{}", server.place("127.0.0.1"));
    columns_and_plain_records_stand_on_one("mariadb", &url, "counted by the thread of each connection");
}

/// The costs of a connection are reported by part, and that all threads of the server are counted: clients of
/// `database` at `plain` and, by TLS, at `tls` share them.
fn connecting_is_said_by_part(database: &str, plain: &str, tls: &str) {
    let bench = Bench::new("attached-connecting");
    let text = at_a_rate(database, &[arm("plain", plain, ""), arm("tls", tls, TLS)].concat());
    bench.file("e.toml", &text.replace("[measure]", "reconnect_every = 10\n[measure]"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{database}: {}{}", out(&output), err(&output));
    assert_eq!(proofs(&bench), ["baseline", "proven"], "{database}");
    let told = bench.whole_report();
    let (plain, tls) = told.split_once("plain: TCP ").and_then(|(_, rest)| rest.split_once(" tls: TCP ")).expect(&told);
    assert!(plain.contains("; login ") && !plain.contains("; TLS "), "{database}: {told}");
    let parts = ["; TLS ", "; login ", ", its client "].iter().all(|part| tls.contains(part));
    let whose = "a connection of Tithe's own client by part; the client of an application takes another time";
    assert!(parts && told.contains(whose), "{database}: {told}");
    let processes = server_processes(&bench);
    assert!(processes.iter().all(|words| words.contains("counted as a whole")), "{database}: {processes:?}");
}

#[test]
fn connecting_to_a_redis_with_further_threads_is_said_by_part() {
    let port = free_port();
    let tls = format!("tls-port {}\nCERTIFICATES\ntls-auth-clients no\ntls-protocols TLSv1.3\n", port.number());
    let Some(server) = OtherServer::redis_with(&format!("io-threads 2\n{tls}")) else { return };
    let tls = format!("rediss://127.0.0.1:{}?ca={}", port.number(), server.authority());
    connecting_is_said_by_part("redis", &format!("redis://{}", server.place("127.0.0.1")), &tls);
}

#[test]
fn connecting_to_a_mariadb_with_a_pool_of_threads_is_said_by_part() {
    let Some(server) = OtherServer::mariadb_with(false, "thread_handling = pool-of-threads\n", "") else { return };
    let plain = format!("mariadb://tithe@{}", server.place("127.0.0.1"));
    let tls = format!("{plain}/?ssl-mode=verify_identity&ssl-ca={}", server.authority());
    connecting_is_said_by_part("mariadb", &plain, &tls);
}
