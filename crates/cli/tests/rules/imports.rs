//! Which module or file of a crate imports which, by every path that begins with `crate`, `super`, `self` or a module
//! that the file declares. The root file, which declares all modules, is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proc_macro2::{Delimiter, TokenTree};

use crate::source::{Source, is_sign, sources};

/// Top-level modules of a crate, or files, each with those that it imports and a file that does so.
pub struct Graph(BTreeMap<String, BTreeMap<String, String>>);

impl Graph {
    /// The graph of the top-level modules of `sources`, whose paths begin at the crate's root file.
    pub fn of(sources: &[Source]) -> Self {
        Self::between(sources, |path| path.first().cloned(), |_, _| true)
    }

    /// The graph of the files of `sources`. Imports between a module and its own parts are left out: they know each
    /// other.
    pub fn of_files(sources: &[Source]) -> Self {
        let files: BTreeSet<Vec<String>> = sources.iter().map(|source| home(&source.path)).collect();
        let file = |path: &[String]| {
            let lengths = (1..=path.len()).rev();
            lengths.map(|length| &path[..length]).find(|part| files.contains(*part)).map(|part| part.join("/"))
        };
        Self::between(sources, file, |from, to| !from.starts_with(&format!("{to}/")))
    }

    /// The graph between the nodes that `node` makes of paths; only arrows that `counts` accepts.
    fn between(
        sources: &[Source],
        node: impl Fn(&[String]) -> Option<String>,
        counts: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let homes: Vec<Vec<String>> = sources.iter().map(|source| home(&source.path)).collect();
        let nodes: BTreeSet<String> = homes.iter().filter_map(|home| node(home)).collect();
        let mut graph: BTreeMap<String, BTreeMap<String, String>> =
            nodes.iter().map(|node| (node.clone(), BTreeMap::new())).collect();
        for (source, home) in sources.iter().zip(&homes) {
            let Some(from) = node(home) else { continue };
            let mut paths = Vec::new();
            gather(source.tokens(), &declared(source.tokens()), &mut paths);
            let targets = paths.iter().filter_map(|path| node(&target(home, path)));
            for to in targets.filter(|to| *to != from && nodes.contains(to) && counts(&from, to)) {
                let file = source.path.display().to_string();
                graph.get_mut(&from).expect("every node is there").entry(to).or_insert(file);
            }
        }
        Self(graph)
    }

    /// The modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Every arrow: which module imports which, and a file that does.
    pub fn arrows(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().flat_map(|(from, imports)| {
            imports.iter().map(move |(to, file)| (from.as_str(), to.as_str(), file.as_str()))
        })
    }

    /// A cycle, each arrow with a file that causes it; `None` if there is none.
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

    /// Imports of modules that `layers`, from top to bottom, have above the importing module or on its level.
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

/// A cycle among the modules of the crate with sources in `folder`.
pub fn circle(folder: &Path) -> Option<String> {
    let found = Graph::of(&sources(folder)).circle()?;
    Some(format!("{}: {found}", folder.display()))
}

/// A cycle among its files.
pub fn circle_of_files(folder: &Path) -> Option<String> {
    let found = Graph::of_files(&sources(folder)).circle()?;
    Some(format!("{}: {found}", folder.display()))
}

/// The layers of each crate in `map`, from top to bottom: lines of the first block marked `text`, each a title before
/// names of modules. The first line of a crate begins with the crate's name.
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

/// The module path of a file, from the top of the crate; empty for the crate's root.
fn home(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main"))) {
        parts.pop();
    }
    parts
}

/// The target of `path`, as written in the module `home`, from the top of the crate.
fn target(home: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    // In a module within a file, one `super` fewer leads out of it; such modules are tests, which are left out.
    let (base, rest) = match path.first().map(String::as_str) {
        Some("crate") => (&[][..], &path[1..]),
        Some("self") => (home, &path[1..]),
        _ => (&home[..home.len().saturating_sub(ups)], &path[ups..]),
    };
    [base, rest].concat()
}

/// The modules that a file of these `tokens` declares.
fn declared(tokens: &[TokenTree]) -> Vec<String> {
    let name = |three: &[TokenTree]| match three {
        [TokenTree::Ident(word), TokenTree::Ident(name), end] if word == "mod" && is_sign(end, ';') => {
            Some(name.to_string())
        }
        _ => None,
    };
    tokens.windows(3).filter_map(name).collect()
}

/// All paths in `tokens` that begin with `crate`, `super`, `self` or one of the modules `declared`; paths in braces are
/// listed separately.
fn gather(tokens: &[TokenTree], declared: &[String], paths: &mut Vec<Vec<String>>) {
    let begins = |name: &str| ["crate", "super", "self"].contains(&name) || declared.iter().any(|it| it == name);
    let mut at = 0;
    while at < tokens.len() {
        // The continuation of another path is no beginning.
        let goes_on = at >= 2 && follows(tokens, at - 2);
        match &tokens[at] {
            TokenTree::Ident(name) if !goes_on && begins(&name.to_string()) && follows(tokens, at + 1) => {
                at = read(tokens, at, &[], paths);
            }
            TokenTree::Group(group) if !goes_on => {
                gather(&group.stream().into_iter().collect::<Vec<_>>(), declared, paths);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// True if there is a `::` at `at`.
fn follows(tokens: &[TokenTree], at: usize) -> bool {
    [at, at + 1].iter().all(|place| tokens.get(*place).is_some_and(|token| is_sign(token, ':')))
}

/// Reads the path at `at`, which continues `before`; returns the position after it.
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
