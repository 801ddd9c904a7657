//! An experiment from a few words: what `tithe run postgres --protect tls` stands for, as the text of a file.
//!
//! Nothing is validated here. Nonsense becomes text that [`parse`](crate::parse) refuses like any file, and
//! [`Composed::point`] maps its diagnostics back to the words. Defaults are written out too, so that a user who keeps
//! the text sees what can be changed.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    catalogue::{AskedOf, Catalogue, OfferedDatabase, OptionKind, Properties, ProtectionEntry, WorkloadEntry},
    diagnostic::Diagnostic,
    experiment::Url,
    plan,
    wrap::wrapped,
};

/// Default number of records: with values of 1 KB they fit in the memory that servers have by default.
const RECORDS: u64 = 20_000;

/// Default budget, s, unless the arms need more.
const BUDGET_S: f64 = 120.0;

/// Most protections that a title names.
const NAMED_MAX: usize = 4;

/// Budget of a quick answer, s, unless the arms need more.
pub const QUICK_S: f64 = 30.0;

/// The words of the command line.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// The command that they follow.
    pub command: &'a str,
    /// A database's identifier, or the URL of a running server.
    pub target: &'a str,
    /// The URL of the baseline, if it is not the target without TLS.
    pub plain: Option<&'a str>,
    /// One arm each: `tls`, `pgaudit:log=read,parameter=false`, `tls+pgaudit`.
    pub protections: &'a [String],
    /// Names of presets; empty for reads only, if there are no files either.
    pub workloads: &'a [String],
    /// Property files, one workload each.
    pub files: &'a [WorkloadFile],
    /// Scripts of one workload, each with an optional weight after an `@`.
    pub scripts: &'a [String],
    /// Keys of that workload with their values, as in a file.
    pub script_keys: &'a [(String, String)],
    /// Keys of the workloads of logs with their values, as in a file.
    pub replay_keys: &'a [(String, String)],
    /// The user's own data for the workloads of scripts and logs.
    pub prepare: Option<&'a str>,
    /// Numbers of clients; empty for one.
    pub clients: &'a [u32],
    /// Records.
    pub records: Option<u64>,
    /// Budget.
    pub budget: Option<&'a str>,
    /// As little load as gives any result.
    pub quick: bool,
    /// Every line has a comment, for users who edit the text.
    pub explained: bool,
}

impl<'a> Words<'a> {
    /// A command line of `command` and `target` alone.
    pub const fn new(command: &'a str, target: &'a str) -> Self {
        Self {
            command,
            target,
            plain: None,
            protections: &[],
            workloads: &[],
            files: &[],
            scripts: &[],
            script_keys: &[],
            replay_keys: &[],
            prepare: None,
            clients: &[],
            records: None,
            budget: None,
            quick: false,
            explained: false,
        }
    }
}

/// A property file of a workload.
#[derive(Debug, Clone)]
pub struct WorkloadFile {
    /// The kind of workload.
    pub kind: WorkloadEntry,
    /// Its path.
    pub path: String,
    /// Keys of an experiment that it sets, which then need no default.
    pub asks: Vec<AskedOf>,
}

/// The text of an experiment, and which of its parts come from which words.
#[derive(Debug)]
pub struct Composed {
    /// The words on one line, as a shell takes them.
    pub line: String,
    /// The experiment.
    pub text: String,
    /// Parts of the text with the place of their words in the line; of nested parts, the inner one comes first.
    origins: Vec<(Range<usize>, Range<usize>)>,
}

impl Composed {
    /// The diagnostics of the text, with their places moved to the words in the line.
    pub fn point(&self, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let pointed = |diagnostic: Diagnostic| Diagnostic {
            range: diagnostic.range.and_then(|range| self.origin(&range)),
            problem: diagnostic.problem,
            help: of_command_line(&diagnostic.help),
        };
        let mut all: Vec<Diagnostic> = diagnostics.into_iter().map(pointed).collect();
        all.sort_by_key(|diagnostic| diagnostic.range.as_ref().map_or(0, |range| range.start));
        // One word can stand for several lines.
        all.dedup();
        all
    }

