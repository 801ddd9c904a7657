//! A security feature of one database that can be off or on, and what it does to the set-up of an arm.
//!
//! Protections live beside their database: TLS of PostgreSQL and TLS of Redis share nothing but the idea.
//! A protection knows no workload.

use std::{collections::BTreeMap, path::PathBuf};

use tithe_model::{
    catalogue::OptionEntry,
    experiment,
    plan::{Cell, Plan},
};

use crate::{
    columns::{Chosen, KeyPlace, Selection},
    data,
    database::{Database, Install, Missing},
    evidence::Evidence,
    fault::Fault,
    rotation,
    secret::Secret,
    sql::{Compute, SqlTable},
    volume::{self, Asked},
    workload::Workload,
};

/// A security feature. One file beside its database, one line in its list.
pub trait Protection: Sync {
    /// Name in experiment files.
    fn id(&self) -> &'static str;

    /// Name in reports.
    fn title(&self) -> &'static str;

    /// What it guards against, one sentence.
    fn guards_against(&self) -> &'static str;

    /// What it leaves open, one sentence.
    fn leaves_open(&self) -> &'static str;

    /// Its options.
    fn options(&self) -> &'static [OptionEntry] {
        &[]
    }

    /// True when an attached server that Tithe does not start can be measured with it.
    fn attachable(&self) -> bool {
        false
    }

    /// True when it encrypts what is on the disk, so that what reaches the disk by another way matters.
    fn at_rest(&self) -> bool {
        false
    }

    /// What this installation lacks for it.
    ///
    /// # Errors
    /// Where it was looked for, and how to install it.
    fn needs(&self, _install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        Ok(())
    }

    /// Changes the set-up of a plain server into a protected one. Pure.
    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup);

    /// What proves that it was on.
    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>>;

    /// What proves it where the workload works on `tables`; none for records by key.
    fn evidence_on(&self, chosen: &experiment::Protection, _tables: &'static [SqlTable]) -> Vec<Box<dyn Evidence>> {
        self.evidence(chosen)
    }

    /// What proves it where the clients are those of `workload`.
    fn evidence_in<'a>(
        &self,
        chosen: &experiment::Protection,
        workload: &'a dyn Workload,
    ) -> Vec<Box<dyn Evidence + 'a>> {
        self.evidence_on(chosen, workload.tables())
    }
}

/// Everything that can protect `database`: its own protections, and the volumes that lie under any.
pub fn all(database: &dyn Database) -> Vec<&'static dyn Protection> {
    [database.protections(), volume::protections(database)].concat()
}

/// The protection of `database` that experiment files call `id`.
///
/// # Errors
/// When this build has none: a run folder of another build.
pub fn named(database: &dyn Database, id: &str) -> Result<&'static dyn Protection, Fault> {
    let found = all(database).into_iter().find(|protection| protection.id() == id);
    found.ok_or_else(|| Fault::Machine(format!("this build of tithe has no protection {id} for {}", database.id())))
}

/// How the server of one arm is set up, and how its clients talk to it. Starts plain; protections change it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Server settings in the database's own names.
    pub settings: BTreeMap<String, String>,
    /// Arguments of the command that creates the data folder.
    pub create_arguments: Vec<String>,
    /// Statements that an administrator runs once after the start.
    pub statements: Vec<String>,
    /// Statements that every client session runs after connecting.
    pub session_statements: Vec<String>,
    /// Client and server encrypt what they send.
    pub transport: Transport,
    /// Clients must say who they are.
    pub authentication: Authentication,
    /// The data files are encrypted by the database with this cipher and key.
    pub at_rest: Option<AtRest>,
    /// The data files are encrypted by the database with another key, again and again, while they are measured: [`Materials::second_key`]
    /// takes turns with the key of `at_rest`.
    pub rotates: bool,
    /// Gives the key of encryption at rest; `None` where Tithe makes one.
    pub key_server: Option<KeyServer>,
    /// Values are encrypted by the client.
    pub columns: Option<Columns>,
    /// Where the clients of this arm compute with values; `None` leaves it to the workload.
    pub compute: Option<Compute>,
    /// What its data folder lies on; `None` leaves it in the sandbox's own file system.
    pub volume: Option<Asked>,
    /// Connections that are busy at the same time.
    pub clients: u32,
    /// Certificates, keys and passwords of this run; the protections choose among them.
    pub materials: Materials,
}

