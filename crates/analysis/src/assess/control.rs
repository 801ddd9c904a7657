//! The A/A arm as the negative control: how far arms differ in this cell without a reason.
//!
//! The baseline and its second instance do the same, so their difference shows how much two arms may differ for no
//! reason. Hardly any protection can save anything, so an apparent saving must be larger than that. A cost is plausible
//! and is kept, with a flag if the A/A arm differs by as much.

use tithe_model::experiment::Metric;
use tithe_statistics::{
    inference::sidak,
    verdict::{digits, percent},
};

use super::{measured::Measured, over_run};
use crate::{ArmAnalysis, Estimate, Flag, Interval, Outcome, counted::is_below};

/// Probability of wrongly reporting, for any cell of a run, that its A/A arm differs from the baseline.
pub(crate) const DIFFERS: f64 = 0.01;

/// A warning if Tithe's own second instance of the baseline differs from it in `primary`, in one of `cells` cells. An
/// unprotected arm of the experiment is not used: it may differ for a reason that Tithe does not know, and shows
/// nothing about the other arms.
pub(super) fn asymmetry(
    measured: &mut Measured<'_>,
    arms: &[ArmAnalysis],
    primary: Metric,
    cells: usize,
) -> Option<String> {
    let index = arms.iter().position(|arm| arm.aa)?;
    let alpha = std::mem::replace(&mut measured.alpha, sidak(DIFFERS, cells));
    let estimate = over_run::deciding(measured, index, primary);
    measured.alpha = alpha;
    let effect = estimate.filter(|estimate| measured.has_enough_frames(estimate))?.effect;
    effect.exceeds(0.0).then(|| {
        let name = &arms[index].name;
        format!("arm `{name}` protects nothing and still differs from the baseline: the set-up is not symmetric")
    })
}

/// Compares each figure of `arms` with the same figure of their A/A arm; does nothing without one.
pub(super) fn hold(arms: &mut [ArmAnalysis]) {
    let Some(control) = arms.iter().find(|arm| arm.aa).map(|arm| arm.estimates.clone()) else { return };
    for estimate in arms.iter_mut().filter(|arm| !arm.aa).flat_map(|arm| &mut arm.estimates) {
        if let Some(control) = control.iter().find(|control| control.name == estimate.name) {
            hold_against(estimate, control);
        }
    }
}

fn hold_against(estimate: &mut Estimate, control: &Estimate) {
    let doubtful = match estimate.verdict {
        Outcome::Gains => !is_below(&estimate.effect, &control.effect),
        // A control without an interval cannot show that it differs by as much.
        Outcome::Costs => control.effect.half_width().is_finite() && control.effect.holds(estimate.effect.estimate),
        Outcome::NoneFound | Outcome::TooNoisy => false,
    };
    if doubtful {
        estimate.flags.push(Flag::WithinControl);
    }
    if doubtful && estimate.verdict == Outcome::Gains {
        (estimate.verdict, estimate.text) = (Outcome::TooNoisy, no_more_than(&control.change()));
    }
    // An A/A arm with too few frames has no interval over all cells.
    let is_below_control =
        |effect: &Interval| control.over_run.as_ref().is_some_and(|control| is_below(effect, &control.effect));
    if let Some(over_run) = &mut estimate.over_run
        && over_run.verdict == Outcome::Gains
        && !is_below_control(&over_run.effect)
    {
        over_run.verdict = Outcome::TooNoisy;
        if !doubtful {
            estimate.flags.push(Flag::WithinControl);
        }
    }
}

/// `no more than the plain arm differs from itself: A/A −1.2 % [−2.0, −0.4]`
fn no_more_than(control: &Interval) -> String {
    let Interval { estimate, low, high } = *control;
    let of = |effect: f64| digits(percent(effect));
    let differs = match low.is_finite() && high.is_finite() {
        true => format!("A/A {} % [{}, {}]", of(estimate), of(low), of(high)),
        false => "A/A has not enough data".to_owned(),
    };
    format!("no more than the plain arm differs from itself: {differs}")
}

