//! The invariants, each of what a run has left once its fault is over.
//!
//! (a) no figure contains a frame that the fault touched; (b) after the next start nothing is left on the machine;
//! (c) the run folder reads, reports and resumes, and at most one frame is lost; (d) decoys are as they were;
//! (e) status and message name the cause; (f) all ends within its patience.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    case::{Case, Ended, Moment, whole_lines},
    fault::{Fault, Leaves},
    product::{Kind, Reference, invalid, slots_of},
};

/// How long processes of a killed program may take to go, by the kernel's hand.
const GOING: Duration = Duration::from_secs(10);

/// Counters are read for so long after a frame's last slot, ns: a server that is killed then has served all of it.
const MARGIN_NS: u64 = 5_000_000;

/// Fewer wrong answers than this may all have been to questions whose answers nobody reads.
const NOTICED_LEAST: u64 = 20;

/// Exit statuses of reports: of a run that failed or was not proven, too.
const REPORTED: [i32; 5] = [0, 1, 4, 5, 7];

/// What does not hold of `case`, whose run has `ended` under `fault`, in words.
pub fn judge(case: &mut Case, fault: &Fault, reference: &Reference, ended: &Ended, struck: bool) -> Vec<String> {
    let mut broken: Vec<String> = std::mem::take(&mut *case.complaints.lock().expect("nobody panics with it"));
    let reasons = reasons(case);
    let harmed = ended.code() != Some(0);
    broken.extend(cause(fault, ended, &reasons, struck, case.product.kind() == Kind::Simulated));
    let run = case.runs().into_iter().next().filter(|run| run.join("plan.json").exists());
    match run {
        Some(run) if fault.leaves == Leaves::Damaged => broken.extend(damaged(case, &run)),
        Some(run) => broken.extend(kept(case, fault, reference, ended, &run, harmed)),
        // It was struck before it had a folder, or lost it: the next start is another run.
        None => broken.extend(another(case)),
    }
    // What could not be removed because of the fault goes with the next start.
    if !case.left_behind().is_empty() || case.site.0.as_ref().is_some_and(|attached| !attached.left().is_empty()) {
        broken.extend(another(case));
    }
    broken.extend(alone(case));
    if !case.decoy_is_whole() {
        broken.push("(d) the decoy tree was changed".to_owned());
    }
    if let Some(attached) = &case.site.0 {
        if fault.noticed && !harmed && attached.relay.changed() >= NOTICED_LEAST {
            broken.push(format!("(a) {} wrong answers, and nothing is said of them", attached.relay.changed()));
        }
        if !attached.decoy().contains("nobody") {
            broken.push("(d) the decoy table was changed".to_owned());
        }
        broken.extend(attached.left().into_iter().map(|left| format!("(b) {left}")));
    }
    broken
}

/// Why cells failed and frames were invalid, as the run folder has it.
fn reasons(case: &Case) -> String {
    let runs = case.runs();
    let read = |name: &str| runs.iter().filter_map(|run| fs::read_to_string(run.join(name)).ok()).collect::<String>();
    read("cells/0.json") + &read("events.jsonl") + &read("frames.jsonl") + &read("evidence.jsonl")
}

/// (e) and (f).
fn cause(fault: &Fault, ended: &Ended, reasons: &str, struck: bool, is_exact: bool) -> Vec<String> {
    let said = &ended.said;
    let last = said.lines().rev().take(6).collect::<Vec<_>>();
    let last = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
    let mut broken = Vec::new();
    if said.contains("panicked at") {
        broken.push(format!("(e) it panicked: {last}"));
    }
    match ended.code() {
        None => broken.push(format!("(f) it did not end within {} s: {last}", ended.after.as_secs())),
        Some(0) => {}
        // Real servers on a busy machine may leave frames that cannot be used.
        Some(4 | 7) if !struck && !is_exact => {}
        Some(status) if !fault.statuses.contains(&status) || !struck => {
            broken.push(format!("(e) status {status}: {last}"));
        }
        // A signal's end says nothing.
        Some(..0) => {}
        Some(130) if fault.words.is_empty() => {}
        Some(status) => {
            let is_named = |word: &&str| said.contains(*word) || reasons.contains(*word);
            if !fault.words.is_empty() && !fault.words.iter().any(is_named) {
                broken.push(format!("(e) status {status} does not name the cause: {last}"));
            }
        }
    }
    broken
}

/// (a) and (c) of a run folder that is whole.
fn kept(case: &mut Case, fault: &Fault, reference: &Reference, ended: &Ended, run: &Path, harmed: bool) -> Vec<String> {
    let mut broken = Vec::new();
    let name = run.display().to_string();
    let before = whole_lines(run);
    if let Some((frames, _)) = ended.struck
        && before.len() < frames
    {
        broken.push(format!("(c) {frames} frames were there when it struck, and {} are left", before.len()));
    }
    if !harmed && case.product.kind() == Kind::Simulated && before.len() != reference.frames {
        broken.push(format!("(c) it says nothing and has {} of {} frames", before.len(), reference.frames));
    }
    if !harmed || fault.leaves == Leaves::Unharmed {
        broken.extend(whole(run));
    }
    let report = case.tithe(&["report", &name, "--format", "json"]);
    let is_told = |ended: &Ended| ended.code().is_some_and(|code| REPORTED.contains(&code));
    if !is_told(&report) || report.said.contains("panicked at") || report.said.contains("records were damaged") {
        broken.push(format!("(c) no report of what it left: {}: {}", report.in_words(), tail(&report.said)));
    }
    let resumed = case.tithe(&["run", "--resume", &name, "--quiet"]);
    // Slots are short: on a machine that is busy with other cases a server may do nothing in one.
    let busy = case.product.kind() != Kind::Simulated && reasons(case).contains("no operation succeeded");
    let right = [Some(0), Some(7)].contains(&resumed.code()) || busy && resumed.code() == Some(4);
    // What is disproven stays so: the run goes on and says it again.
    let said_again = resumed.code() == Some(5) && ended.code() == Some(5);
    if !right && !said_again {
        broken.push(format!("(c) it does not resume: {}: {}", resumed.in_words(), tail(&resumed.said)));
    }
    let after = whole_lines(run);
    if !after.starts_with(&before) {
        broken.push(format!("(c) resuming has changed or lost some of {} frames", before.len()));
    }
    broken.extend(untouched(case, fault, reference, ended, run, &after, before.len()));
    broken
}

