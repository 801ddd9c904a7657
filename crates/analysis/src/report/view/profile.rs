//! The components of each cost: a table below the costs.

use super::{Block, Column, Entry, Form, Note, Table, Tone};
use crate::{
    ArmProfile, CellAnalysis, CellProfile, Interval, Outcome, Part,
    profiled::STARTS_MIN,
    report::{number, words},
};

/// Number of components of each arm in the short form.
const SHOWN: usize = 5;

/// Number of functions of each arm in the long form.
const FUNCTIONS_SHOWN: usize = 20;

/// The resolution to aim at, as a share of a cost.
const RESOLVES: f64 = 0.01;

/// The profile of `cell`; empty without one.
pub(super) fn of_cell(cell: &CellAnalysis, form: Form) -> Vec<Block> {
    let Some(profile) = &cell.profile else { return Vec::new() };
    // A single frame has no interval.
    let arms = profile.arms.iter().filter(|_| profile.frames > 1).flat_map(|arm| of_arm(arm, form));
    arms.chain([Block::Paragraph(conditions(profile))]).collect()
}

fn of_arm(arm: &ArmProfile, form: Form) -> Vec<Block> {
    let heading = Block::Heading(3, format!("{}: where the processor time comes from", arm.name));
    let shown = if form == Form::Short { SHOWN } else { usize::MAX };
    let columns = vec![Column::text("part"), Column::figures("more per operation", ""), Column::text("mostly in")];
    let mut rows: Vec<Vec<Entry>> = arm.components.iter().take(shown).map(row).collect();
    let smaller = arm.components.get(shown..).unwrap_or_default();
    if !smaller.is_empty() {
        let sum: f64 = smaller.iter().map(|part| part.difference.estimate).sum();
        let sum = number::Figure { lead: format!("{sum:+.2} µs").replace('-', "−"), rest: String::new() };
        let label = Entry::text(words::plural(smaller.len() as u64, "smaller part"), Tone::Normal);
        rows.push(vec![label, Entry::figure(sum, Tone::Normal), Entry::absent()]);
    }
    rows.push(line("elsewhere", &arm.elsewhere));
    rows.push(line("sum of client and server", &arm.sum));
    let mut blocks = vec![heading, Block::Table(Table { columns, rows, sticky: 1 })];
    if form == Form::Long && !arm.functions.is_empty() {
        blocks.push(Block::Table(functions(arm)));
    }
    let levers = arm.components.iter().filter(|part| !part.lever.is_empty());
    let lever = |part: &Part| Note {
        mark: "→".to_owned(),
        text: format!("{}: try --protect {}", part.component, part.lever),
        tone: Tone::Normal,
    };
    let mut notes = vec![adds_up(arm)];
    notes.extend(levers.map(lever));
    blocks.push(Block::Notes(notes));
    blocks
}

fn row(part: &Part) -> Vec<Entry> {
    vec![
        Entry::text(format!("{}, {}", part.side.words(), part.component), Tone::Normal),
        amount(&part.difference),
        // The text before already contains the object.
        Entry::text(part.function.split(" (").next().unwrap_or_default(), Tone::Faint),
    ]
}

fn line(words: &str, difference: &Interval) -> Vec<Entry> {
    vec![Entry::text(words, Tone::Normal), amount(difference), Entry::absent()]
}

fn amount(difference: &Interval) -> Entry {
    Entry::figure(number::difference(difference, "µs/op", Outcome::Costs), Tone::Normal)
}

/// The functions that differ most.
fn functions(arm: &ArmProfile) -> Table {
    let columns = vec![Column::text("function"), Column::figures("more per operation", ""), Column::text("part")];
    let row = |part: &Part| {
        let of = format!("{}, {}", part.side.words(), part.component);
        vec![Entry::text(part.function.clone(), Tone::Normal), amount(&part.difference), Entry::text(of, Tone::Faint)]
    };
    Table { columns, rows: arm.functions.iter().take(FUNCTIONS_SHOWN).map(row).collect(), sticky: 1 }
}

/// Whether the parts of an arm add up to its cost.
pub(in crate::report) fn adds_up(arm: &ArmProfile) -> Note {
    let told = |interval: &Interval| number::difference(interval, "µs/op", Outcome::Costs).to_string();
    let (mark, text, tone) = match (&arm.cost, arm.adds_up) {
        (Some(cost), Some(true)) => (
            "✓",
            format!("The parts add up to the measured cost in processor time, {}.{}", told(cost), resolution(arm)),
            Tone::Normal,
        ),
        (Some(cost), Some(false)) => (
            "!",
            format!(
                "The parts do not add up to the measured cost in processor time, {}: load or machine changed between the \
                 measured and the profiled frames, or sampling costs the arms unequally (measure again on a quieter \
                 machine, or for longer); or the cost has the flag CHANGES_IN_FRAME: it averages over time, the parts over \
                 operations.",
                told(cost)
            ),
            Tone::Caution,
        ),
        _ => (
            "?",
            "Whether the parts add up is not known: the processor time of what serves the clients is not seen."
                .to_owned(),
            Tone::Caution,
        ),
    };
    Note { mark: mark.to_owned(), text, tone }
}

/// The smallest part that is resolved, and how to resolve smaller ones.
fn resolution(arm: &ArmProfile) -> String {
    // Parts that are known less well than their sum are no share of it. NaN is no share either.
    if arm.resolves.is_nan() || arm.resolves > 1.0 {
        return String::new();
    }
    let known = format!(" Each is known to ±{} of it", number::share(arm.resolves));
    let times = (arm.resolves / RESOLVES).powi(2);
    match times > 1.0 {
        true => format!("{known}; ±{} would take {:.0} times as many frames.", number::share(RESOLVES), times.ceil()),
        false => format!("{known}."),
    }
}

/// How the profile was taken, and the cost of sampling.
pub(in crate::report) fn conditions(profile: &CellProfile) -> String {
    if profile.frames < 2 {
        let why = profile.invalid.first().map_or_else(String::new, |(_, why)| format!(": {why}"));
        return format!("Profile: {} sampled frames count, too few for intervals{why}.", profile.frames);
    }
    let overhead = match &profile.overhead {
        Some(overhead) => {
            format!("sampling itself cost {} of the processor time", number::spread(overhead))
        }
        None => "what sampling itself cost is not known".to_owned(),
    };
    let over = match profile.starts {
        1 => "these frames, on one start".to_owned(),
        few if few < STARTS_MIN => format!("these frames, on {few} starts"),
        starts => format!("the {starts} starts that these frames are on"),
    };
    let invalid = match profile.invalid.len() {
        0 => String::new(),
        invalid => format!(", {invalid} invalid"),
    };
    format!(
        "Profile: {} sampled frames between the measured ones{invalid}, {:.0} samples a second and processor, {} lost; \
         {overhead}. Intervals are over {over}. Of the parts named, at most 5 % are expected to be chance.",
        profile.frames, profile.rate, profile.lost
    )
}
