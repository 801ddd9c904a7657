//! Progress on standard error during a run, and the decision when a cell has been measured enough.
//!
//! On a terminal a few lines are redrawn; elsewhere a line is written from time to time. While a server starts or
//! evidence is gathered there are no events for seconds, so a clock in these lines keeps moving. Once frames are
//! measured it moves only between them, so that drawing takes no time from any arm.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::termios::tcgetwinsize;
use tithe_analysis::{
    report::{
        claims::Claims,
        live::{self, ArmNow, Pace, Status},
        number, words,
    },
    stopping::{Decision, Live},
};
use tithe_harness::run::{Advice, EventListener};
use tithe_machine::threads;
use tithe_model::{
    ending::CellEnding,
    plan::{FRAMES_MIN, Plan},
    record::{Event, Finding, Frame, Slot, Verdict},
    records::Records,
};

use crate::shown;

/// Time between two lines if they are not redrawn.
const PLAIN_PAUSE: Duration = Duration::from_secs(15);

/// Time between two moves of the clock without other events.
const TICK: Duration = Duration::from_secs(1);

/// The lines on the terminal.
struct Screen {
    began: Instant,
    /// The content of the panel.
    status: Status,
    /// Lines of the panel that are on the terminal.
    lines: usize,
    /// When it was last drawn because of an event.
    heard: Instant,
    /// Time without events after which the clock moves by itself.
    silence: Duration,
}

impl Screen {
    fn draw(&mut self) {
        self.status.elapsed_s = self.began.elapsed().as_secs_f64();
        self.clear();
        let (columns, rows) = size();
        // One column and one row stay free, so that no line wraps and nothing scrolls.
        let lines = match self.late(self.heard.elapsed()) {
            Some(doing) => live::panel(&Status { doing, ..self.status.clone() }, columns - 1, rows.saturating_sub(2)),
            None => live::panel(&self.status, columns - 1, rows.saturating_sub(2)),
        };
        shown::write_err(&lines.join("\n"));
        self.lines = lines.len();
    }

    /// Removes the panel; the next output replaces it.
    fn clear(&mut self) {
        if self.lines > 0 {
            let up = if self.lines > 1 { format!("\x1b[{}A", self.lines - 1) } else { String::new() };
            shown::write_err(&format!("\r{up}\x1b[J"));
            self.lines = 0;
        }
    }

    /// The text about a frame that should have ended, if there was no event for so long; `None` if none is late.
    fn late(&self, silent: Duration) -> Option<String> {
        let late = self.status.doing.is_empty() && !self.silence.is_zero() && silent > self.silence;
        let ago = || number::duration(silent.as_secs_f64());
        late.then(|| format!("waiting for a frame to end: the last was {} ago", ago()))
    }

    /// True if there was no event for so long, which is longer than expected, and a panel is shown.
    fn is_due(&self, silent: Duration) -> bool {
        self.lines > 0 && silent > self.silence
    }

    fn tick(&mut self) {
        if self.is_due(self.heard.elapsed()) {
            self.draw();
        }
    }
}

/// Moves the clock of a screen until it is dropped.
struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn of(screen: &Arc<Mutex<Screen>>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let screen = Arc::clone(screen);
        // If the machine refuses a thread, only the clock stands still.
        let thread = threads::spawn(move || {
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                lock(&screen).tick();
            }
        });
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A screen is plain data: a thread that panicked with the lock left it consistent.
fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest duration of a cell and all later ones.
#[derive(Debug, Clone, Copy, Default)]
struct Later {
    /// Of their frames, s.
    frames_s: f64,
    /// Of the restarts that their plans allow, s.
    starting_s: f64,
}

impl Later {
    /// From each cell of `plan` on, and after the last.
    fn of(plan: &Plan) -> Vec<Self> {
        let mut later = vec![Self::default()];
        for cell in plan.cells.iter().rev() {
            let frames_s = f64::from(cell.frames_max) * cell.frame_ns(plan.experiment.arms.len()) as f64 / 1e9;
            let starts_again = cell.epochs > 1 || cell.starts_per_epoch() > 1;
            let starting_s = if starts_again { frames_s * cell.after_start.starting_share() } else { 0.0 };
            let Self { frames_s: frames, starting_s: starting } = later[later.len() - 1];
            later.push(Self { frames_s: frames + frames_s, starting_s: starting + starting_s });
        }
        later.reverse();
        later
    }
}

