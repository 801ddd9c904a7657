//! `tithe agent`: offers the lanes of this machine to runs that another machine coordinates, and reports which runs use
//! it.
//!
//! Left out: starting agents on many machines is left to the user (docs/agents.md has an example of each way).

use tithe_harness::agents::agent::{self, AgentConfig, AgentEvent, AllowedTarget};
use tithe_machine::watch::{host, process};

use crate::{
    AgentArgs,
    exit::{self, Stop},
    interrupt, offer, team,
};

/// Names that have another meaning in subjects, so that no agent may have them.
const RESERVED: [&str; 3] = ["run", "observer", team::COORDINATOR];

/// Runs the command; returns the exit status.
pub fn agent(arguments: &AgentArgs) -> Result<i32, Stop> {
    let cancelled = interrupt::listen();
    let machine = host::machine(&std::env::temp_dir());
    let name = own_name(arguments.name.as_deref())?;
    let lanes = arguments.lanes.unwrap_or_else(|| process::processors().len() as u32);
    let config = AgentConfig { name, lanes, targets: arguments.target.clone(), products: offer::databases(), machine };
    let broker = team::connect(&arguments.join, &config.name, &arguments.access)?;
    crate::shown::showln!("{}", introduction(&config, &arguments.join));
    let mut frames = 0;
    agent::serve(&broker, &config, cancelled, &mut |told| match told {
        AgentEvent::Enlisted(run) => crate::shown::showln!("works for run {run}"),
        AgentEvent::Measured(number) => frames = number,
        AgentEvent::Free(why) => crate::shown::showln!("free after {} frames: {why}", std::mem::take(&mut frames)),
        AgentEvent::Warning(words) => crate::shown::telln!("tithe: {words}"),
    })?;
    Ok(exit::OK)
}

/// The name at the broker: the one that was `given`, or the machine's.
///
/// # Errors
/// If it is reserved.
pub fn own_name(given: Option<&str>) -> Result<String, Stop> {
    let name = given.map_or_else(host_name, str::to_owned);
    if RESERVED.contains(&name.as_str()) {
        let words = format!("--name {name} is reserved at the broker: choose another name; nothing was started");
        return Err(Stop::new(exit::USAGE, words));
    }
    Ok(name)
}

/// Which agent joined which broker, and what runs may ask of it.
fn introduction(config: &AgentConfig, broker: &str) -> String {
    let targets: Vec<String> = config.targets.iter().map(AllowedTarget::to_string).collect();
    let targets = if targets.is_empty() { "no server".to_owned() } else { targets.join(", ") };
    let lanes = if config.lanes == 1 { "1 lane".to_owned() } else { format!("{} lanes", config.lanes) };
    format!("agent {}: {lanes} at {broker}; may connect to {targets}", config.name)
}

/// The name of this machine, as a part of subjects: characters other than letters, digits and dashes become dashes.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.trim().chars().map(plain).take(64).collect();
    if name.is_empty() { "agent".to_owned() } else { name }
}
