//! pgbench, PostgreSQL's own load generator: its built-in scripts, or the user's own, each with its weight.
//!
//! Settings from elsewhere in an experiment are not repeated: the clients (`-c`) and the rate (`-R`) are those of
//! `[load]`, the scale is a hundred-thousandth of the records, and the seconds (`-T`) are those of a slot. Every
//! transaction is logged (`--log`), so that all latencies are available. Tables are not vacuumed before each slice
//! (`-n`): Tithe vacuums them once after loading, and pgbench's own vacuum would be no transaction.

use std::{collections::BTreeMap, fs, path::PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
};
use tithe_model::{
    catalogue::{
        LineProblem, Preset, Properties, PropertyFile, PropertyProblem, WireProtocol, WorkloadEntry, WorkloadShape,
    },
    experiment::{self, Arrivals},
};
use tithe_plugin::{
    program::{Job, Program, ProgramContext, ProgramReport},
    workload::Workload,
};

use super::{
    ByProgram, numbered, one_of, output,
    pgbench_script::{is_of_name, undefined},
    secrets, unknown, whole, words,
};
use crate::{dump::Dump, find::newest_postgres, libpq};

/// Rows of `pgbench_accounts` for each unit of scale.
const ROWS_PER_SCALE: u64 = 100_000;

/// A row of `pgbench_accounts`: three whole numbers and 84 letters.
const ROW_BYTES: u64 = 97;

/// Prefix of the properties and files of scripts: `script`, `script_2`.
const SCRIPT: &str = "script";

/// Prefix of the properties of their weights.
const WEIGHT: &str = "weight";

/// Prefix of the log files.
const LOG: &str = "log";

const KNOWN: [&str; 6] = ["script", "builtin", "protocol", "jobs", "connect", "define"];

const PRESETS: &[Preset] = &[
    ("tpcb-like", "Three updates, a select and an insert in a transaction", &[("builtin", "tpcb-like")]),
    ("simple-update", "The same without the tables that all clients update (-N)", &[("builtin", "simple-update")]),
    ("select-only", "One select by key (-S)", &[("builtin", "select-only")]),
];

/// pgbench with the properties of one experiment.
pub struct Pgbench {
    script: Script,
    protocol: String,
    jobs: Option<u64>,
    /// A connection for each transaction.
    connect: bool,
    /// Variables of the scripts, `name=value`.
    define: Vec<String>,
    /// 0 if it uses the user's own data.
    scale: u64,
}

/// The transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Script {
    BuiltIn(String),
    Own(Vec<OwnScript>),
}

/// One of several scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnScript {
    text: String,
    weight: u64,
}

impl OwnScript {
    /// The name of the file of script `index`, from 0.
    fn file(index: usize) -> String {
        format!("{}.sql", numbered(SCRIPT, index + 1))
    }
}

/// pgbench for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "pgbench",
        title: "pgbench in slices: the properties protocol (-M), jobs (-j), connect (-C), define (-D); -c and -R are of [load]",
        presets: PRESETS,
        file: "a script of pgbench, or a list of scripts with weights: [\"one.sql@9\", \"two.sql@1\"]",
        weighted: true,
        scripts: SCRIPT,
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Pgbench::resolve(properties).1,
        shape: |properties| WorkloadShape {
            writes: Pgbench::resolve(properties).0.writes(),
            record_bytes: ROW_BYTES,
            program: true,
            gaps: false,
            batch: Some(1),
            slot_ns: None,
        },
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties, and a number of records that is no scale.
pub fn make(
    described: &experiment::Workload,
    data: &experiment::Data,
    _seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let (mut pgbench, mut problems) = Pgbench::resolve(&described.properties);
    pgbench.scale = if described.prepare.is_some() { 0 } else { data.records / ROWS_PER_SCALE };
    let prepared = Dump::of(described, &mut problems);
    // The user's own data have a fixed size.
    if described.prepare.is_none() && (data.records == 0 || !data.records.is_multiple_of(ROWS_PER_SCALE)) {
        problems.push((
            "records".to_owned(),
            format!(
                "pgbench loads {ROWS_PER_SCALE} rows for each unit of scale, and {} is not a multiple",
                data.records
            ),
            format!("write for example `records = {}`", data.records.next_multiple_of(ROWS_PER_SCALE).max(1)),
        ));
    }
    if problems.is_empty() { Ok(ByProgram::boxed_on(pgbench, prepared)) } else { Err(problems) }
}

