//! The table that answers the question: what does each arm cost.

use super::{Block, Column, Entry, Form, Note, Table, Tone};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Level, NEW_ORDERS, Outcome, Proof,
    report::{number, words},
};

/// Signs of footnotes, one per flag.
const MARKS: [&str; 13] = ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰", "¹¹", "¹²", "¹³"];

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
    let footnotes = Footnotes::of(cell, form);
    let mut notes = footnotes.notes();
    notes.extend(more(cell));
    notes.extend(words::neighbours(cell).map(|text| Note { mark: "%".to_owned(), text, tone: Tone::Caution }));
    if headline.iter().filter_map(|name| Percentile::parse(name)).any(|percentile| percentile.intended()) {
        let text = "intended: latency from the moment the operation should have started, so that queueing behind a \
                    stall counts."
            .to_owned();
        notes.push(Note { mark: "i".to_owned(), text, tone: Tone::Normal });
    }
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
    let costs: Vec<(Column, Vec<Entry>)> = headline.iter().map(|name| cost_column(cell, name, footnotes)).collect();
    let verdicts = cell.arms.iter().map(|arm| answer(arm, analysis.margin)).collect();
    let mut columns = vec![
        (Column::text("arm"), cell.arms.iter().map(|arm| label(arm)[0].clone()).collect()),
        (Column::text("proof"), cell.arms.iter().map(|arm| label(arm)[1].clone()).collect()),
    ];
    columns.extend(costs);
    // Behind the primary cost, so that the answer stands beside its number in a table that is split.
    columns.insert(3, (Column::text("verdict"), verdicts));
    columns.push(level_column(cell, "throughput", "throughput"));
    if has_new_orders(cell) {
        columns.push(level_column(cell, NEW_ORDERS, "New-Orders"));
    }
    let rows = (0..cell.arms.len()).map(|arm| columns.iter().map(|(_, entries)| entries[arm].clone()).collect());
    Table { rows: rows.collect(), columns: columns.into_iter().map(|(column, _)| column).collect(), sticky: 2 }
}

/// A cost of every arm; in the baseline's row the level that it is a cost on.
fn cost_column(cell: &CellAnalysis, name: &str, footnotes: &Footnotes) -> (Column, Vec<Entry>) {
    let usual = usual(estimates(cell, name).map(|estimate| estimate.count as u64));
    let entry = |arm: &ArmAnalysis| match arm.estimates.iter().find(|estimate| estimate.name == name) {
        Some(estimate) => with_count(figure(estimate, &arm.proof, footnotes), estimate.count as u64, usual),
        None if arm.proof == Proof::Baseline => plain_level(cell, arm, name),
        None => Entry::absent(),
    };
    (Column::figures(title(cell, name), note(usual)), cell.arms.iter().map(entry).collect())
}

/// True where the workload is derived from TPC-C.
fn has_new_orders(cell: &CellAnalysis) -> bool {
    cell.arms.iter().any(|arm| find_level(arm, NEW_ORDERS).is_some())
}

/// The level called `name` of every arm.
fn level_column(cell: &CellAnalysis, name: &str, title: &str) -> (Column, Vec<Entry>) {
    let levels = || cell.arms.iter().map(|arm| (arm, find_level(arm, name)));
    let usual = usual(levels().filter_map(|(_, level)| Some(level?.count)));
    let entry = |(arm, level): (&ArmAnalysis, Option<&Level>)| match level {
        Some(level) => with_count(level_entry(level, arm), level.count, usual),
        None => Entry::absent(),
    };
    (Column::figures(title, note(usual)), levels().map(entry).collect())
}

fn label(arm: &ArmAnalysis) -> [Entry; 2] {
    let (mark, tone) = words::proof(&arm.proof);
    [Entry::text(&arm.name, Tone::Strong), Entry::text(mark, tone)]
}