    /// The words that the text in `range` comes from.
    fn origin(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let around = |part: &Range<usize>| part.start <= range.start && range.end <= part.end;
        let within = |part: &Range<usize>| range.start <= part.start && part.end <= range.end;
        let smallest = self.origins.iter().filter(|(part, _)| around(part)).min_by_key(|(part, _)| part.len());
        let (_, words) = smallest.or_else(|| self.origins.iter().find(|(part, _)| within(part)))?;
        Some(words.clone())
    }
}

/// Advice for files, and its equivalent on the command line.
const ADVICE: [(&str, &str); 4] = [
    ("`budget = ", "`--budget "),
    (" in `[measure]`", ""),
    ("leave out every `url` to", "name the database in place of its URL to"),
    ("give each its own name: reports tell them apart by it", "remove one of the two"),
];

/// `help` for a file, rewritten for the command line.
fn of_command_line(help: &str) -> String {
    ADVICE.iter().fold(help.to_owned(), |help, (file, line)| help.replace(file, line))
}

/// Writes the experiment that `words` stand for, about `database`.
///
/// # Errors
/// Problems that prevent writing the text at all, with their place in [`line`].
pub fn compose(
    words: &Words<'_>,
    database: &OfferedDatabase,
    catalogue: &Catalogue,
) -> Result<Composed, Vec<Diagnostic>> {
    let typed = Typed::of(words);
    let arms: Vec<Vec<Part<'_>>> = typed.protections.iter().map(|word| parts(word, database)).collect();
    let twice: Vec<Diagnostic> = arms.iter().flatten().flat_map(Part::given_twice).collect();
    if !twice.is_empty() {
        return Err(twice);
    }
    let mut writer = Writer { explained: words.explained, ..Writer::default() };
    let names: Vec<&str> = if words.workloads.is_empty() && words.files.is_empty() && words.scripts.is_empty() {
        vec!["c"]
    } else {
        typed.workloads.iter().map(|word| word.text).collect()
    };
    let kind_of = |name: &str| {
        let kind = catalogue.workloads.iter().find(|kind| kind.presets.iter().any(|(preset, ..)| *preset == name));
        kind.or(catalogue.workloads.first())
    };
    let generates = |kind: &WorkloadEntry| !(kind.shape)(&Properties::new()).has_own_data();
    let generated = names.iter().filter_map(|name| kind_of(name)).any(generates)
        || words.files.iter().any(|file| generates(&file.kind));
    head(words, database, &typed, generated, &mut writer);
    let cells = (names.len() + words.files.len() + usize::from(!words.scripts.is_empty())) * sweep(words.clients.len());
    measure(words, &typed, arms.len() + 1, cells, &mut writer);
    for (number, name) in names.iter().enumerate() {
        let kind = kind_of(name);
        let id = kind.map_or("", |kind| kind.id);
        writer.put(&format!("\n[[workload]]\n{id} = "));
        writer.from(&quoted(name), typed.workloads.get(number).map(|word| word.range.clone()));
        let preset = kind.iter().flat_map(|kind| kind.presets).find(|(preset, ..)| preset == name);
        writer.explain(preset.map_or("", |(_, sentence, _)| sentence));
        writer.put("\n");
    }
    for (file, word) in words.files.iter().zip(&typed.files) {
        writer.put(&format!("\n[[workload]]\n{} = ", file.kind.file_key()));
        writer.from(&quoted(&file.path), Some(word.range.clone()));
        if !file.kind.by_path.is_empty() {
            writer.put("\n");
            keys(words.replay_keys, &typed.replay_keys, &mut writer);
            prepare(words, &typed, &mut writer);
            continue;
        }
        writer.explain("the keys of this experiment override its own");
        writer.put("\n");
    }
    if !words.scripts.is_empty() {
        writer.put("\n[[workload]]\nscript = [");
        for (number, word) in typed.scripts.iter().enumerate() {
            writer.put(if number == 0 { "" } else { ", " });
            writer.from(&quoted(word.text), Some(word.range.clone()));
        }
        writer.put("]");
        writer.explain("in pgbench's language, run by Tithe's clients");
        writer.put("\n");
        keys(words.script_keys, &typed.script_keys, &mut writer);
        prepare(words, &typed, &mut writer);
    }
    write_arms(words, database, &typed, &arms, &mut writer);
    Ok(Composed { line: typed.line, text: writer.text, origins: writer.origins })
}

