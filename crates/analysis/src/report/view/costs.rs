//! The main table: the cost of each arm.

use tithe_model::{ending::CellEnding, experiment::Metric};

use super::{Block, Column, Entry, Form, Note, Table, Tone};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, Flag, Interval, Level, Outcome, Proof,
    figures::{Percentile, Rank, Start},
    report::{headline::control_of, number, words},
};

/// Signs of footnotes, one per flag.
const MARKS: [&str; 18] =
    ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰", "¹¹", "¹²", "¹³", "¹⁴", "¹⁵", "¹⁶", "¹⁷", "¹⁸"];

/// Maximum number of operations with percentile columns; the others are in the long form's tables.
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
    let control =
        |arm: &ArmAnalysis| Note { mark: arm.name.clone(), text: words::CONTROL.to_owned(), tone: Tone::Normal };
    let mut notes: Vec<Note> = control_of(cell).map(control).into_iter().collect();
    notes.extend(footnotes.notes());
    notes.extend(more(analysis, cell));
    notes.extend(words::neighbours(cell).map(|text| Note { mark: "%".to_owned(), text, tone: Tone::Caution }));
    if headline.iter().filter_map(|name| name.percentile()).any(is_intended) {
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

/// Only arms and proofs, for a cell without measurements.
fn proofs(cell: &CellAnalysis) -> Table {
    let columns = vec![Column::text("arm"), Column::text("proof")];
    Table { columns, rows: cell.arms.iter().map(|arm| label(arm).to_vec()).collect(), sticky: 2 }
}

fn table(analysis: &Analysis, cell: &CellAnalysis, headline: &[&Figure], footnotes: &Footnotes) -> Table {
    let costs: Vec<(Column, Vec<Entry>)> = headline.iter().map(|name| cost_column(cell, name, footnotes)).collect();
    let verdicts = cell.arms.iter().map(|arm| answer(arm, analysis.margin)).collect();
    let mut columns = vec![
        (Column::text("arm"), cell.arms.iter().map(|arm| label(arm)[0].clone()).collect()),
        (Column::text("proof"), cell.arms.iter().map(|arm| label(arm)[1].clone()).collect()),
    ];
    columns.extend(costs);
    // After the primary cost, so that a split table keeps the answer next to its number.
    columns.insert(3, (Column::text("verdict"), verdicts));
    columns.push(level_column(cell, &Figure::Throughput, "throughput"));
    if has_new_orders(cell) {
        columns.push(level_column(cell, &Figure::NewOrders, "New-Orders"));
    }
    let rows = (0..cell.arms.len()).map(|arm| columns.iter().map(|(_, entries)| entries[arm].clone()).collect());
    Table { rows: rows.collect(), columns: columns.into_iter().map(|(column, _)| column).collect(), sticky: 2 }
}

/// A cost of every arm; in the baseline's row the corresponding level.
fn cost_column(cell: &CellAnalysis, name: &Figure, footnotes: &Footnotes) -> (Column, Vec<Entry>) {
    let usual = usual(estimates(cell, name).map(|estimate| estimate.count as u64));
    let entry = |arm: &ArmAnalysis| match arm.estimates.iter().find(|estimate| estimate.name == *name) {
        Some(estimate) => with_count(figure(estimate, &arm.proof, footnotes), estimate.count as u64, usual),
        None if arm.proof == Proof::Baseline => plain_level(cell, arm, name),
        None => Entry::absent(),
    };
    (Column::figures(title(cell, name), note(usual)), cell.arms.iter().map(entry).collect())
}

/// True if the workload is derived from TPC-C.
fn has_new_orders(cell: &CellAnalysis) -> bool {
    cell.arms.iter().any(|arm| find_level(arm, &Figure::NewOrders).is_some())
}

/// The level `name` of every arm.
fn level_column(cell: &CellAnalysis, name: &Figure, title: &str) -> (Column, Vec<Entry>) {
    let levels = || cell.arms.iter().map(|arm| (arm, find_level(arm, name)));
    let usual = usual(levels().filter_map(|(_, level)| Some(level?.count)));
    let entry = |(arm, level): (&ArmAnalysis, Option<&Level>)| match level {
        Some(level) => with_count(level_entry(level, arm), level.count, usual),
        None => Entry::absent(),
    };
    (Column::figures(title, note(usual)), levels().map(entry).collect())
}

fn label(arm: &ArmAnalysis) -> [Entry; 2] {
    let (mark, tone) = words::mark(arm);
    [Entry::text(&arm.name, Tone::Strong), Entry::text(mark, tone)]
}

/// Names of the estimates that get a column, the primary first.
pub(in crate::report) fn headline(cell: &CellAnalysis) -> Vec<&Figure> {
    let all = || cell.arms.iter().flat_map(|arm| &arm.estimates);
    let mut names: Vec<&Figure> = all().filter(|estimate| estimate.primary).map(|estimate| &estimate.name).collect();
    // Workloads with New-Orders are for column encryption, where the client encrypts.
    let cpu: &[Metric] = if has_new_orders(cell) { &[Metric::ClientCpu, Metric::Cpu] } else { &[Metric::Cpu] };
    for wanted in cpu {
        names.extend(all().map(|estimate| &estimate.name).filter(|name| **name == Figure::Metric(*wanted)));
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

/// The p50 and p99 of the first operations except statements, which have their own table. From the intended start if
/// there is one, because that is how long a user of an open system waits.
fn percentiles(cell: &CellAnalysis) -> Vec<&Figure> {
    let mut found: Vec<(&Figure, &Percentile)> = Vec::new();
    for estimate in cell.arms.iter().flat_map(|arm| &arm.estimates) {
        let Some(percentile) = estimate.name.percentile() else { continue };
        let is_statement = cell.statements.iter().any(|statement| statement.operation == percentile.operation);
        let shown = matches!(percentile.rank, Rank::P50 | Rank::P99) && !is_statement;
        if shown && !found.iter().any(|(name, _)| **name == estimate.name) {
            found.push((&estimate.name, percentile));
        }
    }
    let intended = found.iter().any(|(_, percentile)| is_intended(percentile));
    found.retain(|(_, percentile)| is_intended(percentile) == intended);
    let mut operations: Vec<&str> = Vec::new();
    for (_, percentile) in &found {
        if !operations.contains(&percentile.operation.as_str()) {
            operations.push(&percentile.operation);
        }
    }
    operations.truncate(OPERATIONS_SHOWN);
    found.retain(|(_, percentile)| operations.contains(&percentile.operation.as_str()));
    found.into_iter().map(|(name, _)| name).collect()
}

fn is_intended(percentile: &Percentile) -> bool {
    percentile.start == Start::Intended
}

/// The title of a column: short for percentiles, because there are several.
pub(in crate::report) fn title(cell: &CellAnalysis, name: &Figure) -> String {
    match name.percentile() {
        Some(percentile) => {
            let from = if is_intended(percentile) { "intended " } else { "" };
            format!("{from}{} {}", percentile.operation, percentile.rank.name())
        }
        None => estimates(cell, name).next().map_or_else(|| name.to_string(), |estimate| estimate.title.clone()),
    }
}

/// The count of most figures of a column; a figure with another count shows its own.
pub(super) fn usual(counts: impl Iterator<Item = u64>) -> Option<u64> {
    let counts: Vec<u64> = counts.collect();
    let times = |count: &u64| counts.iter().filter(|other| *other == count).count();
    counts.iter().copied().max_by_key(|count| (times(count), *count))
}

fn note(usual: Option<u64>) -> String {
    usual.map_or(String::new(), |count| format!("n = {}", number::count(count)))
}

/// Adds `count` to a figure if it differs from the count of its column.
fn with_count(mut entry: Entry, count: u64, usual: Option<u64>) -> Entry {
    if usual != Some(count) {
        entry.rest.push_str(&format!(" n={}", number::count(count)));
    }
    entry
}

fn estimates<'a>(cell: &'a CellAnalysis, name: &Figure) -> impl Iterator<Item = &'a Estimate> + Clone {
    cell.arms.iter().flat_map(|arm| &arm.estimates).filter(move |estimate| estimate.name == *name)
}

/// The baseline's own level of `name`, or the plain level of the estimates.
fn plain_level(cell: &CellAnalysis, baseline: &ArmAnalysis, name: &Figure) -> Entry {
    if let Some(level) = find_level(baseline, name) {
        return level_entry(level, baseline);
    }
    match estimates(cell, name).find_map(|estimate| estimate.levels.map(|(plain, _)| (plain, &estimate.unit))) {
        Some((plain, unit)) => Entry::text(number::amount(plain, unit), Tone::Normal),
        None => Entry::absent(),
    }
}

/// The level `name`, or the level that corresponds to the cost `name`.
///
/// A column of time shows the plain level of its estimates, and not the mean latency.
fn find_level<'a>(arm: &'a ArmAnalysis, name: &Figure) -> Option<&'a Level> {
    let named = |wanted: &Figure| arm.levels.iter().find(|level| level.name == *wanted);
    let of_cost = || Some(name.level()).filter(|level| *level != Figure::MetricLevel(Metric::Time));
    named(name).or_else(|| named(&of_cost()?))
}

