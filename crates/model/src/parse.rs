//! TOML → [`Experiment`], or everything that is wrong with it.
//!
//! The file is also checked against the catalogue (does this database have this protection?), so that all later code
//! can rely on an experiment that makes sense.
//!
//! The file is walked once, from top to bottom; every problem is recorded with its place and the walk continues. Checks
//! here need only the file and the catalogue. Other code checks whether this machine can run it, and what a statement
//! or a setting means to its server.

mod aa_arm;
mod arms;
mod asked;
mod claims;
mod custom;
mod keys;
mod matrix;
mod observer;
mod options;
mod published;
mod reader;
mod units;
mod workloads;

use std::{collections::BTreeMap, io, net::IpAddr, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub use aa_arm::aa_arm_of;
use asked::Defaults;
pub use custom::{Described, FOLDERS, SETTINGS, custom_file, protection_files};
pub use keys::{Key, KeyDefault, Kind, MATRIX_TABLES, TABLES, TableFormat};
pub use matrix::matrix;
use reader::{Item, Problems, Table, Text};

use crate::{
    catalogue::{Catalogue, OfferedDatabase, WorkloadShape, plain_name},
    diagnostic::Diagnostic,
    experiment::{
        Arm, Arrivals, Data, Design, Experiment, Limits, Load, Measure, Memory, Metric, RATES_PER_S, Resources, Values,
        Workload, is_attached, mask::secret_setting,
    },
    plan, wording,
};

/// Most connections per arm: each client connects to every server at the same time.
const CLIENTS_MAX: u64 = 1024;

/// Load machines of one experiment: each has at least one client.
const AGENTS_MAX: u64 = CLIENTS_MAX;

/// The clients of `clients = "sweep"`: doubling, up to a number that saturates a server on a few processors.
const SWEEP: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The rate of the last cell of a sweep, as a share of the slowest arm's saturation: busy, but without a growing queue.
const SWEEP_SHARE: f64 = 0.7;

/// Most operations of a connection: more than any run has.
const RECONNECT_MAX: u64 = 1_000_000_000;

/// Reads an experiment file.
///
/// `read` reads a file that the experiment names (a YCSB property file), by the path as written, in any encoding.
///
/// No diagnostic quotes a password. The text around it may contain one: show it through
/// [`mask_passwords`](crate::experiment::mask_passwords).
///
/// # Errors
/// Every problem found, in the order of the file. Too small a budget is reported only if everything else is in order.
pub fn parse(
    text: &str,
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<Experiment, Vec<Diagnostic>> {
    parse_with(text, catalogue, read, |_| {})
}

/// As [`parse`], for an experiment that will not be measured: a budget that is too small is raised.
///
/// # Errors
/// As [`parse`], except for a budget that is too small.
pub fn parse_unmeasured(
    text: &str,
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<Experiment, Vec<Diagnostic>> {
    parse_with(text, catalogue, read, |experiment| plan::afford(experiment, catalogue))
}

fn parse_with(
    text: &str,
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    change: impl FnOnce(&mut Experiment),
) -> Result<Experiment, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text, &errors);
    if let Some(place) = experiments_of_a_matrix(document.get_ref()) {
        let help = "`tithe matrix plan` shows its tasks, `tithe matrix run` measures them; or name an experiment of it";
        problems.at(place, "this is a matrix, not an experiment", help);
        return Err(problems.into_sorted());
    }
    let top = Table::open(&keys::TOP, &[], document.get_ref(), 0..0, &mut problems);
    let mut experiment = experiment(&top, catalogue, read, &mut problems);
    if problems.is_empty() {
        change(&mut experiment);
        check_plan(&experiment, catalogue, &top, &mut problems);
    }
    if problems.is_empty() { Ok(experiment) } else { Err(problems.into_sorted()) }
}

/// The place where a matrix file names its experiments; `None` for any other file.
fn experiments_of_a_matrix(document: &DeTable<'_>) -> Option<Range<usize>> {
    let key = |name: &str| document.iter().map(|(key, _)| key).find(|key| key.get_ref() == name);
    key("experiments").filter(|_| key("database").is_none()).map(Spanned::span)
}

/// The place in an experiment's text of the value at `path`, or of the innermost value around it. A path has keys, and
/// for list items their numbers, from 0, or their names. Problems found after parsing are reported at this place.
pub fn place(text: &str, path: &[&str]) -> Option<Range<usize>> {
    walk(text, path).map(|(range, _)| range)
}

/// The number, from 1, of the line in `text` with the value at the whole `path`, as in [`place`].
pub fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let (range, _) = walk(text, path).filter(|(_, left)| *left == 0)?;
    Some(text[..range.start].matches('\n').count() + 1)
}

