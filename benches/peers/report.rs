//! The result as Markdown.

use std::fmt::Write as _;

use tithe_model::{quantity, record::Machine};

use crate::contest::{Outcome, Spread};

/// The text above the tables.
const HEAD: &str = "\
# The load loop and other load generators

Made by `cargo bench --bench peers -- --write`; the head of `benches/peers/main.rs` explains the method.

Client and server share one processor. The ratio is Tithe's client processor time per operation divided by the peer's in
the same round: median (quartiles) and number of rounds n. Below 1 Tithe needs less. `Tithe again` is Tithe against itself:
smaller differences were not resolved. Rounds differ: compare ratios.

Tithe offers YCSB's requests with everything on: zipfian keys, eight versions of every value, each field verified, latencies
recorded, slots of 20 ms, server processes watched. YCSB offers the same and does not verify values. pgbench, sysbench and
redis-benchmark read rows of the same 1 KB by uniform numbers; in workload A half of the operations update one field.
`select-only` and `simple-update` are pgbench's own scripts, prepared on both sides; an operation is a transaction.

";

/// The whole report.
pub fn report(machine: &Machine, versions: &[String], outcomes: &[Outcome]) -> String {
    let mut text = HEAD.to_owned();
    let memory = quantity::memory(machine.memory_bytes);
    let virtualised = if machine.virtualised { ", virtual" } else { "" };
    line(
        &mut text,
        &format!(
            "Machine: {}, {} logical processors{virtualised}, {memory}, Linux {}, {}, clock {}.",
            machine.processor, machine.processors, machine.kernel, machine.system, machine.clock
        ),
    );
    line(&mut text, &format!("Versions: {}.", versions.join("; ")));
    for outcome in outcomes {
        line(&mut text, &format!("\n## {}\n", outcome.case));
        text += &table(outcome);
    }
    text
}

/// The table of one case.
pub fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    line(
        &mut text,
        "| | client processor time, µs/operation | of it outside the kernel | Tithe's as a multiple of the whole |",
    );
    line(&mut text, "|---|---|---|---|");
    for (row, (name, ours, _)) in outcome.rows.iter().enumerate() {
        let ratio = match (row, ours) {
            (0, true) => String::new(),
            _ => spread(outcome.ratio(row), 1.0),
        };
        let user = outcome.user_ns(row).median / 1e3;
        line(&mut text, &format!("| {name} | {} | {user:.2} | {ratio} |", quartiles(outcome.cost_ns(row), 1e-3)));
    }
    text
}

fn spread(spread: Spread, factor: f64) -> String {
    let count = spread.count;
    format!("{} n{count}", quartiles(spread, factor))
}

fn quartiles(spread: Spread, factor: f64) -> String {
    let Spread { median, quartiles: (low, high), .. } = spread;
    format!("{:.2} ({:.2}–{:.2})", median * factor, low * factor, high * factor)
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
