//! Live: is a cell measured precisely enough, and how much longer would it take?
//!
//! [`Live`] takes the slots of each complete frame as they come, keeps the frame's effects only, and can be
//! asked after every frame. What it shows after any frame is an estimate for display; that it is *enough* it
//! says only at the frame counts of [`precision::looks`], from 15 frames on, or, where frames share starts, when as
//! many have begun as are planned, eight at most; and by the width of the intervals alone. While frames are added the
//! intervals are those that the analysis of a cell ended by precision gives; once the cell has ended, [`Live::ended`]
//! gives the intervals of the analysis itself.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use tithe_model::{
    ending::CellEnding,
    experiment::{Design, Metric},
    plan::{Cell, Plan, STARTS_MIN, STARTS_USUAL, Starts},
    record::Slot,
    start_spread::{CostSpread, StartSpread},
};
use tithe_statistics::{
    allocation,
    inference::{Inference, sidak},
    pairing::{fewest_pairs, frame_effect, frame_spent},
    precision::{self, STOPPING_FACTOR},
    sides::{SideFrame, pair_effects},
    starts::{IntervalOptions, KnownSpread, OverStarts, StartEffect, infer_over_starts},
    verdict::outcome,
};

use crate::{CONFIDENCE, Interval, Outcome};

/// How the moment at which a cell ends is chosen. A smaller error pays for choosing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndsBy {
    /// By its budget: nothing that was measured is checked.
    Budget,
    /// By the width of its intervals.
    Width,
    /// By its answers, or, where they do not come, by its budget. Half of the error is for the answers on the way,
    /// which stand on confidence sequences, and half for the intervals at the end (Bonferroni).
    Answers,
}

impl EndsBy {
    /// Of a cell that answers were waited for in, or that has ended for the reason `ending`.
    pub fn of(until_decided: bool, ending: Option<&CellEnding>) -> Self {
        match ending {
            _ if until_decided => Self::Answers,
            Some(CellEnding::Precision) => Self::Width,
            _ => Self::Budget,
        }
    }

    /// What is left of the error.
    fn share(self) -> f64 {
        match self {
            Self::Budget => 1.0,
            Self::Width => STOPPING_FACTOR,
            Self::Answers => 0.5,
        }
    }
}

/// The error of each arm's interval, so that all `protected` arms together are right with [`CONFIDENCE`] in a cell that
/// `ends_by` this.
pub fn alpha(protected: usize, ends_by: EndsBy) -> f64 {
    sidak(ends_by.share() * (1.0 - CONFIDENCE), protected)
}

/// How many lanes (client threads) there are in `slots`.
pub fn lanes<'a>(slots: impl IntoIterator<Item = &'a Slot>) -> usize {
    slots.into_iter().map(|slot| slot.lane).collect::<BTreeSet<_>>().len()
}

/// Of net time, the largest part that clients may have slept through because other programs held up others.
const SLEPT_MOST: f64 = 0.1;

/// What the slots of a cell can tell, frame by frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlotTotals {
    /// Some slot says what other programs took of it.
    neighbours: bool,
    /// Some slot has processor time of the server.
    server: bool,
    /// Net time of the slots, ns.
    net_ns: u64,
    /// Of that, the most that clients slept because another program had the processor of another lane, ns.
    slept_ns: u64,
}

