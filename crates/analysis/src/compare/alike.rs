//! Which runs may be compared: the same work under the same load, the same metric.

use std::collections::BTreeSet;

use tithe_model::{
    experiment::{Arrivals, Metric},
    fact::{BY_CONTROL_GROUPS, Fact, Note, SERVERS_STOPPED},
    quantity::fixed,
    record::Machine,
    run_spread,
};
use tithe_statistics::starts::KnownSpread;

use super::{Counted, Match, Refusal, Side, USUAL};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Figure, Proof};

/// The name of each run: its database's version, the processor if that is not unique, then the folder, and finally a
/// number.
pub(super) fn names(subjects: &[Analysis]) -> Vec<String> {
    let version = |subject: &Analysis| {
        let arms = subject.cells.iter().flat_map(|cell| &cell.arms);
        let versions = arms.map(|arm| arm.facts.version.as_str()).find(|version| !version.is_empty());
        // `SQLite 3.54.0, SQLite3 Multiple Ciphers 2.6.1`, `PostgreSQL 15.14 (Debian 15.14-0)`: the first part is
        // enough.
        let first = versions.unwrap_or(&subject.database).split([',', '(']).next().unwrap_or_default();
        first.trim_end().to_owned()
    };
    let machine = |subject: &Analysis| format!("{} on {}", version(subject), subject.machine.processor);
    let folder = |subject: &Analysis| subject.run.clone();
    let told: [Vec<String>; 3] = [
        subjects.iter().map(version).collect(),
        subjects.iter().map(machine).collect(),
        subjects.iter().map(folder).collect(),
    ];
    let apart = |names: &&Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let numbered = || told[0].iter().zip(1..).map(|(name, number)| format!("{name} #{number}")).collect();
    told.iter().find(apart).cloned().unwrap_or_else(numbered)
}

/// The cells of all runs that do the same work as `cell` of the first. If a run has the cell with other work in it, the
/// cost there is unknown.
pub(super) fn cells<'a>(
    subjects: &'a [Analysis],
    runs: &[String],
    cell: &'a CellAnalysis,
) -> Result<Vec<&'a CellAnalysis>, Refusal> {
    let first = &subjects[0];
    let mut cells = vec![cell];
    for (subject, name) in subjects.iter().zip(runs).skip(1) {
        let Some(other) = subject.cells.iter().find(|other| other.id == cell.id) else {
            return Err(Refusal::absent(format!("Cell {} is not in {name}.", cell.id)));
        };
        let unlike = unlike((cell, first.records), (other, subject.records));
        if !unlike.is_empty() {
            let reason = format!("Cell {} is not the same in {} and {name}: {}.", cell.id, runs[0], unlike.join("; "));
            return Err(Refusal::unjudged(reason));
        }
        cells.push(other);
    }
    Ok(cells)
}

/// The differences between two cells of the same name, apart from what is compared.
fn unlike((one, one_records): (&CellAnalysis, u64), (other, other_records): (&CellAnalysis, u64)) -> Vec<String> {
    let mut unlike = Vec::new();
    let mut tell = |what: &str, one: &str, other: &str| {
        if one != other {
            unlike.push(format!("{what} {one} and {other}"));
        }
    };
    tell("workload", &one.workload.to_lowercase(), &other.workload.to_lowercase());
    tell("clients", &one.clients.to_string(), &other.clients.to_string());
    tell("load", &one.arrivals, &other.arrivals);
    tell("records", &one_records.to_string(), &other_records.to_string());
    tell("limits", &limits(one), &limits(other));
    tell("caches", caches(one), caches(other));
    tell("connections", connections(one), connections(other));
    // Without a note of Tithe's own nothing is known of its subject: the run may be of an earlier version. A workload
    // names what it does.
    let absent = |name: &str| (!Note::has(name)).then_some("not named");
    for (name, value) in asked_notes(one).filter(|(name, _)| !Note::Connections.is(name)) {
        if let Some(other) = note(other, name).or(absent(name)) {
            tell(name, value, other);
        }
    }
    for (name, value) in asked_notes(other).filter(|(name, _)| note(one, name).is_none()) {
        if let Some(absent) = absent(name) {
            tell(name, absent, value);
        }
    }
    unlike
}

/// The text of the note `name`.
fn note<'a>(cell: &'a CellAnalysis, name: &str) -> Option<&'a str> {
    cell.notes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// How the clients of `cell` use connections; there is a note only if they reconnect.
fn connections(cell: &CellAnalysis) -> &str {
    note(cell, Note::Connections.name()).unwrap_or("kept open")
}

/// Whether the servers of `cell` start on empty caches; only then the plain arm says so.
pub(crate) fn caches(cell: &CellAnalysis) -> &'static str {
    let how = cell.arms.first().and_then(|arm| arm.facts.reported(Fact::Cache));
    if how.is_some_and(|words| words.contains(SERVERS_STOPPED)) { "cold" } else { "warm" }
}

