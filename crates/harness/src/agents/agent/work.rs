//! What an agent does for one run: its plan, its folder, and the lanes of the cell that is measured.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use tithe_machine::{credentials::Credentials, fault::Fault, launch::Server, sandbox::Sandbox, secret::Secret};
use tithe_model::plan::{Cell, Plan};
use tithe_plugin::{product::Product, workload::Workload};

use super::{
    replica,
    target::{self, AllowedTarget},
};
use crate::{
    agents::message::{Enlistment, FrameOrder, Keys, Target, read},
    arms::{self, Resolved},
    load::frame::{
        CellRunner, StartedArm,
        machines::{LaneRange, PartResult, Serving},
    },
};

/// Lanes that a cell may have on one agent: a message that asks for more is a mistake.
const LANES_MAX: usize = 1024;

/// The orders that the worker gets.
pub(super) enum Ordered {
    Enlist(Box<Enlistment>),
    Measure(Box<FrameOrder>),
    Release,
}

/// The work for one run.
pub(super) struct Work {
    product: &'static dyn Product,
    plan: Plan,
    /// By the index of the experiment's workload, made when first asked for.
    workloads: BTreeMap<usize, Box<dyn Workload>>,
    /// Certificates and keys that the coordinator has sent. Removed together with it, or by the next start if this
    /// process is killed.
    sandbox: Sandbox,
    /// Frames so far.
    pub measured: u64,
}

