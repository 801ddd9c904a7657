//! Throughput against clients: how each arm took more and more load.
//!
//! Clients stand on a logarithmic axis because a sweep doubles them; operations per second begin at nothing, so that
//! heights compare. One panel for each protected arm, beside the plain one.

use std::fmt::Write;

use super::{
    markup::{at, details, section, text, wide},
    scale::Scale,
};
use crate::{
    Analysis, Interval, Sweep, SweepArm, SweepStep,
    report::{number, words},
};

const WIDTH: f64 = 250.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 32.0;

/// The section; nothing where no workload was measured with several numbers of clients.
pub(super) fn chart(analysis: &Analysis) -> String {
    let body: String = analysis.sweeps.iter().map(|sweep| of_sweep(analysis, sweep)).collect();
    if body.is_empty() {
        return body;
    }
    let lead = "Operations per second with more and more clients. An arm is saturated from the number of clients on with \
                which the next larger gains less than 5%.";
    section("clients", "Throughput against clients", lead, &body)
}

fn of_sweep(analysis: &Analysis, sweep: &Sweep) -> String {
    let [plain, protected @ ..] = sweep.arms.as_slice() else { return String::new() };
    let steps = || sweep.arms.iter().flat_map(|arm| &arm.steps);
    let most = steps().map(|step| highest(&step.throughput)).fold(0.0, f64::max);
    let fewest = steps().map(|step| step.clients).min().unwrap_or(1);
    let clients = steps().map(|step| step.clients).max().unwrap_or(1);
    if most <= 0.0 || fewest == clients {
        return String::new();
    }
    let x = Scale { low: f64::from(fewest).ln(), high: f64::from(clients).ln(), start: LEFT + 6.0, end: WIDTH - 10.0 };
    let y = Scale { low: 0.0, high: most * 1.05, start: HEIGHT - BOTTOM, end: 6.0 };
    let mut html = format!("<h3>{}</h3>\n<div class=\"panels\">\n", text(&sweep.name()));
    for arm in protected {
        html.push_str(&panel(plain, arm, proven(analysis, &arm.name), (&x, &y)));
    }
    let legend = format!(
        "</div>\n<p class=\"legend\"><i class=\"key grey\"></i>{} <i class=\"key\"></i>protected arm; bars are the intervals \
         of the median over frames. A ring: saturated. Clients on a logarithmic axis, operations from nothing.</p>\n",
        text(&plain.name)
    );
    html + &legend + &table(sweep)
}

/// True where the protections of the arm were proven in every cell.
fn proven(analysis: &Analysis, name: &str) -> bool {
    let mut arms = analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| arm.name == name);
    arms.all(|arm| arm.proof.stands())
}

/// Where the drawing of a step ends.
fn highest(interval: &Interval) -> f64 {
    if interval.high.is_finite() { interval.high.min(interval.estimate * 1.5) } else { interval.estimate }
}

fn panel(plain: &SweepArm, protected: &SweepArm, proven: bool, (x, y): (&Scale, &Scale)) -> String {
    let doubted = if proven { "" } else { " doubted" };
    let mut svg = format!(
        "<figure class=\"panel{doubted}\"><figcaption><i class=\"key\"></i>{0}{1}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Operations per second by number of clients, {2} and {0}; values in the table below\">",
        text(&protected.name),
        if proven { "" } else { " (not proven)" },
        text(&plain.name),
    );
    svg.push_str(&axes(plain, x, y));
    for (class, arm) in [("plain", plain), ("protected", protected)] {
        let path: Vec<String> = arm
            .steps
            .iter()
            .map(|step| format!("{} {}", across(step, x), at(y.place(step.throughput.estimate))))
            .collect();
        let _ = write!(svg, "<g class=\"{class}\"><path d=\"M{}\"/>", path.join("L"));
        for step in &arm.steps {
            svg.push_str(&mark(arm, step, x, y));
        }
        svg.push_str("</g>");
    }
    svg + "</svg></figure>\n"
}

fn across(step: &SweepStep, x: &Scale) -> String {
    at(x.place(f64::from(step.clients).ln()))
}