/// Shows progress and ends cells that are precise enough.
pub struct Progress<'a> {
    plan: &'a Plan,
    /// By cell, one more than there are.
    later: Vec<Later>,
    cell: usize,
    /// The measurements before the run was resumed.
    before: Option<&'a Records>,
    live: Option<Live>,
    /// Load of the current cell so far, ns.
    load_ns: u64,
    loading: Option<u32>,
    claims: Claims,
    last_plain: Option<Instant>,
    frame_took_s: f64,
    /// State of the current cell, for the panel.
    status: Status,
    /// Where it is drawn; `None` if it is not drawn.
    screen: Option<Arc<Mutex<Screen>>>,
    _ticker: Option<Ticker>,
    began: Instant,
    quiet: bool,
    terminal: bool,
}

impl<'a> Progress<'a> {
    /// Progress of a run of `plan`; `before` has the earlier measurements.
    pub fn new(plan: &'a Plan, quiet: bool, before: Option<&'a Records>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let named = |arm: &tithe_model::experiment::Arm| ArmNow::named(&arm.name);
        let status = Status {
            cells: plan.cells.len(),
            plain: plan.experiment.arms.first().map(named).unwrap_or_default(),
            arms: plan.experiment.arms.iter().skip(1).map(named).collect(),
            precision: plan.experiment.measure.precision,
            ..Status::default()
        };
        let began = Instant::now();
        let screen = Screen { began, status: status.clone(), lines: 0, heard: began, silence: Duration::ZERO };
        let screen = (terminal && !quiet).then(|| Arc::new(Mutex::new(screen)));
        Self {
            plan,
            later: Later::of(plan),
            before,
            load_ns: 0,
            cell: 0,
            live: None,
            loading: None,
            claims: Claims::default(),
            last_plain: None,
            frame_took_s: 0.0,
            _ticker: screen.as_ref().map(Ticker::of),
            screen,
            status,
            began,
            quiet,
            terminal,
        }
    }

    /// Writes a line that stays; nothing if the run is quiet.
    pub fn say(&mut self, line: &str) {
        if !self.quiet {
            self.clear();
            shown::write_err(&format!("{line}\n"));
        }
    }

    /// Draws the panel with the current activity, `doing`; nothing while frames run.
    fn draw(&mut self, doing: &str) {
        let Some(screen) = &self.screen else { return };
        doing.clone_into(&mut self.status.doing);
        self.status.claims.clone_from(&self.claims);
        let mut screen = lock(screen);
        screen.status.clone_from(&self.status);
        screen.heard = Instant::now();
        // The next frame reports when it is done.
        let frame = Duration::from_secs_f64(1.5 * self.frame_took_s) + TICK;
        screen.silence = if doing.is_empty() { frame } else { Duration::ZERO };
        screen.draw();
    }

    /// Removes the panel; the next output replaces it.
    fn clear(&self) {
        if let Some(screen) = &self.screen {
            lock(screen).clear();
        }
    }

