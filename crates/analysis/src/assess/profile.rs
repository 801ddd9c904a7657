//! Where costs come from: the profiled frames of a cell, by side, component and function.
//!
//! Samples show how processor time was used, but not how much it was, because sampling itself takes some. So the
//! samples of a frame's clients and servers are scaled together to the time that the kernel counted for them in the
//! adjacent frame without sampling. A slow phase of the machine affects both arms of a frame, so each frame is scaled
//! to the level of the measured frames: its parts are shares of the plain arm's processor time in the frame, times that
//! time in the measured frames. In each frame a part has a difference, protected less plain. The result is the mean of
//! the differences over the starts, or over the frames if starts are few, with Student's interval. Means add up, so the
//! parts of a cost add up to the cost.
//!
//! There are many parts. Named parts are chosen so that at most one in twenty is expected to be no real difference
//! (Benjamini and Hochberg 1995); the others are summed up.

mod components;

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{
    experiment::Metric,
    profile::{Function, ProfiledArm, ProfiledFrame, Side, Stack},
    records::Records,
};
use tithe_statistics::{
    distribution::t_two_sided,
    inference::{discoveries, t_interval},
    order::signed_rank_p,
};

use crate::{
    ArmAnalysis, CONFIDENCE, Figure, Flag, Interval,
    counted::left_out,
    profiled::{ArmProfile, CellProfile, Part, STARTS_MIN, StackPart},
};

/// A function with fewer samples, on both arms together, is ignored.
const SAMPLES_MIN: u64 = 10;

/// Stacks that take a smaller share of an operation's processor time are summed up.
const STACK_MIN: f64 = 0.0005;

/// Expected share of named parts without a real difference.
const FALSE_DISCOVERIES: f64 = 0.05;

/// The result of the profiled frames of cell `index`, whose `arms` are assessed, without starts that its figures leave
/// out; `None` if none was profiled.
pub(super) fn profile(records: &Records, index: usize, arms: &[ArmAnalysis]) -> Option<CellProfile> {
    let unsteady = left_out(&records.cells[index].warm_ups);
    let counts = |frame: &&ProfiledFrame| frame.cell as usize == index && !unsteady.contains(&frame.start);
    let all: Vec<&ProfiledFrame> = records.profile.iter().filter(counts).collect();
    let period_ns = all.iter().find(|frame| frame.sampled)?.period_ns;
    let pairs = pairs(&all);
    let invalid = all.iter().filter_map(|frame| Some((frame.frame, frame.invalid.clone()?))).collect();
    let of_arm =
        |(number, arm): (usize, &ArmAnalysis)| of_arm(&pairs, number, (&arm.name, &arm.protections), cost_of(arm));
    Some(CellProfile {
        frames: pairs.len(),
        starts: starts(&pairs).len(),
        invalid,
        samples: pairs.iter().flat_map(|pair| &pair.sampled.stacks).map(|stack| stack.samples).sum(),
        lost: all.iter().map(|frame| frame.lost).sum(),
        elsewhere: pairs.iter().map(|pair| pair.sampled.elsewhere).sum(),
        rate: 1e9 / period_ns as f64,
        overhead: overhead(&pairs),
        arms: arms.iter().enumerate().skip(1).map(of_arm).collect(),
    })
}

/// The cost of `arm` in processor time of client and server; `None` if the server's time was not seen, because the
/// parts of a cost without it are not those of the whole.
fn cost_of(arm: &ArmAnalysis) -> Option<Cost> {
    let cpu = arm.estimates.iter().find(|estimate| estimate.name == Figure::Metric(Metric::Cpu))?;
    let is_whole = !cpu.flags.contains(&Flag::ServerUnseen);
    Some(Cost { us: cpu.difference?, plain_us: cpu.levels?.0 }).filter(|_| is_whole)
}

/// True if every arm of the frame has operations.
fn is_used(frame: &ProfiledFrame) -> bool {
    frame.invalid.is_none() && frame.arms.iter().all(|arm| arm.operations > 0)
}

/// How much more processor time of client and server an operation took in sampled frames than in the adjacent ones
/// without sampling, as a share of it.
fn overhead(pairs: &[Pair<'_>]) -> Option<Interval> {
    let share = |pair: &Pair<'_>| {
        let ratio = |(sampled, other): (&ProfiledArm, &ProfiledArm)| (sampled.cpu_per_op() / other.cpu_per_op()).ln();
        let ratios: Vec<f64> = pair.sampled.arms.iter().zip(&pair.other.arms).map(ratio).collect();
        tithe_statistics::mean(&ratios).exp() - 1.0
    };
    let shares: Vec<f64> = pairs.iter().map(share).collect();
    (shares.len() > 1).then(|| mean(&shares))
}

