//! A gathered matrix as text for a terminal and as Markdown; [`csv`] and [`json`] are for programs, and
//! [`html`](super::html::matrix) is the page. All media use the same sentences.
//!
//! The facts about hosts shown with their costs are not claimed to be the cause.

pub mod csv;
pub mod json;

use std::collections::BTreeSet;

use tithe_model::quantity;
use tithe_statistics::{hosts::PooledEffect, verdict};

use super::{
    markdown, number,
    terminal::{self, Options},
    view::{Block, Column, Entry, Form, Note, Table, Tone, clean},
    words,
};
use crate::{
    CONFIDENCE,
    matrix::{Answer, Basis, Gathered, HostFigure, MatrixFigure, Row, facts},
};

/// The matrix for a terminal, ending with a line break.
pub fn text(gathered: &Gathered, figures: &[MatrixFigure], options: Options) -> String {
    terminal::laid_out(&document(gathered, figures, options.form), options)
}

/// The matrix as Markdown, ending with a line break.
pub fn markdown(gathered: &Gathered, figures: &[MatrixFigure], form: Form) -> String {
    markdown::laid_out(&document(gathered, figures, form))
}

fn document(gathered: &Gathered, figures: &[MatrixFigure], form: Form) -> Vec<Block> {
    let facts = vec![
        ("plan".to_owned(), format!("{}, gathered by tithe {}", gathered.plan, gathered.tithe)),
        ("tasks".to_owned(), progress(gathered)),
        ("figures".to_owned(), legend()),
    ];
    let mut blocks = vec![Block::Heading(1, gathered.title.clone()), Block::Facts(facts)];
    for group in figures.chunk_by(|one, other| (&one.machine, &one.experiment) == (&other.machine, &other.experiment)) {
        blocks.push(Block::Heading(2, format!("{} · {}", group[0].machine, group[0].experiment)));
        blocks.push(Block::Table(table(group)));
        if form == Form::Long {
            group.iter().for_each(|figure| blocks.extend(of_hosts(figure)));
        }
    }
    let missing = ("What is missing", missing(gathered, figures));
    for (title, reasons) in [missing, ("Not of this matrix", strays(gathered))] {
        if !reasons.is_empty() {
            blocks.push(Block::Heading(2, title.to_owned()));
            let note = |text| Note { mark: "!".to_owned(), text, tone: Tone::Caution };
            blocks.push(Block::Notes(reasons.into_iter().map(note).collect()));
        }
    }
    blocks.iter_mut().for_each(|block| block.each_text(clean));
    blocks
}

/// How complete the matrix is: `10 of 12 tasks are whole, on 5 hosts`.
pub fn progress(gathered: &Gathered) -> String {
    let boots = gathered.tasks.iter().filter_map(|row| Some(&row.outcome()?.machine.boot));
    let hosts = boots.collect::<BTreeSet<_>>().len();
    let whole = gathered.tasks.iter().filter(|row| row.outcome().is_some()).count();
    let all = words::plural(gathered.tasks.len() as u64, "task");
    format!("{} of {all} whole, on {}", quantity::count(whole as u64), words::plural(hosts as u64, "host"))
}

/// How to read a figure.
pub fn legend() -> String {
    format!(
        "cost relative to the first arm [{} interval, simultaneous over the arms of a cell], over several hosts that of \
         the mean of hosts of this kind; spread: standard deviation between hosts; another: where the next host lies, \
         from five hosts on; in (parentheses): the protection was not proven to be on, and the host does not count",
        number::share(CONFIDENCE)
    )
}

fn table(group: &[MatrixFigure]) -> Table {
    let columns = vec![
        Column::text("cell · arm"),
        Column::text("proven"),
        Column::figures("cost", ""),
        Column::text("of"),
        Column::figures("spread", ""),
        Column::text("another"),
    ];
    let row = |figure: &MatrixFigure| {
        let (proven, all) = (figure.counting().count(), figure.hosts.len());
        let tone = if all > 0 && proven == all { Tone::Good } else { Tone::Caution };
        vec![
            Entry::text(format!("{} · {}", figure.cell, figure.arm), Tone::Strong),
            Entry::text(format!("{proven} of {all}"), tone),
            match (cost(figure), both(figure)) {
                (Some(cost), _) => Entry::figure(cost, Tone::Normal),
                (None, Some(both)) => Entry::text(both, Tone::Normal),
                (None, None) => Entry::absent(),
            },
            Entry::text(basis(&figure.answer), Tone::Normal),
            spread(&figure.answer).map_or_else(Entry::absent, |it| Entry::text(it, Tone::Normal)),
            next(&figure.answer).map_or_else(Entry::absent, |it| Entry::text(it, Tone::Normal)),
        ]
    };
    Table { columns, rows: group.iter().map(row).collect(), sticky: 1 }
}

/// The cost of `figure`; `None` if nothing is pooled.
pub fn cost(figure: &MatrixFigure) -> Option<number::Figure> {
    Some(number::cost(&figure.together()?, figure.verdict()?))
}

/// The costs of two hosts or repeats, which are shown and not pooled.
pub fn both(figure: &MatrixFigure) -> Option<String> {
    let Answer::Two(_, both) = figure.answer else { return None };
    let [one, other] = both.map(|effect| number::cost(&effect, verdict::outcome(effect, figure.margin)));
    Some(format!("{one} and {other}"))
}

