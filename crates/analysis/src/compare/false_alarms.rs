//! A budget of false alarms: how often a threshold may be exceeded although nothing grew beyond it.
//!
//! A user who compares *r* times a year, with *c* costs each time, and allows *a* false alarms a year, allows each cost
//! an error of *a* ÷ (*r* · *c*), one-sided (Bonferroni). The intervals of both runs are widened to that error by
//! Student's quantiles, with one degree of freedom less than the number of values: starts of the servers if frames
//! share them, else frames; for gathered matrices hosts, or repeats on one host. If a known spread widened an interval,
//! the number of values is limited to that of the spread. *n* values all lie on one side by chance once in 2^*n* times;
//! so a smaller error is not possible with them and is refused.

use tithe_model::{plan::STARTS_MIN, quantity::fixed};
use tithe_statistics::distribution::t_upper;

use super::{Comparison, Counted, Match, Side, USUAL};
use crate::Interval;

/// The budget for a year of comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// False alarms allowed per year, above 0.
    pub alarms_per_year: f64,
    /// Number of comparisons per year, above 0.
    pub comparisons_per_year: f64,
}

impl Comparison {
    /// Sets the error of every change so that the comparison stays within `budget`, and adds a note about it.
    ///
    /// # Errors
    /// If runs have too few values for such an error: one sentence for each.
    pub fn keep(&mut self, budget: Budget) -> Result<(), Vec<String>> {
        let Budget { alarms_per_year, comparisons_per_year } = budget;
        let changes = self.matches.iter().map(|it| it.changes().len()).sum::<usize>().max(1);
        let error = (alarms_per_year / (comparisons_per_year * changes as f64)).min(USUAL);
        let refused: Vec<String> = self.matches.iter().flat_map(|it| self.too_few(it, error)).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        self.matches.iter_mut().for_each(|it| it.error = Some(error));
        let widest = self.matches.iter().flat_map(Match::changes).map(|it| it.points.estimate - it.points.low);
        let costs = if changes == 1 { "one cost".to_owned() } else { format!("{changes} costs") };
        self.notes.push(format!(
            "At most {alarms_per_year} false alarms a year in {comparisons_per_year} comparisons of {costs}: each cost may \
             err by {error:.1e}, one-sided. To be detected, a cost has to grow beyond the threshold by up to {} points more.",
            fixed(100.0 * widest.fold(0.0, f64::max), 1),
        ));
        Ok(())
    }

    /// The sides of `matched` with too few values for `error`.
    fn too_few(&self, matched: &Match, error: f64) -> Vec<String> {
        let counted = matched.sides.iter().filter(|side| side.counts());
        let short = counted.filter(|side| error < 0.5f64.powi(side.values().0 as i32));
        let told = short.map(|side| {
            let (values, noun) = side.values();
            let needed = -error.log2().floor() as u64;
            format!(
                "{} · {} in {} rests on {values} {noun}{}, and an error of {error:.1e} needs {needed}: {}, compare fewer costs, or allow \
                 more false alarms.",
                matched.cell,
                matched.arm,
                self.runs[side.run],
                if values == 1 { "" } else { "s" },
                side.remedy(),
            )
        });
        told.collect()
    }
}

/// Number of values of a known spread if a document does not give it: the fewest starts that `tithe calibrate --starts`
/// takes.
const UNTOLD_VALUES: usize = STARTS_MIN as usize;

impl Side {
    /// The number of independent values of the cost, and their name.
    fn values(&self) -> (usize, &'static str) {
        let (starts, count) = (self.estimate.starts, self.estimate.count);
        let frames = self.estimate.values();
        match self.counted {
            Counted::Hosts => (count, "host"),
            Counted::Repeats => (count, "repeat"),
            Counted::Frames if starts >= STARTS_MIN as usize && starts < count => (starts, "start"),
            Counted::Frames if self.estimate.widened && self.known_values() < frames => {
                (self.known_values(), "known start")
            }
            Counted::Frames => (frames, "frame"),
        }
    }

    /// Number of values of the known spread that widened the interval: one more than its degrees of freedom.
    fn known_values(&self) -> usize {
        self.estimate.known_degrees.map_or(UNTOLD_VALUES, |degrees| (degrees as usize).saturating_add(1))
    }