/// Writes keys of a workload with their values.
fn keys(keys: &[(String, String)], ranges: &[Range<usize>], writer: &mut Writer) {
    for ((key, value), range) in keys.iter().zip(ranges) {
        writer.put(&format!("{key} = "));
        writer.from(value, Some(range.clone()));
        writer.put("\n");
    }
}

/// Writes which of the user's own data a workload uses.
fn prepare(words: &Words<'_>, typed: &Typed<'_>, writer: &mut Writer) {
    let Some(path) = words.prepare else { return };
    writer.put("prepare = ");
    writer.from(&quoted(path), typed.prepare.clone());
    writer.put("\n");
}

/// The words on one line, as a shell takes them.
pub fn line(words: &Words<'_>) -> String {
    Typed::of(words).line
}

/// Cells of each workload: those of a sweep, and one more at a given rate.
fn sweep(numbers: usize) -> usize {
    if numbers > 1 { numbers + 1 } else { 1 }
}

/// `generated`: some workload works on records that Tithe generates.
fn head(words: &Words<'_>, database: &OfferedDatabase, typed: &Typed<'_>, generated: bool, writer: &mut Writer) {
    let names: Vec<&str> = words.protections.iter().map(String::as_str).collect();
    let listed = match names.split_last() {
        Some((_, others)) if others.len() >= NAMED_MAX => format!("{} protections", names.len()),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "nothing".to_owned(),
    };
    let cost = if names.len() == 1 { "costs" } else { "cost" };
    let comment: String = typed.line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    writer.put(&format!("# {comment}\n"));
    if words.explained {
        writer.put(LOOK);
    }
    writer.put("title = ");
    writer.put(&quoted(&short(&format!("What {listed} {cost} {}", database.entry.title))));
    writer.put("\ndatabase = ");
    writer.from(&quoted(database.entry.id), Some(typed.target.range.clone()));
    let asked = |of: AskedOf| words.files.iter().any(|file| file.asks.contains(&of));
    let has_data = generated || words.records.is_some();
    if has_data {
        writer.put("\n\n[data]\n");
    }
    if words.records.is_none() && asked(AskedOf::Records) {
        writer.put("# records: as the property file says");
    } else if has_data {
        writer.put("records = ");
        writer.from(&grouped(words.records.unwrap_or(RECORDS)), typed.records.clone());
        writer.explain("of 1 KB; where they do not fit in the server's memory, reads come from the disk");
    }
    writer.put("\n\n[load]\n");
    if words.clients.is_empty() && asked(AskedOf::Clients) {
        writer.put("# clients: as the property file says");
        return;
    }
    writer.put("clients = ");
    let clients = match words.clients {
        [] => "1".to_owned(),
        [one] => one.to_string(),
        several => format!("{several:?}"),
    };
    writer.from(&clients, typed.clients.clone());
    writer.explain("busy at the same time; `[1, 4, 16]` measures several numbers, \"sweep\" 1 to 64");
}

/// The next steps.
const LOOK: &str = "#
# tithe plan FILE    what it does, how long it takes, what each arm changes; starts nothing
# tithe verify FILE  every arm once with its evidence; times nothing
# tithe run FILE     measures, and reports the costs with their proof

";

/// `20_000`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A title that reports can print.
fn short(title: &str) -> String {
    const MAX: usize = 100;
    let printable = title.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = printable.clone().take(MAX).collect();
    if printable.count() > MAX {
        short.push('…');
    }
    short
}

