//! The command line of Tithe: the only crate that prints.
//!
//! Results go to standard output, everything else to standard error. What a status means is in [`exit`].

mod commands;
mod complain;
mod exit;
mod interrupt;
mod prepare;
mod progress;
mod records;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Measures what each protection of a database costs, and proves that the protection was on.
#[derive(Parser)]
#[command(name = "tithe", version, about, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure an experiment and report the costs with their proof
    Run(RunArgs),
    /// Show what an experiment would do: cells, arms, time, disk, and what each arm changes
    Plan(ExperimentArgs),
    /// Start every arm once and look at its evidence, timing nothing
    Verify(ExperimentArgs),
    /// Measure the baseline against its own second instance: what can be told apart here and now
    Calibrate(CalibrateArgs),
    /// Report on a run folder
    Report(ReportArgs),
    /// List databases, protections and workloads
    Ls,
    /// Show what this machine offers: servers, processor, clock, pressure, disk
    Doctor(MachineArgs),
}

/// Which experiment.
#[derive(Args)]
pub struct ExperimentArgs {
    /// Experiment file; without one the built-in experiment: SQLite with and without page encryption
    file: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Folder for run folders and, where reachable for the servers' account, their data
    #[arg(long, value_name = "DIR", default_value = "tithe-runs")]
    runs: PathBuf,
}

/// Where things are on this machine.
#[derive(Args)]
pub struct MachineArgs {
    /// Folder of PostgreSQL's programs, looked at before all others
    #[arg(long, value_name = "DIR")]
    pg_bin: Vec<PathBuf>,
}

/// How to run.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Continue this run folder after its last complete frame instead of starting a new one
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    resume: Option<PathBuf>,
    /// Add a second instance of the baseline; if it differs from the first, no cost is believed
    #[arg(long)]
    guard_arm: bool,
    /// Measure until every arm's answer is certain, however wide its interval
    #[arg(long)]
    until_decided: bool,
    /// How the arms share the machine; `sequential` is for comparison only
    #[arg(long, value_name = "DESIGN", value_parser = ["interleaved", "duet", "slices", "sequential"])]
    design: Option<String>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// How to calibrate.
#[derive(Args)]
pub struct CalibrateArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Seconds of measured load for each cell
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(15..=3600))]
    seconds: u32,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// How to report.
#[derive(Args)]
pub struct ReportArgs {
    /// The run folder
    run: PathBuf,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "short", "markdown", "json", "csv"])]
    format: String,
}

fn main() {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Plan(arguments) => commands::plan::plan(&arguments),
        Command::Verify(arguments) => commands::verify::verify(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::calibrate(&arguments),
        Command::Report(arguments) => commands::report::report(&arguments),
        Command::Ls => commands::ls::ls(),
        Command::Doctor(arguments) => commands::doctor::doctor(&arguments),
    };
    let status = outcome.unwrap_or_else(|stop| {
        anstream::eprint!("{}", stop.message);
        stop.status
    });
    std::process::exit(status);
}
