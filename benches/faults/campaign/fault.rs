//! What a fault is, and its moment.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use super::{
    case::{Case, Moment, Outputs, Run, now_ns},
    draw::Draw,
    interposed::Tools,
    product::{Kind, Reference},
};

/// One line of a family's table.
pub struct Fault {
    pub name: &'static str,
    /// The products that it can strike.
    pub on: fn(Kind) -> bool,
    pub how: How,
    /// Right exit statuses beside 0, which stands for a run that was not harmed; minus a signal that ended it.
    pub statuses: &'static [i32],
    /// One of these is said where the run was harmed; nothing has to be where there are none.
    pub words: &'static [&'static str],
    /// What is left of the run folder.
    pub leaves: Leaves,
    /// It ends what serves the frame that it strikes, which must not be used.
    pub spoils: bool,
    /// A run that was struck by it in earnest must not end as if nothing had been.
    pub noticed: bool,
    /// The run must end within this.
    pub patience: Duration,
}

pub enum How {
    /// The run begins under it.
    From(fn(&mut Begin<'_>)),
    /// It strikes at a drawn moment; false where there was nothing to strike.
    At(fn(&mut Run, &Case, &mut Draw) -> bool),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// A folder that reads and resumes.
    All,
    /// The same, and nothing of the run may differ: the fault is none that a program must notice.
    Unharmed,
    /// Files of it were taken away: it is refused with words, or reads.
    Damaged,
}

/// What a fault that is there from the beginning may change.
pub struct Begin<'a> {
    pub command: &'a mut Command,
    pub draw: &'a mut Draw,
    pub reference: &'a Reference,
    pub tools: &'a Tools,
    pub case: &'a Case,
    pub outputs: &'a mut Outputs,
}

impl Fault {
    /// What most faults have in common.
    pub const BARE: Self = Self {
        name: "",
        on: |_| true,
        how: How::From(|_| ()),
        statuses: &[],
        words: &[],
        leaves: Leaves::All,
        spoils: false,
        noticed: false,
        patience: Duration::from_secs(120),
    };
}

/// Waits for a drawn moment between the start of `run` and its end, by how far it has come: machines are busy. False
/// where it ends before.
pub fn wait(run: &mut Run, case: &Case, reference: &Reference, draw: &mut Draw) -> bool {
    let frames = draw.below(reference.frames as u64 + 1) as usize;
    let step = reference.length / (reference.frames as u32 + 1);
    let longer = step.mul_f64(draw.below(1000) as f64 / 1000.0);
    let begun = Instant::now();
    while case.frames() < frames && begun.elapsed() < Duration::from_secs(120) {
        if run.has_ended() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(longer);
    run.note_processes();
    run.struck = Some((case.frames(), Moment { after: now_ns(), before: None }));
    !run.has_ended()
}
