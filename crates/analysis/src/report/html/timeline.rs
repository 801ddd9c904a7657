//! The machine during the run: the current cell, the load of the machine, invalid frames.
//!
//! A lane is a drawing as wide as the page with its name above it. A lane without visible values is described in words
//! instead.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{
    markup::{anchor, at, concat, details, heads, is_empty, percent, wide},
    page_data::{Moment, PageData},
    scale::Scale,
};
use crate::{
    Analysis, CellAnalysis,
    report::{number, words},
};

/// Width in units, scaled to the screen, and height of a lane in px.
const WIDTH: f64 = 1000.0;
const LANE: f64 = 34.0;

/// A lane whose largest value is a smaller share than this is described in words.
const SEEN: f64 = 0.02;

/// Number of cells up to which there is room for their names.
const STRETCHES: usize = 24;

/// The content of a lane: its title, and the share of a moment.
type Lane = (&'static str, fn(&Moment) -> Option<f64>);

const LANES: [Lane; 3] = [
    ("processor pressure", |moment| moment.cpu_pressure),
    ("storage pressure", |moment| moment.io_pressure),
    ("steal", |moment| moment.steal),
];

/// The lanes with their table; only the table without a timeline, empty without frames.
pub(super) fn chart(analysis: &Analysis, page_data: &PageData) -> Markup {
    let moments = &page_data.moments;
    let end_s = moments.iter().map(|moment| moment.start_s + moment.duration_s).fold(0.0, f64::max);
    html! {
        @if analysis.cells.iter().any(|cell| cell.frames > 0) {
            h3 { "While it was measured" }
            @if end_s > 0.0 { (lanes(analysis, moments, end_s)) }
            (table(analysis))
        }
    }
}

fn lanes(analysis: &Analysis, moments: &[Moment], end_s: f64) -> Markup {
    let x = Scale { low: 0.0, high: end_s, start: 0.0, end: WIDTH };
    let most = |read: fn(&Moment) -> Option<f64>| moments.iter().filter_map(read).reduce(f64::max);
    let mut drawn: Vec<Markup> = Vec::new();
    let mut quiet = Vec::new();
    for (title, read) in LANES {
        match most(read) {
            Some(share) if share >= SEEN => {
                drawn.push(lane(&format!("{title}, of 100 %"), moments, read, (&x, 1.0), number::share));
            }
            Some(share) => quiet.push(format!("{title} at most {}", number::share(share))),
            None => {}
        }
    }
    // With a load above one per processor, programs begin to wait for each other.
    let processors = f64::from(analysis.machine.processors.max(1));
    let load = |moment: &Moment| Some(moment.load);
    let highest = most(load).unwrap_or(0.0).max(processors);
    match most(load) {
        Some(load) if load < SEEN * processors => quiet.push(format!("load average at most {load:.2}")),
        _ => {
            let title = format!("load average, of {highest:.1}");
            drawn.push(lane(&title, moments, load, (&x, highest), |value| format!("{value:.1}")));
        }
    }
    let invalid = invalid(moments, &x);
    let nothing = drawn.is_empty() && is_empty(&invalid);
    let quiet = if quiet.is_empty() { String::new() } else { format!(" Not drawn: {}.", quiet.join(", ")) };
    html! {
        @if nothing {
            p.legend { (quiet.trim_start()) }
        } @else {
            div.time { (cells(analysis, moments, &x)) (concat(drawn)) (invalid) (clock(end_s, &x)) }
            p.legend {
                "Pressure is the share of time in which some program waited for a processor or for storage. A flag: something \
                 limits the figures of that cell. A triangle: invalid frames." (quiet)
            }
        }
    }
}

/// A segment for each cell, with its name if there is room; empty for very many cells.
fn cells(analysis: &Analysis, moments: &[Moment], x: &Scale) -> Markup {
    let stretches = || moments.chunk_by(|one, other| one.cell == other.cell);
    let stretch = |moments: &[Moment]| {
        let (first, last) = (moments[0], moments[moments.len() - 1]);
        let [from, to] = [first.start_s, last.start_s + last.duration_s].map(|it| x.place(it) / WIDTH * 100.0);
        let cell = analysis.cells.get(first.cell);
        let (id, flags) = cell.map_or(("", Vec::new()), |cell| (cell.id.as_str(), flags(cell)));
        html! {
            span style={ "left:" (percent(from)) ";width:" (percent(to - from)) }
                title={ (id) @for flag in &flags { ", " (flag) } }
            {
                @if !flags.is_empty() { span.flag { "⚑" } " " }
                (id)
            }
        }
    };
    html! {
        @if stretches().count() <= STRETCHES { div.stretches { (concat(stretches().map(stretch))) } }
    }
}

/// The limits of a cell's figures, each once.
fn flags(cell: &CellAnalysis) -> Vec<&'static str> {
    let all = cell.arms.iter().flat_map(|arm| &arm.estimates).flat_map(|estimate| &estimate.flags);
    all.map(|flag| words::flag_code(*flag)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// One quantity as steps, one for each moment, with its figure on hover.
fn lane(
    title: &str,
    moments: &[Moment],
    read: fn(&Moment) -> Option<f64>,
    (x, most): (&Scale, f64),
    name: impl Fn(f64) -> String,
) -> Markup {
    let y = Scale { low: 0.0, high: most, start: LANE, end: 0.0 };
    let step = |moment: &Moment, value: f64| {
        let (from, to) = (x.place(moment.start_s), x.place(moment.start_s + moment.duration_s));
        let (top, to) = (at(y.place(value).min(LANE - 0.6)), at(to.max(from + 0.6)));
        html! {
            path d={ "M" (at(from)) " " (LANE) "V" (top) "H" (to) "V" (LANE) "z" } { title { (name(value)) } }
        }
    };
    html! {
        p { (title) }
        svg.lane viewBox={ "0 0 " (WIDTH) " " (LANE) } width="100%" height=(LANE) preserveAspectRatio="none" role="img"
            aria-label={ (title) ", over the run; values in the table below" }
        {
            (concat(moments.iter().filter_map(|moment| Some(step(moment, read(moment)?)))))
        }
    }
}

/// A mark under each moment with invalid frames; empty without any.
fn invalid(moments: &[Moment], x: &Scale) -> Markup {
    let mark = |moment: &Moment| {
        let place = x.place(moment.start_s + moment.duration_s / 2.0) / WIDTH * 100.0;
        html! {
            svg.mark-at width="1" height="1" x=(percent(place)) y="0" {
                path.invalid d="M0 1l4 8h-8z" { title { (words::plural(moment.invalid.into(), "frame")) " invalid" } }
            }
        }
    };
    let marks = concat(moments.iter().filter(|moment| moment.invalid > 0).map(mark));
    html! {
        @if !is_empty(&marks) { svg width="100%" height="12" role="img" aria-label="invalid frames" { (marks) } }
    }
}

/// Round times along the bottom.
fn clock(end_s: f64, x: &Scale) -> Markup {
    const STEPS: [f64; 12] = [1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0, 86_400.0];
    let step = STEPS.into_iter().find(|step| end_s / step <= 5.0).unwrap_or(end_s / 4.0);
    let time = |number: u32| step * f64::from(number);
    let name = |number: u32| if number == 0 { "0".to_owned() } else { clock_name(time(number)) };
    html! {
        svg width="100%" height="16" aria-hidden="true" {
            @for number in 0..=(end_s / step) as u32 {
                @let place = x.place(time(number)) / WIDTH * 100.0;
                text class=[anchor(place, 2.0, 94.0)] x=(percent(place)) y="12" { (name(number)) }
            }
        }
    }
}

/// `40 s`, `2 min`, `1:30 min`.
fn clock_name(time_s: f64) -> String {
    let (minutes, seconds) = ((time_s / 60.0).floor(), time_s % 60.0);
    match (time_s < 60.0, seconds == 0.0) {
        (true, _) => format!("{time_s:.0} s"),
        (false, true) => {
            number::duration(time_s.max(100.0)).replace("2 min", if minutes == 1.0 { "1 min" } else { "2 min" })
        }
        (false, false) => format!("{minutes:.0}:{seconds:02.0} min"),
    }
}

fn table(analysis: &Analysis) -> Markup {
    let share = |share: Option<f64>| share.map_or("not seen".to_owned(), number::share);
    let table = html! {
        table.data {
            (heads([
                "cell",
                "frames",
                "invalid",
                "load",
                "processor pressure",
                "storage pressure",
                "steal",
                "clients waited",
            ]))
            tbody {
                @for cell in &analysis.cells {
                    tr {
                        th scope="row" { (cell.id) }
                        td { (cell.frames) }
                        td { (cell.invalid.len()) }
                        td { (number::digits(cell.host.load)) }
                        td { (share(cell.host.cpu_pressure)) }
                        td { (share(cell.host.io_pressure)) }
                        td { (share(cell.host.steal)) }
                        td { (share(Some(cell.wait_share).filter(|share| !share.is_nan()))) }
                    }
                }
            }
        }
    };
    details("The machine in figures", &wide("the machine by cell", &table))
}
