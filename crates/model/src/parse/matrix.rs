//! A matrix file → [`Matrix`], or everything that is wrong with it.
//!
//! The experiments that it names are separate files, which code with access to a disk reads and parses.

use toml::de::DeTable;

use super::{
    keys, not_a_time,
    reader::{Item, Problems, Table, Text},
    refuse_duplicates, units,
};
use crate::{
    diagnostic::Diagnostic,
    matrix::{MachineKind, Matrix, TASKS_MAX},
    wording,
};

/// Most replicates.
const REPLICATES_MAX: u64 = 10_000;

/// Longest time from one replicate to the next, s.
const EVERY_MAX_S: f64 = 30.0 * 86_400.0;

/// The name of the only kind of machine if none is described.
const ANY: &str = "any host";

/// Reads a matrix file.
///
/// # Errors
/// Every problem found, in the order of the file.
pub fn matrix(text: &str) -> Result<Matrix, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text, &errors);
    let top = Table::open(&keys::MATRIX_TOP, &[], document.get_ref(), 0..0, &mut problems);
    let matrix = read(&top, &mut problems);
    if problems.is_empty() && matrix.len() > TASKS_MAX {
        let problem = format!("{} tasks are too many, at most {TASKS_MAX}", matrix.len());
        problems.at(0..0, problem, "take fewer experiments, kinds of machine or replicates");
    }
    if problems.is_empty() { Ok(matrix) } else { Err(problems.into_sorted()) }
}

fn read(top: &Table<'_>, problems: &mut Problems) -> Matrix {
    let title = top.need("title", problems).and_then(|item| item.name(problems));
    let experiments = top.need("experiments", problems).map(|item| experiments(&item, problems));
    let replicates = top.get("replicates").and_then(|item| item.whole(1..=REPLICATES_MAX, problems));
    let every_s = top.get("every").and_then(|item| every_s(&item, problems));
    Matrix {
        title: title.map(Text::into_inner).unwrap_or_default(),
        experiments: experiments.unwrap_or_default(),
        replicates: replicates.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        every_s: every_s.unwrap_or(0.0),
        machines: machines(top, problems),
    }
}

fn experiments(item: &Item<'_>, problems: &mut Problems) -> Vec<String> {
    let listed = item.list(problems);
    if listed.is_empty() && item.value.as_array().is_some() {
        item.refuse("is empty: a matrix needs at least one experiment", problems);
    }
    let names: Vec<Text> = listed.iter().filter_map(|item| item.name(problems)).collect();
    refuse_duplicates("experiments", &names, problems);
    names.into_iter().map(Text::into_inner).collect()
}

/// From one replicate to the next, s.
fn every_s(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let text = item.text(problems)?;
    let seconds = units::seconds(text).filter(|seconds| (0.0..=EVERY_MAX_S).contains(seconds));
    if seconds.is_none() {
        item.refuse(not_a_time("from 0 s to 720 h", text), problems);
    }
    seconds
}

fn machines(top: &Table<'_>, problems: &mut Problems) -> Vec<MachineKind> {
    let mut names = Vec::new();
    let mut machines = Vec::new();
    for table in &top.tables("machine", &keys::MACHINE, &[], problems) {
        let name = table.need("name", problems).and_then(|item| item.name(problems));
        let slurm = table.get("slurm").map(|item| slurm(&item, problems));
        let kubernetes = table.get("kubernetes").map(|item| super::reader::texts(item.pairs(problems)));
        machines.push(MachineKind {
            name: name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default(),
            slurm: slurm.unwrap_or_default(),
            kubernetes: kubernetes.unwrap_or_default(),
        });
        names.extend(name);
    }
    refuse_duplicates("kinds of machine", &names, problems);
    if machines.is_empty() {
        machines.push(MachineKind { name: ANY.to_owned(), slurm: Vec::new(), kubernetes: Default::default() });
    }
    machines
}

/// Options of `sbatch`, one or more in a text.
fn slurm(item: &Item<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(text) = item.name(problems) else { return Vec::new() };
    let words: Vec<String> = text.get_ref().split_whitespace().map(str::to_owned).collect();
    if let Some(word) = words.iter().find(|word| !word.starts_with("--")) {
        let word = wording::quote(word);
        item.refuse(format!("must be long options of sbatch, each as --name=value; this is {word}"), problems);
    }
    words
}
