//! The whole program on real PostgreSQL servers: launched, attached, killed, refused.
//!
//! Without PostgreSQL these tests are skipped with a notice; with `CI` set they fail.

use crate::support;

use std::{fs, path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::Value;
use support::{
    Bench, err, interrupted_after, out,
    process::Process,
    server::{Server, installed},
    status, wait_until,
};
use tithe_machine::proc::signal;

/// Ends with the fewest frames that allow an interval of three arms, on one start of their servers, after a fixed load
/// instead of a warm-up until servers are steady. The budget has room for frames that take longer because other tests
/// run, and for some that do not count.
const SHORT: &str = "budget = \"1 min\"\ndesign = \"slices\"\nslot = \"200 ms\"\nprecision = \"50%\"\nstarts = 1\n\
                     warmup = \"500 ms\"";

/// Load that does not end by itself, beginning directly after the start of the servers.
const ENDLESS: &str = "budget = \"1 h\"\nprecision = \"0.01%\"\nwarmup = \"0 s\"";

/// `experiment` at a rate that leaves processor time to other tests.
fn at_a_rate(experiment: &str) -> String {
    experiment.replace("clients = 3", "clients = 3\nrate = 400")
}

/// An experiment with these arms; `measure` says how long.
fn experiment(measure: &str, arms: &str) -> String {
    format!(
        r#"title = "Short"
database = "postgres"
[data]
records = 500
[load]
clients = 3
[measure]
{measure}
[[workload]]
ycsb = "a"
{arms}"#
    )
}

const PASSWORD: &str = "correct-horse-battery-staple";

/// Two servers, one of which has a password and keys.
const PLAIN_AND_TLS: &str = r#"
[[arm]]
name = "plain"
[[arm]]
name = "tls"
protections = [{ use = "tls" }, { use = "scram" }]
"#;

/// A third one, whose clients have keys.
const COLUMNS: &str = r#"
[[arm]]
name = "columns"
protections = [{ use = "columns", share = 0.5 }]
"#;

/// Every file below `folder`, with its bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.display().to_string(), fs::read(&path).expect("a file")));
        }
    }
    all
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Command lines of all processes that name `folder`.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let lines = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = lines.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains("postgres") && line.contains(&folder)).collect()
}

#[test]
fn protections_are_proven_and_priced() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pg-launched");
    bench.file("e.toml", &experiment(SHORT, &[PLAIN_AND_TLS, COLUMNS].concat()));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    for arm in &report["cells"][0]["arms"].as_array().expect("arms")[1..] {
        assert_eq!(arm["proof"]["proof"], "proven", "{arm}");
        let estimates = arm["estimates"].as_array().expect("estimates");
        let cost = estimates.iter().find(|estimate| estimate["name"] == "cpu").expect("CPU per operation");
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number in {cost}"));
        let [estimate, low, high] = ["estimate", "low", "high"].map(|name| number(&cost["effect"][name]));
        assert!(low < high && (low..=high).contains(&estimate), "{cost}");
        // It is computed from the two levels, which are centres of the same frames.
        let [plain, protected] = [0usize, 1].map(|level| number(&cost["levels"][level]));
        assert!(plain > 0.0 && ((protected / plain).ln() - estimate).abs() < 0.5, "{cost}");
    }
    let run = bench.run_folder();
    for (path, bytes) in files(&run) {
        assert!(!holds(&bytes, "PRIVATE KEY"), "a key in {path}");
    }
    let once = bench.tithe(&["report", &run.display().to_string()]);
    let again = bench.tithe(&["report", &run.display().to_string()]);
    assert_eq!(once.stdout, again.stdout);
    assert_eq!(processes_in(&run), Vec::<String>::new());
}

#[test]
fn a_killed_run_leaves_no_server_and_goes_on() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pg-killed");
    bench.file("e.toml", &at_a_rate(&experiment(ENDLESS, &[PLAIN_AND_TLS, COLUMNS].concat())));
    let mut child = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    while bench.frames_so_far() < 2 {
        assert!(!child.has_ended(), "the run ended before it could be killed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let run = bench.run_folder();
    child.kill();
    // The kernel ends the servers with their parent; that may take a moment.
    wait_until(|| processes_in(&run).is_empty());
    assert_eq!(processes_in(&run), Vec::<String>::new());

    let before = bench.frames_so_far();
    let mut resumed = bench.command(&["run", "--resume", &run.display().to_string(), "--quiet"]);
    let output = interrupted_after(before + 2, &bench, &mut resumed);
    assert_eq!(status(&output), 130, "{}", err(&output));
    assert_eq!(processes_in(&run), Vec::<String>::new());
}

#[test]
fn a_server_that_dies_ends_the_cell_and_keeps_what_was_measured() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pg-dies");
    bench.file("e.toml", &at_a_rate(&experiment(ENDLESS, PLAIN_AND_TLS)));
    let mut child = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    while bench.frames_so_far() < 3 {
        assert!(!child.has_ended(), "the run ended before its server was killed");
        std::thread::sleep(Duration::from_millis(20));
    }
    let run = bench.run_folder();
    kill_a_server_of(child.id());
    let output = child.output();
    assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
    let report = bench.report();
    let cell = &report["cells"][0];
    assert!(cell["frames"].as_u64() >= Some(2), "{cell}");
    assert!(cell["ending"].to_string().contains("server"), "{}", cell["ending"]);
    assert_eq!(processes_in(&run), Vec::<String>::new());
}