fn measure(words: &Words<'_>, typed: &Typed<'_>, arms: usize, cells: usize, writer: &mut Writer) {
    let usual_s = if words.quick { QUICK_S } else { BUDGET_S };
    let usual_s = usual_s.max(plan::enough_s(arms, cells)).ceil();
    let usual = if usual_s % 60.0 == 0.0 { format!("{} min", usual_s / 60.0) } else { format!("{usual_s} s") };
    writer.put("\n\n[measure]\nbudget = ");
    writer.from(&quoted(words.budget.unwrap_or(&usual)), typed.budget.clone().or(typed.quick.clone()));
    writer.explain("of measured load for all cells; starting and loading servers comes on top");
    writer.put(if words.quick { "\nuntil_decided = true\n" } else { "\n" });
}

fn write_arms(
    words: &Words<'_>,
    database: &OfferedDatabase,
    typed: &Typed<'_>,
    arms: &[Vec<Part<'_>>],
    writer: &mut Writer,
) {
    let attached = Url::is_url(words.target);
    let asked_by_url = |parts: &[Part<'_>]| parts.iter().any(|part| part.entry.is_some_and(|entry| entry.by_url));
    let derived = match arms.iter().any(|parts| asked_by_url(parts)) {
        true => database.entry.url_tls.plain(Url::new(words.target).expose()),
        false => words.target.to_owned(),
    };
    let target = (words.target, typed.target.range.clone());
    let plain = match (words.plain, &typed.plain) {
        (Some(url), Some(range)) => (url, range.clone()),
        _ => (derived.as_str(), target.1.clone()),
    };
    let url = |(address, range): &(&str, Range<usize>), writer: &mut Writer| {
        if attached {
            writer.put("url = ");
            writer.from(&quoted(address), Some(range.clone()));
            writer.put("\n");
        }
    };
    // Protections of another server or account are at the target, if the baseline is elsewhere.
    let there = |parts: &[Part<'_>]| {
        asked_by_url(parts) || words.plain.is_some() && parts.iter().any(|part| part.entry.is_some_and(of_server))
    };
    let start = writer.text.len();
    writer.put("\n[[arm]]\nname = \"plain\"");
    writer.explain("the baseline: every other arm is compared with it");
    writer.put("\n");
    url(&plain, writer);
    writer.origins.push((start..writer.text.len(), plain.1.clone()));
    for (word, parts) in typed.protections.iter().zip(arms) {
        let start = writer.text.len();
        writer.put("\n");
        if words.explained {
            parts.iter().filter_map(|part| part.entry).for_each(|entry| writer.put(&explanation(entry)));
        }
        writer.put("[[arm]]\nname = ");
        writer.from(&quoted(word.text), Some(word.range.clone()));
        writer.put("\nprotections = [");
        for (number, part) in parts.iter().enumerate() {
            writer.put(if number == 0 { "" } else { ", " });
            part.write(writer);
        }
        writer.put("]\n");
        url(if there(parts) { &target } else { &plain }, writer);
        if attached {
            write_switches(parts, writer);
        }
        writer.origins.push((start..writer.text.len(), word.range.clone()));
    }
}

/// True for a protection of the whole server: neither its clients nor its sessions add it.
fn of_server(entry: &ProtectionEntry) -> bool {
    !entry.by_client && entry.switch.is_none()
}

/// The statements that switch the protections of an arm.
fn write_switches(parts: &[Part<'_>], writer: &mut Writer) {
    let switches: Vec<_> = parts.iter().filter_map(|part| Some((part, part.entry?.switch?))).collect();
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for (part, switch) in &switches {
        let chosen = part.chosen();
        let [switch_on, switch_off] = switch.statements(&chosen);
        let quoted = |statement: String| quoted(&statement);
        on.extend(filled(switch_on, &chosen).into_iter().map(quoted));
        off.extend(filled(switch_off, &chosen).into_iter().map(quoted));
    }
    if !on.is_empty() {
        writer.put(&format!("on = [{}]\noff = [{}]\n", on.join(", "), off.join(", ")));
    }
}

/// `statements` of a switch of `entry` with the defaults of its options.
pub fn statements(statements: &[&str], entry: &ProtectionEntry) -> Vec<String> {
    filled(statements, &defaults(entry))
}

/// `statements` with the `chosen` values in place of the options' names.
fn filled(statements: &[&str], chosen: &BTreeMap<String, String>) -> Vec<String> {
    let put = |text: String, (name, value): (&String, &String)| text.replace(&format!("{{{name}}}"), value);
    statements.iter().map(|statement| chosen.iter().fold((*statement).to_owned(), put)).collect()
}

/// The default options of `entry`, as statements write them.
fn defaults(entry: &ProtectionEntry) -> BTreeMap<String, String> {
    let options = entry.options.iter();
    options.filter_map(|option| Some((option.name.to_owned(), option.default?.value().to_string()))).collect()
}

/// A text as TOML writes it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What `entry` is and which options it has, as comments.
fn explanation(entry: &ProtectionEntry) -> String {
    let mut text = comment(&format!("{}; protects against: {}", entry.title, entry.protects_against));
    for option in entry.options {
        let takes = match option.kind {
            OptionKind::Text => "\"…\"".to_owned(),
            kind => kind.to_string(),
        };
        text.push_str(&comment(&format!("{} = {takes}: {}", option.name, option.help)));
    }
    text
}

/// The arm of `entry` as a comment, and why it is left out.
pub fn left_out(entry: &ProtectionEntry, reason: &str) -> String {
    let arm = format!("# [[arm]]\n# name = {0}\n# protections = [{{ use = {0} }}]\n", quoted(entry.id));
    format!("\n{}{arm}", comment(&format!("{} is not available: {reason}", entry.title)))
}

/// `text` as lines of comment.
fn comment(text: &str) -> String {
    const WIDTH: usize = 110;
    let lines = wrapped(text, ["# ", "#   "], WIDTH, |text| text.chars().count());
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Text with the words that its parts come from.
#[derive(Default)]
struct Writer {
    explained: bool,
    text: String,
    origins: Vec<(Range<usize>, Range<usize>)>,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes an explanation after a line, if every line has a comment.
    fn explain(&mut self, what: &str) {
        if self.explained && !what.is_empty() {
            self.text.push_str(&format!("    # {what}"));
        }
    }

    /// Writes text that comes from the words in `origin`.
    fn from(&mut self, text: &str, origin: Option<Range<usize>>) {
        let start = self.text.len();
        self.text.push_str(text);
        self.origins.extend(origin.map(|origin| (start..self.text.len(), origin)));
    }
}

/// A word in the line.
struct Word<'a> {
    text: &'a str,
    range: Range<usize>,
    /// False if the shell needs escapes, so that only the whole word has a place.
    is_plain: bool,
}

impl Word<'_> {
    /// The place of a part of the word that begins at byte `at`.
    fn place(&self, at: usize, length: usize) -> Range<usize> {
        if self.is_plain { self.range.start + at..self.range.start + at + length } else { self.range.clone() }
    }
}

/// The words on a line, each with its place.
struct Typed<'a> {
    line: String,
    target: Word<'a>,
    plain: Option<Range<usize>>,
    protections: Vec<Word<'a>>,
    workloads: Vec<Word<'a>>,
    files: Vec<Word<'a>>,
    scripts: Vec<Word<'a>>,
    script_keys: Vec<Range<usize>>,
    replay_keys: Vec<Range<usize>>,
    prepare: Option<Range<usize>>,
    clients: Option<Range<usize>>,
    records: Option<Range<usize>>,
    budget: Option<Range<usize>>,
    quick: Option<Range<usize>>,
}

impl<'a> Typed<'a> {
    fn of(words: &Words<'a>) -> Self {
        let mut line = format!("tithe {}", words.command);
        let target = add(&mut line, "", words.target);
        let plain = words.plain.map(|url| add(&mut line, " --plain", url).range);
        let protections = words.protections.iter().map(|word| add(&mut line, " --protect", word)).collect();
        let workloads = words.workloads.iter().map(|word| add(&mut line, " --workload", word)).collect();
        let option = |kind: &WorkloadEntry| format!(" --{}", kind.file_key().replace('_', "-"));
        let files = words.files.iter().map(|file| add(&mut line, &option(&file.kind), &file.path)).collect();
        let scripts = words.scripts.iter().map(|script| add(&mut line, " --script", script)).collect();
        let script_keys = words.script_keys.iter().map(|key| add_key(&mut line, key)).collect();
        let replay_keys = words.replay_keys.iter().map(|key| add_key(&mut line, key)).collect();
        let prepare = words.prepare.map(|path| add(&mut line, " --prepare", path).range);
        let numbers: Vec<String> = words.clients.iter().map(u32::to_string).collect();
        let mut option = |given: Option<String>, name: &str| given.map(|text| add(&mut line, name, &text).range);
        let clients = option((!numbers.is_empty()).then(|| numbers.join(",")), " --clients");
        let records = option(words.records.map(|records| records.to_string()), " --records");
        let budget = option(words.budget.map(str::to_owned), " --budget");
        let quick = words.quick.then(|| {
            line.push_str(" --quick");
            line.len() - "--quick".len()..line.len()
        });
        Self {
            line,
            target,
            plain,
            protections,
            workloads,
            files,
            scripts,
            script_keys,
            replay_keys,
            prepare,
            clients,
            records,
            budget,
            quick,
        }
    }
}

/// Adds `word` to `line`, after its option.
fn add<'a>(line: &mut String, option: &str, word: &'a str) -> Word<'a> {
    line.push_str(option);
    line.push(' ');
    let start = line.len();
    let is_usual = |c: char| c.is_alphanumeric() || "-_.,:=+/@%".contains(c);
    if !word.is_empty() && word.chars().all(is_usual) {
        line.push_str(word);
        return Word { text: word, range: start..line.len(), is_plain: true };
    }
    let is_plain = !word.contains('\'');
    line.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
    let range = if is_plain { start + 1..line.len() - 1 } else { start..line.len() };
    Word { text: word, range, is_plain }
}

