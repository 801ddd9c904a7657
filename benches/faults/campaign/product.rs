//! What faults strike: the simulated database, embedded ones, servers that Tithe starts, servers that it attaches to.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tithe_databases::{postgres::Postgres, redis::Redis, sqlite::Sqlite};
use tithe_machine::launch::Search;
use tithe_plugin::{database::Database as _, product::Product as Plugin};

use super::{
    case::{Case, Outputs, whole_lines},
    interposed::Tools,
    server::Attached,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On invented time, in the program's own process.
    Simulated,
    /// In processes of the program.
    Embedded,
    /// Servers that it starts.
    Launched,
    /// Servers that it starts, each on a volume of its own.
    OnVolume,
    /// A server that was there before, reached through a relay.
    Attached,
}

pub trait Product: Sync {
    fn name(&self) -> &'static str;
    fn kind(&self) -> Kind;
    /// What a case needs beside the program.
    fn site(&self) -> Site {
        Site(None)
    }
    fn experiment(&self, site: &Site) -> String;
    /// What the second arm costs more than the first, as the natural logarithm of a ratio, and how far a figure may be
    /// from that.
    fn truth(&self) -> (f64, f64);
    fn is_installed(&self) -> bool {
        true
    }
}

/// The server that a case attaches to.
pub struct Site(pub Option<Arc<Attached>>);

/// What a run does that no fault strikes.
pub struct Reference {
    pub frames: usize,
    pub length: Duration,
    /// System calls on its files: `write /…/frames.jsonl`.
    pub calls: Vec<String>,
    /// Slots of each frame; the same in every run where time is invented.
    pub slots: Vec<String>,
}

/// Those that are installed.
pub fn installed(servers: bool) -> Vec<&'static dyn Product> {
    let all: &[&dyn Product] = match servers {
        false => &[&Simulated],
        true => &[&Embedded, &LAUNCHED[0], &LAUNCHED[1], &OnVolume, &ATTACHED[0], &ATTACHED[1]],
    };
    all.iter().copied().filter(|product| product.is_installed()).collect()
}

impl Reference {
    /// Runs `product` once.
    pub fn take(product: &'static dyn Product, tools: &Tools) -> Self {
        let mut case = Case::new(product);
        let trace = case.folder.join("trace");
        let mut command = case.command(&["run", "e.toml", "--quiet"]);
        tools.trace(&mut command, &case, &trace);
        let begun = Instant::now();
        let run = case.start(command, Outputs::default());
        let ended = case.end(run, Duration::from_secs(300));
        assert!([Some(0), Some(7)].contains(&ended.code()), "{} without a fault: {}", product.name(), ended.said);
        let length = begun.elapsed();
        let run = case.runs().pop().expect("a run folder");
        let frames = whole_lines(&run).len();
        let calls = fs::read_to_string(&trace).unwrap_or_default().lines().map(str::to_owned).collect();
        let slots = (0..frames).map(|frame| slots_of(&run, frame)).collect();
        case.remove();
        Self { frames, length, calls, slots }
    }
}

/// The rows of `frame` in the run folder `run`.
pub fn slots_of(run: &Path, frame: usize) -> String {
    let text = fs::read_to_string(run.join("slots.csv")).unwrap_or_default();
    let of = |row: &&str| row.split(',').nth(1).is_some_and(|number| number == frame.to_string());
    text.split_inclusive('\n').skip(1).filter(of).collect()
}

/// Why `frame`, a line of `frames.jsonl`, must not be used; `None` where it is.
pub fn invalid(frame: &Value) -> Option<&str> {
    frame["invalid"].as_str()
}

struct Simulated;

impl Product for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn kind(&self) -> Kind {
        Kind::Simulated
    }

    fn experiment(&self, _: &Site) -> String {
        "title = \"Faults\"\ndatabase = \"simulated\"\n[settings]\nservice_us = 200\n[data]\nrecords = 200\n[measure]\n\
         budget = \"30 s\"\nprecision = \"0.01%\"\nseed = 7\naa_arm = false\n[[workload]]\nycsb = \"a\"\n\
         properties = { fieldcount = \"1\" }\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\n\
         protections = [{ use = \"seal\", cost = 0.05 }]\n"
            .to_owned()
    }

    fn truth(&self) -> (f64, f64) {
        (1.05_f64.ln(), 0.02)
    }
}

