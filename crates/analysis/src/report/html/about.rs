//! Conditions of the figures and how to repeat them: settings, versions, machine, warnings, the experiment.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    markup::{concat, details, facts, heads, is_empty, notes, section, wide},
    page_data::PageData,
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Flag,
    report::{headline, number, words},
};

/// Maximum number of places that a warning names.
const PLACES: usize = 6;

/// The settings that each arm changes from the plain one; equal changes in several cells are shown once.
pub(super) fn settings(analysis: &Analysis) -> Markup {
    let mut told: Vec<(&str, &[String], Vec<&str>)> = Vec::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| !arm.difference.is_empty()) {
            let same = |known: &&mut (&str, &[String], Vec<&str>)| known.0 == arm.name && known.1 == arm.difference;
            match told.iter_mut().find(same) {
                Some((.., cells)) => cells.push(&cell.id),
                None => told.push((&arm.name, &arm.difference, vec![&cell.id])),
            }
        }
    }
    if told.is_empty() {
        return html! {};
    }
    let body = concat(told.into_iter().map(|(name, difference, cells)| {
        let place =
            if cells.len() == analysis.cells.len() { String::new() } else { format!(" in {}", cells.join(", ")) };
        let lines = html! {
            pre tabindex="0" {
                @for (index, line) in difference.iter().enumerate() { @if index > 0 { "\n" } (changed(line)) }
            }
        };
        details(&format!("{name}{place}"), &lines)
    }));
    section(
        "settings",
        "What each arm changes",
        "Lines that only the plain arm has (−) and that only the protected one has (+).",
        &body,
    )
}

fn changed(line: &str) -> Markup {
    match line.chars().next() {
        Some('+') => html! { span.add { (line) } },
        Some('-') => html! { span.del { (line) } },
        _ => html! { (line) },
    }
}

/// Machine, versions, ciphers; `meanwhile` shows the state of the machine during the measurement.
pub(super) fn machine(analysis: &Analysis, meanwhile: &Markup) -> Markup {
    let machine = &analysis.machine;
    let list = |items: &[String]| if items.is_empty() { "none seen".to_owned() } else { items.join(", ") };
    let told = [
        ("processor", machine.processor.clone()),
        (
            "processors",
            format!("{} usable{}", machine.processors, if machine.virtualised { ", in a virtual machine" } else { "" }),
        ),
        ("memory", number::memory(machine.memory_bytes)),
        ("system", format!("{}, kernel {}", machine.system, machine.kernel)),
        ("crypto instructions", list(&machine.crypto_flags)),
        ("kernel's crypto drivers", list(&machine.kernel_crypto)),
        ("data folders", machine.data_folders()),
        ("swap", if machine.swap.is_empty() { "not checked" } else { machine.swap.as_str() }.to_owned()),
        ("clock", machine.clock.clone()),
    ];
    let body = html! {
        (facts(told.iter().map(|(label, value)| (*label, value.as_str()))))
        (meanwhile)
        (arms(analysis))
    };
    section("machine", "Machine and versions", "", &body)
}

