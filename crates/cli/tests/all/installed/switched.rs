//! A running server that a user's command switches: both arms in turn, proven or reported by the provider, and restored
//! in all cases.

use crate::support;

use std::fs;

use serde_json::Value;
use support::{
    Bench, begins_with, err, out,
    server::{OtherServer, Server},
    status, wait_until,
};

use super::attached::{CAREFUL, schemas};

const ACCOUNT: &str = "careful";

/// An experiment about both states of `server`; `protections` and `switch` are lines of the second arm.
fn experiment(server: &Server, protections: &str, switch: &str) -> String {
    let url = server.url_of(ACCOUNT, false);
    format!(
        r#"title = "What the provider's switch costs"
database = "postgres"
[data]
records = 300
[load]
clients = 1
[measure]
budget = "6 s"
seed = 3
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
url = "{url}"
[[arm]]
name = "audit"
url = "{url}"
{protections}
switch = {{ {switch}, ready = "SELECT current_setting('log_statement') = 'all'", side = "1 s", timeout = "1 min" }}
"#
    )
}

/// A provider: a script that sets `log_statement` for the whole server. It records its arguments, and whether it was
/// given the password of Tithe's account.
fn provider(bench: &Bench, server: &Server) {
    let (psql, url) = (server.program("psql"), server.url("none"));
    let script = format!(
        "#!/bin/sh\necho \"$1 ${{PGPASSWORD-hidden}}\" >> told\n\
         case $1 in on) value=all ;; off) value=none ;; *) echo no such state >&2; exit 3 ;; esac\n\
         {psql} -X -q -d '{url}' -c \"ALTER SYSTEM SET log_statement = '$value'\" -c 'SELECT pg_reload_conf()' > said\n"
    );
    bench.program("provider", &script);
}

const SWITCH: &str = r#"on = ["./provider", "on"], off = ["./provider", "off"]"#;

const LOGGED: &str = r#"protections = [{ use = "log-statement" }]"#;

fn logs_all(server: &Server) -> bool {
    server.psql("SHOW log_statement") == "all"
}

/// A server that logs every statement from the beginning.
fn found_on() -> Option<Server> {
    let server = Server::start()?;
    server.psql(CAREFUL);
    server.psql("ALTER SYSTEM SET log_statement = 'all'");
    server.psql("SELECT pg_reload_conf()");
    wait_until(|| logs_all(&server));
    Some(server)
}

/// The second arm in the only report.
fn reported(bench: &Bench) -> Value {
    let text = fs::read_to_string(bench.run_folder().join("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    report["tithe_report"]["cells"][0]["arms"][1].clone()
}

#[test]
fn a_switch_is_measured_in_pairs_of_sides_and_proven_on_each() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let bench = Bench::new("switched");
    provider(&bench, &server);
    bench.file("e.toml", &experiment(&server, LOGGED, SWITCH));
    let plan = bench.tithe(&["plan", "e.toml"]);
    assert!(out(&plan).contains("3 pairs of sides of 1 s each"), "{}{}", out(&plan), err(&plan));
    let output = bench.command(&["run", "e.toml"]).env("PGPASSWORD", "hunter2").output().expect("tithe starts");
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let arm = reported(&bench);
    assert_eq!(arm["proof"]["proof"], "proven", "{arm:#}");
    let time = &arm["estimates"][0];
    assert_eq!((time["name"].as_str(), time["count"].as_u64()), (Some("time"), Some(3)), "{time:#}");
    assert!(time["effect"]["low"].is_number() && time["effect"]["high"].is_number(), "{time:#}");
    // Each claim was checked on both sides of each pair, at both ends of each side.
    let findings = arm["findings"].as_array().expect("findings");
    let of = |check: &str| findings.iter().filter(|it| it["check"] == check && it["verdict"] == "holds").count();
    assert_eq!(of("told-by-provider"), 6, "{findings:#?}");
    assert!(findings.iter().any(|it| it["role"] == "claim" && it["epoch"] == 2), "{findings:#?}");
    // The command does not get Tithe's own credentials.
    let told = fs::read_to_string(bench.path("told")).expect("the commands ran");
    assert!(told.lines().all(|line| line.ends_with(" hidden")) && told.lines().count() >= 4, "{told}");
    assert!(!logs_all(&server) && schemas(&server) == "0");
}

#[test]
fn without_a_claim_the_verdict_is_the_providers_word() {
    // It is restored to its original state: on.
    let Some(server) = found_on() else { return };
    let bench = Bench::new("switched-told");
    provider(&bench, &server);
    bench.file("e.toml", &experiment(&server, "", SWITCH));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 7, "{}{}", out(&output), err(&output));
    assert_eq!(reported(&bench)["proof"]["proof"], "told");
    assert!(out(&output).contains("REPORTED BY THE PROVIDER"), "{}", out(&output));
    assert!(logs_all(&server) && schemas(&server) == "0");
    let verified = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&verified), 7, "{}{}", out(&verified), err(&verified));
    assert!(logs_all(&server) && schemas(&server) == "0");
}

