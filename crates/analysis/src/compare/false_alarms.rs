//! A budget of false alarms: how seldom a threshold may be passed where nothing grew beyond it.
//!
//! Who compares *r* times a year, with *c* costs each time, and allows *a* false alarms a year, lets each cost err by
//! *a* ÷ (*r* · *c*), one-sided (Bonferroni). The intervals of both runs are widened to that error by Student's
//! quantiles, with one degree of freedom less than there are values behind them: starts of the servers where frames
//! share them, else frames; of gathered matrices hosts, or repeats on one host. *n* values all lie on one side by
//! chance once in 2^*n* times; an error below that cannot be had from them, and is refused.

use tithe_model::{plan::STARTS_MIN, quantity::fixed};

use super::{Comparison, Counted, Match, Side, USUAL};
use crate::{Interval, statistics::distribution::t_upper};

/// What may be asked of a year of comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// False alarms that are allowed in a year, above 0.
    pub alarms_per_year: f64,
    /// Times a year that the comparison is made, above 0.
    pub comparisons_per_year: f64,
}

impl Comparison {
    /// Holds every change to an error by which the comparison stays within `budget`, and notes what that takes.
    ///
    /// # Errors
    /// Where runs rest on too few values for such an error: every one of them, whole sentences.
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
             err by {error:.1e}, one-sided. To be told, a cost has to grow beyond the threshold by up to {} points more.",
            fixed(100.0 * widest.fold(0.0, f64::max), 1),
        ));
        Ok(())
    }

    /// The sides of `matched` that rest on too few values for `error`.
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
                if side.counted == Counted::Frames { "measure longer" } else { "measure on more hosts" },
            )
        });
        told.collect()
    }
}

/// Values that the spread between starts of other runs counts for.
const KNOWN_VALUES: usize = 8;

impl Side {
    /// The independent values behind the cost, and what one of them is.
    fn values(&self) -> (usize, &'static str) {
        let (starts, count) = (self.estimate.starts, self.estimate.count);
        let frames = self.estimate.values();
        match self.counted {
            Counted::Hosts => (count, "host"),
            Counted::Repeats => (count, "repeat"),
            Counted::Frames if starts >= STARTS_MIN as usize && starts < count => (starts, "start"),
            // What is known of starts from elsewhere stands on few of them: its line of seven degrees of freedom, as of
            // eight values, is the weakest that Tithe brings.
            Counted::Frames if self.estimate.widened => (frames.min(KNOWN_VALUES), "frame"),
            Counted::Frames => (frames, "frame"),
        }
    }

    /// The cost as the status judges it, in an interval of the one-sided `error`.
    pub(super) fn erring(&self, error: f64) -> Interval {
        let degrees = (self.values().0 as f64 - 1.0).max(1.0);
        let widen = t_upper(error, degrees) / t_upper(USUAL, degrees);
        let Interval { estimate, low, high } = self.estimate.headline().effect;
        let own =
            Interval { low: estimate - widen * (estimate - low), high: estimate + widen * (high - estimate), estimate };
        self.of_any_run(own, error)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{Analysis, compare::compare, report::sample};

    /// Two runs, of which TLS costs `more` (a share) in the second; on `starts` starts each.
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
        // TLS costs 40.5 % [38.7, 42.3] and then four points more.
        let usual = compared(0.04, 1);
        let width = |comparison: &Comparison| comparison.matches[0].changes()[0].points.half_width();
        let mut strict = usual.clone();
        strict.keep(budget(1.0, 1000.0)).expect("30 frames can tell it");
        assert!(beyond(&usual, 0.01) && !beyond(&strict, 0.01));
        assert!(width(&strict) > 1.5 * width(&usual));
        // More than the usual error is never used.
        let mut lax = usual.clone();
        lax.keep(budget(100.0, 1.0)).expect("a lax budget");
        assert!((width(&lax) - width(&usual)).abs() < 1e-12);
        expect!["At most 1 false alarms a year in 1000 comparisons of one cost: each cost may err by 1.0e-3, one-sided. To be told, a cost has to grow beyond the threshold by up to 4.2 points more."].assert_eq(strict.notes.last().expect("a note"));
    }

    #[test]
    fn an_error_that_so_few_values_cannot_have_is_refused() {
        expect![[r#"
            c/in-memory · tls in before rests on 8 starts, and an error of 2.7e-3 needs 9: measure longer, compare fewer costs, or allow more false alarms.
            c/in-memory · tls in after rests on 8 starts, and an error of 2.7e-3 needs 9: measure longer, compare fewer costs, or allow more false alarms."#]].assert_eq(&compared(0.04, 8).keep(budget(1.0, 365.0)).expect_err("8 starts").join("\n"));
        assert!(compared(0.04, 9).keep(budget(1.0, 365.0)).is_ok());
        assert!(compared(0.04, 1).keep(budget(1.0, 1e12)).is_err());
    }

    /// The one-sided error is what is asked for: of so many normal samples, so many intervals lie above the truth.
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
            let mean = crate::statistics::mean(&seen);
            let half =
                t_upper(USUAL, values as f64 - 1.0) * (crate::statistics::variance(&seen) / values as f64).sqrt();
            side.estimate.effect = Interval { estimate: mean, low: mean - half, high: mean + half };
            (side.estimate.count, side.estimate.over_run) = (values, None);
            above += usize::from(side.erring(error).low > 0.0);
        }
        // 40 are expected; three standard deviations are 19.
        assert!((21..=59).contains(&above), "{above}");
    }
}