    fn arm(&self, arm: u32) -> &'a str {
        &self.plan.experiment.arms[arm as usize].name
    }

    /// Adds the load of `frame`, and computes how many frames of its length the budget still allows.
    fn spend(&mut self, frame: &Frame, slots: &[Slot]) {
        let (cell, arms) = (&self.plan.cells[self.cell], self.plan.experiment.arms.len());
        let frame_ns = cell.load_ns(frame, slots, arms);
        self.load_ns += frame_ns;
        let left_ns = cell.budget_ns(arms).saturating_sub(self.load_ns);
        self.status.frames_max = frame.frame + 1 + (left_ns / frame_ns.max(1)) as u32;
        if let Some(live) = &mut self.live {
            live.expect(frame_ns as f64 / 1e9, self.status.frames_max);
        }
    }

    /// Begins cell `cell`, and shows its heading.
    fn begin(&mut self, cell: usize) {
        self.cell = cell;
        let planned = &self.plan.cells[cell];
        self.live = Some(Live::new(self.plan, cell));
        (self.claims, self.loading) = (Claims::default(), None);
        self.status.cell = cell + 1;
        (self.status.frame, self.status.frames_max) = (0, planned.frames_max);
        self.status.id.clone_from(&planned.id);
        let later = self.plan.cells[cell + 1..].iter();
        self.status.to_come = later.take(live::NAMED).map(|cell| cell.id.clone()).collect();
        self.status.plain.pace = None;
        self.status.arms.iter_mut().for_each(|arm| (arm.cost, arm.pace) = (None, None));
        self.load_ns = 0;
        self.take_up();
        (self.status.busy, self.status.pressure, self.status.bought) = (None, None, None);
        self.say(&live::heading(&self.status));
        self.draw("starting the arms");
    }

    /// Adds the frames of the current cell that were measured before the run was resumed. Those of a pair of sides that
    /// was cut short count for the budget alone.
    fn take_up(&mut self) {
        let Some(before) = self.before else { return };
        let cell = &self.plan.cells[self.cell];
        let whole = cell.whole_pairs(before.frames_of(self.cell));
        let counts =
            |frame: &Frame| frame.invalid.is_none() && (!cell.design.is_switched() || whole.contains(&frame.start));
        if let Some(live) = &mut self.live {
            before.cells[self.cell].warm_ups.iter().cloned().for_each(|warmed_up| live.warmed_up(warmed_up));
        }
        let mut frames = BTreeMap::new();
        for frame in before.frames_of(self.cell).iter().filter(|frame| !frame.free) {
            frames.insert(frame.frame, (frame, Vec::new()));
        }
        for slot in before.slots_of(self.cell) {
            frames.entry(slot.frame).and_modify(|(_, slots)| slots.push(*slot));
        }
        for (frame, slots) in frames.into_values() {
            self.spend(frame, &slots);
            if let Some(live) = self.live.as_mut().filter(|_| counts(frame)) {
                live.on_data_of(frame.epoch);
                live.push(frame.start, &slots);
            }
        }
    }

    /// Shows the result of a check of a claim; one that does not hold as a line that stays.
    fn checked(&mut self, finding: &Finding) {
        self.claims.add(finding);
        let when = finding.phase.word();
        let name = self.arm(finding.arm);
        if finding.verdict == Verdict::Holds {
            self.draw(&format!("checked {when} measuring: ✓ {name}: {}", finding.claim));
        } else {
            let (sign, word, _) = words::finding(finding.role, finding.verdict);
            self.say(&format!("  {sign} {name}, {when} measuring: {}: {word}: {}", finding.claim, finding.protected));
        }
    }

    /// Shows how the current cell ended, and its answers.
    fn done(&mut self, reason: &CellEnding) {
        let measured = self.live.as_ref().is_some_and(|live| live.frames() > 0);
        let few = self.end(reason);
        let answers = live::answers(&self.status, size().0);
        let is_well = self.claims.all_hold() && !matches!(reason, CellEnding::Failed(_));
        let sign = if is_well { "✓" } else { "!" };
        let claims = (self.claims.looked_at() > 0).then(|| format!("{}; ", self.claims.in_words()));
        // The reason is printed once, at the end of the run.
        let ending = match reason {
            CellEnding::Failed(_) if !measured => "not measured".to_owned(),
            _ => words::ending(Some(reason)),
        };
        self.say(&format!("  {sign} {}{ending}", claims.unwrap_or_default()));
        match few {
            Some(few) => self.say(&format!("  not enough frames: {few} of {FRAMES_MIN}")),
            None => answers.iter().for_each(|line| self.say(line)),
        }
    }

    /// Sets the report's figures in the status, now that the cell has ended for `reason`; returns the number of frames
    /// if they are too few.
    fn end(&mut self, reason: &CellEnding) -> Option<usize> {
        let live = self.live.as_ref().filter(|live| live.frames() > 0)?;
        let intervals = live.ended(reason);
        let few = intervals.is_none().then(|| live.frames());
        for (number, arm) in self.status.arms.iter_mut().enumerate() {
            arm.cost = intervals.as_ref().and_then(|all| all.get(number).copied());
        }
        few
    }

    /// Longest duration of the cells that have not begun, s: their frames with the connection time of the current cell,
    /// and the restarts that their plans allow.
    fn later_s(&self) -> f64 {
        let frame_s = self.plan.cells[self.cell].frame_ns(self.plan.experiment.arms.len()) as f64 / 1e9;
        let connecting = (self.frame_took_s / frame_s).max(1.0);
        let Later { frames_s, starting_s } = self.later[self.cell + 1];
        frames_s * connecting + starting_s
    }

    /// Adds the results of `frame` and its `slots`.
    fn update(&mut self, frame: &Frame, slots: &[Slot], decision: &Decision) {
        let here = f64::from(self.status.frames_max.saturating_sub(frame.frame + 1));
        // At least what the precision needs here, at most what the budget allows for all cells. The result may be
        // certain at any time.
        let at_most = here * self.frame_took_s + decision.starting_s + self.later_s();
        let needed = decision.more_s.filter(|_| !self.plan.experiment.measure.until_decided);
        let at_least = needed.map_or(0.0, |more_s| more_s.min(here * self.frame_took_s));
        self.status.frame = frame.frame + 1;
        let cell = &self.plan.cells[self.cell];
        self.status.plain.pace = Pace::of(cell, frame, slots, 0);
        for (number, arm) in self.status.arms.iter_mut().enumerate() {
            arm.cost = decision.arms.get(number).copied();
            arm.pace = Pace::of(cell, frame, slots, number + 1);
        }
        self.status.bought = decision.bought.filter(|half| *half > self.plan.experiment.measure.precision);
        self.status.busy = busy(slots);
        self.status.pressure = frame.host.cpu_pressure;
        self.status.elapsed_s = self.began.elapsed().as_secs_f64();
        self.status.left_s = Some((at_least, at_most));
    }
}

