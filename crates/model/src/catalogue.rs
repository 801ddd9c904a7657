//! What Tithe can do, as data: databases, their protections and options, workloads.
//!
//! The plug-ins describe themselves here; planning, `tithe ls` and the generated pages read it. What depends on a
//! plug-in's code (properties of a workload, the settings that a protection reserves) is here as functions without side
//! effects.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use crate::{
    diagnostic::text_of,
    experiment::{Arm, Experiment, OptionValue, Protection, Url, is_attached},
    wording,
};

/// Everything that this build of Tithe knows.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Databases, in the order of their list.
    pub databases: Vec<OfferedDatabase>,
    /// Kinds of workload.
    pub workloads: Vec<WorkloadEntry>,
    /// Databases that this build does not include, by the names of their cargo features.
    pub left_out: Vec<&'static str>,
}

impl Catalogue {
    /// The database called `id`.
    pub fn database(&self, id: &str) -> Option<&OfferedDatabase> {
        self.databases.iter().find(|database| database.entry.id == id)
    }

    /// How to get the database called `id` if only another build has it.
    pub fn built_with(&self, id: &str) -> Option<String> {
        let feature = self.left_out.iter().find(|feature| **feature == id)?;
        Some(format!("build tithe with it: cargo install --locked --path crates/cli --features {feature}"))
    }

    /// The database that URLs with `scheme` are named after.
    pub fn owner_of(&self, scheme: &str) -> Option<&OfferedDatabase> {
        self.databases.iter().find(|database| database.entry.has_scheme(scheme))
    }

    /// The description of the database called `id`.
    pub fn entry(&self, id: &str) -> Option<&DatabaseEntry> {
        self.database(id).map(|database| &database.entry)
    }
}

/// The description of a database; all other code reads it here.
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
    /// URL schemes by which a running server can be attached; empty if it cannot.
    pub schemes: &'static [&'static str],
    /// Names that frameworks give to its schemes.
    pub scheme_aliases: &'static [&'static str],
    /// Which parts of such a URL concern TLS.
    pub url_tls: UrlTls,
    /// True if other clients write `https` and `http` for the schemes of `url_tls`.
    pub over_http: bool,
    /// Option of a URL that gives the address to connect to, so that its programs check certificates against the URL's
    /// host; `None` if they have no such option.
    pub address_option: Option<&'static str>,
    /// Environment variable for a password that the URL does not contain; empty if no server can be attached.
    pub password_variable: &'static str,
    /// True if a stopped and restarted server still has its data, and restarts fast enough to do so before every frame
    /// of a read-only workload. For an embedded database, true means that its sessions share a cache, and that it is
    /// closed and opened again. False means that each session has a cache of its own, and that every frame opens new
    /// sessions.
    pub restarts: bool,
    /// True if a stopped and restarted server still has its data, however long the restart takes: then its caches can
    /// be emptied. True wherever `restarts` is. For an embedded database, true means that everything is in files once
    /// it is closed; it is then measured in a separate process for every start.
    pub keeps_data: bool,
    /// Approximate seconds that one server needs to stop, restart on its data and warm up; for plans.
    pub start_s: f64,
    /// True if the first thread of its process serves all clients, so the processor of that thread serves all of them.
    pub one_thread: bool,
    /// True when it compiles its own code while it runs, so that operations become cheaper for minutes after a start.
    pub compiles: bool,
    /// Prefixes of a setting's name that do not change which setting it is: `loose_`.
    pub setting_modifiers: &'static [&'static str],
    /// True if an attached server is identified by something of its process, so that its identity changes with a
    /// restart.
    pub identity_of_process: bool,
    /// Settings that Tithe sets itself, so an experiment may not set them, with the reason.
    pub reserved_settings: &'static [(&'static str, &'static str)],
    /// Settings that an experiment may set, with a sentence each; empty if the server itself refuses unknown names.
    pub known_settings: &'static [(&'static str, &'static str)],
    /// Names of its server's program, as the kernel has them (proc(5), `comm`), used to recognise a server that Tithe
    /// did not start; empty if none can be attached.
    pub server_programs: &'static [&'static str],
    /// The syntax in which an administrator's client takes pasted statements.
    pub statement_form: StatementForm,
    /// The protocol that its servers speak, if other programs may drive them; `None` if no other program can.
    pub wire_protocol: Option<WireProtocol>,
    /// How the clients of all arms log in if other machines can reach the servers.
    pub network_login: NetworkLogin,
    /// False if records are found by their key alone, so no workload can scan.
    pub scans: bool,
    /// False if it has no cache of its own that data could exceed: it keeps all records in memory, or in a file that
    /// the kernel caches.
    pub own_cache: bool,
    /// False if no workload loads its rows in bulk or scans whole tables.
    pub bulk: bool,
    /// True if its SQL has triggers, or it has no SQL.
    pub triggers: bool,
    /// True if its sessions append rows to a table without any statement.
    pub appends: bool,
    /// How user-defined protections are checked; `None` if arms cannot have one.
    pub custom: Option<AskedOfCustom>,
}

