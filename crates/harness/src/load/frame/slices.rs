//! One frame of a load that another program offers: each arm gets slices of the program, in the drawn order.
//!
//! A slice is one slot of the record, with one lane. Operations are the program's transactions; wall time and latencies
//! are those that it reports. The client's processor time is what the kernel accounts to the program when it ends, and
//! the server's is that of all its processes meanwhile. How long either side waited for a processor is unknown. The
//! servers of the other arms are paused meanwhile.

use std::sync::atomic::AtomicBool;

use tithe_machine::fault::Fault;
use tithe_model::{
    experiment::Arrivals,
    invalid::Invalid,
    record::{ArmFrame, Counters, Slot, Stalls},
    schedule::stream_seed,
};
use tithe_plugin::{
    program::{Job, Program},
    workspace::{Slice, Workspace},
};

use super::{
    context::CellContext,
    measured::{ArmMeasured, FrameRequest, Measured},
    process_tree::{ProcessTree, settled, trees},
    watch::Watch,
};
use crate::load::Schedule;

/// What one arm did in a frame.
#[derive(Default)]
struct ArmTotals {
    slices: Vec<(Slice, Job)>,
}

/// The program that offers the load, and where it works.
pub(super) struct Slices<'a> {
    pub program: &'a dyn Program,
    /// Where it works, by arm.
    pub workspaces: Vec<Workspace>,
}

impl Slices<'_> {
    /// One frame; `None` when it was cancelled.
    ///
    /// # Errors
    /// A program that fails, with its last words; output that cannot be read.
    pub fn measure(
        &self,
        context: &CellContext<'_>,
        watch: &Watch<'_>,
        asked: &FrameRequest<'_>,
    ) -> Result<Option<Measured>, Fault> {
        let schedule = Schedule::new(&context.cell, asked.number, context.arms.len(), 0);
        if asked.warmup_ns > 0 && !self.warm_up(context, &schedule, asked)? {
            return Ok(None);
        }
        let pause_gate = context.pause_gate()?;
        let before = watch.count(&pause_gate);
        let mut slots = Vec::new();
        let mut done: Vec<ArmTotals> = (0..context.arms.len()).map(|_| ArmTotals::default()).collect();
        for turn in schedule.turns(0) {
            let Some(block) = turn.block else { continue };
            let job = job(context, asked.number, block, context.cell.slot_ns);
            let _resumed = pause_gate.enter(turn.arm);
            let Some((slice, server_cpu_ns)) = self.slice(context, turn.arm, &job, asked.cancelled)? else {
                return Ok(None);
            };
            slots.push(slot(context, (asked.number, block, turn.arm), &slice, &job, server_cpu_ns));
            done[turn.arm].slices.push((slice, job));
        }
        let (mut counters, grown) = watch.grown_since(before, pause_gate);
        // The program's sessions have ended, and their counters and memory with them.
        counters.iter_mut().for_each(|of_arm| (of_arm.switches, of_arm.memory_bytes) = (None, None));
        let operation = context.workload.operations()[0];
        let measured = |((arm, done), counters): ((usize, ArmTotals), Counters)| {
            let record = done.record(operation, counters);
            let nothing = schedule.has(arm) && record.operations == 0;
            // Some programs have transactions that fail on purpose, or retry them: those that conflict on a few rows.
            let mostly = || (record.failed > record.operations).then_some("more transactions failed than succeeded");
            let why = nothing.then_some("no transaction succeeded").or_else(mostly);
            let invalid = why.map(|words| Invalid::Other(words.to_owned()));
            ArmMeasured { record, invalid, ..ArmMeasured::default() }
        };
        let arms = done.into_iter().enumerate().zip(counters).map(measured).collect();
        let stalls = Stalls::Unseen("another program's waits for a processor are not seen".to_owned());
        let (agents, invalid, invented_ns) = (Vec::new(), None, None);
        Ok(Some(Measured { slots, arms, stalls, agents, invalid, invented_ns, profile: None, grown }))
    }

    /// One slice on each arm that does not count; false when it was cancelled. All servers run afterwards.
    fn warm_up(&self, context: &CellContext<'_>, schedule: &Schedule, asked: &FrameRequest<'_>) -> Result<bool, Fault> {
        let pause_gate = context.pause_gate()?;
        pause_gate.close();
        for arm in (0..context.arms.len()).filter(|arm| schedule.has(*arm)) {
            let job = job(context, asked.number, u32::MAX, asked.warmup_ns);
            let _resumed = pause_gate.enter(arm);
            if self.workspaces[arm].run(self.program, &job, asked.cancelled)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One slice on `arm`, and the processor time of its server meanwhile, ns.
    fn slice(
        &self,
        context: &CellContext<'_>,
        arm: usize,
        job: &Job,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Slice, u64)>, Fault> {
        let process = context.arms[arm].server.process;
        let before = trees([process].into_iter());
        let Some(slice) = self.workspaces[arm].run(self.program, job, cancelled)? else { return Ok(None) };
        let used = |trees: &[Option<ProcessTree>]| trees[0].map_or(0, |tree| tree.usage.cpu_ns);
        Ok(Some((slice, used(&settled(&before)).saturating_sub(used(&before)))))
    }
}

fn job(context: &CellContext<'_>, frame: u32, block: u32, length_ns: u64) -> Job {
    let rate = match context.cell.arrivals {
        Arrivals::Closed | Arrivals::OfSaturation(_) => None,
        Arrivals::Even(rate) | Arrivals::Poisson(rate) => Some(rate),
    };
    // 31 bits: every program accepts that as a number.
    let seed = (stream_seed(context.cell.seed, frame.into(), block.into(), 0) >> 33) as u32;
    Job { clients: context.cell.clients, rate, seconds: length_ns.div_ceil(1_000_000_000), seed }
}

fn slot(
    context: &CellContext<'_>,
    (frame, block, arm): (u32, u32, usize),
    slice: &Slice,
    job: &Job,
    server_cpu_ns: u64,
) -> Slot {
    Slot {
        cell: context.cell_index,
        frame,
        block,
        lane: 0,
        arm: arm as u32,
        operations: slice.reported.transactions,
        counted: slice.reported.transactions,
        wall_ns: slice.reported.wall_ns,
        latency_sum_ns: slice.reported.latency_sum_ns(job),
        client_cpu_ns: slice.cpu_times.user_ns + slice.cpu_times.system_ns,
        server_cpu_ns,
        wait_ns: 0,
        stalled_ns: None,
    }
}

impl ArmTotals {
    fn record(&self, operation: &str, mut counters: Counters) -> ArmFrame {
        let mut frame = ArmFrame::default();
        for (Slice { reported, cpu_times }, job) in &self.slices {
            frame.operations += reported.transactions;
            frame.failed += reported.failed;
            frame.unfinished += reported.unfinished(job);
            for (into, from) in [(&mut frame.latency, &reported.latency), (&mut frame.intended, &reported.intended)] {
                if from.total() > 0 {
                    into.entry(operation.to_owned()).or_default().merge(from);
                }
            }
            *counters.client_user_ns.get_or_insert_default() += cpu_times.user_ns;
            *counters.client_system_ns.get_or_insert_default() += cpu_times.system_ns;
        }
        frame.counters = counters;
        frame
    }
}
