//! The command line of Tithe: the only crate that prints.
//!
//! Results go to standard output, everything else to standard error. What a status means is in [`exit`].

#![forbid(unsafe_code)]

mod asked;
mod commands;
mod complain;
mod exit;
mod interrupt;
mod lacking;
mod offer;
mod pages;
mod prepare;
mod progress;
mod records;
mod refusals;
mod shown;
mod spread_file;
#[cfg(feature = "agents")]
mod team;
#[cfg(not(feature = "agents"))]
#[path = "no_team.rs"]
mod team;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
#[cfg(feature = "agents")]
use tithe_harness::agents::agent::AllowedTarget;

/// Measures what each protection of a database costs, and proves that the protection was on.
#[derive(Parser)]
#[command(name = "tithe", version, about, after_help = exit::HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure an experiment and report the costs with their proof
    ///
    /// In place of an experiment file the name of a database may stand, which is started, or the URL of a running
    /// server: `tithe run postgres --protect tls`. The experiment that this stands for is printed and kept.
    Run(RunArgs),
    /// Show what an experiment would do: cells, arms, time, disk, and what each arm changes
    Plan(AskedArgs),
    /// Start every arm once and look at its evidence, timing nothing
    Verify(VerifyArgs),
    /// Measure the baseline against its own second instance: what can be told apart here and now
    ///
    /// In place of an experiment file the name of a database may stand: workload A on 50,000 records by two clients.
    Calibrate(CalibrateArgs),
    /// Write an experiment file with comments: what can be had on this machine, or on a running server
    Init(InitArgs),
    /// Report on a run folder, on a report.json in its place, or on a gathered matrix
    Report(ReportArgs),
    /// Compare the costs of several runs: databases, machines, versions
    Compare(CompareArgs),
    /// Show the costs of many runs over time, and where they changed: commits, days, versions
    History(HistoryArgs),
    /// Measure experiments on several hosts, as tasks of a batch engine, and gather what they have shown
    Matrix(commands::matrix::MatrixArgs),
    /// Show the security matrix of running servers: what is enforced, what is off, what was seen
    Inspect(InspectArgs),
    /// Run a command of yours that uses running servers, with evidence before, while and after it; nothing is timed
    ///
    /// In its arguments {url}, or {host} and {port}, stand for the server as it is reached through a relay that keeps
    /// what passes; TITHE_URL, TITHE_HOST and TITHE_PORT are the same in its environment. Of a second server they are
    /// {url2} and TITHE_URL_2.
    Witness(WitnessArgs),
    /// Download a database that no package of the system brings, for this user
    Get(GetArgs),
    /// List databases and workloads; of a database its protections, of a protection all that it takes
    Ls(LsArgs),
    /// Say what a flag beside a figure means, and what to do about it
    Explain(ExplainArgs),
    /// Show what this machine offers: servers, processor, clock, pressure, disk; or what a running server lacks
    Doctor(DoctorArgs),
    /// Offer the lanes of this machine to runs that another machine coordinates, one after the other
    #[cfg(feature = "agents")]
    Agent(AgentArgs),
    /// See, on the machine of a running server, what clients on others cannot: for runs that name this observer
    #[cfg(feature = "agents")]
    Observe(ObserveArgs),
    /// Print the manual page, or the completions of a shell
    Manual(ManualArgs),
}

/// What Tithe calls itself. Nobody else does, so neither help nor manual nor completions know it.
#[derive(Parser)]
#[command(name = commands::child::NAME)]
struct ChildArgs {
    #[command(flatten)]
    machine: MachineArgs,
}

