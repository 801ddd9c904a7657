//! Protections described by data: entries with `use = "custom"`, `settings` and `claims` of an arm, and files.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Component, Path, PathBuf},
    slice,
};

use toml::de::{DeTable, DeValue};

use super::{
    claims::claims,
    keys, options,
    reader::{self, Item, Problems, Table},
};
use crate::{
    catalogue::{DefaultValue, OfferedDatabase, OptionEntry, OptionKind, ProtectionEntry},
    diagnostic::{Diagnostic, text_of},
    experiment::{Arm, Custom, Protection, mask::secret_setting},
    statement::changes_server,
    wording,
};

/// The value of `use` for an entry that is described in place.
pub(super) const CUSTOM: &str = "custom";

/// The name of the protection made from an arm's `settings`.
pub const SETTINGS: &str = "settings";

/// The name of the protection made from an arm's `claims` without `settings`.
const CLAIMS: &str = "claims";

/// Folders with files of protections, the first one has precedence: relative to the experiment's folder, and the user's
/// own.
pub const FOLDERS: [&str; 2] = ["protections", "~/.config/tithe/protections"];

/// Placeholders in a protection's texts for values that are known only when its arm is set up.
const PLACEHOLDERS: [&str; 2] = ["space", "files"];

/// The problem and remedy of a protection that changes nothing.
const CHANGES_NOTHING: &str = "this protection changes nothing";
const DIFFERS_BY: &str = "add `settings`, `statements` or `session`: what its arm has and the plain one has not";

/// A protection described by a file.
#[derive(Debug, Clone)]
pub struct Described {
    /// Its description. Its texts are read once and never freed.
    pub entry: &'static ProtectionEntry,
    /// The protection, with `{option}` as placeholder for an option's value.
    pub custom: Custom,
}

/// A protection of an arm that is described by data, with its places.
pub(super) struct Own {
    pub protection: Protection,
    /// Where the arm names it.
    place: Range<usize>,
    /// The places of its settings.
    settings: BTreeMap<String, Range<usize>>,
    /// The places of its keys; empty if a file has them.
    keys: BTreeMap<String, Range<usize>>,
}

/// Keys that make an arm differ from the plain one.
const DIFFERENCES: [&str; 4] = ["settings", "files", "statements", "session"];

impl Own {
    fn new(name: &str, custom: Custom, place: Range<usize>) -> Self {
        let protection = Protection { id: name.to_owned(), options: BTreeMap::new(), custom: Some(Box::new(custom)) };
        Self { protection, place, settings: BTreeMap::new(), keys: BTreeMap::new() }
    }

    fn place_of(&self, key: &str) -> Range<usize> {
        self.keys.get(key).unwrap_or(&self.place).clone()
    }
}

/// The protection that the entry `item` with `use = "custom"` describes.
pub(super) fn entry(item: &Item<'_>, database: Option<&OfferedDatabase>, problems: &mut Problems) -> Option<Own> {
    let table = Table::open(&keys::PROTECTION, &[], item.value.as_table()?, item.range.clone(), problems);
    let name_item = table.need("name", problems)?;
    let name = name_item.name(problems)?.into_inner();
    if [CUSTOM, SETTINGS, CLAIMS].contains(&name.as_str()) || database.is_some_and(|it| it.protection(&name).is_some())
    {
        name_item.refuse("is taken: choose a name that no protection of tithe has", problems);
    }
    if let Some(item) = table.get("options") {
        let help = "write its value where it belongs";
        problems.at(item.key_range, "a protection in an experiment has no `options`", help);
    }
    let mut own = Own::new(&name, custom(&table, problems), item.range.clone());
    own.settings = table.get("settings").map(|item| places_of(&item)).unwrap_or_default();
    let keys = keys::PROTECTION.keys.iter().filter_map(|key| table.get(key.name));
    own.keys = keys.map(|item| (item.key.to_owned(), item.key_range.clone())).collect();
    Some(own)
}