/// A script is a property like any other, so that a run's record contains it.
fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = file.text()?;
    let problems = secrets(text);
    if text.trim().is_empty() {
        return Err(vec![(1, "the script is empty".to_owned(), "write what a transaction does".to_owned())]);
    }
    let mut properties = BTreeMap::from([(numbered(SCRIPT, file.number), text.to_owned())]);
    if let Some(weight) = file.weight {
        properties.insert(numbered(WEIGHT, file.number), weight.to_string());
    }
    if problems.is_empty() { Ok(properties) } else { Err(problems) }
}

impl Pgbench {
    /// pgbench of `properties`, and their problems.
    fn resolve(properties: &Properties) -> (Self, Vec<PropertyProblem>) {
        let mut problems = Vec::new();
        let (numbered_ones, others): (Properties, Properties) =
            properties.clone().into_iter().partition(|(name, _)| is_numbered(name));
        unknown(&others, &KNOWN, &mut problems);
        let protocol = one_of(properties, ("protocol", "simple"), &["simple", "extended", "prepared"], &mut problems);
        let builtin =
            one_of(properties, ("builtin", "tpcb-like"), &["tpcb-like", "simple-update", "select-only"], &mut problems);
        let connect = one_of(properties, ("connect", "false"), &["true", "false"], &mut problems) == "true";
        let jobs = properties.contains_key("jobs").then(|| whole(properties, "jobs", 1, &mut problems));
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_of_name);
        let defined = words::defined(properties, is_name, &mut problems);
        let define: Vec<String> = defined.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let own: Vec<OwnScript> = (1..=numbered_ones.len())
            .filter_map(|number| {
                let text = properties.get(&numbered(SCRIPT, number))?.clone();
                Some(OwnScript { text, weight: whole(properties, &numbered(WEIGHT, number), 1, &mut problems) })
            })
            .collect();
        for (index, script) in own.iter().enumerate() {
            let texts = own.iter().map(|script| script.text.as_str());
            for name in undefined(&script.text, texts, &define) {
                problems.push((
                    numbered(SCRIPT, index + 1),
                    format!("no script sets the variable :{name}"),
                    format!("write `properties = {{ define = \"{name}=VALUE\" }}`, which is -D, or set it by \\set"),
                ));
            }
        }
        let script = if own.is_empty() { Script::BuiltIn(builtin) } else { Script::Own(own) };
        (Self { script, protocol, jobs, connect, define, scale: 1 }, problems)
    }

    fn writes(&self) -> bool {
        // The effect of a user's script is unknown: it is assumed to write.
        self.script != Script::BuiltIn("select-only".to_owned())
    }
}

/// True for `script`, `script_2`, `weight`, `weight_2` and so on.
fn is_numbered(name: &str) -> bool {
    let rest = name.strip_prefix(SCRIPT).or_else(|| name.strip_prefix(WEIGHT));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(|it| it.parse::<u32>().is_ok()))
}

impl Program for Pgbench {
    fn name(&self) -> &str {
        "pgbench"
    }

    fn drives(&self) -> &[WireProtocol] {
        &[WireProtocol::Postgres]
    }

    fn refuses(&self, arrivals: Arrivals) -> Option<String> {
        matches!(arrivals, Arrivals::Even(_))
            .then(|| "draws when to begin: write `arrivals = \"poisson\"` with `rate`".to_owned())
    }

    fn writes(&self) -> bool {
        self.writes()
    }

