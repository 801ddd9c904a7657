//! `tithe witness` on running servers: the effects of a command are seen, and deviations as well.

use crate::support;

use serde_json::Value;
use support::{
    Bench, err, out,
    server::{OtherServer, Server},
    status, words,
};

/// The privileges of an account that is witnessed with the audit log of its role.
const ROLE: &str = "CREATE ROLE careful LOGIN; GRANT CREATE ON DATABASE postgres TO careful; \
                    GRANT EXECUTE ON FUNCTION pg_current_logfile(text), pg_stat_file(text), \
                    pg_read_binary_file(text, bigint, bigint) TO careful; \
                    CREATE TABLE public.shop (a int); GRANT SELECT ON public.shop TO careful; \
                    ALTER ROLE careful SET pgaudit.log_parameter = on; ALTER ROLE careful SET pgaudit.log_catalog = off";

const AUDITED: &str = "ALTER ROLE careful SET pgaudit.log = 'read, write'";

/// Runs `tithe witness` with these arguments and returns its status and all output, on one line.
fn witnessed(arguments: &[&str]) -> (i32, String) {
    let output = Bench::new("witness").tithe(&[&["witness"], arguments].concat());
    (status(&output), words(&(out(&output) + &err(&output))))
}

#[test]
fn a_command_is_seen_in_the_list_on_the_wire_and_in_the_log() {
    let Some(server) = Server::start() else { return };
    server.psql(ROLE);
    server.psql(AUDITED);
    let (url, psql) = (server.url_of("careful", true), server.program("psql"));
    let asked = [url.as_str(), "--protect", "tls", "--protect", "pgaudit", "--format", "json", "--"];
    let command = [psql.as_str(), "{url}", "-X", "-q", "-c", "SELECT a FROM shop", "-c", "SELECT pg_sleep(1)"];
    let output = Bench::new("witness").tithe(&[&["witness"], &asked[..], &command].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!((&document["exit_status"], &document["command"]["status"]), (&Value::from(0), &Value::from(0)));
    let evidence = document["servers"][0]["evidence"].as_array().expect("evidence");
    let seen = |when: &str, check: &str| {
        let found = evidence.iter().find(|one| one["when"] == when && one["check"] == check);
        let found = found.unwrap_or_else(|| panic!("{check}, {when}: {document:#}"));
        assert_eq!([&found["verdict"], &found["role"]], [&Value::from("holds"), &Value::from("claim")], "{found:#}");
        found["seen"].as_str().unwrap_or_default().to_owned()
    };
    for when in ["before", "after"] {
        seen(when, "tls-spoken");
        seen(when, "wire-canary");
        seen(when, "audit-complete");
    }
    assert!(seen("while", "clients").starts_with("from the relay: 1 as `careful`: TLSv1.3"), "{document:#}");
    assert!(seen("while", "wire").starts_with("TLS on 1 of 1 connections"), "{document:#}");
    assert!(seen("while", "audit-complete").starts_with("in the log meanwhile: SELECT "), "{document:#}");
    assert!(seen("after", "enforced").contains("transport encryption"), "{document:#}");
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tithe%'"), "0");
}

/// Log files between the first and the last are not counted, and are reported as missing.
#[test]
fn a_log_that_is_rotated_twice_meanwhile_is_counted_as_far_as_it_is_there() {
    let Some(server) = Server::start() else { return };
    server.psql(ROLE);
    server.psql(AUDITED);
    server.psql("ALTER SYSTEM SET log_filename = 'log-%H%M%S'");
    server.psql("SELECT pg_reload_conf()");
    let bench = Bench::new("witness-rotated");
    let (psql, owner) = (server.program("psql"), server.url("none"));
    let script = format!(
        "set -e\nlog() {{ {psql} -XqAt -d '{owner}' -c 'SELECT pg_current_logfile()'; }}\n\
         rotate() {{ before=$(log); while [ \"$(log)\" = \"$before\" ]; do\n\
         {psql} -XqAt -d '{owner}' -c 'SELECT pg_rotate_logfile()' > rotated; sleep 0.2; done; }}\n\
         for round in 1 2; do {psql} \"$1\" -Xq -c 'SELECT a FROM shop'; rotate; done\n"
    );
    bench.file("work.sh", &script);
    // Through the server, and from the file itself.
    for right in ["SELECT 1", "GRANT pg_monitor TO careful"] {
        server.psql(right);
        let url = server.url_of("careful", false);
        let output = bench.tithe(&["witness", &url, "--protect", "pgaudit", "--", "sh", "work.sh", "{url}"]);
        let told = words(&out(&output));
        assert_eq!(status(&output), 0, "{told}{}", err(&output));
        assert!(told.contains("seen: in the log meanwhile, at least: SELECT "), "{told}");
        assert!(told.contains("; the log was rotated or cut short while it was read"), "{told}");
    }
}

#[test]
fn what_a_command_does_in_the_clear_is_caught() {
    let Some(server) = Server::start() else { return };
    server.psql(ROLE);
    let (url, psql) = (server.url_of("careful", true), server.program("psql"));
    // Without TLS, through the relay and past it.
    for place in ["host={host} port={port}".to_owned(), place_of(&server)] {
        let options = format!("{place} user=careful dbname=postgres sslmode=disable");
        let command = [psql.as_str(), &options, "-X", "-q", "-c", "SELECT pg_sleep(2)"];
        let (status, told) = witnessed(&[&[url.as_str(), "--protect", "tls", "--"], &command[..]].concat());
        assert_eq!(status, 5, "{told}");
        assert!(told.contains("1 as `careful`: plaintext"), "{told}");
        assert!(told.contains("some claim does not hold"), "{told}");
    }
}

/// `host=… port=…` of the server itself.
fn place_of(server: &Server) -> String {
    let address = server.address();
    let place = address.split(['@', '/']).nth(3).expect("a place");
    let (host, port) = place.split_once(':').expect("a port");
    format!("host={host} port={port}")
}

#[test]
fn what_is_off_before_keeps_the_command_from_being_started() {
    let Some(server) = Server::start() else { return };
    server.psql(ROLE);
    let url = server.url_of("careful", false);
    let bench = Bench::new("witness-off");
    let output = bench.tithe(&["witness", &url, "--protect", "pgaudit", "--", "touch", "started"]);
    assert_eq!(status(&output), 5, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("the command was not started, as a claim does not hold"), "{}", out(&output));
    assert!(!bench.path("started").exists());
}

#[test]
fn how_the_command_ends_is_told_by_a_status_of_its_own() {
    let Some(server) = OtherServer::redis() else { return };
    let url = format!("redis://{}", server.place("127.0.0.1"));
    let (status, told) = witnessed(&[&url, "--", "sh", "-c", "exit 9"]);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("the command ended (exit status: 9)"), "{told}");
    let (status, told) = witnessed(&[&url, "--", "/nowhere/at-all"]);
    assert_eq!(status, 3, "{told}");
    // Another protocol: Tithe gives up soon, and the command is not started.
    let (status, told) = witnessed(&[&url.replace("redis://", "postgres://me@"), "--", "true"]);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("the command was not started"), "{told}");
}

/// The command is Tithe itself: a client of every product, which stays connected for a while.
#[test]
fn every_product_lists_the_clients_of_a_command() {
    const TITHE: &str = env!("CARGO_BIN_EXE_tithe");
    let schema = "performance_schema = ON\n";
    let servers = [
        ("redis://", OtherServer::redis(), "as `default`: plaintext"),
        ("mariadb://tithe@", OtherServer::mariadb_with(false, schema, ""), "as `tithe`: plaintext"),
        ("mysql://tithe@", OtherServer::mariadb_with(true, schema, ""), "as `tithe`: plaintext"),
    ];
    for (scheme, server, words) in servers {
        let Some(server) = server else { continue };
        let url = format!("{scheme}{}", server.place("127.0.0.1"));
        let (status, told) = witnessed(&[&url, "--", TITHE, "witness", "{url}", "--", "sleep", "2"]);
        assert_eq!(status, 0, "{scheme}: {told}");
        assert!(told.contains(words) && told.contains("from the relay: "), "{scheme}: {told}");
        assert!(told.contains("TLS on 0 of "), "{scheme}: {told}");
    }
}
