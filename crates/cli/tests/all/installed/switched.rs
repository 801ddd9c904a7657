//! A running server that somebody else's command switches: both arms in turn, proven or told by the provider, and left
//! as it was found whatever happens.

use crate::support;

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;
use support::{Bench, err, out, server::Server, status, wait_until};

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
clients = 2
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

/// A provider: a script that sets `log_statement` for the whole server, and writes down what it was told, and whether
/// it was given the password of Tithe's account.
fn provider(bench: &Bench, server: &Server) {
    let (psql, url) = (server.program("psql"), server.url("none"));
    let script = format!(
        "#!/bin/sh\necho \"$1 ${{PGPASSWORD-hidden}}\" >> told\n\
         case $1 in on) value=all ;; off) value=none ;; *) echo no such state >&2; exit 3 ;; esac\n\
         {psql} -X -q -d '{url}' -c \"ALTER SYSTEM SET log_statement = '$value'\" -c 'SELECT pg_reload_conf()' > said\n"
    );
    let path = bench.file("provider", &script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

const SWITCH: &str = r#"on = ["./provider", "on"], off = ["./provider", "off"]"#;

const LOGGED: &str = r#"protections = [{ use = "log-statement" }]"#;

fn logs_all(server: &Server) -> bool {
    server.psql("SHOW log_statement") == "all"
}

/// The second arm of the only report.
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
    // Each claim was looked at on both sides of each pair, at both their ends.
    let findings = arm["findings"].as_array().expect("findings");
    let of = |check: &str| findings.iter().filter(|it| it["check"] == check && it["verdict"] == "holds").count();
    assert_eq!(of("told-by-provider"), 6, "{findings:#?}");
    assert!(findings.iter().any(|it| it["role"] == "claim" && it["epoch"] == 2), "{findings:#?}");
    // What Tithe connects with is not the command's.
    let told = fs::read_to_string(bench.path("told")).expect("the commands ran");
    assert!(told.lines().all(|line| line.ends_with(" hidden")) && told.lines().count() >= 4, "{told}");
    assert!(!logs_all(&server) && schemas(&server) == "0");
}

#[test]
fn without_a_claim_the_verdict_is_the_providers_word() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    // It is left as it was found: on.
    server.psql("ALTER SYSTEM SET log_statement = 'all'");
    server.psql("SELECT pg_reload_conf()");
    wait_until(|| logs_all(&server));
    let bench = Bench::new("switched-told");
    provider(&bench, &server);
    bench.file("e.toml", &experiment(&server, "", SWITCH));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 7, "{}{}", out(&output), err(&output));
    assert_eq!(reported(&bench)["proof"]["proof"], "told");
    assert!(out(&output).contains("TOLD BY THE PROVIDER"), "{}", out(&output));
    assert!(logs_all(&server) && schemas(&server) == "0");
    let verified = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&verified), 7, "{}{}", out(&verified), err(&verified));
    assert!(logs_all(&server) && schemas(&server) == "0");
}

#[test]
fn a_switch_that_does_not_do_what_it_says_is_caught() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let bench = Bench::new("switched-wrong");
    provider(&bench, &server);
    let verified = |switch: &str| {
        bench.file("e.toml", &experiment(&server, LOGGED, switch).replace("1 min", "2 s"));
        let output = bench.tithe(&["verify", "e.toml"]);
        let told = out(&output) + &err(&output);
        assert_eq!(status(&output), 4, "{told}");
        assert!(!logs_all(&server) && schemas(&server) == "0", "{told}");
        told
    };
    let told = verified(r#"on = ["./provider", "onn"], off = ["./provider", "off"]"#);
    assert!(told.contains("`on` of `switch`: ./provider failed (exit status: 3); it said: no such state"), "{told}");
    let told = verified(r#"on = ["true"], off = ["./provider", "off"]"#);
    assert!(told.contains("the server does not say that it is on within 2 s") && told.contains("off"), "{told}");
    let told = verified(r#"on = ["sleep", "60"], off = ["./provider", "off"]"#);
    assert!(told.contains("`on` of `switch`: sleep did not end within 2 s and was killed"), "{told}");
    let told = verified(r#"on = ["./no-such-program"], off = ["./provider", "off"]"#);
    assert!(told.contains("cannot start ./no-such-program"), "{told}");
    // What cannot be asked is known before anything is switched.
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
}