/// Names of the estimates that get a column, the primary first.
pub(in crate::report) fn headline(cell: &CellAnalysis) -> Vec<&str> {
    let all = || cell.arms.iter().flat_map(|arm| &arm.estimates);
    let mut names: Vec<&str> =
        all().filter(|estimate| estimate.primary).map(|estimate| estimate.name.as_str()).collect();
    // What encrypts is the client, where databases are told by their New-Orders.
    let cpu: &[&str] = if has_new_orders(cell) { &["client_cpu", "cpu"] } else { &["cpu"] };
    for wanted in cpu {
        names.extend(all().map(|estimate| estimate.name.as_str()).filter(|name| name == wanted));
    }
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
pub(in crate::report) struct Percentile<'a> {
    /// From which start latency counts: `latency`, `intended`.
    pub kind: &'a str,
    /// `p99`
    pub rank: &'a str,
    /// `READ`
    pub operation: &'a str,
}

impl<'a> Percentile<'a> {
    /// `None` where `name` is no percentile's.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (kind, rest) = name.split_once("_p")?;
        let rank_start = kind.len() + 1;
        let rank_end = rank_start + 1 + rest.find('_')?;
        let (rank, operation) = (&name[rank_start..rank_end], &name[rank_end + 1..]);
        rank.get(1..)?.parse::<f64>().ok()?;
        Some(Self { kind, rank, operation })
    }

    /// True where latency counts from when the operation should have started.
    pub fn intended(&self) -> bool {
        self.kind.contains("intended")
    }
}

/// The title of a column: short for percentiles, because several stand side by side.
pub(in crate::report) fn title(cell: &CellAnalysis, name: &str) -> String {
    match Percentile::parse(name) {
        Some(percentile) => {
            let from = if percentile.intended() { "intended " } else { "" };
            format!("{from}{} {}", percentile.operation, percentile.rank)
        }
        None => estimates(cell, name).next().map_or(name, |estimate| &estimate.title).to_owned(),
    }
}

/// The count behind most figures of a column; a figure with another one tells its own.
pub(super) fn usual(counts: impl Iterator<Item = u64>) -> Option<u64> {
    let counts: Vec<u64> = counts.collect();
    let times = |count: &u64| counts.iter().filter(|other| *other == count).count();
    counts.iter().copied().max_by_key(|count| (times(count), *count))
}

fn note(usual: Option<u64>) -> String {
    usual.map_or(String::new(), |count| format!("n = {}", number::count(count)))
}

/// Adds `count` to a figure where it is not the one that its column tells.
fn with_count(mut entry: Entry, count: u64, usual: Option<u64>) -> Entry {
    if usual != Some(count) {
        entry.rest.push_str(&format!(" n={}", number::count(count)));
    }
    entry
}

fn estimates<'a>(cell: &'a CellAnalysis, name: &str) -> impl Iterator<Item = &'a Estimate> + Clone {
    cell.arms.iter().flat_map(|arm| &arm.estimates).filter(move |estimate| estimate.name == name)
}