/// Which experiment.
#[derive(Args)]
pub struct ExperimentArgs {
    /// Experiment file, - for one on standard input, name of a database, or URL of a running server; without one the
    /// built-in experiment: SQLite with and without page encryption
    #[arg(value_name = "FILE|DATABASE|URL")]
    file: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Folder for run folders and, where reachable for the servers' account, their data
    #[arg(long, value_name = "DIR", default_value = "tithe-runs")]
    runs: PathBuf,
    /// Warehouses of every TPC-C workload, in place of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    warehouses: Option<u32>,
    /// The data set times this, as 0.01 for a hundredth of the file's records
    #[arg(long, value_name = "FACTOR", conflicts_with = "warehouses")]
    scale: Option<f64>,
    /// Records of every arm, in place of the file's; without a file 20,000
    #[arg(long, value_name = "N", conflicts_with_all = ["scale", "warehouses"], value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: Option<u64>,
    /// Number of clients in place of the file's, or several with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    clients: Vec<u32>,
    /// Measured load at most, in place of the file's: "10 min"
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,
    /// What is known of how much starts of the servers differ, for cells with fewer than four, in place of what Tithe
    /// brings: a file that `tithe calibrate --starts --to FILE` has written
    #[arg(long, value_name = "FILE")]
    start_spread: Option<PathBuf>,
}

/// What to measure, as a file or in words.
#[derive(Args)]
pub struct AskedArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// An arm with this protection of the database that is named, beside a plain one; once for each arm. Options follow
    /// a colon, several protections of one arm are joined by +: `--protect tls --protect tls+pgaudit:log=read`
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]")]
    protect: Vec<String>,
    /// The URL of the plain arm, where it is not the URL that is named without TLS: another port, account or server
    #[arg(long, value_name = "URL")]
    plain: Option<String>,
    /// YCSB's workloads for the database that is named: c (reads only) unless it is said; several with commas between
    /// them
    #[arg(long, value_name = "LETTERS", value_delimiter = ',')]
    workload: Vec<String>,
    /// A property file of YCSB for the database that is named; once for each. Its recordcount, threadcount and target
    /// are used where no option says otherwise; without --protect the database's first protection is measured
    #[arg(long, value_name = "FILE")]
    ycsb_file: Vec<PathBuf>,
    /// A first answer: 30 s of load, or what the arms need at least, and an end where every answer is certain
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
}

/// What to look at.
#[derive(Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    asked: AskedArgs,
    /// Format: for people, or one document with every observation for auditors (OSCAL's assessment results, SARIF)
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "oscal", "sarif"])]
    format: String,
}

/// Records of the largest data set that can be asked for.
const RECORDS_MAX: u64 = 1_000_000_000_000;

/// Where things are on this machine.
#[derive(Args)]
pub struct MachineArgs {
    /// Folder of PostgreSQL's programs, looked at before all others
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pg_bin: Vec<PathBuf>,
}

/// A folder that is there.
fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("there is no such folder".to_owned()) }
}

/// How to run.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    asked: AskedArgs,
    /// Continue this run folder after its last complete frame instead of starting a new one
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "warehouses", "scale", "records", "clients", "budget", "start_spread", "protect", "plain", "workload", "ycsb_file", "quick", "against", "aa_arm", "until_decided", "design"])]
    resume: Option<PathBuf>,
    /// Compare two builds of the server in place of the experiment's arms: the first arm's set-up by the programs in
    /// this folder (or beside this program), and by those that are installed
    #[arg(long, value_name = "PROGRAM", requires = "file")]
    against: Option<PathBuf>,
    /// Add the A/A arm, a second instance of the baseline: the negative control
    #[arg(long)]
    aa_arm: bool,
    /// Measure until every arm's answer is certain, however wide its interval
    #[arg(long)]
    until_decided: bool,
    /// How the arms share the machine; `sequential` is for comparison only
    #[arg(long, value_name = "DESIGN", value_parser = ["interleaved", "duet", "slices", "sequential"])]
    design: Option<String>,
    #[command(flatten)]
    team: team::TeamArgs,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Print what each arm did as the lines of YCSB's client
    #[arg(long, conflicts_with = "json")]
    ycsb_output: bool,
}

/// What to inspect.
#[derive(Args)]
pub struct InspectArgs {
    /// URLs of the servers; passwords are better given by a variable of the environment, such as PGPASSWORD, MYSQL_PWD,
    /// REDISCLI_AUTH or CASSANDRA_PASSWORD
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Features that must be enforced on the whole server: tls, audit, authentication, ... Else the exit status is 5,
    /// or 7 where that cannot be told, or for one account only
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    require: Vec<String>,
    /// Also write records into a table of Tithe's own, look for them in the server's logs and, where they are on this
    /// machine, in its files, and remove the table; without this nothing is written
    #[arg(long)]
    write_canary: bool,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "markdown", "json", "oscal", "sarif"])]
    format: String,
}

