//! Live: is a cell measured precisely enough, and how much longer would it take?
//!
//! [`Live`] takes the slots of each complete frame as they come, keeps only the frame's effects, and can be asked after
//! every frame. Its intervals after any frame are estimates for display. Only the width of the intervals decides when
//! it is *enough*, and only at certain times: at the frame counts of [`precision::looks`], from 15 frames on; if frames
//! share starts, once as many starts have begun as are planned, at most eight. While frames are added, the intervals
//! are those of the analysis of a cell that ended by precision. Once the cell has ended, [`Live::ended`] gives the
//! intervals of the analysis itself.

use std::{borrow::Cow, collections::BTreeSet};

use tithe_model::{
    ending::CellEnding,
    experiment::{Design, Metric},
    plan::{Cell, Plan, STARTS_MIN, STARTS_USUAL, Starts},
    record::{Slot, WarmedUp},
    start_spread::{CostSpread, StartSpread},
};
use tithe_statistics::{
    allocation,
    inference::sidak,
    pairing::{fewest_pairs, frame_effect, frame_spent},
    precision,
    sides::{SideFrame, pair_effects},
    starts::{IntervalOptions, KnownSpread, OverStarts, StartEffect, infer_over_starts},
    verdict::outcome,
};

use crate::{
    Interval, Outcome,
    assess::{
        control::DIFFERS,
        course,
        estimate::DRIFT_P,
        moved, persistence,
        warm_up::{Changing, stands},
    },
    counted::{holds_waiting, is_below, is_of_waiting, left_out, with_frames},
    deciding::{EndsBy, SlotTotals, alpha, lanes, more_s},
};

/// The result after the frames so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// True if this is a check and every protected arm has reached the precision.
    pub enough: bool,
    /// Index of the arm with the widest interval; 0 without results.
    pub widest: usize,
    /// The deciding metric of each protected arm (arm 1 first): natural-log ratio against the baseline.
    pub arms: Vec<Interval>,
    /// Seconds of measured load until the widest arm is precise enough; 0 if it is, `None` if unknown.
    pub more_s: Option<f64>,
    /// Half-width of the widest arm after the last frame within the budget; `None` without a width.
    pub bought: Option<f64>,
    /// The best number of starts for the cell's load, including those so far; `None` to leave the plan as it is.
    pub starts: Option<u32>,
    /// Maximum time for further restarts in addition to the load, s; 0 before their duration is known.
    pub starting_s: f64,
}

/// How the identifiers of protections begin that put data on an encrypted volume.
const VOLUMES: &str = "volume-";

/// The effects of one cell, frame by frame.
#[derive(Debug, Clone)]
pub struct Live {
    asked: Metric,
    precision: f64,
    margin: f64,
    until_decided: bool,
    cell: Cell,
    /// Number of cells of the run, over which answers hold simultaneously.
    cells: usize,
    /// Index of the A/A arm among the protected ones.
    aa: Option<usize>,
    frame_s: f64,
    /// Duration of the last restart, s; `None` before the first.
    start_s: Option<f64>,
    /// Warm-up time of the first servers of the cell, s; `None` without a warm-up.
    first_s: Option<f64>,
    /// Total duration of restarts so far, s.
    starting_s: f64,
    /// Number of starts begun after the first of the cell.
    started: u32,
    /// The experiment asks for a number of starts.
    starts_asked: bool,
    seen: SlotTotals,
    /// The start of each frame so far.
    frame_starts: Vec<u32>,
    /// The epoch whose data are measured.
    epoch: u32,
    /// The starts that have frames, each with the epoch of its data.
    loads: BTreeSet<(u32, u32)>,
    /// The arms that protect nothing, as the plain arm.
    controls: Vec<usize>,
    /// For each of them, how much longer it waits than the plain arm in each frame, µs per operation.
    waiting: Vec<Vec<StartEffect>>,
    /// Some arm is on an encrypted volume, and the plain arm on another.
    has_volume: bool,
    /// How each start was warmed up: the report leaves out those that were not steady.
    warm_ups: Vec<WarmedUp>,
    /// The known spread between starts.
    start_spread: Vec<StartSpread>,
    /// The known start-to-start variation of the costs of protections.
    cost_spread: Option<CostSpread>,
    /// Effects of each protected arm, in the requested metric and in processor time, which decides if that one cannot.
    by_metric: [Vec<Vec<StartEffect>>; 2],
    /// For a server that its provider switches: the costs of operations in each frame, in the same metrics.
    sides: [Vec<SideFrame>; 2],
    /// For such a server: the current pair of sides.
    pair: u32,
    /// The last result, and the number of frames it is of.
    decided: Option<(usize, Decision)>,
}