/// The place of the innermost value on `path`, and how many steps are left.
fn walk(text: &str, path: &[&str]) -> Option<(Range<usize>, usize)> {
    let document = DeTable::parse(text).ok()?;
    let mut here = value_of(document.get_ref(), path.first()?)?;
    for (number, step) in path.iter().enumerate().skip(1) {
        let below = match here.get_ref() {
            DeValue::Table(table) => value_of(table, step),
            DeValue::Array(items) => match step.parse() {
                Ok(number) => items.get::<usize>(number),
                Err(_) => items.iter().find(|item| is_called(item, step)),
            },
            _ => None,
        };
        match below {
            Some(below) => here = below,
            None => return Some((here.span(), path.len() - number)),
        }
    }
    Some((here.span(), 0))
}

/// True for a table with this `name` or `use`.
fn is_called(item: &Spanned<DeValue<'_>>, name: &str) -> bool {
    let DeValue::Table(table) = item.get_ref() else { return false };
    let says = |key| value_of(table, key).is_some_and(|value| value.get_ref().as_str() == Some(name));
    says("name") || says("use")
}

fn value_of<'a>(table: &'a DeTable<'a>, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
}

/// As [`parse`], for bytes of unknown origin.
///
/// # Errors
/// As [`parse`]; reports the first byte that is not UTF-8 as a diagnostic.
pub fn parse_bytes(
    bytes: &[u8],
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<Experiment, Vec<Diagnostic>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        let end = error.error_len().map_or(bytes.len(), |length| start + length);
        vec![Diagnostic::at(start..end, "not a text in UTF-8", "save the file as UTF-8")]
    })?;
    parse(text, catalogue, read)
}

fn experiment(
    top: &Table<'_>,
    catalogue: &Catalogue,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    problems: &mut Problems,
) -> Experiment {
    let title = top.need("title", problems).and_then(|item| item.name(problems));
    let database_item = top.need("database", problems);
    let database = database_item.as_ref().and_then(|item| database(item, catalogue, problems));
    let arms = arms::arms(top, (database, catalogue), read, problems);
    let attached = is_attached(&arms);
    let (measure, aa_arm) = measure(top, only_the_clock_shows(&arms, database), problems);
    let versions = versions(top, database, attached, problems);
    let resources = of_versions(resources(top, database, &arms, problems), &versions);
    let numbers = sweep(top, &resources, problems);
    let resources = swept(resources, &numbers);
    let protocol = database.and_then(|database| database.entry.wire_protocol);
    let (workloads, asked) = workloads::workloads(top, (protocol, catalogue), read, problems);
    let defaults = Defaults::of(top, &asked, problems);
    let own = |workload: &&Workload| plan::shape(workload, catalogue).is_some_and(WorkloadShape::has_own_data);
    let own = workloads.iter().filter(own).count();
    let data = data(top, defaults, own > 0 && own == workloads.len(), problems);
    if own > 0 {
        refuse_share_of_data(top, problems);
    }
    let experiment = Experiment {
        title: title.map(Text::into_inner).unwrap_or_default(),
        database: database.map(|database| database.entry.id.to_owned()).unwrap_or_default(),
        settings: settings(top, database, &arms, problems),
        encrypted_swap_bytes: encrypted_swap(top, attached, &resources, problems),
        data,
        load: load(top, database, &arms, defaults, problems),
        published: published::published(top, &workloads, &resources, &arms, problems),
        resources,
        workloads,
        arms,
        measure,
    };
    if problems.is_empty() { aa_arm::added(experiment, aa_arm, catalogue) } else { experiment }
}

