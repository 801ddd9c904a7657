//! One server with its protections, in a sandbox of its own, gone when the test ends.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use tithe_databases::postgres::Postgres;
use tithe_harness::{
    database::{Database, Install, Search, Server},
    protection::{Materials, Protection, Setup},
    sandbox::{Sandbox as Folder, certificates, process::Running},
};
use tithe_model::experiment::{OptionValue, Protection as Chosen};

/// A running server and its set-up. The server stops before its folder goes: fields are dropped in their order.
pub struct Sandbox {
    pub setup: Setup,
    pub server: Server,
    _running: Option<Running>,
    _folder: Folder,
}

/// What is missing fails the tests where `CI` is set; elsewhere they say loudly that they are skipped.
fn present<T>(found: Result<T, tithe_harness::database::Missing>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing:?}"),
        Err(missing) => {
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

/// The protection called `id`.
pub fn protection(id: &str) -> &'static dyn Protection {
    *Postgres.protections().iter().find(|protection| protection.id() == id).expect("a protection")
}

/// A protection with its defaults, but for `options`.
pub fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    let options_of = protection(id).options().iter();
    let mut all: BTreeMap<String, OptionValue> =
        options_of.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
    all.extend(options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Chosen { id: id.to_owned(), options: all }
}

impl Sandbox {
    /// Starts a server with `protections`; `None`, said loudly, when something is not installed.
    pub fn start(protections: &[Chosen]) -> Option<Self> {
        let install = present(Postgres.find(&Search::default()))?;
        for chosen in protections {
            present(protection(&chosen.id).needs(&install, chosen))?;
        }
        let folder = Folder::new(&std::env::temp_dir()).expect("a sandbox");
        let mut setup = Setup::plain(BTreeMap::new(), materials(&folder));
        for chosen in protections {
            protection(&chosen.id).apply(chosen, &mut setup);
        }
        Some(Self::launch(&install, setup, folder))
    }

    fn launch(install: &Install, setup: Setup, mut folder: Folder) -> Self {
        let place = folder.place("postgres").expect("a place");
        let launch = Postgres.launch(install, &setup, &place);
        folder.prepare(&launch).expect("all steps run");
        let running = folder.start(&launch, &launch.paths.logs[0]).expect("the server starts");
        let process = running.as_ref().map(Running::process);
        let server = Server { address: launch.address, process, paths: launch.paths, folder: place.folder };
        let sandbox = Self { setup, server, _running: running, _folder: folder };
        sandbox.await_answer();
        sandbox
    }

    fn await_answer(&self) {
        let begun = Instant::now();
        while let Err(fault) = Postgres.facts(&self.server, &self.setup) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{fault}: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.server.paths.logs[0]).expect("a log")
    }
}

/// Certificates, keys and passwords of one test, given to the server's account.
fn materials(sandbox: &Folder) -> Materials {
    let folder = sandbox.folder().join("materials");
    let materials = certificates::prepare(&folder).expect("materials");
    let give = |path: &Path| sandbox.give(path).expect("given");
    give(&folder);
    fs::read_dir(&folder).expect("a folder").flatten().for_each(|file| give(&file.path()));
    materials
}
