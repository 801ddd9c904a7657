//! What a server or `verify` would refuse, reported before anything is started, with its place in the experiment.
//!
//! Reading an experiment needs only the file and the catalogue. Here its database is asked as well: whether the URL of
//! each arm does what the arm asks for; whether one server gets two contradictory requests, or belongs to one arm alone
//! while others share another; and whether the installed server knows its settings. This machine is asked whether
//! servers can listen at the given address. No connection is opened.

use std::collections::{BTreeMap, BTreeSet};

use tithe_harness::arms::{Resolved, check_address};
use tithe_machine::launch::Install;
use tithe_model::{
    diagnostic::{Diagnostic, nearest},
    experiment::{Arm, Experiment, OptionValue, Protection, Url},
    parse,
};
use tithe_plugin::{
    product::Product,
    wire::{is_socket, is_this_machine},
};

use crate::complain::without_lead;

/// What is wrong with the URLs of the arms in `text`.
pub fn of_urls(database: &dyn Product, experiment: &Experiment, text: &str) -> Vec<Diagnostic> {
    let urls = experiment.arms.iter().enumerate().filter_map(|(number, arm)| Some((number, arm, arm.url.as_ref()?)));
    let unfit = urls.filter_map(|(number, arm, url)| {
        let setup = Resolved::of(database, arm).ok()?.bare_setup();
        let fault = database.check_url(url, &setup).err()?;
        let fault = fault.to_string();
        let problem = match without_lead(&fault) {
            words if words.starts_with("this arm ") => words.replacen("this arm", &format!("arm `{}`", arm.name), 1),
            words => format!("arm `{}`: {words}", arm.name),
        };
        let help = "change the URL, or the protections of the arm".to_owned();
        Some(Diagnostic { range: parse::place(text, &["arm", &number.to_string(), "url"]), problem, help })
    });
    let mut all: Vec<Diagnostic> = unfit.collect();
    if all.is_empty() {
        all.extend(two_ways(database, experiment, text));
        all.extend(alone(database, experiment, text));
    }
    all
}

/// An address in `text` for servers to listen on that is not this machine's.
pub fn of_address(experiment: &Experiment, text: &str) -> Option<Diagnostic> {
    let problem = check_address(experiment).err()?;
    let help = "name one that `ip address` lists, or leave it out, and servers listen on 127.0.0.1".to_owned();
    Some(Diagnostic { range: parse::place(text, &["load", "listen"]), problem, help })
}

/// The protection of `arm` that its URL asks for.
fn by_url(database: &dyn Product, arm: &Arm) -> Option<Protection> {
    let resolved = Resolved::of(database, arm).ok()?;
    let found = resolved.protections.into_iter().find(|(protection, _)| protection.entry().by_url)?;
    Some(found.1.clone())
}

/// Arms that ask one server for the same protection in two ways, if a server can have only one.
fn two_ways(database: &dyn Product, experiment: &Experiment, text: &str) -> Option<Diagnostic> {
    let asked: Vec<(usize, &Arm, &Url, Protection)> = experiment
        .arms
        .iter()
        .enumerate()
        .filter_map(|(number, arm)| Some((number, arm, arm.url.as_ref()?, by_url(database, arm)?)))
        .collect();
    for (index, (_, first, first_url, first_chosen)) in asked.iter().enumerate() {
        for (number, arm, url, chosen) in &asked[index + 1..] {
            if !url.place().eq_ignore_ascii_case(&first_url.place())
                || chosen.id != first_chosen.id
                || chosen == first_chosen
            {
                continue;
            }
            let problem = format!(
                "arms `{}` and `{}` ask one server for {} in two ways ({}, {}), and it has one configuration",
                first.name,
                arm.name,
                chosen.id,
                differing(&first_chosen.options, &chosen.options),
                differing(&chosen.options, &first_chosen.options)
            );
            let help = "give one of them a server, or a port, of its own, or leave one out";
            let range = parse::place(text, &["arm", &number.to_string(), "url"]);
            return Some(Diagnostic { range, problem, help: help.to_owned() });
        }
    }
    None
}

/// The server of an arm's URL, as far as the URL shows it.
struct Place<'a> {
    number: usize,
    arm: &'a Arm,
    host: String,
    port: u16,
    by_url: bool,
    by_socket: bool,
}

