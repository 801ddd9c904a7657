//! A plan in words, for `tithe plan`: what will be measured, how long it takes, and what it needs.
//!
//! The settings that a protection changes are known to the plug-ins, not to the plan.

use std::{collections::BTreeSet, fmt::Write};

use super::{
    Cell, FRAMES_MIN, Plan, Starts, idling,
    repetition::{EVIDENCE_S, STARTS_USUAL, epoch_s, starts_are_ours},
    shape, sides,
};
use crate::{
    catalogue::{Asked, AskedOf, Catalogue, WorkloadShape},
    experiment::{Arm, Arrivals, Metric, OptionValue, Protection, ProviderSwitch, Values},
    profile::PROFILED_PAIRS,
    quantity,
};

// Orders of magnitude, for a guess that is shown as rough.
const CONNECT_S: f64 = 0.01;
/// Stopping a server, emptying caches and restarting it before a slice of another program.
const RESTART_S: f64 = 3.0;
/// Bytes on disk per byte of values: keys, indexes, page fill, write-ahead log.
const DISK_FACTOR: f64 = 2.5;

/// `plan` in words. Times beyond the measured load and the disk space are rough guesses, and are shown as such.
pub fn outline(plan: &Plan, catalogue: &Catalogue) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    _ = write_outline(&mut text, plan, catalogue);
    text
}