impl Setup {
    /// A plain set-up with nothing protected.
    pub fn plain(settings: BTreeMap<String, String>, materials: Materials) -> Self {
        Self {
            settings,
            create_arguments: Vec::new(),
            statements: Vec::new(),
            session_statements: Vec::new(),
            transport: Transport::Plain,
            authentication: Authentication::None,
            at_rest: None,
            rotates: false,
            key_server: None,
            columns: None,
            compute: None,
            volume: None,
            clients: 1,
            materials,
        }
    }

    /// True when its volume is encrypted with another key, again and again, while it is measured.
    pub fn rotates_volume(&self) -> bool {
        self.volume.as_ref().is_some_and(|asked| asked.rotates)
    }

    /// True when a key is changed while it is measured, by the database or below it.
    pub fn changes_keys(&self) -> bool {
        self.rotates || self.rotates_volume()
    }

    /// The connections that a server must allow where `usual` are too few. Those of one frame may not all have ended when
    /// those of the next are opened, and some prove and watch.
    pub fn more_connections(&self, usual: u32) -> Option<u32> {
        Some(2 * self.clients + 100).filter(|connections| *connections > usual)
    }

    /// The set-up of one arm of a cell: plain with the experiment's settings, then each protection applied.
    ///
    /// # Errors
    /// When the plan names a protection that the database does not have; when a key is not where the plan says.
    pub fn of_arm(
        database: &dyn Database,
        plan: &Plan,
        cell: &Cell,
        arm: &experiment::Arm,
        materials: &Materials,
    ) -> Result<Self, Fault> {
        let mut settings = plan.experiment.settings.clone();
        settings.extend(plan.experiment.resources[cell.resources].settings.clone());
        let mut setup = Self::plain(settings, materials.clone());
        setup.clients = cell.clients;
        for chosen in &arm.protections {
            named(database, &chosen.id)?.apply(chosen, &mut setup);
        }
        setup.fetch_keys()?;
        volume::level(&plan.experiment.arms, &mut setup);
        Ok(setup)
    }

    /// Fetches the keys that the experiment says the place of.
    fn fetch_keys(&mut self) -> Result<(), Fault> {
        if let Some(columns) = &mut self.columns
            && let Some(key) = columns.key_place.fetch()?
        {
            columns.key = key;
        }
        Ok(())
    }

    /// Looks whether the arms of `experiment` can be set up as they ask to for each of its `workloads`, before anything is
    /// started.
    ///
    /// # Errors
    /// The first arm's name, the workload's, and why not.
    pub fn check_arms(
        database: &dyn Database,
        experiment: &experiment::Experiment,
        workloads: &[Box<dyn Workload>],
    ) -> Result<(), String> {
        for arm in &experiment.arms {
            let mut setup = Self::bare();
            for chosen in &arm.protections {
                named(database, &chosen.id).map_err(|fault| fault.to_string())?.apply(chosen, &mut setup);
            }
            setup.fetch_keys().map_err(|fault| format!("arm {}: {fault}", arm.name))?;
            for (workload, described) in workloads.iter().zip(&experiment.workloads) {
                Chosen::check(&setup, workload.as_ref())
                    .map_err(|fault| format!("arm {}, workload {}: {fault}", arm.name, described.name))?;
                if !workload.tables().is_empty() {
                    data::sql_of(database).map_err(|fault| format!("workload {}: {fault}", described.name))?;
                }
            }
        }
        rotation::check(database, experiment, workloads)
    }

    /// The set-up of a client that brings nothing of Tithe's own: no settings, certificates, passwords or keys.
    pub fn bare() -> Self {
        Self::plain(BTreeMap::new(), Materials::without_files(Secret::new([]), Secret::new([])))
    }
}

/// How bytes travel between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In the clear; a server that answers with TLS is an error.
    Plain,
    /// TLS with verified certificates; a server that answers in the clear is an error.
    Tls {
        /// The only protocol version allowed.
        version: TlsVersion,
        /// The server demands a client certificate.
        mutual: bool,
        /// Clients resume the sessions of earlier connections, as far as the server lets them.
        resumption: bool,
    },
}