/// A level with its interval; in parentheses if the arm is not proven.
pub(super) fn level_entry(level: &Level, arm: &ArmAnalysis) -> Entry {
    let figure = number::level(level.value, level.low, level.high, &level.unit);
    let entry = Entry::figure(figure, Tone::Normal);
    if arm.proof.stands() { entry } else { doubted(entry) }
}

/// A cost with its interval, its difference and its footnote marks; in parentheses if the arm is not proven.
pub(super) fn figure(estimate: &Estimate, proof: &Proof, footnotes: &Footnotes) -> Entry {
    let difference = estimate.difference.as_ref();
    let mut entry = cost(&estimate.change(), difference, &estimate.unit, estimate.verdict, proof);
    entry.rest.push_str(&footnotes.marks(&estimate.flags));
    entry
}

/// A cost with its interval and its difference per operation; in parentheses if the arm is not proven.
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
    if proof.stands() { entry } else { doubted(entry) }
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
    let primary = arm.primary();
    primary.map_or(Entry::default(), |estimate| verdict(estimate, arm, margin))
}

/// The verdict of an estimate of `arm`; only the proof's mark if the protection was not proven.
pub(super) fn verdict(estimate: &Estimate, arm: &ArmAnalysis, margin: f64) -> Entry {
    match &arm.proof {
        _ if arm.aa => Entry::text(words::control(estimate), Tone::Normal),
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => {
            let text = Entry::text(words::outcome(estimate, margin), words::outcome_tone(estimate.verdict));
            Entry { short: Some(words::outcome_short(estimate, margin)), ..text }
        }
        Proof::Unproven(_) => Entry::text("unproven", Tone::Caution),
        Proof::ToldByProvider(_) => Entry::text("reported by the provider", Tone::Caution),
        Proof::Disproven(_) => Entry::text("disproven", Tone::Bad),
    }
}

