//! The simulated database keeps its records in the memory of one process, so an agent that works on it loads its own.

use std::{fs, path::Path, sync::atomic::AtomicU64};

use tithe_machine::{
    fault::Fault,
    launch::{Install, Place, Server},
};
use tithe_plugin::{
    data,
    database::{Connect, Database},
    setup::Setup,
    workload::Workload,
};

/// A server of the simulated `database` in `folder`, on fresh data of `workload` if `fresh`.
///
/// # Errors
/// When the folder cannot be made, or the data cannot be loaded.
pub fn server(
    database: &dyn Database,
    (setup, workload): (&Setup, &dyn Workload),
    folder: &Path,
    fresh: bool,
) -> Result<Server, Fault> {
    let launch = database.launch(&Install::default(), setup, &Place::on_loopback(folder, 0));
    let server = Server::embedded(&launch, folder);
    let loaded = folder.exists();
    if loaded && !fresh {
        return Ok(server);
    }
    if loaded {
        data::remove(database, &server, setup, workload)?;
    }
    for path in &server.paths.data {
        fs::create_dir_all(path).map_err(|error| Fault::machine(path.display(), error))?;
    }
    data::create(database, &server, setup, workload)?;
    if let Some(clients) = workload.offered_by().clients() {
        let how = Connect::blocking(workload.table());
        let mut session = data::connect(database, &server, setup, &how, workload)?;
        clients.load(&mut session, 0, 1, &AtomicU64::new(0))?;
    }
    Ok(server)
}
