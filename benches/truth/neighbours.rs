//! The cost of a protection on a quiet machine and under background load: whether the cost of an operation changes, and
//! by how much.

use serde_json::Value;

use crate::{
    Arguments,
    analysis::{Ends, amount, find, interval, interval_of, level, load, percent_or_dash, wait_share},
    beside::Beside,
    experiment::{settings, ycsb},
    run::Run,
};

/// The background loads, one after the other.
const SETTINGS: [Beside; 5] = [Beside::Hogs(0), Beside::Hogs(2), Beside::Hogs(4), Beside::Hogs(8), Beside::Walkers(2)];

/// Each product with the measured protection.
const PROTECTIONS: [(&str, &str); 2] =
    [("sqlite", "{ use = \"page-encryption\", cipher = \"aegis\" }"), ("postgres", "{ use = \"tls\" }")];

/// What to measure.
pub struct Options {
    seconds: u32,
    clients: usize,
    workload: String,
    product: String,
}

impl Options {
    /// From the command line.
    pub fn read(arguments: &Arguments<'_>) -> Result<Self, String> {
        Ok(Self {
            seconds: arguments.number(0, "seconds", 60)?,
            clients: arguments.number(1, "clients", tithe_machine::watch::process::processors().len())?,
            workload: arguments.word(2).unwrap_or("c").to_owned(),
            product: arguments.word(3).unwrap_or("sqlite").to_owned(),
        })
    }

    fn experiment(&self) -> Result<String, String> {
        let Self { seconds, clients, workload, product } = self;
        let (_, protection) = PROTECTIONS.iter().find(|(name, _)| name == product).ok_or_else(|| {
            format!("neighbours knows {}, and not {product}", PROTECTIONS.map(|it| it.0).join(" and "))
        })?;
        Ok(format!(
            "title = \"Beside others\"\ndatabase = \"{product}\"\n{}[data]\nrecords = 20_000\n[load]\nclients = {clients}\n\
             [measure]\nbudget = \"{seconds} s\"\nprecision = \"0.01%\"\n[[workload]]\n{}\n[[arm]]\nname = \"plain\"\n\
             [[arm]]\nname = \"protected\"\nprotections = [{protection}]\n",
            settings(product, workload),
            ycsb(workload)
        ))
    }
}

/// Measures and prints.
pub fn measure(asked: &Options) -> Result<(), String> {
    let experiment = asked.experiment()?;
    let Options { seconds, clients, workload, product } = asked;
    println!("{product}, workload {workload}, {clients} clients, {seconds} s beside each\n");
    println!(
        "| beside | plain: time, µs | plain: net, µs | plain: CPU, µs | time | net | CPU | net, µs | CPU, µs | load | waited |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for beside in SETTINGS {
        let report = Run::new("neighbours", &experiment).wait_beside(beside)?;
        println!("| {beside} | {} |", row(&report).join(" | "));
    }
    println!("\nThe protected arm's costs: in % by the interval of the ratio, in µs {IN_US}.");
    Ok(())
}

/// How the cost in µs is computed.
const IN_US: &str = "by the interval of the difference where the report has one, else (marked ≈) the ratio's ends times the plain level";

fn row(report: &Value) -> Vec<String> {
    let levels = ["latency_mean", "net_per_op", "cpu_per_op"].map(|name| amount(level(report, 0, 0, name)));
    let ratios = ["time", "net", "cpu"].map(|metric| percent_or_dash(interval(report, 0, 1, metric)));
    let differences =
        [("net", "net_per_op"), ("cpu", "cpu_per_op")].map(|(metric, level)| difference(report, metric, level));
    let cell = &report["cells"][0];
    let host = [format!("{:.1}", load(cell)), format!("{:.0} %", 100.0 * wait_share(cell))];
    levels.into_iter().chain(ratios).chain(differences).chain(host).collect()
}

/// The additional cost of an operation in µs: the report's own difference, or the ratio applied to the plain level; a
/// dash without an interval.
fn difference(report: &Value, metric: &str, level_name: &str) -> String {
    let own = find(report, 0, 1, metric).map(|estimate| &estimate["difference"]);
    match own
        .and_then(interval_of)
        .map(|ends| ("", ends))
        .or_else(|| Some(("≈ ", of_ratio(report, metric, level_name)?)))
    {
        Some((mark, (low, high))) => format!("{mark}[{low:+.2}, {high:+.2}]"),
        None => "—".to_owned(),
    }
}

/// The plain level times the ends of the ratio less one.
fn of_ratio(report: &Value, metric: &str, level_name: &str) -> Option<Ends> {
    let (low, high) = interval(report, 0, 1, metric)?;
    let plain_us = level(report, 0, 0, level_name)?["value"].as_f64()?;
    Some((plain_us * low.exp_m1(), plain_us * high.exp_m1()))
}
