//! From the user's request to a plan that this machine can carry out, or every reason why it cannot.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
};

use tithe_harness::{arms, catalogue, run::learn::learn};
use tithe_machine::{
    descriptors,
    launch::{Install, Missing},
};
use tithe_model::{
    catalogue::{Catalogue, OfferedDatabase},
    compose::{QUICK_S, Words},
    experiment::{self, Arrivals, Experiment},
    parse,
    plan::{self, Plan},
    quantity,
};
use tithe_plugin::{product::Product, workload::Workload};
use tithe_workloads::{production, program};

use crate::{
    AskedArgs, ExperimentArgs, MachineArgs, RECORDS_MAX,
    allowed::{self, Listing},
    asked::{self, Kind, Source},
    complain,
    exit::{self, Stop},
    offer, own_files, refusals, spread_file,
};

/// Largest file of properties, scripts or protections that is read, bytes.
const READ_MAX: u64 = 64 << 20;

/// An experiment, ready to run.
pub struct Prepared {
    /// The file's text.
    pub text: String,
    /// The plan.
    pub plan: Plan,
    /// The database.
    pub database: &'static dyn Product,
    /// The installations of its servers, one for each of the experiment's resources.
    pub installs: Vec<Install>,
    /// One workload per workload of the experiment.
    pub workloads: Vec<Box<dyn Workload>>,
}

/// An experiment that can be carried out somewhere, and what this machine lacks for it.
pub struct Planned {
    /// As if nothing was missing; if something is, its installation is a placeholder.
    pub prepared: Prepared,
    /// What this machine lacks.
    pub lacks: Vec<Missing>,
}

impl Planned {
    /// Returns the plan if this machine can carry it out; otherwise everything that it lacks.
    fn ready(self) -> Result<Prepared, Stop> {
        if self.lacks.is_empty() {
            return Ok(self.prepared);
        }
        // A search finds nothing where it may not open files.
        let may_open = descriptors::allow(self.prepared.plan.connections());
        may_open.map_err(|fault| Stop::new(exit::MACHINE, fault.to_string()))?;
        Err(complain::missing(&self.lacks))
    }
}

/// Reads, checks and plans what `arguments` of `command` ask for, without timing: no budget is too small for it.
pub fn prepare_unmeasured(arguments: &AskedArgs, command: &str) -> Result<Prepared, Stop> {
    let (source, catalogue) = (asked::source(arguments, command)?, offer::catalogue());
    let experiment = parse::parse_unmeasured(&source.text, &catalogue, &read_beside(&source));
    let experiment = experiment.map_err(|diagnostics| source.complain(diagnostics))?;
    allowed::check(&source, &experiment, arguments.experiment.allow_commands)?;
    let afford = |experiment: &mut Experiment| plan::afford(experiment, &catalogue);
    planned(source, experiment, (&arguments.experiment, arguments.quick), afford)?.ready()
}

/// The listing of what the experiment in `source` would run, recorded as allowed if the caller allows it; `None` if it
/// runs nothing of its own.
pub fn listed(source: &Source, arguments: &AskedArgs) -> Result<Option<Listing>, Stop> {
    let experiment = read(source, &offer::catalogue())?;
    let listing = Listing::of(source, &experiment);
    listing.iter().filter(|_| arguments.experiment.allow_commands).for_each(Listing::allow);
    Ok(listing)
}

/// Reads, checks and plans the experiment in `source`, with the options of the command line, for any machine.
pub fn prepare_planned(source: Source, arguments: &AskedArgs) -> Result<Planned, Stop> {
    let experiment = read(&source, &offer::catalogue())?;
    // A plan starts nothing. But the load of production is read from its server, with a password from the command that
    // the URL names.
    let asks = experiment.workloads.iter().any(|workload| workload.kind == production::entry().id);
    if asks && experiment.arms.iter().filter_map(|arm| arm.url.as_ref()).any(|url| !url.commands().is_empty()) {
        allowed::check(&source, &experiment, arguments.experiment.allow_commands)?;
    }
    planned(source, experiment, (&arguments.experiment, arguments.quick), |_| {})
}

/// Reads, checks and plans the experiment in `source`, with the options of the command line and with `change`.
pub fn prepare_source(
    source: Source,
    arguments: &ExperimentArgs,
    quick: bool,
    change: impl FnOnce(&mut Experiment),
) -> Result<Prepared, Stop> {
    let experiment = read(&source, &offer::catalogue())?;
    allowed::check(&source, &experiment, arguments.allow_commands)?;
    planned(source, experiment, (arguments, quick), change)?.ready()
}