/// (a): frames before the fault are those of a run without one, the one that it spoiled is not used, and the figure is
/// near the truth.
fn untouched(
    case: &Case,
    fault: &Fault,
    reference: &Reference,
    ended: &Ended,
    run: &Path,
    lines: &[String],
    before: usize,
) -> Vec<String> {
    let mut broken = Vec::new();
    let frames: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if frames.len() != lines.len() {
        broken.push("(c) a line of frames.jsonl is not JSON".to_owned());
    }
    if case.product.kind() == Kind::Simulated {
        let differs = (0..before.min(reference.frames))
            .filter(|frame| frames.get(*frame).is_some_and(|it| invalid(it).is_none()))
            .find(|frame| slots_of(run, *frame) != reference.slots[*frame]);
        broken.extend(differs.map(|frame| format!("(a) frame {frame} is not that of a run without the fault")));
    }
    if let (true, Some((_, Moment { after, before: Some(before) }))) = (fault.spoils, ended.struck) {
        let span = |frame: &Value| {
            let number = |name: &str| frame[name].as_u64().unwrap_or(0);
            let begun = number("start_unix_ns");
            (begun, begun + number("duration_ns"))
        };
        let held = |frame: &&Value| {
            let (begun, ended) = span(frame);
            begun <= after && before <= ended.saturating_sub(MARGIN_NS)
        };
        let used = frames.iter().find(held).filter(|frame| invalid(frame).is_none());
        broken.extend(used.map(|frame| {
            let left_us = (span(frame).1 - before) / 1000;
            format!("(a) frame {} was struck {left_us} µs before its end and is used", frame["frame"])
        }));
    }
    broken.extend(figure(case, run));
    broken
}

/// (a): the figure of the whole run, where it has one.
fn figure(case: &Case, run: &Path) -> Option<String> {
    let document: Value = serde_json::from_slice(&fs::read(run.join("report.json")).ok()?).ok()?;
    let arm = &document["tithe_report"]["cells"][0]["arms"][1];
    let estimate = arm["estimates"].as_array()?.iter().find(|estimate| estimate["name"] == "net")?;
    let effect = estimate["effect"]["estimate"].as_f64()?;
    let (truth, most) = case.product.truth();
    ((effect - truth).abs() > most).then(|| format!("(a) the figure is {effect:.3} where the truth is {truth:.3}"))
}

/// A run that says nothing of a fault has all that a run writes.
fn whole(run: &Path) -> Vec<String> {
    let files = ["report.html", "report.md", "report.json", "report.csv", "slots.csv", "evidence.jsonl"];
    let lacks = files.iter().filter(|name| fs::metadata(run.join(name)).map_or(0, |seen| seen.len()) == 0);
    lacks.map(|name| format!("(e) it says nothing and has no {name}")).collect()
}

/// (c) of a run folder that lost files: every command that reads it ends with a known status and with words.
fn damaged(case: &mut Case, run: &Path) -> Vec<String> {
    let name = run.display().to_string();
    let asked: [&[&str]; 2] = [&["report", &name], &["run", "--resume", &name, "--quiet"]];
    let mut broken = Vec::new();
    for words in asked {
        let ended = case.tithe(words);
        let is_known = ended.code().is_some_and(|code| (0..=7).contains(&code));
        if !is_known || ended.said.contains("panicked at") || ended.said.is_empty() && ended.code() != Some(0) {
            broken.push(format!("(c) {}: {}: {}", words[0], ended.in_words(), tail(&ended.said)));
        }
    }
    broken.extend(another(case));
    broken
}

/// (c) where nothing is left: another run is none the worse for it.
fn another(case: &mut Case) -> Vec<String> {
    let runs: Vec<PathBuf> = case.runs();
    let ended = case.tithe(&["verify", "e.toml"]);
    let mut broken = Vec::new();
    if ![Some(0), Some(7)].contains(&ended.code()) {
        broken.push(format!("(c) the next start: {}: {}", ended.in_words(), tail(&ended.said)));
    }
    if !case.runs().starts_with(&runs[..runs.len().min(1)]) {
        broken.push("(d) the next start has removed a run folder".to_owned());
    }
    broken
}

/// (b), as soon as the kernel has had its time.
fn alone(case: &Case) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = case.left_behind();
        if left.is_empty() || begun.elapsed() > GOING {
            return left.into_iter().map(|left| format!("(b) left: {left}")).collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" | ")
}
