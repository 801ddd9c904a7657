//! A run folder is written, killed, changed by others, and read back.

use std::sync::LazyLock;

use proptest::prelude::*;
use tithe_model::{
    histogram::Histogram,
    plan::Cell,
    record::{ArmFacts, ArmFrame, Phase, Role, Stalls, Verdict},
};

use super::*;
use crate::catalogue::tests::planned;

const EXPERIMENT: &str = "title = \"Logs\"\ndatabase = \"simulated\"\n[data]\nrecords = 1000\n[load]\nclients = 3\n\
    [measure]\nbudget = \"30 s\"\nslot = \"20 ms\"\nprecision = \"0.01%\"\naa_arm = false\n\
    [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

fn plan() -> Plan {
    planned(EXPERIMENT)
}

/// Frame `number` of two arms, with one operation.
fn frame(number: u32) -> Frame {
    let mut seen = Histogram::default();
    seen.record(1000 + u64::from(number));
    let arm = ArmFrame { latency: [("READ".to_owned(), seen)].into(), ..ArmFrame::default() };
    Frame {
        frame: number,
        start_unix_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000_000,
        duration_ns: 1_000_000_000,
        slot_ns: 20_000_000,
        settling_ns: 1_000_000,
        stalls: Stalls::Waits,
        arms: vec![arm.clone(), arm],
        ..Frame::default()
    }
}

/// Frame `number` of two arms, each with one slot of one operation.
fn counted(number: u32) -> Frame {
    let mut frame = frame(number);
    frame.arms.iter_mut().for_each(|arm| arm.operations = 1);
    frame
}

/// The slots of frame `number`.
fn slots_of(number: u32) -> Vec<Slot> {
    let slot = |arm| Slot { frame: number, arm, operations: 1, counted: 1, wall_ns: 20_000_000, ..Slot::default() };
    vec![slot(0), slot(1)]
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

#[test]
fn names_that_differ_in_signs_alone_have_files_of_their_own() {
    let names = ["tls 1.2", "plain", "tls-1.2", "ключ", "ключи"];
    assert_eq!(file_names(names.into_iter()), ["tls-1-2.0", "plain", "tls-1-2.2", "----", "-----"]);
}

#[test]
fn the_logs_of_a_run_that_is_resumed_hold_its_frames_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, plan) = (folder.path().join("run"), plan());
    let logs = || -> Vec<Option<String>> {
        let names = FileNames::of(&plan);
        let logs = (0..names.arms.len()).map(|arm| names.log(0, arm));
        logs.map(|name| fs::read_to_string(path.join(HISTOGRAMS).join(name)).ok()).collect()
    };
    let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
    run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
    run.frame(&frame(0), &[]).expect("written");
    run.frame(&frame(1), &[]).expect("written");
    let whole = logs();
    assert!(whole.iter().flatten().all(|log| log.matches("StartTime").count() == 1), "{whole:?}");
    assert_eq!(whole.iter().flatten().map(|log| log.matches("Tag=READ,").count()).sum::<usize>(), 4);

    // Killed in its third frame: one log has the frame, the other a part of it, and `frames.jsonl` has no line of
    // it.
    let next = intervals_of(&FileNames::of(&plan), &frame(2)).expect("intervals");
    run.intervals(&next[0].0, &frame(2), &next[0].1).expect("written");
    run.intervals(&next[1].0, &frame(2), &next[1].1[..20]).expect("written");
    assert_ne!(logs(), whole);
    drop(run);
    let (mut run, records) = RunFolder::resume(&path).expect("resumed");
    assert_eq!((records.frames.len(), logs()), (2, whole.clone()));
    run.frame(&frame(2), &[]).expect("written");
    let longer = whole.iter().zip(&next).map(|(log, (_, interval))| Some(log.clone()? + interval));
    assert_eq!(logs(), longer.collect::<Vec<_>>());
    drop(run);

    // Killed in its first frame.
    fs::write(path.join("frames.jsonl"), "").expect("written");
    let (mut run, _) = RunFolder::resume(&path).expect("resumed");
    assert!(logs().iter().all(Option::is_none), "{:?}", logs());
    run.frame(&frame(0), &[]).expect("written");
    run.frame(&frame(1), &[]).expect("written");
    assert_eq!(logs(), whole);
}

