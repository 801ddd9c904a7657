//! What the arms of an experiment ask for: their protections by name, their set-ups, and whether all of it is
//! available.

use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    launch::{Install, Missing, Search, Server},
    sandbox::{self, sidecar::Sidecar, volume_builder::Layout},
    secret::Secret,
    watch::swap::{self, Swap},
};
use tithe_model::{
    catalogue::NetworkLogin,
    experiment::{self, Arm, Design, Experiment},
    plan::{Cell, Plan},
};
use tithe_plugin::{
    columns::{Chosen, own},
    database::{Database, sql_of},
    product::Product,
    protection::Protection,
    rotation::Rotator,
    setup::{Authentication, Setup, Transport},
    wire::is_socket,
    workload::Workload,
};

use crate::{limits, volumes};

/// Everything that can protect `product`: its own protections, and the volumes, which work under every database.
pub fn all(product: &dyn Product) -> Vec<&'static dyn Protection> {
    [product.protections(), volumes::protections(product)].concat()
}

/// The protection of `product` that experiment files call `id`.
///
/// # Errors
/// When this build has none: a run folder of another build.
pub fn named(product: &dyn Product, id: &str) -> Result<&'static dyn Protection, Fault> {
    let found = all(product).into_iter().find(|protection| protection.entry().id == id);
    found.ok_or_else(|| Fault::Machine(format!("this build of tithe has no protection {id} for {}", product.id())))
}

/// The installation that `arm` is started from: the programs that it names, or `installed`.
///
/// # Errors
/// When the folder that it names has no server of `product`.
pub fn install_of(product: &dyn Product, arm: &Arm, installed: &Install) -> Result<Install, Missing> {
    let Some(folder) = &arm.programs else { return Ok(installed.clone()) };
    let found = product.find(&Search { folders: vec![folder.clone()] });
    // A search continues elsewhere if a folder has no server.
    let there = found.ok().filter(|install| install.programs.starts_with(folder));
    there.ok_or_else(|| Missing {
        what: format!("a server of {} in {}", product.title(), folder.display()),
        looked_in: vec![folder.display().to_string()],
        how_to_install: vec!["name the folder that its programs are in, new enough to be launched".to_owned()],
    })
}

/// An arm whose protections were found, so that they need not be searched for by name again.
pub struct Resolved<'a> {
    /// The arm as the experiment describes it.
    pub arm: &'a Arm,
    /// Its protections in the order in which they are applied, each with the options that the arm chose.
    pub protections: Vec<(&'static dyn Protection, &'a experiment::Protection)>,
    /// How its clients log in if other machines can reach its server.
    network_login: NetworkLogin,
}

impl<'a> Resolved<'a> {
    /// Finds the protections of `arm`.
    ///
    /// # Errors
    /// When the product does not have one of them.
    pub fn of(product: &dyn Product, arm: &'a Arm) -> Result<Self, Fault> {
        let find = |chosen: &'a experiment::Protection| match &chosen.custom {
            Some(_) => Ok((product.custom(), chosen)),
            None => Ok((named(product, &chosen.id)?, chosen)),
        };
        let protections = arm.protections.iter().map(find).collect::<Result<_, Fault>>()?;
        Ok(Self { arm, protections, network_login: product.entry().network_login })
    }

    /// The set-up in `cell`: plain with the experiment's settings, then each protection applied.
    ///
    /// # Errors
    /// When a key is not at the place that the plan names.
    pub fn setup(&self, plan: &Plan, cell: &Cell, credentials: &Credentials) -> Result<Setup, Fault> {
        let mut setup = self.before_keys(plan, cell, credentials);
        setup.fetch_keys()?;
        volumes::equalise(&plan.experiment.arms, &mut setup);
        Ok(setup)
    }

    /// The same, with `column_key` as the key of its columns, which was fetched before.
    pub fn setup_with(&self, plan: &Plan, cell: &Cell, credentials: &Credentials, column_key: Option<Secret>) -> Setup {
        let mut setup = self.before_keys(plan, cell, credentials);
        if let (Some(columns), Some(key)) = (&mut setup.columns, column_key) {
            columns.key = key;
        }
        volumes::equalise(&plan.experiment.arms, &mut setup);
        setup
    }

    /// Its set-up without the keys whose place the plan names.
    fn before_keys(&self, plan: &Plan, cell: &Cell, credentials: &Credentials) -> Setup {
        let mut settings = plan.experiment.settings.clone();
        settings.extend(plan.experiment.resources[cell.resources].settings.clone());
        let mut setup = Setup::plain(settings, credentials.clone());
        setup.clients = cell.clients;
        setup.data_bytes = limits::data_bytes(&plan.experiment, cell.workload);
        if let (true, NetworkLogin::Password(mechanism)) = (plan.experiment.load.is_open(), self.network_login) {
            setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
        }
        self.protect(&mut setup);
        setup
    }

    /// True when it rotates its key during the measurement.
    pub fn rotates(&self) -> bool {
        self.bare_setup().changes_keys()
    }

    /// The set-up that its protections make of an empty one.
    pub fn bare_setup(&self) -> Setup {
        let mut setup = Setup::bare();
        self.protect(&mut setup);
        setup
    }

    fn protect(&self, setup: &mut Setup) {
        self.protections.iter().for_each(|(protection, chosen)| protection.apply(chosen, setup));
    }
}

