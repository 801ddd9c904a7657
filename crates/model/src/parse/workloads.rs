//! `[[workload]]`: a preset of properties or a property file, and the experiment's own properties on top.

use std::{collections::BTreeMap, io, ops::Range, path::Path};

use super::{
    keys,
    reader::{self, Item, Pair, Problems, Table, Text},
    refuse_duplicates,
};
use crate::{
    catalogue::{Catalogue, Properties, WorkloadEntry},
    experiment::Workload,
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
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<String>,
    problems: &mut Problems,
) -> Vec<Workload> {
    let source_keys: Vec<String> =
        catalogue.workloads.iter().flat_map(|kind| [kind.id.to_owned(), file_key(kind)]).collect();
    let mut names = Vec::new();
    let mut workloads = Vec::new();
    let tables = top.tables("workload", &keys::WORKLOAD, &source_keys, problems);
    for table in &tables {
        let (name, workload) = workload(table, catalogue, read, problems);
        names.extend(name);
        workloads.extend(workload);
    }
    refuse_duplicates("workloads", &names, problems);
    if tables.is_empty() {
        let help = format!("add `[[workload]]` and below it {}", example(catalogue));
        problems.missing(problems.end..problems.end, "the experiment has no `[[workload]]`", help);
    }
    workloads
}

/// The key by which a property file of `kind` is named.
fn file_key(kind: &WorkloadEntry) -> String {
    format!("{}_file", kind.id)
}

fn example(catalogue: &Catalogue) -> String {
    let example = catalogue.workloads.first().and_then(|kind| Some((kind.id, kind.presets.first()?.0)));
    example.map_or("its kind".to_owned(), |(kind, preset)| format!("`{kind} = \"{preset}\"`"))
}

fn workload(
    table: &Table<'_>,
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<String>,
    problems: &mut Problems,
) -> (Option<Text>, Option<Workload>) {
    let own_name = table.get("name").map(|item| item.name(problems));
    let own = table.get("properties").map(|item| item.pairs(problems)).unwrap_or_default();
    let Some(source) = source(table, catalogue, problems) else { return (own_name.flatten(), None) };
    let Some(written) = source.item.text(problems) else { return (own_name.flatten(), None) };
    let base = match source.is_file {
        true => from_file(&source, written, read, problems),
        false => presets(&source, written, problems).map(|properties| (properties, String::new())),
    };
    let default_name = if source.is_file { stem(written) } else { written };
    let name = own_name.unwrap_or_else(|| Some(Text::new(source.item.range.clone(), default_name.to_owned())));
    let Some((mut properties, text)) = base else { return (name, None) };
    let places = places(&own);
    properties.extend(reader::texts(own));
    let line = |property: &str| Some(format!("line {} of {}: ", line_of(&text, property)?, wording::quote(written)));
    check(&source, &properties, &places, &line, problems);
    hide_secrets(&mut properties);
    let text = name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default();
    (name, Some(Workload { name: text, kind: source.kind.id.to_owned(), properties }))
}

/// The one source that a workload must have.
fn source<'a>(table: &Table<'a>, catalogue: &'a Catalogue, problems: &mut Problems) -> Option<Source<'a>> {
    let mut sources = Vec::new();
    for kind in &catalogue.workloads {
        let preset = kind.presets.first().map_or("", |(name, _, _)| name);
        sources.extend(table.named(kind.id, preset).map(|item| Source { kind, item, is_file: false }));
        sources.extend(table.named(&file_key(kind), "").map(|item| Source { kind, item, is_file: true }));
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
        let lead = format!("for a property file write `{} = …`; the presets are", file_key(source.kind));
        problems.at(source.item.range.clone(), problem, wording::suggest(name, &names, &lead));
    }
    let (_, _, pairs) = set?;
    Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

/// The properties in the file at `path`, and its text.
fn from_file(
    source: &Source<'_>,
    path: &str,
    read: &dyn Fn(&str) -> io::Result<String>,
    problems: &mut Problems,
) -> Option<(Properties, String)> {
    let range = source.item.range.clone();
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => {
            let problem = format!("the property file {} cannot be read: {error}", wording::quote(path));
            problems.at(range, problem, "the path is taken from the folder of the experiment file");
            return None;
        }
    };
    match (source.kind.read)(&text) {
        Ok(properties) => Some((properties, text)),
        Err(found) => {
            for (line, problem, help) in found {
                problems.at(range.clone(), format!("line {line} of {}: {problem}", wording::quote(path)), help);
            }
            None
        }
    }
}

/// The file's name without folder and ending.
fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.trim().is_empty()).unwrap_or("file")
}

fn places(own: &BTreeMap<String, Pair>) -> BTreeMap<String, Range<usize>> {
    own.iter().map(|(name, pair)| (name.clone(), pair.range.clone())).collect()
}

/// Property files of other tools may hold passwords for their drivers, which Tithe does not use: plan and records
/// show `***` in their place.
fn hide_secrets(properties: &mut Properties) {
    for (name, value) in properties.iter_mut() {
        let name = name.to_lowercase();
        // What begins with a place to fill in has no password before its host.
        let url = value.replace("://{host}", "").contains("://");
        if name.contains("pass") || name.contains("secret") || url {
            "***".clone_into(value);
        }
    }
}

/// What the kind says about the properties, at the property where the experiment gives it, else at the source, with its
/// line in the property file.
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

/// The number of the line of a property file that gives `property`: the last one, which counts.
fn line_of(text: &str, property: &str) -> Option<usize> {
    let gives = |line: &str| {
        let rest = line.trim_start().strip_prefix(property);
        rest.is_some_and(|rest| rest.starts_with(['=', ':']) || rest.starts_with(char::is_whitespace))
    };
    let numbered = text.lines().enumerate().filter(|(_, line)| gives(line));
    numbered.last().map(|(number, _)| number + 1)
}
