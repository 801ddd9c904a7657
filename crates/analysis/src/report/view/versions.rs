//! How costs differ between versions of the server that one run has measured.

use super::{Block, Column, Entry, Note, Table, Tone, costs};
use crate::{
    Analysis, Estimate,
    compare::{Match, Side, between_versions},
    report::{number, words::BETWEEN_VERSIONS},
};

/// A row for each arm of each cell, a column for each version: its cost, and below it how far it is from that of the
/// first. Nothing of a run of one version.
pub(super) fn differences(analysis: &Analysis) -> Vec<Block> {
    let Some(comparison) = between_versions(analysis) else { return Vec::new() };
    let mut columns = vec![Column::text("cell"), Column::text("arm")];
    columns.extend(comparison.runs.iter().map(|version| Column::figures(version, "")));
    let rows = comparison.matches.iter().map(row).collect();
    let mut notes = vec![format!("{BETWEEN_VERSIONS} In points: the cost less that of {}.", comparison.runs[0])];
    notes.extend(comparison.reasons());
    let note = |text: String| Note { mark: "·".to_owned(), text, tone: Tone::Normal };
    vec![
        Block::Heading(2, "Between versions".to_owned()),
        Block::Table(Table { columns, rows, sticky: 2 }),
        Block::Notes(notes.into_iter().map(note).collect()),
    ]
}

fn row(matched: &Match) -> Vec<Entry> {
    let changes = matched.changes();
    let cost = |side: &Side| {
        let Estimate { effect, unit, verdict, .. } = &side.estimate;
        let change = changes.iter().find(|change| change.run == side.run);
        let points = change.map_or(String::new(), |change| number::points(&change.points));
        let (lead, interval) = points.split_once(" [").unwrap_or((&points, ""));
        let interval = if interval.is_empty() { String::new() } else { format!("[{interval}") };
        let entry = costs::cost(effect, None, unit, *verdict, &side.proof);
        Entry { beside: (lead.to_owned(), interval), ..entry }
    };
    let names = [(&matched.cell, Tone::Normal), (&matched.arm, Tone::Strong)];
    names.map(|(name, tone)| Entry::text(name, tone)).into_iter().chain(matched.sides.iter().map(cost)).collect()
}
