//! TPC-C's rows and statements, compared with the databases' own clients.
//!
//! `cargo bench --bench tpcc` starts its own PostgreSQL and MariaDB and runs two contests in rounds, with a rotating
//! order:
//!
//! * *Loading:* the rows of one warehouse into empty tables with their keys and indexes, over one connection. Tithe
//!   generates the rows and sends them by binary `COPY` to PostgreSQL and as many-row `INSERT`s to MariaDB. `psql`
//!   sends them by `COPY` and `mariadb` by `LOAD DATA LOCAL INFILE`, from files written before. Tithe's time includes
//!   generating the rows, the peer's time reading them.
//! * *Statements:* the four statements of Stock-Level, one client, by Tithe's terminal and by pgbench with prepared
//!   statements: client processor time per statement.
//!
//! In each round Tithe runs twice, before and after the peer or the other way round: its ratio with itself shows which
//! differences are noise. It loads a third time as in a run, over one connection per processor.
//!
//! Options: `--rounds N`, `--write` (keeps the result as `benches/results/tpcc.csv`). Products that are not installed
//! are left out with a message.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a bench tells its progress and prints its result")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::AtomicU64,
    thread,
    time::Instant,
};

use tithe_databases::{mariadb::MariaDb, postgres::Postgres};
use tithe_harness::serve;
use tithe_machine::{
    fault::Fault,
    launch::{Search, Server},
    sandbox::{Sandbox, process::Running},
    watch::{host, process},
};
use tithe_model::quantity;
use tithe_plugin::{
    data,
    database::Connect,
    product::Product,
    session::{Parameter, Progress, Session, wait_ready},
    setup::Setup,
    workload::{Clients, PartRecorder, Workload},
};
use tithe_statistics::order::quantile7;
use tithe_workloads::tpcc::{
    Tpcc,
    config::Config,
    population::{self, Sink},
    tables::TABLES,
    values::Parameters,
};

const SEED: u64 = 7;
/// Default number of rounds.
const ROUNDS: usize = 5;
/// Transactions of a run of the statements' contest, and of a shorter one that is subtracted.
const TRANSACTIONS: (u64, u64) = (200, 2200);
/// Statements of a Stock-Level: begin, two queries, commit.
const STATEMENTS: u64 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match options(&arguments).and_then(|(rounds, write)| session(rounds, write)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("tpcc: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Rounds, and whether to keep the result; `cargo bench` itself adds `--bench`.
fn options(arguments: &[String]) -> Result<(usize, bool), Fault> {
    let (mut rounds, mut write) = (ROUNDS, false);
    let mut arguments = arguments.iter().filter(|argument| *argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => write = true,
            "--rounds" => {
                let asked = arguments.next().and_then(|text| text.parse().ok()).filter(|rounds| *rounds > 0);
                rounds = asked.ok_or_else(|| Fault::Machine("--rounds needs a number".to_owned()))?;
            }
            other => return Err(Fault::Machine(format!("no such option: {other}"))),
        }
    }
    Ok((rounds, write))
}

fn session(rounds: usize, write: bool) -> Result<(), Fault> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = host::machine(&root);
    let mut text = format!(
        "# Machine: {}, {} logical processors, {}, Linux {}, {}. {rounds} rounds.\n\
         case,row,rate,rate_low,rate_high,us,us_low,us_high\n",
        machine.processor,
        machine.processors,
        quantity::memory(machine.memory_bytes),
        machine.kernel,
        machine.system
    );
    for product in [postgres(), mariadb()] {
        match Stand::start(&product) {
            Ok(stand) => text += &stand.contests(rounds)?,
            Err(fault) => eprintln!("LEFT OUT: {}: {fault}", product.database.title()),
        }
    }
    print!("{text}");
    if write {
        let path = root.join("benches/results/tpcc.csv");
        std::fs::write(&path, text).map_err(|error| Fault::machine(path.display(), error))?;
    }
    Ok(())
}

/// A product with its own client.
struct Tested {
    database: &'static dyn Product,
    settings: &'static [(&'static str, &'static str)],
    /// Name of the client's loading method.
    peer: &'static str,
    /// The command that loads the file of the table.
    load: fn(u16, &str, &Path) -> Command,
    /// The command that runs the given number of Stock-Levels.
    run: Option<fn(u16, u64, &Path) -> Command>,
}