#[cfg(test)]
mod tests {
    use tithe_statistics::verdict::verdict;

    use super::*;
    use crate::{Figure, OverRun, assess::estimate::stated};

    /// An estimate of the interval, percent of the plain level, over one cell and over the run.
    fn of(low: f64, high: f64) -> Estimate {
        let ln = |percent: f64| (percent / 100.0).ln_1p();
        let effect = Interval { estimate: (ln(low) + ln(high)) / 2.0, low: ln(low), high: ln(high) };
        let (outcome, text) = verdict(effect, ln(3.0), "cost");
        let over_run = Some(OverRun { effect, difference: None, verdict: outcome });
        Estimate { over_run, ..stated(Figure::Metric(Metric::Net), "", effect, outcome, text, 30) }
    }

    fn held(mut estimate: Estimate, control: &Estimate) -> (Outcome, Outcome, bool, String) {
        hold_against(&mut estimate, control);
        let flagged = estimate.flags.contains(&Flag::WithinControl);
        (estimate.verdict, estimate.headline().verdict, flagged, estimate.text)
    }

    #[test]
    fn a_saving_must_lie_below_what_the_plain_arm_differs_from_itself() {
        let (gains, noisy) = (Outcome::Gains, Outcome::TooNoisy);
        let words = "no more than the plain arm differs from itself: A/A −1.2 % [−2.0, −0.40]";
        assert_eq!(held(of(-2.2, -1.0), &of(-2.0, -0.4)), (noisy, noisy, true, words.to_owned()));
        let (single, over_run, flagged, _) = held(of(-3.2, -2.1), &of(-2.0, -0.4));
        assert_eq!((single, over_run, flagged), (gains, gains, false));
        let (single, over_run, flagged, _) = held(of(-3.2, -2.0), &of(-2.0, -0.4));
        assert_eq!((single, over_run, flagged), (noisy, noisy, true), "it ends where the control begins");
        // A control without an interval confirms no saving.
        let unknown = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let (single, _, _, text) = held(of(-3.2, -2.1), &Estimate { effect: unknown, ..of(0.0, 0.1) });
        assert_eq!((single, text.ends_with("A/A has not enough data")), (noisy, true));
    }

    #[test]
    fn a_cost_stands_and_is_flagged_where_the_plain_arm_differs_from_itself_by_as_much() {
        let (single, over_run, flagged, text) = held(of(0.4, 1.2), &of(-0.5, 1.0));
        assert_eq!((single, over_run, flagged), (Outcome::Costs, Outcome::Costs, true));
        assert!(text.starts_with("costs"), "{text}");
        assert!(!held(of(2.0, 4.0), &of(-0.5, 1.0)).2);
        let unknown = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert!(!held(of(2.0, 4.0), &Estimate { effect: unknown, ..of(0.0, 0.1) }).2);
        assert_eq!(held(of(-1.0, 1.0), &of(-0.5, 1.0)).0, Outcome::NoneFound);
    }

    #[test]
    fn a_headline_is_held_against_the_control_of_all_cells() {
        let wide = of(-4.0, 3.0).over_run;
        let (single, over_run, flagged, _) = held(of(-3.2, -2.1), &Estimate { over_run: wide, ..of(-2.0, -0.4) });
        assert_eq!((single, over_run, flagged), (Outcome::Gains, Outcome::TooNoisy, true));
        let (single, over_run, ..) = held(of(-3.2, -2.1), &Estimate { over_run: None, ..of(-2.0, -0.4) });
        assert_eq!((single, over_run), (Outcome::Gains, Outcome::TooNoisy), "too few frames for all cells");
        // It is within the control in its own cell too; the flag appears only once.
        let mut both = of(-1.2, -0.6);
        hold_against(&mut both, &Estimate { over_run: wide, ..of(-2.0, -0.4) });
        assert_eq!(both.flags, [Flag::WithinControl]);
    }
}
