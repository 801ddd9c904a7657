//! Any program as a workload: a command line with placeholders, and a named pattern for its output.
//!
//! Placeholders are `{host}`, `{port}`, `{user}`, `{database}`, `{clients}`, `{seconds}`, `{records}`, `{seed}`, and
//! the paths `{data}` (a folder for the program next to the server's data, on the same volume), `{password_file}`,
//! `{authority}`, `{certificate}` and `{key}`; a path is empty if the arm has no such file. There is no placeholder for
//! a password: it is in the file, and for programs on PostgreSQL's library in the file named by their environment. No
//! shell reads the line.

use std::path::{Path, PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{self, Content, Missing},
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
    ByProgram,
    output::{PATTERNS, Read},
    unknown, whole, words,
};
use crate::{find::find_in, libpq};

/// File with the password in the program's folder.
const PASSWORD: &str = "password";

const KNOWN: [&str; 6] = ["pattern", "run", "prepare", "writes", "needle", "record_bytes"];

/// The patterns, each as a preset that sets nothing else.
const PRESETS: &[Preset] = &[
    (PATTERNS[0].0, PATTERNS[0].1, &[("pattern", PATTERNS[0].0)]),
    (PATTERNS[1].0, PATTERNS[1].1, &[("pattern", PATTERNS[1].0)]),
    (PATTERNS[2].0, PATTERNS[2].1, &[("pattern", PATTERNS[2].0)]),
    (PATTERNS[3].0, PATTERNS[3].1, &[("pattern", PATTERNS[3].0)]),
];

/// A command with the properties of one experiment.
pub struct Command {
    run: Vec<String>,
    prepare: Vec<String>,
    read: Read,
    pattern: String,
    writes: bool,
    needle: Option<String>,
    records: u64,
    record_bytes: u64,
}

/// A command for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "command",
        title: "any program in slices: the properties run, prepare, writes, needle, record_bytes; its output is read as",
        presets: PRESETS,
        file: "lines of name=value: what is run and how its output is read",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &["run", "prepare"],
        read,
        asks: |_| Vec::new(),
        check: |properties| Command::resolve(properties).1,
        shape: |properties| {
            let (Command { writes, record_bytes, .. }, _) = Command::resolve(properties);
            WorkloadShape { writes, record_bytes, program: true, gaps: false, batch: Some(1), slot_ns: None }
        },
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties.
pub fn make(
    described: &experiment::Workload,
    data: &experiment::Data,
    _seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let (command, problems) = Command::resolve(&described.properties);
    if problems.is_empty() { Ok(ByProgram::boxed(Command { records: data.records, ..command })) } else { Err(problems) }
}

/// Commands have no property files.
fn read(_file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let help = "write `command = \"PATTERN\"` and `properties = { run = \"…\" }`";
    Err(vec![(1, "a command is not read from a file".to_owned(), help.to_owned())])
}

impl Command {
    /// The command of `properties`, and their problems.
    fn resolve(properties: &Properties) -> (Self, Vec<PropertyProblem>) {
        let mut problems = Vec::new();
        unknown(properties, &KNOWN, &mut problems);
        let mut problem = |name: &str, problem: String, help: &str| {
            problems.push((name.to_owned(), problem, help.to_owned()));
        };
        if !properties.contains_key("run") {
            problem("run", "is missing".to_owned(), "write `properties = { run = \"program --port {port}\" }`");
        }
        let mut line = |name: &str| {
            let text = properties.get(name).map_or("", String::as_str);
            // Records of an experiment must contain no password, and URLs may.
            let holds = text.replace("://{host}", "").contains("://") || text.to_lowercase().contains("password=");
            if holds || experiment::gives_password(text) {
                problem(name, "may hold a password".to_owned(), "write `://{host}` in URLs, and use {password_file}");
            }
            let words = words::split(text).unwrap_or_else(|why| {
                problem(name, why, "close it");
                Vec::new()
            });
            if of_shell(&words) {
                let why = "has signs or variables of a shell, and no shell reads it";
                problem(name, why.to_owned(), "write `sh -c '…'` around it");
            }
            for place in words.iter().filter_map(|word| words::fill(word, &|name| known_place(name)).err()) {
                problem(name, format!("there is nothing to fill in for {place}"), PLACES_HELP);
            }
            words
        };
        let (run, prepare) = (line("run"), line("prepare"));
        let pattern = properties.get("pattern").cloned().unwrap_or_else(|| PATTERNS[3].0.to_owned());
        let known = PATTERNS.iter().find(|(name, ..)| *name == pattern);
        if known.is_none() {
            let names = PATTERNS.map(|(name, ..)| name).join(", ");
            problem("pattern", format!("there is no pattern {pattern:?}"), &format!("there are: {names}"));
        }
        let writes = properties.get("writes").map_or("true", String::as_str);
        if !["true", "false"].contains(&writes) {
            problem("writes", format!("{writes:?} is neither true nor false"), "write \"true\" or \"false\"");
        }
        let record_bytes = whole(properties, "record_bytes", 100, &mut problems);
        let command = Self {
            run,
            prepare,
            read: known.map_or(PATTERNS[3].2, |(_, _, read)| *read),
            pattern,
            writes: writes != "false",
            needle: properties.get("needle").filter(|needle| !needle.is_empty()).cloned(),
            records: 0,
            record_bytes,
        };
        (command, problems)
    }