impl SlotTotals {
    /// What `frames` can tell, each the slots of one frame.
    pub fn of<'a>(frames: impl IntoIterator<Item = &'a [Slot]>) -> Self {
        let mut seen = Self::default();
        frames.into_iter().for_each(|slots| seen.push(slots));
        seen
    }

    /// Takes the slots of one more frame.
    pub fn push(&mut self, slots: &[Slot]) {
        self.neighbours |= slots.iter().any(|slot| slot.stalled_ns.is_some());
        self.server |= slots.iter().any(|slot| slot.server_cpu_ns > 0);
        // Slots of which nobody saw the background load have no net time that clients could have slept through.
        let told = || slots.iter().filter_map(|slot| Some((slot, slot.stalled_ns?)));
        let mut stalled_together: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (slot, stalled_ns) in told() {
            *stalled_together.entry((slot.block, slot.arm)).or_default() += stalled_ns;
        }
        for (slot, stalled_ns) in told() {
            let net = slot.wall_ns.saturating_sub(stalled_ns);
            let asleep = net.saturating_sub(slot.client_cpu_ns + slot.server_cpu_ns);
            self.net_ns += net;
            self.slept_ns += asleep.min(stalled_together[&(slot.block, slot.arm)] - stalled_ns);
        }
    }

    /// True when the processor time of the server is seen.
    pub fn server(&self) -> bool {
        self.server
    }

    /// True when net time can be told: slots say what other programs took of them, and clients cannot have slept for
    /// long because another program had the processor of another lane. A client that waits for a lock whose holder is
    /// kept from its processor sleeps, as far as anybody can see, so that its lane's own slots do not say whose doing
    /// it is.
    pub fn net(&self) -> bool {
        self.neighbours && self.slept_share() <= SLEPT_MOST
    }

    /// True when slots say what other programs took of them.
    pub fn neighbours(&self) -> bool {
        self.neighbours
    }

    /// The largest share of net time that clients can have slept because another program had the processor of another
    /// lane.
    pub fn slept_share(&self) -> f64 {
        self.slept_ns as f64 / self.net_ns.max(1) as f64
    }

    /// The metric that decides where `asked` was asked for.
    ///
    /// Net time gives way to the processor time where it is unknown, and so does the server's processor time where
    /// the server cannot be seen.
    pub fn deciding(&self, asked: Metric) -> Metric {
        match asked {
            Metric::Net if !self.net() => Metric::Cpu,
            Metric::ServerCpu if !self.server => Metric::Cpu,
            asked => asked,
        }
    }

    /// True when `metric` can be told.
    pub fn tells(&self, metric: Metric) -> bool {
        self.deciding(metric) == metric
    }
}

/// What is known after the frames so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// True at a look at which every protected arm has reached the precision.
    pub enough: bool,
    /// Index of the arm with the widest interval; 0 before anything is known.
    pub widest: usize,
    /// The deciding metric of each protected arm (arm 1 first): natural-log ratio against the baseline.
    pub arms: Vec<Interval>,
    /// Seconds of measured load until the widest arm is precise enough; 0 when it is, `None` when it is unknown.
    pub more_s: Option<f64>,
    /// Half-width that the widest arm would have after the last frame that the budget buys; `None` where there is no
    /// width.
    pub bought: Option<f64>,
    /// Starts that the cell's load is best divided among, those so far included; `None` to leave the plan as it is.
    pub starts: Option<u32>,
    /// Seconds that restarting will still take at most, beside the load; 0 before it is known how long that takes.
    pub starting_s: f64,
}

/// The frame effects of one cell, as they come.
#[derive(Debug, Clone)]
pub struct Live {
    asked: Metric,
    precision: f64,
    margin: f64,
    until_decided: bool,
    cell: Cell,
    /// Cells of the run, over which answers hold together.
    cells: usize,
    /// Index of the A/A arm among the protected ones.
    aa: Option<usize>,
    frame_s: f64,
    /// How long restarting took the last time, s; `None` before it was seen.
    start_s: Option<f64>,
    /// How long the first servers of the cell were warmed up, s; `None` where they were not.
    first_s: Option<f64>,
    /// How long restarts have taken so far, s.
    starting_s: f64,
    /// Starts that were begun, the first of the cell aside.
    started: u32,
    /// The experiment asks for a number of starts.
    starts_asked: bool,
    seen: SlotTotals,
    frames: usize,
    /// What is known of the spread between starts.
    start_spread: Vec<StartSpread>,
    /// What is known of how much protections differ from start to start.
    cost_spread: Option<CostSpread>,
    /// Of each protected arm, in the metric that was asked for and in processor time, which decides where that cannot.
    by_metric: [Vec<Vec<StartEffect>>; 2],
    /// Of a server that its provider switches, what operations cost in each frame: in the same metrics.
    sides: [Vec<SideFrame>; 2],
    /// Of such a server, the pair of sides that is measured.
    pair: u32,
}

impl Live {
    /// Nothing seen yet of cell `number` of `plan`.
    pub fn new(plan: &Plan, number: usize) -> Self {
        let (cell, measure, arms) = (&plan.cells[number], &plan.experiment.measure, plan.experiment.arms.len());
        Self {
            asked: measure.primary,
            precision: measure.precision,
            margin: measure.margin,
            until_decided: measure.until_decided,
            cell: cell.clone(),
            cells: plan.cells.len(),
            aa: plan.experiment.arms.iter().skip(1).position(|arm| arm.aa),
            frame_s: cell.frame_ns(arms) as f64 / 1e9,
            start_s: None,
            first_s: None,
            starting_s: 0.0,
            started: 0,
            starts_asked: measure.starts.is_some(),
            seen: SlotTotals::default(),
            frames: 0,
            start_spread: plan.spread_between_starts(false).to_vec(),
            cost_spread: plan.cost_spread.clone(),
            by_metric: std::array::from_fn(|_| vec![Vec::new(); arms.saturating_sub(1)]),
            sides: [Vec::new(), Vec::new()],
            pair: 0,
        }
    }

