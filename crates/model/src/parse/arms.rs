//! `[[arm]]`: checks protections against the catalogue, and the arms against each other.

use std::{
    collections::BTreeMap,
    io,
    ops::{Range, RangeInclusive},
};

use super::{
    custom, keys, not_a_time, observer,
    options::options,
    reader::{self, Item, Problems, Table},
    refuse_duplicates, units,
};
use crate::{
    catalogue::{Catalogue, DatabaseEntry, OfferedDatabase, ProtectionEntry},
    experiment::{Arm, Protection, ProviderSwitch, Url, mask::is_password_of},
    wording,
};

/// An arm with the places that later diagnostics point at.
struct Draft<'a> {
    arm: Arm,
    place: Range<usize>,
    protections: Option<Item<'a>>,
    url: Option<Item<'a>>,
    on: Option<Item<'a>>,
    off: Option<Item<'a>>,
    switch: Option<Item<'a>>,
    observer: Option<Item<'a>>,
}

/// Default length of a side, s: long compared with a switch's effects on caches, short enough that many pairs fit into
/// a budget.
const SIDE_S: f64 = 60.0;

/// The lengths of a side that an experiment may set, s.
const SIDES_S: RangeInclusive<f64> = 1.0..=3600.0;
const SIDE_LIMITS: &str = "from 1 s to 1 h";

/// Default timeout of a switch, s: providers apply parameters within minutes, and restart servers within ten.
const TIMEOUT_S: f64 = 600.0;

/// The timeouts that an experiment may set, s.
const TIMEOUTS_S: RangeInclusive<f64> = 1.0..=86_400.0;
const TIMEOUT_LIMITS: &str = "from 1 s to 24 h";

pub(super) fn arms(
    top: &Table<'_>,
    known: (Option<&OfferedDatabase>, &Catalogue),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Vec<Arm> {
    let mut names = Vec::new();
    let mut drafts = Vec::new();
    for table in top.tables("arm", &keys::ARM, &[], problems) {
        let name = table.need("name", problems).and_then(|item| item.name(problems));
        let text = name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default();
        names.extend(name);
        drafts.push(draft(&table, text, known, read, problems));
    }
    refuse_duplicates("arms", &names, problems);
    if problems.read_all() {
        check_count(&drafts, problems);
        check_baseline(&drafts, problems);
        check_servers(&drafts, problems);
        check_switches(&drafts, problems);
        check_provider_switch(&drafts, problems);
        check_observers(&drafts, problems);
    }
    drafts.into_iter().map(|draft| draft.arm).collect()
}

fn draft<'a>(
    table: &Table<'a>,
    name: String,
    (database, catalogue): (Option<&OfferedDatabase>, &Catalogue),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Draft<'a> {
    let [protections, url, on, off, switch, observer] =
        ["protections", "url", "on", "off", "switch", "observer"].map(|key| table.get(key));
    let attached = url.is_some();
    let list = protections.as_ref().map(|item| item.list(problems)).unwrap_or_default();
    let mut chosen: Vec<Protection> = Vec::new();
    let mut own = Vec::new();
    for item in list {
        let Some((id, place)) = protection_id(&item, problems) else { continue };
        let custom = match database.is_some_and(|database| database.protection(id).is_some()) {
            true => None,
            false if id == custom::CUSTOM => match custom::entry(&item, database, problems) {
                Some(described) => Some(described),
                None => continue,
            },
            false => custom::from_file(id, (&item, &place), read, problems),
        };
        let name = custom.as_ref().map_or(id, |described| &described.protection.id);
        if chosen.iter().any(|earlier| earlier.id == name) {
            problems.at(place, format!("the arm has {} twice", wording::quote(name)), "remove one of the two");
            continue;
        }
        if let Some(described) = custom {
            custom::check_database(&place, database, problems);
            chosen.push(described.protection.clone());
            own.push(described);
            continue;
        }
        let options = match database.and_then(|database| known(id, place.clone(), database, catalogue, problems)) {
            Some(entry) => {
                if attached && !entry.attachable {
                    refuse_attached(entry, place, database, problems);
                }
                options(&item, entry, problems)
            }
            None => BTreeMap::new(),
        };
        chosen.push(Protection::listed(id, options));
    }
    let of_arm = ["settings", "claims"].into_iter().find_map(|key| table.get(key));
    if let Some(described) = custom::of_arm(table, problems) {
        of_arm.iter().for_each(|item| custom::check_database(&item.key_range, database, problems));
        chosen.push(described.protection.clone());
        own.push(described);
    }
    let arm = Arm {
        name,
        protections: chosen,
        url: url.as_ref().and_then(|item| address(item, database, catalogue, problems)),
        on: statements(on.as_ref(), problems),
        off: statements(off.as_ref(), problems),
        aa: false,
        programs: None,
        switch: provider_switch(table, problems),
        observer: observer::observed(table, problems),
    };
    custom::check(&arm, &own, database, problems);
    Draft { arm, place: table.place.clone(), protections: protections.or(of_arm), url, on, off, switch, observer }
}