    fn find(&self) -> Result<PathBuf, Missing> {
        newest_postgres("pgbench")
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        let mut files = libpq::files(at);
        if let Script::Own(scripts) = &self.script {
            let named =
                |(index, script): (usize, &OwnScript)| (OwnScript::file(index), Content::Text(script.text.clone()));
            files.extend(scripts.iter().enumerate().map(named));
        }
        Ok(files)
    }

    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        vec![command(at, ["-i", "-q", "-s", &self.scale.to_string()].map(str::to_owned).to_vec())]
    }

    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> Command {
        let jobs = self.jobs.unwrap_or(1).min(u64::from(job.clients));
        let mut arguments = vec!["-n".to_owned(), "-l".to_owned()];
        arguments.push(format!("--log-prefix={}", at.folder.join(LOG).display()));
        arguments.push(format!("--random-seed={}", job.seed));
        for (name, value) in [
            ("-c", job.clients.to_string()),
            ("-j", jobs.to_string()),
            ("-T", job.seconds.to_string()),
            ("-M", self.protocol.clone()),
        ] {
            arguments.extend([name.to_owned(), value]);
        }
        match &self.script {
            Script::BuiltIn(name) => arguments.extend(["-b".to_owned(), name.clone()]),
            Script::Own(scripts) => arguments.extend(scripts.iter().enumerate().flat_map(|(index, script)| {
                let path = at.folder.join(OwnScript::file(index));
                ["-f".to_owned(), format!("{}@{}", path.display(), script.weight)]
            })),
        }
        if self.connect {
            arguments.push("-C".to_owned());
        }
        arguments.extend(self.define.iter().flat_map(|word| ["-D".to_owned(), word.clone()]));
        if let Some(rate) = job.rate {
            arguments.extend(["-R".to_owned(), rate.to_string()]);
        }
        command(at, arguments)
    }

    fn read(&self, at: &ProgramContext<'_>, job: &Job, printed: &str) -> Result<ProgramReport, Fault> {
        let mut reported = output::pgbench(printed).map_err(Fault::Wrong)?;
        let mut log = output::Log::default();
        for entry in fs::read_dir(at.folder).map_err(|error| Fault::machine(at.folder.display(), error))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("log.") {
                let path = entry.path();
                let failed = |error| Fault::machine(path.display(), error);
                log.add(&fs::read_to_string(&path).map_err(failed)?, job.rate.is_some()).map_err(Fault::Wrong)?;
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        if log.latency.total() != reported.transactions {
            let logged = log.latency.total();
            return Err(Fault::Wrong(format!(
                "pgbench counts {} transactions and logs {logged}",
                reported.transactions
            )));
        }
        reported.latency_sum_ns = Some(log.sum_ns);
        (reported.latency, reported.intended) = (log.latency, log.intended);
        Ok(reported)
    }

    fn needle(&self) -> Option<&[u8]> {
        // The built-in scripts name their tables in every transaction; with prepared statements, only in the first.
        matches!(self.script, Script::BuiltIn(_)).then_some(b"pgbench_accounts")
    }

    fn describe(&self) -> Vec<(String, String)> {
        let script = match &self.script {
            Script::BuiltIn(name) => format!("built-in {name}"),
            Script::Own(scripts) if scripts.len() == 1 => "of the experiment".to_owned(),
            Script::Own(scripts) => {
                let weights: Vec<String> = scripts.iter().map(|script| script.weight.to_string()).collect();
                format!("{} of the experiment, weights {}", scripts.len(), weights.join(" : "))
            }
        };
        let mut lines = vec![
            ("script".to_owned(), script),
            ("protocol".to_owned(), self.protocol.clone()),
            ("threads".to_owned(), format!("{}, at most one a client", self.jobs.unwrap_or(1))),
        ];
        if self.scale > 0 {
            lines.push(("scale".to_owned(), self.scale.to_string()));
        }
        if self.connect {
            let words = "one for each transaction; its latency begins once it is connected";
            lines.push(("connection".to_owned(), words.to_owned()));
        }
        if !self.define.is_empty() {
            lines.push(("define".to_owned(), self.define.join(" ")));
        }
        lines
    }
}

fn command(at: &ProgramContext<'_>, arguments: Vec<String>) -> Command {
    Command { program: at.executable.to_owned(), arguments, environment: libpq::environment(at) }
}
