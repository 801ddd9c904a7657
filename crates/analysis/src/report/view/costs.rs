//! The table that answers the question: what does each arm cost.

use super::{Block, Column, Entry, Form, Note, Table, Tone};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Level, Outcome, Proof,
    report::{number, words},
};

/// Signs of footnotes, one per flag.
const MARKS: [&str; 7] = ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷"];

/// At most this many operations get percentile columns; the others are in the long form's tables.
const OPERATIONS_SHOWN: usize = 2;

/// Costs and footnotes of `cell`.
pub(super) fn of_cell(analysis: &Analysis, cell: &CellAnalysis, form: Form) -> Vec<Block> {
    let headline = headline(cell);
    if headline.is_empty() {
        return vec![
            Block::Table(proofs(cell)),
            Block::Paragraph("Nothing was measured here: there are no costs to report.".to_owned()),
        ];
    }
    let shown = |estimate: &&Estimate| form == Form::Long || headline.contains(&estimate.name.as_str());
    let footnotes = Footnotes::of(cell.arms.iter().flat_map(|arm| &arm.estimates).filter(shown));
    let mut notes = footnotes.notes();
    notes.extend(cell.arms.iter().filter_map(more));
    let mut blocks = vec![Block::Table(table(analysis, cell, &headline, &footnotes))];
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    blocks
}

/// Arms and proofs alone, where nothing was measured.
fn proofs(cell: &CellAnalysis) -> Table {
    let columns = vec![Column::text("arm"), Column::text("proof")];
    Table { columns, rows: cell.arms.iter().map(|arm| label(arm).to_vec()).collect(), sticky: 2 }
}

fn table(analysis: &Analysis, cell: &CellAnalysis, headline: &[&str], footnotes: &Footnotes) -> Table {
    let mut columns = vec![Column::text("arm"), Column::text("proof")];
    for name in headline {
        columns.push(Column::figures(
            title(cell, name),
            counts(estimates(cell, name).map(|estimate| estimate.count as u64)),
        ));
    }
    columns.insert(3, Column::text("verdict"));
    let throughputs = cell.arms.iter().filter_map(|arm| find_level(arm, "throughput"));
    columns.push(Column::figures("throughput", counts(throughputs.map(|level| level.count))));
    let row = |arm: &ArmAnalysis| {
        let mut row = label(arm).to_vec();
        row.extend(headline.iter().map(|name| entry(cell, arm, name, footnotes)));
        row.insert(3, verdict(arm, analysis.margin));
        row.push(level_entry(find_level(arm, "throughput"), arm));
        row
    };
    Table { rows: cell.arms.iter().map(row).collect(), columns, sticky: 2 }
}

fn label(arm: &ArmAnalysis) -> [Entry; 2] {
    let (mark, tone) = words::proof(&arm.proof);
    [Entry::text(&arm.name, Tone::Strong), Entry::text(mark, tone)]
}

/// Names of the estimates that get a column, the primary first.
fn headline(cell: &CellAnalysis) -> Vec<&str> {
    let all = || cell.arms.iter().flat_map(|arm| &arm.estimates);
    let mut names: Vec<&str> =
        all().filter(|estimate| estimate.primary).map(|estimate| estimate.name.as_str()).collect();
    names.extend(all().map(|estimate| estimate.name.as_str()).filter(|name| *name == "cpu"));
    names.extend(percentiles(cell));
    let mut unique = Vec::new();
    names.retain(|name| {
        !unique.contains(name) && {
            unique.push(*name);
            true
        }
    });
    names
}

/// The p50 and p99 of the first operations; from the intended start where there is one, because that is what
/// a user of an open system waits.
fn percentiles(cell: &CellAnalysis) -> Vec<&str> {
    let mut found: Vec<(&str, Percentile)> = Vec::new();
    for estimate in cell.arms.iter().flat_map(|arm| &arm.estimates) {
        let Some(percentile) = Percentile::parse(&estimate.name) else { continue };
        if matches!(percentile.rank, "p50" | "p99") && !found.iter().any(|(name, _)| *name == estimate.name) {
            found.push((&estimate.name, percentile));
        }
    }
    let intended = found.iter().any(|(_, percentile)| percentile.intended());
    found.retain(|(_, percentile)| percentile.intended() == intended);
    let mut operations = Vec::new();
    for (_, percentile) in &found {
        if !operations.contains(&percentile.operation) {
            operations.push(percentile.operation);
        }
    }
    operations.truncate(OPERATIONS_SHOWN);
    found
        .into_iter()
        .filter(|(_, percentile)| operations.contains(&percentile.operation))
        .map(|(name, _)| name)
        .collect()
}

/// A percentile's name taken apart: `latency_p99_READ`.
struct Percentile<'a> {
    kind: &'a str,
    rank: &'a str,
    operation: &'a str,
}

impl<'a> Percentile<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (kind, rest) = name.split_once("_p")?;
        let rank_start = kind.len() + 1;
        let rank_end = rank_start + 1 + rest.find('_')?;
        Some(Self { kind, rank: &name[rank_start..rank_end], operation: &name[rank_end + 1..] })
    }

    fn intended(&self) -> bool {
        self.kind.contains("intended")
    }
}

/// The title of a column: short for percentiles, because several stand side by side.
fn title(cell: &CellAnalysis, name: &str) -> String {
    match Percentile::parse(name) {
        Some(percentile) => {
            let from = if percentile.intended() { " from intended start" } else { "" };
            format!("{} {}{from}", percentile.operation, percentile.rank)
        }
        None => estimates(cell, name).next().map_or(name, |estimate| &estimate.title).to_owned(),
    }
}

