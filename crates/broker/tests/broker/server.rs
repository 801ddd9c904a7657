//! A NATS server for one test.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use tithe_broker::AccessFiles;
use tithe_machine::{
    credentials::Credentials,
    sandbox::{certificates, ports::Port},
};

use crate::eventually;

/// A running server with certificates, in a temporary folder; stopped when dropped.
pub struct Server {
    pub folder: TempDir,
    pub credentials: Credentials,
    port: Port,
    program: PathBuf,
    process: Option<Child>,
}

/// The installed `nats-server`. Without it the test prints that and is skipped; if `CI` is set, it fails.
fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/bin".into()]);
    let found = folders.map(|folder: PathBuf| folder.join("nats-server")).find(|program| program.exists());
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "nats-server is missing");
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("SKIPPED: nats-server is missing; tools/install-test-needs");
        }
    }
    found
}

impl Server {
    /// Starts one with `configuration`, in which CERTIFICATE, KEY, AUTHORITY and FOLDER are replaced by its own; `None`
    /// if NATS is not installed.
    pub fn start(configuration: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = certificates::prepare(&folder.path().join("certificates"), Ipv4Addr::LOCALHOST.into())
            .expect("certificates");
        let port = Port::draw(Ipv4Addr::LOCALHOST.into()).expect("a port");
        let shown = |path: &Path| path.display().to_string();
        let configuration = configuration
            .replace("CERTIFICATE", &shown(&credentials.server_certificate))
            .replace("KEY", &shown(&credentials.server_key))
            .replace("AUTHORITY", &shown(&credentials.authority))
            .replace("FOLDER", &shown(folder.path()));
        let listen = format!("listen: \"127.0.0.1:{}\"\n", port.number());
        fs::write(folder.path().join("nats.conf"), listen + &configuration).expect("a configuration");
        let mut server = Self { folder, credentials, port, program, process: None };
        server.run();
        Some(server)
    }

    /// Starts it, and waits until it listens.
    pub fn run(&mut self) {
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let process = Command::new(&self.program)
            .arg("-c")
            .arg(self.folder.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nats-server starts");
        self.process = Some(process);
        let address = ("127.0.0.1", self.port.number());
        eventually("that it listens", || {
            let ended = self.process.as_mut().and_then(|process| process.try_wait().ok().flatten());
            assert!(ended.is_none(), "nats-server ended: {}", self.log());
            TcpStream::connect(address).is_ok()
        });
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is there");
            process.wait().expect("it ends");
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process.as_ref().map(Child::id).expect("it runs")
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its address under the name `host`.
    pub fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}", self.port())
    }

    /// Its address with TLS.
    pub fn tls(&self) -> String {
        self.url("tls", "localhost")
    }

    /// Files of an account that trusts its authority and has no credentials.
    pub fn trusting(&self) -> AccessFiles {
        AccessFiles { authority: Some(self.credentials.authority.clone()), ..AccessFiles::default() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
