//! What a Cassandra records of its clients, and which files hold values.

use tithe_plugin::{evidence::Check, matrix::State, recording::Recording};

use super::{Settings, management_port, shown, value};
use crate::{cassandra::evidence::audit_complete::AuditComplete, findings, inspect::Judgement};

/// Keyspaces that every node leaves out by default: its own reads of its own tables.
const OWN: [&str; 3] = ["system", "system_schema", "system_virtual_schema"];

/// Settings with which the audit log leaves something out.
const FILTERS: [&str; 6] = [
    "included_categories",
    "excluded_categories",
    "included_keyspaces",
    "excluded_keyspaces",
    "included_users",
    "excluded_users",
];

/// The audit log. The settings show how the node was started. Anyone who reaches its management port can switch the log
/// or its filters, and the settings do not change (seen with 4.1 and 5.0).
pub fn auditing(settings: &Settings, properties: Option<&Settings>) -> Judgement {
    let of = |part: &str| value(settings, "audit_logging_options", part);
    if shown(settings, "audit_logging_options", "enabled").is_none() {
        return Judgement::unseen("audit_logging_options.enabled is not shown");
    }
    let left_out: Vec<String> = FILTERS
        .iter()
        .map(|name| (*name, of(name)))
        .filter(|(name, value)| {
            let are_own = || value.split(',').all(|keyspace| OWN.contains(&keyspace.trim()));
            !(value.is_empty() || *name == "excluded_keyspaces" && are_own())
        })
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let filters = if left_out.is_empty() { "no filter".to_owned() } else { left_out.join(", ") };
    let (enabled, set) = (of("enabled"), logger_set(settings));
    let mut seen = format!("audit_logging_options.enabled = {enabled}, logger = {set}, {filters}");
    let (mut state, mut remedy) = (State::Off, "set audit_logging_options.enabled: true with BinAuditLogger");
    if let Some(logger) = logger(settings) {
        (state, remedy) = match logger.as_str() {
            _ if !left_out.is_empty() => (State::Available, "take the filters out"),
            "BinAuditLogger" if of("block") == "false" => {
                seen.push_str("; records are dropped while the writer is busy (block = false)");
                (State::Available, "set block: true")
            }
            "BinAuditLogger" => (State::Enforced, ""),
            "FileAuditLogger" => {
                seen.push_str("; what logback.xml keeps of it is not shown to clients");
                (State::Unseen, "")
            }
            _ => {
                seen.push_str("; this logger is not known");
                (State::Unseen, "")
            }
        };
    } else if enabled == "true" {
        seen.push_str("; it keeps nothing");
    }
    let open = properties.map(management_port);
    match open {
        Some(Some(port)) => {
            let seen = format!(
                "{seen}: as the node was started; {port} is open, and the log can be switched through it without a trace \
                 in the settings: `nodetool getauditlog` shows its state"
            );
            return Judgement::unseen(seen + &queries(settings)).found(&findings::CASSANDRA_AUDIT_BY_JMX);
        }
        None => {
            let seen = format!("{seen}; whether a management port is open, which can switch it: not shown");
            return Judgement::account(state, seen + &queries(settings));
        }
        Some(None) => {}
    }
    if state == State::Enforced {
        seen.push_str(": statements that arrive; values of prepared ones are not in it");
    } else if !remedy.is_empty() {
        seen.push_str(&format!(": {remedy}"));
    }
    let judged = Judgement::by_state(state, seen + &queries(settings));
    if state == State::Available { judged.found(&findings::CASSANDRA_AUDIT_PARTIAL) } else { judged }
}

