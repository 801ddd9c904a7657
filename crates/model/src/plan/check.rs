//! Checks whether a plan from a file makes sense: another build may have written it, or someone may have edited it. All
//! later code relies on that, as for a parsed experiment.

use std::collections::BTreeSet;

use super::{Cell, Plan, Starts, WarmUp};
use crate::{
    catalogue::{Catalogue, OfferedDatabase, OptionEntry, OptionKind},
    experiment::{Arrivals, Limits, Memory, OptionValue, Protection, RATES_PER_S},
};

/// Longest accepted slot, settling time or warm-up, ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Most accepted blocks of a frame.
const BLOCKS_MAX: u32 = 1_000_000;

/// Longest accepted side and wait for a switch, s: a day.
const SWITCH_MAX_S: f64 = 86_400.0;

/// Most accepted clients of a cell.
const CLIENTS_MAX: u32 = 1_000_000;

impl Plan {
    /// Inconsistencies within the plan, each with its place: indexes out of range, and impossible amounts. Empty for
    /// every plan that [`plan`](super::plan) made.
    pub fn flaws(&self) -> Vec<String> {
        let experiment = &self.experiment;
        let mut flaws = Problems::default();
        flaws.unless(experiment.arms.len() >= 2, "experiment.arms: there are fewer than two");
        let plain = experiment.arms.first().is_none_or(|arm| arm.protections.is_empty());
        flaws.unless(plain, "experiment.arms[0]: the first arm is the baseline and has no protections");
        flaws.unless(!experiment.workloads.is_empty(), "experiment.workloads: there is none");
        flaws.unless(!self.cells.is_empty(), "cells: there is none");
        for (number, resources) in experiment.resources.iter().enumerate() {
            let possible = possible(resources.limits);
            flaws.unless(possible, format!("experiment.resources[{number}].limits: nothing runs within them"));
        }
        if let Some(switch) = experiment.switch() {
            let named = !switch.on.is_empty() && !switch.off.is_empty() && !switch.question().is_empty();
            flaws.unless(named, "experiment.arms: a `switch` without `on`, `off` or `ready`");
            let lengths = [switch.side_s, switch.timeout_s].iter().all(|length| (0.0..=SWITCH_MAX_S).contains(length));
            flaws.unless(lengths, "experiment.arms: a `switch` with a longer time than allowed");
        }
        let known = self.start_spread.iter().chain(self.one_server_spread.iter().flatten());
        let known = known.map(|known| (known.spread, known.degrees));
        let mut known = known.chain(self.cost_spread.iter().map(|known| (known.share, known.degrees)));
        let sound =
            |(spread, degrees): (f64, f64)| (0.0..f64::INFINITY).contains(&spread) && (spread == 0.0 || degrees >= 1.0);
        flaws.unless(
            known.all(sound),
            "start_spread, one_server_spread, cost_spread: a spread is 0 or more, with 1 degree of freedom or \
             more",
        );
        let measure = &experiment.measure;
        let asked = [measure.warmup_s, measure.idle_s].map(Option::unwrap_or_default);
        let sizes = [measure.precision, measure.margin, measure.budget_s].into_iter().chain(asked);
        flaws.unless({ sizes }.all(|size| size >= 0.0), "experiment.measure: a size is below 0");
        let mut names = BTreeSet::new();
        for (number, cell) in self.cells.iter().enumerate() {
            let mut said = |holds: bool, what: &str| flaws.unless(holds, format!("cells[{number}].{what}"));
            said(names.insert(&cell.id), "id: another cell has it");
            said(cell.workload < experiment.workloads.len(), "workload: there is no such workload");
            said(cell.resources < experiment.resources.len(), "resources: there are no such resources");
            let switched = experiment.switch().is_some() && experiment.arms.len() == 2 && cell.pairs() > 0;
            said(switched || !cell.design.is_switched(), "design: there is nothing to switch");
            cell.amounts(&mut said);
        }
        flaws.0
    }

