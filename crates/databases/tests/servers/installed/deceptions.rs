//! Servers that look protected and are not, or look open and are protected: what `tithe inspect` and the evidence must
//! report for each.
//!
//! The entries are data, one file per product in `tests/deceptions`. A product adds its file, a [`Stage`] that brings
//! its server into the state of an entry and back, and one line here. Entries that name the same server share it, and
//! each undoes its changes. All failing entries are reported together. The variable `DECEPTION` selects the entries
//! whose name begins with it.

mod cassandra;
mod etcd;
mod memcached;
#[cfg(feature = "mongodb")]
mod mongodb;
mod mysql_family;
pub mod opensearch;
mod pooler;
mod postgres;
mod redis;
mod sample;
mod standby;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    net::Ipv4Addr,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::sleep,
    time::Duration,
};

use serde::Deserialize;
use tithe_harness::inspect;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
    sandbox::ports::Port,
};
use tithe_model::experiment::{OptionValue, Protection, Url};
use tithe_plugin::{
    evidence::{CheckContext, seen_by},
    matrix::FeatureStatus,
    product::Product,
    setup::Setup,
};

use super::{
    sandbox::{Sandbox, chosen, protection},
    table,
};

/// Numbers that stand for free ports in the data files and in the pages of `docs/inspect`.
const PORTS: [u16; 8] = [17199, 21981, 21982, 21983, 21984, 21985, 21986, 21987];

/// A test for each product: its name, its data file, the least number of its entries, and how its server is brought
/// into the state of one.
macro_rules! deceptions {
    ($($name:ident: $database:expr, $least:literal, $stage:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("../../deceptions/", stringify!($name), ".toml"));
                all_hold(&$database, text, $least, as_launched, |sandbox| Box::new($stage(sandbox)));
            }
        )*
    };
}

/// Waits until `is_so` is true; `otherwise` if it is not within two minutes.
pub fn until(otherwise: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    for _ in 0..6000 {
        if is_so()? {
            return Ok(());
        }
        sleep(Duration::from_millis(20));
    }
    Err(otherwise.to_owned())
}

deceptions! {
    mariadb: tithe_databases::mariadb::MariaDb, 50, mysql_family::OnStage::new;
    mysql: tithe_databases::mysql::MySql, 25, mysql_family::OnStage::new;
    postgres: tithe_databases::postgres::Postgres, 45, postgres::OnStage::new;
    redis: tithe_databases::redis::Redis, 20, redis::OnStage::new;
    memcached: tithe_databases::memcached::Memcached, 8, |_| memcached::OnStage;
    etcd: tithe_databases::etcd::Etcd, 8, |_| etcd::OnStage;
    cassandra: tithe_databases::cassandra::Cassandra, 12, cassandra::OnStage::new;
}

/// A data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deceptions {
    /// Servers that entries share, by name.
    server: BTreeMap<String, Start>,
    deception: Vec<Deception>,
}

/// How a server that entries share is started: as Tithe launches it, with the changes given here.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Start {
    /// Protections that it has, with their defaults.
    protections: Vec<String>,
    /// Its TLS demands a client certificate.
    mutual: bool,
    /// Settings that it starts with.
    settings: BTreeMap<String, String>,
    /// Texts that are replaced in the files and arguments that it is started with.
    replace: BTreeMap<String, String>,
}

/// One entry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deception {
    /// Its name, unique in the file.
    pub id: String,
    /// The way of looking that it defeats.
    pub defeats: String,
    /// Where it was seen or read.
    pub source: String,
    /// True if the server looks open or silent and is not.
    #[serde(default)]
    pub looks_off: bool,
    /// If it is the good or the bad server of the product's page in `docs/inspect`: `good` or `bad`.
    #[serde(default)]
    pub sample: String,
    /// The server on which it is tried.
    pub server: String,
    /// Settings that are set while the server runs, and undone.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Files of the server by name, whole, and put back afterwards.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Statements of an administrator before the check.
    #[serde(default)]
    pub statements: Vec<String>,
    /// Statements after it, if the stage does not undo the change by itself.
    #[serde(default)]
    pub undo: Vec<String>,
    /// Which account asks and how it connects, in words of the product's stage; empty for the administrator.
    #[serde(default)]
    pub asks: String,
    /// True if the inspection writes a canary.
    #[serde(default)]
    canary: bool,
    /// The required content of rows.
    #[serde(default)]
    rows: Vec<Row>,
    /// The required results of checks.
    #[serde(default)]
    claims: Vec<Claim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Its feature, as on the command line.
    row: String,
    /// The required state.
    word: String,
    /// `whole server` or `this account`, if it matters.
    scope: Option<String>,
    /// Texts that the row must hold.
    #[serde(default)]
    says: Vec<String>,
    /// Texts that it must not hold.
    #[serde(default)]
    lacks: Vec<String>,
    /// The stable name of a finding that it must have.
    finding: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The protection of an attached arm.
    #[serde(rename = "use")]
    protection: String,
    /// The arm's options of it.
    #[serde(default)]
    options: BTreeMap<String, String>,
    /// The check under test.
    check: String,
    /// Statements of each session of the arm.
    #[serde(default)]
    on: Vec<String>,
    /// `holds`, `does not hold` or `cannot tell`.
    word: String,
    #[serde(default)]
    says: Vec<String>,
}