/// The protection made from `settings` and `claims` of the arm in `table`, if it has them.
pub(super) fn of_arm(table: &Table<'_>, problems: &mut Problems) -> Option<Own> {
    let [settings, claimed] = [SETTINGS, CLAIMS].map(|key| table.get(key));
    let (name, first) = match (&settings, &claimed) {
        (Some(item), _) => (SETTINGS, item),
        (None, Some(item)) => (CLAIMS, item),
        (None, None) => return None,
    };
    let texts = settings.as_ref().map(|item| reader::texts(item.pairs(problems)));
    let custom = Custom { settings: texts.unwrap_or_default(), claims: claims(table, problems), ..Custom::default() };
    let mut own = Own::new(name, custom, first.key_range.clone());
    own.keys =
        [&settings, &claimed].into_iter().flatten().map(|it| (it.key.to_owned(), it.key_range.clone())).collect();
    own.settings = settings.as_ref().map(places_of).unwrap_or_default();
    Some(own)
}

/// The possible files of the protection `name`, in order of precedence; none if no file can have this name.
pub fn protection_files(name: &str) -> Vec<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_name = !name.is_empty() && name.chars().all(plain);
    FOLDERS.iter().filter(|_| is_name).map(|folder| format!("{folder}/{name}.toml")).collect()
}

/// The protection in the file for `name`, for the entry `item` at `place`; `None` if there is no such file.
pub(super) fn from_file(
    name: &str,
    (item, place): (&Item<'_>, &Range<usize>),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Option<Own> {
    for path in protection_files(name) {
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                problems.at(
                    place.clone(),
                    format!("the file {path} cannot be read: {error}"),
                    "make it a file of TOML",
                );
                return Some(Own::new(name, Custom::default(), place.clone()));
            }
        };
        let (Described { entry, mut custom }, found) = custom_file(name, &bytes);
        let sound = found.is_empty();
        for (at, Diagnostic { problem, help, .. }) in found {
            problems.at(place.clone(), format!("{path}:{at}: {problem}"), help);
        }
        let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
        custom.files.values_mut().for_each(|source| *source = folder.join(&source));
        let options = if sound { options::options(item, entry, problems) } else { BTreeMap::new() };
        let mut own = Own::new(name, custom.filled(&options), place.clone());
        own.protection.options = options;
        let custom = own.protection.custom.iter();
        own.settings = custom.flat_map(|it| it.settings.keys()).map(|name| (name.clone(), place.clone())).collect();
        return Some(own);
    }
    None
}

/// The protection in the file for `name`, and all its problems, each with `line:column`.
pub fn custom_file(name: &str, bytes: &[u8]) -> (Described, Vec<(String, Diagnostic)>) {
    let mut entry = ProtectionEntry { id: kept(name), ..ProtectionEntry::BARE };
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err(line) => {
            let flaw = Diagnostic::general("not a text in UTF-8", "save the file as UTF-8");
            let entry = Box::leak(Box::new(entry));
            return (Described { entry, custom: Custom::default() }, vec![(format!("{line}:1"), flaw)]);
        }
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text, &errors);
    let table = Table::open(&keys::PROTECTION, &[], document.get_ref(), 0..0, &mut problems);
    for item in ["use", "name"].into_iter().filter_map(|key| table.get(key)) {
        item.refuse("has no place in the file of a protection, which is named by its file", &mut problems);
    }
    table.need("description", &mut problems);
    let custom = custom(&table, &mut problems);
    if DIFFERENCES.iter().all(|key| table.get(key).is_none()) && custom.claims.is_empty() {
        problems.missing(table.place.clone(), CHANGES_NOTHING, DIFFERS_BY);
    }
    entry.title = kept(&custom.description);
    let words = |key: &'static str, problems: &mut Problems| {
        table.get(key).and_then(|item| item.name(problems)).map(|name| kept(name.get_ref()))
    };
    entry.protects_against = words("protects_against", &mut problems).unwrap_or("what its claims say");
    entry.leaves_open = words("leaves_open", &mut problems).unwrap_or("everything that its claims do not check");
    entry.options = options(&table, &mut problems);
    let undone = custom.statements.is_empty() || !custom.undo.is_empty();
    entry.attachable = custom.settings.is_empty() && custom.files.is_empty() && undone;
    let placed = |diagnostic: Diagnostic| {
        let before = &text[..diagnostic.range.as_ref().map_or(0, |range| range.start.min(text.len()))];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (format!("{}:{column}", before.matches('\n').count() + 1), diagnostic)
    };
    let entry = Box::leak(Box::new(entry));
    (Described { entry, custom }, problems.into_sorted().into_iter().map(placed).collect())
}

