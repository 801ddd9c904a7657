//! The data of one cell that count: its complete and valid frames with their slots.

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{
    ending::CellEnding,
    experiment::{Arm, Arrivals, Design, Metric},
    plan::{Cell, STARTS_MIN},
    record::{ArmFrame, Finding, Frame, Host, Phase, Slot, Stalls, WarmedUp},
    records::Records,
    start_spread::{self, CostSpread, StartSpread},
};
use tithe_statistics::{
    pairing::MIN_OPERATIONS,
    precision,
    starts::{IntervalOptions, KnownSpread},
};

use crate::{
    Estimate, Figure, Flag, counted,
    deciding::{self, EndsBy, SlotTotals},
};

/// A frame that counts.
pub(super) struct MeasuredFrame<'a> {
    pub record: &'a Frame,
    pub slots: Vec<Slot>,
}

/// The input of all figures of one cell.
pub(super) struct Measured<'a> {
    pub cell: &'a Cell,
    arms: &'a [Arm],
    pub frames: Vec<MeasuredFrame<'a>>,
    /// Frames in which no thread was bound to a processor.
    pub free: Vec<MeasuredFrame<'a>>,
    /// Frames that do not count, with the reason.
    pub invalid: Vec<(u32, String)>,
    /// All epochs of the cell's records.
    pub epochs: BTreeSet<u32>,
    /// Client threads.
    pub lanes: usize,
    /// What is known from its slots.
    pub seen: SlotTotals,
    /// The database runs inside the client: there is no network.
    pub embedded: bool,
    /// The cell was ended by its answers, so only confidence sequences are valid.
    pub by_decision: bool,
    /// The metric that the experiment asks to decide by.
    asked_metric: Metric,
    /// The known spread between starts.
    start_spread: &'a [StartSpread],
    /// The known start-to-start variation of the costs of protections.
    cost_spread: Option<&'a CostSpread>,
    /// Error of each interval.
    pub alpha: f64,
    /// The largest cost that counts as none, natural-log ratio.
    pub margin: f64,
    /// Requested half-width, natural-log ratio.
    pub precision: f64,
    /// Slot of the last frame, ns.
    pub slot_ns: u64,
    /// Settling time of the last frame, ns: at least the planned one.
    pub settling_ns: u64,
    /// Length of the last frame's slots, s: they may be longer than planned.
    pub frame_s: f64,
}

impl<'a> Measured<'a> {
    /// The cell with index `index` in the plan.
    pub fn new(records: &'a Records, index: usize) -> Self {
        let (cell, experiment) = (&records.plan.cells[index], &records.plan.experiment);
        let arms = experiment.arms.len();
        let (frames, invalid) = frames(records, index);
        let (frames, invalid) = of_pairs(pairs_that_count(records, index).as_ref(), frames, invalid);
        let (frames, invalid) = of_steady_starts(&counted::left_out(&warm_ups(records, index)), frames, invalid);
        let (free, frames): (Vec<_>, Vec<_>) = frames.into_iter().partition(|frame| frame.record.free);
        let slots = || frames.iter().flat_map(|frame| &frame.slots);
        let ended_by = |reason: CellEnding| records.cells[index].ending == Some(reason);
        let of_cell = |cell: u32| cell as usize == index;
        let frame_epochs = || records.frames.iter().filter(|frame| of_cell(frame.cell)).map(|frame| frame.epoch);
        let findings = || records.findings.iter().filter(|it| of_cell(it.cell));
        // An epoch that was given up during the checks before its first frame has no frames, so nothing has to be
        // proven for it.
        let has_frames = frame_epochs().next().is_some();
        let given_up = |it: &&Finding| it.phase == Phase::Before && has_frames;
        Self {
            lanes: deciding::lanes(slots()),
            seen: SlotTotals::of(frames.iter().map(|frame| frame.slots.as_slice())),
            // Traffic of another program is not counted, so it does not show whether there is a network. A driver that
            // does not report what it sends counts as embedded.
            embedded: !cell.program
                && frames.iter().flat_map(|frame| &frame.record.arms).all(|arm| arm.counters.sent_bytes.is_none()),
            // Every pair of sides is an epoch of its own, and counts completely or not at all.
            epochs: match cell.design.is_switched() {
                true => frames.iter().map(|frame| frame.record.epoch).collect(),
                false => frame_epochs().chain(findings().filter(|it| !given_up(it)).map(|it| it.epoch)).collect(),
            },
            asked_metric: experiment.measure.primary,
            start_spread: records.plan.spread_between_starts(records.cells[index].shares_starts),
            cost_spread: records.plan.cost_spread.as_ref(),
            alpha: deciding::alpha(
                arms.saturating_sub(1),
                EndsBy::of(experiment.measure.until_decided, records.cells[index].ending.as_ref()),
            ),
            margin: experiment.measure.margin,
            precision: experiment.measure.precision,
            frame_s: frames.last().map_or(cell.frame_ns(arms), |frame| cell.load_ns(frame.record, &frame.slots, arms))
                as f64
                / 1e9,
            arms: &experiment.arms,
            slot_ns: frames.last().map_or(cell.slot_ns, |frame| frame.record.slot_ns.max(cell.slot_ns)),
            settling_ns: frames.last().map_or(cell.settling_ns, |frame| frame.record.settling_ns.max(cell.settling_ns)),
            by_decision: ended_by(CellEnding::Decided),
            cell,
            frames,
            free,
            invalid,
        }
    }

