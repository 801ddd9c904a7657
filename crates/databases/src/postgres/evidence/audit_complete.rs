//! Does the audit log hold every statement that it must hold, and no other?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry, Watch};

use super::{formats::Format, logs_free::LOG};
use crate::{
    evidence::{
        definitions::DefinitionsLogged,
        long,
        marked::{Counts, End, LONG_VALUES, LogWatch, Tally, describe, marker, send_and_count},
    },
    postgres::schema::{YCSB_DIALECT, administrator, auditor},
    target::is_local,
};

/// Sends numbered statements of each kind from several sessions at once and counts them in the log.
///
/// If parameters are logged, a record counts if it holds a marked key. If not, every record about the measured table
/// that was added during the check counts, because nothing else uses the table then. If parameters were requested but
/// are not logged, the check cannot decide.
pub struct AuditComplete {
    /// Reads are logged.
    pub read: bool,
    /// Writes are logged.
    pub write: bool,
    /// Parameters are, too.
    pub parameter: bool,
    /// By the privileges of a role on the tables, in place of all statements of a session.
    pub by_object: bool,
    /// Where the log must go; `None`: anywhere.
    pub sink: Option<Sink>,
}

/// Where a server's log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// Each process writes the file itself.
    Stderr,
    /// To a process that writes the file, through a pipe.
    Collector,
    /// The same, as comma-separated values.
    Csv,
    /// To the machine's syslog.
    Syslog,
}

impl Sink {
    /// The one of this name in experiments; `None` if any will do.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "stderr" => Some(Self::Stderr),
            "collector" => Some(Self::Collector),
            "csvlog" => Some(Self::Csv),
            "syslog" => Some(Self::Syslog),
            _ => None,
        }
    }

    /// The required value of `logging_collector`.
    pub fn collector(self) -> &'static str {
        if matches!(self, Self::Collector | Self::Csv) { "on" } else { "off" }
    }

    /// The required value of `log_destination`.
    pub fn destination(self) -> &'static str {
        match self {
            Self::Stderr | Self::Collector => "stderr",
            Self::Csv => "csvlog",
            Self::Syslog => "syslog",
        }
    }

    /// What is set in its place; `None` if this sink is in use.
    fn replaced(self, context: &CheckContext<'_>) -> Result<Option<String>, Fault> {
        let mut session = administrator(context.server, context.setup)?;
        let collector = session.value("SHOW logging_collector")?;
        let destination = session.value("SHOW log_destination")?;
        let is_so = collector == self.collector() && destination == self.destination();
        Ok((!is_so).then(|| format!("logging_collector = {collector}, log_destination = {destination}")))
    }
}

impl AuditComplete {
    /// True if statements of `verb` must be logged. A statement that changes rows by their key needs the privilege to
    /// read it, and any privilege of the role is enough.
    fn logs(&self, verb: &str) -> bool {
        match verb {
            "SELECT" => self.read,
            "UPDATE" | "DELETE" => self.write || self.by_object && self.read,
            _ => self.write,
        }
    }

    /// The tables whose statements are not logged, because the auditor lacks a privilege on them; `None` if there are
    /// none. On a server that Tithe did not start, tables outside of Tithe's schema belong to others.
    fn left_out(&self, context: &CheckContext<'_>) -> Result<Option<String>, Fault> {
        let mut session = administrator(context.server, context.setup)?;
        let auditor = session.value(&format!("SELECT {}", auditor()))?;
        let quoted = auditor.replace('\'', "''");
        if session.value(&format!("SELECT count(*) FROM pg_roles WHERE rolname = '{quoted}'"))? == "0" {
            return Ok(Some(format!("the server has no role {auditor} (pgaudit.role)")));
        }
        if context.setup.tables.is_in_place() {
            return Ok(Some(format!("it is not known whether {auditor} has privileges on your own tables")));
        }
        let schemas = match is_local(context.server) {
            true => "nspname !~ '^pg_' AND nspname <> 'information_schema'".to_owned(),
            false => format!("nspname = '{}'", context.setup.space),
        };
        let (read, write) = (["SELECT"].iter().filter(|_| self.read), ["INSERT", "UPDATE", "DELETE"].iter());
        let lacks = read.chain(write.filter(|_| self.write));
        let lacks: Vec<_> =
            lacks.map(|right| format!("NOT has_table_privilege(pg_roles.oid, pg_class.oid, '{right}')")).collect();
        let left_out = session.value(&format!(
            "SELECT coalesce(string_agg(format('%I.%I', nspname, relname), ', ' ORDER BY nspname, relname), '') FROM \
             pg_roles, pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE rolname = '{quoted}' AND relkind \
             IN ('r', 'p') AND NOT relispartition AND {schemas} AND ({})",
            lacks.join(" OR ")
        ))?;
        Ok((!left_out.is_empty()).then(|| format!("{auditor} lacks privileges on {left_out}")))
    }

