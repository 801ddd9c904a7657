//! Every failure reports its reason, ends its cell and never produces a number.

use super::*;

#[test]
fn five_mistakes_give_five_messages_and_nothing_is_started() {
    let bench = Bench::new("mistakes");
    let text = known_costs("", ARMS, "60 s")
        .replace("precision = \"0.2%\"", "precison = \"0.2%\"")
        .replace("cost = 0.05", "cost = 50")
        .replace("use = \"audit\"", "use = \"tls\"")
        .replace("records = 500", "records = \"many\"")
        .replace("ycsb = \"a\"", "ycsb = \"z\"");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml"]);
    assert_eq!(status(&output), 2);
    let told = err(&output);
    assert!(told.contains("5 problems in e.toml"), "{told}");
    for word in ["precison", "cost", "tls", "records", "\"z\""] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
    assert!(!bench.path("tithe-runs").exists());
}

#[test]
fn faults_invalidate_frames_or_end_the_cell_and_never_give_a_number() {
    for (setting, words, expected) in [
        ("wrong_answer_every = 50", "wrong answer", 4),
        ("fail_every = 10", "of the operations failed", 4),
        ("dies_after_operations = 3000", "connection", 4),
        ("refuses_to_start = true", "told to refuse", 4),
    ] {
        let bench = Bench::new("faults");
        bench.file("e.toml", &known_costs(setting, ARMS, "30 s"));
        let output = bench.tithe(&["run", "e.toml"]);
        let told = format!("{}{}", out(&output), err(&output));
        assert!(told.contains(words), "{setting}: {told}");
        let report = bench.report();
        if setting.starts_with("dies") {
            // Measurements before it died are kept; later ones are invalid.
            assert_eq!(status(&output), expected, "{setting}: {told}");
            assert!(report["cells"][0]["invalid"].as_array().is_some_and(|invalid| !invalid.is_empty()), "{report}");
            continue;
        }
        assert_eq!(status(&output), expected, "{setting}: {told}");
        for arm in report["cells"][0]["arms"].as_array().expect("arms") {
            let estimates = arm["estimates"].as_array().expect("estimates");
            assert!(estimates.iter().all(|estimate| estimate["effect"]["low"].is_null()), "{setting}: {arm}");
        }
    }
}

/// The value in the only run folder's `cells/0.json` that describes how the first cell ended.
fn ending(bench: &Bench) -> String {
    bench.kept_json("cells/0.json")["ending"].as_str().expect("an ending").to_owned()
}

#[test]
fn a_cell_ends_after_three_frames_invalid_for_one_reason() {
    let bench = Bench::new("hopeless");
    // Ten minutes of load, all of it worthless.
    bench.file("e.toml", &known_costs("fail_every = 10", ARMS, "10 min"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 4, "{}", err(&output));
    assert_eq!(invalid(&bench).len(), 3);
    let ending = ending(&bench);
    assert!(ending.starts_with("failed: 3 frames in a row were invalid for the same reason: "), "{ending}");
    assert!(ending.contains("of the operations failed"), "{ending}");
    assert!(err(&output).contains("3 frames in a row were invalid"), "{}", err(&output));
}

/// One message with each reason once and the next step, and neither empty tables nor empty pages.
#[test]
fn a_run_that_measured_nothing_ends_with_one_message() {
    let bench = Bench::new("nothing");
    let text = known_costs("refuses_to_start = true", ARMS, "60 s");
    let second = "[[workload]]\nycsb = \"c\"\n\n[[arm]]";
    bench.file("e.toml", &text.replacen("[[arm]]", second, 1));
    let output = bench.tithe(&["run", "e.toml"]);
    assert_eq!((status(&output), out(&output).as_str()), (4, ""), "{}", err(&output));
    let told = err(&output);
    assert_eq!(told.matches("told to refuse").count(), 1, "{told}");
    assert_eq!(told.matches("  ! not measured").count(), 2, "{told}");
    let last: Vec<&str> = told.lines().rev().take(4).collect();
    assert_eq!(last[3], "tithe: nothing was measured");
    assert!(last[1].starts_with("next: fix that, then tithe run --resume tithe-runs"), "{told}");
    assert!(last[0].starts_with("records: tithe-runs"), "{told}");
    assert!(bench.report()["cells"][0]["ending"].as_str().is_some_and(|why| why.contains("told to refuse")));
    assert!(!bench.run_folder().join("report.html").exists());
}

#[test]
fn a_failed_cell_is_taken_up_again_where_it_was_left_and_says_so_when_it_fails_again() {
    let bench = Bench::new("again");
    // Each start of the servers lasts for some frames.
    let lasts = format!("{FEW_OPERATIONS}\ndies_after_operations = 30_000");
    bench.file("e.toml", &known_costs(&lasts, ARMS, "10 min"));
    let first = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&first), 4, "{}", err(&first));
    let before = invalid(&bench);
    let good = before.iter().filter(|reason| reason.is_none()).count();
    assert!(good >= 3 && before[good..].iter().all(Option::is_some), "{before:?}");
    let run = bench.run_folder().display().to_string();

    let second = bench.tithe(&["run", "--resume", &run, "--quiet"]);
    assert_eq!(status(&second), 4, "{}", err(&second));
    let after = invalid(&bench);
    assert!(after.starts_with(&before), "what was measured is kept");
    assert!(after.len() >= before.len() + good && after[before.len()].is_none(), "nothing was measured: {after:?}");
    assert!(ending(&bench).starts_with("failed: 3 frames in a row"), "{}", ending(&bench));
    assert!(out(&second).contains("measured again after it failed: 3 frames in a row"), "{}", out(&second));
    let frames = bench.kept_lines("frames.jsonl");
    let epochs: Vec<&Value> = frames.iter().map(|frame| &frame["epoch"]).collect();
    assert_eq!((epochs[before.len() - 1], epochs[before.len()]), (&Value::from(0), &Value::from(1)));
}

#[test]
fn an_audit_log_that_loses_records_is_not_proven() {
    let bench = Bench::new("lossy");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &arm("lossy", "audit", "lose = 0.3"), "30 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 5, "{}", err(&output));
    assert_eq!(bench.report()["cells"][0]["arms"][1]["proof"]["proof"], "disproven");
    assert!(out(&output).contains("DISPROVEN"), "{}", out(&output));
    let verified = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&verified), 5, "{}", err(&verified));
    assert!(out(&verified).ends_with("\n1 claim does not hold\n"), "{}", out(&verified));
}
