//! PostgreSQL with the same rows for everyone, and pgbench, sysbench and YCSB's JDBC binding beside Tithe.
//!
//! Tithe's own table has its values as bytes. The peers read copies of it with the values as text, as they would
//! create them: one by YCSB's keys, one by whole numbers, which is what pgbench and sysbench can draw.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicU64,
};

use tithe_databases::postgres::Postgres;
use tithe_harness::{
    clock::Clock,
    database::{Connect, Database, Place, Search},
    fault::Fault,
    protection::Setup,
    sandbox::{Sandbox, process::Running, server},
    session::Session,
};

use crate::{
    contest::{Case, Contestant, number_after},
    floor,
    tithe::{self, Job, RECORDS},
};

/// Seconds of a short and a long run of a native peer.
const NATIVE_S: (u32, u32) = (1, 3);
/// Seconds of a short and a long run of a peer in Java: its compiler is done with the hot path in the short one.
const JAVA_S: (u32, u32) = (8, 20);
/// Rounds of which a peer in Java takes part in one.
const JAVA_EVERY: usize = 3;

/// All three tables stay in memory, and no commit waits for the disk: the client is what is measured.
const SETTINGS: [(&str, &str); 2] = [("shared_buffers", "1GB"), ("synchronous_commit", "off")];

const JOBS: [Job; 3] =
    [Job { workload: "c", clients: 1 }, Job { workload: "c", clients: 8 }, Job { workload: "a", clients: 8 }];

/// A loaded server; it ends when dropped.
pub struct Server {
    place: Place,
    version: String,
    programs: PathBuf,
    // Stopped before its folder goes.
    _running: Option<Running>,
    _sandbox: Sandbox,
}

impl Server {
    /// Starts and loads it.
    ///
    /// # Errors
    /// No PostgreSQL, or whatever it refuses.
    pub fn start() -> Result<Self, Fault> {
        let missing = |missing: tithe_harness::database::Missing| Fault::Machine(format!("needs {}", missing.what));
        let install = Postgres.find(&Search::default()).map_err(missing)?;
        let mut setup = Setup::bare();
        setup.settings.extend(SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut sandbox = Sandbox::new(&std::env::temp_dir())?;
        let place = sandbox.place("peers")?;
        let launch = Postgres.launch(&install, &setup, &place);
        let (server, running) = server::start(&Postgres, &sandbox, &place, &launch, &setup)?;
        let facts = Postgres.facts(&server, &setup)?;
        load(place.port)?;
        Ok(Self { place, version: facts.version, programs: install.programs, _running: running, _sandbox: sandbox })
    }

    /// Versions of everyone who takes part.
    pub fn versions(&self) -> Vec<String> {
        let said = |program: &Path| {
            let output = Command::new(program).arg("--version").output().ok()?;
            String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
        };
        let java = || {
            said(Path::new("java")).map(|java| format!("YCSB 0.17.0 with PostgreSQL's JDBC driver 42.7.4 on {java}"))
        };
        let peers = [said(&self.programs.join("pgbench")), said(Path::new("sysbench")), java()];
        [self.version.clone()].into_iter().chain(peers.into_iter().flatten()).collect()
    }

    /// All jobs with all peers that are installed, and with the floor against the server on port `echo`.
    ///
    /// # Errors
    /// When this program cannot tell where it is.
    pub fn cases(&self, echo: u16) -> Result<Vec<Case>, Fault> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/scripts");
        let installed = |program: &str| {
            let there = Command::new(program).arg("--version").output().is_ok();
            if !there {
                eprintln!("LEFT OUT: {program} is not installed");
            }
            there
        };
        let sysbench = installed("sysbench");
        let class_path = if installed("javac") && installed("mvn") { ycsb(&scripts)? } else { None };
        let mut cases = Vec::new();
        for job in JOBS {
            let mut contestants =
                vec![tithe::contestant("Tithe", &Postgres, self.place.port, job)?, self.pgbench(&scripts, job)];
            if sysbench {
                contestants.push(self.sysbench(&scripts, job));
            }
            if let Some(class_path) = &class_path {
                contestants.push(self.ycsb(class_path, job));
            }
            contestants.push(floor::contestant(echo, job.clients)?);
            contestants.push(tithe::contestant("Tithe again", &Postgres, self.place.port, job)?);
            let clients = if job.clients == 1 { "client" } else { "clients" };
            let letter = job.workload.to_uppercase();
            let name = format!("PostgreSQL, workload {letter}, {} {clients}", job.clients);
            cases.push(Case { name, contestants });
        }
        Ok(cases)
    }

    fn pgbench(&self, scripts: &Path, job: Job) -> Contestant {
        let script = scripts.join(format!("{}.pgbench", job.workload));
        let arguments = format!(
            "-n -M prepared -h 127.0.0.1 -p {} -U tithe -c {} -j 1 -D records={RECORDS} postgres -f",
            self.place.port, job.clients
        );
        Contestant {
            name: "pgbench".to_owned(),
            ours: false,
            program: self.programs.join("pgbench"),
            arguments: words(&arguments).chain([script.display().to_string()]).collect(),
            short: words(&format!("-T {}", NATIVE_S.0)).collect(),
            long: words(&format!("-T {}", NATIVE_S.1)).collect(),
            operations: |text| number_after(text, "number of transactions actually processed"),
            every: 1,
        }
    }

