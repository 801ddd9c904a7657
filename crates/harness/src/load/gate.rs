//! Lets the server of an arm run only while somebody is with it.
//!
//! Work that a server does in the background for longer than a slot would fall into the slots of the other arms. A server
//! behind a held gate is stopped (`SIGSTOP`) while nobody is inside, with all of its threads, and goes on where it was.
//! Bytes that it has already handed to the kernel are written meanwhile: they are not held back.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The gate before one server.
pub struct Gate {
    /// The server's process, which leads its process group.
    process: i32,
    state: Mutex<State>,
}

struct State {
    held: bool,
    /// Visitors who are inside.
    inside: u32,
    /// Since when the server runs; `None` while it is stopped.
    since: Option<Instant>,
    /// How long it ran before that.
    before: Duration,
}

impl Gate {
    /// An open gate before the server whose process group `process` leads, which is a child of this process.
    pub fn new(process: i32) -> Self {
        let state = State { held: false, inside: 0, since: Some(Instant::now()), before: Duration::ZERO };
        Self { process, state: Mutex::new(state) }
    }

    /// Lets the server run until the visitor is dropped.
    pub fn enter(&self) -> Inside<'_> {
        self.change(|state| state.inside += 1);
        Inside(self)
    }

    /// How long the server has been let run.
    pub fn ran(&self) -> Duration {
        let state = self.lock();
        state.before + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Changes the state and has the server follow it, both under one lock: lanes come and go at the same moments.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let runs = !state.held || state.inside > 0;
        if runs == state.since.is_some() {
            return;
        }
        if let Some(since) = state.since.take() {
            state.before += since.elapsed();
        }
        // SAFETY: kill(2) takes numbers only. The group's leader is a child of this process; once it is waited for, because it
        // ended by itself, no further frame is run.
        unsafe { libc::kill(-self.process, if runs { libc::SIGCONT } else { libc::SIGSTOP }) };
        state.since = runs.then(Instant::now);
    }

    /// The state is whole after every change, so a thread that panicked meanwhile leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A visitor of one server, which runs until the visitor is dropped.
pub struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.inside -= 1);
    }
}

/// Gates that are held: their servers run for visitors only, and all of them again once this is dropped.
pub struct Held(Vec<Arc<Gate>>);

impl Held {
    /// Holds `gates`.
    pub fn new(gates: &[Arc<Gate>]) -> Self {
        gates.iter().for_each(|gate| gate.change(|state| state.held = true));
        Self(gates.to_vec())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.iter().for_each(|gate| gate.change(|state| state.held = false));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    /// A child that leads a group of its own, killed when dropped.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn start() -> Self {
            let mut command = std::process::Command::new("sleep");
            Self(command.arg("600").process_group(0).spawn().expect("sleep starts"))
        }

        /// Waits until the kernel says that it is stopped, or is not: signals are delivered a moment later.
        fn becomes(&self, stopped: bool) {
            let stat = format!("/proc/{}/stat", self.0.id());
            loop {
                let text = std::fs::read_to_string(&stat).expect("it is there");
                let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
                if (state == Some('T')) == stopped {
                    return;
                }
                std::thread::yield_now();
            }
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_server_behind_a_held_gate_runs_for_visitors_only() {
        let sleeper = Sleeper::start();
        let gate = Arc::new(Gate::new(sleeper.0.id() as i32));
        {
            let _early = gate.enter();
        }
        sleeper.becomes(false);
        let held = Held::new(std::slice::from_ref(&gate));
        sleeper.becomes(true);
        let ran = gate.ran();
        assert_eq!(gate.ran(), ran);
        let (one, other) = (gate.enter(), gate.enter());
        sleeper.becomes(false);
        while gate.ran() == ran {
            std::thread::yield_now();
        }
        drop(one);
        let ran = gate.ran();
        while gate.ran() == ran {
            std::thread::yield_now();
        }
        drop(other);
        sleeper.becomes(true);
        drop(held);
        sleeper.becomes(false);
    }
}
