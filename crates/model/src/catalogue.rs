//! What Tithe can do, as data: databases, their protections and options, workloads.
//!
//! The plug-ins describe themselves here; planning, `tithe ls` and the generated pages read it. What only their code
//! can tell (properties of a workload, the settings that a protection takes for itself) is here as functions without a
//! side effect.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use crate::{
    diagnostic::text_of,
    experiment::{Arm, Experiment, OptionValue, Protection, is_attached},
    wording,
};

/// Everything that this build of Tithe knows.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Databases, in the order of their list.
    pub databases: Vec<OfferedDatabase>,
    /// Kinds of workload.
    pub workloads: Vec<WorkloadEntry>,
    /// Databases that this build could have and has not, by the names of their cargo features.
    pub left_out: Vec<&'static str>,
}

impl Catalogue {
    /// The database called `id`.
    pub fn database(&self, id: &str) -> Option<&OfferedDatabase> {
        self.databases.iter().find(|database| database.entry.id == id)
    }

    /// How to get the database called `id` where another build has it.
    pub fn built_with(&self, id: &str) -> Option<String> {
        let feature = self.left_out.iter().find(|feature| **feature == id)?;
        Some(format!("build tithe with it: cargo install --locked --path crates/cli --features {feature}"))
    }

    /// The database that URLs with `scheme` are named after.
    pub fn owner_of(&self, scheme: &str) -> Option<&OfferedDatabase> {
        self.databases.iter().find(|database| database.entry.has_scheme(scheme))
    }

    /// What the database called `id` says of itself.
    pub fn entry(&self, id: &str) -> Option<&DatabaseEntry> {
        self.database(id).map(|database| &database.entry)
    }
}

/// What a database says of itself, once: everything else reads it here.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseEntry {
    /// Name in experiment files.
    pub id: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// True when it runs inside Tithe's own processes: no server, no wire, no address.
    pub embedded: bool,
    /// True when it runs on invented time and is no real database: the simulated one, for tests.
    pub simulated: bool,
    /// URL schemes by which a running server can be attached; empty when it cannot.
    pub schemes: &'static [&'static str],
    /// Names that frameworks give to its schemes.
    pub scheme_aliases: &'static [&'static str],
    /// What in such a URL is about TLS.
    pub url_tls: UrlTls,
    /// Option of a URL that gives its programs the address to connect to, so that they hold certificates to the host in
    /// it; `None` where they have none.
    pub address_option: Option<&'static str>,
    /// Environment variable with the password that a URL does not hold; empty where nothing can be attached.
    pub password_variable: &'static str,
    /// True when a server that is stopped and started again has its data, soon enough that it may be restarted for
    /// every frame of a workload that only reads. An embedded database that says so has a cache that its sessions
    /// share, and is closed and opened again. Where an embedded database says no, each session has a cache of its own,
    /// and every frame opens new sessions.
    pub restarts: bool,
    /// True when a server that is stopped and started again has its data, however long that takes: then its caches can
    /// be emptied. True wherever `restarts` is. An embedded database that says so has everything in files once it is
    /// closed, and is measured in a process of its own for every start.
    pub keeps_data: bool,
    /// Seconds that one server needs to stop, restart on its data and be warm, roughly: for plans.
    pub start_s: f64,
    /// True when the first thread of its process serves all clients, so that where that runs is where all are served.
    pub one_thread: bool,
    /// True when it compiles its own code while it runs, so that operations become cheaper for minutes after a start.
    pub compiles: bool,
    /// What may stand before the name of a setting, which is the same setting then: `loose_`.
    pub setting_modifiers: &'static [&'static str],
    /// True when what tells an attached server of it from others is its process's, so that it calls itself otherwise
    /// once it was restarted.
    pub identity_of_process: bool,
    /// Settings that Tithe sets itself and an experiment may therefore not set, with the reason.
    pub reserved_settings: &'static [(&'static str, &'static str)],
    /// Settings that an experiment may set, with a sentence each; empty where the server itself refuses unknown names.
    pub known_settings: &'static [(&'static str, &'static str)],
    /// Names of its server's program, as the kernel has them (proc(5), `comm`), by which a server that Tithe did not
    /// start is known; empty where none can be attached.
    pub server_programs: &'static [&'static str],
    /// How an administrator's client takes statements that are pasted.
    pub statement_form: StatementForm,
    /// The protocol that its servers speak, if other programs may drive them; `None` where no other program reaches it.
    pub wire_protocol: Option<WireProtocol>,
    /// How the clients of all arms prove who they are where other machines can reach its servers.
    pub network_login: NetworkLogin,
    /// False where records are found by their key alone, so that no workload can scan.
    pub scans: bool,
    /// How protections of the reader's own are checked; `None` where arms cannot have one.
    pub custom: Option<AskedOfCustom>,
}

