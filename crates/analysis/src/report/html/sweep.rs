//! Throughput against clients: each arm under more and more load.
//!
//! The axis of clients is logarithmic because a sweep doubles them. Operations per second begin at zero, so that
//! heights can be compared. There is one panel for each protected arm, together with the plain one.

use maud::{Markup, html};

use super::{
    markup::{at, concat, details, heads, is_empty, section, wide},
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

/// The section; empty if no workload was measured with several numbers of clients.
pub(super) fn chart(analysis: &Analysis) -> Markup {
    let body = concat(analysis.sweeps.iter().map(|sweep| of_sweep(analysis, sweep)));
    if is_empty(&body) {
        return body;
    }
    let lead = "Operations per second with more and more clients. An arm is saturated from the number of clients on with \
                which the next larger gains less than 5 %.";
    section("clients", "Throughput against clients", lead, &body)
}

fn of_sweep(analysis: &Analysis, sweep: &Sweep) -> Markup {
    let [plain, protected @ ..] = sweep.arms.as_slice() else { return html! {} };
    let steps = || sweep.arms.iter().flat_map(|arm| &arm.steps);
    let most = steps().map(|step| highest(&step.throughput)).fold(0.0, f64::max);
    let fewest = steps().map(|step| step.clients).min().unwrap_or(1);
    let clients = steps().map(|step| step.clients).max().unwrap_or(1);
    if most <= 0.0 || fewest == clients {
        return html! {};
    }
    let x = Scale { low: f64::from(fewest).ln(), high: f64::from(clients).ln(), start: LEFT + 6.0, end: WIDTH - 10.0 };
    let y = Scale { low: 0.0, high: most * 1.05, start: HEIGHT - BOTTOM, end: 6.0 };
    html! {
        h3 { (sweep.name()) }
        div.panels { @for arm in protected { (panel(plain, arm, proven(analysis, &arm.name), (&x, &y))) } }
        p.legend {
            i.key.grey {} (plain.name) " " i.key {}
            "protected arm; bars are the intervals of the median over frames. A ring: saturated. Clients on a logarithmic \
             axis, operations from nothing."
        }
        (table(sweep))
    }
}

/// True if the protections of the arm were proven in every cell.
fn proven(analysis: &Analysis, name: &str) -> bool {
    let mut arms = analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| arm.name == name);
    arms.all(|arm| arm.proof.stands())
}

/// Where the drawing of a step ends.
fn highest(interval: &Interval) -> f64 {
    if interval.high.is_finite() { interval.high.min(interval.estimate * 1.5) } else { interval.estimate }
}

fn panel(plain: &SweepArm, protected: &SweepArm, proven: bool, (x, y): (&Scale, &Scale)) -> Markup {
    let path = |arm: &SweepArm| {
        let places =
            arm.steps.iter().map(|step| format!("{} {}", across(step, x), at(y.place(step.throughput.estimate))));
        places.collect::<Vec<_>>().join("L")
    };
    html! {
        figure.panel.doubted[!proven] {
            figcaption { i.key {} (protected.name) @if !proven { " (not proven)" } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
                aria-label={
                    "Operations per second by number of clients, " (plain.name) " and " (protected.name)
                    "; values in the table below"
                }
            {
                (axes(plain, x, y))
                @for (class, arm) in [("plain", plain), ("protected", protected)] {
                    g.(class) {
                        path d={ "M" (path(arm)) } {}
                        @for step in &arm.steps { (mark(arm, step, x, y)) }
                    }
                }
            }
        }
    }
}

fn across(step: &SweepStep, x: &Scale) -> String {
    at(x.place(f64::from(step.clients).ln()))
}

fn mark(arm: &SweepArm, step: &SweepStep, x: &Scale, y: &Scale) -> Markup {
    let (place, height) = (across(step, x), at(y.place(step.throughput.estimate)));
    let Interval { low, high, .. } = step.throughput;
    html! {
        g {
            @if low.is_finite() && high.is_finite() {
                path.bar d={ "M" (place) " " (at(y.place(low))) "V" (at(y.place(high))) } {}
            }
            @if arm.saturated_at == Some(step.clients) { circle.ring cx=(place) cy=(height) r="5.5" {} }
            circle cx=(place) cy=(height) r="2.6" {}
            title { (arm.name) ", " (words::plural(step.clients.into(), "client")) ": " (figure(&step.throughput)) }
        }
    }
}

fn axes(arm: &SweepArm, x: &Scale, y: &Scale) -> Markup {
    let mut named: Vec<(f64, u32)> = Vec::new();
    for step in &arm.steps {
        let place = x.place(f64::from(step.clients).ln());
        if named.last().is_none_or(|(last, _)| place - last >= 18.0) {
            named.push((place, step.clients));
        }
    }
    html! {
        g.axes {
            @for value in round_ticks(y.high) {
                @let place = at(y.place(value));
                path d={ "M" (at(LEFT)) " " (place) "H" (at(x.end)) } {}
                text.end x=(at(LEFT - 5.0)) y=(place) dy=".35em" { (short(value)) }
            }
            @for (place, clients) in named { text x=(at(place)) y=(at(y.start + 13.0)) { (clients) } }
            text x=(at((x.start + x.end) / 2.0)) y=(at(y.start + 26.0)) { "clients" }
            path.base d={ "M" (at(LEFT)) " " (at(y.start)) "H" (at(x.end)) } {}
        }
    }
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

/// Every step of every arm, and the deciding cost of the cells named in the sweep.
fn table(sweep: &Sweep) -> Markup {
    let mut clients: Vec<u32> = sweep.arms.iter().flat_map(|arm| &arm.steps).map(|step| step.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let level = |arm: &SweepArm, number: u32| {
        let step = arm.steps.iter().find(|step| step.clients == number);
        step.map_or("–".to_owned(), |step| figure(&step.throughput))
    };
    let saturated = |arm: &SweepArm| {
        arm.saturated_at.map_or("not reached".to_owned(), |clients| words::plural(clients.into(), "client"))
    };
    let table = html! {
        table.data {
            (heads(["clients"].into_iter().chain(sweep.arms.iter().map(|arm| arm.name.as_str()))))
            tbody {
                @for number in clients {
                    tr { th scope="row" { (number) } @for arm in &sweep.arms { td { (level(arm, number)) } } }
                }
                tr { th scope="row" { "saturated at" } @for arm in &sweep.arms { td { (saturated(arm)) } } }
            }
        }
    };
    details("Throughput in figures", &wide("throughput by clients", &table))
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
