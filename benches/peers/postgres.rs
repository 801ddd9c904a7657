//! PostgreSQL with the same rows for all; pgbench, sysbench and YCSB's JDBC binding compared with Tithe.
//!
//! Tithe's own table has its values as bytes. The peers read copies of it with the values as text, as they would create
//! them: one with YCSB's keys, one with integers, which pgbench and sysbench can draw. pgbench's own scripts run on its
//! own tables, which have the same name for both.

use std::process::Command;

use tithe_databases::postgres::Postgres;
use tithe_machine::{fault::Fault, launch::Place};

use crate::{
    contest::{Case, Contest, Contestant, number_after},
    floor,
    peer::{self, NATIVE_S, words},
    server::Loaded,
    tithe::{self, FIELDS, Job, RECORDS},
};

/// All three tables stay in memory, and no commit waits for the disk: the client is measured.
pub const SETTINGS: [(&str, &str); 2] = [("shared_buffers", "1GB"), ("synchronous_commit", "off")];

const JOBS: [Job; 7] = [
    Job { workload: "c", clients: 1 },
    Job { workload: "c", clients: 8 },
    Job { workload: "a", clients: 8 },
    Job { workload: "builtin:select-only", clients: 1 },
    Job { workload: "builtin:select-only", clients: 8 },
    Job { workload: "builtin:simple-update", clients: 1 },
    Job { workload: "builtin:simple-update", clients: 8 },
];

/// Starts and loads it; all jobs with all installed peers, and with the floors: against the echo server on port `echo`
/// and, for `select-only`, this server.
///
/// # Errors
/// No PostgreSQL, or any error of it.
pub fn contest(echo: u16) -> Result<Contest, Fault> {
    let server = start()?;
    let pgbench = peer::version(&server.install.programs.join("pgbench"));
    Ok(Contest { cases: cases(&server, echo)?, versions: pgbench.into_iter().collect(), server })
}

/// Options of PostgreSQL's programs for the server at `place`.
pub fn connection(place: &Place) -> String {
    format!("-h 127.0.0.1 -p {} -U tithe", place.port)
}

fn start() -> Result<Loaded, Fault> {
    let loaded = Loaded::start(&Postgres, &SETTINGS, "c", |session, _| {
        let fields = (0..FIELDS).map(|number| format!("convert_from(field{number}, 'UTF8') AS field{number}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        for statement in [
            format!("CREATE TABLE public.usertable AS SELECT ycsb_key::varchar(255), {fields} FROM tithe.usertable"),
            format!(
                "CREATE TABLE public.records AS SELECT row_number() OVER ()::int AS id, {fields} FROM tithe.usertable"
            ),
            "ALTER TABLE public.usertable ADD PRIMARY KEY (ycsb_key)".to_owned(),
            "ALTER TABLE public.records ADD PRIMARY KEY (id)".to_owned(),
            "ALTER ROLE tithe SET search_path = tithe, public".to_owned(),
            "VACUUM ANALYZE".to_owned(),
        ] {
            session.connection().run_statement(&statement)?;
        }
        Ok(())
    })?;
    let arguments = format!("-q -i {} postgres", connection(&loaded.place));
    let output = Command::new(loaded.install.programs.join("pgbench")).args(words(&arguments)).output();
    let output = output.map_err(|error| Fault::machine("pgbench", error))?;
    if !output.status.success() {
        return Err(Fault::Wrong(format!("pgbench -i: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(loaded)
}

fn cases(server: &Loaded, echo: u16) -> Result<Vec<Case>, Fault> {
    let port = server.place.port;
    let connect =
        format!("--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port={port} --pgsql-user=tithe --pgsql-db=postgres");
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?user=tithe");
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &Postgres, &server.place, job)?, pgbench(server, job)];
        if job.script().is_none() {
            contestants.extend(peer::sysbench(&connect, job));
            contestants.extend(peer::ycsb(&url, "public.usertable", job)?);
        }
        contestants.push(floor::contestant(echo, job.clients, job.traffic())?);
        if job.script() == Some("select-only") {
            contestants.push(floor::contestant(port, job.clients, floor::Traffic::Select)?);
        }
        contestants.push(tithe::contestant("Tithe again", &Postgres, &server.place, job)?);
        Ok(Case { name: job.name("PostgreSQL"), contestants })
    };
    JOBS.into_iter().map(case).collect()
}

fn pgbench(server: &Loaded, job: Job) -> Contestant {
    let script = match job.script() {
        Some(script) => ["-b".to_owned(), script.to_owned()],
        None => {
            let path = peer::scripts().join(format!("{}.pgbench", job.workload));
            ["-f".to_owned(), path.display().to_string()]
        }
    };
    let arguments =
        format!("-n -M prepared {} -c {} -j 1 -D records={RECORDS} postgres", connection(&server.place), job.clients);
    Contestant {
        name: "pgbench".to_owned(),
        ours: false,
        program: server.install.programs.join("pgbench"),
        arguments: words(&arguments).chain(script).collect(),
        short: words(&format!("-T {}", NATIVE_S.0)).collect(),
        long: words(&format!("-T {}", NATIVE_S.1)).collect(),
        operations: |text| number_after(text, "number of transactions actually processed"),
        every: 1,
    }
}
