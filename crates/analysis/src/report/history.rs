//! Costs over runs as text for a terminal and as a document for programs; the page is in [`html`](super::html). All
//! media use the same sentences.

use serde_json::{Value, json};

use super::{live, number, table, terminal::WIDTH_MIN, view, words};
use crate::{
    Interval, Outcome, Proof,
    history::{Change, History, Point, Series},
};

/// Version of the document's form; increased for every change that old readers do not understand.
pub const VERSION: u32 = 1;

/// Width of a date in columns, and of the gap between two columns.
const DAY: usize = 10;
const GAP: usize = 2;

/// Largest width of an interval bar in columns, and smallest width of one that is shown.
const BAR: usize = 25;
const BAR_MIN: usize = 9;

/// The history, at most `width` columns wide, ending with a line break.
pub fn render(history: &History, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut lines = table::wrap(&answer(history), width);
    for series in &history.series {
        lines.push(String::new());
        lines.push(table::cut(&name(series), width));
        lines.extend(rows(series, width - 2).iter().map(|row| format!("  {row}")));
        for sentence in sentences(series) {
            lines.extend(table::wrap(&sentence, width - 2).iter().map(|line| format!("  {line}")));
        }
    }
    if !history.notes.is_empty() {
        lines.extend([String::new(), "To know".to_owned()]);
        lines
            .extend(history.notes.iter().flat_map(|note| table::wrap(note, width - 2)).map(|line| format!("  {line}")));
    }
    lines.iter_mut().for_each(view::clean);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The result of the history, in one sentence.
pub fn answer(history: &History) -> String {
    let all = history.series.len() as u64;
    let short = history.series.iter().filter(|series| series.too_short()).count() as u64;
    let changes: usize = history.series.iter().map(|series| series.changes.len()).sum();
    let changed = history.series.iter().filter(|series| !series.changes.is_empty()).count();
    let told = match (all, changes) {
        (0, _) => return "No run has a cost to report.".to_owned(),
        _ if short == all => return format!("Too few runs to detect a change of {}.", words::plural(all, "cost")),
        (_, 0) => format!("No change was found in {}", words::plural(all - short, "cost")),
        _ => format!("{} in {changed} of {}", words::plural(changes as u64, "change"), words::plural(all, "cost")),
    };
    let untold = match short {
        0 => String::new(),
        1 => "; 1 has too few runs".to_owned(),
        short => format!("; {short} have too few runs"),
    };
    format!("{told}{untold}.")
}

/// `c · tls (net time per op), 12 runs`, with the difference from the previous series.
pub fn name(series: &Series) -> String {
    let runs = words::plural(series.points.len() as u64, "run");
    let apart = if series.apart.is_empty() { String::new() } else { format!(", kept apart by {}", series.apart) };
    format!("{} · {} ({}), {runs}{apart}", series.cell, series.arm, series.title)
}

/// The sentences about a series.
pub fn sentences(series: &Series) -> Vec<String> {
    let mut told: Vec<String> = series.changes.iter().map(|change| sentence(series, change)).collect();
    if series.too_short() {
        told.push(format!("A change can be detected with {} usable runs or more.", series.runs_min));
    } else if told.is_empty() {
        told.push("No change was found.".to_owned());
    }
    let not_counted = series.points.iter().filter(|point| !point.counts()).count() as u64;
    if not_counted > 0 {
        let runs = words::plural(not_counted, "run");
        told.push(format!(
            "{runs} not counted: the protection was not proven, the set-up was not symmetric, the interval does not hold \
             the cost, or there are not enough data."
        ));
    }
    told
}

fn sentence(series: &Series, change: &Change) -> String {
    let level = |level: &Interval| number::cost(level, Outcome::Costs).to_string();
    let versions = change.versions.as_ref().map_or(String::new(), |(before, after)| {
        format!(" The server changed there, too: {before} before, {after} after.")
    });
    format!(
        "From {} on {}, before it {}: {}, p = {}.{versions}",
        series.points[change.point].run,
        level(&change.after),
        level(&change.before),
        number::points(&change.points),
        significant(change.p),
    )
}

/// A p with its significant decimals: `0.004`, `0.0005`.
fn significant(p: f64) -> String {
    let decimals = (-p.log10()).ceil().clamp(2.0, 6.0) as usize;
    format!("{p:.decimals$}")
}

/// The cost of a point, in parentheses if its protection is not proven.
pub fn figure(point: &Point) -> String {
    let figure = number::cost(&point.estimate.effect, point.estimate.verdict);
    match point.proof {
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => figure.to_string(),
        Proof::Unproven(_) | Proof::ToldByProvider(_) | Proof::Disproven(_) => {
            format!("({figure}) {}", words::proof(&point.proof).0)
        }
    }
}

/// Time, run, bar and cost of each point, with a line where the cost changes.
fn rows(series: &Series, width: usize) -> Vec<String> {
    let ends = series.points.iter().flat_map(|point| [point.estimate.effect.low, point.estimate.effect.high]);
    let finite = ends.filter(|end| end.is_finite());
    let ends = finite.fold((0.0f64, 0.01f64), |(low, high), end| (low.min(end), high.max(end)));
    let widest = series.points.iter().map(|point| table::width(&point.run)).max().unwrap_or(0).min(width / 4);
    let figures = series.points.iter().map(|point| table::width(&figure(point))).max().unwrap_or(0);
    // A narrow terminal shortens the bar and not the number.
    let room = width.saturating_sub(DAY + widest + figures + 3 * GAP);
    let row = |point: &Point| {
        let day = point.time.get(..DAY).unwrap_or_default();
        let run = table::pad(&table::cut(&point.run, widest), widest);
        let interval = Some(&point.estimate.effect);
        let bar = if room >= BAR_MIN { live::bar(interval, ends, room.min(BAR)) + "  " } else { String::new() };
        table::cut(&format!("{day:<DAY$}  {run}  {bar}{}", figure(point)), width)
    };
    let line = |(index, point): (usize, &Point)| {
        let changed = series.changes.iter().any(|change| change.point == index);
        let rule = changed.then(|| "─".repeat(DAY + GAP + widest));
        rule.into_iter().chain([row(point)]).collect::<Vec<_>>()
    };
    series.points.iter().enumerate().flat_map(line).collect()
}

/// The history as a document: costs and points in percent, values that are not finite are null; ends with a line break.
pub fn json(history: &History) -> String {
    let document = json!({ "tithe_history": {
        "format": VERSION,
        "answer": answer(history),
        "series": history.series.iter().map(of_series).collect::<Vec<_>>(),
        "notes": history.notes,
    }});
    format!("{document:#}\n")
}

fn of_series(series: &Series) -> Value {
    let change = |change: &Change| {
        json!({
            "run": series.points[change.point].run,
            "p": change.p,
            "before_percent": interval(&change.before, number::percent),
            "after_percent": interval(&change.after, number::percent),
            "points": interval(&change.points, |share| 100.0 * share),
        })
    };
    let point = |point: &Point| {
        json!({
            "run": point.run,
            "time": point.time,
            "version": point.version,
            "proof": words::proof(&point.proof).0.to_lowercase(),
            "counts": point.counts(),
            "cost_percent": interval(&point.estimate.effect, number::percent),
        })
    };
    json!({
        "cell": series.cell,
        "arm": series.arm,
        "figure": series.title,
        "apart": series.apart,
        "runs_min": series.runs_min,
        "runs": series.points.iter().map(point).collect::<Vec<_>>(),
        "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn interval(of: &Interval, read: fn(f64) -> f64) -> Value {
    let end = |end: f64| if end.is_finite() { read(end) } else { end };
    json!({ "estimate": end(of.estimate), "low": end(of.low), "high": end(of.high) })
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;
    use crate::{history::tests::sample, report::html};

    #[test]
    fn every_form_tells_the_change_and_what_is_kept_apart() {
        let history = sample();
        expect_file!["golden/history.txt"].assert_eq(&render(&history, 100));
        expect_file!["golden/history.json"].assert_eq(&json(&history));
        let page = html::history(&history);
        expect_file!["golden/history.html"].assert_eq(&crate::report::sample::without_style(&page));
        assert!(page.contains("&lt;next&gt;") && !page.contains("<next>"), "text of a server is no markup");
    }

    #[test]
    fn nothing_is_told_of_nothing() {
        let empty = History { series: Vec::new(), notes: Vec::new() };
        expect![[r#"
            No run has a cost to report.
        "#]]
        .assert_eq(&render(&empty, 80));
        assert!(html::history(&empty).contains("No run has a cost to report."));
    }

    #[test]
    fn no_line_is_wider_than_the_page_and_no_number_is_cut() {
        let mut history = sample();
        history.series[0].points[0].run = "2026-03-03T02-07-09-a-folder-with-a-long-name".to_owned();
        for width in WIDTH_MIN..140 {
            let text = render(&history, width);
            for line in text.lines() {
                assert!(table::width(line) <= width, "{width}: {line}");
            }
            assert!(
                text.contains("+9.8 % [9.4, 10.2]\n") && text.contains("(+10.2 % [9.8, 10.6]) UNPROVEN\n"),
                "{text}"
            );
        }
    }
}
