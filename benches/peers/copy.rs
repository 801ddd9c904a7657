//! Bulk loads of PostgreSQL: pgbench's loading of its largest table, and psql's `\copy` from a file, compared with
//! Tithe.
//!
//! An operation is a row of about 100 bytes: pgbench's `aid, bid, abalance, filler`, or Tithe's three numbers and one
//! text of 84 bytes, which psql copies too. pgbench and Tithe make their rows, psql reads lines. Each loads into a
//! table of its own without a key, which is emptied.

use tithe_databases::postgres::Postgres;
use tithe_machine::{fault::Fault, launch::Place};
use tithe_plugin::session::Session;

use crate::{
    contest::{Case, Contest, Contestant, number_after, number_before},
    peer::words,
    postgres::{SETTINGS, connection},
    server::Loaded,
    tithe::{self, Job},
};

const JOB: Job = Job { workload: "bulk:copy", clients: 1 };

/// Rows of a unit: pgbench's scale 1, and psql's file.
const UNIT: u64 = 100_000;

/// Units of a short and a long run.
const UNITS: (usize, usize) = (1, 10);

/// psql's file, in the folder of the server.
const FILE: &str = "rows";

/// Starts PostgreSQL, makes the tables and the file, and has the only case.
///
/// # Errors
/// No PostgreSQL, or any error of it.
pub fn contest(_echo: u16) -> Result<Contest, Fault> {
    let server = Loaded::start(&Postgres, &SETTINGS, JOB.workload, prepare)?;
    Ok(Contest { cases: vec![case(&server)?], versions: Vec::new(), server })
}

fn prepare(session: &mut Session, place: &Place) -> Result<(), Fault> {
    for statement in [
        "CREATE TABLE public.pgbench_accounts (aid int, bid int, abalance int, filler char(84))".to_owned(),
        "CREATE TABLE public.pgbench_branches (bid int, bbalance int, filler char(88))".to_owned(),
        "CREATE TABLE public.pgbench_tellers (tid int, bid int, tbalance int, filler char(84))".to_owned(),
        "CREATE TABLE public.pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))"
            .to_owned(),
        "CREATE TABLE public.rows AS SELECT * FROM tithe.bulk LIMIT 0".to_owned(),
        // The server writes it: a thousand rows, as often as needed.
        format!(
            "COPY (SELECT bulk.* FROM tithe.bulk, generate_series(1, {UNIT} / (SELECT count(*) FROM tithe.bulk))) TO '{}'",
            file(place)
        ),
    ] {
        session.connection().run_statement(&statement)?;
    }
    Ok(())
}

fn file(place: &Place) -> String {
    place.folder.join(FILE).display().to_string()
}

fn case(server: &Loaded) -> Result<Case, Fault> {
    let place = &server.place;
    let pgbench = |units: usize| words(&format!("-s {units}")).collect();
    let copy = |units: usize| {
        let copy = format!("\\copy public.rows from '{}'", file(place));
        (0..units).flat_map(|_| ["-c".to_owned(), copy.clone()]).collect()
    };
    let contestants = vec![
        tithe::contestant("Tithe", &Postgres, place, JOB)?,
        Contestant {
            name: "pgbench -i".to_owned(),
            ours: false,
            program: server.install.programs.join("pgbench"),
            arguments: words(&format!("-i -I g {} postgres", connection(place))).collect(),
            short: pgbench(UNITS.0),
            long: pgbench(UNITS.1),
            operations: |text| number_before(&text[text.find(" of ")? + 4..], " tuples"),
            every: 1,
        },
        Contestant {
            name: "psql \\copy".to_owned(),
            ours: false,
            program: server.install.programs.join("psql"),
            arguments: words(&format!("-X -d postgres {} -c", connection(place)))
                .chain(["TRUNCATE public.rows".to_owned()])
                .collect(),
            short: copy(UNITS.0),
            long: copy(UNITS.1),
            operations: |text| {
                text.lines().filter_map(|line| number_after(line, "COPY ")).reduce(|sum, rows| sum + rows)
            },
            every: 1,
        },
        tithe::contestant("Tithe again", &Postgres, place, JOB)?,
    ];
    Ok(Case { name: JOB.name("PostgreSQL"), contestants })
}
