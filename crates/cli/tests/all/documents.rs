//! A report as JSON in place of its run folder: every format that can be made from it, and a message for every other
//! one.

use serde_json::Value;

use crate::support::{Bench, FEW_OPERATIONS, err, known_costs, measured, out, sealed, status};

fn experiment() -> String {
    known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s")
}

/// A bench with one run; the run folder and the document in it.
fn with_document(name: &str) -> (Bench, String, String) {
    let (bench, output) = measured(name, &experiment());
    assert_eq!(status(&output), 0, "{}", err(&output));
    let run = bench.run_folder();
    let document = run.join("report.json").display().to_string();
    (bench, run.display().to_string(), document)
}

#[test]
fn reports_of_a_document_are_those_of_its_run_folder() {
    let (bench, run, document) = with_document("document");
    for format in [
        "text",
        "short",
        "html",
        "markdown",
        "pull-request",
        "json",
        "csv",
        "benchstat",
        "bencher",
        "otava",
        "oscal",
        "sarif",
    ] {
        let [made, again] = [&run, &document].map(|from| bench.tithe(&["report", from, "--format", format]));
        assert_eq!((status(&made), status(&again)), (0, 0), "{format}: {}{}", err(&made), err(&again));
        assert!(!made.stdout.is_empty() && made.stdout == again.stdout, "{format}");
    }
    let refused = bench.tithe(&["report", &document, "--format", "ycsb"]);
    assert_eq!((status(&refused), out(&refused)), (2, String::new()));
    assert!(err(&refused).contains("report.json: --format ycsb needs the run folder"), "{}", err(&refused));
    let [beside, again] = [&run, &document].map(|from| bench.tithe(&["compare", from, "--threshold", "50%"]));
    assert_eq!((status(&beside), status(&again)), (0, 0), "{}", err(&again));
    assert_eq!(out(&beside), out(&again));
}

#[test]
fn what_is_no_document_is_refused_with_its_place() {
    let (bench, _, document) = with_document("no-document");
    let whole = std::fs::read_to_string(&document).expect("the document");
    let newer = whole.replacen("\"format\": 3", "\"format\": 99", 1);
    assert_ne!(newer, whole);
    for (text, words) in [
        (newer, "it is of format 99, which a newer tithe wrote"),
        (experiment(), "line 1, column 2 is not JSON"),
        ("{}".to_owned(), "it is JSON and no report of tithe"),
        (whole[..whole.len() / 2].to_owned(), "it is cut short"),
        (whole.replacen("\"verdict\":\"", "\"verdict\":\"NOT_", 1), " is damaged: unknown variant `NOT_"),
    ] {
        let path = bench.file("d.json", &text).display().to_string();
        for command in [&["report", &path] as &[&str], &["compare", &path, &document]] {
            let output = bench.tithe(command);
            assert_eq!((status(&output), out(&output)), (2, String::new()), "{words}: {}", err(&output));
            assert!(err(&output).contains("d.json: ") && err(&output).contains(words), "{words}: {}", err(&output));
        }
    }
    std::fs::write(bench.path("d.json"), [0xff, 0xfe]).expect("written");
    let output = bench.tithe(&["report", "d.json"]);
    assert_eq!((status(&output), out(&output)), (2, String::new()));
    assert!(err(&output).contains("d.json: it is not UTF-8"), "{}", err(&output));
}

