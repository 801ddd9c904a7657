//! Runs the built program in a folder of its own.

#[path = "../../../../databases/tests/support/at_end.rs"]
mod at_end;
pub mod delay;
pub mod hosts;
#[path = "../../../../databases/tests/support/made.rs"]
mod made;
pub mod pooler;
pub mod process;
pub mod server;
#[path = "../../../../databases/tests/support/small.rs"]
pub mod small;

use std::{
    collections::BTreeMap,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;
use tithe_machine::sandbox::{Sandbox, copy};
use tithe_model::invalid::Invalid;

use self::{at_end::locked, process::Process};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A folder that vanishes with its test.
pub struct Bench {
    folder: PathBuf,
}

impl Bench {
    /// A fresh folder below cargo's own for tests.
    pub fn new(name: &str) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::SeqCst);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Self { folder }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file is written");
        path
    }

    /// Writes a program and returns its path.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write_program(&path, text);
        path
    }

    /// Writes the certificate of an authority that has signed no server's.
    pub fn certificate(&self, name: &str) {
        let sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let authority = sandbox.credentials().expect("certificates").authority;
        std::fs::copy(authority, self.path(name)).expect("the certificate is copied");
    }

    /// The program with `arguments`, in the folder, with the simulated database.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.cautious_command(arguments);
        // The files of tests are written by the tests.
        if arguments.first().is_some_and(|first| ["run", "verify", "plan", "calibrate"].contains(first)) {
            let at = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
            let mut words = arguments.to_vec();
            words.insert(at, "--allow-commands");
            command = self.cautious_command(&words);
        }
        command
    }

    /// The same without allowing the commands of experiments in advance.
    pub fn cautious_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tithe"));
        command.args(arguments).current_dir(&self.folder).env("TITHE_SIMULATED", "1").env("NO_COLOR", "1");
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    /// Runs the program to its end.
    pub fn tithe(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tithe starts")
    }

    /// The only run folder.
    pub fn run_folder(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> = std::fs::read_dir(self.path("tithe-runs"))
            .expect("run folders")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        runs.retain(|path| path.join("plan.json").exists());
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    /// A file of the only run folder.
    pub fn kept(&self, name: &str) -> String {
        let path = self.run_folder().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A file in JSON of the only run folder.
    pub fn kept_json(&self, name: &str) -> Value {
        serde_json::from_str(&self.kept(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A file of the only run folder with a value in JSON on each line.
    pub fn kept_lines(&self, name: &str) -> Vec<Value> {
        self.kept(name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The report of the only run.
    pub fn report(&self) -> Value {
        self.kept_json("report.json")["tithe_report"].take()
    }

    /// The output of `tithe report` for the only run, in one line.
    pub fn whole_report(&self) -> String {
        words(&out(&self.tithe(&["report", &self.run_folder().display().to_string()])))
    }

    /// The current content of a file, of all runs that have begun.
    pub fn kept_so_far(&self, name: &str) -> String {
        let runs = std::fs::read_dir(self.path("tithe-runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| std::fs::read_to_string(run.path().join(name)).ok()).collect()
    }

    /// Current number of frames, of all runs that have begun.
    pub fn frames_so_far(&self) -> usize {
        self.kept_so_far("frames.jsonl").lines().count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An experiment on the simulated database, whose costs are known; `settings` are the database's, and `arms` are
/// compared with the plain one. Records have one field: on invented time a run takes as long as copying its fields.
pub fn known_costs(settings: &str, arms: &str, budget: &str) -> String {
    format!(
        r#"title = "Known costs"
database = "simulated"
[settings]
{settings}
[data]
records = 500
[measure]
budget = "{budget}"
precision = "0.2%"
[[workload]]
ycsb = "a"
properties = {{ fieldcount = "1" }}
[[arm]]
name = "plain"
{arms}"#
    )
}

/// A run by its experiment, with its output.
type Runs = BTreeMap<String, Arc<OnceLock<(Bench, Output)>>>;

/// Runs of this program's tests so far.
static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());

/// A bench with the run folder of `experiment` and the output of `tithe run`. The run is carried out once for all tests
/// of this program: on invented time the same experiment gives the same run.
pub fn measured(name: &str, experiment: &str) -> (Bench, Output) {
    let run = {
        let mut runs = locked(&RUNS);
        if runs.is_empty() {
            at_end::call(|| drop(std::mem::take(&mut *locked(&RUNS))));
        }
        runs.entry(experiment.to_owned()).or_default().clone()
    };
    let (first, output) = run.get_or_init(|| {
        let bench = Bench::new("measured");
        bench.file("e.toml", experiment);
        let output = bench.tithe(&["run", "e.toml", "--quiet"]);
        (bench, output)
    });
    let bench = Bench::new(name);
    bench.file("e.toml", experiment);
    copy::tree(&first.path("tithe-runs"), &bench.path("tithe-runs")).expect("a copy of the run");
    (bench, output.clone())
}

/// A setting for runs that do not need many operations: a fifth of them. On invented time a run's duration depends on
/// them.
pub const FEW_OPERATIONS: &str = "service_us = 100";

/// An arm that is named after its effect, with a protection of the simulated database and its options.
pub fn arm(name: &str, protection: &str, options: &str) -> String {
    format!("[[arm]]\nname = \"{name}\"\nprotections = [{{ use = \"{protection}\", {options} }}]\n")
}

/// An arm that adds this share to the time of an operation.
pub fn sealed(cost: f64) -> String {
    arm("sealed", "seal", &format!("cost = {cost}"))
}

/// Writes the text of a program. A shell opens the file and not this process: a child that another test forks meanwhile
/// would hold a copy of the descriptor, and the kernel executes no file that is open for writing (ETXTBSY).
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    let written = shell.args(["-c", "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"", "sh", text]).arg(path).status();
    assert!(written.is_ok_and(|status| status.success()), "{}", path.display());
}

/// Makes the program of `command` begin with this disposition of `signal`, which programs inherit.
pub fn begins_with(command: &mut Command, signal: i32, disposition: libc::sighandler_t) {
    // SAFETY: `signal` is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            libc::signal(signal, disposition);
            Ok(())
        });
    }
}

/// Lets the program of `command` measure until the folder of `bench` has this number of `frames`, and then interrupts
/// it: its exit status is 130, unless it has ended by itself before.
pub fn interrupted_after(frames: usize, bench: &Bench, command: &mut Command) -> Output {
    let mut run = Process::heard(command);
    while !run.has_ended() {
        if bench.frames_so_far() >= frames {
            run.signal(Signal::INT);
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    run.output()
}

/// Waits until `holds` returns true. It gives up after minutes, longer than any busy machine needs; then the caller
/// checks again.
pub fn wait_until(holds: impl Fn() -> bool) {
    wait_in_steps(Duration::from_millis(20), holds);
}

/// As [`wait_until`], with a `pause` between two checks.
pub fn wait_in_steps(pause: Duration, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(pause);
    }
}

/// Fails if one of `frames` is invalid. Exception: on a busy machine an arm may have no operation in its slots, in at
/// most half of the frames.
pub fn assert_valid(frames: &[Value]) {
    let invalid: Vec<&str> = frames.iter().filter_map(|frame| frame["invalid"].as_str()).collect();
    let is_passed = |why: &&str| matches!(Invalid::read(why), Invalid::OfArm(_, why) if *why == Invalid::NothingDone);
    assert!(invalid.iter().all(is_passed) && 2 * invalid.len() <= frames.len(), "{} frames: {invalid:?}", frames.len());
}

/// Standard output as text.
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `text` with single blanks, so that words in tables or across line breaks can be searched for.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The exit status.
pub fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}