/// The numbers of clients of a sweep over `resources`; empty without one.
fn sweep(top: &Table<'_>, resources: &[Resources], problems: &mut Problems) -> Vec<u32> {
    // Problems of the table itself are reported when the load is read.
    let table = top.table("load", &keys::LOAD, &mut Problems::new("", &[]));
    let Some(item) = table.and_then(|table| table.get("clients")) else { return Vec::new() };
    let is_all = item.value.as_str() == Some("sweep");
    if !is_all && item.value.as_array().is_none() {
        return Vec::new();
    }
    if resources.iter().any(|one| one.clients.is_some()) {
        item.refuse("lists several numbers of clients, and `[[resources]]` have numbers of their own", problems);
    }
    if is_all {
        return SWEEP.to_vec();
    }
    let numbers = item.list(problems).into_iter().filter_map(|item| item.whole(1..=CLIENTS_MAX, problems));
    let mut numbers: Vec<u32> = numbers.filter_map(|number| u32::try_from(number).ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < 2 {
        item.refuse("names fewer than two numbers of clients", problems);
    }
    numbers
}

/// A budget as experiments write it (`10 min`), s.
///
/// # Errors
/// A description of valid budgets, if `text` is none.
pub fn budget_s(text: &str) -> Result<f64, String> {
    let seconds = units::seconds(text).filter(|seconds| BUDGET_S.contains(seconds));
    seconds.ok_or_else(|| not_a_time(BUDGET_LIMITS, text))
}

/// The budgets that an experiment may have, s.
const BUDGET_S: std::ops::RangeInclusive<f64> = 1.0..=30.0 * 86_400.0;
const BUDGET_LIMITS: &str = "from 1 s to 720 h";

fn not_a_time(limits: &str, text: &str) -> String {
    format!("must be a time {limits} with its unit (ms, s, min, h), this is {}", wording::quote(text))
}

/// The versions of the servers to start, by their first numbers; empty if the experiment names none.
fn versions(
    top: &Table<'_>,
    database: Option<&OfferedDatabase>,
    attached: bool,
    problems: &mut Problems,
) -> Vec<String> {
    let Some(item) = top.get("versions") else { return Vec::new() };
    if attached {
        item.refuse("needs servers that Tithe starts: leave out every `url`", problems);
    } else if let Some(entry) = database.map(|database| database.entry).filter(|entry| entry.embedded) {
        item.refuse(format!("needs a server, and {} runs inside Tithe's own process", entry.id), problems);
    }
    let names: Vec<Text> = item.list(problems).iter().filter_map(|item| version(item, problems)).collect();
    if names.is_empty() && problems.is_empty() {
        item.refuse("names no version", problems);
    }
    refuse_duplicates("versions", &names, problems);
    names.into_iter().map(Text::into_inner).collect()
}

/// The first numbers of a version: `18`, `18.6`.
fn version(item: &Item<'_>, problems: &mut Problems) -> Option<Text> {
    let name = item.name(problems)?;
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|sign| sign.is_ascii_digit());
    if !name.get_ref().split('.').all(is_number) {
        let problem = format!("{} is not a version", wording::quote(name.get_ref()));
        problems.at(name.span(), problem, "write its first numbers, for example \"15\" or \"18.6\"");
    }
    Some(name)
}

/// Each of `resources` with each of the `versions` of the server.
fn of_versions(resources: Vec<Resources>, versions: &[String]) -> Vec<Resources> {
    if versions.is_empty() {
        return resources;
    }
    let of_one = |one: &Resources| {
        let of_version = |version: &String| {
            let one = Resources { version: Some(version.clone()), ..one.clone() };
            Resources { name: named(&one.name, &one.version_words()), ..one }
        };
        versions.iter().map(of_version).collect::<Vec<_>>()
    };
    resources.iter().flat_map(of_one).collect()
}

/// The name of resources called `name`, made distinct by `what`.
fn named(name: &str, what: &str) -> String {
    if name.is_empty() { what.to_owned() } else { format!("{name}, {what}") }
}

/// Each of `resources` at each number of clients of a sweep, ascending, and one more cell at a rate below saturation.
pub fn swept(resources: Vec<Resources>, sweep: &[u32]) -> Vec<Resources> {
    let Some(most) = sweep.last() else { return resources };
    let of_one = |one: &Resources| {
        let mut all: Vec<Resources> = sweep
            .iter()
            .map(|clients| Resources {
                name: named(&one.name, &format!("clients {clients}")),
                clients: Some(*clients),
                ..one.clone()
            })
            .collect();
        all.push(Resources {
            name: named(&one.name, &format!("{:.0} % of saturation", 100.0 * SWEEP_SHARE)),
            clients: Some(*most),
            arrivals: Some(Arrivals::OfSaturation(SWEEP_SHARE)),
            ..one.clone()
        });
        all
    };
    resources.iter().flat_map(of_one).collect()
}

