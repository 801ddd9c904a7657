//! DuckDB in Tithe's process and in that of DuckDB's own command line, of the same release: an aggregate of a whole
//! table in memory, which both run in one thread. An operation is a row; the processor time is that of the engine with
//! its client. Tithe compares every answer with the expected one, the command line prints it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tithe_databases::duckdb::DuckDb;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Place},
};

use crate::{
    contest::{Case, Contest, Contestant},
    peer::{self, words},
    server::Loaded,
    tithe::{self, Job, RECORDS},
};

const JOB: Job = Job { workload: "scan:aggregate", clients: 1 };

/// Tithe's own statement.
const STATEMENT: &str = "SELECT count(*), sum(s_number), avg(s_number), min(s_text), max(s_text) FROM scan;";

/// Statements of a short and a long run.
const STATEMENTS: (usize, usize) = (20, 1000);

/// The release that Tithe loads, as the package of its command line is called.
const PACKAGE: &str = "duckdb-cli==1.5.5";

/// Makes a file with the table, and has the only case.
///
/// # Errors
/// No DuckDB, or any error of it.
pub fn contest(_echo: u16) -> Result<Contest, Fault> {
    let server = Loaded::start(&DuckDb, &[], JOB.workload, |_, _| Ok(()))?;
    let (program, place) = (command_line()?, &server.place);
    let mut contestants = vec![tithe::contestant("Tithe", &DuckDb, place, JOB)?];
    if let Some(program) = &program {
        contestants.push(scans(program, place)?);
    }
    contestants.push(tithe::contestant("Tithe again", &DuckDb, place, JOB)?);
    let versions = program.iter().filter_map(|program| peer::version(program)).collect();
    Ok(Contest { cases: vec![Case { name: JOB.name("DuckDB"), contestants }], versions, server })
}

/// Installs DuckDB's command line, if it is not there; `None` without pip.
fn command_line() -> Result<Option<PathBuf>, Fault> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-duckdb");
    let program = folder.join("duckdb_cli/duckdb");
    if !program.exists() {
        let mut pip = Command::new("pip");
        pip.args(["install", "--quiet", "--no-deps", "--target"]).arg(&folder).arg(PACKAGE);
        let output = pip.output().map_err(|error| Fault::machine("pip", error))?;
        if !output.status.success() || !program.exists() {
            eprintln!("LEFT OUT: DuckDB's command line: {}", String::from_utf8_lossy(&output.stderr));
            return Ok(None);
        }
    }
    Ok(Some(program))
}

fn scans(program: &Path, place: &Place) -> Result<Contestant, Fault> {
    let script = |statements: usize| {
        let path = place.folder.join(format!("{statements}.sql"));
        let text = format!("SET threads = 1;\n{}", format!("{STATEMENT}\n").repeat(statements));
        std::fs::write(&path, text).map_err(|error| Fault::machine(path.display(), error))?;
        Ok::<_, Fault>(vec!["-f".to_owned(), path.display().to_string()])
    };
    let Address::File(file) = tithe::server(&DuckDb, place).address else {
        return Err(Fault::Wrong("DuckDB is in no file".to_owned()));
    };
    Ok(Contestant {
        name: "duckdb".to_owned(),
        ours: false,
        program: program.to_owned(),
        arguments: words("-readonly -csv -noheader").chain([file.display().to_string()]).collect(),
        short: script(STATEMENTS.0)?,
        long: script(STATEMENTS.1)?,
        operations: |text| {
            let answers = text.lines().filter(|line| line.starts_with(&format!("{RECORDS},"))).count();
            Some(answers as u64 * RECORDS).filter(|rows| *rows > 0)
        },
        every: 1,
    })
}