    /// For each frame the number of its start of the servers.
    pub fn start_numbers(&self) -> impl Iterator<Item = u32> {
        self.frames.iter().map(|frame| frame.record.start)
    }

    /// Number of starts of the servers on which frames were measured.
    pub fn starts(&self) -> usize {
        self.start_numbers().collect::<BTreeSet<_>>().len()
    }

    /// Number of frames with a value for `estimate`, which may be smaller than the number that counts: a frame in which
    /// an arm has too few pairs of slots has no effect.
    pub fn frames_behind(&self, estimate: &Estimate) -> usize {
        match estimate.name {
            // Their values are groups of frames, ends of frames, and frames that are few on purpose.
            Figure::Percentile(_) | Figure::Size(_) | Figure::Free(_) => self.frames.len(),
            // Their values are pairs of sides, and frames of one arm.
            _ if self.cell.design.has_one_arm_a_frame() => self.frames.len(),
            _ => estimate.count,
        }
    }

    /// True if `estimate` has as many frames as an interval needs.
    pub fn has_enough_frames(&self, estimate: &Estimate) -> bool {
        self.frames_behind(estimate) >= precision::MIN_FRAMES
    }

    /// Options for the interval of a figure whose variation between starts is that of `metric`.
    pub fn asked(&self, metric: Metric) -> IntervalOptions {
        let known = KnownSpread::of_metric(self.start_spread, metric).map(|known| known.with_costs(self.cost_spread));
        IntervalOptions { alpha: self.alpha, by_decision: self.by_decision, known }
    }

