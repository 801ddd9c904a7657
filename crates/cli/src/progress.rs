//! Progress on standard error while a run is under way, and the decision when a cell has been measured enough.
//!
//! On a terminal one line is drawn over and over; elsewhere a line is written now and then.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use tithe_analysis::{
    report::live::{self, Status},
    stopping::Live,
};
use tithe_harness::run::Observer;
use tithe_model::{
    plan::Plan,
    record::{Event, Frame, Phase, Role, Slot, Verdict},
};

/// Time between two lines where they are not drawn over each other.
const PLAIN_PAUSE: Duration = Duration::from_secs(15);

/// Shows progress and ends cells that are precise enough.
pub struct Progress<'a> {
    plan: &'a Plan,
    began: Instant,
    cell: usize,
    live: Option<Live>,
    loading: Option<u32>,
    held: u32,
    looked: u32,
    last_plain: Option<Instant>,
    frame_took_s: f64,
    quiet: bool,
    terminal: bool,
}

impl<'a> Progress<'a> {
    /// Progress of a run of `plan`.
    pub fn new(plan: &'a Plan, quiet: bool) -> Self {
        Self {
            plan,
            began: Instant::now(),
            cell: 0,
            live: None,
            loading: None,
            held: 0,
            looked: 0,
            last_plain: None,
            frame_took_s: 0.0,
            quiet,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Writes a line that stays.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.clear();
            anstream::eprintln!("{line}");
        }
    }

    /// Draws the line that is drawn over.
    fn draw(&self, line: &str) {
        if !self.quiet && self.terminal {
            self.clear();
            anstream::eprint!("{line}");
            let _ = std::io::stderr().flush();
        }
    }

    fn clear(&self) {
        if self.terminal {
            anstream::eprint!("\r\x1b[2K");
        }
    }

    fn arm(&self, arm: u32) -> &str {
        &self.plan.experiment.arms[arm as usize].name
    }

    fn status(&self, frame: &Frame, decision: &tithe_analysis::stopping::Decision) -> Status {
        let cell = &self.plan.cells[self.cell];
        let arms = self.plan.experiment.arms.iter().skip(1).enumerate();
        let later: f64 = self.plan.cells[self.cell + 1..].iter().map(|cell| f64::from(cell.frames_max)).sum();
        let here = f64::from(cell.frames_max.saturating_sub(frame.frame + 1));
        // At least what the precision needs here, at most what the budget allows everywhere.
        let at_most = (here + later) * self.frame_took_s;
        let at_least = decision.more_s.map_or(0.0, |more_s| more_s.min(here * self.frame_took_s));
        Status {
            cell: self.cell + 1,
            cells: self.plan.cells.len(),
            id: cell.id.clone(),
            frame: frame.frame + 1,
            frames_max: cell.frames_max,
            arms: arms.map(|(number, arm)| (arm.name.clone(), decision.arms.get(number).copied())).collect(),
            bought: decision.bought.filter(|half| *half > self.plan.experiment.measure.precision),
            elapsed_s: self.began.elapsed().as_secs_f64(),
            left_s: Some((at_least, at_most)),
        }
    }
}

impl Observer for Progress<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::CellStarted { cell } => {
                self.cell = *cell as usize;
                let planned = &self.plan.cells[self.cell];
                self.live = Some(Live::new(planned, &self.plan.experiment.measure, self.plan.experiment.arms.len()));
                (self.held, self.looked, self.loading) = (0, 0, None);
                self.say(&format!("[{}/{}] {}", self.cell + 1, self.plan.cells.len(), planned.id));
            }
            Event::ArmStarted { arm, version, .. } => self.draw(&format!("  {} started: {version}", self.arm(*arm))),
            Event::Loading { arm, done, of, .. } => {
                self.draw(&format!("  {}: {done} of {of} records loaded", self.arm(*arm)));
                if !self.terminal && self.loading != Some(*arm) {
                    self.loading = Some(*arm);
                    self.say(&format!("  {}: loading {of} records", self.arm(*arm)));
                }
            }
            Event::Evidence(finding) if finding.role == Role::Claim => {
                self.looked += 1;
                self.held += u32::from(finding.verdict == Verdict::Holds);
                let when = if finding.phase == Phase::Before { "before" } else { "after" };
                if finding.verdict == Verdict::Holds {
                    self.draw(&format!("  evidence {when} measuring: {} of {} claims hold", self.held, self.looked));
                } else {
                    let name = self.arm(finding.arm);
                    self.say(&format!(
                        "  evidence {when} measuring: {name}: {}: {:?}: {}",
                        finding.claim, finding.verdict, finding.guarded
                    ));
                }
            }
            Event::FrameDone { frame, spoiled: Some(reason), .. } => {
                self.say(&format!("  frame {frame} is spoiled: {reason}"))
            }
            Event::CellDone { reason, .. } => {
                self.say(&format!("  {} of {} claims hold; ended by: {reason}", self.held, self.looked));
            }
            Event::Warning { message } => self.say(&format!("  warning: {message}")),
            _ => {}
        }
    }

    fn frame(&mut self, frame: &Frame, slots: &[Slot]) -> bool {
        self.frame_took_s = frame.duration_ns as f64 / 1e9;
        let Some(live) = &mut self.live else { return false };
        if frame.spoiled.is_some() {
            return false;
        }
        live.push(slots);
        let decision = live.decide();
        let status = self.status(frame, &decision);
        self.draw(&live::line(&status, columns()));
        if !self.terminal && self.last_plain.is_none_or(|last| last.elapsed() > PLAIN_PAUSE) {
            self.last_plain = Some(Instant::now());
            self.say(&format!("  {}", live::plain_line(&status)));
        }
        decision.enough
    }
}

/// Width of the terminal, columns; 80 where it cannot be told.
pub fn columns() -> usize {
    // SAFETY: `size` is plain data that the call fills; on failure it stays zero.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size);
        size
    };
    if size.ws_col >= 40 { usize::from(size.ws_col) } else { 80 }
}
