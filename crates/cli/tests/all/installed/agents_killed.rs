//! Agents, broker, coordinator and observer are killed at random moments. Every run comes to its end, each kill costs
//! one frame at most, nothing counts twice, and nothing is left behind.
//!
//! `TITHE_TEST_KILLS` sets the number of kills in each test; by default they are few. Without `nats-server` these tests
//! are skipped with a notice; with `CI` set they fail.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tithe_machine::sandbox::SANDBOX_PREFIX;
use tithe_model::{invalid::Invalid, schedule::SplitMix64};

use super::{
    agents::{Broker, run},
    attached::schemas,
    observer::experiment,
};
use crate::support::{
    Bench, FEW_OPERATIONS, err, known_costs,
    process::Process,
    sealed,
    server::{Server, installed},
    status,
};

/// How long a run may take to end after the last kill: a run that hangs fails.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How often the records of a run are read again: a frame takes many times as long.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The parts that can be killed.
const PARTS: [&str; 5] = ["agent a0", "agent a1", "broker", "coordinator", "observer"];

/// The results of some kills.
#[derive(Debug, Default)]
struct Tally {
    /// Kills by part.
    kills: [usize; PARTS.len()],
    runs: usize,
    frames: usize,
    /// Frames that were left out.
    lost: usize,
    /// Identities of the processes that were killed.
    dead: Vec<u32>,
}

impl Tally {
    fn of_all(&self) -> usize {
        self.kills.iter().sum()
    }
}

/// A run with all its parts.
struct Play<'b> {
    bench: &'b Bench,
    broker: Broker,
    agents: [Process; 2],
    coordinator: Process,
    /// The observer of the server on a port.
    observer: Option<(u16, Process)>,
}

impl<'b> Play<'b> {
    /// Begins a run; with an observer if its server is on the port `observed`.
    fn begin(bench: &'b Bench, observed: Option<u16>) -> Option<Self> {
        let _ = fs::remove_dir_all(bench.path("tithe-runs"));
        let broker = Broker::start()?;
        let agents = ["a0", "a1"].map(|name| broker.agent(bench, name, 1));
        let coordinator = Self::coordinator(bench, &broker, false);
        let observer = observed.map(|port| (port, broker.observer(bench, "db1", port)));
        let mut play = Self { bench, broker, agents, coordinator, observer };
        play.await_begun(0);
        Some(play)
    }

