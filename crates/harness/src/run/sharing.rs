//! Which arms share a server, and which share data.
//!
//! A server that Tithe starts has one arm. An attached one may have several: the same server under two URLs is
//! recognised by the identity that it reports. Arms with the same URL that store the same and change nothing work on
//! the same data. All others have a space of their own each, so that no arm sees what another one wrote.

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
};
use tithe_model::experiment::{Arm, Url};
use tithe_plugin::{
    database::{Database, lacking},
    setup::Setup,
};

use super::{Run, held_servers::HeldServers};

/// Which arms share a server, and which share data; by the arm's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sharing {
    /// The first arm on its server.
    servers: Vec<usize>,
    /// The arm whose data it works on.
    data: Vec<usize>,
}

/// The properties of an arm that decide this.
struct ArmPlace<'a> {
    name: &'a str,
    url: Option<&'a Url>,
    /// Distinguishes its server from all others.
    identity: String,
    /// It stores something else than the plain arm, or has statements about its own tables.
    own: bool,
}

impl Sharing {
    /// For the arms of `run`, set up as `setups`, whose clients change data if the workload `writes`; gives those arms
    /// a space of their own that need one. Asks attached servers only for their identity and whether they can be
    /// measured, and holds them.
    ///
    /// # Errors
    /// When a server cannot be measured, does not report its identity or is another run's, or arms share servers that
    /// cannot be shared.
    pub fn find(run: &Run<'_>, setups: &mut [Setup], writes: bool, held: &mut HeldServers) -> Result<Self, Fault> {
        let arms = run.plan.experiment.arms.iter().zip(setups.iter());
        refuse(run.product, arms.clone().filter_map(|(arm, setup)| Some((arm, arm.url.as_ref()?, setup))))?;
        let mut places = Vec::with_capacity(setups.len());
        for (number, (arm, setup)) in arms.enumerate() {
            let identity = match &arm.url {
                Some(url) => {
                    let identity = said(run.product, arm, url, setup)?;
                    let held = held.hold(run.product.entry().id, &identity, &port_of(run.product.endpoint(url), url));
                    held.map_err(|fault| fault.of(format_args!("arm {}", arm.name)))?;
                    identity
                }
                None => number.to_string(),
            };
            let own = needs_own(setup);
            places.push(ArmPlace { name: &arm.name, url: arm.url.as_ref(), identity, own });
        }
        let keeps_apart = run.product.keeps_apart();
        let sharing = Self::of(&places, writes && keeps_apart);
        sharing.check(&places, keeps_apart)?;
        for (number, setup) in setups.iter_mut().enumerate() {
            setup.space += &sharing.suffix(number);
        }
        Ok(sharing)
    }

    /// For this number of arms that are one server in turn: all work on the data of the first.
    pub fn in_turn(arms: usize) -> Self {
        Self { servers: vec![0; arms], data: vec![0; arms] }
    }

