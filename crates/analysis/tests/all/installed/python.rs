//! CSV and JUnit's XML, read by an independent program: Python has a reader for both.

use std::process::Command;

use serde_json::{Value, json};
use tithe_analysis::{
    Analysis,
    assess::assess,
    compare,
    report::{comparison::junit, csv},
};

use crate::synthetic::Invented;

/// Text that needs quoting and escaping.
const FOREIGN: &str = "a, \"b\" & <c attribute='1'>";

/// The output of the Python `script` for `text`, which it receives as `text`. Without Python `None` after a message,
/// and the test fails with `CI` set.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn read(script: &str, text: &str) -> Option<Value> {
    let script = format!(
        "import csv, io, json, sys, xml.etree.ElementTree as xml\ntext = sys.argv[1]\nprint(json.dumps({script}))"
    );
    let Ok(output) = Command::new("python3").args(["-c", &script, text]).output() else {
        assert!(std::env::var_os("CI").is_none(), "there is no Python");
        eprintln!("SKIPPED: there is no python3");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn run(seed: u64) -> Analysis {
    let mut analysis = assess(&Invented { seed, latencies: false, ..Invented::default() }.records());
    analysis.run = format!("{FOREIGN} {seed}");
    analysis
}

#[test]
fn a_table_is_read_as_it_was_meant() {
    let analysis = run(1);
    let Some(rows) = read("list(csv.reader(io.StringIO(text, newline='')))", &csv::render(&analysis)) else { return };
    let rows = rows.as_array().expect("rows");
    let estimates: usize = analysis.cells.iter().flat_map(|cell| &cell.arms).map(|arm| arm.estimates.len()).sum();
    assert_eq!(rows.len(), 1 + estimates);
    assert_eq!(rows[0], json!(csv::COLUMNS.map(|(name, _)| name).to_vec()));
    assert_eq!(rows[1][0], json!(format!("{FOREIGN} 1")));
}

#[test]
fn tests_of_a_comparison_are_read_as_they_were_meant() {
    let subjects = [run(1), run(2)];
    let compared = compare::compare(&subjects, &[]).expect("runs alike");
    let script = "[[suite.get('name'), suite.get('tests'), [test.get('classname') for test in suite]] for suite in \
                  xml.fromstring(text.encode())]";
    let Some(suites) = read(script, &junit::render(&compared, None)) else { return };
    let tests = suites[0][2].as_array().expect("tests").len();
    assert_eq!(suites[0][0], json!(format!("tithe compare: {}", compared.runs.join(", "))));
    assert_eq!(suites[0][1], json!(tests.to_string()));
    assert!(tests > 0 && compared.runs[1].contains(FOREIGN), "{suites}");
}
