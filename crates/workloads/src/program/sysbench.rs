//! sysbench 1.0 with its own `oltp_*` scripts or a user's script, on servers with the protocol of MySQL or PostgreSQL.
//!
//! Settings from elsewhere in an experiment are not repeated: the threads are the clients of `[load]`, the rows of all
//! tables together are its records, and the seconds are those of a slot. An options file with such settings gives the
//! experiment its defaults ([`super::sysbench_options`] has the names). Latencies are those of sysbench's own
//! histogram.
//!
//! In MySQL's protocol sysbench can only switch TLS on and off, and needs files with fixed names in its working folder.
//! Whether it checks the server's certificate depends on its library and is not claimed here. So does password
//! authentication: the library of Debian's sysbench (libmariadb) has a plugin for MySQL's `caching_sha2_password`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
    secret::Secret,
};
use tithe_model::{
    catalogue::{
        LineProblem, Preset, Properties, PropertyFile, PropertyProblem, WireProtocol, WorkloadEntry, WorkloadShape,
    },
    experiment::{self, Arrivals},
};
use tithe_plugin::{
    program::{Job, Program, ProgramContext, ProgramReport},
    setup::{Setup, Transport},
    workload::Workload,
};

use super::{
    ByProgram, one_of, output, secrets,
    sysbench_options::{self as options, Options},
    whole,
};
use crate::{find::find_in, libpq};

/// A row: two whole numbers, 120 and 60 letters.
const ROW_BYTES: u64 = 188;

/// The database of sysbench's tables on MySQL and MariaDB: Tithe's own database contains only objects that Tithe has
/// marked.
const DATABASE: &str = "sbtest";

/// File with a user's script in the program's folder.
const OWN: &str = "script.lua";

/// Options file, which contains the password.
const OPTIONS: &str = "options";

/// The names of the certificates that sysbench 1.0 reads in its working folder.
const CERTIFICATES: [&str; 3] = ["cacert.pem", "client-cert.pem", "client-key.pem"];

const PRESETS: &[Preset] = &[
    ("oltp_read_write", "14 reads and 4 writes in a transaction", &[("script", "oltp_read_write")]),
    ("oltp_read_only", "14 reads in a transaction", &[("script", "oltp_read_only")]),
    ("oltp_write_only", "4 writes in a transaction", &[("script", "oltp_write_only")]),
    ("oltp_point_select", "One select by key", &[("script", "oltp_point_select")]),
    ("oltp_update_index", "One update of an indexed column", &[("script", "oltp_update_index")]),
    ("oltp_update_non_index", "One update of a column without an index", &[("script", "oltp_update_non_index")]),
    ("oltp_insert", "One insert", &[("script", "oltp_insert")]),
    ("oltp_delete", "One delete by key", &[("script", "oltp_delete")]),
];

/// sysbench with the properties of one experiment.
pub struct Sysbench {
    script: Script,
    tables: u64,
    rows: u64,
    options: Options,
}

/// The script of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Script {
    BuiltIn(String),
    /// The text of a user's script.
    Own(String),
}

impl Script {
    /// True if it creates its tables itself.
    fn prepares(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::Own(text) => {
                ["function prepare", "cmdline.commands", "oltp_common"].iter().any(|it| text.contains(it))
            }
        }
    }

    /// True if it accepts the options of sysbench's own scripts. A script that names no options accepts all.
    fn takes_tables(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::Own(text) => !text.contains("cmdline.options") || text.contains("table_size"),
        }
    }
}

