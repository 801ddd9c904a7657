//! Replaces `team.rs` in a build without the feature `agents`: there are no agents, and an experiment that needs some
//! is refused.

use std::sync::atomic::AtomicBool;

use clap::Args;
use tithe_harness::agents::coordinator::Team;
use tithe_model::plan::Plan;
use tithe_plugin::product::Product;

use crate::exit::{self, Stop};

/// No agents.
#[derive(Args)]
pub struct TeamArgs {}

/// Never exists.
pub enum AgentRequest {}

impl AgentRequest {
    /// `None` if `plan` needs no agents.
    ///
    /// # Errors
    /// If it needs some.
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

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn gather<'a>(&'a self, _plan: &Plan, _cancelled: &'a AtomicBool) -> Result<Team<'a>, Stop> {
        match *self {}
    }
}

/// `None`: there are no agents.
///
/// # Errors
/// Never.
pub fn doctor(_arguments: &TeamArgs) -> Result<Option<String>, Stop> {
    Ok(None)
}
