//! Everything by which PostgreSQL records what clients do: what is recorded, what is left out, and whether values are
//! repeated in plaintext. Judged from settings alone.
//!
//! Sources: documentation, "Error Reporting and Logging", "auto_explain"; pgaudit's README.

use std::collections::{BTreeMap, BTreeSet};

/// The value of a setting that only superusers and members of `pg_read_all_settings` are shown.
pub const NOT_SHOWN: &str = "not shown";

/// Settings that control the log, with the value that is assumed if a server does not have them.
pub const NAMES: [(&str, &str); 31] = [
    ("log_statement", "none"),
    (OF_FAILED, "error"),
    ("pgaudit.log", "not loaded"),
    ("pgaudit.role", ""),
    ("pgaudit.log_level", "log"),
    ("pgaudit.log_statement", "on"),
    ("pgaudit.log_statement_once", "off"),
    ("pgaudit.log_catalog", "on"),
    ("pgaudit.log_parameter", "off"),
    ("pgaudit.log_parameter_max_size", "0"),
    ("log_min_duration_statement", "-1"),
    ("log_min_duration_sample", "-1"),
    ("log_statement_sample_rate", "1"),
    ("log_transaction_sample_rate", "0"),
    ("log_parameter_max_length", "-1"),
    ("auto_explain.log_min_duration", "-1"),
    ("auto_explain.sample_rate", "1"),
    ("auto_explain.log_level", "log"),
    ("log_min_messages", "warning"),
    ("log_error_verbosity", "default"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_filename", NOT_SHOWN),
    ("log_truncate_on_rotation", "off"),
    ("log_rotation_age", "1440"),
    ("syslog_split_messages", "on"),
    ("syslog_facility", "local0"),
    ("log_directory", "log"),
    ("pg_stat_statements.track", "none"),
    ("pg_stat_statements.track_utility", "off"),
    ("shared_preload_libraries", NOT_SHOWN),
];

/// The setting about the text of statements that fail.
pub const OF_FAILED: &str = "log_min_error_statement";

/// Settings that take one of several words.
const WORDS: [&str; 7] = [
    "log_statement",
    OF_FAILED,
    "pgaudit.log_level",
    "auto_explain.log_level",
    "log_min_messages",
    "log_error_verbosity",
    "pg_stat_statements.track",
];

/// The `value` of the setting `name` as the server itself shows it. `ALTER ROLE` and files keep the words as they were
/// written; the server takes them in any case, and several words for a switch (documentation, "Parameter Names and
/// Values").
pub fn canonical(name: &str, value: &str) -> String {
    let lower = value.trim().to_ascii_lowercase();
    let unset = NAMES.iter().find(|(known, _)| *known == name).map(|(_, unset)| *unset);
    match unset {
        Some("on" | "off") => {
            let is_on = ["1", "on"].contains(&lower.as_str())
                || !lower.is_empty() && ["true", "yes"].iter().any(|word| word.starts_with(lower.as_str()));
            String::from(if is_on { "on" } else { "off" })
        }
        Some(_) if WORDS.contains(&name) => lower,
        _ => value.to_owned(),
    }
}

/// Levels of messages in the order that `log_min_messages` has for the log (documentation, "log_min_messages").
const LEVELS: [&str; 12] =
    ["debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic"];

/// Settings by name.
pub type Settings = BTreeMap<String, String>;

/// One mechanism that records something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorder {
    /// What it records and by which setting.
    pub records: String,
    /// All reads and writes of all accounts, if they succeed.
    pub complete: bool,
    /// What it should record and does not.
    pub leaves_out: Vec<String>,
    /// The setting that puts the text of statements into the log in plaintext; empty if none does.
    pub repeats: &'static str,
    /// True if there are values in that text, and not definitions alone.
    pub values: bool,
    /// True if it repeats the password that `ALTER ROLE` sets, too.
    pub passwords: bool,
}

