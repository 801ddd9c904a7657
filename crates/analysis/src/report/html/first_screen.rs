//! The answer as a picture: the deciding figure, one line per arm, one plot per cell, all on one scale.
//!
//! Arms are in the same order in every plot: the most expensive of all cells first, the A/A arm among them. Each line
//! shows the cost added to an operation, and its share of transactions of three sizes: a percentage of an operation of
//! some microseconds means little if your transactions take milliseconds. Positions are shares of a drawing's width, so
//! that it fits every screen. With many cells nothing is drawn here: the table below shows them.

use maud::{Markup, html};

use super::{
    marks::{arm_mark, class, is_doubted},
    markup::{anchor, breakable, concat, percent},
    scale::{Scale, cost_ticks},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Outcome,
    report::{number, summary, words},
};

/// Up to this number of cells each gets its plot.
const CELLS: usize = 12;

/// Sizes of a transaction with one such operation, ms.
const TRANSACTIONS_MS: [f64; 3] = [1.0, 5.0, 50.0];

/// Minimum distance of ticks, percent of the drawing: in one of two panels, a name takes more than a quarter.
const APART: f64 = 34.0;

/// Smallest width of the band of noise, percent of the drawing.
const FOG_MIN: f64 = 3.0;

/// True if the deciding figure of every cell has its plot.
pub(super) fn is_drawn(analysis: &Analysis) -> bool {
    (1..=CELLS).contains(&analysis.cells.iter().filter(|cell| is_measured(cell)).count())
}

/// The plots with their legend; empty without figures or with many cells.
pub(super) fn plots(analysis: &Analysis, names: &[String]) -> Markup {
    if !is_drawn(analysis) {
        return html! {};
    }
    let measured: Vec<(&CellAnalysis, &String)> =
        analysis.cells.iter().zip(names).filter(|(cell, _)| is_measured(cell)).collect();
    let decided = || measured.iter().flat_map(|(cell, _)| summary::decided(cell));
    let scale = scale(analysis.margin, decided());
    let order = order(decided());
    let adds = decided().any(|(_, it)| added_us(it).is_some());
    let plot = |(cell, name): &(&CellAnalysis, &String)| plot(analysis, cell, name, &order, &scale, adds);
    html! { div.plots { (concat(measured.iter().map(plot))) } (legend(analysis, adds)) }
}

fn is_measured(cell: &CellAnalysis) -> bool {
    summary::decided(cell).iter().any(|(_, estimate)| estimate.effect.half_width().is_finite())
}

/// Names of the arms, the one with the largest cost in any cell first.
fn order<'a>(decided: impl Iterator<Item = (&'a ArmAnalysis, &'a Estimate)>) -> Vec<&'a str> {
    let mut arms: Vec<(&str, f64)> = Vec::new();
    for (arm, estimate) in decided {
        let effect = Some(estimate.effect.estimate).filter(|it| it.is_finite()).unwrap_or(f64::MIN);
        match arms.iter_mut().find(|(name, _)| *name == arm.name) {
            Some((_, most)) => *most = most.max(effect),
            None => arms.push((&arm.name, effect)),
        }
    }
    arms.sort_by(|one, other| other.1.total_cmp(&one.1));
    arms.into_iter().map(|(name, _)| name).collect()
}

/// A scale in percent of a drawing's width that includes zero cost, the margin, every interval and published costs.
pub(super) fn scale<'a>(margin: f64, decided: impl Iterator<Item = (&'a ArmAnalysis, &'a Estimate)>) -> Scale {
    let mut ends = Vec::new();
    for (arm, estimate) in decided {
        let quoted = arm.published.iter().filter(|it| it.estimate == estimate.name).flat_map(|it| [it.low, it.high]);
        ends.extend([estimate.effect.low, estimate.effect.high].into_iter().chain(quoted));
    }
    let known = || ends.iter().copied().filter(|end| end.is_finite());
    let high = known().fold(margin.max(0.02) * 1.25, f64::max);
    let low = known().fold(-0.1 * high, f64::min);
    Scale { low, high, start: 2.0, end: 98.0 }
}