/// Kills the first server whose parent is `parent`.
fn kill_a_server_of(parent: u32) {
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, tail)) = stat.rsplit_once(')') else { continue };
        if head.contains("(postgres") && tail.split_whitespace().nth(1) == Some(&parent.to_string()) {
            let process: i32 = entry.file_name().to_string_lossy().parse().expect("a number");
            signal(process, Signal::KILL).expect("it runs");
            return;
        }
    }
    panic!("no server of {parent}");
}

#[test]
fn one_attached_server_is_switched_by_statements_and_left_as_it_was() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("pg-attached");
    let url = server.url(PASSWORD);
    let arms = format!(
        r#"[[arm]]
name = "plain"
url = "{url}"
[[arm]]
name = "audit"
url = "{url}"
protections = [{{ use = "pgaudit", log = "read" }}]
on = ["SET pgaudit.log = 'read'", "SET pgaudit.log_parameter = on", "SET pgaudit.log_catalog = off"]
off = ["RESET pgaudit.log"]
"#
    );
    bench.file("e.toml", &experiment(SHORT, &arms));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    assert_eq!(report["cells"][0]["mode"], "session, slices");
    assert_eq!(report["cells"][0]["arms"][1]["proof"]["proof"], "proven", "{report}");
    // The log of the server is shared by both arms.
    let frames = fs::read_to_string(bench.run_folder().join("frames.jsonl")).expect("the frames");
    assert!(frames.contains("\"wal_bytes\":"), "{frames}");
    assert!(frames.split("\"wal_bytes\":").skip(1).all(|rest| rest.starts_with("null")), "{frames}");
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'tithe'"), "0");
    for (path, bytes) in files(&bench.run_folder()) {
        assert!(!holds(&bytes, PASSWORD), "the password is in {path}");
    }
    assert!(!out(&output).contains(PASSWORD) && !err(&output).contains(PASSWORD));
}

#[test]
fn a_schema_of_somebody_else_is_refused_and_left_alone() {
    let Some(server) = Server::start() else { return };
    server.psql(
        "CREATE SCHEMA tithe; CREATE TABLE tithe.usertable (note text); INSERT INTO tithe.usertable VALUES ('mine')",
    );
    let bench = Bench::new("pg-foreign");
    let url = server.url(PASSWORD);
    let arm = |name: &str| format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    bench.file("e.toml", &experiment(SHORT, &(arm("plain") + &arm("again"))));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 4, "{}", err(&output));
    let told = format!("{}{}", out(&output), err(&output));
    assert!(told.contains("Tithe did not make it"), "{told}");
    assert_eq!(server.psql("SELECT note FROM tithe.usertable"), "mine");
}

#[test]
fn tls_that_is_asked_for_and_not_obtained_is_no_plaintext() {
    let Some(server) = Server::start() else { return };
    server.psql("ALTER SYSTEM SET ssl = off");
    server.psql("SELECT pg_reload_conf()");
    wait_until(|| server.psql("SHOW ssl") == "off");
    let bench = Bench::new("pg-no-tls");
    let url = server.url(PASSWORD);
    let with_tls = server.url_of("tithe", true);
    let arms = format!(
        "[[arm]]\nname = \"plain\"\nurl = \"{url}\"\n[[arm]]\nname = \"tls\"\nurl = \"{with_tls}\"\n\
         protections = [{{ use = \"tls\" }}]\n"
    );
    bench.file("e.toml", &experiment(SHORT, &arms));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
    let told = format!("{}{}", out(&output), err(&output));
    assert!(told.contains("TLS was asked for, and the server offers none"), "{told}");
    assert!(!told.contains(PASSWORD));
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'tithe'"), "0");
}

/// The log is read from any source: here a process of the server writes it.
#[test]
fn a_log_that_the_server_collects_proves_an_audit_as_well() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pg-collector");
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"audit\"\nprotections = [{ use = \"pgaudit\" }]\n";
    let text = experiment(SHORT, arms).replace("[data]", "[settings]\nlogging_collector = true\n[data]");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("every claim holds"), "{}", out(&output));
}
