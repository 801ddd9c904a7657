//! The six core workloads of YCSB, as data for the catalogue.

use tithe_model::catalogue::WorkloadEntry;

use super::{config, properties};

/// A preset: its name, one sentence, its properties.
type Preset = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The properties of YCSB's files `workloada` to `workloadf`, without the number of records and operations, which an
/// experiment sets.
///
/// Cooper, Silberstein, Tam, Ramakrishnan, Sears, "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
pub const PRESETS: &[Preset] = &[
    (
        "a",
        "Half reads, half updates: a session store",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "0.5"),
            ("updateproportion", "0.5"),
            ("scanproportion", "0"),
            ("insertproportion", "0"),
            ("requestdistribution", "zipfian"),
        ],
    ),
    (
        "b",
        "95 % reads, 5 % updates: tags on photographs",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "0.95"),
            ("updateproportion", "0.05"),
            ("scanproportion", "0"),
            ("insertproportion", "0"),
            ("requestdistribution", "zipfian"),
        ],
    ),
    (
        "c",
        "Reads only: a cache of user profiles",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "1"),
            ("updateproportion", "0"),
            ("scanproportion", "0"),
            ("insertproportion", "0"),
            ("requestdistribution", "zipfian"),
        ],
    ),
    (
        "d",
        "95 % reads of the latest records, 5 % inserts: status messages",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "0.95"),
            ("updateproportion", "0"),
            ("scanproportion", "0"),
            ("insertproportion", "0.05"),
            ("requestdistribution", "latest"),
        ],
    ),
    (
        "e",
        "95 % scans of up to 100 records, 5 % inserts: threads of a conversation",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "0"),
            ("updateproportion", "0"),
            ("scanproportion", "0.95"),
            ("insertproportion", "0.05"),
            ("requestdistribution", "zipfian"),
            ("maxscanlength", "100"),
            ("scanlengthdistribution", "uniform"),
        ],
    ),
    (
        "f",
        "Half reads, half read-modify-writes: a user database",
        &[
            ("workload", CORE),
            ("readallfields", "true"),
            ("readproportion", "0.5"),
            ("updateproportion", "0"),
            ("scanproportion", "0"),
            ("insertproportion", "0"),
            ("readmodifywriteproportion", "0.5"),
            ("requestdistribution", "zipfian"),
        ],
    ),
];

const CORE: &str = "site.ycsb.workloads.CoreWorkload";

/// YCSB for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "ycsb",
        title: "YCSB",
        presets: PRESETS,
        file: "a property file of YCSB",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &[],
        read: properties::read,
        asks: config::asks,
        check: config::check,
        shape: config::shape,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn ready_sets_have_no_problem() {
        for (name, _, properties) in PRESETS {
            let properties: BTreeMap<String, String> =
                properties.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!((entry().check)(&properties), [], "workload {name}");
        }
    }
}