impl Live {
    /// For cell `number` of `plan`, without frames.
    pub fn new(plan: &Plan, number: usize) -> Self {
        let (cell, measure, arms) = (&plan.cells[number], &plan.experiment.measure, plan.experiment.arms.len());
        let controls = persistence::controls(&plan.experiment.arms);
        let mut protections = plan.experiment.arms.iter().flat_map(|arm| &arm.protections);
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
            frame_starts: Vec::new(),
            epoch: 0,
            loads: BTreeSet::new(),
            waiting: vec![Vec::new(); controls.len()],
            controls,
            has_volume: protections.any(|protection| protection.id.starts_with(VOLUMES)),
            warm_ups: Vec::new(),
            start_spread: plan.spread_between_starts(false).to_vec(),
            cost_spread: plan.cost_spread.clone(),
            by_metric: std::array::from_fn(|_| vec![Vec::new(); arms.saturating_sub(1)]),
            sides: [Vec::new(), Vec::new()],
            pair: 0,
            decided: None,
        }
    }

    /// Declares that arms share starts, for which `plan` has another known spread.
    pub fn starts_shared(&mut self, plan: &Plan) {
        self.start_spread = plan.spread_between_starts(true).to_vec();
    }

    /// Declares that frames are from now on measured on the data of this `epoch`.
    pub fn on_data_of(&mut self, epoch: u32) {
        self.epoch = epoch;
    }

    /// Adds the slots of one complete and valid frame, measured on the start with this number.
    pub fn push(&mut self, start: u32, slots: &[Slot]) {
        self.loads.insert((start, self.epoch));
        let pairs = fewest_pairs(slots, lanes(slots));
        self.seen.push(slots);
        self.frame_starts.push(start);
        if self.cell.design.is_switched() {
            return self.push_side(start, slots);
        }
        for (effects, metric) in self.by_metric.iter_mut().zip([self.asked, Metric::Cpu]) {
            for (arm, effects) in (1..).zip(effects) {
                effects.extend(frame_effect(slots, 0, arm, metric, pairs).map(|effect| StartEffect { start, effect }));
            }
        }
        for (control, waiting) in self.controls.iter().zip(&mut self.waiting).filter(|_| holds_waiting(self.asked)) {
            let effect = persistence::of_frame(slots, *control as u32, self.asked, pairs);
            waiting.extend(effect.map(|effect| StartEffect { start, effect }));
        }
    }

    /// Adds the slots of one frame of a side of `pair`.
    fn push_side(&mut self, pair: u32, slots: &[Slot]) {
        self.pair = pair;
        for (frames, metric) in self.sides.iter_mut().zip([self.asked, Metric::Cpu]) {
            let cost = |arm: u32| Some((arm, frame_spent(slots, arm, metric)?.per_operation() / 1e3));
            let costs = [0, 1].into_iter().filter_map(cost).filter(|(_, cost)| cost.is_finite() && *cost > 0.0);
            frames.extend(costs.map(|(arm, cost)| SideFrame { pair, arm, cost }));
        }
    }

    /// The effects of each protected arm in `metric`, which decides. A pair of sides has an effect when all its frames
    /// are there, or if `is_over`.
    fn effects(&self, metric: Metric, is_over: bool) -> Cow<'_, [Vec<StartEffect>]> {
        let index = usize::from(metric != self.asked);
        let Design::Switched { frames_a_side } = self.cell.design else { return self.of_steady_starts(index) };
        let frames = || self.sides[index].iter().copied();
        let of_last = frames().filter(|frame| frame.pair == self.pair).count();
        let is_whole = is_over || of_last >= 2 * frames_a_side as usize;
        vec![pair_effects(frames().filter(|frame| is_whole || frame.pair < self.pair))].into()
    }

    /// The effects of each protected arm in the metric with this index, of starts that the report does not leave out.
    fn of_steady_starts(&self, metric: usize) -> Cow<'_, [Vec<StartEffect>]> {
        let (all, left_out) = (&self.by_metric[metric], self.left_out());
        if left_out.is_empty() {
            return all.into();
        }
        let of_steady = |effects: &Vec<StartEffect>| {
            effects.iter().copied().filter(|it| !left_out.contains(&it.start)).collect::<Vec<_>>()
        };
        all.iter().map(of_steady).collect::<Vec<_>>().into()
    }

    /// The result of `effects` of one arm in `metric` with an error of `alpha`.
    fn infer(&self, effects: &[StartEffect], metric: Metric, alpha: f64, by_decision: bool) -> OverStarts {
        infer_over_starts(effects, self.asking(metric, alpha, by_decision))
    }

    /// The metric that decides, as in the report: processor time also where waiting differs between arms without a
    /// protection. It does not contain the work of a volume.
    fn deciding(&self) -> Metric {
        let is_of_processor = !self.has_volume && self.waits_otherwise().is_some();
        if is_of_processor { Metric::Cpu } else { self.seen.deciding(self.asked) }
    }

    /// Sets the current length of a frame, s, and the number of frames within the budget at that length, including
    /// those so far.
    pub fn expect(&mut self, frame_s: f64, frames_max: u32) {
        (self.frame_s, self.cell.frames_max) = (frame_s, frames_max);
    }

    /// Adds a restart and its duration until a frame counts, s.
    pub fn started_anew(&mut self, took_s: f64) {
        self.starting_s += took_s;
        self.started += 1;
        self.start_s = Some(took_s);
    }

    /// Adds how a start was warmed up.
    pub fn warmed_up(&mut self, warm_up: WarmedUp) {
        self.warm_ups.push(warm_up);
        self.decided = None;
    }

    /// Sets how long the servers have been warmed up since their start, s.
    pub fn warming_up(&mut self, done_s: f64) {
        if self.started == 0 {
            self.first_s = Some(done_s);
        }
    }

    /// The warm-ups of the starts that have frames.
    fn warm_ups_with_frames(&self) -> Vec<WarmedUp> {
        with_frames(&self.warm_ups, self.frame_starts.iter().copied())
    }

    /// The starts that the report leaves out.
    fn left_out(&self) -> BTreeSet<u32> {
        left_out(&self.warm_ups_with_frames())
    }

    /// The start of each frame so far that counts.
    fn starts_of_frames(&self) -> Vec<u32> {
        let left_out = self.left_out();
        self.frame_starts.iter().copied().filter(|start| !left_out.contains(start)).collect()
    }

    /// Number of frames so far that count.
    pub fn frames(&self) -> usize {
        self.starts_of_frames().len()
    }

    /// The metric that decides; `None` before the first frame.
    pub fn metric(&self) -> Option<Metric> {
        (!self.frame_starts.is_empty()).then(|| self.deciding())
    }

    /// The deciding metric of each protected arm, after the cell has ended for `reason`: the figures of the report.
    /// `None` if there are too few frames for an interval; if only one arm has too few, its ends are infinite.
    pub fn ended(&self, reason: &CellEnding) -> Option<Vec<Interval>> {
        let (metric, by_decision) = (self.deciding(), *reason == CellEnding::Decided);
        // A pair whose last frame does not count is still complete, unless it was interrupted or failed.
        let effects = self.effects(metric, !matches!(reason, CellEnding::Interrupted | CellEnding::Failed(_)));
        let alpha = alpha(effects.len(), EndsBy::of(self.until_decided, Some(reason)));
        let of = |effects: &Vec<StartEffect>| {
            let interval = self.infer(effects, metric, alpha, by_decision).inference.interval;
            // For a server that its provider switches, each effect is one pair of sides.
            match effects.len() < precision::MIN_FRAMES && !self.cell.design.is_switched() {
                true => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, ..interval },
                false => interval,
            }
        };
        (self.frames() >= precision::MIN_FRAMES).then(|| self.widened(&effects.iter().map(of).collect::<Vec<_>>()))
    }

    /// Options for an interval of `metric`.
    fn asking(&self, metric: Metric, alpha: f64, by_decision: bool) -> IntervalOptions {
        let known = KnownSpread::of_metric(&self.start_spread, metric);
        let known = known.map(|known| known.with_costs(self.cost_spread.as_ref()));
        // One server is both sides.
        IntervalOptions { alpha, by_decision, known: known.filter(|_| !self.cell.design.is_switched()) }
    }

    /// May the width end the cell now? Such checks are rare, so that they cost little confidence: at a list of frame
    /// counts if each frame has its own start or all share one, else after any start from the usual number on.
    fn is_look(&self, starts: usize) -> bool {
        match self.cell.planned_starts() {
            None | Some(0..=1) => precision::may_stop_at(self.frame_starts.len()),
            Some(planned) => starts >= planned.min(STARTS_USUAL) as usize,
        }
    }

    /// Are all answers in `metric` certain by the report's rules? `alpha` is the error of each arm of this cell alone.
    /// If enough starts are planned to estimate their spread, this is false before they are reached, because the known
    /// spread of other starts is valid for a single check only.
    fn is_decided(&self, effects: &[Vec<StartEffect>], metric: Metric, starts: usize, alpha: f64) -> bool {
        if self.cell.planned_starts().is_some_and(|planned| starts < planned.min(STARTS_MIN) as usize) {
            return false;
        }
        self.has_answers(effects, metric, alpha)
    }

    /// Are all answers of `effects` certain: over all cells of the run, a saving against the A/A arm and against
    /// processor time, of costs that did not move too far, on starts that were steady, and of a symmetric set-up?
    fn has_answers(&self, effects: &[Vec<StartEffect>], metric: Metric, alpha: f64) -> bool {
        let over_run = sidak(alpha, self.cells);
        let found: Vec<OverStarts> = effects.iter().map(|it| self.infer(it, metric, over_run, true)).collect();
        let intervals = self.widened(&found.iter().map(|found| found.inference.interval).collect::<Vec<_>>());
        let aa = self.aa.and_then(|aa| intervals.get(aa));
        let differs = |aa: usize| {
            let effects = effects.get(aa).map_or(&[][..], Vec::as_slice);
            self.infer(effects, metric, sidak(DIFFERS, self.cells), true).inference.interval.exceeds(0.0)
        };
        if self.aa.is_some_and(differs) {
            return false;
        }
        let changing = Changing::of(&self.warm_ups_with_frames(), &self.starts_of_frames());
        let is_certain = |(arm, found): (usize, &OverStarts)| {
            let interval = intervals[arm];
            let verdict = outcome(interval, self.margin);
            let has_answer = match verdict {
                Outcome::TooNoisy => false,
                Outcome::Gains if self.aa != Some(arm) => {
                    aa.is_none_or(|aa| is_below(&interval, aa)) && !self.saves_by_waiting(arm, metric, alpha)
                }
                _ => true,
            };
            // The report has no course of arms that share no frame.
            let course = match self.cell.design.has_one_arm_a_frame() {
                true => Vec::new(),
                false => course::of_effects(&effects[arm]),
            };
            let ends = moved::ends(&course, found.spread.is_some());
            let has_moved = found.trend_p < DRIFT_P && moved::is_too_far(ends, interval.estimate, self.margin);
            let stands = |it: &Changing| stands(&interval, verdict, it.left(&course), self.margin);
            has_answer && !has_moved && changing.as_ref().is_none_or(stands)
        };
        found.iter().enumerate().all(is_certain)
    }

    /// The `own` intervals of the protected arms as in the report: where waiting decides although it differs between
    /// arms without a protection, all others are wider by what such an arm may differ.
    fn widened(&self, own: &[Interval]) -> Vec<Interval> {
        let control = if self.has_volume { self.waits_otherwise() } else { None };
        let Some(by) = control.and_then(|control| own.get(control - 1)) else { return own.to_vec() };
        let of_arm = |(arm, interval): (usize, &Interval)| match self.controls.contains(&arm) {
            true => *interval,
            false => persistence::beyond(*interval, by),
        };
        (1..).zip(own).map(of_arm).collect()
    }

    /// The arm that protects nothing and certainly waits for longer or less than the plain arm, in all starts alike;
    /// `None` if there is none, or if the metric does not include waiting.
    fn waits_otherwise(&self) -> Option<usize> {
        if !holds_waiting(self.seen.deciding(self.asked)) {
            return None;
        }
        let left_out = self.left_out();
        let test = |(control, waiting): (&usize, &Vec<StartEffect>)| {
            let of_steady = waiting.iter().copied().filter(|it| !left_out.contains(&it.start));
            Some((*control, persistence::over_starts(of_steady)?))
        };
        let tests = self.controls.iter().zip(&self.waiting).filter_map(test);
        persistence::most_certain(tests, self.controls.len(), self.cells).map(|(control, _)| control)
    }

    /// True if the report withdraws the saving of protected arm `arm` in `metric`: it is one of waiting, and so far on
    /// fewer loads of the data than show one. The sides of a switched server are on the same load.
    fn saves_by_waiting(&self, arm: usize, metric: Metric, alpha: f64) -> bool {
        let left_out = self.left_out();
        let counted = self.loads.iter().filter(|(start, _)| !left_out.contains(start));
        let loads: BTreeSet<u32> = counted.map(|(_, epoch)| *epoch).collect();
        let has_loads = loads.len() >= STARTS_MIN as usize || self.cell.design.is_switched();
        if has_loads || !holds_waiting(metric) {
            return false;
        }
        let interval = |index: usize, metric: Metric| {
            self.infer(&self.of_steady_starts(index)[arm], metric, alpha, true).inference.interval
        };
        is_of_waiting(&interval(0, metric), &interval(1, Metric::Cpu))
    }

    /// Number of starts to come, by the plan, or as `advised` for a cell of one epoch.
    fn starts_to_come(&self, so_far: usize, advised: Option<u32>) -> u32 {
        let planned = self.cell.planned_starts().unwrap_or(self.cell.frames_max);
        let all = match self.cell.starts {
            Starts::Several(_) if self.cell.epochs == 1 => advised.unwrap_or(planned),
            _ => planned,
        };
        all.saturating_sub(so_far as u32)
    }

    /// The best number of starts for the cell's load, from the results of the `widest` arm. Never fewer than planned,
    /// or than usual; never more than the load allows.
    fn starts(&self, widest: &OverStarts) -> Option<u32> {
        let Starts::Several(planned) = self.cell.starts else { return None };
        let start_s = self.start_s.filter(|start_s| *start_s > 0.0 && !self.starts_asked)?;
        let (least, frames) = (planned.min(STARTS_USUAL), self.cell.frames_max);
        let load_s = f64::from(frames) * self.frame_s;
        let spent_s = self.first_s.unwrap_or(start_s) + self.starting_s;
        let more = self.cell.after_start.starts_still_borne(load_s, start_s, spent_s);
        let borne = (1 + self.started).saturating_add(more);
        let (Some(within), Some(spread)) = (widest.within, widest.spread) else {
            // Too few starts to estimate the variances; starts that cost too much time are left out all the same.
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

    /// The result of the frames so far, or of one percent fewer: results after every frame would take time that grows
    /// with the square of their number. Whatever ends a cell is of all of them.
    pub fn decide(&mut self) -> Decision {
        // Only at checks does a cell end by its number of frames; one of several starts ends with any start.
        let all = self.frame_starts.len();
        let is_check = precision::may_stop_at(all);
        let by_frames = !self.until_decided && self.cell.planned_starts().is_none_or(|planned| planned <= 1);
        if let Some((frames, decision)) = &self.decided
            && all < frames + all / 100
            && !is_check
            && (by_frames || !decision.enough)
        {
            return Decision { enough: false, ..decision.clone() };
        }
        let decision = self.result();
        self.decided = Some((all, decision.clone()));
        decision
    }

    /// The result of the frames so far.
    fn result(&self) -> Decision {
        let metric = self.deciding();
        let effects = self.effects(metric, false);
        let alpha = alpha(effects.len(), if self.until_decided { EndsBy::Answers } else { EndsBy::Width });
        let infer = |it: &Vec<StartEffect>| self.infer(it, metric, alpha, self.until_decided);
        let arms: Vec<OverStarts> = effects.iter().map(infer).collect();
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
        // Every arm must have as many effects as the check requires: a frame may have none for one of them.
        let fewest = effects.iter().map(Vec::len).min().unwrap_or(0);
        let starts_so_far = arms[widest].starts;
        let enough = fewest >= precision::MIN_FRAMES
            && match self.until_decided {
                true => self.is_decided(&effects, metric, starts_so_far, alpha),
                false => reached && self.is_look(starts_so_far),
            };
        let now = width(&arms[widest]);
        let frames = self.frame_starts.len() as f64;
        let bought = now * (frames / f64::from(self.cell.frames_max).max(frames)).sqrt();
        let starts = self.starts(&arms[widest]);
        Decision {
            enough,
            // Further frames do not narrow the part from the known spread of other starts.
            bought: (now.is_finite() && !arms[widest].widened).then_some(bought),
            more_s: if reached { Some(0.0) } else { more_s(&arms[widest], self.precision, self.value_s(), alpha) },
            starts,
            starting_s: self.start_s.unwrap_or(0.0) * f64::from(self.starts_to_come(starts_so_far, starts)),
            widest: widest + 1,
            arms: arms.into_iter().map(|arm| arm.inference.interval).collect(),
        }
    }
}
