//! Who else runs: processes of this program that use all the processor time they get.

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

/// What a walker walks through: more than most processors' last cache, so that it pushes out what others keep there.
const WALKED_BYTES: usize = 48 << 20;

/// Bytes that a processor fetches at once.
const LINE_BYTES: usize = 64;

/// Who runs beside a measurement.
#[derive(Clone, Copy)]
pub enum Beside {
    /// So many busy loops; none of them is quiet.
    Hogs(usize),
    /// So many that walk through [`WALKED_BYTES`] each.
    Walkers(usize),
}

impl Beside {
    /// Starts them; they run until what is returned is dropped, or this process ends.
    pub fn start(self) -> Neighbours {
        let (count, what) = match self {
            Self::Hogs(count) => (count, HOG),
            Self::Walkers(count) => (count, WALKER),
        };
        let program = std::env::current_exe().expect("this program has a path");
        // Each reads its standard input, whose other end goes with this process however it ends.
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

/// Running neighbours, until dropped.
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

/// Changes every line of a large piece of memory, again and again.
pub fn walk() -> Result<(), String> {
    until_left(|| {
        let mut memory = vec![1_u8; WALKED_BYTES];
        loop {
            memory.iter_mut().step_by(LINE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&mut memory);
        }
    })
}

/// Does `work` in a thread until standard input ends.
fn until_left(work: fn()) -> Result<(), String> {
    std::thread::spawn(work);
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| format!("a neighbour: {error}"))
}
