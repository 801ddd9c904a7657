//! Runs the program as a user does.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tithe_analysis::assess::assess;

use crate::{analysis::read, beside::Beside};

/// A run of the program in a folder of its own, which is kept.
pub struct Run {
    folder: PathBuf,
    child: Child,
}

impl Run {
    /// Starts the program on `experiment`.
    pub fn new(name: &str, experiment: &str) -> Self {
        Self::with(name, experiment, &[])
    }

    /// Starts the program on `experiment` with further `arguments`.
    pub fn with(name: &str, experiment: &str, arguments: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("truth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("e.toml"), experiment).expect("the experiment is written");
        let child = Command::new(env!("CARGO_BIN_EXE_tithe"))
            .args(["run", "e.toml", "--quiet", "--json", "--allow-commands"])
            .args(arguments)
            .current_dir(&folder)
            .env("TITHE_SIMULATED", "1")
            // Permissions given here are deleted with the folder.
            .env("XDG_STATE_HOME", &folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("tithe starts");
        Self { folder, child }
    }

    /// Waits for the end; the run folder. If there is none, the program itself has printed why.
    pub fn finish(mut self) -> Result<PathBuf, String> {
        let status = self.child.wait().expect("tithe ends");
        let runs = std::fs::read_dir(self.folder.join("tithe-runs")).into_iter().flatten().flatten();
        let run = runs.map(|entry| entry.path()).find(|path| path.is_dir());
        run.ok_or_else(|| format!("tithe measured nothing: {status}"))
    }

    /// Waits for the end; the report.
    pub fn wait(self) -> Result<Value, String> {
        Ok(report(&self.finish()?))
    }

    /// Waits for the end, with the load `beside` from now on; the run folder.
    pub fn finish_beside(self, beside: Beside) -> Result<PathBuf, String> {
        let neighbours = beside.start();
        let folder = self.finish();
        drop(neighbours);
        folder
    }

    /// The same; the report.
    pub fn wait_beside(self, beside: Beside) -> Result<Value, String> {
        Ok(report(&self.finish_beside(beside)?))
    }

    /// Runs hogs for the first half of the frames.
    pub fn half_with_hogs(&mut self, count: usize) {
        let hogs = Beside::Hogs(count).start();
        while self.child.try_wait().expect("a state").is_none() && !self.half_done() {
            std::thread::sleep(Duration::from_millis(200));
        }
        drop(hogs);
    }

    fn half_done(&self) -> bool {
        let runs = std::fs::read_dir(self.folder.join("tithe-runs")).into_iter().flatten().flatten();
        runs.map(|entry| entry.path()).filter(|path| path.is_dir()).any(|path| {
            let plan: Option<Value> =
                std::fs::read(path.join("plan.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let frames = std::fs::read_to_string(path.join("frames.jsonl")).unwrap_or_default().lines().count();
            plan.and_then(|plan| plan["cells"][0]["frames_max"].as_u64()).is_some_and(|most| frames as u64 * 2 >= most)
        })
    }
}

/// The report of the run folder at `path`.
pub fn report(path: &Path) -> Value {
    serde_json::to_value(assess(&read(path))).expect("an analysis is JSON")
}
