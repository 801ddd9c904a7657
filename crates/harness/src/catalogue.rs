//! What this build of Tithe offers, as data, and what this machine lacks of it.

use tithe_machine::launch::{Install, Missing, Place, Search};
use tithe_model::{
    catalogue::{Catalogue, OfferedDatabase, Overrides, WorkloadEntry},
    experiment,
};
use tithe_plugin::{configuration::configuration, product::Product, protection::Protection, setup::Setup};

use crate::{arms, limits, volumes::own_swap};

/// What `databases` and `workloads` offer, as data.
pub fn catalogue(databases: &[&'static dyn Product], workloads: Vec<WorkloadEntry>) -> Catalogue {
    let offered = |database: &&'static dyn Product| OfferedDatabase {
        entry: *database.entry(),
        copies_data: database.stored(&Setup::bare()).is_some(),
        protections: arms::all(*database).iter().map(|protection| protection.entry()).collect(),
        overrides: overrides(*database),
    };
    Catalogue { databases: databases.iter().map(offered).collect(), workloads, left_out: Vec::new() }
}

/// Tells which settings a protection of `database` takes for itself, by having it applied beside one that an experiment
/// gives.
fn overrides(database: &'static dyn Product) -> Overrides {
    Overrides::new(move |chosen, name| {
        arms::named(database, &chosen.id).is_ok_and(|protection| overridden(database, protection, chosen, name))
    })
}

/// A value that is nobody's, and that every server's file holds as it is.
const GIVEN: &str = "tithe0given0this0";

/// True when nothing is left of the value that an experiment gives `setting`, or two values stand beside each other: in
/// what `protection` makes of a plain set-up, or in the files that the server is started with.
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

/// True when the files of a server with this set-up hold the given value.
fn shows(database: &dyn Product, setup: &Setup) -> bool {
    let place = Place::on_loopback("/sandbox", 65_535);
    let launch = database.launch(&Install::default(), setup, &place);
    configuration(&launch, setup, &place).iter().any(|line| line.contains(GIVEN))
}

/// The installation that `experiment` runs on.
///
/// # Errors
/// Everything that this machine lacks for it.
pub fn missing(
    database: &dyn Product,
    experiment: &experiment::Experiment,
    search: &Search,
) -> Result<Install, Vec<Missing>> {
    if experiment.arms.iter().all(|arm| arm.url.is_some()) {
        return Ok(Install::default());
    }
    let install = database.find(search).map_err(|missing| vec![missing])?;
    let mut all = Vec::new();
    for chosen in experiment.arms.iter().flat_map(|arm| &arm.protections) {
        if let Ok(protection) = arms::named(database, &chosen.id)
            && let Err(missing) = protection.needs(&install, chosen)
            && !all.contains(&missing)
        {
            all.push(missing);
        }
    }
    all.extend(experiment.arms.iter().filter_map(|arm| arms::install_of(database, arm, &install).err()));
    all.extend(limits::missing(database, experiment));
    all.extend(experiment.encrypted_swap_bytes.and_then(|_| own_swap::needs().err()));
    if all.is_empty() { Ok(install) } else { Err(all) }
}
