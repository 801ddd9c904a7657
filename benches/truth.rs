//! Is the instrument right? Measures what is known, with the program as a user runs it.
//!
//! `cargo bench --bench truth -- coverage | spin | hogs | adversary | designs | writes [seconds]`
//!
//! | part | the truth | what is shown |
//! |---|---|---|
//! | `coverage` | arms of the simulated database that cost +1, +2, +5, +10 % | how many of 100 intervals hold it |
//! | `spin` | the same arms as loops on this machine's processors, in real time | every interval, and whether it holds the truth |
//! | `hogs` | PostgreSQL against itself, with processor hogs beside it | false alarms over disjoint segments of ten frames |
//! | `adversary` | PostgreSQL against itself, hogs in the first half only | the sequential design's error and interval, and ours |
//! | `designs` | PostgreSQL against itself | half-width of each design for a minute of two arms |
//! | `writes` | PostgreSQL against itself, durable updates | the same by slot and number of clients |
//!
//! Nothing is asserted: the figures are for a reader, and METHODOLOGY.md shows some.

// A bench prints: that is what it is for.
#![allow(clippy::print_stdout)]

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tithe_analysis::{CONFIDENCE, Records, assess::assess};
use tithe_harness::folder;

#[path = "../crates/cli/src/records.rs"]
mod records;

/// Extra cost of the known arms.
const KNOWN: [f64; 4] = [0.01, 0.02, 0.05, 0.10];

fn main() {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let part = arguments.first().map_or("coverage", String::as_str);
    let seconds: Option<u32> = arguments.get(1).and_then(|text| text.parse().ok());
    match part {
        "coverage" => coverage(),
        "spin" => spin(seconds.unwrap_or(60)),
        "hogs" => hogs(seconds.unwrap_or(300)),
        "adversary" => adversary(seconds.unwrap_or(60)),
        "designs" => designs(seconds.unwrap_or(60)),
        "writes" => writes(seconds.unwrap_or(60)),
        other => println!("there is no part {other}; see the top of benches/truth.rs"),
    }
}

fn coverage() {
    let (mut right, mut runs) = ([0; KNOWN.len()], 0);
    for seed in 1..=25 {
        let run = Run::new("coverage", &known_arms("simulated", seed, "32 s"));
        let report = run.wait();
        runs += 1;
        for (arm, cost) in KNOWN.iter().enumerate() {
            let (low, high) = interval(&report, 0, arm + 1, "net");
            right[arm] += u32::from((low..=high).contains(&cost.ln_1p()));
        }
    }
    for (cost, right) in KNOWN.iter().zip(right) {
        println!("+{:.0} %: {right} of {runs} intervals hold it", 100.0 * cost);
    }
    println!("together: {} of {}", right.iter().sum::<u32>(), runs * KNOWN.len());
}

fn spin(seconds: u32) {
    let report = Run::new("spin", &known_arms("spinning", 1, &format!("{seconds} s"))).wait();
    for name in ["net", "cpu", "time"] {
        for (arm, cost) in KNOWN.iter().enumerate() {
            let (low, high) = interval(&report, 0, arm + 1, name);
            let holds = if (low..=high).contains(&cost.ln_1p()) { "holds it" } else { "MISSES it" };
            println!("{name:<4} +{:.0} %: {} {holds}", 100.0 * cost, percent(low, high));
        }
    }
}

fn hogs(seconds: u32) {
    let run = Run::new("hogs", &against_itself("interleaved", true, "c", 2, None, seconds));
    let hogs = Hogs::start(4);
    let path = run.finish();
    drop(hogs);
    let all = read(&path);
    for name in ["time", "net", "cpu"] {
        let segments: Vec<&[_]> = all.frames.chunks_exact(10).collect();
        let wrong = segments.iter().filter(|frames| {
            let records = Records { frames: frames.to_vec(), ..all.clone() };
            let analysis = assess(&records);
            let estimate = analysis.cells[0].arms[1].estimates.iter().find(|estimate| estimate.name == name);
            estimate.is_some_and(|it| it.effect.low > 0.0 || it.effect.high < 0.0)
        });
        let (wrong, of) = (wrong.count(), segments.len());
        println!(
            "{name:<4}: {wrong} false alarms in {of} segments of ten frames, {:.0} % allowed",
            100.0 * (1.0 - CONFIDENCE)
        );
    }
    tell_halves("all frames", &assessed(&all));
}