fn plot(analysis: &Analysis, cell: &CellAnalysis, name: &str, order: &[&str], scale: &Scale, adds: bool) -> Markup {
    let decided = summary::decided(cell);
    let of_arm = |name: &&str| decided.iter().find(|(arm, _)| arm.name == *name);
    let shares = |arm: &ArmAnalysis, estimate: &Estimate| {
        html! { @if adds { (of_transactions(&RowFigures::of(estimate, is_judged(arm)))) } }
    };
    let rows = order.iter().filter_map(of_arm);
    let rows = concat(rows.map(|(arm, it)| row(analysis.margin, arm, it, scale, &shares(arm, it))));
    let level = decided.first().and_then(|(_, estimate)| {
        let level = summary::plain_level(cell, estimate)?;
        Some(format!("{level} an operation {} ({})", summary::without(cell), estimate.title))
    });
    let on_starts = words::on_starts_of(decided.iter().map(|(_, estimate)| *estimate));
    let level =
        level.unwrap_or_default() + &if on_starts.is_empty() { on_starts } else { format!(" · measured{on_starts}") };
    let heads = html! { @if adds { @for ms in TRANSACTIONS_MS { th.of scope="col" { "of " (ms) " ms" } } } };
    framed(name, &level, &heads, &rows, scale)
}

