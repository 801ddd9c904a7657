//! Arms of PostgreSQL that burn counted processor time in every statement (`benches/known_cost/known_cost.c`).
//!
//! In `known-cost` all arms have the same settings and no protections: the server learns from its folder which arm it
//! is, and Tithe does not know which one costs more. In `known-claim` each arm has its own setting and claim.
//!
//! A pilot run measures the cost of a statement on the plain arm and the time of a round. The truth of the measured
//! runs comes from the counts of their own servers, and from the level of their own plain arm.
//!
//! The time counted by the servers is added to processor time and to net time alike, and to the latency if no client
//! waits for a processor. Otherwise the latency has no known truth: a client that uses the processor longer also waits
//! longer for it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    analysis::{
        Ends, METRICS, ends, find, holds, host, interval, interval_of, level, percent, percent_or_dash, wait_share,
    },
    beside::Beside,
    experiment::KNOWN,
    run::Run,
};

/// Rounds of the pilot's second arm: some microseconds, a few percent of a statement.
const PILOT_ROUNDS: u64 = 4_000;

/// Load of the pilot run, seconds: the minimum that Tithe accepts for two such arms.
const PILOT_S: u32 = 30;

/// If clients wait for a processor for a larger share of their time, their latency also depends on other processes.
const UNDISTURBED: f64 = 0.02;

/// Name of the arm that burns nothing.
const PLAIN: &str = "plain";

/// An arm: its name, and the rounds in each of its statements.
type Arm = (String, u64);