/// How to query a server about a user-defined protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedOfCustom {
    /// The query for the value of the setting `{setting}`.
    pub setting: &'static str,
    /// The separator between the words of a setting's name.
    pub between: char,
    /// Statements that a session runs first, so that a claim changes nothing and stops after [`PATIENCE_S`].
    pub careful: &'static [&'static str],
    /// How a running server stores the statements that undo others; `None` if its arms have no statements.
    pub kept: Option<KeptUndo>,
}

/// Statements by which a running server stores, in Tithe's own `{space}`, the statements that undo others. They can
/// then be undone even after a run was killed. Each is stored as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptUndo {
    /// Returns a row if something is stored.
    pub is_there: &'static str,
    /// Statements that create the place where it is stored.
    pub make: &'static [&'static str],
    /// Adds `{statement}`, the one with this `{number}`.
    pub add: &'static str,
    /// Returns a row for each, in their order.
    pub read: &'static str,
    /// Removes all.
    pub remove: &'static str,
}

impl KeptUndo {
    /// In a SQL table, which `make` creates.
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

/// How long a claim's statement may run, s.
pub const PATIENCE_S: u16 = 10;

impl DatabaseEntry {
    /// The defaults of a database: a server that Tithe launches and that cannot be attached, that loses its data when
    /// it is stopped, takes any setting, and is reached by no other program. It has no name yet.
    pub const BARE: Self = Self {
        id: "",
        title: "",
        embedded: false,
        simulated: false,
        schemes: &[],
        scheme_aliases: &[],
        url_tls: UrlTls { options: &[], schemes: None },
        over_http: false,
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
        own_cache: true,
        bulk: true,
        triggers: true,
        appends: false,
        custom: None,
    };

    /// True for a URL with `scheme`: one of its own, a framework's name for it, or either with the name of a driver
    /// behind a `+`. What follows a `+` is no driver if it may ask for TLS or replace a scheme that does.
    pub fn has_scheme(&self, scheme: &str) -> bool {
        let known = |scheme| self.schemes.contains(&scheme) || self.scheme_aliases.contains(&scheme);
        let is_driver = |driver| self.url_tls.schemes.is_none() && !["ssl", "tls"].contains(&driver);
        known(scheme) || scheme.split_once('+').is_some_and(|(scheme, driver)| known(scheme) && is_driver(driver))
    }

    /// `url` with a scheme of its own in place of `https` and `http`.
    pub fn own_address(&self, url: Url) -> Url {
        match self.url_tls.schemes.filter(|_| self.over_http) {
            Some(schemes) => url.without_http(schemes),
            None => url,
        }
    }

    /// True for databases whose servers speak the same protocol, so a URL of one may lead to the other.
    pub fn speaks_as(&self, other: &Self) -> bool {
        self.id == other.id || self.wire_protocol.is_some() && self.wire_protocol == other.wire_protocol
    }

    /// True if `name` and `other` are the same setting.
    pub fn is_one_setting(&self, name: &str, other: &str) -> bool {
        self.bare_setting(name) == self.bare_setting(other)
    }

    /// The plain name of a setting, without its prefixes.
    pub fn bare_setting(&self, name: &str) -> String {
        let name = plain_name(name);
        let mut bare = name.as_str();
        while let Some(rest) = self.setting_modifiers.iter().find_map(|modifier| bare.strip_prefix(modifier)) {
            bare = rest;
        }
        bare.to_owned()
    }
}

/// The syntax in which an administrator's client takes pasted statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementForm {
    /// The beginning of a comment line.
    pub comment: &'static str,
    /// The end of a statement.
    pub end: &'static str,
}

/// How the clients of all arms log in to servers that other machines can reach. A server without a password would be
/// open to the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkLogin {
    /// By a password, with this mechanism: the product's own default.
    Password(&'static str),
    /// Not at all: Tithe opens its servers to no network, for this reason.
    Refused(&'static str),
}

/// Which parts of a running server's URL concern TLS.
#[derive(Debug, Clone, Copy)]
pub struct UrlTls {
    /// Options that set whether and how TLS is used.
    pub options: &'static [&'static str],
    /// The scheme that asks for TLS and the one that does not, if the scheme decides it.
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

/// A protocol that programs and servers of several products speak. Programs choose what they drive by it, never by a
/// product's name.
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
    /// OpenSearch's, JSON over HTTP.
    OpenSearch,
}

