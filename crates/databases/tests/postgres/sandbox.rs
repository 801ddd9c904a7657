//! Just enough of a sandbox to test against real servers: a folder, an unprivileged account, and the promise that
//! nothing outlives the test.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpListener,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command as Process},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use tithe_databases::postgres::Postgres;
use tithe_harness::{
    database::{Command, Content, Database, Install, Launch, Place, Search, Server, Step},
    protection::{Materials, Setup},
    sandbox::certificates,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen};

/// A running server, its set-up and its folder. All of it goes when this is dropped.
pub struct Sandbox {
    pub setup: Setup,
    pub server: Server,
    folder: PathBuf,
    process: Option<Child>,
}

/// The installation to test with; `None`, said loudly, when there is none.
pub fn installation() -> Option<Install> {
    match Postgres.find(&Search::default()) {
        Ok(install) => Some(install),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{} is missing: {:?}", missing.what, missing.looked_in),
        Err(missing) => {
            eprintln!("SKIPPED: {} is missing; looked in {:?}", missing.what, missing.looked_in);
            None
        }
    }
}

/// A protection with its defaults, but for `options`.
pub fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    let protection = Postgres.protections().iter().find(|protection| protection.id() == id).expect("a protection");
    let mut all: BTreeMap<String, OptionValue> = protection
        .options()
        .iter()
        .filter_map(|option| Some((option.name.to_owned(), option.default?.value())))
        .collect();
    all.extend(options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Chosen { id: id.to_owned(), options: all }
}

impl Sandbox {
    /// Starts a server with `protections`; `None`, said loudly, without PostgreSQL.
    pub fn start(protections: &[Chosen]) -> Option<Self> {
        let install = installation()?;
        let folder = folder();
        let mut setup = Setup::plain(BTreeMap::new(), materials(&folder));
        for chosen in protections {
            let all = Postgres.protections();
            let protection = all.iter().find(|protection| protection.id() == chosen.id).expect("a protection");
            if let Err(missing) = protection.needs(&install, chosen) {
                assert!(std::env::var_os("CI").is_none(), "{} is missing", missing.what);
                eprintln!("SKIPPED: {} is missing; looked in {:?}", missing.what, missing.looked_in);
                let _ = fs::remove_dir_all(&folder);
                return None;
            }
            protection.apply(chosen, &mut setup);
        }
        Some(Self::launch(&install, setup, folder))
    }

    fn launch(install: &Install, setup: Setup, folder: PathBuf) -> Self {
        let place = Place { folder: folder.join("server"), port: free_port() };
        fs::create_dir(&place.folder).expect("a folder");
        give(&place.folder, 0o700);
        let Launch { steps, server, address, paths, .. } = Postgres.launch(install, &setup, &place);
        for step in steps {
            act(step);
        }
        let log = File::options().create(true).append(true).open(place.folder.join("server.log")).expect("a log");
        give(&place.folder.join("server.log"), 0o600);
        let mut process = process(&server.expect("a server"));
        process.stdout(log.try_clone().expect("a log")).stderr(log);
        let process = process.spawn().expect("the server starts");
        let server = Server { address, process: Some(process.id() as i32), paths, folder: place.folder };
        // From here on, a failing test stops the server.
        let sandbox = Self { setup, server, folder, process: Some(process) };
        sandbox.await_answer();
        sandbox
    }

    fn await_answer(&self) {
        let begun = Instant::now();
        while let Err(fault) = Postgres.facts(&self.server, &self.setup) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{fault}: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.server.folder.join("server.log")).unwrap_or_default()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // SAFETY: a signal to a child that was not waited for, so that its number is still its own.
            unsafe { libc::kill(process.id() as i32, libc::SIGQUIT) };
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// A fresh folder that other accounts can pass through.
fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tithe-postgres-test-{}-{count}", std::process::id()));
    fs::create_dir(&folder).expect("a fresh folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("permissions");
    folder
}

fn is_root() -> bool {
    // SAFETY: reads a number and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// User and group of the account that servers run as where the tests run as root, which PostgreSQL refuses.
fn account() -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").expect("accounts");
    let find = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2);
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody")).expect("an unprivileged account")
}

/// Gives `path` to the server's account.
fn give(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    if is_root() {
        let (user, group) = account();
        chown(path, Some(user), Some(group)).expect("an owner");
    }
}

fn act(step: Step) {
    match step {
        Step::Write { path, content, mode } => {
            match content {
                Content::Text(text) => fs::write(&path, text),
                Content::Secret(secret) => fs::write(&path, secret.expose()),
            }
            .expect("written");
            give(&path, mode);
        }
        Step::Append { path, content } => {
            let text = fs::read_to_string(&path).expect("a file");
            fs::write(&path, text + &content).expect("written");
        }
        Step::Folder(path) => {
            fs::create_dir(&path).expect("a folder");
            give(&path, 0o700);
        }
        Step::Run(command) => {
            let output = process(&command).output().expect("a program");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// `command` as the server's account, to die with the test.
fn process(command: &Command) -> Process {
    let mut process = Process::new(&command.program);
    process.args(&command.arguments).env_clear().env("PATH", "/usr/bin:/bin").envs(&command.environment);
    process.current_dir("/").process_group(0);
    if is_root() {
        let (user, group) = account();
        process.gid(group).uid(user);
    }
    // SAFETY: between fork and exec, prctl alone is called, which is async-signal-safe. It comes after the change of
    // the account, which would reset it.
    unsafe {
        process.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    process
}

/// Certificates, keys and passwords of one test; the server's account can read its own.
fn materials(folder: &Path) -> Materials {
    let folder = folder.join("materials");
    let materials = certificates::prepare(&folder).expect("materials");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("permissions");
    give(&materials.server_key, 0o600);
    for shared in [&materials.authority, &materials.server_certificate] {
        fs::set_permissions(shared, fs::Permissions::from_mode(0o644)).expect("permissions");
    }
    materials
}