    /// What `tally` shows in an arm that is `protected` or not. Of the other records, `bare` have no parameters and
    /// `textless` no text; `lost` is what is missing of long values.
    fn judged(
        &self,
        tally: &Tally,
        (bare, mut textless, lost): (Counts, Counts, Option<String>),
        protected: bool,
    ) -> Observation {
        let mut expected = tally.sent.clone();
        expected.retain(|verb, _| self.logs(verb));
        if tally.logged.is_empty() && !textless.is_empty() {
            textless.retain(|verb, _| tally.sent.contains_key(verb));
            let words = format!(
                "sent: {}; in the log without text (pgaudit.log_statement = off): {}",
                describe(&tally.sent),
                describe(&textless)
            );
            return if textless == expected {
                Observation::Protected(format!("{words}: matched by their number alone"))
            } else {
                Observation::Unknown(format!("{words}: they cannot be distinguished from those of others"))
            };
        }
        if self.parameter && !bare.is_empty() {
            return Observation::Unknown(parameters_missing(tally, &bare));
        }
        match (tally.against(&expected, protected), lost) {
            (Observation::Protected(words), Some(lost)) => {
                Observation::Protected(format!("{words}; {lost} (pgaudit.log_parameter_max_size)"))
            }
            (seen, _) => seen,
        }
    }

    fn classes(&self) -> &'static str {
        match (self.read, self.write) {
            (true, true) => "read and write",
            (true, false) => "read",
            _ => "write",
        }
    }
}

/// A check of which definitions (DDL) the log holds.
pub fn definitions_logged() -> DefinitionsLogged {
    DefinitionsLogged { log: &LOG, count }
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        let by = if self.by_object { " on tables of the auditor" } else { "" };
        format!("every statement of class {}{by} is in the audit log once, and no other", self.classes())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if let (true, Some(sink)) = (context.protected, self.sink)
            && let Some(other) = sink.replaced(context)?
        {
            return Ok(Observation::Exposed(other));
        }
        if context.protected
            && self.by_object
            && let Some(left_out) = self.left_out(context)?
        {
            return Ok(Observation::Exposed(left_out));
        }
        // In the log the quotes of a name are doubled.
        let table = YCSB_DIALECT.qualified(&context.setup.space, context.table).replace('"', "\"\"");
        let mark = if self.parameter { marker(context) } else { table.clone() };
        let (mut bare, mut textless, mut lost) = (Counts::new(), Counts::new(), None);
        let is_csv = self.sink == Some(Sink::Csv) && !context.server.address.is_attached();
        let format = if is_csv { Format::Csv } else { Format::Text };
        let count = if self.by_object { count_of_objects_alone } else { count };
        let counting = |text: &str| {
            let text = &format.to_text(text.to_owned());
            lost = long::lost(text, &marker(context), LONG_VALUES);
            bare = count(&without_parameters(text), &table);
            textless = count(&without_text(text), "");
            count(text, &mark)
        };
        let tally = match send_and_count(context, &LOG, counting)? {
            Ok(tally) => tally,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        Ok(self.judged(&tally, (bare, textless, lost), context.protected))
    }

    fn watch(&self, context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        Some(LogWatch::begin(context, &LOG, End::Planted, |text| count(text, "")))
    }
}