/// The audit log's logger as it is set, by its short name.
fn logger_set(settings: &Settings) -> String {
    let of = |part: &str| value(settings, "audit_logging_options", part);
    let name = [of("logger.class_name"), of("logger")].into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// The same if the audit log records; `None` if nothing is recorded.
fn logger(settings: &Settings) -> Option<String> {
    let is_on = value(settings, "audit_logging_options", "enabled") == "true";
    Some(logger_set(settings)).filter(|name| is_on && name != "NoOpAuditLogger")
}

/// What canaries must show in the audit log: all requests except those of categories that its settings leave out.
/// `None` if the settings record nothing.
pub fn canary(settings: &Settings) -> Option<Box<dyn Check>> {
    let of = |part: &str| value(settings, "audit_logging_options", part);
    let names = |part: &str| of(part).split(',').map(|name| name.trim().to_ascii_uppercase()).collect::<Vec<_>>();
    let (included, excluded) = (names("included_categories"), names("excluded_categories"));
    let everything = included[0].is_empty();
    let has =
        |name: &str| !excluded.iter().any(|it| it == name) && (everything || included.iter().any(|it| it == name));
    let categories: Vec<&str> = ["QUERY", "DML"].into_iter().filter(|name| has(name)).collect();
    let is_on = logger(settings).is_some() && !categories.is_empty();
    is_on.then(|| Box::new(AuditComplete::new(&categories.join(","))) as Box<dyn Check>)
}

/// Recorders that repeat values in plaintext. Both logs can be switched without a trace in the settings.
pub fn of_values(settings: &Settings) -> Recording {
    let mut repeats = Vec::new();
    if logger(settings).is_some() {
        repeats.push("the audit log repeats statements, with the values of those that are not prepared".to_owned());
    }
    let by_nodetool = "what `nodetool enableauditlog` and `nodetool enablefullquerylog` have started since";
    Recording { repeats, doubts: vec![by_nodetool.to_owned()] }
}

/// The full query log, which repeats every value.
fn queries(settings: &Settings) -> String {
    let folder = value(settings, "full_query_logging_options", "log_dir");
    if folder.is_empty() {
        return String::new();
    }
    format!(
        "; full query log: {folder} is only its place (log_dir): `nodetool enablefullquerylog` starts it, and then it \
         repeats every value"
    )
}

/// Files that hold values, and the key of the encrypted ones.
pub fn at_rest(settings: &Settings) -> Judgement {
    let of = |part: &str| value(settings, "transparent_data_encryption_options", part);
    let setting = |name: &str| settings.get(name).map_or("?", String::as_str);
    let mut clear = vec![format!("SSTables ({})", setting("data_file_directories"))];
    clear.push(format!("saved caches ({})", setting("saved_caches_directory")));
    if logger(settings).is_some() {
        clear.push(format!("audit log ({})", value(settings, "audit_logging_options", "audit_logs_dir")));
    }
    if setting("cdc_enabled") == "true" {
        clear.push(format!("changes ({})", setting("cdc_raw_directory")));
    }
    let queries = value(settings, "full_query_logging_options", "log_dir");
    if !queries.is_empty() {
        clear.push(format!("full query log, where it was started ({queries})"));
    }
    clear.push("snapshots and backups of SSTables".to_owned());
    let covers = format!(
        "it would cover commit log and hints only, never data files (SSTables); in the clear: {}",
        clear.join(", ")
    );
    if shown(settings, "transparent_data_encryption_options", "enabled").is_none() {
        return Judgement::unseen(format!("transparent_data_encryption_options.enabled is not shown; {covers}"));
    }
    let seen = format!("transparent_data_encryption_options.enabled = {}", of("enabled"));
    if of("enabled") == "true" {
        let key = of("key_provider.parameters");
        let key = key.split(['{', '}', ',', ' ']).find_map(|part| part.strip_prefix("keystore="));
        let key = key.map_or(String::new(), |file| format!("; its key: {file}"));
        let seen = format!("{seen}: commit log and hints; in the clear: {}{key}", clear.join(", "));
        Judgement::whole(State::Available, seen)
    } else {
        Judgement::whole(State::Off, format!("{seen}; {covers}"))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn encryption_of_the_log_is_not_encryption_at_rest() {
        let enabled = |set: &str| at_rest(&settings(&[("transparent_data_encryption_options_enabled", set)])).state;
        assert_eq!(["true", "false", "null"].map(enabled), [State::Available, State::Off, State::Off]);
    }

    #[test]
    fn a_setting_that_is_not_shown_is_not_off() {
        let all = settings(&[("cluster_name", "shop")]);
        assert_eq!([at_rest(&all).state, auditing(&all, Some(&all)).state], [State::Unseen; 2]);
    }

    #[test]
    fn an_audit_log_that_keeps_nothing_is_no_file_and_is_asked_for_no_canary() {
        let logged = |logger: &str| {
            let pairs =
                [("audit_logging_options_enabled", "true"), ("audit_logging_options.logger.class_name", logger)];
            let settings = settings(&pairs);
            let repeats = !of_values(&settings).repeats.is_empty();
            [at_rest(&settings).seen.contains("audit log"), canary(&settings).is_some(), repeats]
        };
        assert_eq!(logged("org.apache.cassandra.audit.NoOpAuditLogger"), [false; 3]);
        assert_eq!(logged("BinAuditLogger"), [true; 3]);
    }

    #[test]
    fn an_audit_log_is_judged_by_what_it_leaves_out() {
        let judged = |more: &[(&str, &str)], properties: Option<Settings>| {
            let on = [("audit_logging_options_enabled", "true"), ("audit_logging_options_logger", "BinAuditLogger")];
            let judgement = auditing(&settings(&[&on, more].concat()), properties.as_ref());
            format!("{}, {}: {}\n", judgement.state.words(), judgement.scope.words(), judgement.seen)
        };
        let closed = || Some(Settings::new());
        let jmx = || Some(settings(&[("cassandra.jmx.local.port", "7199")]));
        let text = [
            judged(&[("audit_logging_options_excluded_keyspaces", OWN.join(", ").as_str())], closed()),
            judged(&[("audit_logging_options_excluded_keyspaces", "shop")], closed()),
            judged(&[("audit_logging_options_block", "false")], closed()),
            judged(&[("audit_logging_options_logger", "org.apache.cassandra.audit.NoOpAuditLogger")], closed()),
            judged(&[("audit_logging_options_logger", "FileAuditLogger")], closed()),
            judged(&[("full_query_logging_options_log_dir", "/fql")], closed()),
            judged(&[("audit_logging_options_enabled", "false")], closed()),
            judged(&[], jmx()),
            judged(&[], None),
        ];
        expect![[r#"
            enforced, whole server: audit_logging_options.enabled = true, logger = BinAuditLogger, no filter: statements that arrive; values of prepared ones are not in it
            available but not enforced, whole server: audit_logging_options.enabled = true, logger = BinAuditLogger, excluded_keyspaces = shop: take the filters out
            available but not enforced, whole server: audit_logging_options.enabled = true, logger = BinAuditLogger, no filter; records are dropped while the writer is busy (block = false): set block: true
            off, whole server: audit_logging_options.enabled = true, logger = NoOpAuditLogger, no filter; it keeps nothing: set audit_logging_options.enabled: true with BinAuditLogger
            cannot tell, this account: audit_logging_options.enabled = true, logger = FileAuditLogger, no filter; what logback.xml keeps of it is not shown to clients
            enforced, whole server: audit_logging_options.enabled = true, logger = BinAuditLogger, no filter: statements that arrive; values of prepared ones are not in it; full query log: /fql is only its place (log_dir): `nodetool enablefullquerylog` starts it, and then it repeats every value
            off, whole server: audit_logging_options.enabled = false, logger = BinAuditLogger, no filter: set audit_logging_options.enabled: true with BinAuditLogger
            cannot tell, this account: audit_logging_options.enabled = true, logger = BinAuditLogger, no filter: as the node was started; cassandra.jmx.local.port = 7199 is open, and the log can be switched through it without a trace in the settings: `nodetool getauditlog` shows its state
            enforced, this account: audit_logging_options.enabled = true, logger = BinAuditLogger, no filter; whether a management port is open, which can switch it: not shown
        "#]].assert_eq(&text.concat());
    }

    #[test]
    fn canaries_are_asked_for_in_the_categories_that_are_kept() {
        let asked = |included: &str, excluded: &str| {
            let pairs = [
                ("audit_logging_options_enabled", "true"),
                ("audit_logging_options_logger", "BinAuditLogger"),
                ("audit_logging_options_included_categories", included),
                ("audit_logging_options_excluded_categories", excluded),
            ];
            canary(&settings(&pairs)).map(|check| check.claim())
        };
        for (included, excluded, expected) in [
            ("", "", "QUERY,DML"),
            ("query", "", "QUERY"),
            ("DDL, DML", "", "DML"),
            ("", "QUERY", "DML"),
            ("QUERY,DML", "AUTH, dml", "QUERY"),
        ] {
            let claim = format!("every request of {expected} is in the audit log once, and no other");
            assert_eq!(asked(included, excluded), Some(claim), "{included}; {excluded}");
        }
        assert_eq!([asked("DDL", ""), asked("", "QUERY,DML")], [None, None]);
    }

    #[test]
    fn what_the_audit_log_leaves_out_and_what_can_switch_it_are_findings() {
        let found = |more: &[(&str, &str)], properties: &[(&str, &str)]| {
            let on = [("audit_logging_options_enabled", "true"), ("audit_logging_options_logger", "BinAuditLogger")];
            auditing(&settings(&[&on[..], more].concat()), Some(&settings(properties))).findings
        };
        let partial = vec![&findings::CASSANDRA_AUDIT_PARTIAL];
        assert!(found(&[], &[]).is_empty());
        assert_eq!(found(&[("audit_logging_options_block", "false")], &[]), partial);
        assert_eq!(found(&[("audit_logging_options_excluded_users", "app")], &[]), partial);
        assert!(found(&[("audit_logging_options_enabled", "false")], &[]).is_empty());
        let open = [("cassandra.jmx.local.port", "7199")];
        assert_eq!(found(&[], &open), vec![&findings::CASSANDRA_AUDIT_BY_JMX]);
    }

    #[test]
    fn every_place_of_values_in_the_clear_is_named() {
        let key = "[{keystore=/k/store, keystore_password=x}]";
        let all = settings(&[
            ("transparent_data_encryption_options_enabled", "true"),
            ("transparent_data_encryption_options_key_provider.parameters", key),
            ("data_file_directories", "/d"),
            ("saved_caches_directory", "/s"),
            ("cdc_enabled", "true"),
            ("cdc_raw_directory", "/c"),
            ("full_query_logging_options_log_dir", "/q"),
        ]);
        expect!["transparent_data_encryption_options.enabled = true: commit log and hints; in the clear: SSTables (/d), saved caches (/s), changes (/c), full query log, where it was started (/q), snapshots and backups of SSTables; its key: /k/store"].assert_eq(&at_rest(&all).seen);
        let off = settings(&[("transparent_data_encryption_options_enabled", "false")]);
        expect!["transparent_data_encryption_options.enabled = false; it would cover commit log and hints only, never data files (SSTables); in the clear: SSTables (?), saved caches (?), snapshots and backups of SSTables"].assert_eq(&at_rest(&off).seen);
    }
}
