//! One server with its protections, in its own sandbox, removed when the test ends.

use std::{collections::BTreeMap, fs, path::Path};

use tithe_harness::{
    arms::named,
    serve,
    volumes::{self, Mounted, set_up},
};
use tithe_machine::{
    cgroup::{self, GroupLimits},
    launch::{Install, Launch, Search, Server},
    sandbox::{Sandbox as Folder, process::Running},
};
use tithe_model::experiment::{Arm, OptionValue, Protection as Chosen};
use tithe_plugin::{product::Product, protection::Protection, setup::Setup};

use crate::{
    made,
    small::{replace, small_logs, warm_up_soon},
};

/// A running server and its set-up. The server stops before its folder is removed: fields are dropped in order.
pub struct Sandbox {
    pub database: &'static dyn Product,
    pub setup: Setup,
    pub server: Server,
    install: Install,
    launch: Launch,
    running: Option<Running>,
    _volume: Option<Mounted>,
    folder: Folder,
}

/// If something is missing, the tests fail with `CI` set; otherwise they are skipped with a message.
pub fn present<T>(found: Result<T, tithe_machine::launch::Missing>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing:?}"),
        Err(missing) => {
            eprintln!("SKIPPED: {missing:?}");
            None
        }
    }
}

/// The protection of `database` called `id`.
pub fn protection(database: &dyn Product, id: &str) -> &'static dyn Protection {
    named(database, id).expect("a protection")
}

