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

#[cfg(test)]
mod tests {
    use tithe_machine::clock::CpuTimes;
    use tithe_model::{experiment::Design, histogram::Histogram};
    use tithe_plugin::{program::ProgramReport, simulated::test_bench::Bench};

    use super::{
        super::tests::{Idle, cell, context},
        *,
    };

    fn slice(transactions: u64, failed: u64) -> Slice {
        let mut latency = Histogram::default();
        latency.record(5);
        let reported = ProgramReport {
            transactions,
            failed,
            wall_ns: 2_000,
            latency_sum_ns: Some(900),
            latency,
            ..ProgramReport::default()
        };
        Slice { reported, cpu_times: CpuTimes { user_ns: 30, system_ns: 4 } }
    }

    #[test]
    fn a_slice_is_asked_for_by_its_block_and_recorded_as_the_program_reports_it() {
        let (bench, idle) = (Bench::plain(), Idle { writes: true });
        let at = |arrivals| context(&idle, &cell(Design::Slices, arrivals), &bench);
        let of = |arrivals| job(&at(arrivals), 7, 3, 1_500_000_000);
        let closed = of(Arrivals::Closed);
        assert_eq!((closed.clients, closed.rate, closed.seconds), (2, None, 2), "whole seconds");
        assert_eq!([of(Arrivals::Even(80.0)).rate, of(Arrivals::Poisson(90.0)).rate], [Some(80.0), Some(90.0)]);
        assert_eq!(u64::from(closed.seed), stream_seed(1, 7, 3, 0) >> 33);
        assert!(closed.seed < 1 << 31);
        let seen = slot(&at(Arrivals::Closed), (7, 3, 1), &slice(40, 1), &closed, 600);
        assert_eq!((seen.frame, seen.block, seen.arm, seen.lane), (7, 3, 1, 0));
        assert_eq!((seen.operations, seen.counted, seen.wall_ns, seen.latency_sum_ns), (40, 40, 2_000, 900));
        assert_eq!((seen.client_cpu_ns, seen.server_cpu_ns, seen.stalled_ns), (34, 600, None));

        let paced = Job { rate: Some(90.0), ..closed };
        let totals = ArmTotals { slices: vec![(slice(40, 1), paced), (slice(20, 2), closed)] };
        let record = totals.record("tx", Counters { server_cpu_ns: Some(5), ..Counters::default() });
        // Of 180 that were intended in two seconds, 41 were done.
        assert_eq!((record.operations, record.failed, record.unfinished), (60, 3, 139));
        assert_eq!((record.latency["tx"].total(), record.intended.len()), (2, 0));
        let Counters { server_cpu_ns, client_user_ns, client_system_ns, .. } = record.counters;
        assert_eq!((server_cpu_ns, client_user_ns, client_system_ns), (Some(5), Some(60), Some(8)));
    }
}
