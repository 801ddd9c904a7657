//! Time to open a connection, by part, from the frames.

use tithe_model::{
    connecting::{ConnectPart, Connecting},
    experiment::Metric,
};
use tithe_statistics::{
    inference::t_interval,
    mean,
    starts::{StartEffect, infer_over_starts},
};

use super::measured::Measured;
use crate::{CONFIDENCE, ConnectPartUse, ConnectUse};

/// Minimum number of frames for an interval.
const FRAMES_MIN: usize = 4;

/// A part of connecting: its name, and its place in frames.
type Part = (&'static str, fn(&Connecting) -> ConnectPart);

/// In their order in time.
const PARTS: [Part; 3] = [("TCP", |it| it.tcp), ("TLS", |it| it.tls), ("login", |it| it.login)];

/// A frame of both arms: its start, the plain arm's connections and the protected arm's.
type Both<'a> = (u32, &'a Connecting, &'a Connecting);

/// Time to open a connection of arm `arm`; `None` if too few frames have it.
pub(super) fn connecting(measured: &Measured<'_>, arm: usize) -> Option<ConnectUse> {
    let of_arm = measured.arm(arm).map(|frame| &frame.connecting);
    let frames: Vec<&Connecting> = of_arm.filter(|it| !it.is_empty()).collect();
    if frames.len() < FRAMES_MIN {
        return None;
    }
    let pairs = measured.start_numbers().zip(measured.pairs(arm));
    let both = pairs.map(|(start, (plain, own))| (start, &plain.connecting, &own.connecting));
    let both: Vec<Both<'_>> = both.filter(|(_, plain, own)| !plain.is_empty() && !own.is_empty()).collect();
    let both = (arm > 0 && both.len() == frames.len()).then_some(both.as_slice());
    let has_tls = frames.iter().any(|it| it.tls.time_ns > 0);
    let seen = PARTS.iter().filter(|(name, _)| *name != "TLS" || has_tls);
    Some(ConnectUse {
        connections: frames.iter().map(|it| it.connections).sum(),
        parts: seen.map(|part| part_use(measured, &frames, both, part)).collect(),
    })
}

/// One part over `frames`, and its difference from the baseline over `both`.
fn part_use(
    measured: &Measured<'_>,
    frames: &[&Connecting],
    both: Option<&[Both<'_>]>,
    (name, of): &Part,
) -> ConnectPartUse {
    let us = |it: &Connecting, ns: u64| ns as f64 / 1e3 / it.connections as f64;
    let time_us = |it: &Connecting| us(it, of(it).time_ns);
    let own: Vec<f64> = frames.iter().copied().map(time_us).collect();
    let client: Vec<f64> = frames.iter().copied().map(|it| us(it, of(it).client_ns)).collect();
    // As the time to connect as a whole.
    let asked = measured.asked(Metric::Time).at_level(mean(&own));
    let more = |&(start, plain, own): &Both<'_>| StartEffect { start, effect: time_us(own) - time_us(plain) };
    let more_us = both.map(|both| infer_over_starts(&both.iter().map(more).collect::<Vec<_>>(), asked));
    ConnectPartUse {
        part: (*name).to_owned(),
        us: t_interval(&own, 1.0 - CONFIDENCE),
        more_us: more_us.map(|over_starts| over_starts.inference.interval),
        client_us: t_interval(&client, 1.0 - CONFIDENCE),
    }
}
