//! Plain language: banned phrases with their replacements, and limits for the length of sentences and documents.
//!
//! CONTRIBUTING.md, "House rules", describes the style. A program can check a part of it, in every document and in the
//! string literals of the sources, from which messages, reports and help are made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    crate_names, root,
    source::{Source, files, sources},
};

/// Phrases that are hard to understand, each with its replacement.
const BANNED: &[(&str, &str)] = &[
    ("dearer", "more expensive, or costs more"),
    ("dearest", "most expensive, or costs most"),
    ("anew", "again, or restarted"),
    ("the luck of a start", "start-to-start variation"),
    ("the luck of its start", "start-to-start variation"),
    ("neighbours' hour", "background load"),
    ("who else runs", "background load"),
    ("beside nobody", "alone on the machine"),
    ("least accounts", "minimal privileges"),
    ("ceased", "stopped"),
    ("not to be had", "not available"),
    ("cannot be told", "is unknown, or cannot be decided"),
    ("could not be told", "is unknown, or could not be decided"),
    ("looked at", "checked, or read"),
    ("one decides", "you decide, or decides"),
    ("whoever", "the person or the program, as in \"attackers who\" or \"the caller\""),
    ("Whoever", "the person or the program, as in \"Attackers who\" or \"The caller\""),
];

/// Further phrases, for documents and messages, which readers see without the code.
const BANNED_IN_PROSE: &[(&str, &str)] = &[
    ("nobody but", "only"),
    ("nobody can", "it cannot be, or no client can"),
    ("the server says that", "the server reports that"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("not told", "unknown, or not reported"),
    ("stands in", "is in"),
    ("stand in", "are in"),
    ("beside it", "next to it, or as well"),
    ("busy neighbours", "background load"),
    ("the luck of", "chance, or variation"),
    ("looked into", "read, or checked"),
    ("looked through", "searched"),
    ("as it came", "unchanged"),
    ("gives way to", "is overridden by"),
    ("is to be restarted", "restart it"),
    ("there is no proof of", "it cannot be proven"),
    ("planted by", "written by"),
    ("to be had", "available"),
];

/// Maximum number of words of a document.
const BUDGETS: &[(&str, usize)] = &[
    ("README.md", 900),
    ("docs/tutorial.md", 1_200),
    ("LIMITS.md", 1_800),
    ("CHANGELOG.md", 1_500),
    ("METHODOLOGY.md", 2_500),
    ("CONTRIBUTING.md", 1_700),
    ("docs/answers.md", 3_500),
    ("docs/atlas.md", 4_000),
    ("docs/reports/README.md", 2_000),
    ("ARCHITECTURE.md", 2_500),
];

/// Maximum number of words of all documents together, and of those that people write.
const BUDGET_OF_ALL: usize = 65_000;
const BUDGET: usize = 49_000;

/// Maximum number of words of FORMAT.md outside its tables; those of keys are generated.
const PROSE_OF_FORMAT: usize = 3_800;

/// Pages that tests and the program write: about databases, and about the servers that `inspect` was tried on.
const GENERATED: [&str; 2] = ["docs/databases", "docs/inspect"];

/// Pages of measured figures: commands make them, and they grow with what is measured. They have budgets of their own.
const MEASURED: [&str; 3] = ["docs/answers.md", "docs/atlas.md", "docs/reports/README.md"];

/// Documents that people read first. All but one in twenty of their sentences have at most [`SENTENCE`] words.
const SHORT_SENTENCES: [&str; 2] = ["README.md", "docs/tutorial.md"];
const SENTENCE: usize = 28;

/// All documents of the repository below the root, `docs` and `benches`: their paths from the root, and their texts.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(&root(), false, &mut found);
    ["docs", "benches"].iter().for_each(|folder| collect(&root().join(folder), true, &mut found));
    let from_root = |path: &Path| path.strip_prefix(root()).expect("below the root").to_owned();
    found.iter().map(|path| (from_root(path), fs::read_to_string(path).expect("a document"))).collect()
}