/// All that are on, those first that record most.
pub fn recorders(settings: &Settings) -> Vec<Recorder> {
    let mut all = Vec::new();
    if is_written(settings, "log") {
        all.extend(statement_log(settings));
    }
    if is_written(settings, &settings["pgaudit.log_level"]) {
        all.extend(session_audit(settings));
        all.extend(object_audit(settings));
    }
    if is_written(settings, "log") {
        all.extend(by_duration(settings));
    }
    if is_written(settings, &settings["auto_explain.log_level"]) {
        all.extend(plans(settings));
    }
    if keeps_nothing(settings) {
        for recorder in &mut all {
            recorder.complete = false;
            recorder.leaves_out.push(
                "what was before each rotation, which empties the one file \
                                      (log_truncate_on_rotation = on, log_filename without a time)"
                    .to_owned(),
            );
        }
    }
    if settings["syslog_split_messages"] == "off" && settings["log_destination"] == "syslog" {
        for recorder in &mut all {
            recorder.leaves_out.push("the end of long texts (syslog_split_messages = off)".to_owned());
        }
    }
    all.sort_by_key(|recorder| !recorder.complete);
    all
}

fn statement_log(settings: &Settings) -> Option<Recorder> {
    let kind = settings["log_statement"].as_str();
    let records = match kind {
        "all" => "log_statement = all: every statement that the server understands",
        "mod" => "log_statement = mod: what changes data or definitions",
        "ddl" => "log_statement = ddl: definitions",
        _ => return None,
    };
    Some(Recorder {
        records: records.to_owned(),
        complete: kind == "all",
        leaves_out: cut_parameters(settings),
        repeats: "log_statement",
        values: kind != "ddl",
        passwords: true,
    })
}

/// What is missing of the parameters, which are in the detail of a record. A terse log of lines has no details; one in
/// CSV or JSON has them in a field of their own.
fn cut_parameters(settings: &Settings) -> Vec<String> {
    let has_fields = destinations(settings).any(|name| ["csvlog", "jsonlog"].contains(&name));
    if settings["log_error_verbosity"] == "terse" && !has_fields {
        return vec!["parameters (log_error_verbosity = terse)".to_owned()];
    }
    match settings["log_parameter_max_length"].as_str() {
        "-1" => Vec::new(),
        "0" => vec!["parameters (log_parameter_max_length = 0)".to_owned()],
        length => vec![format!("parameters from byte {length} on (log_parameter_max_length = {length})")],
    }
}

fn session_audit(settings: &Settings) -> Option<Recorder> {
    let classes = classes(&settings["pgaudit.log"]);
    if classes.is_empty() {
        return None;
    }
    let complete = ["read", "write"].iter().all(|class| classes.contains(class));
    let list = &settings["pgaudit.log"];
    let what = if complete { "reads and writes that succeed" } else { "these classes alone" };
    Some(Recorder {
        records: format!("pgaudit.log = {list}: {what}"),
        complete,
        leaves_out: left_out_by_pgaudit(settings),
        repeats: repeated_by_pgaudit(settings),
        values: classes.iter().any(|class| !["ddl", "role"].contains(class)),
        // It writes <REDACTED> in their place.
        passwords: false,
    })
}

fn left_out_by_pgaudit(settings: &Settings) -> Vec<String> {
    let is = |name: &str, value: &str| settings[name] == value;
    let mut out = vec!["denied statements".to_owned()];
    if is("pgaudit.log_statement", "off") {
        out.push("statement text (pgaudit.log_statement = off)".to_owned());
    }
    if is("pgaudit.log_statement_once", "on") {
        out.push("the text of all records but the first of a statement (pgaudit.log_statement_once = on)".to_owned());
    }
    if is("pgaudit.log_catalog", "off") {
        out.push("reads of pg_catalog, including the table of passwords (pgaudit.log_catalog = off)".to_owned());
    }
    let size = settings["pgaudit.log_parameter_max_size"].as_str();
    if is("pgaudit.log_parameter", "on") && size != "0" {
        out.push(format!("parameters longer than {size} bytes (pgaudit.log_parameter_max_size)"));
    }
    out
}

