//! Load machines over a real broker: the same operations from any machine, a protection proven, and refusals before
//! anything starts.
//!
//! Without `nats-server` these tests are skipped with a notice; with `CI` set they fail.

use std::{
    collections::BTreeSet,
    fs,
    net::Ipv4Addr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tithe_machine::sandbox::ports::Port;
use tithe_model::invalid::Invalid;

use crate::support::{
    Bench, FEW_OPERATIONS,
    delay::DelayRelay,
    err,
    hosts::{Host, Hosts},
    interrupted_after, out,
    process::Process,
    server::{found, free_port, installed},
    status, wait_until,
};

/// A broker on this machine, without access control.
pub struct Broker {
    port: Port,
    running: Process,
}

impl Broker {
    pub fn start() -> Option<Self> {
        let program = Self::program()?;
        let port = free_port();
        let running = Self::run(program, port.number());
        Some(Self { port, running })
    }

    /// The program; if it is missing, the test is skipped with a notice, or fails if `CI` is set.
    #[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
    fn program() -> Option<&'static str> {
        let there = ["/usr/sbin/nats-server", "/usr/bin/nats-server"].into_iter().find(|path| Path::new(path).exists());
        if there.is_none() {
            assert!(std::env::var_os("CI").is_none(), "nats-server is not installed");
            eprintln!("SKIPPED: nats-server is not installed (Debian, Ubuntu: apt-get install nats-server)");
        }
        there
    }

    /// A broker in `host`, for its whole network.
    pub fn start_in(host: &Host) -> Option<Self> {
        let program = Self::program()?;
        // The first port that is drawn in a network of its own.
        let port = host.within(free_port);
        let number = port.number();
        let mut command = Command::new(program);
        host.enter(command.args(["-a", "0.0.0.0", "-p", &number.to_string()]));
        let running = Process::unheard(&mut command);
        host.within(|| wait_until(|| std::net::TcpStream::connect(("127.0.0.1", number)).is_ok()));
        Some(Self { port, running })
    }

    /// Kills it and starts it again in the same place.
    pub fn restart(&mut self) {
        self.running.kill();
        if let Some(program) = Self::program() {
            self.running = Self::run(program, self.port());
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    fn run(program: &str, port: u16) -> Process {
        let running = Process::unheard(Command::new(program).args(["-a", "127.0.0.1", "-p", &port.to_string()]));
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        running
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
    }

    pub fn agent(&self, bench: &Bench, name: &str, lanes: u32) -> Process {
        let (url, lanes) = (self.url(), lanes.to_string());
        let arguments = ["agent", "--join", &url, "--name", name, "--lanes", &lanes, "--target", "127.0.0.1"];
        Process::unheard(&mut bench.command(&arguments))
    }

    /// The observer of the server on `port` of this machine.
    pub fn observer(&self, bench: &Bench, name: &str, port: u16) -> Process {
        let (url, port) = (self.url(), port.to_string());
        Process::unheard(&mut bench.command(&["observe", "--join", &url, "--name", name, "--port", &port]))
    }
}

fn experiment(budget: &str, clients: u32, workload: &str) -> String {
    format!(
        "title = \"Agents\"\ndatabase = \"simulated\"\n[data]\nrecords = 1000\n[load]\nclients = {clients}\nagents = 2\n\
         [measure]\nbudget = \"{budget}\"\nprecision = \"0.01%\"\naa_arm = false\n[[workload]]\nycsb = \"{workload}\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{{ use = \"seal\" }}]\n"
    )
}

fn in_few_operations(experiment: &str) -> String {
    experiment.replace("[data]", &format!("[settings]\n{FEW_OPERATIONS}\n[data]"))
}

/// Rows of `slots.csv` by cell, frame, block, lane and arm, with their operations.
fn slots(bench: &Bench) -> Vec<(String, String)> {
    let text = fs::read_to_string(bench.run_folder().join("slots.csv")).expect("slots");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[..5].join(","), fields[5].to_owned())
    };
    text.lines().skip(1).map(row).collect()
}