/// The arms of `experiment` with their protections found.
///
/// # Errors
/// When the product does not have one of them.
pub fn resolve<'a>(product: &dyn Product, experiment: &'a Experiment) -> Result<Vec<Resolved<'a>>, Fault> {
    experiment.arms.iter().map(|arm| Resolved::of(product, arm)).collect()
}

/// Checks whether the servers of `experiment` can listen at the address that it names.
///
/// # Errors
/// That the address is not this machine's.
pub fn check_address(experiment: &Experiment) -> Result<(), String> {
    match experiment.load.listen {
        Some(address) if !sandbox::is_own(address) => {
            Err(format!("`listen` must be an IP address of this machine, which {address} is not"))
        }
        _ => Ok(()),
    }
}

/// Checks, before anything is started, whether the arms of `experiment` can be set up as they ask to for each of its
/// `workloads`.
///
/// # Errors
/// The names of the first arm and workload for which this fails, and why.
pub fn check(product: &dyn Product, experiment: &Experiment, workloads: &[Box<dyn Workload>]) -> Result<(), String> {
    check_address(experiment)?;
    let arms = resolve(product, experiment).map_err(|fault| fault.to_string())?;
    for resolved in &arms {
        let (arm, mut setup) = (resolved.arm, resolved.bare_setup());
        let of_arm = |fault: Fault| format!("arm {}: {fault}", arm.name);
        if arm.url.is_none() {
            product.check_setup(&setup).map_err(of_arm)?;
            let given = experiment.settings.iter().chain(&setup.settings);
            let given = given.map(|(name, value)| (name.clone(), value.clone())).collect();
            product.check_settings(&given).map_err(of_arm)?;
        }
        for path in setup.files.values() {
            std::fs::File::open(path).map_err(|error| of_arm(Fault::machine(path.display(), error)))?;
        }
        setup.fetch_keys().map_err(of_arm)?;
        for (workload, described) in workloads.iter().zip(&experiment.workloads) {
            Chosen::check(&setup, workload.as_ref())
                .map_err(|fault| format!("arm {}, workload {}: {fault}", arm.name, described.name))?;
            if let Some(columns) = setup.columns.as_ref().filter(|columns| !columns.own.is_empty()) {
                let refused = |fault: Fault| format!("arm {}, workload {}: {fault}", arm.name, described.name);
                let grammar = sql_of(product).map_err(refused)?.dialect().grammar;
                own::check(columns, workload.as_ref(), grammar).map_err(refused)?;
            }
            if let Some(why) = workload.refuses(product.entry(), arm.url.is_some()) {
                return Err(format!("arm {}, workload {}: {why}", arm.name, described.name));
            }
            if workload.speaks_sql() {
                sql_of(product).map_err(|fault| format!("workload {}: {fault}", described.name))?;
            }
        }
    }
    check_switch(product, &arms)?;
    check_rotation(&arms, experiment, workloads)
}

