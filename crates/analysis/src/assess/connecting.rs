//! Time to open a connection, by part, from the frames.

use tithe_model::connecting::{ConnectPart, Connecting};
use tithe_statistics::inference::t_interval;

use super::measured::Measured;
use crate::{CONFIDENCE, ConnectPartUse, ConnectUse};

/// Minimum number of frames for an interval.
const FRAMES_MIN: usize = 4;

/// A part of connecting: its name, and its place in frames.
type Part = (&'static str, fn(&Connecting) -> ConnectPart);

/// In their order in time.
const PARTS: [Part; 3] = [("TCP", |it| it.tcp), ("TLS", |it| it.tls), ("login", |it| it.login)];

/// Time to open a connection of arm `arm`; `None` if too few frames have it.
pub(super) fn connecting(measured: &Measured<'_>, arm: usize) -> Option<ConnectUse> {
    let of_arm = |arm| -> Vec<&Connecting> {
        measured.arm(arm).map(|frame| &frame.connecting).filter(|it| !it.is_empty()).collect()
    };
    let (frames, plain) = (of_arm(arm), of_arm(0));
    if frames.len() < FRAMES_MIN {
        return None;
    }
    let plain = (arm > 0 && plain.len() == frames.len()).then_some(plain.as_slice());
    let has_tls = frames.iter().any(|it| it.tls.time_ns > 0);
    let seen = PARTS.iter().filter(|(name, _)| *name != "TLS" || has_tls);
    Some(ConnectUse {
        connections: frames.iter().map(|it| it.connections).sum(),
        parts: seen.map(|part| part_use(&frames, plain, part)).collect(),
    })
}

/// One part over `frames`, and its difference from the same frames of the baseline.
fn part_use(frames: &[&Connecting], plain: Option<&[&Connecting]>, (name, of): &Part) -> ConnectPartUse {
    let us = |frames: &[&Connecting], ns: fn(ConnectPart) -> u64| -> Vec<f64> {
        frames.iter().map(|it| ns(of(it)) as f64 / 1e3 / it.connections as f64).collect()
    };
    let interval = |values: &[f64]| t_interval(values, 1.0 - CONFIDENCE);
    let own = us(frames, |part| part.time_ns);
    let more_us = plain.map(|plain| {
        let pairs = own.iter().zip(us(plain, |part| part.time_ns));
        interval(&pairs.map(|(own, plain)| own - plain).collect::<Vec<_>>())
    });
    let client_us = interval(&us(frames, |part| part.client_ns));
    ConnectPartUse { part: (*name).to_owned(), us: interval(&own), more_us, client_us }
}
