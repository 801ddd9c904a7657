//! Files, commands and arguments that start one server, as data. Pure, so that the effect of a protection is a
//! difference between two texts.
//!
//! `postgresql.conf` and `pg_hba.conf` are written completely: none of a distribution's defaults remain. The server
//! listens on the one address of its place. It runs in the foreground with its log on standard error, which the sandbox
//! writes to [`SERVER_LOG`].

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tithe_machine::{
    launch::{Command, Content, Install, Launch, Place, Step, Stored},
    paths::Paths,
};
use tithe_model::quantity::setting_bytes;
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::{install::version_of, parameters::DESTINATION, target::USER};

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
pub const SERVER_LOG: &str = "server.log";

/// Settings of every server that Tithe launches, with the reason; an experiment may change them. All others are
/// PostgreSQL's defaults, above all for durability: `fsync`, `synchronous_commit` and `full_page_writes` are on.
pub const COMMON: &[(&str, &str, &str)] = &[
    ("autovacuum", "off", "it would run in the slots of one arm by chance; Tithe vacuums all arms between epochs"),
    ("checkpoint_timeout", "1h", "checkpoints are Tithe's, on all arms at once, between epochs"),
    (
        "dynamic_shared_memory_type",
        "mmap",
        "a killed server would leave what it shares in /dev/shm; so it is in its folder",
    ),
    ("jit", "off", "compiling a statement is a cost that comes and goes with the planner's estimates"),
    ("log_timezone", "UTC", "logs of all arms and machines read alike"),
    ("max_connections", "300", "the measured clients, and those that prove and watch"),
    ("max_wal_size", "16GB", "a checkpoint for lack of space would fall into the slots of one arm by chance"),
    (
        "shared_buffers",
        "256MB",
        "larger than the default of 128MB, and small enough for every machine with several arms",
    ),
    ("timezone", "UTC", "as log_timezone"),
];

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("config_file", "Tithe writes it"),
    ("data_directory", "each server has a folder of its own"),
    ("external_pid_file", "everything that a server writes stays in its folder"),
    ("hba_file", "who may connect is decided by the protections `tls` and `scram`"),
    ("ident_file", "as hba_file"),
    ("listen_addresses", "where servers listen is `listen` of `[load]`"),
    ("log_destination", "evidence reads the log where Tithe puts it"),
    ("log_directory", "as log_destination"),
    ("log_filename", "as log_destination"),
    ("log_rotation_age", "as log_destination"),
    ("log_rotation_size", "as log_destination"),
    ("password_encryption", "decided by the protection `scram`"),
    ("port", "Tithe chooses a free one"),
    ("ssl", "decided by the protection `tls`"),
    ("ssl_ca_file", "decided by the protection `tls`"),
    ("ssl_cert_file", "decided by the protection `tls`"),
    ("ssl_crl_dir", "decided by the protection `tls`"),
    ("ssl_crl_file", "decided by the protection `tls`"),
    ("ssl_key_file", "decided by the protection `tls`"),
    ("ssl_max_protocol_version", "decided by the protection `tls`"),
    ("ssl_min_protocol_version", "decided by the protection `tls`"),
    ("unix_socket_directories", "clients connect by TCP, as the measured ones do"),
];

/// The setting that makes a server process write the log: client processes send it their messages through a pipe. If it
/// is off, each of them writes to the file itself.
pub const COLLECTOR: &str = "logging_collector";

/// Memory that a server needs in addition to `shared_buffers`, bytes: the default of `maintenance_work_mem`, which the
/// vacuum between epochs may use. While serving, one used 4 MB of its own.
const MEMORY_BESIDE: u64 = 64 << 20;

/// The least memory that a server with `settings` needs, bytes; `None` if its buffer size cannot be parsed.
pub fn memory_needed(settings: &BTreeMap<String, String>) -> Option<u64> {
    let common = COMMON.iter().find(|(name, ..)| *name == "shared_buffers").map(|(_, value, _)| *value);
    let buffers = settings.get("shared_buffers").map(String::as_str).or(common)?;
    // A number alone counts blocks of 8 kB (documentation, "shared_buffers").
    Some(setting_bytes(buffers, 8192)? + MEMORY_BESIDE)
}

