//! Reads figures from the output of programs. Pure: text in, figures or a reason out.
//!
//! Only the printed text is read. Text that contradicts itself, lacks a figure or has one that is no number is refused,
//! not guessed.

use tithe_model::histogram::{Histogram, index};
use tithe_plugin::program::ProgramReport;

/// Reads the output of a program; the reason if a figure is missing.
pub type Read = fn(&str) -> Result<ProgramReport, String>;

/// The named patterns for the output of any command: name, one sentence, how it is read.
pub const PATTERNS: [(&str, &str, Read); 4] = [
    ("pgbench", "What pgbench prints at its end", pgbench),
    ("sysbench", "What sysbench 1.0 prints at its end, with or without --histogram", sysbench),
    ("ycsb", "What YCSB prints at its end", ycsb),
    (
        "lines",
        "Lines `operations N` and `seconds S`; if known `failed N`, `latency_mean_us X`, and `latency_us X COUNT` of a histogram",
        lines,
    ),
];

/// Longest accepted latency and run, ns: a year. A slice has no longer one.
const MOST_NS: f64 = 3.2e16;

/// pgbench's summary (PostgreSQL documentation, "pgbench", Notes). Since version 14 the rate excludes connecting;
/// version 13 prints both, the one without last.
///
/// # Errors
/// What the text lacks, or which figure is impossible.
pub fn pgbench(text: &str) -> Result<ProgramReport, String> {
    let count = |name: &str| number_after(text, name);
    let transactions = count("number of transactions actually processed:").ok_or("no number of transactions")?;
    let failed = count("number of failed transactions:").unwrap_or(0.0);
    if transactions == 0.0 {
        // A slice that consists of pauses has no rate.
        return Ok(ProgramReport { failed: failed as u64, ..ProgramReport::default() });
    }
    // With several scripts the rate of each follows, in lines that begin otherwise.
    let of_all = text.lines().filter(|line| line.starts_with("tps = "));
    let mut rates = of_all.filter_map(|line| number_after(line, "tps = "));
    let rate = rates.next_back().filter(|rate| *rate > 0.0).ok_or("no tps")?;
    let mean_ms = count("latency average = ");
    Ok(ProgramReport {
        transactions: transactions as u64,
        failed: failed as u64,
        wall_ns: ns(transactions / rate, 1e9)?,
        latency_sum_ns: mean_ms.map(|mean_ms| ns(mean_ms * transactions, 1e6)).transpose()?,
        ..ProgramReport::default()
    })
}

/// pgbench's log of single transactions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// Latencies from the actual start.
    pub latency: Histogram,
    /// Latencies from the scheduled start, which the log has with `--rate`.
    pub intended: Histogram,
    /// Sum of the latencies from the scheduled start, or from the actual start if there is none, ns.
    pub sum_ns: u64,
}

impl Log {
    /// Adds a file of the log (PostgreSQL documentation, "Per-Transaction Logging"): client, number, time in µs,
    /// script, two clock numbers and, with `scheduled`, the delay of the start in µs, which the time includes.
    ///
    /// # Errors
    /// The first line that is not in the log's format.
    pub fn add(&mut self, text: &str, scheduled: bool) -> Result<(), String> {
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let time = fields.nth(2).ok_or_else(|| format!("a line of the log is {line:?}"))?;
            // These transactions have no time; the summary counts those that failed.
            if time == "skipped" || time == "failed" {
                continue;
            }
            let whole = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
            let reported = || format!("a line of the log is {line:?}");
            let time_ns = whole(Some(time)).and_then(|us| us.checked_mul(1000)).ok_or_else(reported)?;
            let mut latency_ns = time_ns;
            if scheduled {
                let late_ns = whole(fields.nth(3)).and_then(|us| us.checked_mul(1000)).ok_or_else(reported)?;
                latency_ns = time_ns.saturating_sub(late_ns);
                self.intended.record(time_ns);
            }
            self.latency.record(latency_ns);
            self.sum_ns = self.sum_ns.saturating_add(time_ns);
        }
        Ok(())
    }
}

