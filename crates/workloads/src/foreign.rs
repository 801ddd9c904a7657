//! The parsers of this crate for bytes that others wrote, for `fuzz/targets`: no input may make one panic, hang or
//! take more memory than a multiple of its length.

use std::collections::BTreeMap;

use tithe_model::catalogue::{PropertyFile, WorkloadEntry};
use tithe_plugin::wire::foreign::Parser;

use crate::{
    KINDS,
    dump::{head, restore},
    production::parameters,
    program::{output, pgbench_script, sysbench_options, words},
    replay::{self, config::Config, readers::prefix::Prefix, sql},
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("log-csvlog", |bytes| log("csvlog", bytes)),
    ("log-jsonlog", |bytes| log("jsonlog", bytes)),
    ("log-stderr", |bytes| log("stderr", bytes)),
    ("log-general", |bytes| log("general-log", bytes)),
    ("log-slow", |bytes| log("slow-log", bytes)),
    ("log-server-audit", |bytes| log("server-audit", bytes)),
    ("log-prefix", |bytes| {
        let (written, line) = halves(bytes);
        if let Ok(prefix) = Prefix::parse(&written) {
            let _ = prefix.find(&line);
        }
    }),
    ("sql-postgres", |bytes| statement(sql::Flavour::Postgres, bytes)),
    ("sql-mysql", |bytes| statement(sql::Flavour::MySql, bytes)),
    ("script", |bytes| properties("script", bytes)),
    ("pgbench-script", |bytes| {
        let _ = pgbench_script::undefined(&text(bytes), std::iter::empty(), &[]);
    }),
    ("properties-ycsb", |bytes| properties("ycsb", bytes)),
    ("properties-tpcc", |bytes| properties("tpcc", bytes)),
    ("properties-sysbench", |bytes| {
        let mut problems = Vec::new();
        let read = sysbench_options::read(&text(bytes));
        let _ = sysbench_options::Options::of(&read, true, &mut problems).arguments();
    }),
    ("words", |bytes| {
        let _ = words::split(&text(bytes));
        let _ = words::fill(&text(bytes), &|_| Some(String::new()));
    }),
    ("output-pgbench", |bytes| drop(output::pgbench(&text(bytes)))),
    ("output-pgbench-log", |bytes| drop(output::Log::default().add(&text(bytes), bytes.len().is_multiple_of(2)))),
    ("output-sysbench", |bytes| drop(output::sysbench(&text(bytes)))),
    ("output-ycsb", |bytes| drop(output::ycsb(&text(bytes)))),
    ("output-lines", |bytes| drop(output::lines(&text(bytes)))),
    ("dump-head", |bytes| drop(head::read(bytes))),
    ("dump-roles", |bytes| drop(restore::roles(bytes))),
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text before the first zero byte, and the one after it.
fn halves(bytes: &[u8]) -> (String, String) {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (text(&bytes[..at]), text(bytes.get(at + 1..).unwrap_or_default()))
}

/// Reads a log of this form, and what its statements need.
fn log(form: &str, bytes: &[u8]) {
    let asked = [("log", "fuzzed"), ("form", form), ("memory", "1")];
    let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (config, _) = Config::resolve(&BTreeMap::from(asked));
    if let Ok(replayed) = config.read_from(&mut &bytes[..], "fuzzed".to_owned()) {
        let _ = replay::own_tables::asked(&replayed);
    }
}

/// Splits a statement in every way that workloads have.
fn statement(flavour: sql::Flavour, bytes: &[u8]) {
    let text = text(bytes);
    let split: String = sql::pieces(&text, flavour).map(|(_, written)| written).collect();
    assert_eq!(split, text, "a piece is lost");
    let _ = (sql::parameters_of(&text, flavour), sql::shape(&text, flavour), sql::kind(&text, flavour));
    let _ = parameters::parsed(&text, flavour, &[]);
}

/// Reads a file of properties of this kind of workload, and checks what is in it.
fn properties(kind: &str, bytes: &[u8]) {
    let entries = KINDS.iter().map(|kind| (kind.entry)());
    let Some(WorkloadEntry { read, check, shape, asks, .. }) = entries.into_iter().find(|entry| entry.id == kind)
    else {
        return;
    };
    let file = PropertyFile { name: "fuzzed", weight: None, number: 1, bytes, protocol: None };
    if let Ok(read) = read(&file) {
        let _ = asks(&read);
        if check(&read).is_empty() {
            let _ = shape(&read);
        }
    }
}