/// How a server is asked about a protection of the reader's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedOfCustom {
    /// The question for the value of the setting `{setting}`.
    pub setting: &'static str,
    /// What is between the words of its name.
    pub between: char,
    /// What a session says first, so that a claim changes nothing and does not run on behind [`PATIENCE_S`].
    pub careful: &'static [&'static str],
    /// How a running server keeps what undoes statements; `None` where arms have no statements there.
    pub kept: Option<KeptUndo>,
}

/// Statements by which a running server keeps, among what is Tithe's in `{space}`, the statements that undo others, so
/// that they are undone after a run that was killed as well. Each is kept as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptUndo {
    /// Brings a row where something is kept.
    pub is_there: &'static str,
    /// Make the place where it is kept.
    pub make: &'static [&'static str],
    /// Adds `{statement}`, which is the one with this `{number}`.
    pub add: &'static str,
    /// Brings a row for each, in their order.
    pub read: &'static str,
    /// Removes all.
    pub remove: &'static str,
}

impl KeptUndo {
    /// In a table of SQL, which is made by `make`.
    pub const fn in_sql(make: &'static [&'static str]) -> Self {
        Self {
            is_there: "SELECT 1 FROM information_schema.tables WHERE table_schema = '{space}' AND table_name = 'tithe_undo'",
            make,
            add: "INSERT INTO {space}.tithe_undo VALUES ({number}, '{statement}')",
            read: "SELECT statement FROM {space}.tithe_undo ORDER BY number",
            remove: "DROP TABLE {space}.tithe_undo",
        }
    }
}

/// How long the statement of a claim may run, s.
pub const PATIENCE_S: u16 = 10;

impl DatabaseEntry {
    /// What holds where a database says nothing else: a server that Tithe launches and nobody attaches to, that loses
    /// its data when it is stopped, takes any setting, and is reached by no other program. It has no name yet.
    pub const BARE: Self = Self {
        id: "",
        title: "",
        embedded: false,
        simulated: false,
        schemes: &[],
        scheme_aliases: &[],
        url_tls: UrlTls { options: &[], schemes: None },
        address_option: None,
        password_variable: "",
        restarts: false,
        keeps_data: false,
        one_thread: false,
        compiles: false,
        start_s: 2.0,
        setting_modifiers: &[],
        identity_of_process: false,
        reserved_settings: &[],
        known_settings: &[],
        server_programs: &[],
        statement_form: StatementForm { comment: "--", end: ";" },
        wire_protocol: None,
        network_login: NetworkLogin::Refused("its servers are for clients on this machine"),
        scans: true,
        custom: None,
    };

    /// True for a URL with `scheme`: one of its own, a framework's name for it, or either with the name of a driver
    /// behind a `+`.
    pub fn has_scheme(&self, scheme: &str) -> bool {
        let known = |scheme| self.schemes.contains(&scheme) || self.scheme_aliases.contains(&scheme);
        known(scheme) || scheme.split_once('+').is_some_and(|(scheme, _)| known(scheme))
    }

    /// True for databases whose servers speak one protocol, so that a URL of one may lead to the other.
    pub fn speaks_as(&self, other: &Self) -> bool {
        self.id == other.id || self.wire_protocol.is_some() && self.wire_protocol == other.wire_protocol
    }

