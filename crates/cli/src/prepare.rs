//! From a file name to a plan that this machine can carry out, or every reason why not.

use std::path::Path;

use tithe_harness::{arms, catalogue};
use tithe_machine::launch::{Install, Search};
use tithe_model::{
    catalogue::Catalogue,
    experiment::{self, Arrivals, Experiment},
    parse,
    plan::{self, Plan},
};
use tithe_plugin::{product::Product, workload::Workload};
use tithe_workloads::program;

use crate::{
    ExperimentArgs, MachineArgs, complain,
    exit::{self, Stop},
    spread_file,
};

/// The experiment that runs when none is named.
const BUILT_IN: &str = include_str!("../../../experiments/sqlite-page-encryption.toml");

/// An experiment, ready to run.
pub struct Prepared {
    /// The file's text.
    pub text: String,
    /// What will be done.
    pub plan: Plan,
    /// The database.
    pub database: &'static dyn Product,
    /// Its installation on this machine.
    pub install: Install,
    /// One workload per workload of the experiment.
    pub workloads: Vec<Box<dyn Workload>>,
}

/// Everything that this build of Tithe knows.
pub fn catalogue() -> Catalogue {
    catalogue::catalogue(&databases(), tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).collect())
}

/// Every database of this build, and the simulated ones when `TITHE_SIMULATED` asks for it: it is for tests only.
pub fn databases() -> Vec<&'static dyn Product> {
    let mut all = tithe_databases::all().to_vec();
    if std::env::var_os("TITHE_SIMULATED").is_some() {
        all.push(&tithe_plugin::simulated::Simulated);
        all.push(&tithe_plugin::simulated::Spinning);
        all.push(&tithe_plugin::simulated::Compiling);
        all.push(&tithe_plugin::simulated::Lucky);
    }
    all
}

/// Where to look for programs.
pub fn search(arguments: &MachineArgs) -> Search {
    Search { folders: arguments.pg_bin.clone() }
}

/// Reads, checks and plans the experiment that `arguments` name.
pub fn prepare(arguments: &ExperimentArgs) -> Result<Prepared, Stop> {
    prepare_changed(arguments, |_| {})
}

/// As [`prepare`], with what the command line changes about the experiment.
pub fn prepare_changed(arguments: &ExperimentArgs, change: impl FnOnce(&mut Experiment)) -> Result<Prepared, Stop> {
    prepare_text(read(arguments.file.as_deref())?, arguments, change)
}

/// As [`prepare_changed`], of an experiment with this name and text.
pub fn prepare_text(
    (name, text): (String, String),
    arguments: &ExperimentArgs,
    change: impl FnOnce(&mut Experiment),
) -> Result<Prepared, Stop> {
    let catalogue = catalogue();
    let base = arguments.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let read_named = |path: &str| std::fs::read_to_string(base.join(path));
    let mut experiment = parse::parse(&text, &catalogue, &read_named)
        .map_err(|diagnostics| complain::about(&name, &text, &diagnostics))?;
    scale(&mut experiment, arguments)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    change(&mut experiment);
    let mut plan =
        plan::plan(experiment, &catalogue).map_err(|diagnostics| complain::about(&name, &text, &diagnostics))?;
    if let Some(path) = &arguments.start_spread {
        plan.start_spread = spread_file::read(path, &plan.experiment.database)?;
    }
    of_plan(text, plan, arguments)
}

/// Records of the largest data set that an experiment may ask for.
const RECORDS_MAX: f64 = 1e12;

