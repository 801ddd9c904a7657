//! `[[workload]]`: a preset of properties or a property file, overridden by the experiment's own properties.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    asked::AskedBy,
    keys,
    reader::{self, Item, Pair, Problems, Table, Text},
    refuse_duplicates, size,
};
use crate::{
    catalogue::{Catalogue, Properties, PropertyFile, WireProtocol, WorkloadEntry},
    experiment::{Workload, url::names_secret},
    wording,
};

/// Where a workload's properties come from.
struct Source<'a> {
    kind: &'a WorkloadEntry,
    /// `ycsb = "c"` or `ycsb_file = "mine.properties"`.
    item: Item<'a>,
    is_file: bool,
}

pub(super) fn workloads(
    top: &Table<'_>,
    (protocol, catalogue): (Option<WireProtocol>, &Catalogue),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> (Vec<Workload>, Vec<AskedBy>) {
    let mut source_keys: Vec<String> =
        catalogue.workloads.iter().flat_map(|kind| [kind.id.to_owned(), kind.file_key()]).collect();
    source_keys.dedup();
    let (mut names, mut workloads, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    let tables = top.tables("workload", &keys::WORKLOAD, &source_keys, problems);
    for table in &tables {
        let (name, read) = workload(table, (protocol, catalogue), read, problems);
        names.extend(name);
        if let Some((workload, asks)) = read {
            workloads.push(workload);
            asked.extend(asks);
        }
    }
    refuse_duplicates("workloads", &names, problems);
    if tables.is_empty() {
        let help = format!("add `[[workload]]` and below it {}", example(catalogue));
        problems.missing(problems.end..problems.end, "the experiment has no `[[workload]]`", help);
    }
    (workloads, asked)
}

fn example(catalogue: &Catalogue) -> String {
    let example = catalogue.workloads.first().and_then(|kind| Some((kind.id, kind.presets.first()?.0)));
    example.map_or("its kind".to_owned(), |(kind, preset)| format!("`{kind} = \"{preset}\"`"))
}

fn workload(
    table: &Table<'_>,
    (protocol, catalogue): (Option<WireProtocol>, &Catalogue),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> (Option<Text>, Option<(Workload, Vec<AskedBy>)>) {
    let own_name = table.get("name").map(|item| item.name(problems));
    let mut own = table.get("properties").map(|item| item.pairs(problems)).unwrap_or_default();
    for (name, pair) in keyed(table, problems) {
        if own.contains_key(&name) {
            let problem = format!("`{name}` is given twice, here and in `properties`");
            problems.at(pair.key_range.clone(), problem, "remove one of the two");
        }
        own.insert(name, pair);
    }
    let prepare = table.get("prepare").and_then(|item| item.text(problems).map(PathBuf::from));
    let Some(source) = source(table, catalogue, problems) else { return (own_name.flatten(), None) };
    let items = match source.is_file && source.item.value.as_array().is_some() {
        true => source.item.list(problems),
        false => vec![source.item.clone()],
    };
    let written: Vec<(&Item<'_>, &str)> = items.iter().filter_map(|item| Some((item, item.text(problems)?))).collect();
    let Some((_, first)) = written.first() else {
        if items.is_empty() {
            source.item.refuse("names no file", problems);
        }
        return (own_name.flatten(), None);
    };
    let base = match source.is_file {
        true => from_files(&source, &written, protocol, read, problems),
        false => presets(&source, first, problems).map(|properties| (properties, Vec::new())),
    };
    let path = weight_of(source.kind, first).0;
    // Names of scripts that are not files begin with `builtin:`.
    let default_name = if source.is_file { stem(path.rsplit_once(':').map_or(path, |(_, name)| name)) } else { first };
    let name = own_name.unwrap_or_else(|| Some(Text::new(source.item.range.clone(), default_name.to_owned())));
    let Some((mut properties, texts)) = base else { return (name, None) };
    let places = places(&own);
    properties.extend(reader::texts(own));
    let line = |property: &str| {
        let found = texts.iter().rev().find_map(|(name, text)| Some((name, line_of(text, property)?)));
        found.map(|(name, line)| format!("line {line} of {}: ", wording::quote(name)))
    };
    check(&source, &properties, &places, &line, problems);
    hide_secrets(source.kind, &mut properties);
    let text = name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default();
    let range = &source.item.range;
    let asked = (source.kind.asks)(&properties).into_iter();
    let asked = asked.map(|asked| AskedBy { asked, workload: text.clone(), range: range.clone() }).collect();
    (name, Some((Workload { name: text, kind: source.kind.id.to_owned(), properties, prepare }, asked)))
}

/// Properties that have their own keys.
fn keyed(table: &Table<'_>, problems: &mut Problems) -> Vec<(String, Pair)> {
    let mut found = Vec::new();
    let mut put = |item: &Item<'_>, text: String| {
        found.push((
            item.key.to_owned(),
            Pair { value: text, key_range: item.key_range.clone(), range: item.range.clone() },
        ));
    };
    let protocols = ["simple", "extended", "prepared"].map(|word| (word, word));
    if let Some(item) = table.get("protocol")
        && let Some(word) = item.choice(&protocols, problems)
    {
        put(&item, word.to_owned());
    }
    if let Some(item) = table.get("max_tries")
        && let Some(number) = item.whole(0..=u64::from(u32::MAX), problems)
    {
        put(&item, number.to_string());
    }
    if let Some(item) = table.get("write_in_place")
        && let Some(tables) = item.text(problems)
    {
        put(&item, tables.to_owned());
    }
    if let Some(item) = table.get("copy_limit")
        && let Some(bytes) = size(&item, problems)
    {
        put(&item, bytes.to_string());
    }
    if let Some(item) = table.get("commit")
        && let Some(commits) = item.flag(problems)
    {
        put(&item, commits.to_string());
    }
    if let Some(item) = table.get("define") {
        let pairs = reader::texts(item.pairs(problems)).into_iter();
        // A quote within quotes is one in the other quotes.
        let words = pairs.map(|(name, value)| format!("'{name}={}'", value.replace('\'', "'\"'\"'")));
        let words: Vec<String> = words.collect();
        put(&item, words.join(" "));
    }
    found
}

/// The one source that a workload must have.
fn source<'a>(table: &Table<'a>, catalogue: &'a Catalogue, problems: &mut Problems) -> Option<Source<'a>> {
    let mut sources = Vec::new();
    for kind in &catalogue.workloads {
        let preset = kind.presets.first().map_or("", |(name, _, _)| name);
        if !kind.names_files() {
            sources.extend(table.named(kind.id, preset).map(|item| Source { kind, item, is_file: false }));
        }
        sources.extend(table.named(&kind.file_key(), "\"FILE\"").map(|item| Source { kind, item, is_file: true }));
    }
    sources.sort_by_key(|source| source.item.range.start);
    for source in sources.iter().skip(1) {
        let problem = format!("a workload has one source, and `{}` is a second one", source.item.key);
        problems.at(source.item.key_range.clone(), problem, "remove it, or give it a `[[workload]]` of its own");
    }
    if sources.is_empty() {
        problems.missing(
            table.place.clone(),
            "`[[workload]]` does not say what the clients do",
            format!("add {}", example(catalogue)),
        );
    }
    sources.into_iter().next()
}

fn presets(source: &Source<'_>, name: &str, problems: &mut Problems) -> Option<Properties> {
    let sets = source.kind.presets;
    let set = sets.iter().find(|(preset, _, _)| *preset == name);
    if set.is_none() {
        let names: Vec<&str> = sets.iter().map(|(preset, _, _)| *preset).collect();
        let problem = format!("`{}` has no preset {}", source.kind.id, wording::quote(name));
        let lead = format!("for a file of your own write `{} = …`; the presets are", source.kind.file_key());
        problems.at(source.item.range.clone(), problem, wording::suggest(name, &names, &lead));
    }
    let (_, _, pairs) = set?;
    Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

/// The properties of all files, later files override earlier ones, and the text of each file by its name.
fn from_files(
    source: &Source<'_>,
    written: &[(&Item<'_>, &str)],
    protocol: Option<WireProtocol>,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Option<(Properties, Vec<(String, String)>)> {
    let (mut properties, mut texts, mut failed) = (Properties::new(), Vec::new(), false);
    for (index, (item, written)) in written.iter().enumerate() {
        let (path, weight) = weight_of(source.kind, written);
        let range = item.range.clone();
        let built_in = source.kind.presets.iter().filter(|_| source.kind.names_files());
        let built_in = built_in.into_iter().find(|(name, ..)| *name == path).and_then(|(_, _, set)| set.first());
        let content = match built_in {
            Some((_, text)) => Ok(text.as_bytes().to_vec()),
            // A log may be larger than memory, so it is read when its workload is made.
            None if !source.kind.by_path.is_empty() => Ok(Vec::new()),
            None => read(path),
        };
        let bytes = match content {
            Ok(bytes) => bytes,
            Err(error) => {
                let (why, help) = match error.kind() {
                    io::ErrorKind::IsADirectory => ("it is a folder".to_owned(), "name the file in it"),
                    _ => (error.to_string(), "the path is relative to the folder of the experiment file"),
                };
                problems.at(range, format!("the file {} cannot be read: {why}", wording::quote(path)), help);
                failed = true;
                continue;
            }
        };
        match (source.kind.read)(&PropertyFile { name: path, weight, number: index + 1, bytes: &bytes, protocol }) {
            Ok(more) => properties.extend(more),
            Err(found) => {
                failed = true;
                for (line, problem, help) in found {
                    problems.at(range.clone(), format!("line {line} of {}: {problem}", wording::quote(path)), help);
                }
            }
        }
        texts.push((path.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    (!failed).then_some((properties, texts))
}

/// A path without its weight, and the weight.
fn weight_of<'t>(kind: &WorkloadEntry, written: &'t str) -> (&'t str, Option<u32>) {
    let weight = written.rsplit_once('@').and_then(|(path, weight)| Some((path, weight.parse().ok()?)));
    weight.filter(|_| kind.weighted).map_or((written, None), |(path, weight)| (path, Some(weight)))
}

/// The file's name without folder and ending.
fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.trim().is_empty()).unwrap_or("file")
}

fn places(own: &BTreeMap<String, Pair>) -> BTreeMap<String, Range<usize>> {
    own.iter().map(|(name, pair)| (name.clone(), pair.range.clone())).collect()
}

/// Property files of other tools may contain passwords for their drivers, which Tithe does not use: plan and records
/// show `***` instead. In scripts, the reader of their kind has already checked for them.
fn hide_secrets(kind: &WorkloadEntry, properties: &mut Properties) {
    let is_script = |name: &str| !kind.scripts.is_empty() && name.starts_with(kind.scripts);
    let is_other = |name: &str| !is_script(name) && name != kind.by_path;
    for (name, value) in properties.iter_mut().filter(|(name, _)| is_other(name)) {
        // A URL that begins with the placeholder has no password before its host.
        let url = value.replace("://{host}", "").contains("://");
        if names_secret(name) || url {
            "***".clone_into(value);
        }
    }
}

/// Reports the kind's problems with the properties: at the property if the experiment sets it, else at the source, with
/// its line in the property file.
fn check(
    source: &Source<'_>,
    properties: &Properties,
    places: &BTreeMap<String, Range<usize>>,
    line: &dyn Fn(&str) -> Option<String>,
    problems: &mut Problems,
) {
    for (property, problem, help) in (source.kind.check)(properties) {
        let own = places.get(&property);
        let line = if own.is_some() { None } else { line(&property) };
        let problem = format!("{}`{property}`: {problem}", line.unwrap_or_default());
        problems.at(own.unwrap_or(&source.item.range).clone(), problem, help);
    }
}

/// The number of the line of a property file that sets `property`: the last one, which takes effect.
fn line_of(text: &str, property: &str) -> Option<usize> {
    let gives = |line: &str| {
        let rest = line.trim_start().strip_prefix(property);
        rest.is_some_and(|rest| rest.starts_with(['=', ':']) || rest.starts_with(char::is_whitespace))
    };
    let numbered = text.lines().enumerate().filter(|(_, line)| gives(line));
    numbered.last().map(|(number, _)| number + 1)
}