#[test]
fn nothing_is_added_to_a_file_that_another_program_has_changed_or_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, plan) = (folder.path().join("run"), plan());
    let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
    run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
    run.frame(&frame(0), &[]).expect("written");
    assert_eq!(run.check(), Ok(()));
    fs::write(path.join("frames.jsonl"), "").expect("emptied");
    let told = run.check().expect_err("frame 0 is lost").to_string();
    assert!(told.contains("frames.jsonl: another program has removed or changed its file"), "{told}");
    let refused = run.frame(&frame(1), &[]).expect_err("frame 0 is lost").to_string();
    assert!(refused.contains("another program has removed or changed its file"), "{refused}");
    fs::remove_file(path.join("events.jsonl")).expect("removed");
    assert!(run.event(&Event::CellStarted { cell: 0 }).is_err(), "nobody would read it");
}

#[test]
fn what_a_cell_costs_does_not_grow_with_their_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut plan) = (folder.path().join("run"), plan());
    let cell = |number: u32| Cell { id: format!("c.{number}"), ..plan.cells[0].clone() };
    plan.cells = (0..100).map(cell).collect();
    let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
    let entries = |of: &Path| fs::read_dir(of).expect("a folder").flatten().map(|entry| entry.path());
    // Other tests open files meanwhile.
    let is_ours = |file: &PathBuf| fs::read_link(file).is_ok_and(|opened| opened.starts_with(&path));
    let open = || entries(Path::new("/proc/self/fd")).filter(is_ours).count();
    let mut before = None;
    for number in 0..3 {
        run.cell(number, |facts| facts.mode = format!("mode {number}")).expect("written");
        run.frame(&Frame { cell: number as u32, ..frame(0) }, &[]).expect("written");
        assert_eq!(*before.get_or_insert(open()), open(), "logs of earlier cells stay open");
        assert_eq!(entries(&path.join(CELLS)).count(), number + 1, "cells that have not begun are written");
    }
    assert!(before > Some(0));
    drop(run);
    let records = read(&path).expect("readable");
    let modes: Vec<&str> = records.cells.iter().map(|cell| cell.mode.as_str()).collect();
    assert_eq!((&modes[..4], modes.len()), (&["mode 0", "mode 1", "mode 2", ""][..], 100));
    fs::remove_file(cell_path(&path, 1)).expect("removed");
    let refused = read(&path).expect_err("it has frames").to_string();
    assert!(refused.contains("cells/1.json is missing"), "{refused}");
    fs::write(path.join("cells/100.json"), "{}").expect("written");
    let refused = read(&path).expect_err("it is another run's").to_string();
    assert!(refused.contains("cells/100.json is of no cell of plan.json"), "{refused}");
}

/// A run folder with one frame, and the folder around it.
fn with_frame() -> (tempfile::TempDir, PathBuf, RunFolder) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run");
    let mut run = RunFolder::create(&path, EXPERIMENT, &plan(), &Machine::default()).expect("a run folder");
    run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
    run.frame(&counted(0), &slots_of(0)).expect("written");
    (folder, path, run)
}

/// Why `path` is no run folder; empty if it is one.
fn refusal(path: &Path) -> String {
    read(path).map_or_else(|fault| fault.to_string(), |_| String::new())
}

#[test]
fn facts_and_findings_of_cells_and_arms_that_the_plan_does_not_have_are_refused() {
    let (_folder, path, mut run) = with_frame();
    for (arms, is_refused) in [(0, false), (1, true), (2, false), (3, true)] {
        run.cell(0, |facts| facts.arms = vec![ArmFacts::default(); arms]).expect("written");
        let told = refusal(&path);
        assert_eq!(told.contains(&format!("cells/0.json has {arms} arms, plan.json 2")), is_refused, "{told}");
        assert_eq!(told.is_empty(), !is_refused, "{told}");
    }
    run.cell(0, |facts| facts.arms.clear()).expect("written");
    run.finding(&finding()).expect("written");
    assert_eq!(refusal(&path), "");
    let whole = fs::read(path.join("evidence.jsonl")).expect("bytes");
    for other in [Finding { arm: 2, ..finding() }, Finding { cell: 1, ..finding() }] {
        fs::write(path.join("evidence.jsonl"), [whole.clone(), line(&other, b"").expect("JSON")].concat())
            .expect("written");
        let told = refusal(&path);
        assert!(told.contains("line 2 of evidence.jsonl is about a cell or an arm that plan.json"), "{told}");
    }
}

