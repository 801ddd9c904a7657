//! The only place that starts processes, and the folders that they write to.
//!
//! A [`Sandbox`] is one folder that Tithe made, with a lock that the kernel releases when Tithe ends, however it ends.
//! Its servers run under an unprivileged account, in a process group of their own (ctrl-C does not reach them), and die
//! with Tithe (parent-death signal), also on `kill -9`. The next run removes what a killed run left behind. It removes
//! nothing without a lock file of Tithe's.

pub mod account;
pub mod certificates;
pub mod coprocess;
pub mod copy;
pub mod fscrypt;
pub mod held;
pub mod journal;
pub mod mounts;
mod own_ipc;
pub mod paused;
pub mod ports;
pub mod process;
pub mod sidecar;
mod stalled;
pub mod tools;
pub mod volume_builder;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, TcpListener},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::OFlags;
use time::OffsetDateTime;

use self::{
    account::Account,
    certificates::{Certificates, Signer},
    held::{make_locked, remove, remove_abandoned},
    ports::Port,
};
use crate::{
    cgroup::{Group, GroupLimits},
    credentials::{Credentials, ServerIdentity},
    fault::Fault,
    launch::{Command, Content, Launch, Place, Step},
};

/// The program that makes keys in a form that other programs can read.
pub const OPENSSL: &str = "openssl";

/// Prefix of the names of sandboxes.
pub const SANDBOX_PREFIX: &str = "tithe-sandbox-";

/// Messages about processes and objects that could be neither ended nor undone, or were ended early.
static LEFT_BEHIND: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a message for callers of [`left_behind`]: a clean-up or a watch has no caller that could get an error.
pub fn leave_behind(words: String) {
    LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner).push(words);
}

