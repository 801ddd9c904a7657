//! One case: its folder, its runs, and what they said.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use rustix::process::Signal;
use tithe_machine::proc::{ProcessSnapshot, signal};

use super::{
    machine,
    product::{Product, Site},
};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A folder with an experiment, a decoy tree beside it, and all that the program leaves there.
pub struct Case {
    pub product: &'static dyn Product,
    /// What it is measured on, where that was started for it.
    pub site: Site,
    pub folder: PathBuf,
    /// The decoy tree as it was made.
    decoy: String,
    /// Processes of the program, and those that were seen below them.
    pub processes: BTreeSet<i32>,
    /// What undoes what a fault did to the machine.
    undo: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    began: machine::Shared,
    /// What was wrong while the fault struck.
    pub complaints: Mutex<Vec<String>>,
}

/// Where the program's outputs go, unless they are kept.
#[derive(Default)]
pub struct Outputs {
    pub out: Option<Stdio>,
    pub err: Option<Stdio>,
}

/// The program at work.
pub struct Run {
    child: Child,
    begun: Instant,
    ended: Option<ExitStatus>,
    seen: BTreeSet<i32>,
    /// Frames that were there before the fault struck, and when it did.
    pub struck: Option<(usize, Moment)>,
}

/// A fault struck between two moments, ns since 1970: finding a process and sending a signal take time.
#[derive(Clone, Copy)]
pub struct Moment {
    pub after: u64,
    /// `None` until it is known.
    pub before: Option<u64>,
}

/// How a run ended, and what it said.
pub struct Ended {
    pub status: Option<ExitStatus>,
    pub said: String,
    pub after: Duration,
    pub struck: Option<(usize, Moment)>,
}

impl Case {
    pub fn new(product: &'static dyn Product) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("tithe-runs")).expect("a folder");
        let site = product.site();
        fs::write(folder.join("e.toml"), product.experiment(&site)).expect("the experiment is written");
        make_decoy(&folder);
        let decoy = decoy(&folder);
        let began = machine::Shared::take();
        Self {
            product,
            site,
            folder,
            decoy,
            processes: BTreeSet::new(),
            undo: Mutex::default(),
            began,
            complaints: Mutex::default(),
        }
    }

    /// The program with `arguments`.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let built = || env!("CARGO_BIN_EXE_tithe").into();
        let mut command = Command::new(std::env::var_os("TITHE_PROGRAM").unwrap_or_else(built));
        command.args(arguments).current_dir(&self.folder).env("TITHE_SIMULATED", "1").env("NO_COLOR", "1");
        if ["run", "verify"].iter().any(|word| arguments.first() == Some(word)) {
            command.arg("--allow-commands");
        }
        command.env("XDG_STATE_HOME", self.folder.join("state"));
        // With it, a thread that finds no memory while it prints a backtrace waits for the lock that it holds, in the
        // standard library.
        command.env_remove("RUST_BACKTRACE");
        command
    }

    /// Starts `command` in a process group of its own; what it says is kept, but for what goes to `outputs`.
    pub fn start(&mut self, mut command: Command, outputs: Outputs) -> Run {
        let said = File::create(self.folder.join("said")).expect("a file");
        let kept = || Stdio::from(said.try_clone().expect("a file"));
        command.process_group(0).stdin(Stdio::null());
        command.stdout(outputs.out.unwrap_or_else(kept)).stderr(outputs.err.unwrap_or_else(kept));
        let child = command.spawn().expect("tithe starts");
        self.processes.insert(child.id() as i32);
        Run { child, begun: Instant::now(), ended: None, seen: BTreeSet::new(), struck: None }
    }

    /// Waits for the end of `run`, for `patience` at most: then it is killed.
    pub fn end(&mut self, mut run: Run, patience: Duration) -> Ended {
        while !run.has_ended() && run.begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(3));
        }
        let (status, after) = (run.ended, run.begun.elapsed());
        if status.is_none() {
            let _ = run.child.kill();
            let _ = run.child.wait();
        }
        self.processes.extend(run.seen.iter());
        let said = fs::read(self.folder.join("said")).unwrap_or_default();
        Ended { status, said: String::from_utf8_lossy(&said).into_owned(), after, struck: run.struck }
    }

    /// Runs the program with `arguments` to its end.
    pub fn tithe(&mut self, arguments: &[&str]) -> Ended {
        let command = self.command(arguments);
        let run = self.start(command, Outputs::default());
        self.end(run, Duration::from_secs(120))
    }

    /// Run folders, finished or not, by their names.
    pub fn runs(&self) -> Vec<PathBuf> {
        runs_in(&self.folder.join("tithe-runs"))
    }

    /// Whole lines of `frames.jsonl` so far.
    pub fn frames(&self) -> usize {
        frames_in(&self.folder.join("tithe-runs"))
    }

    /// True while the decoy tree is what it was.
    pub fn decoy_is_whole(&self) -> bool {
        decoy(&self.folder) == self.decoy
    }

    /// Keeps what was wrong while the fault struck.
    pub fn complain(&self, words: String) {
        self.complaints.lock().expect("nobody panics with it").push(words);
    }

    /// Has `undo` called when the fault is over.
    pub fn when_over(&self, undo: impl FnOnce() + Send + 'static) {
        self.undo.lock().expect("nobody panics with it").push(Box::new(undo));
    }

    /// Undoes what the fault did to the machine.
    pub fn over(&self) {
        let undo = std::mem::take(&mut *self.undo.lock().expect("nobody panics with it"));
        undo.into_iter().rev().for_each(|undo| undo());
    }

    /// What there is on the machine that belongs to this case and should not.
    pub fn left_behind(&self) -> Vec<String> {
        machine::left_behind(&self.folder, &self.processes, &self.began)
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.over();
    }
}

