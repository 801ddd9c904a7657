//! Files, links, commands and arguments that start one server, as data. Pure.
//!
//! `my.cnf` is written completely, and none of a distribution's defaults are read. The server listens on the one
//! address of its place and runs in the foreground with its log on standard error. It creates its account from a file
//! of statements that it runs at its start. That file holds the password and is only readable by the server.
//!
//! MySQL reads which keyring it has from a file next to its program, and the keyring's settings from a file next to the
//! component (documentation, "Keyring Component Installation"). The installation is not changed: a server that encrypts
//! is started by a link in its own folder, with a plugin folder of links to what it loads. The server creates its key
//! file in a folder separate from the data.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tithe_machine::{
    launch::{Command, Content, Install, Launch, Place, Step, Stored},
    paths::Paths,
    secret::Secret,
};
use tithe_model::quantity::setting_bytes;
use tithe_plugin::setup::{Authentication, Setup};

use super::install::KEYRING;
use crate::mysql_family::{
    PLUGINS,
    launch::{self, GENERAL_LOG, Options, SERVER_LOG, clients, logs, require, switched_on, within},
    target::USER,
};

/// Settings of every server that Tithe launches, with the reason; an experiment may change them. All others are MySQL's
/// defaults, above all for durability: the binary log is on, `sync_binlog` and `innodb_flush_log_at_trx_commit` are 1.
const COMMON: &[(&str, &str, &str)] = &[
    ("auto_generate_certs", "OFF", "TLS is there where an arm asks for it"),
    ("innodb_buffer_pool_dump_at_shutdown", "OFF", "servers are removed after the run"),
    ("innodb_buffer_pool_size", "256M", "larger than the default of 128M, and small enough for several arms"),
    (
        "innodb_redo_log_capacity",
        "512M",
        "a checkpoint for lack of space would fall into the slots of one arm by chance",
    ),
    (
        "innodb_stats_auto_recalc",
        "OFF",
        "it would run in the slots of one arm by chance; Tithe analyses all arms at once",
    ),
    ("log_bin", "ON", "the default, where Tithe looks for it"),
    ("max_connections", "300", "the measured clients, and those that prove and watch"),
    ("max_prepared_stmt_count", "1048576", "every client prepares all its statements"),
    ("mysqlx", "OFF", "no client speaks the other protocol"),
    ("skip_name_resolve", "ON", "a name service would be part of every connection"),
];

/// Memory that a server with its clients needs in addition to the buffer pool, bytes: a safe estimate, not a measured
/// bound. A server that is killed for lack of memory ends its cell with that reason.
const MEMORY_BESIDE: u64 = 512 << 20;

/// As [`MEMORY_BESIDE`], without the performance schema, which uses most of that. MySQL 8.0.33 alone: 103 MiB of its
/// own after its start with a buffer pool of 8 MiB.
const MEMORY_BESIDE_UNWATCHED: u64 = 192 << 20;

/// Settings that leave no trace in the data folder of a stopped server: memory, connections, what is logged.
const STORAGE_NEUTRAL: [&str; 7] = [
    "general_log",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "log_output",
    "max_connections",
    "max_prepared_stmt_count",
    "table_open_cache",
];

/// The file of the keyring, below [`Place::folder`].
pub const KEYS: &str = "keyring/keys";

/// Settings with which the server encrypts something: the part, and the setting.
pub const TABLES: &str = "default_table_encryption";
/// As [`TABLES`], of the redo log.
pub const REDO: &str = "innodb_redo_log_encrypt";
/// As [`TABLES`], of the undo log.
pub const UNDO: &str = "innodb_undo_log_encrypt";
/// As [`TABLES`], of the binary log.
pub const BINLOG: &str = "binlog_encryption";

/// Files and folders of the redo log, below the data folder.
pub const REDO_FILES: [&str; 1] = ["#innodb_redo"];
/// As [`REDO_FILES`], of the undo log.
pub const UNDO_FILES: [&str; 2] = ["undo_001", "undo_002"];
/// The suffixes of doublewrite files, which are in the data folder.
pub const DOUBLEWRITE_ENDS: [&str; 2] = ["bdblwr", "dblwr"];
/// The folder of the binary log, below [`Place::folder`].
pub const BINLOG_FOLDER: &str = "binlog";