    /// Fits the plan to this build: missing options of protections get their defaults. Returns the options that were
    /// filled in, each with its place.
    ///
    /// # Errors
    /// Everything that this build cannot carry out, each with its place: entries missing from the catalogue, and
    /// missing options without a default.
    pub fn fit(&mut self, catalogue: &Catalogue) -> Result<Vec<String>, Vec<String>> {
        let mut flaws = Problems(self.flaws());
        let mut filled = Vec::new();
        match catalogue.database(&self.experiment.database) {
            None => {
                flaws.0.push(format!("experiment.database: this build has no database {:?}", self.experiment.database))
            }
            Some(database) => {
                let experiment = &self.experiment;
                let listen = experiment.load.listen;
                let unfit = listen.and_then(|address| database.refuses_address(address, &experiment.arms));
                flaws.0.extend(unfit.map(|why| format!("experiment.load.listen: it {why}")));
                for (arm, described) in self.experiment.arms.iter_mut().enumerate() {
                    for (number, chosen) in described.protections.iter_mut().enumerate() {
                        let place = format!("experiment.arms[{arm}].protections[{number}]");
                        fit_protection(chosen, database, &place, &mut filled, &mut flaws);
                    }
                }
                let experiment = &self.experiment;
                let of_resources = experiment.resources.iter().enumerate().map(|(number, resources)| {
                    (format!("experiment.resources[{number}].settings"), &resources.settings)
                });
                let of_all = [("experiment.settings".to_owned(), &experiment.settings)].into_iter().chain(of_resources);
                for (place, settings) in of_all {
                    for name in settings.keys() {
                        if let Some((problem, help)) = database.refuses_setting(name, &experiment.arms) {
                            flaws.0.push(format!("{place}.{name}: {problem} ({help})"));
                        }
                    }
                }
            }
        }
        for (number, workload) in self.experiment.workloads.iter().enumerate() {
            let place = format!("experiment.workloads[{number}]");
            match catalogue.workloads.iter().find(|kind| kind.id == workload.kind) {
                None => flaws.0.push(format!("{place}.kind: this build has no workload {:?}", workload.kind)),
                Some(kind) => flaws.0.extend(
                    (kind.check)(&workload.properties)
                        .into_iter()
                        .map(|(property, problem, help)| format!("{place}.properties.{property}: {problem} ({help})")),
                ),
            }
        }
        if flaws.0.is_empty() { Ok(filled) } else { Err(flaws.0) }
    }
}

impl Cell {
    fn amounts(&self, said: &mut impl FnMut(bool, &str)) {
        said((1..=CLIENTS_MAX).contains(&self.clients), "clients: no such number of clients can be busy");
        said((1..=LONGEST_NS).contains(&self.slot_ns), "slot_ns: no slot is that long");
        said(self.settling_ns < self.slot_ns, "settling_ns: it is not part of the slot");
        said(self.warmup_ns <= LONGEST_NS, "warmup_ns: no warm-up is that long");
        said((1..=BLOCKS_MAX).contains(&self.blocks), "blocks: no frame has so many");
        said(self.epochs >= 1, "epochs: there is none");
        said(self.starts != Starts::Several(0), "starts: there is none");
        let warm_up_ends = match self.after_start {
            WarmUp::None => true,
            WarmUp::Fixed { ns } => ns <= LONGEST_NS,
            WarmUp::UntilSteady { window_ns, at_most_ns } => {
                (1..=LONGEST_NS).contains(&window_ns) && at_most_ns <= 24 * LONGEST_NS
            }
        };
        said(warm_up_ends, "after_start: no warm-up is that long");
        said(self.reconnect_every != Some(0), "reconnect_every: a connection lasts for one operation at least");
        let arrivals_keep_up = match self.arrivals {
            Arrivals::Closed => true,
            Arrivals::Even(rate) | Arrivals::Poisson(rate) => RATES_PER_S.contains(&rate),
            Arrivals::OfSaturation(share) => share > 0.0 && share <= 1.0,
        };
        said(arrivals_keep_up, "arrivals: no operations can start at that rate");
    }
}

fn possible(limits: Limits) -> bool {
    let memory = limits.memory.is_none_or(|memory| match memory {
        Memory::Bytes(bytes) => bytes > 0,
        Memory::DataPer(ratio) => ratio > 0.0,
    });
    memory && limits.cpus.is_none_or(|cpus| cpus > 0.0)
}

fn fit_protection(
    chosen: &mut Protection,
    database: &OfferedDatabase,
    place: &str,
    filled: &mut Vec<String>,
    flaws: &mut Problems,
) {
    if chosen.custom.is_some() {
        return flaws.unless(
            database.entry.custom.is_some(),
            format!("{place}: arms of {} have none of their own", database.entry.id),
        );
    }
    let Some(entry) = database.protection(&chosen.id) else {
        return flaws
            .0
            .push(format!("{place}.id: this build has no protection {:?} of {}", chosen.id, database.entry.id));
    };
    for name in chosen.options.keys().filter(|name| entry.option(name).is_none()) {
        flaws.0.push(format!("{place}.options.{name}: `{}` has no such option in this build", entry.id));
    }
    for option in entry.options {
        let at = format!("{place}.options.{}", option.name);
        match (chosen.options.get(option.name), option.default) {
            (Some(value), _) => flaws.unless(takes(option, value), format!("{at}: `{value}` is not what it takes")),
            (None, Some(default)) => {
                filled.push(format!("{at}: taken as its default, `{}`", default.value()));
                chosen.options.insert(option.name.to_owned(), default.value());
            }
            (None, None) => flaws.0.push(format!("{at}: it is missing, and has no default")),
        }
    }
}

fn takes(option: &OptionEntry, value: &OptionValue) -> bool {
    match (option.kind, value) {
        (OptionKind::Number { low, high }, OptionValue::Number(number)) => (low..=high).contains(number),
        (OptionKind::Choice(words), OptionValue::Text(text)) => words.contains(&text.as_str()),
        (OptionKind::Text, OptionValue::Text(_)) | (OptionKind::Flag, OptionValue::Flag(_)) => true,
        _ => false,
    }
}

/// The problems, in the order they were found.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn unless(&mut self, holds: bool, flaw: impl Into<String>) {
        if !holds {
            self.0.push(flaw.into());
        }
    }
}
