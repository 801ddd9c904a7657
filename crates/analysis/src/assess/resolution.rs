//! Calibration of the instrument by a baseline against its own second instance: which difference it can detect, and how
//! often it is wrong.

pub mod spread;

use tithe_model::{
    experiment::Metric,
    plan::{STARTS_MIN, STARTS_USUAL},
    records::Records,
    schedule::SplitMix64,
};
use tithe_statistics::{
    inference::sidak,
    precision,
    starts::{IntervalOptions, StartEffect, infer_over_starts},
};

use super::{measured::Measured, slots};
use crate::{
    CONFIDENCE, Interval,
    figures::{METRICS, metric_title},
};

/// Number of experiments drawn from the frames of one.
const DRAWN: u32 = 2000;

/// Result of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResolution {
    /// The cell's short name.
    pub id: String,
    /// How the arms were paired.
    pub mode: String,
    /// Slot, ms.
    pub slot_ms: f64,
    /// Number of frames that count.
    pub frames: usize,
    /// Seconds of measured load.
    pub load_s: f64,
    /// The metrics, the deciding one first.
    pub metrics: Vec<Resolution>,
}

impl CellResolution {
    /// True if the deciding metric found no difference where there is none, could have detected one beyond the margin,
    /// and has an interval with its nominal error.
    pub fn passes(&self) -> bool {
        self.metrics.first().is_some_and(|metric| metric.answer() == Answer::None)
    }
}

/// The result of a calibration for its deciding metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Intervals miss the truth more often than they may.
    Dishonest,
    /// A difference was found where there is none.
    Difference,
    /// No difference was found, but one larger than the margin could have been missed.
    TooNoisy,
    /// No difference was found, and none beyond the margin is possible.
    None,
}

/// The resolution of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// Its title in a table.
    pub title: String,
    /// Second instance against the first, natural-log ratio; the truth is 0. The intervals of all cells contain it
    /// simultaneously with [`CONFIDENCE`], so a calibration of many cells gives no more false alarms than one of a
    /// single cell.
    pub effect: Interval,
    /// Half-width of the interval of two arms after a minute of load, natural-log ratio; only the part that more load
    /// narrows.
    pub frames_per_minute: f64,
    /// The part of the half-width from the known spread of other starts, which load does not narrow, natural-log ratio.
    /// 0 if there are enough starts to estimate their spread.
    pub widening: f64,
    /// Share of drawn experiments without any effect in which one was found, 0–1; `None` if no useful experiments can
    /// be drawn.
    pub false_alarms: Option<f64>,
    /// The largest difference that counts as none, natural-log ratio.
    pub margin: f64,
}

impl Resolution {
    /// The result.
    pub fn answer(&self) -> Answer {
        match (self.is_honest(), self.finds_nothing()) {
            (false, _) => Answer::Dishonest,
            (true, false) => Answer::Difference,
            (true, true) if self.largest() > self.margin => Answer::TooNoisy,
            (true, true) => Answer::None,
        }
    }

    /// The largest difference that is compatible with the interval, natural-log ratio.
    pub fn largest(&self) -> f64 {
        self.effect.low.abs().max(self.effect.high.abs())
    }

    /// Half-width of the interval of two arms after a minute of load on these starts, natural-log ratio.
    pub fn per_minute(&self) -> f64 {
        self.frames_per_minute.hypot(self.widening)
    }

    /// Seconds of load after which an interval of two identical arms that contains zero allows no difference beyond the
    /// margin: its half-width is half of that then. `None` if no load on these starts is enough.
    pub fn needed_s(&self) -> Option<f64> {
        let left = (self.margin / 2.0).powi(2) - self.widening.powi(2);
        (left > 0.0).then(|| 60.0 * self.frames_per_minute.powi(2) / left)
    }

    /// True if the interval contains the truth.
    fn finds_nothing(&self) -> bool {
        self.effect.low <= 0.0 && self.effect.high >= 0.0
    }

    /// False if false alarms are more than 5 %, by more than three standard errors of the drawing.
    fn is_honest(&self) -> bool {
        let alpha = 1.0 - CONFIDENCE;
        let most = alpha + 3.0 * (alpha * CONFIDENCE / f64::from(DRAWN)).sqrt();
        self.false_alarms.is_none_or(|share| share <= most)
    }
}

/// The results of a calibration, cell by cell. Cells whose deciding metric has too few frames have no metrics.
pub fn resolutions(records: &Records) -> Vec<CellResolution> {
    (0..records.plan.cells.len()).map(|index| of_cell(records, index)).collect()
}

fn of_cell(records: &Records, index: usize) -> CellResolution {
    let measured = Measured::new(records, index);
    let asked = records.plan.experiment.measure.primary;
    let primary = measured.seen.deciding(asked);
    let told = |metric: &Metric| measured.seen.tells(*metric);
    let mut metrics: Vec<Metric> = METRICS.into_iter().take(3).filter(told).collect();
    metrics.sort_by_key(|metric| *metric != primary);
    let cells = records.plan.cells.len();
    let mut metrics: Vec<_> = metrics.into_iter().map(|metric| of_metric(&measured, metric, cells)).collect();
    // The first decides. If it has too few frames, no other metric replaces it.
    if metrics.first().is_some_and(Option::is_none) {
        metrics.clear();
    }
    CellResolution {
        id: measured.cell.id.clone(),
        mode: records.cells[index].mode.clone(),
        slot_ms: measured.slot_ns as f64 / 1e6,
        frames: measured.frames.len(),
        load_s: measured.load_s(),
        metrics: metrics.into_iter().flatten().collect(),
    }
}

