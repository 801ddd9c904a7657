//! `tithe calibrate`: the baseline against its own second instance.
//!
//! Every difference comes from the instrument itself, or from start-to-start variation. The schedule, the estimator and
//! the records are those of a run.

use std::path::{Path, PathBuf};

use tithe_analysis::{
    assess::resolution::{
        resolutions,
        spread::{CellSpread, lines, spreads},
    },
    report::calibration,
};
use tithe_harness::{
    folder,
    run::{Ending, Run},
};
use tithe_model::{
    experiment::{Experiment, Url},
    parse::aa_arm_of,
    plan::{Plan, STARTS_MIN},
    records::Records,
    start_spread,
};

use crate::{
    CalibrateArgs,
    asked::Source,
    commands::{
        child,
        run::{create, enough_disk},
    },
    exit::{self, Stop},
    interrupt, offer,
    prepare::{self, Prepared},
    progress::Progress,
    spread_file, team,
};

/// Seconds of load without `--seconds`: of a cell, and for each of `--starts`.
const SECONDS: u32 = 60;
const SECONDS_A_START: u32 = 10;

/// Fewest frames of a start: several of them separate the true spread from the scatter of frames within one start.
const FRAMES_A_START: u32 = 3;

/// Runs the command; returns the exit status.
pub fn calibrate(arguments: &CalibrateArgs) -> Result<i32, Stop> {
    arguments.to.as_deref().map_or(Ok(()), spread_file::check)?;
    if arguments.experiment.budget.is_some() {
        let told = "calibrate takes its load from --seconds, for each cell, and has no --budget; nothing was started";
        return Err(Stop::new(exit::USAGE, told));
    }
    let source = source(arguments.experiment.file.as_deref())?;
    let prepared =
        prepare::prepare_source(source, &arguments.experiment, false, |experiment| change(experiment, arguments))?;
    if let Some(starts) = arguments.starts {
        starts_are_told_apart(&prepared.plan, starts)?;
    }
    let (path, ending) = measure(arguments, prepared)?;
    let records = folder::read(&path)?;
    let in_order = match arguments.starts {
        Some(_) => tell_starts(&records, ending, arguments.to.as_deref())?,
        None => tell_resolutions(&records),
    };
    crate::shown::showln!("\nrun folder  {}", path.display());
    Ok(match ending {
        Ending::Interrupted => exit::INTERRUPTED,
        Ending::Failed => exit::FAILED,
        Ending::Complete => in_order,
    })
}

/// The experiment file, or Tithe's own experiment if the argument is the name of a database and there is no such file.
fn source(file: Option<&Path>) -> Result<Source, Stop> {
    let named = file.filter(|path| !path.is_file()).and_then(Path::to_str);
    match (named.filter(|id| offer::catalogue().database(id).is_some()), file) {
        (Some(id), _) => Ok(Source::own(format!("workload A on {id}"), workload_a(id))),
        (None, Some(path)) if path.to_str().is_some_and(Url::is_url) => {
            let told = "calibrate takes a file or the name of a database: write a file about a running server, as \
                        `tithe init URL` does; nothing was started";
            Err(Stop::new(exit::USAGE, told))
        }
        (None, Some(path)) => Source::file(path),
        (None, None) => Ok(Source::built_in()),
    }
}

fn workload_a(database: &str) -> String {
    format!(
        r#"title = "workload A on {database}"
database = "{database}"
[data]
records = 50_000
[load]
clients = 2
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
[[arm]]
name = "plain again"
"#
    )
}

/// Leaves the baseline and a second instance of it, the load that was asked for, and no precision to stop at.
///
/// Not more than two arms: all would be compared with the same plain one, whose variation would be in every comparison.
/// So more arms would have to count as one, or the result would look more certain than it is.
fn change(experiment: &mut Experiment, arguments: &CalibrateArgs) {
    experiment.title = format!("Calibration: {}", experiment.title);
    experiment.arms.truncate(1);
    let second = aa_arm_of(&experiment.arms);
    experiment.arms.extend(second);
    let cells = experiment.workloads.len() * experiment.resources.len();
    let usual_s = arguments.starts.map_or(SECONDS, |starts| SECONDS_A_START * starts);
    experiment.measure.budget_s = f64::from(arguments.seconds.unwrap_or(usual_s)) * cells.max(1) as f64;
    experiment.measure.precision = f64::MIN_POSITIVE;
    (experiment.measure.until_decided, experiment.measure.profile) = (false, false);
    if arguments.starts.is_some() {
        (experiment.measure.starts, experiment.measure.epochs) = (arguments.starts, None);
    }
}

