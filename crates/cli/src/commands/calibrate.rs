//! `tithe calibrate`: the baseline against its own second instance.
//!
//! Whatever is found is the instrument's own doing. The same schedule, the same estimator and the same records as a
//! run.

use tithe_analysis::{assess::resolution::resolutions, report::calibration};
use tithe_harness::{
    folder,
    run::{Ending, Run},
};
use tithe_model::{experiment::Experiment, parse::aa_arm_of};

use crate::{
    CalibrateArgs,
    commands::run::{create, enough_disk},
    exit::{self, Stop},
    interrupt,
    prepare::{self, Prepared},
    progress::Progress,
};

/// Runs the command; returns the exit status.
pub fn calibrate(arguments: &CalibrateArgs) -> Result<i32, Stop> {
    let prepared = prepare::prepare_changed(&arguments.experiment, |experiment| {
        against_itself(experiment, f64::from(arguments.seconds));
    })?;
    enough_disk(&prepared.plan, &arguments.experiment.runs)?;
    let mut folder = create(&prepared, &arguments.experiment.runs)?;
    let Prepared { plan, database, install, workloads, .. } = prepared;
    let mut observer = Progress::new(&plan, arguments.quiet, None);
    let run = Run::new(database, install, &plan, &workloads, interrupt::listen())?;
    let ending = run.carry_out(&mut folder, None, &mut observer)?;
    let path = folder.path().to_owned();
    drop(folder);
    let resolutions = resolutions(&folder::read(&path)?);
    anstream::print!("{}", calibration::render(&resolutions));
    anstream::println!("\nrun folder  {}", path.display());
    Ok(match ending {
        Ending::Interrupted => exit::INTERRUPTED,
        Ending::Failed => exit::FAILED,
        Ending::Complete if resolutions.iter().all(|cell| cell.passes()) => exit::OK,
        Ending::Complete => exit::DISPROVEN,
    })
}

/// Leaves the baseline and a second instance of it, `seconds` of load a cell, and no precision to stop at.
fn against_itself(experiment: &mut Experiment, seconds: f64) {
    experiment.title = format!("Calibration: {}", experiment.title);
    experiment.arms.truncate(1);
    let second = aa_arm_of(&experiment.arms);
    experiment.arms.extend(second);
    let cells = experiment.workloads.len() * experiment.resources.len();
    experiment.measure.budget_s = seconds * cells.max(1) as f64;
    experiment.measure.precision = f64::MIN_POSITIVE;
    experiment.measure.until_decided = false;
}