    /// `writes`: arms change their data, so none may work on another one's.
    fn of(places: &[ArmPlace<'_>], writes: bool) -> Self {
        let first = |number: usize, same: &dyn Fn(&ArmPlace<'_>, &ArmPlace<'_>) -> bool| {
            (0..number).find(|earlier| same(&places[*earlier], &places[number])).unwrap_or(number)
        };
        let on_one = |one: &ArmPlace<'_>, other: &ArmPlace<'_>| one.identity == other.identity;
        let alike = |one: &ArmPlace<'_>, other: &ArmPlace<'_>| {
            on_one(one, other) && one.url == other.url && !one.own && !other.own && !writes
        };
        let all = 0..places.len();
        Self {
            servers: all.clone().map(|number| first(number, &on_one)).collect(),
            data: all.map(|number| first(number, &alike)).collect(),
        }
    }

    fn check(&self, places: &[ArmPlace<'_>], keeps_apart: bool) -> Result<(), Fault> {
        let arms_on = |server: &usize| self.servers.iter().filter(|other| *other == server).count();
        let alone = self.servers.iter().position(|server| arms_on(server) == 1);
        if let Some(number) = alone.filter(|_| self.servers.iter().any(|server| arms_on(server) > 1)) {
            return Err(Fault::Refused(format!(
                "arm {} has a server of its own, and others share one: the shared one stays warmer, which has nothing \
                 to do with a protection; give every arm a server of its own, or all arms the same one",
                places[number].name
            )));
        }
        let apart = (0..places.len()).find(|number| !self.suffix(*number).is_empty());
        match apart.filter(|_| !keeps_apart) {
            Some(number) => Err(Fault::Refused(format!(
                "arms {} and {} use one server and need their own data, which Tithe does not keep apart there: \
                 give each a server of its own",
                places[self.servers[number]].name, places[number].name
            ))),
            None => Ok(()),
        }
    }

    /// True if all arms are on one server.
    pub fn is_one_server(&self) -> bool {
        self.servers.len() > 1 && self.servers.iter().all(|server| *server == 0)
    }

    /// True if some arm works on another one's data.
    pub fn shares_data(&self) -> bool {
        self.data.iter().enumerate().any(|(number, owner)| number != *owner)
    }

    /// The arm whose data arm `number` works on: itself, or one before it.
    pub fn data_of(&self, number: usize) -> usize {
        self.data[number]
    }

    /// The suffix of the name of the space with the data of arm `number`: empty for the first on a server.
    fn suffix(&self, number: usize) -> String {
        let owner = self.data[number];
        if self.servers[owner] == owner { String::new() } else { format!("_{}", owner + 1) }
    }

    /// Where the data of arms on one server are, as text; `None` if there are several servers.
    pub fn in_words(&self) -> Option<String> {
        let sets = self.data.iter().enumerate().filter(|(number, owner)| number == *owner).count();
        self.is_one_server().then(|| match sets {
            1 => "one for all arms, on one server".to_owned(),
            all if all == self.data.len() => "one for each arm, on one server".to_owned(),
            some => format!("{some} for {} arms, on one server", self.data.len()),
        })
    }
}

/// True if an arm with this `setup` stores something else than the plain arm, or has statements about its own tables.
fn needs_own(setup: &Setup) -> bool {
    let says = !setup.table_statements.is_empty() || !setup.after_loading.statements.is_empty();
    setup.columns.is_some() || says
}

/// The identity of the server of `arm`, at `url`: what it reports, or otherwise the hosts of its URL. A server that
/// cannot be measured is refused.
///
/// # Errors
/// When it cannot be measured or reached.
pub(super) fn identity(database: &dyn Database, arm: &Arm, url: &Url, setup: &Setup) -> Result<String, Fault> {
    refuse(database, std::iter::once((arm, url, setup)))?;
    said(database, arm, url, setup)
}

/// Refuses `arms`, each with its URL and set-up, if one of them cannot be measured: with all that they lack, each item
/// once.
fn refuse<'a>(database: &dyn Database, arms: impl Iterator<Item = (&'a Arm, &'a Url, &'a Setup)>) -> Result<(), Fault> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for (arm, url, setup) in arms {
        let protections: Vec<&str> = arm.protections.iter().map(|chosen| chosen.id.as_str()).collect();
        let lacks = lacking(database, &at(url), setup, &protections, !arm.on.is_empty());
        for lack in lacks.map_err(|fault| fault.of(format_args!("arm {}", arm.name)))? {
            if all.iter().all(|(_, known)| *known != lack) {
                all.push((&arm.name, lack));
            }
        }
    }
    let lines: Vec<String> = all.iter().map(|(arm, lack)| format!("arm {arm}: {lack}")).collect();
    if lines.is_empty() { Ok(()) } else { Err(Fault::Refused(lines.join("; besides, "))) }
}

/// The identity that the server of `arm`, at `url`, reports, or otherwise the hosts of its URL.
fn said(database: &dyn Database, arm: &Arm, url: &Url, setup: &Setup) -> Result<String, Fault> {
    let said = database.identity(&at(url), setup);
    Ok(said.map_err(|fault| fault.of(format_args!("arm {}", arm.name)))?.unwrap_or_else(|| place_of(url)))
}

/// The server at `url`, about which nothing else is known.
pub(super) fn at(url: &Url) -> Server {
    Server::at(Address::Attached(url.clone()))
}

/// The hosts of `url`, which are the same for every client and every login.
pub(super) fn place_of(url: &Url) -> String {
    let redacted = url.redacted();
    let rest = redacted.split_once("://").map_or(redacted.as_str(), |(_, rest)| rest);
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts).to_owned()
}