    /// True when `name` and `other` stand for one setting.
    pub fn is_one_setting(&self, name: &str, other: &str) -> bool {
        self.bare_setting(name) == self.bare_setting(other)
    }

    /// The plain name of a setting without what may stand before it.
    pub fn bare_setting(&self, name: &str) -> String {
        let name = plain_name(name);
        let mut bare = name.as_str();
        while let Some(rest) = self.setting_modifiers.iter().find_map(|modifier| bare.strip_prefix(modifier)) {
            bare = rest;
        }
        bare.to_owned()
    }
}

/// How an administrator's client takes statements that are pasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementForm {
    /// What a line begins with that is none.
    pub comment: &'static str,
    /// What a statement ends with.
    pub end: &'static str,
}

/// How the clients of all arms prove who they are to servers that other machines can reach: what an arm without a
/// password would let anyone do there is nobody's to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkLogin {
    /// By a password, with this mechanism: the one that the product itself takes where nobody says another.
    Password(&'static str),
    /// Not at all: Tithe opens its servers to no network, because of this.
    Refused(&'static str),
}

/// What in the URL of a running server is about TLS.
#[derive(Debug, Clone, Copy)]
pub struct UrlTls {
    /// Options that say whether and how TLS is spoken.
    pub options: &'static [&'static str],
    /// The scheme that asks for TLS and the one that does not, where the scheme says it.
    pub schemes: Option<(&'static str, &'static str)>,
}

impl UrlTls {
    /// `url` without anything that asks for TLS.
    pub fn plain(&self, url: &str) -> String {
        let (place, options) = url.split_once('?').unwrap_or((url, ""));
        let place = match self.schemes.and_then(|(tls, plain)| Some((place.strip_prefix(tls)?, plain))) {
            Some((rest, plain)) if rest.starts_with("://") => format!("{plain}{rest}"),
            _ => place.to_owned(),
        };
        // Drivers write `ssl_mode` and `sslMode` for `ssl-mode`.
        let bare = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
        let is_other = |option: &&str| {
            let name = bare(option.split('=').next().unwrap_or_default());
            !self.options.iter().any(|known| bare(known) == name)
        };
        let others: Vec<&str> = options.split('&').filter(|option| !option.is_empty()).filter(is_other).collect();
        if others.is_empty() { place } else { format!("{place}?{}", others.join("&")) }
    }
}

/// A protocol that programs and servers of several products speak. By it programs choose what they drive, never by the
/// name of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's, which MariaDB speaks as well.
    MySql,
    /// Redis's, RESP.
    Redis,
    /// Cassandra's, CQL.
    Cql,
}

impl WireProtocol {
    /// What follows "the protocol of".
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
            Self::Redis => "Redis",
            Self::Cql => "Cassandra",
        }
    }
}

/// A database of this build: what it says of itself, and what only its code can tell.
#[derive(Debug, Clone)]
pub struct OfferedDatabase {
    /// What it says of itself.
    pub entry: DatabaseEntry,
    /// True when loaded data are kept, and further servers are started on copies of them.
    pub copies_data: bool,
    /// Its protections.
    pub protections: Vec<&'static ProtectionEntry>,
    /// The settings that its protections take for themselves.
    pub overrides: Overrides,
}