    fn coordinator(bench: &Bench, broker: &Broker, resumes: bool) -> Process {
        let url = broker.url();
        let folder = resumes.then(|| bench.run_folder().display().to_string());
        let mut arguments = vec!["run", "--quiet", "--agents", &url, "--expect", "2", "--wait", "60"];
        match &folder {
            Some(folder) => arguments.extend(["--resume", folder]),
            None => arguments.push("e.toml"),
        }
        let errors = fs::File::create(bench.path("stderr")).expect("a file");
        let mut command = bench.command(&arguments);
        Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors))
    }

    /// How often the run has begun or was resumed.
    fn begun(&self) -> usize {
        self.bench.kept_so_far("events.jsonl").matches("run-started").count()
    }

    /// Frames that count.
    fn whole(&self) -> usize {
        self.bench.kept_so_far("frames.jsonl").matches("\"invalid\":null").count()
    }

    /// Waits until the run has begun once more than `before`. A missing broker at the very start loses no frame: it is
    /// refused.
    fn await_begun(&mut self, before: usize) {
        self.wait_until("the run does not begin", |play| play.begun() > before);
    }

    /// Waits for the next frame that counts.
    fn await_frame(&mut self) {
        let before = self.whole();
        self.wait_until("the run does not go on", |play| play.whole() > before);
    }

    /// Waits until this `holds` or the run has ended; `complaint` is the failure message if neither happens.
    fn wait_until(&mut self, complaint: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) && !self.has_ended() {
            assert!(begun.elapsed() < TIMEOUT, "{complaint}: {}", self.told());
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn has_ended(&mut self) -> bool {
        self.coordinator.has_ended()
    }

    /// Agents and observer as processes.
    fn processes(&self) -> Vec<u32> {
        let observer = self.observer.iter().map(|(_, observer)| observer.id());
        self.agents.iter().map(Process::id).chain(observer).collect()
    }

    /// Kills a part and starts it again. A coordinator without records begins a new run.
    fn kill(&mut self, part: usize) {
        match part {
            0 | 1 => {
                self.agents[part].kill();
                self.agents[part] = self.broker.agent(self.bench, &format!("a{part}"), 1);
            }
            2 => self.broker.restart(),
            4 => {
                let (port, observer) = self.observer.as_mut().expect("it is there");
                observer.kill();
                *observer = self.broker.observer(self.bench, "db1", *port);
            }
            _ => {
                self.coordinator.kill();
                let resumes = !self.bench.kept_so_far("plan.json").is_empty();
                let before = if resumes { self.begun() } else { 0 };
                self.coordinator = Self::coordinator(self.bench, &self.broker, resumes);
                self.await_begun(before);
            }
        }
    }

    /// Waits for the run's end, and checks its records.
    fn end(&mut self, kills: usize, tally: &mut Tally) {
        self.wait_until(&format!("the run does not end after {kills} deaths"), |_| false);
        assert_eq!(self.coordinator.wait().code(), Some(0), "{}", self.told());
        let text = fs::read_to_string(self.bench.run_folder().join("frames.jsonl")).expect("frames");
        let frames: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let numbers: BTreeSet<u64> = frames.iter().filter_map(|frame| frame["frame"].as_u64()).collect();
        assert_eq!(numbers.len(), frames.len(), "each frame is kept once");
        let mut lost: Vec<&str> = frames.iter().filter_map(|frame| frame["invalid"].as_str()).collect();
        // A machine that is busy with other work loses frames by itself.
        lost.retain(|why| !Invalid::read(why).is_of_a_busy_machine());
        assert!(lost.len() <= kills, "{kills} deaths, and {} frames are lost: {lost:?}", lost.len());
        let slots = fs::read_to_string(self.bench.run_folder().join("slots.csv")).expect("slots");
        let rows: Vec<&str> = slots.lines().skip(1).collect();
        let places: BTreeSet<String> =
            rows.iter().map(|row| row.splitn(6, ',').take(5).collect::<Vec<_>>().join(",")).collect();
        assert_eq!(places.len(), rows.len(), "each slot is kept once");
        for frame in frames.iter().filter(|frame| frame["invalid"].is_null()) {
            let place = format!("{},{},", frame["cell"], frame["frame"]);
            for (arm, told) in frame["arms"].as_array().expect("arms").iter().enumerate() {
                let arm = arm.to_string();
                let of = |row: &&&str| row.starts_with(&place) && row.split(',').nth(4) == Some(arm.as_str());
                let operations = |row: &&str| row.split(',').nth(5).and_then(|field| field.parse::<u64>().ok());
                let sum: u64 = rows.iter().filter(of).filter_map(operations).sum();
                assert_eq!(Some(sum), told["operations"].as_u64(), "operations of {place}");
            }
        }
        tally.runs += 1;
        tally.frames += frames.len();
        tally.lost += lost.len();
    }

    fn told(&self) -> String {
        let mut told = fs::read_to_string(self.bench.path("stderr")).unwrap_or_default();
        let events = fs::read_to_string(self.bench.run_folder().join("events.jsonl")).unwrap_or_default();
        let is_told =
            |line: &&str| line.contains("warning") || line.contains("cell-done") || line.contains("invalid\":\"");
        told.extend(events.lines().filter(is_told).map(|line| line.to_owned() + "\n"));
        told
    }
}

/// Processes that work in `folder` or below.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("it is there");
    let all = fs::read_dir("/proc").expect("a folder").flatten();
    let works_there = |process: &fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|works_in| works_in.starts_with(&folder))
    };
    let told = |process: fs::DirEntry| {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
        format!("{} {words}", process.path().display())
    };
    all.filter(works_there).map(told).collect()
}

/// Folders that the processes `dead` have made for servers and certificates and that still exist.
fn left_by(dead: &[u32], bench: &Bench) -> Vec<PathBuf> {
    let runs = fs::read_dir(bench.path("tithe-runs")).into_iter().flatten().flatten().map(|run| run.path());
    let places = runs.chain([std::env::temp_dir(), PathBuf::from("/var/tmp")]);
    let mut folders: Vec<PathBuf> = places
        .flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect();
    let prefixes: Vec<String> = dead.iter().map(|process| format!("{SANDBOX_PREFIX}{process}-")).collect();
    folders.retain(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    });
    folders
}

