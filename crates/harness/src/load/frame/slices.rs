//! One frame of a load that another program offers: each arm is given slices of the program, in the drawn order.
//!
//! A slice is one slot of the record, of one lane: operations are the program's transactions, wall time and latencies
//! are those that it says, the client's processor time is what the kernel accounts to the program when it ends, and the
//! server's is that of all its processes meanwhile. How long either end waited for a processor is not seen. The servers
//! of the other arms stand still meanwhile.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    proc::{Census, TreeUsage},
};
use tithe_model::{
    experiment::Arrivals,
    record::{ArmFrame, Counters, Slot, Stalls},
    schedule::stream_seed,
};
use tithe_plugin::{
    desk::{Desk, Slice},
    program::{Job, Program},
};

use super::{ArmMeasured, Asked, Measured, site::Site, watch::Watch};
use crate::load::Schedule;

/// How long a server may take to be rid of what served connections that are closed.
const REST: Duration = Duration::from_millis(500);

/// What one arm did in a frame.
#[derive(Default)]
struct Done {
    slices: Vec<(Slice, Job)>,
}

/// What offers the load, and where.
pub(super) struct Slices<'a> {
    pub program: &'a dyn Program,
    /// Where it works, by arm.
    pub desks: Vec<Desk>,
}

impl Slices<'_> {
    /// One frame; `None` when it was cancelled.
    ///
    /// # Errors
    /// A program that fails, with its last words; output that cannot be read.
    pub fn measure(&self, site: &Site<'_>, watch: &Watch<'_>, asked: &Asked<'_>) -> Result<Option<Measured>, Fault> {
        let schedule = Schedule::new(&site.cell, asked.number, site.arms.len(), 0);
        if asked.warmup_ns > 0 && !self.warm_up(site, &schedule, asked)? {
            return Ok(None);
        }
        let turnstile = site.turnstile()?;
        let before = watch.count(&turnstile);
        let mut slots = Vec::new();
        let mut done: Vec<Done> = (0..site.arms.len()).map(|_| Done::default()).collect();
        for turn in schedule.turns(0) {
            let Some(block) = turn.block else { continue };
            let job = job(site, asked.number, block, site.cell.slot_ns);
            let _stay = turnstile.enter(turn.arm);
            let Some((slice, server_cpu_ns)) = self.slice(site, turn.arm, &job, asked.cancelled)? else {
                return Ok(None);
            };
            slots.push(slot(site, (asked.number, block, turn.arm), &slice, &job, server_cpu_ns));
            done[turn.arm].slices.push((slice, job));
        }
        let (counters, grown) = watch.grown_since(before, turnstile);
        let operation = site.workload.operations()[0];
        let measured = |((arm, done), counters): ((usize, Done), Counters)| {
            let record = done.record(operation, counters);
            let nothing = schedule.has(arm) && record.operations == 0;
            let spoiled = nothing.then(|| "no transaction succeeded".to_owned());
            ArmMeasured { record, warmed_up: 0, profiles: Vec::new(), spoiled }
        };
        let arms = done.into_iter().enumerate().zip(counters).map(measured).collect();
        let stalls = Stalls::Unseen("another program's waits for a processor are not seen".to_owned());
        Ok(Some(Measured { slots, arms, stalls, grown }))
    }

    /// One slice on each arm that does not count; false when it was cancelled. All servers run afterwards.
    fn warm_up(&self, site: &Site<'_>, schedule: &Schedule, asked: &Asked<'_>) -> Result<bool, Fault> {
        let turnstile = site.turnstile()?;
        turnstile.close();
        for arm in (0..site.arms.len()).filter(|arm| schedule.has(*arm)) {
            let job = job(site, asked.number, u32::MAX, asked.warmup_ns);
            let _stay = turnstile.enter(arm);
            if self.desks[arm].run(self.program, &job, asked.cancelled)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One slice on `arm`, and the processor time of its server meanwhile, ns.
    fn slice(
        &self,
        site: &Site<'_>,
        arm: usize,
        job: &Job,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Slice, u64)>, Fault> {
        let process = site.arms[arm].server.process;
        let before = process.map(usage);
        let Some(slice) = self.desks[arm].run(self.program, job, cancelled)? else { return Ok(None) };
        let cpu_ns = process
            .zip(before)
            .map(|(process, before)| at_rest(process, before.1).cpu_ns.saturating_sub(before.0.cpu_ns));
        Ok(Some((slice, cpu_ns.unwrap_or(0))))
    }
}

fn job(site: &Site<'_>, frame: u32, block: u32, length_ns: u64) -> Job {
    let rate = match site.cell.arrivals {
        Arrivals::Closed | Arrivals::OfSaturation(_) => None,
        Arrivals::Even(rate) | Arrivals::Poisson(rate) => Some(rate),
    };
    // 31 bits: what every program takes as a number.
    let seed = (stream_seed(site.cell.seed, frame.into(), block.into(), 0) >> 33) as u32;
    Job { clients: site.cell.clients, rate, seconds: length_ns.div_ceil(1_000_000_000), seed }
}

fn slot(site: &Site<'_>, (frame, block, arm): (u32, u32, usize), slice: &Slice, job: &Job, server_cpu_ns: u64) -> Slot {
    Slot {
        cell: site.cell_index,
        frame,
        block,
        client: 0,
        arm: arm as u32,
        n: slice.told.transactions,
        n_g: slice.told.transactions,
        wall_ns: slice.told.wall_ns,
        wall_g_ns: slice.told.latency_sum_ns(job),
        client_cpu_ns: slice.modes.user_ns + slice.modes.system_ns,
        server_cpu_ns,
        wait_ns: 0,
        stalled_ns: None,
    }
}

impl Done {
    fn record(&self, operation: &str, mut counters: Counters) -> ArmFrame {
        let mut frame = ArmFrame::default();
        for (Slice { told, modes }, job) in &self.slices {
            frame.operations += told.transactions;
            frame.failed += told.failed;
            frame.undrained += told.undrained(job);
            for (into, from) in [(&mut frame.latency, &told.latency), (&mut frame.intended, &told.intended)] {
                if from.total() > 0 {
                    into.entry(operation.to_owned()).or_default().merge(from);
                }
            }
            *counters.client_user_ns.get_or_insert_default() += modes.user_ns;
            *counters.client_system_ns.get_or_insert_default() += modes.system_ns;
        }
        frame.counters = counters;
        frame
    }
}

/// What `process` with its descendants has used, and how many they are.
fn usage(process: i32) -> (TreeUsage, usize) {
    let census = Census::take();
    (census.usage(process), census.tree(process).len())
}

/// The same once there are no more than `members` of them: a process that served a connection ends a moment after it,
/// and until its parent has taken note its time may be counted nowhere.
fn at_rest(process: i32, members: usize) -> TreeUsage {
    let deadline = Instant::now() + REST;
    loop {
        let (used, now) = usage(process);
        if now <= members || Instant::now() > deadline {
            return used;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