/// Checks whether a server can be asked for its state, and whether the arm can be the result of its provider's switch.
///
/// # Errors
/// The arm's name, and why not.
fn check_switch(product: &dyn Product, arms: &[Resolved<'_>]) -> Result<(), String> {
    let switched = arms.iter().find_map(|resolved| Some((resolved, resolved.arm.switch.as_ref()?)));
    let Some((resolved, switch)) = switched else { return Ok(()) };
    let name = &resolved.arm.name;
    if !product.answers() && switch.ready_command.is_empty() {
        return Err(format!(
            "arm {name}: {} cannot answer `ready` of `switch`: write a command that answers, `ready = [\"program\", \
             \"argument\"]`",
            product.title()
        ));
    }
    if resolved.bare_setup().columns.is_some() {
        return Err(format!("arm {name}: columns are encrypted by clients, and no provider switches that"));
    }
    Ok(())
}

/// The rotator that changes the key of `server`; `None` if the key is not changed. `sidecar` runs programs for it.
///
/// # Errors
/// [`Fault::Refused`] if the database or the volume cannot; the server's error.
pub fn rotator(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    sidecar: Option<&Sidecar>,
) -> Result<Option<Box<dyn Rotator>>, Fault> {
    match (setup.rotates, &setup.volume, sidecar) {
        (true, ..) => database.rotator(server, setup).map(Some),
        (false, Some(asked), Some(sidecar)) => {
            asked.kind.rotator(&Layout::of(&server.folder), sidecar.clone()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Checks whether `experiment` can be measured if an arm rotates its key.
///
/// # Errors
/// The arm's name, and why not.
fn check_rotation(
    arms: &[Resolved<'_>],
    experiment: &Experiment,
    workloads: &[Box<dyn Workload>],
) -> Result<(), String> {
    for resolved in arms {
        let (arm, setup) = (resolved.arm, resolved.bare_setup());
        if !setup.changes_keys() {
            continue;
        }
        let refused = |why: String| Err(format!("arm {}: its key is rotated while it is measured, {why}", arm.name));
        if setup.rotates && setup.rotates_volume() {
            return refused("and so is the key of its volume: give each rotation an arm of its own".to_owned());
        }
        if experiment.measure.design != Design::Interleaved {
            return refused("which needs interleaved slots: write `design = \"interleaved\"`".to_owned());
        }
        if experiment.measure.starts.is_some_and(|starts| starts > 1) {
            return refused(
                "which needs many frames of one start: leave `starts` out; `epochs` sets servers up again".to_owned(),
            );
        }
        let described: &[experiment::Workload] = &experiment.workloads;
        let program = workloads.iter().zip(described).find(|(workload, _)| workload.offered_by().program().is_some());
        if let Some((_, described)) = program {
            let name = &described.name;
            return refused(format!(
                "which needs the load of Tithe's own clients, and workload {name} has a program's"
            ));
        }
    }
    Ok(())
}

/// Checks whether the database can answer what `workloads` ask, before anything is started.
///
/// # Errors
/// The first workload's name and why not.
pub fn check_requests(
    product: &dyn Product,
    experiment: &Experiment,
    workloads: &[Box<dyn Workload>],
) -> Result<(), String> {
    let scanning = workloads.iter().zip(&experiment.workloads).find(|(workload, _)| workload.scans());
    match scanning.filter(|_| !product.entry().scans) {
        Some((_, described)) => Err(format!(
            "workload {}: it scans, and {} finds records by their key alone: choose one without scans",
            described.name,
            product.title()
        )),
        None => Ok(()),
    }
}

/// Checks, before anything is started, whether the programs of `workloads` can do what `experiment` asks of them.
///
/// # Errors
/// The first workload's name and why not.
pub fn check_programs(
    product: &dyn Product,
    experiment: &Experiment,
    workloads: &[Box<dyn Workload>],
) -> Result<(), String> {
    for (workload, described) in workloads.iter().zip(&experiment.workloads) {
        let Some(program) = workload.offered_by().program() else { continue };
        let refused = |why: String| Err(format!("workload {}: {} {why}", described.name, program.name()));
        let its = product.entry().wire_protocol;
        let Some(protocol) = its.filter(|protocol| program.drives().contains(protocol)) else {
            let spoken: Vec<&str> = program.drives().iter().map(|protocol| protocol.name()).collect();
            let spoken = spoken.join(" or ");
            return refused(format!("does not drive {}; it drives what speaks the protocol of {spoken}", product.id()));
        };
        let loads = experiment.resources.iter().map(|resources| resources.arrivals);
        for arrivals in loads.map(|arrivals| arrivals.unwrap_or(experiment.load.arrivals)) {
            if let Some(why) = program.refuses(arrivals) {
                return refused(why);
            }
        }
        for arm in &experiment.arms {
            if arm.url.is_some() {
                return refused(format!("loads only servers that Tithe starts; arm {} names a `url`", arm.name));
            }
            let setup = Resolved::of(product, arm).map_err(|fault| fault.to_string())?.bare_setup();
            if setup.columns.is_some() || !setup.loaded().session_statements.is_empty() {
                return refused(format!("has none of what arm {} asks of Tithe's own clients", arm.name));
            }
            if matches!(setup.transport, Transport::Tls { suite: Some(_), .. }) {
                return refused(format!("chooses its cipher suite itself; leave `suite` of arm {} out", arm.name));
            }
            if let Some(why) = program.refuses_setup(protocol, &setup) {
                return refused(format!("{why} (arm {})", arm.name));
            }
        }
    }
    Ok(())
}

/// Checks whether the servers of `experiment` can take the data of the user's own that `workloads` name. `installed` is
/// the installation of arms that name no other.
///
/// # Errors
/// The first workload's name, the path of its data and why not.
pub fn check_data(
    product: &dyn Product,
    experiment: &Experiment,
    workloads: &[Box<dyn Workload>],
    installed: &Install,
) -> Result<(), String> {
    for (workload, described) in workloads.iter().zip(&experiment.workloads) {
        let Some(restore) = workload.restore() else { continue };
        let refused = |why: String| Err(format!("workload {}: {}: {why}", described.name, restore.path().display()));
        for arm in &experiment.arms {
            if arm.url.is_some() {
                return refused(format!("it is restored on servers that Tithe starts; arm {} names a `url`", arm.name));
            }
            let install = install_of(product, arm, installed).unwrap_or_else(|_| installed.clone());
            if let Some(why) = restore.refuses(product.entry(), &install.version) {
                return refused(why);
            }
        }
    }
    Ok(())
}

/// Programs that are missing here to restore the data of the user's own that `workloads` name.
pub fn missing_to_restore(product: &dyn Product, workloads: &[Box<dyn Workload>]) -> Vec<Missing> {
    let Some(protocol) = product.entry().wire_protocol else { return Vec::new() };
    workloads.iter().filter_map(|workload| workload.restore()?.find(protocol).err()).collect()
}

/// A warning if some running servers of `experiment` are reached by a Unix socket and some by TCP, with a pair that can
/// be compared.
pub fn ways_warning(product: &dyn Product, experiment: &Experiment) -> Option<String> {
    let way = |arm: &Arm| product.endpoint(arm.url.as_ref()?).map(|(host, _)| is_socket(&host));
    let by = |socket: bool| experiment.arms.iter().find(|arm| way(arm) == Some(socket)).map(|arm| &arm.name);
    let (by_socket, by_tcp) = (by(true)?, by(false)?);
    Some(format!(
        "arm {by_socket} is reached by a Unix socket and arm {by_tcp} by TCP: the difference between them contains that of the connection; to measure the protection alone, give arm {by_socket} a URL with the host and port of arm \
         {by_tcp}"
    ))
}

/// A warning if an arm protects data at rest on this machine, and one of `swaps` is not known to be encrypted.
pub fn swap_warning(product: &dyn Product, experiment: &Experiment, swaps: &[Swap]) -> Option<String> {
    let all = all(product);
    let at_rest = |chosen: &experiment::Protection| {
        all.iter().any(|protection| protection.entry().id == chosen.id && protection.entry().at_rest)
    };
    let mut launched = experiment.arms.iter().filter(|arm| arm.url.is_none());
    launched.any(|arm| arm.protections.iter().any(at_rest)).then(|| swap::warning(swaps)).flatten()
}

#[cfg(test)]
mod tests;