/// pgaudit writes this in place of parameters while `pgaudit.log_parameter` is off.
const NOT_LOGGED: &str = "<not logged>";

/// The lines of `text` without parameters.
fn without_parameters(text: &str) -> String {
    text.lines().filter(|line| line.ends_with(NOT_LOGGED)).flat_map(|line| [line, "\n"]).collect()
}

/// The lines of `text` in which neither statement nor parameters are.
fn without_text(text: &str) -> String {
    let ending = format!("{NOT_LOGGED},{NOT_LOGGED}");
    text.lines().filter(|line| line.ends_with(&ending)).flat_map(|line| [line, "\n"]).collect()
}

/// Records without parameters do not contain keys, so the records of this check cannot be distinguished from others.
fn parameters_missing(Tally { sent, logged, .. }: &Tally, bare: &Counts) -> String {
    format!(
        "sent: {}; in the log with parameters: {}, and with {NOT_LOGGED} in their place: {}: set `pgaudit.log_parameter = on` \
         (for an attached server in the arm's `on`), or give the protection `parameter = false`",
        describe(sent),
        describe(logged),
        describe(bare)
    )
}

/// Counts the records that hold `mark`: those of session auditing or, if there are none, of object auditing. A
/// statement that both record counts once.
fn count(text: &str, mark: &str) -> Counts {
    let session = count_of(text, "AUDIT: SESSION,", mark);
    if session.is_empty() { count_of_objects(text, mark) } else { session }
}

/// Counts the records of object auditing that hold `mark`.
fn count_of_objects(text: &str, mark: &str) -> Counts {
    count_of(text, "AUDIT: OBJECT,", mark)
}

/// The same; records of session auditing, which costs too, count apart.
fn count_of_objects_alone(text: &str, mark: &str) -> Counts {
    let sessions = count_of(text, "AUDIT: SESSION,", mark).into_iter();
    let mut counts = count_of_objects(text, mark);
    counts.extend(sessions.map(|(command, count)| (format!("{command} by session"), count)));
    counts
}