    /// The experiment's arms.
    pub fn arms(&self) -> &'a [Arm] {
        self.arms
    }

    /// Total load time of all frames that count, s.
    pub fn load_s(&self) -> f64 {
        let load_ns = |frame: &MeasuredFrame<'_>| self.cell.load_ns(frame.record, &frame.slots, self.arms.len());
        self.frames.iter().map(load_ns).sum::<u64>() as f64 / 1e9
    }

    /// True if operations were offered at a fixed rate.
    pub fn open_loop(&self) -> bool {
        self.cell.arrivals != Arrivals::Closed
    }

    /// Why `asked` cannot decide, without the final full stop; `None` if it can.
    pub fn cannot_decide(&self, asked: Metric) -> Option<String> {
        let unseen = self.frames.iter().find_map(|frame| match &frame.record.stalls {
            Stalls::Unseen(reason) => Some(reason.as_str()),
            Stalls::Pressure | Stalls::Waits => None,
        });
        match asked {
            Metric::Net if !self.seen.neighbours() => {
                Some(format!("{}, so net time per op is unknown", unseen.unwrap_or("background load cannot be seen")))
            }
            Metric::Net if !self.seen.net() => Some(format!(
                "clients may have slept for up to {:.0} % of net time because background load held up other clients, so net \
                 time per op is unknown",
                100.0 * self.seen.slept_share()
            )),
            Metric::ServerCpu if !self.seen.server() => Some("the server's processes could not be seen".to_owned()),
            _ => None,
        }
    }

    /// There was a server, but its usage is unknown.
    pub fn server_unseen(&self) -> bool {
        !self.seen.server() && !self.embedded
    }

    /// The records of arm `arm`, by frame.
    pub fn arm(&self, arm: usize) -> impl Iterator<Item = &'a ArmFrame> {
        self.frames.iter().map(move |frame| &frame.record.arms[arm])
    }

    /// The records of the baseline and of arm `arm`, by frame.
    pub fn pairs(&self, arm: usize) -> impl Iterator<Item = (&'a ArmFrame, &'a ArmFrame)> {
        self.arm(0).zip(self.arm(arm))
    }

    /// Share of the lanes' wall time in which client or server waited for another program; if background load is
    /// unknown, for any program. NaN if even that tells nothing: several servers of a lane wait for each other on its
    /// processor, and their waits add up to more than its time.
    pub fn wait_share(&self) -> f64 {
        let share = self.share_of_wall(|_| true, |slot| slot.stalled_ns.unwrap_or(slot.wait_ns));
        let is_crowded = !self.embedded && self.cell.clients as usize > self.lanes;
        if share > 0.0 && is_crowded && !self.seen.neighbours() { f64::NAN } else { share }
    }

    /// Share of the wall time of arm `arm` in which the client ran.
    pub fn client_share(&self, arm: usize) -> f64 {
        self.share_of_wall(|slot| slot.arm as usize == arm, |slot| slot.client_cpu_ns)
    }

    /// Share of its intended operations that arm `arm` did not start or finish in time.
    pub fn unfinished_share(&self, arm: usize) -> f64 {
        let unfinished: u64 = self.arm(arm).map(|frame| frame.unfinished).sum();
        let intended: u64 = self.arm(arm).map(intended).sum();
        unfinished as f64 / intended.max(1) as f64
    }

    /// Mean over the frames of a state of the machine, as far as it is known.
    fn mean_of_host(&self, read: fn(&Host) -> Option<f64>) -> Option<f64> {
        let seen: Vec<f64> = self.frames.iter().filter_map(|frame| read(&frame.record.host)).collect();
        (!seen.is_empty()).then(|| tithe_statistics::mean(&seen))
    }

    /// Flags about the machine that apply to every figure that depends on time.
    pub fn disturbances(&self) -> Vec<Flag> {
        const THROTTLED: f64 = 0.01;
        const STOLEN: f64 = 0.02;
        let mut flags = Vec::new();
        if self.mean_of_host(|host| host.throttled).is_some_and(|share| share > THROTTLED) {
            flags.push(Flag::Throttled);
        }
        if self.mean_of_host(|host| host.steal).is_some_and(|share| share > STOLEN) {
            flags.push(Flag::Stolen);
        }
        flags
    }

    /// Warnings about all figures of this cell, without the final full stop.
    pub fn diagnostics(&self) -> Vec<String> {
        /// Short slots that a busy machine may have.
        const SHORT: f64 = 0.2;
        let mut diagnostics = Vec::new();
        let begun = !self.frames.is_empty() || !self.invalid.is_empty();
        if begun && self.frames.is_empty() {
            diagnostics.push("no frame can be used".to_owned());
        }
        diagnostics.extend(self.unread_slots().filter(|share| *share > SHORT).map(|share| {
            format!(
                "{:.0} % of the slots do not count, because what their servers used was not read in time",
                100.0 * share
            )
        }));
        let short = |slot: &Slot| slot.operations < MIN_OPERATIONS;
        if !self.frames.is_empty() && self.frames.iter().all(|frame| frame.slots.iter().all(short)) {
            diagnostics.push(format!("no slot holds {MIN_OPERATIONS} operations: make the slots longer (`slot`)"));
        } else if let Some((arm, share)) = self.short_slots(short).filter(|(_, share)| *share > SHORT) {
            diagnostics.push(format!(
                "{:.0} % of the slots of arm `{}` hold fewer than {MIN_OPERATIONS} operations and do not count: operations \
                 are long for slots of {:.0} ms: make the slots longer (`slot`)",
                100.0 * share,
                self.arms[arm].name,
                self.slot_ns as f64 / 1e6
            ));
        }
        for (index, arm) in self.arms.iter().enumerate() {
            let failed: u64 = self.arm(index).map(|frame| frame.failed).sum();
            let operations: u64 = self.arm(index).map(|frame| frame.operations).sum();
            if failed > 0 {
                let of = failed + operations;
                diagnostics.push(format!("{failed} of {of} operations of arm `{}` failed and are left out", arm.name));
            }
        }
        diagnostics.extend(self.few_starts());
        if self.cell.design == Design::Sequential {
            diagnostics.push(
                "the arms were measured one after the other: the intervals do not cover the drift of the machine"
                    .to_owned(),
            );
        }
        diagnostics
    }

    /// Share of the slots that are empty because their servers were not read in time; `None` without load machines.
    fn unread_slots(&self) -> Option<f64> {
        let of_agents = self.frames.iter().filter(|frame| !frame.record.agents.is_empty());
        let (mut unread, mut all) = (0, 0);
        for slot in of_agents.flat_map(|frame| &frame.slots) {
            all += 1;
            unread += usize::from(is_unread(slot));
        }
        (all > 0).then(|| unread as f64 / all as f64)
    }

    /// The arm that has most slots that are `short`, and their share.
    fn short_slots(&self, short: impl Fn(&Slot) -> bool) -> Option<(usize, f64)> {
        let share = |arm: usize| {
            let is_of_arm = |slot: &&Slot| slot.arm as usize == arm && !is_unread(slot);
            let of_arm = || self.frames.iter().flat_map(|frame| &frame.slots).filter(is_of_arm);
            of_arm().filter(|slot| short(slot)).count() as f64 / of_arm().count().max(1) as f64
        };
        (0..self.arms.len()).map(|arm| (arm, share(arm))).max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Printed where figures rest on too few starts to estimate how much starts differ.
    fn few_starts(&self) -> Option<String> {
        // Both sides are one server, or the intervals are not made of frames and starts.
        if self.cell.design.has_one_arm_a_frame() {
            return None;
        }
        let starts = self.starts();
        let known = start_spread::of_metric(self.start_spread, self.seen.deciding(self.asked_metric))?;
        // If each frame has a start of its own, frames show the variation.
        let shares_starts = starts == 1 || starts < self.frames.len();
        (shares_starts && (1..STARTS_MIN as usize).contains(&starts)).then(|| {
            let times = if starts == 1 { "once".to_owned() } else { format!("{starts} times") };
            let of_costs = |costs: &CostSpread| {
                format!(", and by {:.1} % of the cost ({})", 100.0 * costs.share, costs.source)
            };
            format!(
                "each server was started {times}, so start-to-start variation was not measured; intervals are widened by \
                 the known {:.1} % ({}){}",
                100.0 * known.spread,
                known.source,
                self.cost_spread.map(of_costs).unwrap_or_default()
            )
        })
    }

    fn share_of_wall(&self, which: impl Fn(&Slot) -> bool, part: impl Fn(&Slot) -> u64) -> f64 {
        let (mut parts, mut wall) = (0, 0);
        for slot in self.frames.iter().flat_map(|frame| &frame.slots).filter(|slot| which(slot)) {
            parts += part(slot);
            wall += slot.wall_ns;
        }
        parts as f64 / wall.max(1) as f64
    }
}

