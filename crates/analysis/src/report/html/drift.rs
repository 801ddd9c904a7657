//! The deciding cost frame by frame, one panel per arm: whether it changed during the measurement.
//!
//! Each panel has its own scale with labelled ends, because noise that is small for one cost would hide another. The
//! band is the interval of the cost. Steps are means of starts of the servers; if each start has one frame or all
//! frames share a start, of parts of the run.

use maud::{Markup, html};
use tithe_statistics::{mean, order::quantile7};

use super::{
    heading, is_abridged,
    marks::{arm_mark, class, is_doubted},
    markup::{at, breakable, concat, details, heads, is_empty, section, wide},
    scale::Scale,
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Outcome, StartCourse,
    report::{number, summary::decided},
};

/// Height of a panel, px; its width is a thousand units, scaled to the screen.
const HEIGHT: f64 = 96.0;
const WIDTH: f64 = 1000.0;

/// Minimum number of frames for a panel.
const FRAMES_MIN: usize = 8;

/// Up to this number of starts each has its own step.
const STARTS: usize = 40;

/// Number of parts of a run if steps are not starts.
const PARTS: usize = 8;

/// Share of the frames that always fit into the scale; the others may be at its edges.
const HELD: f64 = 0.95;

/// The section; empty without a course or with many cells.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> Markup {
    if is_abridged(analysis) {
        return html! {};
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| of_cell(analysis, names, cell, name);
    let body = concat(analysis.cells.iter().zip(names).map(of_cell));
    let lead = "The deciding cost of every frame in the order of time, from left to right. Band: the interval of the cost. \
                Steps: means of one start of the servers each, or of eighths of the run.";
    if is_empty(&body) { body } else { section("drift", "Did it move while it was measured?", lead, &body) }
}

fn of_cell(analysis: &Analysis, names: &[String], cell: &CellAnalysis, name: &str) -> Markup {
    let mut arms = decided(cell);
    arms.retain(|(arm, _)| frames(&arm.course) >= FRAMES_MIN);
    arms.sort_by(|(_, one), (_, other)| other.effect.estimate.total_cmp(&one.effect.estimate));
    html! {
        @if !arms.is_empty() {
            (heading(names, name))
            div.panels.small { @for (arm, estimate) in &arms { (panel(arm, estimate)) } }
            (table(&arms, number::share(analysis.confidence).as_str()))
        }
    }
}

fn frames(course: &[StartCourse]) -> usize {
    course.iter().map(|start| start.effects.len()).sum()
}

/// The effects of each start.
fn parts(course: &[StartCourse]) -> Vec<&[f64]> {
    course.iter().map(|start| start.effects.as_slice()).collect()
}

fn panel(arm: &ArmAnalysis, estimate: &Estimate) -> Markup {
    let all: Vec<f64> = parts(&arm.course).concat();
    let y = scale(&all, &estimate.effect);
    let class = if arm.aa { "again" } else { class(estimate.verdict) };
    let Interval { low, high, .. } = estimate.effect;
    let (top, bottom) = (y.place(high), y.place(low));
    let zero = at(y.place(0.0));
    let whole = Interval { estimate: estimate.effect.estimate, low: y.low, high: y.high };
    html! {
        figure.panel.(class).doubted[is_doubted(arm)] {
            figcaption {
                (breakable(&arm.name)) " " (lead(arm, estimate))
                @if estimate.flags.contains(&Flag::Drift) { " " a.flag href="#warnings" { "⚑ moved" } }
            }
            svg.drawing height=(HEIGHT) role="img"
                aria-label={ "Cost of " (arm.name) " frame by frame; values in the table below" }
            {
                @if low.is_finite() && high.is_finite() {
                    rect.within width="100%" y=(at(top)) height=(at((bottom - top).max(1.0))) {}
                }
                @if y.low < 0.0 && y.high > 0.0 { line.zero x2="100%" y1=(zero) y2=(zero) {} }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width="100%" height=(HEIGHT) preserveAspectRatio="none" {
                    path.frames d=(points(&all, &y)) {}
                    path.steps d=(steps(&steps_of(&arm.course, &all), all.len(), &y)) {}
                }
                @for (place, effect) in [(11.0, y.high), (HEIGHT - 3.0, y.low)] {
                    text.start x="2" y=(place) { (number::bound(effect, &whole)) }
                }
            }
        }
    }
}

