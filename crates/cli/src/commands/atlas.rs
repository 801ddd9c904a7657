//! `tithe atlas`: keeps the costs of a run in the atlas, and makes its two pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use tithe_analysis::{
    atlas::{
        self, AtlasRun, KeptRun, Kind, Offered,
        entry::{Source, entry},
    },
    report,
};
use tithe_harness::folder;
use tithe_model::{catalogue::OfferedDatabase, plan};

use crate::{
    asked,
    exit::{self, Stop},
    offer, prepare, records,
};

/// What to do with the atlas.
#[derive(Args)]
pub struct AtlasArgs {
    #[command(subcommand)]
    command: AtlasCommand,
}

#[derive(Subcommand)]
enum AtlasCommand {
    /// Keep the costs of a run, or refuse it with all reasons: version, evidence, load, steal time, checksums
    Add(AddArgs),
    /// Write atlas.md and atlas.html from all kept runs
    Page(PageArgs),
}

#[derive(Args)]
struct AddArgs {
    /// Run folders of experiments of the atlas
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Commit of the program that measured the runs
    #[arg(long, value_name = "HASH")]
    commit: String,
    /// Folder of the kept runs
    #[arg(long, value_name = "DIR", default_value = "docs/atlas")]
    into: PathBuf,
    /// Folder of the experiments of the atlas
    #[arg(long, value_name = "DIR", default_value = "experiments/atlas")]
    experiments: PathBuf,
}

#[derive(Args)]
struct PageArgs {
    /// Folder of the kept runs; the pages are written next to it
    #[arg(value_name = "DIR", default_value = "docs/atlas")]
    from: PathBuf,
}

/// Runs the command; returns the exit status.
pub fn atlas(arguments: &AtlasArgs) -> Result<i32, Stop> {
    match &arguments.command {
        AtlasCommand::Add(arguments) => add(arguments),
        AtlasCommand::Page(arguments) => page(arguments),
    }
}

fn add(arguments: &AddArgs) -> Result<i32, Stop> {
    let experiments = experiments(&arguments.experiments)?;
    fs::create_dir_all(&arguments.into).map_err(|error| unwritten(&arguments.into, &error))?;
    let mut status = exit::OK;
    for path in &arguments.runs {
        match kept(path, arguments, &experiments)? {
            Ok(file) => crate::shown::showln!("{}", file.display()),
            Err(refusals) => {
                crate::shown::telln!("tithe: {} does not qualify for the atlas:", path.display());
                refusals.iter().for_each(|reason| crate::shown::telln!("  {reason}"));
                status = exit::USAGE;
            }
        }
    }
    Ok(status)
}

/// Keeps the run at `path`; its file, or why it does not qualify.
fn kept(
    path: &Path,
    arguments: &AddArgs,
    experiments: &[(PathBuf, String)],
) -> Result<Result<PathBuf, Vec<String>>, Stop> {
    if !path.is_dir() {
        return Ok(Err(vec!["It is not a run folder: only a folder has checksums.".to_owned()]));
    }
    let assessed = records::read(path)?;
    let text = fs::read_to_string(path.join("experiment.toml")).unwrap_or_default();
    let file = experiments.iter().find(|(_, known)| known.trim() == text.trim()).map(|(file, _)| file);
    let followed = match file {
        Some(file) if is_followed(file, path)? => Some(stem(file)),
        _ => None,
    };
    let (experiment, commit) = (followed.as_deref(), arguments.commit.as_str());
    let source = Source { tithe: env!("CARGO_PKG_VERSION"), experiment, commit, damage: &assessed.damage };
    let run = match entry(&assessed.analysis, &source) {
        Ok(run) => run,
        Err(refusals) => return Ok(Err(refusals)),
    };
    let file = arguments.into.join(run.file_name());
    if file.exists() {
        let why = format!("{} exists: the atlas keeps one run per host, experiment and day.", file.display());
        return Ok(Err(vec![why]));
    }
    fs::write(&file, run.write()).map_err(|error| unwritten(&file, &error))?;
    Ok(Ok(file))
}

/// The experiments of the atlas: their files and texts.
fn experiments(folder: &Path) -> Result<Vec<(PathBuf, String)>, Stop> {
    files(folder, "toml")?.into_iter().map(|file| read(&file).map(|text| (file, text))).collect()
}

/// True if no option but `--profile` changed the experiment in `file` for the run in the folder at `path`.
fn is_followed(file: &Path, path: &Path) -> Result<bool, Stop> {
    let (source, catalogue) = (asked::Source::file(file)?, offer::catalogue());
    let as_written = plan::plan(prepare::read(&source, &catalogue)?, &catalogue);
    let mut as_written = as_written.map_err(|diagnostics| source.complain(diagnostics))?.experiment;
    let (records, _) = folder::open(path).map_err(|fault| Stop::new(exit::USAGE, fault))?;
    let measured = records.plan.experiment;
    as_written.measure.profile |= measured.measure.profile;
    Ok(as_written == measured)
}

fn page(arguments: &PageArgs) -> Result<i32, Stop> {
    let kept = |path: PathBuf| {
        let wrong = |why| Stop::new(exit::USAGE, format!("{}: {why}", path.display()));
        let run = AtlasRun::read(&read(&path)?).map_err(wrong)?;
        Ok(KeptRun { file: format!("{}.json", stem(&path)), run })
    };
    let runs = files(&arguments.from, "json")?.into_iter().map(kept).collect::<Result<Vec<_>, Stop>>()?;
    let atlas = atlas::of(runs, &offered());
    for (ending, text) in [("md", report::atlas::markdown(&atlas)), ("html", report::html::atlas(&atlas))] {
        let file = arguments.from.with_extension(ending);
        fs::write(&file, text).map_err(|error| unwritten(&file, &error))?;
        crate::shown::showln!("{}", file.display());
    }
    Ok(exit::OK)
}

/// What every product of this build offers; the simulated ones of tests are none.
fn offered() -> Vec<Offered> {
    let of = |database: &OfferedDatabase| {
        let entry = &database.entry;
        let cache = (!entry.own_cache).then_some((Kind::ReadsBeyondCache, "no cache of its own"));
        let bulk = (!entry.bulk).then_some((Kind::BulkOrScan, "no such workload"));
        Offered {
            database: entry.id.to_owned(),
            title: entry.title.to_owned(),
            protections: database.protections.iter().map(|protection| protection.id.to_owned()).collect(),
            without: cache.into_iter().chain(bulk).collect(),
        }
    };
    let products = tithe_databases::all();
    let is_product = |database: &&OfferedDatabase| products.iter().any(|it| it.id() == database.entry.id);
    offer::catalogue().databases.iter().filter(is_product).map(of).collect()
}

/// The files of `folder` with this ending, by name.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Stop> {
    let cannot = |error| Stop::new(exit::USAGE, format!("cannot read {}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(cannot)?.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let paths = entries.iter().map(fs::DirEntry::path);
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|it| it == ending)).collect();
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, Stop> {
    fs::read_to_string(path).map_err(|error| Stop::new(exit::USAGE, format!("cannot read {}: {error}", path.display())))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Stop {
    Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display()))
}
