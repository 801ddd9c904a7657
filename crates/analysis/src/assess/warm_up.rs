//! A description of the load after each start before the first frame.

use std::collections::BTreeSet;

use tithe_model::{
    experiment::Arm,
    plan::{Cell, WarmUp},
    quantity,
    record::{Steadied, WarmedUp},
    steady::Steadiness,
};
use tithe_statistics::{
    mean,
    order::midmean,
    verdict::{digits, percent},
};

use crate::{
    ArmAnalysis, Estimate, Figure, Flag, Interval, Outcome, StartCourse,
    counted::{Unsteady, unsteady},
};

/// How the starts of `cell` were warmed up; empty without a warm-up.
pub(super) fn words(cell: &Cell, warm_ups: &[WarmedUp]) -> String {
    let at_most_ns = match cell.after_start {
        WarmUp::None => return String::new(),
        WarmUp::Fixed { ns } if cell.design.is_switched() => {
            return format!("{} at the beginning of each side", seconds(ns));
        }
        WarmUp::Fixed { ns: 0 } => return "none was asked for: measured from the start on".to_owned(),
        WarmUp::Fixed { ns } => return format!("{} of each arm, as asked for", seconds(ns)),
        WarmUp::UntilSteady { at_most_ns, .. } => at_most_ns,
    };
    let changing = warm_ups.iter().filter(|it| it.is_unsteady()).count();
    let unclear = warm_ups.iter().filter(|it| it.ended != Steadiness::Steady && !it.is_unsteady()).count();
    let mut parts: Vec<String> = steady_after(warm_ups).into_iter().collect();
    let of = |count: usize| {
        if warm_ups.len() == 1 { String::new() } else { format!(" in {count} of {} starts", warm_ups.len()) }
    };
    if changing > 0 {
        parts.push(format!("not steady within {}{}", seconds(at_most_ns), of(changing)));
    }
    if unclear > 0 {
        parts.push(format!("too noisy to tell within {}{}", seconds(at_most_ns), of(unclear)));
    }
    parts.join("; ")
}

/// `steady after 38 s (median of 6 starts; 31 to 52 s)`; `None` if no start became steady.
fn steady_after(warm_ups: &[WarmedUp]) -> Option<String> {
    let shown = lengths_of(warm_ups.iter().filter(|it| it.ended == Steadiness::Steady && !it.as_before))
        .map(|lengths| format!("steady after {lengths}"));
    let as_before = lengths_of(warm_ups.iter().filter(|it| it.as_before))
        .map(|lengths| format!("later starts as long as the first ones needed: {lengths}"));
    let parts: Vec<String> = shown.into_iter().chain(as_before).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `38 s (median of 6 starts; 31 to 52 s)`, `1 min 43 s (median of 4 starts; 84 s to 1 min 52 s)`; `None` without
/// warm-ups.
fn lengths_of<'w>(warm_ups: impl Iterator<Item = &'w WarmedUp>) -> Option<String> {
    let mut lengths: Vec<f64> = warm_ups.map(|it| it.duration_ns as f64 / 1e9).collect();
    lengths.sort_by(f64::total_cmp);
    let (shortest, longest) = (lengths.first()?, lengths.last()?);
    let median = (lengths[(lengths.len() - 1) / 2] + lengths[lengths.len() / 2]) / 2.0;
    let [median, shortest, longest] =
        [median, *shortest, *longest].map(|length| quantity::precise_duration(rounded(length)));
    Some(match lengths.len() {
        1 => median,
        starts => format!("{median} (median of {starts} starts; {} to {longest})", without_unit(&shortest, &longest)),
    })
}

/// `length` without its unit if `next`, which follows it, has the same: both are seconds and nothing else.
fn without_unit<'l>(length: &'l str, next: &str) -> &'l str {
    fn seconds(length: &str) -> Option<&str> {
        length.strip_suffix(" s").filter(|number| !number.contains(' '))
    }
    seconds(length).filter(|_| seconds(next).is_some()).unwrap_or(length)
}