/// A summary of `plan` in four lines, for the beginning of a run.
pub fn head(plan: &Plan, catalogue: &Catalogue) -> String {
    let experiment = &plan.experiment;
    let database = catalogue.entry(&experiment.database).map_or(experiment.database.as_str(), |entry| entry.title);
    let arms: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    let how = match catalogue.entry(&experiment.database) {
        _ if experiment.is_attached() => format!("a running {database}"),
        Some(entry) if entry.embedded => database.to_owned(),
        _ => format!("{database}, started by Tithe"),
    };
    let cells: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    let cells = match cells.as_slice() {
        [one] => format!("workload {one}"),
        several => format!("{} cells ({})", several.len(), several.join(", ")),
    };
    let mut clients: Vec<u32> = plan.cells.iter().map(|cell| cell.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let clients: Vec<String> = clients.iter().map(u32::to_string).collect();
    let noun = if clients == ["1"] { "client" } else { "clients" };
    let load_s: f64 = plan.cells.iter().map(|cell| measured_s(plan, cell)).sum();
    let rest_s: f64 = plan.cells.iter().map(|cell| around_s(plan, catalogue, cell)).sum();
    format!(
        "{}\n  arms  {} on {how}\n  load  {cells}, {}, {} {noun}\n  time  at most {} of load, roughly {} in all\n",
        experiment.title,
        arms.join(", "),
        data(plan, catalogue),
        clients.join(" and "),
        quantity::precise_duration(load_s),
        quantity::precise_duration(rough_s(load_s + rest_s + profile_s(plan))),
    )
}

fn write_outline(text: &mut String, plan: &Plan, catalogue: &Catalogue) -> std::fmt::Result {
    let experiment = &plan.experiment;
    let database = catalogue.entry(&experiment.database).map_or(experiment.database.as_str(), |entry| entry.title);
    let values = match experiment.data.values {
        _ if is_own(plan, catalogue) => "",
        Values::Ycsb => ", YCSB's printable values",
        Values::Incompressible => ", incompressible values",
    };
    writeln!(text, "{}", experiment.title)?;
    writeln!(text, "{database}, {}{values}, seed {}", data(plan, catalogue), experiment.measure.seed)?;
    if let Some(address) = experiment.load.listen {
        let open = if experiment.load.is_open() {
            ", where other machines reach them: every arm asks for a password"
        } else {
            ""
        };
        writeln!(text, "servers listen on {address}{open}")?;
    }
    writeln!(text, "\nArms")?;
    let arms = experiment.arms.len();
    let describe = |(index, arm): (usize, &Arm)| vec![arm.name.clone(), describe_arm(index, arm, arms)];
    let rows = experiment.arms.iter().enumerate().map(describe);
    write_table(text, rows.collect())?;
    writeln!(text, "\nCells")?;
    let head = ["cell", "clients", "load", "slot", "frame", "frames", "starts"].map(str::to_owned).to_vec();
    let rows = plan.cells.iter().map(|cell| cell_row(cell, experiment.arms.len()));
    write_table(text, std::iter::once(head).chain(rows).collect())?;
    write_asked(text, plan, catalogue)?;
    write_totals(text, plan, catalogue)
}

/// True if no workload works on records that Tithe generates.
fn is_own(plan: &Plan, catalogue: &Catalogue) -> bool {
    let own = |workload| shape(workload, catalogue).is_some_and(WorkloadShape::has_own_data);
    plan.experiment.workloads.iter().all(own)
}

/// The data set in words.
fn data(plan: &Plan, catalogue: &Catalogue) -> String {
    if is_own(plan, catalogue) {
        return "the workload's own data".to_owned();
    }
    format!("{} records", quantity::count(plan.experiment.data.records))
}

/// Keys of the experiment that property files also set, and which value is used.
fn write_asked(text: &mut String, plan: &Plan, catalogue: &Catalogue) -> std::fmt::Result {
    let experiment = &plan.experiment;
    let mut rows = Vec::new();
    for workload in &experiment.workloads {
        let Some(kind) = catalogue.workloads.iter().find(|kind| kind.id == workload.kind) else { continue };
        for Asked { property, of, value } in (kind.asks)(&workload.properties) {
            let counts = match of {
                AskedOf::Records => Some(experiment.data.records as f64),
                AskedOf::Clients => Some(f64::from(experiment.load.clients)),
                AskedOf::Rate => match experiment.load.arrivals {
                    Arrivals::Even(rate) | Arrivals::Poisson(rate) => Some(rate),
                    Arrivals::Closed | Arrivals::OfSaturation(_) => None,
                },
            };
            let of_resources = of == AskedOf::Clients && experiment.resources.iter().any(|one| one.clients.is_some());
            let words = if counts == Some(value) && !of_resources {
                format!("is `{}` of the experiment", of.key())
            } else {
                format!("overridden by `{}` of the experiment", of.key())
            };
            rows.push(vec![workload.name.clone(), format!("{property} = {value}"), words]);
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nProperties of workloads")?;
    write_table(text, rows)
}

fn describe_arm(index: usize, arm: &Arm, arms: usize) -> String {
    let protections: Vec<String> = arm.protections.iter().map(describe_protection).collect();
    let mut words = match (index, protections.is_empty(), arm.on.is_empty()) {
        _ if arm.aa => format!(
            "the plain arm again, the negative control: its true cost is zero; 1/{arms} of the load (`aa_arm = false` \
             leaves it out)"
        ),
        (0, ..) => "plain, the baseline".to_owned(),
        (_, true, true) if arm.switch.is_some() => "no protection is named".to_owned(),
        (_, true, true) => "plain".to_owned(),
        (_, true, false) => "a setting, switched by statements".to_owned(),
        (_, false, _) if arm.is_setting() => format!("a setting: {}", protections.join(", ")),
        (_, false, _) => protections.join(", "),
    };
    if let Some(url) = &arm.url {
        words += &format!(", attached to {}", url.redacted());
    }
    if arm.switch.is_some() {
        words += ", switched by its provider";
    }
    words
}

fn describe_protection(protection: &Protection) -> String {
    // An empty text is an option that nobody gave.
    let given = |(_, value): &(&String, &OptionValue)| !matches!(value, OptionValue::Text(text) if text.is_empty());
    let option = |(name, value): (&String, &OptionValue)| format!("{name} = {value}");
    let options: Vec<String> = protection.options.iter().filter(given).map(option).collect();
    if options.is_empty() { protection.id.clone() } else { format!("{} ({})", protection.id, options.join(", ")) }
}

fn cell_row(cell: &Cell, arms: usize) -> Vec<String> {
    let mut load = cell.arrivals.to_string();
    if let Some(every) = cell.reconnect_every {
        load += &format!(", reconnecting every {every}");
    }
    if cell.program {
        load += ", slices of another program";
    }
    vec![
        cell.id.clone(),
        cell.clients.to_string(),
        load,
        quantity::precise_duration(cell.slot_ns as f64 / 1e9),
        quantity::precise_duration(cell.frame_ns(arms) as f64 / 1e9),
        match cell.design.is_switched() {
            true => cell.frames_max.to_string(),
            false => format!("{FRAMES_MIN} to {}", cell.frames_max),
        },
        starts(cell),
    ]
}

/// How often servers are started, in words.
fn starts(cell: &Cell) -> String {
    match cell.planned_starts() {
        _ if cell.design.is_switched() => "the provider's".to_owned(),
        None => "each frame".to_owned(),
        Some(starts) => starts.to_string(),
    }
}

fn write_totals(text: &mut String, plan: &Plan, catalogue: &Catalogue) -> std::fmt::Result {
    let experiment = &plan.experiment;
    let measure = &experiment.measure;
    let primary = match measure.primary {
        // Another program's waits for a processor are not visible.
        Metric::Net if plan.cells.iter().all(|cell| cell.program) => "processor time per operation",
        Metric::Net => "net time per operation (processor time where net time is unknown)",
        Metric::Time => "time per operation",
        Metric::Cpu => "processor time per operation",
        Metric::ClientCpu => "processor time of the client per operation",
        Metric::ServerCpu => "processor time of the server per operation",
    };
    let load_s: f64 = plan.cells.iter().map(|cell| measured_s(plan, cell)).sum();
    let rest_s: f64 = plan.cells.iter().map(|cell| around_s(plan, catalogue, cell)).sum();
    match experiment.switch() {
        Some(switch) => write_switch(text, switch, &plan.cells, primary)?,
        None if measure.until_decided => writeln!(
            text,
            "\nA cell ends when {primary} gives every arm an answer that is certain, or with its last frame."
        )?,
        None => writeln!(
            text,
            "\nA cell ends when {primary} is known to ±{:.2} %, or with its last frame.",
            percent(measure.precision)
        )?,
    }
    writeln!(text, "Measured load     at most {}", quantity::precise_duration(load_s))?;
    let and_switches = if experiment.switch().is_some() { "; the switches come on top" } else { "" };
    let is_watched = plan.cells.iter().any(|cell| idle_s(plan, catalogue, cell) > 0.0);
    let and_idle = if is_watched { ", idle servers" } else { "" };
    writeln!(
        text,
        "Everything else   roughly {}: starting, loading, warming up, evidence{and_idle}{and_switches}",
        quantity::precise_duration(rough_s(rest_s))
    )?;
    if measure.profile {
        writeln!(
            text,
            "Profile           {} frames between those of each cell, together roughly {} of load",
            2 * PROFILED_PAIRS,
            quantity::precise_duration(rough_s(profile_s(plan)))
        )?;
    }
    write_starting(text, plan, catalogue)?;
    write_observers(text, &experiment.arms)?;
    match disk_bytes(plan, catalogue) {
        // The size of data of the user's own is not known here.
        0.0 => Ok(()),
        bytes => writeln!(text, "Disk              roughly {} at a time", quantity::rough_size(bytes)),
    }
}

/// Names the cells whose restarts take more time than they should.
fn write_starting(text: &mut String, plan: &Plan, catalogue: &Catalogue) -> std::fmt::Result {
    for cell in &plan.cells {
        let (share, of_load) = (starting_share(plan, catalogue, cell), cell.after_start.starting_share());
        let most = of_load / (1.0 + of_load);
        // Printed as a whole number, which has to be the larger one.
        if share >= most + 0.005 {
            let instead = match cell.starts {
                Starts::EveryFrame => format!("`starts = {STARTS_USUAL}` leaves"),
                Starts::Once | Starts::Several(_) => "fewer starts or a larger budget leave".to_owned(),
            };
            writeln!(
                text,
                "Starting          roughly {:.0} % of the time of cell {}, more than {:.0} %: {instead} more to the load",
                100.0 * share,
                cell.id,
                100.0 * most
            )?;
        }
    }
    Ok(())
}

/// The expected share of a cell's time for restarting its servers; 0 if they start once, or Tithe does not start them.
pub fn starting_share(plan: &Plan, catalogue: &Catalogue, cell: &Cell) -> f64 {
    let experiment = &plan.experiment;
    let database = catalogue.database(&experiment.database).filter(|_| starts_are_ours(experiment, cell));
    let arms = experiment.arms.len() as f64;
    let (epochs, starts) = (f64::from(cell.epochs), f64::from(cell.starts_per_epoch()));
    let starting_s = database.map_or(0.0, |database| {
        let warm_up_s = cell.after_start.guess_s(arms);
        let start_s = arms * database.entry.start_s + warm_up_s;
        match cell.starts {
            // The process of an embedded database starts at once.
            Starts::EveryFrame if database.entry.embedded => 0.0,
            Starts::EveryFrame => start_s * f64::from(cell.frames_max),
            _ if cell.epochs > 1 => epochs * (epoch_s(experiment, database) + warm_up_s + start_s * (starts - 1.0)),
            _ if starts > 1.0 => start_s * starts,
            _ => 0.0,
        }
    });
    starting_s / (starting_s + measured_s(plan, cell))
}

/// Which observers check which arms' servers on other machines.
fn write_observers(text: &mut String, arms: &[Arm]) -> std::fmt::Result {
    let names: BTreeSet<&str> = arms.iter().filter_map(|arm| Some(arm.observer.as_ref()?.name.as_str())).collect();
    for name in names {
        let seen = arms.iter().filter(|arm| arm.observer.as_ref().is_some_and(|observed| observed.name == name));
        let seen: Vec<&str> = seen.map(|arm| arm.name.as_str()).collect();
        writeln!(text, "Observer          {name}, on the machine of {}", seen.join(", "))?;
    }
    Ok(())
}

/// The provider's switch: how, how often, and how long it may take.
fn write_switch(text: &mut String, switch: &ProviderSwitch, cells: &[Cell], primary: &str) -> std::fmt::Result {
    let pairs = cells.iter().map(Cell::pairs).sum();
    let switches: u32 = cells.iter().map(sides::switches).sum();
    let side = quantity::precise_duration(switch.side_s);
    let timeout = quantity::precise_duration(switch.timeout_s);
    writeln!(text, "\nA cell ends with its last pair of sides, for {primary}; a pair is one value of the interval.")?;
    writeln!(text, "Sides             {} of {side} each, the order of each pair drawn", sides::pairs_in_words(pairs))?;
    writeln!(text, "Switches          {switches} by the provider, two more if the server is found on")?;
    writeln!(text, "    a command may take {timeout}, and then the server as long until it is ready")?;
    writeln!(text, "    on:    {}", switch.on.join(" "))?;
    writeln!(text, "    off:   {}", switch.off.join(" "))?;
    writeln!(text, "    ready: {}", switch.question())
}

fn measured_s(plan: &Plan, cell: &Cell) -> f64 {
    cell.frame_ns(plan.experiment.arms.len()) as f64 / 1e9 * f64::from(cell.frames_max)
}

/// The load of the profiled frames of all cells.
fn profile_s(plan: &Plan) -> f64 {
    let arms = plan.experiment.arms.len();
    let frames_s = |cell: &Cell| f64::from(2 * PROFILED_PAIRS) * cell.frame_ns(arms) as f64 / 1e9;
    if plan.experiment.measure.profile { plan.cells.iter().map(frames_s).sum() } else { 0.0 }
}

/// How long the servers of a cell are watched while they are idle: only servers with processes of their own are.
fn idle_s(plan: &Plan, catalogue: &Catalogue, cell: &Cell) -> f64 {
    let entry = catalogue.entry(&plan.experiment.database);
    let has_processes = entry.is_some_and(|entry| !entry.embedded && !entry.simulated);
    if has_processes { idling::idle_s(plan, cell) } else { 0.0 }
}

/// A rough guess of a cell's time besides its measured load and its profile.
fn around_s(plan: &Plan, catalogue: &Catalogue, cell: &Cell) -> f64 {
    let arms = plan.experiment.arms.len() as f64;
    let restart_s = if cell.program && cell.starts == Starts::EveryFrame { RESTART_S } else { 0.0 };
    let frame = arms * (cell.warmup_ns as f64 / 1e9 + f64::from(cell.clients) * CONNECT_S + restart_s);
    let after_start = cell.after_start.guess_s(arms);
    let epoch_s = catalogue.database(&plan.experiment.database).map_or(0.0, |it| epoch_s(&plan.experiment, it));
    let start_s = catalogue.entry(&plan.experiment.database).map_or(0.0, |entry| arms * entry.start_s) + after_start;
    let embedded = catalogue.entry(&plan.experiment.database).is_some_and(|entry| entry.embedded);
    let starts = match cell.starts {
        Starts::EveryFrame if !embedded && !cell.program => cell.frames_max.saturating_sub(cell.epochs),
        _ => cell.epochs * (cell.starts_per_epoch() - 1),
    };
    // Each pair of sides is checked and warmed up again; the provider's own time is unknown.
    let sides_s = f64::from(cell.pairs()) * (after_start + 2.0 * EVIDENCE_S);
    // Frames that bind nothing come after those of the measured load.
    let free_s = f64::from(cell.free_frames) * (frame + cell.frame_ns(plan.experiment.arms.len()) as f64 / 1e9);
    (epoch_s + after_start) * f64::from(cell.epochs)
        + start_s * f64::from(starts)
        + frame * f64::from(cell.frames_max)
        + sides_s
        + free_s
        + idle_s(plan, catalogue, cell)
}

/// A rough guess of the disk space of all arms of the largest cell together, with the copies of loaded data that are
/// kept for each.
pub fn disk_bytes(plan: &Plan, catalogue: &Catalogue) -> f64 {
    let experiment = &plan.experiment;
    let record = experiment.workloads.iter().filter_map(|workload| shape(workload, catalogue));
    let record_bytes = record.map(|shape| shape.record_bytes).max().unwrap_or(0);
    let of_one = experiment.data_bytes(record_bytes) as f64 * DISK_FACTOR;
    // Another program's data are loaded again each time.
    let own = plan.cells.iter().any(|cell| !cell.program);
    let copies = own && catalogue.database(&experiment.database).is_some_and(|database| database.copies_data);
    let kept = if copies { experiment.arms.iter().filter(|arm| arm.url.is_none()).count() } else { 0 };
    of_one * (experiment.arms.len() + kept) as f64
}

/// Rows with their columns aligned, two spaces apart.
fn write_table(text: &mut String, rows: Vec<Vec<String>>) -> std::fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|field| field.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let fields: Vec<String> = row.iter().zip(&widths).map(|(field, width)| format!("{field:<width$}")).collect();
        writeln!(text, "  {}", fields.join("  ").trim_end())?;
    }
    Ok(())
}

/// A natural-log ratio in percent.
fn percent(ratio: f64) -> f64 {
    ratio.exp_m1() * 100.0
}

/// A guess rounded to its meaningful digits.
fn rough_s(seconds: f64) -> f64 {
    let step = if seconds < 60.0 {
        10.0
    } else if seconds < 600.0 {
        60.0
    } else {
        300.0
    };
    (seconds / step).ceil() * step
}
