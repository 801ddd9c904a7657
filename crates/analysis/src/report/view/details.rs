//! The additions of the long form to a cell: evidence in full, settings, and every figure of every arm.

use super::{
    Block, Column, Entry, Form, Note, Table, Tone,
    costs::{self, Footnotes},
    evidence,
};
use crate::{
    AgentAnalysis, Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, LogAt, Outcome,
    report::{number, words},
};

/// The arms of `cell`, the baseline first, then the absolute levels of all.
pub(super) fn of_cell(analysis: &Analysis, cell: &CellAnalysis) -> Vec<Block> {
    let footnotes = Footnotes::of(cell, Form::Long);
    let mut blocks: Vec<Block> =
        cell.arms.iter().flat_map(|arm| of_arm(arm, baseline(cell), analysis.margin, &footnotes)).collect();
    blocks.extend(levels(cell));
    blocks.extend(log_over_start(cell));
    blocks.extend(agents(cell));
    blocks
}

fn baseline(cell: &CellAnalysis) -> &str {
    cell.arms.first().map_or("the baseline", |arm| &arm.name)
}

fn of_arm(arm: &ArmAnalysis, baseline: &str, margin: f64, footnotes: &Footnotes) -> Vec<Block> {
    let (mark, _) = words::mark(arm);
    let mut blocks = vec![Block::Heading(3, format!("Arm {}: {mark}", arm.name)), Block::Facts(facts(arm))];
    let reasons = evidence::reasons(&arm.proof);
    if !reasons.is_empty() {
        let note = |text: &String| Note { mark: "!".to_owned(), text: text.clone(), tone: Tone::Caution };
        blocks.push(Block::Notes(reasons.iter().map(note).collect()));
    }
    let claims = evidence::claims(arm, |_| true);
    if !claims.is_empty() {
        blocks.push(Block::Claims(claims));
    }
    if !arm.difference.is_empty() {
        blocks.push(Block::Paragraph(format!("Settings that differ from {baseline}:")));
        blocks.push(Block::Verbatim(arm.difference.clone()));
    }
    if !arm.estimates.is_empty() {
        blocks.push(Block::Table(figures(arm, margin, footnotes)));
        blocks.extend(batches(arm));
    }
    blocks
}

fn facts(arm: &ArmAnalysis) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if !arm.protections.is_empty() {
        facts.push(("protections".to_owned(), arm.protections.join(", ")));
    }
    if !arm.facts.version.is_empty() {
        facts.push(("version".to_owned(), arm.facts.version.clone()));
    }
    facts.extend(arm.facts.facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    facts
}

/// Every cost of one arm, with the levels behind it.
fn figures(arm: &ArmAnalysis, margin: f64, footnotes: &Footnotes) -> Table {
    let columns = vec![
        Column::text("figure"),
        Column::figures("cost", ""),
        Column::text("n"),
        Column::text("plain → protected"),
        Column::text("verdict"),
    ];
    let mut rows = Vec::new();
    for estimate in &arm.estimates {
        rows.push(vec![
            Entry::text(&estimate.title, if estimate.primary { Tone::Strong } else { Tone::Normal }),
            costs::figure(estimate, &arm.proof, footnotes),
            Entry::text(count(estimate), Tone::Normal),
            Entry::text(change(estimate), Tone::Normal),
            costs::verdict(estimate, arm, margin),
        ]);
        rows.extend(total(estimate, arm));
        rows.extend(spread(estimate));
    }
    Table { columns, rows, sticky: 1 }
}

/// `30`, or `15 × 2` if frames were averaged in pairs.
fn count(estimate: &Estimate) -> String {
    let count = number::count(estimate.values() as u64);
    if estimate.batch > 1 { format!("{count} × {}", estimate.batch) } else { count }
}

/// An explanation of `15 × 2`, if it is in the table.
fn batches(arm: &ArmAnalysis) -> Option<Block> {
    let estimate = arm.estimates.iter().find(|estimate| estimate.batch > 1)?;
    let text = format!(
        "{}: {} groups of {} frames each, averaged because successive frames were correlated.",
        count(estimate),
        number::count(estimate.values() as u64),
        estimate.batch
    );
    Some(Block::Notes(vec![Note { mark: "n".to_owned(), text, tone: Tone::Faint }]))
}

fn change(estimate: &Estimate) -> String {
    estimate.levels.map_or(String::new(), |(plain, protected)| number::change(plain, protected, &estimate.unit))
}

