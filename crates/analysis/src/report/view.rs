//! The content and order of a report, for every medium with human readers.
//!
//! A report is a list of [`Block`]s. A block has words and their meaning ([`Tone`]). Width, colour and markup are the
//! renderer's task, which only has to lay out eight kinds of block. Blocks contain no numbers for computations: a
//! renderer that draws takes those from the [`Analysis`].

pub(super) mod costs;
mod details;
pub(super) mod evidence;
pub(super) mod profile;
pub(super) mod published;
mod versions;

use std::collections::BTreeSet;

use tithe_model::{direction::turns, ending::CellEnding};

use super::{
    cell_name, connecting, headline, idle, number, statements,
    summary::{self, Row, Summary},
    words,
};
pub use super::{
    table::{Column, Entry, Table},
    tone::Tone,
};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Flag, Interval, Proof, Sweep, SweepArm, SweepStep};

/// The amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line for each arm, its limits, problems of the evidence, and warnings: the output of a run.
    Answer,
    /// Tables of costs, conditions, problems of the evidence, warnings, and a line for each arm.
    Short,
    /// Everything: every finding with its observations, every figure, settings, versions, the machine.
    Long,
}

/// A piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading: level 1 is the report, 2 a cell, 3 a part of it.
    Heading(u8, String),
    /// One or more sentences.
    Paragraph(String),
    /// Labels with their values. What has no label of its own belongs to the one before.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Findings, claim by claim.
    Claims(Vec<Claim>),
    /// The cost of each arm, cell by cell.
    Summary(Vec<Summary>),
    /// Lines to be shown unchanged: configuration.
    Verbatim(Vec<String>),
    /// Footnotes and warnings.
    Notes(Vec<Note>),
}

/// Findings on one claim with the same outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// `✓`, `✗`, `?` or `i`.
    pub mark: &'static str,
    /// `holds`, `FAILS`, `cannot tell`; for a disclosure `yes`, `no`.
    pub word: &'static str,
    /// The tone of the outcome.
    pub tone: Tone,
    /// The claim, with its protection if the arm has several.
    pub claim: String,
    /// When it was checked: `before and after`; empty if obvious.
    pub when: String,
    /// The observations; equal ones appear once.
    pub seen: Vec<Seen>,
}

/// The observations of one check on both arms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// On the protected arm.
    pub protected: String,
    /// On the plain arm, or on the check's own control.
    pub control: String,
}

/// A footnote or a warning.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The sign that refers to it.
    pub mark: String,
    /// Its text.
    pub text: String,
    /// Its tone.
    pub tone: Tone,
}

/// The report on `analysis`.
pub fn document(analysis: &Analysis, form: Form) -> Vec<Block> {
    let mut blocks = match form {
        Form::Answer => answer(analysis),
        Form::Short | Form::Long => whole(analysis, form),
    };
    blocks.iter_mut().for_each(|block| block.each_text(clean));
    blocks
}

/// The cost of each arm and its limits, the result of the evidence, and warnings.
fn answer(analysis: &Analysis) -> Vec<Block> {
    let costs = summary::of(analysis);
    let mut blocks = vec![Block::Heading(2, "What it costs".to_owned())];
    blocks.push(match costs.is_empty() {
        true => Block::Paragraph("Nothing was measured: there are no costs to report.".to_owned()),
        false => Block::Summary(costs),
    });
    blocks.extend(versions::differences(analysis));
    let mut notes: Vec<Note> = control(analysis).into_iter().collect();
    notes.extend(limits(analysis));
    for (cell, name) in analysis.cells.iter().zip(cell_name::names(analysis)) {
        let place = if analysis.cells.len() > 1 { format!("{name}: ") } else { String::new() };
        let with_place = |note: Note| Note { text: format!("{place}{}", note.text), ..note };
        notes.extend(costs::more(analysis, cell).into_iter().chain(unfinished(cell)).map(with_place));
    }
    notes.extend(evidence_note(analysis));
    blocks.extend((!notes.is_empty()).then_some(Block::Notes(notes)));
    blocks.extend(evidence::summary(analysis));
    blocks.extend(warnings(analysis));
    blocks
}