/// A plot of `rows` below its name, with the `heads` of further columns.
pub(super) fn framed(name: &str, below: &str, heads: &Markup, rows: &Markup, scale: &Scale) -> Markup {
    html! {
        figure.plot {
            figcaption { b { (name) } " " span { (below) } }
            table {
                thead {
                    tr {
                        th scope="col" { span.sr { "arm" } }
                        th.dots scope="col" { span.sr { "drawn" } (axis(scale)) }
                        th scope="col" { "cost" }
                        (heads)
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

fn axis(scale: &Scale) -> Markup {
    html! {
        svg.axis aria-hidden="true" {
            @for (effect, name) in cost_ticks(scale, APART) {
                @let place = scale.place(effect);
                text class=[anchor(place, 6.0, 88.0)] x=(percent(place)) y="11" { (name) }
            }
        }
    }
}

/// True if the result of `arm` is the cost of a protection that was on.
fn is_judged(arm: &ArmAnalysis) -> bool {
    !arm.aa && !is_doubted(arm)
}

/// One arm with its drawing and its figures, and `further` columns.
pub(super) fn row(margin: f64, arm: &ArmAnalysis, estimate: &Estimate, scale: &Scale, further: &Markup) -> Markup {
    let doubted = is_doubted(arm);
    let figures = RowFigures::of(estimate, is_judged(arm));
    let class = if arm.aa { "again" } else { class(estimate.verdict) };
    let said = if arm.aa { words::control(estimate).to_owned() } else { words::outcome(estimate, margin) };
    let figure = |(lead, rest): &(String, String)| {
        html! {
            @if !(lead.is_empty() && rest.is_empty()) {
                span {
                    @if doubted { "(" }
                    @if !lead.is_empty() { b { (lead) } }
                    @if !lead.is_empty() && !rest.is_empty() { " " }
                    @if !rest.is_empty() { small { (rest) } }
                    @if doubted { ")" }
                }
            }
        }
    };
    html! {
        tr.(class).doubted[doubted] {
            th scope="row" { (breakable(&arm.name)) " " (arm_mark(arm)) }
            td.dots title=(said) { (drawing(margin, arm, estimate, scale)) }
            td { (figure(&figures.cost)) (figure(&figures.added)) }
            (further)
        }
    }
}

/// The added cost as a share of transactions of three sizes.
fn of_transactions(figures: &RowFigures) -> Markup {
    html! {
        @for ms in TRANSACTIONS_MS {
            td.of.none[figures.share.is_none()] data-of={ (ms) " ms" } { (figures.share_of(ms)) }
        }
    }
}

/// The figures of a row as texts.
struct RowFigures {
    /// The cost and its interval; only its bound if none was found, only the interval if it is too noisy.
    cost: (String, String),
    /// The same as added time; empty if unknown.
    added: (String, String),
    /// The time for the share of a transaction: its sign, and the time, µs; `None` if there is no share to show.
    share: Option<(&'static str, f64)>,
}

impl RowFigures {
    /// `judged`: the result is the cost of a protection that was on.
    fn of(estimate: &Estimate, judged: bool) -> Self {
        let (effect, verdict) = (&estimate.effect, estimate.verdict);
        let judged = judged && estimate.is_symmetric();
        let (cost, added) = number::both(effect, estimate.difference.as_ref(), &estimate.unit, verdict);
        let added = added.map_or((String::new(), String::new()), |it| (it.lead, it.rest));
        let us = added_us(estimate);
        let (cost, added) = match verdict {
            Outcome::NoneFound if judged => {
                let most = estimate.difference.map(|it| number::at_most(&it, &estimate.unit));
                let added = (most.map_or(String::new(), |most| format!("at most {most}")), String::new());
                ((format!("at most {}", number::bound(effect.high.max(0.0), effect)), String::new()), added)
            }
            Outcome::TooNoisy => ((String::new(), cost.rest), (String::new(), added.1)),
            _ => ((cost.lead, cost.rest), added),
        };
        let added = if us.is_some() { added } else { (String::new(), String::new()) };
        let share = us.filter(|_| judged).and_then(|(estimate, high)| match verdict {
            Outcome::NoneFound => Some(("≤", high.max(0.0))),
            Outcome::TooNoisy => None,
            Outcome::Costs | Outcome::Gains => Some(("", estimate)),
        });
        Self { cost, added, share }
    }

    /// The added time as a share of a transaction of `transaction_ms`.
    fn share_of(&self, transaction_ms: f64) -> String {
        let Some((sign, us)) = self.share else { return "–".to_owned() };
        let percent = us / (10.0 * transaction_ms);
        match percent.abs() < 0.01 {
            true => "<0.01 %".to_owned(),
            false => format!("{sign}{} %", number::digits(percent)),
        }
    }
}

/// The time that `estimate` adds to an operation and the upper end of that, µs; `None` if it is no time, or unknown.
fn added_us(estimate: &Estimate) -> Option<(f64, f64)> {
    let difference = estimate.difference.filter(|it| it.half_width().is_finite())?;
    estimate.unit.starts_with("µs").then_some((difference.estimate, difference.high))
}

/// The interval of one arm over the margin and the ticks, with published costs.
fn drawing(margin: f64, arm: &ArmAnalysis, estimate: &Estimate, scale: &Scale) -> Markup {
    let place = |effect: f64| scale.place(effect);
    let block = |class: &str, from: f64, to: f64, (y, height): (&str, &str)| {
        html! { rect.(class) x=(percent(from)) width=(percent(to - from)) y=(y) height=(height) {} }
    };
    let (low, high) = (place(estimate.effect.low), place(estimate.effect.high));
    let more = (FOG_MIN - (high - low)).max(0.0) / 2.0;
    let known = estimate.effect.half_width().is_finite();
    html! {
        svg aria-hidden="true" {
            (block("band", place(0.0), place(margin), ("0", "100%")))
            @for (effect, _) in cost_ticks(scale, APART) {
                @let x = percent(place(effect));
                line class=(if effect == 0.0 { "zero" } else { "grid" }) x1=(x) x2=(x) y1="0" y2="100%" {}
            }
            @if known && estimate.verdict == Outcome::TooNoisy {
                (block("fog", (low - more).max(0.0), (high + more).min(100.0), ("28%", "44%")))
            } @else if known {
                line.line x1=(percent(low)) x2=(percent(high)) y1="50%" y2="50%" {}
                circle.point cx=(percent(place(estimate.effect.estimate))) cy="50%" r="4.5" {}
            }
            @for quoted in arm.published.iter().filter(|it| it.estimate == estimate.name) {
                @if quoted.low < quoted.high {
                    (block("quoted", place(quoted.low), place(quoted.high), ("2", "1.6")))
                }
                @for end in [quoted.low, quoted.high] {
                    svg.mark-at x=(percent(place(end))) width="1" height="1" {
                        path.quoted d="M-4 1h8l-4 6z" { title { "published: " (quoted.printed) " (" (quoted.source) ")" } }
                    }
                }
            }
        }
    }
}

fn legend(analysis: &Analysis, adds: bool) -> Markup {
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    let quoted =
        |(arm, estimate): (&ArmAnalysis, &Estimate)| arm.published.iter().any(|it| it.estimate == estimate.name);
    html! {
        p.legend {
            "Dot: what the protection adds to an operation; bar: its " (number::share(analysis.confidence))
            " interval; hatched: too noisy to tell. Shaded: up to your margin of "
            (number::digits(number::percent(analysis.margin))) " %."
            @if let Some(again) = arms().find(|arm| arm.aa) {
                " Grey, " (again.name) ": the plain arm again, the measure of what a difference means here."
            }
            " At most: no cost was found, and it is no larger than this."
            @if analysis.cells.iter().flat_map(summary::decided).any(quoted) { " Triangle: published by others." }
            @if analysis.cells.len() > 1 {
                " The sentence at the top holds for all cells at once, so its bounds are wider."
            }
            @if adds { " Of 1, 5 and 50 ms: the share of the added time in a transaction with one such operation." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flag, report::sample};

    #[test]
    fn what_is_no_answer_has_no_share_of_a_transaction() {
        let mut tls = sample::full().cells.remove(0).arms.remove(1).estimates.remove(0);
        assert_eq!(RowFigures::of(&tls, true).share_of(1.0), "1.6 %");
        tls.flags.push(Flag::Asymmetric);
        assert_eq!(RowFigures::of(&tls, true).share_of(1.0), "–");
    }
}