#[test]
fn frames_of_other_cells_and_of_another_number_of_arms_are_refused() {
    let (_folder, path, mut run) = with_frame();
    run.frame(&Frame { arms: vec![ArmFrame::default()], ..frame(1) }, &[]).expect("written");
    let foreign = "does not belong to its plan.json";
    assert!(refusal(&path).ends_with(foreign), "{}", refusal(&path));
    drop(run);
    let (_folder, path, _run) = with_frame();
    let mut frames = fs::read(path.join("frames.jsonl")).expect("bytes");
    frames.extend(line(&Frame { cell: 1, ..frame(0) }, b"").expect("JSON"));
    fs::write(path.join("frames.jsonl"), frames).expect("written");
    assert!(refusal(&path).ends_with(foreign), "{}", refusal(&path));
    let (_folder, path, mut run) = with_frame();
    let mut many = frame(1);
    many.arms[0].failed = u64::MAX;
    run.frame(&many, &[]).expect("written");
    assert!(refusal(&path).ends_with("frame 1 of cell 0 has more operations than there can be"));
}

/// Its load would count twice, and its pair of sides would not be whole.
#[test]
fn a_frame_that_is_there_twice_is_refused() {
    let (_folder, path, mut run) = with_frame();
    run.frame(&counted(1), &slots_of(1)).expect("written");
    drop(run);
    let lines = fs::read(path.join("frames.jsonl")).expect("bytes");
    assert_eq!(refusal(&path), "");
    fs::write(path.join("frames.jsonl"), lines.repeat(2)).expect("written");
    let told = refusal(&path);
    assert!(told.ends_with("frame 0 of cell 0 is there twice"), "{told}");
}

#[test]
fn a_profiled_frame_that_does_not_fit_the_plan_is_kept_and_not_used() {
    let (_folder, path, mut run) = with_frame();
    assert!(read(&path).expect("readable").profile.is_empty(), "nothing was profiled");
    for arms in [2, 3] {
        run.profiled(&ProfiledFrame::without_samples((0, arms as u32), arms, &slots_of(0))).expect("written");
    }
    let profile = read(&path).expect("readable").profile;
    let invalid: Vec<(u32, bool)> = profile.iter().map(|frame| (frame.frame, frame.invalid.is_some())).collect();
    assert_eq!(invalid, [(2, false), (3, true)]);
    // A kill cut the line of a third one.
    drop(run);
    let whole = fs::read(path.join(PROFILE)).expect("bytes");
    fs::write(path.join(PROFILE), [&whole[..], &b"{\"cell\":0"[..]].concat()).expect("written");
    let (mut run, _) = RunFolder::resume(&path).expect("resumed");
    run.profiled(&ProfiledFrame::without_samples((0, 4), 2, &slots_of(0))).expect("written");
    assert_eq!(read(&path).expect("readable").profile.len(), 3);
}

#[test]
fn a_folder_is_free_once_it_is_dropped_also_while_a_forked_child_has_its_file() {
    let (_folder, path, run) = with_frame();
    drop(run);
    let held = lock(&path).expect("nobody writes");
    let of_child = held.0.try_clone().expect("as fork does");
    assert!(lock(&path).is_err());
    drop(held);
    lock(&path).expect("nobody writes any more");
    drop(of_child);
}

#[test]
fn one_process_at_a_time_writes_to_a_folder_that_is_new() {
    let (_folder, path, run) = with_frame();
    let told = RunFolder::resume(&path).err().expect("it is being written").to_string();
    assert!(told.starts_with("another tithe is writing to "), "{told}");
    drop(run);
    let whole = fs::read(path.join("frames.jsonl")).expect("bytes");
    let again = RunFolder::create(&path, EXPERIMENT, &plan(), &Machine::default());
    assert!(again.err().expect("it is there").to_string().starts_with("cannot create the run folder "));
    assert_eq!(fs::read(path.join("frames.jsonl")).expect("bytes"), whole, "what is there stays");
    let (run, records) = RunFolder::resume(&path).expect("nobody writes any more");
    assert_eq!((run.path(), records.frames.len(), run.check()), (path.as_path(), 1, Ok(())));
}

