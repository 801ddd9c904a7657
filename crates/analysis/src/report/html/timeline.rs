//! The run over time: which cell, what limits its figures, how busy the machine was, which frames were invalid.

use std::{collections::BTreeSet, fmt::Write};

use super::{
    markup::{at, details, section, text, wide},
    page_data::{Moment, PageData},
    scale::Scale,
};
use crate::{
    Analysis, CellAnalysis,
    report::{number, words},
};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 116.0;
const LANE: f64 = 34.0;
const GAP: f64 = 12.0;
const TOP: f64 = 26.0;
/// About the width of a letter of a cell's name.
const LETTER: f64 = 6.2;

/// What a lane shows: its title, and the share of a moment.
type Lane = (&'static str, fn(&Moment) -> Option<f64>);

const LANES: [Lane; 3] = [
    ("processor pressure", |moment| moment.cpu_pressure),
    ("storage pressure", |moment| moment.io_pressure),
    ("steal", |moment| moment.steal),
];

/// The section; nothing where there was no frame.
pub(super) fn chart(analysis: &Analysis, page_data: &PageData) -> String {
    let end_s = page_data.moments.iter().map(|moment| moment.start_s + moment.duration_s).fold(0.0, f64::max);
    if end_s <= 0.0 {
        return String::new();
    }
    let lanes: Vec<&Lane> =
        LANES.iter().filter(|(_, read)| page_data.moments.iter().any(|moment| read(moment).is_some())).collect();
    let height = TOP + (LANE + GAP) * (lanes.len() + 1) as f64 + 18.0;
    let x = Scale { low: 0.0, high: end_s, start: LEFT, end: WIDTH - 8.0 };
    let mut svg = format!(
        "<svg class=\"time\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"The machine over the {} of the run; values in the table below\">",
        number::duration(end_s)
    );
    svg.push_str(&cells(analysis, page_data, &x, height));
    let mut top = TOP;
    for (title, read) in lanes {
        svg.push_str(&lane(title, page_data, *read, &x, top, 1.0, number::share));
        top += LANE + GAP;
    }
    // A load of one for each processor is where programs begin to wait for each other.
    let processors = f64::from(analysis.machine.processors.max(1));
    let most = page_data.moments.iter().map(|moment| moment.load).fold(processors, f64::max);
    svg.push_str(&lane(
        "load average",
        page_data,
        |moment| Some(moment.load),
        &x,
        top,
        most,
        |value| format!("{value:.1}"),
    ));
    svg.push_str(&invalid(page_data, &x, top + LANE));
    svg.push_str(&clock(end_s, &x, height));
    svg.push_str("</svg>\n");
    let lead = "How busy the machine was while each cell was measured. Pressure is the share of time in which some \
                program waited for a processor or for storage. A flag before a cell's name: something limits its figures, \
                see the warnings. A triangle below: invalid frames.";
    section("time", "The run over time", lead, &(wide("the run over time", &svg) + &table(analysis)))
}

/// A band for each stretch of a cell, with its name where there is room.
fn cells(analysis: &Analysis, page_data: &PageData, x: &Scale, height: f64) -> String {
    let mut svg = String::new();
    for (index, stretch) in page_data.moments.chunk_by(|one, other| one.cell == other.cell).enumerate() {
        let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
        let (from, to) = (x.place(first.start_s), x.place(last.start_s + last.duration_s));
        let cell = analysis.cells.get(first.cell);
        let id = cell.map_or("", |cell| &cell.id);
        let flags = cell.map_or(Vec::new(), flags);
        let shade = if index % 2 == 0 { "even" } else { "odd" };
        let told: String = flags.iter().map(|flag| format!(", {flag}")).collect();
        let _ = write!(
            svg,
            "<path class=\"{shade}\" d=\"M{} 4H{}V{}H{0}z\"><title>{}{told}</title></path>",
            at(from),
            at(to),
            at(height - 18.0),
            text(id)
        );
        let room = ((to - from - 8.0) / LETTER) as usize;
        let sign = if flags.is_empty() { "" } else { "<tspan class=\"flagged\">⚑</tspan> " };
        if room >= 4 {
            let _ = write!(
                svg,
                "<text x=\"{}\" y=\"17\" class=\"start\">{sign}{}<title>{}{told}</title></text>",
                at(from + 5.0),
                text(&shortened(id, room - 2 * usize::from(!flags.is_empty()))),
                text(id)
            );
        }
    }
    svg
}

/// What limits the figures of a cell, each once.
fn flags(cell: &CellAnalysis) -> Vec<&'static str> {
    let all = cell.arms.iter().flat_map(|arm| &arm.estimates).flat_map(|estimate| &estimate.flags);
    all.map(|flag| words::flag_code(*flag)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// `name` in at most `room` letters.
fn shortened(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// One quantity as steps, a step for each moment, with its figure on hover.
fn lane(
    title: &str,
    page_data: &PageData,
    read: fn(&Moment) -> Option<f64>,
    x: &Scale,
    top: f64,
    most: f64,
    name: impl Fn(f64) -> String,
) -> String {
    let y = Scale { low: 0.0, high: most, start: top + LANE, end: top };
    let mut svg = format!(
        "<g class=\"lane\"><text x=\"{0}\" y=\"{1}\" class=\"end\">{title}</text><text x=\"{0}\" y=\"{2}\" class=\"end\">of {3}</text>\
         <path class=\"base\" d=\"M{LEFT} {4}H{5}\"/>",
        at(LEFT - 8.0),
        at(top + LANE / 2.0),
        at(top + LANE / 2.0 + 13.0),
        name(most),
        at(top + LANE),
        at(x.end)
    );
    for moment in &page_data.moments {
        let Some(value) = read(moment) else { continue };
        let (from, to) = (x.place(moment.start_s), x.place(moment.start_s + moment.duration_s));
        let _ = write!(
            svg,
            "<path d=\"M{} {}V{}H{}V{1}z\"><title>{}</title></path>",
            at(from),
            at(top + LANE),
            at(y.place(value).min(top + LANE - 0.6)),
            at(to.max(from + 0.6)),
            name(value)
        );
    }
    svg + "</g>"
}

/// A mark under each moment with invalid frames.
fn invalid(page_data: &PageData, x: &Scale, bottom: f64) -> String {
    let mut svg = String::new();
    for moment in page_data.moments.iter().filter(|moment| moment.invalid > 0) {
        let place = x.place(moment.start_s + moment.duration_s / 2.0);
        let _ = write!(
            svg,
            "<path class=\"invalid\" d=\"M{} {}l4 8h-8z\"><title>{} invalid</title></path>",
            at(place),
            at(bottom + 1.0),
            words::plural(moment.invalid.into(), "frame")
        );
    }
    svg
}

/// Round times below.
fn clock(end_s: f64, x: &Scale, height: f64) -> String {
    const STEPS: [f64; 12] = [1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0, 86_400.0];
    let step = STEPS.into_iter().find(|step| end_s / step <= 8.0).unwrap_or(end_s / 4.0);
    let mut svg = String::from("<g class=\"axes\">");
    for number in 0..=(end_s / step) as u32 {
        let time = step * f64::from(number);
        let name = if number == 0 { "0".to_owned() } else { clock_name(time) };
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\">{name}</text>", at(x.place(time)), at(height - 4.0));
    }
    svg + "</g>"
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
    details("The run in figures", &wide("the machine by cell", &(html + "</tbody></table>\n")))
}
