//! The result of a calibration, as a table for a terminal.

use std::fmt::Write;

use super::{number, words};
use crate::assess::resolution::{
    Answer, CellResolution, Resolution,
    spread::{CellSpread, MetricSpread},
};

/// The table of every cell, with its interpretation.
pub fn render(cells: &[CellResolution]) -> String {
    let mut text = String::new();
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write_cell(&mut text, cell);
    }
    text
}

fn write_cell(text: &mut String, cell: &CellResolution) -> std::fmt::Result {
    writeln!(
        text,
        "\n{}: {}, slots of {} ms, {} in {}",
        cell.id,
        cell.mode,
        (10.0 * cell.slot_ms).round() / 10.0,
        words::plural(cell.frames as u64, "frame"),
        number::duration(cell.load_s)
    )?;
    if cell.metrics.is_empty() {
        return writeln!(text, "  too few frames for an interval");
    }
    writeln!(text, "  {:<18} {:<24} {:<16} false alarms", "", "identical arms", "half-width, 1 min")?;
    for metric in &cell.metrics {
        write_metric(text, metric)?;
    }
    writeln!(text, "  {}", verdict(&cell.metrics[0]))
}

/// The interpretation of the deciding metric.
fn verdict(metric: &Resolution) -> String {
    let percent = |effect: f64| number::digits(number::percent(effect));
    match metric.answer() {
        Answer::Dishonest => {
            "NOT IN ORDER: intervals miss zero, the truth, too often. Do not rely on costs measured here and now."
                .to_owned()
        }
        Answer::Difference => format!(
            "NOT IN ORDER: a difference was found where there is none. Do not rely on a cost below {} % here and \
             now. Use several `epochs`: they average chance differences between two instances, such as where their \
             memory lies.",
            percent(metric.largest())
        ),
        Answer::TooNoisy => {
            let remedy = match metric.needed_s() {
                Some(needed_s) => {
                    format!("With the current noise about {} of load would show it.", number::duration(needed_s))
                }
                None => "Starts probably differ by more than that: measure more starts, not longer.".to_owned(),
            };
            let margin = percent(metric.margin);
            format!("Too noisy to tell: a difference beyond your margin of {margin} % could go unnoticed. {remedy}")
        }
        Answer::None => "The instrument finds no difference where there is none.".to_owned(),
    }
}

fn write_metric(text: &mut String, metric: &Resolution) -> std::fmt::Result {
    let percent = |effect: f64| number::digits(number::percent(effect));
    let effect = format!(
        "{} % [{}, {}]",
        percent(metric.effect.estimate),
        percent(metric.effect.low),
        percent(metric.effect.high)
    );
    let per_minute = format!("±{} %", percent(metric.per_minute()));
    let false_alarms = metric.false_alarms.map_or_else(|| "—".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    writeln!(text, "  {:<18} {effect:<24} {per_minute:<16} {false_alarms}", metric.title)
}

/// The start-to-start variation in every cell, with its interpretation.
pub fn render_spreads(cells: &[CellSpread]) -> String {
    let mut text = String::new();
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write_spreads(&mut text, cell);
    }
    text
}

fn write_spreads(text: &mut String, cell: &CellSpread) -> std::fmt::Result {
    let [starts, frames] = [(cell.starts, "start"), (cell.frames, "frame")].map(plural);
    writeln!(text, "\n{}: {starts}, {frames} in {}", cell.id, number::duration(cell.load_s))?;
    let Some(first) = cell.metrics.first() else {
        return writeln!(text, "  too few starts with several frames each to estimate how much starts differ");
    };
    writeln!(text, "  {:<18} {:<24} {:<24} one start alone", "", "from start to start", "with frame scatter")?;
    for metric in &cell.metrics {
        write_spread(text, metric)?;
    }
    writeln!(text, "  {}", meaning(first, cell.starts))
}

fn plural((count, noun): (usize, &str)) -> String {
    words::plural(count as u64, noun)
}

fn write_spread(text: &mut String, metric: &MetricSpread) -> std::fmt::Result {
    let MetricSpread { title, spread, seen, .. } = metric;
    let seen = format!("{}, {:.0} degrees", number::share(seen.spread), seen.degrees);
    writeln!(text, "  {title:<18} {:<24} {seen:<24} {}", number::spread(spread), least(metric, 1))
}

/// The smallest width of an interval on `starts` starts.
fn least(metric: &MetricSpread, starts: usize) -> String {
    format!("±{} %", number::digits(number::percent(metric.least(starts))))
}

