//! The harness knows no product by its name: what it needs of a database it asks through `Database`, such as the
//! protocol that its servers speak.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The names of databases in experiment files. The crate that has them is above this one, so they are written out.
const NAMES: [&str; 8] = ["cassandra", "mariadb", "mongodb", "mysql", "postgres", "redis", "sqlite", "wiredtiger"];

/// The source files below `folder`, but for files of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs");
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).filter(is_source).collect()
}

#[test]
fn no_database_is_asked_for_by_its_name() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&source);
    assert!(files.len() > 80, "{files:?}");
    let mut found = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            if NAMES.iter().any(|name| line.contains(&format!("\"{name}\""))) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "ask `Database` in place of naming a product:\n{}", found.join("\n"));
}
