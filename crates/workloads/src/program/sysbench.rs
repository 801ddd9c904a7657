//! sysbench 1.0 with the scripts `oltp_*` that come with it, on what speaks the protocol of MySQL or PostgreSQL.
//!
//! What stands elsewhere in an experiment is not repeated: the threads are the clients of `[load]`, the rows of all
//! tables together are its records, and the seconds are those of a slot. Latencies are those of sysbench's own
//! histogram.
//!
//! Of TLS in MySQL's protocol sysbench knows on and off, and files of fixed names in the folder that it is started in.
//! Whether it checks whose certificate the server shows is up to its library and is not claimed here. So is the proof
//! of a password: the library of Debian's sysbench (libmariadb) has a plugin for MySQL's `caching_sha2_password`.

use std::{fs, path::PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
    secret::Secret,
};
use tithe_model::{
    catalogue::{LineProblem, Preset, Properties, PropertyProblem, WireProtocol, WorkloadEntry, WorkloadShape},
    experiment::{self, Arrivals},
};
use tithe_plugin::{
    program::{Job, Program, ProgramContext, ProgramReport},
    setup::{Setup, Transport},
    workload::Workload,
};

use super::{ByProgram, find_in, libpq, one_of, output, unknown, whole};

/// A row: two whole numbers, 120 and 60 letters.
const ROW_BYTES: u64 = 188;

/// The database of sysbench's tables on MySQL and MariaDB: that of Tithe holds nothing but what Tithe has marked.
const DATABASE: &str = "sbtest";

/// Options in a file, for the password among them.
const OPTIONS: &str = "options";

/// The names under which sysbench 1.0 looks for certificates in the folder that it is started in.
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
    script: String,
    tables: u64,
    rows: u64,
    /// How keys are drawn, in sysbench's word.
    rand_type: String,
}

/// sysbench for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "sysbench",
        title: "sysbench in slices: tables and rand_type as properties; --threads is clients of [load]",
        presets: PRESETS,
        file: "lines of name=value: the script's tables and rand_type",
        read,
        check: |properties| Sysbench::resolve(properties).1,
        shape: |properties| WorkloadShape {
            writes: Sysbench::resolve(properties).0.writes(),
            record_bytes: ROW_BYTES,
            program: true,
        },
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties, and records that are fewer than tables.
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

/// Lines of `name=value`, `#` before a remark.
fn read(text: &str) -> Result<Properties, Vec<LineProblem>> {
    let mut properties = Properties::new();
    let mut problems = Vec::new();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        match line.split_once('=') {
            _ if line.is_empty() || line.starts_with('#') => {}
            Some((name, value)) => drop(properties.insert(name.trim().to_owned(), value.trim().to_owned())),
            None => problems.push((number + 1, format!("{line:?} sets nothing"), "write `name=value`".to_owned())),
        }
    }
    if problems.is_empty() { Ok(properties) } else { Err(problems) }
}

impl Sysbench {
    /// sysbench of `properties`, with what is wrong with them.
    fn resolve(properties: &Properties) -> (Self, Vec<PropertyProblem>) {
        let mut problems = Vec::new();
        unknown(properties, &["script", "tables", "rand_type"], &mut problems);
        let scripts: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
        let script = one_of(properties, ("script", "oltp_read_write"), &scripts, &mut problems);
        let rand_type =
            one_of(properties, ("rand_type", "special"), &["uniform", "gaussian", "special", "pareto"], &mut problems);
        let tables = whole(properties, "tables", 1, &mut problems);
        (Self { script, tables, rows: 1, rand_type }, problems)
    }

    fn writes(&self) -> bool {
        !["oltp_read_only", "oltp_point_select"].contains(&self.script.as_str())
    }

    fn command(&self, at: &ProgramContext<'_>, further: Vec<String>, verb: &str) -> Command {
        let mut arguments = vec![self.script.clone()];
        arguments.push(format!("--config-file={}", at.folder.join(OPTIONS).display()));
        arguments.extend([format!("--tables={}", self.tables), format!("--table-size={}", self.rows)]);
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

    /// Whenever it speaks TLS in MySQL's protocol it shows a client's certificate, and a server that was told of no
    /// authority for those refuses it: MariaDB does, and of MySQL it is not known.
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
        files.push((OPTIONS.to_owned(), Content::Secret(Secret::new(options(at)))));
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
        vec![self.command(at, Vec::new(), "prepare")]
    }

    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> Command {
        let further = [
            format!("--threads={}", job.clients),
            format!("--time={}", job.seconds),
            "--events=0".to_owned(),
            // 0 would be the time of day.
            format!("--rand-seed={}", job.seed.max(1)),
            format!("--rand-type={}", self.rand_type),
            "--histogram=on".to_owned(),
        ];
        self.command(at, further.to_vec(), "run")
    }

    fn read(&self, _at: &ProgramContext<'_>, _job: &Job, printed: &str) -> Result<ProgramReport, Fault> {
        let reported = output::sysbench(printed).map_err(|why| Fault::Wrong(format!("sysbench: {why}")))?;
        if reported.latency.total() == reported.transactions {
            return Ok(reported);
        }
        Err(Fault::Wrong("sysbench printed no histogram".to_owned()))
    }

    fn needle(&self) -> Option<&[u8]> {
        Some(b"sbtest1")
    }

    fn describe(&self) -> Vec<(String, String)> {
        vec![
            ("script".to_owned(), self.script.clone()),
            ("tables".to_owned(), format!("{} of {} rows", self.tables, self.rows)),
            ("rand_type".to_owned(), self.rand_type.clone()),
            (
                "certificates".to_owned(),
                "on MySQL and MariaDB, whether sysbench checks the server's is not known".to_owned(),
            ),
        ]
    }
}

/// The options that say where the server is and who comes. On PostgreSQL the library's environment says the rest.
fn options(at: &ProgramContext<'_>) -> String {
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