fn whole(analysis: &Analysis, form: Form) -> Vec<Block> {
    let mut blocks = preamble(analysis);
    if analysis.cells.is_empty() {
        blocks.push(Block::Paragraph("No cell was measured.".to_owned()));
    }
    for cell in &analysis.cells {
        blocks.extend(of_cell(analysis, cell, form));
    }
    blocks.extend(sweeps(analysis));
    blocks.extend(versions::differences(analysis));
    blocks.extend(if form == Form::Long { machine(analysis) } else { evidence::summary(analysis) });
    blocks.extend(warnings(analysis));
    blocks.extend(over_run(analysis));
    blocks.extend(last_lines(analysis));
    blocks
}

fn preamble(analysis: &Analysis) -> Vec<Block> {
    let versions: BTreeSet<&str> = (analysis.cells.iter().flat_map(|cell| &cell.arms))
        .map(|arm| arm.facts.version.as_str())
        .filter(|version| !version.is_empty())
        .collect();
    let version: String = versions.into_iter().map(|version| format!(", {version}")).collect();
    let mut facts = vec![
        ("run".to_owned(), format!("{}, seed {}, tithe {}", analysis.run, analysis.seed, analysis.tithe)),
        ("database".to_owned(), format!("{}{version}", analysis.database)),
    ];
    if !analysis.cells.is_empty() {
        facts.push(("figures".to_owned(), legend(analysis)));
    }
    vec![Block::Heading(1, analysis.title.clone()), Block::Facts(facts)]
}

/// How to read a figure.
fn legend(analysis: &Analysis) -> String {
    format!(
        "cost relative to the first arm [{} interval, simultaneous over the arms of a cell], and below it the difference \
         per operation with an interval of its own; n: frames, or groups of frames, behind it; a cost of at most {} % counts as none; in (parentheses): the protection was not proven to \
         be on",
        number::share(analysis.confidence),
        number::digits(number::percent(analysis.margin)),
    )
}

fn of_cell(analysis: &Analysis, cell: &CellAnalysis, form: Form) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(2, cell.id.clone()), Block::Paragraph(conditions(cell))];
    blocks.extend(costs::of_cell(analysis, cell, form));
    blocks.extend(of_statements(cell));
    blocks.extend(published::of_cell(cell));
    blocks.extend(profile::of_cell(cell, form));
    blocks.push(Block::Facts(context(cell, form)));
    if form == Form::Long {
        blocks.extend(details::of_cell(analysis, cell));
    }
    blocks
}

/// What was measured, and under which conditions, in about a sentence.
pub(super) fn conditions(cell: &CellAnalysis) -> String {
    let notes = cell.notes.iter().map(|(name, value)| format!("{name} = {value}"));
    load(cell).into_iter().chain(notes).collect::<Vec<_>>().join(" · ")
}

/// The load of a cell, without the contents of its workload.
pub(super) fn load(cell: &CellAnalysis) -> Vec<String> {
    let mut parts = vec![format!("workload {}", cell.workload)];
    if !cell.resources.is_empty() {
        parts.push(cell.resources.clone());
    }
    parts.push(words::plural(cell.clients.into(), "client"));
    parts.push(cell.arrivals.clone());
    parts
}

/// How the cell was measured and the state of the machine: without it, a figure cannot be judged.
fn context(cell: &CellAnalysis, form: Form) -> Vec<(String, String)> {
    let mut method = Vec::new();
    if !cell.mode.is_empty() {
        method.push(format!("mode {}", cell.mode));
    }
    method.push(format!("slots of {} ms", (10.0 * cell.slot_ms).round() / 10.0));
    method.push(words::repetitions(cell));
    let mut facts = vec![("measured".to_owned(), method.join(", "))];
    if !cell.agents.is_empty() {
        facts.push(("load from".to_owned(), words::agents(&cell.agents)));
    }
    if !cell.warm_up.is_empty() {
        facts.push(("warm-up".to_owned(), cell.warm_up.clone()));
    }
    let mut by_arm = |label: &str, heading: Option<String>, lines: Vec<String>| {
        facts.extend(heading.map(|heading| (label.to_owned(), heading)));
        facts.extend(lines.into_iter().map(|line| (String::new(), line)));
    };
    by_arm("connecting", connecting::heading(cell), connecting::lines(cell));
    by_arm("idle", idle::heading(cell), idle::lines(cell));
    if cell.frames > 0 {
        facts.push(("machine".to_owned(), host(cell)));
    }
    if !cell.invalid.is_empty() {
        facts.push(("invalid".to_owned(), invalid(cell, form)));
    }
    facts.push(("ended".to_owned(), words::ending(cell.ending.as_ref())));
    facts
}