/// How much longer a measurement must take until every arm reaches the requested precision; `None` if the answers were
/// certain before, and if that is unknown of every arm. An arm of which it is unknown misses the precision all the
/// same.
pub(super) fn more(analysis: &Analysis, cell: &CellAnalysis) -> Option<Note> {
    if cell.ending == Some(CellEnding::Decided) {
        return None;
    }
    let protected = || cell.arms.iter().filter_map(ArmAnalysis::primary);
    let most = protected().filter_map(|it| it.more_s).reduce(f64::max)?;
    let too_wide = |it: &Estimate| analysis.precision.is_some_and(|precision| it.effect.half_width() > precision);
    let missing = protected().filter(|it| it.more_s.is_some() || too_wide(it)).count();
    let unknown = protected().any(|it| it.more_s.is_none() && too_wide(it));
    let arms = match (missing, protected().count()) {
        (1, 1) => String::new(),
        (some, all) => format!(" in {some} of {all} arms"),
    };
    let text = format!(
        "The asked precision was not reached{arms}: {} {} more of measured load would reach it.",
        if unknown { "at least" } else { "about" },
        number::duration(most)
    );
    Some(Note { mark: "~".to_owned(), text, tone: Tone::Normal })
}

/// The flags of the figures shown, numbered as they appear.
pub(super) struct Footnotes(Vec<Flag>);

impl Footnotes {
    /// The flags of the headline; in the long form also those that only the tables of the arms show.
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

    /// The signs of `flags`, or an empty text.
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
    use super::{MARKS, more, usual};
    use crate::report::{sample, words};

    #[test]
    fn every_flag_can_have_its_footnote() {
        let told = words::flag_of("").expect_err("no flag has an empty name");
        let (_, flags) = told.split_once("there are ").expect("all codes");
        assert_eq!(flags.split(", ").count(), MARKS.len());
    }

    #[test]
    fn an_arm_that_misses_the_precision_counts_also_if_its_time_is_unknown() {
        let mut analysis = sample::many(1);
        analysis.precision = Some(0.01);
        let tls = analysis.cells[0].arms[1].clone();
        analysis.cells[0].arms.extend([tls.clone(), tls]);
        let mut said = |wide: [(f64, Option<f64>); 3]| {
            for (arm, (half, more_s)) in analysis.cells[0].arms[1..].iter_mut().zip(wide) {
                let net = arm.estimates.iter_mut().find(|it| it.primary).expect("a figure");
                (net.effect.low, net.effect.high) = (net.effect.estimate - half, net.effect.estimate + half);
                net.more_s = more_s;
            }
            more(&analysis, &analysis.cells[0]).map(|note| note.text)
        };
        let text = |words: &str| Some(format!("The asked precision was not reached in {words} would reach it."));
        let reached = (0.009, None);
        let six = (0.02, Some(370.0));
        assert_eq!(said([reached, six, reached]), text("1 of 3 arms: about 6 min more of measured load"));
        // Few frames, and a spread of starts that no load narrows.
        let unknown = (f64::INFINITY, None);
        assert_eq!(said([unknown, six, (0.03, None)]), text("3 of 3 arms: at least 6 min more of measured load"));
        assert_eq!(said([unknown, reached, reached]), None);
    }

    #[test]
    fn the_usual_count_is_the_most_frequent_then_the_largest() {
        assert_eq!(usual([30, 15, 30].into_iter()), Some(30));
        assert_eq!(usual([15, 30].into_iter()), Some(30));
        assert_eq!(usual([].into_iter()), None);
    }
}