/// The key of a part of a cost: side, component, function; coarser parts leave some of it empty.
type Key = (Side, String, String);

/// The values of a part: one for each start, or for each frame if starts are few.
#[derive(Default)]
struct Series {
    /// µs per operation of the plain arm, in order.
    plain: Vec<f64>,
    /// The same of the protected arm.
    protected: Vec<f64>,
    samples: u64,
}

impl Series {
    fn add(&mut self, (number, count): (usize, usize), protected: bool, us: f64, samples: u64) {
        self.plain.resize(count, 0.0);
        self.protected.resize(count, 0.0);
        let of_arm = if protected { &mut self.protected } else { &mut self.plain };
        of_arm[number] += us;
        self.samples += samples;
    }

    fn differences(&self) -> Vec<f64> {
        self.protected.iter().zip(&self.plain).map(|(protected, plain)| protected - plain).collect()
    }
}

/// The mean with its interval.
fn mean(values: &[f64]) -> Interval {
    t_interval(values, 1.0 - CONFIDENCE)
}

/// A sampled frame, and the adjacent one without sampling: samples show how processor time was used, the other frame
/// how much it is without the cost of sampling.
struct Pair<'a> {
    sampled: &'a ProfiledFrame,
    other: &'a ProfiledFrame,
}

/// The pairs of `frames` that count, in the order of time: consecutive frames, one of which was sampled. A run that was
/// interrupted may have left half a pair.
fn pairs<'a>(frames: &[&'a ProfiledFrame]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    let mut left = frames;
    while let [one, other, rest @ ..] = left {
        if one.sampled == other.sampled || one.frame + 1 != other.frame {
            left = &left[1..];
            continue;
        }
        if is_used(one) && is_used(other) {
            let (sampled, other) = if one.sampled { (*one, *other) } else { (*other, *one) };
            pairs.push(Pair { sampled, other });
        }
        left = rest;
    }
    pairs
}

/// The cost of an arm in processor time, from the measured frames.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Protected less plain, µs per operation.
    us: Interval,
    /// Processor time of an operation on the plain arm, µs.
    plain_us: f64,
}

