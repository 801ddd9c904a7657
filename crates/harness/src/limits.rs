//! The limits of the servers of a cell, as the experiment sets them, and whether this machine can enforce them.

use std::collections::BTreeMap;

use tithe_machine::{
    cgroup::{self, GroupLimits},
    launch::Missing,
    proc::value,
};
use tithe_model::{
    experiment::{self, Experiment},
    quantity::size,
};
use tithe_plugin::database::Database;

/// The limits of every server under resources number `resources` with workload number `workload`.
pub fn of_cell(experiment: &Experiment, workload: usize, resources: usize) -> GroupLimits {
    let limits = experiment.resources[resources].limits;
    // A limit below the minimum size of a data set is refused later, as too small for the server.
    let memory_bytes = limits.memory.map(|memory| memory.bytes(data_bytes(experiment, workload)));
    GroupLimits { cpus: limits.cpus, memory_bytes, account: false }
}

/// Size of the data set of workload number `workload`, bytes, as [`Experiment::data_bytes`].
pub fn data_bytes(experiment: &Experiment, workload: usize) -> u64 {
    let described = &experiment.workloads[workload];
    let entry = tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).find(|entry| entry.id == described.kind);
    experiment.data_bytes(entry.map_or(0, |entry| (entry.shape)(&described.properties).record_bytes))
}

/// Limits that this machine cannot enforce, or that are too small for `database`, and memory that this machine lacks.
pub fn missing(database: &dyn Database, experiment: &Experiment) -> Vec<Missing> {
    let mut all: Vec<Missing> = Vec::new();
    for (resources, described) in experiment.resources.iter().enumerate() {
        let needed = needed(database, experiment, described).zip(machine_bytes());
        let beyond = needed.and_then(|(needed, have)| beyond(database.title(), needed, have));
        all.extend(beyond.filter(|beyond| !all.contains(beyond)));
        for workload in 0..experiment.workloads.len() {
            let limits = of_cell(experiment, workload, resources);
            let kept = described.limits.confine().then(|| cgroup::lacks(limits)).flatten();
            let found = kept.map(not_kept).or_else(|| too_small(database, experiment, described, limits));
            all.extend(found.filter(|found| !all.contains(found)));
        }
    }
    all
}

fn not_kept(reason: String) -> Missing {
    Missing {
        what: "what `cpus` and `memory` need (control groups)".to_owned(),
        looked_in: vec![reason],
        how_to_install: vec![
            "run tithe as root on a system that mounts the controllers cpu and memory; or leave out `cpus` and `memory`"
                .to_owned(),
        ],
    }
}

fn too_small(
    database: &dyn Database,
    experiment: &Experiment,
    described: &experiment::Resources,
    limits: GroupLimits,
) -> Option<Missing> {
    let (limit, needed) = (limits.memory_bytes?, needed(database, experiment, described)?);
    (limit < needed).then(|| Missing {
        what: format!("enough memory for {}", database.title()),
        looked_in: vec![format!(
            "resources {:?}: a limit of {}, and a server with these settings needs {}",
            described.name,
            size(limit),
            size(needed)
        )],
        how_to_install: vec![
            "allow more memory, load more data, or set a smaller buffer pool in `settings`".to_owned(),
        ],
    })
}

/// What is missing if a server of the product `title` alone needs more memory than this machine has.
fn beyond(title: &str, needed: u64, have: u64) -> Option<Missing> {
    (needed > have).then(|| Missing {
        what: format!("enough memory for {title}"),
        looked_in: vec![format!(
            "this machine has {}, and a server with these settings needs {}",
            size(have),
            size(needed)
        )],
        how_to_install: vec!["set less memory in `settings`".to_owned()],
    })
}

/// Memory of this machine, bytes.
fn machine_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    value(&meminfo, "MemTotal:")?.checked_mul(1024)
}

/// A warning for a cell with these `resources` if its servers may together need more memory than this machine has;
/// `None` if they do not, or if that is unknown.
///
/// All servers of a cell run at once, in every design: a paused server keeps its memory.
pub fn crowding(database: &dyn Database, experiment: &Experiment, resources: usize) -> Option<String> {
    let servers = experiment.arms.iter().filter(|arm| arm.url.is_none()).count() as u64;
    crowded(servers, needed(database, experiment, &experiment.resources[resources])?, machine_bytes()?)
}

/// The warning for this number of `servers` that may each need `needed` bytes, on a machine that has `have`; `None` if
/// they fit.
fn crowded(servers: u64, needed: u64, have: u64) -> Option<String> {
    (servers.saturating_mul(needed) > have).then(|| {
        format!(
            "with these settings {servers} servers may need {} each, and this machine has {}: once their buffers fill they take \
             memory from each other; set smaller buffers, or measure fewer arms",
            size(needed),
            size(have)
        )
    })
}