/// What a stopped server leaves. Accounts are created again at each start, whatever the folder holds. The binary log is
/// not kept: its index holds the names of the folder in which it was written. The keys that the server has made are
/// kept with the data.
pub fn stored(setup: &Setup) -> Stored {
    let traced = setup.settings.iter().filter(|(name, _)| !STORAGE_NEUTRAL.contains(&name.as_str()));
    let storage_settings = traced.map(|(name, value)| format!("{name} = {value}")).collect();
    Stored { paths: vec!["data".to_owned(), "keyring".to_owned()], storage_settings }
}

/// The least memory that a server with `settings` needs, bytes; `None` if its buffer pool size cannot be parsed.
pub fn memory_needed(settings: &BTreeMap<String, String>) -> Option<u64> {
    const POOL: &str = "innodb_buffer_pool_size";
    let common = COMMON.iter().find(|(name, ..)| *name == POOL).map(|(_, value, _)| *value);
    let pool = settings.get(POOL).map(String::as_str).or(common)?;
    let watched = settings.get("performance_schema").is_none_or(|value| switched_on(value));
    Some(setting_bytes(pool, 1)? + if watched { MEMORY_BESIDE } else { MEMORY_BESIDE_UNWATCHED })
}

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("basedir", "where the programs were found"),
    ("bind_address", "where servers listen is `listen` of `[load]`"),
    ("datadir", "each server has a folder of its own"),
    ("general_log_file", "evidence reads the log where Tithe puts it"),
    ("init_file", "Tithe makes the account with it"),
    ("innodb_data_file_path", "everything that a server writes stays in its folder"),
    ("innodb_data_home_dir", "everything that a server writes stays in its folder"),
    ("innodb_doublewrite_dir", "evidence looks for doublewrite files in the data folder"),
    ("innodb_log_group_home_dir", "evidence looks for the redo log in the data folder"),
    ("innodb_redo_log_archive_dirs", "everything that a server writes stays in its folder"),
    ("innodb_temp_data_file_path", "everything that a server writes stays in its folder"),
    ("innodb_temp_tablespaces_dir", "everything that a server writes stays in its folder"),
    ("innodb_tmpdir", "everything that a server writes stays in its folder"),
    ("innodb_undo_directory", "evidence looks for the undo log in the data folder"),
    ("log_bin_index", "everything that a server writes stays in its folder"),
    ("log_error", "as general_log_file"),
    ("log_isam", "everything that a server writes stays in its folder"),
    ("log_tc", "everything that a server writes stays in its folder"),
    ("master_info_file", "everything that a server writes stays in its folder"),
    ("pid_file", "everything that a server writes stays in its folder"),
    ("plugin_dir", "where the programs were found, or the keyring component's link"),
    ("port", "Tithe chooses a free one"),
    ("relay_log", "everything that a server writes stays in its folder"),
    ("relay_log_index", "everything that a server writes stays in its folder"),
    ("relay_log_info_file", "everything that a server writes stays in its folder"),
    ("replica_load_tmpdir", "everything that a server writes stays in its folder"),
    ("require_secure_transport", "decided by the protection `tls`"),
    ("skip_grant_tables", "who may connect is decided by the protections"),
    ("slave_load_tmpdir", "everything that a server writes stays in its folder"),
    ("slow_query_log_file", "everything that a server writes stays in its folder"),
    ("socket", "clients connect by TCP, as the measured ones do"),
    ("ssl_ca", "decided by the protection `tls`"),
    ("ssl_capath", "decided by the protection `tls`"),
    ("ssl_cert", "decided by the protection `tls`"),
    ("ssl_key", "decided by the protection `tls`"),
    ("tls_version", "decided by the protection `tls`"),
    ("tmpdir", "everything that a server writes stays in its folder"),
    ("user", "the sandbox chooses the account"),
];