/// Versions and facts by arm: facts shared by all arms of all cells once, the rest as a table.
fn arms(analysis: &Analysis) -> Markup {
    let all: Vec<(String, &ArmAnalysis)> = (analysis.cells.iter())
        .flat_map(|cell| cell.arms.iter().map(move |arm| (format!("{} · {}", cell.id, arm.name), arm)))
        .filter(|(_, arm)| !arm.facts.version.is_empty())
        .collect();
    let Some((_, first)) = all.first() else { return html! {} };
    let of = |arm: &ArmAnalysis| {
        let mut facts = arm.facts.facts.clone();
        facts.insert("version".to_owned(), arm.facts.version.clone());
        facts
    };
    let shared: BTreeMap<String, String> = of(first)
        .into_iter()
        .filter(|(name, value)| all.iter().all(|(_, arm)| of(arm).get(name) == Some(value)))
        .collect();
    let told = facts(shared.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut different: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (place, arm) in &all {
        for (name, value) in of(arm).into_iter().filter(|(name, _)| !shared.contains_key(name)) {
            different.entry(name).or_default().entry(value).or_default().push(place);
        }
    }
    // An arm has facts in each of its cells.
    let arms = match analysis.cells.len() {
        0 | 1 => words::plural(all.len() as u64, "arm"),
        cells => format!("{} in {cells} cells", words::plural(all.len() as u64, "arm")),
    };
    let table = html! {
        table.data {
            (heads(["fact", "value", "on"]))
            tbody {
                @for (name, values) in &different {
                    @for (value, places) in values {
                        tr { th scope="row" { (name) } td { (value) } td { (in_short(places, &arms)) } }
                    }
                }
            }
        }
    };
    html! {
        @if !is_empty(&told) { (details("Versions and facts: the same on every arm", &told)) }
        @if !different.is_empty() {
            (details(
                "Versions and facts: what differs between arms",
                &wide("facts that differ between arms", &table),
            ))
        }
    }
}

/// A few arms by name, many as a number.
fn in_short(places: &[&str], all: &str) -> String {
    if places.len() <= 4 { places.join(", ") } else { format!("{} of {all}, {} and others", places.len(), places[0]) }
}

/// Limits of the figures and how to remove them; each flag once, with its cells and arms.
pub(super) fn warnings(analysis: &Analysis) -> Markup {
    let mut flags: Vec<(Flag, Vec<String>)> = Vec::new();
    for (cell, arm, estimate) in analysis.cells.iter().flat_map(|cell| {
        cell.arms.iter().flat_map(move |arm| arm.estimates.iter().map(move |estimate| (cell, arm, estimate)))
    }) {
        for flag in &estimate.flags {
            let place = format!("{} · {}", cell.id, arm.name);
            match flags.iter_mut().find(|(known, _)| known == flag) {
                Some((_, places)) if places.last() == Some(&place) => {}
                Some((_, places)) => places.push(place),
                None => flags.push((*flag, vec![place])),
            }
        }
    }
    let flagged = |(flag, places): &(Flag, Vec<String>)| {
        let some = places.iter().take(PLACES).cloned().collect::<Vec<_>>().join(", ");
        let more = places.len().saturating_sub(PLACES);
        html! {
            b { (words::flag_code(*flag)) } " " (words::flag_advice(*flag)) " "
            span.mark { (some) @if more > 0 { " and " (more) " more" } }
        }
    };
    let of_cell = |cell: &CellAnalysis| {
        let ended = (cell.frames == 0).then(|| {
            html! { b { (cell.id) } " was not measured: " (words::ending(cell.ending.as_ref())) }
        });
        let invalid = cell.invalid.first().map(|(frame, reason)| {
            html! {
                b { (cell.id) } ": " (words::plural(cell.invalid.len() as u64, "invalid frame"))
                " left out, among them frame " (frame) ": " (reason)
            }
        });
        ended.into_iter().chain(invalid)
    };
    let told = analysis.warnings.iter().map(|warning| html! { (warning) });
    let all = notes(told.chain(flags.iter().map(flagged)).chain(analysis.cells.iter().flat_map(of_cell)));
    let body = if is_empty(&all) {
        html! { p { "None." } }
    } else {
        all
    };
    section("warnings", "Warnings", "", &body)
}

/// The command and the file to run it again.
pub(super) fn again(analysis: &Analysis, page_data: &PageData) -> Markup {
    let body = html! {
        pre tabindex="0" { "tithe run experiment.toml" }
        @if page_data.experiment.is_empty() {
            p.note { "The experiment file is in the run folder." }
        } @else {
            (details("experiment.toml", &html! { pre tabindex="0" { (page_data.experiment.trim_end_matches('\n')) } }))
        }
    };
    let lead = format!(
        "With the same file and seed {} every order and every key stream is the same again; the machine and its load \
         are not.",
        analysis.seed
    );
    section("again", "Run it again", &lead, &body)
}

/// A paragraph, and another one if a run has several cells.
pub(super) fn how_to_read(analysis: &Analysis) -> Markup {
    let body = html! {
        p.how {
            "A cost is how much more an operation takes with the protection than without, everything else being equal. \
             Arms usually take turns every few milliseconds on the same processors (each cell says how they share the \
             machine), so background load affects them alike. The interval covers the true cost "
            ((100.0 * analysis.confidence).round()) " times in 100. If all of it lies above zero, the protection costs \
             something; if it holds zero and ends below "
            (number::digits(number::percent(analysis.margin))) " %, no cost was found; otherwise it is too noisy to tell, and \
             more time would decide. Where a protection was not proven to be on, its figure is not its cost. \
             METHODOLOGY.md explains the method, LIMITS.md what a figure cannot show."
        }
        @if let Some(together) = headline::together(analysis) { p.how { (together) } }
    };
    section("how", "How to read this", "", &body)
}