/// How the provider switches the server to this arm; `None` if the arm does not say, or not enough.
fn provider_switch(table: &Table<'_>, problems: &mut Problems) -> Option<ProviderSwitch> {
    let table = table.table("switch", &keys::SWITCH, problems)?;
    let [on, off] = ["on", "off"].map(|key| table.need(key, problems).and_then(|item| command(&item, problems)));
    let ready = table.need("ready", problems).and_then(|item| ready(&item, problems));
    let mut time = |key, usual: f64, limits: RangeInclusive<f64>, words: &str| {
        let Some(item) = table.get(key) else { return usual };
        let Some(text) = item.text(problems) else { return usual };
        let seconds = units::seconds(text).filter(|seconds| limits.contains(seconds));
        if seconds.is_none() {
            item.refuse(not_a_time(words, text), problems);
        }
        seconds.unwrap_or(usual)
    };
    let side_s = time("side", SIDE_S, SIDES_S, SIDE_LIMITS);
    let timeout_s = time("timeout", TIMEOUT_S, TIMEOUTS_S, TIMEOUT_LIMITS);
    let (ready, ready_command) = ready?;
    Some(ProviderSwitch { on: on?, off: off?, ready, ready_command, side_s, timeout_s })
}

/// How to find out whether the server is on: a query, or a command.
fn ready(item: &Item<'_>, problems: &mut Problems) -> Option<(String, Vec<String>)> {
    match item.value.as_array() {
        Some(_) => Some((String::new(), command(item, problems)?)),
        None => Some((question(item, problems)?, Vec::new())),
    }
}

/// A program and its arguments.
fn command(item: &Item<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    if item.value.as_str().is_some() {
        let problem = format!("`{}` must be a list of a program and its arguments, this is a text", item.key);
        let help = format!(
            "no shell reads it: write `{} = [\"program\", \"argument\"]`; for a shell `[\"sh\", \"-c\", \"…\"]`",
            item.key
        );
        problems.at(item.range.clone(), problem, help);
        return None;
    }
    let words = item.list(problems);
    let texts: Vec<String> = words.iter().filter_map(|word| word.text(problems)).map(str::to_owned).collect();
    if texts.first().is_none_or(|program| program.trim().is_empty()) {
        item.refuse("names no program", problems);
        return None;
    }
    let before = std::iter::once("").chain(texts.iter().map(String::as_str));
    let mut pairs = words.iter().zip(before).filter_map(|(word, before)| Some((word, before, word.value.as_str()?)));
    let secret = pairs.find(|(_, before, text)| is_address_with_password(text) || is_password_of(before, text));
    if let Some((word, ..)) = secret {
        problems.at(
            word.range.clone(),
            "an argument holds a password, and everybody on the machine can read arguments",
            "have the program read it from a file that only you can read, or from its own configuration",
        );
    }
    Some(texts)
}

/// True for a URL with a password in it.
fn is_address_with_password(text: &str) -> bool {
    let account = text.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    account.is_some_and(|(account, _)| account.contains(':'))
}

/// A query to the server.
fn question(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    let text = item.text(problems)?.trim();
    if text.is_empty() {
        item.refuse("asks nothing", problems);
    }
    Some(text.to_owned())
}

/// The identifier of the protection in `item`, with its place.
fn protection_id<'a>(item: &Item<'a>, problems: &mut Problems) -> Option<(&'a str, Range<usize>)> {
    let Some(table) = item.value.as_table() else {
        let found = reader::describe(item.value);
        let word = item.value.as_str().filter(|word| word.len() < 40 && !word.contains([':', '"', '\\']));
        let help = format!("write for example `{{ use = \"{}\" }}`", word.unwrap_or("tls"));
        problems.at(item.range.clone(), format!("a protection is a table with `use`, this is {found}"), help);
        return None;
    };
    let Some((_, value)) = table.iter().find(|(key, _)| key.get_ref() == "use") else {
        let help = "write for example `{ use = \"tls\" }`";
        problems.missing(item.range.clone(), "a protection has no `use`", help);
        return None;
    };
    if value.get_ref().as_str().is_none() {
        let problem = format!("`use` must be a text in quotes, this is {}", reader::describe(value.get_ref()));
        problems.at(value.span(), problem, "write for example `use = \"tls\"`");
    }
    Some((value.get_ref().as_str()?, value.span()))
}

