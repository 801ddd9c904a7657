//! What the figures depend on and how to get them again: settings, versions, machine, warnings, the experiment.

use std::collections::BTreeMap;

use super::{
    markup::{details, facts, lines, section, text, wide},
    page_data::PageData,
};
use crate::{
    Analysis, ArmAnalysis, Flag,
    report::{headline, number, words},
};

/// What each arm changes in the settings of the plain one; the same in several cells once.
pub(super) fn settings(analysis: &Analysis) -> String {
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
        return String::new();
    }
    let body: String = told
        .into_iter()
        .map(|(name, difference, cells)| {
            let place =
                if cells.len() == analysis.cells.len() { String::new() } else { format!(" in {}", cells.join(", ")) };
            let lines: Vec<String> = difference.iter().map(|line| changed(line)).collect();
            details(&format!("{name}{place}"), &format!("<pre tabindex=\"0\">{}</pre>\n", lines.join("\n")))
        })
        .collect();
    section(
        "settings",
        "What each arm changes",
        "Lines that only the plain arm has (−) and that only the protected one has (+).",
        &body,
    )
}

fn changed(line: &str) -> String {
    match line.chars().next() {
        Some('+') => format!("<span class=\"add\">{}</span>", text(line)),
        Some('-') => format!("<span class=\"del\">{}</span>", text(line)),
        _ => text(line),
    }
}

/// Machine, versions, ciphers; `meanwhile` is what the machine did while it was measured.
pub(super) fn machine(analysis: &Analysis, meanwhile: &str) -> String {
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
        ("swap", if machine.swap.is_empty() { "not looked at" } else { machine.swap.as_str() }.to_owned()),
        ("clock", machine.clock.clone()),
    ];
    let mut body = facts(told.iter().map(|(label, value)| (*label, value.as_str())));
    body.push_str(meanwhile);
    body.push_str(&arms(analysis));
    section("machine", "Machine and versions", "", &body)
}

/// Versions and facts by arm: what all arms of all cells share once, the rest as a table.
fn arms(analysis: &Analysis) -> String {
    let all: Vec<(String, &ArmAnalysis)> = (analysis.cells.iter())
        .flat_map(|cell| cell.arms.iter().map(move |arm| (format!("{} · {}", cell.id, arm.name), arm)))
        .filter(|(_, arm)| !arm.facts.version.is_empty())
        .collect();
    let Some((_, first)) = all.first() else { return String::new() };
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
    let html = if told.is_empty() { told } else { details("Versions and facts: the same on every arm", &told) };
    let mut different: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (place, arm) in &all {
        for (name, value) in of(arm).into_iter().filter(|(name, _)| !shared.contains_key(name)) {
            different.entry(name).or_default().entry(value).or_default().push(place);
        }
    }
    if different.is_empty() {
        return html;
    }
    let mut table = String::from(
        "<table class=\"data\"><thead><tr><th scope=\"col\">fact</th><th scope=\"col\">value</th><th scope=\"col\">on</th></tr></thead><tbody>\n",
    );
    for (name, values) in &different {
        for (value, places) in values {
            table.push_str(&format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
                text(name),
                text(value),
                text(&in_short(places, all.len()))
            ));
        }
    }
    let table = wide("facts that differ between arms", &(table + "</tbody></table>\n"));
    html + &details("Versions and facts: what differs between arms", &table)
}

/// Some of the arms by name, many by number.
fn in_short(places: &[&str], all: usize) -> String {
    if places.len() <= 4 {
        places.join(", ")
    } else {
        format!("{} of {all} arms, {} and others", places.len(), places[0])
    }
}

/// What limits the figures and what to do about it; each flag once, with the cells and arms that have it.
pub(super) fn warnings(analysis: &Analysis) -> String {
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
    let mut items: Vec<String> = analysis.warnings.iter().map(|warning| text(warning)).collect();
    items.extend(flags.iter().map(|(flag, places)| {
        let some: Vec<&str> = places.iter().map(String::as_str).take(6).collect();
        let more =
            if places.len() > some.len() { format!(" and {} more", places.len() - some.len()) } else { String::new() };
        format!(
            "<b>{}</b> {} <span class=\"mark\">{}{more}</span>",
            words::flag_code(*flag),
            text(words::flag_advice(*flag)),
            text(&some.join(", "))
        )
    }));
    items.extend(analysis.cells.iter().flat_map(|cell| {
        let unusable = cell.frames == 0;
        let ended = unusable.then(|| {
            format!("<b>{}</b> was not measured: {}", text(&cell.id), text(&words::ending(cell.ending.as_ref())))
        });
        let invalid = (!cell.invalid.is_empty()).then(|| {
            format!(
                "<b>{}</b>: {} left out, among them frame {}: {}",
                text(&cell.id),
                words::plural(cell.invalid.len() as u64, "invalid frame"),
                cell.invalid[0].0,
                text(&cell.invalid[0].1)
            )
        });
        ended.into_iter().chain(invalid)
    }));
    let body = match items.is_empty() {
        true => "<p>None.</p>\n".to_owned(),
        false => format!("<ul class=\"notes\">\n<li>{}</li>\n</ul>\n", items.join("</li>\n<li>")),
    };
    section("warnings", "Warnings", "", &body)
}

/// The command and the file that run it again.
pub(super) fn again(analysis: &Analysis, page_data: &PageData) -> String {
    let mut body = String::from("<pre tabindex=\"0\">tithe run experiment.toml</pre>\n");
    if page_data.experiment.is_empty() {
        body.push_str("<p class=\"note\">The experiment file is in the run folder.</p>\n");
    } else {
        body.push_str(&details(
            "experiment.toml",
            &format!("<pre tabindex=\"0\">{}</pre>\n", lines(&page_data.experiment)),
        ));
    }
    let lead = format!(
        "With the same file and seed {} every order and every key stream is the same again; the machine and its hour are not.",
        analysis.seed
    );
    section("again", "Run it again", &lead, &body)
}

/// A paragraph, and one more where a run has several cells.
pub(super) fn how_to_read(analysis: &Analysis) -> String {
    let together = headline::together(analysis).map_or(String::new(), |told| format!("<p class=\"how\">{told}</p>\n"));
    let body = format!(
        "<p class=\"how\">A cost is how much more an operation takes with the protection than without, everything else being \
         equal. Both arms take turns every few milliseconds on the same processors, so that what disturbs one disturbs the \
         other. The interval covers the true cost {} times in 100. If all of it lies above zero, the protection costs \
         something; if it holds zero and ends below {}%, no cost was found; otherwise it is too noisy to tell, and more time \
         would tell. Where a protection was not proven to be on, its figure is not its cost. METHODOLOGY.md says how it is \
         measured, LIMITS.md what it cannot say.</p>\n{together}",
        (100.0 * analysis.confidence).round(),
        number::digits(number::percent(analysis.margin)),
    );
    section("how", "How to read this", "", &body)
}