/// What to witness.
#[derive(Args)]
pub struct WitnessArgs {
    /// URLs of the servers that the command uses; passwords are given by variables of the environment, as to inspect
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// A protection that must be on: `--protect tls --protect pgaudit:log=read`. For it Tithe works in a table of its
    /// own before and after; without one nothing is written
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]")]
    protect: Vec<String>,
    /// Format; with json standard output holds the evidence alone, and the command's output goes to standard error
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// The command, which is not started where a claim does not hold before it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What to write about.
#[derive(Args)]
pub struct InitArgs {
    /// Name of a database, or URL of a running server; without one the first server that is installed
    #[arg(value_name = "DATABASE|URL")]
    target: Option<String>,
    /// File to write, which must not be there yet; without one standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
}

/// How to calibrate.
#[derive(Args)]
pub struct CalibrateArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Seconds of measured load for each cell: 60, or 10 for each of --starts, unless it is said
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(15..=3600))]
    seconds: Option<u32>,
    /// Measure how much the servers differ from one start to the next, over N starts (12 without a number), as lines
    /// for --start-spread
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "12", value_parser = clap::value_parser!(u32).range(4..=100))]
    starts: Option<u32>,
    /// Write the lines of --starts into this file, in which those of other databases stay
    #[arg(long, value_name = "FILE", requires = "starts")]
    to: Option<PathBuf>,
    #[command(flatten)]
    team: team::TeamArgs,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// What to look at on this machine, and at which broker.
#[derive(Args)]
pub struct DoctorArgs {
    /// URLs of running servers: everything that measuring them and proving their protections lacks, as statements that
    /// an administrator can paste. Nothing is changed there
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Of the servers' protections only these
    #[arg(long, value_name = "PROTECTION", value_delimiter = ',', requires = "urls")]
    protect: Vec<String>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    team: team::TeamArgs,
}

/// What an agent offers.
#[cfg(feature = "agents")]
#[derive(Args)]
pub struct AgentArgs {
    /// Broker at which runs find it: tls://HOST:4222, or nats://127.0.0.1:4222 on this machine
    #[arg(long, value_name = "URL")]
    join: String,
    /// A server that it may connect to; once for each. It opens no connection to any other
    #[arg(long, value_name = "HOST[:PORT]", value_parser = AllowedTarget::parse)]
    target: Vec<AllowedTarget>,
    /// Lanes that it offers; one a processor unless it is said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    lanes: Option<u32>,
    /// What it is called in reports; the machine's name unless it is said
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    access: team::AccessArgs,
}

/// What an observer may look at.
#[cfg(feature = "agents")]
#[derive(Args)]
pub struct ObserveArgs {
    /// Broker at which runs find it: tls://HOST:4222, or nats://127.0.0.1:4222 on this machine
    #[arg(long, value_name = "URL")]
    join: String,
    /// A port of this machine whose server it may look at; once for each. It looks at no other process
    #[arg(long, value_name = "PORT", required = true, value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// A file or folder that it may read, with everything below it; once for each. It opens no other
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// What it is called in experiments (`observer = { name = … }`); the machine's name unless it is said
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    access: team::AccessArgs,
}

/// How to report.
#[derive(Args)]
pub struct ReportArgs {
    /// The run folder, a report of one as JSON (report.json), or what `tithe matrix gather` has written
    run: PathBuf,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "short", "html", "markdown", "pull-request", "json", "csv", "benchstat", "ycsb", "bencher", "otava", "oscal", "sarif"])]
    format: String,
}