impl WireProtocol {
    /// What follows "the protocol of".
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
            Self::Redis => "Redis",
            Self::Cql => "Cassandra",
            Self::OpenSearch => "OpenSearch",
        }
    }
}

/// A database of this build: its description, and what depends on its code.
#[derive(Debug, Clone)]
pub struct OfferedDatabase {
    /// Its description.
    pub entry: DatabaseEntry,
    /// True when loaded data are kept, and further servers are started on copies of them.
    pub copies_data: bool,
    /// Its protections.
    pub protections: Vec<&'static ProtectionEntry>,
    /// The settings that its protections reserve.
    pub overrides: Overrides,
}

impl OfferedDatabase {
    /// The protection called `id`.
    pub fn protection(&self, id: &str) -> Option<&'static ProtectionEntry> {
        self.protections.iter().find(|entry| entry.id == id).copied()
    }

    /// True if an arm's data are loaded again for every epoch. How a load lays out pages is chance, which all frames on
    /// it share.
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

    /// True if `chosen` reserves the setting called `name`. Unknown protections and incomplete options are refused
    /// elsewhere.
    pub fn overrides(&self, chosen: &Protection, name: &str) -> bool {
        let is_complete =
            |entry: &ProtectionEntry| entry.options.iter().all(|option| chosen.options.contains_key(option.name));
        self.protection(&chosen.id).is_some_and(is_complete) && self.overrides.takes(chosen, name)
    }

    /// The problem with the setting called `name` in an experiment with `arms`, and its remedy: the setting is Tithe's,
    /// or a protection of an arm sets it, or it is unknown.
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
        // Settings of an embedded database's session are no server settings.
        let said = entry.custom.filter(|_| entry.embedded).map(|asked| asked.setting.replace("{setting}", name));
        let in_session =
            said.map(|said| format!("; or have every session say it: `session = [\"{said} = …\"]` of a protection"));
        Some((problem, help + &in_session.unwrap_or_default()))
    }

    /// Why servers of this database cannot listen on `address` for `arms`: the words that follow the name of the key.
    /// `None` if they can, provided that the address is this machine's.
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
            "lets other machines reach the servers, so every arm asks for a password, and there is no arm without \
             one to compare `{}` of arm `{}` with",
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
    /// True if the URL of an attached server switches it on.
    pub by_url: bool,
    /// True if the clients do it, or Tithe's own tables have it, whatever the server has.
    pub by_client: bool,
    /// How a session of an attached server switches it on and off; `None` if only the server as a whole can.
    pub switch: Option<Switch>,
    /// True if it encrypts data on the disk, so data that reach the disk by another way matter.
    pub at_rest: bool,
    /// True if the kernel or a process of its own does the work, which no processor time per operation contains: only
    /// the clock shows what it costs.
    pub elsewhere: bool,
    /// True if it makes clients log in; servers without it ask for no login.
    pub login: bool,
    /// The flag that makes its key change during measurement, if it has one.
    pub rotated_by: Option<&'static str>,
}

/// Statements by which a session switches a protection. `{option}` is replaced by the arm's value of that option.
#[derive(Debug, Clone, Copy)]
pub struct Switch {
    /// Switch it on.
    pub on: &'static [&'static str],
    /// Switch it off again.
    pub off: &'static [&'static str],
    /// Other statements for one value of an option, if it has some.
    pub other: Option<OtherSwitch>,
}

/// The statements of a [`Switch`] if `option` has this `value`.
#[derive(Debug, Clone, Copy)]
pub struct OtherSwitch {
    /// The option's name.
    pub option: &'static str,
    /// Its value, as statements write it.
    pub value: &'static str,
    /// Switch it on.
    pub on: &'static [&'static str],
    /// Switch it off again.
    pub off: &'static [&'static str],
}

impl Switch {
    /// The statements for the `chosen` values of all options: those that switch it on, and those that switch it off.
    pub fn statements(&self, chosen: &BTreeMap<String, String>) -> [&'static [&'static str]; 2] {
        let is_chosen = |other: &OtherSwitch| chosen.get(other.option).is_some_and(|value| value == other.value);
        match self.other.filter(is_chosen) {
            Some(other) => [other.on, other.off],
            None => [self.on, self.off],
        }
    }
}

impl ProtectionEntry {
    /// The defaults of a protection: without options, for servers that Tithe starts, and not about data at rest. The
    /// four texts have to be given.
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
        elsewhere: false,
        login: false,
        rotated_by: None,
    };

    /// The option called `name`.
    pub fn option(&self, name: &str) -> Option<&'static OptionEntry> {
        self.options.iter().find(|option| option.name == name)
    }
}

