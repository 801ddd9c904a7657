//! The command line of Tithe: the only crate that prints.
//!
//! Results go to standard output, everything else to standard error. The exit statuses are explained in [`exit`].

#![forbid(unsafe_code)]

mod allowed;
mod asked;
mod commands;
mod complain;
mod exit;
mod help;
mod interrupt;
mod lacking;
mod offer;
mod own_files;
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

use clap::{Args, FromArgMatches as _, Parser, Subcommand};
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
    /// Takes an experiment file, the name of a database that Tithe starts, or the URL of a running server. The
    /// experiment is kept in the run folder; --show-experiment prints it.
    Run(Box<RunArgs>),
    /// Show what an experiment would do: cells, arms, time, disk, and what each arm changes
    Plan(AskedArgs),
    /// Start every arm once and check its evidence, without timing anything
    Verify(VerifyArgs),
    /// Measure the baseline against a second instance of itself: the smallest cost that this machine can show
    ///
    /// Takes an experiment file or the name of a database (YCSB workload A, 50,000 records, two clients).
    Calibrate(CalibrateArgs),
    /// Write an experiment file with comments, for this machine or for a running server
    Init(InitArgs),
    /// Print the JSON Schema of experiment files, with which an editor completes and checks them
    Schema,
    /// Print the report of a run folder, a report.json or a gathered matrix
    Report(ReportArgs),
    /// Compare the costs of several runs: databases, machines, versions
    Compare(CompareArgs),
    /// Show the costs of many runs over time, and where they changed
    History(HistoryArgs),
    /// Measure experiments on several hosts as tasks of a batch engine, and gather the results
    Matrix(commands::matrix::MatrixArgs),
    /// Keep runs of many hosts as an atlas of costs, and write its pages
    Atlas(commands::atlas::AtlasArgs),
    /// Show which protections of running servers are enforced, available or off, and what was seen
    Inspect(InspectArgs),
    /// Run your own command and collect evidence before, during and after it, without timing anything
    ///
    /// In its arguments, {url}, or {host} and {port}, are replaced by the address of a relay that records what passes
    /// to the server; the environment variables TITHE_URL, TITHE_HOST and TITHE_PORT hold the same. For a second
    /// server they are {url2} and TITHE_URL_2.
    Witness(WitnessArgs),
    /// Download the programs of a database, for this user only
    Get(GetArgs),
    /// List databases and workloads, the protections of a database, or the options of a protection
    Ls(LsArgs),
    /// Explain a flag or a finding, and what to do about it
    Explain(ExplainArgs),
    /// List what this machine offers, or everything that a running server lacks for a measurement
    Doctor(DoctorArgs),
    /// Offer this machine's processors to runs that another machine coordinates, one run at a time
    #[cfg(feature = "agents")]
    Agent(AgentArgs),
    /// Observe a server on its own machine, for runs on other machines that name this observer
    #[cfg(feature = "agents")]
    Observe(ObserveArgs),
    /// Print the manual page, or completions for a shell
    Manual(ManualArgs),
}

/// The command by which Tithe starts itself. Users never need it, so help, manual and completions leave it out.
#[derive(Parser)]
#[command(name = commands::child::NAME)]
struct ChildArgs {
    #[command(flatten)]
    machine: MachineArgs,
}