/// sysbench for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "sysbench",
        title: "sysbench in slices: its own options as properties (tables, rand_type, db_ps_mode, …); --threads is clients of [load]",
        presets: PRESETS,
        file: "a --config-file of sysbench, a script FILE.lua, or a list of both",
        weighted: false,
        scripts: LUA,
        by_path: "",
        commands: &[],
        read,
        asks: |properties| options::asks(&options::canonical(properties)),
        check: |properties| Sysbench::resolve(properties).1,
        shape: |properties| WorkloadShape {
            writes: Sysbench::resolve(properties).0.writes(),
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
/// Every problem with the properties, and fewer records than tables.
pub fn make(
    described: &experiment::Workload,
    data: &experiment::Data,
    _seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let (mut sysbench, mut problems) = Sysbench::resolve(&described.properties);
    sysbench.rows = data.records / sysbench.tables;
    if !data.records.is_multiple_of(sysbench.tables) || sysbench.rows == 0 {
        let problem = format!("{} records do not share evenly among {} tables", data.records, sysbench.tables);
        problems.push(("tables".to_owned(), problem, "change `tables` or the records of `[data]`".to_owned()));
    }
    if problems.is_empty() { Ok(ByProgram::boxed(sysbench)) } else { Err(problems) }
}

/// Prefix of the properties that contain scripts.
const LUA: &str = "lua_";

/// A script in Lua, or lines of `name=value` with `#` before a comment.
fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = file.text()?;
    if Path::new(file.name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("lua")) {
        let problems = secrets(text);
        let script = || Properties::from([(format!("{LUA}{}", file.number), text.to_owned())]);
        return if problems.is_empty() { Ok(script()) } else { Err(problems) };
    }
    Ok(options::read(text))
}

impl Sysbench {
    /// sysbench of `properties`, and their problems.
    fn resolve(properties: &Properties) -> (Self, Vec<PropertyProblem>) {
        let mut problems = Vec::new();
        let properties = options::canonical(properties);
        let (scripts, mut properties): (Properties, Properties) =
            properties.into_iter().partition(|(name, _)| name.starts_with(LUA));
        for name in scripts.keys().skip(1) {
            let problem = "sysbench runs one script, and this is a second one".to_owned();
            problems.push((name.clone(), problem, "give it a `[[workload]]` of its own".to_owned()));
        }
        let known: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
        let script = one_of(&properties, ("script", "oltp_read_write"), &known, &mut problems);
        let script = scripts.into_values().next().map_or(Script::BuiltIn(script), Script::Own);
        let tables = whole(&properties, "tables", 1, &mut problems);
        properties.retain(|name, _| !["script", "tables"].contains(&name.as_str()));
        let options = Options::of(&properties, matches!(script, Script::Own(_)), &mut problems);
        (Self { script, tables, rows: 1, options }, problems)
    }

    fn writes(&self) -> bool {
        // The effect of a user's script is unknown: it is assumed to write.
        let reads = ["oltp_read_only", "oltp_point_select"];
        !matches!(&self.script, Script::BuiltIn(name) if reads.contains(&name.as_str()))
    }

    fn command(&self, at: &ProgramContext<'_>, script: &Script, further: Vec<String>, verb: &str) -> Command {
        let mut arguments = vec![match script {
            Script::BuiltIn(name) => name.clone(),
            Script::Own(_) => at.folder.join(OWN).display().to_string(),
        }];
        arguments.push(format!("--config-file={}", at.folder.join(OPTIONS).display()));
        if script.takes_tables() {
            arguments.extend([format!("--tables={}", self.tables), format!("--table-size={}", self.rows)]);
        }
        arguments.extend(further);
        arguments.push(verb.to_owned());
        Command { program: at.executable.to_owned(), arguments, environment: libpq::environment(at) }
    }
}

impl Program for Sysbench {
    fn name(&self) -> &str {
        "sysbench"
    }

    fn drives(&self) -> &[WireProtocol] {
        &[WireProtocol::MySql, WireProtocol::Postgres]
    }

    fn refuses(&self, arrivals: Arrivals) -> Option<String> {
        (arrivals != Arrivals::Closed).then(|| "is offered a closed loop only: leave `rate` out".to_owned())
    }

    /// With TLS in MySQL's protocol it always presents a client certificate. A server without an authority for those
    /// refuses it: MariaDB does, for MySQL it is unknown.
    fn refuses_setup(&self, protocol: WireProtocol, setup: &Setup) -> Option<String> {
        let one_sided = matches!(setup.transport, Transport::Tls { mutual: false, .. });
        (protocol == WireProtocol::MySql && one_sided).then(|| {
            "speaks TLS to MariaDB with certificates on both sides only, and to MySQL it was not tried: write \
             `use = \"tls\", mutual = true`"
                .to_owned()
        })
    }

    fn writes(&self) -> bool {
        self.writes()
    }

