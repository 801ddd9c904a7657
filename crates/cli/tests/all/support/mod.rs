//! Runs the built program in a folder of its own.

pub mod delay;
pub mod hosts;
pub mod server;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use tithe_machine::sandbox::Sandbox;

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

    /// Writes the certificate of an authority, by which no server is known.
    pub fn certificate(&self, name: &str) {
        let sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let authority = sandbox.credentials().expect("certificates").authority;
        std::fs::copy(authority, self.path(name)).expect("the certificate is copied");
    }

    /// The program with `arguments`, in the folder, with the simulated database.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tithe"));
        command.args(arguments).current_dir(&self.folder).env("TITHE_SIMULATED", "1").env("NO_COLOR", "1");
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
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until `holds` does. It gives up after minutes, which no machine is too busy for, and the caller looks again.
pub fn wait_until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Standard output as text.
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The exit status.
pub fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}
