//! The folders and files of a program that works on one server, and how it runs there.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use tithe_machine::{
    clock::CpuTimes,
    fault::Fault,
    launch::{Command, Content, Missing, Server},
    sandbox::{account::Account, copy, give, make_folder, process, write},
};
use tithe_model::catalogue::WireProtocol;

use crate::{
    data,
    database::{Connect, Database},
    program::{Job, Program, ProgramContext, ProgramReport},
    restore::{PLACE, Restore},
    setup::{Reach, Setup},
    workload::Workload,
};

/// How much longer than requested a slice may take, with starting, connecting and printing.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit of loading.
const LOADING: Duration = Duration::from_secs(24 * 3600);

/// The program's output of all slices, for the run folder.
const LOG: &str = "program.log";

/// The output of the current slice.
const PRINTED: &str = "printed";

/// One program on one server.
pub struct Workspace {
    executable: PathBuf,
    protocol: WireProtocol,
    reach: Reach,
    folder: PathBuf,
    data: PathBuf,
    account: Option<Account>,
}

/// One slice that ran to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The program's report.
    pub reported: ProgramReport,
    /// Its processor time, from the kernel.
    pub cpu_times: CpuTimes,
}

impl Workspace {
    /// Makes folders called `name` for `program` on `server`: one next to the run's certificates, so that files of the
    /// program are not on the measured volume, and one next to the server's data, for a program that needs it.
    ///
    /// # Errors
    /// A missing program; folders or files that cannot be made.
    pub fn new(
        program: &dyn Program,
        database: &dyn Database,
        server: &Server,
        setup: &Setup,
        name: &str,
    ) -> Result<Self, Fault> {
        let workspace = Self::of(program.find(), database, server, setup, name)?;
        workspace.write(program.files(&workspace.at())?)?;
        Ok(workspace)
    }

    /// The same for a program that restores the user's own data. The data are copied next to it, where the servers'
    /// account can read them.
    ///
    /// # Errors
    /// As [`Workspace::new`]; data that cannot be copied.
    pub fn for_restore(
        restore: &dyn Restore,
        database: &dyn Database,
        server: &Server,
        setup: &Setup,
    ) -> Result<Self, Fault> {
        let protocol = protocol_of(database)?;
        let workspace = Self::of(restore.find(protocol), database, server, setup, "restore")?;
        let (from, place) = (restore.path(), workspace.folder.join(PLACE));
        let failed = |error| Fault::machine(from.display(), error);
        copy::tree(from, &place).map_err(failed)?;
        give(&place, workspace.account.as_ref())?;
        workspace.write(restore.files(&workspace.at())?)?;
        Ok(workspace)
    }

    fn of(
        found: Result<PathBuf, Missing>,
        database: &dyn Database,
        server: &Server,
        setup: &Setup,
        name: &str,
    ) -> Result<Self, Fault> {
        let executable = found.map_err(|missing| Fault::Machine(format!("{} is gone", missing.what)))?;
        let arm = server.folder.file_name().unwrap_or_default().to_string_lossy();
        let protocol = protocol_of(database)?;
        let reach = database.reach(server, setup)?;
        let workspace = Self {
            executable,
            protocol,
            reach,
            folder: setup.credentials.authority.with_file_name(format!("{name}-{arm}")),
            data: server.folder.join(name),
            account: Account::unprivileged()?,
        };
        for folder in [&workspace.folder, &workspace.data] {
            make_folder(folder, workspace.account.as_ref())?;
        }
        Ok(workspace)
    }

    fn write(&self, files: Vec<(String, Content)>) -> Result<(), Fault> {
        for (name, content) in files {
            let bytes = match &content {
                Content::Text(text) => text.as_bytes(),
                Content::Secret(secret) => secret.expose(),
            };
            write(&self.folder.join(name), bytes, 0o600, self.account.as_ref())?;
        }
        Ok(())
    }

