//! A report as JSON in place of its run folder: every format that can be made from it, and words for everything else.

use crate::support::{Bench, err, out, status};

const EXPERIMENT: &str = r#"title = "Known costs"
database = "simulated"
[data]
records = 500
[measure]
budget = "30 s"
precision = "0.2%"
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
[[arm]]
name = "sealed"
protections = [{ use = "seal", cost = 0.05 }]
"#;

/// A bench with one run; the run folder and the document in it.
fn measured(name: &str) -> (Bench, String, String) {
    let bench = Bench::new(name);
    bench.file("e.toml", EXPERIMENT);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let run = bench.run_folder();
    let document = run.join("report.json").display().to_string();
    (bench, run.display().to_string(), document)
}

#[test]
fn reports_of_a_document_are_those_of_its_run_folder() {
    let (bench, run, document) = measured("document");
    for format in ["text", "short", "html", "markdown", "pull-request", "json", "csv", "benchstat"] {
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
    let (bench, _, document) = measured("no-document");
    let whole = std::fs::read_to_string(&document).expect("the document");
    let newer = whole.replacen("\"format\": 3", "\"format\": 99", 1);
    assert_ne!(newer, whole);
    for (text, words) in [
        (newer, "it is of format 99, which a newer tithe wrote"),
        (EXPERIMENT.to_owned(), "line 1, column 2 is no JSON"),
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
    assert!(err(&output).contains("d.json: it is no text"), "{}", err(&output));
}
