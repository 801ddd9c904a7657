//! `tithe plan`: what an experiment would do, and what each arm changes.

use tithe_analysis::{
    deciding::{self, EndsBy},
    report::number,
};
use tithe_harness::{
    arms::{self, Resolved},
    volumes::own_swap,
};
use tithe_machine::{
    launch::{Address, Place},
    watch::swap,
};
use tithe_model::{
    experiment::Url,
    plan::{Cell, STARTS_MIN},
    record::{Role, TOLD_BY_PROVIDER},
    start_spread,
};
use tithe_plugin::configuration::configuration;
use tithe_statistics::starts::KnownSpread;

use crate::{
    AskedArgs, asked,
    exit::{self, Stop},
    offer,
    pages::placeholders,
    prepare::{self, Planned, Prepared},
};

/// Runs the command; returns the exit status.
pub fn plan(arguments: &AskedArgs) -> Result<i32, Stop> {
    let source = asked::source(arguments, "plan")?;
    let composed = source.composed().map(str::to_owned);
    let listing = prepare::listed(&source, arguments)?;
    listing.iter().for_each(|listing| crate::shown::showln!("{}", listing.words()));
    let Planned { prepared, lacks } = prepare::prepare_planned(source, arguments)?;
    composed.iter().for_each(|text| crate::shown::showln!("{text}"));
    crate::shown::show!("{}", tithe_model::plan::outline(&prepared.plan, &offer::catalogue()));
    crate::shown::show!("{}", left_aside(&prepared));
    crate::shown::show!("{}", replayed(&prepared));
    crate::shown::show!("{}", few_starts(&prepared));
    crate::shown::show!("{}", swap(&prepared));
    if let Some(words) = arms::ways_warning(prepared.database, &prepared.plan.experiment) {
        crate::shown::showln!("warning: {words}");
    }
    if lacks.is_empty() {
        crate::shown::show!("{}", differences(&prepared)?);
    }
    crate::shown::show!("{}", proofs(&prepared)?);
    for missing in &lacks {
        crate::shown::telln!(
            "tithe: this machine lacks {}, so `tithe run` cannot run this experiment here, and the plan does not \
             show what each arm changes",
            missing.what
        );
    }
    Ok(exit::OK)
}

/// The properties of each workload that Tithe does not use, with the reason.
fn left_aside(Prepared { plan, workloads, .. }: &Prepared) -> String {
    let mut text = String::new();
    for (described, workload) in plan.experiment.workloads.iter().zip(workloads) {
        for (name, reason) in workload.ignored() {
            text += &format!("Not used          {name} of {}: {reason}\n", described.name);
        }
    }
    text
}

/// Which part of each log is replayed, or drawn from a server's counts, and why the rest is not.
fn replayed(Prepared { plan, workloads, .. }: &Prepared) -> String {
    let catalogue = offer::catalogue();
    let logs = || catalogue.workloads.iter().filter(|kind| !kind.by_path.is_empty());
    let mut text = String::new();
    for (described, workload) in plan.experiment.workloads.iter().zip(workloads) {
        let lead = match workload.learns() {
            Some(_) => "Load",
            None if logs().any(|kind| kind.id == described.kind) => "Replay",
            None => continue,
        };
        let mut lead = format!("{lead:18}{}: ", described.name);
        for (name, value) in workload.describe() {
            text += &format!("{lead}{name}: {value}\n");
            lead = " ".repeat(18);
        }
    }
    text
}

/// The known start-to-start variation for cells with too few starts of their own, and by how much it widens their
/// intervals.
fn few_starts(Prepared { plan, workloads, .. }: &Prepared) -> String {
    let arms = &plan.experiment.arms;
    // Two spellings of one server are only found by asking the server for its identity.
    let mut places = arms.iter().map(|arm| arm.url.as_ref().map(Url::place));
    let first = places.next().flatten();
    let one_server = first.is_some() && arms.len() > 1 && places.all(|place| place == first);
    let known = plan.spread_between_starts(one_server && workloads.iter().all(|workload| !workload.writes()));
    let Some(known) = start_spread::of_metric(known, plan.experiment.measure.primary) else {
        return String::new();
    };
    let spread = KnownSpread { spread: known.spread, degrees: known.degrees, of_cost: None };
    let alpha = deciding::alpha(plan.experiment.arms.len().saturating_sub(1), EndsBy::Budget);
    let widened = |cell: &Cell| {
        let starts = starts(cell).filter(|_| !cell.design.has_one_arm_a_frame())?;
        let times = if starts == 1 { "one start".to_owned() } else { format!("{starts} starts") };
        let least = number::digits(number::percent(spread.widening(starts as usize, alpha)));
        Some(format!("Few starts        cell {}: {times}, so its intervals reach ±{least} % at least\n", cell.id))
    };
    let cells: String = plan.cells.iter().filter_map(widened).collect();
    if cells.is_empty() {
        return cells;
    }
    // If a key rotation lasts over many frames, no server is restarted between two frames.
    let catalogue = offer::catalogue();
    let rotates = catalogue.database(&plan.experiment.database).is_some_and(|it| it.rotates_in(&plan.experiment));
    let in_epochs = rotates || plan.cells.iter().any(|cell| cell.program);
    let advice = match (plan.experiment.is_attached(), in_epochs) {
        (true, _) => "",
        (false, true) => "; with four `epochs` or more their own spread is used",
        (false, false) => "; with four `starts` or more their own spread is used",
    };
    format!(
        "{cells}                  because starts differ by {} ({}){advice}\n",
        number::share(known.spread),
        known.source
    )
}