fn collect(folder: &Path, deep: bool, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() && deep {
            collect(&path, deep, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The prose of `document`: paragraphs and items of lists, each on one line, without code, tables and headings.
fn prose(document: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut in_code = false;
    for line in document.lines() {
        let text = line.trim();
        let is_fence = text.starts_with("```");
        in_code ^= is_fence;
        let is_item =
            text.starts_with("- ") || text.starts_with("* ") || text.starts_with(|c: char| c.is_ascii_digit());
        if is_fence || in_code || text.is_empty() || text.starts_with(['#', '|', '!']) {
            paragraphs.push(String::new());
        } else {
            if is_item {
                paragraphs.push(String::new());
            }
            let last = paragraphs.last_mut().expect("there is one");
            *last = format!("{last} {text}").trim().to_owned();
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// The sentences of a paragraph: each ends with a full stop, question or exclamation mark before a blank.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = paragraph;
    while let Some(end) = [". ", "? ", "! "].iter().filter_map(|sign| rest.find(sign)).min() {
        sentences.push(rest[..=end].trim());
        rest = &rest[end + 1..];
    }
    sentences.push(rest.trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// True when `text` contains `phrase` in whole words.
fn says(text: &str, phrase: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || ['-', '_'].contains(&c));
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

/// The mistakes in `text`: banned phrases with their replacements, and sentences with "Who" that are no questions.
fn wrong(text: &str, banned: &[(&str, &str)]) -> Vec<String> {
    // As one line, so that no line break hides a phrase.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_who =
        sentences(&text).into_iter().filter(|sentence| sentence.starts_with("Who ") && !sentence.ends_with('?'));
    let of_who = of_who.map(|sentence| format!("{sentence:?}: name the person, as in \"Readers who …\""));
    banned_in(&text, banned).into_iter().chain(of_who).collect()
}

/// The phrases of `banned` in `text`, each with its replacement. Names in backticks are not prose.
fn banned_in(text: &str, banned: &[(&str, &str)]) -> Vec<String> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let said = banned.iter().filter(|(phrase, _)| says(&prose, phrase));
    said.map(|(phrase, instead)| format!("{phrase:?}: write {instead}")).collect()
}

/// The phrases that are banned in documents and messages.
fn in_prose() -> Vec<(&'static str, &'static str)> {
    BANNED.iter().chain(BANNED_IN_PROSE).copied().collect()
}

/// The comments of `text` that begin with `mark`, those of consecutive lines as one.
fn comments(text: &str, mark: &str) -> Vec<String> {
    let mut comments = vec![String::new()];
    for line in text.lines().map(str::trim) {
        match line.strip_prefix(mark) {
            Some(text) => {
                let last = comments.last_mut().expect("there is one");
                *last = format!("{last} {}", text.trim_start_matches(['/', '!']).trim());
            }
            None => comments.push(String::new()),
        }
    }
    comments.retain(|comment| !comment.is_empty());
    comments
}

/// Places of scripts and settings, whose comments begin with `#`.
const SCRIPTS: [&str; 8] = ["check", "ci", "tools", "experiments", "docs/agents", "Cargo.toml", "deny.toml", ".cargo"];

/// The files at or below `path`, except pages and pictures.
fn scripts(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder").flatten();
        return entries.flat_map(|entry| scripts(&entry.path())).collect();
    }
    let other = ["md", "svg", "png"].iter().any(|kind| path.extension().is_some_and(|extension| extension == *kind));
    if other { Vec::new() } else { vec![path.to_owned()] }
}

#[test]
fn documents_keep_to_plain_words() {
    let banned = in_prose();
    let found = documents().into_iter().flat_map(|(path, text)| {
        let parts: Vec<String> = text.split("\n\n").flat_map(|part| wrong(part, &banned)).collect();
        parts.into_iter().map(move |found| format!("{}: {found}", path.display()))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_keep_to_plain_words() {
    let rust = ["crates", "benches"].iter().flat_map(|folder| files(&root().join(folder)));
    let scripts = SCRIPTS.iter().flat_map(|path| scripts(&root().join(path)));
    let scripts: Vec<(PathBuf, String)> =
        scripts.map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect();
    let of_rust = rust.map(|(path, text)| (path, comments(&text, "//")));
    let all: Vec<_> = of_rust.chain(scripts.into_iter().map(|(path, text)| (path, comments(&text, "#")))).collect();
    assert!(all.len() > 500, "{} files with comments", all.len());
    let found = all.into_iter().flat_map(|(path, comments)| {
        let wrong: Vec<String> = comments.iter().flat_map(|comment| banned_in(comment, BANNED)).collect();
        wrong.into_iter().map(move |wrong| format!("{}: {wrong}", path.display()))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Comments do not count, except those of the command line, which become its help.
#[test]
fn messages_keep_to_plain_words() {
    let (mut found, banned) = (Vec::new(), in_prose());
    for name in crate_names() {
        let texts = |source: &Source| if name == "cli" { source.texts() } else { source.messages() };
        for source in sources(&root().join("crates").join(&name).join("src")) {
            let wrong = texts(&source).into_iter().flat_map(|text| wrong(text.trim_matches('"'), &banned));
            found.extend(wrong.map(|wrong| format!("{name}: {}: {wrong}", source.path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn documents_keep_within_their_words() {
    let documents = documents();
    let is_read = |path: &Path| !MEASURED.iter().any(|page| path == Path::new(page));
    let read = || documents.iter().filter(|(path, _)| is_read(path));
    let by_hand = read().filter(|(path, _)| !GENERATED.iter().any(|folder| path.starts_with(folder)));
    let total: usize = by_hand.map(|(_, text)| words(text)).sum();
    assert!((20_000..=BUDGET).contains(&total), "documents have {total} words, and may have {BUDGET}");
    let all: usize = read().map(|(_, text)| words(text)).sum();
    assert!(all <= BUDGET_OF_ALL, "all documents have {all} words, and may have {BUDGET_OF_ALL}");
    for (name, most) in BUDGETS {
        let (_, text) = documents.iter().find(|(path, _)| path == Path::new(name)).expect("a document with a budget");
        assert!(words(text) <= *most, "{name} has {} words, and may have {most}", words(text));
    }
    let (_, format) = documents.iter().find(|(path, _)| path == Path::new("FORMAT.md")).expect("FORMAT.md");
    let of_format: usize = prose(format).iter().map(|paragraph| words(paragraph)).sum();
    assert!(of_format <= PROSE_OF_FORMAT, "FORMAT.md has {of_format} words of prose, and may have {PROSE_OF_FORMAT}");
}

/// Fails if more than one in twenty of `sentences` of `place` is longer than [`SENTENCE`] words.
fn check_lengths<'a>(place: &str, sentences: impl Iterator<Item = &'a str>) {
    let mut lengths: Vec<(usize, &str)> = sentences.map(|one| (words(one), one)).collect();
    assert!(lengths.len() > 20, "{place}: {} sentences", lengths.len());
    lengths.sort_unstable();
    let (length, sentence) = lengths[(lengths.len() * 95).div_ceil(100) - 1];
    assert!(
        length <= SENTENCE,
        "{place}: more than one sentence in twenty is as long as this one of {length} words: {sentence}"
    );
}

#[test]
fn what_is_read_first_has_short_sentences() {
    for name in SHORT_SENTENCES {
        let text = fs::read_to_string(root().join(name)).expect("a document");
        let prose = prose(&text);
        check_lengths(name, prose.iter().flat_map(|paragraph| sentences(paragraph)));
    }
}

/// Texts of less than five words are names and parts of sentences.
#[test]
fn messages_have_short_sentences() {
    let mut messages = Vec::new();
    for name in crate_names() {
        let sources = sources(&root().join("crates").join(&name).join("src"));
        messages.extend(sources.iter().flat_map(Source::messages));
    }
    let sentences = messages.iter().flat_map(|message| sentences(message.trim_matches('"')));
    check_lengths("messages", sentences.filter(|sentence| words(sentence) >= 5));
}

/// Percentages in messages are `12.2 %`, as `quantity::percentage` writes them; `5%` is what a user may type.
#[test]
fn messages_have_one_form_for_percentages() {
    let typed = ["precision", "margin", "threshold", "change", "must be a percentage", "share"];
    let mut found = Vec::new();
    for name in crate_names() {
        for source in sources(&root().join("crates").join(&name).join("src")) {
            let messages = source.messages().into_iter().filter(|text| text.contains(' '));
            let wrong = messages.filter(|text| text.contains("}%") && !typed.iter().any(|word| text.contains(word)));
            found.extend(wrong.map(|text| format!("{name}: {}: {text}", source.path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_is_banned_is_found() {
    let banned = [("dearer", "more expensive"), ("is told", "is reported")];
    assert_eq!(wrong("TLS is\ndearer. It is\n  told.", &banned).len(), 2);
    assert_eq!(wrong("A dearer, one", &banned), ["\"dearer\": write more expensive"]);
    assert!(wrong("This told; dearers, `is-dearer`. Who asks? Whose?", &banned).is_empty());
    assert_eq!(wrong("So. Who reads waits.", &banned).len(), 1);
    assert!(wrong("`dearer` is a name", &banned).is_empty());
    assert_eq!(comments("//! Is\n//! told.\nlet a = 1;\n    // dearer\n", "//"), [" Is told.", " dearer"]);
    let text =
        "# A heading\n\nOne here. Two\nhere? Three e.g.\n\n| a | b |\n\n```console\n$ code\n```\n* four\n* five\n";
    let prose = prose(text);
    assert_eq!(prose, ["One here. Two here? Three e.g.", "* four", "* five"]);
    assert_eq!(sentences(&prose[0]), ["One here.", "Two here?", "Three e.g."]);
}
