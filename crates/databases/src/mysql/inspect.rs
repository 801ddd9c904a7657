//! The security matrix of a running MySQL: the rows that only MySQL has.

use std::path::Path;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    evidence::Check,
    matrix::State,
    product::CanaryChecks,
    session::{SqlSession as _, Table, rows},
    setup::Setup,
};

use super::{
    access::ACCESS,
    accounts,
    at_rest::{KEYRING_UNTOLD, in_system_tablespace, keyring, unencrypted, unencrypted_databases, unencrypted_logs},
    evidence::LOG,
    launch::{BINLOG, REDO, REDO_FILES, TABLES, UNDO, UNDO_FILES},
};
use crate::{
    inspect::{Judgement, Rules, version_numbers},
    mysql_family::{
        evidence::{general_log::GeneralLogComplete, served::is_this_machine},
        inspect::{
            InspectionQueries, OtherTable, files, lies_in, log_tables, of_files, other_files, other_tables, recorded,
            redo_files,
        },
        recorders::{self, Settings},
        replication::Source,
        session::WireSession,
    },
};

/// How MySQL's own rows are checked.
pub static QUERIES: InspectionQueries = InspectionQueries {
    open: |target| Ok(ACCESS.open(target)?.method().to_owned()),
    plaintext: |target| ACCESS.plaintext(target),
    accounts: accounts::read,
    roles: accounts::read_roles,
    // MariaDB shows ALL PRIVILEGES; MySQL lists every one of them.
    is_of_administrator: |grant| grant.contains(" ON *.* ") && grant.contains("CREATE USER"),
    at_rest,
    auditing,
    hurry: "SET SESSION max_execution_time = 4000",
    sources,
};

/// Asks for everything that [`encryption`] judges.
fn at_rest(session: &mut WireSession, settings: &Settings) -> Result<Judgement, Fault> {
    let keyring = keyring(session)?;
    let (others, mut doubts) = other_tables(session)?;
    let mut leaks = recorders::in_the_clear(settings);
    log_tables(session, &mut leaks, &mut doubts);
    let lists = [
        ("table in the system tablespace, which MySQL does not encrypt:", in_system_tablespace(session)),
        ("tablespace", unencrypted(session, true)),
        ("binary log", unencrypted_logs(session)),
        ("new tables in database", unencrypted_databases(session)),
    ];
    let encrypted = "SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES WHERE ENCRYPTION = 'Y'";
    let none_encrypted = session.value(encrypted).is_ok_and(|count| count == "0");
    let told = Told { keyring, others, leaks, lists, none_encrypted, sources: sources(session), doubts };
    Ok(encryption(told, settings))
}

