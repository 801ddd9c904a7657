//! The rules of the project that no compiler checks: which module may import which; which code starts processes, reads
//! a clock or prints; dependencies; and whether the map and the table of features are current.
//!
//! Sources are read as tokens without tests: forbidden names are allowed in comments, texts and tests. Clippy also
//! finds code that starts processes or reads clocks, by resolved names (`clippy.toml` of the crates). The exception is
//! `cli`, whose tests and benchmarks start programs everywhere.

mod dependencies;
mod features;
mod imports;
mod language;
mod samples;
mod source;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
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

fn crate_names() -> impl Iterator<Item = String> {
    crates().into_iter().map(|folder| folder.file_name().expect("a name").to_string_lossy().into_owned())
}

/// Only the files in `allowed` may use `words`; no other source in `folder` may.
fn nowhere_but(folder: &str, words: &[&str], allowed: &[&str]) {
    let all = sources(&root().join(folder));
    assert!(!all.is_empty(), "{folder} has sources");
    let found: Vec<String> = all
        .iter()
        .filter(|source| !allowed.iter().any(|place| source.path.ends_with(place)))
        .flat_map(|source| words.iter().filter(|word| source.names(word)).map(|word| source.reported(word)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for place in allowed {
        let uses = |source: &&Source| source.path.ends_with(place) && words.iter().any(|word| source.names(word));
        assert!(all.iter().any(|source| uses(&source)), "{place} is an exception that nobody needs any more");
    }
}

#[test]
fn the_build_without_agents_has_none_of_their_packages() {
    let packages = |features: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["tree", "--locked", "--offline", "-p", "tithe", "-e", "normal,build", "--prefix", "none"]);
        let output = cargo.args(features).current_dir(root()).output().expect("cargo");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        ["async-nats", "tokio", "tithe-broker"]
            .map(|name| text.lines().any(|line| line.starts_with(&format!("{name} v"))))
    };
    assert_eq!(packages(&[]), [false; 3]);
    assert_eq!(packages(&["--features", "agents"]), [true; 3]);
}

