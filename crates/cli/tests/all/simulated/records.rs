//! The run folder: complete, read again, compared, resumed, damaged.

use super::*;

#[test]
fn below_fifteen_frames_nothing_is_answered() {
    let (bench, _) = measured("few", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let frames = bench.run_folder().join("frames.jsonl");
    let text = std::fs::read_to_string(&frames).expect("frames");
    std::fs::write(&frames, text.split_inclusive('\n').take(6).collect::<String>()).expect("six frames");
    let shown = bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", "short"]);
    let shown = words(&out(&shown));
    assert!(shown.contains("NOT_ENOUGH_FRAMES"), "{shown}");
    assert!(shown.contains("~ not enough data") && !shown.contains("costs 20"), "{shown}");
    let long = bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", "json"]);
    assert!(out(&long).contains("not enough frames: 6 of 15"), "{}", out(&long));
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let (bench, _) = measured("bytes", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let run = bench.run_folder().display().to_string();
    for format in ["text", "short", "html", "markdown", "pull-request", "json", "csv", "benchstat", "ycsb"] {
        let once = bench.tithe(&["report", &run, "--format", format]);
        let twice = bench.tithe(&["report", &run, "--format", format]);
        assert_eq!(status(&once), 0, "{}", err(&once));
        assert!(!once.stdout.is_empty());
        assert_eq!(once.stdout, twice.stdout, "{format}");
    }
}

#[test]
fn runs_are_compared_and_a_threshold_gives_a_status() {
    let bench = Bench::new("compare");
    let run = |cost: f64, folder: &str| {
        bench.file("e.toml", &known_costs(FEW_OPERATIONS, &sealed(cost), "30 s"));
        let output = bench.tithe(&["run", "e.toml", "--quiet", "--runs", folder]);
        assert_eq!(status(&output), 0, "{}", err(&output));
        let mut runs = std::fs::read_dir(bench.path(folder)).expect("run folders").flatten();
        runs.next().expect("a run").path().display().to_string()
    };
    let (cheap, dear) = (run(0.05, "before"), run(0.3, "after"));
    let output = bench.tithe(&["compare", &cheap, &dear, "--threshold", "5%"]);
    assert_eq!(status(&output), 6, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("costs less"), "{}", out(&output));
    assert!(err(&output).contains("grew by"), "{}", err(&output));
    assert!(err(&output).contains("points") && err(&output).contains("beyond 5"), "{}", err(&output));
    let same = bench.tithe(&["compare", &dear, &cheap, "--threshold", "5%"]);
    assert_eq!(status(&same), 0, "{}", err(&same));
    assert!(err(&same).contains("no cost is certainly beyond 5"), "{}", err(&same));
    let alone = bench.tithe(&["compare", &dear, "--threshold", "5 %"]);
    assert_eq!(status(&alone), 6, "{}", err(&alone));
    let itself = bench.tithe(&["compare", &dear, &dear]);
    assert_eq!(status(&itself), 2);
    assert!(err(&itself).contains("does not differ from itself"), "{}", err(&itself));
    let page = bench.tithe(&["compare", &cheap, &dear, "--format", "html"]);
    assert!(out(&page).starts_with("<!DOCTYPE html>"), "{}", err(&page));
    assert_eq!(status(&bench.tithe(&["compare", &cheap])), 2);

    // Every format contains the text of a label, and reports how far the costs are apart.
    let (before, after) = (format!("before={cheap}"), format!("after={dear}"));
    for (format, wanted) in [
        ("text", "Costs less in before than in after"),
        ("html", "Costs less in before than in after"),
        ("markdown", "| after |"),
        ("json", "\"run\": \"after\""),
        ("junit", "sealed in after"),
    ] {
        let told = bench.tithe(&["compare", &before, &after, "--threshold", "5%", "--format", format]);
        assert_eq!(status(&told), 6, "{}", err(&told));
        assert!(out(&told).contains(wanted), "{format}: {}", out(&told));
        assert!(out(&told).contains("points"), "{format}: {}", out(&told));
    }
    let json = bench.tithe(&["compare", &before, &after, "--threshold", "5%", "--format", "json"]);
    let document: Value = serde_json::from_str(&out(&json)).expect("JSON");
    let change = &document["tithe_comparison"]["matches"][0]["changes"][0];
    assert_eq!((&change["beyond"], &document["tithe_comparison"]["beyond"]), (&true.into(), &1.into()), "{document}");
    for (runs, wanted) in [
        ([format!("=./{cheap}"), dear.clone()], "neither a run nor LABEL=RUN"),
        ([format!("a={cheap}"), format!("a={dear}")], "two runs have the label"),
        ([format!("a={cheap}"), "b=nowhere".to_owned()], "nowhere"),
    ] {
        let refused = bench.tithe(&["compare", &runs[0], &runs[1]]);
        assert_eq!(status(&refused), 2, "{}", out(&refused));
        assert!(err(&refused).contains(wanted), "{}", err(&refused));
    }
    assert_eq!(status(&bench.tithe(&["compare", &cheap, &dear, "--threshold", "much"])), 2);
}

#[test]
fn a_killed_run_continues_after_its_last_complete_frame() {
    let bench = Bench::new("killed");
    // It needs such a precision that it does not end during the test.
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "1 h").replace("0.2%", "0.01%"));
    let mut child = Process::unheard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    while bench.frames_so_far() < 5 {
        assert!(!child.has_ended(), "the run ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill();
    let run = bench.run_folder();
    let kept = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    let complete: Vec<&str> = kept.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();

    // Nothing of the killed run blocks the next one. The run is long, so it is interrupted once it has continued.
    let mut resumed = bench.command(&["run", "--resume", &run.display().to_string(), "--quiet"]);
    let output = interrupted_after(complete.len() + 5, &bench, &mut resumed);
    assert_eq!(status(&output), 130, "{}", err(&output));
    assert!(out(&output).contains("tithe run --resume"), "{}", out(&output));

    let after = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    assert!(after.starts_with(&complete.concat()), "complete frames are kept as they were");
    let numbers: Vec<u64> = after
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a frame")["frame"].as_u64().expect("a number"))
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no frame twice, none left out");
    let place = |line: &str| {
        let frame: Value = serde_json::from_str(line).expect("a frame");
        ["epoch", "start"].map(|name| frame[name].as_u64().expect("a number"))
    };
    let next = place(complete[complete.len() - 1]).map(|number| number + 1);
    assert!(after.lines().skip(complete.len()).all(|line| place(line) == next), "an epoch and a start of its own");
    let sandboxes = std::fs::read_dir(&run).expect("the folder").flatten();
    assert_eq!(sandboxes.filter(|entry| entry.file_name().to_string_lossy().starts_with("tithe-sandbox")).count(), 0);
}

#[test]
fn a_run_removes_what_a_killed_one_has_left_in_the_folder_beside_its_own() {
    let bench = Bench::new("beside");
    let left = bench.path("tithe-runs/killed/tithe-sandbox-0-0");
    std::fs::create_dir_all(left.join("data")).expect("a folder");
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let here = format!("{} {}", read("/proc/sys/kernel/hostname"), read("/etc/machine-id"));
    std::fs::write(left.join("tithe-sandbox.lock"), here).expect("written");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let verified = bench.tithe(&["verify", "e.toml"]);
    assert!(!left.exists(), "{}{}", out(&verified), err(&verified));
}

#[test]
fn the_folder_of_a_killed_verification_is_in_the_way_of_no_process_with_its_number() {
    let bench = Bench::new("number");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let line = "mkdir -p tithe-runs/verify-$$ && exec \"$0\" verify e.toml --allow-commands";
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_tithe")]).current_dir(bench.path(""));
    shell.env("TITHE_SIMULATED", "1").env("XDG_STATE_HOME", bench.path("state"));
    let output = shell.output().expect("a shell");
    assert_eq!(status(&output), status(&bench.tithe(&["verify", "e.toml"])), "{}", err(&output));
}

#[test]
fn a_threshold_hides_no_failure() {
    let threshold = |settings: &str, arms: &str| {
        let bench = Bench::new("gate");
        bench.file("e.toml", &known_costs(settings, arms, "30 s"));
        let ran = status(&bench.tithe(&["run", "e.toml", "--quiet"]));
        let run = bench.run_folder().display().to_string();
        let compared = bench.tithe(&["compare", &run, "--threshold", "5%"]);
        (ran, status(&compared), err(&compared))
    };
    let (dear, lossy) = (&sealed(0.3), &arm("lossy", "audit", "lose = 0.3"));
    let (ran, compared, told) = threshold(FEW_OPERATIONS, &[dear.as_str(), lossy].concat());
    assert_eq!((ran, compared), (5, 5), "{told}");
    assert!(told.contains("sealed: the cost in") && told.contains("lossy: disproven"), "{told}");
    let (ran, compared, told) = threshold("fail_every = 10", dear);
    assert_eq!((ran, compared), (4, 4), "{told}");
    assert!(told.contains("was not measured\n"), "{told}");
    let (ran, compared, told) = threshold(&format!("{FEW_OPERATIONS}\ndies_after_operations = 60_000"), dear);
    assert_eq!((ran, compared), (4, 4), "{told}");
    assert!(told.contains("was not measured to its end"), "{told}");
}

#[test]
fn a_threshold_hides_no_arm_that_is_not_compared() {
    let lossy = &arm("lossy", "audit", "lose = 0.3");
    let (before, _) = measured("gate-before", &known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s"));
    let (after, _) =
        measured("gate-after", &known_costs(FEW_OPERATIONS, &[&sealed(0.05), lossy.as_str()].concat(), "30 s"));
    let [before_run, after_run] = [&before, &after].map(|bench| bench.run_folder().display().to_string());
    let compared = before.tithe(&["compare", &before_run, &after_run, "--threshold", "50%"]);
    assert_eq!(status(&compared), 5, "{}", err(&compared));
    assert!(err(&compared).contains("lossy: disproven"), "{}", err(&compared));
    // An arm that both runs have, one of them with too few frames.
    let few: String = after.kept("frames.jsonl").split_inclusive('\n').take(3).collect();
    std::fs::write(after.run_folder().join("frames.jsonl"), few).expect("written");
    let compared = before.tithe(&["compare", &before_run, &after_run, "--threshold", "50%"]);
    assert_eq!(status(&compared), 4, "{}", err(&compared));
}

#[test]
fn a_plan_of_another_build_is_fitted_or_refused_and_never_a_panic() {
    let (bench, output) = measured("fitted", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    assert_eq!(status(&output), 0, "{}", err(&output));
    let folder = bench.run_folder();
    let plan_text = std::fs::read_to_string(folder.join("plan.json")).expect("the plan");
    // As if it had been interrupted: there is something to resume.
    let cell = bench.kept_json("cells/0.json");
    let open = serde_json::to_string(&cell).expect("JSON").replace(cell["ending"].as_str().expect("text"), "");
    let resumed = |change: &dyn Fn(&mut Value)| {
        let mut plan: Value = serde_json::from_str(&plan_text).expect("JSON");
        change(&mut plan);
        std::fs::write(folder.join("plan.json"), plan.to_string()).expect("written");
        std::fs::write(folder.join("cells/0.json"), &open).expect("written");
        bench.tithe(&["run", "--resume", &folder.display().to_string(), "--quiet"])
    };
    let protections = |plan: &mut Value, arm: usize| plan["experiment"]["arms"][arm]["protections"][0].take();

    let filled = resumed(&|plan| {
        let mut seal = protections(plan, 1);
        seal["options"] = Value::Object(Default::default());
        plan["experiment"]["arms"][1]["protections"][0] = seal;
    });
    assert_eq!(status(&filled), 0, "{}", err(&filled));
    let told = "plan.json lacks experiment.arms[1].protections[0].options.cost: taken as its default, `0.05`";
    assert!(err(&filled).contains(told), "{}", err(&filled));
    let events = std::fs::read_to_string(folder.join("events.jsonl")).expect("events");
    assert!(events.contains("taken as its default"), "{events}");
    let kept = std::fs::read_to_string(folder.join("plan.json")).expect("the plan");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let cost = &kept["experiment"]["arms"][1]["protections"][0]["options"]["cost"];
    assert!(cost.is_object(), "what was filled in is measured, and the plan does not say it: {kept}");

    let slots = std::fs::read(folder.join("slots.csv")).expect("slots");
    for (words, change) in [
        (
            "no protection \"shield\"",
            &(|plan: &mut Value| {
                plan["experiment"]["arms"][1]["protections"][0]["id"] = Value::from("shield");
            }) as &dyn Fn(&mut Value),
        ),
        ("options.colour: `seal` has no such option", &|plan| {
            plan["experiment"]["arms"][1]["protections"][0]["options"]["colour"] = serde_json::json!({"text": "red"});
        }),
        ("cells[0].workload: there is no such workload", &|plan| plan["cells"][0]["workload"] = Value::from(3)),
        ("cells[0].arrivals: no operations can start", &|plan| {
            plan["cells"][0]["arrivals"] = serde_json::json!({"even": 1e300});
        }),
        ("experiment.settings.seal_cost: `seal_cost` cannot be set", &|plan| {
            plan["experiment"]["settings"]["seal_cost"] = Value::from("0");
        }),
        ("this build has no database \"oracle\"", &|plan| plan["experiment"]["database"] = Value::from("oracle")),
    ] {
        let refused = resumed(change);
        assert!([1, 2].contains(&status(&refused)), "{words}: {} {}", status(&refused), err(&refused));
        for words in [words, "plan.json", "experiment.toml"] {
            assert!(err(&refused).contains(words), "{words}: {}", err(&refused));
        }
        assert_eq!(std::fs::read(folder.join("slots.csv")).expect("slots"), slots, "nothing was changed");
    }
    std::fs::write(folder.join("plan.json"), &plan_text).expect("written");
    std::fs::remove_file(folder.join("cells/0.json")).expect("removed");
    let refused = bench.tithe(&["report", &folder.display().to_string()]);
    assert_eq!(status(&refused), 2);
    assert!(err(&refused).contains("cells/0.json is missing"), "{}", err(&refused));
}

#[test]
fn damaged_slots_are_told_by_file_and_line_and_their_frames_are_left_out() {
    let (bench, _) = measured("damaged", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let folder = bench.run_folder();
    let run = folder.display().to_string();
    let whole = std::fs::read_to_string(folder.join("slots.csv")).expect("slots");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let frames = invalid(&bench).len();
    let with = |number: usize, line: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = line;
        lines.concat()
    };
    let negative = lines[20].replacen(&lines[20].split(',').nth(7).expect("a field").to_owned(), "-1", 1);
    for (text, words, left_out) in [
        (String::new(), "line 1 of slots.csv does not name its columns", frames),
        (lines[0].to_owned(), "slots.csv has no row of this frame", frames),
        (with(1, "cell,frame,block\n"), "line 1 of slots.csv does not name its columns", frames),
        (with(21, &negative), "line 21 of slots.csv is damaged: \"-1", 1),
        (with(21, "0,0,1\n"), "line 21 of slots.csv is damaged: it has 3 of", 1),
        (with(21, "what was this\n"), "line 21 of slots.csv is damaged, and ", 1),
        (with(21, ""), "slots.csv lacks rows or has foreign ones", 1),
        (whole[..whole.len() - 2].to_owned(), "is damaged: it is cut short", 1),
        (lines[..lines.len() - 1].concat(), "slots.csv lacks rows or has foreign ones", 1),
    ] {
        std::fs::write(folder.join("slots.csv"), text).expect("written");
        for format in ["text", "json", "ycsb"] {
            let output = bench.tithe(&["report", &run, "--format", format]);
            assert_eq!(status(&output), 1, "{words} {format}: {}", err(&output));
            assert!(err(&output).contains(words), "{words} {format}: {}", err(&output));
            let count = if left_out == 1 { "1 frame is".to_owned() } else { format!("{left_out} frames are") };
            assert!(err(&output).contains(&format!("{count} left out of the figures")), "{words}: {}", err(&output));
        }
        let report = bench.tithe(&["report", &run]);
        assert!(out(&report).contains("slots.csv"), "{words}: {}", out(&report));
    }
    // A user who resumes such a run is warned, and finds the original records next to the new ones.
    let cell = bench.kept_json("cells/0.json");
    let open = serde_json::to_string(&cell).expect("JSON").replace(cell["ending"].as_str().expect("text"), "");
    std::fs::write(folder.join("cells/0.json"), open).expect("written");
    let text = with(21, "0,0,1\n");
    std::fs::write(folder.join("slots.csv"), &text).expect("written");
    let resumed = bench.tithe(&["run", "--resume", &run, "--quiet"]);
    assert_eq!(status(&resumed), 1, "{}", err(&resumed));
    assert!(err(&resumed).contains("line 21 of slots.csv is damaged"), "{}", err(&resumed));
    assert!(out(&resumed).contains("line 21 of slots.csv is damaged"), "{}", out(&resumed));
    assert_eq!(bench.kept("slots.csv.damaged"), text);
    // The remains of an incomplete frame after a kill are no damage.
    std::fs::write(folder.join("slots.csv"), format!("{whole}0,{frames},0,0,0,9,9,9,9,9,9,9\n0,{frames},0,0,1,"))
        .expect("written");
    let output = bench.tithe(&["report", &run]);
    assert_eq!((status(&output), err(&output)), (0, String::new()));
}

#[test]
fn verify_looks_at_everything_and_times_nothing() {
    let bench = Bench::new("verify");
    bench.file("e.toml", &known_costs("", ARMS, "60 s"));
    let output = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("every claim holds"), "{}", out(&output));
    let left = std::fs::read_dir(bench.path("tithe-runs")).expect("the folder").count();
    assert_eq!(left, 0, "nothing is kept");
    // Without a measurement there is no budget, neither the file's nor that of the command line.
    bench.file("e.toml", &known_costs("", ARMS, "2 s"));
    assert_eq!(status(&bench.tithe(&["plan", "e.toml"])), 2);
    for arguments in [&["verify", "e.toml"][..], &["verify", "e.toml", "--budget", "1 s"]] {
        let output = bench.tithe(arguments);
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    }
}

#[test]
fn the_run_folder_is_complete_and_other_tools_read_its_histograms() {
    use hdrhistogram::serialization::{Deserializer, interval_log};
    let (bench, _) = measured("folder", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let run = bench.run_folder();
    for name in [
        "experiment.toml",
        "plan.json",
        "machine.json",
        "cells/0.json",
        "events.jsonl",
        "frames.jsonl",
        "slots.csv",
        "evidence.jsonl",
        "report.html",
        "report.md",
        "report.json",
        "report.csv",
    ] {
        assert!(run.join(name).metadata().is_ok_and(|metadata| metadata.len() > 0), "{name}");
    }
    let log = std::fs::read(run.join("histograms").join("a--sealed.hlog")).expect("the log");
    let mut operations = 0;
    for entry in interval_log::IntervalLogIterator::new(&log) {
        if let interval_log::LogEntry::Interval(interval) = entry.expect("a line of the log") {
            use std::io::Read;
            let mut decoded = Vec::new();
            base64_reader(interval.encoded_histogram()).read_to_end(&mut decoded).expect("base64");
            let histogram: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut decoded.as_slice()).expect("a histogram");
            operations += histogram.len();
        }
    }
    let frames = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    let counted: u64 = frames
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a frame"))
        .flat_map(|frame| frame["arms"][1]["latency"].as_object().expect("latencies").clone())
        .flat_map(|(_, buckets)| buckets.as_array().expect("buckets").clone())
        .map(|bucket| bucket[1].as_u64().expect("a count"))
        .sum();
    assert_eq!(operations, counted);
}

/// Decodes the base64 of a histogram log.
fn base64_reader(text: &str) -> impl std::io::Read {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = ALPHABET.iter().position(|known| *known == letter).expect("a base64 letter") as u32;
        (bits, count) = ((bits << 6) | value, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    std::io::Cursor::new(bytes)
}