/// Which experiment.
#[derive(Args)]
pub struct ExperimentArgs {
    /// Experiment file (- for standard input), name of a database, or URL of a running server; by default the built-in
    /// experiment, SQLite with and without page encryption
    #[arg(value_name = "FILE|DATABASE|URL")]
    file: Option<PathBuf>,
    /// Folder for run folders and, if the servers' account can reach it, for their data
    #[arg(long, value_name = "DIR", default_value = "tithe-runs")]
    runs: PathBuf,
    /// Warehouses of every TPC-C workload; overrides the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    warehouses: Option<u32>,
    /// Multiply the records of the file: 0.01 is a hundredth of them
    #[arg(long, value_name = "FACTOR", conflicts_with = "warehouses")]
    scale: Option<f64>,
    /// Records of every arm; overrides the file [default without a file: 20,000; calibrate: 50,000]
    #[arg(long, value_name = "N", conflicts_with_all = ["scale", "warehouses"], value_parser = clap::value_parser!(u64).range(1..=RECORDS_MAX))]
    records: Option<u64>,
    /// Number of clients, or several separated by commas; overrides the file
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    clients: Vec<u32>,
    /// Longest measured load, such as "10 min"; overrides the file
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,
    /// Start-to-start variation for cells with fewer than four starts, in place of Tithe's own figures: a file written
    /// by `tithe calibrate --starts --to FILE`
    #[arg(long, value_name = "FILE")]
    start_spread: Option<PathBuf>,
    /// Allow what this file runs, loads or opens (`tithe plan` lists it), now and as long as it does not change
    #[arg(long)]
    allow_commands: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// What to measure, as a file or in words.
#[derive(Args)]
pub struct AskedArgs {
    /// Protection to measure against a plain arm; repeat it for further arms. Options follow a colon, + joins several
    /// protections in one arm: `--protect tls --protect tls+pgaudit:log=read`
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]")]
    protect: Vec<String>,
    /// URL of the plain arm, if it differs from the given URL without TLS (another port, account or server)
    #[arg(long, value_name = "URL")]
    plain: Option<String>,
    /// YCSB workloads, separated by commas [default: c, reads only]
    #[arg(long, value_name = "LETTERS", value_delimiter = ',')]
    workload: Vec<String>,
    /// YCSB property file; repeat it for further ones. Its recordcount, threadcount and target apply unless an option
    /// overrides them; without --protect, the database's first protection is measured
    #[arg(long, value_name = "FILE")]
    ycsb_file: Vec<PathBuf>,
    /// Statements of your own: a script in pgbench's language, or builtin:select-only, builtin:simple-update,
    /// builtin:tpcb-like. Repeat it for further ones, which are drawn by their weights
    #[arg(long, value_name = "FILE[@WEIGHT]")]
    script: Vec<String>,
    /// How statements of scripts are sent [default: simple]
    #[arg(long, value_name = "NAME", value_parser = ["simple", "extended", "prepared"], requires = "script")]
    protocol: Option<String>,
    /// Variable of scripts; repeat it for further ones
    #[arg(long, value_name = "NAME=VALUE", requires = "script")]
    define: Vec<String>,
    /// How often to try a script's transaction that conflicts with another one; 0: without limit [default: 1]
    #[arg(long, value_name = "N", requires = "script")]
    max_tries: Option<u32>,
    /// Tables of a running server that scripts may change in place; each transaction is rolled back
    #[arg(long, value_name = "TABLE,…", requires = "script")]
    write_in_place: Option<String>,
    /// Log of a server whose transactions are replayed: PostgreSQL's csvlog, jsonlog or text, MariaDB's and MySQL's
    /// general or slow log, server_audit's; repeat it for further ones. Without --protect, the database's first
    /// protection is measured
    #[arg(long, value_name = "LOG")]
    replay: Vec<PathBuf>,
    /// Load like production's: the statements that the running server has counted, by their calls
    /// (pg_stat_statements, performance_schema), with parameters drawn from its columns' values
    #[arg(long)]
    like_production: bool,
    /// Property of the replay: pace (closed, or a factor of the log's own pace), finish (as-logged, rollback),
    /// database, form, prefix, encoding, memory (MB); repeat it for further ones
    #[arg(long, value_name = "NAME=VALUE", requires = "replay")]
    property: Vec<String>,
    /// Your own data for --script and --replay, restored once for all arms: a file of statements, a dump, a folder of
    /// CSV
    #[arg(long, value_name = "DATA")]
    prepare: Option<String>,
    /// Short run: 30 s of load, or as much as the arms need, ended as soon as every answer is certain
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// What to verify.
#[derive(Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    asked: AskedArgs,
    /// Output format: text, or one document with every observation for auditors (OSCAL assessment results, SARIF)
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "oscal", "sarif"])]
    format: String,
}

/// Most records that a user can ask for.
const RECORDS_MAX: u64 = 1_000_000_000_000;

/// Where things are on this machine.
#[derive(Args)]
pub struct MachineArgs {
    /// Folder of PostgreSQL's programs, searched first
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pg_bin: Vec<PathBuf>,
}

/// A folder that exists.
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
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "warehouses", "scale", "records", "clients", "budget", "start_spread", "protect", "plain", "workload", "ycsb_file", "script", "replay", "prepare", "like_production", "quick", "against", "aa_arm", "until_decided", "profile", "design"])]
    resume: Option<PathBuf>,
    /// Compare two builds of the server instead of the experiment's arms, both set up as the first arm: PROGRAM (a
    /// folder of programs, one of them, or an installed version) and the installed build
    #[arg(long, value_name = "PROGRAM", requires = "file")]
    against: Option<PathBuf>,
    /// Add the A/A arm, a second instance of the baseline, as a negative control
    #[arg(long)]
    aa_arm: bool,
    /// Measure until every arm's answer is certain, however wide its interval
    #[arg(long)]
    until_decided: bool,
    /// In additional frames, sample what client and server run: in which component and function the cost arises
    #[arg(long)]
    profile: bool,
    /// How the arms share the machine (`sequential` is for comparison only) [default: interleaved]
    #[arg(long, value_name = "DESIGN", value_parser = ["interleaved", "duet", "slices", "sequential"])]
    design: Option<String>,
    #[command(flatten)]
    team: team::TeamArgs,
    /// Print the experiment before it runs
    #[arg(long)]
    show_experiment: bool,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Print each arm's results in the format of YCSB's client
    #[arg(long, conflicts_with = "json")]
    ycsb_output: bool,
}

