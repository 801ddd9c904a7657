//! Keys that are changed while an arm is measured: those of a database's files, or that of the volume below them.
//!
//! Encrypting data anew is background work: it goes on for as long as it takes, whoever is measured meanwhile. So that it
//! burdens the arm that it belongs to and no other, the servers of such a cell run in their own slots only
//! ([`Turnstile`](crate::load::turnstile::Turnstile)).

use tithe_model::experiment::{self, Arm, Design, Experiment};

use crate::{
    database::{Database, Server},
    fault::Fault,
    protection::{self, Setup},
    sandbox::companion::Companion,
    volume::Layout,
    workload::Workload,
};

/// Encrypts the data of one server with another key: on a connection of its own, or below the server.
pub trait Rotator: Send {
    /// Changes the key once; the data are encrypted with the new one, and none with the old one, when this returns. Clients
    /// go on meanwhile.
    ///
    /// # Errors
    /// What the server or the program said: a key that was not changed is never passed over.
    fn rotate(&mut self) -> Result<(), Fault>;
}

/// True when `arm` of `database` rotates its key while it is measured.
///
/// # Errors
/// When the database does not have one of its protections.
pub fn asked(database: &dyn Database, arm: &Arm) -> Result<bool, Fault> {
    Ok(setup(database, arm)?.changes_keys())
}

/// What the protections of `arm` ask for.
fn setup(database: &dyn Database, arm: &Arm) -> Result<Setup, Fault> {
    let mut setup = Setup::bare();
    for chosen in &arm.protections {
        protection::named(database, &chosen.id)?.apply(chosen, &mut setup);
    }
    Ok(setup)
}

/// What changes the key of the server of `arm`; `None` where it is not changed. `companion` runs programs for it.
///
/// # Errors
/// [`Fault::Refused`] where the database or the volume cannot; the server's error.
pub fn rotator(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    companion: Option<&Companion>,
) -> Result<Option<Box<dyn Rotator>>, Fault> {
    match (setup.rotates, &setup.volume, companion) {
        (true, ..) => database.rotator(server, setup).map(Some),
        (false, Some(asked), Some(companion)) => {
            asked.kind.rotator(&Layout::of(&server.folder), companion.clone()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Looks whether `experiment` can be measured where an arm rotates its key.
///
/// # Errors
/// The arm's name, and why not.
pub fn check(database: &dyn Database, experiment: &Experiment, workloads: &[Box<dyn Workload>]) -> Result<(), String> {
    for arm in &experiment.arms {
        let setup = setup(database, arm).map_err(|fault| fault.to_string())?;
        if !setup.changes_keys() {
            continue;
        }
        let refused = |why: String| Err(format!("arm {}: its key is rotated while it is measured, {why}", arm.name));
        if setup.rotates && setup.rotates_volume() {
            return refused("and so is that of its volume: what each costs is seen in arms of their own".to_owned());
        }
        if experiment.measure.design != Design::Interleaved {
            return refused("for which each arm needs slots of its own: say `design = \"interleaved\"`".to_owned());
        }
        let described: &[experiment::Workload] = &experiment.workloads;
        let program = workloads.iter().zip(described).find(|(workload, _)| workload.program().is_some());
        if let Some((_, described)) = program {
            let name = &described.name;
            return refused(format!("which is done under the load of Tithe's own clients, and not of workload {name}"));
        }
    }
    Ok(())
}