#[test]
fn modules_import_each_other_in_one_direction() {
    let wrong: Vec<String> = crates().iter().filter_map(|folder| imports::circle(&folder.join("src"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_import_each_other_in_one_direction() {
    let wrong: Vec<String> =
        crates().iter().filter_map(|folder| imports::circle_of_files(&folder.join("src"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_circle_of_files_is_found_however_a_file_is_named() {
    let circle = |files: [(&str, &str); 3]| {
        let sources = files.map(|(path, text)| Source::parse(Path::new(path), text));
        imports::Graph::of_files(&sources).circle()
    };
    let parent = ("a.rs", "mod b; mod c; fn f() { b::g(); other::c::h() }");
    let (up, beside) = (("a/b.rs", "use super::F;"), ("a/c.rs", "use super::b::G;"));
    assert_eq!(circle([parent, up, beside]), None, "a module and what it is made of");
    let back = ("a/b.rs", "use std::{c::X, fmt}; use super::{F, c::H};");
    let words = "a/b → a/c (a/b.rs), a/c → a/b (a/c.rs)";
    assert_eq!(circle([parent, back, beside]).as_deref(), Some(words));
    let through = [("d.rs", "mod e; use self::e::E;"), ("d/e.rs", "use crate::f::F;"), ("f.rs", "use crate::d::D;")];
    let words = "d → d/e (d.rs), d/e → f (d/e.rs), f → d (f.rs)";
    assert_eq!(circle(through).as_deref(), Some(words));
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
    let map = "text\n```text\nmine     first    b\n         second   a fault\nother    first    c\n```\n";
    let layers = imports::layers(map);
    assert_eq!(graph.upwards(&layers["mine"]), ["a.rs: a imports b, which the map shows above it"]);
    assert_eq!(layers["other"], [["c"]]);
}

#[test]
fn the_map_shows_every_module_and_no_arrow_upwards() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let layers = imports::layers(&map);
    assert_eq!(layers.keys().collect::<Vec<_>>(), ["harness", "machine", "plugin", "workloads"]);
    for (name, layers) in layers {
        let graph = imports::Graph::of(&sources(&root().join("crates").join(&name).join("src")));
        let shown: BTreeSet<&str> = layers.iter().flatten().map(String::as_str).collect();
        let there: BTreeSet<&str> = graph.modules().collect();
        assert_eq!(shown, there, "the picture in ARCHITECTURE.md and the modules of crates/{name}");
        let wrong = graph.upwards(&layers);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn only_the_sandbox_starts_processes() {
    for name in crate_names() {
        let allowed: &[&str] = match name.as_str() {
            "machine" => &["sandbox/process.rs"],
            // Used by `tithe get`, before there is a sandbox.
            "databases" => &["downloads.rs"],
            _ => &[],
        };
        nowhere_but(&format!("crates/{name}/src"), &["Command::new"], allowed);
    }
}

/// Outside the C interfaces of SQLite, DuckDB and WiredTiger there are eleven uses of `unsafe`, each with the reason
/// why no library will do; crates without any forbid it.
#[test]
fn unsafe_code_is_where_c_is_called_and_in_eleven_places_elsewhere() {
    let is_c_interface = |path: &Path| {
        let is_of_engine = ["sqlite", "duckdb", "wiredtiger"].iter().any(|engine| path.starts_with(engine));
        is_of_engine && !path.ends_with("encryptor/locked.rs")
    };
    let mut elsewhere = Vec::new();
    for name in crate_names() {
        let folder = root().join("crates").join(&name).join("src");
        let all = sources(&folder);
        let said: usize = all.iter().map(|source| source.count("unsafe")).sum();
        let root_says = ["lib.rs", "main.rs"].map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default());
        assert_eq!(
            root_says.concat().contains("#![forbid(unsafe_code)]"),
            said == 0,
            "{name} says unsafe {said} times"
        );
        let others = all.iter().filter(|source| !is_c_interface(&source.path));
        elsewhere.extend(others.map(|source| (format!("{name}/{}", source.path.display()), source.count("unsafe"))));
    }
    elsewhere.retain(|(_, count)| *count > 0);
    let count: usize = elsewhere.iter().map(|(_, count)| count).sum();
    assert!(count <= 11, "{count} places: {elsewhere:?}");
    let twice = Source::parse(Path::new("a.rs"), "fn a() { unsafe { b() }; unsafe { c() } }");
    assert_eq!(twice.count("unsafe"), 2);
}

/// Clippy finds the printing macros, but not the streams that they use.
#[test]
fn only_the_command_line_prints() {
    let words = ["println", "eprintln", "print", "eprint", "io::stdout", "io::stderr"];
    for name in crate_names().filter(|name| name != "cli") {
        let allowed: &[&str] = match name.as_str() {
            // The output of a user's command goes to standard error if standard output has a document.
            "machine" => &["sandbox/process.rs"],
            _ => &[],
        };
        nowhere_but(&format!("crates/{name}/src"), &words, allowed);
    }
    let says = |text: &str, word| Source::parse(Path::new("a.rs"), text).names(word);
    assert!(says("fn a() { println!() }", "println") && says("use std::{fs, io::{self, stdout}};", "io::stdout"));
    assert!(!says("use std::{io, fs::{self, stdout}}; fn a() { io(stdout) }", "io::stdout"));
}

/// The harness gets everything about a database through `Database`, such as the protocol of its servers.
#[test]
fn nobody_asks_for_a_database_by_its_name() {
    for name in crate_names().filter(|name| name != "databases") {
        let folder = format!("crates/{name}/src");
        // The program that restores dumps has the same name as its product.
        let others = |source: &Source| !source.path.ends_with("dump/restore.rs");
        for source in sources(&root().join(&folder)).into_iter().filter(others) {
            let named = tithe_databases::all().iter().find(|database| source.has_text(database.id()));
            let id = named.map(|database| database.id());
            assert_eq!(id, None, "{folder}/{}", source.path.display());
        }
    }
    let asks = Source::parse(Path::new("a.rs"), "fn a() { if database.id() == \"sqlite\" {} }");
    assert!(asks.has_text("sqlite") && !asks.has_text("id"));
}

/// What the files of databases know of other databases: folders that they import, and ids in their texts. A folder has
/// the same name as its database in `ids`; a file outside these folders is shared, and may know none.
fn acquaintances(sources: &[Source], ids: &[&str]) -> Vec<String> {
    let is_wrong = |from: &str, to: &str| match to {
        // The common part of MariaDB and MySQL.
        "mysql_family" => !["mariadb", "mysql"].contains(&from),
        _ => ids.contains(&to),
    };
    let graph = imports::Graph::of(sources);
    let imported = graph.arrows().filter(|(from, to, _)| is_wrong(from, to));
    let mut known: Vec<String> = imported.map(|(_, to, file)| format!("{file} imports {to}")).collect();
    // The root file has the list of all databases.
    for source in sources.iter().filter(|source| source.path != Path::new("lib.rs")) {
        let held = ids.iter().filter(|id| !source.path.starts_with(id) && source.has_text(id));
        known.extend(held.map(|id| format!("{} says {id:?}", source.path.display())));
    }
    known
}

#[test]
fn databases_do_not_know_each_other() {
    let built = tithe_databases::all().iter().map(|database| database.id());
    let ids: Vec<&str> = built.chain(tithe_databases::left_out().iter().copied()).collect();
    let folder = root().join("crates/databases/src");
    let lost: Vec<&&str> = ids.iter().filter(|id| !folder.join(id).is_dir()).collect();
    assert!(lost.is_empty(), "without a folder of their name: {lost:?}");
    let known = acquaintances(&sources(&folder), &ids);
    assert!(known.is_empty(), "{}", known.join("\n"));
}

#[test]
fn databases_that_know_each_other_are_found() {
    let files = [
        ("lib.rs", "mod mysql; fn f() -> &str { \"mysql\" }"),
        ("mysql/mod.rs", "use crate::{mysql_family::Family, target::Target}; fn f() -> &str { \"mysql\" }"),
        ("mysql_family/mod.rs", "use crate::mysql::Flavour;"),
        ("postgres/launch.rs", "use super::super::mysql_family::rsa; fn f() -> &str { \"mysql\" }"),
        ("target.rs", "fn f(id: &str) -> bool { id == \"postgres\" }"),
    ];
    let sources = files.map(|(path, text)| Source::parse(Path::new(path), text));
    let expected = [
        "mysql_family/mod.rs imports mysql",
        "postgres/launch.rs imports mysql_family",
        "postgres/launch.rs says \"mysql\"",
        "target.rs says \"postgres\"",
    ];
    assert_eq!(acquaintances(&sources, &["mysql", "postgres"]), expected);
}

/// The table of controls contains every check that a protection may have, and no other.
#[test]
fn the_table_of_controls_knows_every_check() {
    let named_in_records =
        [tithe_model::record::CIPHER_DRIVER, tithe_model::record::SETTING_DIFFERS, tithe_model::record::YOUR_CLAIM];
    let mut checks = BTreeSet::from(named_in_records.map(str::to_owned));
    for folder in ["plugin", "harness", "databases"] {
        for (path, text) in source::files(&root().join("crates").join(folder).join("src")) {
            let tested = path.file_stem().is_some_and(|stem| stem == "tests");
            let parts = text.split("CheckEntry::").skip(1).filter(|_| !tested);
            let entries = parts.filter(|rest| rest.starts_with("claim(") || rest.starts_with("disclosure("));
            for arguments in entries.filter_map(|rest| rest.split('}').next()?.lines().next()) {
                // One name, or one for each of two cases.
                checks.extend(arguments.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    let known: BTreeSet<String> =
        tithe_analysis::report::controls::CHECKS.iter().map(|(check, _)| (*check).to_owned()).collect();
    assert_eq!(checks, known, "left what the code has, right what crates/analysis/src/report/controls.rs has");
}

/// Templates, which escape, write the markup. `PreEscaped` is only for our own style, and no text in the code of the
/// pages is markup that would have to be inserted unescaped.
#[test]
fn nothing_foreign_is_markup() {
    nowhere_but(
        "crates/analysis/src",
        &["PreEscaped"],
        &["report/html/atlas.rs", "report/html/history.rs", "report/html/mod.rs"],
    );
    let folder = root().join("crates/analysis/src/report");
    for file in ["html/atlas.rs", "html/history.rs", "html/mod.rs"] {
        let text = fs::read_to_string(folder.join(file)).expect("a source");
        let uses = text.split("PreEscaped(").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
        for of in uses {
            let ours = ["STYLE)", "include_str!(\"style.css\"))"].iter().any(|style| of.starts_with(style));
            assert!(ours, "{file} takes {of} for markup of ours");
        }
    }
    let is_markup = |text: &String| {
        let mut after = text.split('<').skip(1).filter_map(|rest| rest.chars().next());
        after.any(|next| next.is_ascii_alphabetic() || ['/', '!'].contains(&next))
    };
    let pages = sources(&folder.join("html"));
    assert!(pages.len() > 10, "the pages have their sources");
    for source in pages {
        let found: Vec<String> = source.texts().into_iter().filter(is_markup).collect();
        assert!(found.is_empty(), "{} writes markup as text: {found:?}", source.path.display());
        assert!(!source.names("push_str"), "{}", source.reported("push_str"));
    }
}

#[test]
fn plans_and_analyses_read_no_clock() {
    for folder in ["crates/model/src", "crates/statistics/src", "crates/analysis/src"] {
        nowhere_but(folder, &["SystemTime", "Instant", "clock_gettime"], &[]);
    }
}

#[test]
fn all_that_is_locked_comes_from_the_registry() {
    let (allowed, locked) = (dependencies::Allowed::read(&root()), dependencies::locked(&root()));
    let ours: BTreeSet<String> = crates().iter().map(|folder| package(folder)).collect();
    let (within, beyond): (Vec<_>, Vec<_>) = locked.iter().partition(|package| package.source.is_none());
    assert_eq!(within.iter().map(|package| package.name.clone()).collect::<BTreeSet<_>>(), ours);
    assert!(beyond.len() > 100, "the lock file names {} packages", beyond.len());
    let is_foreign = |source: &Option<String>| !source.as_ref().is_some_and(|source| allowed.source(source));
    let foreign = beyond.iter().filter(|package| !package.has_checksum || is_foreign(&package.source));
    let foreign: Vec<String> = foreign.map(|package| format!("{} from {:?}", package.name, package.source)).collect();
    assert!(foreign.is_empty(), "{}", foreign.join("\n"));
    for other in ["git+https://github.com/rust-lang/crates.io-index", "registry+https://example.org/index"] {
        assert!(!allowed.source(other), "{other}");
    }
}

/// The name of the package in `folder`.
fn package(folder: &Path) -> String {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
    name.trim_end_matches('"').to_owned()
}

#[test]
fn all_that_is_locked_has_a_licence_that_is_allowed() {
    let allowed = dependencies::Allowed::read(&root());
    let licences = dependencies::licences(&root());
    assert!(licences.len() > 100, "{} packages can be built here", licences.len());
    let wrong = licences.iter().filter(|(name, licence)| !allowed.licence(name, licence));
    let wrong: Vec<String> = wrong.map(|(name, licence)| format!("{name}: {licence:?}")).collect();
    assert!(wrong.is_empty(), "not in deny.toml:\n{}", wrong.join("\n"));
    // An exception for one package does not apply to another.
    assert!(!allowed.licence("another", "CC0-1.0") && !allowed.licence("another", "MIT AND GPL-3.0-only"));
}

#[test]
fn exceptions_are_made_for_what_is_there() {
    let (allowed, locked) = (dependencies::Allowed::read(&root()), dependencies::locked(&root()));
    for name in allowed.excepted() {
        assert!(locked.iter().any(|package| package.name == name), "deny.toml makes an exception for {name}");
    }
    for (name, version) in &allowed.skipped {
        let is_it = |it: &&dependencies::Locked| it.name == *name && it.version.starts_with(&format!("{version}."));
        assert!(locked.iter().any(|package| is_it(&package)), "deny.toml names {name} {version}");
        assert!(locked.iter().filter(|package| package.name == *name).count() > 1, "{name} is there once");
    }
}

#[test]
fn licences_are_read_as_spdx_has_them() {
    let met =
        |expression: &str| dependencies::satisfied(expression, &|licence| ["A", "B", "C WITH D"].contains(&licence));
    for expression in ["A", "X OR A", "X/A", "A AND B", "X AND Y OR A", "A AND (X OR B)", "C WITH D", "(A)"] {
        assert!(met(expression), "{expression}");
    }
    for expression in ["", "X", "A AND X", "X OR A AND Y", "(A OR X) AND Y", "C", "A WITH D"] {
        assert!(!met(expression), "{expression}");
    }
}

/// Files in which `#` begins a comment, with their texts: manifests and scripts.
fn manifests_and_scripts() -> Vec<(PathBuf, String)> {
    let manifests = crates().into_iter().chain([root()]).map(|folder| folder.join("Cargo.toml"));
    let tools = fs::read_dir(root().join("tools")).expect("tools").flatten().map(|entry| entry.path());
    let others = ["check", "deny.toml", "ci/measure"].map(|path| root().join(path));
    let paths = manifests.chain(others).chain(tools);
    paths.map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect()
}

#[test]
fn comments_are_as_wide_as_the_code() {
    let code = crates().into_iter().chain([root().join("benches")]).flat_map(|folder| source::files(&folder));
    let files = code.map(|file| ("//", file)).chain(manifests_and_scripts().into_iter().map(|file| ("#", file)));
    let mut wide = Vec::new();
    for (sign, (path, file)) in files {
        let comments = file.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(sign));
        // A row of a table cannot be broken.
        let text = |line: &str| line.trim_start().trim_start_matches(['/', '!', '#']).trim_start().to_owned();
        let over = comments.filter(|(_, line)| line.chars().count() > WIDTH && !text(line).starts_with('|'));
        wide.extend(over.map(|(number, _)| format!("{}:{}", path.display(), number + 1)));
    }
    assert!(wide.is_empty(), "wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

/// The parts of a `map`: each bullet about a crate with the crate's name, and the texts before, between and after them.
/// Code fences are left out, because they would disturb the pairs of backticks.
fn parts(map: &str) -> Vec<(Option<&str>, String)> {
    let mut parts = vec![(None, String::new())];
    for line in map.lines().filter(|line| !line.starts_with("```")) {
        let name = line.strip_prefix("* `crates/").and_then(|rest| rest.split('`').next());
        let goes_on = line.is_empty() || line.starts_with(' ');
        let within = parts.last().is_some_and(|(name, _)| name.is_some());
        if name.is_some() || (within && !goes_on) {
            parts.push((name, String::new()));
        }
        let (_, text) = parts.last_mut().expect("there is one");
        text.push_str(line);
        text.push('\n');
    }
    parts
}

/// Paths in `text`: words in backticks, unless they contain a wildcard or a placeholder, and the targets of links.
fn paths(text: &str) -> Vec<&str> {
    let words = text.split('`').skip(1).step_by(2).flat_map(str::split_ascii_whitespace);
    // An absolute path is one of the machine's files.
    let paths = words.filter(|word| word.ends_with(".rs") || (word.contains('/') && !word.starts_with('/')));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let within = links.filter(|link| !link.is_empty() && !link.contains("://"));
    paths.filter(|word| !word.contains(['<', '*', '{'])).chain(within).collect()
}

/// Paths that `map` names and `root` does not contain. In the bullet of a crate, a path may begin in the crate's
/// sources.
fn lost(map: &str, root: &Path) -> Vec<String> {
    let mut lost = Vec::new();
    for (name, text) in parts(map) {
        let sources = name.map(|name| root.join("crates").join(name).join("src"));
        let is_there = |path: &str| sources.iter().any(|folder| folder.join(path).exists()) || root.join(path).exists();
        lost.extend(paths(&text).into_iter().filter(|path| !is_there(path)).map(str::to_owned));
    }
    lost
}

#[test]
fn paths_in_the_map_exist() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let named: usize = parts(&map).iter().map(|(_, text)| paths(text).len()).sum();
    assert!(named > 100, "the map names {named} paths");
    let lost = lost(&map, &root());
    assert!(lost.is_empty(), "ARCHITECTURE.md names what is not there, or not in this crate: {}", lost.join(", "));
}

#[test]
fn a_path_that_leads_nowhere_is_found() {
    let map = "* `crates/cli` — `main.rs`, `crates/model/src/plan.rs` and `plan.rs`,\n  `commands/`,\n\n  * `tables/`.\n\
               * `crates/model` — `plan.rs`, `plan/*.rs`, `/proc`,\n  `main.rs`.\n\n\
               `plan.rs`, [links](docs/none.md#a), [others](https://docs.rs/none) and `tools/none --all`.";
    assert_eq!(lost(map, &root()), ["plan.rs", "tables/", "main.rs", "plan.rs", "tools/none", "docs/none.md"]);
}
