//! What servers use while they have no clients.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tithe_model::idle::{IdleWindow, WINDOWS};

use super::CellRunner;
use crate::load::reading::Reading;

/// How soon ctrl-C is noticed.
const STEP: Duration = Duration::from_millis(100);

impl CellRunner<'_> {
    /// Watches all servers for `length` in equal windows, only from outside: a request would be work. Empty if no
    /// server can be seen, or if `cancelled` ends it.
    pub fn idle(&self, length: Duration, cancelled: &AtomicBool) -> Vec<IdleWindow> {
        let mut windows = Vec::new();
        let (mut began, mut before) = (Instant::now(), self.context.seen_from_outside());
        let is_seen = |reading: &Reading| reading.tree.is_some();
        if !before.iter().any(is_seen) {
            return windows;
        }
        for _ in 0..WINDOWS {
            while began.elapsed() < length / WINDOWS {
                std::thread::sleep(STEP.min((length / WINDOWS).saturating_sub(began.elapsed())));
                if cancelled.load(Ordering::SeqCst) {
                    return Vec::new();
                }
            }
            let (now, after) = (Instant::now(), self.context.seen_from_outside());
            windows.push(IdleWindow {
                duration_ns: (now - began).as_nanos() as u64,
                arms: before.iter().zip(&after).map(|(before, after)| before.grown(after)).collect(),
            });
            (began, before) = (now, after);
        }
        windows
    }
}