/// Share of the clients' wall time in which clients and servers ran; `None` without a slot.
fn busy(slots: &[Slot]) -> Option<(f64, f64)> {
    let sum = |read: fn(&Slot) -> u64| slots.iter().map(read).sum::<u64>() as f64;
    let wall = sum(|slot| slot.wall_ns);
    (wall > 0.0).then(|| (sum(|slot| slot.client_cpu_ns) / wall, sum(|slot| slot.server_cpu_ns) / wall))
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl EventListener for Progress<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::CellStarted { cell } => self.begin(*cell as usize),
            Event::StartsShared { .. } => {
                if let Some(live) = &mut self.live {
                    live.starts_shared(self.plan);
                }
            }
            Event::ArmStarted { arm, version, .. } => self.draw(&format!("{} started: {version}", self.arm(*arm))),
            Event::Loading { arm, done, of, .. } => {
                let (done, of) = (number::count(*done), number::count(*of));
                self.draw(&format!("{}: {done} of {of} records loaded", self.arm(*arm)));
                if !self.terminal && self.loading != Some(*arm) {
                    self.loading = Some(*arm);
                    self.say(&format!("  {}: loading {of} records", self.arm(*arm)));
                }
            }
            Event::WarmingUp { done_s, at_most_s, .. } => {
                if let Some(live) = &mut self.live {
                    live.warming_up(*done_s);
                }
                let (done, at_most) = (number::duration(*done_s), number::duration(*at_most_s));
                self.draw(&format!("warming up until the servers are steady: {done}, at most {at_most}"));
            }
            Event::WarmedUp(warmed_up) => {
                if let Some(live) = &mut self.live {
                    live.warmed_up(warmed_up.clone());
                }
            }
            Event::Switching { arm, done_s, at_most_s, .. } => {
                let (done, at_most) = (number::duration(*done_s), number::duration(*at_most_s));
                self.draw(&format!(
                    "the provider switches the server to {}: {done}, at most {at_most}",
                    self.arm(*arm)
                ));
            }
            Event::Switched { arm, took_s, .. } => {
                let took = number::duration(*took_s);
                self.say(&format!("  the provider has switched the server to {}: {took}", self.arm(*arm)));
            }
            Event::Idle { length_s, .. } => {
                self.draw(&format!("idle for {}: what the servers use without clients", number::duration(*length_s)));
            }
            Event::Looking { arm, phase, claim, .. } => {
                self.draw(&format!("checking {} measuring: {}: {claim} …", phase.word(), self.arm(*arm)));
            }
            Event::StartedAnew { took_s, .. } => {
                if let Some(live) = &mut self.live {
                    live.started_anew(*took_s);
                }
            }
            Event::Evidence(finding) if finding.role.is_claim() => self.checked(finding),
            Event::FrameDone { frame, invalid: Some(reason), .. } => {
                self.say(&format!("  frame {frame} is invalid: {reason}"))
            }
            Event::CellDone { reason, .. } => self.done(reason),
            Event::Warning { message } => self.say(&format!("  warning: {message}")),
            _ => {}
        }
    }

    fn frame(&mut self, frame: &Frame, slots: &[Slot]) -> Advice {
        self.frame_took_s = frame.duration_ns as f64 / 1e9;
        self.spend(frame, slots);
        let Some(live) = &mut self.live else { return Advice::default() };
        if frame.invalid.is_some() {
            return Advice::default();
        }
        live.on_data_of(frame.epoch);
        live.push(frame.start, slots);
        let decision = live.decide();
        self.update(frame, slots, &decision);
        self.draw("");
        if !self.terminal && self.last_plain.is_none_or(|last| last.elapsed() > PLAIN_PAUSE) {
            self.last_plain = Some(Instant::now());
            self.say(&format!("  {}", live::plain_line(&self.status)));
        }
        Advice { enough: decision.enough, starts: decision.starts }
    }
}

