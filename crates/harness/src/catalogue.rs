//! What this build of Tithe offers, as data, and what this machine lacks of it.

use tithe_model::{
    catalogue::{Catalogue, DatabaseEntry, ProtectionEntry, WorkloadEntry},
    experiment,
};

use crate::{
    database::{Database, Install, Missing, Search},
    limits,
    protection::{self, Protection, Setup},
    volume::swap::own,
};

/// What `databases` and `workloads` offer, as data.
pub fn catalogue(databases: &[&'static dyn Database], workloads: Vec<WorkloadEntry>) -> Catalogue {
    let protections = |database: &'static dyn Database| {
        let entry = |protection: &&'static dyn Protection| ProtectionEntry {
            id: protection.id(),
            title: protection.title(),
            guards_against: protection.guards_against(),
            leaves_open: protection.leaves_open(),
            options: protection.options(),
            attachable: protection.attachable(),
        };
        protection::all(database).iter().map(entry).collect()
    };
    let entry = |database: &&'static dyn Database| DatabaseEntry {
        id: database.id(),
        title: database.title(),
        embedded: database.embedded(),
        restarts: database.restarts(),
        keeps_data: database.keeps_data(),
        copies_data: database.stored(&Setup::bare()).is_some(),
        schemes: database.schemes(),
        protections: protections(*database),
        reserved_settings: database.reserved_settings(),
        known_settings: database.known_settings(),
    };
    Catalogue { databases: databases.iter().map(entry).collect(), workloads }
}

/// The installation that `experiment` runs on.
///
/// # Errors
/// Everything that this machine lacks for it.
pub fn missing(
    database: &dyn Database,
    experiment: &experiment::Experiment,
    search: &Search,
) -> Result<Install, Vec<Missing>> {
    if experiment.arms.iter().all(|arm| arm.url.is_some()) {
        return Ok(Install::default());
    }
    let install = database.find(search).map_err(|missing| vec![missing])?;
    let mut all = Vec::new();
    for chosen in experiment.arms.iter().flat_map(|arm| &arm.protections) {
        if let Ok(protection) = protection::named(database, &chosen.id)
            && let Err(missing) = protection.needs(&install, chosen)
            && !all.contains(&missing)
        {
            all.push(missing);
        }
    }
    all.extend(limits::missing(database, experiment));
    all.extend(experiment.encrypted_swap_bytes.and_then(|_| own::needs().err()));
    if all.is_empty() { Ok(install) } else { Err(all) }
}
