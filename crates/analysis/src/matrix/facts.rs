//! Differences between hosts: facts shown with their costs. They are not known to be the cause.

use tithe_model::quantity;

use super::HostFigure;

/// Facts about `host` that may influence a cost, each with its name.
pub fn of(host: &HostFigure) -> Vec<(&'static str, String)> {
    let machine = &host.machine;
    vec![
        ("processor", machine.processor.clone()),
        ("processors", machine.processors.to_string()),
        ("instructions", machine.crypto_flags.join(" ")),
        ("kernel", machine.kernel.clone()),
        ("kernel's ciphers", machine.kernel_crypto.join(", ")),
        ("file system", machine.file_system.clone()),
        ("disk", if machine.storage.is_empty() { "unknown" } else { machine.storage.as_str() }.to_owned()),
        ("memory", quantity::memory(machine.memory_bytes)),
        ("system", machine.system.clone()),
        ("clock", machine.clock.clone()),
        ("virtualised", if machine.virtualised { "yes" } else { "no" }.to_owned()),
        ("stolen by the hypervisor", host.state.steal.map_or("unknown".to_owned(), share)),
        ("load", quantity::fixed(host.state.load, 1)),
    ]
}

/// The facts that differ between `hosts`, each with its value on every host, in their order.
pub fn differing(hosts: &[HostFigure]) -> Vec<(&'static str, Vec<String>)> {
    let facts: Vec<Vec<(&str, String)>> = hosts.iter().map(of).collect();
    let Some(first) = facts.first() else { return Vec::new() };
    let column = |place: usize| facts.iter().map(|of_host| of_host[place].1.clone()).collect::<Vec<String>>();
    let all = first.iter().enumerate().map(|(place, (name, _))| (*name, column(place)));
    all.filter(|(_, values)| values.iter().any(|value| *value != values[0])).collect()
}

fn share(share: f64) -> String {
    format!("{} %", quantity::fixed(100.0 * share, 1))
}
