//! A standby of a server, which receives in the mode that an entry names.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tithe_databases::postgres::Postgres;
use tithe_machine::{
    launch::{Address, Search},
    sandbox::ports::Port,
};
use tithe_plugin::{database::Database as _, setup::Setup};

use super::{Sandbox, attached, until};
use crate::how;

/// The standby; it ends when it is dropped.
pub struct Standby {
    process: Child,
    pub port: Port,
    _folder: tempfile::TempDir,
}

impl Standby {
    /// Copies the server of `sandbox`, which lets `tithe` replicate, and starts the copy. The copy connects with the
    /// `sslmode` of `mode`; if its primary is `lost`, it gets no answer.
    pub fn start(sandbox: &Sandbox, mode: &str, lost: bool) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("a standby: {error}");
        let programs = Postgres.find(&Search::default()).map_err(|missing| format!("{missing:?}"))?.programs;
        let port = Port::draw(Ipv4Addr::LOCALHOST.into()).map_err(|fault| fault.to_string())?;
        let folder = tempfile::tempdir().map_err(words)?;
        // As the server itself, which does not run as root.
        let owner = sandbox.server.folder.join("data").metadata().map_err(words)?;
        let command = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(programs.join(name));
            // Its home folder has no certificates of other users.
            command
                .args(arguments)
                .current_dir("/")
                .env("HOME", folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if rustix::process::geteuid().is_root() {
                command.uid(owner.uid()).gid(owner.gid());
            }
            command
        };
        chown(folder.path(), Some(owner.uid()), Some(owner.gid())).map_err(words)?;
        let data = folder.path().join("data").display().to_string();
        let authority = folder.path().join("authority.pem");
        fs::copy(&sandbox.setup.credentials.authority, &authority).map_err(words)?;
        chown(&authority, Some(owner.uid()), Some(owner.gid())).map_err(words)?;
        let from = primary(sandbox, mode, &authority)?;
        let mut copy = command("pg_basebackup", &["-D", &data, "-c", "fast", "-R", "-d", &from]);
        let copied = copy.stderr(Stdio::piped()).output().map_err(words)?;
        if !copied.status.success() {
            return Err(format!("pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr)));
        }
        if lost {
            let setting = format!("primary_conninfo = 'host=127.0.0.1 port=1 sslmode={mode}'\n");
            fs::write(folder.path().join("data/postgresql.auto.conf"), setting).map_err(words)?;
        }
        let process = command("postgres", &["-D", &data, "-p", &port.number().to_string()]).spawn().map_err(words)?;
        Ok(Self { process, port, _folder: folder })
    }

    /// Waits until it receives with `mode`, or, if its primary is `lost`, until it answers at all; asked at `url`.
    pub fn receive(sandbox: &Sandbox, mode: &str, lost: bool, url: &str) -> Result<(), String> {
        let receives = match lost {
            true => "SELECT 1".to_owned(),
            false => format!("SELECT count(*) FROM pg_stat_wal_receiver WHERE conninfo LIKE '%sslmode={mode} %'"),
        };
        until(&format!("the standby does not receive with sslmode={mode}"), || Self::asked(sandbox, url, &receives))
    }

    /// True if `statement` counts something; false while there is no answer.
    fn asked(sandbox: &Sandbox, url: &str, statement: &str) -> Result<bool, String> {
        let server = attached(sandbox, url);
        let Ok(mut session) = Postgres.sql().expect("SQL").connect(&server, &Setup::bare(), &how(true)) else {
            return Ok(false);
        };
        let rows = session.run(statement).map_err(|fault| format!("`{statement}`: {fault}"))?;
        Ok(rows.first().and_then(|row| row.first().cloned().flatten()).is_some_and(|count| count != "0"))
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        // An immediate shutdown: its shared memory is released, and its data are not needed.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// How the standby connects to the server of `sandbox`.
fn primary(sandbox: &Sandbox, mode: &str, authority: &Path) -> Result<String, String> {
    let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
    let (password, authority) = (sandbox.setup.credentials.password.expose_text(), authority.display());
    Ok(format!("host={host} port={port} user=tithe password={password} sslmode={mode} sslrootcert={authority}"))
}
