//! Run folders of others: one file of a good folder is replaced by the bytes, and the folder is read, assessed and
//! reported. Objects without a checksum are accepted, so the fuzzer need not compute any.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use tithe_analysis::{assess::assess, report::html::PageData};
use tithe_harness::{catalogue::catalogue, folder, folder::RunFolder};
use tithe_model::{
    histogram::Histogram,
    parse,
    plan::{self, Plan},
    record::{ArmFrame, Event, Finding, Frame, Host, Machine, Phase, Role, Slot, Stalls, Verdict},
};
use tithe_plugin::{simulated::Simulated, wire::foreign::Parser};

/// One for each file that reports are made from.
pub const TARGETS: &[Parser] = &[
    ("folder-plan", |bytes| replaced("plan.json", bytes)),
    ("folder-machine", |bytes| replaced("machine.json", bytes)),
    ("folder-cells", |bytes| replaced("cells/0.json", bytes)),
    ("folder-frames", |bytes| replaced("frames.jsonl", bytes)),
    ("folder-slots", |bytes| replaced("slots.csv", bytes)),
    ("folder-evidence", |bytes| replaced("evidence.jsonl", bytes)),
    ("folder-events", |bytes| replaced("events.jsonl", bytes)),
    ("folder-profile", |bytes| replaced("profile.jsonl", bytes)),
];

const EXPERIMENT: &str = "title = \"Fuzzed\"\ndatabase = \"simulated\"\n[data]\nrecords = 1000\n[measure]\n\
    budget = \"30 s\"\nslot = \"20 ms\"\nprecision = \"0.01%\"\naa_arm = false\n[[workload]]\nycsb = \"c\"\n[[arm]]\n\
    name = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

/// Enough for an interval.
const FRAMES: u32 = 16;

/// The good folder, and the plan in it.
static GOOD: LazyLock<Mutex<PathBuf>> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("tithe-fuzz-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    let catalogue = catalogue(&[&Simulated]);
    let experiment = parse::parse(EXPERIMENT, &catalogue, &|_| Err(std::io::Error::other("no file")));
    let plan = plan::plan(experiment.expect("an experiment"), &catalogue).expect("a plan");
    write(&path, &plan);
    Mutex::new(path)
});

fn write(path: &Path, plan: &Plan) {
    let mut folder = RunFolder::create(path, EXPERIMENT, plan, &Machine::default()).expect("a run folder");
    folder.event(&Event::CellStarted { cell: 0 }).expect("written");
    folder.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
    folder.finding(&finding()).expect("written");
    for number in 0..FRAMES {
        let (frame, slots) = frame(number);
        folder.frame(&frame, &slots).expect("written");
    }
}

fn frame(number: u32) -> (Frame, Vec<Slot>) {
    let arm = |arm: u32| {
        let operations = u64::from(40 + (number + arm) % 3);
        let mut seen = Histogram::default();
        (0..operations).for_each(|each| seen.record(500_000 + 1000 * each));
        let arm_frame = ArmFrame { operations, latency: [("READ".to_owned(), seen)].into(), ..ArmFrame::default() };
        let slot = Slot { frame: number, arm, operations, counted: operations, wall_ns: 20_000_000, ..Slot::default() };
        (arm_frame, Slot { latency_sum_ns: 19_000_000, ..slot })
    };
    let (arms, slots) = (0..2).map(arm).unzip();
    let frame = Frame {
        cell: 0,
        frame: number,
        epoch: 0,
        start: 0,
        start_unix_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000_000,
        duration_ns: 1_000_000_000,
        invalid: None,
        free: false,
        slot_ns: 20_000_000,
        settling_ns: 1_000_000,
        stalls: Stalls::Waits,
        arms,
        agents: Vec::new(),
        host: Host::default(),
    };
    (frame, slots)
}

fn finding() -> Finding {
    Finding {
        cell: 0,
        epoch: 0,
        arm: 1,
        phase: Phase::Before,
        protection: "seal".to_owned(),
        check: "sealed".to_owned(),
        claim: "Records are sealed.".to_owned(),
        role: Role::Claim,
        verdict: Verdict::Holds,
        protected: "all".to_owned(),
        control: "none".to_owned(),
    }
}

/// Reads, assesses and reports the good folder with `bytes` as its file `name`.
fn replaced(name: &str, bytes: &[u8]) {
    let folder = GOOD.lock().unwrap_or_else(PoisonError::into_inner);
    let file = folder.join(name);
    let good = fs::read(&file).ok();
    fs::write(&file, bytes).expect("written");
    let records = folder::read(&folder);
    match good {
        Some(good) => fs::write(&file, good).expect("written"),
        None => fs::remove_file(&file).expect("removed"),
    }
    drop(folder);
    if let Ok(records) = records {
        super::render(&assess(&records), &PageData::of(&records, EXPERIMENT));
        let _ = tithe_analysis::report::ycsb::render(&records);
    }
}

/// Removes the good folder.
pub fn clean_up() {
    let _ = fs::remove_dir_all(&*GOOD.lock().unwrap_or_else(PoisonError::into_inner));
}

/// The good file of the target `name`, without checksums.
pub fn seed(name: &str) -> Option<Vec<u8>> {
    let name = name.strip_prefix("folder-")?;
    let folder = GOOD.lock().unwrap_or_else(PoisonError::into_inner);
    let files = fs::read_dir(&*folder).ok()?.flatten().map(|file| file.path());
    let file = files.into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name))?;
    // Cells have a folder, with a file for each.
    let file = if file.is_dir() { file.join("0.json") } else { file };
    let mut text = fs::read_to_string(file).ok()?;
    while let Some(at) = text.find("\"crc32\"") {
        let begin = text[..at].rfind(',')?;
        let end = at + text[at..].find('}')?;
        text.replace_range(begin..end, "");
    }
    Some(text.into_bytes())
}
