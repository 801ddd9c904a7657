//! `tithe explain`: what a flag of a figure or a finding of an inspection means, and what to do about it.

use tithe_analysis::report::words::{flag_advice, flag_code, flag_of, paragraph};
use tithe_databases::findings;
use tithe_plugin::matrix::FindingEntry;

use crate::{
    ExplainArgs,
    exit::{self, Stop},
    progress,
};

/// Runs the command; returns the exit status.
pub fn explain(arguments: &ExplainArgs) -> Result<i32, Stop> {
    let (title, text) = match finding(&arguments.name)? {
        Some(finding) => (finding.id, format!("{} {}", finding.is, finding.advice)),
        None => {
            let flag = flag_of(&arguments.name).map_err(|problem| {
                Stop::new(exit::USAGE, format!("{problem}; findings begin with their product: PG-AUTHZ-SUPERUSERS"))
            })?;
            (flag_code(flag), flag_advice(flag).to_owned())
        }
    };
    crate::shown::show!("{}", paragraph(&format!("{title}  "), &text, progress::columns()));
    Ok(exit::OK)
}

/// The finding called `name`; `None` if no finding has its product prefix.
fn finding(name: &str) -> Result<Option<&'static FindingEntry>, Stop> {
    let id = name.to_uppercase().replace('_', "-");
    if let Some(finding) = findings::ALL.iter().find(|finding| finding.id == id) {
        return Ok(Some(finding));
    }
    let product = |id: &str| id.split('-').next().map(str::to_owned);
    let alike = findings::ALL.iter().filter(|finding| product(finding.id) == product(&id));
    let alike: Vec<&str> = alike.map(|finding| finding.id).collect();
    if alike.is_empty() {
        return Ok(None);
    }
    Err(Stop::new(exit::USAGE, format!("no finding is called {id}; there are {}", alike.join(", "))))
}