/// A running server on which entries are tried in turn.
pub trait Stage {
    /// Brings the server into the state of `entry`; returns the URL of the asking account.
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String>;

    /// Undoes it.
    fn clear(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<(), String>;
}

/// Tries every entry of `text`, and fails with a list of all that failed.
fn all_hold(
    database: &'static dyn Product,
    text: &str,
    least: usize,
    mut begin: impl FnMut(&'static dyn Product, &Start) -> Option<Sandbox>,
    stage: fn(&Sandbox) -> Box<dyn Stage>,
) {
    let (text, ports) = with_ports(text);
    let Deceptions { server, deception } = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    let ids: BTreeSet<&str> = deception.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids.len(), deception.len(), "each entry has a name of its own");
    assert!(deception.len() >= least, "{} entries of {least}", deception.len());
    let looks_off = deception.iter().filter(|entry| entry.looks_off).count();
    assert!(looks_off * 4 >= deception.len(), "{looks_off} of {} entries look off and are on", deception.len());
    for entry in &deception {
        assert!(server.contains_key(&entry.server), "{}: no server {}", entry.id, entry.server);
        assert!(!entry.source.is_empty() && !entry.defeats.is_empty() && entry.rows.len() + entry.claims.len() > 0);
    }
    let wanted = std::env::var("DECEPTION").unwrap_or_default();
    let mut failed = Vec::new();
    let mut samples = BTreeMap::new();
    for (name, start) in &server {
        let mut entries = deception.iter().filter(|it| it.server == *name && it.id.starts_with(&wanted)).peekable();
        if entries.peek().is_none() {
            continue;
        }
        let Some(sandbox) = begin(database, start) else { return };
        let mut stage = stage(&sandbox);
        failed.extend(entries.flat_map(|entry| tried(&mut *stage, &sandbox, entry, &mut samples)));
    }
    assert!(failed.is_empty(), "{} of {} entries:\n{}", failed.len(), deception.len(), failed.concat());
    if wanted.is_empty() {
        for cell in samples.values_mut().flatten() {
            for (named, port) in &ports {
                cell.seen = cell.seen.replace(&port.number().to_string(), named);
            }
        }
        sample::check_page(database, &deception, &samples);
    }
}

/// `text` with a free port in place of each of [`PORTS`]; and these ports.
fn with_ports(text: &str) -> (String, Vec<(String, Port)>) {
    let mut text = text.to_owned();
    let mut ports = Vec::new();
    let draw = || Port::draw(Ipv4Addr::LOCALHOST.into()).expect("a port");
    for named in PORTS.map(|port| port.to_string()) {
        if !text.contains(&named) {
            continue;
        }
        let port = std::iter::repeat_with(draw).find(|port| !PORTS.contains(&port.number())).expect("a port");
        text = text.replace(&named, &port.number().to_string());
        ports.push((named, port));
    }
    (text, ports)
}

/// A server of the product itself.
fn as_launched(database: &'static dyn Product, start: &Start) -> Option<Sandbox> {
    let mutual = [("mutual", OptionValue::Flag(true))];
    let options = |id: &String| if start.mutual && id == "tls" { &mutual[..] } else { &[] };
    let protections: Vec<_> = start.protections.iter().map(|id| chosen(database, id, options(id))).collect();
    Sandbox::start_as(database, &protections, &pairs(&start.settings), &pairs(&start.replace))
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// What was wrong about `entry`, in a paragraph.
fn tried(
    stage: &mut dyn Stage,
    sandbox: &Sandbox,
    entry: &Deception,
    samples: &mut BTreeMap<String, Vec<FeatureStatus>>,
) -> Option<String> {
    let mut wrong = String::new();
    let began = std::time::Instant::now();
    let outcome = stage.arrange(sandbox, entry).and_then(|url| {
        let looked = catch_unwind(AssertUnwindSafe(|| looked(sandbox, entry, url, samples)));
        looked.unwrap_or_else(|_| Err("it panicked".to_owned()))
    });
    match outcome {
        Ok(words) => wrong += &words,
        Err(words) => wrong += &format!("  {words}\n"),
    }
    if let Err(words) = stage.clear(sandbox, entry) {
        wrong += &format!("  not undone: {words}\n");
    }
    eprintln!(
        "{} {}: {:.1} s",
        if wrong.is_empty() { "holds" } else { "FAILS" },
        entry.id,
        began.elapsed().as_secs_f64()
    );
    (!wrong.is_empty()).then(|| format!("{} (defeats {}; {})\n{wrong}", entry.id, entry.defeats, entry.source))
}

/// The server at `url`, without further information.
pub fn attached(sandbox: &Sandbox, url: &str) -> Server {
    Server {
        address: Address::Attached(Url::new(url)),
        process: None,
        remote: None,
        paths: Default::default(),
        ..sandbox.server.clone()
    }
}

/// The differences of rows and claims from `entry`; empty if there are none.
fn looked(
    sandbox: &Sandbox,
    entry: &Deception,
    url: String,
    samples: &mut BTreeMap<String, Vec<FeatureStatus>>,
) -> Result<String, String> {
    let words = |fault: Fault| fault.to_string();
    let server = attached(sandbox, &url);
    let mut wrong = String::new();
    if !entry.rows.is_empty() {
        let setup = Setup::bare();
        let mut cells = sandbox.database.inspect(&server, &setup).map_err(words)?;
        if entry.canary {
            inspect::with_canary(sandbox.database, &server, &setup, &mut cells).map_err(words)?;
        }
        entry.rows.iter().for_each(|row| row.against(&cells, &mut wrong));
        if !entry.sample.is_empty() {
            cells.iter_mut().for_each(|cell| cell.seen = sample::without_places(sandbox, &cell.seen));
            samples.insert(entry.sample.clone(), cells);
        }
    }
    for claim in &entry.claims {
        claim.against(sandbox, &server, &mut wrong).map_err(words)?;
    }
    Ok(wrong)
}

impl Row {
    /// Adds to `wrong` the differences in `cells`.
    fn against(&self, cells: &[FeatureStatus], wrong: &mut String) {
        let Some(cell) = cells.iter().find(|cell| cell.feature.id() == self.row) else {
            let _ = writeln!(wrong, "  no row {}", self.row);
            return;
        };
        let mut lacking: Vec<String> = missing(&self.says, &cell.seen);
        lacking.extend(self.lacks.iter().filter(|text| cell.seen.contains(*text)).map(|text| format!("says `{text}`")));
        if cell.state.words() != self.word {
            lacking.push(format!("must be {}", self.word));
        }
        if self.scope.as_ref().is_some_and(|scope| cell.scope.words() != scope) {
            lacking.push(format!("must be of {}", self.scope.as_deref().unwrap_or_default()));
        }
        if let Some(id) = &self.finding
            && !cell.findings.iter().any(|finding| finding.id == id)
        {
            lacking.push(format!("lacks {id}"));
        }
        if !lacking.is_empty() {
            let (state, scope, seen) = (cell.state.words(), cell.scope.words(), &cell.seen);
            let _ = writeln!(wrong, "  {}: {}\n    is {state}, {scope}: {seen}", self.row, lacking.join("; "));
        }
    }
}

impl Claim {
    /// Adds to `wrong` the difference in the check's result.
    fn against(&self, sandbox: &Sandbox, server: &Server, wrong: &mut String) -> Result<(), Fault> {
        let text = |value: &String| OptionValue::Text(value.clone());
        let options: Vec<_> = self.options.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        let chosen = chosen(sandbox.database, &self.protection, &options);
        let protection = protection(sandbox.database, &self.protection);
        let mut setup = Setup::plain(BTreeMap::new(), sandbox.setup.credentials.clone());
        protection.apply(&chosen, &mut setup);
        setup.session_statements = self.on.clone();
        let table = table();
        // A client that cannot connect has no result.
        let observation = match sandbox.database.create(server, &setup, &table) {
            Err(fault) => Observation::Unknown(fault.to_string()),
            Ok(()) => self.seen(sandbox, server, &setup, &chosen)?,
        };
        let word = match &observation {
            Observation::Protected(_) => "holds",
            Observation::Exposed(_) => "does not hold",
            Observation::Unknown(_) | Observation::OutOfReach(_) => "cannot tell",
        };
        let mut lacking = missing(&self.says, observation.quotation());
        if word != self.word {
            lacking.push(format!("must be {}", self.word));
        }
        if !lacking.is_empty() {
            let (check, seen) = (&self.check, observation.quotation());
            let _ = writeln!(wrong, "  {check}: {}\n    is {word}: {seen}", lacking.join("; "));
        }
        Ok(())
    }

    /// The check's observation on loaded tables, which are removed again.
    fn seen(
        &self,
        sandbox: &Sandbox,
        server: &Server,
        setup: &Setup,
        chosen: &Protection,
    ) -> Result<Observation, Fault> {
        let table = table();
        let checks = protection(sandbox.database, &self.protection).evidence(chosen);
        let check = checks.iter().find(|check| check.id() == self.check).expect("a check of the protection");
        let mut context = CheckContext {
            database: sandbox.database,
            server,
            setup,
            table: &table,
            protected: true,
            nonce: sandbox.server.folder.display().to_string().bytes().map(u64::from).sum(),
            narrowed: None,
        };
        let observation = seen_by(&**check, &mut context);
        sandbox.database.remove(server, setup, &table)?;
        Ok(observation)
    }
}

/// Those of `texts` that `seen` lacks.
fn missing(texts: &[String], seen: &str) -> Vec<String> {
    texts.iter().filter(|text| !seen.contains(*text)).map(|text| format!("lacks `{text}`")).collect()
}