/// What to inspect.
#[derive(Args)]
pub struct InspectArgs {
    /// URLs of the servers; give passwords by environment variables such as PGPASSWORD, MYSQL_PWD, REDISCLI_AUTH or
    /// CASSANDRA_PASSWORD
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Features that must be enforced on the whole server, such as tls,audit,authentication. Otherwise the exit status
    /// is 5, or 7 if that is unknown or holds for one account only
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    require: Vec<String>,
    /// Also write records into a table of Tithe's own, search the server's logs and (on this machine) files for them,
    /// and remove the table. Without this option, nothing is written
    #[arg(long)]
    write_canary: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "markdown", "json", "oscal", "sarif"])]
    format: String,
}

/// What to witness.
#[derive(Args)]
pub struct WitnessArgs {
    /// URLs of the servers that the command uses; give passwords by environment variables, as for inspect
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Protection that must be on: `--protect tls --protect pgaudit:log=read`. Tithe checks it in a table of its own
    /// before and after the command; without this option, nothing is written
    #[arg(long, value_name = "NAME[:OPTION=VALUE,…]")]
    protect: Vec<String>,
    /// Output format; with json, standard output holds only the evidence, and the command's output goes to standard
    /// error
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
    /// Your command; it is not started if a claim does not hold before it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What to write about.
#[derive(Args)]
pub struct InitArgs {
    /// Name of a database, or URL of a running server [default: the first installed server, else SQLite]
    #[arg(value_name = "DATABASE|URL")]
    target: Option<String>,
    /// File to write, which must not exist yet [default: standard output]
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
    /// Seconds of measured load for each cell [default: 60, or 10 for each of --starts]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(15..=3600))]
    seconds: Option<u32>,
    /// Measure the start-to-start variation over N starts [default: 12], as lines for --start-spread
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "12", value_parser = clap::value_parser!(u32).range(4..=100))]
    starts: Option<u32>,
    /// Write the lines of --starts into this file; lines of other databases stay
    #[arg(long, value_name = "FILE", requires = "starts")]
    to: Option<PathBuf>,
    #[command(flatten)]
    team: team::TeamArgs,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// What to check on this machine, and at which broker.
#[derive(Args)]
pub struct DoctorArgs {
    /// URLs of running servers: prints everything they lack for a measurement with proof, as statements that an
    /// administrator can paste. Changes nothing
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Check only this protection of the servers, written as for `tithe run`; repeat it for several
    #[arg(long, value_name = "PROTECTION", requires = "urls")]
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
    /// Broker that runs use to find it: tls://HOST:4222, or nats://127.0.0.1:4222 on this machine
    #[arg(long, value_name = "URL")]
    join: String,
    /// Server that it may connect to; repeat it for further ones. It connects to no other
    #[arg(long, value_name = "HOST[:PORT]", value_parser = AllowedTarget::parse)]
    target: Vec<AllowedTarget>,
    /// Lanes that it offers [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    lanes: Option<u32>,
    /// Its name in reports [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    access: team::AccessArgs,
}

/// What an observer may read.
#[cfg(feature = "agents")]
#[derive(Args)]
pub struct ObserveArgs {
    /// Broker that runs use to find it: tls://HOST:4222, or nats://127.0.0.1:4222 on this machine
    #[arg(long, value_name = "URL")]
    join: String,
    /// Port of a server on this machine that it may observe; repeat it for further ones. It observes no other process
    #[arg(long, value_name = "PORT", required = true, value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// File or folder that it may read, with everything below it; repeat it for further ones. It opens no other
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Its name in experiments (`observer = { name = … }`) [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    access: team::AccessArgs,
}

/// How to report.
#[derive(Args)]
pub struct ReportArgs {
    /// Run folder, report.json, or output of `tithe matrix gather`
    run: PathBuf,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "short", "html", "markdown", "pull-request", "json", "csv", "benchstat", "folded", "ycsb", "bencher", "otava", "oscal", "sarif"])]
    format: String,
}