fn database<'c>(item: &Item<'_>, catalogue: &'c Catalogue, problems: &mut Problems) -> Option<&'c OfferedDatabase> {
    let word = item.text(problems)?;
    let database = catalogue.database(word);
    if database.is_none() {
        let names: Vec<&str> = catalogue.databases.iter().map(|database| database.entry.id).collect();
        let suggested = || wording::suggest(word, &names, "this build of Tithe has");
        let help = catalogue.built_with(word).unwrap_or_else(suggested);
        problems.at(item.range.clone(), format!("there is no database {}", wording::quote(word)), help);
    }
    database
}

/// True when some arm is switched on by statements in its connections.
fn is_switched(arms: &[Arm]) -> bool {
    arms.iter().any(|arm| !arm.on.is_empty())
}

/// The server settings of `table`. Tithe or a protection in `arms` reserves some of them, and an attached server keeps
/// its own.
fn settings(
    table: &Table<'_>,
    database: Option<&OfferedDatabase>,
    arms: &[Arm],
    problems: &mut Problems,
) -> BTreeMap<String, String> {
    let Some(item) = table.get("settings") else { return BTreeMap::new() };
    if is_attached(arms) {
        problems.at(
            item.key_range.clone(),
            "settings cannot be given to a server that Tithe does not start",
            "change them on the server itself and remove them here, or leave out every `url`",
        );
    }
    let settings = item.pairs(problems);
    let mut seen: Vec<&str> = Vec::new();
    for (name, pair) in &settings {
        if let Some((problem, help)) = database.and_then(|database| database.refuses_setting(name, arms)) {
            problems.at(pair.key_range.clone(), problem, help);
        }
        if let Some((problem, help)) = secret_setting(name, &pair.value) {
            problems.at(pair.range.clone(), problem, help);
        }
        if let Some(earlier) = seen.iter().find(|earlier| plain_name(earlier) == plain_name(name)) {
            let problem = format!("{} and {} are one setting", wording::quote(earlier), wording::quote(name));
            problems.at(pair.key_range.clone(), problem, "remove one of the two");
        }
        seen.push(name);
    }
    reader::texts(settings)
}

/// Refuses limits of memory that depend on the size of data which Tithe does not generate.
fn refuse_share_of_data(top: &Table<'_>, problems: &mut Problems) {
    // Problems of the tables themselves are reported when the resources are read.
    for table in &top.tables("resources", &keys::RESOURCES, &[], &mut Problems::new("", &[])) {
        if let Some(item) = table.get("data_per_memory") {
            item.refuse("needs `records`, and these workloads have data of their own: write `memory`", problems);
        }
    }
}

/// The generated data. `own_data`: no workload uses them.
fn data(top: &Table<'_>, defaults: Defaults, own_data: bool, problems: &mut Problems) -> Data {
    const VALUES: &[(&str, Values)] = &[("ycsb", Values::Ycsb), ("incompressible", Values::Incompressible)];
    let mut data = Data { records: defaults.records.unwrap_or(1), values: Values::Ycsb };
    let Some(table) = top.table("data", &keys::DATA, problems) else {
        if top.get("data").is_none() && defaults.records.is_none() && !own_data {
            let help = "add `[data]` and below it for example `records = 100_000`";
            problems.missing(problems.end..problems.end, "the experiment has no `[data]`", help);
        }
        return data;
    };
    let item =
        if defaults.records.is_some() || own_data { table.get("records") } else { table.need("records", problems) };
    let records = item.and_then(|item| item.whole(1..=u64::MAX, problems));
    data.records = records.unwrap_or(data.records);
    data.values = table.get("values").and_then(|item| item.choice(VALUES, problems)).unwrap_or(data.values);
    data
}

