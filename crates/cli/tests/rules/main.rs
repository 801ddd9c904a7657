//! The rules of the house that no compiler holds: which module may import which, who starts processes, who reads a
//! clock, and whether the map shows what is there.
//!
//! Sources are read as tokens, tests left out: what a rule forbids may well stand in a comment, a text or a test.

mod imports;
mod source;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use source::{Source, sources};

/// Widest line of a comment, columns.
const WIDTH: usize = 120;

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

fn crates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).expect("crates").flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Where `allowed` is not said to be, `words` stand in none of the sources of `folder`.
fn nowhere_but(folder: &str, words: &[&str], allowed: &[&str]) {
    let all = sources(&root().join(folder));
    assert!(!all.is_empty(), "{folder} has sources");
    let found: Vec<String> = all
        .iter()
        .filter(|source| !allowed.iter().any(|place| source.path.ends_with(place)))
        .flat_map(|source| words.iter().filter(|word| source.names(word)).map(|word| source.told(word)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for place in allowed {
        let uses = |source: &&Source| source.path.ends_with(place) && words.iter().any(|word| source.names(word));
        assert!(all.iter().any(|source| uses(&source)), "{place} is an exception that nobody needs any more");
    }
}

#[test]
fn modules_import_each_other_in_one_direction() {
    let wrong: Vec<String> = crates().iter().filter_map(|folder| imports::circle(&folder.join("src"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_circle_and_an_arrow_upwards_are_found() {
    let files = [
        ("a.rs", "use crate::{b::{self, B}, fault};"),
        ("b/mod.rs", "mod c;"),
        ("b/c.rs", "fn c() { super::super::a::f() }"),
    ];
    let sources = files.map(|(path, text)| Source::parse(Path::new(path), text));
    let graph = imports::Graph::of(&sources);
    assert_eq!(graph.circle().expect("a circle"), "a → b (a.rs), b → a (b/c.rs)");
    let layers = imports::layers("text\n```text\nfirst    b\nsecond   a fault\n```\n");
    assert_eq!(graph.upwards(&layers), ["a.rs: a imports b, which the map shows above it"]);
}

#[test]
fn the_map_shows_every_module_of_the_harness_and_no_arrow_upwards() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let layers = imports::layers(&map);
    let graph = imports::Graph::of(&sources(&root().join("crates/harness/src")));
    let shown: BTreeSet<&str> = layers.iter().flatten().map(String::as_str).collect();
    let there: BTreeSet<&str> = graph.modules().collect();
    assert_eq!(shown, there, "the picture in ARCHITECTURE.md and the modules of crates/harness");
    let wrong = graph.upwards(&layers);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_sandbox_starts_processes() {
    nowhere_but("crates/model/src", &["Command::new"], &[]);
    nowhere_but("crates/analysis/src", &["Command::new"], &[]);
    nowhere_but("crates/cli/src", &["Command::new"], &[]);
    nowhere_but("crates/harness/src", &["Command::new"], &["sandbox/process.rs"]);
    // What `tithe get` calls, before there is a sandbox.
    nowhere_but("crates/databases/src", &["Command::new"], &["maven.rs"]);
}

/// What the harness needs of a database it asks through `Database`, such as the protocol that its servers speak.
#[test]
fn nobody_asks_for_a_database_by_its_name() {
    for folder in ["crates/model/src", "crates/harness/src", "crates/analysis/src", "crates/cli/src"] {
        for source in sources(&root().join(folder)) {
            let named = tithe_databases::all().iter().find(|database| source.has_text(database.id()));
            let id = named.map(|database| database.id());
            assert_eq!(id, None, "{folder}/{}", source.path.display());
        }
    }
    let asks = Source::parse(Path::new("a.rs"), "fn a() { if database.id() == \"sqlite\" {} }");
    assert!(asks.has_text("sqlite") && !asks.has_text("id"));
}

#[test]
fn plans_and_analyses_read_no_clock() {
    for folder in ["crates/model/src", "crates/analysis/src"] {
        nowhere_but(folder, &["SystemTime", "Instant", "clock_gettime"], &[]);
    }
}

#[test]
fn comments_are_as_wide_as_the_code() {
    let mut wide = Vec::new();
    for folder in crates().into_iter().chain([root().join("benches")]) {
        for (path, file) in source::files(&folder) {
            let comments = file.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
            // A row of a table cannot be broken.
            let text = |line: &str| line.trim_start().trim_start_matches(['/', '!']).trim_start().to_owned();
            let over = comments.filter(|(_, line)| line.chars().count() > WIDTH && !text(line).starts_with('|'));
            wide.extend(over.map(|(number, _)| format!("{}:{}", path.display(), number + 1)));
        }
    }
    assert!(wide.is_empty(), "wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

/// Paths stand between backticks; what holds a wildcard or a placeholder is none.
#[test]
fn paths_in_the_map_exist() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let quoted = map.split('`').skip(1).step_by(2);
    let paths: BTreeSet<&str> = quoted
        .flat_map(str::split_ascii_whitespace)
        .filter(|word| word.ends_with(".rs") || word.ends_with('/') || word.starts_with("crates/"))
        .filter(|word| !word.contains(['<', '*', '{']))
        .collect();
    assert!(paths.len() > 20, "the map names {} paths", paths.len());
    let bases = crates().into_iter().map(|folder| folder.join("src")).chain([root()]).collect::<Vec<_>>();
    let lost: Vec<&str> = paths.into_iter().filter(|path| !bases.iter().any(|base| base.join(path).exists())).collect();
    assert!(lost.is_empty(), "ARCHITECTURE.md names what is not there: {}", lost.join(", "));
}
