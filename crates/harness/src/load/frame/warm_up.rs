//! Load after a start that does not count, until the servers of all arms are steady.
//!
//! It is offered in short frames like those that count: on fresh connections, with all arms in turn in the drawn order.
//! So the steady state is the one that is measured. Each of these *windows* gives two figures for each arm: operations
//! per second of processor time, and bytes of log per operation. From their course [`steady`](tithe_model::steady)
//! decides when the warm-up is long enough. Further starts of the same servers on the same data follow the same course.
//! Once the warm-ups so far show how many windows are needed, the next ones have that length.

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use tithe_machine::fault::Fault;
use tithe_model::{
    plan::Cell,
    record::{Slot, Steadied, WarmedUp},
    steady::{self, Change, Steadiness, WINDOWS_TELL},
};

use super::{CellRunner, measured::Measured};

/// Load on fresh connections before a window, ns: clients prepare their statements in it.
const CONNECTED_NS: u64 = 20_000_000;

/// Windows that one start may have, so that those of the next one draw other keys.
const WINDOWS_MAX: u32 = 10_000;

/// Windows that every warm-up has, at least: the very first one connects.
const WINDOWS_MIN: u32 = 2;

/// Windows of one warm-up that may be invalid. After that, the frames have the same reason, and end the cell if it
/// stays.
const INVALID_MAX: u32 = 3;

impl CellRunner<'_> {
    /// Warms up all arms after start number `start` with windows of `window_ns` for each arm, until they are steady or
    /// `at_most_ns` have passed. `told` gets the duration so far after each window, ns. `None` when it was `cancelled`.
    ///
    /// # Errors
    /// As [`CellRunner::frame`].
    pub fn warm_up(
        &mut self,
        start: u32,
        (window_ns, at_most_ns): (u64, u64),
        cancelled: &AtomicBool,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<WarmedUp>, Fault> {
        let measured_cell = self.context.cell.clone();
        shorten(&mut self.context.cell, window_ns);
        let outcome = self.windows(start, at_most_ns, cancelled, told);
        self.context.cell = measured_cell;
        outcome
    }

    fn windows(
        &mut self,
        start: u32,
        at_most_ns: u64,
        cancelled: &AtomicBool,
        told: &mut dyn FnMut(u64),
    ) -> Result<Option<WarmedUp>, Fault> {
        let warmup_ns = CONNECTED_NS.min(self.context.cell.warmup_ns);
        let mut course = Course::of(self.context.arms.len());
        let enough = self.warmed_up.enough();
        // A length that is known to be enough is offered in one piece: each further window would connect again.
        let windows_each = enough.unwrap_or(1);
        self.context.cell.blocks = self.context.cell.blocks.saturating_mul(windows_each);
        let (mut duration_ns, mut invalid) = (0, 0);
        for window in 0..WINDOWS_MAX {
            // No frame that counts has this number, so none draws the same keys and orders.
            let number = u32::MAX - start.wrapping_mul(WINDOWS_MAX).wrapping_add(window);
            let Some((_, measured)) = self.measure(number, (false, false), warmup_ns, cancelled)? else {
                return Ok(None);
            };
            duration_ns += measured.grown.duration_ns;
            if measured.invalid.is_some() {
                invalid += 1;
                if invalid == INVALID_MAX {
                    break;
                }
                continue;
            }
            course.add(&measured, windows_each);
            for (arm, done) in measured.arms.iter().zip(&mut self.done) {
                *done += arm.warmed_up + arm.record.all_operations();
            }
            told(duration_ns);
            if enough.is_some() {
                return Ok(Some(course.ended_as_before(start, duration_ns)));
            }
            let is_over = course.windows as usize >= WINDOWS_TELL && duration_ns >= at_most_ns;
            if course.steadiness() == Steadiness::Steady || is_over {
                break;
            }
        }
        let ended = course.ended(start, duration_ns);
        self.warmed_up.add(&course);
        Ok(Some(ended))
    }
}

/// The warm-ups of a cell's servers that lasted until the servers were steady, or until their limit.
///
/// The comparison of arms is measured, and a course that all arms share does not change it. So what further starts need
/// is taken from each arm's quantities relative to the plain arm's.
#[derive(Default)]
pub(super) struct WarmedUpBefore {
    /// Each arm's values divided by the plain arm's in each warm-up, by quantity.
    relative: BTreeMap<Steadied, Vec<Vec<f64>>>,
}

impl WarmedUpBefore {
    fn add(&mut self, course: &Course) {
        for quantity in [Steadied::Operations, Steadied::Log] {
            let of_quantity = |series: &&Series| series.quantity == quantity && !series.values.is_empty();
            let mut arms = course.series.iter().filter(of_quantity);
            let Some(plain) = arms.next().filter(|plain| plain.arm == 0) else { continue };
            let whole = arms.filter(|arm| arm.values.len() == plain.values.len());
            let over_plain =
                |arm: &Series| arm.values.iter().zip(&plain.values).map(|(arm, plain)| arm / plain).collect();
            self.relative.entry(quantity).or_default().extend(whole.map(over_plain));
        }
    }

