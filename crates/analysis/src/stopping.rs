//! Live: is a cell measured precisely enough, and how much longer would it take?
//!
//! [`Live`] takes the slots of each complete frame as they come, keeps the frame's effects only, and can be
//! asked after every frame. What it shows after any frame is an estimate for display; that it is *enough* it
//! says only at the frame counts of [`precision::looks`], from 15 frames on, and by the width of the intervals
//! alone. While frames are added the intervals are those that the analysis of a cell ended by precision gives; once the
//! cell has ended, [`Live::ended`] gives the intervals of the analysis itself.

use std::collections::BTreeSet;

use tithe_model::{
    ending::CellEnding,
    experiment::{Measure, Metric},
    plan::Cell,
    record::Slot,
};

use crate::{
    CONFIDENCE, Interval, Outcome,
    statistics::{
        inference::{Inference, infer, sidak},
        pairing::{fewest_pairs, frame_effect},
        precision::{self, STOPPING_FACTOR, confidence_sequence},
        verdict::outcome,
    },
};

/// The error of each arm's interval, so that all `guarded` arms together are right with [`CONFIDENCE`].
///
/// Where the width decides when to stop, a smaller error pays for choosing the moment.
pub fn alpha(guarded: usize, by_precision: bool) -> f64 {
    let alpha = 1.0 - CONFIDENCE;
    sidak(if by_precision { STOPPING_FACTOR * alpha } else { alpha }, guarded)
}

/// The inference on a cell's frame effects, or their differences, that all reports and the progress of a run print.
///
/// `by_decision`: the answers were looked at after every frame, so only an interval that holds at all of them at once
/// may be read.
pub fn inference(effects: &[f64], alpha: f64, by_decision: bool) -> Inference {
    let mut inference = infer(effects, alpha);
    if by_decision {
        inference.interval = confidence_sequence(&inference.merged, alpha);
    }
    inference
}

/// How many lanes (client threads) there are in `slots`.
pub fn lanes<'a>(slots: impl IntoIterator<Item = &'a Slot>) -> usize {
    slots.into_iter().map(|slot| slot.client).collect::<BTreeSet<_>>().len()
}

/// The metric that decides.
///
/// Net time needs slots that say what neighbours took of them (`net_seen`), the server's processor time a server that
/// can be seen. Both give way to the processor time that is seen.
pub fn deciding(asked: Metric, net_seen: bool, server_seen: bool) -> Metric {
    match asked {
        Metric::Net if !net_seen => Metric::Cpu,
        Metric::ServerCpu if !server_seen => Metric::Cpu,
        asked => asked,
    }
}

/// True when some slot says what neighbours took of it.
pub fn net_is_seen<'a>(slots: impl IntoIterator<Item = &'a Slot>) -> bool {
    slots.into_iter().any(|slot| slot.stalled_ns.is_some())
}

/// What is known after the frames so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// True at a look at which every guarded arm has reached the precision.
    pub enough: bool,
    /// Index of the arm with the widest interval; 0 before anything is known.
    pub widest: usize,
    /// The deciding metric of each guarded arm (arm 1 first): natural-log ratio against the baseline.
    pub arms: Vec<Interval>,
    /// Seconds of measured load until the widest arm is precise enough; 0 when it is, `None` when it cannot be told.
    pub more_s: Option<f64>,
    /// Half-width that the widest arm would have after the last frame that the budget buys; `None` where there is no
    /// width.
    pub bought: Option<f64>,
}

/// The frame effects of one cell, as they come.
#[derive(Debug, Clone)]
pub struct Live {
    asked: Metric,
    precision: f64,
    margin: f64,
    until_decided: bool,
    cell: Cell,
    frame_s: f64,
    deciding: Option<Metric>,
    frames: usize,
    effects: Vec<Vec<f64>>,
}