/// Refuses a plan with too few frames to distinguish one start from another.
fn starts_are_told_apart(plan: &Plan, starts: u32) -> Result<(), Stop> {
    let refused = |words: String| Err(Stop::new(exit::USAGE, format!("--starts: {words}; nothing was started")));
    for cell in &plan.cells {
        if cell.planned_starts().is_none_or(|starts| starts < STARTS_MIN) {
            let database = &plan.experiment.database;
            return refused(format!("cell `{}`: Tithe does not restart {database} while it measures it", cell.id));
        }
        if cell.frames_max < starts * FRAMES_A_START {
            let frame_s = cell.frame_ns(plan.experiment.arms.len()) as f64 / 1e9;
            return refused(format!(
                "cell `{}`: {} frames on {starts} starts do not separate starts from frames; write `--seconds {:.0}` at \
                 least",
                cell.id,
                cell.frames_max,
                (frame_s * f64::from(starts * FRAMES_A_START)).ceil()
            ));
        }
    }
    Ok(())
}

/// Measures, and returns where its records are and how it ended.
fn measure(arguments: &CalibrateArgs, prepared: Prepared) -> Result<(PathBuf, Ending), Stop> {
    enough_disk(&prepared.plan, &arguments.experiment.runs)?;
    let cancelled = interrupt::listen();
    let asked = team::AgentRequest::of(&arguments.team, &prepared.plan, prepared.database)?;
    let team = asked.as_ref().map(|asked| asked.gather(&prepared.plan, cancelled)).transpose()?;
    let mut folder = create(&prepared, &arguments.experiment.runs)?;
    let Prepared { plan, database, installs, workloads, .. } = prepared;
    let mut progress = Progress::new(&plan, arguments.quiet, None);
    let run = Run::new(database, installs, &plan, &workloads, cancelled)?.loaded_by(team.as_ref());
    let run = child::may_start(run, &arguments.experiment.machine);
    let ending = run.carry_out(&mut folder, None, &mut progress)?;
    drop(progress);
    Ok((folder.path().to_owned(), ending))
}

/// Prints which differences can be resolved; returns the exit status for that.
fn tell_resolutions(records: &Records) -> i32 {
    let resolutions = resolutions(records);
    crate::shown::show!("{}", calibration::render(&resolutions));
    if resolutions.iter().all(|cell| cell.passes()) { exit::OK } else { exit::DISPROVEN }
}

/// Prints how much starts differ, and writes it `to` a file if everything was measured; returns the exit status for
/// that.
fn tell_starts(records: &Records, ending: Ending, to: Option<&Path>) -> Result<i32, Stop> {
    let cells = spreads(records);
    crate::shown::show!("{}", calibration::render_spreads(&cells));
    let lines = lines(records, &cells, &today());
    let database = &records.plan.experiment.database;
    crate::shown::showln!();
    lines.iter().for_each(|line| crate::shown::showln!("{}", start_spread::line(database, line)));
    if ending != Ending::Complete || !cells.iter().all(is_told) {
        return Ok(exit::FAILED);
    }
    if let Some(path) = to {
        spread_file::put(path, database, &lines)?;
        crate::shown::showln!("\nwritten to  {}, for `tithe run FILE --start-spread {0}`", path.display());
    }
    Ok(exit::OK)
}

fn is_told(cell: &CellSpread) -> bool {
    !cell.metrics.is_empty()
}

/// The date, as `2026-11-23`.
fn today() -> String {
    let (year, month, day) = time::OffsetDateTime::now_utc().to_calendar_date();
    format!("{year:04}-{:02}-{day:02}", u8::from(month))
}
