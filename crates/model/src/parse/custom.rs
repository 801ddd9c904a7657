//! Protections of the reader's own: entries with `use = "custom"`, `settings` of an arm, and files of protections.

use std::{collections::BTreeMap, io, ops::Range, slice};

use toml::de::DeTable;

use super::{
    keys,
    reader::{self, Item, Problems, Table},
};
use crate::{
    catalogue::OfferedDatabase,
    diagnostic::{Diagnostic, text_of},
    experiment::{Arm, Claim, Custom, Protection, Says},
    wording,
};

/// What `use` says of an entry that is described where it stands.
pub(super) const CUSTOM: &str = "custom";

/// The name of what `settings` of an arm make.
pub const SETTINGS: &str = "settings";

/// Names of settings, and where they stand.
type Places = Vec<(String, Range<usize>)>;

/// A protection of the reader's own, with the places of its settings.
pub(super) struct Own {
    pub protection: Protection,
    settings: Places,
    /// Where its statements are, if it has some.
    statements: Option<Range<usize>>,
}

/// What the entry `item` with `use = "custom"` describes.
pub(super) fn entry(item: &Item<'_>, database: Option<&OfferedDatabase>, problems: &mut Problems) -> Option<Own> {
    let table = Table::open(&keys::PROTECTION, &[], item.value.as_table()?, item.range.clone(), problems);
    let name_item = table.need("name", problems)?;
    let name = name_item.name(problems)?.into_inner();
    if [CUSTOM, SETTINGS].contains(&name.as_str()) || database.is_some_and(|it| it.protection(&name).is_some()) {
        name_item.refuse("is taken: choose a name that no protection of tithe has", problems);
    }
    Some(own(&table, name, problems))
}

/// What `settings` of an arm make.
pub(super) fn of_settings(item: &Item<'_>, problems: &mut Problems) -> Own {
    let (settings, places) = settings(item, problems);
    let custom = Custom { settings, ..Custom::default() };
    Own { protection: protection(SETTINGS.to_owned(), custom), settings: places, statements: None }
}

/// The file that holds the protection `name`, from the folder of the experiment; `None` where no file is called so.
pub fn protection_file(name: &str) -> Option<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    (!name.is_empty() && name.chars().all(plain)).then(|| format!("protections/{name}.toml"))
}

/// What the file of the protection `name` describes, for the `use` at `place`; `None` where there is no such file.
pub(super) fn from_file(
    name: &str,
    place: &Range<usize>,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Option<Own> {
    let path = protection_file(name)?;
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            problems.at(place.clone(), format!("the file {path} cannot be read: {error}"), "make it a file of TOML");
            return Some(Own {
                protection: protection(name.to_owned(), Custom::default()),
                settings: vec![],
                statements: None,
            });
        }
    };
    let (custom, found) = custom_file(&bytes);
    for (at, Diagnostic { problem, help, .. }) in found {
        problems.at(place.clone(), format!("{path}:{at}: {problem}"), help);
    }
    let settings = custom.settings.keys().map(|name| (name.clone(), place.clone())).collect();
    let statements = (!custom.statements.is_empty()).then(|| place.clone());
    Some(Own { protection: protection(name.to_owned(), custom), settings, statements })
}

/// What the file of a protection describes, and everything that is wrong with it, each with `line:column`.
pub fn custom_file(bytes: &[u8]) -> (Custom, Vec<(String, Diagnostic)>) {
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err(line) => {
            let flaw = Diagnostic::general("not a text in UTF-8", "save the file as UTF-8");
            return (Custom::default(), vec![(format!("{line}:1"), flaw)]);
        }
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text, &errors);
    let table = Table::open(&keys::PROTECTION, &[], document.get_ref(), 0..0, &mut problems);
    for item in ["use", "name"].into_iter().filter_map(|key| table.get(key)) {
        item.refuse("has no place in the file of a protection, which is named by its file", &mut problems);
    }
    table.need("description", &mut problems);
    let custom = own(&table, String::new(), &mut problems).protection.custom.unwrap_or_default();
    let placed = |diagnostic: Diagnostic| {
        let before = &text[..diagnostic.range.as_ref().map_or(0, |range| range.start.min(text.len()))];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (format!("{}:{column}", before.matches('\n').count() + 1), diagnostic)
    };
    (*custom, problems.into_sorted().into_iter().map(placed).collect())
}

fn protection(id: String, custom: Custom) -> Protection {
    Protection { id, options: BTreeMap::new(), custom: Some(Box::new(custom)) }
}

