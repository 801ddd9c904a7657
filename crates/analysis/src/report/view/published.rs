//! Published costs next to the measured ones.

use super::{Block, Column, Entry, Note, Table, Tone, costs};
use crate::{ArmAnalysis, CellAnalysis, Estimate, PublishedCost, report::number};

/// The table of a cell with its sources; empty if the experiment quotes no figures.
pub(super) fn of_cell(cell: &CellAnalysis) -> Vec<Block> {
    let quoted = || cell.arms.iter().flat_map(|arm| arm.published.iter().map(move |published| (arm, published)));
    let rows: Vec<Vec<Entry>> = quoted().map(|(arm, published)| row(arm, published)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut sources: Vec<&str> = Vec::new();
    for (_, published) in quoted() {
        if !sources.contains(&published.source.as_str()) {
            sources.push(&published.source);
        }
    }
    let mut measured: Vec<&str> = quoted()
        .filter_map(|(arm, published)| beside(arm, published))
        .map(|estimate| estimate.title.as_str())
        .collect();
    measured.dedup();
    let columns = vec![
        Column::text("arm"),
        Column::text("published by others"),
        Column::text("as a cost"),
        Column::figures("measured here", measured.join(", ")),
    ];
    let text = format!("Published: {}. Other machines, versions and loads than here.", sources.join("; "));
    vec![
        Block::Table(Table { columns, rows, sticky: 1 }),
        Block::Notes(vec![Note { mark: "p".to_owned(), text, tone: Tone::Normal }]),
    ]
}

fn row(arm: &ArmAnalysis, published: &PublishedCost) -> Vec<Entry> {
    let measured = beside(arm, published);
    let figure = measured.map(|estimate| {
        let Estimate { effect, difference, unit, verdict, .. } = estimate;
        costs::cost(effect, difference.as_ref(), unit, *verdict, &arm.proof)
    });
    vec![
        Entry::text(&arm.name, Tone::Strong),
        Entry::text(&published.printed, Tone::Normal),
        Entry::text(number::published(published.low, published.high), Tone::Normal),
        figure.unwrap_or(Entry::absent()),
    ]
}

/// The estimate of `arm` that `published` can be compared with.
pub(in crate::report) fn beside<'a>(arm: &'a ArmAnalysis, published: &PublishedCost) -> Option<&'a Estimate> {
    arm.estimates.iter().find(|estimate| estimate.name == published.estimate)
}
