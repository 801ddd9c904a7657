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

use tithe_model::{
    experiment::Arrivals,
    record::{ArmFrame, Counters, Frame, Slot, Stalls},
    schedule::stream_seed,
};

use super::{Rig, Schedule, Site, unix_ns};
use crate::{
    fault::Fault,
    proc::{Census, TreeUsage},
    program::{Job, Program},
    watch::host::HostSample,
    workloads::program::desk::Slice,
};

/// How long a server may take to be rid of what served connections that are closed.
const REST: Duration = Duration::from_millis(500);

/// What one arm did in a frame.
#[derive(Default)]
struct Done {
    slices: Vec<(Slice, Job)>,
}

impl Rig<'_> {
    /// Frame `number` of `program`'s load, after `warmup_ns` of it on each arm; `None` when `cancelled` ended it.
    pub(super) fn sliced(
        &mut self,
        program: &dyn Program,
        (number, epoch): (u32, u32),
        warmup_ns: u64,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Frame, Vec<Slot>)>, Fault> {
        let site = &self.site;
        let arms = site.arms.len();
        let schedule = Schedule::new(&site.cell, number, arms, 0);
        let around = HostSample::take();
        let began = Instant::now();
        let start_unix_ns = unix_ns();
        if warmup_ns > 0 {
            let turnstile = site.turnstile()?;
            turnstile.close();
            for arm in (0..arms).filter(|arm| schedule.has(*arm)) {
                let job = site.job(number, u32::MAX, warmup_ns);
                let _stay = turnstile.enter(arm);
                if site.desks[arm].run(program, &job, cancelled)?.is_none() {
                    return Ok(None);
                }
            }
        }
        let (before, host) = (site.look(), HostSample::take());
        let turnstile = site.turnstile()?;
        turnstile.close();
        let mut slots = Vec::new();
        let mut done: Vec<Done> = (0..arms).map(|_| Done::default()).collect();
        for turn in schedule.turns(0) {
            let Some(block) = turn.block else { continue };
            let job = site.job(number, block, site.cell.slot_ns);
            let _stay = turnstile.enter(turn.arm);
            let Some((slice, server_cpu_ns)) = site.slice(program, turn.arm, &job, cancelled)? else {
                return Ok(None);
            };
            slots.push(site.slot((number, block, turn.arm), &slice, &job, server_cpu_ns));
            done[turn.arm].slices.push((slice, job));
        }
        let not_stopped = turnstile.open();
        let (after, host) = (site.look(), host.until_now());
        let mut frame = Frame {
            cell: site.cell_index,
            frame: number,
            epoch,
            start_unix_ns,
            duration_ns: began.elapsed().as_nanos() as u64,
            spoiled: around.clock_fault().or(not_stopped),
            free: false,
            slot_ns: site.cell.slot_ns,
            guard_ns: 0,
            stalls: Stalls::Unseen(site.hides_stalls().unwrap_or_default().to_owned()),
            arms: Vec::new(),
            host,
        };
        for (arm, done) in done.iter().enumerate() {
            let counters = before[arm].grown(&after[arm]);
            let mut record = done.record(site.workload.operations()[0], counters);
            record.operations_before = self.done[arm];
            self.done[arm] += record.operations;
            if record.operations == 0 && schedule.has(arm) {
                frame.spoiled.get_or_insert(format!("arm {arm}: no transaction succeeded"));
            }
            frame.arms.push(record);
        }
        slots.sort_by_key(|slot| (slot.block, slot.client, slot.arm));
        self.check_processors(&mut frame);
        Ok(Some((frame, slots)))
    }
}

impl Site<'_> {
    fn job(&self, frame: u32, block: u32, length_ns: u64) -> Job {
        let rate = match self.cell.arrivals {
            Arrivals::Closed | Arrivals::OfSaturation(_) => None,
            Arrivals::Even(rate) | Arrivals::Poisson(rate) => Some(rate),
        };
        // 31 bits: what every program takes as a number.
        let seed = (stream_seed(self.cell.seed, frame.into(), block.into(), 0) >> 33) as u32;
        Job { clients: self.cell.clients, rate, seconds: length_ns.div_ceil(1_000_000_000), seed }
    }

    /// One slice on `arm`, and the processor time of its server meanwhile, ns.
    fn slice(
        &self,
        program: &dyn Program,
        arm: usize,
        job: &Job,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Slice, u64)>, Fault> {
        let process = self.arms[arm].server.process;
        let before = process.map(usage);
        let Some(slice) = self.desks[arm].run(program, job, cancelled)? else { return Ok(None) };
        let cpu_ns = process
            .zip(before)
            .map(|(process, before)| at_rest(process, before.1).cpu_ns.saturating_sub(before.0.cpu_ns));
        Ok(Some((slice, cpu_ns.unwrap_or(0))))
    }

    fn slot(&self, (frame, block, arm): (u32, u32, usize), slice: &Slice, job: &Job, server_cpu_ns: u64) -> Slot {
        Slot {
            cell: self.cell_index,
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