/// The port of the server at `url`, whose clients connect to `endpoint`: a URL need not name the product's own port.
pub(super) fn port_of(endpoint: Option<(String, u16)>, url: &Url) -> String {
    let named = || place_of(url).rsplit_once(':').map_or(String::new(), |(_, port)| port.to_owned());
    endpoint.map_or_else(named, |(_, port)| port.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_machine::secret::Secret;
    use tithe_plugin::setup::{AfterLoading, Columns};

    use super::*;

    /// Arms by URL, server and whether they need data of their own.
    fn check(arms: &[(&str, &str, bool)], writes: bool, expected: Expect) {
        let urls: Vec<Url> = arms.iter().map(|(url, ..)| Url::new(*url)).collect();
        let places: Vec<_> = arms
            .iter()
            .zip(&urls)
            .map(|((name, identity, own), url)| ArmPlace {
                name,
                url: Some(url),
                identity: (*identity).to_owned(),
                own: *own,
            })
            .collect();
        let sharing = Sharing::of(&places, writes);
        let spaces: Vec<String> = (0..arms.len()).map(|number| format!("tithe{}", sharing.suffix(number))).collect();
        let words = sharing.in_words().unwrap_or_else(|| "several servers".to_owned());
        let refused =
            |keeps_apart| sharing.check(&places, keeps_apart).err().map_or("-".to_owned(), |it| it.to_string());
        expected.assert_eq(&format!("{}: {words}\n{}\n{}", spaces.join(" "), refused(true), refused(false)));
    }

    #[test]
    fn what_is_read_alone_and_by_the_same_url_is_there_once() {
        check(
            &[("a", "1", false), ("a", "1", false)],
            false,
            expect![[r#"
            tithe tithe: one for all arms, on one server
            -
            -"#]],
        );
        check(
            &[("a", "1", false), ("a", "1", false)],
            true,
            expect![[r#"
                tithe tithe_2: one for each arm, on one server
                -
                refused: arms a and a use one server and need their own data, which Tithe does not keep apart there: give each a server of its own"#]],
        );
        check(
            &[("a", "1", false), ("a?tls", "1", false), ("a", "1", false), ("a", "1", true)],
            false,
            expect![[r#"
                tithe tithe_2 tithe tithe_4: 3 for 4 arms, on one server
                -
                refused: arms a and a?tls use one server and need their own data, which Tithe does not keep apart there: give each a server of its own"#]],
        );
    }

    #[test]
    fn a_server_that_says_nothing_of_itself_is_known_by_its_hosts() {
        let place = |url: &str| place_of(&Url::new(url));
        for url in ["x://db:1", "x://db:1/", "x://ann:secret@db:1/admin?tls=true", "x://ben@db:1/?tls=false"] {
            assert_eq!(place(url), "db:1", "{url}");
        }
        assert_eq!(place("x://ann@one:1,two:2/?replicaSet=a"), "one:1,two:2");
        assert_ne!(place("x://ann@db:1/"), place("x://ann@db:2/"));
    }

    #[test]
    fn a_server_has_one_port_whether_its_url_names_it_or_not() {
        let port =
            |endpoint: Option<u16>, url: &str| port_of(endpoint.map(|port| ("db".to_owned(), port)), &Url::new(url));
        assert_eq!([port(Some(5432), "x://ann@db/"), port(Some(5432), "x://db:5432/")], ["5432"; 2]);
        assert_eq!([port(None, "x://ann:7@db:9/"), port(None, "x://ann:7@db/")], ["9", ""]);
    }

    #[test]
    fn an_arm_whose_tables_are_not_the_plain_ones_needs_its_own() {
        let statements = || vec!["ALTER TABLE t".to_owned()];
        let after_loading = AfterLoading { statements: statements(), ..AfterLoading::default() };
        let of_session = AfterLoading { session: statements(), ..AfterLoading::default() };
        let columns = Some(Columns::of_share(1.0, Secret::new([0; 32])));
        for (setup, own) in [
            (Setup::bare(), false),
            (Setup { statements: statements(), session_statements: statements(), ..Setup::bare() }, false),
            (Setup { after_loading: of_session, ..Setup::bare() }, false),
            (Setup { table_statements: statements(), ..Setup::bare() }, true),
            (Setup { after_loading, ..Setup::bare() }, true),
            (Setup { columns, ..Setup::bare() }, true),
        ] {
            assert_eq!(needs_own(&setup), own, "{:?} {:?}", setup.table_statements, setup.after_loading);
        }
    }

    #[test]
    fn sides_of_one_server_work_on_the_data_of_the_first() {
        let in_turn = Sharing::in_turn(2);
        let apart = Sharing { servers: vec![0, 1], data: vec![0, 1] };
        let seen = |sharing: &Sharing| {
            let data = [0, 1].map(|number| sharing.data_of(number));
            (sharing.is_one_server(), sharing.shares_data(), data)
        };
        assert_eq!((seen(&in_turn), seen(&apart)), ((true, true, [0, 0]), (false, false, [0, 1])));
        assert!(!Sharing::in_turn(1).is_one_server(), "one arm shares with none");
    }

    #[test]
    fn servers_are_shared_by_all_or_by_none() {
        check(
            &[("a", "1", false), ("b", "2", false)],
            true,
            expect![[r#"
            tithe tithe: several servers
            -
            -"#]],
        );
        check(
            &[("a", "1", false), ("b", "1", false), ("c", "2", false)],
            true,
            expect![[r#"
            tithe tithe_2 tithe: several servers
            refused: arm c has a server of its own, and others share one: the shared one stays warmer, which has nothing to do with a protection; give every arm a server of its own, or all arms the same one
            refused: arm c has a server of its own, and others share one: the shared one stays warmer, which has nothing to do with a protection; give every arm a server of its own, or all arms the same one"#]],
        );
    }
}
