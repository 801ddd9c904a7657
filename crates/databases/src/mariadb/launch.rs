//! Files, commands and arguments that start one server, as data. Pure.
//!
//! `my.cnf` is written completely, and none of a distribution's defaults are read. The server listens on the one
//! address of its place and runs in the foreground with its log on standard error. It creates its account from a file
//! of statements that it runs at its start. That file holds the password and is only readable by the server.
//!
//! The key of encryption at rest is outside the server's folder, in one of the folders of this run's certificates.

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

use super::{install::INSTALLER, rotation::KEYS};
use crate::mysql_family::{
    launch::{GENERAL_LOG, Options, SERVER_LOG, clients, environment, logs, require, within},
    proof::{ED25519, NATIVE},
    target::USER,
};

/// Audit log, below [`Place::folder`].
const AUDIT_LOG: &str = "audit.log";

/// Settings of every server that Tithe launches, with the reason; an experiment may change them. All others are
/// MariaDB's defaults, above all for durability: `innodb_flush_log_at_trx_commit` and `innodb_doublewrite` are on.
const COMMON: &[(&str, &str, &str)] = &[
    ("innodb_buffer_pool_dump_at_shutdown", "OFF", "servers are removed after the run"),
    ("innodb_buffer_pool_size", "256M", "larger than the default of 128M, and small enough for several arms"),
    ("innodb_log_file_size", "512M", "a checkpoint for lack of space would fall into the slots of one arm by chance"),
    (
        "innodb_stats_auto_recalc",
        "OFF",
        "it would run in the slots of one arm by chance; Tithe analyses all arms at once",
    ),
    ("max_connections", "300", "the measured clients, and those that prove and watch"),
    ("max_prepared_stmt_count", "1048576", "every client prepares all its statements"),
    ("skip_name_resolve", "ON", "a name service would be part of every connection"),
];

/// Memory that a server with its clients needs in addition to the buffer pool, bytes: a safe estimate, not a measured
/// bound. A server that is killed for lack of memory ends its cell with that reason.
const MEMORY_BESIDE: u64 = 128 << 20;

/// Settings that leave no trace in the data folder of a stopped server: memory, connections, what is logged.
const STORAGE_NEUTRAL: [&str; 8] = [
    "general_log",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "log_output",
    "max_connections",
    "max_prepared_stmt_count",
    "server_audit",
    "table_open_cache",
];

/// Plugins that leave none either.
const STORAGE_NEUTRAL_PLUGINS: [&str; 2] = ["auth_ed25519", "server_audit"];

/// What a stopped server leaves. Accounts are created again at each start, whatever the folder holds. The binary log is
/// not kept: its index holds the names of the folder in which it was written.
pub fn stored(setup: &Setup) -> Stored {
    let mut storage_settings = Vec::new();
    for (name, value) in &setup.settings {
        if name == PLUGINS {
            let others = value.split(';').filter(|plugin| !STORAGE_NEUTRAL_PLUGINS.contains(plugin));
            storage_settings.extend(others.map(|plugin| format!("{name} = {plugin}")));
        } else if !STORAGE_NEUTRAL.contains(&name.as_str()) && !name.starts_with("server_audit_") {
            storage_settings.push(format!("{name} = {value}"));
        }
    }
    Stored { paths: vec!["data".to_owned()], storage_settings }
}

const PLUGINS: &str = "plugin_load_add";

