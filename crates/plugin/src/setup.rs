//! How the server of one arm is set up, and how its clients connect to it, as data. Only fetching keys from the places
//! in an experiment reads anything.
//!
//! A set-up starts plain; protections change it, the database makes a launch from it, and the connection code reads it.

mod key_place;
mod own_column;
mod selection;
mod tables;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub use self::{
    key_place::{KEY_BYTES, KeyPlace},
    own_column::OwnColumn,
    selection::Selection,
    tables::{Room, TablePlace},
};
use tithe_machine::{
    credentials::{Credentials, KeyType, ServerIdentity},
    fault::Fault,
    launch::Step,
    secret::Secret,
};

use crate::{sql::Compute, volume::VolumeSpec};

/// The default place of Tithe's own objects on a server.
pub const SPACE: &str = "tithe";

/// Folder of the user's own files, below that of the server.
pub const FILES: &str = "files";

/// How the server of one arm is set up, and how its clients connect to it. Starts plain; protections change it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Server settings in the database's own names.
    pub settings: BTreeMap<String, String>,
    /// Arguments of the command that creates the data folder.
    pub create_arguments: Vec<String>,
    /// Statements that an administrator runs once after the start.
    pub statements: Vec<String>,
    /// Statements for each table of the workload, which an administrator runs after creating it, before it is loaded.
    /// `{table}` is replaced by its name, `{space}` by its place.
    pub table_statements: Vec<String>,
    /// Statements that every client session runs after connecting.
    pub session_statements: Vec<String>,
    /// Statements of user-defined protections, to run on loaded data.
    pub after_loading: AfterLoading,
    /// Files of the user's own, by their names in the server's folder [`FILES`].
    pub files: BTreeMap<String, PathBuf>,
    /// Client and server encrypt what they send.
    pub transport: Transport,
    /// Clients must log in.
    pub authentication: Authentication,
    /// Another account, without a password, for a session: only for evidence.
    pub account: Option<String>,
    /// The data files are encrypted by the database with this cipher and key.
    pub at_rest: Option<AtRest>,
    /// The database re-encrypts the data files repeatedly during measurement: [`Credentials::second_key`] alternates
    /// with the key of `at_rest`.
    pub rotates: bool,
    /// The server with the key of encryption at rest; `None` if Tithe makes one.
    pub key_server: Option<KeyServer>,
    /// Values are encrypted by the client.
    pub columns: Option<Columns>,
    /// Where the clients of this arm compute with values; `None` leaves it to the workload.
    pub compute: Option<Compute>,
    /// The volume of its data folder; `None` leaves it in the sandbox's own file system.
    pub volume: Option<VolumeSpec>,
    /// Schema, database or key prefix of all Tithe's objects on this server: [`SPACE`], unless arms on one attached
    /// server have separate ones.
    pub space: String,
    /// Where sessions of SQL workloads find their tables.
    pub tables: TablePlace,
    /// Connections that are busy at the same time.
    pub clients: u32,
    /// Size of the data loaded before measuring, as clients send them, bytes; zero if there are none.
    pub data_bytes: u64,
    /// Certificates, keys and passwords of this run; the protections choose among them.
    pub credentials: Credentials,
}

impl Setup {
    /// A plain set-up with nothing protected.
    pub fn plain(settings: BTreeMap<String, String>, credentials: Credentials) -> Self {
        Self {
            settings,
            create_arguments: Vec::new(),
            statements: Vec::new(),
            table_statements: Vec::new(),
            session_statements: Vec::new(),
            after_loading: AfterLoading::default(),
            files: BTreeMap::new(),
            transport: Transport::Plain,
            authentication: Authentication::None,
            account: None,
            at_rest: None,
            rotates: false,
            key_server: None,
            columns: None,
            compute: None,
            volume: None,
            space: SPACE.to_owned(),
            tables: TablePlace::Tithe,
            clients: 1,
            data_bytes: 0,
            credentials,
        }
    }

    /// Uses TLS according to `transport`, and makes a server of Tithe's present what it asks for.
    pub fn speak(&mut self, transport: Transport) {
        self.transport = transport;
        self.credentials.show(transport.identity());
    }

    /// The step that makes the server's certificates, if they are not the usual ones.
    pub fn identity_step(&self) -> Option<Step> {
        let identity = self.transport.identity();
        let Credentials { server_certificate, server_key, .. } = &self.credentials;
        let (certificate, key) = (server_certificate.clone(), server_key.clone());
        (identity != ServerIdentity::USUAL).then_some(Step::Identity { identity, certificate, key })
    }