/// What a server needs with the settings of `described`, bytes.
fn needed(database: &dyn Database, experiment: &Experiment, described: &experiment::Resources) -> Option<u64> {
    let mut settings: BTreeMap<String, String> = experiment.settings.clone();
    settings.extend(described.settings.clone());
    database.memory_needed(&settings)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_machine::{
        fault::Fault,
        launch::{Install, Launch, Place, Search, Server},
    };
    use tithe_model::{
        catalogue::DatabaseEntry,
        experiment::{Memory, Url},
        record::ArmFacts,
    };
    use tithe_plugin::{
        database::Connect,
        session::{Session, Table},
        setup::Setup,
        simulated::Simulated,
    };

    use super::*;

    /// The simulated database, of which a server needs what its setting `pool` says.
    struct Pooled;

    impl Database for Pooled {
        fn entry(&self) -> &'static DatabaseEntry {
            Simulated.entry()
        }

        fn memory_needed(&self, settings: &BTreeMap<String, String>) -> Option<u64> {
            settings.get("pool")?.parse().ok()
        }

        fn find(&self, search: &Search) -> Result<Install, Missing> {
            Simulated.find(search)
        }

        fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
            Simulated.launch(install, setup, place)
        }

        fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
            Simulated.connect(server, setup, how)
        }

        fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
            Simulated.create(server, setup, table)
        }

        fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
            Simulated.remove(server, setup, table)
        }

        fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
            Simulated.quiesce(server, setup, table)
        }

        fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
            Simulated.facts(server, setup)
        }
    }

    /// Two arms with a thousand records, and servers that need `pool` bytes.
    fn experiment(pool: u64) -> Experiment {
        const TEXT: &str = "title = \"t\"\ndatabase = \"simulated\"\ndata.records = 1000\n[[workload]]\nycsb = \"c\"\n\
            [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";
        let mut experiment = crate::catalogue::tests::read(TEXT);
        experiment.settings.insert("pool".to_owned(), pool.to_string());
        experiment
    }

    #[test]
    fn servers_that_do_not_fit_together_are_told() {
        assert_eq!(crowded(3, 8 << 30, 24 << 30), None);
        expect![[r#"with these settings 3 servers may need 8.6 GB each, and this machine has 24.7 GB: once their buffers fill they take memory from each other; set smaller buffers, or measure fewer arms"#]]
            .assert_eq(&crowded(3, 8 << 30, 23 << 30).expect("a warning"));
        assert!(crowded(u64::MAX, 2, 5).is_some());
    }

    #[test]
    fn a_server_that_needs_more_than_the_machine_has_is_refused() {
        assert_eq!(beyond("OpenSearch", 24 << 30, 24 << 30), None);
        let missing = beyond("OpenSearch", (24 << 30) + 1, 24 << 30).expect("refused");
        assert_eq!(missing.looked_in, ["this machine has 25.8 GB, and a server with these settings needs 25.8 GB"]);
        assert_eq!((missing.what.as_str(), missing.how_to_install.len()), ("enough memory for OpenSearch", 1));
    }

    #[test]
    fn a_limit_follows_from_the_data_and_is_held_against_what_a_server_needs() {
        let data = data_bytes(&experiment(0), 0);
        assert!((1_000_000..1_500_000).contains(&data), "{data}");
        let limited = |pool: u64, memory: Option<Memory>| {
            let mut experiment = experiment(pool);
            let limits = &mut experiment.resources[0].limits;
            (limits.cpus, limits.memory) = (Some(0.5), memory);
            experiment
        };
        let half = Some(Memory::DataPer(2.0));
        let limits = of_cell(&limited(0, half), 0, 0);
        assert_eq!((limits.cpus, limits.memory_bytes, limits.account), (Some(0.5), Some(data / 2), false));
        let refused = |experiment: &Experiment| {
            let (described, limits) = (&experiment.resources[0], of_cell(experiment, 0, 0));
            too_small(&Pooled, experiment, described, limits).map(|missing| missing.what)
        };
        let words = Some("enough memory for simulated database".to_owned());
        assert_eq!(refused(&limited(data / 2, half)), None);
        assert_eq!(refused(&limited(data / 2 + 1, half)), words);
        assert_eq!(refused(&limited(data / 2 + 1, None)), None, "no limit");
        let mut smaller = limited(data, half);
        smaller.resources[0].settings.insert("pool".to_owned(), "1".to_owned());
        assert_eq!(refused(&smaller), None, "these resources have a smaller one");
    }

    #[test]
    fn what_this_machine_lacks_is_told_once() {
        let mut large = experiment(u64::MAX);
        large.resources.push(large.resources[0].clone());
        let told = |experiment: &Experiment| missing(&Pooled, experiment).len();
        assert_eq!((told(&large), told(&experiment(1))), (1, 0));
        let have = machine_bytes().expect("the memory of this machine");
        let mut both = experiment(have / 2 + 1);
        assert!(crowding(&Pooled, &both, 0).is_some(), "of two servers each needs more than a half");
        // A server that Tithe does not start may be elsewhere.
        both.arms[1].url = Some(Url::new("simulated://there"));
        assert_eq!(crowding(&Pooled, &both, 0), None);
    }
}