/// Width of the terminal, columns; 80 if it is unknown.
pub fn columns() -> usize {
    size().0
}

/// Columns and rows of the terminal; 80 and 24 if they are unknown.
fn size() -> (usize, usize) {
    let (columns, rows) = tcgetwinsize(std::io::stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
    let or = |seen: u16, least: u16, usual: usize| if seen >= least { usize::from(seen) } else { usual };
    (or(columns, 20, 80), or(rows, 4, 24))
}

#[cfg(test)]
mod tests {
    use tithe_model::{experiment::Design, record::Machine, records::CellFacts};
    use tithe_plugin::simulated::Simulated;

    use super::*;

    const EXPERIMENT: &str = "title = \"t\"\ndatabase = \"simulated\"\ndata.records = 1000\n\
        [measure]\naa_arm = false\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n\
        [[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

    #[test]
    fn frames_of_a_pair_of_sides_that_was_cut_short_count_for_the_budget_alone() {
        let catalogue = tithe_harness::catalogue::catalogue(&[&Simulated]);
        let experiment = tithe_model::parse::parse(EXPERIMENT, &catalogue, &|_| Err(std::io::Error::other("no file")));
        let mut plan = tithe_model::plan::plan(experiment.expect("an experiment"), &catalogue).expect("a plan");
        plan.cells[0].design = Design::Switched { frames_a_side: 2 };
        // The second pair lacks its last frame.
        let numbers = (0..12).filter(|number| *number != 7);
        let frames = numbers.map(|frame| Frame { frame, start: frame / 4, epoch: frame / 4, ..Frame::default() });
        let records = Records {
            run: String::new(),
            plan: plan.clone(),
            machine: Machine::default(),
            cells: vec![CellFacts::default()],
            frames: frames.collect(),
            slots: Vec::new(),
            findings: Vec::new(),
            events: Vec::new(),
            profile: Vec::new(),
            damage: Vec::new(),
        };
        let mut progress = Progress::new(&plan, true, Some(&records));
        progress.event(&Event::CellStarted { cell: 0 });
        assert_eq!(progress.live.as_ref().map(Live::frames), Some(8));
        assert_eq!(progress.load_ns, 11 * plan.cells[0].load_ns(&Frame::default(), &[], 2));
    }

    #[test]
    fn the_clock_moves_where_a_panel_stands_and_nothing_is_heard() {
        let began = Instant::now();
        let [none, two, three] = [0, 2, 3].map(Duration::from_secs);
        let mut screen = Screen { began, status: Status::default(), lines: 3, heard: began, silence: two };
        assert_eq!([none, two, three].map(|silent| screen.is_due(silent)), [false, false, true]);
        assert_eq!(screen.late(two), None, "a frame is measured");
        assert_eq!(screen.late(three).as_deref(), Some("waiting for a frame to end: the last was 3 s ago"));
        screen.status.doing = "loading".to_owned();
        assert_eq!(screen.late(three), None, "something else is done");
        (screen.silence, screen.status.doing) = (none, String::new());
        assert!(screen.is_due(two));
        assert_eq!(screen.late(three), None, "no frame is measured");
        screen.lines = 0;
        assert!(!screen.is_due(three), "no panel stands there");
    }
}
