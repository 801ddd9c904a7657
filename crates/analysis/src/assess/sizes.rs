//! Memory, size on disk, time to connect: costs of an arm, not of an operation.

use tithe_model::{
    experiment::Metric,
    record::{ArmFrame, Counters},
};
use tithe_statistics::{
    mean,
    order::quantile7,
    starts::{StartEffect, infer_over_starts},
    verdict::{digits, outcome, percent},
};

use super::{
    estimate::{paired, stated},
    measured::Measured,
};
use crate::{Estimate, Figure, Interval, figures::Size};

/// Reads a counter from the record; `None` if unknown.
pub(super) type Read = fn(&Counters) -> Option<u64>;

/// The sizes compared at the end of the last frame, with title and source.
pub(super) const SIZES: [(Size, &str, Read); 2] = [
    (Size::Memory, "memory of the server", |counters| counters.memory_bytes),
    (Size::Disk, "size on disk", |counters| counters.disk_bytes),
];

/// Memory, disk and connecting of arm `arm`, as far as they are known.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize) -> Vec<Estimate> {
    let sizes = SIZES.into_iter().filter_map(|(size, title, read)| {
        let ratios = ratios(measured, arm, |frame| read(&frame.counters).unwrap_or(0));
        at_the_end(measured, size, title, &ratios)
    });
    sizes.chain(connecting(measured, arm)).collect()
}

/// Time to open a connection; `None` if there are no connections.
fn connecting(measured: &Measured<'_>, arm: usize) -> Option<Estimate> {
    let both: Vec<_> = both(measured, arm, |frame| frame.connect_ns).collect();
    let of = |effect: fn(f64, f64) -> f64| {
        let on_start = |(start, plain, protected): &(u32, f64, f64)| StartEffect {
            start: *start,
            effect: effect(*plain, *protected),
        };
        both.iter().map(on_start).collect::<Vec<_>>()
    };
    let level_us = mean(&both.iter().map(|(.., protected)| protected / 1e3).collect::<Vec<_>>());
    let asked = measured.asked(Metric::Time);
    let differences = of(|plain, protected| (protected - plain) / 1e3);
    let ratios = infer_over_starts(&of(|plain, protected| (protected / plain).ln()), asked);
    let estimate = || Estimate {
        difference: Some(infer_over_starts(&differences, asked.at_level(level_us)).inference.interval),
        unit: "µs".into(),
        ..paired(measured, Figure::Connect, "time to connect", &ratios, Some(measured.frame_s))
    };
    (!both.is_empty()).then(estimate)
}

/// ln(protected/plain) of every frame that has both.
fn ratios(measured: &Measured<'_>, arm: usize, read: impl Fn(&ArmFrame) -> u64) -> Vec<f64> {
    both(measured, arm, read).map(|(_, plain, protected)| (protected / plain).ln()).collect()
}

/// The value of `read` in every frame in which both arms have one: start, plain, protected.
fn both<'a>(
    measured: &'a Measured<'_>,
    arm: usize,
    read: impl Fn(&ArmFrame) -> u64 + 'a,
) -> impl Iterator<Item = (u32, f64, f64)> + 'a {
    let pairs = measured.start_numbers().zip(measured.pairs(arm));
    let read_both = move |(start, (plain, protected))| (start, read(plain) as f64, read(protected) as f64);
    pairs.map(read_both).filter(|(_, plain, protected)| *plain > 0.0 && *protected > 0.0)
}

/// The ratio at the end of the last frame, between the 2.5 % and 97.5 % quantiles of all frames.
///
/// That is the spread over the frames and not a confidence interval: sizes of consecutive frames are not independent.
fn at_the_end(measured: &Measured<'_>, size: Size, title: &str, ratios: &[f64]) -> Option<Estimate> {
    let estimate = *ratios.last()?;
    let (low, high) = (quantile7(ratios, 0.025).min(estimate), quantile7(ratios, 0.975).max(estimate));
    let effect = Interval { estimate, low, high };
    let direction = if estimate < 0.0 { "less" } else { "more" };
    let text = format!(
        "{} % {direction} at the end, between {} % and {} % over the frames",
        digits(percent(estimate).abs()),
        digits(percent(low)),
        digits(percent(high))
    );
    Some(stated(Figure::Size(size), title, effect, outcome(effect, measured.margin), text, ratios.len()))
}