impl OfferedDatabase {
    /// The protection called `id`.
    pub fn protection(&self, id: &str) -> Option<&'static ProtectionEntry> {
        self.protections.iter().find(|entry| entry.id == id).copied()
    }

    /// True when an arm's data are loaded again for every epoch. What a load makes of pages is chance, which all frames
    /// on it share.
    pub fn loads_anew(&self) -> bool {
        !self.copies_data && !self.entry.simulated
    }

    /// True when the key of `chosen` is changed while it is measured.
    pub fn rotates(&self, chosen: &Protection) -> bool {
        let flag = self.protection(&chosen.id).and_then(|entry| entry.rotated_by);
        flag.is_some_and(|flag| chosen.options.get(flag) == Some(&OptionValue::Flag(true)))
    }

    /// True when some arm of `experiment` changes its key while it is measured.
    pub fn rotates_in(&self, experiment: &Experiment) -> bool {
        experiment.arms.iter().flat_map(|arm| &arm.protections).any(|chosen| self.rotates(chosen))
    }

    /// True when `chosen` takes the setting called `name` for itself. A protection that this database does not have, or
    /// whose options are not complete, is refused elsewhere.
    pub fn overrides(&self, chosen: &Protection, name: &str) -> bool {
        let is_complete =
            |entry: &ProtectionEntry| entry.options.iter().all(|option| chosen.options.contains_key(option.name));
        self.protection(&chosen.id).is_some_and(is_complete) && self.overrides.takes(chosen, name)
    }

    /// What is wrong with the setting called `name` in an experiment with `arms`, and what to do about it: settings
    /// that are Tithe's, that a protection of an arm sets, or that are not known.
    pub fn refuses_setting(&self, name: &str, arms: &[Arm]) -> Option<(String, String)> {
        let entry = &self.entry;
        let is_called = |other: &str| entry.is_one_setting(other, name);
        if let Some((reserved, reason)) = entry.reserved_settings.iter().find(|(reserved, _)| is_called(reserved)) {
            return Some((format!("`{reserved}` cannot be set: {reason}"), "remove it from the settings".to_owned()));
        }
        let sets_it = |chosen: &&Protection| self.overrides(chosen, name);
        if let Some((arm, chosen)) = arms.iter().find_map(|arm| Some((arm, arm.protections.iter().find(sets_it)?))) {
            return Some((
                format!("`{name}` cannot be set: the protection `{}` of arm `{}` sets it", chosen.id, arm.name),
                "remove it from the settings, or the protection from the arm".to_owned(),
            ));
        }
        let known: Vec<&str> = entry.known_settings.iter().map(|(name, _)| *name).collect();
        if known.is_empty() || known.iter().any(|known| is_called(known)) {
            return None;
        }
        let problem = format!("there is no setting {}", wording::quote(name));
        let help = wording::suggest(name, &known, "the database has");
        // What a session of an embedded database can say is no setting of a server.
        let said = entry.custom.filter(|_| entry.embedded).map(|asked| asked.setting.replace("{setting}", name));
        let in_session =
            said.map(|said| format!("; or have every session say it: `session = [\"{said} = …\"]` of a protection"));
        Some((problem, help + &in_session.unwrap_or_default()))
    }

    /// Why servers of this database cannot listen on `address` for `arms`: what follows the name of the key. `None`
    /// where they can, if the address is this machine's.
    pub fn refuses_address(&self, address: IpAddr, arms: &[Arm]) -> Option<String> {
        let id = self.entry.id;
        if address.is_unspecified() || address.is_multicast() {
            return Some(format!("must be one address of this machine, which {address} is not"));
        }
        if is_attached(arms) {
            return Some("needs servers that Tithe starts: leave out every `url`".to_owned());
        }
        if self.entry.embedded || self.entry.simulated {
            return Some(format!("needs a server, and {id} has none"));
        }
        if let NetworkLogin::Refused(why) = self.entry.network_login {
            return Some(format!("cannot be given for {id}: {why}"));
        }
        if address.is_loopback() {
            return None;
        }
        let is_login = |chosen: &&Protection| self.protection(&chosen.id).is_some_and(|entry| entry.login);
        let (arm, chosen) = arms.iter().find_map(|arm| Some((arm, arm.protections.iter().find(is_login)?)))?;
        Some(format!(
            "lets other machines reach the servers, so every arm asks for a password, and what `{}` of arm `{}` costs \
             compared with an arm without one cannot be seen",
            chosen.id, arm.name
        ))
    }
}

