//! A pooler in front of a PostgreSQL of the test's own.

use std::{
    fs,
    net::TcpStream,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::Command,
};

use super::{
    process::Process,
    server::{Server, free_port},
    wait_until,
};

/// The account that owns nothing: pgbouncer refuses to run as root.
const NOBODY: u32 = 65_534;

/// A pgbouncer in front of a server, to which it connects without TLS; it ends when it is dropped.
pub struct Pooler {
    _process: Process,
    pub port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Starts one in this `mode`, which may be followed by further settings. It offers TLS to clients, with the
    /// server's certificate. `None`, with a notice, if pgbouncer is not installed.
    #[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
    pub fn start(server: &Server, mode: &str) -> Option<Self> {
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let Some(program) = programs.into_iter().find(|path| Path::new(path).exists()) else {
            assert!(std::env::var_os("CI").is_none(), "pgbouncer is not installed");
            eprintln!("SKIPPED: pgbouncer is not installed");
            return None;
        };
        let free = free_port();
        let port = free.number();
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("open to all");
        let is_root = rustix::process::geteuid().is_root();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("written");
            if is_root {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("given away");
            }
        };
        let credentials = server.credentials();
        write("cert", &fs::read(&credentials.server_certificate).expect("a certificate"));
        write("key", &fs::read(&credentials.server_key).expect("a key"));
        write("users", b"\"tithe\" \"\"\n\"careful\" \"\"\n");
        let (place, own) = (server.place(), folder.path().display());
        let (host, server_port) = place.split_once(':').expect("a port");
        let text = format!(
            "[databases]\npostgres = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {own}/users\n\
             client_tls_sslmode = allow\nclient_tls_cert_file = {own}/cert\nclient_tls_key_file = {own}/key\n\
             server_tls_sslmode = disable\npool_mode = {mode}\n"
        );
        write("pgbouncer.ini", text.as_bytes());
        let mut command = Command::new(program);
        command.arg(folder.path().join("pgbouncer.ini"));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let process = Process::unheard(&mut command);
        wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { _process: process, port, _folder: folder })
    }

    /// Its URL for an account of `server`, with TLS or without.
    pub fn url_of(&self, server: &Server, account: &str, tls: bool) -> String {
        server.url_of(account, tls).replace(&format!(":{}/", server.port()), &format!(":{}/", self.port))
    }
}
