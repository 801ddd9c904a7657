//! An atlas made by hand, for the tests of both renderers.

use tithe_model::profile::Side;

use super::{
    Atlas, AtlasRun, KeptRun, Kind, Offered,
    entry::{Source, entry},
    of,
};
use crate::{Analysis, ArmProfile, CellProfile, Interval, Part, report::sample};

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
pub(crate) fn on_host(boot: &str, more: f64) -> KeptRun {
    let mut analysis = named(sample::full(), boot, &[("reads", "in memory")]);
    for estimate in analysis.cells[0].arms.iter_mut().flat_map(|arm| &mut arm.estimates) {
        for end in [&mut estimate.effect.estimate, &mut estimate.effect.low, &mut estimate.effect.high] {
            *end *= more;
        }
    }
    analysis.cells[0].profile = Some(profile(15.6 * more));
    kept(&analysis, "postgres")
}

/// A profile of the arm `tls`, which adds `sum` µs in two parts that are named and in others.
fn profile(sum: f64) -> CellProfile {
    let around = |estimate: f64| Interval { estimate, low: 0.9 * estimate, high: 1.1 * estimate };
    let part = |side: Side, component: &str, share: f64| Part {
        side,
        component: component.to_owned(),
        function: String::new(),
        plain: 0.0,
        difference: around(share * sum),
        p: 0.001,
        lever: String::new(),
    };
    let arm = ArmProfile {
        name: "tls".to_owned(),
        cost: None,
        sum: around(sum),
        adds_up: None,
        resolves: 0.1,
        sides: Vec::new(),
        components: vec![
            part(Side::Kernel, "kworker: encryption", 2.0),
            part(Side::Server, "TLS <1.3>", 0.5),
            part(Side::Client, "TLS", 0.25),
        ],
        elsewhere: around(0.25 * sum),
        functions: Vec::new(),
        stacks: Vec::new(),
    };
    CellProfile {
        frames: 20,
        starts: 8,
        invalid: Vec::new(),
        samples: 40_000,
        lost: 0,
        elsewhere: 0,
        rate: 1000.0,
        overhead: None,
        arms: vec![arm],
    }
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
        [("aa11aa11aa11", 1.0), ("bb22bb22bb22", 1.1), ("cc33cc33cc33", 0.8)].map(|(boot, more)| on_host(boot, more));
    of(runs.into_iter().chain([kept(&updates, "postgres-updates")]).collect(), &offered())
}