/// Checks and plans `experiment`, which `source` contains, with the options of the command line and with `change`.
fn planned(
    source: Source,
    mut experiment: Experiment,
    (arguments, quick): (&ExperimentArgs, bool),
    change: impl FnOnce(&mut Experiment),
) -> Result<Planned, Stop> {
    let catalogue = offer::catalogue();
    // If an experiment was made from the command line, its text contains the options already.
    if source.composed().is_none() {
        scale(&mut experiment, arguments)
            .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    }
    change(&mut experiment);
    match source.kind {
        Kind::BuiltIn => {
            if quick {
                (experiment.measure.budget_s, experiment.measure.until_decided) = (QUICK_S, true);
            }
            keep_to_budget(&mut experiment, &catalogue);
        }
        Kind::Text if quick => {
            experiment.measure.budget_s = QUICK_S.max(plan::least_budget_s(&experiment, &catalogue));
            experiment.measure.until_decided = true;
        }
        Kind::Text | Kind::Words(_) => {}
    }
    let mut planned = fitted(&source, experiment, &catalogue, &arguments.machine)?;
    if let Some(path) = &arguments.start_spread {
        let plan = &mut planned.prepared.plan;
        plan.start_spread = spread_file::read(path, &plan.experiment.database)?;
        plan.one_server_spread = None;
    }
    Ok(planned)
}

/// Reads the experiment in `source`.
pub fn read(source: &Source, catalogue: &Catalogue) -> Result<Experiment, Stop> {
    parse::parse(&source.text, catalogue, &read_beside(source)).map_err(|diagnostics| source.complain(diagnostics))
}

/// An experiment at `url` with an arm for each of `protections`, so that mistakes are reported as everywhere.
pub fn protected(
    command: &str,
    url: &str,
    (database, protections): (&OfferedDatabase, &[String]),
    catalogue: &Catalogue,
) -> Result<(Source, Experiment), Stop> {
    let words = Words { protections, ..Words::new(command, url) };
    let source = asked::of_words(&words, database, catalogue)?;
    let experiment = read(&source, catalogue)?;
    Ok((source, experiment))
}

/// Reads the files that `source` names, in its folder.
fn read_beside(source: &Source) -> impl Fn(&str) -> std::io::Result<Vec<u8>> {
    let base = source.base.clone();
    move |path: &str| bounded(&own_files::place(&base, path.as_ref()))
}

