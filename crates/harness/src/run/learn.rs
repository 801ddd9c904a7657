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
            let words = "agents cannot read what a server has counted: leave `agents` out";
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

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Url;
    use tithe_plugin::{
        production::{Learns, Production},
        session::Table,
        simulated::Simulated,
        workload::Load,
    };

    use super::*;

    /// A workload that learns, or does not.
    struct Learning(bool);

    impl Workload for Learning {
        fn offered_by(&self) -> Load<'_> {
            panic!("nothing is offered")
        }

        fn operations(&self) -> Vec<&str> {
            Vec::new()
        }

        fn writes(&self) -> bool {
            false
        }

        fn table(&self) -> Table {
            Table::of_canaries()
        }

        fn learns(&self) -> Option<&dyn Learns> {
            self.0.then_some(self as &dyn Learns)
        }

        fn describe(&self) -> Vec<(String, String)> {
            Vec::new()
        }
    }

    impl Learns for Learning {
        fn learn(&self, _production: &mut dyn Production) -> Result<(), Fault> {
            Ok(())
        }
    }

    const EXPERIMENT: &str = "title = \"t\"\ndatabase = \"simulated\"\ndata.records = 1000\n\
        [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n\
        [[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

    /// Why a workload that `learns` cannot learn from the first arm at `url`, if `agents` offer the load.
    fn told(learns: bool, url: Option<&str>, agents: Option<u32>) -> Result<(), String> {
        let mut experiment = crate::catalogue::tests::read(EXPERIMENT);
        experiment.load.agents = agents;
        experiment.arms[0].url = url.map(Url::new);
        experiment.workloads[0].name = "learnt".to_owned();
        learn(&Simulated, &experiment, &[Box::new(Learning(learns))])
    }

    #[test]
    fn a_workload_that_learns_needs_a_running_server_with_tables_and_no_agents() {
        let url = Some("simulated://db");
        assert_eq!([told(false, url, Some(2)), told(false, None, None)], [Ok(()), Ok(())], "there is nothing to learn");
        let agents = "workload learnt: refused: agents cannot read what a server has counted: leave `agents` out";
        assert_eq!([told(true, url, Some(2)), told(true, None, Some(2))], [(); 2].map(|()| Err(agents.to_owned())));
        assert_eq!(told(true, None, None), Ok(()), "no server runs yet");
        let tables = "workload learnt: refused: simulated database runs no workload on SQL tables";
        assert_eq!(told(true, url, None), Err(tables.to_owned()));
    }
}
