//! The deciding cost frame by frame: whether it moved while it was measured, a panel an arm.
//!
//! Each panel has a scale of its own, whose ends it names, because noise that is small beside one cost hides another.
//! The band is the interval of the cost; steps are means of starts of the servers, or of parts of the run where a
//! start has one frame or all have the same.

use std::fmt::Write;

use tithe_statistics::{mean, order::quantile7};

use super::{
    heading, is_abridged,
    marks::{arm_mark, class, doubt_class},
    markup::{at, details, section, text, wide},
    scale::Scale,
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Outcome, StartCourse,
    report::{number, summary::decided},
};

/// Height of a panel, px; its width is a thousand units, whatever it is on the screen.
const HEIGHT: f64 = 96.0;
const WIDTH: f64 = 1000.0;

/// Frames of which a panel says something.
const FRAMES_MIN: usize = 8;

/// Starts up to which each has its step.
const STARTS: usize = 40;

/// Parts of a run that steps stand for where starts do not.
const PARTS: usize = 8;

/// Share of the frames that a scale holds for sure; the others may stand at its edges.
const HELD: f64 = 0.95;

/// The section; nothing where no course is known, and of many cells.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> String {
    if is_abridged(analysis) {
        return String::new();
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| of_cell(analysis, names, cell, name);
    let body: String = analysis.cells.iter().zip(names).map(of_cell).collect();
    let lead = "The deciding cost of every frame in the order of time, from left to right. Band: the interval of the cost. \
                Steps: means of one start of the servers each, or of eighths of the run.";
    if body.is_empty() { body } else { section("drift", "Did it move while it was measured?", lead, &body) }
}

fn of_cell(analysis: &Analysis, names: &[String], cell: &CellAnalysis, name: &str) -> String {
    let mut arms = decided(cell);
    arms.retain(|(arm, _)| frames(&arm.course) >= FRAMES_MIN);
    arms.sort_by(|(_, one), (_, other)| other.effect.estimate.total_cmp(&one.effect.estimate));
    if arms.is_empty() {
        return String::new();
    }
    let panels: String = arms.iter().map(|(arm, estimate)| panel(arm, estimate)).collect();
    format!(
        "{}<div class=\"panels small\">\n{panels}</div>\n{}",
        heading(names, name),
        table(&arms, number::share(analysis.confidence).as_str())
    )
}

fn frames(course: &[StartCourse]) -> usize {
    course.iter().map(|start| start.effects.len()).sum()
}

/// The effects of each start.
fn parts(course: &[StartCourse]) -> Vec<&[f64]> {
    course.iter().map(|start| start.effects.as_slice()).collect()
}

fn panel(arm: &ArmAnalysis, estimate: &Estimate) -> String {
    let all: Vec<f64> = parts(&arm.course).concat();
    let y = scale(&all, &estimate.effect);
    let moved =
        if estimate.flags.contains(&Flag::Drift) { " <a class=\"flag\" href=\"#warnings\">⚑ moved</a>" } else { "" };
    let class = if arm.aa { "again" } else { class(estimate.verdict) };
    let doubt = if doubt_class(arm).is_empty() { "" } else { " doubted" };
    let mut svg = format!(
        "<figure class=\"panel {class}{doubt}\"><figcaption>{0} {1}{moved}</figcaption>\n<svg class=\"drawing\" \
         height=\"{HEIGHT}\" role=\"img\" aria-label=\"Cost of {0} frame by frame; values in the table below\">",
        text(&arm.name),
        lead(arm, estimate),
    );
    let Interval { low, high, .. } = estimate.effect;
    if low.is_finite() && high.is_finite() {
        let (top, bottom) = (y.place(high), y.place(low));
        let height = at((bottom - top).max(1.0));
        let _ = write!(svg, "<rect class=\"within\" width=\"100%\" y=\"{}\" height=\"{height}\"/>", at(top));
    }
    if y.low < 0.0 && y.high > 0.0 {
        let zero = at(y.place(0.0));
        let _ = write!(svg, "<line class=\"zero\" x2=\"100%\" y1=\"{zero}\" y2=\"{zero}\"/>");
    }
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" height=\"{HEIGHT}\" preserveAspectRatio=\"none\">\
         <path class=\"frames\" d=\"{}\"/><path class=\"steps\" d=\"{}\"/></svg>",
        points(&all, &y),
        steps(&steps_of(&arm.course, &all), all.len(), &y)
    );
    let whole = Interval { estimate: estimate.effect.estimate, low: y.low, high: y.high };
    for (place, effect) in [(11.0, y.high), (HEIGHT - 3.0, y.low)] {
        let _ = write!(svg, "<text class=\"start\" x=\"2\" y=\"{place}\">{}</text>", number::bound(effect, &whole));
    }
    svg + "</svg></figure>\n"
}

/// The cost, or that it is too noisy; in parentheses where the arm is not proven.
fn lead(arm: &ArmAnalysis, estimate: &Estimate) -> String {
    let figure = match estimate.verdict {
        Outcome::TooNoisy => "too noisy to tell".to_owned(),
        _ => format!("<b>{}</b>", number::cost(&estimate.effect, estimate.verdict).lead),
    };
    if doubt_class(arm).is_empty() { figure } else { format!("({figure}) {}", arm_mark(arm)) }
}

/// A scale about the cost that holds its interval and nearly all frames.
fn scale(all: &[f64], effect: &Interval) -> Scale {
    let outside = (1.0 - HELD) / 2.0;
    let ends = [quantile7(all, outside), quantile7(all, 1.0 - outside), effect.low, effect.high];
    let ends = || ends.iter().copied().filter(|end| end.is_finite());
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
    let room = ((high - low) * 0.12).max(0.001);
    Scale { low: low - room, high: high + room, start: HEIGHT - 4.0, end: 4.0 }
}

/// Where the frame with index `index` of `count` stands.
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

/// The parts that steps stand for.
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

/// The mean of each third of the run beside the interval of the whole.
fn table(arms: &[(&ArmAnalysis, &Estimate)], confidence: &str) -> String {
    let mut html = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">arm</th><th scope=\"col\">frames</th><th scope=\"col\">first \
         third</th><th scope=\"col\">second</th><th scope=\"col\">last</th><th scope=\"col\">{confidence} interval of all</th>\
         </tr></thead><tbody>\n"
    );
    for (arm, estimate) in arms {
        let all: Vec<f64> = parts(&arm.course).concat();
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td>",
            text(&arm.name),
            number::count(estimate.count as u64)
        );
        for third in all.chunks(all.len().div_ceil(3)) {
            let _ = write!(html, "<td>{}</td>", number::bound(mean(third), &estimate.effect));
        }
        let known = estimate.effect.half_width().is_finite();
        let range = known.then(|| number::range(estimate.effect.low, estimate.effect.high));
        let _ = writeln!(html, "<td>{}</td></tr>", range.as_deref().unwrap_or("–"));
    }
    details("Thirds of the run in figures", &wide("cost by thirds of the run", &(html + "</tbody></table>\n")))
}
