//! Keys that are changed while an arm is measured.
//!
//! Encrypting data anew is background work: it goes on for as long as it takes, whoever is measured meanwhile. So that it
//! burdens the arm that it belongs to and no other, the servers of such a cell run in their own slots only
//! ([`Turnstile`](crate::load::turnstile::Turnstile)).

use tithe_model::experiment::{self, Arm, Design, Experiment};

use crate::{
    database::Database,
    fault::Fault,
    protection::{self, Setup},
    workload::Workload,
};

/// Encrypts the data of one server with another key, on a connection of its own.
pub trait Rotator: Send {
    /// Changes the key once; the data are encrypted with the new one, and none with the old one, when this returns. Clients
    /// go on meanwhile.
    ///
    /// # Errors
    /// The server's error: a key that was not changed is never passed over.
    fn rotate(&mut self) -> Result<(), Fault>;
}

/// True when `arm` of `database` rotates its key while it is measured.
///
/// # Errors
/// When the database does not have one of its protections.
pub fn asked(database: &dyn Database, arm: &Arm) -> Result<bool, Fault> {
    let mut setup = Setup::bare();
    for chosen in &arm.protections {
        protection::named(database, &chosen.id)?.apply(chosen, &mut setup);
    }
    Ok(setup.rotates)
}

/// Looks whether `experiment` can be measured where an arm rotates its key.
///
/// # Errors
/// The arm's name, and why not.
pub fn check(database: &dyn Database, experiment: &Experiment, workloads: &[Box<dyn Workload>]) -> Result<(), String> {
    for arm in &experiment.arms {
        if !asked(database, arm).map_err(|fault| fault.to_string())? {
            continue;
        }
        let refused = |why: String| Err(format!("arm {}: its key is rotated while it is measured, {why}", arm.name));
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
