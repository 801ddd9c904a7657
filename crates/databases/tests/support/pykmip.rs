//! A key server of PyKMIP's for tests, and its keys.

use std::{
    fs,
    io::Read,
    net::Ipv4Addr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tithe_machine::{
    credentials::Credentials,
    sandbox::{certificates, ports::Port},
};

/// A key server of PyKMIP with its certificates, in a temporary folder; stopped when dropped.
pub struct TestServer {
    pub folder: tempfile::TempDir,
    process: Child,
    pub credentials: Credentials,
    pub address: String,
    _port: Port,
}

/// PyKMIP as `tools/install-test-needs` installs it.
fn python() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-needs/pykmip/bin/python");
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "PyKMIP is missing");
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    {
        eprintln!("SKIPPED: PyKMIP is missing; tools/install-test-needs");
    }
    None
}

impl TestServer {
    /// Starts one; `None` if PyKMIP is not installed.
    pub fn start() -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let credentials =
            certificates::prepare(&folder.path().join("certificates"), Ipv4Addr::LOCALHOST.into()).unwrap();
        let port = Port::draw(Ipv4Addr::LOCALHOST.into()).unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(path("policy")).unwrap();
        let configuration = format!(
            "[server]\nhostname=127.0.0.1\nport={}\ncertificate_path={}\nkey_path={}\nca_path={}\n\
             auth_suite=TLS1.2\ntls_cipher_suites=ECDHE-ECDSA-AES256-GCM-SHA384\nenable_tls_client_auth=True\n\
             policy_path={}\ndatabase_path={}\nlogging_level=INFO\n",
            port.number(),
            credentials.server_certificate.display(),
            credentials.server_key.display(),
            credentials.authority.display(),
            path("policy"),
            path("kmip.db"),
        );
        fs::write(path("server.conf"), configuration).unwrap();
        let process = Command::new(python.with_file_name("pykmip-server"))
            .args(["-f", &path("server.conf"), "-l", &path("log")])
            // It starts a helper process, which is stopped with it, and which leaves a folder for temporary files.
            .process_group(0)
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("errors")).unwrap())
            .spawn()
            .unwrap();
        let address = format!("127.0.0.1:{}", port.number());
        let mut server = Self { folder, process, credentials, address, _port: port };
        server.wait();
        Some(server)
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        while std::net::TcpStream::connect(&self.address).is_err() {
            if self.process.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(120) {
                let mut errors = String::new();
                fs::File::open(self.folder.path().join("errors")).unwrap().read_to_string(&mut errors).unwrap();
                panic!("PyKMIP does not start: {errors}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes an active key of `bits` with PyKMIP's own client; returns its identifier.
    pub fn make_key(&self, bits: u32) -> String {
        let (host, port) = self.address.rsplit_once(':').unwrap();
        let program = format!(
            "from kmip.pie.client import ProxyKmipClient\nfrom kmip import enums\n\
             c = ProxyKmipClient(hostname='{host}', port={port}, cert='{}', key='{}', ca='{}', \
             config='none', config_file='/dev/null', ssl_version='PROTOCOL_TLSv1_2')\n\
             c.open(); u = c.create(enums.CryptographicAlgorithm.AES, {bits}); c.activate(u); c.close(); print(u)",
            self.credentials.client_certificate.display(),
            self.credentials.client_key.display(),
            self.credentials.authority.display(),
        );
        let output = Command::new(python().unwrap()).args(["-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // The group is the server's own, and exists until its leader is waited for.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}
