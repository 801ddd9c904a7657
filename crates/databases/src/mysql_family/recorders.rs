//! What a server of either product records of statements, what its records leave out, and which of them repeat values
//! in plaintext. Judged by settings, without a server.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::quantity;
use tithe_plugin::{
    recording::{Recording, Sent},
    session::rows,
    setup::Setup,
};

use super::{access::Access, session::WireSession};

/// All global settings of a server, and the status values whose name begins with a recorder's.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// The server's error.
    pub fn read(session: &mut WireSession) -> Result<Self, Fault> {
        let mut all: BTreeMap<String, String> =
            rows::<2>(session, "SHOW GLOBAL VARIABLES")?.into_iter().map(<(String, String)>::from).collect();
        // Names of the status begin with a capital letter.
        let status = rows::<2>(session, "SHOW GLOBAL STATUS LIKE 'server\\_audit%'")?.into_iter();
        all.extend(status.map(<(String, String)>::from));
        Ok(Self(all))
    }

    /// Those of a server that has no others.
    #[cfg(test)]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// The value of a setting; `None` if the server has none of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a setting; empty if the server has none of this name.
    pub fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// True if a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name) == "ON"
    }

    /// True for a member of a Galera cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.is_on("wsrep_on") && !["", "none"].contains(&self.value("wsrep_provider"))
    }

    /// The number in a setting; 0 if it has none.
    fn number(&self, name: &str) -> f64 {
        self.value(name).parse().unwrap_or(0.0)
    }
}

/// How many of the clients' statements a recorder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Nothing: it is off, or what it writes is not kept.
    Nothing,
    /// Some statements.
    Some,
    /// Every statement, except those in `leaves_out`.
    Every,
}

/// A recorder of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorder {
    /// Its settings, in words.
    pub words: String,
    /// How much it keeps.
    pub kept: Kept,
    /// What it leaves out.
    pub leaves_out: Vec<String>,
    /// True if its records hold values in plaintext.
    pub in_the_clear: bool,
}

impl Recorder {
    /// What it keeps, and what it leaves out.
    pub fn seen(&self) -> String {
        let Self { words, leaves_out, .. } = self;
        if leaves_out.is_empty() { words.clone() } else { format!("{words} (left out: {})", leaves_out.join("; ")) }
    }
}

/// The general log.
pub fn general(settings: &Settings) -> Recorder {
    let written = is_written(settings, "general_log_file");
    let kept = if settings.is_on("general_log") && written { Kept::Every } else { Kept::Nothing };
    let mut leaves_out = Vec::new();
    if kept == Kept::Every {
        let disabled = settings.value("log_disabled_statements");
        if !disabled.is_empty() {
            leaves_out.push(format!("log_disabled_statements = {disabled}"));
        }
        leaves_out.push("sessions that SET sql_log_off".to_owned());
    }
    let mut words = format!("general_log = {}", settings.value("general_log"));
    if settings.is_on("general_log") {
        words.push_str(&format!(", log_output = {}", settings.value("log_output")));
        if !written {
            words.push_str(", which keeps nothing");
        }
        if settings.is_on("log_raw") {
            words.push_str(", log_raw = ON: passwords too");
        }
    }
    Recorder { words, kept, leaves_out, in_the_clear: kept != Kept::Nothing }
}