/// What the command line says about the size of an experiment.
fn scale(experiment: &mut Experiment, arguments: &ExperimentArgs) -> Result<(), String> {
    if let Some(warehouses) = arguments.warehouses {
        let tpcc = experiment.workloads.iter_mut().filter(|workload| workload.kind == "tpcc");
        let scaled = tpcc.map(|workload| workload.properties.insert("warehouses".to_owned(), warehouses.to_string()));
        if scaled.count() == 0 {
            return Err("--warehouses: no workload of this experiment is TPC-C".to_owned());
        }
        let rows = |described: &experiment::Workload| {
            let workload = tithe_workloads::make(described, &experiment.data, experiment.measure.seed)?;
            Ok(workload.rows(experiment.data.records))
        };
        let rows: Vec<u64> = experiment.workloads.iter().map(rows).collect::<Result<_, String>>()?;
        experiment.data.records = rows.into_iter().max().unwrap_or(experiment.data.records);
    }
    if let Some(factor) = arguments.scale {
        if experiment.workloads.iter().any(|workload| workload.kind == "tpcc") {
            return Err("--scale: the size of TPC-C is its --warehouses".to_owned());
        }
        let records = experiment.data.records as f64 * factor;
        if !(1.0..=RECORDS_MAX).contains(&records) {
            return Err(format!("--scale: {factor} times {} records is no data set", experiment.data.records));
        }
        experiment.data.records = records.round() as u64;
    }
    if let Some(text) = &arguments.budget {
        experiment.measure.budget_s = parse::budget_s(text).map_err(|problem| format!("--budget {problem}"))?;
    }
    let chosen = experiment.resources.iter().any(|one| one.clients.is_some() || one.arrivals.is_some());
    match arguments.clients.as_slice() {
        [] => {}
        _ if chosen || experiment.load.arrivals != Arrivals::Closed => {
            return Err("--clients: this experiment gives a rate, or numbers of clients by `[[resources]]`".to_owned());
        }
        [one] => experiment.load.clients = *one,
        several => {
            let mut several = several.to_vec();
            several.sort_unstable();
            several.dedup();
            experiment.resources = parse::swept(std::mem::take(&mut experiment.resources), &several);
        }
    }
    Ok(())
}

/// Makes a plan ready to run on this machine.
pub fn of_plan(text: String, plan: Plan, arguments: &ExperimentArgs) -> Result<Prepared, Stop> {
    let id = &plan.experiment.database;
    let database = databases()
        .into_iter()
        .find(|database| database.id() == id)
        .ok_or_else(|| Stop::new(exit::USAGE, format!("this build of tithe has no database {id}")))?;
    for arm in &plan.experiment.arms {
        if let Some(Err(fault)) = arm.url.as_ref().map(|url| database.check_url(url)) {
            return Err(Stop::new(exit::USAGE, format!("arm {}: {fault}; nothing was started", arm.name)));
        }
    }
    for resources in &plan.experiment.resources {
        let settings = plan.experiment.settings.iter().chain(&resources.settings);
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Err(fault) = database.check_settings(&settings) {
            return Err(Stop::new(exit::USAGE, format!("{fault}; nothing was started")));
        }
    }
    let workloads = workloads(&plan.experiment)?;
    arms::check(database, &plan.experiment, &workloads)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    arms::check_programs(database, &plan.experiment, &workloads)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    let install = catalogue::missing(database, &plan.experiment, &search(&arguments.machine))
        .map_err(|all| complain::missing(&all))?;
    let programs = program::missing(&workloads);
    if !programs.is_empty() {
        return Err(complain::missing(&programs));
    }
    Ok(Prepared { text, plan, database, install, workloads })
}

fn workloads(experiment: &Experiment) -> Result<Vec<Box<dyn Workload>>, Stop> {
    let make = |described: &experiment::Workload| {
        tithe_workloads::make(described, &experiment.data, experiment.measure.seed)
            .map_err(|problem| Stop::new(exit::USAGE, format!("workload {}: {problem}", described.name)))
    };
    experiment.workloads.iter().map(make).collect()
}

/// Name and text of the experiment in `file`, or of the built-in one.
pub fn read(file: Option<&Path>) -> Result<(String, String), Stop> {
    let Some(path) = file else { return Ok(("built-in experiment".to_owned(), BUILT_IN.to_owned())) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::new(exit::USAGE, format!("cannot read the experiment {}: {error}", path.display())))?;
    Ok((path.display().to_string(), text))
}