    fn sysbench(&self, scripts: &Path, job: Job) -> Contestant {
        let arguments = format!(
            "--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port={} --pgsql-user=tithe --pgsql-db=postgres \
             --threads={} --events=0 --records={RECORDS} --updates={} run",
            self.place.port,
            job.clients,
            job.workload == "a"
        );
        Contestant {
            name: "sysbench".to_owned(),
            ours: false,
            program: "sysbench".into(),
            arguments: [scripts.join("records.lua").display().to_string()]
                .into_iter()
                .chain(words(&arguments))
                .collect(),
            short: vec![format!("--time={}", NATIVE_S.0)],
            long: vec![format!("--time={}", NATIVE_S.1)],
            operations: |text| number_after(text, "total number of events"),
            every: 1,
        }
    }

    fn ycsb(&self, class_path: &str, job: Job) -> Contestant {
        let (reads, updates) = if job.workload == "a" { (0.5, 0.5) } else { (1.0, 0.0) };
        let arguments = format!(
            "-cp {class_path} site.ycsb.Client -t -db JdbcClient -threads {} \
             -p workload=site.ycsb.workloads.CoreWorkload -p requestdistribution=zipfian -p recordcount={RECORDS} \
             -p operationcount=2000000000 -p readproportion={reads} -p updateproportion={updates} -p scanproportion=0 \
             -p insertproportion=0 -p jdbc.url=jdbc:postgresql://127.0.0.1:{}/postgres?user=tithe -p",
            job.clients, self.place.port
        );
        Contestant {
            name: "YCSB over JDBC".to_owned(),
            ours: false,
            program: "java".into(),
            arguments: words(&arguments).collect(),
            short: vec![format!("maxexecutiontime={}", JAVA_S.0)],
            long: vec![format!("maxexecutiontime={}", JAVA_S.1)],
            // Operations that failed have lines of their own, and are not wanted at all.
            operations: |text| {
                let all = ["READ", "UPDATE"].map(|name| number_after(text, &format!("[{name}], Operations")));
                let good = ["READ", "UPDATE"].map(|name| number_after(text, &format!("[{name}], Return=OK")));
                (all == good && all[0].is_some()).then(|| all.iter().flatten().sum())
            },
            every: JAVA_EVERY,
        }
    }
}

/// Loads Tithe's table through Tithe, and copies it for the peers.
fn load(port: u16) -> Result<(), Fault> {
    let (server, setup) = (tithe::server(port), Setup::bare());
    let workload = tithe::workload(&tithe::plan(&Postgres, "c", 1)?)?;
    let table = workload.table();
    Postgres.create(&server, &setup, &table)?;
    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: table.clone() };
    let mut session: Session = Postgres.connect(&server, &setup, &how)?;
    workload.load(&mut session, 0, 1, &AtomicU64::new(0))?;
    let fields = |number| format!("convert_from(field{number}, 'UTF8') AS field{number}");
    let fields = (0..table.fields).map(fields).collect::<Vec<_>>().join(", ");
    let own = format!("tithe.{}", table.name);
    for statement in [
        format!("CREATE TABLE public.usertable AS SELECT ycsb_key::varchar(255), {fields} FROM {own}"),
        format!("CREATE TABLE public.records AS SELECT row_number() OVER ()::int AS id, {fields} FROM {own}"),
        "ALTER TABLE public.usertable ADD PRIMARY KEY (ycsb_key)".to_owned(),
        "ALTER TABLE public.records ADD PRIMARY KEY (id)".to_owned(),
        "VACUUM ANALYZE".to_owned(),
    ] {
        session.connection().run_statement(&statement)?;
    }
    Postgres.settle(&server, &setup, &table)
}

/// The class path of YCSB's core with our binding for JDBC, fetched by Maven once, and compiled; `None` when it cannot
/// be had.
fn ycsb(scripts: &Path) -> Result<Option<String>, Fault> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-ycsb");
    let class_path = format!("{}/*:{}", folder.display(), folder.display());
    let mut fetch = Command::new("mvn");
    fetch.args(["-q", "-B", "dependency:copy-dependencies", &format!("-DoutputDirectory={}", folder.display()), "-f"]);
    let mut compile = Command::new("javac");
    compile.args(["-cp", &class_path, "-d"]).arg(&folder);
    let mut commands = vec![compile.arg(scripts.join("JdbcClient.java"))];
    if !folder.join("core-0.17.0.jar").exists() {
        commands.insert(0, fetch.arg(scripts.join("pom.xml")));
    }
    for command in commands {
        let output = command.output().map_err(|error| Fault::machine("Maven or javac", error))?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            eprintln!("LEFT OUT: YCSB: {}", String::from_utf8_lossy(&said));
            return Ok(None);
        }
    }
    Ok(Some(class_path))
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_ascii_whitespace().map(str::to_owned)
}