    /// How to get more values.
    fn remedy(&self) -> &'static str {
        match self.counted {
            Counted::Frames if self.estimate.widened => "measure over more starts",
            Counted::Frames => "measure longer",
            Counted::Hosts | Counted::Repeats => "measure on more hosts",
        }
    }

    /// The cost as the status judges it, with an interval of the one-sided `error`.
    pub(super) fn erring(&self, error: f64) -> Interval {
        let degrees = (self.values().0 as f64 - 1.0).max(1.0);
        let widen = t_upper(error, degrees) / t_upper(USUAL, degrees);
        self.of_any_run(self.estimate.headline().effect.scaled(widen), error)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{Analysis, compare::compare, report::sample};

    /// Two runs, each on `starts` starts; in the second, TLS costs `more` (a share).
    fn compared(more: f64, starts: usize) -> Comparison {
        let mut before = Analysis { database: "simulated".to_owned(), ..sample::full() };
        before.cells[0].arms.truncate(2);
        before.cells[0].arms[1].estimates[0].starts = starts;
        let mut after = Analysis { run: "later".to_owned(), ..before.clone() };
        let effect = &mut after.cells[0].arms[1].estimates[0].effect;
        let grown = |end: f64| (end.exp() + more).ln();
        *effect = Interval { estimate: grown(effect.estimate), low: grown(effect.low), high: grown(effect.high) };
        let labels = ["before", "after"].map(|label| Some(label.to_owned()));
        compare(&[before, after], &labels).expect("runs alike")
    }

    fn budget(alarms_per_year: f64, comparisons_per_year: f64) -> Budget {
        Budget { alarms_per_year, comparisons_per_year }
    }

    fn beyond(comparison: &Comparison, threshold: f64) -> bool {
        comparison.matches[0].changes()[0].beyond(threshold)
    }

    #[test]
    fn fewer_false_alarms_take_more_than_before() {
        // TLS costs 40.5 % [38.7, 42.3], then four points more.
        let usual = compared(0.04, 1);
        let width = |comparison: &Comparison| comparison.matches[0].changes()[0].points.half_width();
        let mut strict = usual.clone();
        strict.keep(budget(1.0, 1000.0)).expect("30 frames can detect it");
        assert!(beyond(&usual, 0.01) && !beyond(&strict, 0.01));
        assert!(width(&strict) > 1.5 * width(&usual));
        // An error larger than the usual one is never used.
        let mut lax = usual.clone();
        lax.keep(budget(100.0, 1.0)).expect("a lax budget");
        assert!((width(&lax) - width(&usual)).abs() < 1e-12);
        expect!["At most 1 false alarms a year in 1000 comparisons of one cost: each cost may err by 1.0e-3, one-sided. To be detected, a cost has to grow beyond the threshold by up to 4.2 points more."].assert_eq(strict.notes.last().expect("a note"));
    }

    #[test]
    fn an_error_that_so_few_values_cannot_have_is_refused() {
        expect![[r#"
            c/in-memory · tls in before rests on 8 starts, and an error of 2.7e-3 needs 9: measure longer, compare fewer costs, or allow more false alarms.
            c/in-memory · tls in after rests on 8 starts, and an error of 2.7e-3 needs 9: measure longer, compare fewer costs, or allow more false alarms."#]].assert_eq(&compared(0.04, 8).keep(budget(1.0, 365.0)).expect_err("8 starts").join("\n"));
        assert!(compared(0.04, 9).keep(budget(1.0, 365.0)).is_ok());
        assert!(compared(0.04, 1).keep(budget(1.0, 1e12)).is_err());
    }

    /// Eight values all lie on one side once in 2⁸ times.
    #[test]
    fn so_many_values_can_have_exactly_so_small_an_error() {
        assert!(compared(0.04, 8).keep(budget(1.0, 256.0)).is_ok());
        assert!(compared(0.04, 8).keep(budget(1.0, 256.1)).is_err());
    }

    #[test]
    fn a_cost_rests_on_frames_or_shared_starts_or_known_ones_or_hosts() {
        let of = |counted: Counted, starts: usize, batch: usize, known: Option<Option<f64>>| {
            let mut side = compared(0.0, starts).matches[0].sides[0].clone();
            side.counted = counted;
            (side.estimate.count, side.estimate.batch) = (30, batch);
            (side.estimate.widened, side.estimate.known_degrees) = (known.is_some(), known.flatten());
            let (values, noun) = side.values();
            format!("{values} {noun}: {}", side.remedy())
        };
        let frames = |starts: usize| of(Counted::Frames, starts, 1, None);
        // Starts are the values if there are four, and fewer than frames.
        let alone = "30 frame: measure longer";
        assert_eq!([3, 30, 31].map(frames), [alone; 3]);
        assert_eq!([4, 29].map(frames), ["4 start: measure longer", "29 start: measure longer"]);
        assert_eq!(of(Counted::Frames, 1, 3, None), "10 frame: measure longer", "frames that were averaged");
        let widened = |known_degrees: Option<f64>| of(Counted::Frames, 3, 1, Some(known_degrees));
        assert_eq!(widened(Some(28.0)), "29 known start: measure over more starts");
        assert_eq!([29.0, 1e300].map(|degrees| widened(Some(degrees))), ["30 frame: measure over more starts"; 2]);
        assert_eq!(widened(None), "4 known start: measure over more starts");
        let gathered = [(Counted::Hosts, "30 host"), (Counted::Repeats, "30 repeat")];
        for (counted, values) in gathered {
            assert_eq!(of(counted, 8, 1, Some(Some(2.0))), format!("{values}: measure on more hosts"));
        }
    }

    #[test]
    fn an_interval_that_was_widened_from_elsewhere_stands_on_no_more_than_that() {
        let on_one_start = |known_degrees: Option<f64>| {
            let mut comparison = compared(0.04, 1);
            for side in &mut comparison.matches[0].sides {
                (side.estimate.widened, side.estimate.known_degrees) = (true, known_degrees);
            }
            comparison
        };
        let error = 0.01;
        let widening = |known_degrees: Option<f64>| {
            let comparison = on_one_start(known_degrees);
            let side = &comparison.matches[0].sides[0];
            side.erring(error).half_width() / side.estimate.effect.half_width()
        };
        let student = |degrees: f64| t_upper(error, degrees) / t_upper(USUAL, degrees);
        // The last two: more than there are frames, and a document without the value.
        for (known, degrees) in [(Some(6.0), 6.0), (Some(21.4), 21.0), (Some(1e6), 29.0), (None, 3.0)] {
            let (found, right) = (widening(known), student(degrees));
            assert!((found - right).abs() < 1e-9, "{known:?}: {found} {right}");
        }
        expect![[r#"
            c/in-memory · tls in before rests on 7 known starts, and an error of 4.0e-3 needs 8: measure over more starts, compare fewer costs, or allow more false alarms.
            c/in-memory · tls in after rests on 7 known starts, and an error of 4.0e-3 needs 8: measure over more starts, compare fewer costs, or allow more false alarms."#]].assert_eq(&on_one_start(Some(6.0)).keep(budget(1.0, 250.0)).expect_err("7 starts").join("\n"));
        assert!(on_one_start(Some(7.0)).keep(budget(1.0, 250.0)).is_ok());
    }

    /// The one-sided error has its nominal size: as many intervals of normal samples lie above the truth as it allows.
    #[test]
    fn an_interval_errs_as_often_as_it_may() {
        use tithe_model::schedule::SplitMix64;
        let (error, values, experiments) = (0.01, 10, 4000);
        let mut random = SplitMix64::new(3);
        let mut normal = || {
            let [one, other] = [random.next_f64(), random.next_f64()];
            (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        };
        let mut comparison = compared(0.0, 1);
        let side = &mut comparison.matches[0].sides[0];
        let mut above = 0;
        for _ in 0..experiments {
            let seen: Vec<f64> = (0..values).map(|_| normal()).collect();
            let mean = tithe_statistics::mean(&seen);
            let half = t_upper(USUAL, values as f64 - 1.0) * (tithe_statistics::variance(&seen) / values as f64).sqrt();
            side.estimate.effect = Interval { estimate: mean, low: mean - half, high: mean + half };
            (side.estimate.count, side.estimate.over_run) = (values, None);
            above += usize::from(side.erring(error).low > 0.0);
        }
        // 40 are expected; three standard deviations are 19.
        assert!((21..=59).contains(&above), "{above}");
    }
}
