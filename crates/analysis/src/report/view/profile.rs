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
    let mut rows = parts(&arm.parts(true), shown, "");
    rows.push(line("elsewhere", &arm.elsewhere));
    rows.push(line("sum of client and server", &arm.sum));
    rows.extend(parts(&arm.parts(false), shown, NOT_IN_SUM));
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

/// How parts that the sum does not include begin.
pub(in crate::report) const NOT_IN_SUM: &str = "not in the sum: ";

/// The first `shown` of `parts`, and the sum of the others; each row begins with `lead`.
fn parts(parts: &[&Part], shown: usize, lead: &str) -> Vec<Vec<Entry>> {
    let mut rows: Vec<Vec<Entry>> = parts.iter().take(shown).map(|part| row(part, lead)).collect();
    let smaller = parts.get(shown..).unwrap_or_default();
    if !smaller.is_empty() {
        let sum: f64 = smaller.iter().map(|part| part.difference.estimate).sum();
        let sign = if sum < 0.0 { '−' } else { '+' };
        let sum = number::Figure { lead: format!("{sign}{}", number::amount(sum.abs(), "µs")), rest: String::new() };
        let label = format!("{lead}{}", words::plural(smaller.len() as u64, "smaller part"));
        rows.push(vec![Entry::text(label, Tone::Normal), Entry::figure(sum, Tone::Normal), Entry::absent()]);
    }
    rows
}

fn row(part: &Part, lead: &str) -> Vec<Entry> {
    vec![
        Entry::text(format!("{lead}{}, {}", part.side.words(), part.component), Tone::Normal),
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
        (Some(_), None) => (
            "?",
            "Whether the parts add up is not known: the measured cost in processor time has no interval.".to_owned(),
            Tone::Caution,
        ),
        (None, _) => (
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
        let count = if profile.frames == 1 { "1 sampled frame counts" } else { "0 sampled frames count" };
        return format!("Profile: {count}, too few for intervals{why}.");
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

#[cfg(test)]
mod tests {
    use tithe_model::profile::Side;

    use super::*;

    #[test]
    fn parts_add_up_only_to_a_cost_with_an_interval() {
        let around = |estimate: f64| Interval { estimate, low: 0.9 * estimate, high: 1.1 * estimate };
        let arm = |cost: Option<Interval>, adds_up: Option<bool>| ArmProfile {
            name: "tls".to_owned(),
            cost,
            sum: around(7.5),
            adds_up,
            resolves: f64::NAN,
            sides: Vec::new(),
            components: Vec::new(),
            elsewhere: around(0.5),
            functions: Vec::new(),
            stacks: Vec::new(),
        };
        let open = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, ..around(7.5) };
        assert!(adds_up(&arm(Some(around(7.5)), Some(true))).text.starts_with("The parts add up"));
        assert!(adds_up(&arm(Some(open), None)).text.ends_with("cost in processor time has no interval."));
        assert!(adds_up(&arm(None, None)).text.ends_with("serves the clients is not seen."));
    }

    /// Parts, smaller parts and the rest are the sum; what a thread of the kernel adds is below it.
    #[test]
    fn the_rows_above_the_sum_add_up_to_it() {
        let around = |estimate: f64| Interval { estimate, low: 0.9 * estimate, high: 1.1 * estimate };
        let part = |side: Side, us: f64| Part {
            side,
            component: "some".to_owned(),
            function: String::new(),
            plain: 0.0,
            difference: around(us),
            p: 0.001,
            lever: String::new(),
        };
        let kernel = std::iter::once(part(Side::Kernel, 100.0));
        let arm = ArmProfile {
            name: "tls".to_owned(),
            cost: None,
            sum: around(7.5),
            adds_up: None,
            resolves: 0.1,
            sides: Vec::new(),
            components: kernel.chain((0..7).map(|_| part(Side::Server, 1.0))).collect(),
            elsewhere: around(0.5),
            functions: Vec::new(),
            stacks: Vec::new(),
        };
        let blocks = of_arm(&arm, Form::Short);
        let Some(Block::Table(table)) = blocks.get(1) else { panic!("{blocks:?}") };
        let rows = table.rows.iter().map(|row| (row[0].lead.as_str(), row[1].lead.as_str()));
        let rows: Vec<(&str, &str)> = rows.collect();
        let (above, below) = rows.split_at(8);
        assert_eq!(above[..5], [("server, some", "+1.00 µs"); 5]);
        assert_eq!(above[5..7], [("2 smaller parts", "+2.00 µs"), ("elsewhere", "+0.50 µs")]);
        assert_eq!(above[7], ("sum of client and server", "+7.5 µs"));
        assert_eq!(below, [("not in the sum: kernel thread, some", "+100 µs")]);
    }
}
