//! The names of YCSB's and go-ycsb's properties: which Tithe uses, which it leaves aside, and why.

use std::collections::BTreeMap;

use tithe_model::{catalogue::PropertyProblem, diagnostic};

/// Properties that Tithe uses, with the meaning that they have in YCSB.
const USED: &[&str] = &[
    "dataintegrity",
    "exponential.frac",
    "exponential.percentile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "keyprefix",
    "maxscanlength",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readallfields",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "table",
    "updateproportion",
    "workload",
    "writeallfields",
    "zeropadding",
];

const LOAD: &str = "the experiment's [load] decides it";
const TIME: &str = "the experiment's [measure] decides it";
const MEASURES: &str = "Tithe measures and reports by itself";
const DATABASE: &str = "the experiment's database and arms decide it";
const FAILURES: &str = "a failed operation is counted and not repeated";

/// Properties that Tithe accepts and does not use, and why. A name that ends in a full stop stands for all
/// names that begin with it.
const IGNORED: &[(&str, &str)] = &[
    ("basicdb.", DATABASE),
    ("batch.size", LOAD),
    ("cassandra.", DATABASE),
    ("command", "the experiment loads and runs"),
    ("core_workload_insertion_keep_going_on_error", FAILURES),
    ("core_workload_insertion_retry_interval", FAILURES),
    ("core_workload_insertion_retry_limit", FAILURES),
    ("db", DATABASE),
    ("db.", DATABASE),
    ("debug.", MEASURES),
    ("dotransactions", "the experiment loads and runs"),
    ("dropdata", "Tithe drops what it has created"),
    ("exporter", MEASURES),
    ("exportfile", MEASURES),
    ("hdrhistogram.", MEASURES),
    ("histogram.", MEASURES),
    ("hosts", DATABASE),
    ("jdbc.", DATABASE),
    ("label", MEASURES),
    ("latencytrackederrors", MEASURES),
    ("maxexecutiontime", TIME),
    ("measurement.", MEASURES),
    ("measurementtype", MEASURES),
    ("mongodb.", DATABASE),
    ("mysql.", DATABASE),
    ("outputstyle", MEASURES),
    ("pg.", DATABASE),
    ("port", DATABASE),
    ("readallfieldsbyname", "the database's session decides how all fields are asked for"),
    ("redis.", DATABASE),
    ("reportlatencyforeacherror", MEASURES),
    ("silence", MEASURES),
    ("spin.sleep", LOAD),
    ("sqlite.", DATABASE),
    ("status", MEASURES),
    ("status.interval", MEASURES),
    ("target", LOAD),
    ("threadcount", LOAD),
    ("timeseries.", MEASURES),
    ("verbose", MEASURES),
    ("warmuptime", TIME),
];

/// The given properties that Tithe does not use, each with the reason.
pub fn ignored(properties: &BTreeMap<String, String>) -> Vec<(&str, &'static str)> {
    properties.keys().filter_map(|name| Some((name.as_str(), reason(name)?))).collect()
}

/// Why Tithe does not use property `name`; `None` when it does, or does not know it.
fn reason(name: &str) -> Option<&'static str> {
    let stands_for = |entry: &str| entry == name || (entry.ends_with('.') && name.starts_with(entry));
    IGNORED.iter().find(|(entry, _)| stands_for(entry)).map(|&(_, reason)| reason)
}

/// A problem for each property that neither YCSB nor go-ycsb has.
pub(super) fn unknown(properties: &BTreeMap<String, String>) -> Vec<PropertyProblem> {
    let strange = properties.keys().filter(|name| !USED.contains(&name.as_str()) && reason(name).is_none());
    strange
        .map(|name| {
            let help = match nearest(name) {
                Some(known) => format!("did you mean \"{known}\"?"),
                None => "take it out; a name is written exactly as in YCSB".to_owned(),
            };
            (name.clone(), "YCSB's core workload has no such property".to_owned(), help)
        })
        .collect()
}

/// The known name that `name` was probably meant to be.
fn nearest(name: &str) -> Option<&'static str> {
    let ignored = IGNORED.iter().map(|&(name, _)| name).filter(|name| !name.ends_with('.'));
    diagnostic::nearest(name, USED.iter().copied().chain(ignored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_bindings_and_measurements_are_accepted_with_a_reason() {
        let names = ["threadcount", "mongodb.url", "measurement.interval", "recordcount", "db.passwd", "db"];
        let properties = names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let ignored: Vec<&str> = ignored(&properties).into_iter().map(|(name, _)| name).collect();
        assert_eq!(ignored, ["db", "db.passwd", "measurement.interval", "mongodb.url", "threadcount"]);
        assert_eq!(unknown(&properties), []);
    }

    #[test]
    fn the_nearest_name_is_suggested_only_when_it_is_near() {
        assert_eq!(nearest("recordCont"), Some("recordcount"));
        assert_eq!(nearest("treadcount"), Some("threadcount"));
        assert_eq!(nearest("encryption"), None);
    }
}
