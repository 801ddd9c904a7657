//! Usage of servers without clients, from the windows of an idle period.

use tithe_model::{idle::IdleWindow, record::Counters};
use tithe_statistics::{
    inference::t_interval,
    mean,
    starts::{IntervalOptions, KnownSpread},
};

use crate::{ArmAnalysis, CONFIDENCE, Estimate, Figure, IdleUse, Interval, Outcome};

/// Minimum number of windows for an interval.
const WINDOWS_MIN: usize = 4;

/// Usage of the server of each arm over `windows`; `None` if unknown. Differences from the baseline hold simultaneously
/// for all arms; those of processor time are widened by the `known` spread of starts.
pub(super) fn idle(windows: &[IdleWindow], arms: usize, known: Option<KnownSpread>) -> Vec<Option<IdleUse>> {
    let alpha = (1.0 - CONFIDENCE) / arms.saturating_sub(1).max(1) as f64;
    let of_arm = |arm: usize| {
        let cpu = per_minute(windows, arm, |counters| counters.server_cpu_ns)?;
        let written = per_minute(windows, arm, |counters| counters.written_bytes);
        let more = |own: &[f64], read| {
            let plain = per_minute(windows, 0, read).filter(|_| arm > 0)?;
            let pairs = own.iter().zip(&plain);
            Some(t_interval(&pairs.map(|(own, plain)| own - plain).collect::<Vec<_>>(), alpha))
        };
        // All windows are of one start, so they do not show how much starts differ.
        let over_starts = |more: Interval| {
            let asked = IntervalOptions { alpha, by_decision: false, known }.at_level(mean(&cpu));
            asked.known.map_or(more, |known| more.widened(known.at_cost(more.estimate).widening(1, alpha)))
        };
        let to_us = |interval: Interval| interval.in_unit(1e3);
        Some(IdleUse {
            windows: cpu.len(),
            seconds: windows.iter().map(|window| window.duration_ns as f64 / 1e9).sum(),
            cpu_us: to_us(t_interval(&cpu, 1.0 - CONFIDENCE)),
            more_cpu_us: more(&cpu, |counters| counters.server_cpu_ns).map(over_starts).map(to_us),
            written_bytes: written.as_ref().map(|written| t_interval(written, 1.0 - CONFIDENCE)),
            more_written_bytes: written.and_then(|own| more(&own, |counters| counters.written_bytes)),
            memory_bytes: windows.last()?.arms.get(arm)?.memory_bytes,
            more_us_per_op: None,
        })
    };
    if windows.len() < WINDOWS_MIN { vec![None; arms] } else { (0..arms).map(of_arm).collect() }
}

/// The value of `read` for arm `arm`, per minute, for each window; `None` if any window lacks it.
fn per_minute(windows: &[IdleWindow], arm: usize, read: fn(&Counters) -> Option<u64>) -> Option<Vec<f64>> {
    let of = |window: &IdleWindow| Some(read(window.arms.get(arm)?)? as f64 * 60e9 / window.duration_ns as f64);
    windows.iter().map(of).collect()
}

/// An idle cost above this share of the deciding figure is reported with that figure. Where no cost was found, it is a
/// share of the highest cost that is possible.
const REPORTED_ABOVE: f64 = 0.1;

/// Computes how much more an operation would cost if it included the additional usage of the idle server of `arm` over
/// the plain one. Only set if that usage is certain and more than a tenth of the deciding figure.
pub(super) fn weigh(arm: &mut ArmAnalysis) {
    let deciding = arm.primary().filter(|it| it.unit.starts_with("µs")).and_then(most);
    let rate = [Figure::Operations, Figure::Throughput]
        .iter()
        .find_map(|name| arm.levels.iter().find(|level| level.name == *name && level.unit == "op/s"))
        .map(|level| level.value)
        .filter(|rate| *rate > 0.0);
    let (Some(idle), Some(deciding_us), Some(rate)) = (&mut arm.idle, deciding, rate) else { return };
    let Some(more) = idle.more_cpu_us.filter(|more| more.low > 0.0) else { return };
    let per_op_us = more.estimate / 60.0 / rate;
    idle.more_us_per_op = Some(per_op_us).filter(|per_op_us| *per_op_us > REPORTED_ABOVE * deciding_us.max(0.0));
}

/// The cost by `estimate`, or the highest that is possible where none was found.
fn most(estimate: &Estimate) -> Option<f64> {
    let possible = estimate.difference.filter(|_| estimate.verdict != Outcome::Costs).map(|difference| difference.high);
    estimate.amount().map(|amount| possible.map_or(amount, |possible| possible.max(amount)))
}

#[cfg(test)]
mod tests {
    use tithe_statistics::distribution::t_upper;

    use super::*;
    use crate::report::sample;

