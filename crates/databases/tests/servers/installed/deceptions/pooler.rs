//! A PgBouncer in session mode in front of a server, with TLS on one side only.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use tithe_machine::{launch::Address, sandbox::ports::Port};

use super::{Sandbox, until};

/// The account that nothing belongs to: PgBouncer refuses to run as root.
const NOBODY: u32 = 65_534;

/// The pooler; it ends when it is dropped.
pub struct Pooler {
    process: Child,
    pub port: Port,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Starts one in front of the server of `sandbox`; `tls`: clients use TLS with it, otherwise it uses TLS with the
    /// server.
    pub fn start(sandbox: &Sandbox, tls: bool) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("pgbouncer: {error}");
        let programs = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let program = programs.into_iter().find(|path| Path::new(path).exists()).ok_or("pgbouncer is not installed")?;
        let Address::Tcp { host, port: server } = &sandbox.server.address else {
            return Err("no TCP server".to_owned());
        };
        let drawn = Port::draw(Ipv4Addr::LOCALHOST.into()).map_err(|fault| fault.to_string())?;
        let port = drawn.number();
        let folder = tempfile::tempdir().map_err(words)?;
        let credentials = &sandbox.setup.credentials;
        let place = folder.path().display();
        let side = match tls {
            true => format!(
                "client_tls_sslmode = require\nclient_tls_cert_file = {place}/cert\nclient_tls_key_file = {place}/key\n"
            ),
            false => "client_tls_sslmode = disable\nserver_tls_sslmode = require\n".to_owned(),
        };
        let settings = format!(
            "[databases]\npostgres = host={host} port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {place}/users\npool_mode = session\n\
             ignore_startup_parameters = extra_float_digits\n{side}"
        );
        let users = format!("\"tithe\" \"{}\"\n", credentials.password.expose_text());
        let write = |name: &str, bytes: Vec<u8>| {
            let path = folder.path().join(name);
            fs::write(&path, bytes)?;
            if is_root() { chown(&path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
        };
        write("pgbouncer.ini", settings.into_bytes()).map_err(words)?;
        write("users", users.into_bytes()).map_err(words)?;
        write("cert", fs::read(&credentials.server_certificate).map_err(words)?).map_err(words)?;
        write("key", fs::read(&credentials.server_key).map_err(words)?).map_err(words)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(words)?;
        let mut command = Command::new(program);
        command
            .arg(folder.path().join("pgbouncer.ini"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let pooler = Self { process: command.spawn().map_err(words)?, port: drawn, _folder: folder };
        until("pgbouncer does not answer", || Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
        Ok(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // If it cannot be killed, it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