/// A warning about the figures of `cell` if some start was still changing when its first frame began.
pub(super) fn warning(cell: &Cell, arms: &[Arm], warm_ups: &[WarmedUp]) -> Option<String> {
    let WarmUp::UntilSteady { at_most_ns, .. } = cell.after_start else { return None };
    let changing = || warm_ups.iter().filter(|it| it.is_unsteady());
    let most = changing().max_by(|one, other| one.change.abs().total_cmp(&other.change.abs()))?;
    let what = match most.quantity {
        Steadied::Operations => "operations per processor second",
        Steadied::Log => "bytes of log per operation",
    };
    let arm = arms.get(most.arm as usize).map_or("", |arm| &arm.name);
    let moved = if most.change < 0.0 { "fell" } else { "rose" };
    let size = percent(most.change).abs();
    let starts = match warm_ups.len() {
        1 => "the servers were not steady".to_owned(),
        all => format!("the servers were not steady in {} of {all} starts", changing().count()),
    };
    let counted = match unsteady(warm_ups) {
        Unsteady::Absent => return None,
        Unsteady::LeftOut => "they are left out",
        Unsteady::Alike => {
            "they count, because all arms changed alike, and answers within the change of their costs are withdrawn"
        }
        Unsteady::Counted => {
            "they count, because too few others are left, and answers within the change of their costs are withdrawn"
        }
    };
    Some(format!(
        "after a warm-up of {} {starts}: {what} of arm `{arm}` still {moved} by {} %; {counted}; set a longer \
         `warmup` in `[measure]`",
        seconds(at_most_ns),
        digits(size)
    ))
}

/// Withdraws each answer of `arms` that may come from starts that count although their servers were certainly still
/// changing, and flags every figure that has no answer beyond that. `starts` has the start of each frame that counts.
pub(super) fn hold(arms: &mut [ArmAnalysis], warm_ups: &[WarmedUp], starts: &[u32], margin: f64) {
    let Some(changing) = Changing::of(warm_ups, starts) else { return };
    for arm in arms {
        let left = changing.left(&arm.course);
        let vary = arm.estimates.iter_mut().filter(|estimate| !matches!(estimate.name, Figure::Size(_)));
        let held = vary.filter(|estimate| !changing.is_alike || estimate.headline().verdict != Outcome::TooNoisy);
        held.for_each(|estimate| hold_against(estimate, left, margin));
    }
}

/// Starts that count although their servers were certainly still changing when their first frame began. Servers may
/// change alike, so what decides is how far the cost itself moved. That arms changed alike was shown to a tenth, and
/// answers are finer than that; only answers are flagged then.
pub(crate) struct Changing {
    is_alike: bool,
    /// The largest change of a server, for costs whose course is not known; natural-log ratio.
    largest: f64,
    starts: BTreeSet<u32>,
    /// Their largest weight in a cost.
    weight: f64,
}

impl Changing {
    /// Those of `warm_ups`; `None` if there are none, or if they are left out. `starts` has the start of each frame
    /// that counts.
    pub(crate) fn of(warm_ups: &[WarmedUp], starts: &[u32]) -> Option<Self> {
        let is_alike = match unsteady(warm_ups) {
            Unsteady::Absent | Unsteady::LeftOut => return None,
            Unsteady::Alike => true,
            Unsteady::Counted => false,
        };
        let changing = || warm_ups.iter().filter(|it| it.is_unsteady());
        let largest = if is_alike { 0.0 } else { changing().map(|it| it.change.abs()).fold(0.0, f64::max) };
        let changing: BTreeSet<u32> = changing().map(|it| it.start).collect();
        let weight = weight_of(&changing, starts);
        Some(Self { is_alike, largest, starts: changing, weight })
    }

    /// How far a cost with this `course` may be off because of them, natural-log ratio.
    pub(crate) fn left(&self, course: &[StartCourse]) -> f64 {
        self.weight * moved_within(course, &self.starts).unwrap_or(self.largest)
    }
}

/// The largest weight that `some` starts may have in a cost over frames of these `starts`: their share of the frames,
/// or of the starts. A start without frames has none, as the last one of a run that was killed after its warm-up.
fn weight_of(some: &BTreeSet<u32>, starts: &[u32]) -> f64 {
    let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
    let each: BTreeSet<u32> = starts.iter().copied().collect();
    let of_frames = share(starts.iter().filter(|start| some.contains(start)).count(), starts.len());
    of_frames.max(share(each.intersection(some).count(), each.len()))
}