/// True for frames of the cell with this `index` that are whole, and of a start whose servers were steady or of a pair
/// of sides that counts.
pub(crate) fn counts_in(records: &Records, index: usize) -> impl Fn(&Frame) -> bool + use<> {
    let arms = records.plan.experiment.arms.len();
    let unsteady = counted::left_out(&warm_ups(records, index));
    let pairs = pairs_that_count(records, index);
    move |frame| {
        let is_whole = frame.is_used() && frame.arms.len() == arms;
        let is_of_pair = pairs.as_ref().is_none_or(|pairs| pairs.contains(&frame.start));
        frame.cell as usize == index && is_whole && is_of_pair && !unsteady.contains(&frame.start)
    }
}

/// The warm-ups of the starts of cell `index` on which frames were measured.
pub(super) fn warm_ups(records: &Records, index: usize) -> Vec<WarmedUp> {
    let frames = records.frames.iter().filter(|frame| frame.cell as usize == index);
    let warm_ups = records.cells.get(index).map_or(&[][..], |facts| facts.warm_ups.as_slice());
    counted::with_frames(warm_ups, frames.map(|frame| frame.start))
}

/// The frames whose start is not in `left_out`.
fn of_steady_starts<'a>(
    left_out: &BTreeSet<u32>,
    frames: Vec<MeasuredFrame<'a>>,
    invalid: Vec<(u32, String)>,
) -> (Vec<MeasuredFrame<'a>>, Vec<(u32, String)>) {
    let is_steady = |frame: &MeasuredFrame<'_>| !left_out.contains(&frame.record.start);
    kept((frames, invalid), is_steady, "its servers were not steady yet")
}

