//! Which module of a crate imports which, by every path that begins with `crate` or `super`. The root file, which holds
//! all modules, is none of them and is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proc_macro2::{Delimiter, TokenTree};

use crate::source::{Source, is_sign, sources};

/// Modules at the top of a crate, and for each the modules that it imports, with a file that does.
pub struct Graph(BTreeMap<String, BTreeMap<String, String>>);

impl Graph {
    /// The graph of `sources`, whose paths begin at the crate's root file.
    pub fn of(sources: &[Source]) -> Self {
        let homes: Vec<Vec<String>> = sources.iter().map(|source| home(&source.path)).collect();
        let tops: BTreeSet<&String> = homes.iter().filter_map(|home| home.first()).collect();
        let mut graph: BTreeMap<String, BTreeMap<String, String>> =
            tops.iter().map(|top| ((*top).clone(), BTreeMap::new())).collect();
        for (source, home) in sources.iter().zip(&homes) {
            let Some(from) = home.first() else { continue };
            let mut paths = Vec::new();
            gather(source.tokens(), &mut paths);
            let targets =
                paths.iter().filter_map(|path| target(home, path)).filter(|to| to != from && tops.contains(to));
            for to in targets {
                let file = source.path.display().to_string();
                graph.get_mut(from).expect("every top is there").entry(to).or_insert(file);
            }
        }
        Self(graph)
    }

    /// The modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A circle, each arrow with a file that draws it; `None` where there is none.
    pub fn circle(&self) -> Option<String> {
        let mut done = BTreeSet::new();
        self.0.keys().find_map(|start| self.walk(start, &mut Vec::new(), &mut done))
    }

    fn walk<'a>(&'a self, at: &'a str, way: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> Option<String> {
        if let Some(begin) = way.iter().position(|module| *module == at) {
            let mut round: Vec<&str> = way[begin..].to_vec();
            round.push(at);
            let arrow = |pair: &[&str]| format!("{} → {} ({})", pair[0], pair[1], self.0[pair[0]][pair[1]]);
            return Some(round.windows(2).map(arrow).collect::<Vec<_>>().join(", "));
        }
        if done.contains(at) {
            return None;
        }
        way.push(at);
        let found = self.0[at].keys().find_map(|next| self.walk(next, way, done));
        way.pop();
        done.insert(at);
        found
    }

    /// Imports of what `layers`, from the top to the bottom, show above or beside the importing module.
    pub fn upwards(&self, layers: &[Vec<String>]) -> Vec<String> {
        let layer = |module: &str| layers.iter().position(|layer| layer.iter().any(|name| name == module));
        let mut wrong = Vec::new();
        for (from, imports) in &self.0 {
            let above = imports.iter().filter(|(to, _)| layer(to) <= layer(from));
            wrong.extend(above.map(|(to, file)| format!("{file}: {from} imports {to}, which the map shows above it")));
        }
        wrong
    }
}

/// A circle among the modules of the crate whose sources lie in `folder`.
pub fn circle(folder: &Path) -> Option<String> {
    let found = Graph::of(&sources(folder)).circle()?;
    Some(format!("{}: {found}", folder.display()))
}

/// The layers of each crate that `map` shows, from the top to the bottom: lines of the first block marked `text`, each
/// a title in front of names of modules, behind the crate's name where one begins.
pub fn layers(map: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let block = map.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let (mut crates, mut name) = (BTreeMap::<String, Vec<Vec<String>>>::new(), String::new());
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        if !line.starts_with(' ') {
            name = words.next().unwrap_or_default().to_owned();
        }
        let modules = words.skip(1).map(str::to_owned).collect();
        crates.entry(name.clone()).or_default().push(modules);
    }
    crates
}

/// The module that a file is, from the top of the crate on; nothing for the crate's root.
fn home(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main"))) {
        parts.pop();
    }
    parts
}

/// The module at the top of the crate that `path`, as written in the module `home`, leads to.
fn target(home: &[String], path: &[String]) -> Option<String> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    match path.first()?.as_str() {
        "crate" => path.get(1).cloned(),
        // In a module within a file one `super` less leads out of it; such modules are tests, which are left out.
        _ if ups >= home.len() => path.get(ups).cloned(),
        _ => home.first().cloned(),
    }
}

/// All paths of `tokens` that begin with `crate` or `super`; those in braces each for itself.
fn gather(tokens: &[TokenTree], paths: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(name) if (name == "crate" || name == "super") && follows(tokens, at + 1) => {
                at = read(tokens, at, &[], paths);
            }
            TokenTree::Group(group) => {
                gather(&group.stream().into_iter().collect::<Vec<_>>(), paths);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// True where `::` stands at `at`.
fn follows(tokens: &[TokenTree], at: usize) -> bool {
    [at, at + 1].iter().all(|place| tokens.get(*place).is_some_and(|token| is_sign(token, ':')))
}

/// Reads the path at `at`, which goes on from `before`; returns the place behind it.
fn read(tokens: &[TokenTree], mut at: usize, before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| is_sign(token, ',')).filter(|part| !part.is_empty()) {
                    read(part, 0, &path, paths);
                }
                return at + 1;
            }
            _ => break,
        }
        at += 1;
        if !follows(tokens, at) {
            break;
        }
        at += 2;
    }
    paths.push(path);
    at
}