/// Starts of a cell whose intervals cannot use the spread of its own starts: fewer than four, each with several frames.
fn starts(cell: &Cell) -> Option<u32> {
    cell.planned_starts().filter(|starts| *starts < STARTS_MIN)
}

/// The swap of this machine, the swap that is set up for the run, and warnings about it. Empty for a simulated
/// database, which runs nothing, and for attached servers, which do not run here.
fn swap(prepared: &Prepared) -> String {
    let experiment = &prepared.plan.experiment;
    if prepared.database.simulated() || experiment.arms.iter().all(|arm| arm.url.is_some()) {
        return String::new();
    }
    let swaps = swap::swaps();
    let mut text = format!("Swap              {}\n", swap::in_words(&swaps));
    if let Some(bytes) = experiment.encrypted_swap_bytes {
        text.push_str(&format!("Encrypted swap    {}, for the run\n", own_swap::layers(bytes)));
    }
    let warning = arms::swap_warning(prepared.database, experiment, &swaps);
    text.extend(warning.map(|words| format!("warning: {words}\n")));
    text
}

/// What each protected arm changes in the configuration of the plain one, in the first cell.
fn differences(prepared: &Prepared) -> Result<String, Stop> {
    let mut text = String::from("\nWhat each arm changes\n");
    let arms = &prepared.plan.experiment.arms;
    let plain = lines(prepared, 0)?;
    for (number, arm) in arms.iter().enumerate().skip(1) {
        let protected = lines(prepared, number)?;
        text.push_str(&format!("  {}\n", arm.name));
        let mut told = false;
        let mut tell = |sign: char, line: &str| {
            told = true;
            text.push_str(&format!("    {sign} {line}\n"));
        };
        protected.iter().filter(|line| !plain.contains(line)).for_each(|line| tell('+', line));
        plain.iter().filter(|line| !protected.contains(line)).for_each(|line| tell('-', line));
        if !told {
            text.push_str("    nothing that shows in the configuration\n");
        }
    }
    Ok(text)
}

/// The requirements for proving each arm on a server that Tithe does not start, and what only strengthens the proof.
fn proofs(prepared: &Prepared) -> Result<String, Stop> {
    let mut text = String::new();
    for arm in prepared.plan.experiment.arms.iter().filter(|arm| !arm.protections.is_empty()) {
        let Some(url) = &arm.url else { continue };
        let address = Address::Attached(url.clone());
        text.push_str(&format!("  {}\n", arm.name));
        for (protection, chosen) in Resolved::of(prepared.database, arm)?.protections {
            let checks = protection.evidence(chosen);
            for (role, word) in
                [(Role::Claim, "needed"), (Role::Strengthens, "strengthens"), (Role::Disclosure, "reported")]
            {
                let such = checks.iter().filter(|check| check.entry().role == role && check.concerns(&address));
                let ids: Vec<&str> = such.map(|check| check.id()).collect();
                if !ids.is_empty() {
                    text.push_str(&format!("    {}: {word}: {}\n", chosen.id, ids.join(", ")));
                }
            }
        }
    }
    if let Some(arm) = prepared.plan.experiment.arms.iter().find(|arm| arm.switch.is_some()) {
        if arm.protections.is_empty() {
            text.push_str(&format!("  {}\n", arm.name));
        }
        let words =
            if arm.protections.is_empty() { "reported by the provider, which is no proof" } else { "strengthens" };
        text.push_str(&format!("    switch: {words}: {TOLD_BY_PROVIDER}\n"));
    }
    Ok(if text.is_empty() { text } else { format!("\nWhat proves each arm\n{text}") })
}

fn lines(prepared: &Prepared, arm: usize) -> Result<Vec<String>, Stop> {
    let arm = &prepared.plan.experiment.arms[arm];
    if let Some(url) = &arm.url {
        let on = arm.on.iter().map(|statement| format!("on: {statement}"));
        let switch = arm.switch.iter().map(|switch| format!("switched by its provider: {}", switch.on.join(" ")));
        let remarks = prepared.database.remarks(url, &Resolved::of(prepared.database, arm)?.bare_setup());
        let attached = std::iter::once(format!("attached to {}", url.redacted()));
        return Ok(attached.chain(remarks).chain(on).chain(switch).collect());
    }
    let resolved = Resolved::of(prepared.database, arm)?;
    let setup = resolved.setup(&prepared.plan, &prepared.plan.cells[0], &placeholders())?;
    // A port that is in no configuration by chance: it is replaced by its name.
    let listen = prepared.plan.experiment.load.address();
    let place = Place { listen, ..Place::on_loopback("/{sandbox}", 65_535) };
    Ok(configuration(&prepared.database.launch(&prepared.installs[0], &setup, &place), &setup, &place))
}