/// `text` with the program's lifetime, like the built-in descriptions of protections.
fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// The options of the file in `table`.
fn options(table: &Table<'_>, problems: &mut Problems) -> &'static [OptionEntry] {
    let Some(item) = table.get("options") else { return &[] };
    let listed = item.table(problems).into_iter().flat_map(|options| options.iter());
    let options: Vec<OptionEntry> = listed
        .filter_map(|(key, value)| {
            let name = key.get_ref();
            let taken = keys::PROTECTION.keys.iter().any(|key| key.name == name) || PLACEHOLDERS.contains(&&**name);
            if taken {
                let help = "give the option another name";
                problems.at(key.span(), format!("{} is not a name of an option", wording::quote(name)), help);
            }
            option(kept(name), &Item::of(key, value), problems)
        })
        .collect();
    Box::leak(options.into_boxed_slice())
}

/// The option `name`; `item` is its default or its full description.
fn option(name: &'static str, item: &Item<'_>, problems: &mut Problems) -> Option<OptionEntry> {
    let table = item.value.as_table().map(|it| Table::open(&keys::OPTION, &[], it, item.range.clone(), problems));
    let default = match &table {
        Some(table) => table.need("default", problems)?,
        None => item.clone(),
    };
    let said = |key| table.as_ref().and_then(|table| table.get(key));
    let words: Vec<&'static str> = match said("one_of") {
        Some(item) => item.list(problems).iter().filter_map(|one| one.text(problems)).map(kept).collect(),
        None => Vec::new(),
    };
    let (kind, default) = match default.value {
        DeValue::String(text) if words.is_empty() => (OptionKind::Text, DefaultValue::Text(kept(text))),
        DeValue::String(text) if words.contains(&text.as_ref()) => {
            (OptionKind::Choice(Box::leak(words.into_boxed_slice())), DefaultValue::Text(kept(text)))
        }
        DeValue::String(_) => {
            default.refuse("is none of `one_of`", problems);
            return None;
        }
        DeValue::Boolean(flag) => (OptionKind::Flag, DefaultValue::Flag(*flag)),
        value => {
            let Some(number) = reader::as_number(value) else {
                default.wrong_type("a text, a number, or true or false", problems);
                return None;
            };
            let mut end =
                |key, otherwise| said(key).and_then(|it| it.number(f64::MIN..=f64::MAX, problems)).unwrap_or(otherwise);
            let (low, high) = (end("low", 0.0), end("high", 1e9));
            (OptionKind::Number { low, high }, DefaultValue::Number(number))
        }
    };
    let help = said("help").and_then(|item| item.name(problems)).map_or("", |help| kept(help.get_ref()));
    Some(OptionEntry { name, kind, default: Some(default), help })
}

/// The protection that `table` describes.
fn custom(table: &Table<'_>, problems: &mut Problems) -> Custom {
    let texts = |key, problems: &mut Problems| -> Vec<String> {
        let list = table.get(key).map(|item| item.list(problems)).unwrap_or_default();
        list.iter().filter_map(|one| one.statement(problems)).collect()
    };
    let description = table.get("description").and_then(|item| item.name(problems));
    Custom {
        description: description.map(|name| name.into_inner()).unwrap_or_default(),
        settings: table.get("settings").map(|item| reader::texts(item.pairs(problems))).unwrap_or_default(),
        files: table.get("files").map(|item| files(&item, problems)).unwrap_or_default(),
        statements: texts("statements", problems),
        undo: texts("undo", problems),
        session: texts("session", problems),
        claims: claims(table, problems),
    }
}

/// The places of the settings in `item`; their problems are reported when their values are read.
fn places_of(item: &Item<'_>) -> BTreeMap<String, Range<usize>> {
    let pairs = item.pairs(&mut Problems::new("", &[]));
    pairs.into_iter().map(|(name, pair)| (name, pair.key_range)).collect()
}