/// The catalogue's entry of a protection. If this database does not have it, a diagnostic names the databases that do.
fn known(
    id: &str,
    place: Range<usize>,
    database: &OfferedDatabase,
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<&'static ProtectionEntry> {
    if let Some(entry) = database.protection(id) {
        return Some(entry);
    }
    let names: Vec<&str> = database.protections.iter().map(|entry| entry.id).collect();
    let having = catalogue.databases.iter().filter(|database| database.protection(id).is_some());
    let others: Vec<&str> = having.map(|database| database.entry.id).collect();
    if others.is_empty() {
        let lead = format!("protections of {} are", database.entry.id);
        let problem = format!("there is no protection {}", wording::quote(id));
        problems.at(place, problem, wording::suggest(id, &names, &lead));
    } else {
        let problem = format!("{} has no `{id}`: its protections are {}", database.entry.id, wording::list(names));
        problems.at(place, problem, format!("databases that have it: {}", wording::list(others)));
    }
    None
}

fn refuse_attached(
    entry: &ProtectionEntry,
    place: Range<usize>,
    database: Option<&OfferedDatabase>,
    problems: &mut Problems,
) {
    let all = database.map_or(&[][..], |database| &database.protections);
    let can = wording::list(all.iter().filter(|entry| entry.attachable).map(|entry| entry.id));
    problems.at(
        place,
        format!("`{}` cannot be measured on a server that Tithe does not start", entry.id),
        format!("leave out every `url` to let Tithe start the servers; attached servers can be measured with: {can}"),
    );
}