fn own(table: &Table<'_>, name: String, problems: &mut Problems) -> Own {
    let texts = |key, problems: &mut Problems| -> (Vec<String>, Option<Range<usize>>) {
        let Some(item) = table.get(key) else { return (Vec::new(), None) };
        let list = item.list(problems);
        let texts = list.iter().filter_map(|one| one.text(problems)).map(|text| text.trim().to_owned());
        (texts.collect(), Some(item.key_range))
    };
    let (statements, place) = texts("statements", problems);
    let (session, _) = texts("session", problems);
    let (settings, places) = table.get("settings").map(|item| settings(&item, problems)).unwrap_or_default();
    let description = table.get("description").and_then(|item| item.name(problems));
    let claims = table.tables("claims", &keys::CLAIM, &[], problems);
    let claims: Vec<Claim> = claims.iter().filter_map(|table| claim(table, problems)).collect();
    let custom = Custom {
        description: description.map(|name| name.into_inner()).unwrap_or_default(),
        settings,
        statements,
        session,
        claims,
    };
    if ["settings", "statements", "session"].into_iter().all(|key| table.get(key).is_none()) {
        let help = "add `settings`, `statements` or `session`: what its arm has and the plain one has not";
        problems.missing(table.place.clone(), "this protection changes nothing", help);
    }
    Own { protection: protection(name, custom), settings: places, statements: place }
}

fn settings(item: &Item<'_>, problems: &mut Problems) -> (BTreeMap<String, String>, Places) {
    let pairs = item.pairs(problems);
    let places = pairs.iter().map(|(name, pair)| (name.clone(), pair.key_range.clone())).collect();
    (reader::texts(pairs), places)
}

fn claim(table: &Table<'_>, problems: &mut Problems) -> Option<Claim> {
    let statement = table.need("statement", problems).and_then(|item| {
        let text = item.text(problems)?.trim().to_owned();
        if text.is_empty() {
            item.refuse("asks nothing", problems);
        }
        Some(text)
    });
    let said: Vec<Item<'_>> =
        ["equals", "matches", "fails_with", "rows"].into_iter().filter_map(|key| table.get(key)).collect();
    let [item] = said.as_slice() else {
        let count = if said.is_empty() { "does not say what its statement says" } else { "has two expectations" };
        let place = said.get(1).map_or(table.place.clone(), |item| item.key_range.clone());
        let help =
            "give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim";
        problems.missing(place, format!("a claim {count}"), help);
        return None;
    };
    let mut text = || item.text(problems).map(str::to_owned);
    let says = match item.key {
        "equals" => Says::Equals(text()?),
        "matches" => Says::Matches(text()?),
        "fails_with" => {
            let words = text()?;
            if words.trim().is_empty() {
                item.refuse("names no words, and every error has those", problems);
            }
            Says::FailsWith(words)
        }
        _ => Says::Rows(item.whole(0..=1_000_000, problems)?),
    };
    Some(Claim { statement: statement?, says })
}

/// Complains about what `own` of `arm` cannot have: on this database, on a server that Tithe does not start, beside the
/// other protections of the arm.
pub(super) fn check(arm: &Arm, own: &[Own], database: Option<&OfferedDatabase>, problems: &mut Problems) {
    let Some(database) = database else { return };
    let mut seen: Vec<&str> = Vec::new();
    for Own { settings, statements, .. } in own {
        for (name, place) in settings {
            if let Some((problem, help)) = database.refuses_setting(name, slice::from_ref(arm)) {
                problems.at(place.clone(), problem, help);
            }
            if seen.iter().any(|earlier| database.entry.is_one_setting(earlier, name)) {
                let problem = format!("the arm sets {} twice", wording::quote(name));
                problems.at(place.clone(), problem, "remove one of the two");
            }
            seen.push(name);
        }
        let by_tithe = settings.first().map(|(_, place)| place).or(statements.as_ref());
        if let Some(place) = by_tithe.filter(|_| arm.url.is_some()) {
            problems.at(
                place.clone(),
                "settings and statements cannot be given to a server that Tithe does not start",
                "make the change on the server itself and leave it out here, or leave out every `url`; `session` and \
                 `claims` can stay",
            );
        }
    }
}

/// Complains where arms of `database` cannot have a protection of their own, as `place` asks for.
pub(super) fn check_database(place: &Range<usize>, database: Option<&OfferedDatabase>, problems: &mut Problems) {
    if let Some(database) = database.filter(|database| database.entry.custom.is_none()) {
        problems.at(
            place.clone(),
            format!("arms of {} have no protections or settings of their own", database.entry.id),
            "use one of its protections, or `[settings]` for all arms: PostgreSQL, MariaDB and MySQL can have them",
        );
    }
}