/// Files by their names in the arm's folder; all of them are below it.
fn files(item: &Item<'_>, problems: &mut Problems) -> BTreeMap<String, PathBuf> {
    let pairs = item.pairs(problems);
    for (name, pair) in &pairs {
        let below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !below {
            problems.at(
                pair.key_range.clone(),
                format!("{} is outside of the folder of the arm's files", wording::quote(name)),
                "give the name that the file gets there: settings and statements use it as `{files}/NAME`",
            );
        }
    }
    pairs.into_iter().map(|(name, pair)| (name, PathBuf::from(pair.value))).collect()
}

/// Reports parts of `own` that `arm` cannot have: on this database, on a server that Tithe does not start, or together
/// with the arm's other protections.
pub(super) fn check(arm: &Arm, own: &[Own], database: Option<&OfferedDatabase>, problems: &mut Problems) {
    let Some(database) = database else { return };
    let mut seen: Vec<&str> = Vec::new();
    for own in own {
        for (name, place) in &own.settings {
            if let Some((problem, help)) = database.refuses_setting(name, slice::from_ref(arm)) {
                problems.at(place.clone(), problem, help);
            }
            let value = own.protection.custom.as_ref().and_then(|custom| custom.settings.get(name));
            if let Some((problem, help)) = value.and_then(|value| secret_setting(name, value)) {
                problems.at(place.clone(), problem, help);
            }
            if seen.iter().any(|earlier| database.entry.is_one_setting(earlier, name)) {
                let problem = format!("the arm sets {} twice", wording::quote(name));
                problems.at(place.clone(), problem, "remove one of the two");
            }
            seen.push(name);
        }
        let Some(custom) = &own.protection.custom else { continue };
        let Custom { files, statements, undo, session, .. } = &**custom;
        let differs = own.keys.is_empty() || DIFFERENCES.iter().any(|key| own.keys.contains_key(*key));
        let differs_otherwise =
            arm.protections.len() > 1 || !arm.on.is_empty() || arm.switch.is_some() || arm.url.is_some();
        let by_arm = own.keys.contains_key(CLAIMS) && differs_otherwise;
        if !differs && !by_arm {
            problems.missing(own.place.clone(), CHANGES_NOTHING, DIFFERS_BY);
        }
        if !files.is_empty() && database.entry.embedded {
            let help = "remove them: statements can name files where they are";
            problems.at(
                own.place_of("files"),
                "files are for the folder of a server, and this database has none",
                help,
            );
        }
        if arm.switch.is_some() && !statements.is_empty() {
            let help = "put them into the command of `switch`, or remove `switch`";
            problems.at(own.place_of("statements"), "an arm that its provider switches has no statements", help);
        }
        if arm.url.is_none() {
            continue;
        }
        if let Some(place) = own.settings.values().next() {
            problems.at(
                place.clone(),
                "settings cannot be given to a server that Tithe does not start",
                "change what needs no restart by `statements` with `undo`, and the rest on the server itself; or \
                 leave out every `url`",
            );
        }
        if session.iter().any(|statement| changes_server(statement)) {
            // The plain arm on it would have them too, and nothing would put them back.
            problems.at(
                own.place_of("session"),
                "`session` changes settings of the whole server, for all its clients and beyond the run",
                "change those of the session, or let `switch` change the server",
            );
        }
        if !files.is_empty() {
            let help = "put them there yourself, or leave out every `url`";
            problems.at(own.place_of("files"), "files cannot be put on a server that Tithe does not start", help);
        }
        if !statements.is_empty() && database.entry.custom.is_some_and(|asked| asked.kept.is_none()) {
            let help = "make the change yourself and leave `statements` out; `session` and `claims` can stay";
            let problem = format!("a running server of {} keeps no statements that undo others", database.entry.id);
            problems.at(own.place_of("statements"), problem, help);
        } else if !statements.is_empty() && undo.is_empty() {
            problems.at(
                own.place_of("statements"),
                "statements on a server that Tithe does not start have no `undo`",
                "add the statements that undo them: they run at the end, and after a run that was killed",
            );
        }
    }
}

/// Complains if arms of `database` cannot have a user-defined protection, as requested at `place`.
pub(super) fn check_database(place: &Range<usize>, database: Option<&OfferedDatabase>, problems: &mut Problems) {
    if let Some(database) = database.filter(|database| database.entry.custom.is_none()) {
        problems.at(
            place.clone(),
            format!("arms of {} have no protections or settings of their own", database.entry.id),
            "use one of its protections, or `[settings]` for all arms",
        );
    }
}