/// Literals are in the text, other values are parameters.
fn repeated_by_pgaudit(settings: &Settings) -> &'static str {
    match (settings["pgaudit.log_statement"].as_str(), settings["pgaudit.log_parameter"].as_str()) {
        ("off", _) => "",
        (_, "on") => "pgaudit.log_parameter",
        _ => "pgaudit.log_statement",
    }
}

fn object_audit(settings: &Settings) -> Option<Recorder> {
    let role = &settings["pgaudit.role"];
    if role.is_empty() || settings["pgaudit.log"] == "not loaded" {
        return None;
    }
    Some(Recorder {
        records: format!("object auditing as role {role} (pgaudit.role)"),
        complete: false,
        leaves_out: left_out_by_pgaudit(settings),
        repeats: repeated_by_pgaudit(settings),
        values: true,
        // It writes <REDACTED> in their place.
        passwords: false,
    })
}

/// Records statements by their duration. Only completed statements are known, so those that fail or hang are missing.
fn by_duration(settings: &Settings) -> Option<Recorder> {
    let least = |name: &str| milliseconds(&settings[name]);
    let rate = |name: &str| settings[name].parse::<f64>().unwrap_or(0.0);
    let (sampled, transactions) = (rate("log_statement_sample_rate"), rate("log_transaction_sample_rate"));
    let records = match (least("log_min_duration_statement"), least("log_min_duration_sample")) {
        (Some(0), _) => "all statements that end, by log_min_duration_statement = 0".to_owned(),
        (_, Some(0)) if sampled >= 1.0 => "all statements that end, by log_min_duration_sample = 0".to_owned(),
        _ if transactions >= 1.0 => "all statements that end, by log_transaction_sample_rate = 1".to_owned(),
        (_, Some(from)) if sampled > 0.0 => {
            format!("a share of {sampled} of the statements that take {from} ms or longer (log_min_duration_sample)")
        }
        _ if transactions > 0.0 => {
            format!("a share of {transactions} of the transactions (log_transaction_sample_rate)")
        }
        (Some(from), _) => format!("statements that take {from} ms or longer (log_min_duration_statement)"),
        (None, _) => return None,
    };
    let mut leaves_out = vec!["statements that fail or hang".to_owned()];
    leaves_out.extend(cut_parameters(settings));
    let repeats = "the log of durations";
    Some(Recorder { records, complete: false, leaves_out, repeats, values: true, passwords: true })
}

fn plans(settings: &Settings) -> Option<Recorder> {
    let from = milliseconds(&settings["auto_explain.log_min_duration"])?;
    let rate = &settings["auto_explain.sample_rate"];
    let share = if rate == "1" { String::new() } else { format!("a share of {rate} of the ") };
    Some(Recorder {
        records: format!("{share}plans, with their statements, that take {from} ms or longer (auto_explain)"),
        complete: false,
        leaves_out: vec!["statements without a plan, and those that fail or hang".to_owned()],
        repeats: "auto_explain",
        values: true,
        passwords: false,
    })
}

/// Where the log goes besides, or in place of, files of the server's own. Only files can be checked.
pub fn goes_elsewhere(settings: &Settings) -> Option<String> {
    destinations(settings).any(|name| name == "syslog").then(|| {
        let facility = &settings["syslog_facility"];
        format!("what syslog keeps of it, which cannot be read from here (syslog_facility = {facility})")
    })
}

/// True if the server writes its log to its own files.
pub fn is_collected(settings: &Settings) -> bool {
    let files = ["stderr", "csvlog", "jsonlog"];
    settings["logging_collector"] == "on" && destinations(settings).any(|name| files.contains(&name))
}

fn destinations(settings: &Settings) -> impl Iterator<Item = &str> {
    settings["log_destination"].split(',').map(str::trim)
}

/// A duration, as the server's view or `ALTER ROLE` writes it; `None` if it is off.
fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.trim().find(|sign: char| !sign.is_ascii_digit()).map_or(text.trim(), |end| &text.trim()[..end]);
    let number: u64 = digits.parse().ok()?;
    let unit = text.trim().trim_start_matches(digits).trim();
    Some(match unit {
        "s" => number * 1_000,
        "min" => number * 60_000,
        "h" => number * 3_600_000,
        _ => number,
    })
}