fn adversary(seconds: u32) {
    for design in ["sequential", "interleaved"] {
        let mut run = Run::new("adversary", &against_itself(design, true, "c", 2, None, seconds));
        run.half_with_hogs(4);
        tell_halves(design, &assessed(&read(&run.finish())));
    }
}

fn designs(seconds: u32) {
    let designs = [
        ("interleaved", true),
        ("interleaved", false),
        ("slices", true),
        ("slices", false),
        ("duet", true),
        ("sequential", false),
    ];
    for (design, pin) in designs {
        let run = Run::new("designs", &against_itself(design, pin, "c", 2, None, seconds));
        let bound = if pin { "bound" } else { "free" };
        tell_halves(&format!("{design}, {bound}"), &assessed(&read(&run.finish())));
    }
}

fn writes(seconds: u32) {
    for slot_ms in [50, 100, 250] {
        for clients in [2, 8, 16] {
            let run = Run::new("writes", &against_itself("interleaved", true, "u", clients, Some(slot_ms), seconds));
            tell_halves(&format!("{slot_ms} ms, {clients} clients"), &assessed(&read(&run.finish())));
        }
    }
}

/// Every metric of the only comparison: its effect, whose truth is 0, and its half-width for a minute of two arms.
fn tell_halves(what: &str, report: &Value) {
    let cell = &report["cells"][0];
    print!("{what:<24}");
    for name in ["time", "net", "cpu"] {
        let Some(estimate) = find(report, 0, 1, name) else { continue };
        let (low, high) = ends(estimate);
        let load_s = estimate["frames_s"].as_f64().unwrap_or(f64::NAN);
        let per_minute = (high - low) / 2.0 * (load_s / 60.0).sqrt();
        print!(" {name} {} (±{:.2} % a minute)", percent(low, high), 100.0 * per_minute);
    }
    let host = &cell["host"];
    println!(
        "; load {:.1}, waited {:.0} %",
        host["load"].as_f64().unwrap_or(0.0),
        100.0 * cell["wait_share"].as_f64().unwrap_or(0.0)
    );
}

/// The report of `records`, each estimate with the seconds of load of the whole cell.
fn assessed(records: &Records) -> Value {
    let frame_s = records.plan.cells[0].frame_ns(records.plan.experiment.arms.len()) as f64 / 1e9;
    let frames = records.frames.iter().filter(|frame| !frame.free && frame.spoiled.is_none()).count();
    let mut report = serde_json::to_value(assess(records)).expect("an analysis is JSON");
    for estimate in report["cells"][0]["arms"][1]["estimates"].as_array_mut().into_iter().flatten() {
        estimate["frames_s"] = Value::from(frames as f64 * frame_s);
    }
    report
}

fn read(path: &Path) -> Records {
    records::of(path, folder::read(path).expect("a run folder"))
}

fn find<'a>(report: &'a Value, cell: usize, arm: usize, name: &str) -> Option<&'a Value> {
    let estimates = report["cells"][cell]["arms"][arm]["estimates"].as_array()?;
    estimates.iter().find(|estimate| estimate["name"] == name)
}

fn ends(estimate: &Value) -> (f64, f64) {
    let end = |name: &str, otherwise: f64| estimate["effect"][name].as_f64().unwrap_or(otherwise);
    (end("low", f64::NEG_INFINITY), end("high", f64::INFINITY))
}

fn interval(report: &Value, cell: usize, arm: usize, name: &str) -> (f64, f64) {
    ends(find(report, cell, arm, name).unwrap_or(&Value::Null))
}