fn host(cell: &CellAnalysis) -> String {
    let shares = [
        ("processor pressure", cell.host.cpu_pressure),
        ("storage pressure", cell.host.io_pressure),
        ("steal", cell.host.steal),
    ];
    let mut parts = vec![format!("load {}", number::digits(cell.host.load))];
    parts.extend(shares.iter().filter_map(|(name, seen)| Some(format!("{name} {}", number::share((*seen)?)))));
    parts.push(match cell.wait_share.is_nan() {
        true => "how long clients waited for a processor is unknown".to_owned(),
        false => format!("clients waited {} of their time for a processor", number::share(cell.wait_share)),
    });
    let unseen: Vec<&str> = shares.iter().filter(|(_, seen)| seen.is_none()).map(|(name, _)| *name).collect();
    if !unseen.is_empty() {
        parts.push(format!("not seen: {}", unseen.join(", ")));
    }
    parts.join(", ")
}

/// Frames that do not count, by reason: failures are reported, not left out.
fn invalid(cell: &CellAnalysis, form: Form) -> String {
    let mut reasons: Vec<(&str, Vec<u32>)> = Vec::new();
    for (frame, reason) in &cell.invalid {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, frames)) => frames.push(*frame),
            None => reasons.push((reason, vec![*frame])),
        }
    }
    let told = reasons.into_iter().map(|(reason, frames)| match form {
        Form::Answer | Form::Short => format!("{} × {reason}", frames.len()),
        Form::Long => {
            let frames: Vec<String> = frames.iter().map(u32::to_string).collect();
            format!("frame {}: {reason}", frames.join(", "))
        }
    });
    format!("{} left out: {}", words::plural(cell.invalid.len() as u64, "frame"), told.collect::<Vec<_>>().join("; "))
}

/// The costs of each of the user's statements, the most expensive first; empty without statements.
fn of_statements(cell: &CellAnalysis) -> Vec<Block> {
    let rows = statements::rows(cell);
    let Some(first) = rows.first() else { return Vec::new() };
    let mut columns = vec![Column::text("statement"), Column::text("share"), Column::text("calls")];
    columns.extend(first.costs.iter().map(|(arm, _)| Column::figures(&arm.name, "")));
    let row = |row: &statements::Row<'_>| {
        let costs = row.costs.iter().map(|(arm, cost)| {
            cost.map_or(Entry::absent(), |it| {
                costs::cost(&it.change(), it.difference.as_ref(), &it.unit, it.verdict, &arm.proof)
            })
        });
        let used = [
            Entry::text(row.words(), Tone::Strong),
            Entry::text(number::share(row.statement.time_share), Tone::Normal),
            Entry::text(number::count(row.statement.calls), Tone::Normal),
        ];
        used.into_iter().chain(costs).collect()
    };
    vec![
        Block::Paragraph(statements::LEAD.to_owned()),
        Block::Table(Table { columns, rows: rows.iter().map(row).collect(), sticky: 1 }),
    ]
}

/// Where each arm is saturated, and its cost with few clients, at saturation, and below it.
fn sweeps(analysis: &Analysis) -> Vec<Block> {
    analysis.sweeps.iter().flat_map(|it| sweep(analysis, it)).collect()
}

