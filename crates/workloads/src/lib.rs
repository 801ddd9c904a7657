//! All workloads: what each does to a database, and how its properties are read. Pacing, clocks and records belong to
//! the harness.

pub mod bulk;
pub mod dump;
mod find;
#[doc(hidden)]
pub mod foreign;
mod libpq;
pub mod production;
pub mod program;
mod properties;
mod random_text;
pub mod replay;
pub mod scan;
pub mod script;
pub mod tpcc;
pub mod ycsb;

use tithe_model::{
    catalogue::{Properties, PropertyProblem, WorkloadEntry},
    experiment,
};
use tithe_plugin::workload::Workload;

use self::program::{command, pgbench, sysbench};

/// A kind of workload: its description in the catalogue, and how it is made.
pub struct Kind {
    /// For the catalogue.
    pub entry: fn() -> WorkloadEntry,
    /// Makes the workload of these properties on this data; every problem as (property, problem, help).
    pub make: Make,
}

/// Makes a workload on this data with this seed.
pub type Make = fn(&experiment::Workload, &experiment::Data, u64) -> Result<Box<dyn Workload>, Vec<PropertyProblem>>;

/// The property of workloads on the user's own tables that limits the size of copies, bytes.
const COPY_LIMIT: &str = "copy_limit";

/// The limit of copies among `properties`, bytes; adds its problem to `problems`.
fn copy_limit(properties: &Properties, problems: &mut Vec<PropertyProblem>) -> Option<u64> {
    let text = properties.get(COPY_LIMIT)?;
    let bytes = text.trim().parse().ok();
    if bytes.is_none() {
        let problem = format!("{text:?} is not a number of bytes");
        let help = "write it as a key of the workload: `copy_limit = \"10 GiB\"`".to_owned();
        problems.push((COPY_LIMIT.to_owned(), problem, help));
    }
    bytes
}

/// Every kind of workload. One line each.
pub const KINDS: &[Kind] = &[
    Kind { entry: ycsb::entry, make: ycsb::make },
    Kind { entry: tpcc::entry, make: tpcc::make },
    Kind { entry: bulk::entry, make: bulk::make },
    Kind { entry: scan::entry, make: scan::make },
    Kind { entry: script::entry, make: script::make },
    Kind { entry: pgbench::entry, make: pgbench::make },
    Kind { entry: sysbench::entry, make: sysbench::make },
    Kind { entry: command::entry, make: command::make },
    Kind { entry: replay::entry, make: replay::make },
    Kind { entry: production::entry, make: production::make },
];

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with its properties, as one text.
pub fn make(described: &experiment::Workload, data: &experiment::Data, seed: u64) -> Result<Box<dyn Workload>, String> {
    let kind = KINDS.iter().find(|kind| (kind.entry)().id == described.kind);
    let kind = kind.ok_or_else(|| format!("this build has no workload of kind {}", described.kind))?;
    let made = (kind.make)(described, data, seed).map_err(|problems| {
        let told = problems.into_iter().map(|(property, problem, help)| format!("{property}: {problem} ({help})"));
        told.collect::<Vec<_>>().join("; ")
    })?;
    match &described.prepare {
        Some(_) if made.restore().is_none() => {
            Err(format!("`prepare` is for statements of your own, and {} makes its own data", described.kind))
        }
        _ => Ok(made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_copies_that_is_no_number_is_refused() {
        let kinds = [("script", ("script", "SELECT 1")), ("replay", ("log", "x")), ("like_production", ("", ""))];
        for (id, needed) in kinds {
            let entry = KINDS.iter().map(|kind| (kind.entry)()).find(|entry| entry.id == id).expect("a kind");
            let is_refused = |limit: &str| {
                let pairs = [(COPY_LIMIT, limit), needed].into_iter().filter(|(name, _)| !name.is_empty());
                let properties = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                (entry.check)(&properties).iter().any(|(name, ..)| name == COPY_LIMIT)
            };
            assert_eq!(["10 GiB", "-1", "1000"].map(is_refused), [true, true, false], "{id}");
        }
    }
}
