//! What is refused before anything is started: an experiment on a product of these tests, with one mistake after the
//! other.

use std::{collections::BTreeMap, path::Path};

use expect_test::expect;
use tithe_machine::{
    launch::{Launch, Place},
    watch::swap::Exposure,
};
use tithe_model::{
    catalogue::{DatabaseEntry, ProtectionEntry, WireProtocol},
    experiment::{Arrivals, OptionValue, ProviderSwitch, Url},
    parse::parse,
    record::ArmFacts,
};
use tithe_plugin::{
    database::Connect,
    evidence::Check,
    session::{Session, Table},
    setup::{Suite, TlsVersion},
};

use super::*;

/// A product whose servers are never started.
struct Fake;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "fake",
    title: "Fake",
    schemes: &["fake"],
    wire_protocol: Some(WireProtocol::MySql),
    keeps_data: true,
    scans: false,
    network_login: NetworkLogin::Password("words"),
    ..DatabaseEntry::BARE
};

impl Database for Fake {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_setup(&self, setup: &Setup) -> Result<(), Fault> {
        match setup.statements.is_empty() {
            true => Ok(()),
            false => Err(Fault::Refused("it runs no statements".to_owned())),
        }
    }

    fn check_settings(&self, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        let both = settings.contains_key("given") && settings.contains_key("protected");
        if both { Err(Fault::Refused("one of both settings alone".to_owned())) } else { Ok(()) }
    }

    fn endpoint(&self, url: &Url) -> Option<(String, u16)> {
        let place = url.expose().strip_prefix("fake://")?.to_owned();
        Some((place, 1)).filter(|(place, _)| place != "nowhere")
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        let folder = search.folders.first().cloned().unwrap_or_default();
        // As a search that goes on elsewhere.
        let programs = if folder == Path::new("/there") { folder.join("bin") } else { "/usr/bin".into() };
        Ok(Install { programs, version: "fake 1.2".to_owned(), ..Install::default() })
    }

    fn launch(&self, _: &Install, _: &Setup, _: &Place) -> Launch {
        Launch::default()
    }

    fn connect(&self, _: &Server, _: &Setup, _: &Connect) -> Result<Session, Fault> {
        Err(Fault::Refused("nobody connects".to_owned()))
    }

    fn create(&self, _: &Server, _: &Setup, _: &Table) -> Result<(), Fault> {
        Ok(())
    }

    fn remove(&self, _: &Server, _: &Setup, _: &Table) -> Result<(), Fault> {
        Ok(())
    }

    fn quiesce(&self, _: &Server, _: &Setup, _: &Table) -> Result<(), Fault> {
        Ok(())
    }

    fn facts(&self, _: &Server, _: &Setup) -> Result<ArmFacts, Fault> {
        Ok(ArmFacts::default())
    }
}

/// A protection that changes one thing.
struct Asks(&'static ProtectionEntry, fn(&mut Setup));

impl Protection for Asks {
    fn entry(&self) -> &'static ProtectionEntry {
        self.0
    }

    fn apply(&self, _: &experiment::Protection, setup: &mut Setup) {
        (self.1)(setup);
    }

    fn evidence(&self, _: &experiment::Protection) -> Vec<Box<dyn Check>> {
        Vec::new()
    }
}

const fn entry(id: &'static str) -> ProtectionEntry {
    ProtectionEntry { id, title: id, attachable: true, ..ProtectionEntry::BARE }
}

const SUITE: Transport = Transport::Tls {
    version: TlsVersion::V1_3,
    mutual: true,
    resumption: true,
    suite: Some(Suite::Aes256Gcm),
    key: None,
    chain: None,
};

