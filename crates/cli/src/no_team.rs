//! In place of `team.rs` in a build without the feature `agents`: no agent can be asked, and an experiment that asks is
//! refused.

use std::sync::atomic::AtomicBool;

use clap::Args;
use tithe_harness::agents::coordinator::Team;
use tithe_model::plan::Plan;
use tithe_plugin::product::Product;

use crate::exit::{self, Stop};

/// No agents.
#[derive(Args)]
pub struct TeamArgs {}

/// Nobody.
pub enum AgentRequest {}

impl AgentRequest {
    /// Nobody, where `plan` asks for nobody.
    ///
    /// # Errors
    /// Where it does.
    pub fn of(_arguments: &TeamArgs, plan: &Plan, _database: &dyn Product) -> Result<Option<Self>, Stop> {
        let agents = plan.experiment.load.agents.map(|agents| format!("{agents} agents (`agents` in [load])"));
        let observed = plan.experiment.arms.iter().find_map(|arm| arm.observer.as_ref());
        match agents.or_else(|| observed.map(|observed| format!("the observer {}", observed.name))) {
            None => Ok(None),
            Some(asked) => Err(Stop::new(
                exit::USAGE,
                format!(
                    "the experiment asks for {asked}, and this build of tithe has none: build it with `--features \
                     agents`; nothing was started"
                ),
            )),
        }
    }

    /// Nobody waits.
    ///
    /// # Errors
    /// Never.
    pub fn gather<'a>(&'a self, _plan: &Plan, _cancelled: &'a AtomicBool) -> Result<Team<'a>, Stop> {
        match *self {}
    }
}

/// Nobody is anywhere.
///
/// # Errors
/// Never.
pub fn doctor(_arguments: &TeamArgs) -> Result<Option<String>, Stop> {
    Ok(None)
}
