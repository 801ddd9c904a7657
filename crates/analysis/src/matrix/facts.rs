//! In what hosts differ: facts that stand beside their costs. Which of them is the cause, if any is, nobody has
//! measured.

use tithe_model::quantity;

use super::HostFigure;

/// What is known of `host` that may move a cost, each fact with its name.
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

/// The facts in which `hosts` differ, each with its value on every one of them, in their order.
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
