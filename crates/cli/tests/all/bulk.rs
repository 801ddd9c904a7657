//! Bulk loads and scans as a user asks for them, on the built-in SQLite.

use crate::support::{Bench, err, out, status};

#[test]
fn rows_of_loads_and_scans_are_counted_and_checked() {
    let bench = Bench::new("bulk");
    bench.file(
        "e.toml",
        "title = \"Loads and scans\"\ndatabase = \"sqlite\"\n[data]\nrecords = 5000\n[measure]\nbudget = \"3 s\"\nprecision = \
         \"90%\"\ndesign = \"slices\"\nslot = \"50 ms\"\nstarts = 1\nwarmup = \"0 s\"\n[[workload]]\nbulk = \"multi\"\nproperties = { keep = \"5000\" }\n\
         [[workload]]\nscan = \"sort\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"encrypted\"\n\
         protections = [{ use = \"page-encryption\" }]\n",
    );
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--json"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report: serde_json::Value = serde_json::from_str(&out(&output)).expect("the report is JSON");
    let cells = report["tithe_report"]["cells"].as_array().expect("cells");
    let kept = bench.kept("evidence.jsonl");
    for (cell, (operation, note, holds)) in cells.iter().zip([
        (
            "MULTI-INSERT",
            "a row; latencies are of requests of 1000 rows",
            "batches are whole, and each row is as it was made",
        ),
        ("SORT", "a row; latencies are of scans of 5000 rows", "scans of each kind answer what the rows make"),
    ]) {
        let text = cell.to_string();
        assert!(text.contains(operation) && text.contains(note), "{text}");
        assert!(kept.contains(holds), "{holds}: {kept}");
    }
    // Rows are counted.
    let mut rows = 0;
    for frame in bench.kept_lines("frames.jsonl") {
        for arm in frame["arms"].as_array().expect("arms") {
            let operations = arm["operations"].as_u64().expect("a number");
            assert_eq!(operations % 1000, 0, "{arm}");
            rows += operations;
        }
    }
    assert!(rows > 0);
}

#[test]
fn words_name_loads_and_scans() {
    let bench = Bench::new("bulk-words");
    let words = ["--protect", "page-encryption", "--workload", "multi,sort", "--records", "5000", "--budget", "4 min"];
    let output = bench.tithe(&[&["plan", "sqlite"][..], &words].concat());
    let told = out(&output);
    assert_eq!(status(&output), 0, "{told}{}", err(&output));
    for (cell, slot) in [("multi", "50 ms"), ("sort", "250 ms")] {
        assert!(told.lines().any(|line| line.trim_start().starts_with(cell) && line.contains(slot)), "{told}");
    }
}

#[test]
fn what_a_product_lacks_is_told_before_anything_starts() {
    let bench = Bench::new("bulk-refused");
    let experiment = |workload: &str, arm: &str| {
        format!(
            "title = \"Loads\"\ndatabase = \"sqlite\"\n[data]\nrecords = 1000\n[[workload]]\n{workload}\n[[arm]]\n\
             name = \"plain\"\n[[arm]]\nname = \"other\"\nprotections = [{{ {arm} }}]\n"
        )
    };
    let encrypted = "use = 'page-encryption'";
    for (workload, arm, expected) in [
        ("bulk = \"copy\"", encrypted, "SQLite has no bulk load `copy`; what it has: multi and single"),
        ("bulk = \"load\"", encrypted, "SQLite has no bulk load `load`"),
        ("bulk = \"pipeline\"", encrypted, "SQLite has no bulk load `pipeline`"),
        (
            "bulk = \"multi\"\nproperties = { table = \"foreign\" }",
            encrypted,
            "SQLite has no table `foreign`; it has plain, keyed and trigger",
        ),
        (
            "bulk = \"multi\"\nproperties = { batch = \"5000\", rows = \"7\" }",
            encrypted,
            "`5000` is too many for `multi` with 7 columns",
        ),
        ("bulk = \"multi\"", "use = 'columns'", "no chosen column is in a table with a key"),
        ("scan = \"sort\"", "use = 'columns'", "encrypted columns cannot be computed with in the server"),
        ("scan = \"join\"", encrypted, "`scan` has no preset `join`"),
    ] {
        bench.file("e.toml", &experiment(workload, arm));
        let output = bench.tithe(&["run", "e.toml"]);
        let told = err(&output);
        assert!(told.contains(expected), "{workload} {arm}: {told}");
        assert_eq!(status(&output), 2, "{told}");
        assert!(!bench.path("tithe-runs").exists());
    }
}

#[test]
fn rows_with_encrypted_columns_are_loaded_and_proven() {
    let bench = Bench::new("bulk-columns");
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"columns\"\nprotections = [{ use = 'columns' }]\n";
    bench.file(
        "e.toml",
        &format!(
            "title = \"Loads\"\ndatabase = \"sqlite\"\n[data]\nrecords = 1000\n[measure]\nslot = \"200 ms\"\n[[workload]]\n\
             bulk = \"single\"\nproperties = {{ table = \"keyed\", batch = \"50\" }}\n{arms}"
        ),
    );
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = out(&output) + &err(&output);
    assert_eq!(status(&output), 0, "{told}");
    assert!(told.contains("the server holds ciphertext in encrypted columns"), "{told}");
    assert!(told.contains("batches are whole"), "{told}");
}
