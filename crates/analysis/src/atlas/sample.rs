//! An atlas made by hand, for the tests of both renderers.

use super::{
    Atlas, AtlasRun, KeptRun, Kind, Offered,
    entry::{Source, entry},
    of,
};
use crate::{Analysis, report::sample};

/// The analysis with its cells called by these workloads and resources, measured on the boot `boot`.
pub(crate) fn named(mut analysis: Analysis, boot: &str, names: &[(&str, &str)]) -> Analysis {
    for (cell, (workload, resources)) in analysis.cells.iter_mut().zip(names) {
        (*workload).clone_into(&mut cell.workload);
        (*resources).clone_into(&mut cell.resources);
        cell.host.load = 1.5;
        cell.host.steal = Some(0.0004);
    }
    analysis.began_unix_s = Some(1_763_712_720);
    boot.clone_into(&mut analysis.machine.boot);
    analysis
}

pub(crate) fn source(experiment: &str) -> Source<'_> {
    Source { tithe: "0.1.0", experiment: Some(experiment), commit: "1234abcd", damage: &[] }
}

/// The run behind an analysis.
pub(crate) fn kept(analysis: &Analysis, experiment: &str) -> KeptRun {
    let run: AtlasRun = entry(analysis, &source(experiment)).expect("a run that qualifies");
    KeptRun { file: run.file_name(), run }
}

/// Reads on `boot`, with costs that are `more` times as high.
fn reads(boot: &str, more: f64) -> KeptRun {
    let mut analysis = named(sample::full(), boot, &[("reads", "in memory")]);
    for estimate in analysis.cells[0].arms.iter_mut().flat_map(|arm| &mut arm.estimates) {
        for end in [&mut estimate.effect.estimate, &mut estimate.effect.low, &mut estimate.effect.high] {
            *end *= more;
        }
    }
    kept(&analysis, "postgres")
}

pub(crate) fn offered() -> Vec<Offered> {
    let product = |database: &str, title: &str, protections: &[&str], without: Vec<(Kind, &'static str)>| Offered {
        database: database.to_owned(),
        title: title.to_owned(),
        protections: protections.iter().map(|id| (*id).to_owned()).collect(),
        without,
    };
    vec![
        product(
            "redis",
            "Redis <6>",
            &["tls", "acl"],
            vec![(Kind::ReadsBeyondCache, "it keeps all records in memory")],
        ),
        product("postgresql", "PostgreSQL", &["tls", "audit", "luks", "scram"], Vec::new()),
    ]
}

/// Reads on three hosts, updates and a bulk load on one of them.
pub(crate) fn full() -> Atlas {
    let updates = named(sample::controlled(), "aa11aa11aa11", &[("half updates", ""), ("bulk load", "")]);
    let runs =
        [("aa11aa11aa11", 1.0), ("bb22bb22bb22", 1.1), ("cc33cc33cc33", 0.8)].map(|(boot, more)| reads(boot, more));
    of(runs.into_iter().chain([kept(&updates, "postgres-updates")]).collect(), &offered())
}