fn postgres() -> Tested {
    Tested {
        database: &Postgres,
        settings: &[("shared_buffers", "1GB"), ("synchronous_commit", "off"), ("max_wal_size", "4GB")],
        peer: "psql, COPY",
        load: |port, table, file| {
            let mut command = Command::new("psql");
            command.args(["-q", "-h", "127.0.0.1", "-U", "tithe", "-p", &port.to_string(), "-d", "postgres", "-c"]);
            command.arg(format!("\\copy tithe.{table} from '{}'", file.display()));
            command
        },
        run: Some(|port, count, script| {
            let mut command = Command::new("pgbench");
            command.args(["-n", "-M", "prepared", "-h", "127.0.0.1", "-U", "tithe", "-p", &port.to_string(), "-t"]);
            command.args([&count.to_string(), "-f", &script.display().to_string(), "postgres"]);
            command
        }),
    }
}

fn mariadb() -> Tested {
    Tested {
        database: &MariaDb,
        settings: &[("innodb_buffer_pool_size", "1G"), ("innodb_flush_log_at_trx_commit", "2")],
        peer: "mariadb, LOAD DATA LOCAL INFILE",
        load: |port, table, file| {
            let mut command = Command::new("mariadb");
            command.args([
                "--local-infile=1",
                "-h",
                "127.0.0.1",
                "-u",
                "tithe",
                "-P",
                &port.to_string(),
                "tithe",
                "-e",
            ]);
            command.arg(format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE {table}", file.display()));
            command
        },
        run: None,
    }
}

/// The script of pgbench: Stock-Level's statements as Tithe's terminal sends them.
const STOCK_LEVEL: &str = "\\set district random(1, 10)\n\\set threshold random(10, 20)\n\
    BEGIN ISOLATION LEVEL REPEATABLE READ;\n\
    SELECT d_next_o_id FROM tithe.district WHERE d_w_id = 1 AND d_id = :district \\gset\n\
    \\set first :d_next_o_id - 20\n\
    SELECT count(DISTINCT s_i_id) FROM tithe.order_line, tithe.stock WHERE ol_w_id = 1 AND ol_d_id = :district \
    AND ol_o_id < :d_next_o_id AND ol_o_id >= :first AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < :threshold;\n\
    COMMIT;\n";

/// A running server, and the rows as files.
struct Stand<'a> {
    product: &'a Tested,
    server: Server,
    port: u16,
    setup: Setup,
    version: String,
    files: PathBuf,
    rows: u64,
    // Must end before its folder is removed.
    _running: Option<Running>,
    _sandbox: Sandbox,
}

fn workload(properties: &[(&str, &str)]) -> Result<Tpcc, Fault> {
    let owned = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = Config::resolve(&owned).map_err(|problems| Fault::Machine(format!("{problems:?}")))?;
    Ok(Tpcc::new(config, SEED))
}

