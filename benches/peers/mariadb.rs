//! MariaDB with the same rows for all; sysbench and YCSB's JDBC binding compared with Tithe.
//!
//! As on PostgreSQL, the peers read copies with the values as text.

use tithe_databases::mariadb::MariaDb;
use tithe_machine::fault::Fault;

use crate::{
    contest::{Case, Contest},
    floor, peer,
    server::Loaded,
    tithe::{self, FIELDS, Job},
};

/// All three tables stay in memory, and no commit waits for the disk: the client is measured.
const SETTINGS: [(&str, &str); 2] = [("innodb_buffer_pool_size", "1G"), ("innodb_flush_log_at_trx_commit", "2")];

const JOBS: [Job; 2] = [Job { workload: "c", clients: 8 }, Job { workload: "a", clients: 8 }];

/// Starts and loads it; all jobs with all installed peers, and with the floor against the echo server on port `echo`.
///
/// # Errors
/// No MariaDB, or any error of it.
pub fn contest(echo: u16) -> Result<Contest, Fault> {
    let server = start()?;
    Ok(Contest { cases: cases(&server, echo)?, versions: Vec::new(), server })
}

fn start() -> Result<Loaded, Fault> {
    Loaded::start(&MariaDb, &SETTINGS, "c", |session, _| {
        let columns = (0..FIELDS).map(|number| format!("field{number} text")).collect::<Vec<_>>().join(", ");
        let fields = (0..FIELDS).map(|number| format!("CONVERT(field{number} USING utf8mb4)"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        for statement in [
            "CREATE DATABASE peers".to_owned(),
            format!("CREATE TABLE peers.usertable (ycsb_key varchar(255) PRIMARY KEY, {columns})"),
            format!("INSERT INTO peers.usertable SELECT ycsb_key, {fields} FROM tithe.usertable"),
            format!("CREATE TABLE peers.records (id int PRIMARY KEY, {columns})"),
            format!("INSERT INTO peers.records SELECT ROW_NUMBER() OVER (), {fields} FROM tithe.usertable"),
        ] {
            session.connection().run_statement(&statement)?;
        }
        Ok(())
    })
}

fn cases(server: &Loaded, echo: u16) -> Result<Vec<Case>, Fault> {
    let port = server.place.port;
    let connect = format!(
        "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port={port} --mysql-user=tithe --mysql-db=peers --mysql-ssl=off"
    );
    let url = format!("jdbc:mariadb://127.0.0.1:{port}/peers?user=tithe&useServerPrepStmts=true");
    let case = |job: Job| {
        let mut contestants = vec![tithe::contestant("Tithe", &MariaDb, &server.place, job)?];
        contestants.extend(peer::sysbench(&connect, job));
        contestants.extend(peer::ycsb(&url, "peers.usertable", job)?);
        contestants.push(floor::contestant(echo, job.clients, job.traffic())?);
        contestants.push(tithe::contestant("Tithe again", &MariaDb, &server.place, job)?);
        Ok(Case { name: job.name("MariaDB"), contestants })
    };
    JOBS.into_iter().map(case).collect()
}