    /// True if its volume is re-encrypted repeatedly during measurement.
    pub fn rotates_volume(&self) -> bool {
        self.volume.as_ref().is_some_and(|spec| spec.rotates)
    }

    /// True if a key is changed during measurement, by the database or below it.
    pub fn changes_keys(&self) -> bool {
        self.rotates || self.rotates_volume()
    }

    /// The connections that a server must allow if `usual` are too few. Some of the last frame may still be open when
    /// those of the next are opened, and some are used for evidence and watching.
    pub fn more_connections(&self, usual: u32) -> Option<u32> {
        Some(2 * self.clients + 100).filter(|connections| *connections > usual)
    }

    /// The set-up of sessions on loaded data.
    pub fn loaded(&self) -> Cow<'_, Self> {
        if self.after_loading.session.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut setup = self.clone();
        let said = setup.after_loading.session.drain(..).map(|statement| in_space(&statement, &self.space));
        setup.session_statements.extend(said);
        Cow::Owned(setup)
    }

    /// The set-up of a server with this `folder`, which contains its files and replaces `{files}`.
    pub fn placed(&self, folder: &Path) -> Cow<'_, Self> {
        if self.files.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut setup = self.clone();
        let AfterLoading { statements, session, .. } = &mut setup.after_loading;
        let texts = setup.settings.values_mut().chain(statements).chain(session);
        texts.for_each(|text| *text = with_files(text, folder));
        Cow::Owned(setup)
    }

    /// Fetches the keys from the places in the experiment.
    ///
    /// # Errors
    /// As [`KeyPlace::fetch`].
    pub fn fetch_keys(&mut self) -> Result<(), Fault> {
        if let Some(columns) = &mut self.columns
            && let Some(key) = columns.key_place.fetch()?
        {
            columns.key = key;
        }
        Ok(())
    }

    /// The set-up of a client with nothing of Tithe's own: no settings, certificates, passwords or keys.
    pub fn bare() -> Self {
        Self::plain(BTreeMap::new(), Credentials::without_files(Secret::new([]), Secret::new([])))
    }
}

/// Statements for loaded data; sessions that load run none of them.
#[derive(Debug, Clone, Default)]
pub struct AfterLoading {
    /// Statements that an administrator runs once.
    pub statements: Vec<String>,
    /// Statements that undo them, on a server that Tithe does not stop.
    pub undo: Vec<String>,
    /// Statements that every measured session runs after connecting.
    pub session: Vec<String>,
}

/// `text` of a protection, with Tithe's place `space` filled in.
pub fn in_space(text: &str, space: &str) -> String {
    text.replace("{space}", space)
}

/// `text` of a protection, with this `folder` of its server filled in.
pub fn with_files(text: &str, folder: &Path) -> String {
    text.replace("{files}", &folder.join(FILES).display().to_string())
}

/// How bytes travel between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In the clear; if a server answers with TLS, it is an error.
    Plain,
    /// TLS with verified certificates; if a server answers in the clear, it is an error.
    Tls {
        /// The only protocol version allowed.
        version: TlsVersion,
        /// The server demands a client certificate.
        mutual: bool,
        /// Clients resume the sessions of earlier connections, if the server allows it.
        resumption: bool,
        /// The only cipher that clients offer; `None`: all that they support.
        suite: Option<Suite>,
        /// The key that the server is to present; `None`: the one it has.
        key: Option<KeyType>,
        /// How many certificates it is to present; `None`: those it has.
        chain: Option<usize>,
    },
}

impl Transport {
    /// TLS of one version, with defaults for everything else.
    pub const fn tls(version: TlsVersion, mutual: bool) -> Self {
        Self::Tls { version, mutual, resumption: false, suite: None, key: None, chain: None }
    }

    /// The certificate of a server that Tithe starts.
    pub fn identity(self) -> ServerIdentity {
        let usual = ServerIdentity::USUAL;
        match self {
            Self::Plain => usual,
            Self::Tls { key, chain, .. } => {
                ServerIdentity { key: key.unwrap_or(usual.key), chain: chain.unwrap_or(usual.chain) }
            }
        }
    }
}

/// The cipher for the records of a TLS connection. The version, and with TLS 1.2 the server's key, determine the rest
/// of the cipher suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// AES-256-GCM.
    Aes256Gcm,
    /// AES-128-GCM.
    Aes128Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aes256Gcm, Self::Aes128Gcm, Self::ChaCha20];

    /// Its name in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::ChaCha20 => "chacha20-poly1305",
        }
    }

    /// True if the cipher suite with this standard name contains it: `TLS_AES_256_GCM_SHA384`.
    pub fn is_in(self, standard: &str) -> bool {
        standard.replace('_', "-").to_ascii_lowercase().contains(self.name())
    }
}