fn load(
    top: &Table<'_>,
    database: Option<&OfferedDatabase>,
    arms: &[Arm],
    defaults: Defaults,
    problems: &mut Problems,
) -> Load {
    type Pace = fn(f64) -> Arrivals;
    const ARRIVALS: &[(&str, Pace)] = &[("even", Arrivals::Even), ("poisson", Arrivals::Poisson)];
    let Some(table) = top.table("load", &keys::LOAD, problems) else {
        let arrivals = defaults.rate.map_or(Arrivals::Closed, Arrivals::Even);
        let clients = defaults.clients.unwrap_or(1);
        return Load { clients, arrivals, reconnect_every: None, agents: None, listen: None };
    };
    let several = table.get("clients").filter(|item| item.value.as_integer().is_none());
    if let Some(item) = &several
        && item.value.as_array().is_none()
        && item.value.as_str() != Some("sweep")
    {
        item.wrong_type("a whole number, a list of them, or \"sweep\"", problems);
    }
    let own = if several.is_some() { Some(1) } else { clients(&table, problems) };
    let clients = own.or(defaults.clients).unwrap_or(1);
    if let (Some(_), Some(item)) = (&several, table.get("rate")) {
        item.refuse("cannot be given with a sweep over clients: the sweep finds its rate", problems);
    }
    let rate = table.get("rate").and_then(|item| item.number(RATES_PER_S, problems)).or(defaults.rate);
    let pace = table.get("arrivals").map(|item| {
        let pace = item.choice(ARRIVALS, problems);
        if table.get("rate").is_none() && defaults.rate.is_none() {
            item.refuse("needs a rate to keep to: without `rate` every client waits for its last operation", problems);
        }
        pace
    });
    let pace = pace.flatten().unwrap_or(Arrivals::Even);
    let reconnect_every = reconnect_every(&table, is_switched(arms), problems);
    let listen = listen(&table, database, arms, problems);
    let agents = table.get("agents").and_then(|item| item.whole(1..=AGENTS_MAX, problems));
    let agents = agents.and_then(|agents| u32::try_from(agents).ok());
    Load { clients, arrivals: rate.map_or(Arrivals::Closed, pace), reconnect_every, agents, listen }
}

/// The address that servers listen on. Only the machine can check whether the address is its own.
fn listen(
    table: &Table<'_>,
    database: Option<&OfferedDatabase>,
    arms: &[Arm],
    problems: &mut Problems,
) -> Option<IpAddr> {
    let item = table.get("listen")?;
    let text = item.text(problems)?;
    let Ok(address) = text.parse::<IpAddr>() else {
        item.refuse(format!("must be an IP address of this machine, this is {}", wording::quote(text)), problems);
        return None;
    };
    let address = address.to_canonical();
    if let Some(why) = database.and_then(|database| database.refuses_address(address, arms)) {
        item.refuse(why, problems);
    }
    Some(address)
}

/// The number of operations per connection. `switched`: some arm is switched on by statements in its connections.
fn reconnect_every(table: &Table<'_>, switched: bool, problems: &mut Problems) -> Option<u32> {
    let item = table.get("reconnect_every")?;
    if switched {
        item.refuse("cannot be given with `on`: what is switched on in a connection ends with it", problems);
    }
    u32::try_from(item.whole(1..=RECONNECT_MAX, problems)?).ok()
}

fn clients(table: &Table<'_>, problems: &mut Problems) -> Option<u32> {
    let clients = table.get("clients")?.whole(1..=CLIENTS_MAX, problems)?;
    u32::try_from(clients).ok()
}

fn resources(
    top: &Table<'_>,
    database: Option<&OfferedDatabase>,
    arms: &[Arm],
    problems: &mut Problems,
) -> Vec<Resources> {
    let (attached, switched) = (is_attached(arms), is_switched(arms));
    let mut names = Vec::new();
    let mut resources = Vec::new();
    let tables = top.tables("resources", &keys::RESOURCES, &[], problems);
    for table in &tables {
        let item = if tables.len() > 1 { table.need("name", problems) } else { table.get("name") };
        let name = item.and_then(|item| item.name(problems));
        resources.push(Resources {
            name: name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default(),
            version: None,
            settings: settings(table, database, arms, problems),
            clients: clients(table, problems),
            arrivals: None,
            reconnect_every: reconnect_every(table, switched, problems),
            limits: limits(table, database, attached, problems),
        });
        names.extend(name);
    }
    refuse_duplicates("resources", &names, problems);
    if resources.is_empty() {
        resources.push(Resources {
            name: String::new(),
            version: None,
            settings: BTreeMap::new(),
            clients: None,
            arrivals: None,
            reconnect_every: None,
            limits: Limits::default(),
        });
    }
    resources
}