impl Place<'_> {
    fn is(&self, other: &Self) -> bool {
        // The name of a server's socket does not always contain its port.
        self.host == other.host && (self.port == other.port || self.by_socket != other.by_socket)
    }

    /// True if both may be one server: products that serve TLS at a separate port have two places.
    fn may_be(&self, other: &Self) -> bool {
        self.is(other) || self.host == other.host && self.by_url != other.by_url
    }
}

/// An arm on another server than all others, two of which share a server.
fn alone(database: &dyn Product, experiment: &Experiment, text: &str) -> Option<Diagnostic> {
    let places = experiment.arms.iter().enumerate().map(|(number, arm)| {
        let (host, port) = database.endpoint(arm.url.as_ref()?)?;
        let by_socket = is_socket(&host);
        let host = if is_this_machine(&host) { "localhost".to_owned() } else { host.to_ascii_lowercase() };
        Some(Place { number, arm, host, port, by_url: by_url(database, arm).is_some(), by_socket })
    });
    let places = places.collect::<Option<Vec<Place<'_>>>>()?;
    let others = |place: &Place<'_>| places.iter().filter(|other| other.number != place.number).collect::<Vec<_>>();
    let first = places.iter().find(|place| others(place).iter().any(|other| other.is(place)))?;
    let second = places.iter().find(|other| other.number != first.number && other.is(first))?;
    let alone = places.iter().find(|place| !others(place).iter().any(|other| other.may_be(place)))?;
    let problem = format!(
        "arm `{}` uses another server than all others, and arms `{}` and `{}` share one: the shared one stays warmer, \
         which has nothing to do with a protection",
        alone.arm.name, first.arm.name, second.arm.name
    );
    let help = "give every arm a server of its own, or all arms the same one, by the same host and port in every URL";
    let range = parse::place(text, &["arm", &alone.number.to_string(), "url"]);
    Some(Diagnostic { range, problem, help: help.to_owned() })
}

/// The options that differ in `other`: `version = 1.3`.
fn differing(options: &BTreeMap<String, OptionValue>, other: &BTreeMap<String, OptionValue>) -> String {
    let differ = options.iter().filter(|(name, chosen)| other.get(*name) != Some(*chosen));
    differ.map(|(name, chosen)| format!("{name} = {chosen}")).collect::<Vec<_>>().join(", ")
}

/// The settings in `text` that some server does not know. `installs`: the installations for each of the experiment's
/// resources.
pub fn of_settings(
    database: &dyn Product,
    installs: &[Install],
    experiment: &Experiment,
    text: &str,
) -> Vec<Diagnostic> {
    let common = experiment.settings.keys().map(|name| (vec!["settings".to_owned()], name));
    // Each table stands for one resource per version and number of clients.
    let tables = (1..).take_while(|number| parse::line_of(text, &["resources", &number.to_string()]).is_some());
    let each = (experiment.resources.len() / (tables.count() + 1)).max(1);
    let of_resources = experiment.resources.iter().enumerate().flat_map(|(number, resources)| {
        let path = vec!["resources".to_owned(), (number / each).to_string(), "settings".to_owned()];
        resources.settings.keys().map(move |name| (path.clone(), name))
    });
    let of_arms = experiment.arms.iter().enumerate().flat_map(|(arm, described)| {
        let own = described.protections.iter().enumerate();
        own.filter_map(|(number, chosen)| Some((number, chosen, chosen.custom.as_ref()?))).flat_map(
            move |(number, chosen, custom)| {
                let place = match chosen.id == parse::SETTINGS {
                    true => vec!["settings".to_owned()],
                    false => vec!["protections".to_owned(), number.to_string(), "settings".to_owned()],
                };
                let path = [vec!["arm".to_owned(), arm.to_string()], place].concat();
                custom.settings.keys().map(move |name| (path.clone(), name))
            },
        )
    });
    let mut told = BTreeSet::new();
    let all = common.chain(of_resources).chain(of_arms).filter(|(path, name)| told.insert((path.clone(), *name)));
    let unknown = all.filter_map(|(mut path, name)| {
        let unlike = |install: &Install| Some((install.clone(), database.in_place_of(install, name)?));
        let (install, known) = installs.iter().find_map(unlike)?;
        path.push(name.clone());
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let problem = format!("{} knows no setting `{name}`", install.version);
        let help = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.len() == 1 => format!("did you mean `{}`?", known[0]),
            None if name.contains('.') => {
                "remove it: what a component brings is set once `statements` have installed it".to_owned()
            }
            None => "correct its name or remove it: the server would not start".to_owned(),
        };
        Some(Diagnostic { range: parse::place(text, &path), problem, help })
    });
    unknown.collect()
}
