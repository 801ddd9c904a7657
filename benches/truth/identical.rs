//! Four identical arms of one product: how often an interval excludes zero, and whether an arm's position in the file
//! matters.

use std::{path::PathBuf, time::Instant};

use serde_json::Value;
use tithe_analysis::CONFIDENCE;
use tithe_statistics::{mean, variance};

use crate::{
    Arguments,
    analysis::{METRICS, find, holds, interval, load, percent_or_dash, read, wait_share},
    beside::Beside,
    experiment::{settings, ycsb},
    persistence,
    run::{Run, report},
    share::share,
};

/// Number of arms in addition to the plain one.
const AGAIN: usize = 3;

/// What to measure.
pub struct Options {
    product: String,
    cells: u32,
    seconds: u32,
    hogs: usize,
    workload: String,
    /// File to which the rows of all starts are appended.
    rows: Option<PathBuf>,
    /// Starts of a cell; 0 for those that the plan chooses.
    starts: u32,
}

impl Options {
    /// From the command line.
    pub fn read(arguments: &Arguments<'_>) -> Result<Self, String> {
        Ok(Self {
            product: arguments.word(0).ok_or("identical needs a product: sqlite, postgres, …")?.to_owned(),
            cells: arguments.number(1, "cells", 10)?,
            seconds: arguments.number(2, "seconds", 120)?,
            hogs: arguments.number(3, "hogs", 0)?,
            workload: arguments.word(4).unwrap_or("c").to_owned(),
            rows: arguments.word(5).map(PathBuf::from),
            starts: arguments.number(6, "starts", 0)?,
        })
    }

    /// One set of resources for each cell, all equal except for their names.
    fn experiment(&self) -> String {
        let Self { product, cells, seconds, workload, .. } = self;
        let resources: String = (1..=*cells).map(|cell| format!("[[resources]]\nname = \"{cell}\"\n")).collect();
        let again: String = (1..=AGAIN).map(|arm| format!("[[arm]]\nname = \"again {arm}\"\n")).collect();
        let starts = if self.starts > 0 { format!("starts = {}\n", self.starts) } else { String::new() };
        let clients = match product.as_str() {
            // Several clients of an embedded database would wait for each other's locks.
            "sqlite" | "wiredtiger" => 1,
            _ => tithe_machine::watch::process::processors().len(),
        };
        format!(
            "title = \"The same four times\"\ndatabase = \"{product}\"\n{}[data]\nrecords = 20_000\n[load]\nclients = {clients}\n\
             [measure]\nbudget = \"{} s\"\nprecision = \"0.01%\"\naa_arm = false\n{starts}[[workload]]\n{}\n{resources}[[arm]]\nname = \"plain\"\n{again}",
            settings(product, workload),
            seconds * cells,
            ycsb(workload)
        )
    }
}

/// Measures and prints.
pub fn measure(asked: &Options) -> Result<(), String> {
    let begin = Instant::now();
    let folder = Run::new("identical", &asked.experiment()).finish_beside(Beside::Hogs(asked.hogs))?;
    let wall_s = begin.elapsed().as_secs_f64();
    let report = report(&folder);
    let Options { product, cells, seconds, workload, .. } = asked;
    println!("{product}, workload {workload}, {cells} cells of {seconds} s, beside {}\n", Beside::Hogs(asked.hogs));
    println!("{wall_s:.0} s of wall time, {:.2} times the load\n", wall_s / f64::from(cells * seconds));
    let cells = report["cells"].as_array().map_or(0, Vec::len);
    tell_cells(&report, cells);
    tell_misses(&report, cells);
    tell_means(&report, cells);
    let rows = persistence::rows(&read(&folder), product, workload);
    persistence::print(&rows);
    asked.rows.as_ref().map_or(Ok(()), |path| persistence::keep(&rows, path))
}

/// Every comparison's intervals.
fn tell_cells(report: &Value, cells: usize) {
    println!(
        "| cell | arm | CPU | net | time | frames | starts | load | waited | ended by |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (cell, seen) in (0..cells).map(|cell| (cell, &report["cells"][cell])) {
        for arm in 1..=AGAIN {
            let told = METRICS.map(|(metric, ..)| percent_or_dash(interval(report, cell, arm, metric)));
            let (frames, ending) = (&seen["frames"], seen["ending"].as_str().unwrap_or_default());
            let starts = find(report, cell, arm, "cpu").map_or(&Value::Null, |estimate| &estimate["starts"]);
            println!(
                "| {} | {arm} | {} | {frames} | {starts} | {:.1} | {:.0} % | {ending} |",
                cell + 1,
                told.join(" | "),
                load(seen),
                100.0 * wait_share(seen)
            );
        }
    }
}

/// How many intervals exclude zero, by metric: single intervals, and cells in which any does.
fn tell_misses(report: &Value, cells: usize) {
    let alone = 100.0 * (1.0 - CONFIDENCE.powf(1.0 / AGAIN as f64));
    let together = 100.0 * (1.0 - CONFIDENCE);
    println!(
        "\n| metric | intervals that leave zero out ({alone:.1} % allowed) | cells with one that does ({together:.0} % allowed) |"
    );
    println!("|---|---|---|");
    for (metric, words, _) in METRICS {
        let by_cell: Vec<Vec<bool>> = (0..cells).map(|cell| misses(report, cell, metric)).collect();
        let by_cell: Vec<&Vec<bool>> = by_cell.iter().filter(|misses| !misses.is_empty()).collect();
        let all = by_cell.iter().map(|misses| misses.len() as u64).sum();
        let missed = by_cell.iter().flat_map(|misses| misses.iter()).filter(|missed| **missed).count() as u64;
        let any = by_cell.iter().filter(|misses| misses.contains(&true)).count() as u64;
        if all > 0 {
            println!("| {words} | {} | {} |", share(missed, all), share(any, by_cell.len() as u64));
        }
    }
}

/// For each arm of a cell with an interval of `metric`: does it exclude zero?
fn misses(report: &Value, cell: usize, metric: &str) -> Vec<bool> {
    let found = (1..=AGAIN).filter_map(|arm| interval(report, cell, arm, metric));
    found.map(|found| !holds(found, 0.0)).collect()
}

/// The mean effect of each arm over the cells, with its standard error: it would show an effect of the arm's position.
fn tell_means(report: &Value, cells: usize) {
    println!("\n| metric | mean effect of arm 1 | arm 2 | arm 3 |\n|---|---|---|---|");
    for (metric, words, _) in METRICS {
        let told: Vec<String> = (1..=AGAIN).map(|arm| mean_effect(report, cells, arm, metric)).collect();
        println!("| {words} | {} |", told.join(" | "));
    }
}

/// `+0.12 ± 0.10 %`: mean and standard error over the cells.
fn mean_effect(report: &Value, cells: usize, arm: usize, metric: &str) -> String {
    let effect = |cell| find(report, cell, arm, metric)?["effect"]["estimate"].as_f64();
    let effects: Vec<f64> = (0..cells).filter_map(effect).collect();
    match effects.len() {
        0 => "—".to_owned(),
        1 => format!("{:+.2} %, one cell", 100.0 * effects[0].exp_m1()),
        cells => {
            let error = (variance(&effects) / cells as f64).sqrt();
            format!("{:+.2} ± {:.2} %", 100.0 * mean(&effects).exp_m1(), 100.0 * error)
        }
    }
}
