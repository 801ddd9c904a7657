//! The lanes of Tithe's own clients, from frame to frame: their clients, and how they see the time that other programs
//! take.

use std::sync::Arc;

use tithe_machine::watch::stalls::{self, ProcessorAccounts};
use tithe_model::experiment::Arrivals;
use tithe_plugin::workload::{ArmState, Clients};

use super::{context::CellContext, growth::Growth, machines::LoadMachines, started_arm::StartedArm};

/// Why nothing is seen of a server whose threads serve any client; the second text is for threads that are in view.
pub(super) const NOBODY_ALONE: &str =
    "no process or thread of the server serves one client alone, as far as can be seen";
pub(super) const MANY_THREADS: &str =
    "no process or thread of the server serves one client alone, and all of them are counted";

/// Why the time that other programs take is not seen if nothing is pinned to a processor.
pub(super) const NOT_BOUND: &str = "clients and servers were not bound to processors";

/// Why the time that other programs take is not seen if lanes and servers are on different machines.
const ELSEWHERE: &str = "the tasks that serve clients are on another machine";

/// The lanes of a cell, from frame to frame.
pub(super) struct Lanes<'a> {
    pub clients: &'a dyn Clients,
    /// The machines that they are on; `None` if they are in this process.
    pub machines: Option<&'a dyn LoadMachines>,
    /// What the clients of each arm share.
    pub states: Vec<Arc<dyn ArmState>>,
    /// How long slots become.
    pub growth: Growth,
    /// Why it is unknown how much of a lane's slots other programs take, whatever the kernel offers; `None` if it is
    /// known.
    pub stalls_hidden: Option<&'static str>,
    /// A control group for each lane with the tasks that serve it; `None` if there can be none, or it would show
    /// nothing.
    pub groups: Option<stalls::Lanes>,
    /// What processors have run for all programs; `None` if that is unknown or means nothing.
    pub accounts: Option<ProcessorAccounts>,
}

impl<'a> Lanes<'a> {
    /// The lanes of `clients` at `context`. `slot_fixed`: the experiment sets the slot, so it is not adapted.
    pub fn new(clients: &'a dyn Clients, context: &CellContext<'_>, slot_fixed: bool) -> Self {
        let states = states(clients, &context.arms);
        let stalls_hidden = hides_stalls(context, || clients.client(&states[0]).pauses());
        let seen = stalls_hidden.is_none() && !context.time_is_virtual();
        // Without such groups in the kernel, waits show less, and each frame records which source was used. In a group
        // every wake-up of a client costs more: none is made for servers that cannot be in it.
        let ours = context.arms.iter().all(|arm| !arm.server.address.is_attached());
        let grouped = seen && ours && !context.embedded;
        let groups = grouped.then(|| stalls::Lanes::make(context.lanes()).ok()).flatten();
        let accounts = seen.then(ProcessorAccounts::find).flatten();
        let growth = Growth::new(&context.cell, context.arms.len(), slot_fixed);
        Self { clients, machines: None, states, growth, stalls_hidden, groups, accounts }
    }

    /// Has `machines` offer the load.
    pub fn offered_remotely(&mut self, machines: &'a dyn LoadMachines) {
        self.machines = Some(machines);
        self.servers_are_remote();
    }

    /// The tasks that serve the clients are on another machine, and are not seen here.
    pub fn servers_are_remote(&mut self) {
        (self.stalls_hidden, self.groups, self.accounts) = (Some(ELSEWHERE), None, None);
    }
}

/// The state of each arm's clients. Arms that share their data share their state.
pub(super) fn states(clients: &dyn Clients, arms: &[StartedArm]) -> Vec<Arc<dyn ArmState>> {
    let mut states: Vec<Arc<dyn ArmState>> = Vec::with_capacity(arms.len());
    for arm in arms {
        states.push(states.get(arm.data).map_or_else(|| clients.arm_state(), Arc::clone));
    }
    states
}

/// Why it is unknown how much of a lane's slots other programs take, whatever the kernel offers; `None` if it is known.
/// `paced` is true if clients pause.
fn hides_stalls(context: &CellContext<'_>, paced: impl FnOnce() -> bool) -> Option<&'static str> {
    let cell = &context.cell;
    match () {
        () if cell.arrivals != Arrivals::Closed => Some("operations start at scheduled times"),
        () if cell.reconnect_every.is_some() => Some("the task that serves a client changes with its connections"),
        () if context.rotates => Some("clients may wait for the rotation of a key"),
        () if !cell.pinned => Some(NOT_BOUND),
        () if paced() => Some("clients pause between operations"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Design;
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::tests::{Idle, cell, context},
        *,
    };

    #[test]
    fn net_time_is_unknown_where_clients_wait_for_something_else() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let hidden = |change: fn(&mut CellContext<'_>), paced: bool| {
            let mut at = context(&idle, &cell(Design::Interleaved, Arrivals::Closed), &bench);
            change(&mut at);
            hides_stalls(&at, || paced).unwrap_or_default()
        };
        assert_eq!(hidden(|_| (), false), "");
        assert_eq!(hidden(|_| (), true), "clients pause between operations");
        assert_eq!(hidden(|at| at.cell.pinned = false, false), NOT_BOUND);
        assert_eq!(hidden(|at| at.rotates = true, false), "clients may wait for the rotation of a key");
        let changes = "the task that serves a client changes with its connections";
        assert_eq!(hidden(|at| at.cell.reconnect_every = Some(9), false), changes);
        assert_eq!(hidden(|at| at.cell.arrivals = Arrivals::Even(9.0), false), "operations start at scheduled times");
    }
}