/// `n = 30`, or the range where the arms differ.
pub(super) fn counts(counts: impl Iterator<Item = u64> + Clone) -> String {
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least == most => format!("n = {}", number::count(least)),
        (Some(least), Some(most)) => format!("n = {}–{}", number::count(least), number::count(most)),
        _ => String::new(),
    }
}

fn estimates<'a>(cell: &'a CellAnalysis, name: &str) -> impl Iterator<Item = &'a Estimate> + Clone {
    cell.arms.iter().flat_map(|arm| &arm.estimates).filter(move |estimate| estimate.name == name)
}

/// A cost; in the baseline's row the level that it is a cost on.
fn entry(cell: &CellAnalysis, arm: &ArmAnalysis, name: &str, footnotes: &Footnotes) -> Entry {
    if let Some(estimate) = arm.estimates.iter().find(|estimate| estimate.name == name) {
        return figure(estimate, &arm.proof, footnotes);
    }
    if arm.proof != Proof::Baseline {
        return Entry::absent();
    }
    if let Some(level) = find_level(arm, name) {
        return level_entry(Some(level), arm);
    }
    match estimates(cell, name).find_map(|estimate| estimate.levels.map(|(plain, _)| (plain, estimate.unit))) {
        Some((plain, unit)) => Entry::text(number::amount(plain, unit), Tone::Normal),
        None => Entry::absent(),
    }
}

/// The level called `name`, or `name` per operation.
fn find_level<'a>(arm: &'a ArmAnalysis, name: &str) -> Option<&'a Level> {
    let named = |wanted: &str| arm.levels.iter().find(|level| level.name == wanted);
    named(name).or_else(|| named(&format!("{name}_per_op")))
}

/// A level with its interval; in parentheses where the arm is not proven.
pub(super) fn level_entry(level: Option<&Level>, arm: &ArmAnalysis) -> Entry {
    let Some(level) = level else { return Entry::absent() };
    let figure = number::level(level.value, level.low, level.high, level.unit);
    let entry = Entry::figure(figure, Tone::Normal);
    if proven(&arm.proof) { entry } else { doubted(entry) }
}

/// A cost with its interval and the marks of its footnotes; in parentheses where the arm is not proven.
pub(super) fn figure(estimate: &Estimate, proof: &Proof, footnotes: &Footnotes) -> Entry {
    let mut entry = cost(&estimate.effect, estimate.verdict, proof);
    entry.rest.push_str(&footnotes.marks(&estimate.flags));
    entry
}

/// A cost with its interval, in parentheses where the arm is not proven.
pub(super) fn cost(effect: &Interval, outcome: Outcome, proof: &Proof) -> Entry {
    let entry = Entry::figure(number::cost(effect, outcome), words::outcome_tone(outcome));
    if proven(proof) { entry } else { doubted(entry) }
}

fn proven(proof: &Proof) -> bool {
    matches!(proof, Proof::Baseline | Proof::Proven)
}

fn doubted(entry: Entry) -> Entry {
    Entry { lead: format!("({}", entry.lead), rest: format!("{})", entry.rest), tone: Tone::Faint }
}

/// The answer for the primary estimate; it says so where the protection was not proven.
fn verdict(arm: &ArmAnalysis, margin: f64) -> Entry {
    let Some(primary) = arm.estimates.iter().find(|estimate| estimate.primary) else {
        return Entry::text("", Tone::Normal);
    };
    let answer = words::outcome(primary, margin);
    match &arm.proof {
        Proof::Baseline | Proof::Proven => Entry::text(answer, words::outcome_tone(primary.verdict)),
        Proof::Unproven(_) => Entry::text(format!("unproven ({answer})"), Tone::Caution),
        Proof::Disproven(_) => Entry::text(format!("disproven ({answer})"), Tone::Bad),
    }
}

/// How much longer it would take to be as precise as asked.
fn more(arm: &ArmAnalysis) -> Option<Note> {
    let primary = arm.estimates.iter().find(|estimate| estimate.primary)?;
    let more = number::duration(primary.more_s?);
    let text = format!("{}: about {more} more of measured load would reach the asked precision.", arm.name);
    Some(Note { mark: "~".to_owned(), text, tone: Tone::Normal })
}

/// The flags of the figures shown, numbered in a fixed order.
pub(super) struct Footnotes(Vec<Flag>);

impl Footnotes {
    pub(super) fn of<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Self {
        let mut flags: Vec<Flag> = estimates.flat_map(|estimate| estimate.flags.iter().copied()).collect();
        flags.sort_by_key(|flag| *flag as u8);
        flags.dedup();
        Self(flags)
    }

    /// The signs of `flags`, or nothing.
    fn marks(&self, flags: &[Flag]) -> String {
        let numbered = self.0.iter().zip(MARKS).filter(|(flag, _)| flags.contains(flag));
        numbered.map(|(_, mark)| mark).collect()
    }

    fn notes(&self) -> Vec<Note> {
        let note = |(flag, mark): (&Flag, &str)| Note {
            mark: mark.to_owned(),
            text: format!("{}. {}", words::flag_code(*flag), words::flag_advice(*flag)),
            tone: Tone::Caution,
        };
        self.0.iter().zip(MARKS).map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Percentile;

    #[test]
    fn percentile_names_come_apart() {
        let parts =
            |name| Percentile::parse(name).map(|percentile| (percentile.kind, percentile.rank, percentile.operation));
        assert_eq!(parts("latency_p99_READ"), Some(("latency", "p99", "READ")));
        assert_eq!(parts("intended_p99.9_READ_MODIFY_WRITE"), Some(("intended", "p99.9", "READ_MODIFY_WRITE")));
        assert_eq!(parts("cpu"), None);
        assert_eq!(parts("wal_pages"), None);
    }
}