    /// Says that arms share start-to-start variation, for which `plan` knows another spread.
    pub fn starts_shared(&mut self, plan: &Plan) {
        self.start_spread = plan.spread_between_starts(true).to_vec();
    }

    /// Takes the slots of one complete frame that is not invalid, measured on the start of this number.
    pub fn push(&mut self, start: u32, slots: &[Slot]) {
        let pairs = fewest_pairs(slots, lanes(slots));
        self.seen.push(slots);
        self.frames += 1;
        if self.cell.design.is_switched() {
            return self.push_side(start, slots);
        }
        for (effects, metric) in self.by_metric.iter_mut().zip([self.asked, Metric::Cpu]) {
            for (arm, effects) in (1..).zip(effects) {
                effects.extend(frame_effect(slots, 0, arm, metric, pairs).map(|effect| StartEffect { start, effect }));
            }
        }
    }

    /// Takes the slots of one frame of a side of `pair`.
    fn push_side(&mut self, pair: u32, slots: &[Slot]) {
        self.pair = pair;
        for (frames, metric) in self.sides.iter_mut().zip([self.asked, Metric::Cpu]) {
            let cost = |arm: u32| Some((arm, frame_spent(slots, arm, metric)?.per_operation() / 1e3));
            let costs = [0, 1].into_iter().filter_map(cost).filter(|(_, cost)| cost.is_finite() && *cost > 0.0);
            frames.extend(costs.map(|(arm, cost)| SideFrame { pair, arm, cost }));
        }
    }

