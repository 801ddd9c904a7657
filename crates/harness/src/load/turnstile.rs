//! In slices an arm has the machine to itself: the servers of the others stand still while clients are at it.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::{fault::Fault, sandbox::standstill::Standstill};

/// Who is at which arm, from the first slot of a frame to the last. When it is dropped all servers run.
pub struct Turnstile {
    /// The server of each arm; `None` where none is to be stopped.
    servers: Vec<Option<i32>>,
    inside: Mutex<Inside>,
}

struct Inside {
    /// `None` where there is nothing to stop.
    standstill: Option<Standstill>,
    /// Lanes at each arm.
    lanes: Vec<u32>,
    /// Why a server did not stand still.
    failed: Option<String>,
}

/// One lane's stay at an arm, whose server runs meanwhile.
pub struct Stay<'a> {
    turnstile: &'a Turnstile,
    arm: usize,
}

impl Turnstile {
    /// For `arms` whose servers always run.
    pub fn open_to(arms: usize) -> Self {
        let inside = Inside { standstill: None, lanes: vec![0; arms], failed: None };
        Self { servers: vec![None; arms], inside: Mutex::new(inside) }
    }

    /// For `servers`, by arm, of the sandbox in `folder`. All run until it is closed.
    ///
    /// # Errors
    /// When it cannot be written down there who stands still.
    pub fn new(folder: &Path, servers: Vec<Option<i32>>) -> Result<Self, Fault> {
        let any = servers.iter().any(Option::is_some);
        let standstill = any.then(|| Standstill::new(folder)).transpose()?;
        let inside = Inside { standstill, lanes: vec![0; servers.len()], failed: None };
        Ok(Self { servers, inside: Mutex::new(inside) })
    }

    /// Stops every server at whose arm nobody is.
    pub fn close(&self) {
        let mut inside = self.inside();
        for (arm, server) in self.servers.iter().enumerate() {
            if let (Some(server), 0) = (server, inside.lanes[arm]) {
                inside.stop(*server);
            }
        }
    }

    /// Lets the server of `arm` run for as long as the stay lasts.
    pub fn enter(&self, arm: usize) -> Stay<'_> {
        if let Some(server) = self.servers[arm] {
            let mut inside = self.inside();
            inside.lanes[arm] += 1;
            if let Some(standstill) = &mut inside.standstill {
                standstill.go_on(server);
            }
        }
        Stay { turnstile: self, arm }
    }

    /// Lets all servers run; returns why one did not stand still, if so.
    pub fn open(self) -> Option<String> {
        self.inside().failed.take()
    }

    fn leave(&self, arm: usize) {
        let Some(server) = self.servers[arm] else { return };
        let mut inside = self.inside();
        inside.lanes[arm] -= 1;
        if inside.lanes[arm] == 0 {
            inside.stop(server);
        }
    }

    /// A lane that panicked has left: stays end in any case.
    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn stop(&mut self, server: i32) {
        let Some(standstill) = &mut self.standstill else { return };
        if let Err(error) = standstill.stop(server) {
            self.failed.get_or_insert(format!("a server could not be stopped while another was measured: {error}"));
        }
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.turnstile.leave(self.arm);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn stands(process: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    /// Waits until it is so: a signal takes effect when its receiver runs.
    fn await_standing(processes: &[i32], expected: [bool; 2]) {
        let begun = Instant::now();
        while processes.iter().map(|process| stands(*process)).collect::<Vec<bool>>() != expected {
            assert!(begun.elapsed() < Duration::from_secs(20), "not {expected:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_server_runs_while_any_lane_is_at_its_arm_and_all_do_afterwards() {
        let folder = std::env::temp_dir().join(format!("tithe-test-turnstile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let sleep = || std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let mut servers = [sleep(), sleep()];
        let processes = servers.each_ref().map(|server| server.id() as i32);
        // The arm in the middle has no server that Tithe started.
        let by_arm = vec![Some(processes[0]), None, Some(processes[1])];
        let turnstile = Turnstile::new(&folder, by_arm).expect("a turnstile");
        await_standing(&processes, [false, false]);
        let early = turnstile.enter(0);
        turnstile.close();
        await_standing(&processes, [false, true]);
        let second = turnstile.enter(0);
        drop(early);
        await_standing(&processes, [false, true]);
        let other = turnstile.enter(2);
        drop(second);
        await_standing(&processes, [true, false]);
        drop(other);
        drop(turnstile.enter(1));
        await_standing(&processes, [true, true]);
        assert_eq!(turnstile.open(), None);
        await_standing(&processes, [false, false]);
        for server in &mut servers {
            server.kill().expect("sleep can be killed");
            server.wait().expect("sleep ends");
        }
        std::fs::remove_dir_all(&folder).expect("clean up");
    }
}