#[test]
fn a_full_disk_keeps_no_server_from_being_left_as_it_was_found() {
    let Some(server) = found_on() else { return };
    let bench = Bench::new("switched-full");
    provider(&bench, &server);
    let script = fs::read_to_string(bench.path("provider")).expect("the script");
    // From here on no file of Tithe's may grow; those of the script may.
    let script = script.replace("#!/bin/sh", "#!/bin/sh\nulimit -S -f unlimited");
    bench.program("provider", &script.replace("on) value=all ;;", "on) value=all; prlimit --pid $PPID --fsize=1: ;;"));
    bench.file("e.toml", &experiment(&server, LOGGED, SWITCH));
    let mut command = bench.command(&["run", "e.toml", "--quiet"]);
    // A file that may not grow then gives an error, like a full disk, and no signal.
    begins_with(&mut command, libc::SIGXFSZ, libc::SIG_IGN);
    let output = command.output().expect("tithe starts");
    assert_ne!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(err(&output).contains("File too large"), "{}", err(&output));
    let told = fs::read_to_string(bench.path("told")).expect("the commands ran");
    let told: Vec<&str> = told.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(told, ["off", "on", "off", "on"], "{}", err(&output));
    assert!(logs_all(&server) && schemas(&server) == "0");
}

#[test]
fn a_switch_that_does_not_do_what_it_says_is_caught() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let bench = Bench::new("switched-wrong");
    provider(&bench, &server);
    let verified = |switch: &str| {
        bench.file("e.toml", &experiment(&server, LOGGED, switch).replace("1 min", "5 s"));
        let output = bench.tithe(&["verify", "e.toml"]);
        let told = out(&output) + &err(&output);
        assert_eq!(status(&output), 4, "{told}");
        assert!(!logs_all(&server) && schemas(&server) == "0", "{told}");
        told
    };
    let told = verified(r#"on = ["./provider", "onn"], off = ["./provider", "off"]"#);
    assert!(told.contains("`on` of `switch`: ./provider failed (exit status: 3); it said: no such state"), "{told}");
    let told = verified(r#"on = ["true"], off = ["./provider", "off"]"#);
    assert!(told.contains("the server did not report that it is on within 5 s") && told.contains("off"), "{told}");
    let told = verified(r#"on = ["echo", "no right to it"], off = ["./provider", "off"]"#);
    assert!(told.contains("command had succeeded (it printed: no right to it): it answers that it is off"), "{told}");
    let told = verified(r#"on = ["sleep", "60"], off = ["./provider", "off"]"#);
    assert!(told.contains("`on` of `switch`: sleep did not end within 5 s and was killed"), "{told}");
    let told = verified(r#"on = ["./no-such-program"], off = ["./provider", "off"]"#);
    assert!(told.contains("cannot start ./no-such-program"), "{told}");
    // A question that cannot be asked is detected before anything is switched.
    fs::write(bench.path("told"), "").expect("emptied");
    let asks = |question: &str| {
        let text =
            experiment(&server, LOGGED, SWITCH).replace("SELECT current_setting('log_statement') = 'all'", question);
        bench.file("e.toml", &text);
        let output = bench.tithe(&["verify", "e.toml"]);
        assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
        assert_eq!(fs::read_to_string(bench.path("told")).expect("a file"), "", "nothing was switched");
        out(&output) + &err(&output)
    };
    assert!(asks("SHOW log_statement").contains("its answer is \"none\", which is neither true nor false"));
    assert!(asks("SELECT nonsense").contains("`ready` of `switch`, `SELECT nonsense`: "));
    // Tithe's data are removed also if the server cannot be switched back.
    let stays = r#"on = ["./provider", "on"], off = ["false"]"#;
    bench.file("e.toml", &experiment(&server, LOGGED, stays).replace("1 min", "5 s"));
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert!(status(&output) == 4 && told.contains("switch it by hand: false"), "{told}");
    assert!(logs_all(&server) && schemas(&server) == "0", "{told}");
}

/// The password of the accounts that have one.
const PASSWORD: &str = "an-account-of-the-tests";

/// An experiment about both states of the server of `database` at `url`, whose second arm has `protection`. `ready` is
/// TOML text.
fn other_experiment(database: &str, url: &str, protection: &str, ready: &str) -> String {
    format!(
        "title = \"What the provider's switch costs\"\ndatabase = \"{database}\"\n[data]\nrecords = 200\n\
         [measure]\nbudget = \"6 s\"\nseed = 3\n[[workload]]\nycsb = \"a\"\n\
         [[arm]]\nname = \"plain\"\nurl = \"{url}\"\n\
         [[arm]]\nname = \"protected\"\nurl = \"{url}\"\nprotections = [{{ use = \"{protection}\" }}]\n\
         switch = {{ {SWITCH}, ready = {ready}, side = \"1 s\", timeout = \"1 min\" }}\n"
    )
}

/// A provider who runs `on` or `off`, lines of a shell, and `ready` if the experiment uses it.
fn other_provider(bench: &Bench, on: &str, off: &str, ready: &str) {
    let script = format!("#!/bin/sh\ncase $1 in\non) {on} ;;\noff) {off} ;;\nready) {ready} ;;\nesac\n");
    bench.program("provider", &script);
}

/// Runs `command` of Tithe on the experiment; the exit status and all output.
fn other_told(bench: &Bench, command: &str) -> (i32, String) {
    let output =
        bench.command(&[command, "e.toml"]).env("CASSANDRA_PASSWORD", PASSWORD).output().expect("tithe starts");
    (status(&output), out(&output) + &err(&output))
}

/// A run of the experiment ends proven, each claim at both ends of both sides of its three pairs; returns the findings
/// of the protected arm.
fn other_proven(bench: &Bench, claim: &str) -> Vec<Value> {
    let (status, told) = other_told(bench, "run");
    assert_eq!(status, 0, "{told}");
    let arm = reported(bench);
    assert_eq!(arm["proof"]["proof"], "proven", "{arm:#}");
    let findings = arm["findings"].as_array().expect("findings");
    let held = |check: &str| findings.iter().filter(|it| it["check"] == check && it["verdict"] == "holds").count();
    assert_eq!((held(claim), held("told-by-provider")), (6, 6), "{findings:#?}");
    findings.clone()
}

/// The settings that MariaDB's audit plugin and the account of the arms need from their administrator.
const AUDIT: &str = "plugin_load_add = server_audit\nserver_audit_logging = OFF\nserver_audit_events = CONNECT,QUERY\n\
                     server_audit_file_path = FOLDER/audit.log\n";

#[test]
fn the_audit_log_of_a_mariadb_is_switched_and_proven() {
    let account = "CREATE USER careful@'127.0.0.1';\nGRANT ALL ON `tithe%`.* TO careful@'127.0.0.1';\n";
    let Some(server) = OtherServer::mariadb_with(false, AUDIT, account) else { return };
    let bench = Bench::new("switched-mariadb");
    let place = server.place("127.0.0.1");
    let port = place.rsplit(':').next().expect("a port");
    let set = |state: &str| {
        format!(
            "mariadb --no-defaults -h127.0.0.1 -P{port} -utithe -e 'SET GLOBAL server_audit_logging = {state}' >said 2>&1"
        )
    };
    other_provider(&bench, &set("ON"), &set("OFF"), "exit 1");
    let url = format!("mariadb://careful@{place}");
    let ready = "\"SELECT @@GLOBAL.server_audit_logging\"";
    bench.file("e.toml", &other_experiment("mariadb", &url, "server-audit", ready));
    other_proven(&bench, "audit-complete");
    server.tell_mariadb("DO (SELECT 1 / (@@GLOBAL.server_audit_logging = 0))");
}

#[test]
fn the_append_only_file_of_a_redis_is_switched_and_proven() {
    let Some(server) = OtherServer::redis() else { return };
    let bench = Bench::new("switched-redis");
    let place = server.place("127.0.0.1");
    let port = place.rsplit(':').next().expect("a port");
    let set = |state: &str| format!("redis-cli -e -p {port} CONFIG SET appendonly {state} >said");
    other_provider(&bench, &set("yes"), &set("no"), "exit 1");
    bench.file("e.toml", &other_experiment("redis", &format!("redis://{place}"), "aof", "\"CONFIG GET appendonly\""));
    let findings = other_proven(&bench, "aof-written");
    let told =
        |side: &str, words: &str| findings.iter().any(|it| it[side].as_str().is_some_and(|it| it.contains(words)));
    assert!(told("protected", "the server reports appendonly yes, appendfsync everysec"), "{findings:#?}");
    assert!(told("control", "0 of "), "{findings:#?}");
}

/// What a Cassandra's `nodetool` switches for its account `switching`, which may only create keyspaces.
pub fn the_audit_log_of_a_cassandra_is_switched_by_nodetool_and_proven(server: &OtherServer) {
    let bench = Bench::new("switched-cassandra");
    // A node's settings continue to show the values of its file, so the `nodetool` script reports the state instead.
    // Each call starts a virtual machine.
    let tool = server.nodetool();
    let provider = |further: &str| {
        let on = format!("{tool} enableauditlog --logger FileAuditLogger {further} >said 2>&1 && echo true >state");
        let off = format!("{tool} disableauditlog >said 2>&1 && echo false >state");
        other_provider(&bench, &on, &off, "cat state");
    };
    bench.file("state", "false\n");
    let url = format!("cassandra://switching@{}", server.place("127.0.0.1"));
    let ready = "[\"./provider\", \"ready\"]";
    bench.file("e.toml", &other_experiment("cassandra", &url, "audit-file", ready));
    provider("");
    let findings = other_proven(&bench, "audit-complete");
    let told: Vec<&Value> = findings.iter().filter(|it| it["check"] == "told-by-provider").collect();
    assert!(
        told.iter().all(|it| it["claim"].as_str().is_some_and(|claim| claim.contains("its own `ready`"))),
        "{told:#?}"
    );
    // A filter leaves out writes.
    provider("--included-categories QUERY");
    let (status, told) = other_told(&bench, "verify");
    assert_eq!(status, 5, "{told}");
    assert!(told.contains("in the log: SELECT 100"), "{told}");
    // Nothing is switched, but the provider reports that it was.
    other_provider(&bench, "echo true >state", "echo false >state", "cat state");
    bench.file("state", "false\n");
    let (status, told) = other_told(&bench, "verify");
    assert_eq!(status, 7, "{told}");
    assert!(told.contains("the audit log is off, or goes elsewhere"), "{told}");
    // The answer of `ready` is neither true nor false.
    other_provider(&bench, "exit 1", "exit 1", "echo perhaps");
    let (status, told) = other_told(&bench, "verify");
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("`./provider ready`: ") && told.contains("its answer is \"perhaps\""), "{told}");
}