/// Resource limits of the plain arm's server.
pub(crate) fn limits(cell: &CellAnalysis) -> String {
    let known = cell.arms.first().and_then(|arm| arm.facts.reported(Fact::Limits));
    // The mechanism behind the limits depends on the machine, so it is left out.
    known.map_or("none", |words| words.split(BY_CONTROL_GROUPS).next().unwrap_or_default()).to_owned()
}

/// The notes of `cell` about its requested conditions. At a share of saturation the rate was found by the run itself
/// and differs in every run, so it is left out.
pub(crate) fn asked_notes(cell: &CellAnalysis) -> impl Iterator<Item = &(String, String)> {
    let found = Arrivals::are_of_saturation(&cell.arrivals);
    cell.notes.iter().filter(move |(name, _)| !found || !Note::Rate.is(name))
}

/// Adds the arms that all `cells` have, and the reasons for the others.
pub(super) fn arms(
    (subjects, runs): (&[Analysis], &[String]),
    cells: &[&CellAnalysis],
    matches: &mut Vec<Match>,
    refused: &mut Vec<Refusal>,
) {
    let only = cells.iter().all(|cell| comparable(cell).count() == 1);
    for arm in comparable(cells[0]) {
        let same = |cell: &&CellAnalysis| -> Option<ArmAnalysis> {
            let mut protected = comparable(cell);
            protected.find(|other| only || other.name == arm.name).cloned()
        };
        let found: Vec<Option<ArmAnalysis>> = cells.iter().map(same).collect();
        if let Some(missing) = found.iter().position(Option::is_none) {
            let reason = format!("Arm {} of cell {} is not in {}.", arm.name, cells[0].id, runs[missing]);
            refused.push(Refusal::absent(reason));
            continue;
        }
        match matched((subjects, runs), cells[0], &found.into_iter().flatten().collect::<Vec<_>>()) {
            Ok(matched) => matches.push(matched),
            Err(reason) => refused.push(Refusal::unjudged(reason)),
        }
    }
}

/// The arms of `cell` with a cost to compare: protected arms, and other builds and set-ups of the baseline, but not A/A
/// arms.
fn comparable(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    cell.arms.iter().filter(|arm| arm.proof != Proof::Baseline || (!arm.aa && !arm.estimates.is_empty()))
}

/// The deciding cost of an arm, in all runs. A figure that decides only in some runs has no interval over the others,
/// and is not compared.
fn matched(
    (subjects, runs): (&[Analysis], &[String]),
    cell: &CellAnalysis,
    arms: &[ArmAnalysis],
) -> Result<Match, String> {
    let Some(primary) = arms[0].primary() else {
        return Err(format!("Arm {} of cell {} was not measured in {}.", arms[0].name, cell.id, runs[0]));
    };
    let mut sides = Vec::new();
    for (run, arm) in arms.iter().enumerate() {
        let Some(estimate) = arm.primary() else {
            return Err(format!("Arm {} of cell {} was not measured in {}.", arm.name, cell.id, runs[run]));
        };
        if estimate.name != primary.name {
            return Err(format!(
                "Arm {} of cell {} is decided by {} in {} and by {} in {}.",
                arm.name, cell.id, primary.title, runs[0], estimate.title, runs[run]
            ));
        }
        let between_runs = between_runs(&subjects[run].database, &estimate.name);
        let (estimate, proof) = (estimate.clone(), arm.proof.clone());
        sides.push(Side { run, estimate, proof, counted: Counted::Frames, between_runs });
    }
    let mut names: Vec<&str> = Vec::new();
    for arm in arms {
        if !names.contains(&arm.name.as_str()) {
            names.push(&arm.name);
        }
    }
    Ok(Match { cell: cell.id.clone(), arm: names.join(" / "), title: primary.title.clone(), sides, error: None })
}

/// How much identical runs on `database` are known to differ in `figure` beyond their intervals.
pub(crate) fn between_runs(database: &str, figure: &Figure) -> Option<KnownSpread> {
    // Deciding figures are metrics; anything else is treated as net time.
    let metric = if let Figure::Metric(metric) = figure { *metric } else { Metric::Net };
    KnownSpread::of_metric(&run_spread::built_in(database), metric)
}

/// Cells and arms that only later runs have.
pub(super) fn not_in_first(subjects: &[Analysis], runs: &[String]) -> Vec<String> {
    let first = &subjects[0];
    let mut told = BTreeSet::new();
    for (subject, name) in subjects.iter().zip(runs).skip(1) {
        for cell in &subject.cells {
            let Some(known) = first.cells.iter().find(|known| known.id == cell.id) else {
                told.insert(format!("Cell {} of {name} is not in {}.", cell.id, runs[0]));
                continue;
            };
            if comparable(cell).count() == 1 && comparable(known).count() == 1 {
                continue;
            }
            for arm in comparable(cell) {
                if !known.arms.iter().any(|other| other.name == arm.name) {
                    told.insert(format!("Arm {} of cell {} of {name} is not in {}.", arm.name, cell.id, runs[0]));
                }
            }
        }
    }
    told.into_iter().collect()
}

