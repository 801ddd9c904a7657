//! Servers on machines of their own, with an observer there that reads their processor time, their files and their
//! settings.
//!
//! Without `nats-server` these tests are skipped with a notice; with `CI` set they fail.

use std::{
    fs,
    net::Ipv4Addr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::agents::{Broker, run};
use crate::support::{
    Bench,
    delay::DelayRelay,
    err,
    hosts::Hosts,
    interrupted_after, out,
    process::Process,
    server::{Server, found},
    status, wait_until,
};

const NO_DELAY: Duration = Duration::ZERO;

/// The experiment with arms at `url`, plain and with encrypted columns, with the observer db1.
pub fn experiment(database: &str, url: &str, observed: &str) -> String {
    let arm = |name: &str, rest: &str| {
        format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\nobserver = {{ name = \"db1\"{observed} }}\n{rest}\n")
    };
    format!(
        "title = \"Observed\"\ndatabase = \"{database}\"\n[data]\nrecords = 500\n[load]\nclients = 2\nrate = 400\nagents = 1\n\
         [measure]\nbudget = \"30 s\"\nwarmup = \"0 s\"\nprecision = \"50%\"\naa_arm = false\n[[workload]]\nycsb = \"a\"\n{}{}",
        arm("plain", ""),
        arm("columns", "protections = [{ use = \"columns\" }]")
    )
}

fn facts(bench: &Bench, name: &str) -> Vec<String> {
    let cell = bench.kept_json("cells/0.json");
    let arms = cell["arms"].as_array().expect("arms").iter();
    arms.map(|arm| arm["facts"][name].as_str().unwrap_or_default().to_owned()).collect()
}

fn lines(bench: &Bench, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(bench.run_folder().join(file)).expect("it is kept");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The findings of checks called `check` for the protected arm, with their verdicts.
fn found_by(bench: &Bench, check: &str) -> Vec<String> {
    let of = |finding: &Value| {
        let is_it = finding["check"] == check && finding["arm"] == 1;
        is_it.then(|| format!("{}: {}", finding["verdict"].as_str().unwrap_or_default(), finding["observed"]))
    };
    lines(bench, "evidence.jsonl").iter().filter_map(of).collect()
}

#[test]
fn a_postgres_elsewhere_is_counted_and_its_files_are_searched() {
    let Some(server) = Server::start() else { return };
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("observed-postgres");
    let folder = server.folder().display().to_string();
    let observed = format!(
        ", data = [\"{folder}/data/base\"], journal = [\"{folder}/data/pg_wal\"], logs = [\"{folder}/data/log\"], \
         settings = [\"{folder}/data/postgresql.conf\", \"{folder}/none\"]"
    );
    bench.file("e.toml", &experiment("postgres", &server.address(), &observed));
    let (url, port) = (broker.url(), server.port().to_string());
    let read = format!("{folder}/data");
    let _agent = broker.agent(&bench, "rack1", 1);
    let _observer = Process::unheard(
        &mut bench.command(&["observe", "--join", &url, "--name", "db1", "--port", &port, "--read", &read]),
    );
    let output = interrupted_after(4, &bench, &mut run(&broker, &bench, "e.toml", &[]));
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    for words in facts(&bench, "server processes") {
        assert!(words.contains("on the machine of observer db1, counted by the process of each"), "{words}");
    }
    for words in facts(&bench, "settings files") {
        assert!(words.contains("postgresql.conf: ") && words.contains("SHA-256"), "{words}");
        assert!(words.contains("not seen: "), "{words}");
    }
    let disk = found_by(&bench, "disk-canary");
    assert!(!disk.is_empty() && disk.iter().all(|found| found.starts_with("holds")), "{disk:?}");
    let frames: Vec<Value> =
        lines(&bench, "frames.jsonl").into_iter().filter(|frame| frame["invalid"].is_null()).collect();
    assert!(!frames.is_empty());
    let observer = &frames[0]["agents"][1];
    assert_eq!((observer["name"].as_str(), observer["lanes"].as_u64()), (Some("db1"), Some(0)));
    let slots = fs::read_to_string(bench.run_folder().join("slots.csv")).expect("slots");
    let column = slots.lines().next().and_then(|names| names.split(',').position(|name| name == "server_cpu_ns"));
    let column = column.expect("a column");
    let used = slots.lines().skip(1).filter(|line| line.split(',').nth(column) != Some("0")).count();
    assert!(used * 2 > slots.lines().count(), "{used} slots have processor time of the server");
    let report = fs::read_to_string(bench.run_folder().join("report.md")).expect("the report");
    assert!(report.contains("servers seen by 1 observer (db1)") && !report.contains("SERVER_UNSEEN"), "{report}");
}

#[test]
fn a_redis_on_another_host_a_day_ahead_is_counted_as_a_whole() {
    let Some(install) = found(&tithe_databases::redis::Redis) else { return };
    let Some(hosts) = Hosts::with_clock_offsets_ns(&[86_400_000_000_000, 0]) else { return };
    let Some(broker) = Broker::start_in(&hosts[1]) else { return };
    // NATS without TLS stays on loopback, and the test's own relay connects it.
    let near = hosts[0].within(|| {
        DelayRelay::start(
            (Ipv4Addr::LOCALHOST, 0).into(),
            (hosts[1].address(), broker.port()).into(),
            NO_DELAY,
            NO_DELAY,
        )
    });
    let bench = Bench::new("observed-redis");
    let data = bench.path("data");
    fs::create_dir(&data).expect("a folder");
    let address = hosts[0].address();
    let mut server = Command::new(install.programs.join("redis-server"));
    server.args(["--port", "6379", "--bind", &address.to_string(), "--protected-mode", "no", "--save", ""]);
    server.args(["--appendonly", "yes", "--dir"]).arg(&data).stdout(Stdio::null());
    let _server = hosts[0].spawn(&mut server);
    let folder = data.display().to_string();
    let observed = format!(", data = [\"{folder}\"]");
    bench.file("e.toml", &experiment("redis", &format!("redis://{address}:6379"), &observed));
    let (url, relayed) = (broker.url(), format!("nats://{}", near.address()));
    let observe = ["observe", "--join", &relayed, "--name", "db1", "--port", "6379", "--read", &folder];
    let on = |host: usize, arguments: &[&str]| hosts[host].spawn(&mut bench.command(arguments));
    wait_until(|| hosts[1].within(|| std::net::TcpStream::connect((address, 6379)).is_ok()));
    let _observer = on(0, &observe);
    let agent = ["agent", "--join", &url, "--name", "rack1", "--lanes", "1", "--target", &address.to_string()];
    let _agent = on(1, &agent);
    let mut asked = run(&broker, &bench, "e.toml", &[]);
    hosts[1].enter(&mut asked);
    let output = interrupted_after(4, &bench, &mut asked);
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    for words in facts(&bench, "server processes") {
        assert!(words.contains("on the machine of observer db1, counted as a whole"), "{words}");
    }
    let frames = lines(&bench, "frames.jsonl");
    let frame = frames.iter().find(|frame| frame["invalid"].is_null()).expect("a frame that counts");
    let observer = &frame["agents"][1];
    let (offset_ns, bound_ns) = (observer["clock_offset_ns"].as_i64(), observer["clock_bound_ns"].as_i64());
    let (offset_ns, bound_ns) = (offset_ns.expect("an offset"), bound_ns.expect("a bound"));
    assert!((offset_ns - 86_400_000_000_000).abs() <= bound_ns, "{offset_ns} ± {bound_ns}");
}

#[test]
fn what_an_observer_may_not_see_is_said_with_its_name() {
    let Some(server) = Server::start() else { return };
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("observed-refused");
    bench.file("e.toml", &experiment("postgres", &server.address(), ", data = [\"/etc\"]"));
    let url = broker.url();
    let missing = bench.tithe(&["run", "e.toml", "--quiet", "--agents", &url, "--wait", "1"]);
    assert!(err(&missing).contains("observer db1 is not there: start `tithe observe --name db1`"), "{}", err(&missing));
    let _agent = broker.agent(&bench, "rack1", 1);
    // Another port: the observer may not read this server.
    let _observer = broker.observer(&bench, "db1", 1);
    wait_until(|| out(&bench.tithe(&["doctor", "--agents", &url])).contains("db1: tithe"));
    // The reason is reported before the first frame.
    let output = interrupted_after(1, &bench, &mut run(&broker, &bench, "e.toml", &[]));
    let words = facts(&bench, "server processes");
    assert!(words.iter().all(|words| words.contains("is not a server that it may read")), "{words:?} {}", err(&output));
    let plain = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&plain), 2);
    assert!(bench.tithe(&["observe", "--join", &url, "--port", "1", "--read", "data"]).status.code() == Some(2));
}

#[test]
fn an_observer_that_is_killed_spoils_a_frame_by_its_name_and_the_run_goes_on() {
    let Some(server) = Server::start() else { return };
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("observed-killed");
    bench.file("e.toml", &experiment("postgres", &server.address(), ""));
    let _agent = broker.agent(&bench, "rack1", 1);
    let observe = || broker.observer(&bench, "db1", server.port());
    let mut observing = observe();
    let mut run = Process::heard(&mut run(&broker, &bench, "e.toml", &[]));
    let is_told = || bench.kept_so_far("frames.jsonl").contains("observer db1 was lost");
    // Between two frames its end costs no frame: the next one waits for it.
    while !is_told() {
        assert!(!run.has_ended(), "the run has ended");
        let before = bench.frames_so_far();
        wait_until(|| bench.frames_so_far() > before + 1);
        // In the middle of the next frame, which takes a second at least.
        std::thread::sleep(Duration::from_millis(600));
        drop(observing);
        let lost = Instant::now();
        wait_until(|| is_told() || lost.elapsed() > Duration::from_secs(10));
        observing = observe();
        assert!(bench.frames_so_far() < 10, "the run is nearly over");
    }
    let output = run.output();
    assert_eq!(status(&output), 0, "{}{}", err(&output), bench.kept("events.jsonl"));
    let spoiled = lines(&bench, "frames.jsonl").into_iter().filter(|frame| !frame["invalid"].is_null());
    let reasons: Vec<String> = spoiled.map(|frame| frame["invalid"].to_string()).collect();
    let by_name = reasons.iter().filter(|why| why.contains("observer db1")).count();
    assert!((1..=2).contains(&by_name), "{reasons:?}");
    drop(observing);
}
