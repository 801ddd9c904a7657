//! Checks the locked packages against `deny.toml`: licences and sources. This needs no other program.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// What `deny.toml` allows.
pub struct Allowed {
    licences: Vec<String>,
    /// Further licences of single packages.
    exceptions: Vec<(String, Vec<String>)>,
    registries: Vec<String>,
    /// Packages that may occur in a second version: name, and the beginning of that version.
    pub skipped: Vec<(String, String)>,
}

/// A package in `Cargo.lock`.
pub struct Locked {
    pub name: String,
    pub version: String,
    /// `None` for a crate of this workspace.
    pub source: Option<String>,
    pub has_checksum: bool,
}

impl Allowed {
    pub fn read(root: &Path) -> Self {
        parsed(&root.join("deny.toml"), |deny| {
            let licences = table(deny, "licenses");
            let bans = table(deny, "bans");
            let of = |entry: &DeTable<'_>| (text(entry, "crate"), texts(entry, "allow"));
            let skipped = |entry: &DeTable<'_>| {
                let package = text(entry, "crate");
                let (name, version) = package.split_once(':').expect("a name and a version");
                (name.to_owned(), version.to_owned())
            };
            Self {
                licences: texts(licences, "allow"),
                exceptions: tables(licences, "exceptions").map(of).collect(),
                registries: texts(table(deny, "sources"), "allow-registry"),
                skipped: tables(bans, "skip").map(skipped).collect(),
            }
        })
    }

    /// Packages with an exception.
    pub fn excepted(&self) -> impl Iterator<Item = &str> {
        self.exceptions.iter().map(|(name, _)| name.as_str())
    }

    /// True if `package` may be used under the licence `expression`.
    pub fn licence(&self, package: &str, expression: &str) -> bool {
        let more = self.exceptions.iter().filter(|(name, _)| name == package).flat_map(|(_, licences)| licences);
        let allowed: Vec<&String> = self.licences.iter().chain(more).collect();
        satisfied(expression, &|licence| allowed.iter().any(|allowed| *allowed == licence))
    }

    /// True if a package may come from `source`, as `Cargo.lock` writes it.
    pub fn source(&self, source: &str) -> bool {
        source.strip_prefix("registry+").is_some_and(|url| self.registries.iter().any(|registry| registry == url))
    }
}

/// All packages in `Cargo.lock`.
pub fn locked(root: &Path) -> Vec<Locked> {
    parsed(&root.join("Cargo.lock"), |lock| {
        let of = |package: &DeTable<'_>| Locked {
            name: text(package, "name"),
            version: text(package, "version"),
            source: package.contains_key("source").then(|| text(package, "source")),
            has_checksum: package.contains_key("checksum"),
        };
        tables(lock, "package").map(of).collect()
    })
}

/// Name and licence of all packages that can be built here, from `cargo metadata`. Nothing is downloaded, so only the
/// features of this test's own build are requested.
pub fn licences(root: &Path) -> Vec<(String, String)> {
    let version = cargo(root, &["--version", "--verbose"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo says where it is");
    let every = cfg!(all(feature = "agents", feature = "mongodb", feature = "wiredtiger"));
    let features = if every { "--all-features" } else { "--quiet" };
    let arguments = ["metadata", "--offline", "--locked", "--format-version=1", features, "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&cargo(root, &arguments)).expect("JSON");
    let of = |package: &Value| {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        (text("name"), text("license"))
    };
    metadata["packages"].as_array().expect("packages").iter().map(of).collect()
}

fn cargo(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().expect("cargo runs");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// True if the SPDX `expression` can be satisfied with `allowed` licences. AND binds before OR, and the slash of old
/// manifests is an OR. A licence WITH an exception is a licence of its own.
pub fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").replace(" WITH ", "+");
    let mut words = spaced.split_whitespace().peekable();
    let met = either(&mut words, allowed);
    assert!(words.next().is_none(), "{expression:?} goes on behind its end");
    met
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = both(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= both(words, allowed);
    }
    met
}

fn both(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> bool {
    match words.next() {
        Some("(") => {
            let met = either(words, allowed);
            assert_eq!(words.next(), Some(")"), "a parenthesis is not closed");
            met
        }
        licence => licence.is_some_and(|licence| allowed(&licence.replace('+', " WITH "))),
    }
}

/// The result of `read` on the TOML in `path`.
fn parsed<T>(path: &Path, read: impl FnOnce(&DeTable<'_>) -> T) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table = DeTable::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read(table.get_ref())
}

fn value<'a, 'b>(table: &'a DeTable<'b>, key: &str) -> &'a DeValue<'b> {
    table.get(key).unwrap_or_else(|| panic!("there is no {key}")).get_ref()
}

fn table<'a, 'b>(of: &'a DeTable<'b>, key: &str) -> &'a DeTable<'b> {
    value(of, key).as_table().unwrap_or_else(|| panic!("{key} is no table"))
}

fn tables<'a, 'b>(of: &'a DeTable<'b>, key: &str) -> impl Iterator<Item = &'a DeTable<'b>> {
    let all = value(of, key).as_array().unwrap_or_else(|| panic!("{key} is no list"));
    all.iter().map(|entry| entry.get_ref().as_table().expect("a table"))
}

fn text(of: &DeTable<'_>, key: &str) -> String {
    value(of, key).as_str().unwrap_or_else(|| panic!("{key} is no text")).to_owned()
}

fn texts(of: &DeTable<'_>, key: &str) -> Vec<String> {
    let all = value(of, key).as_array().unwrap_or_else(|| panic!("{key} is no list"));
    all.iter().map(|entry| entry.get_ref().as_str().expect("a text").to_owned()).collect()
}
