//! Keys of an experiment whose defaults come from property files: the experiment's own keys win.

use std::ops::{Range, RangeInclusive};

use super::{
    CLIENTS_MAX,
    reader::{Problems, Table},
};
use crate::{
    catalogue::{Asked, AskedOf},
    experiment::RATES_PER_S,
    wording,
};

/// The defaults that the properties of one workload set.
pub(super) struct AskedBy {
    /// The key and its default.
    pub asked: Asked,
    /// The workload.
    pub workload: String,
    /// The place of its source's name.
    pub range: Range<usize>,
}

/// Defaults of keys that the experiment does not have.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Defaults {
    /// `records` of `[data]`.
    pub records: Option<u64>,
    /// `clients` of `[load]`.
    pub clients: Option<u32>,
    /// `rate` of `[load]`.
    pub rate: Option<f64>,
}

impl Defaults {
    /// The defaults in `asked`; complains if the experiment leaves out a key about which its workloads disagree.
    pub fn of(top: &Table<'_>, asked: &[AskedBy], problems: &mut Problems) -> Self {
        let mut one = |of: AskedOf, limits: RangeInclusive<f64>| {
            if gives(top, of) {
                return None;
            }
            let mut all = asked.iter().filter(|one| one.asked.of == of);
            let first = all.next()?;
            let (key, value) = (of.key(), first.asked.value);
            let help = format!("write `{key}` in `{}`, which takes precedence", of.table());
            if let Some(other) = all.find(|other| other.asked.value != value) {
                let problem = format!(
                    "`{}` is {value} in workload {} and {} in workload {}, and one experiment has one `{key}`",
                    first.asked.property,
                    wording::quote(&first.workload),
                    other.asked.value,
                    wording::quote(&other.workload),
                );
                problems.at(other.range.clone(), problem, help);
            } else if !limits.contains(&value) {
                let problem = format!(
                    "`{}` of workload {} is {value}, and `{key}` must be from {} to {}",
                    first.asked.property,
                    wording::quote(&first.workload),
                    limits.start(),
                    limits.end()
                );
                problems.at(first.range.clone(), problem, help);
            }
            Some(value)
        };
        Self {
            records: one(AskedOf::Records, 1.0..=RECORDS_MAX).map(|records| records as u64),
            clients: one(AskedOf::Clients, 1.0..=CLIENTS_MAX as f64).map(|clients| clients as u32),
            rate: one(AskedOf::Rate, RATES_PER_S),
        }
    }
}

/// Most records that a property file can ask for.
const RECORDS_MAX: f64 = 1e12;

/// True if the experiment itself sets `of`. A sweep over clients finds its own rate.
fn gives(top: &Table<'_>, of: AskedOf) -> bool {
    let table = match of {
        AskedOf::Records => top.get("data"),
        AskedOf::Clients | AskedOf::Rate => top.get("load"),
    };
    let value = |key: &str| {
        let table = table.as_ref()?.value.as_table()?;
        table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value.get_ref())
    };
    let sweeps = || value("clients").is_some_and(|clients| clients.as_integer().is_none());
    value(of.key()).is_some() || of == AskedOf::Rate && sweeps()
}