/// Messages since the last call about what is left behind, or ended before its time.
pub fn left_behind() -> Vec<String> {
    std::mem::take(&mut LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A folder for the servers of one run, removed when dropped.
pub struct Sandbox {
    folder: PathBuf,
    account: Option<Account>,
    _lock: File,
    /// The address that its servers listen on.
    listen: IpAddr,
    servers: u32,
    /// The authority of its servers' certificates, once made.
    signer: Mutex<Option<Signer>>,
    /// The latest port of the server in each folder.
    ports: Mutex<BTreeMap<PathBuf, Port>>,
    /// Control groups of servers with limits, by the servers' folders.
    groups: BTreeMap<PathBuf, Group>,
}

impl Sandbox {
    /// Makes a sandbox below `preferred`, or in `/var/tmp` if the servers' account cannot reach `preferred`.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn new(preferred: &Path) -> Result<Self, Fault> {
        let account = Account::unprivileged()?;
        let parent = reachable(preferred, account.as_ref());
        remove_abandoned(&parent);
        let (folder, lock) = make_locked(&parent)?;
        // The servers' account must be able to enter; others cannot list it.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711))
            .map_err(|error| Fault::machine("sandbox", error))?;
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let ports = Mutex::default();
        Ok(Self {
            folder,
            account,
            _lock: lock,
            listen,
            servers: 0,
            signer: Mutex::default(),
            ports,
            groups: BTreeMap::new(),
        })
    }

    /// The folder in which [`Sandbox::new`] makes a sandbox.
    ///
    /// # Errors
    /// When the servers' account is not known.
    pub fn parent_of(preferred: &Path) -> Result<PathBuf, Fault> {
        Ok(reachable(preferred, Account::unprivileged()?.as_ref()))
    }

    /// The sandbox with servers that listen on `address` in place of 127.0.0.1.
    #[must_use]
    pub fn listening_on(mut self, address: IpAddr) -> Self {
        self.listen = address;
        self
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Fresh certificates, password and key, owned by the servers' account.
    ///
    /// # Errors
    /// When they cannot be made or written.
    pub fn credentials(&self) -> Result<Credentials, Fault> {
        let folder = self.folder.join("credentials");
        let made = Certificates::make(self.listen, OffsetDateTime::now_utc())?;
        let credentials = made.write(&folder)?;
        *self.signer.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.into_signer());
        self.give(&folder)?;
        for file in fs::read_dir(&folder).map_err(|error| Fault::machine(folder.display(), error))?.flatten() {
            self.give(&file.path())?;
        }
        Ok(credentials)
    }

    /// A fresh folder and port for one server called `name`.
    ///
    /// # Errors
    /// When the folder cannot be made or no port is free.
    pub fn place(&mut self, name: &str) -> Result<Place, Fault> {
        self.servers += 1;
        let folder = self.folder.join(format!("{:02}-{name}", self.servers));
        self.make_folder(&folder)?;
        self.place_again(folder)
    }

    /// The same `folder` for a server that is restarted, with another free port. The previous port is released.
    ///
    /// # Errors
    /// When no port is free.
    pub fn place_again(&self, folder: PathBuf) -> Result<Place, Fault> {
        let port = Port::draw(self.listen)?;
        let place = Place { folder: folder.clone(), listen: self.listen, port: port.number() };
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(folder, port);
        Ok(place)
    }

    /// Does all steps before the server's start.
    ///
    /// # Errors
    /// The first step that failed, with its own words.
    pub fn prepare(&self, launch: &Launch) -> Result<(), Fault> {
        launch.steps.iter().try_for_each(|step| self.take(step))
    }

    /// Like [`Sandbox::prepare`] for a copied data folder: it already contains the created data and the lines appended
    /// to it.
    ///
    /// # Errors
    /// The first step that failed.
    pub fn prepare_on_copy(&self, launch: &Launch) -> Result<(), Fault> {
        let needed = |step: &&Step| match step {
            Step::Write { .. } | Step::Copy { .. } | Step::Link { .. } | Step::Identity { .. } | Step::Run(_) => true,
            Step::Folder(path) => !path.exists(),
            Step::Append { .. } | Step::MakeData(_) => false,
        };
        launch.steps.iter().filter(needed).try_for_each(|step| self.take(step))
    }

    /// Like [`Sandbox::prepare_on_copy`] for a server that was started here before: results of commands are still
    /// there, and files are written again.
    ///
    /// # Errors
    /// The first step that failed.
    pub fn prepare_again(&self, launch: &Launch) -> Result<(), Fault> {
        for step in &launch.steps {
            match step {
                Step::Write { path, .. } => {
                    // The file may be read-only even for its owner.
                    remove_file(path)?;
                    self.take(step)?;
                }
                Step::Folder(path) | Step::Link { path, .. } | Step::Copy { path, .. }
                    if path.symlink_metadata().is_err() =>
                {
                    self.take(step)?;
                }
                Step::Folder(_)
                | Step::Link { .. }
                | Step::Copy { .. }
                | Step::Append { .. }
                | Step::Identity { .. }
                | Step::Run(_)
                | Step::MakeData(_) => {}
            }
        }
        Ok(())
    }

    fn take(&self, step: &Step) -> Result<(), Fault> {
        match step {
            Step::Folder(path) => self.make_folder(path),
            Step::Link { path, to } => std::os::unix::fs::symlink(to, path)
                .map_err(|error| Fault::machine(format!("cannot create {}", path.display()), error)),
            Step::Write { path, content, mode } => {
                let bytes = match content {
                    Content::Text(text) => text.as_bytes(),
                    Content::Secret(secret) => secret.expose(),
                };
                self.write(path, bytes, *mode)
            }
            Step::Copy { path, from } => {
                let bytes = fs::read(from).map_err(|error| Fault::machine(from.display(), error))?;
                self.write(path, &bytes, 0o500)
            }
            Step::Append { path, content } => self.append(path, content),
            Step::Identity { identity, certificate, key } => self.certify(*identity, certificate, key),
            Step::Run(command) | Step::MakeData(command) => process::run(command, self.account.as_ref(), &self.folder),
        }
    }

    /// Makes `key` and its certificates by the run's authority, unless they already exist for another server.
    fn certify(&self, identity: ServerIdentity, certificate: &Path, key: &Path) -> Result<(), Fault> {
        // Locked until the files are complete: arms start concurrently.
        let signer = self.signer.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(signer), false) = (signer.as_ref(), certificate.exists()) else { return Ok(()) };
        let openssl = |arguments: &[&str]| {
            let program = tools::tool(OPENSSL).ok_or_else(|| Fault::Machine(format!("{OPENSSL} is not installed")))?;
            let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let command = Command { program, arguments, ..Command::default() };
            process::output(&command, self.account.as_ref(), &self.folder)
        };
        let made = signer.identity(identity.chain, || certificates::key(identity.key, openssl))?;
        self.write(key, made.key.expose(), 0o600)?;
        self.write(certificate, made.certificate.as_bytes(), 0o644)
    }

    /// A message if the memory of a server was too little; `None` if it was enough for all.
    pub fn short_of_memory(&self) -> Option<String> {
        self.groups.values().find_map(Group::short_of_memory)
    }

    /// Starts the server of `launch` with its output in `log`; `None` for an embedded database.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&self, launch: &Launch, log: &Path) -> Result<Option<process::Running>, Fault> {
        let Some(command) = &launch.server else { return Ok(None) };
        // A restarted server appends to its log.
        if !log.exists() {
            self.write(log, b"", 0o600)?;
        }
        let group = log.parent().and_then(|folder| self.groups.get(folder));
        process::start(command, self.account.as_ref(), group, log, launch.stop_signal).map(Some)
    }

    /// Applies `limits` to every server that is started in `folder` from now on, and to the running process `helper`.
    /// Returns a description of the limits.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn confine(&mut self, folder: &Path, limits: GroupLimits, helper: Option<i32>) -> Result<String, Fault> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let group = Group::make(&format!("{}.{}", name(&self.folder), name(folder)), limits)?;
        helper.map_or(Ok(()), |process| group.add(process))?;
        let words = group.in_words();
        self.groups.insert(folder.to_owned(), group);
        Ok(words)
    }

    /// Gives `path` to the servers' account.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn give(&self, path: &Path) -> Result<(), Fault> {
        match &self.account {
            Some(account) => account.own(path),
            None => Ok(()),
        }
    }

    fn make_folder(&self, path: &Path) -> Result<(), Fault> {
        make_folder(path, self.account.as_ref())
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Fault> {
        write(path, bytes, mode, self.account.as_ref())
    }

    fn append(&self, path: &Path, content: &str) -> Result<(), Fault> {
        use std::io::Write;
        let failed = |error| Fault::machine(format!("cannot append to {}", path.display()), error);
        let mut file = fs::OpenOptions::new().append(true).open(path).map_err(failed)?;
        file.write_all(content.as_bytes()).map_err(failed)
    }
}