/// Measures the known arms on a quiet machine, and while `hogs` busy loops run.
pub fn measure(seconds: u32, hogs: usize) -> Result<(), String> {
    let library = Library::build()?;
    let (arms, pilot) = known_arms(&library)?;
    println!("{pilot}\n");
    println!("| beside | arm | statements | each: loop + rest | metric | truth | ratio | | difference | |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let settings = if hogs == 0 { vec![Beside::Hogs(0)] } else { vec![Beside::Hogs(0), Beside::Hogs(hogs)] };
    let mut reported = Vec::new();
    for beside in settings {
        let measured = run(&library, beside, &experiment(&library, seconds, &arms), &arms, &[])?;
        let (held, of) = measured.tell()?;
        reported.push(format!("Beside {beside}: {held} of {of} hold; {}.", host(&measured.report["cells"][0])));
    }
    println!("\n{}", reported.join("\n"));
    Ok(())
}

/// Measures the known arms as a user adds an extension: each has settings of its own and a claim, which the loop meets.
pub fn claim(seconds: u32) -> Result<(), String> {
    let library = Library::build()?;
    let (arms, pilot) = known_arms(&library)?;
    println!("{pilot}\n");
    println!("| beside | arm | statements | each: loop + rest | metric | truth | ratio | | difference | |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let measured = run(&library, Beside::Hogs(0), &with_claims(&library, seconds, &arms), &arms, &[])?;
    let (held, of) = measured.tell()?;
    println!("\n{held} of {of} hold.");
    for arm in measured.report["cells"][0]["arms"].as_array().into_iter().flatten().skip(1) {
        println!("{}: {}", arm["name"], arm["proof"]["proof"]);
    }
    Ok(())
}

/// A profiled run of the known arms.
pub struct Profiled {
    /// Its report.
    pub report: Value,
    /// Name of each arm but the first, and the additional time of its loop over the first one's, µs per statement.
    pub loops_us: Vec<(String, f64)>,
}

/// Profiles the known arms on a quiet machine.
pub fn profile(seconds: u32) -> Result<Profiled, String> {
    let library = Library::build()?;
    let (arms, _) = known_arms(&library)?;
    let experiment = experiment(&library, seconds, &arms);
    let measured = run(&library, Beside::Hogs(0), &experiment, &arms, &["--profile"])?;
    let loop_us = |arm: usize| (arms[arm].0.clone(), measured.loop_ns(arm) / 1e3);
    Ok(Profiled { loops_us: (1..arms.len()).map(loop_us).collect(), report: measured.report })
}

/// The arms whose costs are known, and a text with the results of a pilot run.
fn known_arms(library: &Library) -> Result<(Vec<Arm>, String), String> {
    let arms = [(PLAIN.to_owned(), 0), ("pilot".to_owned(), PILOT_ROUNDS)];
    let pilot = run(library, Beside::Hogs(0), &experiment(library, PILOT_S, &arms), &arms, &[])?;
    let round_ns = pilot.loop_ns(1) / PILOT_ROUNDS as f64;
    let plain_ns = pilot.level("cpu_per_op")?.0 * 1e3;
    let rounds = |cost: f64| (cost * plain_ns / round_ns).round() as u64;
    let mut arms = vec![(PLAIN.to_owned(), 0)];
    arms.extend(KNOWN.iter().map(|cost| (format!("plus{:.0}", 100.0 * cost), rounds(*cost))));
    let words =
        format!("Pilot: {:.2} µs of processor time an operation; a round burns {round_ns:.3} ns.", plain_ns / 1e3);
    Ok((arms, words))
}

/// Measures the `arms` of `experiment` with the load `beside` and further `arguments`.
fn run(
    library: &Library,
    beside: Beside,
    experiment: &str,
    arms: &[Arm],
    arguments: &[&str],
) -> Result<Measured, String> {
    let arguments: Vec<&str> = [&["--pg-bin", library.programs.as_str()], arguments].concat();
    let run = Run::with("known-cost", experiment, &arguments);
    let neighbours = beside.start();
    let folder = run.finish();
    drop(neighbours);
    let folder = folder?;
    let report = crate::run::report(&folder);
    let counts = arms.iter().map(|arm| Count::read(&folder.join("logs"), arm)).collect::<Result<_, _>>()?;
    Ok(Measured { beside, arms: arms.to_vec(), report, counts })
}

/// All arms have the same settings, which name the rounds of each.
fn experiment(library: &Library, seconds: u32, arms: &[Arm]) -> String {
    let rounds: Vec<String> = arms.iter().map(|(name, rounds)| format!("{name}={rounds}")).collect();
    let arms: String = arms.iter().map(|(name, _)| format!("[[arm]]\nname = \"{name}\"\n")).collect();
    head(library, seconds, &rounds.join(" ")) + &arms
}

/// Every arm but the plain one has its rounds in a setting of its own, and claims that its statements run them.
fn with_claims(library: &Library, seconds: u32, arms: &[Arm]) -> String {
    let own = |(name, rounds): &Arm| {
        format!(
            "[[arm]]\nname = \"{name}\"\nsettings = {{ \"known_cost.rounds\" = \"{name}={rounds}\" }}\n\
             claims = [{{ statement = \"SELECT current_setting('known_cost.turns')::numeric > 0\", equals = \"t\" }}]\n"
        )
    };
    let own: String = arms.iter().skip(1).map(own).collect();
    format!("{}[[arm]]\nname = \"{PLAIN}\"\n{own}", head(library, seconds, &format!("{PLAIN}=0")))
}

/// Everything above the arms.
fn head(library: &Library, seconds: u32, rounds: &str) -> String {
    let clients = tithe_machine::watch::process::processors().len();
    format!(
        "title = \"Counted costs\"\ndatabase = \"postgres\"\n[settings]\nshared_preload_libraries = \"{}\"\n\
         known_cost.rounds = \"{rounds}\"\n[data]\nrecords = 20_000\n[load]\nclients = {clients}\n[measure]\n\
         budget = \"{seconds} s\"\nprecision = \"0.01%\"\nepochs = 1\naa_arm = false\n[[workload]]\nycsb = \"c\"\n",
        library.file.display(),
    )
}

/// A run with the counts of its servers.
struct Measured {
    beside: Beside,
    arms: Vec<Arm>,
    report: Value,
    counts: Vec<Count>,
}

impl Measured {
    /// One row for each arm and metric; how many intervals of ratios contain their truth, and how many have one.
    fn tell(&self) -> Result<(usize, usize), String> {
        let (mut held, mut of) = (0, 0);
        for arm in 1..self.arms.len() {
            for (metric, words, level) in METRICS {
                let found = interval(&self.report, 0, arm, metric);
                let truth = self.truth(arm, level)?;
                let verdict = verdict(found, truth.map(|(truth, _)| truth));
                held += usize::from(verdict == HOLDS);
                of += usize::from(verdict == HOLDS || verdict == MISSES);
                let (arm_told, ratio) = (self.arm(arm), percent_or_dash(found));
                let difference = self.difference(arm, metric, truth.is_some());
                println!("| {arm_told} | {words} | {} | {ratio} | {verdict} | {difference} |", reported(truth));
            }
        }
        Ok((held, of))
    }

    /// The interval of the difference, if the report has one, and whether it contains the counted time, if that is the
    /// truth (`known`). No level is needed for this comparison.
    fn difference(&self, arm: usize, metric: &str, known: bool) -> String {
        let own = find(&self.report, 0, arm, metric).map(|estimate| &estimate["difference"]);
        let found = own.and_then(interval_of).map(|(low_us, high_us)| (low_us * 1e3, high_us * 1e3));
        let verdict = verdict(found, known.then_some(self.extra_ns(arm)));
        found.map_or("— | ".to_owned(), |(low_ns, high_ns)| format!("[{low_ns:+.0}, {high_ns:+.0}] ns | {verdict}"))
    }

    /// The first columns of the rows of arm `arm`.
    fn arm(&self, arm: usize) -> String {
        let (name, statements) = (&self.arms[arm].0, self.counts[arm].statements);
        format!("{} | {name} | {statements} | {:.0} {:+.0} ns", self.beside, self.loop_ns(arm), self.rest_ns(arm))
    }

    /// The additional cost of a statement on arm `arm` over the plain arm by the servers' counts, ns: the loop, and the
    /// rest, which the loop made more expensive.
    fn extra_ns(&self, arm: usize) -> f64 {
        self.loop_ns(arm) + self.rest_ns(arm)
    }

    /// The time of the loop in a statement of arm `arm` beyond what the plain arm counts there, ns.
    fn loop_ns(&self, arm: usize) -> f64 {
        self.counts[arm].burned_each_ns() - self.counts[0].burned_each_ns()
    }

    /// The cost of the rest of a statement on arm `arm` beyond that of the plain arm, ns.
    fn rest_ns(&self, arm: usize) -> f64 {
        self.counts[arm].rest_each_ns() - self.counts[0].rest_each_ns()
    }

    /// The true cost of arm `arm` against the plain arm's `level`, with the ends from the level's interval: natural-log
    /// ratios. `None` if waiting for a processor adds to it.
    fn truth(&self, arm: usize, level: &str) -> Result<Option<(f64, Ends)>, String> {
        if level == "latency_mean" && wait_share(&self.report["cells"][0]) > UNDISTURBED {
            return Ok(None);
        }
        let (plain_us, (low, high)) = self.level(level)?;
        let cost = |plain_us: f64| (self.extra_ns(arm) / (plain_us * 1e3)).ln_1p();
        Ok(Some((cost(plain_us), (cost(high), cost(low)))))
    }

    /// A level of the plain arm with its ends, µs.
    fn level(&self, name: &str) -> Result<(f64, Ends), String> {
        let level = level(&self.report, 0, 0, name).ok_or(format!("the report has no level {name}"))?;
        Ok((level["value"].as_f64().unwrap_or(f64::NAN), ends(level)))
    }
}

const HOLDS: &str = "holds";
const MISSES: &str = "MISSES";

/// Does `found` contain `truth`?
fn verdict(found: Option<Ends>, truth: Option<f64>) -> &'static str {
    match (found, truth) {
        (_, None) => "no truth is known",
        (None, _) => "no interval",
        (Some(found), Some(truth)) if holds(found, truth) => HOLDS,
        (Some(_), Some(_)) => MISSES,
    }
}

/// A truth with its ends: `+1.01 [+1.00, +1.02] %`.
fn reported(truth: Option<(f64, Ends)>) -> String {
    truth.map_or("—".to_owned(), |(truth, ends)| format!("{:+.2} {}", 100.0 * truth.exp_m1(), percent(ends)))
}

/// The counts of the servers of one arm.
#[derive(Default)]
struct Count {
    statements: u64,
    burned_ns: u64,
    /// Statements that followed another one on their connection, and the backend's time between the loops.
    followed: u64,
    rest_ns: u64,
}

impl Count {
    /// Sums the counts in the logs that Tithe has kept under the arm's name: every line must be that of this arm.
    fn read(logs: &Path, (name, rounds): &Arm) -> Result<Self, String> {
        let mut count = Self::default();
        let files = fs::read_dir(logs).map_err(|error| format!("{}: {error}", logs.display()))?;
        let of_arm = |path: &PathBuf| path.to_string_lossy().ends_with(&format!("--{name}.log"));
        for path in files.flatten().map(|entry| entry.path()).filter(of_arm) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            for line in text.lines().filter_map(|line| line.split_once("known_cost: ")) {
                count.add(line.1, &format!("arm={name} rounds={rounds} "))?;
            }
        }
        if count.followed == 0 { Err(format!("the servers of arm {name} counted nothing")) } else { Ok(count) }
    }

    fn add(&mut self, line: &str, arm: &str) -> Result<(), String> {
        let counted = line.strip_prefix(arm).ok_or_else(|| format!("`{line}` is not what {arm}counts"))?;
        let number = |name: &str| {
            let word = counted.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            word.and_then(|word| word.parse::<u64>().ok()).ok_or_else(|| format!("no {name} in `{line}`"))
        };
        self.statements += number("statements")?;
        self.burned_ns += number("burned_ns")?;
        self.followed += number("followed")?;
        self.rest_ns += number("rest_ns")?;
        Ok(())
    }

    /// Average time of the loop in a statement, ns.
    fn burned_each_ns(&self) -> f64 {
        self.burned_ns as f64 / self.statements as f64
    }

    /// Average time of the rest of a statement, ns.
    fn rest_each_ns(&self) -> f64 {
        self.rest_ns as f64 / self.followed as f64
    }
}

