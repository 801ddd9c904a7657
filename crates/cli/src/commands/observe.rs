//! `tithe observe`: sees, on the machine of a running server, what cannot be seen from another one, for the runs of a
//! coordinator.

use tithe_harness::agents::observer::{self, ObserverConfig};
use tithe_machine::watch::host;

use crate::{
    ObserveArgs,
    commands::agent::own_name,
    exit::{self, Stop},
    interrupt, team,
};

/// Runs the command; returns the exit status.
pub fn observe(arguments: &ObserveArgs) -> Result<i32, Stop> {
    let cancelled = interrupt::listen();
    let machine = host::machine(&std::env::temp_dir());
    let name = own_name(arguments.name.as_deref())?;
    if let Some(path) = arguments.read.iter().find(|path| !path.is_absolute() || !path.exists()) {
        let words =
            format!("--read {}: it is not there, or its path is not absolute; nothing was started", path.display());
        return Err(Stop::new(exit::USAGE, words));
    }
    let config = ObserverConfig { name, ports: arguments.port.clone(), files: arguments.read.clone(), machine };
    let broker = team::connect(&arguments.join, &config.name, &arguments.access)?;
    crate::shown::showln!("{}", introduction(&config, &arguments.join));
    observer::serve(&broker, &config, cancelled, &mut |refused| crate::shown::telln!("tithe: refused: {refused}"))?;
    Ok(exit::OK)
}

/// Which observer joined which broker, and what it may read.
fn introduction(config: &ObserverConfig, broker: &str) -> String {
    let ports: Vec<String> = config.ports.iter().map(u16::to_string).collect();
    let files: Vec<String> = config.files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    format!("observer {} at {broker}; watches the servers on port {}, may read {files}", config.name, ports.join(", "))
}