/// `preferred`, or `/var/tmp` if `account` cannot reach it.
fn reachable(preferred: &Path, account: Option<&Account>) -> PathBuf {
    let preferred = preferred.canonicalize().unwrap_or_else(|_| preferred.to_owned());
    let is_reached = account.is_none_or(|account| account.can_reach(&preferred));
    if is_reached { preferred } else { PathBuf::from("/var/tmp") }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // If something cannot be removed now, the next run removes it: the lock is then free.
        remove(&self.folder);
    }
}

/// Makes a folder that only `account` can read, if there is one.
///
/// # Errors
/// When it exists, or cannot be made.
pub fn make_folder(path: &Path, account: Option<&Account>) -> Result<(), Fault> {
    fs::create_dir(path).map_err(|error| Fault::machine(format!("cannot create {}", path.display()), error))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(|error| Fault::machine(path.display(), error))?;
    account.map_or(Ok(()), |account| account.own(path))
}

/// Writes a file owned by `account`, if there is one.
///
/// # Errors
/// When it is a link, or cannot be written.
pub fn write(path: &Path, bytes: &[u8], mode: u32, account: Option<&Account>) -> Result<(), Fault> {
    use std::io::Write;
    let failed = |error| Fault::machine(format!("cannot write {}", path.display()), error);
    // Created with its final permissions: a secret is never readable by others, not even briefly. A link is not
    // followed: the folder may belong to the servers' account.
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
    account.map_or(Ok(()), |account| account.own(path))
}

/// Gives the file or folder `path` and everything in it to `account`, if there is one, and denies access to all others.
///
/// # Errors
/// The first file whose owner or mode cannot be changed.
pub fn give(path: &Path, account: Option<&Account>) -> Result<(), Fault> {
    let failed = |error| Fault::machine(path.display(), error);
    let seen = path.symlink_metadata().map_err(failed)?;
    if seen.is_symlink() {
        return account.map_or(Ok(()), |account| account.own(path));
    }
    let is_folder = seen.is_dir();
    if is_folder {
        for entry in fs::read_dir(path).map_err(failed)? {
            give(&entry.map_err(failed)?.path(), account)?;
        }
    }
    let mode = if is_folder { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
    account.map_or(Ok(()), |account| account.own(path))
}

/// Removes the file `path`, if it exists.
fn remove_file(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Fault::machine(path.display(), error)),
        _ => Ok(()),
    }
}