impl Work {
    /// For the run of `enlistment`, with one of `products`.
    ///
    /// # Errors
    /// When its plan cannot be read, makes no sense or is not for this build; when no folder can be made.
    pub(super) fn new(products: &[&'static dyn Product], enlistment: &Enlistment) -> Result<Self, Fault> {
        let (plan, product) = planned(products, enlistment).map_err(Fault::Refused)?;
        let sandbox = Sandbox::new(&std::env::temp_dir())?;
        Ok(Self { product, plan, workloads: BTreeMap::new(), sandbox, measured: 0 })
    }

    /// Measures the part of a frame that is ordered, on servers that are `allowed`; `None` when it was `aborted` or
    /// `start` gave no time.
    ///
    /// # Errors
    /// When it cannot be measured, or asks for something that is not allowed.
    pub(super) fn measure(
        &mut self,
        allowed: &[AllowedTarget],
        order: FrameOrder,
        start: &mut dyn FnMut(Vec<Serving>) -> Option<u64>,
        aborted: &AtomicBool,
    ) -> Result<Option<PartResult>, Fault> {
        let FrameOrder { cell_index, lanes, frame, arms, keys, states, part, .. } = order;
        if !are_possible(lanes) {
            return Err(Fault::Refused(format!("{} lanes are not available", lanes.count)));
        }
        if !plans(&self.plan, cell_index as usize, &frame.cell) {
            return Err(unknown());
        }
        let credentials = credentials(self.sandbox.folder(), &keys)?;
        let mut arms = self.arms(allowed, &frame.cell, arms, &credentials)?;
        let workload = frame.cell.workload;
        self.make_workload(workload)?;
        let Some(workload) = self.workloads.get(&workload) else { return Err(unknown()) };
        if self.product.simulated() {
            for (number, arm) in arms.iter_mut().enumerate() {
                let (of, folder) =
                    ((&arm.setup, workload.as_ref()), self.sandbox.folder().join(format!("arm-{number}")));
                arm.server = replica::server(self.product, of, &folder, states.is_none())?;
            }
        }
        let runner = CellRunner::new(self.product, workload.as_ref(), &frame.cell, cell_index, true, arms);
        let mut runner = runner.as_part(lanes);
        for (number, state) in runner.states().into_iter().enumerate() {
            state.divide(part.0, part.1);
            states.iter().filter_map(|states| states.get(number)).for_each(|reached| state.go_on(reached));
        }
        let measured = runner.part(&frame, start, aborted)?;
        self.measured += u64::from(measured.is_some());
        Ok(measured)
    }

    fn make_workload(&mut self, number: usize) -> Result<(), Fault> {
        if !self.workloads.contains_key(&number) {
            let experiment = &self.plan.experiment;
            let described = experiment.workloads.get(number).ok_or_else(unknown)?;
            let made = tithe_workloads::make(described, &experiment.data, experiment.measure.seed);
            self.workloads.insert(number, made.map_err(Fault::Machine)?);
        }
        Ok(())
    }

    /// The arms, at the places that `targets` give.
    fn arms(
        &self,
        allowed: &[AllowedTarget],
        cell: &Cell,
        targets: Vec<Target>,
        credentials: &Credentials,
    ) -> Result<Vec<StartedArm>, Fault> {
        let described = arms::resolve(self.product, &self.plan.experiment)?;
        if described.len() != targets.len() || cell.resources >= self.plan.experiment.resources.len() {
            return Err(unknown());
        }
        let arm = |(resolved, target): (&Resolved<'_>, Target)| {
            let Target { at, space, data, column_key } = target;
            let address = target::address(self.product, at, allowed).map_err(Fault::Refused)?;
            let column_key = column_key.as_deref().and_then(Secret::of_hex);
            let mut setup = resolved.setup_with(&self.plan, cell, credentials, column_key);
            setup.space = space;
            let server = Server::at(address);
            let (on, off) = (resolved.arm.on.clone(), resolved.arm.off.clone());
            // Servers are checked by the coordinator.
            Ok(StartedArm { server, data, shares_server: false, setup, on, off })
        };
        described.iter().zip(targets).map(arm).collect()
    }
}

/// True if an agent can have `lanes`.
fn are_possible(lanes: LaneRange) -> bool {
    let is_part = lanes.first.checked_add(lanes.count).is_some_and(|end| end <= lanes.of);
    is_part && (1..=LANES_MAX).contains(&lanes.count)
}

/// True if `asked` is cell number `index` of `plan`. Ignored is what a run finds out: the length of slots, settling and
/// frames, the rate of arrivals, and when servers are restarted.
fn plans(plan: &Plan, index: usize, asked: &Cell) -> bool {
    let Some(planned) = plan.cells.get(index) else { return false };
    let Cell { slot_ns, settling_ns, blocks, arrivals, starts, .. } = *asked;
    let found = Cell { slot_ns, settling_ns, blocks, arrivals, starts, ..planned.clone() };
    let mut plan = plan.clone();
    plan.cells[index] = found;
    plan.cells[index] == *asked && plan.flaws().is_empty()
}

/// The plan of `enlistment` and which of `products` it is for.
fn planned(products: &[&'static dyn Product], enlistment: &Enlistment) -> Result<(Plan, &'static dyn Product), String> {
    let plan: Plan = read(enlistment.plan.as_bytes()).ok_or("its plan cannot be read")?;
    if let Some(flaw) = plan.flaws().first() {
        return Err(format!("its plan makes no sense: {flaw}"));
    }
    let id = &plan.experiment.database;
    let product = products.iter().copied().find(|product| product.id() == id);
    let product = product.ok_or_else(|| format!("this build of tithe has no database {id}"))?;
    if product.embedded() && !product.simulated() {
        return Err(format!("{} runs inside its clients: agents cannot offer its load", product.title()));
    }
    Ok((plan, product))
}

/// Why clients here cannot offer the load of `enlistment`, with one of `products` and servers that are `allowed`;
/// `None` if they can.
pub(super) fn obstacle(
    products: &[&'static dyn Product],
    allowed: &[AllowedTarget],
    enlistment: &Enlistment,
) -> Option<String> {
    match planned(products, enlistment) {
        Ok((_, product)) => enlistment.servers.iter().find_map(|server| target::reach(product, server, allowed).err()),
        Err(why) => Some(why),
    }
}

/// The error for an order that does not belong to this agent's plan.
fn unknown() -> Fault {
    Fault::Refused("a frame is not one of the plan that this agent was given".to_owned())
}

/// The credentials of clients. Certificates are written to files in `folder` that only this account can read.
fn credentials(folder: &Path, keys: &Keys) -> Result<Credentials, Fault> {
    let secret = |hex: &str| Secret::of_hex(hex).ok_or_else(unknown);
    let mut credentials = Credentials::without_files(secret(&keys.password)?, secret(&keys.key)?);
    credentials.second_key = secret(&keys.second_key)?;
    credentials.authority = pem(folder, "authority.pem", &keys.authority)?;
    credentials.client_certificate = pem(folder, "client.pem", &keys.client_certificate)?;
    credentials.client_key = pem(folder, "client.key", &keys.client_key)?;
    Ok(credentials)
}

/// The file of this `name` with this `text`; no path if there is no text.
fn pem(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Fault> {
    let path = folder.join(name);
    match text {
        "" => Ok(PathBuf::new()),
        text if fs::read_to_string(&path).is_ok_and(|there| there == text) => Ok(path),
        text => tithe_machine::sandbox::write(&path, text.as_bytes(), 0o600, None).map(|()| path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tithe_model::{
        experiment::{Arrivals, Design},
        plan::{Starts, WarmUp},
    };

    use super::*;
    use crate::agents::tests::plan;

    #[test]
    fn lanes_are_a_part_of_all_and_no_more_than_a_machine_can_have() {
        for (first, count, of, possible) in [
            (0, 1, 1, true),
            (1, 1, 2, true),
            (1, 1, 1, false),
            (0, 0, 1, false),
            (0, LANES_MAX, LANES_MAX, true),
            (0, LANES_MAX + 1, LANES_MAX + 1, false),
            (usize::MAX, 1, usize::MAX, false),
        ] {
            assert_eq!(are_possible(LaneRange { first, count, of }), possible, "{first} {count} {of}");
        }
    }

    #[test]
    fn a_cell_is_the_planned_one_except_for_what_a_run_finds_out() {
        let plan = plan("c");
        let is_planned = |change: &dyn Fn(&mut Cell)| {
            let mut asked = plan.cells[0].clone();
            change(&mut asked);
            plans(&plan, 0, &asked)
        };
        let found_out: [&dyn Fn(&mut Cell); 6] = [
            &|_| (),
            &|cell| cell.slot_ns += 1,
            &|cell| cell.settling_ns += 1,
            &|cell| cell.blocks += 1,
            &|cell| cell.arrivals = Arrivals::Poisson(100.0),
            &|cell| cell.starts = Starts::EveryFrame,
        ];
        assert_eq!(found_out.map(is_planned), [true; 6]);
        let others: [&dyn Fn(&mut Cell); 14] = [
            &|cell| cell.id.push('x'),
            &|cell| cell.clients += 1,
            &|cell| cell.seed ^= 1,
            &|cell| cell.warmup_ns += 1,
            &|cell| cell.frames_max += 1,
            &|cell| cell.epochs += 1,
            &|cell| cell.design = Design::Duet,
            &|cell| cell.after_start = WarmUp::Fixed { ns: 1 },
            &|cell| cell.pinned = !cell.pinned,
            &|cell| cell.free_frames += 1,
            &|cell| cell.program = true,
            &|cell| cell.gaps = true,
            &|cell| cell.reconnect_every = Some(5),
            // What makes no sense is refused, whatever a run finds out.
            &|cell| cell.slot_ns = 0,
        ];
        assert_eq!(others.map(is_planned), [false; 14]);
        assert!(!plans(&plan, 1, &plan.cells[0]), "there is one cell");
    }

    #[test]
    fn certificates_of_a_coordinator_are_files_for_this_account_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = |certificate: &str| Keys {
            password: "01".to_owned(),
            key: "02".to_owned(),
            second_key: "03".to_owned(),
            authority: "an authority".to_owned(),
            client_certificate: certificate.to_owned(),
            client_key: String::new(),
        };
        for certificate in ["one", "one", "another"] {
            let made = credentials(folder.path(), &keys(certificate)).expect("credentials");
            let secrets = [&made.password, &made.key, &made.second_key].map(Secret::expose_hex);
            assert_eq!(secrets, ["01", "02", "03"]);
            let text = |path: &Path| fs::read_to_string(path).expect("a text");
            assert_eq!(text(&made.authority), "an authority");
            assert_eq!(text(&made.client_certificate), certificate);
            let mode = fs::metadata(&made.client_certificate).expect("a file").permissions().mode();
            assert_eq!((mode & 0o777, made.client_key.as_path()), (0o600, Path::new("")));
        }
        let refused = |change: &dyn Fn(&mut Keys)| {
            let mut keys = keys("one");
            change(&mut keys);
            credentials(folder.path(), &keys).is_err()
        };
        assert!(refused(&|keys| keys.password = "no".to_owned()));
        assert!(refused(&|keys| keys.key = "no".to_owned()) && refused(&|keys| keys.second_key = "no".to_owned()));
    }
}
