//! `tithe atlas`: a run is kept or refused, and the pages are made from what is kept.

use serde_json::{Value, json};

use crate::support::{Bench, FEW_OPERATIONS, err, known_costs, measured, out, sealed, status};

fn experiment() -> String {
    known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s").replace("[[workload]]", "[[workload]]\nname = \"half updates\"")
}

/// A run of the experiment, which is in the bench's folder `atlas` as well, on a machine that seems idle, whatever
/// else runs.
fn run() -> (Bench, String) {
    let (bench, _) = measured("atlas", &experiment());
    std::fs::create_dir_all(bench.path("atlas")).expect("a folder");
    bench.file("atlas/known.toml", &experiment());
    let frames: Vec<Value> = bench.kept_lines("frames.jsonl");
    let calm = |mut frame: Value| {
        frame["host"] = json!({ "load": 1.0, "cpu_pressure": null, "io_pressure": null, "steal": 0.0 });
        frame.as_object_mut().expect("a frame").remove("crc32");
        format!("{frame}\n")
    };
    let frames: String = frames.into_iter().map(calm).collect();
    std::fs::write(bench.run_folder().join("frames.jsonl"), frames).expect("frames");
    let run = bench.run_folder().display().to_string();
    (bench, run)
}

fn add(bench: &Bench, run: &str) -> (i32, String) {
    let arguments = ["atlas", "add", run, "--commit", "1234abcd", "--into", "kept", "--experiments", "atlas"];
    let output = bench.tithe(&arguments);
    (status(&output), format!("{}{}", out(&output), err(&output)))
}

#[test]
fn a_run_is_kept_once_and_shown_on_both_pages() {
    let (bench, run) = run();
    let (status, told) = add(&bench, &run);
    assert_eq!(status, 0, "{told}");
    assert!(told.starts_with("kept/") && told.ends_with("-known.json\n"), "{told}");
    let (status, told) = add(&bench, &run);
    assert!(status == 2 && told.contains("json exists: the atlas keeps one run"), "{told}");
    let output = bench.tithe(&["atlas", "page", "kept"]);
    assert_eq!(
        (crate::support::status(&output), out(&output).as_str()),
        (0, "kept.md\nkept.html\n"),
        "{}",
        err(&output)
    );
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).expect("a page");
    let (text, page) = (read("kept.md"), read("kept.html"));
    assert!(text.contains("1 cost of protections") && text.contains("1234abcd"), "{text}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("1234abcd"));
    bench.file("kept/other.json", "{}");
    let output = bench.tithe(&["atlas", "page", "kept"]);
    assert!(err(&output).contains("other.json: it is not an extract"), "{}", err(&output));
}

#[test]
fn a_run_that_does_not_qualify_is_not_kept() {
    let (bench, run) = run();
    let document = bench.run_folder().join("report.json").display().to_string();
    assert!(add(&bench, &document).1.contains("only a folder has checksums"));
    let slots = bench.run_folder().join("slots.csv");
    let whole = std::fs::read_to_string(&slots).expect("slots");
    let torn: Vec<&str> =
        whole.lines().enumerate().map(|(number, line)| if number == 20 { "0,0,1" } else { line }).collect();
    std::fs::write(&slots, torn.join("\n") + "\n").expect("slots");
    let (status, told) = add(&bench, &run);
    assert!(status == 2 && told.contains("Records are damaged (cell 0, frame 0: line 21 of slots.csv"), "{told}");
    std::fs::write(&slots, whole).expect("slots");
    bench.file("atlas/known.toml", &experiment().replace("30 s", "31 s"));
    assert!(add(&bench, &run).1.contains("Its experiment is none of the atlas"));
    bench.file("atlas/known.toml", &experiment());
    bench.tithe(&["run", "e.toml", "--quiet", "--budget", "29 s", "--runs", "shorter"]);
    let shorter = std::fs::read_dir(bench.path("shorter")).expect("a folder").flatten().next().expect("a run");
    let (_, told) = add(&bench, &shorter.path().display().to_string());
    assert!(told.contains("changed in the file or by an option"), "{told}");
    assert_eq!(std::fs::read_dir(bench.path("kept")).expect("a folder").count(), 0);
}

/// The pages in docs are made from the runs in docs/atlas. Other builds offer other protections.
#[cfg(all(feature = "mongodb", feature = "wiredtiger"))]
#[test]
fn the_pages_of_the_atlas_show_what_is_kept() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let Ok(runs) = std::fs::read_dir(docs.join("atlas")) else { return };
    let runs: Vec<_> = runs.flatten().map(|entry| entry.path()).collect();
    if !runs.iter().any(|path| path.extension().is_some_and(|it| it == "json")) {
        return;
    }
    let bench = Bench::new("pages-of-the-atlas");
    std::fs::create_dir_all(bench.path("atlas")).expect("a folder");
    for path in &runs {
        std::fs::copy(path, bench.path("atlas").join(path.file_name().expect("a name"))).expect("the run is copied");
    }
    let output = bench.tithe(&["atlas", "page", "atlas"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    for name in ["atlas.md", "atlas.html"] {
        let read = |path| std::fs::read_to_string(path).expect("a page");
        assert_eq!(read(bench.path(name)), read(docs.join(name)), "{name}: tithe atlas page, with all features");
    }
}
