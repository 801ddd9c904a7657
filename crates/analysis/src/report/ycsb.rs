//! The results of each arm in the form of YCSB's final output, for scripts that read it.
//!
//! One block per cell and arm, after a line that begins with `#`, which such scripts skip. Times are those of Tithe's
//! slots after their settling time; counts are of all frames that count. Left out: clean-up lines and status codes
//! other than success and failure, which depend on YCSB's bindings.

use std::{collections::BTreeMap, fmt::Write};

use tithe_model::{
    histogram::{self, Histogram},
    record::Frame,
    records::Records,
};

use crate::{
    assess::{busy_ns, counts_in},
    deciding,
};

/// The lines of every cell and arm.
pub fn render(records: &Records) -> String {
    let mut text = String::new();
    for (index, cell) in records.plan.cells.iter().enumerate() {
        for (arm, described) in records.plan.experiment.arms.iter().enumerate() {
            let name: String = described.name.chars().filter(|letter| !letter.is_control()).collect();
            let _ = writeln!(text, "# cell {}, arm {name}", cell.id);
            block(records, index as u32, arm, &mut text);
        }
    }
    text
}

fn block(records: &Records, cell: u32, arm: usize, text: &mut String) {
    let counts = counts_in(records, cell as usize);
    let frames: BTreeMap<u32, &Frame> =
        records.frames.iter().filter(|frame| counts(frame)).map(|frame| (frame.frame, frame)).collect();
    let slots = || {
        records
            .slots
            .iter()
            .filter(|slot| slot.cell == cell && slot.arm as usize == arm && frames.contains_key(&slot.frame))
    };
    let planned = &records.plan.cells[cell as usize];
    let (ran_ns, done) = slots()
        .fold((0.0, 0), |sum, slot| (sum.0 + busy_ns(planned, frames[&slot.frame], slot), sum.1 + slot.operations));
    let ran_ms = ran_ns / 1e6 / deciding::lanes(slots()).max(1) as f64;
    let _ = writeln!(text, "[OVERALL], RunTime(ms), {}", ran_ms.round());
    let _ = writeln!(
        text,
        "[OVERALL], Throughput(ops/sec), {}",
        if ran_ms > 0.0 { done as f64 * 1e3 / ran_ms } else { 0.0 }
    );
    let mut latencies: BTreeMap<&str, Histogram> = BTreeMap::new();
    for (operation, seen) in frames.values().flat_map(|frame| &frame.arms[arm].latency) {
        latencies.entry(operation).or_default().merge(seen);
    }
    for (operation, seen) in &latencies {
        operation_lines(operation, seen, text);
    }
    let failed: u64 = frames.values().map(|frame| frame.arms[arm].failed).sum();
    if failed > 0 {
        let _ = writeln!(text, "[FAILED], Operations, {failed}");
    }
}

fn operation_lines(operation: &str, seen: &Histogram, text: &mut String) {
    let middle = |bucket: usize| {
        let (low, high) = histogram::bounds(bucket);
        (low as f64 + (high - 1) as f64) / 2e3
    };
    let sum: f64 = seen.buckets().map(|(bucket, count)| middle(bucket) * count as f64).sum();
    let ends = (seen.buckets().next(), seen.buckets().last());
    let mut line = |name: &str, value: f64| {
        let _ = writeln!(text, "[{operation}], {name}, {value}");
    };
    line("Operations", seen.total() as f64);
    if let (Some((first, _)), Some((last, _))) = ends {
        line("AverageLatency(us)", sum / seen.total() as f64);
        line("MinLatency(us)", (histogram::bounds(first).0 as f64 / 1e3).floor());
        line("MaxLatency(us)", (histogram::bounds(last).1 as f64 / 1e3).ceil());
    }
    for (name, share) in [("50th", 0.5), ("95th", 0.95), ("99th", 0.99)] {
        if let Some(latency_ns) = seen.quantile(share) {
            line(&format!("{name}PercentileLatency(us)"), (latency_ns / 1e3).round());
        }
    }
    line("Return=OK", seen.total() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_one_latency_lies_in_its_bucket() {
        for latency_ns in [0, 1, 1500, 1_000_000, 1 << 52, 1 << 63, u64::MAX] {
            let mut seen = Histogram::default();
            seen.record(latency_ns);
            let mut text = String::new();
            operation_lines("READ", &seen, &mut text);
            let average = text.lines().find_map(|line| line.strip_prefix("[READ], AverageLatency(us), "));
            let average: f64 = average.and_then(|words| words.parse().ok()).expect("a number");
            let (low, high) = histogram::bounds(histogram::index(latency_ns));
            assert!((low as f64 / 1e3..=high as f64 / 1e3).contains(&average), "{latency_ns}: {text}");
        }
    }
}