impl Run {
    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a state");
        }
        self.ended.is_some()
    }

    /// The fault has struck by now.
    pub fn has_been_struck(&mut self) {
        if let Some((_, moment)) = &mut self.struck {
            moment.before.get_or_insert_with(now_ns);
        }
    }

    /// Sends the program `what`; false where it has ended.
    pub fn signal(&mut self, what: Signal) -> bool {
        !self.has_ended() && signal(self.id(), what).is_ok()
    }

    /// Notes which processes are below the program.
    pub fn note_processes(&mut self) -> Vec<i32> {
        if self.has_ended() {
            return Vec::new();
        }
        let below: Vec<i32> =
            ProcessSnapshot::take().tree(self.id()).into_iter().filter(|process| *process != self.id()).collect();
        self.seen.extend(below.iter());
        below
    }
}

impl Ended {
    /// The exit status; minus the signal that ended it; `None`: it did not end.
    pub fn code(&self) -> Option<i32> {
        let status = self.status?;
        status.code().or_else(|| status.signal().map(|signal| -signal))
    }

    pub fn in_words(&self) -> String {
        match self.code() {
            None => "did not end".to_owned(),
            Some(code @ ..0) => format!("signal {}", -code),
            Some(0) => "unharmed".to_owned(),
            Some(code) => format!("status {code}"),
        }
    }
}

/// ns since 1970.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64
}

/// Run folders in `folder`, finished or not, by their names.
fn runs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    runs.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DECOYS)));
    runs.sort();
    runs
}

/// Whole lines of `frames.jsonl` of the first run in `folder`.
pub fn frames_in(folder: &Path) -> usize {
    runs_in(folder).first().map_or(0, |run| whole_lines(run).len())
}

/// What decoys in the folder of runs are called.
const DECOYS: &str = "tithe-sandbox-";

/// The complete lines of `frames.jsonl` in a run folder.
pub fn whole_lines(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("frames.jsonl")).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
}

/// Makes files that do not belong to Tithe, under names that it could take for its own, with links out of its folders.
fn make_decoy(folder: &Path) {
    let decoy = folder.join("decoy");
    fs::create_dir_all(decoy.join("deep/er")).expect("a decoy");
    fs::write(decoy.join("deep/er/file"), "nobody's").expect("a decoy");
    fs::write(decoy.join("frames.jsonl"), "{\"cell\":0}\n").expect("a decoy");
    let own = folder.join("tithe-runs").join(format!("{DECOYS}mine"));
    fs::create_dir_all(&own).expect("a decoy");
    fs::write(own.join("file"), "nobody's either").expect("a decoy");
    std::os::unix::fs::symlink(&decoy, folder.join("tithe-runs").join(format!("{DECOYS}0-0"))).expect("a decoy");
}

/// Names, kinds, modes and bytes of the decoys.
fn decoy(folder: &Path) -> String {
    let mut all = Vec::new();
    let mut open = vec![folder.join("decoy"), folder.join(format!("tithe-runs/{DECOYS}mine"))];
    open.push(folder.join(format!("tithe-runs/{DECOYS}0-0")));
    while let Some(path) = open.pop() {
        let Ok(seen) = fs::symlink_metadata(&path) else { continue };
        let bytes = if seen.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        all.push(format!("{path:?} {:?} {:?} {bytes:?}", seen.file_type(), seen.permissions()));
        if seen.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    all.sort();
    all.join("\n")
}
