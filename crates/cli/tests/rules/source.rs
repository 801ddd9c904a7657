//! The sources of a crate as tokens, without code that is compiled only for tests.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One file.
pub struct Source {
    /// Its path below the requested folder.
    pub path: PathBuf,
    /// Its tokens, without comments and without code that is compiled only for tests.
    tokens: Vec<TokenTree>,
    /// Modules that it declares only for tests.
    test_modules: Vec<String>,
}

impl Source {
    /// Reads `text`, which must be Rust.
    pub fn parse(path: &Path, text: &str) -> Self {
        let stream = TokenStream::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut source = Self { path: path.to_owned(), tokens: Vec::new(), test_modules: Vec::new() };
        source.tokens = source.without_tests(stream);
        source
    }

    /// The tokens of `stream` without items under `#[cfg(test)]`, whose modules are recorded.
    fn without_tests(&mut self, stream: TokenStream) -> Vec<TokenTree> {
        let mut kept = Vec::new();
        let mut tokens = stream.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let is_test = is_sign(&token, '#')
                && tokens.peek().is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
            if !is_test {
                kept.push(token);
                continue;
            }
            tokens.next();
            let mut names = Vec::new();
            for token in tokens.by_ref() {
                match &token {
                    TokenTree::Ident(name) => names.push(name.to_string()),
                    TokenTree::Punct(sign) if sign.as_char() == ';' => {
                        if let [.., word, name] = names.as_slice()
                            && word == "mod"
                        {
                            self.test_modules.push(name.clone());
                        }
                        break;
                    }
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                    _ => {}
                }
            }
        }
        kept
    }

    /// The tokens.
    pub fn tokens(&self) -> &[TokenTree] {
        &self.tokens
    }

    /// True when the code uses `word`, a name or names with `::` between them; `a::{b, c}` counts as `a::b` and `a::c`.
    pub fn names(&self, word: &str) -> bool {
        let wanted: Vec<&str> = word.split("::").collect();
        let mut names = Vec::new();
        flatten(self.tokens.iter().cloned(), "", &mut names);
        names.windows(wanted.len()).any(|window| window.iter().zip(&wanted).all(|(name, word)| name == word))
    }

    /// How often the code uses the name `word`.
    pub fn count(&self, word: &str) -> usize {
        let mut names = Vec::new();
        flatten(self.tokens.iter().cloned(), "", &mut names);
        names.iter().filter(|name| *name == word).count()
    }

    /// True when the code contains the literal `text`.
    pub fn has_text(&self, text: &str) -> bool {
        has_literal(self.tokens.iter().cloned(), &format!("{text:?}"))
    }

    /// All string literals in the code, as they are written.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        literals(self.tokens.iter().cloned(), true, &mut texts);
        texts
    }

    /// As [`texts`](Self::texts), without doc comments.
    pub fn messages(&self) -> Vec<String> {
        let mut texts = Vec::new();
        literals(self.tokens.iter().cloned(), false, &mut texts);
        texts
    }

    /// Format: `crates/…/file.rs says Instant`.
    pub fn reported(&self, word: &str) -> String {
        format!("{} says {word}", self.path.display())
    }
}

/// All identifiers, in order. A sign other than `::` between two of them separates them. In braces after `module::`,
/// the module is repeated before each part; elsewhere `module` is empty.
fn flatten(tokens: impl Iterator<Item = TokenTree>, module: &str, names: &mut Vec<String>) {
    let mut goes_on = false;
    for token in tokens {
        let is_colon = is_sign(&token, ':');
        match token {
            TokenTree::Ident(name) => names.push(name.to_string()),
            TokenTree::Group(group) => {
                let is_list = goes_on && group.delimiter() == Delimiter::Brace;
                let before = names.last().filter(|_| is_list).cloned().unwrap_or_default();
                names.push(before.clone());
                flatten(group.stream().into_iter(), &before, names);
                names.push(String::new());
            }
            TokenTree::Punct(sign) if sign.as_char() == ',' => names.push(module.to_owned()),
            TokenTree::Punct(_) if is_colon => {}
            TokenTree::Punct(_) | TokenTree::Literal(_) => names.push(String::new()),
        }
        goes_on = is_colon;
    }
}

/// True when one of the tokens is `literal`, as it is written.
fn has_literal(mut tokens: impl Iterator<Item = TokenTree>, literal: &str) -> bool {
    let is_literal = |token: TokenTree| match token {
        TokenTree::Literal(found) => found.to_string() == literal,
        TokenTree::Group(group) => has_literal(group.stream().into_iter(), literal),
        TokenTree::Ident(_) | TokenTree::Punct(_) => false,
    };
    tokens.any(is_literal)
}

/// The literals among `tokens`. A doc comment is one, after the name `doc`.
fn literals(tokens: impl Iterator<Item = TokenTree>, documentation: bool, found: &mut Vec<String>) {
    let mut tokens = tokens.peekable();
    if !documentation && tokens.peek().is_some_and(|first| first.to_string() == "doc") {
        return;
    }
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => found.push(literal.to_string()),
            TokenTree::Group(group) => literals(group.stream().into_iter(), documentation, found),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// True for the character `sign`.
pub fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}

/// All sources below `folder`, without the modules that exist only for tests.
pub fn sources(folder: &Path) -> Vec<Source> {
    let below = |path: &Path| path.strip_prefix(folder).expect("below the folder").to_owned();
    let mut all: Vec<Source> = files(folder).iter().map(|(path, text)| Source::parse(&below(path), text)).collect();
    let tests: Vec<PathBuf> = all.iter().flat_map(test_files).collect();
    all.retain(|source| {
        !tests.iter().any(|test| source.path.starts_with(test) || source.path == test.with_extension("rs"))
    });
    all
}

/// The paths, without extension, of the modules that `source` declares only for tests.
fn test_files(source: &Source) -> Vec<PathBuf> {
    let is_folder = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| source.path.ends_with(name));
    let base = if is_folder { source.path.parent().map(Path::to_owned) } else { Some(source.path.with_extension("")) };
    let base = base.unwrap_or_default();
    source.test_modules.iter().map(|name| base.join(name)).collect()
}

/// All Rust files below `folder` with their texts, in the order of their names.
pub fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let of = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => files(&path),
        Some(extension) if extension == "rs" => {
            let text = fs::read_to_string(&path).expect("a text");
            vec![(path, text)]
        }
        _ => Vec::new(),
    };
    paths.into_iter().flat_map(of).collect()
}