fn mark(arm: &SweepArm, step: &SweepStep, x: &Scale, y: &Scale) -> String {
    let (place, height) = (across(step, x), at(y.place(step.throughput.estimate)));
    let Interval { low, high, .. } = step.throughput;
    let bar = if low.is_finite() && high.is_finite() {
        format!("<path class=\"bar\" d=\"M{place} {}V{}\"/>", at(y.place(low)), at(y.place(high)))
    } else {
        String::new()
    };
    let ring = if arm.saturated_at == Some(step.clients) {
        format!("<circle class=\"ring\" cx=\"{place}\" cy=\"{height}\" r=\"5.5\"/>")
    } else {
        String::new()
    };
    format!(
        "<g>{bar}{ring}<circle cx=\"{place}\" cy=\"{height}\" r=\"2.6\"/><title>{}, {}: {}</title></g>",
        text(&arm.name),
        words::plural(step.clients.into(), "client"),
        figure(&step.throughput)
    )
}

fn axes(arm: &SweepArm, x: &Scale, y: &Scale) -> String {
    let mut svg = String::from("<g class=\"axes\">");
    for value in round_ticks(y.high) {
        let place = at(y.place(value));
        let _ = write!(
            svg,
            "<path d=\"M{} {place}H{}\"/><text x=\"{}\" y=\"{place}\" dy=\".35em\" class=\"end\">{}</text>",
            at(LEFT),
            at(x.end),
            at(LEFT - 5.0),
            short(value)
        );
    }
    let mut last = f64::NEG_INFINITY;
    for step in &arm.steps {
        let place = x.place(f64::from(step.clients).ln());
        if place - last >= 18.0 {
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", at(place), at(y.start + 13.0), step.clients);
            last = place;
        }
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\">clients</text><path class=\"base\" d=\"M{} {}H{}\"/></g>",
        at((x.start + x.end) / 2.0),
        at(y.start + 26.0),
        at(LEFT),
        at(y.start),
        at(x.end)
    );
    svg
}

/// Two to five round figures up to `highest`.
fn round_ticks(highest: f64) -> Vec<f64> {
    let power = 10f64.powf(highest.log10().floor());
    let step = [0.2, 0.5, 1.0, 2.0, 5.0].map(|step| step * power).into_iter().find(|step| highest / step < 5.0);
    let step = step.unwrap_or(power);
    (1..=5).map(|number| f64::from(number) * step).filter(|value| *value <= highest).collect()
}

/// `500`, `20k`, `1.5M`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", (value / 1e5).round() / 10.0),
        value if value >= 1e3 => format!("{}k", (value / 100.0).round() / 10.0),
        value => format!("{}", (value * 10.0).round() / 10.0),
    }
}

fn figure(interval: &Interval) -> String {
    number::level(interval.estimate, interval.low, interval.high, "op/s").to_string()
}

/// Every step of every arm, and what the deciding cost is where it matters.
fn table(sweep: &Sweep) -> String {
    let mut clients: Vec<u32> = sweep.arms.iter().flat_map(|arm| &arm.steps).map(|step| step.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let mut html = String::from("<table class=\"data\"><thead><tr><th scope=\"col\">clients</th>");
    for arm in &sweep.arms {
        let _ = write!(html, "<th scope=\"col\">{}</th>", text(&arm.name));
    }
    html.push_str("</tr></thead><tbody>\n");
    for number in clients {
        let _ = write!(html, "<tr><th scope=\"row\">{number}</th>");
        for arm in &sweep.arms {
            let step = arm.steps.iter().find(|step| step.clients == number);
            let _ = write!(html, "<td>{}</td>", step.map_or("–".to_owned(), |step| figure(&step.throughput)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("<tr><th scope=\"row\">saturated at</th>");
    for arm in &sweep.arms {
        let at = arm.saturated_at.map_or("not reached".to_owned(), |clients| words::plural(clients.into(), "client"));
        let _ = write!(html, "<td>{at}</td>");
    }
    html.push_str("</tr>\n</tbody></table>\n");
    details("Throughput in figures", &wide("throughput by clients", &html))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (highest, expected) in [
            (48_310.0, "10k 20k 30k 40k"),
            (1_000.0, "500 1k"),
            (730.0, "200 400 600"),
            (1_900_000.0, "500k 1M 1.5M"),
            (3.0, "1 2 3"),
        ] {
            let names: Vec<String> = round_ticks(highest).into_iter().map(short).collect();
            assert_eq!(names.join(" "), expected);
        }
    }
}