/// The cost, or why there is none; in parentheses if the arm is not proven.
fn lead(arm: &ArmAnalysis, estimate: &Estimate) -> Markup {
    let figure = match estimate.verdict {
        Outcome::TooNoisy if estimate.not_held().is_some() => html! { "no answer" },
        Outcome::TooNoisy => html! { "too noisy to tell" },
        _ => html! { b { (number::cost(&estimate.effect, estimate.verdict).lead) } },
    };
    if is_doubted(arm) {
        html! { "(" (figure) ") " (arm_mark(arm)) }
    } else {
        figure
    }
}

/// A scale around the cost that includes its interval and nearly all frames.
fn scale(all: &[f64], effect: &Interval) -> Scale {
    let outside = (1.0 - HELD) / 2.0;
    let ends = [quantile7(all, outside), quantile7(all, 1.0 - outside), effect.low, effect.high];
    let ends = || ends.iter().copied().filter(|end| end.is_finite());
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
    let room = ((high - low) * 0.12).max(0.001);
    Scale { low: low - room, high: high + room, start: HEIGHT - 4.0, end: 4.0 }
}

/// Horizontal position of the frame with index `index` of `count`.
fn across(index: f64, count: usize) -> String {
    at(WIDTH * index / count as f64)
}

/// A point for each value.
fn points(all: &[f64], y: &Scale) -> String {
    let point = |(index, effect): (usize, &f64)| {
        format!("M{} {}h0", across(index as f64 + 0.5, all.len()), at(y.place(*effect)))
    };
    all.iter().enumerate().map(point).collect()
}

/// The parts of the run that have a step each.
fn steps_of<'a>(course: &'a [StartCourse], all: &'a [f64]) -> Vec<&'a [f64]> {
    let starts = parts(course);
    let of_starts = (2..=STARTS).contains(&starts.len()) && starts.iter().all(|start| start.len() > 1);
    if of_starts { starts } else { all.chunks(all.len().div_ceil(PARTS).max(1)).collect() }
}

fn steps(parts: &[&[f64]], count: usize, y: &Scale) -> String {
    let mut from = 0;
    let step = |part: &&[f64]| {
        let to = from + part.len();
        let path = format!("M{} {}H{}", across(from as f64, count), at(y.place(mean(part))), across(to as f64, count));
        from = to;
        path
    };
    parts.iter().map(step).collect()
}

/// The mean of each third of the run, with the interval of the whole.
fn table(arms: &[(&ArmAnalysis, &Estimate)], confidence: &str) -> Markup {
    let range = |effect: &Interval| match effect.half_width().is_finite() {
        true => number::range(effect.low, effect.high),
        false => "–".to_owned(),
    };
    let table = html! {
        table.data {
            (heads(["arm", "frames", "first third", "second", "last", &format!("{confidence} interval of all")]))
            tbody {
                @for (arm, estimate) in arms {
                    @let all = parts(&arm.course).concat();
                    tr {
                        th scope="row" { (breakable(&arm.name)) }
                        td { (number::count(estimate.count as u64)) }
                        @for third in all.chunks(all.len().div_ceil(3)) {
                            td { (number::bound(mean(third), &estimate.effect)) }
                        }
                        td { (range(&estimate.effect)) }
                    }
                }
            }
        }
    };
    details("Thirds of the run in figures", &wide("cost by thirds of the run", &table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_cost_that_moved_has_no_answer_and_is_not_called_noisy() {
        let mut arm = sample::full().cells.remove(0).arms.remove(1);
        let mut estimate = arm.estimates.remove(0);
        (estimate.verdict, estimate.flags) = (Outcome::TooNoisy, vec![Flag::Moved]);
        assert_eq!(lead(&arm, &estimate).into_string(), "no answer");
        estimate.flags.clear();
        assert_eq!(lead(&arm, &estimate).into_string(), "too noisy to tell");
    }
}