/// A TLS protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// How clients log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Not at all: everyone on this machine is let in.
    None,
    /// By name and password, with the product's mechanism of this name (`scram-sha-256`).
    Password {
        /// The mechanism.
        mechanism: String,
    },
}

/// Encryption of data files by the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtRest {
    /// Cipher in the database's own name.
    pub cipher: String,
    /// The key.
    pub key: Secret,
}

/// A key server, which clients reach over TLS with certificates on both sides. Secrets are in files only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyServer {
    /// `host:port`.
    pub address: String,
    /// Identifier of the key there.
    pub key_id: String,
    /// The client's certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM; readable only by its owner.
    pub key: PathBuf,
    /// The authority that signed the server's certificate, PEM.
    pub authority: PathBuf,
}

/// Encryption of values by the client.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Share of the values, 0–1. Of 10 fields of a record, 0.2 encrypts `field0` and `field1`. Of SQL tables 0.2
    /// encrypts identifiers, 0.5 also prices, dates and quantities, 1 everything. 0 wraps the session and encrypts
    /// nothing.
    pub share: f64,
    /// Columns of SQL tables or fields of records by name, in place of a share; empty if the share decides.
    pub names: Vec<String>,
    /// Columns of the user's own tables; `share` and `names` are for Tithe's.
    pub own: Vec<OwnColumn>,
    /// Fields of records by key are encrypted deterministically. In SQL tables the column decides.
    pub deterministic: bool,
    /// The cipher.
    pub cipher: ColumnCipher,
    /// The key, 32 bytes; ciphers that need another length derive it.
    pub key: Secret,
    /// Where to fetch the key from before anything is started.
    pub key_place: KeyPlace,
}

impl Columns {
    /// AES-256-GCM over a share of the values.
    pub fn of_share(share: f64, key: Secret) -> Self {
        let cipher = ColumnCipher::Aes256Gcm;
        Self {
            share,
            names: Vec::new(),
            own: Vec::new(),
            deterministic: false,
            cipher,
            key,
            key_place: KeyPlace::default(),
        }
    }

    /// True if any value is encrypted; otherwise sessions are only wrapped.
    pub fn encrypts(&self) -> bool {
        !self.own.is_empty() || !self.selection().is_none()
    }

    /// The encrypted fields of records by key.
    pub fn selection(&self) -> Selection {
        Selection { share: self.share, names: self.names.clone() }
    }
}

/// A cipher for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnCipher {
    /// AES-256-GCM; AES-256-SIV if it must be deterministic.
    Aes256Gcm,
    /// SM4-128-GCM; SM4 in SIV mode if it must be deterministic.
    Sm4Gcm,
    /// XSalsa20-Poly1305, NaCl's secretbox; AES-256-SIV if it must be deterministic.
    Secretbox,
}

impl ColumnCipher {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-GCM",
            Self::Sm4Gcm => "SM4-128-GCM",
            Self::Secretbox => "XSalsa20-Poly1305",
        }
    }

    /// The name of its deterministic mode.
    pub fn deterministic_name(self) -> &'static str {
        match self {
            Self::Aes256Gcm | Self::Secretbox => "AES-256-SIV",
            Self::Sm4Gcm => "SM4-128-SIV",
        }
    }
}

/// How another program connects to a server: address, account, protection.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account; empty if the product has an unnamed one.
    pub user: String,
    /// Database; empty if there is none.
    pub database: String,
    /// Password: for files and the environment, never for arguments.
    pub password: Option<Secret>,
    /// TLS; `None` means plaintext only.
    pub tls: Option<ReachTls>,
}

