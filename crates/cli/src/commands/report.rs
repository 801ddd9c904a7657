//! `tithe report`: a run folder in any format, a document in all formats except one, a gathered matrix in its own
//! formats.

use std::path::Path;

use tithe_analysis::{
    Analysis,
    report::{self, observation},
};
use tithe_harness::folder;

use crate::{
    ReportArgs, commands,
    exit::{self, Stop},
    progress, records,
};

/// Runs the command; returns the exit status.
pub fn report(arguments: &ReportArgs) -> Result<i32, Stop> {
    let width = progress::columns().min(120);
    if let Some(text) = commands::matrix::document(&arguments.run) {
        let options = report::terminal::Options { width, colour: true, ..report::terminal::Options::default() };
        crate::shown::show!("{}", commands::matrix::report(&text, &arguments.run, &arguments.format, options)?);
        return Ok(exit::OK);
    }
    if arguments.format == "ycsb" {
        return ycsb(&arguments.run);
    }
    let assessed = records::read(&arguments.run)?;
    let (analysis, page_data) = (&assessed.analysis, &assessed.page_data);
    let observed = || observation::of_run(analysis).map_err(|why| Stop::new(exit::USAGE, why));
    let text = |form| report::terminal::render(analysis, report::terminal::Options { form, width, colour: true });
    let rendered = match arguments.format.as_str() {
        "short" => text(report::view::Form::Answer),
        "markdown" => report::markdown::render(analysis, report::view::Form::Long),
        "pull-request" => report::markdown::render(analysis, report::view::Form::Short),
        "benchstat" => report::benchstat::render(analysis),
        "bencher" => report::bencher::render(analysis),
        "otava" => report::otava::render(analysis),
        "oscal" => report::oscal::render(&observed()?),
        "sarif" => report::sarif::render(&observed()?),
        "html" => report::html::render(analysis, page_data),
        "json" => report::json::render(analysis, page_data),
        "csv" => report::csv::render(analysis),
        "folded" => folded(analysis)?,
        _ => text(report::view::Form::Long),
    };
    crate::shown::show!("{rendered}");
    if arguments.format == "short" {
        // The same for a run folder and for its document, in any place.
        crate::shown::showln!("\nthe rest: tithe report RUN, as a page with --format html");
    }
    Ok(exit::of_damage(&arguments.run, &assessed.damage).unwrap_or(exit::OK))
}

/// The stacks of the profile, for other programs.
fn folded(analysis: &Analysis) -> Result<String, Stop> {
    let text = report::folded::render(analysis);
    match text.is_empty() {
        true => Err(Stop::new(exit::USAGE, "this run has no profile: run it again with --profile")),
        false => Ok(text),
    }
}

/// The lines of YCSB's client, which need the histograms of single frames.
fn ycsb(run: &Path) -> Result<i32, Stop> {
    if run.is_file() {
        let why = "--format ycsb needs the run folder: its lines come from the histograms of single frames, which a \
                   document does not keep; every other format can be made from it";
        return Err(Stop::new(exit::USAGE, format!("{}: {why}", run.display())));
    }
    let records = folder::read(run).map_err(|fault| Stop::new(exit::USAGE, fault))?;
    crate::shown::show!("{}", report::ycsb::render(&records));
    Ok(exit::of_damage(run, &records.damage).unwrap_or(exit::OK))
}