/// Slices are as short as one slot of each arm.
fn measure(database: &str, arms: &str) -> String {
    format!(
        "title = \"Faults\"\ndatabase = \"{database}\"\n[data]\nrecords = 200\n[load]\nclients = 1\n[measure]\n\
         design = \"slices\"\nslot = \"100 ms\"\nbudget = \"3200 ms\"\nprecision = \"0.01%\"\nwarmup = \"0 s\"\nstarts = 1\n\
         aa_arm = false\n[[workload]]\nycsb = \"b\"\n{arms}"
    )
}

struct Embedded;

impl Product for Embedded {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn kind(&self) -> Kind {
        Kind::Embedded
    }

    fn experiment(&self, _: &Site) -> String {
        let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"aegis\"\n\
                    protections = [{ use = \"page-encryption\", cipher = \"aegis\" }]\n";
        measure("sqlite", arms)
    }

    fn truth(&self) -> (f64, f64) {
        (0.1, 1.5)
    }

    fn is_installed(&self) -> bool {
        Sqlite.find(&Search::default()).is_ok()
    }
}

struct Launched {
    database: &'static dyn Plugin,
    name: &'static str,
}

static LAUNCHED: [Launched; 2] =
    [Launched { database: &Postgres, name: "postgres" }, Launched { database: &Redis, name: "redis" }];

impl Product for Launched {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::Launched
    }

    fn experiment(&self, _: &Site) -> String {
        measure(self.name, "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"tls\"\nprotections = [{ use = \"tls\" }]\n")
    }

    fn truth(&self) -> (f64, f64) {
        (0.2, 1.5)
    }

    fn is_installed(&self) -> bool {
        self.database.find(&Search::default()).is_ok()
    }
}

/// Every arm is on a file system in a loop device, one of them below an encrypted one.
struct OnVolume;

impl Product for OnVolume {
    fn name(&self) -> &'static str {
        "redis on volumes"
    }

    fn kind(&self) -> Kind {
        Kind::OnVolume
    }

    fn experiment(&self, _: &Site) -> String {
        let encrypted =
            "[[arm]]\nname = \"gocryptfs\"\nprotections = [{ use = \"volume-gocryptfs\", size_mb = 200 }]\n";
        measure("redis", &["[[arm]]\nname = \"plain\"\n", encrypted].concat())
    }

    fn truth(&self) -> (f64, f64) {
        (0.2, 1.5)
    }

    fn is_installed(&self) -> bool {
        let has = |program| Command::new(program).arg("--version").output().is_ok();
        super::volume::is_possible() && has("gocryptfs") && LAUNCHED[1].is_installed()
    }
}

struct ThroughRelay(&'static Launched, &'static str);

static ATTACHED: [ThroughRelay; 2] =
    [ThroughRelay(&LAUNCHED[0], "postgres by URL"), ThroughRelay(&LAUNCHED[1], "redis by URL")];

impl Product for ThroughRelay {
    fn name(&self) -> &'static str {
        self.1
    }

    fn kind(&self) -> Kind {
        Kind::Attached
    }

    fn site(&self) -> Site {
        Site(Some(Arc::new(Attached::start(self.0.name))))
    }

    /// Identical arms but for encrypted columns, which need nothing of a server.
    fn experiment(&self, site: &Site) -> String {
        let url = site.0.as_ref().map(|server| server.url()).unwrap_or_default();
        let arm = |name: &str, rest: &str| format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\n{rest}\n");
        let columns = "protections = [{ use = \"columns\" }]";
        measure(self.0.name, &[arm("plain", ""), arm("columns", columns)].concat())
    }

    fn truth(&self) -> (f64, f64) {
        (0.1, 1.5)
    }

    fn is_installed(&self) -> bool {
        self.0.is_installed()
    }
}