    /// The effects of each protected arm in the metric that decides. A pair of sides is a value when they have all
    /// their frames, or `is_over`.
    fn effects(&self, is_over: bool) -> Cow<'_, [Vec<StartEffect>]> {
        let metric = usize::from(self.seen.deciding(self.asked) != self.asked);
        let Design::Switched { frames_a_side } = self.cell.design else { return (&self.by_metric[metric]).into() };
        let frames = || self.sides[metric].iter().copied();
        let of_last = frames().filter(|frame| frame.pair == self.pair).count();
        let is_whole = is_over || of_last >= 2 * frames_a_side as usize;
        vec![pair_effects(frames().filter(|frame| is_whole || frame.pair < self.pair))].into()
    }

    /// What `effects` of one arm say with an error of `alpha`.
    fn infer(&self, effects: &[StartEffect], alpha: f64, by_decision: bool) -> OverStarts {
        infer_over_starts(effects, self.asking(alpha, by_decision))
    }

    /// Says how long frames are now, s, and how many the budget buys at that length, those so far included.
    pub fn expect(&mut self, frame_s: f64, frames_max: u32) {
        (self.frame_s, self.cell.frames_max) = (frame_s, frames_max);
    }

    /// Says how long restarting took, with all that comes before a frame counts, s.
    pub fn started_anew(&mut self, took_s: f64) {
        self.starting_s += took_s;
        self.started += 1;
        self.start_s = Some(took_s);
    }

    /// Says for how long servers have been warmed up since they were started, s.
    pub fn warming_up(&mut self, done_s: f64) {
        if self.started == 0 {
            self.first_s = Some(done_s);
        }
    }

    /// Frames taken so far.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The metric that decides; `None` before the first frame.
    pub fn metric(&self) -> Option<Metric> {
        (self.frames > 0).then(|| self.seen.deciding(self.asked))
    }

    /// The deciding metric of each protected arm now that the cell has ended for `reason`: the figures of the report.
    /// `None` where the frames are too few for an interval; where they are too few for one arm, its ends are infinite.
    pub fn ended(&self, reason: &CellEnding) -> Option<Vec<Interval>> {
        // A pair whose last frame does not count is whole all the same, unless somebody or something ended it.
        let effects = self.effects(!matches!(reason, CellEnding::Interrupted | CellEnding::Failed(_)));
        let alpha = alpha(effects.len(), EndsBy::of(self.until_decided, Some(reason)));
        let of = |effects: &Vec<StartEffect>| {
            let interval = self.infer(effects, alpha, *reason == CellEnding::Decided).inference.interval;
            // Of a server that its provider switches an effect is a pair of sides.
            match effects.len() < precision::MIN_FRAMES && !self.cell.design.is_switched() {
                true => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, ..interval },
                false => interval,
            }
        };
        (self.frames >= precision::MIN_FRAMES).then(|| effects.iter().map(of).collect())
    }

    /// How the interval of the deciding metric is asked for.
    fn asking(&self, alpha: f64, by_decision: bool) -> IntervalOptions {
        let known = KnownSpread::of_metric(&self.start_spread, self.seen.deciding(self.asked));
        let known = known.map(|known| known.with_costs(self.cost_spread.as_ref()));
        // One server is both sides.
        IntervalOptions { alpha, by_decision, known: known.filter(|_| !self.cell.design.is_switched()) }
    }

    /// May the width end the cell now? Looked at so seldom that looking costs little: at a list of frame counts where
    /// each has its start or all have one, else after any start from the usual number on.
    fn is_look(&self, starts: usize) -> bool {
        match self.cell.planned_starts() {
            None | Some(0..=1) => precision::may_stop_at(self.frames),
            Some(planned) => starts >= planned.min(STARTS_USUAL) as usize,
        }
    }

    /// Are all answers certain, as the report will judge them: over all cells of the run, and a saving against the A/A
    /// arm? `alpha` is the error of each arm of this cell alone. Not before there are as many starts as tell their own
    /// spread, where that many are planned: what is known of starts from elsewhere holds for one look.
    fn is_decided(&self, effects: &[Vec<StartEffect>], starts: usize, alpha: f64) -> bool {
        if self.cell.planned_starts().is_some_and(|planned| starts < planned.min(STARTS_MIN) as usize) {
            return false;
        }
        let alpha = sidak(alpha, self.cells);
        let interval = |effects: &Vec<StartEffect>| self.infer(effects, alpha, true).inference.interval;
        let arms: Vec<Interval> = effects.iter().map(interval).collect();
        let control = self.aa.and_then(|aa| arms.get(aa));
        let decided = |(arm, interval): (usize, &Interval)| match outcome(*interval, self.margin) {
            Outcome::TooNoisy => false,
            Outcome::Gains if self.aa != Some(arm) => control.is_none_or(|control| interval.high < control.low),
            _ => true,
        };
        arms.iter().enumerate().all(decided)
    }

    /// Starts that are still to come, by the plan or as is `advised` for a cell of one epoch.
    fn starts_to_come(&self, so_far: usize, advised: Option<u32>) -> u32 {
        let planned = self.cell.planned_starts().unwrap_or(self.cell.frames_max);
        let all = match self.cell.starts {
            Starts::Several(_) if self.cell.epochs == 1 => advised.unwrap_or(planned),
            _ => planned,
        };
        all.saturating_sub(so_far as u32)
    }

    /// Starts that the cell's load is best divided among, by what the `widest` arm shows of them. Never fewer than were
    /// planned, or than are usual; never more than the load pays for.
    fn starts(&self, widest: &OverStarts) -> Option<u32> {
        let Starts::Several(planned) = self.cell.starts else { return None };
        let start_s = self.start_s.filter(|start_s| *start_s > 0.0 && !self.starts_asked)?;
        let (least, frames) = (planned.min(STARTS_USUAL), self.cell.frames_max);
        let load_s = f64::from(frames) * self.frame_s;
        let spent_s = self.first_s.unwrap_or(start_s) + self.starting_s;
        let more = self.cell.after_start.starts_still_borne(load_s, start_s, spent_s);
        let borne = (1 + self.started).saturating_add(more);
        let (Some(within), Some(spread)) = (widest.within, widest.spread) else {
            // Too few starts to tell; those that are too dear are left out all the same.
            return Some(planned.min(borne).max(least));
        };
        let seen =
            allocation::VarianceComponents { within, between: spread.estimate.powi(2), start_s, frame_s: self.frame_s };
        seen.starts(frames, least, borne)
    }

    /// Load behind one value of the interval, s.
    fn value_s(&self) -> f64 {
        match self.cell.design {
            Design::Switched { frames_a_side } => 2.0 * f64::from(frames_a_side) * self.frame_s,
            _ => self.frame_s,
        }
    }

    /// What the frames so far say.
    pub fn decide(&self) -> Decision {
        let effects = self.effects(false);
        let alpha = alpha(effects.len(), if self.until_decided { EndsBy::Answers } else { EndsBy::Width });
        let arms: Vec<OverStarts> = effects.iter().map(|it| self.infer(it, alpha, self.until_decided)).collect();
        let width = |arm: &OverStarts| arm.inference.interval.half_width();
        let Some(widest) = (0..arms.len()).max_by(|a, b| width(&arms[*a]).total_cmp(&width(&arms[*b]))) else {
            return Decision {
                enough: false,
                widest: 0,
                arms: Vec::new(),
                more_s: None,
                bought: None,
                starts: None,
                starting_s: 0.0,
            };
        };
        let reached = width(&arms[widest]) <= self.precision;
        // Every arm must stand on as many frames as the look asks for: a frame may have no effect for one of them.
        let fewest = effects.iter().map(Vec::len).min().unwrap_or(0);
        let starts_so_far = arms[widest].starts;
        let enough = fewest >= precision::MIN_FRAMES
            && match self.until_decided {
                true => self.is_decided(&effects, starts_so_far, alpha),
                false => reached && self.is_look(starts_so_far),
            };
        let now = width(&arms[widest]);
        let bought = now * (self.frames as f64 / f64::from(self.cell.frames_max).max(self.frames as f64)).sqrt();
        let starts = self.starts(&arms[widest]);
        Decision {
            enough,
            // Further frames narrow nothing of what is known of other starts.
            bought: (now.is_finite() && !arms[widest].widened).then_some(bought),
            more_s: if reached { Some(0.0) } else { more_s(&arms[widest], self.precision, self.value_s(), alpha) },
            starts,
            starting_s: self.start_s.unwrap_or(0.0) * f64::from(self.starts_to_come(starts_so_far, starts)),
            widest: widest + 1,
            arms: arms.into_iter().map(|arm| arm.inference.interval).collect(),
        }
    }
}

