//! `tithe matrix`: experiments on several hosts, as tasks that a batch engine starts by their numbers.

mod folder;
mod measure;
mod plan;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tithe_analysis::{
    matrix::{self, Gathered, State, against::Named},
    report,
};
use tithe_model::matrix::script::{ENGINES, Names, script};

use self::{folder::Folder, plan::Planned};
use crate::{
    MachineArgs,
    exit::{self, Stop},
};

/// What to do about a matrix.
#[derive(Args)]
pub struct MatrixArgs {
    #[command(subcommand)]
    command: MatrixCommand,
}

#[derive(Subcommand)]
enum MatrixCommand {
    /// Show the tasks of a matrix file with their numbers, without starting anything
    Plan(FileArgs),
    /// Run one task by its number, or all tasks on this host; finished tasks are skipped
    Run(RunArgs),
    /// Print a job file for a batch engine; read it and adapt it before you submit it
    Script(ScriptArgs),
    /// Show the state of each task; the exit status is 4 unless all are whole
    Status(FolderArgs),
    /// Gather the results of the tasks into one document, for `tithe report`
    Gather(GatherArgs),
}

/// Which matrix.
#[derive(Args)]
struct FileArgs {
    /// The matrix file
    file: PathBuf,
}

/// Which matrix, and where what is measured lies.
#[derive(Args)]
struct FolderArgs {
    #[command(flatten)]
    matrix: FileArgs,
    /// The folder that the tasks wrote into
    folder: PathBuf,
}

/// Which matrix, whose experiments are run here or by a job file.
#[derive(Args)]
struct AllowedFileArgs {
    #[command(flatten)]
    matrix: FileArgs,
    /// Allow what its experiments run, load or open (`tithe plan` lists it)
    #[arg(long)]
    allow_commands: bool,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    of: AllowedFileArgs,
    /// Number of the task [default: all tasks for this kind of machine, one after the other]
    #[arg(long, value_name = "INDEX")]
    task: Option<usize>,
    /// Kind of this host: needed without --task if the matrix has several kinds of machines
    #[arg(long, value_name = "NAME", conflicts_with = "task")]
    machine: Option<String>,
    /// Folder for results, the same for all tasks and hosts
    #[arg(long, value_name = "FOLDER", default_value = "tithe-matrix")]
    into: PathBuf,
    /// Folder on a disk of this host, for the servers' data and for the run until it is whole [default: the folder of
    /// --into, whose file system is then measured]
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    host: MachineArgs,
}

#[derive(Args)]
struct ScriptArgs {
    #[command(flatten)]
    of: AllowedFileArgs,
    /// The batch engine
    #[arg(long = "for", value_name = "ENGINE", value_parser = ["shell", "slurm", "kubernetes"])]
    engine: String,
    /// Folder for results, by its path on the hosts of the tasks
    #[arg(long, value_name = "FOLDER", default_value = "tithe-matrix")]
    into: String,
}

#[derive(Args)]
struct GatherArgs {
    #[command(flatten)]
    from: FolderArgs,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Runs the command; returns the exit status.
pub fn matrix(arguments: &MatrixArgs) -> Result<i32, Stop> {
    match &arguments.command {
        MatrixCommand::Plan(arguments) => {
            crate::shown::show!("{}", Planned::read(&arguments.file)?.outline());
            Ok(exit::OK)
        }
        MatrixCommand::Run(arguments) => measure::run(arguments),
        MatrixCommand::Script(arguments) => written(arguments),
        MatrixCommand::Status(arguments) => status(arguments),
        MatrixCommand::Gather(arguments) => gather(arguments),
    }
}

fn written(arguments: &ScriptArgs) -> Result<i32, Stop> {
    let planned = Planned::read(&arguments.of.matrix.file)?;
    let runs = planned.check(arguments.of.allow_commands)?;
    let file = arguments.of.matrix.file.display().to_string();
    // Hosts do not know what was allowed here.
    let allowed = if runs { " --allow-commands" } else { "" };
    let names = Names { file: &file, into: &arguments.into, plan: &planned.identity, allowed };
    let engine = ENGINES.iter().find(|(name, _)| *name == arguments.engine);
    let (_, engine) = engine.ok_or_else(|| Stop::new(exit::USAGE, format!("no engine {}", arguments.engine)))?;
    crate::shown::show!("{}", script(&planned.matrix, names, *engine));
    Ok(exit::OK)
}

fn status(arguments: &FolderArgs) -> Result<i32, Stop> {
    let gathered = gathered(arguments)?;
    let figures = matrix::figures(&gathered);
    crate::shown::showln!("{}: {}", gathered.title, report::matrix::progress(&gathered));
    for line in report::matrix::missing(&gathered, &figures).into_iter().chain(report::matrix::strays(&gathered)) {
        crate::shown::showln!("  {line}");
    }
    let whole = gathered.tasks.iter().all(|row| matches!(row.state, State::Whole(_)));
    Ok(if whole { exit::OK } else { exit::FAILED })
}

fn gather(arguments: &GatherArgs) -> Result<i32, Stop> {
    let gathered = gathered(&arguments.from)?;
    let document = report::matrix::json::render(&gathered, &matrix::figures(&gathered));
    let Some(path) = &arguments.to else {
        crate::shown::show!("{document}");
        return Ok(exit::OK);
    };
    std::fs::write(path, document)
        .map_err(|error| Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display())))?;
    crate::shown::showln!("{}: {}", gathered.title, report::matrix::progress(&gathered));
    crate::shown::showln!("the figures: tithe report {}", path.display());
    Ok(exit::OK)
}