/// Settings that leave no trace in the data folder of a stopped server: memory, connections, what is logged.
const STORAGE_NEUTRAL: [&str; 10] = [
    "effective_cache_size",
    DESTINATION,
    "log_statement",
    COLLECTOR,
    "maintenance_work_mem",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "work_mem",
];

/// What a stopped server leaves. The account and its password are in the data folder, so servers with a password share
/// no data with those without.
pub fn stored(setup: &Setup) -> Stored {
    let mut storage_settings = vec![format!("authentication = {}", method(setup))];
    for (name, value) in &setup.settings {
        if name == LIBRARIES {
            let others = value.split(',').filter(|library| library.trim() != "pgaudit");
            storage_settings.extend(others.map(|library| format!("{name} = {}", library.trim())));
        } else if !STORAGE_NEUTRAL.contains(&name.as_str()) && !name.starts_with("pgaudit.") {
            storage_settings.push(format!("{name} = {value}"));
        }
    }
    Stored { paths: vec!["data".to_owned()], storage_settings }
}

const LIBRARIES: &str = "shared_preload_libraries";

/// Everything below the data folder that can hold values, except the write-ahead log.
const DATA_FOLDERS: [&str; 6] = ["base", "global", "pg_logical", "pg_replslot", "pg_stat_tmp", "pg_twophase"];

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let write =
        |name: &str, text: String| Step::Write { path: data.join(name), content: Content::Text(text), mode: 0o600 };
    let mut steps = Vec::from_iter(setup.identity_step());
    if matches!(setup.authentication, Authentication::Password { .. }) {
        let content = Content::Secret(setup.credentials.password.clone());
        steps.push(Step::Write { path: place.folder.join("password"), content, mode: 0o600 });
    }
    steps.push(Step::MakeData(initdb(install, setup, place)));
    steps.push(write("postgresql.conf", conf_text(&settings(setup, place))));
    steps.push(write("pg_hba.conf", hba(setup, place)));
    Launch {
        steps,
        server: Some(Command {
            program: install.programs.join("postgres"),
            arguments: vec!["-D".to_owned(), text(&data)],
            environment: environment(),
        }),
        // "Fast shutdown": disconnects the clients and writes a checkpoint (documentation, "Shutting Down the Server").
        stop_signal: Signal::INT,
        // "Immediate shutdown": no checkpoint, and its shared memory is released (the same page).
        discard_signal: Signal::QUIT,
        address: place.address(),
        paths: Paths {
            data: DATA_FOLDERS.iter().map(|name| data.join(name)).collect(),
            journal: vec![data.join("pg_wal")],
            logs: logs(setup, place),
        },
    }
}

/// The files the server logs to: besides the one file, its collector writes files with that name and another suffix.
fn logs(setup: &Setup, place: &Place) -> Vec<PathBuf> {
    let log = place.folder.join(SERVER_LOG);
    let is_csv = setup.settings.get(DESTINATION).is_some_and(|destination| destination == "csvlog");
    let csv = is_csv.then(|| log.with_extension("csv"));
    csv.into_iter().chain([log]).collect()
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())])
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The command that creates the data folder.
fn initdb(install: &Install, setup: &Setup, place: &Place) -> Command {
    let mut arguments = vec!["-D".to_owned(), text(&place.folder.join("data")), "-U".to_owned(), USER.to_owned()];
    arguments.extend(["-A".to_owned(), method(setup).to_owned()]);
    if matches!(setup.authentication, Authentication::Password { .. }) {
        arguments.push(format!("--pwfile={}", text(&place.folder.join("password"))));
    }
    // A fresh folder does not need to be synced to disk: Tithe creates it again if it is lost.
    arguments.extend(["--no-locale", "-E", "UTF8", "--no-sync"].map(str::to_owned));
    arguments.extend(setup.create_arguments.iter().cloned());
    let checksums = setup.create_arguments.iter().any(|argument| argument == "-k" || argument == "--data-checksums");
    // From PostgreSQL 18 on, page checksums are on unless initdb gets an option against it.
    if !checksums && version_of(&install.version).is_some_and(|(major, _)| major >= 18) {
        arguments.push("--no-data-checksums".to_owned());
    }
    Command { program: install.programs.join("initdb"), arguments, environment: environment() }
}

/// The authentication method of this arm's clients, in the words of `pg_hba.conf`.
fn method(setup: &Setup) -> &str {
    match &setup.authentication {
        Authentication::None => "trust",
        Authentication::Password { mechanism } => mechanism.trim_end_matches("-plus"),
    }
}