/// Whether a protection with these options reserves a setting of this name, so that a value from the experiment would
/// be lost.
#[derive(Clone)]
pub struct Overrides(Arc<Takes>);

type Takes = dyn Fn(&Protection, &str) -> bool + Send + Sync;

impl Overrides {
    /// Uses `takes`, which gets protections whose options are complete.
    pub fn new(takes: impl Fn(&Protection, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(takes))
    }

    /// True if `chosen` reserves the setting called `name`.
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
    /// The values it takes.
    pub kind: OptionKind,
    /// Used if the experiment does not give it; `None` makes the option required.
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

/// The values an option takes.
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
    /// The values as an experiment writes them: `"read" | "write"`, `0 to 1`, `true | false`, `text`.
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
    /// The weight after its name.
    pub weight: Option<u32>,
    /// Which of the workload's files it is, from 1.
    pub number: usize,
    /// Its content.
    pub bytes: &'a [u8],
    /// The protocol of the experiment's servers, if it is known.
    pub protocol: Option<WireProtocol>,
}

impl<'a> PropertyFile<'a> {
    /// Its text, without a byte order mark.
    ///
    /// # Errors
    /// The first line that is not UTF-8, or has a zero byte, as text in UTF-16 without a mark has.
    pub fn text(&self) -> Result<&'a str, Vec<LineProblem>> {
        let bytes = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.bytes);
        let wrong = |line, problem: &str| vec![(line, problem.to_owned(), "save the file as UTF-8".to_owned())];
        let text = text_of(bytes).map_err(|line| wrong(line, "is not UTF-8"))?;
        match text.find('\0') {
            Some(at) => Err(wrong(1 + text[..at].matches('\n').count(), "has a zero byte, as UTF-16 has")),
            None => Ok(text),
        }
    }
}

/// The mark that some editors write before a text in UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A key of an experiment whose default a property sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The property.
    pub property: &'static str,
    /// The key.
    pub of: AskedOf,
    /// Its value.
    pub value: f64,
}

/// A key whose default a property can set.
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
    /// What its file contains, in a few words: the value of its [key](Self::file_key) in experiments.
    pub file: &'static str,
    /// True if several files are drawn by weight, which follows the name: `mine.sql@9`.
    pub weighted: bool,
    /// Beginning of the names of properties that contain whole scripts, which `read` has checked for passwords; empty
    /// if there are none.
    pub scripts: &'static str,
    /// The property with the path of the file, if that is read only when the workload is made, because it may be larger
    /// than memory; empty if the file contains properties.
    pub by_path: &'static str,
    /// The properties that hold command lines; none for most.
    pub commands: &'static [&'static str],
    /// Reads a property file; returns every problem.
    pub read: fn(&PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>>,
    /// Keys of an experiment whose defaults the resolved properties set.
    pub asks: fn(&Properties) -> Vec<Asked>,
    /// Checks resolved properties; returns every problem.
    pub check: fn(&Properties) -> Vec<PropertyProblem>,
    /// What planning must know about the workload that resolved properties describe.
    pub shape: fn(&Properties) -> WorkloadShape,
}

/// What planning must know about a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadShape {
    /// True when some operation changes data.
    pub writes: bool,
    /// Size of a record as the client sends it, bytes; 0 if `[data]` has no part in the workload, which works on the
    /// user's own data or on tables of its own.
    pub record_bytes: u64,
    /// True if another program offers the load; that program runs for whole seconds only.
    pub program: bool,
    /// True if clients have something else to do between two operations than wait for an answer: they pause, or make
    /// the next batch of rows.
    pub gaps: bool,
    /// Operations that a request stands for; `None` if it reads all records.
    pub batch: Option<u64>,
    /// Slot length for requests that may each last for many milliseconds, ns; `None` if the plan chooses.
    pub slot_ns: Option<u64>,
}

impl WorkloadShape {
    /// True if Tithe generates no records for the workload.
    pub fn has_own_data(self) -> bool {
        self.record_bytes == 0
    }
}

impl WorkloadEntry {
    /// The key in experiments that names a file of this kind, or several.
    pub fn file_key(&self) -> String {
        if self.names_files() { self.id.to_owned() } else { format!("{}_file", self.id) }
    }

    /// True for a kind with the same name as its scripts or its log: one key names files and presets, also together.
    pub fn names_files(&self) -> bool {
        self.scripts == self.id || !self.by_path.is_empty()
    }
}

impl std::fmt::Debug for WorkloadEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WorkloadEntry").field("id", &self.id).finish_non_exhaustive()
    }
}