/// sysbench's report: counts, total time and sum of latencies, and the histogram if it was requested. Its buckets are
/// about 1.8 % wide, and each is named by its value in ms.
///
/// # Errors
/// What the text lacks, which line cannot be read, or that the histogram does not have all events.
pub fn sysbench(text: &str) -> Result<ProgramReport, String> {
    let events = number_after(text, "total number of events:").ok_or("no number of events")?;
    let seconds = number_after(text, "total time:").ok_or("no total time")?;
    let failed = number_after(text, "ignored errors:").unwrap_or(0.0);
    let mut sums = text.lines().filter_map(|line| number_after(line.trim_start(), "sum:"));
    let latency_sum_ns = sums.next_back().map(|sum_ms| ns(sum_ms, 1e6)).transpose()?;
    let mut latency = Histogram::default();
    let rows = text.lines().skip_while(|line| !line.starts_with("Latency histogram")).skip(2);
    for line in rows.take_while(|line| line.contains('|')) {
        let reported = || format!("a line of the histogram is {line:?}");
        let (value, rest) = line.split_once('|').ok_or_else(reported)?;
        let count = count(rest.trim_start_matches('*').trim()).ok_or_else(reported)?;
        latency.add(index(ns(number(value.trim()).ok_or_else(reported)?, 1e6)?), count);
    }
    if latency.total() > 0 && latency.total() != events as u64 {
        return Err(format!("{events} events, and {} of them in the histogram", latency.total()));
    }
    Ok(ProgramReport {
        transactions: events as u64,
        failed: failed as u64,
        wall_ns: ns(seconds, 1e9)?,
        latency_sum_ns,
        latency,
        ..ProgramReport::default()
    })
}

/// YCSB's measurements as text: lines `[KIND], name, value`. Its throughput includes failed operations.
///
/// # Errors
/// What the text lacks, or which figure is impossible.
pub fn ycsb(text: &str) -> Result<ProgramReport, String> {
    let overall = |name: &str| number_after(text, &format!("[OVERALL], {name},"));
    let wall_ms = overall("RunTime(ms)").ok_or("no run time")?;
    let rate = overall("Throughput(ops/sec)").ok_or("no throughput")?;
    let failed: f64 = text
        .lines()
        // With `measurement.interval=both` each occurs a second time, as `Intended-READ-FAILED`.
        .filter(|line| !line.starts_with("[Intended-"))
        .filter_map(|line| line.strip_prefix('[')?.split_once("-FAILED], Operations,"))
        .filter_map(|(_, count)| number(count.trim()))
        .sum();
    let operations = (rate * wall_ms / 1e3).round();
    Ok(ProgramReport {
        transactions: (operations - failed).max(0.0) as u64,
        failed: failed as u64,
        wall_ns: ns(wall_ms, 1e6)?,
        ..ProgramReport::default()
    })
}

/// Lines of a name and a number, for output that no other pattern reads: a few lines of shell can convert any output to
/// them.
///
/// # Errors
/// What the text lacks, or which line cannot be read.
pub fn lines(text: &str) -> Result<ProgramReport, String> {
    let figure = |name: &str| {
        text.lines().filter_map(|line| line.split_once(' ')).find_map(|(word, rest)| {
            (word == name).then(|| number(rest.trim()).ok_or_else(|| format!("`{name}` is {:?}", rest.trim())))
        })
    };
    let operations = figure("operations").ok_or("no line `operations N`")??;
    let seconds = figure("seconds").ok_or("no line `seconds S`")??;
    let mean_us = figure("latency_mean_us").transpose()?;
    let mut latency = Histogram::default();
    for row in text.lines().filter_map(|line| line.strip_prefix("latency_us ")) {
        let reported = || format!("`latency_us` is {row:?}");
        let (value, count) = row.trim().split_once(' ').ok_or_else(reported)?;
        let value_us = number(value).ok_or_else(reported)?;
        latency.add(index(ns(value_us, 1e3)?), self::count(count.trim()).ok_or_else(reported)?);
    }
    Ok(ProgramReport {
        transactions: operations as u64,
        failed: figure("failed").transpose()?.unwrap_or(0.0) as u64,
        wall_ns: ns(seconds, 1e9)?,
        latency_sum_ns: mean_us.map(|mean_us| ns(mean_us * operations, 1e3)).transpose()?,
        latency,
        ..ProgramReport::default()
    })
}

/// The number after `name` in `text`.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let rest = text[text.find(name)? + name.len()..].trim_start_matches([' ', '\t']);
    let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(rest.len());
    number(&rest[..end])
}

/// How often a latency occurred; limited so that no sum overflows.
fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| *count <= 1_000_000_000_000)
}

/// A number, 0 or more, that counts or measures something.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| (0.0..=1e18).contains(number))
}

/// `value` in units of `unit_ns`, ns.
fn ns(value: f64, unit_ns: f64) -> Result<u64, String> {
    let ns = value * unit_ns;
    if ns.is_finite() && (0.0..=MOST_NS).contains(&ns) { Ok(ns as u64) } else { Err(format!("a time of {ns} ns")) }
}