/// The content of the file at `path`, which an experiment names: not from a device, and not more than people write.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?.file_type();
    if found.is_char_device() || found.is_block_device() {
        return Err(io::Error::other("it is a device"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(READ_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > READ_MAX {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

/// Plans `experiment`, which `source` contains, and checks whether this machine can carry it out.
pub fn checked(
    source: &Source,
    experiment: Experiment,
    catalogue: &Catalogue,
    machine: &MachineArgs,
) -> Result<Prepared, Stop> {
    fitted(source, experiment, catalogue, machine)?.ready()
}

/// Plans `experiment`, which `source` contains, and searches this machine for what it needs.
fn fitted(
    source: &Source,
    experiment: Experiment,
    catalogue: &Catalogue,
    machine: &MachineArgs,
) -> Result<Planned, Stop> {
    let mut experiment = experiment;
    // Absolute, so that later commands and programs in other folders find it.
    for workload in &mut experiment.workloads {
        if let Some(path) = &mut workload.prepare {
            *path = source.base.join(&path);
        }
        let kind = catalogue.workloads.iter().find(|kind| kind.id == workload.kind);
        let Some(path) = kind.and_then(|kind| workload.properties.get_mut(kind.by_path)) else { continue };
        let whole = source.base.join(&*path).canonicalize();
        let whole = whole.map_err(|error| Stop::new(exit::USAGE, format!("{path}: {error}; nothing was started")))?;
        *path = whole.to_string_lossy().into_owned();
    }
    let own = experiment.arms.iter_mut().flat_map(|arm| &mut arm.protections).filter_map(|it| it.custom.as_mut());
    for path in own.flat_map(|custom| custom.files.values_mut()) {
        *path = own_files::place(&source.base, path);
    }
    let plan = plan::plan(experiment, catalogue).map_err(|diagnostics| source.complain(diagnostics))?;
    let mut refused = refusals::of_urls(offer::database(&plan.experiment.database)?, &plan.experiment, &source.text);
    refused.extend(refusals::of_address(&plan.experiment, &source.text));
    if !refused.is_empty() {
        return Err(source.complain(refused));
    }
    let planned = found(source.text.clone(), plan, machine)?;
    if !planned.lacks.is_empty() {
        return Ok(planned);
    }
    let Prepared { database, installs, plan, .. } = &planned.prepared;
    let unknown = refusals::of_settings(*database, installs, &plan.experiment, &source.text);
    if unknown.is_empty() { Ok(planned) } else { Err(source.complain(unknown)) }
}

/// Removes the cells of the built-in experiment that exceed its budget, and prints which are left. Its first cell is
/// the most informative.
fn keep_to_budget(experiment: &mut Experiment, catalogue: &Catalogue) {
    let mut left_out = false;
    while plan::least_budget_s(experiment, catalogue) > experiment.measure.budget_s {
        if experiment.workloads.len() > 1 {
            experiment.workloads.pop();
        } else if experiment.resources.len() > 1 {
            experiment.resources.pop();
        } else {
            break;
        }
        left_out = true;
    }
    if left_out {
        let workload = experiment.workloads.first().map_or("", |workload| &workload.name);
        let resources: Vec<&str> = experiment.resources.iter().map(|resources| resources.name.as_str()).collect();
        crate::shown::telln!(
            "tithe: {} of load is enough for a part of the built-in experiment only: workload {workload}, {}",
            quantity::precise_duration(experiment.measure.budget_s),
            resources.join(" and ")
        );
    }
}

/// Applies the command line's options about the size of an experiment.
fn scale(experiment: &mut Experiment, arguments: &ExperimentArgs) -> Result<(), String> {
    if let Some(warehouses) = arguments.warehouses {
        let tpcc = experiment.workloads.iter_mut().filter(|workload| workload.kind == "tpcc");
        let scaled = tpcc.map(|workload| workload.properties.insert("warehouses".to_owned(), warehouses.to_string()));
        match scaled.count() {
            0 => return Err("--warehouses: no workload of this experiment is TPC-C".to_owned()),
            some if some < experiment.workloads.len() => {
                return Err(
                    "--warehouses: not every workload of this experiment is TPC-C, and the others would get as \
                            many records: write `warehouses` into the file"
                        .to_owned(),
                );
            }
            _ => {}
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
        if !(1.0..=RECORDS_MAX as f64).contains(&records) {
            return Err(format!("--scale: {factor} times {} records is not a data set", experiment.data.records));
        }
        experiment.data.records = records.round() as u64;
    }
    if let Some(records) = arguments.records {
        if experiment.workloads.iter().any(|workload| workload.kind == "tpcc") {
            return Err("--records: the size of TPC-C is its --warehouses".to_owned());
        }
        experiment.data.records = records;
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
pub fn of_plan(text: String, plan: Plan, machine: &MachineArgs) -> Result<Prepared, Stop> {
    found(text, plan, machine)?.ready()
}

/// Searches this machine for what a plan needs.
fn found(text: String, plan: Plan, machine: &MachineArgs) -> Result<Planned, Stop> {
    let database = offer::database(&plan.experiment.database)?;
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
    arms::check_requests(database, &plan.experiment, &workloads)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    arms::check_programs(database, &plan.experiment, &workloads)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    learn(database, &plan.experiment, &workloads)
        .map_err(|problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started")))?;
    let line = |path: &[&str]| parse::line_of(&text, path).map_or(String::new(), |line| format!(" (line {line})"));
    let (installs, lacks) = match catalogue::missing(database, &plan.experiment, &offer::search(machine), &line) {
        Ok(installs) => {
            let lacks = [program::missing(&workloads), arms::missing_to_restore(database, &workloads)].concat();
            let refused = |problem| Stop::new(exit::USAGE, format!("{problem}; nothing was started"));
            let check = |install| arms::check_data(database, &plan.experiment, &workloads, install);
            installs.iter().try_for_each(check).map_err(refused)?;
            (installs, lacks)
        }
        Err(lacks) => (vec![Install::default(); plan.experiment.resources.len()], lacks),
    };
    let prepared = Prepared { text, plan, database, installs, workloads };
    Ok(Planned { prepared, lacks })
}

fn workloads(experiment: &Experiment) -> Result<Vec<Box<dyn Workload>>, Stop> {
    let make = |described: &experiment::Workload| {
        tithe_workloads::make(described, &experiment.data, experiment.measure.seed)
            .map_err(|problem| Stop::new(exit::USAGE, format!("workload {}: {problem}", described.name)))
    };
    experiment.workloads.iter().map(make).collect()
}