/// The state of every task, and what else is in the folder.
fn gathered(arguments: &FolderArgs) -> Result<Gathered, Stop> {
    let planned = Planned::read(&arguments.matrix.file)?;
    if !arguments.folder.is_dir() {
        let message = format!("{} is not a folder: name the one that the tasks wrote into", arguments.folder.display());
        return Err(Stop::new(exit::USAGE, message));
    }
    let folder = Folder::new(&arguments.folder, &planned.identity);
    Ok(Gathered {
        title: planned.matrix.title.clone(),
        plan: planned.identity.clone(),
        tithe: env!("CARGO_PKG_VERSION").to_owned(),
        tasks: planned.matrix.tasks().map(|task| planned.row(task, folder.state(task.index))).collect(),
        strays: folder.strays(planned.matrix.len())?,
    })
}

/// The text at `path` if it is a gathered document.
pub fn document(path: &Path) -> Option<String> {
    let text = path.is_file().then(|| std::fs::read_to_string(path).ok()).flatten()?;
    report::matrix::json::is_one(&text).then_some(text)
}

/// The gathered document at `path` under the name `name`, to be compared with others, and what of it was not measured,
/// or not to its end.
pub fn named(path: &Path, name: String) -> Result<(Named, Vec<String>), Stop> {
    let wrong = |why: &str| Stop::new(exit::USAGE, format!("{}: {why}", path.display()));
    let text = document(path).ok_or_else(|| {
        wrong(
            "is not a gathered matrix, and a gathered matrix can be compared only \
            with another one",
        )
    })?;
    let gathered = report::matrix::json::read(&text).map_err(|why| wrong(&why))?;
    let unmeasured = report::matrix::missing(&gathered, &[]);
    Ok((Named::of(name, &gathered), unmeasured))
}

/// A gathered document at `path` in `format`, with `options` for a terminal.
pub fn report(text: &str, path: &Path, format: &str, options: report::terminal::Options) -> Result<String, Stop> {
    let wrong = |why: String| Stop::new(exit::USAGE, format!("{}: {why}", path.display()));
    let gathered = report::matrix::json::read(text).map_err(wrong)?;
    let figures = matrix::figures(&gathered);
    let of = |form| report::matrix::text(&gathered, &figures, report::terminal::Options { form, ..options });
    match format {
        "text" => Ok(of(report::view::Form::Long)),
        "short" => Ok(of(report::view::Form::Short)),
        "markdown" => Ok(report::matrix::markdown(&gathered, &figures, report::view::Form::Long)),
        "pull-request" => Ok(report::matrix::markdown(&gathered, &figures, report::view::Form::Short)),
        "html" => Ok(report::html::matrix(&gathered, &figures)),
        "json" => Ok(report::matrix::json::render(&gathered, &figures)),
        "csv" => Ok(report::matrix::csv::render(&gathered, &figures)),
        other => Err(wrong(format!(
            "--format {other} is for a single run; a gathered matrix has text, short, markdown, pull-request, html, \
             json and csv"
        ))),
    }
}