    /// Windows that are enough for both quantities; `None` if that is unknown.
    fn enough(&self) -> Option<u32> {
        let each = self.relative.values().map(|warm_ups| steady::enough(warm_ups));
        each.collect::<Option<Vec<usize>>>()?.into_iter().max().map(|windows| (windows as u32).max(WINDOWS_MIN))
    }
}

/// Makes the frames of `cell` as short as one window.
fn shorten(cell: &mut Cell, window_ns: u64) {
    cell.blocks = window_ns.div_ceil(cell.slot_ns.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
}

/// The results of all windows so far: a series for each quantity of each arm.
struct Course {
    windows: u32,
    series: Vec<Series>,
}

/// One quantity of one arm, one value per window.
struct Series {
    quantity: Steadied,
    arm: usize,
    values: Vec<f64>,
}

impl Course {
    fn of(arms: usize) -> Self {
        let of_arm =
            |arm| [Steadied::Operations, Steadied::Log].map(|quantity| Series { quantity, arm, values: Vec::new() });
        Self { windows: 0, series: (0..arms).flat_map(of_arm).collect() }
    }

    /// Adds the result of the next measurement, which is as long as this number of windows.
    fn add(&mut self, window: &Measured, windows: u32) {
        self.windows += windows;
        for series in &mut self.series {
            let value = match series.quantity {
                Steadied::Operations => operations_per_cpu_s(&window.slots, series.arm),
                Steadied::Log => log_per_operation(window, series.arm),
            };
            // Values without a logarithm are skipped: no operation succeeded, no processor time was seen, or nothing
            // was logged.
            series.values.extend(value.filter(|value| *value > 0.0 && value.is_finite()));
        }
    }

    /// The series that is furthest from being steady. A quantity that no window has is ignored.
    fn worst(&self) -> Option<(Steadiness, f64, &Series)> {
        let seen = self.series.iter().filter(|series| !series.values.is_empty());
        let judged = seen.map(|series| match Change::of(&series.values) {
            Some(change) => (change.steadiness(), change.estimate, series),
            None => (Steadiness::Unclear, 0.0, series),
        });
        judged.max_by(|one, other| one.0.cmp(&other.0).then(one.1.abs().total_cmp(&other.1.abs())))
    }

    fn steadiness(&self) -> Steadiness {
        self.worst().map_or(Steadiness::Unclear, |(steadiness, ..)| steadiness)
    }

    /// The record of a warm-up that had the length which earlier ones have shown to be enough.
    fn ended_as_before(&self, start: u32, duration_ns: u64) -> WarmedUp {
        let ended = self.ended(start, duration_ns);
        WarmedUp { ended: Steadiness::Steady, change: 0.0, as_before: true, ..ended }
    }

    /// The record of a warm-up that ended now.
    fn ended(&self, start: u32, duration_ns: u64) -> WarmedUp {
        let worst = self.worst();
        let (quantity, arm) = worst.map_or((Steadied::Operations, 0), |(.., series)| (series.quantity, series.arm));
        WarmedUp {
            start,
            duration_ns,
            windows: self.windows,
            ended: self.steadiness(),
            quantity,
            arm: arm as u32,
            change: worst.map_or(0.0, |(_, change, _)| change),
            as_before: false,
        }
    }
}

/// Operations per second of the processor time of client and server on `arm`.
fn operations_per_cpu_s(slots: &[Slot], arm: usize) -> Option<f64> {
    let of_arm = || slots.iter().filter(|slot| slot.arm as usize == arm);
    let operations: u64 = of_arm().map(|slot| slot.operations).sum();
    let cpu_ns: u64 = of_arm().map(|slot| slot.client_cpu_ns + slot.server_cpu_ns).sum();
    (cpu_ns > 0).then(|| operations as f64 / (cpu_ns as f64 / 1e9))
}

/// Bytes of log per operation on `arm`; `None` if the log cannot be seen.
fn log_per_operation(window: &Measured, arm: usize) -> Option<f64> {
    let record = &window.arms[arm].record;
    Some(record.counters.wal_bytes? as f64 / record.all_operations() as f64)
}

#[cfg(test)]
mod tests {
    use tithe_model::{
        experiment::{Arrivals, Design},
        record::{ArmFrame, Counters, Host, Stalls},
    };

    use super::{
        super::{measured::ArmMeasured, tests::cell, watch::FrameConditions},
        Steadied::{Log, Operations},
        *,
    };

    /// Operations, processor time of client and server, ns, and bytes of log of one arm in a window.
    type OfArm = (u64, u64, u64, Option<u64>);

    fn window(arms: &[OfArm]) -> Measured {
        let slot = |(arm, it): (u32, &OfArm)| {
            let (operations, client_cpu_ns, server_cpu_ns, _) = *it;
            Slot { arm, operations, client_cpu_ns, server_cpu_ns, ..Slot::default() }
        };
        let measured = |it: &OfArm| {
            let counters = Counters { wal_bytes: it.3, ..Counters::default() };
            let record = ArmFrame { operations: it.0, counters, ..ArmFrame::default() };
            ArmMeasured { record, ..ArmMeasured::default() }
        };
        Measured {
            slots: (0..).zip(arms).map(slot).collect(),
            arms: arms.iter().map(measured).collect(),
            stalls: Stalls::default(),
            agents: Vec::new(),
            invalid: None,
            invented_ns: None,
            profile: None,
            grown: FrameConditions {
                host: Host::default(),
                duration_ns: 1,
                not_paused: None,
                observer_lost: None,
                clock_fault: None,
            },
        }
    }

    fn course(series: Vec<(usize, Steadied, Vec<f64>)>) -> Course {
        let of = |(arm, quantity, values)| Series { quantity, arm, values };
        Course { windows: 12, series: series.into_iter().map(of).collect() }
    }

    /// A value for each window, from the number of the window.
    fn values(of: impl Fn(i32) -> f64) -> Vec<f64> {
        (0..WINDOWS_TELL as i32).map(of).collect()
    }

    #[test]
    fn a_window_is_operations_per_processor_second_and_log_per_operation() {
        let mut course = Course::of(2);
        course.add(&window(&[(100, 40_000_000, 60_000_000, None), (300, 100_000_000, 200_000_000, Some(900))]), 1);
        // Nothing that has a logarithm.
        course.add(&window(&[(0, 0, 0, None), (0, 5, 5, Some(0))]), 3);
        let told: Vec<_> = course.series.iter().map(|it| (it.arm, it.quantity, it.values.clone())).collect();
        let expected =
            [(0, Operations, vec![1000.0]), (0, Log, vec![]), (1, Operations, vec![1000.0]), (1, Log, vec![3.0])];
        assert_eq!(told, expected);
        assert_eq!(course.windows, 4);
        assert_eq!(operations_per_cpu_s(&window(&[(9, 0, 0, None)]).slots, 0), None);
    }

    #[test]
    fn a_warm_up_is_as_steady_as_what_changes_most() {
        let flat = || values(|it| 100.0 + 0.01 * f64::from(it % 2));
        let falling = |each: f64| values(|it| 100.0 * each.powi(it));
        let told = |course: &Course| {
            let ended = course.ended(7, 9);
            assert_eq!((ended.start, ended.duration_ns, ended.windows, ended.as_before), (7, 9, 12, false));
            (ended.ended, ended.arm, ended.quantity, ended.change)
        };
        let (steadiness, ..) = told(&course(vec![(0, Operations, flat()), (1, Log, flat()), (1, Operations, vec![])]));
        assert_eq!(steadiness, Steadiness::Steady);
        let most = [(0, Operations, falling(0.9)), (1, Log, falling(0.7)), (2, Log, flat())];
        let (steadiness, arm, quantity, change) = told(&course(most.to_vec()));
        assert_eq!((steadiness, arm, quantity), (Steadiness::Changing, 1, Log));
        assert!(change < -0.5, "{change}");
        assert_eq!(told(&course(vec![])), (Steadiness::Unclear, 0, Operations, 0.0));
        assert_eq!(told(&course(vec![(1, Log, vec![1.0; 3])])), (Steadiness::Unclear, 1, Log, 0.0));
        let before = course(most.to_vec()).ended_as_before(7, 9);
        assert_eq!((before.ended, before.change, before.as_before), (Steadiness::Steady, 0.0, true));
        assert_eq!((before.start, before.duration_ns, before.arm), (7, 9, 1));
    }

    #[test]
    fn later_warm_ups_are_as_long_as_arms_differ_in_their_course() {
        let shared = |times: f64| values(|it| times * (100.0 + f64::from(it)));
        let enough = |series: Vec<(usize, Steadied, Vec<f64>)>| {
            let mut before = WarmedUpBefore::default();
            before.add(&course(series));
            before.enough()
        };
        assert_eq!(WarmedUpBefore::default().enough(), None);
        let nothing_logged = [(0, Log, vec![]), (1, Log, vec![])];
        let alike = [(0, Operations, shared(1.0)), (1, Operations, shared(2.0))].into_iter().chain(nothing_logged);
        assert_eq!(enough(alike.collect()), Some(WINDOWS_MIN), "the course of both is the same");
        assert_eq!(enough(vec![(1, Operations, shared(1.0)), (2, Operations, shared(2.0))]), None, "no plain arm");
        let cut = shared(2.0)[1..].to_vec();
        assert_eq!(enough(vec![(0, Operations, shared(1.0)), (1, Operations, cut)]), None);
        let one_logs = vec![(0, Operations, shared(1.0)), (1, Operations, shared(2.0)), (1, Log, shared(1.0))];
        assert_eq!(enough(one_logs), Some(WINDOWS_MIN), "the plain arm logs nothing");
    }

    #[test]
    fn a_window_is_at_least_one_block() {
        let blocks = |window_ns: u64| {
            let mut cell = cell(Design::Interleaved, Arrivals::Closed);
            shorten(&mut cell, window_ns);
            cell.blocks
        };
        assert_eq!([0, 1, 20_000_000, 20_000_001, 50_000_000].map(blocks), [1, 1, 1, 2, 3]);
    }
}