/// The baseline's own level of `name`, or the one that the estimates were made from.
fn plain_level(cell: &CellAnalysis, baseline: &ArmAnalysis, name: &str) -> Entry {
    if let Some(level) = find_level(baseline, name) {
        return level_entry(level, baseline);
    }
    match estimates(cell, name).find_map(|estimate| estimate.levels.map(|(plain, _)| (plain, &estimate.unit))) {
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
pub(super) fn level_entry(level: &Level, arm: &ArmAnalysis) -> Entry {
    let figure = number::level(level.value, level.low, level.high, &level.unit);
    let entry = Entry::figure(figure, Tone::Normal);
    if proven(&arm.proof) { entry } else { doubted(entry) }
}

/// A cost with its interval, its difference and the marks of its footnotes; in parentheses where the arm is not proven.
pub(super) fn figure(estimate: &Estimate, proof: &Proof, footnotes: &Footnotes) -> Entry {
    let difference = estimate.difference.as_ref();
    let mut entry = cost(&estimate.effect, difference, &estimate.unit, estimate.verdict, proof);
    entry.rest.push_str(&footnotes.marks(&estimate.flags));
    entry
}

/// A cost with its interval and, beside it, the difference per operation; in parentheses where the arm is not proven.
pub(super) fn cost(
    effect: &Interval,
    difference: Option<&Interval>,
    unit: &str,
    outcome: Outcome,
    proof: &Proof,
) -> Entry {
    let figures = number::both(effect, difference, unit, outcome);
    let mut entry = Entry::figure(figures.0, words::outcome_tone(outcome));
    entry.beside = figures.1.map(|figure| (figure.lead, figure.rest)).unwrap_or_default();
    if proven(proof) { entry } else { doubted(entry) }
}

fn proven(proof: &Proof) -> bool {
    matches!(proof, Proof::Baseline | Proof::Proven)
}

fn doubted(entry: Entry) -> Entry {
    let in_parentheses = |lead: String, rest: String| (format!("({lead}"), format!("{rest})"));
    let beside = match entry.beside.0.is_empty() {
        true => entry.beside,
        false => in_parentheses(entry.beside.0, entry.beside.1),
    };
    let (lead, rest) = in_parentheses(entry.lead, entry.rest);
    Entry { lead, rest, beside, tone: Tone::Faint, ..entry }
}

/// The answer for the primary estimate.
fn answer(arm: &ArmAnalysis, margin: f64) -> Entry {
    let primary = arm.estimates.iter().find(|estimate| estimate.primary);
    primary.map_or(Entry::default(), |estimate| verdict(estimate, &arm.proof, margin))
}

/// What an estimate says: nothing but that where the protection was not proven.
pub(super) fn verdict(estimate: &Estimate, proof: &Proof, margin: f64) -> Entry {
    match proof {
        Proof::Baseline | Proof::Proven => {
            let text = Entry::text(words::outcome(estimate, margin), words::outcome_tone(estimate.verdict));
            Entry { short: Some(words::outcome_short(estimate, margin)), ..text }
        }
        Proof::Unproven(_) => Entry::text("unproven", Tone::Caution),
        Proof::Disproven(_) => Entry::text("disproven", Tone::Bad),
    }
}

/// How much longer it would take until every arm is as precise as asked.
fn more(cell: &CellAnalysis) -> Option<Note> {
    let primary = |arm: &ArmAnalysis| arm.estimates.iter().find(|estimate| estimate.primary)?.more_s;
    let missing: Vec<f64> = cell.arms.iter().filter_map(primary).collect();
    let most = missing.iter().copied().reduce(f64::max)?;
    let guarded = cell.arms.iter().filter(|arm| !arm.estimates.is_empty()).count();
    let arms = match (missing.len(), guarded) {
        (1, 1) => String::new(),
        (some, all) => format!(" in {some} of {all} arms"),
    };
    let text = format!(
        "The asked precision was not reached{arms}: about {} more of measured load would reach it.",
        number::duration(most)
    );
    Some(Note { mark: "~".to_owned(), text, tone: Tone::Normal })
}

/// The flags of the figures shown, numbered as they appear.
pub(super) struct Footnotes(Vec<Flag>);

impl Footnotes {
    /// Those of the headline, then, in the long form, those that only the tables of the arms show.
    pub(super) fn of(cell: &CellAnalysis, form: Form) -> Self {
        let headline = headline(cell).into_iter().flat_map(|name| estimates(cell, name));
        let others = cell.arms.iter().flat_map(|arm| &arm.estimates).filter(|_| form == Form::Long);
        let mut flags = Vec::new();
        for flag in headline.chain(others).flat_map(|estimate| &estimate.flags) {
            if !flags.contains(flag) {
                flags.push(*flag);
            }
        }
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
    use super::{Percentile, usual};

    #[test]
    fn the_usual_count_is_the_most_frequent_then_the_largest() {
        assert_eq!(usual([30, 15, 30].into_iter()), Some(30));
        assert_eq!(usual([15, 30].into_iter()), Some(30));
        assert_eq!(usual([].into_iter()), None);
    }

    #[test]
    fn percentile_names_come_apart() {
        let parts =
            |name| Percentile::parse(name).map(|percentile| (percentile.kind, percentile.rank, percentile.operation));
        assert_eq!(parts("latency_p99_READ"), Some(("latency", "p99", "READ")));
        assert_eq!(parts("intended_p99.9_READ_MODIFY_WRITE"), Some(("intended", "p99.9", "READ_MODIFY_WRITE")));
        assert_eq!(parts("cpu_per_op"), None);
        assert_eq!(parts("wal_pages"), None);
    }
}
