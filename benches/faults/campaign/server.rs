//! Servers that cases attach to, and what befalls them.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tithe_machine::sandbox::ports::Port;

use super::{
    case::Case,
    fault::{Fault, How},
    product::Kind,
    relay::Relay,
};

/// The account that nothing belongs to: PostgreSQL refuses to run as root.
const NOBODY: &str = "65534";

/// A server with a decoy table, and a relay before it.
pub struct Attached {
    product: &'static str,
    server: Mutex<Option<Child>>,
    folder: PathBuf,
    port: u16,
    pub relay: Arc<Relay>,
    _port: Port,
}

const BARE: Fault = Fault { on: |kind| kind == Kind::Attached, statuses: &[4, 7], words: LOST, ..Fault::BARE };

/// What is said of a server that has gone.
const LOST: &[&str] = &[
    "connection",
    "Connection",
    "connect",
    "closed",
    "no operation succeeded",
    "shut",
    "terminat",
    "lost the records",
];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "attached server SIGKILL",
        how: How::At(|run, case, _| {
            with_server(case, |server| {
                server.signal(Signal::KILL);
                run.has_been_struck();
            })
        }),
        spoils: true,
        ..BARE
    },
    Fault {
        name: "attached server SIGTERM",
        how: How::At(|_, case, _| with_server(case, |server| server.signal(Signal::TERM))),
        ..BARE
    },
    Fault {
        name: "attached server restarts",
        how: How::At(|run, case, draw| {
            with_server(case, |server| {
                server.signal(Signal::KILL);
                run.has_been_struck();
                std::thread::sleep(Duration::from_millis(draw.below(1000)));
                server.serve();
            })
        }),
        spoils: true,
        ..BARE
    },
    Fault {
        name: "attached server stopped and continued",
        how: How::At(|_, case, draw| {
            with_server(case, |server| {
                server.signal(Signal::STOP);
                std::thread::sleep(Duration::from_millis(100 + draw.below(2000)));
                server.signal(Signal::CONT);
            })
        }),
        words: &[],
        ..BARE
    },
];

/// Does `work` with the server of `case`, which serves again when the fault is over.
fn with_server(case: &Case, work: impl FnOnce(&Attached)) -> bool {
    let Some(server) = &case.site.0 else { return false };
    work(server);
    let server = Arc::clone(server);
    case.when_over(move || server.serve());
    true
}

impl Attached {
    pub fn start(product: &'static str) -> Self {
        let drawn = Port::draw(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("a port");
        let port = drawn.number();
        let folder = PathBuf::from(format!("/tmp/tithe-faults-{}-{port}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        if product == "postgres" {
            let text = folder.display().to_string();
            if is_root() {
                let own = Command::new("chown").args([NOBODY, &text]).status();
                assert!(own.is_ok_and(|status| status.success()), "root gives folders away");
            }
            let mut initdb = dying(&postgres_programs().join("initdb").display().to_string(), true);
            initdb.args(["-D", &format!("{text}/data"), "-A", "trust", "-U", "tithe", "-N"]).stdout(Stdio::null());
            assert!(initdb.status().expect("initdb runs").success(), "no data folder");
        }
        let relay = Arc::new(Relay::start(([127, 0, 0, 1], port).into()));
        let attached = Self { product, server: Mutex::default(), folder, port, relay, _port: drawn };
        attached.serve();
        attached
    }

    fn command(&self) -> Command {
        let (text, port) = (self.folder.display().to_string(), self.port.to_string());
        let mut command = match self.product {
            "redis" => {
                let mut command = dying("redis-server", false);
                command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir", &text]);
                command
            }
            _ => {
                let mut command = dying(&postgres_programs().join("postgres").display().to_string(), true);
                command.args(["-D", &format!("{text}/data"), "-p", &port, "-k", "", "-c", "fsync=off"]);
                command.args([
                    "-c",
                    "listen_addresses=127.0.0.1",
                    "-c",
                    "max_connections=50",
                    "-c",
                    "shared_buffers=16MB",
                ]);
                command
            }
        };
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts it where it does not run, and waits until it serves and has its decoy.
    fn serve(&self) {
        let begun = Instant::now();
        while self.decoy().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{} does not serve", self.product);
            let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
            if server.as_mut().is_none_or(|server| server.try_wait().is_ok_and(|ended| ended.is_some())) {
                *server = Some(self.command().spawn().expect("the server starts"));
            }
            drop(server);
            std::thread::sleep(Duration::from_millis(30));
            self.make_decoy();
        }
    }

    fn signal(&self, signal: Signal) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = server.as_ref() {
            let _ = tithe_machine::proc::signal(server.id() as i32, signal);
        }
    }

    /// Through the relay.
    pub fn url(&self) -> String {
        let port = self.relay.port();
        match self.product {
            "redis" => format!("redis://127.0.0.1:{port}/0"),
            _ => format!("postgres://tithe@127.0.0.1:{port}/postgres"),
        }
    }

    fn make_decoy(&self) {
        match self.product {
            "redis" => drop(self.redis("SET decoy nobody")),
            _ => {
                drop(self.psql(
                    "CREATE SCHEMA tithe_mine; CREATE TABLE tithe_mine.usertable AS SELECT 'nobody''s' AS field0",
                ))
            }
        }
    }

    /// The data on the server that do not belong to Tithe, as the server has them.
    pub fn decoy(&self) -> String {
        match self.product {
            "redis" => self.redis("GET decoy").filter(|it| it.contains("nobody")).unwrap_or_default(),
            _ => self.psql("SELECT string_agg(field0, ',') FROM tithe_mine.usertable").unwrap_or_default(),
        }
    }

    /// What is there beside the decoy.
    pub fn left(&self) -> Vec<String> {
        let left = match self.product {
            "redis" => self.redis("DBSIZE").filter(|it| it.trim() != ":1"),
            _ => self
                .psql(
                    "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'tithe%' AND nspname <> 'tithe_mine' UNION ALL \
                     SELECT rolname FROM pg_roles WHERE rolname LIKE 'tithe_%'",
                )
                .filter(|it| !it.is_empty()),
        };
        left.map(|it| format!("on the server: {}", it.replace('\n', " "))).into_iter().collect()
    }

    /// The answer to a command whose parts stand between spaces.
    fn redis(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "{command}\r\nQUIT\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.trim_end().trim_end_matches("+OK").to_owned())
    }

    /// The first column of the rows of `statements`; `None` where they fail.
    fn psql(&self, statements: &str) -> Option<String> {
        let url = format!("postgres://tithe@127.0.0.1:{}/postgres", self.port);
        let mut command = Command::new(postgres_programs().join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", statements]);
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let _ = server.kill();
            let _ = server.wait();
        }
        // Its children hear of it when they run next.
        for _ in 0..100 {
            if fs::remove_dir_all(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A program that ends with this one, however that ends, without rights where it is `humble`.
fn dying(program: &str, humble: bool) -> Command {
    let mut command = Command::new("setpriv");
    if humble && is_root() {
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    }
    command.args(["--pdeathsig", "KILL", program]);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The folder of PostgreSQL's programs.
fn postgres_programs() -> PathBuf {
    use tithe_plugin::database::Database as _;
    let install = tithe_databases::postgres::Postgres.find(&tithe_machine::launch::Search::default());
    install.expect("PostgreSQL is installed").programs
}