/// The extension, built for the PostgreSQL that `pg_config` belongs to; removed when dropped.
struct Library {
    file: PathBuf,
    /// Folder of that PostgreSQL's programs.
    programs: String,
}

impl Library {
    /// Compiles it.
    fn build() -> Result<Self, String> {
        let headers = pg_config("--includedir-server")?;
        let version = pg_config("--version")?;
        if !Path::new(&headers).join("postgres.h").is_file() {
            let major: String =
                version.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
            return Err(format!("no header files of {version}'s server in {headers}: {}", how_to_install(&major)));
        }
        // The servers' account must be able to enter it, unlike perhaps the folder of this repository.
        let folder = std::env::temp_dir().join(format!("tithe-known-cost-{}", std::process::id()));
        let library = Self { file: folder.join("known_cost.so"), programs: pg_config("--bindir")? };
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/known_cost/known_cost.c");
        output(
            Command::new("cc").args(["-O2", "-fPIC", "-shared", "-I", &headers, "-o"]).arg(&library.file).arg(source),
        )?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        fs::set_permissions(&library.file, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(library)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(folder) = self.file.parent() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn pg_config(what: &str) -> Result<String, String> {
    let said = output(Command::new("pg_config").arg(what));
    said.map_err(|words| format!("{words}; pg_config is needed: {}", how_to_install("VERSION")))
}

fn how_to_install(major: &str) -> String {
    format!(
        "Debian, Ubuntu: apt-get install postgresql-server-dev-{major}; Fedora, RHEL: dnf install postgresql-server-devel"
    )
}

/// The output of a command; if it fails, its error output.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