/// For a server that its provider switches: the pairs of cell `index` whose two sides are both complete. Frames of
/// others do not count. `None` for any other server.
fn pairs_that_count(records: &Records, index: usize) -> Option<BTreeSet<u32>> {
    let cell = records.plan.cells.get(index).filter(|cell| cell.design.is_switched())?;
    let arms = records.plan.experiment.arms.len();
    let frames = records.frames_of(index);
    let has = |pair: u32, arm: usize| {
        let mut used = frames.iter().filter(|frame| frame.is_used() && frame.arms.len() == arms);
        used.any(|frame| frame.start == pair && frame.arms[arm].operations > 0)
    };
    let mut pairs = cell.whole_pairs(frames);
    pairs.retain(|pair| has(*pair, 0) && has(*pair, 1));
    Some(pairs)
}

/// The frames whose start is one of `pairs`, if there are some.
fn of_pairs<'a>(
    pairs: Option<&BTreeSet<u32>>,
    frames: Vec<MeasuredFrame<'a>>,
    invalid: Vec<(u32, String)>,
) -> (Vec<MeasuredFrame<'a>>, Vec<(u32, String)>) {
    let is_of_them = |frame: &MeasuredFrame<'_>| pairs.is_none_or(|pairs| pairs.contains(&frame.record.start));
    kept((frames, invalid), is_of_them, "the other side of its pair was not measured to its end")
}

/// The frames for which `keeps` is true; all others are added to the invalid ones with this reason.
fn kept<'a>(
    (frames, mut invalid): (Vec<MeasuredFrame<'a>>, Vec<(u32, String)>),
    keeps: impl Fn(&MeasuredFrame<'a>) -> bool,
    why: &str,
) -> (Vec<MeasuredFrame<'a>>, Vec<(u32, String)>) {
    let (frames, others): (Vec<_>, Vec<_>) = frames.into_iter().partition(keeps);
    invalid.extend(others.iter().map(|frame| (frame.record.frame, why.to_owned())));
    invalid.sort_by_key(|(number, _)| *number);
    (frames, invalid)
}

/// True for a slot whose block was left out because servers on other machines were not read in time: nothing of it is
/// kept. A client that was too late for its slot has used processor time in it.
fn is_unread(slot: &Slot) -> bool {
    (slot.operations, slot.wall_ns, slot.client_cpu_ns) == (0, 0, 0)
}

/// Number of intended operations of an arm in a frame.
pub(super) fn intended(frame: &ArmFrame) -> u64 {
    frame.operations + frame.failed + frame.unfinished
}

/// The frames of a cell that count, and the others with the reason.
fn frames(records: &Records, index: usize) -> (Vec<MeasuredFrame<'_>>, Vec<(u32, String)>) {
    let arms = records.plan.experiment.arms.len();
    let mut by_number = BTreeMap::new();
    for record in records.frames.iter().filter(|frame| frame.cell as usize == index) {
        by_number.insert(record.frame, MeasuredFrame { record, slots: Vec::new() });
    }
    let begin = records.slots.partition_point(|slot| (slot.cell as usize) < index);
    for slot in records.slots[begin..].iter().take_while(|slot| slot.cell as usize == index) {
        if let Some(frame) = by_number.get_mut(&slot.frame) {
            frame.slots.push(*slot);
        }
    }
    let (mut frames, mut invalid, mut next) = (Vec::with_capacity(by_number.len()), Vec::new(), 0);
    let of_pair = records.plan.cells[index].frames_a_side().saturating_mul(2);
    for (number, frame) in by_number {
        match number - next {
            0 => {}
            // A resumed run does not continue a pair of sides that was cut short, and begins the next one.
            gap if gap < of_pair && number.is_multiple_of(of_pair) => {}
            1 => invalid.push((next, "its record is missing".to_owned())),
            // One line in total and not one per frame: a damaged number must not produce billions of lines.
            gap => invalid.push((next, format!("the records of {gap} frames from here on are missing"))),
        }
        next = number.saturating_add(1);
        if let Some(reason) = &frame.record.invalid {
            invalid.push((number, reason.to_string()));
        } else if frame.record.arms.len() != arms {
            invalid.push((number, format!("its record has {} arms and not {arms}", frame.record.arms.len())));
        } else {
            frames.push(frame);
        }
    }
    (frames, invalid)
}