/// What a server reported about its encryption.
struct Told {
    /// As [`keyring`].
    keyring: Option<Vec<(String, String)>>,
    /// Tables of other engines.
    others: Vec<OtherTable>,
    /// Recorders that repeat values in plaintext.
    leaks: Vec<String>,
    /// The unencrypted parts, each with its kind.
    lists: [(&'static str, Result<Vec<String>, Fault>); 4],
    /// The server reported that no tablespace is encrypted.
    none_encrypted: bool,
    /// As [`sources`].
    sources: Result<Vec<Source>, Fault>,
    /// The parts that could not be read.
    doubts: Vec<String>,
}

/// New tables, old tables and logs must be encrypted, and no account may bypass it: each of them may have been
/// forgotten.
fn encryption(told: Told, settings: &Settings) -> Judgement {
    let Told { keyring, others, leaks, lists, none_encrypted, sources, mut doubts } = told;
    let names = [TABLES, CHECKED, REDO, UNDO, BINLOG, "log_bin"];
    let mut words: Vec<String> = names.iter().map(|name| format!("{name} = {}", settings.value(name))).collect();
    let [tables, checked, redo, undo, binlog, logs] = names.map(|name| settings.value(name) == "ON");
    let active =
        |told: &[(String, String)]| told.iter().any(|(name, value)| name == "Component_status" && value == "Active");
    let mut exceptions = Vec::new();
    words.push(match keyring {
        None => format!("keyring component: {KEYRING_UNTOLD}"),
        Some(told) if active(&told) => {
            let file = told.iter().find(|(name, _)| name == "Data_file").map(|(_, file)| file.as_str());
            if let Some(file) = file.filter(|file| lies_in(file, settings.value("datadir"))) {
                exceptions.push(format!("the keys are in the folder of the data: {file}"));
            }
            let place = file.map_or(String::new(), |file| format!(" (keys in {file})"));
            format!("a keyring component is active{place}")
        }
        Some(_) => "no keyring component is active".to_owned(),
    });
    // The plugin before the component has its keys in a file that is not encrypted.
    let keys = settings.value("keyring_file_data");
    if !keys.is_empty() {
        words.push(format!("the plugin keyring_file is loaded (keys in {keys})"));
        if lies_in(keys, settings.value("datadir")) {
            exceptions.push(format!("the keys are in the folder of the data: {keys}"));
        }
    }
    for (plugin, setting) in KEYRING_PLUGINS {
        if let Some(value) = settings.get(setting) {
            words.push(format!("the plugin {plugin} is loaded ({setting} = {value})"));
        }
    }
    exceptions.extend(others.iter().map(|table| format!("{} table {}", table.engine, table.name)));
    for (kind, list) in lists {
        match list {
            Ok(open) => exceptions.extend(open.iter().map(|name| format!("{kind} {name}"))),
            Err(fault) => doubts.push(format!("{kind}s (GRANT PROCESS, REPLICATION CLIENT ON *.*: {fault})")),
        }
    }
    for (is_on, name) in [(tables, TABLES), (checked, CHECKED), (redo, REDO), (undo, UNDO), (binlog || !logs, BINLOG)] {
        if !is_on {
            exceptions.push(format!("{name} is not ON"));
        }
    }
    if encrypts_doublewrite(settings.value("version")) {
        words.push("doublewrite as its tablespaces".to_owned());
    } else {
        doubts.push("doublewrite files, which MySQL encrypts from version 8.0.23 on".to_owned());
    }
    let follows = sources.as_ref().is_ok_and(|sources| !sources.is_empty());
    other_files(sources, (BINLOG, binlog), settings, &mut exceptions, &mut doubts);
    let temporary = settings.value("tmpdir");
    doubts.push(format!("temporary tables (ibtmp1) and files in {temporary}, for which MySQL has no setting"));
    let buffered = settings.value("innodb_change_buffering");
    // Percona Server can encrypt the system tablespace.
    if !["", "none"].contains(&buffered) && !settings.is_on("innodb_sys_tablespace_encrypt") {
        doubts.push(format!(
            "entries of secondary indexes in the system tablespace (ibdata1), which MySQL does not encrypt \
             (innodb_change_buffering = {buffered})"
        ));
    }
    // They stay as they are until their changes are applied. No statement of MySQL shows which are encrypted.
    if follows && binlog {
        doubts.push(format!("relay logs from before {BINLOG} was ON"));
    }
    let nothing = none_encrypted && !(tables || redo || undo || binlog);
    let state = if nothing { State::Off } else { State::Enforced };
    let findings = of_files(&exceptions, &leaks);
    exceptions.extend(leaks);
    let rules = Rules {
        read: format!("settings, tablespaces, logs and {} tables of other engines, no dumps", others.len()),
        exceptions,
        remedy: "set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off",
        doubts,
        findings,
    };
    Judgement::account(state, words.join(", ")).with_rules(Ok(rules), "")
}

/// True of a `version` that encrypts doublewrite pages like their tablespaces (MySQL's documentation, "Doublewrite File
/// Encryption"), and of one that is not shown.
fn encrypts_doublewrite(version: &str) -> bool {
    let numbers = version_numbers(version);
    numbers.len() < 3 || numbers >= vec![8, 0, 23]
}

/// Further plugins that keep keys, each with a setting that exists only if it is loaded (MySQL's documentation,
/// "Keyring System Variables"; Percona Server's, "Use the keyring vault plugin").
const KEYRING_PLUGINS: [(&str, &str); 6] = [
    ("keyring_aws", "keyring_aws_conf_file"),
    ("keyring_encrypted_file", "keyring_encrypted_file_data"),
    ("keyring_hashicorp", "keyring_hashicorp_server_url"),
    ("keyring_oci", "keyring_oci_key_file"),
    ("keyring_okv", "keyring_okv_conf_dir"),
    ("keyring_vault", "keyring_vault_config"),
];

/// Whether accounts may do without the encryption of new tables.
const CHECKED: &str = "table_encryption_privilege_check";

/// An audit log is a plugin of MySQL Enterprise, or a plugin or component of Percona Server. What it leaves out is not
/// known here, so it is never judged as enforced.
fn auditing(session: &mut WireSession, settings: &Settings) -> Result<Judgement, Fault> {
    let plugins = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS \
                   WHERE PLUGIN_TYPE = 'AUDIT' AND PLUGIN_STATUS = 'ACTIVE' AND PLUGIN_NAME LIKE '%audit%'";
    let components = "SELECT component_urn FROM mysql.component WHERE component_urn LIKE '%audit_log%'";
    let mut names =
        |sql: &str| -> Result<Vec<String>, Fault> { Ok(session.run(sql)?.into_iter().flatten().flatten().collect()) };
    let (mut plugins, mut components) = (names(plugins)?, names(components));
    let built_in = settings.is_on(SERVER_AUDIT) && !settings.value("server_audit_events").is_empty();
    if built_in && !plugins.iter().any(|name| is_server_audit(name)) {
        plugins.push("server_audit (built in)".to_owned());
    }
    if settings.is_on(OF_AZURE) && !plugins.iter().any(|name| name.eq_ignore_ascii_case("audit_log")) {
        plugins.push("audit_log (built in)".to_owned());
    }
    let mut disabled = Vec::new();
    for names in std::iter::once(&mut plugins).chain(components.as_mut()) {
        disabled.extend(names.extract_if(.., |name| is_disabled(name, settings)));
    }
    Ok(audited(plugins, components, &disabled, &recorded(settings), settings.value("version_comment")))
}

/// The switch of MariaDB's audit plugin, which MySQL loads too and Aurora has built in. Aurora records nothing without
/// a list of events.
const SERVER_AUDIT: &str = "server_audit_logging";

/// The switch of the audit log that Azure has built in.
const OF_AZURE: &str = "audit_log_enabled";

fn is_server_audit(name: &str) -> bool {
    name.eq_ignore_ascii_case("server_audit")
}

/// True if the audit log `name` is loaded, and its own switch is set so that it records nothing. Percona Server's is
/// switched by its policy; where MySQL Enterprise has filters, the policy does not decide.
fn is_disabled(name: &str, settings: &Settings) -> bool {
    let short = name.strip_prefix("file://component_").unwrap_or(name);
    let is_off = is_server_audit(name) && settings.value(SERVER_AUDIT) == "OFF";
    let has_filters = settings.get("audit_log_filter_id").is_some();
    let is_without_policy = !has_filters && settings.value(&format!("{short}_policy")) == "NONE";
    let is_switched = ["_", "."].iter().any(|between| settings.is_on(&format!("{short}{between}disable")));
    is_off || is_without_policy || is_switched
}

/// The servers that this one follows.
fn sources(session: &mut WireSession) -> Result<Vec<Source>, Fault> {
    let sql = "SELECT HOST, SSL_ALLOWED, SSL_VERIFY_SERVER_CERTIFICATE \
               FROM performance_schema.replication_connection_configuration WHERE HOST <> ''";
    let source = |[host, tls, verified]: [String; 3]| Source { host, tls: tls == "YES", verified: verified == "YES" };
    Ok(rows(session, sql)?.into_iter().map(source).collect())
}

/// The auditing of a server of this `edition`: its active `plugins` and `components`, those that are `disabled`, and
/// its other logs. Some accounts cannot see components.
fn audited(
    plugins: Vec<String>,
    components: Result<Vec<String>, Fault>,
    disabled: &[String],
    (state, others): &(State, String),
    edition: &str,
) -> Judgement {
    let (active, untold) = match components {
        Ok(components) => ([plugins, components].concat(), None),
        Err(fault) => (plugins, Some(fault)),
    };
    if !active.is_empty() {
        let seen = format!("{} is active, {others}: what it leaves out is not known", active.join(", "));
        return Judgement::whole(State::Available, seen);
    }
    let (seen, of_edition) = match disabled {
        [] => ("seen", format!("MySQL Enterprise and Percona Server have one; this is {edition}")),
        disabled => ("on", format!("{} is disabled", disabled.join(", "))),
    };
    match untold {
        Some(fault) if *state == State::Off => Judgement::unseen(format!(
            "no audit plugin ({of_edition}), {others}; whether a component audits is unknown ({fault}): GRANT SELECT \
             ON mysql.component"
        )),
        _ => Judgement::whole(*state, format!("no audit plugin or component is {seen} ({of_edition}), {others}")),
    }
}

/// Where canaries can be searched: the table's own file, the redo and undo logs, and the general log.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = ACCESS.administrator(server, setup)?;
    let mut setting = |name: &str| session.setting(name);
    let mut audit: Vec<Box<dyn Check>> = Vec::new();
    let mut log = None;
    if setting("general_log")? == "ON" {
        audit.push(Box::new(GeneralLogComplete(&LOG)));
        // If the log is a table or off, the file is an old one.
        let output = setting("log_output")?;
        log = Some(setting("general_log_file")?).filter(|_| output.contains("FILE"));
    }
    let folder = setting("datadir")?;
    let folder = Path::new(&folder);
    // A file that was left where a log was before proves nothing.
    let redo = folder.join(setting("innodb_log_group_home_dir")?);
    let undo = folder.join(setting("innodb_undo_directory")?);
    let redo_folders = REDO_FILES.iter().map(|name| redo.join(name));
    let undo_files = UNDO_FILES.iter().map(|name| undo.join(name));
    let journal = redo_folders.chain(redo_files(&redo)).chain(undo_files).collect();
    let here = is_this_machine(&setting("hostname")?).then(|| files(folder, journal, log.as_deref(), table));
    Ok(CanaryChecks { paths: here.flatten().unwrap_or_default(), audit })
}

#[cfg(test)]
mod tests;