/// Adds the option for a workload's key to `line`; returns its place.
fn add_key(line: &mut String, (key, value): &(String, String)) -> Range<usize> {
    let value = value.trim_matches('"');
    let named = [("define.", " --define"), ("properties.", " --property")];
    let pair = named.into_iter().find_map(|(group, option)| Some((option, key.strip_prefix(group)?)));
    match pair {
        Some((option, name)) => add(line, option, &format!("{name}={value}")).range,
        None => add(line, &format!(" --{}", key.replace('_', "-")), value).range,
    }
}

/// One protection of a word: `pgaudit:log=read,write`.
struct Part<'a> {
    id: &'a str,
    place: Range<usize>,
    entry: Option<&'static ProtectionEntry>,
    options: Vec<Given<'a>>,
}

/// One option of a protection: `log=read,write`.
struct Given<'a> {
    name: &'a str,
    value: String,
    place: Range<usize>,
}

/// The protections of `word`.
fn parts<'a>(word: &Word<'a>, database: &OfferedDatabase) -> Vec<Part<'a>> {
    let mut at = 0;
    let split = word.text.split('+').map(|text| {
        let start = at;
        at += text.len() + 1;
        part(word, start, text, database)
    });
    split.collect()
}

fn part<'a>(word: &Word<'_>, start: usize, text: &'a str, database: &OfferedDatabase) -> Part<'a> {
    let (id, chosen) = text.split_once(':').map_or((text, None), |(id, chosen)| (id, Some(chosen)));
    let named = database.protection(id);
    let implied = if named.is_none() { implied(id, database) } else { None };
    let entry = named.or(implied.map(|(entry, _)| entry));
    let place = word.place(start, id.len());
    let mut options: Vec<Given<'a>> = Vec::new();
    options.extend(implied.map(|(_, name)| Given { name, value: id.to_owned(), place: place.clone() }));
    let mut at = start + id.len() + 1;
    for piece in chosen.iter().flat_map(|chosen| chosen.split(',')) {
        let place = word.place(at, piece.len());
        at += piece.len() + 1;
        let is_option = |name: &str| entry.is_some_and(|entry| entry.option(name).is_some());
        match (piece.split_once('='), options.last_mut()) {
            (Some((name, value)), _) => options.push(Given { name, value: value.to_owned(), place }),
            // A comma within a value: `log=read,write`.
            (None, Some(before)) if !is_option(piece) => {
                before.value.push(',');
                before.value.push_str(piece);
                before.place.end = place.end;
            }
            // A switch: `tls:mutual`.
            (None, _) => options.push(Given { name: piece, value: "true".to_owned(), place }),
        }
    }
    Part { id: implied.map_or(id, |(entry, _)| entry.id), place, entry, options }
}