/// How far a cost moved from the first half of the frames of `starts` to the second, natural-log ratio: the size of the
/// mean over the starts. Where a change falls to a third from one half to the next, the mean of all frames is off by as
/// much. `None` if no start has two frames.
fn moved_within(course: &[StartCourse], starts: &BTreeSet<u32>) -> Option<f64> {
    let of_starts = course.iter().filter(|it| starts.contains(&it.start) && it.effects.len() >= 2);
    let moved = of_starts.map(|start| {
        let (first, second) = start.effects.split_at(start.effects.len() / 2);
        midmean(second) - midmean(first)
    });
    let moved: Vec<f64> = moved.collect();
    (!moved.is_empty()).then(|| mean(&moved).abs())
}

/// True if the answer `verdict` of the interval `effect` stands also if the cost is off by `left`.
pub(crate) fn stands(effect: &Interval, verdict: Outcome, left: f64, margin: f64) -> bool {
    match verdict {
        Outcome::Costs => effect.low > left,
        Outcome::Gains => effect.high < -left,
        Outcome::NoneFound => effect.high + left <= margin,
        Outcome::TooNoisy => false,
    }
}

fn hold_against(estimate: &mut Estimate, left: f64, margin: f64) {
    let stands = |effect: &Interval, verdict: Outcome| stands(effect, verdict, left, margin);
    let has_answer = stands(&estimate.effect, estimate.verdict);
    let mut is_withdrawn = !has_answer;
    if let Some(over_run) = &mut estimate.over_run
        && !stands(&over_run.effect, over_run.verdict)
    {
        is_withdrawn |= over_run.verdict != Outcome::TooNoisy;
        over_run.verdict = Outcome::TooNoisy;
    }
    if is_withdrawn {
        estimate.flags.push(Flag::NotSteady);
    }
    if !has_answer && estimate.verdict != Outcome::TooNoisy {
        estimate.verdict = Outcome::TooNoisy;
        estimate.text = format!("within the {} % by which it may still have changed", digits(percent(left)));
    }
}

fn seconds(ns: u64) -> String {
    quantity::precise_duration(rounded(ns as f64 / 1e9))
}