/// Frames that were left out, with the reason.
fn invalid(bench: &Bench) -> Vec<Invalid> {
    let text = fs::read_to_string(bench.run_folder().join("frames.jsonl")).expect("frames");
    let frames = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    frames.filter_map(|frame| frame["invalid"].as_str().map(Invalid::read)).collect()
}

pub fn run<'a>(broker: &Broker, bench: &Bench, file: &'a str, more: &[&'a str]) -> Command {
    let url = broker.url();
    let mut arguments = vec!["run", file, "--quiet", "--agents", &url, "--wait", "60"];
    arguments.extend(more);
    bench.command(&arguments)
}

#[test]
fn one_agent_and_three_offer_the_same_operations() {
    let Some(broker) = Broker::start() else { return };
    let measured = |agents: &[u32]| {
        let bench = Bench::new("agents-same");
        bench.file("e.toml", &in_few_operations(&experiment("15 s", 3, "d")));
        let expected = agents.len().to_string();
        let _agents: Vec<Process> = agents
            .iter()
            .enumerate()
            .map(|(number, lanes)| broker.agent(&bench, &format!("a{number}"), *lanes))
            .collect();
        let output = run(&broker, &bench, "e.toml", &["--expect", &expected]).output().expect("tithe starts");
        assert_eq!(status(&output), 0, "{}", err(&output));
        let text = fs::read_to_string(bench.run_folder().join("report.md")).expect("the report");
        let listed = agents.len();
        assert!(text.contains(&format!("{listed} agent")), "{text}");
        (invalid(&bench), slots(&bench))
    };
    // On a busy machine an agent may answer too late for a frame.
    let counted = |agents: &[u32]| {
        let mut tries = std::iter::repeat_with(|| measured(agents)).take(4);
        tries.find(|(invalid, _)| invalid.is_empty()).expect("a run in which every frame counts").1
    };
    let (one, three) = (counted(&[3]), counted(&[1, 1, 1]));
    assert!(!one.is_empty());
    assert_eq!(one, three);
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("agents-refused");
    bench.file("e.toml", &experiment("60 s", 2, "c"));
    bench.file(
        "sqlite.toml",
        &experiment("60 s", 2, "c").replace("simulated", "sqlite").replace("seal", "page-encryption"),
    );
    let (_one, _other) = (broker.agent(&bench, "a0", 1), broker.agent(&bench, "a1", 1));
    let url = broker.url();
    let doctor = || out(&bench.tithe(&["doctor", "--agents", &url]));
    wait_until(|| {
        let seen = doctor();
        seen.contains("a0:") && seen.contains("a1:")
    });
    let seen = doctor();
    assert!(seen.contains("known within") && seen.contains("free"), "{seen}");
    let told = |arguments: &[&str]| {
        let output = bench.tithe(arguments);
        let words = err(&output).replace(&broker.port().to_string(), "PORT");
        format!("{} {}", status(&output), words.trim())
    };
    // On a busy machine, an agent that answers late is missing from a roll call.
    let told_of_both = |arguments: &[&str]| {
        let mut attempts = std::iter::repeat_with(|| told(arguments)).take(12);
        attempts.find(|told| told.contains("a0, a1")).unwrap_or_else(|| told(arguments))
    };
    let nowhere = free_port();
    let nobody = format!("nats://127.0.0.1:{}", nowhere.number());
    let all = [
        told(&["run", "e.toml", "--quiet"]),
        told_of_both(&["run", "e.toml", "--quiet", "--agents", &url, "--expect", "3", "--wait", "1"]),
        told_of_both(&["run", "e.toml", "--quiet", "--agents", &url, "--expect", "1", "--wait", "1"]),
        told(&["run", "sqlite.toml", "--quiet", "--agents", &url]),
        told(&["run", "e.toml", "--quiet", "--agents", "nats://192.0.2.1:4222"]),
        told(&["run", "e.toml", "--quiet", "--agents", &nobody]).replace(&nowhere.number().to_string(), "PORT"),
        told(&["agent", "--join", &url, "--target", "tls://db"]),
    ];
    assert!(!bench.path("tithe-runs").exists(), "nothing was started");
    expect_test::expect![[r#"
        2 tithe: the experiment needs 2 agents (`agents` in [load]): give the address of their broker, `--agents tls://broker:4222`; nothing was started
        1 tithe: refused: 3 agents are expected, and 2 are there and free: a0, a1; busy: none; nothing was started
        1 tithe: refused: 1 agents are expected, and 2 are there and free: a0, a1; busy: none; nothing was started
        2 tithe: SQLite runs inside its clients, so its load cannot come from other machines; nothing was started
        1 tithe: refused: nats://192.0.2.1:4222 leads to 192.0.2.1, off this machine, and everybody between could read it: give the broker a certificate and call it tls://192.0.2.1:4222; nothing was started
        1 tithe: connection: broker nats://127.0.0.1:PORT: nothing listens there: is nats-server running, and is this its port?; nothing was started
        2 error: invalid value 'tls://db' for '--target <HOST[:PORT]>': "tls://db" is not a target: a host, or host:port; an IPv6 address in brackets

        For more information, try '--help'."#]].assert_eq(&all.join("\n"));
}

#[test]
fn postgres_is_measured_by_two_agents_with_tls_proven() {
    if installed().is_none() {
        return;
    }
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("agents-postgres");
    // Servers are restarted once, and agents find them again.
    bench.file(
        "e.toml",
        "title = \"TLS from two load machines\"\ndatabase = \"postgres\"\n[data]\nrecords = 1000\n[load]\nclients = 2\nrate = 400\nagents = 2\n\
         [measure]\nbudget = \"30 s\"\nprecision = \"50%\"\nwarmup = \"500 ms\"\naa_arm = false\nstarts = 2\n\
         [[workload]]\nycsb = \"d\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"tls\"\nprotections = [{ use = \"tls\" }, { use = \"scram\" }]\n",
    );
    let (_one, _other) = (broker.agent(&bench, "rack1", 1), broker.agent(&bench, "rack2", 1));
    let output = run(&broker, &bench, "e.toml", &[]).output().expect("tithe starts");
    assert_eq!(status(&output), 0, "{}\n{:?}\n{}", err(&output), invalid(&bench), bench.kept("events.jsonl"));
    let report = fs::read_to_string(bench.run_folder().join("report.md")).expect("the report");
    for wanted in ["rack1", "rack2", "known within", "Load machines"] {
        assert!(report.contains(wanted), "{wanted}: {report}");
    }
    assert!(invalid(&bench).iter().all(Invalid::is_of_a_busy_machine), "{:?}", invalid(&bench));
    let lanes: BTreeSet<String> =
        slots(&bench).iter().map(|(place, _)| place.split(',').nth(3).expect("a lane").to_owned()).collect();
    assert_eq!(lanes.len(), 2, "both offered load");
    let all = fs::read_dir(bench.run_folder()).expect("files").flatten();
    let kept = all.filter_map(|file| fs::read_to_string(file.path()).ok()).collect::<String>();
    assert!(!kept.contains("BEGIN PRIVATE KEY"), "no key is in a record");
}

#[test]
fn a_server_that_an_agent_cannot_reach_is_told_by_its_name_before_anything_starts() {
    let Some(install) = found(&tithe_databases::redis::Redis) else { return };
    let Some(hosts) = Hosts::with_clock_offsets_ns(&[0, 0]) else { return };
    let Some(broker) = Broker::start_in(&hosts[0]) else { return };
    let bench = Bench::new("agents-unreachable");
    let launched = redis("agents = 1", "");
    bench.file("launched.toml", &launched);
    let url = "url = \"redis://127.0.0.1:6379\"\n";
    bench.file("running.toml", &launched.replace("[[arm]]\n", &format!("[[arm]]\n{url}")).replace("aof", "columns"));
    let mut server = Command::new(install.programs.join("redis-server"));
    server.args(["--port", "6379", "--save", "", "--dir"]).arg(bench.path(".")).stdout(Stdio::null());
    let _server = hosts[0].spawn(&mut server);
    hosts[0].within(|| wait_until(|| std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, 6379)).is_ok()));
    let target = (hosts[0].address(), broker.port()).into();
    let near =
        hosts[1].within(|| DelayRelay::start((Ipv4Addr::LOCALHOST, 0).into(), target, Duration::ZERO, Duration::ZERO));
    let url = format!("nats://{}", near.address());
    let agent = |allowed: &str| {
        let arguments = ["agent", "--join", &url, "--name", "rack1", "--lanes", "1", "--target", allowed];
        hosts[1].spawn(bench.command(&arguments).stdout(Stdio::null()))
    };
    let told = |file: &str| {
        let output = hosts[0].output(&mut run(&broker, &bench, file, &[]));
        assert!(!bench.path("tithe-runs").exists(), "nothing was started: {}", err(&output));
        format!("{} {}", status(&output), err(&output).trim())
    };
    let other = agent("db.example.com");
    let not_allowed = [told("launched.toml"), told("running.toml")];
    drop(other);
    let _here = agent("127.0.0.1");
    // On the agent's own host nothing listens there.
    let not_there = told("running.toml");
    expect_test::expect![[r#"
        1 tithe: refused: agent rack1: it may not connect to 127.0.0.1; it was started with these targets: db.example.com (--target); nothing was started
        1 tithe: refused: agent rack1: it may not connect to 127.0.0.1:6379; it was started with these targets: db.example.com (--target); nothing was started
        1 tithe: refused: agent rack1: it cannot connect to 127.0.0.1:6379: Connection refused (os error 111); nothing was started"#]]
    .assert_eq(&format!("{}\n{not_there}", not_allowed.join("\n")));
}

/// An experiment on Redis with two arms; `load` is about its clients, `measure` about slots.
fn redis(load: &str, measure: &str) -> String {
    format!(
        "title = \"Way\"\ndatabase = \"redis\"\n[data]\nrecords = 100\n[load]\nclients = 1\n{load}\n[measure]\n\
         budget = \"30 s\"\nprecision = \"50%\"\naa_arm = false\nstarts = 1\n{measure}\n[[workload]]\nycsb = \"c\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"protected\"\nprotections = [{{ use = \"aof\" }}]\n"
    )
}

/// A longer way to an agent needs longer slots. If the slot is fixed, or the way is too long for any slot, the run is
/// refused and names the agent.
#[test]
fn slots_grow_with_the_way_to_an_agent() {
    if found(&tithe_databases::redis::Redis).is_none() {
        return;
    }
    let Some(broker) = Broker::start() else { return };
    let measured = |way: Duration, measure: &str| {
        let bench = Bench::new("agents-way");
        bench.file("e.toml", &redis("agents = 1", measure));
        let relay = DelayRelay::start(
            (Ipv4Addr::LOCALHOST, 0).into(),
            (Ipv4Addr::LOCALHOST, broker.port()).into(),
            way,
            Duration::ZERO,
        );
        let url = format!("nats://{}", relay.address());
        let arguments = ["agent", "--join", &url, "--name", "rack1", "--lanes", "1", "--target", "127.0.0.1"];
        let _agent = Process::unheard(&mut bench.command(&arguments));
        let output = interrupted_after(2, &bench, &mut run(&broker, &bench, "e.toml", &[]));
        (bench, output)
    };
    // Half of the round trip is 1.5 ms, and 80 times that is 120 ms.
    let (bench, output) = measured(Duration::from_millis(3), "");
    assert_eq!(status(&output), 130, "{}{}", err(&output), bench.kept("events.jsonl"));
    let frames = bench.kept_lines("frames.jsonl");
    let longest = frames.iter().filter_map(|frame| frame["slot_ns"].as_u64()).max().expect("frames");
    assert!(longest >= 120_000_000, "{longest} ns");
    let bounds = frames.iter().filter_map(|frame| frame["agents"][0]["clock_bound_ns"].as_u64());
    assert!(bounds.min().is_some_and(|bound_ns| bound_ns >= 1_500_000), "{frames:?}");
    for (way_ms, measure, words) in [
        (3, "slot = \"20 ms\"", "and the experiment has 20 ms: leave `slot` out"),
        (30, "", "it is too far away from the coordinator"),
    ] {
        let (bench, output) = measured(Duration::from_millis(way_ms), measure);
        assert_eq!(status(&output), 4, "{}", err(&output));
        let events = bench.kept("events.jsonl");
        assert!(events.contains("agent rack1: its clock is known within") && events.contains(words), "{events}");
    }
}

#[test]
fn a_baseline_is_calibrated_over_agents() {
    let Some(broker) = Broker::start() else { return };
    let bench = Bench::new("agents-calibrated");
    bench.file("e.toml", &in_few_operations(&experiment("30 s", 2, "c").replace("0.01%", "5%")));
    let _agents = ["a0", "a1"].map(|name| broker.agent(&bench, name, 1));
    let calibrated = bench.tithe(&["calibrate", "e.toml", "--quiet", "--agents", &broker.url(), "--wait", "60"]);
    assert_eq!(status(&calibrated), 0, "{}{}", out(&calibrated), err(&calibrated));
    assert!(out(&calibrated).contains("no difference"), "{}", out(&calibrated));
    let frames = bench.kept_lines("frames.jsonl");
    assert!(
        frames.iter().all(|frame| frame["agents"].as_array().is_some_and(|agents| agents.len() == 2)),
        "{frames:?}"
    );
}

/// For all clock offsets and asymmetric ways, each agent's offset is known within its bound.
#[test]
fn clocks_seconds_and_days_apart_are_known_within_their_bounds() {
    const SECOND_NS: i64 = 1_000_000_000;
    const DAY_NS: i64 = 86_400 * SECOND_NS;
    let apart_ns = [-DAY_NS, -SECOND_NS, SECOND_NS, DAY_NS];
    // No clock can be made negative, so the coordinator's is ahead of the machine's.
    let clocks_ns: Vec<i64> = [0].iter().chain(&apart_ns).map(|apart_ns| DAY_NS + apart_ns).collect();
    let Some(hosts) = Hosts::with_clock_offsets_ns(&clocks_ns) else { return };
    let Some(broker) = Broker::start_in(&hosts[0]) else { return };
    let bench = Bench::new("agents-clocks");
    let target = (hosts[0].address(), broker.port()).into();
    // Messages to the agents take longer than those from them.
    let (there, back) = (Duration::from_millis(1), Duration::from_millis(4));
    let near = |host: &Host| host.within(|| DelayRelay::start((Ipv4Addr::LOCALHOST, 0).into(), target, there, back));
    let relays: Vec<DelayRelay> = hosts[1..].iter().map(near).collect();
    let agent = |(number, relay): (usize, &DelayRelay)| {
        let (url, name) = (format!("nats://{}", relay.address()), format!("a{number}"));
        let arguments = ["agent", "--join", &url, "--name", &name, "--lanes", "1"];
        hosts[number + 1].spawn(bench.command(&arguments).stdout(Stdio::null()))
    };
    let _agents: Vec<_> = relays.iter().enumerate().map(agent).collect();
    let url = broker.url();
    let doctor = || out(&hosts[0].output(&mut bench.command(&["doctor", "--agents", &url])));
    wait_until(|| doctor().matches("known within").count() == apart_ns.len());
    let told = doctor();
    for (number, apart_ns) in apart_ns.iter().enumerate() {
        let line = told.lines().find(|line| line.trim_start().starts_with(&format!("a{number}:"))).expect("its line");
        let (_, clock) = line.split_once("clock ").expect("its clock");
        let mut words = clock.split(' ');
        let ahead_s: f64 = words.next().and_then(|text| text.parse().ok()).expect("seconds");
        let bound_us: f64 = words.nth(3).and_then(|text| text.parse().ok()).expect("µs");
        // Both are rounded to a µs.
        let off_us = (ahead_s * 1e6 - *apart_ns as f64 / 1e3).abs();
        assert!(off_us <= bound_us + 2.0, "{off_us} µs off: {line}");
        assert!((2_500.0..1e6).contains(&bound_us), "half of the way there and back at least: {line}");
    }
}
