//! Samples of output in documents have the format of this version's output. `tools/sample-output` writes them.
//! Measurements have a picture, which `tools/draw-evaluation` draws.

use std::{fs, io::ErrorKind, process::Command};

use super::root;

/// The samples of a document: the text between `<!-- sample: NAME -->` and `<!-- end of sample -->`.
fn samples(document: &str) -> Vec<&str> {
    let parts = document.split("<!-- sample: ").skip(1);
    parts.map(|part| part.split_once("<!-- end of sample -->").expect("an end").0).collect()
}

/// The mistake in the line of one arm: `  ✓ tls  +14.9 % [14.4, 15.5]  +3.15 µs`.
fn flaw(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // The name of an arm may contain blanks: `TLS + pgaudit`.
    let is_cost = |word: &str| word == "~" || word.starts_with(['+', '−', '×']) && word.ends_with(|c: char| c != '+');
    let cost = words.iter().position(|word| is_cost(word));
    let Some(cost) = cost.filter(|cost| *cost >= 2) else { return Some("no cost behind a mark and a name") };
    let is_factor = words[cost].starts_with('×');
    let has_sign = words.get(cost + 1) == Some(&"%");
    match (is_factor, has_sign, words[cost]) {
        (true, true, _) => Some("a factor in percent"),
        (false, false, cost) if cost != "~" => Some("no percent sign behind the cost"),
        _ if !line.contains(['[', '~']) => Some("no interval"),
        _ if line.matches('[').count() > 1 => Some("two intervals"),
        _ => None,
    }
}

#[test]
fn samples_have_the_form_of_what_is_printed() {
    for name in ["README.md", "docs/tutorial.md"] {
        let text = fs::read_to_string(root().join(name)).expect("a document");
        let samples = samples(&text);
        assert!(!samples.is_empty(), "{name} has no sample");
        for sample in samples {
            let is_row = |line: &&str| ["  ✓ ", "  ≡ ", "  ? "].iter().any(|mark| line.starts_with(mark));
            let rows: Vec<&str> = sample.lines().filter(is_row).collect();
            assert!(rows.len() >= 3, "{name}: {sample}");
            assert!(sample.contains("What it costs ──") && sample.contains("claims hold"), "{name}: {sample}");
            assert!(sample.contains("without protection") && !sample.contains("✗"), "{name}: {sample}");
            for row in rows.iter().filter(|row| !row.contains("evidence: ")) {
                assert_eq!(flaw(row), None, "{name}: {row}");
            }
        }
    }
}

/// `identical-runs.csv` describes the runs of `identical.csv`.
#[test]
fn measurements_have_a_picture() {
    let folder = root().join("docs/evaluation");
    let page = fs::read_to_string(root().join("docs/evaluation.md")).expect("a document");
    let names = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path());
    let tables = names.filter(|path| path.extension().is_some_and(|extension| extension == "csv"));
    let mut count = 0;
    for table in tables.filter(|path| !path.ends_with("identical-runs.csv")) {
        let picture = table.with_extension("svg");
        let name = picture.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(picture.exists() && page.contains(&format!("](evaluation/{name})")), "{name} is drawn and shown");
        count += 1;
    }
    assert!(count > 5, "{count} tables");
}

#[test]
fn flaws_are_found() {
    assert_eq!(flaw("  ✓ tls  +14.9 % [14.4, 15.5]  +3.15 µs"), None);
    assert_eq!(flaw("  ✓ columns ×6.4 [6.2, 6.6]  +207 µs"), None);
    assert_eq!(flaw("  ✓ fscrypt  ~  −3.0 % to +5.1 %"), None);
    assert_eq!(flaw("  ✓ tls  +14.9% [14.4, 15.5]"), Some("no percent sign behind the cost"));
    assert_eq!(flaw("  ✓ tls  +14.9 %"), Some("no interval"));
    assert_eq!(flaw("  ✓ tls"), Some("no cost behind a mark and a name"));
}

/// `tools/answers` makes docs/answers.md and its pictures from what docs/reports/data holds.
#[test]
fn answers_are_those_of_the_kept_reports() {
    let made = Command::new("python3").arg(root().join("tools/answers")).arg("--check").output();
    let made = match made {
        Ok(made) => made,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => panic!("{error}"),
    };
    let told = String::from_utf8_lossy(&made.stderr);
    // Python reads TOML from 3.11 on.
    assert!(made.status.success() || told.contains("No module named 'tomllib'"), "run tools/answers: {told}");
}