/// A security feature of one database, as it describes itself.
#[derive(Debug, Clone, Copy)]
pub struct ProtectionEntry {
    /// Name in experiment files.
    pub id: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// What it protects against, one sentence.
    pub protects_against: &'static str,
    /// What it does not protect against, one sentence.
    pub leaves_open: &'static str,
    /// Its options.
    pub options: &'static [OptionEntry],
    /// True when an attached server that Tithe does not start can be measured with it.
    pub attachable: bool,
    /// True when the URL of an attached server is what asks for it.
    pub by_url: bool,
    /// True when the clients do it, or tables that Tithe makes have it, whatever the server has.
    pub by_client: bool,
    /// How a session of an attached server switches it on and off; `None` where the server has it or has it not.
    pub switch: Option<Switch>,
    /// True when it encrypts what is on the disk, so that what reaches the disk by another way matters.
    pub at_rest: bool,
    /// True when it has clients prove who they are, which servers without it do not ask for.
    pub login: bool,
    /// The flag that has its key changed while it is measured, if it has one.
    pub rotated_by: Option<&'static str>,
}

/// Statements by which a session switches a protection. In them `{option}` stands for what an arm chose.
#[derive(Debug, Clone, Copy)]
pub struct Switch {
    /// Switch it on.
    pub on: &'static [&'static str],
    /// Switch it off again.
    pub off: &'static [&'static str],
}

impl ProtectionEntry {
    /// What a protection is that says nothing else: without options, for servers that Tithe starts, and not about data
    /// at rest. The four texts have to be given.
    pub const BARE: Self = Self {
        id: "",
        title: "",
        protects_against: "",
        leaves_open: "",
        options: &[],
        attachable: false,
        by_url: false,
        by_client: false,
        switch: None,
        at_rest: false,
        login: false,
        rotated_by: None,
    };

    /// The option called `name`.
    pub fn option(&self, name: &str) -> Option<&'static OptionEntry> {
        self.options.iter().find(|option| option.name == name)
    }
}

/// Tells whether a protection of one database with these options takes a setting of this name for itself, so that what
/// an experiment gives it would be lost.
#[derive(Clone)]
pub struct Overrides(Arc<Takes>);

type Takes = dyn Fn(&Protection, &str) -> bool + Send + Sync;

impl Overrides {
    /// As `takes` says; it is given protections whose options are complete.
    pub fn new(takes: impl Fn(&Protection, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(takes))
    }

    /// True when `chosen` takes the setting called `name` for itself.
    pub fn takes(&self, chosen: &Protection, name: &str) -> bool {
        (self.0)(chosen, name)
    }
}

impl std::fmt::Debug for Overrides {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Overrides").finish_non_exhaustive()
    }
}

/// A setting's name as servers compare it: most ignore case, some take `-` for `_`.
pub fn plain_name(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// One option of a protection.
#[derive(Debug)]
pub struct OptionEntry {
    /// Name in experiment files.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// Used when the experiment does not say; `None` makes the option required.
    pub default: Option<DefaultValue>,
    /// One sentence for `tithe ls` and the generated page.
    pub help: &'static str,
}

/// A default value that a `static` can hold.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(&'static str),
    /// A switch.
    Flag(bool),
}

impl DefaultValue {
    /// The same as an experiment file would give it.
    pub fn value(self) -> OptionValue {
        match self {
            Self::Number(number) => OptionValue::Number(number),
            Self::Text(text) => OptionValue::Text(text.to_owned()),
            Self::Flag(flag) => OptionValue::Flag(flag),
        }
    }
}

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A number in `low..=high`.
    Number {
        /// Smallest value allowed.
        low: f64,
        /// Largest value allowed.
        high: f64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
}

impl std::fmt::Display for OptionKind {
    /// What it takes, as an experiment writes it: `"read" | "write"`, `0 to 1`, `true | false`, `text`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { low, high } => write!(formatter, "{low} to {high}"),
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" | ").fmt(formatter)
            }
            Self::Text => "text".fmt(formatter),
            Self::Flag => "true | false".fmt(formatter),
        }
    }
}

/// Properties of a workload by name, in the kind's own names.
pub type Properties = BTreeMap<String, String>;

/// A preset: name, one sentence, `key=value` pairs.
pub type Preset = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// What is wrong with a property: its name, the problem, what to do.
pub type PropertyProblem = (String, String, String);