/// Limits of servers. They can be enforced only if Tithe starts the server as a separate process.
fn limits(table: &Table<'_>, database: Option<&OfferedDatabase>, attached: bool, problems: &mut Problems) -> Limits {
    const CACHES: &[(&str, bool)] = &[("warm", false), ("cold", true)];
    let entry = database.map(|database| database.entry);
    for key in ["cpus", "memory", "data_per_memory", "cache"] {
        let Some(item) = table.get(key) else { continue };
        if attached {
            item.refuse("needs servers that Tithe starts: leave out every `url`", problems);
        } else if let Some(entry) = entry.filter(|entry| entry.embedded) {
            item.refuse(format!("needs a server, and {} runs inside Tithe's own process", entry.id), problems);
        } else if let Some(entry) = entry.filter(|entry| key == "cache" && !entry.keeps_data) {
            item.refuse(
                format!("needs a server that keeps its data over a restart, and {} does not", entry.id),
                problems,
            );
        }
    }
    let cpus = table.get("cpus").and_then(|item| item.number(0.1..=1024.0, problems));
    let per_memory = table.get("data_per_memory").and_then(|item| item.number(0.01..=1000.0, problems));
    let memory = table.get("memory").and_then(|item| size(&item, problems));
    if let (Some(item), Some(_)) = (table.get("data_per_memory"), table.get("memory")) {
        item.refuse("cannot be given with `memory`, which already sets the memory", problems);
    }
    let cold = table.get("cache").and_then(|item| item.choice(CACHES, problems)).unwrap_or(false);
    Limits { cpus, memory: memory.map(Memory::Bytes).or(per_memory.map(Memory::DataPer)), cold }
}

/// Encrypted swap for the run. It is set up on this machine; an attached server may be on another one.
fn encrypted_swap(top: &Table<'_>, attached: bool, resources: &[Resources], problems: &mut Problems) -> Option<u64> {
    let item = top.get("encrypted_swap")?;
    if attached {
        item.refuse("needs servers that Tithe starts: leave out every `url`", problems);
    } else if resources.iter().all(|resources| resources.limits.memory.is_some()) {
        item.refuse("would not be used: all servers have a limit of memory, and such a server does not swap", problems);
    }
    size(&item, problems)
}

/// A size of memory or on a disk, bytes.
fn size(item: &Item<'_>, problems: &mut Problems) -> Option<u64> {
    let bytes = units::bytes(item.text(problems)?).filter(|bytes| (1 << 20..1 << 50).contains(bytes));
    if bytes.is_none() {
        item.refuse("must be a size from 1 MiB on with its unit (kB, MB, GB, KiB, MiB, GiB)", problems);
    }
    bytes
}

/// Reports names that occur twice in the same list.
fn refuse_duplicates(what: &str, names: &[Text], problems: &mut Problems) {
    for (index, name) in names.iter().enumerate() {
        if names[..index].iter().any(|earlier| earlier.get_ref() == name.get_ref()) {
            let problem = format!("there are two {what} called {}", wording::quote(name.get_ref()));
            problems.at(name.span(), problem, "give each its own name: reports tell them apart by it");
        }
    }
}

/// The designs by their names in experiment files and on the command line.
pub const DESIGNS: &[(&str, Design)] = &[
    ("interleaved", Design::Interleaved),
    ("duet", Design::Duet),
    ("slices", Design::Slices),
    ("sequential", Design::Sequential),
];

/// True if the clock alone shows the cost of a protection: the arms are one server that its provider switches, whose
/// processes are not visible here, or the work is done outside of the server's processes.
fn only_the_clock_shows(arms: &[Arm], database: Option<&OfferedDatabase>) -> bool {
    let entry = |id: &str| database.and_then(|database| database.protection(id));
    let elsewhere = |arm: &Arm| arm.protections.iter().any(|it| entry(&it.id).is_some_and(|entry| entry.elsewhere));
    arms.iter().any(|arm| arm.switch.is_some() || elsewhere(arm))
}