/// True when a server of this arm needs keys.
fn encrypts(setup: &Setup) -> bool {
    let on = |name: &&str| setup.settings.get(*name).is_some_and(|value| value == "ON");
    [TABLES, REDO, UNDO, BINLOG].iter().any(on)
}

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let binlog = place.folder.join(BINLOG_FOLDER);
    let mut steps: Vec<Step> =
        [data.clone(), place.folder.join("tmp"), binlog.clone()].into_iter().map(Step::Folder).collect();
    steps.extend(setup.identity_step());
    let mut program = install.programs.join("mysqld");
    if encrypts(setup) {
        steps.extend(keyring(install, place));
        program = place.folder.join("program/mysqld");
    }
    let configuration = place.folder.join("my.cnf");
    let content = Content::Text(text(install, setup, place));
    steps.push(Step::Write { path: configuration.clone(), content, mode: 0o600 });
    let statements = place.folder.join("accounts.sql");
    let content = Content::Secret(Secret::new(accounts(setup, place)));
    steps.push(Step::Write { path: statements.clone(), content, mode: 0o600 });
    let command = |further: String| Command {
        program: program.clone(),
        arguments: vec![format!("--defaults-file={}", configuration.display()), further],
        environment: environment(),
    };
    // The administrator has no password, and is removed before a client can connect.
    steps.push(Step::MakeData(command("--initialize-insecure".to_owned())));
    let below = |names: &[&str]| names.iter().map(|name| data.join(name)).collect::<Vec<_>>();
    Launch {
        steps,
        server: Some(command(format!("--init-file={}", statements.display()))),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths {
            journal: [below(&REDO_FILES), below(&UNDO_FILES), vec![binlog]].concat(),
            data: vec![data, place.folder.join("tmp")],
            logs: logs(place, &[SERVER_LOG, GENERAL_LOG]),
        },
    }
}

/// Files that the server creates are private: by default its group could read them.
fn environment() -> BTreeMap<String, String> {
    let mut environment = launch::environment();
    environment.insert("UMASK".to_owned(), "0600".to_owned());
    environment
}

/// The links, and the files next to them: which component the server loads, and where it keeps its keys.
fn keyring(install: &Install, place: &Place) -> Vec<Step> {
    let [keyring, program, plugins] = ["keyring", "program", "plugins"].map(|name| place.folder.join(name));
    let installed = Path::new(install.facts.get(PLUGINS).map_or("", String::as_str));
    let component = |name: &str| {
        let library = format!("{name}.so");
        Step::Link { path: plugins.join(&library), to: installed.join(library) }
    };
    // The server warns about a file that others can write.
    let write = |path: PathBuf, text: String| Step::Write { path, content: Content::Text(text), mode: 0o400 };
    vec![
        Step::Folder(keyring),
        Step::Folder(program.clone()),
        Step::Folder(plugins.clone()),
        Step::Link { path: program.join("mysqld"), to: install.programs.join("mysqld") },
        write(program.join("mysqld.my"), format!("{{ \"components\": \"file://{KEYRING}\" }}\n")),
        component(KEYRING),
        // Loaded by every server of 8.0.
        component("component_reference_cache"),
        write(
            plugins.join(format!("{KEYRING}.cnf")),
            format!("{{ \"path\": \"{}\", \"read_only\": false }}\n", within(place, KEYS)),
        ),
    ]
}

/// The statements that leave a single account, for Tithe's clients. None of them goes into the binary log.
fn accounts(setup: &Setup, place: &Place) -> String {
    let proof = match &setup.authentication {
        Authentication::None => String::new(),
        // Tithe's passwords are letters and digits: nothing in them needs escaping.
        Authentication::Password { mechanism } => {
            format!(" IDENTIFIED WITH {mechanism} BY '{}'", setup.credentials.password.expose_text())
        }
    };
    let (from, require) = (clients(setup, place), require(setup));
    // The server's own tables were created before encryption could be requested.
    let system = match setup.settings.get(TABLES) {
        Some(value) if value == "ON" => {
            "ALTER TABLESPACE mysql ENCRYPTION = 'Y';\nALTER TABLE sys.sys_config ENCRYPTION = 'Y';\n"
        }
        _ => "",
    };
    format!(
        "SET sql_log_bin = 0;\n\
         DROP USER IF EXISTS root@localhost, {USER}@'{from}';\n\
         CREATE USER {USER}@'{from}'{proof}{require};\n\
         GRANT ALL ON *.* TO {USER}@'{from}';\n\
         {system}"
    )
}

/// The configuration file.
fn text(install: &Install, setup: &Setup, place: &Place) -> String {
    let mut options = Options::new(COMMON, setup);
    if options.is_on("log_bin") {
        options.log_binary(place);
    } else {
        // MariaDB's word for off would be a file name here.
        options.0.remove("log_bin");
        options.set("disable_log_bin", "ON");
    }
    options.keep_in(place);
    options.speak(setup);
    if let Some(base) = install.programs.parent() {
        options.set("basedir", base.display());
    }
    if encrypts(setup) {
        options.set("plugin_dir", within(place, "plugins"));
    }
    options.text("mysqld")
}