/// A protection with its defaults, except for `options`.
pub fn chosen(database: &dyn Product, id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    let options_of = protection(database, id).entry().options.iter();
    let mut all: BTreeMap<String, OptionValue> =
        options_of.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
    all.extend(options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Chosen::listed(id, all)
}

impl Sandbox {
    /// Starts a server of `database` with `protections`; `None`, with a message, if something is not installed.
    pub fn start(database: &'static dyn Product, protections: &[Chosen]) -> Option<Self> {
        Self::start_of(database, &Search::default(), protections, &[], &[])
    }

    /// The same as one of several `arms`, on a volume if one of them has one.
    pub fn start_beside(database: &'static dyn Product, protections: &[Chosen], arms: &[Arm]) -> Option<Self> {
        Self::start_of(database, &Search::default(), protections, arms, &[])
    }

    /// The same, of an installation that `search` finds first, with further `settings`.
    pub fn start_of(
        database: &'static dyn Product,
        search: &Search,
        protections: &[Chosen],
        arms: &[Arm],
        further: &[(&str, &str)],
    ) -> Option<Self> {
        Self::begin(database, search, protections, arms, further, &[])
    }

    /// The same with mistakes in the server's configuration: each text is replaced in the files that contain it.
    pub fn start_wrong(
        database: &'static dyn Product,
        protections: &[Chosen],
        mistakes: &[(&str, &str)],
    ) -> Option<Self> {
        Self::start_as(database, protections, &[], mistakes)
    }

    /// The same with further `settings`.
    pub fn start_as(
        database: &'static dyn Product,
        protections: &[Chosen],
        further: &[(&str, &str)],
        mistakes: &[(&str, &str)],
    ) -> Option<Self> {
        Self::begin(database, &Search::default(), protections, &[], further, mistakes)
    }

    fn begin(
        database: &'static dyn Product,
        search: &Search,
        protections: &[Chosen],
        arms: &[Arm],
        further: &[(&str, &str)],
        mistakes: &[(&str, &str)],
    ) -> Option<Self> {
        let install = present(database.find(search))?;
        for chosen in protections {
            present(protection(database, &chosen.id).needs(&install, chosen))?;
        }
        let folder = Folder::new(&std::env::temp_dir()).expect("a sandbox");
        let mut all = settings(database);
        all.extend(further.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut setup = Setup::plain(all, folder.credentials().expect("credentials"));
        for chosen in protections {
            protection(database, &chosen.id).apply(chosen, &mut setup);
        }
        volumes::equalise(arms, &mut setup);
        Some(Self::launch(database, &install, setup, folder, mistakes))
    }

    fn launch(
        database: &'static dyn Product,
        install: &Install,
        setup: Setup,
        mut folder: Folder,
        mistakes: &[(&str, &str)],
    ) -> Self {
        let place = folder.place(database.id()).expect("a place");
        if cgroup::counts() {
            let limits = GroupLimits { account: true, ..GroupLimits::default() };
            folder.confine(&place.folder, limits, None).expect("a control group");
        }
        let volume = setup.volume.as_ref().map(|asked| set_up(asked, &place.folder, &folder).expect("a volume"));
        let mut launch = database.launch(install, &setup, &place);
        // The effect of a mistake on a fresh data folder is part of the test. PostgreSQL's files are written
        // afterwards; TLS is required per connection, and accounts are created at each start.
        let of_connections =
            |(right, _): &(&str, &str)| ["require_secure_transport = ON", " REQUIRE SSL"].contains(right);
        let as_usual = database.id() == "postgres" || mistakes.iter().all(of_connections);
        let kind = as_usual.then(|| made::kind(database, install, &setup)).flatten();
        warm_up_soon(database.id(), &mut launch);
        mistakes.iter().for_each(|(right, wrong)| replace(&mut launch, right, wrong));
        made::prepare(&folder, &place, &launch, kind);
        let (server, running) = serve::serve(database, &folder, &place, &launch, &setup).expect("the server starts");
        Self { database, setup, server, install: install.clone(), launch, running, _volume: volume, folder }
    }

    /// Stops the server, cleanly or, if it may `discard` unwritten data, at once. Starts it again on another port after
    /// `meanwhile` has worked in its folder.
    pub fn start_again(&mut self, discard: bool, meanwhile: impl FnOnce(&Path)) {
        let mut running = self.running.take().expect("a server that runs");
        if discard {
            running.discard(self.launch.discard_signal);
            drop(running);
        } else {
            running.stop_cleanly().expect("it stops cleanly");
        }
        meanwhile(&self.server.folder);
        let place = self.folder.place_again(self.server.folder.clone()).expect("a port");
        self.launch = self.database.launch(&self.install, &self.setup, &place);
        warm_up_soon(self.database.id(), &mut self.launch);
        self.folder.prepare_again(&self.launch).expect("everything is prepared");
        let (server, running) =
            serve::serve(self.database, &self.folder, &place, &self.launch, &self.setup).expect("it comes back");
        assert_ne!(server.process, self.server.process);
        (self.server, self.running) = (server, running);
    }

    /// Stops the server; fails if it does not stop cleanly.
    pub fn stop(mut self) {
        self.running.take().expect("a server that runs").stop_cleanly().expect("it stops cleanly");
    }

    /// Starts what `launch` makes of a folder, the credentials in it and a place, as a server of `database`: for a
    /// stand-in.
    #[cfg(feature = "mongodb")]
    pub fn stand_in(
        database: &'static dyn Product,
        protections: &[Chosen],
        launch: impl FnOnce(&Setup, &tithe_machine::launch::Place) -> tithe_machine::launch::Launch,
    ) -> Self {
        let mut folder = Folder::new(&std::env::temp_dir()).expect("a sandbox");
        let mut setup = Setup::plain(BTreeMap::new(), folder.credentials().expect("credentials"));
        for chosen in protections {
            protection(database, &chosen.id).apply(chosen, &mut setup);
        }
        let place = folder.place(database.id()).expect("a place");
        let launch = launch(&setup, &place);
        let (server, running) = serve::start(database, &folder, &place, &launch, &setup).expect("the stand-in starts");
        Self { database, setup, server, install: Install::default(), launch, running, _volume: None, folder }
    }

    /// The last words of the server, which ends by itself.
    pub fn last_words(&mut self) -> String {
        let begun = std::time::Instant::now();
        loop {
            if let Some(words) = self.running.as_mut().expect("a server that ran").ended() {
                return words;
            }
            assert!(begun.elapsed().as_secs() < 60, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// The version of the server that was installed.
    pub fn version(&self) -> &str {
        &self.install.version
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.server.folder.join(serve::LOG)).expect("a log")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Data that the server has not written is not needed.
        if let Some(running) = &mut self.running {
            running.discard(self.launch.discard_signal);
        }
    }
}

/// Settings of every server of `database`: small files, so that scans are short, logs that would be off, and commits
/// that wait for one log at most.
fn settings(database: &dyn Product) -> BTreeMap<String, String> {
    let further = match database.id() {
        "mariadb" => Some(("log_bin", "ON")),
        "mysql" => Some(("sync_binlog", "0")),
        _ => None,
    };
    let mut settings = small_logs(database.id());
    settings.extend(further.map(|(name, value)| (name.to_owned(), value.to_owned())));
    settings
}