/// True if the log is one file that each rotation begins again.
fn keeps_nothing(settings: &Settings) -> bool {
    let name = settings["log_filename"].as_str();
    empties(settings) && name != NOT_SHOWN && !name.contains('%')
}

/// True if each rotation empties a file of the log that is there already.
fn empties(settings: &Settings) -> bool {
    let is = |name: &str, value: &str| settings[name] == value;
    is("logging_collector", "on") && is("log_truncate_on_rotation", "on") && !is("log_rotation_age", "0")
}

/// Why it is not known whether the log is one file that each rotation begins again.
pub fn unseen_name(settings: &Settings) -> Option<String> {
    let is_unseen = empties(settings) && settings["log_filename"] == NOT_SHOWN;
    let doubt = "whether each rotation empties the only log file (log_filename: GRANT pg_read_all_settings)";
    is_unseen.then(|| doubt.to_owned())
}

/// True if a message of `level` is written to the log.
fn is_written(settings: &Settings, level: &str) -> bool {
    !settings["log_destination"].is_empty() && place(level) >= place(&settings["log_min_messages"])
}

/// The setting by which the log has the text of statements that fail, as it has by default; `None` if it has not.
pub fn keeps_failed(settings: &Settings) -> Option<String> {
    let level = settings[OF_FAILED].as_str();
    let is_kept = is_written(settings, "error") && place("error") >= place(level);
    is_kept.then(|| format!("{OF_FAILED} = {level}"))
}

/// The place of `level` among [`LEVELS`].
fn place(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| level.eq_ignore_ascii_case(known))
}

