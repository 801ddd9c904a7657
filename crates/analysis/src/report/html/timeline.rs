//! The machine over the run: which cell, how busy the machine was, which frames were invalid.
//!
//! A lane is a drawing as wide as the page over which its name stands; a lane in which nothing is to be seen is told in
//! words instead.

use std::{collections::BTreeSet, fmt::Write};

use super::{
    markup::{at, details, text, wide},
    page_data::{Moment, PageData},
    scale::Scale,
};
use crate::{
    Analysis, CellAnalysis,
    report::{number, words},
};

/// Width in units, whatever it is on the screen, and height of a lane in px.
const WIDTH: f64 = 1000.0;
const LANE: f64 = 34.0;

/// A lane whose largest value is a smaller share than this is told in words.
const SEEN: f64 = 0.02;

/// Stretches of cells that have room for their names.
const STRETCHES: usize = 24;

/// What a lane shows: its title, and the share of a moment.
type Lane = (&'static str, fn(&Moment) -> Option<f64>);

const LANES: [Lane; 3] = [
    ("processor pressure", |moment| moment.cpu_pressure),
    ("storage pressure", |moment| moment.io_pressure),
    ("steal", |moment| moment.steal),
];

/// The lanes with their table; the table alone where no time line is known, nothing where there was no frame.
pub(super) fn chart(analysis: &Analysis, page_data: &PageData) -> String {
    let moments = &page_data.moments;
    let end_s = moments.iter().map(|moment| moment.start_s + moment.duration_s).fold(0.0, f64::max);
    let measured = analysis.cells.iter().any(|cell| cell.frames > 0);
    match (measured, end_s > 0.0) {
        (false, _) => String::new(),
        (true, false) => format!("<h3>While it was measured</h3>\n{}", table(analysis)),
        (true, true) => {
            format!("<h3>While it was measured</h3>\n{}{}", lanes(analysis, moments, end_s), table(analysis))
        }
    }
}

fn lanes(analysis: &Analysis, moments: &[Moment], end_s: f64) -> String {
    let x = Scale { low: 0.0, high: end_s, start: 0.0, end: WIDTH };
    let most = |read: fn(&Moment) -> Option<f64>| moments.iter().filter_map(read).reduce(f64::max);
    let mut html = String::new();
    let mut quiet = Vec::new();
    for (title, read) in LANES {
        match most(read) {
            Some(share) if share >= SEEN => {
                html.push_str(&lane(&format!("{title}, of 100%"), moments, read, (&x, 1.0), number::share));
            }
            Some(share) => quiet.push(format!("{title} at most {}", number::share(share))),
            None => {}
        }
    }
    // A load of one for each processor is where programs begin to wait for each other.
    let processors = f64::from(analysis.machine.processors.max(1));
    let load = |moment: &Moment| Some(moment.load);
    let highest = most(load).unwrap_or(0.0).max(processors);
    match most(load) {
        Some(load) if load < SEEN * processors => quiet.push(format!("load average at most {load:.2}")),
        _ => {
            let title = format!("load average, of {highest:.1}");
            html.push_str(&lane(&title, moments, load, (&x, highest), |value| format!("{value:.1}")));
        }
    }
    html.push_str(&invalid(moments, &x));
    let quiet = if quiet.is_empty() { String::new() } else { format!(" Not drawn: {}.", quiet.join(", ")) };
    if html.is_empty() {
        return format!("<p class=\"legend\">{}</p>\n", text(quiet.trim_start()));
    }
    let legend = format!(
        "Pressure is the share of time in which some program waited for a processor or for storage. A flag: something \
         limits the figures of that cell. A triangle: invalid frames.{quiet}"
    );
    format!(
        "<div class=\"time\">\n{}{html}{}</div>\n<p class=\"legend\">{}</p>\n",
        cells(analysis, moments, &x),
        clock(end_s, &x),
        text(&legend)
    )
}

/// A stretch for each cell, with its name as far as there is room; nothing of very many.
fn cells(analysis: &Analysis, moments: &[Moment], x: &Scale) -> String {
    if moments.chunk_by(|one, other| one.cell == other.cell).count() > STRETCHES {
        return String::new();
    }
    let mut html = String::from("<div class=\"stretches\">");
    for stretch in moments.chunk_by(|one, other| one.cell == other.cell) {
        let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
        let [from, to] = [first.start_s, last.start_s + last.duration_s].map(|it| x.place(it) / WIDTH * 100.0);
        let cell = analysis.cells.get(first.cell);
        let (id, flags) = cell.map_or(("", Vec::new()), |cell| (cell.id.as_str(), flags(cell)));
        let told: String = flags.iter().map(|flag| format!(", {flag}")).collect();
        let sign = if flags.is_empty() { "" } else { "<span class=\"flag\">⚑</span> " };
        let _ = write!(
            html,
            "<span style=\"left:{}%;width:{}%\" title=\"{id}{told}\">{sign}{id}</span>",
            at(from),
            at(to - from),
            id = text(id)
        );
    }
    html + "</div>\n"
}

/// What limits the figures of a cell, each once.
fn flags(cell: &CellAnalysis) -> Vec<&'static str> {
    let all = cell.arms.iter().flat_map(|arm| &arm.estimates).flat_map(|estimate| &estimate.flags);
    all.map(|flag| words::flag_code(*flag)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// One quantity as steps, a step for each moment, with its figure on hover.
fn lane(
    title: &str,
    moments: &[Moment],
    read: fn(&Moment) -> Option<f64>,
    (x, most): (&Scale, f64),
    name: impl Fn(f64) -> String,
) -> String {
    let y = Scale { low: 0.0, high: most, start: LANE, end: 0.0 };
    let mut svg = format!(
        "<p>{title}</p><svg class=\"lane\" viewBox=\"0 0 {WIDTH} {LANE}\" width=\"100%\" height=\"{LANE}\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}, over the run; values in the table below\">"
    );
    for moment in moments {
        let Some(value) = read(moment) else { continue };
        let (from, to) = (x.place(moment.start_s), x.place(moment.start_s + moment.duration_s));
        let _ = write!(
            svg,
            "<path d=\"M{} {LANE}V{}H{}V{LANE}z\"><title>{}</title></path>",
            at(from),
            at(y.place(value).min(LANE - 0.6)),
            at(to.max(from + 0.6)),
            name(value)
        );
    }
    svg + "</svg>\n"
}

/// A mark under each moment with invalid frames; nothing where there is none.
fn invalid(moments: &[Moment], x: &Scale) -> String {
    let mark = |moment: &Moment| {
        format!(
            "<svg class=\"mark-at\" width=\"1\" height=\"1\" x=\"{}%\" y=\"0\"><path class=\"invalid\" \
             d=\"M0 1l4 8h-8z\"><title>{} invalid</title></path></svg>",
            at(x.place(moment.start_s + moment.duration_s / 2.0) / WIDTH * 100.0),
            words::plural(moment.invalid.into(), "frame")
        )
    };
    let marks: String = moments.iter().filter(|moment| moment.invalid > 0).map(mark).collect();
    match marks.is_empty() {
        true => marks,
        false => {
            format!("<svg width=\"100%\" height=\"12\" role=\"img\" aria-label=\"invalid frames\">{marks}</svg>\n")
        }
    }
}

/// Round times below.
fn clock(end_s: f64, x: &Scale) -> String {
    const STEPS: [f64; 12] = [1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0, 86_400.0];
    let step = STEPS.into_iter().find(|step| end_s / step <= 5.0).unwrap_or(end_s / 4.0);
    let mut svg = String::from("<svg width=\"100%\" height=\"16\" aria-hidden=\"true\">");
    for number in 0..=(end_s / step) as u32 {
        let time = step * f64::from(number);
        let name = if number == 0 { "0".to_owned() } else { clock_name(time) };
        let place = x.place(time) / WIDTH * 100.0;
        let class = match place {
            place if place > 94.0 => " class=\"end\"",
            place if place < 2.0 => " class=\"start\"",
            _ => "",
        };
        let _ = write!(svg, "<text x=\"{}%\" y=\"12\"{class}>{name}</text>", at(place));
    }
    svg + "</svg>\n"
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

fn table(analysis: &Analysis) -> String {
    let share = |share: Option<f64>| share.map_or("not seen".to_owned(), number::share);
    let mut html = String::from(
        "<table class=\"data\"><thead><tr><th scope=\"col\">cell</th><th scope=\"col\">frames</th><th scope=\"col\">invalid</th>\
         <th scope=\"col\">load</th><th scope=\"col\">processor pressure</th><th scope=\"col\">storage pressure</th>\
         <th scope=\"col\">steal</th><th scope=\"col\">clients waited</th></tr></thead><tbody>\n",
    );
    let row = |cell: &CellAnalysis| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            text(&cell.id),
            cell.frames,
            cell.invalid.len(),
            number::digits(cell.host.load),
            share(cell.host.cpu_pressure),
            share(cell.host.io_pressure),
            share(cell.host.steal),
            share(Some(cell.wait_share))
        )
    };
    html.extend(analysis.cells.iter().map(row));
    details("The machine in figures", &wide("the machine by cell", &(html + "</tbody></table>\n")))
}
