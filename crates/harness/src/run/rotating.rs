//! Keys that are rotated while frames are measured: the threads that do it, and their results.
//!
//! One rotation follows the other, across the frames of an epoch. Frames begin at random points of a rotation, so all
//! parts of a rotation are measured in proportion to their duration. The last rotation is completed after the last
//! frame, and is not counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, sandbox::sidecar::Sidecar, threads};
use tithe_model::fact::Fact;
use tithe_plugin::rotation::Rotator;

use super::{EventLog, Run};
use crate::{arms, load::frame::CellRunner};

/// The threads of one epoch. When dropped, they begin nothing more, and the programs that they run are ended.
pub(super) struct Rotating {
    stop: Arc<AtomicBool>,
    sidecars: Vec<Sidecar>,
    /// By arm.
    threads: Vec<(usize, JoinHandle<Outcome>)>,
}

/// How long each rotation of a key took, or why one failed.
type Outcome = Result<Vec<Duration>, Fault>;

/// How long the rotations of each arm's key took, by arm, in the order of each arm's first one.
#[derive(Debug, Default)]
pub(super) struct Rotations(Vec<(usize, Vec<Duration>)>);

impl Run<'_> {
    /// Begins to rotate the keys of the arms that ask for it.
    pub(super) fn rotate(&self, runner: &CellRunner<'_>) -> Result<Rotating, Fault> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut rotators = Vec::new();
        for (number, (arm, sidecar)) in runner.arms().iter().zip(runner.sidecars()).enumerate() {
            let rotator = arms::rotator(self.product, &arm.server, &arm.setup, sidecar.as_ref())?;
            rotators.extend(rotator.map(|rotator| (number, rotator)));
        }
        let sidecars = runner.sidecars().iter().flatten().cloned().collect();
        let threads = rotators.into_iter().map(|(arm, mut rotator)| {
            let (paused_ns, stop) = (Arc::clone(&runner.paused_ns()[arm]), Arc::clone(&stop));
            Ok((arm, threads::spawn(move || until(&stop, rotator.as_mut(), &paused_ns))?))
        });
        // If the machine refuses a thread, those that were started end.
        let threads = threads.collect::<Result<_, Fault>>().inspect_err(|_| stop.store(true, Ordering::SeqCst))?;
        Ok(Rotating { threads, stop, sidecars })
    }

    /// Records in the facts of the arms of `cell` how often keys were rotated and how long that took.
    pub(super) fn tell_rotations(
        &self,
        cell: usize,
        rotations: &Rotations,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        for (arm, took) in &rotations.0 {
            if took.is_empty() {
                let name = &self.plan.experiment.arms[*arm].name;
                event_log.warn(format!("arm {name}: no rotation of its key finished while it was measured"))?;
            }
        }
        self.note(cell, event_log, |arm| {
            let (_, took) = rotations.0.iter().find(|(number, _)| *number == arm)?;
            Some((Fact::KeyRotations, reported(took)))
        })
    }
}

/// Lets `rotator` rotate the key again and again until `stop` is set. Returns how long the server ran during each
/// rotation; `paused_ns` counts how long it was paused.
fn until(stop: &AtomicBool, rotator: &mut dyn Rotator, paused_ns: &AtomicU64) -> Outcome {
    let mut took = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let (begun, paused_before_ns) = (Instant::now(), paused_ns.load(Ordering::SeqCst));
        rotator.rotate()?;
        let paused_ns = Duration::from_nanos(paused_ns.load(Ordering::SeqCst) - paused_before_ns);
        if !stop.load(Ordering::SeqCst) {
            took.push(begun.elapsed().saturating_sub(paused_ns));
        }
    }
    Ok(took)
}

impl Rotating {
    /// True once a key could not be rotated; [`Rotating::end`] returns the reason.
    pub(super) fn failed(&self) -> bool {
        self.threads.iter().any(|(_, thread)| thread.is_finished())
    }

    /// Waits for the rotations in progress, and adds those that ended before to `rotations`.
    ///
    /// # Errors
    /// The first rotation that failed.
    pub(super) fn end(mut self, rotations: &mut Rotations) -> Result<(), Fault> {
        self.stop.store(true, Ordering::SeqCst);
        for (arm, thread) in std::mem::take(&mut self.threads) {
            let panicked = |_| Err(Fault::Machine("the thread that changes keys panicked".to_owned()));
            rotations.add(arm, thread.join().unwrap_or_else(panicked)?);
        }
        Ok(())
    }
}

