//! A database server with Tithe's rows, for Tithe and its peers.

use std::sync::atomic::AtomicU64;

use tithe_harness::serve;
use tithe_machine::{
    fault::Fault,
    launch::{Install, Missing, Place, Search},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{data, database::Connect, product::Product, session::Session, setup::Setup};

use crate::tithe;

/// A loaded server; it ends when dropped.
pub struct Loaded {
    /// Its address and folder.
    pub place: Place,
    /// Its version.
    pub version: String,
    /// Its programs.
    pub install: Install,
    // Must end before its folder is removed.
    _running: Option<Running>,
    _sandbox: Sandbox,
}

impl Loaded {
    /// Starts `database` with `settings` and has Tithe load what `job` needs. Then calls `copy` with a session, to
    /// create the tables of the peers.
    ///
    /// # Errors
    /// No server, or any error of it.
    pub fn start(
        database: &dyn Product,
        settings: &[(&str, &str)],
        job: &str,
        copy: impl FnOnce(&mut Session, &Place) -> Result<(), Fault>,
    ) -> Result<Self, Fault> {
        let missing = |missing: Missing| Fault::Machine(format!("needs {}", missing.what));
        let install = database.find(&Search::default()).map_err(missing)?;
        let mut setup = Setup::bare();
        setup.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut sandbox = Sandbox::new(&std::env::temp_dir())?;
        let place = sandbox.place("peers")?;
        let launch = database.launch(&install, &setup, &place);
        let (server, running) = serve::start(database, &sandbox, &place, &launch, &setup)?;
        let workload = tithe::workload(&tithe::plan(database, job, 1)?)?;
        let workload = workload.as_ref();
        data::create(database, &server, &setup, workload)?;
        // Before that an embedded database has no file.
        let version = database.facts(&server, &setup)?.version;
        let how = Connect::blocking(workload.table());
        let mut session = data::connect(database, &server, &setup, &how, workload)?;
        let clients = workload.offered_by().clients().expect("Tithe offers the load");
        clients.load(&mut session, 0, 1, &AtomicU64::new(0))?;
        copy(&mut session, &place)?;
        drop(session);
        data::quiesce(database, &server, &setup, workload)?;
        // Contestants open the file of an embedded database themselves.
        database.close(&server);
        Ok(Self { place, version, install, _running: running, _sandbox: sandbox })
    }
}
