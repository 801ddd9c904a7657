//! Everything that reads bytes of others, each by a function of the bytes: for `fuzz/main.rs`, which invents them without
//! end, and for a test (`crates/cli/tests/all/foreign.rs`) and `fuzz/changes.rs`, which change known ones a little.
//!
//! A target fails by a panic. What it has to hold besides is in its own assertions.

pub mod changes;
mod folder;
mod servers;

pub use folder::clean_up;

use std::{fs, io, path::Path, sync::LazyLock};

use tithe_analysis::{
    Analysis,
    report::{self, html::PageData, view::Form},
};
use tithe_harness::{
    agents::{
        agent::AllowedTarget,
        message::{self, Hello, Order, Reply, Report},
        query::{Query, QueryReply},
    },
    catalogue::catalogue,
};
use tithe_model::{catalogue::Catalogue, experiment::mask_passwords, parse, plan, slots, start_spread};
use tithe_plugin::wire::foreign::Parser;

use super::ROOT;

/// Targets that need nothing but public functions.
const OWN: &[Parser] = &[
    ("experiment", experiment),
    ("matrix", |bytes| drop(parse::matrix(&text(bytes)))),
    ("custom-protection", |bytes| drop(parse::custom_file("fuzzed", bytes))),
    ("url", urls),
    ("start-spread", |bytes| drop(start_spread::read(&text(bytes), "sqlite"))),
    ("slots-row", |bytes| drop(slots::read(&text(bytes), slots::columns_of(slots::COLUMNS).unwrap_or_default()))),
    ("agent-message", |bytes| {
        let _ = (message::read::<Hello>(bytes), message::read::<Report>(bytes));
        let _ = (message::read::<Order>(bytes).is_some(), message::read::<Reply>(bytes).is_some());
        let _ = (message::read::<Query>(bytes).is_some(), message::read::<QueryReply>(bytes).is_some());
    }),
    ("agent-target", |bytes| drop(AllowedTarget::parse(&text(bytes)))),
    ("report", |bytes| {
        if let Ok((analysis, page_data)) = report::json::read(&text(bytes)) {
            render(&analysis, &page_data);
        }
    }),
];

/// All targets.
pub fn all() -> Vec<Parser> {
    let mut all = OWN.to_vec();
    all.extend(folder::TARGETS);
    all.extend(servers::TARGETS);
    all.extend(tithe_plugin::wire::foreign::PARSERS);
    all.extend(tithe_harness::volumes::foreign::PARSERS);
    all.extend(tithe_workloads::foreign::PARSERS);
    all.extend(tithe_databases::postgres::foreign::PARSERS);
    all.extend(tithe_databases::mysql::foreign::PARSERS);
    all.extend(tithe_databases::mariadb::foreign::PARSERS);
    all.extend(tithe_databases::redis::foreign::PARSERS);
    all.extend(tithe_databases::memcached::foreign::PARSERS);
    all.extend(tithe_databases::etcd::foreign::PARSERS);
    all.extend(tithe_databases::cassandra::foreign::PARSERS);
    all.extend(tithe_databases::opensearch::foreign::PARSERS);
    #[cfg(feature = "mongodb")]
    all.extend(tithe_databases::mongodb::foreign::PARSERS);
    #[cfg(feature = "wiredtiger")]
    all.extend(tithe_databases::wiredtiger::foreign::PARSERS);
    #[cfg(feature = "agents")]
    all.extend(tithe_broker::foreign::PARSERS);
    all
}

/// Inputs from which the fuzzer starts: those of `fuzz/corpus`, further files of this repository, and files that are
/// made.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    let (logs, outputs) = ("crates/workloads/src/replay/samples/", "crates/workloads/src/program/golden/");
    let (folder, files): (&str, &[&str]) = match name {
        "experiment" => ("", &["experiments", "experiments/attached", "experiments/hosts"]),
        "matrix" => ("", &["experiments/hosts/matrix.toml"]),
        "custom-protection" => ("crates/databases/protections/", &["postgres", "redis", "mariadb"]),
        "report" => ("docs/reports/", &["data"]),
        "log-csvlog" => (logs, &["postgres.csv", "statement-duration.csv"]),
        "log-jsonlog" => (logs, &["postgres.json"]),
        "log-stderr" => (logs, &["postgres.log", "pgaudit.log"]),
        "log-general" => (logs, &["general.log"]),
        "log-slow" => (logs, &["slow.log"]),
        "log-server-audit" => (logs, &["server-audit.log"]),
        "output-pgbench" => (outputs, &["pgbench.txt", "pgbench-rate.txt"]),
        "output-pgbench-log" => (outputs, &["pgbench-log.txt", "pgbench-rate-log.txt"]),
        "output-sysbench" => (outputs, &["sysbench-mysql.txt", "sysbench-pgsql.txt"]),
        _ => ("", &[]),
    };
    let root = Path::new(ROOT);
    let known = files.iter().map(|file| root.join(folder.to_owned() + file));
    let mut files = Vec::new();
    for place in known.chain([root.join("fuzz/corpus").join(name)]) {
        match fs::read_dir(&place) {
            Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => files.push(place),
        }
    }
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files.iter().filter_map(|file| fs::read(file).ok()).collect();
    seeds.retain(|seed| seed.len() < LARGEST_SEED);
    seeds.extend(folder::seed(name));
    seeds
}

/// Larger ones are read too slowly.
const LARGEST_SEED: usize = 100_000;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The catalogue of this build.
fn offered() -> &'static Catalogue {
    static OFFERED: LazyLock<Catalogue> = LazyLock::new(|| catalogue(tithe_databases::all()));
    &OFFERED
}

/// Reads an experiment, plans it, and reports every mistake.
fn experiment(bytes: &[u8]) {
    let refused = |_: &str| Err(io::Error::other("no file is read"));
    let text = text(bytes);
    assert_eq!(mask_passwords(&text).len(), text.len());
    match parse::parse_bytes(bytes, offered(), &refused) {
        Ok(experiment) => drop(plan::plan(experiment, offered())),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
}

/// No URL makes a product panic, and no error quotes its password.
fn urls(bytes: &[u8]) {
    const PASSWORD: &str = "hunter2";
    let (text, setup) = (text(bytes), tithe_plugin::setup::Setup::bare());
    if text.contains(PASSWORD) {
        return;
    }
    for database in tithe_databases::all() {
        for scheme in database.entry().schemes {
            let url = tithe_model::experiment::Url::new(format!("{scheme}://ann:{PASSWORD}{text}"));
            let fault = database.check_url(&url, &setup).err().map(|fault| fault.to_string());
            assert!(!fault.iter().any(|words| words.contains(PASSWORD)), "{fault:?}");
            let _ = (database.endpoint(&url), database.remarks(&url, &setup));
        }
    }
}

/// Writes a report in every format.
fn render(analysis: &Analysis, page_data: &PageData) {
    for form in [Form::Answer, Form::Short, Form::Long] {
        report::terminal::render(analysis, report::terminal::Options { form, ..Default::default() });
        report::markdown::render(analysis, form);
    }
    let _ = (report::html::render(analysis, page_data), report::csv::render(analysis));
    let _ = (report::benchstat::render(analysis), report::bencher::render(analysis), report::otava::render(analysis));
    let _ = report::json::render(analysis, page_data);
    if let Ok(assessment) = report::observation::of_run(analysis) {
        let _ = (report::oscal::render(&assessment), report::sarif::render(&assessment));
    }
}
