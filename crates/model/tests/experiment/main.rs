//! Experiment files in, experiments, plans or diagnostics out.

mod accepted;
mod asked;
mod catalogue;
mod changes;
mod claims;
mod composed;
mod diagnostics;
mod keys;
mod laws;
mod limits;
mod matrix;
mod plans;
mod properties;
mod reach;
mod read;
mod servers;

use tithe_model::{diagnostic::Diagnostic, experiment::Experiment, parse::parse};

/// The example with everything that launched servers can have.
const FULL: &str = r#"
title = "What TLS and the audit log of PostgreSQL cost"
database = "postgres"

[settings]
shared_buffers = "256MB"
max_wal_size = 1_000
fsync = true
pgaudit.log_parameter = "off"

[data]
records = 100_000
values = "incompressible"

[load]
clients = 2
rate = 2000
arrivals = "poisson"

[measure]
precision = "1%"
budget = "15 min"
seed = 1
margin = "3%"
primary = "net"
epochs = 3
slot = "250 ms"

[[resources]]
name = "in memory"
settings = { cache_size = "-65536" }
clients = 4

[[resources]]
name = "on disk"

[[workload]]
name = "c"
ycsb = "c"
properties = { requestdistribution = "zipfian", exponential.percentile = 95 }

[[workload]]
ycsb_file = "workloads/mine.properties"

[[arm]]
name = "plain"

[[arm]]
name = "tls"
protections = [{ use = "tls" }]

[[arm]]
name = "all"
protections = [{ use = "tls" }, { use = "pgaudit", log = "read,write" }, { use = "columns", share = 0.5 }]
"#;

/// The shortest experiment.
const SHORT: &str = r#"
title = "TLS"
database = "postgres"
[data]
records = 1000
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "tls"
protections = [{ use = "tls" }]
"#;

fn read_experiment(text: &str) -> Result<Experiment, Vec<Diagnostic>> {
    parse(text, &catalogue::catalogue(), &catalogue::read)
}

/// `line:column problem (help)`, one per line.
fn render(text: &str, diagnostics: &[Diagnostic]) -> String {
    let line = |diagnostic: &Diagnostic| {
        let at = diagnostic.range.as_ref().map_or("-".to_owned(), |range| {
            let before = &text[..range.start];
            let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
            format!("{}:{column}", before.matches('\n').count() + 1)
        });
        format!("{at} {} ({})\n", diagnostic.problem, diagnostic.help)
    };
    diagnostics.iter().map(line).collect()
}