/// Seconds of measured load that `over_starts` still needs for `target`, at least one value's worth.
///
/// `seconds_each` is the length of one frame, or group of frames. `None` when it is unknown, and where only further
/// starts would narrow the interval.
pub fn more_s(over_starts: &OverStarts, target: f64, seconds_each: f64, alpha: f64) -> Option<f64> {
    let OverStarts { inference: Inference { merged, batch, .. }, count, widened, .. } = over_starts;
    // A value may stand for several frames: neighbours that were averaged, or those of one start.
    let frames_each = (*count as f64 / merged.len().max(1) as f64).max((*batch).max(1) as f64);
    let seconds_each = seconds_each * frames_each;
    let more_s = if *widened { None } else { precision::predict_more(merged, target, seconds_each, alpha) };
    Some(more_s?.max(seconds_each))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot of 100 ns of one arm on `lane`: 40 ns of processor time, `stalled_ns` of neighbours, the rest asleep.
    fn slot(lane: u32, block: u32, stalled_ns: u64) -> Slot {
        let ran = Slot { wall_ns: 100, client_cpu_ns: 25, server_cpu_ns: 15, ..Slot::default() };
        Slot { lane, block, operations: 1, counted: 1, stalled_ns: Some(stalled_ns), ..ran }
    }

    fn slept(slots: &[Slot]) -> (f64, bool) {
        let seen = SlotTotals::of([slots]);
        (seen.slept_share(), seen.net())
    }

    #[test]
    fn net_time_is_told_unless_clients_may_have_slept_for_a_neighbour_of_another_lane() {
        // Of 70 and 100 ns of net time the first lane slept 30 and the second 60, of which 30 while the first was
        // stalled.
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 0, 0)]), (30.0 / 170.0, false));
        // The first lane was stalled in another block.
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 1, 0)]), (0.0, true));
        // A lane's own stall is no reason for its own sleep.
        assert_eq!(slept(&[slot(0, 0, 30), slot(0, 1, 10)]), (0.0, true));
        // Both lanes were stalled whenever they did not run.
        assert_eq!(slept(&[slot(0, 0, 60), slot(1, 0, 60)]), (0.0, true));
        assert_eq!(slept(&[slot(0, 0, 0), slot(1, 0, 0)]), (0.0, true));
        // What nobody saw makes the share no smaller.
        let unseen = |lane| Slot { stalled_ns: None, ..slot(lane, 1, 0) };
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 0, 0), unseen(0), unseen(1)]), (30.0 / 170.0, false));
    }

    #[test]
    fn cpu_decides_where_net_time_or_the_server_cannot_be_seen() {
        let told = SlotTotals::of([&[slot(0, 0, 0)][..]]);
        let doubtful = SlotTotals::of([&[slot(0, 0, 30), slot(1, 0, 0)][..]]);
        let alone = Slot { server_cpu_ns: 0, stalled_ns: None, ..slot(0, 0, 0) };
        let unseen = SlotTotals::of([&[alone][..]]);
        let asked = [Metric::Net, Metric::ServerCpu, Metric::Time];
        let decides = |seen: SlotTotals| asked.map(|metric| seen.deciding(metric));
        assert_eq!(decides(told), [Metric::Net, Metric::ServerCpu, Metric::Time]);
        assert_eq!(decides(doubtful), [Metric::Cpu, Metric::ServerCpu, Metric::Time]);
        assert_eq!(decides(unseen), [Metric::Cpu, Metric::Cpu, Metric::Time]);
    }
}