/// Kills parts of runs of `experiment` in `bench`, `usual` times unless the environment sets another number. Each kill
/// is up to `apart_ms` ms after a frame that counts. With a port `observed`, the observer of its server is one of the
/// parts.
fn play(bench: &Bench, experiment: &str, (usual, apart_ms): (usize, u64), observed: Option<u16>) {
    bench.file("e.toml", experiment);
    let wanted = std::env::var("TITHE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (mut random, mut tally) = (SplitMix64::new(23), Tally::default());
    let begun = Instant::now();
    // Other tests resume runs on attached servers without agents, so here the coordinator is not killed.
    let parts: [usize; 4] = if observed.is_some() { [0, 1, 2, 4] } else { [0, 1, 2, 3] };
    while tally.of_all() < wanted {
        let Some(mut play) = Play::begin(bench, observed) else { return };
        let before = tally.of_all();
        loop {
            // A cell that loses three frames in a row for one reason ends with it, as intended.
            play.await_frame();
            thread::sleep(Duration::from_millis(random.below(apart_ms)));
            if play.has_ended() || tally.of_all() >= wanted {
                break;
            }
            let part = parts[random.below(parts.len() as u64) as usize];
            tally.kills[part] += 1;
            tally.dead.extend(play.processes());
            tally.dead.push(play.coordinator.id());
            play.kill(part);
        }
        play.end(tally.of_all() - before, &mut tally);
        tally.dead.extend(play.processes());
    }
    assert_eq!(processes_in(&bench.path(".")), Vec::<String>::new());
    // The next start of each part removes what the killed processes have left, in all places.
    let Some(broker) = Broker::start() else { return };
    let _next = broker.agent(bench, "next", 1);
    bench.file("next.toml", &known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s"));
    let next = run(&broker, bench, "next.toml", &["--expect", "1"]).output().expect("tithe starts");
    assert_eq!(status(&next), 0, "{}", err(&next));
    assert_eq!(left_by(&tally.dead, bench), Vec::<PathBuf>::new());
    report(&tally, begun.elapsed());
}

#[allow(clippy::print_stderr, reason = "the table is kept as a proof")]
fn report(tally: &Tally, took: Duration) {
    let parts: Vec<String> = PARTS.iter().zip(tally.kills).map(|(part, kills)| format!("{part} {kills}")).collect();
    let Tally { runs, frames, lost, .. } = tally;
    eprintln!(
        "{} deaths ({}) in {runs} runs with {frames} frames, of which {lost} were lost and none counted twice; {:.0} s",
        tally.of_all(),
        parts.join(", "),
        took.as_secs_f64()
    );
}

#[test]
fn of_the_simulated_database() {
    let bench = Bench::new("killed-simulated");
    let experiment = known_costs(FEW_OPERATIONS, &sealed(0.05), "45 s")
        .replace("0.2%", "0.01%")
        .replace("[measure]", "[load]\nclients = 2\nagents = 2\n[measure]");
    play(&bench, &experiment, (12, 60), None);
}

#[test]
fn of_postgres() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("killed-postgres");
    let experiment = "title = \"Killed\"\ndatabase = \"postgres\"\n[data]\nrecords = 500\n[load]\nclients = 2\nrate = 400\nagents = 2\n\
         [measure]\nbudget = \"30 s\"\nprecision = \"0.01%\"\nwarmup = \"500 ms\"\naa_arm = false\nstarts = 1\n\
         [[workload]]\nycsb = \"a\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"tls\"\nprotections = [{ use = \"tls\" }]\n";
    play(&bench, experiment, (3, 4_000), None);
}

#[test]
fn of_a_postgres_that_is_observed() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("killed-observed");
    let experiment = experiment("postgres", &server.address(), "");
    let experiment = experiment.replace("agents = 1", "agents = 2").replace("50%", "0.01%");
    play(&bench, &experiment, (3, 4_000), Some(server.port()));
    assert_eq!(schemas(&server), "0");
}