/// The number of hosts or repeats behind an answer.
pub fn basis(answer: &Answer) -> String {
    match answer {
        Answer::Nothing => "no host that counts".to_owned(),
        Answer::One(_) => "this host alone".to_owned(),
        Answer::Two(Basis::Hosts(_), _) => "two, not pooled".to_owned(),
        Answer::Two(Basis::Repeats(_), _) => "two repeats on this host, not pooled".to_owned(),
        Answer::Over(Basis::Hosts(count), _) => words::plural(*count as u64, "host"),
        Answer::Over(Basis::Repeats(count), _) => format!("{} on this host", words::plural(*count as u64, "repeat")),
    }
}

/// How much hosts, or repeats, differ.
pub fn spread(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Over(_, PooledEffect { spread, .. }) => Some(number::spread(spread)),
        _ => None,
    }
}

/// The interval for another host, or another repeat.
pub fn next(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Over(_, PooledEffect { next: Some(next), .. }) => Some(number::range(next.low, next.high)),
        _ => None,
    }
}

/// The hosts of `figure`, most expensive first, with the facts that differ between them.
fn of_hosts(figure: &MatrixFigure) -> Vec<Block> {
    let facts = facts::differing(&figure.hosts);
    let mut columns = vec![Column::text("host"), Column::figures("cost", ""), Column::text("tasks")];
    columns.extend(facts.iter().map(|(name, _)| Column::text(name)));
    let row = |(place, host): (usize, &HostFigure)| {
        let mut row = vec![
            Entry::text(host.host.clone(), Tone::Normal),
            Entry::text(of_host(host, figure.margin), if host.counts() { Tone::Normal } else { Tone::Caution }),
            Entry::text(tasks(host), Tone::Faint),
        ];
        row.extend(facts.iter().map(|(_, values)| Entry::text(values[place].clone(), Tone::Normal)));
        row
    };
    let rows = figure.hosts.iter().enumerate().map(row).collect();
    let title = format!("{} · {} ({}), host by host", figure.cell, figure.arm, figure.title());
    vec![Block::Heading(3, title), Block::Table(Table { columns, rows, sticky: 1 })]
}

/// The cost on one host, in parentheses if it does not count.
pub fn of_host(host: &HostFigure, margin: f64) -> String {
    let effect = host.effect();
    let told = number::cost(&effect, verdict::outcome(effect, margin)).to_string();
    if host.counts() { told } else { format!("({told})") }
}

/// The tasks that ran on `host`.
pub fn tasks(host: &HostFigure) -> String {
    ranges(&host.repeats.iter().map(|repeat| repeat.task).collect::<Vec<_>>())
}

/// Something that is missing: a task, a cell of one, or an arm of a cell.
struct Absence<'a> {
    row: &'a Row,
    cell: Option<&'a str>,
    /// The figure that it belongs to, if it is an arm.
    figure: Option<&'a MatrixFigure>,
    reason: &'a str,
}

/// Everything that is missing: tasks first, then results that only an arm lacks.
fn absences<'a>(gathered: &'a Gathered, figures: &'a [MatrixFigure]) -> Vec<Absence<'a>> {
    let mut absences = Vec::new();
    for row in &gathered.tasks {
        absences.extend(row.state.reason().map(|reason| Absence { row, cell: None, figure: None, reason }));
        let cells = row.outcome().map(|outcome| outcome.cells.iter()).into_iter().flatten();
        let failed = cells.filter_map(|cell| Some((cell.cell.as_str(), cell.failed.as_deref()?)));
        absences.extend(failed.map(|(cell, reason)| Absence { row, cell: Some(cell), figure: None, reason }));
    }
    for figure in figures {
        for (task, reason) in &figure.left_out {
            let Some(row) = gathered.tasks.iter().find(|row| row.task == *task) else { continue };
            let mut cells = row.outcome().map(|outcome| outcome.cells.iter()).into_iter().flatten();
            if !cells.any(|cell| cell.failed.as_deref() == Some(reason)) {
                absences.push(Absence { row, cell: Some(&figure.cell), figure: Some(figure), reason });
            }
        }
    }
    absences
}

/// Everything that is missing, each reason once with its tasks.
pub fn missing(gathered: &Gathered, figures: &[MatrixFigure]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<usize>)> = Vec::new();
    for Absence { row, cell, figure, reason } in absences(gathered, figures) {
        let reason = match (cell, figure) {
            (_, Some(figure)) => format!("{} · {}: {reason}", figure.cell, figure.arm),
            (Some(cell), None) => format!("cell {cell}: {reason}"),
            (None, None) => reason.to_owned(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, tasks)) => tasks.push(row.task),
            None => reasons.push((reason, vec![row.task])),
        }
    }
    let noun = |tasks: &[usize]| if tasks.len() == 1 { "task" } else { "tasks" };
    reasons.iter().map(|(reason, tasks)| format!("{} {}: {reason}", noun(tasks), ranges(tasks))).collect()
}

/// Other contents of the folder.
pub fn strays(gathered: &Gathered) -> Vec<String> {
    gathered.strays.iter().map(|stray| format!("{}: {}", stray.name, stray.reason)).collect()
}

/// A short form of ascending numbers: `3, 5–9`.
pub fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, other| one + 1 == *other);
    let run = |run: &[usize]| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