/// The interpretation of the deciding metric for one start and for `starts`.
fn meaning(metric: &MetricSpread, starts: usize) -> String {
    let lost = "Frames scatter more than starts differ: more `--seconds` separate the two. ";
    let lost = if metric.spread.low > 0.0 { "" } else { lost };
    format!(
        "{lost}An interval on one start is at least {}, however long it is measured; one on {starts} starts {}.",
        least(metric, 1),
        least(metric, starts)
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_model::experiment::Metric;
    use tithe_statistics::starts::KnownSpread;

    use super::*;
    use crate::Interval;

    #[test]
    fn what_was_found_and_what_it_means() {
        let metric = |title: &str, low: f64, high: f64| Resolution {
            title: title.to_owned(),
            effect: Interval { estimate: (low + high) / 2.0, low, high },
            frames_per_minute: 0.008,
            widening: 0.0,
            false_alarms: Some(0.048),
            margin: 0.03,
        };
        let on_one_start = Resolution { widening: 0.04, false_alarms: None, ..metric("net time per op", -0.05, 0.06) };
        let cell = |metrics| CellResolution {
            id: "c".to_owned(),
            mode: "twin".to_owned(),
            slot_ms: 20.0,
            frames: 60,
            load_s: 60.0,
            metrics,
        };
        let cells = [
            cell(vec![metric("net time per op", -0.005, 0.009), metric("time per op", -0.02, 0.01)]),
            cell(vec![metric("net time per op", 0.005, 0.009)]),
            cell(vec![metric("net time per op", -0.144, 0.074)]),
            cell(vec![on_one_start]),
            cell(Vec::new()),
        ];
        expect![[r#"

            c: twin, slots of 20 ms, 60 frames in 60 s
                                 identical arms           half-width, 1 min false alarms
              net time per op    0.20 % [−0.50, 0.90]     ±0.80 %          4.8 %
              time per op        −0.50 % [−2.0, 1.0]      ±0.80 %          4.8 %
              The instrument finds no difference where there is none.

            c: twin, slots of 20 ms, 60 frames in 60 s
                                 identical arms           half-width, 1 min false alarms
              net time per op    0.70 % [0.50, 0.90]      ±0.80 %          4.8 %
              NOT IN ORDER: a difference was found where there is none. Do not rely on a cost below 0.90 % here and now. Use several `epochs`: they average chance differences between two instances, such as where their memory lies.

            c: twin, slots of 20 ms, 60 frames in 60 s
                                 identical arms           half-width, 1 min false alarms
              net time per op    −3.4 % [−13.4, 7.7]      ±0.80 %          4.8 %
              Too noisy to tell: a difference beyond your margin of 3.0 % could go unnoticed. With the current noise about 17 s of load would show it.

            c: twin, slots of 20 ms, 60 frames in 60 s
                                 identical arms           half-width, 1 min false alarms
              net time per op    0.50 % [−4.9, 6.2]       ±4.2 %           —
              Too noisy to tell: a difference beyond your margin of 3.0 % could go unnoticed. Starts probably differ by more than that: measure more starts, not longer.

            c: twin, slots of 20 ms, 60 frames in 60 s
              too few frames for an interval
        "#]].assert_eq(&render(&cells));
    }

    #[test]
    fn what_starts_differ_by_and_what_one_start_can_say() {
        let metric = |title: &str, low: f64| MetricSpread {
            metric: Metric::Cpu,
            title: title.to_owned(),
            spread: Interval { estimate: 0.007, low, high: 0.013 },
            seen: KnownSpread { spread: 0.0076, degrees: 11.0, of_cost: None },
        };
        let cell = |metrics| CellSpread { id: "a".to_owned(), starts: 12, frames: 120, load_s: 120.0, metrics };
        let cells = [
            cell(vec![metric("net time per op", 0.004), metric("CPU per op", 0.0)]),
            cell(vec![metric("CPU per op", 0.0)]),
            cell(Vec::new()),
        ];
        expect![[r#"

            a: 12 starts, 120 frames in 2 min
                                 from start to start      with frame scatter       one start alone
              net time per op    0.70 % [0.40, 1.3]       0.76 %, 11 degrees       ±1.7 %
              CPU per op         0.70 % [0.00, 1.3]       0.76 %, 11 degrees       ±1.7 %
              An interval on one start is at least ±1.7 %, however long it is measured; one on 12 starts ±0.48 %.

            a: 12 starts, 120 frames in 2 min
                                 from start to start      with frame scatter       one start alone
              CPU per op         0.70 % [0.00, 1.3]       0.76 %, 11 degrees       ±1.7 %
              Frames scatter more than starts differ: more `--seconds` separate the two. An interval on one start is at least ±1.7 %, however long it is measured; one on 12 starts ±0.48 %.

            a: 12 starts, 120 frames in 2 min
              too few starts with several frames each to estimate how much starts differ
        "#]]
        .assert_eq(&render_spreads(&cells));
    }
}