/// A row for each arm, a column for each number of clients; then the deciding cost in the cells named in the sweep.
fn sweep(analysis: &Analysis, sweep: &Sweep) -> Vec<Block> {
    let steps = |arm: &SweepArm| arm.steps.iter().map(|step| step.clients).collect::<Vec<_>>();
    let clients: BTreeSet<u32> = sweep.arms.iter().flat_map(steps).collect();
    let mut columns = vec![Column::text("arm"), Column::text("saturated at")];
    columns.extend(clients.iter().map(|clients| Column::figures(words::plural((*clients).into(), "client"), "")));
    let row = |arm: &SweepArm| {
        let saturated =
            arm.saturated_at.map_or("not reached".to_owned(), |clients| words::plural(clients.into(), "client"));
        let throughput = |clients: &u32| {
            let step = arm.steps.iter().find(|step| step.clients == *clients);
            step.map_or(Entry::absent(), |SweepStep { throughput: Interval { estimate, low, high }, .. }| {
                Entry::figure(number::level(*estimate, *low, *high, "op/s"), Tone::Normal)
            })
        };
        let mut row = vec![Entry::text(&arm.name, Tone::Strong), Entry::text(saturated, Tone::Normal)];
        row.extend(clients.iter().map(throughput));
        row
    };
    let costs = sweep.arms.iter().flat_map(|arm| {
        let line = |(cell, cost): &(String, String)| {
            (format!("{}, {cell}", arm.name), with_doubt(analysis, &arm.name, cell, cost))
        };
        arm.costs.iter().map(line)
    });
    vec![
        Block::Heading(2, format!("Clients, {}", sweep.name())),
        Block::Table(Table { columns, rows: sweep.arms.iter().map(row).collect(), sticky: 1 }),
        Block::Facts(costs.collect()),
    ]
}

/// The text `said` about the deciding figure of arm `arm` in the cell called `cell`, with its difference. If it is not
/// an answer, it is in parentheses as in the cell's own table, followed by the reason.
fn with_doubt(analysis: &Analysis, arm: &str, cell: &str, said: &str) -> String {
    let told = words::with_difference(analysis, arm, cell, said);
    let of_cell = analysis.cells.iter().find(|it| it.id == cell);
    let of_arm = of_cell.and_then(|cell| cell.arms.iter().find(|it| it.name == arm));
    match of_arm.and_then(doubt) {
        Some(doubt) => format!("({told}) {doubt}"),
        None => told,
    }
}

/// Why the deciding figure of `arm` is not an answer; `None` if it is one.
fn doubt(arm: &ArmAnalysis) -> Option<&'static str> {
    let asymmetric = arm.primary().is_some_and(|estimate| !estimate.is_symmetric());
    match arm.proof {
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => {
            asymmetric.then_some("set-up not symmetric")
        }
        Proof::Unproven(_) | Proof::ToldByProvider(_) | Proof::Disproven(_) => Some(words::proof(&arm.proof).0),
    }
}

fn machine(analysis: &Analysis) -> Vec<Block> {
    let machine = &analysis.machine;
    let list = |items: &[String]| if items.is_empty() { "none seen".to_owned() } else { items.join(", ") };
    let virtualised = if machine.virtualised { ", virtual machine" } else { "" };
    let facts = [
        ("processor", format!("{}, {} usable{virtualised}", machine.processor, machine.processors)),
        ("memory", number::memory(machine.memory_bytes)),
        ("system", format!("{}, kernel {}", machine.system, machine.kernel)),
        ("crypto flags", list(&machine.crypto_flags)),
        ("kernel drivers", list(&machine.kernel_crypto)),
        ("data folders", machine.data_folders()),
        ("swap", if machine.swap.is_empty() { "not checked" } else { machine.swap.as_str() }.to_owned()),
        ("clock", machine.clock.clone()),
    ];
    let facts = facts.into_iter().map(|(label, text)| (label.to_owned(), text)).collect();
    vec![Block::Heading(2, "Machine".to_owned()), Block::Facts(facts)]
}