/// All settings of the server: the common ones, those of the experiment and the protections, Tithe's own.
fn settings(setup: &Setup, place: &Place) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> =
        COMMON.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
    if let Some(connections) = setup.more_connections(300) {
        settings.insert("max_connections".to_owned(), connections.to_string());
    }
    settings.insert(COLLECTOR.to_owned(), "off".to_owned());
    // Their names are the same in capitals (documentation, "Parameter Names and Values").
    settings.extend(setup.settings.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    let mut own = |name: &str, value: String| drop(settings.insert(name.to_owned(), value));
    own("listen_addresses", place.listen.to_string());
    own("port", place.port.to_string());
    own("unix_socket_directories", String::new());
    // An experiment may not say it, a protection may.
    own(DESTINATION, setup.settings.get(DESTINATION).map_or("stderr", String::as_str).to_owned());
    if collects_log(setup) {
        // Messages from before the collector starts go to the same file.
        own("log_directory", text(&place.folder));
        own("log_filename", SERVER_LOG.to_owned());
        own("log_rotation_age", "0".to_owned());
        own("log_rotation_size", "0".to_owned());
    }
    if matches!(setup.authentication, Authentication::Password { .. }) {
        own("password_encryption", method(setup).to_owned());
    }
    match setup.transport {
        Transport::Plain => own("ssl", "off".to_owned()),
        Transport::Tls { version, mutual, .. } => {
            let version = match version {
                TlsVersion::V1_2 => "TLSv1.2",
                TlsVersion::V1_3 => "TLSv1.3",
            };
            own("ssl", "on".to_owned());
            own("ssl_cert_file", text(&setup.credentials.server_certificate));
            own("ssl_key_file", text(&setup.credentials.server_key));
            own("ssl_min_protocol_version", version.to_owned());
            own("ssl_max_protocol_version", version.to_owned());
            // Only if clients must show a certificate: with this setting the server asks every client for one.
            if mutual {
                own("ssl_ca_file", text(&setup.credentials.authority));
            }
        }
    }
    settings
}

/// True if a process of the server writes its log.
pub fn collects_log(setup: &Setup) -> bool {
    let asked = setup.settings.iter().find(|(name, _)| name.eq_ignore_ascii_case(COLLECTOR));
    asked.is_some_and(|(_, value)| !is_off(value))
}

/// True for a value that switches a setting off: a word for it, or an abbreviation of one (documentation, "Parameter
/// Names and Values").
fn is_off(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    // An `o` could be `on` as well.
    !["", "o"].contains(&value.as_str()) && ["off", "false", "no", "0"].iter().any(|word| word.starts_with(&value))
}

/// Settings in the syntax of `postgresql.conf`. An invalid name is turned into one with which the server refuses to
/// start, so that it can neither be overlooked nor add lines of its own.
fn conf_text(settings: &BTreeMap<String, String>) -> String {
    settings.iter().fold(String::new(), |mut out, (name, value)| {
        let allowed = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '.';
        let name: String = name.chars().map(|sign| if allowed(sign) { sign } else { '_' }).collect();
        let value = value.replace(['\n', '\r', '\0'], " ").replace('\\', "\\\\").replace('\'', "''");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name} = '{value}'");
        out
    })
}

/// `pg_hba.conf`: which clients are accepted from which addresses. It has one line; everything else is refused.
fn hba(setup: &Setup, place: &Place) -> String {
    let (from, method) = (clients(setup, place), method(setup));
    match setup.transport {
        Transport::Plain => format!("host all all {from} {method}\n"),
        Transport::Tls { mutual: false, .. } => format!("hostssl all all {from} {method}\n"),
        Transport::Tls { mutual: true, .. } => format!("hostssl all all {from} {method} clientcert=verify-ca\n"),
    }
}

/// Where clients come from: this machine, or any address that can reach the server's address. Clients without a
/// password always come from this machine.
fn clients(setup: &Setup, place: &Place) -> &'static str {
    let is_open = !place.listen.is_loopback() && setup.authentication != Authentication::None;
    match (is_open, place.listen.is_ipv4()) {
        (false, true) => "127.0.0.1/32",
        (false, false) => "::1/128",
        (true, true) => "0.0.0.0/0",
        (true, false) => "::/0",
    }
}