/// Whole seconds; tenths below ten.
fn rounded(seconds: f64) -> f64 {
    if seconds < 10.0 { (10.0 * seconds).round() / 10.0 } else { seconds.round() }
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::{Arrivals, Design, Metric};
    use tithe_model::plan::Starts;

    use super::*;
    use crate::{OverRun, assess::estimate::stated};

    fn cell(after_start: WarmUp) -> Cell {
        Cell {
            id: "a".to_owned(),
            workload: 0,
            resources: 0,
            clients: 1,
            arrivals: Arrivals::Closed,
            reconnect_every: None,
            seed: 1,
            slot_ns: 1,
            settling_ns: 0,
            warmup_ns: 0,
            blocks: 1,
            frames_max: 1,
            epochs: 1,
            design: Design::Interleaved,
            starts: Starts::Once,
            after_start,
            pinned: true,
            free_frames: 0,
            program: false,
            gaps: false,
        }
    }

    fn warmed_up(start: u32, duration_s: f64, ended: Steadiness, quantity: Steadied, change: f64) -> WarmedUp {
        WarmedUp {
            start,
            duration_ns: (duration_s * 1e9) as u64,
            windows: 12,
            ended,
            quantity,
            arm: 1,
            change,
            as_before: false,
        }
    }

    #[test]
    fn warm_ups_in_words() {
        use Steadiness::{Changing, Steady, Unclear};
        let until_steady = WarmUp::UntilSteady { window_ns: 1, at_most_ns: 120_000_000_000 };
        let check = |after_start, ended: &[(f64, Steadiness, f64)]| {
            let record = |(start, (duration_s, ended, change)): (usize, &(f64, Steadiness, f64))| {
                let quantity = if *change < 0.0 { Steadied::Log } else { Steadied::Operations };
                warmed_up(start as u32, *duration_s, *ended, quantity, *change)
            };
            let warm_ups: Vec<WarmedUp> = ended.iter().enumerate().map(record).collect();
            let arm = |name: &str| Arm::new(name, Vec::new());
            let cell = cell(after_start);
            let warning = warning(&cell, &[arm("plain"), arm("tls")], &warm_ups);
            (words(&cell, &warm_ups), warning.unwrap_or_default())
        };
        let quiet = |words: &str| (words.to_owned(), String::new());
        assert_eq!(check(WarmUp::None, &[]), quiet(""));
        assert_eq!(check(WarmUp::Fixed { ns: 0 }, &[]), quiet("none was asked for: measured from the start on"));
        assert_eq!(check(WarmUp::Fixed { ns: 20_000_000_000 }, &[]), quiet("20 s of each arm, as asked for"));
        assert_eq!(check(until_steady, &[]), quiet(""));
        assert_eq!(check(until_steady, &[(4.24, Steady, 0.0)]), quiet("steady after 4.2 s"));
        let three = [(52.3, Steady, 0.01), (31.0, Steady, 0.0), (38.4, Steady, -0.02)];
        assert_eq!(check(until_steady, &three), quiet("steady after 38 s (median of 3 starts; 31 to 52 s)"));
        let before = |start| WarmedUp { as_before: true, ..warmed_up(start, 3.0, Steady, Steadied::Log, 0.0) };
        let first = warmed_up(0, 31.0, Steady, Steadied::Log, 0.0);
        assert_eq!(
            words(&cell(until_steady), &[first, before(1), before(2)]),
            "steady after 31 s, later starts as long as the first ones needed: 3 s (median of 2 starts; 3 to 3 s)"
        );
        let changed = warmed_up(0, 31.0, Changing, Steadied::Log, -0.25);
        let alike = [changed, before(1), before(2), before(3), before(4)];
        assert_eq!(unsteady(&alike), Unsteady::Alike);
        let told = warning(&cell(until_steady), &[], &alike).expect("one changed");
        assert!(told.contains("they count, because all arms changed alike"), "{told}");
        let noisy = [(120.4, Unclear, 0.2), (31.0, Steady, 0.0)];
        let told = "steady after 31 s; too noisy to tell within 2 min in 1 of 2 starts";
        assert_eq!(check(until_steady, &noisy), quiet(told));
        let (told, warning) = check(until_steady, &[(121.0, Changing, 0.2), (120.0, Changing, -0.15)]);
        assert_eq!(told, "not steady within 2 min in 2 of 2 starts");
        let expected = "after a warm-up of 2 min the servers were not steady in 2 of 2 starts: operations per processor \
                        second of arm `tls` still rose by 22 %; they count, because too few others are left, and \
                        answers within the change of their costs are withdrawn; set a longer `warmup` in `[measure]`";
        assert_eq!(warning, expected);
        let mut starts = vec![(240.0, Changing, 0.2)];
        starts.extend([(31.0, Steady, 0.0); 4]);
        assert!(check(until_steady, &starts).1.contains("not steady in 1 of 5 starts"));
        assert!(check(until_steady, &starts).1.contains("they are left out"));
        let (told, warning) = check(until_steady, &[(121.0, Changing, -0.2)]);
        assert_eq!(told, "not steady within 2 min");
        assert!(warning.contains("the servers were not steady: bytes of log per operation of arm `tls` still fell"));
        let four = [(40.0, Steady, 0.0), (10.0, Steady, 0.0), (50.0, Steady, 0.0), (22.0, Steady, 0.0)];
        assert_eq!(check(until_steady, &four), quiet("steady after 31 s (median of 4 starts; 10 to 50 s)"));
        // Of two units each length has its own: 84 to 1 min 52 s would read as minutes.
        let long = [(84.0, Steady, 0.0), (112.0, Steady, 0.0), (96.0, Steady, 0.0), (110.0, Steady, 0.0)];
        let told = "steady after 1 min 43 s (median of 4 starts; 84 s to 1 min 52 s)";
        assert_eq!(check(until_steady, &long), quiet(told));
        let short = [(0.9, Steady, 0.0), (0.6, Steady, 0.0)];
        assert_eq!(check(until_steady, &short), quiet("steady after 800 ms (median of 2 starts; 600 ms to 900 ms)"));
        let fixed = cell(WarmUp::Fixed { ns: 20_000_000_000 });
        let switched = Cell { design: Design::Switched { frames_a_side: 3 }, ..fixed };
        assert_eq!(words(&switched, &[]), "20 s at the beginning of each side");
    }

    #[test]
    fn a_cost_moves_from_the_first_half_of_the_starts_asked_for_to_the_second() {
        let course = |start: u32, effects: &[f64]| StartCourse { start, effects: effects.to_vec() };
        let moved = |course: &[StartCourse], starts: &[u32]| moved_within(course, &starts.iter().copied().collect());
        let all = [course(0, &[0.3, 0.5, 0.2, 0.2]), course(1, &[0.1, 0.3]), course(2, &[0.4]), course(3, &[0.2, 0.3])];
        let close = |found: Option<f64>, expected: f64| assert!((found.expect("known") - expected).abs() < 1e-12);
        close(moved(&all, &[0]), 0.2);
        close(moved(&all, &[1]), 0.2);
        // Starts that moved in opposite directions show no common change.
        close(moved(&all, &[0, 1]), 0.0);
        close(moved(&all, &[0, 2, 3]), 0.05);
        assert_eq!(moved(&all, &[2, 4]), None);
    }

    #[test]
    fn starts_weigh_by_the_frames_that_they_have() {
        let weight = |starts: &[u32]| weight_of(&BTreeSet::from([0, 3]), starts);
        assert_eq!([weight(&[0, 0, 1, 1]), weight(&[1, 2, 4]), weight(&[])], [0.5, 0.0, 0.0]);
        // The second start was warmed up, and the run was killed before its first frame.
        assert_eq!(weight(&[0, 0, 0]), 1.0);
        // A start may weigh as much as any other, or by its frames.
        assert_eq!([weight(&[0, 0, 0, 1]), weight(&[0, 1, 1, 1])], [0.75, 0.5]);
    }

    #[test]
    fn an_answer_stands_beyond_what_the_cost_may_still_have_changed() {
        let held = |verdict: Outcome, low: f64, high: f64, left: f64| {
            let effect = Interval { estimate: (low + high) / 2.0, low, high };
            let over_run = Some(OverRun { effect, difference: None, verdict });
            let stated = stated(Figure::Metric(Metric::Net), "", effect, verdict, "as it was".to_owned(), 30);
            let mut estimate = Estimate { over_run, ..stated };
            hold_against(&mut estimate, left, 0.03);
            assert_eq!(estimate.over_run.expect("given").verdict, estimate.verdict);
            (estimate.verdict, estimate.flags == [Flag::NotSteady], estimate.text)
        };
        let kept = |verdict: Outcome| (verdict, false, "as it was".to_owned());
        let withdrawn = (Outcome::TooNoisy, true, "within the 5.1 % by which it may still have changed".to_owned());
        assert_eq!(held(Outcome::Costs, 0.06, 0.09, 0.05), kept(Outcome::Costs));
        assert_eq!(held(Outcome::Costs, 0.05, 0.09, 0.05), withdrawn);
        assert_eq!(held(Outcome::Gains, -0.09, -0.06, 0.05), kept(Outcome::Gains));
        assert_eq!(held(Outcome::Gains, -0.09, -0.05, 0.05), withdrawn);
        assert_eq!(held(Outcome::NoneFound, -0.01, 0.01, 0.02), kept(Outcome::NoneFound));
        assert_eq!(held(Outcome::NoneFound, -0.01, 0.01, 0.05), withdrawn);
        let noisy = held(Outcome::TooNoisy, -0.01, 0.09, 0.0);
        assert_eq!(noisy, (Outcome::TooNoisy, true, "as it was".to_owned()), "no answer, so its interval is not one");
    }

    #[test]
    fn an_answer_over_all_cells_is_withdrawn_with_the_flag_that_says_why() {
        let held = |low: f64, verdict: Outcome| {
            let [own, wide] = [0.06, low].map(|low| Interval { estimate: 0.09, low, high: 0.12 });
            let over_run = Some(OverRun { effect: wide, difference: None, verdict });
            let stated = stated(Figure::Metric(Metric::Net), "", own, Outcome::Costs, "costs".to_owned(), 30);
            let mut estimate = Estimate { over_run, ..stated };
            hold_against(&mut estimate, 0.05, 0.03);
            assert_eq!(estimate.verdict, Outcome::Costs);
            (estimate.headline().verdict, estimate.flags == [Flag::NotSteady])
        };
        assert_eq!(held(0.055, Outcome::Costs), (Outcome::Costs, false));
        assert_eq!(held(0.04, Outcome::Costs), (Outcome::TooNoisy, true));
        assert_eq!(held(-0.01, Outcome::TooNoisy), (Outcome::TooNoisy, false), "all cells alone tell less");
    }
}