fn of_metric(measured: &Measured<'_>, metric: Metric, cells: usize) -> Option<Resolution> {
    let effects = slots::effects(measured, 1, metric);
    // A frame with too few pairs of slots has no effect.
    if effects.len() < precision::MIN_FRAMES {
        return None;
    }
    let asked = |alpha: f64| IntervalOptions { alpha, ..measured.asked(metric) };
    let interval = |asked: IntervalOptions| infer_over_starts(&effects, asked).inference.interval;
    let alone = asked(1.0 - CONFIDENCE);
    let of_frames = interval(IntervalOptions { known: None, ..alone }).half_width();
    let alone = interval(alone).half_width();
    let load_s = effects.len() as f64 * measured.frame_s;
    alone.is_finite().then(|| Resolution {
        title: metric_title(metric).to_owned(),
        effect: interval(asked(sidak(1.0 - CONFIDENCE, cells))),
        frames_per_minute: of_frames * (load_s / 60.0).sqrt(),
        widening: (alone.powi(2) - of_frames.powi(2)).max(0.0).sqrt(),
        false_alarms: false_alarms(&effects, measured.cell.seed),
        margin: measured.margin,
    })
}

/// Draws experiments from the starts of `effects`, each with a random sign, so that there is no effect whatever the
/// noise is, and counts those whose interval excludes 0. The known spread of other starts is not used: it would only
/// widen.
///
/// Tests the interval under the symmetry of the design. Whether the two instances are alike is tested by the effect.
/// `None` without effects, and for four to seven starts: they allow too few combinations of values and signs to test 5
/// % (all signs of four agree once in eight times).
pub fn false_alarms(effects: &[StartEffect], seed: u64) -> Option<f64> {
    let starts: Vec<&[StartEffect]> = effects.chunk_by(|a, b| a.start == b.start).collect();
    let units: Vec<&[StartEffect]> = match starts.len() as u32 {
        // If starts are few, frames are drawn, because the interval is then based on frames.
        1..STARTS_MIN => effects.chunks(1).collect(),
        0 | STARTS_MIN..STARTS_USUAL => return None,
        STARTS_USUAL.. => starts,
    };
    let mut random = SplitMix64::new(seed);
    let asked = IntervalOptions { alpha: 1.0 - CONFIDENCE, by_decision: false, known: None };
    let wrong = (0..DRAWN).filter(|_| {
        let mut drawn = Vec::with_capacity(effects.len());
        for start in 0..units.len() as u32 {
            let unit = units[random.below(units.len() as u64) as usize];
            let sign = if random.next_u64() & 1 == 0 { 1.0 } else { -1.0 };
            drawn.extend(unit.iter().map(|it| StartEffect { start, effect: sign * it.effect }));
        }
        infer_over_starts(&drawn, asked).inference.interval.exceeds(0.0)
    });
    Some(wrong.count() as f64 / f64::from(DRAWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_interval_errs_in_five_percent() {
        let mut random = SplitMix64::new(3);
        for frames_a_start in [1, 5] {
            let effect = |frame: u32| StartEffect {
                start: frame / frames_a_start,
                effect: random.next_f64() + random.next_f64() - 1.0,
            };
            let effects: Vec<StartEffect> = (0..60).map(effect).collect();
            let rate = false_alarms(&effects, 1);
            assert!(rate.is_some_and(|rate| (0.03..0.065).contains(&rate)), "{rate:?}");
        }
        assert_eq!(false_alarms(&[], 1), None);
    }

    #[test]
    fn four_to_seven_starts_do_not_tell_how_often_an_interval_errs() {
        let told = |starts: u32| {
            let effect = |frame: u32| StartEffect { start: frame % starts, effect: f64::from(frame % 3) - 1.0 };
            let mut effects: Vec<StartEffect> = (0..60).map(effect).collect();
            effects.sort_by_key(|it| it.start);
            false_alarms(&effects, 1).is_some()
        };
        assert_eq!([1, 3, 4, 7, 8].map(told), [true, true, false, false, true]);
    }

    /// Load does not narrow the known spread of other starts: half a percent after a minute and after an hour. An
    /// interval that reaches from zero to one percent is half a percent wide on either side.
    #[test]
    fn load_narrows_what_frames_scatter_and_nothing_else() {
        let of = |frames_per_minute, widening| Resolution {
            title: String::new(),
            effect: Interval { estimate: 0.0, low: -0.1, high: 0.1 },
            frames_per_minute,
            widening,
            false_alarms: None,
            margin: 0.01,
        };
        let needed_s = |frames, widening| of(frames, widening).needed_s().map(f64::round);
        assert_eq!((of(0.003, 0.004).per_minute(), needed_s(0.003, 0.004)), (0.005, Some(60.0)));
        assert_eq!((needed_s(0.01, 0.0), needed_s(0.003, 0.005)), (Some(240.0), None));
    }
}