/// The classes of pgaudit that a list names; `-class` removes one (pgaudit's README, "pgaudit.log").
pub fn classes(list: &str) -> BTreeSet<&'static str> {
    const ALL: [&str; 7] = ["read", "write", "function", "role", "ddl", "misc", "misc_set"];
    let mut classes = BTreeSet::new();
    for name in list.split(',').map(|name| name.trim().to_ascii_lowercase()) {
        let (takes, name) = name.strip_prefix('-').map_or((false, name.as_str()), |name| (true, name));
        for class in ALL.into_iter().filter(|class| *class == name || name == "all") {
            if takes {
                classes.remove(class)
            } else {
                classes.insert(class)
            };
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terse_log_of_lines_has_no_parameters() {
        let left_out = |pairs: &[(&str, &str)]| {
            let mut settings: Settings = NAMES.map(|(name, unset)| (name.to_owned(), unset.to_owned())).into();
            for (name, value) in [&[("log_statement", "all")][..], pairs].concat() {
                settings.insert(name.to_owned(), value.to_owned());
            }
            recorders(&settings).first().map(|recorder| recorder.leaves_out.join("; "))
        };
        let terse = ("log_error_verbosity", "terse");
        let cut = Some("parameters (log_error_verbosity = terse)".to_owned());
        assert_eq!(left_out(&[]), Some(String::new()));
        assert_eq!(left_out(&[terse]), cut);
        assert_eq!(left_out(&[terse, ("log_destination", "syslog")]), cut);
        assert_eq!(left_out(&[terse, ("log_destination", "stderr, csvlog")]), Some(String::new()));
    }

    /// What a server with these settings records; the other settings have their defaults.
    fn recorded(pairs: &[(&str, &str)]) -> Vec<Recorder> {
        let mut settings: Settings = NAMES.map(|(name, unset)| (name.to_owned(), unset.to_owned())).into();
        settings.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        recorders(&settings)
    }

    #[test]
    fn durations_are_recorded_by_their_limit_or_by_a_share() {
        let told = |pairs: &[(&str, &str)]| recorded(pairs).first().map(|recorder| recorder.records.clone());
        let words = |words: &str| Some(words.to_owned());
        let (limit, sample) = ("log_min_duration_statement", "log_min_duration_sample");
        let (rate, transactions) = ("log_statement_sample_rate", "log_transaction_sample_rate");
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[(limit, "0")]), words("all statements that end, by log_min_duration_statement = 0"));
        assert_eq!(
            told(&[(limit, "2h")]),
            words("statements that take 7200000 ms or longer (log_min_duration_statement)")
        );
        assert_eq!(told(&[(sample, "0")]), words("all statements that end, by log_min_duration_sample = 0"));
        for (from, share) in [("0", "0.5"), ("200", "1")] {
            let expected =
                format!("a share of {share} of the statements that take {from} ms or longer (log_min_duration_sample)");
            assert_eq!(told(&[(sample, from), (rate, share)]), Some(expected));
        }
        assert_eq!(told(&[(sample, "0"), (rate, "0")]), None, "none of them");
        assert_eq!(told(&[(transactions, "1")]), words("all statements that end, by log_transaction_sample_rate = 1"));
        assert_eq!(
            told(&[(transactions, "0.1")]),
            words("a share of 0.1 of the transactions (log_transaction_sample_rate)")
        );
        let plan = ("auto_explain.log_min_duration", "0");
        let plans = "plans, with their statements, that take 0 ms or longer (auto_explain)";
        assert_eq!(told(&[plan]), words(plans));
        assert_eq!(told(&[plan, ("auto_explain.sample_rate", "0.5")]), Some(format!("a share of 0.5 of the {plans}")));
        assert_eq!(told(&[plan, ("auto_explain.log_level", "notice")]), None, "the log does not have this level");
    }

    #[test]
    fn a_level_that_is_the_least_is_written() {
        let count = |statement: &str, least: &str, level: &str| {
            let audit = [("pgaudit.log", "all"), ("pgaudit.log_level", level)];
            recorded(&[&audit[..], &[("log_statement", statement), ("log_min_messages", least)]].concat()).len()
        };
        for (level, written) in [("notice", 0), ("warning", 1), ("log", 1)] {
            assert_eq!(count("none", "warning", level), written, "{level}");
        }
        for (least, written) in [("error", 1), ("log", 1), ("fatal", 0)] {
            assert_eq!(count("all", least, "notice"), written, "{least}");
        }
    }

    #[test]
    fn the_recorder_that_records_most_comes_first() {
        let all = recorded(&[("log_statement", "mod"), ("pgaudit.log", "all")]);
        assert_eq!(all.iter().map(|recorder| recorder.complete).collect::<Vec<_>>(), [true, false]);
        let collected = [("log_statement", "all"), ("logging_collector", "on"), ("log_filename", "server.log")];
        let emptied = |set: &str| recorded(&[&collected[..], &[("log_truncate_on_rotation", set)]].concat());
        assert_eq!(["on", "off"].map(|set| emptied(set)[0].complete), [false, true]);
    }

    #[test]
    fn what_syslog_and_limits_cut_is_left_out() {
        let left_out = |pairs: &[(&str, &str)]| {
            recorded(&[&[("log_statement", "all")][..], pairs].concat())[0].leaves_out.join("; ")
        };
        let end = "the end of long texts (syslog_split_messages = off)";
        for (destination, split, expected) in
            [("syslog", "off", end), ("syslog", "on", ""), ("stderr", "off", ""), ("stderr,syslog", "off", "")]
        {
            let pairs = [("log_destination", destination), ("syslog_split_messages", split)];
            assert_eq!(left_out(&pairs), expected, "{destination} {split}");
        }
        let cut = "parameters from byte 64 on (log_parameter_max_length = 64)";
        assert_eq!(left_out(&[("log_parameter_max_length", "64")]), cut);
    }

    #[test]
    fn settings_of_pgaudit_decide_what_its_records_leave_out_and_repeat() {
        let audited = |pairs: &[(&str, &str)]| {
            let recorder = recorded(&[&[("pgaudit.log", "all")][..], pairs].concat()).remove(0);
            let more = recorder.leaves_out.join("; ").replace("denied statements", "");
            (more.trim_start_matches("; ").to_owned(), recorder.repeats)
        };
        let (texts, values) = ("pgaudit.log_statement", "pgaudit.log_parameter");
        let (off, on, size) = ((texts, "off"), (values, "on"), ("pgaudit.log_parameter_max_size", "100"));
        let no_text = "statement text (pgaudit.log_statement = off)";
        let long = "parameters longer than 100 bytes (pgaudit.log_parameter_max_size)";
        let once = "the text of all records but the first of a statement (pgaudit.log_statement_once = on)";
        let catalog = "reads of pg_catalog, including the table of passwords (pgaudit.log_catalog = off)";
        for (pairs, left_out, repeats) in [
            (&[][..], "", texts),
            (&[off], no_text, ""),
            (&[off, on], no_text, ""),
            (&[on], "", values),
            (&[on, size], long, values),
            (&[size], "", texts),
            (&[("pgaudit.log_statement_once", "on")], once, texts),
            (&[("pgaudit.log_catalog", "off")], catalog, texts),
        ] {
            assert_eq!(audited(pairs), (left_out.to_owned(), repeats), "{pairs:?}");
        }
        let of_role = |log: &str| recorded(&[("pgaudit.role", "auditor"), ("pgaudit.log", log)]).len();
        assert_eq!(["not loaded", "none"].map(of_role), [0, 1]);
    }

    #[test]
    fn a_log_that_rotation_empties_is_told_by_its_name() {
        let told = |pairs: &[(&str, &str)]| {
            let mut settings: Settings = NAMES.map(|(name, unset)| (name.to_owned(), unset.to_owned())).into();
            for (name, value) in [&[("logging_collector", "on")][..], pairs].concat() {
                settings.insert(name.to_owned(), value.to_owned());
            }
            (keeps_nothing(&settings), unseen_name(&settings).is_some())
        };
        let empties = ("log_truncate_on_rotation", "on");
        assert_eq!(told(&[]), (false, false));
        assert_eq!(told(&[empties]), (false, true));
        assert_eq!(told(&[empties, ("log_filename", "server.log")]), (true, false));
        assert_eq!(told(&[empties, ("log_filename", "server-%a.log")]), (false, false));
        assert_eq!(told(&[empties, ("log_rotation_age", "0")]), (false, false));
    }

    #[test]
    fn failed_statements_are_kept_if_two_levels_and_the_destination_let_them() {
        let kept = |pairs: &[(&str, &str)]| {
            let mut settings: Settings = NAMES.map(|(name, unset)| (name.to_owned(), unset.to_owned())).into();
            settings.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            keeps_failed(&settings)
        };
        assert_eq!(kept(&[]).as_deref(), Some("log_min_error_statement = error"));
        assert_eq!(kept(&[(OF_FAILED, "warning")]).as_deref(), Some("log_min_error_statement = warning"));
        for off in [(OF_FAILED, "panic"), (OF_FAILED, "log"), ("log_min_messages", "log"), ("log_destination", "")] {
            assert_eq!(kept(&[off]), None, "{off:?}");
        }
    }

    #[test]
    fn words_are_read_in_any_case_and_switches_by_each_of_their_words() {
        let switch =
            |words: &[&str]| words.iter().map(|word| canonical("pgaudit.log_parameter", word)).collect::<Vec<_>>();
        assert_eq!(switch(&["on", "TRUE", "t", "yes", "1"]), ["on"; 5]);
        assert_eq!(switch(&["off", "False", "n", "0", "of"]), ["off"; 5]);
        assert_eq!([canonical("log_statement", "ALL"), canonical("log_statement", "mod")], ["all", "mod"]);
        // Names keep their case.
        assert_eq!(canonical("pgaudit.role", "Auditor"), "Auditor");
    }

    #[test]
    fn durations_are_read_with_their_units() {
        assert_eq!(
            ["-1", "0", "250", "250ms", "2s", "1min", "off"].map(milliseconds),
            [None, Some(0), Some(250), Some(250), Some(2_000), Some(60_000), None]
        );
    }
}