    /// `line` with every placeholder replaced; a check has made sure that it is possible.
    fn filled(&self, line: &[String], at: &ProgramContext<'_>, job: Option<&Job>) -> launch::Command {
        let value = |name: &str| self.value(name, at, job);
        let mut words = line.iter().map(|word| words::fill(word, &value).unwrap_or_default());
        let program = words.next().unwrap_or_default();
        launch::Command { program: program.into(), arguments: words.collect(), environment: libpq::environment(at) }
    }

    fn value(&self, name: &str, at: &ProgramContext<'_>, job: Option<&Job>) -> Option<String> {
        let reach = at.reach;
        let text = |path: &Path| path.display().to_string();
        let identity = reach.tls.as_ref().filter(|tls| tls.mutual).map(|tls| &tls.identity);
        let of_job = |figure: &dyn Fn(&Job) -> String| Some(job.map(figure).unwrap_or_default());
        match name {
            "host" => Some(reach.host.clone()),
            "port" => Some(reach.port.to_string()),
            "user" => Some(reach.user.clone()),
            "database" => Some(reach.database.clone()),
            "records" => Some(self.records.to_string()),
            "data" => Some(text(at.data)),
            "password_file" => {
                Some(reach.password.as_ref().map(|_| text(&at.folder.join(PASSWORD))).unwrap_or_default())
            }
            "authority" => Some(reach.tls.as_ref().map(|tls| text(&tls.authority)).unwrap_or_default()),
            "certificate" => Some(identity.map(|(certificate, _)| text(certificate)).unwrap_or_default()),
            "key" => Some(identity.map(|(_, key)| text(key)).unwrap_or_default()),
            "clients" => of_job(&|job| job.clients.to_string()),
            "seconds" => of_job(&|job| job.seconds.to_string()),
            "seed" => of_job(&|job| job.seed.to_string()),
            _ => None,
        }
    }
}

/// True for words that only a shell understands: a variable in place of the program or before it, a sign between two
/// commands. Behind an option such a sign is its value.
fn of_shell(words: &[String]) -> bool {
    const SIGNS: [&str; 10] = ["|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"];
    let assigns = |word: &str| word.split('/').next().is_some_and(|name| name.contains('='));
    let is_variable = |word: &String| word.starts_with('$') || assigns(word);
    let is_sign = |pair: &[String]| SIGNS.contains(&pair[1].as_str()) && !pair[0].starts_with('-');
    words.first().is_some_and(is_variable) || words.windows(2).any(is_sign)
}

/// Every placeholder.
const PLACES: [&str; 13] = [
    "host",
    "port",
    "user",
    "database",
    "clients",
    "seconds",
    "records",
    "seed",
    "data",
    "password_file",
    "authority",
    "certificate",
    "key",
];

const PLACES_HELP: &str = "places are {host} {port} {user} {database} {clients} {seconds} {records} {seed} {data} \
                           {password_file} {authority} {certificate} {key}";

fn known_place(name: &str) -> Option<String> {
    PLACES.contains(&name).then(String::new)
}

impl Program for Command {
    fn name(&self) -> &str {
        let name = self.run.first().and_then(|path| Path::new(path).file_name()?.to_str());
        name.unwrap_or("command")
    }

    fn drives(&self) -> &[WireProtocol] {
        &[WireProtocol::Postgres, WireProtocol::MySql, WireProtocol::Redis, WireProtocol::Cql]
    }

    fn refuses(&self, arrivals: Arrivals) -> Option<String> {
        (arrivals != Arrivals::Closed).then(|| "is offered a closed loop only: leave `rate` out".to_owned())
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn find(&self) -> Result<PathBuf, Missing> {
        // A path is relative to the folder where Tithe was started; a name is searched in PATH.
        let name = self.run.first().map_or("", String::as_str);
        let place = if name.contains('/') { std::path::absolute(name).ok() } else { None };
        let place = place.map_or(name.to_owned(), |place| place.display().to_string());
        find_in(Vec::new(), &place, "it is the experiment's own: name it by its path, or put it into a folder of PATH")
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        let password = at.reach.password.iter();
        let password = password.map(|password| (PASSWORD.to_owned(), Content::Secret(password.clone())));
        Ok(libpq::files(at).into_iter().chain(password).collect())
    }

    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<launch::Command> {
        if self.prepare.is_empty() { Vec::new() } else { vec![self.filled(&self.prepare, at, None)] }
    }

    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> launch::Command {
        launch::Command { program: at.executable.to_owned(), ..self.filled(&self.run, at, Some(job)) }
    }

    fn read(&self, _at: &ProgramContext<'_>, _job: &Job, printed: &str) -> Result<ProgramReport, Fault> {
        (self.read)(printed)
            .map_err(|why| Fault::Wrong(format!("cannot read {}'s output as {}: {why}", self.name(), self.pattern)))
    }

    fn needle(&self) -> Option<&[u8]> {
        self.needle.as_deref().map(str::as_bytes)
    }

    fn describe(&self) -> Vec<(String, String)> {
        let mut lines = vec![("run".to_owned(), self.run.join(" ")), ("read as".to_owned(), self.pattern.clone())];
        if !self.prepare.is_empty() {
            lines.push(("prepare".to_owned(), self.prepare.join(" ")));
        }
        lines
    }
}