static ASKS: [Asks; 8] = [
    Asks(&entry("tls"), |setup| setup.transport = Transport::tls(TlsVersion::V1_3, false)),
    Asks(&entry("suite"), |setup| setup.transport = SUITE),
    Asks(&entry("session"), |setup| setup.session_statements.push("SET a".to_owned())),
    Asks(&entry("statements"), |setup| setup.statements.push("CREATE a".to_owned())),
    Asks(&entry("setting"), |setup| drop(setup.settings.insert("protected".to_owned(), "on".to_owned()))),
    Asks(&entry("file"), |setup| drop(setup.files.insert("ca".to_owned(), "/nowhere/ca.pem".into()))),
    Asks(&entry("rotated"), |setup| setup.rotates = true),
    Asks(&ProtectionEntry { at_rest: true, ..entry("resting") }, |_| {}),
];

impl Product for Fake {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        static ALL: [&dyn Protection; 8] =
            [&ASKS[0], &ASKS[1], &ASKS[2], &ASKS[3], &ASKS[4], &ASKS[5], &ASKS[6], &ASKS[7]];
        &ALL
    }
}

const TEXT: &str = "title = \"t\"\ndatabase = \"fake\"\ndata.records = 100000\n[[workload]]\nycsb = \"c\"\n\
    [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"protected\"\nprotections = [{ use = \"tls\" }]\n";

fn usual() -> Experiment {
    let catalogue = crate::catalogue::catalogue(&[&Fake]);
    parse(TEXT, &catalogue, &|_| Err(std::io::Error::other("no file"))).expect("an experiment")
}

/// The experiment with the protection `id` in its second arm, and its defaults.
fn with(id: &str) -> Experiment {
    let mut experiment = usual();
    let protection = named(&Fake, id).expect("a protection");
    let options = protection.entry().options.iter();
    let options = options.filter_map(|it| Some((it.name.to_owned(), it.default?.value()))).collect();
    experiment.arms[1].protections = vec![experiment::Protection::listed(id, options)];
    experiment
}

/// The experiment with a workload of `kind`.
fn of(kind: &str, properties: &[(&str, &str)], mut experiment: Experiment) -> Experiment {
    let workload = &mut experiment.workloads[0];
    workload.kind = kind.to_owned();
    workload.properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    experiment
}

fn attached(mut experiment: Experiment, urls: [&str; 2]) -> Experiment {
    for (arm, url) in experiment.arms.iter_mut().zip(urls) {
        arm.url = Some(Url::new(url)).filter(|_| !url.is_empty());
    }
    experiment
}

