//! `tithe explain`: what a flag beside a figure means, and what to do about it.

use tithe_analysis::report::words::{flag_advice, flag_code, flag_of, paragraph};

use crate::{
    ExplainArgs,
    exit::{self, Stop},
    progress,
};

/// Runs the command; returns the exit status.
pub fn explain(arguments: &ExplainArgs) -> Result<i32, Stop> {
    let flag = flag_of(&arguments.flag).map_err(|problem| Stop::new(exit::USAGE, problem))?;
    anstream::print!("{}", paragraph(&format!("{}  ", flag_code(flag)), flag_advice(flag), progress::columns()));
    Ok(exit::OK)
}