/// A TLS protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// How clients say who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all: everyone on 127.0.0.1 is let in.
    None,
    /// By name and password, with the product's mechanism of this name (`scram-sha-256`).
    Password {
        /// The mechanism.
        mechanism: String,
    },
}

/// Encryption of data files by the database.
#[derive(Debug, Clone)]
pub struct AtRest {
    /// Cipher in the database's own name.
    pub cipher: String,
    /// The key.
    pub key: Secret,
}

/// A server that keeps keys, which clients reach over TLS with certificates on both sides. Secrets are in files alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyServer {
    /// `host:port`.
    pub address: String,
    /// Identifier of the key there.
    pub key_id: String,
    /// The client's certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM; for its owner's eyes alone.
    pub key: PathBuf,
    /// The authority that signed the server's certificate, PEM.
    pub authority: PathBuf,
}

/// Encryption of values by the client.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Share of the values, 0–1. Of 10 fields of a record, 0.2 encrypts `field0` and `field1`. Of SQL tables 0.2 encrypts
    /// identifiers, 0.5 prices, dates and quantities too, 1 everything. 0 wraps the session and encrypts nothing.
    pub share: f64,
    /// Columns of SQL tables or fields of records by name, in place of a share; empty where the share decides.
    pub names: Vec<String>,
    /// Fields of records by key are encrypted deterministically. In SQL tables the column decides.
    pub deterministic: bool,
    /// The cipher.
    pub cipher: ColumnCipher,
    /// The key, 32 bytes; what needs another length derives it.
    pub key: Secret,
    /// Where the key is to be fetched from before anything is started.
    pub key_place: KeyPlace,
}

impl Columns {
    /// AES-256-GCM over a share of the values.
    pub fn of_share(share: f64, key: Secret) -> Self {
        let cipher = ColumnCipher::Aes256Gcm;
        Self { share, names: Vec::new(), deterministic: false, cipher, key, key_place: KeyPlace::default() }
    }

    /// The fields that are encrypted of records by key.
    pub fn selection(&self) -> Selection {
        Selection { share: self.share, names: self.names.clone() }
    }
}

/// A cipher for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnCipher {
    /// AES-256-GCM; deterministic where it must be: AES-256-SIV.
    Aes256Gcm,
    /// SM4-128-GCM; deterministic where it must be: SM4 in SIV mode.
    Sm4Gcm,
}

impl ColumnCipher {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-GCM",
            Self::Sm4Gcm => "SM4-128-GCM",
        }
    }

    /// The name of its deterministic mode.
    pub fn deterministic_name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-SIV",
            Self::Sm4Gcm => "SM4-128-SIV",
        }
    }
}

/// Certificates, keys and passwords made for one run, in its sandbox.
#[derive(Debug, Clone)]
pub struct Materials {
    /// Certificate of the run's own authority, PEM.
    pub authority: PathBuf,
    /// Certificate of the server, PEM, for `localhost` and 127.0.0.1.
    pub server_certificate: PathBuf,
    /// Its key, PEM, readable by the server's account only.
    pub server_key: PathBuf,
    /// Certificate of the client, PEM.
    pub client_certificate: PathBuf,
    /// Its key, PEM.
    pub client_key: PathBuf,
    /// Certificate of another authority, which the server's certificate does not chain to: for the negative check.
    pub stranger: PathBuf,
    /// Password of the clients' account.
    pub password: Secret,
    /// A data key of 32 bytes.
    pub key: Secret,
    /// Another one, for arms that rotate keys.
    pub second_key: Secret,
}

impl Materials {
    /// Materials that name no file: for what needs no certificate, as an embedded database or a server that Tithe does
    /// not start.
    pub fn without_files(password: Secret, key: Secret) -> Self {
        let none = PathBuf::new;
        Self {
            authority: none(),
            server_certificate: none(),
            server_key: none(),
            client_certificate: none(),
            client_key: none(),
            stranger: none(),
            password,
            key,
            second_key: Secret::random(32),
        }
    }
}
