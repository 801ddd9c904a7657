//! Which starts and savings count, in the report and while a run is measured.

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{experiment::Metric, plan::STARTS_MIN, record::WarmedUp};

use crate::Interval;

/// How starts count whose servers were certainly still changing when their first frame began. Where they do, answers
/// within the change of their costs are withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsteady {
    /// There are none.
    Absent,
    /// They do not: enough others are left to estimate start-to-start variation.
    LeftOut,
    /// They do, because warm-ups have shown that all arms change in the same way: further ones could be shorter.
    Alike,
    /// They do, because too few others are left.
    Counted,
}

/// The `warm_ups` of starts with frames, which have these `starts`. A start without frames counts for nothing, such as
/// one that was only profiled. A run that was killed between a warm-up and its first frame starts again with the same
/// number, so the last of several counts.
pub fn with_frames(warm_ups: &[WarmedUp], starts: impl Iterator<Item = u32>) -> Vec<WarmedUp> {
    let starts: BTreeSet<u32> = starts.collect();
    let last: BTreeMap<u32, &WarmedUp> = warm_ups.iter().map(|it| (it.start, it)).collect();
    last.into_values().filter(|it| starts.contains(&it.start)).cloned().collect()
}

/// How the unsteady ones of `warm_ups` count.
pub fn unsteady(warm_ups: &[WarmedUp]) -> Unsteady {
    let changing = warm_ups.iter().filter(|it| it.is_unsteady()).count();
    match () {
        () if changing == 0 => Unsteady::Absent,
        () if warm_ups.iter().any(|it| it.as_before) => Unsteady::Alike,
        () if warm_ups.len() - changing >= STARTS_MIN as usize => Unsteady::LeftOut,
        () => Unsteady::Counted,
    }
}

/// The starts whose frames do not count, because their servers were not steady.
pub fn left_out(warm_ups: &[WarmedUp]) -> BTreeSet<u32> {
    match unsteady(warm_ups) {
        Unsteady::LeftOut => warm_ups.iter().filter(|it| it.is_unsteady()).map(|it| it.start).collect(),
        Unsteady::Absent | Unsteady::Alike | Unsteady::Counted => BTreeSet::new(),
    }
}

/// True if the metric includes the time that an operation waits.
pub fn holds_waiting(metric: Metric) -> bool {
    matches!(metric, Metric::Net | Metric::Time)
}

/// True if `saving` may be one of waiting alone, or is certainly larger than that of processor time: then waiting fell
/// by more than the work explains. Both are natural-log ratios.
pub fn is_of_waiting(saving: &Interval, cpu: &Interval) -> bool {
    cpu.high >= 0.0 || saving.high < cpu.low
}

/// True if all of `effect` lies below all of `control`; an unknown interval is below nothing.
pub fn is_below(effect: &Interval, control: &Interval) -> bool {
    effect.high < control.low
}

#[cfg(test)]
mod tests {
    use tithe_model::{record::Steadied, steady::Steadiness};

    use super::*;

    /// Every combination of unsteady, steady and shortened warm-ups has one answer, by which starts are left out.
    #[test]
    fn starts_that_were_not_steady_count_in_one_of_four_ways() {
        let of = |changing: u32, steady: u32, as_before: bool| {
            let warm_up = |start: u32| WarmedUp {
                ended: if start < changing { Steadiness::Changing } else { Steadiness::Steady },
                as_before: as_before && start >= changing,
                ..warmed_up(start)
            };
            let warm_ups: Vec<WarmedUp> = (0..changing + steady).map(warm_up).collect();
            (unsteady(&warm_ups), left_out(&warm_ups).len())
        };
        for (steady, as_before) in [(0, false), (3, false), (4, false), (4, true)] {
            assert_eq!(of(0, steady, as_before), (Unsteady::Absent, 0), "{steady} {as_before}");
        }
        assert_eq!([of(2, 0, false), of(2, 3, false)], [(Unsteady::Counted, 0); 2]);
        assert_eq!([of(2, 4, false), of(2, 9, false)], [(Unsteady::LeftOut, 2); 2]);
        assert_eq!([of(2, 3, true), of(2, 4, true)], [(Unsteady::Alike, 0); 2]);
    }

    #[test]
    fn a_saving_is_of_waiting_unless_the_processor_saves_as_much() {
        let interval = |low: f64, high: f64| Interval { estimate: (low + high) / 2.0, low, high };
        let saving = interval(-0.4, -0.3);
        for (low, high, is_it) in [
            (-0.4, -0.1, false),
            (-0.3, -0.2, false),
            (-0.29, -0.2, true),
            (-0.6, -0.5, false),
            (-0.4, 0.0, true),
            (-0.1, 0.1, true),
            (f64::NEG_INFINITY, f64::INFINITY, true),
        ] {
            assert_eq!(is_of_waiting(&saving, &interval(low, high)), is_it, "{low} {high}");
        }
        let hold = [Metric::Net, Metric::Time, Metric::Cpu, Metric::ClientCpu, Metric::ServerCpu].map(holds_waiting);
        assert_eq!(hold, [true, true, false, false, false]);
    }

    #[test]
    fn the_last_warm_up_of_each_start_with_frames_counts() {
        let warm_up = |start: u32, windows: u32| WarmedUp { windows, ..warmed_up(start) };
        let all = [warm_up(2, 1), warm_up(0, 2), warm_up(2, 3), warm_up(1, 4)];
        let counted = with_frames(&all, [2, 2, 0, 5].into_iter());
        assert_eq!(counted.iter().map(|it| (it.start, it.windows)).collect::<Vec<_>>(), [(0, 2), (2, 3)]);
    }

    /// A warm-up that ended steady.
    fn warmed_up(start: u32) -> WarmedUp {
        WarmedUp {
            start,
            duration_ns: 1,
            windows: 12,
            ended: Steadiness::Steady,
            quantity: Steadied::Operations,
            arm: 0,
            change: 0.2,
            as_before: false,
        }
    }
}