fn warnings(analysis: &Analysis) -> Vec<Block> {
    if analysis.warnings.is_empty() {
        return Vec::new();
    }
    let note = |text: &String| Note { mark: "!".to_owned(), text: text.clone(), tone: Tone::Caution };
    vec![Block::Heading(2, "Warnings".to_owned()), Block::Notes(analysis.warnings.iter().map(note).collect())]
}

/// The cost of each arm, most expensive first, and the result of its evidence: the last lines of the report.
fn last_lines(analysis: &Analysis) -> Vec<Block> {
    let costs = summary::of(analysis);
    if costs.is_empty() {
        return Vec::new();
    }
    let notes: Vec<Note> = control(analysis).into_iter().chain(evidence_note(analysis)).collect();
    let mut blocks = vec![Block::Heading(2, "What it costs".to_owned()), Block::Summary(costs)];
    blocks.extend((!notes.is_empty()).then_some(Block::Notes(notes)));
    blocks
}

/// A description of the A/A arm, if there is one.
fn control(analysis: &Analysis) -> Option<Note> {
    let arm = analysis.cells.iter().find_map(headline::control_of)?;
    let text = format!("{} is the plain arm again: it shows what differences mean here.", arm.name);
    Some(Note { mark: "≡".to_owned(), text, tone: Tone::Normal })
}

/// The number of claims of the whole run that hold.
fn evidence_note(analysis: &Analysis) -> Option<Note> {
    let (words, all_hold) = summary::evidence(analysis)?;
    let (mark, tone) = if all_hold { ("✓", Tone::Good) } else { ("!", Tone::Bad) };
    Some(Note { mark: mark.to_owned(), text: format!("evidence: {words}"), tone })
}

/// The flags of the deciding figures, each once with its arms.
fn limits(analysis: &Analysis) -> Vec<Note> {
    let mut flagged: Vec<(Flag, BTreeSet<&str>)> = Vec::new();
    for (arm, estimate) in analysis.cells.iter().flat_map(summary::decided) {
        for flag in &estimate.flags {
            match flagged.iter_mut().find(|(known, _)| known == flag) {
                Some((_, arms)) => _ = arms.insert(&arm.name),
                None => flagged.push((*flag, BTreeSet::from([arm.name.as_str()]))),
            }
        }
    }
    let note = |(flag, arms): (Flag, BTreeSet<&str>)| {
        let arms = arms.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("{arms}: {}. {}", words::flag_code(flag), words::flag_advice(flag));
        Note { mark: "!".to_owned(), text, tone: Tone::Caution }
    };
    flagged.into_iter().map(note).collect()
}

/// Why `cell` ended early; `None` if it did not.
fn unfinished(cell: &CellAnalysis) -> Option<Note> {
    let early = matches!(cell.ending, None | Some(CellEnding::Interrupted | CellEnding::Failed(_)));
    let text = words::ending(cell.ending.as_ref());
    early.then_some(Note { mark: "!".to_owned(), text, tone: Tone::Bad })
}

/// The answer of a run of several cells, and its basis.
fn over_run(analysis: &Analysis) -> Vec<Block> {
    let Some(together) = headline::together(analysis) else { return Vec::new() };
    vec![
        Block::Heading(2, "All cells together".to_owned()),
        Block::Paragraph(headline::answer(analysis, &headline::PLAIN)),
        Block::Paragraph(together),
    ]
}

impl Block {
    /// Applies `change` to every text that may come from outside.
    pub(super) fn each_text(&mut self, change: fn(&mut String)) {
        match self {
            Self::Heading(_, text) | Self::Paragraph(text) => change(text),
            Self::Facts(facts) => facts.iter_mut().for_each(|(label, text)| [label, text].into_iter().for_each(change)),
            Self::Table(table) => {
                let columns = table.columns.iter_mut().flat_map(|column| [&mut column.title, &mut column.note]);
                columns.for_each(change);
                for Entry { lead, rest, beside, short, .. } in table.rows.iter_mut().flatten() {
                    [lead, rest, &mut beside.0, &mut beside.1].into_iter().chain(short).for_each(change);
                }
            }
            Self::Claims(claims) => {
                for claim in claims {
                    change(&mut claim.claim);
                    claim
                        .seen
                        .iter_mut()
                        .for_each(|seen| [&mut seen.protected, &mut seen.control].into_iter().for_each(change));
                }
            }
            Self::Summary(cells) => {
                for cell in cells {
                    change(&mut cell.cell);
                    for Row { arm, cost, adds, .. } in &mut cell.rows {
                        [arm, &mut cost.0, &mut cost.1, adds].into_iter().for_each(change);
                    }
                }
            }
            Self::Verbatim(lines) => lines.iter_mut().for_each(change),
            Self::Notes(notes) => notes.iter_mut().flat_map(|note| [&mut note.mark, &mut note.text]).for_each(change),
        }
    }
}

