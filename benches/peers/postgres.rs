//! PostgreSQL with the same rows for everyone, and pgbench, sysbench and YCSB's JDBC binding beside Tithe.
//!
//! Tithe's own table has its values as bytes. The peers read copies of it with the values as text, as they would
//! create them: one by YCSB's keys, one by whole numbers, which is what pgbench and sysbench can draw.

use tithe_databases::postgres::Postgres;
use tithe_machine::fault::Fault;

use crate::{
    contest::{Case, Contestant, number_after},
    floor,
    peer::{self, NATIVE_S, words},
    server::Loaded,
    tithe::{self, FIELDS, Job, RECORDS},
};

/// All three tables stay in memory, and no commit waits for the disk: the client is what is measured.
const SETTINGS: [(&str, &str); 2] = [("shared_buffers", "1GB"), ("synchronous_commit", "off")];

const JOBS: [Job; 3] =
    [Job { workload: "c", clients: 1 }, Job { workload: "c", clients: 8 }, Job { workload: "a", clients: 8 }];

/// Starts and loads it.
///
/// # Errors
/// No PostgreSQL, or whatever it refuses.
pub fn start() -> Result<Loaded, Fault> {
    Loaded::start(&Postgres, &SETTINGS, |session, _| {
        let fields = (0..FIELDS).map(|number| format!("convert_from(field{number}, 'UTF8') AS field{number}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        for statement in [
            format!("CREATE TABLE public.usertable AS SELECT ycsb_key::varchar(255), {fields} FROM tithe.usertable"),
            format!(
                "CREATE TABLE public.records AS SELECT row_number() OVER ()::int AS id, {fields} FROM tithe.usertable"
            ),
            "ALTER TABLE public.usertable ADD PRIMARY KEY (ycsb_key)".to_owned(),
            "ALTER TABLE public.records ADD PRIMARY KEY (id)".to_owned(),
            "VACUUM ANALYZE".to_owned(),
        ] {
            session.connection().run_statement(&statement)?;
        }
        Ok(())
    })
}

/// Versions of the server and of pgbench.
pub fn versions(server: &Loaded) -> Vec<String> {
    [server.version.clone()].into_iter().chain(peer::version(&server.install.programs.join("pgbench"))).collect()
}

/// All jobs with all peers that are installed, and with the floor against the server on port `echo`.
///
/// # Errors
/// When this program cannot tell where it is.
pub fn cases(server: &Loaded, echo: u16) -> Result<Vec<Case>, Fault> {
    let port = server.place.port;
    let connect =
        format!("--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port={port} --pgsql-user=tithe --pgsql-db=postgres");
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?user=tithe");
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &Postgres, port, job)?, pgbench(server, job)];
        contestants.extend(peer::sysbench(&connect, job));
        contestants.extend(peer::ycsb(&url, "public.usertable", job)?);
        contestants.push(floor::contestant(echo, job.clients)?);
        contestants.push(tithe::contestant("Tithe again", &Postgres, port, job)?);
        Ok(Case { name: job.name("PostgreSQL"), contestants })
    };
    JOBS.into_iter().map(case).collect()
}

fn pgbench(server: &Loaded, job: Job) -> Contestant {
    let script = peer::scripts().join(format!("{}.pgbench", job.workload));
    let arguments = format!(
        "-n -M prepared -h 127.0.0.1 -p {} -U tithe -c {} -j 1 -D records={RECORDS} postgres -f",
        server.place.port, job.clients
    );
    Contestant {
        name: "pgbench".to_owned(),
        ours: false,
        program: server.install.programs.join("pgbench"),
        arguments: words(&arguments).chain([script.display().to_string()]).collect(),
        short: words(&format!("-T {}", NATIVE_S.0)).collect(),
        long: words(&format!("-T {}", NATIVE_S.1)).collect(),
        operations: |text| number_after(text, "number of transactions actually processed"),
        every: 1,
    }
}
