//! Does the audit log hold every event that it must hold, and no other?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::key_value,
    evidence::{Check, CheckContext, CheckEntry, Watch},
};

use crate::{
    evidence::{
        definitions::DefinitionsLogged,
        long,
        marked::{Counts, End, Gained, Log, LogGrowth, LogWatch, Reader, SESSIONS, describe, marker},
    },
    mariadb::access::ACCESS,
    mysql_family::{
        evidence::{
            count_marked,
            logs_free::plant,
            served::{HERE, file_here},
        },
        schema::YCSB_DIALECT,
    },
};

/// The audit log. A server does not show it to its clients.
pub static AUDIT_LOG: Log = Log { plant: |context, token| plant(&ACCESS, context, token), served };

/// The audit log of an attached server from now on: a file on the server's machine.
fn served(context: &CheckContext<'_>) -> Result<Reader, String> {
    let mut session = ACCESS.administrator(context.server, context.setup).map_err(|fault| fault.to_string())?;
    let mut value = |name: &str| session.setting(name).map_err(|fault| fault.to_string());
    let (on, output) = (value("server_audit_logging")?, value("server_audit_output_type")?);
    if on != "ON" {
        // The server reports that it writes no log: nothing to read, and no records.
        return Ok(Box::new(|_| Ok(Gained::default())));
    }
    if !output.eq_ignore_ascii_case("file") {
        let words = "the audit log goes to syslog, where it cannot be distinguished from others': SET GLOBAL \
                     server_audit_output_type = 'file'";
        return Err(words.to_owned());
    }
    let file = value("server_audit_file_path")?;
    file_here(&mut session, &file)
        .map_err(|why| format!("the audit log is the file {file}, which cannot be read here ({why}): {HERE}"))
}

/// Sends statements of each kind from several sessions at once and counts the records about the measured table in the
/// audit log: nothing else uses it then. If connections are logged, those sessions' logins are counted too. Id
/// `audit-complete`.
///
/// The plugin logs a prepared statement without its values, so a single statement cannot be distinguished from others
/// of its kind.
pub struct AuditComplete {
    /// Of [`TRIED`].
    events: Vec<String>,
}

/// The kinds of events that are tried.
const TRIED: [&str; 4] = ["CONNECT", "QUERY", "QUERY_DML", "QUERY_DML_NO_SELECT"];

/// Connections that [`count_marked`] opens, under the name that their records are counted by.
const LOGINS: (&str, usize) = ("CONNECT", SESSIONS);

impl AuditComplete {
    /// A check of a log of `events`, as `server_audit_events` names them, as far as they are tried.
    pub fn new(events: &str) -> Self {
        let events = events.split(',').map(str::trim).filter(|event| TRIED.contains(event));
        Self { events: events.map(str::to_owned).collect() }
    }

    /// True if it tries some event: a log without any is complete whatever it holds.
    pub fn tries_some(&self) -> bool {
        !self.events.is_empty()
    }

    fn has(&self, event: &str) -> bool {
        self.events.iter().any(|kind| kind == event)
    }

    fn has_statements(&self) -> bool {
        self.has("QUERY") || self.has("QUERY_DML") || self.has("QUERY_DML_NO_SELECT")
    }

    /// Which of the sent events must be in the log.
    fn expected(&self, sent: &Counts) -> Counts {
        let statements = self.has_statements();
        let reads = statements && !self.has("QUERY_DML_NO_SELECT");
        let mut expected = sent.clone();
        expected.retain(|verb, _| if verb == "SELECT" { reads } else { statements });
        if self.has("CONNECT") {
            expected.insert(LOGINS.0.to_owned(), LOGINS.1);
        }
        expected
    }

    /// The observation `seen` of records with the table's name, or of all records, `nameless`, if the first are missing
    /// and there are as many as `expected`.
    fn by_number(&self, seen: Observation, nameless: &Counts, expected: &Counts) -> Observation {
        match seen {
            Observation::Exposed(words) if self.has_statements() && nameless == expected => {
                Observation::Protected(format!(
                    "{words}; without the table's name, as their text is cut (server_audit_query_log_limit): {}: \
                     matched by their number alone",
                    describe(nameless)
                ))
            }
            seen => seen,
        }
    }
}

/// Counts records of statements that hold `mark`, by verb, and logins as `account`. A record is
/// `time,server,account,host,connection, query,operation,database,'object',status` (documentation, "MariaDB Audit
/// Plugin - Log Format").
fn count(text: &str, mark: &str, account: Option<&str>) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(9, ',').collect();
        let [_, _, who, _, _, _, operation, _, object] = fields[..] else { continue };
        let verb = match operation {
            "QUERY" if object.contains(mark) => object.trim_start_matches('\'').split_whitespace().next(),
            "CONNECT" if account.is_none_or(|account| account == who) => Some(LOGINS.0),
            _ => None,
        };
        if let Some(verb) = verb {
            *counts.entry(verb.to_ascii_uppercase()).or_default() += 1;
        }
    }
    counts
}

/// A check of which definitions (DDL) the log holds.
pub fn definitions_logged() -> DefinitionsLogged {
    DefinitionsLogged { log: &AUDIT_LOG, count: |text, mark| count(text, mark, None) }
}