/// What is wrong with a line of a property file: its number from 1, the problem, what to do.
pub type LineProblem = (usize, String, String);

/// A file from which a workload's properties come, as an experiment names it.
#[derive(Debug, Clone, Copy)]
pub struct PropertyFile<'a> {
    /// Its path as written, without a weight.
    pub name: &'a str,
    /// The weight behind its name.
    pub weight: Option<u32>,
    /// Which of the workload's files it is, from 1.
    pub number: usize,
    /// What is in it.
    pub bytes: &'a [u8],
}

impl<'a> PropertyFile<'a> {
    /// Its text, without the mark that some editors write at the beginning.
    ///
    /// # Errors
    /// The first line that is not UTF-8.
    pub fn text(&self) -> Result<&'a str, Vec<LineProblem>> {
        let bytes = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.bytes);
        text_of(bytes).map_err(|line| vec![(line, "is not UTF-8".to_owned(), "save the file as UTF-8".to_owned())])
    }
}

/// What some editors write before a text in UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A key of an experiment whose default a property sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The property.
    pub property: &'static str,
    /// What it is the default of.
    pub of: AskedOf,
    /// Its value.
    pub value: f64,
}

/// What a property can be the default of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedOf {
    /// The records of `[data]`.
    Records,
    /// The clients of `[load]`.
    Clients,
    /// The rate of `[load]`, operations per second.
    Rate,
}

impl AskedOf {
    /// The key in experiments.
    pub fn key(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Clients => "clients",
            Self::Rate => "rate",
        }
    }

    /// The table of that key.
    pub fn table(self) -> &'static str {
        match self {
            Self::Records => "[data]",
            Self::Clients | Self::Rate => "[load]",
        }
    }
}

/// A kind of workload.
#[derive(Clone)]
pub struct WorkloadEntry {
    /// Name in experiment files (`ycsb`).
    pub id: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// Presets.
    pub presets: &'static [Preset],
    /// What its file holds, in a few words: the value of its [key](Self::file_key) in experiments.
    pub file: &'static str,
    /// True where each of several files is drawn by its weight, which follows its name: `mine.sql@9`.
    pub weighted: bool,
    /// Beginning of the names of properties that hold whole scripts, in which `read` has found no password; empty where
    /// there are none.
    pub scripts: &'static str,
    /// The property that holds the path of the file where that is read when the workload is made, because it may be
    /// larger than memory; empty where the file holds properties.
    pub by_path: &'static str,
    /// The properties that hold command lines; none for most.
    pub commands: &'static [&'static str],
    /// Reads a property file; returns every problem.
    pub read: fn(&PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>>,
    /// Keys of an experiment whose defaults the resolved properties set.
    pub asks: fn(&Properties) -> Vec<Asked>,
    /// Looks at resolved properties; returns every problem.
    pub check: fn(&Properties) -> Vec<PropertyProblem>,
    /// What planning must know about the workload that resolved properties describe.
    pub shape: fn(&Properties) -> WorkloadShape,
}

/// What planning must know about a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadShape {
    /// True when some operation changes data.
    pub writes: bool,
    /// Size of a record as the client sends it, bytes.
    pub record_bytes: u64,
    /// True when another program offers the load, which cannot be cut finer than into whole seconds.
    pub program: bool,
    /// Slot that its requests need because each may last for many milliseconds, ns; `None` where the plan chooses.
    pub slot_ns: Option<u64>,
}

impl WorkloadEntry {
    /// The key in experiments that names a file of this kind, or several.
    pub fn file_key(&self) -> String {
        if self.names_files() { self.id.to_owned() } else { format!("{}_file", self.id) }
    }

    /// True for a kind that is called as its scripts are, or as its log is: one key names files and presets, also
    /// together.
    pub fn names_files(&self) -> bool {
        self.scripts == self.id || !self.by_path.is_empty()
    }
}

impl std::fmt::Debug for WorkloadEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WorkloadEntry").field("id", &self.id).finish_non_exhaustive()
    }
}
