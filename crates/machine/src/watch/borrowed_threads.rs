//! Binds threads of a server that Tithe did not start to a processor while they serve Tithe's clients.
//!
//! Such a thread may later serve other clients, so it must be unbound again, even if Tithe is killed. That is the task
//! of the *keeper*, a separate process that Tithe starts only for this. The keeper receives a thread's allowed
//! processors before the thread is bound, and restores them when Tithe has ended, however it ended. A thread that has
//! ended in the meantime is left alone, even if another thread has its number by then.
//!
//! Not covered: threads that serve several clients at once. Tithe must not slow down their work for others.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::{Mutex, PoisonError, atomic::AtomicBool},
};

use rustix::thread::CpuSet;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::process;
use crate::{launch::Command, proc::start_of, sandbox::process::outliving};

/// The bound threads, until the keeper restores their processors.
pub struct BorrowedThreads {
    /// This program with the arguments that call [`keep`].
    program: Command,
    keeper: Mutex<Option<Keeper>>,
}

struct Keeper {
    child: Child,
    /// `None` after the last message.
    told: Option<ChildStdin>,
    /// By the thread's number.
    threads: BTreeMap<i32, BorrowedThread>,
}

/// A thread's original state.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BorrowedThread {
    number: i32,
    /// When it began, in ticks since the machine's start: together with the number it identifies one thread for ever.
    began: u64,
    /// Its allowed logical processors.
    processors: Vec<usize>,
}

impl BorrowedThreads {
    /// Without threads. `program` starts the keeper when the first thread is bound.
    pub fn new(program: Command) -> Self {
        Self { program, keeper: Mutex::new(None) }
    }

    /// Binds `thread` to one logical processor. `false` if the kernel refuses, or if there is no keeper to restore its
    /// processors.
    pub fn bind(&self, thread: i32, processor: usize) -> bool {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            *keeper = Keeper::start(&self.program).ok();
        }
        keeper.as_mut().is_some_and(|keeper| keeper.knows(thread)) && process::pin(thread, processor)
    }

    /// Restores the processors of `thread`, if it was bound.
    pub fn give_back(&self, thread: i32) {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = keeper.as_ref().and_then(|keeper| keeper.threads.get(&thread)) {
            thread.give_back();
        }
    }

    /// Restores the processors of all bound threads.
    pub fn give_back_all(&self) {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.iter().flat_map(|keeper| keeper.threads.values()).for_each(BorrowedThread::give_back);
    }
}

impl Keeper {
    fn start(program: &Command) -> io::Result<Self> {
        let mut prepared = outliving(program, Path::new("/"));
        let mut child = prepared.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { told: child.stdin.take(), child, threads: BTreeMap::new() })
    }

    /// True once the keeper has received the state of `thread` before it was bound for the first time.
    fn knows(&mut self, thread: i32) -> bool {
        let Some(now) = BorrowedThread::as_it_is(thread) else { return false };
        if self.threads.get(&thread).is_some_and(|known| known.began == now.began) {
            return true;
        }
        let told = self.told.as_mut().is_some_and(|told| told.write_all(now.line().as_bytes()).is_ok());
        if told {
            self.threads.insert(thread, now);
        }
        told
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.told.take());
        // It ends at once. If it was lost, nothing more can be done.
        let _ = self.child.wait();
    }
}

impl BorrowedThread {
    fn as_it_is(number: i32) -> Option<Self> {
        Some(Self { number, began: start_of(number)?, processors: process::processors_of(number)? })
    }

    /// Restores its processors, unless it has ended.
    fn give_back(&self) {
        if start_of(self.number) == Some(self.began) {
            process::bind(self.number, &self.processors);
        }
    }

    /// Its line for the keeper.
    fn line(&self) -> String {
        let processors: Vec<String> = self.processors.iter().map(usize::to_string).collect();
        format!("{} {} {}\n", self.number, self.began, processors.join(","))
    }

    /// Parses such a line; `None` for any other.
    fn of_line(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (number, began) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let processors: Option<Vec<usize>> = fields.next()?.split(',').map(|number| number.parse().ok()).collect();
        let processors = processors.filter(|all| all.iter().all(|number| *number < CpuSet::MAX_CPU))?;
        Some(Self { number, began, processors }).filter(|thread| thread.number > 0)
    }
}

/// The keeper's work: reads `input` to its end, then restores the processors of all threads.
///
/// # Errors
/// When `input` cannot be read.
pub fn keep(input: &mut dyn BufRead) -> io::Result<()> {
    // Signals that end all processes of Tithe must not end the keeper.
    static UNHEEDED: AtomicBool = AtomicBool::new(false);
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, &UNHEEDED)?;
    }
    keep_to_the_end(input)
}

/// Like [`keep`], but signals end it.
fn keep_to_the_end(input: &mut dyn BufRead) -> io::Result<()> {
    let mut threads = Vec::new();
    let read = input.lines().try_for_each(|line| {
        threads.extend(BorrowedThread::of_line(&line?));
        Ok(())
    });
    threads.iter().for_each(BorrowedThread::give_back);
    read
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// An idle thread: its number, and the sender that ends it.
    fn standing() -> (i32, mpsc::Sender<()>) {
        let (number_to, number) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            number_to.send(rustix::thread::gettid().as_raw_pid()).expect("somebody listens");
            ended.recv().ok();
        });
        (number.recv().expect("it has begun"), end)
    }

    #[test]
    fn a_line_says_what_a_thread_was() {
        let (number, _end) = standing();
        let thread = BorrowedThread::as_it_is(number).expect("it is there");
        assert_eq!(BorrowedThread::of_line(&thread.line()), Some(thread));
        for line in ["", "12", "12 34", "12 34 x", "0 34 0", "-1 34 0", "12 34 99999", "x 34 0"] {
            assert_eq!(BorrowedThread::of_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_keeper_gives_back_what_it_was_told_and_leaves_alone_who_came_later() {
        let all = process::processors();
        let (first, _end) = standing();
        let (second, _end) = standing();
        let of = |number| BorrowedThread::as_it_is(number).expect("it is there");
        // As if the second thread's number had been reused.
        let later = BorrowedThread { began: of(second).began + 1, ..of(second) };
        let told = [of(first).line(), "what nobody can read\n".to_owned(), later.line()].concat();
        assert!(process::pin(first, all[0]) && process::pin(second, all[0]));
        keep_to_the_end(&mut told.as_bytes()).expect("it can be read");
        assert_eq!(process::processors_of(first), Some(all.clone()));
        assert_eq!(process::processors_of(second), Some(vec![all[0]]));
    }

    #[test]
    fn nothing_is_bound_that_nobody_would_give_back() {
        let all = process::processors();
        let (thread, _end) = standing();
        let program = Command { program: "/nowhere/tithe".into(), arguments: Vec::new(), environment: BTreeMap::new() };
        assert!(!BorrowedThreads::new(program).bind(thread, all[0]));
        assert_eq!(process::processors_of(thread), Some(all));
    }

    #[test]
    fn a_thread_is_bound_until_all_is_over() {
        let all = process::processors();
        let (thread, _end) = standing();
        // A keeper that restores nothing, to see what happens without one.
        let program = Command { program: "/bin/cat".into(), arguments: Vec::new(), environment: BTreeMap::new() };
        let borrowed = BorrowedThreads::new(program);
        assert!(borrowed.bind(thread, all[0]) && process::is_bound(thread, all[0]));
        borrowed.give_back(thread);
        assert_eq!(process::processors_of(thread), Some(all));
    }
}