#[test]
fn damaged_records_are_kept_as_they_were_first_found() {
    let (_folder, path, run) = with_frame();
    drop(run);
    let kept = |name: &str| fs::read_to_string(path.join(format!("{name}.damaged"))).ok();
    drop(RunFolder::resume(&path).expect("resumed"));
    assert_eq!((kept("slots.csv"), kept("frames.jsonl")), (None, None), "nothing was damaged");
    let damage = |sign: &str| {
        let text = fs::read_to_string(path.join("slots.csv")).expect("a text");
        let damaged = text.trim_end().rsplit_once(',').expect("fields").0.to_owned() + sign + "\n";
        fs::write(path.join("slots.csv"), &damaged).expect("written");
        damaged
    };
    let first = damage(",?");
    let (mut run, records) = RunFolder::resume(&path).expect("resumed");
    assert_eq!(records.damage.len(), 1);
    assert_eq!(kept("slots.csv"), Some(first.clone()));
    assert!(kept("frames.jsonl").is_some_and(|frames| frames.lines().count() == 1));
    run.frame(&counted(1), &slots_of(1)).expect("written");
    drop(run);
    damage(",!");
    let (_, records) = RunFolder::resume(&path).expect("resumed");
    assert_eq!(records.damage.len(), 1, "another frame is damaged");
    assert_eq!(kept("slots.csv"), Some(first), "a user may repair it by hand");
}

#[test]
fn a_cell_without_facts_has_no_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut plan) = (folder.path().join("run"), plan());
    plan.cells.push(Cell { id: "other".to_owned(), ..plan.cells[0].clone() });
    let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
    assert_eq!(refusal(&path), "", "no cell has begun");
    run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
    run.finding(&finding()).expect("written");
    assert_eq!(refusal(&path), "", "the second one has not begun");
    run.finding(&Finding { cell: 1, ..finding() }).expect("written");
    let told = refusal(&path);
    assert!(told.contains("cells/1.json is missing") && !told.contains("cells/0.json"), "{told}");
}

#[test]
fn a_run_that_has_measured_nothing_is_continued_by_the_plan_that_replaced_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, plan) = (folder.path().join("run"), plan());
    let run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
    let mut other = plan.clone();
    other.cells[0].frames_max += 1;
    run.plan(&other).expect("written");
    drop(run);
    fs::remove_dir(path.join(CELLS)).expect("no cell has begun");
    let (run, records) = RunFolder::resume(&path).expect("resumed");
    assert_eq!((records.plan, records.frames.len(), run.check()), (other, 0, Ok(())));
    fs::write(path.join(CELLS), "").expect("written");
    assert!(refusal(&path).contains(CELLS), "a file in place of the folder: {}", refusal(&path));
}

#[test]
fn logs_of_servers_are_kept_by_their_names() {
    let (folder, path, run) = with_frame();
    let log = folder.path().join("server.log");
    fs::write(&log, "started\n").expect("written");
    run.keep_log("c--epoch0--plain.log", &log);
    run.keep_log("missing.log", &folder.path().join("nowhere.log"));
    let kept: Vec<_> = fs::read_dir(path.join("logs")).expect("a folder").flatten().collect();
    assert_eq!(kept.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["c--epoch0--plain.log"]);
    assert_eq!(fs::read_to_string(kept[0].path()).expect("a text"), "started\n");
}