/// True for a path with the name of a sandbox's folder.
pub fn is_sandbox(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(SANDBOX_PREFIX))
}

/// True if `address` belongs to this machine, so that a server can listen on it.
pub fn is_own(address: IpAddr) -> bool {
    TcpListener::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_servers_of_a_sandbox_are_given_one_port() {
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        // Enough draws that some port would be drawn twice.
        let places: Vec<Place> = (0..500).map(|_| sandbox.place("one").expect("a place")).collect();
        let ports: BTreeSet<u16> = places.iter().map(|place| place.port).collect();
        assert_eq!(ports.len(), places.len());
        let again = sandbox.place_again(places[0].folder.clone()).expect("a place");
        assert!(!ports.contains(&again.port), "neither another server's port nor the one before");
    }

    #[test]
    fn a_sandbox_is_where_the_servers_account_reaches_it() {
        let closed = tempfile::tempdir().expect("a folder");
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).expect("closed");
        let own = closed.path().canonicalize().expect("a path");
        let has_account = Account::unprivileged().expect("known").is_some();
        let expected = if has_account { PathBuf::from("/var/tmp") } else { own };
        assert_eq!(Sandbox::parent_of(closed.path()), Ok(expected.clone()));
        let sandbox = Sandbox::new(closed.path()).expect("a sandbox");
        assert_eq!(sandbox.folder().parent(), Some(expected.as_path()));
    }

    #[test]
    fn a_sandbox_runs_its_steps_and_vanishes() {
        let parent = std::env::temp_dir();
        let mut sandbox = Sandbox::new(&parent).expect("a sandbox");
        let place = sandbox.place("one").expect("a place");
        let path = place.folder.join("greeting");
        let launch = Launch {
            steps: vec![
                Step::Write { path: path.clone(), content: Content::Text("hello".into()), mode: 0o600 },
                Step::Append { path: path.clone(), content: " there".into() },
                Step::Link { path: place.folder.join("link"), to: path.clone() },
                Step::Run(Command {
                    program: "cp".into(),
                    arguments: vec![place.folder.join("link").display().to_string(), format!("{}2", path.display())],
                    ..Command::default()
                }),
            ],
            ..Launch::default()
        };
        sandbox.prepare(&launch).expect("all steps run");
        assert_eq!(fs::read_to_string(place.folder.join("greeting2")).expect("the copy"), "hello there");
        let folder = sandbox.folder().to_owned();
        drop(sandbox);
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_prepared_on_a_copy_and_again_makes_no_data() {
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let place = sandbox.place("one").expect("a place");
        let at = |name: &str| place.folder.join(name);
        let touch = |name: &str| Command {
            program: "touch".into(),
            arguments: vec![at(name).display().to_string()],
            ..Command::default()
        };
        let write = |text: &str| Step::Write { path: at("set-up"), content: Content::Text(text.into()), mode: 0o400 };
        let launch = |text: &str| Launch {
            steps: vec![
                Step::Folder(at("logs")),
                Step::Link { path: at("link"), to: at("set-up") },
                Step::MakeData(touch("data")),
                Step::Append { path: at("data"), content: "more".into() },
                Step::Run(touch("key")),
                write(text),
            ],
            ..Launch::default()
        };
        let there = || ["logs", "link", "data", "key"].map(|name| at(name).symlink_metadata().is_ok());
        sandbox.prepare_on_copy(&launch("one")).expect("prepared");
        assert_eq!(there(), [true, true, false, true]);
        fs::remove_file(at("key")).expect("removed");
        fs::remove_dir(at("logs")).expect("removed");
        sandbox.prepare_again(&launch("two")).expect("prepared");
        assert_eq!(there(), [true, true, false, false], "no command runs again");
        assert_eq!(fs::read_to_string(at("link")).expect("the file"), "two");
        let again = sandbox.place_again(place.folder.clone()).expect("a place");
        assert_eq!(again.folder, place.folder);
    }

    #[test]
    fn a_failing_step_tells_what_the_program_said() {
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let place = sandbox.place("one").expect("a place");
        let command = Command {
            program: "ls".into(),
            arguments: vec![place.folder.join("nothing").display().to_string()],
            ..Command::default()
        };
        let fault =
            sandbox.prepare(&Launch { steps: vec![Step::Run(command)], ..Launch::default() }).expect_err("ls fails");
        assert!(fault.to_string().contains("No such file"), "{fault}");
    }
}
