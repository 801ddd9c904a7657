//! The names of YCSB's and go-ycsb's properties: which Tithe uses, which it ignores, and why.

use std::collections::BTreeMap;

use tithe_model::{catalogue::PropertyProblem, diagnostic};

/// Properties that Tithe uses, with the same meaning as in YCSB.
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
    "target",
    "threadcount",
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

/// Beginnings of names of YCSB itself, up to the dot. A name with any other beginning and a dot is a binding's:
/// `hbase.usepagefilter`, `tikv.pd`.
const OWN: [&str; 3] = ["exponential", "hdrhistogram", "measurement"];

/// Properties that Tithe accepts but does not use, and why. A name that ends in a full stop stands for all names that
/// begin with it.
const IGNORED: &[(&str, &str)] = &[
    ("batch.size", LOAD),
    ("batchsize", DATABASE),
    ("cache", DATABASE),
    ("clientbuffering", DATABASE),
    ("clustername", DATABASE),
    ("columnfamily", DATABASE),
    ("command", "the experiment loads and runs"),
    ("consistency", DATABASE),
    ("core_workload_insertion_keep_going_on_error", FAILURES),
    ("core_workload_insertion_retry_interval", FAILURES),
    ("core_workload_insertion_retry_limit", FAILURES),
    ("db", DATABASE),
    ("debug", DATABASE),
    ("debug.", MEASURES),
    ("dotransactions", "the experiment loads and runs"),
    ("dropdata", "Tithe drops what it has created"),
    ("durability", DATABASE),
    ("exporter", MEASURES),
    ("exportfile", MEASURES),
    ("hdrhistogram.", MEASURES),
    ("helperhost", DATABASE),
    ("histogram.", MEASURES),
    ("host", DATABASE),
    ("hosts", DATABASE),
    ("jointimeout", "the experiment loads and runs"),
    ("keytab", DATABASE),
    ("kudu_block_size", DATABASE),
    ("kudu_buffer_num_ops", DATABASE),
    ("kudu_master_addresses", DATABASE),
    ("kudu_partition_schema", DATABASE),
    ("kudu_pre_split_num_tablets", DATABASE),
    ("kudu_sync_ops", DATABASE),
    ("kudu_table_num_replicas", DATABASE),
    ("label", MEASURES),
    ("latencytrackederrors", MEASURES),
    ("maxexecutiontime", TIME),
    ("measurement.", MEASURES),
    ("measurementtype", MEASURES),
    ("outputstyle", MEASURES),
    ("password", DATABASE),
    ("port", DATABASE),
    ("ports", DATABASE),
    ("principal", DATABASE),
    ("readallfieldsbyname", "the database's session decides how all fields are asked for"),
    ("reportlatencyforeacherror", MEASURES),
    ("requesttimeout", DATABASE),
    ("silence", MEASURES),
    ("spin.sleep", LOAD),
    ("status", MEASURES),
    ("status.interval", MEASURES),
    ("storename", DATABASE),
    ("timeseries.", MEASURES),
    ("user", DATABASE),
    ("username", DATABASE),
    ("verbose", MEASURES),
    ("version", DATABASE),
    ("warmuptime", TIME),
    ("writebuffersize", DATABASE),
];

/// Properties of YCSB-C, a C++ port whose files are passed around as YCSB's, that change the work.
const OF_YCSB_C: [&str; 1] = ["keylength"];

/// The given properties that Tithe does not use, each with the reason.
pub fn ignored(properties: &BTreeMap<String, String>) -> Vec<(&str, &'static str)> {
    properties.keys().filter_map(|name| Some((name.as_str(), reason(name)?))).collect()
}

/// Why Tithe does not use property `name`; `None` if it does, or does not know it. Bindings sometimes write their own
/// names in capitals.
fn reason(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let stands_for = |entry: &str| entry == lower || (entry.ends_with('.') && lower.starts_with(entry));
    let known = IGNORED.iter().find(|(entry, _)| stands_for(entry)).map(|&(_, reason)| reason);
    known.or_else(|| of_a_binding(name).then_some(DATABASE))
}

/// True for a name with a dot that is not YCSB's own, nor a misspelling of one.
fn of_a_binding(name: &str) -> bool {
    let binding = name.split_once('.').map_or("", |(binding, _)| binding);
    !binding.is_empty() && !OWN.contains(&binding) && diagnostic::nearest(name, USED.iter().copied()).is_none()
}

/// A problem for each property that neither YCSB nor go-ycsb has.
pub(super) fn unknown(properties: &BTreeMap<String, String>) -> Vec<PropertyProblem> {
    let strange = properties.keys().filter(|name| !USED.contains(&name.as_str()) && reason(name).is_none());
    strange
        .map(|name| {
            let help = match nearest(name) {
                _ if OF_YCSB_C.contains(&name.as_str()) => {
                    "it is YCSB-C's, and YCSB's keys are `user` and a number: take it out, and see that the work is \
                     still what you mean"
                        .to_owned()
                }
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
        let names = ["maxexecutiontime", "mongodb.url", "measurement.interval", "recordcount", "db.passwd", "db"];
        let properties = names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let ignored: Vec<&str> = ignored(&properties).into_iter().map(|(name, _)| name).collect();
        assert_eq!(ignored, ["db", "db.passwd", "maxexecutiontime", "measurement.interval", "mongodb.url"]);
        assert_eq!(unknown(&properties), []);
    }

    #[test]
    fn names_of_all_bindings_are_left_aside_and_slips_are_not() {
        let one = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        for name in ["tikv.pd", "hbase.usepagefilter", "as.host", "es.hosts.list", "columnfamily", "clientBuffering"] {
            assert_eq!((unknown(&one(name)), ignored(&one(name)).len()), (vec![], 1), "{name}");
        }
        let told = |name: &str| unknown(&one(name)).pop().map(|(_, _, help)| help).unwrap_or_default();
        expect_test::expect![[r#"
            did you mean "exponential.frac"?
            take it out; a name is written exactly as in YCSB
            it is YCSB-C's, and YCSB's keys are `user` and a number: take it out, and see that the work is still what you mean
            take it out; a name is written exactly as in YCSB"#]]
        .assert_eq(&["exponentail.frac", "exponential.sharpness", "keylength", "encryption"].map(told).join("\n"));
    }

    #[test]
    fn the_nearest_name_is_suggested_only_when_it_is_near() {
        assert_eq!(nearest("recordCont"), Some("recordcount"));
        assert_eq!(nearest("treadcount"), Some("threadcount"));
        assert_eq!(nearest("encryption"), None);
    }
}