/// The slow query log, which holds every completed statement if its threshold is zero.
pub fn slow(settings: &Settings) -> Recorder {
    let on = settings.is_on("slow_query_log") || settings.is_on("log_slow_query");
    let written = is_written(settings, "slow_query_log_file");
    let time = settings.number("long_query_time");
    let mut leaves_out = Vec::new();
    if time > 0.0 {
        let that = if settings.is_on("log_queries_not_using_indexes") { " that use an index" } else { "" };
        leaves_out.push(format!("statements of less than {time} s{that}"));
    }
    let examined = settings.number("min_examined_row_limit");
    if examined > 0.0 {
        leaves_out.push(format!("statements that read less than {examined} rows"));
    }
    let rate = settings.number("log_slow_rate_limit");
    if rate > 1.0 {
        leaves_out.push(format!("all but one of {rate} (log_slow_rate_limit)"));
    }
    let filter = settings.value("log_slow_filter");
    // Every statement that the query cache did not answer has this mark.
    if !filter.is_empty() && !filter.split(',').any(|mark| mark == "query_cache_miss") {
        leaves_out.push(format!("all but log_slow_filter = {filter}"));
    }
    let kept = match (on && written, leaves_out.is_empty()) {
        (false, _) => Kept::Nothing,
        (true, false) => Kept::Some,
        (true, true) => Kept::Every,
    };
    let disabled = settings.value("log_slow_disabled_statements");
    if !disabled.is_empty() {
        leaves_out.push(format!("log_slow_disabled_statements = {disabled}"));
    }
    if kept == Kept::Every {
        leaves_out.push("statements that do not end, and sessions that SET long_query_time".to_owned());
    }
    let words = match kept {
        Kept::Nothing if on => {
            format!("slow_query_log = ON keeps nothing (log_output = {})", settings.value("log_output"))
        }
        Kept::Nothing => "slow_query_log = OFF".to_owned(),
        _ => format!("slow_query_log = ON, long_query_time = {time}"),
    };
    if kept == Kept::Nothing {
        leaves_out.clear();
    }
    Recorder { words, kept, leaves_out, in_the_clear: kept != Kept::Nothing }
}

/// A file with this limit in bytes is never full, so no older records are discarded.
const ENDLESS: f64 = 1e15;

/// MariaDB's audit plugin; `None` if it is not loaded.
pub fn server_audit(settings: &Settings) -> Option<Recorder> {
    let logging = settings.get("server_audit_logging")?;
    let value = |name: &str| settings.value(name);
    let events = value("server_audit_events").to_ascii_uppercase();
    let has = |event: &str| events.split(',').any(|one| one.trim() == event);
    // No list at all means every event.
    let every = events.is_empty() || has("QUERY");
    let texts = every || events.contains("QUERY_");
    let mut words = format!("server_audit_logging = {logging}, events = `{events}`");
    let file = value("server_audit_file_path");
    let output = value("server_audit_output_type");
    let nowhere = output.eq_ignore_ascii_case("file") && file == "/dev/null";
    let active = settings.get("Server_audit_active") != Some("OFF");
    let mut leaves_out = Vec::new();
    for (name, all_but) in [("server_audit_excl_users", "accounts"), ("server_audit_incl_users", "all accounts but")] {
        if !value(name).is_empty() {
            leaves_out.push(format!("{all_but} {} ({name})", value(name)));
        }
    }
    if has_filters(settings) {
        leaves_out.push("what the filters in mysql.server_audit_filters leave out, which is not known".to_owned());
    }
    if !every {
        leaves_out.push(match (texts, has("TABLE")) {
            (true, _) => {
                "reads by CREATE TABLE … SELECT and compound statements, and all that no event names".to_owned()
            }
            (false, true) => "the text of statements".to_owned(),
            (false, false) => "all statements".to_owned(),
        });
        if texts && !has("QUERY_DML") {
            leaves_out.push("SELECT".to_owned());
        }
    }
    let kept = match logging {
        "ON" if nowhere || !active => Kept::Nothing,
        "ON" if leaves_out.is_empty() => Kept::Every,
        "ON" if texts || has("TABLE") => Kept::Some,
        _ => Kept::Nothing,
    };
    if logging == "ON" && nowhere {
        words.push_str(", its file is /dev/null, which keeps nothing");
    }
    if logging == "ON" && !active {
        words.push_str(", Server_audit_active = OFF: nothing is written");
    }
    let limit = settings.number("server_audit_query_log_limit");
    if kept != Kept::Nothing && texts {
        leaves_out.push("values of prepared statements".to_owned());
        if limit > 0.0 {
            leaves_out.push(format!("text after {limit} bytes (server_audit_query_log_limit)"));
        }
    }
    let (size, count) =
        (settings.number("server_audit_file_rotate_size"), settings.number("server_audit_file_rotations"));
    if kept != Kept::Nothing && count > 0.0 && output.eq_ignore_ascii_case("file") && size < ENDLESS {
        leaves_out.push(format!("what is older than {count} files of {}", quantity::size(size as u64)));
    }
    if kept != Kept::Nothing && settings.number("Server_audit_writes_failed") > 0.0 {
        leaves_out.push(format!("{} records that could not be written", value("Server_audit_writes_failed")));
    }
    Some(Recorder { words, kept, leaves_out, in_the_clear: texts && kept != Kept::Nothing })
}

