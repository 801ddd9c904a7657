//! Identical experiments, one after the other: how many pairs of them `compare` reports as different, and how much they
//! differ beyond their own intervals. `crates/model/data/run-spread.csv` holds that figure.

use std::{collections::BTreeMap, path::Path};

use tithe_analysis::{Analysis, CONFIDENCE, Estimate, assess::assess, compare};
use tithe_statistics::{
    distribution::t_upper,
    random_effects::{Errors, Pooled, Unit, pooled},
};

use crate::{
    Arguments,
    analysis::read,
    beside::Beside,
    experiment::{settings, ycsb},
    run::Run,
    share::share,
};

/// What to measure.
pub struct Options {
    product: String,
    runs: u32,
    seconds: u32,
    hogs: usize,
    workload: String,
}

impl Options {
    /// From the command line.
    pub fn read(arguments: &Arguments<'_>) -> Result<Self, String> {
        Ok(Self {
            product: arguments.word(0).ok_or("pairs needs a product: sqlite, postgres, redis")?.to_owned(),
            runs: arguments.number(1, "runs", 12)?,
            seconds: arguments.number(2, "seconds", 30)?,
            hogs: arguments.number(3, "hogs", 0)?,
            workload: arguments.word(4).unwrap_or("c").to_owned(),
        })
    }

    /// The same except for its seed: plain, and one protection that every machine has.
    fn experiment(&self, seed: u32) -> String {
        let Self { product, seconds, workload, .. } = self;
        let protection = match product.as_str() {
            "sqlite" => "page-encryption\", cipher = \"aegis",
            _ => "tls",
        };
        format!(
            "title = \"The same again\"\ndatabase = \"{product}\"\n{}[data]\nrecords = 20_000\n[measure]\n\
             budget = \"{seconds} s\"\nprecision = \"0.01%\"\nseed = {seed}\n[[workload]]\n{}\n[[arm]]\nname = \"plain\"\n\
             [[arm]]\nname = \"protected\"\nprotections = [{{ use = \"{protection}\" }}]\n",
            settings(product, workload),
            ycsb(workload)
        )
    }
}

/// Measures and prints.
pub fn measure(asked: &Options) -> Result<(), String> {
    let mut analyses: Vec<Analysis> = Vec::new();
    for seed in 1..=asked.runs {
        let run = Run::new(&format!("pairs-{}-{}-{seed}", asked.product, asked.hogs), &asked.experiment(seed));
        let neighbours = Beside::Hogs(asked.hogs).start();
        let folder = run.finish()?;
        drop(neighbours);
        println!("{}", folder.display());
        analyses.push(assess(&read(&folder)));
    }
    let Options { product, runs, seconds, workload, hogs, .. } = asked;
    println!("\n{product}, workload {workload}, {runs} runs of {seconds} s, beside {}\n", Beside::Hogs(*hogs));
    tell(&analyses);
    Ok(())
}

/// Prints the results of existing runs, from their folders.
pub fn again(folders: &[String]) {
    tell(&folders.iter().map(|folder| assess(&read(Path::new(folder)))).collect::<Vec<_>>());
}

fn tell(analyses: &[Analysis]) {
    tell_costs(analyses);
    tell_pairs(analyses);
    tell_spread(analyses);
}

/// The deciding cost of each run.
fn tell_costs(analyses: &[Analysis]) {
    println!("| run | figure | cost | starts | load |\n|---|---|---|---|---|");
    for (run, analysis) in (1..).zip(analyses) {
        let Some(cell) = analysis.cells.first() else { continue };
        for estimate in deciding(analysis) {
            println!(
                "| {run} | {} | {} | {} | {:.1} |",
                estimate.title, estimate.text, estimate.starts, cell.host.load
            );
        }
    }
}

/// How many pairs are reported as different, by figure.
fn tell_pairs(analyses: &[Analysis]) {
    let mut by_figure: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (number, first) in analyses.iter().enumerate() {
        for second in &analyses[number + 1..] {
            let Ok(comparison) = compare::compare(&[first.clone(), second.clone()], &[None, None]) else { continue };
            for found in comparison.matches.iter().filter(|found| !found.differences().is_empty()) {
                let (different, all) = by_figure.entry(found.title.clone()).or_default();
                *all += 1;
                *different += u64::from(found.least().is_some());
            }
        }
    }
    let allowed = 100.0 * (1.0 - CONFIDENCE);
    println!("\n| figure | pairs called different ({allowed:.0} % allowed) |\n|---|---|");
    for (figure, (different, all)) in by_figure {
        println!("| {figure} | {} |", share(different, all));
    }
}

/// The deciding figure of the protected arm.
fn deciding(analysis: &Analysis) -> impl Iterator<Item = &Estimate> {
    let arms = analysis.cells.first().into_iter().flat_map(|cell| &cell.arms).filter(|arm| !arm.aa);
    arms.flat_map(|arm| &arm.estimates).filter(|estimate| estimate.primary)
}

/// How much the runs differ beyond their own intervals.
fn tell_spread(analyses: &[Analysis]) {
    let units: Vec<Unit> = analyses.iter().flat_map(deciding).map(unit).collect();
    let Pooled { spread, .. } = pooled(&units, Errors::Own, 1.0 - CONFIDENCE);
    let [spread, low, high] = [spread.estimate, spread.low, spread.high].map(|it| format!("{:.2}", 100.0 * it));
    println!(
        "\nBetween runs, beyond what each says: {spread} % [{low}, {high}] (standard deviation), {} runs",
        units.len()
    );
}

/// A run as one value; its standard error comes from the half-width of its interval, which has Student's quantile.
fn unit(estimate: &Estimate) -> Unit {
    let quantile = t_upper((1.0 - CONFIDENCE) / 2.0, (estimate.starts.max(2) - 1) as f64);
    let error = estimate.effect.half_width() / quantile;
    Unit { effect: estimate.effect.estimate, variance: error * error }
}
