//! Runs on attached servers that were interrupted and resumed.

use serde_json::Value;

use super::attached::{arm, at_a_rate, schemas};
use crate::support::{Bench, err, interrupted_after, out, server::Server, status};

const PASSWORD: &str = "hunter2";

#[test]
fn an_interrupted_run_goes_on_with_the_password_from_the_environment() {
    let Some(server) = Server::start() else { return };
    server.psql(&format!(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'; \
         GRANT CREATE ON DATABASE postgres TO app"
    ));
    server.add_rules("host all app 127.0.0.1/32 scram-sha-256\n");
    let bench = Bench::new("attached-resumed");
    let written = |tls| server.url_of(&format!("app:{PASSWORD}"), tls);
    let arms = [arm("plain", &written(false), ""), arm("tls", &written(true), "protections = [{ use = \"tls\" }]")];
    bench.file("e.toml", &at_a_rate("postgres", &arms.concat()).replace("50%", "0.01%"));
    let output = interrupted_after(2, &bench, &mut bench.command(&["run", "e.toml", "--quiet"]));
    assert_eq!(status(&output), 130, "{}", err(&output));
    assert!(out(&output).contains("continue: tithe run --resume"), "{}", out(&output));
    assert_eq!(schemas(&server), "0");
    let before = bench.kept_so_far("frames.jsonl");

    // The password was in the URLs, and the records contain all of them except this.
    let plan = bench.kept_so_far("plan.json");
    assert!(!plan.contains(PASSWORD) && plan.contains("sslmode=verify-full"), "{plan}");
    let run = bench.run_folder().display().to_string();
    let resume = || bench.command(&["run", "--resume", &run, "--quiet"]);
    let refused = resume().env_remove("PGPASSWORD").output().expect("tithe starts");
    assert_eq!(status(&refused), 2, "{}", err(&refused));
    let words = "records do not hold the password that was in the URL of arm plain: give it by PGPASSWORD";
    assert!(err(&refused).contains(words), "{}", err(&refused));

    let output = resume().env("PGPASSWORD", PASSWORD).output().expect("tithe starts");
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let after = bench.kept_so_far("frames.jsonl");
    assert!(after.starts_with(&before) && after.len() > before.len(), "{after}");
    let number = |line: &str| serde_json::from_str::<Value>(line).expect("a frame")["frame"].as_u64();
    let numbers: Vec<_> = after.lines().map(number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).map(Some).collect::<Vec<_>>(), "no frame twice, none left out");
    assert_eq!(bench.kept_json("cells/0.json")["ending"], "budget");
    assert_eq!(schemas(&server), "0");
}