impl<'a> Stand<'a> {
    fn start(product: &'a Tested) -> Result<Self, Fault> {
        let missing = |missing: tithe_machine::launch::Missing| Fault::Machine(format!("needs {}", missing.what));
        let install = product.database.find(&Search::default()).map_err(missing)?;
        let mut setup = Setup::bare();
        setup.settings.extend(product.settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut sandbox = Sandbox::new(&std::env::temp_dir())?;
        let place = sandbox.place("tpcc")?;
        let launch = product.database.launch(&install, &setup, &place);
        let (server, running) = serve::start(product.database, &sandbox, &place, &launch, &setup)?;
        let version = product.database.facts(&server, &setup)?.version;
        let files = sandbox.folder().join("rows");
        let rows = write_rows(&files)?;
        let script = files.join("stock-level.pgbench");
        std::fs::write(&script, STOCK_LEVEL).map_err(|error| Fault::machine(script.display(), error))?;
        let port = place.port;
        Ok(Self { product, server, port, setup, version, files, rows, _running: running, _sandbox: sandbox })
    }

    /// The rows of this product.
    fn contests(&self, rounds: usize) -> Result<String, Fault> {
        let mut loading = Contest::default();
        let mut statements = Contest::default();
        for round in 0..rounds {
            for who in order(&LOADERS, round) {
                let cost = match who {
                    Who::Peer => self.peer_load()?,
                    Who::Tithe | Who::TitheAgain => self.load(1)?,
                    Who::TitheInParallel => self.load(process::processors().len() as u64)?,
                };
                eprintln!("{}, loading, round {}: {who:?} {cost:?}", self.version, round + 1);
                loading.add(who, self.rows as f64 / cost.wall_s, cost.cpu_s * 1e6 / self.rows as f64);
            }
            for who in order(&LOADERS[..3], round) {
                let Some(run) = self.product.run else { continue };
                let (short, long) = match who {
                    Who::Peer => (self.peer_run(run, TRANSACTIONS.0)?, self.peer_run(run, TRANSACTIONS.1)?),
                    _ => (self.terminal(TRANSACTIONS.0)?, self.terminal(TRANSACTIONS.1)?),
                };
                let count = ((TRANSACTIONS.1 - TRANSACTIONS.0) * STATEMENTS) as f64;
                statements.add(who, count / (long.wall_s - short.wall_s), (long.cpu_s - short.cpu_s) * 1e6 / count);
            }
        }
        let case = format!("{}, loading {} rows", self.version, self.rows);
        let mut text = loading.rows(&case, self.product.peer);
        if self.product.run.is_some() {
            text += &statements.rows(&format!("{}, Stock-Level", self.version), "pgbench");
        }
        Ok(text)
    }

    fn connect(&self, workload: &Tpcc) -> Result<Session, Fault> {
        let how = Connect::blocking(workload.table());
        data::connect(self.product.database, &self.server, &self.setup, &how, workload)
    }

    /// Empty tables.
    fn clear(&self, workload: &Tpcc) -> Result<(), Fault> {
        data::create(self.product.database, &self.server, &self.setup, workload)
    }

    fn load(&self, connections: u64) -> Result<Cost, Fault> {
        let workload = workload(&[])?;
        self.clear(&workload)?;
        let sessions = (0..connections).map(|_| self.connect(&workload)).collect::<Result<Vec<_>, Fault>>()?;
        let done = AtomicU64::new(0);
        let load = |(part, mut session): (u64, Session)| workload.load(&mut session, part, connections, &done);
        let cost = Cost::of(libc::RUSAGE_SELF, || {
            thread::scope(|scope| {
                let threads: Vec<_> = (0..).zip(sessions).map(|part| scope.spawn(move || load(part))).collect();
                threads.into_iter().try_for_each(|thread| {
                    thread.join().unwrap_or_else(|_| Err(Fault::Machine("loading panicked".to_owned())))
                })
            })
        })?;
        workload.check(&mut self.connect(&workload)?, true)?;
        Ok(cost)
    }

    fn peer_load(&self) -> Result<Cost, Fault> {
        let workload = workload(&[])?;
        self.clear(&workload)?;
        let cost = Cost::of(libc::RUSAGE_CHILDREN, || {
            TABLES.iter().try_for_each(|table| {
                let file = self.files.join(table.name);
                finish((self.product.load)(self.port, table.name, &file))
            })
        })?;
        workload.check(&mut self.connect(&workload)?, true)?;
        Ok(cost)
    }

    fn terminal(&self, count: u64) -> Result<Cost, Fault> {
        let workload = workload(&[("mix", "0,0,0,0,1")])?;
        let mut session = self.connect(&workload)?;
        let mut client = workload.client(&workload.arm_state());
        client.seed(SEED);
        Cost::of(libc::RUSAGE_SELF, || {
            for _ in 0..count {
                client.prepare();
                client.submit(&mut session)?;
                while client.advance(&mut session, &mut Untimed)? == Progress::Pending {
                    wait_ready(session.connection())?;
                }
            }
            Ok(())
        })
    }

    fn peer_run(&self, run: fn(u16, u64, &Path) -> Command, count: u64) -> Result<Cost, Fault> {
        let script = self.files.join("stock-level.pgbench");
        Cost::of(libc::RUSAGE_CHILDREN, || finish(run(self.port, count, &script)))
    }
}

struct Untimed;

impl PartRecorder for Untimed {
    fn part(&mut self, _operation: usize) {}
}

fn finish(mut command: Command) -> Result<(), Fault> {
    let output = command.output().map_err(|error| Fault::machine(command.get_program().display(), error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Fault::Machine(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Time and processor time of a step.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

impl Cost {
    fn of(who: i32, work: impl FnOnce() -> Result<(), Fault>) -> Result<Self, Fault> {
        let (begun, before) = (Instant::now(), processor_s(who));
        work()?;
        Ok(Self { wall_s: begun.elapsed().as_secs_f64(), cpu_s: processor_s(who) - before })
    }
}

/// Processor time, user and system, of this process or of its children that have ended, seconds.
fn processor_s(who: i32) -> f64 {
    // SAFETY: `usage` is plain data and lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// A contestant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Tithe,
    Peer,
    TitheAgain,
    TitheInParallel,
}

/// Contestants for loading; all but the last run statements, too.
const LOADERS: [Who; 4] = [Who::Tithe, Who::Peer, Who::TitheAgain, Who::TitheInParallel];

/// The order of `all` in a round: over enough rounds, each has every position equally often.
fn order(all: &[Who], round: usize) -> Vec<Who> {
    let mut order = all.to_vec();
    order.rotate_left(round % all.len());
    order
}

/// Rates and processor times, round by round.
#[derive(Default)]
struct Contest {
    ours: Vec<(f64, f64)>,
    theirs: Vec<(f64, f64)>,
    again: Vec<(f64, f64)>,
    parallel: Vec<(f64, f64)>,
}

impl Contest {
    fn add(&mut self, who: Who, rate: f64, cpu_us: f64) {
        let values = match who {
            Who::Tithe => &mut self.ours,
            Who::Peer => &mut self.theirs,
            Who::TitheAgain => &mut self.again,
            Who::TitheInParallel => &mut self.parallel,
        };
        values.push((rate, cpu_us));
    }

    /// Rows of CSV: operations per second and processor time per operation, µs; medians with their quartiles.
    fn rows(&self, case: &str, peer: &str) -> String {
        let row = |name: &str, values: &[(f64, f64)]| {
            let rates = spread(values.iter().map(|value| value.0), 0);
            format!("\"{case}\",\"{name}\",{rates},{}\n", spread(values.iter().map(|value| value.1), 2))
        };
        let ratio = |name: &str, ours: &[(f64, f64)], others: &[(f64, f64)]| {
            let pairs = || ours.iter().zip(others);
            let rates = spread(pairs().map(|(ours, theirs)| ours.0 / theirs.0), 2);
            format!("\"{case}\",\"{name}\",{rates},{}\n", spread(pairs().map(|(ours, theirs)| ours.1 / theirs.1), 2))
        };
        let mut rows = row("Tithe", &self.ours);
        rows += &row(peer, &self.theirs);
        rows += &ratio("ratio", &self.ours, &self.theirs);
        rows += &ratio("ratio, Tithe to Tithe again", &self.ours, &self.again);
        if !self.parallel.is_empty() {
            rows += &row("Tithe as in a run, a connection per processor", &self.parallel);
            rows += &ratio("ratio of it", &self.parallel, &self.theirs);
        }
        rows
    }
}

/// Median and quartiles.
fn spread(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let values: Vec<f64> = values.collect();
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile7(&values, share));
    format!("{middle:.digits$},{low:.digits$},{high:.digits$}")
}

/// Writes the rows of every table into a file of its name in `folder`, in the format that both products read: values
/// separated by tabs, `\N` for NULL. Returns their number.
fn write_rows(folder: &Path) -> Result<u64, Fault> {
    std::fs::create_dir_all(folder).map_err(|error| Fault::machine(folder.display(), error))?;
    let open = |name: &str| {
        let path = folder.join(name);
        File::create(&path).map(BufWriter::new).map_err(|error| Fault::machine(path.display(), error))
    };
    let files = TABLES.iter().map(|table| open(table.name)).collect::<Result<Vec<_>, Fault>>()?;
    let config = Config::resolve(&BTreeMap::new()).map_err(|problems| Fault::Machine(format!("{problems:?}")))?;
    let mut sink = Files { files, row: Parameters::default(), rows: 0 };
    for (number, job) in (0..).zip(population::jobs(&config)) {
        population::make(&config, SEED, number, job, &mut sink)?;
    }
    sink.files
        .iter_mut()
        .try_for_each(std::io::Write::flush)
        .map_err(|error| Fault::machine(folder.display(), error))?;
    Ok(sink.rows)
}

struct Files {
    files: Vec<BufWriter<File>>,
    row: Parameters,
    rows: u64,
}

impl Sink for Files {
    fn row(&mut self, table: usize, fill: &mut dyn FnMut(&mut Parameters)) -> Result<(), Fault> {
        self.row.clear();
        fill(&mut self.row);
        self.rows += 1;
        let file = &mut self.files[table];
        let written = self.row.with(|values| {
            for (number, value) in values.iter().enumerate() {
                file.write_all(if number == 0 { b"" } else { b"\t" })?;
                match value {
                    Parameter::Integer(number) => write!(file, "{number}")?,
                    Parameter::Text(text) | Parameter::Bytes(text) => file.write_all(text)?,
                    Parameter::Null => file.write_all(b"\\N")?,
                }
            }
            file.write_all(b"\n")
        });
        written.map_err(|error| Fault::machine("rows", error))
    }
}
