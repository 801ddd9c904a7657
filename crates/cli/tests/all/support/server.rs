//! Servers of the test's own, for tests that attach to one.

use std::path::PathBuf;

use tithe_databases::{mariadb::MariaDb, postgres::Postgres, redis::Redis};
use tithe_harness::serve;
use tithe_machine::{
    launch::{Address, Install, Search, Server as Launched, Step},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{database::Database, product::Product, setup::Setup};

/// The installed PostgreSQL; without one the test says so and is skipped, and fails where `CI` is set.
pub fn installed() -> Option<Install> {
    found(&Postgres)
}

#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn found(database: &dyn Product) -> Option<Install> {
    match database.find(&Search::default()) {
        Ok(install) => Some(install),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing:?}"),
        Err(missing) => {
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

/// A running PostgreSQL, which stops when it is dropped: before its folder goes.
pub struct Server {
    programs: PathBuf,
    launched: Launched,
    authority: PathBuf,
    _running: Option<Running>,
    _sandbox: Sandbox,
}

/// A plain server of another product, which stops when it is dropped.
pub struct OtherServer {
    launched: Launched,
    _running: Option<Running>,
    _sandbox: Sandbox,
}

impl OtherServer {
    /// A Redis.
    pub fn redis() -> Option<Self> {
        Self::start(&Redis)
    }

    /// A MariaDB.
    pub fn mariadb() -> Option<Self> {
        Self::start(&MariaDb)
    }

    fn start(database: &'static dyn Product) -> Option<Self> {
        let install = found(database)?;
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let setup = Setup::bare();
        let place = sandbox.place("attached").expect("a place");
        let launch = database.launch(&install, &setup, &place);
        let (launched, running) = serve::start(database, &sandbox, &place, &launch, &setup).expect("the server starts");
        Some(Self { launched, _running: running, _sandbox: sandbox })
    }

    /// `host:port`, with the address or the name of this machine's loopback.
    pub fn place(&self, host: &str) -> String {
        let Address::Tcp { port, .. } = &self.launched.address else { panic!("a TCP server") };
        format!("{host}:{port}")
    }
}

impl Server {
    /// Starts a server with pgaudit preloaded, so that sessions can switch it. It speaks TLS with whoever asks.
    pub fn start() -> Option<Self> {
        let install = installed()?;
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let credentials = sandbox.credentials().expect("credentials");
        let mut setup = Setup::bare();
        setup.settings.insert("shared_preload_libraries".to_owned(), "pgaudit".to_owned());
        let place = sandbox.place("attached").expect("a place");
        let mut launch = Postgres.launch(&install, &setup, &place);
        // As managed servers do: the log is in files that only the server knows.
        launch.steps.push(Step::Append {
            path: place.folder.join("data/postgresql.conf"),
            content: format!(
                "logging_collector = 'on'\nssl = 'on'\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
                credentials.server_certificate.display(),
                credentials.server_key.display()
            ),
        });
        let (launched, running) =
            serve::start(&Postgres, &sandbox, &place, &launch, &setup).expect("the server starts");
        let authority = credentials.authority;
        Some(Self { programs: install.programs, launched, authority, _running: running, _sandbox: sandbox })
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

    /// Where it listens, with TLS or without, for an account that has no password.
    pub fn url_of(&self, account: &str, tls: bool) -> String {
        let Address::Tcp { host, port } = &self.launched.address else { panic!("a TCP server") };
        let options =
            if tls { format!("?sslmode=verify-full&sslrootcert={}", self.authority.display()) } else { String::new() };
        format!("postgres://{account}@{host}:{port}/postgres{options}")
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
