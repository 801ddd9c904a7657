//! A matrix file with everything that it names, read and planned; this machine is not checked.

use std::path::{Path, PathBuf};

use tithe_analysis::matrix::{Row, State};
use tithe_machine::fingerprint::fingerprint;
use tithe_model::{
    catalogue::Catalogue,
    diagnostic::Diagnostic,
    experiment::{Experiment, OptionValue},
    matrix::{FORMAT, Matrix, Task},
    parse,
    plan::{self, Plan},
    quantity,
};

use crate::{
    allowed::Listing,
    asked::Source,
    complain,
    exit::{self, Stop},
    offer, prepare,
};

/// A matrix whose experiments were read.
pub struct Planned {
    /// The matrix.
    pub matrix: Matrix,
    /// Identity of the plan: of the matrix' text, its experiments and this version of the program.
    pub identity: String,
    /// The experiments, in the matrix' order.
    pub experiments: Vec<PlannedExperiment>,
}

/// One experiment of a matrix.
pub struct PlannedExperiment {
    /// Its file.
    pub source: Source,
    /// Its content.
    pub experiment: Experiment,
    /// Its plan.
    pub plan: Plan,
}

impl Planned {
    /// Reads the matrix file at `path` and its experiments.
    pub fn read(path: &Path) -> Result<Self, Stop> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Stop::new(exit::USAGE, format!("cannot read the matrix {name}: {error}")))?;
        let matrix = parse::matrix(&text).map_err(|diagnostics| complain::shown(&name, &text, &diagnostics))?;
        let base = path.parent().unwrap_or(Path::new(""));
        let paths: Vec<PathBuf> = matrix.experiments.iter().map(|experiment| base.join(experiment)).collect();
        let lost = |(place, path): (usize, &PathBuf)| lost(&text, place, path);
        let lost: Vec<Diagnostic> = paths.iter().enumerate().filter_map(lost).collect();
        if !lost.is_empty() {
            return Err(complain::shown(&name, &text, &lost));
        }
        let catalogue = offer::catalogue();
        let experiments: Vec<PlannedExperiment> =
            paths.iter().map(|path| PlannedExperiment::read(path, &catalogue)).collect::<Result<_, Stop>>()?;
        let identity = identity(&matrix, &experiments)?;
        Ok(Self { matrix, identity, experiments })
    }

    /// True if some experiment runs commands or files of its own, which the caller has allowed or `allows` now.
    ///
    /// # Errors
    /// What it runs, and which command to type.
    pub fn check(&self, allows: bool) -> Result<bool, Stop> {
        let listing = |planned: &PlannedExperiment| Listing::of(&planned.source, &planned.experiment);
        let listings: Vec<Listing> = self.experiments.iter().filter_map(listing).collect();
        listings.iter().try_for_each(|listing| listing.check(allows))?;
        Ok(!listings.is_empty())
    }

    /// The row of `task`, in this state.
    pub fn row(&self, task: Task, state: State) -> Row {
        Row {
            task: task.index,
            experiment: self.matrix.experiments[task.experiment].clone(),
            machine: self.matrix.machines[task.machine].name.clone(),
            replicate: task.replicate,
            state,
        }
    }

    /// The tasks as text: one line for the replicates of each experiment on each kind of machine.
    pub fn outline(&self) -> String {
        let Self { matrix, identity, experiments } = self;
        let mut rows = vec![["tasks", "machine", "experiment", "load of each", "cells"].map(str::to_owned)];
        let mut load_s = 0.0;
        for (machine, kind) in matrix.machines.iter().enumerate() {
            for (experiment, planned) in experiments.iter().enumerate() {
                let first = matrix.first(machine, experiment);
                let last = first + matrix.replicates as usize - 1;
                let budget_s = planned.experiment.measure.budget_s;
                load_s += budget_s * f64::from(matrix.replicates);
                rows.push([
                    if first == last { first.to_string() } else { format!("{first}–{last}") },
                    kind.name.clone(),
                    matrix.experiments[experiment].clone(),
                    quantity::duration(budget_s),
                    planned.plan.cells.len().to_string(),
                ]);
            }
        }
        let widths: [usize; 5] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        let line = |row: &[String; 5]| {
            let fields: Vec<String> = row.iter().zip(widths).map(|(field, width)| format!("{field:width$}")).collect();
            format!("{}\n", fields.join("  ").trim_end())
        };
        format!(
            "{}\nplan {identity}: {} tasks, {} of load in all; starting, loading and warming up come on top\n\n{}",
            matrix.title,
            quantity::count(matrix.len() as u64),
            quantity::duration(load_s),
            rows.iter().map(line).collect::<String>()
        )
    }
}

impl PlannedExperiment {
    fn read(path: &Path, catalogue: &Catalogue) -> Result<Self, Stop> {
        let source = Source::file(path)?;
        let experiment = prepare::read(&source, catalogue)?;
        let plan = plan::plan(experiment.clone(), catalogue).map_err(|diagnostics| source.complain(diagnostics))?;
        if experiment.load.agents.is_some() || experiment.arms.iter().any(|arm| arm.observer.is_some()) {
            let why = "a task of a matrix is measured by its host alone: leave `agents` and `observer` out";
            return Err(Stop::new(exit::USAGE, format!("{}: {why}; nothing was started", path.display())));
        }
        Ok(Self { source, experiment, plan })
    }
}

/// The error if the experiment file at `path`, number `place` of the matrix, does not exist.
fn lost(text: &str, place: usize, path: &Path) -> Option<Diagnostic> {
    if path.is_file() {
        return None;
    }
    let range = parse::place(text, &["experiments", &place.to_string()]);
    let problem = format!("there is no experiment file {}", path.display());
    Some(Diagnostic { range, problem, help: "its path is relative to the folder of the matrix file".to_owned() })
}

/// The value of an option that selects nothing.
const ANY: &str = "any";

/// The run folder's format in the identity of a plan: that of the first kept tasks, because how files are laid out does
/// not change the measurement.
const RUN_FOLDER: u32 = 3;

/// The identity of a plan. It includes the program's version, because another version may plan differently. Options
/// that select nothing are left out: tasks of a program without these options measured the same.
fn identity(matrix: &Matrix, experiments: &[PlannedExperiment]) -> Result<String, Stop> {
    // Known start-to-start variation, server facts and protection facts do not change the measurement.
    let measured = |plan: &Plan| {
        let mut plan = Plan {
            format: RUN_FOLDER,
            start_spread: Vec::new(),
            one_server_spread: None,
            cost_spread: None,
            ..plan.clone()
        };
        for protection in plan.experiment.arms.iter_mut().flat_map(|arm| &mut arm.protections) {
            protection.options.retain(|_, value| *value != OptionValue::Text(ANY.to_owned()));
        }
        plan
    };
    let plans: Vec<Plan> = experiments.iter().map(|experiment| measured(&experiment.plan)).collect();
    let all = serde_json::to_vec(&(FORMAT, env!("CARGO_PKG_VERSION"), matrix, plans));
    all.map(|bytes| fingerprint(&bytes))
        .map_err(|error| Stop::new(exit::MACHINE, format!("the plan cannot be written: {error}")))
}