/// The starts of the `pairs`.
fn starts(pairs: &[Pair<'_>]) -> BTreeSet<u32> {
    pairs.iter().map(|pair| pair.sampled.start).collect()
}

/// The index in a series for each of the `pairs`: that of its start if there are enough starts, else its own.
fn values(pairs: &[Pair<'_>]) -> Vec<usize> {
    let starts = starts(pairs);
    if starts.len() < STARTS_MIN {
        return (0..pairs.len()).collect();
    }
    pairs.iter().map(|pair| starts.range(..pair.sampled.start).count()).collect()
}

/// The factor that scales the amounts of a `pair` to the level of the measured frames.
fn to_measured_level(pair: &Pair<'_>, cost: Option<Cost>) -> f64 {
    let factor = cost.map(|cost| cost.plain_us * 1e3 / pair.other.arms[0].cpu_per_op());
    factor.filter(|factor| factor.is_finite() && *factor > 0.0).unwrap_or(1.0)
}

/// The value of a sample on each side of `arm`, ns per operation: the time that the kernel counted in the frame without
/// sampling, divided by the number of samples.
///
/// Client and server share one value: while the kernel switches from one to the other it takes no interrupt, so a
/// sample due then is attributed to the next task. This moves samples from one side to the other, but their sum is
/// right.
fn weights(pair: &Pair<'_>, arm: usize) -> impl Fn(Side) -> f64 + use<> {
    let (accounted, sampled) = (pair.other.arms[arm], pair.sampled.arms[arm]);
    let is_accounted = move |side| match side {
        Side::Client => accounted.client_cpu_ns > 0,
        Side::Server | Side::LogWriter => accounted.server_cpu_ns > 0,
        Side::Helper | Side::Kernel => false,
    };
    let stacks = pair.sampled.stacks.iter().filter(|stack| stack.arm as usize == arm && is_accounted(stack.side));
    let samples: u64 = stacks.map(|stack| stack.samples).sum();
    let of_accounted = accounted.cpu_per_op() / samples as f64;
    // If the kernel counted no time for the samples, each is worth the sampling period less the cost of sampling.
    let slowed = (accounted.cpu_per_op() / sampled.cpu_per_op()).min(1.0);
    let unaccounted = slowed * pair.sampled.period_ns as f64 / sampled.operations as f64;
    move |side| if is_accounted(side) { of_accounted } else { unaccounted }
}

/// The name of `function` in a report.
fn name(function: &Function) -> String {
    match &function.name {
        Some(name) => format!("{name} ({})", function.object),
        None => format!("without a symbol ({})", function.object),
    }
}

/// The series of all parts of one arm, by function and by stack.
struct Parts {
    functions: BTreeMap<Key, Series>,
    stacks: BTreeMap<Vec<String>, Series>,
    /// Number of values in each series.
    count: usize,
    /// Each value is of a start, not of a frame.
    by_start: bool,
}

impl Parts {
    fn of(pairs: &[Pair<'_>], arm: usize, cost: Option<Cost>) -> Self {
        let values = values(pairs);
        let count = values.iter().max().map_or(0, |last| last + 1);
        let by_start = starts(pairs).len() >= STARTS_MIN;
        let mut parts = Self { functions: BTreeMap::new(), stacks: BTreeMap::new(), count, by_start };
        for (pair, value) in pairs.iter().zip(&values) {
            let alike = values.iter().filter(|other| *other == value).count();
            let factor = to_measured_level(pair, cost) / alike as f64;
            for (of, protected) in [(0, false), (arm, true)] {
                let weight = weights(pair, of);
                for stack in pair.sampled.stacks.iter().filter(|stack| stack.arm as usize == of) {
                    let us = factor * weight(stack.side) * stack.samples as f64 / 1e3;
                    parts.add(*value, pair.sampled, stack, (protected, us));
                }
            }
        }
        parts
    }

    fn add(&mut self, value: usize, frame: &ProfiledFrame, stack: &Stack, (protected, us): (bool, f64)) {
        let functions: Vec<&Function> =
            stack.functions.iter().filter_map(|function| frame.functions.get(*function as usize)).collect();
        let first = functions.first().map_or_else(String::new, |function| name(function));
        let component = match stack.side {
            Side::Client | Side::Server => components::component(&functions),
            Side::LogWriter | Side::Helper | Side::Kernel => {
                format!("{}: {}", stack.task, components::component(&functions))
            }
        };
        let place = (value, self.count);
        let key = (stack.side, component, first);
        self.functions.entry(key).or_default().add(place, protected, us, stack.samples);
        let mut path = vec![stack.task.clone()];
        path.extend(functions.iter().rev().map(|function| name(function)));
        self.stacks.entry(path).or_default().add(place, protected, us, stack.samples);
    }

    /// The sums of all parts whose keys become equal by `coarser`.
    fn coarser(&self, coarser: impl Fn(&Key) -> Key) -> BTreeMap<Key, Series> {
        let mut coarse: BTreeMap<Key, Series> = BTreeMap::new();
        for (key, series) in &self.functions {
            let into = coarse.entry(coarser(key)).or_default();
            for number in 0..self.count {
                into.add((number, self.count), false, series.plain[number], 0);
                into.add((number, self.count), true, series.protected[number], 0);
            }
            into.samples += series.samples;
        }
        coarse
    }
}

/// Two-sided p of a mean of zero by Student's test.
fn student_p(values: &[f64]) -> f64 {
    let error = (tithe_statistics::variance(values) / values.len() as f64).sqrt();
    let mean = tithe_statistics::mean(values).abs();
    if mean > 0.0 { t_two_sided(mean / error, values.len() as f64 - 1.0) } else { 1.0 }
}

/// A part of `series`, which has one value per start or per frame.
fn part((side, component, function): &Key, series: &Series, by_start: bool) -> Part {
    let differences = series.differences();
    Part {
        side: *side,
        component: component.clone(),
        function: function.clone(),
        plain: tithe_statistics::mean(&series.plain),
        difference: mean(&differences),
        p: if by_start { student_p(&differences) } else { signed_rank_p(&differences) },
        lever: String::new(),
    }
}

/// The `parts` that differ significantly from zero, the largest first.
fn told(parts: &BTreeMap<Key, Series>, by_start: bool) -> Vec<Part> {
    let enough = parts.iter().filter(|(_, series)| series.samples >= SAMPLES_MIN);
    let parts: Vec<Part> = enough.map(|(key, series)| part(key, series, by_start)).collect();
    let p: Vec<f64> = parts.iter().map(|part| part.p).collect();
    let found = discoveries(&p, FALSE_DISCOVERIES);
    let mut told: Vec<Part> = parts.into_iter().zip(found).filter_map(|(part, found)| found.then_some(part)).collect();
    told.sort_by(|one, other| other.difference.estimate.abs().total_cmp(&one.difference.estimate.abs()));
    told
}

/// The sum of the `parts` for which `of` is true.
fn sum(parts: &BTreeMap<Key, Series>, count: usize, of: impl Fn(&Key) -> bool) -> Interval {
    let mut sums = vec![0.0; count];
    for (_, series) in parts.iter().filter(|(key, _)| of(key)) {
        sums.iter_mut().zip(series.differences()).for_each(|(sum, difference)| *sum += difference);
    }
    mean(&sums)
}

/// The components of the cost of the arm with index `number`; the measured frames give `cost` for it.
fn of_arm(pairs: &[Pair<'_>], number: usize, (name, protections): (&str, &[String]), cost: Option<Cost>) -> ArmProfile {
    let sees_server = pairs.iter().any(|pair| pair.other.arms.iter().any(|arm| arm.server_cpu_ns > 0))
        || pairs
            .iter()
            .flat_map(|pair| &pair.sampled.stacks)
            .all(|stack| !stack.side.is_counted() || stack.side == Side::Client);
    let cost = cost.filter(|_| sees_server);
    let parts = Parts::of(pairs, number, cost);
    let cost = cost.map(|cost| cost.us);
    let sides = parts.coarser(|(side, ..)| (*side, String::new(), String::new()));
    let by_component = parts.coarser(|(side, component, _)| (*side, component.clone(), String::new()));
    let all = sum(&parts.functions, parts.count, |(side, ..)| side.is_counted());
    let mut components = told(&by_component, parts.by_start);
    for told in &mut components {
        told.function = mostly(&parts, told);
        told.lever = components::lever(protections, &told.component);
    }
    let named: Vec<(Side, String)> = components.iter().map(|part| (part.side, part.component.clone())).collect();
    let is_elsewhere = |(side, component, _): &Key| side.is_counted() && !named.contains(&(*side, component.clone()));
    let widths = by_component.values().map(|series| mean(&series.differences()).half_width());
    // Parts of a sum that may be zero are no share of it.
    let resolves = if all.holds(0.0) { f64::NAN } else { widths.fold(0.0, f64::max) / all.estimate.abs() };
    let total = |of: fn(&Series) -> &Vec<f64>| -> f64 {
        parts.functions.values().map(|series| tithe_statistics::mean(of(series))).sum()
    };
    let least = STACK_MIN * total(|series| &series.plain).max(total(|series| &series.protected));
    ArmProfile {
        name: name.to_owned(),
        adds_up: cost.filter(|cost| pairs.len() > 1 && cost.half_width().is_finite()).map(|cost| agree(&cost, &all)),
        cost,
        sum: all,
        resolves,
        sides: sides.iter().map(|(key, series)| part(key, series, parts.by_start)).collect(),
        components,
        elsewhere: sum(&by_component, parts.count, is_elsewhere),
        functions: told(&parts.functions, parts.by_start),
        stacks: stacks(parts.stacks, least),
    }
}

/// Rounding error of sums, as a share of an amount: some thousand parts with 52 bits each.
const ROUNDING: f64 = 1e-12;

/// True if two independent estimates differ by no more than their intervals allow.
fn agree(one: &Interval, other: &Interval) -> bool {
    let rounding = ROUNDING * one.estimate.abs();
    (one.estimate - other.estimate).abs() <= one.half_width().hypot(other.half_width()) + rounding
}

/// The function with most of the difference of the component `part`.
fn mostly(parts: &Parts, part: &Part) -> String {
    let of_part =
        parts.functions.iter().filter(|((side, component, _), _)| *side == part.side && *component == part.component);
    let sign = part.difference.estimate.signum();
    let most = of_part.map(|(key, series)| (sign * tithe_statistics::mean(&series.differences()), key));
    let most = most.max_by(|one, other| one.0.total_cmp(&other.0));
    most.map(|(_, (.., function))| function.clone()).unwrap_or_default()
}

/// The stacks that take at least `least` µs per operation on some arm; the others are summed up by task.
fn stacks(all: BTreeMap<Vec<String>, Series>, least: f64) -> Vec<StackPart> {
    let mut parts: BTreeMap<Vec<String>, (f64, f64)> = BTreeMap::new();
    for (frames, series) in all {
        let (plain, protected) = (tithe_statistics::mean(&series.plain), tithe_statistics::mean(&series.protected));
        let frames = match plain.max(protected) < least {
            true => frames.into_iter().take(1).chain(["rare stacks".to_owned()]).collect(),
            false => frames,
        };
        let sum = parts.entry(frames).or_default();
        *sum = (sum.0 + plain, sum.1 + protected);
    }
    parts.into_iter().map(|(frames, (plain, protected))| StackPart { frames, plain, protected }).collect()
}

#[cfg(test)]
mod tests;