/// The only protection of `database` with an option that takes `word`, and this option: `aegis` means the page
/// encryption with this cipher.
fn implied(word: &str, database: &OfferedDatabase) -> Option<(&'static ProtectionEntry, &'static str)> {
    let takes = |kind: OptionKind| matches!(kind, OptionKind::Choice(words) if words.contains(&word));
    let all = database.protections.iter().flat_map(|entry| entry.options.iter().map(move |option| (*entry, option)));
    let mut found = all.filter(|(_, option)| takes(option.kind));
    let (entry, option) = found.next()?;
    found.next().is_none().then_some((entry, option.name))
}

impl Part<'_> {
    fn given_twice(&self) -> Vec<Diagnostic> {
        let earlier =
            |number: usize, name: &str| name == "use" || self.options[..number].iter().any(|it| it.name == name);
        let options = self.options.iter().enumerate().filter(|(number, option)| earlier(*number, option.name));
        options
            .map(|(_, option)| {
                let problem = match option.name {
                    "use" => "`use` is not an option".to_owned(),
                    name => format!("`{}` is given twice", name.escape_debug()),
                };
                Diagnostic::at(
                    option.place.clone(),
                    problem,
                    "write `NAME:option=value,option=value`, each option once",
                )
            })
            .collect()
    }

    /// The values of its options, defaults included, as statements write them.
    fn chosen(&self) -> BTreeMap<String, String> {
        let given = self.options.iter().map(|option| (option.name.to_owned(), option.value.clone()));
        self.entry.map(defaults).unwrap_or_default().into_iter().chain(given).collect()
    }

    /// `{ use = "pgaudit", log = "read,write" }`
    fn write(&self, writer: &mut Writer) {
        let start = writer.text.len();
        writer.put("{ use = ");
        writer.from(&quoted(self.id), Some(self.place.clone()));
        for Given { name, value, place } in &self.options {
            writer.put(", ");
            let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            writer.from(&if is_bare { (*name).to_owned() } else { quoted(name) }, Some(place.clone()));
            writer.put(" = ");
            writer.from(&self.value(name, value), Some(place.clone()));
        }
        writer.put(" }");
        writer.origins.push((start..writer.text.len(), self.place.clone()));
    }

    /// `value` in TOML, as the option `name` takes it.
    fn value(&self, name: &str, value: &str) -> String {
        let kind = self.entry.and_then(|entry| entry.option(name)).map(|option| option.kind);
        match (kind, value, value.parse::<f64>()) {
            (Some(OptionKind::Flag), "true" | "false", _) => value.to_owned(),
            (Some(OptionKind::Number { .. }), _, Ok(number)) if number.is_finite() => number.to_string(),
            _ => quoted(value),
        }
    }
}