/// What another program needs for TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachTls {
    /// Authority that signed the server's certificate, PEM.
    pub authority: PathBuf,
    /// The only versions allowed.
    pub versions: Vec<TlsVersion>,
    /// Certificate and key of a client, PEM.
    pub identity: (PathBuf, PathBuf),
    /// The server demands them.
    pub mutual: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_server_allows_twice_its_clients_and_a_hundred_connections() {
        let setup = Setup { clients: 10, ..Setup::bare() };
        assert_eq!([119, 120, 121].map(|usual| setup.more_connections(usual)), [Some(120), None, None]);
    }

    #[test]
    fn sessions_on_loaded_data_run_what_is_for_them_in_tithes_place() {
        let mut setup = Setup { session_statements: owned(&["SET a"]), space: "mine".to_owned(), ..Setup::bare() };
        assert!(matches!(setup.loaded(), Cow::Borrowed(_)));
        setup.after_loading.session = owned(&["SET ROLE {space}_b", "SET c"]);
        let loaded = setup.loaded();
        assert_eq!(loaded.session_statements, ["SET a", "SET ROLE mine_b", "SET c"]);
        assert_eq!(loaded.after_loading.session, [""; 0], "they run once");
    }

    #[test]
    fn files_of_the_users_own_are_found_in_the_servers_folder() {
        let mut setup = Setup::bare();
        setup.settings.insert("rules".to_owned(), "{files}/rules".to_owned());
        setup.after_loading.statements = owned(&["LOAD '{files}/a'"]);
        setup.after_loading.session = owned(&["USE '{files}/b'"]);
        assert!(matches!(setup.placed(Path::new("/server")), Cow::Borrowed(_)), "it has none");
        setup.files.insert("rules".to_owned(), PathBuf::from("/my/rules"));
        let placed = setup.placed(Path::new("/server"));
        assert_eq!(placed.settings["rules"], "/server/files/rules");
        assert_eq!(placed.after_loading.statements, ["LOAD '/server/files/a'"]);
        assert_eq!(placed.after_loading.session, ["USE '/server/files/b'"]);
    }

    #[test]
    fn a_server_makes_certificates_of_its_own_where_an_arm_asks_for_others() {
        let step = |key: Option<KeyType>, chain: Option<usize>| {
            let usual = Transport::tls(TlsVersion::V1_3, false);
            let Transport::Tls { version, mutual, resumption, suite, .. } = usual else { panic!("it is TLS") };
            let mut setup = Setup::bare();
            setup.speak(Transport::Tls { version, mutual, resumption, suite, key, chain });
            match setup.identity_step() {
                Some(Step::Identity { identity, .. }) => Some((identity.key, identity.chain)),
                _ => None,
            }
        };
        let usual = ServerIdentity::USUAL;
        assert_eq!([step(None, None), step(Some(usual.key), Some(usual.chain))], [None, None]);
        assert_eq!(step(Some(KeyType::Rsa4096), None), Some((KeyType::Rsa4096, usual.chain)));
        assert_eq!(step(None, Some(3)), Some((usual.key, 3)));
        assert_eq!(Setup::bare().identity_step(), None);
        assert_eq!(Transport::Plain.identity(), usual);
    }

    #[test]
    fn each_cipher_of_a_connection_is_told_from_the_others_by_its_standard_name() {
        let names = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
        let older = [
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        ];
        for (number, suite) in Suite::ALL.into_iter().enumerate() {
            for of_version in [names, older] {
                let is_in: Vec<usize> = (0..3).filter(|name| suite.is_in(of_version[*name])).collect();
                assert_eq!(is_in, [number], "{suite:?}");
            }
        }
        assert!(!Suite::ALL.into_iter().any(|suite| suite.is_in("TLS_RSA_WITH_AES_256_CBC_SHA")));
    }

    #[test]
    fn a_share_names_or_own_columns_encrypt_and_nothing_else_does() {
        let of = |share: f64, names: &[&str], own: &[&str]| {
            let own = own.iter().filter_map(|name| OwnColumn::new(name, false)).collect();
            Columns { names: owned(names), own, ..Columns::of_share(share, Secret::new([])) }.encrypts()
        };
        assert!(of(0.5, &[], &[]) && of(0.0, &["field0"], &[]) && of(0.0, &[], &["accounts.iban"]));
        assert!(!of(0.0, &[], &[]) && !of(0.0, &[], &["iban"]), "a wrapper alone");
    }

    #[test]
    fn a_column_of_a_users_own_table_is_told_by_its_last_dot() {
        let column = OwnColumn::new("Shop.Accounts.IBAN", true).expect("it names a table");
        assert_eq!((column.table.as_str(), column.name.as_str()), ("Shop.Accounts", "IBAN"));
        assert_eq!((column.whole.as_str(), column.is_compared), ("shop.accounts.iban", true));
        assert_eq!(OwnColumn::new("iban", true), None);
    }

    #[test]
    fn keys_change_by_the_database_or_below_it() {
        let mut setup = Setup::bare();
        assert!(!setup.changes_keys() && !setup.rotates_volume());
        setup.rotates = true;
        assert!(setup.changes_keys() && !setup.rotates_volume());
    }
}
