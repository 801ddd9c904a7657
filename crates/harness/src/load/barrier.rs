//! A barrier for the threads of a frame.
//!
//! Unlike [`std::sync::Barrier`] this one breaks when an expected thread leaves: otherwise a lane that cannot connect
//! or panics would keep all others waiting for ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier at which a fixed number of threads wait for each other, again and again.
pub(super) struct Barrier {
    expected: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads that wait now.
    here: usize,
    /// How often all threads have met.
    times: u64,
    /// A thread has left, so that all threads will never meet again.
    broken: bool,
}

/// One thread's part in a [`Barrier`], which breaks when it is dropped before [`Participant::leave`].
pub(super) struct Participant<'a>(&'a Barrier);

/// A thread has left, so no thread may wait any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BarrierBroken;

impl Barrier {
    /// For this number of threads.
    pub fn of(expected: usize) -> Self {
        Self { expected, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Makes the calling thread a participant, until it no longer needs the others.
    pub fn participate(&self) -> Participant<'_> {
        Participant(self)
    }

    /// The state is consistent even if a thread panicked: nothing that can panic happens under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Participant<'_> {
    /// Waits until all threads are here.
    ///
    /// # Errors
    /// When a thread has left, before or meanwhile.
    pub fn wait(&self) -> Result<(), BarrierBroken> {
        let barrier = self.0;
        let mut state = barrier.state();
        state.here += 1;
        if state.here == barrier.expected && !state.broken {
            (state.here, state.times) = (0, state.times + 1);
            barrier.changed.notify_all();
            return Ok(());
        }
        let times = state.times;
        let waits = |state: &mut State| state.times == times && !state.broken;
        let state = barrier.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        // If all threads have met, this one may go on, although another has left since.
        if state.times == times { Err(BarrierBroken) } else { Ok(()) }
    }

    /// Leaves without breaking the barrier: the others wait there no more.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        self.0.state().broken = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        time::Duration,
    };

    use super::*;

    /// Longer than any of this takes, on any machine.
    const TIMEOUT: Duration = Duration::from_secs(60);

    type Part<T> = Box<dyn FnOnce(&Barrier) -> T + Send>;

    /// Runs each of `parts` on a thread of its own; returns the result of each, `None` for one that panicked.
    fn run<T: Send + 'static>(parts: Vec<Part<T>>) -> Vec<Option<T>> {
        let barrier = Arc::new(Barrier::of(parts.len()));
        let ends: Vec<mpsc::Receiver<T>> = parts
            .into_iter()
            .map(|part| {
                let (barrier, (end, ended)) = (Arc::clone(&barrier), mpsc::channel());
                // Not joined: a thread that hangs must fail the test and not block it.
                std::thread::spawn(move || end.send(part(&barrier)));
                ended
            })
            .collect();
        ends.into_iter()
            .map(|ended| match ended.recv_timeout(TIMEOUT) {
                Ok(outcome) => Some(outcome),
                Err(mpsc::RecvTimeoutError::Disconnected) => None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("a thread waits for ever"),
            })
            .collect()
    }

    #[test]
    fn nobody_goes_on_before_all_are_here_and_again() {
        let came = Arc::new(AtomicUsize::new(0));
        let part = |_| {
            let came = Arc::clone(&came);
            Box::new(move |barrier: &Barrier| {
                let participant = barrier.participate();
                let seen: Vec<usize> = (1..=100)
                    .map(|_| {
                        came.fetch_add(1, Ordering::SeqCst);
                        participant.wait().expect("nobody leaves");
                        let seen = came.load(Ordering::SeqCst);
                        participant.wait().expect("nobody leaves");
                        seen
                    })
                    .collect();
                participant.leave();
                seen
            }) as Box<dyn FnOnce(&Barrier) -> Vec<usize> + Send>
        };
        let expected: Vec<usize> = (1..=100).map(|time| 4 * time).collect();
        assert!(run((0..4).map(part).collect()).into_iter().all(|seen| seen.as_ref() == Some(&expected)));
    }

    #[test]
    fn who_panics_or_leaves_keeps_nobody_waiting() {
        type Part = Box<dyn FnOnce(&Barrier) -> Vec<Result<(), BarrierBroken>> + Send>;
        let waits = || -> Part {
            Box::new(|barrier| {
                let participant = barrier.participate();
                let waited = [participant.wait(), participant.wait()];
                participant.leave();
                waited.into()
            })
        };
        let panics: Part = Box::new(|barrier| {
            let participant = barrier.participate();
            participant.wait().expect("all come once");
            while barrier.state().here < 2 {
                std::thread::yield_now();
            }
            panic!("as this test wants")
        });
        let outcomes = run(vec![waits(), panics, waits()]);
        let met_once = Some(vec![Ok(()), Err(BarrierBroken)]);
        assert_eq!(outcomes, [met_once.clone(), None, met_once]);

        let leaves: Part = Box::new(|barrier| {
            drop(barrier.participate());
            Vec::new()
        });
        let outcomes = run(vec![leaves, waits(), waits()]);
        let never_met = Some(vec![Err(BarrierBroken), Err(BarrierBroken)]);
        assert_eq!(outcomes, [Some(Vec::new()), never_met.clone(), never_met]);
    }

    #[test]
    fn who_leaves_in_good_order_breaks_nothing() {
        let barrier = Barrier::of(1);
        barrier.participate().leave();
        assert_eq!(barrier.participate().wait(), Ok(()));
    }
}
