//! In slices an arm has the machine to itself: the servers of the others are paused while clients use it. The same
//! holds if keys are rotated, because that continues in the background of an arm for longer than its slot.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use tithe_machine::{
    fault::Fault,
    sandbox::{paused::PausedServers, sidecar::Sidecar},
};

/// Which lanes are on which arm, from the first slot of a frame to the last. When it is dropped, all workers run.
pub struct PauseGate {
    arms: Vec<Workers>,
    inside: Mutex<Inside>,
}

/// The processes that work for an arm and are paused while another is measured.
#[derive(Debug, Clone, Default)]
pub struct Workers {
    /// The main process of its server; `None` if Tithe started none.
    pub server: Option<i32>,
    /// The sidecar that runs programs for it.
    pub sidecar: Option<Sidecar>,
}

impl Workers {
    fn any(&self) -> bool {
        self.server.is_some() || self.sidecar.is_some()
    }
}

struct Inside {
    /// `None` if there is no server to pause.
    paused: Option<PausedServers>,
    /// Number of lanes on each arm.
    lanes: Vec<u32>,
    /// When the workers of each arm were paused; `None` while they run.
    since: Vec<Option<Instant>>,
    /// How long they have been paused before, ns.
    paused_ns: Vec<Arc<AtomicU64>>,
    /// Why a server was not paused.
    failed: Option<String>,
}

/// A lane's visit to an arm, whose workers run meanwhile.
pub struct Resumed<'a> {
    pause_gate: &'a PauseGate,
    arm: usize,
}

impl PauseGate {
    /// For this number of `arms`, whose workers always run.
    pub fn open_to(arms: usize) -> Self {
        let paused_ns = (0..arms).map(|_| Arc::default()).collect();
        Self { arms: vec![Workers::default(); arms], inside: Mutex::new(Inside::new(None, paused_ns)) }
    }

    /// For the workers of `arms`, whose servers are in the sandbox in `folder`. All run until it is closed. When the
    /// workers of an arm continue, the length of their pause is added to `paused_ns`, ns.
    ///
    /// # Errors
    /// When the list of paused processes cannot be written there.
    pub fn new(folder: &Path, arms: Vec<Workers>, paused_ns: Vec<Arc<AtomicU64>>) -> Result<Self, Fault> {
        let any = arms.iter().any(|workers| workers.server.is_some());
        let paused = any.then(|| PausedServers::new(folder)).transpose()?;
        Ok(Self { arms, inside: Mutex::new(Inside::new(paused, paused_ns)) })
    }

    /// Pauses the workers of every arm that no lane is on.
    pub fn close(&self) {
        let mut inside = self.inside();
        for (arm, workers) in self.arms.iter().enumerate() {
            if workers.any() && inside.lanes[arm] == 0 {
                inside.pause(arm, workers);
            }
        }
    }

    /// Lets the workers of `arm` run until the returned value is dropped.
    pub fn enter(&self, arm: usize) -> Resumed<'_> {
        let workers = &self.arms[arm];
        if workers.any() {
            let mut inside = self.inside();
            inside.lanes[arm] += 1;
            if let (Some(paused), Some(server)) = (&mut inside.paused, workers.server) {
                paused.resume(server);
            }
            workers.sidecar.iter().for_each(Sidecar::resume);
            inside.runs_again(arm);
        }
        Resumed { pause_gate: self, arm }
    }

    /// Lets all workers run; returns why a server was not paused, if there was one.
    pub fn open(self) -> Option<String> {
        self.inside().failed.take()
    }

    fn leave(&self, arm: usize) {
        let workers = &self.arms[arm];
        if !workers.any() {
            return;
        }
        let mut inside = self.inside();
        inside.lanes[arm] -= 1;
        if inside.lanes[arm] == 0 {
            inside.pause(arm, workers);
        }
    }

    /// A lane that panicked has left: visits end in any case.
    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn new(paused: Option<PausedServers>, paused_ns: Vec<Arc<AtomicU64>>) -> Self {
        let arms = paused_ns.len();
        Self { paused, lanes: vec![0; arms], since: vec![None; arms], paused_ns, failed: None }
    }

    fn runs_again(&mut self, arm: usize) {
        if let Some(since) = self.since[arm].take() {
            self.paused_ns[arm].fetch_add(since.elapsed().as_nanos() as u64, Ordering::SeqCst);
        }
    }

    fn pause(&mut self, arm: usize, workers: &Workers) {
        self.since[arm].get_or_insert_with(Instant::now);
        workers.sidecar.iter().for_each(Sidecar::pause);
        let (Some(paused), Some(server)) = (&mut self.paused, workers.server) else { return };
        if let Err(error) = paused.pause(server) {
            self.failed.get_or_insert(format!("a server could not be paused while another was measured: {error}"));
        }
    }
}

impl Drop for PauseGate {
    fn drop(&mut self) {
        self.arms.iter().flat_map(|workers| &workers.sidecar).for_each(Sidecar::resume);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.paused = None;
        (0..self.since.len()).for_each(|arm| self.runs_again(arm));
    }
}

impl Drop for Resumed<'_> {
    fn drop(&mut self) {
        self.pause_gate.leave(self.arm);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests {
    use tithe_machine::{proc::is_stopped, soon::soon};

    use super::*;

    /// Waits until this is the state: a signal takes effect when its receiver runs.
    fn await_paused(processes: &[i32; 2], expected: [bool; 2]) {
        soon(&format!("paused: {expected:?}"), || {
            let paused = processes.map(is_stopped);
            if paused == expected { Ok(()) } else { Err(paused) }
        });
    }

    #[test]
    fn a_server_runs_while_any_lane_is_at_its_arm_and_all_do_afterwards() {
        let folder = std::env::temp_dir().join(format!("tithe-test-pause-gate-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let sleep = || std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let mut servers = [sleep(), sleep()];
        let processes = servers.each_ref().map(|server| server.id() as i32);
        // The arm in the middle has no server that Tithe started.
        let paused_ns: Vec<Arc<AtomicU64>> = vec![Arc::default(), Arc::default(), Arc::default()];
        let workers = |server| Workers { server, sidecar: None };
        let by_arm = [Some(processes[0]), None, Some(processes[1])].map(workers).into();
        let pause_gate = PauseGate::new(&folder, by_arm, paused_ns.clone()).expect("a gate");
        await_paused(&processes, [false, false]);
        assert!(paused_ns.iter().all(|paused_ns| paused_ns.load(Ordering::SeqCst) == 0));
        let early = pause_gate.enter(0);
        pause_gate.close();
        await_paused(&processes, [false, true]);
        let second = pause_gate.enter(0);
        drop(early);
        await_paused(&processes, [false, true]);
        let other = pause_gate.enter(2);
        drop(second);
        await_paused(&processes, [true, false]);
        drop(other);
        drop(pause_gate.enter(1));
        await_paused(&processes, [true, true]);
        assert_eq!(pause_gate.open(), None);
        await_paused(&processes, [false, false]);
        assert_eq!([0, 1, 2].map(|arm| paused_ns[arm].load(Ordering::SeqCst) > 0), [true, false, true]);
        for server in &mut servers {
            server.kill().expect("sleep can be killed");
            server.wait().expect("sleep ends");
        }
        std::fs::remove_dir_all(&folder).expect("clean up");
    }
}