    fn find(&self) -> Result<PathBuf, Missing> {
        find_in(Vec::new(), "sysbench", "Debian, Ubuntu: apt-get install sysbench")
    }

    fn statements(&self, at: &ProgramContext<'_>) -> Vec<String> {
        match at.protocol {
            WireProtocol::MySql => vec![format!("CREATE DATABASE {DATABASE}")],
            _ => Vec::new(),
        }
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        let mut files = libpq::files(at);
        if let Script::Own(text) = &self.script {
            files.push((OWN.to_owned(), Content::Text(text.clone())));
        }
        files.push((OPTIONS.to_owned(), Content::Secret(Secret::new(server_options(at)))));
        if let Some(tls) = at.reach.tls.as_ref().filter(|_| at.protocol == WireProtocol::MySql) {
            let (certificate, key) = &tls.identity;
            for (name, path) in CERTIFICATES.iter().zip([&tls.authority, certificate, key]) {
                let bytes = fs::read(path).map_err(|error| Fault::machine(path.display(), error))?;
                files.push(((*name).to_owned(), Content::Secret(Secret::new(bytes))));
            }
        }
        Ok(files)
    }

    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        if self.script.prepares() {
            return vec![self.command(at, &self.script, self.options.arguments(), "prepare")];
        }
        // A script that creates no tables finds those of sysbench's scripts.
        vec![self.command(at, &Script::BuiltIn("oltp_read_write".to_owned()), self.options.of_tables(), "prepare")]
    }

    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> Command {
        let mut further = vec![
            format!("--threads={}", job.clients),
            format!("--time={}", job.seconds),
            "--events=0".to_owned(),
            // 0 would mean the time of day.
            format!("--rand-seed={}", job.seed.max(1)),
            "--histogram=on".to_owned(),
        ];
        further.extend(self.options.arguments());
        self.command(at, &self.script, further, "run")
    }

    fn read(&self, _at: &ProgramContext<'_>, _job: &Job, printed: &str) -> Result<ProgramReport, Fault> {
        let reported = output::sysbench(printed).map_err(|why| Fault::Wrong(format!("sysbench: {why}")))?;
        if reported.latency.total() == reported.transactions {
            return Ok(reported);
        }
        Err(Fault::Wrong("sysbench printed no histogram".to_owned()))
    }

    fn needle(&self) -> Option<&[u8]> {
        match &self.script {
            Script::Own(text) if !text.contains("sbtest1") => None,
            Script::BuiltIn(_) | Script::Own(_) => Some(b"sbtest1"),
        }
    }

    fn describe(&self) -> Vec<(String, String)> {
        let script = match &self.script {
            Script::BuiltIn(name) => name.clone(),
            Script::Own(_) => "of the experiment".to_owned(),
        };
        let mut lines = vec![
            ("script".to_owned(), script),
            ("tables".to_owned(), format!("{} of {} rows", self.tables, self.rows)),
        ];
        lines.extend(self.options.describe());
        lines.push((
            "certificates".to_owned(),
            "on MySQL and MariaDB, whether sysbench checks the server's is not known".to_owned(),
        ));
        lines
    }

    fn ignored(&self) -> Vec<(String, &'static str)> {
        self.options.ignored().to_vec()
    }
}

/// The options for the server's address and the account. On PostgreSQL the library's environment has the rest.
fn server_options(at: &ProgramContext<'_>) -> String {
    let reach = at.reach;
    if at.protocol == WireProtocol::Postgres {
        let host = libpq::name(reach);
        return format!(
            "db-driver=pgsql\npgsql-host={host}\npgsql-port={}\npgsql-user={}\npgsql-db={}\n",
            reach.port, reach.user, reach.database
        );
    }
    let tls = if reach.tls.is_some() { "on" } else { "off" };
    let mut text = format!(
        "db-driver=mysql\nmysql-host={}\nmysql-port={}\nmysql-user={}\nmysql-db={DATABASE}\nmysql-ssl={tls}\n",
        reach.host, reach.port, reach.user
    );
    if let Some(password) = &reach.password {
        text += &format!("mysql-password={}\n", password.expose_text());
    }
    text
}