/// How to measure, and whether an A/A arm was requested or refused. `by_clock`: only the clock shows the costs.
fn measure(top: &Table<'_>, by_clock: bool, problems: &mut Problems) -> (Measure, Option<bool>) {
    const PRIMARY: &[(&str, Metric)] = &[("net", Metric::Net), ("time", Metric::Time), ("cpu", Metric::Cpu)];
    let mut measure = Measure {
        precision: 0.01f64.ln_1p(),
        budget_s: 300.0,
        seed: 1,
        margin: 0.03f64.ln_1p(),
        primary: if by_clock { Metric::Time } else { Metric::Net },
        epochs: None,
        starts: None,
        slot_ms: None,
        warmup_s: None,
        idle_s: None,
        design: Design::Interleaved,
        pin: true,
        until_decided: false,
        profile: false,
    };
    let Some(table) = top.table("measure", &keys::MEASURE, problems) else { return (measure, None) };
    let mut percent = |key, low: f64| {
        let item = table.get(key)?;
        let text = item.text(problems)?;
        let ratio = units::ln_ratio(text);
        let within = ratio.filter(|ratio| (low.ln_1p()..=std::f64::consts::LN_2).contains(ratio));
        if within.is_none() {
            let text = wording::quote(text);
            item.refuse(format!("must be a percentage from {} % to 100 %, this is {text}", low * 100.0), problems);
        }
        within
    };
    measure.precision = percent("precision", 0.0001).unwrap_or(measure.precision);
    measure.margin = percent("margin", 0.0).unwrap_or(measure.margin);
    let mut time = |key, low: f64, high: f64, limits: &str| {
        let item = table.get(key)?;
        let text = item.text(problems)?;
        let seconds = units::seconds(text);
        let within = seconds.filter(|seconds| (low..=high).contains(seconds));
        if within.is_none() {
            item.refuse(not_a_time(limits, text), problems);
        }
        within
    };
    measure.budget_s = time("budget", *BUDGET_S.start(), *BUDGET_S.end(), BUDGET_LIMITS).unwrap_or(measure.budget_s);
    measure.slot_ms = time("slot", 0.005, 10.0, "from 5 ms to 10 s").map(|seconds| seconds * 1e3);
    measure.warmup_s = time("warmup", 0.0, 3600.0, "from 0 s to 1 h");
    measure.idle_s = time("idle", 0.0, 3600.0, "from 0 s to 1 h");
    measure.seed = table.get("seed").and_then(|item| item.whole(0..=u64::MAX, problems)).unwrap_or(measure.seed);
    measure.primary = table.get("primary").and_then(|item| item.choice(PRIMARY, problems)).unwrap_or(measure.primary);
    let epochs = table.get("epochs").and_then(|item| item.whole(1..=20, problems));
    measure.epochs = epochs.and_then(|epochs| u32::try_from(epochs).ok());
    let starts = table.get("starts").and_then(|item| item.whole(1..=100, problems));
    measure.starts = starts.and_then(|starts| u32::try_from(starts).ok());
    measure.design = table.get("design").and_then(|item| item.choice(DESIGNS, problems)).unwrap_or(measure.design);
    measure.pin = table.get("pin").and_then(|item| item.flag(problems)).unwrap_or(measure.pin);
    measure.until_decided = table.get("until_decided").and_then(|item| item.flag(problems)).unwrap_or(false);
    measure.profile = table.get("profile").and_then(|item| item.flag(problems)).unwrap_or(false);
    let aa_arm = table.get("aa_arm").and_then(|item| item.flag(problems));
    (measure, aa_arm)
}

/// Reports a budget or slot that makes no plan, at the key, else at its table, else at the end.
fn check_plan(experiment: &Experiment, catalogue: &Catalogue, top: &Table<'_>, problems: &mut Problems) {
    let end = problems.end;
    for plan_problem in plan::plan_problems(experiment, &plan::cells(experiment, catalogue)) {
        let table = top.table("measure", &keys::MEASURE, problems);
        let range = match &table {
            Some(table) => table.get(plan_problem.key).map_or(table.place.clone(), |item| item.range),
            None => end..end,
        };
        problems.at(range, plan_problem.problem, plan_problem.help);
    }
}