/// Differences between the runs that allow a comparison but may explain its result; and how answers were judged.
pub(super) fn notes(subjects: &[Analysis], runs: &[String], matches: &[Match]) -> Vec<String> {
    let mut notes: Vec<String> = judged_over_run(subjects).into_iter().collect();
    notes.extend((0..runs.len()).filter_map(|run| on_few_starts(run, runs, matches)));
    let sides = matches.iter().flat_map(|it| &it.sides);
    let known = sides.filter_map(|side| Some((subjects[side.run].database.as_str(), side.between_runs?)));
    notes.extend(judged_over_runs(known));
    notes.extend(subjects[0].cells.iter().filter_map(|cell| controls_of(cell, subjects, runs)));
    notes.extend(not_symmetric(runs, matches));
    let first = &subjects[0];
    for (subject, name) in subjects.iter().zip(runs).skip(1) {
        // Other swap or another boot does not make it another machine.
        let Machine { swap, boot, .. } = first.machine.clone();
        let machine = Machine { swap, boot, ..subject.machine.clone() };
        if machine != first.machine {
            notes.push(format!(
                "{} and {name} ran on different machines or systems: a cost may differ for that alone.",
                runs[0]
            ));
        }
        if subject.tithe != first.tithe {
            notes.push(format!("Measured by tithe {} and {}.", first.tithe, subject.tithe));
        }
        let modes: BTreeSet<&str> = first
            .cells
            .iter()
            .chain(&subject.cells)
            .map(|cell| cell.mode.as_str())
            .filter(|mode| !mode.is_empty())
            .collect();
        if modes.len() > 1 {
            notes.push(format!("Paired in different ways ({}).", modes.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    notes
}

/// A note about a run with too few starts of its servers to show how much they vary.
fn on_few_starts(run: usize, runs: &[String], matches: &[Match]) -> Option<String> {
    let sides = || matches.iter().flat_map(|it| &it.sides).filter(|side| side.run == run && side.few_starts());
    let starts = match sides().map(|side| side.estimate.starts).min()? {
        1 => "one start".to_owned(),
        few => format!("{few} starts"),
    };
    let doubt = match sides().all(|side| side.estimate.widened) {
        true => "its intervals are widened by the known start-to-start variation",
        false => {
            "nothing is known of how much its starts differ, so a difference may be start-to-start variation: measure it over more starts"
        }
    };
    Some(format!("{} has {starts} of its servers: {doubt}.", runs[run]))
}

/// A note if an answer uses wider intervals than the sentences about single costs.
fn judged_over_run(subjects: &[Analysis]) -> Option<String> {
    let estimates = subjects.iter().flat_map(|it| &it.cells).flat_map(|it| &it.arms).flat_map(|it| &it.estimates);
    estimates.map(|estimate| estimate.over_run).any(|it| it.is_some()).then(|| judged_over_all("run"))
}

/// The note, if `each` has several cells.
pub(crate) fn judged_over_all(each: &str) -> String {
    format!(
        "The answer and the status of a threshold are judged over all cells of each {each}; bars and sentences about one \
         cell are not, so among many some miss."
    )
}

/// Notes about databases whose identical runs are known to differ by more than their intervals.
pub(crate) fn judged_over_runs<'a>(known: impl Iterator<Item = (&'a str, KnownSpread)>) -> BTreeSet<String> {
    let told = known.map(|(database, known)| {
        format!(
            "Identical runs on {database} differ by more than their intervals allow, by {} % (standard deviation): each run \
             counts as if it erred by another ±{} %.",
            fixed(100.0 * known.spread, 2),
            fixed(100.0 * known.widening(1, 2.0 * USUAL), 2)
        )
    });
    told.collect()
}

/// Notes about cells of a run that are shown and not ranked because their set-up was not symmetric.
fn not_symmetric(runs: &[String], matches: &[Match]) -> BTreeSet<String> {
    let sides = matches.iter().flat_map(|matched| matched.sides.iter().map(move |side| (&matched.cell, side)));
    let told = sides.filter(|(_, side)| !side.estimate.is_symmetric()).map(|(cell, side)| {
        format!(
            "Cell {cell} of {}: its plain arm differs from itself (A/A), so its set-up is not symmetric and its costs are not \
             ranked.",
            runs[side.run]
        )
    });
    told.collect()
}

/// The costs of the runs' A/A arms in `cell`, whose true cost is zero.
fn controls_of(cell: &CellAnalysis, subjects: &[Analysis], runs: &[String]) -> Option<String> {
    let read = |(subject, name): (&Analysis, &String)| {
        let cell = subject.cells.iter().find(|other| other.id == cell.id)?;
        let control = cell.arms.iter().find(|arm| arm.aa)?.primary()?;
        Some(format!("in {name}, {}", control.text))
    };
    let read: Vec<String> = subjects.iter().zip(runs).filter_map(read).collect();
    (!read.is_empty())
        .then(|| format!("Cell {}: the plain arm again (A/A), whose true cost is zero: {}.", cell.id, read.join("; ")))
}