/// The address of a running server. Messages name only the scheme: the rest may contain a password.
fn address(
    item: &Item<'_>,
    database: Option<&OfferedDatabase>,
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<Url> {
    let url = Url::new(item.text(problems)?);
    let Some(database) = database.map(|database| database.entry) else { return Some(url) };
    let url = database.own_address(url);
    let example = |entry: &DatabaseEntry| format!("write for example `{}://user@host/name`", entry.schemes[0]);
    let range = item.range.clone();
    let owner = catalogue.owner_of(url.scheme()).map(|owner| owner.entry);
    if database.schemes.is_empty() {
        let problem = format!("{} cannot be attached to: it has no address", database.id);
        problems.at(range, problem, "leave out `url`, and Tithe creates the database itself");
    } else if item.value.as_str().is_some_and(|text| text.starts_with('$')) {
        let help = "write the URL here, without its password, which is taken from the variable of the product";
        problems.at(range, "`url` is a variable, and variables are not replaced", help);
    } else if url.scheme().is_empty() {
        problems.at(range, "`url` is not an address: it has no scheme and `://`", example(&database));
    } else if !owner.is_some_and(|owner| owner.speaks_as(&database)) {
        let whose = owner.map_or("no database that this build of Tithe knows", |owner| owner.id);
        let quoted = wording::quote(url.scheme());
        let problem = format!("the scheme {quoted} is that of {whose}, and the experiment is about {}", database.id);
        problems.at(range, problem, example(&database));
    }
    Some(url)
}

fn statements(item: Option<&Item<'_>>, problems: &mut Problems) -> Vec<String> {
    let Some(item) = item else { return Vec::new() };
    if item.value.as_array().is_some_and(|list| list.is_empty()) {
        item.refuse("has no statement", problems);
    }
    item.list(problems).iter().filter_map(|statement| statement.statement(problems)).collect()
}

fn check_count(drafts: &[Draft<'_>], problems: &mut Problems) {
    let (place, problem) = match drafts {
        [] => (problems.end..problems.end, "the experiment has no arms"),
        [only] => (only.place.clone(), "the experiment has one arm, and nothing to compare it with"),
        _ => return,
    };
    let help = "add at least two `[[arm]]`: first the plain one, then one with `protections`";
    problems.missing(place, problem, help);
}

fn check_baseline(drafts: &[Draft<'_>], problems: &mut Problems) {
    let Some(first) = drafts.first() else { return };
    if let Some(item) = first.protections.as_ref().filter(|_| !first.arm.protections.is_empty()) {
        problems.at(
            item.key_range.clone(),
            "the first arm is the baseline and must have no protections",
            "put a plain arm first: `[[arm]]` and below it `name = \"plain\"`",
        );
    }
}

/// Arms are comparable if Tithe starts all servers or none. Only the servers can show which arms share one.
fn check_servers(drafts: &[Draft<'_>], problems: &mut Problems) {
    let Some(first) = drafts.first() else { return };
    if let Some(odd) = drafts.iter().find(|draft| draft.url.is_some() != first.url.is_some()) {
        let place = odd.url.as_ref().map_or(odd.place.clone(), |item| item.key_range.clone());
        let problem = "some arms have a `url` and some have none: servers that Tithe starts and servers that it \
                       attaches to cannot be compared";
        problems.at(place, problem, "give every arm a `url`, the first included, or none");
    }
}

/// Statements that switch a protection are for servers that Tithe does not start.
fn check_switches(drafts: &[Draft<'_>], problems: &mut Problems) {
    for (index, draft) in drafts.iter().enumerate() {
        let (Some(item), other) = (match (&draft.on, &draft.off) {
            (Some(on), None) => (Some(on), "off"),
            (None, off) => (off.as_ref(), "on"),
            (Some(on), Some(_)) => (Some(on), ""),
        }) else {
            continue;
        };
        let place = item.key_range.clone();
        if index == 0 {
            let problem = format!("the first arm is the baseline: it has nothing to switch with `{}`", item.key);
            problems.at(place, problem, "move the statements to the arm whose protection they switch");
        } else if !other.is_empty() {
            let problem = format!("`{}` is given without `{other}`", item.key);
            let help = format!("add `{other} = [\"…\"]`: the next slot belongs to another arm of the same server");
            problems.at(place, problem, help);
        } else if draft.url.is_none() {
            let problem = "`on` and `off` switch a protection on a running server, and this arm has no `url`";
            problems.at(place, problem, "give all arms a `url`, or use `protections`");
        }
    }
}

/// A provider switches a whole server, which is the plain arm on one side and the other arm on the other.
fn check_provider_switch(drafts: &[Draft<'_>], problems: &mut Problems) {
    let Some((index, draft, item)) =
        drafts.iter().enumerate().find_map(|(index, draft)| Some((index, draft, draft.switch.as_ref()?)))
    else {
        return;
    };
    let mut refuse = |problem: &str, help: &str| problems.at(item.key_range.clone(), problem, help);
    if index == 0 {
        refuse(
            "the first arm is the baseline: it has nothing to switch with `switch`",
            "move it to the arm whose protection the provider switches",
        );
    } else if draft.url.is_none() {
        refuse(
            "`switch` is for a running server, and this arm has no `url`",
            "give both arms the `url` of the server, or use `protections` on servers that Tithe starts",
        );
    } else if drafts.len() > 2 {
        refuse(
            "a provider switches the whole server, and every arm on it: there can be no arm but the first one and this one",
            "give the other arms an experiment of their own",
        );
    } else if drafts.iter().any(|draft| draft.on.is_some() || draft.off.is_some()) {
        refuse(
            "`on` and `off` of an arm switch its sessions every few milliseconds, `switch` the server every few minutes",
            "keep one of the two: the statements where sessions can be switched",
        );
    }
}

/// Either all arms are checked by an observer or none: counting the server makes an operation look more expensive.
fn check_observers(drafts: &[Draft<'_>], problems: &mut Problems) {
    let Some(item) = drafts.iter().find_map(|draft| draft.observer.as_ref()) else { return };
    let mut refuse = |problem: &str, help: &str| problems.at(item.key_range.clone(), problem, help);
    if drafts.iter().any(|draft| draft.url.is_none()) {
        refuse(
            "an observer watches a running server, and an arm has no `url`",
            "leave `observer` out: what Tithe starts is on its own machine, where it sees it",
        );
    } else if drafts.iter().any(|draft| draft.observer.is_none()) {
        refuse(
            "some arms have an `observer` and some have none: operations would be counted with their server in some arms alone",
            "give every arm the `observer` on the machine of its server, the first arm included",
        );
    } else if drafts.iter().any(|draft| draft.switch.is_some()) {
        refuse(
            "a server that its provider switches may be another one afterwards, so that no observer knows which it is",
            "leave `observer` out",
        );
    }
}
