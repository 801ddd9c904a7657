//! A PostgreSQL of the test's own, for tests that attach to one.

use std::path::PathBuf;

use tithe_databases::postgres::Postgres;
use tithe_harness::serve;
use tithe_machine::{
    launch::{Address, Install, Search, Server as Launched, Step},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{database::Database, setup::Setup};

/// The installed PostgreSQL; without one the test says so and is skipped, and fails where `CI` is set.
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
pub fn installed() -> Option<Install> {
    match Postgres.find(&Search::default()) {
        Ok(install) => Some(install),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing:?}"),
        Err(missing) => {
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

/// A running server, which stops when it is dropped: before its folder goes.
pub struct Server {
    programs: PathBuf,
    launched: Launched,
    _running: Option<Running>,
    _sandbox: Sandbox,
}

impl Server {
    /// Starts a plain server with pgaudit preloaded, so that sessions can switch it.
    pub fn start() -> Option<Self> {
        let install = installed()?;
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let mut setup = Setup::bare();
        setup.settings.insert("shared_preload_libraries".to_owned(), "pgaudit".to_owned());
        let place = sandbox.place("attached").expect("a place");
        let mut launch = Postgres.launch(&install, &setup, &place);
        // As managed servers do: the log is in files that only the server knows.
        launch.steps.push(Step::Append {
            path: place.folder.join("data/postgresql.conf"),
            content: "logging_collector = 'on'\n".to_owned(),
        });
        let (launched, running) =
            serve::start(&Postgres, &sandbox, &place, &launch, &setup).expect("the server starts");
        Some(Self { programs: install.programs, launched, _running: running, _sandbox: sandbox })
    }

    /// Where it listens, without a password.
    pub fn address(&self) -> String {
        self.url("").replace(":@", "@")
    }

    /// Where it listens, as an experiment names it; `password` is given though the server asks for none.
    pub fn url(&self, password: &str) -> String {
        let Address::Tcp { host, port } = &self.launched.address else { panic!("a TCP server") };
        format!("postgres://tithe:{password}@{host}:{port}/postgres")
    }

    /// Runs statements as its owner and returns the first column of the last one's rows.
    pub fn psql(&self, statements: &str) -> String {
        let output = std::process::Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url("none"), "-c", statements])
            .output()
            .expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