#[test]
fn a_row_of_an_arm_that_is_not_there_damages_its_own_frame() {
    let (_folder, path, mut run) = with_frame();
    run.frame(&counted(1), &slots_of(1)).expect("written");
    drop(run);
    let rows = fs::read_to_string(path.join("slots.csv")).expect("a text");
    let foreign = slots::line(&Slot { arm: 2, ..slots_of(0)[0] });
    fs::write(path.join("slots.csv"), rows + &foreign).expect("written");
    let records = read(&path).expect("readable");
    assert_eq!(records.frames.iter().map(|frame| frame.invalid.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(records.damage, ["cell 0, frame 0: line 6 of slots.csv is damaged: there is no arm 2"]);
    assert!(records.slots.iter().all(|slot| slot.arm < 2), "{:?}", records.slots);
}

#[test]
fn rows_of_a_damaged_frame_are_no_load_of_a_run_that_is_resumed() {
    let (_folder, path, mut run) = with_frame();
    run.frame(&counted(1), &slots_of(1)).expect("written");
    drop(run);
    let rows = fs::read_to_string(path.join("slots.csv")).expect("a text");
    let century = rows.replacen(",20000000,", ",3000000000000000000,", 1);
    fs::write(path.join("slots.csv"), century).expect("written");
    let (_, records) = RunFolder::resume(&path).expect("resumed");
    assert_eq!(records.frames.iter().map(|frame| frame.invalid.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!((records.slots, records.damage.len()), (slots_of(1), 1));
    let again = read(&path).expect("readable");
    assert_eq!((again.slots, again.damage.len()), (slots_of(1), 0), "a second reader finds no damage");
}

#[test]
fn a_line_that_was_changed_is_named_by_its_number() {
    let (_folder, path, mut run) = with_frame();
    (0..2).for_each(|_| run.finding(&finding()).expect("written"));
    let text = fs::read_to_string(path.join("evidence.jsonl")).expect("a text");
    let (first, second) = text.split_once('\n').expect("two lines");
    let changed = format!("{first}\n{}", second.replace("\"seal\"", "\"sear\""));
    fs::write(path.join("evidence.jsonl"), changed).expect("written");
    let told = refusal(&path);
    assert!(told.contains("line 2 of evidence.jsonl does not match its checksum"), "{told}");
    let cut = format!("{first}\n{}\n{first}\n", &first[..20]);
    fs::write(path.join("evidence.jsonl"), cut).expect("written");
    let told = refusal(&path);
    assert!(told.contains("line 2 of evidence.jsonl cannot be read"), "{told}");
}

proptest! {
    #[test]
    fn a_changed_byte_is_reported_or_changes_nothing(file in 0usize..6, place: proptest::sample::Index, byte: u8) {
        static RUN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let plan = plan();
            let run = RunFolder::create(&folder.path().join("run"), EXPERIMENT, &plan, &Machine::default());
            let mut run = run.expect("a run folder");
            run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
            for number in 0..2 {
                run.frame(&counted(number), &slots_of(number)).expect("written");
            }
            run.event(&Event::CellStarted { cell: 0 }).expect("written");
            run.finding(&finding()).expect("written");
            folder
        });
        let path = RUN.path().join("run");
        let whole = read(&path).expect("readable");
        let name = ["plan.json", "machine.json", "cells/0.json", "frames.jsonl", "slots.csv", "evidence.jsonl"][file];
        let bytes = fs::read(path.join(name)).expect("bytes");
        let mut changed = bytes.clone();
        changed[place.index(bytes.len())] = byte;
        fs::write(path.join(name), &changed).expect("written");
        let seen = read(&path);
        fs::write(path.join(name), &bytes).expect("written");
        if let Ok(seen) = seen && seen.damage.is_empty() {
            prop_assert_eq!(format!("{seen:?}"), format!("{whole:?}"), "{}", String::from_utf8_lossy(&changed));
        }
    }
}

#[test]
fn a_folder_of_another_format_is_refused_before_anything_of_it_is_read() {
    let folder = std::env::temp_dir().join(format!("tithe-test-format-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    for format in [FORMAT - 1, FORMAT + 1] {
        fs::write(folder.join("plan.json"), format!("{{\"format\": {format}}}")).expect("written");
        let Err(Fault::Machine(reason)) = open(&folder) else { panic!("format {format} is read") };
        let expected = format!("was written in format {format}, this tithe reads format {FORMAT}");
        assert!(reason.contains(&expected) && reason.contains("measure again"), "{reason}");
    }
    fs::remove_dir_all(&folder).expect("clean up");
}

#[test]
fn a_line_cut_by_a_kill_is_left_out_and_any_other_bad_line_is_an_error() {
    let read = |text| json::json_lines::<serde_json::Value>(text, "x").map(|values| values.len());
    assert_eq!(read("1\n2\n{\"cu").expect("the last line may be cut"), 2);
    assert!(read("1\n{\"cu\n2\n").is_err());
    assert!(read("1\n2x").is_err(), "no kill writes that");
}
