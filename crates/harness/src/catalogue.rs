//! What this build of Tithe offers, and what this machine lacks for it, as data.

use tithe_machine::launch::{Install, Missing, Place, Search};
use tithe_model::{
    catalogue::{Catalogue, OfferedDatabase, Overrides},
    experiment,
};
use tithe_plugin::{configuration::configuration, product::Product, protection::Protection, setup::Setup};

use crate::{arms, limits, volumes::own_swap};

/// What `databases` and all kinds of workloads offer, as data.
pub fn catalogue(databases: &[&'static dyn Product]) -> Catalogue {
    let offered = |database: &&'static dyn Product| OfferedDatabase {
        entry: *database.entry(),
        copies_data: database.stored(&Setup::bare()).is_some(),
        protections: arms::all(*database).iter().map(|protection| protection.entry()).collect(),
        overrides: overrides(*database),
    };
    let workloads = tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).collect();
    Catalogue { databases: databases.iter().map(offered).collect(), workloads, left_out: Vec::new() }
}

/// Finds the settings that a protection of `database` overrides: applies it together with a setting that an experiment
/// gives.
fn overrides(database: &'static dyn Product) -> Overrides {
    Overrides::new(move |chosen, name| {
        arms::named(database, &chosen.id).is_ok_and(|protection| overridden(database, protection, chosen, name))
    })
}

/// A value that no protection uses, and that every server's file contains unchanged.
const GIVEN: &str = "tithe0given0this0";

/// True when the value that an experiment gives `setting` is gone, or when there are two values. Checked are the set-up
/// that `protection` makes of a plain one, and the files that the server is started with.
fn overridden(
    database: &dyn Product,
    protection: &dyn Protection,
    chosen: &experiment::Protection,
    setting: &str,
) -> bool {
    let mut plain = Setup::bare();
    plain.settings.insert(setting.to_owned(), GIVEN.to_owned());
    let mut protected = plain.clone();
    protection.apply(chosen, &mut protected);
    let alike = |name: &&String| database.entry().is_one_setting(name, setting);
    let kept = protected.settings.get(setting).is_some_and(|value| value.contains(GIVEN));
    let twice = protected.settings.keys().filter(alike).count() > 1;
    !kept || twice || shows(database, &plain) && !shows(database, &protected)
}

/// True when the files of a server with this set-up contain the given value.
fn shows(database: &dyn Product, setup: &Setup) -> bool {
    let place = Place::on_loopback("/sandbox", 65_535);
    let launch = database.launch(&Install::default(), setup, &place);
    configuration(&launch, setup, &place).iter().any(|line| line.contains(GIVEN))
}

/// The installations that `experiment` runs on, one for each of its resources. `line` describes where in its text a
/// path of keys leads.
///
/// # Errors
/// Everything that this machine lacks for it.
pub fn missing(
    database: &dyn Product,
    experiment: &experiment::Experiment,
    search: &Search,
    line: &dyn Fn(&[&str]) -> String,
) -> Result<Vec<Install>, Vec<Missing>> {
    let resources = &experiment.resources;
    if experiment.arms.iter().all(|arm| arm.url.is_some()) {
        return Ok(vec![Install::default(); resources.len()]);
    }
    let mut all = Vec::new();
    let mut tell = |missing: Missing| {
        if !all.contains(&missing) {
            all.push(missing);
        }
    };
    let find = |version: &Option<String>| match version {
        Some(words) => of_version(database, words, search),
        None => database.find(search),
    };
    let found: Vec<_> = resources.iter().map(|it| find(&it.version)).collect();
    for (install, version) in found.iter().zip(resources.iter().map(|it| it.version.as_deref())) {
        let install = match install {
            Ok(install) => install,
            Err(missing) => {
                let named = version.map_or(String::new(), |_| line(&["versions"]));
                tell(Missing { what: format!("{}{named}", missing.what), ..missing.clone() });
                continue;
            }
        };
        for (number, arm) in experiment.arms.iter().enumerate() {
            let resolved = arm.protections.iter().filter_map(|it| Some((arms::named(database, &it.id).ok()?, it)));
            for mut missing in resolved.filter_map(|(protection, chosen)| protection.needs(install, chosen).err()) {
                if let Some(version) = version {
                    missing.what +=
                        &format!(", which arm {}{} asks for", arm.name, line(&["arm", &number.to_string()]));
                    let advice = format!("or leave {version} out of `versions`{}", line(&["versions"]));
                    missing.how_to_install.push(advice);
                }
                tell(missing);
            }
            arms::install_of(database, arm, install).err().into_iter().for_each(&mut tell);
        }
    }
    limits::missing(database, experiment).into_iter().for_each(&mut tell);
    experiment.encrypted_swap_bytes.and_then(|_| own_swap::needs().err()).into_iter().for_each(&mut tell);
    if all.is_empty() { Ok(found.into_iter().flatten().collect()) } else { Err(all) }
}