impl Drop for Rotating {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Volumes cannot be removed while a program works on them.
        self.sidecars.iter().for_each(Sidecar::dismiss);
    }
}

impl Rotations {
    fn add(&mut self, arm: usize, took: Vec<Duration>) {
        match self.0.iter_mut().find(|(number, _)| *number == arm) {
            Some((_, all)) => all.extend(took),
            None => self.0.push((arm, took)),
        }
    }
}

/// The number of rotations, and how long they took.
fn reported(took: &[Duration]) -> String {
    let mut seconds: Vec<f64> = took.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (seconds.first(), seconds.last()) else {
        return "none finished while measuring".to_owned();
    };
    // The lower one of the two in the middle: a duration that occurred.
    let median = seconds[(seconds.len() - 1) / 2];
    format!(
        "{} while measuring; one takes {median:.2} s (median; {least:.2} to {most:.2} s) of the time in which the arm's server runs",
        seconds.len()
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Rotates keys until it has done so `left` times, and then sets `stop` or fails.
    struct Counting<'a> {
        left: u32,
        stop: Option<&'a AtomicBool>,
    }

    impl Rotator for Counting<'_> {
        fn rotate(&mut self) -> Result<(), Fault> {
            self.left -= 1;
            match (self.left, self.stop) {
                (0, None) => return Err(Fault::Server("no such key".to_owned())),
                (0, Some(stop)) => stop.store(true, Ordering::SeqCst),
                _ => {}
            }
            Ok(())
        }
    }

    #[test]
    fn one_change_follows_the_other_and_the_last_is_not_counted() {
        let stop = AtomicBool::new(false);
        let took = until(&stop, &mut Counting { left: 5, stop: Some(&stop) }, &AtomicU64::new(0));
        assert_eq!(took.map(|took| took.len()), Ok(4));
    }

    /// Takes a millisecond, in which the server is paused for `more_ns`. The second time is the last.
    struct Pausing<'a> {
        paused_ns: &'a AtomicU64,
        more_ns: u64,
        stop: &'a AtomicBool,
        is_second: bool,
    }

    impl Rotator for Pausing<'_> {
        fn rotate(&mut self) -> Result<(), Fault> {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1) {
                std::thread::yield_now();
            }
            self.paused_ns.fetch_add(self.more_ns, Ordering::SeqCst);
            self.stop.store(self.is_second, Ordering::SeqCst);
            self.is_second = true;
            Ok(())
        }
    }

    #[test]
    fn the_time_in_which_the_server_was_paused_does_not_count() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let took = |more_ns: u64| {
            let (stop, paused_ns) = (AtomicBool::new(false), AtomicU64::new(HOUR_NS));
            let mut rotator = Pausing { paused_ns: &paused_ns, more_ns, stop: &stop, is_second: false };
            until(&stop, &mut rotator, &paused_ns).expect("rotations")
        };
        assert_eq!(took(HOUR_NS), [Duration::ZERO]);
        assert!(took(0)[0] >= Duration::from_millis(1), "it was paused before");
    }

    #[test]
    fn a_change_that_fails_is_a_fault() {
        let failed = until(&AtomicBool::new(false), &mut Counting { left: 3, stop: None }, &AtomicU64::new(0));
        assert_eq!(failed, Err(Fault::Server("no such key".to_owned())));
        let thread = std::thread::spawn(|| Err(Fault::Server("no such key".to_owned())));
        let rotating = Rotating { stop: Arc::default(), sidecars: Vec::new(), threads: vec![(2, thread)] };
        while !rotating.failed() {
            std::thread::yield_now();
        }
        assert_eq!(rotating.end(&mut Rotations::default()), Err(Fault::Server("no such key".to_owned())));
    }

    #[test]
    fn what_is_told_is_of_all_epochs() {
        let mut rotations = Rotations::default();
        let seconds = |all: &[f64]| all.iter().map(|seconds| Duration::from_secs_f64(*seconds)).collect();
        rotations.add(2, seconds(&[2.5, 1.25]));
        rotations.add(1, Vec::new());
        rotations.add(2, seconds(&[1.75, 9.0]));
        let lines: Vec<_> = rotations.0.iter().map(|(arm, took)| format!("{arm}: {}\n", reported(took))).collect();
        expect![[r#"
            2: 4 while measuring; one takes 1.75 s (median; 1.25 to 9.00 s) of the time in which the arm's server runs
            1: none finished while measuring
        "#]]
        .assert_eq(&lines.concat());
    }
}