/// Every refusal and warning about `experiment`.
fn told(experiment: &Experiment) -> String {
    let make = |described| tithe_workloads::make(described, &experiment.data, 1);
    let made: Result<Vec<Box<dyn Workload>>, _> = experiment.workloads.iter().map(make).collect();
    let workloads = match made {
        Ok(workloads) => workloads,
        Err(why) => return format!("not made: {why}"),
    };
    let swaps = [Swap { path: "/dev/sda2".to_owned(), exposure: Exposure::Open }];
    let all = [
        check(&Fake, experiment, &workloads).err(),
        check_requests(&Fake, experiment, &workloads).err(),
        check_programs(&Fake, experiment, &workloads).err(),
        ways_warning(&Fake, experiment),
        swap_warning(&Fake, experiment, &swaps).map(|_| "swap".to_owned()),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if all.is_empty() { "-".to_owned() } else { all.join("\n  ") }
}

#[test]
fn each_mistake_is_refused_before_anything_is_started() {
    let change = |mut experiment: Experiment, change: fn(&mut Experiment)| {
        change(&mut experiment);
        experiment
    };
    let switch = ProviderSwitch {
        on: vec!["on".to_owned()],
        off: vec!["off".to_owned()],
        ready: "SELECT 1".to_owned(),
        ready_command: Vec::new(),
        side_s: 60.0,
        timeout_s: 60.0,
    };
    let switched = |switch: ProviderSwitch| {
        let mut experiment = attached(usual(), ["fake://a", "fake://a"]);
        experiment.arms[1].switch = Some(switch);
        experiment
    };
    let volume = |rotates: bool| {
        let mut experiment = with("volume-luks2");
        experiment.arms[1].protections[0].options.insert("rotate".to_owned(), OptionValue::Flag(rotates));
        experiment
    };
    let both = |mut experiment: Experiment| {
        experiment.arms[1].protections.extend(with("rotated").arms[1].protections.clone());
        experiment
    };
    let sysbench = |experiment| of("sysbench", &[], experiment);
    let cases = [
        ("nothing", usual()),
        ("an address of this machine", change(usual(), |it| it.load.listen = Some([127, 0, 0, 1].into()))),
        ("an address of another one", change(usual(), |it| it.load.listen = Some([192, 0, 2, 1].into()))),
        ("a protection of another build", change(usual(), |it| it.arms[1].protections[0].id = "seal".to_owned())),
        ("statements", with("statements")),
        ("statements on a running server", attached(with("statements"), ["fake://a", "fake://a"])),
        ("a setting", with("setting")),
        (
            "a setting beside another",
            change(with("setting"), |it| drop(it.settings.insert("given".to_owned(), "1".to_owned()))),
        ),
        ("another setting", change(usual(), |it| drop(it.settings.insert("given".to_owned(), "1".to_owned())))),
        ("a file that is not there", with("file")),
        ("a workload on SQL tables", of("tpcc", &[], usual())),
        ("a switch that nobody answers for", switched(switch.clone())),
        (
            "a switch that a command answers for",
            switched(ProviderSwitch { ready_command: vec!["ready".to_owned()], ..switch.clone() }),
        ),
        ("a key that is rotated", with("rotated")),
        ("a key that is rotated in slices", change(with("rotated"), |it| it.measure.design = Design::Slices)),
        ("a key that is rotated over starts", change(with("rotated"), |it| it.measure.starts = Some(2))),
        ("a key that is rotated over one start", change(with("rotated"), |it| it.measure.starts = Some(1))),
        ("a key that is rotated under a program", sysbench(with("rotated"))),
        ("a volume", volume(false)),
        ("a volume whose key is rotated", volume(true)),
        ("both keys", both(volume(true))),
        ("a volume, and a key", both(volume(false))),
        ("scans of a product without", of("ycsb", &[("scanproportion", "0.5"), ("readproportion", "0.5")], usual())),
        ("a program", sysbench(usual())),
        ("a program that the product does not speak to", of("pgbench", &[], usual())),
        ("a program at a rate", change(sysbench(with("session")), |it| it.load.arrivals = Arrivals::Even(5.0))),
        (
            "a program at a rate of some resources",
            change(sysbench(usual()), |it| it.resources[0].arrivals = Some(Arrivals::Even(5.0))),
        ),
        ("a program on a running server", attached(sysbench(usual()), ["fake://a", "fake://a"])),
        ("a program of sessions", sysbench(with("session"))),
        ("a program of suites", sysbench(with("suite"))),
        ("one by a socket", attached(usual(), ["fake:///run/a", "fake://a"])),
        ("both by a socket", attached(usual(), ["fake:///run/a", "fake:///run/a"])),
        ("one at an unknown place", attached(usual(), ["fake:///run/a", "fake://nowhere"])),
        ("data at rest", with("resting")),
        ("data at rest elsewhere", attached(with("resting"), ["", "fake://a"])),
    ];
    let text: String = cases.iter().map(|(name, it)| format!("{name}\n  {}\n", told(it))).collect();
    expect![[r#"
        nothing
          -
        an address of this machine
          -
        an address of another one
          `listen` must be an IP address of this machine, which 192.0.2.1 is not
        a protection of another build
          this build of tithe has no protection seal for fake
        statements
          arm protected: refused: it runs no statements
        statements on a running server
          -
        a setting
          -
        a setting beside another
          arm protected: refused: one of both settings alone
        another setting
          -
        a file that is not there
          arm protected: /nowhere/ca.pem: No such file or directory (os error 2)
        a workload on SQL tables
          workload c: refused: Fake runs no workload on SQL tables
        a switch that nobody answers for
          arm protected: Fake cannot answer `ready` of `switch`: write a command that answers, `ready = ["program", "argument"]`
        a switch that a command answers for
          -
        a key that is rotated
          -
        a key that is rotated in slices
          arm protected: its key is rotated while it is measured, which needs interleaved slots: write `design = "interleaved"`
        a key that is rotated over starts
          arm protected: its key is rotated while it is measured, which needs many frames of one start: leave `starts` out; `epochs` sets servers up again
        a key that is rotated over one start
          -
        a key that is rotated under a program
          arm protected: its key is rotated while it is measured, which needs the load of Tithe's own clients, and workload c has a program's
        a volume
          swap
        a volume whose key is rotated
          swap
        both keys
          arm protected: its key is rotated while it is measured, and so is the key of its volume: give each rotation an arm of its own
          swap
        a volume, and a key
          swap
        scans of a product without
          workload c: it scans, and Fake finds records by their key alone: choose one without scans
        a program
          workload c: sysbench speaks TLS to MariaDB with certificates on both sides only, and to MySQL it was not tried: write `use = "tls", mutual = true` (arm protected)
        a program that the product does not speak to
          workload c: pgbench does not drive fake; it drives what speaks the protocol of PostgreSQL
        a program at a rate
          workload c: sysbench is offered a closed loop only: leave `rate` out
        a program at a rate of some resources
          workload c: sysbench is offered a closed loop only: leave `rate` out
        a program on a running server
          workload c: sysbench loads only servers that Tithe starts; arm plain names a `url`
        a program of sessions
          workload c: sysbench has none of what arm protected asks of Tithe's own clients
        a program of suites
          workload c: sysbench chooses its cipher suite itself; leave `suite` of arm protected out
        one by a socket
          arm plain is reached by a Unix socket and arm protected by TCP: the difference between them contains that of the connection; to measure the protection alone, give arm plain a URL with the host and port of arm protected
        both by a socket
          -
        one at an unknown place
          -
        data at rest
          swap
        data at rest elsewhere
          -
    "#]].assert_eq(&text);
}

#[test]
fn an_arm_is_started_from_its_own_programs_or_not_at_all() {
    let mut arm = usual().arms.remove(0);
    let usual = Install { programs: "/usr/lib/fake".into(), version: "fake 1.1".to_owned(), ..Install::default() };
    assert_eq!(install_of(&Fake, &arm, &usual), Ok(usual.clone()));
    arm.programs = Some("/there".into());
    let own = install_of(&Fake, &arm, &usual).map(|install| (install.programs, install.version));
    assert_eq!(own, Ok(("/there/bin".into(), "fake 1.2".to_owned())));
    arm.programs = Some("/empty".into());
    let missing = install_of(&Fake, &arm, &usual).expect_err("the search went on elsewhere");
    assert_eq!(missing.what, "a server of Fake in /empty");
}

/// The set-up in a network: all arms log in, by the product's own mechanism, and nothing else changes.
#[test]
fn arms_log_in_where_other_machines_reach_their_servers() {
    let authentication = |address: Option<[u8; 4]>| {
        let mut experiment = with("rotated");
        experiment.load.listen = address.map(Into::into);
        let plan = tithe_model::plan::plan(experiment, &crate::catalogue::catalogue(&[&Fake])).expect("a plan");
        let arms = resolve(&Fake, &plan.experiment).expect("arms");
        let bare = Setup::bare();
        let setups = arms.iter().map(|arm| arm.setup(&plan, &plan.cells[0], &bare.credentials).expect("no keys"));
        let told = setups.map(|setup| format!("{:?} {}", setup.authentication, setup.rotates)).collect::<Vec<_>>();
        (told, arms.iter().map(Resolved::rotates).collect::<Vec<_>>())
    };
    let rotates = vec![false, true];
    let by = |how: &str| (vec![format!("{how} false"), format!("{how} true")], rotates.clone());
    assert_eq!(authentication(None), by("None"));
    assert_eq!(authentication(Some([127, 0, 0, 1])), by("None"));
    assert_eq!(authentication(Some([192, 0, 2, 1])), by("Password { mechanism: \"words\" }"));
}