/// `[+4.1, +5.2] %` of ends that are natural-log ratios.
fn percent(low: f64, high: f64) -> String {
    format!("[{:+.2}, {:+.2}] %", 100.0 * low.exp_m1(), 100.0 * high.exp_m1())
}

/// An experiment on arms of known cost.
fn known_arms(database: &str, seed: u64, budget: &str) -> String {
    let arms: String = KNOWN
        .iter()
        .map(|cost| {
            format!("[[arm]]\nname = \"plus {cost}\"\nprotections = [{{ use = \"placebo\", cost = {cost} }}]\n")
        })
        .collect();
    format!(
        "title = \"Known costs\"\ndatabase = \"{database}\"\n[settings]\nservice_us = 100\n[data]\nrecords = 500\n[measure]\n\
         budget = \"{budget}\"\nprecision = \"0.1%\"\nseed = {seed}\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n{arms}"
    )
}

/// An experiment on PostgreSQL against itself; workload `u` is updates alone, which wait for the disk.
fn against_itself(design: &str, pin: bool, workload: &str, clients: u32, slot_ms: Option<u32>, seconds: u32) -> String {
    let slot = slot_ms.map_or(String::new(), |slot| format!("slot = \"{slot} ms\"\n"));
    let workload = match workload {
        "u" => "name = \"u\"\nycsb = \"a\"\nproperties = { readproportion = \"0\", updateproportion = \"1\" }",
        _ => "ycsb = \"c\"",
    };
    format!(
        "title = \"The same twice\"\ndatabase = \"postgres\"\n[data]\nrecords = 20_000\n[load]\nclients = {clients}\n[measure]\n\
         budget = \"{seconds} s\"\nprecision = \"0.01%\"\nepochs = 1\ndesign = \"{design}\"\npin = {pin}\n{slot}[[workload]]\n{workload}\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"again\"\n"
    )
}

/// The program at work in a folder of its own, which goes with it.
struct Run {
    folder: PathBuf,
    child: Child,
}

impl Run {
    fn new(name: &str, experiment: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("truth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("e.toml"), experiment).expect("the experiment is written");
        let child = Command::new(env!("CARGO_BIN_EXE_tithe"))
            .args(["run", "e.toml", "--quiet", "--json"])
            .current_dir(&folder)
            .env("TITHE_SIMULATED", "1")
            .stdout(Stdio::null())
            .spawn()
            .expect("tithe starts");
        Self { folder, child }
    }

    /// Waits for the end; the run folder.
    fn finish(mut self) -> PathBuf {
        let status = self.child.wait().expect("tithe ends");
        let runs = std::fs::read_dir(self.folder.join("tithe-runs")).into_iter().flatten().flatten();
        runs.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap_or_else(|| panic!("no run: {status}"))
    }

    /// Waits for the end; the report.
    fn wait(self) -> Value {
        let path = self.finish();
        serde_json::to_value(assess(&read(&path))).expect("an analysis is JSON")
    }

    /// Runs hogs until half of the frames are measured.
    fn half_with_hogs(&mut self, count: usize) {
        let hogs = Hogs::start(count);
        while self.child.try_wait().expect("a state").is_none() && !self.half_done() {
            std::thread::sleep(Duration::from_millis(200));
        }
        drop(hogs);
    }

    fn half_done(&self) -> bool {
        let runs = std::fs::read_dir(self.folder.join("tithe-runs")).into_iter().flatten().flatten();
        runs.map(|entry| entry.path()).filter(|path| path.is_dir()).any(|path| {
            let plan: Option<Value> =
                std::fs::read(path.join("plan.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let frames = std::fs::read_to_string(path.join("frames.jsonl")).unwrap_or_default().lines().count();
            plan.and_then(|plan| plan["cells"][0]["frames_max"].as_u64()).is_some_and(|most| frames as u64 * 2 >= most)
        })
    }
}

/// Processes that use all the processor time they get, until dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(count: usize) -> Self {
        let hog = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts");
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}