impl Live {
    /// Nothing seen yet of `cell`, whose experiment has `arms` arms.
    pub fn new(cell: &Cell, measure: &Measure, arms: usize) -> Self {
        Self {
            asked: measure.primary,
            precision: measure.precision,
            margin: measure.margin,
            until_decided: measure.until_decided,
            cell: cell.clone(),
            frame_s: cell.frame_ns(arms) as f64 / 1e9,
            deciding: None,
            frames: 0,
            effects: vec![Vec::new(); arms.saturating_sub(1)],
        }
    }

    /// Takes the slots of one complete frame that is not spoiled.
    ///
    /// The first frame settles how many lanes there are, and whether the server and neighbours can be seen.
    pub fn push(&mut self, slots: &[Slot]) {
        let lanes = lanes(slots);
        let metric = *self.deciding.get_or_insert_with(|| {
            deciding(self.asked, net_is_seen(slots), slots.iter().any(|slot| slot.server_cpu_ns > 0))
        });
        self.frames += 1;
        for (arm, effects) in (1..).zip(&mut self.effects) {
            effects.extend(frame_effect(slots, 0, arm, metric, fewest_pairs(slots, lanes)));
        }
    }

    /// Says how long frames are now, s, and how many the budget buys at that length, those so far included.
    pub fn expect(&mut self, frame_s: f64, frames_max: u32) {
        (self.frame_s, self.cell.frames_max) = (frame_s, frames_max);
    }

    /// Frames taken so far.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The metric that decides; `None` before the first frame.
    pub fn metric(&self) -> Option<Metric> {
        self.deciding
    }

    /// The deciding metric of each guarded arm now that the cell has ended for `reason`: the figures of the report.
    /// `None` where the frames are too few for an interval.
    pub fn ended(&self, reason: &CellEnding) -> Option<Vec<Interval>> {
        let alpha = alpha(self.effects.len(), *reason == CellEnding::Precision);
        let of = |effects: &Vec<f64>| inference(effects, alpha, *reason == CellEnding::Decided).interval;
        (self.frames >= precision::MIN_FRAMES).then(|| self.effects.iter().map(of).collect())
    }

    /// What the frames so far say.
    pub fn decide(&self) -> Decision {
        // A confidence sequence needs no correction for looking.
        let alpha = alpha(self.effects.len(), !self.until_decided);
        let infer = |effects: &Vec<f64>| inference(effects, alpha, self.until_decided);
        let arms: Vec<Inference> = self.effects.iter().map(infer).collect();
        let width = |inference: &Inference| inference.interval.half_width();
        let Some(widest) = (0..arms.len()).max_by(|a, b| width(&arms[*a]).total_cmp(&width(&arms[*b]))) else {
            return Decision { enough: false, widest: 0, arms: Vec::new(), more_s: None, bought: None };
        };
        let reached = width(&arms[widest]) <= self.precision;
        // Every arm must stand on as many frames as the look asks for: a frame may have no effect for one of them.
        let fewest = self.effects.iter().map(Vec::len).min().unwrap_or(0);
        let decided = |arm: &Inference| outcome(arm.interval, self.margin) != Outcome::TooNoisy;
        let enough = if self.until_decided {
            fewest >= precision::MIN_FRAMES && arms.iter().all(decided)
        } else {
            reached && fewest >= precision::MIN_FRAMES && precision::may_stop_at(self.frames)
        };
        let now = width(&arms[widest]);
        let bought = now * (self.frames as f64 / f64::from(self.cell.frames_max).max(self.frames as f64)).sqrt();
        Decision {
            enough,
            bought: now.is_finite().then_some(bought),
            more_s: if reached { Some(0.0) } else { more_s(&arms[widest], self.precision, self.frame_s, alpha) },
            widest: widest + 1,
            arms: arms.into_iter().map(|inference| inference.interval).collect(),
        }
    }
}

/// Seconds of measured load that `inference` still needs for `target`, at least one value's worth.
///
/// `seconds_each` is the length of one value before averaging neighbours. `None` when it cannot be told.
pub fn more_s(inference: &Inference, target: f64, seconds_each: f64, alpha: f64) -> Option<f64> {
    let seconds_each = seconds_each * inference.batch.max(1) as f64;
    Some(precision::predict_more(&inference.merged, target, seconds_each, alpha)?.max(seconds_each))
}