/// The installation of `database` whose version begins with the numbers `words`.
///
/// # Errors
/// Which version is there instead, and how to get the right one.
pub fn of_version(database: &dyn Product, words: &str, search: &Search) -> Result<Install, Missing> {
    let all = database.find_all(search);
    if let Some(found) = all.iter().find(|install| begins(&install.version, words)) {
        return Ok(found.clone());
    }
    let there = all.iter().map(|install| format!("{}: {}", install.programs.display(), install.version));
    let there: Vec<String> = there.collect();
    let get = database.download().map(|download| {
        let name = download.name.unwrap_or(database.id());
        format!("tithe get {name} --version {words}")
    });
    let get = get.unwrap_or("name one that is there, or install it".to_owned());
    let why = if all.is_empty() { database.find(search).err() } else { None };
    Err(without_version(format!("{} {words}", database.title()), there, get, why))
}

/// The report that `what` is missing. If no version is found, `why` may be something else than its programs: Java, or a
/// limit of the kernel.
fn without_version(what: String, there: Vec<String>, get: String, why: Option<Missing>) -> Missing {
    let mut how_to_install = vec![get];
    let looked_in = match why {
        Some(why) => {
            how_to_install.extend(why.how_to_install);
            [vec![format!("no {}", why.what)], why.looked_in].concat()
        }
        None => there,
    };
    Missing { what, looked_in, how_to_install }
}

/// True if the version in a program's output, `said`, begins with the numbers `words`: 17 of `postgres (PostgreSQL)
/// 17.11`.
fn begins(said: &str, words: &str) -> bool {
    let is_digit = |sign: char| sign.is_ascii_digit();
    let number = said.split([' ', '=']).find(|word| word.starts_with(is_digit));
    let rest = number.and_then(|number| number.strip_prefix(words));
    rest.is_some_and(|rest| !rest.starts_with(is_digit))
}

#[cfg(test)]
pub(crate) mod tests {
    use tithe_model::{
        experiment::Experiment,
        parse::parse,
        plan::{Plan, plan},
    };
    use tithe_plugin::simulated::Simulated;

    use super::*;

    /// The experiment `text` on the simulated database.
    pub(crate) fn read(text: &str) -> Experiment {
        parse(text, &catalogue(&[&Simulated]), &|_| Err(std::io::Error::other("no file"))).expect("an experiment")
    }

    /// The plan of the experiment `text` on the simulated database.
    pub(crate) fn planned(text: &str) -> Plan {
        plan(read(text), &catalogue(&[&Simulated])).expect("a plan")
    }

    #[test]
    fn a_version_is_known_by_its_first_numbers() {
        for (said, words, is) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15", true),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.1", false),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "18", false),
            ("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=a", "9.1", true),
            ("mysqld  Ver 8.0.33 for Linux on x86_64", "8.0.33", true),
            ("nothing", "1", false),
        ] {
            assert_eq!(begins(said, words), is, "{said}: {words}");
        }
    }

    #[test]
    fn a_limit_because_of_which_no_version_is_found_is_named_with_its_remedy() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let limit = Missing {
            what: "vm.max_map_count of 65530 or more".to_owned(),
            looked_in: texts(&["it is 1000"]),
            how_to_install: texts(&["sysctl -w vm.max_map_count=262144"]),
        };
        let of = |there: &[&str], why| without_version("OpenSearch 2".to_owned(), texts(there), "get".to_owned(), why);
        let missing = of(&[], Some(limit));
        assert_eq!(missing.looked_in, ["no vm.max_map_count of 65530 or more", "it is 1000"]);
        assert_eq!(missing.how_to_install, ["get", "sysctl -w vm.max_map_count=262144"]);
        let other = of(&["/opt/2.19: 2.19.1"], None);
        assert_eq!((other.looked_in, other.how_to_install), (texts(&["/opt/2.19: 2.19.1"]), texts(&["get"])));
    }
}