/// The least memory that a server with `settings` needs, bytes; `None` if its buffer pool size cannot be parsed.
pub fn memory_needed(settings: &BTreeMap<String, String>) -> Option<u64> {
    const POOL: &str = "innodb_buffer_pool_size";
    let common = COMMON.iter().find(|(name, ..)| *name == POOL).map(|(_, value, _)| *value);
    let pool = settings.get(POOL).map(String::as_str).or(common)?;
    Some(setting_bytes(pool, 1)? + MEMORY_BESIDE)
}

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("aria_log_dir_path", "evidence looks for Aria's log in the data folder"),
    ("basedir", "where the programs were found"),
    ("bind_address", "where servers listen is `listen` of `[load]`"),
    ("datadir", "each server has a folder of its own"),
    ("general_log_file", "evidence reads the log where Tithe puts it"),
    ("init_file", "Tithe makes the account with it"),
    ("innodb_data_file_path", "everything that a server writes stays in its folder"),
    ("innodb_data_home_dir", "everything that a server writes stays in its folder"),
    ("innodb_log_group_home_dir", "evidence looks for the redo log in the data folder"),
    ("innodb_temp_data_file_path", "everything that a server writes stays in its folder"),
    ("innodb_tmpdir", "everything that a server writes stays in its folder"),
    ("innodb_undo_directory", "everything that a server writes stays in its folder"),
    ("log_bin_index", "everything that a server writes stays in its folder"),
    ("log_ddl_recovery", "everything that a server writes stays in its folder"),
    ("log_error", "as general_log_file"),
    ("log_isam", "everything that a server writes stays in its folder"),
    // The newer name of slow_query_log_file.
    ("log_slow_query_file", "everything that a server writes stays in its folder"),
    ("log_tc", "everything that a server writes stays in its folder"),
    ("master_info_file", "everything that a server writes stays in its folder"),
    ("pid_file", "everything that a server writes stays in its folder"),
    ("plugin_dir", "where the programs were found"),
    ("port", "Tithe chooses a free one"),
    ("relay_log", "everything that a server writes stays in its folder"),
    ("relay_log_index", "everything that a server writes stays in its folder"),
    ("relay_log_info_file", "everything that a server writes stays in its folder"),
    ("require_secure_transport", "decided by the protection `tls`"),
    ("server_audit_file_path", "as general_log_file"),
    ("skip_grant_tables", "who may connect is decided by the protections"),
    ("slave_load_tmpdir", "everything that a server writes stays in its folder"),
    ("slow_query_log_file", "everything that a server writes stays in its folder"),
    ("socket", "clients connect by TCP, as the measured ones do"),
    ("sql_error_log_filename", "everything that a server writes stays in its folder"),
    ("ssl_ca", "decided by the protection `tls`"),
    ("ssl_capath", "decided by the protection `tls`"),
    ("ssl_cert", "decided by the protection `tls`"),
    ("ssl_key", "decided by the protection `tls`"),
    ("tls_version", "decided by the protection `tls`"),
    ("tmpdir", "everything that a server writes stays in its folder"),
    ("user", "the sandbox chooses the account"),
];

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let folders = [data.clone(), place.folder.join("tmp"), place.folder.join("binlog")];
    let mut steps: Vec<Step> = folders.into_iter().map(Step::Folder).chain(setup.identity_step()).collect();
    if let Some(at_rest) = &setup.at_rest {
        // A list of numbered keys in hexadecimal. Only number 1 is needed, unless keys are changed.
        let second = setup.rotates.then_some(&setup.credentials.second_key);
        let keys = KEYS.into_iter().zip([Some(&at_rest.key), second].into_iter().flatten());
        let lines: String = keys.map(|(number, key)| format!("{number};{}\n", key.expose_hex())).collect();
        let content = Content::Secret(Secret::new(lines));
        steps.push(Step::Write { path: key_file(setup, place), content, mode: 0o600 });
    }
    let configuration = place.folder.join("my.cnf");
    steps.push(Step::Write { path: configuration.clone(), content: Content::Text(text(setup, place)), mode: 0o600 });
    let accounts = Content::Secret(Secret::new(accounts(setup, place)));
    steps.push(Step::Write { path: place.folder.join("accounts.sql"), content: accounts, mode: 0o600 });
    steps.push(Step::MakeData(installer(install, &configuration)));
    Launch {
        steps,
        server: Some(Command {
            program: install.programs.join("mariadbd"),
            // The accounts need tables that the installer has not created yet, so this setting is not in the file.
            arguments: vec![
                format!("--defaults-file={}", configuration.display()),
                format!("--init-file={}", place.folder.join("accounts.sql").display()),
            ],
            environment: environment(),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths {
            journal: vec![data.join("ib_logfile0"), data.join("aria_log.00000001"), place.folder.join("binlog")],
            data: vec![data, place.folder.join("tmp")],
            logs: logs(place, &[SERVER_LOG, AUDIT_LOG, GENERAL_LOG]),
        },
    }
}

/// Where the key of encryption at rest is: with the run's certificates, not below the server's folder.
fn key_file(setup: &Setup, place: &Place) -> PathBuf {
    let name = place.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    setup.credentials.authority.with_file_name(format!("mariadb-keys-{name}"))
}

/// The command that creates the data folder.
fn installer(install: &Install, configuration: &Path) -> Command {
    let program = install.facts.get(INSTALLER).map_or("mariadb-install-db", String::as_str);
    let base = install.programs.parent().unwrap_or(Path::new("/usr"));
    let arguments = vec![
        format!("--defaults-file={}", configuration.display()),
        format!("--basedir={}", base.display()),
        "--auth-root-authentication-method=normal".to_owned(),
        "--skip-test-db".to_owned(),
        "--skip-name-resolve".to_owned(),
    ];
    Command { program: program.into(), arguments, environment: environment() }
}

/// The statements that leave a single account, for Tithe's clients. The server reads one statement per line.
fn accounts(setup: &Setup, place: &Place) -> String {
    let proof = match &setup.authentication {
        Authentication::None => String::new(),
        Authentication::Password { mechanism } => {
            let plugin = if mechanism == ED25519 { "ed25519" } else { NATIVE };
            // Tithe's passwords are letters and digits: nothing in them needs escaping.
            format!(" IDENTIFIED VIA {plugin} USING PASSWORD('{}')", setup.credentials.password.expose_text())
        }
    };
    let (from, require) = (clients(setup, place), require(setup));
    format!(
        "DELETE FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys', 'PUBLIC');\n\
         FLUSH PRIVILEGES;\n\
         CREATE USER {USER}@'{from}'{proof}{require};\n\
         GRANT ALL ON *.* TO {USER}@'{from}';\n"
    )
}

/// The configuration file.
fn text(setup: &Setup, place: &Place) -> String {
    let mut options = Options::new(COMMON, setup);
    if options.is_on("log_bin") {
        options.log_binary(place);
    }
    options.keep_in(place);
    options.speak(setup);
    if setup.at_rest.is_some() {
        options.set("file_key_management_filename", key_file(setup, place).display());
    }
    if setup.settings.contains_key("server_audit_logging") {
        options.set("server_audit_file_path", within(place, AUDIT_LOG));
    }
    options.text("mariadbd")
}

/// Adds a plugin to those that the server loads at its start.
pub fn load_plugin(setup: &mut Setup, plugin: &str) {
    let list = setup.settings.entry(PLUGINS.to_owned()).or_default();
    if !list.is_empty() {
        list.push(';');
    }
    list.push_str(plugin);
}
