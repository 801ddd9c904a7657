//! Load generators for more than one database: sysbench, and YCSB's own core over JDBC.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tithe_machine::fault::Fault;

use crate::{
    contest::{Contestant, number_after},
    tithe::{Job, RECORDS},
};

/// Seconds of a short and a long run of a native peer.
pub const NATIVE_S: (u32, u32) = (1, 3);
/// Seconds of a short and a long run of a peer in Java: the compiler finishes the hot path during the short one.
const JAVA_S: (u32, u32) = (8, 20);
/// A peer in Java takes part in one of this many rounds.
const JAVA_EVERY: usize = 3;

/// Folder of the peers' scripts.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/scripts")
}

/// True if `program` can be run; prints a message if not.
pub fn installed(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("LEFT OUT: {program} is not installed");
    }
    there
}

/// The first line that `program --version` prints.
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// sysbench, with `connect` as the arguments for the server; `None` if it is not installed.
pub fn sysbench(connect: &str, job: Job) -> Option<Contestant> {
    if !installed("sysbench") {
        return None;
    }
    let arguments = format!(
        "{connect} --threads={} --events=0 --records={RECORDS} --updates={} run",
        job.clients,
        job.workload == "a"
    );
    Some(Contestant {
        name: "sysbench".to_owned(),
        ours: false,
        program: "sysbench".into(),
        arguments: [scripts().join("records.lua").display().to_string()].into_iter().chain(words(&arguments)).collect(),
        short: vec![format!("--time={}", NATIVE_S.0)],
        long: vec![format!("--time={}", NATIVE_S.1)],
        operations: |text| number_after(text, "total number of events"),
        every: 1,
    })
}

/// YCSB on `table` of the server at `url`; `None` if it is not available.
///
/// # Errors
/// When Maven or the compiler cannot be started.
pub fn ycsb(url: &str, table: &str, job: Job) -> Result<Option<Contestant>, Fault> {
    let Some(class_path) = ycsb_class_path()? else { return Ok(None) };
    let (reads, updates) = if job.workload == "a" { (0.5, 0.5) } else { (1.0, 0.0) };
    let arguments = format!(
        "-cp {class_path} site.ycsb.Client -t -db JdbcClient -threads {} \
         -p workload=site.ycsb.workloads.CoreWorkload -p requestdistribution=zipfian -p recordcount={RECORDS} \
         -p operationcount=2000000000 -p readproportion={reads} -p updateproportion={updates} -p scanproportion=0 \
         -p insertproportion=0 -p jdbc.table={table} -p jdbc.url={url} -p",
        job.clients
    );
    Ok(Some(Contestant {
        name: "YCSB over JDBC".to_owned(),
        ours: false,
        program: "java".into(),
        arguments: words(&arguments).collect(),
        short: vec![format!("maxexecutiontime={}", JAVA_S.0)],
        long: vec![format!("maxexecutiontime={}", JAVA_S.1)],
        // Failed operations have lines of their own; any such line makes the run fail.
        operations: |text| {
            let all = ["READ", "UPDATE"].map(|name| number_after(text, &format!("[{name}], Operations")));
            let good = ["READ", "UPDATE"].map(|name| number_after(text, &format!("[{name}], Return=OK")));
            (all == good && all[0].is_some()).then(|| all.iter().flatten().sum())
        },
        every: JAVA_EVERY,
    }))
}

/// The class path of YCSB's core with our binding for JDBC, downloaded by Maven once, and compiled; `None` if it is not
/// available.
fn ycsb_class_path() -> Result<Option<String>, Fault> {
    if !installed("javac") || !installed("mvn") {
        return Ok(None);
    }
    let scripts = scripts();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-ycsb");
    let class_path = format!("{}/*:{}", folder.display(), folder.display());
    let mut fetch = Command::new("mvn");
    fetch.args(["-q", "-B", "dependency:copy-dependencies", &format!("-DoutputDirectory={}", folder.display()), "-f"]);
    let mut compile = Command::new("javac");
    compile.args(["-cp", &class_path, "-d"]).arg(&folder);
    let mut commands = vec![compile.arg(scripts.join("JdbcClient.java"))];
    if !folder.join("mariadb-java-client-3.4.1.jar").exists() {
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

/// The words of `text`.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_ascii_whitespace().map(str::to_owned)
}