    /// Windows of a second in which the plain and the protected server used the given ms; nothing else is known.
    fn windows(ms: &[[u64; 2]]) -> Vec<IdleWindow> {
        let counters = |ms: &u64| Counters { server_cpu_ns: Some(ms * 1_000_000), ..Counters::default() };
        let window = |ms: &[u64; 2]| IdleWindow { duration_ns: 1_000_000_000, arms: ms.iter().map(counters).collect() };
        ms.iter().map(window).collect()
    }

    #[test]
    fn windows_become_a_minute_and_are_compared_one_by_one() {
        // Both servers do more in the last window; the difference is the same.
        let seen = idle(&windows(&[[1, 11], [1, 11], [1, 11], [1, 11], [6, 16]]), 2, None);
        let (plain, protected) = (seen[0].as_ref().expect("seen"), seen[1].as_ref().expect("seen"));
        assert_eq!((plain.cpu_us.estimate, plain.more_cpu_us), (120_000.0, None));
        assert!(plain.cpu_us.low < 120_000.0 && plain.written_bytes.is_none());
        let more = protected.more_cpu_us.expect("compared");
        assert_eq!((more.estimate, more.low, more.high), (600_000.0, 600_000.0, 600_000.0));
        assert_eq!(idle(&windows(&[[1, 2]; 3]), 2, None), [None, None]);
    }

    #[test]
    fn differences_hold_for_the_next_start_too() {
        let known = |spread: f64| Some(KnownSpread { spread, degrees: 1e6, of_cost: None });
        let of = |known| idle(&windows(&[[1, 11]; 4]), 2, known)[1].clone().expect("seen");
        // Starts differ by 1 % of the 660 ms a minute that the protected server uses.
        let more = of(known(0.01)).more_cpu_us.expect("compared");
        assert!((more.half_width() - 1.96 * 6_600.0).abs() < 10.0, "{more:?}");
        assert_eq!(of(None).more_cpu_us.expect("compared").half_width(), 0.0);
        assert_eq!(of(known(0.01)).cpu_us, of(None).cpu_us);
    }

    #[test]
    fn differences_hold_for_all_arms_together() {
        let of = |arms: u64| {
            let counters = |ms: u64| Counters {
                server_cpu_ns: Some(ms * 1_000_000),
                written_bytes: Some(100 * ms),
                ..Counters::default()
            };
            let window = |number: u64| IdleWindow {
                duration_ns: 1_000_000_000,
                arms: (0..arms).map(|arm| counters(10 * arm + (1 + arm) * (number % 2))).collect(),
            };
            let windows: Vec<IdleWindow> = (0..WINDOWS_MIN as u64).map(window).collect();
            let seen = idle(&windows, arms as usize, None)[1].clone().expect("four windows are enough");
            (seen.more_cpu_us.expect("compared"), seen.more_written_bytes.expect("compared"))
        };
        let ((two, written), (three, _)) = (of(2), of(3));
        // 10.5 ms and 1,050 bytes a second.
        assert_eq!((two.estimate, written.estimate), (630_000.0, 63_000.0));
        let wider = t_upper(0.0125, 3.0) / t_upper(0.025, 3.0);
        assert!((three.half_width() / two.half_width() - wider).abs() < 1e-6, "{two:?} {three:?}");
    }

    #[test]
    fn idle_cost_is_told_above_a_tenth_of_the_deciding_figure() {
        let mut arm = sample::open_loop().cells.swap_remove(0).arms.swap_remove(1);
        let deciding = arm.primary().and_then(Estimate::amount).expect("a deciding figure in µs");
        let rate = arm.levels.iter().find(|level| level.unit == "op/s").expect("a rate").value;
        let mut told = |share: f64, low: f64| {
            let estimate = share * deciding * rate * 60.0;
            arm.idle.as_mut().expect("watched").more_cpu_us = Some(Interval { estimate, low, high: 2.0 * estimate });
            weigh(&mut arm);
            arm.idle.as_ref().and_then(|idle| idle.more_us_per_op)
        };
        assert!(told(0.11, 1.0).is_some_and(|per_op| (per_op / deciding - 0.11).abs() < 1e-9));
        assert_eq!(told(0.09, 1.0), None);
        assert_eq!(told(0.11, -1.0), None, "it may be none");
        // The saving of 1 µs may be a cost of 2 µs.
        let mut none_found = arm.primary().expect("a deciding figure").clone();
        none_found.difference = Some(Interval { estimate: -1.0, low: -4.0, high: 2.0 });
        none_found.verdict = Outcome::NoneFound;
        assert_eq!(most(&none_found), Some(2.0));
        none_found.verdict = Outcome::Costs;
        assert_eq!(most(&none_found), Some(-1.0));
    }
}