/// Counts the records of one kind that hold `mark`, by command. It leaves out the one that Tithe writes at the end of a
/// check, which is of class FUNCTION. A record is `AUDIT: SESSION,` and then statement number, substatement number,
/// class and command (pgaudit's README, section "Format").
fn count_of(text: &str, kind: &str, mark: &str) -> Counts {
    let mut counts = Counts::new();
    for record in text.lines().filter_map(|line| line.split_once(kind)).map(|(_, record)| record) {
        if let (Some(command), true) = (record.split(',').nth(3), record.contains(mark) && !record.contains("$tithe$"))
        {
            *counts.entry(command.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        postgres::told::server,
        told::{Rows, Told},
    };

    const LOG: &str = r#"2026-11-21 08:00:00.000 UTC [7] LOG:  AUDIT: SESSION,1,1,WRITE,INSERT,,,"INSERT INTO ""t""",audit-1-0
2026-11-21 08:00:00.001 UTC [8] LOG:  AUDIT: SESSION,2,1,READ,SELECT,,,"SELECT ""a"" FROM ""t""",audit-1-1
2026-11-21 08:00:00.001 UTC [8] LOG:  AUDIT: SESSION,3,1,READ,SELECT,,,"SELECT ""a"" FROM ""t""",audit-2-1
2026-11-21 08:00:00.002 UTC [9] LOG:  checkpoint starting: audit-1-1
"#;

    /// A server that writes its log there, whose auditor is a role with rights on all tables.
    fn logging(collector: &'static str, destination: &'static str) -> Told {
        server(
            vec![("logging_collector", collector), ("log_destination", destination)],
            vec![
                ("SELECT coalesce(nullif(", Ok(&[&["tithe_auditor"]])),
                ("count(*) FROM pg_roles", Ok(&[&["1"]])),
                ("coalesce(string_agg(", Ok(&[&[""]])),
            ],
        )
    }

    fn check_of(by_object: bool, sink: Option<Sink>) -> AuditComplete {
        AuditComplete { read: true, write: true, parameter: true, by_object, sink }
    }

    #[test]
    fn a_log_that_goes_elsewhere_is_not_the_one_that_was_asked_for() {
        for (name, collector, destination) in [
            ("stderr", "off", "stderr"),
            ("collector", "on", "stderr"),
            ("csvlog", "on", "csvlog"),
            ("syslog", "off", "syslog"),
        ] {
            let check = check_of(false, Some(Sink::named(name).expect("a sink")));
            for (of_server, to) in
                ["on", "off"].into_iter().flat_map(|it| ["stderr", "csvlog", "syslog"].map(|to| (it, to)))
            {
                let seen = logging(of_server, to).observed(&check);
                let elsewhere = seen == format!("exposed: logging_collector = {of_server}, log_destination = {to}");
                assert_eq!(elsewhere, (of_server, to) != (collector, destination), "{name}: {seen}");
            }
        }
        assert_eq!(Sink::named("any"), None);
        let seen = logging("off", "syslog").observed(&check_of(false, None));
        assert!(seen.starts_with("unknown: "), "it may go anywhere, but cannot be read: {seen}");
    }

    #[test]
    fn an_auditor_without_rights_on_a_table_leaves_its_statements_out() {
        let seen = |words: &'static str, rows: Rows| {
            let told = logging("off", "stderr").telling(words, rows);
            [true, false].map(|by_object| told.observed(&check_of(by_object, None)))
        };
        let [by_object, of_sessions] = seen("coalesce(string_agg(", &[&["tithe.usertable"]]);
        assert_eq!(by_object, "exposed: tithe_auditor lacks privileges on tithe.usertable");
        assert!(of_sessions.starts_with("unknown: "), "no role decides it: {of_sessions}");
        let [by_object, _] = seen("count(*) FROM pg_roles", &[&["0"]]);
        assert_eq!(by_object, "exposed: the server has no role tithe_auditor (pgaudit.role)");
        let [by_object, _] = seen("nothing that is asked", &[]);
        assert!(by_object.starts_with("unknown: "), "nothing is left out: {by_object}");
    }

    type Pairs<'a> = &'a [(&'a str, usize)];

    const NONE: Pairs<'_> = &[];
    const TWO: Pairs<'_> = &[("SELECT", 2)];

    fn counts(counts: Pairs<'_>) -> Counts {
        counts.iter().map(|(verb, count)| ((*verb).to_owned(), *count)).collect()
    }

    /// What is judged of a log of reads that should have two of four statements.
    fn judged(
        parameter: bool,
        logged: Pairs<'_>,
        (bare, textless): (Pairs<'_>, Pairs<'_>),
        lost: Option<&str>,
    ) -> Observation {
        let check = AuditComplete { read: true, write: false, parameter, by_object: false, sink: None };
        let sent = counts(&[("INSERT", 2), ("SELECT", 2)]);
        let tally = Tally { sent, logged: counts(logged), doubt: None };
        check.judged(&tally, (counts(bare), counts(textless), lost.map(str::to_owned)), true)
    }

    #[test]
    fn records_count_by_their_marks_and_without_text_by_their_number() {
        let whole = "sent: INSERT 2, SELECT 2; in the log: SELECT 2";
        for textless in [NONE, TWO] {
            let seen = judged(true, TWO, (NONE, textless), None);
            assert_eq!(seen, Observation::Protected(whole.to_owned()), "what has its marks is not matched by number");
        }
        let cut = Observation::Protected(format!("{whole}; one is cut (pgaudit.log_parameter_max_size)"));
        assert_eq!(judged(true, TWO, (NONE, NONE), Some("one is cut")), cut);
        let missing = Observation::Exposed("sent: INSERT 2, SELECT 2; in the log: none".to_owned());
        let empty = [true, false].map(|parameter| judged(parameter, NONE, (NONE, NONE), None));
        assert_eq!(empty, [missing.clone(), missing]);

        let by_number = |textless: Pairs<'_>| judged(true, NONE, (NONE, textless), None);
        let words = "sent: INSERT 2, SELECT 2; in the log without text (pgaudit.log_statement = off): SELECT";
        let matched = Observation::Protected(format!("{words} 2: matched by their number alone"));
        assert_eq!([by_number(TWO), by_number(&[("SELECT", 2), ("GRANT", 5)])], [matched.clone(), matched]);
        let others = Observation::Unknown(format!("{words} 3: they cannot be distinguished from those of others"));
        assert_eq!(by_number(&[("SELECT", 3)]), others);
    }

    #[test]
    fn records_without_the_parameters_that_were_asked_for_decide_nothing() {
        for logged in [NONE, TWO] {
            let seen = judged(true, logged, (TWO, NONE), None);
            assert!(matches!(&seen, Observation::Unknown(why) if why.contains("log_parameter = on")), "{seen:?}");
            let seen = judged(false, logged, (TWO, NONE), None);
            assert_eq!(matches!(seen, Observation::Protected(_)), !logged.is_empty(), "{seen:?}");
        }
    }

    #[test]
    fn classes_and_privileges_of_the_auditor_decide_which_verbs_are_logged() {
        for (read, write, by_object, logged, words) in [
            (true, true, false, [true; 4], "read and write"),
            (true, false, false, [true, false, false, false], "read"),
            (true, false, true, [true, false, true, true], "read on tables of the auditor"),
            (false, true, false, [false, true, true, true], "write"),
            (false, true, true, [false, true, true, true], "write on tables of the auditor"),
        ] {
            let check = AuditComplete { read, write, ..check_of(by_object, None) };
            assert_eq!(["SELECT", "INSERT", "UPDATE", "DELETE"].map(|verb| check.logs(verb)), logged, "{words}");
            let claim = format!("every statement of class {words} is in the audit log once, and no other");
            assert_eq!(check.claim(), claim);
        }
    }

    #[test]
    fn records_of_sessions_count_apart_where_objects_decide() {
        let of_objects = LOG.replace("SESSION", "OBJECT");
        let seen = [LOG.to_owned(), of_objects.clone(), LOG.to_owned() + &of_objects]
            .map(|log| describe(&count_of_objects_alone(&log, "audit-1-")));
        let both = "INSERT 1, INSERT by session 1, SELECT 1, SELECT by session 1";
        assert_eq!(seen, ["INSERT by session 1, SELECT by session 1", "INSERT 1, SELECT 1", both]);
    }

    #[test]
    fn a_record_without_text_has_neither_statement_nor_parameters() {
        let textless = LOG.replace(r#""INSERT INTO ""t""",audit-1-0"#, "<not logged>,<not logged>");
        assert_eq!(describe(&count(&without_text(&textless), "")), "INSERT 1");
        assert_eq!(without_text(&LOG.replace("audit-1-1", NOT_LOGGED)), "", "their parameters alone are left out");
    }

    #[test]
    fn marked_records_are_counted_by_command() {
        assert_eq!(describe(&count(LOG, "audit-1-")), "INSERT 1, SELECT 1");
        assert_eq!(describe(&count(LOG, "\"\"t\"\"")), "INSERT 1, SELECT 2");
        assert_eq!(describe(&count(LOG, "audit-3-")), "none");
        let planted = r#"LOG:  AUDIT: SESSION,4,1,FUNCTION,DO,,,"DO $tithe$ BEGIN RAISE LOG 'end-of-audit-1-g'; END $tithe$",<none>"#;
        assert_eq!(count(planted, "audit-1-"), Counts::new());
        assert_eq!(without_parameters(LOG), "");
        let of_objects = LOG.replace("SESSION", "OBJECT");
        assert_eq!(count(&of_objects, "audit-1-"), count(LOG, "audit-1-"));
        assert_eq!(count(&(LOG.to_owned() + &of_objects), "audit-1-"), count(LOG, "audit-1-"));
        let bare = without_parameters(&LOG.replace("audit-1-1", NOT_LOGGED));
        assert_eq!(describe(&count(&bare, "\"\"t\"\"")), "SELECT 1");
    }
}