    /// The file with all output of the program.
    pub fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Removes its folders.
    pub fn clear(&self) {
        for folder in [&self.folder, &self.data] {
            // The sandbox removes the rest.
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// Removes its copy of the user's own data, which may be large.
    pub fn clear_data(&self) {
        let place = self.folder.join(PLACE);
        // The sandbox removes the rest.
        let _ = if place.is_dir() { fs::remove_dir_all(&place) } else { fs::remove_file(&place) };
    }

    /// Makes the program load its data. Returns early, as if it were done, if `cancelled`.
    ///
    /// # Errors
    /// The server's refusal; a program that fails, with its last words.
    pub fn prepare(
        &self,
        program: &dyn Program,
        database: &dyn Database,
        server: &Server,
        setup: &Setup,
        workload: &dyn Workload,
        cancelled: &AtomicBool,
    ) -> Result<(), Fault> {
        let statements = program.statements(&self.at());
        if !statements.is_empty() {
            let how = Connect::blocking(workload.table());
            let mut session = data::connect(database, server, setup, &how, workload)?;
            statements.iter().try_for_each(|statement| session.connection().run_statement(statement))?;
        }
        for command in program.prepare(&self.at()) {
            if self.carry_out(&command, LOADING, cancelled)?.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Restores the user's own data. Returns early, as if it were done, if `cancelled`.
    ///
    /// # Errors
    /// A program that fails, with its last words.
    pub fn restore(&self, restore: &dyn Restore, cancelled: &AtomicBool) -> Result<(), Fault> {
        for command in restore.commands(&self.at()) {
            if self.carry_out(&command, LOADING, cancelled)?.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Runs one slice; `None` if `cancelled` ended it.
    ///
    /// # Errors
    /// A program that fails, with its last words; output that cannot be read.
    pub fn run(&self, program: &dyn Program, job: &Job, cancelled: &AtomicBool) -> Result<Option<Slice>, Fault> {
        let command = program.run(&self.at(), job);
        let timeout = Duration::from_secs(job.seconds) + TIMEOUT;
        let Some((printed, cpu_times)) = self.carry_out(&command, timeout, cancelled)? else { return Ok(None) };
        Ok(Some(Slice { reported: program.read(&self.at(), job, &printed)?, cpu_times }))
    }

    fn at(&self) -> ProgramContext<'_> {
        ProgramContext {
            executable: &self.executable,
            protocol: self.protocol,
            reach: &self.reach,
            folder: &self.folder,
            data: &self.data,
        }
    }

    /// Runs `command` to its end; returns its output and processor time.
    fn carry_out(
        &self,
        command: &Command,
        timeout: Duration,
        cancelled: &AtomicBool,
    ) -> Result<Option<(String, CpuTimes)>, Fault> {
        let output = self.folder.join(PRINTED);
        let ended = process::run_counted(command, self.account.as_ref(), &self.folder, &output, timeout, cancelled)?;
        let printed = fs::read(&output).map_err(|error| Fault::machine(output.display(), error))?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        self.keep(&command.program, &printed)?;
        let Some(ended) = ended else { return Ok(None) };
        if ended.status.success() {
            return Ok(Some((printed, ended.cpu_times)));
        }
        let name = command.program.display();
        Err(Fault::Machine(format!("{name} failed ({}): {}", ended.status, process::tail(&printed))))
    }

    fn keep(&self, program: &Path, printed: &str) -> Result<(), Fault> {
        let failed = |error| Fault::machine(self.log().display(), error);
        let mut log = fs::File::options().append(true).create(true).open(self.log()).map_err(failed)?;
        writeln!(log, "== {}\n{printed}", program.display()).map_err(failed)
    }
}

/// The protocol of `database`'s servers.
fn protocol_of(database: &dyn Database) -> Result<WireProtocol, Fault> {
    let unknown = || Fault::Refused(format!("no other program speaks the protocol of {}", database.title()));
    database.entry().wire_protocol.ok_or_else(unknown)
}

#[cfg(test)]
mod tests;