/// True of the audit plugin of MariaDB Enterprise: filters in tables decide what it records of which account.
pub fn has_filters(settings: &Settings) -> bool {
    settings.get("server_audit_reload_filters").is_some()
}

/// True if a log with this file is stored.
fn is_written(settings: &Settings, file: &str) -> bool {
    let output = settings.value("log_output");
    output.contains("TABLE") || output.contains("FILE") && settings.value(file) != "/dev/null"
}

/// Which recorders of a running server repeat in plaintext the text that is `sent`.
///
/// # Errors
/// When the server cannot be reached, or refuses.
pub fn recording(access: &Access, server: &Server, setup: &Setup, sent: Sent) -> Result<Recording, Fault> {
    let settings = Settings::read(&mut access.administrator(server, setup)?)?;
    let repeats = match sent {
        Sent::Values => {
            let is_encrypted = ["encrypt_binlog", "binlog_encryption"].iter().any(|name| settings.is_on(name));
            let by = statements_in_binary_log(&settings).filter(|_| !is_encrypted);
            let binary = by.map(|by| format!("the binary log repeats statements ({by})"));
            in_the_clear(&settings).into_iter().chain(binary).collect()
        }
        Sent::Passwords => {
            let kept = |by: String| format!("passwords that statements set are kept in the clear, by {by}");
            of_passwords(&settings).into_iter().map(kept).collect()
        }
    };
    Ok(Recording { repeats, doubts: Vec::new() })
}

/// Recorders that repeat values in plaintext, each with its setting.
pub fn in_the_clear(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let recorders = [Some(general(settings)), Some(slow(settings)), server_audit(settings)];
    for recorder in recorders.into_iter().flatten().filter(|recorder| recorder.in_the_clear) {
        found.push(format!("{} writes statements in the clear", recorder.words));
    }
    // A plugin that records failed statements; it is loaded if its settings exist.
    if settings.get("sql_error_log_filename").is_some_and(|file| file != "/dev/null") {
        found.push("the plugin sql_error_log writes statements that failed in the clear".to_owned());
    }
    found.extend(audit_logs(settings));
    for name in ["innodb_print_all_deadlocks", "innodb_status_output"] {
        if settings.is_on(name) {
            found.push(format!("{name} = ON writes statements into the error log in the clear"));
        }
    }
    found
}

/// Audit logs of MySQL Enterprise and Percona Server in plaintext: plugins, and components, whose settings have a point
/// in their names. They are loaded if their settings exist.
fn audit_logs(settings: &Settings) -> Vec<String> {
    let named = |name: &str| {
        let of = |part: &str| settings.value(&format!("{name}{part}"));
        let file = of("file");
        let writes = !["", "/dev/null"].contains(&file) && of("disable") != "ON" && of("policy") != "NONE";
        let in_the_clear = writes && of("encryption") != "AES";
        in_the_clear.then(|| format!("the audit log {file} ({name}file) writes statements in the clear"))
    };
    ["audit_log_", "audit_log.", "audit_log_filter_", "audit_log_filter."].into_iter().filter_map(named).collect()
}

/// How the binary log repeats statements, and the keys in them, in addition to or in place of rows; `None` if it does
/// not.
pub fn statements_in_binary_log(settings: &Settings) -> Option<String> {
    let format = settings.value("binlog_format");
    if !settings.is_on("log_bin") {
        return None;
    }
    let rows_as_text = ["binlog_annotate_row_events", "binlog_rows_query_log_events"];
    let annotates = rows_as_text.into_iter().find(|name| settings.is_on(name)).map(|name| format!("{name} = ON"));
    annotates.or_else(|| (format != "ROW").then(|| format!("binlog_format = {format}")))
}

