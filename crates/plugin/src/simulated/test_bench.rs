//! An arm of the simulated database in its own folder, for tests.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::{
    clock::{Clock, VirtualTime},
    credentials::Credentials,
    launch::{Install, Place, Server},
    observation::Observation,
    secret::Secret,
};
use tithe_model::experiment;

use super::Simulated;
use crate::{
    checks::canary::key_value,
    database::{Connect, Database},
    evidence::{Check, CheckContext, seen_by},
    session::{KeyValueSession, Table},
    setup::Setup,
};

/// An arm that is created and can be connected to; its folder is removed with it.
pub struct Bench {
    /// Its server.
    pub server: Server,
    /// How the arm is set up.
    pub setup: Setup,
    /// The measured table.
    pub table: Table,
    protected: bool,
    observations: AtomicU64,
}

impl Bench {
    /// Without protection.
    pub fn plain() -> Self {
        Self::new(&[], &[])
    }

    /// With `protections` (each with options and defaults) and `settings`.
    pub fn new(protections: &[(&str, &[(&str, f64)])], settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut setup = Setup::plain(settings, credentials());
        for (id, options) in protections {
            protection(id).apply(&chosen(id, options), &mut setup);
        }
        Self::of(setup, !protections.is_empty())
    }

    /// With `setup`.
    pub fn of(setup: Setup, protected: bool) -> Self {
        Self::at(test_folder(), setup, protected)
    }

    /// With `setup`, in `folder`.
    pub fn at(folder: PathBuf, setup: Setup, protected: bool) -> Self {
        let launch = Simulated.launch(&Install::default(), &setup, &Place::on_loopback(folder.clone(), 0));
        launch.paths.data.iter().for_each(|data| fs::create_dir_all(data).unwrap());
        let server = Server::embedded(&launch, &folder);
        let table = Table { name: "usertable".to_owned(), fields: 10, field_prefix: "field".to_owned() };
        Simulated.create(&server, &setup, &table).unwrap();
        Self { server, setup, table, protected, observations: AtomicU64::new(0) }
    }

    /// The arm as a check sees it.
    pub fn context(&self) -> CheckContext<'_> {
        let nonce = self.observations.fetch_add(1, Ordering::Relaxed);
        let (server, setup, table) = (&self.server, &self.setup, &self.table);
        CheckContext { database: &Simulated, server, setup, table, protected: self.protected, nonce, narrowed: None }
    }

    /// The observation of `check`.
    pub fn observe(&self, check: &dyn Check) -> Observation {
        seen_by(check, &mut self.context())
    }

    /// A session on `clock`, wrapped according to the set-up.
    pub fn session(&self, clock: Clock) -> Box<dyn KeyValueSession> {
        let how = Connect { blocking: true, lane: 0, clock, table: self.table.clone() };
        key_value(crate::columns::connect(&Simulated, &self.server, &self.setup, &how).unwrap()).unwrap()
    }

    /// A session on simulated time, and that time.
    pub fn timed(&self) -> (Box<dyn KeyValueSession>, Arc<VirtualTime>) {
        let time = Arc::new(VirtualTime::default());
        (self.session(Clock::Virtual(Arc::clone(&time))), time)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Simulated.remove(&self.server, &self.setup, &self.table);
        let _ = fs::remove_dir_all(&self.server.folder);
    }
}

/// The simulated protection `id`.
pub fn protection(id: &str) -> &'static dyn crate::protection::Protection {
    *crate::product::Product::protections(&Simulated).iter().find(|protection| protection.entry().id == id).unwrap()
}

/// Protection `id` as an experiment chooses it, defaults filled in.
pub fn chosen(id: &str, options: &[(&str, f64)]) -> experiment::Protection {
    let defaults = protection(id).entry().options.iter();
    let mut filled: BTreeMap<_, _> =
        defaults.map(|option| (option.name.to_owned(), option.default.unwrap().value())).collect();
    let given = options.iter().map(|(name, value)| ((*name).to_owned(), experiment::OptionValue::Number(*value)));
    filled.extend(given);
    experiment::Protection::listed(id, filled)
}

/// A fresh folder of this test.
pub fn test_folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tithe-test-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Credentials without files: the simulated database needs none.
pub fn credentials() -> Credentials {
    Credentials::without_files(Secret::random_text(32), Secret::random(32))
}