/// What to download.
#[derive(Args)]
pub struct GetArgs {
    /// Name of the database
    database: String,
    /// Version [default: the version that Tithe was tested with]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

/// What to list.
#[derive(Args)]
pub struct LsArgs {
    /// Database, database and protection, or workload, to list in detail
    #[arg(value_name = "NAME", num_args = 0..=2)]
    names: Vec<String>,
    /// Write a Markdown page for each database and protection into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "names")]
    markdown: Option<PathBuf>,
}

/// What to explain.
#[derive(Args)]
pub struct ExplainArgs {
    /// Flag or finding as printed by reports and inspections, such as CARRY_OVER or PG-AUTHZ-SUPERUSERS
    name: String,
}

/// Which manual.
#[derive(Args)]
pub struct ManualArgs {
    /// Shell for completions [default: print the manual page]
    kind: Option<clap_complete::Shell>,
}

/// Which runs.
#[derive(Args)]
pub struct HistoryArgs {
    /// Run folders, report.json files, or folders of either, each with an optional label (a1b2c3=RUN). Tithe orders
    /// them by the time of measurement
    #[arg(required = true, value_name = "[LABEL=]RUN|FOLDER")]
    runs: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "html", "json"])]
    format: String,
}

/// What to compare.
#[derive(Args)]
pub struct CompareArgs {
    /// Run folders, report.json files or gathered matrices, the reference first, each with an optional label:
    /// before=RUN after=RUN
    #[arg(required = true, value_name = "[LABEL=]RUN")]
    runs: Vec<String>,
    /// Exit with status 6 if a cost certainly grew by more than this many percentage points against the first run; with
    /// one run, if the cost is certainly larger. A cell that was not measured (4) or a protection that is not proven
    /// (5, 7) takes precedence
    #[arg(long, value_name = "PERCENT")]
    threshold: Option<String>,
    /// Allowed false alarms of the threshold per year, given --comparisons-per-year. Intervals are widened accordingly;
    /// runs with too few frames for that are refused
    #[arg(long, value_name = "N", requires_all = ["threshold", "comparisons_per_year"], value_parser = above_zero)]
    false_alarms_per_year: Option<f64>,
    /// Comparisons per year: commits, or nights
    #[arg(long, value_name = "N", requires = "false_alarms_per_year", value_parser = above_zero)]
    comparisons_per_year: Option<f64>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "html", "markdown", "json", "junit"])]
    format: String,
}

/// A number above zero.
fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it must be a number above 0".to_owned())
}

fn main() {
    interrupt::survive_quotas();
    if std::env::args_os().nth(1).is_some_and(|command| command == commands::child::NAME) {
        end(commands::child::child(&ChildArgs::parse_from(std::env::args_os().skip(1)).machine));
    }
    if std::env::args_os().nth(1).is_some_and(|command| command == commands::child::KEEPER) {
        end(commands::child::keep());
    }
    let matches = help::command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    end(match cli.command {
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Plan(arguments) => commands::plan::plan(&arguments),
        Command::Verify(arguments) => commands::verify::verify(&arguments),
        Command::Init(arguments) => commands::init::init(&arguments),
        Command::Schema => commands::schema::schema(),
        Command::Calibrate(arguments) => commands::calibrate::calibrate(&arguments),
        Command::Report(arguments) => commands::report::report(&arguments),
        Command::Compare(arguments) => commands::compare::compare(&arguments),
        Command::History(arguments) => commands::history::history(&arguments),
        Command::Matrix(arguments) => commands::matrix::matrix(&arguments),
        Command::Atlas(arguments) => commands::atlas::atlas(&arguments),
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

/// Ends the program with the `error` of an argument. One that may hold a password is not repeated.
fn refuse(error: &clap::Error) -> ! {
    let told = error.render().to_string();
    if help::without_secrets(&told, words()) == told {
        error.exit();
    }
    end(Err(exit::Stop { message: told, status: error.exit_code() }))
}

/// The words of the command line, as far as they are text.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().filter_map(|word| word.into_string().ok())
}

/// Ends the program with the result of a command.
fn end(outcome: Result<i32, exit::Stop>) -> ! {
    let status = outcome.unwrap_or_else(|stop| {
        crate::shown::tell!("{}", help::without_secrets(&stop.message, words()));
        stop.status
    });
    let status = match shown::unwritten() {
        Some(error) => {
            crate::shown::telln!("tithe: cannot write to standard output: {error}");
            if status == exit::OK { exit::MACHINE } else { status }
        }
        None => status,
    };
    std::process::exit(status)
}
