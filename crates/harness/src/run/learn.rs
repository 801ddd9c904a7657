//! Workloads that learn their operations from a running server, before anything is planned or started.

use tithe_machine::fault::Fault;
use tithe_model::experiment::Experiment;
use tithe_plugin::{database::sql_of, product::Product, workload::Workload};

use super::sharing;
use crate::arms;

/// Lets those of `workloads` that learn from a server learn from that of the first arm of `experiment`.
///
/// # Errors
/// The workload's name, and all obstacles.
pub fn learn(product: &dyn Product, experiment: &Experiment, workloads: &[Box<dyn Workload>]) -> Result<(), String> {
    for (workload, described) in workloads.iter().zip(&experiment.workloads) {
        let Some(learns) = workload.learns() else { continue };
        let of_workload = |fault: Fault| format!("workload {}: {fault}", described.name);
        if experiment.load.agents.is_some() {
            let words = "load machines ask no server what the load is: leave `agents` out";
            return Err(of_workload(Fault::Refused(words.to_owned())));
        }
        let resolved = arms::resolve(product, experiment).map_err(of_workload)?;
        let plain = resolved.first().and_then(|resolved| Some((resolved, resolved.arm.url.as_ref()?)));
        let Some((resolved, url)) = plain else { continue };
        let own = sql_of(product).map_err(of_workload)?.own_tables();
        let own = own.ok_or_else(|| of_workload(tithe_plugin::data::no_own_tables(product)))?;
        let production = own.production(&sharing::at(url), &resolved.bare_setup());
        production.and_then(|mut production| learns.learn(production.as_mut())).map_err(of_workload)?;
    }
    Ok(())
}
