//! `tithe report`: a run folder in any of the formats.

use tithe_analysis::report;
use tithe_harness::folder;

use crate::{
    ReportArgs,
    exit::{self, Stop},
    progress, records,
};

/// Runs the command; returns the exit status.
pub fn report(arguments: &ReportArgs) -> Result<i32, Stop> {
    let unreadable = |fault| Stop::new(exit::USAGE, fault);
    if arguments.format == "ycsb" {
        let records = folder::read(&arguments.run).map_err(unreadable)?;
        let damage = records.damage.clone();
        anstream::print!("{}", report::ycsb::render(&records));
        return Ok(exit::of_damage(&arguments.run, &damage).unwrap_or(exit::OK));
    }
    let assessed = records::assess(&arguments.run).map_err(unreadable)?;
    let (analysis, story) = (&assessed.analysis, &assessed.story);
    let width = progress::columns().min(120);
    let text = |form| report::terminal::render(analysis, report::terminal::Options { form, width, colour: true });
    let rendered = match arguments.format.as_str() {
        "short" => text(report::view::Form::Short),
        "markdown" => report::markdown::render(analysis, report::view::Form::Long),
        "pull-request" => report::markdown::render(analysis, report::view::Form::Short),
        "benchstat" => report::benchstat::render(analysis),
        "html" => report::html::render(analysis, story),
        "json" => report::json::render(analysis),
        "csv" => report::csv::render(analysis),
        _ => text(report::view::Form::Long),
    };
    anstream::print!("{rendered}");
    Ok(exit::of_damage(&arguments.run, &assessed.damage).unwrap_or(exit::OK))
}
