//! Background load: processes of this program that use all the processor time they get.

use std::{
    fmt,
    hint::black_box,
    io::Read as _,
    process::{Child, Command, Stdio},
};

/// The argument that makes this program a hog.
pub const HOG: &str = "hog";

/// The argument that makes this program a walker.
pub const WALKER: &str = "walker";

/// Memory that a walker walks through: more than most processors' last-level cache, so that it evicts other data.
const WALKED_BYTES: usize = 48 << 20;

/// Size of a cache line, bytes.
const LINE_BYTES: usize = 64;

/// Background load of a measurement.
#[derive(Clone, Copy)]
pub enum Beside {
    /// Number of busy loops; none means a quiet machine.
    Hogs(usize),
    /// Number of processes that walk through [`WALKED_BYTES`] each.
    Walkers(usize),
}

impl Beside {
    /// Starts them; they run until the result is dropped, or this process ends.
    pub fn start(self) -> Neighbours {
        let (count, what) = match self {
            Self::Hogs(count) => (count, HOG),
            Self::Walkers(count) => (count, WALKER),
        };
        let program = std::env::current_exe().expect("this program has a path");
        // Each reads its standard input, which closes when this process ends for any reason.
        let start = || Command::new(&program).arg(what).stdin(Stdio::piped()).spawn().expect("a neighbour starts");
        Neighbours((0..count).map(|_| start()).collect())
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hogs(0) => write!(formatter, "nobody"),
            Self::Hogs(count) => write!(formatter, "{count} busy loops"),
            Self::Walkers(count) => write!(formatter, "{count} that walk {} MiB", WALKED_BYTES >> 20),
        }
    }
}

/// Running load processes, until dropped.
pub struct Neighbours(Vec<Child>);

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A busy loop.
pub fn hog() -> Result<(), String> {
    until_left(|| {
        let mut turns = 0_u64;
        loop {
            turns = black_box(turns.wrapping_add(1));
        }
    })
}

/// Changes every cache line of a large piece of memory repeatedly.
pub fn walk() -> Result<(), String> {
    until_left(|| {
        let mut memory = vec![1_u8; WALKED_BYTES];
        loop {
            memory.iter_mut().step_by(LINE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&mut memory);
        }
    })
}

/// Runs `work` in a thread until standard input ends.
fn until_left(work: fn()) -> Result<(), String> {
    std::thread::spawn(work);
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| format!("a neighbour: {error}"))
}