/// What to download.
#[derive(Args)]
pub struct GetArgs {
    /// The database: one that no package of the system brings
    database: String,
    /// Its version; without one the version that Tithe was tested with
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

/// What to list.
#[derive(Args)]
pub struct LsArgs {
    /// Of what to list more: a database, a database and one of its protections, or a workload
    #[arg(value_name = "NAME", num_args = 0..=2)]
    names: Vec<String>,
    /// Write a Markdown page for each database and protection into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "names")]
    markdown: Option<PathBuf>,
}

/// What to explain.
#[derive(Args)]
pub struct ExplainArgs {
    /// The flag or finding, as reports and inspections print it: CARRY_OVER, PG-AUTHZ-SUPERUSERS
    name: String,
}

/// Which manual.
#[derive(Args)]
pub struct ManualArgs {
    /// Shell whose completions to print; without one the manual page
    kind: Option<clap_complete::Shell>,
}

/// Which runs.
#[derive(Args)]
pub struct HistoryArgs {
    /// Run folders, reports of them as JSON (report.json), or folders of either; a run may have a label in front, as
    /// a1b2c3=RUN. They are put in the order in which they were measured
    #[arg(required = true, value_name = "[LABEL=]RUN|FOLDER")]
    runs: Vec<String>,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "html", "json"])]
    format: String,
}

/// What to compare.
#[derive(Args)]
pub struct CompareArgs {
    /// Run folders, or reports of them as JSON (report.json), or gathered matrices, the one to compare with first; with
    /// a label in front: before=RUN after=RUN
    #[arg(required = true, value_name = "[LABEL=]RUN")]
    runs: Vec<String>,
    /// Exit with status 6 where a cost grew against the first run by more than so many percentage points, whatever of
    /// its interval is true; with one run, where the cost is larger than that. A cell that was not measured (4) and a
    /// protection that is not proven (5, 7) come first
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<String>,
    /// False alarms of the threshold that are allowed in a year, where it is compared --comparisons-per-year; intervals
    /// are widened to that, and runs that rest on too little for it are refused
    #[arg(long, value_name = "N", requires_all = ["threshold", "comparisons_per_year"], value_parser = above_zero)]
    false_alarms_per_year: Option<f64>,
    /// How often a year this comparison is made: commits, or nights
    #[arg(long, value_name = "N", requires = "false_alarms_per_year", value_parser = above_zero)]
    comparisons_per_year: Option<f64>,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "html", "markdown", "json", "junit"])]
    format: String,
}

/// A number above zero.
fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0 is wanted".to_owned())
}

fn main() {
    if std::env::args_os().nth(1).is_some_and(|command| command == commands::child::NAME) {
        end(commands::child::child(&ChildArgs::parse_from(std::env::args_os().skip(1)).machine));
    }
    if std::env::args_os().nth(1).is_some_and(|command| command == commands::child::KEEPER) {
        end(commands::child::keep());
    }
    let cli = Cli::parse();
    end(match cli.command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Plan(arguments) => commands::plan::plan(&arguments),
        Command::Verify(arguments) => commands::verify::verify(&arguments),
        Command::Init(arguments) => commands::init::init(&arguments),
        Command::Calibrate(arguments) => commands::calibrate::calibrate(&arguments),
        Command::Report(arguments) => commands::report::report(&arguments),
        Command::Compare(arguments) => commands::compare::compare(&arguments),
        Command::History(arguments) => commands::history::history(&arguments),
        Command::Matrix(arguments) => commands::matrix::matrix(&arguments),
        Command::Get(arguments) => commands::get::get(&arguments),
        Command::Ls(arguments) => commands::ls::ls(&arguments),
        Command::Explain(arguments) => commands::explain::explain(&arguments),
        Command::Inspect(arguments) => commands::inspect::inspect(&arguments),
        Command::Witness(arguments) => commands::witness::witness(&arguments),
        Command::Doctor(arguments) => commands::doctor::doctor(&arguments),
        #[cfg(feature = "agents")]
        Command::Agent(arguments) => commands::agent::agent(&arguments),
        #[cfg(feature = "agents")]
        Command::Observe(arguments) => commands::observe::observe(&arguments),
        Command::Manual(arguments) => commands::manual::manual(&arguments),
    });
}

/// Ends the program as a command has ended.
fn end(outcome: Result<i32, exit::Stop>) -> ! {
    let status = outcome.unwrap_or_else(|stop| {
        crate::shown::tell!("{}", stop.message);
        stop.status
    });
    std::process::exit(status)
}