#[test]
fn auditors_get_one_observation_for_each_finding() {
    let (bench, run, _) = with_document("audited");
    let evidence = std::fs::read_to_string(std::path::Path::new(&run).join("evidence.jsonl")).expect("evidence");
    let parsed = |output: &std::process::Output| -> Value { serde_json::from_slice(&output.stdout).expect("JSON") };
    let count = |document: &Value| match document["runs"][0]["results"].as_array() {
        Some(results) => results.len(),
        None => document["assessment-results"]["results"][0]["observations"].as_array().expect("a list").len(),
    };
    for format in ["oscal", "sarif"] {
        let reported = bench.tithe(&["report", &run, "--format", format]);
        assert_eq!((status(&reported), count(&parsed(&reported))), (0, evidence.lines().count()), "{format}");
        // Standard output has only the document; text is on standard error.
        let verified = bench.tithe(&["verify", "e.toml", "--format", format]);
        assert_eq!(status(&verified), 0, "{}", err(&verified));
        assert_eq!(count(&parsed(&verified)), evidence.lines().count(), "{format}");
        assert!(err(&verified).contains("✓ sealed: "), "{}", err(&verified));
    }
    let lost = experiment().replace("\"seal\", cost = 0.05", "\"audit\", lose = 0.5");
    bench.file("lost.toml", &lost);
    let failed = bench.tithe(&["verify", "lost.toml", "--format", "sarif"]);
    assert_eq!(status(&failed), 5, "{}", err(&failed));
    let log = parsed(&failed);
    let results = log["runs"][0]["results"].as_array().expect("a list");
    assert!(results.iter().any(|result| result["kind"] == "fail" && result["level"] == "error"), "{results:?}");
    let rules = &log["runs"][0]["tool"]["driver"]["rules"];
    assert_eq!(rules[0]["properties"]["tags"][0], "PCI DSS 4.0.1 10.2", "{rules}");
}

#[test]
fn a_history_is_made_of_folders_and_documents_with_labels() {
    let (bench, run, document) = with_document("past");
    std::fs::create_dir(bench.path("kept")).expect("a folder");
    for commit in ["a1", "b2"] {
        std::fs::copy(&document, bench.path("kept").join(format!("{commit}.json"))).expect("a copy");
    }
    let told = bench.tithe(&["history", "kept", &format!("now={run}")]);
    assert_eq!(status(&told), 0, "{}", err(&told));
    for words in
        ["Too few runs to detect a change of 1 cost.", "a · sealed (net time per op), 3 runs", "  a1  ", "  now "]
    {
        assert!(out(&told).contains(words), "no {words:?} in {}", out(&told));
    }
    let page = bench.tithe(&["history", "kept", "--format", "html"]);
    assert!(out(&page).starts_with("<!DOCTYPE html>") && out(&page).contains("b2"), "{}", out(&page));
    let json: Value =
        serde_json::from_slice(&bench.tithe(&["history", "kept", "--format", "json"]).stdout).expect("JSON");
    assert_eq!(json["tithe_history"]["series"][0]["runs"].as_array().map(Vec::len), Some(2));

    // A document of an earlier version in the folder is reported and left out; if it is named itself, it is refused.
    let older = bench.path("kept").join("c3");
    std::fs::create_dir(&older).expect("a folder");
    let plan = std::fs::read_to_string(bench.path(&run).join("plan.json")).expect("a plan");
    let mut plan: Value = serde_json::from_str(&plan).expect("JSON");
    plan["format"] = 1.into();
    std::fs::write(older.join("plan.json"), plan.to_string()).expect("a plan");
    bench.file("kept/d4.json", r#"{"tithe_report": {}, "format": 1}"#);
    let told = bench.tithe(&["history", "kept", "--format", "json"]);
    assert_eq!(status(&told), 0, "{}", err(&told));
    let json: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let json = &json["tithe_history"];
    assert_eq!(json["series"][0]["runs"].as_array().map(Vec::len), Some(2), "{json}");
    let notes: Vec<&str> = json["notes"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let is_told = |name: &str, words: &str| {
        notes.iter().any(|note| note.starts_with("Left out: ") && note.contains(name) && note.contains(words))
    };
    assert!(is_told("c3", "was written in format 1") && is_told("d4.json", "format 1"), "{notes:?}");
    std::fs::create_dir(bench.path("old")).expect("a folder");
    std::fs::rename(&older, bench.path("old/c3")).expect("it moves");

    std::fs::create_dir(bench.path("empty")).expect("a folder");
    for (runs, words) in [
        (vec!["kept", "old/c3"], "was written in format 1"),
        (vec!["old"], "was written in format 1"),
        (vec![run.as_str(), run.as_str()], "is named twice: a run counts once"),
        (vec!["empty"], "empty is not a run, and has neither run folders nor documents (*.json) in it"),
        (vec!["nowhere"], "nowhere"),
    ] {
        let refused = bench.tithe(&[&["history"], &runs[..]].concat());
        assert_eq!(status(&refused), 2, "{runs:?}: {}", out(&refused));
        assert!(err(&refused).contains(words), "{}", err(&refused));
    }
}