/// Recorders that repeat the passwords that statements set. MySQL writes hashes in their place by default; MariaDB has
/// no such setting, and does so only in its audit log.
pub fn of_passwords(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let masks = settings.get("log_raw").is_some();
    if general(settings).in_the_clear && (!masks || settings.is_on("log_raw")) {
        found.push("the general log".to_owned());
    }
    if masks {
        return found;
    }
    if slow(settings).in_the_clear {
        found.push("the slow log".to_owned());
    }
    if settings.is_on("log_bin") {
        let encrypted = settings.is_on("encrypt_binlog");
        found.push(
            if encrypted {
                "the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)"
            } else {
                "the binary log"
            }
            .to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let defaults = [
            ("general_log", "OFF"),
            ("log_output", "FILE"),
            ("slow_query_log", "OFF"),
            ("long_query_time", "10.000000"),
            ("log_slow_filter", "admin,full_scan,query_cache_miss"),
        ];
        Settings::of(&[&defaults, pairs].concat())
    }

    #[test]
    fn a_slow_log_may_keep_quick_statements_without_an_index() {
        let left_out = |value: &str| {
            slow(&settings(&[("slow_query_log", "ON"), ("log_queries_not_using_indexes", value)])).leaves_out.join("; ")
        };
        assert_eq!(left_out("OFF"), "statements of less than 10 s");
        assert_eq!(left_out("ON"), "statements of less than 10 s that use an index");
    }

    #[test]
    fn recorders_say_what_they_leave_out() {
        let audit = ("server_audit_logging", "ON");
        let file = ("server_audit_output_type", "file");
        let cases: &[&[(&str, &str)]] = &[
            &[],
            &[("general_log", "ON")],
            &[("general_log", "ON"), ("log_output", "NONE")],
            &[("general_log", "ON"), ("general_log_file", "/dev/null"), ("log_raw", "ON")],
            &[("slow_query_log", "ON")],
            &[("slow_query_log", "ON"), ("long_query_time", "0.000000")],
            &[("slow_query_log", "ON"), ("long_query_time", "0.000000"), ("log_slow_rate_limit", "10")],
            &[("slow_query_log", "ON"), ("long_query_time", "0.000000"), ("log_slow_filter", "full_scan")],
            &[audit, file],
            &[audit, file, ("server_audit_events", "TABLE")],
            &[audit, file, ("server_audit_events", "CONNECT")],
            &[audit, file, ("server_audit_events", "QUERY_DML")],
            &[audit, file, ("server_audit_file_path", "/dev/null")],
            &[audit, file, ("Server_audit_active", "OFF")],
            &[audit, file, ("server_audit_query_log_limit", "1024"), ("server_audit_excl_users", "app")],
            &[("sql_error_log_filename", "sql_errors.log"), ("innodb_print_all_deadlocks", "ON")],
            &[
                audit,
                file,
                ("server_audit_file_rotate_size", "9223372036854775807"),
                ("server_audit_file_rotations", "9"),
            ],
            &[audit, file, ("server_audit_file_rotate_size", "1000000"), ("server_audit_file_rotations", "9")],
            &[("log_bin", "ON"), ("binlog_format", "ROW"), ("binlog_annotate_row_events", "ON")],
            &[("log_bin", "ON"), ("binlog_format", "MIXED"), ("log_raw", "OFF"), ("general_log", "ON")],
            &[("log_raw", "ON"), ("general_log", "ON")],
        ];
        let mut text = String::new();
        for case in cases {
            let settings = settings(case);
            text += &format!("{case:?}\n");
            for recorder in [Some(general(&settings)), Some(slow(&settings)), server_audit(&settings)] {
                let Some(recorder) = recorder.filter(|one| one.words.contains("= ON")) else { continue };
                text += &format!("  {:?}: {}\n", recorder.kept, recorder.seen());
            }
            in_the_clear(&settings).iter().for_each(|line| text += &format!("  leaks: {line}\n"));
            of_passwords(&settings).iter().for_each(|line| text += &format!("  passwords: {line}\n"));
            statements_in_binary_log(&settings).iter().for_each(|line| text += &format!("  statements: {line}\n"));
        }
        expect![[r#"
            []
            [("general_log", "ON")]
              Every: general_log = ON, log_output = FILE (left out: sessions that SET sql_log_off)
              leaks: general_log = ON, log_output = FILE writes statements in the clear
              passwords: the general log
            [("general_log", "ON"), ("log_output", "NONE")]
              Nothing: general_log = ON, log_output = NONE, which keeps nothing
            [("general_log", "ON"), ("general_log_file", "/dev/null"), ("log_raw", "ON")]
              Nothing: general_log = ON, log_output = FILE, which keeps nothing, log_raw = ON: passwords too
            [("slow_query_log", "ON")]
              Some: slow_query_log = ON, long_query_time = 10 (left out: statements of less than 10 s)
              leaks: slow_query_log = ON, long_query_time = 10 writes statements in the clear
              passwords: the slow log
            [("slow_query_log", "ON"), ("long_query_time", "0.000000")]
              Every: slow_query_log = ON, long_query_time = 0 (left out: statements that do not end, and sessions that SET long_query_time)
              leaks: slow_query_log = ON, long_query_time = 0 writes statements in the clear
              passwords: the slow log
            [("slow_query_log", "ON"), ("long_query_time", "0.000000"), ("log_slow_rate_limit", "10")]
              Some: slow_query_log = ON, long_query_time = 0 (left out: all but one of 10 (log_slow_rate_limit))
              leaks: slow_query_log = ON, long_query_time = 0 writes statements in the clear
              passwords: the slow log
            [("slow_query_log", "ON"), ("long_query_time", "0.000000"), ("log_slow_filter", "full_scan")]
              Some: slow_query_log = ON, long_query_time = 0 (left out: all but log_slow_filter = full_scan)
              leaks: slow_query_log = ON, long_query_time = 0 writes statements in the clear
              passwords: the slow log
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file")]
              Every: server_audit_logging = ON, events = `` (left out: values of prepared statements)
              leaks: server_audit_logging = ON, events = `` writes statements in the clear
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_events", "TABLE")]
              Some: server_audit_logging = ON, events = `TABLE` (left out: the text of statements)
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_events", "CONNECT")]
              Nothing: server_audit_logging = ON, events = `CONNECT` (left out: all statements)
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_events", "QUERY_DML")]
              Some: server_audit_logging = ON, events = `QUERY_DML` (left out: reads by CREATE TABLE … SELECT and compound statements, and all that no event names; values of prepared statements)
              leaks: server_audit_logging = ON, events = `QUERY_DML` writes statements in the clear
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_file_path", "/dev/null")]
              Nothing: server_audit_logging = ON, events = ``, its file is /dev/null, which keeps nothing
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("Server_audit_active", "OFF")]
              Nothing: server_audit_logging = ON, events = ``, Server_audit_active = OFF: nothing is written
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_query_log_limit", "1024"), ("server_audit_excl_users", "app")]
              Some: server_audit_logging = ON, events = `` (left out: accounts app (server_audit_excl_users); values of prepared statements; text after 1024 bytes (server_audit_query_log_limit))
              leaks: server_audit_logging = ON, events = `` writes statements in the clear
            [("sql_error_log_filename", "sql_errors.log"), ("innodb_print_all_deadlocks", "ON")]
              leaks: the plugin sql_error_log writes statements that failed in the clear
              leaks: innodb_print_all_deadlocks = ON writes statements into the error log in the clear
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_file_rotate_size", "9223372036854775807"), ("server_audit_file_rotations", "9")]
              Every: server_audit_logging = ON, events = `` (left out: values of prepared statements)
              leaks: server_audit_logging = ON, events = `` writes statements in the clear
            [("server_audit_logging", "ON"), ("server_audit_output_type", "file"), ("server_audit_file_rotate_size", "1000000"), ("server_audit_file_rotations", "9")]
              Every: server_audit_logging = ON, events = `` (left out: values of prepared statements; what is older than 9 files of 1.0 MB)
              leaks: server_audit_logging = ON, events = `` writes statements in the clear
            [("log_bin", "ON"), ("binlog_format", "ROW"), ("binlog_annotate_row_events", "ON")]
              passwords: the binary log
              statements: binlog_annotate_row_events = ON
            [("log_bin", "ON"), ("binlog_format", "MIXED"), ("log_raw", "OFF"), ("general_log", "ON")]
              Every: general_log = ON, log_output = FILE (left out: sessions that SET sql_log_off)
              leaks: general_log = ON, log_output = FILE writes statements in the clear
              statements: binlog_format = MIXED
            [("log_raw", "ON"), ("general_log", "ON")]
              Every: general_log = ON, log_output = FILE, log_raw = ON: passwords too (left out: sessions that SET sql_log_off)
              leaks: general_log = ON, log_output = FILE, log_raw = ON: passwords too writes statements in the clear
              passwords: the general log
        "#]].assert_eq(&text);
    }

    #[test]
    fn an_audit_log_of_mysql_is_in_the_clear_unless_it_is_encrypted() {
        let found = |pairs: &[(&str, &str)]| in_the_clear(&settings(pairs));
        let file = ("audit_log_file", "audit.log");
        let open = ["the audit log audit.log (audit_log_file) writes statements in the clear"];
        assert_eq!(found(&[file]), open);
        assert_eq!(found(&[file, ("audit_log_encryption", "NONE"), ("audit_log_policy", "ALL")]), open);
        let component = "the audit log a.log (audit_log_filter.file) writes statements in the clear";
        assert_eq!(found(&[("audit_log_filter.file", "a.log")]), [component]);
        for without in
            [("audit_log_encryption", "AES"), ("audit_log_disable", "ON"), ("audit_log_policy", "NONE"), ("x", "x")]
        {
            assert_eq!(found(&[file, without]).len(), usize::from(without.0 == "x"), "{without:?}");
        }
        assert_eq!(found(&[("audit_log_file", "/dev/null")]), [""; 0]);
    }

    #[test]
    fn what_leaves_statements_out_is_not_taken_for_every_statement() {
        let all = [("slow_query_log", "ON"), ("long_query_time", "0.000000")];
        let few = slow(&settings(&[&all[..], &[("min_examined_row_limit", "100")]].concat()));
        let left_out = vec!["statements that read less than 100 rows".to_owned()];
        assert_eq!((few.kept, few.leaves_out), (Kept::Some, left_out));
        // MariaDB's default: one of one.
        assert_eq!(slow(&settings(&[&all[..], &[("log_slow_rate_limit", "1")]].concat())).kept, Kept::Every);
        let audit = |name: &'static str, value: &'static str| {
            let on = [("server_audit_logging", "ON"), ("server_audit_output_type", "file")];
            let recorder = server_audit(&settings(&[&on[..], &[(name, value)]].concat())).expect("it is loaded");
            (recorder.kept, recorder.leaves_out.join("; "))
        };
        let values = "values of prepared statements";
        assert_eq!(audit("Server_audit_writes_failed", "0"), (Kept::Every, values.to_owned()));
        let lost = format!("{values}; 3 records that could not be written");
        assert_eq!(audit("Server_audit_writes_failed", "3"), (Kept::Every, lost));
        let others = format!("all accounts but app (server_audit_incl_users); {values}");
        assert_eq!(audit("server_audit_incl_users", "app"), (Kept::Some, others));
        let filters = "what the filters in mysql.server_audit_filters leave out, which is not known";
        assert_eq!(audit("server_audit_reload_filters", "OFF"), (Kept::Some, format!("{filters}; {values}")));
    }
}