/// The same effect including every stall. It has no verdict of its own: the answer is that of the typical effect.
fn total(estimate: &Estimate, arm: &ArmAnalysis) -> Option<Vec<Entry>> {
    let total = estimate.total_change()?;
    Some(vec![
        Entry::text("  every stall counted", Tone::Normal),
        costs::cost(&total, estimate.total_difference.as_ref(), &estimate.unit, Outcome::Costs, &arm.proof),
        Entry::text(number::count(estimate.count as u64), Tone::Normal),
        Entry::default(),
        Entry::default(),
    ])
}

/// The start-to-start variation of the true cost, if known. It is not a cost and has no verdict.
fn spread(estimate: &Estimate) -> Option<Vec<Entry>> {
    let spread = estimate.spread.filter(|_| matches!(estimate.name, Figure::Metric(_)))?;
    Some(vec![
        Entry::text("  spread between starts", Tone::Normal),
        Entry::text(number::spread(&spread), Tone::Normal),
        Entry::text(words::plural(estimate.starts as u64, "start"), Tone::Normal),
        Entry::default(),
        Entry::default(),
    ])
}

/// Absolute levels, one column per arm, for orientation: they are valid only for this machine and this time.
fn levels(cell: &CellAnalysis) -> Vec<Block> {
    let mut names: Vec<&Figure> = Vec::new();
    for level in cell.arms.iter().flat_map(|arm| &arm.levels) {
        if !names.contains(&&level.name) {
            names.push(&level.name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![Column::text("level")];
    columns.extend(cell.arms.iter().map(|arm| Column::figures(&arm.name, "")));
    let row = |name: &&Figure| {
        let counts = cell.arms.iter().flat_map(|arm| &arm.levels).filter(|level| level.name == **name);
        let usual = costs::usual(counts.map(|level| level.count));
        let behind = usual.map_or(String::new(), |count| format!(", n = {}", number::count(count)));
        let mut row = vec![Entry::text(format!("{name}{behind}"), Tone::Normal)];
        row.extend(cell.arms.iter().map(|arm| {
            let level = arm.levels.iter().find(|level| level.name == **name);
            level.map_or(Entry::absent(), |level| costs::level_entry(level, arm))
        }));
        row
    };
    vec![
        Block::Heading(3, "Absolute levels, for orientation: they hold for this machine and this time".to_owned()),
        Block::Table(Table { columns, rows: names.iter().map(row).collect(), sticky: 1 }),
    ]
}

/// The machines that offered the load, one per row.
fn agents(cell: &CellAnalysis) -> Vec<Block> {
    if cell.agents.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::text("load machine"),
        Column::figures("lanes", ""),
        Column::figures("operations", ""),
        Column::figures("waited for a processor", ""),
        Column::figures("clock ahead", ""),
        Column::figures("known within", ""),
    ];
    let row = |agent: &AgentAnalysis| {
        let text = |text: String| Entry::text(text, Tone::Normal);
        let of_load = |figure: String| text(if agent.lanes > 0 { figure } else { "observes".to_owned() });
        vec![
            text(agent.name.clone()),
            of_load(agent.lanes.to_string()),
            of_load(number::count(agent.operations)),
            of_load(number::share(agent.wait_share)),
            text(format!("{:+.6} s", agent.clock_offset_ns as f64 / 1e9)),
            text(format!("{:.1} µs", agent.clock_bound_ns as f64 / 1e3)),
        ]
    };
    vec![
        Block::Heading(3, "Load machines: clocks are compared with the coordinator's".to_owned()),
        Block::Table(Table { columns, rows: cell.agents.iter().map(row).collect(), sticky: 1 }),
    ]
}

/// The log per operation from the first frame of a start to the last, one column per arm.
fn log_over_start(cell: &CellAnalysis) -> Vec<Block> {
    if cell.log_over_start.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![Column::text("log per op")];
    columns.extend(cell.arms.iter().map(|arm| Column::figures(&arm.name, "")));
    let row = |at: &LogAt| {
        let figures = at.arms.iter().map(|bytes| match bytes {
            Some(bytes) => Entry::text(number::amount(*bytes, words::LOG_UNIT), Tone::Normal),
            None => Entry::absent(),
        });
        std::iter::once(Entry::text(&at.place, Tone::Normal)).chain(figures).collect()
    };
    vec![
        Block::Heading(3, words::LOG_OVER_START.to_owned()),
        Block::Table(Table { columns, rows: cell.log_over_start.iter().map(row).collect(), sticky: 1 }),
    ]
}