/// Makes text from a server, a file or the network harmless: quotations must not move the cursor, colour the report or
/// reorder the text around them.
pub(super) fn clean(text: &mut String) {
    let steers = |character: char| character.is_control() || turns(character);
    if !text.contains(steers) {
        return;
    }
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => cleaned.push(' '),
            other if steers(other) => cleaned.extend(other.escape_unicode()),
            other => cleaned.push(other),
        }
    }
    *text = cleaned;
}

/// The same for text of several lines, keeping the line breaks.
pub(super) fn clean_lines(text: &str) -> String {
    let line = |line: &str| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let mut line = line.to_owned();
        clean(&mut line);
        line + end
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{markdown, sample, terminal};

    #[test]
    fn no_foreign_text_steers_the_terminal() {
        let marks = "\u{1b}\u{61c}\u{200e}\u{200f}\u{202e}\u{2066}";
        let steers = |text: &mut String| text.insert_str(0, marks);
        let mut analysis = sample::controlled();
        for cell in &mut analysis.cells {
            steers(&mut cell.id);
            for arm in &mut cell.arms {
                steers(&mut arm.name);
                arm.estimates
                    .iter_mut()
                    .flat_map(|it| [&mut it.title, &mut it.text, it.unit.to_mut()])
                    .for_each(steers);
                arm.levels.iter_mut().for_each(|it| steers(it.unit.to_mut()));
            }
        }
        for form in [Form::Answer, Form::Short, Form::Long] {
            let options = terminal::Options { form, width: 100, colour: false };
            for text in [terminal::render(&analysis, options), markdown::render(&analysis, form)] {
                assert!(!text.contains(|character| marks.contains(character)), "{text}");
            }
        }
    }

    #[test]
    fn sets_of_resources_are_told_apart() {
        let mut analysis = sample::swept();
        let small = Sweep { resources: "small".to_owned(), ..analysis.sweeps[0].clone() };
        analysis.sweeps.push(small);
        let blocks = sweeps(&analysis);
        let headings =
            blocks.iter().filter_map(|block| if let Block::Heading(_, text) = block { Some(text) } else { None });
        assert_eq!(headings.collect::<Vec<_>>(), ["Clients, c", "Clients, c, small"]);
    }

    #[test]
    fn a_cost_with_more_clients_carries_its_doubt() {
        let told = |change: &dyn Fn(&mut ArmAnalysis)| {
            let mut analysis = sample::swept();
            change(&mut analysis.cells[0].arms[1]);
            let mut blocks = sweeps(&analysis);
            let Some(Block::Facts(facts)) = blocks.pop() else { panic!("no costs") };
            facts.into_iter().map(|(label, cost)| format!("{label}: {cost}")).collect::<Vec<_>>()
        };
        let cost = "costs 40.5 % [38.7, 42.3], +15.6 µs [14.9, 16.3]";
        assert_eq!(told(&|_| ())[1], format!("tls, c.clients-1: {cost}"));
        let disproven = told(&|arm| arm.proof = Proof::Disproven(vec!["it was off".to_owned()]));
        assert_eq!(disproven[1], format!("tls, c.clients-1: ({cost}) DISPROVEN"));
        let asymmetric = told(&|arm| arm.estimates[0].flags.push(Flag::Asymmetric));
        assert_eq!(asymmetric[1], format!("tls, c.clients-1: ({cost}) set-up not symmetric"));
    }
}