/// Sends a long statement as text, with its values, because the plugin truncates such statements. Returns what happened
/// to it if it is not complete in the log.
fn cut(context: &CheckContext<'_>) -> Result<Option<String>, Fault> {
    let Ok(growth) = LogGrowth::begin(context, &AUDIT_LOG) else { return Ok(None) };
    let marker = marker(context);
    let (table, key) = (YCSB_DIALECT.qualified(&context.setup.space, context.table), long::value(&marker));
    let key = key.replace('\\', "\\\\").replace('\'', "''");
    key_value(context.connect()?)?.run_statement(&format!("DELETE FROM {table} WHERE `ycsb_key` = '{key}'"))?;
    let (gained, begins) = growth.of_one(context, |text| long::begins(text, &marker))?;
    if !begins {
        return Ok(Some("of a long statement the log has not even the beginning".to_owned()));
    }
    Ok(long::lost(&gained.text, &marker, 1).map(|lost| format!("{lost} (server_audit_query_log_limit)")))
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        format!("every event of {} is in the audit log once, and no other", self.events.join(","))
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let account = ACCESS.product.target(context.server, context.setup)?.user;
        let table = YCSB_DIALECT.qualified(&context.setup.space, context.table);
        let count = |text: &str, mark: &str| count(text, mark, Some(&account));
        let marked = match count_marked(context, &AUDIT_LOG, &table, |sent| self.expected(sent), count)? {
            Ok(marked) => marked,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let nameless = count(&marked.text, "");
        Ok(match marked.observation(context.protected) {
            Observation::Protected(words) if self.has_statements() => match cut(context)? {
                Some(cut) => Observation::Protected(format!("{words}; {cut}")),
                None => Observation::Protected(words),
            },
            seen => self.by_number(seen, &nameless, &marked.expected),
        })
    }

    fn watch(&self, context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        Some(LogWatch::begin(context, &AUDIT_LOG, End::Rest, |text| count(text, "", None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
20261121 09:59:04,vm,tithe,127.0.0.1,8,0,CONNECT,,,0
20261121 09:59:04,vm,tithe,127.0.0.1,8,90,QUERY,,'SELECT TID FROM t, u',0
20261121 09:59:04,vm,tithe,127.0.0.1,10,104,QUERY,tithe,'INSERT INTO `tithe`.`t` (`ycsb_key`, `field0`) VALUES (?, ?)',0
20261121 09:59:04,vm,tithe,127.0.0.1,8,106,QUERY,tithe,'SELECT `field0`, `field1` FROM `tithe`.`t` WHERE `ycsb_key` = ?',0
20261121 09:59:04,vm,tithe,127.0.0.1,8,0,DISCONNECT,tithe,,0
";

    #[test]
    fn records_whose_text_is_cut_are_matched_by_their_number() {
        let counts = |selects: usize| Counts::from([("SELECT".to_owned(), selects)]);
        let exposed = || Observation::Exposed("sent: SELECT 2; in the log: none".to_owned());
        let [statements, logins] = ["QUERY", "CONNECT"].map(AuditComplete::new);
        let seen = statements.by_number(exposed(), &counts(2), &counts(2));
        let words = "sent: SELECT 2; in the log: none; without the table's name, as their text is cut \
                     (server_audit_query_log_limit): SELECT 2: matched by their number alone";
        assert_eq!(seen, Observation::Protected(words.to_owned()));
        for other in [1, 3] {
            assert_eq!(statements.by_number(exposed(), &counts(other), &counts(2)), exposed(), "{other}");
        }
        assert_eq!(logins.by_number(exposed(), &counts(2), &counts(2)), exposed(), "it logs no statements");
        let unknown = || Observation::Unknown("the log was rotated".to_owned());
        assert_eq!(statements.by_number(unknown(), &counts(2), &counts(2)), unknown());
    }

    #[test]
    fn records_are_counted_by_verb() {
        assert_eq!(describe(&count(LOG, "`tithe`.`t`", Some("tithe"))), "CONNECT 1, INSERT 1, SELECT 1");
        assert_eq!(describe(&count(LOG, "`tithe`.`t`", Some("app"))), "INSERT 1, SELECT 1");
        assert_eq!(describe(&count(LOG, "", None)), "CONNECT 1, INSERT 1, SELECT 2");
    }

    #[test]
    fn what_is_expected_follows_the_events() {
        let sent: Counts = ["SELECT", "INSERT"].map(|verb| (verb.to_owned(), 100)).into();
        let expected = |events: &str| describe(&AuditComplete::new(events).expected(&sent));
        assert_eq!(expected("CONNECT,QUERY"), "CONNECT 4, INSERT 100, SELECT 100");
        assert_eq!(expected("QUERY_DML_NO_SELECT"), "INSERT 100");
        assert_eq!(expected("CONNECT"), "CONNECT 4");
    }

    #[test]
    fn what_is_not_tried_is_not_claimed() {
        let claim = |events: &str| {
            let check = AuditComplete::new(events);
            check.tries_some().then(|| check.claim())
        };
        let of = |events: &str| Some(format!("every event of {events} is in the audit log once, and no other"));
        assert_eq!(claim("CONNECT,QUERY"), of("CONNECT,QUERY"));
        assert_eq!(claim("QUERY_DDL, QUERY_DML,TABLE"), of("QUERY_DML"));
        assert_eq!(["TABLE", "QUERY_DDL,QUERY_DCL", ""].map(claim), [None, None, None]);
    }
}
